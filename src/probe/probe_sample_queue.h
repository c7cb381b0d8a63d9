/*
 * probe_sample_queue.h: how one lane hands what it found to whoever takes it, without either
 * waiting for the other for longer than a few pointers take to swap.
 *
 * Ticks lie in a ring of fixed size: if nobody takes them, the oldest make room. What may not get
 * lost that way (entities, events, lists of processes) is a list of notes. Both carry a sequence
 * number, so that they come out in the order in which they went in. The taker swaps the ring for an
 * empty one of its own and reads at leisure.
 */
#pragma once

#include "base/cond.h"
#include "base/mem.h"
#include "model/sample.h"

/* A tick as it lies in the ring; values, then the words of valid, follow. */
struct sample_queue_tick {
    uint32_t size_bytes; /* of all of it, a multiple of 8 */
    int32_t entity, columns;
    uint64_t sequence;
    int64_t time_ns, late_ns, cost_ns;
    int64_t data[];
};

size_t sample_queue_tick_bytes(int columns);
void sample_queue_tick_fill(struct sample_queue_tick *tick, int columns, const int64_t *values,
                            const uint64_t *valid);

struct sample_queue_ring {
    char *bytes;
    size_t capacity, head, tail;
    size_t wrapped_at; /* what lies behind the end begins anew at 0; 0 = nothing does */
    int count;
};

void sample_queue_ring_init(struct sample_queue_ring *ring, size_t capacity);
void sample_queue_ring_release(struct sample_queue_ring *ring);
/* Room for one record, and how many old ones had to go for it. It must fit at all. */
void *sample_queue_ring_push(struct sample_queue_ring *ring, size_t size_bytes, int64_t *dropped);
struct sample_queue_tick *
sample_queue_ring_first(struct sample_queue_ring *ring); /* NULL = empty */
void sample_queue_ring_pop(struct sample_queue_ring *ring);

enum sample_queue_note_kind { OUTLET_ENTITY, OUTLET_EVENT, OUTLET_PROCESSES };

struct sample_queue_note {
    struct sample_queue_note *next;
    enum sample_queue_note_kind kind;
    uint64_t sequence;
    int64_t time_ns;
    int number; /* of an entity */
    union {
        struct lab_entity entity;
        struct lab_sample_event event;
        struct lab_process_list processes;
    };
    struct lab_arena arena; /* of an entity and a list */
    char text[];            /* of an event */
};

/* Copies; `next` and `sequence` are set when it is put. */
struct sample_queue_note *sample_queue_note_entity(int64_t time_ns, int number,
                                                   const struct lab_entity *entity);
struct sample_queue_note *sample_queue_note_event(const struct lab_sample_event *event);
struct sample_queue_note *sample_queue_note_processes(const struct lab_process_list *list);
void sample_queue_note_close(struct sample_queue_note *note);

struct sample_queue_notes {
    struct sample_queue_note *first, *last;
    int count[3]; /* by kind */
};

void sample_queue_notes_add(struct sample_queue_notes *notes, struct sample_queue_note *note);
struct sample_queue_note *sample_queue_notes_pop(struct sample_queue_notes *notes);

/* All but `taken` is under the mutex. */
struct sample_queue {
    pthread_mutex_t mutex;
    struct sample_queue_ring ring;
    struct sample_queue_notes notes;
    uint64_t sequence;
    int64_t dropped;
    struct { /* the taker's */
        struct sample_queue_ring ring;
        struct sample_queue_notes notes;
    } taken;
};

void sample_queue_init(struct sample_queue *queue, size_t ring_bytes);
void sample_queue_release(struct sample_queue *queue);

/* With the mutex held. A note that replaces one which nobody took yet takes its place. */
void sample_queue_put_note(struct sample_queue *queue, struct sample_queue_note *note);
void sample_queue_put_tick(struct sample_queue *queue, const struct sample_queue_tick *tick);

/* Moves all that was put to `taken`, which must be empty. */
void sample_queue_take(struct sample_queue *queue);

/* What `taken` holds next: one of both is NULL; both are if it holds nothing. */
void sample_queue_next(struct sample_queue *queue, struct sample_queue_tick **ret_tick,
                       struct sample_queue_note **ret_note);
