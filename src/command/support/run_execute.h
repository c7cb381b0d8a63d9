/* support/run_execute.h: the part of `gpulab run` that does things: a plan carried out and reported. */
#ifndef LAB_COMMAND_SUPPORT_RUN_EXECUTE_H
#define LAB_COMMAND_SUPPORT_RUN_EXECUTE_H

#include "command/command.h"
#include "machine/machine.h"
#include "study/plan.h"

struct lab_run_request {
    const struct lab_plan *plan;
    const struct lab_machine *machine;
    bool multirun;
    bool report;            /* the whole one; else report.md alone, without analyses */
    const char *config_dir; /* may be NULL */
    const char *device;     /* of --device; NULL = not given */
};

int lab_run_execute(const struct lab_command_call *call, const struct lab_run_request *request,
                    int *ret_status, struct lab_err *err);

/* "gpulab run …" as it can be pasted into a shell; `words` ends with NULL. */
const char *lab_run_command(const char *const *words, struct lab_arena *arena);

#endif
