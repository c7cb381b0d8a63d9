/*
 * monitor_file_json.c: everything that a recording holds, as one document that is written as it
 * goes. Values are in the metrics' units; times are nanoseconds of the machine's steady clock,
 * which `epochs` ties to the wall clock. Reading it gives the same recording back.
 */
#include "store/foreign/monitor_file_writer.h"

#include "base/json.h"

#include <math.h>

struct document {
    const struct lab_recording *recording;
    struct lab_doc_sink *sink;
    struct lab_doc_tree tree;
};

static void add_text(struct lab_doc_tree *tree, const char *key, const char *text) {
    lab_doc_tree_cell(tree, key, lab_cell_text(text ? text : ""));
}

static void add_int(struct lab_doc_tree *tree, const char *key, int64_t value) {
    lab_doc_tree_cell(tree, key, lab_cell_exact(value, 0));
}

static void add_flag(struct lab_doc_tree *tree, const char *key, bool flag) {
    lab_doc_tree_cell(tree, key, lab_cell_flag(flag));
}

static void begin_item(struct lab_doc_tree *tree) {
    lab_doc_tree_begin(tree, NULL, '{', LAB_DOC_INLINE);
}

/* --- what was recorded --- */

static void add_columns(struct lab_doc_tree *tree, const struct lab_entity *entity) {
    LAB_AUTO(str, name);
    lab_doc_tree_begin(tree, "columns", '[', LAB_DOC_INLINE);
    for (int i = 0; i < entity->column_count; i++) {
        struct lab_column column = entity->columns[i];
        lab_str_clear(&name);
        lab_monitor_add_column(&name, (enum lab_metric_id)column.metric);
        if (column.instance >= 0)
            lab_str_printf(&name, "[%d]", column.instance);
        add_text(tree, NULL, name.text);
    }
    lab_doc_tree_end(tree);
}

static void add_entity(struct lab_doc_tree *tree, const struct lab_entity *entity, int number) {
    begin_item(tree);
    add_int(tree, "number", number);
    add_text(tree, "kind", lab_entity_kind_name(entity->kind));
    add_int(tree, "index", entity->index);
    add_text(tree, "id", entity->id);
    add_text(tree, "name", entity->name);
    add_text(tree, "pci", entity->pci);
    add_int(tree, "node", entity->node);
    add_int(tree, "parent", entity->parent);
    add_flag(tree, "simulated", entity->simulated);
    add_columns(tree, entity);
    lab_doc_tree_end(tree);
}

static void add_head(struct lab_doc_tree *tree, const struct lab_recording *recording) {
    lab_doc_tree_begin(tree, NULL, '{', LAB_DOC_BROKEN);
    add_int(tree, "schema", LAB_JSON_SCHEMA);
    add_text(tree, "format", LAB_MONITOR_OWN);
    add_int(tree, "version", 1);
    add_text(tree, "maker", recording->maker);
    add_text(tree, "label", recording->label);
    add_int(tree, "interval_ns", recording->interval_ns);
    add_flag(tree, "simulated", recording->simulated);
    lab_doc_tree_begin(tree, "missing", '[', LAB_DOC_INLINE);
    for (const char **text = recording->missing; text && *text; text++)
        add_text(tree, NULL, *text);
    lab_doc_tree_end(tree);
    lab_doc_tree_begin(tree, "epochs", '[', LAB_DOC_SPREAD);
    for (int i = 0; i < recording->epoch_count; i++) {
        const struct lab_recording_epoch *epoch = &recording->epochs[i];
        begin_item(tree);
        add_int(tree, "from_ns", epoch->from_ns);
        add_int(tree, "offset_ns", epoch->offset_ns);
        add_text(tree, "host", epoch->host);
        add_text(tree, "boot_id", epoch->boot_id);
        lab_doc_tree_end(tree);
    }
    lab_doc_tree_end(tree);
    lab_doc_tree_begin(tree, "entities", '[', LAB_DOC_SPREAD);
    for (int i = 0; i < recording->track_count; i++)
        add_entity(tree, &recording->tracks[i].entity, i);
    lab_doc_tree_end(tree);
}

/* --- what it found --- */

static void add_tick(void *state, const struct lab_tick *tick) {
    struct document *document = state;
    struct lab_doc_tree *tree = &document->tree;
    const struct lab_entity *entity = &document->recording->tracks[tick->entity].entity;
    begin_item(tree);
    add_int(tree, "entity", tick->entity);
    add_int(tree, "time_ns", tick->time_ns);
    lab_doc_tree_begin(tree, "values", '[', LAB_DOC_INLINE);
    for (int i = 0; i < entity->column_count; i++)
        lab_doc_tree_cell(
            tree, NULL,
            lab_valid_get(tick->valid, i)
                ? lab_monitor_exact((enum lab_metric_id)entity->columns[i].metric, tick->values[i])
                : lab_cell_figure(NAN));
    lab_doc_tree_end(tree);
    lab_doc_tree_end(tree);
}

static int pass_on(void *state) {
    struct document *document = state;
    return lab_doc_sink_pass(document->sink);
}

static void add_events(struct lab_doc_tree *tree, const struct lab_recording *recording) {
    lab_doc_tree_begin(tree, "events", '[', LAB_DOC_SPREAD);
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct lab_sample_event *event = &recording->events[i];
        begin_item(tree);
        add_int(tree, "time_ns", event->time_ns);
        add_text(tree, "kind", lab_event_kind_name(event->kind));
        add_int(tree, "entity", event->entity);
        add_int(tree, "number", event->number);
        add_text(tree, "text", event->text);
        lab_doc_tree_end(tree);
    }
    lab_doc_tree_end(tree);
}

static void add_on_gpu(struct lab_doc_tree *tree, const struct lab_process_gpu *gpu) {
    begin_item(tree);
    add_int(tree, "entity", gpu->entity);
    add_int(tree, "memory_bytes", gpu->memory_bytes);
    lab_doc_tree_cell(tree, "sm_percent", lab_cell_figure(gpu->sm_percent));
    lab_doc_tree_cell(tree, "memory_percent", lab_cell_figure(gpu->memory_percent));
    add_flag(tree, "compute", gpu->compute);
    add_flag(tree, "graphics", gpu->graphics);
    lab_doc_tree_end(tree);
}

static void add_node_bytes(struct lab_doc_tree *tree, const struct lab_process_sample *process) {
    if (!process->node_bytes) {
        lab_doc_tree_cell(tree, "node_bytes", lab_cell_figure(NAN));
        return;
    }
    lab_doc_tree_begin(tree, "node_bytes", '[', LAB_DOC_INLINE);
    for (int i = 0; i < process->node_count; i++)
        add_int(tree, NULL, process->node_bytes[i]);
    lab_doc_tree_end(tree);
}

static void add_process(struct lab_doc_tree *tree, const struct lab_process_sample *process) {
    begin_item(tree);
    add_int(tree, "pid", process->pid);
    add_int(tree, "parent_pid", process->parent_pid);
    add_int(tree, "start", (int64_t)process->start);
    add_int(tree, "uid", process->uid);
    add_text(tree, "user", process->user);
    add_text(tree, "name", process->name);
    add_text(tree, "command", process->command);
    add_text(tree, "container", process->container);
    lab_doc_tree_cell(tree, "cpu_percent", lab_cell_figure(process->cpu_percent));
    add_int(tree, "memory_bytes", process->memory_bytes);
    add_int(tree, "threads", process->threads);
    add_int(tree, "cpu_node", process->cpu_node);
    add_int(tree, "allowed_nodes", (int64_t)process->allowed_nodes);
    add_node_bytes(tree, process);
    add_int(tree, "placement", process->placement);
    add_text(tree, "advice", process->advice);
    lab_doc_tree_begin(tree, "gpus", '[', LAB_DOC_INLINE);
    for (int i = 0; i < process->gpu_count; i++)
        add_on_gpu(tree, &process->gpus[i]);
    lab_doc_tree_end(tree);
    lab_doc_tree_end(tree);
}

static int add_processes(struct document *document) {
    const struct lab_recording *recording = document->recording;
    struct lab_doc_tree *tree = &document->tree;
    lab_doc_tree_begin(tree, "processes", '[', LAB_DOC_SPREAD);
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        begin_item(tree);
        add_int(tree, "time_ns", list->time_ns);
        add_int(tree, "left_out", list->left_out);
        lab_doc_tree_begin(tree, "items", '[', LAB_DOC_INLINE);
        for (int k = 0; k < list->count; k++)
            add_process(tree, &list->items[k]);
        lab_doc_tree_end(tree);
        lab_doc_tree_end(tree);
        if (lab_doc_sink_pass(document->sink) < 0)
            return -1;
    }
    lab_doc_tree_end(tree);
    return 0;
}

int lab_monitor_export_json(const struct lab_recording *recording, struct lab_doc_sink *sink) {
    struct document document = {recording, sink, {.out = &sink->text}};
    struct lab_doc_tree *tree = &document.tree;
    struct lab_monitor_player player = {
        .sink = {.tick = add_tick, .state = &document}, .pass = pass_on, .state = &document};
    add_head(tree, recording);
    lab_doc_tree_begin(tree, "ticks", '[', LAB_DOC_SPREAD);
    if (lab_monitor_play(recording, &player) < 0)
        return -1;
    lab_doc_tree_end(tree);
    add_events(tree, recording);
    if (add_processes(&document) < 0)
        return -1;
    lab_doc_tree_end(tree);
    return lab_doc_sink_flush(sink);
}
