/*
 * kernels_flash.c: attention of any length, a block of queries at a time against one block of keys
 * after the other. Of the scores only a block exists at once, in the thread's scratch; each block's
 * exponentials count from the largest score so far, and what was summed before is brought down to
 * that (Dao et al. 2022). The two products are OpenBLAS's.
 *
 * A causal block is cut at the diagonal: keys behind its last query aren't looked at, and of the
 * others each row uses what it may see.
 */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <math.h>
#include <string.h>

enum { BLOCK_Q, BLOCK_K, PARAMETERS };

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"block_q", "queries per block", LAB_CHOICES(16, 32, 64, 96, 128, 192, 256, 384, 512)},
    {"block_k", "keys per step", LAB_CHOICES(64, 128, 192, 256, 384, 512, 1024)},
};

#define SCORES_BYTES ((int64_t)1 << 20) /* more of them leave every second-level cache */

static void cpu_flash_fallback(const struct lab_tunable_place *place,
                               const struct lab_launch *launch, struct lab_tuning *ret_tuning) {
    (void)place;
    int64_t tokens = lab_flash_shape(launch).tokens;
    *ret_tuning = (struct lab_tuning){.count = PARAMETERS};
    ret_tuning->values[BLOCK_Q] = tokens >= 512   ? 256
                                  : tokens >= 256 ? 128
                                  : tokens >= 64  ? 64
                                                  : 16;
    ret_tuning->values[BLOCK_K] = tokens >= 512 ? 256 : tokens >= 128 ? 128 : 64;
}

/* A block that is larger than the sequence by more than its rounding is another one's twin. */
static int check_block(const char *name, int64_t block, int64_t tokens, int64_t least,
                       struct lab_err *err) {
    if (block == least || block < 2 * tokens)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s=%lld: the sequence has only %lld tokens", name,
                       (long long)block, (long long)tokens);
}

static int cpu_flash_check(const struct lab_tunable_place *place, const struct lab_launch *launch,
                           const struct lab_tuning *tuning, struct lab_err *err) {
    (void)place;
    int64_t tokens = lab_flash_shape(launch).tokens;
    int64_t block_q = tuning->values[BLOCK_Q], block_k = tuning->values[BLOCK_K];
    if (check_block("block_q", block_q, tokens, parameters[BLOCK_Q].choices[0], err) ||
        check_block("block_k", block_k, tokens, parameters[BLOCK_K].choices[0], err))
        return -1;
    if (block_q * block_k * (int64_t)sizeof(float) > SCORES_BYTES)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_q=%lld with block_k=%lld: scores of a block take more than 1 MiB",
                           (long long)block_q, (long long)block_k);
    return 0;
}

const struct lab_tunable cpu_tunable_flash = {
    .kernel = "cpu flash_attention",
    .version = "1",
    .parameters = parameters,
    .count = PARAMETERS,
    .fallback = cpu_flash_fallback,
    .check = cpu_flash_check,
};

static int64_t blocks_of(struct lab_flash_shape s, const struct lab_tuning *tuning) {
    return (s.tokens + tuning->values[BLOCK_Q] - 1) / tuning->values[BLOCK_Q];
}

static int64_t units(const struct lab_launch *launch, int threads) {
    (void)threads;
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct lab_tuning tuning = cpu_tuning_of(&cpu_tunable_flash, launch);
    return s.batch * s.heads * blocks_of(s, &tuning);
}

struct block { /* of queries, of one batch and head */
    const float *q, *k, *v;
    float *out, *lse; /* lse: NULL where it isn't wanted */
    int64_t q_stride, kv_stride, width;
    int64_t first, count; /* which queries */
    float scale;
    bool causal;
    float *scores, *tops, *sums;
};

/* The first of a row's keys in [at, at + count) that it doesn't see, from `at`. */
static int64_t seen(const struct block *b, int64_t row, int64_t at, int64_t count) {
    return b->causal ? cpu_max(0, cpu_min(count, b->first + row + 1 - at)) : count;
}

/* Exponentials of a block of scores; what came before is brought down to the new maximum. */
static void weigh(const struct block *b, const struct cpu_simd *simd, int64_t at, int64_t count) {
    for (int64_t r = 0; r < b->count; r++) {
        float *row = b->scores + r * count;
        int64_t visible = seen(b, r, at, count);
        float factor = 1;
        if (visible > 0)
            factor = simd->softmax_part(row, row, visible, &b->tops[r], &b->sums[r]);
        if (visible < count)
            memset(row + visible, 0, (size_t)(count - visible) * sizeof *row);
        float *out = b->out + r * b->q_stride;
        if (factor != 1.0f && at > 0)
            simd->scale(out, out, b->width, factor, false);
    }
}

static void run_block(const struct block *b, const struct cpu_simd *simd, int64_t tokens,
                      int64_t block_k) {
    int64_t end = b->causal ? b->first + b->count : tokens;
    for (int64_t r = 0; r < b->count; r++) {
        b->tops[r] = -INFINITY;
        b->sums[r] = 0;
    }
    struct cpu_matrix queries = {b->q, b->q_stride, false};
    for (int64_t at = 0; at < end; at += block_k) {
        int64_t count = cpu_min(block_k, end - at);
        struct cpu_matrix keys = {b->k + at * b->kv_stride, b->kv_stride, true};
        struct cpu_matrix values = {b->v + at * b->kv_stride, b->kv_stride, false};
        struct cpu_matrix shares = {b->scores, count, false};
        cpu_blas_gemm(b->count, count, b->width, b->scale, queries, keys, 0, b->scores, count);
        weigh(b, simd, at, count);
        cpu_blas_gemm(b->count, b->width, count, 1, shares, values, at > 0 ? 1 : 0, b->out,
                      b->q_stride);
    }
    for (int64_t r = 0; r < b->count; r++) {
        float *out = b->out + r * b->q_stride;
        simd->scale(out, out, b->width, 1.0f / b->sums[r], false);
        if (b->lse)
            b->lse[r] = b->tops[r] + logf(b->sums[r]);
    }
}

static void run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t unit_count,
                int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)unit_count;
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct lab_tuning tuning = cpu_tuning_of(&cpu_tunable_flash, launch);
    int64_t block_q = tuning.values[BLOCK_Q], block_k = tuning.values[BLOCK_K];
    int64_t blocks = blocks_of(s, &tuning), scores = block_q * block_k;
    float *memory = cpu_scratch_get(scratch, (size_t)(scores + 2 * block_q) * sizeof *memory);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t pair = unit / blocks, image = pair / s.heads, head = pair % s.heads;
        /* the last block of a causal sequence has most to do, so it comes first */
        int64_t first = (blocks - 1 - unit % blocks) * block_q;
        int64_t q = ((image * s.tokens + first) * s.heads + head) * s.width;
        int64_t kv = (image * s.tokens * s.kv_heads + head * s.kv_heads / s.heads) * s.width;
        struct block b = {
            .q = (const float *)launch->in[0].data + q,
            .k = (const float *)launch->in[1].data + kv,
            .v = (const float *)launch->in[2].data + kv,
            .out = (float *)launch->out.data + q,
            .lse = launch->also.rank ? (float *)launch->also.data + pair * s.tokens + first : NULL,
            .q_stride = s.heads * s.width,
            .kv_stride = s.kv_heads * s.width,
            .width = s.width,
            .first = first,
            .count = cpu_min(block_q, s.tokens - first),
            .scale = launch->scale,
            .causal = launch->causal,
            .scores = memory,
            .tops = memory + scores,
            .sums = memory + scores + block_q,
        };
        run_block(&b, simd, s.tokens, block_k);
    }
}

const struct cpu_kernel cpu_kernel_flash = {units, run};
