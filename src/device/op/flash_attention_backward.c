/*
 * flash_attention_backward.c: the derivatives of flash_attention by its queries, keys and values.
 * Shares are made again from the scores and their log-sum-exp, so that forward keeps one number of
 * a row (Dao et al. 2022).
 */
#include "device/op/parts.h"

#include "base/mem.h"

#include <math.h>

enum { Q, K, V, O, D_O, LSE, INPUTS };

static int backward_check(const struct lab_launch *launch, struct lab_err *err) {
    if (op_check_flash(launch, err))
        return -1;
    struct lab_flash_shape s = lab_flash_shape(launch);
    if (s.width != 64 && s.width != 128)
        return lab_err_set(err, LAB_ERR_USER, "the head width is %lld, must be 64 or 128",
                           (long long)s.width);
    const int64_t *queries = launch->in[Q].shape, sums[] = {s.batch, s.heads, s.tokens};
    const int64_t out[] = {s.batch, s.tokens, s.heads + 2 * s.kv_heads, s.width};
    if (op_check_shape(&launch->in[O], "forward's output", LAB_TENSOR_RANK, queries, err) ||
        op_check_shape(&launch->in[D_O], "the derivative", LAB_TENSOR_RANK, queries, err) ||
        op_check_shape(&launch->in[LSE], "the log-sum-exp", 3, sums, err))
        return -1;
    return op_check_shape(&launch->out, "the output", LAB_TENSOR_RANK, out, err);
}

static struct lab_cost backward_cost(const struct lab_launch *launch) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    double scores = (double)s.batch * (double)s.heads * (double)s.tokens * (double)s.tokens;
    return op_cost(launch, scores * 10.0 * (double)s.width * (launch->causal ? 0.5 : 1.0));
}

struct rows { /* of one key and what it gets */
    const double *k, *v;
    double *dk, *dv;
};

/* One query and one key; `delta` is Σ do·o. */
static void add_pair(const double *q, const double *d_o, double lse, double delta, double scale,
                     int64_t width, double *dq, struct rows key) {
    double score = 0, product = 0;
    for (int64_t w = 0; w < width; w++) {
        score += q[w] * key.k[w];
        product += d_o[w] * key.v[w];
    }
    double share = exp(scale * score - lse), ds = share * (product - delta) * scale;
    for (int64_t w = 0; w < width; w++) {
        dq[w] += ds * key.k[w];
        key.dk[w] += ds * q[w];
        key.dv[w] += share * d_o[w];
    }
}

static void backward_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t all = s.heads + 2 * s.kv_heads;
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = 0;
    for (int64_t row = 0; row < s.batch * s.tokens * s.heads; row++) {
        int64_t head = row % s.heads, token = row / s.heads % s.tokens;
        int64_t image = row / s.heads / s.tokens, kv_head = head * s.kv_heads / s.heads;
        const double *d_o = in[D_O] + row * s.width, *o = in[O] + row * s.width;
        double delta = 0, *dq = out + ((image * s.tokens + token) * all + head) * s.width;
        for (int64_t w = 0; w < s.width; w++)
            delta += d_o[w] * o[w];
        for (int64_t t = 0; t < (launch->causal ? token + 1 : s.tokens); t++) {
            int64_t key = ((image * s.tokens + t) * s.kv_heads + kv_head) * s.width;
            double *dk = out + ((image * s.tokens + t) * all + s.heads + kv_head) * s.width;
            struct rows rows = {in[K] + key, in[V] + key, dk, dk + s.kv_heads * s.width};
            add_pair(in[Q] + row * s.width, d_o,
                     in[LSE][(image * s.heads + head) * s.tokens + token], delta,
                     (double)launch->scale, s.width, dq, rows);
        }
    }
}

static const struct {
    struct lab_flash_shape shape;
    bool causal, turned; /* turned: the scale is below 0 */
} cases[] = {
    {{1, 1, 1, 1, 64}, true},    {{2, 7, 2, 1, 64}, false},        {{1, 65, 2, 2, 64}, true},
    {{2, 130, 2, 1, 64}, false}, {{1, 129, 4, 2, 64}, true},       {{1, 300, 2, 2, 64}, false},
    {{1, 385, 2, 2, 64}, true},  {{1, 63, 2, 2, 128}, true},       {{1, 161, 2, 1, 128}, false},
    {{2, 259, 1, 1, 128}, true}, {{1, 131, 2, 1, 64}, true, true},
};

static int backward_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    struct lab_flash_shape s = cases[index].shape;
    const int64_t queries[] = {s.batch, s.tokens, s.heads, s.width};
    const int64_t keys[] = {s.batch, s.tokens, s.kv_heads, s.width};
    const int64_t out[] = {s.batch, s.tokens, s.heads + 2 * s.kv_heads, s.width};
    const int64_t sums[] = {s.batch, s.heads, s.tokens};
    struct lab_tensor q = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, queries);
    struct lab_tensor kv = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, keys);
    *launch = (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION_BACKWARD,
        .in = {q, kv, kv, q, q, lab_tensor(NULL, LAB_FP32, 3, sums)},
        .out = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, out),
        .causal = cases[index].causal,
        .scale = (cases[index].turned ? -1.0f : 1.0f) / sqrtf((float)s.width),
    };
    return 0;
}

/* Log-sum-exps as scores around 0 have them, the logarithm of how many keys are seen, with noise
 * and so much more that no share exceeds 1. */
static void backward_domain(const struct lab_launch *launch, int input, float *values) {
    struct lab_flash_shape s = lab_flash_shape(launch);
    for (int64_t i = 0; input == LSE && i < s.batch * s.heads * s.tokens; i++)
        values[i] = 0.5f * values[i] + 2 +
                    (float)log(launch->causal ? (double)(i % s.tokens + 1) : (double)s.tokens);
}

const struct lab_op lab_op_flash_attention_backward = {
    .name = "flash_attention_backward",
    .help = "derivatives of flash_attention by queries, keys and values",
    .inputs = INPUTS,
    .singles = 1u << LSE,
    .optional = true,
    .check = backward_check,
    .cost = backward_cost,
    .reference = backward_reference,
    .example = backward_example,
    .domain = backward_domain,
};
