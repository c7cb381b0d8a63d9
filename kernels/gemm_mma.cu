/*
 * gemm_mma.cu: out[m,n] = op(a)·op(b), and what may follow it, by mma.sync and cp.async: for sm_80,
 * sm_86 and sm_89, and whatever later GPUs have no kernel of their own for. All tensors are dense
 * and row-major, sums are fp32, and the result is rounded once.
 *
 * A block does BLOCK_M × BLOCK_N of the output, WARPS_M × WARPS_N warps an even share of it each.
 * The inner dimension comes in tiles of BLOCK_K through STAGES stages of shared memory; a tile
 * keeps the layout that it has in memory, and ldmatrix turns it where the matrix unit wants it
 * otherwise. Fragments are loaded one step ahead, over the border of tiles too. Blocks go through
 * the output in groups of 8 rows of tiles, so that those which run at once share what the L2 cache
 * holds.
 *
 *     bf16, fp16   mma.m16n8k16
 *     tf32         mma.m16n8k8
 *     fp32         the same with each number in two parts and three products, right to fp32's
 *                  digits
 *
 *     macros: BLOCK_M, BLOCK_N, BLOCK_K, STAGES (2 or more), WARPS_M, WARPS_N
 *             LAYOUT    bit 0: a is [k,m], else [m,k]; bit 1: b is [n,k], else [k,n]
 *             EPILOGUE  bit 0: + bias[n]; bit 1: the exact GELU; bit 2: + x[m,n], which may be out
 *             VECTOR    1: the rows of a, b, x and out all begin at multiples of 16 bytes
 *     legal:  BLOCK_M a multiple of 16 · WARPS_M, BLOCK_N of 16 · WARPS_N; both multiples of 32
 *             BLOCK_K a multiple of 32, in tf32 and fp32 of 16
 *             WARPS_M · WARPS_N is 2, 4 or 8
 *             registers: BLOCK_M · BLOCK_N ≤ 128 · 32 · warps, in fp32 ≤ 64 · 32 · warps
 *             shared memory, all of it dynamic, is as large as a block may have: STAGES · BLOCK_K ·
 *             (BLOCK_M + BLOCK_N) elements, and at the end, in their place, 16 rows of
 *             BLOCK_N / WARPS_N + 8 floats for each warp
 *     grid:   ⌈m / BLOCK_M⌉ · ⌈n / BLOCK_N⌉ blocks of 32 · warps threads
 *     bias and x are only looked at where EPILOGUE names them
 *
 * The matrix units bound it in principle. It has no row in bench/results: no GPU of 8.x was there.
 */
#include "mma.cuh"

#ifdef MAKE_gemm_mma
#define THREADS     (WARPS_M * WARPS_N * 32)
#define TRANSPOSE_A (LAYOUT & 1)
#define TRANSPOSE_B (LAYOUT >> 1 & 1)
#define STEPS       (BLOCK_K / STEP)
#define WARP_M      (BLOCK_M / WARPS_M)
#define WARP_N      (BLOCK_N / WARPS_N)
#define ROWS        (WARP_M / 16) /* of fragments that a warp has */
#define COLUMNS     (WARP_N / 8)
#define TOGETHER    8 /* rows of tiles */

static_assert(ROWS * 16 * WARPS_M == BLOCK_M && COLUMNS * 8 * WARPS_N == BLOCK_N &&
                  COLUMNS % 2 == 0 && BLOCK_M % 32 == 0 && BLOCK_N % 32 == 0,
              "warps have whole pairs of fragments");
static_assert(STEPS * STEP == BLOCK_K && STEPS >= 2 && STAGES >= 2,
              "fragments are loaded a step ahead, tiles a stage");

/* --- tiles in shared memory --- */

/*
 * ROWS_ rows of COLUMNS_ elements. The 16-byte pieces of a row are swapped by its number so that no
 * bank is met twice: by ldmatrix, which reads one piece of eight rows, or, where ldmatrix can't
 * turn them (SINGLE), by threads that read eight floats of four rows.
 */
template <int ROWS_, int COLUMNS_, bool SINGLE> struct layout {
    static constexpr int rows = ROWS_, columns = COLUMNS_;
    static constexpr int pieces = COLUMNS_ / PER_16_BYTES;
    static constexpr int across = pieces % 8 == 0 ? 8 : 4; /* threads that fetch from one row */
    static constexpr int down = THREADS / across;
    static constexpr u32 bytes = ROWS_ * pieces * 16;
    static_assert(pieces % 4 == 0 && (!SINGLE || pieces % 8 == 0) && down % 8 == 0,
                  "a row has enough pieces to swap");

    static __device__ __forceinline__ u32 at(u32 tile, int row, int piece) {
        int turn = SINGLE ? (row & 3) * 2 : pieces % 8 == 0 ? row & 7 : row / 2 & 3;
        return tile + (u32)(row * pieces + (piece ^ turn)) * 16;
    }
};

#if TRANSPOSE_A
typedef layout<BLOCK_K, BLOCK_M, (DTYPE < 2)> tile_a;
#else
typedef layout<BLOCK_M, BLOCK_K, false> tile_a;
#endif
#if TRANSPOSE_B
typedef layout<BLOCK_N, BLOCK_K, false> tile_b;
#else
typedef layout<BLOCK_K, BLOCK_N, (DTYPE < 2)> tile_b;
#endif
#define STAGE_BYTES (tile_a::bytes + tile_b::bytes)

/* A tile whose first element is `from`; rows and columns that remain of the matrix there. */
template <class LAYOUT_, bool WHOLE>
__device__ __forceinline__ void fetch_part(u32 tile, const element *from, s64 stride, int rows,
                                           int columns) {
    int thread = threadIdx.x;
    /* what follows from a number that the compiler can't know again isn't kept in registers, which
     * the loop over tiles needs for sums */
    asm volatile("" : "+r"(thread));
    int top = thread / LAYOUT_::across, part = thread % LAYOUT_::across;
    u32 to = LAYOUT_::at(tile, top, part); /* rows 8 apart have their pieces in the same places */
    const element *line = from + top * stride + part * PER_16_BYTES;
#pragma unroll
    for (int i = 0; i < (LAYOUT_::rows + LAYOUT_::down - 1) / LAYOUT_::down; i++) {
        int row = top + i * LAYOUT_::down;
        if (LAYOUT_::rows % LAYOUT_::down && row >= LAYOUT_::rows)
            break;
#pragma unroll
        for (int j = 0; j < LAYOUT_::pieces / LAYOUT_::across; j++) {
            int column = (part + j * LAYOUT_::across) * PER_16_BYTES;
            int there = WHOLE ? PER_16_BYTES : row < rows ? columns - column : 0;
            const element *source = line + j * LAYOUT_::across * PER_16_BYTES;
            fetch_piece(to + (u32)(i * LAYOUT_::down * LAYOUT_::pieces + j * LAYOUT_::across) * 16,
                        WHOLE || there > 0 ? source : from, there);
        }
        line += LAYOUT_::down * stride;
    }
}

template <class LAYOUT_>
__device__ __forceinline__ void fetch(u32 tile, const element *from, s64 stride, int rows,
                                      int columns) {
    if (rows >= LAYOUT_::rows && columns >= LAYOUT_::columns)
        fetch_part<LAYOUT_, true>(tile, from, stride, rows, columns);
    else
        fetch_part<LAYOUT_, false>(tile, from, stride, rows, columns);
}

/* --- fragments --- */

struct fragments {
    u32 a[ROWS][4], b[COLUMNS][2];
};

/* One float of a tile whose rows are the inner dimension. */
template <class LAYOUT_> __device__ __forceinline__ u32 load_float(u32 tile, int row, int column) {
    return load_one(LAYOUT_::at(tile, row, column / 4) + (u32)(column % 4 * 4));
}

/*
 * Where a warp's share of a tile begins. Whole groups of 8 pieces or 8 rows move its places as they
 * are, which leaves the threads few addresses to keep; what remains is left in *first.
 */
template <class LAYOUT_>
__device__ __forceinline__ u32 share_of(u32 tile, bool transpose, int extent, int *first) {
    int begin = *first;
    if (transpose && extent / PER_16_BYTES % 8)
        return tile;
    *first = 0;
    return tile + (u32)(transpose ? begin / PER_16_BYTES : begin * LAYOUT_::pieces) * 16;
}

/* What a warp needs of step k of a tile; its rows and columns of the output begin at `row`,
 * `column`. Four floats are one piece of 16 bytes, so ldmatrix serves them too, but doesn't turn
 * them. */
__device__ __forceinline__ void load(struct fragments *to, u32 a, u32 b, int row, int column,
                                     int k) {
    int lane = threadIdx.x % 32;
    a = share_of<tile_a>(a, TRANSPOSE_A, WARP_M, &row);
    b = share_of<tile_b>(b, !TRANSPOSE_B, WARP_N, &column);
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
#if !TRANSPOSE_A
        load_four(tile_a::at(a, row + m * 16 + lane % 16, k * 2 + lane / 16), to->a[m],
                  to->a[m] + 2);
#elif DTYPE >= 2
        load_four_turned(
            tile_a::at(a, k * 16 + lane / 16 * 8 + lane % 8, row / 8 + m * 2 + lane / 8 % 2),
            to->a[m], to->a[m] + 2);
#else
#pragma unroll
        for (int i = 0; i < 4; i++)
            to->a[m][i] = load_float<tile_a>(a, k * 8 + i / 2 * 4 + lane % 4,
                                             row + m * 16 + i % 2 * 8 + lane / 4);
#endif
    }
#pragma unroll
    for (int n = 0; n < COLUMNS; n += 2) {
#if TRANSPOSE_B
        load_four(tile_b::at(b, column + n * 8 + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2),
                  to->b[n], to->b[n + 1]);
#elif DTYPE >= 2
        load_four_turned(tile_b::at(b, k * 16 + lane % 16, column / 8 + n + lane / 16), to->b[n],
                         to->b[n + 1]);
#else
#pragma unroll
        for (int i = 0; i < 4; i++)
            to->b[n + i / 2][i % 2] = load_float<tile_b>(b, k * 8 + i % 2 * 4 + lane % 4,
                                                         column + (n + i / 2) * 8 + lane / 4);
#endif
    }
}

#if DTYPE < 2
/* Floats become tf32 where they are, and what that leaves of them is the rest. */
template <int N> __device__ __forceinline__ void split(u32 *x, u32 *rest) {
#pragma unroll
    for (int i = 0; i < N; i++) {
        float whole = __uint_as_float(x[i]);
        x[i] = round_tf32(whole);
#if DTYPE == 0
        rest[i] = round_tf32(whole - __uint_as_float(x[i]));
#endif
    }
}
#endif

__device__ __forceinline__ void multiply(float (*d)[COLUMNS][4], struct fragments *f) {
#if DTYPE < 2
    struct fragments rest;
#pragma unroll
    for (int m = 0; m < ROWS; m++)
        split<4>(f->a[m], rest.a[m]);
#pragma unroll
    for (int n = 0; n < COLUMNS; n++)
        split<2>(f->b[n], rest.b[n]);
#endif
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
#if DTYPE == 0 /* the small products first; that of both rests is below fp32's last digit */
            multiply_one(d[m][n], rest.a[m], f->b[n]);
            multiply_one(d[m][n], f->a[m], rest.b[n]);
#endif
            multiply_one(d[m][n], f->a[m], f->b[n]);
        }
}

#if DTYPE == 0
__device__ __forceinline__ void add_up(float (*sum)[COLUMNS][4], float (*part)[COLUMNS][4]) {
#pragma unroll
    for (int m = 0; m < ROWS; m++)
#pragma unroll
        for (int n = 0; n < COLUMNS; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[m][n][i] += part[m][n][i];
                part[m][n][i] = 0.0f;
            }
}
#endif

/* --- the end --- */

/*
 * The exact GELU, x/2 · erfc(−x/√2). In bf16 and fp16 erfc has a relative error of 1e-6, from W. H.
 * Press et al., Numerical Recipes (erfcc), a third of what erfcf costs; that counts, since the
 * matrix unit waits meanwhile.
 */
__device__ __forceinline__ float erfc_of(float x) {
#if DTYPE >= 2
    float z = fabsf(x), t = __fdividef(1.0f, fmaf(0.5f, z, 1.0f));
    float y = 0.17087277f;
    y = fmaf(y, t, -0.82215223f);
    y = fmaf(y, t, 1.48851587f);
    y = fmaf(y, t, -1.13520398f);
    y = fmaf(y, t, 0.27886807f);
    y = fmaf(y, t, -0.18628806f);
    y = fmaf(y, t, 0.09678418f);
    y = fmaf(y, t, 0.37409196f);
    y = fmaf(y, t, 1.00002368f);
    y = t * __expf(fmaf(y, t, fmaf(-z, z, -1.26551223f)));
    return x >= 0.0f ? y : 2.0f - y;
#else
    return erfcf(x);
#endif
}

__device__ __forceinline__ float gelu_of(float x) {
    float share = erfc_of(-x * 0.70710678118654752f);
    return share == 0.0f ? 0.0f : 0.5f * x * share; /* at −∞ the limit */
}

struct output {
    const element *bias, *x;
    element *out;
    int m, n;
};

/* What may follow a sum: a bias, the GELU, a summand. */
__device__ __forceinline__ element finish(float sum, element bias, element x) {
#if EPILOGUE & 1
    sum += to_float(bias);
#endif
#if EPILOGUE & 2
    sum = gelu_of(sum);
#endif
#if EPILOGUE & 4
    sum += to_float(x);
#endif
    return from_float(sum);
}

/* The first `there` elements of a piece. */
__device__ __forceinline__ void take(union chunk *chunk, const element *from, bool whole,
                                     int there) {
    if (whole)
        chunk->bits = *(const uint4 *)from;
    else
#pragma unroll
        for (int i = 0; i < PER_16_BYTES; i++)
            chunk->items[i] = i < there ? from[i] : (element)0;
}

#define SHELF                                                                                      \
    (WARP_N + 8) /* floats of a row that waits to be stored; 8: pairs meet no bank twice */

/* The first `there` of a piece's sums, which stand in the output from `row`, `column` on. */
__device__ __forceinline__ void store_piece(const struct output *to, const float *sums, int row,
                                            int column, int there) {
    s64 at = (s64)row * to->n + column;
    union chunk chunk, bias = {{0, 0, 0, 0}}, x = {{0, 0, 0, 0}};
#if EPILOGUE & 1
    take(&bias, to->bias + column, VECTOR && aligned(to->bias), there);
#endif
#if EPILOGUE & 4
    take(&x, to->x + at, VECTOR, there);
#endif
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        chunk.items[i] = finish(sums[i], bias.items[i], x.items[i]);
#if VECTOR
    *(uint4 *)(to->out + at) = chunk.bits;
#else
#pragma unroll
    for (int i = 0; i < PER_16_BYTES; i++)
        if (i < there)
            to->out[at + i] = chunk.items[i];
#endif
}

/* 16 rows of a warp at a time through shared memory of its own, so that 16 bytes are stored at
 * once. */
__device__ __forceinline__ void store(const struct output *to, float (*d)[COLUMNS][4], float *shelf,
                                      int row, int column) {
    int lane = threadIdx.x % 32;
    constexpr int pieces = WARP_N / PER_16_BYTES;
#pragma unroll
    for (int m = 0; m < ROWS; m++) {
#pragma unroll
        for (int n = 0; n < COLUMNS; n++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(float2 *)&shelf[(half * 8 + lane / 4) * SHELF + n * 8 + lane % 4 * 2] =
                    make_float2(d[m][n][2 * half], d[m][n][2 * half + 1]);
        __syncwarp();
#pragma unroll 1
        for (int i = lane; i < 16 * pieces; i += 32) {
            int down = i / pieces, across = i % pieces * PER_16_BYTES;
            int there = row + m * 16 + down < to->m ? to->n - column - across : 0;
            if (there > 0)
                store_piece(to, shelf + down * SHELF + across, row + m * 16 + down, column + across,
                            there);
        }
        __syncwarp();
    }
}

/* --- a block --- */

struct corner { /* where the block's part of the output begins */
    int row, column;
};

__device__ __forceinline__ struct corner corner_of(int m, int n) {
    int rows = (m + BLOCK_M - 1) / BLOCK_M, columns = (n + BLOCK_N - 1) / BLOCK_N;
    int group = (int)blockIdx.x / (TOGETHER * columns);
    int within = (int)blockIdx.x - group * TOGETHER * columns;
    int here = rows - group * TOGETHER < TOGETHER ? rows - group * TOGETHER : TOGETHER;
    struct corner corner = {(group * TOGETHER + within % here) * BLOCK_M, within / here * BLOCK_N};
    return corner;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_mma(const element *a, const element *b, const element *bias, const element *x,
             element *out, int m, int n, int k) {
    extern __shared__ __align__(128) u8 memory[];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    int warp = threadIdx.x / 32;
    int row = warp % WARPS_M * WARP_M, column = warp / WARPS_M * WARP_N;
    struct corner corner = corner_of(m, n);
    int tiles = (k + BLOCK_K - 1) / BLOCK_K;
    s64 stride_a = TRANSPOSE_A ? m : k, stride_b = TRANSPOSE_B ? k : n;
    s64 step_a = TRANSPOSE_A ? BLOCK_K * stride_a : BLOCK_K;
    s64 step_b = TRANSPOSE_B ? BLOCK_K : BLOCK_K * stride_b;
    int left_m = m - corner.row, left_n = n - corner.column;
    a += TRANSPOSE_A ? (s64)corner.row : corner.row * stride_a;
    b += TRANSPOSE_B ? corner.column * stride_b : (s64)corner.column;

    auto fetch_tile = [&](int tile, int slot) {
        u32 to = base + (u32)slot * STAGE_BYTES;
        int left = k - tile * BLOCK_K;
        fetch<tile_a>(to, a + tile * step_a, stride_a, TRANSPOSE_A ? left : left_m,
                      TRANSPOSE_A ? left_m : left);
        fetch<tile_b>(to + tile_a::bytes, b + tile * step_b, stride_b, TRANSPOSE_B ? left_n : left,
                      TRANSPOSE_B ? left : left_n);
    };
    auto load_step = [&](struct fragments *to, int slot, int step) {
        u32 from = base + (u32)slot * STAGE_BYTES;
        load(to, from, from + tile_a::bytes, row, column, step);
    };

    wait_for_previous();
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < tiles)
            fetch_tile(i, i);
        commit();
    }
    float d[ROWS][COLUMNS][4] = {};
#if DTYPE == 0
    /* the matrix unit cuts its sums off instead of rounding them: so that this doesn't add up, a
     * tile's products are gathered beside the sums */
    float part[ROWS][COLUMNS][4] = {};
#else
#define part d
#endif
    struct fragments f[2];
    int slot = 0;
    await<STAGES - 2>();
    load_step(&f[0], 0, 0);
    for (int tile = 0; tile < tiles; tile++) {
        int next = slot + 1 == STAGES ? 0 : slot + 1;
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            if (step == STEPS - 1) {
                await<STAGES -
                      2>(); /* the next tile is there, and nobody uses the last one's slot */
                load_step(&f[(step + 1) % 2], next, 0);
            } else {
                load_step(&f[(step + 1) % 2], slot, step + 1);
            }
            if (step == 0) {
                if (tile + STAGES - 1 < tiles)
                    fetch_tile(tile + STAGES - 1, slot == 0 ? STAGES - 1 : slot - 1);
                commit();
            }
            multiply(part, &f[step % 2]);
        }
#if DTYPE == 0
        add_up(d, part);
#endif
        slot = next;
    }
    await<0>(); /* stages become shelves */
    struct output to = {bias, x, out, m, n};
    store(&to, d, (float *)memory + warp * 16 * SHELF, corner.row + row, corner.column + column);
}
#endif
