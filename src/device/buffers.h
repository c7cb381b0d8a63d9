/*
 * buffers.h: which buffers a device has given out, by their addresses, so that a command that names
 * memory which isn't there is refused. For backends whose memory is the program's own: a wrong
 * address would be read and written without complaint there, and fail on a GPU.
 */
#pragma once

#include "device/device.h"

struct lab_buffer_span {
    const char *begin;
    size_t size_bytes;
    enum lab_memory_kind kind;
    int node; /* the backend's own number of it */
};

struct lab_buffers {
    struct lab_buffer_span *items; /* ascending by address */
    int count;
};

void lab_buffers_add(struct lab_buffers *buffers, struct lab_buffer_span span);
/* The one that begins there, which must be among them. */
struct lab_buffer_span lab_buffers_remove(struct lab_buffers *buffers, const void *data);

/*
 * That all of the range lies in one buffer of that kind; `what` names it in the error, `device`
 * whose buffers these are. Pageable memory may be any of the program's: then `ret_span` (may be
 * NULL) is NULL.
 */
int lab_buffers_check(const struct lab_buffers *buffers, const char *device, const void *data,
                      size_t size_bytes, enum lab_memory_kind kind, const char *what,
                      const struct lab_buffer_span **ret_span, struct lab_err *err);

const char *lab_memory_kind_name(enum lab_memory_kind kind); /* "pinned host memory" */
