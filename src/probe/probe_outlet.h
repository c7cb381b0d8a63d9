/*
 * probe_outlet.h: how one lane hands what it found to whoever takes it, without either waiting for the
 * other for longer than a few pointers take to swap.
 *
 * Ticks lie in a ring of fixed size: if nobody takes them, the oldest make room. What may not get lost
 * that way (entities, events, lists of processes) is a list of notes. Both carry a sequence number, so
 * that they come out in the order in which they went in. The taker swaps the ring for an empty one of
 * its own and reads at leisure.
 */
#ifndef LAB_PROBE_PROBE_OUTLET_H
#define LAB_PROBE_PROBE_OUTLET_H

#include "base/mem.h"
#include "model/sample.h"

#include <pthread.h>

/* A tick as it lies in the ring; values, then the words of valid, follow. */
struct outlet_tick {
    uint32_t size_bytes; /* of all of it, a multiple of 8 */
    int32_t entity, columns;
    uint64_t sequence;
    int64_t time_ns, late_ns, cost_ns;
    int64_t data[];
};

size_t outlet_tick_bytes(int columns);
void outlet_tick_fill(struct outlet_tick *tick, int columns, const int64_t *values,
                      const uint64_t *valid);

struct outlet_ring {
    char *bytes;
    size_t capacity, head, tail;
    size_t wrapped_at; /* what lies behind the end begins anew at 0; 0 = nothing does */
    int count;
};

void outlet_ring_init(struct outlet_ring *ring, size_t capacity);
void outlet_ring_release(struct outlet_ring *ring);
/* Room for one record, and how many old ones had to go for it. It must fit at all. */
void *outlet_ring_push(struct outlet_ring *ring, size_t size_bytes, int64_t *dropped);
struct outlet_tick *outlet_ring_first(struct outlet_ring *ring); /* NULL = empty */
void outlet_ring_pop(struct outlet_ring *ring);

enum outlet_note_kind { OUTLET_ENTITY, OUTLET_EVENT, OUTLET_PROCESSES };

struct outlet_note {
    struct outlet_note *next;
    enum outlet_note_kind kind;
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
struct outlet_note *outlet_note_entity(int64_t time_ns, int number,
                                       const struct lab_entity *entity);
struct outlet_note *outlet_note_event(const struct lab_sample_event *event);
struct outlet_note *outlet_note_processes(const struct lab_process_list *list);
void outlet_note_close(struct outlet_note *note);

struct outlet_notes {
    struct outlet_note *first, *last;
    int count[3]; /* by kind */
};

void outlet_notes_add(struct outlet_notes *notes, struct outlet_note *note);
struct outlet_note *outlet_notes_pop(struct outlet_notes *notes);

/* All but `taken` is under the mutex. */
struct outlet {
    pthread_mutex_t mutex;
    struct outlet_ring ring;
    struct outlet_notes notes;
    uint64_t sequence;
    int64_t dropped;
    struct { /* the taker's */
        struct outlet_ring ring;
        struct outlet_notes notes;
    } taken;
};

void outlet_init(struct outlet *outlet, size_t ring_bytes);
void outlet_release(struct outlet *outlet);

/* With the mutex held. A note that replaces one which nobody took yet takes its place. */
void outlet_put_note(struct outlet *outlet, struct outlet_note *note);
void outlet_put_tick(struct outlet *outlet, const struct outlet_tick *tick);

/* Moves all that was put to `taken`, which must be empty. */
void outlet_take(struct outlet *outlet);

/* What `taken` holds next: one of both is NULL; both are if it holds nothing. */
void outlet_next(struct outlet *outlet, struct outlet_tick **ret_tick,
                 struct outlet_note **ret_note);

#endif
