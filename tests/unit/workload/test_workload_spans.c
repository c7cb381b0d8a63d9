/*
 * The loop that workloads share: how far the host runs ahead, what it waits for, what it reads.
 * What an iteration does on the stream is to wait for the host to enqueue a later one, so a loop
 * that waited for too much would wait for itself.
 */
#include "unit/device/cpu_fixture.h"
#include "workload/workload.h"

#include <time.h>

#define STAGES (1u << LAB_STAGE_COMPUTE)

struct ahead {
    struct lab_spans spans;
    struct lab_stream *stream;
    int count;
    int lead;     /* iteration i can end when iteration i + lead has been enqueued */
    int enqueued; /* so far */
    int fail_at;
    sem_t permits;
    int stuck; /* iterations that gave up waiting */
};

static void take_permit(struct cpu_stream *stream, void *opaque) {
    (void)stream;
    struct ahead *ahead = opaque;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20; /* a machine may be busy; only a loop that waits for itself takes so long */
    if (!ahead->stuck && sem_timedwait(&ahead->permits, &until))
        ahead->stuck++;
}

static int enqueue(void *opaque, int iteration, struct lab_err *err) {
    struct ahead *ahead = opaque;
    assert_int_equal(iteration, ahead->enqueued);
    if (iteration == ahead->fail_at) {
        for (int i = 0; i < ahead->lead; i++)
            sem_post(&ahead->permits);
        return lab_err_set(err, LAB_ERR_MEMORY, "made up by the test");
    }
    if (lab_spans_start(&ahead->spans, iteration, LAB_STAGE_COMPUTE, ahead->stream, err))
        return -1;
    cpu_stream_call((struct cpu_stream *)ahead->stream, take_permit, ahead);
    if (lab_spans_end(&ahead->spans, iteration, LAB_STAGE_COMPUTE, ahead->stream, err))
        return -1;
    ahead->enqueued++;
    bool last = ahead->enqueued == ahead->count;
    for (int i = 0; i < (last ? ahead->lead + 1 : 1); i++)
        if (last || iteration >= ahead->lead)
            sem_post(&ahead->permits);
    return 0;
}

static int run(struct ahead *ahead, int count, struct lab_iteration *records, struct lab_err *err) {
    ahead->count = count;
    ahead->enqueued = 0;
    return lab_spans_run(&ahead->spans, &ahead->stream, 1, count, enqueue, ahead, records, err);
}

static struct ahead ahead_open(struct lab_device *device, int sync_frequency) {
    struct ahead ahead = {.stream = fixture_stream(device), .lead = sync_frequency, .fail_at = -1};
    ASSERT_OK(lab_spans_open(device, sync_frequency, STAGES, &ahead.spans, err));
    return ahead;
}

static void ahead_close(struct ahead *ahead) {
    lab_stream_close(ahead->stream);
    lab_spans_close(&ahead->spans);
    sem_destroy(&ahead->permits);
}

enum { MOST = 40 };

static void assert_in_order(const struct lab_iteration *records, int count) {
    for (int i = 0; i < count; i++) {
        const struct lab_span *span = &records[i].stages[LAB_STAGE_COMPUTE];
        assert_true(span->start_ns > 0 && span->start_ns <= span->end_ns);
        assert_true(records[i].start_ns == span->start_ns && records[i].end_ns == span->end_ns);
        if (i > 0)
            assert_true(records[i - 1].end_ns <= records[i].start_ns);
    }
}

LAB_TEST(streams_have_work_while_the_host_waits) {
    struct cpu_fixture *fixture = *state;
    static const int counts[] = {1, 2, 7, 10, 11, MOST};
    for (int frequency = 1; frequency <= 5; frequency++) {
        struct ahead ahead = ahead_open(fixture->device, frequency);
        sem_init(&ahead.permits, 0, 0);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            struct lab_iteration records[MOST];
            memset(records, 0, sizeof records);
            ahead.lead = frequency < counts[c] ? frequency : counts[c] - 1;
            ASSERT_OK(run(&ahead, counts[c], records, err));
            assert_int_equal(ahead.stuck, 0);
            assert_int_equal(ahead.enqueued, counts[c]);
            assert_true(stream_is_done(ahead.stream));
            assert_in_order(records, counts[c]);
        }
        ahead_close(&ahead);
    }
}

LAB_TEST(a_failure_leaves_the_stream_idle) {
    struct cpu_fixture *fixture = *state;
    struct ahead ahead = ahead_open(fixture->device, 3);
    struct lab_iteration records[MOST];
    sem_init(&ahead.permits, 0, 0);
    ahead.fail_at = 20;
    ASSERT_FAILS(run(&ahead, MOST, records, err), LAB_ERR_MEMORY, "made up");
    assert_true(stream_is_done(ahead.stream));
    assert_int_equal(ahead.stuck, 0);
    ahead.fail_at = -1;
    ASSERT_OK(run(&ahead, MOST, records, err));
    assert_in_order(records, MOST);
    ahead_close(&ahead);
}

const struct lab_test_program lab_test_program = {.begin = on_all_and_on_one};
