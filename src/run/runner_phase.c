/*
 * runner_phase.c: what a run of a phase is told beside its plan. CPUs of its own follow from the
 * devices of its gang; what other phases chose is read back from the store, so that a study that
 * was interrupted goes on as if it had not been.
 */
#include "run/runner_internal.h"

#include "base/list.h"
#include "workload/workload.h"

#include <stdlib.h>

/* --- the plan's, or the phase's --- */

enum lab_plan_processes runner_run_processes(const struct runner *runner,
                                             const struct lab_plan_run *planned) {
    return planned->phase || planned->processes == LAB_PLAN_LAUNCHER
               ? planned->processes
               : runner->spec->plan->processes;
}

double runner_run_duration_s(const struct runner *runner, const struct lab_plan_run *planned) {
    return planned->phase ? planned->duration_s : runner->spec->plan->duration_s;
}

/* --- CPUs of its own --- */

/* A CPU device's are its cores. A GPU's are a share of its node's: as many as the gang has GPUs
 * there. */
static void choose_cpus(const struct runner *runner, const struct lab_plan_run *planned, int index,
                        struct lab_arena *arena, struct lab_job_rank *rank) {
    const struct lab_plan *plan = runner->spec->plan;
    const struct lab_machine *machine = runner->spec->machine;
    const struct lab_device_ref *ref = &plan->devices.items[planned->ranks[index].gpu_id];
    if (ref->cpus.count > 0) {
        rank->cpus = ref->cpus.items;
        rank->cpu_count = ref->cpus.count;
        return;
    }
    int node = lab_machine_node_index(machine, ref->node), sharers = 1, place = 0, cores = 0;
    for (int i = 0; i < planned->rank_count; i++) {
        bool here = plan->devices.items[planned->ranks[i].gpu_id].node == ref->node;
        place += here && i < index;
        sharers += here && i != index;
    }
    for (int i = 0; i < machine->core_count; i++)
        cores += node < 0 || machine->cores[i].node == node;
    int begin = cores * place / sharers, end = cores * (place + 1) / sharers, at = 0, count = 0;
    int *cpus = lab_arena_alloc(arena, (size_t)machine->core_count * 16 + 1, sizeof *cpus);
    for (int i = 0; i < machine->core_count; i++) {
        const struct lab_core *core = &machine->cores[i];
        if (node >= 0 && core->node != node)
            continue;
        for (int k = 0; at >= begin && at < end && k < core->cpus.count && k < 16; k++)
            cpus[count++] = core->cpus.items[k];
        at++;
    }
    LAB_SORT_NUMBERS(cpus, count);
    rank->cpus = cpus;
    rank->cpu_count = count;
}

/* --- what was chosen --- */

struct choice {
    const char *phase, *config;
    int distance; /* repeats between the run that chose it and the one that asks */
};

static void keep(struct choice *choices, int *count, int most, struct choice choice) {
    for (int i = 0; i < *count; i++)
        if (lab_str_equal(choices[i].phase, choice.phase)) {
            if (choice.distance < choices[i].distance)
                choices[i] = choice;
            return;
        }
    if (*count < most)
        choices[(*count)++] = choice;
}

/* Of each phase, what tuning ended with for this work on this device: in the same block, or the
 * nearest. */
static int find_choices(const struct runner *runner, const struct lab_plan_run *planned,
                        const char *device, struct lab_arena *arena, struct choice *ret_choices,
                        int most, struct lab_err *err) {
    struct lab_run *runs;
    int run_count, count = 0;
    if (lab_store_runs(runner->spec->store, arena, &runs, &run_count, err) < 0)
        return -1;
    for (int i = 0; i < run_count; i++) {
        const struct lab_run *run = &runs[i];
        if (run->state != LAB_RUN_DONE || !lab_str_equal(run->label, planned->label))
            continue;
        const char *phase = lab_value_get_text(lab_result_json(run->test, arena), "phase", NULL);
        for (int r = 0; phase && r < lab_run_result(run)->rank_count; r++) {
            if (!lab_str_equal(run->ranks[r].device, device))
                continue;
            const char *config = lab_value_get_text(
                lab_result_json(run->result->ranks[r].tuning, arena), "best_config_text", NULL);
            if (config)
                keep(ret_choices, &count, most,
                     (struct choice){phase, config, abs(run->repeat - planned->repeat)});
        }
    }
    return count;
}

#define CHOICES_MAX 16

static int add_choices(const struct runner *runner, const struct lab_plan_run *planned,
                       struct lab_arena *arena, struct lab_job_rank *rank, struct lab_err *err) {
    struct choice found[CHOICES_MAX];
    int count = find_choices(runner, planned, rank->device, arena, found, CHOICES_MAX, err);
    if (count < 0)
        return -1;
    int base = LAB_FIND(found, count, phase, "baseline");
    if (base < 0)
        return lab_err_set(
            err, LAB_ERR_UNSUPPORTED,
            "the choice on the idle device is unknown: no run of phase baseline has tuned %s on %s",
            planned->label, rank->device);
    if (!planned->phase->regret) {
        rank->config = found[base].config;
        return 0;
    }
    struct lab_job_choice *choices = lab_arena_alloc(arena, (size_t)count, sizeof *choices);
    int at = 0;
    choices[at++] = (struct lab_job_choice){found[base].phase, found[base].config};
    for (int i = 0; i < count; i++)
        if (i != base)
            choices[at++] = (struct lab_job_choice){found[i].phase, found[i].config};
    rank->choices = choices;
    rank->choice_count = at;
    return 0;
}

/* --- all of it --- */

int runner_phase_rank(const struct runner *runner, const struct lab_plan_run *planned, int index,
                      struct lab_arena *arena, struct lab_job_rank *rank, struct lab_err *err) {
    const struct lab_plan_phase *phase = planned->phase;
    if (phase->mitigations & LAB_PLAN_AFFINITY && !runner->simulated)
        choose_cpus(runner, planned, index, arena, rank);
    if (phase->regret || (phase->mitigations & LAB_PLAN_TUNING_CACHE &&
                          lab_workload_find(planned->workload, NULL)->launch))
        return add_choices(runner, planned, arena, rank, err);
    return 0;
}
