/* Welch's test, adjusted p values, shares and the distributions behind them, against R
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

#define assert_welch(got, t_, freedom_, p_, low_, high_, confidence_, relative)                    \
    do {                                                                                           \
        struct lab_mean_test test_ = (got);                                                        \
        assert_close(test_.t, t_, relative);                                                       \
        assert_close(test_.degrees_of_freedom, freedom_, relative);                                \
        assert_close(test_.p, p_, relative);                                                       \
        assert_interval(test_.interval, low_, high_, confidence_, relative);                       \
    } while (0)

LAB_TEST(welch_is_that_of_r) {
    /* R: t.test(x, y) */
    draw_pair();
    assert_welch(lab_stats_welch(a, 12, b, 9, .95), -1.49211174227307, 15.7315161861738,
                 0.155451108218508, -6.0559903075861, 1.05664807655821, .95, 1e-11);
    assert_welch(lab_stats_welch(tied, 10, tied2, 7, .99), -1.18488345657781, 14.9229163797227,
                 0.254591032010154, -4.33601289943052, 1.85029861371623, .99, 1e-11);
    assert_welch(lab_stats_welch(newcomb, 33, newcomb + 33, 33, .95), -1.40807770714519,
                 38.2964336291541, 0.167174546266918, -9.01075449634632, 1.61681510240692, .95,
                 1e-9);
    double few[] = {1, 2}, more[] = {4, 8};
    assert_welch(lab_stats_welch(few, 2, more, 2, .95), -2.182820625327, 1.12451361867704,
                 0.250979819013084, -24.7433789069888, 15.7433789069888, .95, 1e-11);
    double same[] = {4, 4, 4}, others[] = {1, 2, 6};
    assert_welch(lab_stats_welch(same, 3, others, 3, .95), 0.654653670707977, 2, 0.579915974791597,
                 -5.57241060772843, 7.57241060772843, .95, 1e-11);
}

LAB_TEST(welch_of_huge_and_many) {
    /* R: 1e300 times t.test(c(1, 2, 3, 5), c(4, 6, 7)) */
    double apart[] = {4e300, 6e300, 7e300};
    assert_welch(lab_stats_welch(huge, 4, apart, 3, .95), -2.37595481655746, 4.73399014778325,
                 0.0663496331612797, -6.12633906643343e300, 0.293005733100099e300, .95, 1e-10);
    draw_big();
    assert_welch(lab_stats_welch(big_x, BIG, big_y, BIG, .95), -2.58260503027503, 999997.133241126,
                 0.00980589174455561, -0.00262269582314406, -0.000359486226861493, .95, 1e-8);
}

LAB_TEST(welch_without_spread_or_values) {
    double same[] = {1, 1}, one = 1;
    struct lab_mean_test test = lab_stats_welch(constant, 8, same, 2, .95);
    assert_close(test.difference, 3, 0);
    assert_interval(test.interval, 3, 3, .95, 0);
    assert_nan(test.t);
    assert_nan(test.p);
    test = lab_stats_welch(constant, 8, &one, 1, .95);
    assert_close(test.difference, 3, 0);
    assert_nan(test.p);
    assert_nan(test.interval.low);
    assert_nan(lab_stats_welch(NULL, 0, same, 2, .95).difference);
    assert_nan(lab_stats_welch(tied, 10, with_nan, 5, .95).p);
    assert_nan(lab_stats_welch(tied, 10, tied2, 7, 2).interval.low);
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
