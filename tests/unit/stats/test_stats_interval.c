/* Distributions and intervals against R (tests/fixtures/stats/reference.R). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

LAB_TEST(distributions_are_those_of_r) {
    /* R: qnorm, pnorm, qt, pbinom */
    assert_close(lab_stats_normal_quantile(.001), -3.09023230616781, 1e-13);
    assert_close(lab_stats_normal_quantile(.025), -1.95996398454005, 1e-13);
    assert_close(lab_stats_normal_quantile(.999999), 4.75342430881709, 1e-10);
    assert_close(lab_stats_normal_cdf(-8), 6.22096057427178e-16, 1e-12);
    assert_close(lab_stats_normal_cdf(-1.96), 0.0249978951482204, 1e-13);
    assert_close(lab_stats_normal_cdf(3), 0.99865010196837, 1e-13);
    assert_close(lab_stats_t_quantile(.975, 1), 12.7062047361747, 1e-12);
    assert_close(lab_stats_t_quantile(.975, 2), 4.30265272974946, 1e-12);
    assert_close(lab_stats_t_quantile(.975, 10), 2.22813885198627, 1e-12);
    assert_close(lab_stats_t_quantile(.975, 99.5), 1.98409361099062, 1e-12);
    assert_close(lab_stats_t_quantile(.025, 10), -2.22813885198627, 1e-12);
    assert_close(lab_stats_t_quantile(.975, INFINITY), 1.95996398454005, 1e-13);
    assert_close(lab_stats_binomial_cdf(0, 1, .5), 0.5, 1e-13);
    assert_close(lab_stats_binomial_cdf(3, 10, .5), 0.171875, 1e-13);
    assert_close(lab_stats_binomial_cdf(17, 40, .5), 0.214795253921694, 1e-12);
    assert_close(lab_stats_binomial_cdf(500, 1000, .5), 0.51261250908918, 1e-12);
    assert_close(lab_stats_binomial_cdf(3, 20, .1), 0.867046676565665, 1e-12);
}

/* GSL would end the process at any of these. */
LAB_TEST(impossible_arguments_give_no_number) {
    assert_nan(lab_stats_normal_quantile(-0.1));
    assert_nan(lab_stats_normal_quantile(NAN));
    assert_nan(lab_stats_normal_cdf(NAN));
    assert_true(isinf(lab_stats_normal_quantile(0)));
    assert_true(isinf(lab_stats_t_quantile(1, 5)));
    assert_nan(lab_stats_t_quantile(.5, 0));
    assert_nan(lab_stats_t_quantile(2, 5));
    assert_nan(lab_stats_t_quantile(-1, 5));
    assert_true(lab_stats_t_quantile(0, 5) < 0 && isinf(lab_stats_t_quantile(0, 5)));
    assert_true(lab_stats_normal_quantile(0) < 0 && lab_stats_normal_quantile(1) > 0);
    assert_nan(lab_stats_binomial_cdf(1, -1, .5));
    assert_nan(lab_stats_binomial_cdf(1, 5, 1.5));
    assert_close(lab_stats_binomial_cdf(-1, 5, .5), 0, 0);
    assert_close(lab_stats_binomial_cdf(5, 5, .5), 1, 0);
}

#define assert_interval(got, low_, high_, confidence_, relative)                                   \
    do {                                                                                           \
        struct lab_interval interval_ = (got);                                                     \
        assert_close(interval_.low, low_, relative);                                               \
        assert_close(interval_.high, high_, relative);                                             \
        assert_close(interval_.confidence, confidence_, 1e-12);                                    \
    } while (0)

LAB_TEST(median_intervals_are_those_of_r) {
    /* R: order statistics at qbinom(tail, n, 0.5), 1 - 2 pbinom(k - 1, n, 0.5) */
    size_t n = COUNT(newcomb);
    assert_interval(lab_stats_median_interval(newcomb, n, .95), 26, 29, 0.964417275547768, 0);
    assert_interval(lab_stats_median_interval(newcomb, n, .99), 25, 29, 0.990789510305445, 0);
    assert_interval(lab_stats_median_interval(tied, COUNT(tied), .95), 1, 3, 0.978515625, 0);
    assert_interval(lab_stats_median_interval(two, 2, .95), 2.7, 3.1, 0.5, 0);
    static double count[100001];
    for (size_t i = 0; i < COUNT(count); i++)
        count[i] = (double)(i + 1);
    assert_interval(lab_stats_median_interval(count, 1000, .95), 469, 532, 0.953708802639502, 0);
    assert_interval(lab_stats_median_interval(count, 100001, .99), 49593, 50409, 0.990131916437132,
                    0);
}

LAB_TEST(fewer_effective_values_widen_the_interval) {
    double count[1000];
    for (size_t i = 0; i < COUNT(count); i++)
        count[i] = (double)(i + 1);
    /* all 1000: ranks 469 and 532, as above */
    assert_interval(lab_stats_median_interval_sorted(count, 1000, 1000, .95), 469, 532,
                    0.953708802639502, 0);
    /* worth 10: R's ranks 2 and 9 of 10, at 2/11 and 9/11 of 1001, outwards */
    assert_interval(lab_stats_median_interval_sorted(count, 1000, 10.9, .95), 182, 819, 0.978515625,
                    0);
    /* worth 1: nothing is known; the confidence says so */
    assert_interval(lab_stats_median_interval_sorted(count, 1000, 1, .95), 500, 501, 0, 0);
    assert_nan(lab_stats_median_interval_sorted(count, 1000, NAN, .95).low);
}

LAB_TEST(mean_intervals_are_those_of_r) {
    /* R: t.test(x)$conf.int */
    size_t n = COUNT(newcomb);
    assert_interval(lab_stats_mean_interval(newcomb, n, .95), 23.5705906837739, 28.8536517404685,
                    .95, 1e-13);
    assert_interval(lab_stats_mean_interval(newcomb, n, .99), 22.7023099033581, 29.7219325208843,
                    .99, 1e-13);
    assert_interval(lab_stats_mean_interval(two, 2, .95), 0.358759052765062, 5.44124094723494, .95,
                    1e-12);
}

/* exp(mean ± 12.706 · s / √2) of the logarithms of 2 and 3; the mean's own low end is -3.9. */
LAB_TEST(no_end_of_positive_values_is_negative) {
    const double rates[] = {2, 3}, none[] = {2, 0};
    struct lab_interval interval = lab_stats_log_mean_interval(rates, 2, .95);
    assert_true(lab_stats_mean_interval(rates, 2, .95).low < 0);
    assert_interval(interval, 0.18635876781948305, 32.19596303519198, .95, 1e-9);
    assert_true(isnan(lab_stats_log_mean_interval(none, 2, .95).low));
    assert_true(isnan(lab_stats_log_mean_interval(rates, 1, .95).low));
}

LAB_TEST(too_little_gives_no_interval) {
    double one = 1;
    assert_nan(lab_stats_median_interval(NULL, 0, .95).low);
    assert_nan(lab_stats_median_interval(&one, 1, .95).high);
    assert_nan(lab_stats_mean_interval(NULL, 0, .95).low);
    assert_nan(lab_stats_mean_interval(&one, 1, .95).low);
    assert_nan(lab_stats_median_interval(with_nan, COUNT(with_nan), .95).low);
    assert_nan(lab_stats_mean_interval(with_nan, COUNT(with_nan), .95).confidence);
    assert_nan(lab_stats_median_interval(tied, COUNT(tied), 1).low);
    assert_nan(lab_stats_mean_interval(tied, COUNT(tied), 0).low);
}

LAB_TEST(constant_values_give_a_point) {
    assert_interval(lab_stats_mean_interval(constant, COUNT(constant), .95), 4, 4, .95, 0);
    struct lab_interval median = lab_stats_median_interval(constant, COUNT(constant), .95);
    assert_close(median.low, 4, 0);
    assert_close(median.high, 4, 0);
}

LAB_TEST(huge_values_work) {
    struct lab_interval mean = lab_stats_mean_interval(huge, COUNT(huge), .95);
    /* R: 1e300 * t.test(c(1, 2, 3, 5))$conf.int */
    assert_close(mean.low, 0.0324691162039848e300, 1e-11);
    assert_close(mean.high, 5.46753088379602e300, 1e-12);
    assert_close(lab_stats_median_interval(huge, COUNT(huge), .95).high, 5e300, 0);
}
