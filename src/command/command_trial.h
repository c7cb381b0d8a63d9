/*
 * command_trial.h: studies that a command runs for itself and throws away: A/A studies, and what
 * `advise --verify` measures. They lie, and are known, in a folder that goes away with them.
 */
#pragma once

#include "base/file/out_dir.h"
#include "command/command.h"
#include "compose/config.h"
#include "load/studies.h"
#include "plan/plan.h"

struct lab_trial_study {
    const struct lab_command_call *call;
    const struct lab_machine *machine;
    struct lab_scratch_dir scratch;
    int done, runs;                            /* of the study under way */
    const char *(*status)(void *state);        /* behind the bar, in the arena of the call */
    double (*fraction)(void *state, double f); /* of all, where `f` of the study is done */
    void *state;
};

/* Makes the folder. */
int lab_trial_study_open(struct lab_trial_study *trial, struct lab_err *err);
void lab_trial_study_close(struct lab_trial_study *trial);

/* The plan of these words; `device` may be NULL. */
int lab_trial_study_plan(const struct lab_trial_study *trial, const struct lab_config_path *path,
                         const char *device, const char *const *words, int count, bool multirun,
                         struct lab_plan *ret_plan, struct lab_err *err);

/* Carries it out, each run in a process of its own, and reads what came out. 1 = it was stopped. */
int lab_trial_study_run(struct lab_trial_study *trial, const struct lab_plan *plan, unsigned needs,
                        struct lab_arena *arena, struct lab_study_table *ret_table,
                        struct lab_err *err);
