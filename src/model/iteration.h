/*
 * model/iteration.h: what a workload's run leaves: a record per iteration. docs/NUMBERS.md defines
 * every figure that is derived from them.
 */
#ifndef LAB_MODEL_ITERATION_H
#define LAB_MODEL_ITERATION_H

#include <stdint.h>

enum lab_stage { LAB_STAGE_H2D, LAB_STAGE_COMPUTE, LAB_STAGE_D2H, LAB_STAGE_COUNT };

struct lab_span { /* on the device, CLOCK_MONOTONIC; both 0 = the stage doesn't exist */
    int64_t start_ns, end_ns;
};

struct lab_iteration {
    int64_t start_ns, end_ns; /* start of the first stage, end of the last */
    struct lab_span stages[LAB_STAGE_COUNT];
};

#endif
