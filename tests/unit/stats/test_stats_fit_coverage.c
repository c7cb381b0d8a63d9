/*
 * Do the intervals of fits hold what they promise? Planted laws with normal errors, drawn by
 * counter, so that every run of the test counts the same.
 *
 * Linear ones are exact and must cover 95 % within what the trials leave to chance, 3.3 standard
 * errors; so must those of non-negative coefficients, on a bound or not, and Fieller's. Those of
 * non-linear laws are first-order, and are held to 93–97 %.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/fit.h"

#define TRIALS 2000
#define N      12

static double x[3 * N], y[N];

static double normal(uint64_t seed, uint64_t index) {
    return lab_stats_normal_quantile(lab_random_uniform(seed, index) + 0x1p-54);
}

static bool covers(struct lab_interval interval, double truth) {
    return interval.low <= truth && truth <= interval.high;
}

#define assert_share(covered, slack)                                                               \
    do {                                                                                           \
        double share_ = (double)(covered) / TRIALS;                                                \
        double chance_ = 3.3 * sqrt(.95 * .05 / TRIALS) + (slack);                                 \
        if (fabs(share_ - .95) > chance_)                                                          \
            fail_msg("%s: coverage %.4f isn't 0.95 within %.4f", #covered, share_, chance_);       \
    } while (0)

LAB_TEST(lines) {
    int slope = 0;
    for (uint64_t t = 0; t < TRIALS; t++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (double)i;
            y[i] = 3 + 0.5 * x[i] + normal(21, t * 100 + i);
        }
        struct lab_fit fit = lab_fit_run(&lab_law_line, &(struct lab_fit_data){x, y, NULL, N, 1});
        slope += covers(lab_fit_interval(&fit, 1, .95), 0.5);
    }
    assert_share(slope, 0);
}

/* Overhead 1, rate 4, bandwidth 10; then without overhead, and without bytes to pay for. */
LAB_TEST(nonnegative_coefficients) {
    static const double truths[][3] = {{1, .25, .1}, {0, .25, .1}, {1, .25, 0}};
    for (size_t k = 0; k < COUNT(truths); k++) {
        int coefficient[3] = {0}, bound = 0;
        for (uint64_t t = 0; t < TRIALS; t++) {
            for (size_t i = 0; i < N; i++) {
                x[3 * i] = 1;
                x[3 * i + 1] = (double)(1 + i % 4);
                x[3 * i + 2] = (double)((i * 5) % N);
                y[i] = truths[k][0] + truths[k][1] * x[3 * i + 1] + truths[k][2] * x[3 * i + 2] +
                       0.1 * normal(22 + k, t * 100 + i);
            }
            struct lab_fit fit = lab_fit_nonnegative(&(struct lab_fit_data){x, y, NULL, N, 3});
            for (size_t j = 0; j < 3; j++) {
                coefficient[j] += covers(lab_fit_interval(&fit, j, .95), truths[k][j]);
                bound += fit.coefficients[j] == 0;
            }
        }
        if (k > 0)
            assert_true(bound > TRIALS / 4);
        /* a truth of 0 is covered more often by as much as the interval is cut below 0 */
        assert_share(coefficient[0], truths[k][0] == 0 ? .025 : 0);
        assert_share(coefficient[1], 0);
        assert_share(coefficient[2], truths[k][2] == 0 ? .025 : 0);
    }
}

LAB_TEST(universal_scalability) {
    int sigma = 0, kappa = 0, peak = 0;
    double truth[] = {100, 0.05, 0.003};
    for (uint64_t t = 0; t < TRIALS; t++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (double)(1 + 3 * i);
            y[i] = lab_law_usl.value(truth, &x[i]) + 8 * normal(41, t * 100 + i);
        }
        struct lab_fit fit = lab_fit_run(&lab_law_usl, &(struct lab_fit_data){x, y, NULL, N, 1});
        assert_int_equal(fit.state, LAB_FIT_OK);
        sigma += covers(lab_fit_interval(&fit, 1, .95), truth[1]);
        kappa += covers(lab_fit_interval(&fit, 2, .95), truth[2]);
        peak +=
            covers(lab_fit_derive(&fit, lab_law_usl_peak, .95).interval, lab_law_usl_peak(truth));
    }
    assert_share(sigma, .004);
    assert_share(kappa, .004);
    assert_share(peak, .004);
}

/* At x = 6 both take 8; slopes differ clearly, then hardly: intervals are unbounded often. */
LAB_TEST(crossovers) {
    static const double noises[] = {0.5, 6};
    for (size_t k = 0; k < COUNT(noises); k++) {
        int covered = 0, unbounded = 0;
        for (uint64_t t = 0; t < TRIALS; t++) {
            double other[N];
            for (size_t i = 0; i < N; i++) {
                x[i] = (double)i;
                y[i] = 5 + 0.5 * x[i] + noises[k] * normal(51, t * 100 + i);
                other[i] = 2 + x[i] + noises[k] * normal(51, t * 100 + 50 + i);
            }
            struct lab_fit a = lab_fit_run(&lab_law_line, &(struct lab_fit_data){x, y, NULL, N, 1});
            struct lab_fit b =
                lab_fit_run(&lab_law_line, &(struct lab_fit_data){x, other, NULL, N, 1});
            struct lab_interval at = lab_fit_crossover(&a, &b, -INFINITY, INFINITY, .95).interval;
            covered += covers(at, 6);
            unbounded += isinf(at.high);
        }
        if (k == 0) {
            assert_share(covered, 0);
            assert_true(unbounded < TRIALS / 10);
        } else {
            assert_true(covered >= .95 * TRIALS); /* two rays are given as all there is */
            assert_true(unbounded > TRIALS / 2);
        }
    }
}
