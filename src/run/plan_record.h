/*
 * plan_record.h: a planned run in the form in which it is kept (model/run.h): what a new study's
 * file is filled with, and what the history is asked about before anything has run.
 */
#pragma once

#include "base/mem.h"
#include "model/plan.h"
#include "model/run.h"

/*
 * Run `index` of the plan, planned and never started: number index + 1, position index, no rate.
 *
 *     options  every key of the workload          {"patch_size": 32, …}
 *     series   names                              ["depth"]
 *     test     the study's own keys of test       {"num_samples": 100, "warmup_samples": 20,
 *                                                  "timeout_s": 300.0}; of a phase also phase,
 *                                                  place, processes, apart, disturb, duration_s,
 *                                                  tune_s, notes
 *
 * JSON texts are in the arena; the rest is shared with the plan.
 */
struct lab_run lab_run_plan_record(const struct lab_plan *plan, int index, struct lab_arena *arena);

/* The same; texts that a run before it had are shared with it. The last few are kept. */
#define LAB_PLAN_TEXTS 16
struct lab_plan_texts { /* zeroed at first */
    struct lab_run runs[LAB_PLAN_TEXTS];
    int count; /* that were made */
};
struct lab_run lab_run_plan_record_with(const struct lab_plan *plan, int index,
                                        struct lab_plan_texts *texts, struct lab_arena *arena);

/* All of them, in their order. */
struct lab_run *lab_run_plan_records(const struct lab_plan *plan, struct lab_arena *arena);
