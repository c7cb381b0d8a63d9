/* sample.c: finding a value in a tick, and the names of events. */
#include "model/sample.h"

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
