/*
 * monitor_file_csv.c: every metric as a table: a line for each entity and tick. The columns are the
 * same on every machine, so that a line can be read without knowing what was there; of a metric
 * that has instances (cores, nodes) the field is a list with semicolons, the instance's number
 * being its place.
 */
#include "store/foreign/monitor_file_writer.h"

#include <string.h>

void lab_monitor_write_csv_header(struct lab_str *out) {
    lab_str_add(out, "timestamp,elapsed_s,kind,index,id,name,simulated");
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        lab_str_add(out, ",");
        lab_monitor_add_column(out, (enum lab_metric_id)i);
    }
    lab_str_add(out, "\n");
}

static void add_text(struct lab_str *out, const char *text) {
    bool plain = !text[strcspn(text, ",\"\r\n")];
    lab_str_add(out, plain ? "" : "\"");
    for (const char *at = text; *at; at++) {
        lab_str_add_bytes(out, at, 1);
        if (*at == '"')
            lab_str_add(out, "\"");
    }
    lab_str_add(out, plain ? "," : "\",");
}

/* `first`: where the metric's columns begin; its instances ascend from there. */
static void add_metric(struct lab_str *out, const struct lab_entity *entity,
                       const struct lab_tick *tick, int metric, int first) {
    for (int i = first, place = 0, next = -1; i < entity->column_count; i++) {
        int instance = entity->columns[i].instance;
        if (entity->columns[i].metric != metric || instance < next)
            continue;
        for (; place < instance; place++)
            lab_str_add(out, ";");
        if (lab_valid_get(tick->valid, i))
            lab_monitor_add_exact(out, (enum lab_metric_id)metric, tick->values[i]);
        if (instance < 0)
            return;
        next = instance + 1;
    }
}

void lab_monitor_write_csv(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                           const struct lab_tick *tick) {
    struct lab_str *out = writer->out;
    const struct lab_entity *entity = &source->entity;
    int first[LAB_METRIC_COUNT];
    for (int i = 0; i < LAB_METRIC_COUNT; i++)
        first[i] = entity->column_count;
    for (int i = entity->column_count - 1; i >= 0; i--)
        if (entity->columns[i].metric >= 0 && entity->columns[i].metric < LAB_METRIC_COUNT)
            first[entity->columns[i].metric] = i;
    lab_monitor_add_time(out, lab_monitor_wall_ns(writer, tick->time_ns));
    lab_str_add(out, ",");
    lab_monitor_add_seconds(out, tick->time_ns - writer->begin_ns, 6);
    lab_str_printf(out, ",%s,%d,", lab_entity_kind_name(entity->kind), entity->index);
    add_text(out, entity->id);
    add_text(out, entity->name);
    lab_str_add(out, entity->simulated ? "true" : "false");
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        lab_str_add(out, ",");
        add_metric(out, entity, tick, i, first[i]);
    }
    lab_str_add(out, "\n");
    writer->records++;
}
