/*
 * monitor_file_records.c: takes in records of JSON. A format is a descriptor: which keys its
 * records have, and which of its lists hold devices or processes with which fields.
 */
#include "store/foreign/monitor_file_reader.h"

#include <math.h>
#include <string.h>

static const struct lab_monitor_json multi = {
    .name = "multi_gpu_data",
    .format = LAB_MONITOR_MULTI,
    .time = "timestamp",
    .marks = {"multi_gpu_data"},
    .lists = {{"multi_gpu_data", LAB_ENTITY_GPU, lab_monitor_gpu_fields}},
};
static const struct lab_monitor_json experiment = {
    .name = "gpus",
    .format = LAB_MONITOR_EXPERIMENT,
    .time = "timestamp",
    .marks = {"gpus"},
    .lists = {{"gpus", LAB_ENTITY_GPU, lab_monitor_experiment_fields}},
};
static const struct lab_monitor_json system_of_lists = {.name = "cpu_percent",
                                                        .format = LAB_MONITOR_SYSTEM,
                                                        .time = "timestamp",
                                                        .marks = {"cpu_percent"},
                                                        .read = lab_monitor_read_system};
static const struct lab_monitor_json system_of_text = {
    .format = LAB_MONITOR_SYSTEM,
    .time = "timestamp",
    .words = {"numa_stats"},
    .read = lab_monitor_read_system,
};
static const struct lab_monitor_json single = {
    .name = "gpu_index",
    .format = LAB_MONITOR_SINGLE,
    .time = "timestamp",
    .words = {"gpu_index"},
    .lists = {{NULL, LAB_ENTITY_GPU, lab_monitor_gpu_fields}},
};
static const struct lab_monitor_json nameless = {
    .format = LAB_MONITOR_SINGLE,
    .time = "timestamp",
    .words = {"utilization", "memory_used"},
    .lists = {{NULL, LAB_ENTITY_GPU, lab_monitor_gpu_fields}},
};

/* The first that fits is taken. */
static const struct lab_monitor_json *const formats[] = {
    &lab_monitor_all_smi,
    &lab_monitor_all_smi_frame,
    &lab_monitor_all_smi_index,
    &lab_monitor_gpustat,
    &multi,
    &experiment,
    &system_of_lists,
    &system_of_text,
    &single,
    &nameless,
};
enum { FORMATS = sizeof formats / sizeof *formats };

void lab_monitor_add_json_names(struct lab_str *out) {
    for (int i = 0; i < FORMATS; i++)
        if (formats[i]->name)
            lab_str_printf(out, "%s%s", i ? ", " : "", formats[i]->name);
}

const struct lab_monitor_json *lab_monitor_find_json(const struct lab_value *record) {
    for (int i = 0; i < FORMATS; i++) {
        bool fits = record->type == LAB_VALUE_MAP;
        for (int k = 0; k < LAB_MONITOR_MARKS && fits; k++) {
            const struct lab_value *list =
                formats[i]->marks[k] ? lab_value_get(record, formats[i]->marks[k]) : NULL;
            fits = (!formats[i]->marks[k] || (list && list->type == LAB_VALUE_LIST)) &&
                   (!formats[i]->words[k] || lab_value_get(record, formats[i]->words[k]));
        }
        if (fits)
            return formats[i];
    }
    return NULL;
}

/* A key, or a key in a map: "gpm_metrics.sm_occupancy". */
static const struct lab_value *get(const struct lab_value *object, const char *key) {
    const struct lab_value *value = lab_value_get(object, key);
    const char *dot = value ? NULL : strchr(key, '.');
    char head[32] = "";
    if (!dot || (size_t)(dot - key) >= sizeof head)
        return value;
    memcpy(head, key, (size_t)(dot - key));
    return lab_value_get(lab_value_get(object, head), dot + 1);
}

/* A GPU that gave no answer has its place in a record, with nothing but what records repeat. */
static bool says_nothing(const struct lab_value *object, const struct lab_monitor_field *fields) {
    if (lab_value_get_bool(object, "repeated"))
        return true;
    for (const struct lab_monitor_field *field = fields; field->key; field++) {
        const struct lab_value *value = get(object, field->key);
        bool repeated =
            field->what == LAB_METRIC_MEMORY_TOTAL || field->what == LAB_METRIC_POWER_LIMIT;
        if (!repeated && field->what < LAB_METRIC_COUNT && value && value->type != LAB_VALUE_NULL)
            return false;
    }
    return true;
}

/* A GPU that is lost is told; one whose values stay the same, or another device, isn't. */
static void tell_of_lost(struct lab_monitor_builder *builder, const struct lab_value *object,
                         int place) {
    LAB_AUTO(str, text);
    const char *name = lab_value_get_text(object, "name", "");
    if (lab_value_get_bool(object, "repeated"))
        return;
    lab_str_printf(&text, "samples of GPU %d, which has no values%s%.64s",
                   (int)lab_value_get_int(object, "index", place), *name ? ": " : "", name);
    lab_str_make_printable(text.text);
    lab_monitor_builder_odd(builder, lab_monitor_builder_text(builder, text.text), 1);
}

static void know(struct lab_monitor_row *row, const struct lab_monitor_field *fields,
                 const struct lab_value *object) {
    for (const struct lab_monitor_field *field = fields; field->key; field++)
        if (field->what >= LAB_METRIC_COUNT && field->what != LAB_MONITOR_TIMESTAMP)
            lab_monitor_row_know(row, field, get(object, field->key));
}

void lab_monitor_take_processes(const struct lab_monitor_row *row,
                                const struct lab_monitor_field *fields,
                                const struct lab_value *list) {
    if (!list || list->type != LAB_VALUE_LIST)
        return;
    lab_monitor_builder_list(row->builder, row->at_ns);
    for (int i = 0; i < list->count; i++) {
        struct lab_monitor_row process = *row;
        process.id = NULL;
        know(&process, fields, list->items[i]);
        if (process.id) /* it names its GPU, or none */
            process.gpu = *process.id ? lab_monitor_builder_find(row->builder, LAB_ENTITY_GPU,
                                                                 process.index, process.id)
                                      : -1;
        for (const struct lab_monitor_field *field = fields; field->key; field++)
            lab_monitor_row_process(&process, field, get(list->items[i], field->key));
    }
}

static void read_device(struct lab_monitor_builder *builder,
                        const struct lab_monitor_list_format *list, const struct lab_value *object,
                        int place, enum lab_monitor_time time, int64_t time_ns) {
    struct lab_monitor_row row = lab_monitor_row_new(builder, list->kind);
    row.time = time;
    row.time_ns = time_ns;
    if (object->type != LAB_VALUE_MAP)
        row.index = LAB_MONITOR_BAD_INDEX;
    else if (says_nothing(object, list->fields)) {
        if (list->kind == LAB_ENTITY_GPU)
            tell_of_lost(builder, object, place);
        return;
    }
    know(&row, lab_monitor_common, object);
    know(&row, list->fields, object);
    if (row.index == LAB_MONITOR_NO_INDEX)
        row.index = place;
    if (lab_monitor_row_begin(&row) < 0) {
        lab_monitor_builder_odd(
            builder, row.entity < 0 ? "GPUs without a valid index" : "records with an invalid time",
            1);
        return;
    }
    for (const struct lab_monitor_field *field = list->fields; field->key; field++)
        lab_monitor_row_set(&row, field, -1, get(object, field->key));
    if (list->kind == LAB_ENTITY_GPU)
        lab_monitor_row_set(&row, lab_monitor_find_field(lab_monitor_common, "clock_event_reasons"),
                            -1, lab_value_get(object, "clock_event_reasons"));
    if (list->more)
        list->more(&row, object);
    if (list->process_fields)
        lab_monitor_take_processes(&row, list->process_fields, lab_value_get(object, "processes"));
}

bool lab_monitor_read_record(struct lab_monitor_builder *builder, const struct lab_value *record) {
    const struct lab_monitor_json *format = lab_monitor_find_json(record);
    int64_t time_ns = 0;
    if (!format)
        return false;
    if (!format->time)
        return true; /* it holds no sample */
    enum lab_monitor_time time =
        lab_monitor_value_time(lab_value_get(record, format->time), &time_ns);
    if (time == LAB_MONITOR_TIME_NONE)
        lab_monitor_builder_odd(builder, "records without a time stamp", 1);
    else if (format->read)
        format->read(builder, record, time, time_ns);
    for (int i = 0; time != LAB_MONITOR_TIME_NONE && i < LAB_MONITOR_LISTS; i++) {
        const struct lab_monitor_list_format *list = &format->lists[i];
        const struct lab_value *items = list->key ? lab_value_get(record, list->key) : NULL;
        if (!list->fields)
            break;
        if (!list->key)
            read_device(builder, list, record, 0, time, time_ns);
        for (int k = 0; items && items->type == LAB_VALUE_LIST && k < items->count; k++)
            read_device(builder, list, items->items[k], k, time, time_ns);
    }
    if (format->after)
        format->after(builder, record);
    return true;
}
