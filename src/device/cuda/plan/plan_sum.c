/*
 * plan_sum.c: the kernel that sums over ranks (kernels/sum.cu): one block on each multiprocessor,
 * which is as fast as more of them, or fewer where a vector is short.
 */
#include "device/cuda/plan/plan_internal.h"

#define THREADS 512
/* Loads that a thread has on their way, of 16 bytes: more are no faster. */
#define LOADS 8

struct cuda_variant cuda_sum_variant(int ranks, enum lab_dtype dtype) {
    int unroll = LOADS / ranks;
    return (struct cuda_variant){.kernel = CUDA_KERNEL_sum,
                                 .dtype = dtype,
                                 .macros = {ranks, THREADS, unroll > 1 ? unroll : 1}};
}

void cuda_plan_sum(const struct cuda_variant *variant, const struct cuda_sum_arguments *arguments,
                   int sm_count, struct cuda_call *ret_call) {
    int64_t threads = variant->macros[1];
    /* those that have 16 bytes of the rank's share for each thread */
    int64_t chunk = 16 / (int64_t)lab_dtype_bytes(variant->dtype);
    int64_t useful = quotient_up(arguments->count, chunk * variant->macros[0] * threads);
    int64_t most = sm_count < CUDA_SUM_SEATS ? sm_count : CUDA_SUM_SEATS;
    *ret_call = (struct cuda_call){.variant = *variant, .grid = {1, 1, 1}};
    add_integer(ret_call, (int64_t)arguments->seats);
    add_integer(ret_call, (int64_t)arguments->vector);
    add_integer(ret_call, arguments->count);
    add_integer(ret_call, (int64_t)arguments->notice);
    add_integer(ret_call, (int64_t)arguments->limit_ns);
    add_integer(ret_call, arguments->rank);
    ret_call->grid[0] = (unsigned)(useful < most ? useful : most);
    ret_call->threads = (unsigned)threads;
}
