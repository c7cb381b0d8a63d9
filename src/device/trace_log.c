/*
 * trace_log.c: records of streams and calls, sorted into a trace at its end. What commands belong
 * to (their stream, the host's call) is known without asking anybody.
 */
#include "device/trace_log.h"

#include "base/list.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lab_trace_log {
    struct lab_trace_log_item *items;
    size_t capacity;
    _Atomic size_t asked; /* for room; more than `capacity` = the rest was dropped */
    uint32_t correlation; /* the host's last */
};

/* --- life --- */

int lab_trace_log_begin(struct lab_device *device, size_t capacity, struct lab_err *err) {
    if (device->trace_log)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is being traced already", device->ref.name);
    struct lab_trace_log *log = lab_mem_alloc(1, sizeof *log);
    log->items = lab_mem_alloc(capacity, sizeof *log->items);
    log->capacity = capacity;
    device->trace_log = log;
    return 0;
}

void lab_trace_log_free(struct lab_device *device) {
    if (device->trace_log)
        lab_mem_free(device->trace_log->items);
    lab_mem_free(device->trace_log);
    device->trace_log = NULL;
}

/* --- recording --- */

void lab_trace_log_add(const struct lab_device *device, const struct lab_trace_log_item *item) {
    struct lab_trace_log *log = device->trace_log;
    size_t place = atomic_fetch_add_explicit(&log->asked, 1, memory_order_relaxed);
    if (place < log->capacity)
        log->items[place] = *item;
}

/* What is captured is no command yet. */
struct lab_trace_log_call lab_trace_log_enter(const struct lab_stream *stream) {
    struct lab_trace_log *log = stream->device->trace_log;
    if (!log || stream->capturing)
        return (struct lab_trace_log_call){0};
    return (struct lab_trace_log_call){lab_clock_now(stream->device->clock), ++log->correlation};
}

void lab_trace_log_leave(const struct lab_stream *stream, struct lab_trace_log_call call,
                         const char *name) {
    if (call.correlation)
        lab_trace_log_add(stream->device, &(struct lab_trace_log_item){
                                              .kind = LAB_TRACE_LOG_CALL,
                                              .start_ns = call.start_ns,
                                              .end_ns = lab_clock_now(stream->device->clock),
                                              .correlation = call.correlation,
                                              .name = name});
}

/* --- handing over --- */

static int32_t memory_of(enum lab_memory_kind kind) {
    switch (kind) {
    case LAB_MEMORY_DEVICE:
        return LAB_TRACE_MEMORY_DEVICE;
    case LAB_MEMORY_HOST_PINNED:
        return LAB_TRACE_MEMORY_PINNED;
    case LAB_MEMORY_HOST_PAGEABLE:
        return LAB_TRACE_MEMORY_PAGEABLE;
    }
    return LAB_TRACE_MEMORY_UNKNOWN;
}

static int32_t direction(enum lab_memory_kind to, enum lab_memory_kind from) {
    if (from == LAB_MEMORY_DEVICE)
        return to == LAB_MEMORY_DEVICE ? LAB_TRACE_COPY_D2D : LAB_TRACE_COPY_D2H;
    return to == LAB_MEMORY_DEVICE ? LAB_TRACE_COPY_H2D : LAB_TRACE_COPY_H2H;
}

static void hand_over(const struct lab_trace_log_item *item, struct lab_trace_place place,
                      struct lab_trace *trace) {
    place.context = 1;
    place.stream = item->stream;
    place.correlation = item->correlation;
    place.graph_node = item->graph_node;
    switch (item->kind) {
    case LAB_TRACE_LOG_LAUNCH:
        trace->kernels[trace->kernel_count++] =
            (struct lab_trace_kernel){.start_ns = item->start_ns,
                                      .end_ns = item->end_ns,
                                      .place = place,
                                      .name = item->name,
                                      .grid = {(int32_t)item->amount, 1, 1},
                                      .block = {1, 1, 1}};
        break;
    case LAB_TRACE_LOG_COPY:
        trace->copies[trace->copy_count++] =
            (struct lab_trace_copy){.start_ns = item->start_ns,
                                    .end_ns = item->end_ns,
                                    .place = place,
                                    .size_bytes = item->amount,
                                    .kind = direction(item->to_kind, item->from_kind),
                                    .from = memory_of(item->from_kind),
                                    .to = memory_of(item->to_kind)};
        break;
    case LAB_TRACE_LOG_CALL:
    default:
        trace->calls[trace->call_count++] =
            (struct lab_trace_call){.start_ns = item->start_ns,
                                    .end_ns = item->end_ns,
                                    .name = item->name,
                                    .thread = (uint32_t)syscall(SYS_gettid),
                                    .correlation = item->correlation};
        break;
    }
}

int lab_trace_log_end(struct lab_device *device, const struct lab_trace_gpu *gpu, uint32_t green,
                      const char *source, struct lab_arena *arena, struct lab_trace *ret_trace,
                      struct lab_err *err) {
    struct lab_trace_log *log = device->trace_log;
    if (!log)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't being traced", device->ref.name);
    size_t count = log->asked < log->capacity ? log->asked : log->capacity;
    size_t kinds[LAB_TRACE_LOG_KINDS] = {0};
    for (size_t i = 0; i < count; i++)
        kinds[log->items[i].kind]++;
    LAB_SORT(log->items, count, LAB_BY(log->items, start_ns), LAB_BY(log->items, end_ns));
    *ret_trace = (struct lab_trace){
        .process = (uint32_t)getpid(),
        .kernels = lab_arena_alloc(arena, kinds[LAB_TRACE_LOG_LAUNCH], sizeof *ret_trace->kernels),
        .copies = lab_arena_alloc(arena, kinds[LAB_TRACE_LOG_COPY], sizeof *ret_trace->copies),
        .calls = lab_arena_alloc(arena, kinds[LAB_TRACE_LOG_CALL], sizeof *ret_trace->calls),
        .gpus = lab_arena_copy(arena, gpu, 1, sizeof *gpu),
        .gpu_count = 1,
        .notes = lab_arena_copy(arena, &(struct lab_trace_note){LAB_TRACE_NOTE_SOURCE, source}, 1,
                                sizeof *ret_trace->notes),
        .note_count = 1,
        .dropped = (int64_t)(log->asked - count),
    };
    for (size_t i = 0; i < count; i++)
        hand_over(&log->items[i], (struct lab_trace_place){.device = gpu->device, .green = green},
                  ret_trace);
    lab_trace_log_free(device);
    return 0;
}
