/*
 * mlp_lines.cuh: how matrices lie in shared memory, and products of them by a warp: 16 x 16 of a
 * product at a time. A line has a multiple of 16 numbers and 8 more, and lines change places within
 * eight: so what a warp reads at once is on different banks, along and across.
 */
#ifndef MLP_LINES_CUH
#define MLP_LINES_CUH

#include "mlp_model.cuh"
#include "mlp_products.cuh"

#ifdef MAKE_mlp_rows

__device__ constexpr int pitch_of(int columns) {
    return (columns + 7) / 16 * 16 + 8;
}

/* Neighbouring lines are two places apart. */
__device__ __forceinline__ int line_of(int line) {
    return (line & ~3) | (line & 1) << 1 | (line >> 1 & 1);
}

constexpr int STEPS_AHEAD = 4; /* that are unrolled: more is more code, which has to come too */

/* --- products of lines in shared memory --- */

/* sum += 16 lines of `a` times 16 lines of `b` along LENGTH numbers, which are of any count in
 * PITCH_B. */
/* Two neighbours, wherever they lie. */
template <int PITCH> __device__ __forceinline__ void read_two(float to[2], const float *from) {
    if (PITCH % 2 == 0) {
        float2 two = *(const float2 *)from;
        to[0] = two.x, to[1] = two.y;
    } else
        to[0] = from[0], to[1] = from[1];
}

template <int LENGTH, int PITCH_A, int PITCH_B>
__device__ __forceinline__ void add_first(sums<1, 2> &sum, const float *a, const float *b) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll STEPS_AHEAD
    for (int k = 0; k < LENGTH; k += 16) {
        operands<1, 2> o;
#pragma unroll
        for (int i = 0; i < 4; i++) { /* line 8 * (i / 2), numbers 8 * (i % 2) + 2t on */
            int at = k + i % 2 * 8 + 2 * t;
            read_two<PITCH_A>(o.a[i / 2] + i % 2 * 2, a + (line_of(g) + i / 2 * 8) * PITCH_A + at);
            read_two<PITCH_B>(o.b[i / 2] + i % 2 * 2, b + (g + i / 2 * 8) * PITCH_B + at);
        }
        multiply(sum, o);
    }
}

__device__ __forceinline__ void read_four(float to[4], const float *from) {
    float4 four = *(const float4 *)from;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

template <int LENGTH, int PITCH_A, int PITCH_B>
__device__ __forceinline__ void add_along(sums<1, 2> &sum, const float *a, const float *b) {
    int lane = threadIdx.x % 32, line = line_of(lane / 4), t = lane % 4;
#pragma unroll STEPS_AHEAD
    for (int k = 0; k < LENGTH; k += 16) {
        operands<1, 2> o;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            read_four(o.a[i], a + (line + 8 * i) * PITCH_A + k + 4 * t);
            read_four(o.b[i], b + (line + 8 * i) * PITCH_B + k + 4 * t);
        }
        multiply(sum, o);
    }
}

/* Four numbers turned by t: the first of them is number t. */
__device__ __forceinline__ void turn(float v[4], int t) {
    float a0 = t & 1 ? v[1] : v[0], a1 = t & 1 ? v[2] : v[1];
    float a2 = t & 1 ? v[3] : v[2], a3 = t & 1 ? v[0] : v[3];
    v[0] = t & 2 ? a2 : a0, v[1] = t & 2 ? a3 : a1;
    v[2] = t & 2 ? a0 : a2, v[3] = t & 2 ? a1 : a3;
}

/* A thread takes its four lines of `b` in an order that starts at t, since they would all lie on
 * the same banks; so must it the numbers of `a`. */
template <int LENGTH, int PITCH_A, int PITCH_B>
__device__ __forceinline__ void add_across(sums<1, 2> &sum, const float *a, const float *b) {
    int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const float *line[4];
#pragma unroll
    for (int j = 0; j < 4; j++)
        line[j] = b + line_of(4 * t + (j + t & 3)) * PITCH_B + 2 * g;
#pragma unroll STEPS_AHEAD
    for (int k = 0; k < LENGTH; k += 16) {
        operands<1, 2> o;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            read_four(o.a[i], a + (line_of(g) + 8 * i) * PITCH_A + k + 4 * t);
            turn(o.a[i], t);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float2 two = *(const float2 *)(line[j] + k * PITCH_B);
            o.b[0][j] = two.x, o.b[1][j] = two.y;
        }
        multiply(sum, o);
    }
}

#endif

#endif
