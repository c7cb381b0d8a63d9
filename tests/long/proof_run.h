/* proof_run.h: one run of simulated devices, measured by the same loop as a worker does. */
#pragma once

#include "proof.h"

#include "device/device.h"
#include "model/result.h"
#include "stats/stats.h"
#include "workload/workload.h"

struct proof_measured { /* of one rank */
    double rate, time_s;
    struct lab_interval rate_interval;
    const struct lab_iteration *iterations;
    size_t iteration_count;
    struct lab_device_ref ref;
    const struct lab_recording *recording;
    int64_t end_ns;
    struct lab_result result; /* as a worker reports it */
};

/* The workload's configuration at a point; NULL on failure. */
void *proof_run_config(const struct lab_workload *workload, const struct proof_point *point,
                       struct lab_arena *arena, struct lab_err *err);

/* All ranks at once, a thread each, as a worker does: they warm up, meet, and measure from there
 * on. What comes out lies in the study's arena. */
int proof_run_measure(struct proof_study *study, const struct proof_point *ranks, int count,
                      const struct lab_workload *workload, const void *config,
                      struct proof_measured *ret_measured, struct lab_err *err);
