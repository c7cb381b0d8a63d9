/* probe_sample_queue.c: the ring of ticks, the notes beside it, and how they change hands. */
#include "probe/probe_sample_queue.h"

#include <assert.h>
#include <string.h>

#define EVENTS_MAX                                                                                 \
    1024 /* that nobody takes; a lane that flaps twice a second fills this in minutes */
#define LISTS_MAX 64

/* --- ticks --- */

size_t sample_queue_tick_bytes(int columns) {
    return sizeof(struct sample_queue_tick) +
           8 * ((size_t)columns + (size_t)LAB_VALID_WORDS((size_t)columns));
}

void sample_queue_tick_fill(struct sample_queue_tick *tick, int columns, const int64_t *values,
                            const uint64_t *valid) {
    tick->size_bytes = (uint32_t)sample_queue_tick_bytes(columns);
    tick->columns = columns;
    memcpy(tick->data, values, 8 * (size_t)columns);
    memcpy(tick->data + columns, valid, 8 * (size_t)LAB_VALID_WORDS((size_t)columns));
}

void sample_queue_ring_init(struct sample_queue_ring *ring, size_t capacity) {
    *ring = (struct sample_queue_ring){.bytes = lab_mem_alloc(capacity, 1), .capacity = capacity};
}

void sample_queue_ring_release(struct sample_queue_ring *ring) {
    lab_mem_free(ring->bytes);
    ring->bytes = NULL;
}

struct sample_queue_tick *sample_queue_ring_first(struct sample_queue_ring *ring) {
    return ring->count ? (struct sample_queue_tick *)(ring->bytes + ring->head) : NULL;
}

void sample_queue_ring_pop(struct sample_queue_ring *ring) {
    ring->head += sample_queue_ring_first(ring)->size_bytes;
    if (--ring->count == 0)
        ring->head = ring->tail = ring->wrapped_at = 0; /* touches no more memory than is needed */
    else if (ring->wrapped_at && ring->head == ring->wrapped_at)
        ring->head = ring->wrapped_at = 0;
}

void *sample_queue_ring_push(struct sample_queue_ring *ring, size_t size_bytes, int64_t *dropped) {
    assert(size_bytes <= ring->capacity);
    /* from the tail to the end, or, once wrapped, to the head; the tail never reaches the head */
    while (ring->wrapped_at ? ring->tail + size_bytes >= ring->head
                            : ring->tail + size_bytes > ring->capacity) {
        if (!ring->wrapped_at && size_bytes < ring->head) {
            ring->wrapped_at = ring->tail;
            ring->tail = 0;
            continue;
        }
        sample_queue_ring_pop(ring);
        ++*dropped;
    }
    void *room = ring->bytes + ring->tail;
    ring->tail += size_bytes;
    ring->count++;
    return room;
}

/* --- notes --- */

struct sample_queue_note *sample_queue_note_entity(int64_t time_ns, int number,
                                                   const struct lab_entity *entity) {
    struct sample_queue_note *note = lab_mem_alloc(1, sizeof *note);
    note->kind = OUTLET_ENTITY;
    note->time_ns = time_ns;
    note->number = number;
    note->entity = lab_entity_copy(entity, &note->arena);
    return note;
}

struct sample_queue_note *sample_queue_note_event(const struct lab_sample_event *event) {
    const char *text = event->text ? event->text : "";
    size_t bytes = strlen(text) + 1;
    struct sample_queue_note *note = lab_mem_alloc(1, sizeof *note + bytes);
    note->kind = OUTLET_EVENT;
    note->time_ns = event->time_ns;
    note->number = event->entity;
    note->event = *event;
    note->event.text = memcpy(note->text, text, bytes);
    return note;
}

static void copy_process(struct lab_arena *arena, struct lab_process_sample *process) {
    process->user = lab_arena_strdup(arena, process->user);
    process->name = lab_arena_strdup(arena, process->name);
    process->command = lab_arena_strdup(arena, process->command);
    process->container = lab_arena_strdup(arena, process->container);
    process->advice = lab_arena_strdup(arena, process->advice ? process->advice : "");
    if (process->node_bytes) {
        size_t bytes = (size_t)process->node_count * sizeof *process->node_bytes;
        process->node_bytes = memcpy(lab_arena_alloc(arena, bytes, 1), process->node_bytes, bytes);
    }
    size_t bytes = (size_t)process->gpu_count * sizeof *process->gpus;
    void *gpus = lab_arena_alloc(arena, bytes, 1);
    process->gpus = bytes ? memcpy(gpus, process->gpus, bytes) : gpus;
}

struct sample_queue_note *sample_queue_note_processes(const struct lab_process_list *list) {
    struct sample_queue_note *note = lab_mem_alloc(1, sizeof *note);
    note->kind = OUTLET_PROCESSES;
    note->time_ns = list->time_ns;
    note->processes = *list;
    note->processes.items = lab_arena_alloc(&note->arena, (size_t)list->count, sizeof *list->items);
    for (int i = 0; i < list->count; i++) {
        note->processes.items[i] = list->items[i];
        copy_process(&note->arena, &note->processes.items[i]);
    }
    return note;
}

void sample_queue_note_close(struct sample_queue_note *note) {
    if (!note)
        return;
    lab_arena_release(&note->arena);
    lab_mem_free(note);
}

void sample_queue_notes_add(struct sample_queue_notes *notes, struct sample_queue_note *note) {
    note->next = NULL;
    if (notes->last)
        notes->last->next = note;
    else
        notes->first = note;
    notes->last = note;
    notes->count[note->kind]++;
}

struct sample_queue_note *sample_queue_notes_pop(struct sample_queue_notes *notes) {
    struct sample_queue_note *note = notes->first;
    if (!note)
        return NULL;
    notes->first = note->next;
    if (!notes->first)
        notes->last = NULL;
    notes->count[note->kind]--;
    return note;
}

static void drop_oldest(struct sample_queue_notes *notes, enum sample_queue_note_kind kind) {
    struct sample_queue_note *before = NULL, *note = notes->first;
    for (; note && note->kind != kind; note = note->next)
        before = note;
    if (!note)
        return;
    if (before)
        before->next = note->next;
    else
        notes->first = note->next;
    if (notes->last == note)
        notes->last = before;
    notes->count[kind]--;
    sample_queue_note_close(note);
}

/* --- the queue --- */

void sample_queue_init(struct sample_queue *queue, size_t ring_bytes) {
    *queue = (struct sample_queue){0};
    pthread_mutex_init(&queue->mutex, NULL);
    sample_queue_ring_init(&queue->ring, ring_bytes);
    sample_queue_ring_init(&queue->taken.ring, ring_bytes);
}

void sample_queue_release(struct sample_queue *queue) {
    struct sample_queue_note *note;
    while ((note = sample_queue_notes_pop(&queue->notes)) ||
           (note = sample_queue_notes_pop(&queue->taken.notes)))
        sample_queue_note_close(note);
    sample_queue_ring_release(&queue->ring);
    sample_queue_ring_release(&queue->taken.ring);
    pthread_mutex_destroy(&queue->mutex);
}

/* An entity that nobody took yet is told once, as it is by now; where it was first told. */
static bool replace_entity(struct sample_queue_notes *notes, struct sample_queue_note *note) {
    for (struct sample_queue_note *old = notes->first; old; old = old->next) {
        if (old->kind != OUTLET_ENTITY || old->number != note->number)
            continue;
        struct lab_arena arena = old->arena;
        old->arena = note->arena;
        old->entity = note->entity;
        note->arena = arena;
        sample_queue_note_close(note);
        return true;
    }
    return false;
}

void sample_queue_put_note(struct sample_queue *queue, struct sample_queue_note *note) {
    if (note->kind == OUTLET_ENTITY && replace_entity(&queue->notes, note))
        return;
    note->sequence = queue->sequence++;
    sample_queue_notes_add(&queue->notes, note);
    if (queue->notes.count[OUTLET_EVENT] > EVENTS_MAX)
        drop_oldest(&queue->notes, OUTLET_EVENT);
    if (queue->notes.count[OUTLET_PROCESSES] > LISTS_MAX)
        drop_oldest(&queue->notes, OUTLET_PROCESSES);
}

void sample_queue_put_tick(struct sample_queue *queue, const struct sample_queue_tick *tick) {
    struct sample_queue_tick *room =
        sample_queue_ring_push(&queue->ring, tick->size_bytes, &queue->dropped);
    memcpy(room, tick, tick->size_bytes);
    room->sequence = queue->sequence++;
}

void sample_queue_take(struct sample_queue *queue) {
    assert(!queue->taken.notes.first && queue->taken.ring.count == 0);
    struct sample_queue_ring empty = queue->taken.ring;
    LAB_AUTO_LOCK(&queue->mutex);
    queue->taken.ring = queue->ring;
    queue->taken.notes = queue->notes;
    queue->ring = empty;
    queue->notes = (struct sample_queue_notes){0};
}

void sample_queue_next(struct sample_queue *queue, struct sample_queue_tick **ret_tick,
                       struct sample_queue_note **ret_note) {
    struct sample_queue_tick *tick = sample_queue_ring_first(&queue->taken.ring);
    struct sample_queue_note *note = queue->taken.notes.first;
    bool tick_first = tick && (!note || tick->sequence < note->sequence);
    *ret_tick = tick_first ? tick : NULL;
    *ret_note = tick_first ? NULL : note;
}
