/*
 * stream.c: a stream is a thread that does the commands of a ring one after the other. The host
 * fills the ring and returns at once; only when the ring is full does it wait.
 *
 * Everything that could fail is checked when a command is enqueued, so no command fails later and
 * syncing a stream of this backend always succeeds.
 *
 * Enqueued commands depend on earlier ones alone (see event.c), so a host that waits for room in a
 * ring waits for something that happens without it.
 */
#include "base/mem.h"
#include "device/cpu/cpu.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Below this a copy is over before compute could make room for it. */
#define COPY_SIT_MIN ((size_t)128 << 10)

/* --- doing commands: the stream's thread --- */

void cpu_stream_copy_now(struct cpu_stream *stream, void *to, const void *from, size_t size_bytes) {
    struct cpu_device *device = (struct cpu_device *)stream->base.device;
    /* on a core of its own: compute, which would use it too, yields it by that */
    bool sits = device->copy_cores != 0 && size_bytes >= COPY_SIT_MIN;
    if (sits)
        cpu_pool_sit(device->pool, &stream->caller);
    memcpy(to, from, size_bytes);
    if (sits)
        cpu_pool_rise(device->pool, &stream->caller);
}

struct launch_context {
    const struct cpu_kernel *kernel;
    const struct lab_launch *launch;
    const struct cpu_simd *simd;
    int64_t units;
    int phase, threads; /* of a kernel that has phases */
};

static void launch_task(void *state, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    const struct launch_context *context = state;
    context->kernel->run(context->launch, context->simd, context->units, begin, end, scratch);
}

static void phase_task(void *state, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    const struct launch_context *context = state;
    context->kernel->phase_run(context->launch, context->simd, context->phase, context->threads,
                               begin, end, scratch);
}

/* Does the kernel; returns in how many units. */
static int64_t run_kernel(struct cpu_stream *stream, struct launch_context *context) {
    struct cpu_device *device = (struct cpu_device *)stream->base.device;
    const struct cpu_kernel *kernel = context->kernel;
    struct cpu_work work = {.task = launch_task, .context = context, .threads = context->threads};
    if (!kernel->phases) {
        work.units = context->units = kernel->units(context->launch, context->threads);
        cpu_pool_run(device->pool, &work, &stream->caller);
        return work.units;
    }
    int64_t units = 0;
    int phases = kernel->phases(context->launch);
    work.task = phase_task;
    for (context->phase = 0; context->phase < phases; context->phase++) {
        work.units = kernel->phase_units(context->launch, context->phase, context->threads);
        cpu_pool_run(device->pool, &work, &stream->caller);
        units += work.units;
    }
    return units;
}

static void trace(const struct cpu_stream *stream, struct lab_trace_log_item item) {
    item.stream = (uint32_t)stream->index + 1; /* 0 is CUDA's default stream */
    item.correlation = stream->correlation;
    item.graph_node = stream->graph_node;
    lab_trace_log_add(stream->base.device, &item);
}

static void launch_now(struct cpu_stream *stream, const struct cpu_kernel *kernel,
                       const struct lab_launch *launch) {
    struct cpu_device *device = (struct cpu_device *)stream->base.device;
    int cores = device->base.ref.cpus.count;
    int threads = device->copy_cores > 0 ? cores - device->copy_cores : cores;
    struct launch_context context = {
        .kernel = kernel, .launch = launch, .simd = device->simd, .threads = threads};
    int64_t start_ns = lab_clock_now(device->base.clock);
    int64_t units = run_kernel(stream, &context);
    int64_t end_ns = lab_clock_now(device->base.clock);
    struct cpu_op_count *count = &device->op_counts[launch->op];
    atomic_fetch_add_explicit(&count->launches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&count->time_ns, end_ns - start_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&count->flops, (int64_t)launch->cost.flops, memory_order_relaxed);
    if (device->base.trace_log)
        trace(stream, (struct lab_trace_log_item){.kind = LAB_TRACE_LOG_LAUNCH,
                                                  .start_ns = start_ns,
                                                  .end_ns = end_ns,
                                                  .name = lab_op_get(launch->op)->name,
                                                  .amount = units});
}

static void copy_now(struct cpu_stream *stream, const struct cpu_command *command) {
    const struct lab_device *device = stream->base.device;
    bool traced = device->trace_log;
    int64_t start_ns = traced ? lab_clock_now(device->clock) : 0;
    cpu_stream_copy_now(stream, command->copy.to, command->copy.from, command->copy.size_bytes);
    if (traced)
        trace(stream, (struct lab_trace_log_item){.kind = LAB_TRACE_LOG_COPY,
                                                  .start_ns = start_ns,
                                                  .end_ns = lab_clock_now(device->clock),
                                                  .amount = (int64_t)command->copy.size_bytes,
                                                  .to_kind = command->copy.to_kind,
                                                  .from_kind = command->copy.from_kind});
}

void cpu_stream_do(struct cpu_stream *stream, const struct cpu_command *command,
                   const struct cpu_binding *binding) {
    struct cpu_device *device = (struct cpu_device *)stream->base.device;
    switch (command->kind) {
    case CPU_COPY:
        copy_now(stream, command);
        break;
    case CPU_LAUNCH:
        launch_now(stream, command->launch.kernel, &command->launch.launch);
        break;
    case CPU_RECORD:
        cpu_event_pass(command->event, binding->number);
        break;
    case CPU_WAIT:
        if (binding->point.stream)
            cpu_counter_wait(&binding->point.stream->done, binding->point.position,
                             device->spin_ns);
        break;
    case CPU_CALL:
        command->call.function(stream, command->call.context);
        break;
    case CPU_GRAPH:
        cpu_graph_replay(stream, command->graph.graph, command->graph.bindings);
        return; /* counts its own steps */
    case CPU_STOP:
        return;
    }
    cpu_counter_add(&stream->done, 1);
}

static void stream_main(void *argument) {
    struct cpu_stream *stream = argument;
    struct cpu_device *device = (struct cpu_device *)stream->base.device;
    for (bool stopped = false; !stopped;) {
        uint64_t slot = cpu_counter_value(&stream->taken);
        cpu_counter_wait(&stream->posted, slot + 1, device->spin_ns);
        const struct cpu_command *command = &stream->ring[slot % CPU_RING];
        stopped = command->kind == CPU_STOP;
        stream->correlation = command->correlation;
        cpu_stream_do(stream, command, &command->binding);
        cpu_counter_add(&stream->taken, 1);
    }
}

/* --- enqueueing: the host --- */

struct cpu_command *cpu_stream_next(struct cpu_stream *stream) {
    if (stream->capture)
        return cpu_graph_next(stream->capture);
    if (stream->posted_count - cpu_counter_value(&stream->taken) >= CPU_RING)
        /* until a quarter is free, so that a full ring costs one sleep in many commands */
        cpu_counter_wait(&stream->taken, stream->posted_count - CPU_RING * 3 / 4, 0);
    struct cpu_command *command = &stream->ring[stream->posted_count % CPU_RING];
    command->event = NULL;
    command->correlation = 0;
    return command;
}

void cpu_stream_post(struct cpu_stream *stream, uint64_t steps) {
    if (stream->capture)
        return;
    stream->enqueued += steps;
    stream->posted_count++;
    cpu_counter_add(&stream->posted, 1);
}

void cpu_stream_call(struct cpu_stream *stream,
                     void (*function)(struct cpu_stream *stream, void *context), void *context) {
    struct cpu_command *command = cpu_stream_next(stream);
    command->kind = CPU_CALL;
    command->call.function = function;
    command->call.context = context;
    cpu_stream_post(stream, 1);
}

int cpu_copy(struct lab_stream *base, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err) {
    struct cpu_device *device = (struct cpu_device *)base->device;
    struct cpu_stream *stream = (struct cpu_stream *)base;
    if (cpu_memory_check(device, to, size_bytes, to_kind, "the copy's target", err) ||
        cpu_memory_check(device, from, size_bytes, from_kind, "the copy's source", err))
        return -1;
    uintptr_t to_address = (uintptr_t)to, from_address = (uintptr_t)from;
    if (to_address < from_address + size_bytes && from_address < to_address + size_bytes)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the copy's source and target overlap");
    struct lab_trace_log_call call = lab_trace_log_enter(base);
    struct cpu_command *command = cpu_stream_next(stream);
    command->kind = CPU_COPY;
    command->correlation = call.correlation;
    command->copy.to = to;
    command->copy.from = from;
    command->copy.size_bytes = size_bytes;
    command->copy.to_kind = to_kind;
    command->copy.from_kind = from_kind;
    cpu_stream_post(stream, 1);
    lab_trace_log_leave(base, call, "lab_copy");
    return 0;
}

static int check_tensors(const struct cpu_device *device, const struct lab_launch *launch,
                         struct lab_err *err) {
    static const char *const names[LAB_LAUNCH_INPUTS] = {"input 0", "input 1", "input 2",
                                                         "input 3", "input 4", "input 5"};
    const struct lab_op *op = lab_op_get(launch->op);
    for (int i = 0; i < op->inputs; i++)
        if (cpu_memory_check(device, launch->in[i].data, lab_tensor_bytes(&launch->in[i]),
                             LAB_MEMORY_DEVICE, names[i], err))
            return lab_err_context(err, "%s", op->name);
    if (cpu_memory_check(device, launch->out.data, lab_tensor_bytes(&launch->out),
                         LAB_MEMORY_DEVICE, "the output", err) ||
        (launch->also.rank &&
         cpu_memory_check(device, launch->also.data, lab_tensor_bytes(&launch->also),
                          LAB_MEMORY_DEVICE, "the second output", err)))
        return lab_err_context(err, "%s", op->name);
    return 0;
}

int cpu_launch(struct lab_stream *base, const struct lab_launch *launch, struct lab_err *err) {
    struct cpu_stream *stream = (struct cpu_stream *)base;
    if (check_tensors((struct cpu_device *)base->device, launch, err))
        return -1;
    struct lab_trace_log_call call = lab_trace_log_enter(base);
    struct cpu_command *command = cpu_stream_next(stream);
    command->kind = CPU_LAUNCH;
    command->correlation = call.correlation;
    command->launch.kernel = cpu_kernel_get(launch->op, lab_launch_dtype(launch));
    command->launch.launch = *launch;
    assert(command->launch.kernel);
    cpu_stream_post(stream, 1);
    lab_trace_log_leave(base, call, "lab_launch");
    return 0;
}

int cpu_stream_sync(struct lab_stream *base, struct lab_err *err) {
    (void)err;
    struct cpu_stream *stream = (struct cpu_stream *)base;
    cpu_counter_wait(&stream->done, stream->enqueued, 0);
    return 0;
}

/* --- life --- */

static struct cpu_stream *stream_reuse(struct cpu_device *device) {
    for (int i = 0; i < device->stream_count; i++)
        if (!device->streams[i]->open)
            return device->streams[i];
    struct cpu_stream *stream = lab_mem_alloc(1, sizeof *stream);
    stream->index = device->stream_count;
    stream->ring = lab_mem_alloc(CPU_RING, sizeof *stream->ring);
    cpu_counter_init(&stream->posted);
    cpu_counter_init(&stream->taken);
    cpu_counter_init(&stream->done);
    cpu_caller_init(&stream->caller);
    LAB_PUSH(device->streams, device->stream_count) = stream;
    return stream;
}

void cpu_stream_free(struct cpu_stream *stream) {
    cpu_counter_release(&stream->posted);
    cpu_counter_release(&stream->taken);
    cpu_counter_release(&stream->done);
    cpu_caller_release(&stream->caller);
    lab_mem_free(stream->ring);
    lab_mem_free(stream);
}

/* All cores; where some are set aside for copies, those for a copy stream and the others else. */
static struct lab_cpus place(const struct cpu_device *device, struct cpu_stream *stream) {
    struct lab_cpus cpus = device->base.ref.cpus;
    bool copies = stream->base.kind == LAB_STREAM_COPY;
    int first = 0, count = cpus.count;
    if (device->copy_cores > 0) {
        first = copies ? cpus.count - device->copy_cores : 0;
        count = copies ? device->copy_cores : cpus.count - device->copy_cores;
    }
    cpu_caller_place(&stream->caller, first, count, copies);
    return (struct lab_cpus){.items = cpus.items + first, .count = count};
}

int cpu_stream_open(struct lab_device *base, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err) {
    struct cpu_device *device = (struct cpu_device *)base;
    struct cpu_stream *stream = stream_reuse(device);
    char name[64];
    stream->base = (struct lab_stream){.device = base, .kind = kind};
    struct lab_cpus cpus = place(device, stream);
    snprintf(name, sizeof name, "%s s%d", base->ref.name, stream->index);
    if (cpu_thread_start(base->machine, &cpus, name, stream_main, stream, &stream->thread, err))
        return -1;
    stream->open = true;
    *ret_stream = &stream->base;
    return 0;
}

void cpu_stream_close(struct lab_stream *base) {
    struct cpu_stream *stream = (struct cpu_stream *)base;
    if (stream->capture) {
        cpu_graph_close(&stream->capture->base);
        stream->capture = NULL;
    }
    cpu_stream_next(stream)->kind = CPU_STOP;
    cpu_stream_post(stream, 0);
    pthread_join(stream->thread, NULL);
    stream->open = false;
}
