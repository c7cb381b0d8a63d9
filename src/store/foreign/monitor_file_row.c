/*
 * monitor_file_row.c: takes in what a line of a table or an object of JSON says of one device or
 * process, whoever wrote it: a field's row in a table of fields says what it is. A field of the
 * wrong type is left out and counted, and the rest stays.
 */
#include "store/foreign/monitor_file_reader.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct lab_monitor_field lab_monitor_common[] = {
    {"timestamp", LAB_MONITOR_TIMESTAMP},
    {"elapsed_s", LAB_MONITOR_ELAPSED},
    {"kind", LAB_MONITOR_KIND},
    {"gpu_index", LAB_MONITOR_INDEX},
    {"gpu_id", LAB_MONITOR_INDEX},
    {"index", LAB_MONITOR_INDEX},
    {"gpu", LAB_MONITOR_INDEX},
    {"gpu_uuid", LAB_MONITOR_ID},
    {"uuid", LAB_MONITOR_ID},
    {"id", LAB_MONITOR_ID},
    {"gpu_name", LAB_MONITOR_NAME},
    {"name", LAB_MONITOR_NAME},
    {"simulated", LAB_MONITOR_SIMULATED},
    {"clock_event_reasons", LAB_METRIC_CLOCK_REASONS, 1},
    {NULL},
};

const struct lab_monitor_field *lab_monitor_find_field(const struct lab_monitor_field *fields,
                                                       const char *name) {
    for (const struct lab_monitor_field *field = fields; field && field->key; field++)
        if (lab_str_equal(field->key, name))
            return field;
    return NULL;
}

bool lab_monitor_number(const struct lab_value *value, double *ret_number) {
    *ret_number = lab_value_as_number(value);
    return isfinite(*ret_number);
}

/* What other monitors put where they have no value: "[N/A]", "[Not Supported]", "-". */
static bool is_absent(const char *text) {
    return !*text || *text == '[' || lab_str_equal(text, "-") || lab_str_equal(text, "N/A");
}

/* "3059 MiB", "0x0000000000000004", "P0": 1 = a number, 0 = there is none, -1 = something else. */
static int number_of(const struct lab_value *value, const struct lab_monitor_field *field,
                     double *ret) {
    if (!value || value->type == LAB_VALUE_NULL)
        return 0;
    if (value->type != LAB_VALUE_STRING)
        return lab_monitor_number(value, ret) ? 1 : -1;
    const char *text = value->string + strspn(value->string, " ");
    if (is_absent(text))
        return 0;
    text += field->what == LAB_METRIC_PERFORMANCE_STATE && *text == 'P';
    char *end;
    errno = 0;
    *ret = strtod(text, &end);
    if (end == text || errno || !isfinite(*ret))
        return -1;
    end += strspn(end, " ");
    if (field->suffix && lab_str_starts(end, field->suffix))
        end += strlen(field->suffix);
    return end[strspn(end, " ")] ? -1 : 1;
}

/* The number in the metric's unit. false = there is none; one that is odd is counted. */
static bool take_number(const struct lab_monitor_row *row, const struct lab_monitor_field *field,
                        const struct lab_value *value, double *ret) {
    int found = number_of(value, field, ret);
    if (found < 0)
        lab_monitor_builder_odd(row->builder, "fields that are not numbers", 1);
    if (found <= 0 || (field->sense == LAB_MONITOR_NOT_NEGATIVE && *ret < 0) ||
        (field->sense == LAB_MONITOR_NOT_ZERO && *ret <= 0))
        return false;
    *ret *= field->unit;
    return true;
}

/* --- whose it is --- */

static int index_of(const struct lab_value *value) {
    double number;
    static const struct lab_monitor_field plain = {.what = LAB_MONITOR_INDEX};
    int found = number_of(value, &plain, &number);
    if (found == 0 && value->type == LAB_VALUE_STRING)
        return LAB_MONITOR_NO_INDEX;
    return found > 0 && number >= 0 && number <= INT16_MAX && number == floor(number)
               ? (int)number
               : LAB_MONITOR_BAD_INDEX;
}

void lab_monitor_row_know(struct lab_monitor_row *row, const struct lab_monitor_field *field,
                          const struct lab_value *value) {
    const char *text = lab_value_as_text(value, "");
    text += strspn(text, " ");
    double number;
    if (!value)
        return;
    switch (field->what) {
    case LAB_MONITOR_TIMESTAMP:
        row->time = lab_monitor_value_time(value, &row->time_ns);
        break;
    case LAB_MONITOR_DATE:
        row->date = text;
        break;
    case LAB_MONITOR_CLOCK:
        row->clock = text;
        break;
    case LAB_MONITOR_ELAPSED:
        row->elapsed_s = number_of(value, field, &number) > 0 ? number : (double)NAN;
        break;
    case LAB_MONITOR_KIND:
        row->kind = lab_entity_kind_find(text);
        break;
    case LAB_MONITOR_INDEX:
        if (row->index < 0)
            row->index = index_of(value);
        break;
    case LAB_MONITOR_ID:
        row->id = text;
        break;
    case LAB_MONITOR_NAME:
        row->name = text;
        break;
    case LAB_MONITOR_PCI:
        row->pci = text;
        break;
    case LAB_MONITOR_NODE:
        row->node = number_of(value, field, &number) > 0 && number >= 0 && number <= INT16_MAX
                        ? (int)number
                        : -1;
        break;
    case LAB_MONITOR_SIMULATED:
        row->simulated =
            lab_str_equal(text, "true") || (value->type == LAB_VALUE_BOOL && value->boolean);
        break;
    case LAB_MONITOR_PID:
        row->pid = number_of(value, field, &number) > 0 && number > 0 && number <= INT32_MAX
                       ? (int32_t)number
                       : 0;
        break;
    default:
        break;
    }
}

static int begin_tick(struct lab_monitor_row *row) {
    if (row->time != LAB_MONITOR_TIME_WALL || !(fabs(row->elapsed_s) < 1e9))
        return lab_monitor_builder_tick(row->builder, row->entity, row->time, row->time_ns);
    /* by the steady clock, too */
    int64_t elapsed_ns = llround(row->elapsed_s * LAB_NS_PER_S);
    int64_t time_ns =
        lab_monitor_builder_origin(row->builder, row->time_ns - elapsed_ns) + elapsed_ns;
    return lab_monitor_builder_tick_at(row->builder, row->entity, time_ns, row->time_ns - time_ns);
}

int lab_monitor_row_begin(struct lab_monitor_row *row) {
    const char *id = row->id && *row->id ? row->id : row->pci;
    if (row->kind < 0 || row->index == LAB_MONITOR_BAD_INDEX)
        return -1;
    row->entity =
        lab_monitor_builder_entity(row->builder, (enum lab_entity_kind)row->kind, row->index, id);
    if (row->entity < 0)
        return -1;
    struct lab_entity *facts = lab_monitor_builder_facts(row->builder, row->entity);
    if (row->name && *row->name && !lab_str_equal(row->name, facts->name))
        facts->name = lab_monitor_builder_text(row->builder, row->name);
    if (row->pci && !*facts->pci)
        facts->pci = lab_monitor_builder_text(row->builder, row->pci);
    if (row->node >= 0)
        facts->node = row->node;
    facts->simulated |= row->simulated;
    if (begin_tick(row) < 0)
        return -1;
    row->at_ns = lab_monitor_builder_time(row->builder, row->entity);
    row->gpu = row->kind == LAB_ENTITY_GPU ? row->entity : -1;
    return 0;
}

/* --- what it says --- */

static bool set_reasons(const struct lab_monitor_row *row, const struct lab_value *list) {
    int64_t bits = 0;
    if (!list || list->type != LAB_VALUE_LIST)
        return false;
    for (int i = 0; i < list->count; i++)
        for (const struct lab_clock_reason *reason = lab_clock_reasons; reason->bit; reason++)
            if (lab_str_equal(lab_value_as_text(list->items[i], ""), reason->name))
                bits |= (int64_t)reason->bit;
    lab_monitor_builder_set(row->builder, row->entity, LAB_METRIC_CLOCK_REASONS, -1, bits);
    return true;
}

void lab_monitor_row_set(const struct lab_monitor_row *row, const struct lab_monitor_field *field,
                         int instance, const struct lab_value *value) {
    double number;
    int64_t raw;
    if (field->what >= LAB_METRIC_COUNT ||
        (field->what == LAB_METRIC_CLOCK_REASONS && set_reasons(row, value)) ||
        !take_number(row, field, value, &number))
        return;
    if (lab_monitor_to_raw((enum lab_metric_id)field->what, number, &raw))
        lab_monitor_builder_set(row->builder, row->entity, (enum lab_metric_id)field->what,
                                instance, raw);
    else
        lab_monitor_builder_odd(row->builder, "fields that are not numbers", 1);
}

/* --- processes --- */

/* A command may come as the list of its words. */
static const char *words_of(const struct lab_monitor_row *row, const struct lab_value *value) {
    LAB_AUTO(str, line);
    lab_str_add(&line, lab_value_as_text(value, ""));
    for (int i = 0; value->type == LAB_VALUE_LIST && i < value->count; i++)
        lab_str_printf(&line, "%s%s", i ? " " : "", lab_value_as_text(value->items[i], "?"));
    while (line.length && isspace((unsigned char)line.text[line.length - 1]))
        line.text[--line.length] = '\0';
    return lab_monitor_builder_text(row->builder, line.text);
}

static bool set_text(const struct lab_monitor_row *row, struct lab_process_sample *process,
                     const struct lab_monitor_field *field, const struct lab_value *value) {
    struct lab_process_gpu *gpu;
    switch (field->what) {
    case LAB_MONITOR_PROCESS_NAME:
        process->name = words_of(row, value);
        return true;
    case LAB_MONITOR_USER:
        process->user = words_of(row, value);
        return true;
    case LAB_MONITOR_COMMAND:
        process->command = words_of(row, value);
        return true;
    case LAB_MONITOR_TYPE:
        if (row->gpu < 0)
            return true;
        gpu = lab_monitor_builder_process_gpu(row->builder, process, row->gpu);
        gpu->compute = strchr(lab_value_as_text(value, ""), 'C');
        gpu->graphics = strchr(lab_value_as_text(value, ""), 'G');
        return true;
    default:
        return field->what < LAB_MONITOR_PID || field->what >= LAB_MONITOR_IGNORED;
    }
}

static int64_t whole(double number, double most) {
    return number >= 0 && number < most ? (int64_t)number : -1;
}

void lab_monitor_row_process(const struct lab_monitor_row *row,
                             const struct lab_monitor_field *field, const struct lab_value *value) {
    struct lab_process_sample *process =
        row->pid > 0 && value && value->type != LAB_VALUE_NULL
            ? lab_monitor_builder_process(row->builder, row->at_ns, row->pid)
            : NULL;
    double number;
    if (!process || set_text(row, process, field, value) ||
        !take_number(row, field, value, &number))
        return;
    switch (field->what) {
    case LAB_MONITOR_PARENT:
        process->parent_pid = (int32_t)whole(number, INT32_MAX);
        return;
    case LAB_MONITOR_THREADS:
        process->threads = (int)whole(number, INT32_MAX);
        return;
    case LAB_MONITOR_CPU_PERCENT:
        process->cpu_percent = number;
        return;
    case LAB_MONITOR_RESIDENT:
        process->memory_bytes = whole(number, 9e18);
        return;
    case LAB_MONITOR_RESIDENT_SHARE:
        if (process->memory_bytes < 0)
            process->memory_bytes = whole(number / 100 * row->host_bytes, 9e18);
        return;
    default:
        break;
    }
    if (row->gpu < 0)
        return;
    struct lab_process_gpu *gpu = lab_monitor_builder_process_gpu(row->builder, process, row->gpu);
    if (field->what == LAB_MONITOR_GPU_MEMORY)
        gpu->memory_bytes = whole(number, 9e18);
    else if (field->what == LAB_MONITOR_SM_PERCENT)
        gpu->sm_percent = number;
    else if (field->what == LAB_MONITOR_GPU_MEMORY_PERCENT)
        gpu->memory_percent = number;
}
