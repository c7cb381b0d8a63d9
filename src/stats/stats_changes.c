/*
 * stats_changes.c: change points by PELT: dynamic programming over the last change, where places
 * that can never again be the best are dropped.
 *
 * A series without changes drops nothing and costs the square of the number of places, hence the
 * grid for long ones. Costs come from running sums about the median in long double: one first
 * iteration a million times slower than the rest must not cost the rest their digits.
 */
#include "stats/changes.h"

#include "base/mem.h"
#include "stats/stats.h"

#include <float.h>
#include <math.h>

#define PENALTY_PER_LOG   15.0
#define SEGMENT_LEAST     2
#define PLACES_MAX        2048
#define SPREAD_RESOLUTION 1e-9 /* of the largest deviation: the least σ that is believed */
#define ALIKE_SHARE       0.001
#define STEADY_SHARE      4 /* the last quarter must be steady */

struct series {
    size_t n, segment_min;
    enum lab_changes_cost cost;
    double penalty;
    double variance;             /* of all segments, or the least of one */
    long double *sums, *squares; /* of the first i values, about the median */
};

/* −2 log likelihood of values begin … end−1 as one segment, but for constants. */
static double cost_of(const struct series *series, size_t begin, size_t end) {
    long double count = (long double)(end - begin), sum = series->sums[end] - series->sums[begin];
    long double around = series->squares[end] - series->squares[begin] - sum * sum / count;
    double squares = fmax((double)around, 0);
    if (series->cost == LAB_CHANGES_MEAN)
        return squares / series->variance;
    /* at most likely variance that isn't below the least: keeps a cut from ever costing more */
    double variance = fmax(squares / (double)count, series->variance);
    return (double)count * log(variance) + squares / variance;
}

/* σ² of what stays when slow changes are taken away; by mean square where most neighbours are tied
 * and the MAD is 0. */
static double variance_of_differences(const double *x, size_t n, double *scratch) {
    double squares = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        scratch[i] = x[i + 1] - x[i];
        squares += scratch[i] * scratch[i];
    }
    double sigma = lab_stats_mad(scratch, n - 1, true);
    bool told = sigma > 16 * DBL_EPSILON; /* values are at most 1: below is their rounding */
    return (told ? sigma * sigma : squares / (double)(n - 1)) / 2;
}

/* The square of the least step between distinct values over 12: what rounding to steps adds. */
static double variance_of_rounding(const double *x, size_t n, double *scratch) {
    double step = INFINITY;
    lab_stats_sort(x, n, scratch);
    for (size_t i = 1; i < n; i++) {
        if (scratch[i] > scratch[i - 1])
            step = fmin(step, scratch[i] - scratch[i - 1]);
    }
    return step * step / 12;
}

/* Values about their median in units of the largest deviation. False if all are equal. */
static bool normalise(const double *x, size_t n, double *ret_normal) {
    double middle = lab_stats_median(x, n), largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i] / 2 - middle / 2)); /* halves: 1e308 − −1e308 fits */
    for (size_t i = 0; i < n && largest > 0; i++)
        ret_normal[i] = (x[i] / 2 - middle / 2) / largest;
    return largest > 0;
}

static void add_up(const double *normal, size_t n, struct series *series) {
    series->sums[0] = series->squares[0] = 0;
    for (size_t i = 0; i < n; i++) {
        series->sums[i + 1] = series->sums[i] + normal[i];
        series->squares[i + 1] = series->squares[i] + (long double)normal[i] * normal[i];
    }
}

struct candidate {
    size_t place;
    size_t last; /* last place at which it may still be best */
    double cost; /* of all up to the place looked at, the last change being here; ∞: too near */
};

/* Candidates whose cost at `end` shows that a change there would have been better are kept only for
 * ends that are too near for such a change, `reach` places. */
static size_t drop(struct candidate *candidates, size_t count, size_t end, double best,
                   size_t reach) {
    size_t kept = 0;
    for (size_t k = 0; k < count; k++) {
        struct candidate one = candidates[k];
        if (one.last == SIZE_MAX && isfinite(one.cost) && one.cost >= best)
            one.last = end + reach - 1;
        if (one.last > end)
            candidates[kept++] = one;
    }
    return kept;
}

/*
 * The best last change before each place, places being `step` values apart and the last one n.
 * best[k] is the least cost of all up to place k, penalties included but for the first segment's.
 */
static void search(const struct series *series, size_t step, size_t places, size_t *ret_previous) {
    LAB_AUTO_FREE double *best = lab_mem_resize(NULL, places + 1, sizeof *best);
    LAB_AUTO_FREE struct candidate *candidates =
        lab_mem_resize(NULL, places + 1, sizeof *candidates);
    /* on a grid one more: the last place may be nearer than a step */
    size_t count = 0, reach = (series->segment_min + step - 1) / step + (step > 1);
    best[0] = -series->penalty;
    candidates[count++] = (struct candidate){0, SIZE_MAX, INFINITY};
    for (size_t end = 1; end <= places; end++) {
        size_t end_value = end == places ? series->n : end * step;
        best[end] = INFINITY;
        ret_previous[end] = 0;
        for (size_t k = 0; k < count; k++) {
            struct candidate *one = &candidates[k];
            size_t begin = one->place * step;
            if (end_value - begin < series->segment_min)
                continue;
            one->cost = best[one->place] + cost_of(series, begin, end_value);
            if (one->cost + series->penalty < best[end]) {
                best[end] = one->cost + series->penalty;
                ret_previous[end] = one->place;
            }
        }
        if (isinf(best[end]))
            continue; /* too near to the start to end a segment */
        count = drop(candidates, count, end, best[end], reach);
        candidates[count++] = (struct candidate){end, SIZE_MAX, INFINITY};
    }
}

/* Moves each change from the grid to the best value within a step of it. */
static void refine(const struct series *series, size_t step, size_t *starts, size_t count) {
    for (size_t k = 0; k < count; k++) {
        size_t begin = k ? starts[k - 1] : 0, end = k + 1 < count ? starts[k + 1] : series->n;
        size_t low = starts[k] - (step - 1), high = starts[k] + (step - 1), best = starts[k];
        double least = INFINITY;
        for (size_t at = low; at <= high && at < end; at++) {
            if (at < begin + series->segment_min || end - at < series->segment_min)
                continue;
            double cost = cost_of(series, begin, at) + cost_of(series, at, end);
            if (cost < least) {
                least = cost;
                best = at;
            }
        }
        starts[k] = best;
    }
}

/* Takes out changes that don't pay, the least worth first. A grid leaves such: where a change lies
 * between two places, both may be needed until one of them has moved there. */
static size_t take_out(const struct series *series, size_t *starts, size_t count) {
    while (count > 0) {
        size_t worst = 0;
        double least = INFINITY;
        for (size_t k = 0; k < count; k++) {
            size_t begin = k ? starts[k - 1] : 0, end = k + 1 < count ? starts[k + 1] : series->n;
            double gain = cost_of(series, begin, end) - cost_of(series, begin, starts[k]) -
                          cost_of(series, starts[k], end);
            if (gain < least) {
                least = gain;
                worst = k;
            }
        }
        if (least > series->penalty)
            break;
        count--;
        for (size_t k = worst; k < count; k++)
            starts[k] = starts[k + 1];
    }
    return count;
}

static size_t segment(const struct series *series, size_t *ret_starts) {
    size_t step = (series->n + PLACES_MAX - 1) / PLACES_MAX;
    size_t places = (series->n + step - 1) / step, count = 0;
    LAB_AUTO_FREE size_t *previous = lab_mem_resize(NULL, places + 1, sizeof *previous);
    search(series, step, places, previous);
    for (size_t place = previous[places]; place > 0; place = previous[place])
        count++;
    size_t k = count;
    for (size_t place = previous[places]; place > 0; place = previous[place])
        ret_starts[--k] = place * step;
    if (step > 1) {
        refine(series, step, ret_starts, count);
        count = take_out(series, ret_starts, count);
        refine(series, step, ret_starts, count);
    }
    return count;
}

static bool all_finite(const double *x, size_t n) {
    bool finite = n > 0;
    for (size_t i = 0; finite && i < n; i++)
        finite = isfinite(x[i]);
    return finite;
}

bool lab_changes_find(const double *x, size_t n, const struct lab_changes_options *options,
                      size_t *ret_starts, size_t *ret_count) {
    *ret_count = 0;
    if (!all_finite(x, n))
        return false;
    struct series series = {
        .n = n,
        .segment_min = options->segment_min ? options->segment_min : SEGMENT_LEAST,
        .cost = options->cost,
        .penalty = options->penalty > 0 ? options->penalty : PENALTY_PER_LOG * log((double)n),
    };
    if (n / 2 < series.segment_min)
        return true;
    double *normal = lab_mem_resize(NULL, 2 * n, sizeof *normal), *scratch = normal + n;
    if (normalise(x, n, normal)) {
        double rounding = variance_of_rounding(normal, n, scratch);
        series.variance = series.cost == LAB_CHANGES_MEAN
                              ? variance_of_differences(normal, n, scratch)
                              : rounding;
        series.variance = fmax(series.variance, SPREAD_RESOLUTION * SPREAD_RESOLUTION);
        series.sums = lab_mem_resize(NULL, 2 * (n + 1), sizeof *series.sums);
        series.squares = series.sums + n + 1;
        add_up(normal, n, &series);
        *ret_count = segment(&series, ret_starts);
        lab_mem_free(series.sums);
    }
    lab_mem_free(normal);
    return true;
}

struct lab_steadiness lab_changes_classify(const double *x, size_t n, const size_t *starts,
                                           size_t count) {
    struct lab_steadiness result = {LAB_STEADY_UNKNOWN, n, NAN, NAN};
    if (!all_finite(x, n))
        return result;
    size_t last = count ? starts[count - 1] : 0;
    double mean = result.mean = lab_stats_mean(x + last, n - last);
    double spread = n - last > 1 ? lab_stats_stddev(x + last, n - last) : 0;
    double tolerance = ALIKE_SHARE * fabs(mean);
    if (mean != 0)
        tolerance = fmax(tolerance, spread * fabs(spread / mean));
    result.tolerance = tolerance;
    result.from = last;
    bool faster = false, different = false, together = true;
    for (size_t k = count; k-- > 0;) { /* backwards through the segments before the last */
        size_t begin = k ? starts[k - 1] : 0, end = starts[k];
        double gap = lab_stats_mean(x + begin, end - begin) - mean;
        bool alike = fabs(gap) <= tolerance;
        together = together && alike;
        result.from = together ? begin : result.from;
        different = different || !alike;
        faster = faster || gap < -tolerance;
    }
    if (result.from > n - n / STEADY_SHARE) {
        result.steady = LAB_STEADY_NONE;
        result.from = n;
    } else {
        result.steady = faster      ? LAB_STEADY_SLOWDOWN
                        : different ? LAB_STEADY_WARMUP
                                    : LAB_STEADY_FLAT;
    }
    return result;
}
