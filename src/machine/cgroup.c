/*
 * cgroup.c: the limits of the control groups that this process is in. Beyond that of memory the OOM
 * killer answers just as it does on a full node, so it counts wherever free memory is asked for.
 *
 * Each group on the way to the root may have a limit, and the tightest holds. Version 2 has them in
 * one tree; version 1 has a tree for each controller, and where both are mounted a controller is
 * with the one that names it. A container may see its own group as the root while /proc still gives
 * the path on the host: folders that aren't there have no limit, and the walk ends at the root in
 * any case.
 */
#include "base/file/file.h"
#include "base/str.h"
#include "machine/limit.h"
#include "machine/topology.h"

#define STAT_MAX_BYTES (64u << 10)

struct version {
    const char *limit, *used;
    const char *cache; /* row of memory.stat: file cache that can be dropped, children's included */
};

static const struct version version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                         "total_inactive_file"};
static const struct version version_2 = {"memory.max", "memory.current", "inactive_file"};

/* Whether "cpu,memory" has the word. */
static bool has_word(const char *list, size_t length, const char *word) {
    size_t word_length = strlen(word);
    for (size_t at = 0; at < length; at++) {
        size_t part = strcspn(list + at, ",:");
        if (part == word_length && !memcmp(list + at, word, part))
            return true;
        at += part;
    }
    return false;
}

/* From lines "4:memory:/path" and "0::/path"; the path in the arena, NULL where there is none.
 * `ret_first`: in the controller's own tree, which version 1 has. */
static char *find_group(const char *membership, const char *controller, struct lab_arena *arena,
                        bool *ret_first) {
    char *path = NULL;
    for (const char *line = membership; *line;) {
        size_t length = strcspn(line, "\n");
        const char *list = memchr(line, ':', length);
        const char *end = list ? memchr(list + 1, ':', length - (size_t)(list + 1 - line)) : NULL;
        bool first = end && has_word(list + 1, (size_t)(end - list - 1), controller);
        bool second = end && end == list + 1;
        if (end && (first || (second && !path))) {
            path = lab_arena_strndup(arena, end + 1, length - (size_t)(end + 1 - line));
            *ret_first = first;
            if (first)
                return path;
        }
        line += length + (line[length] == '\n');
    }
    return path;
}

static int64_t read_number(const char *folder, const char *file, struct lab_arena *arena) {
    int64_t value;
    return lab_file_read_int(lab_arena_printf(arena, "%s/%s", folder, file), &value) ? -1 : value;
}

/* A row of memory.stat, "inactive_file 4096"; 0 where there is none. */
static int64_t read_stat(const char *folder, const char *key, struct lab_arena *arena) {
    char *text;
    size_t length;
    const char *path = lab_arena_printf(arena, "%s/memory.stat", folder);
    if (lab_file_read(path, STAT_MAX_BYTES, arena, &text, &length, NULL))
        return 0;
    size_t key_length = strlen(key);
    for (const char *line = text; *line;) {
        if (lab_str_starts(line, key) && line[key_length] == ' ')
            return strtoll(line + key_length, NULL, 10);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return 0;
}

/* What one group leaves; -1 = it has no limit ("max" is no number). */
static int64_t memory_left(const char *folder, bool first, struct lab_arena *arena) {
    const struct version *version = first ? &version_1 : &version_2;
    int64_t limit = read_number(folder, version->limit, arena);
    int64_t used = read_number(folder, version->used, arena);
    if (limit < 0 || used < 0)
        return -1;
    int64_t taken = used - read_stat(folder, version->cache, arena);
    return limit > taken ? limit - taken : 0;
}

/* Thousandths of a CPU: the quota of a period; -1 likewise. */
static int64_t cpu_share(const char *folder, bool first, struct lab_arena *arena) {
    int64_t quota = -1, period = -1;
    char *text, *end;
    size_t length;
    if (first) {
        quota = read_number(folder, "cpu.cfs_quota_us", arena);
        period = read_number(folder, "cpu.cfs_period_us", arena);
    } else if (!lab_file_read(lab_arena_printf(arena, "%s/cpu.max", folder), STAT_MAX_BYTES, arena,
                              &text, &length, NULL) &&
               !lab_str_starts(text, "max")) {
        quota = strtoll(text, &end, 10);
        period = strtoll(end, NULL, 10);
    }
    return quota > 0 && period > 0 ? quota * 1000 / period : -1;
}

/* The tightest of the groups on the way to the root; -1 = none of them has a limit. */
static int64_t tightest(const char *mount, const char *membership, const char *controller,
                        int64_t (*limit)(const char *, bool, struct lab_arena *)) {
    LAB_AUTO(arena, arena);
    bool first = false;
    char *path = find_group(membership, controller, &arena, &first);
    int64_t least = -1;
    while (path) {
        int64_t left = limit(lab_arena_printf(&arena, "%s%s%s%s", mount, first ? "/" : "",
                                              first ? controller : "", path),
                             first, &arena);
        if (left >= 0 && (least < 0 || left < least))
            least = left;
        char *slash = strrchr(path, '/');
        if (!slash)
            break; /* that was the root, "" */
        *slash = '\0';
    }
    return least;
}

int64_t topology_cgroup_left(const char *mount, const char *membership) {
    return tightest(mount, membership, "memory", memory_left);
}

int64_t topology_cgroup_cpu(const char *mount, const char *membership) {
    return tightest(mount, membership, "cpu", cpu_share);
}

static int64_t of_this_process(int64_t (*limit)(const char *mount, const char *membership)) {
    LAB_AUTO(arena, arena);
    char *membership;
    size_t length;
    if (lab_file_read("/proc/self/cgroup", STAT_MAX_BYTES, &arena, &membership, &length, NULL))
        return -1;
    return limit("/sys/fs/cgroup", membership);
}

int64_t lab_limit_memory_left(void) {
    return of_this_process(topology_cgroup_left);
}

double lab_limit_cpus(void) {
    int64_t share = of_this_process(topology_cgroup_cpu);
    return share < 0 ? -1 : (double)share / 1000;
}
