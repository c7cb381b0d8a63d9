/*
 * model/plan.h: the runs that a study will carry out, as plain data: made by plan/, carried out by
 * run/, shown by report/. Workloads and devices are named, not pointed at. Strings live in the
 * arena of the planner.
 */
#pragma once

#include "base/value.h"
#include "model/device_ref.h"
#include "model/run.h"

enum lab_plan_processes {
    LAB_PLAN_PER_RANK, /* a worker for each rank */
    LAB_PLAN_SHARED,   /* one worker, a thread for each rank */
    LAB_PLAN_LAUNCHER, /* of a run: one program for all ranks, which starts its own processes */
};

/* What keeps the ranks of a phase apart: a set of bits. */
enum {
    LAB_PLAN_PROCESS = 1,       /* each in a process of its own */
    LAB_PLAN_AFFINITY = 2,      /* each on CPUs of its own */
    LAB_PLAN_NUMA = 4,          /* host thread and memory on the device's node */
    LAB_PLAN_TOPOLOGY = 8,      /* only devices that share no link run at the same time */
    LAB_PLAN_TUNING_CACHE = 16, /* not tuned anew: what was chosen when the device was idle */
    LAB_PLAN_MPS = 32,          /* each in a process of its own, served by an MPS daemon */
};

struct lab_plan_phase {
    const char *name; /* "baseline" */
    bool together;    /* all devices at once; else one after the other */
    bool regret;      /* what other phases chose, side by side on the idle device */
    unsigned mitigations;
    const char *disturb; /* a neighbour on purpose: "membw"; NULL = none */
};

/* Names of a set of mitigations, or of the one with that bit. */
extern const char *const lab_plan_mitigations[]; /* by bit number; NULL-terminated */

struct lab_plan_run {
    const char *id; /* "gpu0_numa1_vit32x6x512_compiled", unique in the plan, fit for file names */
    uint64_t identity;
    const char *workload;             /* "vit" */
    struct lab_value *options;        /* every key of the workload: a map */
    const char *label;                /* "vit32x6x512" */
    const struct lab_run_rank *ranks; /* of a spread run the first slot until it is placed */
    int rank_count;
    /* Of a spread run: where it may run, each slot rank_count ranks; slot_count 0 = at its ranks
     * alone. */
    const struct lab_run_rank *slots;
    int slot_count;
    int repeat; /* from 0; the first one is traced */
    int64_t num_samples, warmup_samples;
    int64_t iterations, warmup_iterations;
    double timeout_s;
    int64_t device_bytes, host_bytes; /* of one rank */
    int launches;                     /* of an iteration; 0 = not counted */
    bool collective, copies;          /* ranks work on one thing; an iteration copies its input */
    const char *const *series;        /* names of those it belongs to; NULL-terminated */
    int point_count;                  /* points that it serves */
    const struct lab_plan_phase
        *phase; /* NULL = the study has none; then what follows is the plan's */
    enum lab_plan_processes processes; /* but for a launcher */
    double duration_s; /* measures so long instead of a number of iterations; 0 = doesn't */
    double tune_s;     /* > 0: the kernel is tuned first, so long at most */
};

/* Every rank that the run may have: of all slots, or its own. */
static inline const struct lab_run_rank *lab_plan_run_places(const struct lab_plan_run *run,
                                                             int *ret_count) {
    *ret_count = run->slot_count ? run->slot_count * run->rank_count : run->rank_count;
    return run->slot_count ? run->slots : run->ranks;
}

#define LAB_PLAN_ANY "any" /* the device of a spread run that isn't placed yet; its gpu_id is -1 */

struct lab_plan {
    const char *study;        /* directory name: "numa_locality_study" */
    const char *option;       /* what was asked for: "numa_study" */
    struct lab_value *config; /* of the first job, for config.yaml */
    const char *selector;     /* what `device` says: "auto" */
    struct lab_device_list devices;
    const struct lab_machine *machine; /* where the devices are: this one, or the simulated one */
    struct lab_plan_run *runs;         /* in the order in which they will run */
    int run_count;
    int64_t point_count, job_count;
    uint64_t seed;
    bool ordered_as_given;
    /* engine keys */
    const char *output_dir, *tracker; /* tracker: names joined by commas; NULL = none */
    bool resume, fail_fast, trace, monitor;
    int max_workers, runs_per_device, max_retries, repeat;
    double cooldown_s, budget_s, duration_s; /* 0 = none */
    const char *profiler, *disturb;
    enum lab_plan_processes processes;
    const char *const *notes; /* sentences, such as why a phase is left out; NULL-terminated */
    uint64_t identity;        /* of the set of runs: the same command finds its directory by it */
    uint64_t once_identity;   /* what it would be with repeat=1; the same where that is so */
};

/* What a plan will take of time and disk, before it starts. */
struct lab_plan_estimate {
    double expected_s; /* with cool-downs and report; NaN = nothing like any of its runs has run */
    double report_s;   /* of it, for the report */
    int unknown;     /* runs that nothing is known about: in expected_s by the mean of the others */
    int guessed;     /* runs estimated from other workloads; unknown ones too */
    int brief;       /* short runs that were measured for it */
    bool earlier;    /* there are runs before them, too */
    int by_duration; /* runs whose time is what was asked for, whatever ran before */
    double most_s;   /* holds whatever happens: by the time-outs and retries */
    double energy_j; /* of the GPUs; NaN = no earlier run shows the power of some run */
    int64_t disk_bytes, store_bytes; /* in all; of it in the database */
};
