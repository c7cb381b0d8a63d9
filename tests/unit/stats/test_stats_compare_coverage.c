/*
 * Do tests and correlations hold what they promise? Samples with a known answer, drawn by
 * counter, so that every run of the test counts the same.
 *
 * Where the method is exact, the share must be the promised one within what the trials leave to
 * chance, 3.3 standard errors. Where it is approximate, what it reaches was counted beforehand with
 * another seed over 20,000 trials, and here it must reach that,
 * within chance again.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#define SEED        17
#define TRIALS      2000
#define MOST_VALUES 400

static double x[MOST_VALUES], y[MOST_VALUES], ranks_x[MOST_VALUES], ranks_y[MOST_VALUES];

static double normal(uint64_t index) {
    return lab_stats_normal_quantile(lab_random_uniform(SEED, index) + 0x1p-54);
}

/* x and y of a trial: independent, normal, mean 0, deviation 1. */
static void draw(size_t nx, size_t ny, int trial) {
    uint64_t from = (uint64_t)trial * 2 * MOST_VALUES;
    for (size_t i = 0; i < nx; i++)
        x[i] = normal(from + i);
    for (size_t i = 0; i < ny; i++)
        y[i] = normal(from + MOST_VALUES + i);
}

/* Makes each value depend on the one before; deviation 1, stationary from the start. */
static void make_dependent(double *values, size_t n, double phi) {
    for (size_t i = 1; i < n; i++)
        values[i] = phi * values[i - 1] + sqrt(1 - phi * phi) * values[i];
}

static bool covers(struct lab_interval interval, double truth) {
    return interval.low <= truth && truth <= interval.high;
}

#define assert_between(value, low, high)                                                           \
    do {                                                                                           \
        double value_ = (value);                                                                   \
        if (!(value_ >= (low) && value_ <= (high)))                                                \
            fail_msg("share %.4f is outside %.4f to %.4f", value_, (double)(low), (double)(high)); \
    } while (0)

/* What chance leaves open of a share that was counted in so many trials. */
static double chance(double share, int trials) {
    return 3.3 * sqrt(share * (1 - share) / trials);
}

#define assert_share(count, share, trials)                                                         \
    assert_between((double)(count) / (trials), (share)-chance(share, trials),                      \
                   (share) + chance(share, trials))

/* Twenty of a hundred differ: of those named, the false ones are 5 % of 80 % at most. */
LAB_TEST(discoveries_are_seldom_false) {
    double false_share = 0, found = 0, p[100];
    for (int t = 0; t < TRIALS; t++) {
        draw(100, 0, t);
        for (size_t i = 0; i < 100; i++) {
            double z = x[i] + (i < 20 ? 3.5 : 0);
            p[i] = 2 * lab_stats_normal_cdf(-fabs(z));
        }
        lab_stats_adjust_bh(p, 100, p);
        int named = 0, wrong = 0;
        for (size_t i = 0; i < 100; i++) {
            named += p[i] <= .05;
            wrong += p[i] <= .05 && i >= 20;
        }
        false_share += named > 0 ? (double)wrong / named : 0;
        found += (named - wrong) / 20.0;
    }
    /* its deviation is about 0.05 from trial to trial */
    assert_between(false_share / TRIALS, .04 - .004, .04 + .004);
    assert_between(found / TRIALS, .7, 1);
}

LAB_TEST(correlations_cover) {
    int pearson = 0, spearman = 0;
    double truth = 6 / acos(-1) * asin(.5 / 2); /* Spearman's of normal pairs with ρ = 0.5 */
    for (int t = 0; t < TRIALS; t++) {
        draw(25, 25, t);
        for (size_t i = 0; i < 25; i++)
            y[i] = .5 * x[i] + sqrt(.75) * y[i];
        pearson += covers(lab_stats_pearson(x, y, 25, 25, .95).interval, .5);
        lab_stats_ranks(x, 25, ranks_x);
        lab_stats_ranks(y, 25, ranks_y);
        spearman +=
            covers(lab_stats_spearman_ranked(ranks_x, ranks_y, 25, 25, .95).interval, truth);
    }
    assert_share(pearson, .949, TRIALS);
    assert_share(spearman, .956, TRIALS);
}

/* Two series that have nothing to do with each other, but each with itself. */
LAB_TEST(dependence_is_no_correlation) {
    int naive = 0, counted = 0, by_rank = 0, covered = 0;
    for (int t = 0; t < TRIALS; t++) {
        draw(150, 150, t);
        make_dependent(x, 150, .8);
        make_dependent(y, 150, .8);
        double size = lab_stats_pair_effective_size(x, y, 150);
        naive += lab_stats_pearson(x, y, 150, 150, .95).p <= .05;
        struct lab_correlation found = lab_stats_pearson(x, y, 150, size, .95);
        counted += found.p <= .05;
        covered += covers(found.interval, 0);
        lab_stats_ranks(x, 150, ranks_x);
        lab_stats_ranks(y, 150, ranks_y);
        size = lab_stats_pair_effective_size(ranks_x, ranks_y, 150);
        by_rank += lab_stats_spearman_ranked(ranks_x, ranks_y, 150, size, .95).p <= .05;
    }
    assert_share(naive, .349, TRIALS);
    assert_share(counted, .0505, TRIALS);
    assert_share(by_rank, .0518, TRIALS);
    assert_share(covered, .949, TRIALS);
}

LAB_TEST(trends_are_seldom_found_by_chance) {
    int alarms = 0, many = 0;
    for (int t = 0; t < TRIALS; t++) {
        draw(60, 0, t);
        alarms += lab_stats_mann_kendall(x, 12).p <= .05;
        many += lab_stats_mann_kendall(x, 60).p <= .05;
    }
    assert_share(alarms, .045, TRIALS);
    assert_share(many, .05, TRIALS);
}

/* No trials: every outcome's probability is known. */
LAB_TEST(shares_cover_at_least_as_they_say) {
    for (int percent = 1; percent < 100; percent += 7) {
        double covered = 0, alarms = 0;
        for (int64_t k = 0; k <= 30; k++) {
            double p = lab_stats_binomial_pmf(k, 30, percent / 100.0);
            covered += covers(lab_stats_binomial_interval(k, 30, .95), percent / 100.0) ? p : 0;
            alarms += lab_stats_binomial_test(k, 30, percent / 100.0) <= .05 ? p : 0;
        }
        assert_between(covered, .95, 1 + 1e-9);
        assert_between(alarms, 0, .05);
    }
}
