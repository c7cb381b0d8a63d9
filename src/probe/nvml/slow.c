/*
 * slow.c: field values, which one call reads many of, and what else is read once a second and when
 * a run begins or ends. The driver takes milliseconds for energy and 0.2 ms for each PCIe counter.
 * Counters are told as they are; one that wraps falls.
 */
#include "probe/nvml/nvml.h"

#define COUNTER_MAX   INT64_MAX /* all bits set is negative then */
#define POWER_MAX_MW  20000000
#define HEAT_MAX_C    200
#define FEW_MAX       1000000 /* rows, and the number of a recovery action */
#define LINKS_MAX     36
#define PCIE_GEN_MAX  16
#define PCIE_LANE_MAX 64

struct field_row {
    unsigned id, scope;
    enum lab_metric_id metric;
    enum nvml_fields group;
    int divisor; /* from the driver's unit to the metric's */
    int64_t max; /* after that */
};

/* Two rows with one metric add up. */
static const struct field_row rows[] = {
    {LAB_NVML_FI_POWER_INSTANT, 0, LAB_METRIC_POWER_INSTANT, NVML_FIELDS_FAST, 1, POWER_MAX_MW},
    {LAB_NVML_FI_MEMORY_TEMPERATURE, 0, LAB_METRIC_MEMORY_TEMPERATURE, NVML_FIELDS_HEAT, 1,
     HEAT_MAX_C},
    {LAB_NVML_FI_ENERGY, 0, LAB_METRIC_ENERGY, NVML_FIELDS_SLOW, 1, COUNTER_MAX},
    {LAB_NVML_FI_POWER_LIMIT, 0, LAB_METRIC_POWER_LIMIT, NVML_FIELDS_SLOW, 1, POWER_MAX_MW},
    {LAB_NVML_FI_PCIE_TX_BYTES, 0, LAB_METRIC_PCIE_TX_BYTES, NVML_FIELDS_SLOW, 1024, COUNTER_MAX},
    {LAB_NVML_FI_PCIE_RX_BYTES, 0, LAB_METRIC_PCIE_RX_BYTES, NVML_FIELDS_SLOW, 1024, COUNTER_MAX},
    {LAB_NVML_FI_NVLINK_TX_KIB, LAB_NVML_ALL_LINKS, LAB_METRIC_NVLINK_TX_BYTES, NVML_FIELDS_SLOW, 1,
     COUNTER_MAX},
    {LAB_NVML_FI_NVLINK_RX_KIB, LAB_NVML_ALL_LINKS, LAB_METRIC_NVLINK_RX_BYTES, NVML_FIELDS_SLOW, 1,
     COUNTER_MAX},
    {LAB_NVML_FI_PCIE_REPLAYS, 0, LAB_METRIC_PCIE_REPLAYS, NVML_FIELDS_SLOW, 1, COUNTER_MAX},
    {LAB_NVML_FI_ECC_CORRECTED, 0, LAB_METRIC_ECC_CORRECTED, NVML_FIELDS_SLOW, 1, COUNTER_MAX},
    {LAB_NVML_FI_ECC_UNCORRECTED, 0, LAB_METRIC_ECC_UNCORRECTED, NVML_FIELDS_SLOW, 1, COUNTER_MAX},
    {LAB_NVML_FI_ROWS_CORRECTED, 0, LAB_METRIC_ROWS_REMAPPED, NVML_FIELDS_SLOW, 1, FEW_MAX},
    {LAB_NVML_FI_ROWS_UNCORRECTED, 0, LAB_METRIC_ROWS_REMAPPED, NVML_FIELDS_SLOW, 1, FEW_MAX},
    {LAB_NVML_FI_ROWS_PENDING, 0, LAB_METRIC_ROWS_PENDING, NVML_FIELDS_SLOW, 1, FEW_MAX},
    {LAB_NVML_FI_ROWS_FAILED, 0, LAB_METRIC_ROWS_FAILED, NVML_FIELDS_SLOW, 1, FEW_MAX},
    {LAB_NVML_FI_THROTTLED_POWER, 0, LAB_METRIC_THROTTLED_POWER, NVML_FIELDS_SLOW, 1000,
     COUNTER_MAX},
    {LAB_NVML_FI_THROTTLED_SYNC, 0, LAB_METRIC_THROTTLED_SYNC, NVML_FIELDS_SLOW, 1000, COUNTER_MAX},
    {LAB_NVML_FI_THROTTLED_THERMAL, 0, LAB_METRIC_THROTTLED_THERMAL, NVML_FIELDS_SLOW, 1000,
     COUNTER_MAX},
    {LAB_NVML_FI_THROTTLED_HW_THERMAL, 0, LAB_METRIC_THROTTLED_HW_THERMAL, NVML_FIELDS_SLOW, 1000,
     COUNTER_MAX},
    {LAB_NVML_FI_THROTTLED_BRAKE, 0, LAB_METRIC_THROTTLED_BRAKE, NVML_FIELDS_SLOW, 1000,
     COUNTER_MAX},
    {LAB_NVML_FI_RECOVERY_ACTION, 0, LAB_METRIC_RECOVERY_ACTION, NVML_FIELDS_SLOW, 1, FEW_MAX},
};
#define ROW_COUNT (sizeof rows / sizeof *rows)
_Static_assert(ROW_COUNT <= 64, "one bit for each");

/* Any type as a whole number; -1 = nothing that can be. */
static int64_t field_value(const struct lab_nvml_field *field) {
    switch (field->type) {
    case LAB_NVML_VALUE_DOUBLE:
        return field->value.as_double >= 0 && field->value.as_double < 9e18
                   ? (int64_t)field->value.as_double
                   : -1;
    case LAB_NVML_VALUE_UNSIGNED:
        return field->value.as_unsigned == 0xffffffffu ? -1 : (int64_t)field->value.as_unsigned;
    case LAB_NVML_VALUE_ULONG:
        return (int64_t)field->value.as_ulong;
    case LAB_NVML_VALUE_ULONGLONG:
        return (int64_t)field->value.as_ulonglong;
    case LAB_NVML_VALUE_LONGLONG:
        return field->value.as_longlong;
    case LAB_NVML_VALUE_INT:
        return field->value.as_int;
    case LAB_NVML_VALUE_USHORT:
        return field->value.as_ushort;
    default:
        return -1;
    }
}

static void take_field(struct nvml_unit *unit, size_t row, const struct lab_nvml_field *field) {
    const struct field_row *known = &rows[row];
    if (nvml_is_refusal(field->result))
        unit->refused_fields |= UINT64_C(1) << row;
    if (field->result != LAB_NVML_SUCCESS)
        return;
    int64_t value = field_value(field);
    if (value < 0)
        return;
    value /= known->divisor;
    if (lab_valid_get(unit->valid, known->metric))
        value += unit->values[known->metric];
    nvml_set(unit, known->metric, value, known->max);
}

void nvml_read_fields(struct nvml_unit *unit, enum nvml_fields group) {
    struct lab_nvml_field fields[ROW_COUNT];
    size_t asked[ROW_COUNT];
    int count = 0;
    enum nvml_question question = group == NVML_FIELDS_HEAT ? NVML_ASK_HEAT_FIELD : NVML_ASK_FIELDS;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].group == group && !(unit->refused_fields >> i & 1)) {
            fields[count] = (struct lab_nvml_field){.id = rows[i].id, .scope = rows[i].scope};
            fields[count].result = LAB_NVML_NOT_SUPPORTED;
            asked[count++] = i;
        }
    if (!count || !NVML_ASK(unit, question, nvmlDeviceGetFieldValues, count, fields))
        return;
    for (int i = 0; i < count; i++)
        if (fields[i].result == LAB_NVML_GPU_IS_LOST)
            nvml_answered(unit, question, "nvmlDeviceGetFieldValues", fields[i].result);
        else
            take_field(unit, asked[i], &fields[i]);
}

/* --- NVLink 5, which counts bytes of each link --- */

static int link_count(struct nvml_unit *unit) {
    struct lab_nvml_field field = {.id = LAB_NVML_FI_LINK_COUNT, .result = LAB_NVML_NOT_SUPPORTED};
    if (!NVML_ASK(unit, NVML_ASK_LINKS, nvmlDeviceGetFieldValues, 1, &field))
        return 0;
    int64_t count = field.result == LAB_NVML_SUCCESS ? field_value(&field) : 0;
    return count < 0 ? 0 : count > LINKS_MAX ? LINKS_MAX : (int)count;
}

static void read_links(struct nvml_unit *unit) {
    struct lab_nvml_field fields[2 * LINKS_MAX];
    int count = link_count(unit);
    int64_t sums[2] = {-1, -1};
    for (int i = 0; i < 2 * count; i++)
        fields[i] = (struct lab_nvml_field){.id = i % 2 ? LAB_NVML_FI_NVLINK5_RX_BYTES
                                                        : LAB_NVML_FI_NVLINK5_TX_BYTES,
                                            .scope = (unsigned)i / 2,
                                            .result = LAB_NVML_NOT_SUPPORTED};
    if (count && NVML_ASK(unit, NVML_ASK_LINKS, nvmlDeviceGetFieldValues, 2 * count, fields))
        for (int i = 0; i < 2 * count; i++) {
            int64_t value = field_value(&fields[i]);
            if (fields[i].result == LAB_NVML_SUCCESS && value >= 0)
                sums[i % 2] = (sums[i % 2] < 0 ? 0 : sums[i % 2]) + value / 1024;
        }
    if (sums[0] < 0 && sums[1] < 0)
        unit->refused |= UINT64_C(1) << NVML_ASK_LINKS; /* none, or nobody counts */
    nvml_set(unit, LAB_METRIC_NVLINK_TX_BYTES, sums[0], COUNTER_MAX);
    nvml_set(unit, LAB_METRIC_NVLINK_RX_BYTES, sums[1], COUNTER_MAX);
}

/* --- what fields didn't tell, older functions may --- */

static bool lacks(const struct nvml_unit *unit, enum lab_metric_id metric) {
    return !lab_valid_get(unit->valid, metric);
}

static void read_older(struct nvml_unit *unit) {
    unsigned long long number = 0;
    unsigned limit = 0, corrected = 0, uncorrected = 0, pending = 0, failed = 0;
    if (lacks(unit, LAB_METRIC_ENERGY) &&
        NVML_ASK(unit, NVML_ASK_ENERGY, nvmlDeviceGetTotalEnergyConsumption, &number))
        nvml_set(unit, LAB_METRIC_ENERGY, (int64_t)number, COUNTER_MAX);
    if (lacks(unit, LAB_METRIC_POWER_LIMIT) &&
        NVML_ASK(unit, NVML_ASK_LIMIT, nvmlDeviceGetEnforcedPowerLimit, &limit))
        nvml_set(unit, LAB_METRIC_POWER_LIMIT, limit, POWER_MAX_MW);
    if (lacks(unit, LAB_METRIC_ECC_CORRECTED) &&
        NVML_ASK(unit, NVML_ASK_ECC, nvmlDeviceGetTotalEccErrors, LAB_NVML_ECC_CORRECTED,
                 LAB_NVML_ECC_SINCE_LOADED, &number))
        nvml_set(unit, LAB_METRIC_ECC_CORRECTED, (int64_t)number, COUNTER_MAX);
    if (lacks(unit, LAB_METRIC_ECC_UNCORRECTED) &&
        NVML_ASK(unit, NVML_ASK_ECC, nvmlDeviceGetTotalEccErrors, LAB_NVML_ECC_UNCORRECTED,
                 LAB_NVML_ECC_SINCE_LOADED, &number))
        nvml_set(unit, LAB_METRIC_ECC_UNCORRECTED, (int64_t)number, COUNTER_MAX);
    if (lacks(unit, LAB_METRIC_ROWS_REMAPPED) &&
        NVML_ASK(unit, NVML_ASK_ROWS, nvmlDeviceGetRemappedRows, &corrected, &uncorrected, &pending,
                 &failed)) {
        nvml_set(unit, LAB_METRIC_ROWS_REMAPPED, (int64_t)corrected + uncorrected, FEW_MAX);
        nvml_set(unit, LAB_METRIC_ROWS_PENDING, pending, FEW_MAX);
        nvml_set(unit, LAB_METRIC_ROWS_FAILED, failed, FEW_MAX);
    }
}

void nvml_read_slow(struct nvml_unit *unit) {
    unsigned value = 0;
    nvml_read_fields(unit, NVML_FIELDS_SLOW);
    if (lacks(unit, LAB_METRIC_NVLINK_TX_BYTES) && lacks(unit, LAB_METRIC_NVLINK_RX_BYTES))
        read_links(unit);
    read_older(unit);
    if (NVML_ASK(unit, NVML_ASK_PCIE_GENERATION, nvmlDeviceGetCurrPcieLinkGeneration, &value))
        nvml_set(unit, LAB_METRIC_PCIE_GENERATION, value, PCIE_GEN_MAX);
    if (NVML_ASK(unit, NVML_ASK_PCIE_WIDTH, nvmlDeviceGetCurrPcieLinkWidth, &value))
        nvml_set(unit, LAB_METRIC_PCIE_WIDTH, value, PCIE_LANE_MAX);
}
