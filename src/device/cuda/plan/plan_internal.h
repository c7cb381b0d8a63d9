/*
 * plan_internal.h: what the files that plan ops share: the parts of a call, and the plans that have
 * a file of their own. Seen by plan*.c and tune.c alone.
 */
#pragma once

#include "device/cuda/plan/plan.h"
#include "device/tunable.h"

#include <assert.h>
#include <string.h>

/* --- plans with files of their own --- */

/* As cuda_plan, with *ret_way CUDA_WAY_KERNEL before. */
typedef int cuda_planner(const struct lab_launch *launch, struct cuda_capacity capacity,
                         enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err);
cuda_planner plan_softmax, plan_flash_attention, plan_gemm, plan_mlp;
cuda_planner plan_flash_attention_backward, plan_layer_norm_backward;
cuda_planner plan_residual_layer_norm, plan_cross_entropy, plan_adamw;
cuda_planner plan_embed_tokens, plan_embed_tokens_backward, plan_accumulate;
/* by mma.sync, for any GPU; a product's counts its sizes in 32 bits */
cuda_planner plan_flash_attention_mma, plan_gemm_mma, plan_gemm_hopper;
cuda_planner plan_flash_attention_hopper; /* where its tunable is found */
cuda_planner plan_attention_hopper;
/* [batch, tokens, heads, width] in boxes of `rows` tokens of one head. */
struct cuda_map flash_attention_map(const struct lab_tensor *tensor, int32_t rows);
/* Tiles of our kernel with k split until there is a block for each multiprocessor; none where it
 * can't do the product. */
struct lab_tuning gemm_hopper_spread(const struct lab_launch *launch,
                                     struct cuda_capacity capacity);
enum { GEMM_HOPPER_EPILOGUE = 7, GEMM_HOPPER_ROUNDS = 8 }; /* a macro, and a bit of it */
bool attention_hopper_suits(const struct lab_launch *launch, struct cuda_capacity capacity);

/* As cuda_plan_parts and cuda_parts_bytes. */
typedef int cuda_parts_planner(const struct lab_launch *launch, struct cuda_capacity capacity,
                               void *scratch, struct cuda_part parts[CUDA_PARTS], int *ret_count,
                               struct lab_err *err);
cuda_parts_planner plan_mlp_batch_parts, plan_flash_attention_backward_parts;
cuda_parts_planner plan_layer_norm_backward_parts, plan_column_sum_parts, plan_clip_parts;
int64_t gradient_bytes(const struct lab_launch *launch, struct cuda_capacity capacity);
int64_t mlp_batch_bytes(const struct lab_launch *launch);
int64_t layer_norm_backward_bytes(const struct lab_launch *launch, struct cuda_capacity capacity);
int64_t flash_attention_backward_bytes(const struct lab_launch *launch,
                                       struct cuda_capacity capacity);

bool cuda_mlp_runs_in(enum lab_dtype dtype);
bool mlp_batch_suits(const struct lab_launch *launch); /* one that mlp_wide could do */
bool cuda_flash_attention_runs_on(enum lab_dtype dtype, int capability);

/*
 * What can be chosen for an op, declared beside its plan. Its `version` is made in tune.c from the
 * text of `file`, so that no change of a kernel can be forgotten.
 */
struct cuda_tunable {
    const char *file;           /* "softmax.cu" */
    struct lab_tunable tunable; /* tune.c completes it by these two */
    struct lab_tuning (*usual)(const struct lab_launch *launch, struct cuda_capacity capacity);
    int (*check)(const struct lab_launch *launch, struct cuda_capacity capacity,
                 const struct lab_tuning *tuning, struct lab_err *err);
};

/* NULL = nothing there, for this launch on such a GPU. */
typedef const struct cuda_tunable *cuda_tunable_finder(const struct lab_launch *launch,
                                                       struct cuda_capacity capacity);
cuda_tunable_finder find_softmax_tunable, find_flash_attention_tunable, find_gemm_tunable;
cuda_tunable_finder find_flash_attention_mma_tunable, find_gemm_mma_tunable,
    find_gemm_hopper_tunable;
cuda_tunable_finder find_flash_attention_hopper_tunable;

/* --- parts of calls --- */

#define GRID_X_MAX  0x7fffffffLL
#define GRID_YZ_MAX 65535

static inline struct cuda_call call_of(const struct lab_launch *launch,
                                       enum cuda_kernel_id kernel) {
    return (struct cuda_call){
        .variant = {.kernel = (int16_t)kernel, .dtype = (int16_t)launch->out.dtype},
        .grid = {1, 1, 1},
    };
}

static inline void add_pointer(struct cuda_call *call, const struct lab_tensor *tensor) {
    call->arguments[call->argument_count++] = (uint64_t)(uintptr_t)tensor->data;
}

static inline void add_integer(struct cuda_call *call, int64_t value) {
    call->arguments[call->argument_count++] = (uint64_t)value;
}

static inline void add_float(struct cuda_call *call, float value) {
    memcpy(&call->arguments[call->argument_count++], &value, sizeof value);
}

static inline void add_inputs(struct cuda_call *call, const struct lab_launch *launch, int count) {
    for (int i = 0; i < count; i++)
        add_pointer(call, &launch->in[i]);
    add_pointer(call, &launch->out);
}

static inline bool is_aligned(const struct lab_tensor *tensor) {
    return ((uintptr_t)tensor->data & 15) == 0;
}

static inline bool are_aligned(const struct lab_launch *launch, int inputs) {
    for (int i = 0; i < inputs; i++)
        if (!is_aligned(&launch->in[i]))
            return false;
    return is_aligned(&launch->out);
}

static inline int64_t quotient_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static inline int per_16_bytes(const struct lab_launch *launch) {
    return 16 / (int)lab_dtype_bytes(launch->out.dtype);
}

/* The smallest power of two that is at least `value`. */
static inline int power_up(int64_t value) {
    int power = 1;
    while (power < value)
        power *= 2;
    return power;
}

static inline int refuse_grid(int64_t blocks, int64_t most, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "needs %lld blocks in one dimension of its grid, "
                       "and a GPU takes %lld at most",
                       (long long)blocks, (long long)most);
}

static inline int set_blocks(struct cuda_call *call, int64_t blocks, int threads,
                             struct lab_err *err) {
    if (blocks > GRID_X_MAX)
        return refuse_grid(blocks, GRID_X_MAX, err);
    call->grid[0] = (unsigned)blocks;
    call->threads = (unsigned)threads;
    return 0;
}

/* The map is the call's own from now on. */
static inline void add_map(struct cuda_call *call, const struct cuda_map *map) {
    assert(call->map_count < CUDA_MAPS);
    add_integer(call, call->map_count);
    call->maps[call->map_count++] = *map;
}

/* --- rows --- */

#define WARP_ROWS 4 /* rows that a block of warps has at most */

/* A row for each warp or block. Few rows are spread over all multiprocessors, many share blocks. */
static inline int set_row_blocks(struct cuda_call *call, int64_t rows, int row_threads,
                                 struct cuda_capacity capacity, struct lab_err *err) {
    int together =
        row_threads == 32 && rows >= (int64_t)capacity.sm_count * WARP_ROWS ? WARP_ROWS : 1;
    return set_blocks(call, quotient_up(rows, together), together * row_threads, err);
}

#define WARP_HELD_MAX 32 /* elements of a row that a thread of a single warp keeps */

/* Threads for a row that is kept in registers: one warp needs no barrier, so as long as it can. */
static inline int norm_threads(int64_t columns, int warp_held) {
    if (columns <= (int64_t)32 * warp_held)
        return 32;
    int threads = power_up(quotient_up(columns, 16));
    return threads < 64 ? 64 : threads > 1024 ? 1024 : threads;
}
