/*
 * tune.h: finds the fastest configuration of a kernel on a device, or the set that is statistically
 * indistinguishable.
 *
 *     verify      each configuration's results against double precision; what doesn't compile,
 *                 launch or compute rightly is out, with the reason
 *     narrow      all that are left are timed in turn, in an order drawn anew each round, with the
 *                 caches emptied before each; the slower half goes, the others are timed twice as
 *                 often
 *     finals      the best few and the default side by side; only this decides
 *
 * Comparisons are by pairs: the times of two configurations in the same round, so that a clock that
 * moves or a neighbour that comes hits both. Nobody is named the winner unless the interval of the
 * ratio to each other finalist says so.
 *
 * Knows no cache: who calls it gives what is known of an interrupted one and keeps what it is told
 * (tune/tuned.h).
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/tuning.h"
#include "session/session.h"
#include "workload/workload.h"

enum lab_tune_strategy {
    LAB_TUNE_HALVING,    /* as above */
    LAB_TUNE_EXHAUSTIVE, /* all are timed alike before the finals */
    LAB_TUNE_RANDOM,     /* a random quarter of them, at least eight */
};

extern const char *const lab_tune_strategies[]; /* by their numbers; NULL-terminated */
int lab_tune_strategy_parse(const char *name, enum lab_tune_strategy *ret_strategy,
                            struct lab_err *err);

struct lab_tune_progress {
    const char *phase; /* "verifying", "narrowing", "finals" */
    int done, total;   /* configurations in it */
    double fraction;   /* of all, 0 to 1; never goes back */
    double left_s;     /* expected, within the budget; NaN = unknown */
    const char *best;  /* so far; NULL = nobody */
    double best_s;
};

struct lab_tune_plan {
    /* with an open device, and a workload that can be tuned and isn't open; its own `config`
     * key plays no part. The tuner opens and closes the workload, and listens itself */
    struct lab_session *session;
    enum lab_tune_strategy strategy;
    double budget_s;   /* of all; what begins before its end is finished */
    double confidence; /* 0 = 0.95 */
    bool warm;         /* caches are left as they are */
    /* what an interrupted one had found out: kept trials. Their times serve until the finals */
    const struct lab_trial *known;
    int known_count;
    /* optional: something about a trial is known from here on */
    void (*keep)(const struct lab_trial *trial, void *state);
    /* optional: returning true ends it with what there is */
    bool (*progress)(const struct lab_tune_progress *progress, void *state);
    void *state;
};

/*
 * Fills `ret_result`, in the arena. LAB_ERR_UNSUPPORTED where there is nothing to tune or no
 * configuration fits; LAB_ERR_WRONG where none is right; LAB_ERR_SYSTEM where the device stops
 * working. What was kept until then holds. Ended by the user or the budget before anything was
 * timed: LAB_ERR_INTERRUPTED.
 */
int lab_tune(const struct lab_tune_plan *plan, struct lab_arena *arena,
             struct lab_tuning_result *ret_result, struct lab_err *err);
