/*
 * export_rows.c: tables of runs, iterations and metrics. The columns of the runs' table are fixed
 * (those of results are rows of model/result.h) but for the last ones, which follow from the keys
 * that the runs have.
 */
#include "store/export/export_internal.h"

#include "store/study/results.h"

#include "base/clock.h"
#include "model/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

static struct lab_doc_cell none(void) {
    return lab_cell_text(NULL);
}

/* --- columns of runs --- */

static const struct lab_doc_column begin_columns[] = {
    {"run_id"},     {"state"},      {"valid"},
    {"workload"},   {"label"},      {"gpu_ids"},
    {"devices"},    {"numa_nodes"}, {"series"},
    {"repeat"},     {"attempts"},   {"concurrent"},
    {"iterations"}, {"start_time"}, {"duration_s", .unit = LAB_UNIT_NUMBER},
};
static const struct lab_doc_column end_columns[] = {{"exit_code"}, {"error"}, {"simulated"}};

/* "latency_ms.p95" is the column latency_p95_ms, "gpu.power_w" is power_w. */
static const char *column_name(const char *key, struct lab_arena *arena) {
    static const char unit[] = "_ms";
    const char *point = strchr(key, '.');
    if (lab_str_starts(key, "gpu."))
        key = point + 1;
    else if (point && point - key > 3 && strncmp(point - 3, unit, 3) == 0)
        return lab_arena_printf(arena, "%.*s_%s%s", (int)(point - key) - 3, key, point + 1, unit);
    char *name = lab_arena_strdup(arena, key);
    for (char *at = name; (at = strchr(at, '.'));)
        *at = '_';
    return name;
}

struct runs_table {
    struct lab_arena *arena;
    struct lab_doc_column *columns;
    int count;
    /* the keys that any of the runs has, ascending; NULL at the end */
    const char **test, **options;
};

static void add_column(struct runs_table *table, struct lab_doc_column column) {
    LAB_ADD(table->columns, table->count, table->arena) = column;
}

static const char **add_keys(struct runs_table *table, const char *prefix,
                             const struct lab_value *set) {
    size_t count = (size_t)set->count;
    const char **keys = lab_arena_copy(table->arena, set->keys, count, sizeof *keys);
    qsort(keys, count, sizeof *keys, lab_str_compare);
    for (const char **key = keys; *key; key++)
        add_column(table,
                   (struct lab_doc_column){lab_arena_printf(table->arena, "%s.%s", prefix, *key)});
    return keys;
}

static void note_keys(struct lab_value *set, const char *text, struct lab_arena *arena) {
    LAB_AUTO(arena, scratch);
    const struct lab_value *map = lab_result_json(text, &scratch);
    for (int i = 0; map->type == LAB_VALUE_MAP && i < map->count; i++)
        lab_value_set(arena, set, map->keys[i], set); /* only its keys matter */
}

static bool is_shown(const struct lab_result_row *row) {
    return row->shown & LAB_RESULT_CSV;
}

static void make_columns(struct runs_table *table, const struct lab_run *runs, int count) {
    struct lab_value *test = lab_value_map(table->arena), *options = lab_value_map(table->arena);
    for (int i = 0; i < count; i++) {
        note_keys(test, runs[i].test, table->arena);
        note_keys(options, runs[i].options, table->arena);
    }
    for (int i = 0; i < COUNT_OF(begin_columns); i++)
        add_column(table, begin_columns[i]);
    for (const struct lab_result_row *const *row = lab_result_order(); *row; row++)
        if (is_shown(*row))
            add_column(table, (struct lab_doc_column){column_name((*row)->key, table->arena),
                                                      .unit = (*row)->type == LAB_RESULT_NUMBER
                                                                  ? LAB_UNIT_NUMBER
                                                                  : LAB_UNIT_TEXT});
    for (int i = 0; i < COUNT_OF(end_columns); i++)
        add_column(table, end_columns[i]);
    table->test = add_keys(table, "test", test);
    table->options = add_keys(table, "option", options);
}

/* --- runs --- */

static const char *join_ranks(const struct lab_run *run, const char *column,
                              struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < run->rank_count; i++) {
        const struct lab_run_rank *rank = &run->ranks[i];
        lab_str_add(&text, i ? ";" : "");
        if (lab_str_equal(column, "devices"))
            lab_str_add(&text, rank->device);
        else
            lab_str_printf(&text, "%d",
                           lab_str_equal(column, "gpu_ids") ? rank->gpu_id : rank->numa_node);
    }
    return lab_arena_strdup(arena, text.text);
}

static const char *join_series(const struct lab_run *run, struct lab_arena *arena) {
    LAB_AUTO(str, names);
    const struct lab_value *list = lab_result_json(run->series, arena);
    for (int i = 0; list->type == LAB_VALUE_LIST && i < list->count; i++)
        if (list->items[i]->type == LAB_VALUE_STRING)
            lab_str_printf(&names, "%s%s", names.length ? ";" : "", list->items[i]->string);
    return lab_arena_strdup(arena, names.text);
}

static struct lab_doc_cell result_cell(const struct lab_result *result,
                                       const struct lab_result_row *row) {
    const void *at = lab_result_get(result, row);
    if (!lab_result_has(result, row) || row->type == LAB_RESULT_LIST)
        return none();
    switch (row->type) {
    case LAB_RESULT_NUMBER:
        return lab_cell_figure(*(const double *)at);
    case LAB_RESULT_COUNT:
        return lab_cell_exact(*(const int64_t *)at, 0);
    case LAB_RESULT_FLAG:
        return lab_cell_flag(*(const signed char *)at);
    default:
        return lab_cell_text(*(const char *const *)at);
    }
}

static void add_values(struct lab_doc_stream *stream, const char *const *keys, const char *text,
                       struct lab_arena *arena) {
    const struct lab_value *map = lab_result_json(text, arena);
    for (; *keys; keys++) {
        struct lab_doc_cell cell = none();
        cell.data = lab_value_get(map, *keys);
        lab_doc_stream_add(stream, cell);
    }
}

static void add_plan(struct lab_doc_stream *stream, const struct lab_run *run,
                     struct lab_arena *arena) {
    bool done = run->state == LAB_RUN_DONE, ended = done || run->state == LAB_RUN_FAILED;
    LAB_AUTO(str, time);
    if (run->epoch)
        lab_results_add_time(run->start_wall_ns, &time);
    const struct lab_doc_cell cells[] = {
        lab_cell_text(run->id),
        lab_cell_text(lab_run_state_name(run->state)),
        ended ? lab_cell_flag(done && run->valid) : none(),
        lab_cell_text(run->workload),
        lab_cell_text(run->label),
        lab_cell_text(join_ranks(run, "gpu_ids", arena)),
        lab_cell_text(join_ranks(run, "devices", arena)),
        lab_cell_text(join_ranks(run, "numa_nodes", arena)),
        lab_cell_text(join_series(run, arena)),
        lab_cell_exact(run->repeat, 0),
        lab_cell_exact(run->attempts, 0),
        lab_cell_flag(run->concurrent),
        lab_cell_exact(run->iterations, 0),
        run->epoch ? lab_cell_text(time.text) : none(),
        lab_cell_figure(ended ? (double)(run->end_ns - run->start_ns) / LAB_NS_PER_S : NAN),
    };
    _Static_assert(COUNT_OF(cells) == COUNT_OF(begin_columns), "a cell for each column");
    for (int i = 0; i < COUNT_OF(cells); i++)
        lab_doc_stream_add(stream, cells[i]);
}

static void add_run(struct lab_doc_stream *stream, const struct lab_run *run,
                    const struct runs_table *table) {
    LAB_AUTO(arena, arena);
    bool ended = run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
    add_plan(stream, run, &arena);
    for (const struct lab_result_row *const *row = lab_result_order(); *row; row++)
        if (is_shown(*row))
            lab_doc_stream_add(stream, result_cell(lab_run_result(run), *row));
    lab_doc_stream_add(stream, ended ? lab_cell_exact(run->exit_code, 0) : none());
    lab_doc_stream_add(stream, lab_cell_text(run->error));
    lab_doc_stream_add(stream, lab_cell_flag(lab_results_is_simulated(run)));
    add_values(stream, table->test, run->test, &arena);
    add_values(stream, table->options, run->options, &arena);
}

int lab_export_runs(const struct lab_run *runs, int count, const struct lab_doc_format *format,
                    struct lab_doc_sink *sink) {
    LAB_AUTO(arena, arena);
    struct runs_table table = {.arena = &arena};
    struct lab_doc_stream stream;
    make_columns(&table, runs, count);
    lab_doc_stream_begin(&stream, format, table.columns, table.count, &sink->text);
    for (int i = 0; i < count; i++) {
        add_run(&stream, &runs[i], &table);
        if (lab_doc_sink_pass(sink) < 0)
            return -1;
    }
    return lab_doc_sink_flush(sink);
}

/* --- iterations --- */

#define MS_DECIMALS 6 /* of milliseconds: a nanosecond is the last of them */

const struct lab_doc_column lab_export_iteration_columns[] = {
    {"run_id"}, {"rank"},       {"iteration"}, {"start_ns"},  {"end_ns"},
    {"h2d_ms"}, {"compute_ms"}, {"d2h_ms"},    {"latency_ms"}};

void lab_export_times(const struct lab_iteration *iteration,
                      struct lab_doc_cell ret_cells[LAB_EXPORT_TIMES]) {
    *ret_cells++ = lab_cell_exact(iteration->start_ns, 0);
    *ret_cells++ = lab_cell_exact(iteration->end_ns, 0);
    for (int i = 0; i < LAB_STAGE_COUNT; i++) {
        struct lab_span stage = iteration->stages[i];
        *ret_cells++ = stage.start_ns || stage.end_ns
                           ? lab_cell_exact(stage.end_ns - stage.start_ns, MS_DECIMALS)
                           : none();
    }
    *ret_cells = lab_cell_exact(iteration->end_ns - iteration->start_ns, MS_DECIMALS);
}

struct iterations {
    struct lab_doc_stream stream;
    struct lab_doc_sink *sink;
    const char *run_id;
    int rank;
};

static int add_chunk(void *state, int64_t first, const struct lab_iteration *items, size_t count) {
    struct iterations *table = state;
    struct lab_doc_cell times[LAB_EXPORT_TIMES];
    for (size_t i = 0; i < count; i++) {
        lab_doc_stream_add(&table->stream, lab_cell_text(table->run_id));
        lab_doc_stream_add(&table->stream, lab_cell_exact(table->rank, 0));
        lab_doc_stream_add(&table->stream, lab_cell_exact(first + (int64_t)i, 0));
        lab_export_times(&items[i], times);
        for (int t = 0; t < LAB_EXPORT_TIMES; t++)
            lab_doc_stream_add(&table->stream, times[t]);
        if (lab_doc_sink_pass(table->sink) < 0)
            return -1;
    }
    return 0;
}

int lab_export_iterations(struct lab_store *store, const struct lab_run *runs, int count,
                          const struct lab_doc_format *format, struct lab_doc_sink *sink,
                          struct lab_err *err) {
    struct iterations table = {.sink = sink};
    lab_doc_stream_begin(&table.stream, format, lab_export_iteration_columns,
                         COUNT_OF(lab_export_iteration_columns), &sink->text);
    for (int i = 0; i < count; i++) {
        table.run_id = runs[i].id;
        for (table.rank = 0; table.rank < runs[i].rank_count; table.rank++)
            if (lab_store_each_chunk(store, runs[i].number, table.rank, add_chunk, &table, err) < 0)
                return -1;
    }
    return lab_doc_sink_flush(sink);
}

/* --- metrics --- */

static const struct lab_doc_column metric_columns[] = {{"run_id"},
                                                       {"rank"},
                                                       {"name"},
                                                       {"unit"},
                                                       {"value", .unit = LAB_UNIT_NUMBER},
                                                       {"time_ns"},
                                                       {"step", .unit = LAB_UNIT_NUMBER},
                                                       {"time_s", .unit = LAB_UNIT_NUMBER}};

static struct lab_doc_cell step_cell(double step) {
    bool whole = step == floor(step) && fabs(step) < 0x1p53;
    return isnan(step) ? none() : whole ? lab_cell_exact((int64_t)step, 0) : lab_cell_figure(step);
}

static void add_metric(struct lab_doc_stream *stream, const struct lab_run *run,
                       const struct lab_store_metric *metric) {
    lab_doc_stream_add(stream, lab_cell_text(run->id));
    lab_doc_stream_add(stream, metric->rank >= 0 ? lab_cell_exact(metric->rank, 0) : none());
    lab_doc_stream_add(stream, lab_cell_text(metric->name));
    lab_doc_stream_add(stream, lab_cell_text(metric->unit));
    lab_doc_stream_add(stream, isnan(metric->value) ? lab_cell_text("nan")
                                                    : lab_cell_figure(metric->value));
    lab_doc_stream_add(stream, metric->time_ns < 0 ? none() : lab_cell_exact(metric->time_ns, 0));
    lab_doc_stream_add(stream, step_cell(metric->step));
    lab_doc_stream_add(
        stream, metric->time_ns < 0 ? none() : lab_cell_exact(metric->time_ns - run->start_ns, 9));
}

struct metrics {
    struct lab_doc_stream stream;
    struct lab_doc_sink *sink;
    const struct lab_run *run;
};

static int pass_metric(void *state, const struct lab_store_metric *metric) {
    struct metrics *table = state;
    add_metric(&table->stream, table->run, metric);
    return lab_doc_sink_pass(table->sink);
}

int lab_export_metrics(struct lab_store *store, const struct lab_run *runs, int count,
                       const struct lab_doc_format *format, struct lab_doc_sink *sink,
                       struct lab_err *err) {
    struct metrics table = {.sink = sink};
    lab_doc_stream_begin(&table.stream, format, metric_columns, COUNT_OF(metric_columns),
                         &sink->text);
    for (int i = 0; i < count; i++) {
        table.run = &runs[i];
        if (lab_store_each_metric(store, runs[i].number, pass_metric, &table, err) < 0)
            return -1;
    }
    return lab_doc_sink_flush(sink);
}
