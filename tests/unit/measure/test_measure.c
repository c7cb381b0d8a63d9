/* The loop on one subject: when it stops, what it drops, what it notices, and its rates. */
#include "measure_fixture.h"

/* --- stopping ------------------------------------------------------------------------------ */

LAB_TEST(a_steady_subject_is_measured_until_precise) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_int_equal(m.stop, LAB_MEASURE_PRECISE);
    assert_true(m.precision > 0 && m.precision <= 0.01);
    assert_true(m.steady);
    assert_int_equal(m.warnings, 0);
    /* it was precise long before the half second that is asked for, and stopped soon after it */
    assert_true(m.wall_s >= 0.5 && m.wall_s < 0.7);
    assert_true(fabs(m.interval.median - 1e-3) < 1e-5);
    assert_true(fabs(m.latency.median - 1e-3) < 1e-5);
    assert_true(m.interval.median_interval.low <= m.interval.median);
    assert_true(m.interval.median_interval.high >= m.interval.median);
    assert_true(m.interval.median_interval.confidence >= 0.95);
    assert_true(m.interval.max <= 1.021e-3 && m.interval.min >= 0.979e-3);
    assert_string_equal(m.name, "fake");
}

LAB_TEST(all_iterations_are_kept_in_stretches) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_int_equal(m.warmup_iterations + (int64_t)m.count, fake.index);
    assert_int_equal(m.chunk_ends[m.chunk_count - 1], m.count);
    assert_int_equal(m.latency.n, m.count);
    assert_int_equal(m.interval.n, m.count - (size_t)m.chunk_count);
    double wall_s = 0;
    for (int s = 0, start = 0; s < m.chunk_count; start = m.chunk_ends[s++])
        wall_s +=
            (double)(m.iterations[m.chunk_ends[s] - 1].end_ns - m.iterations[start].start_ns) *
            1e-9;
    assert_true(fabs(m.wall_s - wall_s) < 1e-9);
    for (size_t i = 1; i < m.count; i++)
        assert_true(m.iterations[i].start_ns >= m.iterations[i - 1].end_ns);
    /* a tenth of a second each */
    assert_in_range(fake.longest, 60, 140);
}

LAB_TEST(noise_is_measured_until_the_limit) {
    struct fake fake = {.letter = 'a', .duration_ns = wild_1ms};
    struct lab_measure_plan plan = plan_by_hand();
    plan.precision = 1e-6;
    plan.limit_s = 3;
    int64_t start = now_ns;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.stop, LAB_MEASURE_LIMIT);
    assert_true(m.warnings & LAB_WARN_NOT_PRECISE);
    assert_true(m.precision > 1e-6);
    double total_s = (double)(now_ns - start) * 1e-9;
    assert_true(total_s > 2.9 && total_s < 3.1);
}

LAB_TEST(more_noise_takes_more_iterations) {
    struct fake quiet = {.letter = 'a', .duration_ns = steady_1ms};
    struct fake loud = {.letter = 'a', .duration_ns = wild_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &quiet);
    struct lab_measurement n = measure_one(plan_by_hand(), &loud);
    assert_int_equal(n.stop, LAB_MEASURE_PRECISE);
    assert_true(n.count > 4 * m.count);
    assert_true(n.precision <= 0.01);
}

LAB_TEST(a_count_is_kept_to_the_iteration) {
    struct fake fake = {.letter = 'a', .duration_ns = wild_1ms};
    struct lab_measure_plan plan = plan_by_hand();
    plan.iterations = 1237;
    plan.warmup_iterations = 45;
    plan.limit_s = 0.2; /* no limit for what was counted */
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.count, 1237);
    assert_int_equal(m.warmup_iterations, 45);
    assert_int_equal(fake.index, 1237 + 45);
    assert_int_equal(m.stop, LAB_MEASURE_COUNTED);
    assert_false(m.warnings & LAB_WARN_NOT_PRECISE);
}

LAB_TEST(a_duration_counts_from_the_end_of_the_warmup) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measure_plan plan = plan_by_hand();
    plan.duration_s = 2;
    plan.warmup_iterations = 5000; /* takes longer than the limit and the duration together */
    plan.limit_s = 1;
    plan.precision = 0.5; /* reached at once, and no reason to stop */
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.warmup_iterations, 5000);
    assert_true(m.wall_s > 1.99 && m.wall_s <= 2.01);
    assert_int_equal(m.stop, LAB_MEASURE_COUNTED);
    assert_int_equal(m.warnings, 0);
}

static int64_t steady_5s(int64_t index) {
    return noisy(5 * LAB_NS_PER_S, 0.02, index);
}

LAB_TEST(a_duration_shorter_than_an_iteration_measures_one) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_5s};
    struct lab_measure_plan plan = plan_by_hand();
    plan.duration_s = 2;
    plan.warmup_iterations = 1;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.stop, LAB_MEASURE_COUNTED);
}

LAB_TEST(one_iteration_can_be_counted) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measure_plan plan = plan_by_hand();
    plan.iterations = 1;
    plan.warmup_iterations = 0;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.interval.n, 0);
    assert_true(isnan(m.interval.median));
    assert_true(isnan(m.precision));
    assert_true(m.latency.median == m.first_s);
    assert_ptr_equal(lab_measure_primary(&m), &m.latency);
}

static int64_t steady_10s(int64_t index) {
    return noisy(10 * LAB_NS_PER_S, 0.02, index);
}

LAB_TEST(iterations_longer_than_the_limit_are_measured_once) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_10s};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_int_equal(m.warmup_iterations, 1);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.stop, LAB_MEASURE_LIMIT);
    assert_false(m.steady);
}

static int64_t steady_400ms(int64_t index) {
    return noisy(400 * MS, 0.005, index);
}

LAB_TEST(long_iterations_still_come_in_stretches) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_400ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    /* a tenth of the limit, 1.5 s, holds three: enough to overlap */
    assert_int_equal(fake.longest, 3);
    assert_true(m.interval.n > 0);
}

static int64_t steady_200ns(int64_t index) {
    return noisy(200, 0.05, index);
}

LAB_TEST(short_iterations_stay_within_memory) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_200ns};
    struct lab_measure_plan plan = plan_by_hand();
    plan.max_iterations = 30000; /* 6 ms of the half second that is asked for */
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.count, 30000);
    assert_int_equal(m.stop, LAB_MEASURE_PRECISE);
    assert_int_equal(m.warnings, LAB_WARN_SHORT);
    plan.precision = -1; /* never reached */
    m = measure_one(plan, &fake);
    assert_int_equal(m.count, 30000);
    assert_int_equal(m.stop, LAB_MEASURE_LIMIT);
}

static int64_t no_time(int64_t index) {
    (void)index;
    return 0;
}

LAB_TEST(a_clock_that_stands_still_ends_too) {
    struct fake fake = {.letter = 'a', .duration_ns = no_time};
    struct lab_measure_plan plan = plan_by_hand();
    plan.iterations = 500;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.count, 500);
    assert_true(m.interval.median == 0);
}

/* --- warm-up ------------------------------------------------------------------------------- */

static int64_t warming_1ms(int64_t index) {
    return noisy(MS, 0.02, index) + (int64_t)((double)(4 * MS) * exp(-(double)index / 30));
}

LAB_TEST(the_warmup_is_dropped) {
    struct fake fake = {.letter = 'a', .duration_ns = warming_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_true(m.steady);
    /* after 120 iterations it is down to 7 % above the rest, after 200 to 0.5 % */
    assert_in_range(m.warmup_iterations, 120, 1000);
    assert_true(m.warmup_s > 0.12);
    assert_true(fabs(m.first_s - 5e-3) < 5e-5);
    assert_true(fabs(m.latency.mean - 1e-3) < 2e-5);
    assert_true(m.latency.max < 1.1e-3);
}

/* Longer by 0.2 % each time: never steady. */
static int64_t drifting(int64_t index) {
    return noisy((int64_t)(MS * pow(1.002, (double)index)), 0.01, index);
}

LAB_TEST(what_never_settles_is_not_steady) {
    struct fake fake = {.letter = 'a', .duration_ns = drifting};
    struct lab_measure_plan plan = plan_by_hand();
    plan.limit_s = 6;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_false(m.steady);
    assert_true(m.warnings & LAB_WARN_NOT_STEADY);
    assert_true(m.warmup_s <= 2.2); /* a third of the limit, and no more */
    assert_true(m.count > 0);
}

static int64_t drifting_late(int64_t index) {
    return noisy(index < 300 ? MS : MS + (index - 300) * US / 2, 0.01, index);
}

LAB_TEST(drift_during_the_measurement_is_not_steady) {
    struct fake fake = {.letter = 'a', .duration_ns = drifting_late};
    struct lab_measure_plan plan = plan_by_hand();
    plan.min_time_s = 2;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_false(m.steady);
    assert_true(m.warmup_iterations <= 300); /* it looked steady then */
    LAB_AUTO(str, text);
    lab_measure_explain(&m, LAB_WARN_NOT_STEADY, &text);
    assert_contains(text.text, "% longer from the first half");
}

static int64_t steady_10us(int64_t index) {
    return noisy(10 * US, 0.02, index);
}

LAB_TEST(a_warmup_lasts_for_a_stretch_at_least) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_10us};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_true(m.warmup_s >= 0.1 && m.warmup_s < 0.5);
}

LAB_TEST(no_warmup_can_be_asked_for) {
    struct fake fake = {.letter = 'a', .duration_ns = warming_1ms};
    struct lab_measure_plan plan = plan_by_hand();
    plan.warmup_iterations = 0;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.warmup_iterations, 0);
    assert_true(m.warmup_s == 0);
    assert_true(m.latency.max == m.first_s);
    assert_true(m.warnings & LAB_WARN_SLOW_FIRST);
}

/* --- what is noticed ------------------------------------------------------------------------ */

/* Every fortieth iteration takes four times as long. */
static int64_t disturbed_1ms(int64_t index) {
    return (index % 40 == 39 ? 4 : 1) * noisy(MS, 0.02, index);
}

LAB_TEST(outliers_are_kept_and_told) {
    struct fake fake = {.letter = 'a', .duration_ns = disturbed_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_true(m.warnings & LAB_WARN_OUTLIERS);
    size_t severe = m.interval.outliers.high_severe;
    assert_true(severe * 45 > m.interval.n && severe * 35 < m.interval.n);
    assert_true(m.interval.max > 3.9e-3);
    assert_true(fabs(m.interval.median - 1e-3) < 1e-5);
}

static int64_t slow_first(int64_t index) {
    return index == 0 ? LAB_NS_PER_S : steady_1ms(index);
}

LAB_TEST(a_slow_first_iteration_is_dropped_and_told) {
    struct fake fake = {.letter = 'a', .duration_ns = slow_first};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_int_equal(m.warnings, LAB_WARN_SLOW_FIRST);
    assert_true(m.first_s == 1);
    assert_true(m.latency.max < 1.1e-3);
}

LAB_TEST(stages_are_summed_up) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms, .stage_ns = 100 * US};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    for (int s = 0; s < LAB_STAGE_COUNT; s++) {
        assert_int_equal(m.stages[s].n, m.count);
        assert_true(fabs(m.stages[s].median - 100e-6) < 1e-12);
    }
    assert_true(m.overlap == 0); /* one after the other */
    struct fake bare = {.letter = 'a', .duration_ns = steady_1ms};
    m = measure_one(plan_by_hand(), &bare);
    assert_int_equal(m.stages[LAB_STAGE_H2D].n, 0);
    assert_true(isnan(m.overlap));
}

/* --- the machine's own clock ---------------------------------------------------------------- */

static int spin(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    (void)state, (void)err;
    for (int i = 0; i < count; i++) {
        records[i].start_ns = lab_clock_now(lab_clock_system());
        do
            records[i].end_ns = lab_clock_now(lab_clock_system());
        while (records[i].end_ns < records[i].start_ns + 20 * US);
    }
    return 0;
}

LAB_TEST(real_time_works_and_conditions_are_read) {
    struct lab_subject subject = {"spin", spin, NULL};
    struct lab_measure_plan plan = LAB_MEASURE_PLAN;
    plan.limit_s = 0.3;
    plan.chunk_s = 0.02;
    struct lab_measurement m;
    ASSERT_OK(lab_measure(&plan, &subject, 1, &test_arena, &m, err));
    assert_true(m.count > 0);
    assert_true(lab_measure_primary(&m)->min >= 20e-6); /* stretches of one have no intervals */
    /* unknown or a share; never anything else */
    assert_false(m.conditions.foreign_cpu < 0 || m.conditions.foreign_cpu > 1);
    assert_false(m.conditions.steal < 0 || m.conditions.steal > 1);
    assert_false(m.conditions.load_before < 0);
    assert_false(m.simulated);
}

LAB_TEST(another_clock_leaves_conditions_unknown) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    assert_true(isnan(m.conditions.foreign_cpu) && isnan(m.conditions.load_before));
    assert_true(m.simulated);
}

/* --- rates --------------------------------------------------------------------------------- */

LAB_TEST(a_rate_has_the_interval_of_its_time) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct lab_measurement m = measure_one(plan_by_hand(), &fake);
    struct lab_work work = {.samples = 8, .flops = 1e6};
    struct lab_rates rates = lab_measure_rates(&m, &work);
    assert_true(fabs(rates.iterations_per_s - 1000) < 10);
    assert_true(fabs(rates.samples_per_s - 8 * rates.iterations_per_s) < 1e-6);
    assert_true(fabs(rates.flops_per_s - 1e6 * rates.iterations_per_s) < 1);
    assert_true(isnan(rates.copy_bytes_per_s));
    struct lab_interval interval = lab_measure_rate_interval(&m, rates.samples_per_s);
    assert_true(interval.low <= rates.samples_per_s && rates.samples_per_s <= interval.high);
    /* the longest time is the lowest rate */
    struct lab_interval time = m.interval.median_interval;
    assert_true(fabs(rates.samples_per_s / interval.low - time.high / m.interval.median) < 1e-9);
    assert_true(fabs(rates.samples_per_s / interval.high - time.low / m.interval.median) < 1e-9);
    assert_true(interval.confidence == time.confidence);
}

LAB_TEST(rates_of_nothing_are_unknown) {
    struct lab_measurement m = {0};
    struct lab_work work = {.samples = 8};
    assert_true(isnan(lab_measure_rates(&m, &work).samples_per_s));
    assert_true(isnan(lab_measure_rate_interval(&m, 1).low));
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
