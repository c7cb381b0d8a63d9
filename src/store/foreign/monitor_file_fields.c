/*
 * monitor_file_fields.c: which field of a GPU's record is which metric, in which unit, in the two
 * dialects that are about: megabytes by name (`memory_used`), and units in names (`mem_used_gb`).
 * The same tables serve writing and reading.
 */
#include "store/foreign/monitor_file_internal.h"

#include "base/clock.h"

#include <math.h>

#define MIB LAB_MONITOR_MIB
#define GIB LAB_MONITOR_GIB
#define MB  1e6

const struct lab_monitor_field lab_monitor_gpu_fields[] = {
    {"utilization", LAB_METRIC_UTILIZATION, 1, 0},
    {"memory_used", LAB_METRIC_MEMORY_USED, MIB, 4},
    {"memory_total", LAB_METRIC_MEMORY_TOTAL, MIB, 4},
    {"power", LAB_METRIC_POWER, 1, 3},
    {"temperature", LAB_METRIC_TEMPERATURE, 1, 0},
    {"memory_utilization", LAB_METRIC_MEMORY_UTILIZATION, 1, 0},
    {"sm_clock", LAB_METRIC_SM_CLOCK, 1, 0},
    {"memory_clock", LAB_METRIC_MEMORY_CLOCK, 1, 0},
    {"fan", LAB_METRIC_FAN, 1, 0},
    {"power_limit", LAB_METRIC_POWER_LIMIT, 1, 3},
    {"power_instant", LAB_METRIC_POWER_INSTANT, 1, 3},
    {"memory_temperature", LAB_METRIC_MEMORY_TEMPERATURE, 1, 0},
    {"sm_active", LAB_METRIC_SM_ACTIVE, 1, 2},
    {"tensor_active", LAB_METRIC_TENSOR_ACTIVE, 1, 2},
    {"dram_active", LAB_METRIC_DRAM_ACTIVE, 1, 2},
    {"pcie_tx_mb", LAB_METRIC_PCIE_TX_RATE, MB, 4},
    {"pcie_rx_mb", LAB_METRIC_PCIE_RX_RATE, MB, 4},
    {"nvlink_tx_mb", LAB_METRIC_NVLINK_TX_RATE, MB, 4},
    {"nvlink_rx_mb", LAB_METRIC_NVLINK_RX_RATE, MB, 4},
    {"energy_j", LAB_METRIC_ENERGY, 1, 3},
    {NULL},
};

const struct lab_monitor_field lab_monitor_experiment_fields[LAB_MONITOR_EXPERIMENT_FIELDS + 1] = {
    {"gpu_util", LAB_METRIC_UTILIZATION, 1, 0},
    {"mem_util", LAB_METRIC_MEMORY_UTILIZATION, 1, 0},
    {"mem_used_gb", LAB_METRIC_MEMORY_USED, GIB, 7},
    {"power_w", LAB_METRIC_POWER, 1, 3},
    {"temp_c", LAB_METRIC_TEMPERATURE, 1, 0},
    {"pcie_tx_mb", LAB_METRIC_PCIE_TX_RATE, MB, 4},
    {"pcie_rx_mb", LAB_METRIC_PCIE_RX_RATE, MB, 4},
    {"mem_total_gb", LAB_METRIC_MEMORY_TOTAL, GIB, 7},
    {"power_limit_w", LAB_METRIC_POWER_LIMIT, 1, 3},
    {"sm_clock_mhz", LAB_METRIC_SM_CLOCK, 1, 0},
    {"mem_clock_mhz", LAB_METRIC_MEMORY_CLOCK, 1, 0},
    {"sm_active", LAB_METRIC_SM_ACTIVE, 1, 2},
    {"tensor_active", LAB_METRIC_TENSOR_ACTIVE, 1, 2},
    {"dram_active", LAB_METRIC_DRAM_ACTIVE, 1, 2},
    {"nvlink_tx_mb", LAB_METRIC_NVLINK_TX_RATE, MB, 4},
    {"nvlink_rx_mb", LAB_METRIC_NVLINK_RX_RATE, MB, 4},
    {"energy_j", LAB_METRIC_ENERGY, 1, 3},
    {NULL},
};

const struct lab_monitor_page lab_monitor_pages[LAB_MONITOR_PAGES] = {
    {"Numa_Hit", "numa_hit", LAB_METRIC_NODE_HIT},
    {"Numa_Miss", "numa_miss", LAB_METRIC_NODE_MISS},
    {"Numa_Foreign", "numa_foreign", LAB_METRIC_NODE_FOREIGN},
    {"Other_Node", "other_node", LAB_METRIC_NODE_OTHER},
};

/* A rate, and the counter that grows with it. */
static const enum lab_metric_id rates[4][2] = {
    {LAB_METRIC_PCIE_TX_RATE, LAB_METRIC_PCIE_TX_BYTES},
    {LAB_METRIC_PCIE_RX_RATE, LAB_METRIC_PCIE_RX_BYTES},
    {LAB_METRIC_NVLINK_TX_RATE, LAB_METRIC_NVLINK_TX_BYTES},
    {LAB_METRIC_NVLINK_RX_RATE, LAB_METRIC_NVLINK_RX_BYTES},
};

void lab_monitor_gpu_init(struct lab_monitor_gpu *gpu) {
    *gpu = (struct lab_monitor_gpu){0};
    for (int i = 0; i < LAB_METRIC_PROCESSES; i++)
        gpu->held[i] = NAN;
    for (int i = 0; i < 4; i++)
        gpu->counters[i].value = NAN;
}

static void hold(struct lab_monitor_gpu *gpu, int metric, double value) {
    _Static_assert(LAB_METRIC_PROCESSES <= 64, "a bit for each metric of GPUs");
    if (isnan(value))
        return;
    gpu->held[metric] = value;
    gpu->fresh |= UINT64_C(1) << metric;
}

void lab_monitor_gpu_pass(struct lab_monitor_gpu *gpu, const struct lab_entity *entity,
                          const struct lab_tick *tick) {
    gpu->fresh = 0;
    for (int i = 0; i < entity->column_count; i++) {
        int metric = entity->columns[i].metric;
        if (metric >= 0 && metric < LAB_METRIC_PROCESSES && lab_valid_get(tick->valid, i))
            hold(gpu, metric, (double)tick->values[i] * lab_metric(metric)->scale);
    }
    for (int i = 0; i < 4; i++) {
        if (!(gpu->fresh >> rates[i][1] & 1))
            continue;
        /* one that fell started anew: how much was sent until then is unknown, so no rate is */
        double value = gpu->held[rates[i][1]], grown = value - gpu->counters[i].value;
        int64_t span_ns = tick->time_ns - gpu->counters[i].time_ns;
        if (span_ns > 0 && grown >= 0 && !(gpu->fresh >> rates[i][0] & 1))
            hold(gpu, rates[i][0], grown / ((double)span_ns / LAB_NS_PER_S));
        gpu->counters[i].time_ns = tick->time_ns;
        gpu->counters[i].value = value;
    }
}
