/*
 * softmax.cu: rows of `columns` elements. A row stays on the chip: it is read once and written
 * once.
 *
 *     softmax        THREADS threads do a row and keep it in registers, PIECES pieces of STEP
 *                    elements each. Rows of at most a warp share a block, BLOCK / THREADS of them.
 *     softmax_wide   the same with a row cut into CLUSTER parts, each the part of a block; the
 *                    blocks of a cluster tell each other what they found
 *     softmax_long   any length: once over the row for its maximum and sum, once more for the
 *                    result
 *
 * How it gets by with one barrier: a warp takes the exponentials of its elements against its own
 * maximum and sums them, before anything is known of the others. All warps' pairs of maximum and
 * sum then give those of the row, and what a warp has is corrected by one factor.
 *
 *     VECTOR   2: all rows begin and end at multiples of 16 bytes. 1: x and out lie alike to those
 *              multiples, and rows begin anywhere; the 16 bytes that a row shares with another one
 *              are read whole, and written by elements; those that x shares with what isn't its own
 *              are read by elements too. 0: elements one by one.
 *     PAST     1: what is read and written is the first to leave the caches
 *     BLOCKS   blocks that shall fit on a multiprocessor at once
 *     AHEAD    0: a block, or what shares one, for each row. n: BLOCKS blocks for each
 *              multiprocessor go from row to row, and the next n of each are on their way to its
 *              shared memory, of which it has AHEAD * PIECES * BLOCK * 16 bytes; VECTOR isn't 0
 *              then.
 *     grid: rows, or blocks that share them, times CLUSTER
 *
 * Memory bounds it. On an H200 in bf16, read and written: 3.2 TB/s for 4096 x 4096 (a copy of as
 * many bytes: 3.4), 4.0 for 16384 x 8192 (4.2), 3.9 for 4096 x 131072 (4.2).
 */
#include "common.cuh"

#define LOWEST __int_as_float(0xff800000)
#define LOG2_E 1.4426950408889634f

__device__ __forceinline__ float log2_of(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

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

#if defined(MAKE_softmax) || defined(MAKE_softmax_wide)
#ifndef CLUSTER
#define CLUSTER 1
#endif
#if VECTOR
#define STEP PER_16_BYTES
#else
#define STEP 1
#endif
#if PAST > 1 || (AHEAD && !VECTOR)
#error "there is no such kernel"
#endif
#define LANES (THREADS < 32 ? THREADS : 32) /* of a row in a warp */
#define BLOCK (THREADS <= 32 ? 128 : THREADS)
#define WARPS (THREADS / 32)                        /* of a row in a block */
#define KEPT  (sizeof(element) == 4 || PIECES <= 4) /* else exponentials are computed twice */

/* --- pieces of a row --- */

#if VECTOR
typedef union chunk piece;
#else
typedef element piece;
#endif

__device__ __forceinline__ piece load(const element *at) {
    piece p;
#if VECTOR
#if PAST
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(p.bits.x), "=r"(p.bits.y), "=r"(p.bits.z), "=r"(p.bits.w)
                 : "l"(at));
#else
    p.bits = *(const uint4 *)at;
#endif
#else
    p = *at;
#endif
    return p;
}

__device__ __forceinline__ void store(element *at, const piece &p) {
#if VECTOR
#if PAST
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(p.bits.x),
                 "r"(p.bits.y), "r"(p.bits.z), "r"(p.bits.w)
                 : "memory");
#else
    *(uint4 *)at = p.bits;
#endif
#else
    *at = p;
#endif
}

__device__ __forceinline__ element &item(piece &p, int i) {
#if VECTOR
    return p.items[i];
#else
    return p;
#endif
}

#if VECTOR && DTYPE >= 2
#if DTYPE == 2
#define HALF "bf16"
#else
#define HALF "f16"
#endif

__device__ __forceinline__ void unpack(const piece &p, float (&v)[STEP]) {
    const u32 *words = &p.bits.x;
#pragma unroll
    for (int i = 0; i < STEP; i += 2) {
        v[i] = to_float((element)words[i / 2]);
        v[i + 1] = DTYPE == 2 ? __uint_as_float(words[i / 2] & 0xffff0000u)
                              : to_float((element)(words[i / 2] >> 16));
    }
}

__device__ __forceinline__ void pack(piece &p, const float (&v)[STEP]) {
    u32 *words = &p.bits.x;
#pragma unroll
    for (int i = 0; i < STEP; i += 2)
        asm("cvt.rn." HALF "x2.f32 %0, %1, %2;" : "=r"(words[i / 2]) : "f"(v[i + 1]), "f"(v[i]));
}

/* The largest element of all pieces, two at a time. */
__device__ __forceinline__ float top_of(const piece (&held)[PIECES]) {
    u32 top = held[0].bits.x;
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int i = 0; i < STEP / 2; i++)
            asm("max." HALF "x2 %0, %0, %1;" : "+r"(top) : "r"((&held[p].bits.x)[i]));
    return fmaxf(to_float((element)top), to_float((element)(top >> 16)));
}
#else
__device__ __forceinline__ void unpack(const piece &p, float (&v)[STEP]) {
#pragma unroll
    for (int i = 0; i < STEP; i++)
        v[i] = to_float(item(const_cast<piece &>(p), i));
}

__device__ __forceinline__ void pack(piece &p, const float (&v)[STEP]) {
#pragma unroll
    for (int i = 0; i < STEP; i++)
        item(p, i) = from_float(v[i]);
}

__device__ __forceinline__ float top_of(const piece (&held)[PIECES]) {
    float top = LOWEST, v[STEP];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        unpack(held[p], v);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            top = fmaxf(top, v[i]);
    }
    return top;
}
#endif

/* Where a row's pieces lie: piece 0 is at `from` and `to`, before the row's own first element by
 * `shift`. The first or the last of them may reach out of x (VECTOR 1). */
struct row {
    const element *from;
    element *to;
    int shift, pieces;
    bool first_out, last_out;
};

__device__ __forceinline__ row row_at(const element *x, element *out, s64 r, s64 rows,
                                      int columns) {
    row w = {x + r * columns, out + r * columns, 0, 0, false, false};
#if VECTOR == 1
    w.shift = (int)((u64)w.from % 16 / sizeof(element));
    w.from -= w.shift;
    w.to -= w.shift;
    w.first_out = r == 0 && w.shift > 0;
    w.last_out = r == rows - 1 && (columns + w.shift) % STEP > 0;
#endif
    w.pieces = (columns + w.shift + STEP - 1) / STEP;
    return w;
}

__device__ __forceinline__ bool is_out(const row &w, int n) {
    return (w.first_out && n == 0) || (w.last_out && n == w.pieces - 1);
}

/* Piece `n`, without touching what isn't the row's. */
__device__ __forceinline__ piece load_inside(const row &w, int columns, int n) {
    piece p;
#pragma unroll
    for (int i = 0; i < STEP; i++) {
        int c = n * STEP - w.shift + i;
        item(p, i) = c >= 0 && c < columns ? w.from[(s64)n * STEP + i] : from_float(LOWEST);
    }
    return p;
}

/* The number in its row of this thread's piece `p`. */
__device__ __forceinline__ int number_of(int p, int part) {
    return (part * PIECES + p) * THREADS + (int)(threadIdx.x % THREADS);
}

__device__ __forceinline__ void fetch(const row &w, int columns, int part, piece (&held)[PIECES]) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int n = number_of(p, part);
        if (is_out(w, n))
            held[p] = load_inside(w, columns, n);
        else if (n < w.pieces)
            held[p] = load(w.from + (s64)n * STEP);
    }
}

/* What isn't of the row with `columns` elements becomes the lowest, which adds nothing. */
__device__ __forceinline__ void trim(const row &w, int columns, int part, piece (&held)[PIECES]) {
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int n = number_of(p, part);
#if VECTOR == 1
        int c = n * STEP - w.shift;
        if (c < 0 || c + STEP > columns)
#pragma unroll
            for (int i = 0; i < STEP; i++)
                if (c + i < 0 || c + i >= columns)
                    item(held[p], i) = from_float(LOWEST);
#else
        (void)columns;
        if (n >= w.pieces)
#pragma unroll
            for (int i = 0; i < STEP; i++)
                item(held[p], i) = from_float(LOWEST);
#endif
    }
}

#if AHEAD
/* A thread's own pieces on their way to its own places: nobody else needs to know when they
 * arrive. */
__device__ __forceinline__ void send_for(const row &w, int columns, int part, uint4 *places) {
#if PAST
    u64 policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int n = number_of(p, part);
        u32 place = (u32)__cvta_generic_to_shared(places + p * BLOCK);
        if (is_out(w, n))
            places[p * BLOCK] = load_inside(w, columns, n).bits;
        else if (n < w.pieces)
#if PAST
            asm volatile(
                "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(place),
                "l"(w.from + (s64)n * STEP), "l"(policy)
                : "memory");
#else
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place),
                         "l"(w.from + (s64)n * STEP)
                         : "memory");
#endif
    }
}

__device__ __forceinline__ void take(const uint4 *places, piece (&held)[PIECES]) {
#pragma unroll
    for (int p = 0; p < PIECES; p++)
        held[p].bits = places[p * BLOCK];
}
#endif

__device__ __forceinline__ void put(const row &w, int columns, int n, piece &p) {
#if VECTOR == 1
    int c = n * STEP - w.shift;
    if (c < 0 || c + STEP > columns) {
#pragma unroll
        for (int i = 0; i < STEP; i++)
            if (c + i >= 0 && c + i < columns)
                w.to[(s64)n * STEP + i] = item(p, i);
        return;
    }
#else
    (void)columns;
#endif
    store(w.to + (s64)n * STEP, p);
}

/* --- between threads --- */

__device__ __forceinline__ float lanes_max(float x) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

__device__ __forceinline__ float lanes_sum(float x) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

/* exp(a − b), 0 where nothing was found (a is the lowest); all that counts then is that it isn't
 * NaN. */
__device__ __forceinline__ float share_of(float a, float b) {
    return a == LOWEST ? 0.0f : exp2_fast((a - b) * LOG2_E);
}

#if CLUSTER > 1
__device__ __forceinline__ int cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* Into the same place of another block's shared memory. */
__device__ __forceinline__ void send(float2 *place, int rank, float2 value) {
    u32 here = (u32)__cvta_generic_to_shared(place), there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(value.x),
                 "f"(value.y)
                 : "memory");
}
#endif

/*
 * From a warp's maximum and sum the factor for what it has. `pairs` has room for those of all
 * warps; it is one of two in turn, so that nobody writes the next row's before all have read this
 * one's.
 */
__device__ __forceinline__ float factor_of(float most, float sum, float2 *pairs, int part) {
#if THREADS <= 32
    return 1.0f / sum;
#else
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#if CLUSTER > 1
    if (lane < CLUSTER)
        send(&pairs[part * WARPS + warp], lane, make_float2(most, sum));
    cluster_arrive();
    cluster_wait();
#else
    if (lane == 0)
        pairs[warp] = make_float2(most, sum);
    __syncthreads();
#endif
    float all = LOWEST, total = 0.0f;
    float2 mine[(CLUSTER * WARPS + 31) / 32];
#pragma unroll
    for (int i = 0; i < (CLUSTER * WARPS + 31) / 32; i++) {
        mine[i] =
            i * 32 + lane < CLUSTER * WARPS ? pairs[i * 32 + lane] : make_float2(LOWEST, 0.0f);
        all = fmaxf(all, mine[i].x);
    }
    all = lanes_max(all);
#pragma unroll
    for (int i = 0; i < (CLUSTER * WARPS + 31) / 32; i++)
        total += mine[i].y * share_of(mine[i].x, all);
    return share_of(most, all) / lanes_sum(total);
#endif
}

/* --- a row --- */

/*
 * exp(x − most) as 2^(x · scale + shift), one instruction before the exponential. The shift is
 * rounded, so that most itself isn't 1 but 2^slip; `mend` takes that back, for a whole warp. Near
 * the end of the number range, where most · log2(e) would overflow, any scale will do: the
 * exponentials are 0 or 1.
 */
struct power {
    float scale, shift, mend;
};

__device__ __forceinline__ power power_of(float most) {
    power w;
    w.scale = fabsf(most) > 1e38f ? 0.25f : LOG2_E;
    w.shift = most == LOWEST ? 0.0f : -most * w.scale;
    w.mend = most == LOWEST ? 1.0f : exp2_fast(-fmaf(most, w.scale, w.shift));
    return w;
}

__device__ __forceinline__ void normalise(const row &w, int columns, int part, bool mine,
                                          piece (&held)[PIECES], float2 *pairs) {
    float most = lanes_max(top_of(held)), sum = 0.0f, kept[KEPT ? PIECES : 1][STEP];
    power to = power_of(most);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        float(&e)[STEP] = kept[KEPT ? p : 0];
        unpack(held[p], e);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            sum += e[i] = exp2_fast(fmaf(e[i], to.scale, to.shift));
    }
    float factor = to.mend * factor_of(most, to.mend * lanes_sum(sum), pairs, part);
    if (!KEPT) /* made again, with the factor in the exponent */
        to.shift += log2_of(factor);
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        int n = number_of(p, part);
        float(&e)[STEP] = kept[KEPT ? p : 0];
        if (!KEPT)
            unpack(held[p], e);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            e[i] = KEPT ? e[i] * factor : exp2_fast(fmaf(e[i], to.scale, to.shift));
        pack(held[p], e);
        if (n < w.pieces && mine)
            put(w, columns, n, held[p]);
    }
}

#ifdef MAKE_softmax
#define NAME softmax
#else
#define NAME softmax_wide
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS)
    NAME(const element *x, element *out, s64 rows, int columns) {
    __shared__ float2 pairs[2][CLUSTER * (WARPS ? WARPS : 1)];
    piece held[PIECES];
#if CLUSTER > 1
    int part = cluster_rank();
    s64 r = blockIdx.x / CLUSTER;
    cluster_arrive(); /* and wait, before anything is sent: by then all have begun */
#else
    int part = 0;
    s64 r = ((s64)blockIdx.x * blockDim.x + threadIdx.x) / THREADS;
#endif
    wait_for_previous();
#if AHEAD
    extern __shared__ uint4 room[];
    uint4 *places = room + threadIdx.x; /* this thread's first one */
    s64 stride = (s64)gridDim.x * (blockDim.x / THREADS) / CLUSTER;
#pragma unroll
    for (int i = 0; i < AHEAD; i++) {
        s64 next = r + i * stride;
        if (next < rows)
            send_for(row_at(x, out, next, rows, columns), columns, part,
                     places + i * PIECES * BLOCK);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
#if CLUSTER > 1
    cluster_wait();
#endif
    /* all rows of a block go on together, so that no thread misses a barrier */
    s64 first = r - threadIdx.x / THREADS;
    for (int turn = 0, slot = 0; first < rows; first += stride, r += stride, turn ^= 1) {
        row w = row_at(x, out, r < rows ? r : 0, rows, columns);
        uint4 *here = places + slot * PIECES * BLOCK;
        asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
        take(here, held);
        trim(w, columns, part, held);
        s64 next = r + AHEAD * stride;
        if (next < rows)
            send_for(row_at(x, out, next, rows, columns), columns, part, here);
        asm volatile("cp.async.commit_group;" ::: "memory");
        normalise(w, columns, part, r < rows, held, pairs[turn]);
        slot = slot + 1 < AHEAD ? slot + 1 : 0;
    }
#else
    /* rows beyond the last one do the first again, so that no thread misses a barrier */
    bool mine = r < rows;
    row w = row_at(x, out, mine ? r : 0, rows, columns);
    fetch(w, columns, part, held);
    trim(w, columns, part, held);
#if CLUSTER > 1
    cluster_wait();
#endif
    normalise(w, columns, part, mine, held, pairs[0]);
#endif
}
#endif
