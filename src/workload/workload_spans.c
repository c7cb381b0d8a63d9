/*
 * workload_spans.c: when stages ran, by events around them. A stage's end event also orders what
 * other streams do after it, so a stage costs two records and nothing else. To a profiler that
 * listens the same stages are told as ranges, named as in traces of ours.
 */
#include "workload/workload.h"

#include "vendor/nvtx.h"

#include <assert.h>

static const char *const range_names[LAB_STAGE_COUNT] = {"h2d_batch", "compute_batch", "d2h_batch"};

static struct lab_event **event_at(const struct lab_spans *spans, int iteration,
                                   enum lab_stage stage, bool end) {
    size_t slot = (size_t)(iteration % spans->slots);
    return &spans->events[(slot * LAB_STAGE_COUNT + stage) * 2 + end];
}

int lab_spans_open(struct lab_device *device, int sync_frequency, unsigned stages,
                   struct lab_spans *ret_spans, struct lab_err *err) {
    int slots = 2 * sync_frequency + 1; /* the one more is for a stage that is enqueued ahead */
    size_t count = (size_t)slots * LAB_STAGE_COUNT * 2;
    ret_spans->slots = slots;
    ret_spans->events = lab_mem_alloc(count, sizeof *ret_spans->events);
    for (size_t i = 0; i < count; i++) {
        unsigned stage = (unsigned)(i / 2 % LAB_STAGE_COUNT);
        if ((stages & 1u << stage) && lab_event_open(device, &ret_spans->events[i], err)) {
            lab_spans_close(ret_spans);
            return -1;
        }
    }
    return 0;
}

void lab_spans_close(struct lab_spans *spans) {
    size_t count = (size_t)spans->slots * LAB_STAGE_COUNT * 2;
    for (size_t i = 0; spans->events && i < count; i++)
        lab_event_close(spans->events[i]);
    lab_mem_free(spans->events);
    *spans = (struct lab_spans){0};
}

int lab_spans_start(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                    struct lab_stream *stream, struct lab_err *err) {
    lab_nvtx_push("%s_%d", range_names[stage], iteration);
    return lab_event_record(*event_at(spans, iteration, stage, false), stream, err);
}

int lab_spans_end(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                  struct lab_stream *stream, struct lab_err *err) {
    int failed = lab_event_record(*event_at(spans, iteration, stage, true), stream, err);
    lab_nvtx_pop();
    return failed;
}

int lab_spans_wait(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                   struct lab_stream *stream, struct lab_err *err) {
    return lab_event_wait(*event_at(spans, iteration, stage, true), stream, err);
}

/* Waits for all stages of an iteration, the last one first: it is the one that takes time. */
static int wait_for(const struct lab_spans *spans, int iteration, struct lab_err *err) {
    for (int stage = LAB_STAGE_COUNT - 1; stage >= 0; stage--) {
        struct lab_event *end = *event_at(spans, iteration, stage, true);
        if (end && lab_event_sync(end, err))
            return -1;
    }
    return 0;
}

static int read_record(const struct lab_spans *spans, int iteration,
                       struct lab_iteration *ret_record, struct lab_err *err) {
    struct lab_iteration record = {0};
    bool any = false;
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
        struct lab_span *span = &record.stages[stage];
        if (!*event_at(spans, iteration, stage, false))
            continue;
        if (lab_event_time(*event_at(spans, iteration, stage, false), &span->start_ns, err) ||
            lab_event_time(*event_at(spans, iteration, stage, true), &span->end_ns, err))
            return -1;
        if (!any || span->start_ns < record.start_ns)
            record.start_ns = span->start_ns;
        if (!any || span->end_ns > record.end_ns)
            record.end_ns = span->end_ns;
        any = true;
    }
    *ret_record = record;
    return 0;
}

/* Waits for iterations [first, end) and reads their records. */
static int read_records(const struct lab_spans *spans, int first, int end,
                        struct lab_iteration *records, struct lab_err *err) {
    if (wait_for(spans, end - 1, err)) /* those before it are done by then: streams keep order */
        return -1;
    for (int i = first; i < end; i++)
        if (read_record(spans, i, &records[i], err))
            return -1;
    return 0;
}

/* Waits for all streams, also behind a failure; tells the first. */
static int sync_all(struct lab_stream *const *streams, int stream_count, struct lab_err *err) {
    int failed = 0;
    for (int i = 0; i < stream_count; i++) {
        struct lab_err one = LAB_ERR_INIT;
        if (!streams[i] || !lab_stream_sync(streams[i], &one))
            continue;
        if (!failed)
            *err = one;
        failed = -1;
    }
    return failed;
}

int lab_spans_run(const struct lab_spans *spans, struct lab_stream *const *streams,
                  int stream_count, int count,
                  int (*enqueue)(void *state, int iteration, struct lab_err *err), void *state,
                  struct lab_iteration *records, struct lab_err *err) {
    assert(spans->slots > 0 && count > 0);
    int half = spans->slots / 2, read = 0, failed = 0;
    for (int i = 0; i < count && !failed; i++) {
        if (i - read == 2 * half) {
            failed = read_records(spans, read, read + half, records, err);
            read += half;
        }
        int depth = lab_nvtx_push("batch_%d", i);
        failed = failed || enqueue(state, i, err);
        lab_nvtx_pop_to(depth);
    }
    struct lab_err second = LAB_ERR_INIT; /* the first failure is the one to tell */
    if (sync_all(streams, stream_count, failed ? &second : err) || failed)
        return -1;
    return read_records(spans, read, count, records, err);
}

struct single {
    const struct lab_spans *spans;
    struct lab_stream *stream;
    const struct lab_launch *launch;
};

static int enqueue_single(void *state, int iteration, struct lab_err *err) {
    const struct single *single = state;
    if (lab_spans_start(single->spans, iteration, LAB_STAGE_COMPUTE, single->stream, err) ||
        lab_launch(single->stream, single->launch, err) ||
        lab_spans_end(single->spans, iteration, LAB_STAGE_COMPUTE, single->stream, err))
        return -1;
    return 0;
}

int lab_spans_run_launch(const struct lab_spans *spans, struct lab_stream *stream,
                         const struct lab_launch *launch, int count, struct lab_iteration *records,
                         struct lab_err *err) {
    struct single single = {spans, stream, launch};
    return lab_spans_run(spans, &stream, 1, count, enqueue_single, &single, records, err);
}
