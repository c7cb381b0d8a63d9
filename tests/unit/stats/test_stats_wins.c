/* How often the best of several samples would be the best again. */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#define RESAMPLES 4000

static double normal(uint64_t index) {
    return lab_stats_normal_quantile(lab_random_uniform(5, index) + 0x1p-54);
}

LAB_TEST(equal_samples_win_alike) {
    const double a[] = {1, 2, 3}, b[] = {2, 1, 3}, c[] = {3, 2, 1}, d[] = {1, 3, 2};
    const double *samples[] = {a, b, c, d};
    const size_t sizes[] = {3, 3, 3, 3};
    int wins[4], sum = 0;
    assert_true(lab_stats_wins(samples, sizes, 4, RESAMPLES, 1, wins));
    for (int i = 0; i < 4; i++) {
        assert_true(wins[i] > RESAMPLES / 4 - 200 && wins[i] < RESAMPLES / 4 + 200);
        sum += wins[i];
    }
    assert_int_equal(sum, RESAMPLES);
}

LAB_TEST(a_gap_far_beyond_the_spread_always_wins) {
    const double slow[] = {1, 1.01}, fast[] = {5, 5.01};
    const double *samples[] = {slow, fast};
    const size_t sizes[] = {2, 2};
    int wins[2];
    assert_true(lab_stats_wins(samples, sizes, 2, RESAMPLES, 1, wins));
    assert_int_equal(wins[1], RESAMPLES);
}

/* The spread of the others stands for a single value too. */
LAB_TEST(a_single_value_is_as_uncertain_as_the_others) {
    const double single[] = {1.2}, several[] = {0, 2, 1, .5, 1.5};
    const double *samples[] = {single, several};
    const size_t sizes[] = {1, 5};
    int wins[2];
    assert_true(lab_stats_wins(samples, sizes, 2, RESAMPLES, 1, wins));
    assert_true(wins[0] > RESAMPLES / 2 && wins[0] < RESAMPLES * 4 / 5);
}

LAB_TEST(without_any_spread_nothing_is_known) {
    const double a[] = {1}, b[] = {2}, broken[] = {1, NAN};
    const double *samples[] = {a, b}, *others[] = {a, broken};
    const size_t sizes[] = {1, 1}, other_sizes[] = {1, 2};
    int wins[2] = {7, 7};
    assert_false(lab_stats_wins(samples, sizes, 2, RESAMPLES, 1, wins));
    assert_false(lab_stats_wins(others, other_sizes, 2, RESAMPLES, 1, wins));
    assert_false(lab_stats_wins(NULL, NULL, 0, RESAMPLES, 1, wins));
    assert_int_equal(wins[0], 7);
}

/*
 * Two samples of three whose means differ by a normal amount: where the first share is p, the
 * larger is truly the larger in about p of the trials. The widening for few values makes it say a
 * little less.
 */
LAB_TEST(it_promises_no_more_than_it_keeps) {
    double promised = 0, kept = 0;
    enum { TRIALS = 1500, VALUES = 3 };
    for (int t = 0; t < TRIALS; t++) {
        uint64_t from = (uint64_t)t * 16;
        double gap = 3 * normal(from), x[2][VALUES];
        for (uint64_t i = 0; i < VALUES; i++) {
            x[0][i] = normal(from + 1 + i);
            x[1][i] = gap + normal(from + 8 + i);
        }
        const double *samples[] = {x[0], x[1]};
        const size_t sizes[] = {VALUES, VALUES};
        int wins[2];
        assert_true(lab_stats_wins(samples, sizes, 2, 200, (uint64_t)t, wins));
        int best = lab_stats_mean(x[1], VALUES) > lab_stats_mean(x[0], VALUES);
        promised += wins[best] / 200.;
        kept += best == (gap > 0);
    }
    assert_true(kept / TRIALS >= promised / TRIALS - .01);
    assert_true(promised / TRIALS > kept / TRIALS - .1);
}
