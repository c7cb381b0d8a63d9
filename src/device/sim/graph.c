/*
 * graph.c: commands kept and replayed. Launching one costs the host a single call; its commands
 * follow each other in the stream as if they had been given one by one, and cost the device a
 * little less.
 */
#include "base/mem.h"
#include "device/sim/sim.h"

int sim_graph_begin(struct lab_stream *base, struct lab_err *err) {
    (void)err;
    struct sim_graph *graph = lab_mem_alloc(1, sizeof *graph);
    graph->base.device = base->device;
    ((struct sim_stream *)base)->capture = graph;
    return 0;
}

int sim_graph_end(struct lab_stream *base, struct lab_graph **ret_graph, struct lab_err *err) {
    (void)err;
    struct sim_stream *stream = (struct sim_stream *)base;
    struct sim_graph *graph = stream->capture;
    stream->capture = NULL;
    for (int i = 0; i < graph->count; i++)
        sim_host_spend(stream->device, 1e-6 * stream->device->gpu->model->capture_us);
    *ret_graph = &graph->base;
    return 0;
}

static bool is_mark(const struct sim_command *command) {
    return command->kind == SIM_RECORD || command->kind == SIM_WAIT;
}

int sim_graph_launch(struct lab_graph *base, struct lab_stream *base_stream, struct lab_err *err) {
    (void)err;
    const struct sim_graph *graph = (const struct sim_graph *)base;
    struct sim_stream *stream = (struct sim_stream *)base_stream;
    struct sim_device *device = stream->device;
    struct lab_trace_log_call call = lab_trace_log_enter(base_stream);
    sim_host_spend(device, 1e-6 * device->gpu->model->graph_us + device->far_s);
    int64_t issue_ns = device->host.time_ns;
    for (int i = 0; i < graph->count; i++) {
        struct sim_command *command = sim_stream_add(stream, graph->commands[i].kind);
        *command = graph->commands[i];
        command->issue_ns = issue_ns;
        command->correlation = call.correlation;
        command->graph_node = (uint64_t)i + 1;
        if (is_mark(command))
            sim_event_bind(command, stream, stream->enqueued);
    }
    lab_trace_log_leave(base_stream, call, "lab_graph_launch");
    return 0;
}

/* Launches of it that are pending have copies of its commands. */
void sim_graph_close(struct lab_graph *base) {
    struct sim_graph *graph = (struct sim_graph *)base;
    for (int i = 0; i < graph->count; i++)
        if (is_mark(&graph->commands[i]))
            sim_event_drop(graph->commands[i].mark.event);
    lab_mem_free(graph->commands);
    lab_mem_free(graph);
}
