/*
 * on_cpu.h: a CPU device of this machine for tests of workloads, and a way to make its calls fail:
 * the device's slots are swapped for ones that count and, at the chosen call, refuse.
 */
#pragma once

#include "machine/machine.h"
#include "workload/workload.h"

#include "test.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

struct on_cpu {
    struct lab_arena arena;
    struct lab_machine *machine;
    struct lab_device *device;
    struct lab_rank rank;
};

static inline void on_cpu_open(struct on_cpu *cpu) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device_list list = {0};
    *cpu = (struct on_cpu){0};
    lab_arena_init(&cpu->arena);
    if (lab_machine_open(NULL, &cpu->machine, &err) ||
        lab_device_select(cpu->machine, "cpu", &cpu->arena, &list, &err) ||
        lab_device_open(cpu->machine, &list.items[0], LAB_DEVICE_SETUP, &cpu->device, &err))
        fail_msg("%s", err.text);
    cpu->rank = (struct lab_rank){
        .device = cpu->device, .numa_node = list.items[0].node, .count = 1, .seed = 42};
}

static inline void on_cpu_close(struct on_cpu *cpu) {
    lab_device_close(cpu->device);
    lab_machine_close(cpu->machine);
    lab_arena_release(&cpu->arena);
}

/* The workload's defaults with some keys changed, checked. */
static inline void *on_cpu_configure(struct on_cpu *cpu, const struct lab_workload *workload,
                                     const char *const *words) {
    struct lab_err err = LAB_ERR_INIT;
    void *config = lab_workload_config(workload, &cpu->arena);
    for (; *words; words++)
        if (lab_options_set_word(workload->options, config, &cpu->arena, *words, &err))
            fail_msg("%s", err.text);
    if (workload->check && workload->check(config, &err))
        fail_msg("%s", err.text);
    return config;
}

static inline void *on_cpu_start(struct on_cpu *cpu, const struct lab_workload *workload,
                                 const char *const *words) {
    void *state = NULL;
    ASSERT_OK(workload->open(on_cpu_configure(cpu, workload, words), &cpu->rank, &state, err));
    return state;
}

/* --- calls that fail --- */

/* The slots below count together; number `fail_at` refuses (-1: none does). */
static struct {
    const struct lab_device_ops *real;
    struct lab_device_ops swapped;
    int calls, fail_at;
    int launches, drop_launch; /* a launch that is silently not carried out; -1: none */
} faulty;

static inline int faulty_refuses(struct lab_err *err, const char *what) {
    if (faulty.calls++ != faulty.fail_at)
        return 0;
    return lab_err_set(err, LAB_ERR_MEMORY, "no memory for a %s (made up by the test)", what);
}

static inline int faulty_buffer_open(struct lab_device *device, struct lab_buffer *buffer,
                                     struct lab_err *err) {
    return faulty_refuses(err, "buffer") ? -1 : faulty.real->buffer_open(device, buffer, err);
}

static inline int faulty_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                                     struct lab_stream **ret_stream, struct lab_err *err) {
    return faulty_refuses(err, "stream") ? -1
                                         : faulty.real->stream_open(device, kind, ret_stream, err);
}

static inline int faulty_event_open(struct lab_device *device, struct lab_event **ret_event,
                                    struct lab_err *err) {
    return faulty_refuses(err, "event") ? -1 : faulty.real->event_open(device, ret_event, err);
}

static inline int faulty_copy(struct lab_stream *stream, void *to, const void *from,
                              size_t size_bytes, enum lab_memory_kind to_kind,
                              enum lab_memory_kind from_kind, struct lab_err *err) {
    return faulty_refuses(err, "copy")
               ? -1
               : faulty.real->copy(stream, to, from, size_bytes, to_kind, from_kind, err);
}

static inline int faulty_launch(struct lab_stream *stream, const struct lab_launch *launch,
                                struct lab_err *err) {
    if (faulty_refuses(err, "launch"))
        return -1;
    return faulty.launches++ == faulty.drop_launch ? 0 : faulty.real->launch(stream, launch, err);
}

static inline int faulty_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph,
                                   struct lab_err *err) {
    if (!faulty_refuses(err, "graph"))
        return faulty.real->graph_end(stream, ret_graph, err);
    struct lab_err ignored = LAB_ERR_INIT;
    if (!faulty.real->graph_end(stream, ret_graph, &ignored))
        faulty.real->graph_close(*ret_graph);
    *ret_graph = NULL;
    return -1;
}

static inline void faulty_begin(struct lab_device *device, int fail_at, int drop_launch) {
    faulty.real = device->ops;
    faulty.swapped = *device->ops;
    faulty.swapped.buffer_open = faulty_buffer_open;
    faulty.swapped.stream_open = faulty_stream_open;
    faulty.swapped.event_open = faulty_event_open;
    faulty.swapped.copy = faulty_copy;
    faulty.swapped.launch = faulty_launch;
    if (device->ops->graph_end)
        faulty.swapped.graph_end = faulty_graph_end;
    faulty.calls = faulty.launches = 0;
    faulty.fail_at = fail_at;
    faulty.drop_launch = drop_launch;
    device->ops = &faulty.swapped;
}

static inline void faulty_end(struct lab_device *device) {
    device->ops = faulty.real;
}
