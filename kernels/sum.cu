/*
 * sum.cu: the sum of a vector over several ranks, in device memory that all of them reach: slices
 * of one GPU, whose kernels run at the same time because each has multiprocessors of its own.
 *
 *     vectors: DTYPE [count], added up in fp32, one of each rank; RANKS kernels run, one of each rank, with the same
 *     grid
 *
 * A rank sums its share of the values, over all vectors in the same order, and writes them into all
 * vectors: so each value is added up once and is the same everywhere to the bit. A vector may be
 * read when its owner has begun, and given back when everybody has ended: the blocks of the same
 * number meet twice.
 *
 * They meet by seats: a block writes where its vector is and then the number of the meeting into
 * its own seat, and looks at those of the same block of the other ranks. The number goes on from
 * the last one in the seat, in device memory, so that a launch in a graph can be replayed. It
 * stands in the upper half of a word whose lower half is the vector's length: ranks that do
 * different sums find out.
 *
 * Nobody looks for ever. Who has waited for too long, or finds that others have given up, tells the
 * host and ends.
 *
 *     macros: RANKS 2 to 32, THREADS, UNROLL: 16 bytes of each vector that a thread has on their
 *     way
 *
 * The two meetings bound short vectors, memory long ones. On 4 slices of an H200 1 KiB of fp32 takes
 * 4.4 µs, 8 MiB 14.7 µs from the L2 cache and 21.8 µs without: 854 and 577 GB/s by nccl-tests'
 * definition.
 */
#include "common.cuh"

struct seat {
    u64 word; /* number of the meeting << 32 | count's lower half */
    element *vector;
};

/* In host memory, which all ranks and the host reach (src/device/cuda/sum.c). */
struct notice {
    u32 given_up;       /* not 0: whoever waits is to end */
    u32 reports[RANKS]; /* of each rank: why << 16 | whom it was waiting for; 0 = all is well */
};

enum { WHY_NEVER_CAME = 1, WHY_OUT_OF_STEP, WHY_GIVEN_UP };

#define SEATS       1024 /* of a rank: blocks that a grid has at most */
#define LOOKS_FIRST 512  /* before the clock is looked at: some hundred microseconds */
#define LOOKS       32   /* between two looks at it */

__device__ __forceinline__ u64 load_word(const u64 *from) {
    u64 value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ void store_word(u64 *to, u64 value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

__device__ __forceinline__ u64 now_ns() {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

/* 0, or why it didn't come about. */
__device__ u32 await_meeting(const struct seat *seat, u32 number, u32 length,
                             const volatile struct notice *notice, u64 limit_ns) {
    u64 since_ns = 0;
    for (int looks = 0;; looks++) {
        u64 word = load_word(&seat->word);
        if ((int)((u32)(word >> 32) - number) >= 0)
            return (u32)word == length ? 0 : WHY_OUT_OF_STEP;
        if (looks < LOOKS_FIRST || looks % LOOKS)
            continue;
        u64 time_ns = now_ns();
        since_ns = since_ns ? since_ns : time_ns;
        if (notice->given_up)
            return WHY_GIVEN_UP;
        if (time_ns - since_ns > limit_ns)
            return WHY_NEVER_CAME;
    }
}

__device__ __noinline__ void give_up(volatile struct notice *notice, int rank, int whom, u32 why) {
    if (why != WHY_GIVEN_UP)
        notice->reports[rank] = why << 16 | (u32)whom;
    __threadfence_system();
    notice->given_up = 1;
}

/* Lane `whom` of the first warp waits for that rank; the rank's own lane announces it. */
__device__ __forceinline__ bool meet(struct seat *seats, int rank, u32 number, u32 length,
                                     volatile struct notice *notice, u64 limit_ns) {
    int whom = threadIdx.x;
    if (whom == rank)
        store_word(&seats[(s64)rank * SEATS].word, (u64)number << 32 | length);
    __syncwarp();
    if (whom >= RANKS || whom == rank)
        return true;
    u32 why = await_meeting(&seats[(s64)whom * SEATS], number, length, notice, limit_ns);
    if (why)
        give_up(notice, rank, whom, why);
    return !why;
}

__device__ __forceinline__ union chunk load_chunk(const union chunk *from) {
    union chunk x;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.bits.x), "=r"(x.bits.y), "=r"(x.bits.z), "=r"(x.bits.w)
                 : "l"(from));
    return x;
}

/* The chunks of one thread, `at` and every THREADS behind it; `most` of them lie in this rank's
 * share. */
template <bool ALL>
__device__ __forceinline__ void sum_chunks(element *const *vectors, s64 first, s64 at, int most) {
    union chunk x[UNROLL][RANKS];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
#pragma unroll
        for (int r = 0; r < RANKS; r++)
            if (ALL || u < most)
                x[u][r] = load_chunk((const union chunk *)(vectors[r] + first) + at + u * THREADS);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        union chunk sum;
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++) {
            float value = to_float(x[u][0].items[i]);
#pragma unroll
            for (int r = 1; r < RANKS; r++)
                value += to_float(x[u][r].items[i]);
            sum.items[i] = from_float(value);
        }
#pragma unroll
        for (int r = 0; r < RANKS; r++)
            if (ALL || u < most)
                ((union chunk *)(vectors[r] + first))[at + u * THREADS].bits = sum.bits;
    }
}

/* Values before `first` and from `behind` on, one by one: what chunks leave over. */
__device__ __forceinline__ void sum_singles(element *const *vectors, int rank, s64 first,
                                            s64 behind, s64 count) {
    s64 singles = first + count - behind, end = singles * (rank + 1) / RANKS;
    s64 at = singles * rank / RANKS + (s64)blockIdx.x * THREADS + threadIdx.x;
    for (; at < end; at += (s64)gridDim.x * THREADS) {
        s64 place = at < first ? at : behind + at - first;
        float x[RANKS];
#pragma unroll
        for (int r = 0; r < RANKS; r++)
            x[r] = to_float(vectors[r][place]);
#pragma unroll
        for (int r = 1; r < RANKS; r++)
            x[0] += x[r];
#pragma unroll
        for (int r = 0; r < RANKS; r++)
            vectors[r][place] = from_float(x[0]);
    }
}

__device__ __forceinline__ void sum_share(element *const *vectors, int rank, s64 count) {
    u64 skew = (u64)vectors[0] & 15;
    bool alike = true;
#pragma unroll
    for (int r = 1; r < RANKS; r++)
        alike &= ((u64)vectors[r] & 15) == skew;
    s64 first = (s64)((16 - skew) & 15) / (s64)sizeof(element);
    s64 chunks = alike && count > first ? (count - first) / PER_16_BYTES : 0;
    first = chunks ? first : 0;
    s64 end = chunks * (rank + 1) / RANKS;
    s64 at = chunks * rank / RANKS + (s64)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
    for (; at < end; at += (s64)gridDim.x * (THREADS * UNROLL)) {
        s64 left = (end - at + THREADS - 1) / THREADS;
        if (left >= UNROLL)
            sum_chunks<true>(vectors, first, at, UNROLL);
        else
            sum_chunks<false>(vectors, first, at, (int)left);
    }
    sum_singles(vectors, rank, first, first + PER_16_BYTES * chunks, count);
}

#ifdef MAKE_sum
extern "C" __global__ void __launch_bounds__(THREADS)
    sum(struct seat *all_seats, element *vector, s64 count, struct notice *notice, u64 limit_ns,
        int rank) {
    __shared__ element *shared[RANKS];
    wait_for_previous();
    struct seat *seats = all_seats + blockIdx.x; /* rank r's is SEATS · r behind it */
    struct seat *own = seats + (s64)rank * SEATS;
    u32 number = 0;
    bool met = true;
    if (threadIdx.x < 32) {
        number = (u32)(load_word(&own->word) >> 32) + 1;
        __syncwarp();
        if (threadIdx.x == rank)
            own->vector = vector;
        met = meet(seats, rank, number, (u32)count, notice, limit_ns);
        if (threadIdx.x < RANKS)
            shared[threadIdx.x] = *(element *volatile *)&seats[(s64)threadIdx.x * SEATS].vector;
    }
    if (__syncthreads_or(!met))
        return;
    element *vectors[RANKS];
#pragma unroll
    for (int r = 0; r < RANKS; r++)
        vectors[r] = shared[r];
    sum_share(vectors, rank, count);
    __syncthreads();
    if (threadIdx.x < 32)
        meet(seats, rank, number + 1, (u32)count, notice, limit_ns);
}
#endif
