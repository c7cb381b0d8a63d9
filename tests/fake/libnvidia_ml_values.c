/* libnvidia_ml_values.c: what the fake machine's GPUs are doing, as the script says
 * (fake_nvml.h). */
#include "fake/fake_nvml.h"

#define MIB 1048576.0

/* --- values over time --- */

/* A slow wave with a faster, smaller one upon it, each GPU at another time. */
static double wave(const struct fake_value *value, int gpu, double time_s) {
    double turn = 2 * M_PI * (time_s / value->period_s + 0.37 * gpu + 0.11 * fake_script.seed);
    double share = 0.5 + 0.38 * sin(turn) + 0.12 * sin(2.7 * turn);
    return value->low + share * (value->high - value->low);
}

/* Of wave over time, from any beginning. */
static double wave_sum(const struct fake_value *value, int gpu, double time_s) {
    double turn = 2 * M_PI * (time_s / value->period_s + 0.37 * gpu + 0.11 * fake_script.seed);
    double per_s = value->period_s / (2 * M_PI);
    double share = 0.5 * time_s - per_s * (0.38 * cos(turn) + 0.12 / 2.7 * cos(2.7 * turn));
    return value->low * time_s + share * (value->high - value->low);
}

static double steps_at(const struct fake_value *value, double time_s) {
    double now = 0;
    for (int i = 0; i < value->step_count; i++)
        if (time_s >= value->steps[i].from_s)
            now = value->steps[i].value;
    return now;
}

static double steps_sum(const struct fake_value *value, double time_s) {
    double sum = 0;
    for (int i = 0; i < value->step_count; i++) {
        double until_s = i + 1 < value->step_count ? value->steps[i + 1].from_s : INFINITY;
        double length = fmin(time_s, until_s) - value->steps[i].from_s;
        sum += length > 0 ? length * value->steps[i].value : 0;
    }
    return sum;
}

int fake_at(int gpu, enum fake_key key, double *ret_value) {
    const struct fake_value *value = &fake_script.values[gpu][key];
    if (value->kind == FAKE_ABSENT)
        return LAB_NVML_NOT_SUPPORTED;
    *ret_value = value->kind == FAKE_NONSENSE ? NAN
                 : value->kind == FAKE_WAVE   ? wave(value, gpu, fake_now())
                 : value->kind == FAKE_STEPS  ? steps_at(value, fake_now())
                                              : value->low;
    return 0;
}

int fake_sum(int gpu, enum fake_key key, double from_s, double until_s, double *ret_sum) {
    const struct fake_value *value = &fake_script.values[gpu][key];
    if (value->kind == FAKE_ABSENT)
        return LAB_NVML_NOT_SUPPORTED;
    *ret_sum = value->kind == FAKE_NONSENSE ? NAN
               : value->kind == FAKE_WAVE
                   ? wave_sum(value, gpu, until_s) - wave_sum(value, gpu, from_s)
               : value->kind == FAKE_STEPS ? steps_sum(value, until_s) - steps_sum(value, from_s)
                                           : value->low * (until_s - from_s);
    return 0;
}

int fake_unsigned(int gpu, enum fake_key key, double scale, unsigned *ret_value) {
    double value = 0;
    int code = fake_at(gpu, key, &value);
    if (!code)
        *ret_value = isnan(value) ? 0xffffffffu : (unsigned)lround(value * scale);
    return code;
}

/* --- memory --- */

static int memory(lab_nvml_device device, struct lab_nvml_memory_v2 *memory) {
    double total = 0, used = 0, reserved = 0;
    int instances = fake_instances(device->gpu);
    double share = device->instance < 0 || !instances ? 1 : 1.0 / instances;
    int code = fake_at(device->gpu, FAKE_memory_total, &total);
    if (code || fake_at(device->gpu, FAKE_memory, &used))
        return LAB_NVML_NOT_SUPPORTED;
    fake_at(device->gpu, FAKE_reserved, &reserved);
    bool nonsense = fake_script.values[device->gpu][FAKE_memory_total].kind == FAKE_NONSENSE;
    if (isnan(total) && !nonsense)
        total = (double)fake_number("FAKE_CUDA_MEMORY_MIB", 1024);
    if (nonsense || isnan(used)) {
        memory->total_bytes = nonsense ? ~0ull : (unsigned long long)(total * MIB);
        memory->used_bytes = memory->free_bytes = memory->reserved_bytes = ~0ull;
        return 0;
    }
    memory->total_bytes = (unsigned long long)(share * total * MIB);
    memory->used_bytes = (unsigned long long)(share * used * MIB);
    memory->reserved_bytes = (unsigned long long)(share * reserved * MIB);
    memory->free_bytes = memory->total_bytes - memory->used_bytes - memory->reserved_bytes;
    return 0;
}

lab_nvml_result nvmlDeviceGetMemoryInfo_v2(lab_nvml_device device,
                                           struct lab_nvml_memory_v2 *ret_memory) {
    BEGIN_ON(nvmlDeviceGetMemoryInfo_v2, device);
    if (ret_memory->version != LAB_NVML_MEMORY_V2)
        return LAB_NVML_VERSION_MISMATCH;
    return memory(device, ret_memory);
}

lab_nvml_result nvmlDeviceGetMemoryInfo(lab_nvml_device device,
                                        struct lab_nvml_memory *ret_memory) {
    struct lab_nvml_memory_v2 all = {0};
    BEGIN_ON(nvmlDeviceGetMemoryInfo, device);
    int code = memory(device, &all);
    ret_memory->total_bytes = all.total_bytes;
    ret_memory->free_bytes = all.free_bytes;
    ret_memory->used_bytes = all.used_bytes + all.reserved_bytes;
    return code;
}

/* --- what one function tells each --- */

lab_nvml_result nvmlDeviceGetUtilizationRates(lab_nvml_device device,
                                              struct lab_nvml_utilization *ret_utilization) {
    BEGIN_ON(nvmlDeviceGetUtilizationRates, device);
    if (fake_instances(device->gpu))
        return LAB_NVML_NOT_SUPPORTED; /* as in MIG mode */
    int code = fake_unsigned(device->gpu, FAKE_utilization, 1, &ret_utilization->gpu_percent);
    int other =
        fake_unsigned(device->gpu, FAKE_memory_utilization, 1, &ret_utilization->memory_percent);
    return code ? code : other;
}

#define ONE_VALUE(function, key, scale)                                                            \
    lab_nvml_result function(lab_nvml_device device, unsigned *ret_value) {                        \
        BEGIN_ON(function, device);                                                                \
        return fake_unsigned(device->gpu, FAKE_##key, scale, ret_value);                           \
    }
ONE_VALUE(nvmlDeviceGetPowerUsage, power, 1000)
ONE_VALUE(nvmlDeviceGetEnforcedPowerLimit, power_limit, 1000)
ONE_VALUE(nvmlDeviceGetFanSpeed, fan, 1)
ONE_VALUE(nvmlDeviceGetCurrPcieLinkGeneration, pcie_gen, 1)
ONE_VALUE(nvmlDeviceGetCurrPcieLinkWidth, pcie_width, 1)
ONE_VALUE(nvmlDeviceGetMaxPcieLinkGeneration, pcie_gen_max, 1)
ONE_VALUE(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_max, 1)
ONE_VALUE(nvmlDeviceGetPersistenceMode, persistence, 1)
ONE_VALUE(nvmlDeviceGetPowerManagementDefaultLimit, power_default, 1000)

lab_nvml_result nvmlDeviceGetEccMode(lab_nvml_device device, unsigned *ret_current,
                                     unsigned *ret_pending) {
    BEGIN_ON(nvmlDeviceGetEccMode, device);
    int code = fake_unsigned(device->gpu, FAKE_ecc, 1, ret_current);
    *ret_pending = *ret_current;
    return code;
}

lab_nvml_result nvmlDeviceGetMaxClockInfo(lab_nvml_device device, int clock, unsigned *ret_mhz) {
    BEGIN_ON(nvmlDeviceGetMaxClockInfo, device);
    return fake_unsigned(device->gpu,
                         clock == LAB_NVML_CLOCK_MEMORY ? FAKE_memory_clock : FAKE_sm_clock_max, 1,
                         ret_mhz);
}

lab_nvml_result nvmlDeviceGetNvLinkState(lab_nvml_device device, unsigned link,
                                         unsigned *ret_active) {
    unsigned links = 0, active = 0;
    BEGIN_ON(nvmlDeviceGetNvLinkState, device);
    int code = fake_unsigned(device->gpu, FAKE_links, 1, &links);
    if (code || link >= links)
        return code ? code : LAB_NVML_INVALID_ARGUMENT;
    code = fake_unsigned(device->gpu, FAKE_links_active, 1, &active);
    *ret_active = link < active;
    return code;
}

lab_nvml_result nvmlDeviceGetGpuFabricInfoV(lab_nvml_device device,
                                            struct lab_nvml_fabric *fabric) {
    unsigned state = 0;
    BEGIN_ON(nvmlDeviceGetGpuFabricInfoV, device);
    if (fabric->version != LAB_NVML_FABRIC_V2)
        return LAB_NVML_VERSION_MISMATCH;
    int code = fake_unsigned(device->gpu, FAKE_fabric, 1, &state);
    fabric->state = (unsigned char)state;
    fabric->status = LAB_NVML_SUCCESS;
    fabric->health_mask = 0;
    return code ? code : fake_unsigned(device->gpu, FAKE_clique, 1, &fabric->clique);
}

#define VIDEO_VALUE(function, key)                                                                 \
    lab_nvml_result function(lab_nvml_device device, unsigned *ret_percent,                        \
                             unsigned *ret_period_us) {                                            \
        BEGIN_ON(function, device);                                                                \
        *ret_period_us = 166667;                                                                   \
        return fake_unsigned(device->gpu, FAKE_##key, 1, ret_percent);                             \
    }
VIDEO_VALUE(nvmlDeviceGetEncoderUtilization, encoder)
VIDEO_VALUE(nvmlDeviceGetDecoderUtilization, decoder)

#define STATE_VALUE(function)                                                                      \
    lab_nvml_result function(lab_nvml_device device, int *ret_state) {                             \
        unsigned value = 0;                                                                        \
        BEGIN_ON(function, device);                                                                \
        int code = fake_unsigned(device->gpu, FAKE_pstate, 1, &value);                             \
        *ret_state = (int)value;                                                                   \
        return code;                                                                               \
    }
STATE_VALUE(nvmlDeviceGetPerformanceState)
STATE_VALUE(nvmlDeviceGetPowerState)

#define REASONS_VALUE(function)                                                                    \
    lab_nvml_result function(lab_nvml_device device, unsigned long long *ret_reasons) {            \
        unsigned value = 0;                                                                        \
        BEGIN_ON(function, device);                                                                \
        int code = fake_unsigned(device->gpu, FAKE_reasons, 1, &value);                            \
        *ret_reasons = value == 0xffffffffu ? ~0ull : value;                                       \
        return code;                                                                               \
    }
REASONS_VALUE(nvmlDeviceGetCurrentClocksEventReasons)
REASONS_VALUE(nvmlDeviceGetCurrentClocksThrottleReasons)

lab_nvml_result nvmlDeviceGetTemperatureV(lab_nvml_device device,
                                          struct lab_nvml_temperature *temperature) {
    unsigned value = 0;
    BEGIN_ON(nvmlDeviceGetTemperatureV, device);
    if (temperature->version != LAB_NVML_TEMPERATURE_V1)
        return LAB_NVML_VERSION_MISMATCH;
    int code = fake_unsigned(device->gpu, FAKE_temperature, 1, &value);
    temperature->temperature_c = value == 0xffffffffu ? 100000 : (int)value;
    return code;
}

lab_nvml_result nvmlDeviceGetTemperature(lab_nvml_device device, int sensor, unsigned *ret_c) {
    BEGIN_ON(nvmlDeviceGetTemperature, device);
    return sensor ? LAB_NVML_INVALID_ARGUMENT
                  : fake_unsigned(device->gpu, FAKE_temperature, 1, ret_c);
}

lab_nvml_result nvmlDeviceGetClockInfo(lab_nvml_device device, int clock, unsigned *ret_mhz) {
    BEGIN_ON(nvmlDeviceGetClockInfo, device);
    return fake_unsigned(device->gpu,
                         clock == LAB_NVML_CLOCK_MEMORY ? FAKE_memory_clock : FAKE_sm_clock, 1,
                         ret_mhz);
}

/* --- counters --- */

static unsigned long long wrapped(double value) {
    if (isnan(value))
        return ~0ull;
    unsigned long long whole = (unsigned long long)value;
    return fake_script.wrap_bits >= 64 ? whole : whole & ((1ull << fake_script.wrap_bits) - 1);
}

static int counter(int gpu, enum fake_key key, double scale, unsigned long long *ret_value) {
    double sum = 0;
    int code = fake_sum(gpu, key, 0, fake_now(), &sum);
    if (!code)
        *ret_value = wrapped(sum * scale);
    return code;
}

static int count(int gpu, enum fake_key key, unsigned long long *ret_value) {
    double value = 0;
    int code = fake_at(gpu, key, &value);
    if (!code)
        *ret_value = wrapped(value);
    return code;
}

lab_nvml_result nvmlDeviceGetTotalEnergyConsumption(lab_nvml_device device,
                                                    unsigned long long *ret_mj) {
    BEGIN_ON(nvmlDeviceGetTotalEnergyConsumption, device);
    return counter(device->gpu, FAKE_power, 1000, ret_mj);
}

/* Only with ECC on. */
static bool counts_errors(int gpu) {
    unsigned on = 0;
    return fake_unsigned(gpu, FAKE_ecc, 1, &on) != 0 || on != 0;
}

lab_nvml_result nvmlDeviceGetTotalEccErrors(lab_nvml_device device, int kind, int since,
                                            unsigned long long *ret_count) {
    (void)since;
    BEGIN_ON(nvmlDeviceGetTotalEccErrors, device);
    if (!counts_errors(device->gpu))
        return LAB_NVML_NOT_SUPPORTED;
    return count(device->gpu,
                 kind == LAB_NVML_ECC_UNCORRECTED ? FAKE_ecc_uncorrected : FAKE_ecc_corrected,
                 ret_count);
}

lab_nvml_result nvmlDeviceGetRemappedRows(lab_nvml_device device, unsigned *ret_corrected,
                                          unsigned *ret_uncorrected, unsigned *ret_pending,
                                          unsigned *ret_failed) {
    BEGIN_ON(nvmlDeviceGetRemappedRows, device);
    int code = fake_unsigned(device->gpu, FAKE_rows_corrected, 1, ret_corrected);
    fake_unsigned(device->gpu, FAKE_rows_uncorrected, 1, ret_uncorrected);
    fake_unsigned(device->gpu, FAKE_rows_pending, 1, ret_pending);
    fake_unsigned(device->gpu, FAKE_rows_failed, 1, ret_failed);
    return code;
}

/* --- field values --- */

enum field_kind { NOW, COUNT, SUM };

static const struct field {
    unsigned id;
    enum fake_key key;
    enum field_kind kind;
    double scale;
} known_fields[] = {
    {LAB_NVML_FI_ECC_CORRECTED, FAKE_ecc_corrected, COUNT, 1},
    {LAB_NVML_FI_ECC_UNCORRECTED, FAKE_ecc_uncorrected, COUNT, 1},
    {LAB_NVML_FI_THROTTLED_POWER, FAKE_held_power, SUM, 1e7}, /* % of a second in ns */
    {LAB_NVML_FI_THROTTLED_SYNC, FAKE_held_sync, SUM, 1e7},
    {LAB_NVML_FI_THROTTLED_THERMAL, FAKE_held_thermal, SUM, 1e7},
    {LAB_NVML_FI_THROTTLED_HW_THERMAL, FAKE_held_hw_thermal, SUM, 1e7},
    {LAB_NVML_FI_THROTTLED_BRAKE, FAKE_held_brake, SUM, 1e7},
    {LAB_NVML_FI_MEMORY_TEMPERATURE, FAKE_memory_temperature, NOW, 1},
    {LAB_NVML_FI_ENERGY, FAKE_power, SUM, 1000},
    {LAB_NVML_FI_LINK_COUNT, FAKE_links, NOW, 1},
    {LAB_NVML_FI_PCIE_REPLAYS, FAKE_replays, COUNT, 1},
    {LAB_NVML_FI_NVLINK_TX_KIB, FAKE_nvlink_tx, SUM, 1024},
    {LAB_NVML_FI_NVLINK_RX_KIB, FAKE_nvlink_rx, SUM, 1024},
    {LAB_NVML_FI_ROWS_CORRECTED, FAKE_rows_corrected, COUNT, 1},
    {LAB_NVML_FI_ROWS_UNCORRECTED, FAKE_rows_uncorrected, COUNT, 1},
    {LAB_NVML_FI_ROWS_PENDING, FAKE_rows_pending, COUNT, 1},
    {LAB_NVML_FI_ROWS_FAILED, FAKE_rows_failed, COUNT, 1},
    {LAB_NVML_FI_POWER_AVERAGE, FAKE_power, NOW, 1000},
    {LAB_NVML_FI_POWER_INSTANT, FAKE_power, NOW, 1000},
    {LAB_NVML_FI_POWER_LIMIT, FAKE_power_limit, NOW, 1000},
    {LAB_NVML_FI_PCIE_TX_BYTES, FAKE_pcie_tx, SUM, MIB},
    {LAB_NVML_FI_PCIE_RX_BYTES, FAKE_pcie_rx, SUM, MIB},
    {LAB_NVML_FI_RECOVERY_ACTION, FAKE_recovery, NOW, 1},
};

static void read_field(int gpu, struct lab_nvml_field *field) {
    field->result = LAB_NVML_INVALID_ARGUMENT;
    field->timestamp_us = (long long)(1e6 * fake_now());
    field->latency_us = 1;
    for (size_t i = 0; i < sizeof known_fields / sizeof *known_fields; i++) {
        const struct field *known = &known_fields[i];
        if (known->id != field->id)
            continue;
        if ((known->key == FAKE_ecc_corrected || known->key == FAKE_ecc_uncorrected) &&
            !counts_errors(gpu)) {
            field->result = LAB_NVML_NOT_SUPPORTED;
        } else if (known->kind == NOW) {
            field->type = LAB_NVML_VALUE_UNSIGNED;
            field->result = fake_unsigned(gpu, known->key, known->scale, &field->value.as_unsigned);
        } else {
            field->type = LAB_NVML_VALUE_ULONGLONG;
            field->result = known->kind == SUM
                                ? counter(gpu, known->key, known->scale, &field->value.as_ulonglong)
                                : count(gpu, known->key, &field->value.as_ulonglong);
        }
    }
}

lab_nvml_result nvmlDeviceGetFieldValues(lab_nvml_device device, int field_count,
                                         struct lab_nvml_field *fields) {
    BEGIN_ON(nvmlDeviceGetFieldValues, device);
    for (int i = 0; i < field_count; i++)
        read_field(device->gpu, &fields[i]);
    return 0;
}
