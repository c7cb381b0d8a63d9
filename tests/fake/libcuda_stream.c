/*
 * libcuda_stream.c: the fake driver's streams, events, graphs and kernels (fake_cuda.h). A command
 * runs when it is enqueued; in a stream whose commands are captured it is kept in the graph
 * instead.
 */
#include "fake/fake_driver.h"

#include <math.h>
#include <time.h>

struct lab_cu_event_st {
    bool recorded;
    int64_t time_ns;
    bool timing;
};

enum command_kind { COPY, SET, RECORD, WAIT, KERNEL };

struct command {
    enum command_kind kind;
    lab_cu_pointer to, from;
    size_t size_bytes;
    unsigned value, width; /* set: repeated every so many bytes */
    lab_cu_event event;
};

struct lab_cu_graph_st {
    struct command *commands;
    int count;
};

struct lab_cu_graph_exec_st {
    struct lab_cu_graph_st graph;
    bool uploaded;
};

struct lab_cu_stream_st {
    lab_cu_context context;
    lab_cu_graph capture;
};

/* The GPU's clock: another origin than the host's, and it may drift. */
static int64_t gpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec + 123456789012LL +
           fake_number("FAKE_CUDA_DRIFT_NS", 0);
}

/* --- commands --- */

static void execute(const struct command *command) {
    switch (command->kind) {
    case COPY:
        memmove((void *)(uintptr_t)command->to, (const void *)(uintptr_t)command->from,
                command->size_bytes);
        break;
    case SET:
        for (size_t i = 0; i < command->size_bytes; i++)
            ((unsigned char *)(uintptr_t)command->to)[i] =
                (unsigned char)(command->value >> 8 * (i % command->width));
        break;
    case RECORD:
        command->event->recorded = true;
        command->event->time_ns = gpu_now();
        break;
    case WAIT:
    case KERNEL:
        break;
    }
}

static lab_cu_result enqueue(lab_cu_stream stream, const struct command *command) {
    if (!stream)
        return FAKE_INVALID_HANDLE;
    if (!stream->capture) {
        execute(command);
        return 0;
    }
    lab_cu_graph graph = stream->capture;
    graph->commands =
        realloc(graph->commands, (size_t)(graph->count + 1) * sizeof *graph->commands);
    graph->commands[graph->count++] = *command;
    return 0;
}

static lab_cu_result copy(lab_cu_stream stream, lab_cu_pointer to, lab_cu_pointer from,
                          size_t size_bytes) {
    return enqueue(
        stream, &(struct command){.kind = COPY, .to = to, .from = from, .size_bytes = size_bytes});
}

lab_cu_result cuMemcpyHtoDAsync_v2(lab_cu_pointer to, const void *from, size_t size_bytes,
                                   lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemcpyHtoDAsync);
    if (!fake_is_device(to, size_bytes) || fake_is_device((uintptr_t)from, 1))
        return FAKE_INVALID_VALUE;
    return copy(stream, to, (uintptr_t)from, size_bytes);
}

lab_cu_result cuMemcpyDtoHAsync_v2(void *to, lab_cu_pointer from, size_t size_bytes,
                                   lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemcpyDtoHAsync);
    if (!fake_is_device(from, size_bytes) || fake_is_device((uintptr_t)to, 1))
        return FAKE_INVALID_VALUE;
    return copy(stream, (uintptr_t)to, from, size_bytes);
}

lab_cu_result cuMemcpyDtoDAsync_v2(lab_cu_pointer to, lab_cu_pointer from, size_t size_bytes,
                                   lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemcpyDtoDAsync);
    if (!fake_is_device(to, size_bytes) || !fake_is_device(from, size_bytes))
        return FAKE_INVALID_VALUE;
    return copy(stream, to, from, size_bytes);
}

lab_cu_result cuMemcpyAsync(lab_cu_pointer to, lab_cu_pointer from, size_t size_bytes,
                            lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemcpyAsync);
    return copy(stream, to, from, size_bytes);
}

lab_cu_result cuDeviceCanAccessPeer(int *ret_can, lab_cu_device device, lab_cu_device peer) {
    FAKE_BEGIN(cuDeviceCanAccessPeer);
    *ret_can = device != peer;
    return 0;
}

lab_cu_result cuCtxEnablePeerAccess(lab_cu_context peer, unsigned flags) {
    FAKE_BEGIN_IN_CONTEXT(cuCtxEnablePeerAccess);
    return flags || peer == fake_current ? FAKE_INVALID_VALUE : 0;
}

lab_cu_result cuMemcpyPeerAsync(lab_cu_pointer to, lab_cu_context to_context, lab_cu_pointer from,
                                lab_cu_context from_context, size_t size_bytes,
                                lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemcpyPeerAsync);
    if (to_context == from_context || !fake_is_device(to, size_bytes) ||
        !fake_is_device(from, size_bytes))
        return FAKE_INVALID_VALUE;
    return copy(stream, to, from, size_bytes);
}

static lab_cu_result set(lab_cu_stream stream, lab_cu_pointer to, unsigned value, unsigned width,
                         size_t size_bytes) {
    if (!fake_is_device(to, size_bytes))
        return FAKE_INVALID_VALUE;
    struct command command = {
        .kind = SET, .to = to, .value = value, .width = width, .size_bytes = size_bytes};
    return enqueue(stream, &command);
}

lab_cu_result cuMemsetD8Async(lab_cu_pointer to, unsigned char value, size_t count,
                              lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuMemsetD8Async);
    return set(stream, to, value, 1, count);
}

/* --- streams --- */

static lab_cu_result stream_create(lab_cu_context context, unsigned flags,
                                   lab_cu_stream *ret_stream) {
    if (flags != LAB_CU_STREAM_NON_BLOCKING)
        return FAKE_INVALID_VALUE;
    *ret_stream = calloc(1, sizeof **ret_stream);
    (*ret_stream)->context = context;
    return 0;
}

lab_cu_result cuStreamCreateWithPriority(lab_cu_stream *ret_stream, unsigned flags, int priority) {
    (void)priority;
    FAKE_BEGIN_IN_CONTEXT(cuStreamCreateWithPriority);
    return stream_create(fake_current, flags, ret_stream);
}

lab_cu_result cuGreenCtxStreamCreate(lab_cu_stream *ret_stream, lab_cu_green_context context,
                                     unsigned flags, int priority) {
    (void)priority;
    FAKE_BEGIN(cuGreenCtxStreamCreate);
    return stream_create((lab_cu_context)context, flags, ret_stream);
}

lab_cu_result cuStreamDestroy_v2(lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuStreamDestroy);
    if (stream->capture) {
        free(stream->capture->commands);
        free(stream->capture);
    }
    free(stream);
    return 0;
}

lab_cu_result cuStreamSynchronize(lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuStreamSynchronize);
    return stream->capture ? FAKE_CAPTURE_UNSUPPORTED : 0;
}

lab_cu_result cuStreamQuery(lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuStreamQuery);
    return stream->capture ? FAKE_CAPTURE_UNSUPPORTED : 0;
}

lab_cu_result cuStreamWaitEvent(lab_cu_stream stream, lab_cu_event event, unsigned flags) {
    FAKE_BEGIN_IN_CONTEXT(cuStreamWaitEvent);
    if (stream->capture && flags != LAB_CU_EVENT_WAIT_EXTERNAL)
        return FAKE_INVALID_VALUE; /* would join a capture that isn't there */
    return enqueue(stream, &(struct command){.kind = WAIT, .event = event});
}

/* --- events --- */

lab_cu_result cuEventCreate(lab_cu_event *ret_event, unsigned flags) {
    FAKE_BEGIN_IN_CONTEXT(cuEventCreate);
    *ret_event = calloc(1, sizeof **ret_event);
    (*ret_event)->timing = !(flags & LAB_CU_EVENT_DISABLE_TIMING);
    return 0;
}

lab_cu_result cuEventDestroy_v2(lab_cu_event event) {
    FAKE_BEGIN_IN_CONTEXT(cuEventDestroy);
    free(event);
    return 0;
}

lab_cu_result cuEventRecord(lab_cu_event event, lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuEventRecord);
    if (stream->capture)
        return FAKE_INVALID_VALUE; /* an edge of the graph, which nobody outside could wait for */
    return enqueue(stream, &(struct command){.kind = RECORD, .event = event});
}

lab_cu_result cuEventRecordWithFlags(lab_cu_event event, lab_cu_stream stream, unsigned flags) {
    FAKE_BEGIN_IN_CONTEXT(cuEventRecordWithFlags);
    if (!stream->capture || flags != LAB_CU_EVENT_RECORD_EXTERNAL)
        return FAKE_INVALID_VALUE;
    return enqueue(stream, &(struct command){.kind = RECORD, .event = event});
}

lab_cu_result cuEventSynchronize(lab_cu_event event) {
    (void)event;
    FAKE_BEGIN_IN_CONTEXT(cuEventSynchronize);
    return 0;
}

lab_cu_result cuEventQuery(lab_cu_event event) {
    (void)event;
    FAKE_BEGIN_IN_CONTEXT(cuEventQuery);
    return 0;
}

lab_cu_result cuEventElapsedTime(float *ret_ms, lab_cu_event start, lab_cu_event end) {
    FAKE_BEGIN_IN_CONTEXT(cuEventElapsedTime);
    if (!start->recorded || !end->recorded || !start->timing || !end->timing)
        return FAKE_INVALID_HANDLE;
    *ret_ms = (float)((double)(end->time_ns - start->time_ns) * 1e-6);
    return 0;
}

/* --- graphs --- */

lab_cu_result cuStreamBeginCapture_v2(lab_cu_stream stream, lab_cu_capture_mode mode) {
    (void)mode;
    FAKE_BEGIN_IN_CONTEXT(cuStreamBeginCapture);
    if (stream->capture)
        return FAKE_INVALID_VALUE;
    stream->capture = calloc(1, sizeof *stream->capture);
    return 0;
}

lab_cu_result cuStreamEndCapture(lab_cu_stream stream, lab_cu_graph *ret_graph) {
    FAKE_BEGIN_IN_CONTEXT(cuStreamEndCapture);
    if (!stream->capture)
        return FAKE_INVALID_VALUE;
    *ret_graph = stream->capture;
    stream->capture = NULL;
    return 0;
}

lab_cu_result cuGraphInstantiateWithFlags(lab_cu_graph_exec *ret_exec, lab_cu_graph graph,
                                          unsigned long long flags) {
    (void)flags;
    FAKE_BEGIN_IN_CONTEXT(cuGraphInstantiateWithFlags);
    size_t bytes = (size_t)graph->count * sizeof *graph->commands;
    lab_cu_graph_exec exec = calloc(1, sizeof *exec);
    exec->graph.count = graph->count;
    exec->graph.commands = malloc(bytes + 1);
    if (bytes)
        memcpy(exec->graph.commands, graph->commands, bytes);
    *ret_exec = exec;
    return 0;
}

lab_cu_result cuGraphUpload(lab_cu_graph_exec exec, lab_cu_stream stream) {
    (void)stream;
    FAKE_BEGIN_IN_CONTEXT(cuGraphUpload);
    exec->uploaded = true;
    return 0;
}

lab_cu_result cuGraphLaunch(lab_cu_graph_exec exec, lab_cu_stream stream) {
    FAKE_BEGIN_IN_CONTEXT(cuGraphLaunch);
    if (stream->capture)
        return FAKE_CAPTURE_UNSUPPORTED;
    for (int i = 0; i < exec->graph.count; i++)
        execute(&exec->graph.commands[i]);
    return 0;
}

lab_cu_result cuGraphDestroy(lab_cu_graph graph) {
    free(graph->commands);
    free(graph);
    return 0;
}

lab_cu_result cuGraphExecDestroy(lab_cu_graph_exec exec) {
    free(exec->graph.commands);
    free(exec);
    return 0;
}

/* --- kernels: there, but they do nothing --- */

static int the_library, the_kernel;

lab_cu_result cuLibraryLoadData(lab_cu_library *ret_library, const void *code,
                                lab_cu_jit_option *jit_options, void **jit_values,
                                unsigned jit_count, lab_cu_library_option *options, void **values,
                                unsigned count) {
    (void)code, (void)jit_options, (void)jit_values, (void)jit_count;
    (void)options, (void)values, (void)count;
    FAKE_BEGIN(cuLibraryLoadData);
    *ret_library = (lab_cu_library)&the_library;
    return 0;
}

lab_cu_result cuLibraryUnload(lab_cu_library library) {
    return library == (lab_cu_library)&the_library ? 0 : FAKE_INVALID_HANDLE;
}

lab_cu_result cuLibraryGetKernel(lab_cu_kernel *ret_kernel, lab_cu_library library,
                                 const char *name) {
    (void)library, (void)name;
    FAKE_BEGIN(cuLibraryGetKernel);
    *ret_kernel = (lab_cu_kernel)&the_kernel;
    return 0;
}

lab_cu_result cuKernelGetFunction(lab_cu_function *ret_function, lab_cu_kernel kernel) {
    FAKE_BEGIN_IN_CONTEXT(cuKernelGetFunction);
    *ret_function = (lab_cu_function)kernel;
    return 0;
}

lab_cu_result cuKernelSetAttribute(lab_cu_function_attribute attribute, int value,
                                   lab_cu_kernel kernel, lab_cu_device device) {
    (void)attribute, (void)value, (void)kernel, (void)device;
    FAKE_BEGIN(cuKernelSetAttribute);
    return 0;
}

lab_cu_result cuKernelGetAttribute(int *ret_value, lab_cu_function_attribute attribute,
                                   lab_cu_kernel kernel, lab_cu_device device) {
    (void)attribute, (void)kernel, (void)device;
    FAKE_BEGIN(cuKernelGetAttribute);
    *ret_value = 0;
    return 0;
}

lab_cu_result cuLaunchKernelEx(const struct lab_cu_launch_config *config, lab_cu_function function,
                               void **parameters, void **extra) {
    (void)function, (void)parameters, (void)extra;
    FAKE_BEGIN_IN_CONTEXT(cuLaunchKernelEx);
    if (!config->grid_x || !config->block_x)
        return FAKE_INVALID_VALUE;
    return enqueue(config->stream, &(struct command){.kind = KERNEL});
}

lab_cu_result cuOccupancyMaxActiveClusters(int *ret_clusters, lab_cu_function function,
                                           const struct lab_cu_launch_config *config) {
    (void)function, (void)config;
    *ret_clusters = 1;
    return 0;
}

lab_cu_result cuTensorMapEncodeTiled(struct lab_cu_tensor_map *ret_map, lab_cu_tensor_type type,
                                     uint32_t rank, void *address, const uint64_t *shape,
                                     const uint64_t *strides_bytes, const uint32_t *box,
                                     const uint32_t *element_strides,
                                     lab_cu_tensor_interleave interleave,
                                     lab_cu_tensor_swizzle swizzle,
                                     lab_cu_tensor_promotion promotion, lab_cu_tensor_fill fill) {
    (void)type, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    FAKE_BEGIN(cuTensorMapEncodeTiled);
    if ((uintptr_t)ret_map % 64 || (uintptr_t)address % 16 || !rank || rank > 5)
        return FAKE_INVALID_VALUE;
    for (uint32_t i = 0; i < rank; i++)
        if (!shape[i] || !box[i] || box[i] > 256 || element_strides[i] != 1 ||
            (i && strides_bytes[i - 1] % 16))
            return FAKE_INVALID_VALUE;
    memset(ret_map, 0, sizeof *ret_map);
    return 0;
}
