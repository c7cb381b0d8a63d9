/*
 * report_training.c: files beside the report of a study that trains models on one device and on
 * several, under the names and with the fields of a published study of two GPUs:
 * benchmark_<model>_<single|multi>_gpu.json, comparison_report_<model>.md (report_comparison.c).
 *
 * That study's own figures stand beside models of the same name. It gave them sizes that their
 * layers don't have; what is told here are true counts.
 */
#include "report/report_internal.h"

#include "analysis/analysis_study.h"
#include "base/json.h"
#include "base/list.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- runs --- */

static double training_time_ms(const struct lab_study_run *run) {
    return 1e3 * run->time_s;
}

static double memory_mb(const struct lab_study_run *run) {
    double gpu = run->result->gpu_memory_peak_mb;
    return isnan(gpu) ? run->result->peak_memory_mb : gpu;
}

static double communication_ms(const struct lab_study_run *run) {
    return run->rank_count > 1 ? run->result->communication_time_ms : 0;
}

/* As the driver samples it, in percent, mean over the ranks' GPUs; NaN = of none. A step's stages
 * take the host's time too: their share says nothing of how busy a GPU is. */
static double utilization(const struct lab_study_run *run) {
    double total = 0;
    int known = 0;
    for (int i = 0; i < run->result->rank_count; i++) {
        double share = run->result->ranks[i].gpu_utilization;
        total += isnan(share) ? 0 : share;
        known += !isnan(share);
    }
    return known ? 100 * total / known : (double)NAN;
}

/* Forward, backward and update as a share of a step. */
static double compute_share(const struct lab_study_run *run) {
    return run->result->compute_utilization;
}

static double rate(const struct lab_study_run *run) {
    return run->rate;
}

/* Over the runs that have it; NaN = none does. */
static double mean_of(const struct lab_study_point *point,
                      double (*figure)(const struct lab_study_run *)) {
    double total = 0;
    int known = 0;
    for (int i = 0; i < point->count; i++) {
        double value = figure(point->runs[i]);
        total += isnan(value) ? 0 : value;
        known += !isnan(value);
    }
    return known ? total / known : (double)NAN;
}

/* --- benchmark_….json --- */

static struct lab_value *run_value(const struct lab_study_run *run, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "run", run->run->repeat);
    lab_value_set_float(arena, map, "samples_per_second", run->rate);
    lab_value_set_float(arena, map, "training_time_ms", training_time_ms(run));
    lab_value_set_float(arena, map, "memory_usage_mb", memory_mb(run));
    lab_value_set_float(arena, map, "gpu_utilization", utilization(run));
    lab_value_set_float(arena, map, "compute_utilization", compute_share(run));
    lab_value_set_float(arena, map, "communication_time_ms", communication_ms(run));
    lab_value_set_int(arena, map, "model_parameters", (int64_t)run->work.parameters);
    return map;
}

/* What else tells points of one batch apart where a study sweeps over it. */
static const char *const reported_keys[] = {"allreduce", "overlap", "dtype", "compile_model"};

static struct lab_value *point_value(const struct lab_study_point *point, const char *model,
                                     bool simulated, struct lab_arena *arena) {
    const struct lab_study_run *first = point->runs[0];
    struct lab_value *map = lab_value_map(arena), *ends = lab_value_list(arena);
    struct lab_value *runs = lab_value_list(arena);
    /* on the log scale: no rate is negative, which the ends of few runs would be otherwise */
    struct lab_interval interval =
        lab_stats_log_mean_interval(point->rates, (size_t)point->count, CONFIDENCE);
    lab_value_append(arena, ends, lab_value_float(arena, interval.low));
    lab_value_append(arena, ends, lab_value_float(arena, interval.high));
    for (int i = 0; i < point->count; i++)
        lab_value_append(arena, runs, run_value(point->runs[i], arena));
    lab_value_set_int(arena, map, "batch_size",
                      (int64_t)lab_study_number(first, "options.batch_size"));
    lab_value_set_string(arena, map, "model_type", model);
    lab_value_set_string(arena, map, "scaling", lab_study_text(first, "options.scaling"));
    for (size_t i = 0; i < sizeof reported_keys / sizeof *reported_keys; i++) {
        const struct lab_value *value = lab_value_get(first->options, reported_keys[i]);
        if (value)
            lab_value_set(arena, map, reported_keys[i], lab_value_copy(arena, value));
    }
    lab_value_set_bool(arena, map, "multi_gpu", first->rank_count > 1);
    lab_value_set_int(arena, map, "devices", first->rank_count);
    lab_value_set_bool(arena, map, "simulated", simulated);
    lab_value_set_string(arena, map, "rate_unit", first->run->rate_unit);
    lab_value_set_int(arena, map, "num_runs", point->count);
    lab_value_set_float(arena, map, "mean_samples_per_sec", mean_of(point, rate));
    lab_value_set_float(arena, map, "std_samples_per_sec",
                        lab_stats_stddev(point->rates, (size_t)point->count));
    lab_value_set(arena, map, "confidence_interval_95", ends);
    lab_value_set_float(arena, map, "mean_training_time_ms", mean_of(point, training_time_ms));
    lab_value_set_float(arena, map, "mean_memory_mb", mean_of(point, memory_mb));
    lab_value_set_float(arena, map, "mean_gpu_utilization", mean_of(point, utilization));
    lab_value_set_float(arena, map, "mean_compute_utilization", mean_of(point, compute_share));
    lab_value_set_float(arena, map, "mean_communication_ms", mean_of(point, communication_ms));
    lab_value_set_int(arena, map, "model_parameters", (int64_t)first->work.parameters);
    lab_value_set(arena, map, "detailed_runs", runs);
    return map;
}

void report_add_file(struct report_found *found, const char *name, const struct lab_str *text) {
    found->files[found->file_count++] =
        (struct report_file){name, lab_arena_strdup(found->arena, text->text)};
}

static void add_benchmark(struct report_found *found, const struct lab_study_point *points,
                          int count, const char *model, bool multi, bool simulated) {
    struct lab_arena *arena = found->arena;
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < count; i++) {
        const struct lab_study_run *run = points[i].runs[0];
        if ((run->rank_count > 1) == multi &&
            lab_str_equal(lab_study_trained_model(run, arena), model))
            lab_value_append(arena, list, point_value(&points[i], model, simulated, arena));
    }
    if (list->count == 0)
        return;
    LAB_AUTO(str, text);
    lab_json_write(list, 1, &text);
    lab_str_add(&text, "\n");
    report_add_file(
        found,
        lab_arena_printf(arena, "benchmark_%s_%s_gpu.json", model, multi ? "multi" : "single"),
        &text);
}

/* --- the whole --- */

void report_training_files(struct report_found *found, const struct lab_study_table *study) {
    struct lab_study_point *points;
    int model_count = 0;
    if (lab_study_has_phases(study))
        return;
    int count = lab_study_points(study, found->arena, &points);
    const char **models = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *models);
    double *parameters = lab_arena_alloc(found->arena, (size_t)count + 1, sizeof *parameters);
    LAB_SORT(points, count, LAB_BY(points, name));
    for (int i = 0; i < count; i++) {
        const char *model = lab_study_trained_model(points[i].runs[0], found->arena);
        if (!model || lab_list_find_text(models, model_count, model) >= 0)
            continue;
        parameters[model_count] = points[i].runs[0]->work.parameters;
        models[model_count++] = model;
    }
    if (model_count == 0)
        return;
    found->files = lab_arena_alloc(found->arena, 3 * (size_t)model_count + 1, sizeof *found->files);
    for (int m = 0; m < model_count; m++) {
        add_benchmark(found, points, count, models[m], false, study->simulated);
        add_benchmark(found, points, count, models[m], true, study->simulated);
        report_training_comparison(found, study, models[m], parameters[m]);
    }
}
