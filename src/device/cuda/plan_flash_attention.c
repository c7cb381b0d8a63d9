/* plan_flash_attention.c: attention over separate queries, keys and values: no kernel does it. */
#include "device/cuda/plan_internal.h"

bool cuda_flash_attention_runs_on(enum lab_dtype dtype, int capability) {
    (void)dtype, (void)capability;
    return false;
}

int plan_flash_attention(const struct lab_launch *launch, struct cuda_room room,
                         enum cuda_way *ret_way, struct cuda_call *ret_call, struct lab_err *err) {
    (void)launch, (void)room, (void)ret_way, (void)ret_call;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "no kernel does flash_attention on GPUs");
}

const struct cuda_tunable *find_flash_attention_tunable(const struct lab_launch *launch,
                                                        struct cuda_room room) {
    (void)launch, (void)room;
    return NULL;
}
