/*
 * Do the intervals hold what they promise? Thousands of samples with a known answer, drawn by
 * counter, so that every run of the test counts the same. A claim of 95 % must be met within what
 * 2,000 trials leave to chance (3.3 standard errors: 93.4 % to 96.6 %), or on the safe side of it
 * where the ranks of a small sample can't do better than more.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#define TRIALS      2000
#define CHANCE      0.016 /* 3.3 √(0.95 · 0.05 / 2000) */
#define MOST_VALUES 400

static double x[MOST_VALUES];

static double normal(uint64_t seed, uint64_t index) {
    return lab_stats_normal_quantile(lab_random_uniform(seed, index) + 0x1p-54);
}

static void draw_normal(size_t n, uint64_t trial) {
    for (size_t i = 0; i < n; i++)
        x[i] = normal(11, trial * MOST_VALUES + i);
}

static void draw_lognormal(size_t n, uint64_t trial) {
    draw_normal(n, trial);
    for (size_t i = 0; i < n; i++)
        x[i] = exp(0.5 * x[i]);
}

/* Mean and median 0, correlation 0.7 between neighbours; starts in its stationary state. */
static void draw_correlated(size_t n, uint64_t trial) {
    draw_normal(n, trial);
    double last = x[0] / sqrt(1 - 0.7 * 0.7);
    for (size_t i = 0; i < n; i++)
        x[i] = last = i == 0 ? last : 0.7 * last + x[i];
}

static bool covers(struct lab_interval interval, double truth) {
    return interval.low <= truth && truth <= interval.high;
}

typedef void draw(size_t n, uint64_t trial);
typedef struct lab_interval estimate(size_t n, uint64_t trial);

static double coverage(draw *draw_one, estimate *interval_of, size_t n, double truth, int trials) {
    int covered = 0;
    for (int t = 0; t < trials; t++) {
        draw_one(n, (uint64_t)t);
        covered += covers(interval_of(n, (uint64_t)t), truth);
    }
    return (double)covered / trials;
}

#define assert_between(value, low, high)                                                           \
    do {                                                                                           \
        double value_ = (value);                                                                   \
        if (!(value_ >= (low) && value_ <= (high)))                                                \
            fail_msg("coverage %.4f is outside %.4f to %.4f", value_, (double)(low),               \
                     (double)(high));                                                              \
    } while (0)

static struct lab_interval by_order(size_t n, uint64_t trial) {
    (void)trial;
    return lab_stats_median_interval(x, n, .95);
}

static struct lab_interval by_t(size_t n, uint64_t trial) {
    (void)trial;
    return lab_stats_mean_interval(x, n, .95);
}

static struct lab_interval by_bca_median(size_t n, uint64_t trial) {
    return lab_stats_bca_interval(x, n, lab_stats_median, .95, 250, trial);
}

static struct lab_interval by_bca_mean(size_t n, uint64_t trial) {
    return lab_stats_bca_interval(x, n, lab_stats_mean, .95, 400, trial);
}

static struct lab_interval by_blocks(size_t n, uint64_t trial) {
    return lab_stats_block_interval(x, n, lab_stats_median, 0, .95, 250, trial);
}

static struct lab_interval by_effective_order(size_t n, uint64_t trial) {
    (void)trial;
    double sorted[MOST_VALUES];
    lab_stats_sort(x, n, sorted);
    return lab_stats_median_interval_sorted(sorted, n, lab_stats_effective_size(x, n), .95);
}

static void order_statistics_cover_as_they_say(void **state) {
    (void)state;
    size_t sizes[] = {6, 15, 51, 120};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        draw_normal(sizes[i], 0);
        double promised = lab_stats_median_interval(x, sizes[i], .95).confidence;
        assert_true(promised >= .95);
        double normal_share = coverage(draw_normal, by_order, sizes[i], 0, TRIALS);
        assert_between(normal_share, promised - CHANCE, promised + CHANCE);
        /* ranks know nothing of the distribution: not a trial may differ */
        double lognormal_share = coverage(draw_lognormal, by_order, sizes[i], 1, TRIALS);
        assert_between(lognormal_share, normal_share, normal_share);
    }
}

static void t_covers_normal_means(void **state) {
    (void)state;
    assert_between(coverage(draw_normal, by_t, 8, 0, TRIALS), .95 - CHANCE, .95 + CHANCE);
}

static void bca_covers_medians(void **state) {
    (void)state;
    assert_between(coverage(draw_normal, by_bca_median, 40, 0, 1000), .925, .975);
    assert_between(coverage(draw_lognormal, by_bca_median, 40, 1, 1000), .925, .975);
}

static void bca_covers_skewed_means(void **state) {
    (void)state;
    /* the bootstrap's own error of order 1/n shows at 40 values; percentile and t are worse */
    double truth = exp(0.125);
    assert_between(coverage(draw_lognormal, by_bca_mean, 40, truth, 1000), .91, .97);
}

/* Correlated values: intervals for independent ones are far too narrow, those that know of it hold
 * nearly what they say (the correlation itself must be estimated from the same 200 values). */
static void dependence_needs_blocks(void **state) {
    (void)state;
    int trials = 600;
    double independent = coverage(draw_correlated, by_order, 200, 0, trials);
    double blocks = coverage(draw_correlated, by_blocks, 200, 0, trials);
    double effective = coverage(draw_correlated, by_effective_order, 200, 0, trials);
    assert_between(independent, 0, .75);
    assert_between(blocks, .90, .975);
    assert_between(effective, .90, .985);
}

/* Independent values lose little by being treated with suspicion. */
static void blocks_do_not_harm_independent_values(void **state) {
    (void)state;
    assert_between(coverage(draw_normal, by_blocks, 100, 0, 600), .92, .985);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_statistics_cover_as_they_say),
        cmocka_unit_test(t_covers_normal_means),
        cmocka_unit_test(bca_covers_medians),
        cmocka_unit_test(bca_covers_skewed_means),
        cmocka_unit_test(dependence_needs_blocks),
        cmocka_unit_test(blocks_do_not_harm_independent_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
