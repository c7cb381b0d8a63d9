/*
 * parallel.c: the parts of a step on several devices (workload/parallel.h). Each rank does its rows
 * of the batch. With `overlap` the backward pass is cut into buckets of layers, the last layers
 * first: late layers travel while early ones are computed.
 *
 * Where a sum is a kernel (group.h) it stands in line with all else, and there is one bucket: its
 * blocks and those of the backward pass each wait for their like on other multiprocessors, and
 * would wait for ever where both are there in part.
 *
 * compile_model=true makes forward and backward one operation where there is a single bucket.
 */
#include "workload/mlp/mlp.h"

struct mlp_parallel {
    struct lab_parallel *common;
    struct lab_launch
        backward[MLP_LAYERS]; /* of each bucket, in the order in which they are done */
    struct lab_bucket buckets[MLP_LAYERS];
    int bucket_count;
    struct lab_launch gradient; /* forward and backward as one */
};

/* --- life --- */

static void add_bucket(struct mlp_training *t, int layer_begin, int layer_end) {
    struct mlp_parallel *p = t->parallel;
    const struct lab_mlp *mlp = &t->shape.mlp;
    struct lab_launch *backward = &p->backward[p->bucket_count];
    struct lab_bucket *bucket = &p->buckets[p->bucket_count++];
    bool last = layer_end == lab_mlp_layers(mlp);
    *backward = t->launches[1];
    backward->mlp.layer_begin = layer_begin;
    backward->mlp.layer_end = layer_end;
    bucket->begin = lab_mlp_weight_at(mlp, layer_begin);
    /* the losses stand behind the last layer's gradients and travel with them */
    bucket->count =
        (last ? lab_mlp_gradient_count(mlp) : lab_mlp_weight_at(mlp, layer_end)) - bucket->begin;
}

/* From the last layer on, until a bucket is large enough; what is left at the front is one, too. */
static void cut_buckets(struct mlp_training *t) {
    const struct lab_mlp *mlp = &t->shape.mlp;
    int end = lab_mlp_layers(mlp);
    bool overlaps = t->config->overlap && !lab_parallel_in_line(t->parallel->common);
    for (int layer = end - 1; layer > 0 && overlaps; layer--) {
        int64_t values = lab_mlp_weight_at(mlp, end) - lab_mlp_weight_at(mlp, layer);
        if (values * (int64_t)sizeof(float) < t->config->bucket)
            continue;
        add_bucket(t, layer, end);
        end = layer;
    }
    add_bucket(t, 0, end);
}

static void describe_gradient(struct mlp_training *t) {
    struct mlp_parallel *p = t->parallel;
    p->gradient = t->step;
    p->gradient.op = LAB_OP_MLP_GRADIENT;
    p->gradient.mlp = t->shape.mlp;
    p->gradient.in[4] = (struct lab_tensor){0};
    p->gradient.out = t->launches[1].out;
}

static int compute(void *state, int part, struct lab_err *err) {
    const struct mlp_training *t = state;
    const struct mlp_parallel *p = t->parallel;
    return lab_launch(t->stream,
                      part == LAB_PARALLEL_WHOLE ? &p->gradient
                      : part == 0                ? &t->launches[0]
                                                 : &p->backward[part - 1],
                      err);
}

static int update(void *state, struct lab_err *err) {
    const struct mlp_training *t = state;
    return lab_launch(t->stream, &t->launches[2], err);
}

static int reset(void *state, struct lab_err *err) {
    struct mlp_training *t = state;
    return mlp_training_reset(t, (uint64_t)t->config->data_seed, err);
}

int mlp_parallel_open(struct mlp_training *t, const struct lab_rank *rank, struct lab_err *err) {
    struct mlp_parallel *p = t->parallel = lab_mem_alloc(1, sizeof *p);
    const struct lab_parallel_setup setup = {.rank = rank,
                                             .stream = t->stream,
                                             .allreduce = t->config->allreduce,
                                             .gradient = t->gradient.data,
                                             .count = lab_mlp_gradient_count(&t->shape.mlp),
                                             .compile = t->config->compile_model,
                                             .slots = t->spans.slots,
                                             .compute = compute,
                                             .update = update,
                                             .state = t};
    lab_prepare(t->device, t->launches, 3);
    if (lab_parallel_open(&setup, &p->common, err))
        return -1;
    cut_buckets(t);
    describe_gradient(t);
    bool whole = t->config->compile_model && p->bucket_count == 1;
    if (whole)
        lab_prepare(t->device, &p->gradient, 1);
    return lab_parallel_start(p->common, p->buckets, p->bucket_count, whole, reset, err);
}

void mlp_parallel_close(struct mlp_parallel *p) {
    if (!p)
        return;
    lab_parallel_close(p->common);
    lab_mem_free(p);
}

struct lab_parallel *mlp_parallel_common(const struct mlp_parallel *p) {
    return p ? p->common : NULL;
}
