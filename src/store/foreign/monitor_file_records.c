/*
 * monitor_file_records.c: takes in records of GPUs, whoever wrote them. A field of the wrong type
 * is left out and counted, and the rest of its record stays.
 */
#include "store/foreign/monitor_file_reader.h"

#include <math.h>

bool lab_monitor_number(const struct lab_value *value, double *ret_number) {
    if (value && value->type == LAB_VALUE_INT)
        *ret_number = (double)value->integer;
    else if (value && value->type == LAB_VALUE_FLOAT)
        *ret_number = value->number;
    else
        return false;
    return isfinite(*ret_number);
}

static bool is_list(const struct lab_value *record, const char *key) {
    const struct lab_value *value = lab_value_get(record, key);
    return value && value->type == LAB_VALUE_LIST;
}

enum lab_monitor_format lab_monitor_record_format(const struct lab_value *record) {
    if (record->type != LAB_VALUE_MAP)
        return LAB_MONITOR_FORMAT_COUNT;
    if (is_list(record, "multi_gpu_data"))
        return LAB_MONITOR_MULTI;
    if (is_list(record, "gpus"))
        return LAB_MONITOR_EXPERIMENT;
    if (is_list(record, "cpu_percent") || lab_value_get(record, "numa_stats"))
        return LAB_MONITOR_SYSTEM;
    if (lab_value_get(record, "gpu_index") ||
        (lab_value_get(record, "utilization") && lab_value_get(record, "memory_used")))
        return LAB_MONITOR_SINGLE;
    return LAB_MONITOR_FORMAT_COUNT;
}

/* --- a GPU --- */

static int index_of(const struct lab_value *gpu, int place) {
    static const char *const keys[] = {"gpu_index", "gpu_id", "index"};
    for (int i = 0; i < 3; i++) {
        const struct lab_value *value = lab_value_get(gpu, keys[i]);
        if (value && value->type == LAB_VALUE_INT && value->integer >= 0 &&
            value->integer <= INT16_MAX)
            return (int)value->integer;
        if (value)
            return -1;
    }
    return place;
}

static void read_field(struct lab_monitor_builder *builder, int entity,
                       const struct lab_monitor_field *field, const struct lab_value *value) {
    double number;
    int64_t raw;
    if (!value || value->type == LAB_VALUE_NULL)
        return;
    if (!lab_monitor_number(value, &number) ||
        !lab_monitor_to_raw(field->metric, number * field->unit, &raw))
        lab_monitor_builder_odd(builder, "fields that are not numbers", 1);
    else
        lab_monitor_builder_set(builder, entity, field->metric, -1, raw);
}

static void read_reasons(struct lab_monitor_builder *builder, int entity,
                         const struct lab_value *list) {
    int64_t bits = 0;
    if (!list || list->type != LAB_VALUE_LIST)
        return;
    for (int i = 0; i < list->count; i++)
        for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
            if (list->items[i]->type == LAB_VALUE_STRING &&
                lab_str_equal(list->items[i]->string, reason->name))
                bits |= (int64_t)reason->bit;
    lab_monitor_builder_set(builder, entity, LAB_METRIC_CLOCK_REASONS, -1, bits);
}

/* A GPU that gave no answer has its place in a record of an experiment, with nothing but what
 * records repeat. */
static bool says_nothing(const struct lab_value *gpu, const struct lab_monitor_field *fields) {
    for (const struct lab_monitor_field *field = fields; field->key; field++) {
        const struct lab_value *value = lab_value_get(gpu, field->key);
        bool repeated =
            field->metric == LAB_METRIC_MEMORY_TOTAL || field->metric == LAB_METRIC_POWER_LIMIT;
        if (!repeated && value && value->type != LAB_VALUE_NULL)
            return false;
    }
    return true;
}

static void read_gpu(struct lab_monitor_builder *builder, const struct lab_value *gpu, int place,
                     const struct lab_monitor_field *fields, enum lab_monitor_time kind,
                     int64_t time_ns) {
    bool is_map = gpu->type == LAB_VALUE_MAP;
    if (is_map && says_nothing(gpu, fields))
        return;
    int index = is_map ? index_of(gpu, place) : -1;
    int entity = index < 0 ? -1
                           : lab_monitor_builder_entity(builder, LAB_ENTITY_GPU, index,
                                                        lab_value_get_text(gpu, "gpu_uuid", NULL));
    if (entity < 0) {
        lab_monitor_builder_odd(builder, "GPUs without a valid index", 1);
        return;
    }
    if (lab_monitor_builder_tick(builder, entity, kind, time_ns) < 0) {
        lab_monitor_builder_odd(builder, "records with an invalid time", 1);
        return;
    }
    struct lab_entity *facts = lab_monitor_builder_facts(builder, entity);
    const char *name = lab_value_get_text(gpu, "gpu_name", NULL);
    if (name && !lab_str_equal(name, facts->name))
        facts->name = lab_monitor_builder_text(builder, name);
    facts->simulated |= lab_value_get_bool(gpu, "simulated");
    for (const struct lab_monitor_field *field = fields; field->key; field++)
        read_field(builder, entity, field, lab_value_get(gpu, field->key));
    read_reasons(builder, entity, lab_value_get(gpu, "clock_event_reasons"));
}

/* --- a record --- */

static void read_gpus(struct lab_monitor_builder *builder, const struct lab_value *list,
                      const struct lab_monitor_field *fields, enum lab_monitor_time kind,
                      int64_t time_ns) {
    for (int i = 0; i < list->count; i++)
        read_gpu(builder, list->items[i], i, fields, kind, time_ns);
}

bool lab_monitor_read_record(struct lab_monitor_builder *builder, const struct lab_value *record) {
    enum lab_monitor_format format = lab_monitor_record_format(record);
    int64_t time_ns = 0;
    if (format == LAB_MONITOR_FORMAT_COUNT)
        return false;
    enum lab_monitor_time kind =
        lab_monitor_value_time(lab_value_get(record, "timestamp"), &time_ns);
    if (kind == LAB_MONITOR_TIME_NONE)
        lab_monitor_builder_odd(builder, "records without a time stamp", 1);
    else if (format == LAB_MONITOR_SYSTEM)
        lab_monitor_read_system(builder, record, kind, time_ns);
    else if (format == LAB_MONITOR_SINGLE)
        read_gpu(builder, record, 0, lab_monitor_gpu_fields, kind, time_ns);
    else if (format == LAB_MONITOR_MULTI)
        read_gpus(builder, lab_value_get(record, "multi_gpu_data"), lab_monitor_gpu_fields, kind,
                  time_ns);
    else
        read_gpus(builder, lab_value_get(record, "gpus"), lab_monitor_experiment_fields, kind,
                  time_ns);
    return true;
}
