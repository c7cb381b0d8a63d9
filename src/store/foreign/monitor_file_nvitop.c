/*
 * monitor_file_nvitop.c: the columns of a table made from nvitop's ResourceMetricCollector: a line
 * for each collection, a column for each device and metric: "TAG/cuda:0 (gpu:3)/power_usage
 * (W)/last". A collection has mean, min, max and last; means are over all the time since the tag
 * began, so the last value is taken, or else (of older versions) the mean.
 */
#include "store/foreign/monitor_file_reader.h"

#include <stdlib.h>
#include <string.h>

static const struct lab_monitor_field gpu_fields[] = {
    {"gpu_utilization (%)", LAB_METRIC_UTILIZATION, 1},
    {"memory_utilization (%)", LAB_METRIC_MEMORY_UTILIZATION, 1},
    {"memory_used (MiB)", LAB_METRIC_MEMORY_USED, LAB_MONITOR_MIB},
    {"memory_total (MiB)", LAB_METRIC_MEMORY_TOTAL, LAB_MONITOR_MIB},
    {"fan_speed (%)", LAB_METRIC_FAN, 1},
    {"temperature (C)", LAB_METRIC_TEMPERATURE, 1},
    {"power_usage (W)", LAB_METRIC_POWER, 1},
    {NULL},
};
static const struct lab_monitor_field cpu_fields[] = {
    {"cpu_percent (%)", LAB_METRIC_CPU_UTILIZATION, 1}, {NULL}};
static const struct lab_monitor_field memory_fields[] = {
    {"memory_used (GiB)", LAB_METRIC_HOST_USED, LAB_MONITOR_GIB}, {NULL}};
static const struct lab_monitor_field process_fields[] = {
    {"cpu_percent (%)", LAB_MONITOR_CPU_PERCENT, 1},
    {"host_memory (MiB)", LAB_MONITOR_RESIDENT, LAB_MONITOR_MIB},
    {"gpu_memory (MiB)", LAB_MONITOR_GPU_MEMORY, LAB_MONITOR_MIB},
    {"gpu_sm_utilization (%)", LAB_MONITOR_SM_PERCENT, 1},
    {"gpu_memory_utilization (%)", LAB_MONITOR_GPU_MEMORY_PERCENT, 1},
    {NULL},
};

/* Cuts the last part off; "" = there is none. */
static const char *cut(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    *slash = '\0';
    return slash + 1;
}

/* "cuda:0 (gpu:3)", "gpu:3"; -1 = no whole GPU. */
static int gpu_of(const char *scope) {
    const char *gpu = strstr(scope, "gpu:");
    char *end;
    long index = gpu ? strtol(gpu + 4, &end, 10) : -1;
    return gpu && end != gpu + 4 && (!*end || *end == ')') && index >= 0 && index <= INT16_MAX
               ? (int)index
               : -1;
}

/* The part before the device: "TAG/pid:123"; 0 = the column is of no process. */
static int32_t pid_of(const char *path) {
    const char *slash = strrchr(path, '/');
    long pid = slash && lab_str_starts(slash + 1, "pid:") ? strtol(slash + 5, NULL, 10) : 0;
    return pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
}

static const struct lab_monitor_field *find(const char *scope, const char *name,
                                            struct lab_monitor_column *ret) {
    ret->index = gpu_of(scope);
    ret->kind = ret->index >= 0 ? LAB_ENTITY_GPU : LAB_ENTITY_CPU;
    if (ret->index < 0 && !lab_str_equal(scope, "host"))
        return NULL;
    bool on_gpu = ret->index >= 0;
    ret->index = on_gpu ? ret->index : 0;
    if (ret->pid || on_gpu)
        return lab_monitor_find_field(ret->pid ? process_fields : gpu_fields, name);
    if (lab_monitor_find_field(memory_fields, name))
        ret->kind = LAB_ENTITY_MEMORY;
    return lab_monitor_find_field(ret->kind == LAB_ENTITY_MEMORY ? memory_fields : cpu_fields,
                                  name);
}

bool lab_monitor_nvitop_column(const char *name, struct lab_monitor_column *ret_column) {
    struct lab_monitor_column column = {.kind = -1};
    LAB_AUTO_FREE char *path = lab_mem_strdup(name);
    const char *last = cut(path);
    if (lab_str_equal(last, "timestamp")) {
        column.field = (struct lab_monitor_field){.what = LAB_MONITOR_TIMESTAMP};
        *ret_column = column;
        return true;
    }
    column.spare = lab_str_equal(last, "mean");
    const char *metric = column.spare || lab_str_equal(last, "last") ? cut(path) : "";
    const char *scope = cut(path);
    column.pid = pid_of(path);
    const struct lab_monitor_field *field = find(scope, metric, &column);
    static const struct lab_monitor_field ignored = {.what = LAB_MONITOR_IGNORED};
    if (!field && !strchr(name, '/') && !lab_str_equal(name, "time"))
        return false;
    column.kind = field ? column.kind : -1;
    column.field = field ? *field : ignored;
    *ret_column = column;
    return true;
}
