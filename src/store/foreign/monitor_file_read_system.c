/*
 * monitor_file_read_system.c: takes in samples of the host. NUMA figures come from the list that we
 * write, or else from the text of `numastat -c`, whose megabytes are all that it tells.
 */
#include "store/foreign/monitor_file_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GIB           LAB_MONITOR_GIB
#define PAGES_PER_MIB 256

static const struct lab_monitor_field memory_fields[] = {
    {"total_gb", LAB_METRIC_HOST_TOTAL, GIB},    {"used_gb", LAB_METRIC_HOST_USED, GIB},
    {"cached_gb", LAB_METRIC_HOST_CACHED, GIB},  {"available_gb", LAB_METRIC_HOST_AVAILABLE, GIB},
    {"swap_used_gb", LAB_METRIC_SWAP_USED, GIB}, {NULL},
};
static const struct lab_monitor_field node_fields[] = {
    {"total_gb", LAB_METRIC_NODE_TOTAL, GIB},        {"free_gb", LAB_METRIC_NODE_FREE, GIB},
    {"cpu_percent", LAB_METRIC_NODE_UTILIZATION, 1}, {"numa_hit", LAB_METRIC_NODE_HIT, 1},
    {"numa_miss", LAB_METRIC_NODE_MISS, 1},          {"numa_foreign", LAB_METRIC_NODE_FOREIGN, 1},
    {"other_node", LAB_METRIC_NODE_OTHER, 1},        {NULL},
};
static const struct lab_monitor_field process_fields[] = {
    {"pid", LAB_MONITOR_PID, 1},
    {"name", LAB_MONITOR_PROCESS_NAME},
    {"cpu_percent", LAB_MONITOR_CPU_PERCENT, 1},
    {"memory_gb", LAB_MONITOR_RESIDENT, GIB},
    {"memory_percent", LAB_MONITOR_RESIDENT_SHARE, 1},
    {NULL},
};

/* Begins the tick of one of the host's parts, if there is something of it. */
static bool begin(struct lab_monitor_row *row, enum lab_entity_kind kind, bool there) {
    row->kind = kind;
    row->index = 0;
    row->entity = -1;
    return there && lab_monitor_row_begin(row) == 0;
}

static bool is(const struct lab_value *value, enum lab_value_type type) {
    return value && value->type == type;
}

static void set(const struct lab_monitor_row *row, enum lab_metric_id metric, int instance,
                double value) {
    lab_monitor_row_set(row, &(struct lab_monitor_field){.what = metric, .unit = 1}, instance,
                        &(struct lab_value){.type = LAB_VALUE_FLOAT, .number = value});
}

static void set_all(const struct lab_monitor_row *row, const struct lab_monitor_field *fields,
                    int instance, const struct lab_value *map) {
    for (const struct lab_monitor_field *field = fields; field->key; field++)
        lab_monitor_row_set(row, field, instance, lab_value_get(map, field->key));
}

static void read_cores(const struct lab_monitor_row *row, const struct lab_value *list) {
    double sum = 0, number;
    int count = 0;
    for (int i = 0; i < list->count && i < LAB_COLUMNS_MAX / 2; i++) {
        if (!lab_monitor_number(list->items[i], &number))
            continue;
        set(row, LAB_METRIC_CORE_UTILIZATION, i, number);
        sum += number;
        count++;
    }
    if (count)
        set(row, LAB_METRIC_CPU_UTILIZATION, -1, sum / count);
}

static void read_memory(const struct lab_monitor_row *row, const struct lab_value *memory) {
    double percent;
    set_all(row, memory_fields, -1, memory);
    if (!lab_value_get(memory, "available_gb") && isfinite(row->host_bytes) &&
        lab_monitor_number(lab_value_get(memory, "percent"), &percent))
        set(row, LAB_METRIC_HOST_AVAILABLE, -1, row->host_bytes * (1 - percent / 100));
}

/* --- nodes --- */

#define NODES_MAX 256

static void read_nodes(const struct lab_monitor_row *row, const struct lab_value *list) {
    for (int i = 0; i < list->count; i++) {
        int64_t node = lab_value_get_int(list->items[i], "node", -1);
        if (node >= 0 && node <= INT16_MAX)
            set_all(row, node_fields, (int)node, list->items[i]);
    }
}

/* "   Node 0 Node 1  Total": which node each column is. Returns how many there are. */
static int read_heading(const char *line, size_t length, int *ret_nodes) {
    int count = 0;
    for (size_t i = 0; i + 5 < length && count < NODES_MAX; i++) {
        if (strncmp(line + i, "Node ", 5) != 0)
            continue;
        long node = strtol(line + i + 5, NULL, 10);
        if (node >= 0 && node <= INT16_MAX)
            ret_nodes[count++] = (int)node;
        i += 5;
    }
    return count;
}

static void read_row(const struct lab_monitor_row *row, const char *line, const char *line_end,
                     const int *nodes, int count) {
    for (int k = 0; k < LAB_MONITOR_PAGES; k++) {
        size_t length = strlen(lab_monitor_pages[k].row);
        if (strncasecmp(line, lab_monitor_pages[k].row, length) != 0 ||
            !isspace((unsigned char)line[length]))
            continue;
        const char *at = line + length;
        for (int i = 0; i < count; i++) {
            while (at < line_end && isspace((unsigned char)*at))
                at++;
            char *end;
            double megabytes = strtod(at, &end);
            if (end != at && end <= line_end)
                set(row, lab_monitor_pages[k].metric, nodes[i], megabytes * PAGES_PER_MIB);
            while (at < line_end && !isspace((unsigned char)*at))
                at++;
        }
    }
}

static void read_table(const struct lab_monitor_row *row, const char *text) {
    int nodes[NODES_MAX], count = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        int found = read_heading(text, length, nodes);
        if (found)
            count = found;
        else
            read_row(row, text, text + length, nodes, count);
        text += length + (text[length] == '\n');
    }
}

/* --- a sample --- */

/* The list is repeated in every sample until there is a new one; its time tells. */
static void read_processes(struct lab_monitor_row *row, const struct lab_value *record) {
    const struct lab_value *list = lab_value_get(record, "processes");
    double seconds, own_seconds;
    if (!is(list, LAB_VALUE_LIST))
        list = lab_value_get(record, "python_processes");
    if (lab_monitor_number(lab_value_get(record, "processes_time"), &seconds) &&
        lab_monitor_number(lab_value_get(record, "timestamp"), &own_seconds) &&
        fabs(own_seconds - seconds) < 3600)
        row->at_ns -= llround((own_seconds - seconds) * 1e9);
    if (!lab_monitor_builder_has_list(row->builder, row->at_ns))
        lab_monitor_take_processes(row, process_fields, list);
}

void lab_monitor_read_system(struct lab_monitor_builder *builder, const struct lab_value *record,
                             enum lab_monitor_time time, int64_t time_ns) {
    const struct lab_value *cores = lab_value_get(record, "cpu_percent"),
                           *memory = lab_value_get(record, "memory"),
                           *nodes = lab_value_get(record, "numa_nodes"),
                           *table = lab_value_get(record, "numa_stats");
    struct lab_monitor_row row = lab_monitor_row_new(builder, LAB_ENTITY_CPU);
    row.time = time;
    row.time_ns = time_ns;
    row.simulated = lab_value_get_bool(record, "simulated");
    row.host_bytes = lab_value_get_number(memory, "total_gb") * GIB;
    if (begin(&row, LAB_ENTITY_NUMA, is(nodes, LAB_VALUE_LIST)))
        read_nodes(&row, nodes);
    else if (begin(&row, LAB_ENTITY_NUMA, is(table, LAB_VALUE_STRING)))
        read_table(&row, table->string);
    bool any = begin(&row, LAB_ENTITY_MEMORY, is(memory, LAB_VALUE_MAP));
    if (any)
        read_memory(&row, memory);
    if (begin(&row, LAB_ENTITY_CPU, is(cores, LAB_VALUE_LIST))) {
        any = true;
        read_cores(&row, cores);
    }
    if (any)
        read_processes(&row, record);
}
