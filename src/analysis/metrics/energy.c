/*
 * energy.c: what a setting gains for its energy. Gains count from one start, the mean first value
 * over settings: from its own, a setting that starts worse would gain more.
 */
#include "analysis/metrics/metrics.h"

#include "analysis/claims/contrast.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

#define PER_KJ 1000.0

double metrics_energy(const struct lab_study_run *run) {
    return run->result->energy_j > 0 ? run->result->energy_j : (double)NAN;
}

/* Of a run's ranks the mean; NaN = it reported one value alone. */
static double first_value(const struct lab_study_run *run, const struct metrics_metric *metric) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < run->metric_count; i++)
        if (lab_str_equal(run->metrics[i].name, metric->name) && run->metrics[i].curve.values > 1) {
            sum += run->metrics[i].curve.first;
            count++;
        }
    return count ? sum / count : (double)NAN;
}

double metrics_start(const struct metrics_metric *metric) {
    double total = 0;
    int known = 0;
    for (int v = 0; v < metric->count; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        double sum = 0;
        int count = 0;
        for (int r = 0; r < point->count; r++) {
            double first = first_value(point->runs[r], metric);
            sum += isfinite(first) ? first : 0;
            count += isfinite(first);
        }
        total += count ? sum / count : 0;
        known += count > 0;
    }
    return known ? total / known : (double)NAN;
}

bool metrics_gains_from_start(const struct metrics_metric *metric) {
    return metric->better == LAB_DIRECTION_LOWER || (metric->differs && !metric->rate);
}

/* What was done while the energy was used. A rate alone grows with the power. */
static double work_of(const struct lab_study_run *run, const struct metrics_metric *metric) {
    const struct lab_result *result = run->result;
    double iterations = result->iterations > 0 ? (double)result->iterations : 1;
    if (metric->own && result->samples > 0)
        return (double)result->samples;
    if (metric->own)
        return iterations * (run->rank_count > 0 ? run->rank_count : 1);
    return lab_metric_name_is_evaluation(metric->name)
               ? (double)NAN
               : metrics_run_value(run, metric) * run->time_s * iterations;
}

const char *metrics_gain_name(const struct metrics_metric *metric, struct lab_arena *arena) {
    size_t length = strlen(metric->unit);
    if (metric->rate && length > 2 && strcmp(metric->unit + length - 2, "/s") == 0)
        return lab_arena_strndup(arena, metric->unit, length - 2);
    return lab_arena_printf(arena, "%s%s", metric->name,
                            metric->rate                            ? " × time"
                            : !metrics_gains_from_start(metric)     ? ""
                            : metric->better == LAB_DIRECTION_LOWER ? " reduction"
                                                                    : " gain");
}

void metrics_note_per_kj(struct lab_analysis_result *result, const struct metrics_metric *metric,
                         struct lab_arena *arena) {
    if (metric->rate)
        lab_analysis_note(&result->notes, arena, "Per kJ: the work of a run over its energy.");
    else if (metrics_gains_from_start(metric) && isfinite(metric->start))
        lab_analysis_note(&result->notes, arena,
                          "Per kJ of the whole run: from %.3g, the mean first value over settings.",
                          metric->start);
}

double metrics_per_kj(const struct lab_study_run *run, const void *context) {
    const struct metrics_metric *metric = context;
    if (!metric || metric->better == LAB_DIRECTION_NONE)
        return NAN;
    double value = metrics_run_value(run, metric);
    double gain = metric->rate                            ? work_of(run, metric)
                  : !metrics_gains_from_start(metric)     ? value
                  : metric->better == LAB_DIRECTION_LOWER ? metric->start - value
                                                          : value - metric->start;
    return PER_KJ * gain / metrics_energy(run);
}

/* Mean over runs, and whether all are positive. */
static double mean_per_kj(const struct metrics_setting *setting,
                          const struct metrics_metric *metric, bool *positive) {
    double sum = 0;
    int count = 0;
    for (int r = 0; r < setting->point.count; r++) {
        double value = metrics_per_kj(setting->point.runs[r], metric);
        if (!isfinite(value))
            continue;
        *positive &= value > 0;
        sum += value;
        count++;
    }
    return count ? sum / count : (double)NAN;
}

struct lab_claim metrics_energy_claim(const struct metrics_metric *objective,
                                      struct lab_arena *arena) {
    struct lab_claim *claims = NULL, nearest = lab_claim_none, **family = NULL;
    int best = -1, count = 0;
    double most = 0;
    bool positive = true;
    for (int i = 0; i < objective->compared; i++) {
        double value = mean_per_kj(objective->values[i].setting, objective, &positive);
        if (value > most) { /* NaN isn't */
            most = value;
            best = i;
        }
    }
    struct metrics_figure figure = {
        .value = metrics_per_kj,
        .context = objective,
        .difference = positive ? NULL : "per kJ",
        .name = lab_arena_printf(arena, "%s per joule", metrics_gain_name(objective, arena))};
    if (best < 0 || objective->compared < 2)
        return nearest;
    claims = lab_arena_alloc(arena, (size_t)objective->compared, sizeof *claims);
    family = lab_arena_alloc(arena, (size_t)objective->compared, sizeof *family);
    for (int i = 0; i < objective->compared; i++) {
        if (i == best)
            continue;
        claims[count] =
            metrics_contrast(objective->values[i].setting, objective->values[best].setting, &figure,
                             "metrics.energy", arena);
        family[count] = &claims[count];
        count++;
    }
    lab_claim_adjust(family, count);
    for (int i = 0; i < count; i++) {
        if (claims[i].verdict != LAB_CLAIM_YES || claims[i].effect <= 0)
            return lab_claim_none;
        if (isnan(nearest.effect) || claims[i].effect < nearest.effect)
            nearest = claims[i];
    }
    return nearest;
}
