/*
 * gemm_hopper.cu: out[m,n] = op(a)·op(b), with a bias, an exact GELU or a matrix added on the way
 * out, on Hopper's tensor cores (sm_90a alone). fp32 sums of bf16, fp16 or tf32 products.
 *
 * A block stays on its multiprocessor and does one tile of `out` after the other. One warpgroup,
 * the producer, has the copy engine bring pieces of a and b, BLOCK_K deep, into STAGES buffers of
 * shared memory; the others, the consumers, multiply them from there. Two barriers for each buffer,
 * full and empty, are all they share. Results leave through shared memory as well, by the copy
 * engine, while the next tile is multiplied: it leaves out what lies beyond the edges, as it reads
 * zeros there.
 *
 *     macros
 *     BLOCK_M, BLOCK_N   the tile: 64, 128, 192 or 256 × a multiple of 32 from 32 to 256
 *     STAGES             2 or more
 *     PINGPONG           0: the consumers share each tile, an even part of its rows for each; they
 *                        are as many as CONSUMERS below. 1: two consumers have tiles of their own,
 *                        and one writes its results while the other multiplies
 *     CLUSTER            2: two blocks with neighbouring tiles share the larger of their operands,
 *                        each reads half of it for both. 1: blocks are alone
 *     SPLIT              2, 3 or 4 blocks share a tile, each with a part of k, and add their sums
 *                        up through their shared memory; for few tiles and long k. 1: none of that
 *     LAYOUT             bit 0: a is [k,m], else [m,k]; bit 1: b is [n,k], else [k,n]
 *     EPILOGUE           bit 0: + bias[n]; bit 1: GELU of that; bit 2: + extra[m,n], which may be
 *                        out. Bit 3: the sums of a stage are added to those before by rounding; the
 *                        tensor cores cut off
 *
 *     legal
 *     - accumulators: rows of a consumer · BLOCK_N / 128 ≤ 192 registers of a thread with 1 or 2
 *       consumers, ≤ 96 with 3 or bit 3 of EPILOGUE
 *     - SHARED_BYTES below ≤ 227 KiB
 *     - where b is [k,n], BLOCK_N is a multiple of 64
 *     - tf32 with LAYOUT 2 alone: the tensor cores turn 16-bit operands only
 *     - SPLIT > 1: CLUSTER = 1, PINGPONG = 0, BLOCK_N / SPLIT is a multiple of 32, the stages have
 *       room for a tile of floats, and k has at least SPLIT pieces of BLOCK_K
 *     - a, b, extra and out are 16-byte aligned, and so are their rows
 *
 *     arguments: the maps of a, b and out, bias, extra, m, n, k, group; bias and extra are only
 *     looked at where EPILOGUE names them. Maps are of rank 2, the faster dimension first, zeros
 *     outside, swizzled by 128 bytes:
 *       a    [k,m]: {m, k} in boxes {SPAN, BLOCK_K / share}; [m,k]: {k, m}, {SPAN, BLOCK_M / share}
 *       b    [n,k]: {k, n} in boxes {SPAN, BLOCK_N / share}; [k,n]: {n, k}, {SPAN, BLOCK_K / share}
 *       out  {n, m} in boxes {BOX, 64}; swizzled by 64 bytes where BOX columns are 64 bytes
 *     with SPAN and BLOCK_K 128 bytes of elements, `share` 2 for the operand that a cluster shares
 *     (b where BLOCK_N ≥ BLOCK_M, else a) and 1 otherwise, BOX 64 columns where BLOCK_N / SPLIT is
 *     a multiple of 64, else 32 (tf32: 32). The maps of a and b round to tf32. group: so many rows
 *     of tiles are done together, column by column, to meet in the L2 cache
 *
 *     grid: SPLIT · tiles, or for SPLIT = 1 a multiple of CLUSTER, at most the multiprocessors;
 *     blocks of 128 · (1 + CONSUMERS) threads and SHARED_BYTES of dynamic shared memory, in clusters
 *     of CLUSTER · SPLIT
 *
 * The tensor cores bound it, and then power. On an H200, sustained, products of 4096 and 8192 in
 * bf16 go at 680 TFLOP/s, 1.02 and 1.00 times cuBLASLt's rate. One of 2048 is a single round of
 * tiles: of a block's 37,440 cycles products take 32,920, the first data come after 2,080, results
 * leave in 2,450. At 690 W energy decides: a tile of 128 x 256 runs at 1,710 MHz and 1.02 times
 * cuBLASLt's rate, one of 128 x 128 at 1,590 MHz and 0.99 times; in a burst 0.98 and 1.00 times.
 */
#include "hopper.cuh"

#ifdef MAKE_gemm_hopper

#define TRANSPOSE_A (LAYOUT & 1)
#define TRANSPOSE_B (LAYOUT >> 1 & 1)

#define ELEMENT_BYTES (DTYPE <= 1 ? 4 : 2)
#define SPAN          (128 / ELEMENT_BYTES) /* elements in the 128 bytes that are swizzled */
#define BLOCK_K       SPAN                  /* depth of a stage */
#define STEP          (32 / ELEMENT_BYTES)  /* depth of one instruction */
#define CONSUMERS     (PINGPONG ? 2 : BLOCK_M == 64 ? 1 : BLOCK_M == 192 ? 3 : 2)
#define CONSUMER_M    (PINGPONG ? BLOCK_M : BLOCK_M / CONSUMERS)
#define PARTS         (CONSUMER_M / 64) /* instructions above each other */
#define SUMS          (BLOCK_N / 2)     /* accumulators of a thread in one of them */

#define A_BYTES     (BLOCK_M * BLOCK_K * ELEMENT_BYTES)
#define B_BYTES     (BLOCK_N * BLOCK_K * ELEMENT_BYTES)
#define STAGE_BYTES (A_BYTES + B_BYTES)

#define SHARES_B (CLUSTER > 1 && BLOCK_N >= BLOCK_M)
#define SHARES_A (CLUSTER > 1 && BLOCK_N < BLOCK_M)
#define CTAS     (CLUSTER * SPLIT) /* blocks of a cluster */

#define SPLIT_N   (BLOCK_N / SPLIT) /* columns that a block finishes */
#define BOX       (DTYPE <= 1 || SPLIT_N % 64 ? 32 : 64)
#define BOX_PITCH (BOX * ELEMENT_BYTES)
#define BOX_BYTES (64 * BOX_PITCH)
#define SLOTS     2 /* boxes on their way out, for each consumer */

#define OUT_AT       (STAGES * STAGE_BYTES)
#define BARRIERS_AT  (OUT_AT + CONSUMERS * SLOTS * BOX_BYTES)
#define SHARED_BYTES (BARRIERS_AT + 16 * STAGES)

#define EARLY     (PARTS * SUMS <= 128) /* registers are left to load summands ahead */
#define WITH_BIAS (EPILOGUE & 1)
#define WITH_GELU (EPILOGUE & 2)
#define WITH_ADD  (EPILOGUE & 4)
#define ROUNDS    (EPILOGUE & 8)

#define THREADS (128 * (1 + CONSUMERS))

/* numbers of named barriers, one for each consumer; 0 is __syncthreads */
#define BARRIER_OUT   1
#define BARRIER_TURN  (1 + CONSUMERS)
#define BARRIER_SPLIT (1 + 2 * CONSUMERS)

static_assert(BLOCK_M % (64 * (PINGPONG ? 1 : CONSUMERS)) == 0 && BLOCK_M <= 256, "BLOCK_M");
static_assert(BLOCK_N % 32 == 0 && BLOCK_N <= 256, "BLOCK_N");
static_assert(PARTS * SUMS <= (CONSUMERS < 3 && !ROUNDS ? 192 : 96), "too many accumulators");
static_assert(SHARED_BYTES <= 227 * 1024, "too much shared memory");
static_assert(TRANSPOSE_B || BLOCK_N % 64 == 0, "BLOCK_N");
static_assert(DTYPE >= 2 || (!TRANSPOSE_A && TRANSPOSE_B), "tf32 is multiplied along k alone");
static_assert(SPLIT == 1 || (CLUSTER == 1 && !PINGPONG && BLOCK_N % (32 * SPLIT) == 0), "SPLIT");
static_assert(SPLIT == 1 || BLOCK_M * BLOCK_N * 4 <= OUT_AT, "no room for the sums of a tile");

/* --- barriers --- */

/* At the same barrier of a block of the cluster; without a shared operand there is only one's
 * own. */
__device__ __forceinline__ void barrier_arrive(u32 barrier, u32 block) {
    if (CLUSTER == 1)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
    else
        asm volatile("{ .reg .b32 there;\n"
                     "mapa.shared::cluster.u32 there, %0, %1;\n"
                     "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
                     "r"(block)
                     : "memory");
}

/* --- copies --- */

/*
 * ROWS of an operand, BLOCK_K deep, from row `row` and depth `k` on. Along k (TURNED = 0) one box
 * holds them all, 128 bytes of each; else each box 128 bytes' worth of rows, at all depths. SHARED:
 * this block's half of that, into both blocks.
 */
template <int ROWS, int TURNED, int SHARED>
__device__ __forceinline__ void load_operand(u32 to, const tensor_map *map, int row, int k,
                                             u32 barrier, u32 rank) {
    const int lines = TURNED ? BLOCK_K : ROWS; /* of 128 bytes in a box */
    int skip = SHARED ? (int)rank * (lines / 2) : 0;
#pragma unroll
    for (int i = 0; i < (TURNED ? ROWS / SPAN : 1); i++)
        load_box(to + (u32)(i * lines + skip) * 128, map, TURNED ? row + i * SPAN : k,
                 TURNED ? k + skip : row + skip, barrier, SHARED ? 3 : 0);
}

/* --- the tensor cores --- */

#if DTYPE <= 1
#define TURNS
#elif TRANSPOSE_A && TRANSPOSE_B
#define TURNS ", 1, 0"
#elif TRANSPOSE_A
#define TURNS ", 1, 1"
#elif TRANSPOSE_B
#define TURNS ", 0, 0"
#else
#define TURNS ", 0, 1"
#endif

/* n columns; a, b and keep are the numbers of the operands behind their registers */
#define MULTIPLY(n, a, b, keep)                                                                    \
    asm volatile("{ .reg .pred p;\n"                                                               \
                 "setp.ne.b32 p, %" #keep ", 0;\n" WGMMA(n) "%" #a ", %" #b ", p, 1, 1" TURNS      \
                                                            "; }"                                  \
                 : ITEMS_##n(d)                                                                    \
                 : "l"(at_a), "l"(at_b), "r"(kept))

/* d = (kept ? d : 0) + a·b for 64 rows and BLOCK_N columns, STEP deep. */
__device__ __forceinline__ void multiply(float *d, u64 at_a, u64 at_b, int kept) {
#if BLOCK_N == 32
    MULTIPLY(32, 16, 17, 18);
#elif BLOCK_N == 64
    MULTIPLY(64, 32, 33, 34);
#elif BLOCK_N == 96
    MULTIPLY(96, 48, 49, 50);
#elif BLOCK_N == 128
    MULTIPLY(128, 64, 65, 66);
#elif BLOCK_N == 160
    MULTIPLY(160, 80, 81, 82);
#elif BLOCK_N == 192
    MULTIPLY(192, 96, 97, 98);
#elif BLOCK_N == 224
    MULTIPLY(224, 112, 113, 114);
#else
    MULTIPLY(256, 128, 129, 130);
#endif
}

/* Names rows of 128 swizzled bytes in shared memory; eight of them are 1024 bytes. `leap`: from 128
 * bytes' worth of rows to the next, for turned operands. */
__device__ __forceinline__ u64 describe(u32 address, u32 leap) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(leap >> 4) << 16 | (u64)(1024 >> 4) << 32 |
           (u64)1 << 62;
}

/* A stage's product into the sums. Offsets are in units of 16 bytes. */
__device__ __forceinline__ void multiply_stage(float (*sums)[SUMS], u64 at_a, u64 at_b,
                                               bool first) {
#pragma unroll
    for (int k = 0; k < BLOCK_K; k += STEP) {
        const int a = TRANSPOSE_A ? k * 8 : k / STEP * 2, b = TRANSPOSE_B ? k / STEP * 2 : k * 8;
#pragma unroll
        for (int part = 0; part < PARTS; part++)
            multiply(sums[part], at_a + (u64)(a + part * (TRANSPOSE_A ? BLOCK_K * 8 : 64 * 8)),
                     at_b + (u64)b, !(first && k == 0));
    }
}

#if ROUNDS
/* A stage's product, waited for, is added to the sums; the first one is all of them. */
__device__ __forceinline__ void add_stage(float (*sums)[SUMS], float (*stage)[SUMS], bool first) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        WAIT_PRODUCTS("0", BLOCK_N, stage[part]);
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[part][i] = first ? stage[part][i] : sums[part][i] + stage[part][i];
    }
}
#endif

/* --- tiles --- */

struct tile {
    int row, column;
};

/* Number `index` of a cluster's tiles; `group` rows of them together, column by column. */
__device__ __forceinline__ tile tile_at(u32 index, u32 down, u32 across, u32 group, u32 rank) {
    u32 first = index / (group * across) * group;
    u32 rows = down - first < group ? down - first : group;
    u32 inside = index - first * across;
    u32 row = first + inside % rows, column = inside / rows;
    if (SHARES_B)
        row = 2 * row + rank;
    if (SHARES_A)
        column = 2 * column + rank;
    return {(int)row * BLOCK_M, (int)column * BLOCK_N};
}

/* --- the way out --- */

/*
 * x/2 · (1 + erf(x/√2)). In 16 bits by the tanh of a polynomial, fitted to the exact one to 5e-5,
 * and the unit's tanh is good to 2^-11.
 */
__device__ __forceinline__ float gelu_of(float x) {
#if DTYPE >= 2
    float square = fminf(x * x, 36.0f), y;
    float inner = x * (0.79778651f + square * (0.036767862f - square * 0.00031746111f));
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(inner));
    float half = 0.5f * x;
    return half + half * y;
#else
    float share = erfcf(-x * 0.70710678118654752f);
    return share == 0.0f ? 0.0f : 0.5f * x * share;
#endif
}

#if DTYPE <= 1
typedef float2 two; /* elements side by side */
__device__ __forceinline__ float first_of(two x) {
    return x.x;
}
__device__ __forceinline__ float second_of(two x) {
    return x.y;
}
#else
typedef u32 two;
__device__ __forceinline__ float first_of(two x) {
    return to_float((element)(x & 0xffff));
}
__device__ __forceinline__ float second_of(two x) {
    return to_float((element)(x >> 16));
}
#endif

/* Where 16 bytes of a box lie: swizzled, so that neither writes nor the copy meet a bank twice. */
__device__ __forceinline__ u32 box_at(u32 box, int row, int piece) {
    int mixed = BOX_PITCH == 128 ? piece ^ (row & 7) : piece ^ (row >> 1 & 3);
    return box + (u32)(row * BOX_PITCH + mixed * 16);
}

/*
 * A thread has, of its warp's 16 rows and each 8 columns, columns 2·(lane % 4) and the next: of row
 * lane / 4 in sums[4i] and [4i + 1], of the row 8 below in [4i + 2] and [4i + 3].
 */
struct summands { /* for BOX columns */
    two bias[BOX / 8], extra[2][BOX / 8];
};

/* Loads what a warp's sums from this row and column on need, where they lie inside the output. */
__device__ __forceinline__ void fetch(summands &to, const element *bias, const element *extra,
                                      int row, int column, int m, int n) {
    int lane = (int)threadIdx.x % 32;
    column += lane % 4 * 2;
    row += lane / 4;
#pragma unroll
    for (int i = 0; i < BOX / 8; i++) {
        bool inside = column + i * 8 < n;
        if (WITH_BIAS && inside)
            to.bias[i] = *(const two *)(bias + column + i * 8);
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (WITH_ADD && inside && row + 8 * j < m)
                to.extra[j][i] = *(const two *)(extra + (s64)(row + 8 * j) * n + column + i * 8);
    }
}

__device__ __forceinline__ void finish(float *sums, const summands &with) {
#pragma unroll
    for (int i = 0; i < BOX / 8; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float x = sums[4 * i + 2 * j], y = sums[4 * i + 2 * j + 1];
            if (WITH_BIAS)
                x += first_of(with.bias[i]), y += second_of(with.bias[i]);
            if (WITH_GELU)
                x = gelu_of(x), y = gelu_of(y);
            if (WITH_ADD)
                x += first_of(with.extra[j][i]), y += second_of(with.extra[j][i]);
            sums[4 * i + 2 * j] = x, sums[4 * i + 2 * j + 1] = y;
        }
}

__device__ __forceinline__ void write_box(const float *sums, u32 box) {
    int lane = (int)threadIdx.x % 32, row = (int)threadIdx.x % 128 / 32 * 16;
#if DTYPE >= 2
    row += lane % 16;
#pragma unroll
    for (int i = 0; i < BOX / 16; i++) {
        const float *s = sums + 8 * i;
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                         box_at(box, row, 2 * i + lane / 16)),
                     "r"(pack(s[0], s[1])), "r"(pack(s[2], s[3])), "r"(pack(s[4], s[5])),
                     "r"(pack(s[6], s[7]))
                     : "memory");
    }
#else
    row += lane / 4;
#pragma unroll
    for (int i = 0; i < BOX / 8; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
            asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(
                             box_at(box, row + 8 * j, 2 * i + lane % 4 / 2) + lane % 2 * 8),
                         "f"(sums[4 * i + 2 * j]), "f"(sums[4 * i + 2 * j + 1])
                         : "memory");
#endif
}

/*
 * SPLIT_N columns of a consumer's sums, from column `from` of the tile on. `slots` is its own
 * memory, and `slot` goes on from tile to tile. EARLY: `with` has what the first box needs, and for
 * each other it is fetched while the one before is written.
 */
__device__ __forceinline__ void store_tile(float (*sums)[SUMS], const tensor_map *map,
                                           const element *bias, const element *extra, tile at,
                                           int m, int n, const int from, summands with,
                                           int consumer, u32 slots, int &slot) {
    const int boxes = SPLIT_N / BOX;
    int thread = (int)threadIdx.x % 128, warp_row = thread / 32 * 16;
#pragma unroll
    for (int i = 0; i < PARTS * boxes; i++) {
        float *s = sums[i / boxes] + from / 2 + i % boxes * (BOX / 2);
        int column = at.column + from, row = at.row;
        u32 box = slots + (u32)slot * BOX_BYTES;
        if (!EARLY)
            fetch(with, bias, extra, row + i / boxes * 64 + warp_row, column + i % boxes * BOX, m,
                  n);
        finish(s, with);
        if (EARLY && i + 1 < PARTS * boxes)
            fetch(with, bias, extra, row + (i + 1) / boxes * 64 + warp_row,
                  column + (i + 1) % boxes * BOX, m, n);
        if (thread == 0)
            store_wait<SLOTS - 1>();
        named_sync(BARRIER_OUT + consumer, 128);
        write_box(s, box);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        named_sync(BARRIER_OUT + consumer, 128);
        if (thread == 0)
            store_box(map, column + i % boxes * BOX, row + i / boxes * 64, box);
        slot = (slot + 1) % SLOTS;
    }
}

#if SPLIT > 1
/*
 * The blocks of a cluster have sums over parts of k for the same tile. Each hands over the columns
 * that others finish, in its shared memory, thread by thread, and takes those of its own from them.
 */
__device__ __forceinline__ void hand_over(const float (*sums)[SUMS], u32 shared, u32 rank) {
    u32 at = shared + ((u32)threadIdx.x - 128) * 16;
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = 0; i < SUMS; i += 4)
            if (i / (SPLIT_N / 2) != (int)rank)
                asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(
                                 at + (u32)((part * SUMS + i) / 4 * CONSUMERS * 2048)),
                             "f"(sums[part][i]), "f"(sums[part][i + 1]), "f"(sums[part][i + 2]),
                             "f"(sums[part][i + 3])
                             : "memory");
}

__device__ __forceinline__ void take_over(float (*sums)[SUMS], const int from, u32 shared,
                                          u32 other) {
    u32 at = shared + ((u32)threadIdx.x - 128) * 16;
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(other));
#pragma unroll
    for (int part = 0; part < PARTS; part++)
#pragma unroll
        for (int i = from / 2; i < (from + SPLIT_N) / 2; i += 4) {
            float x, y, z, w;
            asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                         : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
                         : "r"(at + (u32)((part * SUMS + i) / 4 * CONSUMERS * 2048))
                         : "memory");
            sums[part][i] += x, sums[part][i + 1] += y;
            sums[part][i + 2] += z, sums[part][i + 3] += w;
        }
}
#endif

/* --- the roles --- */

/*
 * Lets the next kernel's blocks come, as wait_for_previous in common.cuh does at once: here they
 * would only wait for shared memory, and a wave of tiles ran slower while they did.
 */
__device__ __forceinline__ void launch_next() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

struct ring { /* a place in the stages */
    int stage;
    u32 parity;
    __device__ __forceinline__ void advance(int by) {
        stage += by;
        parity ^= (u32)(stage / STAGES) & 1;
        stage %= STAGES;
    }
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
#if CLUSTER * SPLIT > 1
    __cluster_dims__(CLUSTER *SPLIT, 1, 1)
#endif
        gemm_hopper(const __grid_constant__ tensor_map map_a,
                    const __grid_constant__ tensor_map map_b,
                    const __grid_constant__ tensor_map map_out, const element *bias,
                    const element *extra, int m, int n, int k, int group) {
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
    u32 full = shared + BARRIERS_AT, empty = full + 8 * STAGES;
    u32 rank = CTAS > 1 ? cluster_rank() : 0;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(full + 8 * i, 1);
            barrier_init(empty + 8 * i, (PINGPONG ? 1 : CONSUMERS) * CLUSTER);
        }
        barriers_show();
        prefetch_map(&map_a);
        prefetch_map(&map_b);
        prefetch_map(&map_out);
    }
    if (CTAS > 1)
        cluster_sync();
    else
        __syncthreads();
    asm volatile("griddepcontrol.wait;" ::: "memory");

    u32 down = (u32)(m + BLOCK_M - 1) / BLOCK_M, across = (u32)(n + BLOCK_N - 1) / BLOCK_N;
    if (SHARES_B)
        down = (down + 1) / 2;
    if (SHARES_A)
        across = (across + 1) / 2;
    u32 tiles = down * across, step = gridDim.x / CTAS;
    int pieces = (k + BLOCK_K - 1) / BLOCK_K;
    int begin = pieces * (int)(SPLIT > 1 ? rank : 0) / SPLIT;
    int end = pieces * (int)(SPLIT > 1 ? rank + 1 : 1) / SPLIT;

    /* the same in a warp's threads, and known to be */
    int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    if (warp < 4) { /* the producer */
        if (CONSUMERS == 2)
            registers_give<40>();
        if (CONSUMERS == 3)
            registers_give<32>();
        if (warp == 0 && elect()) {
            ring at = {0, 1};
            for (u32 index = blockIdx.x / CTAS; index < tiles; index += step) {
                tile to = tile_at(index, down, across, (u32)group, rank);
                for (int piece = begin; piece < end; piece++) {
                    u32 a = shared + (u32)at.stage * STAGE_BYTES, barrier = full + 8 * at.stage;
                    barrier_wait(empty + 8 * at.stage, at.parity);
                    barrier_expect(barrier, STAGE_BYTES);
                    load_operand<BLOCK_M, TRANSPOSE_A, SHARES_A>(a, &map_a, to.row, piece * BLOCK_K,
                                                                 barrier, rank);
                    load_operand<BLOCK_N, !TRANSPOSE_B, SHARES_B>(a + A_BYTES, &map_b, to.column,
                                                                  piece * BLOCK_K, barrier, rank);
                    at.next();
                }
            }
        }
        launch_next();
#if SPLIT > 1
        cluster_sync();
#endif
    } else {
        if (CONSUMERS == 2)
            registers_take<232>();
        if (CONSUMERS == 3)
            registers_take<160>();
        int consumer = warp / 4 - 1, thread = (int)threadIdx.x % 128, slot = 0;
        u32 slots = shared + OUT_AT + (u32)(consumer * SLOTS * BOX_BYTES);
        u32 mine = PINGPONG ? 0 : (u32)consumer * (PARTS * (TRANSPOSE_A ? BLOCK_K : 64) * 128);
        u64 a = describe(shared + mine, BLOCK_K * 128);
        u64 b = describe(shared + A_BYTES, BLOCK_K * 128);
        float sums[PARTS][SUMS];
        ring at = {0, 0};
        u32 index = blockIdx.x / CTAS;
        if (PINGPONG) {
            index += (u32)consumer * step;
            at.advance(consumer * (end - begin));
            if (consumer == CONSUMERS - 1)
                named_arrive(BARRIER_TURN, 256);
        }
        for (; index < tiles; index += step * (PINGPONG ? CONSUMERS : 1)) {
            int before = 0;
            /* stages are taken in turns: their barriers only tell the last phase from the one
             * before */
            if (PINGPONG)
                named_sync(BARRIER_TURN + consumer, 256);
            for (int piece = begin; piece < end; piece++) {
                u64 skip = (u64)(at.stage * (STAGE_BYTES >> 4));
                barrier_wait(full + 8 * at.stage, at.parity);
                products_begin();
#if ROUNDS
                float stage[PARTS][SUMS];
                multiply_stage(stage, a + skip, b + skip, true);
                products_commit();
                add_stage(sums, stage, piece == begin);
#else
                multiply_stage(sums, a + skip, b + skip, piece == begin);
                products_commit();
                products_wait<1>();
#endif
                if (piece > begin && thread < CLUSTER)
                    barrier_arrive(empty + 8 * before, (u32)thread);
                before = at.stage;
                at.next();
            }
            if (PINGPONG)
                named_arrive(BARRIER_TURN + (consumer + 1) % CONSUMERS, 256);
            tile to = tile_at(index, down, across, (u32)group, rank);
            to.row += PINGPONG ? 0 : consumer * CONSUMER_M;
            summands with;
            if (EARLY)
                fetch(with, bias, extra, to.row + thread / 32 * 16,
                      to.column + (SPLIT > 1 ? (int)rank * SPLIT_N : 0), m, n);
            products_wait<0>();
            if (thread < CLUSTER)
                barrier_arrive(empty + 8 * before, (u32)thread);
            if (PINGPONG)
                at.advance((CONSUMERS - 1) * (end - begin));

#if SPLIT > 1
            named_sync(BARRIER_SPLIT, 128 * CONSUMERS); /* all have read the stages */
            hand_over(sums, shared, rank);
            cluster_sync();
#pragma unroll
            for (int part = 0; part < SPLIT; part++)
                if (part == (int)rank) {
#pragma unroll
                    for (int other = 1; other < SPLIT; other++)
                        take_over(sums, part * SPLIT_N, shared, (rank + other) % SPLIT);
                    store_tile(sums, &map_out, bias, extra, to, m, n, part * SPLIT_N, with,
                               consumer, slots, slot);
                }
#else
            store_tile(sums, &map_out, bias, extra, to, m, n, 0, with, consumer, slots, slot);
#endif
        }
        launch_next();
        if (thread == 0)
            store_wait<0>();
    }
    if (CTAS > 1) /* a block's shared memory is there as long as others may write or read it */
        cluster_sync();
}

#endif
