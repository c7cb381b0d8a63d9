/*
 * monitor_file_read_system.c: takes in samples of the host. NUMA figures come from the list that we
 * write, or else from the text of `numastat -c`, whose megabytes are all that it tells.
 */
#include "store/foreign/monitor_file_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GIB           1073741824.0
#define PAGES_PER_MIB 256

struct sample {
    struct lab_monitor_builder *builder;
    enum lab_monitor_time kind;
    int64_t time_ns;
};

/* Begins the tick of one of the host's parts; -1 = can't. */
static int begin(const struct sample *sample, enum lab_entity_kind kind, bool simulated) {
    int entity = lab_monitor_builder_entity(sample->builder, kind, 0, NULL);
    if (entity < 0 ||
        lab_monitor_builder_tick(sample->builder, entity, sample->kind, sample->time_ns) < 0)
        return -1;
    lab_monitor_builder_facts(sample->builder, entity)->simulated |= simulated;
    return entity;
}

static void set(const struct sample *sample, int entity, enum lab_metric_id metric, int instance,
                double value) {
    int64_t raw;
    if (lab_monitor_to_raw(metric, value, &raw))
        lab_monitor_builder_set(sample->builder, entity, metric, instance, raw);
}

static void set_from(const struct sample *sample, int entity, enum lab_metric_id metric,
                     int instance, const struct lab_value *map, const char *key, double unit) {
    const struct lab_value *value = lab_value_get(map, key);
    double number;
    if (lab_monitor_number(value, &number))
        set(sample, entity, metric, instance, number * unit);
    else if (value && value->type != LAB_VALUE_NULL)
        lab_monitor_builder_odd(sample->builder, "fields that are not numbers", 1);
}

static void read_cores(const struct sample *sample, const struct lab_value *list, bool simulated) {
    int entity =
        list && list->type == LAB_VALUE_LIST ? begin(sample, LAB_ENTITY_CPU, simulated) : -1;
    if (entity < 0)
        return;
    double sum = 0, number;
    int count = 0;
    for (int i = 0; i < list->count && i < LAB_COLUMNS_MAX / 2; i++) {
        if (!lab_monitor_number(list->items[i], &number))
            continue;
        set(sample, entity, LAB_METRIC_CORE_UTILIZATION, i, number);
        sum += number;
        count++;
    }
    if (count)
        set(sample, entity, LAB_METRIC_CPU_UTILIZATION, -1, sum / count);
}

/* Returns the host's memory in bytes, or NaN. */
static double read_memory(const struct sample *sample, const struct lab_value *memory,
                          bool simulated) {
    double total = NAN, percent;
    if (!memory || memory->type != LAB_VALUE_MAP ||
        !lab_monitor_number(lab_value_get(memory, "total_gb"), &total))
        total = NAN;
    int entity =
        memory && memory->type == LAB_VALUE_MAP ? begin(sample, LAB_ENTITY_MEMORY, simulated) : -1;
    if (entity < 0)
        return total * GIB;
    set(sample, entity, LAB_METRIC_HOST_TOTAL, -1, total * GIB);
    set_from(sample, entity, LAB_METRIC_HOST_USED, -1, memory, "used_gb", GIB);
    set_from(sample, entity, LAB_METRIC_HOST_CACHED, -1, memory, "cached_gb", GIB);
    set_from(sample, entity, LAB_METRIC_SWAP_USED, -1, memory, "swap_used_gb", GIB);
    if (lab_value_get(memory, "available_gb"))
        set_from(sample, entity, LAB_METRIC_HOST_AVAILABLE, -1, memory, "available_gb", GIB);
    else if (lab_monitor_number(lab_value_get(memory, "percent"), &percent))
        set(sample, entity, LAB_METRIC_HOST_AVAILABLE, -1, total * GIB * (1 - percent / 100));
    return total * GIB;
}

/* --- nodes --- */

#define NODES_MAX 256

static void read_nodes(const struct sample *sample, const struct lab_value *list, int entity) {
    for (int i = 0; i < list->count; i++) {
        const struct lab_value *node = list->items[i], *number = lab_value_get(node, "node");
        if (!number || number->type != LAB_VALUE_INT || number->integer < 0 ||
            number->integer > INT16_MAX)
            continue;
        int at = (int)number->integer;
        set_from(sample, entity, LAB_METRIC_NODE_TOTAL, at, node, "total_gb", GIB);
        set_from(sample, entity, LAB_METRIC_NODE_FREE, at, node, "free_gb", GIB);
        set_from(sample, entity, LAB_METRIC_NODE_UTILIZATION, at, node, "cpu_percent", 1);
        for (int k = 0; k < LAB_MONITOR_PAGES; k++)
            set_from(sample, entity, lab_monitor_pages[k].metric, at, node,
                     lab_monitor_pages[k].key, 1);
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

static void read_row(const struct sample *sample, int entity, const char *line,
                     const char *line_end, const int *nodes, int count) {
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
                set(sample, entity, lab_monitor_pages[k].metric, nodes[i],
                    megabytes * PAGES_PER_MIB);
            while (at < line_end && !isspace((unsigned char)*at))
                at++;
        }
    }
}

static void read_table(const struct sample *sample, const char *text, int entity) {
    int nodes[NODES_MAX], count = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        int found = read_heading(text, length, nodes);
        if (found)
            count = found;
        else
            read_row(sample, entity, text, text + length, nodes, count);
        text += length + (text[length] == '\n');
    }
}

static void read_numa(const struct sample *sample, const struct lab_value *record, bool simulated) {
    const struct lab_value *list = lab_value_get(record, "numa_nodes");
    const struct lab_value *text = lab_value_get(record, "numa_stats");
    bool has_list = list && list->type == LAB_VALUE_LIST;
    if (!has_list && (!text || text->type != LAB_VALUE_STRING))
        return;
    int entity = begin(sample, LAB_ENTITY_NUMA, simulated);
    if (entity >= 0 && has_list)
        read_nodes(sample, list, entity);
    else if (entity >= 0)
        read_table(sample, text->string, entity);
}

/* --- processes --- */

static void read_process(const struct sample *sample, const struct lab_value *item,
                         double host_bytes, struct lab_process_sample *ret) {
    const struct lab_value *pid = lab_value_get(item, "pid"), *name = lab_value_get(item, "name");
    double gigabytes, percent;
    *ret = (struct lab_process_sample){
        .pid = pid && pid->type == LAB_VALUE_INT ? (int32_t)pid->integer : -1,
        .parent_pid = -1,
        .user = "",
        .name = "",
        .command = "",
        .container = "",
        .advice = "",
        .cpu_percent = NAN,
        .queue_percent = NAN,
        .memory_bytes = -1,
        .cpu_node = -1};
    if (name && name->type == LAB_VALUE_STRING)
        ret->name = lab_monitor_builder_text(sample->builder, name->string);
    if (!lab_monitor_number(lab_value_get(item, "cpu_percent"), &ret->cpu_percent))
        ret->cpu_percent = NAN;
    double bytes = NAN;
    if (lab_monitor_number(lab_value_get(item, "memory_gb"), &gigabytes))
        bytes = gigabytes * GIB;
    else if (lab_monitor_number(lab_value_get(item, "memory_percent"), &percent))
        bytes = percent / 100 * host_bytes;
    if (bytes >= 0 && bytes < 9e18)
        ret->memory_bytes = (int64_t)bytes;
}

/* The list is repeated in every sample until there is a new one; its time tells. */
static void read_processes(const struct sample *sample, const struct lab_value *record, int entity,
                           double host_bytes) {
    const struct lab_value *list = lab_value_get(record, "processes");
    const struct lab_value *stamp = lab_value_get(record, "processes_time");
    if (!list || list->type != LAB_VALUE_LIST)
        list = lab_value_get(record, "python_processes");
    double seconds, own_seconds;
    if (!list || list->type != LAB_VALUE_LIST || entity < 0)
        return;
    int64_t time_ns = lab_monitor_builder_time(sample->builder, entity);
    if (lab_monitor_number(stamp, &seconds) &&
        lab_monitor_number(lab_value_get(record, "timestamp"), &own_seconds) &&
        fabs(own_seconds - seconds) < 3600)
        time_ns -= llround((own_seconds - seconds) * 1e9);
    struct lab_arena *arena = lab_monitor_builder_arena(sample->builder);
    if (lab_monitor_builder_has_list(sample->builder, time_ns))
        return;
    struct lab_process_list taken = {
        .time_ns = time_ns,
        .items = lab_arena_alloc(arena, (size_t)list->count + 1, sizeof *taken.items),
        .count = list->count};
    for (int i = 0; i < list->count; i++)
        read_process(sample, list->items[i], host_bytes, &taken.items[i]);
    lab_monitor_builder_processes(sample->builder, &taken);
}

void lab_monitor_read_system(struct lab_monitor_builder *builder, const struct lab_value *record,
                             enum lab_monitor_time kind, int64_t time_ns) {
    struct sample sample = {builder, kind, time_ns};
    bool simulated = lab_value_get_bool(record, "simulated");
    read_cores(&sample, lab_value_get(record, "cpu_percent"), simulated);
    double host_bytes = read_memory(&sample, lab_value_get(record, "memory"), simulated);
    read_numa(&sample, record, simulated);
    int entity = lab_monitor_builder_find(builder, LAB_ENTITY_CPU, 0);
    if (entity < 0)
        entity = lab_monitor_builder_find(builder, LAB_ENTITY_MEMORY, 0);
    read_processes(&sample, record, entity, host_bytes);
}
