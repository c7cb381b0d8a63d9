/*
 * Resampled intervals. The references are R's boot.ci(type = "bca") with 500,000 resamples and
 * SciPy's stats.bootstrap(method = "BCa") with 200,000 (tests/fixtures/stats/reference.R and .py):
 * other random numbers, so the tolerance is what 20,000 resamples leave open.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#include <stdlib.h>
#include <string.h>

#define RESAMPLES 20000

/* exp(2u), u uniform: a long tail to the right. */
static void draw_skewed(double *x, size_t n, uint64_t seed) {
    draw_uniforms(x, n, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = exp(2 * x[i]);
}

#define assert_interval(got, low_, high_, relative)                                                \
    do {                                                                                           \
        struct lab_interval interval_ = (got);                                                     \
        assert_close(interval_.low, low_, relative);                                               \
        assert_close(interval_.high, high_, relative);                                             \
    } while (0)

LAB_TEST(bca_is_that_of_r) {
    double skewed[40];
    draw_skewed(skewed, 40, 5);
    assert_close(skewed[1], 3.72615876545636, 1e-14); /* the same data as there */
    assert_interval(
        lab_stats_bca_interval(newcomb, COUNT(newcomb), lab_stats_mean, .95, RESAMPLES, 1), 22.06,
        27.985, 0.012);
    assert_interval(lab_stats_bca_interval(skewed, 40, lab_stats_mean, .95, RESAMPLES, 1), 2.52198,
                    3.54878, 0.006);
    assert_interval(lab_stats_bca_interval(skewed, 40, lab_stats_stddev, .90, RESAMPLES, 1),
                    1.42695, 1.97882, 0.006);
    /* half-way between R (1.798, 3.605) and SciPy (1.833, 3.632), which count ties apart */
    assert_interval(lab_stats_bca_interval(skewed, 40, lab_stats_median, .95, RESAMPLES, 1), 1.815,
                    3.618, 0.012);
}

static double plain_median(const double *x, size_t n) {
    return lab_stats_median(x, n);
}

/* Medians are taken from counts of ranks; the same draws sorted each time have to give the same. */
LAB_TEST(medians_are_those_of_sorted_resamples) {
    for (size_t n = 2; n < 30; n++) {
        double x[30], y[30];
        for (size_t i = 0; i < n; i++) {
            x[i] = 1 + (double)lab_random_below(n, i, n % 3 ? 1000000 : 4); /* ties, too */
            y[i] = 1 + lab_random_uniform(n + 99, i);
        }
        struct lab_interval a = lab_stats_bca_interval(x, n, lab_stats_median, .95, 200, n);
        struct lab_interval b = lab_stats_bca_interval(x, n, plain_median, .95, 200, n);
        assert_true(a.low == b.low && a.high == b.high);
        struct lab_effect c = lab_stats_bca_ratio(x, n, y, n, lab_stats_median, .95, 200, n);
        struct lab_effect d = lab_stats_bca_ratio(x, n, y, n, plain_median, .95, 200, n);
        assert_true(c.interval.low == d.interval.low && c.interval.high == d.interval.high);
    }
}

LAB_TEST(bca_leans_to_the_long_tail) {
    double skewed[40];
    draw_skewed(skewed, 40, 5);
    double mean = lab_stats_mean(skewed, 40);
    struct lab_interval bca = lab_stats_bca_interval(skewed, 40, lab_stats_mean, .95, 4000, 7);
    assert_true(bca.high - mean > 1.1 * (mean - bca.low));
}

LAB_TEST(the_same_seed_gives_the_same_interval) {
    struct lab_interval a[3];
    uint64_t seeds[] = {1, 1, 2};
    for (int i = 0; i < 3; i++)
        a[i] = lab_stats_bca_interval(newcomb, COUNT(newcomb), lab_stats_mean, .95, 500, seeds[i]);
    assert_memory_equal(&a[0], &a[1], sizeof a[0]);
    assert_true(a[0].low != a[2].low);
}

LAB_TEST(constant_values_give_a_point) {
    assert_interval(
        lab_stats_bca_interval(constant, COUNT(constant), lab_stats_median, .95, 100, 1), 4, 4, 0);
    assert_interval(
        lab_stats_block_interval(constant, COUNT(constant), lab_stats_mean, 0, .95, 100, 1), 4, 4,
        0);
}

LAB_TEST(too_little_gives_no_interval) {
    double one = 1;
    assert_nan(lab_stats_bca_interval(NULL, 0, lab_stats_mean, .95, 100, 1).low);
    assert_nan(lab_stats_bca_interval(&one, 1, lab_stats_mean, .95, 100, 1).low);
    assert_nan(lab_stats_bca_interval(tied, COUNT(tied), lab_stats_mean, .95, 0, 1).low);
    assert_nan(lab_stats_bca_interval(with_nan, 5, lab_stats_mean, .95, 100, 1).high);
    assert_nan(lab_stats_block_interval(NULL, 0, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(&one, 1, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(with_nan, 5, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(tied, COUNT(tied), lab_stats_mean, 0, 1.5, 100, 1).low);
}

LAB_TEST(two_values_give_both) {
    assert_interval(lab_stats_bca_interval(two, 2, lab_stats_median, .95, 1000, 1), 2.7, 3.1,
                    1e-14);
}

LAB_TEST(huge_values_work) {
    struct lab_interval bca =
        lab_stats_bca_interval(huge, COUNT(huge), lab_stats_mean, .95, 1000, 1);
    assert_true(bca.low >= 1e300 && bca.low < 2.75e300);
    assert_true(bca.high <= 5e300 && bca.high > 2.75e300);
}

static int calls;

static double counting_mean(const double *x, size_t n) {
    calls++;
    return lab_stats_mean(x, n);
}

/* 1 for the estimate, 10 resamples, and never more than 200 for the jackknife. */
LAB_TEST(the_jackknife_of_many_values_goes_by_groups) {
    static double x[5000];
    draw_skewed(x, COUNT(x), 9);
    calls = 0;
    lab_stats_bca_interval(x, 150, counting_mean, .95, 10, 1);
    assert_int_equal(calls, 1 + 10 + 150);
    calls = 0;
    lab_stats_bca_interval(x, COUNT(x), counting_mean, .95, 10, 1);
    assert_int_equal(calls, 1 + 10 + 200);
}

/* With 1,000 values both jackknives must find the same skewness: the groups' interval is the one
 * that the exact acceleration, skewness/(6√n) for a mean, gives. */
LAB_TEST(groups_give_the_acceleration_of_single_values) {
    static double x[1000];
    draw_uniforms(x, 1000, 17);
    for (size_t i = 0; i < 1000; i++)
        x[i] = -log(x[i]); /* exponential: skewness 2 */
    struct lab_interval bca = lab_stats_bca_interval(x, 1000, lab_stats_mean, .95, 8000, 3);
    /* the t interval moved by the skewness, Johnson's correction: mean + s·γ(1 + 2z²)/(6n) ± … */
    double mean = lab_stats_mean(x, 1000), se = lab_stats_stddev(x, 1000) / sqrt(1000.0);
    double cubes = 0;
    for (size_t i = 0; i < 1000; i++)
        cubes += pow((x[i] - mean) / lab_stats_stddev(x, 1000), 3) / 1000;
    double shift = se * cubes * (1 + 2 * 1.96 * 1.96) / (6 * sqrt(1000.0));
    assert_close(bca.low, mean - 1.96 * se + shift, 0.004);
    assert_close(bca.high, mean + 1.96 * se + shift, 0.004);
}

/* A block of one value is the plain percentile bootstrap: for a mean, mean ± z·σ/√n. */
LAB_TEST(blocks_of_one_are_the_plain_bootstrap) {
    static double x[400];
    draw_ar1(x, 400, 0, 31);
    struct lab_interval block =
        lab_stats_block_interval(x, 400, lab_stats_mean, 1, .95, RESAMPLES / 4, 1);
    struct lab_interval t = lab_stats_mean_interval(x, 400, .95);
    assert_close(block.high - block.low, t.high - t.low, 0.03);
    assert_close((block.high + block.low) / 2, (t.high + t.low) / 2, 0.001);
}

/* Every block of n values is a rotation of the series: each resample has its very mean. */
LAB_TEST(one_block_of_all_keeps_the_mean) {
    double x[] = {1, 2, 4, 8};
    assert_interval(lab_stats_block_interval(x, 4, lab_stats_mean, 4, .95, 50, 1), 3.75, 3.75, 0);
    assert_interval(lab_stats_block_interval(x, 4, lab_stats_mean, 99, .95, 50, 1), 3.75, 3.75, 0);
}
