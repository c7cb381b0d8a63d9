/*
 * bench_total.c: the figures that several runs of a bench agree on. The unit of replication is
 * the run: with several, every figure is the median of the runs' own, and the interval is the one
 * across runs.
 */
#include "session/bench_run.h"

#include <math.h>
#include <stddef.h>

#define CONFIDENCE 0.95

typedef const void *record_of(const struct lab_bench_repetition *repetition);

static const void *time_of(const struct lab_bench_repetition *repetition) {
    return lab_measure_primary(repetition->measurement);
}
static const void *latency_of(const struct lab_bench_repetition *repetition) {
    return &repetition->measurement->latency;
}
static const void *rates_of(const struct lab_bench_repetition *repetition) {
    return &repetition->rates;
}
static const void *measurement_of(const struct lab_bench_repetition *repetition) {
    return repetition->measurement;
}

/* The double at `offset` of each repetition's record; NaN is left out. Returns how many. */
static size_t gather(const struct lab_bench_report *report, record_of *record, size_t offset,
                     double *values) {
    size_t n = 0;
    for (int i = 0; i < report->repetition_count; i++) {
        const char *bytes = record(&report->repetitions[i]);
        double value = *(const double *)(const void *)(bytes + offset);
        if (!isnan(value))
            values[n++] = value;
    }
    return n;
}

struct field {
    size_t offset;
    double (*combine)(const double *x, size_t n);
};

static void combine(const struct lab_bench_report *report, record_of *record,
                    const struct field *fields, size_t count, double *scratch, void *ret) {
    for (size_t i = 0; i < count; i++) {
        size_t n = gather(report, record, fields[i].offset, scratch);
        *(double *)(void *)((char *)ret + fields[i].offset) =
            n ? fields[i].combine(scratch, n) : NAN;
    }
}

#define SUMMARY(field, how)                                                                        \
    { offsetof(struct lab_summary, field), how }
#define RATE(field)                                                                                \
    { offsetof(struct lab_rates, field), lab_stats_median }
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct field summary_fields[] = {
    SUMMARY(mean, lab_stats_median),   SUMMARY(stddev, lab_stats_median),
    SUMMARY(median, lab_stats_median), SUMMARY(mad, lab_stats_median),
    SUMMARY(cv, lab_stats_median),     SUMMARY(min, lab_stats_min),
    SUMMARY(max, lab_stats_max),       SUMMARY(q25, lab_stats_median),
    SUMMARY(q75, lab_stats_median),    SUMMARY(p90, lab_stats_median),
    SUMMARY(p95, lab_stats_median),    SUMMARY(p99, lab_stats_median),
};

static const struct field rate_fields[] = {
    RATE(iterations_per_s), RATE(samples_per_s),   RATE(flops_per_s),     RATE(memory_bytes_per_s),
    RATE(copy_bytes_per_s), RATE(h2d_bytes_per_s), RATE(d2h_bytes_per_s), RATE(compute_share),
};

static const struct field measurement_fields[] = {
    {offsetof(struct lab_measurement, overlap), lab_stats_median},
};

struct lab_bench_total lab_bench_total(const struct lab_bench_report *report) {
    struct lab_bench_total total = {.across = report->repetition_count > 1};
    size_t count = (size_t)report->repetition_count;
    LAB_AUTO_FREE double *scratch = lab_mem_alloc(count, sizeof *scratch);
    combine(report, time_of, summary_fields, COUNT(summary_fields), scratch, &total.time);
    combine(report, latency_of, summary_fields, COUNT(summary_fields), scratch, &total.latency);
    combine(report, rates_of, rate_fields, COUNT(rate_fields), scratch, &total.rates);
    struct lab_measurement overlap;
    combine(report, measurement_of, measurement_fields, COUNT(measurement_fields), scratch,
            &overlap);
    total.overlap = overlap.overlap;
    for (size_t i = 0; i < count; i++) {
        total.time.n += lab_measure_primary(report->repetitions[i].measurement)->n;
        total.latency.n += report->repetitions[i].measurement->latency.n;
    }
    if (total.across) {
        size_t n = gather(report, time_of, offsetof(struct lab_summary, median), scratch);
        total.time.median_interval = lab_stats_median_interval(scratch, n, CONFIDENCE);
        n = gather(report, latency_of, offsetof(struct lab_summary, median), scratch);
        total.latency.median_interval = lab_stats_median_interval(scratch, n, CONFIDENCE);
    } else {
        const struct lab_measurement *only = report->repetitions[0].measurement;
        total.time.median_interval = lab_measure_primary(only)->median_interval;
        total.latency.median_interval = only->latency.median_interval;
    }
    return total;
}
