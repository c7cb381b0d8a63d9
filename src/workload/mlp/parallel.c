/*
 * parallel.c: a step on several devices. Each rank does its rows of the batch, gradients are summed
 * over all ranks, and each updates its own copy of the parameters, which stay the same on all to
 * the bit.
 *
 * Sums through host memory have a stream of their own. With `overlap` the backward pass is cut into
 * buckets of layers, the last layers first, and each bucket's sum begins when its gradients are
 * there: late layers travel while early ones are computed. The update waits for the last.
 *
 * Where a sum is a command of one stream (group.h) it stands in line with all else, and there is
 * one bucket: its blocks and those of the backward pass each wait for their like on other
 * multiprocessors, and would wait for ever where both are there in part.
 *
 * compile_model=true makes forward and backward one operation where there is a single bucket, and a
 * graph of all that comes before the sums, and of what says that a bucket is ready. Marks are part
 * of a graph, so that those steps whose marks are kept at the same time have a graph each. With
 * sums in line there is none: a step is three launches, and the driver may let a graph wait for
 * others that are under way on the same GPU, whose sums wait for this rank.
 */
#include "workload/mlp/mlp.h"

#include <string.h>

enum {
    BEFORE,
    FORWARD,
    BACKWARD,
    UPDATE,
    BUCKETS_FROM
}; /* then start and end of each bucket's sum */

#define MARKS      (BUCKETS_FROM + 2 * MLP_LAYERS)
#define MARK_EVERY 8 /* steps: marks in all would cost small ones time */

enum part {
    PART_FORWARD,
    PART_BACKWARD,
    PART_GRADIENT, /* instead of the two, where they are one operation */
    PART_COMMUNICATION,
    PART_EXPOSED,
    PART_UPDATE,
    PARTS
};

static const char *const part_names[PARTS] = {
    "forward_ms", "backward_ms", "gradient_ms", "communication_time_ms", "exposed_communication_ms",
    "update_ms"};

struct bucket {
    struct lab_launch backward;
    int64_t begin, count; /* of the gradient */
    struct lab_event *ready;
};

struct mlp_parallel {
    struct lab_stream *stream; /* of the sums; NULL = they are in line */
    struct lab_sum *sum;
    bool in_line;
    struct bucket buckets[MLP_LAYERS]; /* in the order in which they are done */
    int bucket_count;
    bool fused;                        /* forward and backward are one launch: */
    struct lab_launch gradient;        /* this */
    struct lab_event *(*marks)[MARKS]; /* [slots] */
    struct lab_graph **graphs; /* [slots + 1]: the last without marks; NULL = not compiled */
    int slots;
    double part_ns[PARTS]; /* of this run, summed */
    int marked;            /* steps that are in it */
};

/* --- life --- */

static void add_bucket(struct mlp_training *t, int layer_begin, int layer_end) {
    struct mlp_parallel *p = t->parallel;
    const struct lab_mlp *mlp = &t->shape.mlp;
    struct bucket *bucket = &p->buckets[p->bucket_count++];
    bool last = layer_end == lab_mlp_layers(mlp);
    bucket->backward = t->launches[1];
    bucket->backward.mlp.layer_begin = layer_begin;
    bucket->backward.mlp.layer_end = layer_end;
    bucket->begin = lab_mlp_weight_at(mlp, layer_begin);
    /* the losses stand behind the last layer's gradients and travel with them */
    bucket->count =
        (last ? lab_mlp_gradient_count(mlp) : lab_mlp_weight_at(mlp, layer_end)) - bucket->begin;
}

/* From the last layer on, until a bucket is large enough; what is left at the front is one, too. */
static void cut_buckets(struct mlp_training *t) {
    const struct lab_mlp *mlp = &t->shape.mlp;
    int end = lab_mlp_layers(mlp);
    bool overlaps = t->config->overlap && !t->parallel->in_line;
    for (int layer = end - 1; layer > 0 && overlaps; layer--) {
        int64_t values = lab_mlp_weight_at(mlp, end) - lab_mlp_weight_at(mlp, layer);
        if (values * (int64_t)sizeof(float) < t->config->bucket)
            continue;
        add_bucket(t, layer, end);
        end = layer;
    }
    add_bucket(t, 0, end);
}

static int open_events(struct mlp_training *t, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel;
    p->slots = t->spans.slots / MARK_EVERY + 2;
    p->marks = lab_mem_alloc((size_t)p->slots, sizeof *p->marks);
    for (int i = 0; i < p->bucket_count; i++)
        if (lab_event_open(t->device, &p->buckets[i].ready, err))
            return -1;
    for (int slot = 0; slot < p->slots; slot++)
        for (int i = 0; i < BUCKETS_FROM + 2 * p->bucket_count; i++)
            if (lab_event_open(t->device, &p->marks[slot][i], err))
                return -1;
    return 0;
}

/* --- a step --- */

static int mark(struct lab_event **marks, int which, struct lab_stream *stream,
                struct lab_err *err) {
    return marks ? lab_event_record(marks[which], stream, err) : 0;
}

static void describe_gradient(struct mlp_training *t) {
    struct mlp_parallel *p = t->parallel;
    p->fused = t->config->compile_model && p->bucket_count == 1;
    p->gradient = t->step;
    p->gradient.op = LAB_OP_MLP_GRADIENT;
    p->gradient.mlp = t->shape.mlp;
    p->gradient.in[4] = (struct lab_tensor){0};
    p->gradient.out = t->launches[1].out;
}

static int say_ready(struct mlp_training *t, int bucket, struct lab_err *err) {
    const struct mlp_parallel *p = t->parallel;
    return p->in_line ? 0 : lab_event_record(p->buckets[bucket].ready, t->stream, err);
}

static int backward(struct mlp_training *t, struct lab_err *err) {
    const struct mlp_parallel *p = t->parallel;
    for (int i = 0; i < p->bucket_count; i++)
        if (lab_launch(t->stream, &p->buckets[i].backward, err) || say_ready(t, i, err))
            return -1;
    return 0;
}

/* `argument` are the step's marks; NULL = it has none. */
static int enqueue_gradients(struct mlp_training *t, void *argument, struct lab_err *err) {
    const struct mlp_parallel *p = t->parallel;
    struct lab_event **marks = argument;
    if (mark(marks, BEFORE, t->stream, err))
        return -1;
    if (p->fused ? lab_launch(t->stream, &p->gradient, err) || say_ready(t, 0, err)
                 : lab_launch(t->stream, &t->launches[0], err) ||
                       mark(marks, FORWARD, t->stream, err) || backward(t, err))
        return -1;
    return mark(marks, BACKWARD, t->stream, err);
}

static int sum_buckets(struct mlp_training *t, struct lab_event **marks, struct lab_err *err) {
    const struct mlp_parallel *p = t->parallel;
    struct lab_stream *stream = p->in_line ? t->stream : p->stream;
    float *gradient = t->gradient.data;
    for (int i = 0; i < p->bucket_count; i++) {
        const struct bucket *bucket = &p->buckets[i];
        if ((!p->in_line && lab_event_wait(bucket->ready, stream, err)) ||
            mark(marks, BUCKETS_FROM + 2 * i, stream, err) ||
            lab_sum_enqueue(p->sum, stream, gradient + bucket->begin, bucket->count, err) ||
            mark(marks, BUCKETS_FROM + 2 * i + 1, stream, err))
            return -1;
    }
    return 0;
}

/* The update waits for the sums by the event that said when the last bucket was ready: it is free
 * now. */
static int await_sums(struct mlp_training *t, struct lab_err *err) {
    const struct mlp_parallel *p = t->parallel;
    struct lab_event *done = p->buckets[p->bucket_count - 1].ready;
    if (p->in_line)
        return 0;
    return lab_event_record(done, p->stream, err) || lab_event_wait(done, t->stream, err) ? -1 : 0;
}

static int enqueue_rest(struct mlp_training *t, struct lab_event **marks, struct lab_err *err) {
    if (sum_buckets(t, marks, err) || await_sums(t, err) ||
        lab_launch(t->stream, &t->launches[2], err))
        return -1;
    return mark(marks, UPDATE, t->stream, err);
}

static int capture(struct mlp_training *t, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel;
    if (!t->config->compile_model || p->in_line)
        return 0;
    p->graphs = lab_mem_alloc((size_t)p->slots + 1, sizeof(struct lab_graph *));
    for (int i = 0; i <= p->slots; i++)
        if (mlp_training_capture(t, enqueue_gradients, i < p->slots ? p->marks[i] : NULL,
                                 &p->graphs[i], err))
            return -1;
    return 0;
}

/* --- life, continued --- */

/*
 * Kernels are loaded at their first launch; the driver may wait for all of the GPU then, and would
 * wait for ever where a sum of another rank waits for this one. So everything is there before the
 * first rank begins. What the launches leave is nobody's: the parameters start anew.
 */
static int settle(struct mlp_training *t, const struct lab_rank *rank, struct lab_err *err) {
    if (enqueue_gradients(t, NULL, err) || lab_launch(t->stream, &t->launches[2], err) ||
        lab_stream_sync(t->stream, err) ||
        mlp_training_reset(t, (uint64_t)t->config->data_seed, err))
        return -1;
    LAB_AUTO_FREE void **all = lab_mem_alloc((size_t)rank->count, sizeof(void *));
    return lab_group_exchange(rank->group, rank->index, t->device, t, all, err);
}

int mlp_parallel_open(struct mlp_training *t, const struct lab_rank *rank, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel = lab_mem_alloc(1, sizeof *p);
    struct lab_sum_setup setup = {.rank = rank->index,
                                  .device = t->device,
                                  .numa_node = rank->numa_node,
                                  .way = lab_sum_way_find(t->config->allreduce),
                                  .count_most = lab_mlp_gradient_count(&t->shape.mlp)};
    lab_prepare(t->device, t->launches, 3);
    if (lab_sum_open(rank->group, &setup, &p->sum, err))
        return -1;
    p->in_line = lab_sum_is_captured(p->sum);
    const char *note = lab_sum_note(p->sum);
    if (note && rank->index == 0 && t->sink && t->sink->warning)
        t->sink->warning(t->sink->state, note);
    if (!p->in_line && lab_stream_open(t->device, LAB_STREAM_COPY, &p->stream, err))
        return -1;
    cut_buckets(t);
    describe_gradient(t);
    if (p->fused)
        lab_prepare(t->device, &p->gradient, 1);
    if (open_events(t, err) || capture(t, err))
        return -1;
    return p->in_line ? settle(t, rank, err) : 0;
}

void mlp_parallel_close(struct mlp_parallel *p) {
    struct lab_err ignored = LAB_ERR_INIT;
    if (!p)
        return;
    if (p->stream)
        lab_stream_sync(p->stream, &ignored);
    lab_sum_close(p->sum);
    lab_stream_close(p->stream);
    for (int i = 0; p->graphs && i <= p->slots; i++)
        lab_graph_close(p->graphs[i]);
    lab_mem_free(p->graphs);
    for (int i = 0; i < p->bucket_count; i++)
        lab_event_close(p->buckets[i].ready);
    for (int slot = 0; p->marks && slot < p->slots; slot++)
        for (int i = 0; i < MARKS; i++)
            lab_event_close(p->marks[slot][i]);
    lab_mem_free(p->marks);
    lab_mem_free(p);
}

struct lab_stream *mlp_parallel_stream(const struct mlp_parallel *p) {
    return p->stream;
}

/* --- marks --- */

/* Not a run's first step, before which ranks wait for each other, where there are others. */
static bool is_marked(const struct mlp_training *t, int iteration) {
    int place = t->count > MARK_EVERY / 2 ? MARK_EVERY / 2 : t->count - 1;
    return iteration % MARK_EVERY == place;
}

static int slot_of(const struct mlp_parallel *p, int iteration) {
    return iteration / MARK_EVERY % p->slots;
}

/* Adds what a step's parts took. */
static int collect(struct mlp_parallel *p, int iteration, struct lab_err *err) {
    struct lab_event **marks = p->marks[slot_of(p, iteration)];
    int64_t at[MARKS] = {0};
    for (int i = 0; i < BUCKETS_FROM + 2 * p->bucket_count; i++)
        if (!(p->fused && i == FORWARD) && lab_event_time(marks[i], &at[i], err))
            return -1;
    int64_t communication_ns = 0, end_ns = at[BUCKETS_FROM + 2 * p->bucket_count - 1];
    for (int i = 0; i < p->bucket_count; i++)
        communication_ns += at[BUCKETS_FROM + 2 * i + 1] - at[BUCKETS_FROM + 2 * i];
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

int mlp_parallel_step(struct mlp_training *t, int iteration, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel;
    bool marked = is_marked(t, iteration);
    int slot = marked ? slot_of(p, iteration) : p->slots;
    struct lab_event **marks = marked ? p->marks[slot] : NULL;
    if (iteration == 0) {
        memset(p->part_ns, 0, sizeof p->part_ns);
        p->marked = 0;
    }
    if (marked && iteration >= p->slots * MARK_EVERY &&
        collect(p, iteration - p->slots * MARK_EVERY, err))
        return -1;
    if (p->graphs ? lab_graph_launch(p->graphs[slot], t->stream, err)
                  : enqueue_gradients(t, marks, err))
        return -1;
    return enqueue_rest(t, marks, err);
}

int mlp_parallel_tell(struct mlp_training *t, int64_t time_ns, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel;
    int kept = p->slots * MARK_EVERY, first = t->count > kept ? t->count - kept : 0;
    for (int i = first; i < t->count; i++)
        if (is_marked(t, i) && collect(p, i, err))
            return -1;
    for (int i = 0; i < PARTS && p->marked > 0; i++)
        if (p->fused ? i != PART_FORWARD && i != PART_BACKWARD : i != PART_GRADIENT)
            mlp_training_tell(t, part_names[i], "ms", 1e-6 * p->part_ns[i] / p->marked, time_ns);
    return 0;
}
