/*
 * Traces of the cuda backend: the collector over CUPTI's records. The fake CUPTI tells the same of
 * each context, whatever it did (tests/fake/libcupti.c); on a real GPU real copies are traced.
 */
#include "cuda_fixture.h"

#include "vendor/cupti.h"

#define BYTES 65536

static struct lab_trace trace_end(struct cuda_fixture *fixture, struct lab_device *device) {
    struct lab_trace trace = {0};
    ASSERT_OK(lab_device_trace_end(device, &fixture->arena, &trace, err));
    return trace;
}

LAB_TEST(copies_are_seen_on_the_hosts_clock) {
    struct cuda_fixture *fixture = *state;
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0", 0);
    struct lab_stream *stream = NULL;
    struct lab_buffer host, memory;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COPY, &stream, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &host, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &memory, err));
    for (int round = 0; round < 2; round++) { /* it can be switched on more than once */
        ASSERT_OK(lab_device_trace_begin(device, 1000, err));
        int64_t begin_ns = lab_clock_now(lab_clock_system());
        ASSERT_OK(lab_copy(stream, memory.data, host.data, BYTES, LAB_MEMORY_DEVICE,
                           LAB_MEMORY_HOST_PINNED, err));
        ASSERT_OK(lab_copy(stream, host.data, memory.data, BYTES, LAB_MEMORY_HOST_PINNED,
                           LAB_MEMORY_DEVICE, err));
        ASSERT_OK(lab_stream_sync(stream, err));
        struct lab_trace trace = trace_end(fixture, device);
        int64_t end_ns = lab_clock_now(lab_clock_system());
        assert_int_equal(trace.copy_count, 2);
        const struct lab_trace_copy *in = &trace.copies[0], *out = &trace.copies[1];
        assert_int_equal(in->kind, LAB_TRACE_COPY_H2D);
        assert_int_equal(in->from, LAB_TRACE_MEMORY_PINNED);
        assert_int_equal(in->to, LAB_TRACE_MEMORY_DEVICE);
        assert_int_equal(out->kind, LAB_TRACE_COPY_D2H);
        assert_int_equal(in->size_bytes, cuda_is_real() ? BYTES : 4096);
        assert_true(begin_ns <= in->start_ns && in->start_ns < in->end_ns);
        assert_true(in->end_ns <= out->start_ns);
        if (cuda_is_real()) /* the fake invents its times */
            assert_true(out->end_ns <= end_ns);
        assert_int_equal(trace.gpu_count, 1);
        assert_true(trace.call_count >= 1);
        assert_int_equal(trace.process, getpid());
    }
    lab_buffer_close(&host);
    lab_buffer_close(&memory);
    lab_stream_close(stream);
    lab_device_close(device);
}

/* --- what only the fake shows --- */

LAB_TEST(all_kinds_come_in_order_of_start) {
    struct cuda_fixture *fixture = *state;
    if (cuda_is_real())
        skip();
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0", 0);
    ASSERT_OK(lab_device_trace_begin(device, 1000, err));
    struct lab_trace trace = trace_end(fixture, device);
    assert_int_equal(trace.kernel_count, 1);
    const struct lab_trace_kernel *kernel = &trace.kernels[0];
    assert_string_equal(kernel->name, "fake_kernel");
    assert_int_equal(kernel->registers, 32);
    assert_int_equal(kernel->grid[0], 132);
    assert_int_equal(kernel->block[0], 256);
    assert_int_equal(kernel->dynamic_shared, 1024);
    assert_int_equal(kernel->place.graph_node, 77);
    assert_int_equal(kernel->place.stream, 14);
    assert_int_equal(kernel->place.green, 0);
    assert_int_equal(trace.fill_count, 1);
    assert_int_equal(trace.fills[0].value, 255);
    assert_int_equal(trace.fills[0].memory, LAB_TRACE_MEMORY_DEVICE);
    assert_int_equal(trace.call_count, 2); /* the third asked for no command */
    assert_string_equal(trace.calls[0].name, "cuMemcpyHtoDAsync_v2");
    assert_int_equal(trace.calls[0].correlation, trace.copies[0].place.correlation);
    assert_string_equal(trace.calls[1].name, "cuGraphLaunch");
    assert_int_equal(trace.calls[1].correlation, kernel->place.correlation);
    assert_int_equal(trace.dropped, 1); /* the kernel without an end */
    lab_device_close(device);
}

LAB_TEST(each_slice_takes_what_is_its_own) {
    struct cuda_fixture *fixture = *state;
    if (cuda_is_real())
        skip();
    struct lab_device *devices[2] = {cuda_fixture_device(fixture, "cuda:0/4", 1),
                                     cuda_fixture_device(fixture, "cuda:0/4", 3)};
    for (int i = 0; i < 2; i++)
        ASSERT_OK(lab_device_trace_begin(devices[i], 1000, err));
    struct lab_trace first = trace_end(fixture, devices[0]);
    struct lab_trace second = trace_end(fixture, devices[1]);
    assert_int_equal(first.kernel_count, 1);
    assert_int_equal(second.kernel_count, 1);
    assert_int_equal(first.copy_count, 2);
    assert_int_equal(second.copy_count, 2);
    assert_int_equal(first.call_count, 2);
    assert_int_equal(second.call_count, 2);
    assert_int_equal(first.kernels[0].place.green, 2);
    assert_int_equal(second.kernels[0].place.green, 4);
    assert_int_not_equal(first.kernels[0].place.context, second.kernels[0].place.context);
    for (int i = 0; i < 2; i++)
        lab_device_close(devices[i]);
}

LAB_TEST(what_finds_no_room_is_counted) {
    struct cuda_fixture *fixture = *state;
    if (cuda_is_real())
        skip();
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0", 0);
    setenv("FAKE_CUPTI_DROPPED", "5", 1);
    ASSERT_OK(lab_device_trace_begin(device, 2, err));
    struct lab_trace trace = trace_end(fixture, device);
    unsetenv("FAKE_CUPTI_DROPPED");
    assert_int_equal(trace.kernel_count + trace.copy_count + trace.fill_count + trace.call_count,
                     2);
    assert_int_equal(trace.dropped, 1 + 5 + 5); /* without an end, without room, lost by CUPTI */
    lab_device_close(device);
}

LAB_TEST(who_may_not_trace_is_told_what_would_help) {
    struct cuda_fixture *fixture = *state;
    if (cuda_is_real())
        skip();
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0", 0);
    setenv("FAKE_CUDA_FAIL", "cuptiActivityEnable:35", 1);
    ASSERT_FAILS(lab_device_trace_begin(device, 1000, err), LAB_ERR_UNSUPPORTED,
                 "NVreg_RestrictProfilingToAdminUsers=0");
    setenv("FAKE_CUDA_FAIL", "cuptiActivityEnable:39", 1);
    ASSERT_FAILS(lab_device_trace_begin(device, 1000, err), LAB_ERR_UNSUPPORTED,
                 "another profiler");
    unsetenv("FAKE_CUDA_FAIL");
    setenv("FAKE_CUPTI_VERSION", "17", 1);
    ASSERT_FAILS(lab_device_trace_begin(device, 1000, err), LAB_ERR_UNSUPPORTED, "too old");
    unsetenv("FAKE_CUPTI_VERSION");
    ASSERT_OK(lab_device_trace_begin(device, 1000, err)); /* and later it works */
    ASSERT_FAILS(lab_device_trace_begin(device, 1000, err), LAB_ERR_SYSTEM, "already");
    trace_end(fixture, device);
    lab_device_close(device);
}

LAB_TEST(a_trace_that_fails_at_its_end_has_ended) {
    struct cuda_fixture *fixture = *state;
    if (cuda_is_real())
        skip();
    struct lab_device *device = cuda_fixture_device(fixture, "cuda:0", 0);
    struct lab_trace trace = {0};
    ASSERT_OK(lab_device_trace_begin(device, 1000, err));
    setenv("FAKE_CUDA_FAIL", "cuptiActivityFlushAll:999", 1);
    ASSERT_FAILS(lab_device_trace_end(device, &fixture->arena, &trace, err), LAB_ERR_UNSUPPORTED,
                 "cuptiActivityFlushAll");
    unsetenv("FAKE_CUDA_FAIL");
    ASSERT_FAILS(lab_device_trace_end(device, &fixture->arena, &trace, err), LAB_ERR_SYSTEM,
                 "isn't being traced");
    ASSERT_OK(lab_device_trace_begin(device, 1000, err));
    trace_end(fixture, device);
    lab_device_close(device);
}

static int begin(int argc, char **argv) {
    (void)argc;
    cuda_use_fake(argv);
    if (cuda_is_absent())
        return LAB_TEST_SKIPPED;
    if (!lab_cupti_ready()) {
        print_message("skipped: CUPTI isn't here, so nothing can be traced\n");
        return LAB_TEST_SKIPPED;
    }
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = begin};
