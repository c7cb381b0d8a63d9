/*
 * mlp_step.cuh: what the kernels of a step need beside products and Adam: the barrier among all
 * blocks, dropout, and sums over a block.
 */
#ifndef MLP_STEP_CUH
#define MLP_STEP_CUH

#include "common.cuh"

#ifdef W0
#define WARPS_LOG 4
#else
#define WARPS_LOG 3 /* 16 warps with half the registers each are slower */
#endif
#define WARPS    (1 << WARPS_LOG)
#define THREADS  (WARPS * 32)
#define FORWARD  (MODE & 1)
#define BACKWARD (MODE & 2)
#define UPDATE   (MODE & 4)

#ifdef MODE

/* --- the barrier --- */

#define POLLS_MAX                                                                                  \
    (1 << 24) /* seconds: a block that never came is a fault, not a wait without end */

/*
 * The highest bit turns when all have come: one block adds what the others lack of it. So nothing
 * has to be put back, and launches of any number of blocks follow each other. The kernel's launches
 * must not run side by side: they are put on one stream.
 */
__device__ u32 arrived;

__device__ __forceinline__ u32 load_arrived() {
    u32 now;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&arrived) : "memory");
    return now;
}

/* The counter as a block found it before it came for the first time; of thread 0 alone. */
struct barrier_data {
    u32 turned;
};

/* Nothing is known of what others wrote: that is not asked for, and what follows needn't wait. */
__device__ __forceinline__ barrier_data find_barrier() {
    u32 now;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&arrived));
    return {now};
}

/* The last thread has time for something else until all are there. */
template <class MEANWHILE>
__device__ __forceinline__ void wait_for_all(barrier_data &barrier, MEANWHILE meanwhile) {
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 mine = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
        asm volatile("red.add.release.gpu.global.u32 [%0], %1;" ::"l"(&arrived), "r"(mine)
                     : "memory");
        for (int polls = 0; ((load_arrived() ^ barrier.turned) & 0x80000000u) == 0; polls++)
            if (polls > POLLS_MAX)
                __trap();
        barrier.turned ^= 0x80000000u;
    } else if (threadIdx.x == THREADS - 1)
        meanwhile();
    __syncthreads();
}

__device__ __forceinline__ void wait_for_all(barrier_data &barrier) {
    wait_for_all(barrier, [] {});
}

/* Four neighbouring warps of a block. */
__device__ __forceinline__ void wait_for_team(int team) {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "r"(4 * 32) : "memory");
}

/* --- dropout --- */

struct words4 {
    u32 w[4];
};

__device__ __forceinline__ words4 philox(u32 c0, u32 c1, u32 c2, u32 c3, u64 key) {
    u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        u32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1;
        c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/* Of the 8 columns that a block of numbers serves: which are kept, a bit each. */
template <class STEP>
__device__ __forceinline__ u32 kept_of(const STEP &s, int layer, int row, int block) {
    words4 numbers = philox((u32)block, (u32)(s.first_row + row),
                            (u32)layer + 256 * (u32)((u64)s.step >> 32), (u32)s.step, s.seed);
    u32 kept = 0;
#pragma unroll
    for (int j = 0; j < 8; j++)
        kept |= (u32)((numbers.w[j / 2] >> (j % 2 * 16) & 0xffff) >= s.threshold) << j;
    return kept;
}

/* --- sums --- */

/* Over a warp. */
__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

#endif

#endif
