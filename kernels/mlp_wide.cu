/*
 * mlp_wide.cu: a training step of a multilayer perceptron whose weights are too many for one
 * block's shared memory (src/device/mlp.h says what lies where). As many blocks as there are
 * multiprocessors stay for the whole step and go through phases, with a barrier among all blocks
 * between two of them:
 *
 *     outputs of layer 0 | 1 | ... | L-1 | derivatives by outputs of layer L-2 | ... | 0 | all
 *     gradients
 *
 * A tile of outputs or derivatives is a block's: 16 x 8 where the batch has few rows, or 32 x 32.
 * Its warps cut the inner dimension and add up in shared memory. Operands come from the
 * second-level cache straight into registers. Which numbers of the inner dimension a thread gets is
 * free as long as both operands agree, and so are the places of rows and columns in a matrix
 * instruction: chosen so that loads are of 16 bytes. A tile of a gradient is a warp's, 16 outputs
 * by 32 inputs, with Adam right behind it: the gradient never leaves the registers.
 *
 * All of it is waiting for memory and for instructions that depend on each other, hardly
 * arithmetic. So widths are known when this is compiled.
 *
 * MODE      3: gradients, 7: with the update
 * W0 .. W7  widths, 0 behind the last one; hidden ones are multiples of 32
 * FEW       1: the batch has at most 16 rows
 *
 * DTYPE is what products are done in; everything else is fp32.
 *
 * On an H200 a step of the large model, 2 million parameters, takes in tf32 44 µs at batch 16 and 87
 * at 128, in fp32 46 and 93.
 */
#include "common.cuh"
#include "mlp_adam.cuh"
#include "mlp_model.cuh"
#include "mlp_products.cuh"
#include "mlp_step.cuh"

#define TILE_M (FEW ? 16 : 32)
#define TILE_N (FEW ? 8 : 32)
#define NT     (TILE_N / 8)              /* of a warp's 16 rows */
#define SPLIT  (FEW ? WARPS : WARPS / 2) /* of the inner dimension */
#define AHEAD  (FEW ? 4 : 2)             /* times 16 numbers of it that a warp asks for at once */
#define PITCH  (FEW ? 8 : 40)            /* of a tile in shared memory */

enum { ALONG_K, ACROSS_K };

/* --- operands --- */

/* Numbers k ... k + 3 of a line that has LENGTH. */
template <int LENGTH>
__device__ __forceinline__ void load_line(float to[4], const float *line, int k, bool there) {
    if (LENGTH % 4 == 0) {
        float4 four = {0, 0, 0, 0};
        if (there && (LENGTH % 16 == 0 || k < LENGTH))
            four = *(const float4 *)(line + k);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else
#pragma unroll
        for (int i = 0; i < 4; i++)
            to[i] = there && k + i < LENGTH ? line[k + i] : 0;
}

/* A[rows, K], and B[N, K] along or B[K, N] across: what thread (g, t) needs of 16 numbers from k
 * on. */
template <int K, int N, int LAY>
__device__ __forceinline__ void load_step(operands<1, NT> &o, const float *a, const float *b,
                                          int row, int rows, int column, int k) {
    int lane = threadIdx.x % 32, g = lane / 4, at = k + lane % 4 * 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
        load_line<K>(o.a[i], a + (s64)(row + g + 8 * i) * K, at, row + g + 8 * i < rows);
    if (LAY == ALONG_K)
#pragma unroll
        for (int j = 0; j < NT; j++)
            load_line<K>(o.b[j], b + (s64)(column + g + 8 * j) * K, at,
                         N % TILE_N == 0 || column + g + 8 * j < N);
    else
#pragma unroll
        for (int i = 0; i < 4; i++) { /* N is a multiple of 32 */
            const float *line = b + (s64)(at + i) * N + column + g * NT;
            bool there = K % 16 == 0 || at + i < K;
            if (NT == 4) {
                float4 four = {0, 0, 0, 0};
                if (there)
                    four = *(const float4 *)line;
                o.b[0][i] = four.x, o.b[1 % NT][i] = four.y;
                o.b[2 % NT][i] = four.z, o.b[3 % NT][i] = four.w;
            } else
                o.b[0][i] = there ? line[0] : 0;
        }
}

/* --- a tile of outputs or derivatives --- */

/* Where element (2t + e) of column block j is. */
template <int LAY> __device__ __forceinline__ int column_of(int j, int place) {
    return LAY == ALONG_K ? 8 * j + place : NT * place + j;
}

/* This warp's share of the tile into shared memory. `meanwhile` is done when the first operands are
 * on their way. */
template <int K, int N, int LAY, class MEANWHILE>
__device__ __forceinline__ void add_share(const float *a, const float *b, int row, int rows,
                                          int column, float *parts, MEANWHILE meanwhile) {
    constexpr int STEPS = up(K, 16) / 16, MINE = (STEPS + SPLIT - 1) / SPLIT;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int share = FEW ? warp : warp / 2, half = FEW ? 0 : warp % 2 * 16;
    sums<1, NT> sum = {};
    constexpr int AT_ONCE = MINE < AHEAD ? MINE : AHEAD;
#pragma unroll 1
    for (int i = 0; i < MINE; i += AT_ONCE) {
        operands<1, NT> o[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (STEPS % (SPLIT * AT_ONCE) == 0 || (i + j) * SPLIT + share < STEPS)
                load_step<K, N, LAY>(o[j], a, b, row + half, rows, column,
                                     ((i + j) * SPLIT + share) * 16);
        if (i == 0)
            meanwhile();
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            if (STEPS % (SPLIT * AT_ONCE) == 0 || (i + j) * SPLIT + share < STEPS)
                multiply(sum, o[j]);
    }
    float *part = parts + (share * TILE_M + half) * PITCH;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                part[(g + 8 * i) * PITCH + column_of<LAY>(j, 2 * t + e)] = sum.at[0][j][2 * i + e];
}

/* The tile's numbers [place, place + COUNT) of a row. */
#define COUNT (FEW ? 1 : TILE_M * TILE_N / THREADS)

__device__ __forceinline__ void add_shares(float total[COUNT], const float *parts, int row,
                                           int place) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        total[i] = 0;
#pragma unroll
        for (int share = 0; share < SPLIT; share++)
            total[i] += parts[(share * TILE_M + row) * PITCH + place + i];
    }
}

/* A tile's thread has COUNT neighbours of row `row` from `column` on, which is below 0 where it has
 * none. */
struct share_of_tile {
    int row, column, tile_row, tile_column;
    s64 at; /* of the first one, in a matrix of N columns */
};

template <int N> __device__ __forceinline__ share_of_tile find_share(const step_data &s, int tile) {
    constexpr int ACROSS_N = up(N, TILE_N) / TILE_N, PIECES = TILE_N / COUNT;
    share_of_tile q;
    q.tile_row = tile / ACROSS_N * TILE_M, q.tile_column = tile % ACROSS_N * TILE_N;
    int row = (int)threadIdx.x / PIECES, place = (int)threadIdx.x % PIECES * COUNT;
    q.row = q.tile_row + row, q.column = q.tile_column + place;
    if (row >= TILE_M || q.row >= s.rows || q.column >= N)
        q.column = -1;
    q.at = (s64)q.row * N + q.column;
    return q;
}

__device__ __forceinline__ int tiles_of_product(const step_data &s, int columns) {
    return (s.rows + TILE_M - 1) / TILE_M * (up(columns, TILE_N) / TILE_N);
}

template <int LAYER>
__device__ __forceinline__ void forward_layer(const step_data &s, float *parts) {
    constexpr int IN = width(LAYER), OUT = width(LAYER + 1);
    constexpr bool IS_LAST = LAYER == LAYERS - 1;
    const float *input = LAYER ? s.work + (s64)s.rows * output_at(LAYER - 1) : s.x;
    const float *weight = s.state + weight_at(LAYER), *bias = weight + OUT * IN;
    float *to = s.work + (s64)s.rows * output_at(LAYER);
#pragma unroll 1
    for (int tile = blockIdx.x; tile < tiles_of_product(s, OUT); tile += gridDim.x) {
        share_of_tile q = find_share<OUT>(s, tile);
        float other[COUNT], total[COUNT];
        bool kept[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            bool there = q.column >= 0 && q.column + i < OUT;
            other[i] = there ? bias[q.column + i] : 0;
            if (IS_LAST && there)
                other[i] -= s.y[q.at + i];
        }
        auto draw = [&] {
            if (IS_LAST || q.column < 0)
                return;
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                int c = q.column + i, block = c / 128 * 16 + c % 16;
                kept[i] = !s.threshold || kept_of(s, LAYER, q.row, block) >> (c / 16 % 8) & 1;
            }
        };
        add_share<IN, OUT, ALONG_K>(input, weight, q.tile_row, s.rows, q.tile_column, parts, draw);
        __syncthreads();
        if (q.column >= 0) {
            add_shares(total, parts, q.row - q.tile_row, q.column - q.tile_column);
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                float v = total[i] + other[i];
                if (IS_LAST)
                    v *= s.loss_factor;
                else
                    v = v <= 0 || !kept[i] ? 0 : v * s.scale;
                if (OUT % COUNT == 0 || q.column + i < OUT)
                    to[q.at + i] = v;
            }
        }
        __syncthreads();
    }
}

/* The derivatives by the outputs of layer LAYER - 1. */
template <int LAYER>
__device__ __forceinline__ void backward_layer(const step_data &s, float *parts) {
    constexpr int IN = width(LAYER), OUT = width(LAYER + 1);
    const float *output = s.work + (s64)s.rows * output_at(LAYER - 1);
    float *to = delta_of(s, LAYER - 1);
#pragma unroll 1
    for (int tile = blockIdx.x; tile < tiles_of_product(s, IN); tile += gridDim.x) {
        share_of_tile q = find_share<IN>(s, tile);
        float other[COUNT], total[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            other[i] = q.column >= 0 ? output[q.at + i] : 0;
        add_share<OUT, IN, ACROSS_K>(delta_of(s, LAYER), s.state + weight_at(LAYER), q.tile_row,
                                     s.rows, q.tile_column, parts, [] {});
        __syncthreads();
        if (q.column >= 0) {
            add_shares(total, parts, q.row - q.tile_row, q.column - q.tile_column);
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                to[q.at + i] = other[i] == 0 ? 0 : total[i] * s.scale;
        }
        __syncthreads();
    }
}

template <int LAYER>
__device__ __forceinline__ void forward_from(const step_data &s, float *parts,
                                             barrier_data &barrier) {
    if constexpr (LAYER < LAYERS) {
        forward_layer<LAYER>(s, parts);
        wait_for_all(barrier);
        forward_from<LAYER + 1>(s, parts, barrier);
    }
}

template <int LAYER>
__device__ __forceinline__ void backward_from(const step_data &s, float *parts,
                                              barrier_data &barrier) {
    if constexpr (LAYER > 0) {
        backward_layer<LAYER>(s, parts);
        wait_for_all(barrier);
        backward_from<LAYER - 1>(s, parts, barrier);
    }
}

/* --- gradients --- */

#define GRADIENT_M 16
#define GRADIENT_N 32

struct gradient_tile {
    const float *delta, *input;
    int in, out, weights, row, column; /* of its layer; and where it begins */
};

__device__ constexpr int tiles_of(int layer) {
    return up(width(layer + 1), GRADIENT_M) / GRADIENT_M *
           (up(width(layer), GRADIENT_N) / GRADIENT_N);
}

/* Tiles of layers that aren't made of whole pieces take far longer: they come first, each to
 * another block. */
__device__ constexpr bool is_whole(int layer) {
    return width(layer) % 32 == 0 && width(layer + 1) % 16 == 0;
}

__device__ constexpr int count_tiles(bool whole, int layers) {
    int tiles = 0;
    for (int l = 0; l < layers; l++)
        tiles += is_whole(l) == whole ? tiles_of(l) : 0;
    return tiles;
}

/* Tiles of the same inputs lie side by side, so that a block's warps read the same. */
template <int LAYER, bool WHOLE>
__device__ __forceinline__ gradient_tile find_tile(const step_data &s, int number) {
    if constexpr (LAYER + 1 < LAYERS)
        if (is_whole(LAYER) != WHOLE || number >= count_tiles(WHOLE, LAYER + 1))
            return find_tile<LAYER + 1, WHOLE>(s, number);
    constexpr int DOWN = up(width(LAYER + 1), GRADIENT_M) / GRADIENT_M;
    number -= count_tiles(WHOLE, LAYER);
    return {delta_of(s, LAYER),
            LAYER ? s.work + (s64)s.rows * output_at(LAYER - 1) : s.x,
            width(LAYER),
            width(LAYER + 1),
            weight_at(LAYER),
            number % DOWN * GRADIENT_M,
            number / DOWN * GRADIENT_N};
}

/* Up to four neighbours; all of them where it is whole. */
template <bool WHOLE>
__device__ __forceinline__ void load_four(float to[4], const float *from, int count) {
    float4 four = {0, 0, 0, 0};
    if (WHOLE)
        four = *(const float4 *)from;
    else {
        if (count > 0)
            four.x = from[0];
        if (count > 1)
            four.y = from[1];
        if (count > 2)
            four.z = from[2];
        if (count > 3)
            four.w = from[3];
    }
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

template <bool WHOLE>
__device__ __forceinline__ void store_four(float *to, const float v[4], int count) {
    if (WHOLE)
        *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < count)
                to[i] = v[i];
}

/* 16 rows of the batch from k on: outputs 2g and 2g + 1, inputs 4 * (g / 2) + 16 * (g % 2) on. */
template <bool WHOLE>
__device__ __forceinline__ void load_rows(operands<1, 4> &o, const step_data &s,
                                          const gradient_tile &tile, int k) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int row = tile.row + 2 * g, column = tile.column + g / 2 * 4 + g % 2 * 16;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int at = k + 4 * t + j;
        bool there = at < s.rows;
        const float *d = tile.delta + (s64)at * tile.out + row;
        float four[4] = {0, 0, 0, 0};
        float2 two = {0, 0};
        if (WHOLE) {
            if (there)
                two = *(const float2 *)d;
        } else {
            if (there && row < tile.out)
                two.x = d[0];
            if (there && row + 1 < tile.out)
                two.y = d[1];
        }
        if (there)
            load_four<WHOLE>(four, tile.input + (s64)at * tile.in + column, tile.in - column);
        o.a[0][j] = two.x, o.a[1][j] = two.y;
#pragma unroll
        for (int i = 0; i < 4; i++)
            o.b[i][j] = four[i];
    }
}

/* A thread's piece 2i + e of a tile is at row 2g + i, four columns from 16e + 4t on. */
struct pieces {
    float p[4][4], m[4][4], v[4][4];
};

__device__ __forceinline__ int find_piece(const gradient_tile &tile, int number, int *ret_count) {
    int lane = threadIdx.x % 32, row = tile.row + lane / 4 * 2 + number / 2;
    int column = tile.column + number % 2 * 16 + lane % 4 * 4;
    *ret_count = row < tile.out ? tile.in - column : 0;
    return tile.weights + row * tile.in + column;
}

template <bool WHOLE>
__device__ __forceinline__ void load_pieces(pieces &h, const step_data &s,
                                            const gradient_tile &tile) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int count, at = find_piece(tile, q, &count);
        load_four<WHOLE>(h.p[q], s.state + at, count);
        load_four<WHOLE>(h.m[q], s.state + STRIDE + at, count);
        load_four<WHOLE>(h.v[q], s.state + 2 * STRIDE + at, count);
    }
}

template <bool WHOLE>
__device__ __forceinline__ void finish_pieces(const step_data &s, const gradient_tile &tile,
                                              pieces &h, const adam_factors &adam,
                                              const sums<1, 4> &sum) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int count, at = find_piece(tile, q, &count);
        float g[4] = {sum.at[0][0][q], sum.at[0][1][q], sum.at[0][2][q], sum.at[0][3][q]};
        if (!UPDATE) {
            store_four<WHOLE>(s.gradient + at, g, count);
            continue;
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            adam_one(adam, g[i], h.p[q][i], h.m[q][i], h.v[q][i]);
        store_four<WHOLE>(s.new_state + at, h.p[q], count);
        store_four<WHOLE>(s.new_state + STRIDE + at, h.m[q], count);
        store_four<WHOLE>(s.new_state + 2 * STRIDE + at, h.v[q], count);
    }
}

/* Where the batch has few rows, parameters are asked for before the products; else registers are
 * short. */
template <bool WHOLE>
__device__ __forceinline__ void do_gradient(const step_data &s, int number,
                                            const adam_factors &adam) {
    constexpr int AT_ONCE = FEW || !WHOLE ? 1 : 2;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    gradient_tile tile = find_tile<0, WHOLE>(s, number);
    pieces h;
    if (UPDATE && FEW)
        load_pieces<WHOLE>(h, s, tile);
    sums<1, 4> sum = {};
    float bias[2] = {0, 0};
#pragma unroll 1
    for (int k = 0; k < s.rows; k += 16 * AT_ONCE) {
        operands<1, 4> o[AT_ONCE];
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++)
            load_rows<WHOLE>(o[j], s, tile, k + 16 * j);
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            multiply(sum, o[j]);
#pragma unroll
            for (int i = 0; i < 2; i++)
                bias[i] += (o[j].a[i][0] + o[j].a[i][1]) + (o[j].a[i][2] + o[j].a[i][3]);
        }
    }
    if (UPDATE && !FEW)
        load_pieces<WHOLE>(h, s, tile);
    finish_pieces<WHOLE>(s, tile, h, adam, sum);
    if (tile.column == 0)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float all = quad_sum(bias[i]);
            int row = tile.row + 2 * g + i;
            bool mine = t == 0 && row < tile.out;
            finish_one(s, adam, hold(s, mine ? tile.weights + tile.out * tile.in + row : -1), all);
        }
}

__device__ __forceinline__ void do_gradients(const step_data &s, const adam_factors &adam) {
    int warp = threadIdx.x / 32, blocks = (int)gridDim.x, block = (int)blockIdx.x;
#pragma unroll 1
    for (int number = warp * blocks + block; number < count_tiles(false, LAYERS);
         number += blocks * WARPS)
        do_gradient<false>(s, number, adam);
#pragma unroll 1
    for (int number = block * WARPS + warp; number < count_tiles(true, LAYERS);
         number += blocks * WARPS)
        do_gradient<true>(s, number, adam);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    mlp_wide(const float *x, const float *y, const float *state, float *work, float *gradient,
             float *new_state, u64 seed, s64 batch, s64 first_row, s64 rows, s64 batches,
             int threshold, float scale, float loss_factor, float rate, float beta1, float beta2,
             float epsilon) {
    extern __shared__ __align__(16) float parts[];
    __shared__ float shared_rate;
    step_data s = {x,         y, state,          work, gradient, new_state,  (int)rows,
                   first_row, 0, (u32)threshold, seed, scale,    loss_factor};
    wait_for_previous();
    barrier_data barrier = find_barrier();
    s.step = step_of(state + 3 * STRIDE);
    s64 row = batch_of(s.step, batches) * batch + first_row;
    s.x += row * INPUTS;
    s.y += row * OUTPUTS;
    forward_layer<0>(s, parts);
    s64 step = s.step;
    wait_for_all(barrier, [=] { /* in double precision, which takes a while */
                                if (UPDATE)
                                    shared_rate = corrected_rate(rate, beta1, beta2, step);
    });
    forward_from<1>(s, parts, barrier);
    backward_from<LAYERS - 1>(s, parts, barrier);
    do_gradients(s, {shared_rate, 1 - beta1, 1 - beta2, epsilon});
    if (blockIdx.x == gridDim.x - 1 &&
        threadIdx.x >= THREADS - 32) /* the warp with the fewest tiles */
        finish_losses<1>(s, (double)batch, (int)threadIdx.x % 32, nullptr, [] {});
}
