/*
 * softmax.cu: rows of `columns` elements.
 *
 *     softmax        THREADS threads do a row and keep it in registers, PIECES pieces each, so that it
 *                    is read once and written once; with THREADS = 32 a block may have up to four
 *                    rows. VECTOR: `columns` is a multiple of 16 bytes' elements, and x and out start
 *                    at multiples of 16 bytes.
 *     softmax_long   any length: once over the row for its maximum and sum, once more for the result
 *
 *     macros: THREADS PIECES VECTOR; softmax_long none
 *     grid: ⌈rows / (blockDim.x / THREADS)⌉ blocks
 */
#define LOWEST __int_as_float(0xff800000)

#ifdef MAKE_softmax_long
#define THREADS 1024

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_long(const element *x, element *out, int columns) {
    __shared__ float shared[32];
    wait_for_previous();
    x += (s64)blockIdx.x * columns;
    out += (s64)blockIdx.x * columns;
    float most = LOWEST, sum = 0.0f;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS) {
        float v = to_float(x[c]);
        if (v > most) {
            sum *= expf(most - v);
            most = v;
        }
        sum += v == LOWEST ? 0.0f : expf(v - most);
    }
    float all = row_max<THREADS>(most, shared);
    /* a thread without elements has the sum 0 */
    float total = row_sum<THREADS>(sum == 0.0f ? 0.0f : sum * expf(most - all), shared);
    float scale = 1.0f / total;
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        out[c] = from_float(expf(to_float(x[c]) - all) * scale);
}
#endif

#ifdef MAKE_softmax
#if VECTOR
#define STEP PER_16_BYTES
#else
#define STEP 1
#endif
#define HELD  (PIECES * STEP)
#define BLOCK (THREADS == 32 ? 128 : THREADS)

__device__ __forceinline__ int column_of(int piece) {
    return (piece * THREADS + (int)(threadIdx.x % THREADS)) * STEP;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    softmax(const element *x, element *out, s64 rows, int columns) {
    __shared__ float shared[32];
    wait_for_previous();
    /* rows beyond the last one do the first again, so that no thread misses a barrier */
    s64 r = ((s64)blockIdx.x * blockDim.x + threadIdx.x) / THREADS;
    bool mine = r < rows;
    const element *from = x + (mine ? r : 0) * columns;
    element *to = out + r * columns;
    float v[HELD], most = LOWEST, sum = 0.0f;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
#if VECTOR
        union chunk in;
        if (c < columns)
            in.bits = *(const uint4 *)(from + c);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            v[p * STEP + i] = c < columns ? to_float(in.items[i]) : LOWEST;
#else
        v[p] = c < columns ? to_float(from[c]) : LOWEST;
#endif
    }
#pragma unroll
    for (int i = 0; i < HELD; i++)
        most = fmaxf(most, v[i]);
    most = row_max<THREADS>(most, shared);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        v[i] = expf(v[i] - most);
        sum += column_of(i / STEP) < columns ? v[i] : 0.0f;
    }
    float scale = 1.0f / row_sum<THREADS>(sum, shared);
    if (!mine)
        return;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int c = column_of(p);
        if (c >= columns)
            continue;
#if VECTOR
        union chunk result;
#pragma unroll
        for (int i = 0; i < STEP; i++)
            result.items[i] = from_float(v[p * STEP + i] * scale);
        *(uint4 *)(to + c) = result.bits;
#else
        to[c] = from_float(v[p] * scale);
#endif
    }
}
#endif
