/*
 * tune_run.h: tuning one kernel on one device: the choice of the device, its lease, the cache
 * before and behind the tuner.
 */
#pragma once

#include "tune/tuned.h"

struct lab_tune_request {
    const struct lab_workload *workload;
    const void *config;   /* checked */
    const char *selector; /* its first member is used */
    enum lab_tune_strategy strategy;
    double budget_s;
    uint64_t seed;
    bool again; /* though it was tuned before, or a part of it */
    bool warm;  /* caches are left as they are */
    bool shown; /* a status line on the terminal */
    int columns;
    bool unicode;
};

struct lab_tune_outcome {
    struct lab_tuning_result result;
    const char *device;            /* its name */
    bool cached;                   /* it was tuned before: `entry` says what came of it */
    double lookup_s;               /* that it took to find that out, once the device was chosen */
    struct lab_tuning_entry entry; /* as it is in the cache now */
    bool kept;                     /* in the cache */
    int selected;                  /* devices that the selector names */
    const char *note;              /* for the user; NULL */
};

int lab_tune_run(const struct lab_tune_request *request, struct lab_arena *arena,
                 struct lab_tune_outcome *ret_outcome, struct lab_err *err);
