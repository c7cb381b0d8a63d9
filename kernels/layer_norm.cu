/*
 * layer_norm.cu: rows of COLUMNS elements, each normalised by its own mean and population variance,
 * times gamma, plus beta. One source for three ops:
 *
 *     layer_norm            out[r,:] = norm(x[r,:])
 *     patchify_layer_norm   x[r,:] is gathered from images: row r is patch r
 *     layer_norm_embed      out[b·(p+1) + t,:] = norm(x[b·p + t − 1,:]) + position[t,:], and for t = 0
 *                           class + position[0,:]
 *
 * THREADS threads do a row and keep it in registers, so that it is read once; ROWS rows share a block
 * of THREADS · ROWS threads (ROWS > 1 only with THREADS = 32). VECTOR: COLUMNS is a multiple of
 * 16 bytes' elements and every row starts at a multiple of 16 bytes.
 *
 *     macros: COLUMNS THREADS ROWS VECTOR          grid: ⌈rows / ROWS⌉
 */
#if VECTOR
#define STEP PER_16_BYTES
#else
#define STEP 1
#endif
#define PIECES ((COLUMNS + THREADS * STEP - 1) / (THREADS * STEP))
#define HELD   (PIECES * STEP)

struct row {
    float v[HELD];
};

__device__ __forceinline__ int column_of(int piece) {
    return (piece * THREADS + (int)(threadIdx.x % THREADS)) * STEP;
}

__device__ __forceinline__ void read_row(const element *x, struct row *row) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
#if VECTOR
        union chunk in;
        if (c < COLUMNS)
            in.bits = *(const uint4 *)(x + c);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            row->v[p * STEP + i] = c < COLUMNS ? to_float(in.items[i]) : 0.0f;
#else
        row->v[p] = c < COLUMNS ? to_float(x[c]) : 0.0f;
#endif
    }
}

__device__ __forceinline__ void write_row(element *out, const struct row *row) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
        if (c >= COLUMNS)
            continue;
#if VECTOR
        union chunk to;
#pragma unroll
        for (int i = 0; i < STEP; i++)
            to.items[i] = from_float(row->v[p * STEP + i]);
        *(uint4 *)(out + c) = to.bits;
#else
        out[c] = from_float(row->v[p]);
#endif
    }
}

/* Two passes over registers: the variance of what is left after the mean keeps its digits. */
__device__ __forceinline__ void normalise(struct row *row, const element *gamma,
                                          const element *beta, float epsilon, float *shared) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HELD; i++)
        sum += row->v[i];
    float mean = row_sum<THREADS>(sum, shared) * (1.0f / COLUMNS);
    float squares = 0.0f;
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            float d = row->v[p * STEP + i] - mean;
            squares += column_of(p) < COLUMNS ? d * d : 0.0f;
        }
    float scale = rsqrtf(row_sum<THREADS>(squares, shared) * (1.0f / COLUMNS) + epsilon);
    struct row g, b;
    read_row(gamma, &g);
    read_row(beta, &b);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        row->v[i] = (row->v[i] - mean) * scale * g.v[i] + b.v[i];
}

/* Which row this thread works on. Rows beyond the last one do the first again, so that no thread
 * misses a barrier, and don't write it. */
#define MY_ROW(row_count)                                                                          \
    __shared__ float shared[32];                                                                   \
    s64 r = (s64)blockIdx.x * ROWS + threadIdx.x / THREADS;                                        \
    bool mine = r < (row_count);                                                                   \
    if (!mine)                                                                                     \
        r = 0;

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    layer_norm(const element *x, const element *gamma, const element *beta, element *out, s64 rows,
               float epsilon) {
    MY_ROW(rows)
    struct row row;
    read_row(x + r * COLUMNS, &row);
    normalise(&row, gamma, beta, epsilon, shared);
    if (mine)
        write_row(out + r * COLUMNS, &row);
}

/* COLUMNS = patch · patch · channels; inside a patch the channel is the fastest. */
extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    patchify_layer_norm(const element *image, const element *gamma, const element *beta,
                        element *out, s64 rows, float epsilon, int channels, int height, int width,
                        int patch) {
    MY_ROW(rows)
    int across = width / patch, patches = across * (height / patch);
    s64 b = r / patches;
    int p = (int)(r % patches), top = p / across * patch, left = p % across * patch;
    const element *from = image + b * channels * height * width;
    struct row row;
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int c = column_of(i / STEP) + i % STEP;
        int k = c % channels, at = c / channels, y = at / patch, x = at % patch;
        row.v[i] =
            c < COLUMNS ? to_float(from[((s64)k * height + top + y) * width + left + x]) : 0.0f;
    }
    normalise(&row, gamma, beta, epsilon, shared);
    if (mine)
        write_row(out + r * COLUMNS, &row);
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    layer_norm_embed(const element *x, const element *gamma, const element *beta,
                     const element *first, const element *position, element *out, s64 rows,
                     float epsilon, int patches) {
    MY_ROW(rows)
    s64 b = r / (patches + 1);
    int t = (int)(r % (patches + 1));
    struct row row, at;
    read_row(t ? x + (b * patches + t - 1) * COLUMNS : first, &row);
    /* a block of several warps has one row, so all of its threads agree on t */
    if (t)
        normalise(&row, gamma, beta, epsilon, shared);
    read_row(position + (s64)t * COLUMNS, &at);
#pragma unroll
    for (int i = 0; i < HELD; i++)
        row.v[i] += at.v[i];
    if (mine)
        write_row(out + r * COLUMNS, &row);
}
