/* Whether chance is told from a tie, whatever two series remember. Seeds are fixed. */
#include "stats/stats.h"
#include "stats/surrogate_test.h"

#include "base/random.h"

#include <math.h>

#include "test.h"

#define LONGEST 512

static uint64_t drawn;

static double normal(void) {
    double u = lab_random_uniform(2024, drawn++), v = lab_random_uniform(2024, drawn++);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* Forgotten after `memory` values; 0 = at once; INFINITY = never: a random walk. */
static void wander(double *values, size_t n, double memory) {
    double kept = memory > 0 ? exp(-1 / memory) : 0, now = normal();
    for (size_t i = 0; i < n; i++) {
        values[i] = now;
        now = isinf(memory) ? now + normal() : kept * now + sqrt(1 - kept * kept) * normal();
    }
}

/* How often p is at most `level` though the two have nothing to do with each other. */
static double share_of_alarms(size_t n, double memory_x, double memory_y, double level,
                              int studies) {
    double x[LONGEST], y[LONGEST], ranks_x[LONGEST], ranks_y[LONGEST];
    struct lab_surrogate room;
    int alarms = 0;
    lab_surrogate_init(&room);
    for (int i = 0; i < studies; i++) {
        wander(x, n, memory_x);
        wander(y, n, memory_y);
        lab_stats_ranks(x, n, ranks_x);
        lab_stats_ranks(y, n, ranks_y);
        alarms += lab_surrogate_test(&room, ranks_x, ranks_y, NULL, n).p <= level;
    }
    lab_surrogate_release(&room);
    return (double)alarms / studies;
}

/* More than that in `studies` has a chance of about one in a thousand at `level`. */
static double most_alarms(double level, int studies) {
    return level + 3.3 * sqrt(level * (1 - level) / studies);
}

LAB_TEST(test_series_that_remember_raise_no_more_alarms_than_promised) {
    static const double memories[] = {0, 20, INFINITY};
    static const size_t lengths[] = {10, 60, 240};
    for (int a = 0; a < 3; a++)
        for (int b = a; b < 3; b++)
            for (int n = 0; n < 3; n++) {
                double share = share_of_alarms(lengths[n], memories[a], memories[b], 0.05, 400);
                if (share > most_alarms(0.05, 400))
                    fail_msg("%zu values, memories %g and %g: %g", lengths[n], memories[a],
                             memories[b], share);
            }
}

LAB_TEST(test_what_goes_together_is_found) {
    double x[200], y[200];
    struct lab_surrogate room;
    lab_surrogate_init(&room);
    wander(x, 200, 20);
    for (int i = 0; i < 200; i++)
        y[i] = x[i] + normal();
    struct lab_surrogate_result result = lab_surrogate_test(&room, x, y, NULL, 200);
    assert_true(result.p < 1e-4);
    assert_true(result.effective_n > 3 && result.effective_n < 200);
    /* the same with other lengths, whose transforms differ: 199 is a prime number */
    assert_true(lab_surrogate_test(&room, x, y, NULL, 199).p < 1e-4);
    assert_true(lab_surrogate_test(&room, x, y, NULL, 150).p < 1e-3);
    lab_surrogate_release(&room);
}

LAB_TEST(test_few_values_are_tried_in_every_combination_of_signs) {
    /* Waves of (a, b, c): (a − c) / √2 and (a − 2 b + c) / √6. Of x: √2 and 0; of y: √2 / 2 and √6
     * / 2 */
    const double x[] = {2, 1, 0}, y[] = {1, 0, 0}, z[] = {1, 0, 1};
    struct lab_surrogate room;
    lab_surrogate_init(&room);
    assert_true(lab_surrogate_test(&room, x, y, NULL, 3).p ==
                1); /* one wave: either sign is as far */
    /* of y and y: 1/2 and 1/6. Two of four combinations of signs are as far as 2/3 */
    assert_true(fabs(lab_surrogate_test(&room, y, y, NULL, 3).p - 0.5) < 1e-12);
    assert_true(fabs(lab_surrogate_test(&room, y, y, NULL, 3).effective_n -
                     (1 + 4.0 / 9 / (1.0 / 4 + 1.0 / 36))) < 1e-12);
    /* of y and z: 0 and 1/3 */
    assert_true(lab_surrogate_test(&room, y, z, NULL, 3).p == 1);
    lab_surrogate_release(&room);
}

/* --- a plain reference: waves by their definition, signs one by one --- */

#define TRIED 10 /* as in surrogate_test.c */

/* Values of a run that are taken apart: the most whose number has no prime factor above 5. */
static size_t taken(size_t n) {
    for (size_t length = n; length > 1; length--) {
        size_t rest = length;
        for (size_t factor = 2; factor <= 5; factor++)
            while (rest % factor == 0)
                rest /= factor;
        if (rest == 1)
            return length;
    }
    return n;
}

static size_t plain_waves(const double *values, const int *runs, size_t n, double *ret_waves) {
    size_t made = 0;
    for (size_t start = 0, end; start < n; start = end) {
        for (end = start + 1; end < n && runs[end] == runs[start];)
            end++;
        size_t length = taken(end - start);
        for (size_t k = 1; k < length; k++) {
            double sum = 0;
            for (size_t i = 0; i < length; i++)
                sum += values[start + i] *
                       cos(M_PI * (2 * (double)i + 1) * (double)k / (2 * (double)length));
            ret_waves[made++] = sqrt(2 / (double)length) * sum;
        }
        double before = (double)start, count = (double)(end - start);
        if (start > 0)
            ret_waves[made++] =
                sqrt(before * count / (before + count)) *
                (lab_stats_mean(values + start, end - start) - lab_stats_mean(values, start));
    }
    return made;
}

static double plain_p(double *products, size_t n, double found) {
    double squares = 0, chance = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (fabs(products[k]) > fabs(products[i])) {
                double keep = products[i];
                products[i] = products[k], products[k] = keep;
            }
    size_t tried = n < TRIED ? n : TRIED;
    for (size_t i = tried; i < n; i++)
        squares += products[i] * products[i];
    for (unsigned signs = 0; signs < 1U << tried; signs++) {
        double sum = 0;
        for (size_t i = 0; i < tried; i++)
            sum += signs >> i & 1U ? -fabs(products[i]) : fabs(products[i]);
        chance += n > tried ? 0.5 * erfc((found - sum) / sqrt(2 * squares)) : sum > found - 1e-9;
    }
    return fmin(1, 2 * chance / (double)(1U << tried));
}

LAB_TEST(test_chances_are_those_of_a_plain_reference) {
    struct lab_surrogate room;
    lab_surrogate_init(&room);
    for (size_t trial = 0; trial < 60; trial++) {
        double x[32], y[32], of_x[32], of_y[32], sum = 0, squares = 0, xx = 0, yy = 0;
        int runs[32];
        size_t n = 4 + trial % 28;
        for (size_t i = 0; i < n; i++) { /* runs of 1 to 8 values, or one run */
            runs[i] = trial % 4 == 0 ? 0 : (int)(i * (1 + trial % 3) / 8 + (i == n - 1));
            x[i] = normal();
            y[i] = x[i] + normal();
        }
        size_t count = plain_waves(x, runs, n, of_x);
        plain_waves(y, runs, n, of_y);
        for (size_t i = 0; i < count; i++) {
            xx += of_x[i] * of_x[i], yy += of_y[i] * of_y[i];
            of_x[i] *= of_y[i];
            sum += of_x[i], squares += of_x[i] * of_x[i];
        }
        struct lab_surrogate_result got = lab_surrogate_test(&room, x, y, runs, n);
        assert_near(got.p, plain_p(of_x, count, fabs(sum)), 1e-9);
        assert_near(got.effective_n, fmin((double)n, 1 + xx * yy / squares), 1e-9);
    }
    lab_surrogate_release(&room);
}

LAB_TEST(test_two_runs_with_levels_of_their_own_say_nothing) {
    double x[40], y[40];
    int runs[40];
    struct lab_surrogate room;
    lab_surrogate_init(&room);
    for (int i = 0; i < 40; i++) {
        runs[i] = i / 20;
        x[i] = 100 * runs[i] + normal();
        y[i] = 100 * runs[i] + normal();
    }
    assert_true(lab_surrogate_test(&room, x, y, runs, 40).effective_n < 2.1);
    assert_true(lab_surrogate_test(&room, x, y, NULL, 40).effective_n < 3);
    lab_surrogate_release(&room);
}

LAB_TEST(test_what_is_constant_or_too_short_has_no_answer) {
    const double x[] = {1, 1, 1, 1}, y[] = {1, 2, 4, 3}, z[] = {1, (double)NAN, 2, 3};
    struct lab_surrogate room;
    lab_surrogate_init(&room);
    assert_true(isnan(lab_surrogate_test(&room, x, y, NULL, 4).p));
    assert_true(isnan(lab_surrogate_test(&room, y, y, NULL, 2).p));
    assert_true(isnan(lab_surrogate_test(&room, y, z, NULL, 4).p));
    lab_surrogate_release(&room);
}
