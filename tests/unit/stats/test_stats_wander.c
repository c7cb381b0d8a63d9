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

/* By dense least squares (tests/fixtures/stats/reference_trend.py). */
LAB_TEST(test_effects_are_those_of_a_reference) {
    static const double times_s[] = {0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 13, 15};
    static const double values[] = {1, 2.5, 2, 3, 2.2, 3.9, 4.1, 5.5, 4.8, 6, 6.6, 5.9};
    const struct lab_trend_series series = {times_s, values, 12};
    static const struct {
        size_t starts[3], count, which;
        double confidence;
        size_t places;
        struct lab_trend_effect wanted;
    } cases[] = {
        {{0}, 0, 0, .95, 0, {0.349767008388, 0.00744398075937, 0.64012811752, 0.0470845951291, 0}},
        {{6}, 1, 0, .95, 1, {1.62806857906, -2.0205033908, 4.29833401674, 0.567859611953, 45}},
        {{4, 8},
         2,
         0,
         .95,
         0,
         {-0.739597645729, -3.61068092901, 3.22454734491, 0.864338212933, 45}},
        {{4, 8},
         2,
         1,
         .99,
         12,
         {-0.598715129933, -8.69560141325, 7.60260889406, 0.956103712885, 45}},
        {{3, 5, 9},
         3,
         1,
         .95,
         1,
         {1.94247368412, -1.20037509244, 4.62363114722, 0.21398245354, 1.25}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_trend_effect got =
            cases[i].count ? lab_trend_step(&series, cases[i].starts, cases[i].count,
                                            cases[i].which, cases[i].confidence, cases[i].places)
                           : lab_trend_slope(&series, cases[i].confidence);
        const double *a = (const double *)&got, *b = (const double *)&cases[i].wanted;
        for (int k = 0; k < 5; k++) /* value, low, high, p, memory_s */
            assert_near(a[k], b[k], 1e-9 * fabs(b[k]) + 1e-15);
    }
    assert_true(isnan(lab_trend_step(&series, cases[1].starts, 1, 1, .95, 1).value));
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
    const double at_once_s[] = {1, 1, 1, 1}, endless_s[] = {0, 1, 2, (double)INFINITY};
    struct lab_trend_series moment = {at_once_s, times_s, 4}, forever = {endless_s, times_s, 4};
    assert_true(isnan(lab_trend_slope(&moment, 0.95).low));
    assert_true(isnan(lab_trend_slope(&forever, 0.95).low));
    const size_t start = 1;
    struct lab_trend_series four = {times_s, times_s, 4};
    assert_true(isnan(lab_trend_step(&three, &start, 1, 0, 0.95, 1).low));
    assert_false(isnan(lab_trend_step(&four, &start, 1, 0, 0.95, 1).low));
}
