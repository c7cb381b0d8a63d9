/*
 * flash_attention_hopper.cu: softmax(scale · q·kᵀ)·v per batch and head, for compute capability 9.0
 * alone (sm_90a). q and out are [batch, tokens, heads, w], k and v [batch, tokens, kv_heads, w];
 * head i reads head i · kv_heads / heads of k and v. bf16, fp16. CAUSAL: token t sees tokens 0 … t.
 *
 * A block stays on its multiprocessor and takes one tile of BLOCK_M queries after the other. One
 * warp group fetches by TMA and says which tile it is; each of the others has 64 of the tile's
 * queries and walks over its keys, BLOCK_N at a time and from the last to the first, so that what
 * must be masked comes first. Scores, probabilities and the output live in registers alone (Shah et
 * al. 2024):
 *
 *   - the scores of the next keys are asked for before the values are multiplied by the
 *     probabilities of these, so the matrix unit works while exponentials are made; this goes on
 *     from a tile to the next, whose first scores are made while the last output is written
 *   - PINGPONG: the groups take turns at the matrix unit, so that one's exponentials fall into the
 *     other's products
 *   - the output is brought down to a new maximum only when that has grown by more than 2^8: until
 *     then the old one serves, for it is the same in numerator and denominator
 *   - with three groups, one that has none of a tile's queries leaves it to the others: of 1024
 *     tokens, one tile of 192 queries has 64
 *
 * flash_attention_tiles.cuh has the order of tiles. Measured on an H200 with head size 64, bf16, 16 ·
 * 32 heads of 1024 tokens, in turn for a second each: 421 TFLOP/s, causal 330, both 1.03 times
 * cuDNN's. Power bounds it there: 720 W at 1,800 to 1,830 MHz, and 7 % more in a short burst. Before
 * groups left tiles, the unit for exponentials was busy for 57 % of the time, causal 42 %: a group
 * waits in turn for its scores and its exponentials, and the others don't fill all of that. To do a
 * quarter of the exponentials by polynomials made it 2 to 11 % slower, tiles of 128 queries and keys
 * 6 to 8 %, of 128 and 176 10 to 12 %, of 192 and 112 0 to 8 %.
 *
 *     macros: WIDTH 64, 96, 128 or 256; CAUSAL 0 or 1; BLOCK_M 64, 128 or 192; BLOCK_N, a multiple
 *             of 16, 64 … 192; STAGES 2 … 4 tiles of keys, and as many of values, on their way or
 *             in use; Q_STAGES 1 or 2 of queries, 0 = one, which is copied to registers; PINGPONG 0
 *             or 1; LSE 1: lse[batch, heads, tokens], log Σ exp of scores, is written too
 *     legal: shared memory of 2 · WIDTH · (max(Q_STAGES, 1) · BLOCK_M + 2 · STAGES · BLOCK_N) and
 *            256 bytes within what a block gets (227 KiB); WIDTH / 2 + BLOCK_N · 3 / 4 registers,
 *            WIDTH / 4 more where Q_STAGES is 0, within 200, or 128 where BLOCK_M is 192
 *     grid: (multiprocessors, or what is handed out if that is less), BLOCK_M · 2 + 128 threads,
 *           that shared memory
 *     maps: of rank 5, sizes {c, tokens, w / c, (kv_)heads, batch}, box {c, BLOCK_M (q) or BLOCK_N
 *           (k, v), w / c, 1, 1}, c = 64 and a swizzle of 128 bytes, for w = 96 c = 32 and 64 bytes
 *
 * It wants scale > 0 and all tensors at multiples of 16 bytes.
 */
#include "hopper.cuh"

#ifdef MAKE_flash_attention_hopper
#define GROUPS  (BLOCK_M / 64) /* warp groups that multiply */
#define THREADS (128 * (GROUPS + 1))
/* Together no more than a block has at its start: 65536 / THREADS, rounded down to eights. */
#if BLOCK_M <= 128
#define FETCH_REGISTERS    40
#define MULTIPLY_REGISTERS 232
#else
#define FETCH_REGISTERS    32
#define MULTIPLY_REGISTERS 160
#endif

/* A tile lies in shared memory as one or more matrices of whole rows, each as wide as the
 * swizzle. */
#if WIDTH % 64 == 0
#define ROW_BYTES 128
#define SWIZZLE   1u
#else
#define ROW_BYTES 64
#define SWIZZLE   2u
#endif
#define Q_BYTES  (BLOCK_M * WIDTH * 2)
#define KV_BYTES (BLOCK_N * WIDTH * 2)
#define Q_ROOM   (Q_STAGES ? Q_STAGES : 1)
#define K_START  (Q_ROOM * Q_BYTES)
#define V_START  (K_START + STAGES * KV_BYTES)

/* Barriers, 8 bytes each, behind the tiles; a ring has `full` ones, then as many `empty` ones. */
#define BARRIERS (V_START + STAGES * KV_BYTES)
#define Q_RING   BARRIERS
#define K_RING   (Q_RING + 16 * Q_ROOM)
#define V_RING   (K_RING + 16 * STAGES)
#define TILES    ((V_RING + 16 * STAGES + 15) / 16 * 16) /* 16 bytes for each stage of queries */

#define LOWEST __int_as_float(0xff800000)
#define LOG2E  1.4426950408889634f
#define LN2    0.6931471805599453f
#define SLACK  8.0f

#include "flash_attention_tiles.cuh"

/* --- the matrix unit --- */

/* The upper word of all matrices: the swizzle and the bytes of 8 rows. */
#define MATRIX_HIGH (SWIZZLE << 30 | 8 * ROW_BYTES / 16)

#if Q_STAGES
typedef u32 queries; /* where they lie */
#else
struct queries {
    u32 a[WIDTH / 4];
};
#endif

/* s = q·kᵀ */
__device__ __forceinline__ void score(float (&s)[BLOCK_N / 2], const queries &q, u32 k) {
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++) {
        int part = i * 32 / ROW_BYTES, at = i * 32 % ROW_BYTES;
        u32 b = k + (u32)(part * BLOCK_N * ROW_BYTES + at) / 16;
#if Q_STAGES
        u32 a = q + (u32)(part * BLOCK_M * ROW_BYTES + at) / 16;
        if (i == 0)
            MULTIPLY_SHARED(BLOCK_N, s, a, b, MATRIX_HIGH, "0");
        else
            MULTIPLY_SHARED(BLOCK_N, s, a, b, MATRIX_HIGH, "1");
#else
        if (i == 0)
            MULTIPLY_HELD(BLOCK_N, s, q.a, b, MATRIX_HIGH, "0", "0");
        else
            MULTIPLY_HELD(BLOCK_N, s, q.a + 4 * i, b, MATRIX_HIGH, "1", "0");
#endif
    }
}

/* o += p·v */
__device__ __forceinline__ void gather(float (&o)[WIDTH / 2], u32 (&p)[BLOCK_N / 4], u32 v) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; i++)
        MULTIPLY_HELD(WIDTH, o, p + 4 * i, v + (u32)(i * 16 * ROW_BYTES) / 16, MATRIX_HIGH, "1",
                      "1");
}

/* --- barriers and copies --- */

/* The tile of `bytes` that begins at a token. Tokens beyond the last one are zeros. */
__device__ __forceinline__ void fetch(const tensor_map *map, u32 to, u32 bytes, u32 barrier,
                                      int token, int head, int image) {
    barrier_expect(barrier, bytes);
    load_head(to, map, token, head, image, barrier);
}

/* Where a warp group is in a ring of stages: `full` has been waited for with this parity. */
struct place {
    u32 stage, parity;
};

template <int N> __device__ __forceinline__ void go_on(place &at) {
    if (++at.stage == N) {
        at.stage = 0;
        at.parity ^= 1;
    }
}

/* Of keys or values, in their ring: until they are there; they are no longer read. */
__device__ __forceinline__ void stage_wait(u32 ring, const place &at) {
    barrier_wait(ring + 8 * at.stage, at.parity);
}

__device__ __forceinline__ void stage_release(u32 ring, place &at, int lane) {
    barrier_release(ring + 8 * (STAGES + at.stage), lane);
    go_on<STAGES>(at);
}

/* A group waits for its turn at the matrix unit and hands it on to the next. */
__device__ __forceinline__ void turn_take(int group) {
    if (PINGPONG && GROUPS > 1)
        named_sync(1 + group, 256);
}

__device__ __forceinline__ void turn_pass(int group) {
    if (PINGPONG && GROUPS > 1)
        named_arrive(group + 1 == GROUPS ? 1 : 2 + group, 256);
}

/* --- the group that fetches: a thread for queries and keys, one for values --- */

/* What the others have to know of a tile lies beside its queries. */
__device__ __forceinline__ void tile_tell(u32 base, u32 stage, const tile &t) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(base + TILES + 16 * stage),
                 "r"(t.first), "r"(t.image), "r"(t.head), "r"(t.blocks)
                 : "memory");
}

__device__ __forceinline__ void fetch_keys(const work &w, u32 base, const tensor_map *q_map,
                                           const tensor_map *k_map) {
    place q = {0, 1}, k = {0, 1}; /* an empty stage is there at once, the first time */
    position at = {0, 0, 0, false};
    tile t;
    while (tile_next(w, at, t)) {
        int kv_head = t.head / (w.heads / w.kv_heads);
        barrier_wait(base + Q_RING + 8 * (Q_ROOM + q.stage), q.parity);
        tile_tell(base, q.stage, t);
        fetch(q_map, base + q.stage * Q_BYTES, Q_BYTES, base + Q_RING + 8 * q.stage, t.first,
              t.head, t.image);
        go_on<Q_ROOM>(q);
        for (int n = t.blocks - 1; n >= 0; n--) {
            barrier_wait(base + K_RING + 8 * (STAGES + k.stage), k.parity);
            fetch(k_map, base + K_START + k.stage * KV_BYTES, KV_BYTES, base + K_RING + 8 * k.stage,
                  n * BLOCK_N, kv_head, t.image);
            go_on<STAGES>(k);
        }
    }
    t = {0, 0, 0, 0};
    barrier_wait(base + Q_RING + 8 * (Q_ROOM + q.stage), q.parity);
    tile_tell(base, q.stage, t);
    barrier_release(base + Q_RING + 8 * q.stage, 0);
}

__device__ __forceinline__ void fetch_values(const work &w, u32 base, const tensor_map *v_map) {
    place v = {0, 1};
    position at = {0, 0, 0, false};
    tile t;
    while (tile_next(w, at, t)) {
        int kv_head = t.head / (w.heads / w.kv_heads);
        for (int n = t.blocks - 1; n >= 0; n--) {
            barrier_wait(base + V_RING + 8 * (STAGES + v.stage), v.parity);
            fetch(v_map, base + V_START + v.stage * KV_BYTES, KV_BYTES, base + V_RING + 8 * v.stage,
                  n * BLOCK_N, kv_head, t.image);
            go_on<STAGES>(v);
        }
    }
}

/* --- the groups that multiply --- */

/*
 * A thread has two rows, 8 apart, of 64 queries: of the scores s[4j + 2 · half + i] is row `half`,
 * key 8j + 2 · (lane % 4) + i; of the output likewise. Keys from `end` on, counted as the scores are
 * from the thread's first, don't count in the first row; causal, the second sees 8 more.
 */
__device__ __forceinline__ void mask(float (&s)[BLOCK_N / 2], int end) {
#pragma unroll
    for (int j = -CAUSAL; j < BLOCK_N / 8; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            bool is_out = 8 * j + i >= end;
            if (j >= 0 && is_out)
                s[4 * j + i] = LOWEST;
            if (j + CAUSAL < BLOCK_N / 8 && is_out)
                s[4 * (j + CAUSAL) + 2 + i] = LOWEST;
        }
}

struct rows { /* a thread's two: the maximum that counts, the thread's part of the sum */
    float most[2], sum[2];
};

/*
 * Scores into exponentials. Says whether what was gathered before must be multiplied by `shrink`;
 * all lanes of a warp say the same.
 */
__device__ __forceinline__ bool soften(float (&s)[BLOCK_N / 2], rows &r, float *shrink,
                                       float factor) {
    float top[2][2] = {{r.most[0], LOWEST}, {r.most[1], LOWEST}};
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; j++)
#pragma unroll
        for (int half = 0; half < 2; half++)
            top[half][j % 2] =
                fmaxf(top[half][j % 2], fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
    bool grown = false;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        top[half][0] = quad_max(fmaxf(top[half][0], top[half][1]));
        grown = grown || (top[half][0] - r.most[half]) * factor > SLACK;
    }
    grown = __any_sync(0xffffffffu, grown);
    float base[2], add[2][2] = {};
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float before = r.most[half];
        r.most[half] = grown ? top[half][0] : before;
        /* a row that has seen no key yet */
        base[half] = r.most[half] == LOWEST ? 0.0f : r.most[half] * factor;
        shrink[half] = exp2_fast(fmaf(before, factor, -base[half]));
    }
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float x = fmaf(s[4 * j + i], factor, -base[i / 2]);
            s[4 * j + i] = exp2_fast(x);
            add[i / 2][i % 2] += s[4 * j + i];
        }
#pragma unroll
    for (int half = 0; half < 2; half++)
        r.sum[half] = fmaf(r.sum[half], shrink[half], add[half][0] + add[half][1]);
    return grown;
}

__device__ __forceinline__ void pack_all(u32 (&p)[BLOCK_N / 4], const float (&s)[BLOCK_N / 2]) {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 4; i++)
        p[i] = pack(s[2 * i], s[2 * i + 1]);
}

__device__ __forceinline__ u32 swap(u32 x, int step) {
    return __shfl_xor_sync(0xffffffffu, x, step);
}

/* What lies in memory behind the work: out[batch, tokens, heads, WIDTH], and where LSE is 1
 * lse[batch, heads, tokens]. */
struct results {
    element *out;
    float *lse;
    float factor;
};

/* The four lanes of a row exchange what they have, so that each writes 16 bytes and all of them
 * 64. */
__device__ __forceinline__ void store(const float (&o)[WIDTH / 2], const rows &r,
                                      const results &to_write, const work &w, const tile &t,
                                      int row, int lane) {
    bool odd = lane & 1, high = lane & 2;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = t.first + row + 8 * half;
        float total = quad_sum(r.sum[half]), share;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(total));
        if (LSE && lane % 4 == 0 && query < w.tokens)
            to_write.lse[((s64)t.image * w.heads + t.head) * w.tokens + query] =
                (r.most[half] * to_write.factor + log2_fast(total)) * LN2;
        element *to = to_write.out + (((s64)t.image * w.tokens + query) * w.heads + t.head) * WIDTH;
#pragma unroll
        for (int i = 0; i < WIDTH / 32; i++) {
            u32 x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = pack(o[16 * i + 4 * j + 2 * half] * share,
                            o[16 * i + 4 * j + 2 * half + 1] * share);
            u32 a = swap(odd ? x[0] : x[1], 1), b = swap(odd ? x[2] : x[3], 1);
            x[0] = odd ? a : x[0], x[1] = odd ? x[1] : a;
            x[2] = odd ? b : x[2], x[3] = odd ? x[3] : b;
            a = swap(high ? x[0] : x[2], 2), b = swap(high ? x[1] : x[3], 2);
            x[0] = high ? a : x[0], x[2] = high ? x[2] : a;
            x[1] = high ? b : x[1], x[3] = high ? x[3] : b;
            if (query < w.tokens)
                *(uint4 *)(to + 32 * i + lane % 4 * 8) = make_uint4(x[0], x[1], x[2], x[3]);
        }
    }
}

/* Masks a block of keys for a group's queries, the first of which is `query`, if there is need. */
__device__ __forceinline__ void mask_block(float (&s)[BLOCK_N / 2], const work &w, int n, int query,
                                           int row, int lane) {
    int end = CAUSAL ? query + 1 : w.tokens;
    if ((n + 1) * BLOCK_N > end) {
        int from = n * BLOCK_N + lane % 4 * 2;
        mask(s, end - from + (CAUSAL ? row : 0));
    }
}

/* The next tile, when its queries are there. */
__device__ __forceinline__ void tile_take(tile &t, u32 base, const place &q) {
    barrier_wait(base + Q_RING + 8 * q.stage, q.parity);
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(t.first), "=r"(t.image), "=r"(t.head), "=r"(t.blocks)
                 : "r"(base + TILES + 16 * q.stage)
                 : "memory");
}

/* By all lanes: each has read what stands beside the queries, or them. */
__device__ __forceinline__ void leave_tile(u32 base, place &q) {
    asm volatile(
        "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(base + Q_RING + 8 * (Q_ROOM + q.stage))
        : "memory");
    go_on<Q_ROOM>(q);
}

/* Its queries; those that are held leave their room to the next. */
__device__ __forceinline__ void queries_take(queries &held, u32 base, place &q, int group,
                                             int lane) {
    u32 start = base + q.stage * Q_BYTES + group * 64 * ROW_BYTES;
#if Q_STAGES
    held = matrix_at(start, 16);
#else
    int row = (int)threadIdx.x / 32 % 4 * 16 + lane % 16;
    int turned = ROW_BYTES == 128 ? row & 7 : row >> 1 & 3;
#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++) {
        int part = i * 32 / ROW_BYTES, piece = i * 32 % ROW_BYTES / 16 + lane / 16;
        u32 at = start + part * BLOCK_M * ROW_BYTES + row * ROW_BYTES + ((piece ^ turned) << 4);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(held.a[4 * i]), "=r"(held.a[4 * i + 1]), "=r"(held.a[4 * i + 2]),
                       "=r"(held.a[4 * i + 3])
                     : "r"(at)
                     : "memory");
    }
    leave_tile(base, q);
#endif
}

__device__ __forceinline__ void queries_leave(u32 base, place &q) {
#if Q_STAGES
    leave_tile(base, q);
#endif
}

/* Leaves keys that the group doesn't look at, and its turns, to the others. A stage is given back
 * when it has come, or that would count for what lay there before. */
__device__ __forceinline__ void keys_skip(int count, u32 base, place &k, int group, int lane) {
#pragma unroll 1
    for (; count > 0; count--) {
        turn_take(group);
        turn_pass(group);
        stage_wait(base + K_RING, k);
        stage_release(base + K_RING, k, lane);
    }
}

__device__ __forceinline__ void values_skip(int count, u32 base, place &v, int lane) {
#pragma unroll 1
    for (; count > 0; count--) {
        stage_wait(base + V_RING, v);
        stage_release(base + V_RING, v, lane);
    }
}

/* Leaves a whole tile to the others. */
__device__ __forceinline__ void tile_leave(int blocks, u32 base, place &k, place &v, int group,
                                           int lane) {
#pragma unroll 1
    for (; blocks > 0; blocks--) {
        keys_skip(1, base, k, group, lane);
        values_skip(1, base, v, lane);
    }
}

/*
 * Waits for the next block's keys, if there are more, when all exponentials of this one are made:
 * the compiler can't know that their sum isn't negative, so it can neither put this before them
 * nor, before this, the wait for the product of values that they should overlap. Without more keys
 * the wait is for the values at hand, which came long ago.
 */
__device__ __forceinline__ void keys_wait(bool more, u32 base, const place &k, const place &v,
                                          const rows &r) {
    u32 barrier = more ? K_RING + 8 * k.stage : V_RING + 8 * v.stage;
    u32 early = r.sum[0] + r.sum[1] < 0.0f;
    barrier_wait(base + barrier, (more ? k.parity : v.parity) ^ early);
}

__device__ __forceinline__ void multiply_all(const work &w, u32 base, const results &to_write,
                                             int group) {
    float factor = to_write.factor;
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x / 32 % 4 * 16 + lane / 4;
    place q = {0, 0}, k = {0, 0}, v = {0, 0};
    float s[BLOCK_N / 2], o[WIDTH / 2] = {}, shrink[2];
    u32 p[BLOCK_N / 4];
    queries held;
    rows r = {{LOWEST, LOWEST}, {0.0f, 0.0f}};
    tile t;
    tile_take(t, base, q);

#define K_NOW (matrix_at(base + K_START + k.stage * KV_BYTES, 16))
#define V_NOW (matrix_at(base + V_START + v.stage * KV_BYTES, BLOCK_N * ROW_BYTES))
    for (;;) { /* from the first tile on, and from one behind those that are left to others */
        while (t.blocks > 0 && is_left(w, t, group)) {
            tile_leave(t.blocks, base, k, v, group, lane);
            leave_tile(base, q);
            tile_take(t, base, q);
        }
        if (LEAVES && t.blocks == 0)
            return;
        int skip = blocks_unseen(w, t, group);
        t.blocks -= skip;
        keys_skip(skip, base, k, group, lane);
        values_skip(skip, base, v, lane);
        queries_take(held, base, q, group, lane);
        stage_wait(base + K_RING, k);
        if (LEAVES)
            turn_take(group);
        products_begin();
        score(s, held, K_NOW);
        products_commit();
        if (LEAVES)
            turn_pass(group);
        WAIT_PRODUCTS("0", BLOCK_N, s);
        stage_release(base + K_RING, k, lane);
        mask_block(s, w, t.blocks - 1, t.first + 64 * group, row, lane);
        soften(s, r, shrink, factor);
        pack_all(p, s);
        if (t.blocks > 1)
            stage_wait(base + K_RING, k);

        for (;;) {
            for (int n = t.blocks - 2; n >= 0; n--) {
                turn_take(group);
                products_begin();
                score(s, held, K_NOW);
                products_commit();
                stage_wait(base + V_RING, v);
                products_begin();
                gather(o, p, V_NOW);
                products_commit();
                turn_pass(group);
                WAIT_PRODUCTS("1", BLOCK_N, s);
                stage_release(base + K_RING, k, lane);
                mask_block(s, w, n, t.first + 64 * group, row, lane);
                bool grown = soften(s, r, shrink, factor);
                HOLD(BLOCK_N, s);
                keys_wait(n > 0, base, k, v, r);
                WAIT_PRODUCTS("0", WIDTH, o);
                stage_release(base + V_RING, v, lane);
                HOLD(BLOCK_N, s);
                if (grown)
#pragma unroll
                    for (int i = 0; i < WIDTH / 2; i++)
                        o[i] *= shrink[i / 2 % 2];
                pack_all(p, s);
            }
            /* this tile's last product goes along with the next tile's first */
            queries_leave(base, q);
            tile next;
            tile_take(next, base, q);
            rows done = r;
            if (next.blocks == 0 || is_left(w, next, group)) {
                stage_wait(base + V_RING, v);
                products_begin();
                gather(o, p, V_NOW);
                products_commit();
                WAIT_PRODUCTS("0", WIDTH, o);
                store(o, done, to_write, w, t, 64 * group + row, lane);
                if (!LEAVES || next.blocks == 0)
                    return;
                stage_release(base + V_RING, v, lane);
#pragma unroll
                for (int i = 0; i < WIDTH / 2; i++)
                    o[i] = 0.0f;
                r = {{LOWEST, LOWEST}, {0.0f, 0.0f}};
                t = next;
                break;
            }
            skip = blocks_unseen(w, next, group);
            next.blocks -= skip;
            keys_skip(skip, base, k, group, lane);
            queries_take(held, base, q, group, lane);
            stage_wait(base + K_RING, k);
            turn_take(group);
            products_begin();
            score(s, held, K_NOW);
            products_commit();
            stage_wait(base + V_RING, v);
            products_begin();
            gather(o, p, V_NOW);
            products_commit();
            turn_pass(group);
            WAIT_PRODUCTS("1", BLOCK_N, s);
            stage_release(base + K_RING, k, lane);
            mask_block(s, w, next.blocks - 1, next.first + 64 * group, row, lane);
            r = {{LOWEST, LOWEST}, {0.0f, 0.0f}};
            soften(s, r, shrink, factor);
            HOLD(BLOCK_N, s);
            keys_wait(next.blocks > 1, base, k, v, r);
            WAIT_PRODUCTS("0", WIDTH, o);
            stage_release(base + V_RING, v, lane);
            values_skip(skip, base, v, lane);
            HOLD(BLOCK_N, s);
            pack_all(p, s);
            store(o, done, to_write, w, t, 64 * group + row, lane);
#pragma unroll
            for (int i = 0; i < WIDTH / 2; i++)
                o[i] = 0.0f;
            t = next;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    flash_attention_hopper(const __grid_constant__ tensor_map q_map,
                           const __grid_constant__ tensor_map k_map,
                           const __grid_constant__ tensor_map v_map, element *out, float *lse,
                           int tokens, int heads, int kv_heads, int pairs, float scale) {
    extern __shared__ __align__(1024) u8 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    work w = {tokens, heads, kv_heads, pairs};
    int warp_group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < Q_ROOM; i++) {
            barrier_init(base + Q_RING + 8 * i, 1);
            barrier_init(base + Q_RING + 8 * (Q_ROOM + i), 128 * GROUPS);
        }
        for (int i = 0; i < STAGES; i++) {
            barrier_init(base + K_RING + 8 * i, 1);
            barrier_init(base + K_RING + 8 * (STAGES + i), 4 * GROUPS);
            barrier_init(base + V_RING + 8 * i, 1);
            barrier_init(base + V_RING + 8 * (STAGES + i), 4 * GROUPS);
        }
        barriers_show();
    }
    __syncthreads();
    wait_for_previous();
    if (warp_group == 0) {
        registers_give<FETCH_REGISTERS>();
        if (threadIdx.x == 0)
            fetch_keys(w, base, &q_map, &k_map);
        else if (threadIdx.x == 32)
            fetch_values(w, base, &v_map);
    } else {
        registers_take<MULTIPLY_REGISTERS>();
        if (warp_group == GROUPS)
            turn_pass(GROUPS - 1);
        results to_write = {out, lse, scale * LOG2E};
        multiply_all(w, base, to_write, warp_group - 1);
    }
}
#endif
