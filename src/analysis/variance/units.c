/*
 * units.c: which runs are the same thing in different phases.
 *
 * Within a phase a unit holds repeats of one point and nothing else: whatever tells points of a
 * phase apart (the kernel, its settings, the node that feeds the device, who else is in the gang)
 * makes units of its own. What differs between phases alone doesn't: beside others a kernel runs in
 * a gang, isolated it may be fed from another node.
 */
#include "analysis/variance/phases.h"

#include "base/list.h"
#include "base/str.h"

#include <string.h>

#define SETTINGS_MAX 8 /* keys that tell runs of one phase apart */

enum attribute { KERNEL, SETTINGS, NODE, GANG, ATTRIBUTES };

struct group { /* ranks on one device, of one kernel or model */
    struct lab_phase_entry **items;
    int count;
    const char *keys[SETTINGS_MAX]; /* of options and tests */
    int key_count;
    bool split[ATTRIBUTES];
    struct lab_arena *arena;
};

/* What a run is without its device, node and phase: its kernel, and whatever else tells it
 * apart. */
static const char *kernel_of(const struct lab_study_run *run, struct lab_arena *arena) {
    struct lab_study_point point = {.name = run->point, .runs = &run, .count = 1};
    const char *name = lab_study_point_model(&point, arena);
    size_t phase = strlen(run->phase), length = strlen(name);
    if (phase == 0)
        return name;
    if (length > phase + 2 && strcmp(name + length - phase, run->phase) == 0)
        length -= phase + 2; /* ", baseline" */
    char *kernel = lab_arena_strndup(arena, name, length);
    char *within = strstr(kernel, run->phase); /* where the phase is part of the run's id */
    if (within && within > kernel && within[-1] == '_')
        memmove(within - 1, within + phase, strlen(within + phase) + 1);
    return kernel[0] ? kernel : run->model;
}

/* --- what tells runs apart --- */

static const struct lab_value *setting(const struct lab_study_run *run, const char *key) {
    const struct lab_value *value = lab_value_get(run->options, key);
    return value ? value : lab_value_get(run->test, key);
}

static bool same_value(const struct lab_value *a, const struct lab_value *b) {
    return a && b ? lab_value_equal(a, b) : a == b;
}

static void add_keys(struct group *group, const struct lab_value *map,
                     const struct lab_study_run *run, const struct lab_study_run *other) {
    for (int i = 0; i < map->count && group->key_count < SETTINGS_MAX; i++) {
        if (lab_list_find_text(group->keys, group->key_count, map->keys[i]) < 0 &&
            !same_value(setting(run, map->keys[i]), setting(other, map->keys[i])))
            group->keys[group->key_count++] = map->keys[i];
    }
}

/* The first of the same unit and phase so far: what all others are held against. */
static const struct lab_phase_entry *first_alike(const struct group *group, int number) {
    const struct lab_phase_entry *entry = group->items[number];
    int i = 0;
    while (group->items[i]->phase != entry->phase || strcmp(group->items[i]->key, entry->key) != 0)
        i++;
    return group->items[i];
}

static bool is_other_point(const struct lab_phase_entry *a, const struct lab_phase_entry *b) {
    return strcmp(a->run->point, b->run->point) != 0;
}

static void find_settings(struct group *group) {
    for (int i = 0; i < group->count; i++) {
        const struct lab_study_run *run = group->items[i]->run, *first = first_alike(group, i)->run;
        if (!is_other_point(group->items[i], first_alike(group, i)))
            continue;
        add_keys(group, run->options, run, first);
        add_keys(group, run->test, run, first);
    }
}

static const char *settings_of(const struct group *group, const struct lab_study_run *run) {
    LAB_AUTO(str, text);
    for (int k = 0; k < group->key_count; k++) {
        const struct lab_value *value = setting(run, group->keys[k]);
        lab_str_printf(&text, "%s%s ", k ? ", " : "", group->keys[k]);
        if (value)
            lab_value_write(value, &text);
        else
            lab_str_add(&text, "–");
    }
    return lab_arena_strdup(group->arena, text.text);
}

static const char *gang_of(const struct lab_study_run *run, struct lab_arena *arena) {
    const char *text = run->rank_count > 1 ? "GPUs " : "alone";
    for (int r = 0; run->rank_count > 1 && r < run->rank_count; r++)
        text = lab_arena_printf(arena, "%s%s%d", text, r ? "+" : "", run->ranks[r].gpu_id);
    return text;
}

static const char *attribute_of(const struct group *group, const struct lab_phase_entry *entry,
                                enum attribute attribute) {
    switch (attribute) {
    case KERNEL:
        return entry->kernel;
    case SETTINGS:
        return settings_of(group, entry->run);
    case NODE:
        return lab_arena_printf(group->arena, "node %d", entry->run->ranks[entry->rank].numa_node);
    case GANG:
        return gang_of(entry->run, group->arena);
    case ATTRIBUTES:
        break;
    }
    return "";
}

/* --- splitting --- */

/* By one thing, if points of one phase differ in it that are still together. */
static void split(struct group *group, enum attribute attribute) {
    const char **texts = lab_arena_alloc(group->arena, (size_t)group->count + 1, sizeof *texts);
    if (attribute == SETTINGS)
        find_settings(group);
    for (int i = 0; i < group->count; i++)
        texts[i] = attribute_of(group, group->items[i], attribute);
    for (int i = 0; i < group->count && !group->split[attribute]; i++) {
        const struct lab_phase_entry *first = first_alike(group, i);
        group->split[attribute] = is_other_point(group->items[i], first) &&
                                  strcmp(texts[i], attribute_of(group, first, attribute)) != 0;
    }
    for (int i = 0; group->split[attribute] && i < group->count; i++)
        group->items[i]->key =
            lab_arena_printf(group->arena, "%s|%s", group->items[i]->key, texts[i]);
}

/* The kernel by its own name where all of the unit have the same; what else split it follows. */
static const char *name_of(const struct group *group, const struct lab_phase_entry *entry) {
    bool same = true, told = false;
    for (int i = 0; i < group->count; i++) {
        bool kernel = strcmp(group->items[i]->kernel, entry->kernel) == 0;
        bool unit = strcmp(group->items[i]->key, entry->key) == 0;
        same &= kernel || !unit;
        told |= !kernel;
    }
    const char *name = same ? entry->kernel : entry->run->model;
    if (group->split[SETTINGS] && !(same && told))
        name = lab_arena_printf(group->arena, "%s, %s", name, settings_of(group, entry->run));
    for (int a = NODE; a < ATTRIBUTES; a++)
        if (group->split[a])
            name = lab_arena_printf(group->arena, "%s, %s", name,
                                    attribute_of(group, entry, (enum attribute)a));
    return name;
}

static void name_group(struct group *group, bool by_model) {
    static const enum attribute strict[] = {NODE, GANG, SETTINGS, KERNEL},
                                loose[] = {SETTINGS, KERNEL, NODE, GANG};
    for (int a = 0; a < ATTRIBUTES; a++)
        split(group, by_model ? loose[a] : strict[a]);
    for (int i = 0; i < group->count; i++)
        group->items[i]->name = name_of(group, group->items[i]);
}

void lab_phases_name(struct lab_phase_entry *entries, int count, bool by_model,
                     struct lab_arena *arena) {
    struct group group = {.items = lab_arena_alloc(arena, (size_t)count + 1, sizeof *group.items),
                          .arena = arena};
    for (int i = 0; i < count; i++) {
        entries[i].kernel = kernel_of(entries[i].run, arena);
        entries[i].key = by_model ? entries[i].run->model : entries[i].kernel;
        entries[i].name = NULL;
    }
    for (int i = 0; i < count; i++) {
        const char *start = entries[i].key;
        int gpu_id = entries[i].run->ranks[entries[i].rank].gpu_id;
        if (entries[i].name)
            continue;
        struct group next = {.items = group.items, .arena = arena};
        for (int k = i; k < count; k++)
            if (!entries[k].name && entries[k].run->ranks[entries[k].rank].gpu_id == gpu_id &&
                strcmp(entries[k].key, start) == 0)
                next.items[next.count++] = &entries[k];
        name_group(&next, by_model);
    }
}
