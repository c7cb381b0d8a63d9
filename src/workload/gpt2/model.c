/*
 * model.c: GPT-2 as launches (Radford and others, 2019): embedding, pre-norm blocks of causal
 * attention and an MLP with GELU (tanh), a head that is the embedding's table.
 *
 *     x0 = embed(tokens)          n0 = norm(x0)
 *     q, k, v = n·Wᵀ + b          o = attention(q, k, v)
 *     x' = x + o·Wᵀ + b           n' = norm(x')         one launch for sum and norm
 *     h = n'·Wᵀ + b, gelu(h)      x'' = x' + gelu(h)·Wᵀ + b,  n'' = norm(x'')
 *     logits = n·tableᵀ           a chunk of rows at a time, both ways: 50304 columns are much
 *
 * Backward goes the same way back. Kept are x, n, q, k, v, o and h: the element-wise GELU is
 * computed again where memory is short, no product and no attention is. `norms` and `hidden` hold
 * pairs side by side, [x, n] and [h, gelu(h)]; where GELU is computed again, pairs overlap: gelu(h)
 * of a block lies where the next block's h will be in forward, and was in backward.
 */
#include "workload/gpt2/gpt2.h"

#include <math.h>

#define ALIGNMENT  INT64_C(128)  /* elements: every tensor begins at a multiple of 256 bytes */
#define CHUNK_ROWS INT64_C(8192) /* 0.8 GB of logits in bf16 */

static int64_t round_up(int64_t value, int64_t step) {
    return (value + step - 1) / step * step;
}

/* --- shape --- */

bool gpt2_is_parallel(const struct gpt2_config *config, int count) {
    return count > 1 && !lab_str_equal(config->allreduce, "none");
}

struct gpt2_shape gpt2_shape_of_all(const struct gpt2_config *config, int count) {
    struct gpt2_config all = *config;
    if (gpt2_is_parallel(config, count) && lab_str_equal(config->scaling, "weak"))
        all.batch_size *= count;
    return gpt2_shape_of(&all);
}

struct gpt2_shape gpt2_shape_of_rank(const struct gpt2_config *config, int index, int count) {
    struct gpt2_config own = *config;
    struct gpt2_shape all = gpt2_shape_of_all(config, count);
    if (!gpt2_is_parallel(config, count))
        return all;
    struct lab_bucket share = lab_parallel_share(all.batch, index, count);
    own.batch_size = share.count;
    struct gpt2_shape shape = gpt2_shape_of(&own);
    shape.batch_rows = all.rows;
    shape.first_row = share.begin * all.seq;
    return shape;
}

struct gpt2_shape gpt2_shape_of(const struct gpt2_config *config) {
    struct gpt2_shape s = {
        .depth = config->depth,
        .width = config->width,
        .heads = config->heads,
        .seq = config->seq,
        .positions = config->positions,
        .batch = config->batch_size,
        .accumulation = config->accumulation,
        .vocab = config->vocab,
        .padded = round_up(config->vocab, ALIGNMENT),
        .rows = config->batch_size * config->seq,
        .batch_rows = config->batch_size * config->seq,
    };
    int64_t square = s.width * s.width;
    lab_dtype_parse(config->dtype, &s.dtype);
    s.chunk = s.rows < CHUNK_ROWS ? s.rows : CHUNK_ROWS;
    s.positions_at = s.padded * s.width;
    s.linear_at = s.positions_at + s.positions * s.width;
    s.biases_at = s.linear_at + s.depth * GPT2_LINEAR * square;
    s.norms_at = s.biases_at + s.depth * GPT2_BIASES * s.width;
    s.parameters = s.norms_at + ((2 * s.depth + 1) * GPT2_NORM - 1) * s.width;
    double kept = (double)s.rows * (double)s.depth * 16 * (double)s.width;
    bool much = kept * (double)lab_dtype_bytes(s.dtype) > 0x1p33;
    s.recompute =
        lab_str_equal(config->recompute, "auto") ? much : lab_str_equal(config->recompute, "gelu");
    return s;
}

int64_t gpt2_parameters(const struct gpt2_shape *shape) {
    return shape->parameters - (shape->padded - shape->vocab) * shape->width;
}

/* --- memory --- */

static int64_t take(int64_t *total, int64_t count) {
    int64_t at = *total;
    *total = at + round_up(count, ALIGNMENT);
    return at;
}

struct gpt2_memory gpt2_memory_of(const struct gpt2_shape *s) {
    int64_t each = s->rows * s->width, values = 0, singles = 0;
    int64_t pairs = s->recompute ? s->depth + 1 : 2 * s->depth;
    struct gpt2_memory m = {
        .parameters = take(&values, s->parameters),
        .gradient = take(&values, s->parameters),
        .norms = take(&values, (2 * s->depth + 1) * 2 * each),
        .qkv = take(&values, s->depth * 3 * each),
        .attended = take(&values, s->depth * each),
        .hidden = take(&values, pairs * 4 * each),
        .logits = take(&values, s->chunk * s->padded),
        .d_residual = take(&values, each),
        .d_norm = take(&values, each),
        .d_hidden = take(&values, 4 * each),
        .clipped = take(&values, 1),
        .state = take(&singles, 3 * s->parameters),
        .control = take(&singles, GPT2_TOLD),
        .tokens = take(&singles, s->rows),
        .targets = take(&singles, s->rows),
        .losses = take(&singles, s->rows),
        .loss_sums = take(&singles, s->accumulation > 1 ? s->rows : 0),
        .stats = take(&singles, (2 * s->depth + 1) * 2 * s->rows),
        .lse = take(&singles, s->depth * s->heads * s->rows),
        .norm_gradients = take(&singles, (2 * s->depth + 1) * GPT2_NORM * s->width),
    };
    m.values = values;
    m.singles = singles;
    return m;
}

int64_t gpt2_device_bytes(const struct gpt2_shape *shape) {
    struct gpt2_memory m = gpt2_memory_of(shape);
    return m.values * (int64_t)lab_dtype_bytes(shape->dtype) + m.singles * (int64_t)sizeof(float);
}

/* --- tensors --- */

static void *value_at(const struct gpt2_model *m, int64_t at) {
    return m->values ? m->values + at * (int64_t)lab_dtype_bytes(m->shape.dtype) : NULL;
}

static struct lab_tensor matrix(const struct gpt2_model *m, int64_t at, int64_t rows,
                                int64_t columns) {
    return lab_tensor_matrix(value_at(m, at), m->shape.dtype, rows, columns);
}

static struct lab_tensor vector(const struct gpt2_model *m, int64_t at, int64_t count) {
    return lab_tensor_vector(value_at(m, at), m->shape.dtype, count);
}

static struct lab_tensor single(const struct gpt2_model *m, int64_t at, int64_t rows,
                                int64_t columns) {
    float *data = m->singles ? m->singles + at : NULL;
    return columns ? lab_tensor_matrix(data, LAB_FP32, rows, columns)
                   : lab_tensor_vector(data, LAB_FP32, rows);
}

/* [rows, factor·width] of what is kept. */
static struct lab_tensor rows_at(const struct gpt2_model *m, int64_t at, int64_t factor) {
    return matrix(m, at, m->shape.rows, factor * m->shape.width);
}

/* Norm 2·b stands before the attention of block b, 2·b + 1 before its MLP, the last before the
 * head. */
static int64_t residual_at(const struct gpt2_model *m, int64_t norm) {
    return m->memory.norms + norm * 2 * m->shape.rows * m->shape.width;
}

static int64_t norm_at(const struct gpt2_model *m, int64_t norm) {
    return residual_at(m, norm) + m->shape.rows * m->shape.width;
}

static int64_t hidden_at(const struct gpt2_model *m, int64_t block) {
    int64_t each = 4 * m->shape.rows * m->shape.width;
    return m->memory.hidden + block * (m->shape.recompute ? 1 : 2) * each;
}

static struct lab_tensor stats_of(const struct gpt2_model *m, int64_t norm) {
    return single(m, m->memory.stats + norm * 2 * m->shape.rows, m->shape.rows, 2);
}

static struct lab_tensor heads_at(const struct gpt2_model *m, int64_t at, int64_t heads) {
    const struct gpt2_shape *s = &m->shape;
    const int64_t shape[] = {s->batch, s->seq, heads, s->width / s->heads};
    return lab_tensor(value_at(m, at), s->dtype, 4, shape);
}

static struct lab_tensor lse_of(const struct gpt2_model *m, int64_t block) {
    const struct gpt2_shape *s = &m->shape;
    const int64_t shape[] = {s->batch, s->heads, s->seq};
    int64_t at = m->memory.lse + block * s->heads * s->rows;
    return lab_tensor(m->singles ? m->singles + at : NULL, LAB_FP32, 3, shape);
}

/* A block's linear layers, weights [outputs, inputs] as PyTorch keeps them. */
enum linear { QKV, PROJECTION, UP, DOWN, LINEARS };

static const struct {
    int64_t weights_at, biases_at, outputs, inputs; /* in squares of the width, and widths;
                                                      * biases_at: -1 = with the norm's */
} linears[LINEARS] = {{0, 0, 3, 1}, {3, -1, 1, 1}, {4, 3, 4, 1}, {8, -1, 1, 4}};

/* Of the parameters' vector or the gradient's; `part` of three, where q, k and v stand alone. */
static struct lab_tensor weights(const struct gpt2_model *m, int64_t vector_at, int64_t block,
                                 enum linear which, int part) {
    const struct gpt2_shape *s = &m->shape;
    int64_t square = s->width * s->width;
    int64_t at = s->linear_at + (block * GPT2_LINEAR + linears[which].weights_at) * square;
    if (part >= 0)
        return matrix(m, vector_at + at + part * square, s->width, s->width);
    return matrix(m, vector_at + at, linears[which].outputs * s->width,
                  linears[which].inputs * s->width);
}

/* Of the norms' part: gamma, beta and, from the second norm on, the bias that the layer before it
 * adds, in front of them. */
enum { BIAS = -1, GAMMA, BETA };

static struct lab_tensor norm_vector(const struct gpt2_model *m, int64_t norm, int which) {
    int64_t at = m->shape.norms_at + (GPT2_NORM * norm + which) * m->shape.width;
    return vector(m, m->memory.parameters + at, m->shape.width);
}

static struct lab_tensor biases(const struct gpt2_model *m, int64_t vector_at, int64_t block,
                                enum linear which, int part) {
    const struct gpt2_shape *s = &m->shape;
    if (linears[which].biases_at < 0)
        return norm_vector(m, 2 * block + (which == PROJECTION ? 1 : 2), BIAS);
    int64_t at = s->biases_at + (block * GPT2_BIASES + linears[which].biases_at) * s->width;
    if (part >= 0)
        return vector(m, vector_at + at + part * s->width, s->width);
    return vector(m, vector_at + at, linears[which].outputs * s->width);
}

static struct lab_tensor table_of(const struct gpt2_model *m, int64_t vector_at) {
    return matrix(m, vector_at, m->shape.padded, m->shape.width);
}

static struct lab_tensor positions_of(const struct gpt2_model *m, int64_t vector_at) {
    return matrix(m, vector_at + m->shape.positions_at, m->shape.seq, m->shape.width);
}

/* --- the list --- */

void gpt2_list_release(struct gpt2_list *list) {
    lab_mem_free(list->items);
    *list = (struct gpt2_list){0};
}

static struct lab_launch *put(struct gpt2_list *list, struct lab_launch launch) {
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 64;
        struct lab_launch *items = lab_mem_alloc((size_t)capacity, sizeof *items);
        for (int i = 0; i < list->count; i++)
            items[i] = list->items[i];
        lab_mem_free(list->items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count] = launch;
    return &list->items[list->count++];
}

#define EPSILON 1e-5f

/* --- forward --- */

/* The norm `norm` of a residual stream to which `x` is added. */
static void put_norm(const struct gpt2_model *m, struct gpt2_list *list, int64_t norm,
                     struct lab_tensor x) {
    const struct gpt2_shape *s = &m->shape;
    const int64_t both[] = {2, s->rows, s->width};
    put(list, (struct lab_launch){
                  .op = LAB_OP_RESIDUAL_LAYER_NORM,
                  .in = {x, norm_vector(m, norm, GAMMA), norm_vector(m, norm, BETA),
                         rows_at(m, residual_at(m, norm - 1), 1)},
                  .out = lab_tensor(value_at(m, residual_at(m, norm)), s->dtype, 3, both),
                  .also = stats_of(m, norm),
                  .epsilon = EPSILON,
              });
}

static void put_linear(const struct gpt2_model *m, struct gpt2_list *list, struct lab_tensor x,
                       int64_t block, enum linear which, int part, struct lab_tensor out) {
    int64_t at = m->memory.parameters;
    put(list, (struct lab_launch){
                  .op = LAB_OP_GEMM_BIAS,
                  .in = {x, weights(m, at, block, which, part), biases(m, at, block, which, part)},
                  .out = out,
                  .transpose_b = true});
}

static int64_t qkv_at(const struct gpt2_model *m, int64_t block, int part) {
    return m->memory.qkv + (3 * block + part) * m->shape.rows * m->shape.width;
}

static int64_t attended_at(const struct gpt2_model *m, int64_t block) {
    return m->memory.attended + block * m->shape.rows * m->shape.width;
}

static struct lab_launch attention_of(const struct gpt2_model *m, int64_t block) {
    int64_t heads = m->shape.heads, width = m->shape.width / heads;
    return (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION,
        .in = {heads_at(m, qkv_at(m, block, 0), heads), heads_at(m, qkv_at(m, block, 1), heads),
               heads_at(m, qkv_at(m, block, 2), heads)},
        .out = heads_at(m, attended_at(m, block), heads),
        .also = lse_of(m, block),
        .scale = 1 / sqrtf((float)width),
        .causal = true,
    };
}

static void put_block(const struct gpt2_model *m, struct gpt2_list *list, int64_t block) {
    const struct gpt2_shape *s = &m->shape;
    int64_t at = m->memory.parameters, each = 4 * s->rows * s->width;
    struct lab_tensor out = rows_at(m, m->memory.d_norm, 1); /* free until backward */
    const int64_t both[] = {2, s->rows, 4 * s->width};
    for (int part = 0; part < 3; part++)
        put_linear(m, list, rows_at(m, norm_at(m, 2 * block), 1), block, QKV, part,
                   rows_at(m, qkv_at(m, block, part), 1));
    put(list, attention_of(m, block));
    put_linear(m, list, rows_at(m, attended_at(m, block), 1), block, PROJECTION, -1, out);
    put_norm(m, list, 2 * block + 1, out);
    put(list,
        (struct lab_launch){.op = LAB_OP_GEMM_BIAS_GELU_TANH,
                            .in = {rows_at(m, norm_at(m, 2 * block + 1), 1),
                                   weights(m, at, block, UP, -1), biases(m, at, block, UP, -1)},
                            .out = lab_tensor(value_at(m, hidden_at(m, block)), s->dtype, 3, both),
                            .transpose_b = true});
    put_linear(m, list, rows_at(m, hidden_at(m, block) + each, 4), block, DOWN, -1, out);
    put_norm(m, list, 2 * block + 2, out);
}

static void put_embedding(const struct gpt2_model *m, struct gpt2_list *list) {
    const struct gpt2_shape *s = &m->shape;
    struct lab_tensor x = rows_at(m, residual_at(m, 0), 1);
    put(list, (struct lab_launch){.op = LAB_OP_EMBED_TOKENS,
                                  .in = {single(m, m->memory.tokens, s->rows, 0),
                                         table_of(m, m->memory.parameters),
                                         positions_of(m, m->memory.parameters)},
                                  .out = x});
    put(list, (struct lab_launch){.op = LAB_OP_LAYER_NORM,
                                  .in = {x, norm_vector(m, 0, GAMMA), norm_vector(m, 0, BETA)},
                                  .out = rows_at(m, norm_at(m, 0), 1),
                                  .also = stats_of(m, 0),
                                  .epsilon = EPSILON});
}

/* --- backward --- */

/* gradient (+)= aᵀ·b */
static void put_product(struct gpt2_list *list, bool adds, struct lab_tensor a, struct lab_tensor b,
                        struct lab_tensor gradient) {
    struct lab_launch launch = {.op = adds ? LAB_OP_GEMM_ADD : LAB_OP_GEMM,
                                .in = {a, b},
                                .out = gradient,
                                .transpose_a = true};
    if (adds)
        launch.in[2] = gradient;
    put(list, launch);
}

static void put_sum(struct gpt2_list *list, bool adds, struct lab_tensor x,
                    struct lab_tensor gradient) {
    put(list, (struct lab_launch){.op = LAB_OP_COLUMN_SUM,
                                  .in = {x, gradient},
                                  .out = gradient,
                                  .value = adds ? 1.0f : 0.0f});
}

/* Weights of a layer with these inputs, from the derivative by its outputs, and its biases, unless
 * they come from the norm behind it. */
static void put_layer_gradient(const struct gpt2_model *m, struct gpt2_list *list, bool adds,
                               int64_t block, enum linear which, struct lab_tensor d,
                               struct lab_tensor x) {
    int64_t at = m->memory.gradient;
    put_product(list, adds, d, x, weights(m, at, block, which, -1));
    if (linears[which].biases_at >= 0)
        put_sum(list, adds, d, biases(m, at, block, which, -1));
}

static void put_through(struct gpt2_list *list, struct lab_tensor d, struct lab_tensor w,
                        struct lab_tensor out) {
    put(list, (struct lab_launch){.op = LAB_OP_GEMM, .in = {d, w}, .out = out});
}

/* d_residual ← what flows past the norm, and through it from d_norm. */
static void put_norm_backward(const struct gpt2_model *m, struct gpt2_list *list, int64_t norm) {
    struct lab_tensor d = rows_at(m, m->memory.d_residual, 1);
    int64_t at = m->memory.norm_gradients + norm * GPT2_NORM * m->shape.width;
    put(list,
        (struct lab_launch){.op = LAB_OP_LAYER_NORM_BACKWARD,
                            .in = {rows_at(m, residual_at(m, norm), 1), norm_vector(m, norm, GAMMA),
                                   stats_of(m, norm), rows_at(m, m->memory.d_norm, 1), d},
                            .out = d,
                            .also = single(m, at, GPT2_NORM, m->shape.width)});
}

/* Logits of some rows, their losses and derivatives, and what follows for table and norm. */
static void put_head(const struct gpt2_model *m, struct gpt2_list *list, bool adds, int64_t first,
                     int64_t count) {
    const struct gpt2_shape *s = &m->shape;
    struct lab_tensor table = table_of(m, m->memory.parameters);
    struct lab_tensor logits = matrix(m, m->memory.logits, count, s->padded);
    struct lab_tensor x = matrix(m, norm_at(m, 2 * s->depth) + first * s->width, count, s->width);
    put(list, (struct lab_launch){
                  .op = LAB_OP_GEMM, .in = {x, table}, .out = logits, .transpose_b = true});
    put(list, (struct lab_launch){.op = LAB_OP_CROSS_ENTROPY,
                                  .in = {logits, single(m, m->memory.targets + first, count, 0)},
                                  .out = logits,
                                  .also = single(m, m->memory.losses + first, count, 0),
                                  .classes = s->vocab,
                                  .scale = 1 / (float)(s->batch_rows * s->accumulation)});
    put_product(list, adds || first > 0, logits, x, table_of(m, m->memory.gradient));
    put_through(list, logits, table,
                matrix(m, m->memory.d_norm + first * s->width, count, s->width));
}

static void put_block_backward(const struct gpt2_model *m, struct gpt2_list *list, bool adds,
                               int64_t block) {
    const struct gpt2_shape *s = &m->shape;
    int64_t at = m->memory.parameters, each = 4 * s->rows * s->width;
    struct lab_tensor d = rows_at(m, m->memory.d_residual, 1);
    struct lab_tensor d_norm = rows_at(m, m->memory.d_norm, 1);
    struct lab_tensor d_hidden = rows_at(m, m->memory.d_hidden, 4);
    struct lab_tensor d_qkv = rows_at(m, m->memory.d_hidden, 3);
    struct lab_tensor hidden = rows_at(m, hidden_at(m, block), 4);
    struct lab_tensor active = rows_at(m, hidden_at(m, block) + each, 4);
    if (s->recompute && block + 1 < s->depth)
        put(list, (struct lab_launch){.op = LAB_OP_GELU_TANH, .in = {hidden}, .out = active});
    put_layer_gradient(m, list, adds, block, DOWN, d, active);
    put(list, (struct lab_launch){.op = LAB_OP_GEMM_GELU_TANH_BACKWARD,
                                  .in = {d, weights(m, at, block, DOWN, -1), hidden},
                                  .out = d_hidden});
    put_layer_gradient(m, list, adds, block, UP, d_hidden,
                       rows_at(m, norm_at(m, 2 * block + 1), 1));
    put_through(list, d_hidden, weights(m, at, block, UP, -1), d_norm);
    put_norm_backward(m, list, 2 * block + 1);
    put_layer_gradient(m, list, adds, block, PROJECTION, d, rows_at(m, attended_at(m, block), 1));
    put_through(list, d, weights(m, at, block, PROJECTION, -1), d_norm);
    struct lab_launch attention = attention_of(m, block);
    attention.op = LAB_OP_FLASH_ATTENTION_BACKWARD;
    attention.in[3] = attention.out;
    attention.in[4] = heads_at(m, m->memory.d_norm, s->heads);
    attention.in[5] = attention.also;
    attention.out = heads_at(m, m->memory.d_hidden, 3 * s->heads);
    attention.also = (struct lab_tensor){0};
    put(list, attention);
    put_layer_gradient(m, list, adds, block, QKV, d_qkv, rows_at(m, norm_at(m, 2 * block), 1));
    put_through(list, d_qkv, weights(m, at, block, QKV, -1), d_norm);
    put_norm_backward(m, list, 2 * block);
}

/* Table, positions and norms, once d_residual has come down to the embedding. */
static void put_embedding_backward(const struct gpt2_model *m, struct gpt2_list *list, bool adds) {
    const struct gpt2_shape *s = &m->shape;
    int64_t count = s->parameters - s->norms_at; /* the first norm has no bias before it */
    struct lab_tensor table = table_of(m, m->memory.gradient);
    struct lab_tensor norms = vector(m, m->memory.gradient + s->norms_at, count);
    struct lab_tensor positions =
        vector(m, m->memory.gradient + s->positions_at, s->seq * s->width);
    put(list, (struct lab_launch){.op = LAB_OP_EMBED_TOKENS_BACKWARD,
                                  .in = {single(m, m->memory.tokens, s->rows, 0),
                                         rows_at(m, m->memory.d_residual, 1), table},
                                  .out = table});
    put_sum(list, adds, matrix(m, m->memory.d_residual, s->batch, s->seq * s->width), positions);
    put(list,
        (struct lab_launch){.op = LAB_OP_ACCUMULATE,
                            .in = {single(m, m->memory.norm_gradients + s->width, count, 0), norms},
                            .out = norms,
                            .value = adds ? 1.0f : 0.0f});
    struct lab_tensor sums = single(m, m->memory.loss_sums, s->rows, 0);
    if (s->accumulation > 1)
        put(list, (struct lab_launch){.op = LAB_OP_ACCUMULATE,
                                      .in = {single(m, m->memory.losses, s->rows, 0), sums},
                                      .out = sums,
                                      .value = adds ? 1.0f : 0.0f});
}

void gpt2_list_gradient(const struct gpt2_model *m, bool adds, struct gpt2_list *list) {
    const struct gpt2_shape *s = &m->shape;
    put_embedding(m, list);
    for (int64_t block = 0; block < s->depth; block++)
        put_block(m, list, block);
    list->forward = list->count;
    for (int64_t first = 0; first < s->rows; first += s->chunk)
        put_head(m, list, adds, first, s->rows - first < s->chunk ? s->rows - first : s->chunk);
    put(list, (struct lab_launch){.op = LAB_OP_FILL, .out = rows_at(m, m->memory.d_residual, 1)});
    put_norm_backward(m, list, 2 * s->depth);
    for (int64_t block = s->depth - 1; block >= 0; block--)
        put_block_backward(m, list, adds, block);
    put_embedding_backward(m, list, adds);
}

/* --- update, and the loss --- */

void gpt2_list_loss(const struct gpt2_model *m, struct gpt2_list *list) {
    const struct gpt2_shape *s = &m->shape;
    int64_t losses = s->accumulation > 1 ? m->memory.loss_sums : m->memory.losses;
    put_sum(list, false, single(m, losses, s->rows, 1),
            single(m, m->memory.control + GPT2_LOSS, 1, 0));
}

void gpt2_list_update(const struct gpt2_model *m, struct gpt2_list *list) {
    const struct gpt2_shape *s = &m->shape;
    const struct gpt2_config *config = m->config;
    struct lab_tensor control = single(m, m->memory.control, LAB_ADAMW_CONTROLS, 0);
    struct lab_tensor gradient = vector(m, m->memory.gradient, s->parameters);
    struct lab_tensor state = single(m, m->memory.state, 3, s->parameters);
    if (config->grad_clip > 0)
        put(list, (struct lab_launch){.op = LAB_OP_CLIP,
                                      .in = {gradient, control},
                                      .out = vector(m, m->memory.clipped, 1),
                                      .also = control,
                                      .value = (float)config->grad_clip});
    put(list,
        (struct lab_launch){
            .op = LAB_OP_ADAMW,
            .in = {gradient, state, control},
            .out = vector(m, m->memory.parameters, s->parameters),
            .also = state,
            .adam = {.beta1 = (float)config->beta1,
                     .beta2 = (float)config->beta2,
                     .epsilon = gpt2_is_sgd(config) ? 1.0f : (float)config->epsilon},
            .decay = lab_str_equal(config->optimizer, "adam") ? 0.0f : (float)config->weight_decay,
            .decayed = s->biases_at,
        });
}
