/*
 * flash_attention_backward_hopper.cu: the derivatives of attention by wgmma and TMA, for compute
 * capability 9.0 alone (sm_90a): out[b,s,h+2·g,w] = (dq, dk, dv) side by side, for q, do[b,s,h,w],
 * k, v[b,s,g,w] and two sums of each query (flash_attention_backward.cu makes base and delta). bf16
 * and fp16, heads of 64.
 *
 *     p = 2^(scale · log2(e) · q·kᵀ − base)   ds = p · (do·vᵀ − delta)
 *     dv = pᵀ·do   dk = scale · dsᵀ·q   dq = scale · ds·k
 *
 * A piece of work is 128 keys of one head with all the queries that see them, 128 at a time. One
 * warp fetches; each of two warp groups has 64 of the keys and makes sᵀ = k·qᵀ and (do·vᵀ)ᵀ of them
 * with all 128 queries, [64, 128] in registers. As left factors pᵀ and dsᵀ stay there for dv and dk
 * (Shah et al. 2024); for dq, which sums over keys of both groups, ds goes through shared memory,
 * turned on the way, and each group makes 64 queries of it.
 *
 *   - the next tile's scores are asked for before dq is waited for and written, and dv before ds is
 *     made, so that the matrix unit works meanwhile
 *   - dq also sums over pieces of work: they add to it in fp32 and in turn, so the same bits come
 *     out each time. The first stores its part, the next ones have the L2 cache add theirs, the
 *     last reads and writes dq. A piece begins at the queries next to its own keys, so that pieces
 *     which run side by side are at different queries, each a tile behind the one whose turn is
 *     before its own, and nobody waits (flash_attention_backward_mma.cu)
 *   - blocks stay on their multiprocessors. Of a head the pieces with the last keys come first.
 *     Causal ones, which differ in length, are taken by a counter; that is from the shortest to the
 *     longest, and so that the end isn't a few long ones, heads from `staggered` on are taken the
 *     other way, `together` at a time: from the first keys to the last, each piece from the last
 *     queries to the first. They wait only for pieces taken before. Others go round, as each piece
 *     of a head waits for all others of it, which no block may have two of
 *
 *     macros: CAUSAL 0 or 1
 *     grid:   (number of multiprocessors, or of pieces if that is less), 384 threads, SHARED_BYTES
 *     maps:   of rank 5, sizes {64, tokens, 1, (kv_)heads, batch}, box {64, 128, 1, 1, 1}, swizzle
 *             of 128 bytes
 *     parts:  fp32, b · h · ⌈s / 128⌉ tiles of 128 · 64; turns: 8 of each tile, then the counter, all
 *             0 before
 *
 * The matrix unit would bound it: five products of 128 · 128 · 64 take 2560 cycles, exponentials
 * 1024. On an H200 it reaches 334 TFLOP/s, of 2.5 times the forward's operations, for 16 · 12 heads
 * of 1024 tokens in bf16 that see all keys: a tile takes 2.7 times those cycles, as both groups wait
 * for each other's ds and for their own stores to arrive.
 */
#include "hopper.cuh"

#ifdef MAKE_flash_attention_backward_hopper
#define WIDTH              64
#define BLOCK              128 /* queries of a tile, and keys */
#define THREADS            384
#define FETCH_REGISTERS    24
#define MULTIPLY_REGISTERS 240

#define ROW_BYTES  128
#define TILE_BYTES (BLOCK * ROW_BYTES)
#define SUM_BYTES  (2 * BLOCK * 4)

/* Keys and values, two stages; queries, do and sums, two stages; ds, two of two halves of keys. */
#define KV_START     0
#define Q_START      (KV_START + 2 * 2 * TILE_BYTES)
#define DS_START     (Q_START + 2 * 2 * TILE_BYTES)
#define SUMS_START   (DS_START + 2 * 2 * TILE_BYTES)
#define BARRIERS     (SUMS_START + 2 * SUM_BYTES)
#define KV_RING      BARRIERS /* of each stage `full`, then of each `empty`, 8 bytes each */
#define Q_RING       (KV_RING + 32)
#define PIECES       (Q_RING + 32) /* which piece of work the keys of a stage are */
#define SHARED_BYTES (PIECES + 16)

/* The upper word of all matrices: the swizzle and the bytes of 8 rows. */
#define MATRIX_HIGH (1u << 30 | 8 * ROW_BYTES / 16)
#define LOG2E       1.4426950408889634f

/* --- work --- */

struct work {
    int tokens, heads, kv_heads, pairs; /* pairs: of a head of keys and an image */
    int tiles;                          /* of a head's queries, and blocks of its keys */
    int staggered, together;
};

struct piece {
    int block; /* of keys */
    int image, kv_head;
    int each, steps; /* tiles of one head of queries, and of all */
    bool lined;      /* up behind the piece before, from the last queries on */
};

__device__ __forceinline__ bool piece_of(const work &w, int number, piece &p) {
    if (number < 0 || number >= w.pairs * w.tiles)
        return false;
    int pair = number / w.tiles;
    p.lined = pair >= w.staggered;
    p.block = w.tiles - 1 - number % w.tiles;
    if (p.lined) {
        int rest = number - w.staggered * w.tiles, section = rest / (w.together * w.tiles);
        int within = rest - section * w.together * w.tiles;
        int here = min(w.together, w.pairs - w.staggered - section * w.together);
        pair = w.staggered + section * w.together + within % here;
        p.block = within / here;
    }
    p.image = pair / w.kv_heads;
    p.kv_head = pair % w.kv_heads;
    p.each = CAUSAL ? w.tiles - p.block : w.tiles;
    p.steps = p.each * (w.heads / w.kv_heads);
    return true;
}

struct tile {
    int number, head;
    int before; /* pieces whose turn at it comes before */
    bool last;  /* turn */
};

__device__ __forceinline__ tile tile_of(const work &w, const piece &p, int step) {
    int head = step / p.each, before = step - head * p.each, number = p.block + before;
    if (number >= w.tiles)
        number -= w.tiles;
    bool last = CAUSAL ? p.block == 0 : before == w.tiles - 1;
    if (p.lined) {
        number = w.tiles - 1 - before;
        before = p.block;
        last = p.block == (CAUSAL ? number : w.tiles - 1);
    }
    return {number, p.kv_head * (w.heads / w.kv_heads) + head, before, last};
}

/* Where a warp group is in a ring of two stages: `full` has been waited for with this parity. */
struct place {
    u32 stage, parity;
};

__device__ __forceinline__ void go_on(place &at) {
    at.stage ^= 1;
    at.parity ^= at.stage == 0;
}

/* --- the warp that fetches --- */

struct maps {
    const tensor_map *q, *k, *v, *d_o;
};

__device__ __forceinline__ void fetch_all(const work &w, u32 base, const maps &from,
                                          const float *sums, u32 *counter) {
    place kv = {0, 1}, q = {0, 1}; /* an empty stage is there at once, the first time */
    int number = CAUSAL ? (int)ticket_take(counter) : (int)blockIdx.x;
    piece p;
    while (piece_of(w, number, p)) {
        u32 to = base + KV_START + kv.stage * 2 * TILE_BYTES, full = base + KV_RING + 8 * kv.stage;
        barrier_wait(full + 16, kv.parity);
        store_word(base + PIECES + 4 * kv.stage, (u32)number);
        barrier_expect(full, 2 * TILE_BYTES);
        load_head(to, from.k, p.block * BLOCK, p.kv_head, p.image, full);
        load_head(to + TILE_BYTES, from.v, p.block * BLOCK, p.kv_head, p.image, full);
        go_on(kv);
        for (int step = 0; step < p.steps; step++) {
            tile t = tile_of(w, p, step);
            to = base + Q_START + q.stage * 2 * TILE_BYTES, full = base + Q_RING + 8 * q.stage;
            barrier_wait(full + 16, q.parity);
            barrier_expect(full, 2 * TILE_BYTES + SUM_BYTES);
            load_head(to, from.q, t.number * BLOCK, t.head, p.image, full);
            load_head(to + TILE_BYTES, from.d_o, t.number * BLOCK, t.head, p.image, full);
            s64 pair = (s64)p.image * w.heads + t.head;
            load_bytes(base + SUMS_START + q.stage * SUM_BYTES,
                       sums + (pair * w.tiles + t.number) * (2 * BLOCK), SUM_BYTES, full);
            go_on(q);
        }
        /* not before a tile is left of this piece: others wait for what is taken and not begun */
        barrier_wait(base + Q_RING + 16 + 8 * q.stage, q.parity);
        number = CAUSAL ? (int)ticket_take(counter) : number + (int)gridDim.x;
    }
    barrier_wait(base + KV_RING + 16 + 8 * kv.stage, kv.parity);
    store_word(base + PIECES + 4 * kv.stage, 0xffffffffu);
    barrier_release(base + KV_RING + 8 * kv.stage, 0);
}

/* --- products of a warp group --- */

typedef float scores[BLOCK / 2]; /* [64, 128]: a thread has two rows, 8 apart: of s[4j + 2 · half +
                                     i] row `half`, column 8j + 2 · (lane % 4) + i */
typedef float outputs[WIDTH / 2]; /* [64, 64], likewise */
typedef u32 factor[BLOCK / 4];    /* scores as a left factor */

/* s = a·bᵀ, a [64, 64] and b [128, 64] in shared memory */
__device__ __forceinline__ void multiply_rows(scores &s, u32 a, u32 b) {
    MULTIPLY_SHARED(128, s, a, b, MATRIX_HIGH, "0");
#pragma unroll
    for (int i = 1; i < WIDTH / 16; i++)
        MULTIPLY_SHARED(128, s, a + 2 * i, b + 2 * i, MATRIX_HIGH, "1");
}

/* d += a·b, b [128, 64] in shared memory */
__device__ __forceinline__ void gather(outputs &d, factor &a, u32 b) {
#pragma unroll
    for (int i = 0; i < BLOCK / 16; i++)
        MULTIPLY_HELD(64, d, a + 4 * i, b + (u32)(i * 16 * ROW_BYTES) / 16, MATRIX_HIGH, "1", "1");
}

/* d = a·b, a [64, 128] as two halves of [128, 64] each, b [128, 64] */
__device__ __forceinline__ void gather_queries(outputs &d, u32 a, u32 b) {
#pragma unroll
    for (int i = 0; i < BLOCK / 16; i++) {
        u32 left = a + (u32)(i / 4 * TILE_BYTES + i % 4 * 32) / 16;
        u32 right = b + (u32)(i * 16 * ROW_BYTES) / 16;
        if (i == 0)
            MULTIPLY_SHARED_TURNED(64, d, left, right, MATRIX_HIGH, "0");
        else
            MULTIPLY_SHARED_TURNED(64, d, left, right, MATRIX_HIGH, "1");
    }
}

/* --- scores --- */

/* Scores into shares. Keys from `left` on aren't there, and `ahead` of them come after the first
 * query, both counted from the thread's first key; MASKED: they matter. */
template <bool MASKED>
__device__ __forceinline__ void soften(scores &s, u32 bases, float factor, int left, int ahead) {
    int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < BLOCK / 8; j++) {
        float2 base = load_two(bases + (u32)(8 * j + lane % 4 * 2) * 4);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int key = i / 2 * 8, query = 8 * j + lane % 4 * 2 + i % 2;
            float x = exp2_fast(fmaf(s[4 * j + i], factor, -(i % 2 ? base.y : base.x)));
            s[4 * j + i] = MASKED && (key >= left || (CAUSAL && key + ahead > query)) ? 0.0f : x;
        }
    }
}

/* From shares as they were rounded: registers have no room for both. */
__device__ __forceinline__ void derive(const factor &p, scores &dp, u32 deltas) {
    int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < BLOCK / 8; j++) {
        float2 delta = load_two(deltas + (u32)(8 * j + lane % 4 * 2) * 4);
#pragma unroll
        for (int i = 0; i < 4; i++)
            dp[4 * j + i] = (i % 2 ? high_of(p[2 * j + i / 2]) : low_of(p[2 * j + i / 2])) *
                            (dp[4 * j + i] - (i % 2 ? delta.y : delta.x));
    }
}

__device__ __forceinline__ void pack_all(factor &to, const scores &from) {
#pragma unroll
    for (int i = 0; i < BLOCK / 4; i++)
        to[i] = pack(from[2 * i], from[2 * i + 1]);
}

/* dsᵀ[64 keys, 128 queries] as half of ds[128 queries, 64 keys], for gather_queries of both. */
__device__ __forceinline__ void show(const factor &ds, u32 half) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4, row = lane % 8;
    u32 piece = (u32)((2 * warp + lane / 8 % 2) ^ row) * 16;
    u32 to = half + (u32)(lane / 16 * 8 + row) * ROW_BYTES + piece;
#pragma unroll
    for (int j = 0; j < BLOCK / 16; j++)
        store_four_turned(to + (u32)(j * 16 * ROW_BYTES), ds + 4 * j);
}

/* --- into memory --- */

/* 64 rows from `row` on: the thread's two of them, if they are among the first `rows`. The four
 * lanes of a row exchange what they have, so that each writes 16 bytes and all of them 64. */
__device__ __forceinline__ void store(const outputs &d, element *to, s64 stride, float scale,
                                      int row, int rows) {
    int lane = (int)threadIdx.x % 32;
    bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < WIDTH / 32; i++) {
            u32 x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = pack(d[16 * i + 4 * j + 2 * half] * scale,
                            d[16 * i + 4 * j + 2 * half + 1] * scale);
            u32 a = __shfl_xor_sync(0xffffffffu, odd ? x[0] : x[1], 1);
            u32 b = __shfl_xor_sync(0xffffffffu, odd ? x[2] : x[3], 1);
            x[0] = odd ? a : x[0], x[1] = odd ? x[1] : a;
            x[2] = odd ? b : x[2], x[3] = odd ? x[3] : b;
            a = __shfl_xor_sync(0xffffffffu, high ? x[0] : x[2], 2);
            b = __shfl_xor_sync(0xffffffffu, high ? x[1] : x[3], 2);
            x[0] = high ? a : x[0], x[2] = high ? x[2] : a;
            x[1] = high ? b : x[1], x[3] = high ? x[3] : b;
            if (row + 8 * half < rows)
                *(uint4 *)(to + (row + 8 * half) * stride + 32 * i + lane % 4 * 8) =
                    make_uint4(x[0], x[1], x[2], x[3]);
        }
}

/* Where a warp's part of a tile of dq is gathered, and whose turn it is. */
struct shared_part {
    float4 *part;
    u32 *turn;
    u32 number; /* of turns that come before this block's */
    bool last;
};

__device__ __forceinline__ void part_wait(const shared_part &s, u32 passed) {
    while (passed < s.number)
        passed = flag_peek(s.turn);
}

/* What others have gathered, and this; or this for others. */
__device__ __forceinline__ void part_add(const shared_part &s, outputs &d) {
    if (s.last && s.number == 0)
        return;
#pragma unroll
    for (int i = 0; i < WIDTH / 8; i++) {
        float4 x = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
        if (s.last) {
            float4 y = load_fresh(s.part + i * 32);
            d[4 * i] += y.x, d[4 * i + 1] += y.y, d[4 * i + 2] += y.z, d[4 * i + 3] += y.w;
        } else if (s.number) {
            add_four(s.part + i * 32, x);
        } else {
            s.part[i * 32] = x;
        }
    }
}

/* --- a warp group --- */

struct results {
    element *out;
    float *parts;
    u32 *turns;
    float scale;
};

__device__ __forceinline__ shared_part part_of(const work &w, const piece &p, const tile &t,
                                               const results &to, int warp) {
    s64 pair = (s64)p.image * w.heads + t.head;
    s64 number = (pair * w.tiles + t.number) * 8 + warp;
    int lane = (int)threadIdx.x % 32;
    return {(float4 *)to.parts + number * (WIDTH / 8 * 32) + lane, to.turns + number, (u32)t.before,
            t.last};
}

/* What a thread has of its group's keys, and where it is. */
struct state {
    scores s, dp;
    outputs dk, dv, dq;
    factor p, ds;
    place q;
    u32 turn;           /* which ds */
    shared_part before; /* whose turn isn't passed on yet */
};

__device__ __forceinline__ u32 queries_at(u32 base, const place &q) {
    return base + Q_START + q.stage * 2 * TILE_BYTES;
}

/* One tile of queries, whose scores are there; MORE: then the next one's are. */
template <bool MORE>
__device__ __forceinline__ void take_step(const work &w, const piece &now, int step, u32 base,
                                          u32 keys, const results &to, int group, state &x) {
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % 4;
    int row = 16 * warp + lane / 4, first = now.block * BLOCK + group * 64; /* key of the group */
    u32 half = (u32)(group * 64 * ROW_BYTES), values = keys + TILE_BYTES;
    u32 queries = queries_at(base, x.q), d_o = queries + TILE_BYTES;
    u32 empty = base + Q_RING + 16 + 8 * x.q.stage,
        sums = base + SUMS_START + x.q.stage * SUM_BYTES;
    u32 ds_tile = base + DS_START + x.turn * 2 * TILE_BYTES;
    tile t = tile_of(w, now, step);
    shared_part part = part_of(w, now, t, to, group * 4 + warp);

    products_begin();
    multiply_rows(x.dp, matrix_at(values + half, 16), matrix_at(d_o, 16));
    products_commit();
    bool diagonal = CAUSAL && t.number == now.block;
    if (diagonal || first + 64 > w.tokens)
        soften<true>(x.s, sums, to.scale * LOG2E, w.tokens - first - row,
                     diagonal ? group * 64 + row : -BLOCK);
    else
        soften<false>(x.s, sums, to.scale * LOG2E, 0, 0);
    pack_all(x.p, x.s);
    products_begin();
    gather(x.dv, x.p, matrix_at(d_o, TILE_BYTES));
    products_commit();
    if (x.before.turn && lane == 0) /* what it stored has arrived meanwhile */
        flag_write(x.before.turn, x.before.number + 1);
    WAIT_PRODUCTS("1", 128, x.dp);
    derive(x.p, x.dp, sums + BLOCK * 4);
    pack_all(x.ds, x.dp);
    show(x.ds, ds_tile + (u32)group * TILE_BYTES);
    writes_show();
    WAIT_PRODUCTS("0", 64, x.dv);
    named_sync(1, 256);
    products_begin();
    gather_queries(x.dq, matrix_at(ds_tile + half, 16), matrix_at(keys, TILE_BYTES));
    products_commit();
    gather(x.dk, x.ds, matrix_at(queries, TILE_BYTES));
    products_commit();
    u32 passed = part.number ? flag_peek(part.turn) : 0;
    go_on(x.q);
    x.turn ^= 1;
    if (MORE) {
        barrier_wait(base + Q_RING + 8 * x.q.stage, x.q.parity);
        products_begin();
        multiply_rows(x.s, matrix_at(keys + half, 16), matrix_at(queries_at(base, x.q), 16));
        products_commit();
        WAIT_PRODUCTS("2", 64, x.dq);
    } else {
        WAIT_PRODUCTS("1", 64, x.dq);
    }

    part_wait(part, passed);
    part_add(part, x.dq);
    __syncwarp();
    x.before = part;
    if (part.last) {
        x.before.turn = nullptr;
        int all = w.heads + 2 * w.kv_heads, query = t.number * BLOCK + group * 64;
        s64 at = (((s64)now.image * w.tokens + query) * all + t.head) * WIDTH;
        store(x.dq, to.out + at, (s64)all * WIDTH, to.scale, row, w.tokens - query);
    }
    if (MORE)
        WAIT_PRODUCTS("0", 128, x.s);
    else
        WAIT_PRODUCTS("0", 64, x.dk);
    barrier_release(empty, lane);
}

__device__ __forceinline__ void multiply_all(const work &w, u32 base, const results &to,
                                             int group) {
    int lane = (int)threadIdx.x % 32, row = 16 * ((int)threadIdx.x / 32 % 4) + lane / 4;
    int all = w.heads + 2 * w.kv_heads;
    place kv = {0, 0};
    state x;
    x.q = {0, 0};
    x.turn = 0;
    for (;;) {
        piece now;
        barrier_wait(base + KV_RING + 8 * kv.stage, kv.parity);
        if (!piece_of(w, (int)load_one(base + PIECES + 4 * kv.stage), now))
            return;
        u32 keys = base + KV_START + kv.stage * 2 * TILE_BYTES;
        x.before.turn = nullptr;
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++)
            x.dk[i] = x.dv[i] = 0.0f;
        barrier_wait(base + Q_RING + 8 * x.q.stage, x.q.parity);
        products_begin();
        multiply_rows(x.s, matrix_at(keys + (u32)(group * 64 * ROW_BYTES), 16),
                      matrix_at(queries_at(base, x.q), 16));
        products_commit();
        WAIT_PRODUCTS("0", 128, x.s);
#pragma unroll 1
        for (int step = 0; step < now.steps - 1; step++)
            take_step<true>(w, now, step, base, keys, to, group, x);
        take_step<false>(w, now, now.steps - 1, base, keys, to, group, x);
        barrier_release(base + KV_RING + 16 + 8 * kv.stage, lane);
        go_on(kv);
        if (x.before.turn && lane == 0)
            flag_write(x.before.turn, x.before.number + 1);
        HOLD(64, x.dk);
        HOLD(64, x.dv);
        int first = now.block * BLOCK + group * 64;
        s64 at = (((s64)now.image * w.tokens + first) * all + w.heads + now.kv_head) * WIDTH;
        store(x.dk, to.out + at, (s64)all * WIDTH, to.scale, row, w.tokens - first);
        store(x.dv, to.out + at + (s64)w.kv_heads * WIDTH, (s64)all * WIDTH, 1.0f, row,
              w.tokens - first);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) flash_attention_backward_hopper(
    const __grid_constant__ tensor_map q_map, const __grid_constant__ tensor_map k_map,
    const __grid_constant__ tensor_map v_map, const __grid_constant__ tensor_map d_o_map,
    const float *sums, element *out, float *parts, u32 *turns, u32 *counter, int tokens, int heads,
    int kv_heads, int pairs, int staggered, int together, float scale) {
    extern __shared__ __align__(1024) u8 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    work w = {tokens, heads, kv_heads, pairs, (tokens + BLOCK - 1) / BLOCK, staggered, together};
    int warp_group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < 2; i++) {
            barrier_init(base + KV_RING + 8 * i, 1);
            barrier_init(base + KV_RING + 16 + 8 * i, 8);
            barrier_init(base + Q_RING + 8 * i, 1);
            barrier_init(base + Q_RING + 16 + 8 * i, 8);
        }
        barriers_show();
    }
    __syncthreads();
    wait_for_previous();
    if (warp_group == 0) {
        registers_give<FETCH_REGISTERS>();
        maps from = {&q_map, &k_map, &v_map, &d_o_map};
        if (threadIdx.x == 0)
            fetch_all(w, base, from, sums, counter);
    } else {
        registers_take<MULTIPLY_REGISTERS>();
        results to = {out, parts, turns, scale};
        multiply_all(w, base, to, warp_group - 1);
    }
}
#endif
