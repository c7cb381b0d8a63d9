/*
 * monitor_file_csv.c: tables. Of every metric: a line for each entity and tick. The columns are the
 * same on every machine, so that a line can be read without knowing what was there; of a metric
 * that has instances (cores, nodes) the field is a list with semicolons, the instance's number
 * being its place.
 */
#include "store/foreign/monitor_file_writer.h"

#include <math.h>

void lab_monitor_begin_csv(struct lab_monitor_writer *writer) {
    static const char *const first[] = {"timestamp", "elapsed_s", "kind",     "index",
                                        "id",        "name",      "simulated"};
    enum { FIRST = sizeof first / sizeof *first };
    struct lab_doc_column *columns =
        lab_arena_alloc(&writer->arena, FIRST + LAB_METRIC_COUNT, sizeof *columns);
    for (int i = 0; i < FIRST; i++)
        columns[i].key = first[i];
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        lab_str_clear(&writer->field);
        lab_monitor_add_column(&writer->field, (enum lab_metric_id)i);
        columns[FIRST + i].key = lab_arena_strdup(&writer->arena, writer->field.text);
    }
    lab_doc_stream_begin(&writer->rows, lab_doc_row_format_find("csv"), columns,
                         FIRST + LAB_METRIC_COUNT, writer->out);
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
    struct lab_doc_stream *rows = &writer->rows;
    const struct lab_entity *entity = &source->entity;
    int first[LAB_METRIC_COUNT];
    for (int i = 0; i < LAB_METRIC_COUNT; i++)
        first[i] = entity->column_count;
    for (int i = entity->column_count - 1; i >= 0; i--)
        if (entity->columns[i].metric >= 0 && entity->columns[i].metric < LAB_METRIC_COUNT)
            first[entity->columns[i].metric] = i;
    lab_str_clear(&writer->field);
    lab_monitor_add_time(&writer->field, lab_monitor_wall_ns(writer, tick->time_ns));
    lab_doc_stream_add(rows, lab_cell_text(writer->field.text));
    lab_doc_stream_add(rows, lab_monitor_seconds(tick->time_ns - writer->begin_ns));
    lab_doc_stream_add(rows, lab_cell_text(lab_entity_kind_name(entity->kind)));
    lab_doc_stream_add(rows, lab_cell_exact(entity->index, 0));
    lab_doc_stream_add(rows, lab_cell_text(entity->id));
    lab_doc_stream_add(rows, lab_cell_text(entity->name));
    lab_doc_stream_add(rows, lab_cell_flag(entity->simulated));
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        lab_str_clear(&writer->field);
        add_metric(&writer->field, entity, tick, i, first[i]);
        lab_doc_stream_add(rows, lab_cell_text(writer->field.text));
    }
    writer->records++;
}

/* --- PCIe rates --- */

void lab_monitor_begin_pcie(struct lab_monitor_writer *writer) {
    static const struct lab_doc_column columns[] = {
        {"timestamp"}, {"gpu"}, {"pcie_rx_mb"}, {"pcie_tx_mb"}, {"simulated"}};
    lab_doc_stream_begin(&writer->rows, lab_doc_row_format_find("csv"), columns,
                         writer->simulated_column ? 5 : 4, writer->out);
}

static void add_rate(struct lab_monitor_writer *writer, const struct lab_monitor_gpu *gpu,
                     enum lab_metric_id rate) {
    lab_str_clear(&writer->field);
    lab_monitor_add_number(&writer->field,
                           gpu->fresh >> rate & 1 ? gpu->held[rate] / 1e6 : (double)NAN, 4, "");
    lab_doc_stream_add(&writer->rows, lab_cell_text(writer->field.text));
}

void lab_monitor_write_pcie(struct lab_monitor_writer *writer, struct lab_monitor_source *source,
                            const struct lab_tick *tick) {
    lab_monitor_gpu_pass(&source->gpu, &source->entity, tick);
    if (!(source->gpu.fresh >> LAB_METRIC_PCIE_RX_RATE & 1) &&
        !(source->gpu.fresh >> LAB_METRIC_PCIE_TX_RATE & 1))
        return;
    lab_doc_stream_add(&writer->rows,
                       lab_monitor_seconds(lab_monitor_wall_ns(writer, tick->time_ns)));
    lab_doc_stream_add(&writer->rows, lab_cell_exact(source->entity.index, 0));
    add_rate(writer, &source->gpu, LAB_METRIC_PCIE_RX_RATE);
    add_rate(writer, &source->gpu, LAB_METRIC_PCIE_TX_RATE);
    if (writer->simulated_column)
        lab_doc_stream_add(&writer->rows, lab_cell_flag(source->entity.simulated));
    writer->records++;
}
