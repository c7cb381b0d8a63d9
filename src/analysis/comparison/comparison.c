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
    if (comparison->identical_count == comparison->point_count)
        return lab_arena_printf(arena,
                                "%s and %s have identical values at all points (%d): copies, or "
                                "simulations with one seed.",
                                subject, reference, comparison->point_count);
    struct lab_claim claim = comparison->pooled;
    claim.subject = subject;
    claim.reference = reference;
    return lab_arena_printf(arena, "%s.", lab_claim_sentence(&claim, arena));
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
    return mixed && lab_point_less_is_better(point->quantity) ? -1 : 1;
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

/* The comparison with those of its points that are no sum of others; with all, where all are. */
static struct lab_comparison without_sums(const struct lab_comparison *comparison,
                                          struct lab_arena *arena) {
    struct lab_comparison some = *comparison;
    some.points = NULL;
    some.point_count = 0;
    for (int p = 0; p < comparison->point_count; p++)
        if (!comparison->points[p].base->is_sum)
            LAB_ADD(some.points, some.point_count, arena) = comparison->points[p];
    return some.point_count ? some : *comparison;
}

static struct lab_claim pooled_claim(const struct lab_comparison *whole, struct lab_arena *arena) {
    const struct lab_comparison some = without_sums(whole, arena), *comparison = &some;
    bool mixed = is_mixed(comparison);
    struct lab_claim claim = claim_of(comparison, mixed, arena);
    const char **scope = NULL;
    for (int p = 0; p < comparison->point_count; p++)
        LAB_ADD(scope, claim.scope_count, arena) =
            lab_comparison_point_name(comparison, comparison->points[p].base, arena);
    claim.scope = scope;
    return lab_claim_named(claim, "compare.pooled", comparison->other->name, comparison->base->name,
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

static enum lab_comparison_verdict verdict_of(const struct lab_claim *claim) {
    bool less = lab_point_less_is_better(claim->quantity);
    if (claim->verdict == LAB_CLAIM_YES)
        return (claim->effect < 0) == less ? LAB_COMPARISON_FASTER : LAB_COMPARISON_SLOWER;
    return claim->verdict == LAB_CLAIM_NO ? LAB_COMPARISON_SAME : LAB_COMPARISON_INCONCLUSIVE;
}

/* Above 0 = slower: lower throughput, longer time. */
static double slow_down(const struct lab_claim *claim, double effect) {
    return lab_point_less_is_better(claim->quantity) ? effect : -effect;
}

double lab_comparison_shown(const struct lab_claim *claim, enum lab_comparison_verdict verdict) {
    double low = slow_down(claim, claim->low), high = slow_down(claim, claim->high);
    return verdict == LAB_COMPARISON_SLOWER ? fmax(0, fmin(low, high)) : 0;
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

static void judge(struct lab_comparison *comparisons, int count, struct lab_arena *arena) {
    struct lab_claim **pooled = lab_arena_alloc(arena, (size_t)count + 1, sizeof *pooled),
                     **points = NULL;
    int point_count = 0;
    for (int i = 0; i < count; i++) {
        struct lab_comparison *comparison = &comparisons[i];
        bool simulated = comparison->base->simulated || comparison->other->simulated;
        comparison->pooled = pooled_claim(comparison, arena);
        comparison->pooled.simulated = simulated;
        pooled[i] = &comparison->pooled;
        for (int p = 0; p < comparison->point_count; p++) {
            comparison->points[p].claim = point_claim(comparison, &comparison->points[p], arena);
            comparison->points[p].claim.simulated = simulated;
            comparison->identical_count += is_identical(&comparison->points[p]);
            LAB_ADD(points, point_count, arena) = &comparison->points[p].claim;
        }
    }
    lab_claim_adjust(pooled, count);
    lab_claim_adjust(points, point_count);
    for (int i = 0; i < count; i++) {
        struct lab_comparison *comparison = &comparisons[i];
        comparison->verdict = comparison->identical_count == comparison->point_count
                                  ? LAB_COMPARISON_SAME
                                  : verdict_of(&comparison->pooled);
        for (int p = 0; p < comparison->point_count; p++) {
            struct lab_compared_point *point = &comparison->points[p];
            point->verdict = is_identical(point) ? LAB_COMPARISON_SAME : verdict_of(&point->claim);
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
