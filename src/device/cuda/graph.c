/*
 * graph.c: a stream's commands captured by the driver and replayed as one. The capture is relaxed:
 * modules may be loaded and memory allocated while it lasts, in this thread and in others.
 *
 * A graph mentions events by their handles, so it keeps them; and what it records counts as
 * recorded from its first launch on.
 */
#include "device/cuda/cuda.h"

static int check_driver(const struct lab_cuda *cuda, struct lab_err *err) {
    if (cuda->cuStreamBeginCapture && cuda->cuStreamEndCapture &&
        cuda->cuGraphInstantiateWithFlags && cuda->cuGraphLaunch && cuda->cuGraphDestroy &&
        cuda->cuGraphExecDestroy && cuda->cuEventRecordWithFlags)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                       "graphs need a newer NVIDIA driver, for CUDA 12.0 or later");
}

int cuda_graph_begin(struct lab_stream *base, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (check_driver(device->cuda, err) || cuda_enter(device, err) ||
        cuda_check(device->cuda->cuStreamBeginCapture(stream->handle, LAB_CU_CAPTURE_RELAXED),
                   "cuStreamBeginCapture", err))
        return -1;
    stream->capture = lab_mem_alloc(1, sizeof *stream->capture);
    stream->capture->base.device = base->device;
    return 0;
}

void cuda_graph_mention(struct cuda_graph *graph, struct cuda_event *event, bool record) {
    size_t count = (size_t)graph->event_count;
    graph->records = lab_mem_grow(graph->records, count, sizeof *graph->records);
    graph->records[count] = record;
    LAB_PUSH(graph->events, graph->event_count) = event;
    event->references++;
}

static int instantiate(const struct cuda_device *device, lab_cu_graph captured,
                       struct cuda_stream *stream, lab_cu_graph_exec *ret_exec,
                       struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    if (cuda_check(cuda->cuGraphInstantiateWithFlags(ret_exec, captured, 0),
                   "cuGraphInstantiateWithFlags", err))
        return -1;
    if (!cuda->cuGraphUpload) /* the first launch does it then, and takes longer */
        return 0;
    return cuda_check(cuda->cuGraphUpload(*ret_exec, stream->handle), "cuGraphUpload", err);
}

int cuda_graph_end(struct lab_stream *base, struct lab_graph **ret_graph, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_stream *stream = (struct cuda_stream *)base;
    struct cuda_graph *graph = stream->capture;
    lab_cu_graph captured = NULL;
    stream->capture = NULL;
    int status = cuda_enter(device, err);
    if (status == 0)
        status = cuda_check(device->cuda->cuStreamEndCapture(stream->handle, &captured),
                            "cuStreamEndCapture", err);
    if (status == 0)
        status = instantiate(device, captured, stream, &graph->exec, err);
    if (captured)
        device->cuda->cuGraphDestroy(captured);
    if (status) {
        cuda_graph_close(&graph->base);
        return -1;
    }
    *ret_graph = &graph->base;
    return 0;
}

int cuda_graph_launch(struct lab_graph *base, struct lab_stream *base_stream, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_graph *graph = (struct cuda_graph *)base;
    struct cuda_stream *stream = (struct cuda_stream *)base_stream;
    if (cuda_enter(device, err) ||
        cuda_check(device->cuda->cuGraphLaunch(graph->exec, stream->handle), "cuGraphLaunch", err))
        return -1;
    for (int i = 0; i < graph->event_count; i++)
        graph->events[i]->recorded |= graph->records[i];
    return 0;
}

/* The driver keeps a destroyed graph and its events until pending launches are done. */
void cuda_graph_close(struct lab_graph *base) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_graph *graph = (struct cuda_graph *)base;
    if (graph->exec && cuda_enter(device, NULL) == 0)
        device->cuda->cuGraphExecDestroy(graph->exec);
    for (int i = 0; i < graph->event_count; i++)
        cuda_event_drop(graph->events[i]);
    lab_mem_free(graph->events);
    lab_mem_free(graph->records);
    lab_mem_free(graph);
}
