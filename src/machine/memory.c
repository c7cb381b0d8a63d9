/*
 * memory.c: memory on a node. The policy is set on the mapping before any page exists, so that
 * nothing has to be moved; pages then come from the node when they are first written.
 */
#include "base/log.h"
#include "base/str.h"
#include "machine/topology.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones answer EINVAL */
#endif

#define HUGE_BYTES     ((size_t)2 << 20)
#define MAPPABLE_BYTES (PTRDIFF_MAX - 2 * HUGE_BYTES) /* beyond, sizes would overflow */

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t round_up(size_t size_bytes, size_t unit) {
    return (size_bytes + unit - 1) / unit * unit;
}

static const char *place_name(int node, char *buffer, size_t size) {
    if (node < 0)
        return "this machine";
    snprintf(buffer, size, "NUMA node %d", node);
    return buffer;
}

/* `known`: what there is, "node 2 has 1.00 GiB free"; NULL = the kernel only said no. */
static int too_little(int node, const char *known, size_t size_bytes, struct lab_err *err) {
    char place[32];
    LAB_AUTO(str, size);
    lab_str_add_bytes_binary(&size, (double)size_bytes);
    if (known)
        lab_err_set(err, LAB_ERR_MEMORY, "%s, %s asked for", known, size.text);
    else
        lab_err_set(err, LAB_ERR_MEMORY, "%s has too little memory, %s asked for",
                    place_name(node, place, sizeof place), size.text);
    return lab_err_hint(err, LAB_HINT_OUT_OF_MEMORY);
}

static int check_free(const struct lab_machine *machine, int node, size_t size_bytes,
                      struct lab_err *err) {
    if (size_bytes == 0)
        return lab_err_set(err, LAB_ERR_USER, "no memory (0 bytes) asked for");
    bool limited;
    int64_t free_bytes = topology_free_bytes(machine, node, &limited);
    if (free_bytes < 0)
        return size_bytes > MAPPABLE_BYTES ? too_little(node, NULL, size_bytes, err) : 0;
    if (size_bytes <= (uint64_t)free_bytes)
        return 0;
    char place[32];
    LAB_AUTO(str, known);
    if (limited)
        lab_str_add(&known, "the memory limit of this process's control group leaves ");
    else
        lab_str_printf(&known, "%s has ", place_name(node, place, sizeof place));
    lab_str_add_bytes_binary(&known, (double)free_bytes);
    lab_str_add(&known, limited ? "" : " free");
    too_little(node, known.text, size_bytes, err);
    return limited ? lab_err_hint(err, LAB_HINT_MEMORY_LIMIT) : -1;
}

/* Huge pages need a start that is a multiple of theirs: map more and give the ends back. */
static void *map_aligned(size_t size_bytes, size_t alignment) {
    size_t extra = alignment > page_bytes() ? alignment : 0;
    char *memory =
        mmap(NULL, size_bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || extra == 0)
        return memory;
    size_t before = (size_t)(-(uintptr_t)memory) % alignment;
    if (before > 0)
        munmap(memory, before);
    munmap(memory + before + size_bytes, extra - before);
    return memory + before;
}

static int bind_strictly(const struct lab_machine *machine, int node, void *memory,
                         size_t size_bytes, struct lab_err *err) {
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_only(set, (unsigned)node);
    int result =
        hwloc_set_area_membind(topology_of(machine)->hwloc, memory, size_bytes, set,
                               HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_STRICT | HWLOC_MEMBIND_BYNODESET);
    int why = errno;
    hwloc_bitmap_free(set);
    if (result == 0)
        return 0;
    if (why == EPERM)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "binding memory to NUMA node %d is forbidden here: a container needs "
                           "--cap-add SYS_NICE",
                           node);
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "binding memory to NUMA node %d", node);
}

static int touch(int node, char *memory, size_t size_bytes, struct lab_err *err) {
    if (madvise(memory, size_bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno == ENOMEM)
        return too_little(node, NULL, size_bytes, err);
    for (size_t at = 0; at < size_bytes; at += page_bytes())
        ((volatile char *)memory)[at] = 0;
    return 0;
}

static void lock(void *memory, size_t size_bytes) {
    if (mlock(memory, size_bytes) == 0)
        return;
    int why = errno;
    LAB_AUTO(str, size);
    lab_str_add_bytes_binary(&size, (double)size_bytes);
    lab_log(LAB_LOG_WARNING, "%s of memory can't be locked (%s; see ulimit -l): used unlocked",
            size.text, strerror(why));
}

int lab_memory_map(const struct lab_machine *machine, int node, size_t size_bytes, unsigned flags,
                   void **ret_memory, struct lab_err *err) {
    if (topology_require_live(machine, "memory on a NUMA node", err) < 0 ||
        (node != -1 && lab_machine_require_node(machine, node, err) < 0) ||
        check_free(machine, node, size_bytes, err) < 0)
        return -1;
    bool huge = (flags & LAB_MEMORY_HUGE) && size_bytes >= HUGE_BYTES;
    size_t mapped_bytes = round_up(size_bytes, page_bytes());
    void *memory = map_aligned(mapped_bytes, huge ? HUGE_BYTES : page_bytes());
    if (memory == MAP_FAILED)
        return too_little(node, NULL, size_bytes, err);
    if (huge)
        madvise(memory, mapped_bytes, MADV_HUGEPAGE); /* only a wish */
    /* one node: there is no other place, and a container may forbid to ask */
    int result = node >= 0 && machine->node_count > 1
                     ? bind_strictly(machine, node, memory, mapped_bytes, err)
                     : 0;
    if (result == 0 && (flags & LAB_MEMORY_TOUCH))
        result = touch(node, memory, mapped_bytes, err);
    if (result < 0) {
        lab_memory_unmap(memory, size_bytes);
        return -1;
    }
    if (flags & LAB_MEMORY_LOCK)
        lock(memory, mapped_bytes);
    *ret_memory = memory;
    return 0;
}

void lab_memory_unmap(void *memory, size_t size_bytes) {
    if (memory)
        munmap(memory, round_up(size_bytes, page_bytes()));
}
