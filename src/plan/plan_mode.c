/*
 * plan_mode.c: `gpu_mode`, for studies that hold several devices against one: which gangs the list
 * of devices comes to, and which of them are worth a run.
 *
 * What `auto` goes by is what was measured on these devices, where somebody knows of it
 * (lab_plan_strategy); else the rules of a published study of training on two GPUs, on true counts
 * of parameters: below 1 M one device; up to 5 M several from batch 128 on; from 10 M on several
 * from batch 64 on; between 5 M and 10 M they are tried.
 */
#include "plan/plan_internal.h"

#include <string.h>

static bool is(const struct plan_job *job, const char *mode) {
    return lab_str_equal(job->keys.gpu_mode, mode);
}

static bool asks_nccl(const struct lab_value *options) {
    const struct lab_value *way = lab_value_get(options, "allreduce");
    return way && way->type == LAB_VALUE_STRING && lab_str_equal(way->string, "nccl");
}

static const char *what_needs_several(const struct plan_job *job) {
    if (asks_nccl(job->experiment))
        return "allreduce=nccl sums between whole NVIDIA GPUs, two or more";
    return is(job, "multi") ? "gpu_mode=multi needs several devices"
                            : "gpu_mode=compare needs several devices";
}

static int refuse_few(const struct plan_job *job, const struct lab_value *list,
                      struct lab_err *err) {
    const struct lab_device_list *devices = job->devices;
    const char *name = devices->count > 0 ? devices->items[0].name : "none";
    bool whole = !strchr(name, '/') && devices->count == 1 && !devices->items[0].simulated;
    LAB_AUTO(str, hint);
    if (list->count < devices->count)
        lab_str_add(&hint, "experiment.hardware.gpu_ids=all");
    else if (whole)
        lab_str_printf(&hint, "device=%s/2, two slices of it", name);
    else
        lab_str_add(&hint, "experiment.gpu_mode=single");
    lab_value_err(list, err, "%s, but device=%s has %d here (0 is %s)%s; to run it here%s, add: %s",
                  what_needs_several(job), job->keys.device, devices->count, name,
                  list->count < devices->count ? " and one is chosen" : "",
                  whole && asks_nccl(job->experiment) ? ", without NCCL" : "", hint.text);
    return -1;
}

static struct lab_value *first_of(const struct lab_value *list, int count,
                                  struct lab_arena *arena) {
    if (count == 1)
        return list->items[0];
    struct lab_value *gang = lab_value_list(arena);
    for (int i = 0; i < count; i++)
        lab_value_append(arena, gang, list->items[i]);
    gang->origin = list->origin;
    gang->line = list->line;
    return gang;
}

int plan_mode_gangs(const struct plan_job *job, struct lab_arena *arena, struct lab_value **list,
                    struct lab_err *err) {
    struct lab_value *given = *list;
    if (!job->keys.gpu_mode)
        return 0;
    if (given->type != LAB_VALUE_LIST)
        return lab_value_err(given, err,
                             "experiment.hardware.gpu_ids: with gpu_mode a list, or all");
    for (int i = 0; i < given->count; i++)
        if (given->items[i]->type == LAB_VALUE_LIST) /* gangs are given explicitly */
            return 0;
    int count = given->count;
    if (count < 2 && !is(job, "single") && !is(job, "auto"))
        return refuse_few(job, given, err);
    struct lab_value *gangs = lab_value_list(arena);
    gangs->origin = given->origin;
    gangs->line = given->line;
    if (!is(job, "multi") && count > 0)
        lab_value_append(arena, gangs, first_of(given, 1, arena));
    for (int size = 2; size < count && (is(job, "compare") || is(job, "auto")); size *= 2)
        lab_value_append(arena, gangs, first_of(given, size, arena));
    if (!is(job, "single") && count > 1)
        lab_value_append(arena, gangs, first_of(given, count, arena));
    *list = gangs;
    return 0;
}

const char *lab_plan_why_one(double parameters, double batch) {
    if (!(parameters > 0))
        return NULL;
    if (parameters < 1e6)
        return "fewer than 1 M parameters";
    if (parameters < 5e6)
        return batch < 128 ? "fewer than 5 M parameters and a batch below 128" : NULL;
    return parameters >= 10e6 && batch < 64 ? "a batch below 64" : NULL;
}

static enum lab_plan_choice ask(const struct plan_book *book, const struct plan_work *work,
                                const struct lab_run_rank *ranks, int count, const char **ret_why) {
    if (!book->strategy)
        return LAB_PLAN_UNKNOWN;
    const struct lab_device_ref *first = &book->devices.items[ranks[0].gpu_id];
    struct lab_plan_question question = {.machine = first->machine ? first->machine : book->machine,
                                         .device = first->name,
                                         .workload = work->workload->name,
                                         .options = work->options,
                                         .parameters = work->cost.parameters,
                                         .layers = work->cost.layers,
                                         .batch = work->cost.samples,
                                         .devices = count};
    return book->strategy->choose(book->strategy->state, &question, book->arena, ret_why);
}

/* What was measured on these devices decides; where nothing was, the published rules do. */
bool plan_mode_skips(struct plan_book *book, const struct plan_job *job,
                     const struct plan_work *work, const struct lab_run_rank *ranks, int count) {
    const char *why = NULL;
    if (!job->keys.gpu_mode || !is(job, "auto") || count < 2)
        return false;
    switch (ask(book, work, ranks, count, &why)) {
    case LAB_PLAN_ONE:
        plan_note(book, "gpu_mode=auto leaves %s on one device: %s", work->label, why);
        return true;
    case LAB_PLAN_SEVERAL:
        plan_note(book, "gpu_mode=auto takes %d devices for %s: %s", count, work->label, why);
        return false;
    case LAB_PLAN_TRY:
        plan_note(book, "gpu_mode=auto tries %d devices for %s: %s", count, work->label, why);
        return false;
    case LAB_PLAN_UNKNOWN:
        break;
    }
    why = lab_plan_why_one(work->cost.parameters, work->cost.samples);
    if (!why) {
        plan_note(book,
                  "gpu_mode=auto tries several devices for %s: by a published rule they may pay "
                  "off",
                  work->label);
        return false;
    }
    plan_note(book, "gpu_mode=auto leaves %s on one device, by a published rule: %s", work->label,
              why);
    return true;
}

/* Before hours are spent on settings of what never runs. */
void plan_mode_note_nccl(struct plan_book *book, const struct plan_work *work,
                         const struct lab_run_rank *ranks, int count) {
    if (count < 2 || !asks_nccl(work->options))
        return;
    const struct lab_device_ref *first = &book->devices.items[ranks[0].gpu_id];
    if (!lab_str_equal(first->backend, "cuda") || first->slices > 1)
        plan_note(book,
                  "allreduce=nccl: NCCL needs whole NVIDIA GPUs; %s don't use it, and its settings "
                  "have no effect there",
                  first->name);
}
