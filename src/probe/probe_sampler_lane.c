/*
 * probe_sampler_lane.c: one lane: a thread that reads on time, says what it missed, and finds its
 * way back after a failure.
 *
 * What a reading finds is staged until the reading is over, since only then its cost is known.
 */
#include "base/clock.h"
#include "probe/probe_sampler.h"

#include "base/str.h"

#include <assert.h>

#define BACKOFF_FIRST_NS (LAB_NS_PER_S / 10)
#define BACKOFF_MAX_NS   (5 * LAB_NS_PER_S)

#define TOLD_NS LAB_NS_PER_S

#define RING_SECONDS   4 /* of ticks are kept for a taker that is busy */
#define RING_TICKS_MIN 32
#define RING_TICKS_MAX 2048
#define RING_BYTES_MIN ((size_t)64 << 10) /* holds the largest tick that there can be, thrice */
#define RING_BYTES_MAX ((size_t)4 << 20)

_Static_assert(RING_BYTES_MIN > (size_t)3 * (48 + 8 * (LAB_COLUMNS_MAX + LAB_COLUMNS_MAX / 64)),
               "a tick has to fit");

/* --- what a reading tells --- */

static struct lane_entity *find_entity(struct sampler_lane *lane, int local) {
    return local >= 0 && local < lane->entity_count ? &lane->entities[local] : NULL;
}

static int sampler_number(struct sampler_lane *lane, int local) {
    const struct lane_entity *entity = find_entity(lane, local);
    return entity ? entity->number : -1;
}

static bool same_details(const struct lab_entity *a, const struct lab_entity *b) {
    return a->kind == b->kind && a->index == b->index && a->node == b->node &&
           a->parent == b->parent && a->simulated == b->simulated &&
           lab_str_equal(a->name, b->name) && lab_str_equal(a->pci, b->pci);
}

static bool is_gpu(const struct lab_entity *entity) {
    return entity->kind == LAB_ENTITY_GPU || entity->kind == LAB_ENTITY_MIG;
}

static bool is_wanted(const struct sampler_lane *lane, const struct lab_entity *entity) {
    if (entity->kind == LAB_ENTITY_MIG && entity->parent >= 0 &&
        entity->parent < lane->entity_count)
        entity = &lane->entities[entity->parent].details;
    return entity->kind != LAB_ENTITY_GPU || sampler_wants_gpu(lane->sampler, entity->index);
}

static void stage_note(struct sampler_lane *lane, struct sample_queue_note *note) {
    note->sequence = lane->staged_sequence++;
    sample_queue_notes_add(&lane->staged_notes, note);
}

static void tell_entity(struct sampler_lane *lane, const struct lane_entity *entity) {
    struct lab_entity told = entity->details;
    told.parent = sampler_number(lane, told.parent);
    if (is_gpu(&told))
        lab_gpu_process_table_add(lane->sampler->table, entity->number, &told);
    stage_note(
        lane, sample_queue_note_entity(lab_clock_now(lane->sampler->clock), entity->number, &told));
}

static int sink_entity(void *state, const struct lab_entity *details) {
    struct sampler_lane *lane = state;
    assert(details->column_count >= 0 && details->column_count <= LAB_COLUMNS_MAX);
    int local = 0;
    while (local < lane->entity_count &&
           !(lab_str_equal(lane->entities[local].details.id, details->id) &&
             lane->entities[local].details.column_count == details->column_count))
        local++;
    bool fresh = local == lane->entity_count;
    if (!fresh && same_details(&lane->entities[local].details, details))
        return local;
    pthread_mutex_lock(&lane->queue.mutex);
    if (fresh)
        LAB_PUSH(lane->entities, lane->entity_count).number = -1;
    lane->entities[local].details = lab_entity_copy(details, &lane->arena);
    if (fresh && lane->wanted && is_wanted(lane, details))
        lane->entities[local].number = sampler_next_number(lane->sampler);
    pthread_mutex_unlock(&lane->queue.mutex);
    if (lane->entities[local].number >= 0)
        tell_entity(lane, &lane->entities[local]);
    return local;
}

static void sink_tick(void *state, int local, int64_t time_ns, const int64_t *values,
                      const uint64_t *valid) {
    struct sampler_lane *lane = state;
    const struct lane_entity *entity = find_entity(lane, local);
    if (!entity || entity->number < 0)
        return;
    int columns = entity->details.column_count;
    size_t bytes = sample_queue_tick_bytes(columns);
    if (lane->staged_bytes + bytes > lane->staged_capacity) {
        lane->staged_capacity = 2 * (lane->staged_bytes + bytes);
        lane->staged = lab_mem_resize(lane->staged, lane->staged_capacity, 1);
    }
    struct sample_queue_tick *tick =
        (struct sample_queue_tick *)(lane->staged + lane->staged_bytes);
    sample_queue_tick_fill(tick, columns, values, valid);
    tick->entity = entity->number;
    tick->sequence = lane->staged_sequence++;
    tick->time_ns = time_ns;
    tick->late_ns = lane->late_ns;
    lane->staged_bytes += bytes;
}

static void sink_event(void *state, int local, enum lab_event_kind kind, int64_t number,
                       const char *text) {
    struct sampler_lane *lane = state;
    const struct lane_entity *entity = find_entity(lane, local);
    if (entity && entity->number < 0)
        return;
    struct lab_sample_event event = {.time_ns = lab_clock_now(lane->sampler->clock),
                                     .entity = entity ? entity->number : -1,
                                     .kind = kind,
                                     .number = number,
                                     .text = text};
    stage_note(lane, sample_queue_note_event(&event));
}

static void sink_gpu_processes(void *state, int local, const struct lab_gpu_process *items,
                               int count) {
    struct sampler_lane *lane = state;
    int number = sampler_number(lane, local);
    if (number >= 0)
        lab_gpu_process_table_tell(lane->sampler->table, number, items, count);
}

/* A lane that has entities speaks of its own; one without, of those on the board. */
static void sink_processes(void *state, const struct lab_process_list *list) {
    struct sampler_lane *lane = state;
    struct sample_queue_note *note = sample_queue_note_processes(list);
    for (int i = 0; lane->entity_count > 0 && i < note->processes.count; i++) {
        struct lab_process_sample *process = &note->processes.items[i];
        int kept = 0;
        for (int j = 0; j < process->gpu_count; j++) {
            process->gpus[kept] = process->gpus[j];
            process->gpus[kept].entity = sampler_number(lane, process->gpus[j].entity);
            kept += process->gpus[kept].entity >= 0;
        }
        process->gpu_count = kept;
    }
    stage_note(lane, note);
}

/* --- life --- */

static size_t ring_bytes(const struct sampler_lane *lane) {
    const struct lab_sampler *sampler = lane->sampler;
    size_t round = 0;
    for (int i = 0; i < lane->entity_count; i++)
        round += sample_queue_tick_bytes(lane->entities[i].details.column_count);
    int64_t ticks = RING_SECONDS * LAB_NS_PER_S / sampler->interval_ns;
    ticks = ticks < RING_TICKS_MIN ? RING_TICKS_MIN : ticks;
    ticks = ticks > RING_TICKS_MAX ? RING_TICKS_MAX : ticks;
    double bytes = (double)round * (double)ticks;
    /* a recording that is played fast gives more of them in a round */
    bool fast = sampler->setup.recording && sampler->setup.speed > 1;
    double most = (double)RING_BYTES_MAX * (fast ? 16 : 1);
    bytes *= fast ? sampler->setup.speed : 1;
    bytes = bytes > most ? most : bytes;
    return bytes < (double)RING_BYTES_MIN ? RING_BYTES_MIN : (size_t)bytes / 8 * 8;
}

void lane_init(struct sampler_lane *lane, struct lab_sampler *sampler, struct sampler_probe *probe,
               int index) {
    *lane = (struct sampler_lane){.sampler = sampler, .probe = probe, .index = index};
    lane->reading_since_ns = lane->gap_since_ns = -1;
    lane->told_ns = -TOLD_NS;
    lane->sink = (struct lab_probe_sink){sink_entity,        sink_tick,      sink_event,
                                         sink_gpu_processes, sink_processes, lane};
    pthread_mutex_init(&lane->queue.mutex, NULL); /* until the queue's size is known */
    if (probe->probe->describe)
        probe->probe->describe(probe->state, index, &lane->sink);
    pthread_mutex_destroy(&lane->queue.mutex);
    sample_queue_init(&lane->queue, ring_bytes(lane));
    lane->wanted = lane->last = lane->entity_count == 0;
    for (int i = 0; i < lane->entity_count; i++)
        lane->wanted = lane->wanted || is_wanted(lane, &lane->entities[i].details);
}

void lane_release(struct sampler_lane *lane) {
    struct sample_queue_note *note;
    while ((note = sample_queue_notes_pop(&lane->staged_notes)))
        sample_queue_note_close(note);
    lab_mem_free(lane->staged);
    lab_mem_free(lane->entities);
    lab_arena_release(&lane->arena);
    sample_queue_release(&lane->queue);
}

/* Those that were staged before `sequence`. */
static void put_notes(struct sampler_lane *lane, uint64_t sequence) {
    while (lane->staged_notes.first && lane->staged_notes.first->sequence < sequence)
        sample_queue_put_note(&lane->queue, sample_queue_notes_pop(&lane->staged_notes));
}

void lane_number_entities(struct sampler_lane *lane) {
    for (int i = 0; i < lane->entity_count; i++) {
        if (is_wanted(lane, &lane->entities[i].details))
            lane->entities[i].number = sampler_next_number(lane->sampler);
    }
    for (int i = 0; i < lane->entity_count; i++)
        if (lane->entities[i].number >= 0)
            tell_entity(lane, &lane->entities[i]);
    put_notes(lane, UINT64_MAX);
}

/* --- gaps; with the mutex held --- */

static void tell_all(struct sampler_lane *lane, enum lab_event_kind kind, int64_t time_ns,
                     int64_t number, const char *text) {
    int told = 0;
    struct lab_sample_event event = {
        .time_ns = time_ns, .kind = kind, .number = number, .text = text};
    for (int i = 0; i < lane->entity_count; i++) {
        event.entity = lane->entities[i].number;
        if (event.entity < 0)
            continue;
        sample_queue_put_note(&lane->queue, sample_queue_note_event(&event));
        told++;
    }
    if (told)
        return;
    /* a lane without entities of its own is told by its name */
    struct lab_err line = LAB_ERR_INIT;
    lab_err_set(&line, LAB_ERR_SYSTEM, "%s%s%s",
                lab_probe_lane_name(lane->probe->probe, lane->probe->state, lane->index),
                *text ? ": " : "", text);
    event.entity = -1;
    event.text = line.text;
    sample_queue_put_note(&lane->queue, sample_queue_note_event(&event));
}

/* Nobody waits for it any longer: it has read, or doesn't come back. */
static void pay(struct sampler_lane *lane) {
    if (!lane->owes)
        return;
    lane->owes = false;
    sampler_paid(lane->sampler);
}

static void begin_gap(struct sampler_lane *lane, int64_t time_ns, const char *why) {
    lane->gap_since_ns = time_ns;
    pay(lane);
    for (int i = 0; i < lane->entity_count; i++)
        if (lane->entities[i].number >= 0 && is_gpu(&lane->entities[i].details))
            lab_gpu_process_table_tell(lane->sampler->table, lane->entities[i].number, NULL, 0);
    tell_all(lane, LAB_EVENT_GAP, time_ns, 0, why);
    sampler_count_present(lane->sampler, -1);
}

static void end_gap(struct sampler_lane *lane, int64_t now_ns) {
    tell_all(lane, LAB_EVENT_BACK, now_ns, now_ns - lane->gap_since_ns, "");
    lane->gap_since_ns = -1;
    sampler_count_present(lane->sampler, 1);
}

void lane_watch(struct sampler_lane *lane, int64_t now_ns) {
    int64_t patience_ns = lane->sampler->patience_ns;
    bool hangs = false;
    pthread_mutex_lock(&lane->queue.mutex);
    if (lane->reading_since_ns >= 0 && lane->gap_since_ns < 0 &&
        now_ns - lane->reading_since_ns > patience_ns) {
        begin_gap(lane, lane->reading_since_ns + patience_ns, "its driver call hangs");
        hangs = true;
    }
    pthread_mutex_unlock(&lane->queue.mutex);
    if (hangs)
        sampler_wake_taker(lane->sampler);
}

/* --- reading --- */

struct pace {
    int64_t next;       /* the tick that is due next: start + next · interval */
    int64_t backoff_ns; /* 0 = the last reading was good */
};

/*
 * A tick that is late by less than half an interval is still worth reading; those before it are
 * missed.
 */
static int64_t skip_missed(const struct lab_sampler *sampler, struct pace *pace, int64_t now_ns) {
    int64_t interval_ns = sampler->interval_ns;
    int64_t behind_ns = now_ns - interval_ns / 2 - (sampler->start_ns + pace->next * interval_ns);
    if (behind_ns <= 0)
        return 0;
    int64_t missed = (behind_ns + interval_ns - 1) / interval_ns;
    pace->next += missed;
    return missed;
}

/* Leaves out the ticks that the probe has no use for; whether there are any. */
static bool rest(const struct sampler_lane *lane, struct pace *pace) {
    const struct lab_sampler *sampler = lane->sampler;
    if (!lane->probe->probe->due)
        return false;
    int64_t due_ns = lane->probe->probe->due(lane->probe->state, lane->index);
    int64_t ahead_ns = due_ns - sampler->interval_ns / 2 - sampler->start_ns;
    int64_t tick = (ahead_ns + sampler->interval_ns - 1) / sampler->interval_ns;
    if (tick <= pace->next)
        return false;
    pace->next = tick;
    return true;
}

/* All that the reading found is handed over at once, with what it cost; the mutex is held. */
static void commit(struct sampler_lane *lane, int64_t cost_ns, int64_t not_before_ns) {
    for (size_t at = 0; at < lane->staged_bytes;) {
        struct sample_queue_tick *tick = (struct sample_queue_tick *)(lane->staged + at);
        put_notes(lane, tick->sequence);
        tick->cost_ns = cost_ns;
        if (tick->time_ns < not_before_ns)
            tick->time_ns = not_before_ns;
        sample_queue_put_tick(&lane->queue, tick);
        lane->ticks++;
        at += tick->size_bytes;
    }
    put_notes(lane, UINT64_MAX);
    lane->staged_bytes = 0;
    lane->staged_sequence = 0;
}

static void back_off(struct pace *pace) {
    pace->backoff_ns = pace->backoff_ns ? 2 * pace->backoff_ns : BACKOFF_FIRST_NS;
    if (pace->backoff_ns > BACKOFF_MAX_NS)
        pace->backoff_ns = BACKOFF_MAX_NS;
}

/* Where each reading misses some, a line for each would be more than what is read: once a
 * second. */
static void tell_missed(struct sampler_lane *lane, int64_t missed, int64_t now_ns) {
    lane->missed += missed;
    lane->untold += missed;
    if (lane->untold == 0 || now_ns < lane->told_ns + TOLD_NS)
        return;
    tell_all(lane, LAB_EVENT_MISSED, now_ns, lane->untold, "");
    lane->untold = 0;
    lane->told_ns = now_ns;
}

/* After a reading, with the mutex held; returns whether the taker should hear of it at once. */
static bool settle(struct sampler_lane *lane, struct pace *pace, int result,
                   const struct lab_err *err, int64_t cost_ns) {
    int64_t now_ns = lab_clock_now(lane->sampler->clock);
    bool was_away = lane->gap_since_ns >= 0, urgent = false;
    lane->reading_since_ns = -1;
    lane->readings++;
    lane->cost_ns += cost_ns;
    if (result == 0 && was_away)
        end_gap(lane, now_ns);
    else if (result < 0 && !was_away)
        begin_gap(lane, lane->began_ns, err->text);
    urgent = was_away != (lane->gap_since_ns >= 0);
    /* what a reading gave that hung is told as of its return: entities are in a gap until then */
    commit(lane, cost_ns, result == 0 && was_away ? now_ns : INT64_MIN);
    if (result < 0) {
        back_off(pace);
        return urgent;
    }
    if (was_away) { /* the gap tells what was missed */
        pace->backoff_ns = 0;
        pace->next = (now_ns - lane->sampler->start_ns) / lane->sampler->interval_ns + 1;
        return urgent;
    }
    tell_missed(lane, skip_missed(lane->sampler, pace, now_ns), now_ns);
    return urgent;
}

static void read_once(struct sampler_lane *lane, struct pace *pace, enum lab_probe_when when) {
    struct lab_err err; /* not all of its text: that would be a kilobyte at every tick */
    err.code = LAB_ERR_NONE;
    err.text[0] = '\0';
    sampler_reading(lane->sampler, lane);
    int64_t before_ns = lab_clock_thread_ns();
    int result = lane->probe->probe->read(lane->probe->state, lane->index, when, &lane->sink, &err);
    int64_t cost_ns = lab_clock_thread_ns() - before_ns;
    pthread_mutex_lock(&lane->queue.mutex);
    bool news = lane->staged_bytes > 0 || lane->staged_notes.first;
    bool urgent = settle(lane, pace, result, &err, cost_ns);
    if (when == LAB_PROBE_EDGE)
        pay(lane);
    pthread_mutex_unlock(&lane->queue.mutex);
    if (urgent || (news && result < 0))
        sampler_wake_taker(lane->sampler);
    if (result == 0)
        sampler_delivered(lane->sampler, lane, news, rest(lane, pace));
}

/* Waits for the time, an edge or the end. true = it reads now, and holds the mutex. */
static bool wait_for_turn(struct sampler_lane *lane, int64_t due_ns) {
    for (;;) {
        pthread_mutex_lock(&lane->queue.mutex);
        if (!lane->stop && (lane->edge || lab_clock_now(lane->sampler->clock) >= due_ns))
            return true;
        bool stop = lane->stop;
        pthread_mutex_unlock(&lane->queue.mutex);
        if (stop)
            return false;
        sampler_wait(lane->sampler, &lane->wake, due_ns);
    }
}

void lane_run(struct sampler_lane *lane) {
    struct lab_sampler *sampler = lane->sampler;
    struct pace pace = {0};
    int64_t passed_ns = lab_clock_now(sampler->clock) - sampler->start_ns;
    if (passed_ns >= sampler->interval_ns) /* it joined late, and missed nothing */
        pace.next = passed_ns / sampler->interval_ns + 1;
    for (;;) {
        int64_t due_ns = sampler->start_ns + pace.next * sampler->interval_ns;
        if (pace.backoff_ns > 0)
            due_ns = lab_clock_now(sampler->clock) + pace.backoff_ns;
        if (!wait_for_turn(lane, due_ns))
            return;
        bool edge = lane->edge, on_time = !edge && pace.backoff_ns == 0;
        lane->edge = false;
        lane->reading_since_ns = lane->began_ns = lab_clock_now(sampler->clock);
        lane->late_ns = on_time ? lane->began_ns - due_ns : 0;
        if (on_time)
            lateness_add(&lane->late, lane->late_ns);
        pthread_mutex_unlock(&lane->queue.mutex);
        pace.next += on_time;
        read_once(lane, &pace, edge ? LAB_PROBE_EDGE : LAB_PROBE_TICK);
    }
}
