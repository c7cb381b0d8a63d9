/*
 * mlp.cu: training steps of a multilayer perceptron (src/device/mlp.h says what lies where), each
 * op one kernel. As many blocks as there are multiprocessors stay for the whole step and go through
 * phases, with a barrier among all blocks between two of them:
 *
 *     forward    layer 0 | layer 1 | ... | layer L-1
 *     backward   d(L-2), losses | d(L-3), gradient L-1 | ... | d(0), gradient 2 | gradients 1 and 0
 *
 * d(l) are the derivatives by the outputs of layer l before ReLU, made from those of layer l + 1
 * and its weights. A layer's gradient comes one phase after the last use of its weights, so that
 * Adam can be done right behind it, and the gradient never leaves the block.
 *
 * A product is cut into tiles of 32 x 32, or of 16 x 8 where there are few. Warps share a tile by
 * cutting the inner dimension, and add up in shared memory. Operands come from the second-level
 * cache straight into registers, each number once for a tile, 16 of the inner dimension at a time.
 * Which of them a thread gets is free as long as both operands agree, and so are the places of rows
 * and columns in a matrix instruction: they are chosen so that every load is of 16 bytes, however a
 * matrix lies.
 *
 * Models whose widths suit it have kernels of their own, which are compiled for them (mlp_rows.cu,
 * mlp_wide.cu).
 *
 * MODE  what is done, a bit each: 1 forward, 2 backward, 4 update
 *
 * DTYPE is what products are done in; everything else is fp32.
 *
 * What bounds it is waiting: for the second-level cache, for barriers, and for instructions that
 * depend on each other. On an H200 in tf32 a step of the medium model took 39 µs at batch 16, of the
 * large one 110; the kernels compiled for their widths took 18.5 and 42.6.
 */
#include "common.cuh"
#include "mlp_adam.cuh"
#include "mlp_products.cuh"
#include "mlp_step.cuh"

#ifdef MAKE_adam
__device__ u32 blocks_done; /* 0 before and after a launch */

/* The counter, which all blocks read, is changed by the last one that has. */
extern "C" __global__ void __launch_bounds__(256)
    adam(const float *state, const float *gradient, float *new_state, s64 parameters, s64 stride,
         float rate, float beta1, float beta2, float epsilon) {
    __shared__ float shared_rate;
    wait_for_previous();
    if (threadIdx.x == 0) {
        s64 step = step_of(state + 3 * stride);
        shared_rate = corrected_rate(rate, beta1, beta2, step);
        __threadfence();
        if (atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1)
            write_tail(new_state + 3 * stride, step, gradient[parameters],
                       gradient[parameters + 1]);
    }
    __syncthreads();
    adam_factors factors = {shared_rate, 1 - beta1, 1 - beta2, epsilon};
    s64 at = ((s64)blockIdx.x * blockDim.x + threadIdx.x) * 4;
    float four[4];
    int count = at >= parameters ? 0 : parameters - at < 4 ? (int)(parameters - at) : 4;
#pragma unroll
    for (int i = 0; i < 4; i++)
        four[i] = i < count ? gradient[at + i] : 0;
    adam_some<4>(factors, state, new_state, stride, at, four, count);
    if (blockIdx.x == 0 && new_state != state)
        for (int i = threadIdx.x; i < 3 * (int)(stride - parameters); i += blockDim.x) {
            s64 gap = i / (stride - parameters) * stride + parameters + i % (stride - parameters);
            new_state[gap] = state[gap];
        }
}
#endif

#ifdef MAKE_mlp

/* --- what all phases know --- */

struct step_data {
    const float *x, *y; /* from the step's first row on */
    const float *state;
    float *work, *gradient, *new_state;
    int widths[8];
    s64 weights_at[8], outputs_at[8]; /* by layer; behind the last layer: the ends */
    int layers, rows;
    s64 batch, first_row, parameters, stride, step;
    u32 threshold;
    u64 seed;
    float scale, loss_factor;
    adam_factors adam;
    barrier_data barrier;
};

__device__ __forceinline__ s64 round_up(s64 count) {
    return (count + 31) / 32 * 32;
}

__device__ s64 delta_at(const step_data &s, int layer) {
    s64 at = s.outputs_at[layer];
    return layer == s.layers - 1 ? at : round_up(s.outputs_at[s.layers] + 2) + at;
}

__device__ const float *input_of(const step_data &s, int layer) {
    return layer ? s.work + s.outputs_at[layer - 1] : s.x;
}

/* --- behind the products --- */

template <int W> __device__ __forceinline__ void store(float *to, const float v[W], int count) {
    if (W == 4 && count == 4 && aligned(to)) {
        *(float4 *)to = make_float4(v[0], v[1 % W], v[2 % W], v[3 % W]);
        return;
    }
#pragma unroll
    for (int i = 0; i < W; i++)
        if (i < count)
            to[i] = v[i];
}

enum { OUTPUTS, DELTAS, GRADIENTS };

/* W neighbours of a row of the product, `count` of them there. */
template <int KIND, int W>
__device__ __forceinline__ void finish(const step_data &s, const product &p, int layer, int row,
                                       int column, float v[W], int count) {
    s64 at = (s64)row * p.n + column;
    if (KIND == OUTPUTS) {
        const float *bias = s.state + s.weights_at[layer] + (s64)p.n * p.k + column;
        bool is_last = layer + 1 == s.layers;
        u32 kept = is_last || !s.threshold ? ~0u : 0;
        if (!kept)
#pragma unroll 1
            for (int i = 0; i < W; i++) {
                int c = column + i;
                kept |= (kept_of(s, layer, row, c / 128 * 16 + c % 16) >> (c / 16 % 8) & 1) << i;
            }
        float *to = s.work + s.outputs_at[layer] + at;
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < count) {
                v[i] += bias[i];
                if (is_last)
                    v[i] = (v[i] - s.y[at + i]) * s.loss_factor;
                else if (v[i] <= 0 || !(kept >> i & 1))
                    v[i] = 0;
                else
                    v[i] *= s.scale;
            }
        store<W>(to, v, count);
    } else if (KIND == DELTAS) {
        const float *output = s.work + s.outputs_at[layer - 1] + at;
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < count)
                v[i] = output[i] == 0 ? 0 : v[i] * s.scale;
        store<W>(s.work + delta_at(s, layer - 1) + at, v, count);
    } else {
        at += s.weights_at[layer];
        if (UPDATE)
            adam_some<W>(s.adam, s.state, s.new_state, s.stride, at, v, count);
        else
            store<W>(s.gradient + at, v, count);
    }
}

__device__ __forceinline__ void finish_bias(const step_data &s, const product &p, int layer,
                                            int row, float sum) {
    s64 at = s.weights_at[layer] + (s64)p.m * p.n + row;
    if (UPDATE)
        adam_some<1>(s.adam, s.state, s.new_state, s.stride, at, &sum, 1);
    else
        s.gradient[at] = sum;
}

/* --- tiles --- */

#define PART_FLOATS 1184 /* of a warp: its sums, 32 lines of 36, and those of 32 biases */

struct cut {                    /* of a product */
    int tile_m, tile_n, across; /* tiles side by side */
    int share_log, share;       /* warps that share a tile */
    int tiles, jobs;            /* a job is what a block does at once */
};

/* By all warps of a block, those without a tile included: all are at the same job. */
__device__ __forceinline__ void wait_for_sharers(int share) {
    if (share > 1)
        __syncthreads();
    else
        __syncwarp();
}

__device__ __forceinline__ int quotient_up(int a, int b) {
    return (a + b - 1) / b;
}

/* Large tiles read less, small ones keep more warps busy. */
__device__ __forceinline__ cut cut_of(const product &p) {
    cut c = {32, 32};
    s64 blocks = gridDim.x;
    if (p.m <= 16 || quotient_up(p.m, 32) * (s64)quotient_up(p.n, 32) < blocks / 4)
        c.tile_m = 16, c.tile_n = 8;
    bool large = c.tile_n == 32;
    c.across = large ? quotient_up(p.n, 32) : quotient_up(p.n, 8);
    c.tiles = (large ? quotient_up(p.m, 32) : quotient_up(p.m, 16)) * c.across;
    while (c.share_log < WARPS_LOG && 16 << c.share_log < p.k &&
           (s64)c.tiles << (c.share_log + 1) <= blocks * WARPS)
        c.share_log++;
    c.share = 1 << c.share_log;
    c.jobs = (int)(((s64)c.tiles << c.share_log) + WARPS - 1 >> WARPS_LOG);
    return c;
}

__device__ __forceinline__ product product_of(const step_data &s, int kind, int layer) {
    product p;
    int in = s.widths[layer], out = s.widths[layer + 1];
    const float *weight = s.state + s.weights_at[layer];
    if (kind == OUTPUTS)
        p = {input_of(s, layer), weight, s.rows, out, in};
    else if (kind == DELTAS)
        p = {s.work + delta_at(s, layer), weight, s.rows, in, out};
    else
        p = {s.work + delta_at(s, layer), input_of(s, layer), out, in, s.rows};
    p.vector_a = aligned(p.a) && (kind == GRADIENTS ? p.m : p.k) % 4 == 0;
    p.vector_b = aligned(p.b) && (kind == OUTPUTS ? p.k : p.n) % 4 == 0;
    return p;
}

struct tile_place { /* of a warp */
    int row, column;
    int member;          /* which of the sharers it is */
    float *part, *first; /* its own sums, those of the first sharer */
};

/* What this warp has of the tile's sums, into shared memory; gradients have those of biases behind
 * them. */
template <int KIND, int MT, int NT>
__device__ __forceinline__ void sum_part(const product &p, const cut &c, const tile_place &at) {
    constexpr int LAY_A = KIND == GRADIENTS ? ACROSS : ALONG;
    constexpr int LAY_B = KIND == OUTPUTS ? ALONG : ACROSS;
    constexpr int TM = 16 * MT, TN = 8 * NT, PITCH = TN + 4;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    sums<MT, NT> sum = {};
    float bias[2 * MT] = {};
    /* What is loaded in one round is used in the next: the first only loads. One place of loading
     * keeps the code short, which counts where each line of it runs once or twice. */
    constexpr int GROUP = NT == 1 ? 3 : 1;
    operands<MT, NT> now[GROUP], next[GROUP];
    int step = c.share * 16;
#pragma unroll 1
    for (int k = at.member * 16 - GROUP * step; k < p.k; k += GROUP * step) {
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            if (k + (GROUP + i) * step < p.k)
                load<LAY_A, LAY_B, MT, NT>(next[i], p, at.row, at.column, k + (GROUP + i) * step);
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            if (k >= 0 && k + i * step < p.k) {
                multiply(sum, now[i]);
                if (KIND == GRADIENTS)
#pragma unroll
                    for (int r = 0; r < 2 * MT; r++)
                        bias[r] +=
                            (now[i].a[r][0] + now[i].a[r][1]) + (now[i].a[r][2] + now[i].a[r][3]);
            }
            now[i] = next[i];
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                at.part[row_place<LAY_A, MT>(i, g) * PITCH +
                        column_place<LAY_B, NT>(j, 2 * t + e)] = sum.at[i / 2][j][i % 2 * 2 + e];
    if (KIND == GRADIENTS)
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) {
            bias[i] += __shfl_xor_sync(0xffffffffu, bias[i], 1);
            bias[i] += __shfl_xor_sync(0xffffffffu, bias[i], 2);
            if (t == 0)
                at.part[TM * PITCH + row_place<LAY_A, MT>(i, g)] = bias[i];
        }
}

/* The sharers' parts added up, and what becomes of them. */
template <int KIND, int MT, int NT>
__device__ __forceinline__ void finish_tile(const step_data &s, const product &p, int layer,
                                            const cut &c, const tile_place &at) {
    constexpr int TM = 16 * MT, TN = 8 * NT, PITCH = TN + 4;
    constexpr int W = NT == 1 ? 1 : 4; /* a small tile has an element or two for each thread */
    int thread = at.member * 32 + (int)threadIdx.x % 32;
#pragma unroll 1
    for (int q = thread; q < TM * TN / W; q += c.share * 32) {
        int r = q / (TN / W), col = q % (TN / W) * W, count = p.n - at.column - col;
        if (at.row + r >= p.m || count <= 0)
            continue;
        float total[W] = {};
        for (int i = 0; i < c.share; i++)
#pragma unroll
            for (int j = 0; j < W; j++)
                total[j] += at.first[i * PART_FLOATS + r * PITCH + col + j];
        finish<KIND, W>(s, p, layer, at.row + r, at.column + col, total, count < W ? count : W);
    }
    if (KIND == GRADIENTS && at.column == 0)
        for (int r = thread; r < TM && at.row + r < p.m; r += c.share * 32) {
            float total = 0;
            for (int i = 0; i < c.share; i++)
                total += at.first[i * PART_FLOATS + TM * PITCH + r];
            finish_bias(s, p, layer, at.row + r, total);
        }
}

template <int KIND, int MT, int NT>
__device__ __forceinline__ void do_tile(const step_data &s, const product &p, int layer,
                                        const cut &c, int job, float *parts) {
    int warp = threadIdx.x / 32, member = warp & (c.share - 1);
    int tile = (job << (WARPS_LOG - c.share_log)) + (warp >> c.share_log);
    bool there = tile < c.tiles;
    tile_place at = {tile / c.across * 16 * MT, tile % c.across * 8 * NT, member,
                     parts + warp * PART_FLOATS, parts + (warp - member) * PART_FLOATS};
    if (there)
        sum_part<KIND, MT, NT>(p, c, at);
    wait_for_sharers(c.share);
    if (there)
        finish_tile<KIND, MT, NT>(s, p, layer, c, at);
    wait_for_sharers(c.share);
}

/* This block's tiles of a product; `first` is the first of its jobs. Called, not made part of its
 * callers: it is large, and there are several. */
template <int KIND, int MT, int NT>
__device__ __noinline__ void do_tiles(const step_data &s, int layer, int first, float *parts) {
    product p = product_of(s, KIND, layer);
    cut c = cut_of(p);
#pragma unroll 1
    for (int job = first; job < c.jobs; job += (int)gridDim.x)
        do_tile<KIND, MT, NT>(s, p, layer, c, job, parts);
}

/* One product of a phase; `turn` is the number of jobs before it, so that blocks take turns. */
template <int KIND>
__device__ __forceinline__ int do_product(const step_data &s, int layer, int turn, float *parts) {
    cut c = cut_of(product_of(s, KIND, layer));
    int blocks = (int)gridDim.x, first = ((int)blockIdx.x - turn % blocks + blocks) % blocks;
    if (c.tile_n == 32)
        do_tiles<KIND, 2, 4>(s, layer, first, parts);
    else
        do_tiles<KIND, 1, 1>(s, layer, first, parts);
    return turn + c.jobs;
}

/* --- losses and the end --- */

/* From the derivatives, which hold the differences; by one block. Then what only one has to
 * write. */
__device__ void finish_losses(const step_data &s, int range_end, float *parts) {
    s64 begin = s.outputs_at[s.layers - 1], end = s.outputs_at[s.layers];
    float mse, mae;
    if (FORWARD) {
        double elements = (double)s.batch * s.widths[s.layers], squares = 0, sizes = 0;
        for (s64 i = begin + threadIdx.x; i < end; i += THREADS) {
            double difference = (double)s.work[i] * elements / 2;
            squares += difference * difference;
            sizes += fabs(difference);
        }
        squares = warp_sum(squares), sizes = warp_sum(sizes);
        double *shared = (double *)parts;
        if (threadIdx.x % 32 == 0)
            shared[threadIdx.x / 32] = squares, shared[WARPS + threadIdx.x / 32] = sizes;
        __syncthreads();
        squares = sizes = 0;
        for (int i = 0; i < WARPS; i++)
            squares += shared[i], sizes += shared[WARPS + i];
        mse = (float)(squares / elements);
        mae = (float)(sizes / elements);
    } else {
        mse = s.work[end];
        mae = s.work[end + 1];
    }
    if (UPDATE && s.new_state != s.state) {
        int gap = (int)(s.stride - s.parameters);
        for (int i = threadIdx.x; i < 3 * gap; i += THREADS) {
            s64 at = i / gap * s.stride + s.parameters + i % gap;
            s.new_state[at] = s.state[at];
        }
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    if (FORWARD) {
        s.work[end] = mse;
        s.work[end + 1] = mae;
    }
    if (UPDATE)
        write_tail(s.new_state + 3 * s.stride, s.step, mse, mae);
    else if (BACKWARD && range_end == s.layers) {
        s.gradient[s.parameters] = mse;
        s.gradient[s.parameters + 1] = mae;
    }
}

/* --- phases --- */

__device__ void backward_phase(const step_data &s, int layer, int begin, int end, float *parts) {
    int turn = 0;
    if (layer >= begin && layer > 0)
        turn = do_product<DELTAS>(s, layer, turn, parts);
    if (layer + 1 < end)
        turn = do_product<GRADIENTS>(s, layer + 1, turn, parts);
    if (layer == 0 && begin == 0)
        do_product<GRADIENTS>(s, 0, turn, parts);
}

__device__ __forceinline__ void do_phases(step_data &s, int begin, int end, float *parts) {
    if (FORWARD)
        for (int layer = 0; layer < s.layers; layer++) {
            do_product<OUTPUTS>(s, layer, 0, parts);
            wait_for_all(s.barrier);
        }
    if (blockIdx.x == gridDim.x - 1)
        finish_losses(s, end, parts);
    if (BACKWARD)
        for (int layer = end - 1; layer + 1 >= begin && layer >= 0; layer--) {
            backward_phase(s, layer, begin, end, parts);
            if (layer > 0 && layer >= begin)
                wait_for_all(s.barrier);
        }
}
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    mlp(const float *x, const float *y, const float *state, float *work, float *gradient,
        float *new_state, u64 widths01, u64 widths23, u64 widths45, u64 widths67, u64 seed,
        s64 batch, s64 first_row, s64 rows, s64 batches, int layers, int begin, int end,
        int threshold, float scale, float loss_factor, float rate, float beta1, float beta2,
        float epsilon) {
    extern __shared__ __align__(16) float parts[]; /* PART_FLOATS for each warp */
    __shared__ step_data s;
    wait_for_previous();
    if (threadIdx.x == 0) {
        u64 widths[4] = {widths01, widths23, widths45, widths67};
        for (int i = 0; i < 8; i++)
            s.widths[i] = (int)(widths[i / 2] >> (i % 2 * 32));
        s.layers = layers, s.rows = (int)rows;
        s.batch = batch, s.first_row = first_row;
        s.threshold = (u32)threshold, s.seed = seed, s.scale = scale;
        s.state = state, s.work = work, s.gradient = gradient, s.new_state = new_state;
        s.weights_at[0] = s.outputs_at[0] = 0;
        for (int l = 0; l < layers; l++) {
            s.weights_at[l + 1] = s.weights_at[l] + ((s64)s.widths[l] + 1) * s.widths[l + 1];
            s.outputs_at[l + 1] = s.outputs_at[l] + rows * s.widths[l + 1];
        }
        s.parameters = s.weights_at[layers];
        s.stride = round_up(s.parameters);
        s.step = step_of(state + 3 * s.stride);
        s64 row = s.step % batches * batch + first_row;
        s.x = x + row * s.widths[0];
        s.y = y + row * s.widths[layers];
        s.adam = {0, 1 - beta1, 1 - beta2, epsilon};
        s.barrier = {load_arrived()};
        s.loss_factor = loss_factor;
    }
    __syncthreads();
    if (UPDATE &&
        threadIdx.x == 32) /* in double precision, which takes a while: no other thread waits */
        s.adam.rate = corrected_rate(rate, beta1, beta2, s.step);
    do_phases(s, begin, end, parts);
}
#endif
