/*
 * kernels.h: what the files of kernels share. A kernel cuts its op into units that any thread may do
 * in any order; which part of the output a unit is follows from the launch and the number of units
 * alone.
 */
#ifndef LAB_DEVICE_CPU_KERNELS_H
#define LAB_DEVICE_CPU_KERNELS_H

#include "device/cpu/cpu.h"

extern const struct cpu_kernel cpu_kernel_gemm; /* and all that is fused to it */
extern const struct cpu_kernel cpu_kernel_attention;

/* Where part `index` of `parts` begins; a multiple of `step`, at most `total`. */
static inline int64_t cpu_cut(int64_t total, int64_t parts, int64_t index, int64_t step) {
    int64_t steps = (total + step - 1) / step;
    int64_t begin = steps * index / parts * step;
    return begin < total ? begin : total;
}

static inline int64_t cpu_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t cpu_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
