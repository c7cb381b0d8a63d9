/* kernel_plan.h: what tests of plans share: GPUs to plan for, and what holds for any call. */
#pragma once

#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan.h"

#include <string.h>

#include "test.h"

static const struct cuda_capacity h200 = {132, 227 << 10, 90}, a100 = {108, 163 << 10, 80},
                                  rtx4090 = {128, 99 << 10, 89};

static inline enum cuda_way plan_on(struct cuda_capacity room, const struct lab_launch *launch,
                                    struct cuda_call *ret_call) {
    struct lab_err err = LAB_ERR_INIT;
    enum cuda_way way = 0;
    struct lab_launch complete = *launch;
    *ret_call = (struct cuda_call){0};
    if (lab_launch_complete(&complete, &err) || cuda_plan(&complete, room, &way, ret_call, &err))
        fail_msg("%s: %s", lab_op_get(launch->op)->name, err.text);
    return way;
}

static inline enum cuda_way plan(const struct lab_launch *launch, struct cuda_call *ret_call) {
    return plan_on(h200, launch, ret_call);
}

/* What holds for any launch that such a GPU accepts. */
static inline void check_call(struct cuda_capacity room, const struct cuda_call *call) {
    const struct cuda_kernel_row *row = &cuda_kernel_rows[call->variant.kernel];
    struct lab_err err = LAB_ERR_INIT;
    assert_true(cuda_kernel_runs_on((enum cuda_kernel_id)call->variant.kernel, room.capability));
    assert_true(row->dtypes >> call->variant.dtype & 1);
    assert_int_equal(call->argument_count, strlen(row->arguments));
    assert_true(call->grid[0] >= 1 && call->grid[0] <= 0x7fffffffu);
    assert_true(call->grid[1] >= 1 && call->grid[1] <= 65535);
    assert_true(call->grid[2] >= 1 && call->grid[2] <= 65535);
    assert_true(call->threads >= 32 && call->threads <= 1024 && call->threads % 32 == 0);
    assert_true(call->shared_bytes <= (unsigned)room.shared_bytes_max);
    if (call->cluster > 1) {
        assert_true(room.capability >= 90 && call->cluster <= 16);
        assert_int_equal(call->grid[0] % call->cluster, 0);
    }
    int maps = 0;
    for (int i = 0; i < call->argument_count; i++)
        if (row->arguments[i] == 'm')
            assert_true(call->arguments[i] < (uint64_t)call->map_count && ++maps);
    assert_true(maps >= call->map_count);
    for (int i = 0; i < call->map_count; i++)
        if (cuda_map_check(&call->maps[i], &err))
            fail_msg("%s: %s", row->name, err.text);
    for (int i = 0; i < CUDA_MACROS; i++)
        if (!row->macros[i])
            for (; i < CUDA_MACROS; i++)
                assert_int_equal(call->variant.macros[i], 0); /* or equal ones would differ */
}

static inline const char *name_of(const struct cuda_call *call) {
    static char name[CUDA_VARIANT_NAME_BYTES];
    cuda_variant_name(&call->variant, name);
    return name;
}
