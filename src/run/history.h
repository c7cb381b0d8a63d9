/*
 * history.h: how long runs take, from runs that are done: those of the study itself, and of this
 * user's earlier studies on the same machine.
 */
#pragma once

#include "base/err.h"
#include "model/run.h"

struct lab_history;

/* Reads at most the newest `max_studies` known ones of this machine; those that can't be read are
 * passed over. `own` is the folder of one that isn't opened, though it counts: the caller has it
 * open and adds its runs. NULL = none. */
struct lab_history *lab_history_open(uint64_t machine_identity, int max_studies, const char *own);
void lab_history_close(struct lab_history *history); /* accepts NULL */

/* Adds what a run of the study took, from begin to end; one that timed out counts with its limit,
 * others that aren't done are passed over. It outweighs runs of earlier studies. */
void lab_history_add(struct lab_history *history, const struct lab_run *run);
/* The same of a run that isn't the study's. */
void lab_history_add_earlier(struct lab_history *history, const struct lab_run *run);
/* The same of a short run that was measured for the estimate. */
void lab_history_add_brief(struct lab_history *history, const struct lab_run *run);
/* How many of those there are, and how many others. NULL = none. */
int lab_history_count(const struct lab_history *history, int *ret_others);

/* How a run's time is known; the better, the lower. */
enum lab_history_basis {
    LAB_HISTORY_NONE,    /* nothing like it has run */
    LAB_HISTORY_SAME,    /* the same work on the same ranks: median of its durations */
    LAB_HISTORY_SCALED,  /* the same options, other counts or places: set-up + time × iterations */
    LAB_HISTORY_WORK,    /* other options: by what an iteration computes and moves */
    LAB_HISTORY_SIMILAR, /* the same workload, whose work nobody counts: mean of its runs */
};

/* Expected duration in seconds, NaN with NONE. */
double lab_history_expect(const struct lab_history *history, const struct lab_run *run,
                          enum lab_history_basis *ret_basis);

/* Seconds that an iteration of these options takes on the device's clock, which of a simulated one
 * is not ours; NaN = unknown. */
double lab_history_device_step_s(const struct lab_history *history, const struct lab_run *run);

void lab_history_add_device_step(struct lab_history *history, const struct lab_run *run,
                                 double seconds);

/* Of its devices, mean over a run's time: of the same options, else of so many ranks of the
 * workload; NaN = no earlier run measured it. */
double lab_history_power_w(const struct lab_history *history, const struct lab_run *run);

/* What one of its iterations computes and moves, to compare with others of the workload; 0 =
 * unknown. */
double lab_history_work(const struct lab_history *history, const struct lab_run *run);

struct lab_estimate {
    double left_s;    /* of all runs that aren't done, cool-downs excluded; NaN = unknown */
    int unknown;      /* runs that nothing is known about; counted as the mean of the known */
    double elapsed_s; /* Σ durations of done runs */
    int guessed;      /* runs estimated from other workloads; unknown ones too */
};

/*
 * Time left of a study. A running run counts by its own progress once it is past 5 % of its
 * measured iterations, before that from history. `max_workers` runs share the time.
 */
struct lab_estimate lab_history_estimate(const struct lab_history *history,
                                         const struct lab_run *runs, int count,
                                         const struct lab_run_progress *progress,
                                         int progress_count, int64_t now_ns, int max_workers);
