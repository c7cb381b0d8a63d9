/* From records to figures: series, overlap, summaries, drift. */
#include "base/random.h"
#include "measure/measure_internal.h"

#include "test.h"
#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define assert_close(value, expected)                                                              \
    assert_near(value, expected, 1e-12 * fmax(1, fabs((double)(expected))))

LAB_TEST(intervals_never_cross_a_stretch) {
    /* two stretches of three and two iterations, and one alone */
    struct lab_iteration records[] = {{0, 10},    {5, 18},    {12, 30},
                                      {100, 109}, {105, 120}, {500, 507}};
    int ends[] = {3, 5, 6};
    double x[6];
    assert_int_equal(lab_measure_latencies(records, 6, x), 6);
    assert_close(x[2] * 1e9, 18);
    assert_int_equal(lab_measure_intervals(records, ends, 3, x), 3);
    assert_close(x[0] * 1e9, 8);
    assert_close(x[1] * 1e9, 12);
    assert_close(x[2] * 1e9, 11);
}

/* Long iterations come in stretches of two, and the limit may cut the last one to a single
 * iteration; that must not make a pipeline's latency its time per iteration. */
LAB_TEST(a_stretch_cut_by_the_limit_changes_no_series) {
    struct lab_measurement m = {.count = 16, .latency.n = 16, .interval.n = 8};
    assert_ptr_equal(lab_measure_primary(&m), &m.interval);
    m.count = m.latency.n = 17;
    assert_ptr_equal(lab_measure_primary(&m), &m.interval);
    m.count = m.latency.n = 3; /* a stretch of two and one of one */
    m.interval.n = 1;
    assert_ptr_equal(lab_measure_primary(&m), &m.interval);
    m.count = m.latency.n = 5; /* hardly any intervals, and none */
    assert_ptr_equal(lab_measure_primary(&m), &m.latency);
    m.interval.n = 0;
    assert_ptr_equal(lab_measure_primary(&m), &m.latency);
}

LAB_TEST(stages_that_do_not_exist_are_left_out) {
    struct lab_iteration records[2] = {
        {.stages = {[LAB_STAGE_H2D] = {10, 30}, [LAB_STAGE_COMPUTE] = {30, 35}}},
        {.stages = {[LAB_STAGE_COMPUTE] = {40, 47}}}};
    double x[2];
    assert_int_equal(lab_measure_stages(records, 2, LAB_STAGE_H2D, x), 1);
    assert_close(x[0] * 1e9, 20);
    assert_int_equal(lab_measure_stages(records, 2, LAB_STAGE_COMPUTE, x), 2);
    assert_close(x[1] * 1e9, 7);
    assert_int_equal(lab_measure_stages(records, 2, LAB_STAGE_D2H, x), 0);
}

static struct lab_iteration staged(int64_t h2d, int64_t compute, int64_t d2h, int64_t length) {
    return (struct lab_iteration){
        .start_ns = h2d,
        .end_ns = d2h + length,
        .stages = {{h2d, h2d + length}, {compute, compute + length}, {d2h, d2h + length}}};
}

LAB_TEST(stages_one_after_another_do_not_overlap) {
    struct lab_iteration records[] = {staged(1, 11, 21, 10), staged(31, 41, 51, 10)};
    assert_close(lab_measure_overlap(records, 2), 0);
}

LAB_TEST(a_full_pipeline_overlaps_but_for_its_ends) {
    /* each stage of ten, a new iteration every ten: only the first H2D and the last D2H are bare */
    struct lab_iteration records[10];
    for (int i = 0; i < 10; i++)
        records[i] = staged(10 * i + 1, 10 * i + 11, 10 * i + 21, 10);
    /* H2D 1 to 9 lie under compute 0 to 8; D2H 0 to 8 under compute 1 to 9 */
    assert_close(lab_measure_overlap(records, 10), 18.0 / 20);
}

LAB_TEST(computes_that_overlap_count_once) {
    struct lab_iteration records[3] = {
        {.stages = {[LAB_STAGE_H2D] = {100, 200}, [LAB_STAGE_COMPUTE] = {90, 140}}},
        {.stages = {[LAB_STAGE_COMPUTE] = {120, 150}}},
        {.stages = {[LAB_STAGE_COMPUTE] = {180, 900}}}};
    assert_close(lab_measure_overlap(records, 3), 0.7);
}

LAB_TEST(copies_are_swept_in_any_order) {
    /* a long copy before a short one that ends earlier, computes between */
    struct lab_iteration records[3] = {
        {.stages = {[LAB_STAGE_H2D] = {50, 60}, [LAB_STAGE_COMPUTE] = {70, 80}}},
        {.stages = {[LAB_STAGE_H2D] = {10, 90}, [LAB_STAGE_COMPUTE] = {20, 30}}},
        {.stages = {[LAB_STAGE_D2H] = {25, 75}, [LAB_STAGE_COMPUTE] = {55, 58}}}};
    /* under: 3 of 10, 23 of 80, 5 + 3 + 5 of 50 */
    assert_close(lab_measure_overlap(records, 3), (3.0 + 23 + 13) / 140);
}

LAB_TEST(overlap_needs_copies_and_compute) {
    struct lab_iteration compute_only = {.stages = {[LAB_STAGE_COMPUTE] = {10, 20}}};
    struct lab_iteration copy_only = {.stages = {[LAB_STAGE_H2D] = {10, 20}}};
    assert_true(isnan(lab_measure_overlap(&compute_only, 1)));
    assert_true(isnan(lab_measure_overlap(&copy_only, 1)));
    assert_true(isnan(lab_measure_overlap(NULL, 0)));
}

LAB_TEST(a_summary_holds_every_figure) {
    double x[101];
    for (int i = 0; i <= 100; i++)
        x[i] = (double)((i * 37) % 101); /* 0 to 100, out of order */
    struct lab_summary s = lab_summarize(x, 101, 0.95);
    assert_int_equal(s.n, 101);
    assert_close(s.mean, 50);
    assert_close(s.median, 50);
    assert_close(s.stddev, sqrt(858.5));
    assert_close(s.cv, sqrt(858.5) / 50);
    assert_close(s.mad, 1.4826 * 25);
    assert_close(s.min, 0);
    assert_close(s.max, 100);
    assert_close(s.q25, 25);
    assert_close(s.q75, 75);
    assert_close(s.p90, 90);
    assert_close(s.p95, 95);
    assert_close(s.p99, 99);
    struct lab_interval ranks = lab_stats_median_interval(x, 101, 0.95);
    assert_close(s.median_interval.low, ranks.low);
    assert_close(s.median_interval.high, ranks.high);
    assert_true(s.effective_n > 1 && s.effective_n <= 101);
    assert_int_equal(s.outliers.high_severe + s.outliers.low_severe, 0);
}

LAB_TEST(a_summary_of_nothing_is_nothing) {
    struct lab_summary s = lab_summarize(NULL, 0, 0.95);
    assert_int_equal(s.n, 0);
    assert_true(isnan(s.mean) && isnan(s.median) && isnan(s.p99) && isnan(s.median_interval.low));
    double broken[] = {1, NAN, 2};
    s = lab_summarize(broken, 3, 0.95);
    assert_int_equal(s.n, 3);
    assert_true(isnan(s.mean) && isnan(s.max) && isnan(s.effective_n));
    double one = 5;
    s = lab_summarize(&one, 1, 0.95);
    assert_close(s.median, 5);
    assert_true(isnan(s.stddev) && isnan(s.median_interval.low));
}

/* x_t = 0.8 x_{t−1} + u around 10 */
static void draw_dependent(double *x, size_t n) {
    double last = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = 10 + (last = 0.8 * last + lab_random_uniform(5, i) - 0.5);
}

LAB_TEST(dependence_widens_the_interval) {
    static double x[8000];
    draw_dependent(x, COUNT(x));
    size_t sizes[] = {200, 1000, 8000};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct lab_summary s = lab_summarize(x, sizes[i], 0.95);
        struct lab_interval naive = lab_stats_median_interval(x, sizes[i], 0.95);
        assert_true(s.effective_n < 0.3 * (double)sizes[i]);
        assert_true(s.median_interval.high - s.median_interval.low >
                    1.5 * (naive.high - naive.low));
    }
}

LAB_TEST(relative_width_of_an_interval) {
    assert_close(lab_measure_relative_width((struct lab_interval){9, 11, .95}, 10), 0.1);
    assert_close(lab_measure_relative_width((struct lab_interval){0, 0, .95}, 0), 0);
    assert_true(isnan(lab_measure_relative_width((struct lab_interval){NAN, NAN, NAN}, 10)));
}

LAB_TEST(drift_is_told_from_noise) {
    double x[400];
    for (size_t i = 0; i < 400; i++)
        x[i] = 1 + 0.2 * (double)i / 400 + 0.02 * lab_random_uniform(3, i);
    assert_true(lab_measure_drift(x, 400) > 0.08); /* from 1.05 to 1.15, about */
    for (size_t i = 0; i < 400; i++)
        x[i] = 1.2 - 0.2 * (double)i / 400 + 0.02 * lab_random_uniform(3, i);
    assert_true(lab_measure_drift(x, 400) < -0.08);
    for (size_t i = 0; i < 400; i++) /* significant, but too small to matter */
        x[i] = 1 + 0.02 * (double)i / 400;
    assert_true(lab_measure_drift(x, 400) == 0);
    for (size_t i = 0; i < 400; i++) /* large, but only noise */
        x[i] = exp(2 * lab_random_uniform(3, i));
    assert_true(lab_measure_drift(x, 400) == 0);
    x[0] = 1, x[1] = 2; /* too few to tell */
    assert_true(lab_measure_drift(x, 2) == 0);
}
