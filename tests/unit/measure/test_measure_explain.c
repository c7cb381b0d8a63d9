/* Which warnings a measurement gets, and the sentences a person reads. */
#include "measure/measure_internal.h"

#include "test.h"
#include <math.h>

/* 120 quiet iterations of 10 ms, by latency. */
static struct lab_measurement quiet(void) {
    struct lab_measurement m = {
        .count = 120,
        .warmup_iterations = 30,
        .warmup_s = 0.3,
        .first_s = 0.011,
        .steady = true,
        .stop = LAB_MEASURE_PRECISE,
        .precision = 0.004,
        .latency = {.n = 120, .median = 0.010, .min = 0.0098, .max = 0.0103},
        .conditions = {.load_before = 0.1, .foreign_cpu = 0.01, .steal = 0, .pressure_cpu = NAN},
    };
    return m;
}

static void assert_explained(struct lab_measurement m, enum lab_measure_warning warning,
                             const char *wanted) {
    m.warnings = lab_measure_warn(&m);
    assert_int_equal(m.warnings, warning);
    struct lab_str text;
    lab_str_init(&text);
    lab_measure_explain(&m, warning, &text);
    assert_string_equal(text.text, wanted);
    lab_str_release(&text);
}

LAB_TEST(a_quiet_measurement_has_no_warnings) {
    struct lab_measurement m = quiet();
    assert_int_equal(lab_measure_warn(&m), 0);
    LAB_AUTO(str, text);
    for (unsigned w = 1; w <= LAB_WARN_CLOCK; w *= 2)
        lab_measure_explain(&m, (enum lab_measure_warning)w, &text);
    assert_string_equal(text.text, "");
}

LAB_TEST(a_clock_that_moves) {
    struct lab_measurement m = quiet();
    m.clock_min_mhz = 1900;
    m.clock_max_mhz = 1980;
    assert_int_equal(lab_measure_warn(&m), 0);
    m.clock_min_mhz = 1500;
    assert_explained(m, LAB_WARN_CLOCK,
                     "the device's clock varied from 1500 to 1980 MHz during the run; lock the "
                     "clock, or let the device cool");
    m.clock_min_mhz = m.clock_max_mhz = NAN;
    assert_int_equal(lab_measure_warn(&m), 0);
}

LAB_TEST(outliers) {
    struct lab_measurement m = quiet();
    m.latency.outliers.high_severe = 3;
    m.latency.max = 0.041;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 3 of 120 measured times (2.5%), the longest 4.1 × the "
                     "median: something else ran; try again on a quiet machine");
    m.latency.outliers = (struct lab_outlier_count){.low_severe = 2};
    m.latency.max = 0.0101;
    m.latency.min = 0.005;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 2 of 120 measured times (1.7%), the shortest 0.50 × the "
                     "median: something else ran; try again on a quiet machine");
    m.latency.outliers.high_severe = 1; /* on both sides: the farther one is named */
    m.latency.max = 0.0114;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 3 of 120 measured times (2.5%), the shortest 0.50 × the "
                     "median: something else ran; try again on a quiet machine");
    m.latency.max = 0.03;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 3 of 120 measured times (2.5%), the longest 3.0 × the "
                     "median: something else ran; try again on a quiet machine");
}

LAB_TEST(too_many_to_be_outliers) {
    struct lab_measurement m = quiet();
    m.latency.outliers.high_severe = 24;
    m.latency.max = 0.02;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 24 of 120 measured times (20.0%), the longest 2.0 × the "
                     "median: times fall into groups; clocks, placement or a neighbour switch "
                     "between them");
    m.simulated = true;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 24 of 120 measured times (20.0%), the longest 2.0 × the "
                     "median: times fall into groups (simulated)");
}

LAB_TEST(one_of_nine_is_no_group) {
    struct lab_measurement m = quiet();
    m.latency.n = 9;
    m.latency.outliers.high_severe = 1;
    m.latency.max = 0.02;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 1 of 9 measured times (11.1%), the longest 2.0 × the "
                     "median: something else ran; try again on a quiet machine");
}

LAB_TEST(outliers_that_do_not_matter) {
    struct lab_measurement m = quiet();
    m.latency.outliers.high_severe = 1; /* fewer than one in a hundred */
    m.latency.max = 0.05;
    assert_int_equal(lab_measure_warn(&m), 0);
    m = quiet(); /* a quarter of them, but hardly longer: the spread is next to nothing */
    m.latency.outliers.high_severe = 30;
    m.latency.max = 0.0101;
    assert_int_equal(lab_measure_warn(&m), 0);
    m = quiet(); /* as short as the steps of the clock */
    m.latency = (struct lab_summary){.n = 120, .median = 50e-9, .min = 40e-9, .max = 900e-9};
    m.latency.outliers.high_severe = 20;
    m.first_s = 50e-9;
    assert_int_equal(lab_measure_warn(&m), LAB_WARN_SHORT);
    m.first_s = 300e-9; /* and so is a first one of six times that */
    assert_int_equal(lab_measure_warn(&m), LAB_WARN_SHORT);
}

/* Of five times one is soon far from the others by Tukey's fences, and nobody would call it slow. */
LAB_TEST(one_that_is_hardly_longer_is_no_news) {
    struct lab_measurement m = quiet();
    m.latency.n = 5;
    m.latency.outliers.high_severe = 1;
    m.latency.max = 1.4 * m.latency.median;
    assert_int_equal(lab_measure_warn(&m), 0);
    m.latency.max = 1.6 * m.latency.median;
    assert_int_equal(lab_measure_warn(&m), LAB_WARN_OUTLIERS);
    m = quiet(); /* a clock that steps between two speeds */
    m.latency.outliers.high_severe = 30;
    m.latency.max = 1.25 * m.latency.median;
    assert_int_equal(lab_measure_warn(&m), LAB_WARN_OUTLIERS);
}

LAB_TEST(a_slow_first_iteration) {
    struct lab_measurement m = quiet();
    m.first_s = 1.25;
    assert_explained(m, LAB_WARN_SLOW_FIRST,
                     "the first iteration took 1.25 s, 125.0 × the median: it set up code, memory "
                     "or caches; it was part of the warm-up and isn't counted");
    m.warmup_iterations = 0;
    assert_explained(m, LAB_WARN_SLOW_FIRST,
                     "the first iteration took 1.25 s, 125.0 × the median: it set up code, memory "
                     "or caches and is counted; warm up first to leave it out");
    m.first_s = 0.029;
    assert_int_equal(lab_measure_warn(&m), 0);
    m.first_s = 0.09; /* nine times the median: told where it counts, and only there */
    assert_int_equal(lab_measure_warn(&m), LAB_WARN_SLOW_FIRST);
    m.warmup_iterations = 10;
    assert_int_equal(lab_measure_warn(&m), 0);
}

LAB_TEST(no_steady_state) {
    struct lab_measurement m = quiet();
    struct lab_iteration records[120];
    int end = 120;
    for (int i = 0; i < 120; i++)
        records[i] =
            (struct lab_iteration){.start_ns = 20000000LL * i, .end_ns = 20000000LL * i + 10000000};
    m.iterations = records;
    m.chunk_ends = &end;
    m.chunk_count = 1;
    m.steady = false;
    assert_explained(m, LAB_WARN_NOT_STEADY,
                     "no steady state within 300 ms and 30 iterations of warm-up: times still "
                     "changed or varied much; allow more time or try again on a quiet machine");
    for (int i = 60; i < 120; i++)
        records[i].end_ns += 1000000;
    assert_explained(m, LAB_WARN_NOT_STEADY,
                     "iterations became 10.0% longer from the first half to the second: clocks, "
                     "temperature, memory or another load changed; warm up longer");
}

LAB_TEST(not_precise) {
    struct lab_measurement m = quiet();
    m.stop = LAB_MEASURE_LIMIT;
    m.precision = 0.0321;
    assert_explained(m, LAB_WARN_NOT_PRECISE,
                     "time limit after 120 iterations, with the median known to ±3.2%; "
                     "a longer limit gives more precision");
    m.count = 1;
    m.latency.n = 1;
    m.precision = NAN;
    assert_explained(m, LAB_WARN_NOT_PRECISE,
                     "time limit after 1 iteration, too few to estimate the spread; a longer "
                     "limit gives more precision");
}

LAB_TEST(load) {
    struct lab_measurement m = quiet();
    m.conditions.foreign_cpu = 0.314;
    assert_explained(m, LAB_WARN_LOAD,
                     "other processes took 31.4% of the machine's CPU time during the run; try "
                     "again on a quiet machine");
    m.conditions.foreign_cpu = NAN;
    m.conditions.load_before = 0.5;
    assert_explained(m, LAB_WARN_LOAD,
                     "0.50 other threads per CPU were ready to run before it began; try again on a "
                     "quiet machine");
    /* a load before it began that was gone when it ran is no trouble */
    m.conditions.foreign_cpu = 0.01;
    assert_int_equal(lab_measure_warn(&m), 0);
    m.conditions = (struct lab_conditions){NAN, NAN, NAN, NAN, NAN};
    assert_int_equal(lab_measure_warn(&m), 0);
}

LAB_TEST(steal) {
    struct lab_measurement m = quiet();
    m.conditions.steal = 0.034;
    assert_explained(m, LAB_WARN_STEAL,
                     "the hypervisor took 3.4% of the machine's CPU time; values of a shared "
                     "virtual machine vary with its neighbours");
}

LAB_TEST(too_short) {
    struct lab_measurement m = quiet();
    m.latency.median = m.latency.max = m.first_s = 450e-9;
    assert_explained(m, LAB_WARN_SHORT,
                     "iterations take 450 ns, near the time that reading the clock takes; make "
                     "them larger");
}

/* A simulated machine's times are its own, whatever this one does meanwhile. */
LAB_TEST(nothing_here_disturbs_what_is_simulated) {
    struct lab_measurement m = quiet();
    m.simulated = true;
    m.conditions = (struct lab_conditions){
        .load_before = 4, .foreign_cpu = NAN, .steal = 0.2, .pressure_cpu = NAN};
    assert_int_equal(lab_measure_warn(&m), 0);
    m.latency.outliers.high_severe = 3;
    m.latency.max = 0.041;
    assert_explained(m, LAB_WARN_OUTLIERS,
                     "severe outliers: 3 of 120 measured times (2.5%), the longest 4.1 × the "
                     "median (simulated noise)");
}
