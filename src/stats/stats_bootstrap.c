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
 * Acceleration a = Σ d³ / (6 (Σ d²)^{3/2}) with d = mean of the leave-out values − each of them.
 * Leaving out groups instead of single values keeps its expectation: d is then a sum of h
 * influences, whose skewness falls with √h as the number of groups falls with h.
 */
static double acceleration(const double *x, size_t n, lab_statistic *statistic, double *rest) {
    size_t groups = n < JACKKNIFE_GROUPS ? n : JACKKNIFE_GROUPS;
    double left_out[JACKKNIFE_GROUPS] = {0};
    for (size_t g = 0; g < groups; g++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            rest[count] = x[i];
            count += i % groups != g; /* interleaved, so that a drift is no group's alone */
        }
        left_out[g] = statistic(rest, count);
    }
    double mean = lab_stats_mean(left_out, groups), largest = 0;
    for (size_t g = 0; g < groups; g++)
        largest = fmax(largest, fabs(mean - left_out[g]));
    if (!(largest > 0) || isinf(largest))
        return 0;
    double squares = 0, cubes = 0;
    for (size_t g = 0; g < groups; g++) {
        double d = (mean - left_out[g]) / largest;
        squares += d * d;
        cubes += d * d * d;
    }
    return cubes / (6 * pow(squares, 1.5));
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

struct lab_interval lab_stats_bca_interval(const double *x, size_t n, lab_statistic *statistic,
                                           double confidence, int resamples, uint64_t seed) {
    if (!answerable(x, n, confidence, resamples))
        return unknown;
    double estimate = statistic(x, n);
    if (constant(x, n))
        return (struct lab_interval){estimate, estimate, confidence};
    double *drawn = lab_mem_resize(NULL, n, sizeof *drawn);
    double *values = lab_mem_resize(NULL, 2 * (size_t)resamples, sizeof *values);
    double *sorted = values + resamples;
    uint64_t index = 0;
    for (int r = 0; r < resamples; r++) {
        for (size_t i = 0; i < n; i++)
            drawn[i] = x[lab_random_below(seed, index++, n)];
        values[r] = statistic(drawn, n);
    }
    struct lab_interval interval = unknown;
    if (lab_stats_sort(values, (size_t)resamples, sorted)) {
        double a = acceleration(x, n, statistic, drawn);
        double z0 = bias(sorted, resamples, estimate);
        double z = lab_stats_normal_quantile(0.5 + confidence / 2);
        interval = (struct lab_interval){
            lab_stats_quantile_sorted(sorted, (size_t)resamples, corrected(z0, -z, a)),
            lab_stats_quantile_sorted(sorted, (size_t)resamples, corrected(z0, z, a)), confidence};
    }
    lab_mem_free(values);
    lab_mem_free(drawn);
    return interval;
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
