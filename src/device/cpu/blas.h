/*
 * blas.h: one thread's matrix product, by OpenBLAS, callable from any number of threads at once.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct cpu_matrix {
    const float *data;
    int64_t stride; /* elements from a stored row to the next */
    bool transposed;
};

/* c[m,n] = alpha·op(a)·op(b) + beta·c; row-major. beta 0: c isn't read. */
void cpu_blas_gemm(int64_t m, int64_t n, int64_t k, float alpha, struct cpu_matrix a,
                   struct cpu_matrix b, float beta, float *c, int64_t c_stride);

/* LAB_ERR_UNSUPPORTED for an OpenBLAS that can't be used here: one with threads of its own. */
int cpu_blas_check(struct lab_err *err);

/*
 * The family of kernels that OpenBLAS uses: "SkylakeX". The first call sees to it that the CPU's
 * vector units are used, and must come before the first product.
 */
const char *cpu_blas_core(void);

/* The family that this CPU could run where it would do better than `core`; NULL = it wouldn't. */
const char *cpu_blas_better_core(const char *core);

/* Whether OpenBLAS packs into the buffers of blas.c; else calls wait for each other. */
bool cpu_blas_is_concurrent(void);
