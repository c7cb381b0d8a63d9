/*
 * memory.c: buffers on nodes, and the check that a command names memory that is there. A wrong
 * address would be read and written without complaint here, and fail on a GPU: so it is refused.
 */
#include "base/str.h"
#include "device/cpu/cpu.h"
#include "machine/machine.h"

#include <string.h>

static const char *kind_name(enum lab_memory_kind kind) {
    switch (kind) {
    case LAB_MEMORY_DEVICE:
        return "device memory";
    case LAB_MEMORY_HOST_PINNED:
        return "pinned host memory";
    case LAB_MEMORY_HOST_PAGEABLE:
        break;
    }
    return "pageable host memory";
}

/* Index of the first span that begins behind `data`. */
static int span_behind(const struct cpu_device *device, const void *data) {
    int low = 0, high = device->span_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((uintptr_t)device->spans[middle].begin <= (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void span_add(struct cpu_device *device, const struct lab_buffer *buffer) {
    LAB_MEM_GROW(&device->spans, device->span_count, &device->span_capacity);
    int at = span_behind(device, buffer->data);
    memmove(&device->spans[at + 1], &device->spans[at],
            (size_t)(device->span_count - at) * sizeof *device->spans);
    device->spans[at] = (struct cpu_buffer_span){
        .begin = buffer->data, .size_bytes = buffer->size_bytes, .kind = buffer->kind};
    device->span_count++;
}

static void span_remove(struct cpu_device *device, const void *data) {
    int at = span_behind(device, data) - 1;
    device->span_count--;
    memmove(&device->spans[at], &device->spans[at + 1],
            (size_t)(device->span_count - at) * sizeof *device->spans);
}

int cpu_buffer_open(struct lab_device *base, struct lab_buffer *buffer, struct lab_err *err) {
    unsigned flags = LAB_MEMORY_TOUCH;
    int node = buffer->node;
    if (buffer->kind == LAB_MEMORY_DEVICE)
        buffer->node = node = base->ref.node;
    if (buffer->kind != LAB_MEMORY_HOST_PAGEABLE)
        flags |= LAB_MEMORY_HUGE;
    if (buffer->kind == LAB_MEMORY_HOST_PINNED)
        flags |= LAB_MEMORY_LOCK;
    if (lab_memory_map(base->machine, node, buffer->size_bytes, flags, &buffer->data, err))
        return lab_err_context(err, "%s of %s", kind_name(buffer->kind), base->ref.name);
    span_add((struct cpu_device *)base, buffer);
    return 0;
}

/* As freeing device memory does in CUDA, this waits for the commands that may still use it. */
void cpu_buffer_close(struct lab_buffer *buffer) {
    struct cpu_device *device = (struct cpu_device *)buffer->device;
    for (int i = 0; i < device->stream_count; i++)
        if (device->streams[i]->open)
            cpu_counter_wait(&device->streams[i]->done, device->streams[i]->enqueued, 0);
    span_remove(device, buffer->data);
    lab_memory_unmap(buffer->data, buffer->size_bytes);
}

int cpu_memory_check(const struct cpu_device *device, const void *data, size_t size_bytes,
                     enum lab_memory_kind kind, const char *what, struct lab_err *err) {
    if (!data)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is NULL", what);
    int at = span_behind(device, data) - 1;
    const struct cpu_buffer_span *span = at >= 0 ? &device->spans[at] : NULL;
    size_t offset = span ? (size_t)((const char *)data - span->begin) : 0;
    if (!span || offset >= span->size_bytes) {
        if (kind == LAB_MEMORY_HOST_PAGEABLE)
            return 0; /* any memory of the program is that */
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't in a buffer of %s", what,
                           device->base.ref.name);
    }
    if (span->kind != kind)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is %s, not %s", what, kind_name(span->kind),
                           kind_name(kind));
    if (size_bytes > span->size_bytes - offset)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s of %zu bytes reaches %zu bytes beyond its buffer", what, size_bytes,
                           size_bytes - (span->size_bytes - offset));
    return 0;
}
