/*
 * trace.c: what the streams did, and when. Records go into room that was set aside before, at a
 * place that an atomic counter gives out, so that tracing a command costs two looks at the clock
 * and a store. What commands belong to (their stream, the host's call) is known here without asking
 * anybody: the backend is its own profiler.
 */
#include "base/mem.h"
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <unistd.h>

enum item_kind { ITEM_LAUNCH, ITEM_COPY, ITEM_CALL };

struct item {
    enum item_kind kind;
    int64_t start_ns, end_ns;
    uint32_t stream, correlation;
    uint64_t graph_node;
    const char *name; /* launch: the op's, call: the function's */
    int64_t amount;   /* launch: units, copy: bytes */
    enum lab_memory_kind to_kind, from_kind;
};

struct cpu_trace {
    struct item *items;
    size_t capacity;
    _Atomic size_t asked; /* for room; more than `capacity` = the rest was dropped */
    uint32_t correlation; /* the host's last */
};

/* --- recording --- */

static void add(const struct cpu_stream *stream, const struct item *item) {
    struct cpu_trace *trace = ((struct cpu_device *)stream->base.device)->trace;
    size_t place = atomic_fetch_add_explicit(&trace->asked, 1, memory_order_relaxed);
    if (place < trace->capacity)
        trace->items[place] = *item;
}

static uint32_t number_of(const struct cpu_stream *stream) {
    return (uint32_t)stream->index + 1; /* 0 is CUDA's default stream */
}

void cpu_trace_add_copy(const struct cpu_stream *stream, const struct cpu_command *command,
                        int64_t start_ns) {
    add(stream, &(struct item){.kind = ITEM_COPY,
                               .start_ns = start_ns,
                               .end_ns = lab_clock_now(stream->base.device->clock),
                               .stream = number_of(stream),
                               .correlation = stream->correlation,
                               .graph_node = stream->graph_node,
                               .amount = (int64_t)command->copy.size_bytes,
                               .to_kind = command->copy.to_kind,
                               .from_kind = command->copy.from_kind});
}

void cpu_trace_add_launch(const struct cpu_stream *stream, const struct lab_launch *launch,
                          int64_t units, int64_t start_ns, int64_t end_ns) {
    add(stream, &(struct item){.kind = ITEM_LAUNCH,
                               .start_ns = start_ns,
                               .end_ns = end_ns,
                               .stream = number_of(stream),
                               .correlation = stream->correlation,
                               .graph_node = stream->graph_node,
                               .name = lab_op_get(launch->op)->name,
                               .amount = units});
}

/* What is captured is no command yet. */
struct cpu_trace_call cpu_trace_call_begin(const struct cpu_stream *stream) {
    const struct lab_device *device = stream->base.device;
    struct cpu_trace *trace = ((const struct cpu_device *)device)->trace;
    if (!trace || stream->capture)
        return (struct cpu_trace_call){0};
    return (struct cpu_trace_call){lab_clock_now(device->clock), ++trace->correlation};
}

void cpu_trace_call_end(const struct cpu_stream *stream, struct cpu_trace_call call,
                        const char *name) {
    if (!call.correlation)
        return;
    add(stream, &(struct item){.kind = ITEM_CALL,
                               .start_ns = call.start_ns,
                               .end_ns = lab_clock_now(stream->base.device->clock),
                               .correlation = call.correlation,
                               .name = name});
}

/* --- life --- */

int cpu_trace_begin(struct lab_device *base, size_t capacity, struct lab_err *err) {
    struct cpu_device *device = (struct cpu_device *)base;
    if (device->trace)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is being traced already", base->ref.name);
    struct cpu_trace *trace = lab_mem_alloc(1, sizeof *trace);
    trace->items = lab_mem_alloc(capacity, sizeof *trace->items);
    trace->capacity = capacity;
    device->trace = trace;
    return 0;
}

void cpu_trace_free(struct cpu_trace *trace) {
    if (trace)
        lab_mem_free(trace->items);
    lab_mem_free(trace);
}

/* --- handing over --- */

static int compare_starts(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static struct lab_trace_place place_of(const struct cpu_device *device, const struct item *item) {
    const struct lab_device_ref *ref = &device->base.ref;
    return (struct lab_trace_place){.device = ref->unit,
                                    .context = 1,
                                    .green = ref->slices > 1 ? (uint32_t)ref->slice + 1 : 0,
                                    .stream = item->stream,
                                    .correlation = item->correlation,
                                    .graph_node = item->graph_node};
}

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

static void hand_over(const struct cpu_device *device, const struct item *item,
                      struct lab_trace *trace) {
    switch (item->kind) {
    case ITEM_LAUNCH:
        trace->kernels[trace->kernel_count++] =
            (struct lab_trace_kernel){.start_ns = item->start_ns,
                                      .end_ns = item->end_ns,
                                      .place = place_of(device, item),
                                      .name = item->name,
                                      .grid = {(int32_t)item->amount, 1, 1},
                                      .block = {1, 1, 1}};
        break;
    case ITEM_COPY:
        trace->copies[trace->copy_count++] =
            (struct lab_trace_copy){.start_ns = item->start_ns,
                                    .end_ns = item->end_ns,
                                    .place = place_of(device, item),
                                    .size_bytes = item->amount,
                                    .kind = direction(item->to_kind, item->from_kind),
                                    .from = memory_of(item->from_kind),
                                    .to = memory_of(item->to_kind)};
        break;
    case ITEM_CALL:
        trace->calls[trace->call_count++] =
            (struct lab_trace_call){.start_ns = item->start_ns,
                                    .end_ns = item->end_ns,
                                    .name = item->name,
                                    .thread = (uint32_t)gettid(),
                                    .correlation = item->correlation};
        break;
    }
}

static void describe(const struct cpu_device *device, struct lab_arena *arena,
                     struct lab_trace *trace) {
    trace->gpus = lab_arena_alloc(arena, 1, sizeof *trace->gpus);
    trace->gpus[trace->gpu_count++] = (struct lab_trace_gpu){
        .device = device->base.ref.unit,
        .name = lab_arena_strdup(arena, device->base.ref.description),
        .compute_units = device->base.info.compute_units,
        .memory_bytes = device->base.info.memory_bytes,
    };
    trace->notes = lab_arena_alloc(arena, 1, sizeof *trace->notes);
    trace->notes[trace->note_count++] = (struct lab_trace_note){LAB_TRACE_NOTE_SOURCE, "streams"};
}

int cpu_trace_end(struct lab_device *base, struct lab_arena *arena, struct lab_trace *ret_trace,
                  struct lab_err *err) {
    struct cpu_device *device = (struct cpu_device *)base;
    struct cpu_trace *trace = device->trace;
    if (!trace)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't being traced", base->ref.name);
    device->trace = NULL;
    size_t count = trace->asked < trace->capacity ? trace->asked : trace->capacity;
    size_t kinds[3] = {0};
    for (size_t i = 0; i < count; i++)
        kinds[trace->items[i].kind]++;
    if (count)
        qsort(trace->items, count, sizeof *trace->items, compare_starts);
    ret_trace->process = (uint32_t)getpid();
    ret_trace->kernels = lab_arena_alloc(arena, kinds[ITEM_LAUNCH], sizeof *ret_trace->kernels);
    ret_trace->copies = lab_arena_alloc(arena, kinds[ITEM_COPY], sizeof *ret_trace->copies);
    ret_trace->calls = lab_arena_alloc(arena, kinds[ITEM_CALL], sizeof *ret_trace->calls);
    for (size_t i = 0; i < count; i++)
        hand_over(device, &trace->items[i], ret_trace);
    ret_trace->dropped = (int64_t)(trace->asked - count);
    describe(device, arena, ret_trace);
    cpu_trace_free(trace);
    return 0;
}
