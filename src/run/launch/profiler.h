/*
 * profiler.h: `experiment.profiler`: a program that is put before the worker and records what it
 * does. There is one: nsys, NVIDIA's Nsight Systems.
 *
 *     nsys profile --output FOLDER/traces/pipeline_<run id> … gpulab worker
 *
 * The worker is then the runner's grandchild. It keeps its socket and the locks it inherits, and
 * ends by the socket's end when the runner does (worker_guard.c). The profiler writes its report
 * after the worker has ended, so a run takes longer than its worker.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/plan.h"

/* What a report may take after the worker's end before the profiler is killed. */
#define LAB_PROFILER_EXIT_NS 300000000000LL

/* Whether the plan wants one. */
bool lab_profiler_is_wanted(const struct lab_plan *plan);

/* LAB_ERR_USER where it is wanted and isn't here: says how to get it. */
int lab_profiler_check(const struct lab_plan *plan, struct lab_err *err);

/*
 * The command line that runs `argv` (its file is `program`, NULL = argv[0] on PATH) under the
 * profiler and leaves `report` with .nsys-rep behind it; makes the report's folder. In the arena.
 */
const char *const *lab_profiler_wrap(const char *report, const char *program,
                                     const char *const *argv, struct lab_arena *arena,
                                     struct lab_err *err);
