/*
 * model.c: the vision transformer as launches, and its weights.
 *
 * The architecture is vit-pytorch's ViT without its head: patches → layer norm → linear → layer
 * norm, class token in front, position embedding added, then `depth` blocks
 *
 *     x += out(attention(qkv(norm(x))))        x += down(gelu(up(norm(x))))
 *
 * and a last layer norm. Rows are tokens: image by image, the class token first.
 *
 * Weights. Parameter number p is a stream of its own, s_p = lab_random_bits(seed, p), and its
 * element i (row-major) is u = lab_random_symmetric(s_p, i), scaled in single precision:
 *
 *     weights, biases     u · (float)(1/√fan_in)      as PyTorch draws a linear layer's
 *     class, position     u                           (fan_in 1)
 *     gamma               1 + u/8                     so that a forgotten or swapped
 *     beta                u/8                         one shows in the result
 *
 * The numbers, in order; a linear layer's weight is [outputs, inputs]:
 *
 *     0 patch norm gamma   1 beta   2 patch weight   3 patch bias   4 embed norm gamma   5 beta
 *     6 class   7 position
 *     8 + 11·block +  0 attention norm gamma   1 beta   2 qkv weight   3 out weight   4 out bias
 *                     5 mlp norm gamma   6 beta   7 up weight   8 up bias   9 down weight
 *                     10 down bias
 *     8 + 11·depth    final norm gamma   + 1 beta
 *
 * Without output projection (one head, dim 64) numbers 3 and 4 exist and are empty.
 */
#include "workload/vit/vit.h"

#include "base/random.h"

#include <math.h>

enum { ALIGNMENT = 256 }; /* bytes; what the widest loads of any device want */

struct vit_shape vit_shape_of(const struct vit_config *config) {
    struct vit_shape s = {.dtype = LAB_FP32,
                          .batch = config->batch_size,
                          .patch = config->patch_size,
                          .depth = config->depth,
                          .heads = config->heads,
                          .dim = config->dim,
                          .mlp = config->mlp_dim ? config->mlp_dim : 4 * config->dim,
                          .inner = config->heads * VIT_HEAD_WIDTH};
    lab_dtype_parse(config->dtype, &s.dtype);
    const int64_t *tensor = config->tensor_shape.items;
    int64_t down = (tensor[1] + s.patch - 1) / s.patch,
            across = (tensor[2] + s.patch - 1) / s.patch;
    s.channels = tensor[0];
    s.height = down * s.patch;
    s.width = across * s.patch;
    s.patches = down * across;
    s.patch_dim = s.channels * s.patch * s.patch;
    s.tokens = s.patches + 1;
    s.project = !(s.heads == 1 && s.dim == VIT_HEAD_WIDTH);
    s.image_elements = s.channels * s.height * s.width;
    s.input_elements = s.batch * s.image_elements;
    s.output_elements = s.batch * s.tokens * s.dim;
    s.input_bytes = (size_t)s.input_elements * lab_dtype_bytes(s.dtype);
    s.output_bytes = (size_t)s.output_elements * lab_dtype_bytes(s.dtype);
    return s;
}

/* --- parameters --- */

int vit_parameter_number(const struct vit_shape *shape) {
    return vit_final_norm(shape) + 2;
}

int vit_block_parameter(int64_t block, int which) {
    return VIT_BLOCKS + (int)block * VIT_BLOCK_PARAMETERS + which;
}

int vit_final_norm(const struct vit_shape *shape) {
    return vit_block_parameter(shape->depth, 0);
}

static struct vit_parameter norm(int64_t width, bool beta) {
    return (struct vit_parameter){beta ? VIT_BETA : VIT_GAMMA, 1, 1, width, 1};
}

static struct vit_parameter uniform(int64_t rows, int64_t columns, int64_t fan_in) {
    return (struct vit_parameter){VIT_UNIFORM, 2, rows, columns, fan_in};
}

static struct vit_parameter vector(int64_t width, int64_t fan_in) {
    return (struct vit_parameter){VIT_UNIFORM, 1, 1, width, fan_in};
}

static struct vit_parameter block_parameter_at(const struct vit_shape *s, int which) {
    switch (which) {
    case VIT_QKV:
        return uniform(3 * s->inner, s->dim, s->dim);
    case VIT_OUT:
        return uniform(s->project ? s->dim : 0, s->inner, s->inner);
    case VIT_OUT + 1:
        return vector(s->project ? s->dim : 0, s->inner);
    case VIT_MLP_UP:
        return uniform(s->mlp, s->dim, s->dim);
    case VIT_MLP_UP + 1:
        return vector(s->mlp, s->dim);
    case VIT_MLP_DOWN:
        return uniform(s->dim, s->mlp, s->mlp);
    case VIT_MLP_DOWN + 1:
        return vector(s->dim, s->mlp);
    default:
        return norm(s->dim, which == VIT_ATTENTION_NORM + 1 || which == VIT_MLP_NORM + 1);
    }
}

struct vit_parameter vit_parameter_at(const struct vit_shape *s, int index) {
    switch (index) {
    case VIT_PATCH_NORM:
    case VIT_PATCH_NORM + 1:
        return norm(s->patch_dim, index > VIT_PATCH_NORM);
    case VIT_PATCH:
        return uniform(s->dim, s->patch_dim, s->patch_dim);
    case VIT_PATCH + 1:
        return vector(s->dim, s->patch_dim);
    case VIT_EMBED_NORM:
    case VIT_EMBED_NORM + 1:
        return norm(s->dim, index > VIT_EMBED_NORM);
    case VIT_CLASS:
        return vector(s->dim, 1);
    case VIT_POSITION:
        return uniform(s->tokens, s->dim, 1);
    default:
        break;
    }
    if (index >= vit_final_norm(s))
        return norm(s->dim, index > vit_final_norm(s));
    return block_parameter_at(s, (index - VIT_BLOCKS) % VIT_BLOCK_PARAMETERS);
}

int64_t vit_model_parameters(const struct vit_shape *shape) {
    int64_t sum = 0;
    for (int i = 0; i < vit_parameter_number(shape); i++) {
        struct vit_parameter parameter = vit_parameter_at(shape, i);
        sum += vit_parameter_count(&parameter);
    }
    return sum;
}

void vit_parameter_draw(const struct vit_shape *shape, uint64_t seed, int index, int64_t first,
                        int64_t count, float *out) {
    struct vit_parameter parameter = vit_parameter_at(shape, index);
    uint64_t stream = lab_random_bits(seed, (uint64_t)index);
    float bound = (float)(1 / sqrt((double)parameter.fan_in));
    for (int64_t i = 0; i < count; i++) {
        float u = lab_random_symmetric(stream, (uint64_t)(first + i));
        switch (parameter.kind) {
        case VIT_UNIFORM:
            out[i] = u * bound;
            break;
        case VIT_GAMMA:
            out[i] = 1 + u / 8;
            break;
        case VIT_BETA:
            out[i] = u / 8;
            break;
        }
    }
}

/* --- memory --- */

/* Reserves room for `elements` and returns where it begins. */
static size_t reserve(size_t *total, int64_t elements, enum lab_dtype dtype) {
    size_t at = *total;
    size_t bytes = (size_t)elements * lab_dtype_bytes(dtype);
    *total = at + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

void vit_model_plan(const struct vit_shape *shape, bool fused, struct vit_model *ret_model) {
    struct vit_model model = {.shape = *shape, .fused = fused};
    int parameters = vit_parameter_number(shape);
    model.weight_offsets = lab_mem_alloc((size_t)parameters, sizeof *model.weight_offsets);
    for (int i = 0; i < parameters; i++) {
        struct vit_parameter parameter = vit_parameter_at(shape, i);
        model.weight_offsets[i] =
            reserve(&model.weights_bytes, vit_parameter_count(&parameter), shape->dtype);
    }
    int64_t rows = shape->batch * shape->tokens;
    /* patches, qkv and the hidden layer never live at the same time: they share the widest's
     * room */
    int64_t wide = larger(shape->batch * shape->patches * shape->patch_dim,
                          rows * larger(3 * shape->inner, shape->mlp));
    size_t *total = &model.activations_bytes;
    model.stream_at = reserve(total, rows * shape->dim, shape->dtype);
    model.normed_at = reserve(total, rows * shape->dim, shape->dtype);
    model.attended_at = reserve(total, rows * shape->inner, shape->dtype);
    model.wide_at = reserve(total, wide, shape->dtype);
    *ret_model = model;
}

struct draw_state {
    const struct vit_shape *shape;
    uint64_t seed;
    int index;
};

static void draw_source(const void *state, int64_t first, int64_t count, float *out) {
    const struct draw_state *draw = state;
    vit_parameter_draw(draw->shape, draw->seed, draw->index, first, count, out);
}

static int emit_prepare(void *state, const struct lab_launch *launch, struct lab_err *err) {
    (void)err;
    lab_prepare(state, launch, 1);
    return 0;
}

int vit_model_open(const struct vit_shape *shape, bool fused, const char *config,
                   struct lab_stream *stream, uint64_t seed, struct vit_model *ret_model,
                   struct lab_err *err) {
    struct vit_model model;
    vit_model_plan(shape, fused, &model);
    if (vit_tune(&model, stream->device, config, err))
        goto fail;
    /* kernels are compiled while the weights are drawn and copied */
    vit_model_forward(&model, NULL, NULL, emit_prepare, stream->device, NULL);
    if (lab_buffer_open(stream->device, LAB_MEMORY_DEVICE, -1, model.weights_bytes, &model.weights,
                        err) ||
        lab_buffer_open(stream->device, LAB_MEMORY_DEVICE, -1, model.activations_bytes,
                        &model.activations, err))
        goto fail;
    for (int i = 0; i < vit_parameter_number(shape); i++) {
        struct vit_parameter parameter = vit_parameter_at(shape, i);
        struct draw_state draw = {shape, seed, i};
        if (lab_data_upload(stream, (char *)model.weights.data + model.weight_offsets[i],
                            shape->dtype, vit_parameter_count(&parameter), draw_source, &draw, err))
            goto fail;
    }
    *ret_model = model;
    return 0;
fail:
    vit_model_close(&model);
    return -1;
}

void vit_model_close(struct vit_model *model) {
    lab_buffer_close(&model->weights);
    lab_buffer_close(&model->activations);
    lab_mem_free(model->weight_offsets);
    *model = (struct vit_model){0};
}

/* --- the forward pass --- */

struct forward {
    const struct vit_model *model;
    const struct vit_shape *shape;
    int64_t rows;                     /* batch · tokens */
    struct lab_tensor stream, normed; /* [rows, dim] */
    vit_emit *emit;
    void *state;
    struct lab_err *err;
};

static void *at(const struct lab_buffer *buffer, size_t offset) {
    return buffer->data ? (char *)buffer->data + offset : NULL; /* a plan has no data */
}

static struct lab_tensor matrix(const struct forward *f, void *data, int64_t rows,
                                int64_t columns) {
    return lab_tensor(data, f->shape->dtype, 2, (int64_t[]){rows, columns});
}

static struct lab_tensor weight(const struct forward *f, int index) {
    struct vit_parameter parameter = vit_parameter_at(f->shape, index);
    void *data = at(&f->model->weights, f->model->weight_offsets[index]);
    if (parameter.rank == 1)
        return lab_tensor(data, f->shape->dtype, 1, &parameter.columns);
    return matrix(f, data, parameter.rows, parameter.columns);
}

static struct lab_tensor wide(const struct forward *f, int64_t rows, int64_t columns) {
    return matrix(f, at(&f->model->activations, f->model->wide_at), rows, columns);
}

static int emit(const struct forward *f, struct lab_launch launch) {
    launch.tuning = vit_tuning_of(f->model, &launch);
    return f->emit(f->state, &launch, f->err);
}

/* out = norm(x) with gamma at `index` and beta behind it */
static int layer_norm(const struct forward *f, struct lab_tensor x, int index,
                      struct lab_tensor out) {
    return emit(f, (struct lab_launch){.op = LAB_OP_LAYER_NORM,
                                       .in = {x, weight(f, index), weight(f, index + 1)},
                                       .out = out,
                                       .epsilon = VIT_EPSILON});
}

static int product(const struct forward *f, struct lab_tensor x, int index, struct lab_tensor out) {
    return emit(
        f, (struct lab_launch){
               .op = LAB_OP_GEMM, .in = {x, weight(f, index)}, .out = out, .transpose_b = true});
}

/*
 * Linear layers. What a product's own routine does on the way to memory (bias, gelu, residual) is
 * part of it with and without compile_model: no library would launch it apart.
 */
static struct lab_launch linear_launch(const struct forward *f, enum lab_op_id op,
                                       struct lab_tensor x, int index, struct lab_tensor out) {
    return (struct lab_launch){.op = op,
                               .in = {x, weight(f, index), weight(f, index + 1)},
                               .out = out,
                               .transpose_b = true};
}

/* out = x·weightᵀ + bias, weight at `index` and bias behind it */
static int linear(const struct forward *f, struct lab_tensor x, int index, struct lab_tensor out) {
    return emit(f, linear_launch(f, LAB_OP_GEMM_BIAS, x, index, out));
}

static int linear_gelu(const struct forward *f, struct lab_tensor x, int index,
                       struct lab_tensor out) {
    return emit(f, linear_launch(f, LAB_OP_GEMM_BIAS_GELU, x, index, out));
}

/* stream += x·weightᵀ + bias */
static int linear_add(const struct forward *f, struct lab_tensor x, int index) {
    struct lab_launch launch = linear_launch(f, LAB_OP_GEMM_BIAS_ADD, x, index, f->stream);
    launch.in[3] = f->stream;
    return emit(f, launch);
}

/* images → stream */
static int embed(const struct forward *f, struct lab_tensor images) {
    const struct vit_shape *s = f->shape;
    struct lab_tensor patches = wide(f, s->batch * s->patches, s->patch_dim);
    struct lab_tensor embedded = matrix(f, f->normed.data, s->batch * s->patches, s->dim);
    struct lab_tensor class = weight(f, VIT_CLASS), position = weight(f, VIT_POSITION);
    if (f->model->fused)
        return emit(f, (struct lab_launch){.op = LAB_OP_PATCHIFY_LAYER_NORM,
                                           .in = {images, weight(f, VIT_PATCH_NORM),
                                                  weight(f, VIT_PATCH_NORM + 1)},
                                           .out = patches,
                                           .patch = s->patch,
                                           .epsilon = VIT_EPSILON}) ||
                       linear(f, patches, VIT_PATCH, embedded) ||
                       emit(f, (struct lab_launch){.op = LAB_OP_LAYER_NORM_EMBED,
                                                   .in = {embedded, weight(f, VIT_EMBED_NORM),
                                                          weight(f, VIT_EMBED_NORM + 1), class,
                                                          position},
                                                   .out = f->stream,
                                                   .tokens = s->tokens,
                                                   .epsilon = VIT_EPSILON})
                   ? -1
                   : 0;
    return emit(f,
                (struct lab_launch){
                    .op = LAB_OP_PATCHIFY, .in = {images}, .out = patches, .patch = s->patch}) ||
                   layer_norm(f, patches, VIT_PATCH_NORM, patches) ||
                   linear(f, patches, VIT_PATCH, embedded) ||
                   layer_norm(f, embedded, VIT_EMBED_NORM, embedded) ||
                   emit(f, (struct lab_launch){.op = LAB_OP_EMBED,
                                               .in = {embedded, class, position},
                                               .out = f->stream,
                                               .tokens = s->tokens})
               ? -1
               : 0;
}

static int attention(const struct forward *f, int64_t block) {
    const struct vit_shape *s = f->shape;
    struct lab_tensor qkv = wide(f, f->rows, 3 * s->inner);
    struct lab_tensor attended =
        matrix(f, at(&f->model->activations, f->model->attended_at), f->rows, s->inner);
    struct lab_launch attend = {.op = LAB_OP_ATTENTION,
                                .in = {qkv},
                                .out = attended,
                                .tokens = s->tokens,
                                .heads = s->heads,
                                .scale = 1 / sqrtf(VIT_HEAD_WIDTH)};
    if (layer_norm(f, f->stream, vit_block_parameter(block, VIT_ATTENTION_NORM), f->normed) ||
        product(f, f->normed, vit_block_parameter(block, VIT_QKV), qkv) || emit(f, attend))
        return -1;
    if (s->project)
        return linear_add(f, attended, vit_block_parameter(block, VIT_OUT));
    return emit(
        f, (struct lab_launch){.op = LAB_OP_ADD, .in = {f->stream, attended}, .out = f->stream});
}

static int mlp(const struct forward *f, int64_t block) {
    struct lab_tensor hidden = wide(f, f->rows, f->shape->mlp);
    if (layer_norm(f, f->stream, vit_block_parameter(block, VIT_MLP_NORM), f->normed) ||
        linear_gelu(f, f->normed, vit_block_parameter(block, VIT_MLP_UP), hidden))
        return -1;
    return linear_add(f, hidden, vit_block_parameter(block, VIT_MLP_DOWN));
}

int vit_model_forward(const struct vit_model *model, void *images, void *out, vit_emit *emit_launch,
                      void *state, struct lab_err *err) {
    const struct vit_shape *s = &model->shape;
    struct forward f = {.model = model,
                        .shape = s,
                        .rows = s->batch * s->tokens,
                        .emit = emit_launch,
                        .state = state,
                        .err = err};
    f.stream = matrix(&f, at(&model->activations, model->stream_at), f.rows, s->dim);
    f.normed = matrix(&f, at(&model->activations, model->normed_at), f.rows, s->dim);
    int64_t image_shape[] = {s->batch, s->channels, s->height, s->width};
    if (embed(&f, lab_tensor(images, s->dtype, 4, image_shape)))
        return -1;
    for (int64_t block = 0; block < s->depth; block++)
        if (attention(&f, block) || mlp(&f, block))
            return -1;
    return layer_norm(&f, f.stream, vit_final_norm(s), matrix(&f, out, f.rows, s->dim));
}

struct costs {
    struct lab_cost sum;
    int launches;
};

static int emit_cost(void *state, const struct lab_launch *launch, struct lab_err *err) {
    (void)err;
    struct costs *costs = state;
    struct lab_cost one = lab_op_cost(launch);
    costs->sum.flops += one.flops;
    costs->sum.bytes_read += one.bytes_read;
    costs->sum.bytes_written += one.bytes_written;
    costs->launches++;
    return 0;
}

struct lab_cost vit_model_cost(const struct vit_model *model, int *ret_launches) {
    struct costs costs = {0};
    vit_model_forward(model, NULL, NULL, emit_cost, &costs, NULL);
    *ret_launches = costs.launches;
    return costs.sum;
}
