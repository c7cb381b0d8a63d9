/* Two samples by their order, and ratios, against R (tests/fixtures/stats/reference_compare.R). */
#include "fixtures/stats/reference_compare.h"

#define assert_test(got, u_, p_, how_, relative)                                                   \
    do {                                                                                           \
        struct lab_rank_test test_ = (got);                                                        \
        assert_close(test_.u, u_, 0);                                                              \
        assert_close(test_.p, p_, relative);                                                       \
        assert_int_equal(test_.how, how_);                                                         \
    } while (0)

LAB_TEST(mann_whitney_is_that_of_r) {
    /* R: wilcox.test(x, y, exact = TRUE) */
    draw_pair();
    assert_test(lab_stats_mann_whitney(a, 12, b, 9), 29, 0.0815432245772803, LAB_TEST_EXACT, 1e-12);
    assert_test(lab_stats_mann_whitney(b, 9, a, 12), 79, 0.0815432245772803, LAB_TEST_EXACT, 1e-12);
    assert_test(lab_stats_mann_whitney(a, 3, b, 4), 5, 0.857142857142857, LAB_TEST_EXACT, 1e-12);
    double x[60], y[60];
    draw_ar1(x, 50, 0, 5);
    draw_ar1(y, 60, 0, 6);
    for (size_t i = 0; i < 60; i++)
        y[i] += .4;
    assert_test(lab_stats_mann_whitney(x, 50, y, 60), 816, 2.79753305110631e-05, LAB_TEST_EXACT,
                1e-12);
}

LAB_TEST(exact_tails_keep_their_figures) {
    double x[100], y[100];
    for (size_t i = 0; i < 100; i++) {
        x[i] = (double)i + 1.5;
        y[i] = (double)i + 91;
    }
    assert_test(lab_stats_mann_whitney(x, 100, y, 100), 55, 6.59285248650697e-53, LAB_TEST_EXACT,
                1e-12);
}

LAB_TEST(ties_are_counted_exactly) {
    /* R: twice the smaller tail of the rank sum over combn */
    assert_test(lab_stats_mann_whitney(tied, 10, tied2, 7), 16, 0.0553270259152612, LAB_TEST_EXACT,
                1e-12);
    assert_test(lab_stats_mann_whitney(tied2, 7, tied, 10), 54, 0.0553270259152612, LAB_TEST_EXACT,
                1e-12);
    double few[] = {1, 1, 2}, more[] = {2, 2, 3, 3};
    assert_test(lab_stats_mann_whitney(few, 3, more, 4), 1, 0.171428571428571, LAB_TEST_EXACT,
                1e-12);
}

LAB_TEST(many_ties_are_normal) {
    /* R: wilcox.test(newcomb[1:33], newcomb[34:66]) */
    assert_test(lab_stats_mann_whitney(newcomb, 33, newcomb + 33, 33), 467.5, 0.325474419658658,
                LAB_TEST_APPROX, 1e-12);
}

LAB_TEST(exact_and_normal_agree_where_they_meet) {
    double x[101], y[101];
    draw_ar1(x, 101, 0, 41);
    draw_ar1(y, 101, 0, 42);
    for (size_t i = 0; i < 101; i++)
        y[i] += .15;
    struct lab_rank_test exact = lab_stats_mann_whitney(x, 100, y, 100);
    x[0] = y[0]; /* a tie makes it normal */
    struct lab_rank_test normal = lab_stats_mann_whitney(x, 100, y, 100);
    assert_int_equal(exact.how, LAB_TEST_EXACT);
    assert_int_equal(normal.how, LAB_TEST_APPROX);
    assert_true(fabs(exact.u - normal.u) <= 100);
    assert_true(exact.p > 0 && exact.p < 1 && fabs(exact.p / normal.p - 1) < .4);
}

LAB_TEST(a_million_values_are_compared) {
    draw_big();
    assert_test(lab_stats_mann_whitney(big_x, BIG, big_y, BIG), 124627328569, 0.00982460611605696,
                LAB_TEST_APPROX, 1e-10);
    struct lab_effect shift = lab_stats_shift(big_x, BIG / 5, big_y, BIG / 5, .95);
    assert_true(shift.interval.low < shift.value && shift.value < shift.interval.high);
    assert_true(shift.interval.low < -.001 && shift.interval.high > -.001);
}

LAB_TEST(nothing_to_compare) {
    double one = 1, other = 2, same[] = {4, 4};
    double few[] = {1, 2}, more[] = {3, 4, 5}, endless[] = {-INFINITY, 1, INFINITY};
    assert_test(lab_stats_mann_whitney(&one, 1, &other, 1), 0, 1, LAB_TEST_EXACT, 1e-12);
    assert_test(lab_stats_mann_whitney(few, 2, more, 3), 0, .2, LAB_TEST_EXACT, 1e-12);
    assert_test(lab_stats_mann_whitney(constant, 8, same, 2), 8, 1, LAB_TEST_EXACT, 0);
    assert_test(lab_stats_mann_whitney(endless, 3, more, 3), 3, .7, LAB_TEST_EXACT, 1e-12);
    struct lab_rank_test none = lab_stats_mann_whitney(NULL, 0, more, 3);
    assert_nan(none.u);
    assert_nan(none.p);
    assert_int_equal(none.how, LAB_TEST_NONE);
    assert_nan(lab_stats_mann_whitney(more, 3, NULL, 0).p);
    assert_nan(lab_stats_mann_whitney(more, 3, with_nan, 5).p);
    assert_nan(lab_stats_mann_whitney(with_nan, 5, more, 3).u);
    assert_test(lab_stats_mann_whitney(huge, 4, more, 3), 12, 2 / 35.0, LAB_TEST_EXACT, 1e-12);
    double *flat = calloc(4000, sizeof *flat);
    assert_test(lab_stats_mann_whitney(flat, 2000, flat + 2000, 2000), 2e6, 1, LAB_TEST_APPROX, 0);
    free(flat);
}

LAB_TEST(shifts_are_those_of_r) {
    /* R: wilcox.test(x, y, conf.int = TRUE, exact = TRUE), reached by pwilcox */
    draw_pair();
    struct lab_effect shift = lab_stats_shift(a, 12, b, 9, .95);
    assert_close(shift.value, -2.35788238996541, 1e-12);
    assert_interval(shift.interval, -6.55654700498867, 0.443946778049668, 0.950927091484367, 1e-12);
    shift = lab_stats_shift(a, 12, b, 9, .99);
    assert_interval(shift.interval, -8.28990113562434, 3.41349868076551, 0.990712074303406, 1e-12);
    double x[150] = {1, 2, 4}, y[120] = {1.5, 7, 9};
    shift = lab_stats_shift(x, 3, y, 3, .95); /* the widest there is */
    assert_close(shift.value, -5, 0);
    assert_interval(shift.interval, -8, 2.5, .9, 1e-12);
    shift = lab_stats_shift(tied, 10, tied2, 7, .95);
    assert_close(shift.value, -2, 0);
    assert_interval(shift.interval, -4, 0, 0.956910736322501, 1e-12);
    draw_ar1(x, 150, 0, 5);
    draw_ar1(y, 120, 0, 6);
    for (size_t i = 0; i < 120; i++)
        y[i] += .4;
    shift = lab_stats_shift(x, 150, y, 120, .95);
    assert_close(shift.value, -0.446444600469641, 1e-12);
    assert_interval(shift.interval, -0.572148698555376, -0.319533004015467, .95, 1e-12);
}

LAB_TEST(shifts_that_are_points_or_none) {
    double one = 1, other = 3, endless[] = {1, INFINITY}, same[] = {1, 1, 1};
    struct lab_effect shift = lab_stats_shift(&one, 1, &other, 1, .95);
    assert_close(shift.value, -2, 0);
    assert_interval(shift.interval, -2, -2, 0, 0);
    shift = lab_stats_shift(constant, 8, same, 3, .95);
    assert_close(shift.value, 3, 0);
    assert_close(shift.interval.low, 3, 0);
    assert_close(shift.interval.high, 3, 0);
    assert_close(lab_stats_shift(huge, 4, huge, 4, .95).value, 0, 0);
    assert_nan(lab_stats_shift(endless, 2, same, 3, .95).value);
    assert_nan(lab_stats_shift(NULL, 0, same, 3, .95).value);
    assert_nan(lab_stats_shift(same, 3, with_nan, 5, .95).interval.low);
    assert_nan(lab_stats_shift(same, 3, same, 3, 0).interval.low);
}
