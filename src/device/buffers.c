/* buffers.c: a sorted array; devices have few buffers, and look far more often than they change
 * them. */
#include "device/buffers.h"

#include "base/mem.h"

#include <string.h>

const char *lab_memory_kind_name(enum lab_memory_kind kind) {
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

/* Index of the first that begins behind `data`. */
static int find_behind(const struct lab_buffers *buffers, const void *data) {
    int low = 0, high = buffers->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((uintptr_t)buffers->items[middle].begin <= (uintptr_t)data)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void lab_buffers_add(struct lab_buffers *buffers, struct lab_buffer_span span) {
    buffers->items = lab_mem_grow(buffers->items, (size_t)buffers->count, sizeof *buffers->items);
    int at = find_behind(buffers, span.begin);
    memmove(&buffers->items[at + 1], &buffers->items[at],
            (size_t)(buffers->count - at) * sizeof *buffers->items);
    buffers->items[at] = span;
    buffers->count++;
}

struct lab_buffer_span lab_buffers_remove(struct lab_buffers *buffers, const void *data) {
    int at = find_behind(buffers, data) - 1;
    struct lab_buffer_span span = buffers->items[at];
    buffers->count--;
    memmove(&buffers->items[at], &buffers->items[at + 1],
            (size_t)(buffers->count - at) * sizeof *buffers->items);
    return span;
}

int lab_buffers_check(const struct lab_buffers *buffers, const char *device, const void *data,
                      size_t size_bytes, enum lab_memory_kind kind, const char *what,
                      const struct lab_buffer_span **ret_span, struct lab_err *err) {
    if (!data)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is NULL", what);
    int at = find_behind(buffers, data) - 1;
    const struct lab_buffer_span *span = at >= 0 ? &buffers->items[at] : NULL;
    size_t offset = span ? (size_t)((const char *)data - span->begin) : 0;
    if (!span || offset >= span->size_bytes) {
        if (kind != LAB_MEMORY_HOST_PAGEABLE)
            return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't in a buffer of %s", what, device);
        span = NULL;
    } else if (span->kind != kind) {
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is %s, not %s", what,
                           lab_memory_kind_name(span->kind), lab_memory_kind_name(kind));
    } else if (size_bytes > span->size_bytes - offset) {
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s of %zu bytes reaches %zu bytes beyond its buffer", what, size_bytes,
                           size_bytes - (span->size_bytes - offset));
    }
    if (ret_span)
        *ret_span = span;
    return 0;
}
