/*
 * plan_gradient.c: a language model's embedding (kernels/tokens.cu) and what gathers and bounds its
 * gradient (kernels/gradient.cu). Sums over the whole grid are two kernels: each block's, in its
 * place, then theirs, in their order.
 */
#include "device/cuda/plan/plan_internal.h"

/* --- embedding --- */

int plan_embed_tokens(const struct lab_launch *launch, struct cuda_capacity capacity,
                      enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)capacity;
    (void)ret_way;
    *ret_call = call_of(launch, CUDA_KERNEL_embed_tokens);
    add_inputs(ret_call, launch, 3);
    add_integer(ret_call, lab_tensor_rows(&launch->in[1]));
    add_integer(ret_call, lab_tensor_rows(&launch->in[2]));
    add_integer(ret_call, lab_tensor_columns(&launch->out));
    return set_blocks(ret_call, lab_tensor_rows(&launch->out), 128, err);
}

#define TOKENS_MOST     16    /* of a block */
#define SUMS_BYTES_MOST 65536 /* of their sums, in shared memory */

int plan_embed_tokens_backward(const struct lab_launch *launch, struct cuda_capacity capacity,
                               enum cuda_way *ret_way, struct cuda_call *ret_call,
                               struct lab_err *err) {
    (void)capacity;
    (void)ret_way;
    int64_t count = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t row_bytes = columns * (int64_t)sizeof(float);
    int tokens = TOKENS_MOST;
    while (tokens > 1 && tokens * row_bytes > SUMS_BYTES_MOST)
        tokens /= 2;
    if (row_bytes > SUMS_BYTES_MOST)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%lld columns are more than a block keeps, %d",
                           (long long)columns, SUMS_BYTES_MOST / (int)sizeof(float));
    int blocks = power_up(quotient_up(count, tokens)); /* a mask finds a token's block */
    *ret_call = call_of(launch, CUDA_KERNEL_embed_tokens_backward);
    ret_call->variant.macros[0] = (int32_t)columns;
    ret_call->variant.macros[1] = tokens;
    ret_call->variant.macros[2] = columns % 4 == 0 && are_aligned(launch, 3);
    ret_call->shared_bytes = (unsigned)(tokens * row_bytes);
    add_inputs(ret_call, launch, 3);
    add_integer(ret_call, lab_tensor_rows(&launch->in[1]));
    add_integer(ret_call, count);
    return set_blocks(ret_call, blocks, 256, err);
}

/* --- gradients --- */

int plan_accumulate(const struct lab_launch *launch, struct cuda_capacity capacity,
                    enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)capacity;
    (void)ret_way;
    *ret_call = call_of(launch, CUDA_KERNEL_accumulate);
    add_inputs(ret_call, launch, 2);
    add_integer(ret_call, lab_tensor_count(&launch->out));
    add_float(ret_call, launch->value);
    return set_blocks(ret_call, quotient_up(lab_tensor_count(&launch->out), 256), 256, err);
}

#define BLOCKS_EACH 4  /* of a multiprocessor */
#define ROWS_LEAST  64 /* of a strip: 8 for each warp */

static int64_t columns_of(const struct lab_launch *launch) {
    return lab_tensor_columns(&launch->in[0]);
}

static int64_t rows_of(const struct lab_launch *launch) {
    return lab_tensor_rows(&launch->in[0]);
}

/* Blocks side by side, each with a warp's 16 bytes of columns for a lane. */
static int64_t blocks_across(const struct lab_launch *launch) {
    return quotient_up(columns_of(launch), (int64_t)32 * per_16_bytes(launch));
}

static int64_t strip_rows(const struct lab_launch *launch, struct cuda_capacity capacity) {
    int64_t strips = (int64_t)capacity.sm_count * BLOCKS_EACH / blocks_across(launch);
    int64_t rows = quotient_up(rows_of(launch), strips > 1 ? strips : 1);
    return rows < ROWS_LEAST ? ROWS_LEAST : rows;
}

static int64_t square_blocks(const struct lab_launch *launch, struct cuda_capacity capacity) {
    int64_t count = lab_tensor_count(&launch->in[0]);
    int64_t needed = quotient_up(count, (int64_t)256 * per_16_bytes(launch));
    int64_t most = (int64_t)capacity.sm_count * 8;
    return needed < most ? needed : most;
}

int64_t gradient_bytes(const struct lab_launch *launch, struct cuda_capacity capacity) {
    int64_t floats =
        launch->op == LAB_OP_CLIP
            ? square_blocks(launch, capacity)
            : quotient_up(rows_of(launch), strip_rows(launch, capacity)) * columns_of(launch);
    return floats * (int64_t)sizeof(float);
}

int plan_column_sum_parts(const struct lab_launch *launch, struct cuda_capacity capacity,
                          void *scratch, struct cuda_part parts[CUDA_PARTS], int *ret_count,
                          struct lab_err *err) {
    int64_t rows = rows_of(launch), columns = columns_of(launch);
    int64_t strip = strip_rows(launch, capacity), strips = quotient_up(rows, strip);
    struct cuda_call *main = &parts[0].call, *finish = &parts[1].call;
    parts[0] = parts[1] = (struct cuda_part){0};
    *main = call_of(launch, CUDA_KERNEL_column_sum);
    add_inputs(main, launch, 2);
    add_integer(main, strips > 1 ? (int64_t)(uintptr_t)scratch : 0);
    add_integer(main, rows);
    add_integer(main, columns);
    add_integer(main, strip);
    add_float(main, launch->value);
    main->grid[1] = (unsigned)strips; /* no more than there are multiprocessors, four times */
    *ret_count = strips > 1 ? 2 : 1;
    *finish = call_of(launch, CUDA_KERNEL_column_sum_finish);
    add_integer(finish, (int64_t)(uintptr_t)scratch);
    add_pointer(finish, &launch->in[1]);
    add_pointer(finish, &launch->out);
    add_integer(finish, columns);
    add_integer(finish, strips);
    add_float(finish, launch->value);
    return set_blocks(main, blocks_across(launch), 256, err) ||
                   set_blocks(finish, quotient_up(columns, 32), 256, err)
               ? -1
               : 0;
}

int plan_clip_parts(const struct lab_launch *launch, struct cuda_capacity capacity, void *scratch,
                    struct cuda_part parts[CUDA_PARTS], int *ret_count, struct lab_err *err) {
    int64_t blocks = square_blocks(launch, capacity);
    struct cuda_call *squares = &parts[0].call, *clip = &parts[1].call;
    parts[0] = parts[1] = (struct cuda_part){0};
    *squares = call_of(launch, CUDA_KERNEL_square_sum);
    add_pointer(squares, &launch->in[0]);
    add_integer(squares, (int64_t)(uintptr_t)scratch);
    add_integer(squares, lab_tensor_count(&launch->in[0]));
    *clip = call_of(launch, CUDA_KERNEL_clip);
    add_integer(clip, (int64_t)(uintptr_t)scratch);
    add_pointer(clip, &launch->in[1]);
    add_pointer(clip, &launch->out);
    add_pointer(clip, &launch->also);
    add_integer(clip, blocks);
    add_float(clip, launch->value);
    *ret_count = 2;
    return set_blocks(squares, blocks, 256, err) || set_blocks(clip, 1, 256, err) ? -1 : 0;
}
