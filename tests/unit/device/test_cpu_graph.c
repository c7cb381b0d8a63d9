/* Graphs: replay does what the commands would have done, events inside included. */
#include "cpu_fixture.h"

#define BYTES 4096

struct memory {
    struct lab_buffer host, device, back;
};

static struct memory memory_open(struct lab_device *device) {
    struct memory memory;
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &memory.host, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, BYTES, &memory.device, err));
    ASSERT_OK(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, -1, BYTES, &memory.back, err));
    return memory;
}

static void memory_close(struct memory *memory) {
    lab_buffer_close(&memory->host);
    lab_buffer_close(&memory->device);
    lab_buffer_close(&memory->back);
}

static void enqueue_round_trip(struct lab_stream *stream, struct memory *memory) {
    ASSERT_OK(lab_copy(stream, memory->device.data, memory->host.data, BYTES, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_copy(stream, memory->back.data, memory->device.data, BYTES,
                       LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err));
}

LAB_TEST(replay_equals_the_commands_themselves) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    struct lab_graph *graph = NULL;
    ASSERT_OK(lab_graph_begin(stream, err));
    enqueue_round_trip(stream, &memory);
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    memset(memory.host.data, 1, BYTES);
    assert_int_equal(*(char *)memory.back.data, 0); /* captured, not run */
    for (int i = 2; i < 30; i++) {
        memset(memory.host.data, i, BYTES);
        ASSERT_OK(lab_graph_launch(graph, stream, err));
        ASSERT_OK(lab_stream_sync(stream, err));
        assert_memory_equal(memory.back.data, memory.host.data, BYTES);
    }
    lab_graph_close(graph);
    memory_close(&memory);
    lab_stream_close(stream);
}

LAB_TEST(a_graph_may_close_while_it_runs) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct memory memory = memory_open(fixture->device);
    struct lab_graph *graph = NULL;
    sem_t gate;
    sem_init(&gate, 0, 0);
    ASSERT_OK(lab_graph_begin(stream, err));
    enqueue_round_trip(stream, &memory);
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    memset(memory.host.data, 9, BYTES);
    stream_hold(stream, &gate);
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    lab_graph_close(graph);
    sem_post(&gate);
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_memory_equal(memory.back.data, memory.host.data, BYTES);
    memory_close(&memory);
    lab_stream_close(stream);
    sem_destroy(&gate);
}

/*
 * Two stages, each one graph, handing a buffer back and forth: the consumer's graph waits for the
 * producer's record, and the producer's for the consumer's of the round before.
 */
LAB_TEST(events_inside_order_graphs_of_two_streams) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *in = fixture_stream(fixture->device), *out = fixture_stream(fixture->device);
    struct lab_event *full = fixture_event(fixture->device),
                     *empty = fixture_event(fixture->device);
    struct memory memory = memory_open(fixture->device);
    struct lab_graph *fill = NULL, *drain = NULL;
    enum { ROUNDS = 40 };
    struct lab_buffer results;
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PAGEABLE, -1, BYTES, &results, err));
    ASSERT_OK(lab_graph_begin(in, err));
    ASSERT_OK(lab_event_wait(empty, in, err));
    ASSERT_OK(lab_copy(in, memory.device.data, memory.host.data, BYTES, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_event_record(full, in, err));
    ASSERT_OK(lab_graph_end(in, &fill, err));
    ASSERT_OK(lab_graph_begin(out, err));
    ASSERT_OK(lab_event_wait(full, out, err));
    ASSERT_OK(lab_copy(out, memory.back.data, memory.device.data, BYTES, LAB_MEMORY_HOST_PINNED,
                       LAB_MEMORY_DEVICE, err));
    ASSERT_OK(lab_event_record(empty, out, err));
    ASSERT_OK(lab_graph_end(out, &drain, err));
    for (int round = 1; round <= ROUNDS; round++) {
        ASSERT_OK(lab_event_sync(full, err)); /* the source may be overwritten */
        memset(memory.host.data, round, BYTES);
        ASSERT_OK(lab_graph_launch(fill, in, err));
        ASSERT_OK(lab_graph_launch(drain, out, err));
        ASSERT_OK(lab_copy(out, (char *)results.data + round, memory.back.data, 1,
                           LAB_MEMORY_HOST_PAGEABLE, LAB_MEMORY_HOST_PINNED, err));
    }
    ASSERT_OK(lab_stream_sync(out, err));
    for (int round = 1; round <= ROUNDS; round++)
        assert_int_equal(((char *)results.data)[round], round);
    int64_t full_ns, empty_ns;
    ASSERT_OK(lab_event_time(full, &full_ns, err));
    ASSERT_OK(lab_event_time(empty, &empty_ns, err));
    assert_true(full_ns <= empty_ns);
    lab_graph_close(fill);
    lab_graph_close(drain);
    lab_event_close(full);
    lab_event_close(empty);
    lab_buffer_close(&results);
    memory_close(&memory);
    lab_stream_close(in);
    lab_stream_close(out);
}

LAB_TEST(a_record_inside_is_passed_before_the_graph_ends) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_stream *other = fixture_stream(fixture->device);
    struct lab_event *inside = fixture_event(fixture->device);
    struct lab_event *barrier = fixture_event(fixture->device);
    struct lab_graph *graph = NULL;
    sem_t gate;
    sem_init(&gate, 0, 0);
    ASSERT_OK(lab_graph_begin(stream, err));
    ASSERT_OK(lab_event_record(inside, stream, err));
    ASSERT_OK(lab_event_wait(barrier, stream, err));
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    stream_hold(other, &gate);
    ASSERT_OK(lab_event_record(barrier, other, err));
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    ASSERT_OK(lab_event_sync(inside, err)); /* the graph itself waits for the gate */
    assert_false(stream_is_done(stream));
    sem_post(&gate);
    ASSERT_OK(lab_stream_sync(stream, err));
    lab_graph_close(graph);
    lab_event_close(inside);
    lab_event_close(barrier);
    lab_stream_close(stream);
    lab_stream_close(other);
    sem_destroy(&gate);
}

LAB_TEST(a_captured_record_counts_from_its_launch_on) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_event *event = fixture_event(fixture->device);
    struct lab_graph *graph = NULL;
    int64_t time_ns;
    ASSERT_OK(lab_graph_begin(stream, err));
    ASSERT_OK(lab_event_record(event, stream, err));
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    ASSERT_FAILS(lab_event_time(event, &time_ns, err), LAB_ERR_SYSTEM, "never recorded");
    lab_event_close(event); /* the graph keeps it */
    ASSERT_OK(lab_graph_launch(graph, stream, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    lab_graph_close(graph);
    lab_stream_close(stream);
}

LAB_TEST(misuse_is_refused) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_device *other = fixture_device(fixture, "cpu", -1);
    struct lab_stream *foreign = fixture_stream(other);
    struct lab_graph *graph = NULL, *none = NULL;
    ASSERT_FAILS(lab_graph_end(stream, &graph, err), LAB_ERR_SYSTEM, "no graph was begun");
    ASSERT_OK(lab_graph_begin(stream, err));
    ASSERT_FAILS(lab_graph_begin(stream, err), LAB_ERR_SYSTEM, "captured already");
    ASSERT_FAILS(lab_stream_sync(stream, err), LAB_ERR_SYSTEM, "can't be synchronised");
    ASSERT_OK(lab_graph_end(stream, &graph, err));
    ASSERT_FAILS(lab_graph_launch(graph, foreign, err), LAB_ERR_SYSTEM, "belongs to");
    ASSERT_OK(lab_graph_launch(graph, stream, err)); /* an empty one does nothing */
    ASSERT_OK(lab_stream_sync(stream, err));
    ASSERT_OK(lab_graph_begin(stream, err));
    ASSERT_FAILS(lab_graph_launch(graph, stream, err), LAB_ERR_SYSTEM, "captured");
    lab_stream_close(stream); /* what was captured goes with it */
    lab_graph_close(graph);
    lab_graph_close(none);
    lab_stream_close(foreign);
    lab_device_close(other);
}

const struct lab_test_program lab_test_program = {.begin = on_all_and_on_one};
