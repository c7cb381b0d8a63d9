/* run.c: the names of a run's states, as they are stored and shown. */
#include "model/run.h"

#include <assert.h>

const char *lab_run_state_name(enum lab_run_state state) {
    switch (state) {
    case LAB_RUN_PLANNED:
        return "planned";
    case LAB_RUN_RUNNING:
        return "running";
    case LAB_RUN_DONE:
        return "done";
    case LAB_RUN_FAILED:
        return "failed";
    case LAB_RUN_STATE_COUNT:
        break;
    }
    assert(!"a state of a run that doesn't exist");
    return "";
}
