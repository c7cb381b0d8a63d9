/* Location, spread and order against R (tests/fixtures/stats/reference.R). */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#include <stdlib.h>
#include <string.h>

static const double levels[] = {0, .1, .25, .5, .75, .9, .99, 1};

struct expected { /* R: mean(), sd(), quantile(type = 7), mad(constant = 1), mad() */
    const double *x;
    size_t n;
    double mean, stddev, quantiles[COUNT(levels)], mad, mad_scaled;
};

static const struct expected from_r[] = {
    {newcomb,
     COUNT(newcomb),
     26.2121212121212,
     10.7453247815971,
     {-44, 21, 24, 27, 30.75, 35, 39.35, 40},
     3,
     4.4478},
    {tied, COUNT(tied), 2.9, 2.64365067451978, {1, 1, 1.25, 2.5, 3, 3.7, 9.37, 10}, 0.5, 0.7413},
    {huge,
     COUNT(huge),
     2.75e300,
     1.70782512765993e300,
     {1e300, 1.3e300, 1.75e300, 2.5e300, 3.5e300, 4.4e300, 4.94e300, 5e300},
     1e300,
     1.4826e300},
    {two,
     COUNT(two),
     2.9,
     0.282842712474619,
     {2.7, 2.74, 2.8, 2.9, 3, 3.06, 3.096, 3.1},
     0.2,
     0.29652},
};

LAB_TEST(figures_are_those_of_r) {
    for (size_t i = 0; i < COUNT(from_r); i++) {
        const struct expected *e = &from_r[i];
        assert_close(lab_stats_mean(e->x, e->n), e->mean, 1e-14);
        assert_close(lab_stats_stddev(e->x, e->n), e->stddev, 1e-14);
        assert_close(lab_stats_mad(e->x, e->n, false), e->mad, 1e-14);
        assert_close(lab_stats_mad(e->x, e->n, true), e->mad_scaled, 1e-14);
        assert_close(lab_stats_median(e->x, e->n), e->quantiles[3], 1e-14);
        assert_close(lab_stats_min(e->x, e->n), e->quantiles[0], 0);
        assert_close(lab_stats_max(e->x, e->n), e->quantiles[COUNT(levels) - 1], 0);
        double sorted[COUNT(newcomb)];
        assert_true(lab_stats_sort(e->x, e->n, sorted));
        for (size_t q = 0; q < COUNT(levels); q++) {
            assert_close(lab_stats_quantile(e->x, e->n, levels[q]), e->quantiles[q], 1e-14);
            assert_close(lab_stats_quantile_sorted(sorted, e->n, levels[q]), e->quantiles[q],
                         1e-14);
        }
    }
    /* R: sqrt(mean((x - mean(x))^2)) */
    assert_close(lab_stats_stddev_population(newcomb, COUNT(newcomb)), 10.6636100992555, 1e-14);
}

LAB_TEST(one_value_has_a_place_but_no_spread) {
    double x = 7;
    assert_close(lab_stats_mean(&x, 1), 7, 0);
    assert_close(lab_stats_median(&x, 1), 7, 0);
    assert_close(lab_stats_quantile(&x, 1, 0.99), 7, 0);
    assert_close(lab_stats_mad(&x, 1, true), 0, 0);
    assert_close(lab_stats_stddev_population(&x, 1), 0, 0);
    assert_nan(lab_stats_stddev(&x, 1));
}

LAB_TEST(extremes_may_be_anywhere) {
    for (size_t at = 0; at < 3; at++) {
        double x[] = {0, 0, 0};
        x[at] = 1;
        assert_close(lab_stats_max(x, 3), 1, 0);
        x[at] = -1;
        assert_close(lab_stats_min(x, 3), -1, 0);
        x[at] = NAN;
        assert_nan(lab_stats_mean(x, 3));
        assert_nan(lab_stats_median(x, 3));
    }
}

LAB_TEST(nothing_gives_nothing) {
    assert_nan(lab_stats_mean(NULL, 0));
    assert_nan(lab_stats_stddev(NULL, 0));
    assert_nan(lab_stats_stddev_population(NULL, 0));
    assert_nan(lab_stats_min(NULL, 0));
    assert_nan(lab_stats_max(NULL, 0));
    assert_nan(lab_stats_median(NULL, 0));
    assert_nan(lab_stats_mad(NULL, 0, true));
    assert_nan(lab_stats_quantile_sorted(NULL, 0, 0.5));
    assert_true(lab_stats_sort(NULL, 0, NULL));
}

LAB_TEST(a_nan_spoils_all) {
    size_t n = COUNT(with_nan);
    double sorted[COUNT(with_nan)];
    assert_nan(lab_stats_mean(with_nan, n));
    assert_nan(lab_stats_stddev(with_nan, n));
    assert_nan(lab_stats_min(with_nan, n));
    assert_nan(lab_stats_max(with_nan, n));
    assert_nan(lab_stats_median(with_nan, n));
    assert_nan(lab_stats_mad(with_nan, n, false));
    assert_false(lab_stats_sort(with_nan, n, sorted));
    assert_nan(lab_stats_quantile(tied, COUNT(tied), NAN));
    assert_nan(lab_stats_quantile(tied, COUNT(tied), 1.01));
    assert_nan(lab_stats_quantile(tied, COUNT(tied), -0.01));
}

LAB_TEST(constant_values_have_no_spread) {
    size_t n = COUNT(constant);
    assert_close(lab_stats_stddev(constant, n), 0, 0);
    assert_close(lab_stats_mad(constant, n, true), 0, 0);
    assert_close(lab_stats_quantile(constant, n, 0.3), 4, 0);
    /* 0.1 isn't exact in binary: its mean must still be itself, its deviation nothing */
    double tenths[1000];
    for (size_t i = 0; i < COUNT(tenths); i++)
        tenths[i] = 0.1;
    assert_close(lab_stats_mean(tenths, COUNT(tenths)), 0.1, 0);
    assert_close(lab_stats_stddev(tenths, COUNT(tenths)), 0, 0);
}

LAB_TEST(small_terms_survive_large_ones) {
    /* a plain sum gives 0 */
    double x[] = {1e16, 1, 1, -1e16};
    assert_close(lab_stats_mean(x, COUNT(x)), 0.5, 0);
}

LAB_TEST(the_largest_doubles_do_not_overflow) {
    double x[] = {1.7e308, 1.7e308, 1.5e308, 1.5e308};
    assert_close(lab_stats_mean(x, COUNT(x)), 1.6e308, 1e-15);
    assert_close(lab_stats_median(x, COUNT(x)), 1.6e308, 1e-15);
    assert_close(lab_stats_stddev_population(x, COUNT(x)), 1e307, 1e-14);
    double infinite[] = {1, INFINITY};
    assert_true(isinf(lab_stats_mean(infinite, 2)));
}

static int by_value(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Selection against a plain sort, in every shape that troubles partitioning. */
LAB_TEST(quantiles_agree_with_sorting) {
    enum { MOST = 700 };
    static double x[MOST], sorted[MOST];
    for (size_t n = 1; n <= MOST; n += n < 20 ? 1 : 61) {
        for (int shape = 0; shape < 5; shape++) {
            draw_uniforms(x, n, 1000 * n + (size_t)shape + 1);
            for (size_t i = 0; i < n; i++) {
                double in_shape[] = {x[i], floor(4 * x[i]), (double)i, (double)(n - i),
                                     (double)(i < n / 2 ? i : n - i)};
                x[i] = in_shape[shape];
            }
            memcpy(sorted, x, sizeof sorted);
            qsort(sorted, n, sizeof *sorted, by_value);
            for (double q = 0; q <= 1; q += 0.125) {
                double h = (double)(n - 1) * q;
                size_t low = (size_t)floor(h), high = (size_t)ceil(h);
                double wanted = sorted[low] + (h - floor(h)) * (sorted[high] - sorted[low]);
                assert_close(lab_stats_quantile(x, n, q), wanted, 1e-13);
            }
        }
    }
}

LAB_TEST(inputs_stay_as_they_were) {
    double copy[COUNT(newcomb)];
    memcpy(copy, newcomb, sizeof copy);
    lab_stats_median(copy, COUNT(copy));
    lab_stats_mad(copy, COUNT(copy), true);
    lab_stats_median_interval(copy, COUNT(copy), 0.95);
    lab_stats_tukey(copy, COUNT(copy), NULL);
    assert_memory_equal(copy, newcomb, sizeof copy);
}
