/*
 * export_csv.c: tables of runs, iterations and metrics. The columns of the runs' table are fixed
 * but for the last ones, which follow from the keys that the runs have.
 */
#include "store/export/export_internal.h"

#include "store/study/members.h"
#include "store/study/results.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

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
    struct lab_str text;
    lab_str_init(&text);
    if (value->type == LAB_VALUE_STRING)
        lab_str_add(&text, value->string);
    else if (value->type != LAB_VALUE_NULL)
        lab_json_write(value, 0, &text);
    add_field(out, text.text);
    lab_str_release(&text);
}

/* A JSON value as a field: strings without their quotes, null as nothing, lists and maps as
 * JSON. */
static void add_member(struct lab_str *out, const struct lab_member *member) {
    if (!member || member->value_length == 0)
        return;
    if (!strchr("\"[{n", member->value[0])) {
        lab_str_add_bytes(out, member->value, member->value_length);
        return;
    }
    struct lab_arena arena;
    struct lab_value *value;
    lab_arena_init(&arena);
    if (lab_json_parse(member->value, member->value_length, NULL, &arena, &value, NULL) == 0)
        add_value(out, value);
    lab_arena_release(&arena);
}

/* --- columns by key --- */

struct keys {
    char **items;
    int count, capacity;
};

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_key(struct keys *keys, const struct lab_member *member) {
    for (int i = 0; i < keys->count; i++) {
        if (strlen(keys->items[i]) == member->key_length &&
            memcmp(keys->items[i], member->key, member->key_length) == 0)
            return;
    }
    LAB_MEM_GROW(&keys->items, keys->count, &keys->capacity);
    char *key = lab_mem_alloc(member->key_length + 1, 1);
    memcpy(key, member->key, member->key_length);
    keys->items[keys->count++] = key;
}

static void add_keys(struct keys *keys, struct lab_members *members, const char *text) {
    lab_members_read(members, text ? text : "");
    for (int i = 0; i < members->count; i++)
        add_key(keys, &members->items[i]);
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
    struct lab_str name;
    lab_str_init(&name);
    for (int i = 0; i < keys->count; i++) {
        lab_str_clear(&name);
        lab_str_printf(&name, "%s.%s", prefix, keys->items[i]);
        lab_str_add(out, ",");
        add_field(out, name.text);
    }
    lab_str_release(&name);
}

static void add_columns(struct lab_str *out, const struct keys *keys, struct lab_members *members,
                        const char *text) {
    lab_members_read(members, text ? text : "");
    for (int i = 0; i < keys->count; i++) {
        lab_str_add(out, ",");
        add_member(out, lab_members_find(members, keys->items[i]));
    }
}

/* --- runs --- */

struct runs_table {
    struct keys test, options;
    struct lab_members members, inner; /* room that every run uses again */
};

static const char figure_header[] =
    "samples_per_second,flops_per_second,latency_median_ms,latency_p95_ms,latency_p99_ms,"
    "h2d_gb_per_s,d2h_gb_per_s,compute_utilization,overlap,gang_overlap,peak_memory_mb,"
    "energy_j,power_w,gpu_memory_peak_mb,sm_clock_mhz";

static void add_figures(struct lab_str *out, const struct lab_run *run, struct runs_table *table) {
    static const char *const rates[] = {"samples_per_second", "flops_per_second"};
    static const char *const latencies[] = {"median", "p95", "p99"};
    static const char *const others[] = {"h2d_gb_per_s", "d2h_gb_per_s", "compute_utilization",
                                         "overlap",      "gang_overlap", "peak_memory_mb",
                                         "energy_j",     "power_w",      "gpu_memory_peak_mb",
                                         "sm_clock_mhz"};
    bool done = run->state == LAB_RUN_DONE;
    lab_members_read(&table->members, done && run->result ? run->result : "");
    for (int i = 0; i < 2; i++) {
        lab_str_add(out, ",");
        add_member(out, lab_members_find(&table->members, rates[i]));
    }
    table->inner.count = 0;
    const struct lab_member *latency = lab_members_find(&table->members, "latency_ms");
    if (latency)
        lab_members_read_value(&table->inner, latency);
    for (int i = 0; i < 3; i++) {
        lab_str_add(out, ",");
        add_member(out, lab_members_find(&table->inner, latencies[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        lab_str_add(out, ",");
        add_member(out, lab_members_find(&table->members, others[i]));
    }
}

static void add_ranks(struct lab_str *out, const struct lab_run *run) {
    struct lab_str devices;
    lab_str_init(&devices);
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ";" : "", run->ranks[i].gpu_id);
    lab_str_add(out, ",");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(&devices, "%s%s", i ? ";" : "", run->ranks[i].device);
    add_field(out, devices.text);
    lab_str_add(out, ",");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ";" : "", run->ranks[i].numa_node);
    lab_str_release(&devices);
}

static void add_series(struct lab_str *out, const struct lab_run *run) {
    struct lab_arena arena;
    struct lab_value *list = NULL;
    struct lab_str names;
    lab_arena_init(&arena);
    lab_str_init(&names);
    const char *text = run->series ? run->series : "";
    if (lab_json_parse(text, strlen(text), NULL, &arena, &list, NULL) == 0 &&
        list->type == LAB_VALUE_LIST) {
        for (int i = 0; i < list->count; i++) {
            if (list->items[i]->type == LAB_VALUE_STRING)
                lab_str_printf(&names, "%s%s", names.length ? ";" : "", list->items[i]->string);
        }
    }
    add_field(out, names.text);
    lab_str_release(&names);
    lab_arena_release(&arena);
}

static void add_run(struct lab_str *out, const struct lab_run *run, struct runs_table *table) {
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
    const double rates[] = {run->rate, run->rate_low, run->rate_high};
    for (int i = 0; i < 3; i++) {
        lab_str_add(out, ",");
        add_number(out, done ? rates[i] : NAN);
    }
    lab_str_add(out, ",");
    add_field(out, done ? run->rate_unit : NULL);
    add_figures(out, run, table);
    lab_str_add(out, ",");
    if (ended)
        lab_str_printf(out, "%d", run->exit_code);
    lab_str_add(out, ",");
    add_field(out, run->error);
    add_columns(out, &table->test, &table->members, run->test);
    add_columns(out, &table->options, &table->members, run->options);
    lab_str_add(out, "\n");
}

int lab_export_csv(const struct lab_run *runs, int count, const struct lab_export *out,
                   struct lab_err *err) {
    (void)err;
    struct runs_table table = {0};
    for (int i = 0; i < count; i++) {
        add_keys(&table.test, &table.members, runs[i].test);
        add_keys(&table.options, &table.members, runs[i].options);
    }
    sort_keys(&table.test);
    sort_keys(&table.options);
    struct lab_export_buffer buffer;
    lab_export_buffer_init(&buffer, out);
    lab_str_printf(&buffer.text,
                   "run_id,state,valid,workload,label,gpu_ids,devices,numa_nodes,series,repeat,"
                   "attempts,concurrent,iterations,start_time,duration_s,rate,rate_low,rate_high,"
                   "rate_unit,%s,exit_code,error",
                   figure_header);
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
    lab_members_release(&table.members);
    lab_members_release(&table.inner);
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
        struct lab_arena arena;
        struct lab_store_metric *metrics;
        int metric_count = 0;
        lab_arena_init(&arena);
        result = lab_store_metrics(store, runs[i].number, &arena, &metrics, &metric_count, err);
        for (int m = 0; result == 0 && m < metric_count; m++) {
            add_metric(&buffer.text, &runs[i], &metrics[m]);
            result = lab_export_buffer_pass(&buffer);
        }
        lab_arena_release(&arena);
    }
    if (result == 0)
        result = lab_export_buffer_flush(&buffer);
    lab_export_buffer_release(&buffer);
    return result;
}
