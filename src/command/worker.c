/*
 * worker.c: `gpulab worker`: the other side of a study's runner, which starts this very program
 * again for each run. Nobody types it, so no list shows it.
 */
#include "command/command.h"

#include "run/frame.h"
#include "worker/worker.h"

static int worker_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)call;
    int status = lab_worker_run(LAB_WORKER_FD, err);
    if (status < 0)
        return -1;
    *ret_status = status;
    return 0;
}

const struct lab_command lab_command_worker = {
    .name = LAB_WORKER_COMMAND,
    .summary = "carry out one run of a study, as its runner says",
    .usage = "",
    .description =
        "'gpulab run' starts one for each run and communicates with it on descriptor 3.\n"
        "A run that crashes, hangs or is killed then affects no other run. It ends with its "
        "runner\n"
        "and is of no use by hand; 'gpulab bench' measures a single workload.",
    .hidden = true,
    .run = worker_run,
};
