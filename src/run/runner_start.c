/* runner_start.c: a worker's job, from the plan, and the start of its process. */
#include "run/runner_internal.h"

#include "base/random.h"
#include "run/frame.h"
#include "run/job.h"
#include "run/launch/profiler.h"
#include "tune/tuned.h"
#include "workload/workload.h"

#include <string.h>

/* CUPTI serves one at a time: a profiler of the GPU leaves nothing to a trace of our own. */
static bool is_watched(const struct lab_plan *plan, const struct lab_job_rank *ranks, int count) {
    for (int i = 0; i < count; i++)
        if (lab_profiler_is_wanted(plan) && lab_run_device_gpu(ranks[i].device) != LAB_RUN_NO_GPU)
            return true;
    return false;
}

/* One run of a point shows what the others did, too, and its pass and file are all that five cost
 * more than one. */
static bool wants_trace(const struct lab_plan *plan, const struct lab_plan_run *planned,
                        const struct lab_job_rank *ranks, int count) {
    return plan->trace && planned->repeat == 0 && !is_watched(plan, ranks, count);
}

#define SEED_BITS ((UINT64_C(1) << 53) - 1) /* whole numbers that every reader of JSON keeps */

/* The same run of the same seed meets the same chance, whenever and however often it is carried
 * out; its repeats meet others, since the identity holds their index. */
static void add_simulation(const struct lab_plan *plan, const struct runner_run *run,
                           struct lab_job *job) {
    const struct lab_device_ref *device = &plan->devices.items[job->ranks[0].gpu_id];
    job->machine = device->machine->source + strlen("sim:");
    job->definition = device->definition;
    job->chance = lab_random_bits(plan->seed, run->item->planned->identity) & SEED_BITS;
    job->start_ns = run->start_ns;
}

/* Of a study with phases nothing is looked up: each phase chooses for itself. */
static struct lab_value *options_of(const struct runner *runner, const struct runner_run *run,
                                    const char *device, struct lab_arena *arena) {
    const struct lab_plan_run *planned = run->item->planned;
    struct lab_tuned none = {.config = LAB_CONFIG_DEFAULT};
    const struct lab_workload *workload = lab_workload_find(planned->workload, NULL);
    if (planned->phase && (workload->launch || workload->launches) &&
        lab_value_get(planned->options, LAB_WORKLOAD_CONFIG))
        return lab_tuned_freeze(planned->options, &none, arena);
    return lab_tuned_options(workload, planned->options, runner->spec->machine, device, arena);
}

static int say_job(const struct runner *runner, struct runner_run *run,
                   struct runner_worker *worker, struct lab_err *err) {
    const struct lab_plan *plan = runner->spec->plan;
    const struct lab_plan_run *planned = run->item->planned;
    struct lab_job_rank *ranks =
        lab_arena_alloc(&run->arena, (size_t)worker->rank_count, sizeof *ranks);
    for (int i = 0; i < worker->rank_count; i++) {
        const struct lab_run_rank *rank = &planned->ranks[worker->first_rank + i];
        ranks[i] = (struct lab_job_rank){.index = worker->first_rank + i,
                                         .gpu_id = rank->gpu_id,
                                         .device = rank->device,
                                         .numa_node = rank->numa_node};
        if (planned->phase && runner_phase_rank(runner, planned, worker->first_rank + i,
                                                &run->arena, &ranks[i], err) < 0)
            return -1;
    }
    struct lab_job job = {.run_id = planned->id,
                          .folder = runner->folder,
                          .workload = planned->workload,
                          .options = options_of(runner, run, ranks[0].device, &run->arena),
                          .ranks = ranks,
                          .rank_count = worker->rank_count,
                          .gang_size = planned->rank_count,
                          .iterations = planned->iterations,
                          .warmup_iterations = planned->warmup_iterations,
                          .duration_s = runner_run_duration_s(runner, planned),
                          .seed = plan->seed & SEED_BITS,
                          .repeat = planned->repeat,
                          .port = run->port,
                          .launcher = runner_run_processes(runner, planned) == LAB_PLAN_LAUNCHER,
                          .verify = true,
                          .trace = wants_trace(plan, planned, ranks, worker->rank_count),
                          .probe = planned->phase && !planned->phase->regret,
                          .tune_s = planned->tune_s,
                          .disturb = planned->phase ? planned->phase->disturb : NULL};
    if (runner->simulated)
        add_simulation(plan, run, &job);
    LAB_AUTO(str, text);
    lab_job_write(&job, &text);
    runner_say(worker, &(struct lab_frame){.type = LAB_FRAME_JOB, .text = text.text});
    return 0;
}

/* Puts the profiler before the worker, where one is wanted. */
static int wrap_worker(const struct runner *runner, struct runner_run *run,
                       const struct runner_worker *worker, struct lab_child_spec *child,
                       struct lab_err *err) {
    const struct lab_plan_run *planned = run->item->planned;
    if (!lab_profiler_is_wanted(runner->spec->plan))
        return 0;
    const char *report =
        run->worker_count > 1
            ? lab_arena_printf(&run->arena, "%s/traces/pipeline_%s_rank%d", runner->folder,
                               planned->id, worker->first_rank)
            : lab_arena_printf(&run->arena, "%s/traces/pipeline_%s", runner->folder, planned->id);
    child->argv = lab_profiler_wrap(report, child->program, child->argv, &run->arena, err);
    child->program = NULL;
    return child->argv ? 0 : -1;
}

int runner_start_worker(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                        struct lab_err *err) {
    static const char *const own[] = {"gpulab", LAB_WORKER_COMMAND, NULL};
    const struct lab_runner_spec *spec = runner->spec;
    struct lab_child_spec child = {.program = spec->worker_argv ? NULL : "/proc/self/exe",
                                   .argv = spec->worker_argv ? spec->worker_argv : own,
                                   .inherit_fds = spec->inherit_fds,
                                   .inherit_count = spec->inherit_count,
                                   .grace_ns = runner->patience.grace_ns};
    if (wrap_worker(runner, run, worker, &child, err) < 0)
        return -1;
    runner_place_yield(&runner->place);
    int result = lab_child_start(&worker->child, &child, &runner->children, err);
    runner_place_resume(&runner->place);
    if (result < 0)
        return lab_err_context(err, "starting a worker");
    runner->ever_started = true;
    return say_job(runner, run, worker, err);
}
