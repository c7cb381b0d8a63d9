/*
 * memory.c: buffers without content. Addresses are real, so that commands can be checked, but no
 * page behind them is ever used; what counts is the model's own memory, of GPUs and nodes.
 */
#include "base/str.h"
#include "device/sim/sim.h"

#include <errno.h>
#include <sys/mman.h>

static int refuse(const struct lab_buffer *buffer, const char *where, int64_t there_bytes,
                  struct lab_err *err) {
    LAB_AUTO(str, there);
    LAB_AUTO(str, wanted);
    lab_str_add_bytes_binary(&wanted, (double)buffer->size_bytes);
    lab_str_add_bytes_binary(&there, (double)(there_bytes > 0 ? there_bytes : 0));
    return lab_err_set(err, LAB_ERR_MEMORY, "%s of simulated memory on %s, which has %s free",
                       wanted.text, where, there.text);
}

/* Takes the model's memory, or says what there is. */
static int take(struct sim_device *device, const struct lab_buffer *buffer, int node,
                struct lab_err *err) {
    int64_t size = (int64_t)buffer->size_bytes;
    char where[32];
    if (buffer->kind == LAB_MEMORY_DEVICE) {
        int64_t left = (int64_t)(1e9 * device->gpu->model->memory_gb) - device->memory_used;
        if (size > left)
            return refuse(buffer, device->base.ref.name, left, err);
        device->memory_used += size;
        return 0;
    }
    struct sim_world *world = device->world;
    const struct sim_node *place = &device->machine->nodes[node];
    pthread_mutex_lock(&world->lock);
    int64_t left = (int64_t)(1e9 * place->memory_gb) - world->node_used[node];
    if (size <= left)
        world->node_used[node] += size;
    pthread_mutex_unlock(&world->lock);
    snprintf(where, sizeof where, "NUMA node %lld", (long long)place->number);
    return size <= left ? 0 : refuse(buffer, where, left, err);
}

static void give(struct sim_device *device, const struct lab_buffer_span *span) {
    if (span->kind == LAB_MEMORY_DEVICE) {
        device->memory_used -= (int64_t)span->size_bytes;
        return;
    }
    LAB_AUTO_LOCK(&device->world->lock);
    device->world->node_used[span->node] -= (int64_t)span->size_bytes;
}

static int node_of(const struct sim_device *device, const struct lab_buffer *buffer,
                   struct lab_err *err) {
    if (buffer->kind == LAB_MEMORY_DEVICE)
        return device->gpu->node;
    if (buffer->node < 0)
        return device->host_node;
    int node = lab_machine_node_index(device->machine->shown, buffer->node);
    if (node < 0)
        lab_err_set(err, LAB_ERR_USER, "sim:%s has no NUMA node %d", device->machine->name,
                    buffer->node);
    return node;
}

int sim_buffer_open(struct lab_device *base, struct lab_buffer *buffer, struct lab_err *err) {
    struct sim_device *device = (struct sim_device *)base;
    int node = node_of(device, buffer, err);
    if (node < 0 || take(device, buffer, node, err) < 0)
        return -1;
    struct lab_buffer_span span = {
        .size_bytes = buffer->size_bytes, .kind = buffer->kind, .node = node};
    void *data = mmap(NULL, buffer->size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        give(device, &span);
        return lab_err_set_errno(err, LAB_ERR_MEMORY, errno, "addresses for %zu simulated bytes",
                                 buffer->size_bytes);
    }
    span.begin = buffer->data = data;
    lab_buffers_add(&device->buffers, span);
    return 0;
}

/* As freeing device memory does in CUDA, this waits for the commands that may still use it. */
void sim_buffer_close(struct lab_buffer *buffer) {
    struct sim_device *device = (struct sim_device *)buffer->device;
    sim_stream_settle(device);
    struct lab_buffer_span span = lab_buffers_remove(&device->buffers, buffer->data);
    give(device, &span);
    munmap(buffer->data, buffer->size_bytes);
}

int sim_memory_check(const struct sim_device *device, const void *data, size_t size_bytes,
                     enum lab_memory_kind kind, const char *what, int *ret_node,
                     struct lab_err *err) {
    const struct lab_buffer_span *span;
    if (lab_buffers_check(&device->buffers, device->base.ref.name, data, size_bytes, kind, what,
                          &span, err) < 0)
        return -1;
    if (ret_node)
        *ret_node = span ? span->node : device->host_node;
    return 0;
}
