/* compare.c: settings against each other. Repeats of one study are blocks, copies decide
 * nothing. */
#include "analysis/metrics/metrics.h"

#include "analysis/claims/contrast.h"
#include "base/list.h"

#include <math.h>

static double metric_value(const struct lab_study_run *run, const void *metric) {
    return metrics_run_value(run, metric);
}

struct metrics_figure metrics_figure_of(const struct metrics_metric *metric) {
    return (struct metrics_figure){.value = metric_value,
                                   .context = metric,
                                   .name = metric->name,
                                   .difference = metric->differs ? metric->unit : NULL,
                                   .rate = metric->rate};
}

static double *values_of(const struct metrics_setting *setting, const struct metrics_figure *figure,
                         struct lab_arena *arena) {
    double *values = lab_arena_alloc(arena, (size_t)setting->point.count, sizeof *values);
    for (int i = 0; i < setting->point.count; i++)
        values[i] = figure->value(setting->point.runs[i], figure->context);
    return values;
}

#define COPIED "the repeats are identical: vary the seed, e.g. with --seed {repeat}"
#define EQUAL  "all repeats have the same value"

static bool is_constant(const struct metrics_setting *setting,
                        const struct metrics_figure *figure) {
    const struct lab_study_point *point = &setting->point;
    for (int i = 1; i < point->count; i++)
        if (figure->value(point->runs[i], figure->context) !=
            figure->value(point->runs[0], figure->context))
            return false;
    return true;
}

/* Copies of one run repeat nothing, and neither does a value that never varies: an interval of no
 * width would decide anything. A machine that is simulated without noise is as sure as that. */
static void withhold_copied(const struct metrics_setting *base, const struct metrics_setting *other,
                            const struct metrics_figure *figure, struct lab_claim *claim) {
    bool copied = (base->copied || other->copied) && !figure->rate;
    if (claim->n < 2 || (base->study->simulated && other->study->simulated))
        return;
    if (copied || (is_constant(base, figure) && is_constant(other, figure)))
        lab_claim_withhold(claim, copied ? COPIED : EQUAL);
}

/* Repeats of one study are blocks; those of two have nothing in common. */
struct lab_claim metrics_contrast(const struct metrics_setting *base,
                                  const struct metrics_setting *other,
                                  const struct metrics_figure *figure, const char *kind,
                                  struct lab_arena *arena) {
    struct lab_claim claim;
    if (base->study == other->study) {
        struct lab_contrast pair = {.arena = arena,
                                    .value = figure->value,
                                    .context = figure->context,
                                    .difference = figure->difference};
        lab_contrast_add_pair(&pair, &base->point, &other->point, 1);
        claim = lab_claim_estimate(&pair, LAB_STUDY_RATE);
    } else {
        claim = lab_claim_from_differences(values_of(base, figure, arena), base->point.count,
                                           values_of(other, figure, arena), other->point.count,
                                           figure->difference);
        lab_claim_add_scope(&claim, base->name, arena);
        lab_claim_add_scope(&claim, other->name, arena);
    }
    if (!figure->rate && claim.needed > LAB_CLAIM_RUNS_MOST)
        claim.needed = 0; /* seeds differ: a quiet machine, which would be advised, won't help */
    withhold_copied(base, other, figure, &claim);
    return lab_claim_named(claim, kind, other->name, base->name, figure->name);
}

/* Against the first setting of the plan, in which the values still are. */
static void compare_with_first(struct metrics_metric *metric, const struct metrics_figure *figure,
                               struct lab_arena *arena) {
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)metric->count + 1, sizeof *claims);
    for (int i = 0; i < metric->count; i++) {
        struct metrics_value *value = &metric->values[i];
        value->change = lab_claim_named(lab_claim_none, "metrics.setting", value->name,
                                        metric->values[0].name, metric->name);
        if (i > 0 && metric->better != LAB_DIRECTION_NONE)
            value->change = metrics_contrast(metric->values[0].setting, value->setting, figure,
                                             "metrics.setting", arena);
        claims[i] = &value->change;
    }
    lab_claim_adjust(claims, metric->count);
}

/* Against the best value, which is the first now: which settings can be excluded, and whether the
 * choice between the two best matters. */
static void compare_with_best(struct metrics_metric *metric, const struct metrics_figure *figure,
                              struct lab_arena *arena) {
    struct lab_claim **claims = lab_arena_alloc(arena, (size_t)metric->count + 1, sizeof *claims);
    metric->lead = lab_claim_none;
    for (int i = 0; i < metric->count; i++) {
        struct metrics_value *value = &metric->values[i];
        value->worse = lab_claim_none;
        if (i > 0 && metric->better != LAB_DIRECTION_NONE)
            value->worse = metrics_contrast(metric->values[0].setting, value->setting, figure,
                                            "metrics.worse", arena);
        claims[i] = &value->worse;
    }
    lab_claim_adjust(claims, metric->count);
    if (metric->count > 1 && metric->better != LAB_DIRECTION_NONE)
        metric->lead = metrics_contrast(metric->values[1].setting, metric->values[0].setting,
                                        figure, "metrics.best", arena);
    if (metrics_is_gain(metric, &metric->lead))
        metric->best = metric->values[0].name;
}

void metrics_compare(struct metrics_metric *metric, struct lab_arena *arena) {
    struct metrics_figure figure = metrics_figure_of(metric);
    compare_with_first(metric, &figure, arena);
    LAB_SORT(metric->values, metric->count,
             LAB_LIST_KEY(metric->values, value, metric->better == LAB_DIRECTION_HIGHER));
    compare_with_best(metric, &figure, arena);
}

bool metrics_is_gain(const struct metrics_metric *metric, const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_YES &&
           (metric->better == LAB_DIRECTION_HIGHER ? claim->effect > 0 : claim->effect < 0);
}

bool metrics_is_worse(const struct metrics_metric *metric, const struct metrics_value *value) {
    return value->worse.verdict == LAB_CLAIM_YES && !metrics_is_gain(metric, &value->worse);
}
