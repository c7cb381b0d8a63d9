/*
 * top_history.c: takes samples and keeps the latest of everything, sums over all of it, and a ring
 * of points for charts. It has no clock: time is what the samples say.
 */
#include "top/top_internal.h"

#include <math.h>

#define WINDOW_NS     (600 * TOP_NS_PER_S)
#define HELD_BACK_MAX (10 * TOP_NS_PER_S) /* between ticks further apart nothing is concluded */

/* --- life --- */

struct lab_top_history *lab_top_history_open(const struct lab_top_setup *setup) {
    struct lab_top_history *history = lab_mem_alloc(1, sizeof *history);
    int64_t window_ns = setup->window_ns > 0 ? setup->window_ns : WINDOW_NS;
    history->setup = *setup;
    history->bucket_ns = window_ns / LAB_TOP_POINTS + 1;
    if (history->bucket_ns < setup->interval_ns)
        history->bucket_ns = setup->interval_ns;
    lab_arena_init(&history->process_arena);
    return history;
}

static void release_entity(struct top_entity *entity) {
    for (int i = 0; entity->known && i < entity->entity.column_count; i++)
        lab_mem_free(entity->columns[i].points);
    lab_mem_free(entity->columns);
    lab_mem_free((void *)entity->entity.columns);
    lab_mem_free((void *)entity->entity.id);
    lab_mem_free((void *)entity->entity.name);
    lab_mem_free((void *)entity->entity.pci);
    *entity = (struct top_entity){.known = false};
}

static void forget(struct lab_top_history *history) {
    for (int i = 0; i < history->count; i++)
        release_entity(&history->entities[i]);
    history->count = 0;
    lab_arena_release(&history->process_arena);
    lab_arena_init(&history->process_arena);
    history->processes = (struct lab_process_list){.count = 0};
    history->has_processes = false;
    history->event_count = 0;
    history->time_ns = 0;
}

void lab_top_history_close(struct lab_top_history *history) {
    if (!history)
        return;
    forget(history);
    lab_arena_release(&history->process_arena);
    lab_mem_free(history->entities);
    lab_mem_free(history->next_tick);
    lab_mem_free(history);
}

/* --- entities --- */

static const char *copy(const char *text) {
    return lab_mem_strdup(text ? text : "");
}

static void copy_strings(struct lab_entity *to, const struct lab_entity *from) {
    to->id = copy(from->id);
    to->name = copy(from->name);
    to->pci = copy(from->pci);
}

static bool is_charted(const struct lab_column *column) {
    if (column->instance >= 0 && column->metric != LAB_METRIC_NODE_UTILIZATION)
        return false;
    switch (column->metric) {
    case LAB_METRIC_PCIE_TX_BYTES:
    case LAB_METRIC_PCIE_RX_BYTES:
    case LAB_METRIC_NVLINK_TX_BYTES:
    case LAB_METRIC_NVLINK_RX_BYTES:
        return true;
    default:
        return lab_metric((enum lab_metric_id)column->metric)->kind == LAB_METRIC_GAUGE;
    }
}

static void set_entity(struct top_entity *to, const struct lab_entity *from) {
    struct lab_column *columns = lab_mem_alloc((size_t)from->column_count + 1, sizeof *columns);
    if (from->column_count)
        memcpy(columns, from->columns, (size_t)from->column_count * sizeof *columns);
    *to = (struct top_entity){.known = true,
                              .entity = *from,
                              .first_ns = -1,
                              .last_ns = -1,
                              .gap_ns = -1,
                              .back_ns = -1,
                              .bucket = -1};
    copy_strings(&to->entity, from);
    to->entity.columns = columns;
    to->columns = lab_mem_alloc((size_t)from->column_count + 1, sizeof *to->columns);
    for (int i = 0; i < from->column_count; i++) {
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)columns[i].metric);
        to->columns[i].scale = metric->scale;
        to->columns[i].counter = metric->kind == LAB_METRIC_COUNTER;
        to->columns[i].charted = is_charted(&columns[i]);
        to->columns[i].rate = NAN;
    }
}

static void take_entity(void *state, int number, const struct lab_entity *entity) {
    struct lab_top_history *history = state;
    while (history->count <= number) {
        LAB_PUSH(history->entities, history->count) = (struct top_entity){.known = false};
    }
    struct top_entity *known = &history->entities[number];
    if (known->known && known->entity.column_count == entity->column_count &&
        lab_str_equal(known->entity.id, entity->id)) { /* it came back: its past stays */
        struct lab_entity old = known->entity;
        known->entity = *entity;
        known->entity.columns = old.columns;
        copy_strings(&known->entity, entity);
        lab_mem_free((void *)old.id);
        lab_mem_free((void *)old.name);
        lab_mem_free((void *)old.pci);
        return;
    }
    release_entity(known);
    set_entity(known, entity);
}

/* --- ticks --- */

/* Times before 0 come from nowhere but broken files, and still must not write beside the ring. */
static size_t slot(int64_t bucket) {
    return (size_t)((bucket % LAB_TOP_POINTS + LAB_TOP_POINTS) % LAB_TOP_POINTS);
}

/* Points of a new bucket begin empty, and so do those of any that were skipped. */
static void open_bucket(struct top_entity *entity, int64_t bucket) {
    if (entity->bucket < 0)
        entity->bucket_first = bucket;
    int64_t from = entity->bucket < 0 || bucket - entity->bucket > LAB_TOP_POINTS
                       ? bucket - LAB_TOP_POINTS + 1
                       : entity->bucket + 1;
    for (int i = 0; i < entity->entity.column_count; i++) {
        struct top_column *column = &entity->columns[i];
        for (int64_t b = from; column->points && b <= bucket; b++)
            column->points[slot(b)] = NAN;
        column->bucket_sum = 0;
        column->bucket_count = 0;
    }
    entity->bucket = bucket;
}

static void add_point(struct top_entity *entity, struct top_column *column, double value) {
    if (isnan(value))
        return;
    if (!column->points) {
        column->points = lab_mem_alloc(LAB_TOP_POINTS, sizeof *column->points);
        for (int i = 0; i < LAB_TOP_POINTS; i++)
            column->points[i] = NAN;
    }
    column->bucket_sum += value;
    column->bucket_count++;
    column->points[slot(entity->bucket)] = (float)(column->bucket_sum / column->bucket_count);
}

static void take_value(struct top_entity *entity, struct top_column *column, int64_t time_ns,
                       int64_t raw) {
    double value = (double)raw * column->scale;
    if (column->counter && column->count > 0) {
        double grown = (double)(raw >= column->value ? raw - column->value : raw) * column->scale;
        column->growth += grown;
        if (time_ns > column->time_ns)
            column->rate = grown * 1e9 / (double)(time_ns - column->time_ns);
    }
    if (!column->count || value > column->highest)
        column->highest = value;
    column->sum += value;
    column->value = raw;
    column->time_ns = time_ns;
    column->count++;
    if (column->charted)
        add_point(entity, column, column->counter ? column->rate : value);
}

/* What held at the last tick held until this one. */
static void count_held_back(struct top_entity *entity, int64_t time_ns) {
    const struct top_column *reasons = top_column(entity, LAB_METRIC_CLOCK_REASONS, -1);
    int64_t since_ns = reasons && reasons->count ? time_ns - reasons->time_ns : 0;
    if (since_ns > 0 && since_ns < HELD_BACK_MAX && lab_clock_harmful((uint64_t)reasons->value))
        entity->held_back_ns += since_ns;
}

static void take_tick(void *state, const struct lab_tick *tick) {
    struct lab_top_history *history = state;
    if (tick->entity < 0 || tick->entity >= history->count ||
        !history->entities[tick->entity].known)
        return;
    struct top_entity *entity = &history->entities[tick->entity];
    if (tick->time_ns > history->time_ns)
        history->time_ns = tick->time_ns;
    bool any = false;
    for (int i = 0; i < LAB_VALID_WORDS(entity->entity.column_count); i++)
        any |= tick->valid[i] != 0;
    if (!any)
        return;
    if (tick->time_ns / history->bucket_ns > entity->bucket)
        open_bucket(entity, tick->time_ns / history->bucket_ns);
    count_held_back(entity, tick->time_ns);
    for (int i = 0; i < entity->entity.column_count; i++)
        if (lab_valid_get(tick->valid, i))
            take_value(entity, &entity->columns[i], tick->time_ns, tick->values[i]);
    if (entity->first_ns < 0)
        entity->first_ns = tick->time_ns;
    entity->last_ns = tick->time_ns;
    entity->ticks++;
}

/* --- events and processes --- */

static void take_event(void *state, const struct lab_sample_event *event) {
    struct lab_top_history *history = state;
    if (event->time_ns > history->time_ns)
        history->time_ns = event->time_ns;
    struct top_event *kept = &history->events[history->event_count++ % TOP_EVENTS_KEPT];
    *kept = (struct top_event){.time_ns = event->time_ns,
                               .number = event->number,
                               .entity = event->entity,
                               .kind = event->kind};
    snprintf(kept->text, sizeof kept->text, "%s", event->text ? event->text : "");
    if (event->entity < 0 || event->entity >= history->count)
        return;
    struct top_entity *entity = &history->entities[event->entity];
    if (event->kind == LAB_EVENT_GAP) {
        entity->gap_ns = event->time_ns;
        snprintf(entity->gap_text, sizeof entity->gap_text, "%s", kept->text);
    } else if (event->kind == LAB_EVENT_BACK) {
        entity->back_ns = event->time_ns;
    } else if (event->kind == LAB_EVENT_MISSED) {
        entity->missed += event->number;
    }
}

static void copy_process(struct lab_arena *arena, const struct lab_process_sample *from,
                         struct lab_process_sample *to) {
    *to = *from;
    to->user = lab_arena_strdup(arena, from->user ? from->user : "");
    to->name = lab_arena_strdup(arena, from->name ? from->name : "");
    to->command = lab_arena_strdup(arena, from->command ? from->command : "");
    to->container = lab_arena_strdup(arena, from->container ? from->container : "");
    to->advice = lab_arena_strdup(arena, from->advice ? from->advice : "");
    if (from->node_bytes) {
        to->node_bytes = lab_arena_copy(arena, from->node_bytes, (size_t)from->node_count,
                                        sizeof *to->node_bytes);
    }
    to->gpus = lab_arena_copy(arena, from->gpus, (size_t)from->gpu_count, sizeof *to->gpus);
}

static void take_processes(void *state, const struct lab_process_list *list) {
    struct lab_top_history *history = state;
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_process_sample *items =
        lab_arena_alloc(&arena, (size_t)list->count + 1, sizeof *items);
    for (int i = 0; i < list->count; i++)
        copy_process(&arena, &list->items[i], &items[i]);
    int64_t time_ns = list->time_ns;
    int count = list->count, left_out = list->left_out;
    lab_arena_release(&history->process_arena);
    history->process_arena = arena;
    history->processes = (struct lab_process_list){time_ns, items, count, left_out};
    history->has_processes = true;
    if (time_ns > history->time_ns)
        history->time_ns = time_ns;
}

struct lab_sink_samples lab_top_history_sink(struct lab_top_history *history) {
    return (struct lab_sink_samples){
        .entity = take_entity,
        .tick = take_tick,
        .event = take_event,
        .processes = take_processes,
        .state = history,
    };
}

/* --- a copy --- */

static void copy_entity(const struct top_entity *from, struct top_entity *to) {
    if (!from->known) {
        *to = (struct top_entity){.known = false};
        return;
    }
    set_entity(to, &from->entity);
    struct lab_entity entity = to->entity;
    struct top_column *columns = to->columns;
    *to = *from;
    to->entity = entity;
    to->columns = columns;
    for (int i = 0; i < entity.column_count; i++) {
        columns[i] = from->columns[i];
        if (!from->columns[i].points)
            continue;
        columns[i].points = lab_mem_alloc(LAB_TOP_POINTS, sizeof *columns[i].points);
        memcpy(columns[i].points, from->columns[i].points,
               LAB_TOP_POINTS * sizeof *columns[i].points);
    }
}

struct lab_top_history *lab_top_history_copy(const struct lab_top_history *history) {
    struct lab_top_history *to = lab_mem_alloc(1, sizeof *to);
    *to = *history;
    lab_arena_init(&to->process_arena);
    to->entities = NULL;
    to->count = 0;
    for (int i = 0; i < history->count; i++)
        copy_entity(&history->entities[i], &LAB_PUSH(to->entities, to->count));
    to->recording = NULL;
    to->next_tick = NULL;
    if (history->has_processes)
        take_processes(to, &history->processes);
    return to;
}

/* --- a recording --- */

static void start_recording(struct lab_top_history *history,
                            const struct lab_recording *recording) {
    forget(history);
    lab_mem_free(history->next_tick);
    history->recording = recording;
    history->next_tick =
        lab_mem_alloc((size_t)recording->track_count + 1, sizeof *history->next_tick);
    history->next_event = 0;
    history->next_list = 0;
    for (int i = 0; i < recording->track_count; i++)
        take_entity(history, i, &recording->tracks[i].entity);
}

static void load_track(struct lab_top_history *history, int index, int64_t until_ns) {
    const struct lab_track *track = &history->recording->tracks[index];
    int columns = track->entity.column_count;
    LAB_AUTO_FREE int64_t *values = lab_mem_alloc((size_t)columns + 1, sizeof *values);
    LAB_AUTO_FREE uint64_t *valid =
        lab_mem_alloc((size_t)LAB_VALID_WORDS(columns) + 1, sizeof *valid);
    size_t *next = &history->next_tick[index];
    for (; *next < track->count && track->times_ns[*next] <= until_ns; ++*next) {
        memset(valid, 0, (size_t)LAB_VALID_WORDS(columns) * sizeof *valid);
        for (int c = 0; c < columns; c++) {
            if (!track->values[c] || !track->valid[c][*next])
                continue;
            values[c] = track->values[c][*next];
            lab_valid_set(valid, c);
        }
        take_tick(history, &(struct lab_tick){.entity = index,
                                              .time_ns = track->times_ns[*next],
                                              .cost_ns = -1,
                                              .values = values,
                                              .valid = valid});
    }
}

void lab_top_history_load(struct lab_top_history *history, const struct lab_recording *recording,
                          int64_t until_ns) {
    if (history->recording != recording || until_ns < history->loaded_ns)
        start_recording(history, recording);
    for (int i = 0; i < recording->track_count; i++)
        load_track(history, i, until_ns);
    for (; history->next_event < recording->event_count &&
           recording->events[history->next_event].time_ns <= until_ns;
         history->next_event++)
        take_event(history, &recording->events[history->next_event]);
    size_t first = history->next_list;
    while (history->next_list < recording->process_count &&
           recording->processes[history->next_list].time_ns <= until_ns)
        history->next_list++;
    if (history->next_list > first)
        take_processes(history, &recording->processes[history->next_list - 1]);
    history->loaded_ns = until_ns;
}

static void widen(int64_t time_ns, bool *any, int64_t *begin_ns, int64_t *end_ns) {
    *begin_ns = !*any || time_ns < *begin_ns ? time_ns : *begin_ns;
    *end_ns = !*any || time_ns > *end_ns ? time_ns : *end_ns;
    *any = true;
}

void lab_top_recording_span(const struct lab_recording *recording, int64_t *ret_begin_ns,
                            int64_t *ret_end_ns) {
    bool any = false;
    *ret_begin_ns = *ret_end_ns = 0;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (!track->count)
            continue;
        widen(track->times_ns[0], &any, ret_begin_ns, ret_end_ns);
        widen(track->times_ns[track->count - 1], &any, ret_begin_ns, ret_end_ns);
    }
    if (recording->event_count && any)
        widen(recording->events[recording->event_count - 1].time_ns, &any, ret_begin_ns,
              ret_end_ns);
}
