/* measure_summary.c: from records to series, from series to figures. docs/NUMBERS.md defines
 * them. */
#include "base/list.h"
#include "base/mem.h"
#include "measure/measure_internal.h"

#include <math.h>

/* Below this share of independent values, neighbours are taken to depend on each other; chance
 * alone seldom takes away as much. */
#define DEPENDENT_SHARE 0.75

/* A median that moves by less between the halves is no drift: pyperf's bound for quartiles. */
#define DRIFT_LEAST      0.05
#define DRIFT_CONFIDENCE 0.99 /* asked on every measurement: false alarms must be rare */

#define S_PER_NS 1e-9

size_t lab_measure_latencies(const struct lab_iteration *records, size_t count, double *ret_s) {
    for (size_t i = 0; i < count; i++)
        ret_s[i] = (double)(records[i].end_ns - records[i].start_ns) * S_PER_NS;
    return count;
}

size_t lab_measure_intervals(const struct lab_iteration *records, const int *chunk_ends,
                             int chunk_count, double *ret_s) {
    size_t written = 0;
    int start = 0;
    for (int s = 0; s < chunk_count; s++) {
        for (int i = start + 1; i < chunk_ends[s]; i++)
            ret_s[written++] = (double)(records[i].end_ns - records[i - 1].end_ns) * S_PER_NS;
        start = chunk_ends[s];
    }
    return written;
}

size_t lab_measure_stages(const struct lab_iteration *records, size_t count, enum lab_stage stage,
                          double *ret_s) {
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        const struct lab_span *span = &records[i].stages[stage];
        if (span->start_ns != 0 || span->end_ns != 0)
            ret_s[written++] = (double)(span->end_ns - span->start_ns) * S_PER_NS;
    }
    return written;
}

bool lab_measure_by_intervals(size_t interval_count, size_t iteration_count) {
    /* stretches of two have half as many, less where the limit cut one: still the cost of an
     * iteration, where the latency of a pipeline is several times that */
    return interval_count > 0 && 4 * interval_count >= iteration_count;
}

const struct lab_summary *lab_measure_primary(const struct lab_measurement *measurement) {
    return lab_measure_by_intervals(measurement->interval.n, measurement->count)
               ? &measurement->interval
               : &measurement->latency;
}

/* The spans of a stage that exist, by their start; returns how many. */
static size_t collect(const struct lab_iteration *records, size_t count, enum lab_stage stage,
                      struct lab_span *spans) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (records[i].stages[stage].end_ns > records[i].stages[stage].start_ns)
            spans[found++] = records[i].stages[stage];
    }
    LAB_SORT(spans, found, LAB_BY(spans, start_ns));
    return found;
}

/* Time of `copies` that lies under `computes`; both are sorted, the latter apart from each
 * other. */
static double covered_ns(const struct lab_span *copies, size_t copy_count,
                         const struct lab_span *computes, size_t compute_count) {
    double covered = 0;
    size_t first = 0;
    for (size_t i = 0; i < copy_count; i++) {
        while (first < compute_count && computes[first].end_ns <= copies[i].start_ns)
            first++;
        for (size_t c = first; c < compute_count && computes[c].start_ns < copies[i].end_ns; c++) {
            int64_t start = computes[c].start_ns, end = computes[c].end_ns;
            start = start > copies[i].start_ns ? start : copies[i].start_ns;
            end = end < copies[i].end_ns ? end : copies[i].end_ns;
            covered += (double)(end - start);
        }
    }
    return covered;
}

double lab_measure_overlap(const struct lab_iteration *records, size_t count) {
    LAB_AUTO_FREE struct lab_span *spans = lab_mem_resize(NULL, 2 * count, sizeof *spans);
    struct lab_span *computes = spans, *copies = spans + count;
    size_t compute_count =
        lab_spans_join(computes, collect(records, count, LAB_STAGE_COMPUTE, computes));
    const enum lab_stage directions[] = {LAB_STAGE_H2D, LAB_STAGE_D2H};
    double covered = 0, total = 0;
    for (int d = 0; d < 2; d++) {
        size_t copy_count = collect(records, count, directions[d], copies);
        covered += covered_ns(copies, copy_count, computes, compute_count);
        for (size_t i = 0; i < copy_count; i++)
            total += (double)(copies[i].end_ns - copies[i].start_ns);
    }
    return compute_count == 0 || total == 0 ? NAN : covered / total;
}

double lab_measure_relative_width(struct lab_interval interval, double median) {
    double width = interval.high - interval.low;
    return width == 0 ? 0 : width / 2 / fabs(median);
}

static bool depends(size_t n, double effective_n) {
    return effective_n < DEPENDENT_SHARE * (double)n;
}

/*
 * Ranks, of as many values as are independent. The block bootstrap would be the other way; on
 * autocorrelated series (AR(1) 0.7, n = 200) it covers 91 % where 95 % is asked for, this one 98 %:
 * an interval that is too wide is the better mistake. The stopping rule asks the same function, so
 * that what it stopped at is what is shown.
 */
struct lab_interval lab_measure_interval_of(const double *sorted, size_t n, double effective_n,
                                            double confidence) {
    return lab_stats_median_interval_sorted(
        sorted, n, depends(n, effective_n) ? effective_n : (double)n, confidence);
}

static const struct lab_summary no_summary = {
    .mean = NAN,
    .stddev = NAN,
    .median = NAN,
    .mad = NAN,
    .cv = NAN,
    .min = NAN,
    .max = NAN,
    .q25 = NAN,
    .q75 = NAN,
    .p90 = NAN,
    .p95 = NAN,
    .p99 = NAN,
    .median_interval = {NAN, NAN, NAN},
    .effective_n = NAN,
};

struct lab_summary lab_summarize(const double *x, size_t n, double confidence) {
    struct lab_summary s = no_summary;
    s.n = n;
    LAB_AUTO_FREE double *sorted = lab_mem_resize(NULL, n, sizeof *sorted);
    if (n > 0 && lab_stats_sort(x, n, sorted)) {
        s.mean = lab_stats_mean(x, n);
        s.stddev = lab_stats_stddev(x, n);
        s.cv = s.stddev / s.mean;
        s.min = sorted[0];
        s.max = sorted[n - 1];
        s.q25 = lab_stats_quantile_sorted(sorted, n, 0.25);
        s.median = lab_stats_quantile_sorted(sorted, n, 0.5);
        s.q75 = lab_stats_quantile_sorted(sorted, n, 0.75);
        s.p90 = lab_stats_quantile_sorted(sorted, n, 0.90);
        s.p95 = lab_stats_quantile_sorted(sorted, n, 0.95);
        s.p99 = lab_stats_quantile_sorted(sorted, n, 0.99);
        s.mad = lab_stats_mad(sorted, n, true);
        s.outliers = lab_stats_tukey(sorted, n, NULL);
        s.effective_n = lab_stats_effective_size(x, n);
        s.median_interval = lab_measure_interval_of(sorted, n, s.effective_n, confidence);
    }
    return s;
}

/* The median of a series with an interval that allows for dependence. */
static struct lab_interval half_interval(const double *x, size_t n, double *ret_median) {
    LAB_AUTO_FREE double *sorted = lab_mem_resize(NULL, n, sizeof *sorted);
    lab_stats_sort(x, n, sorted);
    *ret_median = lab_stats_quantile_sorted(sorted, n, 0.5);
    return lab_stats_median_interval_sorted(sorted, n, lab_stats_effective_size(x, n),
                                            DRIFT_CONFIDENCE);
}

double lab_measure_drift(const double *x, size_t n) {
    if (n < LAB_MEASURE_DRIFT_VALUES)
        return 0;
    size_t half = n / 2;
    double early, late;
    struct lab_interval before = half_interval(x, half, &early);
    struct lab_interval after = half_interval(x + half, n - half, &late);
    bool apart = before.high < after.low || after.high < before.low;
    double change = (late - early) / early;
    return apart && fabs(change) > DRIFT_LEAST ? change : 0;
}
