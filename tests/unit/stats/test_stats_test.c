/* Adjusted p values, shares and the distributions behind them, against R
 * (tests/fixtures/stats/reference_compare.R). */
#include "fixtures/stats/reference_compare.h"

LAB_TEST(distributions_are_those_of_r) {
    /* R: 2 * pt(-t, v) */
    assert_close(lab_stats_t_two_sided(.5, 1), 0.704832764699134, 1e-12);
    assert_close(lab_stats_t_two_sided(-2, 3), 0.139325968558843, 1e-12);
    assert_close(lab_stats_t_two_sided(40, 5), 1.8411962171773e-07, 1e-11);
    assert_close(lab_stats_t_two_sided(2, 1000), 0.0457703464932517, 1e-10);
    assert_close(lab_stats_t_two_sided(2.5, 1e6), 0.0124194895021632, 1e-9);
    assert_close(lab_stats_t_two_sided(1e-3, 31), 0.999208523146496, 1e-12);
    /* R: pt(t, v, ncp) */
    assert_close(lab_stats_t_noncentral_cdf(2, 1, 1), 0.622871964460169, 1e-10);
    assert_close(lab_stats_t_noncentral_cdf(-1, 4, 2), 0.00257323217511629, 1e-9);
    assert_close(lab_stats_t_noncentral_cdf(2.1, 18, 3), 0.190049836295455, 1e-10);
    assert_close(lab_stats_t_noncentral_cdf(1.96, 5000, 2.8), 0.200471942364617, 1e-9);
    assert_close(lab_stats_t_noncentral_cdf(5, 10, 0), 0.999731333198622, 1e-11);
    assert_close(lab_stats_t_noncentral_cdf(1, INFINITY, 0), 0.841344746068543, 1e-12);
    /* (2 + 4)² / (2² / 3 + 4² / 5) */
    assert_close(lab_stats_welch_freedom(2, 3, 4, 5), 36 / (4. / 3 + 16. / 5), 1e-14);
    /* R: qbeta, dbinom */
    assert_close(lab_stats_beta_quantile(.025, 1, 20), 0.0012650894979498, 1e-12);
    assert_close(lab_stats_beta_quantile(.5, 3, 4), 0.421407190690713, 1e-12);
    assert_close(lab_stats_beta_quantile(.975, 1900, 101), 0.958681577518665, 1e-12);
    assert_close(lab_stats_beta_quantile(.01, .5, .5), 0.000246719817134222, 1e-11);
    assert_close(lab_stats_binomial_pmf(0, 10, .1), 0.3486784401, 1e-12);
    assert_close(lab_stats_binomial_pmf(3, 20, .5), 0.00108718872070313, 1e-12);
    assert_close(lab_stats_binomial_pmf(950, 1000, .95), 0.0577879837141071, 1e-11);
}

LAB_TEST(impossible_arguments_give_no_number) {
    assert_nan(lab_stats_t_two_sided(NAN, 3));
    assert_nan(lab_stats_t_two_sided(1, 0));
    assert_close(lab_stats_t_two_sided(INFINITY, 3), 0, 0);
    assert_close(lab_stats_t_two_sided(0, 3), 1, 0);
    assert_close(lab_stats_t_two_sided(1e300, 3), 0, 0);
    assert_close(lab_stats_t_two_sided(1.95996398454005, INFINITY), .05, 1e-12);
    assert_nan(lab_stats_t_noncentral_cdf(1, -1, 0));
    assert_nan(lab_stats_t_noncentral_cdf(1, 3, NAN));
    assert_close(lab_stats_t_noncentral_cdf(INFINITY, 3, 1), 1, 0);
    assert_close(lab_stats_t_noncentral_cdf(1, 3, INFINITY), 0, 0);
    assert_nan(lab_stats_beta_quantile(-1, 1, 1));
    assert_nan(lab_stats_beta_quantile(.5, 0, 1));
    assert_nan(lab_stats_binomial_pmf(1, -1, .5));
    assert_nan(lab_stats_binomial_pmf(1, 3, NAN));
    assert_close(lab_stats_binomial_pmf(4, 3, .5), 0, 0);
}

LAB_TEST(adjusted_as_by_r) {
    /* R: p.adjust(p, "BH") */
    double p[] = {.01, .02, .03, .04, .05, .5, .5, NAN, 1e-300, 1, 0};
    const double wanted[] = {0.0333333333333333,
                             0.05,
                             0.06,
                             0.0666666666666667,
                             0.0714285714285714,
                             0.555555555555556,
                             0.555555555555556,
                             NAN,
                             5e-300,
                             1,
                             0};
    double adjusted[COUNT(p)];
    lab_stats_adjust_bh(p, COUNT(p), adjusted);
    lab_stats_adjust_bh(p, COUNT(p), p);
    for (size_t i = 0; i < COUNT(p); i++) {
        if (isnan(wanted[i])) {
            assert_nan(adjusted[i]);
            continue;
        }
        assert_close(adjusted[i], wanted[i], 1e-12);
        assert_true(p[i] == adjusted[i]);
    }
    lab_stats_adjust_bh(NULL, 0, NULL);
    double odd[] = {-1, 2, .3};
    lab_stats_adjust_bh(odd, 3, odd);
    assert_nan(odd[0]);
    assert_nan(odd[1]);
    assert_close(odd[2], .3, 0);
}

/* R: p.adjust(p, "holm", n) */
LAB_TEST(holm_adjusts_some_of_many_tests) {
    double p[] = {.02, NAN, .001, .5, .01}, few[5];
    static const double of_six[] = {.08, NAN, .006, 1, .05}, of_four[] = {.04, NAN, .004, .5, .03};
    lab_stats_adjust_holm(p, COUNT(p), 4, few);
    lab_stats_adjust_holm(p, COUNT(p), 6, p);
    for (size_t i = 0; i < COUNT(p); i++) {
        assert_true(isnan(of_six[i]) ? isnan(p[i]) : fabs(p[i] - of_six[i]) < 1e-12);
        assert_true(isnan(of_four[i]) ? isnan(few[i]) : fabs(few[i] - of_four[i]) < 1e-12);
    }
}

LAB_TEST(half_a_million_tests) {
    draw_big();
    static double adjusted[BIG];
    lab_stats_adjust_bh(big_x, BIG, adjusted);
    assert_close(adjusted[0], 0.684813130965835, 1e-12);
    assert_close(adjusted[1], 0.998983855652006, 1e-12);
    assert_close(lab_stats_min(adjusted, BIG), 0.684813130965835, 1e-12);
}

LAB_TEST(shares_are_those_of_r) {
    /* R: binom.test(k, n, p) */
    static const struct {
        int64_t k, n;
        double share, confidence, p, low, high;
    } cases[] = {
        {7, 20, .3, .95, 0.629497966676677, 0.153909204784541, 0.592188534532828},
        {0, 10, .2, .95, 0.228248064, 0, 0.308497107818761},
        {10, 10, .9, .95, 0.612579511, 0.691502892181239, 1},
        {1880, 2000, .95, .98, 0.0451716149494762, 0.926499418875692, 0.951721028342778},
        {1930, 2000, .95, .95, 0.00144824721532842, 0.955984584721514, 0.972616198861558},
        {1, 1, .5, .95, 1, 0.025, 1},
        {500900, 1000000, .5, .95, 0.0720186276764818, 0.499919518176245, 0.501880476610485},
        {3, 1000, .05, .95, 2.36727361839064e-18, 0.000619099931649572, 0.00874202323847828},
        {12, 200, .05, .95, 0.513548999430485, 0.0313839538934835, 0.102461831308324},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_close(lab_stats_binomial_test(cases[i].k, cases[i].n, cases[i].share), cases[i].p,
                     1e-9);
        assert_interval(lab_stats_binomial_interval(cases[i].k, cases[i].n, cases[i].confidence),
                        cases[i].low, cases[i].high, cases[i].confidence, 1e-10);
    }
}

/* Against limma's fitFDist: variances that differ by chance alone are one. */
LAB_TEST(a_prior_of_variances) {
    static const struct {
        double variances[5], freedom;
        size_t n;
        double prior, freedoms;
    } cases[] = {
        {{1e-4, 1, 100, .01, 10}, 4, 5, 0.006063278315258568, 0.3725608784905567},
        {{1, 8, .1, 3}, 6, 4, 0.5846942030097968, 1.3100112772329884},
        {{1, 2, .5, 4, 1.5}, 2, 5, 1.8, INFINITY},
        {{1, 0, NAN}, 2, 3, NAN, 0}, /* one alone has nothing in common with others */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double freedoms[5];
        for (size_t k = 0; k < cases[i].n; k++)
            freedoms[k] = cases[i].freedom;
        struct lab_variance_prior prior =
            lab_stats_variance_prior(cases[i].variances, freedoms, cases[i].n);
        if (isnan(cases[i].prior))
            assert_nan(prior.variance);
        else
            assert_close(prior.variance, cases[i].prior, 1e-6);
        if (isfinite(cases[i].freedoms))
            assert_close(prior.freedom, cases[i].freedoms, 1e-6);
        else
            assert_true(isinf(prior.freedom));
    }
}

LAB_TEST(shares_of_nothing) {
    assert_nan(lab_stats_binomial_test(0, 0, .5));
    assert_nan(lab_stats_binomial_test(3, 2, .5));
    assert_nan(lab_stats_binomial_test(-1, 2, .5));
    assert_nan(lab_stats_binomial_test(1, 2, NAN));
    assert_close(lab_stats_binomial_test(0, 5, 0), 1, 0);
    assert_close(lab_stats_binomial_test(1, 5, 0), 0, 0);
    assert_close(lab_stats_binomial_test(5, 5, 1), 1, 0);
    assert_nan(lab_stats_binomial_interval(0, 0, .95).low);
    assert_nan(lab_stats_binomial_interval(3, 2, .95).low);
    assert_nan(lab_stats_binomial_interval(1, 2, 0).high);
}
