/*
 * stream.c: streams and what is put into them. A call costs the host time and leaves a command in
 * the stream's queue, to be started not before that time; nothing else happens until somebody
 * waits.
 */
#include "base/mem.h"
#include "device/sim/sim.h"

#include <string.h>

/* --- the queue --- */

static void grow(struct sim_stream *stream) {
    size_t capacity = stream->capacity ? 2 * stream->capacity : 64;
    struct sim_command *queue = lab_mem_alloc(capacity, sizeof *queue);
    for (size_t i = 0; i < stream->count; i++)
        queue[i] = stream->queue[(stream->head + i) % stream->capacity];
    lab_mem_free(stream->queue);
    stream->queue = queue;
    stream->head = 0;
    stream->capacity = capacity;
}

struct sim_command *sim_stream_add(struct sim_stream *stream, enum sim_command_kind kind) {
    struct sim_command *command;
    if (stream->capture) {
        struct sim_graph *graph = stream->capture;
        command = &LAB_PUSH(graph->commands, graph->count);
    } else {
        if (stream->count == stream->capacity)
            grow(stream);
        command = &stream->queue[(stream->head + stream->count++) % stream->capacity];
        stream->enqueued++;
    }
    memset(command, 0, sizeof *command);
    command->kind = kind;
    command->issue_ns = stream->device->host.time_ns;
    return command;
}

/* --- commands --- */

/* What a call took; of what is captured only the capture counts, later. */
static void spend(struct sim_stream *stream, double us) {
    if (!stream->capture)
        sim_host_spend(stream->device, 1e-6 * us + stream->device->far_s);
}

int sim_copy(struct lab_stream *base, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err) {
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_device *device = stream->device;
    int to_node, from_node;
    if (sim_memory_check(device, to, size_bytes, to_kind, "the copy's target", &to_node, err) < 0 ||
        sim_memory_check(device, from, size_bytes, from_kind, "the copy's source", &from_node,
                         err) < 0)
        return -1;
    struct lab_trace_log_call call = lab_trace_log_enter(base);
    spend(stream, device->gpu->model->copy_us);
    struct sim_command *command = sim_stream_add(stream, SIM_COPY);
    command->correlation = call.correlation;
    command->copy.bytes = (double)size_bytes;
    command->copy.to_kind = to_kind;
    command->copy.from_kind = from_kind;
    command->copy.node = to_kind == LAB_MEMORY_DEVICE ? from_node : to_node;
    lab_trace_log_leave(base, call, "lab_copy");
    return 0;
}

void sim_copy_between(struct lab_stream *base, double bytes, double fixed_s, double bytes_per_s) {
    struct sim_stream *stream = (struct sim_stream *)base;
    spend(stream, stream->device->gpu->model->copy_us);
    struct sim_command *command = sim_stream_add(stream, SIM_COPY);
    command->copy.bytes = bytes;
    command->copy.to_kind = command->copy.from_kind = LAB_MEMORY_DEVICE;
    command->copy.peer_bytes_per_s = bytes_per_s;
    command->copy.fixed_s = fixed_s;
}

/* Priced on the sender's side: the receiver's memory must be there, its time doesn't move. */
int sim_copy_peer(struct lab_stream *base, struct lab_device *to_base, void *to, const void *from,
                  size_t size_bytes, struct lab_err *err) {
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_device *device = stream->device, *peer = (struct sim_device *)to_base;
    if (sim_memory_check(peer, to, size_bytes, LAB_MEMORY_DEVICE, "the copy's target", NULL, err) <
            0 ||
        sim_memory_check(device, from, size_bytes, LAB_MEMORY_DEVICE, "the copy's source", NULL,
                         err) < 0)
        return -1;
    sim_copy_between(base, (double)size_bytes, 0,
                     sim_peer_bytes_per_s(device->machine, device->unit, peer->unit));
    return 0;
}

static int check_tensors(const struct sim_device *device, const struct lab_launch *launch,
                         struct lab_err *err) {
    const struct lab_op *op = lab_op_get(launch->op);
    for (int i = 0; i <= op->inputs; i++) {
        const struct lab_tensor *tensor = i < op->inputs ? &launch->in[i] : &launch->out;
        if (sim_memory_check(device, tensor->data, lab_tensor_bytes(tensor), LAB_MEMORY_DEVICE,
                             i < op->inputs ? "an input" : "the output", NULL, err) < 0)
            return lab_err_context(err, "%s", op->name);
    }
    if (launch->also.rank &&
        sim_memory_check(device, launch->also.data, lab_tensor_bytes(&launch->also),
                         LAB_MEMORY_DEVICE, "the second output", NULL, err) < 0)
        return lab_err_context(err, "%s", op->name);
    return 0;
}

int sim_launch(struct lab_stream *base, const struct lab_launch *launch, struct lab_err *err) {
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_device *device = stream->device;
    const struct sim_model *model = device->gpu->model;
    if (check_tensors(device, launch, err) < 0)
        return -1;
    struct lab_trace_log_call call = lab_trace_log_enter(base);
    if (!device->used_op[launch->op]) /* it is loaded, or compiled */
        sim_host_spend(device, 1e-6 * model->first_us);
    device->used_op[launch->op] = true;
    spend(stream, model->launch_us);
    if (!stream->capture)
        sim_framework_launch(device, launch);
    struct sim_command *command = sim_stream_add(stream, SIM_LAUNCH);
    command->correlation = call.correlation;
    command->launch.op = launch->op;
    command->launch.dtype = lab_launch_dtype(launch);
    command->launch.cost = launch->cost;
    lab_trace_log_leave(base, call, "lab_launch");
    return 0;
}

int sim_stream_sync(struct lab_stream *base, struct lab_err *err) {
    struct sim_stream *stream = (struct sim_stream *)base;
    return sim_world_wait(stream->device, (struct sim_point){stream, stream->enqueued}, err);
}

void sim_stream_settle(struct sim_device *device) {
    for (int i = 0; i < device->stream_count; i++) {
        struct sim_stream *stream = device->streams[i];
        if (stream->open && stream->done < stream->enqueued)
            sim_world_wait(device, (struct sim_point){stream, stream->enqueued}, NULL);
    }
}

/* --- life --- */

int sim_stream_open(struct lab_device *base, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err) {
    (void)err;
    struct sim_device *device = (struct sim_device *)base;
    struct sim_stream *stream = NULL;
    for (int i = 0; i < device->stream_count && !stream; i++)
        if (!device->streams[i]->open && device->streams[i]->count == 0)
            stream = device->streams[i];
    if (!stream) {
        stream = lab_mem_alloc(1, sizeof *stream);
        stream->index = device->stream_count;
        LAB_PUSH(device->streams, device->stream_count) = stream;
    }
    stream->base = (struct lab_stream){.device = base, .kind = kind};
    stream->device = device;
    stream->open = true;
    *ret_stream = &stream->base;
    return 0;
}

void sim_stream_close(struct lab_stream *base) {
    struct sim_stream *stream = (struct sim_stream *)base;
    if (stream->capture) {
        sim_graph_close(&stream->capture->base);
        stream->capture = NULL;
    }
    sim_world_wait(stream->device, (struct sim_point){stream, stream->enqueued}, NULL);
    stream->open = false;
}

/* A world that was stopped leaves commands behind. */
void sim_stream_free(struct sim_stream *stream) {
    for (size_t i = 0; i < stream->count; i++) {
        const struct sim_command *command = &stream->queue[(stream->head + i) % stream->capacity];
        if (command->kind == SIM_RECORD)
            sim_event_drop(command->mark.event);
    }
    lab_mem_free(stream->queue);
    lab_mem_free(stream);
}
