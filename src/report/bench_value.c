/* bench_value.c: a bench's answer for programs. What there is no figure for is null. */
#include "report/report.h"

#include "version.h"

#include <math.h>

struct writer {
    struct lab_arena *arena;
    struct lab_value *map;
};

static struct writer open_map(struct lab_arena *arena) {
    return (struct writer){arena, lab_value_map(arena)};
}

static void put(struct writer writer, const char *key, double value) {
    /* infinity isn't a figure either */
    lab_value_set_float(writer.arena, writer.map, key, isfinite(value) ? value : NAN);
}

static void put_map(struct writer writer, const char *key, struct writer inner) {
    lab_value_set(writer.arena, writer.map, key, inner.map);
}

/* 0 stands for unknown in limits. */
static void put_positive(struct writer writer, const char *key, double value) {
    put(writer, key, value > 0 ? value : NAN);
}

static struct lab_value *median_interval_value(struct lab_interval interval,
                                               struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put(writer, "low", 1e3 * interval.low);
    put(writer, "high", 1e3 * interval.high);
    put(writer, "confidence", interval.confidence);
    return writer.map;
}

static struct writer times_value(const struct lab_summary *summary, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    bool any = summary->n > 0;
    put(writer, "mean", any ? 1e3 * summary->mean : NAN);
    put(writer, "stddev", any ? 1e3 * summary->stddev : NAN);
    put(writer, "median", any ? 1e3 * summary->median : NAN);
    put(writer, "mad", any ? 1e3 * summary->mad : NAN);
    put(writer, "cv", any ? summary->cv : NAN);
    put(writer, "p25", any ? 1e3 * summary->q25 : NAN);
    put(writer, "p50", any ? 1e3 * summary->median : NAN);
    put(writer, "p75", any ? 1e3 * summary->q75 : NAN);
    put(writer, "p90", any ? 1e3 * summary->p90 : NAN);
    put(writer, "p95", any ? 1e3 * summary->p95 : NAN);
    put(writer, "p99", any ? 1e3 * summary->p99 : NAN);
    put(writer, "min", any ? 1e3 * summary->min : NAN);
    put(writer, "max", any ? 1e3 * summary->max : NAN);
    lab_value_set(arena, writer.map, "median_interval",
                  any ? median_interval_value(summary->median_interval, arena)
                      : lab_value_null(arena));
    return writer;
}

/* What only a series in the order of time has, so not what several runs agree on. */
static struct writer series_value(const struct lab_summary *summary, struct lab_arena *arena) {
    struct writer writer = times_value(summary, arena), outliers = open_map(arena);
    lab_value_set_int(arena, writer.map, "n", (int64_t)summary->n);
    put(writer, "effective_n", summary->n ? summary->effective_n : NAN);
    lab_value_set_int(arena, outliers.map, "low_severe", (int64_t)summary->outliers.low_severe);
    lab_value_set_int(arena, outliers.map, "low_mild", (int64_t)summary->outliers.low_mild);
    lab_value_set_int(arena, outliers.map, "high_mild", (int64_t)summary->outliers.high_mild);
    lab_value_set_int(arena, outliers.map, "high_severe", (int64_t)summary->outliers.high_severe);
    put_map(writer, "outliers", outliers);
    return writer;
}

static struct writer device_value(const struct lab_bench_report *report, struct lab_arena *arena) {
    struct writer writer = {arena, lab_report_device_value(&report->device, arena)};
    lab_value_set_string(arena, writer.map, "backend", report->device.backend);
    lab_value_set_int(arena, writer.map, "cores", report->info.compute_units);
    lab_value_set_string(arena, writer.map, "arithmetic", report->info.arithmetic);
    return writer;
}

static const char *const stage_names[] = {"h2d", "compute", "d2h"};

/* Of the middle repetition by order: stages are for understanding, not for comparing. */
static struct writer stages_value(const struct lab_bench_report *report,
                                  const struct lab_measurement *measurement,
                                  const struct lab_rates *rates, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    for (int i = 0; i < LAB_STAGE_COUNT; i++) {
        if (measurement->stages[i].n == 0)
            continue;
        struct writer stage = open_map(arena);
        put(stage, "median_ms", 1e3 * measurement->stages[i].median);
        put(stage, "p95_ms", 1e3 * measurement->stages[i].p95);
        if (i == LAB_STAGE_COMPUTE) {
            put(stage, "flops", report->work.flops);
            put(stage, "share_of_time", rates->compute_share);
        } else {
            bool h2d = i == LAB_STAGE_H2D;
            put(stage, "bytes", h2d ? report->work.h2d_bytes : report->work.d2h_bytes);
            put(stage, "bytes_per_second", h2d ? rates->h2d_bytes_per_s : rates->d2h_bytes_per_s);
        }
        put_map(writer, stage_names[i], stage);
    }
    return writer;
}

static struct writer limits_value(const struct lab_bench_report *report, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put_positive(writer, "flops_per_second", report->limits.flops_per_s);
    put_positive(writer, "memory_bytes_per_second", report->limits.memory_bytes_per_s);
    put_positive(writer, "h2d_bytes_per_second", report->limits.h2d_bytes_per_s);
    put_positive(writer, "d2h_bytes_per_second", report->limits.d2h_bytes_per_s);
    lab_value_set_string(arena, writer.map, "how", report->limits.how);
    return writer;
}

static double share(double rate, double limit) {
    return limit > 0 ? rate / limit : NAN;
}

static struct writer shares_value(const struct lab_bench_report *report,
                                  const struct lab_rates *rates, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put(writer, "flops", share(rates->flops_per_s, report->limits.flops_per_s));
    put(writer, "memory", share(rates->memory_bytes_per_s, report->limits.memory_bytes_per_s));
    put(writer, "h2d", share(rates->h2d_bytes_per_s, report->limits.h2d_bytes_per_s));
    put(writer, "d2h", share(rates->d2h_bytes_per_s, report->limits.d2h_bytes_per_s));
    return writer;
}

static const char *stop_name(enum lab_measure_stop stop) {
    static const char *const names[] = {"precise", "counted", "limit", "interrupted"};
    return names[stop];
}

static struct writer conditions_value(const struct lab_conditions *conditions,
                                      struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    put(writer, "load_before", conditions->load_before);
    put(writer, "foreign_cpu", conditions->foreign_cpu);
    put(writer, "steal", conditions->steal);
    put(writer, "pressure_cpu", conditions->pressure_cpu);
    put(writer, "pressure_memory", conditions->pressure_memory);
    return writer;
}

/* Threads that take turns on one core seem to overlap; where the device can't, there is none. */
static void put_overlap(struct writer writer, const struct lab_bench_report *report,
                        double overlap) {
    put(writer, "overlap", report->info.overlaps ? overlap : NAN);
}

static struct lab_value *repetition_value(const struct lab_bench_report *report, int index,
                                          struct lab_arena *arena) {
    const struct lab_bench_repetition *repetition = &report->repetitions[index];
    const struct lab_measurement *measurement = repetition->measurement;
    struct writer writer = open_map(arena);
    put(writer, "samples_per_second", repetition->rates.samples_per_s);
    put(writer, "flops_per_second", repetition->rates.flops_per_s);
    put_map(writer, "latency_ms", series_value(&measurement->latency, arena));
    put_map(writer, "interval_ms", series_value(&measurement->interval, arena));
    put_map(writer, "stages", stages_value(report, measurement, &repetition->rates, arena));
    put_overlap(writer, report, measurement->overlap);
    lab_value_set_int(arena, writer.map, "iterations", (int64_t)measurement->count);
    lab_value_set_int(arena, writer.map, "warmup_iterations", measurement->warmup_iterations);
    put(writer, "warmup_seconds", measurement->warmup_s);
    put(writer, "measured_seconds", measurement->wall_s);
    put(writer, "first_iteration_ms", 1e3 * measurement->first_s);
    lab_value_set_bool(arena, writer.map, "steady", measurement->steady);
    lab_value_set_string(arena, writer.map, "stop", stop_name(measurement->stop));
    put(writer, "precision", measurement->precision);
    put_map(writer, "conditions", conditions_value(&measurement->conditions, arena));
    return writer.map;
}

static struct writer operations_value(const struct lab_bench_report *report,
                                      struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    double total_s = 0;
    for (int i = 0; i < report->operation_count; i++)
        total_s += report->operations[i].time_s;
    for (int i = 0; i < report->operation_count; i++) {
        const struct lab_bench_operation *operation = &report->operations[i];
        struct writer row = open_map(arena);
        lab_value_set_int(arena, row.map, "launches", operation->launches);
        put(row, "seconds", operation->time_s);
        put(row, "share", operation->time_s / total_s);
        put(row, "flops_per_second", operation->flops / operation->time_s);
        put_map(writer, operation->name, row);
    }
    return writer;
}

static struct writer metrics_value(const struct lab_bench_report *report, struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    for (int i = 0; i < report->metric_count; i++)
        put(writer, report->metrics[i].name, report->metrics[i].value);
    return writer;
}

static struct writer verification_value(const struct lab_bench_report *report,
                                        struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    bool done = report->verified, applicable = done && report->verification.applicable;
    lab_value_set_bool(arena, writer.map, "done", done);
    lab_value_set_bool(arena, writer.map, "applicable", applicable);
    lab_value_set(arena, writer.map, "passed",
                  applicable ? lab_value_bool(arena, report->verification.passed)
                             : lab_value_null(arena));
    put(writer, "relative_error", applicable ? report->verification.relative_error : NAN);
    put(writer, "tolerance", applicable ? report->verification.tolerance : NAN);
    lab_value_set_int(arena, writer.map, "elements", report->verification.elements);
    lab_value_set_string(arena, writer.map, "text",
                         *report->verification.text ? report->verification.text : NULL);
    return writer;
}

static struct writer validity_value(const struct lab_bench_report *report,
                                    struct lab_arena *arena) {
    struct writer writer = open_map(arena);
    lab_value_set_bool(arena, writer.map, "valid", !report->invalid || !report->invalid[0]);
    lab_value_set(arena, writer.map, "reasons", lab_value_strings(arena, report->invalid));
    lab_value_set(arena, writer.map, "warnings", lab_value_strings(arena, report->warnings));
    return writer;
}

static void put_counts(struct writer writer, const struct lab_bench_report *report) {
    int64_t iterations = 0, warmup = 0;
    enum lab_measure_stop stop = LAB_MEASURE_PRECISE; /* of several runs, the least satisfying */
    for (int i = 0; i < report->repetition_count; i++) {
        const struct lab_measurement *measurement = report->repetitions[i].measurement;
        iterations += (int64_t)measurement->count;
        warmup += measurement->warmup_iterations;
        stop = measurement->stop > stop ? measurement->stop : stop;
    }
    lab_value_set_int(writer.arena, writer.map, "iterations", iterations);
    lab_value_set_int(writer.arena, writer.map, "warmup_iterations", warmup);
    lab_value_set_string(writer.arena, writer.map, "stop", stop_name(stop));
}

struct lab_value *lab_report_bench_value(const struct lab_bench_report *report,
                                         struct lab_arena *arena) {
    struct lab_bench_total total = lab_bench_total(report);
    const struct lab_bench_repetition *middle = &report->repetitions[report->repetition_count / 2];
    struct writer writer = open_map(arena);
    struct lab_value *map = writer.map;
    lab_value_set_string(arena, map, "gpulab", LAB_VERSION);
    lab_value_set_string(arena, map, "workload", report->workload);
    lab_value_set_string(arena, map, "label", report->label);
    lab_value_set(arena, map, "config", report->config);
    lab_value_set_string(arena, map, "dtype", report->dtype);
    put_map(writer, "device", device_value(report, arena));
    lab_value_set(arena, map, "numa_node",
                  report->numa_node >= 0 ? lab_value_int(arena, report->numa_node)
                                         : lab_value_null(arena));
    put(writer, "samples_per_second", total.rates.samples_per_s);
    put_map(writer, "latency_ms", times_value(&total.latency, arena));
    /* one iteration a stretch has no intervals; its own time stands for none */
    put_map(
        writer, "interval_ms",
        times_value(middle->measurement->interval.n ? &total.time : &middle->measurement->interval,
                    arena));
    lab_value_set_string(arena, map, "median_interval_is",
                         total.across ? "across repetitions" : "within one run");
    put(writer, "flops_per_second", total.rates.flops_per_s);
    put(writer, "memory_bytes_per_second", total.rates.memory_bytes_per_s);
    put(writer, "copy_bytes_per_second", total.rates.copy_bytes_per_s);
    put_map(writer, "stages", stages_value(report, middle->measurement, &middle->rates, arena));
    put_overlap(writer, report, total.overlap);
    lab_value_set_string(arena, map, "overlap_why_not",
                         report->info.overlaps ? NULL : report->info.overlap_why_not);
    put_map(writer, "limits", limits_value(report, arena));
    put_map(writer, "share_of_limit", shares_value(report, &total.rates, arena));
    put_counts(writer, report);
    struct lab_value *repetitions = lab_value_list(arena);
    for (int i = 0; i < report->repetition_count; i++)
        lab_value_append(arena, repetitions, repetition_value(report, i, arena));
    lab_value_set(arena, map, "repetitions", repetitions);
    if (report->operation_count >= 0)
        put_map(writer, "operations", operations_value(report, arena));
    if (report->parameters > 0)
        lab_value_set_int(arena, map, "parameters", (int64_t)report->parameters);
    if (report->metric_count > 0)
        put_map(writer, "metrics", metrics_value(report, arena));
    put_map(writer, "verification", verification_value(report, arena));
    put_map(writer, "validity", validity_value(report, arena));
    put_map(writer, "conditions", conditions_value(&middle->measurement->conditions, arena));
    return map;
}
