/* Intervals by resampling blocks of values. */
#include "fixtures/stats/reference.h"
#include "stats/stats.h"

#define RESAMPLES 20000

#define assert_interval(got, low_, high_, relative)                                                \
    do {                                                                                           \
        struct lab_interval interval_ = (got);                                                     \
        assert_close(interval_.low, low_, relative);                                               \
        assert_close(interval_.high, high_, relative);                                             \
    } while (0)

LAB_TEST(constant_values_give_a_point) {
    assert_interval(
        lab_stats_block_interval(constant, COUNT(constant), lab_stats_mean, 0, .95, 100, 1), 4, 4,
        0);
}

LAB_TEST(too_little_gives_no_interval) {
    double one = 1;
    assert_nan(lab_stats_block_interval(NULL, 0, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(&one, 1, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(with_nan, 5, lab_stats_mean, 0, .95, 100, 1).low);
    assert_nan(lab_stats_block_interval(tied, COUNT(tied), lab_stats_mean, 0, 1.5, 100, 1).low);
}

/* A block of one value is the plain percentile bootstrap: for a mean, mean ± z·σ/√n. */
LAB_TEST(blocks_of_one_are_the_plain_bootstrap) {
    static double x[400];
    draw_ar1(x, 400, 0, 31);
    struct lab_interval block =
        lab_stats_block_interval(x, 400, lab_stats_mean, 1, .95, RESAMPLES / 4, 1);
    struct lab_interval t = lab_stats_mean_interval(x, 400, .95);
    assert_close(block.high - block.low, t.high - t.low, 0.03);
    assert_close((block.high + block.low) / 2, (t.high + t.low) / 2, 0.001);
}

/* Every block of n values is a rotation of the series: each resample has its very mean. */
LAB_TEST(one_block_of_all_keeps_the_mean) {
    double x[] = {1, 2, 4, 8};
    assert_interval(lab_stats_block_interval(x, 4, lab_stats_mean, 4, .95, 50, 1), 3.75, 3.75, 0);
    assert_interval(lab_stats_block_interval(x, 4, lab_stats_mean, 99, .95, 50, 1), 3.75, 3.75, 0);
}
