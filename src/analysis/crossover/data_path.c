/* crossover/data_path.c: models of each device and node, judged. */
#include "analysis/crossover/crossover.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE   0.95
#define LEVEL        0.05
#define WITHIN_LEAST 0.02 /* from one run, no smaller difference is a verdict */
#define CERTAIN      1e-9 /* a spread below that is rounding */

/* --- a model --- */

/* Geometric mean with its interval over runs. */
static double mean_of(const double *values, size_t n, double *ret_low, double *ret_high) {
    double *logs = lab_mem_resize(NULL, n + 1, sizeof *logs), mean = NAN;
    *ret_low = *ret_high = NAN;
    bool positive = n > 0;
    for (size_t i = 0; i < n; i++) {
        positive &= values[i] > 0;
        logs[i] = positive ? log(values[i]) : 0;
    }
    if (positive) {
        struct lab_interval interval = lab_stats_mean_interval(logs, n, CONFIDENCE);
        mean = exp(lab_stats_mean(logs, n));
        *ret_low = exp(interval.low);
        *ret_high = exp(interval.high);
    } else if (n > 0) {
        mean = lab_stats_mean(values, n);
    }
    lab_mem_free(logs);
    return mean;
}

/* The mean of ln(compute / copies), how sure it is, and p of none. */
static void set_ratio(struct lab_crossover_model *model, double mean, double error,
                      double freedom) {
    model->ratio = exp(mean);
    if (isnan(error) || isnan(freedom))
        return;
    double distance = 0;
    if (error > CERTAIN) {
        distance = error * lab_stats_t_quantile((1 + CONFIDENCE) / 2, freedom);
        model->p = lab_stats_t_two_sided(mean / error, freedom);
    } else {
        model->p = fabs(mean) > CERTAIN ? 0 : 1;
    }
    model->low = exp(mean - distance);
    model->high = exp(mean + distance);
}

static void compare(struct lab_crossover_model *model, const struct lab_crossover_times *times,
                    int n) {
    double *logs = lab_mem_resize(NULL, (size_t)n + 1, sizeof *logs);
    for (int i = 0; i < n; i++)
        logs[i] = log(times[i].compute_s / times[i].copy_s);
    if (n > 1)
        set_ratio(model, lab_stats_mean(logs, (size_t)n),
                  lab_stats_stddev(logs, (size_t)n) / sqrt(n), n - 1);
    else
        set_ratio(model, logs[0], sqrt(times[0].variance), times[0].freedom);
    model->within = n == 1;
    lab_mem_free(logs);
}

static struct lab_crossover_model make_model(const struct lab_study_point *point,
                                             struct lab_arena *arena) {
    struct lab_crossover_model model = {.name = lab_study_point_model(point, arena),
                                        .complexity = lab_study_complexity(point->runs[0]),
                                        .ratio = NAN,
                                        .low = NAN,
                                        .high = NAN,
                                        .p = NAN};
    struct lab_crossover_times *times = lab_arena_alloc(arena, (size_t)point->count, sizeof *times);
    double *values = lab_arena_alloc(arena, 2 * (size_t)point->count, sizeof *values);
    double *compute = values, *copy = values + point->count;
    bool computes = false, copies = false;
    for (int i = 0; i < point->count; i++) {
        struct lab_crossover_times one = lab_crossover_times_make(point->runs[i]);
        if (one.source == LAB_CROSSOVER_NONE)
            continue;
        compute[model.runs] = one.compute_s;
        copy[model.runs] = one.copy_s;
        computes |= one.compute_s > 0;
        copies |= one.copy_s > 0;
        model.source = one.source;
        times[model.runs++] = one;
    }
    model.times = times;
    size_t n = (size_t)model.runs;
    model.compute_s = mean_of(compute, n, &model.compute_low, &model.compute_high);
    model.copy_s = mean_of(copy, n, &model.copy_low, &model.copy_high);
    if (n > 0 && computes && copies)
        compare(&model, times, model.runs);
    else if (n > 0)
        model.ratio = model.low = model.high = computes ? INFINITY : 0;
    return model;
}

static void judge(struct lab_crossover_model *model, double p) {
    model->bound = LAB_CROSSOVER_UNKNOWN;
    if (isnan(model->ratio))
        return;
    model->bound = LAB_CROSSOVER_UNDECIDED;
    bool none = model->ratio == 0 || isinf(model->ratio); /* one of the two doesn't exist */
    bool small = model->within && fabs(model->ratio - 1) < WITHIN_LEAST;
    if (none || (p <= LEVEL && !small))
        model->bound = model->ratio > 1 ? LAB_CROSSOVER_BY_COMPUTE : LAB_CROSSOVER_BY_COPIES;
}

/* The models around the turn. */
static void find_bracket(struct lab_crossover_feed *feed) {
    feed->below = feed->above = -1;
    for (int m = 0; m < feed->model_count; m++) {
        if (feed->models[m].bound == LAB_CROSSOVER_BY_COPIES)
            feed->below = m;
        if (feed->models[m].bound == LAB_CROSSOVER_BY_COMPUTE && feed->above < 0)
            feed->above = m;
    }
}

/* --- all --- */

static int by_complexity(const void *a, const void *b) {
    const struct lab_crossover_model *x = a, *y = b;
    return lab_study_order(x->complexity, x->name, y->complexity, y->name);
}

static int by_name(const void *a, const void *b) {
    const struct lab_crossover_feed *x = a, *y = b;
    return strverscmp(x->name, y->name);
}

static struct lab_crossover_feed *find_feed(struct lab_crossover_feed *data_paths, int *count,
                                            const char *prefix, const struct lab_study_rank *rank,
                                            int room, struct lab_arena *arena) {
    const char *name =
        lab_arena_printf(arena, "%s%s from node %d", prefix, rank->device, rank->numa_node);
    for (int i = 0; i < *count; i++)
        if (lab_str_equal(data_paths[i].name, name))
            return &data_paths[i];
    struct lab_crossover_feed *feed = &data_paths[(*count)++];
    *feed = (struct lab_crossover_feed){
        .name = name,
        .title = lab_arena_printf(arena, "%s fed from node %d",
                                  lab_study_device_title(rank->device, arena), rank->numa_node),
        .models = lab_arena_alloc(arena, (size_t)room, sizeof *feed->models)};
    return feed;
}

/* All models of all feeds together. */
static void judge_all(struct lab_crossover_feed *data_paths, int count, int models) {
    double *p = lab_mem_resize(NULL, (size_t)models + 1, sizeof *p);
    int at = 0;
    for (int i = 0; i < count; i++)
        for (int m = 0; m < data_paths[i].model_count; m++)
            p[at++] = data_paths[i].models[m].p;
    lab_stats_adjust_bh(p, (size_t)at, p);
    at = 0;
    for (int i = 0; i < count; i++)
        for (int m = 0; m < data_paths[i].model_count; m++)
            judge(&data_paths[i].models[m], p[at++]);
    lab_mem_free(p);
}

int lab_crossover_data_paths(const struct lab_study_table *study, const char *prefix,
                             struct lab_arena *arena, struct lab_crossover_feed **ret_data_paths) {
    struct lab_study_point *points;
    int point_count = lab_study_points(study, arena, &points), count = 0, models = 0;
    struct lab_crossover_feed *data_paths =
        lab_arena_alloc(arena, (size_t)point_count + 1, sizeof *data_paths);
    for (int i = 0; i < point_count; i++) {
        const struct lab_study_run *run = points[i].runs[0];
        if (run->rank_count != 1)
            continue;
        struct lab_crossover_feed *feed =
            find_feed(data_paths, &count, prefix, &run->ranks[0], point_count, arena);
        feed->models[feed->model_count++] = make_model(&points[i], arena);
        models++;
    }
    qsort(data_paths, (size_t)count, sizeof *data_paths, by_name);
    judge_all(data_paths, count, models);
    for (int i = 0; i < count; i++) {
        qsort(data_paths[i].models, (size_t)data_paths[i].model_count, sizeof *data_paths[i].models,
              by_complexity);
        find_bracket(&data_paths[i]);
        data_paths[i].crossover = lab_crossover_turn(&data_paths[i]);
    }
    *ret_data_paths = data_paths;
    return count;
}
