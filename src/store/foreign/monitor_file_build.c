/*
 * monitor_file_build.c: puts a recording together from records whose fields show only as they come:
 * tracks and their columns grow as needed. Times are the wall clock's, as long as it only goes
 * forward; where it was set back, the steady time goes on by the usual step and a new epoch tells
 * by how much.
 */
#include "store/foreign/monitor_file_reader.h"

#include "base/clock.h"
#include "base/list.h"

#include <math.h>
#include <string.h>

#define PROCESSES_MAX 16384 /* of one list */
#define SET_BACK_NS   LAB_NS_PER_S
#define STEP_MAX_NS   (3600 * LAB_NS_PER_S)

struct column {
    int64_t *values;
    uint8_t *valid;
};

struct track {
    struct lab_entity entity;
    struct lab_column *kinds;
    struct column *columns;
    int column_count;
    int hint; /* the column that was set last: the next one follows it as a rule */
    size_t count, capacity;
    int64_t *times_ns;
    int64_t step_ns;
    bool unsorted;
};

struct odd {
    const char *text;
    size_t times;
};

struct lab_monitor_builder {
    struct lab_arena *arena;
    struct track *tracks;
    int track_count, last;
    struct lab_sample_event *events;
    size_t event_count;
    struct lab_process_list *lists;
    size_t list_count;
    struct lab_recording_epoch *epochs;
    int epoch_count;
    struct odd *odd;
    int odd_count;
    const char **notes;
    int note_count;
    int64_t start_ns, shift_ns, origin_ns, newest_ns;
    bool has_start, has_origin, has_newest, relative;
};

struct lab_monitor_builder *lab_monitor_builder_new(struct lab_arena *arena) {
    struct lab_monitor_builder *builder = lab_arena_alloc(arena, 1, sizeof *builder);
    builder->arena = arena;
    return builder;
}

struct lab_arena *lab_monitor_builder_arena(struct lab_monitor_builder *builder) {
    return builder->arena;
}

const char *lab_monitor_builder_text(struct lab_monitor_builder *builder, const char *text) {
    char *copy = lab_arena_strdup(builder->arena, text ? text : "");
    lab_str_make_printable(copy);
    return copy;
}

/* --- what is odd --- */

void lab_monitor_builder_odd(struct lab_monitor_builder *builder, const char *text, size_t times) {
    for (int i = 0; i < builder->odd_count; i++) {
        if (lab_str_equal(builder->odd[i].text, text)) {
            builder->odd[i].times += times;
            return;
        }
    }
    LAB_ADD(builder->odd, builder->odd_count, builder->arena) = (struct odd){text, times};
}

void lab_monitor_builder_add_odd(const struct lab_monitor_builder *builder, struct lab_str *out) {
    for (int i = 0; i < builder->odd_count; i++)
        lab_str_printf(out, "%s%s (%zu)", i ? ", " : "", builder->odd[i].text,
                       builder->odd[i].times);
}

void lab_monitor_builder_note(struct lab_monitor_builder *builder, const char *text) {
    LAB_ADD(builder->notes, builder->note_count, builder->arena) =
        lab_arena_strdup(builder->arena, text);
}

/* --- entities --- */

static bool is_entity(const struct lab_entity *entity, enum lab_entity_kind kind, int index,
                      const char *id) {
    if (entity->kind != kind)
        return false;
    return id && *id && *entity->id ? lab_str_equal(entity->id, id) : entity->index == index;
}

int lab_monitor_builder_entity(struct lab_monitor_builder *builder, enum lab_entity_kind kind,
                               int index, const char *id) {
    for (int i = 0; i < builder->track_count; i++) {
        /* records of the same entities come in the same order again and again */
        int at = (builder->last + 1 + i) % builder->track_count;
        if (is_entity(&builder->tracks[at].entity, kind, index, id))
            return builder->last = at;
    }
    for (int i = 0; index < 0 && id && *id && i <= builder->track_count; i++)
        if (lab_monitor_builder_find(builder, kind, i, NULL) < 0)
            index = i; /* numbered as they come */
    if (builder->track_count >= LAB_MONITOR_ENTITIES || index < 0 || index > INT16_MAX)
        return -1;
    struct track *track = &LAB_ADD(builder->tracks, builder->track_count, builder->arena);
    *track = (struct track){.step_ns = LAB_NS_PER_S};
    track->entity = (struct lab_entity){.kind = kind,
                                        .index = index,
                                        .id = lab_monitor_builder_text(builder, id),
                                        .name = "",
                                        .pci = "",
                                        .node = -1,
                                        .parent = -1};
    return builder->last = builder->track_count - 1;
}

int lab_monitor_builder_find(const struct lab_monitor_builder *builder, enum lab_entity_kind kind,
                             int index, const char *id) {
    for (int i = 0; i < builder->track_count; i++)
        if (is_entity(&builder->tracks[i].entity, kind, index, id))
            return i;
    return -1;
}

struct lab_entity *lab_monitor_builder_facts(struct lab_monitor_builder *builder, int entity) {
    return &builder->tracks[entity].entity;
}

/* --- ticks --- */

static void grow(struct track *track, struct lab_arena *arena) {
    if (track->count < track->capacity)
        return;
    size_t capacity = track->capacity ? 2 * track->capacity : 64;
    track->times_ns =
        lab_arena_enlarge(arena, track->times_ns, track->count, capacity, sizeof *track->times_ns);
    for (int i = 0; i < track->column_count; i++) {
        struct column *column = &track->columns[i];
        column->values = lab_arena_enlarge(arena, column->values, track->count, capacity,
                                           sizeof *column->values);
        column->valid = lab_arena_enlarge(arena, column->valid, track->count, capacity, 1);
    }
    track->capacity = capacity;
}

static void add_tick(struct lab_monitor_builder *builder, struct track *track, int64_t time_ns) {
    grow(track, builder->arena);
    builder->newest_ns = time_ns;
    builder->has_newest = true;
    if (track->count && time_ns < track->times_ns[track->count - 1])
        track->unsorted = true;
    else if (track->count && time_ns > track->times_ns[track->count - 1])
        track->step_ns = time_ns - track->times_ns[track->count - 1];
    track->times_ns[track->count++] = time_ns;
}

void lab_monitor_builder_start(struct lab_monitor_builder *builder, int64_t wall_ns) {
    builder->start_ns = wall_ns;
    builder->has_start = true;
}

void lab_monitor_builder_epoch(struct lab_monitor_builder *builder,
                               const struct lab_recording_epoch *epoch) {
    struct lab_recording_epoch *copy =
        &LAB_ADD(builder->epochs, builder->epoch_count, builder->arena);
    *copy = *epoch;
    copy->host = lab_monitor_builder_text(builder, epoch->host);
    copy->boot_id = lab_monitor_builder_text(builder, epoch->boot_id);
}

/* The steady time of a wall-clock time that lies before the entity's last one. */
static int64_t set_back(struct lab_monitor_builder *builder, const struct track *track,
                        int64_t wall_ns) {
    int64_t last_ns = track->times_ns[track->count - 1], step_ns = track->step_ns;
    if (step_ns > STEP_MAX_NS)
        step_ns = LAB_NS_PER_S;
    int64_t time_ns = last_ns + step_ns, old_ns = builder->shift_ns;
    builder->shift_ns = time_ns - wall_ns;
    struct lab_recording_epoch epoch = {.from_ns = time_ns, .offset_ns = -builder->shift_ns};
    if (builder->epoch_count == 0)
        lab_monitor_builder_epoch(
            builder, &(struct lab_recording_epoch){.from_ns = INT64_MIN, .offset_ns = -old_ns});
    lab_monitor_builder_epoch(builder, &epoch);
    struct lab_sample_event event = {.time_ns = time_ns,
                                     .entity = -1,
                                     .kind = LAB_EVENT_CLOCK,
                                     .number = old_ns - builder->shift_ns,
                                     .text = "time stamps go back"};
    lab_monitor_builder_event(builder, &event);
    return time_ns;
}

int lab_monitor_builder_tick(struct lab_monitor_builder *builder, int entity,
                             enum lab_monitor_time kind, int64_t time_ns) {
    struct track *track = &builder->tracks[entity];
    if (kind == LAB_MONITOR_TIME_NONE)
        return -1;
    if (kind == LAB_MONITOR_TIME_RELATIVE) {
        builder->relative |= !builder->has_start;
        time_ns += builder->start_ns;
    }
    int64_t steady_ns;
    if (__builtin_add_overflow(time_ns, builder->shift_ns, &steady_ns) ||
        steady_ns >= LAB_MONITOR_TIME_MAX_NS - 2 * STEP_MAX_NS)
        return -1;
    int64_t last_ns = track->count ? track->times_ns[track->count - 1] : INT64_MIN / 2;
    if (steady_ns < last_ns - SET_BACK_NS) {
        if (last_ns >= LAB_MONITOR_TIME_MAX_NS - 2 * STEP_MAX_NS)
            return -1;
        steady_ns = set_back(builder, track, time_ns);
    }
    add_tick(builder, track, steady_ns);
    return 0;
}

int lab_monitor_builder_tick_at(struct lab_monitor_builder *builder, int entity, int64_t time_ns,
                                int64_t offset_ns) {
    if (time_ns >= LAB_MONITOR_TIME_MAX_NS || time_ns <= -LAB_MONITOR_TIME_MAX_NS)
        return -1;
    if (offset_ns != INT64_MIN) {
        int64_t known_ns =
            builder->epoch_count ? builder->epochs[builder->epoch_count - 1].offset_ns : 0;
        int64_t jump_ns = offset_ns - known_ns;
        if (builder->epoch_count == 0 || jump_ns >= SET_BACK_NS || jump_ns <= -SET_BACK_NS)
            lab_monitor_builder_epoch(
                builder, &(struct lab_recording_epoch){.from_ns = time_ns, .offset_ns = offset_ns});
    }
    add_tick(builder, &builder->tracks[entity], time_ns);
    return 0;
}

int64_t lab_monitor_builder_time(const struct lab_monitor_builder *builder, int entity) {
    const struct track *track = &builder->tracks[entity];
    return track->count ? track->times_ns[track->count - 1] : 0;
}

bool lab_monitor_builder_newest(const struct lab_monitor_builder *builder, int64_t *ret_ns) {
    *ret_ns = builder->newest_ns;
    return builder->has_newest;
}

int64_t lab_monitor_builder_origin(struct lab_monitor_builder *builder, int64_t wall_ns) {
    if (!builder->has_origin)
        builder->origin_ns = wall_ns;
    builder->has_origin = true;
    return builder->origin_ns;
}

static int find_column(struct lab_monitor_builder *builder, struct track *track,
                       enum lab_metric_id metric, int instance) {
    for (int i = 0; i < track->column_count; i++) {
        int at = (track->hint + 1 + i) % track->column_count;
        if (track->kinds[at].metric == (int)metric && track->kinds[at].instance == instance)
            return track->hint = at;
    }
    if (track->column_count >= LAB_COLUMNS_MAX || instance > INT16_MAX)
        return -1;
    track->kinds = lab_arena_grow(builder->arena, track->kinds, (size_t)track->column_count,
                                  sizeof *track->kinds);
    track->kinds[track->column_count] =
        (struct lab_column){.metric = (int16_t)metric, .instance = (int16_t)instance};
    LAB_ADD(track->columns, track->column_count, builder->arena) =
        (struct column){lab_arena_alloc(builder->arena, track->capacity, sizeof(int64_t)),
                        lab_arena_alloc(builder->arena, track->capacity, sizeof(uint8_t))};
    return track->hint = track->column_count - 1;
}

void lab_monitor_builder_set(struct lab_monitor_builder *builder, int entity,
                             enum lab_metric_id metric, int instance, int64_t value) {
    struct track *track = &builder->tracks[entity];
    int column = track->count ? find_column(builder, track, metric, instance) : -1;
    if (column < 0)
        return;
    track->columns[column].values[track->count - 1] = value;
    track->columns[column].valid[track->count - 1] = 1;
}

/* --- the rest --- */

void lab_monitor_builder_event(struct lab_monitor_builder *builder,
                               const struct lab_sample_event *event) {
    struct lab_sample_event *copy = &LAB_ADD(builder->events, builder->event_count, builder->arena);
    *copy = *event;
    copy->text = lab_monitor_builder_text(builder, event->text);
}

void lab_monitor_builder_processes(struct lab_monitor_builder *builder,
                                   const struct lab_process_list *list) {
    LAB_ADD(builder->lists, builder->list_count, builder->arena) = *list;
}

bool lab_monitor_builder_has_list(const struct lab_monitor_builder *builder, int64_t time_ns) {
    if (builder->list_count == 0)
        return false;
    int64_t apart_ns = builder->lists[builder->list_count - 1].time_ns - time_ns;
    return apart_ns < LAB_NS_PER_MS && apart_ns > -LAB_NS_PER_MS;
}

struct lab_process_list *lab_monitor_builder_list(struct lab_monitor_builder *builder,
                                                  int64_t time_ns) {
    if (!lab_monitor_builder_has_list(builder, time_ns))
        LAB_ADD(builder->lists, builder->list_count, builder->arena) =
            (struct lab_process_list){.time_ns = time_ns};
    return &builder->lists[builder->list_count - 1];
}

struct lab_process_sample *lab_monitor_builder_process(struct lab_monitor_builder *builder,
                                                       int64_t time_ns, int32_t pid) {
    struct lab_process_list *list = lab_monitor_builder_list(builder, time_ns);
    for (int i = list->count - 1; i >= 0; i--)
        if (list->items[i].pid == pid)
            return &list->items[i];
    if (list->count >= PROCESSES_MAX) {
        list->left_out++;
        return NULL;
    }
    struct lab_process_sample *process = &LAB_ADD(list->items, list->count, builder->arena);
    *process = (struct lab_process_sample){.pid = pid,
                                           .parent_pid = -1,
                                           .user = "",
                                           .name = "",
                                           .command = "",
                                           .container = "",
                                           .advice = "",
                                           .cpu_percent = (double)NAN,
                                           .queue_percent = (double)NAN,
                                           .active_percent = (double)NAN,
                                           .memory_bytes = -1,
                                           .cpu_node = -1};
    return process;
}

struct lab_process_gpu *lab_monitor_builder_process_gpu(struct lab_monitor_builder *builder,
                                                        struct lab_process_sample *process,
                                                        int entity) {
    for (int i = 0; i < process->gpu_count; i++)
        if (process->gpus[i].entity == entity)
            return &process->gpus[i];
    struct lab_process_gpu *gpu = &LAB_ADD(process->gpus, process->gpu_count, builder->arena);
    *gpu = (struct lab_process_gpu){.entity = entity,
                                    .memory_bytes = -1,
                                    .sm_percent = (double)NAN,
                                    .memory_percent = (double)NAN};
    return gpu;
}

/* --- the end --- */

bool lab_monitor_builder_has_values(const struct lab_monitor_builder *builder) {
    for (int i = 0; i < builder->track_count; i++)
        if (builder->tracks[i].column_count)
            return true;
    return builder->list_count > 0;
}

struct order {
    int64_t time_ns;
    size_t index;
};

/* Where each thing belongs in order of time; NULL = it lies there already. */
static struct order *sort_times(const void *times, size_t stride, size_t count) {
    struct order *order = lab_mem_alloc(count + 1, sizeof *order);
    bool sorted = true;
    for (size_t i = 0; i < count; i++) {
        memcpy(&order[i].time_ns, (const char *)times + i * stride, sizeof order[i].time_ns);
        order[i].index = i;
        sorted = sorted && (i == 0 || order[i].time_ns >= order[i - 1].time_ns);
    }
    if (sorted) {
        lab_mem_free(order);
        return NULL;
    }
    LAB_SORT(order, count, LAB_BY(order, time_ns), LAB_BY(order, index));
    return order;
}

/* A copy in the arena, in that order; the source is freed. */
static void *settle(struct lab_arena *arena, void *items, size_t count, size_t size,
                    const struct order *order) {
    if (!order)
        return items;
    char *copy = lab_arena_alloc(arena, count, size);
    for (size_t i = 0; i < count; i++)
        memcpy(copy + i * size, (char *)items + order[i].index * size, size);
    return copy;
}

/* The same for what begins with its time. */
static void *settle_by_time(struct lab_arena *arena, void *items, size_t count, size_t size) {
    LAB_AUTO_FREE struct order *order = sort_times(items, size, count);
    return settle(arena, items, count, size, order);
}

static void finish_track(struct lab_monitor_builder *builder, struct track *track,
                         struct lab_track *ret) {
    struct lab_arena *arena = builder->arena;
    size_t columns = (size_t)track->column_count;
    LAB_AUTO_FREE struct order *order =
        track->unsorted ? sort_times(track->times_ns, sizeof *track->times_ns, track->count) : NULL;
    *ret = (struct lab_track){.entity = track->entity, .count = track->count};
    ret->entity.columns = track->kinds;
    ret->entity.column_count = track->column_count;
    if (!*ret->entity.id)
        ret->entity.id = lab_arena_printf(arena, "%s%d", lab_entity_kind_name(track->entity.kind),
                                          track->entity.index);
    ret->times_ns = settle(arena, track->times_ns, track->count, sizeof *track->times_ns, order);
    ret->values = lab_arena_alloc(arena, columns + 1, sizeof *ret->values);
    ret->valid = lab_arena_alloc(arena, columns + 1, sizeof *ret->valid);
    for (size_t i = 0; i < columns; i++) {
        ret->values[i] =
            settle(arena, track->columns[i].values, track->count, sizeof(int64_t), order);
        ret->valid[i] = settle(arena, track->columns[i].valid, track->count, 1, order);
    }
}

static void finish_notes(struct lab_monitor_builder *builder, struct lab_recording *recording) {
    if (builder->relative)
        lab_monitor_builder_note(builder, "its date is unknown: times count from 1970");
    for (int i = 0; i < builder->odd_count; i++)
        lab_monitor_builder_note(builder,
                                 lab_arena_printf(builder->arena, "left out: %s (%zu)",
                                                  builder->odd[i].text, builder->odd[i].times));
    recording->missing = builder->notes;
}

static void finish_epochs(struct lab_monitor_builder *builder, struct lab_recording *recording) {
    int64_t first_ns = 0;
    bool any = false;
    for (int i = 0; i < recording->track_count; i++) {
        const struct lab_track *track = &recording->tracks[i];
        if (track->count && (!any || track->times_ns[0] < first_ns))
            first_ns = track->times_ns[0];
        any |= track->count > 0;
    }
    if (builder->epoch_count == 0 && any)
        lab_monitor_builder_epoch(builder, &(struct lab_recording_epoch){.from_ns = first_ns});
    for (int i = 0; i < builder->epoch_count; i++)
        if (builder->epochs[i].from_ns == INT64_MIN)
            builder->epochs[i].from_ns = first_ns;
    recording->epochs = settle_by_time(builder->arena, builder->epochs,
                                       (size_t)builder->epoch_count, sizeof *builder->epochs);
    recording->epoch_count = builder->epoch_count;
}

void lab_monitor_builder_finish(struct lab_monitor_builder *builder,
                                struct lab_recording *ret_recording) {
    struct lab_recording *recording = ret_recording;
    recording->track_count = builder->track_count;
    recording->tracks = lab_arena_alloc(builder->arena, (size_t)builder->track_count + 1,
                                        sizeof *recording->tracks);
    recording->simulated = false;
    for (int i = 0; i < builder->track_count; i++) {
        finish_track(builder, &builder->tracks[i], &recording->tracks[i]);
        recording->simulated |= recording->tracks[i].entity.simulated;
    }
    recording->events = settle_by_time(builder->arena, builder->events, builder->event_count,
                                       sizeof *builder->events);
    recording->event_count = builder->event_count;
    recording->processes =
        settle_by_time(builder->arena, builder->lists, builder->list_count, sizeof *builder->lists);
    recording->process_count = builder->list_count;
    finish_epochs(builder, recording);
    finish_notes(builder, recording);
}
