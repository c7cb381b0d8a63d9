/*
 * plan_language.c: what a language model's training does between its products: layer norm of a sum
 * and its backward (kernels/layer_norm.cu, layer_norm_backward.cu), cross-entropy, AdamW. The
 * backward's sums down the columns are a second kernel, from one part of each block.
 */
#include "device/cuda/plan/plan_internal.h"

#define COLUMNS_MAX 16384 /* what a block's registers hold: 16 for each thread */

static int check_columns(int64_t columns, struct lab_err *err) {
    if (columns <= COLUMNS_MAX)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%lld columns are more than a block keeps, %d",
                       (long long)columns, COLUMNS_MAX);
}

/* --- forward --- */

int plan_residual_layer_norm(const struct lab_launch *launch, struct cuda_capacity capacity,
                             enum cuda_way *ret_way, struct cuda_call *ret_call,
                             struct lab_err *err) {
    (void)ret_way;
    int64_t rows = launch->out.shape[1], columns = launch->out.shape[2];
    int threads = norm_threads(columns, WARP_HELD_MAX);
    *ret_call = call_of(launch, CUDA_KERNEL_residual_layer_norm);
    ret_call->variant.macros[0] = (int32_t)columns;
    ret_call->variant.macros[1] = threads;
    ret_call->variant.macros[2] = columns % per_16_bytes(launch) == 0 && are_aligned(launch, 4);
    add_inputs(ret_call, launch, 4);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, rows);
    add_float(ret_call, launch->epsilon);
    return check_columns(columns, err) ? -1
                                       : set_row_blocks(ret_call, rows, threads, capacity, err);
}

/* --- backward --- */

enum { X, GAMMA, STATS, DERIVATIVE, RESIDUAL, INPUTS };

#define BLOCK_THREADS 1024 /* of a multiprocessor, where a row has several warps */

struct crew {
    int threads, rows; /* of a row, and rows of a block */
    int64_t blocks;
};

/* A block for each multiprocessor where warps have rows: 12 of them where registers allow it. */
static struct crew crew_of(const struct lab_launch *launch, struct cuda_capacity capacity) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t most = capacity.sm_count;
    struct crew crew = {32, per_16_bytes(launch) == 8 && columns <= 768 ? 12 : 8, 0};
    if (columns > 1024) {
        int threads = power_up(quotient_up(columns, 16));
        crew.threads = threads < 128 ? 128 : threads;
        crew.rows = 1;
        most *= BLOCK_THREADS / crew.threads > 4 ? 4 : BLOCK_THREADS / crew.threads;
    }
    int64_t needed = quotient_up(rows, crew.rows);
    crew.blocks = needed < most ? needed : most;
    return crew;
}

int plan_layer_norm_backward(const struct lab_launch *launch, struct cuda_capacity capacity,
                             enum cuda_way *ret_way, struct cuda_call *ret_call,
                             struct lab_err *err) {
    (void)capacity;
    (void)ret_call;
    *ret_way = CUDA_WAY_PARTS;
    return check_columns(lab_tensor_columns(&launch->out), err);
}

int64_t layer_norm_backward_bytes(const struct lab_launch *launch, struct cuda_capacity capacity) {
    int64_t columns = lab_tensor_columns(&launch->out);
    return crew_of(launch, capacity).blocks * 3 * columns * (int64_t)sizeof(float);
}

int plan_layer_norm_backward_parts(const struct lab_launch *launch, struct cuda_capacity capacity,
                                   void *scratch, struct cuda_part parts[CUDA_PARTS],
                                   int *ret_count, struct lab_err *err) {
    int64_t columns = lab_tensor_columns(&launch->out);
    struct crew crew = crew_of(launch, capacity);
    struct cuda_call *main = &parts[0].call, *sums = &parts[1].call;
    bool vector = columns % per_16_bytes(launch) == 0 && are_aligned(launch, GAMMA + 1) &&
                  is_aligned(&launch->in[DERIVATIVE]) && is_aligned(&launch->in[RESIDUAL]);
    const int32_t macros[] = {(int32_t)columns, crew.threads, vector, crew.rows,
                              launch->also.rank > 0};
    parts[0] = parts[1] = (struct cuda_part){0};
    *main = call_of(launch, CUDA_KERNEL_layer_norm_backward);
    memcpy(main->variant.macros, macros, sizeof macros);
    add_inputs(main, launch, INPUTS);
    add_integer(main, (int64_t)(uintptr_t)scratch);
    add_integer(main, lab_tensor_rows(&launch->out));
    *ret_count = launch->also.rank ? 2 : 1;
    if (set_blocks(main, crew.blocks, crew.threads * crew.rows, err) || !launch->also.rank)
        return main->grid[0] ? 0 : -1;
    *sums = call_of(launch, CUDA_KERNEL_layer_norm_backward_sums);
    sums->variant.dtype = LAB_FP32; /* whatever the matrix has */
    add_integer(sums, (int64_t)(uintptr_t)scratch);
    add_pointer(sums, &launch->also);
    add_integer(sums, 3 * columns);
    add_integer(sums, crew.blocks);
    return set_blocks(sums, quotient_up(3 * columns, 32), 256, err);
}

/* --- cross-entropy --- */

#define PIECES_MAX    13 /* of 16 bytes: two blocks of 512 threads have no registers for more */
#define ENTROPY_LEAST 128

int plan_cross_entropy(const struct lab_launch *launch, struct cuda_capacity capacity,
                       enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)capacity;
    (void)ret_way;
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t pieces = quotient_up(columns, per_16_bytes(launch));
    int threads = power_up(quotient_up(pieces, PIECES_MAX));
    threads = threads < ENTROPY_LEAST ? ENTROPY_LEAST : threads;
    bool fits = threads <= 1024 && columns % per_16_bytes(launch) == 0 && are_aligned(launch, 1);
    *ret_call = call_of(launch, fits ? CUDA_KERNEL_cross_entropy : CUDA_KERNEL_cross_entropy_long);
    if (fits) {
        ret_call->variant.macros[0] = threads;
        ret_call->variant.macros[1] = (int32_t)quotient_up(pieces, threads);
    }
    add_inputs(ret_call, launch, 2);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, columns);
    add_integer(ret_call, launch->classes);
    add_float(ret_call, launch->scale);
    return set_blocks(ret_call, rows, fits ? threads : 1024, err);
}

/* --- AdamW --- */

int plan_adamw(const struct lab_launch *launch, struct cuda_capacity capacity,
               enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)capacity;
    (void)ret_way;
    int64_t count = lab_tensor_count(&launch->out);
    *ret_call = call_of(launch, CUDA_KERNEL_adamw);
    add_inputs(ret_call, launch, 3);
    add_pointer(ret_call, &launch->also);
    add_integer(ret_call, count);
    add_integer(ret_call, launch->decayed);
    add_float(ret_call, launch->adam.beta1);
    add_float(ret_call, launch->adam.beta2);
    add_float(ret_call, launch->adam.epsilon);
    add_float(ret_call, launch->decay);
    return set_blocks(ret_call, quotient_up(count, 1024), 256, err);
}
