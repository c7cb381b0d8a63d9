/*
 * tokens.cu: a language model's embedding. Forward, out[r, columns] = table[token_r] + position[r mod
 * positions]: rows moved and added, a block for each.
 *
 * Backward, out[v, columns] = base[v] + Σ d[r] over the rows r whose token is v. Rows of one token
 * lie anywhere, and of frequent ones there are thousands: atomics would queue up on those, and add
 * in another order each time. So a block owns up to TOKENS of the vocabulary, each as far from the
 * next as there are blocks, since frequent ones are neighbours. It goes through all tokens of the
 * batch, in order, LIST at a time, and keeps the rows that are its own in a list; warps then go
 * through the list for one token after the other and add up its rows in registers, a strip of 32 ·
 * STEP columns each, BATCH rows on their way at once. The tokens' sums wait in shared memory for the
 * next list, and are rounded once, at the end. Tokens that don't occur cost nothing: base may be
 * the output itself.
 *
 *     embed_tokens           grid: a block of 128 threads for each row
 *     embed_tokens_backward  macros: COLUMNS TOKENS; VECTOR: 1 where rows are whole pieces of 8 bytes
 *                            (of 16 in fp32) and begin at one; shared: TOKENS · COLUMNS floats
 *                            grid: a power of two, at least vocabulary / TOKENS, of blocks of 256
 *                            threads
 *     tokens                 whole numbers as fp32; what the table lacks gives NaN forward and is
 *                            left out backward
 *
 * Every block reads all tokens, from the L2 cache: 64 × 1024 of them by 4096 blocks are 1.1 GB. A
 * token's rows are added by one block: the most frequent one bounds it. On an H200, 65536 rows of
 * 768 in bf16, of which 3 in 100 have the most frequent token, take 0.54 ms, 16384 0.15 ms.
 */
#include "common.cuh"

#ifdef MAKE_embed_tokens
extern "C" __global__ void __launch_bounds__(128)
    embed_tokens(const float *tokens, const element *table, const element *position, element *out,
                 int count, int positions, int columns) {
    wait_for_previous();
    float token = tokens[blockIdx.x];
    bool there = token >= 0.0f && token < (float)count;
    const element *from = table + (s64)(there ? (int)token : 0) * columns;
    const element *add = position + (s64)(blockIdx.x % positions) * columns;
    element *to = out + (s64)blockIdx.x * columns;
    const float none = __int_as_float(0x7fc00000);
    int whole = 0;
    if (aligned(from) && aligned(add) && aligned(to)) {
        whole = columns - columns % PER_16_BYTES;
        for (int c = (int)threadIdx.x * PER_16_BYTES; c < whole; c += 128 * PER_16_BYTES) {
            union chunk a, p;
            a.bits = *(const uint4 *)(from + c);
            p.bits = *(const uint4 *)(add + c);
#pragma unroll
            for (int i = 0; i < PER_16_BYTES; i++)
                a.items[i] = from_float(there ? to_float(a.items[i]) + to_float(p.items[i]) : none);
            *(uint4 *)(to + c) = a.bits;
        }
    }
    for (int c = whole + (int)threadIdx.x; c < columns; c += 128)
        to[c] = from_float(there ? to_float(from[c]) + to_float(add[c]) : none);
}
#endif

#ifdef MAKE_embed_tokens_backward
#define WARPS  8
#define LOOKS  16 /* of a lane at tokens, for each list */
#define LIST   (WARPS * LOOKS * 32)
#define BATCH  16
#define STEP   4
#define STRIPS ((COLUMNS + 32 * STEP - 1) / (32 * STEP))

union piece {
#if DTYPE <= 1
    float4 bits;
#else
    uint2 bits;
#endif
    element items[STEP];
};

__device__ __forceinline__ void load_piece(const element *from, int column, union piece *to) {
#if VECTOR
    if (column < COLUMNS)
        to->bits = ((const union piece *)(from + column))->bits;
#else
#pragma unroll
    for (int i = 0; i < STEP; i++)
        to->items[i] = column + i < COLUMNS ? from[column + i] : from_float(0.0f);
#endif
}

__device__ __forceinline__ void store_piece(element *to, int column, const union piece *x) {
#if VECTOR
    if (column < COLUMNS)
        ((union piece *)(to + column))->bits = x->bits;
#else
#pragma unroll
    for (int i = 0; i < STEP; i++)
        if (column + i < COLUMNS)
            to[column + i] = x->items[i];
#endif
}

/* Adds the list's rows of one token to its sums, this warp's strip of them. */
__device__ __forceinline__ void add_rows(const element *d, const u16 *rows, const u8 *owners,
                                         int listed, int token, int column, float *sums) {
    int lane = (int)threadIdx.x % 32;
    float sum[STEP];
    bool any = false;
#pragma unroll
    for (int i = 0; i < STEP; i++)
        sum[i] = 0.0f;
    for (int at = 0; at < listed; at += 32) {
        u32 found = __ballot_sync(0xffffffffu, at + lane < listed && owners[at + lane] == token);
        any = any || found;
        while (found) {
            union piece pieces[BATCH];
            int taken = 0;
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                if (!found)
                    continue;
                int row = rows[at + __ffs((int)found) - 1];
                found &= found - 1;
                load_piece(d + (s64)row * COLUMNS, column, &pieces[b]);
                taken = b + 1;
            }
#pragma unroll
            for (int b = 0; b < BATCH; b++)
                if (b < taken)
#pragma unroll
                    for (int i = 0; i < STEP; i++)
                        sum[i] += to_float(pieces[b].items[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < STEP; i++)
        if (any && column + i < COLUMNS)
            sums[column + i] += sum[i];
}

extern "C" __global__ void __launch_bounds__(256)
    embed_tokens_backward(const float *tokens, const element *d, const element *base, element *out,
                          s64 rows, int count) {
    extern __shared__ float sums[]; /* [TOKENS, COLUMNS] */
    __shared__ u16 list[LIST];      /* rows, from `begin` on */
    __shared__ int counts[WARPS];
    __shared__ u8 owners[LIST];
    __shared__ u32 seen;
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int blocks = (int)gridDim.x, shift = __ffs(blocks) - 1, block = (int)blockIdx.x;
    wait_for_previous();
    for (int i = (int)threadIdx.x; i < TOKENS * COLUMNS; i += 256)
        sums[i] = 0.0f;
    if (threadIdx.x == 0)
        seen = 0;
    for (s64 begin = 0; begin < rows; begin += LIST) {
        /* a warp looks at neighbours, so that the list has the order of rows */
        float looked[LOOKS];
        int own[LOOKS], mine = 0;
#pragma unroll
        for (int i = 0; i < LOOKS; i++) {
            s64 r = begin + (warp * LOOKS + i) * 32 + lane;
            looked[i] = r < rows ? tokens[r] : -1.0f;
        }
#pragma unroll
        for (int i = 0; i < LOOKS; i++) {
            int token = (int)looked[i];
            bool is_own =
                looked[i] >= 0.0f && looked[i] < (float)count && (token & (blocks - 1)) == block;
            own[i] = is_own ? token >> shift : TOKENS;
            mine += __popc((int)__ballot_sync(0xffffffffu, own[i] < TOKENS));
        }
        __syncthreads(); /* the list before is done with */
        if (lane == 0)
            counts[warp] = mine;
        __syncthreads();
        int at = 0, listed = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            at += w < warp ? counts[w] : 0;
            listed += counts[w];
        }
        if (!listed)
            continue;
#pragma unroll
        for (int i = 0; i < LOOKS; i++) {
            u32 found = __ballot_sync(0xffffffffu, own[i] < TOKENS);
            int place = at + __popc((int)(found & ((1u << lane) - 1)));
            if (own[i] < TOKENS) {
                list[place] = (u16)((warp * LOOKS + i) * 32 + lane);
                owners[place] = (u8)own[i];
                atomicOr(&seen, 1u << own[i]);
            }
            at += __popc((int)found);
        }
        __syncthreads();
        for (int job = warp; job < TOKENS * STRIPS; job += WARPS)
            if (seen >> job / STRIPS & 1)
                add_rows(d + begin * COLUMNS, list, owners, listed, job / STRIPS,
                         (job % STRIPS * 32 + lane) * STEP, sums + job / STRIPS * COLUMNS);
    }
    __syncthreads();
    for (int job = warp; job < TOKENS * STRIPS; job += WARPS) {
        int place = job / STRIPS, column = (job % STRIPS * 32 + lane) * STEP;
        int token = (place << shift) + block;
        if (token >= count || (out == base && !(seen >> place & 1)))
            continue;
        union piece x;
        load_piece(base + (s64)token * COLUMNS, column, &x);
#pragma unroll
        for (int i = 0; i < STEP; i++)
            if (column + i < COLUMNS)
                x.items[i] = from_float(to_float(x.items[i]) + sums[place * COLUMNS + column + i]);
        store_piece(out + (s64)token * COLUMNS, column, &x);
    }
}
#endif
