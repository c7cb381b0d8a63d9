/*
 * measure.h: the one measuring loop. `bench` uses it today; studies and the tuner use the same one,
 * so that a figure means the same wherever it is shown.
 *
 * It asks a subject for iterations in chunks, drops the warm-up by test rather than by count,
 * and stops when the median is known precisely enough or its limit is reached. Several subjects are
 * interleaved chunk by chunk in a random order, so that drift hits all alike.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "model/iteration.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_subject {
    const char *name;
    /* `count` iterations in one chunk; the device is idle before and after */
    int (*run)(void *state, int count, struct lab_iteration *records, struct lab_err *err);
    void *state;
    /*
     * optional: called before every iteration, outside of its time, to empty caches for instance.
     * Each iteration is then run alone and judged by its latency. It leaves the device idle.
     */
    int (*before)(void *state, struct lab_err *err);
    bool apart; /* iterations don't follow each other: what lies between them isn't measured */
};

enum lab_measure_phase { LAB_MEASURE_WARMUP, LAB_MEASURE_MEASURE };

struct lab_measure_progress {
    enum lab_measure_phase phase;
    const char *name; /* the subject that just ran; median, precision and iterations are its own */
    double fraction;  /* of all subjects' expected work, 0 to 1; never goes back within a phase */
    double left_s;    /* expected; NaN = unknown */
    double median_s;  /* of what was measured so far; NaN = nothing yet */
    double precision; /* relative half width of its interval so far; NaN = unknown */
    int64_t iterations; /* in this phase */
};

struct lab_measure_plan {
    double precision;       /* stop when the median's interval is ± this share of it (0.01) */
    double confidence;      /* of intervals (0.95) */
    double min_time_s;      /* measured at least so long (0.5) */
    int64_t min_iterations; /* and so many iterations (20) */
    double limit_s;         /* wall time of all subjects, warm-up (≤ a third) included (15) */
    int64_t iterations;     /* > 0: exactly so many of each subject, no stopping rule or limit */
    double duration_s;      /* > 0: so long after the warm-up instead, no stopping rule or limit */
    int64_t warmup_iterations; /* ≥ 0: exactly so many; -1: by test */
    int64_t max_iterations;    /* kept at most, whatever time is left; 0 = 1,000,000 (64 MB) */
    double chunk_s;            /* how long a chunk should take (0.1) */
    int64_t chunk_iterations;  /* > 0: a chunk has exactly so many instead, but for the last */
    uint64_t seed;             /* of the order of subjects */
    int parent; /* a process that, with its children, isn't what else runs here; 0 = none */
    const struct lab_clock
        *clock; /* NULL = the machine's; with any other, conditions are unknown */
    /* optional: how fast the device's clock runs now, in MHz; asked after each chunk, 0 =
     * unknown */
    double (*clock_mhz)(void *state);
    void *clock_state;
    /* optional; called between chunks. Returning true stops the measurement: what there is, is
     * used */
    bool (*progress)(const struct lab_measure_progress *progress, void *state);
    void *progress_state;
    /*
     * optional: asked before each chunk for its size, where this loop would take `own`; at least
     * 1. For loops side by side whose chunks must be the same. They count `iterations` and
     * `warmup_iterations`: a limit of time would end each after another number. -1 ends the
     * measurement
     */
    int (*agree)(void *state, int64_t own, int64_t *ret_size, struct lab_err *err);
    void *agree_state;
};

#define LAB_MEASURE_PLAN                                                                           \
    ((struct lab_measure_plan){.precision = 0.01,                                                  \
                               .confidence = 0.95,                                                 \
                               .min_time_s = 0.5,                                                  \
                               .min_iterations = 20,                                               \
                               .limit_s = 15,                                                      \
                               .warmup_iterations = -1,                                            \
                               .chunk_s = 0.1,                                                     \
                               .seed = 42})

enum lab_measure_stop {
    LAB_MEASURE_PRECISE, /* the interval is narrow enough */
    LAB_MEASURE_COUNTED, /* the iterations, or the time, asked for are done */
    LAB_MEASURE_LIMIT,   /* the limit came first */
    LAB_MEASURE_STOPPED, /* the user, through progress */
};

struct lab_summary { /* of one series of values; seconds in a measurement */
    size_t n;
    double mean, stddev, median, mad, cv; /* mad is scaled */
    double min, max, q25, q75, p90, p95, p99;
    struct lab_interval
        median_interval; /* by ranks, of the values that are independent of their neighbours */
    double effective_n;
    struct lab_outlier_count outliers;
};

/* What else happened on this machine meanwhile. */
struct lab_conditions {
    double load_before; /* runnable threads other than ours per CPU, over the minute before; NaN
                           = unknown, and in a study */
    double foreign_cpu; /* share of the machine's CPU time that others took during it; NaN */
    double steal;       /* share that the hypervisor took; NaN = unknown */
    double pressure_cpu, pressure_memory; /* PSI "some" share of the time; NaN = unknown */
};

enum lab_measure_warning {
    LAB_WARN_OUTLIERS = 1,    /* severe Tukey outliers: a disturbed machine */
    LAB_WARN_SLOW_FIRST = 2,  /* the very first iteration took far longer than the rest */
    LAB_WARN_NOT_STEADY = 4,  /* no steady state was found within the warm-up budget */
    LAB_WARN_NOT_PRECISE = 8, /* the limit came before the precision */
    LAB_WARN_LOAD = 16,       /* others use this machine */
    LAB_WARN_STEAL = 32,      /* the hypervisor took CPU time away */
    LAB_WARN_SHORT = 64,      /* iterations near the clock's resolution */
    LAB_WARN_CLOCK = 128,     /* the device's clock changed during the run */
};

struct lab_measurement {
    const char *name;
    struct lab_iteration *iterations; /* measured ones, in order, in the arena */
    size_t count;
    int *chunk_ends; /* index behind each chunk's last iteration */
    int chunk_count;
    int *round_ends; /* index behind the last iteration of each round; subjects share the rounds */
    int round_count;
    double clock_min_mhz, clock_max_mhz; /* seen after its chunks; NaN = unknown */
    int64_t warmup_iterations;           /* dropped */
    double warmup_s;
    double first_s; /* the very first iteration, warm-up or not */
    bool steady;
    double wall_s; /* Σ over chunks of (last end − first start) */
    /* docs/NUMBERS.md; intervals pair iterations within a chunk only */
    struct lab_summary latency, interval;
    struct lab_summary stages[LAB_STAGE_COUNT]; /* n = 0: no such stage */
    double overlap; /* share of copy time under compute; NaN = no copies or compute */
    enum lab_measure_stop stop;
    double precision; /* reached */
    bool simulated; /* by a clock of its own: what else happens on this machine has no part in it */
    struct lab_conditions conditions;
    unsigned warnings; /* of enum lab_measure_warning */
};

/*
 * Measures all subjects; `ret` has `count` of them, untouched on failure. What the subject's own
 * run says on failure is passed on, with its name in front. Interleaved subjects go on until all of
 * them are precise. A measurement that the user stopped during the warm-up has no iterations (count
 * 0), and its values are NaN.
 */
int lab_measure(const struct lab_measure_plan *plan, const struct lab_subject *subjects, int count,
                struct lab_arena *arena, struct lab_measurement *ret, struct lab_err *err);

/* The series whose median decides when it is enough: intervals, or latencies where chunks are
 * single iterations and so have no intervals. */
const struct lab_summary *lab_measure_primary(const struct lab_measurement *measurement);

struct lab_work { /* what one iteration does, counted from its definition; 0 = none */
    double samples;
    double flops, memory_bytes; /* on the device */
    double h2d_bytes, d2h_bytes;
};

struct lab_rates { /* docs/NUMBERS.md defines each; NaN = there is none */
    double iterations_per_s, samples_per_s;
    double flops_per_s, memory_bytes_per_s;  /* over the whole time */
    double copy_bytes_per_s;                 /* both directions, over the whole time */
    double h2d_bytes_per_s, d2h_bytes_per_s; /* while the stage runs, at its median */
    double compute_share;                    /* of the time */
};

struct lab_rates lab_measure_rates(const struct lab_measurement *measurement,
                                   const struct lab_work *work);

/*
 * How well a rate over the whole time is known, within this run: as well as the primary series'
 * median, whose interval is turned round and laid around the rate. NaN = unknown.
 */
struct lab_interval lab_measure_rate_interval(const struct lab_measurement *measurement,
                                              double rate);

/* The series' figures; x in the order of time. */
struct lab_summary lab_summarize(const double *x, size_t n, double confidence);

/*
 * "3 of 120 measured times (2.5 %) are severe outliers, …": appends the sentence for one warning,
 * with its figures and what to do, without a full stop. Nothing for a warning that wasn't given.
 */
void lab_measure_explain(const struct lab_measurement *measurement,
                         enum lab_measure_warning warning, struct lab_str *out);
