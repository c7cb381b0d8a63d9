/* attention.c: every token looks at all tokens of its image, head by head. */
#include "device/op/parts.h"

#include "base/mem.h"

#include <math.h>

struct shape {
    int64_t images, tokens, heads, width;
};

static struct shape shape_of(const struct lab_launch *launch) {
    return (struct shape){
        .images = lab_tensor_rows(&launch->out) / launch->tokens,
        .tokens = launch->tokens,
        .heads = launch->heads,
        .width = lab_tensor_columns(&launch->out) / launch->heads,
    };
}

static int attention_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    if (launch->tokens < 1 || rows % launch->tokens)
        return lab_err_set(err, LAB_ERR_USER,
                           "the output has %lld rows, must have a multiple of the %lld tokens",
                           (long long)rows, (long long)launch->tokens);
    if (launch->heads < 1 || columns % launch->heads)
        return lab_err_set(err, LAB_ERR_USER,
                           "the output has %lld columns, must have a multiple of the %lld heads",
                           (long long)columns, (long long)launch->heads);
    /* BLAS takes a factor of 0 for "don't even look", which would lose NaNs */
    if (!isfinite(launch->scale) || launch->scale == 0)
        return lab_err_set(err, LAB_ERR_USER, "scale is %g, must be finite and not 0",
                           (double)launch->scale);
    return op_check_matrix(&launch->in[0], "qkv", rows, 3 * columns, err);
}

/* Two products of 2·t²·w each; a score is scaled and goes through softmax: 1 + 5. */
static struct lab_cost attention_cost(const struct lab_launch *launch) {
    struct shape s = shape_of(launch);
    double scores = (double)s.images * (double)s.heads * (double)s.tokens * (double)s.tokens;
    return op_cost(launch, scores * (4.0 * (double)s.width + 6.0));
}

static void softmax_row(double *x, int64_t count) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        max = x[i] > max ? x[i] : max;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] = exp(x[i] - max);
    for (int64_t i = 0; i < count; i++)
        x[i] /= sum;
}

static void attention_reference(const struct lab_launch *launch, const double *const *in,
                                double *out) {
    struct shape s = shape_of(launch);
    int64_t dim = s.heads * s.width, stride = 3 * dim;
    LAB_AUTO_FREE double *scores = lab_mem_alloc((size_t)s.tokens, sizeof *scores);
    for (int64_t row = 0; row < s.images * s.tokens; row++)
        for (int64_t h = 0; h < s.heads; h++) {
            const double *image = in[0] + row / s.tokens * s.tokens * stride + h * s.width;
            const double *q = in[0] + row * stride + h * s.width;
            for (int64_t t = 0; t < s.tokens; t++) {
                scores[t] = 0;
                for (int64_t w = 0; w < s.width; w++)
                    scores[t] += q[w] * image[t * stride + dim + w];
                scores[t] *= launch->scale;
            }
            softmax_row(scores, s.tokens);
            double *to = out + row * dim + h * s.width;
            for (int64_t w = 0; w < s.width; w++)
                to[w] = 0;
            for (int64_t t = 0; t < s.tokens; t++)
                for (int64_t w = 0; w < s.width; w++)
                    to[w] += scores[t] * image[t * stride + 2 * dim + w];
        }
}

static const struct shape cases[] = {{1, 1, 1, 1},   {2, 7, 3, 5},    {1, 63, 2, 16}, {3, 65, 1, 7},
                                     {2, 50, 4, 64}, {1, 197, 2, 64}, {1, 400, 1, 16}};

static int attention_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    struct shape s = cases[index];
    *launch = (struct lab_launch){
        .op = LAB_OP_ATTENTION,
        .in = {lab_tensor_matrix(NULL, dtype, s.images * s.tokens, 3 * s.heads * s.width)},
        .out = lab_tensor_matrix(NULL, dtype, s.images * s.tokens, s.heads * s.width),
        .tokens = s.tokens,
        .heads = s.heads,
        .scale = 1.0f / sqrtf((float)s.width),
    };
    return 0;
}

const struct lab_op lab_op_attention = {
    .name = "attention",
    .help = "softmax(scale·q·kᵀ)·v for each image and head",
    .inputs = 1,
    .check = attention_check,
    .cost = attention_cost,
    .reference = attention_reference,
    .example = attention_example,
};
