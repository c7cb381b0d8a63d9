/* Non-linear fits, scaling laws and crossovers against R's nls and lm, and NIST's certified values
 * (tests/fixtures/stats/reference_fit.R). */
#include "fixtures/stats/reference.h"
#include "stats/fit.h"

#define DATA(x_, y_) (&(struct lab_fit_data){(x_), (y_), NULL, COUNT(y_), 1})
#define NLS          1e-7 /* R's nls stops where the rest of a step is so small a share */

static const double power_x[] = {1, 2, 4, 8, 16, 32, 64};
static const double power_y[] = {3.1, 5.0, 8.6, 14.2, 23.5, 40.1, 66.0};
static const double processors[] = {1, 2, 4, 8, 12, 16, 24, 32};
static const double usl_y[] = {99.5, 186, 330, 529, 621, 660, 653, 602};

static double misra1a(const double *c, const double *x) {
    return c[0] * (1 - exp(-c[1] * x[0]));
}

static void misra1a_gradient(const double *c, const double *x, double *ret_gradient) {
    ret_gradient[0] = 1 - exp(-c[1] * x[0]);
    ret_gradient[1] = c[0] * x[0] * exp(-c[1] * x[0]);
}

static const double misra1a_x[] = {77.6,  114.9, 141.1, 190.8, 239.9, 289,   332.8,
                                   378.4, 434.8, 477.3, 536.8, 593.1, 689.1, 760};
static const double misra1a_y[] = {10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02,
                                   44.82, 50.76, 55.05, 61.01, 66.4,  75.47, 81.78};

/* NIST's StRD, "Misra1a", from its harder start */
LAB_TEST(misra1a_with_and_without_a_gradient) {
    struct lab_fit_model models[] = {
        {"given", LAB_FIT_NONLINEAR, 1, 2, misra1a, misra1a_gradient, NULL},
        {"by differences", LAB_FIT_NONLINEAR, 1, 2, misra1a, NULL, NULL},
    };
    for (size_t k = 0; k < COUNT(models); k++) {
        double start[] = {500, 1e-4};
        struct lab_fit fit = lab_fit_run_from(&models[k], DATA(misra1a_x, misra1a_y), start, 200);
        assert_int_equal(fit.state, LAB_FIT_OK);
        assert_true(fit.iterations > 1 && fit.iterations < 200);
        assert_close(fit.coefficients[0], 2.3894212918E+02, 1e-9);
        assert_close(fit.coefficients[1], 5.5015643181E-04, 1e-9);
        assert_close(fit.standard_errors[0], 2.7070075241E+00, 1e-8);
        assert_close(fit.standard_errors[1], 7.2668688436E-06, 1e-8);
        assert_close(fit.residual_error, 1.0187876330E-01, 1e-10);
    }
}

LAB_TEST(a_fit_that_was_cut_short_says_so) {
    struct lab_fit_model model = {"", LAB_FIT_NONLINEAR, 1, 2, misra1a, misra1a_gradient, NULL};
    double start[] = {500, 1e-4}, unusable[] = {NAN, 1};
    struct lab_fit fit = lab_fit_run_from(&model, DATA(misra1a_x, misra1a_y), start, 1);
    assert_int_equal(fit.state, LAB_FIT_NOT_CONVERGED);
    assert_int_equal(fit.iterations, 1);
    assert_nan(fit.standard_errors[0]);
    /* nowhere to begin */
    assert_int_equal(lab_fit_run(&model, DATA(misra1a_x, misra1a_y)).state, LAB_FIT_UNUSABLE);
    assert_int_equal(lab_fit_run_from(&model, DATA(misra1a_x, misra1a_y), unusable, 9).state,
                     LAB_FIT_UNUSABLE);
}

static double twice(const double *c, const double *x) {
    return (c[0] + c[1]) * x[0];
}

static double impossible(const double *c, const double *x) {
    return c[0] > 1 ? NAN : sqrt(c[0] - 2) * x[0];
}

LAB_TEST(coefficients_that_do_the_same_are_told) {
    struct lab_fit_model model = {"", LAB_FIT_NONLINEAR, 1, 2, twice, NULL, NULL};
    double start[] = {1, 1};
    struct lab_fit fit = lab_fit_run_from(&model, DATA(power_x, power_y), start, 50);
    assert_int_equal(fit.state, LAB_FIT_RANK_DEFICIENT);
    assert_int_equal(fit.rank, 1);
    assert_nan(fit.coefficients[0]);
    struct lab_fit_model none = {"", LAB_FIT_NONLINEAR, 1, 1, impossible, NULL, NULL};
    assert_int_equal(lab_fit_run_from(&none, DATA(power_x, power_y), start, 50).state,
                     LAB_FIT_NOT_CONVERGED);
}

LAB_TEST(inputs_that_a_law_cannot_take) {
    double zero_x[] = {0, 1, 2, 3, 4}, y[] = {1, 2, 3, 4, 5};
    assert_int_equal(lab_fit_run(&lab_law_usl, DATA(zero_x, y)).state, LAB_FIT_UNUSABLE);
    assert_int_equal(lab_fit_run(&lab_law_usl, DATA(y, with_nan)).state, LAB_FIT_UNUSABLE);
}

LAB_TEST(the_universal_scalability_law_and_its_peak) {
    struct lab_fit fit = lab_fit_run(&lab_law_usl, DATA(processors, usl_y));
    /* R: nls; delta method by hand */
    assert_int_equal(fit.state, LAB_FIT_OK);
    assert_close(fit.coefficients[0], 97.6149592181421, NLS);
    assert_close(fit.coefficients[1], 0.0471750362172651, NLS);
    assert_close(fit.coefficients[2], 0.00273978171348504, NLS);
    assert_close(fit.standard_errors[0], 0.791578926040657, NLS);
    assert_close(fit.standard_errors[1], 0.00177048303077828, NLS);
    assert_close(fit.standard_errors[2], 3.60583003445722e-05, NLS);
    struct lab_fit_derived peak = lab_fit_derive(&fit, lab_law_usl_peak, .95);
    assert_close(peak.value, 18.6487008428603, NLS);
    assert_close(peak.standard_error, 0.111857052091862, 1e-6);
    assert_true(peak.interval.low < peak.value && peak.value < peak.interval.high);
}

LAB_TEST(lines_meet_where_r_says) {
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const double a[] = {5.1, 5.4, 6.1, 6.4, 7.1, 7.4, 8.1, 8.4};
    static const double b[] = {2.2, 3.1, 4.2, 5.2, 6.1, 7.3, 8.1, 9.2};
    struct lab_fit slow = lab_fit_run(&lab_law_line, DATA(x, a));
    struct lab_fit steep = lab_fit_run(&lab_law_line, DATA(x, b));
    /* R: lm, uniroot */
    struct lab_crossover cross = lab_fit_crossover(&slow, &steep, 0, INFINITY, .95);
    assert_close(cross.at, 6.6, 1e-12);
    assert_close(cross.interval.low, 6.33378714081995, 1e-9);
    assert_close(cross.interval.high, 6.90105882952296, 1e-9);
    /* outside of where it is looked for */
    struct lab_crossover later = lab_fit_crossover(&slow, &steep, 10, INFINITY, .95);
    assert_nan(later.at);
    assert_nan(later.interval.low);
    struct lab_crossover cut = lab_fit_crossover(&slow, &steep, 0, 6.5, .95);
    assert_nan(cut.at);
    assert_close(cut.interval.high, 6.5, 0);
}

LAB_TEST(lines_that_may_be_parallel_meet_anywhere_or_far_off) {
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const double a[] = {2.1, 2.9, 4.2, 4.8, 6.1, 6.9, 8.2, 8.8};
    double near[8], above[8];
    for (size_t i = 0; i < 8; i++) {
        near[i] = a[7 - i] + 2 * (x[i] - 4.5); /* the same line, other errors */
        above[i] = near[i] + 5;
    }
    struct lab_fit one = lab_fit_run(&lab_law_line, DATA(x, a));
    struct lab_fit same = lab_fit_run(&lab_law_line, DATA(x, near));
    struct lab_fit higher = lab_fit_run(&lab_law_line, DATA(x, above));
    struct lab_interval anywhere = lab_fit_crossover(&one, &same, 0, INFINITY, .95).interval;
    assert_close(anywhere.low, 0, 0);
    assert_true(isinf(anywhere.high));
    struct lab_interval far = lab_fit_crossover(&one, &higher, 0, INFINITY, .95).interval;
    assert_true(far.low > 8); /* not where it was measured */
    assert_true(isinf(far.high));
    struct lab_interval before = lab_fit_crossover(&one, &higher, -INFINITY, 8, .95).interval;
    assert_true(isinf(before.low) && before.high < 1);
    struct lab_interval either =
        lab_fit_crossover(&one, &higher, -INFINITY, INFINITY, .95).interval;
    assert_true(isinf(either.low) && isinf(either.high)); /* both, and what is between them */
    /* a line with itself */
    struct lab_crossover self = lab_fit_crossover(&one, &one, 0, 100, .95);
    assert_nan(self.at);
    assert_close(self.interval.high, 100, 0);
    struct lab_fit curve = lab_fit_run(&lab_law_usl, DATA(x, a));
    assert_nan(lab_fit_crossover(&one, &curve, 0, 100, .95).interval.low);
}

LAB_TEST(exact_lines_meet_in_a_point) {
    double scales[] = {1, 1e150, 1e-150};
    for (size_t k = 0; k < COUNT(scales); k++) {
        double x[4], a[4], b[4];
        for (size_t i = 0; i < 4; i++) {
            x[i] = (double)i * scales[k];
            a[i] = 10 * scales[k];
            b[i] = 2 * x[i];
        }
        struct lab_fit flat = lab_fit_run(&lab_law_line, DATA(x, a));
        struct lab_fit rising = lab_fit_run(&lab_law_line, DATA(x, b));
        struct lab_crossover cross = lab_fit_crossover(&flat, &rising, 0, INFINITY, .95);
        assert_close(cross.at, 5 * scales[k], 1e-12);
        assert_close(cross.interval.low, 5 * scales[k], 1e-6);
        assert_close(cross.interval.high, 5 * scales[k], 1e-6);
    }
}
