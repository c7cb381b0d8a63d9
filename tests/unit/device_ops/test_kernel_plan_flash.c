/*
 * test_kernel_plan_flash.c: flash attention on Hopper: which launches its kernel takes and which
 * are left to mma.sync, how its tensors are cut into boxes, and which tiles are legal; and the
 * kernels of its backward.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan.h"
#include "device/tunable.h"

#include <string.h>

#include "test.h"

static const struct cuda_capacity h200 = {132, 227 << 10, 90}, slice = {16, 227 << 10, 90};
static const struct cuda_capacity a100 = {108, 163 << 10, 80};
static const struct lab_device_ref h200_ref = {.compute_units = 132, .capability = 90};
static const struct lab_tunable_place place = {.ref = &h200_ref};

/* 2 images, 12 heads of queries and 4 of keys. */
static struct lab_launch attention(int64_t tokens, int64_t width, enum lab_dtype dtype) {
    const int64_t queries[] = {2, tokens, 12, width}, keys[] = {2, tokens, 4, width};
    struct lab_tensor kv = lab_tensor(NULL, dtype, 4, keys);
    return (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION,
        .in = {lab_tensor(NULL, dtype, 4, queries), kv, kv},
        .out = lab_tensor(NULL, dtype, 4, queries),
        .scale = 0.125f,
    };
}

static struct cuda_call plan_on(struct cuda_capacity room, struct lab_launch launch) {
    struct lab_err err = LAB_ERR_INIT;
    enum cuda_way way = CUDA_WAY_KERNEL;
    struct cuda_call call = {0};
    if (lab_launch_complete(&launch, &err) || cuda_plan(&launch, room, &way, &call, &err))
        fail_msg("%s", err.text);
    assert_int_equal(way, CUDA_WAY_KERNEL);
    return call;
}

static const char *kernel_of(struct cuda_call call) {
    return cuda_kernel_rows[call.variant.kernel].name;
}

LAB_TEST(hopper_takes_what_its_instructions_can_do) {
    struct lab_launch launch = attention(1000, 64, LAB_BF16);
    assert_string_equal(kernel_of(plan_on(h200, launch)), "flash_attention_hopper");
    /* and leaves to mma.sync: other dtypes, a scale that turns the order of scores, memory that TMA
     * can't read, other GPUs */
    assert_string_equal(kernel_of(plan_on(h200, attention(1000, 64, LAB_FP32))),
                        "flash_attention_mma");
    assert_string_equal(kernel_of(plan_on(a100, launch)), "flash_attention_mma");
    launch.scale = -0.125f;
    assert_string_equal(kernel_of(plan_on(h200, launch)), "flash_attention_mma");
    launch = attention(1000, 64, LAB_BF16);
    launch.in[1].data = (void *)0x1008;
    assert_string_equal(kernel_of(plan_on(h200, launch)), "flash_attention_mma");
}

LAB_TEST(a_tensor_is_cut_into_boxes_of_one_head) {
    /* given rows of 12 and 4 heads, each 96 wide: three times what a swizzle of 64 bytes takes */
    struct cuda_call call = plan_on(h200, attention(1000, 96, LAB_FP16));
    assert_int_equal(call.map_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct cuda_map *map = &call.maps[i];
        const uint64_t heads = i == 0 ? 12 : 4;
        const uint64_t sizes[] = {32, 1000, 3, heads, 2};
        const uint64_t strides[] = {heads * 192, 64, 192, heads * 192 * 1000};
        const uint32_t box[] = {32, (uint32_t)call.variant.macros[i == 0 ? 2 : 3], 3, 1, 1};
        ASSERT_OK(cuda_map_check(map, err));
        assert_memory_equal(map->sizes, sizes, sizeof sizes);
        assert_memory_equal(map->strides_bytes, strides, sizeof strides);
        assert_memory_equal(map->box, box, sizeof box);
        assert_int_equal(map->swizzle_bytes, 64);
    }
    assert_int_equal(plan_on(h200, attention(1000, 128, LAB_FP16)).maps[0].swizzle_bytes, 128);
}

LAB_TEST(the_grid_is_as_large_as_the_device_and_no_larger) {
    struct lab_launch launch = attention(4096, 128, LAB_BF16); /* 24 heads of 32 tiles */
    assert_int_equal(plan_on(h200, launch).grid[0], 132);
    assert_int_equal(plan_on(slice, launch).grid[0], 16);
    /* causal tiles go in twos: 3 tiles of a head are 2 */
    launch = attention(300, 128, LAB_BF16);
    assert_int_equal(plan_on(h200, launch).grid[0], 72);
    launch.causal = true;
    assert_int_equal(plan_on(h200, launch).grid[0], 48);
    /* a few tokens don't fill more than one warp group */
    assert_int_equal(plan_on(h200, attention(17, 128, LAB_BF16)).threads, 256);
}

LAB_TEST(every_default_is_legal) {
    static const int64_t tokens[] = {1, 17, 64, 65, 97, 197, 1000, 1024, 2048, 16384};
    static const int64_t widths[] = {64, 96, 128, 256};
    struct lab_err err = LAB_ERR_INIT;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++)
        for (int w = 0; w < 4; w++)
            for (int causal = 0; causal < 2; causal++) {
                struct lab_launch launch = attention(tokens[i], widths[w], LAB_BF16);
                launch.causal = causal;
                const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
                struct lab_tuning tuning;
                tunable->fallback(&place, &launch, &tuning);
                if (lab_tuning_check(tunable, &place, &launch, &tuning, &err))
                    fail_msg("%lld tokens, %lld wide: %s", (long long)tokens[i],
                             (long long)widths[w], err.text);
                assert_true(plan_on(h200, launch).shared_bytes <= 227 << 10);
            }
}

static void assert_refused(struct lab_launch launch, const char *text, const char *reason) {
    const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
    struct lab_tuning tuning = {0};
    ASSERT_OK(lab_tuning_parse(tunable, &place, &launch, text, &tuning, err));
    ASSERT_FAILS(lab_tuning_check(tunable, &place, &launch, &tuning, err), LAB_ERR_UNSUPPORTED,
                 reason);
}

LAB_TEST(tiles_that_do_not_fit_are_refused_with_the_reason) {
    struct lab_launch launch = attention(1000, 128, LAB_BF16);
    assert_refused(launch, "block_m=192,block_n=128,q_stages=1", "registers for values, of 128");
    assert_refused(launch, "block_n=160,q_stages=0", "need 216 registers");
    assert_refused(launch, "block_n=176,stages=3,q_stages=1", "bytes of shared memory");
    assert_refused(launch, "block_m=64,pingpong=1", "taking turns needs");
    assert_refused(attention(60, 128, LAB_BF16), "block_m=128,pingpong=0", "only 60 tokens");
}

LAB_TEST(tiles_are_larger_where_a_sequence_fills_them) {
    static const struct {
        int64_t width, tokens;
        bool causal;
        unsigned threads;
    } cases[] = {
        {64, 511, true, 384},   {64, 512, true, 512},  {64, 577, false, 384},
        {64, 1024, false, 512}, {96, 2047, true, 384}, {96, 2048, true, 512},
        {128, 4096, true, 384},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab_launch launch = attention(cases[i].tokens, cases[i].width, LAB_BF16);
        launch.causal = cases[i].causal;
        assert_int_equal(plan_on(h200, launch).threads, cases[i].threads);
    }
}

LAB_TEST(a_tuned_launch_is_done_as_the_tuning_says) {
    struct lab_launch launch = attention(1000, 64, LAB_FP16);
    char name[CUDA_VARIANT_NAME_BYTES];
    const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
    ASSERT_OK(lab_tuning_parse(tunable, &place, &launch,
                               "block_m=128,block_n=176,stages=2,q_stages=1,pingpong=0",
                               &launch.tuning, err));
    struct cuda_call call = plan_on(h200, launch);
    cuda_variant_name(&call.variant, name);
    assert_string_equal(name, "flash_attention_hopper fp16 WIDTH=64 CAUSAL=0 BLOCK_M=128 "
                              "BLOCK_N=176 STAGES=2 Q_STAGES=1 PINGPONG=0 LSE=0");
    assert_int_equal(call.threads, 384);
    assert_int_equal(call.shared_bytes, 2 * 64 * (128 + 4 * 176) + 256);
}

static struct lab_launch backward(int64_t tokens, int64_t width, enum lab_dtype dtype) {
    struct lab_launch launch = attention(tokens, width, dtype);
    launch.op = LAB_OP_FLASH_ATTENTION_BACKWARD;
    launch.in[3] = launch.in[4] = launch.in[0];
    launch.in[5] = lab_tensor(NULL, LAB_FP32, 3, (int64_t[]){2, 12, tokens});
    launch.out = lab_tensor(NULL, dtype, 4, (int64_t[]){2, tokens, 20, width});
    return launch;
}

static void plan_backward(struct cuda_capacity room, struct lab_launch launch,
                          struct cuda_part parts[CUDA_PARTS]) {
    struct lab_err err = LAB_ERR_INIT;
    enum cuda_way way = CUDA_WAY_KERNEL;
    struct cuda_call call;
    int count = 0;
    if (lab_launch_complete(&launch, &err) || cuda_plan(&launch, room, &way, &call, &err) ||
        cuda_plan_parts(&launch, room, NULL, parts, &count, &err))
        fail_msg("%s", err.text);
    assert_int_equal(way, CUDA_WAY_PARTS);
    assert_int_equal(count, 2);
    for (int i = 0; i < 2; i++) {
        const struct cuda_kernel_row *row = &cuda_kernel_rows[parts[i].call.variant.kernel];
        assert_int_equal(parts[i].call.argument_count, strlen(row->arguments));
        assert_true(parts[i].call.shared_bytes <= (unsigned)room.shared_bytes_max);
        assert_true(row->dtypes >> launch.out.dtype & 1);
    }
}

LAB_TEST(backward_is_sums_and_then_all_products) {
    struct cuda_part parts[CUDA_PARTS];
    struct lab_launch launch = backward(1000, 64, LAB_BF16);
    /* 24000 rows of 8 pieces; 8 heads of keys in 8 blocks each */
    plan_backward(a100, launch, parts);
    assert_string_equal(kernel_of(parts[0].call), "flash_attention_backward_start");
    assert_int_equal(parts[0].call.grid[0], 750);
    assert_string_equal(kernel_of(parts[1].call), "flash_attention_backward_mma");
    assert_int_equal(parts[1].call.grid[0], 64);
    /* 24 heads: two sums of 1024 queries, 16 tiles of 64 with 8 turns each; and the counter */
    assert_int_equal(cuda_parts_bytes(&launch, a100),
                     24 * (2 * 1024 * 4 + 16 * (64 * 64 * 4 + 8 * 4)) + 4);
    plan_backward(a100, backward(1000, 128, LAB_FP32), parts);
    assert_string_equal(kernel_of(parts[1].call), "flash_attention_backward_any");
    /* less shared memory has room for one stage */
    plan_backward((struct cuda_capacity){128, 99 << 10, 89}, backward(1000, 128, LAB_FP16), parts);
    assert_int_equal(parts[1].call.variant.macros[4], 1);
}

LAB_TEST(hopper_has_a_backward_for_heads_of_64) {
    struct cuda_part parts[CUDA_PARTS];
    struct lab_launch launch = backward(1000, 64, LAB_BF16);
    plan_backward(h200, launch, parts);
    struct cuda_call *call = &parts[1].call;
    assert_string_equal(kernel_of(*call), "flash_attention_backward_hopper");
    assert_int_equal(call->grid[0], 64); /* pieces of work; no more blocks than multiprocessors */
    assert_int_equal(call->map_count, 4);
    for (int i = 0; i < 4; i++)
        ASSERT_OK(cuda_map_check(&call->maps[i], err));
    plan_backward(slice, launch, parts);
    assert_int_equal(call->grid[0], 16);
    launch.causal = true;
    plan_backward(h200, launch, parts);
    assert_string_equal(kernel_of(*call), "flash_attention_backward_hopper");
    /* other widths and memory that TMA can't read are mma.sync's */
    plan_backward(h200, backward(1000, 128, LAB_BF16), parts);
    assert_string_equal(kernel_of(*call), "flash_attention_backward_mma");
    launch.in[4].data = (void *)0x1002;
    plan_backward(h200, launch, parts);
    assert_string_equal(kernel_of(*call), "flash_attention_backward_mma");
}
