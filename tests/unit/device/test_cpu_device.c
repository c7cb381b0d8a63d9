/* The device as a whole: what it says of itself, its memory, and launches through the front. */
#include "cpu_fixture.h"

LAB_TEST(a_device_describes_itself) {
    struct cpu_fixture *fixture = *state;
    const struct lab_device_info *info = &fixture->device->info;
    assert_int_equal(info->compute_units, fixture->device->ref.cpus.count);
    assert_contains(info->arithmetic, "OpenBLAS");
    assert_int_equal(info->overlaps, info->compute_units > 1);
    assert_true(info->memory_bytes > 0);
}

/* In front of the library's own: tells the backend that it got a threaded one. */
static int parallel;

int openblas_get_parallel(void);

int openblas_get_parallel(void) {
    return parallel;
}

LAB_TEST(a_threaded_openblas_is_refused) {
    struct cpu_fixture *fixture = *state;
    struct lab_device *device = NULL;
    parallel = 1;
    ASSERT_FAILS(
        lab_device_open(fixture->machine, &fixture->device->ref, LAB_DEVICE_SETUP, &device, err),
        LAB_ERR_UNSUPPORTED, "threaded build");
    assert_null(device);
    parallel = 0;
    ASSERT_OK(
        lab_device_open(fixture->machine, &fixture->device->ref, LAB_DEVICE_SETUP, &device, err));
    lab_device_close(device);
}

LAB_TEST(one_core_does_not_overlap) {
    struct cpu_fixture *fixture = *state;
    char selector[32];
    snprintf(selector, sizeof selector, "%s/%d.0", fixture->device->ref.name,
             fixture->device->ref.cpus.count);
    struct lab_device *slice = fixture_device(fixture, selector, -1);
    assert_int_equal(slice->info.compute_units, 1);
    assert_false(slice->info.overlaps);
    assert_string_equal(slice->info.overlap_why_not, "one core does both");
    lab_device_close(slice);
}

LAB_TEST(limits_are_measured_once) {
    struct cpu_fixture *fixture = *state;
    struct lab_device_limits first, again;
    ASSERT_OK(lab_device_limits(fixture->device, LAB_FP32, &first, err));
    ASSERT_OK(lab_device_limits(fixture->device, LAB_FP32, &again, err));
    assert_true(first.flops_per_s > 1e8 && first.flops_per_s < 1e16);
    assert_true(first.h2d_bytes_per_s > 1e7 && first.d2h_bytes_per_s > 1e7);
    assert_true(first.memory_bytes_per_s >= 2 * first.h2d_bytes_per_s);
    assert_memory_equal(&first, &again, sizeof first);
    ASSERT_FAILS(lab_device_limits(fixture->device, LAB_FP16, &again, err), LAB_ERR_UNSUPPORTED,
                 "doesn't compute in fp16, which needs a GPU");
}

LAB_TEST(cores_have_a_rate_of_their_own) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream;
    ASSERT_OK(lab_stream_open(fixture->device, LAB_STREAM_COMPUTE, &stream, err));
    /* also where each core comes too late for its turn, as on a busy machine */
    for (int64_t ms = 0; ms <= 2; ms += 2) {
        double rate = lab_stream_core_rate(stream, ms * LAB_NS_PER_MS);
        assert_true(rate > 0 && rate < 1e16);
    }
    lab_stream_close(stream);
}

LAB_TEST(memory_lies_where_it_was_asked_for) {
    struct cpu_fixture *fixture = *state;
    int node = fixture->machine->nodes[0].number;
    for (int kind = 0; kind < 3; kind++) {
        struct lab_buffer buffer;
        struct lab_page_census census;
        ASSERT_OK(lab_buffer_open(fixture->device, (enum lab_memory_kind)kind, node, 1 << 20,
                                  &buffer, err));
        assert_int_equal(buffer.node, kind ? node : fixture->device->ref.node);
        ASSERT_OK(
            lab_memory_prove(fixture->machine, buffer.data, buffer.size_bytes, buffer.node, err));
        ASSERT_OK(
            lab_memory_census(fixture->machine, buffer.data, buffer.size_bytes, &census, err));
        assert_int_equal(census.absent, 0); /* touched */
        lab_buffer_close(&buffer);
        assert_null(buffer.data);
        lab_buffer_close(&buffer);
    }
}

LAB_TEST(exhausted_memory_is_an_ordinary_result) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_buffer buffer = {0};
    for (int kind = 0; kind < 3; kind++) {
        ASSERT_FAILS(lab_buffer_open(fixture->device, (enum lab_memory_kind)kind,
                                     fixture->device->ref.node, (size_t)1 << 50, &buffer, err),
                     LAB_ERR_MEMORY, "1.00 PiB");
        assert_null(buffer.data);
    }
    /* and the device goes on */
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, 4096, &buffer, err));
    ASSERT_OK(lab_copy(stream, buffer.data, "alive", 6, LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PAGEABLE,
                       err));
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_string_equal(buffer.data, "alive");
    lab_buffer_close(&buffer);
    lab_stream_close(stream);
}

LAB_TEST(odd_sizes_and_nodes) {
    struct cpu_fixture *fixture = *state;
    struct lab_buffer buffer;
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, 0, &buffer, err));
    assert_null(buffer.data);
    lab_buffer_close(&buffer);
    ASSERT_FAILS(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PINNED, 4711, 4096, &buffer, err),
                 LAB_ERR_USER, "4711");
}

/* --- launches --- */

static struct lab_launch fill_launch(struct lab_buffer *buffer, int64_t count, float value) {
    return (struct lab_launch){
        .op = LAB_OP_FILL, .out = lab_tensor(buffer->data, LAB_FP32, 1, &count), .value = value};
}

LAB_TEST(launches_compute_in_order_with_copies) {
    struct cpu_fixture *fixture = *state;
    enum { COUNT = 100000 };
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_buffer buffer, host;
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, COUNT * sizeof(float),
                              &buffer, err));
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PINNED, -1, COUNT * sizeof(float),
                              &host, err));
    for (int round = 1; round < 20; round++) {
        struct lab_launch fill = fill_launch(&buffer, COUNT, (float)round);
        ASSERT_OK(lab_launch(stream, &fill, err));
        ASSERT_OK(lab_copy(stream, host.data, buffer.data, COUNT * sizeof(float),
                           LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err));
        fill = fill_launch(&buffer, COUNT, -1);
        ASSERT_OK(lab_launch(stream, &fill, err));
        ASSERT_OK(lab_stream_sync(stream, err));
        for (int i = 0; i < COUNT; i++)
            if (((float *)host.data)[i] != (float)round)
                fail_msg("element %d is %g", i, (double)((float *)host.data)[i]);
    }
    lab_buffer_close(&buffer);
    lab_buffer_close(&host);
    lab_stream_close(stream);
}

LAB_TEST(launches_that_cannot_be_are_refused) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_buffer buffer, host;
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, 4096, &buffer, err));
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PINNED, -1, 4096, &host, err));
    struct lab_launch fill = fill_launch(&buffer, 1025, 0);
    ASSERT_FAILS(lab_launch(stream, &fill, err), LAB_ERR_SYSTEM,
                 "fill: the output of 4100 bytes reaches 4 bytes beyond its buffer");
    fill = fill_launch(&host, 1024, 0);
    ASSERT_FAILS(lab_launch(stream, &fill, err), LAB_ERR_SYSTEM, "not device memory");
    fill = fill_launch(&buffer, 1024, 0);
    fill.out.dtype = LAB_BF16;
    ASSERT_FAILS(lab_launch(stream, &fill, err), LAB_ERR_UNSUPPORTED,
                 "cpu computes in fp32 only; dtype=bf16 needs a GPU");
    lab_buffer_close(&buffer);
    lab_buffer_close(&host);
    lab_stream_close(stream);
}

const struct lab_test_program lab_test_program = {.open = fixture_open, .close = fixture_close};
