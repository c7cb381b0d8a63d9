/*
 * attention.cu: softmax(scale · q·kᵀ)·v for each image and head. qkv is [images · tokens, 3 · heads
 * · w], a row holds all q, then all k, then all v, head by head; out is [images · tokens, heads ·
 * w].
 *
 * For w = 64 a block does 64 queries of one image and head, 16 for each of its four warps, and
 * walks over the keys in tiles with a running maximum and sum, so that scores never leave
 * registers:
 *
 *     bf16, fp16   mma.m16n8k16, keys and values through two stages of cp.async
 *     tf32         mma.m16n8k8
 *     fp32         multiply-adds, 4 × 4 scores a thread
 *
 * It wants qkv and out at multiples of 16 bytes and scale > 0. Queries and keys go in groups of 16:
 * 197 tokens are 208, not 256.
 *
 * attention_any does any width, alignment and scale, a query for each block, to be right rather
 * than fast.
 *
 *     macros: STAGES, how many tiles of keys and values are on their way or in use (bf16, fp16; 1
 *     where
 *             tokens ≤ 64, else 2); attention_any none
 *     grid: (⌈tokens / 64⌉, heads, images) blocks of 128 threads; attention_any (tokens, heads,
 *     images) with tokens + w floats of shared memory, each rounded up to fours: the compiler reads
 *     a loop's last few at once, also where fewer are left
 *
 * On Hopper flash_attention_hopper.cu takes over in bf16 and fp16 from 65 tokens on: a whole ViT is
 * 7 % faster by that. What bounds this one wasn't measured, and it has no row in bench/results.
 */
#include "common.cuh"

#define WIDTH   64
#define QUERIES 64
#define LOWEST  __int_as_float(0xff800000)
#define LOG2E   1.4426950408889634f

#ifdef MAKE_attention
/*
 * One tile's scores into probabilities, with what was gathered before scaled to the new maximum.
 * Each thread has two rows: s[n][0..1] of row 0, s[n][2..3] of row 1; o likewise. `factor` = scale
 * · log2 e.
 */
template <int TILES>
__device__ __forceinline__ void soften(float (*s)[4], float (*o)[4], float *most, float *sum,
                                       float factor) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = most[half];
#pragma unroll
        for (int n = 0; n < TILES; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = quad_max(top);
        float shrink = exp2_fast((most[half] - top) * factor), add = 0.0f;
        most[half] = top;
#pragma unroll
        for (int n = 0; n < TILES; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float p = exp2_fast((s[n][2 * half + i] - top) * factor);
                s[n][2 * half + i] = p;
                add += p;
            }
        sum[half] = sum[half] * shrink + add;
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n++) {
            o[n][2 * half] *= shrink;
            o[n][2 * half + 1] *= shrink;
        }
    }
}

/* Keys beyond the last one don't count. The tile's first key is `first`. */
template <int TILES>
__device__ __forceinline__ void mask(float (*s)[4], int first, int tokens, int lane) {
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (first + n * 8 + lane % 4 * 2 + i % 2 >= tokens)
                s[n][i] = LOWEST;
}

#if DTYPE >= 2
#define KEYS 64

/* 64 rows of 128 bytes; the 16-byte pieces of a row are swapped by its number, so that ldmatrix
 * meets no bank twice. */
__device__ __forceinline__ u32 at(u32 tile, int row, int piece) {
    return tile + (u32)(row * 128 + ((piece ^ (row & 7)) << 4));
}

__device__ __forceinline__ void fetch_tile(u32 tile, const element *from, s64 stride, int rows) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int piece = i * 128 + (int)threadIdx.x, row = piece / 8, part = piece % 8;
        u32 bytes = row < rows ? 16u : 0u; /* the rest is filled with zeros */
        const element *source = from + (row < rows ? row : 0) * stride + part * 8;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at(tile, row, part)),
                     "l"(source), "r"(bytes));
    }
}

__device__ __forceinline__ void load_four(u32 address, u32 *r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_four_turned(u32 address, u32 *r) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void multiply(float *d, const u32 *a, const u32 *b) {
#if DTYPE == 2
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
#endif
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* A warp's 16 queries meet the keys of a tile, the first of which is number `start`. The values lie
 * behind the keys. */
__device__ __forceinline__ void attend(u32 tile, int start, int tokens, float factor, int lane,
                                       u32 (*a)[4], float (*o)[4], float *most, float *sum) {
    float s[KEYS / 8][4] = {};
#pragma unroll
    for (int n = 0; n < KEYS / 16; n++)
        if (start + n * 16 < tokens)
#pragma unroll
            for (int d = 0; d < WIDTH / 16; d++) {
                u32 b[4];
                load_four(at(tile, n * 16 + lane / 16 * 8 + lane % 8, d * 2 + lane / 8 % 2), b);
                multiply(s[2 * n], a[d], b);
                multiply(s[2 * n + 1], a[d], b + 2);
            }
    if (start + KEYS > tokens)
        mask<KEYS / 8>(s, start, tokens, lane);
    soften<KEYS / 8>(s, o, most, sum, factor);
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++)
        if (start + j * 16 < tokens) {
            u32 p[4] = {pack(s[2 * j][0], s[2 * j][1]), pack(s[2 * j][2], s[2 * j][3]),
                        pack(s[2 * j + 1][0], s[2 * j + 1][1]),
                        pack(s[2 * j + 1][2], s[2 * j + 1][3])};
#pragma unroll
            for (int n = 0; n < WIDTH / 16; n++) {
                u32 b[4];
                load_four_turned(at(tile + KEYS * 128, j * 16 + lane % 16, n * 2 + lane / 16), b);
                multiply(o[2 * n], p, b);
                multiply(o[2 * n + 1], p, b + 2);
            }
        }
}

extern "C" __global__ void __launch_bounds__(128)
    attention(const element *qkv, element *out, int tokens, int heads, float scale) {
    __shared__ __align__(128) u8 memory[(1 + 2 * STAGES) * QUERIES * 128];
    u32 base = (u32)__cvta_generic_to_shared(memory);
    const u32 tile_bytes = KEYS * 128;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * QUERIES;
    s64 stride = 3 * (s64)heads * WIDTH, row0 = (s64)blockIdx.z * tokens;
    const element *q = qkv + (row0 + first) * stride + blockIdx.y * WIDTH;
    const element *k = qkv + row0 * stride + (heads + blockIdx.y) * WIDTH;
    const element *v = k + (s64)heads * WIDTH;
    int tiles = (tokens + KEYS - 1) / KEYS;
    bool idle = first + warp * 16 >= tokens; /* has no query, only helps to fetch */

    wait_for_previous();
    fetch_tile(base, q, stride, tokens - first);
    fetch_tile(base + tile_bytes, k, stride, tokens);
    fetch_tile(base + 2 * tile_bytes, v, stride, tokens);
    asm volatile("cp.async.commit_group;");

    float o[WIDTH / 8][4] = {}, most[2] = {LOWEST, LOWEST}, sum[2] = {0.0f, 0.0f};
    u32 a[WIDTH / 16][4];
    for (int tile = 0; tile < tiles; tile++) {
        u32 here = base + (u32)(1 + tile % STAGES * 2) * tile_bytes;
        if (STAGES > 1 && tile + 1 < tiles) {
            int next = (tile + 1) * KEYS;
            u32 there = base + (u32)(1 + (tile + 1) % STAGES * 2) * tile_bytes;
            fetch_tile(there, k + next * stride, stride, tokens - next);
            fetch_tile(there + tile_bytes, v + next * stride, stride, tokens - next);
            asm volatile("cp.async.commit_group;");
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        if (tile == 0)
#pragma unroll
            for (int d = 0; d < WIDTH / 16; d++)
                load_four(at(base, warp * 16 + lane % 16, d * 2 + lane / 16), a[d]);
        if (!idle)
            attend(here, tile * KEYS, tokens, scale * LOG2E, lane, a, o, most, sum);
        __syncthreads();
    }
    if (idle)
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = first + warp * 16 + half * 8 + lane / 4;
        float share = 1.0f / quad_sum(sum[half]);
        element *to = out + (row0 + query) * heads * WIDTH + blockIdx.y * WIDTH + lane % 4 * 2;
        if (query < tokens)
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++)
                *(u32 *)(to + n * 8) = pack(o[n][2 * half] * share, o[n][2 * half + 1] * share);
    }
}

#elif DTYPE == 1
#define KEYS   64
#define STRIDE 68 /* floats between rows: the lanes of a fragment then meet 32 different banks */

__device__ __forceinline__ u32 round_tf32(float x) {
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ void fetch_tile(u32 (*tile)[STRIDE], const float *from, s64 stride,
                                           int rows) {
#pragma unroll
    for (int i = 0; i < KEYS * WIDTH / 4 / 128; i++) {
        int piece = i * 128 + (int)threadIdx.x, row = piece / 16, part = piece % 16 * 4;
        float4 x = row < rows ? *(const float4 *)(from + row * stride + part)
                              : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        *(uint4 *)&tile[row][part] =
            make_uint4(round_tf32(x.x), round_tf32(x.y), round_tf32(x.z), round_tf32(x.w));
    }
}

__device__ __forceinline__ void multiply(float *d, const u32 *a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(128)
    attention(const float *qkv, float *out, int tokens, int heads, float scale) {
    __shared__ __align__(16) u32 keys[KEYS][STRIDE], values[KEYS][STRIDE];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    int first = blockIdx.x * QUERIES;
    s64 stride = 3 * (s64)heads * WIDTH, row0 = (s64)blockIdx.z * tokens;
    const float *k = qkv + row0 * stride + (heads + blockIdx.y) * WIDTH;
    const float *v = k + (s64)heads * WIDTH;
    bool idle = first + warp * 16 >= tokens; /* has no query, only helps to fetch */

    wait_for_previous();
    u32 a[WIDTH / 8][4];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = first + warp * 16 + half * 8 + g;
        const float *q = qkv + (row0 + (query < tokens ? query : 0)) * stride + blockIdx.y * WIDTH;
#pragma unroll
        for (int d = 0; d < WIDTH / 8; d++) {
            a[d][half] = round_tf32(q[d * 8 + t]);
            a[d][2 + half] = round_tf32(q[d * 8 + t + 4]);
        }
    }
    float o[WIDTH / 8][4] = {}, most[2] = {LOWEST, LOWEST}, sum[2] = {0.0f, 0.0f};
    for (int tile = 0; tile * KEYS < tokens; tile++) {
        __syncthreads();
        fetch_tile(keys, k + tile * KEYS * stride, stride, tokens - tile * KEYS);
        fetch_tile(values, v + tile * KEYS * stride, stride, tokens - tile * KEYS);
        __syncthreads();
        if (idle)
            continue;
        int start = tile * KEYS;
        float s[KEYS / 8][4] = {};
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
            if (start + n * 8 < tokens)
#pragma unroll
                for (int d = 0; d < WIDTH / 8; d++)
                    multiply(s[n], a[d], keys[n * 8 + g][d * 8 + t],
                             keys[n * 8 + g][d * 8 + t + 4]);
        if (start + KEYS > tokens)
            mask<KEYS / 8>(s, start, tokens, lane);
        soften<KEYS / 8>(s, o, most, sum, scale * LOG2E);
        /* a thread holds the scores of keys 2t and 2t + 1, the unit wants t and t + 4: the order of
         * the keys in the sum is free, so the values are taken in the thread's order */
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
            if (start + j * 8 < tokens) {
                u32 p[4] = {round_tf32(s[j][0]), round_tf32(s[j][2]), round_tf32(s[j][1]),
                            round_tf32(s[j][3])};
#pragma unroll
                for (int n = 0; n < WIDTH / 8; n++)
                    multiply(o[n], p, values[j * 8 + 2 * t][n * 8 + g],
                             values[j * 8 + 2 * t + 1][n * 8 + g]);
            }
    }
    if (idle)
        return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int query = first + warp * 16 + half * 8 + g;
        float share = 1.0f / quad_sum(sum[half]);
        float *to = out + (row0 + query) * heads * WIDTH + blockIdx.y * WIDTH + t * 2;
        if (query < tokens)
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++)
                *(float2 *)(to + n * 8) =
                    make_float2(o[n][2 * half] * share, o[n][2 * half + 1] * share);
    }
}

#else
#define KEYS 32

/* Thread (x, y) of 8 × 16 has queries 4y … 4y + 3, of a tile's scores columns x, x + 8, …, and of
 * the output likewise. */
extern "C" __global__ void __launch_bounds__(128)
    attention(const float *qkv, float *out, int tokens, int heads, float scale) {
    __shared__ float queries[QUERIES][WIDTH + 1], keys[KEYS][WIDTH + 1], values[KEYS][WIDTH];
    __shared__ float chances[QUERIES][KEYS + 1];
    int x = threadIdx.x % 8, y = threadIdx.x / 8;
    int first = blockIdx.x * QUERIES;
    s64 stride = 3 * (s64)heads * WIDTH, row0 = (s64)blockIdx.z * tokens;
    const float *q = qkv + (row0 + first) * stride + blockIdx.y * WIDTH;
    const float *k = qkv + row0 * stride + (heads + blockIdx.y) * WIDTH;
    const float *v = k + (s64)heads * WIDTH;
    wait_for_previous();
    for (int i = threadIdx.x; i < QUERIES * WIDTH; i += 128)
        queries[i / WIDTH][i % WIDTH] =
            first + i / WIDTH < tokens ? q[i / WIDTH * stride + i % WIDTH] * scale : 0.0f;
    float o[4][8] = {}, most[4], sum[4];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        most[r] = LOWEST;
        sum[r] = 0.0f;
    }
    for (int start = 0; start < tokens; start += KEYS) {
        __syncthreads();
        for (int i = threadIdx.x; i < KEYS * WIDTH; i += 128) {
            int row = i / WIDTH, column = i % WIDTH;
            bool there = start + row < tokens;
            keys[row][column] = there ? k[(start + row) * stride + column] : 0.0f;
            values[row][column] = there ? v[(start + row) * stride + column] : 0.0f;
        }
        __syncthreads();
        float s[4][4] = {};
#pragma unroll 8
        for (int d = 0; d < WIDTH; d++)
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++)
                    s[r][c] = fmaf(queries[4 * y + r][d], keys[x + 8 * c][d], s[r][c]);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float top = most[r];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                if (start + x + 8 * c >= tokens)
                    s[r][c] = LOWEST;
                top = fmaxf(top, s[r][c]);
            }
#pragma unroll
            for (int step = 1; step < 8; step *= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
            float shrink = expf(most[r] - top), add = 0.0f;
            most[r] = top;
#pragma unroll
            for (int c = 0; c < 4; c++) {
                float p = expf(s[r][c] - top);
                chances[4 * y + r][x + 8 * c] = p;
                add += p;
            }
            sum[r] = sum[r] * shrink + add;
#pragma unroll
            for (int c = 0; c < 8; c++)
                o[r][c] *= shrink;
        }
        __syncwarp();
#pragma unroll 4
        for (int key = 0; key < KEYS; key++)
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 8; c++)
                    o[r][c] = fmaf(chances[4 * y + r][key], values[key][x + 8 * c], o[r][c]);
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float total = sum[r];
#pragma unroll
        for (int step = 1; step < 8; step *= 2)
            total += __shfl_xor_sync(0xffffffffu, total, step);
        int query = first + 4 * y + r;
        if (query < tokens)
#pragma unroll
            for (int c = 0; c < 8; c++)
                out[(row0 + query) * heads * WIDTH + blockIdx.y * WIDTH + x + 8 * c] =
                    o[r][c] / total;
    }
}
#endif
#endif

#ifdef MAKE_attention_any
extern "C" __global__ void __launch_bounds__(128)
    attention_any(const element *qkv, element *out, int tokens, int heads, float scale, int width) {
    extern __shared__ float scores[];
    __shared__ float shared[32];
    float *query = scores + (tokens + 3) / 4 * 4;
    s64 stride = 3 * (s64)heads * width, row0 = (s64)blockIdx.z * tokens;
    const element *q = qkv + (row0 + blockIdx.x) * stride + blockIdx.y * width;
    const element *k = qkv + row0 * stride + (heads + blockIdx.y) * width;
    const element *v = k + (s64)heads * width;
    wait_for_previous();
    for (int w = threadIdx.x; w < width; w += 128)
        query[w] = to_float(q[w]) * scale;
    __syncthreads();
    float most = LOWEST, sum = 0.0f;
    for (int t = threadIdx.x; t < tokens; t += 128) {
        float s = 0.0f;
        for (int w = 0; w < width; w++)
            s = fmaf(query[w], to_float(k[t * stride + w]), s);
        scores[t] = s;
        most = fmaxf(most, s);
    }
    most = row_max<128>(most, shared);
    for (int t = threadIdx.x; t < tokens; t += 128) {
        scores[t] = expf(scores[t] - most);
        sum += scores[t];
    }
    sum = row_sum<128>(sum, shared);
    __syncthreads();
    for (int w = threadIdx.x; w < width; w += 128) {
        float o = 0.0f;
        for (int t = 0; t < tokens; t++)
            o = fmaf(scores[t], to_float(v[t * stride + w]), o);
        out[((row0 + blockIdx.x) * heads + blockIdx.y) * width + w] = from_float(o / sum);
    }
}
#endif
