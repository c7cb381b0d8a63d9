/*
 * plan_spread.c: `spread`, for studies of a program's settings rather than of devices. Each point
 * runs once, on whichever of gpu_ids is free when its turn comes; the runner chooses and records
 * it. The device is no part of a run's identity then, but its kind is: results of a CPU are none of
 * a GPU.
 */
#include "plan/plan_internal.h"

#include <string.h>

int plan_spread_check(const struct plan_job *job, struct lab_err *err) {
    if (!job->keys.spread)
        return 0;
    const struct lab_value *value = lab_value_get(job->experiment, "spread");
    const char *other = job->phase_count > 0 ? "phases" : job->keys.gpu_mode ? "gpu_mode" : NULL;
    if (other)
        return lab_value_err(value, err,
                             "experiment.spread and experiment.%s both say where a point runs: "
                             "leave one out",
                             other);
    return 0;
}

struct lab_value *plan_spread_nodes(struct lab_value *nodes, struct lab_arena *arena) {
    bool list = nodes->type == LAB_VALUE_LIST;
    if (list ? nodes->count == 1 : nodes->type == LAB_VALUE_INT)
        return nodes;
    struct lab_value *local = lab_value_string(arena, "local");
    local->origin = nodes->origin;
    local->line = nodes->line;
    return local;
}

void plan_spread_note(struct plan_book *book, const struct plan_job *job) {
    const struct lab_value *nodes =
        lab_value_get(lab_value_get(job->experiment, "hardware"), "numa_nodes");
    bool several = nodes && (nodes->type == LAB_VALUE_LIST
                                 ? nodes->count > 1
                                 : lab_str_equal(lab_value_as_text(nodes, NULL), "all"));
    if (job->keys.spread && several)
        plan_note(book, "spread=true: each run uses its device's local NUMA node; the nodes of "
                        "numa_nodes aren't crossed");
}

int plan_spread_count(const struct lab_value *gpu_ids) {
    return gpu_ids->type == LAB_VALUE_LIST ? gpu_ids->count : 1;
}

const struct lab_value *plan_spread_slot(const struct lab_value *gpu_ids, int index) {
    return gpu_ids->type == LAB_VALUE_LIST ? gpu_ids->items[index] : gpu_ids;
}

/* --- kinds of devices --- */

/* "cuda", "cpu/2", "sim:g5.12xlarge": what a device's name says beside its number. */
static const char *kind_of(const struct lab_device_ref *ref, struct lab_arena *arena) {
    const char *name = ref->simulated ? ref->machine->source : ref->backend;
    return ref->slices > 1 ? lab_arena_printf(arena, "%s/%d", name, ref->slices) : name;
}

static bool same_size(const struct lab_device_ref *a, const struct lab_device_ref *b) {
    return a->compute_units == b->compute_units && a->capability == b->capability &&
           a->cpus.count == b->cpus.count && (a->cpus.count || a->memory_bytes == b->memory_bytes);
}

int plan_spread_place(struct plan_book *book, const struct lab_value *gpu_ids,
                      const struct lab_value *nodes, const struct lab_run_rank *slots,
                      int slot_count, int rank_count, const char **ret_place, struct lab_err *err) {
    const struct lab_device_ref *first = &book->devices.items[slots[0].gpu_id];
    const char *kind = kind_of(first, book->arena);
    for (int i = 1; i < slot_count * rank_count; i++) {
        const struct lab_device_ref *other = &book->devices.items[slots[i].gpu_id];
        if (!lab_str_equal(kind, kind_of(other, book->arena)))
            return lab_value_err(
                gpu_ids, err,
                "experiment.spread: %s and %s aren't of one kind: a point's result "
                "would depend on which one is free",
                first->name, other->name);
        if (!same_size(first, other))
            plan_note(book,
                      "spread=true: %s and %s differ in size; results depend on which one a point "
                      "got",
                      first->name, other->name);
    }
    LAB_AUTO(str, text);
    for (int i = 0; i < rank_count; i++) {
        lab_str_printf(&text, "rank any %s ", kind);
        if (plan_is_local_node(nodes))
            lab_str_add(&text, "local\n");
        else
            lab_str_printf(&text, "%d\n", slots[i].numa_node);
    }
    *ret_place = lab_arena_strdup(book->arena, text.text);
    return 0;
}

/* --- how many at the same time --- */

int plan_spread_workers(const struct plan_book *book, const struct plan_keys *keys) {
    int most = 1;
    if (keys->max_workers > 0)
        return (int)keys->max_workers;
    for (int i = 0; i < book->draft_count; i++) {
        int count;
        const struct lab_run_rank *ranks = plan_draft_places(&book->drafts[i], &count);
        for (int k = 0; k < count; k++) /* slices and simulated devices take turns */
            if (lab_device_why_together(&book->devices.items[ranks[k].gpu_id], book->arena))
                return 1;
        most = book->drafts[i].slot_count > most ? book->drafts[i].slot_count : most;
    }
    return keys->spread ? most * (int)keys->runs_per_device : 1;
}
