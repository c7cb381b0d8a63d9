/*
 * event.c: marks in streams, and when they were passed on the host's clock.
 *
 * The driver tells only how long after another event an event was passed, in milliseconds as a
 * float: about half a microsecond fine, and coarser the longer it is (60 ns after one second, 4 µs
 * after a minute). So a time is an anchor event's time plus such a difference, and a new anchor is
 * made when the last one is a second old.
 *
 * An anchor is recorded in an idle stream of its own and waited for at once: the host's clock
 * before and after bounds its time. Inside these bounds the time that follows from the last anchor
 * is kept, so that differences across a change of anchors stay exact; outside them the clocks have
 * drifted apart and the nearest bound is taken. So times are right to within the bounds, about 10
 * µs, and differences to within the driver's own resolution.
 *
 * Inside a graph, records and waits are external: nodes that touch the event itself when the graph
 * runs, and not edges of the graph, so that other streams may wait for them.
 */
#include "device/cuda/cuda.h"

#include <math.h>

#define ANCHOR_AGE_NS    LAB_NS_PER_S
#define ANCHOR_BOUNDS_NS (25 * LAB_NS_PER_US) /* good enough; else tried again */
#define ANCHOR_TRIES     8

/* --- life --- */

int cuda_event_open(struct lab_device *base, struct lab_event **ret_event, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    lab_cu_event handle;
    if (cuda_enter(device, err) ||
        cuda_check(device->cuda->cuEventCreate(&handle, LAB_CU_EVENT_DEFAULT), "cuEventCreate",
                   err))
        return -1;
    struct cuda_event *event = lab_mem_alloc(1, sizeof *event);
    *event = (struct cuda_event){.base = {.device = base}, .handle = handle, .references = 1};
    *ret_event = &event->base;
    return 0;
}

void cuda_event_drop(struct cuda_event *event) {
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    if (--event->references > 0)
        return;
    if (cuda_enter(device, NULL) == 0)
        device->cuda->cuEventDestroy(event->handle);
    lab_mem_free(event);
}

void cuda_event_close(struct lab_event *event) {
    cuda_event_drop((struct cuda_event *)event);
}

/* --- records and waits --- */

int cuda_event_record(struct lab_event *base, struct lab_stream *base_stream, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_event *event = (struct cuda_event *)base;
    struct cuda_stream *stream = (struct cuda_stream *)base_stream;
    if (cuda_enter(device, err))
        return -1;
    if (stream->capture) {
        if (cuda_check(device->cuda->cuEventRecordWithFlags(event->handle, stream->handle,
                                                            LAB_CU_EVENT_RECORD_EXTERNAL),
                       "cuEventRecordWithFlags", err))
            return -1;
        cuda_graph_mention(stream->capture, event, true);
        return 0;
    }
    if (cuda_check(device->cuda->cuEventRecord(event->handle, stream->handle), "cuEventRecord",
                   err))
        return -1;
    event->recorded = true;
    return 0;
}

int cuda_event_wait(struct lab_event *base, struct lab_stream *base_stream, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base_stream->device;
    struct cuda_event *event = (struct cuda_event *)base;
    struct cuda_stream *stream = (struct cuda_stream *)base_stream;
    unsigned flags = stream->capture ? LAB_CU_EVENT_WAIT_EXTERNAL : 0;
    if (cuda_enter(device, err) ||
        cuda_check(device->cuda->cuStreamWaitEvent(stream->handle, event->handle, flags),
                   "cuStreamWaitEvent", err))
        return -1;
    if (stream->capture)
        cuda_graph_mention(stream->capture, event, false);
    return 0;
}

int cuda_event_sync(struct lab_event *base, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_event *event = (struct cuda_event *)base;
    if (cuda_enter(device, err) || cuda_faults_wait(device, NULL, event->handle, err) ||
        cuda_check(device->cuda->cuEventSynchronize(event->handle), "cuEventSynchronize", err))
        return -1;
    return cuda_faults_check(device, err);
}

/* --- times --- */

/* How long after `from` the event `to` was passed; negative where it was before. */
static int difference(const struct cuda_device *device, lab_cu_event from, lab_cu_event to,
                      int64_t *ret_ns, struct lab_err *err) {
    float ms;
    if (cuda_check(device->cuda->cuEventElapsedTime(&ms, from, to), "cuEventElapsedTime", err))
        return -1;
    *ret_ns = llround((double)ms * (double)LAB_NS_PER_MS);
    return 0;
}

/* Records `event` now; its time lies between the two that are returned. */
static int take(const struct cuda_device *device, lab_cu_event event, int64_t *ret_from_ns,
                int64_t *ret_to_ns, struct lab_err *err) {
    const struct lab_clock *clock = device->base.clock;
    for (int try = 0; try < ANCHOR_TRIES; try++) {
        *ret_from_ns = lab_clock_now(clock);
        if (cuda_check(device->cuda->cuEventRecord(event, device->anchor.stream), "cuEventRecord",
                       err) ||
            cuda_check(device->cuda->cuEventSynchronize(event), "cuEventSynchronize", err))
            return -1;
        *ret_to_ns = lab_clock_now(clock);
        if (*ret_to_ns - *ret_from_ns <= ANCHOR_BOUNDS_NS)
            break;
    }
    return 0;
}

int cuda_anchor_refresh(struct cuda_device *device, struct lab_err *err) {
    struct cuda_anchor *anchor = &device->anchor;
    int64_t from_ns, to_ns, since_ns, time_ns;
    if (anchor->taken_ns && lab_clock_now(device->base.clock) - anchor->taken_ns < ANCHOR_AGE_NS)
        return 0;
    if (take(device, anchor->spare, &from_ns, &to_ns, err))
        return -1;
    time_ns = from_ns + (to_ns - from_ns) / 2;
    if (anchor->taken_ns) {
        if (difference(device, anchor->event, anchor->spare, &since_ns, err))
            return -1;
        time_ns = anchor->time_ns + since_ns;
        if (time_ns < from_ns)
            time_ns = from_ns;
        if (time_ns > to_ns)
            time_ns = to_ns;
    }
    lab_cu_event old = anchor->event;
    anchor->event = anchor->spare;
    anchor->spare = old;
    anchor->time_ns = time_ns;
    anchor->taken_ns = to_ns;
    return 0;
}

int cuda_event_time(struct lab_event *base, int64_t *ret_time_ns, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_event *event = (struct cuda_event *)base;
    int64_t since_ns;
    if (!event->recorded)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the event was never recorded, so it has no time");
    if (cuda_event_sync(base, err) || cuda_anchor_refresh(device, err) ||
        difference(device, device->anchor.event, event->handle, &since_ns, err))
        return -1;
    *ret_time_ns = device->anchor.time_ns + since_ns;
    return 0;
}

int cuda_anchor_open(struct cuda_device *device, struct lab_err *err) {
    struct cuda_anchor *anchor = &device->anchor;
    if (cuda_stream_create(device, device->priority_high, &anchor->stream, err) ||
        cuda_check(device->cuda->cuEventCreate(&anchor->event, LAB_CU_EVENT_DEFAULT),
                   "cuEventCreate", err) ||
        cuda_check(device->cuda->cuEventCreate(&anchor->spare, LAB_CU_EVENT_DEFAULT),
                   "cuEventCreate", err))
        return -1;
    return cuda_anchor_refresh(device, err);
}

void cuda_anchor_close(struct cuda_device *device) {
    struct cuda_anchor *anchor = &device->anchor;
    if (anchor->event)
        device->cuda->cuEventDestroy(anchor->event);
    if (anchor->spare)
        device->cuda->cuEventDestroy(anchor->spare);
    if (anchor->stream)
        device->cuda->cuStreamDestroy(anchor->stream);
    *anchor = (struct cuda_anchor){0};
}
