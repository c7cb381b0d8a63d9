/* Ranks, correlations and trends against R (tests/fixtures/stats/reference_compare.R). */
#include "base/mem.h"
#include "fixtures/stats/reference_compare.h"

static double v[12]; /* goes with a */
static const double tied3[] = {2, 3, 3, 4, 5, 5, 7, 1, 1, 9};

static struct lab_correlation spearman(const double *x, const double *y, size_t n) {
    double *ranks = lab_mem_alloc(2 * n + 1, sizeof *ranks);
    struct lab_correlation found = {NAN, NAN, {NAN, NAN, NAN}};
    if (lab_stats_ranks(x, n, ranks) && lab_stats_ranks(y, n, ranks + n))
        found = lab_stats_spearman_ranked(ranks, ranks + n, n, (double)n, .95);
    lab_mem_free(ranks);
    return found;
}

static void draw_related(void) {
    draw_a();
    draw_uniforms(v, COUNT(v), 77);
    for (size_t i = 0; i < COUNT(v); i++)
        v[i] = .5 * a[i] + 5 * v[i];
}

LAB_TEST(ranks_share_ties) {
    /* R: rank(tied) */
    const double wanted[] = {2, 2, 2, 4.5, 4.5, 7.5, 7.5, 7.5, 7.5, 10};
    double ranks[10] = {0}, last[] = {INFINITY, -INFINITY, 0};
    assert_true(lab_stats_ranks(tied, 10, ranks));
    for (size_t i = 0; i < 10; i++)
        assert_close(ranks[i], wanted[i], 0);
    assert_true(lab_stats_ranks(last, 3, ranks));
    assert_close(ranks[0], 3, 0);
    assert_close(ranks[1], 1, 0);
    assert_false(lab_stats_ranks(with_nan, 5, ranks));
    assert_close(ranks[0], 3, 0);
    assert_true(lab_stats_ranks(NULL, 0, NULL));
}

#define assert_correlation(got, r_, p_, relative)                                                  \
    do {                                                                                           \
        struct lab_correlation correlation_ = (got);                                               \
        assert_close(correlation_.r, r_, 1e-11);                                                   \
        assert_close(correlation_.p, p_, relative);                                                \
    } while (0)

LAB_TEST(pearson_is_that_of_r) {
    /* R: cor.test(x, y) */
    draw_related();
    struct lab_correlation found = lab_stats_pearson(a, v, 12, 12, .95);
    assert_correlation(found, 0.847279760963547, 0.000503342931683593, 1e-10);
    assert_interval(found.interval, 0.532128319723153, 0.956216236744649, .95, 1e-11);
    found = lab_stats_pearson(tied, tied3, 10, 10, .9);
    assert_correlation(found, 0.683672864062663, 0.0292695472068819, 1e-11);
    assert_interval(found.interval, 0.211061199991035, 0.897199943818643, .9, 1e-11);
    double x[] = {1, 2, 4}, y[] = {1, 5, 4};
    found = lab_stats_pearson(x, y, 3, 3, .95);
    assert_correlation(found, 0.576556660197055, 0.608792009968277, 1e-11);
    assert_nan(found.interval.low);
}

LAB_TEST(fewer_independent_pairs_say_less) {
    /* R: pt with 3.5 degrees, Fisher's z with 1/2.5 */
    draw_related();
    struct lab_correlation found = lab_stats_pearson(a, v, 12, 5.5, .95);
    assert_correlation(found, 0.847279760963547, 0.0480455627972326, 1e-10);
    assert_interval(found.interval, 0.00684067462743818, 0.986237389271087, .95, 1e-10);
    found = lab_stats_pearson(a, v, 12, 2, .95);
    assert_close(found.r, 0.847279760963547, 1e-11);
    assert_nan(found.p);
    assert_nan(lab_stats_pearson(a, v, 12, NAN, .95).p);
    /* more than there are is all of them */
    assert_close(lab_stats_pearson(a, v, 12, 99, .95).p, 0.000503342931683593, 1e-10);
}

LAB_TEST(spearman_is_that_of_r) {
    /* R: cor.test(x, y, method = "spearman", exact = FALSE, and TRUE up to 9) */
    draw_related();
    struct lab_correlation found = spearman(a, v, 12);
    assert_correlation(found, 0.839160839160839, 0.000642825988627823, 1e-10);
    assert_interval(found.interval, 0.428983467374803, 0.962440551541927, .95, 1e-11);
    assert_correlation(spearman(tied, tied3, 10), 0.365655170486763, 0.298768687220338, 1e-11);
    assert_correlation(spearman(a, v, 9), 0.883333333333333, 0.00307539682539683, 1e-12);
    double x[] = {1, 2, 3, 4, 5, 6}, y[] = {2, 1, 3, 6, 4, 5};
    assert_correlation(spearman(x, y, 6), 0.771428571428571, 0.102777777777778, 1e-12);
    /* R: over all orders of the tied ranks */
    double tied_x[] = {1, 1, 2, 3, 3, 9, 4}, tied_y[] = {2, 1, 2, 2, 5, 5, 7};
    assert_correlation(spearman(tied_x, tied_y, 7), 0.828909828188793, 0.0380952380952381, 1e-12);
}

LAB_TEST(straight_lines_are_certain) {
    double x[] = {1, 2, 3, 4, 5}, falls[] = {8, 6, 4, 2, 0};
    struct lab_correlation found = lab_stats_pearson(x, falls, 5, 5, .95);
    assert_close(found.r, -1, 1e-15);
    assert_true(found.p < 1e-20);
    assert_interval(found.interval, -1, -1, .95, 1e-12);
    double steps[] = {1, 2, 3, 4}, twice[] = {2, 4, 6, 8}; /* without any rounding */
    found = lab_stats_pearson(steps, twice, 4, 4, .95);
    assert_correlation(found, 1, 0, 0);
    assert_interval(found.interval, 1, 1, .95, 0);
    assert_correlation(spearman(x, falls, 5), -1, 2 / 120.0, 1e-12);
}

LAB_TEST(half_a_million_pairs) {
    draw_big();
    struct lab_correlation found = lab_stats_pearson(big_x, big_y, BIG, BIG, .95);
    assert_correlation(found, -0.00276910829143669, 0.0502236638228403, 1e-7);
    assert_close(found.interval.low, -0.00554087462838632, 1e-10);
    static double sum[BIG];
    for (size_t i = 0; i < BIG; i++)
        sum[i] = big_x[i] + 3 * big_y[i];
    assert_correlation(lab_stats_pearson(big_x, sum, BIG, BIG, .95), 0.313596062389183, 0, 0);
    assert_correlation(spearman(big_x, sum, BIG), 0.297252995905792, 0, 0);
}

LAB_TEST(nothing_to_correlate) {
    double x[] = {1, 2, 3, 4, 5}, endless[] = {1, 2, INFINITY, 4, 9};
    assert_nan(lab_stats_pearson(x, constant, 5, 5, .95).r);
    assert_nan(spearman(constant, x, 5).p);
    assert_nan(lab_stats_pearson(x, with_nan, 5, 5, .95).r);
    assert_nan(spearman(with_nan, x, 5).interval.low);
    assert_nan(lab_stats_pearson(x, endless, 5, 5, .95).r);
    assert_close(spearman(x, endless, 5).r, .7, 1e-12);
    assert_nan(lab_stats_pearson(NULL, NULL, 0, 0, .95).r);
    assert_nan(lab_stats_pearson(x, x, 1, 1, .95).r);
    assert_nan(lab_stats_pearson(x, x, 2, 2, .95).r);
    assert_nan(spearman(x, x, 2).r);
    assert_nan(spearman(NULL, NULL, 0).p);
    assert_nan(lab_stats_pearson(x, endless, 5, 5, 1).interval.low);
    const double apart[] = {1, 2, 3, 5};
    assert_close(lab_stats_pearson(huge, apart, 4, 4, .95).r, 1, 1e-14);
}

LAB_TEST(pairs_are_counted_by_both_series) {
    /* R: from acf */
    static double x[2000], y[2000];
    draw_ar1(x, 400, .9, 12345);
    draw_ar1(y, 400, .8, 777);
    assert_close(lab_stats_pair_effective_size(x, y, 400), 54.9260378345791, 1e-9);
    draw_ar1(y, 400, 0, 777);
    assert_close(lab_stats_pair_effective_size(x, y, 400), 397.983312090092, 1e-9);
    draw_ar1(x, 2000, .99, 9);
    draw_ar1(y, 2000, .99, 10);
    assert_close(lab_stats_pair_effective_size(x, y, 2000), 31.162135334922, 1e-8);
    assert_close(lab_stats_pair_effective_size(x, constant, 8), 8, 0);
    assert_close(lab_stats_pair_effective_size(x, y, 1), 1, 0);
    assert_nan(lab_stats_pair_effective_size(x, y, 0));
    assert_nan(lab_stats_pair_effective_size(x, with_nan, 5));
}

#define assert_trend(got, s_, p_)                                                                  \
    do {                                                                                           \
        struct lab_trend_test trend_ = (got);                                                      \
        assert_close(trend_.s, s_, 0);                                                             \
        assert_close(trend_.p, p_, 1e-11);                                                         \
    } while (0)

LAB_TEST(trends_are_kendalls_tau_with_time) {
    /* R: cor.test(seq_along(x), x, method = "kendall", continuity = TRUE) */
    draw_a();
    assert_trend(lab_stats_mann_kendall(a, 12), 2, 0.946559289154775);
    double x[45] = {1, 2, 3, 4, 5};
    assert_trend(lab_stats_mann_kendall(x, 5), 10, 0.0166666666666666);
    draw_ar1(x, 40, 0, 4);
    for (size_t i = 0; i < 40; i++)
        x[i] += (double)(i + 1) / 50;
    assert_trend(lab_stats_mann_kendall(x, 40), 270, 0.00144204175238527);
    draw_ar1(x, 45, 0, 4);
    assert_trend(lab_stats_mann_kendall(x, 45), 112, 0.277550895184403);
    assert_trend(lab_stats_mann_kendall(newcomb, COUNT(newcomb)), 150, 0.408335914894655);
}

LAB_TEST(trends_of_anything) {
    assert_trend(lab_stats_mann_kendall(constant, 8), 0, 1);
    assert_trend(lab_stats_mann_kendall(two, 2), -1, 1);
    assert_trend(lab_stats_mann_kendall(huge, 4), 6, 2 / 24.0);
    assert_nan(lab_stats_mann_kendall(huge, 1).p);
    assert_nan(lab_stats_mann_kendall(NULL, 0).s);
    assert_nan(lab_stats_mann_kendall(with_nan, 5).s);
    static double many[2 * BIG];
    for (size_t i = 0; i < COUNT(many); i++)
        many[i] = -(double)i;
    assert_close(lab_stats_mann_kendall(many, COUNT(many)).s, -499999500000, 0);
    assert_close(lab_stats_mann_kendall(many, COUNT(many)).p, 0, 0);
}
