/*
 * test_kernel_plan.c: how ops become kernels on a GPU, decided without one: every op in every dtype
 * has a kernel, a library's product or a composition; grids and arguments are what a GPU takes; and
 * vectors are only used where memory allows them.
 */
#include "kernel_plan.h"

#include "device/cuda/gemm.h"
#include "device/tunable.h"

static void every_op_in_every_dtype_has_a_way_on(struct cuda_capacity room) {
    for (int id = 0; id < LAB_OP_COUNT; id++)
        for (int dtype = 0; dtype < 4; dtype++) {
            const struct lab_op *op = lab_op_get((enum lab_op_id)id);
            struct lab_launch launch;
            if (!cuda_supports((enum lab_op_id)id, (enum lab_dtype)dtype, room.capability)) {
                assert_true(op->lower || op->optional);
                continue;
            }
            for (int i = 0;
                 lab_op_example((enum lab_op_id)id, i, (enum lab_dtype)dtype, &launch) == 0; i++) {
                struct cuda_call call;
                enum cuda_way way = plan_on(room, &launch, &call);
                if (way == CUDA_WAY_KERNEL) {
                    assert_int_equal(call.variant.dtype, dtype);
                    check_call(room, &call);
                }
            }
        }
}

LAB_TEST(every_op_in_every_dtype_has_a_way) {
    every_op_in_every_dtype_has_a_way_on(a100);
    every_op_in_every_dtype_has_a_way_on(h200);
}

/* What can be tuned of a launch on such a GPU; NULL = nothing. */
static const struct lab_tunable *tunable_on(struct cuda_capacity room,
                                            const struct lab_launch *launch,
                                            struct lab_device_ref *ret_ref) {
    *ret_ref =
        (struct lab_device_ref){.compute_units = room.sm_count, .capability = room.capability};
    return cuda_tunable(&(struct lab_tunable_place){NULL, ret_ref}, launch);
}

/* Rows that a grid has room for, of a kernel whose rows have THREADS threads each. */
static int64_t room_for_rows(const struct cuda_call *call) {
    const struct cuda_kernel_row *row = &cuda_kernel_rows[call->variant.kernel];
    for (int i = 0; row->macros[i]; i++)
        if (strcmp(row->macros[i], "THREADS") == 0)
            return (int64_t)call->grid[0] * call->threads / call->variant.macros[i];
    return call->grid[0];
}

#define SOMEWHERE ((void *)(uintptr_t)4096) /* an address that is only reckoned with */

static int plan_products(struct lab_launch launch, struct cuda_capacity room,
                         struct cuda_part *parts, int *ret_count) {
    struct lab_err err = LAB_ERR_INIT;
    for (size_t i = 0; i < sizeof launch.in / sizeof *launch.in; i++)
        launch.in[i].data = SOMEWHERE;
    launch.out.data = SOMEWHERE;
    if (lab_op_get(launch.op)->also)
        launch.also = lab_op_get(launch.op)->also(&launch);
    return cuda_plan_parts(&launch, room, SOMEWHERE, parts, ret_count, &err);
}

/* Which kernels a launch reaches, as it is and in every legal configuration, and which with a last
 * block that rows don't fill: its warps without one must do nothing. */
static void reach_by(struct cuda_capacity room, struct lab_launch launch, bool *seen,
                     bool *shared) {
    struct lab_device_ref ref;
    const struct lab_tunable *tunable = tunable_on(room, &launch, &ref);
    const struct lab_tunable_place place = {NULL, &ref};
    int64_t rows = lab_tensor_rows(&launch.out), count = tunable ? lab_tunable_size(tunable) : 0;
    struct cuda_part parts[CUDA_PARTS];
    int part_count = 0;
    setenv("GPULAB_MLP_PRODUCTS", "1", 1);
    struct cuda_call call;
    if (plan_on(room, &launch, &call) == CUDA_WAY_PARTS)
        plan_products(launch, room, parts, &part_count);
    for (int i = 0; i < part_count; i++)
        seen[parts[i].call.variant.kernel] |= !parts[i].is_product;
    unsetenv("GPULAB_MLP_PRODUCTS");
    for (int64_t i = -1; i < count; i++) {
        if (i >= 0)
            launch.tuning = lab_tunable_at(tunable, i);
        if ((i >= 0 && lab_tuning_check(tunable, &place, &launch, &launch.tuning, NULL)) ||
            plan_on(room, &launch, &call) != CUDA_WAY_KERNEL)
            continue;
        seen[call.variant.kernel] = true;
        shared[call.variant.kernel] |= call.grid[0] < rows && room_for_rows(&call) > rows;
    }
}

static void reach(struct cuda_capacity room, enum lab_dtype dtype, bool *seen, bool *shared) {
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        struct lab_launch launch;
        if (cuda_supports((enum lab_op_id)id, dtype, room.capability))
            for (int i = 0; lab_op_example((enum lab_op_id)id, i, dtype, &launch) == 0; i++)
                reach_by(room, launch, seen, shared);
    }
}

/* What looks at kernels by the ops' examples, on every backend or under a sanitizer, sees all of
 * them but the sum over ranks, which is no op: tests/gpu has that. */
LAB_TEST(the_examples_reach_every_kernel_and_shared_blocks) {
    for (int dtype = 0; dtype < 4; dtype++) {
        bool seen[CUDA_KERNEL_COUNT] = {false}, shared[CUDA_KERNEL_COUNT] = {false};
        reach(a100, (enum lab_dtype)dtype, seen, shared);
        reach(h200, (enum lab_dtype)dtype, seen, shared);
        for (int kernel = 0; kernel < CUDA_KERNEL_COUNT; kernel++)
            if (!seen[kernel] && kernel != CUDA_KERNEL_sum &&
                cuda_kernel_rows[kernel].dtypes >> dtype & 1)
                fail_msg("no example reaches %s", cuda_kernel_rows[kernel].name);
        assert_true(shared[CUDA_KERNEL_layer_norm] && shared[CUDA_KERNEL_softmax]);
        assert_true(shared[CUDA_KERNEL_layer_norm_embed]);
        assert_true(shared[CUDA_KERNEL_patchify_layer_norm]);
    }
}

LAB_TEST(a_tensor_map_is_checked_before_the_driver_sees_it) {
    /* given rows of 4096 in bf16, moved in boxes of 64 by 128 */
    const struct cuda_map good = {.data = (void *)0x1000,
                                  .dtype = LAB_BF16,
                                  .rank = 2,
                                  .sizes = {4096, 1000},
                                  .strides_bytes = {8192},
                                  .box = {64, 128},
                                  .swizzle_bytes = 128};
    ASSERT_OK(cuda_map_check(&good, err));
    /* then what the hardware can't do is named */
    struct cuda_map map = good;
    map.data = (void *)0x1008;
    ASSERT_SAYS(cuda_map_check(&map, err), "at a multiple of 16 bytes");
    map = good;
    map.strides_bytes[0] = 8194;
    ASSERT_SAYS(cuda_map_check(&map, err), "multiples of 16 bytes, not of 8194");
    map = good;
    map.box[1] = 257;
    ASSERT_SAYS(cuda_map_check(&map, err), "not of 257");
    map = good;
    map.box[0] = 128; /* 256 bytes of a row don't fit a swizzle of 128 */
    ASSERT_FAILS(cuda_map_check(&map, err), LAB_ERR_UNSUPPORTED,
                 "rows of 256 bytes swizzled by 128");
}

/* All configurations of one launch on one GPU; returns how many are legal. */
static int try_configurations(struct cuda_capacity room, struct lab_launch launch) {
    struct lab_device_ref ref;
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_tunable *tunable = tunable_on(room, &launch, &ref);
    const struct lab_tunable_place place = {NULL, &ref};
    struct cuda_call call;
    int legal = 0;
    assert_non_null(tunable);
    tunable->fallback(&place, &launch, &launch.tuning);
    if (lab_tuning_check(tunable, &place, &launch, &launch.tuning, &err))
        fail_msg("the default of %s isn't legal: %s", tunable->kernel, err.text);
    for (int64_t i = 0; i < lab_tunable_size(tunable); i++) {
        launch.tuning = lab_tunable_at(tunable, i);
        if (lab_tuning_check(tunable, &place, &launch, &launch.tuning, &err)) {
            assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
            err = (struct lab_err)LAB_ERR_INIT;
            continue;
        }
        if (plan_on(room, &launch, &call) == CUDA_WAY_KERNEL) /* else the library */
            check_call(room, &call);
        legal++;
    }
    return legal;
}

LAB_TEST(every_legal_configuration_fits_the_gpu) {
    static const struct cuda_capacity rooms[] = {
        {108, 163 << 10, 80}, {128, 99 << 10, 89}, {132, 227 << 10, 90}};
    static const enum lab_op_id ops[] = {LAB_OP_FLASH_ATTENTION, LAB_OP_GEMM};
    for (int i = 0; i < 3 * 2 * 4; i++) {
        struct lab_launch launch;
        enum lab_dtype dtype = (enum lab_dtype)(i % 4);
        enum lab_op_id op = ops[i / 4 % 2];
        for (int example = 5; lab_op_example(op, example, dtype, &launch) == 0; example += 2)
            assert_true(try_configurations(rooms[i / 8], launch) >= 3);
    }
}

static struct lab_launch flash_attention(int64_t tokens, int64_t width, enum lab_dtype dtype) {
    const int64_t queries[] = {2, tokens, 16, width}, keys[] = {2, tokens, 4, width};
    struct lab_tensor kv = lab_tensor(NULL, dtype, 4, keys);
    return (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION,
        .in = {lab_tensor(NULL, dtype, 4, queries), kv, kv},
        .out = lab_tensor(NULL, dtype, 4, queries),
        .scale = 0.125f,
        .causal = true,
    };
}

LAB_TEST(a_configuration_that_does_not_fit_is_refused_with_the_reason) {
    struct lab_launch launch = flash_attention(4096, 256, LAB_FP16);
    struct lab_device_ref ref;
    const struct lab_tunable *tunable = tunable_on(rtx4090, &launch, &ref);
    const struct lab_tunable_place place = {NULL, &ref};
    const struct lab_tuning large = {4, {128, 128, 8, 1}}, uneven = {4, {32, 32, 4, 1}},
                            many = {4, {128, 64, 4, 1}};
    ASSERT_SAYS(lab_tuning_check(tunable, &place, &launch, &large, err),
                "196608 bytes of shared memory, a block here has 101376");
    ASSERT_SAYS(lab_tuning_check(tunable, &place, &launch, &uneven, err),
                "a warp has 16 or 32 queries");
    ASSERT_SAYS(lab_tuning_check(tunable, &place, &launch, &many, err), "320 registers for sums");
    /* and what the GPU can't count is refused by the plan */
    struct cuda_call call;
    enum cuda_way way = 0;
    launch = flash_attention((int64_t)1 << 31, 64, LAB_FP16);
    ASSERT_FAILS(cuda_plan(&launch, rtx4090, &way, &call, err), LAB_ERR_UNSUPPORTED, "");
}

LAB_TEST(attention_moves_16_bytes_where_memory_allows_it) {
    struct cuda_call call;
    struct lab_launch launch = flash_attention(1000, 256, LAB_FP16);
    plan_on(rtx4090, &launch, &call);
    assert_string_equal(name_of(&call), "flash_attention_mma fp16 WIDTH=256 CAUSAL=1 VECTOR=1 "
                                        "BLOCK_M=64 BLOCK_N=64 WARPS=4 STAGES=1 LSE=0");
    assert_int_equal(call.grid[0], 16 * 16 * 2);
    assert_int_equal(call.shared_bytes, (64 + 2 * 64) * 512);
    launch.in[2].data = (void *)0x1002;
    plan_on(rtx4090, &launch, &call);
    assert_int_equal(call.variant.macros[2], 0);
    /* rows of floats are a piece longer */
    launch = flash_attention(1000, 64, LAB_FP32);
    plan_on(rtx4090, &launch, &call);
    assert_int_equal(call.shared_bytes, (64 + 2 * 32) * (256 + 16));
}

LAB_TEST(our_own_product_is_done_where_a_configuration_is_asked_for) {
    struct cuda_call call;
    struct lab_launch launch = {
        .op = LAB_OP_GEMM_BIAS_ADD,
        .in = {lab_tensor_matrix(NULL, LAB_BF16, 50, 512),
               lab_tensor_matrix(NULL, LAB_BF16, 2048, 512),
               lab_tensor_vector((void *)0x80002, LAB_BF16, 2048),
               lab_tensor_matrix((void *)0x2000, LAB_BF16, 50, 2048)},
        .out = lab_tensor_matrix((void *)0x2000, LAB_BF16, 50, 2048),
        .transpose_b = true,
    };
    assert_int_equal(plan_on(a100, &launch, &call), CUDA_WAY_GEMM);
    launch.tuning = (struct lab_tuning){6, {64, 128, 32, 3, 2, 2}};
    assert_int_equal(plan_on(a100, &launch, &call), CUDA_WAY_KERNEL);
    assert_string_equal(name_of(&call), "gemm_mma bf16 LAYOUT=2 EPILOGUE=5 VECTOR=1 BLOCK_M=64 "
                                        "BLOCK_N=128 BLOCK_K=32 STAGES=3 WARPS_M=2 WARPS_N=2");
    assert_int_equal(call.grid[0], 16);
    assert_int_equal(call.arguments[3], 0x2000);
    /* a residual that begins elsewhere is moved element by element, a bias always is */
    launch.in[3].data = launch.out.data = (void *)0x2002;
    plan_on(a100, &launch, &call);
    assert_int_equal(call.variant.macros[2], 0);
}

static struct lab_launch mlp_step(struct lab_mlp mlp) {
    struct lab_tensor state = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_state_count(&mlp));
    mlp.rows = mlp.batch;
    return (struct lab_launch){
        .op = LAB_OP_MLP_STEP,
        .in = {lab_tensor_matrix(NULL, LAB_FP32, 4 * mlp.batch, mlp.widths[0]),
               lab_tensor_matrix(NULL, LAB_FP32, 4 * mlp.batch, mlp.widths[mlp.width_count - 1]),
               state, lab_tensor_vector(NULL, LAB_FP32, lab_mlp_work_count(&mlp)),
               lab_tensor_vector(NULL, LAB_FP32, lab_mlp_gradient_count(&mlp))},
        .out = state,
        .mlp = mlp,
        .adam = LAB_ADAM,
        .compute = LAB_TF32,
    };
}

/* Blocks that wait for each other must all be there: one on each multiprocessor, whatever the
 * shape. */
LAB_TEST(a_training_step_is_one_kernel_on_all_multiprocessors) {
    static const struct cuda_capacity slice = {64, 227 << 10, 90};
    struct cuda_call call;
    const struct lab_mlp medium = {
        .widths = {50, 256, 128, 64, 3}, .width_count = 5, .batch = 128, .rows = 128};
    struct lab_mlp large = {
        .widths = {50, 1024, 1024, 512, 512, 256, 3}, .width_count = 7, .batch = 16, .rows = 16};
    /* given a model that fits into a block, then its widths are the kernel's */
    struct lab_launch launch = mlp_step(medium);
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    assert_string_equal(name_of(&call),
                        "mlp_rows tf32 MODE=7 W0=50 W1=256 W2=128 W3=64 W4=3 W5=0 W6=0 W7=0");
    assert_int_equal(call.grid[0], 132);
    check_call(h200, &call);
    plan_on(slice, &launch, &call);
    assert_int_equal(call.grid[0], 64);
    /* but one that is told them before 9.0, or where tensors lie anywhere */
    plan_on(a100, &launch, &call);
    assert_string_equal(name_of(&call), "mlp tf32 MODE=7");
    assert_int_equal(call.grid[0], 108);
    launch.out.data = launch.in[2].data = (void *)0x1004;
    plan(&launch, &call);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_mlp);
    /* a large one is read by all blocks together, in small tiles for 16 rows */
    launch = mlp_step(large);
    plan(&launch, &call);
    assert_string_equal(
        name_of(&call),
        "mlp_wide tf32 MODE=7 W0=50 W1=1024 W2=1024 W3=512 W4=512 W5=256 W6=3 W7=0 FEW=1");
    assert_int_equal(call.grid[0], 132);
    check_call(h200, &call);
    /* and one of odd widths by the kernel that is told them */
    large.widths[1] = 1000;
    launch = mlp_step(large);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "mlp tf32 MODE=7");
    check_call(h200, &call);
    /* and what the kernel couldn't count is refused */
    enum cuda_way way;
    large.batch = large.rows = (int64_t)1 << 31;
    launch = mlp_step(large);
    ASSERT_FAILS(cuda_plan(&launch, h200, &way, &call, err), LAB_ERR_UNSUPPORTED, "");
}

LAB_TEST(a_training_step_of_many_rows_is_a_librarys_products_and_kernels_between_them) {
    static const int rows[] = {[LAB_FP32] = 896, [LAB_TF32] = 384, [LAB_BF16] = 192};
    struct lab_mlp large = {.widths = {50, 1024, 1024, 512, 512, 256, 3}, .width_count = 7};
    struct cuda_part parts[CUDA_PARTS];
    struct cuda_call call;
    for (int dtype = LAB_FP32; dtype <= LAB_BF16; dtype++) {
        large.batch = rows[dtype] - 1;
        struct lab_launch launch = mlp_step(large);
        launch.compute = (enum lab_dtype)dtype;
        assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
        large.batch = rows[dtype];
        launch = mlp_step(large);
        launch.compute = (enum lab_dtype)dtype;
        assert_int_equal(plan(&launch, &call), CUDA_WAY_PARTS);
        int count = 0, products = 0, own = 0;
        assert_int_equal(plan_products(launch, h200, parts, &count), 0);
        for (int i = 0; i < count; i++) {
            products += parts[i].is_product;
            if (parts[i].is_product)
                continue;
            check_call(h200, &parts[i].call);
            own += parts[i].call.variant.kernel == CUDA_KERNEL_gemm_hopper;
        }
        assert_int_equal(count, 26);
        assert_int_equal(products + own, 14);
        /* what comes before ReLU has sums that are rounded, where the library's are cut off */
        assert_int_equal(own, dtype == LAB_TF32 ? 5 : 0);
        assert_string_equal(name_of(&parts[count - 1].call) + strlen("mlp_finish xxxx "),
                            "MODE=7 W0=50 W1=1024 W2=1024 W3=512 W4=512 W5=256 W6=3 W7=0");
    }
}

/* Its blocks wait for those of other ranks: no more than run at once, and the same number on
 * all. */
LAB_TEST(a_sum_over_ranks_has_a_block_on_each_multiprocessor_at_most) {
    struct cuda_sum_arguments arguments = {.count = 1 << 21, .rank = 3};
    struct cuda_call call;
    for (int ranks = 2; ranks <= 16; ranks++) {
        struct cuda_variant variant = cuda_sum_variant(ranks, LAB_FP32);
        cuda_plan_sum(&variant, &arguments, 32, &call);
        assert_int_equal(call.grid[0], 32);
        check_call(h200, &call);
        assert_int_equal(call.arguments[5], 3);
    }
    /* given a short vector, then no block is without work */
    struct cuda_variant variant = cuda_sum_variant(4, LAB_FP32);
    arguments.count = 1;
    cuda_plan_sum(&variant, &arguments, 32, &call);
    assert_int_equal(call.grid[0], 1);
    arguments.count = (int64_t)2 * 4 * 4 * 512 + 1;
    cuda_plan_sum(&variant, &arguments, 32, &call);
    assert_int_equal(call.grid[0], 3);
}

LAB_TEST(only_the_exact_gelu_of_fp32_is_composed) {
    assert_false(cuda_supports(LAB_OP_GEMM_BIAS_GELU, LAB_FP32, 90));
    assert_true(cuda_supports(LAB_OP_GEMM_BIAS_GELU, LAB_TF32, 90));
    assert_true(cuda_supports(LAB_OP_GEMM_BIAS, LAB_FP32, 90));
}

static struct lab_launch layer_norm(int64_t rows, int64_t columns, enum lab_dtype dtype) {
    return (struct lab_launch){
        .op = LAB_OP_LAYER_NORM,
        .in = {lab_tensor_matrix(NULL, dtype, rows, columns),
               lab_tensor_vector(NULL, dtype, columns), lab_tensor_vector(NULL, dtype, columns)},
        .out = lab_tensor_matrix(NULL, dtype, rows, columns),
        .epsilon = 1e-5f,
    };
}

LAB_TEST(vectors_need_aligned_rows) {
    struct cuda_call call;
    /* given rows of 512 in bf16, a multiple of 16 bytes */
    struct lab_launch launch = layer_norm(50, 512, LAB_BF16);
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    assert_string_equal(name_of(&call), "layer_norm bf16 COLUMNS=512 THREADS=32 VECTOR=1");
    /* when one tensor begins elsewhere, then elements are moved one by one */
    launch.in[1].data = (void *)0x1002;
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "layer_norm bf16 COLUMNS=512 THREADS=32 VECTOR=0");
    /* and so are rows of 513 */
    launch = layer_norm(50, 513, LAB_BF16);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "layer_norm bf16 COLUMNS=513 THREADS=32 VECTOR=0");
}

LAB_TEST(few_rows_are_spread_and_many_share_blocks) {
    struct cuda_call call;
    struct lab_launch launch = layer_norm(50, 512, LAB_BF16);
    plan(&launch, &call);
    assert_int_equal(call.grid[0], 50);
    assert_int_equal(call.threads, 32);
    launch = layer_norm(64 * 197 + 1, 512, LAB_BF16);
    plan(&launch, &call);
    assert_int_equal(call.grid[0], 16 * 197 + 1);
    assert_int_equal(call.threads, 128);
}

LAB_TEST(rows_beyond_the_registers_have_kernels_of_their_own) {
    struct cuda_call call;
    struct lab_launch launch = layer_norm(3, 100000, LAB_FP32);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "layer_norm_long fp32");
    check_call(h200, &call);
    /* a fused one is done as its parts */
    struct lab_launch patches = {
        .op = LAB_OP_PATCHIFY_LAYER_NORM,
        .in = {lab_tensor(NULL, LAB_FP32, 4, (int64_t[]){2, 3, 256, 256}),
               lab_tensor_vector(NULL, LAB_FP32, 196608),
               lab_tensor_vector(NULL, LAB_FP32, 196608)},
        .out = lab_tensor_matrix(NULL, LAB_FP32, 2, 196608),
        .patch = 256,
        .epsilon = 1e-5f,
    };
    assert_int_equal(plan(&patches, &call), CUDA_WAY_LOWER);
}

static struct lab_launch attention(int64_t images, int64_t tokens, int64_t heads, int64_t width,
                                   enum lab_dtype dtype) {
    return (struct lab_launch){
        .op = LAB_OP_ATTENTION,
        .in = {lab_tensor_matrix(NULL, dtype, images * tokens, 3 * heads * width)},
        .out = lab_tensor_matrix(NULL, dtype, images * tokens, heads * width),
        .tokens = tokens,
        .heads = heads,
        .scale = 0.125f,
    };
}

LAB_TEST(heads_of_64_take_the_matrix_units) {
    struct cuda_call call;
    struct lab_launch launch = attention(10, 50, 8, 64, LAB_BF16);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "attention bf16 STAGES=1");
    assert_int_equal(call.grid[0], 1);
    launch = attention(10, 197, 8, 64, LAB_TF32);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "attention tf32 STAGES=1");
    assert_int_equal(call.grid[0], 4);
    assert_int_equal(call.grid[1], 8);
    assert_int_equal(call.grid[2], 10);
    launch = attention(10, 197, 8, 64, LAB_BF16);
    plan_on(rtx4090, &launch, &call);
    assert_string_equal(name_of(&call), "attention bf16 STAGES=2");
    /* and what they can't do, the plain kernel does: other widths, a scale below 0 */
    launch = attention(10, 197, 8, 32, LAB_BF16);
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "attention_any bf16");
    assert_int_equal(call.shared_bytes, (200 + 32) * 4); /* both rounded up to fours */
    launch = attention(10, 197, 8, 64, LAB_BF16);
    launch.scale = -1;
    plan(&launch, &call);
    assert_string_equal(name_of(&call), "attention_any bf16");
}

LAB_TEST(longer_heads_of_64_are_packed_rows_to_hopper) {
    struct cuda_call call;
    struct lab_launch launch = attention(10, 197, 8, 64, LAB_BF16);
    launch.in[0].data = (void *)0x10000;
    plan(&launch, &call);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_flash_attention_hopper);
    assert_int_equal(call.map_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct cuda_map *map = &call.maps[i];
        assert_ptr_equal(map->data, (char *)0x10000 + 2 * i * 8 * 64);
        assert_int_equal(map->strides_bytes[0], 2 * 3 * 8 * 64); /* token to token: a whole row */
        assert_int_equal(map->strides_bytes[2], 2 * 64);         /* head to head */
        assert_int_equal(map->strides_bytes[3], 2 * 3 * 8 * 64 * 197);
    }
}

LAB_TEST(what_no_kernel_can_do_is_refused) {
    struct cuda_call call;
    enum cuda_way way = 0;
    struct lab_launch launch = attention(1, 100000, 1, 32, LAB_FP32);
    ASSERT_FAILS(cuda_plan(&launch, h200, &way, &call, err), LAB_ERR_UNSUPPORTED, "100000 tokens");
    launch = attention(70000, 2, 1, 64, LAB_FP32);
    ASSERT_FAILS(cuda_plan(&launch, h200, &way, &call, err), LAB_ERR_UNSUPPORTED, "70000 blocks");
}

LAB_TEST(products_are_distinct_by_shape_and_alignment) {
    struct lab_launch launch = {
        .op = LAB_OP_GEMM_BIAS_ADD,
        .in = {lab_tensor_matrix((void *)0x1000, LAB_BF16, 50, 512),
               lab_tensor_matrix((void *)0x20000, LAB_BF16, 2048, 512),
               lab_tensor_vector((void *)0x40000, LAB_BF16, 2048),
               lab_tensor_matrix((void *)0x50010, LAB_BF16, 50, 2048)},
        .out = lab_tensor_matrix((void *)0x90002, LAB_BF16, 50, 2048),
        .transpose_b = true,
    };
    struct cuda_gemm_key key = cuda_gemm_key_of(&launch);
    assert_int_equal(key.m, 50);
    assert_int_equal(key.n, 2048);
    assert_int_equal(key.k, 512);
    assert_int_equal(key.aligned[CUDA_GEMM_A], 8);
    assert_int_equal(key.aligned[CUDA_GEMM_C], 4);
    assert_int_equal(key.aligned[CUDA_GEMM_D], 1);
    assert_true(cuda_gemm_adds(LAB_OP_GEMM_ADD) && !cuda_gemm_has_bias(LAB_OP_GEMM_ADD));
    assert_true(cuda_gemm_adds(LAB_OP_GEMM_BIAS_ADD) && cuda_gemm_has_bias(LAB_OP_GEMM_BIAS_ADD));
    assert_false(cuda_gemm_adds(LAB_OP_GEMM_BIAS_GELU));
}
