/* measure_explain.c: when a measurement deserves a warning, and what the warning says. */
#include "base/mem.h"
#include "measure/measure_internal.h"
#include "model/run.h"

#include <math.h>

/* A share of severe outliers that moves the mean and the 99th percentile; a rare one among
 * thousands of iterations is ordinary. */
#define OUTLIER_SHARE 0.01
/* The most by which they can move the mean, share times length; half of the default precision. */
#define OUTLIER_EFFECT 0.005
/* Where the rest is very even, or few, outliers are near it; within so many times the median they
 * are no news. Of groups, a clock that steps down is one. */
#define OUTLIER_DISTANCE 1.5
#define GROUP_DISTANCE   1.2
/* So many of them are no outliers but a second kind of iteration; one or two are never a kind. */
#define OUTLIER_SHARE_MOST 0.1
#define GROUP_LEAST        3
/* Cold caches and page faults double the first iteration now and then; three times is set-up. */
#define SLOW_FIRST_FACTOR 3.0
/* One that the warm-up took away is told only where a person would have felt it. */
#define SLOW_FIRST_FELT_S 0.1
/* One twentieth of the machine: on two cores a tenth of one, enough to be seen in a median. */
#define FOREIGN_CPU_MOST 0.05
/* Runnable threads per CPU before the start, where CPU time itself is unknown. */
#define LOAD_MOST 0.25
/* One per cent is the default precision itself. */
#define STEAL_MOST 0.01
/* Times go with the clock, and configurations are often as near to each other. */
#define CLOCK_MOST 0.05
/* Reading the clock twice takes about 50 ns, a fortieth of this. */
#define SHORT_S 2e-6

static size_t severe(const struct lab_summary *s) {
    return s->outliers.low_severe + s->outliers.high_severe;
}

static double severe_share(const struct lab_summary *s) {
    return (double)severe(s) / (double)s->n;
}

static bool is_short(const struct lab_summary *s) {
    return s->median < SHORT_S;
}

static bool has_groups(const struct lab_summary *s) {
    return severe_share(s) > OUTLIER_SHARE_MOST && severe(s) >= GROUP_LEAST;
}

static double above_median(const struct lab_summary *s) {
    return s->outliers.high_severe > 0 ? s->max / s->median : 1;
}

static double below_median(const struct lab_summary *s) {
    return s->outliers.low_severe > 0 ? s->min / s->median : 1;
}

static bool has_outliers(const struct lab_summary *s) {
    double above = above_median(s), below = below_median(s),
           least = has_groups(s) ? GROUP_DISTANCE : OUTLIER_DISTANCE;
    /* of iterations as short as the clock's steps, any are outliers */
    return severe_share(s) >= OUTLIER_SHARE && (above > least || below < 1 / least) &&
           severe_share(s) * fmax(above - 1, 1 - below) > OUTLIER_EFFECT && !is_short(s);
}

static bool is_loaded(const struct lab_conditions *c) {
    return isnan(c->foreign_cpu) ? c->load_before > LOAD_MOST : c->foreign_cpu > FOREIGN_CPU_MOST;
}

unsigned lab_measure_warn(const struct lab_measurement *m) {
    const struct lab_summary *primary = lab_measure_primary(m);
    unsigned warnings = 0;
    if (has_outliers(primary))
        warnings |= LAB_WARN_OUTLIERS;
    /* a first one that is too short to be timed tells nothing */
    if (m->first_s > SLOW_FIRST_FACTOR * m->latency.median &&
        m->first_s >= (m->warmup_iterations > 0 ? SLOW_FIRST_FELT_S : SHORT_S))
        warnings |= LAB_WARN_SLOW_FIRST;
    if (m->count > 0 && !m->steady)
        warnings |= LAB_WARN_NOT_STEADY;
    if (m->stop == LAB_MEASURE_LIMIT)
        warnings |= LAB_WARN_NOT_PRECISE;
    if (is_loaded(&m->conditions) && !m->simulated)
        warnings |= LAB_WARN_LOAD;
    if (m->conditions.steal > STEAL_MOST && !m->simulated)
        warnings |= LAB_WARN_STEAL;
    if (is_short(primary))
        warnings |= LAB_WARN_SHORT;
    if (m->clock_max_mhz - m->clock_min_mhz > CLOCK_MOST * m->clock_max_mhz) /* not where unknown */
        warnings |= LAB_WARN_CLOCK;
    return warnings;
}

static void explain_outliers(const struct lab_measurement *m, struct lab_str *out) {
    const struct lab_summary *s = lab_measure_primary(m);
    size_t count = severe(s);
    /* times, since intervals are fewer than iterations */
    lab_str_printf(out, LAB_WARNS_OUTLIERS ": %zu of %zu measured times (%.1f%%), ", count, s->n,
                   100 * severe_share(s));
    /* the one that is farther from it: that one made it a warning */
    if (above_median(s) * below_median(s) >= 1)
        lab_str_printf(out, "the longest %.1f × the median", s->max / s->median);
    else
        lab_str_printf(out, "the shortest %.2f × the median", s->min / s->median);
    lab_str_add(out, m->simulated && has_groups(s) ? ": times fall into groups (simulated)"
                     : m->simulated                ? " (simulated noise)"
                     : has_groups(s)
                         ? ": times fall into groups; clocks, placement or a neighbour switch "
                           "between them"
                         : ": something else ran; try again on a quiet machine");
}

static void explain_slow_first(const struct lab_measurement *m, struct lab_str *out) {
    lab_str_add(out, "the first iteration took ");
    lab_str_add_time(out, m->first_s);
    lab_str_printf(out, ", %.1f × the median: it set up code, memory or caches",
                   m->first_s / m->latency.median);
    lab_str_add(out, m->warmup_iterations > 0 ? "; it was part of the warm-up and isn't counted"
                                              : " and is counted; warm up first to leave it out");
}

/* The decisive series' drift, computed again from the records. */
static double drift_of(const struct lab_measurement *m) {
    LAB_AUTO_FREE double *x = lab_mem_resize(NULL, m->count, sizeof *x);
    size_t n = lab_measure_by_intervals(m->interval.n, m->count)
                   ? lab_measure_intervals(m->iterations, m->chunk_ends, m->chunk_count, x)
                   : lab_measure_latencies(m->iterations, m->count, x);
    return lab_measure_drift(x, n);
}

static void explain_not_steady(const struct lab_measurement *m, struct lab_str *out) {
    double drift = drift_of(m);
    if (drift != 0) {
        lab_str_printf(out,
                       "iterations became %.1f%% %s from the first half to the second: clocks, "
                       "temperature, memory or another load changed; warm up longer",
                       100 * fabs(drift), drift > 0 ? "longer" : "shorter");
        return;
    }
    lab_str_add(out, "no steady state within ");
    lab_str_add_time(out, m->warmup_s);
    lab_str_printf(out,
                   " and %lld iterations of warm-up: times still changed or varied much; "
                   "allow more time%s",
                   (long long)m->warmup_iterations,
                   m->simulated ? "" : " or try again on a quiet machine");
}

static void explain_not_precise(const struct lab_measurement *m, struct lab_str *out) {
    if (isnan(m->precision))
        lab_str_printf(out, "time limit after %zu iteration%s, too few to estimate the spread",
                       m->count, m->count == 1 ? "" : "s");
    else
        lab_str_printf(out, "time limit after %zu iterations, with the median known to ±%.2g%%",
                       m->count, 100 * m->precision);
    lab_str_add(out, "; a longer limit gives more precision");
}

static void explain_load(const struct lab_measurement *m, struct lab_str *out) {
    const struct lab_conditions *c = &m->conditions;
    if (isnan(c->foreign_cpu))
        lab_str_printf(out, "%.2f " LAB_WARNS_QUEUE "were ready to run before it began",
                       c->load_before);
    else
        lab_str_printf(out, LAB_WARNS_LOAD "%.1f%% of the machine's CPU time during the run",
                       100 * c->foreign_cpu);
    lab_str_add(out, "; try again on a quiet machine");
}

void lab_measure_explain(const struct lab_measurement *m, enum lab_measure_warning warning,
                         struct lab_str *out) {
    if (!(m->warnings & (unsigned)warning))
        return;
    switch (warning) {
    case LAB_WARN_OUTLIERS:
        explain_outliers(m, out);
        break;
    case LAB_WARN_SLOW_FIRST:
        explain_slow_first(m, out);
        break;
    case LAB_WARN_NOT_STEADY:
        explain_not_steady(m, out);
        break;
    case LAB_WARN_NOT_PRECISE:
        explain_not_precise(m, out);
        break;
    case LAB_WARN_LOAD:
        explain_load(m, out);
        break;
    case LAB_WARN_STEAL:
        lab_str_printf(out,
                       LAB_WARNS_STEAL "%.1f%% of the machine's CPU time; values of a shared "
                                       "virtual machine vary with its neighbours",
                       100 * m->conditions.steal);
        break;
    case LAB_WARN_CLOCK:
        lab_str_printf(out,
                       "the device's clock varied from %.0f to %.0f MHz during the run; lock the "
                       "clock, or let the device cool",
                       m->clock_min_mhz, m->clock_max_mhz);
        break;
    case LAB_WARN_SHORT:
        lab_str_add(out, "iterations take ");
        lab_str_add_time(out, lab_measure_primary(m)->median);
        lab_str_add(out, ", near the time that reading the clock takes; make them larger");
        break;
    }
}
