/*
 * test_cuda_device.c: opening a GPU, its memory, streams, events, graphs and slices. Runs on the
 * fake driver, and with GPULAB_TEST_CUDA=real on a GPU (cuda_fixture.h).
 */
#include "cuda_fixture.h"

#include "base/subprocess.h"

#define BYTES ((size_t)1 << 20)

static void fake_only(void) {
    if (cuda_is_real())
        skip();
}

/* --- opening --- */

/* First of all tests: CUDA is initialised once. */
LAB_TEST(cuda_that_does_not_start_says_why) {
    struct lab_device *device;
    fake_only();
    setenv("FAKE_CUDA_FAIL", "cuInit:803", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_SYSTEM,
                 "opening cuda:0: cuInit: some error (803); libcuda and the kernel module");
    setenv("FAKE_CUDA_FAIL", "cuInit:100", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_SYSTEM,
                 "no CUDA-capable device is detected (100); the driver shows no GPU");
}

LAB_TEST(an_open_gpu_says_what_it_is) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    assert_true(device->info.compute_units > 0);
    assert_true(device->info.memory_bytes > 0);
    assert_true(device->info.overlaps);
    assert_contains(device->info.arithmetic, "compute capability");
    lab_device_close(device);
}

LAB_TEST(the_gpu_is_found_again_by_its_uuid) {
    fake_only();
    struct lab_device *device = cuda_fixture_device(*state, "cuda", 1);
    assert_int_equal(((struct cuda_device *)device)->ordinal, 1);
    lab_device_close(device);
    struct cuda_fixture *fixture = *state;
    struct lab_device_list list;
    ASSERT_OK(lab_device_select(fixture->machine, "cuda:1", &fixture->arena, &list, err));
    setenv("FAKE_CUDA_GPUS", "1", 1);
    ASSERT_FAILS(lab_device_open(fixture->machine, &list.items[0], LAB_DEVICE_SETUP, &device, err),
                 LAB_ERR_SYSTEM,
                 "the driver shows 1 GPU to this process, but not cuda:GPU-00000001");
    list.items[0].uuid = NULL; /* as without NVML: by its address */
    list.items[0].physical = "cuda:0000:17:00.0";
    ASSERT_OK(lab_device_open(fixture->machine, &list.items[0], LAB_DEVICE_SETUP, &device, err));
    lab_device_close(device);
}

LAB_TEST(a_gpu_that_others_hold_is_refused_with_what_to_do) {
    struct lab_device *device;
    fake_only();
    setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain:46", 1);
    setenv("FAKE_CUDA_MODE", "3", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_SYSTEM,
                 "another process has the GPU in exclusive mode");
    setenv("FAKE_CUDA_MODE", "2", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_SYSTEM,
                 "compute mode is prohibited");
    setenv("FAKE_CUDA_MODE", "0", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_SYSTEM,
                 "busy or unavailable (46); another process");
    setenv("FAKE_CUDA_FAIL", "cuDevicePrimaryCtxRetain:2", 1);
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0", 0, &device, err), LAB_ERR_MEMORY,
                 "too little free memory for a context");
}

/* In a process of its own: what CUDA shows is settled when it starts. */
static void run_alone(struct cuda_fixture *fixture, const char *word) {
    fake_only();
    const char *const argv[] = {"/proc/self/exe", word, NULL};
    struct lab_subprocess_spec spec = {.argv = argv, .max_output_bytes = 4096};
    struct lab_subprocess_result result;
    ASSERT_OK(lab_subprocess_run(&spec, &fixture->arena, &result, err));
    if (result.exit_status != 0)
        fail_msg("%s%s", result.out, result.err);
}

LAB_TEST(a_mig_instance_is_reached_and_the_environment_left_alone) {
    run_alone(*state, "open_mig_instances");
}

LAB_TEST(a_numbered_gpu_is_reached_and_the_environment_left_alone) {
    run_alone(*state, "open_numbered");
}

LAB_TEST(open_mig_instances) {
    struct lab_device *device, *other;
    setenv("FAKE_CUDA_MIG", "1", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    device = cuda_fixture_device(*state, "cuda:MIG-00000011-0000-0000-0000-0000000000cd", 0);
    assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), "0,1");
    assert_null(getenv("CUDA_DEVICE_ORDER"));
    ASSERT_FAILS(
        cuda_fixture_try(*state, "cuda:MIG-00000010-0000-0000-0000-0000000000cd", 0, &other, err),
        LAB_ERR_USER, "a process can use one MIG instance only");
    lab_device_close(device);
}

/* Numbers mean PCI order to us, and to the driver only if it is told so. */
LAB_TEST(open_numbered) {
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    assert_string_equal(device->ref.uuid, "GPU-00000001-0000-0000-0000-0000000000ab");
    assert_null(getenv("CUDA_DEVICE_ORDER"));
    lab_device_close(device);
}

/* --- memory and copies --- */

LAB_TEST(data_comes_back_as_it_went) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_buffer pinned, pageable, a, b;
    struct lab_stream *stream;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COPY, &stream, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &pinned, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PAGEABLE, -1, BYTES, &pageable, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &a, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &b, err));
    for (size_t i = 0; i < BYTES; i++)
        ((unsigned char *)pinned.data)[i] = (unsigned char)(i * 7 + i / 251);
    ASSERT_OK(lab_copy(stream, a.data, pinned.data, BYTES, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_copy(stream, b.data, a.data, BYTES, LAB_MEMORY_DEVICE, LAB_MEMORY_DEVICE, err));
    ASSERT_OK(lab_copy(stream, pageable.data, b.data, BYTES, LAB_MEMORY_HOST_PAGEABLE,
                       LAB_MEMORY_DEVICE, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_memory_equal(pageable.data, pinned.data, BYTES);
    memset(pageable.data, 0, BYTES);
    ASSERT_OK(lab_copy(stream, pageable.data, pinned.data, BYTES, LAB_MEMORY_HOST_PAGEABLE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_memory_equal(pageable.data, pinned.data, BYTES);
    lab_buffer_close(&pinned);
    lab_buffer_close(&pageable);
    lab_buffer_close(&a);
    lab_buffer_close(&b);
    lab_stream_close(stream);
    lab_device_close(device);
}

LAB_TEST(too_much_memory_is_an_ordinary_result) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_buffer buffer = {0};
    ASSERT_FAILS(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)1 << 44, &buffer, err),
                 LAB_ERR_MEMORY, "out of device memory: 16.0 TiB asked for, ");
    struct lab_err full = LAB_ERR_INIT;
    lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)1 << 44, &buffer, &full);
    assert_int_equal(full.hint, LAB_HINT_OUT_OF_DEVICE_MEMORY);
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &buffer, err));
    lab_buffer_close(&buffer);
    if (!cuda_is_real()) {
        setenv("FAKE_CUDA_FAIL", "cuMemHostRegister:2", 1);
        ASSERT_FAILS(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &buffer, err),
                     LAB_ERR_MEMORY, "1.00 MiB of host memory can't be pinned");
    }
    lab_device_close(device);
}

/* --- events --- */

LAB_TEST(times_are_the_hosts_and_in_order) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_stream *stream;
    struct lab_event *first, *second;
    int64_t before_ns, first_ns, second_ns, after_ns;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, err));
    ASSERT_OK(lab_event_open(device, &first, err));
    ASSERT_OK(lab_event_open(device, &second, err));
    ASSERT_FAILS(lab_event_time(first, &first_ns, err), LAB_ERR_SYSTEM, "never recorded");
    ASSERT_OK(lab_event_sync(first, err)); /* counts as passed */
    before_ns = lab_clock_now(device->clock);
    ASSERT_OK(lab_event_record(first, stream, err));
    ASSERT_OK(lab_event_sync(first, err));
    lab_clock_sleep(device->clock, 2 * LAB_NS_PER_MS);
    ASSERT_OK(lab_event_record(second, stream, err));
    ASSERT_OK(lab_event_time(second, &second_ns, err));
    after_ns = lab_clock_now(device->clock);
    ASSERT_OK(lab_event_time(first, &first_ns, err));
    int64_t slack_ns = 10 * LAB_NS_PER_MS; /* of an anchor's bounds on a busy machine */
    assert_in_range(first_ns, before_ns - slack_ns, after_ns + slack_ns);
    assert_true(second_ns - first_ns >= 2 * LAB_NS_PER_MS - 2000);
    assert_true(second_ns - first_ns <= after_ns - before_ns + 2000);
    lab_event_close(first);
    lab_event_close(second);
    lab_stream_close(stream);
    lab_device_close(device);
}

/* When the clocks have drifted apart by more than the bounds, the bounds hold. */
LAB_TEST(a_new_anchor_follows_a_drifting_clock_and_keeps_differences) {
    fake_only();
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct cuda_anchor *anchor = &((struct cuda_device *)device)->anchor;
    int64_t first_ns = anchor->time_ns;
    anchor->taken_ns -= 2 * LAB_NS_PER_S;
    ASSERT_OK(cuda_anchor_refresh((struct cuda_device *)device, err));
    assert_true(anchor->time_ns > first_ns);
    assert_true(anchor->time_ns <= anchor->taken_ns);
    int64_t taken_ns = anchor->taken_ns;
    ASSERT_OK(cuda_anchor_refresh((struct cuda_device *)device, err));
    assert_int_equal(anchor->taken_ns, taken_ns); /* young enough */
    setenv("FAKE_CUDA_DRIFT_NS", "50000000", 1);
    int64_t before_ns = lab_clock_now(device->clock);
    anchor->taken_ns -= 2 * LAB_NS_PER_S;
    ASSERT_OK(cuda_anchor_refresh((struct cuda_device *)device, err));
    int64_t after_ns = lab_clock_now(device->clock);
    assert_in_range(anchor->time_ns, before_ns, after_ns);
    lab_device_close(device);
}

/* --- graphs --- */

LAB_TEST(a_graph_replays_copies_and_events_across_streams) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_stream *up, *down;
    struct lab_event *arrived, *untouched;
    struct lab_buffer host, on_device, back;
    struct lab_graph *send, *fetch;
    int64_t time_ns, last_ns = 0;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COPY, &up, err));
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COPY, &down, err));
    ASSERT_OK(lab_event_open(device, &arrived, err));
    ASSERT_OK(lab_event_open(device, &untouched, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &host, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &back, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &on_device, err));
    ASSERT_OK(lab_graph_begin(up, err));
    ASSERT_OK(lab_event_wait(untouched, up, err)); /* never recorded: holds nobody */
    ASSERT_OK(lab_copy(up, on_device.data, host.data, BYTES, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_event_record(arrived, up, err));
    ASSERT_OK(lab_graph_end(up, &send, err));
    ASSERT_OK(lab_graph_begin(down, err));
    ASSERT_OK(lab_event_wait(arrived, down, err));
    ASSERT_OK(lab_copy(down, back.data, on_device.data, BYTES, LAB_MEMORY_HOST_PINNED,
                       LAB_MEMORY_DEVICE, err));
    ASSERT_OK(lab_graph_end(down, &fetch, err));
    assert_int_equal(*(char *)back.data, 0); /* captured, not run */
    ASSERT_FAILS(lab_event_time(arrived, &time_ns, err), LAB_ERR_SYSTEM, "never recorded");
    for (int i = 1; i < 20; i++) {
        memset(host.data, i, BYTES);
        ASSERT_OK(lab_graph_launch(send, up, err));
        ASSERT_OK(lab_graph_launch(fetch, down, err));
        ASSERT_OK(lab_stream_sync(down, err));
        assert_memory_equal(back.data, host.data, BYTES);
        ASSERT_OK(lab_event_time(arrived, &time_ns, err));
        assert_true(time_ns > last_ns);
        last_ns = time_ns;
    }
    lab_event_close(arrived); /* the graphs keep it */
    ASSERT_OK(lab_graph_launch(send, up, err));
    lab_graph_close(send); /* while it may be running */
    ASSERT_OK(lab_stream_sync(up, err));
    lab_graph_close(fetch);
    lab_event_close(untouched);
    lab_buffer_close(&host);
    lab_buffer_close(&back);
    lab_buffer_close(&on_device);
    lab_stream_close(up);
    lab_stream_close(down);
    lab_device_close(device);
}

LAB_TEST(a_stream_may_close_while_its_commands_are_captured) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_stream *stream;
    struct lab_event *event;
    ASSERT_OK(lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, err));
    ASSERT_OK(lab_event_open(device, &event, err));
    ASSERT_OK(lab_graph_begin(stream, err));
    ASSERT_OK(lab_event_record(event, stream, err));
    lab_stream_close(stream);
    lab_event_close(event);
    lab_device_close(device);
}

/* --- slices --- */

LAB_TEST(slices_have_multiprocessors_of_their_own) {
    struct lab_device *whole = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_device *first = cuda_fixture_device(*state, "cuda:0/2", 0);
    struct lab_device *second = cuda_fixture_device(*state, "cuda:0/2", 1);
    int all = whole->info.compute_units;
    assert_in_range(first->info.compute_units, 1, all / 2);
    assert_in_range(second->info.compute_units, 1, all / 2);
    assert_contains(first->ref.description, " multiprocessors of ");
    struct lab_stream *stream;
    struct lab_buffer buffer;
    char byte = 7, back = 0;
    ASSERT_OK(lab_stream_open(second, LAB_STREAM_COMPUTE, &stream, err));
    ASSERT_OK(lab_buffer_open(second, LAB_MEMORY_DEVICE, -1, 1, &buffer, err));
    ASSERT_OK(
        lab_copy(stream, buffer.data, &byte, 1, LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE, err));
    ASSERT_OK(
        lab_copy(stream, &back, buffer.data, 1, LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_DEVICE, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_int_equal(back, 7);
    lab_buffer_close(&buffer);
    lab_stream_close(stream);
    lab_device_close(first);
    lab_device_close(whole);
    lab_device_close(second);
}

LAB_TEST(the_driver_has_the_last_word_on_slices) {
    struct lab_device *device;
    fake_only();
    ASSERT_FAILS(cuda_fixture_try(*state, "cuda:0/16.1", 0, &device, err), LAB_ERR_USER,
                 "132 multiprocessors can't be cut into 16 slices: the driver makes at most 15, of "
                 "8 multiprocessors; write cuda:0/15 or fewer");
    device = cuda_fixture_device(*state, "cuda:0/15.14", 0);
    assert_int_equal(device->info.compute_units, 8);
    assert_string_equal(device->ref.description,
                        "8 of 132 multiprocessors of NVIDIA Fake 90 (12 stay idle)");
    lab_device_close(device);
}

/* --- limits --- */

/* Whoever has little memory left may still measure what fits into it. */
LAB_TEST(limits_that_find_no_memory_are_unknown) {
    fake_only();
    setenv("FAKE_CUDA_MEMORY_MIB", "64", 1);
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_device_limits limits;
    ASSERT_OK(lab_device_limits(device, LAB_BF16, &limits, err));
    assert_true(limits.h2d_bytes_per_s == 0 && limits.flops_per_s == 0);
    assert_contains(limits.how, "unknown: out of device memory: 256 MiB asked for");
    lab_device_close(device);
}

LAB_TEST(limits_are_measured_once_for_each_dtype) {
    struct lab_device *device = cuda_fixture_device(*state, "cuda:0", 0);
    struct lab_device_limits limits, again;
    ASSERT_OK(lab_device_limits(device, LAB_BF16, &limits, err));
    assert_true(limits.h2d_bytes_per_s > 0 && limits.d2h_bytes_per_s > 0);
    assert_true(limits.memory_bytes_per_s > 0 && limits.flops_per_s > 0);
    ASSERT_OK(lab_device_limits(device, LAB_BF16, &again, err));
    assert_memory_equal(&again, &limits, sizeof limits);
    if (!cuda_is_real()) {
        setenv("FAKE_CUDA_FAIL", "cublasLtMatmul:15", 1);
        ASSERT_FAILS(lab_device_limits(device, LAB_FP16, &limits, err), LAB_ERR_SYSTEM,
                     "measuring the limits of cuda:0: cublasLtMatmul: not supported (15)");
    }
    lab_device_close(device);
}

/* --- failures --- */

/* All that a run does on a device; the first failure is returned, and all is closed in any case. */
static int go_through(struct cuda_fixture *fixture, struct lab_err *err) {
    struct lab_device *device = NULL;
    struct lab_stream *stream = NULL;
    struct lab_event *event = NULL;
    struct lab_graph *graph = NULL;
    struct lab_buffer host = {0}, on_device = {0};
    int64_t time_ns;
    int status = cuda_fixture_try(fixture, "cuda:0/3.1", 0, &device, err) ||
                 lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, err) ||
                 lab_event_open(device, &event, err) ||
                 lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &host, err) ||
                 lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &on_device, err) ||
                 lab_graph_begin(stream, err) || lab_event_wait(event, stream, err) ||
                 lab_copy(stream, on_device.data, host.data, BYTES, LAB_MEMORY_DEVICE,
                          LAB_MEMORY_HOST_PINNED, err) ||
                 lab_event_record(event, stream, err) || lab_graph_end(stream, &graph, err) ||
                 lab_graph_launch(graph, stream, err) ||
                 lab_copy(stream, host.data, on_device.data, BYTES, LAB_MEMORY_HOST_PINNED,
                          LAB_MEMORY_DEVICE, err) ||
                 lab_event_record(event, stream, err) || lab_event_time(event, &time_ns, err) ||
                 lab_stream_sync(stream, err);
    unsetenv("FAKE_CUDA_FAIL");
    lab_graph_close(graph);
    lab_buffer_close(&host);
    lab_buffer_close(&on_device);
    lab_event_close(event);
    lab_stream_close(stream);
    lab_device_close(device);
    return status ? -1 : 0;
}

LAB_TEST(every_call_may_fail_and_is_named_in_the_text) {
    static const char *const calls[] = {
        "cuDeviceGetDevResource", /* these two first: a cut is made once and kept */
        "cuDevSmResourceSplitByCount",
        "cuDeviceGetCount",
        "cuDevicePrimaryCtxRetain",
        "cuDevResourceGenerateDesc",
        "cuGreenCtxCreate",
        "cuCtxFromGreenCtx",
        "cuGreenCtxStreamCreate",
        "cuCtxSetCurrent",
        "cuMemGetInfo",
        "cuCtxGetStreamPriorityRange",
        "cuEventCreate",
        "cuMemHostRegister",
        "cuMemAlloc",
        "cuStreamBeginCapture",
        "cuStreamWaitEvent",
        "cuMemcpyHtoDAsync",
        "cuEventRecordWithFlags",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphUpload",
        "cuGraphLaunch",
        "cuMemcpyDtoHAsync",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuEventElapsedTime",
        "cuStreamSynchronize",
    };
    fake_only();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char injected[80], expected[80];
        snprintf(injected, sizeof injected, "%s:700", calls[i]);
        snprintf(expected, sizeof expected, "%s: an illegal memory access was encountered (700)",
                 calls[i]);
        setenv("FAKE_CUDA_FAIL", injected, 1);
        ASSERT_FAILS(go_through(*state, err), LAB_ERR_SYSTEM, expected);
    }
    ASSERT_OK(go_through(*state, err));
}

static int begin(int argc, char **argv) {
    cuda_use_fake(argv);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
        return lab_test_run(argv[1], NULL, NULL);
    }
    cmocka_set_skip_filter("open_*"); /* run_alone starts them */
    return cuda_is_absent() ? LAB_TEST_SKIPPED : LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = cuda_fixture_open, .tear_down = cuda_fixture_close, .begin = begin};
