/* Dependence in time against Geyer's own mcmc::initseq in R (tests/fixtures/stats/reference.R). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

static double x[100000];

LAB_TEST(effective_sizes_are_those_of_r) {
    /* R: n * initseq(x)$gamma0 / initseq(x)$var.pos */
    draw_ar1(x, 400, .7, 12345);
    assert_close(x[0], 10.3783136535801, 1e-14); /* the same data as there */
    assert_close(lab_stats_effective_size(x, 400), 66.7246702011613, 1e-11);
    draw_ar1(x, 2000, .95, 99); /* long enough a memory to go through the Fourier transform */
    assert_close(lab_stats_effective_size(x, 2000), 58.0662233953786, 1e-10);
    draw_ar1(x, 500, 0, 7);
    assert_close(lab_stats_effective_size(x, 500), 422.925214531766, 1e-11);
}

LAB_TEST(effective_sizes_stay_between_one_and_n) {
    assert_nan(lab_stats_effective_size(NULL, 0));
    assert_nan(lab_stats_effective_size(with_nan, COUNT(with_nan)));
    assert_close(lab_stats_effective_size(two, 1), 1, 0);
    assert_close(lab_stats_effective_size(two, 2), 2, 0);
    assert_close(lab_stats_effective_size(constant, COUNT(constant)), (double)COUNT(constant), 0);
    /* alternating values tell more than independent ones would; no more than n is claimed */
    for (size_t i = 0; i < 100; i++)
        x[i] = i % 2 ? 1 : -1;
    assert_close(lab_stats_effective_size(x, 100), 100, 0);
    /* a straight line is worth very little, and a long one costs no n² */
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = (double)i;
    double size = lab_stats_effective_size(x, COUNT(x));
    assert_true(size >= 1 && size < 10);
    assert_true(lab_stats_effective_size(huge, COUNT(huge)) >= 1);
}

/* Of a series with itself: Σ ρ² where one series has Σ ρ. */
LAB_TEST(pairs_of_series_remember_by_products) {
    double y[400], time = -1;
    draw_ar1(x, 400, .7, 12345);
    draw_ar1(y, 400, .5, 99);
    double mean_x = lab_stats_mean(x, 400), mean_y = lab_stats_mean(y, 400), pair;
    for (size_t lag = 0; lag < 400; lag += 2, time += 2 * pair) {
        pair = 0;
        for (size_t of = lag; of < lag + 2; of++) {
            double of_x[2] = {0, 0}, of_y[2] = {0, 0};
            for (size_t i = 0; i < 400; i++) {
                of_x[1] += (x[i] - mean_x) * (x[i] - mean_x);
                of_y[1] += (y[i] - mean_y) * (y[i] - mean_y);
                of_x[0] += i + of < 400 ? (x[i] - mean_x) * (x[i + of] - mean_x) : 0;
                of_y[0] += i + of < 400 ? (y[i] - mean_y) * (y[i + of] - mean_y) : 0;
            }
            pair += of_x[0] / of_x[1] * of_y[0] / of_y[1];
        }
        if (pair <= 0)
            break;
    }
    assert_true(time > 1.5);
    assert_close(lab_stats_pair_effective_size(x, y, 400), 400 / time, 1e-10);
    assert_close(lab_stats_pair_effective_size(x, constant, COUNT(constant)),
                 (double)COUNT(constant), 0);
    for (size_t at = 0; at < 3; at++) {
        double hole[] = {1, 2, 3};
        hole[at] = NAN;
        assert_nan(lab_stats_pair_effective_size(hole, x, 3));
        assert_nan(lab_stats_pair_effective_size(x, hole, 3));
        assert_nan(lab_stats_effective_size(hole, 3));
    }
    assert_nan(lab_stats_pair_effective_size(x, y, 0));
}
