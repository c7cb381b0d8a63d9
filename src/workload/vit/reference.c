/*
 * reference.c: the vision transformer once more, in double precision and from the formulas alone:
 * no op table, no device, no memory shared between steps, so that an error in model.c or in a
 * kernel can't be here as well. Only the numbering of the parameters is common to both.
 *
 * Everything is plain loops. The one place where most of the time goes, the linear layer, works on
 * tiles, and is compiled for wider vectors as well: a large model has 60 Gflop an image.
 */
#include "workload/vit/vit.h"

#include <math.h>

struct reference {
    const struct vit_shape *shape;
    vit_weight_source *weights;
    const void *state;
    int64_t images, rows; /* rows = images · tokens */
};

static double *doubles(struct lab_arena *arena, int64_t count) {
    return lab_arena_alloc(arena, (size_t)count, sizeof(double));
}

/* Parameter `index`; NULL for an empty one. */
static double *load(const struct reference *r, int index, struct lab_arena *arena) {
    struct vit_parameter parameter = vit_parameter_at(r->shape, index);
    int64_t count = vit_parameter_count(&parameter);
    if (count == 0)
        return NULL;
    LAB_AUTO_FREE float *values = lab_mem_alloc((size_t)count, sizeof *values);
    double *out = doubles(arena, count);
    r->weights(r->state, index, values);
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)values[i];
    return out;
}

/* x[rows, width] = (x − mean)/√(variance + ε)·gamma + beta */
static void norm(const struct reference *r, double *x, int64_t rows, int64_t width, int index) {
    LAB_AUTO(arena, arena);
    double *gamma = load(r, index, &arena), *beta = load(r, index + 1, &arena);
    for (int64_t row = 0; row < rows; row++, x += width) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++)
            mean += x[i] / (double)width;
        for (int64_t i = 0; i < width; i++)
            variance += (x[i] - mean) * (x[i] - mean) / (double)width;
        double scale = 1 / sqrt(variance + 1e-5);
        for (int64_t i = 0; i < width; i++)
            x[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
    }
}

enum { TILE_ROWS = 4, TILE_COLUMNS = 8 };

typedef double tile_row __attribute__((vector_size(8 * TILE_COLUMNS), aligned(8)));

/* sums[i] = Σ_k x[i·k_count + k]·w[k], a row of eight columns each */
static inline __attribute__((always_inline)) void tile_body(const double *x, const tile_row *w,
                                                            int64_t k_count, tile_row *sums) {
    tile_row total[TILE_ROWS] = {0};
    for (int64_t k = 0; k < k_count; k++)
        for (int i = 0; i < TILE_ROWS; i++)
            total[i] += x[i * k_count + k] * w[k];
    for (int i = 0; i < TILE_ROWS; i++)
        sums[i] = total[i];
}

typedef void tile_function(const double *x, const tile_row *w, int64_t k_count, tile_row *sums);

static void tile_plain(const double *x, const tile_row *w, int64_t k_count, tile_row *sums) {
    tile_body(x, w, k_count, sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void tile_avx2(const double *x, const tile_row *w,
                                                          int64_t k_count, tile_row *sums) {
    tile_body(x, w, k_count, sums);
}

__attribute__((target("avx512f"))) static void tile_avx512(const double *x, const tile_row *w,
                                                           int64_t k_count, tile_row *sums) {
    tile_body(x, w, k_count, sums);
}
#endif

static tile_function *choose_tile(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return tile_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return tile_avx2;
#endif
    return tile_plain;
}

/* x [rows, from] → x·weightᵀ + bias [rows, to], in `result`; weight [to, from] at `index` */
static double *linear(const struct reference *r, const double *x, int64_t rows, int64_t from,
                      int64_t to, int index, bool with_bias, struct lab_arena *result) {
    LAB_AUTO(arena, arena);
    double *weight = load(r, index, &arena);
    double *bias = with_bias ? load(r, index + 1, &arena) : NULL;
    double *out = doubles(result, rows * to);
    /* rows and columns behind the last are zeros: a tile is always whole */
    int64_t padded = (rows + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    double *input = doubles(&arena, padded * from);
    memcpy(input, x, (size_t)(rows * from) * sizeof *x);
    tile_row *w = lab_arena_alloc(&arena, (size_t)from, sizeof *w);
    tile_function *tile = choose_tile();
    for (int64_t column = 0; column < to; column += TILE_COLUMNS) {
        int64_t columns = to - column < TILE_COLUMNS ? to - column : TILE_COLUMNS;
        for (int64_t k = 0; k < from; k++)
            for (int64_t j = 0; j < TILE_COLUMNS; j++)
                w[k][j] = j < columns ? weight[(column + j) * from + k] : 0;
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            tile_row sums[TILE_ROWS];
            tile(input + row * from, w, from, sums);
            for (int64_t i = 0; i < TILE_ROWS && row + i < rows; i++)
                for (int64_t j = 0; j < columns; j++)
                    out[(row + i) * to + column + j] = sums[i][j] + (bias ? bias[column + j] : 0);
        }
    }
    return out;
}

/* [images · patches, patch_dim]; within a patch: row, column, channel, the channel fastest */
static double *cut_patches(const struct reference *r, const float *images,
                           struct lab_arena *arena) {
    const struct vit_shape *s = r->shape;
    double *out = doubles(arena, r->images * s->patches * s->patch_dim), *next = out;
    for (int64_t image = 0; image < r->images; image++)
        for (int64_t top = 0; top < s->height; top += s->patch)
            for (int64_t left = 0; left < s->width; left += s->patch)
                for (int64_t y = top; y < top + s->patch; y++)
                    for (int64_t x = left; x < left + s->patch; x++)
                        for (int64_t c = 0; c < s->channels; c++)
                            *next++ = (double)
                                images[((image * s->channels + c) * s->height + y) * s->width + x];
    return out;
}

/* [rows, dim]: each image's class token and patches, with their positions */
static void embed(const struct reference *r, const float *images, double *out) {
    const struct vit_shape *s = r->shape;
    LAB_AUTO(arena, arena);
    int64_t patch_rows = r->images * s->patches;
    double *patches = cut_patches(r, images, &arena);
    norm(r, patches, patch_rows, s->patch_dim, VIT_PATCH_NORM);
    double *embedded =
        linear(r, patches, patch_rows, s->patch_dim, s->dim, VIT_PATCH, true, &arena);
    norm(r, embedded, patch_rows, s->dim, VIT_EMBED_NORM);
    double *class = load(r, VIT_CLASS, &arena), *position = load(r, VIT_POSITION, &arena);
    for (int64_t image = 0; image < r->images; image++)
        for (int64_t token = 0; token < s->tokens; token++)
            for (int64_t i = 0; i < s->dim; i++) {
                double value =
                    token == 0 ? class[i] : embedded[(image * s->patches + token - 1) * s->dim + i];
                out[(image * s->tokens + token) * s->dim + i] =
                    value + position[token * s->dim + i];
            }
}

/* One head of one image: q, k and v are [tokens, 64] with rows `stride` apart; out likewise. */
static void attend(const double *q, const double *k, const double *v, int64_t tokens,
                   int64_t stride, double *score, double *out, int64_t out_stride) {
    for (int64_t i = 0; i < tokens; i++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < tokens; j++) {
            score[j] = 0;
            for (int64_t d = 0; d < VIT_HEAD_WIDTH; d++)
                score[j] += q[i * stride + d] * k[j * stride + d];
            score[j] /= sqrt(VIT_HEAD_WIDTH);
            largest = fmax(largest, score[j]);
        }
        for (int64_t j = 0; j < tokens; j++)
            sum += score[j] = exp(score[j] - largest);
        for (int64_t j = 0; j < tokens; j++)
            for (int64_t d = 0; d < VIT_HEAD_WIDTH; d++)
                out[i * out_stride + d] += score[j] / sum * v[j * stride + d];
    }
}

/* x += out(attention(qkv(norm(x)))) */
static void attention_block(const struct reference *r, int64_t block, double *x) {
    const struct vit_shape *s = r->shape;
    LAB_AUTO(arena, arena);
    double *normed = lab_arena_copy(&arena, x, (size_t)(r->rows * s->dim), sizeof *x);
    norm(r, normed, r->rows, s->dim, vit_block_parameter(block, VIT_ATTENTION_NORM));
    int64_t stride = 3 * s->inner;
    double *qkv = linear(r, normed, r->rows, s->dim, stride, vit_block_parameter(block, VIT_QKV),
                         false, &arena);
    double *attended = doubles(&arena, r->rows * s->inner), *score = doubles(&arena, s->tokens);
    for (int64_t image = 0; image < r->images; image++)
        for (int64_t head = 0; head < s->heads; head++) {
            const double *q = qkv + image * s->tokens * stride + head * VIT_HEAD_WIDTH;
            double *out = attended + image * s->tokens * s->inner + head * VIT_HEAD_WIDTH;
            attend(q, q + s->inner, q + 2 * s->inner, s->tokens, stride, score, out, s->inner);
        }
    double *projected = attended;
    if (s->project)
        projected = linear(r, attended, r->rows, s->inner, s->dim,
                           vit_block_parameter(block, VIT_OUT), true, &arena);
    for (int64_t i = 0; i < r->rows * s->dim; i++)
        x[i] += projected[i];
}

/* x += down(gelu(up(norm(x)))) */
static void mlp_block(const struct reference *r, int64_t block, double *x) {
    const struct vit_shape *s = r->shape;
    LAB_AUTO(arena, arena);
    double *normed = lab_arena_copy(&arena, x, (size_t)(r->rows * s->dim), sizeof *x);
    norm(r, normed, r->rows, s->dim, vit_block_parameter(block, VIT_MLP_NORM));
    double *hidden = linear(r, normed, r->rows, s->dim, s->mlp,
                            vit_block_parameter(block, VIT_MLP_UP), true, &arena);
    for (int64_t i = 0; i < r->rows * s->mlp; i++)
        hidden[i] = 0.5 * hidden[i] * (1 + erf(hidden[i] / sqrt(2.0)));
    double *out = linear(r, hidden, r->rows, s->mlp, s->dim,
                         vit_block_parameter(block, VIT_MLP_DOWN), true, &arena);
    for (int64_t i = 0; i < r->rows * s->dim; i++)
        x[i] += out[i];
}

void vit_reference(const struct vit_shape *shape, vit_weight_source *weights, const void *state,
                   const float *images, int64_t count, double *out) {
    struct reference r = {.shape = shape,
                          .weights = weights,
                          .state = state,
                          .images = count,
                          .rows = count * shape->tokens};
    embed(&r, images, out);
    for (int64_t block = 0; block < shape->depth; block++) {
        attention_block(&r, block, out);
        mlp_block(&r, block, out);
    }
    norm(&r, out, r.rows, shape->dim, vit_final_norm(shape));
}
