/* comparison.c: claims from matched points: of each, and pooled. */
#include "analysis/comparison/comparison.h"

#include "analysis/claims/contrast.h"
#include "analysis/comparison/match.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>

const char *lab_comparison_verdict_name(enum lab_comparison_verdict verdict) {
    static const char *const names[] = {[LAB_COMPARISON_SLOWER] = "slower",
                                        [LAB_COMPARISON_FASTER] = "faster",
                                        [LAB_COMPARISON_INCONCLUSIVE] = "inconclusive",
                                        [LAB_COMPARISON_SAME] = "same"};
    return names[verdict];
}

const char *lab_comparison_point_verdict(const struct lab_compared_point *point) {
    if (point->base->better && point->verdict == LAB_COMPARISON_SLOWER)
        return "worse";
    if (point->base->better && point->verdict == LAB_COMPARISON_FASTER)
        return "better";
    return lab_comparison_verdict_name(point->verdict);
}

static double mean_log(const struct lab_point *point) {
    double sum = 0;
    for (int i = 0; i < point->count; i++)
        sum += log(point->values[i]);
    return sum / point->count;
}

double lab_comparison_mean(const struct lab_point *point) {
    return exp(mean_log(point));
}

const char *lab_comparison_value_text(double value, const char *unit, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    const char *gap = *unit ? " " : "";
    if (lab_str_equal(unit, "s"))
        lab_str_add_time(&text, value);
    else if (lab_str_equal(unit, "B/s"))
        lab_str_add_si(&text, value, unit);
    else if (value >= 999950)
        lab_str_printf(&text, "%.4gM%s%s", value / 1e6, gap, unit);
    else
        lab_str_printf(&text, value < 999.95 ? "%.4g%s%s" : "%.0f%s%s", value, gap, unit);
    return lab_arena_strdup(arena, text.text);
}

const char *lab_comparison_sentence(const struct lab_comparison *comparison, const char *subject,
                                    const char *reference, struct lab_arena *arena) {
    if (comparison->identical_count && comparison->identical_count == comparison->timed_count)
        return lab_arena_printf(arena,
                                "%s and %s have identical values at all points (%d): copies, or "
                                "simulations with one seed.",
                                subject, reference, comparison->timed_count);
    struct lab_claim claim = comparison->pooled;
    LAB_AUTO(str, text);
    for (int i = -1; i < comparison->metric_count; i++) {
        if (i >= 0)
            claim = comparison->metrics[i].claim;
        if (i >= 0 && claim.verdict != LAB_CLAIM_YES)
            continue;
        claim.subject = subject;
        claim.reference = reference;
        lab_str_printf(&text, "%s%s.", i < 0 ? "" : " ", lab_claim_sentence(&claim, arena));
    }
    return lab_arena_strdup(arena, text.text);
}

/* --- claims --- */

static bool is_in_turn(const struct lab_comparison *comparison) {
    return comparison->base->session &&
           lab_str_equal(comparison->base->session, comparison->other->session);
}

static int block_count(const struct lab_comparison *comparison) {
    int last = -1;
    for (int p = 0; p < comparison->point_count; p++)
        for (int side = 0; side < 2; side++) {
            const struct lab_point *point =
                side ? comparison->points[p].other : comparison->points[p].base;
            for (int i = 0; i < point->count; i++)
                last = point->blocks[i] > last ? point->blocks[i] : last;
        }
    return last + 1;
}

/* Times count the other way where bandwidths are among the points, so that all can be pooled. */
static double sign_of(const struct lab_point *point, bool mixed) {
    return mixed && lab_point_less_is_better(point) ? -1 : 1;
}

static bool is_mixed(const struct lab_comparison *comparison) {
    for (int p = 1; p < comparison->point_count; p++)
        if (!lab_str_equal(comparison->points[p].base->quantity,
                           comparison->points[0].base->quantity))
            return true;
    return false;
}

/* Of each block, the mean over points of the logarithm less the point's own mean; plus the mean
 * difference from the base. NaN = the block has no run. */
static double *block_means(const struct lab_comparison *comparison, bool other, bool mixed,
                           int blocks, struct lab_arena *arena) {
    double *sums = lab_arena_alloc(arena, (size_t)blocks + 1, sizeof *sums);
    int *counts = lab_arena_alloc(arena, (size_t)blocks + 1, sizeof *counts);
    double level = 0;
    for (int p = 0; p < comparison->point_count; p++) {
        const struct lab_point *base = comparison->points[p].base,
                               *point = other ? comparison->points[p].other : base;
        double sign = sign_of(point, mixed), mean = mean_log(point);
        level += sign * (mean - mean_log(base)) / comparison->point_count;
        for (int i = 0; i < point->count; i++) {
            sums[point->blocks[i]] += sign * (log(point->values[i]) - mean);
            counts[point->blocks[i]]++;
        }
    }
    for (int b = 0; b < blocks; b++)
        sums[b] = counts[b] ? level + sums[b] / counts[b] : (double)NAN;
    return sums;
}

static struct lab_claim claim_of(const struct lab_comparison *comparison, bool mixed,
                                 struct lab_arena *arena) {
    int blocks = block_count(comparison);
    double *base = block_means(comparison, false, mixed, blocks, arena),
           *other = block_means(comparison, true, mixed, blocks, arena);
    if (is_in_turn(comparison)) {
        for (int b = 0; b < blocks; b++)
            other[b] -= base[b];
        return lab_claim_from_blocks(other, blocks, NULL);
    }
    for (int b = 0; b < blocks; b++) {
        base[b] = exp(base[b]);
        other[b] = exp(other[b]);
    }
    return lab_claim_from_samples(base, blocks, other, blocks);
}

static bool is_pooled(const struct lab_point *point, const char *metric) {
    return metric ? point->better && lab_str_equal(point->quantity, metric)
                  : !point->is_sum && !point->better;
}

/* The comparison with the points that are pooled; with all, where none is. */
static struct lab_comparison pooled_points(const struct lab_comparison *comparison,
                                           const char *metric, struct lab_arena *arena) {
    struct lab_comparison some = *comparison;
    some.points = NULL;
    some.point_count = 0;
    for (int p = 0; p < comparison->point_count; p++)
        if (is_pooled(comparison->points[p].base, metric))
            LAB_ADD(some.points, some.point_count, arena) = comparison->points[p];
    return some.point_count ? some : *comparison;
}

/* Over the points of a reported metric; NULL = over all others. */
static struct lab_claim pooled_claim(const struct lab_comparison *whole, const char *metric,
                                     struct lab_arena *arena) {
    const struct lab_comparison some = pooled_points(whole, metric, arena), *comparison = &some;
    bool mixed = is_mixed(comparison);
    struct lab_claim claim = claim_of(comparison, mixed, arena);
    const char **scope = NULL;
    for (int p = 0; p < comparison->point_count; p++)
        LAB_ADD(scope, claim.scope_count, arena) =
            lab_comparison_point_name(comparison, comparison->points[p].base, arena);
    claim.scope = scope;
    return lab_claim_named(claim, metric ? "compare.reported" : "compare.pooled",
                           comparison->other->name, comparison->base->name,
                           mixed ? "performance" : comparison->points[0].base->quantity);
}

static struct lab_claim point_claim(const struct lab_comparison *comparison,
                                    struct lab_compared_point *point, struct lab_arena *arena) {
    struct lab_comparison alone = *comparison;
    const char **scope = NULL;
    alone.points = point;
    alone.point_count = 1;
    struct lab_claim claim = claim_of(&alone, false, arena);
    const char *name = lab_comparison_point_name(comparison, point->base, arena);
    LAB_ADD(scope, claim.scope_count, arena) = name;
    claim.scope = scope;
    return lab_claim_named(claim, "compare.point",
                           *name ? lab_arena_printf(arena, "%s, %s", name, comparison->other->name)
                                 : comparison->other->name,
                           comparison->base->name, point->base->quantity);
}

static enum lab_comparison_verdict verdict_of(const struct lab_claim *claim, bool less) {
    if (claim->verdict == LAB_CLAIM_YES)
        return (claim->effect < 0) == less ? LAB_COMPARISON_FASTER : LAB_COMPARISON_SLOWER;
    return claim->verdict == LAB_CLAIM_NO ? LAB_COMPARISON_SAME : LAB_COMPARISON_INCONCLUSIVE;
}

/* Above 0 = slower: lower throughput, longer time. */
static double slow_down(const struct lab_claim *claim, double effect) {
    return lab_quantity_less_is_better(claim->quantity) ? effect : -effect;
}

double lab_comparison_shown(const struct lab_claim *claim, enum lab_comparison_verdict verdict) {
    return verdict == LAB_COMPARISON_SLOWER ? fmin(fabs(claim->low), fabs(claim->high)) : 0;
}

double lab_comparison_possible(const struct lab_claim *claim) {
    return fmax(slow_down(claim, claim->low), slow_down(claim, claim->high));
}

const char *lab_comparison_axis_words(const char *name, struct lab_arena *arena) {
    if (lab_str_equal(name, "numa_node"))
        return "NUMA node";
    char *words = lab_arena_strdup(arena, name);
    for (char *at = words; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return words;
}

const char *lab_comparison_point_name(const struct lab_comparison *comparison,
                                      const struct lab_point *point, struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < comparison->axis_count; i++) {
        const char *name = comparison->axes[i], *value = lab_point_axis(point, name);
        bool known = lab_str_equal(name, "model") || lab_str_equal(name, "benchmark") ||
                     lab_str_equal(name, "test") || lab_str_equal(name, "workload") ||
                     (value && lab_str_starts(value, "GPU"));
        if (value)
            lab_str_printf(&text, "%s%s%s%s", text.length ? ", " : "",
                           known ? "" : lab_comparison_axis_words(name, arena), known ? "" : " ",
                           value);
    }
    return lab_arena_strdup(arena, text.text);
}

const char *lab_comparison_failure_name(const struct lab_comparison *comparison,
                                        const struct lab_point_failure *failure,
                                        struct lab_arena *arena) {
    const struct lab_point point = {.axes = failure->axes, .axis_count = failure->axis_count};
    const char *name = lab_comparison_point_name(comparison, &point, arena);
    LAB_AUTO(str, text);
    if (*name)
        return name;
    for (int i = 0; i < failure->axis_count; i++)
        lab_str_printf(&text, "%s%s", i ? ", " : "", failure->axes[i].text);
    return lab_arena_strdup(arena, text.text);
}

/* --- all of them --- */

static int by_verdict(const void *a, const void *b) {
    const struct lab_compared_point *x = a, *y = b;
    double p = fabs(x->claim.effect), q = fabs(y->claim.effect);
    if (x->verdict != y->verdict)
        return x->verdict < y->verdict ? -1 : 1;
    if (p != q)
        return p > q ? -1 : 1;
    return x->base < y->base ? -1 : x->base > y->base;
}

static bool is_identical(const struct lab_compared_point *point) {
    const struct lab_point *a = point->base, *b = point->other;
    bool same = a->count > 1 && a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = a->values[i] == b->values[i];
    return same;
}

static void add_metrics(struct lab_comparison *comparison, struct lab_arena *arena) {
    for (int p = 0; p < comparison->point_count; p++) {
        const struct lab_point *point = comparison->points[p].base;
        bool again = !point->better;
        for (int m = 0; m < comparison->metric_count; m++)
            again |= lab_str_equal(comparison->metrics[m].base->quantity, point->quantity);
        if (!again)
            LAB_ADD(comparison->metrics, comparison->metric_count, arena) =
                (struct lab_compared_point){.base = point,
                                            .other = comparison->points[p].other,
                                            .claim =
                                                pooled_claim(comparison, point->quantity, arena)};
    }
}

static void judge(struct lab_comparison *comparisons, int count, struct lab_arena *arena) {
    struct lab_claim **pooled = lab_arena_alloc(arena, (size_t)count + 1, sizeof *pooled),
                     **points = NULL;
    int point_count = 0;
    for (int i = 0; i < count; i++) {
        struct lab_comparison *comparison = &comparisons[i];
        bool simulated = comparison->base->simulated || comparison->other->simulated;
        comparison->pooled = pooled_claim(comparison, NULL, arena);
        comparison->pooled.simulated = simulated;
        pooled[i] = &comparison->pooled;
        for (int p = 0; p < comparison->point_count; p++) {
            comparison->points[p].claim = point_claim(comparison, &comparison->points[p], arena);
            comparison->points[p].claim.simulated = simulated;
            bool timed = !comparison->points[p].base->better;
            comparison->timed_count += timed;
            comparison->identical_count += timed && is_identical(&comparison->points[p]);
            LAB_ADD(points, point_count, arena) = &comparison->points[p].claim;
        }
        add_metrics(comparison, arena);
        for (int m = 0; m < comparison->metric_count; m++) {
            comparison->metrics[m].claim.simulated = simulated;
            LAB_ADD(points, point_count, arena) = &comparison->metrics[m].claim;
        }
    }
    lab_claim_adjust(pooled, count);
    lab_claim_adjust(points, point_count);
    for (int i = 0; i < count; i++) {
        struct lab_comparison *comparison = &comparisons[i];
        bool same =
                 comparison->timed_count && comparison->identical_count == comparison->timed_count,
             less = lab_quantity_less_is_better(comparison->pooled.quantity);
        comparison->verdict = same ? LAB_COMPARISON_SAME : verdict_of(&comparison->pooled, less);
        for (int m = 0; m < comparison->metric_count; m++)
            comparison->metrics[m].verdict =
                verdict_of(&comparison->metrics[m].claim,
                           lab_point_less_is_better(comparison->metrics[m].base));
        for (int p = 0; p < comparison->point_count; p++) {
            struct lab_compared_point *point = &comparison->points[p];
            point->verdict = is_identical(point)
                                 ? LAB_COMPARISON_SAME
                                 : verdict_of(&point->claim, lab_point_less_is_better(point->base));
            comparison->counts[point->verdict]++;
        }
        qsort(comparison->points, (size_t)comparison->point_count, sizeof *comparison->points,
              by_verdict);
    }
}

int lab_comparisons_make(const struct lab_point_set *sets, int count, struct lab_arena *arena,
                         struct lab_comparison **ret_comparisons, struct lab_err *err) {
    struct lab_comparison *comparisons =
        lab_arena_alloc(arena, (size_t)count + 1, sizeof *comparisons);
    for (int i = 1; i < count; i++) {
        lab_comparison_match(&sets[0], &sets[i], arena, &comparisons[i - 1]);
        if (comparisons[i - 1].point_count == 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s and %s share no point: they ran or timed different things",
                               sets[0].source, sets[i].source);
    }
    judge(comparisons, count - 1, arena);
    *ret_comparisons = comparisons;
    return 0;
}
