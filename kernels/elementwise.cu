/*
 * elementwise.cu: fill, add, bias, gelu over `count` elements. A thread does 16 bytes; the last ones,
 * and buffers that aren't aligned to 16 bytes, are done one by one.
 *
 *     grid: ⌈count / (256 · PER_16_BYTES)⌉ blocks of 256 threads
 */
__device__ __forceinline__ bool aligned(const void *a) {
    return ((u64)a & 15) == 0;
}

/* exact: x/2 · erfc(−x/√2) keeps the digits of the negative tail */
__device__ __forceinline__ float gelu_of(float x) {
    return 0.5f * x * erfcf(-x * 0.70710678118654752f);
}

#define FOR_MY_ELEMENTS(first)                                                                     \
    s64 first = ((s64)blockIdx.x * 256 + threadIdx.x) * PER_16_BYTES;                              \
    if (first >= count)                                                                            \
        return;                                                                                    \
    int mine = count - first < PER_16_BYTES ? (int)(count - first) : PER_16_BYTES;

__device__ __forceinline__ void load(const element *from, s64 first, int mine, float *to) {
    if (mine == PER_16_BYTES && aligned(from)) {
        union chunk in;
        in.bits = *(const uint4 *)(from + first);
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            to[i] = to_float(in.items[i]);
    } else {
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            to[i] = i < mine ? to_float(from[first + i]) : 0.0f;
    }
}

__device__ __forceinline__ void store(element *to, s64 first, int mine, const float *from) {
    if (mine == PER_16_BYTES && aligned(to)) {
        union chunk out;
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            out.items[i] = from_float(from[i]);
        *(uint4 *)(to + first) = out.bits;
    } else {
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            if (i < mine)
                to[first + i] = from_float(from[i]);
    }
}

extern "C" __global__ void __launch_bounds__(256) fill(element *out, s64 count, float value) {
    FOR_MY_ELEMENTS(first)
    float v[PER_16_BYTES];
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        v[i] = value;
    store(out, first, mine, v);
}

extern "C" __global__ void __launch_bounds__(256)
    add(const element *a, const element *b, element *out, s64 count) {
    FOR_MY_ELEMENTS(first)
    float v[PER_16_BYTES], w[PER_16_BYTES];
    load(a, first, mine, v);
    load(b, first, mine, w);
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        v[i] += w[i];
    store(out, first, mine, v);
}

extern "C" __global__ void __launch_bounds__(256)
    bias(const element *x, const element *bias, element *out, s64 count, int columns) {
    FOR_MY_ELEMENTS(first)
    float v[PER_16_BYTES];
    load(x, first, mine, v);
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        v[i] += i < mine ? to_float(bias[(first + i) % columns]) : 0.0f;
    store(out, first, mine, v);
}

extern "C" __global__ void __launch_bounds__(256) gelu(const element *x, element *out, s64 count) {
    FOR_MY_ELEMENTS(first)
    float v[PER_16_BYTES];
    load(x, first, mine, v);
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        v[i] = gelu_of(v[i]);
    store(out, first, mine, v);
}
