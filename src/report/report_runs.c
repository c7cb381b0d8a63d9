/*
 * report_runs.c: what a study's runs say by themselves, where no analysis has anything to hold
 * against each other: a single run, say.
 */
#include "report/report_internal.h"

#include "analysis/analysis_study.h"
#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95

/* A thing that is done once has a time, not a rate. */
static bool is_once(const struct lab_study_run *run) {
    return !isnan(lab_run_once_s(run->run, 1));
}

/* To three digits, to four from 1000 to 9999, as the table of the points. */
static double rounded(double value) {
    int digits = value >= 999.5 && value < 9999.5 ? 4 : 3;
    double unit = pow(10, floor(log10(value)) - (digits - 1));
    return round(value / unit) * unit;
}

/* "20000 samples/s", "12.1 s" */
static const char *figure(double rate, const struct lab_study_run *run, struct lab_arena *arena) {
    double value = rounded(is_once(run) ? lab_run_once_s(run->run, rate) : rate);
    const char *unit = is_once(run) ? "s" : run->run->rate_unit;
    return lab_arena_printf(arena, value >= 100 ? "%.0f %s" : "%.3g %s", value, unit);
}

/* Geometric, as the table of the points has it. */
static double mean(const struct lab_study_point *point) {
    double logs = 0;
    for (int i = 0; i < point->count; i++)
        logs += log(point->rates[i]);
    return exp(logs / point->count);
}

/* "GPU 0", "GPU 0 and GPU 2" */
static const char *place(const struct lab_study_run *run, struct lab_arena *arena) {
    const char **names = lab_arena_alloc(arena, (size_t)run->rank_count + 1, sizeof *names);
    LAB_AUTO(str, text);
    for (int i = 0; i < run->rank_count; i++)
        names[i] = lab_study_device_title(run->ranks[i].device, arena);
    lab_str_add_list(&text, names, "and");
    return lab_arena_strdup(arena, text.text);
}

#define POINTS_NAMED 4

/* "vit0x0x0 38000, vit32x2x256 38500 and vit32x4x512 18800 samples/s"; of many the lowest and the
 * highest: "268 samples/s (vit32x1x64, batch 4) to 4295 samples/s (vit32x1x64, batch 10)". */
static const char *rates_words(const struct lab_study_point *points, int count, int low, int high,
                               struct lab_arena *arena) {
    const char *names[POINTS_NAMED + 1] = {NULL};
    const struct lab_study_point *ends[] = {&points[low], &points[high]};
    bool few = count <= POINTS_NAMED, alike = lab_str_equal(lab_study_point_model(ends[0], arena),
                                                            lab_study_point_model(ends[1], arena));
    int shown = few ? count : 2;
    for (int i = 0; i < shown; i++) {
        const struct lab_study_point *point = few ? &points[i] : ends[i];
        const char *rate = figure(mean(point), point->runs[0], arena);
        bool last = i + 1 == shown; /* the unit stands once */
        const char *name =
            alike ? place(point->runs[0], arena) : lab_study_point_model(point, arena);
        if (few)
            names[i] =
                lab_arena_printf(arena, "%s %s", name,
                                 last ? rate : lab_arena_strndup(arena, rate, strcspn(rate, " ")));
        else
            names[i] = lab_arena_printf(arena, "%s (%s)", rate, name);
    }
    LAB_AUTO(str, text);
    if (few)
        lab_str_add_list(&text, names, "and");
    else
        lab_str_printf(&text, "%s to %s", names[0], names[1]);
    return lab_arena_strdup(arena, text.text);
}

static const char *one_point(const struct lab_study_point *point, struct lab_arena *arena) {
    const struct lab_study_run *run = point->runs[0];
    const char *sureness = "one run: no comparison";
    if (point->count > 1) {
        struct lab_interval interval =
            lab_stats_log_mean_interval(point->rates, (size_t)point->count, CONFIDENCE);
        bool once = is_once(run);
        sureness =
            lab_arena_printf(arena, "%d runs, 95%% CI %s to %s; nothing to compare with",
                             point->count, figure(once ? interval.high : interval.low, run, arena),
                             figure(once ? interval.low : interval.high, run, arena));
    }
    return lab_arena_printf(arena, "%s %s %s on %s (%s).", lab_study_point_model(point, arena),
                            is_once(run) ? "takes" : "runs at", figure(mean(point), run, arena),
                            place(run, arena), sureness);
}

static int by_work(const void *a, const void *b) {
    const struct lab_study_run *x = ((const struct lab_study_point *)a)->runs[0],
                               *y = ((const struct lab_study_point *)b)->runs[0];
    return lab_study_order(lab_study_complexity(x), x->model, lab_study_complexity(y), y->model);
}

const char *report_runs_answer(const struct lab_study_table *study, bool bounds,
                               struct lab_arena *arena) {
    struct lab_study_point *points;
    int count = lab_study_points(study, arena, &points), low = 0, high = 0;
    if (count > 1)
        qsort(points, (size_t)count, sizeof *points, by_work);
    for (int i = 0; i < count; i++) {
        if (!(mean(&points[i]) > 0) || is_once(points[i].runs[0]) != is_once(points[0].runs[0]) ||
            !lab_str_equal(points[i].runs[0]->run->rate_unit, points[0].runs[0]->run->rate_unit))
            return NULL;
        low = mean(&points[i]) < mean(&points[low]) ? i : low;
        high = mean(&points[i]) > mean(&points[high]) ? i : high;
    }
    if (count < 2)
        return count == 1 ? one_point(points, arena) : NULL;
    bool single = true;
    int used = 0;
    for (int i = 0; i < count; i++) {
        single &= points[i].count == 1;
        used += points[i].count;
    }
    const char *bound = bounds && single ? lab_study_bound_words(points, count, arena) : NULL;
    const char *once = used < study->planned_count
                           ? lab_arena_printf(arena, "%d points have 1 run each", count)
                           : "1 run per point";
    const char *verdict = single ? lab_arena_printf(arena, " %s: no verdict.", once) : "";
    if (bound)
        verdict = lab_arena_printf(arena, " %s (%s: no verdict).", bound, once);
    const char *valid = "";
    if (used < study->run_count)
        valid = lab_arena_printf(arena, "%d of %d runs are valid: ", used, study->run_count);
    else if (used >= study->planned_count) /* else the headline begins with their number */
        valid = lab_arena_printf(arena, "All %d runs are valid: ", used);
    return lab_arena_printf(arena, "%s%s.%s", valid, rates_words(points, count, low, high, arena),
                            verdict);
}
