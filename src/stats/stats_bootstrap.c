/*
 * stats_bootstrap.c: intervals by resampling.
 *
 * Value i of resample r is drawn as number r·n + i of the seed's stream, so that a result repeats
 * whatever order or thread computes it.
 */
#include "base/mem.h"
#include "base/random.h"
#include "stats/stats.h"

#include <math.h>
#include <string.h>

#define JACKKNIFE_GROUPS 200

static const struct lab_interval unknown = {NAN, NAN, NAN};

static bool constant(const double *x, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (x[i] != x[0])
            return false;
    }
    return true;
}

static bool answerable(const double *x, size_t n, double confidence, int resamples) {
    bool sane = n >= 2 && resamples >= 1 && confidence > 0 && confidence < 1;
    for (size_t i = 0; sane && i < n; i++)
        sane = !isnan(x[i]);
    return sane;
}

/*
 * The statistic without each of up to JACKKNIFE_GROUPS groups of values, and how many groups.
 * Leaving out groups instead of single values keeps the acceleration's expectation: each is then a
 * sum of h influences, whose skewness falls with √h as the number of groups falls with h.
 */
static size_t leave_out(const double *x, size_t n, lab_statistic *statistic, double *rest,
                        double *ret_values) {
    size_t groups = n < JACKKNIFE_GROUPS ? n : JACKKNIFE_GROUPS;
    for (size_t g = 0; g < groups; g++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            rest[count] = x[i];
            count += i % groups != g; /* interleaved, so that a drift is no group's alone */
        }
        ret_values[g] = statistic(rest, count);
    }
    return groups;
}

/* In place: (mean of the leave-out values − each of them)·(g − 1)/g, what each group adds. */
static void to_influences(double *values, size_t groups) {
    double mean = lab_stats_mean(values, groups);
    for (size_t g = 0; g < groups; g++)
        values[g] = (mean - values[g]) * ((double)(groups - 1) / (double)groups);
}

/* Acceleration a = Σ d³ / (6 (Σ d²)^{3/2}) of influences, of one sample or of several together. */
static double acceleration(const double *influences, size_t count) {
    double largest = 0, squares = 0, cubes = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(influences[i]));
    if (!(largest > 0) || isinf(largest))
        return 0;
    for (size_t i = 0; i < count; i++) {
        double d = influences[i] / largest;
        squares += d * d;
        cubes += d * d * d;
    }
    double a = cubes / (6 * pow(squares, 1.5));
    return isnan(a) ? 0 : a;
}

/* Bias z₀ = Φ⁻¹(share of resamples below the estimate), equal ones counting half, so that a
 * statistic with few distinct values such as the median isn't taken for biased. */
static double bias(const double *sorted, int count, double estimate) {
    int below = 0, equal = 0;
    for (int i = 0; i < count; i++) {
        below += sorted[i] < estimate;
        equal += sorted[i] == estimate;
    }
    double share = (below + 0.5 * equal) / count;
    /* all on one side: as far as so many resamples can tell */
    share = fmin(fmax(share, 0.5 / count), 1 - 0.5 / count);
    return lab_stats_normal_quantile(share);
}

/* Φ(z₀ + (z₀ + z) / (1 − a (z₀ + z))), Efron's corrected percentile. */
static double corrected(double bias_z, double z, double a) {
    double sum = bias_z + z, divisor = 1 - a * sum;
    if (divisor <= 0)
        return sum > 0 ? 1 : 0;
    return lab_stats_normal_cdf(bias_z + sum / divisor);
}

/* From `values`, which `ret_sorted` gets in order; NaN among them: none. */
static struct lab_interval bca(const double *values, int resamples, double *ret_sorted,
                               double estimate, double a, double confidence) {
    if (isnan(estimate) || !lab_stats_sort(values, (size_t)resamples, ret_sorted))
        return unknown;
    double z0 = bias(ret_sorted, resamples, estimate);
    double z = lab_stats_normal_quantile(0.5 + confidence / 2);
    return (struct lab_interval){
        lab_stats_quantile_sorted(ret_sorted, (size_t)resamples, corrected(z0, -z, a)),
        lab_stats_quantile_sorted(ret_sorted, (size_t)resamples, corrected(z0, z, a)), confidence};
}

/* --- resamples --- */

/*
 * One sample's resamples. Their medians, which are asked for most, need no sorting of each: how
 * often each value was drawn, counted by its rank, tells where the middle lies.
 */
struct resampler {
    const double *x;
    size_t n;
    lab_statistic *statistic;
    double *drawn;
    double *sorted; /* of a median; NULL otherwise */
    uint32_t *ranks, *counts;
};

static void start_resampling(struct resampler *sampler, const double *x, size_t n,
                             lab_statistic *statistic) {
    *sampler = (struct resampler){.x = x, .n = n, .statistic = statistic};
    sampler->drawn = lab_mem_resize(NULL, n, sizeof *sampler->drawn);
    if (statistic != lab_stats_median || n > UINT32_MAX)
        return;
    sampler->sorted = lab_mem_resize(NULL, n, sizeof *sampler->sorted);
    sampler->ranks = lab_mem_resize(NULL, 2 * n, sizeof *sampler->ranks);
    sampler->counts = sampler->ranks + n;
    lab_stats_sort(x, n, sampler->sorted);
    for (size_t i = 0; i < n; i++) {
        size_t low = 0, high = n; /* the first that isn't smaller: equal ones share a place */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (sampler->sorted[middle] < x[i])
                low = middle + 1;
            else
                high = middle;
        }
        sampler->ranks[i] = (uint32_t)low;
    }
}

static void end_resampling(struct resampler *sampler) {
    lab_mem_free(sampler->drawn);
    lab_mem_free(sampler->sorted);
    lab_mem_free(sampler->ranks);
}

static double median_by_ranks(struct resampler *sampler, uint64_t seed, uint64_t *index) {
    size_t n = sampler->n, at = 0, seen;
    memset(sampler->counts, 0, n * sizeof *sampler->counts);
    for (size_t i = 0; i < n; i++)
        sampler->counts[sampler->ranks[lab_random_below(seed, (*index)++, n)]]++;
    for (seen = sampler->counts[0]; seen <= (n - 1) / 2;)
        seen += sampler->counts[++at];
    double middle[2] = {sampler->sorted[at], sampler->sorted[at]};
    while (seen <= n / 2)
        seen += sampler->counts[++at];
    middle[1] = sampler->sorted[at];
    return lab_stats_median(middle, 2);
}

static double of_resample(struct resampler *sampler, uint64_t seed, uint64_t *index) {
    if (sampler->sorted)
        return median_by_ranks(sampler, seed, index);
    for (size_t i = 0; i < sampler->n; i++)
        sampler->drawn[i] = sampler->x[lab_random_below(seed, (*index)++, sampler->n)];
    return sampler->statistic(sampler->drawn, sampler->n);
}

struct lab_interval lab_stats_bca_interval(const double *x, size_t n, lab_statistic *statistic,
                                           double confidence, int resamples, uint64_t seed) {
    if (!answerable(x, n, confidence, resamples))
        return unknown;
    double estimate = statistic(x, n);
    if (constant(x, n))
        return (struct lab_interval){estimate, estimate, confidence};
    struct resampler sampler;
    double left_out[JACKKNIFE_GROUPS] = {0};
    double *values = lab_mem_resize(NULL, 2 * (size_t)resamples, sizeof *values);
    uint64_t index = 0;
    start_resampling(&sampler, x, n, statistic);
    for (int r = 0; r < resamples; r++)
        values[r] = of_resample(&sampler, seed, &index);
    size_t groups = leave_out(x, n, statistic, sampler.drawn, left_out);
    to_influences(left_out, groups);
    struct lab_interval interval = bca(values, resamples, values + resamples, estimate,
                                       acceleration(left_out, groups), confidence);
    lab_mem_free(values);
    end_resampling(&sampler);
    return interval;
}

struct lab_effect lab_stats_bca_ratio(const double *x, size_t nx, const double *y, size_t ny,
                                      lab_statistic *statistic, double confidence, int resamples,
                                      uint64_t seed) {
    struct lab_effect effect = {NAN, unknown};
    if (nx == 0 || ny == 0)
        return effect;
    double of_x = statistic(x, nx), of_y = statistic(y, ny);
    effect.value = of_x / of_y;
    if (!answerable(x, nx, confidence, resamples) || !answerable(y, ny, confidence, resamples))
        return effect;
    if (constant(x, nx) && constant(y, ny)) {
        effect.interval = (struct lab_interval){effect.value, effect.value, confidence};
        return effect;
    }
    struct resampler of_above, of_below;
    double *values = lab_mem_resize(NULL, 2 * (size_t)resamples, sizeof *values);
    uint64_t index = 0;
    start_resampling(&of_above, x, nx, statistic);
    start_resampling(&of_below, y, ny, statistic);
    for (int r = 0; r < resamples; r++) {
        double above = of_resample(&of_above, seed, &index);
        values[r] = above / of_resample(&of_below, seed, &index);
    }
    double left_out[2 * JACKKNIFE_GROUPS] = {0};
    size_t groups_x = leave_out(x, nx, statistic, of_above.drawn, left_out);
    size_t groups_y = leave_out(y, ny, statistic, of_below.drawn, left_out + groups_x);
    for (size_t g = 0; g < groups_x + groups_y; g++)
        left_out[g] = g < groups_x ? left_out[g] / of_y : of_x / left_out[g];
    to_influences(left_out, groups_x);
    to_influences(left_out + groups_x, groups_y);
    effect.interval = bca(values, resamples, values + resamples, effect.value,
                          acceleration(left_out, groups_x + groups_y), confidence);
    lab_mem_free(values);
    end_resampling(&of_above);
    end_resampling(&of_below);
    return effect;
}

/* Lower tail that gives a percentile interval of `blocks` values the width of a t interval. */
static double expanded_tail(double confidence, double blocks) {
    double tail = (1 - confidence) / 2;
    if (blocks < 2)
        return 0; /* one block can't tell its spread: everything */
    double t = lab_stats_t_quantile(tail, blocks - 1);
    return lab_stats_normal_cdf(t * sqrt(blocks / (blocks - 1)));
}

/* One resample of circular blocks; the last one is cut to fit. */
static void draw_blocks(const double *x, size_t n, size_t block, uint64_t seed, uint64_t *index,
                        double *ret_drawn) {
    for (size_t i = 0; i < n; i += block) {
        size_t start = lab_random_below(seed, (*index)++, n);
        size_t length = n - i < block ? n - i : block;
        size_t before_wrap = n - start < length ? n - start : length;
        memcpy(ret_drawn + i, x + start, before_wrap * sizeof *x);
        memcpy(ret_drawn + i + before_wrap, x, (length - before_wrap) * sizeof *x);
    }
}

struct lab_interval lab_stats_block_interval(const double *x, size_t n, lab_statistic *statistic,
                                             size_t block, double confidence, int resamples,
                                             uint64_t seed) {
    if (!answerable(x, n, confidence, resamples))
        return unknown;
    if (block == 0)
        block = lab_stats_block_length(x, n);
    block = block > n ? n : block;
    double *drawn = lab_mem_resize(NULL, n, sizeof *drawn);
    double *values = lab_mem_resize(NULL, 2 * (size_t)resamples, sizeof *values);
    double *sorted = values + resamples;
    uint64_t index = 0;
    for (int r = 0; r < resamples; r++) {
        draw_blocks(x, n, block, seed, &index, drawn);
        values[r] = statistic(drawn, n);
    }
    struct lab_interval interval = unknown;
    if (lab_stats_sort(values, (size_t)resamples, sorted)) {
        double tail = expanded_tail(confidence, (double)n / (double)block);
        interval = (struct lab_interval){
            lab_stats_quantile_sorted(sorted, (size_t)resamples, tail),
            lab_stats_quantile_sorted(sorted, (size_t)resamples, 1 - tail), confidence};
    }
    lab_mem_free(values);
    lab_mem_free(drawn);
    return interval;
}
