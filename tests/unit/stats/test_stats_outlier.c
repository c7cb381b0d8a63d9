/* Outliers and warm-up against tests/fixtures/stats/reference.py. */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

LAB_TEST(tukey_marks_newcombs_two) {
    enum lab_outlier marks[COUNT(newcomb)];
    struct lab_outlier_count count = lab_stats_tukey(newcomb, COUNT(newcomb), marks);
    /* NumPy: both below Q1 − 3 IQR */
    assert_int_equal(count.low_severe, 2);
    assert_int_equal(count.low_mild + count.high_mild + count.high_severe, 0);
    for (size_t i = 0; i < COUNT(newcomb); i++)
        assert_int_equal(marks[i], newcomb[i] < 0 ? LAB_OUTLIER_SEVERE : LAB_OUTLIER_NONE);
}

LAB_TEST(tukey_tells_mild_from_severe) {
    /* Q1 = 3, Q3 = 9, IQR 6: fences at −6, 18 (mild) and −15, 27 (severe) */
    double x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 18, 18.5, 27.5};
    enum lab_outlier marks[COUNT(x)];
    struct lab_outlier_count count = lab_stats_tukey(x, COUNT(x), marks);
    assert_int_equal(count.high_mild, 1);
    assert_int_equal(count.high_severe, 1);
    assert_int_equal(count.low_mild + count.low_severe, 0);
    assert_int_equal(marks[10], LAB_OUTLIER_NONE); /* on the fence is inside it */
    assert_int_equal(marks[11], LAB_OUTLIER_MILD);
    assert_int_equal(marks[12], LAB_OUTLIER_SEVERE);
}

static size_t outliers_of(const double *x, size_t n) {
    struct lab_outlier_count c = lab_stats_tukey(x, n, NULL);
    return c.low_mild + c.low_severe + c.high_mild + c.high_severe;
}

LAB_TEST(nothing_stands_apart_where_nothing_can) {
    assert_int_equal(outliers_of(NULL, 0), 0);
    assert_int_equal(outliers_of(two, 1), 0);
    assert_int_equal(outliers_of(two, 2), 0);
    assert_int_equal(outliers_of(constant, COUNT(constant)), 0);
    assert_int_equal(outliers_of(huge, COUNT(huge)), 0);
    enum lab_outlier marks[COUNT(with_nan)] = {LAB_OUTLIER_SEVERE};
    struct lab_outlier_count c = lab_stats_tukey(with_nan, COUNT(with_nan), marks);
    assert_int_equal(c.high_severe + c.low_severe, 0);
    assert_int_equal(marks[0], LAB_OUTLIER_NONE);
}

/* 1 + start·e^(−t/rate) + noise of ± 2 %, as reference.py's falling() */
static void draw_falling(double *x, size_t n, double start, double rate, uint64_t seed) {
    draw_uniforms(x, n, seed);
    for (size_t i = 0; i < n; i++)
        x[i] = 1 + start * exp(-(double)i / rate) + 0.04 * (x[i] - 0.5);
}

LAB_TEST(warmup_ends_where_pyperf_says) {
    double x[200];
    bool steady;
    struct {
        size_t n, skip;
        double start, rate;
        uint64_t seed;
    } cases[] = {{60, 26, 3, 4, 11}, {60, 1, 0, 1, 12}, {200, 64, 2, 15, 13}, {101, 12, .3, 6, 15}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        draw_falling(x, cases[i].n, cases[i].start, cases[i].rate, cases[i].seed);
        assert_int_equal(lab_stats_warmup(x, cases[i].n, &steady), cases[i].skip);
        assert_true(steady);
    }
}

LAB_TEST(warmup_without_end_is_not_steady) {
    double x[60];
    bool steady = true;
    draw_falling(x, 40, 5, 30, 14); /* still falling; pyperf's rule finds nothing either */
    assert_int_equal(lab_stats_warmup(x, 40, &steady), 40);
    assert_false(steady);
    for (size_t i = 0; i < 60; i++)
        x[i] = 1 + (double)i / 60;
    lab_stats_warmup(x, 60, &steady);
    assert_false(steady);
}

LAB_TEST(warmup_of_odd_series) {
    bool steady;
    assert_int_equal(lab_stats_warmup(constant, COUNT(constant), &steady), 0);
    assert_true(steady);
    double zeros[8] = {0};
    lab_stats_warmup(zeros, 8, &steady);
    assert_true(steady);
    lab_stats_warmup(NULL, 0, &steady);
    assert_false(steady);
    lab_stats_warmup(constant, 3, &steady);
    assert_false(steady);
    double nans[] = {NAN, NAN, NAN, NAN, NAN, NAN};
    lab_stats_warmup(nans, 6, &steady);
    assert_false(steady);
    /* one slow value before many equal ones: the spread is 0, and only that value goes */
    double slow_first[] = {9, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(lab_stats_warmup(slow_first, COUNT(slow_first), &steady), 1);
    assert_true(steady);
    /* a clock's last digit flickers in one half only */
    double flicker[] = {1000, 1001, 1000, 1001, 1000, 1001, 1000, 1000, 1000, 1000, 1000, 1000};
    lab_stats_warmup(flicker, COUNT(flicker), &steady);
    assert_true(steady);
}

LAB_TEST(warmup_of_a_long_series_is_found_in_steps) {
    static double x[20000];
    draw_falling(x, COUNT(x), 2, 1000, 77);
    bool steady;
    size_t skip = lab_stats_warmup(x, COUNT(x), &steady);
    assert_true(steady);
    assert_int_equal(skip % 40, 0);
    assert_true(skip > 1000 && skip < 10000);
}
