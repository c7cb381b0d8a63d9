/*
 * softmax.cu: rows of `columns` elements. In registers where the row fits (HELD > 0: up to
 * THREADS · HELD elements), so that it is read once and written once; else three passes over memory.
 *
 *     macros: THREADS HELD          grid: one block for each row, THREADS threads
 */
extern "C" __global__ void __launch_bounds__(THREADS)
    softmax(const element *x, element *out, s64 rows, int columns) {
    __shared__ float shared[32];
    const element *from = x + (s64)blockIdx.x * columns;
    element *to = out + (s64)blockIdx.x * columns;
    const float lowest = __int_as_float(0xff800000);
    float most = lowest, sum = 0.0f;
#if HELD > 0
    float v[HELD];
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int c = i * THREADS + (int)threadIdx.x;
        v[i] = c < columns ? to_float(from[c]) : lowest;
        most = fmaxf(most, v[i]);
    }
    most = row_max<THREADS>(most, shared);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        v[i] = expf(v[i] - most);
        sum += i * THREADS + (int)threadIdx.x < columns ? v[i] : 0.0f;
    }
    float scale = 1.0f / row_sum<THREADS>(sum, shared);
#pragma unroll
    for (int i = 0; i < HELD; i++) {
        int c = i * THREADS + (int)threadIdx.x;
        if (c < columns)
            to[c] = from_float(v[i] * scale);
    }
#else
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        most = fmaxf(most, to_float(from[c]));
    most = row_max<THREADS>(most, shared);
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        sum += expf(to_float(from[c]) - most);
    float scale = 1.0f / row_sum<THREADS>(sum, shared);
    for (int c = (int)threadIdx.x; c < columns; c += THREADS)
        to[c] = from_float(expf(to_float(from[c]) - most) * scale);
#endif
}
