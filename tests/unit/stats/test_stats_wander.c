/* Whether slopes and steps are told from wander, however long it is remembered. Seeds are fixed. */
#include "stats/stats.h"
#include "stats/trend_test.h"

#include "base/random.h"

#include <math.h>

#include "test.h"

#define LONGEST 400

static uint64_t drawn;

static double normal(void) {
    double u = lab_random_uniform(2025, drawn++), v = lab_random_uniform(2025, drawn++);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

struct given {
    double times_s[LONGEST], values[LONGEST];
    struct lab_trend_series series;
};

static void given_wander(struct given *given, size_t n, double memory_s, double share) {
    double kept = memory_s > 0 ? exp(-1 / memory_s) : 0, now = normal();
    for (size_t i = 0; i < n; i++) {
        given->times_s[i] = (double)i;
        given->values[i] = sqrt(share) * now + sqrt(1 - share) * normal();
        now = kept * now + sqrt(1 - kept * kept) * normal();
    }
    given->series = (struct lab_trend_series){given->times_s, given->values, n};
}

LAB_TEST(test_slopes_are_covered_whatever_is_remembered) {
    static const double memories[] = {0, 5, 30, 120, 600}, shares[] = {1, 0.3};
    const int studies = 120;
    struct given given;
    for (int m = 0; m < 5; m++)
        for (int s = 0; s < 2; s++) {
            int hits = 0;
            for (int i = 0; i < studies; i++) {
                given_wander(&given, 120, memories[m], shares[s]);
                struct lab_trend_effect slope = lab_trend_slope(&given.series, 0.95);
                hits += slope.low <= 0 && slope.high >= 0;
            }
            /* fewer have a chance of one in a thousand at 95 % */
            if (lab_stats_binomial_cdf(hits, studies, 0.95) < 0.001)
                fail_msg("memory %g, share %g: %d of %d", memories[m], shares[s], hits, studies);
        }
}

LAB_TEST(test_a_line_is_found_with_its_slope) {
    struct given given;
    given_wander(&given, 200, 2, 0.5);
    for (int i = 0; i < 200; i++)
        given.values[i] += 0.1 * i;
    struct lab_trend_effect slope = lab_trend_slope(&given.series, 0.95);
    assert_true(slope.low > 0.05 && slope.low < 0.1 && slope.high > 0.1 && slope.high < 0.15);
    assert_true(slope.p < 1e-3);
}

LAB_TEST(test_memory_is_told) {
    struct given given;
    given_wander(&given, 400, 0, 1);
    double none_s = lab_trend_slope(&given.series, 0.95).memory_s;
    given_wander(&given, 400, 20, 1);
    double some_s = lab_trend_slope(&given.series, 0.95).memory_s;
    assert_true(none_s < 3);
    assert_true(some_s > 5 && some_s < 80);
}

LAB_TEST(test_a_step_is_told_from_a_walk) {
    struct given given;
    const size_t half = 60;
    /* abrupt, beside a wander that takes long to get as far */
    given_wander(&given, 120, 30, 0.9);
    for (size_t i = half; i < 120; i++)
        given.values[i] += 12;
    struct lab_trend_effect step = lab_trend_step(&given.series, &half, 1, 0, 0.99, 120);
    assert_true(step.low > 3 && step.high > 12 && step.p < 1e-6);
    /* as far on average, but on its way all the time */
    for (size_t i = 0; i < 120; i++)
        given.values[i] += 0.2 * (double)i - (i >= half ? 12 : 0);
    step = lab_trend_step(&given.series, &half, 1, 0, 0.99, 120);
    assert_true(step.low < 0);
}

LAB_TEST(test_few_values_and_equal_ones_have_intervals) {
    const double times_s[] = {0, 1, 2, 3}, values[] = {0, 1, 5, 6}, same[] = {2, 2, 2, 2};
    const size_t start = 2;
    struct lab_trend_series series = {times_s, values, 4};
    struct lab_trend_effect step = lab_trend_step(&series, &start, 1, 0, 0.95, 1);
    assert_true(step.low < 5 && step.high > 5);
    struct lab_trend_series constant = {times_s, same, 4};
    struct lab_trend_effect slope = lab_trend_slope(&constant, 0.95);
    assert_true(fabs(slope.low) < 1e-6 && fabs(slope.high) < 1e-6);
}

LAB_TEST(test_what_is_too_short_has_no_answer) {
    const double times_s[] = {0, 1, 2, 3}, values[] = {0, (double)NAN, 5, 6};
    struct lab_trend_series three = {times_s, times_s, 3}, hole = {times_s, values, 4};
    assert_true(isnan(lab_trend_slope(&three, 0.95).low));
    assert_true(isnan(lab_trend_slope(&hole, 0.95).low));
}
