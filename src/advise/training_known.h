/*
 * training_known.h: what studies of this machine know of training: of the newest one that trained
 * models on one device and on several. `advise` asks it about a model, `run` with
 * gpu_mode=auto about its points.
 */
#pragma once

#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training.h"
#include "base/mem.h"
#include "plan/plan.h"

struct lab_training_known {
    const char *folder; /* NULL = there is no such study */
    const char *device; /* that its runs on one device had */
    bool simulated;
    struct lab_training training; /* the cost model */
    struct lab_gangs gangs;       /* what was measured */
    const struct lab_training_set *set;
};

struct lab_training_wanted {
    uint64_t machine_identity;    /* of the machine that it ran on */
    const char *device;           /* the first of them; NULL = any, but a simulated one unless
                                     `below_first` allows for it */
    const struct lab_value *keys; /* of the workload, that its runs agree in; NULL = any */
    bool done;                    /* no run of it is still to come */
    bool below_first;             /* as `advise` prefers studies (advise_studies.h) */
};

/* What a study has: the set of its points that agrees in the keys and fits a cost model; without
 * one (training.law_count is 0) the first that was run on one device and on several; false =
 * none. */
bool lab_training_of_study(const struct lab_study_table *table, const struct lab_value *keys,
                           struct lab_arena *arena, struct lab_training_known *ret_known);

struct lab_training_estimate {   /* of a speed-up over one device */
    double value, low, high;     /* at 95%; NaN = unknown: of one run a point, or not tested */
    double one_s, many_s;        /* a step on one device, and on several */
    const struct lab_gang *gang; /* measured; NULL = predicted */
    const char *why_not;         /* it wasn't tested; NULL = it was, or can be predicted */
};
/* What was measured; else what the cost model predicts within the tested range. */
struct lab_training_estimate lab_training_ask(const struct lab_training_known *known,
                                              const struct lab_training_work *work,
                                              struct lab_arena *arena);

/* Looks through this user's studies, newest first; those with a cost model before those without. */
bool lab_training_find(const struct lab_training_wanted *wanted, struct lab_arena *arena,
                       struct lab_training_known *ret_known);

/*
 * For plans of gpu_mode=auto: what the newest study of the same machine and devices measured or
 * predicts, within what it tested. Lives as long as the arena.
 */
struct lab_plan_strategy lab_training_strategy(struct lab_arena *arena);
