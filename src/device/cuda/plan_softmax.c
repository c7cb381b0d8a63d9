/* plan_softmax.c: softmax over rows. */
#include "device/cuda/plan_internal.h"

#define SOFTMAX_HELD_MAX 32 /* elements that a thread keeps; 1024 threads have 64 registers each */

int plan_softmax(const struct lab_launch *launch, struct cuda_room room, enum cuda_way *ret_way,
                 struct cuda_call *ret_call, struct lab_err *err) {
    (void)ret_way;
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

const struct cuda_tunable *find_softmax_tunable(const struct lab_launch *launch,
                                                struct cuda_room room) {
    (void)launch, (void)room;
    return NULL;
}
