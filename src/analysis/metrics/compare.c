/* compare.c: settings against each other. Repeats of one study are blocks, copies decide
 * nothing. */
#include "analysis/metrics/metrics.h"

#include "analysis/claims/contrast.h"
#include "base/list.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

static double metric_value(const struct lab_study_run *run, const void *metric) {
    return metrics_compared_value(run, metric);
}

struct metrics_figure metrics_figure_of(const struct metrics_metric *metric) {
    return (struct metrics_figure){.value = metric_value,
                                   .context = metric,
                                   .name = metric->quantity,
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

#define REPEAT "{repeat}"
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

static bool has_repeat(const struct lab_value *value) {
    return value && value->type == LAB_VALUE_STRING && strstr(value->string, REPEAT);
}

/* Whether the command, or its environment, has the repeat's number. */
static bool is_numbered(const struct metrics_setting *setting) {
    const struct lab_value *options = setting->point.runs[0]->options,
                           *env = lab_value_get(options, "env");
    bool numbered = has_repeat(lab_value_get(options, "command"));
    for (int i = 0; env && env->type == LAB_VALUE_MAP && i < env->count; i++)
        numbered |= has_repeat(env->items[i]);
    return numbered;
}

/* Of one of them alone, its name. */
static const char *copied_words(const struct metrics_setting *base,
                                const struct metrics_setting *other, struct lab_arena *arena) {
    const struct metrics_setting *copied = base->copied ? base : other;
    bool both = base->copied && other->copied;
    return lab_arena_printf(arena, "the repeats%s%s are identical: %s", both ? "" : " of ",
                            both ? "" : copied->name,
                            is_numbered(copied) ? "let the program use its seed"
                                                : "vary the seed, e.g. with --seed " REPEAT);
}

/* Copies of one run repeat nothing, and neither does a value that never varies: an interval of no
 * width would decide anything. A machine that is simulated without noise is as sure as that. */
static void withhold_copied(const struct metrics_setting *base, const struct metrics_setting *other,
                            const struct metrics_figure *figure, struct lab_claim *claim,
                            struct lab_arena *arena) {
    bool copied = (base->copied || other->copied) && !figure->rate;
    if (claim->n < 2 || (base->study->simulated && other->study->simulated))
        return;
    if (copied || (is_constant(base, figure) && is_constant(other, figure)))
        lab_claim_withhold(claim, copied ? copied_words(base, other, arena) : EQUAL);
}

static int count_values(const struct metrics_setting *setting,
                        const struct metrics_figure *figure) {
    int count = 0;
    for (int i = 0; i < setting->point.count; i++)
        count += isfinite(figure->value(setting->point.runs[i], figure->context));
    return count;
}

/* Runs that were planned of the setting that has fewer values. */
static int planned_of(const struct metrics_setting *base, const struct metrics_setting *other,
                      const struct metrics_figure *figure) {
    return count_values(base, figure) < count_values(other, figure) ? base->planned
                                                                    : other->planned;
}

static struct lab_contrast pair_of(const struct metrics_setting *base,
                                   const struct metrics_setting *other,
                                   const struct metrics_figure *figure, struct lab_arena *arena) {
    struct lab_contrast pair = {.arena = arena,
                                .value = figure->value,
                                .context = figure->context,
                                .difference = figure->difference,
                                .prior = figure->prior,
                                .prior_most = figure->prior_most};
    lab_contrast_add_pair(&pair, &base->point, &other->point, 1);
    return pair;
}

#define NEIGHBOURS 20 /* pairs of a setting: of hundreds of settings, not all */

/* Three repeats hardly show how much a pair varies: the variances of all pairs do. */
static void add_prior(const struct metrics_metric *metric, struct metrics_figure *figure,
                      struct lab_arena *arena) {
    size_t room = (size_t)metric->compared * NEIGHBOURS + 1, count = 0;
    double *variances = lab_arena_alloc(arena, room, sizeof *variances),
           *freedoms = lab_arena_alloc(arena, room, sizeof *freedoms), most = 0;
    for (int i = 0; i < metric->compared; i++) {
        double freedom = 0; /* the setting's: its distance from those before */
        for (int k = i - 1; k >= 0 && k >= i - NEIGHBOURS; k--) {
            const struct metrics_setting *base = metric->values[k].setting,
                                         *other = metric->values[i].setting;
            if (base->study != other->study)
                continue;
            struct lab_contrast pair = pair_of(base, other, figure, arena);
            variances[count] = lab_contrast_variance(&pair, LAB_STUDY_RATE, &freedoms[count]);
            freedom = fmax(freedom, freedoms[count]); /* fmax passes NaN over */
            count++;
        }
        most += freedom;
    }
    figure->prior = lab_stats_variance_prior(variances, freedoms, count);
    figure->prior_most = most;
}

/* Repeats of one study are blocks; those of two have nothing in common. */
struct lab_claim metrics_contrast(const struct metrics_setting *base,
                                  const struct metrics_setting *other,
                                  const struct metrics_figure *figure, const char *kind,
                                  struct lab_arena *arena) {
    struct lab_claim claim;
    if (base->study == other->study) {
        struct lab_contrast pair = pair_of(base, other, figure, arena);
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
    withhold_copied(base, other, figure, &claim, arena);
    claim.of = planned_of(base, other, figure);
    return lab_claim_named(claim, kind, other->name, base->name, figure->name);
}

/* Against the first setting of the plan; the best value is the first of the list. */
static void compare(struct metrics_metric *metric, const struct metrics_setting *planned,
                    const struct metrics_figure *figure, struct lab_arena *arena) {
    bool directed = metric->better != LAB_DIRECTION_NONE;
    const struct metrics_setting *best = metric->values[0].setting;
    metric->lead = lab_claim_none;
    for (int i = 0; i < metric->count; i++) {
        struct metrics_value *value = &metric->values[i];
        value->worse = lab_claim_none;
        value->change = lab_claim_named(lab_claim_none, "metrics.setting", value->name,
                                        planned->name, metric->quantity);
        if (directed && value->setting != planned && i < metric->compared)
            value->change =
                metrics_contrast(planned, value->setting, figure, "metrics.setting", arena);
        if (directed && i > 0 && i < metric->compared)
            value->worse = metrics_contrast(best, value->setting, figure, "metrics.worse", arena);
    }
    if (directed && metric->compared > 1)
        metric->lead =
            metrics_contrast(metric->values[1].setting, best, figure, "metrics.best", arena);
}

/* Whether all others are worse than the best, each by itself. */
static bool beats_all(const struct metrics_metric *metric) {
    for (int i = 1; i < metric->compared; i++)
        if (!metrics_is_worse(metric, &metric->values[i]))
            return false;
    return metric->compared > 1;
}

/*
 * The best was chosen by the same values, so that any pair of settings could have been compared:
 * verdicts hold together over all pairs and those of keys (Holm). That one setting is better than
 * every other needs no correction: with two equal settings, where it is wrong most often, it is one
 * test (Gutmann and Maymin, "Is the selected population the best?", 1987).
 */
static void judge(struct metrics_metric *metric, int first, int tests, struct lab_arena *arena) {
    size_t count = (size_t)metric->compared;
    double *of_best = lab_arena_alloc(arena, 2 * count, sizeof *of_best),
           *of_first = of_best + count;
    bool alone = beats_all(metric);
    for (int i = 0; i < metric->compared; i++) { /* each pair once */
        bool paired = first == 0 || i == 0 || i == first;
        of_best[i] = metric->values[i].worse.p;
        of_first[i] = paired ? (double)NAN : metric->values[i].change.p;
    }
    lab_stats_adjust_holm(of_best, 2 * count, (size_t)tests, of_best);
    for (int i = 0; i < metric->compared; i++) {
        struct metrics_value *value = &metric->values[i];
        of_best[i] = alone ? value->worse.p : of_best[i];
        lab_claim_judge(&value->worse, of_best[i]);
    }
    for (int i = 0; i < metric->compared; i++)
        lab_claim_judge(&metric->values[i].change, first == 0 ? of_best[i]
                                                   : i == 0   ? of_best[first]
                                                              : of_first[i]);
    if (metric->compared > 1)
        lab_claim_judge(&metric->lead, of_best[1]);
    metric->best = alone ? metric->values[0].name : NULL;
}

void metrics_compare(struct metrics_metric *metric, struct lab_arena *arena) {
    struct metrics_figure figure = metrics_figure_of(metric);
    int planned = 0, first = 0;
    while (metric->compared < metric->count && metric->values[planned].diverged)
        planned++;
    const struct metrics_setting *reference = metric->values[planned].setting;
    LAB_SORT(metric->values, metric->count, LAB_BY(metric->values, diverged),
             LAB_LIST_KEY(metric->values, value, metric->better == LAB_DIRECTION_HIGHER));
    while (metric->values[first].setting != reference)
        first++;
    if (metric->better != LAB_DIRECTION_NONE)
        add_prior(metric, &figure, arena);
    compare(metric, reference, &figure, arena);
    int tests = metric->compared * (metric->compared - 1) / 2;
    metric->keys = metric->by_key ? metrics_keys_compare(metric, &tests, arena) : NULL;
    judge(metric, first, tests, arena);
}

bool metrics_is_gain(const struct metrics_metric *metric, const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_YES &&
           (metric->better == LAB_DIRECTION_HIGHER ? claim->effect > 0 : claim->effect < 0);
}

bool metrics_is_worse(const struct metrics_metric *metric, const struct metrics_value *value) {
    return value->worse.verdict == LAB_CLAIM_YES && !metrics_is_gain(metric, &value->worse);
}
