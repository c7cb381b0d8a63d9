/*
 * runner_place.c: the runner wakes up for every frame and every line that is printed. On a CPU that
 * a rank computes on it would be noise in the figures, so it goes elsewhere if there is an
 * elsewhere.
 */
#include "run/runner_internal.h"

#include "base/mem.h"
#include "base/str.h"

#define CPU_MAX 8192

static bool is_used(const struct lab_runner_spec *spec, const char *device) {
    for (int i = 0; i < spec->item_count; i++) {
        const struct lab_plan_run *planned = spec->items[i].planned;
        int count;
        const struct lab_run_rank *ranks = lab_plan_run_places(planned, &count);
        for (int rank = 0; rank < count; rank++)
            if (lab_str_equal(ranks[rank].device, device))
                return true;
    }
    return false;
}

static void remove_cpu(struct runner_place *place, int cpu) {
    if (cpu >= 0 && cpu < CPU_MAX)
        CPU_CLR_S((size_t)cpu, place->size, place->own);
}

/* The hardware threads that share a core with it. */
static void remove_siblings(struct runner_place *place, const struct lab_machine *machine,
                            int cpu) {
    for (int i = 0; machine && i < machine->core_count; i++) {
        const struct lab_cpus *cpus = &machine->cores[i].cpus;
        if (!lab_cpus_contain(cpus, cpu))
            continue;
        for (int j = 0; j < cpus->count; j++)
            remove_cpu(place, cpus->items[j]);
    }
}

/* What was given to us less what the devices compute on; false = nothing is left. */
static bool choose(struct runner_place *place, const struct lab_runner_spec *spec, bool siblings) {
    CPU_OR_S(place->size, place->own, place->original, place->original);
    for (int i = 0; i < spec->plan->devices.count; i++) {
        const struct lab_device_ref *device = &spec->plan->devices.items[i];
        if (device->cpus.count == 0 || !is_used(spec, device->name))
            continue;
        for (int j = 0; j < device->cpus.count; j++) {
            remove_cpu(place, device->cpus.items[j]);
            if (siblings)
                remove_siblings(place, spec->machine, device->cpus.items[j]);
        }
    }
    return CPU_COUNT_S(place->size, place->own) > 0;
}

void runner_place_init(struct runner_place *place, const struct lab_runner_spec *spec) {
    *place = (struct runner_place){.size = CPU_ALLOC_SIZE(CPU_MAX)};
    place->original = lab_mem_alloc(1, place->size);
    place->own = lab_mem_alloc(1, place->size);
    if (sched_getaffinity(0, place->size, place->original) < 0)
        return;
    place->bound = choose(place, spec, true) || choose(place, spec, false);
    runner_place_resume(place);
}

void runner_place_yield(const struct runner_place *place) {
    if (place->bound)
        sched_setaffinity(0, place->size, place->original);
}

void runner_place_resume(const struct runner_place *place) {
    if (place->bound)
        sched_setaffinity(0, place->size, place->own);
}

void runner_place_release(struct runner_place *place) {
    runner_place_yield(place);
    lab_mem_free(place->original);
    lab_mem_free(place->own);
    *place = (struct runner_place){0};
}
