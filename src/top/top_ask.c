/* top_ask.c: asking a history: what is listed, the latest, sums, gaps, points of the past. */
#include "top/top_internal.h"

#include <math.h>

#define HOLD_NS  (3 * TOP_NS_PER_S) /* what is read once a second is no hole between */
#define STALE_NS (5 * TOP_NS_PER_S) /* without a word for that long, something is wrong */

/* --- what is listed --- */

bool top_has_gpus(const struct lab_top_history *history) {
    return top_of_kind(history, LAB_ENTITY_GPU) || top_of_kind(history, LAB_ENTITY_MIG);
}

const struct top_entity *top_of_kind(const struct lab_top_history *history,
                                     enum lab_entity_kind kind) {
    for (int i = 0; i < history->count; i++)
        if (history->entities[i].known && history->entities[i].entity.kind == kind)
            return &history->entities[i];
    return NULL;
}

/* GPUs in order, each followed by its instances; an instance whose GPU isn't there comes last. */
static int64_t place(const struct lab_top_history *history, int number) {
    const struct lab_entity *entity = &history->entities[number].entity;
    if (entity->kind == LAB_ENTITY_GPU)
        return (int64_t)entity->index * 1000;
    int parent = entity->parent;
    bool has = parent >= 0 && parent < history->count && history->entities[parent].known;
    return (int64_t)(has ? history->entities[parent].entity.index : 1000000) * 1000 + 1 +
           entity->index;
}

int top_devices(const struct lab_top_history *history, int ret[TOP_DEVICES_MAX]) {
    int count = 0;
    for (int i = 0; i < history->count && count < TOP_DEVICES_MAX; i++) {
        const struct top_entity *entity = &history->entities[i];
        if (!entity->known ||
            (entity->entity.kind != LAB_ENTITY_GPU && entity->entity.kind != LAB_ENTITY_MIG))
            continue;
        int at = count++;
        for (; at > 0 && place(history, ret[at - 1]) > place(history, i); at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
    const struct top_entity *cpu = top_of_kind(history, LAB_ENTITY_CPU);
    if (count == 0 && cpu)
        ret[count++] = (int)(cpu - history->entities);
    return count;
}

void top_device_name(const struct lab_top_history *history, const struct top_entity *entity,
                     struct lab_str *out) {
    int parent = entity->entity.parent;
    switch (entity->entity.kind) {
    case LAB_ENTITY_GPU:
        lab_str_printf(out, "GPU %d", entity->entity.index);
        break;
    case LAB_ENTITY_MIG:
        if (parent >= 0 && parent < history->count && history->entities[parent].known)
            lab_str_printf(out, "GPU %d ", history->entities[parent].entity.index);
        lab_str_printf(out, "MIG %d", entity->entity.index);
        break;
    default:
        lab_str_add(out, "CPU");
    }
}

const char *top_model(const struct lab_entity *entity) {
    static const char *const makers[] = {"NVIDIA ", "GeForce ", "Tesla "};
    const char *name = entity->name;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        if (lab_str_starts(name, makers[i]))
            name += strlen(makers[i]);
    return name;
}

int top_gpu_index(const struct lab_top_history *history, int number) {
    if (number < 0 || number >= history->count || !history->entities[number].known)
        return -1;
    const struct lab_entity *entity = &history->entities[number].entity;
    return entity->kind == LAB_ENTITY_MIG ? top_gpu_index(history, entity->parent) : entity->index;
}

int64_t lab_top_history_time_ns(const struct lab_top_history *history) {
    return history->time_ns;
}

bool lab_top_history_simulated(const struct lab_top_history *history) {
    for (int i = 0; i < history->count; i++)
        if (history->entities[i].known && history->entities[i].entity.simulated)
            return true;
    return false;
}

bool lab_top_history_is_whole(const struct lab_top_history *history, int64_t span_ns) {
    bool any = false;
    for (int i = 0; i < history->count; i++) {
        const struct top_entity *entity = &history->entities[i];
        if (!entity->known)
            continue;
        any = true;
        if (entity->last_ns - entity->first_ns < span_ns && entity->gap_ns < 0)
            return false;
    }
    for (int i = 0; i < history->processes.count; i++)
        if (any && !isnan(history->processes.items[i].cpu_percent))
            return true;
    return false;
}

/* --- values --- */

const struct top_column *top_column(const struct top_entity *entity, enum lab_metric_id metric,
                                    int instance) {
    if (!entity || !entity->known)
        return NULL;
    int column = lab_entity_column(&entity->entity, metric, instance);
    return column < 0 || !entity->columns[column].count ? NULL : &entity->columns[column];
}

/* GPUs that give no rates count bytes all the same. */
static int counter_of(enum lab_metric_id rate) {
    switch (rate) {
    case LAB_METRIC_PCIE_TX_RATE:
        return LAB_METRIC_PCIE_TX_BYTES;
    case LAB_METRIC_PCIE_RX_RATE:
        return LAB_METRIC_PCIE_RX_BYTES;
    case LAB_METRIC_NVLINK_TX_RATE:
        return LAB_METRIC_NVLINK_TX_BYTES;
    case LAB_METRIC_NVLINK_RX_RATE:
        return LAB_METRIC_NVLINK_RX_BYTES;
    default:
        return -1;
    }
}

double top_latest(const struct top_entity *entity, enum lab_metric_id metric, int instance) {
    const struct top_column *column = top_column(entity, metric, instance);
    if (column)
        return (double)column->value * lab_metric(metric)->scale;
    int counter = counter_of(metric);
    if (counter >= 0 && (column = top_column(entity, (enum lab_metric_id)counter, instance)))
        return column->rate;
    return NAN;
}

const struct top_column *top_charted(const struct top_entity *entity, enum lab_metric_id metric,
                                     int instance) {
    const struct top_column *column = top_column(entity, metric, instance);
    int counter = counter_of(metric);
    if (!column && counter >= 0)
        column = top_column(entity, (enum lab_metric_id)counter, instance);
    return column && column->points ? column : NULL;
}

double top_mean(const struct top_entity *entity, enum lab_metric_id metric) {
    const struct top_column *column = top_column(entity, metric, -1);
    return column ? column->sum / (double)column->count : (double)NAN;
}

double top_highest(const struct top_entity *entity, enum lab_metric_id metric) {
    const struct top_column *column = top_column(entity, metric, -1);
    return column ? column->highest : (double)NAN;
}

double top_growth(const struct top_entity *entity, enum lab_metric_id metric) {
    const struct top_column *column = top_column(entity, metric, -1);
    return column && column->count > 1 ? column->growth : (double)NAN;
}

double top_held_back_s(const struct top_entity *entity) {
    static const enum lab_metric_id counters[] = {
        LAB_METRIC_THROTTLED_POWER, LAB_METRIC_THROTTLED_SYNC, LAB_METRIC_THROTTLED_THERMAL,
        LAB_METRIC_THROTTLED_HW_THERMAL, LAB_METRIC_THROTTLED_BRAKE};
    double most = NAN;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        most = fmax(most, top_growth(entity, counters[i])); /* they overlap: no sum */
    if (isnan(most) && top_column(entity, LAB_METRIC_CLOCK_REASONS, -1))
        most = (double)entity->held_back_ns * 1e-9;
    return most;
}

double top_energy_j(const struct top_entity *entity) {
    double joules = top_growth(entity, LAB_METRIC_ENERGY);
    if (isnan(joules) && entity->first_ns >= 0) /* no counter: mean power over the time */
        joules = top_mean(entity, LAB_METRIC_POWER) * (double)(entity->last_ns - entity->first_ns) *
                 1e-9;
    return joules;
}

/* --- gaps --- */

const char *top_gap(const struct lab_top_history *history, const struct top_entity *entity,
                    int64_t now_ns, char *text, size_t size) {
    int64_t answered_ns = entity->last_ns > entity->back_ns ? entity->last_ns : entity->back_ns;
    bool gap = entity->gap_ns > answered_ns;
    int64_t stale_ns = 5 * history->setup.interval_ns;
    if (stale_ns < STALE_NS)
        stale_ns = STALE_NS;
    bool stale = entity->last_ns >= 0 && now_ns - entity->last_ns > stale_ns;
    if (!gap && !stale)
        return NULL;
    const char *why = gap && *entity->gap_text ? entity->gap_text : "";
    char seconds[TOP_TEXT];
    if (entity->last_ns < 0) {
        snprintf(text, size, "no answer yet%s%s", *why ? ": " : "", why);
        return text;
    }
    top_seconds((double)(now_ns - entity->last_ns) * 1e-9, seconds);
    snprintf(text, size, "no answer for %s%s%s", seconds, *why ? ": " : "", why);
    return text;
}

/* --- the past --- */

double top_point(const struct lab_top_history *history, const struct top_entity *entity,
                 const struct top_column *column, int64_t now_ns, int back) {
    int64_t bucket = now_ns / history->bucket_ns - back;
    int64_t hold = HOLD_NS / history->bucket_ns;
    if (bucket < entity->bucket_first || entity->bucket_first < 0)
        return NAN;
    for (int64_t b = bucket; b >= bucket - hold && b >= entity->bucket_first; b--) {
        if (b > entity->bucket || b <= entity->bucket - LAB_TOP_POINTS)
            continue;
        double value = (double)column->points[b % LAB_TOP_POINTS];
        if (!isnan(value))
            return value;
    }
    return NAN;
}
