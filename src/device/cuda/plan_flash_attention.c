/* plan_flash_attention.c: attention over separate queries, keys and values, and who does it. */
#include "device/cuda/plan_internal.h"

bool cuda_flash_attention_runs_on(enum lab_dtype dtype, int capability) {
    return cuda_kernel_runs_on(CUDA_KERNEL_flash_attention_hopper, capability) &&
           cuda_kernel_rows[CUDA_KERNEL_flash_attention_hopper].dtypes >> dtype & 1;
}

int plan_flash_attention(const struct lab_launch *launch, struct cuda_room room,
                         enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    if (find_flash_attention_hopper_tunable(launch, room))
        return plan_flash_attention_hopper(launch, room, ret_way, ret_call, err);
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "no kernel does flash_attention in %s with a scale of %g on this GPU",
                       lab_dtype_name(launch->out.dtype), (double)launch->scale);
}

const struct cuda_tunable *find_flash_attention_tunable(const struct lab_launch *launch,
                                                        struct cuda_room room) {
    return find_flash_attention_hopper_tunable(launch, room);
}
