/*
 * mma.cuh: what kernels by mma.sync and cp.async have in common, which is one instruction each.
 * Addresses in shared memory are the 32-bit ones.
 *
 * VECTOR, a macro of each of these kernels, says whether memory can be read 16 bytes at a time.
 */
#ifndef MMA_CUH
#define MMA_CUH

#include "common.cuh"

/* --- into shared memory --- */

/* 16 bytes, of which `there` elements exist; the others become zeros. */
__device__ __forceinline__ void fetch_piece(u32 to, const element *from, int there) {
#if VECTOR
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there > 0 ? 16 : 0)
                 : "memory");
#else
    union chunk chunk = {{0, 0, 0, 0}};
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        if (i < there)
            chunk.items[i] = from[i];
    asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(chunk.bits.x),
                 "r"(chunk.bits.y), "r"(chunk.bits.z), "r"(chunk.bits.w)
                 : "memory");
#endif
}

/* Both at multiples of 16. */
__device__ __forceinline__ void fetch_16_bytes(u32 to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the newest N groups have come, those of all threads. */
template <int N> __device__ __forceinline__ void await() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
    __syncthreads();
}

/* --- into registers --- */

/* Four times 8 rows of 16 bytes; lane i gives the address of row i. */
__device__ __forceinline__ void load_four(u32 address, u32 *r, u32 *s) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(s[0]), "=r"(s[1])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_four_turned(u32 address, u32 *r, u32 *s) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(s[0]), "=r"(s[1])
                 : "r"(address)
                 : "memory");
}

/* --- the matrix unit --- */

__device__ __forceinline__ u32 round_tf32(float x) {
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

/* d[16,8] += a[16,STEP]·b[STEP,8] */
#define STEP (DTYPE >= 2 ? 16 : 8)

__device__ __forceinline__ void multiply_one(float *d, const u32 *a, const u32 *b) {
#if DTYPE == 2
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
#elif DTYPE == 3
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
#endif
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
