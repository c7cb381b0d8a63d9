/*
 * monitor_file_system.c: samples of the host: cores, memory, NUMA nodes as the text that `numastat
 * -c` prints, and processes. What is read less often than cores is repeated; of the list of
 * processes a sample says of when it is.
 */
#include "store/foreign/monitor_file_writer.h"

#include <math.h>
#include <string.h>

#define GIB           1073741824.0
#define PAGES_PER_MIB 256 /* numastat shows megabytes of the kernel's small pages */

/* With its last sample: memory and NUMA nodes are read less often than cores. NULL = none yet. */
static const struct lab_monitor_source *member(const struct lab_monitor_writer *writer,
                                               enum lab_entity_kind kind) {
    for (int i = 0; i < writer->source_count; i++)
        if (writer->sources[i].tick.values && writer->sources[i].entity.kind == kind)
            return &writer->sources[i];
    return NULL;
}

/* The largest instance of a metric, or -1. */
static int last_instance(const struct lab_entity *entity, enum lab_metric_id metric) {
    int last = -1;
    for (int i = 0; i < entity->column_count; i++)
        if (entity->columns[i].metric == (int)metric && entity->columns[i].instance > last)
            last = entity->columns[i].instance;
    return last;
}

static void add_value(struct lab_str *out, const char *key, double value, int decimals) {
    lab_str_printf(out, ", \"%s\": ", key);
    lab_monitor_add_number(out, value, decimals, "null");
}

/* --- cores --- */

static double in_tick(const struct lab_monitor_source *source, enum lab_metric_id metric,
                      int instance) {
    return lab_tick_value(&source->entity, &source->tick, metric, instance);
}

/* A machine whose cores weren't recorded one by one has one figure for all. */
static void add_cores(struct lab_str *out, const struct lab_monitor_source *cpu) {
    lab_str_add(out, ", \"cpu_percent\": ");
    if (!cpu) {
        lab_str_add(out, "null");
        return;
    }
    int last = last_instance(&cpu->entity, LAB_METRIC_CORE_UTILIZATION);
    lab_str_add(out, "[");
    if (last < 0)
        lab_monitor_add_number(out, in_tick(cpu, LAB_METRIC_CPU_UTILIZATION, -1), 2, "null");
    int column = 0;
    for (int core = 0; core <= last; core++) {
        /* columns are in order as a rule, so the next one is where the search begins */
        const struct lab_entity *entity = &cpu->entity;
        int count = entity->column_count, looked = 0;
        while (looked < count && (entity->columns[column].metric != LAB_METRIC_CORE_UTILIZATION ||
                                  entity->columns[column].instance != core)) {
            column = column + 1 < count ? column + 1 : 0;
            looked++;
        }
        lab_str_add(out, core ? ", " : "");
        if (looked < count && lab_valid_get(cpu->tick.valid, column))
            lab_monitor_add_exact(out, LAB_METRIC_CORE_UTILIZATION, cpu->tick.values[column]);
        else
            lab_str_add(out, "null");
    }
    lab_str_add(out, "]");
}

/* --- memory --- */

static void add_memory(struct lab_str *out, const struct lab_monitor_source *memory) {
    lab_str_add(out, ", \"memory\": ");
    if (!memory) {
        lab_str_add(out, "null");
        return;
    }
    double total = in_tick(memory, LAB_METRIC_HOST_TOTAL, -1);
    double used = in_tick(memory, LAB_METRIC_HOST_USED, -1);
    double available = in_tick(memory, LAB_METRIC_HOST_AVAILABLE, -1);
    double busy = isnan(available) ? used : total - available;
    lab_str_add(out, "{\"total_gb\": ");
    lab_monitor_add_number(out, total / GIB, 7, "null");
    add_value(out, "used_gb", used / GIB, 7);
    add_value(out, "percent", total > 0 ? 100 * busy / total : (double)NAN, 2);
    add_value(out, "available_gb", available / GIB, 7);
    add_value(out, "cached_gb", in_tick(memory, LAB_METRIC_HOST_CACHED, -1) / GIB, 7);
    add_value(out, "swap_used_gb", in_tick(memory, LAB_METRIC_SWAP_USED, -1) / GIB, 7);
    lab_str_add(out, "}");
}

/* --- nodes --- */

static bool has_node(const struct lab_entity *entity, int node) {
    for (int i = 0; i < entity->column_count; i++)
        if (entity->columns[i].instance == node)
            return true;
    return false;
}

static int last_node(const struct lab_entity *entity) {
    int last = -1;
    for (int i = 0; i < entity->column_count; i++)
        if (entity->columns[i].instance > last)
            last = entity->columns[i].instance;
    return last;
}

static void add_cell(struct lab_str *text, double count) {
    if (isnan(count))
        lab_str_printf(text, " %8s", "-");
    else
        lab_str_printf(text, " %8.0f", count / PAGES_PER_MIB);
}

static void add_table(struct lab_str *out, const struct lab_monitor_source *numa) {
    LAB_AUTO(str, text);
    int last = last_node(&numa->entity);
    lab_str_printf(&text, "Per-node numastat info (in MBs):\n%-15s", "");
    for (int node = 0; node <= last; node++)
        if (has_node(&numa->entity, node))
            lab_str_printf(&text, " Node %3d", node);
    lab_str_printf(&text, " %8s\n", "Total");
    for (int i = 0; i < LAB_MONITOR_PAGES; i++) {
        double total = NAN;
        lab_str_printf(&text, "%-15s", lab_monitor_pages[i].row);
        for (int node = 0; node <= last; node++) {
            if (!has_node(&numa->entity, node))
                continue;
            double count = in_tick(numa, lab_monitor_pages[i].metric, node);
            add_cell(&text, count);
            total = isnan(total) ? count : isnan(count) ? total : total + count;
        }
        add_cell(&text, total);
        lab_str_add(&text, "\n");
    }
    lab_monitor_add_string(out, text.text);
}

static void add_nodes(struct lab_str *out, const struct lab_monitor_source *numa) {
    lab_str_add(out, ", \"numa_stats\": ");
    if (!numa) {
        lab_str_add(out, "null");
        return;
    }
    add_table(out, numa);
    lab_str_add(out, ", \"numa_nodes\": [");
    const char *comma = "";
    for (int node = 0; node <= last_node(&numa->entity); node++) {
        if (!has_node(&numa->entity, node))
            continue;
        lab_str_printf(out, "%s{\"node\": %d", comma, node);
        add_value(out, "total_gb", in_tick(numa, LAB_METRIC_NODE_TOTAL, node) / GIB, 7);
        add_value(out, "free_gb", in_tick(numa, LAB_METRIC_NODE_FREE, node) / GIB, 7);
        add_value(out, "cpu_percent", in_tick(numa, LAB_METRIC_NODE_UTILIZATION, node), 2);
        for (int i = 0; i < LAB_MONITOR_PAGES; i++)
            add_value(out, lab_monitor_pages[i].key,
                      in_tick(numa, lab_monitor_pages[i].metric, node), 0);
        lab_str_add(out, "}");
        comma = ", ";
    }
    lab_str_add(out, "]");
}

/* --- processes --- */

static void add_process(const struct lab_monitor_writer *writer,
                        const struct lab_process_sample *process, struct lab_str *out) {
    lab_str_printf(out, "%s{\"pid\": %d, \"name\": ", out->length ? ", " : "", (int)process->pid);
    lab_monitor_add_string(out, process->name);
    add_value(out, "cpu_percent", process->cpu_percent, 2);
    double bytes = process->memory_bytes < 0 ? (double)NAN : (double)process->memory_bytes;
    add_value(out, "memory_percent", 100 * bytes / writer->host_bytes, 4);
    add_value(out, "memory_gb", bytes / GIB, 7);
    lab_str_add(out, "}");
}

void lab_monitor_write_processes(struct lab_monitor_writer *writer,
                                 const struct lab_process_list *list) {
    lab_str_clear(&writer->processes);
    lab_str_clear(&writer->python_processes);
    for (int i = 0; i < list->count; i++) {
        const struct lab_process_sample *process = &list->items[i];
        add_process(writer, process, &writer->processes);
        if (process->name && strstr(process->name, "python"))
            add_process(writer, process, &writer->python_processes);
    }
    writer->processes_ns = list->time_ns;
    writer->has_processes = true;
}

static void add_processes(struct lab_monitor_writer *writer) {
    struct lab_str *out = writer->out;
    if (!writer->has_processes) {
        lab_str_add(out, ", \"processes\": null, \"python_processes\": null");
        return;
    }
    lab_str_printf(out, ", \"processes\": [%s], \"python_processes\": [%s], \"processes_time\": ",
                   writer->processes.text, writer->python_processes.text);
    lab_monitor_add_seconds(out, writer->processes_ns - writer->begin_ns);
}

/* CPU time is a difference of two readings: the first tick has none, nor has one just behind
 * another. Where CPUs were sampled, scripts count on a value in each record. */
static bool lacks_cpu(const struct lab_monitor_writer *writer) {
    const struct lab_monitor_source *cpu = NULL;
    for (int i = 0; i < writer->source_count; i++)
        if (writer->sources[i].told && writer->sources[i].entity.kind == LAB_ENTITY_CPU)
            cpu = &writer->sources[i];
    for (int i = 0; cpu && cpu->in_group && i < cpu->entity.column_count; i++)
        if ((cpu->entity.columns[i].metric == LAB_METRIC_CORE_UTILIZATION ||
             cpu->entity.columns[i].metric == LAB_METRIC_CPU_UTILIZATION) &&
            lab_valid_get(cpu->tick.valid, i))
            return false;
    return cpu != NULL;
}

void lab_monitor_write_system(struct lab_monitor_writer *writer) {
    struct lab_str *out = writer->out;
    if (lacks_cpu(writer))
        return;
    const struct lab_monitor_source *memory = member(writer, LAB_ENTITY_MEMORY);
    bool simulated = false;
    for (int i = 0; i < writer->source_count; i++)
        simulated |= writer->sources[i].in_group && writer->sources[i].entity.simulated;
    if (memory && !isnan(in_tick(memory, LAB_METRIC_HOST_TOTAL, -1)))
        writer->host_bytes = in_tick(memory, LAB_METRIC_HOST_TOTAL, -1);
    lab_str_add(out, writer->records++ ? ",\n{\"timestamp\": " : "\n{\"timestamp\": ");
    lab_monitor_add_seconds(out, writer->group_time_ns - writer->begin_ns);
    add_cores(out, member(writer, LAB_ENTITY_CPU));
    add_memory(out, memory);
    add_nodes(out, member(writer, LAB_ENTITY_NUMA));
    add_processes(writer);
    if (simulated)
        lab_str_add(out, ", \"simulated\": true");
    lab_str_add(out, "}");
}
