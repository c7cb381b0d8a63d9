/*
 * mlp_batch.cu: a training step of a large batch, whose products are a library's
 * (src/device/mlp.h says what lies where, plan_mlp_batch.c in which order all of it is done).
 *
 *     mlp_take      the step's rows of x and all weights, as products take them
 *     mlp_outputs   bias, ReLU and dropout behind a hidden layer's product
 *     mlp_head      the last layer, its gradient, and the derivatives by its inputs
 *     mlp_deltas    ReLU and dropout of a hidden layer, backward
 *     mlp_finish    Adam and the losses, or what products have left of the gradient
 *
 * A factor of products is an `element`, in tf32 a float that is rounded already: the matrix units
 * would cut it off. Rows of x, and of the first layer's weights and gradient, are X_PITCH long,
 * zeros behind the inputs, so that rows are aligned whatever the inputs are.
 *
 * Sums over the batch go through partial sums of blocks, in an order that never changes.
 *
 * MODE      3: gradients, 7: with the update
 * W0 .. W7  widths, 0 behind the last one; hidden ones are multiples of 32
 *
 * On an H200 a step of the large model at batch 1024 takes 127 µs in bf16, 217 in tf32 and 438 in
 * fp32. Its 12.4 GFLOP alone would take 19 µs at the 663 TFLOP/s of a large bf16 product. What the
 * rest goes to was not taken apart.
 */
#ifndef MODE
#define MODE 3
#endif
#include "common.cuh"
#include "mlp_adam.cuh"
#include "mlp_model.cuh"
#include "mlp_products.cuh"
#include "mlp_step.cuh"

#define BATCH_THREADS 256
#define DELTA_ROWS    32 /* of a block of mlp_deltas */
#define DELTA_COLUMNS 128
#define HEAD_ROWS     16 /* of a block of mlp_head */
#define HEAD_WARPS    (BATCH_THREADS / 32)

/* --- factors --- */

__device__ __forceinline__ element factor_of(float x) {
#if DTYPE == 1
    return __uint_as_float(tf32(x));
#else
    return from_float(x);
#endif
}

__device__ __forceinline__ void store_factors(element *to, const float v[4]) {
#if DTYPE <= 1
    *(float4 *)to = make_float4(factor_of(v[0]), factor_of(v[1]), factor_of(v[2]), factor_of(v[3]));
#else
    *(uint2 *)to = make_uint2(pack(v[0], v[1]), pack(v[2], v[3]));
#endif
}

__device__ __forceinline__ void load_floats(float to[4], const float *from) {
    float4 four = *(const float4 *)from;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

__device__ __forceinline__ void load_factors(float to[4], const element *from) {
#if DTYPE <= 1
    load_floats(to, from);
#else
    uint2 four = *(const uint2 *)from;
    to[0] = to_float((element)(four.x & 0xffff)), to[1] = to_float((element)(four.x >> 16));
    to[2] = to_float((element)(four.y & 0xffff)), to[3] = to_float((element)(four.y >> 16));
#endif
}

#ifdef W0
constexpr int X_PITCH = up(INPUTS, 32), HEAD_IN = width(LAYERS - 1);
/* of a block's sums in mlp_head: the last layer's gradient, then that of the biases before it */
constexpr int HEAD_FLOATS = (HEAD_IN + 1) * OUTPUTS + HEAD_IN;
#endif

/* --- before the products --- */

#ifdef MAKE_mlp_take
/* [lines, INPUTS] to [lines, X_PITCH]. */
__device__ __forceinline__ void widen(element *to, const float *from, s64 lines, s64 thread,
                                      s64 threads) {
    for (s64 i = thread; i < lines * X_PITCH; i += threads) {
        int column = (int)(i % X_PITCH);
        to[i] = factor_of(column < INPUTS ? from[i / X_PITCH * INPUTS + column] : 0.0f);
    }
}

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    mlp_take(const float *x, const float *state, element *to_x, element *to_weights, float *to_rate,
             s64 batch, s64 first_row, s64 rows, s64 batches, float rate, float beta1,
             float beta2) {
    wait_for_previous();
    s64 step = step_of(state + 3 * STRIDE);
    s64 row = batch_of(step, batches) * batch + first_row;
    s64 thread = (s64)blockIdx.x * BATCH_THREADS + threadIdx.x;
    s64 threads = (s64)gridDim.x * BATCH_THREADS;
    if (thread == threads - 1)
        *to_rate = corrected_rate(rate, beta1, beta2, step);
    widen(to_x, x + row * INPUTS, rows, thread, threads);
    widen(to_weights, state, W1, thread, threads);
    if (DTYPE > 0) /* the gap behind the parameters is read and written along */
        for (s64 i = 4 * thread; i < PARAMETERS - weight_at(1); i += 4 * threads) {
            float four[4];
            load_floats(four, state + weight_at(1) + i);
            store_factors(to_weights + W1 * X_PITCH + i, four);
        }
}
#endif

/* --- behind a hidden layer's product --- */

#ifdef MAKE_mlp_outputs
struct drawn {
    s64 first_row, step;
    u32 threshold;
    u64 seed;
};

/* A thread has four neighbours of each 16 columns in a group of 128: four blocks of numbers. */
extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    mlp_outputs(const float *sums, const float *bias, const float *tail, element *to, u64 seed,
                s64 first_row, s64 rows, int columns, int layer, int threshold, float scale) {
    wait_for_previous();
    int across = (columns + 127) / 128 * 4;
    s64 index = (s64)blockIdx.x * BATCH_THREADS + threadIdx.x, row = index / across;
    int group = (int)(index % across) / 4, lane = (int)(index % across) % 4 * 4;
    if (row >= rows)
        return;
    int column = group * 128 + lane;
    float v[8][4], b[8][4];
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (column + 16 * j < columns) {
            load_floats(v[j], sums + row * columns + column + 16 * j);
            load_floats(b[j], bias + column + 16 * j);
        }
    drawn s = {first_row, step_of(tail), (u32)threshold, seed};
    u32 kept[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        kept[i] = threshold ? kept_of(s, layer, (int)row, group * 16 + lane + i) : ~0u;
#pragma unroll
    for (int j = 0; j < 8; j++)
        if (column + 16 * j < columns) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                v[j][i] += b[j][i];
                v[j][i] = v[j][i] <= 0 || !(kept[i] >> j & 1) ? 0 : v[j][i] * scale;
            }
            store_factors(to + row * columns + column + 16 * j, v[j]);
        }
}
#endif

/* --- the last layer --- */

#ifdef MAKE_mlp_head
constexpr int EACH = HEAD_IN / 32; /* inputs of a lane: lane, lane + 32, ... */

/* What a warp's lanes have gathered, added to a block's sums. */
__device__ __forceinline__ void gather(float *total, const float gradient[OUTPUTS][EACH],
                                       const float last[OUTPUTS], const float before[EACH]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++)
            total[o * HEAD_IN + lane + 32 * k] += gradient[o][k];
        total[OUTPUTS * (HEAD_IN + 1) + lane + 32 * k] += before[k];
    }
    if (lane == 0)
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++)
            total[OUTPUTS * HEAD_IN + o] += last[o];
}

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    mlp_head(const element *input, const element *weight, const float *bias, const float *y,
             const float *tail, float *to_last, element *to_before, float *partial, s64 batch,
             s64 first_row, s64 rows, s64 batches, float scale, float loss_factor) {
    __shared__ float total[HEAD_FLOATS];
    wait_for_previous();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    y += (batch_of(step_of(tail), batches) * batch + first_row) * OUTPUTS;
    float w[OUTPUTS][EACH], gradient[OUTPUTS][EACH] = {}, last[OUTPUTS] = {}, before[EACH] = {};
#pragma unroll
    for (int i = 0; i < OUTPUTS * EACH; i++)
        w[i / EACH][i % EACH] = to_float(weight[i / EACH * HEAD_IN + lane + 32 * (i % EACH)]);
    for (int i = threadIdx.x; i < HEAD_FLOATS; i += BATCH_THREADS)
        total[i] = 0;
#pragma unroll 1
    for (int i = warp; i < HEAD_ROWS; i += HEAD_WARPS) {
        s64 row = (s64)blockIdx.x * HEAD_ROWS + i;
        if (row >= rows)
            break;
        float a[EACH], factor[OUTPUTS];
#pragma unroll
        for (int k = 0; k < EACH; k++)
            a[k] = to_float(input[row * HEAD_IN + lane + 32 * k]);
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < EACH; k++)
                sum = fmaf(a[k], w[o][k], sum);
            sum = (warp_sum(sum) + bias[o] - y[row * OUTPUTS + o]) * loss_factor;
            if (lane == 0)
                to_last[row * OUTPUTS + o] = sum;
            last[o] += sum;
            factor[o] = to_float(factor_of(sum));
        }
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            float sum = 0;
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++) {
                sum = fmaf(factor[o], w[o][k], sum);
                gradient[o][k] = fmaf(factor[o], a[k], gradient[o][k]);
            }
            sum = a[k] == 0 ? 0 : sum * scale;
            before[k] += sum;
            to_before[row * HEAD_IN + lane + 32 * k] = factor_of(sum);
        }
    }
    for (int i = 0; i < HEAD_WARPS; i++) {
        __syncthreads();
        if (warp == i)
            gather(total, gradient, last, before);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HEAD_FLOATS; i += BATCH_THREADS)
        partial[(s64)blockIdx.x * HEAD_FLOATS + i] = total[i];
}
#endif

/* --- a hidden layer, backward --- */

#ifdef MAKE_mlp_deltas
/* `to` may be `sums`. A block's sums of its rows go to line blockIdx.x of `partial`. */
extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    mlp_deltas(const float *sums, const element *output, element *to, float *partial, s64 rows,
               int columns, float scale) {
    __shared__ float4 shared[HEAD_WARPS][32];
    wait_for_previous();
    int lane = threadIdx.x % 32, line = threadIdx.x / 32;
    int column = (int)blockIdx.y * DELTA_COLUMNS + lane * 4;
    float4 total = {0, 0, 0, 0};
    float v[DELTA_ROWS / HEAD_WARPS][4], out[DELTA_ROWS / HEAD_WARPS][4];
    s64 first = (s64)blockIdx.x * DELTA_ROWS + line;
#pragma unroll
    for (int i = 0; i < DELTA_ROWS / HEAD_WARPS; i++) {
        s64 row = first + i * HEAD_WARPS;
        if (row < rows && column < columns) {
            load_floats(v[i], sums + row * columns + column);
            load_factors(out[i], output + row * columns + column);
        }
    }
#pragma unroll
    for (int i = 0; i < DELTA_ROWS / HEAD_WARPS; i++) {
        s64 row = first + i * HEAD_WARPS;
        if (row < rows && column < columns) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[i][j] = out[i][j] == 0 ? 0 : v[i][j] * scale;
            store_factors(to + row * columns + column, v[i]);
            total.x += v[i][0], total.y += v[i][1], total.z += v[i][2], total.w += v[i][3];
        }
    }
    shared[line][lane] = total;
    __syncthreads();
    if (line || column >= columns)
        return;
#pragma unroll
    for (int i = 1; i < HEAD_WARPS; i++) {
        float4 other = shared[i][lane];
        total.x += other.x, total.y += other.y, total.z += other.z, total.w += other.w;
    }
    *(float4 *)(partial + (s64)blockIdx.x * columns + column) = total;
}
#endif

/* --- the end --- */

#ifdef MAKE_mlp_finish
struct leftovers {               /* of the gradient */
    const float *first;          /* of layer 0's weights: [W1, X_PITCH] */
    const float *deltas, *heads; /* partial sums of mlp_deltas, layer by layer, and of mlp_head */
    int delta_blocks, head_blocks;
};

/* Four neighbours, `count` of them there, of lines that are `pitch` apart. */
__device__ __forceinline__ void add_lines(float to[4], const float *from, int lines, int pitch,
                                          int count) {
#pragma unroll
    for (int j = 0; j < 4; j++)
        to[j] = 0;
#pragma unroll 8
    for (int i = 0; i < lines; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            to[j] += j < count ? from[(s64)i * pitch + j] : 0;
}

/* The gradient of parameters [at, at + 4), all of one layer's weights or of its biases: lengths
 * are multiples of 4, but for the last layer's. Returns whether they were in their place. */
template <int LAYER>
__device__ __forceinline__ bool find_gradient(float to[4], const step_data &s, const leftovers &l,
                                              int at, int count) {
    constexpr int IN = width(LAYER), OUT = width(LAYER + 1);
    if constexpr (LAYER + 1 < LAYERS)
        if (at >= weight_at(LAYER + 1))
            return find_gradient<LAYER + 1>(to, s, l, at, count);
    int inside = at - weight_at(LAYER), column = inside - IN * OUT;
    if (LAYER == LAYERS - 1)
        add_lines(to, l.heads + inside, l.head_blocks, HEAD_FLOATS, count);
    else if (column >= 0 && LAYER == LAYERS - 2)
        add_lines(to, l.heads + OUTPUTS * (HEAD_IN + 1) + column, l.head_blocks, HEAD_FLOATS, 4);
    else if (column >= 0)
        add_lines(to, l.deltas + (s64)l.delta_blocks * output_at(LAYER) + column, l.delta_blocks,
                  OUT, 4);
    else if (LAYER == 0)
#pragma unroll
        for (int j = 0; j < 4; j++)
            to[j] = l.first[(inside + j) / INPUTS * X_PITCH + (inside + j) % INPUTS];
    else {
        load_floats(to, s.gradient + at);
        return true;
    }
    return false;
}

/* The last block has the losses. */
extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    mlp_finish(const float *state, float *work, float *gradient, float *new_state,
               const float *first, const float *deltas, const float *heads, const float *rate,
               s64 batch, s64 rows, float beta1, float beta2, float epsilon) {
    __shared__ double shared[2 * HEAD_WARPS];
    wait_for_previous();
    step_data s = {nullptr, nullptr, state, work, gradient, new_state, (int)rows};
    if (blockIdx.x == gridDim.x - 1) {
        s.step = step_of(state + 3 * STRIDE);
        finish_losses<HEAD_WARPS>(s, (double)batch, (int)threadIdx.x, shared,
                                  [] { __syncthreads(); });
        return;
    }
    int at = (int)(blockIdx.x * BATCH_THREADS + threadIdx.x) * 4;
    if (at >= PARAMETERS)
        return;
    leftovers l = {first, deltas, heads, (int)((rows + DELTA_ROWS - 1) / DELTA_ROWS),
                   (int)((rows + HEAD_ROWS - 1) / HEAD_ROWS)};
    int count = PARAMETERS - at < 4 ? PARAMETERS - at : 4;
    float four[4];
    bool there = find_gradient<0>(four, s, l, at, count);
    adam_factors adam = {*rate, 1 - beta1, 1 - beta2, epsilon};
    if (UPDATE)
        adam_some<4>(adam, state, new_state, STRIDE, at, four, count);
    else if (!there)
        for (int j = 0; j < count; j++)
            gradient[at + j] = four[j];
}
#endif
