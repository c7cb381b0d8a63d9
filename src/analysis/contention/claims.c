/* claims.c: slow-downs, resources, causes and recoveries of all phases, block by block. */
#include "analysis/contention/contention.h"

#include "base/list.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

/* So much of a slow-down, in logarithms, the far end of a resource's fall has to reach: probes are
 * shorter than kernels and lose less. */
#define EXPLAINS 0.25

/* --- resources --- */

double contention_probe(const struct lab_study_run *run, const void *context) {
    const struct lab_result *result = run->result;
    switch (*(const int *)context) {
    case CONTENTION_COMPUTE:
        return result->capacity_flops_per_second;
    case CONTENTION_MEMORY:
        return 1e9 * result->capacity_memory_gb_per_s;
    case CONTENTION_PCIE:
        return 1e9 * sqrt(result->capacity_h2d_gb_per_s * result->capacity_d2h_gb_per_s);
    default:
        return 1e6 * result->capacity_clock_mhz;
    }
}

static double power(const struct lab_study_run *run, bool limit) {
    return limit ? run->result->capacity_power_limit_w : run->result->capacity_power_w;
}

static double mean_of_unit(const struct lab_phase_unit *unit, int phase, const int *number) {
    const struct lab_study_point *point = &unit->points[phase].time;
    double sum = 0;
    for (int i = 0; i < point->count; i++)
        sum += contention_probe(point->runs[i], number);
    return sum / point->count;
}

/* What the probes of a phase read, whatever the device. */
static double mean_power(const struct lab_phases *phases, int phase, bool limit) {
    double sum = 0;
    int count = 0;
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_study_point *point = &phases->units[u].points[phase].time;
        for (int i = 0; i < point->count; i++) {
            double one = power(point->runs[i], limit);
            sum += isfinite(one) ? one : 0;
            count += isfinite(one);
        }
    }
    return count > 0 ? sum / count : (double)NAN;
}

/* Each device by itself, its kernels with the same weight: a mean hides which ones share a path. */
static void list_devices(const struct lab_phases *phases, int phase,
                         struct contention_resource *resource, const int *number) {
    size_t most = (size_t)phases->unit_count + 1;
    int *counts = lab_arena_alloc(phases->arena, most, sizeof *counts);
    resource->logs = lab_arena_alloc(phases->arena, most, sizeof *resource->logs);
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_phase_unit *unit = &phases->units[u];
        double one = mean_of_unit(unit, phase, number) / mean_of_unit(unit, phases->base, number);
        int at = lab_list_find_text(resource->devices, resource->device_count, unit->device);
        if (!(one > 0))
            continue;
        if (at < 0) {
            at = resource->device_count;
            LAB_ADD(resource->devices, resource->device_count, phases->arena) = unit->device;
        }
        resource->logs[at] += log(one);
        counts[at]++;
    }
    for (int i = 0; i < resource->device_count; i++)
        resource->logs[i] /= counts[i];
}

static void make_resources(const struct lab_phases *phases, struct contention_phase *phase) {
    static const int numbers[CONTENTION_RESOURCES] = {CONTENTION_COMPUTE, CONTENTION_MEMORY,
                                                      CONTENTION_PCIE, CONTENTION_CLOCK};
    bool cpu = lab_str_starts(phases->runs[0]->ranks[0].device, "cpu:");
    const struct contention_resource names[CONTENTION_RESOURCES] = {
        {.key = cpu ? "cpu" : "sm",
         .title = cpu ? "CPU compute rate" : "SM compute rate",
         .unit = "FLOP/s"},
        {.key = "membw", .title = "memory bandwidth", .unit = "B/s"},
        {.key = "pcie", .title = "PCIe bandwidth", .unit = "B/s"},
        {.key = "power", .title = "clock", .unit = "Hz"}};
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        struct lab_phase_question question = {.kind = "contention.resource",
                                              .quantity = names[r].title,
                                              .phase = phase->number,
                                              .against = phases->base,
                                              .value = contention_probe,
                                              .context = &numbers[r]};
        phase->resources[r] = names[r];
        phase->resources[r].phase = phase->name;
        phase->resources[r].base = lab_phases_mean(phases, &question, phases->base);
        phase->resources[r].here = lab_phases_mean(phases, &question, phase->number);
        phase->resources[r].change = lab_phases_ask(phases, &question);
        list_devices(phases, phase->number, &phase->resources[r], &numbers[r]);
    }
    phase->power_w = mean_power(phases, phase->number, false);
    phase->power_limit_w = mean_power(phases, phase->number, true);
}

/* Whether a fall of it counts: the probes of devices that run at once share PCIe even where the
 * kernels copy nothing. */
static bool does_count(const struct contention *made, const struct contention_phase *phase,
                       int resource) {
    bool alone = made->phases.disturb[phase->number][0] != '\0';
    return resource != CONTENTION_PCIE || alone || phase->copies;
}

/* The logarithm of its ratio to the baseline; 0 = no fall, or unknown. */
static double fall_of(const struct contention_phase *phase, int resource) {
    double fall = log1p(phase->resources[resource].change.effect);
    return fall < 0 ? fall : 0;
}

/* What falls without the resource itself: a lower clock slows all that a GPU does, and less time
 * on cores or multiprocessors leaves less of memory. */
static double excuse_of(const struct contention_phase *phase, int resource) {
    if (resource == CONTENTION_CLOCK)
        return 0;
    return fall_of(phase, resource == CONTENTION_MEMORY ? CONTENTION_COMPUTE : CONTENTION_CLOCK);
}

/* Less its excuse. */
static int find_lowest(const struct contention *made, const struct contention_phase *phase) {
    double lowest = 0;
    int found = -1;
    for (int r = 0; r < CONTENTION_RESOURCES; r++) {
        const struct lab_claim *change = &phase->resources[r].change;
        double own = fall_of(phase, r) - excuse_of(phase, r);
        if (change->verdict != LAB_CLAIM_YES || change->effect > 0 || own >= lowest ||
            !does_count(made, phase, r))
            continue;
        lowest = own;
        found = r;
    }
    return found;
}

static bool does_explain(const struct contention_phase *phase) {
    double slower = 0;
    int slowed = 0;
    for (int k = 0; k < phase->kernel_count; k++)
        if (contention_is_slower(&phase->kernels[k].change)) {
            slower += log1p(phase->kernels[k].change.effect);
            slowed++;
        }
    return slowed > 0 && phase->lowest >= 0 &&
           -log1p(phase->resources[phase->lowest].change.low) >= EXPLAINS * slower / slowed;
}

/* --- kernels --- */

bool contention_is_slower(const struct lab_claim *claim) {
    return claim->verdict == LAB_CLAIM_YES && claim->effect > 0;
}

bool contention_is_slowed(const struct contention_phase *phase) {
    bool slowed = contention_is_slower(&phase->slowdown);
    for (int k = 0; k < phase->kernel_count; k++)
        slowed |= contention_is_slower(&phase->kernels[k].change);
    return slowed;
}

static void make_rows(struct contention *made, struct contention_phase *phase) {
    const struct lab_phases *phases = &made->phases;
    struct lab_phase_question all = {.kind = "contention.slowdown",
                                     .quantity = "time",
                                     .phase = phase->number,
                                     .against = phases->base};
    phase->slowdown = lab_phases_ask(phases, &all);
    for (int u = 0; u < phases->unit_count; u++) {
        const struct lab_phase_unit *unit = &phases->units[u];
        struct lab_phase_question question = all;
        if (unit->points[phase->number].time.count == 0 ||
            unit->points[phases->base].time.count == 0)
            continue;
        if (LAB_FIND(phase->kernels, phase->kernel_count, kernel, unit->kernel) < 0) {
            question.kind = "contention.kernel";
            question.what = question.kernel = unit->kernel;
            LAB_ADD(phase->kernels, phase->kernel_count, made->arena) = (struct contention_row){
                phase->name, unit->kernel, "all", NAN, -1, lab_phases_ask(phases, &question)};
        }
        question.kind = "contention.device";
        question.kernel = NULL;
        question.what = lab_arena_printf(made->arena, "%s on %s", unit->kernel, unit->device);
        question.unit = u + 1;
        LAB_ADD(phase->devices, phase->device_count, made->arena) =
            (struct contention_row){phase->name,
                                    unit->kernel,
                                    unit->device,
                                    unit->gpu_id,
                                    u,
                                    lab_phases_ask(phases, &question)};
    }
}

/* --- phases --- */

/* Whether or not the main phase is slower: chosen by that, the effect would be too large. */
static void make_recovery(struct contention *made, struct contention_phase *phase) {
    const struct lab_phases *phases = &made->phases;
    struct lab_phase_question question = {.kind = "contention.recovery",
                                          .quantity = "time",
                                          .phase = phase->number,
                                          .against = phases->concurrent};
    phase->recovery = phase->throughput = lab_claim_none;
    phase->recovered = NAN;
    if (phase->number == phases->concurrent || !phases->mitigations[phase->number][0] ||
        !lab_phases_cover(phases, phases->concurrent, phase->number))
        return;
    phase->recovery = lab_phases_ask(phases, &question);
    phase->throughput = lab_phases_total(phases, phase->number, phases->concurrent);
}

static struct contention_phase make_phase(struct contention *made, int number,
                                          const struct lab_analysis_input *input) {
    const struct lab_phases *phases = &made->phases;
    struct contention_phase phase = {.number = number,
                                     .name = phases->names[number],
                                     .title = phases->titles[number],
                                     .mitigations = phases->mitigations[number]};
    for (int i = 0; i < phases->run_count; i++)
        phase.copies |= strcmp(phases->run_phases[i], phase.name) == 0 &&
                        (phases->runs[i]->result->h2d_gb_per_s > 0 ||
                         phases->runs[i]->result->d2h_gb_per_s > 0);
    make_rows(made, &phase);
    make_resources(phases, &phase);
    make_recovery(made, &phase);
    phase.tuning = lab_phases_tuning(phases, input, number);
    phase.tuning.cost.kind = "contention.tuning";
    return phase;
}

/* One family, since each is a finding. */
static void adjust(struct contention *made) {
    struct lab_claim **found = NULL;
    int n = 0;
    for (int p = 0; p < made->count; p++) {
        struct contention_phase *phase = &made->list[p];
        LAB_ADD(found, n, made->arena) = &phase->slowdown;
        for (int k = 0; k < phase->kernel_count; k++)
            LAB_ADD(found, n, made->arena) = &phase->kernels[k].change;
        for (int r = 0; r < CONTENTION_RESOURCES; r++)
            LAB_ADD(found, n, made->arena) = &phase->resources[r].change;
        for (int i = 0; i < phase->device_count; i++)
            LAB_ADD(found, n, made->arena) = &phase->devices[i].change;
        LAB_ADD(found, n, made->arena) = &phase->recovery;
        LAB_ADD(found, n, made->arena) = &phase->throughput;
        LAB_ADD(found, n, made->arena) = &phase->tuning.cost;
    }
    lab_claim_adjust(found, n);
}

/* On one device alone it is the same claim as of the kernel. */
static void join_single(struct contention_phase *phase) {
    for (int k = 0; k < phase->kernel_count; k++) {
        struct contention_row *only = NULL;
        int count = 0;
        for (int i = 0; i < phase->device_count; i++)
            if (strcmp(phase->devices[i].kernel, phase->kernels[k].kernel) == 0) {
                only = &phase->devices[i];
                count++;
            }
        if (count != 1)
            continue;
        only->change.verdict = phase->kernels[k].change.verdict;
        only->change.bound = phase->kernels[k].change.bound;
    }
}

struct contention contention_make(const struct lab_analysis_input *input, struct lab_arena *arena) {
    struct contention made = {.study = &input->studies[0],
                              .arena = arena,
                              .machine =
                                  input->study_count == 1 ? input->studies[0].machine : NULL};
    struct lab_phases *phases = &made.phases;
    lab_phases_make(input, arena, phases);
    if (lab_phases_lack(phases))
        return made;
    LAB_ADD(made.list, made.count, arena) = make_phase(&made, phases->concurrent, input);
    for (int p = 0; p < phases->count; p++)
        if (p != phases->base && p != phases->concurrent)
            LAB_ADD(made.list, made.count, arena) = make_phase(&made, p, input);
    adjust(&made);
    for (int p = 0; p < made.count; p++) {
        struct lab_claim *recovery = &made.list[p].recovery;
        join_single(&made.list[p]);
        made.list[p].lowest = find_lowest(&made, &made.list[p]);
        made.list[p].explains = does_explain(&made.list[p]);
        if (recovery->verdict == LAB_CLAIM_YES && contention_is_slower(&made.list[0].slowdown))
            made.list[p].recovered = -log1p(recovery->effect) / log1p(made.list[0].slowdown.effect);
    }
    return made;
}
