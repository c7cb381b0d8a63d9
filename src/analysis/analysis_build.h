/*
 * analysis_build.h: a result that grows in the arena as an analysis finds things.
 *
 *     struct lab_analysis_part *part = lab_analysis_add_part(result, study->name, arena);
 *     struct lab_doc_table *table = LAB_TABLE(part, "runs", "Runs", run_columns, arena);
 *     for (…)
 *         LAB_ROW(table, arena, lab_cell_text(name), lab_cell_figure(time_s));
 *
 * Cells stand in the order of the columns. What an `add` returns holds until the next of its kind
 * is added to the same.
 */
#pragma once

#include "analysis/analysis.h"

/* --- the whole --- */

#define LAB_COUNT_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* "study: " where the input has several, else "". */
const char *lab_analysis_prefix(const struct lab_analysis_input *input,
                                const struct lab_study_table *study, struct lab_arena *arena);
/* Of names of charts, from 0: "", "_2", "_3". */
const char *lab_analysis_suffix(int number, struct lab_arena *arena);

/* "Not tested: no run is done." of a reason; NULL of none. */
const char *lab_analysis_untested(const char *reason, struct lab_arena *arena);

/* Sentences, NULL-terminated. */
void lab_analysis_note(const char *const **notes, struct lab_arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* All of others, each behind a prefix. */
void lab_analysis_add_notes(const char *const **notes, const char *const *others,
                            const char *prefix, struct lab_arena *arena);

/* --- parts --- */

/* All of its cells are absent. */
struct lab_analysis_part *lab_analysis_add_part(struct lab_analysis_result *result,
                                                const char *name, struct lab_arena *arena);

#define LAB_CELLS(...)      ((const struct lab_doc_cell[]){__VA_ARGS__})
#define LAB_CELL_COUNT(...) (sizeof(LAB_CELLS(__VA_ARGS__)) / sizeof(struct lab_doc_cell))

/* --- claims --- */

void lab_analysis_add_claim(struct lab_analysis_result *result, const struct lab_claim *claim,
                            struct lab_arena *arena);

/* --- tables of a part --- */

#define LAB_TABLE(part, key, title, columns, arena)                                                \
    lab_analysis_add_table((part), (key), (title), (columns), LAB_COUNT_OF(columns), (arena))
struct lab_doc_table *lab_analysis_add_table(struct lab_analysis_part *part, const char *key,
                                             const char *title,
                                             const struct lab_doc_column *columns, int column_count,
                                             struct lab_arena *arena);

/* A cell for each column. Returns the row. */
#define LAB_ROW(table, arena, ...)                                                                 \
    lab_analysis_add_row((table), LAB_CELLS(__VA_ARGS__), LAB_CELL_COUNT(__VA_ARGS__), (arena))
struct lab_doc_cell *lab_analysis_add_row(struct lab_doc_table *table,
                                          const struct lab_doc_cell *cells, size_t count,
                                          struct lab_arena *arena);

/* Columns of its own, to change. */
struct lab_doc_column *lab_analysis_own_columns(struct lab_doc_table *table,
                                                struct lab_arena *arena);
/* After the rows: columns without anything in them lose their titles, so that the others have
 * room. */
void lab_analysis_hide_columns(struct lab_doc_table *table, struct lab_arena *arena);
/* The unit that rates of all runs have, such as "samples/s"; "rate" where they differ. */
const char *lab_analysis_rate_unit(const struct lab_study_table *study);
/* Names the column that had the title `from`. */
void lab_analysis_title_column(struct lab_doc_table *table, const char *from, const char *to,
                               struct lab_arena *arena);
/* After the rows: without one, a table has no title, or isn't there. */
void lab_analysis_hide_empty(struct lab_doc_table *table);
void lab_analysis_drop_empty(struct lab_analysis_part *part);

/* --- charts --- */

/* A copy: its panels go on growing by lab_chart_add_panel. */
struct lab_chart *lab_analysis_add_chart(struct lab_analysis_result *result, struct lab_chart chart,
                                         struct lab_arena *arena);
/* Whether there is anything to draw: a value in some panel. */
bool lab_chart_has_data(const struct lab_chart *chart);

struct lab_chart_axis lab_axis(const char *title);
struct lab_chart_axis lab_axis_log(const char *title);
struct lab_chart_axis lab_axis_from(const char *title, double low);
struct lab_chart_axis lab_axis_names(const char *title, const char *const *names, int count);

struct lab_chart_panel *lab_chart_add_panel(struct lab_chart *chart, const char *title,
                                            struct lab_chart_axis x, struct lab_chart_axis y,
                                            struct lab_arena *arena);
/* Returns it. */
struct lab_chart_series *lab_panel_add_series(struct lab_chart_panel *panel,
                                              struct lab_chart_series series,
                                              struct lab_arena *arena);

/* Axes in GiB become MiB, and ms µs, where all values are small: "0.02" has too few digits. */
void lab_chart_fit_units(struct lab_chart *chart, struct lab_arena *arena);

/* --- series: points with their intervals, given one by one --- */

struct lab_series { /* {.arena = …} = empty */
    struct lab_arena *arena;
    double *x, *y, *low, *high;
    size_t count, room;
};

/* Without an interval; all of a series, or none. */
void lab_series_add_point(struct lab_series *series, double x, double y);
/* Ends of NaN: no interval. */
void lab_series_add(struct lab_series *series, double x, double y, double low, double high);
struct lab_chart_series lab_series_chart(const struct lab_series *series, const char *title,
                                         enum lab_chart_mark mark, int colour);

/* A dashed level: a limit, or what others are compared with. */
struct lab_chart_series lab_series_level(const char *title, double from, double until, double at,
                                         int colour, struct lab_arena *arena);
