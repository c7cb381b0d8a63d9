/*
 * Change points against an exhaustive search: once in R on the Nile's flow
 * (tests/fixtures/stats/reference_fit.R), and once here on random series, by dynamic programming
 * that drops nothing and takes each segment's cost from its own values.
 */
#include "base/random.h"
#include "fixtures/stats/reference.h"
#include "stats/changes.h"
#include "stats/stats.h"

#define MOST 20000

static double x[MOST];
static size_t starts[MOST / 2 + 1];
static size_t count;

/* the Nile's yearly flow at Aswan, 1871 to 1970; the first dam was begun in 1898 (R: Nile) */
static const double nile[] = {
    1120, 1160, 963, 1210, 1160, 1160, 813,  1230, 1370, 1140, 995,  935,  1110, 994,  1020,
    960,  1180, 799, 958,  1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774,  840,
    874,  694,  940, 833,  701,  916,  692,  1020, 1050, 969,  831,  726,  456,  824,  702,
    1120, 1100, 832, 764,  821,  768,  845,  864,  862,  698,  845,  744,  796,  1040, 759,
    781,  865,  845, 944,  984,  897,  822,  1010, 771,  676,  649,  846,  812,  742,  801,
    1040, 860,  874, 848,  890,  744,  749,  838,  1050, 918,  986,  797,  923,  975,  815,
    1020, 906,  901, 1170, 912,  746,  919,  718,  714,  740};

static double normal(uint64_t seed, uint64_t index) {
    return lab_stats_normal_quantile(lab_random_uniform(seed, index) + 0x1p-54);
}

static bool find(const double *values, size_t n, enum lab_changes_cost cost, double penalty,
                 size_t segment_min) {
    struct lab_changes_options options = {cost, penalty, segment_min};
    return lab_changes_find(values, n, &options, starts, &count);
}

#define assert_changes(...)                                                                        \
    do {                                                                                           \
        size_t wanted_[] = {__VA_ARGS__};                                                          \
        assert_int_equal(count, COUNT(wanted_));                                                   \
        for (size_t k_ = 0; k_ < count; k_++)                                                      \
            assert_int_equal(starts[k_], wanted_[k_]);                                             \
    } while (0)

LAB_TEST(the_nile_changes_as_r_says) {
    size_t n = COUNT(nile);
    assert_true(find(nile, n, LAB_CHANGES_MEAN, 3 * log(100), 2));
    assert_changes(28);
    assert_true(find(nile, n, LAB_CHANGES_MEAN, 5, 4));
    assert_changes(10, 19, 28, 83, 95);
    assert_true(find(nile, n, LAB_CHANGES_MEAN_VARIANCE, 3 * log(100), 5));
    assert_changes(28);
    assert_true(find(nile, n, LAB_CHANGES_MEAN_VARIANCE, 6, 5));
    assert_changes(21, 26, 47, 58, 83, 95);
    assert_true(find(nile, n, LAB_CHANGES_MEAN_VARIANCE, 0, 5));
    assert_int_equal(count, 0);
    /* values in other units, however large */
    double other[COUNT(nile)], scales[] = {1e-300, 1e300};
    for (size_t k = 0; k < COUNT(scales); k++) {
        for (size_t i = 0; i < n; i++)
            other[i] = (nile[i] - 900) * scales[k];
        assert_true(find(other, n, LAB_CHANGES_MEAN_VARIANCE, 6, 5));
        assert_changes(21, 26, 47, 58, 83, 95);
        assert_true(find(other, n, LAB_CHANGES_MEAN, 5, 4));
        assert_changes(10, 19, 28, 83, 95);
    }
}

static double least_step(size_t n) {
    double sorted[100], step = INFINITY;
    lab_stats_sort(x, n, sorted);
    for (size_t i = 1; i < n; i++)
        step = sorted[i] > sorted[i - 1] ? fmin(step, sorted[i] - sorted[i - 1]) : step;
    return step;
}

/* Cost of one segment as changes.h defines it, from its values alone. */
static double plain_cost(size_t begin, size_t end, enum lab_changes_cost cost, double variance) {
    double squares = 0, mean = lab_stats_mean(x + begin, end - begin);
    for (size_t i = begin; i < end; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    if (cost == LAB_CHANGES_MEAN)
        return squares / variance;
    double own = fmax(squares / (double)(end - begin), variance);
    return (double)(end - begin) * log(own) + squares / own;
}

static size_t exhaustive(size_t n, enum lab_changes_cost cost, double penalty, size_t least,
                         size_t *ret_starts) {
    double best[101] = {-penalty}, differences[100];
    size_t previous[101] = {0}, found = 0;
    for (size_t i = 0; i + 1 < n; i++)
        differences[i] = x[i + 1] - x[i];
    double sigma = lab_stats_mad(differences, n - 1, true) / sqrt(2), step = least_step(n);
    double variance = cost == LAB_CHANGES_MEAN ? sigma * sigma : step * step / 12;
    if (cost == LAB_CHANGES_MEAN && sigma == 0) { /* most neighbours are equal */
        for (size_t i = 0; i + 1 < n; i++)
            variance += differences[i] * differences[i] / 2 / (double)(n - 1);
    }
    for (size_t end = 1; end <= n; end++) {
        best[end] = INFINITY;
        for (size_t begin = 0; begin + least <= end; begin++) {
            double sum = best[begin] + plain_cost(begin, end, cost, variance) + penalty;
            if (sum < best[end]) {
                best[end] = sum;
                previous[end] = begin;
            }
        }
    }
    for (size_t at = previous[n]; at > 0; at = previous[at])
        found++;
    size_t k = found;
    for (size_t at = previous[n]; at > 0; at = previous[at])
        ret_starts[--k] = at;
    return found;
}

LAB_TEST(nothing_that_was_dropped_was_the_best) {
    size_t wanted[101], changes = 0;
    for (uint64_t trial = 0; trial < 120; trial++) {
        size_t n = 40 + trial % 41, least = 2 + trial % 7;
        double level = 0, spread = 1;
        for (size_t i = 0; i < n; i++) {
            if (lab_random_below(trial, 5000 + i, 15) == 0) {
                level = 4 * lab_random_uniform(trial, 6000 + i);
                spread = 0.3 + 2 * lab_random_uniform(trial, 7000 + i);
            }
            x[i] = level + spread * normal(trial, i);
            if (trial % 3 == 0) /* a clock of coarse ticks */
                x[i] = round(x[i] * 4) / 4;
            if (trial % 6 == 1) /* few values, and most as the one before */
                x[i] = i && lab_random_below(trial, 8000 + i, 3) ? x[i - 1] : round(x[i]);
        }
        for (int cost = LAB_CHANGES_MEAN; cost <= LAB_CHANGES_MEAN_VARIANCE; cost++) {
            double penalty = 4 + 3 * (double)(trial % 5);
            size_t found = exhaustive(n, cost, penalty, least, wanted);
            assert_true(find(x, n, cost, penalty, least));
            assert_int_equal(count, found);
            for (size_t k = 0; k < found; k++)
                assert_int_equal(starts[k], wanted[k]);
            changes += found;
        }
    }
    assert_true(changes > 300);
}

LAB_TEST(steady_noise_has_no_changes) {
    int alarms = 0;
    for (uint64_t trial = 0; trial < 150; trial++) {
        for (size_t i = 0; i < 200; i++)
            x[i] = 10 + normal(trial + 900, i);
        assert_true(find(x, 200, LAB_CHANGES_MEAN, 0, 0));
        alarms += count > 0;
        assert_true(find(x, 200, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
        alarms += count > 0;
    }
    assert_true(alarms <= 1);
}

LAB_TEST(a_step_of_two_sigma_is_found) {
    int found = 0, near = 0;
    for (uint64_t trial = 0; trial < 150; trial++) {
        for (size_t i = 0; i < 200; i++)
            x[i] = (i < 80 ? 12 : 10) + normal(trial + 1300, i);
        assert_true(find(x, 200, LAB_CHANGES_MEAN, 0, 0));
        found += count == 1;
        near += count == 1 && starts[0] >= 77 && starts[0] <= 83;
    }
    assert_true(found >= 148);
    assert_true(near >= 138);
}

LAB_TEST(spread_alone_is_a_change_of_both) {
    for (size_t i = 0; i < 400; i++)
        x[i] = 10 + (i < 150 ? 4 : 1) * normal(5, i);
    assert_true(find(x, 400, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 1);
    assert_true(starts[0] > 140 && starts[0] < 160);
}

LAB_TEST(long_series_are_searched_on_a_grid_and_refined) {
    for (size_t i = 0; i < MOST; i++)
        x[i] = (i < 3333 ? 30 : i < 15002 ? 10 : 18) + 0.5 * normal(77, i);
    x[0] = 1e7; /* a first iteration that loads everything costs the rest no digits */
    assert_true(find(x, MOST, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_true(count >= 2);
    assert_int_equal(starts[count - 2], 3333);
    assert_int_equal(starts[count - 1], 15002);
    x[0] = 30;
    assert_true(find(x, MOST, LAB_CHANGES_MEAN, 0, 0));
    assert_changes(3333, 15002);
    /* many, none of them on the grid, some of them near each other */
    static const size_t places[] = {1001, 1063, 4999, 5061, 9007, 12345, 19941};
    for (size_t i = 0, k = 0; i < MOST; i++) {
        k += k < COUNT(places) && i == places[k];
        x[i] = (k % 2 ? 3 : 0) + 0.5 * (normal(78, i) > 0 ? 1 : -1);
    }
    for (int cost = LAB_CHANGES_MEAN; cost <= LAB_CHANGES_MEAN_VARIANCE; cost++) {
        assert_true(find(x, MOST, cost, 0, 0));
        assert_changes(1001, 1063, 4999, 5061, 9007, 12345, 19941);
    }
}

LAB_TEST(little_constant_and_unusable_series) {
    assert_false(find(x, 0, LAB_CHANGES_MEAN, 0, 0));
    assert_false(find(with_nan, COUNT(with_nan), LAB_CHANGES_MEAN, 0, 0));
    assert_true(find(two, 1, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 0);
    assert_true(find(two, 2, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 0);
    assert_true(find(constant, COUNT(constant), LAB_CHANGES_MEAN, 0, 0));
    assert_int_equal(count, 0);
    assert_true(find(constant, COUNT(constant), LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 0);
    assert_true(find(tied, COUNT(tied), LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 0);
    assert_true(find(huge, COUNT(huge), LAB_CHANGES_MEAN, 0, 0));
    assert_int_equal(count, 0);
    /* all neighbours tied but two */
    for (size_t i = 0; i < 100; i++)
        x[i] = i < 40 ? 7 : 8;
    for (int cost = LAB_CHANGES_MEAN; cost <= LAB_CHANGES_MEAN_VARIANCE; cost++) {
        assert_true(find(x, 100, cost, 0, 0));
        assert_changes(40);
    }
    /* coarse ticks: runs of equal values are no segments of their own */
    for (size_t i = 0; i < 300; i++)
        x[i] = round(10 + normal(3, i));
    assert_true(find(x, 300, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    assert_int_equal(count, 0);
}

/* Segments of given lengths and means, with noise of 0.5 %. */
static struct lab_steadiness classify(const double *means, const size_t *lengths, size_t segments) {
    size_t n = 0;
    for (size_t s = 0; s < segments; s++) {
        for (size_t i = 0; i < lengths[s]; i++, n++)
            x[n] = means[s] * (1 + 0.005 * normal(31, n));
    }
    assert_true(find(x, n, LAB_CHANGES_MEAN_VARIANCE, 0, 0));
    return lab_changes_classify(x, n, starts, count);
}

LAB_TEST(series_are_put_into_classes) {
    struct lab_steadiness flat = classify((double[]){2}, (size_t[]){400}, 1);
    assert_int_equal(flat.steady, LAB_STEADY_FLAT);
    assert_int_equal(flat.from, 0);
    assert_close(flat.mean, 2, 1e-3);

    struct lab_steadiness warm = classify((double[]){5, 3, 2}, (size_t[]){30, 70, 300}, 3);
    assert_int_equal(warm.steady, LAB_STEADY_WARMUP);
    assert_int_equal(warm.from, 100);

    struct lab_steadiness slow = classify((double[]){5, 2, 3}, (size_t[]){30, 70, 300}, 3);
    assert_int_equal(slow.steady, LAB_STEADY_SLOWDOWN);
    assert_int_equal(slow.from, 100);

    struct lab_steadiness none = classify((double[]){2, 3}, (size_t[]){350, 50}, 2);
    assert_int_equal(none.steady, LAB_STEADY_NONE);
    assert_int_equal(none.from, 400);
}

LAB_TEST(segments_alike_belong_together) {
    /* means 1, 1.0005, 1: within 0.001 of the last, though cut */
    for (size_t i = 0; i < 90; i++)
        x[i] = i >= 30 && i < 60 ? 1.0005 : 1;
    struct lab_steadiness flat = lab_changes_classify(x, 90, (size_t[]){30, 60}, 2);
    assert_int_equal(flat.steady, LAB_STEADY_FLAT);
    assert_int_equal(flat.from, 0);
    assert_close(flat.tolerance, 0.001, 1e-12);
    /* a wide last segment: its variance, 0.04, counts */
    for (size_t i = 0; i < 90; i++)
        x[i] = i < 30 ? 1.03 : i % 2 ? 1.2 : 0.8;
    struct lab_steadiness wide = lab_changes_classify(x, 90, (size_t[]){30}, 1);
    assert_int_equal(wide.steady, LAB_STEADY_FLAT);
    assert_close(wide.tolerance, 0.04 * 60 / 59, 1e-12);

    /* of two values, the last segment's spread counts as well */
    struct lab_steadiness pair = lab_changes_classify((double[]){1, 1, 1, 3}, 4, (size_t[]){2}, 1);
    assert_close(pair.tolerance, 1, 1e-12);
    assert_int_equal(pair.steady, LAB_STEADY_FLAT);

    assert_int_equal(lab_changes_classify(with_nan, COUNT(with_nan), NULL, 0).steady,
                     LAB_STEADY_UNKNOWN);
    assert_int_equal(lab_changes_classify(NULL, 0, NULL, 0).steady, LAB_STEADY_UNKNOWN);
    assert_int_equal(lab_changes_classify(constant, COUNT(constant), NULL, 0).steady,
                     LAB_STEADY_FLAT);
    assert_int_equal(lab_changes_classify(two, 1, NULL, 0).steady, LAB_STEADY_FLAT);
}
