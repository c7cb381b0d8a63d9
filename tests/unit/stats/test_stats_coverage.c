/*
 * Do the intervals hold what they promise? Samples with a known answer, drawn by counter, so that
 * every run of the test counts the same.
 *
 * Ranks and t are exact: their share must be the promised one within what the trials leave to
 * chance, 3.3 standard errors. What ranks reach where values depend on their neighbours was counted
 * beforehand with another seed over 5,000 trials.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#define TRIALS      2000
#define DEPENDENT   600 /* trials of them: they cost more */
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

/* What chance leaves open of a share that was counted in so many trials. */
static double chance(double share, int trials) {
    return 3.3 * sqrt(share * (1 - share) / trials);
}

#define assert_between(value, low, high)                                                           \
    do {                                                                                           \
        double value_ = (value);                                                                   \
        if (!(value_ >= (low) && value_ <= (high)))                                                \
            fail_msg("coverage %.4f is outside %.4f to %.4f", value_, (double)(low),               \
                     (double)(high));                                                              \
    } while (0)

#define assert_share(value, share, trials)                                                         \
    assert_between(value, (share)-chance(share, trials), (share) + chance(share, trials))

static struct lab_interval by_order(size_t n, uint64_t trial) {
    (void)trial;
    return lab_stats_median_interval(x, n, .95);
}

static struct lab_interval by_t(size_t n, uint64_t trial) {
    (void)trial;
    return lab_stats_mean_interval(x, n, .95);
}

static struct lab_interval by_effective_order(size_t n, uint64_t trial) {
    (void)trial;
    double sorted[MOST_VALUES];
    lab_stats_sort(x, n, sorted);
    return lab_stats_median_interval_sorted(sorted, n, lab_stats_effective_size(x, n), .95);
}

LAB_TEST(order_statistics_cover_as_they_say) {
    size_t sizes[] = {6, 15, 51, 120};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        draw_normal(sizes[i], 0);
        double promised = lab_stats_median_interval(x, sizes[i], .95).confidence;
        assert_true(promised >= .95);
        double normal_share = coverage(draw_normal, by_order, sizes[i], 0, TRIALS);
        assert_share(normal_share, promised, TRIALS);
        /* ranks know nothing of the distribution: not a trial may differ */
        double lognormal_share = coverage(draw_lognormal, by_order, sizes[i], 1, TRIALS);
        assert_between(lognormal_share, normal_share, normal_share);
    }
}

LAB_TEST(t_covers_normal_means) {
    assert_share(coverage(draw_normal, by_t, 8, 0, TRIALS), .95, TRIALS);
}

/* Correlated values: intervals for independent ones are far too narrow; ranks of the effective
 * size are on the safe side. */
LAB_TEST(dependence_needs_the_effective_size) {
    assert_share(coverage(draw_correlated, by_order, 200, 0, DEPENDENT), .686, DEPENDENT);
    assert_share(coverage(draw_correlated, by_effective_order, 200, 0, DEPENDENT), .981, DEPENDENT);
}
