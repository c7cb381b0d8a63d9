/*
 * flash_attention_backward.cu: what the backward of attention needs besides its products: the sums
 * that it begins with, for every GPU and dtype, and a simple kernel for fp32 and tf32.
 *
 *     base  = lse · log2(e)         so that p = 2^(scale · log2(e) · q·kᵀ − base)
 *     delta = Σ do·o over a head    for o and do[b,s,h,w]
 *
 * flash_attention_backward_start makes these two of each query, and sets the turns of the kernel
 * behind it to 0. sums[b,h,⌈s/128⌉,2,128] has 128 bases, then their deltas; behind the last query
 * base is infinite, whose shares are 0. It reads two tensors once: the memory bounds it. Its time is
 * part of the backward's in bench/results.
 *
 *     macros: WIDTH 64 or 128; VECTOR 1: o and do begin at multiples of 16 bytes
 *     grid:   ⌈b·s·h / (256 · PER_16_BYTES / WIDTH)⌉ blocks of 256 threads
 *
 * flash_attention_backward_any has a warp for each query, which gathers dq over the keys that it
 * sees, and a warp for each key, which gathers dk and dv over the queries that see it; a lane has
 * WIDTH / 32 neighbours of a row. Products are fp32 on the plain units and no operand is used
 * twice: it is right to fp32's digits and far from any limit, and has no row in
 * bench/results. Training in fp32 wants another.
 *
 *     macros: WIDTH 64 or 128; CAUSAL 0 or 1
 *     grid:   ⌈b·s·(h + g) / 8⌉ blocks of 256 threads; first the queries, then the keys
 */
#include "common.cuh"

#define LOG2E    1.4426950408889634f
#define TILE     128 /* queries whose sums lie together */
#define INFINITE __int_as_float(0x7f800000)

/* Where a query's base is; its delta is TILE behind. */
__device__ __forceinline__ s64 sums_at(s64 pair, int query, int tokens) {
    int tiles = (tokens + TILE - 1) / TILE;
    return (pair * tiles + query / TILE) * (2 * TILE) + query % TILE;
}

#ifdef MAKE_flash_attention_backward_start
#define SHARE (WIDTH / PER_16_BYTES) /* threads of a row */

__device__ __forceinline__ void take(const element *from, element *items) {
#if VECTOR
    *(uint4 *)items = *(const uint4 *)from;
#else
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        items[i] = from[i];
#endif
}

extern "C" __global__ void __launch_bounds__(256)
    flash_attention_backward_start(const element *o, const element *d_o, const float *lse,
                                   float *sums, u32 *turns, s64 turn_count, s64 rows, int tokens,
                                   int heads) {
    wait_for_previous();
    s64 thread = (s64)blockIdx.x * 256 + threadIdx.x, threads = (s64)gridDim.x * 256;
    for (s64 i = thread; i < turn_count; i += threads)
        turns[i] = 0;
    int behind = (TILE - tokens % TILE) % TILE;
    for (s64 i = thread; i < rows / tokens * behind; i += threads) {
        s64 at = sums_at(i / behind, tokens + (int)(i % behind), tokens);
        sums[at] = INFINITE;
        sums[at + TILE] = 0.0f;
    }
    s64 row = thread / SHARE; /* of [b,s,h] */
    int part = (int)(thread % SHARE) * PER_16_BYTES;
    union chunk a = {{0, 0, 0, 0}}, b = {{0, 0, 0, 0}};
    if (row < rows) {
        take(o + row * WIDTH + part, a.items);
        take(d_o + row * WIDTH + part, b.items);
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        sum = fmaf(to_float(a.items[i]), to_float(b.items[i]), sum);
#pragma unroll
    for (int step = SHARE / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    s64 pair = row / heads / tokens * heads + row % heads;
    int query = (int)(row / heads % tokens);
    if (row < rows && part == 0) {
        s64 at = sums_at(pair, query, tokens);
        sums[at] = lse[pair * tokens + query] * LOG2E;
        sums[at + TILE] = sum;
    }
}
#endif

#ifdef MAKE_flash_attention_backward_any
#define MINE (WIDTH / 32) /* elements of a lane */

struct row {
    float x[MINE];
};

__device__ __forceinline__ row load(const element *from) {
    row r;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        r.x[i] = to_float(from[threadIdx.x % 32 * MINE + i]);
    return r;
}

__device__ __forceinline__ void store(element *to, const row &r, float factor) {
#pragma unroll
    for (int i = 0; i < MINE; i++)
        to[threadIdx.x % 32 * MINE + i] = from_float(r.x[i] * factor);
}

__device__ __forceinline__ float dot(const row &a, const row &b) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < MINE; i++)
        sum = fmaf(a.x[i], b.x[i], sum);
    return warp_sum(sum);
}

__device__ __forceinline__ void add(row &sum, const row &r, float factor) {
#pragma unroll
    for (int i = 0; i < MINE; i++)
        sum.x[i] = fmaf(r.x[i], factor, sum.x[i]);
}

struct tensors {
    const element *q, *k, *v, *d_o;
    const float *sums;
    element *out;
    int tokens, heads, kv_heads;
    float scale;
};

__device__ __forceinline__ void gather_query(const tensors &t, s64 number) {
    int head = (int)(number % t.heads), kv_head = (int)((s64)head * t.kv_heads / t.heads);
    int token = (int)(number / t.heads % t.tokens);
    s64 image = number / t.heads / t.tokens;
    s64 sums = sums_at(image * t.heads + head, token, t.tokens);
    row q = load(t.q + number * WIDTH), d_o = load(t.d_o + number * WIDTH), dq = {};
    float base = t.sums[sums], delta = t.sums[sums + TILE];
    for (int key = 0; key < (CAUSAL ? token + 1 : t.tokens); key++) {
        s64 at = ((image * t.tokens + key) * t.kv_heads + kv_head) * WIDTH;
        row k = load(t.k + at);
        float share = exp2_fast(fmaf(dot(q, k), t.scale * LOG2E, -base));
        add(dq, k, share * (dot(d_o, load(t.v + at)) - delta));
    }
    int all = t.heads + 2 * t.kv_heads;
    store(t.out + ((image * t.tokens + token) * all + head) * WIDTH, dq, t.scale);
}

__device__ __forceinline__ void gather_key(const tensors &t, s64 number) {
    int kv_head = (int)(number % t.kv_heads), token = (int)(number / t.kv_heads % t.tokens);
    int group = t.heads / t.kv_heads, all = t.heads + 2 * t.kv_heads;
    s64 image = number / t.kv_heads / t.tokens;
    row k = load(t.k + number * WIDTH), v = load(t.v + number * WIDTH), dk = {}, dv = {};
    for (int head = kv_head * group; head < (kv_head + 1) * group; head++)
        for (int query = CAUSAL ? token : 0; query < t.tokens; query++) {
            s64 at = ((image * t.tokens + query) * t.heads + head) * WIDTH;
            s64 sums = sums_at(image * t.heads + head, query, t.tokens);
            row q = load(t.q + at), d_o = load(t.d_o + at);
            float share = exp2_fast(fmaf(dot(q, k), t.scale * LOG2E, -t.sums[sums]));
            add(dv, d_o, share);
            add(dk, q, share * (dot(d_o, v) - t.sums[sums + TILE]));
        }
    element *to = t.out + ((image * t.tokens + token) * all + t.heads + kv_head) * WIDTH;
    store(to, dk, t.scale);
    store(to + (s64)t.kv_heads * WIDTH, dv, 1.0f);
}

extern "C" __global__ void __launch_bounds__(256)
    flash_attention_backward_any(const element *q, const element *k, const element *v,
                                 const element *d_o, const float *sums, element *out, s64 queries,
                                 s64 keys, int tokens, int heads, int kv_heads, float scale) {
    wait_for_previous();
    tensors t = {q, k, v, d_o, sums, out, tokens, heads, kv_heads, scale};
    s64 number = (s64)blockIdx.x * 8 + threadIdx.x / 32;
    if (number < queries)
        gather_query(t, number);
    else if (number < queries + keys)
        gather_key(t, number - queries);
}
#endif
