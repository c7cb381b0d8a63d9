/* table.c: this variant's table. */
#include "device/cpu/simd/simd.h"

#if defined(__AVX512F__)
#define NAME "AVX-512"
#elif defined(__AVX2__)
#define NAME "AVX2"
#elif defined(__x86_64__)
#define NAME "SSE2"
#elif defined(__aarch64__)
#define NAME "NEON"
#else
#define NAME "portable C"
#endif

#define TABLE SIMD_JOIN(cpu_simd, LAB_SIMD)

const struct cpu_simd TABLE = {
    .name = NAME,
    .fill = SIMD(fill),
    .add = SIMD(add),
    .gelu = SIMD(gelu),
    .layer_norm = SIMD(layer_norm),
    .softmax = SIMD(softmax),
    .softmax_part = SIMD(softmax_part),
    .softmax_scan = SIMD(softmax_scan),
    .softmax_write = SIMD(softmax_write),
    .scale = SIMD(scale),
    .interleave = SIMD(interleave),
    .relu_dropout = SIMD(relu_dropout),
    .relu_backward = SIMD(relu_backward),
    .round = SIMD(round),
    .adam = SIMD(adam),
    .multiply_add = SIMD(multiply_add),
};
