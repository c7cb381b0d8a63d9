/*
 * reread.h: the metrics of a study's programs, read anew from what they printed, which the study
 * keeps (logs/<run id>.stdout, .stderr, and .rank1.stdout of a gang's ranks).
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

struct lab_reread_request {
    const char *folder;
    const char *const *patterns; /* in place of the study's own, NULL-terminated; NULL = those */
    bool dry_run;                /* nothing is written */
    bool force;                  /* values may be lost */
};

struct lab_reread_metric { /* of one run */
    const char *run, *name, *unit;
    int rank; /* -1 = of the whole run */
    int64_t values;
    double last, step; /* of the last value; step NaN = unknown */
};

struct lab_reread_run {
    const char *id;
    int64_t bytes, values, earlier; /* read; metrics; those that were there before */
    int64_t lost;                   /* of these: not read again */
    bool missing;                   /* it has no log: its metrics stay as they are */
    bool cut;                       /* the log doesn't hold all that was printed */
    bool capped;                    /* more values than are kept of a run */
    bool split;                     /* lines of several ranks ran together */
    bool clipped;                   /* lines were too long to be read whole */
};

struct lab_reread {
    struct lab_reread_run *runs; /* those of programs that have ended */
    int run_count;
    struct lab_reread_metric *metrics;
    int metric_count;
    const char *unmatched; /* a pattern asked for that reads no line; NULL = none */
};

#define LAB_REREAD_VALUES_MOST 1000000 /* of a run, as while it runs */

/*
 * Replaces the metrics of all runs in one transaction and writes results.json anew. A study that
 * runs, or belongs to another user, is refused, and so is a pattern that reads no line. What would
 * lose a value that a run has is refused unless forced. The result lives in the arena.
 */
int lab_reread(const struct lab_reread_request *request, struct lab_arena *arena,
               struct lab_reread *ret_reread, struct lab_err *err);
