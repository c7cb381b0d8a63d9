/*
 * execute.h: a study's plan carried out, for `gpulab run` and for each study of a campaign.
 */
#pragma once

#include "command/command.h"
#include "run/runner.h"

struct lab_study_execution {
    const char *const *words;     /* behind `gpulab run`; NULL-terminated */
    const char *const *overrides; /* those of them that are overrides */
    bool report;                  /* at the end, analyses and pictures; else report.md alone */
    bool verbose;                 /* a line for each run; at the end, all rows and sentences */
    bool silent;                  /* at the end, files alone */
    bool impatient;               /* where another study has a device, it fails at once */
    int failed_most;              /* runs; once more have failed, it is stopped */
};

struct lab_study_executed {
    struct lab_runner_outcome outcome;
    bool busy;  /* it failed since another study has a device */
    int status; /* the exit status of `gpulab run` */
};

/* The call gives console and arena. `ret_done` is filled in any case. */
int lab_study_execute(const struct lab_command_call *call, const struct lab_plan *plan,
                      const struct lab_study_execution *execution,
                      struct lab_study_executed *ret_done, struct lab_err *err);
