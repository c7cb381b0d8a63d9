/*
 * model/tuning.h: what came of tuning a kernel: each configuration that was tried, and the verdict.
 * tune/tune.h fills it, the store keeps it, the report shows it. Texts and lists live in an arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_trial_state {
    LAB_TRIAL_UNTRIED,  /* its turn never came */
    LAB_TRIAL_VERIFIED, /* its results are right */
    LAB_TRIAL_MEASURED, /* and it was timed */
    LAB_TRIAL_FAILED,   /* it didn't compile or launch: `reason` */
    LAB_TRIAL_WRONG,    /* its results are wrong: `reason` */
};

const char *lab_trial_state_name(enum lab_trial_state state); /* "verified" */

struct lab_trial_time {
    int64_t start_ns; /* CLOCK_MONOTONIC */
    double time_s;
};

struct lab_trial {
    const char *config; /* "block_q=64,block_k=128" */
    enum lab_trial_state state;
    const char *reason;
    int rung; /* how often it was timed and stayed in the race; 0 = never */
    /* of the last time it was timed; `low` to `high` is the median's interval, NaN = unknown */
    double median_s, low_s, high_s;
    bool final; /* that was side by side with the other finalists */
    struct lab_trial_time *times;
    int time_count;
};

struct lab_tuning_result {
    const char *kernel; /* the workload: "flash_attention_v2" */
    const char *label;  /* with its sizes: "flash2x1024x8x64" */
    const char *space;  /* whose configurations they are: "cpu flash_attention 1" */
    const char *device; /* "cpu:0" */
    const char *model;  /* "AMD EPYC 9354" */
    const char *dtype, *strategy;
    struct lab_trial *trials; /* the legal ones; the default first */
    int trial_count;
    int64_t illegal;            /* combinations that this shape or device rules out */
    const char *illegal_reason; /* of one of them; NULL = there is none */
    int best;                   /* index into trials; -1 = nothing was measured */
    int *alike; /* statistically indistinguishable from the fastest, itself included; by time */
    int alike_count;
    bool certain;    /* alike_count is 1: `best` is the winner */
    bool from_cache; /* nothing was run */
    /* how many times as fast as the default; NaN = unknown */
    double speedup, speedup_low, speedup_high;
    double confidence; /* of all intervals */
    double duration_s, budget_s;
    bool warm;        /* caches were left as they were before each timing */
    bool interrupted; /* the user stopped it, or the budget came before the finals */
    int64_t start_wall_ns, start_mono_ns;
    const char **warnings; /* sentences; NULL-terminated */
};

int lab_tuning_result_count(const struct lab_tuning_result *result, enum lab_trial_state state);
