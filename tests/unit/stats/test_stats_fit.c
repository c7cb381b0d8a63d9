/* Linear fits, free and non-negative, against R's lm and an exhaustive search over sets of
 * coefficients in R (tests/fixtures/stats/reference_fit.R). */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/fit.h"

#define DATA(x_, y_, inputs_) (&(struct lab_fit_data){(x_), (y_), NULL, COUNT(y_), (inputs_)})

static const double line_x[] = {1, 2, 3, 4, 5, 6, 8, 10};
static const double line_y[] = {2.1, 3.9, 6.2, 7.8, 10.1, 12.3, 15.7, 20.4};
static const double line_weights[] = {1, 1, 2, 2, 4, 4, 0.5, 0.25};

/* a + x/rate + z/bandwidth */
static const double work_and_bytes[][3] = {{1, 1, 5}, {1, 2, 3}, {1, 4, 8}, {1, 8, 2}, {1, 16, 9},
                                           {1, 1, 1}, {1, 2, 7}, {1, 4, 4}, {1, 8, 6}, {1, 16, 10}};
static const double inside[] = {1.72, 1.81, 2.69, 3.13, 5.65, 1.32, 2.14, 2.31, 3.54, 5.83};
static const double bound[] = {0.31, 0.29, 1.18, 1.89, 4.33, 0.16, 0.75, 0.87, 2.13, 4.35};

/* a + b x */
static struct lab_fit fit_line(const double *x, const double *y, const double *weights, size_t n) {
    double rows[8][2];
    for (size_t i = 0; i < n; i++) {
        rows[i][0] = 1;
        rows[i][1] = x[i];
    }
    return lab_fit_linear(&(struct lab_fit_data){rows[0], y, weights, n, 2});
}

LAB_TEST(longleys_nearly_collinear_figures) {
    static const double x[16][7] = {
        {1, 83, 234.289, 235.6, 159, 107.608, 1947},
        {1, 88.5, 259.426, 232.5, 145.6, 108.632, 1948},
        {1, 88.2, 258.054, 368.2, 161.6, 109.773, 1949},
        {1, 89.5, 284.599, 335.1, 165, 110.929, 1950},
        {1, 96.2, 328.975, 209.9, 309.9, 112.075, 1951},
        {1, 98.1, 346.999, 193.2, 359.4, 113.27, 1952},
        {1, 99, 365.385, 187, 354.7, 115.094, 1953},
        {1, 100, 363.112, 357.8, 335, 116.219, 1954},
        {1, 101.2, 397.469, 290.4, 304.8, 117.388, 1955},
        {1, 104.6, 419.18, 282.2, 285.7, 118.734, 1956},
        {1, 108.4, 442.769, 293.6, 279.8, 120.445, 1957},
        {1, 110.8, 444.546, 468.1, 263.7, 121.95, 1958},
        {1, 112.6, 482.704, 381.3, 255.2, 123.366, 1959},
        {1, 114.2, 502.601, 393.1, 251.4, 125.368, 1960},
        {1, 115.7, 518.173, 480.6, 257.2, 127.852, 1961},
        {1, 116.9, 554.894, 400.7, 282.7, 130.081, 1962},
    };
    static const double y[] = {60.323, 61.122, 60.171, 61.187, 63.221, 63.639, 64.989, 63.761,
                               66.019, 67.857, 68.169, 66.513, 68.655, 69.564, 69.331, 70.551};
    /* R: lm(Employed ~ ., longley) */
    static const double coefficients[] = {
        -3482.25863459581,   0.0150618722713727,  -0.035819179292591, -0.0202022980381682,
        -0.0103322686717359, -0.0511041056535791, 1.82915146461355};
    static const double errors[] = {890.420383607377,    0.0849149257747675,  0.0334910077722435,
                                    0.00488399681651704, 0.00214274163161676, 0.226073200069373,
                                    0.455478499142214};
    struct lab_fit fit = lab_fit_linear(DATA(x[0], y, 7));
    assert_int_equal(fit.state, LAB_FIT_OK);
    for (size_t j = 0; j < 7; j++) {
        assert_close(fit.coefficients[j], coefficients[j], 1e-9);
        assert_close(fit.standard_errors[j], errors[j], 1e-9);
    }
    assert_close(lab_fit_covariance(&fit, 1, 2), -0.00184687273762708, 1e-9);
    assert_close(fit.residual_error, 0.304854073561966, 1e-11);
}

LAB_TEST(a_weighted_line_is_that_of_r) {
    struct lab_fit fit = fit_line(line_x, line_y, line_weights, COUNT(line_y));
    /* R: lm(y ~ x, weights = w), vcov */
    assert_close(fit.coefficients[0], -0.0315940985966174, 1e-11);
    assert_close(fit.coefficients[1], 2.02986685858222, 1e-12);
    assert_close(fit.standard_errors[0], 0.198226822061193, 1e-12);
    assert_close(fit.standard_errors[1], 0.0403490607537634, 1e-12);
    assert_close(lab_fit_covariance(&fit, 0, 1), -0.00745038322037188, 1e-12);
    assert_close(fit.residual_error, 0.276918325767681, 1e-12);
}

LAB_TEST(without_a_constant) {
    struct lab_fit fit = lab_fit_linear(DATA(line_x, line_y, 1));
    /* R: lm(y ~ x - 1) */
    assert_close(fit.coefficients[0], 2.01411764705882, 1e-13);
    assert_close(fit.standard_errors[0], 0.014954205924734, 1e-12);
    assert_close(fit.residual_error, 0.238799518600926, 1e-12);
}

LAB_TEST(tied_values) {
    static const double x[] = {1, 1, 1, 2, 2, 2, 3, 3}, y[] = {2, 2, 3, 3, 3, 5, 5, 5};
    struct lab_fit fit = fit_line(x, y, NULL, COUNT(y));
    /* R: lm */
    assert_close(fit.coefficients[0], 1, 1e-13);
    assert_close(fit.coefficients[1], 4.0 / 3, 1e-13);
    assert_close(fit.standard_errors[0], 0.685627792672868, 1e-13);
    assert_close(fit.standard_errors[1], 0.337579789027889, 1e-13);
}

LAB_TEST(units_change_nothing_but_units) {
    double x[COUNT(line_x)], y[COUNT(line_y)];
    double scales[][2] = {{1e300, 1e300}, {1e-300, 1e-300}, {1e-12, 1e9}};
    for (size_t k = 0; k < COUNT(scales); k++) {
        for (size_t i = 0; i < COUNT(x); i++) {
            x[i] = line_x[i] * scales[k][0];
            y[i] = line_y[i] * scales[k][1];
        }
        struct lab_fit fit = fit_line(x, y, NULL, COUNT(y));
        struct lab_fit plain = fit_line(line_x, line_y, NULL, COUNT(line_y));
        assert_int_equal(fit.state, LAB_FIT_OK);
        assert_close(fit.coefficients[0], plain.coefficients[0] * scales[k][1], 1e-10);
        assert_close(fit.coefficients[1], plain.coefficients[1] * (scales[k][1] / scales[k][0]),
                     1e-10);
        assert_close(fit.standard_errors[0], plain.standard_errors[0] * scales[k][1], 1e-10);
    }
}

LAB_TEST(constant_values_are_a_flat_line) {
    struct lab_fit fit = fit_line(line_x, constant, NULL, COUNT(constant));
    assert_int_equal(fit.state, LAB_FIT_OK);
    assert_close(fit.coefficients[0], 4, 1e-14);
    assert_true(fabs(fit.coefficients[1]) < 1e-14);
    assert_true(fit.standard_errors[1] < 1e-14);
}

LAB_TEST(what_cannot_be_told_apart_is_said) {
    /* bytes are always 3 × work */
    double x[10][3];
    for (size_t i = 0; i < 10; i++) {
        x[i][0] = 1;
        x[i][1] = (double)(i + 1);
        x[i][2] = 3 * x[i][1];
    }
    struct lab_fit fit = lab_fit_nonnegative(DATA(x[0], inside, 3));
    assert_int_equal(fit.state, LAB_FIT_RANK_DEFICIENT);
    assert_nan(fit.coefficients[1]);
    /* all at one x; a column of zeros */
    struct lab_fit one_x = fit_line(constant, line_y, NULL, COUNT(line_y));
    assert_int_equal(one_x.state, LAB_FIT_RANK_DEFICIENT);
    double zeros[COUNT(line_y)] = {0};
    struct lab_fit nothing = lab_fit_linear(DATA(zeros, line_y, 1));
    assert_int_equal(nothing.state, LAB_FIT_RANK_DEFICIENT);
}

LAB_TEST(too_few_and_unusable_values) {
    struct lab_fit_data none = {.inputs = 1};
    assert_int_equal(lab_fit_linear(&none).state, LAB_FIT_TOO_FEW);
    assert_int_equal(fit_line(line_x, line_y, NULL, 1).state, LAB_FIT_TOO_FEW);
    /* as many values as coefficients: exact, and nothing known of errors */
    struct lab_fit exact = fit_line(line_x, line_y, NULL, 2);
    assert_int_equal(exact.state, LAB_FIT_OK);
    assert_close(exact.coefficients[1], 1.8, 1e-13);
    assert_nan(exact.standard_errors[1]);

    assert_int_equal(lab_fit_linear(DATA(line_x, with_nan, 1)).state, LAB_FIT_UNUSABLE);
    assert_int_equal(lab_fit_linear(DATA(with_nan, with_nan, 1)).state, LAB_FIT_UNUSABLE);
    double bad_weights[] = {1, 1, 0, 1, 1, 1, 1, 1};
    assert_int_equal(fit_line(line_x, line_y, bad_weights, COUNT(line_y)).state, LAB_FIT_UNUSABLE);
    struct lab_fit_data wide = {line_x, line_y, NULL, 0, 9};
    assert_int_equal(lab_fit_linear(&wide).state, LAB_FIT_UNUSABLE);
}

LAB_TEST(positive_coefficients_are_those_of_the_free_fit) {
    struct lab_fit fit = lab_fit_nonnegative(DATA(work_and_bytes[0], inside, 3));
    /* R: nonnegative(), summary(lm) */
    assert_close(fit.coefficients[0], 1.01135530625044, 1e-12);
    assert_close(fit.coefficients[1], 0.241291199219567, 1e-12);
    assert_close(fit.coefficients[2], 0.0921162288342275, 1e-12);
    assert_close(fit.standard_errors[0], 0.0259585652845861, 1e-11);
    assert_close(fit.standard_errors[2], 0.00546252107084915, 1e-11);
}

LAB_TEST(a_bound_coefficient_is_zero_and_not_certain) {
    struct lab_fit fit = lab_fit_nonnegative(DATA(work_and_bytes[0], bound, 3));
    /* R: nonnegative(), lm */
    assert_close(fit.coefficients[0], 0, 0);
    assert_close(fit.coefficients[1], 0.253643871082939, 1e-12);
    assert_close(fit.coefficients[2], 0.0199205428086777, 1e-11);
    assert_close(fit.standard_errors[0], 0.0602853896007932, 1e-11);
    assert_close(fit.residual_error, 0.088094568028756, 1e-11);
    /* nothing but 0 suits values that are all negative */
    double down[COUNT(bound)];
    for (size_t i = 0; i < COUNT(down); i++)
        down[i] = -bound[i] - 1;
    struct lab_fit none = lab_fit_nonnegative(DATA(work_and_bytes[0], down, 3));
    for (size_t j = 0; j < 3; j++)
        assert_close(none.coefficients[j], 0, 0);
}

/* Karush, Kuhn and Tucker: ≥ 0, no descent where positive, none upwards where 0. A convex problem
 * has one such point. */
LAB_TEST(random_problems_meet_the_conditions_of_a_minimum) {
    enum { N = 12, P = 6 };
    double x[N * P], y[N];
    int bounds_met = 0;
    for (uint64_t trial = 0; trial < 500; trial++) {
        for (size_t i = 0; i < N * P; i++)
            x[i] = lab_random_uniform(trial, i) - 0.3;
        for (size_t i = 0; i < N; i++)
            y[i] = lab_random_uniform(trial, 1000 + i) - 0.4;
        struct lab_fit fit = lab_fit_nonnegative(DATA(x, y, P));
        assert_int_equal(fit.state, LAB_FIT_OK);
        for (size_t j = 0; j < P; j++) {
            double descent = 0;
            for (size_t i = 0; i < N; i++) {
                double e = y[i];
                for (size_t k = 0; k < P; k++)
                    e -= x[i * P + k] * fit.coefficients[k];
                descent += x[i * P + j] * e;
            }
            assert_true(fit.coefficients[j] >= 0);
            assert_true(descent < 1e-10);
            assert_true(fit.coefficients[j] == 0 || descent > -1e-10);
            bounds_met += fit.coefficients[j] == 0;
        }
    }
    assert_true(bounds_met > 500 && bounds_met < 2500);
}
