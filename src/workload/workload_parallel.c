/*
 * workload_parallel.c: the parts of a data-parallel step, in which order and on which stream, and
 * what they took.
 *
 * Sums through host memory always have a stream of their own. Sums that are kernels have one where
 * the workload allows it: kernels whose blocks wait for each other would, beside a sum that is
 * there in part, wait for ever.
 *
 * compile=true makes a graph of all that comes before the sums, and of what says that a bucket is
 * ready. Marks are part of a graph, so that those steps whose marks are kept at the same time have
 * a graph each. With sums that are kernels there is none: the driver may let a graph wait for
 * others that are under way on the same GPU, whose sums wait for this rank.
 */
#include "workload/parallel.h"

#include <math.h>
#include <string.h>

enum {
    BEFORE,
    FORWARD,
    BACKWARD,
    UPDATE,
    BUCKETS_FROM
}; /* then start and end of each bucket's sum */

#define MARK_EVERY 8 /* steps: marks in all would cost small ones time */

enum part {
    PART_FORWARD,
    PART_BACKWARD,
    PART_GRADIENT, /* instead of the two, where they are one */
    PART_COMMUNICATION,
    PART_EXPOSED,
    PART_UPDATE,
    PARTS
};

static const char *const part_names[PARTS] = {
    "forward_ms", "backward_ms", "gradient_ms", "communication_time_ms", "exposed_communication_ms",
    "update_ms"};

struct lab_parallel {
    struct lab_parallel_setup setup; /* its rank is: */
    struct lab_rank rank;
    struct lab_device *device;
    struct lab_stream *stream; /* of the sums; NULL = they are in line */
    struct lab_sum *sum;
    bool captured; /* sums are kernels */
    struct lab_bucket *buckets;
    struct lab_event **ready; /* [bucket_count] */
    int bucket_count;
    bool whole;
    struct lab_event **marks;  /* [slots][mark_count] */
    struct lab_graph **graphs; /* [slots + 1]: the last without marks; NULL = not compiled */
    int slots, mark_count;
    double part_ns[PARTS]; /* of this run, summed */
    int marked;            /* steps that are in it */
};

/* --- life --- */

int lab_parallel_open(const struct lab_parallel_setup *setup, struct lab_parallel **ret_parallel,
                      struct lab_err *err) {
    const struct lab_rank *rank = setup->rank;
    struct lab_parallel *p = lab_mem_alloc(1, sizeof *p);
    p->setup = *setup;
    p->rank = *rank;
    p->setup.rank = &p->rank;
    p->device = rank->device;
    struct lab_sum_setup sum = {.rank = rank->index,
                                .device = p->device,
                                .numa_node = rank->numa_node,
                                .way = lab_sum_way_find(setup->allreduce),
                                .dtype = setup->dtype,
                                .count_most = setup->count};
    if (lab_sum_open(rank->group, &sum, &p->sum, err))
        goto fail;
    p->captured = lab_sum_is_captured(p->sum);
    const char *note = lab_sum_note(p->sum);
    if (note && rank->index == 0 && rank->sink && rank->sink->warning)
        rank->sink->warning(rank->sink->state, note);
    if ((setup->sums_beside || !p->captured) &&
        lab_stream_open(p->device, LAB_STREAM_COPY, &p->stream, err))
        goto fail;
    *ret_parallel = p;
    return 0;
fail:
    lab_parallel_close(p);
    return -1;
}

void lab_parallel_close(struct lab_parallel *p) {
    struct lab_err ignored = LAB_ERR_INIT;
    if (!p)
        return;
    if (p->stream)
        lab_stream_sync(p->stream, &ignored);
    lab_sum_close(p->sum);
    lab_stream_close(p->stream);
    for (int i = 0; p->graphs && i <= p->slots; i++)
        lab_graph_close(p->graphs[i]);
    for (int i = 0; p->ready && i < p->bucket_count; i++)
        lab_event_close(p->ready[i]);
    for (int i = 0; p->marks && i < p->slots * p->mark_count; i++)
        lab_event_close(p->marks[i]);
    lab_mem_free(p->graphs);
    lab_mem_free(p->ready);
    lab_mem_free(p->marks);
    lab_mem_free(p->buckets);
    lab_mem_free(p);
}

bool lab_parallel_in_line(const struct lab_parallel *p) {
    return !p->stream;
}

bool lab_parallel_settles(const struct lab_parallel *p) {
    return p->captured;
}

struct lab_stream *lab_parallel_stream(const struct lab_parallel *p) {
    return p ? p->stream : NULL;
}

struct lab_bucket lab_parallel_share(int64_t count, int index, int ranks) {
    int64_t each = count / ranks, more = count % ranks;
    return (struct lab_bucket){index * each + (index < more ? index : more), each + (index < more)};
}

static int open_events(struct lab_parallel *p, struct lab_err *err) {
    p->slots = p->setup.slots / MARK_EVERY + 2;
    p->mark_count = BUCKETS_FROM + 2 * p->bucket_count;
    p->ready = lab_mem_alloc((size_t)p->bucket_count, sizeof(struct lab_event *));
    p->marks = lab_mem_alloc((size_t)(p->slots * p->mark_count), sizeof(struct lab_event *));
    for (int i = 0; i < p->bucket_count; i++)
        if (lab_event_open(p->device, &p->ready[i], err))
            return -1;
    for (int i = 0; i < p->slots * p->mark_count; i++)
        if (lab_event_open(p->device, &p->marks[i], err))
            return -1;
    return 0;
}

/* --- a step --- */

static int mark(struct lab_event **marks, int which, struct lab_stream *stream,
                struct lab_err *err) {
    return marks ? lab_event_record(marks[which], stream, err) : 0;
}

static int say_ready(const struct lab_parallel *p, int bucket, struct lab_err *err) {
    return p->stream ? lab_event_record(p->ready[bucket], p->setup.stream, err) : 0;
}

static int compute(const struct lab_parallel *p, int part, struct lab_err *err) {
    return p->setup.compute(p->setup.state, part, err);
}

/* All before the sums; `marks` NULL = it has none. */
static int enqueue_gradients(struct lab_parallel *p, struct lab_event **marks,
                             struct lab_err *err) {
    struct lab_stream *stream = p->setup.stream;
    if (mark(marks, BEFORE, stream, err))
        return -1;
    if (p->whole) {
        if (compute(p, LAB_PARALLEL_WHOLE, err) || say_ready(p, 0, err))
            return -1;
        return mark(marks, BACKWARD, stream, err);
    }
    if (compute(p, 0, err) || mark(marks, FORWARD, stream, err))
        return -1;
    for (int i = 0; i < p->bucket_count; i++)
        if (compute(p, i + 1, err) || say_ready(p, i, err))
            return -1;
    return mark(marks, BACKWARD, stream, err);
}

static int sum_bucket(const struct lab_parallel *p, int number, struct lab_stream *stream,
                      struct lab_err *err) {
    const struct lab_parallel_setup *s = &p->setup;
    const struct lab_bucket *bucket = &p->buckets[number];
    char *data = (char *)s->gradient + bucket->begin * (int64_t)lab_dtype_bytes(s->dtype);
    if (lab_sum_enqueue_as(p->sum, stream, s->dtype, data, bucket->count, err))
        return -1;
    bool last = number == p->bucket_count - 1;
    return last && s->singles ? lab_sum_enqueue(p->sum, stream, s->singles, s->single_count, err)
                              : 0;
}

static int sum_buckets(const struct lab_parallel *p, struct lab_event **marks,
                       struct lab_err *err) {
    struct lab_stream *stream = p->stream ? p->stream : p->setup.stream;
    for (int i = 0; i < p->bucket_count; i++)
        if ((p->stream && lab_event_wait(p->ready[i], stream, err)) ||
            mark(marks, BUCKETS_FROM + 2 * i, stream, err) || sum_bucket(p, i, stream, err) ||
            mark(marks, BUCKETS_FROM + 2 * i + 1, stream, err))
            return -1;
    return 0;
}

/* The update waits for the sums by the event that said when the last bucket was ready: it is free
 * now. */
static int await_sums(const struct lab_parallel *p, struct lab_err *err) {
    struct lab_event *done = p->ready[p->bucket_count - 1];
    if (!p->stream)
        return 0;
    return lab_event_record(done, p->stream, err) || lab_event_wait(done, p->setup.stream, err) ? -1
                                                                                                : 0;
}

static int enqueue_rest(const struct lab_parallel *p, struct lab_event **marks,
                        struct lab_err *err) {
    if (sum_buckets(p, marks, err) || await_sums(p, err) || p->setup.update(p->setup.state, err))
        return -1;
    return mark(marks, UPDATE, p->setup.stream, err);
}

/* --- graphs --- */

int lab_parallel_capture(struct lab_stream *stream,
                         int (*enqueue)(void *state, struct lab_err *err), void *state,
                         struct lab_graph **ret_graph, struct lab_err *err) {
    struct lab_err second = LAB_ERR_INIT;
    if (lab_graph_begin(stream, err))
        return -1;
    int failed = enqueue(state, err);
    if (lab_graph_end(stream, ret_graph, failed ? &second : err))
        return -1;
    return failed;
}

struct marked {
    struct lab_parallel *parallel;
    struct lab_event **marks;
};

static int enqueue_marked(void *state, struct lab_err *err) {
    const struct marked *marked = state;
    return enqueue_gradients(marked->parallel, marked->marks, err);
}

static struct lab_event **marks_of(const struct lab_parallel *p, int slot) {
    return slot < p->slots ? &p->marks[(size_t)slot * (size_t)p->mark_count] : NULL;
}

static int capture(struct lab_parallel *p, struct lab_err *err) {
    if (!p->setup.compile || p->captured)
        return 0;
    p->graphs = lab_mem_alloc((size_t)p->slots + 1, sizeof(struct lab_graph *));
    for (int i = 0; i <= p->slots; i++) {
        struct marked marked = {p, marks_of(p, i)};
        if (lab_parallel_capture(p->setup.stream, enqueue_marked, &marked, &p->graphs[i], err))
            return -1;
    }
    return 0;
}

/*
 * Kernels are loaded at their first launch; the driver may wait for all of the GPU then, and would
 * wait for ever where a sum of another rank waits for this one. So everything is there before the
 * first rank begins. What the launches leave is nobody's: the parameters start anew.
 */
static int settle(struct lab_parallel *p, int (*reset)(void *state, struct lab_err *err),
                  struct lab_err *err) {
    const struct lab_rank *rank = p->setup.rank;
    if (enqueue_gradients(p, NULL, err) || p->setup.update(p->setup.state, err) ||
        lab_stream_sync(p->setup.stream, err) || reset(p->setup.state, err))
        return -1;
    LAB_AUTO_FREE void **all = lab_mem_alloc((size_t)rank->count, sizeof(void *));
    return lab_group_exchange(rank->group, rank->index, p->device, p, all, err);
}

int lab_parallel_start(struct lab_parallel *p, const struct lab_bucket *buckets, int count,
                       bool whole, int (*reset)(void *state, struct lab_err *err),
                       struct lab_err *err) {
    p->buckets = lab_mem_alloc((size_t)count, sizeof *buckets);
    memcpy(p->buckets, buckets, (size_t)count * sizeof *buckets);
    p->bucket_count = count;
    p->whole = whole;
    if (open_events(p, err) || capture(p, err))
        return -1;
    return p->captured ? settle(p, reset, err) : 0;
}

/* --- marks --- */

/* Not a run's first step, before which ranks wait for each other, where there are others. */
static bool is_marked(int iteration, int count) {
    int place = count > MARK_EVERY / 2 ? MARK_EVERY / 2 : count - 1;
    return iteration % MARK_EVERY == place;
}

static int slot_of(const struct lab_parallel *p, int iteration) {
    return iteration / MARK_EVERY % p->slots;
}

/* Adds what a step's parts took. */
static int collect(struct lab_parallel *p, int iteration, struct lab_err *err) {
    struct lab_event **marks = marks_of(p, slot_of(p, iteration));
    int64_t at[BUCKETS_FROM] = {0}, communication_ns = 0, end_ns = 0;
    for (int i = 0; i < BUCKETS_FROM; i++)
        if (!(p->whole && i == FORWARD) && lab_event_time(marks[i], &at[i], err))
            return -1;
    for (int i = 0; i < p->bucket_count; i++) {
        int64_t start_ns;
        if (lab_event_time(marks[BUCKETS_FROM + 2 * i], &start_ns, err) ||
            lab_event_time(marks[BUCKETS_FROM + 2 * i + 1], &end_ns, err))
            return -1;
        communication_ns += end_ns - start_ns;
    }
    int64_t exposed_ns = end_ns > at[BACKWARD] ? end_ns - at[BACKWARD] : 0;
    p->part_ns[PART_FORWARD] += (double)(at[FORWARD] - at[BEFORE]);
    p->part_ns[PART_BACKWARD] += (double)(at[BACKWARD] - at[FORWARD]);
    p->part_ns[PART_GRADIENT] += (double)(at[BACKWARD] - at[BEFORE]);
    p->part_ns[PART_COMMUNICATION] += (double)communication_ns;
    p->part_ns[PART_EXPOSED] += (double)exposed_ns;
    p->part_ns[PART_UPDATE] += (double)(at[UPDATE] - at[BACKWARD] - exposed_ns);
    p->marked++;
    return 0;
}

/* --- running --- */

int lab_parallel_step(struct lab_parallel *p, int iteration, int count, struct lab_err *err) {
    bool marked = is_marked(iteration, count);
    int slot = marked ? slot_of(p, iteration) : p->slots;
    struct lab_event **marks = marks_of(p, slot);
    if (iteration == 0) {
        memset(p->part_ns, 0, sizeof p->part_ns);
        p->marked = 0;
    }
    if (marked && iteration >= p->slots * MARK_EVERY &&
        collect(p, iteration - p->slots * MARK_EVERY, err))
        return -1;
    if (p->graphs ? lab_graph_launch(p->graphs[slot], p->setup.stream, err)
                  : enqueue_gradients(p, marks, err))
        return -1;
    return enqueue_rest(p, marks, err);
}

int lab_parallel_tell(struct lab_parallel *p, int count, const struct lab_sink *sink,
                      int64_t time_ns, struct lab_err *err) {
    int kept = p->slots * MARK_EVERY, first = count > kept ? count - kept : 0;
    for (int i = first; i < count; i++)
        if (is_marked(i, count) && collect(p, i, err))
            return -1;
    for (int i = 0; i < PARTS && p->marked > 0 && sink && sink->metrics; i++) {
        bool told = p->whole ? i != PART_FORWARD && i != PART_BACKWARD : i != PART_GRADIENT;
        const struct lab_reported_metric metric = {
            part_names[i], "ms", 1e-6 * p->part_ns[i] / p->marked, (double)NAN, -1, time_ns};
        if (told)
            sink->metrics(sink->state, &metric, 1);
    }
    return 0;
}
