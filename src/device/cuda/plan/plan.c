/*
 * plan.c: the table of kernels, and for each op its choice among them. Macros are chosen from few
 * values where a shape allows it, so that models of different sizes share kernels.
 */
#include "device/cuda/plan/plan.h"

#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan_internal.h"

#include <stdio.h>

_Static_assert(sizeof(struct cuda_variant) == 4 + 4 * CUDA_MACROS, "a variant has no padding");

const struct cuda_kernel_row cuda_kernel_rows[CUDA_KERNEL_COUNT] = {
#define ROW(name, file, architectures, dtypes, arguments, ...)                                     \
    {#name, file, CUDA_##architectures, CUDA_DTYPES_##dtypes, arguments, {__VA_ARGS__}},
    CUDA_KERNELS(ROW)
#undef ROW
};

void cuda_variant_name(const struct cuda_variant *variant, char name[CUDA_VARIANT_NAME_BYTES]) {
    const struct cuda_kernel_row *row = &cuda_kernel_rows[variant->kernel];
    int length = snprintf(name, CUDA_VARIANT_NAME_BYTES, "%s %s", row->name,
                          lab_dtype_name((enum lab_dtype)variant->dtype));
    for (int i = 0; row->macros[i] && length < CUDA_VARIANT_NAME_BYTES; i++)
        length += snprintf(name + length, (size_t)(CUDA_VARIANT_NAME_BYTES - length), " %s=%d",
                           row->macros[i], (int)variant->macros[i]);
}

bool cuda_kernel_runs_on(enum cuda_kernel_id kernel, int capability) {
    switch (cuda_kernel_rows[kernel].architectures) {
    case CUDA_FROM_80:
        return capability >= 80;
    case CUDA_FROM_90:
        return capability >= 90;
    case CUDA_ONLY_90:
        return capability == 90;
    }
    return false;
}

bool cuda_supports(enum lab_op_id op, enum lab_dtype dtype, int capability) {
    if (op == LAB_OP_FLASH_ATTENTION)
        return cuda_flash_attention_runs_on(dtype, capability);
    if (op == LAB_OP_MLP_FORWARD || op == LAB_OP_MLP_BACKWARD || op == LAB_OP_MLP_GRADIENT ||
        op == LAB_OP_ADAM || op == LAB_OP_MLP_STEP)
        return cuda_mlp_runs_in(dtype);
    /* cuBLASLt's GELU is the tanh approximation: off by up to 5e-4, too much for fp32 alone, as are
     * the digits of its tanh */
    return !((op == LAB_OP_GEMM_BIAS_GELU || op == LAB_OP_GEMM_BIAS_GELU_TANH ||
              op == LAB_OP_GEMM_GELU_TANH_BACKWARD) &&
             dtype == LAB_FP32);
}

/* --- tensor maps --- */

int cuda_map_check(const struct cuda_map *map, struct lab_err *err) {
    int64_t element = (int64_t)lab_dtype_bytes(map->dtype);
    if ((uintptr_t)map->data & 15)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "TMA needs memory at a multiple of 16 bytes, not at %p", map->data);
    for (int i = 0; i < map->rank; i++) {
        if (map->sizes[i] == 0 || map->sizes[i] > (uint64_t)1 << 32)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "TMA takes 1 to 2^32 elements in a dimension, not %llu",
                               (unsigned long long)map->sizes[i]);
        if (map->box[i] == 0 || map->box[i] > 256)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "TMA moves boxes of 1 to 256 elements in a dimension, not of %u",
                               map->box[i]);
        if (i && (map->strides_bytes[i - 1] % 16 || map->strides_bytes[i - 1] >= (uint64_t)1 << 40))
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "TMA needs rows at multiples of 16 bytes, not of %llu",
                               (unsigned long long)map->strides_bytes[i - 1]);
    }
    int64_t inner_bytes = (int64_t)map->box[0] * element;
    if (inner_bytes % 16 || (map->swizzle_bytes && inner_bytes > map->swizzle_bytes))
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "TMA can't move rows of %lld bytes swizzled by %d",
                           (long long)inner_bytes, map->swizzle_bytes);
    return 0;
}

/* --- by elements --- */

static int plan_elements(const struct lab_launch *launch, enum cuda_kernel_id kernel,
                         struct cuda_call *ret_call, struct lab_err *err) {
    int64_t count = lab_tensor_count(&launch->out);
    *ret_call = call_of(launch, kernel);
    add_inputs(ret_call, launch, lab_op_get(launch->op)->inputs);
    add_integer(ret_call, count);
    if (kernel == CUDA_KERNEL_fill)
        add_float(ret_call, launch->value);
    if (kernel == CUDA_KERNEL_bias)
        add_integer(ret_call, lab_tensor_columns(&launch->out));
    return set_blocks(ret_call, quotient_up(count, (int64_t)256 * per_16_bytes(launch)), 256, err);
}

/* --- normalised rows --- */

#define NORM_COLUMNS_MAX 16384 /* what registers hold without spilling: 16 for each thread */

static void set_norm_macros(struct cuda_call *call, int64_t columns, int threads, bool vector) {
    call->variant.macros[0] = (int32_t)columns;
    call->variant.macros[1] = threads;
    call->variant.macros[2] = vector;
}

static int plan_layer_norm(const struct lab_launch *launch, struct cuda_capacity capacity,
                           struct cuda_call *ret_call, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    bool is_long = columns > NORM_COLUMNS_MAX;
    *ret_call = call_of(launch, is_long ? CUDA_KERNEL_layer_norm_long : CUDA_KERNEL_layer_norm);
    add_inputs(ret_call, launch, 3);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, is_long ? columns : rows);
    add_float(ret_call, launch->epsilon);
    if (is_long)
        return set_blocks(ret_call, rows, 1024, err);
    int threads = norm_threads(columns, WARP_HELD_MAX);
    set_norm_macros(ret_call, columns, threads,
                    columns % per_16_bytes(launch) == 0 && are_aligned(launch, 3));
    return set_row_blocks(ret_call, rows, threads, capacity, err);
}

static int plan_layer_norm_embed(const struct lab_launch *launch, struct cuda_capacity capacity,
                                 struct cuda_call *ret_call, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int threads = norm_threads(columns, WARP_HELD_MAX);
    *ret_call = call_of(launch, CUDA_KERNEL_layer_norm_embed);
    set_norm_macros(ret_call, columns, threads,
                    columns % per_16_bytes(launch) == 0 && are_aligned(launch, 5));
    add_inputs(ret_call, launch, 5);
    add_integer(ret_call, rows);
    add_float(ret_call, launch->epsilon);
    add_integer(ret_call, lab_tensor_rows(&launch->in[4]) - 1);
    return set_row_blocks(ret_call, rows, threads, capacity, err);
}

static int plan_patchify_layer_norm(const struct lab_launch *launch, struct cuda_capacity capacity,
                                    struct cuda_call *ret_call, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    /* its loads are single elements: more threads have more of them on their way */
    int threads = norm_threads(columns, 8);
    *ret_call = call_of(launch, CUDA_KERNEL_patchify_layer_norm);
    set_norm_macros(ret_call, columns, threads, false);
    ret_call->variant.macros[3] = (int32_t)launch->in[0].shape[1];
    ret_call->variant.macros[4] = (int32_t)launch->patch;
    add_inputs(ret_call, launch, 3);
    add_integer(ret_call, rows);
    add_float(ret_call, launch->epsilon);
    add_integer(ret_call, launch->in[0].shape[2]);
    add_integer(ret_call, launch->in[0].shape[3]);
    return set_row_blocks(ret_call, rows, threads, capacity, err);
}

/* --- patches and tokens --- */

static int plan_patchify(const struct lab_launch *launch, struct cuda_call *ret_call,
                         struct lab_err *err) {
    *ret_call = call_of(launch, CUDA_KERNEL_patchify);
    add_inputs(ret_call, launch, 1);
    for (int i = 1; i < 4; i++)
        add_integer(ret_call, launch->in[0].shape[i]);
    add_integer(ret_call, launch->patch);
    return set_blocks(ret_call, lab_tensor_rows(&launch->out), 128, err);
}

static int plan_embed(const struct lab_launch *launch, struct cuda_call *ret_call,
                      struct lab_err *err) {
    *ret_call = call_of(launch, CUDA_KERNEL_embed);
    add_inputs(ret_call, launch, 3);
    add_integer(ret_call, lab_tensor_rows(&launch->in[2]) - 1);
    add_integer(ret_call, lab_tensor_columns(&launch->out));
    return set_blocks(ret_call, lab_tensor_rows(&launch->out), 128, err);
}

/* --- attention --- */

#define TILE             64  /* queries of a block, keys of a tile */
#define ANY_STATIC_BYTES 128 /* of attention_any's own */

static int plan_attention(const struct lab_launch *launch, struct cuda_capacity capacity,
                          struct cuda_call *ret_call, struct lab_err *err) {
    int64_t tokens = launch->tokens, heads = launch->heads;
    int64_t width = lab_tensor_columns(&launch->out) / heads;
    int64_t images = lab_tensor_rows(&launch->out) / tokens;
    bool fast = width == 64 && launch->scale > 0 && are_aligned(launch, 1);
    *ret_call = call_of(launch, fast ? CUDA_KERNEL_attention : CUDA_KERNEL_attention_any);
    /* only the 2-byte kernels have stages */
    if (fast)
        ret_call->variant.macros[0] =
            lab_dtype_bytes(launch->out.dtype) == 2 && tokens > TILE ? 2 : 1;
    add_inputs(ret_call, launch, 1);
    add_integer(ret_call, tokens);
    add_integer(ret_call, heads);
    add_float(ret_call, launch->scale);
    if (!fast) {
        add_integer(ret_call, width);
        int64_t shared_bytes =
            (quotient_up(tokens, 4) + quotient_up(width, 4)) * 16; /* of floats */
        if (shared_bytes > capacity.shared_bytes_max - ANY_STATIC_BYTES)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "attention over %lld tokens with heads of %lld needs %lld bytes of "
                               "shared memory, this GPU has %d; heads of 64 need none",
                               (long long)tokens, (long long)width, (long long)shared_bytes,
                               capacity.shared_bytes_max);
        ret_call->shared_bytes = (unsigned)shared_bytes;
    }
    if (heads > GRID_YZ_MAX || images > GRID_YZ_MAX)
        return refuse_grid(heads > images ? heads : images, GRID_YZ_MAX, err);
    ret_call->grid[1] = (unsigned)heads;
    ret_call->grid[2] = (unsigned)images;
    return set_blocks(ret_call, fast ? quotient_up(tokens, TILE) : tokens, 128, err);
}

/* --- the table --- */

int cuda_plan(const struct lab_launch *launch, struct cuda_capacity capacity,
              enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    bool is_long = lab_tensor_columns(&launch->out) > NORM_COLUMNS_MAX;
    *ret_way = CUDA_WAY_KERNEL;
    switch (launch->op) {
    case LAB_OP_FILL:
        return plan_elements(launch, CUDA_KERNEL_fill, ret_call, err);
    case LAB_OP_ADD:
        return plan_elements(launch, CUDA_KERNEL_add, ret_call, err);
    case LAB_OP_BIAS:
        return plan_elements(launch, CUDA_KERNEL_bias, ret_call, err);
    case LAB_OP_GELU:
        return plan_elements(launch, CUDA_KERNEL_gelu, ret_call, err);
    case LAB_OP_GELU_TANH:
        return plan_elements(launch, CUDA_KERNEL_gelu_tanh, ret_call, err);
    case LAB_OP_GELU_TANH_BACKWARD:
        return plan_elements(launch, CUDA_KERNEL_gelu_tanh_backward, ret_call, err);
    case LAB_OP_GEMM:
    case LAB_OP_GEMM_ADD:
    case LAB_OP_GEMM_BIAS:
    case LAB_OP_GEMM_BIAS_GELU:
    case LAB_OP_GEMM_BIAS_ADD:
        return plan_gemm(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_GEMM_BIAS_GELU_TANH:
    case LAB_OP_GEMM_GELU_TANH_BACKWARD:
        /* cuBLASLt wants what stands before an activation in rows of whole vectors */
        *ret_way = lab_tensor_columns(&launch->out) % 8 == 0 && are_aligned(launch, 3)
                       ? CUDA_WAY_GEMM
                       : CUDA_WAY_LOWER;
        return 0;
    case LAB_OP_COLUMN_SUM:
    case LAB_OP_CLIP:
        *ret_way = CUDA_WAY_PARTS;
        return 0;
    case LAB_OP_ACCUMULATE:
        return plan_accumulate(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_EMBED_TOKENS:
        return plan_embed_tokens(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_EMBED_TOKENS_BACKWARD:
        return plan_embed_tokens_backward(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_LAYER_NORM:
        return plan_layer_norm(launch, capacity, ret_call, err);
    case LAB_OP_RESIDUAL_LAYER_NORM:
        return plan_residual_layer_norm(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_LAYER_NORM_BACKWARD:
        return plan_layer_norm_backward(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_CROSS_ENTROPY:
        return plan_cross_entropy(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_SOFTMAX:
        return plan_softmax(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_PATCHIFY:
        return plan_patchify(launch, ret_call, err);
    case LAB_OP_PATCHIFY_LAYER_NORM:
        *ret_way = is_long ? CUDA_WAY_LOWER : CUDA_WAY_KERNEL;
        return is_long ? 0 : plan_patchify_layer_norm(launch, capacity, ret_call, err);
    case LAB_OP_EMBED:
        return plan_embed(launch, ret_call, err);
    case LAB_OP_LAYER_NORM_EMBED:
        *ret_way = is_long ? CUDA_WAY_LOWER : CUDA_WAY_KERNEL;
        return is_long ? 0 : plan_layer_norm_embed(launch, capacity, ret_call, err);
    case LAB_OP_ATTENTION:
        if (attention_hopper_suits(launch, capacity))
            return plan_attention_hopper(launch, capacity, ret_way, ret_call, err);
        return plan_attention(launch, capacity, ret_call, err);
    case LAB_OP_FLASH_ATTENTION:
        return plan_flash_attention(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_FLASH_ATTENTION_BACKWARD:
        return plan_flash_attention_backward(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_ADAMW:
        return plan_adamw(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_MLP_FORWARD:
    case LAB_OP_MLP_BACKWARD:
    case LAB_OP_MLP_GRADIENT:
    case LAB_OP_ADAM:
    case LAB_OP_MLP_STEP:
        return plan_mlp(launch, capacity, ret_way, ret_call, err);
    case LAB_OP_COUNT:
        break;
    }
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "no kernel does operation %d", (int)launch->op);
}

int cuda_plan_parts(const struct lab_launch *launch, struct cuda_capacity capacity, void *scratch,
                    struct cuda_part parts[CUDA_PARTS], int *ret_count, struct lab_err *err) {
    cuda_parts_planner *planner = plan_mlp_batch_parts;
    if (launch->op == LAB_OP_FLASH_ATTENTION_BACKWARD)
        planner = plan_flash_attention_backward_parts;
    else if (launch->op == LAB_OP_LAYER_NORM_BACKWARD)
        planner = plan_layer_norm_backward_parts;
    else if (launch->op == LAB_OP_COLUMN_SUM)
        planner = plan_column_sum_parts;
    else if (launch->op == LAB_OP_CLIP)
        planner = plan_clip_parts;
    return planner(launch, capacity, scratch, parts, ret_count, err);
}

int64_t cuda_parts_bytes(const struct lab_launch *launch, struct cuda_capacity capacity) {
    if (launch->op == LAB_OP_FLASH_ATTENTION_BACKWARD)
        return flash_attention_backward_bytes(launch, capacity);
    if (launch->op == LAB_OP_LAYER_NORM_BACKWARD)
        return layer_norm_backward_bytes(launch, capacity);
    if (launch->op == LAB_OP_COLUMN_SUM || launch->op == LAB_OP_CLIP)
        return gradient_bytes(launch, capacity);
    return mlp_batch_bytes(launch);
}
