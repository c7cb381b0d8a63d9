/* Traces of the cpu backend: what the streams did is there, in order, and tied to the host's
 * calls. */
#include "cpu_fixture.h"

#include <unistd.h>

#define SIDE  256
#define BYTES ((size_t)SIDE * SIDE * sizeof(float))

struct memory {
    struct lab_buffer host, in, out;
};

static struct memory memory_open(struct lab_device *device) {
    struct memory memory;
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &memory.host, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &memory.in, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &memory.out, err));
    return memory;
}

static void memory_close(struct memory *memory) {
    lab_buffer_close(&memory->host);
    lab_buffer_close(&memory->in);
    lab_buffer_close(&memory->out);
}

static void enqueue_h2d(struct lab_stream *stream, struct memory *memory) {
    ASSERT_OK(lab_copy(stream, memory->in.data, memory->host.data, BYTES, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
}

static void enqueue_d2h(struct lab_stream *stream, struct memory *memory) {
    ASSERT_OK(lab_copy(stream, memory->host.data, memory->out.data, BYTES, LAB_MEMORY_HOST_PINNED,
                       LAB_MEMORY_DEVICE, err));
}

static void enqueue_gemm(struct lab_stream *stream, struct memory *memory) {
    struct lab_tensor in = lab_tensor_matrix(memory->in.data, LAB_FP32, SIDE, SIDE);
    struct lab_launch launch = {
        .op = LAB_OP_GEMM,
        .in = {in, in},
        .out = lab_tensor_matrix(memory->out.data, LAB_FP32, SIDE, SIDE),
    };
    ASSERT_OK(lab_launch(stream, &launch, err));
}

static struct lab_trace trace_end(struct cpu_fixture *fixture) {
    struct lab_trace trace = {0};
    ASSERT_OK(lab_device_trace_end(fixture->device, &fixture->arena, &trace, err));
    return trace;
}

static const struct lab_trace_call *call_of(const struct lab_trace *trace, uint32_t correlation) {
    for (size_t i = 0; i < trace->call_count; i++)
        if (trace->calls[i].correlation == correlation)
            return &trace->calls[i];
    fail_msg("no call %u", correlation);
    return NULL;
}

LAB_TEST(commands_are_recorded_in_order_with_what_they_did) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    ASSERT_OK(lab_device_trace_begin(fixture->device, 100, err));
    enqueue_h2d(stream, &memory);
    enqueue_gemm(stream, &memory);
    enqueue_d2h(stream, &memory);
    ASSERT_OK(lab_stream_sync(stream, err));
    struct lab_trace trace = trace_end(fixture);

    assert_int_equal(trace.copy_count, 2);
    assert_int_equal(trace.kernel_count, 1);
    assert_int_equal(trace.dropped, 0);
    const struct lab_trace_copy *in = &trace.copies[0], *back = &trace.copies[1];
    const struct lab_trace_kernel *gemm = &trace.kernels[0];
    assert_string_equal(gemm->name, "gemm");
    assert_int_equal(in->kind, LAB_TRACE_COPY_H2D);
    assert_int_equal(in->from, LAB_TRACE_MEMORY_PINNED);
    assert_int_equal(in->to, LAB_TRACE_MEMORY_DEVICE);
    assert_int_equal(back->kind, LAB_TRACE_COPY_D2H);
    assert_int_equal(in->size_bytes, BYTES);
    assert_true(in->start_ns <= in->end_ns && in->end_ns <= gemm->start_ns);
    assert_true(gemm->start_ns <= gemm->end_ns && gemm->end_ns <= back->start_ns);
    assert_int_equal(in->place.stream, gemm->place.stream);
    assert_int_equal(trace.gpu_count, 1);
    assert_int_equal(trace.gpus[0].device, in->place.device);
    memory_close(&memory);
    lab_stream_close(stream);
}

LAB_TEST(each_command_belongs_to_a_call_that_came_before) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    ASSERT_OK(lab_device_trace_begin(fixture->device, 100, err));
    for (int i = 0; i < 5; i++) {
        enqueue_h2d(stream, &memory);
        enqueue_gemm(stream, &memory);
    }
    ASSERT_OK(lab_stream_sync(stream, err));
    struct lab_trace trace = trace_end(fixture);
    assert_int_equal(trace.call_count, 10);
    for (size_t i = 0; i < trace.copy_count; i++) {
        const struct lab_trace_call *call = call_of(&trace, trace.copies[i].place.correlation);
        assert_string_equal(call->name, "lab_copy");
        assert_true(call->start_ns <= trace.copies[i].start_ns);
        assert_int_equal(call->thread, gettid());
    }
    for (size_t i = 0; i < trace.kernel_count; i++) {
        const struct lab_trace_call *call = call_of(&trace, trace.kernels[i].place.correlation);
        assert_string_equal(call->name, "lab_launch");
        assert_int_equal(trace.kernels[i].place.graph_node, 0);
    }
    memory_close(&memory);
    lab_stream_close(stream);
}

LAB_TEST(commands_of_a_graph_share_its_call) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    struct lab_graph *graph = NULL;
    ASSERT_OK(lab_device_trace_begin(fixture->device, 100, err));
    ASSERT_OK(lab_graph_begin(stream, err));
    enqueue_h2d(stream, &memory);
    enqueue_gemm(stream, &memory);
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    enqueue_h2d(stream, &memory);
    ASSERT_OK(lab_stream_sync(stream, err));
    struct lab_trace trace = trace_end(fixture);
    assert_int_equal(trace.call_count, 3); /* capturing is none */
    assert_int_equal(trace.copy_count, 3);
    assert_int_equal(trace.kernel_count, 2);
    for (int i = 0; i < 2; i++) {
        const struct lab_trace_place *copy = &trace.copies[i].place;
        const struct lab_trace_place *gemm = &trace.kernels[i].place;
        assert_string_equal(call_of(&trace, copy->correlation)->name, "lab_graph_launch");
        assert_int_equal(copy->correlation, gemm->correlation);
        assert_int_equal(copy->graph_node, 1);
        assert_int_equal(gemm->graph_node, 2);
    }
    assert_int_equal(trace.copies[2].place.graph_node, 0);
    lab_graph_close(graph);
    memory_close(&memory);
    lab_stream_close(stream);
}

LAB_TEST(what_finds_no_room_is_counted) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    ASSERT_OK(lab_device_trace_begin(fixture->device, 3, err));
    for (int i = 0; i < 5; i++)
        enqueue_h2d(stream, &memory);
    ASSERT_OK(lab_stream_sync(stream, err));
    struct lab_trace trace = trace_end(fixture);
    assert_int_equal(trace.copy_count + trace.call_count, 3);
    assert_int_equal(trace.dropped, 7);
    memory_close(&memory);
    lab_stream_close(stream);
}

LAB_TEST(only_what_is_between_begin_and_end_is_recorded) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    enqueue_h2d(stream, &memory);
    ASSERT_OK(lab_stream_sync(stream, err));
    ASSERT_OK(lab_device_trace_begin(fixture->device, 100, err));
    ASSERT_FAILS(lab_device_trace_begin(fixture->device, 100, err), LAB_ERR_SYSTEM, "already");
    struct lab_trace trace = trace_end(fixture);
    assert_int_equal(trace.copy_count + trace.call_count + trace.kernel_count, 0);
    ASSERT_FAILS(lab_device_trace_end(fixture->device, &fixture->arena, &trace, err),
                 LAB_ERR_SYSTEM, "isn't being traced");
    enqueue_h2d(stream, &memory);
    ASSERT_OK(lab_stream_sync(stream, err));
    memory_close(&memory);
    lab_stream_close(stream);
}

static bool overlap(const struct lab_trace *trace) {
    for (size_t c = 0; c < trace->copy_count; c++)
        for (size_t k = 0; k < trace->kernel_count; k++) {
            const struct lab_trace_copy *copy = &trace->copies[c];
            const struct lab_trace_kernel *gemm = &trace->kernels[k];
            if (copy->start_ns < gemm->end_ns && gemm->start_ns < copy->end_ns)
                return true;
        }
    return false;
}

/*
 * Products on one stream and copies on another, let go together. Where two cores do them the trace
 * must show both at once; a busy machine may keep one back for a while, but not each time.
 */
LAB_TEST(a_copy_under_a_product_is_seen_under_it) {
    struct cpu_fixture *fixture = *state;
    if (fixture->device->ref.cpus.count < 2)
        skip();
    struct lab_stream *compute = fixture_stream(fixture->device),
                      *copies = fixture_stream(fixture->device);
    struct memory one = memory_open(fixture->device), other = memory_open(fixture->device);
    bool seen = false;
    for (int attempt = 0; attempt < 100 && !seen; attempt++) {
        int count = 8 << (attempt < 5 ? attempt : 5);
        sem_t gate;
        sem_init(&gate, 0, 0);
        ASSERT_OK(lab_device_trace_begin(fixture->device, 2000, err));
        stream_hold(copies, &gate);
        stream_release(compute, &gate);
        for (int i = 0; i < count; i++) {
            enqueue_gemm(compute, &one);
            enqueue_h2d(copies, &other);
        }
        ASSERT_OK(lab_stream_sync(compute, err));
        ASSERT_OK(lab_stream_sync(copies, err));
        struct lab_trace trace = trace_end(fixture);
        assert_int_equal(trace.dropped, 0);
        assert_int_not_equal(trace.kernels[0].place.stream, trace.copies[0].place.stream);
        seen = overlap(&trace);
        sem_destroy(&gate);
    }
    assert_true(seen);
    memory_close(&one);
    memory_close(&other);
    lab_stream_close(compute);
    lab_stream_close(copies);
}

const struct lab_test_program lab_test_program = {.begin = on_all_and_on_one};
