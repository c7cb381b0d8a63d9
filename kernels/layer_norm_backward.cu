/*
 * layer_norm_backward.cu: the derivatives of layer norm, added to what flows past it. With h = (x −
 * mean)·s and g = gamma·dy, for x, dy, residual[rows, COLUMNS] and stats[rows, 2] = mean, s:
 *
 *     out = residual + (g − Σg/COLUMNS − h·Σ(g·h)/COLUMNS)·s     along a row
 *     Σ out   dgamma = Σ dy·h   dbeta = Σ dy                    down the columns
 *
 * Rows are short and independent, columns are long and aren't: the same numbers are summed along
 * both. So a block stays and takes row after row, THREADS threads for each: a row is read once, into
 * registers, where its threads also keep their columns' sums over all rows that they have met. At
 * the end a block adds up its warps' sums in shared memory and writes one row of 3 · COLUMNS; a
 * second kernel adds those up, in the order of blocks, so that the bits are the same each time.
 * Atomics would save that kernel and give other bits each time.
 *
 *   - a warp has a row of up to 1024 columns: no barrier, and ROWS warps of a block are at
 *     different places of their rows, so that loads and arithmetic overlap without more
 *   - registers bound how many: a lane with 24 columns in bf16 keeps 72 sums, 36 words of the row
 *     and 12 of gamma. 12 warps of them have 54 KiB on their way, twice what the memory's latency
 *     asks for
 *
 *     layer_norm_backward        macros: COLUMNS THREADS VECTOR ROWS, SUMS: 1 where `parts` is wanted
 *                                grid: blocks of ROWS · THREADS threads, as many as run at once
 *     layer_norm_backward_sums   sums[count] = Σ parts[blocks, count], count = 3 · COLUMNS
 *                                grid: ⌈count / 32⌉ blocks of 256 threads
 *
 * Memory bounds it: three reads and one write of the matrix. On an H200, whose copies reach 4.3
 * TB/s, 65536 rows of 768 in bf16 went at 3.9, 16384 at 3.0, before Σ out was one of the sums:
 * about 10 µs are the start, the blocks' sums and the second kernel.
 */
#ifdef MAKE_layer_norm_backward_sums
#include "common.cuh"

extern "C" __global__ void __launch_bounds__(256)
    layer_norm_backward_sums(const float *parts, float *sums, int count, int blocks) {
    __shared__ float shared[8][32];
    wait_for_previous();
    int c = (int)blockIdx.x * 32 + (int)threadIdx.x;
    float sum = parts_sum(parts, blocks, count, shared);
    if (threadIdx.x < 32 && c < count)
        sums[c] = sum;
}
#endif

#ifdef MAKE_layer_norm_backward
#include "rows.cuh"

struct sums { /* of this thread's columns */
    struct row out, gamma, beta;
};

/* The columns' sums of all warps of the block, by warps in turn: the upper half hands its own to the
 * lower, and all threads add up what that has. */
__device__ __forceinline__ void gather(const struct row *own, float *to) {
#if ROWS > 1
    __shared__ float shared[ROWS / 2][COLUMNS];
    int warp = (int)threadIdx.x / 32;
    float *mine = shared[warp % (ROWS / 2)];
    for (int half = 1; half >= 0; half--) {
        __syncthreads();
        if (warp / (ROWS / 2) != half)
            continue;
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            int c = column_of(i / STEP) + i % STEP;
            if (c < COLUMNS)
                mine[c] = half ? own->v[i] : mine[c] + own->v[i];
        }
    }
    __syncthreads();
    for (int c = (int)threadIdx.x; c < COLUMNS; c += ROWS * THREADS) {
        float sum = 0.0f;
#pragma unroll
        for (int w = 0; w < ROWS / 2; w++)
            sum += shared[w][c];
        to[c] = sum;
    }
#else
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int c = column_of(i / STEP) + i % STEP;
        if (c < COLUMNS)
            to[c] = own->v[i];
    }
#endif
}

extern "C" __global__ void __launch_bounds__(ROWS *THREADS, 1)
    layer_norm_backward(const element *x, const element *gamma, const float *stats,
                        const element *d, const element *residual, element *out, float *parts,
                        s64 rows) {
    __shared__ float shared[32];
    struct raw g;
    struct sums sums;
    wait_for_previous();
    fetch(gamma, &g);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        sums.out.v[i] = sums.gamma.v[i] = sums.beta.v[i] = 0.0f;
    for (s64 r = (s64)blockIdx.x * ROWS + threadIdx.x / THREADS; r < rows;
         r += (s64)gridDim.x * ROWS) {
        struct raw a, b, past;
        struct row row;
        fetch(x + r * COLUMNS, &a);
        fetch(d + r * COLUMNS, &b);
        fetch(residual + r * COLUMNS, &past);
        float mean = stats[2 * r], scale = stats[2 * r + 1], flat = 0.0f, tilt = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            float h = (item(&a, i) - mean) * scale, y = item(&b, i), z = item(&g, i) * y;
            flat += z;
            tilt = fmaf(z, h, tilt);
#if SUMS
            sums.gamma.v[i] = fmaf(y, h, sums.gamma.v[i]);
            sums.beta.v[i] += y;
#endif
        }
        flat = row_sum<THREADS>(flat, shared) * (1.0f / COLUMNS);
        tilt = row_sum<THREADS>(tilt, shared) * (1.0f / COLUMNS);
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            float h = (item(&a, i) - mean) * scale;
            row.v[i] = item(&past, i) + (item(&g, i) * item(&b, i) - flat - h * tilt) * scale;
#if SUMS
            sums.out.v[i] += row.v[i];
#endif
        }
        write_row(out + r * COLUMNS, &row);
    }
#if SUMS
    parts += (s64)blockIdx.x * (3 * COLUMNS);
    gather(&sums.out, parts);
    gather(&sums.gamma, parts + COLUMNS);
    gather(&sums.beta, parts + 2 * COLUMNS);
#endif
}
#endif
