/* memory.c: buffers on nodes, and the check that a command names memory that is there. */
#include "device/cpu/cpu.h"
#include "machine/machine.h"

int cpu_buffer_open(struct lab_device *base, struct lab_buffer *buffer, struct lab_err *err) {
    unsigned flags = LAB_MEMORY_TOUCH;
    int node = buffer->node;
    if (buffer->kind == LAB_MEMORY_DEVICE)
        buffer->node = node = base->ref.node;
    if (buffer->kind != LAB_MEMORY_HOST_PAGEABLE)
        flags |= LAB_MEMORY_HUGE;
    if (buffer->kind == LAB_MEMORY_HOST_PINNED)
        flags |= LAB_MEMORY_LOCK;
    if (lab_memory_map(base->machine, node, buffer->size_bytes, flags, &buffer->data, err)) {
        if (err && err->hint == LAB_HINT_OUT_OF_MEMORY)
            err->hint = buffer->kind == LAB_MEMORY_DEVICE ? LAB_HINT_OUT_OF_DEVICE_MEMORY
                                                          : LAB_HINT_OUT_OF_HOST_MEMORY;
        return lab_err_context(err, "%s of %s", lab_memory_kind_name(buffer->kind), base->ref.name);
    }
    lab_buffers_add(&((struct cpu_device *)base)->buffers,
                    (struct lab_buffer_span){buffer->data, buffer->size_bytes, buffer->kind, node});
    return 0;
}

/* As freeing device memory does in CUDA, this waits for the commands that may still use it. */
void cpu_buffer_close(struct lab_buffer *buffer) {
    struct cpu_device *device = (struct cpu_device *)buffer->device;
    for (int i = 0; i < device->stream_count; i++)
        if (device->streams[i]->open)
            cpu_counter_wait(&device->streams[i]->done, device->streams[i]->enqueued, 0);
    lab_buffers_remove(&device->buffers, buffer->data);
    lab_memory_unmap(buffer->data, buffer->size_bytes);
}

int cpu_memory_check(const struct cpu_device *device, const void *data, size_t size_bytes,
                     enum lab_memory_kind kind, const char *what, struct lab_err *err) {
    return lab_buffers_check(&device->buffers, device->base.ref.name, data, size_bytes, kind, what,
                             NULL, err);
}
