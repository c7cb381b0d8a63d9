/*
 * gpm.c: how much multiprocessors, tensor cores, memory and links did between two samples, on GPUs
 * since Hopper. The driver refreshes samples each 100 ms, so they are taken no closer: of the two that
 * are kept, the older one makes room.
 */
#include "probe/nvml/nvml.h"

#include <math.h>

#define SAMPLE_NS (100 * LAB_NS_PER_MS)
#define SLACK_NS  (5 * LAB_NS_PER_MS) /* a tick that comes a little early is not left out */
#define RATE_MAX  1e8                 /* MiB/s */

static const struct {
    unsigned id;
    enum lab_metric_id metric;
    bool rate; /* MiB/s, else % */
} wanted[] = {
    {LAB_NVML_GPM_GRAPHICS, LAB_METRIC_GRAPHICS_ACTIVE, false},
    {LAB_NVML_GPM_SM, LAB_METRIC_SM_ACTIVE, false},
    {LAB_NVML_GPM_OCCUPANCY, LAB_METRIC_SM_OCCUPANCY, false},
    {LAB_NVML_GPM_TENSOR, LAB_METRIC_TENSOR_ACTIVE, false},
    {LAB_NVML_GPM_DRAM, LAB_METRIC_DRAM_ACTIVE, false},
    {LAB_NVML_GPM_FP64, LAB_METRIC_FP64_ACTIVE, false},
    {LAB_NVML_GPM_FP32, LAB_METRIC_FP32_ACTIVE, false},
    {LAB_NVML_GPM_FP16, LAB_METRIC_FP16_ACTIVE, false},
    {LAB_NVML_GPM_INTEGER, LAB_METRIC_INTEGER_ACTIVE, false},
    {LAB_NVML_GPM_PCIE_TX, LAB_METRIC_PCIE_TX_RATE, true},
    {LAB_NVML_GPM_PCIE_RX, LAB_METRIC_PCIE_RX_RATE, true},
    {LAB_NVML_GPM_NVLINK_TX, LAB_METRIC_NVLINK_TX_RATE, true},
    {LAB_NVML_GPM_NVLINK_RX, LAB_METRIC_NVLINK_RX_RATE, true},
};
#define WANTED (sizeof wanted / sizeof *wanted)

/* Both samples, if the GPU has GPM at all. */
static bool prepare(struct nvml_unit *unit) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    struct lab_nvml_gpm_support support = {.version = LAB_NVML_GPM_SUPPORT_VERSION};
    uint64_t bit = UINT64_C(1) << NVML_ASK_GPM;
    if (unit->samples[1])
        return true;
    if (!nvml->nvmlGpmQueryDeviceSupport || !nvml->nvmlGpmSampleAlloc || !nvml->nvmlGpmSampleGet ||
        !nvml->nvmlGpmMetricsGet || !nvml->nvmlGpmSampleFree ||
        (unit->mig && !nvml->nvmlGpmMigSampleGet)) {
        unit->refused |= bit;
        return false;
    }
    if (!nvml_answered(unit, NVML_ASK_GPM, "nvmlGpmQueryDeviceSupport",
                       nvml->nvmlGpmQueryDeviceSupport(unit->gpu->unit.handle, &support)))
        return false;
    if (!support.supported) {
        unit->refused |= bit;
        return false;
    }
    for (int i = 0; i < 2; i++)
        if (!unit->samples[i] && nvml->nvmlGpmSampleAlloc(&unit->samples[i]) != LAB_NVML_SUCCESS)
            return false;
    unit->newest = -1;
    return true;
}

static bool take(struct nvml_unit *unit, lab_nvml_gpm_sample sample) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    if (unit->mig)
        return nvml_answered(
            unit, NVML_ASK_GPM, "nvmlGpmMigSampleGet",
            nvml->nvmlGpmMigSampleGet(unit->gpu->unit.handle, unit->gpu_instance, sample));
    return nvml_answered(unit, NVML_ASK_GPM, "nvmlGpmSampleGet",
                         nvml->nvmlGpmSampleGet(unit->handle, sample));
}

static void set_metric(struct nvml_unit *unit, size_t row, double value) {
    if (isnan(value) || value < 0)
        return; /* NaN = blank */
    if (wanted[row].rate && value <= RATE_MAX)
        nvml_set(unit, wanted[row].metric, (int64_t)lround(1024 * value), INT64_MAX);
    else if (!wanted[row].rate && value <= 101) /* a little above 100 is rounding of theirs */
        nvml_set(unit, wanted[row].metric, (int64_t)lround(100 * fmin(value, 100)), 10000);
}

static void compare(struct nvml_unit *unit, lab_nvml_gpm_sample from, lab_nvml_gpm_sample until) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    struct lab_nvml_gpm_metrics *metrics = unit->gpu->metrics;
    metrics->version = LAB_NVML_GPM_METRICS_VERSION;
    metrics->count = WANTED;
    metrics->from = from;
    metrics->until = until;
    for (size_t i = 0; i < WANTED; i++) {
        metrics->metrics[i].id = wanted[i].id;
        metrics->metrics[i].result = LAB_NVML_NOT_SUPPORTED;
    }
    if (!nvml_answered(unit, NVML_ASK_GPM, "nvmlGpmMetricsGet", nvml->nvmlGpmMetricsGet(metrics)))
        return;
    for (size_t i = 0; i < WANTED; i++)
        if (metrics->metrics[i].result == LAB_NVML_SUCCESS)
            set_metric(unit, i, metrics->metrics[i].value);
}

void nvml_read_gpm(struct nvml_unit *unit, int64_t now_ns) {
    if (!nvml_may_ask(unit, NVML_ASK_GPM) || !prepare(unit) ||
        (unit->newest >= 0 && now_ns - unit->newest_ns < SAMPLE_NS - SLACK_NS))
        return;
    int next = unit->newest < 0 ? 0 : 1 - unit->newest;
    if (!take(unit, unit->samples[next]))
        return;
    if (unit->newest >= 0)
        compare(unit, unit->samples[unit->newest], unit->samples[next]);
    unit->newest = next;
    unit->newest_ns = now_ns;
}
