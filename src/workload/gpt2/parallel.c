/*
 * parallel.c: the parts of a step on several devices (workload/parallel.h). Each rank does its
 * sequences of the batch. Gradients are summed in the model's dtype, losses in fp32.
 *
 * Backward completes the blocks' weights from the last block on: as many of them as make a bucket
 * travel while earlier blocks are computed. What is complete only in the end is two buckets: the
 * table, which embedding and head share, with the first blocks; and all biases and norms.
 */
#include "workload/gpt2/gpt2.h"

struct gpt2_parallel {
    struct lab_parallel *common;
    const struct gpt2_list *list; /* of the last micro-step */
    struct lab_bucket *buckets;   /* [depth + 2] */
    int *ends;                    /* launches of the list by which it is complete; [depth + 2] */
    int bucket_count;
};

/* --- buckets --- */

/* Behind the last launch that writes some of it. */
static int completed_by(const struct gpt2_training *t, const struct lab_bucket *bucket) {
    const struct gpt2_list *list = t->parallel->list;
    int64_t element = (int64_t)lab_dtype_bytes(t->model.shape.dtype);
    const char *begin = t->model.values + (t->model.memory.gradient + bucket->begin) * element;
    const char *end = begin + bucket->count * element;
    for (int i = list->count; i > 0; i--) {
        const struct lab_tensor *out = &list->items[i - 1].out;
        const char *at = out->data;
        if (at < end && at + lab_tensor_count(out) * (int64_t)lab_dtype_bytes(out->dtype) > begin)
            return i;
    }
    return list->count;
}

static void add_bucket(struct gpt2_training *t, int64_t begin, int64_t end) {
    struct gpt2_parallel *p = t->parallel;
    struct lab_bucket *bucket = &p->buckets[p->bucket_count];
    *bucket = (struct lab_bucket){begin, end - begin};
    p->ends[p->bucket_count++] = completed_by(t, bucket);
}

static void cut_buckets(struct gpt2_training *t) {
    const struct gpt2_shape *s = &t->model.shape;
    int64_t block = GPT2_LINEAR * s->width * s->width, end = s->depth;
    bool overlaps = t->config->overlap && !lab_parallel_in_line(t->parallel->common);
    for (int64_t at = s->depth - 1; at > 0 && overlaps; at--) {
        if ((end - at) * block * (int64_t)lab_dtype_bytes(s->dtype) < t->config->bucket)
            continue;
        add_bucket(t, s->linear_at + at * block, s->linear_at + end * block);
        end = at;
    }
    if (overlaps)
        add_bucket(t, 0, s->linear_at + end * block);
    add_bucket(t, overlaps ? s->biases_at : 0, s->parameters);
    t->parallel->ends[t->parallel->bucket_count - 1] = t->parallel->list->count; /* and the loss */
}

/* --- parts --- */

static int compute(void *state, int part, struct lab_err *err) {
    const struct gpt2_training *t = state;
    const struct gpt2_parallel *p = t->parallel;
    if (part == 0)
        return gpt2_launch(t, p->list, 0, p->list->forward, err);
    int first = part == 1 ? p->list->forward : p->ends[part - 2];
    return gpt2_launch(t, p->list, first, p->ends[part - 1], err);
}

static int update(void *state, struct lab_err *err) {
    const struct gpt2_training *t = state;
    return gpt2_launch(t, &t->update, 0, t->update.count, err);
}

static int begin(void *state, struct lab_err *err) {
    return gpt2_begin(state, err);
}

/* --- life --- */

int gpt2_parallel_open(struct gpt2_training *t, struct lab_err *err) {
    const struct gpt2_shape *s = &t->model.shape;
    const struct gpt2_memory *m = &t->model.memory;
    struct gpt2_parallel *p = t->parallel = lab_mem_alloc(1, sizeof *p);
    const struct lab_parallel_setup setup = {
        .rank = &t->rank,
        .stream = t->stream,
        .allreduce = t->config->allreduce,
        .dtype = s->dtype,
        .gradient = t->model.values + m->gradient * (int64_t)lab_dtype_bytes(s->dtype),
        .count = s->parameters,
        .singles = t->model.singles + m->control + GPT2_LOSS,
        .single_count = 1,
        .sums_beside = t->config->overlap,
        .compile = t->config->compile_model,
        .slots = t->spans.slots,
        .compute = compute,
        .update = update,
        .state = t,
    };
    p->list = s->accumulation > 1 ? &t->next : &t->first;
    p->buckets = lab_mem_alloc((size_t)s->depth + 2, sizeof *p->buckets);
    p->ends = lab_mem_alloc((size_t)s->depth + 2, sizeof *p->ends);
    if (lab_parallel_open(&setup, &p->common, err))
        return -1;
    cut_buckets(t);
    /* loads the kernels of micro-steps before the last, as lab_parallel_start does the others */
    if (s->accumulation > 1 && lab_parallel_settles(p->common) &&
        gpt2_launch(t, &t->first, 0, t->first.count, err))
        return -1;
    return lab_parallel_start(p->common, p->buckets, p->bucket_count, false, begin, err);
}

void gpt2_parallel_close(struct gpt2_training *t) {
    struct gpt2_parallel *p = t->parallel;
    struct lab_err ignored = LAB_ERR_INIT;
    if (!p)
        return;
    lab_stream_sync(t->stream, &ignored);
    lab_parallel_close(p->common);
    lab_mem_free(p->buckets);
    lab_mem_free(p->ends);
    lab_mem_free(p);
    t->parallel = NULL;
}

struct lab_parallel *gpt2_parallel_common(const struct gpt2_training *t) {
    return t->parallel ? t->parallel->common : NULL;
}
