/*
 * kernels_flash_backward.c: the derivatives of attention, a block of queries against a block of
 * keys at a time. Of scores and shares only a block exists at once, in the thread's scratch; the
 * five products are OpenBLAS's, and sums are gathered in the output itself.
 *
 * A unit is one head of keys with all heads of queries that look at it, so no two units write to
 * the same place.
 */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <string.h>

/* Queries or keys: two blocks of scores and what they are made of stay in a cache. */
#define BLOCK INT64_C(192)

enum { Q, K, V, O, D_O, LSE };

static int64_t units(const struct lab_launch *launch, int threads) {
    (void)threads;
    struct lab_flash_shape s = lab_flash_shape(launch);
    return s.batch * s.kv_heads;
}

struct head { /* one of queries, with its keys */
    const float *q, *k, *v, *o, *d_o, *lse;
    float *dq, *dk, *dv;
    int64_t q_stride, kv_stride, out_stride, width;
    float scale;
    bool causal, adds; /* adds: dk and dv hold another head's share */
    float *shares, *scores, *deltas;
};

/* Shares and the scores' derivatives of queries [at, at + count) and keys [key, key + keys). */
static void make_scores(const struct head *h, const struct cpu_simd *simd, int64_t at,
                        int64_t count, int64_t key, int64_t keys) {
    struct cpu_matrix q = {h->q + at * h->q_stride, h->q_stride, false};
    struct cpu_matrix d_o = {h->d_o + at * h->q_stride, h->q_stride, false};
    struct cpu_matrix k = {h->k + key * h->kv_stride, h->kv_stride, true};
    struct cpu_matrix v = {h->v + key * h->kv_stride, h->kv_stride, true};
    cpu_blas_gemm(count, keys, h->width, h->scale, q, k, 0, h->shares, keys);
    cpu_blas_gemm(count, keys, h->width, 1, d_o, v, 0, h->scores, keys);
    for (int64_t r = 0; r < count; r++) {
        float *share = h->shares + r * keys, *score = h->scores + r * keys;
        float delta = h->deltas[at + r];
        int64_t seen = h->causal ? cpu_max(0, cpu_min(keys, at + r + 1 - key)) : keys;
        simd->softmax_write(share, share, seen, h->lse[at + r], 1, false);
        memset(share + seen, 0, (size_t)(keys - seen) * sizeof *share);
        for (int64_t i = 0; i < keys; i++)
            score[i] = share[i] * (score[i] - delta);
    }
}

static void add_products(const struct head *h, int64_t at, int64_t count, int64_t key, int64_t keys,
                         bool first) {
    struct cpu_matrix shares = {h->shares, keys, true}, ds = {h->scores, keys, false};
    struct cpu_matrix turned = {h->scores, keys, true};
    struct cpu_matrix q = {h->q + at * h->q_stride, h->q_stride, false};
    struct cpu_matrix d_o = {h->d_o + at * h->q_stride, h->q_stride, false};
    struct cpu_matrix k = {h->k + key * h->kv_stride, h->kv_stride, false};
    float keep = first ? 0 : 1;
    cpu_blas_gemm(keys, h->width, count, 1, shares, d_o, keep, h->dv + key * h->out_stride,
                  h->out_stride);
    cpu_blas_gemm(keys, h->width, count, h->scale, turned, q, keep, h->dk + key * h->out_stride,
                  h->out_stride);
    cpu_blas_gemm(count, h->width, keys, h->scale, ds, k, key > 0 ? 1 : 0,
                  h->dq + at * h->out_stride, h->out_stride);
}

static void run_head(const struct head *h, const struct cpu_simd *simd, int64_t tokens) {
    for (int64_t t = 0; t < tokens; t++) {
        double sum = 0;
        for (int64_t w = 0; w < h->width; w++)
            sum += (double)h->d_o[t * h->q_stride + w] * (double)h->o[t * h->q_stride + w];
        h->deltas[t] = (float)sum;
    }
    for (int64_t key = 0; key < tokens; key += BLOCK) {
        int64_t keys = cpu_min(BLOCK, tokens - key), begin = h->causal ? key : 0;
        for (int64_t at = begin; at < tokens; at += BLOCK) {
            int64_t count = cpu_min(BLOCK, tokens - at);
            make_scores(h, simd, at, count, key, keys);
            add_products(h, at, count, key, keys, at == begin && !h->adds);
        }
    }
}

static void run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t unit_count,
                int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)unit_count;
    struct lab_flash_shape s = lab_flash_shape(launch);
    int64_t group = s.heads / s.kv_heads, all = s.heads + 2 * s.kv_heads;
    float *memory =
        cpu_scratch_get(scratch, (size_t)(2 * BLOCK * BLOCK + s.tokens) * sizeof *memory);
    for (int64_t i = begin * group; i < end * group; i++) {
        int64_t image = i / s.heads, head = i % s.heads, kv_head = head / group;
        int64_t q = (image * s.tokens * s.heads + head) * s.width;
        int64_t kv = (image * s.tokens * s.kv_heads + kv_head) * s.width;
        float *out = (float *)launch->out.data + image * s.tokens * all * s.width;
        struct head h = {
            .q = (const float *)launch->in[Q].data + q,
            .k = (const float *)launch->in[K].data + kv,
            .v = (const float *)launch->in[V].data + kv,
            .o = (const float *)launch->in[O].data + q,
            .d_o = (const float *)launch->in[D_O].data + q,
            .lse = (const float *)launch->in[LSE].data + i * s.tokens,
            .dq = out + head * s.width,
            .dk = out + (s.heads + kv_head) * s.width,
            .dv = out + (s.heads + s.kv_heads + kv_head) * s.width,
            .q_stride = s.heads * s.width,
            .kv_stride = s.kv_heads * s.width,
            .out_stride = all * s.width,
            .width = s.width,
            .scale = launch->scale,
            .causal = launch->causal,
            .adds = head % group > 0,
            .shares = memory,
            .scores = memory + BLOCK * BLOCK,
            .deltas = memory + 2 * BLOCK * BLOCK,
        };
        run_head(&h, simd, s.tokens);
    }
}

const struct cpu_kernel cpu_kernel_flash_backward = {units, run};
