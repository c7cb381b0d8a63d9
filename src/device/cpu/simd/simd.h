/*
 * simd.h: the loops that the cpu backend's kernels are made of, as a table for each instruction
 * set.
 *
 * The files of this folder are compiled once for every instruction set, with LAB_SIMD naming it; at
 * run time the device takes the best table that its CPU can execute. "over" as in device/op.h: the
 * output may be that very input.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cpu_dropout { /* of one row: device/mlp.h */
    uint32_t threshold;
    float scale;
    uint64_t seed;
    uint32_t row, layer, step; /* the counter's words 1 to 3 */
};

struct cpu_adam {
    float rate, keep1, keep2, epsilon; /* keep: 1 − beta */
    const float *parameters, *m, *v;
    float *new_parameters, *new_m, *new_v;
};

struct cpu_simd {
    const char *name; /* for people: "AVX-512" */

    void (*fill)(float *out, float value, int64_t count);
    void (*add)(float *out, const float *a, const float *b, int64_t count); /* over a, b */
    void (*gelu)(float *out, const float *x, int64_t count);                /* over x */
    void (*gelu_tanh)(float *out, const float *x, int64_t count);           /* over x */
    void (*gelu_tanh_backward)(float *out, const float *x, const float *derivative,
                               int64_t count); /* over both */

    /* one row each; over x */
    void (*layer_norm)(float *out, const float *x, const float *gamma, const float *beta,
                       int64_t count, float epsilon);
    void (*softmax)(float *out, const float *x, int64_t count);

    /* --- softmax in steps, for rows that come or go in parts --- */

    /*
     * The next part of a row: out ← exp(x − top), top being the largest so far, this part included;
     * over x. `top` and `sum` go on from the parts before (−∞ and 0 at first), and `sum` counts for
     * the new top. Returns by how much earlier results must be multiplied: 1 where top stays.
     */
    float (*softmax_part)(float *out, const float *x, int64_t count, float *top, float *sum);
    /* the same of `top` and `sum` alone: nothing is written */
    void (*softmax_scan)(const float *x, int64_t count, float *top, float *sum);
    /* out ← factor·exp(x − top); past the caches where `streamed`; over x */
    void (*softmax_write)(float *out, const float *x, int64_t count, float top, float factor,
                          bool streamed);
    /* out ← factor·x; past the caches where `streamed`; over x */
    void (*scale)(float *out, const float *x, int64_t count, float factor, bool streamed);

    /* out[count·channels] ← `channels` planes of `count`, `stride` apart; the channel fastest */
    void (*interleave)(float *out, const float *planes, int64_t stride, int64_t channels,
                       int64_t count);

    /* --- training --- */

    /* x ← scale·x where it is positive and kept, else 0; columns [column, column + count) of a row,
     * `column` a multiple of LAB_MLP_LANES */
    void (*relu_dropout)(float *x, int64_t column, int64_t count,
                         const struct cpu_dropout *dropout);
    /* delta ← scale·delta where `output` isn't 0, else 0 */
    void (*relu_backward)(float *delta, const float *output, int64_t count, float scale);
    /* out ← x as a GPU's matrix units take it, to nearest: bf16, ties to even; or tf32, ties away
     * from zero; over x */
    void (*round)(float *out, const float *x, int64_t count, bool bf16);
    /* one update of `count` parameters; the new ones may be the old ones' memory */
    void (*adam)(const struct cpu_adam *adam, const float *gradient, int64_t count);

    /* multiply-adds on registers; returns the flops done. The sum, in and out, keeps them alive. */
    double (*multiply_add)(int64_t rounds, float *sum);
};

extern const struct cpu_simd cpu_simd_base;
extern const struct cpu_simd cpu_simd_avx2;   /* x86-64 only */
extern const struct cpu_simd cpu_simd_avx512; /* x86-64 only */

#ifdef LAB_SIMD

/* SIMD(gelu) is gelu_avx2 in the avx2 variant: the linker must not merge the variants. */
#define SIMD_JOIN_AGAIN(a, b) a##_##b
#define SIMD_JOIN(a, b)       SIMD_JOIN_AGAIN(a, b)
#define SIMD(name)            SIMD_JOIN(cpu_simd_##name, LAB_SIMD)

#define SIMD_FUNCTIONS(X)                                                                          \
    X(fill)                                                                                        \
    X(add)                                                                                         \
    X(gelu)                                                                                        \
    X(gelu_tanh)                                                                                   \
    X(gelu_tanh_backward)                                                                          \
    X(layer_norm)                                                                                  \
    X(softmax)                                                                                     \
    X(softmax_part)                                                                                \
    X(softmax_scan)                                                                                \
    X(softmax_write)                                                                               \
    X(scale) X(interleave) X(relu_dropout) X(relu_backward) X(round) X(adam) X(multiply_add)

#define SIMD_DECLARE(name) __typeof__(*((const struct cpu_simd *)0)->name) SIMD(name);
SIMD_FUNCTIONS(SIMD_DECLARE)
#undef SIMD_DECLARE

#endif
