/*
 * plan_gemm.c: matrix products, alone and with what is fused to them. cuBLASLt does them, unless a
 * launch asks for a configuration of a kernel of our own, or that for Hopper is known to be faster.
 * Where it can't do the product, the one for every GPU can be asked for.
 */
#include "device/cuda/plan/plan_internal.h"

int plan_gemm(const struct lab_launch *launch, struct cuda_capacity capacity,
              enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    if (find_gemm_hopper_tunable(launch, capacity))
        return plan_gemm_hopper(launch, capacity, ret_way, ret_call, err);
    if (launch->tuning.count)
        return plan_gemm_mma(launch, capacity, ret_way, ret_call, err);
    *ret_way = CUDA_WAY_GEMM;
    return 0;
}

const struct cuda_tunable *find_gemm_tunable(const struct lab_launch *launch,
                                             struct cuda_capacity capacity) {
    const struct cuda_tunable *hopper = find_gemm_hopper_tunable(launch, capacity);
    return hopper ? hopper : find_gemm_mma_tunable(launch, capacity);
}
