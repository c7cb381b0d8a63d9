/* Streams: side by side, each in order; copies and their bounds; closing. */
#include "cpu_fixture.h"

LAB_TEST(streams_run_side_by_side) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *a = fixture_stream(fixture->device), *b = fixture_stream(fixture->device);
    sem_t from_a, from_b;
    sem_init(&from_a, 0, 0);
    sem_init(&from_b, 0, 0);
    /* a waits for b in the middle of its commands, and b for a in the middle of its own */
    for (int round = 0; round < 3; round++) {
        stream_hold(a, &from_b);
        stream_release(a, &from_a);
        stream_release(b, &from_b);
        stream_hold(b, &from_a);
    }
    ASSERT_OK(lab_stream_sync(a, err));
    ASSERT_OK(lab_stream_sync(b, err));
    lab_stream_close(a);
    lab_stream_close(b);
    sem_destroy(&from_a);
    sem_destroy(&from_b);
}

LAB_TEST(a_stream_runs_beside_one_that_copies) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *held = fixture_stream(fixture->device);
    struct lab_stream *copying = fixture_stream(fixture->device);
    struct lab_buffer from, to;
    sem_t gate;
    sem_init(&gate, 0, 0);
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PINNED, -1, 1 << 20, &from, err));
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, 1 << 20, &to, err));
    memset(from.data, 7, from.size_bytes);
    stream_hold(held, &gate);
    ASSERT_OK(lab_copy(copying, to.data, from.data, 1 << 20, LAB_MEMORY_DEVICE,
                       LAB_MEMORY_HOST_PINNED, err));
    ASSERT_OK(lab_stream_sync(copying, err)); /* while the other stream stands still */
    assert_memory_equal(to.data, from.data, 1 << 20);
    sem_post(&gate);
    lab_buffer_close(&from);
    lab_buffer_close(&to);
    lab_stream_close(held);
    lab_stream_close(copying);
    sem_destroy(&gate);
}

struct sequence {
    int next;
    int broken;
};

struct numbered {
    struct sequence *sequence;
    int number;
};

static void follow(struct cpu_stream *stream, void *context) {
    (void)stream;
    struct numbered *numbered = context;
    numbered->sequence->broken += numbered->sequence->next++ != numbered->number;
}

LAB_TEST(commands_keep_their_order_beyond_a_full_ring) {
    struct cpu_fixture *fixture = *state;
    enum { COMMANDS = 5 * CPU_RING + 3 };
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct sequence sequence = {0};
    struct numbered *numbered = lab_mem_alloc(COMMANDS, sizeof *numbered);
    for (int i = 0; i < COMMANDS; i++) {
        numbered[i] = (struct numbered){.sequence = &sequence, .number = i};
        cpu_stream_call((struct cpu_stream *)stream, follow, &numbered[i]);
    }
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_int_equal(sequence.next, COMMANDS);
    assert_int_equal(sequence.broken, 0);
    lab_stream_close(stream);
    lab_mem_free(numbered);
}

LAB_TEST(closing_waits_for_what_is_pending) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_stream *other = fixture_stream(fixture->device);
    struct sequence sequence = {0};
    struct numbered numbered[100];
    sem_t gate;
    sem_init(&gate, 0, 0);
    stream_hold(stream, &gate);
    for (int i = 0; i < 100; i++) {
        numbered[i] = (struct numbered){.sequence = &sequence, .number = i};
        cpu_stream_call((struct cpu_stream *)stream, follow, &numbered[i]);
    }
    stream_release(other, &gate);
    lab_stream_close(stream); /* without sync */
    assert_int_equal(sequence.next, 100);
    lab_stream_close(other);
    sem_destroy(&gate);
}

LAB_TEST(closed_streams_can_be_opened_again) {
    struct cpu_fixture *fixture = *state;
    sem_t gate;
    sem_init(&gate, 0, 0);
    for (int i = 0; i < 20; i++) {
        struct lab_stream *a = fixture_stream(fixture->device);
        struct lab_stream *b = fixture_stream(fixture->device);
        stream_hold(a, &gate);
        stream_release(b, &gate);
        lab_stream_close(a);
        lab_stream_close(b);
    }
    sem_destroy(&gate);
}

LAB_TEST(copies_move_every_byte_in_every_direction) {
    struct cpu_fixture *fixture = *state;
    enum { KINDS = 3, BYTES = 300007 };
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_buffer buffers[KINDS][2];
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 2; i++)
            ASSERT_OK(lab_buffer_open(fixture->device, (enum lab_memory_kind)kind, -1, BYTES,
                                      &buffers[kind][i], err));
    for (int from = 0; from < KINDS; from++)
        for (int to = 0; to < KINDS; to++) {
            unsigned char *source = buffers[from][0].data, *target = buffers[to][1].data;
            for (int i = 0; i < BYTES; i++)
                source[i] = (unsigned char)(i * 31 + from * 7 + to);
            memset(target, 0, BYTES);
            ASSERT_OK(lab_copy(stream, target + 3, source + 1, BYTES - 5, (enum lab_memory_kind)to,
                               (enum lab_memory_kind)from, err));
            ASSERT_OK(lab_stream_sync(stream, err));
            assert_memory_equal(target + 3, source + 1, BYTES - 5);
            assert_int_equal(target[2] | target[BYTES - 2] | target[BYTES - 1], 0);
        }
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 2; i++)
            lab_buffer_close(&buffers[kind][i]);
    lab_stream_close(stream);
}

LAB_TEST(copies_outside_buffers_are_refused) {
    struct cpu_fixture *fixture = *state;
    struct lab_stream *stream = fixture_stream(fixture->device);
    struct lab_buffer on_device, pinned;
    char ordinary[64] = "any memory of the program is pageable host memory";
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_DEVICE, -1, 4096, &on_device, err));
    ASSERT_OK(lab_buffer_open(fixture->device, LAB_MEMORY_HOST_PINNED, -1, 4096, &pinned, err));
    char *d = on_device.data, *p = pinned.data;
    const enum lab_memory_kind D = LAB_MEMORY_DEVICE, P = LAB_MEMORY_HOST_PINNED,
                               H = LAB_MEMORY_HOST_PAGEABLE;
    ASSERT_FAILS(lab_copy(stream, d + 1, p, 4096, D, P, err), LAB_ERR_SYSTEM,
                 "the copy's target of 4096 bytes reaches 1 bytes beyond its buffer");
    ASSERT_FAILS(lab_copy(stream, d, p + 4095, 2, D, P, err), LAB_ERR_SYSTEM, "source");
    ASSERT_FAILS(lab_copy(stream, d, p, 8, P, P, err), LAB_ERR_SYSTEM,
                 "is device memory, not pinned host memory");
    ASSERT_FAILS(lab_copy(stream, ordinary, p, 8, D, P, err), LAB_ERR_SYSTEM, "isn't in a buffer");
    ASSERT_FAILS(lab_copy(stream, NULL, p, 8, D, P, err), LAB_ERR_SYSTEM, "target is NULL");
    ASSERT_FAILS(lab_copy(stream, d, NULL, 8, D, P, err), LAB_ERR_SYSTEM, "source is NULL");
    ASSERT_FAILS(lab_copy(stream, d, d + 8, 16, D, D, err), LAB_ERR_SYSTEM, "overlap");
    ASSERT_FAILS(lab_copy(stream, d, p, SIZE_MAX - 8, D, P, err), LAB_ERR_SYSTEM, "beyond");
    ASSERT_OK(lab_copy(stream, NULL, NULL, 0, D, P, err));
    ASSERT_OK(lab_copy(stream, d, ordinary, sizeof ordinary, D, H, err));
    ASSERT_OK(lab_stream_sync(stream, err));
    assert_memory_equal(d, ordinary, sizeof ordinary);
    lab_buffer_close(&on_device);
    lab_buffer_close(&pinned);
    lab_stream_close(stream);
}

const struct lab_test_program lab_test_program = {.begin = on_all_and_on_one};
