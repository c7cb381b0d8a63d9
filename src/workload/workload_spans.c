/*
 * workload_spans.c: when stages ran, by events around them. A stage's end event also orders what
 * other streams do after it, so a stage costs two records and nothing else.
 */
#include "workload/workload.h"

static struct lab_event **event_at(const struct lab_spans *spans, int slot, enum lab_stage stage,
                                   bool end) {
    return &spans->events[((size_t)slot * LAB_STAGE_COUNT + stage) * 2 + end];
}

int lab_spans_open(struct lab_device *device, int slots, unsigned stages,
                   struct lab_spans *ret_spans, struct lab_err *err) {
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

int lab_spans_start(const struct lab_spans *spans, int slot, enum lab_stage stage,
                    struct lab_stream *stream, struct lab_err *err) {
    return lab_event_record(*event_at(spans, slot, stage, false), stream, err);
}

int lab_spans_end(const struct lab_spans *spans, int slot, enum lab_stage stage,
                  struct lab_stream *stream, struct lab_err *err) {
    return lab_event_record(*event_at(spans, slot, stage, true), stream, err);
}

int lab_spans_wait(const struct lab_spans *spans, int slot, enum lab_stage stage,
                   struct lab_stream *stream, struct lab_err *err) {
    return lab_event_wait(*event_at(spans, slot, stage, true), stream, err);
}

int lab_spans_read(const struct lab_spans *spans, int slot, struct lab_iteration *ret_record,
                   struct lab_err *err) {
    struct lab_iteration record = {0};
    bool any = false;
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
        struct lab_span *span = &record.stages[stage];
        if (!*event_at(spans, slot, stage, false))
            continue;
        if (lab_event_time(*event_at(spans, slot, stage, false), &span->start_ns, err) ||
            lab_event_time(*event_at(spans, slot, stage, true), &span->end_ns, err))
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

int lab_spans_run(const struct lab_spans *spans, struct lab_stream *stream, int count,
                  int (*enqueue)(void *state, int slot, struct lab_err *err), void *state,
                  struct lab_iteration *records, struct lab_err *err) {
    for (int done = 0; done < count;) {
        int part = count - done < spans->slots ? count - done : spans->slots;
        for (int slot = 0; slot < part; slot++)
            if (enqueue(state, slot, err)) {
                struct lab_err second = LAB_ERR_INIT; /* the first failure is the one to tell */
                lab_stream_sync(stream, &second);
                return -1;
            }
        if (lab_stream_sync(stream, err))
            return -1;
        for (int slot = 0; slot < part; slot++)
            if (lab_spans_read(spans, slot, &records[done + slot], err))
                return -1;
        done += part;
    }
    return 0;
}
