/*
 * mlp_products.cuh: how a warp loads its part of a product's operands, however they lie, and
 * multiplies 16 of the inner dimension by the matrix units: in fp32 as three products in tf32,
 * right to fp32's digits. mlp.cu says how a product is cut.
 */
#ifndef MLP_PRODUCTS_CUH
#define MLP_PRODUCTS_CUH

#include "common.cuh"

/* --- operands --- */

/*
 * out[m, n] = sum over k of A and B. How they lie: along k, or across it. Thread (g, t) = lane (/
 * 4, % 4) of a warp holds numbers k = 4t ... 4t + 3 of 16 for its rows of A and its columns of B.
 */
struct product {
    const float *a, *b;
    int m, n, k;
    bool vector_a, vector_b; /* 16 bytes can be loaded at once: the base and each row begin there */
};

enum { ALONG, ACROSS };

template <int MT, int NT> struct operands { float a[2 * MT][4], b[NT][4]; };

/* Row i of the thread's 2*MT, of a tile; column j of its NT, at place `g` of 8. */
template <int LAY, int MT> __device__ __forceinline__ int row_place(int i, int g) {
    return LAY == ALONG ? 8 * i + g : 2 * MT * g + i;
}
template <int LAY, int NT> __device__ __forceinline__ int column_place(int j, int g) {
    return LAY == ALONG ? 8 * j + g : NT * g + j;
}

/* COUNT lines of a matrix whose k lie side by side. */
template <int COUNT>
__device__ __forceinline__ void load_along(float (*to)[4], const float *from, int first, int lines,
                                           int k, int length, bool vector) {
    const float *at = from + (s64)first * length + k;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        float4 four = {0, 0, 0, 0};
        bool there = first + 8 * i < lines;
        const float *p = at + (s64)i * 8 * length;
        if (vector) {
            if (there && k < length)
                four = *(const float4 *)p;
        } else {
            if (there && k < length)
                four.x = p[0];
            if (there && k + 1 < length)
                four.y = p[1];
            if (there && k + 2 < length)
                four.z = p[2];
            if (there && k + 3 < length)
                four.w = p[3];
        }
        to[i][0] = four.x, to[i][1] = four.y, to[i][2] = four.z, to[i][3] = four.w;
    }
}

/* COUNT neighbouring lines of a matrix of `lines` whose lines lie side by side. */
template <int COUNT>
__device__ __forceinline__ void load_across(float (*to)[4], const float *from, int first, int lines,
                                            int k, int length, bool vector) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const float *p = from + (s64)(k + j) * lines + first;
        bool there = k + j < length;
        if (COUNT == 4 && vector) {
            float4 four = {0, 0, 0, 0};
            if (there && first < lines)
                four = *(const float4 *)p;
            to[0][j] = four.x, to[1 % COUNT][j] = four.y;
            to[2 % COUNT][j] = four.z, to[3 % COUNT][j] = four.w;
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++) {
                to[i][j] = 0;
                if (there && first + i < lines)
                    to[i][j] = p[i];
            }
        }
    }
}

template <int LAY_A, int LAY_B, int MT, int NT>
__device__ __forceinline__ void load(operands<MT, NT> &o, const product &p, int row, int column,
                                     int k) {
    int lane = threadIdx.x % 32, g = lane / 4, at = k + lane % 4 * 4;
    if (LAY_A == ALONG)
        load_along<2 * MT>(o.a, p.a, row + g, p.m, at, p.k, p.vector_a);
    else
        load_across<2 * MT>(o.a, p.a, row + 2 * MT * g, p.m, at, p.k, p.vector_a);
    if (LAY_B == ALONG)
        load_along<NT>(o.b, p.b, column + g, p.n, at, p.k, p.vector_b);
    else
        load_across<NT>(o.b, p.b, column + NT * g, p.n, at, p.k, p.vector_b);
}

/* --- 16 of the inner dimension --- */

/* A thread's sums: [row block][column block][2 * (row or the one 8 places on) + neighbouring
 * column]. */
template <int MT, int NT> struct sums { float at[MT][NT][4]; };

#if DTYPE <= 1
__device__ __forceinline__ u32 tf32(float x) {
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

/* Numbers as tf32; in fp32 what that leaves of them is the rest, which the matrix unit cuts off to
 * its ten bits. */
template <int N>
__device__ __forceinline__ void split(u32 (*to)[2], u32 (*rest)[2], const float (*from)[4],
                                      int first) {
#pragma unroll
    for (int i = 0; i < 2 * N; i++) {
        float whole = from[i / 2][first + i % 2];
#if DTYPE == 0
        to[i / 2][i % 2] = __float_as_uint(whole) + 0x1000 & 0xffffe000u;
        rest[i / 2][i % 2] = __float_as_uint(whole - __uint_as_float(to[i / 2][i % 2]));
#else
        to[i / 2][i % 2] = tf32(whole);
#endif
    }
}

template <int MT, int NT>
__device__ __forceinline__ void multiply_all(sums<MT, NT> &c, const u32 (*a)[2],
                                             const u32 (*b)[2]) {
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            float *d = c.at[i][j];
            asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
                "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[2 * i][0]), "r"(a[2 * i + 1][0]), "r"(a[2 * i][1]), "r"(a[2 * i + 1][1]),
                  "r"(b[j][0]), "r"(b[j][1]));
        }
}

#if DTYPE == 0
/* The small products first; that of both rests is below fp32's last digit. The matrix unit cuts its
 * sums off instead of rounding them: so that this doesn't add up, 16 of the inner dimension are
 * gathered beside the sums. */
template <int MT, int NT>
__device__ __forceinline__ void multiply(sums<MT, NT> &c, const operands<MT, NT> &o) {
    sums<MT, NT> gathered = {};
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
        u32 a[2 * MT][2], b[NT][2], rest_a[2 * MT][2], rest_b[NT][2];
        split<2 * MT>(a, rest_a, o.a, half);
        split<NT>(b, rest_b, o.b, half);
        multiply_all(gathered, rest_a, b);
        multiply_all(gathered, a, rest_b);
        multiply_all(gathered, a, b);
    }
#pragma unroll
    for (int i = 0; i < MT * NT * 4; i++)
        c.at[i / (NT * 4)][i / 4 % NT][i % 4] += gathered.at[i / (NT * 4)][i / 4 % NT][i % 4];
}
#else
template <int MT, int NT>
__device__ __forceinline__ void multiply(sums<MT, NT> &c, const operands<MT, NT> &o) {
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
        u32 a[2 * MT][2], b[NT][2];
        split<2 * MT>(a, nullptr, o.a, half);
        split<NT>(b, nullptr, o.b, half);
        multiply_all(c, a, b);
    }
}
#endif
#else
__device__ __forceinline__ u32 pair(float low, float high) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

template <int MT, int NT>
__device__ __forceinline__ void multiply(sums<MT, NT> &c, const operands<MT, NT> &o) {
    u32 a[2 * MT][2], b[NT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
        a[i][0] = pair(o.a[i][0], o.a[i][1]), a[i][1] = pair(o.a[i][2], o.a[i][3]);
#pragma unroll
    for (int j = 0; j < NT; j++)
        b[j][0] = pair(o.b[j][0], o.b[j][1]), b[j][1] = pair(o.b[j][2], o.b[j][3]);
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            float *d = c.at[i][j];
            asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                : "r"(a[2 * i][0]), "r"(a[2 * i + 1][0]), "r"(a[2 * i][1]), "r"(a[2 * i + 1][1]),
                  "r"(b[j][0]), "r"(b[j][1]));
        }
}
#endif

#endif
