/* plan_gemm.c: matrix products, alone and with what is fused to them: cuBLASLt does them all. */
#include "device/cuda/plan_internal.h"

int plan_gemm(const struct lab_launch *launch, struct cuda_room room, enum cuda_way *ret_way,
              struct cuda_call *ret_call, struct lab_err *err) {
    (void)launch, (void)room, (void)ret_call, (void)err;
    *ret_way = CUDA_WAY_GEMM;
    return 0;
}

const struct cuda_tunable *find_gemm_tunable(const struct lab_launch *launch,
                                             struct cuda_room room) {
    (void)launch, (void)room;
    return NULL;
}
