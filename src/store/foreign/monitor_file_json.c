/*
 * monitor_file_json.c: everything that a recording holds, as one document that is written as it
 * goes. Values are in the metrics' units; times are nanoseconds of the machine's steady clock,
 * which `epochs` ties to the wall clock. Reading it gives the same recording back.
 */
#include "store/foreign/monitor_file_writer.h"

#include "base/json.h"

#include <math.h>

static void add_text(struct lab_str *out, const char *key, const char *text) {
    lab_str_printf(out, ", \"%s\": ", key);
    lab_monitor_add_string(out, text);
}

static void add_int(struct lab_str *out, const char *key, int64_t value) {
    lab_str_printf(out, ", \"%s\": %lld", key, (long long)value);
}

static void add_number(struct lab_str *out, const char *key, double value) {
    lab_str_printf(out, ", \"%s\": ", key);
    if (isfinite(value))
        lab_str_add_double(out, value);
    else
        lab_str_add(out, "null");
}

/* --- what was recorded --- */

static void add_columns(struct lab_str *out, const struct lab_entity *entity) {
    lab_str_add(out, ", \"columns\": [");
    for (int i = 0; i < entity->column_count; i++) {
        struct lab_column column = entity->columns[i];
        lab_str_add(out, i ? ", \"" : "\"");
        lab_monitor_add_column(out, (enum lab_metric_id)column.metric);
        if (column.instance >= 0)
            lab_str_printf(out, "[%d]", column.instance);
        lab_str_add(out, "\"");
    }
    lab_str_add(out, "]");
}

static void add_entity(struct lab_str *out, const struct lab_track *track, int number) {
    const struct lab_entity *entity = &track->entity;
    lab_str_printf(out, "%s\n    {\"number\": %d", number ? "," : "", number);
    add_text(out, "kind", lab_entity_kind_name(entity->kind));
    add_int(out, "index", entity->index);
    add_text(out, "id", entity->id);
    add_text(out, "name", entity->name);
    add_text(out, "pci", entity->pci);
    add_int(out, "node", entity->node);
    add_int(out, "parent", entity->parent);
    lab_str_printf(out, ", \"simulated\": %s", entity->simulated ? "true" : "false");
    add_columns(out, entity);
    lab_str_add(out, "}");
}

static void add_head(struct lab_str *out, const struct lab_recording *recording) {
    lab_str_printf(out,
                   "{\n  \"schema\": %d,\n  \"format\": \"" LAB_MONITOR_OWN
                   "\",\n  \"version\": 1,\n  \"maker\": ",
                   LAB_JSON_SCHEMA);
    lab_monitor_add_string(out, recording->maker);
    lab_str_add(out, ",\n  \"label\": ");
    lab_monitor_add_string(out, recording->label);
    lab_str_printf(out, ",\n  \"interval_ns\": %lld,\n  \"simulated\": %s,\n  \"missing\": [",
                   (long long)recording->interval_ns, recording->simulated ? "true" : "false");
    for (const char **text = recording->missing; text && *text; text++) {
        lab_str_add(out, text == recording->missing ? "" : ", ");
        lab_monitor_add_string(out, *text);
    }
    lab_str_add(out, "],\n  \"epochs\": [");
    for (int i = 0; i < recording->epoch_count; i++) {
        const struct lab_recording_epoch *epoch = &recording->epochs[i];
        lab_str_printf(out, "%s\n    {\"from_ns\": %lld", i ? "," : "", (long long)epoch->from_ns);
        add_int(out, "offset_ns", epoch->offset_ns);
        add_text(out, "host", epoch->host);
        add_text(out, "boot_id", epoch->boot_id);
        lab_str_add(out, "}");
    }
    lab_str_add(out, "\n  ],\n  \"entities\": [");
    for (int i = 0; i < recording->track_count; i++)
        add_entity(out, &recording->tracks[i], i);
    lab_str_add(out, "\n  ],\n  \"ticks\": [");
}

/* --- what it found --- */

struct state {
    const struct lab_recording *recording;
    struct lab_doc_sink *sink;
    size_t ticks;
};

static void add_tick(void *of, const struct lab_tick *tick) {
    struct state *state = of;
    struct lab_str *out = &state->sink->text;
    const struct lab_entity *entity = &state->recording->tracks[tick->entity].entity;
    lab_str_printf(out, "%s\n    {\"entity\": %d, \"time_ns\": %lld, \"values\": [",
                   state->ticks++ ? "," : "", tick->entity, (long long)tick->time_ns);
    for (int i = 0; i < entity->column_count; i++) {
        lab_str_add(out, i ? ", " : "");
        if (lab_valid_get(tick->valid, i))
            lab_monitor_add_exact(out, (enum lab_metric_id)entity->columns[i].metric,
                                  tick->values[i]);
        else
            lab_str_add(out, "null");
    }
    lab_str_add(out, "]}");
}

static int pass_on(void *of) {
    struct state *state = of;
    return lab_doc_sink_pass(state->sink);
}

static void add_events(struct lab_str *out, const struct lab_recording *recording) {
    lab_str_add(out, "\n  ],\n  \"events\": [");
    for (size_t i = 0; i < recording->event_count; i++) {
        const struct lab_sample_event *event = &recording->events[i];
        lab_str_printf(out, "%s\n    {\"time_ns\": %lld", i ? "," : "", (long long)event->time_ns);
        add_text(out, "kind", lab_event_kind_name(event->kind));
        add_int(out, "entity", event->entity);
        add_int(out, "number", event->number);
        add_text(out, "text", event->text);
        lab_str_add(out, "}");
    }
    lab_str_add(out, "\n  ],\n  \"processes\": [");
}

static void add_on_gpu(struct lab_str *out, const struct lab_process_gpu *gpu) {
    lab_str_printf(out, "{\"entity\": %d", gpu->entity);
    add_int(out, "memory_bytes", gpu->memory_bytes);
    add_number(out, "sm_percent", gpu->sm_percent);
    add_number(out, "memory_percent", gpu->memory_percent);
    lab_str_printf(out, ", \"compute\": %s, \"graphics\": %s}", gpu->compute ? "true" : "false",
                   gpu->graphics ? "true" : "false");
}

static void add_process(struct lab_str *out, const struct lab_process_sample *process) {
    lab_str_printf(out, "{\"pid\": %d", (int)process->pid);
    add_int(out, "parent_pid", process->parent_pid);
    add_int(out, "start", (int64_t)process->start);
    add_int(out, "uid", process->uid);
    add_text(out, "user", process->user);
    add_text(out, "name", process->name);
    add_text(out, "command", process->command);
    add_text(out, "container", process->container);
    add_number(out, "cpu_percent", process->cpu_percent);
    add_int(out, "memory_bytes", process->memory_bytes);
    add_int(out, "threads", process->threads);
    add_int(out, "cpu_node", process->cpu_node);
    add_int(out, "allowed_nodes", (int64_t)process->allowed_nodes);
    lab_str_add(out, ", \"node_bytes\": ");
    for (int i = 0; process->node_bytes && i < process->node_count; i++)
        lab_str_printf(out, "%s%lld", i ? ", " : "[", (long long)process->node_bytes[i]);
    lab_str_add(out, !process->node_bytes ? "null" : process->node_count == 0 ? "[]" : "]");
    add_int(out, "placement", process->placement);
    add_text(out, "advice", process->advice);
    lab_str_add(out, ", \"gpus\": [");
    for (int i = 0; i < process->gpu_count; i++) {
        lab_str_add(out, i ? ", " : "");
        add_on_gpu(out, &process->gpus[i]);
    }
    lab_str_add(out, "]}");
}

static int add_processes(struct state *state) {
    const struct lab_recording *recording = state->recording;
    struct lab_str *out = &state->sink->text;
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct lab_process_list *list = &recording->processes[i];
        lab_str_printf(out, "%s\n    {\"time_ns\": %lld", i ? "," : "", (long long)list->time_ns);
        add_int(out, "left_out", list->left_out);
        lab_str_add(out, ", \"items\": [");
        for (int k = 0; k < list->count; k++) {
            lab_str_add(out, k ? ", " : "");
            add_process(out, &list->items[k]);
        }
        lab_str_add(out, "]}");
        if (lab_doc_sink_pass(state->sink) < 0)
            return -1;
    }
    lab_str_add(out, "\n  ]\n}\n");
    return lab_doc_sink_flush(state->sink);
}

int lab_monitor_export_json(const struct lab_recording *recording, struct lab_doc_sink *sink) {
    struct state state = {.recording = recording, .sink = sink};
    struct lab_monitor_player player = {
        .sink = {.tick = add_tick, .state = &state}, .pass = pass_on, .state = &state};
    add_head(&sink->text, recording);
    if (lab_monitor_play(recording, &player) < 0)
        return -1;
    add_events(&sink->text, recording);
    return add_processes(&state);
}
