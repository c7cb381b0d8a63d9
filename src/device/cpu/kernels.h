/*
 * kernels.h: what the files of kernels share. A kernel cuts its op into units that any thread may
 * do in any order; which part of the output a unit is follows from the launch and the number of
 * units alone.
 */
#pragma once

#include "device/cpu/cpu.h"
#include "device/tunable.h"

extern const struct cpu_kernel cpu_kernel_gemm; /* and all that is fused to it */
extern const struct cpu_kernel cpu_kernel_attention;
extern const struct cpu_kernel cpu_kernel_flash, cpu_kernel_flash_backward;
extern const struct cpu_kernel cpu_kernel_softmax, cpu_kernel_cross_entropy;
extern const struct cpu_kernel cpu_kernel_adamw, cpu_kernel_clip;
extern const struct cpu_kernel cpu_kernel_embed_tokens, cpu_kernel_embed_tokens_backward;
extern const struct cpu_kernel cpu_kernel_column_sum, cpu_kernel_accumulate;
extern const struct cpu_kernel cpu_kernel_residual_layer_norm, cpu_kernel_layer_norm_backward;
extern const struct cpu_kernel cpu_kernel_mlp; /* forward, backward, both, and with the update */
extern const struct cpu_kernel cpu_kernel_adam;

/* The ways of those that have several; their defaults and rules need no place (NULL). */
extern const struct lab_tunable cpu_tunable_gemm, cpu_tunable_flash, cpu_tunable_softmax;

/* What the launch carries, or the default for it. */
static inline struct lab_tuning cpu_tuning_of(const struct lab_tunable *tunable,
                                              const struct lab_launch *launch) {
    struct lab_tuning tuning = launch->tuning;
    if (!tuning.count)
        tunable->fallback(NULL, launch, &tuning);
    return tuning;
}

/* A row's mean and 1/√(variance + epsilon). */
void cpu_row_stats(const float *x, int64_t columns, double epsilon, float stats[2]);

/* Units for so many elements in so many pieces: a few for each thread that is worth waking. */
int64_t cpu_units_of(int64_t elements, int64_t pieces, int threads);

/* Where part `index` of `parts` begins; a multiple of `step`, at most `total`. */
static inline int64_t cpu_cut(int64_t total, int64_t parts, int64_t index, int64_t step) {
    int64_t steps = (total + step - 1) / step;
    int64_t begin = steps * index / parts * step;
    return begin < total ? begin : total;
}

struct cpu_grid {
    int64_t down, across;
};

/*
 * Of all grids that cut an m·n product into that many tiles the one that packs least: `down` times
 * all of the right operand, `across` times all of the left.
 */
struct cpu_grid cpu_grid_of(int64_t m, int64_t n, int64_t tiles);

static inline int64_t cpu_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t cpu_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
