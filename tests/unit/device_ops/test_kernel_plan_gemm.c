/*
 * test_kernel_plan_gemm.c: how matrix products are done on a GPU: by the library unless a tuning
 * says otherwise, and by a kernel of our own exactly as the tuning says, where that is possible.
 */
#include "device/cuda/cuda.h"
#include "device/cuda/plan/plan.h"
#include "device/tunable.h"

#include "test.h"

static const struct cuda_capacity h200 = {132, 227 << 10, 90};
static const struct lab_device_ref h200_ref = {.compute_units = 132, .capability = 90};
static const struct lab_tunable_place place = {.ref = &h200_ref};

static struct lab_launch product(enum lab_dtype dtype, int64_t m, int64_t n, int64_t k,
                                 bool transpose_a, bool transpose_b) {
    return (struct lab_launch){
        .op = LAB_OP_GEMM,
        .in = {lab_tensor_matrix(NULL, dtype, transpose_a ? k : m, transpose_a ? m : k),
               lab_tensor_matrix(NULL, dtype, transpose_b ? n : k, transpose_b ? k : n)},
        .out = lab_tensor_matrix(NULL, dtype, m, n),
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
    };
}

static enum cuda_way plan(struct lab_launch *launch, struct cuda_call *ret_call) {
    struct lab_err err = LAB_ERR_INIT;
    enum cuda_way way = CUDA_WAY_KERNEL;
    if (lab_launch_complete(launch, &err) || cuda_plan(launch, h200, &way, ret_call, &err))
        fail_msg("%s", err.text);
    return way;
}

static void tune(struct lab_launch *launch, const char *text) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_tunable *tunable = cuda_tunable(&place, launch);
    assert_non_null(tunable);
    if (lab_tuning_parse(tunable, &place, launch, text, &launch->tuning, &err) ||
        lab_tuning_check(tunable, &place, launch, &launch->tuning, &err))
        fail_msg("%s: %s", text, err.text);
}

static void assert_refused(struct lab_launch launch, const char *text, const char *reason) {
    const struct lab_tunable *tunable = cuda_tunable(&place, &launch);
    struct lab_tuning tuning = {0};
    ASSERT_OK(lab_tuning_parse(tunable, &place, &launch, text, &tuning, err));
    ASSERT_FAILS(lab_tuning_check(tunable, &place, &launch, &tuning, err), LAB_ERR_UNSUPPORTED,
                 reason);
}

LAB_TEST(a_product_without_a_tuning_is_the_librarys) {
    struct lab_launch launch = product(LAB_BF16, 12608, 768, 3072, false, true);
    struct cuda_call call = {0};
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
    tune(&launch, "way=0");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
}

LAB_TEST(a_gelu_is_hidden_behind_products_where_there_are_enough) {
    struct lab_launch launch = product(LAB_BF16, 1970, 3072, 768, false, true);
    struct cuda_call call = {0};
    launch.op = LAB_OP_GEMM_BIAS_GELU;
    launch.in[2] = lab_tensor_vector(NULL, LAB_BF16, 3072);
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    assert_int_equal(call.variant.kernel, CUDA_KERNEL_gemm_hopper);
    assert_int_equal(call.variant.macros[3], 1); /* in turns */
    assert_int_equal(call.variant.macros[7], 3); /* a bias and a GELU */
    /* not where a tuning says otherwise, memory is elsewhere, or tiles are few */
    tune(&launch, "way=0,block_m=128,block_n=128,cluster=1,split=1,group=8");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
    launch.tuning.count = 0;
    launch.in[2].data = (void *)0x1002;
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
    launch = product(LAB_BF16, 197, 3072, 768, false, true);
    launch.op = LAB_OP_GEMM_BIAS_GELU;
    launch.in[2] = lab_tensor_vector(NULL, LAB_BF16, 3072);
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
}

LAB_TEST(a_tuned_product_is_done_as_the_tuning_says) {
    struct lab_launch launch = product(LAB_BF16, 12608, 768, 3072, false, true);
    struct cuda_call call = {0};
    char name[CUDA_VARIANT_NAME_BYTES];
    tune(&launch, "way=1,block_m=128,block_n=192,cluster=2");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    cuda_variant_name(&call.variant, name);
    assert_string_equal(name, "gemm_hopper bf16 BLOCK_M=128 BLOCK_N=192 STAGES=4 PINGPONG=0 "
                              "CLUSTER=2 SPLIT=1 LAYOUT=2 EPILOGUE=0");
    /* blocks stay on their multiprocessors, two consumers and a producer in each */
    assert_int_equal(call.grid[0], 132);
    assert_int_equal(call.threads, 3 * 128);
    assert_int_equal(call.cluster, 2);
    /* a is [m,k], loaded 128 rows of 128 bytes at a time; of b each of the two loads half */
    assert_int_equal(call.maps[0].sizes[0], 3072);
    assert_int_equal(call.maps[0].sizes[1], 12608);
    assert_int_equal(call.maps[0].box[0], 64);
    assert_int_equal(call.maps[0].box[1], 128);
    assert_int_equal(call.maps[1].box[1], 96);
    assert_int_equal(call.maps[2].box[0], 64);
    assert_int_equal(call.maps[2].box[1], 64);
}

LAB_TEST(memory_that_it_cannot_use_is_left_to_the_library) {
    struct lab_launch launch = product(LAB_BF16, 512, 512, 512, false, true);
    struct cuda_call call = {0};
    tune(&launch, "way=1");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    launch.in[0].data = (void *)0x1008;
    assert_int_equal(plan(&launch, &call), CUDA_WAY_GEMM);
}

LAB_TEST(few_tiles_are_split_along_k) {
    struct lab_launch launch = product(LAB_FP16, 504, 512, 2048, true, false);
    struct cuda_call call = {0};
    tune(&launch, "way=1,block_m=128,block_n=128,split=4");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    assert_int_equal(call.grid[0], 4 * 4 * 4);
    assert_int_equal(call.cluster, 4);
    /* both operands lie along their rows: 64 of them and a piece of k in each box */
    assert_int_equal(call.maps[0].sizes[0], 504);
    assert_int_equal(call.maps[0].box[1], 64);
    assert_int_equal(call.maps[2].box[0], 32); /* columns that one of the four finishes */
    assert_int_equal(call.maps[2].swizzle_bytes, 64);
}

LAB_TEST(tf32_is_rounded_on_its_way_in_alone) {
    struct lab_launch launch = product(LAB_TF32, 512, 512, 512, false, true);
    struct cuda_call call = {0};
    tune(&launch, "way=2");
    assert_int_equal(plan(&launch, &call), CUDA_WAY_KERNEL);
    assert_int_equal(call.variant.dtype, LAB_TF32);
    assert_int_equal(call.maps[0].dtype, LAB_TF32);
    assert_int_equal(call.maps[2].dtype, LAB_FP32);
    assert_int_equal(call.maps[0].box[0], 32);
}

LAB_TEST(what_cannot_be_is_refused_with_its_reason) {
    struct lab_launch launch = product(LAB_BF16, 512, 512, 512, false, true);
    assert_refused(launch, "way=0,block_m=64", "no tiles to choose");
    assert_refused(launch, "way=2,block_m=192,block_n=160", "registers");
    assert_refused(launch, "way=1,block_m=192,block_n=224", "registers");
    assert_refused(launch, "way=1,cluster=2,split=2", "split needs way=1 and cluster=1");
    assert_refused(launch, "way=1,block_n=64,split=4", "split into 4 multiples of 32");
    assert_refused(launch, "way=1,group=16", "are one group");
    assert_refused(product(LAB_BF16, 512, 512, 512, false, false), "way=1,block_n=96",
                   "multiple of 64 where b is [k,n]");
    assert_refused(product(LAB_BF16, 512, 512, 128, false, true), "way=1,split=4", "too short");
}

static const char *kernel_of(int capability, struct lab_launch launch) {
    const struct lab_device_ref ref = {.compute_units = 100, .capability = capability};
    return cuda_tunable(&(struct lab_tunable_place){.ref = &ref}, &launch)->kernel;
}

LAB_TEST(what_hopper_cannot_do_the_kernel_for_every_gpu_does) {
    const struct lab_launch launch = product(LAB_BF16, 512, 512, 512, false, true);
    assert_string_equal(kernel_of(90, launch), "cuda gemm_hopper");
    assert_string_equal(kernel_of(80, launch), "cuda gemm_mma");
    assert_string_equal(kernel_of(100, launch), "cuda gemm_mma");
    /* other formats and layouts, and rows that the copy engine can't find */
    const struct lab_launch others[] = {
        product(LAB_FP32, 512, 512, 512, false, true),
        product(LAB_TF32, 512, 512, 512, false, false),
        product(LAB_BF16, 512, 508, 512, false, true),
        product(LAB_BF16, 508, 512, 512, true, true),
        product(LAB_BF16, 512, 512, 508, false, true),
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_string_equal(kernel_of(90, others[i]), "cuda gemm_mma");
}
