/*
 * worker_sample.c: samples of a simulated machine on their way to the runner. No sampler can watch
 * a machine that isn't there: its own model tells what one would have seen, in its own time.
 */
#include "worker/worker_internal.h"

#define ROWS_MOST 256 /* in a frame */

struct outgoing { /* ticks of one entity, until there are enough for a frame */
    struct rank *rank;
    int number, column_count;
    size_t count;
    int64_t *times_ns, *values;
};

struct taker {
    struct rank *rank;
    struct outgoing *items; /* by entity */
    int count;
    struct lab_arena *arena;
};

static void send_ticks(struct outgoing *outgoing) {
    if (outgoing->count > 0)
        worker_send(outgoing->rank->worker,
                    &(struct lab_frame){.type = LAB_FRAME_TICKS,
                                        .rank = outgoing->rank->job->index,
                                        .ticks = {.number = outgoing->number,
                                                  .column_count = outgoing->column_count,
                                                  .times_ns = outgoing->times_ns,
                                                  .values = outgoing->values,
                                                  .count = outgoing->count}});
    outgoing->count = 0;
}

static void on_entity(void *state, int number, const struct lab_entity *entity) {
    struct taker *taker = state;
    worker_send(taker->rank->worker,
                &(struct lab_frame){.type = LAB_FRAME_ENTITY,
                                    .rank = taker->rank->job->index,
                                    .entity = {.number = number, .entity = *entity}});
    struct outgoing *item = &LAB_ADD(taker->items, taker->count, taker->arena);
    *item = (struct outgoing){
        .rank = taker->rank,
        .number = number,
        .column_count = entity->column_count,
        .times_ns = lab_arena_alloc(taker->arena, ROWS_MOST, sizeof *item->times_ns),
        .values = lab_arena_alloc(taker->arena, ROWS_MOST * (size_t)entity->column_count,
                                  sizeof *item->values)};
}

static void on_tick(void *state, const struct lab_tick *tick) {
    const struct taker *taker = state;
    struct outgoing *item = taker->items;
    while (item->number != tick->entity) /* it was told before */
        item++;
    if (item->count == ROWS_MOST)
        send_ticks(item);
    item->times_ns[item->count] = tick->time_ns;
    for (int i = 0; i < item->column_count; i++)
        item->values[item->count * (size_t)item->column_count + (size_t)i] = tick->values[i];
    item->count++;
}

void worker_tell_samples(struct rank *rank) {
    LAB_AUTO(arena, arena);
    struct taker taker = {.rank = rank, .arena = &arena};
    struct lab_sink_samples sink = {.entity = on_entity, .tick = on_tick, .state = &taker};
    if (!rank->session.ref.simulated)
        return;
    LAB_AUTO_LOCK(&rank->worker->sample_mutex);
    lab_device_samples(rank->session.device, &sink);
    for (int i = 0; i < taker.count; i++)
        send_ticks(&taker.items[i]);
}
