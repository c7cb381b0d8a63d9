/*
 * end.c: one rank's end of the sums: a vector, or with `flush` as many in turn as no cache holds,
 * so that each sum finds its own in memory.
 *
 * A sum between slices of one GPU takes less time than launching it, let alone with an event before
 * and behind it. So where a graph can hold sums it holds several, which are timed together.
 *
 * A sum of what was summed grows by the number of ranks. Vectors begin small, and are made fresh,
 * outside of what is timed, before they could overflow: data that changes is what sums are done on.
 */
#include "workload/allreduce/allreduce.h"

#include <math.h>

#define POOL_BYTES  ((int64_t)128 << 20) /* of a rank: with those of others beyond any cache */
#define FRESH_SCALE 0x1p-100f
#define GROWTH_LOG2 200 /* from there to the largest numbers, with room */
#define GRAPH_MOST  256 /* sums of a graph */

int64_t allreduce_values(const struct allreduce_config *config) {
    return config->bytes / (int64_t)sizeof(float);
}

static float *vector_at(const struct allreduce_end *end, int64_t sum) {
    return (float *)end->pool.data + sum % end->slots * end->stride;
}

/* Sums of one vector until it must be fresh again. */
static int64_t sums_most(const struct allreduce_end *end) {
    return end->ranks > 1 ? (int64_t)(GROWTH_LOG2 / log2(end->ranks)) : INT32_MAX;
}

/* --- vectors --- */

static void draw_small(const void *state, int64_t first, int64_t count, float *out) {
    lab_data_random(state, first, count, out);
    for (int64_t i = 0; i < count; i++)
        out[i] *= FRESH_SCALE;
}

int allreduce_end_refresh(struct allreduce_end *end, struct lab_err *err) {
    end->sums = 0;
    return lab_copy(end->stream, end->pool.data, end->fresh.data, end->pool.size_bytes,
                    LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE, err);
}

/* Draws the first vector, and doubles what there is until all are full: drawing takes longer. */
static int draw_vectors(struct allreduce_end *end, struct lab_err *err) {
    uint64_t seed = (uint64_t)end->rank + 1;
    char *fresh = end->fresh.data;
    size_t size = end->fresh.size_bytes, stride = (size_t)end->stride * sizeof(float);
    if (lab_data_upload(end->stream, fresh, LAB_FP32, end->stride, draw_small, &seed, err))
        return -1;
    for (size_t full = stride; full < size; full *= 2)
        if (lab_copy(end->stream, fresh + full, fresh, full < size - full ? full : size - full,
                     LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE, err))
            return -1;
    return allreduce_end_refresh(end, err);
}

static int open_vectors(struct allreduce_end *end, struct lab_err *err) {
    end->stride = (allreduce_values(end->config) + 63) / 64 * 64;
    end->slots = end->config->flush ? 1 + POOL_BYTES / (end->stride * (int64_t)sizeof(float)) : 1;
    size_t bytes = (size_t)(end->slots * end->stride) * sizeof(float);
    if (lab_buffer_open(end->device, LAB_MEMORY_DEVICE, -1, bytes, &end->pool, err) ||
        lab_buffer_open(end->device, LAB_MEMORY_DEVICE, -1, bytes, &end->fresh, err))
        return -1;
    return draw_vectors(end, err);
}

/* --- graphs --- */

static int enqueue_sums(struct allreduce_end *end, int count, struct lab_err *err) {
    for (int i = 0; i < count; i++)
        if (lab_sum_enqueue(end->sum, end->stream, vector_at(end, end->sums + i),
                            allreduce_values(end->config), err))
            return -1;
    return 0;
}

/* With several vectors a graph has as many sums as there are of them: few enough, or none. */
static int capture(struct allreduce_end *end, struct lab_err *err) {
    int64_t together = end->slots > 1 ? end->slots : end->config->graph;
    if (together > sums_most(end) / 2 * end->slots)
        together = sums_most(end) / 2 * end->slots;
    end->together = 1;
    if (end->config->graph < 2 || together > GRAPH_MOST || end->ranks < 2 ||
        !lab_sum_is_captured(end->sum))
        return 0;
    end->together = (int)together;
    return lab_graph_begin(end->stream, err) || enqueue_sums(end, end->together, err) ||
                   lab_graph_end(end->stream, &end->graph, err)
               ? -1
               : 0;
}

/* --- opening and closing --- */

int allreduce_end_open(struct allreduce_end *end, struct lab_err *err) {
    struct lab_sum_setup setup = {.rank = end->rank,
                                  .device = end->device,
                                  .numa_node = end->numa_node,
                                  .way = lab_sum_way_find(end->config->allreduce),
                                  .count_most = allreduce_values(end->config)};
    if (lab_data_require(end->device, LAB_OP_ADD, LAB_FP32, err) ||
        lab_stream_open(end->device, LAB_STREAM_COMPUTE, &end->stream, err) ||
        lab_spans_open(end->device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE, &end->spans,
                       err) ||
        open_vectors(end, err) || lab_stream_sync(end->stream, err))
        return -1;
    return lab_sum_open(end->group, &setup, &end->sum, err) || capture(end, err) ? -1 : 0;
}

void allreduce_end_close(struct allreduce_end *end) {
    struct lab_err ignored = LAB_ERR_INIT;
    if (end->stream)
        lab_stream_sync(end->stream, &ignored);
    lab_graph_close(end->graph);
    lab_sum_close(end->sum);
    lab_spans_close(&end->spans);
    lab_stream_close(end->stream);
    lab_buffer_close(&end->pool);
    lab_buffer_close(&end->fresh);
    end->graph = NULL;
    end->sum = NULL;
    end->stream = NULL;
}

/* --- running --- */

/* One after the other, or a graph of them. */
static int enqueue_group(struct allreduce_end *end, struct lab_err *err) {
    if (end->graph ? lab_graph_launch(end->graph, end->stream, err) : enqueue_sums(end, 1, err))
        return -1;
    end->sums += end->together;
    return 0;
}

static int enqueue(void *state, int group, struct lab_err *err) {
    struct allreduce_end *end = state;
    if (end->sums + (int64_t)2 * end->together > sums_most(end) * end->slots &&
        allreduce_end_refresh(end, err))
        return -1;
    /* ranks begin a stretch at different times: what the first sums wait for isn't theirs */
    if (group == 0 && end->ranks > 1 && enqueue_group(end, err))
        return -1;
    if (lab_spans_start(&end->spans, group, LAB_STAGE_COMPUTE, end->stream, err) ||
        enqueue_group(end, err))
        return -1;
    return lab_spans_end(&end->spans, group, LAB_STAGE_COMPUTE, end->stream, err);
}

/* Gives each sum its part of its group's time, from the last one on: groups stand at the front. The
 * last group may have done more sums than were asked for. */
static void spread(const struct allreduce_end *end, int count, struct lab_iteration *records) {
    for (int i = count - 1; i >= 0 && end->together > 1; i--) {
        struct lab_iteration whole = records[i / end->together], *record = &records[i];
        int64_t length_ns = whole.end_ns - whole.start_ns, place = i % end->together;
        *record = whole;
        record->start_ns = whole.start_ns + length_ns * place / end->together;
        record->end_ns = whole.start_ns + length_ns * (place + 1) / end->together;
        record->stages[LAB_STAGE_COMPUTE] =
            (struct lab_span){.start_ns = record->start_ns, .end_ns = record->end_ns};
    }
}

int allreduce_end_run(struct allreduce_end *end, int count, struct lab_iteration *records,
                      struct lab_err *err) {
    int groups = (count + end->together - 1) / end->together;
    if (lab_spans_run(&end->spans, &end->stream, 1, groups, enqueue, end, records, err))
        return -1;
    spread(end, count, records);
    return 0;
}
