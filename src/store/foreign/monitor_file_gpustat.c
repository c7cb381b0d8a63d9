/* monitor_file_gpustat.c: what `gpustat` prints: an object for each call, GPUs in a list. */
#include "store/foreign/monitor_file_reader.h"

static const struct lab_monitor_field gpu_fields[] = {
    {"utilization.gpu", LAB_METRIC_UTILIZATION, 1},
    {"memory.used", LAB_METRIC_MEMORY_USED, LAB_MONITOR_MIB},
    {"memory.total", LAB_METRIC_MEMORY_TOTAL, LAB_MONITOR_MIB},
    {"power.draw", LAB_METRIC_POWER, 1},
    {"enforced.power.limit", LAB_METRIC_POWER_LIMIT, 1},
    {"temperature.gpu", LAB_METRIC_TEMPERATURE, 1},
    {"fan.speed", LAB_METRIC_FAN, 1},
    {"utilization.enc", LAB_METRIC_ENCODER, 1},
    {"utilization.dec", LAB_METRIC_DECODER, 1},
    {NULL},
};

static const struct lab_monitor_field process_fields[] = {
    {"pid", LAB_MONITOR_PID, 1},
    {"username", LAB_MONITOR_USER},
    {"command", LAB_MONITOR_PROCESS_NAME},
    {"full_command", LAB_MONITOR_COMMAND},
    {"gpu_memory_usage", LAB_MONITOR_GPU_MEMORY, LAB_MONITOR_MIB},
    {"cpu_percent", LAB_MONITOR_CPU_PERCENT, 1},
    {"cpu_memory_usage", LAB_MONITOR_RESIDENT, 1},
    {NULL},
};

const struct lab_monitor_json lab_monitor_gpustat = {
    .name = "gpustat",
    .format = LAB_MONITOR_FORMAT_COUNT,
    .time = "query_time",
    .marks = {"gpus"},
    .words = {"query_time"},
    .lists = {{"gpus", LAB_ENTITY_GPU, gpu_fields, .process_fields = process_fields}},
};
