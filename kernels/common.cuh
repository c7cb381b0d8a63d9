/*
 * common.cuh: what every kernel includes. NVRTC has no headers of its own, so the number formats
 * are written here: DTYPE is 0 for fp32 and 1 for tf32 (both stored as float), 2 for bf16, 3 for
 * fp16, as in enum lab_dtype. All arithmetic outside the matrix units is fp32.
 *
 * A program is one kernel: MAKE_<name> is defined for the one that is wanted. The other macros of a
 * kernel stand at the head of its file; src/device/cuda/plan/plan.c says which it is compiled with.
 */
#ifndef COMMON_CUH
#define COMMON_CUH

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#if DTYPE <= 1
typedef float element;
__device__ __forceinline__ float to_float(element x) {
    return x;
}
__device__ __forceinline__ element from_float(float x) {
    return x;
}
#else
typedef u16 element;
__device__ __forceinline__ float to_float(element x) {
#if DTYPE == 2
    return __uint_as_float((u32)x << 16);
#else
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
#endif
}
__device__ __forceinline__ element from_float(float x) {
    element y;
#if DTYPE == 2
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
#endif
    return y;
}
#endif

#define PER_16_BYTES (16 / (int)sizeof(element))

/* 16 bytes of elements, moved by one instruction. */
union chunk {
    uint4 bits;
    element items[PER_16_BYTES];
};

/* What was made of it is forgotten and made again: numbers of 2 bytes have half the registers of
 * the floats that a compiler would keep instead. */
__device__ __forceinline__ void remake(union chunk *x) {
    asm volatile("" : "+r"(x->bits.x), "+r"(x->bits.y), "+r"(x->bits.z), "+r"(x->bits.w));
}

__device__ __forceinline__ bool aligned(const void *address) {
    return ((u64)address & 15) == 0;
}

/*
 * Where the launch allows it, a kernel's blocks start while the kernel before it still runs: what
 * that one wrote or reads may only be touched behind wait_for_previous, so every kernel begins with
 * it. The next kernel's blocks may come as soon as all of these run: they wait in the same way.
 */
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/*
 * Between blocks of a grid: a flag that one thread sets when what it stored, and what it knows to be
 * stored by a barrier, can be seen by all, and others look at. What was stored before it is then
 * read by load_fresh, past the cache of the multiprocessor.
 */
__device__ __forceinline__ void flag_write(u32 *flag, u32 value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ __forceinline__ u32 flag_peek(const u32 *flag) {
    u32 value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__device__ __forceinline__ float4 load_fresh(const float4 *from) {
    float4 x;
    asm volatile("ld.relaxed.gpu.global.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

__device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float log2_fast(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* The four lanes of a quad, which hold one row of a matrix unit's result. */
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/*
 * Over the N threads of one row (a power of two, 32 to 1024). A row of several warps has the block
 * to itself, `shared` is room for 32 floats, and every thread of the block must come here.
 */
template <int N> __device__ __forceinline__ float row_sum(float x, float *shared) {
    x = warp_sum(x);
    if (N == 32)
        return x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return warp_sum(lane < N / 32 ? shared[lane] : 0.0f);
}

/*
 * Down a column of parts[count, columns], in their order, so that the bits are the same each time.
 * The 8 warps of a block take every eighth part of its 32 columns and meet in `shared`; the first
 * warp's lanes have the sums.
 */
__device__ __forceinline__ float parts_sum(const float *parts, int count, int columns,
                                           float (*shared)[32]) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int c = (int)blockIdx.x * 32 + lane;
    float sum = 0.0f;
#pragma unroll 8
    for (int p = warp; p < count; p += 8)
        sum += c < columns ? parts[(s64)p * columns + c] : 0.0f;
    shared[warp][lane] = sum;
    __syncthreads();
#pragma unroll
    for (int w = 1; w < 8; w++)
        sum += shared[w][lane];
    return sum;
}

template <int N> __device__ __forceinline__ float row_max(float x, float *shared) {
    x = warp_max(x);
    if (N == 32)
        return x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();
    if (lane == 0)
        shared[warp] = x;
    __syncthreads();
    return warp_max(lane < N / 32 ? shared[lane] : __int_as_float(0xff800000));
}

#if DTYPE >= 2
/* Two numbers side by side, as matrix units take them. */
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 both;
#if DTYPE == 2
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
#endif
    return both;
}

__device__ __forceinline__ float low_of(u32 both) {
    return to_float((element)(both & 0xffff));
}

__device__ __forceinline__ float high_of(u32 both) {
    return to_float((element)(both >> 16));
}
#endif

/* --- shared memory --- */

__device__ __forceinline__ u32 load_one(u32 address) {
    u32 x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
    return x;
}

__device__ __forceinline__ float2 load_two(u32 address) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"(address)
                 : "memory");
    return x;
}

__device__ __forceinline__ void store_word(u32 address, u32 x) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(x) : "memory");
}

#endif
