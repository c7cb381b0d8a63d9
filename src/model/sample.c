/* sample.c: finding a value in a tick, and the names of events. */
#include "model/sample.h"

#include "base/list.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>

int lab_entity_column(const struct lab_entity *entity, enum lab_metric_id metric, int instance) {
    for (int i = 0; i < entity->column_count; i++)
        if (entity->columns[i].metric == (int)metric && entity->columns[i].instance == instance)
            return i;
    return -1;
}

double lab_tick_value(const struct lab_entity *entity, const struct lab_tick *tick,
                      enum lab_metric_id metric, int instance) {
    int column = lab_entity_column(entity, metric, instance);
    if (column < 0 || !lab_valid_get(tick->valid, column))
        return NAN;
    return (double)tick->values[column] * lab_metric(metric)->scale;
}

struct lab_entity lab_entity_copy(const struct lab_entity *entity, struct lab_arena *arena) {
    struct lab_entity copy = *entity;
    copy.id = lab_arena_strdup(arena, entity->id ? entity->id : "");
    copy.name = lab_arena_strdup(arena, entity->name ? entity->name : "");
    copy.pci = lab_arena_strdup(arena, entity->pci ? entity->pci : "");
    copy.columns = lab_arena_copy(arena, entity->columns, (size_t)entity->column_count,
                                  sizeof *entity->columns);
    return copy;
}

static const char *const entity_kinds[LAB_ENTITY_KIND_COUNT] = {
    [LAB_ENTITY_GPU] = "gpu",       [LAB_ENTITY_MIG] = "mig",   [LAB_ENTITY_CPU] = "cpu",
    [LAB_ENTITY_MEMORY] = "memory", [LAB_ENTITY_NUMA] = "numa",
};

const char *lab_entity_kind_name(enum lab_entity_kind kind) {
    return entity_kinds[kind];
}

int lab_entity_kind_find(const char *name) {
    return lab_list_find_text(entity_kinds, LAB_ENTITY_KIND_COUNT, name);
}

const char *lab_event_kind_name(enum lab_event_kind kind) {
    static const char *const names[LAB_EVENT_KIND_COUNT] = {
        [LAB_EVENT_GAP] = "gap",       [LAB_EVENT_BACK] = "back",
        [LAB_EVENT_MISSED] = "missed", [LAB_EVENT_XID] = "xid",
        [LAB_EVENT_CLOCK] = "clock",   [LAB_EVENT_NOT_STORED] = "not_stored",
        [LAB_EVENT_MARK] = "mark",
    };
    assert(kind < LAB_EVENT_KIND_COUNT);
    return names[kind];
}

enum lab_event_kind lab_event_kind_find(const char *name) {
    for (int i = 0; i < LAB_EVENT_KIND_COUNT; i++)
        if (lab_str_equal(name, lab_event_kind_name((enum lab_event_kind)i)))
            return (enum lab_event_kind)i;
    return LAB_EVENT_KIND_COUNT;
}
