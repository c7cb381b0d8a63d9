/*
 * history.h: how long runs take, from runs that are done: those of the study itself, and of this
 * user's earlier studies on the same machine.
 */
#ifndef LAB_RUN_HISTORY_H
#define LAB_RUN_HISTORY_H

#include "base/err.h"
#include "model/run.h"

struct lab_history;

/* Reads at most the newest `max_studies` known ones of this machine; those that can't be read are
 * passed over. `own` is the folder of one that isn't opened, though it counts: the caller has it
 * open and adds its runs. NULL = none. */
struct lab_history *lab_history_open(uint64_t machine_identity, int max_studies, const char *own);
void lab_history_close(struct lab_history *history); /* accepts NULL */

/* Adds what a run took, from begin to end; runs that aren't done are passed over. */
void lab_history_add(struct lab_history *history, const struct lab_run *run);

enum lab_history_basis {
    LAB_HISTORY_NONE,    /* nothing like it has run */
    LAB_HISTORY_SAME,    /* the same work on the same ranks: median of its durations */
    LAB_HISTORY_SCALED,  /* the same options, other counts or places: set-up + time × iterations */
    LAB_HISTORY_SIMILAR, /* the same workload: median time of all its runs */
};

/* Expected duration in seconds, NaN with NONE. */
double lab_history_expect(const struct lab_history *history, const struct lab_run *run,
                          enum lab_history_basis *ret_basis);

struct lab_estimate {
    double left_s;    /* of all runs that aren't done, cool-downs excluded; NaN = unknown */
    int unknown;      /* runs that nothing is known about; counted as the mean of the known */
    double elapsed_s; /* Σ durations of done runs */
    int guessed;      /* runs that only other work than their own tells about; unknown ones too */
    /* No more is guessed than is done or known: only then is left_s worth showing without a word
     * about where it comes from. */
    bool fair;
};

/*
 * What is left of a study. A running run counts by its own progress once it is past 5 % of its
 * measured iterations, before that from history. `max_workers` runs share the time.
 */
struct lab_estimate lab_history_estimate(const struct lab_history *history,
                                         const struct lab_run *runs, int count,
                                         const struct lab_run_progress *progress,
                                         int progress_count, int64_t now_ns, int max_workers);

#endif
