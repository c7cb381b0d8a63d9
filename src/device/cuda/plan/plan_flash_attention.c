/* plan_flash_attention.c: attention over separate queries, keys and values, and who does it. */
#include "device/cuda/plan/plan_internal.h"

bool cuda_flash_attention_runs_on(enum lab_dtype dtype, int capability) {
    (void)dtype; /* mma.sync does them all */
    return cuda_kernel_runs_on(CUDA_KERNEL_flash_attention_mma, capability);
}

int plan_flash_attention(const struct lab_launch *launch, struct cuda_capacity capacity,
                         enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    if (find_flash_attention_hopper_tunable(launch, capacity))
        return plan_flash_attention_hopper(launch, capacity, ret_way, ret_call, err);
    return plan_flash_attention_mma(launch, capacity, ret_way, ret_call, err);
}

const struct cuda_tunable *find_flash_attention_tunable(const struct lab_launch *launch,
                                                        struct cuda_capacity capacity) {
    const struct cuda_tunable *hopper = find_flash_attention_hopper_tunable(launch, capacity);
    return hopper ? hopper : find_flash_attention_mma_tunable(launch, capacity);
}
