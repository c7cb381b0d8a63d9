/*
 * results.c: runs as the files beside a study's database show them. There is one way to write a
 * run, as text; the tree is that text, read.
 *
 * Every run has every field, so that a table can be made of them without a look at each; null =
 * there is no such figure. A field's value stands on one line, and stored texts are taken as they
 * are.
 */
#include "store/study/results.h"

#include "store/study/members.h"

#include "base/clock.h"
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- parts of a document --- */

struct document {
    struct lab_str *out;
    const char *line; /* what goes before each field: a line break and its indent, or a space */
    bool first;
};

static void add_key(struct document *document, const char *key) {
    lab_str_printf(document->out, "%s%s\"%s\": ", document->first ? "" : ",", document->line, key);
    document->first = false;
}

static void add_text(struct document *document, const char *key, const char *text) {
    add_key(document, key);
    lab_json_write(
        &(struct lab_value){.type = text ? LAB_VALUE_STRING : LAB_VALUE_NULL, .string = text}, 0,
        document->out);
}

static void add_number(struct document *document, const char *key, double value) {
    add_key(document, key);
    lab_json_write(&(struct lab_value){.type = LAB_VALUE_FLOAT, .number = value}, 0, document->out);
}

static void add_int(struct document *document, const char *key, int64_t value) {
    add_key(document, key);
    lab_str_printf(document->out, "%lld", (long long)value);
}

static void add_bool(struct document *document, const char *key, bool value) {
    add_key(document, key);
    lab_str_add(document->out, value ? "true" : "false");
}

/* A member as it stands in its text; `fallback` where there is none. */
static void add_member(struct document *document, const char *key,
                       const struct lab_members *members, const char *fallback) {
    const struct lab_member *member = lab_members_find(members, key);
    add_key(document, key);
    if (member)
        lab_str_add_bytes(document->out, member->value, member->value_length);
    else
        lab_str_add(document->out, fallback);
}

/* A whole stored text; `fallback` where it is none that JSON knows. */
static void add_stored(struct document *document, const char *key, const char *text,
                       const char *fallback) {
    add_key(document, key);
    lab_str_add(document->out, text && lab_members_check(text) ? text : fallback);
}

/* --- a run --- */

static bool has_ended(const struct lab_run *run) {
    return run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
}

static bool is_simulated(const struct lab_run *run) {
    bool simulated = false;
    for (int i = 0; i < run->rank_count; i++)
        simulated |= lab_run_device_is_simulated(run->ranks[i].device);
    return simulated;
}

static double duration_s(const struct lab_run *run) {
    return (double)(run->end_ns - run->start_ns) / (double)LAB_NS_PER_S;
}

void lab_results_add_time(int64_t wall_ns, struct lab_str *out) {
    time_t seconds = (time_t)(wall_ns / LAB_NS_PER_S);
    struct tm local;
    localtime_r(&seconds, &local);
    long zone_min = labs(local.tm_gmtoff) / 60;
    lab_str_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%06d%c%02ld:%02ld", local.tm_year + 1900,
                   local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                   (int)(wall_ns % LAB_NS_PER_S / LAB_NS_PER_US), local.tm_gmtoff < 0 ? '-' : '+',
                   zone_min / 60, zone_min % 60);
}

static void add_ranks(struct document *document, const struct lab_run *run) {
    struct lab_str *out = document->out;
    if (run->rank_count)
        add_int(document, "gpu_id", run->ranks[0].gpu_id);
    else
        add_text(document, "gpu_id", NULL);
    add_key(document, "gpu_ids");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ", " : "[", run->ranks[i].gpu_id);
    lab_str_add(out, run->rank_count ? "]" : "[]");
    if (run->rank_count && run->ranks[0].numa_node >= 0)
        add_int(document, "numa_node", run->ranks[0].numa_node);
    else
        add_text(document, "numa_node", NULL);
    add_key(document, "numa_nodes");
    for (int i = 0; i < run->rank_count; i++)
        lab_str_printf(out, "%s%d", i ? ", " : "[", run->ranks[i].numa_node);
    lab_str_add(out, run->rank_count ? "]" : "[]");
    add_key(document, "devices");
    for (int i = 0; i < run->rank_count; i++) {
        lab_str_add(out, i ? ", " : "[");
        lab_json_write(
            &(struct lab_value){.type = LAB_VALUE_STRING, .string = run->ranks[i].device}, 0, out);
    }
    lab_str_add(out, run->rank_count ? "]" : "[]");
}

static const char *const model_keys[] = {"patch_size", "depth", "heads", "dim", "mlp_dim", NULL};

/* Whether the run is of such a model. */
static bool has_model(const struct lab_members *options) {
    return lab_members_find(options, model_keys[0]) != NULL;
}

static void write_vit_config(const struct lab_run *run, const struct lab_members *options,
                             struct lab_str *out) {
    struct document inner = {out, "", true};
    lab_str_add(out, "{");
    add_text(&inner, "name", run->label);
    inner.line = " ";
    for (int i = 0; model_keys[i]; i++)
        add_member(&inner, model_keys[i], options, "null");
    lab_str_add(out, "}");
}

/* Settings of the test in the order that people know, whether they are the study's or the
 * workload's; then what else the study says of it. */
static void write_test_config(const struct lab_members *test, const struct lab_members *options,
                              struct lab_str *out) {
    static const char *const keys[] = {
        "num_samples",  "batch_size",    "warmup_samples", "memory_size_mb",
        "tensor_shape", "compile_model", "timeout_s",      "dtype",
        "d2h",          "fill",          "sync_frequency",
    };
    struct document inner = {out, "", true};
    lab_str_add(out, "{");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct lab_members *from = lab_members_find(test, keys[i]) ? test : options;
        if (!lab_members_find(from, keys[i]))
            continue;
        add_member(&inner, keys[i], from, "null");
        inner.line = " ";
    }
    for (int i = 0; i < test->count; i++) {
        const struct lab_member *item = &test->items[i];
        bool listed = false;
        for (size_t k = 0; k < sizeof keys / sizeof *keys && !listed; k++)
            listed = strlen(keys[k]) == item->key_length &&
                     memcmp(keys[k], item->key, item->key_length) == 0;
        if (listed)
            continue;
        lab_str_printf(out, "%s\"%.*s\": ", inner.first ? "" : ", ", (int)item->key_length,
                       item->key);
        lab_str_add_bytes(out, item->value, item->value_length);
        inner.first = false;
    }
    lab_str_add(out, "}");
}

static void add_config(struct document *document, const struct lab_run *run,
                       struct lab_members *options, struct lab_members *other) {
    add_text(document, "workload", run->workload);
    add_text(document, "label", run->label);
    lab_members_read(options, run->options ? run->options : "");
    add_key(document, "vit_config");
    if (has_model(options))
        write_vit_config(run, options, document->out);
    else
        lab_str_add(document->out, "null");
    lab_members_read(other, run->test ? run->test : "");
    add_key(document, "test_config");
    write_test_config(other, options, document->out);
    add_stored(document, "options", run->options, "{}");
    add_stored(document, "series", run->series, "[]");
    add_int(document, "repeat", run->repeat);
    add_int(document, "iterations", run->iterations);
    add_int(document, "warmup_iterations", run->warmup_iterations);
}

static void add_log(struct document *document, const char *key, const struct lab_run *run,
                    const char *suffix) {
    struct lab_str path;
    lab_str_init(&path);
    lab_str_printf(&path, "logs/%s.%s", run->id, suffix);
    add_text(document, key, path.text);
    lab_str_release(&path);
}

/* Where the run's trace lies, below the study's folder; of a gang the slowest rank's. */
static void add_trace(struct document *document, const struct lab_run *run) {
    struct lab_members result = LAB_MEMBERS_INIT, trace = LAB_MEMBERS_INIT;
    const struct lab_member *found = NULL;
    if (run->state == LAB_RUN_DONE && run->result && lab_members_read(&result, run->result) == 0)
        found = lab_members_find(&result, "trace");
    if (found)
        lab_members_read_value(&trace, found);
    add_key(document, "trace");
    const struct lab_member *path = lab_members_find(&trace, "path");
    if (path)
        lab_str_add_bytes(document->out, path->value, path->value_length);
    else
        lab_str_add(document->out, "null");
    lab_members_release(&trace);
    lab_members_release(&result);
}

static void add_life(struct document *document, const struct lab_run *run) {
    bool ended = has_ended(run);
    add_key(document, "start_time");
    if (run->epoch) {
        lab_str_add(document->out, "\"");
        lab_results_add_time(run->start_wall_ns, document->out);
        lab_str_add(document->out, "\"");
    } else {
        lab_str_add(document->out, "null");
    }
    add_number(document, "duration", ended ? duration_s(run) : NAN);
    add_bool(document, "success", run->state == LAB_RUN_DONE);
    if (ended)
        add_int(document, "exit_code", run->exit_code);
    else
        add_text(document, "exit_code", NULL);
    add_log(document, "stdout_log", run, "stdout");
    add_log(document, "stderr_log", run, "stderr");
    add_trace(document, run);
    add_text(document, "error", run->error && *run->error ? run->error : NULL);
    add_int(document, "attempts", run->attempts);
    add_bool(document, "concurrent", run->concurrent);
}

static void add_figures(struct document *document, const struct lab_run *run,
                        struct lab_members *result) {
    static const char *const keys[] = {
        "samples_per_second",  "flops_per_second", "latency_ms",
        "interval_ms",         "h2d_gb_per_s",     "d2h_gb_per_s",
        "compute_utilization", "overlap",          "gang_overlap",
        "peak_memory_mb",      "energy_j",         "power_w",
        "gpu_memory_peak_mb",  "sm_clock_mhz",     "throttled_s",
        "foreign_processes",
    };
    /* of an iteration, by workloads that tell them */
    static const char *const parts[] = {
        "forward_ms", "backward_ms",           "gradient_ms",
        "update_ms",  "communication_time_ms", "exposed_communication_ms"};
    bool done = run->state == LAB_RUN_DONE;
    lab_members_read(result, done && run->result ? run->result : "");
    add_number(document, "rate", done ? run->rate : NAN);
    add_number(document, "rate_low", done ? run->rate_low : NAN);
    add_number(document, "rate_high", done ? run->rate_high : NAN);
    add_text(document, "rate_unit",
             done && run->rate_unit && *run->rate_unit ? run->rate_unit : NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_member(document, keys[i], result, "null");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (lab_members_find(result, parts[i]))
            add_member(document, parts[i], result, "null");
    add_key(document, "validity");
    struct document inner = {document->out, "", true};
    lab_str_add(document->out, "{");
    if (has_ended(run))
        add_bool(&inner, "valid", done && run->valid);
    else
        add_text(&inner, "valid", NULL);
    inner.line = " ";
    add_member(&inner, "invalid", result, "[]");
    add_member(&inner, "warnings", result, "[]");
    lab_str_add(document->out, "}");
    add_member(document, "ranks", result, "[]");
    add_bool(document, "simulated", is_simulated(run));
}

void lab_results_write_run(const struct lab_run *run, const char *line, struct lab_str *out) {
    struct lab_members one = LAB_MEMBERS_INIT, other = LAB_MEMBERS_INIT;
    struct document document = {out, line, true};
    char identity[24];
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)run->identity);
    add_text(&document, "run_id", run->id);
    add_text(&document, "state", lab_run_state_name(run->state));
    add_ranks(&document, run);
    add_config(&document, run, &one, &other);
    add_text(&document, "identity", identity);
    add_life(&document, run);
    add_figures(&document, run, &one);
    lab_members_release(&one);
    lab_members_release(&other);
}

/* --- files --- */

static int read_run(const struct lab_run *run, struct lab_arena *arena,
                    struct lab_value **ret_value) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(&text, "{");
    lab_results_write_run(run, "", &text);
    lab_str_add(&text, "}");
    int result = lab_json_parse(text.text, text.length, NULL, arena, ret_value, NULL);
    lab_str_release(&text);
    return result;
}

struct lab_value *lab_results_run(const struct lab_run *run, struct lab_arena *arena) {
    struct lab_value *value = NULL;
    if (read_run(run, arena, &value) == 0)
        return value;
    /* a stored text that only looks like JSON: a number beyond all bounds, half a character */
    struct lab_run clean = *run;
    const char **texts[] = {&clean.options, &clean.series, &clean.test, &clean.result};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = *texts[i] ? *texts[i] : "";
        if (lab_json_parse(text, strlen(text), NULL, arena, &value, NULL) < 0)
            *texts[i] = "";
    }
    int result = read_run(&clean, arena, &value);
    assert(result == 0);
    return value;
}

void lab_results_write(const struct lab_run *runs, int count, struct lab_str *out) {
    bool first = true;
    lab_str_add(out, "[");
    for (int i = 0; i < count; i++) {
        if (!has_ended(&runs[i]))
            continue;
        lab_str_add(out, first ? "\n  {" : ",\n  {");
        lab_results_write_run(&runs[i], "\n    ", out);
        lab_str_add(out, "\n  }");
        first = false;
    }
    lab_str_add(out, first ? "]\n" : "\n]\n");
}

/* --- the summary --- */

struct numbers {
    int *items;
    int count, capacity;
};

static int compare_ints(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static void add_to(struct numbers *numbers, int value) {
    LAB_MEM_GROW(&numbers->items, numbers->count, &numbers->capacity);
    numbers->items[numbers->count++] = value;
}

/* Each of them once, ascending. */
static struct lab_value *hand_over_set(struct numbers *numbers, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    if (numbers->count)
        qsort(numbers->items, (size_t)numbers->count, sizeof *numbers->items, compare_ints);
    for (int i = 0; i < numbers->count; i++) {
        if (i == 0 || numbers->items[i] != numbers->items[i - 1])
            lab_value_append(arena, list, lab_value_int(arena, numbers->items[i]));
    }
    lab_mem_free(numbers->items);
    return list;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How many different models the runs that ended had; a label doesn't tell all of a model. */
static int count_models(const struct lab_run *runs, int count) {
    char **models = NULL;
    int model_count = 0, capacity = 0, different = 0;
    struct lab_members options = LAB_MEMBERS_INIT;
    struct lab_str text;
    lab_str_init(&text);
    for (int i = 0; i < count; i++) {
        lab_members_read(&options, runs[i].options ? runs[i].options : "");
        if (!has_ended(&runs[i]) || !has_model(&options))
            continue;
        lab_str_clear(&text);
        write_vit_config(&runs[i], &options, &text);
        LAB_MEM_GROW(&models, model_count, &capacity);
        models[model_count++] = lab_mem_strdup(text.text);
    }
    if (model_count)
        qsort(models, (size_t)model_count, sizeof *models, compare_texts);
    for (int i = 0; i < model_count; i++)
        different += i == 0 || !lab_str_equal(models[i], models[i - 1]);
    for (int i = 0; i < model_count; i++)
        lab_mem_free(models[i]);
    lab_mem_free(models);
    lab_str_release(&text);
    lab_members_release(&options);
    return different;
}

struct lab_value *lab_results_summary(const char *study, const struct lab_run *runs, int count,
                                      struct lab_arena *arena) {
    int done = 0, failed = 0, invalid = 0;
    double done_s = 0, failed_s = 0;
    struct numbers gpus = {0}, nodes = {0};
    bool simulated = false;
    for (int i = 0; i < count; i++) {
        simulated |= is_simulated(&runs[i]);
        if (!has_ended(&runs[i]))
            continue;
        bool success = runs[i].state == LAB_RUN_DONE;
        *(success ? &done : &failed) += 1;
        *(success ? &done_s : &failed_s) += duration_s(&runs[i]);
        invalid += success && !runs[i].valid;
        for (int r = 0; r < runs[i].rank_count; r++) {
            add_to(&gpus, runs[i].ranks[r].gpu_id);
            if (runs[i].ranks[r].numa_node >= 0) /* else the system chose */
                add_to(&nodes, runs[i].ranks[r].numa_node);
        }
    }
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "experiment_name", study);
    lab_value_set_int(arena, map, "total_runs", count);
    lab_value_set_int(arena, map, "successful_runs", done);
    lab_value_set_int(arena, map, "failed_runs", failed);
    lab_value_set_int(arena, map, "invalid_runs", invalid);
    lab_value_set_int(arena, map, "remaining_runs", count - done - failed);
    lab_value_set_float(arena, map, "success_rate",
                        done + failed ? 100.0 * done / (done + failed) : NAN);
    lab_value_set_float(arena, map, "average_duration", done ? done_s / done : NAN);
    lab_value_set_float(arena, map, "total_duration", done_s + failed_s);
    lab_value_set(arena, map, "gpu_ids_tested", hand_over_set(&gpus, arena));
    lab_value_set(arena, map, "numa_nodes_tested", hand_over_set(&nodes, arena));
    lab_value_set_int(arena, map, "vit_configs_tested", count_models(runs, count));
    lab_value_set_bool(arena, map, "simulated", simulated);
    return map;
}
