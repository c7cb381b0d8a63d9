/*
 * plan_phases.c: phases of a study: each device alone, all of them at once, and kept apart in one
 * way or another. A phase is a name, who runs at the same time, and what keeps them apart; some are
 * known by name. What can't be had on these devices is left out of a phase that has more to it,
 * with a note; a phase that has nothing else is left out as a whole.
 */
#include "plan/plan_internal.h"

#include "base/list.h"
#include "device/tunable.h"

#define ISOLATED (LAB_PLAN_PROCESS | LAB_PLAN_AFFINITY | LAB_PLAN_NUMA)

static const struct lab_plan_phase known[] = {
    {.name = "baseline"},
    {.name = "baseline_again"},
    {.name = "concurrent", .together = true},
    {.name = "isolated", .together = true, .mitigations = ISOLATED},
    {.name = "process", .together = true, .mitigations = LAB_PLAN_PROCESS},
    {.name = "affinity", .together = true, .mitigations = LAB_PLAN_AFFINITY},
    {.name = "numa", .together = true, .mitigations = LAB_PLAN_NUMA},
    {.name = "topology", .together = true, .mitigations = LAB_PLAN_TOPOLOGY},
    {.name = "tuning_cache", .together = true, .mitigations = LAB_PLAN_TUNING_CACHE},
    {.name = "mps", .together = true, .mitigations = LAB_PLAN_MPS},
    {.name = "disturbed"},
    {.name = "regret", .regret = true},
};
#define KNOWN_COUNT ((int)(sizeof known / sizeof *known))

static const char *const *known_names(void) {
    static const char *names[KNOWN_COUNT + 1];
    for (int i = 0; i < KNOWN_COUNT; i++)
        names[i] = known[i].name;
    return names;
}

void plan_note(struct plan_book *book, const char *format, ...) {
    char text[512];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    if (!book->notes)
        book->notes = lab_arena_alloc(book->arena, PLAN_NOTES_MAX + 1, sizeof *book->notes);
    for (int i = 0; i < book->note_count; i++)
        if (lab_str_equal(book->notes[i], text))
            return;
    if (book->note_count < PLAN_NOTES_MAX)
        book->notes[book->note_count++] = lab_arena_strdup(book->arena, text);
}

void plan_phase_write(const struct lab_plan_phase *phase, struct lab_str *out) {
    lab_str_add(out, phase->regret ? "regret" : phase->together ? "together" : "alone");
    for (int bit = 0; lab_plan_mitigations[bit]; bit++)
        if (phase->mitigations & (1u << bit))
            lab_str_printf(out, " %s", lab_plan_mitigations[bit]);
    if (phase->disturb)
        lab_str_printf(out, " disturb=%s", phase->disturb);
}

/* --- devices --- */

static const struct lab_device_ref *device_at(const struct plan_book *book, int gpu_id) {
    return &book->devices.items[gpu_id];
}

static const struct lab_pci *pci_of(const struct lab_machine *machine,
                                    const struct lab_device_ref *ref) {
    for (int i = 0, n = 0; ref->cpus.count == 0 && i < machine->pci_count; i++)
        if (machine->pci[i].kind == LAB_PCI_GPU &&
            (machine->simulated || machine->pci[i].vendor_id == 0x10de) && n++ == ref->unit)
            return &machine->pci[i];
    return NULL;
}

/* What two devices share beside the machine: "GPU", "NUMA node", "PCIe switch"; NULL = nothing. */
static const char *shared_link(const struct plan_book *book, int a, int b) {
    const struct lab_device_ref *x = device_at(book, a), *y = device_at(book, b);
    if (lab_str_equal(x->physical, y->physical))
        return x->cpus.count > 0 ? "NUMA node" : "GPU";
    if (x->cpus.count > 0 || y->cpus.count > 0)
        return x->cpus.count > 0 && y->cpus.count > 0 && x->node == y->node ? "NUMA node" : NULL;
    const struct lab_pci *of_x = pci_of(book->machine, x), *of_y = pci_of(book->machine, y);
    enum lab_link link =
        of_x && of_y ? lab_machine_link(book->machine, of_x, of_y) : LAB_LINK_UNKNOWN;
    return link == LAB_LINK_PIX || link == LAB_LINK_PXB ? "PCIe switch" : NULL;
}

/* Gangs in which no two devices share anything: each device goes to the first that has room for
 * it. */
static int split(const struct plan_book *book, const int *gpu_ids, int count, int *ret_gang) {
    int gangs = 0;
    for (int i = 0; i < count; i++) {
        int gang = 0;
        for (bool clear = false; !clear; gang += !clear) {
            clear = true;
            for (int k = 0; k < i; k++)
                clear &= ret_gang[k] != gang || !shared_link(book, gpu_ids[k], gpu_ids[i]);
        }
        ret_gang[i] = gang;
        gangs = gang + 1 > gangs ? gang + 1 : gangs;
    }
    return gangs;
}

int plan_phase_gangs(const struct plan_book *book, const struct lab_plan_phase *phase,
                     const int *gpu_ids, int count, struct plan_gang **ret_gangs) {
    int gang_of[LAB_OPTION_INTS_MAX] = {0}, gangs = 1;
    bool alone = !phase->together;
    if (alone)
        gangs = count;
    else if (phase->mitigations & LAB_PLAN_TOPOLOGY)
        gangs = split(book, gpu_ids, count, gang_of);
    *ret_gangs = lab_arena_alloc(book->arena, (size_t)gangs, sizeof **ret_gangs);
    for (int g = 0; g < gangs; g++) {
        int *ids = lab_arena_alloc(book->arena, (size_t)count, sizeof *ids), size = 0;
        for (int i = 0; i < count; i++)
            if (alone ? i == g : gang_of[i] == g)
                ids[size++] = gpu_ids[i];
        (*ret_gangs)[g] = (struct plan_gang){ids, size};
    }
    return gangs;
}

/* Why devices of the list that would run at the same time can't be in processes of their own. */
static const char *why_shared(const struct plan_book *book) {
    for (int i = 1; i < book->devices.count; i++)
        for (int k = 0; k < i; k++)
            if (book->machine->simulated ||
                lab_str_equal(device_at(book, i)->physical, device_at(book, k)->physical))
                return lab_device_why_together(device_at(book, i), book->arena);
    return NULL;
}

enum lab_plan_processes plan_phase_processes(const struct plan_book *book,
                                             const struct lab_plan_phase *phase,
                                             const struct lab_run_rank *ranks, int count) {
    bool apart = phase->mitigations & (LAB_PLAN_PROCESS | LAB_PLAN_MPS);
    for (int i = 0; i < count; i++) { /* a process can use one MIG instance only */
        const char *uuid = device_at(book, ranks[i].gpu_id)->uuid;
        apart |= uuid && lab_str_starts(uuid, "MIG-");
    }
    return count > 1 && (!apart || why_shared(book)) ? LAB_PLAN_SHARED : LAB_PLAN_PER_RANK;
}

bool plan_can_tune(const struct plan_book *book, const struct plan_work *work, int gpu_id) {
    struct lab_launch launch;
    struct lab_tunable_place place = {book->machine, device_at(book, gpu_id)};
    if (!work->workload->launch)
        return false;
    work->workload->launch(work->config, &launch);
    return lab_launch_complete(&launch, NULL) == 0 && lab_tunable_find(&place, &launch);
}

/* --- what can be had here --- */

/* Why this one mitigation does nothing here; NULL = it can be had. In the arena. */
static const char *why_not(const struct plan_book *book, unsigned bit) {
    const struct lab_device_ref *first = device_at(book, 0);
    int all[LAB_OPTION_INTS_MAX], gangs[LAB_OPTION_INTS_MAX];
    int count =
        book->devices.count < LAB_OPTION_INTS_MAX ? book->devices.count : LAB_OPTION_INTS_MAX;
    switch (bit) {
    case LAB_PLAN_PROCESS:
        return why_shared(book);
    case LAB_PLAN_MPS: {
        const struct lab_backend *backend = lab_backend_find(first->backend);
        if (first->cpus.count > 0 || first->simulated)
            return "MPS is the driver's, for processes that share a GPU";
        return backend->why_together ? backend->why_together(book->arena) : NULL;
    }
    case LAB_PLAN_AFFINITY:
        return first->simulated ? "simulated devices have no CPUs to bind to" : NULL;
    case LAB_PLAN_NUMA:
        return book->machine->binds_itself ? "memory is on the local NUMA node anyway" : NULL;
    case LAB_PLAN_TOPOLOGY:
        for (int i = 0; i < count; i++)
            all[i] = i;
        int parts = split(book, all, count, gangs);
        if (parts == 1)
            return "no two of the devices share a link";
        if (parts == count)
            return lab_arena_printf(book->arena, "all devices share one %s",
                                    shared_link(book, 0, 1));
        return NULL;
    default:
        return NULL;
    }
}

/* False: nothing is left of the phase. One note says what is missing and why. */
static bool fit(struct plan_book *book, struct lab_plan_phase *phase) {
    unsigned wanted = phase->mitigations;
    const char *left_out[8 * sizeof wanted + 1] = {NULL};
    int count = 0;
    LAB_AUTO(str, names);
    LAB_AUTO(str, reasons);
    for (int bit = 0; lab_plan_mitigations[bit]; bit++) {
        const char *why = wanted & (1u << bit) ? why_not(book, 1u << bit) : NULL;
        if (!why)
            continue;
        phase->mitigations &= ~(1u << bit);
        left_out[count++] = lab_plan_mitigations[bit];
        lab_str_printf(&reasons, "%s%s", reasons.length ? "; " : "", why);
    }
    lab_str_add_list(&names, left_out, "and");
    if (wanted && !phase->mitigations) {
        plan_note(book, "phase %s is left out, as no mitigation of it applies: %s", phase->name,
                  reasons.text);
        return false;
    }
    if (count > 0)
        plan_note(book, "phase %s: mitigation%s %s left out: %s", phase->name, count > 1 ? "s" : "",
                  names.text, reasons.text);
    if (phase->together && book->devices.count < 2) {
        plan_note(book, "phase %s is left out: there is only one device, %s", phase->name,
                  device_at(book, 0)->name);
        return false;
    }
    return true;
}

/* --- reading --- */

static int read_apart(const struct lab_value *list, struct lab_plan_phase *phase,
                      struct lab_err *err) {
    for (int i = 0; i < list->count; i++) {
        int bit = lab_str_find(lab_value_as_text(list->items[i], ""), lab_plan_mitigations);
        if (bit < 0) {
            LAB_AUTO(str, names);
            lab_str_add_list(&names, lab_plan_mitigations, "and");
            lab_value_err(list->items[i], err, "apart: there are %s", names.text);
            return -1;
        }
        phase->mitigations |= 1u << bit;
    }
    return 0;
}

static int read_map(const struct plan_book *book, const struct lab_value *map,
                    struct lab_plan_phase *ret_phase, struct lab_err *err) {
    static const char *const keys[] = {"name", "place", "apart", NULL};
    const struct lab_value *name = lab_value_get(map, "name"), *place = lab_value_get(map, "place"),
                           *apart = lab_value_get(map, "apart");
    for (int i = 0; i < map->count; i++)
        if (lab_str_find(map->keys[i], keys) < 0)
            return lab_value_err(map->items[i], err,
                                 "unknown key '%.80s' of a phase: there are name, place and apart",
                                 map->keys[i]);
    if (!name || name->type != LAB_VALUE_STRING || !*name->string)
        return lab_value_err(name ? name : map, err, "a phase needs a name");
    if (strspn(name->string, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name->string))
        return lab_value_err(name, err, "a phase's name has a-z, 0-9 and _, unlike %.40s",
                             name->string);
    const char *where = place && place->type == LAB_VALUE_STRING ? place->string : "";
    if (!lab_str_equal(where, "alone") && !lab_str_equal(where, "together"))
        return lab_value_err(place ? place : map, err,
                             "place of phase %.40s: must be alone or "
                             "together",
                             name->string);
    if (apart && apart->type != LAB_VALUE_LIST)
        return lab_value_err(apart, err, "apart must be a list, such as [process, numa]");
    *ret_phase = (struct lab_plan_phase){.name = lab_arena_strdup(book->arena, name->string),
                                         .together = lab_str_equal(where, "together")};
    return apart ? read_apart(apart, ret_phase, err) : 0;
}

static int read_phase(const struct plan_book *book, const struct lab_value *value,
                      struct lab_plan_phase *ret_phase, struct lab_err *err) {
    if (value->type == LAB_VALUE_MAP)
        return read_map(book, value, ret_phase, err);
    if (value->type != LAB_VALUE_STRING)
        return lab_value_err(value, err, "a phase is a name, or a map of name, place and apart");
    for (int i = 0; i < KNOWN_COUNT; i++)
        if (lab_str_equal(known[i].name, value->string)) {
            *ret_phase = known[i];
            return 0;
        }
    LAB_AUTO(str, names);
    lab_str_add_list(&names, known_names(), "and");
    lab_value_err(value, err, "there is no phase '%.40s': there are %s", value->string, names.text);
    return -1;
}

/* A neighbour that these devices can have. */
static int check_disturb(const struct plan_book *book, const struct plan_job *job,
                         struct lab_err *err) {
    static const char *const of_cpus[] = {"cpu", "membw", NULL};
    static const char *const of_gpus[] = {"pcie", "membw", "sm", "power", NULL};
    bool cpus = device_at(book, 0)->cpus.count > 0;
    const char *const *kinds = cpus ? of_cpus : of_gpus;
    if (lab_str_find(job->keys.disturb, kinds) >= 0)
        return 0;
    LAB_AUTO(str, names);
    lab_str_add_list(&names, kinds, "or");
    lab_value_err(lab_value_get(job->experiment, "disturb"), err,
                  "not possible on %s: on %s it must be %s", device_at(book, 0)->name,
                  cpus ? "CPUs" : "GPUs", names.text);
    return -1;
}

/* The phase `disturbed` has the neighbour that is asked for, and is there whenever one is. */
static int add_disturbed(const struct plan_book *book, const struct plan_job *job,
                         struct lab_plan_phase *phases, int *count, const struct lab_value *list,
                         struct lab_err *err) {
    bool wanted = !lab_str_equal(job->keys.disturb, "none");
    int at = 0;
    if (wanted && check_disturb(book, job, err) < 0)
        return -1;
    while (at < *count && !lab_str_equal(phases[at].name, "disturbed"))
        at++;
    if (at < *count && !wanted)
        return lab_value_err(list, err,
                             "phase disturbed needs a neighbour: add experiment.disturb=%s",
                             device_at(book, 0)->cpus.count > 0 ? "cpu" : "sm");
    if (!wanted)
        return 0;
    if (at == *count)
        phases[(*count)++] = (struct lab_plan_phase){.name = "disturbed"};
    phases[at].disturb = lab_arena_strdup(book->arena, job->keys.disturb);
    return 0;
}

static int check_whole(const struct plan_book *book, const struct plan_job *job,
                       const struct lab_value *list, struct lab_err *err) {
    bool phased = list && list->type != LAB_VALUE_NULL;
    if (!phased && !lab_str_equal(job->keys.disturb, "none"))
        return lab_value_err(lab_value_get(job->experiment, "disturb"), err,
                             "disturb needs a study with phases: "
                             "gpulab run %s experiment.disturb=%s",
                             lab_config_study_for("contention", book->arena), job->keys.disturb);
    if (phased && (list->type != LAB_VALUE_LIST || list->count == 0))
        return lab_value_err(list, err,
                             "experiment.phases must be a list, such as [baseline, "
                             "concurrent, isolated]");
    if (phased && (job->keys.max_workers > 1 || job->keys.processes))
        return lab_value_err(list, err,
                             "phases define what runs at the same time: leave experiment.%s out",
                             job->keys.processes ? "processes" : "max_workers");
    return phased ? 1 : 0;
}

/* Phases that begin with what `baseline` chose fail run by run without it. */
static int check_choices(const struct lab_plan_phase *phases, int count,
                         const struct lab_value *list, struct lab_err *err) {
    bool chosen = LAB_FIND(phases, count, name, "baseline") >= 0;
    for (int i = 0; i < count && !chosen; i++) {
        if (phases[i].regret)
            return lab_value_err(list, err,
                                 "%s compares the choices of other phases with those of baseline: "
                                 "add them, such as [baseline, concurrent, %s]",
                                 phases[i].name, phases[i].name);
        if (phases[i].mitigations & LAB_PLAN_TUNING_CACHE)
            return lab_value_err(list, err, "%s uses baseline's choices: add baseline",
                                 phases[i].name);
    }
    return 0;
}

int plan_phases_read(struct plan_book *book, struct plan_job *job, struct lab_err *err) {
    const struct lab_value *list = lab_value_get(job->experiment, "phases");
    int phased = check_whole(book, job, list, err), count = 0, kept = 0;
    if (phased <= 0)
        return phased;
    struct lab_plan_phase *phases =
        lab_arena_alloc(book->arena, (size_t)list->count + 1, sizeof *phases);
    for (int i = 0; i < list->count; i++) {
        if (read_phase(book, list->items[i], &phases[count], err) < 0)
            return lab_err_context(err, "experiment.phases");
        for (int k = 0; k < count; k++)
            if (lab_str_equal(phases[k].name, phases[count].name))
                return lab_value_err(list->items[i], err, "experiment.phases: duplicate %s",
                                     phases[k].name);
        count++;
    }
    if (add_disturbed(book, job, phases, &count, list, err) < 0 ||
        check_choices(phases, count, list, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (fit(book, &phases[i]))
            phases[kept++] = phases[i];
    if (kept == 0)
        return lab_value_err(list, err, "experiment.phases: none is possible here: %s",
                             book->notes[0]);
    job->phases = phases;
    job->phase_count = kept;
    return 0;
}
