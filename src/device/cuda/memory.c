/*
 * memory.c: buffers. Device memory is the driver's. Pinned host memory is mapped on its node first
 * and registered with the driver then: the driver's own allocator takes pages from wherever the
 * calling thread happens to be. Registered memory is pinned for every context of the process.
 */
#include "base/str.h"
#include "device/cuda/cuda.h"
#include "machine/machine.h"

static int too_little(struct cuda_device *device, size_t size_bytes, struct lab_err *err) {
    size_t free_bytes = 0, total_bytes = 0;
    LAB_AUTO(str, text);
    lab_str_add(&text, "out of device memory: ");
    lab_str_add_bytes_binary(&text, (double)size_bytes);
    lab_str_add(&text, " asked for");
    if (device->cuda->cuMemGetInfo(&free_bytes, &total_bytes) == LAB_CU_SUCCESS) {
        lab_str_add(&text, ", ");
        lab_str_add_bytes_binary(&text, (double)free_bytes);
        lab_str_add(&text, " of ");
        lab_str_add_bytes_binary(&text, (double)total_bytes);
        lab_str_printf(&text, " free on %s", device->base.ref.name);
    }
    lab_err_set(err, LAB_ERR_MEMORY, "%s", text.text);
    return lab_err_hint(err, LAB_HINT_OUT_OF_DEVICE_MEMORY);
}

int cuda_memory_alloc(struct cuda_device *device, size_t size_bytes, lab_cu_pointer *ret_memory,
                      struct lab_err *err) {
    if (cuda_enter(device, err))
        return -1;
    lab_cu_result result = device->cuda->cuMemAlloc(ret_memory, size_bytes);
    if (result == LAB_CU_OUT_OF_MEMORY)
        return too_little(device, size_bytes, err);
    return cuda_check(result, "cuMemAlloc", err);
}

void cuda_memory_free(struct cuda_device *device, lab_cu_pointer memory) {
    if (memory && cuda_enter(device, NULL) == 0)
        device->cuda->cuMemFree(memory);
}

static int pin(struct cuda_device *device, struct lab_buffer *buffer, struct lab_err *err) {
    lab_cu_result result = device->cuda->cuMemHostRegister(buffer->data, buffer->size_bytes,
                                                           LAB_CU_HOST_REGISTER_PORTABLE);
    if (result == LAB_CU_SUCCESS)
        return 0;
    LAB_AUTO(str, size);
    lab_str_add_bytes_binary(&size, (double)buffer->size_bytes);
    if (result == LAB_CU_OUT_OF_MEMORY)
        lab_err_set(err, LAB_ERR_MEMORY,
                    "%s of host memory can't be pinned: the driver or a limit (ulimit -l) leaves "
                    "no more",
                    size.text);
    else
        cuda_fail(result, "cuMemHostRegister", err);
    lab_memory_unmap(buffer->data, buffer->size_bytes);
    buffer->data = NULL;
    return -1;
}

int cuda_buffer_open(struct lab_device *base, struct lab_buffer *buffer, struct lab_err *err) {
    struct cuda_device *device = (struct cuda_device *)base;
    unsigned flags = LAB_MEMORY_TOUCH;
    if (cuda_enter(device, err))
        return -1;
    if (buffer->kind == LAB_MEMORY_DEVICE) {
        lab_cu_pointer memory;
        if (cuda_memory_alloc(device, buffer->size_bytes, &memory, err))
            return -1;
        buffer->data = (void *)(uintptr_t)memory;
        return 0;
    }
    if (buffer->kind == LAB_MEMORY_HOST_PINNED)
        flags |= LAB_MEMORY_HUGE;
    if (lab_memory_map(base->machine, buffer->node, buffer->size_bytes, flags, &buffer->data, err))
        return lab_err_context(err, "host memory for %s", base->ref.name);
    return buffer->kind == LAB_MEMORY_HOST_PINNED ? pin(device, buffer, err) : 0;
}

/* A failure of pending commands stays with the context and shows at the next synchronisation. */
void cuda_buffer_close(struct lab_buffer *buffer) {
    struct cuda_device *device = (struct cuda_device *)buffer->device;
    bool entered = cuda_enter(device, NULL) == 0;
    for (struct cuda_stream *stream = device->streams; entered && stream; stream = stream->next)
        if (!stream->base.capturing)
            device->cuda->cuStreamSynchronize(stream->handle);
    if (buffer->kind == LAB_MEMORY_DEVICE) {
        cuda_memory_free(device, (lab_cu_pointer)(uintptr_t)buffer->data);
        return;
    }
    if (buffer->kind == LAB_MEMORY_HOST_PINNED)
        device->cuda->cuMemHostUnregister(buffer->data);
    lab_memory_unmap(buffer->data, buffer->size_bytes);
}
