/*
 * monitor_file_all_smi.c: what all-smi writes: `snapshot --format json` (an object, or a list of
 * them) and `record` (an object a line, with a header line and index lines between).
 */
#include "store/foreign/monitor_file_reader.h"

static const struct lab_monitor_field gpu_fields[] = {
    {"utilization", LAB_METRIC_UTILIZATION, 1, .sense = LAB_MONITOR_NOT_NEGATIVE},
    {"used_memory", LAB_METRIC_MEMORY_USED, 1},
    {"total_memory", LAB_METRIC_MEMORY_TOTAL, 1, .sense = LAB_MONITOR_NOT_ZERO},
    {"power_consumption", LAB_METRIC_POWER, 1, .sense = LAB_MONITOR_NOT_NEGATIVE},
    {"temperature", LAB_METRIC_TEMPERATURE, 1, .sense = LAB_MONITOR_NOT_ZERO},
    {"frequency", LAB_METRIC_SM_CLOCK, 1, .sense = LAB_MONITOR_NOT_ZERO},
    {"performance_state", LAB_METRIC_PERFORMANCE_STATE, 1},
    {"gpm_metrics.sm_occupancy", LAB_METRIC_SM_OCCUPANCY, 100},
    {"gpm_metrics.memory_bandwidth_utilization", LAB_METRIC_DRAM_ACTIVE, 100},
    {"numa_node_id", LAB_MONITOR_NODE, 1},
    {NULL},
};

static const struct lab_monitor_field cpu_fields[] = {
    {"utilization", LAB_METRIC_CPU_UTILIZATION, 1},
    {"cpu_model", LAB_MONITOR_NAME},
    {NULL},
};

static const struct lab_monitor_field memory_fields[] = {
    {"total_bytes", LAB_METRIC_HOST_TOTAL, 1},         {"used_bytes", LAB_METRIC_HOST_USED, 1},
    {"available_bytes", LAB_METRIC_HOST_AVAILABLE, 1}, {"cached_bytes", LAB_METRIC_HOST_CACHED, 1},
    {"swap_used_bytes", LAB_METRIC_SWAP_USED, 1},      {NULL},
};

static const struct lab_monitor_field process_fields[] = {
    {"pid", LAB_MONITOR_PID, 1},
    {"ppid", LAB_MONITOR_PARENT, 1},
    {"device_id", LAB_MONITOR_INDEX, 1},
    {"device_uuid", LAB_MONITOR_ID},
    {"process_name", LAB_MONITOR_PROCESS_NAME},
    {"user", LAB_MONITOR_USER},
    {"command", LAB_MONITOR_COMMAND},
    {"threads", LAB_MONITOR_THREADS, 1},
    {"cpu_percent", LAB_MONITOR_CPU_PERCENT, 1},
    {"memory_rss", LAB_MONITOR_RESIDENT, 1},
    {"used_memory", LAB_MONITOR_GPU_MEMORY, 1},
    {"gpu_utilization", LAB_MONITOR_SM_PERCENT, 1},
    {NULL},
};

static void read_cores(const struct lab_monitor_row *row, const struct lab_value *cpu) {
    static const struct lab_monitor_field field = {"utilization", LAB_METRIC_CORE_UTILIZATION, 1};
    const struct lab_value *cores = lab_value_get(cpu, "per_core_utilization");
    for (int i = 0; cores && cores->type == LAB_VALUE_LIST && i < cores->count; i++) {
        int64_t core = lab_value_get_int(cores->items[i], "core_id", -1);
        if (core >= 0 && core < LAB_COLUMNS_MAX / 2)
            lab_monitor_row_set(row, &field, (int)core,
                                lab_value_get(cores->items[i], "utilization"));
    }
}

static void read_processes(struct lab_monitor_builder *builder, const struct lab_value *record) {
    struct lab_monitor_row row = lab_monitor_row_new(builder, LAB_ENTITY_GPU);
    if (lab_monitor_builder_newest(builder, &row.at_ns))
        lab_monitor_take_processes(&row, process_fields, lab_value_get(record, "processes"));
}

const struct lab_monitor_json lab_monitor_all_smi = {
    .name = "all-smi",
    .format = LAB_MONITOR_FORMAT_COUNT,
    .time = "timestamp",
    .words = {"schema", "hostname"},
    .lists = {{"gpus", LAB_ENTITY_GPU, gpu_fields},
              {"cpus", LAB_ENTITY_CPU, cpu_fields, .more = read_cores},
              {"memory", LAB_ENTITY_MEMORY, memory_fields}},
    .after = read_processes,
};

/* Lines of `all-smi record` between the samples: its header, and offsets for seeking. */
const struct lab_monitor_json lab_monitor_all_smi_frame = {
    .format = LAB_MONITOR_FORMAT_COUNT,
    .words = {"schema", "all_smi_version"},
};
const struct lab_monitor_json lab_monitor_all_smi_index = {
    .format = LAB_MONITOR_FORMAT_COUNT,
    .words = {"schema", "byte_offset"},
};
