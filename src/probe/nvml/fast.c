/*
 * fast.c: what every tick reads, microseconds each: utilisation, memory, power, temperatures,
 * clocks, and why they are lowered.
 */
#include "probe/nvml/nvml.h"

#include <unistd.h>

#define PERCENT_MAX    100
#define FAN_MAX        250      /* of the speed meant as full: fans may go beyond */
#define POWER_MAX_MW   20000000 /* 20 kW */
#define HEAT_MAX_C     200
#define CLOCK_MAX_MHZ  20000
#define STATE_MAX      15           /* 32 = unknown */
#define MEMORY_MAX_KIB (1ll << 40)  /* 1 PiB */
#define REASONS_MAX    0xffffffffll /* all bits set = nothing to say */

/* --- memory --- */

static void set_memory(struct nvml_unit *unit, unsigned long long total, unsigned long long used) {
    unit->unified = total == 0;
    if (unit->unified || total >> 10 > MEMORY_MAX_KIB || used > total)
        return;
    nvml_set(unit, LAB_METRIC_MEMORY_TOTAL, (int64_t)(total >> 10), MEMORY_MAX_KIB);
    nvml_set(unit, LAB_METRIC_MEMORY_USED, (int64_t)(used >> 10), MEMORY_MAX_KIB);
}

static int64_t line_kib(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* A GPU without memory of its own uses the host's. The file stays open: each tick reads it anew. */
static void read_host_memory(struct nvml_unit *unit) {
    char text[4096];
    ssize_t length = pread(unit->gpu->probe->meminfo_fd, text, sizeof text - 1, 0);
    if (length <= 0)
        return;
    text[length] = '\0';
    int64_t total = line_kib(text, "MemTotal:"), available = line_kib(text, "MemAvailable:");
    if (total <= 0 || available < 0 || available > total)
        return;
    nvml_set(unit, LAB_METRIC_MEMORY_TOTAL, total, MEMORY_MAX_KIB);
    nvml_set(unit, LAB_METRIC_MEMORY_USED, total - available, MEMORY_MAX_KIB);
}

static void read_memory(struct nvml_unit *unit) {
    struct lab_nvml_memory_v2 memory = {.version = LAB_NVML_MEMORY_V2};
    struct lab_nvml_memory old = {0};
    if (unit->unified)
        ; /* once is enough */
    else if (NVML_ASK(unit, NVML_ASK_MEMORY_V2, nvmlDeviceGetMemoryInfo_v2, &memory)) {
        set_memory(unit, memory.total_bytes, memory.used_bytes);
        if (!unit->unified && memory.reserved_bytes <= memory.total_bytes)
            nvml_set(unit, LAB_METRIC_MEMORY_RESERVED, (int64_t)(memory.reserved_bytes >> 10),
                     MEMORY_MAX_KIB);
    } else if (NVML_ASK(unit, NVML_ASK_MEMORY, nvmlDeviceGetMemoryInfo, &old)) {
        set_memory(unit, old.total_bytes, old.used_bytes);
    }
    if (unit->unified)
        read_host_memory(unit);
}

/* --- the rest --- */

static void read_temperature(struct nvml_unit *unit) {
    struct lab_nvml_temperature temperature = {.version = LAB_NVML_TEMPERATURE_V1};
    unsigned old = 0;
    if (NVML_ASK(unit, NVML_ASK_TEMPERATURE_V, nvmlDeviceGetTemperatureV, &temperature))
        nvml_set(unit, LAB_METRIC_TEMPERATURE, temperature.temperature_c, HEAT_MAX_C);
    else if (NVML_ASK(unit, NVML_ASK_TEMPERATURE, nvmlDeviceGetTemperature, 0, &old))
        nvml_set(unit, LAB_METRIC_TEMPERATURE, old, HEAT_MAX_C);
}

static void read_clocks(struct nvml_unit *unit) {
    unsigned mhz = 0;
    unsigned long long reasons = 0;
    if (NVML_ASK(unit, NVML_ASK_SM_CLOCK, nvmlDeviceGetClockInfo, LAB_NVML_CLOCK_SM, &mhz))
        nvml_set(unit, LAB_METRIC_SM_CLOCK, mhz, CLOCK_MAX_MHZ);
    if (NVML_ASK(unit, NVML_ASK_MEMORY_CLOCK, nvmlDeviceGetClockInfo, LAB_NVML_CLOCK_MEMORY, &mhz))
        nvml_set(unit, LAB_METRIC_MEMORY_CLOCK, mhz, CLOCK_MAX_MHZ);
    if (NVML_ASK(unit, NVML_ASK_REASONS, nvmlDeviceGetCurrentClocksEventReasons, &reasons) ||
        NVML_ASK(unit, NVML_ASK_REASONS_OLD, nvmlDeviceGetCurrentClocksThrottleReasons, &reasons))
        nvml_set(unit, LAB_METRIC_CLOCK_REASONS, (int64_t)reasons, REASONS_MAX);
}

static void read_state(struct nvml_unit *unit) {
    int state = 0;
    if (NVML_ASK(unit, NVML_ASK_STATE, nvmlDeviceGetPerformanceState, &state) ||
        NVML_ASK(unit, NVML_ASK_STATE_OLD, nvmlDeviceGetPowerState, &state))
        nvml_set(unit, LAB_METRIC_PERFORMANCE_STATE, state, STATE_MAX);
}

static void read_fan(struct nvml_unit *unit) {
    unsigned percent = 0;
    if (NVML_ASK(unit, NVML_ASK_FAN, nvmlDeviceGetFanSpeed, &percent))
        nvml_set(unit, LAB_METRIC_FAN, percent, FAN_MAX);
}

static void read_encoder(struct nvml_unit *unit) {
    unsigned percent = 0, period_us = 0;
    if (NVML_ASK(unit, NVML_ASK_ENCODER, nvmlDeviceGetEncoderUtilization, &percent, &period_us))
        nvml_set(unit, LAB_METRIC_ENCODER, percent, PERCENT_MAX);
}

static void read_decoder(struct nvml_unit *unit) {
    unsigned percent = 0, period_us = 0;
    if (NVML_ASK(unit, NVML_ASK_DECODER, nvmlDeviceGetDecoderUtilization, &percent, &period_us))
        nvml_set(unit, LAB_METRIC_DECODER, percent, PERCENT_MAX);
}

/* What nobody needs at every tick: once a second. */
static void read_seldom(struct nvml_unit *unit) {
    read_state(unit);
    read_fan(unit);
    read_encoder(unit);
    read_decoder(unit);
    nvml_read_fields(unit, NVML_FIELDS_HEAT);
}

void nvml_read_fast(struct nvml_unit *unit, bool slow) {
    struct lab_nvml_utilization use = {0};
    unsigned value = 0;
    read_memory(unit);
    if (unit->mig)
        return; /* the rest is known of whole GPUs alone */
    if (NVML_ASK(unit, NVML_ASK_UTILIZATION, nvmlDeviceGetUtilizationRates, &use)) {
        nvml_set(unit, LAB_METRIC_UTILIZATION, use.gpu_percent, PERCENT_MAX);
        nvml_set(unit, LAB_METRIC_MEMORY_UTILIZATION, use.memory_percent, PERCENT_MAX);
    }
    if (NVML_ASK(unit, NVML_ASK_POWER, nvmlDeviceGetPowerUsage, &value))
        nvml_set(unit, LAB_METRIC_POWER, value, POWER_MAX_MW);
    read_temperature(unit);
    read_clocks(unit);
    nvml_read_fields(unit, NVML_FIELDS_FAST);
    if (slow)
        read_seldom(unit);
}
