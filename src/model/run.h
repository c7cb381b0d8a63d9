/*
 * model/run.h: a run as it is kept: what was asked for, what became of it. Strings live in the
 * arena of its maker.
 */
#pragma once

#include "base/hint.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum lab_run_state {
    LAB_RUN_PLANNED,
    LAB_RUN_RUNNING, /* found in a file that no runner holds: it was interrupted */
    LAB_RUN_DONE,
    LAB_RUN_FAILED,
    LAB_RUN_STATE_COUNT,
};

struct lab_result; /* model/result.h */

struct lab_run_rank {
    int gpu_id;         /* index into the selector's list */
    const char *device; /* its member name: "cpu:0/2.1" */
    int numa_node;
};

/* Which GPU a device is on, as `cuda:N` counts, from its member name: "cuda:1", "cuda:0/4.2"; of a
 * simulated machine's likewise: "sim:l40s-10:3". */
enum { LAB_RUN_NO_GPU = -1, LAB_RUN_GPU_BY_ID = -2 /* "cuda:MIG-…": named by its UUID */ };
int lab_run_device_gpu(const char *device);
bool lab_run_device_is_simulated(const char *device);
/* "GPU 3" of "cuda:3" and "sim:l40s-10:3"; slices and others by their own names. */
const char *lab_run_device_title(const char *device, struct lab_arena *arena);
bool lab_run_uses_gpu(const struct lab_run_rank *ranks, int count); /* any of them */

#define LAB_RUN_SPREAD "spread" /* the key in `test` */

struct lab_run {
    int64_t number; /* in the file, from 1 */
    const char *id; /* "gpu0_numa1_vit32x6x512" */
    uint64_t identity;
    int position; /* in the planned order, from 0 */
    int repeat;
    const char *workload, *label;
    const char *options; /* JSON: every key of the workload */
    const char *series;  /* JSON: names */
    const char *test;    /* JSON: num_samples, warmup_samples, timeout_s, … of the study */
    int64_t iterations, warmup_iterations; /* planned, of each rank */
    const struct lab_run_rank *ranks;
    int rank_count;
    enum lab_run_state state;
    int attempts;
    int64_t epoch;            /* which the times belong to; 0 = never started */
    int64_t start_ns, end_ns; /* CLOCK_MONOTONIC of that epoch */
    int64_t start_wall_ns;    /* since 1970 */
    int exit_code;            /* -1 = a signal */
    const char *error;        /* "" = none */
    enum lab_hint_id hint;    /* what a user can do about it; files before version 4 have none */
    const struct lab_result *result; /* of one that is done; NULL = none */
    bool concurrent;                 /* shared the machine with other runs of the study */
    /* of a run that is done, as in its result: how much it did per second, with the interval within
     * the run */
    double rate, rate_low, rate_high; /* NaN = none */
    const char *rate_unit;            /* "samples/s", "iterations/s", LAB_RATE_…; "" = none */
    bool valid;                       /* false: success, but the figures must not be used */
    /* Its study spreads points over devices: where it ran was chosen as it began, and is no
     * setting. Kept in `test`. */
    bool spread;
};

/* Progress of a run, as its runner last stored it, for other processes. */
struct lab_run_progress {
    int64_t run;         /* number */
    const char *phase;   /* "warm-up"; "" = none known */
    int64_t done, total; /* iterations of the phase, of the slowest rank; total 0 = unknown */
    int64_t time_ns;     /* when */
};

/* Of the run with that number; NULL = nothing was heard. */
const struct lab_run_progress *lab_run_find_progress(const struct lab_run_progress *progress,
                                                     int count, int64_t number);

/* Seconds that a thing took, at this rate, which the run did once: a program without a rate of its
 * own. NaN = it has a rate instead. */
double lab_run_once_s(const struct lab_run *run, double rate);

/* Its result where it is done, else lab_result_none. */
const struct lab_result *lab_run_result(const struct lab_run *run);

const char *lab_run_state_name(enum lab_run_state state); /* "planned", … */

/* What the error of a run begins with that took longer than its limit. */
#define LAB_RUN_TIMED_OUT "timed out after "

/* --- warnings ---
 * Results keep sentences: those who write them begin with these words, and reports find the kind by
 * them, here and nowhere else. */

#define LAB_WARNS_OUTLIERS "severe outliers"
#define LAB_WARNS_LOAD     "other processes took "
#define LAB_WARNS_QUEUE    "other threads per CPU " /* after a number */
#define LAB_WARNS_STEAL    "the hypervisor took "
#define LAB_WARNS_TUNING   "tuning: " /* before a warning of the tuner's */

enum lab_run_warning {
    LAB_RUN_WARNING_OTHER,
    LAB_RUN_WARNING_OUTLIERS,
    LAB_RUN_WARNING_LOAD,      /* others used the CPUs */
    LAB_RUN_WARNING_STEAL,     /* other virtual machines did */
    LAB_RUN_WARNING_FEW,       /* iterations: made by reports, no sentence of a run */
    LAB_RUN_WARNING_NO_METRIC, /* of a program; what to do follows, and is never cut off */
};

/* Of a sentence without its rank (lab_run_warning_of_rank). */
enum lab_run_warning lab_run_warning_kind(const char *sentence);
/* Whether it is about times and rates: what a program computes doesn't depend on it. */
bool lab_run_warning_is_of_times(enum lab_run_warning kind);
/* The sentence behind "rank 3: "; itself where no rank said it. */
const char *lab_run_warning_of_rank(const char *sentence);
