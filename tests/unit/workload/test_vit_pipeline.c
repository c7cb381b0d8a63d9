/*
 * The vit pipeline on a CPU device: the order of its stages, what comes back, and that every
 * failure on the way leaves nothing behind (the sanitizer's build looks for that).
 */
#include "unit/workload/on_cpu.h"
#include "workload/vit/vit.h"

extern const struct lab_workload lab_workload_vit;

#define SMALL                                                                                      \
    "patch_size=4", "tensor_shape=[3,8,12]", "dim=24", "heads=2", "mlp_dim=40", "depth=2",         \
        "batch_size=2", "memory_size_mb=1"

static int cpu_open(void **state) {
    static struct on_cpu cpu;
    on_cpu_open(&cpu);
    *state = &cpu;
    return 0;
}

static int cpu_close(void **state) {
    on_cpu_close(*state);
    return 0;
}

static void run_some(struct vit_pipeline *pipeline, int count, struct lab_iteration *records) {
    memset(records, 0xee, (size_t)count * sizeof *records);
    ASSERT_OK(lab_workload_vit.run(pipeline, count, records, err));
}

/* What holds of any run: stages in order, each stream in order, a buffer used by one at a time. */
static void assert_ordered(const struct lab_iteration *records, int count, bool forward) {
    for (int i = 0; i < count; i++) {
        const struct lab_iteration *r = &records[i];
        const struct lab_span *h2d = &r->stages[LAB_STAGE_H2D], *d2h = &r->stages[LAB_STAGE_D2H];
        const struct lab_span *compute = &r->stages[LAB_STAGE_COMPUTE];
        assert_true(h2d->start_ns > 0 && h2d->start_ns <= h2d->end_ns);
        assert_true(d2h->start_ns <= d2h->end_ns);
        assert_true(h2d->end_ns <= d2h->start_ns);
        if (forward)
            assert_true(h2d->end_ns <= compute->start_ns && compute->start_ns <= compute->end_ns &&
                        compute->end_ns <= d2h->start_ns);
        else
            assert_true(compute->start_ns == 0 && compute->end_ns == 0);
        assert_true(r->start_ns == h2d->start_ns && r->end_ns == d2h->end_ns);
        for (int stage = 0; i > 0 && stage < LAB_STAGE_COUNT; stage++)
            assert_true(records[i - 1].stages[stage].end_ns <= r->stages[stage].start_ns);
        if (i >= VIT_BUFFERS)
            assert_true(records[i - VIT_BUFFERS].end_ns <= r->start_ns);
    }
}

LAB_TEST(stages_keep_their_order) {
    struct lab_iteration records[23];
    const char *const frequencies[] = {"sync_frequency=1", "sync_frequency=2", "sync_frequency=3",
                                       "sync_frequency=10"};
    for (size_t i = 0; i < 4; i++) {
        void *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, frequencies[i]));
        const int counts[] = {1, 2, 7, 23};
        for (size_t c = 0; c < 4; c++) {
            run_some(pipeline, counts[c], records);
            assert_ordered(records, counts[c], true);
        }
        lab_workload_vit.close(pipeline);
    }
}

LAB_TEST(without_a_model_there_is_no_compute_stage) {
    struct lab_iteration records[11];
    void *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, "depth=0"));
    run_some(pipeline, 11, records);
    assert_ordered(records, 11, false);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(without_the_forward_the_same_bytes_are_copied) {
    struct lab_iteration records[11];
    struct lab_verification verification = {.passed = true};
    struct vit_pipeline *pipeline =
        on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, "forward=false"));
    struct lab_workload_cost copies, whole;
    struct vit_config with_forward = *pipeline->config;
    with_forward.forward = true;
    lab_workload_vit.cost(pipeline->config, &copies);
    lab_workload_vit.cost(&with_forward, &whole);
    assert_true(copies.h2d_bytes == whole.h2d_bytes && copies.d2h_bytes == whole.d2h_bytes);
    assert_true(copies.d2h_bytes == (double)pipeline->back_bytes && copies.compute.flops == 0);
    run_some(pipeline, 11, records);
    assert_ordered(records, 11, false);
    ASSERT_OK(lab_workload_vit.verify(pipeline, 1, &verification, err));
    assert_false(verification.applicable);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(serial_stages_never_overlap) {
    struct lab_iteration records[13];
    void *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, "overlap=false"));
    run_some(pipeline, 13, records);
    assert_ordered(records, 13, true);
    for (int i = 1; i < 13; i++)
        assert_true(records[i - 1].end_ns <= records[i].start_ns);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(the_pool_is_cycled) {
    struct lab_iteration records[7];
    struct vit_pipeline *pipeline =
        on_cpu_start(*state, &lab_workload_vit,
                     WORDS("depth=0", "patch_size=1", "tensor_shape=[1,256,256]", "batch_size=1",
                           "memory_size_mb=1", "sync_frequency=3"));
    assert_int_equal(pipeline->pool_batches, 4);
    run_some(pipeline, 7, records); /* batches 0 1 2 3 0 1 2 */
    assert_int_equal(pipeline->pool_next, 3);
    const char *pool = pipeline->pool.data;
    size_t bytes = pipeline->shape.input_bytes;
    assert_memory_equal(pipeline->host_out[0].data, pool + 2 * bytes, bytes); /* iteration 6 */
    assert_memory_equal(pipeline->host_out[1].data, pool + 1 * bytes, bytes); /* iteration 5 */
    assert_memory_not_equal(pool, pool + bytes, bytes);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(images_are_filled_as_told) {
    struct vit_pipeline *pipeline =
        on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, "fill=sequential"));
    const float *pool = pipeline->pool.data;
    assert_true(pool[0] == 0 && pool[144] == 0.5f && pool[287] < 1); /* 3·8·12 = 288 */
    assert_true(pool[288] == 0);
    lab_workload_vit.close(pipeline);
    pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL, "fill=zeros"));
    pool = pipeline->pool.data;
    for (int i = 0; i < 288; i++)
        assert_true(pool[i] == 0);
    lab_workload_vit.close(pipeline);
}

/* --- verification --- */

static struct lab_verification verify(struct vit_pipeline *pipeline) {
    struct lab_verification ret = {0};
    ASSERT_OK(lab_workload_vit.verify(pipeline, 7, &ret, err));
    assert_true(ret.applicable);
    return ret;
}

LAB_TEST(results_agree_with_double_precision) {
    const char *const *const variants[] = {
        WORDS(SMALL),
        WORDS(SMALL, "compile_model=true"),
        WORDS(SMALL, "d2h=input"),
        WORDS(SMALL, "overlap=false", "compile_model=true", "sync_frequency=1"),
        WORDS(SMALL, "depth=0"),
        WORDS(SMALL, "batch_size=1"),
        WORDS(SMALL, "dim=64", "heads=1"),
        WORDS(SMALL, "patch_size=3", "tensor_shape=[1,10,4]", "batch_size=5"),
    };
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        struct vit_pipeline *pipeline = on_cpu_start(*state, &lab_workload_vit, variants[i]);
        struct lab_verification v = verify(pipeline);
        if (!v.passed)
            fail_msg("variant %zu: %s", i, v.text);
        assert_true(v.tolerance <= 1e-5 && v.elements > 0);
        lab_workload_vit.close(pipeline);
    }
}

LAB_TEST(verifying_leaves_the_pool_as_it_was) {
    struct vit_pipeline *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL));
    size_t bytes = pipeline->pool.size_bytes;
    void *before = lab_mem_alloc(bytes, 1);
    memcpy(before, pipeline->pool.data, bytes);
    verify(pipeline);
    assert_memory_equal(before, pipeline->pool.data, bytes);
    lab_mem_free(before);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(a_lost_launch_is_noticed) {
    struct on_cpu *cpu = *state;
    struct vit_pipeline *pipeline = on_cpu_start(cpu, &lab_workload_vit, WORDS(SMALL));
    faulty_begin(cpu->device, -1, -1);
    assert_true(verify(pipeline).passed);
    int launches = faulty.launches;
    faulty_end(cpu->device);
    assert_true(launches > 20);
    for (int i = 0; i < launches; i++) { /* of both buffers */
        faulty_begin(cpu->device, -1, i);
        struct lab_verification v = verify(pipeline);
        faulty_end(cpu->device);
        if (v.passed)
            fail_msg("launch %d of %d was lost and nothing was noticed", i, launches);
    }
    lab_workload_vit.close(pipeline);
}

LAB_TEST(wrong_weights_are_noticed) {
    struct vit_pipeline *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL));
    for (int i = 0; i < vit_parameter_number(&pipeline->shape); i++) {
        float before, changed;
        char *at = (char *)pipeline->model.weights.data + pipeline->model.weight_offsets[i];
        struct lab_stream *stream = pipeline->streams[LAB_STAGE_COMPUTE];
        ASSERT_OK(lab_data_download(stream, at, LAB_FP32, 1, &before, err));
        changed = before + 0.1f;
        ASSERT_OK(lab_data_upload(stream, at, LAB_FP32, 1, lab_data_constant, &changed, err));
        if (verify(pipeline).passed)
            fail_msg("parameter %d was wrong and nothing was noticed", i);
        ASSERT_OK(lab_data_upload(stream, at, LAB_FP32, 1, lab_data_constant, &before, err));
    }
    assert_true(verify(pipeline).passed);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(memory_lies_on_the_rank_s_node) {
    struct lab_err err = LAB_ERR_INIT;
    struct vit_pipeline *pipeline = on_cpu_start(*state, &lab_workload_vit, WORDS(SMALL));
    if (lab_workload_vit.prove_placement(pipeline, &err))
        fail_msg("%s", err.text);
    pipeline->numa_node = 63; /* where it isn't */
    assert_int_equal(lab_workload_vit.prove_placement(pipeline, &err), -1);
    lab_workload_vit.close(pipeline);
}

/* --- failures --- */

LAB_TEST(a_pool_beyond_the_node_is_an_ordinary_failure) {
    struct on_cpu *cpu = *state;
    void *opened = NULL;
    void *config =
        on_cpu_configure(cpu, &lab_workload_vit, WORDS(SMALL, "memory_size_mb=16000000"));
    ASSERT_FAILS(lab_workload_vit.open(config, &cpu->rank, &opened, err), LAB_ERR_MEMORY, "");
    assert_null(opened);
}

LAB_TEST(each_refusal_while_opening_is_passed_on) {
    struct on_cpu *cpu = *state;
    const struct vit_config *config = on_cpu_configure(
        cpu, &lab_workload_vit, WORDS(SMALL, "compile_model=true", "sync_frequency=2"));
    int calls = 0;
    do {
        struct lab_err err = LAB_ERR_INIT;
        void *opened = NULL;
        faulty_begin(cpu->device, calls, -1);
        int failed = lab_workload_vit.open(config, &cpu->rank, &opened, &err);
        int made = faulty.calls;
        faulty_end(cpu->device);
        if (!failed) { /* the call to refuse never came: all have been tried */
            assert_true(made <= calls);
            lab_workload_vit.close(opened);
            break;
        }
        assert_int_equal(err.code, LAB_ERR_MEMORY);
        assert_null(opened);
        calls++;
    } while (calls < 1000);
    assert_true(calls > 50 && calls < 1000);
}

LAB_TEST(a_refusal_while_running_leaves_it_usable) {
    struct on_cpu *cpu = *state;
    struct lab_iteration records[5];
    struct vit_pipeline *pipeline =
        on_cpu_start(cpu, &lab_workload_vit, WORDS(SMALL, "sync_frequency=3"));
    for (int i = 0; i < 12; i++) {
        struct lab_err err = LAB_ERR_INIT;
        faulty_begin(cpu->device, i, -1);
        assert_int_equal(lab_workload_vit.run(pipeline, 5, records, &err), -1);
        faulty_end(cpu->device);
        assert_int_equal(err.code, LAB_ERR_MEMORY);
        run_some(pipeline, 5, records);
        assert_ordered(records, 5, true);
    }
    assert_true(verify(pipeline).passed);
    lab_workload_vit.close(pipeline);
}

LAB_TEST(closing_nothing_is_allowed) {
    lab_workload_vit.close(NULL);
}

const struct lab_test_program lab_test_program = {.open = cpu_open, .close = cpu_close};
