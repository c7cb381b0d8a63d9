/* probe_outlet.c: the ring of ticks, the notes beside it, and how they change hands. */
#include "probe/probe_outlet.h"

#include <assert.h>
#include <string.h>

#define EVENTS_MAX                                                                                 \
    1024 /* that nobody takes; a lane that flaps twice a second fills this in minutes */
#define LISTS_MAX 64

/* --- ticks --- */

size_t outlet_tick_bytes(int columns) {
    return sizeof(struct outlet_tick) +
           8 * ((size_t)columns + (size_t)LAB_VALID_WORDS((size_t)columns));
}

void outlet_tick_fill(struct outlet_tick *tick, int columns, const int64_t *values,
                      const uint64_t *valid) {
    tick->size_bytes = (uint32_t)outlet_tick_bytes(columns);
    tick->columns = columns;
    memcpy(tick->data, values, 8 * (size_t)columns);
    memcpy(tick->data + columns, valid, 8 * (size_t)LAB_VALID_WORDS((size_t)columns));
}

void outlet_ring_init(struct outlet_ring *ring, size_t capacity) {
    *ring = (struct outlet_ring){.bytes = lab_mem_alloc(capacity, 1), .capacity = capacity};
}

void outlet_ring_release(struct outlet_ring *ring) {
    lab_mem_free(ring->bytes);
    ring->bytes = NULL;
}

struct outlet_tick *outlet_ring_first(struct outlet_ring *ring) {
    return ring->count ? (struct outlet_tick *)(ring->bytes + ring->head) : NULL;
}

void outlet_ring_pop(struct outlet_ring *ring) {
    ring->head += outlet_ring_first(ring)->size_bytes;
    if (--ring->count == 0)
        ring->head = ring->tail = ring->wrapped_at = 0; /* touches no more memory than is needed */
    else if (ring->wrapped_at && ring->head == ring->wrapped_at)
        ring->head = ring->wrapped_at = 0;
}

void *outlet_ring_push(struct outlet_ring *ring, size_t size_bytes, int64_t *dropped) {
    assert(size_bytes <= ring->capacity);
    /* from the tail to the end, or, once wrapped, to the head; the tail never reaches the head */
    while (ring->wrapped_at ? ring->tail + size_bytes >= ring->head
                            : ring->tail + size_bytes > ring->capacity) {
        if (!ring->wrapped_at && size_bytes < ring->head) {
            ring->wrapped_at = ring->tail;
            ring->tail = 0;
            continue;
        }
        outlet_ring_pop(ring);
        ++*dropped;
    }
    void *room = ring->bytes + ring->tail;
    ring->tail += size_bytes;
    ring->count++;
    return room;
}

/* --- notes --- */

struct outlet_note *outlet_note_entity(int64_t time_ns, int number,
                                       const struct lab_entity *entity) {
    struct outlet_note *note = lab_mem_alloc(1, sizeof *note);
    note->kind = OUTLET_ENTITY;
    note->time_ns = time_ns;
    note->number = number;
    note->entity = *entity;
    note->entity.id = lab_arena_strdup(&note->arena, entity->id);
    note->entity.name = lab_arena_strdup(&note->arena, entity->name);
    note->entity.pci = lab_arena_strdup(&note->arena, entity->pci);
    struct lab_column *columns =
        lab_arena_alloc(&note->arena, (size_t)entity->column_count, sizeof *columns);
    memcpy(columns, entity->columns, (size_t)entity->column_count * sizeof *columns);
    note->entity.columns = columns;
    return note;
}

struct outlet_note *outlet_note_event(const struct lab_sample_event *event) {
    const char *text = event->text ? event->text : "";
    size_t bytes = strlen(text) + 1;
    struct outlet_note *note = lab_mem_alloc(1, sizeof *note + bytes);
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

struct outlet_note *outlet_note_processes(const struct lab_process_list *list) {
    struct outlet_note *note = lab_mem_alloc(1, sizeof *note);
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

void outlet_note_close(struct outlet_note *note) {
    if (!note)
        return;
    lab_arena_release(&note->arena);
    lab_mem_free(note);
}

void outlet_notes_add(struct outlet_notes *notes, struct outlet_note *note) {
    note->next = NULL;
    if (notes->last)
        notes->last->next = note;
    else
        notes->first = note;
    notes->last = note;
    notes->count[note->kind]++;
}

struct outlet_note *outlet_notes_pop(struct outlet_notes *notes) {
    struct outlet_note *note = notes->first;
    if (!note)
        return NULL;
    notes->first = note->next;
    if (!notes->first)
        notes->last = NULL;
    notes->count[note->kind]--;
    return note;
}

static void drop_oldest(struct outlet_notes *notes, enum outlet_note_kind kind) {
    struct outlet_note *before = NULL, *note = notes->first;
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
    outlet_note_close(note);
}

/* --- the outlet --- */

void outlet_init(struct outlet *outlet, size_t ring_bytes) {
    *outlet = (struct outlet){0};
    pthread_mutex_init(&outlet->mutex, NULL);
    outlet_ring_init(&outlet->ring, ring_bytes);
    outlet_ring_init(&outlet->taken.ring, ring_bytes);
}

void outlet_release(struct outlet *outlet) {
    struct outlet_note *note;
    while ((note = outlet_notes_pop(&outlet->notes)) ||
           (note = outlet_notes_pop(&outlet->taken.notes)))
        outlet_note_close(note);
    outlet_ring_release(&outlet->ring);
    outlet_ring_release(&outlet->taken.ring);
    pthread_mutex_destroy(&outlet->mutex);
}

/* An entity that nobody took yet is told once, as it is by now; where it was first told. */
static bool replace_entity(struct outlet_notes *notes, struct outlet_note *note) {
    for (struct outlet_note *old = notes->first; old; old = old->next) {
        if (old->kind != OUTLET_ENTITY || old->number != note->number)
            continue;
        struct lab_arena arena = old->arena;
        old->arena = note->arena;
        old->entity = note->entity;
        note->arena = arena;
        outlet_note_close(note);
        return true;
    }
    return false;
}

void outlet_put_note(struct outlet *outlet, struct outlet_note *note) {
    if (note->kind == OUTLET_ENTITY && replace_entity(&outlet->notes, note))
        return;
    note->sequence = outlet->sequence++;
    outlet_notes_add(&outlet->notes, note);
    if (outlet->notes.count[OUTLET_EVENT] > EVENTS_MAX)
        drop_oldest(&outlet->notes, OUTLET_EVENT);
    if (outlet->notes.count[OUTLET_PROCESSES] > LISTS_MAX)
        drop_oldest(&outlet->notes, OUTLET_PROCESSES);
}

void outlet_put_tick(struct outlet *outlet, const struct outlet_tick *tick) {
    struct outlet_tick *room = outlet_ring_push(&outlet->ring, tick->size_bytes, &outlet->dropped);
    memcpy(room, tick, tick->size_bytes);
    room->sequence = outlet->sequence++;
}

void outlet_take(struct outlet *outlet) {
    assert(!outlet->taken.notes.first && outlet->taken.ring.count == 0);
    struct outlet_ring empty = outlet->taken.ring;
    pthread_mutex_lock(&outlet->mutex);
    outlet->taken.ring = outlet->ring;
    outlet->taken.notes = outlet->notes;
    outlet->ring = empty;
    outlet->notes = (struct outlet_notes){0};
    pthread_mutex_unlock(&outlet->mutex);
}

void outlet_next(struct outlet *outlet, struct outlet_tick **ret_tick,
                 struct outlet_note **ret_note) {
    struct outlet_tick *tick = outlet_ring_first(&outlet->taken.ring);
    struct outlet_note *note = outlet->taken.notes.first;
    bool tick_first = tick && (!note || tick->sequence < note->sequence);
    *ret_tick = tick_first ? tick : NULL;
    *ret_note = tick_first ? NULL : note;
}
