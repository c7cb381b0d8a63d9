/*
 * flash_attention_mma.cu: out[b,s,h,w] = softmax(scale · q·kᵀ)·v for q[b,s,h,w] and k, v[b,s,g,w],
 * each head i of queries with head i·g/h of keys and values, by mma.sync and cp.async: for sm_80,
 * sm_86 and sm_89, and whatever later GPUs have no kernel of their own for.
 *
 * A block does BLOCK_M queries of one head, each of its warps BLOCK_M / WARPS of them, and walks
 * over the keys in tiles of BLOCK_N with a running maximum and sum; scores and probabilities never
 * leave registers (FlashAttention-2, Dao 2023). Tiles are walked upwards: every query sees key 0,
 * so the maximum is finite behind the first tile, and the masked tiles come last. Where it is
 * causal, warps leave out tiles that none of their queries sees, and the longest blocks of a head
 * come first.
 *
 *     bf16, fp16   mma.m16n8k16; a warp has 16 or 32 queries; STAGES 1: keys are fetched while the
 *                  values of the tile before are in use, and values while its keys are; else STAGES
 *                  tiles of both
 *     tf32         mma.m16n8k8; a warp has 16 queries; STAGES 1
 *     fp32         the same with each number in two parts and three products, right to fp32's
 *                  digits
 *
 *     macros: WIDTH   w: 64, 96, 128 or 256
 *             CAUSAL  1: query t sees keys 0…t alone
 *             VECTOR  1: all four tensors begin at multiples of 16 bytes
 *             BLOCK_M WARPS · 16, or in bf16 and fp16 also WARPS · 32
 *             BLOCK_N a multiple of 16
 *             WARPS   2, 4 or 8
 *             STAGES  1 to 3
 *             LSE     1: lse[b,h,s], log Σ exp of each query's scores, is written too
 *     legal:  registers: (WIDTH + BLOCK_N) / 2 · BLOCK_M / WARPS / 16 ≤ 192 shared memory, all of
 *             it dynamic, is as large as a block may have: (BLOCK_M + 2 · STAGES · BLOCK_N) rows of
 *             WIDTH elements; in tf32 and fp32 rows have 4 elements more
 *     grid:   ⌈s / BLOCK_M⌉ · h · b blocks of 32 · WARPS threads. `together` heads (1 to h · b)
 *             have their blocks side by side, so that the longest of all of them start first; few
 *             enough that the L2 cache holds their keys and values
 *     scale:  any but 0
 *
 * The matrix units bound it in principle. It has no row in bench/results: no GPU of 8.x was there.
 */
#include "mma.cuh"

#ifdef MAKE_flash_attention_mma
#define THREADS   (WARPS * 32)
#define WARP_ROWS (BLOCK_M / WARPS)
#define GROUPS    (WARP_ROWS / 16) /* rows of the matrix unit */
#define PIECES    (WIDTH / PER_16_BYTES)
#define LOWEST    __int_as_float(0xff800000)
#define LOG2E     1.4426950408889634f
#define LN2       0.6931471805599453f

#define ACROSS (PIECES % 8 == 0 ? 8 : 4) /* threads that fetch from one row at a time */
#define DOWN   (THREADS / ACROSS)        /* rows fetched at a time */

static_assert(WARP_ROWS * WARPS == BLOCK_M && GROUPS * 16 == WARP_ROWS && BLOCK_N % 16 == 0,
              "warps have whole fragments");

#if DTYPE >= 2
/* 16-byte pieces of a row are swapped by its number, so that ldmatrix meets no bank twice. */
#define ROW_PIECES PIECES
__device__ __forceinline__ int place(int row, int piece) {
    return piece ^ (PIECES % 8 == 0 ? row & 7 : row / 2 & 3);
}
#else
/* A piece more in each row does the same for reads of single floats, too. */
#define ROW_PIECES (PIECES + 1)
__device__ __forceinline__ int place(int row, int piece) {
    return piece;
}
#endif
#define ROW_BYTES  (ROW_PIECES * 16)
#define TILE_BYTES (BLOCK_N * ROW_BYTES)

__device__ __forceinline__ u32 at(u32 tile, int row, int piece) {
    return tile + (u32)(row * ROW_PIECES + place(row, piece)) * 16;
}

/* --- into shared memory --- */

/* The first `rows` of ROWS rows, `stride` elements apart; the others become zeros. */
template <int ROWS, bool WHOLE>
__device__ __forceinline__ void fetch_rows(u32 tile, const element *from, s64 stride, int rows) {
    int thread = threadIdx.x;
    /* what follows from a number that the compiler can't know again isn't kept in registers, which
     * the loop over tiles needs for sums */
    asm volatile("" : "+r"(thread));
    int top = thread / ACROSS, part = thread % ACROSS;
    u32 to = at(tile, top, part); /* rows 8 apart have their pieces in the same places */
    from += part * PER_16_BYTES;
#pragma unroll
    for (int i = 0; i < (ROWS + DOWN - 1) / DOWN; i++) {
        int row = top + i * DOWN;
        if (ROWS % DOWN && row >= ROWS)
            break;
        bool there = WHOLE || row < rows;
        const element *line = from + (there ? row : 0) * stride;
#pragma unroll
        for (int j = 0; j < PIECES / ACROSS; j++)
            fetch_piece(to + (u32)(i * DOWN * ROW_BYTES + j * ACROSS * 16),
                        line + j * ACROSS * PER_16_BYTES, there ? PER_16_BYTES : 0);
    }
}

template <int ROWS>
__device__ __forceinline__ void fetch(u32 tile, const element *from, s64 stride, int rows) {
    if (rows >= ROWS)
        fetch_rows<ROWS, true>(tile, from, stride, rows);
    else
        fetch_rows<ROWS, false>(tile, from, stride, rows);
}

/* --- the matrix unit --- */

#if DTYPE >= 2
/* A scale below 0 turns the queries' signs, so that the largest score is the largest product. */
#define SIGNS 0x80008000u

#else
#define SIGNS 0x80000000u

/* N floats as tf32, and for fp32 what that leaves of them. */
template <int N> struct parts {
    u32 high[N];
#if DTYPE == 0
    u32 low[N];
#endif
};

template <int N> __device__ __forceinline__ void split(struct parts<N> *to, const u32 *bits) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        to->high[i] = round_tf32(__uint_as_float(bits[i]));
#if DTYPE == 0
        to->low[i] = round_tf32(__uint_as_float(bits[i]) - __uint_as_float(to->high[i]));
#endif
    }
}

/* The small products first; that of both rests is below fp32's last digit. */
__device__ __forceinline__ void multiply(float *d, const struct parts<4> *a,
                                         const struct parts<2> *b) {
#if DTYPE == 0
    multiply_one(d, a->low, b->high);
    multiply_one(d, a->high, b->low);
#endif
    multiply_one(d, a->high, b->high);
}
#endif

/* --- a tile --- */

/*
 * What a warp gathers. A thread has two rows of each group, eight apart: [0..1] belong to the
 * first, [2..3] to the second.
 */
struct gathered {
    float o[GROUPS][WIDTH / 8][4];
    float most[GROUPS][2], sum[GROUPS][2];
};

typedef float scores[GROUPS][BLOCK_N / 8][4];

/* Keys behind what a query may see don't count. `start` is the tile's first key, `row` the thread's
 * first query. */
__device__ __forceinline__ void mask(scores s, int start, int row, int tokens) {
    int column = start + (int)threadIdx.x % 4 * 2;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int n = 0; n < BLOCK_N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (column + n * 8 + i % 2 > (CAUSAL ? row + g * 16 + i / 2 * 8 : tokens - 1))
                    s[g][n][i] = LOWEST;
}

#define SLACK 8.0f /* powers of two by which a score may exceed the maximum that is counted from */

/*
 * Counts from now on from the largest score seen, for which what was gathered has to be scaled; as
 * long as no score of the warp is far above what it counts from, it stays at that, and
 * probabilities up to 2^SLACK are as exact as those up to 1.
 */
__device__ __forceinline__ void raise(scores s, struct gathered *all, float factor) {
    float top[GROUPS][2];
    bool far = false;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
        int g = i / 2, half = i % 2;
        float most = all->most[g][half];
#pragma unroll
        for (int n = 0; n < BLOCK_N / 8; n++)
            most = fmaxf(most, fmaxf(s[g][n][2 * half], s[g][n][2 * half + 1]));
        top[g][half] = quad_max(most);
        far |= (top[g][half] - all->most[g][half]) * factor > SLACK;
    }
    if (!__any_sync(0xffffffffu, far))
        return;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
        int g = i / 2, half = i % 2;
        float shrink = exp2_fast((all->most[g][half] - top[g][half]) * factor);
        all->most[g][half] = top[g][half];
        all->sum[g][half] *= shrink;
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++) {
            all->o[g][n][2 * half] *= shrink;
            all->o[g][n][2 * half + 1] *= shrink;
        }
    }
}

/* Scores into probabilities. */
__device__ __forceinline__ void soften(scores s, struct gathered *all, float factor) {
    raise(s, all, factor);
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
        int g = i / 2, half = i % 2;
        float base = all->most[g][half] * factor, add = 0.0f;
#pragma unroll
        for (int n = 0; n < BLOCK_N / 8; n++)
#pragma unroll
            for (int j = 2 * half; j < 2 * half + 2; j++) {
                s[g][n][j] = exp2_fast(fmaf(s[g][n][j], factor, -base));
                add += s[g][n][j];
            }
        all->sum[g][half] += add;
    }
}

#if DTYPE >= 2
/* Queries stay in registers where there is room for them beside the rest. */
#define HELD (GROUPS * (WIDTH / 4 + WIDTH / 2 + BLOCK_N / 2) <= 176)

struct queries {
    u32 bits[HELD ? GROUPS : 1][HELD ? WIDTH / STEP : 1][4];
    u32 rows; /* where the warp's lie in shared memory */
    u32 signs;
};

__device__ __forceinline__ void take(const struct queries *q, int g, int d, u32 *r) {
    int lane = threadIdx.x % 32;
    load_four(at(q->rows, g * 16 + lane % 16, d * 2 + lane / 16), r, r + 2);
#pragma unroll
    for (int i = 0; i < 4; i++)
        r[i] ^= q->signs;
}

__device__ __forceinline__ void hold(struct queries *q) {
    if (HELD)
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
#pragma unroll
            for (int d = 0; d < WIDTH / STEP; d++)
                take(q, g, d, q->bits[HELD ? g : 0][HELD ? d : 0]);
}

__device__ __forceinline__ void score(const struct queries *q, u32 keys, scores s) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int n = 0; n < BLOCK_N / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[g][n][i] = 0.0f;
#pragma unroll
    for (int d = 0; d < WIDTH / STEP; d++) {
        u32 a[GROUPS][4];
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            if (HELD)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    a[g][i] = q->bits[HELD ? g : 0][HELD ? d : 0][i];
            else
                take(q, g, d, a[g]);
#pragma unroll
        for (int n = 0; n < BLOCK_N / 16; n++) {
            u32 b[4];
            load_four(at(keys, n * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2), b, b + 2);
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                multiply_one(s[g][2 * n], a[g], b);
                multiply_one(s[g][2 * n + 1], a[g], b + 2);
            }
        }
    }
}

__device__ __forceinline__ void weigh(scores p, u32 values, struct gathered *all) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < BLOCK_N / 16; j++) {
        u32 a[GROUPS][4];
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[g][i] = pack(p[g][2 * j + i / 2][i % 2 * 2], p[g][2 * j + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < WIDTH / 16; n++) {
            u32 b[4];
            load_four_turned(at(values, j * 16 + lane % 16, n * 2 + lane / 16), b, b + 2);
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                multiply_one(all->o[g][2 * n], a[g], b);
                multiply_one(all->o[g][2 * n + 1], a[g], b + 2);
            }
        }
    }
}

/* Through the shared memory of the warp's own queries, so that 16 bytes are stored at a time. */
__device__ __forceinline__ void store(const struct gathered *all, const struct queries *q,
                                      element *out, s64 stride, int rows) {
    int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float share = 1.0f / quad_sum(all->sum[g][half]);
            int row = g * 16 + half * 8 + lane / 4;
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++) {
                u32 both = pack(all->o[g][n][2 * half] * share, all->o[g][n][2 * half + 1] * share);
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(at(q->rows, row, n) + lane % 4 * 4),
                             "r"(both)
                             : "memory");
            }
        }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < WARP_ROWS * PIECES / 32; i++) {
        int row = (i * 32 + lane) / PIECES, piece = (i * 32 + lane) % PIECES;
        union chunk chunk;
        asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(chunk.bits.x), "=r"(chunk.bits.y), "=r"(chunk.bits.z),
                       "=r"(chunk.bits.w)
                     : "r"(at(q->rows, row, piece))
                     : "memory");
        element *to = out + row * stride + piece * PER_16_BYTES;
        if (row >= rows)
            continue;
#if VECTOR
        *(uint4 *)to = chunk.bits;
#else
#pragma unroll
        for (int j = 0; j < PER_16_BYTES; j++)
            to[j] = chunk.items[j];
#endif
    }
}

#else
static_assert(GROUPS == 1 && STAGES == 1, "tf32 and fp32 have 16 queries a warp and one stage");

struct queries {
    u32 rows, signs;
};

__device__ __forceinline__ void hold(struct queries *) {
}

/*
 * The matrix unit cuts its sums off instead of rounding them. So that this doesn't add up, fp32
 * gathers a few products at a time, beside the sum.
 */
#define APART (DTYPE == 0)

__device__ __forceinline__ void add_up(float *sum, float *part) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[i] += part[i];
        part[i] = 0.0f;
    }
}

/* A row of 8 × 16 bytes is one of 8 × 4 floats: a thread gets one of them from each of four. */
__device__ __forceinline__ void score(const struct queries *q, u32 keys, scores s) {
    int lane = threadIdx.x % 32;
    scores part = {};
#pragma unroll
    for (int n = 0; n < BLOCK_N / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[0][n][i] = 0.0f;
#pragma unroll 4
    for (int d = 0; d < WIDTH / STEP; d++) {
        struct parts<4> a;
        u32 raw[4];
        load_four(at(q->rows, lane % 16, d * 2 + lane / 16), raw, raw + 2);
#pragma unroll
        for (int i = 0; i < 4; i++)
            raw[i] ^= q->signs;
        split(&a, raw);
#pragma unroll
        for (int n = 0; n < BLOCK_N / 16; n++) {
            struct parts<2> b[2];
            load_four(at(keys, n * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2), raw,
                      raw + 2);
            split(&b[0], raw);
            split(&b[1], raw + 2);
#pragma unroll
            for (int i = 2 * n; i < 2 * n + 2; i++) {
                multiply(APART ? part[0][i] : s[0][i], &a, &b[i % 2]);
                if (APART && d % 4 == 3)
                    add_up(s[0][i], part[0][i]);
            }
        }
    }
}

/* A thread holds the scores of keys 2t and 2t + 1, the unit wants t and t + 4: the order of the
 * keys in the sum is free, so the values are taken in the thread's order. */
__device__ __forceinline__ void weigh(scores p, u32 values, struct gathered *all) {
    int lane = threadIdx.x % 32;
    u32 from = values + (u32)(lane % 4 * 2 * ROW_BYTES + lane / 4 * 4);
    struct parts<4> a[BLOCK_N / 8];
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; j++) {
        u32 raw[4] = {__float_as_uint(p[0][j][0]), __float_as_uint(p[0][j][2]),
                      __float_as_uint(p[0][j][1]), __float_as_uint(p[0][j][3])};
        split(&a[j], raw);
    }
#pragma unroll
    for (int n = 0; n < WIDTH / 8; n++) {
        float part[4] = {};
#pragma unroll
        for (int j = 0; j < BLOCK_N / 8; j++) {
            struct parts<2> b;
            u32 raw[2] = {load_one(from + (u32)(j * 8 * ROW_BYTES + n * 32)),
                          load_one(from + (u32)((j * 8 + 1) * ROW_BYTES + n * 32))};
            split(&b, raw);
            multiply(APART ? part : all->o[0][n], &a[j], &b);
        }
        if (APART)
            add_up(all->o[0][n], part);
    }
}

__device__ __forceinline__ void store(const struct gathered *all, const struct queries *,
                                      element *out, s64 stride, int rows) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float share = 1.0f / quad_sum(all->sum[0][half]);
        int row = half * 8 + lane / 4;
        element *to = out + row * stride + lane % 4 * 2;
        if (row < rows)
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++) {
                float x = all->o[0][n][2 * half] * share, y = all->o[0][n][2 * half + 1] * share;
#if VECTOR
                *(float2 *)(to + n * 8) = make_float2(x, y);
#else
                to[n * 8] = x;
                to[n * 8 + 1] = y;
#endif
            }
    }
}
#endif

/* Of a warp's rows, the first of which `lse` is that of. */
__device__ __forceinline__ void store_sums(const struct gathered *all, float factor, float *lse,
                                           int rows) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < GROUPS * 2; i++) {
        int g = i / 2, half = i % 2, row = g * 16 + half * 8 + lane / 4;
        float sum = quad_sum(all->sum[g][half]);
        if (lane % 4 == 0 && row < rows)
            lse[row] = (all->most[g][half] * factor + log2_fast(sum)) * LN2;
    }
}

/* --- a block --- */

/* Which queries of which head are the block's; `head` counts through the batch. */
struct share {
    int first, head;
};

__device__ __forceinline__ struct share share_of(int tokens, int together) {
    int blocks = (tokens + BLOCK_M - 1) / BLOCK_M; /* of a head */
    int heads = (int)gridDim.x / blocks;
    int section = (int)blockIdx.x / (together * blocks);
    int within = (int)blockIdx.x - section * together * blocks;
    int here = heads - section * together < together ? heads - section * together : together;
    int block = within / here;
    struct share share = {(CAUSAL ? blocks - 1 - block : block) * BLOCK_M,
                          section * together + within % here};
    return share;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    flash_attention_mma(const element *q, const element *k, const element *v, element *out,
                        float *lse, int tokens, int heads, int kv_heads, int together,
                        float scale) {
    extern __shared__ __align__(128) u8 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    u32 keys = base + BLOCK_M * ROW_BYTES, values = keys + STAGES * TILE_BYTES;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    struct share share = share_of(tokens, together);
    int image = share.head / heads, head = share.head % heads;
    s64 stride = (s64)heads * WIDTH, kv_stride = (s64)kv_heads * WIDTH;
    s64 offset = ((s64)image * tokens + share.first) * stride + head * WIDTH;
    s64 kv_offset = (s64)image * tokens * kv_stride + (int)((s64)head * kv_heads / heads) * WIDTH;
    int seen = CAUSAL && share.first + BLOCK_M < tokens ? share.first + BLOCK_M : tokens;
    int tiles = (seen + BLOCK_N - 1) / BLOCK_N;
    int first = share.first + warp * WARP_ROWS; /* of the warp */
    float factor = fabsf(scale) * LOG2E;
    k += kv_offset;
    v += kv_offset;

    wait_for_previous();
    fetch<BLOCK_M>(base, q + offset, stride, tokens - share.first);
    if (STAGES == 1) {
        fetch<BLOCK_N>(keys, k, kv_stride, tokens);
        commit();
    }
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < tiles) {
            s64 at_key = (s64)i * BLOCK_N * kv_stride;
            fetch<BLOCK_N>(keys + i * TILE_BYTES, k + at_key, kv_stride, tokens - i * BLOCK_N);
            fetch<BLOCK_N>(values + i * TILE_BYTES, v + at_key, kv_stride, tokens - i * BLOCK_N);
        }
        commit();
    }

    struct gathered all = {};
    struct queries mine;
    mine.rows = base + warp * WARP_ROWS * ROW_BYTES;
    mine.signs = scale < 0.0f ? SIGNS : 0u;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
        all.most[g][0] = all.most[g][1] = LOWEST;
    int slot = 0;
    for (int tile = 0; tile < tiles; tile++) {
        int start = tile * BLOCK_N, ahead = tile + (STAGES > 1 ? STAGES - 1 : 1);
        s64 ahead_key = (s64)ahead * BLOCK_N * kv_stride;
        int ahead_rows = tokens - ahead * BLOCK_N;
        bool busy = first < tokens && (!CAUSAL || start < first + WARP_ROWS);
        u32 here = (u32)slot * TILE_BYTES;
        scores s;
        await<STAGES == 1 ? 0 : STAGES - 2>();
        if (STAGES == 1) {
            fetch<BLOCK_N>(values, v + (s64)start * kv_stride, kv_stride, tokens - start);
        } else if (ahead < tiles) {
            u32 there = (u32)(slot == 0 ? STAGES - 1 : slot - 1) * TILE_BYTES;
            fetch<BLOCK_N>(keys + there, k + ahead_key, kv_stride, ahead_rows);
            fetch<BLOCK_N>(values + there, v + ahead_key, kv_stride, ahead_rows);
        }
        commit();
        if (tile == 0)
            hold(&mine);
        if (busy)
            score(&mine, keys + here, s);
        if (STAGES == 1) {
            await<0>();
            if (ahead < tiles)
                fetch<BLOCK_N>(keys, k + ahead_key, kv_stride, ahead_rows);
            commit();
        }
        if (busy) {
            if (CAUSAL ? start + BLOCK_N - 1 > first : start + BLOCK_N > tokens)
                mask(s, start, first + lane / 4, tokens);
            soften(s, &all, factor);
            weigh(s, values + here, &all);
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    if (LSE && first < tokens)
        store_sums(&all, factor, lse + (s64)share.head * tokens + first, tokens - first);
    if (first < tokens)
        store(&all, &mine, out + offset + warp * WARP_ROWS * stride, stride, tokens - first);
}
#endif
