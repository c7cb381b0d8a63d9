/*
 * export_csv.c: tables of runs, iterations and metrics. The columns of the runs' table are fixed
 * (those of results are rows of model/result.h) but for the last ones, which follow from the keys
 * that the runs have.
 */
#include "store/export/export_internal.h"

#include "store/study/results.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- fields --- */

static void add_field(struct lab_str *out, const char *text) {
    if (!text)
        return;
    if (!text[strcspn(text, ",\"\r\n")]) {
        lab_str_add(out, text);
        return;
    }
    lab_str_add(out, "\"");
    for (const char *at = text; *at;) {
        size_t plain = strcspn(at, "\"");
        lab_str_add_bytes(out, at, plain);
        at += plain;
        if (*at) {
            lab_str_add(out, "\"\"");
            at++;
        }
    }
    lab_str_add(out, "\"");
}

/* NaN = there is none. */
static void add_number(struct lab_str *out, double value) {
    if (!isnan(value))
        lab_str_add_double(out, value);
}

static void add_value(struct lab_str *out, const struct lab_value *value) {
    LAB_AUTO(str, text);
    if (value->type == LAB_VALUE_STRING)
        lab_str_add(&text, value->string);
    else if (value->type != LAB_VALUE_NULL)
        lab_json_write(value, 0, &text);
    add_field(out, text.text);
}

/* --- columns by key --- */

struct keys {
    char **items;
    int count, capacity;
};

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_key(struct keys *keys, const char *key) {
    for (int i = 0; i < keys->count; i++)
        if (strcmp(keys->items[i], key) == 0)
            return;
    LAB_MEM_GROW(&keys->items, keys->count, &keys->capacity);
    keys->items[keys->count++] = lab_mem_strdup(key);
}

static void add_keys(struct keys *keys, const char *text) {
    LAB_AUTO(arena, arena);
    const struct lab_value *map = lab_result_json(text, &arena);
    for (int i = 0; map->type == LAB_VALUE_MAP && i < map->count; i++)
        add_key(keys, map->keys[i]);
}

static void sort_keys(struct keys *keys) {
    if (keys->count)
        qsort(keys->items, (size_t)keys->count, sizeof *keys->items, compare_keys);
}

static void release_keys(struct keys *keys) {
    for (int i = 0; i < keys->count; i++)
        lab_mem_free(keys->items[i]);
    lab_mem_free(keys->items);
}

static void add_headers(struct lab_str *out, const char *prefix, const struct keys *keys) {
    LAB_AUTO(str, name);
    for (int i = 0; i < keys->count; i++) {
        lab_str_clear(&name);
        lab_str_printf(&name, "%s.%s", prefix, keys->items[i]);
        lab_str_add(out, ",");
        add_field(out, name.text);
    }
}

/* JSON values as fields: strings without their quotes, null as nothing, lists and maps as JSON. */
static void add_columns(struct lab_str *out, const struct keys *keys, const char *text) {
    LAB_AUTO(arena, arena);
    const struct lab_value *map = lab_result_json(text, &arena);
    for (int i = 0; i < keys->count; i++) {
        const struct lab_value *value = lab_value_get(map, keys->items[i]);
        lab_str_add(out, ",");
        if (value)
            add_value(out, value);
    }
}

/* --- runs --- */

struct runs_table {
    struct keys test, options;
};

/* "latency_ms.p95" is the column latency_p95_ms, "gpu.power_w" is power_w. */
static void add_column_name(struct lab_str *out, const char *key) {
    static const char unit[] = "_ms";
    const char *point = strchr(key, '.');
    if (lab_str_starts(key, "gpu."))
        key = point + 1;
    else if (point && point - key > 3 && strncmp(point - 3, unit, 3) == 0) {
        lab_str_printf(out, "%.*s_%s%s", (int)(point - key) - 3, key, point + 1, unit);
        return;
    }
    for (; *key; key++)
        lab_str_add_bytes(out, *key == '.' ? "_" : key, 1);
}

static bool is_shown(const struct lab_result_row *row) {
    return row->shown & LAB_RESULT_CSV;
}

static void add_result_header(struct lab_str *out) {
    for (const struct lab_result_row *const *row = lab_result_order(); *row; row++)
        if (is_shown(*row)) {
            lab_str_add(out, ",");
            add_column_name(out, (*row)->key);
        }
}

static void add_result(struct lab_str *out, const struct lab_result *result) {
    for (const struct lab_result_row *const *row = lab_result_order(); *row; row++) {
        const void *at = lab_result_get(result, *row);
        if (!is_shown(*row))
            continue;
        lab_str_add(out, ",");
        if (!lab_result_has(result, *row))
            continue;
        if ((*row)->type == LAB_RESULT_NUMBER)
            add_number(out, *(const double *)at);
        else if ((*row)->type == LAB_RESULT_COUNT)
            lab_str_printf(out, "%lld", (long long)*(const int64_t *)at);
        else if ((*row)->type == LAB_RESULT_FLAG)
            lab_str_add(out, *(const signed char *)at ? "true" : "false");
        else if ((*row)->type != LAB_RESULT_LIST)
            add_field(out, *(const char *const *)at);
    }
}

static void add_ranks(struct lab_str *out, const struct lab_run *run) {
    LAB_AUTO(str, devices);
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ";" : "", run->ranks[i].gpu_id);
    lab_str_add(out, ",");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(&devices, "%s%s", i ? ";" : "", run->ranks[i].device);
    add_field(out, devices.text);
    lab_str_add(out, ",");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ";" : "", run->ranks[i].numa_node);
}

static void add_series(struct lab_str *out, const struct lab_run *run) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, names);
    const struct lab_value *list = lab_result_json(run->series, &arena);
    for (int i = 0; list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            lab_str_printf(&names, "%s%s", names.length ? ";" : "", list->items[i]->string);
    add_field(out, names.text);
}

static void add_run(struct lab_str *out, const struct lab_run *run,
                    const struct runs_table *table) {
    bool done = run->state == LAB_RUN_DONE, ended = done || run->state == LAB_RUN_FAILED;
    add_field(out, run->id);
    lab_str_printf(out, ",%s,%s,", lab_run_state_name(run->state),
                   !ended               ? ""
                   : done && run->valid ? "true"
                                        : "false");
    add_field(out, run->workload);
    lab_str_add(out, ",");
    add_field(out, run->label);
    lab_str_add(out, ",");
    add_ranks(out, run);
    lab_str_add(out, ",");
    add_series(out, run);
    lab_str_printf(out, ",%d,%d,%s,%lld,", run->repeat, run->attempts,
                   run->concurrent ? "true" : "false", (long long)run->iterations);
    if (run->epoch)
        lab_results_add_time(run->start_wall_ns, out);
    lab_str_add(out, ",");
    add_number(out, ended ? (double)(run->end_ns - run->start_ns) / LAB_NS_PER_S : NAN);
    add_result(out, lab_run_result(run));
    lab_str_add(out, ",");
    if (ended)
        lab_str_printf(out, "%d", run->exit_code);
    lab_str_add(out, ",");
    add_field(out, run->error);
    lab_str_add(out, lab_results_is_simulated(run) ? ",true" : ",false");
    add_columns(out, &table->test, run->test);
    add_columns(out, &table->options, run->options);
    lab_str_add(out, "\n");
}

int lab_export_csv(const struct lab_run *runs, int count, const struct lab_export *out,
                   struct lab_err *err) {
    (void)err;
    struct runs_table table = {0};
    for (int i = 0; i < count; i++) {
        add_keys(&table.test, runs[i].test);
        add_keys(&table.options, runs[i].options);
    }
    sort_keys(&table.test);
    sort_keys(&table.options);
    struct lab_export_buffer buffer;
    lab_export_buffer_init(&buffer, out);
    lab_str_add(&buffer.text,
                "run_id,state,valid,workload,label,gpu_ids,devices,numa_nodes,series,repeat,"
                "attempts,concurrent,iterations,start_time,duration_s");
    add_result_header(&buffer.text);
    lab_str_add(&buffer.text, ",exit_code,error,simulated");
    add_headers(&buffer.text, "test", &table.test);
    add_headers(&buffer.text, "option", &table.options);
    lab_str_add(&buffer.text, "\n");
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        add_run(&buffer.text, &runs[i], &table);
        result = lab_export_buffer_pass(&buffer);
    }
    if (result == 0)
        result = lab_export_buffer_flush(&buffer);
    lab_export_buffer_release(&buffer);
    release_keys(&table.test);
    release_keys(&table.options);
    return result;
}

/* --- iterations --- */

struct iterations_table {
    struct lab_export_buffer buffer;
    struct lab_str prefix; /* run and rank */
};

static int add_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    struct iterations_table *table = state;
    struct lab_str *out = &table->buffer.text;
    for (size_t i = 0; i < count; i++) {
        lab_str_add_bytes(out, table->prefix.text, table->prefix.length);
        lab_str_printf(out, "%lld,", (long long)(first + (int64_t)i));
        lab_export_add_times(&items[i], ",", "", out);
        lab_str_add(out, "\n");
        if (lab_export_buffer_pass(&table->buffer) < 0)
            return -1;
    }
    return 0;
}

int lab_export_iterations_csv(struct lab_store *store, const struct lab_run *runs, int count,
                              const struct lab_export *out, struct lab_err *err) {
    struct iterations_table table;
    lab_export_buffer_init(&table.buffer, out);
    lab_str_init(&table.prefix);
    lab_str_add(&table.buffer.text,
                "run_id,rank,iteration,start_ns,end_ns,h2d_ms,compute_ms,d2h_ms,"
                "latency_ms\n");
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        for (int rank = 0; rank < runs[i].rank_count && result == 0; rank++) {
            lab_str_clear(&table.prefix);
            add_field(&table.prefix, runs[i].id);
            lab_str_printf(&table.prefix, ",%d,", rank);
            result = lab_store_each_chunk(store, runs[i].number, rank, add_chunk, &table, err);
        }
    }
    if (result == 0)
        result = lab_export_buffer_flush(&table.buffer);
    lab_str_release(&table.prefix);
    lab_export_buffer_release(&table.buffer);
    return result;
}

/* --- metrics --- */

static void add_metric(struct lab_str *out, const struct lab_run *run,
                       const struct lab_store_metric *metric) {
    add_field(out, run->id);
    lab_str_add(out, ",");
    if (metric->rank >= 0)
        lab_str_printf(out, "%d", metric->rank);
    lab_str_add(out, ",");
    add_field(out, metric->name);
    lab_str_add(out, ",");
    add_field(out, metric->unit);
    lab_str_add(out, ",");
    lab_str_add_double(out, metric->value);
    lab_str_printf(out, ",%lld\n", (long long)metric->time_ns);
}

int lab_export_metrics_csv(struct lab_store *store, const struct lab_run *runs, int count,
                           const struct lab_export *out, struct lab_err *err) {
    struct lab_export_buffer buffer;
    lab_export_buffer_init(&buffer, out);
    lab_str_add(&buffer.text, "run_id,rank,name,unit,value,time_ns\n");
    int result = 0;
    for (int i = 0; i < count && result == 0; i++) {
        LAB_AUTO(arena, arena);
        struct lab_store_metric *metrics;
        int metric_count = 0;
        result = lab_store_metrics(store, runs[i].number, &arena, &metrics, &metric_count, err);
        for (int m = 0; result == 0 && m < metric_count; m++) {
            add_metric(&buffer.text, &runs[i], &metrics[m]);
            result = lab_export_buffer_pass(&buffer);
        }
    }
    if (result == 0)
        result = lab_export_buffer_flush(&buffer);
    lab_export_buffer_release(&buffer);
    return result;
}
