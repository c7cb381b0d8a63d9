/*
 * runner.h: carries the runs of a plan out, each in worker processes of its own, and keeps what
 * they say. A worker can do nothing that harms the study: whatever it does ends as a done or a
 * failed run.
 *
 * One thread, one poll loop. It never computes, never opens a device, and never waits for a
 * process.
 *
 * Runs of a simulated machine have a time of their own. The study's clock begins with this
 * machine's and then goes only by what runs take: each begins where the one before it ended, so
 * that iterations and samples of a run lie between its start and its end, and runs never overlap.
 * Timeouts and the budget count real time.
 */
#pragma once

#include "base/err.h"
#include "machine/machine.h"
#include "model/plan.h"
#include "model/run.h"
#include "store/store.h"

struct lab_runner_item {
    struct lab_plan_run *planned; /* a spread run's `ranks` are set as it begins */
    int64_t number;               /* in the store */
};

enum lab_runner_event_kind {
    LAB_RUNNER_STARTED,  /* an attempt begins; `attempt` from 1 */
    LAB_RUNNER_PHASE,    /* `text` */
    LAB_RUNNER_PROGRESS, /* `done` of `total` iterations, of the slowest rank */
    LAB_RUNNER_METRIC,   /* `text` = name, `value` */
    LAB_RUNNER_WARNING,  /* `text`: a sentence from the worker or about it */
    LAB_RUNNER_RETRY,    /* this attempt failed with `text`, another follows */
    LAB_RUNNER_DONE,     /* committed: from here on it is never lost. `outcome` */
    LAB_RUNNER_FAILED,   /* committed likewise, for good. `outcome` */
    LAB_RUNNER_COOLING,  /* a pause of `value` seconds before the next run */
    LAB_RUNNER_STOPPING, /* `value` 1: finishes what runs; 2: ends it now. `text` says why */
};

struct lab_runner_event {
    enum lab_runner_event_kind kind;
    const struct lab_runner_item *item; /* NULL where it is about no run */
    int attempt;
    const char *text;
    double value;
    int64_t done, total;
    const struct lab_run *outcome; /* state, times, error, result, rate, valid of the run */
};

/* How long things may take that a sound worker does at once. */
struct lab_runner_patience {
    int64_t grace_ns;      /* between TERM and KILL */
    int64_t exit_ns;       /* from the acknowledgement, or a worker's last word, to its end */
    int64_t close_ns;      /* from the end of its events to its own */
    int64_t log_max_bytes; /* of stdout, and of stderr, in one attempt; the rest is dropped */
};
#define LAB_RUNNER_PATIENCE                                                                        \
    ((struct lab_runner_patience){.grace_ns = 2000000000LL,                                        \
                                  .exit_ns = 5000000000LL,                                         \
                                  .close_ns = 1000000000LL,                                        \
                                  .log_max_bytes = 16 << 20})

struct lab_runner_spec {
    const struct lab_plan *plan; /* engine keys: max_workers, retries, timeouts, cool-down, … */
    const struct lab_machine *machine;
    struct lab_store *store;
    int64_t epoch;                       /* of the store, for the runs' times */
    const struct lab_runner_item *items; /* what is to be done, in this order */
    int item_count;
    bool monitor;           /* the machine, meanwhile: samples go into the store */
    int64_t not_before_ns;  /* simulated: no run's time begins before that */
    const char *folder;     /* logs go to logs/<run id>.stdout and .stderr in it; of a gang's
                               further workers to <run id>.rank1.stdout, … */
    const int *inherit_fds; /* that workers keep open: locks */
    int inherit_count;
    const char *const *worker_argv; /* NULL = this program's own worker; tests bring others */
    const struct lab_runner_patience *patience; /* NULL = LAB_RUNNER_PATIENCE */
    /* 0 = go on, 1 = finish what runs, 2 = end it now; asked at least five times a second */
    int (*stop)(void *state);
    void (*event)(const struct lab_runner_event *event, void *state); /* may be NULL */
    /* the disk is full: makes a little room so that the run can be marked; false = can't */
    bool (*make_room)(void *state); /* may be NULL */
    void *state;
};

struct lab_runner_outcome {
    int done, failed, left; /* of the items */
    int retried;
    bool stopped;     /* by `stop` */
    bool budget_used; /* by experiment.budget */
    bool failed_fast; /* by experiment.fail_fast */
};

/*
 * Fails only where it can't go on: the store refuses (disk full: the run is marked if it can be,
 * its worker is ended), or workers can't be started at all. `ret_outcome` is filled in any case.
 */
int lab_runner_run(const struct lab_runner_spec *spec, struct lab_runner_outcome *ret_outcome,
                   struct lab_err *err);
