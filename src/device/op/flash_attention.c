/*
 * flash_attention.c: attention of any length, with fewer heads of keys than of queries where
 * wanted. Named for how it has to be computed: the scores of a long sequence don't fit any cache.
 */
#include "device/op/parts.h"

#include "base/mem.h"

#include <math.h>

int op_check_flash(const struct lab_launch *launch, struct lab_err *err) {
    if (launch->in[0].rank != LAB_TENSOR_RANK || launch->in[1].rank != LAB_TENSOR_RANK)
        return lab_err_set(err, LAB_ERR_USER,
                           "queries and keys must be [batch, tokens, heads, head width]");
    struct lab_flash_shape s = lab_flash_shape(launch);
    const int64_t keys[] = {s.batch, s.tokens, s.kv_heads, s.width};
    if (s.heads % s.kv_heads)
        return lab_err_set(err, LAB_ERR_USER,
                           "%lld heads of queries can't be shared out to %lld heads of keys: they "
                           "must be a multiple",
                           (long long)s.heads, (long long)s.kv_heads);
    if (!isfinite(launch->scale) || launch->scale == 0)
        return lab_err_set(err, LAB_ERR_USER, "scale is %g, must be finite and not 0",
                           (double)launch->scale);
    if (op_check_shape(&launch->in[1], "keys", LAB_TENSOR_RANK, keys, err))
        return -1;
    return op_check_shape(&launch->in[2], "values", LAB_TENSOR_RANK, keys, err);
}

static int flash_check(const struct lab_launch *launch, struct lab_err *err) {
    if (op_check_flash(launch, err))
        return -1;
    struct lab_flash_shape s = lab_flash_shape(launch);
    if (s.width != 64 && s.width != 96 && s.width != 128 && s.width != 256)
        return lab_err_set(err, LAB_ERR_USER, "the head width is %lld, must be 64, 96, 128 or 256",
                           (long long)s.width);
    return op_check_shape(&launch->out, "the output", LAB_TENSOR_RANK, launch->in[0].shape, err);
}

/* The log-sum-exps. */
static struct lab_tensor flash_also(const struct lab_launch *launch) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    return lab_tensor(NULL, LAB_FP32, 3, (int64_t[]){s.batch, s.heads, s.tokens});
}

static struct lab_cost flash_cost(const struct lab_launch *launch) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    double scores = (double)s.batch * (double)s.heads * (double)s.tokens * (double)s.tokens;
    return op_cost(launch, scores * 4.0 * (double)s.width * (launch->causal ? 0.5 : 1.0));
}

/* One query against the keys and values that it sees, `count` of them, `stride` apart. */
static void attend(const double *q, const double *k, const double *v, int64_t count, int64_t stride,
                   int64_t width, double scale, double *scores, double *out) {
    double top = -INFINITY, sum = 0;
    for (int64_t t = 0; t < count; t++) {
        scores[t] = 0;
        for (int64_t w = 0; w < width; w++)
            scores[t] += q[w] * k[t * stride + w];
        scores[t] *= scale;
        top = scores[t] > top ? scores[t] : top;
    }
    for (int64_t w = 0; w < width; w++)
        out[w] = 0;
    for (int64_t t = 0; t < count; t++) {
        double share = exp(scores[t] - top);
        sum += share;
        for (int64_t w = 0; w < width; w++)
            out[w] += share * v[t * stride + w];
    }
    for (int64_t w = 0; w < width; w++)
        out[w] /= sum;
}

static void flash_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    LAB_AUTO_FREE double *scores = lab_mem_alloc((size_t)s.tokens, sizeof *scores);
    for (int64_t row = 0; row < s.batch * s.tokens * s.heads; row++) {
        int64_t head = row % s.heads, token = row / s.heads % s.tokens;
        int64_t image = row / s.heads / s.tokens;
        int64_t keys = (image * s.tokens * s.kv_heads + head * s.kv_heads / s.heads) * s.width;
        attend(in[0] + row * s.width, in[1] + keys, in[2] + keys,
               launch->causal ? token + 1 : s.tokens, s.kv_heads * s.width, s.width,
               (double)launch->scale, scores, out + row * s.width);
    }
}

static void flash_reference_also(const struct lab_launch *launch, const double *const *in,
                                 double *also) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    LAB_AUTO_FREE double *scores = lab_mem_alloc((size_t)s.tokens, sizeof *scores);
    for (int64_t row = 0; row < s.batch * s.heads * s.tokens; row++) {
        int64_t token = row % s.tokens, head = row / s.tokens % s.heads;
        int64_t image = row / s.tokens / s.heads;
        const double *q = in[0] + ((image * s.tokens + token) * s.heads + head) * s.width;
        const double *k =
            in[1] + (image * s.tokens * s.kv_heads + head * s.kv_heads / s.heads) * s.width;
        int64_t count = launch->causal ? token + 1 : s.tokens;
        double top = -INFINITY, sum = 0;
        for (int64_t t = 0; t < count; t++) {
            scores[t] = 0;
            for (int64_t w = 0; w < s.width; w++)
                scores[t] += q[w] * k[t * s.kv_heads * s.width + w];
            scores[t] *= (double)launch->scale;
            top = fmax(top, scores[t]);
        }
        for (int64_t t = 0; t < count; t++)
            sum += exp(scores[t] - top);
        also[row] = top + log(fmax(sum, 1)); /* the largest score's share alone is 1 */
    }
}

static const struct {
    struct lab_flash_shape shape;
    bool causal, turned; /* turned: the scale is below 0 */
} cases[] = {
    {{1, 1, 1, 1, 64}, true},     {{2, 7, 3, 1, 64}, false},   {{1, 63, 2, 2, 96}, true},
    {{2, 65, 2, 1, 64}, false},   {{1, 129, 4, 2, 64}, true},  {{1, 200, 2, 1, 128}, true},
    {{1, 77, 2, 2, 256}, false},  {{1, 301, 1, 1, 96}, false}, {{1, 513, 1, 1, 64}, true},
    {{2, 130, 6, 2, 128}, false}, {{1, 161, 4, 1, 256}, true}, {{2, 257, 3, 3, 96}, true},
    {{1, 1, 2, 1, 256}, false},   {{3, 64, 2, 2, 128}, true},  {{1, 131, 2, 1, 128}, true, true},
};

static int flash_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    struct lab_flash_shape s = cases[index].shape;
    const int64_t queries[] = {s.batch, s.tokens, s.heads, s.width};
    const int64_t keys[] = {s.batch, s.tokens, s.kv_heads, s.width};
    struct lab_tensor kv = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, keys);
    *launch = (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION,
        .in = {lab_tensor(NULL, dtype, LAB_TENSOR_RANK, queries), kv, kv},
        .out = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, queries),
        .causal = cases[index].causal,
        .scale = (cases[index].turned ? -1.0f : 1.0f) / sqrtf((float)s.width),
    };
    return 0;
}

const struct lab_op lab_op_flash_attention = {
    .name = "flash_attention",
    .help = "softmax(scale·q·kᵀ)·v of separate tensors, causal or not, with grouped heads",
    .inputs = 3,
    .optional = true,
    .check = flash_check,
    .cost = flash_cost,
    .reference = flash_reference,
    .also = flash_also,
    .reference_also = flash_reference_also,
    .example = flash_example,
};
