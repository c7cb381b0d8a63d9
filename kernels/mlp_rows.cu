/*
 * mlp_rows.cu: a training step of a small multilayer perceptron, whose weights fit into a block's
 * shared memory (src/device/mlp.h says what lies where). A block takes 16 rows of the batch through
 * all layers and back, and needs nobody else for that. Then come all gradients, and Adam right
 * behind them, spread over all multiprocessors behind the only barrier.
 *
 * All of it is waiting for memory and for instructions that depend on each other, hardly
 * arithmetic. So widths are known when this is compiled, and whatever can be asked for early is.
 *
 *     outputs of layer 0 | weights of layer 1 | weights of layer 0, inputs
 *                                             | weights from layer 2 on, outputs from layer 1 on
 *
 * is what lies in shared memory: weights of layer 1 come while layer 0 is done, all further ones
 * while layer 1 is. The derivatives by a layer's outputs take their place. A line of a matrix has a
 * multiple of 16 numbers and 8 more, and lines change places within eight (line_of): so what a warp
 * reads at once is on different banks both along and across. Only the weights of layer 0 lie as
 * they come.
 *
 * MODE      3: gradients, 7: with the update
 * W0 .. W7  widths, 0 behind the last one; hidden ones are multiples of 16
 *
 * DTYPE is what products are done in; everything else is fp32.
 *
 * On an H200 a step of the medium model, 54,403 parameters, takes in tf32 20 µs at batch 16, 21 at
 * 128 and 31 at 1024, in fp32 23 at 16 and 24 at 128.
 */
#include "common.cuh"
#include "mlp_adam.cuh"
#include "mlp_lines.cuh"
#include "mlp_model.cuh"
#include "mlp_products.cuh"
#include "mlp_step.cuh"

#define ROWS   16 /* that a block takes at once */
#define TEAM   4  /* warps that share a tile of a gradient */
#define TILE_M 16 /* of a gradient: outputs */
#define TILE_N 8  /* and inputs */

/* --- shared memory, in floats --- */

__device__ constexpr int output_pitch(int layer) {
    return pitch_of(up(width(layer + 1), 16));
}

/* Warps that share the columns of a layer's outputs by cutting its inner dimension. */
__device__ constexpr int split_of(int layer) {
    int groups = up(width(layer + 1), 16) / 16, steps = width(layer) / 16;
    int split = 1;
    while (layer > 0 && split < 4 && 2 * split * groups <= WARPS && steps % (2 * split) == 0)
        split *= 2;
    return split;
}

__device__ constexpr int partial_floats() {
    int most = 0;
    for (int l = 1; l < LAYERS; l++) {
        int floats = (split_of(l) - 1) * ROWS * up(width(l + 1), 16);
        most = floats > most ? floats : most;
    }
    return most;
}

constexpr int X_PITCH = pitch_of(up(INPUTS, 16));
constexpr int BIASES = ROWS * output_pitch(0), TARGETS = BIASES + up(output_at(LAYERS), 4);
constexpr int KEPT =
    TARGETS + up(ROWS * OUTPUTS, 4); /* bytes, of hidden layers one behind the other */

__device__ constexpr int kept_blocks(int layer) {
    return up(width(layer + 1), 128) / 128 * 16;
}

__device__ constexpr int kept_at(int layer) { /* in bytes */
    int at = 0;
    for (int l = 0; l < layer; l++)
        at += ROWS * kept_blocks(l);
    return at;
}

constexpr int PARTIAL = KEPT + kept_at(LAYERS - 1) / 4;
constexpr int WEIGHTS_1 = PARTIAL + partial_floats();
constexpr int WEIGHTS_0 = WEIGHTS_1 + up(width(2), 16) * pitch_of(W1);
constexpr int X = WEIGHTS_0 + W1 * INPUTS;

__device__ constexpr int weights_place(int layer) {
    int at = WEIGHTS_0;
    for (int l = 2; l < layer; l++)
        at += up(width(l + 1), 16) * pitch_of(width(l));
    return layer == 0 ? WEIGHTS_0 : layer == 1 ? WEIGHTS_1 : at;
}

__device__ constexpr int outputs_place(int layer) {
    int at = weights_place(LAYERS < 2 ? 2 : LAYERS);
    for (int l = 1; l < layer; l++)
        at += ROWS * output_pitch(l);
    return layer == 0 ? 0 : at;
}

/* --- copies --- */

__device__ __forceinline__ void copy_16(float *to, const float *from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

/* One number, or 0 where there is none. */
__device__ __forceinline__ void copy_4(float *to, const float *from, bool there) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
                 "r"(there ? 4 : 0)
                 : "memory");
}

__device__ __forceinline__ void copies_end() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the last LEFT groups of this thread's copies are there; and behind the barrier all
 * threads'. */
template <int LEFT> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    __syncthreads();
}

__device__ __forceinline__ void copy_first_weights(const step_data &s, float *shared) {
#pragma unroll
    for (int i = 0; i < W1 * INPUTS / 4; i += THREADS)
        if (i + (int)threadIdx.x < W1 * INPUTS / 4)
            copy_16(shared + WEIGHTS_0 + (i + threadIdx.x) * 4, s.state + (i + threadIdx.x) * 4);
}

/* Lines up to a multiple of 16 become 0: they are multiplied, by zeros. */
template <int LAYER>
__device__ __forceinline__ void copy_weights(const step_data &s, float *shared) {
    constexpr int IN = width(LAYER), OUT = width(LAYER + 1), ACROSS_4 = IN / 4,
                  PITCH = pitch_of(IN);
    float *to = shared + weights_place(LAYER);
#pragma unroll
    for (int i = 0; i < OUT * ACROSS_4; i += THREADS) {
        int number = i + (int)threadIdx.x, line = number / ACROSS_4, place = number % ACROSS_4 * 4;
        if (number < OUT * ACROSS_4)
            copy_16(to + line_of(line) * PITCH + place,
                    s.state + weight_at(LAYER) + line * IN + place);
    }
    if (OUT % 16)
#pragma unroll 1
        for (int i = threadIdx.x; i < (up(OUT, 16) - OUT) * IN; i += THREADS)
            to[line_of(OUT + i / IN) * PITCH + i % IN] = 0;
}

template <int LAYER>
__device__ __forceinline__ void copy_weights_from(const step_data &s, float *shared) {
    if constexpr (LAYER < LAYERS) {
        copy_weights<LAYER>(s, shared);
        copy_weights_from<LAYER + 1>(s, shared);
    }
}

/* What dropout keeps: while weights are on their way. */
template <int LAYER>
__device__ __forceinline__ void draw_dropout(const step_data &s, float *shared, int first) {
    if constexpr (LAYER < LAYERS - 1) {
        constexpr int BLOCKS = kept_blocks(LAYER);
        u8 *kept = (u8 *)(shared + KEPT) + kept_at(LAYER);
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * BLOCKS; i += THREADS)
            kept[i] = s.threshold ? (u8)kept_of(s, LAYER, first + i / BLOCKS, i % BLOCKS) : 0xff;
        draw_dropout<LAYER + 1>(s, shared, first);
    }
}

template <int LAYER>
__device__ __forceinline__ void copy_biases(const step_data &s, float *shared) {
    if constexpr (LAYER < LAYERS) {
        constexpr int OUT = width(LAYER + 1);
#pragma unroll 1
        for (int i = threadIdx.x; i < OUT; i += THREADS)
            copy_4(shared + BIASES + output_at(LAYER) + i,
                   s.state + weight_at(LAYER) + OUT * width(LAYER) + i, true);
        copy_biases<LAYER + 1>(s, shared);
    }
}

__device__ __forceinline__ void copy_rows(const step_data &s, float *shared, int first) {
    constexpr int ACROSS_X = up(INPUTS, 16);
#pragma unroll 2
    for (int i = threadIdx.x; i < ROWS * ACROSS_X; i += THREADS) {
        int row = i / ACROSS_X, column = i % ACROSS_X;
        bool there = column < INPUTS && first + row < s.rows;
        copy_4(shared + X + line_of(row) * X_PITCH + column,
               there ? s.x + (s64)(first + row) * INPUTS + column : s.x, there);
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < ROWS * OUTPUTS; i += THREADS) {
        bool there = first + i / OUTPUTS < s.rows;
        copy_4(shared + TARGETS + i, there ? s.y + (s64)first * OUTPUTS + i : s.y, there);
    }
}

/* --- layers --- */

template <int LAYER>
__device__ __forceinline__ void finish_outputs(const step_data &s, float *shared, int first,
                                               int column, const sums<1, 2> &sum) {
    constexpr int OUT = width(LAYER + 1), PITCH = output_pitch(LAYER);
    constexpr bool IS_LAST = LAYER == LAYERS - 1;
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const u8 *kept = (const u8 *)(shared + KEPT) + kept_at(LAYER);
    float *to = s.work + (s64)s.rows * output_at(LAYER);
#pragma unroll
    for (int i = 0; i < 4; i++) { /* row 8 * (i % 2), column 8 * (i / 2) */
        int row = g + i % 2 * 8, c = column + i / 2 * 8 + 2 * t;
        bool there = first + row < s.rows;
        float v[2] = {sum.at[0][i / 2][i % 2 * 2], sum.at[0][i / 2][i % 2 * 2 + 1]};
        if (IS_LAST)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                bool inside = there && c + e < OUT;
                v[e] = inside ? (v[e] + shared[BIASES + output_at(LAYER) + c + e] -
                                 shared[TARGETS + row * OUT + c + e]) *
                                    s.loss_factor
                              : 0;
                if (inside)
                    to[(s64)(first + row) * OUT + c + e] = v[e];
            }
        else {
            float2 bias = *(const float2 *)(shared + BIASES + output_at(LAYER) + c);
            u32 bits = *(const u16 *)(kept + row * kept_blocks(LAYER) + c / 128 * 16 + c % 16) >>
                       (c / 16 % 8);
            v[0] += bias.x, v[1] += bias.y;
            v[0] = v[0] <= 0 || !(bits & 1) ? 0 : v[0] * s.scale;
            v[1] = v[1] <= 0 || !(bits & 256) ? 0 : v[1] * s.scale;
        }
        *(float2 *)(shared + outputs_place(LAYER) + line_of(row) * PITCH + c) =
            make_float2(v[0], v[1]);
        if (!IS_LAST && there)
            *(float2 *)(to + (s64)(first + row) * OUT + c) = make_float2(v[0], v[1]);
    }
}

template <int LAYER>
__device__ __forceinline__ void forward_layer(const step_data &s, float *shared, int first) {
    constexpr int IN = width(LAYER), GROUPS = up(width(LAYER + 1), 16) / 16,
                  SPLIT = split_of(LAYER);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, part = warp / GROUPS;
    const float *weight = shared + weights_place(LAYER);
    if constexpr (SPLIT == 1) {
#pragma unroll 1
        for (int group = warp; group < GROUPS; group += WARPS) {
            sums<1, 2> sum = {};
            if constexpr (LAYER == 0)
                add_first<up(IN, 16), X_PITCH, IN>(sum, shared + X, weight + group * 16 * IN);
            else
                add_along<IN, output_pitch(LAYER - 1), pitch_of(IN)>(
                    sum, shared + outputs_place(LAYER - 1), weight + group * 16 * pitch_of(IN));
            finish_outputs<LAYER>(s, shared, first, group * 16, sum);
        }
    } else {
        int group = warp % GROUPS;
        float *partial = shared + PARTIAL + group * 8 * 32 + lane;
        sums<1, 2> sum = {};
        if (part < SPLIT) {
            int k = part * (IN / SPLIT);
            add_along<IN / SPLIT, output_pitch(LAYER - 1), pitch_of(IN)>(
                sum, shared + outputs_place(LAYER - 1) + k, weight + group * 16 * pitch_of(IN) + k);
            if (part > 0)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    partial[((part - 1) * GROUPS * 8 + i) * 32] = sum.at[0][i / 4][i % 4];
        }
        __syncthreads();
        if (part == 0) {
#pragma unroll
            for (int p = 0; p < SPLIT - 1; p++)
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum.at[0][i / 4][i % 4] += partial[(p * GROUPS * 8 + i) * 32];
            finish_outputs<LAYER>(s, shared, first, group * 16, sum);
        }
    }
}

/* The derivatives by the outputs of layer LAYER - 1. */
template <int LAYER>
__device__ __forceinline__ void backward_layer(const step_data &s, float *shared, int first) {
    constexpr int IN = width(LAYER), OUT = up(width(LAYER + 1), 16),
                  PITCH = output_pitch(LAYER - 1);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float *to = delta_of(s, LAYER - 1);
#pragma unroll 1
    for (int group = warp; group < IN / 16; group += WARPS) {
        sums<1, 2> sum = {};
        add_across<OUT, output_pitch(LAYER), pitch_of(IN)>(
            sum, shared + outputs_place(LAYER), shared + weights_place(LAYER) + group * 16);
        int column = group * 16 + 4 * t;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int row = g + 8 * i;
            float *place = shared + outputs_place(LAYER - 1) + line_of(row) * PITCH + column;
            float4 v = *(const float4 *)place;
            v.x = v.x == 0 ? 0 : sum.at[0][0][2 * i] * s.scale;
            v.y = v.y == 0 ? 0 : sum.at[0][1][2 * i] * s.scale;
            v.z = v.z == 0 ? 0 : sum.at[0][0][2 * i + 1] * s.scale;
            v.w = v.w == 0 ? 0 : sum.at[0][1][2 * i + 1] * s.scale;
            *(float4 *)place = v;
            if (first + row < s.rows)
                *(float4 *)(to + (s64)(first + row) * IN + column) = v;
        }
    }
}

template <int LAYER>
__device__ __forceinline__ void forward_from(const step_data &s, float *shared, int first) {
    if constexpr (LAYER < LAYERS) {
        forward_layer<LAYER>(s, shared, first);
        if (LAYER == 1)
            wait_for_copies<0>();
        else
            __syncthreads();
        forward_from<LAYER + 1>(s, shared, first);
    }
}

template <int LAYER>
__device__ __forceinline__ void backward_from(const step_data &s, float *shared, int first) {
    if constexpr (LAYER > 0) {
        backward_layer<LAYER>(s, shared, first);
        __syncthreads();
        backward_from<LAYER - 1>(s, shared, first);
    }
}

/* The weights of layer 0 are on their way: they could be asked for before the step was known. */
__device__ __forceinline__ void take_rows(const step_data &s, float *shared, int first) {
    copy_rows(s, shared, first);
    copy_biases<0>(s, shared);
    copies_end();
    copy_weights<1>(s, shared);
    copies_end();
    draw_dropout<0>(s, shared, first);
    wait_for_copies<1>();
    forward_layer<0>(s, shared, first);
    __syncthreads();
    copy_weights_from<2>(s, shared);
    copies_end();
    wait_for_copies<1>();
    forward_from<1>(s, shared, first);
    backward_from<LAYERS - 1>(s, shared, first);
}

/* --- gradients --- */

struct tile {
    const float *delta, *input;
    int in, out, weights, row, column; /* of its layer; and where it begins */
};

__device__ constexpr int tiles_of(int layer) {
    return up(width(layer + 1), TILE_M) / TILE_M * (up(width(layer), TILE_N) / TILE_N);
}

__device__ constexpr int tiles_before(int layer) {
    int tiles = 0;
    for (int l = 0; l < layer; l++)
        tiles += tiles_of(l);
    return tiles;
}

template <int LAYER> __device__ __forceinline__ tile find_tile(const step_data &s, int number) {
    if constexpr (LAYER + 1 < LAYERS)
        if (number >= tiles_before(LAYER + 1))
            return find_tile<LAYER + 1>(s, number);
    constexpr int DOWN = up(width(LAYER + 1), TILE_M) / TILE_M;
    number -= tiles_before(LAYER);
    return {delta_of(s, LAYER),    LAYER ? s.work + (s64)s.rows * output_at(LAYER - 1) : s.x,
            width(LAYER),          width(LAYER + 1),
            weight_at(LAYER),      number % DOWN * TILE_M,
            number / DOWN * TILE_N};
}

#define AHEAD       2   /* times 16 rows that a warp asks for at once */
#define PART_FLOATS 160 /* of shared memory, for each warp: sums of a tile and its biases */

/* Rows k, k + 16 * TEAM, ... of the batch: sums of a tile, and of the derivatives alone. */
__device__ __forceinline__ void add_rows(const step_data &s, const tile &tile, int k,
                                         sums<1, 1> &sum, float bias[2]) {
    operands<1, 1> o[AHEAD];
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    bool row0 = tile.row + g < tile.out, row1 = tile.row + g + 8 < tile.out;
    bool column = tile.column + g < tile.in;
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int row = k + i * 16 * TEAM + 4 * t + j;
            const float *d = tile.delta + (s64)row * tile.out + tile.row + g;
            o[i].a[0][j] = row < s.rows && row0 ? d[0] : 0;
            o[i].a[1][j] = row < s.rows && row1 ? d[8] : 0;
            o[i].b[0][j] =
                row < s.rows && column ? tile.input[(s64)row * tile.in + tile.column + g] : 0;
        }
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        multiply(sum, o[i]);
        bias[0] += (o[i].a[0][0] + o[i].a[0][1]) + (o[i].a[0][2] + o[i].a[0][3]);
        bias[1] += (o[i].a[1][0] + o[i].a[1][1]) + (o[i].a[1][2] + o[i].a[1][3]);
    }
}

/* Each thread of a team finishes one weight of a tile, and 16 of them a bias beside. */
__device__ __forceinline__ void do_gradients(const step_data &s, float *shared,
                                             barrier_data &barrier, const float *rate, float keep1,
                                             float keep2, float epsilon) {
    constexpr int TILES = tiles_before(LAYERS);
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int member = warp % TEAM, team = warp / TEAM, index = member * 32 + lane;
    int block = (int)(gridDim.x - 1 - blockIdx.x), slots = (int)gridDim.x * (WARPS / TEAM);
    float *part = shared + warp * PART_FLOATS, *first = shared + team * TEAM * PART_FLOATS;
    bool waits = true;
#pragma unroll 1
    for (int number = team * (int)gridDim.x + block; waits || number < TILES; number += slots) {
        bool there = number < TILES;
        tile tile = find_tile<0>(s, there ? number : 0);
        int row = tile.row + index / 8, column = tile.column + index % 8, above = tile.row + index;
        bool weighs = there && row < tile.out && column < tile.in;
        bool biases = there && tile.column == 0 && index < TILE_M && above < tile.out;
        held weight = hold(s, weighs ? tile.weights + row * tile.in + column : -1);
        held bias = hold(s, biases ? tile.weights + tile.out * tile.in + above : -1);
        if (waits)
            wait_for_all(barrier);
        waits = false;
        if (!there)
            break;
        sums<1, 1> sum = {};
        float sums_of_rows[2] = {0, 0};
#pragma unroll 1
        for (int k = member * 16; k < s.rows; k += 16 * TEAM * AHEAD)
            add_rows(s, tile, k, sum, sums_of_rows);
        float *to = part + g * 8 + 2 * t;
        *(float2 *)to = make_float2(sum.at[0][0][0], sum.at[0][0][1]);
        *(float2 *)(to + 64) = make_float2(sum.at[0][0][2], sum.at[0][0][3]);
        if (tile.column == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float all = quad_sum(sums_of_rows[i]);
                if (t == 0)
                    part[128 + g + 8 * i] = all;
            }
        wait_for_team(team);
        adam_factors adam = {*rate, keep1, keep2, epsilon};
        float total = 0;
#pragma unroll
        for (int w = 0; w < TEAM; w++)
            total += first[w * PART_FLOATS + index];
        finish_one(s, adam, weight, total);
        if (bias.at >= 0) {
            total = 0;
            for (int w = 0; w < TEAM; w++)
                total += first[w * PART_FLOATS + 128 + index];
            finish_one(s, adam, bias, total);
        }
        wait_for_team(team);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    mlp_rows(const float *x, const float *y, const float *state, float *work, float *gradient,
             float *new_state, u64 seed, s64 batch, s64 first_row, s64 rows, s64 batches,
             int threshold, float scale, float loss_factor, float rate, float beta1, float beta2,
             float epsilon) {
    extern __shared__ __align__(16) float shared[];
    __shared__ float shared_rate;
    int first = (int)blockIdx.x * ROWS;
    step_data s = {x,         y, state,          work, gradient, new_state,  (int)rows,
                   first_row, 0, (u32)threshold, seed, scale,    loss_factor};
    wait_for_previous();
    barrier_data barrier = {load_arrived()};
    float low = state[3 * STRIDE], high = state[3 * STRIDE + 1];
    if (first < s.rows)
        copy_first_weights(s, shared);
    s.step = (s64)high * STEP_BASE + (s64)low;
    s64 row = batch_of(s.step, batches) * batch + first_row;
    s.x += row * INPUTS;
    s.y += row * OUTPUTS;
    if (UPDATE && threadIdx.x == THREADS - 1)
        shared_rate = corrected_rate(rate, beta1, beta2, s.step);
    for (; first < s.rows; first += (int)gridDim.x * ROWS) {
        if (first != (int)blockIdx.x * ROWS)
            copy_first_weights(s, shared);
        take_rows(s, shared, first);
    }
    do_gradients(s, shared, barrier, &shared_rate, 1 - beta1, 1 - beta2, epsilon);
    /* the team that has the fewest tiles */
    int last = WARPS / TEAM - 1, index = (int)threadIdx.x - last * TEAM * 32;
    if (blockIdx.x == 0 && index >= 0)
        finish_losses<TEAM>(s, (double)batch, index, (double *)(shared + last * TEAM * PART_FLOATS),
                            [=] { wait_for_team(last); });
}
