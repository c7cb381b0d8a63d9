/*
 * plan.c: the table of kernels, and for each op its choice among them. Macros are chosen from few
 * values where a shape allows it, so that models of different sizes share kernels.
 */
#include "device/cuda/plan.h"

#include "device/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct cuda_variant) == 4 + 4 * CUDA_MACROS, "a variant has no padding");

const struct cuda_kernel_row cuda_kernel_rows[CUDA_KERNEL_COUNT] = {
#define ROW(name, file, arguments, ...) {#name, file, arguments, {__VA_ARGS__}},
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

bool cuda_supports(enum lab_op_id op, enum lab_dtype dtype) {
    if (op == LAB_OP_FLASH_ATTENTION || op == LAB_OP_MLP_FORWARD || op == LAB_OP_MLP_BACKWARD ||
        op == LAB_OP_MLP_GRADIENT || op == LAB_OP_ADAM || op == LAB_OP_MLP_STEP)
        return false;
    /* cuBLASLt's GELU is the tanh approximation: off by up to 5e-4, too much for fp32 alone */
    return !(op == LAB_OP_GEMM_BIAS_GELU && dtype == LAB_FP32);
}

/* --- parts of calls --- */

#define GRID_X_MAX  0x7fffffffLL
#define GRID_YZ_MAX 65535

static struct cuda_call call_of(const struct lab_launch *launch, enum cuda_kernel_id kernel) {
    return (struct cuda_call){
        .variant = {.kernel = (int16_t)kernel, .dtype = (int16_t)launch->out.dtype},
        .grid = {1, 1, 1},
    };
}

static void add_pointer(struct cuda_call *call, const struct lab_tensor *tensor) {
    call->arguments[call->argument_count++] = (uint64_t)(uintptr_t)tensor->data;
}

static void add_integer(struct cuda_call *call, int64_t value) {
    call->arguments[call->argument_count++] = (uint64_t)value;
}

static void add_float(struct cuda_call *call, float value) {
    memcpy(&call->arguments[call->argument_count++], &value, sizeof value);
}

static void add_inputs(struct cuda_call *call, const struct lab_launch *launch, int count) {
    for (int i = 0; i < count; i++)
        add_pointer(call, &launch->in[i]);
    add_pointer(call, &launch->out);
}

static bool is_aligned(const struct lab_tensor *tensor) {
    return ((uintptr_t)tensor->data & 15) == 0;
}

static bool are_aligned(const struct lab_launch *launch, int inputs) {
    for (int i = 0; i < inputs; i++)
        if (!is_aligned(&launch->in[i]))
            return false;
    return is_aligned(&launch->out);
}

static int64_t quotient_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int per_16_bytes(const struct lab_launch *launch) {
    return 16 / (int)lab_dtype_bytes(launch->out.dtype);
}

/* The smallest power of two that is at least `value`. */
static int power_up(int64_t value) {
    int power = 1;
    while (power < value)
        power *= 2;
    return power;
}

static int refuse_grid(int64_t blocks, int64_t most, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "needs %lld blocks in one dimension of its grid, "
                       "and a GPU takes %lld at most",
                       (long long)blocks, (long long)most);
}

static int set_blocks(struct cuda_call *call, int64_t blocks, int threads, struct lab_err *err) {
    if (blocks > GRID_X_MAX)
        return refuse_grid(blocks, GRID_X_MAX, err);
    call->grid[0] = (unsigned)blocks;
    call->threads = (unsigned)threads;
    return 0;
}

#define WARP_ROWS 4 /* rows that a block of warps has at most */

/* A row for each warp or block. Few rows are spread over all multiprocessors, many share blocks. */
static int set_row_blocks(struct cuda_call *call, int64_t rows, int row_threads,
                          struct cuda_room room, struct lab_err *err) {
    int together = row_threads == 32 && rows >= (int64_t)room.sm_count * WARP_ROWS ? WARP_ROWS : 1;
    return set_blocks(call, quotient_up(rows, together), together * row_threads, err);
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
#define WARP_HELD_MAX    32    /* elements of a row that a thread of a single warp keeps */

/* Threads for a row that is kept in registers: one warp needs no barrier, so as long as it can. */
static int norm_threads(int64_t columns, int warp_held) {
    if (columns <= (int64_t)32 * warp_held)
        return 32;
    int threads = power_up(quotient_up(columns, 16));
    return threads < 64 ? 64 : threads > 1024 ? 1024 : threads;
}

static void set_norm_macros(struct cuda_call *call, int64_t columns, int threads, bool vector) {
    call->variant.macros[0] = (int32_t)columns;
    call->variant.macros[1] = threads;
    call->variant.macros[2] = vector;
}

static int plan_layer_norm(const struct lab_launch *launch, struct cuda_room room,
                           struct cuda_call *ret_call, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    bool is_long = columns > NORM_COLUMNS_MAX;
    *ret_call = call_of(launch, is_long ? CUDA_KERNEL_layer_norm_long : CUDA_KERNEL_layer_norm);
    add_inputs(ret_call, launch, 3);
    add_integer(ret_call, is_long ? columns : rows);
    add_float(ret_call, launch->epsilon);
    if (is_long)
        return set_blocks(ret_call, rows, 1024, err);
    int threads = norm_threads(columns, WARP_HELD_MAX);
    set_norm_macros(ret_call, columns, threads,
                    columns % per_16_bytes(launch) == 0 && are_aligned(launch, 3));
    return set_row_blocks(ret_call, rows, threads, room, err);
}

static int plan_layer_norm_embed(const struct lab_launch *launch, struct cuda_room room,
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
    return set_row_blocks(ret_call, rows, threads, room, err);
}

static int plan_patchify_layer_norm(const struct lab_launch *launch, struct cuda_room room,
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
    return set_row_blocks(ret_call, rows, threads, room, err);
}

/* --- softmax --- */

#define SOFTMAX_HELD_MAX 32 /* elements that a thread keeps; 1024 threads have 64 registers each */

static int plan_softmax(const struct lab_launch *launch, struct cuda_room room,
                        struct cuda_call *ret_call, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    if (columns > (int64_t)1024 * SOFTMAX_HELD_MAX) {
        *ret_call = call_of(launch, CUDA_KERNEL_softmax_long);
        add_inputs(ret_call, launch, 1);
        add_integer(ret_call, columns);
        return set_blocks(ret_call, rows, 1024, err);
    }
    bool vector = columns % per_16_bytes(launch) == 0 && are_aligned(launch, 1);
    int step = vector ? per_16_bytes(launch) : 1;
    int threads = norm_threads(columns, WARP_HELD_MAX);
    *ret_call = call_of(launch, CUDA_KERNEL_softmax);
    ret_call->variant.macros[0] = threads;
    ret_call->variant.macros[1] = power_up(quotient_up(columns, (int64_t)threads * step));
    ret_call->variant.macros[2] = vector;
    add_inputs(ret_call, launch, 1);
    add_integer(ret_call, rows);
    add_integer(ret_call, columns);
    return set_row_blocks(ret_call, rows, threads, room, err);
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

static int plan_attention(const struct lab_launch *launch, struct cuda_room room,
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
        if (shared_bytes > room.shared_bytes_max - ANY_STATIC_BYTES)
            return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                               "attention over %lld tokens with heads of %lld needs %lld bytes of "
                               "shared memory, this GPU has %d; heads of 64 need none",
                               (long long)tokens, (long long)width, (long long)shared_bytes,
                               room.shared_bytes_max);
        ret_call->shared_bytes = (unsigned)shared_bytes;
    }
    if (heads > GRID_YZ_MAX || images > GRID_YZ_MAX)
        return refuse_grid(heads > images ? heads : images, GRID_YZ_MAX, err);
    ret_call->grid[1] = (unsigned)heads;
    ret_call->grid[2] = (unsigned)images;
    return set_blocks(ret_call, fast ? quotient_up(tokens, TILE) : tokens, 128, err);
}

/* --- the table --- */

int cuda_plan(const struct lab_launch *launch, struct cuda_room room, enum cuda_way *ret_way,
              struct cuda_call *ret_call, struct lab_err *err) {
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
    case LAB_OP_GEMM:
    case LAB_OP_GEMM_ADD:
    case LAB_OP_GEMM_BIAS:
    case LAB_OP_GEMM_BIAS_GELU:
    case LAB_OP_GEMM_BIAS_ADD:
        *ret_way = CUDA_WAY_GEMM;
        return 0;
    case LAB_OP_LAYER_NORM:
        return plan_layer_norm(launch, room, ret_call, err);
    case LAB_OP_SOFTMAX:
        return plan_softmax(launch, room, ret_call, err);
    case LAB_OP_PATCHIFY:
        return plan_patchify(launch, ret_call, err);
    case LAB_OP_PATCHIFY_LAYER_NORM:
        *ret_way = is_long ? CUDA_WAY_LOWER : CUDA_WAY_KERNEL;
        return is_long ? 0 : plan_patchify_layer_norm(launch, room, ret_call, err);
    case LAB_OP_EMBED:
        return plan_embed(launch, ret_call, err);
    case LAB_OP_LAYER_NORM_EMBED:
        *ret_way = is_long ? CUDA_WAY_LOWER : CUDA_WAY_KERNEL;
        return is_long ? 0 : plan_layer_norm_embed(launch, room, ret_call, err);
    case LAB_OP_ATTENTION:
        return plan_attention(launch, room, ret_call, err);
    case LAB_OP_FLASH_ATTENTION:
    case LAB_OP_MLP_FORWARD:
    case LAB_OP_MLP_BACKWARD:
    case LAB_OP_MLP_GRADIENT:
    case LAB_OP_ADAM:
    case LAB_OP_MLP_STEP:
    case LAB_OP_COUNT:
        break;
    }
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "no kernel does operation %d", (int)launch->op);
}
