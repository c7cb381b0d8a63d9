/*
 * plan_flash_attention_mma.c: flash_attention by mma.sync, in every dtype, for GPUs from 8.0 on:
 * what is legal among its tiles, which are taken unasked, and its call
 * (kernels/flash_attention_mma.cu).
 */
#include "device/cuda/plan/plan_internal.h"

enum { BLOCK_M, BLOCK_N, WARPS, STAGES, PARAMETERS };

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"block_m", "queries per block", LAB_CHOICES(32, 64, 128)},
    {"block_n", "keys per step", LAB_CHOICES(16, 32, 64, 96, 128)},
    {"warps", "warps per block", LAB_CHOICES(2, 4, 8)},
    {"stages", "pipeline stages of keys and values", LAB_CHOICES(1, 2, 3)},
};

#define SUMS_MAX   192       /* of a thread: more don't fit its registers beside the rest */
#define LENGTH_MAX (1 << 30) /* the kernel counts tokens and blocks in 32 bits */

static bool is_half(const struct lab_launch *launch) {
    return lab_dtype_bytes(launch->out.dtype) == 2;
}

static int shared_bytes_of(const struct lab_launch *launch, const struct lab_tuning *tuning) {
    /* floats have rows that are 16 bytes longer, so that threads meet different banks */
    int row_bytes = (int)lab_flash_shape(launch).width * (int)lab_dtype_bytes(launch->out.dtype) +
                    (is_half(launch) ? 0 : 16);
    const int32_t *values = tuning->values;
    return (values[BLOCK_M] + 2 * values[STAGES] * values[BLOCK_N]) * row_bytes;
}

static int check_shares(const struct lab_launch *launch, const int32_t *values,
                        struct lab_err *err) {
    int rows = values[BLOCK_M] / values[WARPS];
    if (is_half(launch) && rows != 16 && rows != 32)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_m=%d with warps=%d: a warp has 16 or 32 queries", values[BLOCK_M],
                           values[WARPS]);
    if (!is_half(launch) && rows != 16)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_m=%d with warps=%d: a warp has 16 queries in %s", values[BLOCK_M],
                           values[WARPS], lab_dtype_name(launch->out.dtype));
    if (!is_half(launch) && values[STAGES] > 1)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "stages=%d: %s has one", values[STAGES],
                           lab_dtype_name(launch->out.dtype));
    int sums = (int)(lab_flash_shape(launch).width + values[BLOCK_N]) / 2 * (rows / 16);
    if (sums > SUMS_MAX)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "block_m=%d, block_n=%d and warps=%d: a thread would need %d registers "
                           "for sums, and %d fit",
                           values[BLOCK_M], values[BLOCK_N], values[WARPS], sums, SUMS_MAX);
    return 0;
}

static int mma_flash_check(const struct lab_launch *launch, struct cuda_capacity capacity,
                           const struct lab_tuning *tuning, struct lab_err *err) {
    int bytes = shared_bytes_of(launch, tuning), most = capacity.shared_bytes_max;
    if (check_shares(launch, tuning->values, err))
        return -1;
    if (bytes > most)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tiles take %d bytes of shared memory, a block here has %d", bytes,
                           most);
    return 0;
}

#define SHARED_80 (163 << 10) /* bytes that a block may have on 8.0; 8.6 and 8.9 give 99 KiB */

/*
 * What was fastest on an H200, as far as the smaller shared memory of other GPUs has room for it,
 * with two blocks at once where it can be. Unaligned tensors are moved element by element: no tiles
 * help.
 */
static struct lab_tuning mma_flash_usual(const struct lab_launch *launch,
                                         struct cuda_capacity capacity) {
    int64_t width = lab_flash_shape(launch).width, tokens = lab_flash_shape(launch).tokens;
    bool much = capacity.shared_bytes_max >= SHARED_80;
    if (!is_half(launch))
        return (struct lab_tuning){PARAMETERS, {64, width == 256 ? 16 : 32, 4, 1}};
    if (!are_aligned(launch, 3))
        return (struct lab_tuning){PARAMETERS, {64, 32, 4, 1}};
    if (tokens <= 64)
        return (struct lab_tuning){PARAMETERS, {64, 64, 4, 1}};
    switch (width) {
    case 64:
        return (struct lab_tuning){PARAMETERS, {128, tokens < 512 ? 64 : 128, 4, 1}};
    case 96:
        return (struct lab_tuning){PARAMETERS, {128, 64, 4, much ? 2 : 1}};
    case 128:
        return (struct lab_tuning){PARAMETERS, {128, much ? 64 : 32, 4, 1}};
    default: /* where 64 queries leave no room for another block, 128 have more warps */
        return capacity.shared_bytes_max == SHARED_80
                   ? (struct lab_tuning){PARAMETERS, {128, 64, 8, 1}}
                   : (struct lab_tuning){PARAMETERS, {64, 64, 4, 1}};
    }
}

static const struct cuda_tunable tunable = {
    .file = "flash_attention_mma.cu",
    .tunable = {.kernel = "cuda flash_attention_mma",
                .parameters = parameters,
                .count = PARAMETERS},
    .usual = mma_flash_usual,
    .check = mma_flash_check,
};

const struct cuda_tunable *find_flash_attention_mma_tunable(const struct lab_launch *launch,
                                                            struct cuda_capacity capacity) {
    (void)launch;
    return cuda_kernel_runs_on(CUDA_KERNEL_flash_attention_mma, capacity.capability) ? &tunable
                                                                                     : NULL;
}

#define CACHED_BYTES (8 << 20) /* of keys and values that neighbours share in the L2 cache */

/*
 * How many heads have their blocks side by side. Causal blocks differ in length, and the longest
 * should start first, of many heads; but what they read must stay in the cache.
 */
static int64_t heads_together(const struct lab_launch *launch, struct lab_flash_shape s) {
    int64_t bytes =
        2 * s.tokens * s.width * (int64_t)lab_dtype_bytes(launch->out.dtype) * s.kv_heads / s.heads;
    int64_t fit = bytes ? CACHED_BYTES / bytes : 1, all = s.heads * s.batch;
    return !launch->causal || fit < 1 ? 1 : fit < all ? fit : all;
}

int plan_flash_attention_mma(const struct lab_launch *launch, struct cuda_capacity capacity,
                             enum cuda_way *ret_way, struct cuda_call *ret_call,
                             struct lab_err *err) {
    (void)ret_way;
    struct lab_flash_shape s = lab_flash_shape(launch);
    struct lab_tuning tuning =
        launch->tuning.count ? launch->tuning : mma_flash_usual(launch, capacity);
    const int32_t *values = tuning.values;
    int64_t longest = s.tokens > s.heads ? s.tokens : s.heads;
    if (longest > LENGTH_MAX)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "%lld tokens or heads are more than a GPU's kernel counts, %d",
                           (long long)longest, LENGTH_MAX);
    *ret_call = call_of(launch, CUDA_KERNEL_flash_attention_mma);
    const int32_t macros[] = {(int32_t)s.width, launch->causal,       are_aligned(launch, 3),
                              values[BLOCK_M],  values[BLOCK_N],      values[WARPS],
                              values[STAGES],   launch->also.rank > 0};
    memcpy(ret_call->variant.macros, macros, sizeof macros);
    add_inputs(ret_call, launch, 3);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, s.tokens);
    add_integer(ret_call, s.heads);
    add_integer(ret_call, s.kv_heads);
    add_integer(ret_call, heads_together(launch, s));
    add_float(ret_call, launch->scale);
    ret_call->shared_bytes = (unsigned)shared_bytes_of(launch, &tuning);
    return set_blocks(ret_call, quotient_up(s.tokens, values[BLOCK_M]) * s.heads * s.batch,
                      32 * values[WARPS], err);
}
