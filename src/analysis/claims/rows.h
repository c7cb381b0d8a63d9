/*
 * rows.h: a table whose rows are structs, and charts made from it.
 *
 *     struct penalty {
 *         const char *device;
 *         double gflop;
 *         struct lab_claim claim;
 *     };
 *     static const struct lab_field penalty_fields[] = {
 *         LAB_FIELD(struct penalty, device, "device", "Device", LAB_UNIT_TEXT),
 *         LAB_FIELD(struct penalty, gflop, "gflop_per_sample", "GFLOP", LAB_UNIT_NUMBER),
 *         LAB_FIELD(struct penalty, claim, "change", "Throughput", LAB_UNIT_CHANGE),
 *     };
 *     struct lab_rows rows = LAB_ROWS(penalty_fields, penalties, count);
 *     lab_rows_add_table(part, "penalties", "By device", &rows, arena);
 *     lab_rows_add_series(panel, &rows, "gflop_per_sample", "change", "device",
 *                         LAB_CHART_LINE_POINTS, arena);
 *
 * A member is text, a double (NaN = none), an int, a bool, an effect (its interval is shown where
 * the column has `with_interval`), a cell, or a claim. A claim becomes `<key>` with its interval,
 * `<key>_verdict`, `<key>_bound` and `<key>_runs` for programs, and lab_claim_short() for people.
 */
#pragma once

#include "analysis/analysis_build.h"
#include "stats/stats.h"

#include <stddef.h>

enum lab_field_type {
    LAB_FIELD_TEXT,
    LAB_FIELD_DOUBLE,
    LAB_FIELD_INT,
    LAB_FIELD_BOOL,
    LAB_FIELD_EFFECT,
    LAB_FIELD_CLAIM,
    LAB_FIELD_CELL,
};

struct lab_field {
    struct lab_doc_column column;
    size_t offset;
    enum lab_field_type type;
};

extern void *lab_field_nowhere; /* for the type of a member; never read, so not defined */

/* What follows the member initialises its column: key, title, unit, … */
#define LAB_FIELD(record, member, ...)                                                             \
    {                                                                                              \
        .column = {__VA_ARGS__}, .offset = offsetof(record, member),                               \
        .type = LAB_FIELD_TYPE(((record *)lab_field_nowhere)->member)                              \
    }
#define LAB_FIELD_TYPE(member)                                                                     \
    _Generic((member),                                                                             \
             const char *: LAB_FIELD_TEXT,                                                         \
             char *: LAB_FIELD_TEXT,                                                               \
             double: LAB_FIELD_DOUBLE,                                                             \
             int: LAB_FIELD_INT,                                                                   \
             bool: LAB_FIELD_BOOL,                                                                 \
             struct lab_effect: LAB_FIELD_EFFECT,                                                  \
             struct lab_claim: LAB_FIELD_CLAIM,                                                    \
             struct lab_doc_cell: LAB_FIELD_CELL)

struct lab_rows {
    const struct lab_field *fields;
    int field_count;
    const void *items;
    int count;
    size_t size;
};

#define LAB_ROWS(row_fields, row_items, row_count)                                                 \
    ((struct lab_rows){(row_fields), LAB_COUNT_OF(row_fields), (row_items), (row_count),           \
                       sizeof *(row_items)})

/* Without rows the table has no title. */
struct lab_doc_table *lab_rows_add_table(struct lab_analysis_part *part, const char *key,
                                         const char *title, const struct lab_rows *rows,
                                         struct lab_arena *arena);

/* Of an analysis: its parts have these figures. */
#define LAB_PARTS_OF(key, figure_fields)                                                           \
    .part_key = (key), .figures = (figure_fields), .figure_count = LAB_COUNT_OF(figure_fields)
/* An empty result of such an analysis. */
struct lab_analysis_result lab_rows_result(const char *key, const struct lab_field *fields,
                                           int count, struct lab_arena *arena);
/* The figures of a part of such a result. */
#define LAB_PART_FIGURES(part, figure_fields, record, arena)                                       \
    lab_rows_set_figures((part), (figure_fields), LAB_COUNT_OF(figure_fields), (record), (arena))
void lab_rows_set_figures(struct lab_analysis_part *part, const struct lab_field *fields, int count,
                          const void *record, struct lab_arena *arena);
/* Cells that a part needs for so many fields: a claim takes several. */
int lab_rows_column_count(const struct lab_field *fields, int count);

/* All claims in the rows, row by row, but for a subject against itself. */
void lab_rows_add_claims(struct lab_analysis_result *result, const struct lab_rows *rows,
                         struct lab_arena *arena);

/* --- charts; fields are named by their keys --- */

/*
 * A series for each text of `series` (NULL = one, without a title), in the order in which they come
 * first; y with its interval. Shares and changes are drawn in per cent, rates in GB/s. Where x is
 * text, the panel's x axis gets its names. Rows without x or y are left out, and so is what has no
 * row. Returns the first that was added, for a title or a colour of its own, valid until the next
 * call; the last is the panel's last.
 */
struct lab_chart_series *lab_rows_add_series(struct lab_chart_panel *panel,
                                             const struct lab_rows *rows, const char *x,
                                             const char *y, const char *series,
                                             enum lab_chart_mark mark, struct lab_arena *arena);

/* Values by two texts; a claim's cell says "≤ 0.8" where there is no effect, "1.2?" where it is
 * inconclusive. `title` is that of the colours. */
void lab_rows_set_heat(struct lab_chart_panel *panel, const struct lab_rows *rows, const char *x,
                       const char *y, const char *value, const char *title,
                       struct lab_arena *arena);
