/*
 * stream.c: streams and copies. A stream never waits for the legacy default stream
 * (non-blocking), and a slice's stream runs on its own multiprocessors.
 */
#include "device/cuda/cuda.h"

int cuda_stream_create(struct cuda_device *device, int priority, lab_cu_stream *ret_handle,
                       struct lab_err *err) {
    const struct lab_cuda *cuda = device->cuda;
    if (device->green)
        return cuda_check(cuda->cuGreenCtxStreamCreate(ret_handle, device->green,
                                                       LAB_CU_STREAM_NON_BLOCKING, priority),
                          "cuGreenCtxStreamCreate", err);
    return cuda_check(
        cuda->cuStreamCreateWithPriority(ret_handle, LAB_CU_STREAM_NON_BLOCKING, priority),
        "cuStreamCreateWithPriority", err);
}

int cuda_stream_open(struct lab_device *base, enum lab_stream_kind kind,
                     struct lab_stream **ret_stream, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    lab_cu_stream handle;
    /* what little a copy stream computes must not queue behind a model's kernels */
    int priority = kind == LAB_STREAM_COPY ? device->priority_high : device->priority_low;
    if (cuda_enter(device, err) || cuda_stream_create(device, priority, &handle, err))
        return -1;
    struct cuda_stream *stream = lab_mem_alloc(1, sizeof *stream);
    *stream = (struct cuda_stream){
        .base = {.device = base, .kind = kind}, .handle = handle, .next = device->streams};
    device->streams = stream;
    *ret_stream = &stream->base;
    return 0;
}

void cuda_stream_close(struct lab_stream *base) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_stream *stream = (struct cuda_stream *)base;
    struct cuda_stream **link = &device->streams;
    if (cuda_enter(device, NULL) == 0) {
        if (stream->capture) {
            struct lab_graph *graph;
            if (cuda_graph_end(base, &graph, NULL) == 0)
                cuda_graph_close(graph);
        }
        device->cuda->cuStreamSynchronize(stream->handle);
        cuda_kernels_stream_close(stream);
        device->cuda->cuStreamDestroy(stream->handle);
    }
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    lab_mem_free(stream);
}

int cuda_stream_sync(struct lab_stream *base, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (cuda_enter(device, err) || cuda_faults_wait(device, stream->handle, NULL, err) ||
        cuda_check(device->cuda->cuStreamSynchronize(stream->handle), "cuStreamSynchronize", err) ||
        cuda_faults_check(device, err))
        return -1;
    return cuda_anchor_refresh(device, err);
}

int cuda_copy_peer(struct lab_stream *base, struct lab_device *to_base, void *to, const void *from,
                   size_t size_bytes, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    const struct cuda_device *peer = (const struct cuda_device *)to_base;
    const struct lab_cuda *cuda = device->cuda;
    int can = 0;
    if (!cuda->cuDeviceCanAccessPeer || !cuda->cuCtxEnablePeerAccess || !cuda->cuMemcpyPeerAsync)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "the driver has no copies between GPUs");
    if (cuda_enter(device, err) ||
        cuda_check(cuda->cuDeviceCanAccessPeer(&can, device->ordinal, peer->ordinal),
                   "cuDeviceCanAccessPeer", err))
        return -1;
    if (!can)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "the driver offers no direct access");
    lab_cu_result result = cuda->cuCtxEnablePeerAccess(peer->context, 0);
    if (result != LAB_CU_PEER_ALREADY_ENABLED && cuda_check(result, "cuCtxEnablePeerAccess", err))
        return -1;
    return cuda_check(cuda->cuMemcpyPeerAsync((lab_cu_pointer)(uintptr_t)to, peer->context,
                                              (lab_cu_pointer)(uintptr_t)from, device->context,
                                              size_bytes, ((struct cuda_stream *)base)->handle),
                      "cuMemcpyPeerAsync", err);
}

int cuda_copy(struct lab_stream *base, void *to, const void *from, size_t size_bytes,
              enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base->device;
    const struct lab_cuda *cuda = device->cuda;
    lab_cu_stream stream = ((struct cuda_stream *)base)->handle;
    lab_cu_pointer target = (lab_cu_pointer)(uintptr_t)to;
    lab_cu_pointer source = (lab_cu_pointer)(uintptr_t)from;
    bool to_device = to_kind == LAB_MEMORY_DEVICE, from_device = from_kind == LAB_MEMORY_DEVICE;
    if (cuda_enter(device, err))
        return -1;
    if (to_device && from_device)
        return cuda_check(cuda->cuMemcpyDtoDAsync(target, source, size_bytes, stream),
                          "cuMemcpyDtoDAsync", err);
    if (to_device)
        return cuda_check(cuda->cuMemcpyHtoDAsync(target, from, size_bytes, stream),
                          "cuMemcpyHtoDAsync", err);
    if (from_device)
        return cuda_check(cuda->cuMemcpyDtoHAsync(to, source, size_bytes, stream),
                          "cuMemcpyDtoHAsync", err);
    return cuda_check(cuda->cuMemcpyAsync(target, source, size_bytes, stream), "cuMemcpyAsync",
                      err);
}
