/* memory.c: the probe `memory`: the host's memory, from /proc/meminfo. */
#include "base/file/file.h"
#include "probe/probe_host.h"

#include <errno.h>

#define PERIOD_NS (LAB_NS_PER_S / 5) /* ticks that come faster are left out: pages don't */

enum { TOTAL, USED, AVAILABLE, CACHED, SWAP, COLUMNS };

static const struct lab_column columns[COLUMNS] = {
    [TOTAL] = {LAB_METRIC_HOST_TOTAL, -1},         [USED] = {LAB_METRIC_HOST_USED, -1},
    [AVAILABLE] = {LAB_METRIC_HOST_AVAILABLE, -1}, [CACHED] = {LAB_METRIC_HOST_CACHED, -1},
    [SWAP] = {LAB_METRIC_SWAP_USED, -1},
};

struct memory {
    const struct lab_probe_setup *setup;
    int fd;
    int64_t next_ns;
};

static int memory_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    int fd = probe_file_open(setup->root, "/proc/meminfo");
    if (fd < 0)
        return lab_err_set_errno(err, LAB_ERR_UNSUPPORTED, errno, "/proc/meminfo can't be read");
    struct memory *memory = lab_mem_alloc(1, sizeof *memory);
    memory->setup = setup;
    memory->fd = fd;
    *ret_state = memory;
    return 0;
}

static void memory_close(void *state) {
    struct memory *memory = state;
    lab_file_close(&memory->fd);
    lab_mem_free(memory);
}

static void memory_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    (void)state, (void)lane;
    struct lab_entity entity = {.kind = LAB_ENTITY_MEMORY,
                                .id = "memory",
                                .name = "Host memory",
                                .pci = "",
                                .node = -1,
                                .parent = -1,
                                .columns = columns,
                                .column_count = COLUMNS};
    sink->entity(sink->state, &entity);
}

/* In KiB; false = this kernel doesn't tell. */
static bool find(const char *text, const char *key, int64_t *ret_kib) {
    const char *at = probe_text_line(text, key);
    return at && probe_text_number(&at, ret_kib) && *ret_kib >= 0;
}

static void put(int64_t *values, uint64_t *valid, int column, int64_t value) {
    values[column] = value < 0 ? 0 : value;
    lab_valid_set(valid, column);
}

static int memory_read(void *state, int lane, enum lab_probe_when when,
                       const struct lab_probe_sink *sink, struct lab_err *err) {
    struct memory *memory = state;
    (void)lane;
    int64_t now_ns = lab_clock_now(memory->setup->clock);
    if (!probe_due(&memory->next_ns, now_ns, PERIOD_NS, memory->setup, when))
        return 0;
    char text[4096];
    int64_t total, free_kib = 0, available, buffers = 0, cached = 0, shared = 0, swap, swap_free;
    if (probe_file_read(memory->fd, text, sizeof text) <= 0 || !find(text, "MemTotal:", &total) ||
        !find(text, "MemFree:", &free_kib))
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "/proc/meminfo doesn't show how much memory there is");
    find(text, "Buffers:", &buffers);
    bool caches = find(text, "Cached:", &cached);
    find(text, "Shmem:", &shared);
    if (!find(text, "MemAvailable:", &available)) /* before Linux 3.14 */
        available = free_kib + buffers + cached;
    int64_t values[COLUMNS] = {0};
    uint64_t valid[LAB_VALID_WORDS(COLUMNS)] = {0};
    put(values, valid, TOTAL, total);
    put(values, valid, AVAILABLE, available);
    put(values, valid, USED, total - available);
    if (caches) /* shared memory is counted among them, but no file is behind it */
        put(values, valid, CACHED, cached + buffers - shared);
    if (find(text, "SwapTotal:", &swap) && find(text, "SwapFree:", &swap_free))
        put(values, valid, SWAP, swap - swap_free);
    sink->tick(sink->state, 0, now_ns, values, valid);
    return 0;
}

static int64_t memory_due(void *state, int lane) {
    const struct memory *memory = state;
    (void)lane;
    return memory->next_ns;
}

const struct lab_probe lab_probe_memory = {
    .name = "memory",
    .summary = "the host's memory: used, available, caches, swap",
    .without = "the host's memory",
    .open = memory_open,
    .close = memory_close,
    .only_lane = "the host's memory",
    .describe = memory_describe,
    .read = memory_read,
    .due = memory_due,
};
