/*
 * kernels_attention.c: attention for one image and head at a time, or for a part of its queries
 * where there are fewer heads than threads. Scores stay in the thread's scratch: they fit the
 * second-level cache.
 */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#define SCORES_BYTES (256 << 10) /* of scratch, unless a few queries already need more */
#define QUERIES_MIN  16          /* fewer make poor products */

struct shape {
    int64_t images, tokens, heads, width;
};

static struct shape shape_of(const struct lab_launch *launch) {
    return (struct shape){lab_tensor_rows(&launch->out) / launch->tokens, launch->tokens,
                          launch->heads, lab_tensor_columns(&launch->out) / launch->heads};
}

static int64_t units(const struct lab_launch *launch, int threads) {
    struct shape s = shape_of(launch);
    int64_t pairs = s.images * s.heads;
    if (threads == 1 || pairs >= 2 * (int64_t)threads)
        return pairs;
    int64_t parts = (2 * (int64_t)threads + pairs - 1) / pairs;
    return pairs * cpu_max(1, cpu_min(parts, s.tokens / QUERIES_MIN));
}

/* Queries [begin, end) of one image and head. */
static void run_queries(const struct lab_launch *launch, const struct cpu_simd *simd,
                        struct shape s, int64_t pair, int64_t begin, int64_t end, float *scores) {
    int64_t dim = s.heads * s.width, stride = 3 * dim;
    int64_t image = pair / s.heads, head = pair % s.heads;
    const float *q = (const float *)launch->in[0].data + image * s.tokens * stride + head * s.width;
    float *out = (float *)launch->out.data + (image * s.tokens + begin) * dim + head * s.width;
    struct cpu_matrix queries = {q + begin * stride, stride, false};
    struct cpu_matrix keys = {q + dim, stride, true}, values = {q + 2 * dim, stride, false};
    int64_t count = end - begin;
    cpu_blas_gemm(count, s.tokens, s.width, launch->scale, queries, keys, 0, scores, s.tokens);
    for (int64_t r = 0; r < count; r++)
        simd->softmax(scores + r * s.tokens, scores + r * s.tokens, s.tokens);
    struct cpu_matrix shares = {scores, s.tokens, false};
    cpu_blas_gemm(count, s.width, s.tokens, 1, shares, values, 0, out, dim);
}

static void run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t unit_count,
                int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    struct shape s = shape_of(launch);
    int64_t parts = unit_count / (s.images * s.heads);
    int64_t row_bytes = s.tokens * (int64_t)sizeof(float);
    int64_t block = cpu_min(s.tokens, cpu_max(QUERIES_MIN, SCORES_BYTES / row_bytes));
    float *scores = cpu_scratch_get(scratch, (size_t)(block * row_bytes));
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t last = cpu_cut(s.tokens, parts, unit % parts + 1, 1);
        for (int64_t first = cpu_cut(s.tokens, parts, unit % parts, 1); first < last;
             first += block)
            run_queries(launch, simd, s, unit / parts, first, cpu_min(first + block, last), scores);
    }
}

const struct cpu_kernel cpu_kernel_attention = {units, run};
