/* bench_text.c: a bench's answer for people: the figure first, then why it can be believed. */
#include "report/report.h"

#include <math.h>
#include <string.h>

#define LABEL_COLUMNS 19

struct lines {
    struct lab_doc *doc;
    const struct lab_bench_report *report;
    struct lab_bench_total total;
};

static void add_named_time(struct lab_str *text, const char *name, double seconds) {
    if (isnan(seconds))
        return;
    lab_str_add(text, text->length ? ", " : "");
    size_t from = text->length;
    lab_str_printf(text, "%s ", name);
    lab_str_add_time(text, seconds);
    lab_text_keep(text, from);
}

static void add_interval(struct lab_str *text, struct lab_interval interval) {
    if (isnan(interval.low) || isnan(interval.high))
        return;
    lab_str_add(text, " ");
    size_t from = text->length;
    lab_str_add(text, "[");
    lab_str_add_time(text, interval.low);
    lab_str_add(text, ", ");
    lab_str_add_time(text, interval.high);
    lab_str_printf(text, "] at %.0f%%", 100 * interval.confidence);
    lab_text_keep(text, from);
}

static const struct lab_value *batch_size(const struct lab_bench_report *report) {
    const struct lab_value *batch = lab_value_get(report->config, "batch_size");
    return batch && batch->type == LAB_VALUE_INT ? batch : NULL;
}

static const char *unit_of_work(const struct lab_bench_report *report) {
    return batch_size(report) ? "Time per batch" : "Iteration time";
}

static void add_title(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s on %s%s (%s)", report->label,
                   report->device.simulated ? "simulated " : "", report->device.name,
                   report->device.description);
    const struct lab_value *batch = batch_size(report);
    if (batch)
        lab_str_printf(&text, ", batch %lld", (long long)batch->integer);
    if (report->work.flops > 0)
        lab_str_printf(&text, ", %s", report->dtype);
    if (report->numa_node >= 0 && report->numa_node != report->device.node)
        lab_str_printf(&text, ", host on NUMA node %d", report->numa_node);
    lab_doc_text(lines->doc, LAB_DOC_TITLE, "%s", text.text);
}

static void add_times(const struct lines *lines) {
    const struct lab_summary *time = &lines->total.time, *latency = &lines->total.latency;
    LAB_AUTO(str, text);
    add_named_time(&text, "median", time->median);
    add_interval(&text, time->median_interval);
    if (lines->total.across)
        lab_str_printf(&text, ", across %d runs", lines->report->repetition_count);
    else
        lab_str_add(&text, ", within one run");
    lab_doc_line(lines->doc, unit_of_work(lines->report), "%s", text.text);

    lab_str_clear(&text);
    add_named_time(&text, "mean", time->mean);
    if (!isnan(time->stddev)) {
        lab_str_add(&text, " ± ");
        lab_str_add_time(&text, time->stddev);
        lab_text_keep(&text, 0);
    }
    add_named_time(&text, "min", time->min);
    add_named_time(&text, "p95", time->p95);
    add_named_time(&text, "p99", time->p99);
    add_named_time(&text, "max", time->max);
    lab_doc_line(lines->doc, "", "%s", text.text);

    lab_str_clear(&text);
    add_named_time(&text, "median", latency->median);
    add_named_time(&text, "p95", latency->p95);
    add_named_time(&text, "p99", latency->p99);
    add_named_time(&text, "max", latency->max);
    lab_doc_line(lines->doc, "Latency", "%s", text.text);
}

/* Limits vary by so much from one measurement of them to the next. */
#define LIMIT_NOISE 0.05

static void add_share(struct lab_str *text, double rate, double limit, const char *unit) {
    if (!(limit > 0))
        return;
    lab_str_add(text, " ");
    size_t from = text->length;
    /* caches beat memory, and a limit found on a busy machine is too low: no share of anything */
    bool beyond = rate > (1 + LIMIT_NOISE) * limit;
    if (beyond)
        lab_str_add(text, "(above the ");
    else
        lab_str_printf(text, "(%.0f%% of the ", 100 * rate / limit);
    lab_str_add_si(text, limit, unit);
    lab_text_keep(text, from);
    lab_str_add(text,
                beyond ? " that this device reaches beyond its caches)" : " this device reaches)");
}

static void add_rate(struct lab_str *text, const char *name, double rate, double limit,
                     const char *unit) {
    if (isnan(rate))
        return;
    lab_str_add(text, text->length ? ", " : "");
    size_t from = text->length;
    lab_str_add(text, name);
    lab_str_add_si(text, rate, unit);
    lab_text_keep(text, from);
    add_share(text, rate, limit, unit);
}

static int sample_digits(double rate) {
    return rate < 10 ? 2 : rate < 100 ? 1 : 0;
}

/* A prefix would read as a unit of its own: 1234 samples/s, not 1.23 ksamples/s. */
static void add_samples(struct lab_str *text, double rate, const char *unit) {
    if (rate >= 1e6)
        lab_str_printf(text, "%.4g million %s", 1e-6 * rate, unit);
    else if (!isnan(rate))
        lab_str_printf(text, "%.*f %s", sample_digits(rate), rate, unit);
}

static double share(double rate, double limit) {
    return limit > 0 && !isnan(rate) ? rate / limit : 0;
}

static void add_throughput(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    const struct lab_rates *rates = &lines->total.rates;
    LAB_AUTO(str, text);
    add_samples(&text, rates->samples_per_s, report->rate_unit ? report->rate_unit : "samples/s");
    add_rate(&text, "", rates->flops_per_s, report->limits.flops_per_s, "FLOP/s");
    /* memory is worth a word only where it binds before arithmetic does */
    if (share(rates->memory_bytes_per_s, report->limits.memory_bytes_per_s) >
        share(rates->flops_per_s, report->limits.flops_per_s))
        add_rate(&text, "memory ", rates->memory_bytes_per_s, report->limits.memory_bytes_per_s,
                 "B/s");
    lab_doc_line(lines->doc, "Throughput", "%s", text.text);
    lab_str_clear(&text);
    add_rate(&text, "H2D ", rates->h2d_bytes_per_s, report->limits.h2d_bytes_per_s, "B/s");
    add_rate(&text, "D2H ", rates->d2h_bytes_per_s, report->limits.d2h_bytes_per_s, "B/s");
    if (report->work.h2d_bytes > 0 && report->work.d2h_bytes > 0 && isnan(rates->compute_share))
        add_rate(&text, "together ", rates->copy_bytes_per_s, 0, "B/s");
    lab_doc_line(lines->doc, "Copies", "%s", text.text);
}

static void add_overlap(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    double compute = lines->total.rates.compute_share, overlap = lines->total.overlap;
    bool copies = report->work.h2d_bytes > 0 || report->work.d2h_bytes > 0;
    if (isnan(compute) || !copies)
        return;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%.0f%% of the time", 100 * compute);
    if (!report->info.overlaps)
        lab_str_printf(&text, ", no overlap with copies: %s",
                       report->info.overlap_why_not ? report->info.overlap_why_not
                                                    : "the device can't");
    else if (!isnan(overlap))
        lab_str_printf(&text, ", overlap: %.0f%% of copy time overlaps compute", 100 * overlap);
    lab_doc_line(lines->doc, "Compute", "%s", text.text);
}

/* "54,403" */
static void add_grouped(struct lab_str *text, double count) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%.0f", count);
    for (int i = 0; i < length; i++)
        lab_str_printf(text, "%s%c", i > 0 && (length - i) % 3 == 0 ? "," : "", digits[i]);
}

/* "forward_ms" has said it. */
static bool ends_in_unit(const char *name, const char *unit) {
    size_t name_length = strlen(name), unit_length = strlen(unit);
    return name_length > unit_length + 1 && name[name_length - unit_length - 1] == '_' &&
           lab_str_equal(name + name_length - unit_length, unit);
}

static void add_model(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    LAB_AUTO(str, text);
    if (report->parameters > 0) {
        add_grouped(&text, report->parameters);
        lab_str_add(&text, " parameters");
    }
    for (int i = 0; i < report->metric_count; i++) {
        const struct lab_bench_metric *metric = &report->metrics[i];
        lab_str_add(&text, text.length ? ", " : "");
        size_t from = text.length;
        lab_str_printf(&text, "%s ", metric->name);
        lab_str_add_digits(&text, metric->value, 5);
        if (metric->unit && *metric->unit && !ends_in_unit(metric->name, metric->unit))
            lab_str_printf(&text, " %s", metric->unit);
        lab_text_keep(&text, from);
    }
    lab_doc_line(lines->doc, report->parameters > 0 ? "Model" : "Figures", "%s", text.text);
}

/* "stopped when the median was known to ±0.8 %"; of several runs, the least precise counts. */
static void add_stop(struct lab_str *text, const struct lab_bench_report *report) {
    enum lab_measure_stop stop = LAB_MEASURE_PRECISE;
    int stopped = 0, runs = report->repetition_count;
    double precision = 0;
    for (int i = 0; i < runs; i++) {
        const struct lab_measurement *measurement = report->repetitions[i].measurement;
        stopped = measurement->stop == stop ? stopped + 1 : measurement->stop > stop ? 1 : stopped;
        stop = measurement->stop > stop ? measurement->stop : stop;
        precision = fmax(precision, measurement->precision); /* NaN is passed over */
    }
    static const char *const how[] = {"stopped when the median was known", "as many as asked for",
                                      "stopped at the time limit", "stopped by the user"};
    lab_str_add(text, ", ");
    if (stopped < runs)
        lab_str_printf(text, "%d of %d runs ", stopped, runs);
    else if (runs > 1 && stop != LAB_MEASURE_COUNTED)
        lab_str_add(text, "each ");
    lab_str_add(text, how[stop]);
    if (stop == LAB_MEASURE_LIMIT && precision > 0)
        lab_str_add(text, " with the median known");
    if (stop == LAB_MEASURE_PRECISE || (stop == LAB_MEASURE_LIMIT && precision > 0))
        lab_str_printf(text, precision > 0 ? " to ±%.2g%%" : " to one tick of the clock",
                       100 * precision);
}

static void add_iterations(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    size_t count = 0;
    long long warmup = 0;
    double wall_s = 0;
    for (int i = 0; i < report->repetition_count; i++) {
        count += report->repetitions[i].measurement->count;
        warmup += report->repetitions[i].measurement->warmup_iterations;
        wall_s += report->repetitions[i].measurement->wall_s;
    }
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%zu in ", count);
    lab_str_add_time(&text, wall_s);
    lab_str_printf(&text, " after %lld for warm-up", warmup);
    add_stop(&text, report);
    lab_doc_line(lines->doc, "Iterations", "%s", text.text);
}

static void add_verification(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    if (!report->verified)
        return;
    LAB_AUTO(str, text);
    const char *words = report->verification.text;
    if (!report->verification.applicable) {
        /* workloads say so themselves */
        lab_str_printf(&text, "%s%s",
                       lab_str_starts(words, "not applicable") ? "" : "not applicable: ", words);
    } else {
        lab_str_add(&text, report->verification.passed ? "passed: " : "FAILED: ");
        if (*words)
            lab_str_add(&text, words);
        else
            lab_str_printf(&text, "relative error %.1e", report->verification.relative_error);
        /* bytes that must arrive unchanged have no tolerance */
        if (report->verification.passed && report->verification.tolerance > 0)
            lab_str_printf(&text, ", against double precision (limit %.0e)",
                           report->verification.tolerance);
    }
    lab_doc_line(lines->doc, "Verification", "%s", text.text);
}

static void add_repetitions(const struct lines *lines) {
    const struct lab_bench_report *report = lines->report;
    const struct lab_doc_column columns[] = {
        {NULL, "Run", LAB_UNIT_COUNT},
        {NULL, unit_of_work(report), LAB_UNIT_TIME},
        {NULL, "Latency", LAB_UNIT_TIME},
        {NULL, "p99", LAB_UNIT_TIME},
        {NULL, report->work.samples > 0 ? "Samples/s" : NULL, LAB_UNIT_FIGURE},
        {NULL, "Iterations", LAB_UNIT_COUNT},
    };
    enum { COUNT = sizeof columns / sizeof *columns };
    if (report->repetition_count < 2)
        return;
    lab_doc_gap(lines->doc);
    lab_doc_rows(lines->doc, NULL, NULL,
                 lab_arena_copy(lab_doc_arena(lines->doc), columns, COUNT, sizeof *columns), COUNT);
    for (int i = 0; i < report->repetition_count; i++) {
        const struct lab_measurement *measurement = report->repetitions[i].measurement;
        double samples_per_s = report->repetitions[i].rates.samples_per_s;
        lab_doc_figure(lines->doc, i + 1);
        lab_doc_figure(lines->doc, lab_measure_primary(measurement)->median);
        lab_doc_figure(lines->doc, measurement->latency.median);
        lab_doc_figure(lines->doc, measurement->latency.p99);
        lab_doc_cell(lines->doc, "%.*f", sample_digits(samples_per_s), samples_per_s);
        lab_doc_figure(lines->doc, (double)measurement->count);
    }
}

static void add_operations(const struct lines *lines) {
    static const struct lab_doc_column columns[] = {{NULL, "Operation"},
                                                    {NULL, "Share", LAB_UNIT_SHARE},
                                                    {NULL, "Launches", LAB_UNIT_COUNT},
                                                    {NULL, "Time each", LAB_UNIT_TIME},
                                                    {NULL, "GFLOP/s", LAB_UNIT_FIGURE}};
    const struct lab_bench_report *report = lines->report;
    double total_s = 0;
    if (report->operation_count == 0)
        lab_doc_line(lines->doc, "Operations",
                     "none: this device doesn't count them, or none was launched");
    if (report->operation_count <= 0)
        return;
    for (int i = 0; i < report->operation_count; i++)
        total_s += report->operations[i].time_s;
    lab_doc_gap(lines->doc);
    lab_doc_rows(lines->doc, NULL, NULL, columns, 5);
    for (int i = 0; i < report->operation_count; i++) {
        const struct lab_bench_operation *operation = &report->operations[i];
        lab_doc_cell(lines->doc, "%s", operation->name);
        lab_doc_figure(lines->doc, operation->time_s / total_s);
        lab_doc_figure(lines->doc, (double)operation->launches);
        lab_doc_figure(lines->doc, operation->time_s / (double)operation->launches);
        lab_doc_cell(lines->doc, "%.3g", 1e-9 * operation->flops / operation->time_s);
    }
}

void lab_report_add_bench(struct lab_doc *doc, const struct lab_bench_report *report) {
    struct lines lines = {doc, report, lab_bench_total(report)};
    lab_doc_data(doc, NULL, lab_report_bench_value(report, lab_doc_arena(doc)));
    lab_doc_set_labels(doc, LABEL_COLUMNS);
    add_title(&lines);
    add_times(&lines);
    add_throughput(&lines);
    add_overlap(&lines);
    add_model(&lines);
    lab_doc_line(doc, "Configuration", "%s", report->configuration ? report->configuration : "");
    add_iterations(&lines);
    add_verification(&lines);
    add_repetitions(&lines);
    add_operations(&lines);
    if (report->repetition_count > 1 || report->operation_count > 0)
        lab_doc_gap(doc);
    for (int i = 0; report->invalid && report->invalid[i]; i++)
        lab_doc_said(doc, "Invalid:", LAB_DOC_ERROR, "%s", report->invalid[i]);
    for (int i = 0; report->warnings && report->warnings[i]; i++)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%s", report->warnings[i]);
}
