/*
 * op.h: the operations that devices perform, as data. A launch names an op and its tensors; a
 * backend looks the op up in its own table. What an op *means* is stated once, here and in
 * src/device/op/: its check of shapes, its cost, its reference in double precision, the simpler ops
 * a fused one consists of, and example shapes with which the conformance test runs it on every
 * backend.
 *
 * Tensors are dense and row-major. Shapes are written [rows, columns]. An op may write its output
 * over an input where the table says "in place".
 */
#pragma once

#include "base/err.h"
#include "device/mlp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_dtype { LAB_FP32, LAB_TF32, LAB_BF16, LAB_FP16 }; /* tf32: stored as fp32 */

size_t lab_dtype_bytes(enum lab_dtype dtype);
const char *lab_dtype_name(enum lab_dtype dtype);
int lab_dtype_parse(const char *name, enum lab_dtype *ret_dtype); /* 0 or -1 */
extern const char *const lab_dtype_names[];                       /* NULL-terminated */

#define LAB_TENSOR_RANK 4

struct lab_tensor {
    void *data; /* device memory */
    enum lab_dtype dtype;
    int rank;
    int64_t shape[LAB_TENSOR_RANK];
};

struct lab_tensor lab_tensor(void *data, enum lab_dtype dtype, int rank, const int64_t *shape);
struct lab_tensor lab_tensor_vector(void *data, enum lab_dtype dtype, int64_t count);
struct lab_tensor lab_tensor_matrix(void *data, enum lab_dtype dtype, int64_t rows,
                                    int64_t columns);
int64_t lab_tensor_count(const struct lab_tensor *tensor); /* elements */
size_t lab_tensor_bytes(const struct lab_tensor *tensor);
/* Any tensor as a matrix: the last dimension is the columns, the others together the rows. */
int64_t lab_tensor_rows(const struct lab_tensor *tensor);
int64_t lab_tensor_columns(const struct lab_tensor *tensor);

/*
 * The ops. "over x" = the output may be x's own memory.
 *
 *  fill                  out = value
 *  add                   out[n] = a[n] + b[n]; over a or b
 *  bias                  out[r,c] = x[r,c] + bias[c]; over x
 *  gelu                  out[n] = x/2 · (1 + erf(x/√2)), the exact one; over x
 *  gelu_tanh             out[n] = x/2 · (1 + tanh u), u = √(2/π)·(x + 0.044715·x³), as GPT-2;
 *                        over x
 *  gelu_tanh_backward    out[n] = dy · gelu_tanh'(x); in: x, dy; over x or dy
 *  gemm                  out[m,n] = op(a)·op(b); a is [m,k] (transpose_a: [k,m]),
 *                        b is [k,n] (transpose_b: [n,k], as a linear layer keeps its weights)
 *  gemm_add              gemm + x[m,n]; in: a, b, x; over x
 *  gemm_bias             gemm + bias[n]; in: a, b, bias
 *  gemm_bias_gelu        gelu(gemm + bias[n]); in: a, b, bias
 *  gemm_bias_add         gemm + bias[n] + residual[m,n]; in: a, b, bias, residual; over residual
 *  gemm_bias_gelu_tanh   out[2,m,n]: gemm + bias[n], then gelu_tanh of it; in: a, b, bias
 *  gemm_gelu_tanh_backward
 *                        gemm · gelu_tanh'(x[m,n]); in: a, b, x
 *  column_sum            out[c] = Σ x[r,c] over rows + value·base[c], which isn't read where value
 *                        is 0; in: x, base; over base. A device gives the same bits each time
 *  accumulate            out[n] = x[n] + value·base[n], which isn't read where value is 0; in: x,
 *                        which is fp32, and base; over base
 *  layer_norm            out[r,c] = (x − mean_r)/√(var_r + epsilon)·gamma[c] + beta[c], population
 *                        variance; in: x, gamma, beta; over x. Also, where asked for, stats[r,2]:
 *                        mean, 1/√(var + epsilon)
 *  residual_layer_norm   out[2,r,c]: x + residual, then layer_norm of it; in: x, gamma, beta,
 *                        residual. Also, where asked for, stats as layer_norm's
 *  layer_norm_backward   out[r,c] = residual + (g − Σg/c − h·Σ(g·h)/c)·s with h = (x − mean)·s, g =
 *                        gamma·dy; in: x, gamma, stats[r,2] = mean and s, dy, residual, the
 *                        derivative that flows past; over dy or residual. Also, where asked for,
 *                        [3,c]: Σ out, of a bias that was added before the norm, Σ dy·h and Σ dy
 *                        over rows, of gamma and beta. A device gives the same bits each time
 *  softmax               out[r,c] = exp(x − max_r)/Σ; over x
 *  cross_entropy         out[r,c] = (softmax(x)[r,c] − [c = target_r])·scale over the first
 *                        `classes` columns, 0 behind them; in: x, targets[r], whole numbers as
 *                        fp32: below 0 is none, whose row is 0; over x. Also, where asked for,
 *                        loss[r] = log Σ exp x − x[target], 0 without one, NaN where there is no
 *                        such class
 *  patchify              out[b·p, q·q·ch] ← image[b,ch,h,w], q = patch, p = (h/q)·(w/q); patches
 *                        row by row; inside one: row, column, channel, the channel fastest
 *  patchify_layer_norm   layer_norm(patchify(image)); in: image, gamma, beta
 *  embed                 out[b·(p+1), d]: token 0 = class[d], token t = x[b·p, d] row t − 1 of its
 *                        image; + position[p+1, d]; in: x, class, position
 *  embed_tokens          out[r,c] = table[token_r,c] + position[r mod p,c]; in: tokens[r], whole
 *                        numbers as fp32, table[v,c], position[p,c]; NaN where there is no such
 *                        token
 *  embed_tokens_backward
 *                        out[v,c] = base[v,c] + Σ d[r,c] over the rows whose token is v; in:
 *                        tokens, d, base; over base. Tokens that the table lacks are left out. A
 *                        device gives the same bits each time
 *  layer_norm_embed      embed(layer_norm(x)); in: x, gamma, beta, class, position; x is scratch
 *  attention             out[b·t, heads·w] ← qkv[b·t, 3·heads·w]: a row holds all q, then all k,
 *                        then all v, each head by head; softmax(scale·q·kᵀ)·v per image and head;
 *                        tokens = t, heads, scale
 *  flash_attention       out[b,s,h,w] ← q[b,s,h,w], k[b,s,g,w], v[b,s,g,w]: softmax(scale·q·kᵀ)·v
 *                        per batch and head, head i with key and value head i·g/h; h is a multiple
 *                        of g; causal: token t sees tokens 0…t alone, and what later ones hold must
 *                        be finite; w is 64, 96, 128 or 256; scale, causal. Also, where asked
 *                        for, lse[b,h,s] = log Σ exp(scale·q·kᵀ) over the keys that a token sees
 *  flash_attention_backward
 *                        out[b,s,h+2·g,w] ← q, k, v, o, do, lse: the loss's derivatives by q, k and
 *                        v, a token's heads of q, then of k, then of v, side by side as a packed
 *                        projection has them; o and lse are what flash_attention put out, do[b,s,
 *                        h,w] the derivative by o. With p = exp(scale·q·kᵀ − lse) and ds = p·(do·vᵀ
 *                        − Σ do·o): dq = scale·ds·k, dk = scale·dsᵀ·q, dv = pᵀ·do. A device gives
 *                        the same bits each time; w is 64 or 128; scale, causal
 *
 * Training; device/mlp.h says what the tensors hold. They are fp32; `compute` says in which number
 * format products are done, their sums being fp32 in any case.
 *
 *  mlp_forward           out[F] ← x[n,w0], y[n,wl], state: layers, ReLU, which lets NaN through,
 *                        dropout, and the loss: mean of squares over the batch and the outputs; mlp
 *  mlp_backward          out = gradient[P+2] ← x[n,w0], state, work[W]: from what mlp_forward left
 *                        in work, whose second part is scratch; mlp. With a range of layers, those
 *                        alone are written, mse and mae with the last one
 *  mlp_gradient          both; in: x, y, state, work, which is scratch
 *  adam                  out = state[3·S+4] ← state, gradient[P+2]: one update, losses taken over,
 *                        the counter one higher; over state; adam
 *  adamw                 out[P] = parameters, rounded ← gradient[P], state[3,P]: fp32 parameters, m
 *                        and v; control[LAB_ADAMW_CONTROLS]: g = gradient·scale; m, v as adam's;
 *                        p −= rate·(m·bias1/(√(v·bias2) + epsilon) + decay·p), decay for the first
 *                        `decayed` alone, of which those below the threshold in magnitude become 0;
 *                        over gradient; adam, decay, decayed. Also, where asked for, the new state,
 *                        over the old one
 *  clip                  out[1] = n = ‖gradient[P]‖·scale, rounded; in: gradient,
 *                        control[LAB_ADAMW_CONTROLS] with that scale. Also, where asked for, the
 *                        control with n in its place and the scale times min(1, value/n), over the
 *                        old one. A device gives the same bits each time; value, the limit
 *  mlp_step              mlp_gradient and adam; in: x, y, state, work, gradient, both scratch; over
 *                        state; mlp, adam
 */
#define LAB_OPS(X)                                                                                 \
    X(FILL, fill)                                                                                  \
    X(ADD, add)                                                                                    \
    X(BIAS, bias)                                                                                  \
    X(GELU, gelu)                                                                                  \
    X(GELU_TANH, gelu_tanh)                                                                        \
    X(GELU_TANH_BACKWARD, gelu_tanh_backward)                                                      \
    X(GEMM, gemm)                                                                                  \
    X(GEMM_ADD, gemm_add)                                                                          \
    X(GEMM_BIAS, gemm_bias)                                                                        \
    X(GEMM_BIAS_GELU, gemm_bias_gelu)                                                              \
    X(GEMM_BIAS_ADD, gemm_bias_add)                                                                \
    X(GEMM_BIAS_GELU_TANH, gemm_bias_gelu_tanh)                                                    \
    X(GEMM_GELU_TANH_BACKWARD, gemm_gelu_tanh_backward)                                            \
    X(COLUMN_SUM, column_sum)                                                                      \
    X(ACCUMULATE, accumulate)                                                                      \
    X(LAYER_NORM, layer_norm)                                                                      \
    X(RESIDUAL_LAYER_NORM, residual_layer_norm)                                                    \
    X(LAYER_NORM_BACKWARD, layer_norm_backward)                                                    \
    X(SOFTMAX, softmax)                                                                            \
    X(CROSS_ENTROPY, cross_entropy)                                                                \
    X(PATCHIFY, patchify)                                                                          \
    X(PATCHIFY_LAYER_NORM, patchify_layer_norm)                                                    \
    X(EMBED, embed)                                                                                \
    X(EMBED_TOKENS, embed_tokens)                                                                  \
    X(EMBED_TOKENS_BACKWARD, embed_tokens_backward)                                                \
    X(LAYER_NORM_EMBED, layer_norm_embed)                                                          \
    X(ATTENTION, attention)                                                                        \
    X(FLASH_ATTENTION, flash_attention)                                                            \
    X(FLASH_ATTENTION_BACKWARD, flash_attention_backward)                                          \
    X(CLIP, clip)                                                                                  \
    X(ADAMW, adamw)                                                                                \
    X(MLP_FORWARD, mlp_forward)                                                                    \
    X(MLP_BACKWARD, mlp_backward)                                                                  \
    X(MLP_GRADIENT, mlp_gradient)                                                                  \
    X(ADAM, adam)                                                                                  \
    X(MLP_STEP, mlp_step)

/* What adamw reads anew in each step; bias1 is 1/(1 − beta1^t) in step t, from 1 on. */
enum {
    LAB_ADAMW_RATE,
    LAB_ADAMW_SCALE,
    LAB_ADAMW_BIAS1,
    LAB_ADAMW_BIAS2,
    LAB_ADAMW_THRESHOLD,
    LAB_ADAMW_NORM, /* what clip leaves: the gradient's norm, before it was clipped */
    LAB_ADAMW_CONTROLS
};

enum lab_op_id {
#define LAB_OP_ID(upper, lower) LAB_OP_##upper,
    LAB_OPS(LAB_OP_ID)
#undef LAB_OP_ID
        LAB_OP_COUNT
};

/*
 * Flops are those of the definition, whatever a backend does instead: an add, a multiply, a
 * division, a comparison, a root, an exp, an erf and a tanh are one each; moving data is none. For
 * an element that makes: add 1, bias 1, gelu 5, gelu_tanh 8, its backward 14, layer_norm 8, its
 * backward 17, softmax 5, cross_entropy 6, embed 1, a score of attention 6; a gemm has 2·m·n·k. An
 * input's element makes 1 in column_sum and in embed_tokens_backward, 2 in clip and accumulate. A
 * fused op costs the sum of its parts in flops, but its own tensors alone in bytes. flash_attention
 * counts its two products alone and half of them where it is causal, as all who publish its rate
 * do: 4·b·h·s²·w; its backward has five products, 2.5 times that. In training, beside the products,
 * an output of a hidden layer costs 3 (bias, ReLU, scale) and its derivative 2 (scale, the bias's
 * sum); one of the last layer 6 (bias, difference, square, two sums, scale) and its derivative 1; a
 * parameter's update by adam 12, by adamw 19. Of data only the step's rows count as read.
 */
struct lab_cost {
    double flops;
    double bytes_read, bytes_written; /* each tensor once */
};

#define LAB_LAUNCH_INPUTS 6

#define LAB_TUNING_VALUES 8

/*
 * How a kernel is to do it: values for the parameters that the backend declares (device/tunable.h),
 * in their order. Zeroed = as the backend thinks best.
 */
struct lab_tuning {
    int32_t count; /* 0, or as many as there are parameters */
    int32_t values[LAB_TUNING_VALUES];
};

struct lab_launch {
    enum lab_op_id op;
    struct lab_tensor in[LAB_LAUNCH_INPUTS];
    struct lab_tensor out;
    struct lab_tensor also; /* a second output, fp32, of ops that have one; rank 0 = not wanted */
    float value, epsilon, scale, decay;
    bool transpose_a, transpose_b;
    int64_t heads, tokens, patch, classes, decayed;
    bool causal;
    struct lab_mlp mlp;
    struct lab_adam adam;
    enum lab_dtype compute; /* of ops that keep fp32: what products are done in */
    struct lab_tuning tuning;
    struct lab_cost cost; /* set by lab_launch_complete */
};

#define LAB_OP_PARTS 3 /* launches that a fused op falls back to, at most */

struct lab_op {
    const char *name;
    const char *help;
    int inputs;
    /* a backend may lack it and has no composition of it either: its launches are then refused */
    bool optional;
    unsigned singles;   /* bit i: input i is fp32, whatever the others are */
    unsigned over;      /* bit i: the output may be the very memory of input i ("over" above) */
    unsigned also_over; /* the same of the second output */
    bool keeps_fp32;    /* its tensors are fp32 and `compute` says in what it computes */
    /* shapes and parameters fit together; rank, size and dtype were checked before */
    int (*check)(const struct lab_launch *launch, struct lab_err *err);
    double flops; /* for an element of the output, beside what `cost` counts */
    struct lab_cost (*cost)(const struct lab_launch *launch); /* NULL = `flops` alone */
    /* double precision, straight from the definition; `in` and `out` are host arrays */
    void (*reference)(const struct lab_launch *launch, const double *const *in, double *out);
    /* the second output's shape, and the same of it; NULL = the op has none */
    struct lab_tensor (*also)(const struct lab_launch *launch);
    void (*reference_also)(const struct lab_launch *launch, const double *const *in, double *also);
    /*
     * Fused ops: the composition, in order, on the same tensors; returns how many launches. It also
     * holds where the output lies over an input. NULL = the op is elementary.
     */
    int (*lower)(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]);
    /* shapes and parameters of example `index` (tensors without data); -1 behind the last. The op
     * is set already */
    int (*example)(int index, enum lab_dtype dtype, struct lab_launch *launch);
    /* optional: makes of numbers in [-1, 1) what this input of an example may hold; NULL = they
     * may */
    void (*domain)(const struct lab_launch *launch, int input, float *values);
};

const struct lab_op *lab_op_get(enum lab_op_id id);
struct lab_cost lab_op_cost(const struct lab_launch *launch);
/* As its `example`. */
int lab_op_example(enum lab_op_id id, int index, enum lab_dtype dtype,
                   struct lab_launch *ret_launch);

/* The sizes of a gemm, alone or with what is fused to it, both GELUs included. */
struct lab_gemm_shape {
    int64_t m, n, k;
};
struct lab_gemm_shape lab_gemm_shape(const struct lab_launch *launch);
/* Of those that can be tuned: the tanh GELUs can't. */
static inline bool lab_op_is_gemm(enum lab_op_id id) {
    return id >= LAB_OP_GEMM && id <= LAB_OP_GEMM_BIAS_ADD;
}

/* The sizes of a flash_attention or its backward. */
struct lab_flash_shape {
    int64_t batch, tokens, heads, kv_heads, width;
};
struct lab_flash_shape lab_flash_shape(const struct lab_launch *launch);

/* The dtype in which a launch computes: its output's, or `compute`. */
enum lab_dtype lab_launch_dtype(const struct lab_launch *launch);

/*
 * Checks the launch and fills in its cost. Backends get completed launches only. Tensors that have
 * memory must not overlap the output, unless they lie exactly under it and the op allows that.
 */
int lab_launch_complete(struct lab_launch *launch, struct lab_err *err);
