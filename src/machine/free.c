/*
 * free.c: how much memory a node has left, before a strict bind asks for it.
 *
 * A strict bind can't fall back to another node: when the kernel finds nothing more to reclaim
 * there, the OOM killer answers. So this counts carefully: free pages, plus file cache that wasn't
 * used for a while (dropping it costs nothing but a later read; the active half is somebody's
 * working set, and shared memory isn't file cache), less what the zones keep back for the kernel
 * itself, below which an allocation starts to reclaim in earnest.
 *
 * Where there is one node only, its memory is the machine's, and the kernel's own estimate for the
 * whole is the better figure: virtual machines whose memory grows on demand count what may still
 * come in /proc/meminfo, but not in the node's file.
 *
 * No node has more for this process than its control groups allow (cgroup.c).
 */
#include "base/file/file.h"
#include "base/str.h"
#include "machine/limit.h"
#include "machine/topology.h"

#include <ctype.h>
#include <unistd.h>

#define PROC_MAX_BYTES (4u << 20) /* zoneinfo has about 2 KiB for each CPU and zone */

/* The number behind "key" in lines such as "Node 0 MemFree:  312 kB"; -1 if there is none. */
static int64_t kib_of(const char *meminfo, const char *key) {
    size_t length = strlen(key);
    for (const char *at = strstr(meminfo, key); at; at = strstr(at + 1, key)) {
        bool starts_word = at == meminfo || isspace((unsigned char)at[-1]);
        if (starts_word && at[length] == ':')
            return strtoll(at + length + 1, NULL, 10);
    }
    return -1;
}

/* The node's low watermarks, summed over its zones, in pages. */
static int64_t reserve_pages(const char *zoneinfo, int node) {
    char heading[32];
    snprintf(heading, sizeof heading, "Node %d, zone", node);
    int64_t pages = 0;
    bool inside = false;
    for (const char *line = zoneinfo; *line;) {
        if (lab_str_starts(line, "Node "))
            inside = lab_str_starts(line, heading);
        const char *word = line + strspn(line, " ");
        if (inside && lab_str_starts(word, "low "))
            pages += strtoll(word + 4, NULL, 10);
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : line + strlen(line);
    }
    return pages;
}

int64_t topology_parse_node_free(const char *meminfo, const char *zoneinfo, int node) {
    int64_t free_kib = kib_of(meminfo, "MemFree");
    int64_t cache_kib = kib_of(meminfo, "Inactive(file)");
    if (free_kib < 0)
        return -1;
    int64_t bytes = (free_kib + (cache_kib > 0 ? cache_kib : 0)) * 1024 -
                    reserve_pages(zoneinfo, node) * sysconf(_SC_PAGESIZE);
    return bytes > 0 ? bytes : 0;
}

static const char *read_or_empty(const char *path, struct lab_arena *arena) {
    char *text;
    size_t length;
    return lab_file_read(path, PROC_MAX_BYTES, arena, &text, &length, NULL) == 0 ? text : "";
}

/* A row of /proc/meminfo; -1 = unknown. */
static int64_t meminfo_bytes(const char *key, struct lab_arena *arena) {
    int64_t kib = kib_of(read_or_empty("/proc/meminfo", arena), key);
    return kib < 0 ? -1 : kib * 1024;
}

int64_t topology_total_bytes(void) {
    LAB_AUTO(arena, arena);
    return meminfo_bytes("MemTotal", &arena);
}

int64_t topology_free_bytes(const struct lab_machine *machine, int node, bool *ret_limited) {
    if (ret_limited)
        *ret_limited = false;
    if (machine->recorded)
        return -1;
    LAB_AUTO(arena, arena);
    int64_t bytes = -1;
    if (node >= 0 && machine->numa_in_kernel && machine->node_count > 1) {
        char path[64];
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
        bytes = topology_parse_node_free(read_or_empty(path, &arena),
                                         read_or_empty("/proc/zoneinfo", &arena), node);
    } else {
        bytes = meminfo_bytes("MemAvailable", &arena);
    }
    int64_t left = lab_limit_memory_left();
    bool limited = left >= 0 && (bytes < 0 || left < bytes);
    if (ret_limited)
        *ret_limited = limited;
    return limited ? left : bytes;
}

int64_t lab_machine_free_bytes(const struct lab_machine *machine, int node) {
    if (node != -1 && lab_machine_node_index(machine, node) < 0)
        return -1;
    return topology_free_bytes(machine, node, NULL);
}
