/*
 * plan_gemm_mma.c: products by mma.sync, in every dtype, for GPUs from 8.0 on: what is legal among
 * its tiles, and its call (kernels/gemm_mma.cu). The ways to fuse are those of the gemm ops.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/gemm.h"
#include "device/cuda/plan/plan_internal.h"

enum { BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N, PARAMETERS };

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"block_m", "output rows per block", LAB_CHOICES(32, 64, 128, 256)},
    {"block_n", "output columns per block", LAB_CHOICES(32, 64, 128, 256)},
    {"block_k", "step along k", LAB_CHOICES(16, 32, 64)},
    {"stages", "pipeline stages", LAB_CHOICES(2, 3, 4)},
    {"warps_m", "warps that share the rows", LAB_CHOICES(1, 2, 4)},
    {"warps_n", "warps that share the columns", LAB_CHOICES(1, 2, 4)},
};

#define LENGTH_MAX (1 << 30) /* the kernel counts rows, columns and blocks in 32 bits */

static int shared_bytes_of(const struct lab_launch *launch, const int32_t *values) {
    int tiles = values[STAGES] * values[BLOCK_K] * (values[BLOCK_M] + values[BLOCK_N]) *
                (int)lab_dtype_bytes(launch->out.dtype);
    int shelves = values[WARPS_M] * values[WARPS_N] * 16 * (values[BLOCK_N] / values[WARPS_N] + 8) *
                  (int)sizeof(float);
    return tiles > shelves ? tiles : shelves;
}

/* Sums that a thread can hold: fp32 needs registers for the second halves of its numbers. */
static int sums_max(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 64 : 128;
}

/* Of a warp's share: less makes it load more than it multiplies, more doesn't fit its registers. */
static bool is_side(int extent) {
    return extent == 32 || extent == 64;
}

static int mma_gemm_check(const struct lab_launch *launch, struct cuda_capacity capacity,
                          const struct lab_tuning *tuning, struct lab_err *err) {
    const int32_t *values = tuning->values;
    enum lab_dtype dtype = launch->out.dtype;
    int warps = values[WARPS_M] * values[WARPS_N], most = capacity.shared_bytes_max;
    int sums = values[BLOCK_M] * values[BLOCK_N] / (32 * warps);
    int bytes = shared_bytes_of(launch, values);
    if (warps < 2 || warps > 8)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "a block has 2, 4 or 8 warps, not %d", warps);
    if (!is_side(values[BLOCK_M] / values[WARPS_M]) || !is_side(values[BLOCK_N] / values[WARPS_N]))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "a warp has 32 or 64 rows and as many columns, not %d and %d",
                           values[BLOCK_M] / values[WARPS_M], values[BLOCK_N] / values[WARPS_N]);
    if (sums > sums_max(dtype))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "a thread would have %d sums, and %d fit in %s", sums, sums_max(dtype),
                           lab_dtype_name(dtype));
    if (lab_dtype_bytes(dtype) == 2 && values[BLOCK_K] < 32)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "block_k=%d: at least 32 in %s",
                           values[BLOCK_K], lab_dtype_name(dtype));
    if (bytes > most)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tiles take %d bytes of shared memory, a block here has %d", bytes,
                           most);
    return 0;
}

/*
 * What was fastest on an H200, as far as the smaller shared memory of other GPUs has room for two
 * blocks at once. Small outputs are cut small, so that more of the GPU has work.
 */
static struct lab_tuning mma_gemm_usual(const struct lab_launch *launch,
                                        struct cuda_capacity capacity) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    bool half = lab_dtype_bytes(launch->out.dtype) == 2;
    int32_t block_k = half ? 32 : 16, stages = capacity.shared_bytes_max >= 160 << 10 ? 4 : 3;
    if (quotient_up(s.m, 128) * quotient_up(s.n, 128) < capacity.sm_count)
        return (struct lab_tuning){PARAMETERS, {64, 64, block_k, 4, 2, 2}};
    if (launch->out.dtype == LAB_FP32)
        return (struct lab_tuning){PARAMETERS, {128, 64, 32, stages - 1, 4, 2}};
    if (half && capacity.shared_bytes_max >= 200 << 10)
        return (struct lab_tuning){PARAMETERS, {128, 128, 64, 3, 2, 2}};
    return (struct lab_tuning){PARAMETERS, {128, 128, block_k, stages, 2, 2}};
}

static const struct cuda_tunable tunable = {
    .file = "gemm_mma.cu",
    .tunable = {.kernel = "cuda gemm_mma", .parameters = parameters, .count = PARAMETERS},
    .usual = mma_gemm_usual,
    .check = mma_gemm_check,
};

const struct cuda_tunable *find_gemm_mma_tunable(const struct lab_launch *launch,
                                                 struct cuda_capacity capacity) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    if (s.m > LENGTH_MAX || s.n > LENGTH_MAX || s.k > LENGTH_MAX ||
        !cuda_supports(launch->op, launch->out.dtype, capacity.capability))
        return NULL;
    return cuda_kernel_runs_on(CUDA_KERNEL_gemm_mma, capacity.capability) ? &tunable : NULL;
}

/* Whether 16 bytes can be moved at a time, everywhere. */
static bool has_whole_rows(const struct lab_launch *launch, struct lab_gemm_shape s) {
    int64_t step = per_16_bytes(launch);
    bool adds = cuda_gemm_adds(launch->op);
    int64_t a = launch->transpose_a ? s.m : s.k, b = launch->transpose_b ? s.k : s.n;
    return a % step == 0 && b % step == 0 && s.n % step == 0 && is_aligned(&launch->in[0]) &&
           is_aligned(&launch->in[1]) && is_aligned(&launch->out) &&
           (!adds || is_aligned(&launch->in[cuda_gemm_has_bias(launch->op) ? 3 : 2]));
}

int plan_gemm_mma(const struct lab_launch *launch, struct cuda_capacity capacity,
                  enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)ret_way;
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    struct lab_tuning tuning =
        launch->tuning.count ? launch->tuning : mma_gemm_usual(launch, capacity);
    const int32_t *values = tuning.values;
    bool bias = cuda_gemm_has_bias(launch->op), adds = cuda_gemm_adds(launch->op);
    bool gelu = launch->op == LAB_OP_GEMM_BIAS_GELU;
    const struct lab_tensor none = {0};
    *ret_call = call_of(launch, CUDA_KERNEL_gemm_mma);
    const int32_t macros[] = {launch->transpose_a | launch->transpose_b << 1,
                              bias | gelu << 1 | adds << 2,
                              has_whole_rows(launch, s),
                              values[BLOCK_M],
                              values[BLOCK_N],
                              values[BLOCK_K],
                              values[STAGES],
                              values[WARPS_M],
                              values[WARPS_N]};
    memcpy(ret_call->variant.macros, macros, sizeof macros);
    add_pointer(ret_call, &launch->in[0]);
    add_pointer(ret_call, &launch->in[1]);
    add_pointer(ret_call, bias ? &launch->in[2] : &none);
    add_pointer(ret_call, adds ? &launch->in[bias ? 3 : 2] : &none);
    add_pointer(ret_call, &launch->out);
    add_integer(ret_call, s.m);
    add_integer(ret_call, s.n);
    add_integer(ret_call, s.k);
    ret_call->shared_bytes = (unsigned)shared_bytes_of(launch, values);
    return set_blocks(ret_call,
                      quotient_up(s.m, values[BLOCK_M]) * quotient_up(s.n, values[BLOCK_N]),
                      32 * values[WARPS_M] * values[WARPS_N], err);
}
