/* Dependence in time against R's acf and Geyer's own mcmc::initseq, and against a second
 * writing of the block length in NumPy (tests/fixtures/stats/reference.R and .py). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

static double x[100000];

LAB_TEST(autocorrelation_is_that_of_r) {
    draw_ar1(x, 400, .7, 12345);
    assert_close(x[0], 10.3783136535801, 1e-14); /* the same data as there */
    /* R: acf(x)$acf */
    assert_close(lab_stats_autocorrelation(x, 400, 0), 1, 1e-15);
    assert_close(lab_stats_autocorrelation(x, 400, 1), 0.710675129014663, 1e-12);
    assert_close(lab_stats_autocorrelation(x, 400, 2), 0.529451732722553, 1e-12);
    assert_close(lab_stats_autocorrelation(x, 400, 10), 0.00707708085127801, 1e-10);
    assert_close(lab_stats_autocorrelation(x, 400, 20), 0.0563830737695911, 1e-11);
    assert_close(lab_stats_autocorrelation(newcomb, COUNT(newcomb), 1), -0.155925661368475, 1e-12);
    assert_close(lab_stats_autocorrelation(x, 400, 400), 0, 0);
    assert_nan(lab_stats_autocorrelation(constant, COUNT(constant), 1));
    assert_nan(lab_stats_autocorrelation(with_nan, COUNT(with_nan), 1));
    assert_nan(lab_stats_autocorrelation(NULL, 0, 1));
}

LAB_TEST(effective_sizes_are_those_of_r) {
    /* R: n * initseq(x)$gamma0 / initseq(x)$var.pos */
    draw_ar1(x, 400, .7, 12345);
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

LAB_TEST(block_lengths_are_those_of_numpy) {
    /* reference.py: 14.55, 79.04, 0.0 and 14.48 before rounding */
    draw_ar1(x, 400, .7, 12345);
    assert_int_equal(lab_stats_block_length(x, 400), 15);
    draw_ar1(x, 2000, .95, 99);
    assert_int_equal(lab_stats_block_length(x, 2000), 79);
    draw_ar1(x, 500, 0, 7);
    assert_int_equal(lab_stats_block_length(x, 500), 1);
    draw_ar1(x, 300, -.4, 3);
    assert_int_equal(lab_stats_block_length(x, 300), 14);
}

LAB_TEST(block_lengths_stay_in_bounds) {
    assert_int_equal(lab_stats_block_length(NULL, 0), 1);
    assert_int_equal(lab_stats_block_length(two, 2), 1);
    assert_int_equal(lab_stats_block_length(constant, COUNT(constant)), 1);
    assert_int_equal(lab_stats_block_length(with_nan, COUNT(with_nan)), 1);
    for (size_t n = 6; n < 60; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (double)i;
        size_t block = lab_stats_block_length(x, n);
        assert_true(block >= 1 && block <= n / 3);
    }
}
