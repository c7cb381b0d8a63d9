/*
 * flash_attention_backward_mma.cu: the derivatives of attention by mma.sync and cp.async, from
 * sm_80 on: out[b,s,h+2·g,w] = (dq, dk, dv) side by side, for q, do[b,s,h,w], k, v[b,s,g,w] and
 * two sums of each query (flash_attention_backward.cu makes base and delta). bf16 and fp16.
 *
 *     p = 2^(scale · log2(e) · q·kᵀ − base)   ds = p · (do·vᵀ − delta)
 *     dv = pᵀ·do   dk = scale · dsᵀ·q   dq = scale · ds·k
 *
 * A block has 128 keys of one head and walks over the queries that see them, BLOCK_M at a time
 * (FlashAttention-2, Dao 2023). Each of its 8 warps has 16 keys: it makes pᵀ and dsᵀ of them with
 * all BLOCK_M queries, whose layout in registers is just that of a left factor, so dk and dv are
 * gathered without leaving the warp. dq sums over all keys, so dsᵀ goes through shared memory once,
 * and each warp makes a part of dq: 16 queries and WIDTH · BLOCK_M / 128 columns.
 *
 * dq also sums over blocks. Other kernels add to it atomically, in an order that differs from run
 * to run, or make the scores once more in a pass of their own, seven products instead of five. Here
 * blocks take turns, counted for each tile of queries and warp. The first writes its part, the next
 * ones add to it in fp32, and the last writes dq itself: nothing must be set to 0 before nor
 * converted after. A block begins at the queries next to its own keys and goes on to the last ones,
 * then, where they see its keys, from the first. Blocks that run side by side so are at different
 * queries, each behind the block whose turn is before its own, and nobody waits. Of a head those
 * with the last keys start first; causal blocks wait only for these.
 *
 * Heads from `staggered` on go the other way, `together` at a time: the first keys start first, all
 * from the last queries to the first, each a step behind the other. Causal, so the shortest blocks
 * end the kernel; and where a head has more blocks than run at once, they still wait only for blocks
 * that started before.
 *
 *     macros: WIDTH   w: 64 or 128
 *             CAUSAL  1: query t sees keys 0…t alone
 *             VECTOR  1: all tensors begin at multiples of 16 bytes
 *             BLOCK_M queries of a step: 64, or 32
 *             STAGES  of queries and do: 2, or 1 where shared memory is short
 *     legal:  registers: keys and values stay in them for WIDTH 64; BLOCK_M 32 for WIDTH 128
 *             shared memory: SHARED_BYTES below, as large as a block may have
 *     grid:   ⌈s / 128⌉ · g · b blocks of 256 threads
 *     parts:  fp32, b · h · ⌈s / BLOCK_M⌉ tiles of BLOCK_M · WIDTH; turns: 8 of each tile, 0 before
 *
 * Its limit is the matrix unit, then the reads of right factors from shared memory: 16 keys a warp
 * make two products of each 16 bytes a lane reads. On an H200 it reaches 153 TFLOP/s, of 2.5 times
 * the forward's operations, for 64 · 12 causal heads of 1024 tokens in bf16.
 */
#include "mma.cuh"

#ifdef MAKE_flash_attention_backward_mma
#define WARPS     8
#define THREADS   (WARPS * 32)
#define BLOCK_N   (WARPS * 16)
#define PIECES    (WIDTH / PER_16_BYTES)
#define ROW_BYTES (WIDTH * 2)
#define LOG2E     1.4426950408889634f

#define ACROSS  (BLOCK_M / 16) /* warps that share the columns of dq, by its rows */
#define COLUMNS (WIDTH * ACROSS / WARPS)
#define HELD    (WIDTH == 64) /* keys and values stay in registers */

/* Shared memory: keys, values, stages of queries with do and their sums, scores' derivatives. */
#define KV_BYTES     (BLOCK_N * ROW_BYTES)
#define Q_BYTES      (BLOCK_M * ROW_BYTES)
#define SUM_BYTES    (BLOCK_M * 4)
#define STAGE_BYTES  (2 * Q_BYTES + 2 * SUM_BYTES)
#define DS_BYTES     (BLOCK_N * BLOCK_M * 2)
#define DS_START     (2 * KV_BYTES + STAGES * STAGE_BYTES)
#define SHARED_BYTES (DS_START + DS_BYTES)

static_assert(COLUMNS % 16 == 0 && ACROSS * (WIDTH / COLUMNS) == WARPS, "dq is shared out evenly");

/* 16-byte pieces of a row are swapped by its number, so that ldmatrix meets no bank twice. */
__device__ __forceinline__ u32 at(u32 tile, int row, int piece) {
    return tile + (u32)(row * PIECES + (piece ^ (row & 7))) * 16;
}

/* The same of dsᵀ[keys, queries], whose rows may be half as long. */
__device__ __forceinline__ u32 ds_at(u32 tile, int row, int piece) {
    return tile +
           (u32)(row * (BLOCK_M / 8) + (piece ^ (BLOCK_M == 64 ? row & 7 : row / 2 & 3))) * 16;
}

/* --- into shared memory --- */

/* The first `rows` of ROWS rows, `stride` elements apart; the others become zeros. */
template <int ROWS>
__device__ __forceinline__ void fetch(u32 tile, const element *from, s64 stride, int rows) {
    int top = threadIdx.x / 8, part = threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < ROWS * 8 / THREADS; i++) {
        int row = top + i * (THREADS / 8);
        bool there = row < rows;
        const element *line = from + (there ? row : 0) * stride;
#pragma unroll
        for (int j = part; j < PIECES; j += 8)
            fetch_piece(at(tile, row, j), line + j * PER_16_BYTES, there ? PER_16_BYTES : 0);
    }
}

/* --- products --- */

typedef float square[2][4]; /* 16 rows and 16 columns: a thread has two rows, eight apart, of each 8
                             columns: [0..1] belong to the first, [2..3] to the second */

/* 16 rows and 16 columns of a tile as a left factor. */
__device__ __forceinline__ void take(u32 tile, int row, int d, u32 *a) {
    int lane = threadIdx.x % 32;
    load_four(at(tile, row + lane % 16, d * 2 + lane / 16), a, a + 2);
}

/* d[16, BLOCK_M] = a·bᵀ, a the warp's 16 rows, held or in the tile, b[BLOCK_M, WIDTH] */
__device__ __forceinline__ void multiply_rows(square *d, const u32 (*held)[4], u32 tile, u32 b) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int n = 0; n < BLOCK_M / 16; n++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            d[n][i / 4][i % 4] = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDTH / 16; k++) {
        u32 a[4];
        if (HELD)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[i] = held[HELD ? k : 0][i];
        else
            take(tile, warp * 16, k, a);
#pragma unroll
        for (int n = 0; n < BLOCK_M / 16; n++) {
            u32 y[4];
            load_four(at(b, n * 16 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2), y, y + 2);
            multiply_one(d[n][0], a, y);
            multiply_one(d[n][1], a, y + 2);
        }
    }
}

/* d[16, WIDTH] += a[16, BLOCK_M]·b[BLOCK_M, WIDTH], a packed as it was made */
__device__ __forceinline__ void gather(square *d, const u32 (*a)[4], u32 b) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < BLOCK_M / 16; k++)
#pragma unroll
        for (int n = 0; n < WIDTH / 16; n++) {
            u32 y[4];
            load_four_turned(at(b, k * 16 + lane % 16, n * 2 + lane / 16), y, y + 2);
            multiply_one(d[n][0], a[k], y);
            multiply_one(d[n][1], a[k], y + 2);
        }
}

/* The warp's part of dq += ds[BLOCK_M, keys]·k[keys, WIDTH], the first 16 · `steps` keys */
__device__ __forceinline__ void gather_queries(square *d, u32 ds, u32 keys, int steps) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = warp % ACROSS, column = warp / ACROSS * COLUMNS;
#pragma unroll 4
    for (int k = 0; k < steps; k++) {
        u32 a[4];
        load_four_turned(ds_at(ds, k * 16 + lane / 16 * 8 + lane % 8, row * 2 + lane / 8 % 2), a,
                         a + 2);
#pragma unroll
        for (int n = 0; n < COLUMNS / 16; n++) {
            u32 y[4];
            load_four_turned(at(keys, k * 16 + lane % 16, column / 8 + n * 2 + lane / 16), y,
                             y + 2);
            multiply_one(d[n][0], a, y);
            multiply_one(d[n][1], a, y + 2);
        }
    }
}

/* --- scores --- */

/*
 * Scores and do·vᵀ, both [16 keys, BLOCK_M], into pᵀ and dsᵀ, packed as left factors. `ahead` is by
 * how much the thread's first key comes after the tile's first query, `left` how many keys there
 * are from it on; MASKED: they matter.
 */
template <bool MASKED>
__device__ __forceinline__ void soften(square *s, square *dp, u32 bases, u32 deltas, float factor,
                                       int ahead, int left, u32 (*p)[4], u32 (*ds)[4]) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 0; n < BLOCK_M / 8; n++) {
        u32 from = (u32)(n * 8 + lane % 4 * 2) * 4;
        float2 base = load_two(bases + from), less = load_two(deltas + from);
        float x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = i / 2 * 8, query = n * 8 + lane % 4 * 2 + i % 2;
            x[i] = exp2_fast(fmaf(s[n / 2][n % 2][i], factor, -(i % 2 ? base.y : base.x)));
            if (MASKED && (key >= left || (CAUSAL && key + ahead > query)))
                x[i] = 0.0f;
            y[i] = x[i] * (dp[n / 2][n % 2][i] - (i % 2 ? less.y : less.x));
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            p[n / 2][n % 2 * 2 + i] = pack(x[2 * i], x[2 * i + 1]);
            ds[n / 2][n % 2 * 2 + i] = pack(y[2 * i], y[2 * i + 1]);
        }
    }
}

/* dsᵀ of the warp's keys, where gather_queries finds it. */
__device__ __forceinline__ void show(const u32 (*ds)[4], u32 tile) {
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < BLOCK_M / 8; n++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            store_word(ds_at(tile, row + half * 8, n) + (u32)(lane % 4 * 4),
                       ds[n / 2][n % 2 * 2 + half]);
}

/* --- into memory --- */

__device__ __forceinline__ void store_two(element *to, float x, float y) {
#if VECTOR
    *(u32 *)to = pack(x, y);
#else
    to[0] = from_float(x);
    to[1] = from_float(y);
#endif
}

/* 16 rows of N · 16 columns, the first `rows` of them. */
template <int N>
__device__ __forceinline__ void store(element *to, s64 stride, const square *d, float factor,
                                      int rows) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = lane / 4 + half * 8;
        if (row < rows)
#pragma unroll
            for (int n = 0; n < 2 * N; n++)
                store_two(to + row * stride + n * 8 + lane % 4 * 2,
                          d[n / 2][n % 2][2 * half] * factor,
                          d[n / 2][n % 2][2 * half + 1] * factor);
    }
}

/* Where a warp's part of a tile of dq is gathered, and whose turn it is. */
struct shared_part {
    float4 *part;
    u32 *turn;
    u32 number; /* of turns that come before this block's */
    bool last;
};

__device__ __forceinline__ void part_load(const shared_part &s, float4 *before) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++)
        before[i] = load_fresh(s.part + i * 32);
}

__device__ __forceinline__ void part_add(square *d, const float4 *before) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++) {
        float *x = d[i / 2][i % 2];
        x[0] += before[i].x, x[1] += before[i].y, x[2] += before[i].z, x[3] += before[i].w;
    }
}

__device__ __forceinline__ void part_store(const shared_part &s, const square *d) {
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++) {
        const float *x = d[i / 2][i % 2];
        s.part[i * 32] = make_float4(x[0], x[1], x[2], x[3]);
    }
}

/* --- a block --- */

struct work {
    int tokens, heads, kv_heads;
    int key_blocks, query_tiles; /* of a head */
    int staggered, together;
};

/* Which keys of which head are the block's; `pair` counts heads of keys through the batch. */
struct share {
    int block, pair;
    bool lined;
};

__device__ __forceinline__ share share_of(const work &w) {
    int number = (int)blockIdx.x, pair = number / w.key_blocks;
    if (pair < w.staggered)
        return {w.key_blocks - 1 - number % w.key_blocks, pair, false};
    int pairs = (int)gridDim.x / w.key_blocks - w.staggered;
    number -= w.staggered * w.key_blocks;
    int section = number / (w.together * w.key_blocks);
    int within = number - section * w.together * w.key_blocks;
    int here = min(w.together, pairs - section * w.together);
    return {within / here, w.staggered + section * w.together + within % here, true};
}

/* A tile of queries that the block looks at; `pair` counts heads of queries through the batch. */
struct tile {
    int first, number;
    s64 pair;
    int before; /* blocks whose turn at it comes before */
    bool last;  /* turn */
};

/* Tiles before `start` don't see the block's keys. */
__device__ __forceinline__ tile tile_of(const work &w, const share &mine, int step, int start) {
    int each = w.query_tiles - start, group = w.heads / w.kv_heads;
    int head = step / each, number = mine.block * (BLOCK_N / BLOCK_M) + step - head * each;
    if (mine.lined)
        number = w.query_tiles - 1 - (step - head * each);
    else if (number >= w.query_tiles)
        number -= w.query_tiles;
    int next = min(number / (BLOCK_N / BLOCK_M), w.key_blocks - 1); /* block to the tile */
    int before = next - mine.block;
    bool last = mine.block == 0;
    if (!CAUSAL) {
        before = before < 0 ? before + w.key_blocks : before;
        last = before == w.key_blocks - 1;
    }
    if (mine.lined) {
        before = mine.block;
        last = mine.block == (CAUSAL ? next : w.key_blocks - 1);
    }
    return {number * BLOCK_M, number, (s64)mine.pair * group + head, before, last};
}

__device__ __forceinline__ s64 row_of(const work &w, const tile &t, int width) {
    s64 image = t.pair / w.heads;
    return ((image * w.tokens + t.first) * width + t.pair % w.heads) * WIDTH;
}

struct sources {
    const element *q, *d_o;
    const float *sums;
};

__device__ __forceinline__ void fetch_tile(const work &w, const tile &t, const sources &from,
                                           u32 stage) {
    s64 offset = row_of(w, t, w.heads), stride = (s64)w.heads * WIDTH;
    int rows = w.tokens - t.first, thread = threadIdx.x;
    fetch<BLOCK_M>(stage, from.q + offset, stride, rows);
    fetch<BLOCK_M>(stage + Q_BYTES, from.d_o + offset, stride, rows);
    if (thread < BLOCK_M / 2) { /* 16 bytes each: bases, then deltas */
        int delta = thread / (BLOCK_M / 4), piece = thread % (BLOCK_M / 4);
        s64 tile = t.pair * w.key_blocks + t.first / BLOCK_N;
        fetch_16_bytes(stage + 2 * Q_BYTES + (u32)thread * 16,
                       from.sums + (tile * 2 + delta) * BLOCK_N + t.first % BLOCK_N + piece * 4);
    }
}

__device__ __forceinline__ shared_part part_of(const work &w, const tile &t, float *parts,
                                               u32 *turns) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    s64 place = (t.pair * w.query_tiles + t.number) * WARPS + warp;
    return {(float4 *)parts + place * (COLUMNS / 8 * 32) + lane, turns + place, (u32)t.before,
            t.last};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flash_attention_backward_mma(const element *q, const element *k, const element *v,
                                 const element *d_o, const float *sums, element *out, float *parts,
                                 u32 *turns, int tokens, int heads, int kv_heads, int staggered,
                                 int together, float scale) {
    extern __shared__ __align__(128) u8 memory[];
    u32 keys = (u32)__cvta_generic_to_shared(memory), values = keys + KV_BYTES;
    u32 stages = values + KV_BYTES, ds_tile = keys + DS_START;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    work w = {tokens,
              heads,
              kv_heads,
              (tokens + BLOCK_N - 1) / BLOCK_N,
              (tokens + BLOCK_M - 1) / BLOCK_M,
              staggered,
              together};
    share mine = share_of(w);
    sources from = {q, d_o, sums};
    int image = mine.pair / kv_heads, kv_head = mine.pair % kv_heads;
    int first = mine.block * BLOCK_N, all = heads + 2 * kv_heads;
    int start = CAUSAL ? first / BLOCK_M : 0;
    int steps = (w.query_tiles - start) * (heads / kv_heads);
    s64 kv_offset = (((s64)image * tokens + first) * kv_heads + kv_head) * WIDTH;
    float factor = scale * LOG2E;

    wait_for_previous();
    fetch<BLOCK_N>(keys, k + kv_offset, (s64)kv_heads * WIDTH, tokens - first);
    fetch<BLOCK_N>(values, v + kv_offset, (s64)kv_heads * WIDTH, tokens - first);
    fetch_tile(w, tile_of(w, mine, 0, start), from, stages);
    commit();

    u32 held_keys[HELD ? WIDTH / 16 : 1][4], held_values[HELD ? WIDTH / 16 : 1][4];
    square dk[WIDTH / 16] = {}, dv[WIDTH / 16] = {};
    shared_part before = {}; /* the step before, whose turn isn't passed on yet */
    for (int step = 0; step < steps; step++) {
        tile t = tile_of(w, mine, step, start);
        shared_part part = part_of(w, t, parts, turns);
        u32 stage = stages + (u32)(step % STAGES) * STAGE_BYTES;
        await<0>();
        if (STAGES > 1 && step + 1 < steps)
            fetch_tile(w, tile_of(w, mine, step + 1, start), from,
                       stages + (u32)((step + 1) % STAGES) * STAGE_BYTES);
        commit();
        if (HELD && step == 0)
#pragma unroll
            for (int i = 0; i < WIDTH / 16; i++) {
                take(keys, warp * 16, i, held_keys[HELD ? i : 0]);
                take(values, warp * 16, i, held_values[HELD ? i : 0]);
            }
        /* 16 · reach keys of the block are seen by a query of the tile */
        int reach = CAUSAL ? min(WARPS, (t.first + BLOCK_M - first) / 16) : WARPS;
        if (warp < reach) {
            square s[BLOCK_M / 16], dp[BLOCK_M / 16];
            u32 p[BLOCK_M / 16][4], ds[BLOCK_M / 16][4];
            multiply_rows(s, held_keys, keys, stage);
            multiply_rows(dp, held_values, values, stage + Q_BYTES);
            u32 bases = stage + 2 * Q_BYTES, deltas = bases + SUM_BYTES;
            int row = first + warp * 16 + lane / 4;
            if (row - lane / 4 + 16 > tokens || (CAUSAL && first + warp * 16 + 15 > t.first))
                soften<true>(s, dp, bases, deltas, factor, row - t.first, tokens - row, p, ds);
            else
                soften<false>(s, dp, bases, deltas, factor, 0, 0, p, ds);
            show(ds, ds_tile);
            gather(dv, p, stage + Q_BYTES);
            gather(dk, ds, stage);
        }
        if (before.turn && lane == 0) /* what it stored has arrived meanwhile */
            flag_write(before.turn, before.number + 1);
        u32 passed = part.number ? flag_peek(part.turn) : 0;
        __syncthreads();
        if (STAGES == 1 && step + 1 < steps) {
            fetch_tile(w, tile_of(w, mine, step + 1, start), from, stages);
            commit();
        }
        float4 others[COLUMNS / 8];
        if (part.number) {
            while (passed < part.number)
                passed = flag_peek(part.turn);
            part_load(part, others);
        }
        square dq[COLUMNS / 16] = {};
        gather_queries(dq, ds_tile, keys, reach);
        if (part.number)
            part_add(dq, others);
        before = part;
        if (!part.last) {
            part_store(part, dq);
            __syncwarp();
        } else {
            int row = warp % ACROSS * 16, column = warp / ACROSS * COLUMNS;
            before.turn = nullptr;
            store<COLUMNS / 16>(out + row_of(w, t, all) + (s64)row * all * WIDTH + column,
                                (s64)all * WIDTH, dq, scale, tokens - t.first - row);
        }
    }
    if (before.turn && lane == 0)
        flag_write(before.turn, before.number + 1);
    s64 to = (((s64)image * tokens + first + warp * 16) * all + heads + kv_head) * WIDTH;
    store<WIDTH / 16>(out + to, (s64)all * WIDTH, dk, scale, tokens - first - warp * 16);
    store<WIDTH / 16>(out + to + (s64)kv_heads * WIDTH, (s64)all * WIDTH, dv, 1.0f,
                      tokens - first - warp * 16);
}
#endif
