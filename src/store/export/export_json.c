/*
 * export_json.c: a study as one JSON document. It is written as it goes, run by run, since the
 * iterations of a long study don't fit into a tree.
 */
#include "store/export/export_internal.h"

#include "store/study/results.h"

#include "base/json.h"
#include "base/mem.h"
#include "model/result.h"

#include <math.h>

struct document {
    struct lab_doc_tree tree;
    struct lab_doc_sink *sink;
    struct lab_store *store;
    bool iterations;
};

static const char *hex(uint64_t value, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%016llx", (unsigned long long)value);
}

static struct lab_value *study_value(const struct lab_store_study *study, struct lab_arena *arena) {
    LAB_AUTO(str, created);
    lab_results_add_time(study->created_wall_ns, &created);
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", study->name);
    lab_value_set_string(arena, map, "experiment", study->option);
    lab_value_set_string(arena, map, "identity", hex(study->identity, arena));
    lab_value_set_string(arena, map, "machine_identity", hex(study->machine_identity, arena));
    lab_value_set_int(arena, map, "seed", (int64_t)study->seed);
    lab_value_set_string(arena, map, "created", created.text);
    lab_value_set_string(arena, map, "gpulab", study->version);
    lab_value_set(arena, map, "words", lab_result_json(study->words, arena));
    lab_value_set_string(arena, map, "config", study->config);
    return map;
}

/* JSON has no word for what isn't finite, and null is unknown. */
static struct lab_doc_cell value_cell(double value) {
    return isfinite(value) ? lab_cell_figure(value)
                           : lab_cell_text(isnan(value) ? "nan"
                                           : value > 0  ? "inf"
                                                        : "-inf");
}

static int add_metrics(struct document *document, const struct lab_run *run, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_doc_tree *tree = &document->tree;
    struct lab_store_metric *metrics;
    int count = 0;
    if (lab_store_metrics(document->store, run->number, &arena, &metrics, &count, err) < 0)
        return -1;
    lab_doc_tree_begin(tree, "metrics", '[', LAB_DOC_BROKEN);
    for (int i = 0; i < count; i++) {
        const struct lab_store_metric *metric = &metrics[i];
        lab_doc_tree_begin(tree, NULL, '{', LAB_DOC_INLINE);
        lab_doc_tree_cell(tree, "name", lab_cell_text(metric->name));
        lab_doc_tree_cell(tree, "unit", lab_cell_text(metric->unit));
        lab_doc_tree_cell(tree, "rank",
                          metric->rank >= 0 ? lab_cell_exact(metric->rank, 0)
                                            : lab_cell_text(NULL));
        lab_doc_tree_cell(tree, "value", value_cell(metric->value));
        lab_doc_tree_cell(tree, "time_ns",
                          metric->time_ns < 0 ? lab_cell_text(NULL)
                                              : lab_cell_exact(metric->time_ns, 0));
        lab_doc_tree_cell(tree, "step", lab_cell_figure(metric->step));
        lab_doc_tree_end(tree);
        if (lab_doc_sink_pass(document->sink) < 0)
            return -1;
    }
    lab_doc_tree_end(tree);
    return 0;
}

static int add_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    (void)first;
    struct document *document = state;
    struct lab_doc_cell times[LAB_EXPORT_TIMES];
    for (size_t i = 0; i < count; i++) {
        lab_export_times(&items[i], times);
        lab_doc_tree_begin(&document->tree, NULL, '[', LAB_DOC_INLINE);
        for (int t = 0; t < LAB_EXPORT_TIMES; t++)
            lab_doc_tree_cell(&document->tree, NULL, times[t]);
        lab_doc_tree_end(&document->tree);
        if (lab_doc_sink_pass(document->sink) < 0)
            return -1;
    }
    return 0;
}

static int add_iterations(struct document *document, const struct lab_run *run,
                          struct lab_err *err) {
    struct lab_doc_tree *tree = &document->tree;
    lab_doc_tree_begin(tree, "iteration_times", '[', LAB_DOC_BROKEN);
    for (int rank = 0; rank < run->rank_count; rank++) {
        lab_doc_tree_begin(tree, NULL, '{', LAB_DOC_INLINE);
        lab_doc_tree_cell(tree, "rank", lab_cell_exact(rank, 0));
        lab_doc_tree_begin(tree, "columns", '[', LAB_DOC_INLINE);
        for (int i = 0; i < LAB_EXPORT_TIMES; i++)
            lab_doc_tree_cell(
                tree, NULL,
                lab_cell_text(lab_export_iteration_columns[LAB_EXPORT_TIMES_FROM + i].key));
        lab_doc_tree_end(tree);
        lab_doc_tree_begin(tree, "rows", '[', LAB_DOC_FILLED);
        if (lab_store_each_chunk(document->store, run->number, rank, add_chunk, document, err) < 0)
            return -1;
        lab_doc_tree_end(tree);
        lab_doc_tree_end(tree);
    }
    lab_doc_tree_end(tree);
    return 0;
}

static int add_run(struct document *document, const struct lab_run *run, struct lab_err *err) {
    lab_doc_tree_begin(&document->tree, NULL, '{', LAB_DOC_BROKEN);
    lab_results_add_run(run, &document->tree);
    if (add_metrics(document, run, err) < 0 ||
        (document->iterations && add_iterations(document, run, err) < 0))
        return -1;
    lab_doc_tree_end(&document->tree);
    return lab_doc_sink_pass(document->sink);
}

int lab_export_json(struct lab_store *store, const struct lab_run *runs, int count, bool iterations,
                    struct lab_doc_sink *sink, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct document document = {{.out = &sink->text}, sink, store, iterations};
    struct lab_doc_tree *tree = &document.tree;
    struct lab_store_study study;
    if (lab_store_study(store, &arena, &study, err) < 0)
        return -1;
    lab_doc_tree_begin(tree, NULL, '{', LAB_DOC_BROKEN);
    lab_doc_tree_cell(tree, "schema", lab_cell_exact(LAB_JSON_SCHEMA, 0));
    lab_doc_tree_value(tree, "study", study_value(&study, &arena));
    lab_doc_tree_value(tree, "machine", lab_result_json(study.machine, &arena));
    lab_doc_tree_value(tree, "summary", lab_results_summary(study.name, runs, count, &arena));
    lab_doc_tree_begin(tree, "runs", '[', LAB_DOC_BROKEN);
    for (int i = 0; i < count; i++)
        if (add_run(&document, &runs[i], err) < 0)
            return -1;
    lab_doc_tree_end(tree);
    lab_doc_tree_end(tree);
    return lab_doc_sink_flush(sink);
}
