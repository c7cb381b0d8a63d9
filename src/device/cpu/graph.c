/*
 * graph.c: commands kept and replayed. A launched graph takes one place in the stream's ring but as
 * many steps as it has commands, so that events recorded inside are passed when they are reached
 * and not at its end. What its records and waits refer to differs between launches and is decided
 * at each (event.c): that makes the list of bindings which travels with the launch.
 */
#include "base/mem.h"
#include "device/cpu/cpu.h"

static bool is_binding(const struct cpu_command *command) {
    return command->kind == CPU_RECORD || command->kind == CPU_WAIT;
}

int cpu_graph_begin(struct lab_stream *base, struct lab_err *err) {
    (void)err;
    struct cpu_graph *graph = lab_mem_alloc(1, sizeof *graph);
    graph->base.device = base->device;
    atomic_init(&graph->references, 1);
    ((struct cpu_stream *)base)->capture = graph;
    return 0;
}

int cpu_graph_end(struct lab_stream *base, struct lab_graph **ret_graph, struct lab_err *err) {
    (void)err;
    struct cpu_stream *stream = (struct cpu_stream *)base;
    *ret_graph = &stream->capture->base;
    stream->capture = NULL;
    return 0;
}

struct cpu_command *cpu_graph_next(struct cpu_graph *graph) {
    struct cpu_command *command = &LAB_PUSH(graph->commands, graph->count);
    memset(command, 0, sizeof *command);
    return command;
}

static void graph_drop(struct cpu_graph *graph) {
    if (atomic_fetch_sub(&graph->references, 1) > 1)
        return;
    for (int i = 0; i < graph->count; i++)
        if (graph->commands[i].event)
            cpu_event_drop(graph->commands[i].event);
    lab_mem_free(graph->commands);
    lab_mem_free(graph);
}

void cpu_graph_close(struct lab_graph *graph) {
    graph_drop((struct cpu_graph *)graph);
}

static struct cpu_binding *graph_bind(const struct cpu_graph *graph, struct cpu_stream *stream) {
    if (!graph->binding_count)
        return NULL;
    struct cpu_binding *bindings = lab_mem_alloc((size_t)graph->binding_count, sizeof *bindings);
    struct cpu_binding *next = bindings;
    for (int i = 0; i < graph->count; i++)
        if (is_binding(&graph->commands[i]))
            *next++ = cpu_event_bind(graph->commands[i].event, graph->commands[i].kind, stream,
                                     stream->enqueued + (uint64_t)i + 1);
    return bindings;
}

int cpu_graph_launch(struct lab_graph *base, struct lab_stream *base_stream, struct lab_err *err) {
    (void)err;
    struct cpu_graph *graph = (struct cpu_graph *)base;
    struct cpu_stream *stream = (struct cpu_stream *)base_stream;
    if (!graph->count)
        return 0;
    atomic_fetch_add(&graph->references, 1); /* given back when it has run */
    struct lab_trace_log_call call = lab_trace_log_enter(base_stream);
    struct cpu_command *command = cpu_stream_next(stream);
    command->kind = CPU_GRAPH;
    command->correlation = call.correlation;
    command->graph.graph = graph;
    command->graph.bindings = graph_bind(graph, stream);
    cpu_stream_post(stream, (uint64_t)graph->count);
    lab_trace_log_leave(base_stream, call, "lab_graph_launch");
    return 0;
}

void cpu_graph_replay(struct cpu_stream *stream, struct cpu_graph *graph,
                      struct cpu_binding *bindings) {
    const struct cpu_binding *next = bindings;
    for (int i = 0; i < graph->count; i++) {
        const struct cpu_command *command = &graph->commands[i];
        stream->graph_node = (uint64_t)i + 1;
        cpu_stream_do(stream, command, is_binding(command) ? next++ : NULL);
    }
    stream->graph_node = 0;
    lab_mem_free(bindings);
    graph_drop(graph);
}
