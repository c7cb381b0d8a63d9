/* crossover/times.c: how long a run computed and copied, from the best that it left. */
#include "analysis/crossover/crossover.h"

#include "base/str.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MIN 4
#define VALUES_MAX 8192 /* more are taken together in groups of neighbours */

static const struct lab_crossover_times nothing = {NAN, NAN, NAN, NAN, LAB_CROSSOVER_NONE};

/* Time that spans cover, given in the order of their starts. */
struct cover {
    int64_t busy_ns, until_ns;
};

static void add_span(struct cover *cover, int64_t start_ns, int64_t end_ns) {
    int64_t from_ns = start_ns > cover->until_ns ? start_ns : cover->until_ns;
    if (end_ns > from_ns)
        cover->busy_ns += end_ns - from_ns;
    if (end_ns > cover->until_ns)
        cover->until_ns = end_ns;
}

/* --- from the iterations --- */

static bool exists(const struct lab_span *span) {
    return span->end_ns > span->start_ns;
}

static double length_s(const struct lab_span *span) {
    return exists(span) ? 1e-9 * (double)(span->end_ns - span->start_ns) : 0;
}

/* Each direction has its order; the two are merged. */
static int64_t copies_busy_ns(const struct lab_iteration *items, size_t count) {
    struct cover cover = {.until_ns = INT64_MIN};
    size_t h2d = 0, d2h = 0;
    while (h2d < count || d2h < count) {
        const struct lab_span *in = h2d < count ? &items[h2d].stages[LAB_STAGE_H2D] : NULL;
        const struct lab_span *out = d2h < count ? &items[d2h].stages[LAB_STAGE_D2H] : NULL;
        bool first = in && (!out || !exists(out) || in->start_ns <= out->start_ns);
        const struct lab_span *next = first ? in : out;
        if (next && exists(next))
            add_span(&cover, next->start_ns, next->end_ns);
        if (first)
            h2d++;
        else
            d2h++;
    }
    return cover.busy_ns;
}

/* How sure the ratio is within the run: ln(compute / copies) of each iteration, worth as many as
 * are independent of their neighbours. */
static void set_variance(struct lab_crossover_times *times, const struct lab_iteration *items,
                         size_t count) {
    double *logs = lab_mem_resize(NULL, count + 1, sizeof *logs);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct lab_span *stages = items[i].stages;
        double copies = length_s(&stages[LAB_STAGE_H2D]) + length_s(&stages[LAB_STAGE_D2H]);
        double compute = length_s(&stages[LAB_STAGE_COMPUTE]);
        if (copies > 0 && compute > 0)
            logs[n++] = log(compute / copies);
    }
    size_t size = (n + VALUES_MAX - 1) / VALUES_MAX;
    if (size > 1) {
        n /= size;
        for (size_t i = 0; i < n; i++)
            logs[i] = lab_stats_mean(logs + i * size, size);
    }
    if (n >= VALUES_MIN) {
        double effective = lab_stats_effective_size(logs, n), spread = lab_stats_stddev(logs, n);
        times->variance = spread * spread / effective;
        times->freedom = effective > 2 ? effective - 1 : (double)NAN;
    }
    lab_mem_free(logs);
}

static struct lab_crossover_times from_spans(const struct lab_study_rank *rank, double samples) {
    size_t count = rank->iteration_count;
    struct cover compute = {.until_ns = INT64_MIN};
    for (size_t i = 0; i < count; i++) {
        const struct lab_span *span = &rank->iterations[i].stages[LAB_STAGE_COMPUTE];
        if (exists(span))
            add_span(&compute, span->start_ns, span->end_ns);
    }
    int64_t copies_ns = copies_busy_ns(rank->iterations, count);
    if (compute.busy_ns + copies_ns == 0)
        return nothing; /* it keeps no stages */
    struct lab_crossover_times times = nothing;
    times.compute_s = 1e-9 * (double)compute.busy_ns / (double)count / samples;
    times.copy_s = 1e-9 * (double)copies_ns / (double)count / samples;
    times.source = LAB_CROSSOVER_SPANS;
    set_variance(&times, rank->iterations, count);
    return times;
}

/* --- from a trace --- */

static bool is_copy(const struct lab_trace_copy *copy) {
    return copy->kind == LAB_TRACE_COPY_H2D || copy->kind == LAB_TRACE_COPY_D2H;
}

static double iterations_of(const struct lab_trace *trace, size_t inputs) {
    for (size_t i = 0; i < trace->note_count; i++)
        if (lab_str_equal(trace->notes[i].name, LAB_TRACE_NOTE_ITERATIONS)) {
            double count = strtod(trace->notes[i].value, NULL);
            if (count >= 1)
                return count;
        }
    return (double)inputs; /* a copy to the device for each, as pipelines do */
}

static struct lab_crossover_times from_trace(const struct lab_trace *trace, double samples) {
    int64_t from_ns = INT64_MIN, until_ns = INT64_MAX;
    for (size_t i = 0; i < trace->range_count; i++)
        if (lab_str_equal(trace->ranges[i].text, LAB_TRACE_WINDOW) &&
            trace->ranges[i].end_ns > trace->ranges[i].start_ns) {
            from_ns = trace->ranges[i].start_ns;
            until_ns = trace->ranges[i].end_ns;
        }
    struct cover compute = {.until_ns = INT64_MIN}, copies = {.until_ns = INT64_MIN};
    size_t inputs = 0;
    for (size_t i = 0; i < trace->kernel_count; i++)
        if (trace->kernels[i].start_ns >= from_ns && trace->kernels[i].end_ns <= until_ns)
            add_span(&compute, trace->kernels[i].start_ns, trace->kernels[i].end_ns);
    for (size_t i = 0; i < trace->copy_count; i++) {
        const struct lab_trace_copy *copy = &trace->copies[i];
        if (!is_copy(copy) || copy->start_ns < from_ns || copy->end_ns > until_ns)
            continue;
        add_span(&copies, copy->start_ns, copy->end_ns);
        inputs += copy->kind == LAB_TRACE_COPY_H2D;
    }
    double count = iterations_of(trace, inputs);
    if (compute.busy_ns + copies.busy_ns == 0 || !(count > 0))
        return nothing;
    struct lab_crossover_times times = nothing;
    times.compute_s = 1e-9 * (double)compute.busy_ns / count / samples;
    times.copy_s = 1e-9 * (double)copies.busy_ns / count / samples;
    times.source = LAB_CROSSOVER_TRACE;
    return times;
}

/* --- from the run's own figures --- */

/* Copies in both directions one after the other: how far they overlap isn't kept. */
static struct lab_crossover_times from_timings(const struct lab_study_run *run, double samples) {
    double utilization = run->result->compute_utilization;
    double in = 1e9 * run->result->h2d_gb_per_s;
    double out = 1e9 * run->result->d2h_gb_per_s;
    double copy_s = 0, iteration_s = samples / run->rate;
    if (run->work.h2d_bytes > 0)
        copy_s += run->work.h2d_bytes / in;
    if (run->work.d2h_bytes > 0)
        copy_s += run->work.d2h_bytes / out;
    if (isnan(utilization) || !isfinite(copy_s) || !(iteration_s > 0))
        return nothing;
    struct lab_crossover_times times = nothing;
    times.compute_s = utilization * iteration_s / samples;
    times.copy_s = copy_s / samples;
    times.source = LAB_CROSSOVER_TIMINGS;
    return times;
}

struct lab_crossover_times lab_crossover_times_make(const struct lab_study_run *run) {
    double samples = run->work.samples > 0 ? run->work.samples : 1;
    struct lab_crossover_times times = nothing;
    if (run->rank_count == 1 && run->ranks[0].iterations && run->ranks[0].iteration_count > 0)
        times = from_spans(&run->ranks[0], samples);
    if (times.source == LAB_CROSSOVER_NONE && run->trace)
        times = from_trace(run->trace, samples);
    if (times.source == LAB_CROSSOVER_NONE)
        times = from_timings(run, samples);
    return times;
}
