/*
 * device.c: the functions of device.h over the backends' slots: what holds for every backend is
 * checked here once, so that a backend meets valid calls only; and what a slot's absence means is
 * done here.
 */
#include "device/device.h"

#include "base/str.h"
#include "device/tunable.h"

#include <assert.h>
#include <string.h>

/* --- life --- */

int lab_device_open(const struct lab_machine *machine, const struct lab_device_ref *ref,
                    struct lab_device_setup setup, struct lab_device **ret_device,
                    struct lab_err *err) {
    const struct lab_backend *backend = lab_backend_find(ref->backend);
    if (!backend)
        return lab_err_set(err, LAB_ERR_USER, "opening %s: there is no backend '%s'", ref->name,
                           ref->backend);
    if (backend->open(machine, ref, setup, ret_device, err))
        return lab_err_context(err, "opening %s", ref->name);
    return 0;
}

const char *lab_device_why_together(const struct lab_device_ref *ref, struct lab_arena *arena) {
    const struct lab_backend *backend = lab_backend_find(ref->backend);
    bool shares = ref->slices > 1 || ref->simulated;
    return shares && backend->why_together ? backend->why_together(arena) : NULL;
}

const char *lab_device_lacks(const struct lab_device_ref *ref, struct lab_arena *arena) {
    const struct lab_backend *backend = lab_backend_find(ref->backend);
    return backend->lacks ? backend->lacks(arena) : NULL;
}

void lab_device_close(struct lab_device *device) {
    if (device && !device->kept)
        device->ops->close(device);
    else if (device && device->ops->leave)
        device->ops->leave(device);
}

void lab_device_keep(struct lab_device *device) {
    device->kept = true;
}

int lab_device_limits(struct lab_device *device, enum lab_dtype dtype,
                      struct lab_device_limits *ret_limits, struct lab_err *err) {
    if (device->ops->limits)
        return device->ops->limits(device, dtype, ret_limits, err);
    *ret_limits = (struct lab_device_limits){.how = "unknown: this backend doesn't measure them"};
    return 0;
}

void lab_device_op_times(const struct lab_device *device,
                         struct lab_op_time ret_times[LAB_OP_COUNT]) {
    memset(ret_times, 0, LAB_OP_COUNT * sizeof *ret_times);
    if (device->ops->op_times)
        device->ops->op_times(device, ret_times);
}

double lab_device_clock_mhz(struct lab_device *device) {
    return device->ops->clock_mhz ? device->ops->clock_mhz(device) : 0;
}

const char *lab_device_share_note(const struct lab_device *device) {
    return device->ops->share_note ? device->ops->share_note(device) : NULL;
}

double lab_stream_core_rate(struct lab_stream *stream, int64_t duration_ns) {
    const struct lab_device_ops *ops = stream->device->ops;
    return ops->core_rate ? ops->core_rate(stream, duration_ns) : 0;
}

double lab_device_power_w(struct lab_device *device) {
    return device->ops->power_w ? device->ops->power_w(device) : 0;
}

double lab_device_energy_j(struct lab_device *device) {
    return device->ops->energy_j ? device->ops->energy_j(device) : 0;
}

/* --- memory --- */

int lab_buffer_open(struct lab_device *device, enum lab_memory_kind kind, int node,
                    size_t size_bytes, struct lab_buffer *ret_buffer, struct lab_err *err) {
    struct lab_buffer buffer = {
        .size_bytes = size_bytes, .kind = kind, .node = node, .device = device};
    if (size_bytes && device->ops->buffer_open(device, &buffer, err))
        return -1;
    *ret_buffer = buffer;
    device->buffer_bytes += kind == LAB_MEMORY_DEVICE ? (int64_t)size_bytes : 0;
    if (device->buffer_bytes > device->buffer_bytes_most)
        device->buffer_bytes_most = device->buffer_bytes;
    return 0;
}

void lab_buffer_close(struct lab_buffer *buffer) {
    if (buffer && buffer->data) {
        if (buffer->kind == LAB_MEMORY_DEVICE)
            buffer->device->buffer_bytes -= (int64_t)buffer->size_bytes;
        buffer->device->ops->buffer_close(buffer);
    }
    if (buffer)
        *buffer = (struct lab_buffer){0};
}

/* --- streams --- */

int lab_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err) {
    return device->ops->stream_open(device, kind, ret_stream, err);
}

void lab_stream_close(struct lab_stream *stream) {
    if (stream)
        stream->device->ops->stream_close(stream);
}

int lab_stream_sync(struct lab_stream *stream, struct lab_err *err) {
    if (stream->capturing)
        return lab_err_set(
            err, LAB_ERR_SYSTEM,
            "a stream can't be synchronised while its commands are captured; end the "
            "graph first");
    return stream->device->ops->stream_sync(stream, err);
}

int lab_copy(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err) {
    if (!size_bytes)
        return 0;
    if (!to || !from)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the copy's %s is NULL", to ? "source" : "target");
    return stream->device->ops->copy(stream, to, from, size_bytes, to_kind, from_kind, err);
}

/* --- launches --- */

static bool supports(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype) {
    if (!device->ops->supports)
        return dtype == LAB_FP32;
    return device->ops->supports(device, op, dtype);
}

static int refuse(const struct lab_device *device, const struct lab_launch *launch,
                  struct lab_err *err) {
    LAB_AUTO(str, able);
    int count = 0;
    for (int dtype = 0; lab_dtype_names[dtype]; dtype++)
        if (supports(device, launch->op, (enum lab_dtype)dtype))
            lab_str_printf(&able, "%s%s", count++ ? ", " : "", lab_dtype_names[dtype]);
    const char *op = lab_op_get(launch->op)->name, *backend = device->ref.backend;
    if (!count)
        lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s lacks the operation %s", backend, op);
    else
        lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s: %s computes in %s only; dtype=%s needs %s GPU",
                    op, backend, able.text, lab_dtype_name(lab_launch_dtype(launch)),
                    device->ref.cpus.count ? "a" : "another");
    return -1;
}

#define PARTS_MAX (LAB_OP_PARTS * LAB_OP_PARTS * LAB_OP_PARTS)

struct parts {
    struct lab_launch items[PARTS_MAX];
    int count;
};

/* Adds the launch, or what it falls back to, down to ops that the device has. */
static int expand(const struct lab_device *device, const struct lab_launch *launch,
                  struct parts *parts, struct lab_err *err) {
    struct lab_launch lower[LAB_OP_PARTS];
    struct lab_launch complete = *launch;
    if (lab_launch_complete(&complete, err))
        return -1;
    if (supports(device, launch->op, lab_launch_dtype(launch))) {
        assert(parts->count < PARTS_MAX);
        parts->items[parts->count++] = complete;
        return 0;
    }
    const struct lab_op *op = lab_op_get(launch->op);
    if (!op->lower)
        return refuse(device, launch, err);
    complete.tuning = (struct lab_tuning){0}; /* it was the fused kernel's */
    int count = op->lower(&complete, lower);
    for (int i = 0; i < count; i++)
        if (expand(device, &lower[i], parts, err))
            return lab_err_context(err, "%s", op->name);
    return 0;
}

/* A backend meets legal configurations only. */
static int check_tuning(const struct lab_device *device, const struct lab_launch *launch,
                        struct lab_err *err) {
    const struct lab_tunable_place place = {device->machine, &device->ref};
    const struct lab_tunable *tunable = lab_tunable_find(&place, launch);
    if (!tunable)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s: %s has no configurations to choose from",
                           lab_op_get(launch->op)->name, device->ref.backend);
    return lab_tuning_check(tunable, &place, launch, &launch->tuning, err);
}

int lab_copy_peer(struct lab_stream *stream, struct lab_device *to_device, void *to,
                  const void *from, size_t size_bytes, struct lab_err *err) {
    const struct lab_device *device = stream->device;
    if (!device->ops->copy_peer || device->ops != to_device->ops)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has no direct copies to %s",
                           device->ref.name, to_device->ref.name);
    return device->ops->copy_peer(stream, to_device, to, from, size_bytes, err);
}

int lab_launch(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err) {
    struct lab_device *device = stream->device;
    struct lab_launch complete = *launch;
    if (lab_launch_complete(&complete, err) ||
        (launch->tuning.count && check_tuning(device, launch, err)))
        return -1;
    if (supports(device, launch->op, lab_launch_dtype(launch))) /* the common case, cheaply */
        return device->ops->launch(stream, &complete, err);
    struct parts parts;
    parts.count = 0;
    if (expand(device, launch, &parts, err))
        return -1;
    for (int i = 0; i < parts.count; i++)
        if (device->ops->launch(stream, &parts.items[i], err))
            return lab_err_context(err, "%s", lab_op_get(launch->op)->name);
    return 0;
}

void lab_prepare(struct lab_device *device, const struct lab_launch *launches, int count) {
    if (device->ops->prepare)
        device->ops->prepare(device, launches, count);
}

/* --- events --- */

static int same_device(const struct lab_device *a, const char *what, const struct lab_device *b,
                       struct lab_err *err) {
    if (a == b)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "the %s belongs to %s and the stream to %s", what,
                       a->ref.name, b->ref.name);
}

int lab_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err) {
    return device->ops->event_open(device, ret_event, err);
}

void lab_event_close(struct lab_event *event) {
    if (event)
        event->device->ops->event_close(event);
}

int lab_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err) {
    if (same_device(event->device, "event", stream->device, err))
        return -1;
    return event->device->ops->event_record(event, stream, err);
}

int lab_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err) {
    const struct lab_device_ops *ops = stream->device->ops;
    bool kin = event->device->ops->event_wait == ops->event_wait && !stream->capturing;
    if (!kin && same_device(event->device, "event", stream->device, err))
        return -1;
    return ops->event_wait(event, stream, err);
}

int lab_event_sync(struct lab_event *event, struct lab_err *err) {
    return event->device->ops->event_sync(event, err);
}

int lab_event_time(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err) {
    return event->device->ops->event_time(event, ret_time_ns, err);
}

/* --- graphs --- */

int lab_graph_begin(struct lab_stream *stream, struct lab_err *err) {
    const struct lab_device *device = stream->device;
    if (!device->ops->graph_begin)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has no graphs", device->ref.backend);
    if (stream->capturing)
        return lab_err_set(
            err, LAB_ERR_SYSTEM,
            "this stream's commands are being captured already; end that graph first");
    if (device->ops->graph_begin(stream, err))
        return -1;
    stream->capturing = true;
    return 0;
}

int lab_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err) {
    if (!stream->capturing)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "no graph was begun on this stream, so there is none to end");
    stream->capturing = false;
    return stream->device->ops->graph_end(stream, ret_graph, err);
}

int lab_graph_launch(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err) {
    if (same_device(graph->device, "graph", stream->device, err))
        return -1;
    if (stream->capturing)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "a graph can't be launched into a stream whose commands are captured");
    return graph->device->ops->graph_launch(graph, stream, err);
}

void lab_graph_close(struct lab_graph *graph) {
    if (graph)
        graph->device->ops->graph_close(graph);
}

/* --- tracing --- */

int lab_device_trace_begin(struct lab_device *device, size_t capacity, struct lab_err *err) {
    if (!device->ops->trace_begin)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s devices can't be traced",
                           device->ref.backend);
    return device->ops->trace_begin(device, capacity, err);
}

int lab_device_trace_end(struct lab_device *device, struct lab_arena *arena,
                         struct lab_trace *ret_trace, struct lab_err *err) {
    struct lab_trace trace = {0};
    if (device->ops->trace_end(device, arena, &trace, err))
        return -1;
    *ret_trace = trace;
    return 0;
}

/* --- simulated devices --- */

void lab_device_rest(struct lab_device *device) {
    if (device && device->ops->rest)
        device->ops->rest(device);
}

void lab_device_wake(struct lab_device *device) {
    if (device && device->ops->wake)
        device->ops->wake(device);
}

void lab_device_samples(struct lab_device *device, const struct lab_sink_samples *sink) {
    if (device && device->ops->samples)
        device->ops->samples(device, sink);
}
