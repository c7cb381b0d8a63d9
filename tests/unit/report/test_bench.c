/* What a bench reports: rates from their definitions, runs as the unit, nothing invented. */
#include "base/json.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

#include "test.h"

static struct lab_summary summary(size_t n, double median_s) {
    return (struct lab_summary){.n = n,
                                .mean = median_s,
                                .stddev = 0.1 * median_s,
                                .median = median_s,
                                .mad = 0.1 * median_s,
                                .cv = 0.1,
                                .min = 0.5 * median_s,
                                .max = 2 * median_s,
                                .q25 = 0.9 * median_s,
                                .q75 = 1.1 * median_s,
                                .p90 = 1.2 * median_s,
                                .p95 = 1.3 * median_s,
                                .p99 = 1.4 * median_s,
                                .effective_n = 40,
                                .outliers = {.high_severe = 2},
                                .median_interval = {0.9 * median_s, 1.1 * median_s, 0.95}};
}

/* 100 iterations of `interval_s` each, whose stages take 2 ms, 4 ms and 1 ms. */
static struct lab_measurement measurement(double interval_s) {
    return (struct lab_measurement){
        .count = 100,
        .warmup_iterations = 7,
        .first_s = interval_s,
        .steady = true,
        .wall_s = 100 * interval_s,
        .latency = summary(100, 3 * interval_s),
        .interval = summary(99, interval_s),
        .stages = {summary(100, 0.002), summary(100, 0.004), summary(100, 0.001)},
        .overlap = 0.5,
        .stop = LAB_MEASURE_PRECISE,
        .precision = 0.008,
        .conditions = {.foreign_cpu = NAN,
                       .steal = NAN,
                       .pressure_cpu = NAN,
                       .pressure_memory = NAN},
    };
}

static struct lab_bench_report report_of(struct lab_bench_repetition *repetitions,
                                         const struct lab_measurement *measurements, int count) {
    static const char *const none[] = {NULL};
    struct lab_bench_report report = {
        .workload = "vit",
        .label = "vit32x4x512",
        .device = {.name = "cpu:0",
                   .backend = "cpu",
                   .description = "2 cores of NUMA node 0",
                   .physical = "cpu:0"},
        .info = {.compute_units = 2, .overlaps = true},
        .dtype = "fp32",
        .work = {.samples = 10, .flops = 1e8, .h2d_bytes = 2e6, .d2h_bytes = 1e6},
        .limits = {.flops_per_s = 2e10, .h2d_bytes_per_s = 4e9},
        .verified = true,
        .verification = {.applicable = true,
                         .passed = true,
                         .relative_error = 3.1e-7,
                         .tolerance = 1e-5,
                         .text = ""},
        .repetitions = repetitions,
        .repetition_count = count,
        .operation_count = -1,
        .invalid = none,
        .warnings = none,
    };
    for (int i = 0; i < count; i++) {
        repetitions[i].measurement = &measurements[i];
        repetitions[i].rates = lab_measure_rates(&measurements[i], &report.work);
    }
    return report;
}

static void set_text(struct lab_bench_report *report, const char *text) {
    snprintf(report->verification.text, sizeof report->verification.text, "%s", text);
}

static char *text_of(const struct lab_bench_report *report, int columns) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    struct lab_str out;
    lab_str_init(&out);
    lab_report_add_bench(doc, report);
    lab_doc_write(doc, "text", (struct lab_style){.columns = columns, .unicode = true}, &out);
    return out.text;
}

LAB_TEST(rates_follow_their_definitions) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    struct lab_rates rates = lab_measure_rates(&one, &report.work);
    assert_float_equal(rates.samples_per_s, 10 * 100 / 1.0, 1e-9);
    assert_float_equal(rates.flops_per_s, 1e8 * 100 / 1.0, 1);
    assert_float_equal(rates.h2d_bytes_per_s, 2e6 / 0.002, 1e-3);
    assert_float_equal(rates.d2h_bytes_per_s, 1e6 / 0.001, 1e-3);
    assert_float_equal(rates.compute_share, 0.4, 1e-12);
    assert_true(isnan(rates.memory_bytes_per_s));
}

LAB_TEST(one_run_says_so) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    struct lab_arena arena;
    lab_arena_init(&arena);
    report.config = lab_value_map(&arena);
    lab_value_set_int(&arena, report.config, "batch_size", 10);
    char *text = text_of(&report, 120);
    lab_arena_release(&arena);
    assert_contains(text, "vit32x4x512 on cpu:0 (2 cores of NUMA node 0), batch 10, fp32\n");
    assert_contains(text, "  Time per batch   median 10.0 ms [9.00 ms, 11.0 ms] at 95%, within "
                          "one run\n");
    assert_contains(text, "  1000 samples/s, ");
    assert_contains(text, "10.0 GFLOP/s (50% of the 20.0 GFLOP/s this device reaches)");
    assert_contains(text, "H2D 1.00 GB/s (25% of the 4.00 GB/s this device reaches), "
                          "D2H 1.00 GB/s\n");
    assert_contains(text, "40% of the time, overlap: 50% of copy time overlaps compute\n");
    assert_contains(text, "100 in 1.00 s after 7 for warm-up, stopped when the median was known "
                          "to ±0.8%\n");
    assert_contains(text, "passed: relative error 3.1e-07, against double precision (limit 1e-05)");
    lab_mem_free(text);
}

LAB_TEST(several_runs_are_the_unit) {
    struct lab_measurement three[] = {measurement(0.012), measurement(0.010), measurement(0.011)};
    struct lab_bench_repetition repetitions[3];
    struct lab_bench_report report = report_of(repetitions, three, 3);
    struct lab_bench_total total = lab_bench_total(&report);
    assert_true(total.across);
    assert_float_equal(total.time.median, 0.011, 1e-12);
    assert_float_equal(total.time.min, 0.005, 1e-12);
    assert_float_equal(total.time.max, 0.024, 1e-12);
    /* three values: the widest interval there is, with the confidence it has */
    assert_float_equal(total.time.median_interval.low, 0.010, 1e-12);
    assert_float_equal(total.time.median_interval.high, 0.012, 1e-12);
    assert_float_equal(total.time.median_interval.confidence, 0.75, 1e-9);
    char *text = text_of(&report, 120);
    assert_contains(text, "across 3 runs");
    assert_contains(text, "  Run  Iteration time  Latency      p99  Samples/s  Iterations\n");
    lab_mem_free(text);
}

LAB_TEST(the_least_satisfying_stop_counts) {
    struct lab_measurement three[] = {measurement(0.012), measurement(0.010), measurement(0.011)};
    struct lab_bench_repetition repetitions[3];
    struct lab_bench_report report = report_of(repetitions, three, 3);
    char *text = text_of(&report, 200);
    assert_contains(text, ", each stopped when the median was known to ±0.8%\n");
    lab_mem_free(text);
    three[0].stop = LAB_MEASURE_LIMIT;
    three[0].precision = 0.072;
    text = text_of(&report, 200);
    assert_contains(text, ", 1 of 3 runs stopped at the time limit with the median known to ±7.2%"
                          "\n");
    lab_mem_free(text);
    struct lab_arena arena;
    lab_arena_init(&arena);
    report.config = lab_value_map(&arena);
    const struct lab_value *map = lab_report_bench_value(&report, &arena);
    assert_string_equal(lab_value_get(map, "stop")->string, "limit");
    lab_arena_release(&arena);
}

/* A copy within the caches beats the memory's limit, and a busy machine has a low limit. */
LAB_TEST(more_than_the_limit_is_no_share) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    report.limits.h2d_bytes_per_s = 0.5e9;
    char *text = text_of(&report, 200);
    assert_contains(
        text, "H2D 1.00 GB/s (above the 500 MB/s that this device reaches beyond its caches), ");
    lab_mem_free(text);
    report.limits.h2d_bytes_per_s = 0.98e9; /* nobody knows it so exactly */
    text = text_of(&report, 200);
    assert_contains(text, "H2D 1.00 GB/s (102% of the 980 MB/s this device reaches), ");
    lab_mem_free(text);
}

LAB_TEST(verification_speaks_of_what_was_checked) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    set_text(&report, "relative error 3.1e-07 over 25,600 outputs");
    char *text = text_of(&report, 200);
    assert_contains(text, "  Verification     passed: relative error 3.1e-07 over 25,600 outputs, "
                          "against double precision (limit 1e-05)\n");
    lab_mem_free(text);
    report.verification.relative_error = report.verification.tolerance = 0;
    set_text(&report, "4,096 bytes arrived unchanged");
    text = text_of(&report, 200);
    assert_contains(text, "  Verification     passed: 4,096 bytes arrived unchanged\n");
    lab_mem_free(text);
    report.verification.applicable = false;
    set_text(&report, "not applicable: no output");
    text = text_of(&report, 200);
    assert_contains(text, "  Verification     not applicable: no output\n");
    lab_mem_free(text);
}

LAB_TEST(large_rates_are_rounded) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    repetition.rates.samples_per_s = 1022698;
    char *text = text_of(&report, 200);
    assert_contains(text, "  1.023 million samples/s, ");
    lab_mem_free(text);
    report.rate_unit = "tokens/s";
    text = text_of(&report, 200);
    assert_contains(text, "  1.023 million tokens/s, ");
    lab_mem_free(text);
}

LAB_TEST(no_overlap_gives_the_reason) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    report.info.overlaps = false;
    report.info.overlap_why_not = "one core does both";
    char *text = text_of(&report, 120);
    assert_contains(text, "no overlap with copies: one core does both\n");
    lab_mem_free(text);
    struct lab_arena arena;
    lab_arena_init(&arena);
    report.config = lab_value_map(&arena);
    const struct lab_value *map = lab_report_bench_value(&report, &arena);
    assert_int_equal(lab_value_get(map, "overlap")->type, LAB_VALUE_NULL);
    assert_int_equal(lab_value_get(lab_value_get(map, "repetitions")->items[0], "overlap")->type,
                     LAB_VALUE_NULL);
    assert_string_equal(lab_value_get(map, "overlap_why_not")->string, "one core does both");
    lab_arena_release(&arena);
}

LAB_TEST(what_is_wrong_is_not_hidden) {
    struct lab_measurement one = measurement(0.01);
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    const char *const reasons[] = {"wrong results: relative error 1", NULL};
    const char *const warnings[] = {"others use this machine", NULL};
    report.invalid = reasons;
    report.warnings = warnings;
    report.verification.passed = false;
    report.device.simulated = true;
    char *text = text_of(&report, 120);
    assert_contains(text, "on simulated cpu:0");
    assert_contains(text, "FAILED: relative error");
    assert_contains(text, "  Invalid: wrong results: relative error 1\n");
    assert_contains(text, "  Warning: others use this machine\n");
    lab_mem_free(text);
}

LAB_TEST(every_line_fits) {
    struct lab_measurement two[] = {measurement(0.012), measurement(0.010)};
    struct lab_bench_repetition repetitions[2];
    struct lab_bench_report report = report_of(repetitions, two, 2);
    char *text = text_of(&report, 80);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        assert_in_range(lab_str_columns(line), 0, 80);
    }
    lab_mem_free(text);
}

static double number(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    assert_non_null(value);
    assert_int_equal(value->type, LAB_VALUE_FLOAT);
    return value->number;
}

LAB_TEST(json_has_the_promised_keys) {
    struct lab_measurement one = measurement(0.01);
    one.overlap = NAN;
    struct lab_bench_repetition repetition;
    struct lab_bench_report report = report_of(&repetition, &one, 1);
    struct lab_arena arena;
    lab_arena_init(&arena);
    report.config = lab_value_map(&arena);
    struct lab_value *map = lab_report_bench_value(&report, &arena);
    assert_float_equal(number(map, "samples_per_second"), 1000, 1e-9);
    const struct lab_value *latency = lab_value_get(map, "latency_ms");
    assert_float_equal(number(latency, "p50"), 30, 1e-9);
    assert_float_equal(number(latency, "p99"), 42, 1e-9);
    assert_float_equal(number(lab_value_get(latency, "median_interval"), "high"), 33, 1e-9);
    assert_int_equal(lab_value_get(map, "overlap")->type, LAB_VALUE_NULL);
    assert_int_equal(lab_value_get(lab_value_get(map, "limits"), "d2h_bytes_per_second")->type,
                     LAB_VALUE_NULL);
    assert_true(lab_value_get(lab_value_get(map, "validity"), "valid")->boolean);
    assert_int_equal(lab_value_get(map, "repetitions")->count, 1);
    const struct lab_value *series =
        lab_value_get(lab_value_get(map, "repetitions")->items[0], "interval_ms");
    assert_int_equal(lab_value_get(series, "n")->integer, 99);
    assert_float_equal(number(series, "effective_n"), 40, 1e-9);
    assert_float_equal(number(series, "p25"), 9, 1e-9);
    assert_float_equal(number(series, "mad"), 1, 1e-9);
    assert_int_equal(lab_value_get(lab_value_get(series, "outliers"), "high_severe")->integer, 2);
    assert_int_equal(lab_value_get(lab_value_get(map, "conditions"), "steal")->type,
                     LAB_VALUE_NULL);
    lab_arena_release(&arena);
}
