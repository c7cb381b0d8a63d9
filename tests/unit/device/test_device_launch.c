/*
 * The front before a backend of the test's own, which has no optional slots and computes nothing:
 * what is checked and lowered before a backend sees a launch, and what an absent slot means.
 */
#include "cpu_fixture.h"

#define KEPT 32

static struct {
    struct lab_launch items[KEPT];
    int count;
} kept;

static int keep_launch(struct lab_stream *stream, const struct lab_launch *launch,
                       struct lab_err *err) {
    (void)stream;
    (void)err;
    assert_true(kept.count < KEPT);
    kept.items[kept.count++] = *launch;
    return 0;
}

static bool only_elementary(const struct lab_device *device, enum lab_op_id op,
                            enum lab_dtype dtype) {
    (void)device;
    return dtype == LAB_FP32 && !lab_op_get(op)->lower;
}

static bool nothing(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype) {
    (void)device;
    (void)op;
    (void)dtype;
    return false;
}

static struct lab_stream stream_of(struct lab_device *device, const struct lab_device_ops *ops) {
    *device = (struct lab_device){.ops = ops, .ref = {.backend = "bare", .name = "bare:0"}};
    kept.count = 0;
    return (struct lab_stream){.device = device};
}

/* An example launch as the conformance test uses it, with memory to point at. */
static struct lab_launch example_of(enum lab_op_id op, float *memory) {
    struct lab_launch launch = {0};
    assert_int_equal(lab_op_example(op, 0, LAB_FP32, &launch), 0);
    launch.op = op;
    for (int i = 0; i < lab_op_get(op)->inputs; i++) {
        launch.in[i].data = memory;
        memory += lab_tensor_count(&launch.in[i]);
    }
    launch.out.data = memory;
    return launch;
}

LAB_TEST(fused_ops_are_lowered_to_what_the_backend_has) {
    static const struct lab_device_ops ops = {.launch = keep_launch, .supports = only_elementary};
    struct lab_device device;
    float *memory = lab_mem_alloc(1 << 24, sizeof *memory);
    int fused = 0;
    for (int op = 0; op < LAB_OP_COUNT; op++) {
        struct lab_stream stream = stream_of(&device, &ops);
        struct lab_launch launch = example_of((enum lab_op_id)op, memory);
        ASSERT_OK(lab_launch(&stream, &launch, err));
        assert_true(kept.count >= 1);
        if (!lab_op_get(launch.op)->lower) {
            assert_int_equal(kept.count, 1);
            continue;
        }
        fused++;
        assert_true(kept.count >= 2);
        for (int i = 0; i < kept.count; i++) {
            assert_null(lab_op_get(kept.items[i].op)->lower);
            assert_true(kept.items[i].cost.bytes_written > 0); /* completed */
        }
        /* the last one writes the output, or its last part */
        int64_t last = (float *)kept.items[kept.count - 1].out.data - (float *)launch.out.data;
        assert_in_range(last, 0, lab_tensor_count(&launch.out) - 1);
    }
    assert_true(fused >= 3);
    lab_mem_free(memory);
}

LAB_TEST(without_a_supports_slot_a_backend_has_every_op_in_fp32) {
    static const struct lab_device_ops ops = {.launch = keep_launch};
    struct lab_device device;
    struct lab_stream stream = stream_of(&device, &ops);
    float *memory = lab_mem_alloc(1 << 24, sizeof *memory);
    struct lab_launch launch = example_of(LAB_OP_GEMM_BIAS_GELU, memory);
    ASSERT_OK(lab_launch(&stream, &launch, err));
    assert_int_equal(kept.count, 1);
    assert_int_equal(kept.items[0].op, LAB_OP_GEMM_BIAS_GELU);
    assert_true(kept.items[0].cost.flops > 0);
    launch = example_of(LAB_OP_GEMM, memory);
    launch.out.dtype = launch.in[0].dtype = launch.in[1].dtype = LAB_BF16;
    ASSERT_FAILS(lab_launch(&stream, &launch, err), LAB_ERR_UNSUPPORTED,
                 "bare computes in fp32 only; dtype=bf16 needs another GPU");
    assert_int_equal(kept.count, 1);
    lab_mem_free(memory);
}

LAB_TEST(bad_launches_reach_no_backend) {
    static const struct lab_device_ops all = {.launch = keep_launch};
    static const struct lab_device_ops none = {.launch = keep_launch, .supports = nothing};
    struct lab_device device;
    struct lab_stream stream = stream_of(&device, &all);
    float *memory = lab_mem_alloc(1 << 24, sizeof *memory);
    struct lab_launch launch = example_of(LAB_OP_GEMM, memory);
    launch.out.shape[0]++;
    ASSERT_FAILS(lab_launch(&stream, &launch, err), LAB_ERR_USER, "gemm");
    launch = (struct lab_launch){.op = LAB_OP_COUNT};
    ASSERT_FAILS(lab_launch(&stream, &launch, err), LAB_ERR_USER, "");
    stream = stream_of(&device, &none);
    launch = example_of(LAB_OP_GEMM_BIAS, memory);
    ASSERT_FAILS(lab_launch(&stream, &launch, err), LAB_ERR_UNSUPPORTED, "bare lacks");
    assert_int_equal(kept.count, 0);
    lab_mem_free(memory);
}

LAB_TEST(absent_slots_mean_what_their_comments_say) {
    static const struct lab_device_ops ops = {.launch = keep_launch};
    struct lab_device device;
    struct lab_stream stream = stream_of(&device, &ops);
    struct lab_device_limits limits = {.flops_per_s = -1};
    ASSERT_OK(lab_device_limits(&device, LAB_FP32, &limits, err));
    assert_true(limits.flops_per_s == 0 && limits.h2d_bytes_per_s == 0);
    assert_contains(limits.how, "unknown");
    ASSERT_FAILS(lab_graph_begin(&stream, err), LAB_ERR_UNSUPPORTED, "bare has no graphs");
    lab_device_close(NULL);
    lab_stream_close(NULL);
    lab_event_close(NULL);
    lab_graph_close(NULL);
    lab_buffer_close(NULL);
}
