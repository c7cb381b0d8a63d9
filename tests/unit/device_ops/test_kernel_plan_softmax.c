/*
 * test_kernel_plan_softmax.c: how softmax is done on a GPU, decided without one: what a row goes
 * to, by default and as it was tuned, and what is refused.
 */
#include "kernel_plan.h"

#include "device/tunable.h"

static struct lab_launch softmax(int64_t rows, int64_t columns, enum lab_dtype dtype) {
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, rows, columns);
    return (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {x}, .out = x};
}

/* A row stays on the chip as long as a part of it can hold it. */
LAB_TEST(rows_of_softmax_go_to_lanes_blocks_or_clusters) {
    struct cuda_call call;
    struct lab_launch launch = softmax(100000, 197, LAB_BF16);
    plan(&launch, &call);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_softmax);
    assert_true(call.variant.macros[0] <= 32 && call.grid[0] < 100000);
    launch = softmax(4096, 4096, LAB_BF16);
    plan(&launch, &call);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_softmax);
    assert_int_equal(call.threads, call.variant.macros[0]);
    assert_int_equal(call.grid[0], 4096);
    launch = softmax(4096, 131072, LAB_BF16);
    plan(&launch, &call);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_softmax_wide);
    assert_true(call.cluster > 1);
    /* GPUs without clusters read such a row twice, and so do all a longer one */
    plan_on(a100, &launch, &call);
    assert_string_equal(name_of(&call), "softmax_long bf16");
    launch = softmax(1, 1400001, LAB_BF16);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "softmax_long bf16");
}

LAB_TEST(softmax_is_done_as_it_was_tuned) {
    const struct lab_device_ref ref = {.name = "cuda:0", .compute_units = 132, .capability = 90};
    const struct lab_tunable_place place = {.ref = &ref};
    struct cuda_call call;
    /* given rows of 4096 pieces of 16 bytes */
    struct lab_launch launch = softmax(8192, 32768, LAB_BF16);
    const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
    assert_non_null(tunable);
    assert_int_equal(strlen(tunable->version), 16); /* a hash of the kernel's text */
    /* when a configuration is asked for, then that is what is launched */
    ASSERT_OK(lab_tuning_parse(tunable, &place, &launch,
                               "threads=256,cluster=2,resident=512,ahead=1,turns=0,past=1",
                               &launch.tuning, err));
    ASSERT_OK(lab_tuning_check(tunable, &place, &launch, &launch.tuning, err));
    plan(&launch, &call);
    assert_string_equal(name_of(&call),
                        "softmax_wide bf16 THREADS=256 PIECES=8 VECTOR=2 BLOCKS=2 AHEAD=1 PAST=1 "
                        "CLUSTER=2");
    assert_int_equal(call.grid[0], 132 * 2);
    assert_int_equal(call.shared_bytes, 32768);
    assert_true(call.persistent);
    /* or with blocks that do four rows each */
    launch.tuning.values[4] = 4;
    plan(&launch, &call);
    assert_int_equal(call.grid[0], 2 * 2048);
    assert_false(call.persistent);
    /* but not where memory lies so that its pieces are single elements, too many for 512 threads */
    launch.out.data = (void *)0x1002;
    plan(&launch, &call);
    assert_int_equal(call.variant.macros[2], 0);
    assert_true(call.variant.macros[0] * call.variant.macros[6] > 512);
    check_call(h200, &call);
}

LAB_TEST(configurations_of_softmax_that_do_not_fit_are_refused) {
    static const struct {
        int capability;
        int64_t columns;
        const char *config, *reason;
    } cases[] = {
        {80, 32768, "cluster=2,threads=512", "no clusters"},
        {90, 4096, "cluster=2,threads=128", "too short for that many blocks"},
        {90, 65536, "cluster=1,threads=64,resident=0,ahead=0", "too few for rows of 65536"},
        {90, 197, "threads=1024,cluster=1", "too many for a row of 197"},
        {90, 65536, "threads=512,resident=0,ahead=1", "needs resident"},
        {90, 65536, "threads=512,resident=512,ahead=0", "only where rows come ahead"},
        {90, 65536, "threads=512,cluster=1,resident=1024,ahead=0", "registers"},
        {89, 65536, "threads=512,cluster=1,resident=512,ahead=1", "shared memory"},
        {90, 65536, "threads=512,cluster=1,resident=512,ahead=1,turns=4", "enough rows"},
        {90, 4096, "threads=128,resident=1024,ahead=1", "no gain for rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct lab_device_ref ref = {
            .name = "cuda:0", .compute_units = 132, .capability = cases[i].capability};
        const struct lab_tunable_place place = {.ref = &ref};
        struct lab_err err = LAB_ERR_INIT;
        struct lab_launch launch = softmax(100, cases[i].columns, LAB_BF16);
        struct lab_tuning tuning;
        const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
        if (lab_tuning_parse(tunable, &place, &launch, cases[i].config, &tuning, &err))
            fail_msg("%s", err.text);
        assert_int_equal(lab_tuning_check(tunable, &place, &launch, &tuning, &err), -1);
        if (!strstr(err.text, cases[i].reason))
            fail_msg("%s: '%s' lacks '%s'", cases[i].config, err.text, cases[i].reason);
    }
}

/* Whatever the shape: what a launch without a tuning gets is legal, and so is its call. */
LAB_TEST(the_default_of_softmax_is_legal) {
    for (int64_t columns = 1; columns < 1500000; columns += 1 + columns / 3)
        for (int dtype = 0; dtype < 4; dtype++)
            for (int i = 0; i < 2; i++) {
                struct cuda_capacity room = i ? h200 : a100;
                const struct lab_device_ref ref = {.name = "cuda:0",
                                                   .compute_units = room.sm_count,
                                                   .capability = room.capability};
                const struct lab_tunable_place place = {.ref = &ref};
                struct lab_err err = LAB_ERR_INIT;
                struct lab_launch launch = softmax(1000, columns, (enum lab_dtype)dtype);
                struct lab_tuning tuning;
                struct cuda_call call;
                const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
                plan_on(room, &launch, &call);
                check_call(room, &call);
                struct lab_launch apart = launch;
                apart.out.data = (void *)0x1004; /* x lies otherwise */
                plan_on(room, &apart, &call);
                check_call(room, &call);
                if (!tunable)
                    continue;
                tunable->fallback(&place, &launch, &tuning);
                if (lab_tuning_check(tunable, &place, &launch, &tuning, &err))
                    fail_msg("%lld columns: %s", (long long)columns, err.text);
            }
}
