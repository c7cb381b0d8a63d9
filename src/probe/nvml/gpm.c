/*
 * gpm.c: how much multiprocessors, tensor cores, memory and links did between two samples, on GPUs
 * since Hopper. The driver refreshes samples each 100 ms, so they are taken no closer. On an H200 a
 * sample costs 0.2 ms, twice the rest of a tick: one each half second, unless the caller asks for
 * more. Most figures take microseconds to work out from two samples. Graphics activity asks the
 * driver again, for 1.9 ms, so it is worked out once a second, over that second. Hence three
 * samples: the newest, the one that the costly figure is counted from, and room for the next.
 */
#include "probe/nvml/nvml.h"

#include <math.h>

#define SAMPLE_NS (100 * LAB_NS_PER_MS)
#define SLACK_NS  (5 * LAB_NS_PER_MS) /* a tick that comes a little early is not left out */
#define RATE_MAX  1e8                 /* MiB/s */

static const struct {
    unsigned id;
    enum lab_metric_id metric;
    bool rate;   /* MiB/s, else % */
    bool costly; /* once a second */
} wanted[] = {
    {LAB_NVML_GPM_GRAPHICS, LAB_METRIC_GRAPHICS_ACTIVE, false, true},
    {LAB_NVML_GPM_SM, LAB_METRIC_SM_ACTIVE, false, false},
    {LAB_NVML_GPM_OCCUPANCY, LAB_METRIC_SM_OCCUPANCY, false, false},
    {LAB_NVML_GPM_TENSOR, LAB_METRIC_TENSOR_ACTIVE, false, false},
    {LAB_NVML_GPM_DRAM, LAB_METRIC_DRAM_ACTIVE, false, false},
    {LAB_NVML_GPM_FP64, LAB_METRIC_FP64_ACTIVE, false, false},
    {LAB_NVML_GPM_FP32, LAB_METRIC_FP32_ACTIVE, false, false},
    {LAB_NVML_GPM_FP16, LAB_METRIC_FP16_ACTIVE, false, false},
    {LAB_NVML_GPM_INTEGER, LAB_METRIC_INTEGER_ACTIVE, false, false},
    {LAB_NVML_GPM_PCIE_TX, LAB_METRIC_PCIE_TX_RATE, true, false},
    {LAB_NVML_GPM_PCIE_RX, LAB_METRIC_PCIE_RX_RATE, true, false},
    {LAB_NVML_GPM_NVLINK_TX, LAB_METRIC_NVLINK_TX_RATE, true, false},
    {LAB_NVML_GPM_NVLINK_RX, LAB_METRIC_NVLINK_RX_RATE, true, false},
};
#define WANTED (sizeof wanted / sizeof *wanted)

/* All samples, if the GPU has GPM at all. */
static bool prepare(struct nvml_unit *unit) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    struct lab_nvml_gpm_support support = {.version = LAB_NVML_GPM_SUPPORT_VERSION};
    uint64_t bit = UINT64_C(1) << NVML_ASK_GPM;
    if (unit->samples[NVML_GPM_SAMPLES - 1])
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
    for (int i = 0; i < NVML_GPM_SAMPLES; i++)
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

static void compare(struct nvml_unit *unit, int from, int until, bool costly) {
    const struct lab_nvml *nvml = unit->gpu->probe->nvml;
    struct lab_nvml_gpm_metrics *metrics = unit->gpu->metrics;
    size_t rows[WANTED], count = 0;
    for (size_t row = 0; row < WANTED; row++)
        if (wanted[row].costly == costly) {
            metrics->metrics[count].id = wanted[row].id;
            metrics->metrics[count].result = LAB_NVML_NOT_SUPPORTED;
            rows[count++] = row;
        }
    metrics->version = LAB_NVML_GPM_METRICS_VERSION;
    metrics->count = (unsigned)count;
    metrics->from = unit->samples[from];
    metrics->until = unit->samples[until];
    if (!nvml_answered(unit, NVML_ASK_GPM, "nvmlGpmMetricsGet", nvml->nvmlGpmMetricsGet(metrics)))
        return;
    for (size_t i = 0; i < count; i++)
        if (metrics->metrics[i].result == LAB_NVML_SUCCESS)
            set_metric(unit, rows[i], metrics->metrics[i].value);
}

/* One that neither the newest nor the costly figures need any more. */
static int free_sample(const struct nvml_unit *unit) {
    int next = 0;
    while (next == unit->newest || (unit->newest >= 0 && next == unit->costly_since))
        next++;
    return next;
}

/* When a run begins or ends, and each second, as soon as the driver has a new one. */
static int64_t period_ns(const struct nvml_unit *unit, bool slow) {
    int64_t period = unit->gpu->probe->gpm_ns;
    return slow || unit->costly_due || period < SAMPLE_NS ? SAMPLE_NS : period;
}

void nvml_read_gpm(struct nvml_unit *unit, int64_t now_ns, bool slow) {
    unit->costly_due |= slow; /* until the next sample, if it is too soon for one now */
    if (!nvml_may_ask(unit, NVML_ASK_GPM) || !prepare(unit) ||
        (unit->newest >= 0 && now_ns - unit->newest_ns < period_ns(unit, slow) - SLACK_NS))
        return;
    int next = free_sample(unit);
    if (!take(unit, unit->samples[next]))
        return;
    if (unit->newest < 0) {
        unit->costly_since = next;
        unit->costly_due = true;
    } else {
        compare(unit, unit->newest, next, false);
        if (unit->costly_due) {
            compare(unit, unit->costly_since, next, true);
            unit->costly_since = next;
            unit->costly_due = false;
        }
    }
    unit->newest = next;
    unit->newest_ns = now_ns;
}
