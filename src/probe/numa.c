/*
 * numa.c: the probe `numa`: each NUMA node's memory, where pages were taken, and how busy its CPUs
 * are. A machine has up to dozens of nodes with two files each, and nothing in them hurries: twice
 * a second is enough.
 */
#include "base/file/file.h"
#include "probe/probe_host.h"

#define PERIOD_NS (LAB_NS_PER_S / 2)

static const struct {
    enum lab_metric_id metric;
    const char *key; /* in numastat */
} counters[] = {{LAB_METRIC_NODE_HIT, "numa_hit"},
                {LAB_METRIC_NODE_MISS, "numa_miss"},
                {LAB_METRIC_NODE_FOREIGN, "numa_foreign"},
                {LAB_METRIC_NODE_OTHER, "other_node"}};

#define COUNTERS (int)(sizeof counters / sizeof counters[0])

/* a node's columns */
enum { TOTAL, FREE, UTILIZATION, FIRST_COUNTER, COLUMNS = FIRST_COUNTER + COUNTERS };

struct numa {
    const struct lab_probe_setup *setup;
    struct probe_nodes nodes;
    struct probe_stat stat; /* fd -1: node_utilization is missing */
    struct {
        int meminfo_fd, numastat_fd;
        int64_t busy, total; /* of its CPUs, at the last reading */
    } each[PROBE_NODES_MAX];
    int64_t next_ns;
    struct probe_row row;
};

static void sum_times(struct numa *numa, int node, int64_t *ret_busy, int64_t *ret_total) {
    *ret_busy = *ret_total = 0;
    for (int i = 0; i < numa->stat.count; i++)
        if (numa->nodes.of_cpu[numa->stat.numbers[i]] == numa->nodes.numbers[node]) {
            *ret_busy += probe_times_busy(&numa->stat.each[i]);
            *ret_total += numa->stat.each[i].total;
        }
}

static int numa_open(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err) {
    struct numa *numa = lab_mem_alloc(1, sizeof *numa);
    numa->setup = setup;
    if (probe_nodes_read(&numa->nodes, setup, err) < 0) {
        lab_mem_free(numa);
        return -1;
    }
    probe_stat_open(&numa->stat, setup->root, NULL);
    for (int i = 0; i < numa->nodes.count; i++) {
        int number = numa->nodes.numbers[i];
        numa->each[i].meminfo_fd =
            probe_file_open(setup->root, "/sys/devices/system/node/node%d/meminfo", number);
        numa->each[i].numastat_fd =
            probe_file_open(setup->root, "/sys/devices/system/node/node%d/numastat", number);
        sum_times(numa, i, &numa->each[i].busy, &numa->each[i].total);
        probe_row_add(&numa->row, LAB_METRIC_NODE_TOTAL, number);
        probe_row_add(&numa->row, LAB_METRIC_NODE_FREE, number);
        probe_row_add(&numa->row, LAB_METRIC_NODE_UTILIZATION, number);
        for (int j = 0; j < COUNTERS; j++)
            probe_row_add(&numa->row, counters[j].metric, number);
    }
    *ret_state = numa;
    return 0;
}

static void numa_close(void *state) {
    struct numa *numa = state;
    for (int i = 0; i < numa->nodes.count; i++) {
        lab_file_close(&numa->each[i].meminfo_fd);
        lab_file_close(&numa->each[i].numastat_fd);
    }
    probe_stat_close(&numa->stat);
    probe_row_release(&numa->row);
    lab_mem_free(numa);
}

static void numa_describe(void *state, int lane, const struct lab_probe_sink *sink) {
    struct numa *numa = state;
    (void)lane;
    struct lab_entity entity = {.kind = LAB_ENTITY_NUMA,
                                .id = "numa",
                                .name = "NUMA nodes",
                                .pci = "",
                                .node = -1,
                                .parent = -1,
                                .columns = numa->row.columns,
                                .column_count = numa->row.count};
    sink->entity(sink->state, &entity);
}

/* --- reading --- */

/* "Node 0 MemTotal:  123 kB" */
static bool find_size(const char *text, int number, const char *key, int64_t *ret_kib) {
    char start[64];
    snprintf(start, sizeof start, "Node %d %s", number, key);
    const char *at = probe_text_line(text, start);
    return at && probe_text_number(&at, ret_kib);
}

static void read_memory(struct numa *numa, int node) {
    char text[4096];
    int64_t value;
    int number = numa->nodes.numbers[node], column = node * COLUMNS;
    if (probe_file_read(numa->each[node].meminfo_fd, text, sizeof text) > 0) {
        if (find_size(text, number, "MemTotal:", &value))
            probe_row_set(&numa->row, column + TOTAL, value);
        if (find_size(text, number, "MemFree:", &value))
            probe_row_set(&numa->row, column + FREE, value);
    }
    if (probe_file_read(numa->each[node].numastat_fd, text, sizeof text) <= 0)
        return;
    for (int i = 0; i < COUNTERS; i++) {
        const char *at = probe_text_line(text, counters[i].key);
        if (at && probe_text_number(&at, &value))
            probe_row_set(&numa->row, column + FIRST_COUNTER + i, value);
    }
}

static void read_utilization(struct numa *numa, int node) {
    int64_t busy, total;
    sum_times(numa, node, &busy, &total);
    int64_t passed = total - numa->each[node].total;
    if (passed > 0)
        probe_row_set(&numa->row, node * COLUMNS + UTILIZATION,
                      probe_share(busy - numa->each[node].busy, passed));
    numa->each[node].busy = busy;
    numa->each[node].total = total;
}

static int numa_read(void *state, int lane, enum lab_probe_when when,
                     const struct lab_probe_sink *sink, struct lab_err *err) {
    struct numa *numa = state;
    (void)lane, (void)err;
    int64_t now_ns = lab_clock_now(numa->setup->clock);
    if (!probe_due(&numa->next_ns, now_ns, PERIOD_NS, numa->setup, when))
        return 0;
    probe_row_clear(&numa->row);
    bool times = numa->stat.fd >= 0 && probe_stat_read(&numa->stat, NULL) == 0;
    for (int i = 0; i < numa->nodes.count; i++) {
        read_memory(numa, i);
        if (times)
            read_utilization(numa, i);
    }
    sink->tick(sink->state, 0, now_ns, numa->row.values, numa->row.valid);
    return 0;
}

static int64_t numa_due(void *state, int lane) {
    const struct numa *numa = state;
    (void)lane;
    return numa->next_ns;
}

const struct lab_probe lab_probe_numa = {
    .name = "numa",
    .summary = "each NUMA node: free memory, hits and misses, utilisation of its CPUs",
    .without = "the NUMA nodes",
    .open = numa_open,
    .close = numa_close,
    .only_lane = "the NUMA nodes",
    .describe = numa_describe,
    .read = numa_read,
    .due = numa_due,
};
