/*
 * trace.c: what the streams did, and when, in the world's time. The engine is its own profiler, and
 * tracing costs nothing: the traced pass is as fast as the timed one.
 */
#include "base/mem.h"
#include "device/sim/sim.h"

#include <stdlib.h>
#include <unistd.h>

enum item_kind { ITEM_LAUNCH, ITEM_COPY, ITEM_CALL, ITEM_KINDS };

struct item {
    enum item_kind kind;
    int64_t start_ns, end_ns;
    uint32_t stream, correlation;
    uint64_t graph_node;
    const char *name;
    int64_t size_bytes;
    enum lab_memory_kind to_kind, from_kind;
};

struct sim_trace {
    struct item *items;
    size_t capacity, count, dropped;
    uint32_t correlation;
};

static void add(struct sim_trace *trace, const struct item *item) {
    if (trace->count < trace->capacity)
        trace->items[trace->count++] = *item;
    else
        trace->dropped++;
}

void sim_trace_add(const struct sim_stream *stream, const struct sim_command *command,
                   int64_t end_ns) {
    struct item item = {.kind = command->kind == SIM_COPY ? ITEM_COPY : ITEM_LAUNCH,
                        .start_ns = stream->start_ns,
                        .end_ns = end_ns,
                        .stream = (uint32_t)stream->index + 1, /* 0 is CUDA's default stream */
                        .correlation = command->correlation,
                        .graph_node = command->graph_node};
    if (item.kind == ITEM_COPY) {
        item.size_bytes = (int64_t)command->copy.bytes;
        item.to_kind = command->copy.to_kind;
        item.from_kind = command->copy.from_kind;
    } else {
        item.name = lab_op_get(command->launch.op)->name;
    }
    add(stream->device->trace, &item);
}

/* What is captured is no command yet. */
uint32_t sim_trace_next(const struct sim_stream *stream) {
    struct sim_trace *trace = stream->device->trace;
    return trace && !stream->capture ? ++trace->correlation : 0;
}

void sim_trace_call(const struct sim_stream *stream, const char *name, uint32_t correlation,
                    int64_t start_ns) {
    if (correlation)
        add(stream->device->trace, &(struct item){.kind = ITEM_CALL,
                                                  .start_ns = start_ns,
                                                  .end_ns = stream->device->host.time_ns,
                                                  .correlation = correlation,
                                                  .name = name});
}

/* --- life --- */

int sim_trace_begin(struct lab_device *base, size_t capacity, struct lab_err *err) {
    struct sim_device *device = (struct sim_device *)base;
    if (device->trace)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is being traced already", base->ref.name);
    device->trace = lab_mem_alloc(1, sizeof *device->trace);
    device->trace->items = lab_mem_alloc(capacity, sizeof *device->trace->items);
    device->trace->capacity = capacity;
    return 0;
}

void sim_trace_free(struct sim_trace *trace) {
    if (trace)
        lab_mem_free(trace->items);
    lab_mem_free(trace);
}

/* --- handing over --- */

/* The engine finds them in the order of their ends; equal starts stay in that order. */
static int compare_starts(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static struct lab_trace_place place_of(const struct sim_device *device, const struct item *item) {
    return (struct lab_trace_place){.device = device->unit,
                                    .context = 1,
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

static int32_t direction(const struct item *item) {
    if (item->from_kind == LAB_MEMORY_DEVICE)
        return item->to_kind == LAB_MEMORY_DEVICE ? LAB_TRACE_COPY_D2D : LAB_TRACE_COPY_D2H;
    return item->to_kind == LAB_MEMORY_DEVICE ? LAB_TRACE_COPY_H2D : LAB_TRACE_COPY_H2H;
}

static void hand_over(const struct sim_device *device, const struct item *item,
                      struct lab_trace *trace) {
    switch (item->kind) {
    case ITEM_LAUNCH:
        trace->kernels[trace->kernel_count++] =
            (struct lab_trace_kernel){.start_ns = item->start_ns,
                                      .end_ns = item->end_ns,
                                      .place = place_of(device, item),
                                      .name = item->name,
                                      .grid = {1, 1, 1},
                                      .block = {1, 1, 1}};
        break;
    case ITEM_COPY:
        trace->copies[trace->copy_count++] =
            (struct lab_trace_copy){.start_ns = item->start_ns,
                                    .end_ns = item->end_ns,
                                    .place = place_of(device, item),
                                    .size_bytes = item->size_bytes,
                                    .kind = direction(item),
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
    case ITEM_KINDS:
        break;
    }
}

static void describe(const struct sim_device *device, struct lab_arena *arena,
                     struct lab_trace *trace) {
    const struct sim_model *model = device->gpu->model;
    trace->gpus = lab_arena_alloc(arena, 1, sizeof *trace->gpus);
    trace->gpus[trace->gpu_count++] = (struct lab_trace_gpu){
        .device = device->unit,
        .name = lab_arena_printf(arena, "%s (simulated)", model->name),
        .pci_bus = lab_arena_strdup(arena, device->machine->shown->pci[device->unit].address),
        .compute_units = (int32_t)model->units,
        .memory_bytes = device->base.info.memory_bytes,
        .memory_bytes_per_s = 1e9 * model->memory_gb_s,
    };
    trace->notes = lab_arena_alloc(arena, 1, sizeof *trace->notes);
    trace->notes[trace->note_count++] =
        (struct lab_trace_note){LAB_TRACE_NOTE_SOURCE, "simulation"};
}

int sim_trace_end(struct lab_device *base, struct lab_arena *arena, struct lab_trace *ret_trace,
                  struct lab_err *err) {
    struct sim_device *device = (struct sim_device *)base;
    struct sim_trace *trace = device->trace;
    size_t kinds[ITEM_KINDS] = {0};
    if (!trace)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s isn't being traced", base->ref.name);
    device->trace = NULL;
    for (size_t i = 0; i < trace->count; i++)
        kinds[trace->items[i].kind]++;
    if (trace->count)
        qsort(trace->items, trace->count, sizeof *trace->items, compare_starts);
    ret_trace->process = (uint32_t)getpid();
    ret_trace->kernels = lab_arena_alloc(arena, kinds[ITEM_LAUNCH], sizeof *ret_trace->kernels);
    ret_trace->copies = lab_arena_alloc(arena, kinds[ITEM_COPY], sizeof *ret_trace->copies);
    ret_trace->calls = lab_arena_alloc(arena, kinds[ITEM_CALL], sizeof *ret_trace->calls);
    for (size_t i = 0; i < trace->count; i++)
        hand_over(device, &trace->items[i], ret_trace);
    ret_trace->dropped = (int64_t)trace->dropped;
    describe(device, arena, ret_trace);
    sim_trace_free(trace);
    return 0;
}
