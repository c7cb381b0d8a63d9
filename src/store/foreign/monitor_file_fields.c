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
    *gpu = (struct lab_monitor_gpu){.memory_total = INT64_MIN, .power_limit = INT64_MIN};
    for (int i = 0; i < 4; i++)
        gpu->rates[i] = NAN;
}

/* false = it isn't in this tick. */
static bool raw_value(const struct lab_entity *entity, const struct lab_tick *tick,
                      enum lab_metric_id metric, int64_t *ret) {
    int column = lab_entity_column(entity, metric, -1);
    if (column < 0 || !lab_valid_get(tick->valid, column))
        return false;
    *ret = tick->values[column];
    return true;
}

/* A counter that fell started anew: how much was sent until then is unknown, so no rate is. */
static double counter_rate(struct lab_monitor_gpu *gpu, int which, int64_t time_ns, int64_t value,
                           enum lab_metric_id counter) {
    double rate = NAN;
    int64_t span_ns = time_ns - gpu->counters[which].time_ns;
    if (gpu->counters[which].known && span_ns > 0 && value >= gpu->counters[which].value)
        rate = (double)(value - gpu->counters[which].value) * lab_metric(counter)->scale /
               ((double)span_ns / LAB_NS_PER_S);
    gpu->counters[which].known = true;
    gpu->counters[which].time_ns = time_ns;
    gpu->counters[which].value = value;
    return rate;
}

void lab_monitor_gpu_pass(struct lab_monitor_gpu *gpu, const struct lab_entity *entity,
                          const struct lab_tick *tick) {
    int64_t value;
    if (raw_value(entity, tick, LAB_METRIC_MEMORY_TOTAL, &value))
        gpu->memory_total = value;
    if (raw_value(entity, tick, LAB_METRIC_POWER_LIMIT, &value))
        gpu->power_limit = value;
    for (int i = 0; i < 4; i++) {
        gpu->rates[i] = NAN;
        if (raw_value(entity, tick, rates[i][1], &value))
            gpu->rates[i] = counter_rate(gpu, i, tick->time_ns, value, rates[i][1]);
    }
}

static double remembered(int64_t value, enum lab_metric_id metric) {
    return value == INT64_MIN ? (double)NAN : (double)value * lab_metric(metric)->scale;
}

double lab_monitor_gpu_value(const struct lab_monitor_gpu *gpu, const struct lab_entity *entity,
                             const struct lab_tick *tick, enum lab_metric_id metric) {
    double value = lab_tick_value(entity, tick, metric, -1);
    if (!isnan(value))
        return value;
    if (metric == LAB_METRIC_MEMORY_TOTAL)
        return remembered(gpu->memory_total, metric);
    if (metric == LAB_METRIC_POWER_LIMIT)
        return remembered(gpu->power_limit, metric);
    for (int i = 0; i < 4; i++)
        if (metric == rates[i][0])
            return gpu->rates[i];
    return NAN;
}
