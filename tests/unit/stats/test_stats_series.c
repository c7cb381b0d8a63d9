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
