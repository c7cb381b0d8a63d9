/*
 * event.c: marks in streams, with the meaning that device.h gives them. A recording is a point: a
 * stream, and how many commands it has done when it is passed. A wait refers to a point and never
 * to the event, so that it keeps its meaning when the event is recorded anew or closed.
 *
 * References are counted without a lock: the host's thread and the engine never run at the same
 * time.
 */
#include "base/mem.h"
#include "device/sim/sim.h"

int sim_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err) {
    (void)err;
    struct sim_event *event = lab_mem_alloc(1, sizeof *event);
    event->base.device = device;
    event->references = 1;
    *ret_event = &event->base;
    return 0;
}

void sim_event_drop(struct sim_event *event) {
    if (--event->references == 0)
        lab_mem_free(event);
}

void sim_event_close(struct lab_event *event) {
    sim_event_drop((struct sim_event *)event);
}

void sim_event_bind(struct sim_command *command, struct sim_stream *stream, uint64_t position) {
    struct sim_event *event = command->mark.event;
    if (command->kind == SIM_WAIT) {
        command->mark.point = event->last;
        return;
    }
    event->references++; /* given back when it is passed */
    event->last = (struct sim_point){stream, position};
    command->mark.number = ++event->recorded;
}

void sim_event_pass(struct sim_event *event, uint64_t number, int64_t now_ns) {
    if (number > event->passed) {
        event->passed = number;
        event->time_ns = now_ns;
    }
    sim_event_drop(event);
}

static int add(struct lab_event *base, struct lab_stream *base_stream, enum sim_command_kind kind) {
    struct sim_event *event = (struct sim_event *)base;
    struct sim_stream *stream = (struct sim_stream *)base_stream;
    if (!stream->capture)
        sim_host_spend(stream->device, 1e-6 * stream->device->gpu->model->call_us);
    struct sim_command *command = sim_stream_add(stream, kind);
    command->mark.event = event;
    if (stream->capture)
        event->references++; /* given back when the graph is closed */
    else
        sim_event_bind(command, stream, stream->enqueued);
    return 0;
}

int sim_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err) {
    (void)err;
    return add(event, stream, SIM_RECORD);
}

int sim_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err) {
    (void)err;
    if (event->device != stream->device)
        sim_framework_sum((struct sim_device *)stream->device);
    return add(event, stream, SIM_WAIT);
}

int sim_event_sync(struct lab_event *base, struct lab_err *err) {
    const struct sim_event *event = (const struct sim_event *)base;
    return sim_world_wait((struct sim_device *)base->device, event->last, err);
}

int sim_event_time(struct lab_event *base, int64_t *ret_time_ns, struct lab_err *err) {
    const struct sim_event *event = (const struct sim_event *)base;
    if (!event->last.stream)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the event was never recorded, so it has no time");
    if (sim_event_sync(base, err) < 0)
        return -1;
    *ret_time_ns = event->time_ns;
    return 0;
}
