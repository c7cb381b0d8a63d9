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
 *   - the next tile's scores, dk and dq are asked for together, in this order: exponentials are
 *     taken of the scores while the matrix unit makes the other two, and ds while it makes dv. The
 *     tile after may be that of another piece of work: dk and dv are then stored on the way
 *   - registers are what is short: dq and p have the same, so dq is given away before p is rounded.
 *     What a tile is, the warp that fetches works out and leaves in shared memory
 *   - dq also sums over pieces of work: they add to it in fp32 and in turn, so the same bits come
 *     out each time. Two warps do that by the copy engine and wait for turns and arrivals while the
 *     groups go on: the first piece's part is stored, the next ones the L2 cache adds, and with the
 *     last turn a group reads them and writes dq. A piece begins at the queries next to its own
 *     keys, so that pieces which run side by side are at different queries, each a tile behind the
 *     one whose turn is before its own, and nobody waits (flash_attention_backward_mma.cu)
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
 *     parts:  fp32, b · h · ⌈s / 128⌉ tiles of 128 · 64; turns: 2 of each tile, then the counter, all
 *             0 before
 *
 * The matrix unit would bound it: five products of 128 · 128 · 64 take 2560 cycles, exponentials
 * 1024. On an H200 it reaches, of 2.5 times the forward's operations, 319 TFLOP/s for 16 · 12 causal
 * heads of 1024 tokens in bf16 and 381 where they see all keys, sustained: 1.39 and 1.13 times
 * cuDNN's rate. Of the 5700 cycles of a tile,
 * exponentials take 1250, giving dq away 600, asking for dp and dv 1000, ds 900, asking for scores
 * and dk 1000, for dq and waiting for the scores 600. Asking takes so long as a product whose left
 * factor is in registers holds its warps until the matrix unit takes it. Without waiting for turns
 * it would take 1% less time.
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

/* Keys and values, two stages; queries and sums, three; do, two; ds, two halves of keys; dq, two
 * halves of queries. */
#define KV_START     0
#define Q_START      (KV_START + 2 * 2 * TILE_BYTES)
#define DO_START     (Q_START + 3 * TILE_BYTES)
#define DS_START     (DO_START + 2 * TILE_BYTES)
#define DQ_START     (DS_START + 2 * TILE_BYTES)
#define DQ_BYTES     (BLOCK / 2 * WIDTH * 4)
#define SUMS_START   (DQ_START + 2 * DQ_BYTES)
#define CARDS        (SUMS_START + 3 * SUM_BYTES) /* what the tile of a stage of queries is */
#define CARD_BYTES   48
#define KV_EMPTY     (CARDS + 3 * CARD_BYTES) /* of each stage; full with the first queries */
#define Q_RING       (KV_EMPTY + 2 * 8)       /* of each stage `full`, then `empty` */
#define DO_RING      (Q_RING + 3 * 16)
#define SHARED_BYTES (DO_RING + 2 * 16)

/* What a card has, behind flags. */
#define NUMBER    4  /* of the tile, among all heads */
#define TURN      8  /* turns at its dq that come before */
#define QUERIES   12 /* that are left from its first on */
#define KEYS      16 /* likewise */
#define QUERY_OUT 24 /* where dq begins in `out` */
#define KEY_OUT   32 /* where dk does */

#define IS_LAST     1u  /* turn at its dq */
#define IS_DIAGONAL 2u  /* queries and keys are the same tokens */
#define IS_CUT      4u  /* not all keys of the block are there */
#define BEGINS      8u  /* a piece of work */
#define IS_FIRST    16u /* of all that the block takes */
#define IS_NONE     32u /* but the end */
#define KV_STAGE    64u /* where its keys are */

/* Barriers by name, those after the first one for each group. */
#define DS_THERE 1
#define DS_FREE  2
#define DQ_THERE 4
#define DQ_FREE  6

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
    int at;     /* among the tiles of all heads */
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
    head += p.kv_head * (w.heads / w.kv_heads);
    return {number, head, (p.image * w.heads + head) * w.tiles + number, before, last};
}

/* Where a warp is in a ring of stages: `full` has been waited for with this parity. */
template <int STAGES> struct place {
    u32 stage, parity;

    __device__ __forceinline__ void go_on() {
        stage = stage == STAGES - 1 ? 0 : stage + 1;
        parity ^= stage == 0;
    }
};

/* --- the warp that fetches --- */

struct maps {
    const tensor_map *q, *k, *v, *d_o;
};

/* Says what a tile is, but for `flags`. */
__device__ __forceinline__ void write_card(const work &w, const piece &p, const tile &t, u32 card) {
    int all = w.heads + 2 * w.kv_heads, query = t.number * BLOCK, key = p.block * BLOCK;
    s64 first = (s64)p.image * w.tokens;
    store_word(card + NUMBER, (u32)t.at);
    store_word(card + TURN, (u32)t.before);
    store_word(card + QUERIES, (u32)(w.tokens - query));
    store_word(card + KEYS, (u32)(w.tokens - key));
    store_long(card + QUERY_OUT, (u64)(((first + query) * all + t.head) * WIDTH));
    store_long(card + KEY_OUT, (u64)(((first + key) * all + w.heads + p.kv_head) * WIDTH));
}

__device__ __forceinline__ void fetch_all(const work &w, u32 base, const maps &from,
                                          const float *sums, u32 *counter) {
    place<2> kv = {0, 1}, d_o = {0, 1}; /* an empty stage is there at once, the first time */
    place<3> q = {0, 1};
    int number = CAUSAL ? (int)ticket_take(counter) : (int)blockIdx.x;
    u32 first = IS_FIRST, full, card;
    piece p;
    while (piece_of(w, number, p)) {
        for (int step = 0; step < p.steps; step++) {
            tile t = tile_of(w, p, step);
            full = base + Q_RING + 16 * q.stage, card = base + CARDS + q.stage * CARD_BYTES;
            barrier_wait(full + 8, q.parity);
            write_card(w, p, t, card);
            store_word(card, (t.last ? IS_LAST : 0) |
                                 (CAUSAL && t.number == p.block ? IS_DIAGONAL : 0) |
                                 ((p.block + 1) * BLOCK > w.tokens ? IS_CUT : 0) |
                                 (step == 0 ? BEGINS : 0) | (kv.stage ? KV_STAGE : 0) | first);
            first = 0;
            if (step == 0) {
                u32 to = base + KV_START + kv.stage * 2 * TILE_BYTES;
                barrier_wait(base + KV_EMPTY + 8 * kv.stage, kv.parity);
                barrier_expect(full, 3 * TILE_BYTES + SUM_BYTES);
                load_head(to, from.k, p.block * BLOCK, p.kv_head, p.image, full);
                load_head(to + TILE_BYTES, from.v, p.block * BLOCK, p.kv_head, p.image, full);
            } else {
                barrier_expect(full, TILE_BYTES + SUM_BYTES);
            }
            load_head(base + Q_START + q.stage * TILE_BYTES, from.q, t.number * BLOCK, t.head,
                      p.image, full);
            load_bytes(base + SUMS_START + q.stage * SUM_BYTES, sums + (s64)t.at * (2 * BLOCK),
                       SUM_BYTES, full);
            q.go_on();
            full = base + DO_RING + 16 * d_o.stage;
            barrier_wait(full + 8, d_o.parity);
            barrier_expect(full, TILE_BYTES);
            load_head(base + DO_START + d_o.stage * TILE_BYTES, from.d_o, t.number * BLOCK, t.head,
                      p.image, full);
            d_o.go_on();
        }
        kv.go_on();
        /* not before a tile is left of this piece: others wait for what is taken and not begun */
        barrier_wait(base + DO_RING + 16 * d_o.stage + 8, d_o.parity);
        number = CAUSAL ? (int)ticket_take(counter) : number + (int)gridDim.x;
    }
    full = base + Q_RING + 16 * q.stage;
    barrier_wait(full + 8, q.parity);
    store_word(base + CARDS + q.stage * CARD_BYTES, IS_NONE);
    barrier_release(full, 0);
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

/* d = a·b, or d += a·b where `add` isn't 0; b [128, 64] in shared memory */
__device__ __forceinline__ void gather(outputs &d, factor &a, u32 b, u32 add) {
#pragma unroll
    for (int i = 0; i < BLOCK / 16; i++) {
        if (i == 0)
            MULTIPLY_HELD_IF(64, d, a + 4 * i, b + (u32)(i * 16 * ROW_BYTES) / 16, MATRIX_HIGH,
                             add);
        else
            MULTIPLY_HELD(64, d, a + 4 * i, b + (u32)(i * 16 * ROW_BYTES) / 16, MATRIX_HIGH, "1",
                          "1");
    }
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
__device__ __forceinline__ void store(const outputs &d, element *to, int stride, float scale,
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
                *(uint4 *)(to + (s64)(row + 8 * half) * stride + 32 * i + lane % 4 * 8) =
                    make_uint4(x[0], x[1], x[2], x[3]);
        }
}

struct results {
    element *out;
    float *parts;
    u32 *turns;
    float scale;
    int stride, values; /* elements of `out` from one token to the next, and from dk to dv */
};

/* Where a group's half of a tile of dq is gathered, and whose turn it is. */
struct shared_part {
    float *part;
    u32 *turn;
    u32 number; /* of turns that come before this block's */
};

__device__ __forceinline__ shared_part part_of(const results &to, u32 card, int group) {
    s64 number = (s64)load_one(card + NUMBER) * 2 + group;
    return {to.parts + number * (DQ_BYTES / 4), to.turns + number, load_one(card + TURN)};
}

__device__ __forceinline__ void turn_wait(const shared_part &s) {
    while (flag_peek(s.turn) < s.number)
        ;
}

/* A warp that adds one group's halves to what others have gathered: it waits for its turn, and for
 * what it stored to arrive, while the group goes on. */
__device__ __forceinline__ void store_parts(u32 base, const results &to, int group) {
    int lane = (int)threadIdx.x % 32;
    u32 from = base + DQ_START + (u32)group * DQ_BYTES;
    place<3> q = {0, 0};
    named_arrive(DQ_FREE + group, 160);
    for (;;) {
        u32 ring = base + Q_RING + 16 * q.stage, card = base + CARDS + q.stage * CARD_BYTES;
        barrier_wait(ring, q.parity);
        u32 flags = load_one(card);
        shared_part s = part_of(to, card, group);
        barrier_arrive(ring + 8);
        q.go_on();
        if (flags & IS_NONE)
            return;
        if (flags & IS_LAST)
            continue;
        named_sync(DQ_THERE + group, 160);
        if (lane == 0) {
            if (s.number) {
                turn_wait(s);
                memory_show();
                add_bytes(s.part, from, DQ_BYTES);
            } else {
                store_bytes(s.part, from, DQ_BYTES);
            }
            store_wait<0>();
        }
        __syncwarp();
        named_arrive(DQ_FREE + group, 160);
        if (lane == 0) {
            store_wait_all();
            flag_write(s.turn, s.number + 1);
        }
        __syncwarp();
    }
}

/* --- a warp group --- */

/* What a thread has of its group's keys, and where it is. */
struct state {
    scores s, dp;
    outputs dk, dv, dq;
    factor p, ds;
    place<2> d_o;
    place<3> q;
};

__device__ __forceinline__ u32 keys_at(u32 base, u32 flags) {
    return base + KV_START + (flags & KV_STAGE ? 2 * TILE_BYTES : 0);
}

/* Begins the scores of a tile, or of what is there if there is none. */
__device__ __forceinline__ u32 ask_scores(u32 base, int group, state &x) {
    barrier_wait(base + Q_RING + 16 * x.q.stage, x.q.parity);
    u32 flags = load_one(base + CARDS + x.q.stage * CARD_BYTES);
    products_begin();
    multiply_rows(x.s, matrix_at(keys_at(base, flags) + (u32)(group * 64 * ROW_BYTES), 16),
                  matrix_at(base + Q_START + x.q.stage * TILE_BYTES, 16));
    products_commit();
    return flags;
}

/* dq of the tile of a card: to the warp that stores it, or, if the turn is the last, to memory. */
__device__ __forceinline__ void give_queries(u32 base, u32 card, const results &to, int group,
                                             outputs &dq) {
    int thread = (int)threadIdx.x % 128, lane = thread % 32, warp = thread / 32;
    u32 at = (u32)(warp * (WIDTH / 8) * 32 + lane) * 16;
    if (!(load_one(card) & IS_LAST)) {
        named_sync(DQ_FREE + group, 160);
#pragma unroll
        for (int i = 0; i < WIDTH / 8; i++)
            store_four(base + DQ_START + (u32)group * DQ_BYTES + at + (u32)i * 512, dq + 4 * i);
        writes_show();
        named_arrive(DQ_THERE + group, 160);
        return;
    }
    shared_part s = part_of(to, card, group);
    if (s.number) {
        turn_wait(s);
#pragma unroll
        for (int i = 0; i < WIDTH / 8; i++) {
            float4 y = load_fresh((const float4 *)((u64)s.part + at) + i * 32);
            dq[4 * i] += y.x, dq[4 * i + 1] += y.y, dq[4 * i + 2] += y.z, dq[4 * i + 3] += y.w;
        }
    }
    store(dq, to.out + (s64)load_long(card + QUERY_OUT) + (s64)group * 64 * to.stride, to.stride,
          to.scale, 16 * warp + lane / 4, (int)load_one(card + QUERIES) - group * 64);
}

__device__ __forceinline__ void store_keys(u32 card, const results &to, int group, state &x) {
    int lane = (int)threadIdx.x % 32, row = 16 * ((int)threadIdx.x / 32 % 4) + lane / 4;
    int rows = (int)load_one(card + KEYS) - group * 64;
    element *out = to.out + (s64)load_long(card + KEY_OUT) + (s64)group * 64 * to.stride;
    store(x.dk, out, to.stride, to.scale, row, rows);
    store(x.dv, out + to.values, to.stride, 1.0f, row, rows);
}

/* One tile of queries, whose scores are there; then the next one's are. Returns its flags. */
__device__ __forceinline__ u32 take_step(u32 base, const results &to, int group, u32 flags,
                                         state &x) {
    int lane = (int)threadIdx.x % 32, row = 16 * ((int)threadIdx.x / 32 % 4) + lane / 4;
    u32 half = (u32)(group * 64 * ROW_BYTES), stage = x.q.stage;
    u32 keys = keys_at(base, flags), d_o = base + DO_START + x.d_o.stage * TILE_BYTES;
    u32 sums = base + SUMS_START + stage * SUM_BYTES;

    if (flags & (IS_DIAGONAL | IS_CUT))
        soften<true>(x.s, sums, to.scale * LOG2E,
                     (int)load_one(base + CARDS + stage * CARD_BYTES + KEYS) - group * 64 - row,
                     flags & IS_DIAGONAL ? group * 64 + row : -BLOCK);
    else
        soften<false>(x.s, sums, to.scale * LOG2E, 0, 0);
    WAIT_PRODUCTS("0", 64, x.dq);
    named_arrive(DS_FREE + (group ^ 1), 256);
    u32 stage_before = stage ? stage - 1 : 2, card = base + CARDS + stage_before * CARD_BYTES;
    if (!(flags & IS_FIRST)) {
        give_queries(base, card, to, group, x.dq);
        if (flags & BEGINS) {
            HOLD(64, x.dk);
            HOLD(64, x.dv);
            store_keys(card, to, group, x);
            barrier_release(base + KV_EMPTY + (flags & KV_STAGE ? 0 : 8), lane);
        }
        barrier_arrive(base + Q_RING + 16 * stage_before + 8);
    }
    pack_all(x.p, x.s);
    barrier_wait(base + DO_RING + 16 * x.d_o.stage, x.d_o.parity);
    products_begin();
    multiply_rows(x.dp, matrix_at(keys + TILE_BYTES + half, 16), matrix_at(d_o, 16));
    products_commit();
    gather(x.dv, x.p, matrix_at(d_o, TILE_BYTES), ~flags & BEGINS);
    products_commit();
    WAIT_PRODUCTS("1", 128, x.dp);
    derive(x.p, x.dp, sums + BLOCK * 4);
    pack_all(x.ds, x.dp);

    named_sync(DS_FREE + group, 256);
    show(x.ds, base + DS_START + (u32)group * TILE_BYTES);
    writes_show();
    WAIT_PRODUCTS("0", 64, x.dv);
    barrier_release(base + DO_RING + 16 * x.d_o.stage + 8, lane);
    x.d_o.go_on();
    x.q.go_on();
    u32 next = ask_scores(base, group, x);
    products_begin();
    gather(x.dk, x.ds, matrix_at(base + Q_START + stage * TILE_BYTES, TILE_BYTES), ~flags & BEGINS);
    products_commit();
    named_sync(DS_THERE, 256);
    products_begin();
    gather_queries(x.dq, matrix_at(base + DS_START + half, 16), matrix_at(keys, TILE_BYTES));
    products_commit();
    WAIT_PRODUCTS("2", 128, x.s);
    return next;
}

__device__ __forceinline__ void multiply_all(u32 base, const results &to, int group) {
    state x;
    x.d_o = {0, 0};
    x.q = {0, 0};
    u32 flags = ask_scores(base, group, x);
    WAIT_PRODUCTS("0", 128, x.s);
    if (!(flags & IS_NONE)) {
#pragma unroll 1
        do
            flags = take_step(base, to, group, flags, x);
        while (!(flags & IS_NONE));
        WAIT_PRODUCTS("0", 64, x.dq);
        HOLD(64, x.dk);
        HOLD(64, x.dv);
        u32 card = base + CARDS + (x.q.stage ? x.q.stage - 1 : 2) * CARD_BYTES;
        store_keys(card, to, group, x);
        give_queries(base, card, to, group, x.dq);
    }
    named_sync(DQ_FREE + group, 160);
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
        barrier_init(base + KV_EMPTY, 8);
        barrier_init(base + KV_EMPTY + 8, 8);
        /* cards and sums are read by each lane of the groups, cards by those that store dq too */
        for (u32 ring = base + Q_RING; ring < base + SHARED_BYTES; ring += 16) {
            barrier_init(ring, 1);
            barrier_init(ring + 8, ring < base + DO_RING ? 256 + 64 : 8);
        }
        barriers_show();
    }
    __syncthreads();
    wait_for_previous();
    results to = {out, parts, turns, scale, (heads + 2 * kv_heads) * WIDTH, kv_heads * WIDTH};
    if (warp_group == 0) {
        registers_give<FETCH_REGISTERS>();
        maps from = {&q_map, &k_map, &v_map, &d_o_map};
        int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
        if (warp == 1 || warp == 2)
            store_parts(base, to, warp - 1);
        else if (threadIdx.x == 0)
            fetch_all(w, base, from, sums, counter);
    } else {
        registers_take<MULTIPLY_REGISTERS>();
        multiply_all(base, to, warp_group - 1);
    }
}
#endif
