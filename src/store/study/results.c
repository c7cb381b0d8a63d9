/*
 * results.c: runs as the files beside a study's database show them.
 *
 * Every run has every field, so that a table can be made of them without a look at each; null =
 * there is no such figure. A field's value stands on one line.
 */
#include "store/study/results_internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "model/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* --- a run --- */

static bool has_ended(const struct lab_run *run) {
    return run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
}

bool lab_results_is_simulated(const struct lab_run *run) {
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

/* A run's map while it is made. */
struct writer {
    struct lab_arena *arena;
    struct lab_value *map;
};

static void set(struct writer writer, const char *key, struct lab_value *value) {
    lab_value_set(writer.arena, writer.map, key, value ? value : lab_value_null(writer.arena));
}

static void set_text(struct writer writer, const char *key, const char *text) {
    lab_value_set_string(writer.arena, writer.map, key, text);
}

static void set_int(struct writer writer, const char *key, int64_t value) {
    lab_value_set_int(writer.arena, writer.map, key, value);
}

/* A stored text as a tree; an empty one where it is none of that type. */
static struct lab_value *stored(const char *text, enum lab_value_type type,
                                struct lab_arena *arena) {
    struct lab_value *value = lab_result_json(text, arena);
    if (value->type == type)
        return value;
    return type == LAB_VALUE_LIST ? lab_value_list(arena) : lab_value_map(arena);
}

static void set_ranks(struct writer writer, const struct lab_run *run) {
    struct lab_arena *arena = writer.arena;
    const struct lab_run_rank *first = run->rank_count ? run->ranks : NULL;
    struct lab_value *ids = lab_value_list(arena), *nodes = lab_value_list(arena);
    struct lab_value *devices = lab_value_list(arena);
    for (int i = 0; i < run->rank_count; i++) {
        lab_value_append(arena, ids, lab_value_int(arena, run->ranks[i].gpu_id));
        lab_value_append(arena, nodes, lab_value_int(arena, run->ranks[i].numa_node));
        lab_value_append(arena, devices, lab_value_string(arena, run->ranks[i].device));
    }
    set(writer, "gpu_id", first ? lab_value_int(arena, first->gpu_id) : NULL);
    set(writer, "gpu_ids", ids);
    set(writer, "numa_node",
        first && first->numa_node >= 0 ? lab_value_int(arena, first->numa_node) : NULL);
    set(writer, "numa_nodes", nodes);
    set(writer, "devices", devices);
}

static const char *const model_keys[] = {"patch_size", "depth", "heads", "dim", "mlp_dim"};

/* Whether the run is of such a model. */
static bool has_model(const struct lab_value *options) {
    return lab_value_get(options, model_keys[0]) != NULL;
}

static struct lab_value *vit_config(const struct lab_run *run, const struct lab_value *options,
                                    struct lab_arena *arena) {
    struct writer writer = {arena, lab_value_map(arena)};
    set_text(writer, "name", run->label);
    for (size_t i = 0; i < sizeof model_keys / sizeof *model_keys; i++)
        set(writer, model_keys[i], lab_value_get(options, model_keys[i]));
    return writer.map;
}

/* Settings of the test in the order that people know, whether they are the study's or the
 * workload's; then what else the study says of it. */
static struct lab_value *test_config(const struct lab_value *test, const struct lab_value *options,
                                     struct lab_arena *arena) {
    static const char *const keys[] = {
        "num_samples",  "batch_size",    "warmup_samples", "memory_size_mb",
        "tensor_shape", "compile_model", "timeout_s",      "dtype",
        "d2h",          "fill",          "sync_frequency",
    };
    struct lab_value *map = lab_value_map(arena);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct lab_value *value = lab_value_get(test, keys[i]);
        value = value ? value : lab_value_get(options, keys[i]);
        if (value)
            lab_value_set(arena, map, keys[i], value);
    }
    for (int i = 0; i < test->count; i++)
        if (!lab_value_get(map, test->keys[i]))
            lab_value_set(arena, map, test->keys[i], test->items[i]);
    return map;
}

void lab_results_asked(const struct lab_run *run, struct lab_arena *arena,
                       struct lab_results_asked *ret_asked) {
    struct lab_value *options = stored(run->options, LAB_VALUE_MAP, arena);
    struct lab_value *test = stored(run->test, LAB_VALUE_MAP, arena);
    *ret_asked = (struct lab_results_asked){.options = options,
                                            .test = test_config(test, options, arena),
                                            .series = stored(run->series, LAB_VALUE_LIST, arena)};
}

static void set_config(struct writer writer, const struct lab_run *run) {
    struct lab_results_asked asked;
    lab_results_asked(run, writer.arena, &asked);
    set_text(writer, "workload", run->workload);
    set_text(writer, "label", run->label);
    set(writer, "vit_config",
        has_model(asked.options) ? vit_config(run, asked.options, writer.arena) : NULL);
    set(writer, "test_config", asked.test);
    set(writer, "options", asked.options);
    set(writer, "series", asked.series);
    set_int(writer, "repeat", run->repeat);
    set_int(writer, "iterations", run->iterations);
    set_int(writer, "warmup_iterations", run->warmup_iterations);
    char identity[24];
    snprintf(identity, sizeof identity, "%016llx", (unsigned long long)run->identity);
    set_text(writer, "identity", identity);
}

static void set_life(struct writer writer, const struct lab_run *run) {
    struct lab_arena *arena = writer.arena;
    bool ended = has_ended(run);
    LAB_AUTO(str, time);
    if (run->epoch)
        lab_results_add_time(run->start_wall_ns, &time);
    set_text(writer, "start_time", run->epoch ? time.text : NULL);
    lab_value_set_float(arena, writer.map, "duration", ended ? duration_s(run) : NAN);
    lab_value_set_bool(arena, writer.map, "success", run->state == LAB_RUN_DONE);
    set(writer, "exit_code", ended ? lab_value_int(arena, run->exit_code) : NULL);
    set_text(writer, "stdout_log", lab_arena_printf(arena, "logs/%s.stdout", run->id));
    set_text(writer, "stderr_log", lab_arena_printf(arena, "logs/%s.stderr", run->id));
    /* below the study's folder; of a gang the slowest rank's */
    set_text(writer, "trace", lab_run_result(run)->trace_path);
    set_text(writer, "error", run->error && *run->error ? run->error : NULL);
    set_int(writer, "attempts", run->attempts);
    lab_value_set_bool(arena, writer.map, "concurrent", run->concurrent);
}

static struct lab_value *sentences(const struct lab_result *result, const char *key,
                                   struct lab_arena *arena) {
    const struct lab_result_row *row = lab_result_row(key);
    struct lab_result_list list = lab_result_items(result, row);
    const struct lab_result_text *items = list.items;
    struct lab_value *value = lab_value_list(arena);
    for (int i = 0; i < list.count; i++)
        lab_value_append(arena, value,
                         items[i].text ? lab_value_string(arena, items[i].text)
                                       : lab_value_null(arena));
    return value;
}

/* What came out. One that isn't done has the same keys, and nulls. */
static void set_result(struct writer writer, const struct lab_run *run) {
    struct lab_arena *arena = writer.arena;
    const struct lab_result *result = lab_run_result(run);
    lab_result_value(result, LAB_RESULT_FILE_VIEW, writer.map, arena);
    struct writer validity = {arena, lab_value_map(arena)};
    set(validity, "valid",
        has_ended(run) ? lab_value_bool(arena, run->state == LAB_RUN_DONE && run->valid) : NULL);
    set(validity, "invalid", sentences(result, "invalid", arena));
    set(validity, "warnings", sentences(result, "warnings", arena));
    set(writer, "validity", validity.map);
    struct lab_value *ranks = lab_value_list(arena);
    for (int i = 0; i < result->rank_count; i++)
        lab_value_append(arena, ranks,
                         lab_result_value(&result->ranks[i], LAB_RESULT_RANK_VIEW, NULL, arena));
    set(writer, "ranks", ranks);
    lab_value_set_bool(arena, writer.map, "simulated", lab_results_is_simulated(run));
}

struct lab_value *lab_results_run(const struct lab_run *run, struct lab_arena *arena) {
    struct writer writer = {arena, lab_value_map(arena)};
    set_text(writer, "run_id", run->id);
    set_text(writer, "state", lab_run_state_name(run->state));
    set_ranks(writer, run);
    set_config(writer, run);
    set_life(writer, run);
    set_result(writer, run);
    return writer.map;
}

/* --- files --- */

void lab_results_add_run(const struct lab_run *run, struct lab_doc_tree *tree) {
    LAB_AUTO(arena, arena);
    const struct lab_value *map = lab_results_run(run, &arena);
    for (int i = 0; i < map->count; i++)
        lab_doc_tree_value(tree, map->keys[i], map->items[i]);
}

void lab_results_write(const struct lab_run *runs, int count, struct lab_store *store,
                       struct lab_results_metrics *metrics, struct lab_str *out) {
    struct lab_doc_tree tree = {.out = out};
    lab_doc_tree_begin(&tree, NULL, '[', LAB_DOC_BROKEN);
    for (int i = 0; i < count; i++) {
        LAB_AUTO(arena, arena);
        if (!has_ended(&runs[i]))
            continue;
        lab_doc_tree_begin(&tree, NULL, '{', LAB_DOC_BROKEN);
        lab_results_add_run(&runs[i], &tree);
        if (metrics)
            lab_doc_tree_value(&tree, "metric_summary",
                               results_metrics(metrics, store, &runs[i], &arena));
        lab_doc_tree_end(&tree);
    }
    lab_doc_tree_end(&tree);
}

/* --- the summary --- */

struct numbers {
    int *items;
    int count;
};

static void add_to(struct numbers *numbers, int value, struct lab_arena *arena) {
    LAB_ADD(numbers->items, numbers->count, arena) = value;
}

/* Each of them once, ascending. */
static struct lab_value *hand_over_set(struct numbers *numbers, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    LAB_SORT_NUMBERS(numbers->items, numbers->count);
    for (int i = 0; i < numbers->count; i++) {
        if (i == 0 || numbers->items[i] != numbers->items[i - 1])
            lab_value_append(arena, list, lab_value_int(arena, numbers->items[i]));
    }
    return list;
}

/* How many different models the runs that ended had; a label doesn't tell all of a model. Few runs
 * differ in their options, so that few texts are read. */
static int count_models(const struct lab_run *runs, int count) {
    LAB_AUTO(arena, arena);
    struct lab_value *seen = lab_value_map(&arena), *models = lab_value_map(&arena);
    LAB_AUTO(str, text);
    for (int i = 0; i < count; i++) {
        lab_str_clear(&text);
        lab_str_printf(&text, "%s\n%s", runs[i].label, runs[i].options ? runs[i].options : "");
        if (!has_ended(&runs[i]) || lab_value_get(seen, text.text))
            continue;
        lab_value_set(&arena, seen, text.text, seen);
        const struct lab_value *options = stored(runs[i].options, LAB_VALUE_MAP, &arena);
        if (!has_model(options))
            continue;
        lab_str_clear(&text);
        lab_json_write(vit_config(&runs[i], options, &arena), 0, &text);
        lab_value_set(&arena, models, text.text, models);
    }
    return models->count;
}

struct lab_value *lab_results_summary(const char *study, const struct lab_run *runs, int count,
                                      struct lab_arena *arena) {
    int done = 0, failed = 0, invalid = 0;
    double done_s = 0, failed_s = 0;
    struct numbers gpus = {0}, nodes = {0};
    bool simulated = false;
    for (int i = 0; i < count; i++) {
        simulated |= lab_results_is_simulated(&runs[i]);
        if (!has_ended(&runs[i]))
            continue;
        bool success = runs[i].state == LAB_RUN_DONE;
        *(success ? &done : &failed) += 1;
        *(success ? &done_s : &failed_s) += duration_s(&runs[i]);
        invalid += success && !runs[i].valid;
        for (int r = 0; r < runs[i].rank_count; r++) {
            add_to(&gpus, runs[i].ranks[r].gpu_id, arena);
            if (runs[i].ranks[r].numa_node >= 0) /* else the system chose */
                add_to(&nodes, runs[i].ranks[r].numa_node, arena);
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
