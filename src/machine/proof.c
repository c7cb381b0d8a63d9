/*
 * proof.c: where pages lie, as the kernel tells, not as was asked for.
 */
#include "base/file/file.h"
#include "base/str.h"
#include "machine/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH 1024 /* pages in one question */

struct range { /* whole pages that hold the bytes asked about */
    char *start;
    int64_t pages;
    size_t page_bytes;
};

static struct range range_of(const void *memory, size_t size_bytes) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)memory / page_bytes;
    uintptr_t end = ((uintptr_t)memory + size_bytes + page_bytes - 1) / page_bytes;
    return (struct range){
        .start = (char *)(first * page_bytes),
        .pages = size_bytes > 0 ? (int64_t)(end - first) : 0,
        .page_bytes = page_bytes,
    };
}

static void count_page(const struct lab_machine *machine, int status,
                       struct lab_page_census *census) {
    if (status < 0) { /* ENOENT: not there yet; EFAULT: the shared page of zeros, or unmapped */
        census->absent++;
        return;
    }
    int node = lab_machine_node_index(machine, status);
    if (node >= 0 && node < LAB_MACHINE_NODES_MAX)
        census->on_node[node]++;
    else
        census->elsewhere++;
}

/* 0, or the errno of the kernel's refusal. */
static int ask_move_pages(const struct lab_machine *machine, const struct range *range,
                          struct lab_page_census *census) {
    void *pages[BATCH];
    int status[BATCH];
    for (int64_t done = 0; done < range->pages;) {
        int count = (int)(range->pages - done < BATCH ? range->pages - done : BATCH);
        for (int i = 0; i < count; i++)
            pages[i] = range->start + (size_t)(done + i) * range->page_bytes;
        if (syscall(SYS_move_pages, 0, (unsigned long)count, pages, NULL, status, 0) < 0)
            return errno;
        for (int i = 0; i < count; i++)
            count_page(machine, status[i], census);
        done += count;
    }
    return 0;
}

/* With one node all that exists is there; only what exists is left to ask, and pagemap tells. */
static int ask_pagemap(const struct range *range, struct lab_page_census *census,
                       struct lab_err *err) {
    LAB_AUTO_CLOSE int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "/proc/self/pagemap");
    for (int64_t done = 0; done < range->pages;) {
        uint64_t entries[BATCH];
        size_t count = (size_t)(range->pages - done < BATCH ? range->pages - done : BATCH);
        uintptr_t page = (uintptr_t)range->start / range->page_bytes + (uintptr_t)done;
        ssize_t got =
            pread(file, entries, count * sizeof entries[0], (off_t)(page * sizeof entries[0]));
        if (got != (ssize_t)(count * sizeof entries[0]))
            return lab_err_set(err, LAB_ERR_SYSTEM, "/proc/self/pagemap ends too early");
        for (size_t i = 0; i < count; i++)
            *(entries[i] >> 63 ? &census->on_node[0] : &census->absent) += 1;
        done += (int64_t)count;
    }
    return 0;
}

int lab_memory_census(const struct lab_machine *machine, const void *memory, size_t size_bytes,
                      struct lab_page_census *ret_census, struct lab_err *err) {
    if (topology_require_live(machine, "reading the NUMA nodes of pages", err) < 0)
        return -1;
    struct range range = range_of(memory, size_bytes);
    struct lab_page_census census = {.pages = range.pages};
    int why = ask_move_pages(machine, &range, &census);
    if (why != 0 && machine->node_count == 1) {
        census = (struct lab_page_census){.pages = range.pages};
        if (ask_pagemap(&range, &census, err) < 0)
            return -1;
    } else if (why == EPERM) {
        lab_err_set(
            err, LAB_ERR_UNSUPPORTED,
            "reading the NUMA nodes of pages (move_pages) is forbidden here: a container needs "
            "--cap-add SYS_NICE or another seccomp profile");
        return lab_err_hint(err, LAB_HINT_MOVE_PAGES_FORBIDDEN);
    } else if (why != 0) {
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, why,
                                 "reading the NUMA nodes of pages (move_pages)");
    }
    *ret_census = census;
    return 0;
}

/* "12 on node 0, 3 on node 2, 1 not there yet" */
static void write_census(const struct lab_machine *machine, const struct lab_page_census *census,
                         struct lab_str *out) {
    const char *joiner = "";
    for (int i = 0; i < machine->node_count && i < LAB_MACHINE_NODES_MAX; i++)
        if (census->on_node[i] > 0) {
            lab_str_printf(out, "%s%lld on node %d", joiner, (long long)census->on_node[i],
                           machine->nodes[i].number);
            joiner = ", ";
        }
    if (census->elsewhere > 0) {
        lab_str_printf(out, "%s%lld on NUMA nodes that this process may not use", joiner,
                       (long long)census->elsewhere);
        joiner = ", ";
    }
    if (census->absent > 0)
        lab_str_printf(out, "%s%lld not allocated", joiner, (long long)census->absent);
}

int lab_memory_prove(const struct lab_machine *machine, const void *memory, size_t size_bytes,
                     int node, struct lab_err *err) {
    struct lab_page_census census;
    if (topology_require_live(machine, "verifying the NUMA nodes of pages", err) < 0 ||
        lab_machine_require_node(machine, node, err) < 0 ||
        lab_memory_census(machine, memory, size_bytes, &census, err) < 0)
        return -1;
    int64_t there = census.on_node[lab_machine_node_index(machine, node)];
    if (there > 0 && there + census.absent == census.pages)
        return 0;
    LAB_AUTO(str, text);
    write_census(machine, &census, &text);
    lab_err_set(err, LAB_ERR_WRONG, "memory is not on NUMA node %d: of %lld pages %s", node,
                (long long)census.pages, text.text);
    return lab_err_hint(err, LAB_HINT_MEMORY_MOVED);
}
