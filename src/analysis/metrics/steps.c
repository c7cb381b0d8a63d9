/*
 * steps.c: at which steps settings end, and where they are compared if these differ: at the last
 * step that all have. Ends that the user set are compared as they are: the same number of epochs,
 * or lengths that follow from a setting (max_iters, or the batch of one pass over the data).
 */
#include "analysis/metrics/metrics.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <strings.h>

#define NAMED_MOST 4    /* steps of the list */
#define ALIKE      0.05 /* share: values are printed every few steps, so ends are not exact */

/* Where its points end: the last of them stands for several values, and has their mean step. */
static double points_end(const struct lab_curve *curve) {
    struct lab_curve_line line = lab_curve_line(curve, false);
    return line.share > 1 ? line.points[line.count - 1].step
                          : curve->step_before + curve->last_step;
}

/* Of all ranks; NaN = its steps are unknown. */
static double run_end(const struct lab_study_run *run, const struct metrics_metric *metric,
                      bool of_points) {
    double end = NAN;
    for (int i = 0; i < run->metric_count; i++) {
        const struct lab_study_metric *said = &run->metrics[i];
        if (!lab_str_equal(said->name, metric->name))
            continue;
        if (!said->curve.stepped || !said->curve.points)
            return NAN;
        end = fmin(end, of_points ? points_end(&said->curve)
                                  : said->curve.step_before + said->curve.last_step);
    }
    return end;
}

/* The last step that half of its runs have, which its curve ends at; NaN = unknown. */
static double setting_end(const struct lab_study_point *point, const struct metrics_metric *metric,
                          bool of_points, struct lab_arena *arena) {
    double *ends = lab_arena_alloc(arena, (size_t)point->count + 1, sizeof *ends);
    int count = 0;
    for (int r = 0; r < point->count; r++) {
        if (isnan(metrics_run_value(point->runs[r], metric)))
            continue;
        ends[count] = run_end(point->runs[r], metric, of_points);
        if (isnan(ends[count++]))
            return NAN;
    }
    LAB_SORT_NUMBERS(ends, count);
    return count ? ends[count / 2] : (double)NAN;
}

double metrics_compared_value(const struct lab_study_run *run,
                              const struct metrics_metric *metric) {
    double end = metrics_run_value(run, metric), sum = 0;
    int count = 0;
    if (isnan(metric->at) || isnan(end))
        return end;
    for (int i = 0; i < run->metric_count; i++) {
        const struct lab_study_metric *said = &run->metrics[i];
        if (!lab_str_equal(said->name, metric->name) || !isfinite(said->value))
            continue;
        sum += metric->at >= points_end(&said->curve)
                   ? said->value
                   : lab_curve_at(&said->curve, false, metric->at);
        count++;
    }
    return count ? sum / count : (double)NAN;
}

/* Whether some run of the setting printed no value at the step that settings are compared at. */
static bool is_between(const struct metrics_setting *setting, const struct metrics_metric *metric) {
    for (int r = 0; r < setting->point.count; r++)
        for (int i = 0; i < setting->point.runs[r]->metric_count; i++) {
            const struct lab_study_metric *said = &setting->point.runs[r]->metrics[i];
            struct lab_curve_line line = lab_curve_line(&said->curve, false);
            bool there = !lab_str_equal(said->name, metric->name) || line.count == 0 ||
                         metric->at >= points_end(&said->curve);
            for (int p = 0; p < line.count && !there; p++)
                there = line.points[p].step == metric->at;
            if (!there)
                return true;
        }
    return false;
}

/* ", which all have", else "; values of B and C are interpolated between its steps" */
static const char *describe_there(const struct metrics_metric *metric, struct lab_arena *arena) {
    int count = 0;
    LAB_AUTO(str, names);
    for (int i = 0; i < metric->compared; i++)
        if (is_between(metric->values[i].setting, metric) && count++ < NAMED_MOST)
            lab_str_printf(&names, "%s%s", count > 1 ? ", " : "", metric->values[i].name);
    if (count == 0)
        return ", which all have";
    if (count > NAMED_MOST)
        lab_str_printf(&names, " and %d more", count - NAMED_MOST);
    return lab_arena_printf(arena, ", interpolated between printed steps for %s", names.text);
}

/* --- lengths that the user set --- */

static double last_epoch(const struct lab_study_run *run) {
    for (int i = 0; i < run->metric_count; i++)
        if (strcasecmp(run->metrics[i].name, "epoch") == 0)
            return run->metrics[i].value;
    return NAN;
}

static bool is_alike(double a, double b) {
    return fabs(a - b) <= ALIKE * fabs(b); /* NaN isn't */
}

static bool has_same_epochs(const struct metrics_metric *metric) {
    double first = last_epoch(metric->values[0].setting->point.runs[0]);
    for (int i = 1; i < metric->compared; i++)
        if (!is_alike(last_epoch(metric->values[i].setting->point.runs[0]), first))
            return false;
    return !isnan(first);
}

static double matrix_number(const struct metrics_metric *metric, int index, const char *key) {
    const struct lab_value *options = metric->values[index].setting->point.runs[0]->options,
                           *value = lab_value_get(lab_value_get(options, "matrix"), key);
    return value && value->type == LAB_VALUE_INT ? (double)value->integer : (double)NAN;
}

/* Whether settings end in proportion to the key's value, or to its inverse. */
static bool is_length(const struct metrics_metric *metric, const double *ends, const char *key) {
    bool direct = true, inverse = true;
    double number = matrix_number(metric, 0, key);
    for (int i = 1; i < metric->compared; i++) {
        double ratio = matrix_number(metric, i, key) / number;
        direct &= is_alike(ends[i], ends[0] * ratio);
        inverse &= is_alike(ends[i] * ratio, ends[0]);
    }
    return direct || inverse;
}

static const char *find_length(const struct metrics_metric *metric, const double *ends) {
    const struct lab_value *matrix =
        lab_value_get(metric->values[0].setting->point.runs[0]->options, "matrix");
    for (int i = 0; matrix && matrix->type == LAB_VALUE_MAP && i < matrix->count; i++)
        if (is_length(metric, ends, matrix->keys[i]))
            return matrix->keys[i];
    return NULL;
}

/* --- where they are compared --- */

static bool has_values_there(const struct metrics_metric *metric) {
    for (int v = 0; v < metric->count; v++) {
        const struct lab_study_point *point = &metric->values[v].setting->point;
        for (int r = 0; r < point->count && !metric->values[v].diverged; r++)
            if (!isnan(metrics_run_value(point->runs[r], metric)) &&
                isnan(metrics_compared_value(point->runs[r], metric)))
                return false;
    }
    return true;
}

void metrics_align(struct metrics_metric *metric, bool at_end, struct lab_arena *arena) {
    double *ends = lab_arena_alloc(arena, (size_t)metric->count + 1, sizeof *ends), least = NAN;
    bool differ = false, known = metric->better != LAB_DIRECTION_NONE && !metric->rate;
    for (int i = 0; i < metric->compared && known; i++) {
        const struct lab_study_point *point = &metric->values[i].setting->point;
        ends[i] = setting_end(point, metric, false, arena);
        known = !isnan(ends[i]);
        differ |= ends[i] != ends[0];
        least = fmin(least, setting_end(point, metric, true, arena));
    }
    if (!known || !differ)
        return;
    const char *length = find_length(metric, ends);
    metric->ends_by = at_end                    ? ", as asked for"
                      : has_same_epochs(metric) ? ": they have the same epochs"
                      : length                  ? lab_arena_printf(arena, ", which %s sets", length)
                                                : NULL;
    if (metric->ends_by)
        return;
    metric->at = least;
    if (has_values_there(metric)) {
        metric->quantity = lab_arena_printf(arena, "%s at step %.15g", metric->name, least);
    } else {
        metric->at = NAN;
        metric->ends_by = ": no step has values of all";
    }
}

/* --- the note --- */

struct ended {
    double step;
    const char *name; /* of the first setting that ends there */
    int settings;
};

static void add_ends(const struct ended *ends, int count, struct lab_str *list) {
    for (int i = 0; i < count && i < NAMED_MOST; i++) {
        lab_str_printf(list, "%s%.15g (%s", i ? ", " : "", ends[i].step, ends[i].name);
        if (ends[i].settings > 1)
            lab_str_printf(list, " and %d more", ends[i].settings - 1);
        lab_str_add(list, ")");
    }
    if (count > NAMED_MOST)
        lab_str_printf(list, " … %.15g (%s)", ends[count - 1].step, ends[count - 1].name);
}

void metrics_note_steps(struct lab_analysis_result *result, const struct metrics_metric *metric,
                        struct lab_arena *arena) {
    struct ended *ends = NULL;
    int count = 0;
    LAB_AUTO(str, list);
    for (int i = 0; i < metric->compared && (metric->ends_by || !isnan(metric->at)); i++) {
        const struct metrics_value *value = &metric->values[i];
        double step = setting_end(&value->setting->point, metric, false, arena);
        int at = 0;
        while (at < count && ends[at].step != step)
            at++;
        if (at == count)
            LAB_ADD(ends, count, arena) = (struct ended){step, value->name, 0};
        ends[at].settings++;
    }
    if (count < 2)
        return;
    LAB_SORT(ends, count, LAB_BY(ends, step));
    add_ends(ends, count, &list);
    if (metric->ends_by)
        lab_str_printf(&list, ". Their ends are compared%s.", metric->ends_by);
    else
        lab_str_printf(
            &list, ". They are compared at step %.15g%s; at=end of analyze compares their ends.",
            metric->at, describe_there(metric, arena));
    lab_analysis_note(&result->notes, arena, "Settings end at different steps: %s", list.text);
    if (result->by_point)
        result->by_point = lab_arena_printf(arena, "%s Settings end at different steps: %s",
                                            result->by_point, list.text);
}
