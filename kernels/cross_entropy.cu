/*
 * cross_entropy.cu: a classifier's loss and its derivative by the logits, for logits x[rows,
 * columns], of which the first `classes` count, and one target of each row:
 *
 *     loss[r] = log Σ exp x − x[target]   out[r,c] = (exp x / Σ exp x − [c = target]) · scale
 *
 * Three passes over a row: its largest, the sum, the derivatives. What a language model has, 50257
 * classes, is 98 KiB in bf16: too much for a thread's registers, but not for a block's. So the block
 * keeps the row there, PIECES · 16 bytes in each thread, as it lies in memory: it is read once and
 * written once, and may be written over itself. Exponentials are taken twice rather than kept, as
 * in fp32 they would have twice the registers. What is behind the classes becomes −∞ when it is
 * loaded: its share is then 0 and no later pass knows of it.
 *
 *     cross_entropy        macros: THREADS PIECES; columns are whole pieces and rows begin at one
 *     cross_entropy_long   any row; it is read three times, mostly from the L2 cache
 *     grid:                a block for each row
 *     targets              whole numbers as fp32; below 0: none, the row is 0 and so is its loss; one
 *                          that isn't among the classes gives NaN
 *     losses               NULL: not wanted
 *
 * Memory bounds it. Two blocks of 512 threads share a multiprocessor: one loads or stores while the
 * other computes. On an H200, whose copies reach 4.3 TB/s, 8192 rows of 50304 in bf16 go at 3.8.
 */
#include "common.cuh"

#define LOG2E 1.4426950408889634f
#define LN2   0.6931471805599453f

struct aim { /* of a row */
    int target;
    float scale, value; /* value: the target's logit, in thread 0 */
};

__device__ __forceinline__ struct aim aim_at(const element *x, float target, int classes,
                                             float scale) {
    struct aim aim = {(int)target, scale, 0.0f};
    if (!(target >= 0.0f && target < (float)classes)) {
        aim.scale = target < 0.0f ? 0.0f : __int_as_float(0x7fc00000);
        aim.target = -1;
    } else if (threadIdx.x == 0) {
        aim.value = to_float(x[aim.target]);
    }
    return aim;
}

/* `top` is in powers of two. */
__device__ __forceinline__ float loss_of(const struct aim *aim, float top, float sum) {
    float loss = (top + log2_fast(sum)) * LN2 - aim->value;
    return aim->target >= 0 ? loss : aim->scale; /* which is 0 or NaN then */
}

#ifdef MAKE_cross_entropy
extern "C" __global__ void __launch_bounds__(THREADS, 1024 / THREADS)
    cross_entropy(const element *x, const float *targets, element *out, float *losses, int columns,
                  int classes, float scale) {
    __shared__ float shared[32];
    union chunk held[PIECES];
    wait_for_previous();
    x += (s64)blockIdx.x * columns;
    out += (s64)blockIdx.x * columns;
    struct aim aim = aim_at(x, targets[blockIdx.x], classes, scale);
    int first = (int)threadIdx.x * PER_16_BYTES;
    const float none = __int_as_float(0xff800000);
    float top = none, sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = first + p * THREADS * PER_16_BYTES;
        held[p].bits = c < columns ? *(const uint4 *)(x + c) : make_uint4(0u, 0u, 0u, 0u);
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = first + p * THREADS * PER_16_BYTES;
        if (c + PER_16_BYTES > classes)
#pragma unroll
            for (int i = 0; i < PER_16_BYTES; i++)
                held[p].items[i] = c + i < classes ? held[p].items[i] : from_float(none);
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            top = fmaxf(top, to_float(held[p].items[i]));
    }
    top = row_max<THREADS>(top, shared) * LOG2E;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        remake(&held[p]);
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            sum += exp2_fast(fmaf(to_float(held[p].items[i]), LOG2E, -top));
    }
    sum = row_sum<THREADS>(sum, shared);
    float factor = aim.scale / sum;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = first + p * THREADS * PER_16_BYTES;
        remake(&held[p]);
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++) {
            float y = exp2_fast(fmaf(to_float(held[p].items[i]), LOG2E, -top)) * factor;
            held[p].items[i] = from_float(c + i == aim.target ? y - aim.scale : y);
        }
        if (c < columns)
            *(uint4 *)(out + c) = held[p].bits;
    }
    if (losses && threadIdx.x == 0)
        losses[blockIdx.x] = loss_of(&aim, top, sum);
}
#endif

#ifdef MAKE_cross_entropy_long
#define THREADS 1024

extern "C" __global__ void __launch_bounds__(THREADS)
    cross_entropy_long(const element *x, const float *targets, element *out, float *losses,
                       int columns, int classes, float scale) {
    __shared__ float shared[32];
    wait_for_previous();
    x += (s64)blockIdx.x * columns;
    out += (s64)blockIdx.x * columns;
    struct aim aim = aim_at(x, targets[blockIdx.x], classes, scale);
    float top = __int_as_float(0xff800000), sum = 0.0f;
    for (int c = (int)threadIdx.x; c < classes; c += THREADS)
        top = fmaxf(top, to_float(x[c]));
    top = row_max<THREADS>(top, shared) * LOG2E;
    for (int c = (int)threadIdx.x; c < classes; c += THREADS)
        sum += exp2_fast(fmaf(to_float(x[c]), LOG2E, -top));
    sum = row_sum<THREADS>(sum, shared);
    float factor = aim.scale / sum;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS) {
        float y = c < classes ? exp2_fast(fmaf(to_float(x[c]), LOG2E, -top)) * factor : 0.0f;
        out[c] = from_float(c == aim.target ? y - aim.scale : y);
    }
    if (losses && threadIdx.x == 0)
        losses[blockIdx.x] = loss_of(&aim, top, sum);
}
#endif
