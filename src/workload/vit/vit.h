/*
 * vit.h: what the files of the vit workload share. Not seen outside this workload and its tests.
 *
 *   ../vit.c     the descriptor: keys, rules between them, label, cost
 *   pipeline.c   host pool → h2d → forward → d2h on three streams and two buffers
 *   model.c      the forward pass as launches; weights and where they lie
 *   tuned.c      the products that were tuned, and how each is done then
 *   reference.c  the same forward pass in double precision, by itself
 *   verify.c     the one against the other
 */
#pragma once

#include "workload/workload.h"

struct vit_config {
    int64_t patch_size, depth, heads, dim, mlp_dim;
    int64_t batch_size, memory_size_mb, sync_frequency, copy_cores;
    struct lab_option_ints tensor_shape;
    const char *dtype, *d2h, *fill, *config;
    bool compile_model, overlap, forward;
};

/* --- shape: every size that follows from the keys --- */

#define VIT_HEAD_WIDTH 64
#define VIT_EPSILON    1e-5f /* of every layer norm, as in PyTorch */

struct vit_shape {
    enum lab_dtype dtype;
    int64_t batch, channels, height, width; /* height and width are multiples of the patch */
    int64_t patch, patches, patch_dim;      /* patch_dim = channels · patch² */
    int64_t tokens;                         /* patches and the class token */
    int64_t depth, heads, dim, mlp;
    int64_t inner; /* heads · VIT_HEAD_WIDTH */
    bool project;  /* false: one head as wide as the model needs no output projection */
    int64_t image_elements, input_elements, output_elements; /* of an image; of a batch, twice */
    size_t input_bytes, output_bytes;                        /* of a batch */
};

struct vit_shape vit_shape_of(const struct vit_config *config);

/* --- parameters: their order, their values --- */

enum vit_parameter_kind { VIT_UNIFORM, VIT_GAMMA, VIT_BETA };

struct vit_parameter {
    enum vit_parameter_kind kind;
    int rank;              /* 1: a vector, kept as one row */
    int64_t rows, columns; /* either is 0 for one that the model lacks */
    int64_t fan_in;        /* VIT_UNIFORM: values lie within ±1/√fan_in */
};

/* Numbers of the parameters outside the blocks; model.c tells the rest of the order. */
enum {
    VIT_PATCH_NORM, /* gamma, then beta: [patch_dim] each */
    VIT_PATCH = 2,  /* weight [dim, patch_dim], bias [dim] */
    VIT_EMBED_NORM = 4,
    VIT_CLASS = 6,    /* [dim] */
    VIT_POSITION = 7, /* [tokens, dim] */
    VIT_BLOCKS = 8,
};
/* Numbers within a block. */
enum {
    VIT_ATTENTION_NORM,
    VIT_QKV = 2, /* weight [3·inner, dim], no bias */
    VIT_OUT = 3, /* weight [dim, inner], bias [dim]; both empty without projection */
    VIT_MLP_NORM = 5,
    VIT_MLP_UP = 7,   /* weight [mlp, dim], bias [mlp] */
    VIT_MLP_DOWN = 9, /* weight [dim, mlp], bias [dim] */
    VIT_BLOCK_PARAMETERS = 11,
};

int vit_parameter_number(const struct vit_shape *shape); /* how many there are */
int vit_block_parameter(int64_t block, int which);       /* number of a block's parameter */
int vit_final_norm(const struct vit_shape *shape);       /* number of the last gamma */
struct vit_parameter vit_parameter_at(const struct vit_shape *shape, int index);
static inline int64_t vit_parameter_count(const struct vit_parameter *parameter) {
    return parameter->rows * parameter->columns;
}
int64_t vit_model_parameters(const struct vit_shape *shape); /* values in all of them */

/* Values [first, first + count) of parameter `index`, drawn by counter. */
void vit_parameter_draw(const struct vit_shape *shape, uint64_t seed, int index, int64_t first,
                        int64_t count, float *out);

/* --- the model on a device --- */

enum { VIT_PRODUCTS = 5 }; /* kinds of them: embedding; qkv, out, up and down of a block */

struct vit_tuned { /* how the products of this shape are done */
    enum lab_op_id op;
    int64_t rows, columns, terms;
    struct lab_tuning tuning;
};

struct vit_model {
    struct vit_shape shape;
    bool fused; /* compile_model: fused ops instead of elementary ones */
    struct lab_buffer weights, activations;
    size_t *weight_offsets; /* bytes; one for each parameter */
    size_t weights_bytes, activations_bytes;
    size_t stream_at, normed_at, attended_at, wide_at; /* bytes into activations */
    struct vit_tuned tuned[VIT_PRODUCTS];
    int tuned_count;
};

/* Sizes and offsets only: enough for the cost and for vit_model_forward without data. */
void vit_model_plan(const struct vit_shape *shape, bool fused, struct vit_model *ret_model);

/* Plans, takes memory and draws the weights; `config` is the key's text. On failure nothing is
 * left. */
int vit_model_open(const struct vit_shape *shape, bool fused, const char *config,
                   struct lab_stream *stream, uint64_t seed, struct vit_model *ret_model,
                   struct lab_err *err);
void vit_model_close(struct vit_model *model); /* accepts a zeroed or closed one */

typedef int vit_emit(void *state, const struct lab_launch *launch, struct lab_err *err);

/* Hands every launch of images [batch, …] → out [batch · tokens, dim] to `emit`, in order. */
int vit_model_forward(const struct vit_model *model, void *images, void *out, vit_emit *emit,
                      void *state, struct lab_err *err);

/* Flops and bytes of one forward pass as it is launched. */
struct lab_cost vit_model_cost(const struct vit_model *model, int *ret_launches);

/* --- tuned products (tuned.c) --- */

/* Each product of the model, once, without data. */
void vit_products(const struct vit_shape *shape, bool fused, lab_launch_visit *visit, void *state);

/* Takes the key's text into the planned model; "tuned" and "default" leave it as it is. */
int vit_tune(struct vit_model *model, const struct lab_device *device, const char *config,
             struct lab_err *err);

/* How this launch is done: none unless its shape was tuned. */
struct lab_tuning vit_tuning_of(const struct vit_model *model, const struct lab_launch *launch);

/* --- the reference --- */

/* Writes all values of parameter `index`. */
typedef void vit_weight_source(const void *state, int index, float *out);

/* out [count, tokens, dim] of images [count, channels, height, width]; batch plays no part. */
void vit_reference(const struct vit_shape *shape, vit_weight_source *weights, const void *state,
                   const float *images, int64_t count, double *out);

/* --- the pipeline --- */

enum { VIT_BUFFERS = 2 };
enum { VIT_POOL_BATCHES_MIN = 2 };

struct vit_pipeline {
    const struct vit_config *config;
    struct vit_shape shape;
    struct lab_device *device;
    int numa_node;
    uint64_t seed;
    bool forward;      /* false: nothing is computed; with depth 0 the input comes back */
    bool back_input;   /* the input comes back, whatever the model does */
    size_t back_bytes; /* what comes back of a batch */
    struct lab_stream *streams[LAB_STAGE_COUNT];
    struct lab_spans spans;
    struct lab_buffer pool; /* host: pool_batches batches, cycled */
    int64_t pool_batches, pool_next;
    int count; /* batches of this run */
    struct lab_buffer device_in[VIT_BUFFERS], device_out[VIT_BUFFERS], host_out[VIT_BUFFERS];
    struct vit_model model;
    struct lab_graph *graphs[VIT_BUFFERS]; /* the forward pass of each buffer; NULL = launch it */
};

int vit_open(const void *config, const struct lab_rank *rank, void **ret_state,
             struct lab_err *err);
void vit_close(void *state); /* accepts NULL */
int vit_run(void *state, int count, struct lab_iteration *records, struct lab_err *err);

int64_t vit_pool_batches(const struct vit_config *config, const struct vit_shape *shape);

/* Writes batches [first, first + count) of the pool as the key `fill` says. */
void vit_pool_fill(struct vit_pipeline *pipeline, int64_t first, int64_t count);

int vit_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);
