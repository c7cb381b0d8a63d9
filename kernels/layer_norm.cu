/*
 * layer_norm.cu: rows of COLUMNS elements, each normalised by its own mean and population variance,
 * times gamma, plus beta. One source for five kernels:
 *
 *     layer_norm            out[r,:] = norm(x[r,:]); stats[r,:] = mean, 1/deviation, unless it is
 *                           NULL
 *     patchify_layer_norm   x[r,:] is gathered from images: row r is patch r
 *     layer_norm_embed      out[b·(p+1) + t,:] = norm(x[b·p + t − 1,:]) + position[t,:], and for t
 *                           = 0 class + position[0,:]
 *     residual_layer_norm   out[r,:] = x[r,:] + residual[r,:] as it is stored, out[rows + r,:] =
 *                           norm(out[r,:]); stats likewise. Read twice and written twice: 16384 rows
 *                           of 768 in bf16 go at 3.9 TB/s on an H200, 65536 at 4.1
 *     layer_norm_long       layer_norm of rows that don't fit into registers: `columns` of them
 *
 * THREADS threads do a row and keep it in registers, so that it is read once. With THREADS = 32 a
 * block may have up to four rows, a warp for each; else it has one. VECTOR: COLUMNS is a multiple
 * of 16 bytes' elements and every row starts at a multiple of 16 bytes.
 *
 * Memory bounds them: layer_norm of 12608 rows of 1024 in bf16, a launch alone, takes 14.3 µs on an
 * H200, 3.6 TB/s; of 1970 rows, which the L2 cache holds, 4.6 µs, mostly a launch's start and end.
 *
 *     macros: COLUMNS THREADS VECTOR, patchify_layer_norm also CHANNELS PATCH; layer_norm_long none
 *     grid: ⌈rows / (blockDim.x / THREADS)⌉ blocks
 */
#include "common.cuh"

__device__ __forceinline__ void write_stats(float *stats, s64 row, bool mine, float mean,
                                            float scale) {
    if (stats && mine) {
        stats[2 * row] = mean;
        stats[2 * row + 1] = scale;
    }
}

#ifdef MAKE_layer_norm_long
#define THREADS 1024

extern "C" __global__ void __launch_bounds__(THREADS)
    layer_norm_long(const element *x, const element *gamma, const element *beta, element *out,
                    float *stats, int columns, float epsilon) {
    __shared__ float shared[32];
    wait_for_previous();
    x += (s64)blockIdx.x * columns;
    out += (s64)blockIdx.x * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        sum += to_float(x[c]);
    float mean = row_sum<THREADS>(sum, shared) / (float)columns;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS) {
        float d = to_float(x[c]) - mean;
        squares += d * d;
    }
    float scale = rsqrtf(row_sum<THREADS>(squares, shared) / (float)columns + epsilon);
    write_stats(stats, blockIdx.x, threadIdx.x == 0, mean, scale);
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        out[c] =
            from_float((to_float(x[c]) - mean) * scale * to_float(gamma[c]) + to_float(beta[c]));
}
#else

#include "rows.cuh"

#define BLOCK (THREADS == 32 ? 128 : THREADS)

/* Two passes over registers: the variance of what is left after the mean keeps its digits. gamma
 * and beta are asked for first: they arrive while the sums go round. Returns mean and 1/deviation. */
__device__ __forceinline__ float2 normalise(struct row *row, const element *gamma,
                                            const element *beta, float epsilon, float *shared) {
    struct raw g, b;
    fetch(gamma, &g);
    fetch(beta, &b);
    float sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        sum += row->v[i];
    float mean = row_sum<THREADS>(sum, shared) * (1.0f / COLUMNS);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        float d = row->v[i] - mean;
        squares += column_of(i / STEP) < COLUMNS ? d * d : 0.0f;
    }
    float scale = rsqrtf(row_sum<THREADS>(squares, shared) * (1.0f / COLUMNS) + epsilon);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        row->v[i] = (row->v[i] - mean) * scale * item(&g, i) + item(&b, i);
    return make_float2(mean, scale);
}

/* Which row this thread works on. Rows beyond the last one do the first again, so that no thread
 * misses a barrier, and don't write it. */
#define MY_ROW                                                                                     \
    __shared__ float shared[32];                                                                   \
    wait_for_previous();                                                                           \
    s64 r = ((s64)blockIdx.x * blockDim.x + threadIdx.x) / THREADS;                                \
    bool mine = r < rows;                                                                          \
    if (!mine)                                                                                     \
        r = 0;

#ifdef MAKE_layer_norm
extern "C" __global__ void __launch_bounds__(BLOCK)
    layer_norm(const element *x, const element *gamma, const element *beta, element *out,
               float *stats, s64 rows, float epsilon) {
    MY_ROW
    struct row row;
    read_row(x + r * COLUMNS, &row);
    float2 found = normalise(&row, gamma, beta, epsilon, shared);
    if (mine)
        write_row(out + r * COLUMNS, &row);
    write_stats(stats, r, mine && threadIdx.x % THREADS == 0, found.x, found.y);
}
#endif

#ifdef MAKE_residual_layer_norm
extern "C" __global__ void __launch_bounds__(BLOCK)
    residual_layer_norm(const element *x, const element *gamma, const element *beta,
                        const element *residual, element *out, float *stats, s64 rows,
                        float epsilon) {
    MY_ROW
    struct row row;
    struct raw a, b;
    fetch(x + r * COLUMNS, &a);
    fetch(residual + r * COLUMNS, &b);
#pragma unroll
    for (int i = 0; i < HELD; i++) /* as backward will read it */
        row.v[i] = to_float(from_float(item(&a, i) + item(&b, i)));
    if (mine)
        write_row(out + r * COLUMNS, &row);
    float2 found = normalise(&row, gamma, beta, epsilon, shared);
    if (!mine)
        return;
    write_row(out + (rows + r) * COLUMNS, &row);
    write_stats(stats, r, threadIdx.x % THREADS == 0, found.x, found.y);
}
#endif

#ifdef MAKE_patchify_layer_norm
/* COLUMNS = PATCH · PATCH · CHANNELS; inside a patch the channel is the fastest. Compiled without
 * VECTOR: neighbouring threads then read neighbouring pixels of each channel. */
extern "C" __global__ void __launch_bounds__(BLOCK)
    patchify_layer_norm(const element *image, const element *gamma, const element *beta,
                        element *out, s64 rows, float epsilon, int height, int width) {
    MY_ROW
    int across = width / PATCH, patches = across * (height / PATCH);
    s64 b = r / patches;
    int p = (int)(r % patches), top = p / across * PATCH, left = p % across * PATCH;
    const element *from = image + (b * CHANNELS * height + top) * width + left;
    struct row row;
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int c = column_of(i / STEP) + i % STEP;
        int k = c % CHANNELS, at = c / CHANNELS, y = at / PATCH, x = at % PATCH;
        row.v[i] = c < COLUMNS ? to_float(from[((s64)k * height + y) * width + x]) : 0.0f;
    }
    normalise(&row, gamma, beta, epsilon, shared);
    if (mine)
        write_row(out + r * COLUMNS, &row);
}
#endif

#ifdef MAKE_layer_norm_embed
extern "C" __global__ void __launch_bounds__(BLOCK)
    layer_norm_embed(const element *x, const element *gamma, const element *beta,
                     const element *first, const element *position, element *out, s64 rows,
                     float epsilon, int patches) {
    MY_ROW
    s64 b = r / (patches + 1);
    int t = (int)(r % (patches + 1));
    struct row row;
    struct raw at;
    read_row(t ? x + (b * patches + t - 1) * COLUMNS : first, &row);
    fetch(position + (s64)t * COLUMNS, &at);
    /* a row's threads agree on t, and a row of several warps is alone in its block */
    if (t)
        normalise(&row, gamma, beta, epsilon, shared);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        row.v[i] += item(&at, i);
    if (mine)
        write_row(out + r * COLUMNS, &row);
}
#endif
#endif
