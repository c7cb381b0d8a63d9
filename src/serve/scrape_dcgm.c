/*
 * scrape_dcgm.c: GPUs under dcgm-exporter's names, so that dashboards made for it work as they are.
 * The names, units and help texts are its own; what NVML doesn't give is left out, never 0.
 *
 * Of a GPU that is cut into MIG instances, each name is shown for the instances where they have it,
 * and for the whole GPU otherwise: the sum over all series is then right, which it wouldn't be with
 * the GPU's power beside each instance.
 */
#include "serve/scrape_internal.h"

#include <math.h>

#define KIB 1024.0
#define MIB 1048576.0

/* A value that isn't one metric times a factor. */
typedef bool dcgm_derive(const struct scrape_entity *entity, double *ret_value);

struct dcgm_row {
    const char *name, *type, *help;
    enum lab_metric_id metric;
    double factor;       /* from the metric's unit */
    dcgm_derive *derive; /* instead of both */
};

static bool memory_free(const struct scrape_entity *entity, double *ret_value) {
    double used, total, reserved = 0;
    if (!scrape_value(entity, LAB_METRIC_MEMORY_USED, &used) ||
        !scrape_value(entity, LAB_METRIC_MEMORY_TOTAL, &total))
        return false;
    scrape_value(entity, LAB_METRIC_MEMORY_RESERVED,
                 &reserved); /* older drivers count it as used */
    *ret_value = floor((total - used - reserved) / MIB);
    return *ret_value >= 0;
}

static bool memory_used(const struct scrape_entity *entity, double *ret_value) {
    if (!scrape_value(entity, LAB_METRIC_MEMORY_USED, ret_value))
        return false;
    *ret_value = floor(*ret_value / MIB);
    return true;
}

static bool memory_reserved(const struct scrape_entity *entity, double *ret_value) {
    if (!scrape_value(entity, LAB_METRIC_MEMORY_RESERVED, ret_value))
        return false;
    *ret_value = floor(*ret_value / MIB);
    return true;
}

/* 0 says that there was none, which the count of them proves. */
static bool last_xid(const struct scrape_entity *entity, double *ret_value) {
    if (scrape_value(entity, LAB_METRIC_LAST_XID, ret_value))
        return true;
    return scrape_value(entity, LAB_METRIC_XIDS, ret_value) && *ret_value == 0;
}

/* Both directions, in the driver's own unit. */
static bool nvlink_total(const struct scrape_entity *entity, double *ret_value) {
    double tx, rx;
    if (!scrape_value(entity, LAB_METRIC_NVLINK_TX_BYTES, &tx) ||
        !scrape_value(entity, LAB_METRIC_NVLINK_RX_BYTES, &rx))
        return false;
    *ret_value = (tx + rx) / KIB;
    return true;
}

#define FIELD(name) "DCGM_FI_" name

static const struct dcgm_row rows[] = {
    {FIELD("DEV_SM_CLOCK"), "gauge", "SM clock frequency (in MHz).", LAB_METRIC_SM_CLOCK, 1},
    {FIELD("DEV_MEM_CLOCK"), "gauge", "Memory clock frequency (in MHz).", LAB_METRIC_MEMORY_CLOCK,
     1},
    {FIELD("DEV_MEMORY_TEMP"), "gauge", "Memory temperature (in C).", LAB_METRIC_MEMORY_TEMPERATURE,
     1},
    {FIELD("DEV_GPU_TEMP"), "gauge", "GPU temperature (in C).", LAB_METRIC_TEMPERATURE, 1},
    {FIELD("DEV_POWER_USAGE"), "gauge", "Power draw (in W).", LAB_METRIC_POWER, 1},
    {FIELD("DEV_TOTAL_ENERGY_CONSUMPTION"), "counter",
     "Total energy consumption since boot (in mJ).", LAB_METRIC_ENERGY, 1000},
    {FIELD("DEV_PCIE_REPLAY_COUNTER"), "counter", "Total number of PCIe retries.",
     LAB_METRIC_PCIE_REPLAYS, 1},
    {FIELD("DEV_GPU_UTIL"), "gauge", "GPU utilization (in %).", LAB_METRIC_UTILIZATION, 1},
    {FIELD("DEV_MEM_COPY_UTIL"), "gauge", "Memory utilization (in %).",
     LAB_METRIC_MEMORY_UTILIZATION, 1},
    {FIELD("DEV_ENC_UTIL"), "gauge", "Encoder utilization (in %).", LAB_METRIC_ENCODER, 1},
    {FIELD("DEV_DEC_UTIL"), "gauge", "Decoder utilization (in %).", LAB_METRIC_DECODER, 1},
    {FIELD("DEV_XID_ERRORS"), "gauge", "Value of the last XID error encountered.",
     .derive = last_xid},
    {FIELD("DEV_FB_FREE"), "gauge", "Framebuffer memory free (in MiB).", .derive = memory_free},
    {FIELD("DEV_FB_USED"), "gauge", "Framebuffer memory used (in MiB).", .derive = memory_used},
    {FIELD("DEV_FB_RESERVED"), "gauge", "Framebuffer memory reserved (in MiB).",
     .derive = memory_reserved},
    {FIELD("DEV_NVLINK_BANDWIDTH_TOTAL"), "counter",
     "Total number of NVLink bandwidth counters for all lanes (in KiB).", .derive = nvlink_total},
    {FIELD("PROF_GR_ENGINE_ACTIVE"), "gauge", "Ratio of time the graphics engine is active.",
     LAB_METRIC_GRAPHICS_ACTIVE, 0.01},
    {FIELD("PROF_SM_ACTIVE"), "gauge", "The ratio of cycles an SM has at least 1 warp assigned.",
     LAB_METRIC_SM_ACTIVE, 0.01},
    {FIELD("PROF_SM_OCCUPANCY"), "gauge", "The ratio of number of warps resident on an SM.",
     LAB_METRIC_SM_OCCUPANCY, 0.01},
    {FIELD("PROF_PIPE_TENSOR_ACTIVE"), "gauge", "Ratio of cycles the tensor (HMMA) pipe is active.",
     LAB_METRIC_TENSOR_ACTIVE, 0.01},
    {FIELD("PROF_DRAM_ACTIVE"), "gauge",
     "Ratio of cycles the device memory interface is active sending or receiving data.",
     LAB_METRIC_DRAM_ACTIVE, 0.01},
    {FIELD("PROF_PCIE_TX_BYTES"), "gauge",
     "The rate of data transmitted over the PCIe bus, in bytes per second.",
     LAB_METRIC_PCIE_TX_RATE, 1},
    {FIELD("PROF_PCIE_RX_BYTES"), "gauge",
     "The rate of data received over the PCIe bus, in bytes per second.", LAB_METRIC_PCIE_RX_RATE,
     1},
    {FIELD("PROF_NVLINK_TX_BYTES"), "gauge",
     "The rate of data transmitted over NVLink, in bytes per second.", LAB_METRIC_NVLINK_TX_RATE,
     1},
    {FIELD("PROF_NVLINK_RX_BYTES"), "gauge",
     "The rate of data received over NVLink, in bytes per second.", LAB_METRIC_NVLINK_RX_RATE, 1},
};

static bool row_value(const struct dcgm_row *row, const struct scrape_entity *entity,
                      double *ret_value) {
    if (row->derive)
        return row->derive(entity, ret_value);
    if (!scrape_value(entity, row->metric, ret_value))
        return false;
    *ret_value *= row->factor;
    return true;
}

static bool instances_have(const struct lab_scrape *scrape, int gpu, const struct dcgm_row *row) {
    double value;
    for (int i = 0; i < scrape->entity_count; i++) {
        const struct scrape_entity *entity = &scrape->entities[i];
        if (entity->told && entity->entity.kind == LAB_ENTITY_MIG && entity->entity.parent == gpu &&
            row_value(row, entity, &value))
            return true;
    }
    return false;
}

void scrape_write_dcgm(const struct lab_scrape *scrape, const struct scrape_labels *labels,
                       struct lab_str *out) {
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        bool begun = false;
        for (int i = 0; i < scrape->entity_count; i++) {
            const struct scrape_entity *entity = &scrape->entities[i];
            double value;
            if (!labels[i].dcgm || !row_value(&rows[r], entity, &value))
                continue;
            if (entity->entity.kind == LAB_ENTITY_GPU && instances_have(scrape, i, &rows[r]))
                continue;
            if (!begun)
                scrape_add_header(rows[r].name, rows[r].type, rows[r].help, out);
            begun = true;
            scrape_add_sample(rows[r].name, labels[i].dcgm, "", value, out);
        }
    }
}
