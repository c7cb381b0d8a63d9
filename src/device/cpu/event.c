/*
 * event.c: marks in streams. A recording is a point: a stream and how many steps that stream has
 * done when it is passed. Waiting for a recording is waiting for that number, so a wait never looks
 * at the event again: it keeps its meaning when the event is recorded anew or closed. Points refer
 * to streams that may be closed by then; those stay in memory as long as the device, and their
 * numbers only grow.
 *
 * As in CUDA, a wait means the last recording enqueued before it, and nothing where there is none.
 * A record or wait inside a graph counts as enqueued when the graph is launched: a wait there means
 * the last recording before that launch (or earlier in the same graph), and a record there is the
 * event's last one from that launch on. So no command waits for one that isn't enqueued yet.
 */
#include "base/mem.h"
#include "device/cpu/cpu.h"

int cpu_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err) {
    (void)err;
    struct cpu_event *event = lab_mem_alloc(1, sizeof *event);
    event->base.device = device;
    atomic_init(&event->references, 1);
    pthread_mutex_init(&event->lock, NULL);
    *ret_event = &event->base;
    return 0;
}

void cpu_event_drop(struct cpu_event *event) {
    if (atomic_fetch_sub(&event->references, 1) > 1)
        return;
    pthread_mutex_destroy(&event->lock);
    lab_mem_free(event);
}

void cpu_event_close(struct lab_event *event) {
    cpu_event_drop((struct cpu_event *)event);
}

struct cpu_binding cpu_event_bind(struct cpu_event *event, enum cpu_command_kind kind,
                                  struct cpu_stream *stream, uint64_t position) {
    if (kind == CPU_WAIT)
        return (struct cpu_binding){.point = event->last};
    atomic_fetch_add(&event->references, 1); /* given back when it is passed */
    event->last = (struct cpu_point){.stream = stream, .position = position};
    return (struct cpu_binding){.number = ++event->recorded};
}

void cpu_event_pass(struct cpu_event *event, uint64_t number) {
    int64_t now_ns = lab_clock_now(event->base.device->clock);
    pthread_mutex_lock(&event->lock);
    if (number > event->passed) { /* else another stream was faster with a later recording */
        event->passed = number;
        event->time_ns = now_ns;
    }
    pthread_mutex_unlock(&event->lock);
    cpu_event_drop(event);
}

static void enqueue(struct cpu_event *event, struct cpu_stream *stream,
                    enum cpu_command_kind kind) {
    struct cpu_command *command = cpu_stream_next(stream);
    command->kind = kind;
    command->event = event;
    if (stream->capture) {
        atomic_fetch_add(&event->references, 1); /* given back when the graph is closed */
        stream->capture->binding_count++;
        return;
    }
    command->binding = cpu_event_bind(event, kind, stream, stream->enqueued + 1);
    cpu_stream_post(stream, 1);
}

int cpu_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err) {
    (void)err;
    enqueue((struct cpu_event *)event, (struct cpu_stream *)stream, CPU_RECORD);
    return 0;
}

int cpu_event_wait(struct lab_event *base, struct lab_stream *stream, struct lab_err *err) {
    (void)err;
    enqueue((struct cpu_event *)base, (struct cpu_stream *)stream, CPU_WAIT);
    return 0;
}

int cpu_event_sync(struct lab_event *base, struct lab_err *err) {
    (void)err;
    struct cpu_event *event = (struct cpu_event *)base;
    if (event->last.stream)
        cpu_counter_wait(&event->last.stream->done, event->last.position, 0);
    return 0;
}

int cpu_event_time(struct lab_event *base, int64_t *ret_time_ns, struct lab_err *err) {
    struct cpu_event *event = (struct cpu_event *)base;
    if (!event->last.stream)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the event was never recorded, so it has no time");
    cpu_event_sync(base, err);
    LAB_AUTO_LOCK(&event->lock);
    *ret_time_ns = event->time_ns;
    return 0;
}
