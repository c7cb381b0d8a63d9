/*
 * straggler.h: which GPU or rank of a job the others wait for, from samples alone. For straggler.c.
 *
 * Units are compared with each other: the job's GPUs, or where it has fewer than two of them its
 * ranks, which are processes. There are two kinds of evidence:
 *
 * A deviation is statistical. In each window of time a unit's value is compared with the mean of
 * its peers, so that what happens to all of them cancels out. Healthy GPUs differ as well: a unit
 * deviates where its mean over the windows lies outside of what the spread between its peers
 * allows. In a synchronous job all ranks wait for the same one. So the one that differs is the one
 * that is waited for, if its peers are a majority and the direction fits.
 *
 * A cause is physical and needs no majority: throttled clocks, a narrower PCIe link, a remote NUMA
 * node, no CPU to run on, a co-located process. Two units that merely differ name nobody. Neither
 * does CPU time: a rank has more of it if it works longer, or if it spins in a barrier where its
 * peers do not arrive, and none if it is late since it sleeps. So equal CPU time clears nobody. A
 * rank that sleeps has time to spare: its wait for a CPU names it only if it never does.
 */
#pragma once

#include "analysis/analysis_build.h"
#include "analysis/recording/recording_stats.h"

#include <stdint.h>

enum lab_straggler_metric {
    LAB_STRAGGLER_CLOCK,
    LAB_STRAGGLER_UTILIZATION,
    LAB_STRAGGLER_SM,
    LAB_STRAGGLER_POWER,
    LAB_STRAGGLER_PCIE,
    LAB_STRAGGLER_SHARE, /* of a GPU's multiprocessors that a process had */
    LAB_STRAGGLER_CPU,
    LAB_STRAGGLER_METRICS
};

struct lab_straggler_kind {
    const char *key, *title, *noun; /* "sm_clock", "SM clock", "SM clock" */
    int metric;                     /* of a GPU's track; -1 = of processes */
    double spread;                  /* between healthy units, as a share: what is expected */
    double least; /* in the metric's unit: where peers have less on average, nothing is compared */
    /* what a unit does whose value is lower or higher than its peers'; NULL = it isn't told */
    const char *low, *high;
};

extern const struct lab_straggler_kind lab_straggler_kinds[LAB_STRAGGLER_METRICS];

struct lab_straggler_unit {
    const char *name;                       /* "GPU 5 (rank 5)", "rank 3 (pid 812)" */
    const struct lab_track *track;          /* NULL = a rank without a GPU of its own */
    int entity;                             /* the track's number in the recording; -1 */
    int32_t pid;                            /* of its first process; 0 = unknown */
    const char *ranks;                      /* "5", "0, 1"; NULL = unknown */
    double *windows[LAB_STRAGGLER_METRICS]; /* means; NaN = nothing was read */
    double mean[LAB_STRAGGLER_METRICS];     /* NaN = unknown, as all below */
    double queue;                           /* its wait for a CPU, of that and its run time */
    double active;                          /* of the time: these two; it slept the rest */
    double remote;    /* share of the lists in which it was on a remote NUMA node */
    double shared_by; /* share of the lists with a process of another job */
    double pcie_generation, pcie_width, pcie_rate; /* rate: both directions, B/s */
    double throttled;                              /* share of time, by the reason below */
    const struct lab_clock_reason *reason;         /* that held longest; NULL = none */
    int gpu_node, cpu_node;                        /* -1 = unknown */
    const char *advice;                            /* that binds a remote process; NULL = none */
    int32_t stranger;                              /* pid of that other job's process */
};

struct lab_straggler_units {
    struct lab_straggler_unit *items;
    int count;
    bool processes; /* they are ranks, not GPUs */
    int64_t start_ns, end_ns;
    double window_s;
    int windows;
    const char *const *notes;
};

/* The units of a recording, with all that is known of each. */
void lab_straggler_units_make(const struct lab_recording *recording,
                              const struct lab_recording_stats_config *config,
                              struct lab_arena *arena, struct lab_straggler_units *ret_units);

/* --- deviations --- */

struct lab_straggler_deviation { /* of one unit from its peers */
    bool odd;                    /* it deviates: no reference for others */
    double effect, low, high;    /* shares; 95% interval over the windows */
};

struct lab_straggler_comparison { /* of one metric */
    bool tested;
    struct lab_straggler_deviation *units;
    double peers;  /* mean of those that don't deviate */
    double spread; /* between them, standard deviation as a share */
    double limit;  /* a unit that deviates by as much is found with 80% power */
};

#define LAB_STRAGGLER_WINDOWS 8 /* fewer are too few */

/*
 * `family`: how many metrics are compared in all; no unit is wrongly called odd in any of them in
 * 95% of recordings. `windows[unit][w]`; a window counts where every unit has a value. Of two units
 * none is odd by itself: both are marked.
 *
 * The test is Student's t of a unit against its peers, whose spread is combined with the expected
 * one as if that had come from PRIOR further units (a moderated t test: Smyth 2004). Several
 * deviating units are looked for as in the generalised extreme studentised deviate test (Rosner
 * 1983): the most extreme is removed, the rest tested again, and the largest number counts for
 * which the last one is significant. Fewer than half may be odd.
 */
void lab_straggler_compare(double *const *windows, int units, int count, double spread, int family,
                           struct lab_arena *arena, struct lab_straggler_comparison *ret);

/* --- causes --- */

/* What singles this unit out, a phrase each, NULL-terminated; `ret_notes` gets those that don't
 * count, with why: the job doesn't use what is slow, or the unit may itself wait for others. */
const char *const *lab_straggler_causes(const struct lab_straggler_units *units, int unit,
                                        const char *const **ret_notes, struct lab_arena *arena);
