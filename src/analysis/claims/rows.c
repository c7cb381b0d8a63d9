/* rows.c: cells and charts from members of structs. */
#include "analysis/claims/rows.h"

#include "base/list.h"
#include "base/str.h"

#include <assert.h>
#include <math.h>

/* --- members --- */

static const void *at(const struct lab_rows *rows, int row, const struct lab_field *field) {
    return (const char *)rows->items + (size_t)row * rows->size + field->offset;
}

/* A key that no field has is the program's own mistake. */
static const struct lab_field *find_field(const struct lab_rows *rows, const char *key) {
    const struct lab_field *field = rows->fields;
    while (!lab_str_equal(field->column.key, key)) {
        assert(field < rows->fields + rows->field_count - 1);
        field++;
    }
    return field;
}

static struct lab_doc_cell text_cell(const char *text) {
    return text ? lab_cell_text(text) : lab_cell_figure(NAN);
}

/* A claim's is its effect. */
static struct lab_doc_cell read_cell(const void *member, enum lab_field_type type) {
    const struct lab_effect *effect = member;
    const struct lab_claim *claim = member;
    switch (type) {
    case LAB_FIELD_TEXT:
        return text_cell(*(const char *const *)member);
    case LAB_FIELD_DOUBLE:
        return lab_cell_figure(*(const double *)member);
    case LAB_FIELD_INT:
        return lab_cell_figure(*(const int *)member);
    case LAB_FIELD_BOOL:
        return lab_cell_flag(*(const bool *)member);
    case LAB_FIELD_EFFECT:
        return lab_cell_interval(effect->value, effect->interval.low, effect->interval.high,
                                 effect->interval.confidence);
    case LAB_FIELD_CLAIM:
        return lab_cell_interval(claim->effect, claim->low, claim->high, claim->confidence);
    default:
        return *(const struct lab_doc_cell *)member;
    }
}

/* --- tables --- */

enum { CLAIM_COLUMNS = 5 };

static void claim_columns(const struct lab_doc_column *column, struct lab_doc_column *ret_columns,
                          struct lab_arena *arena) {
    struct lab_doc_column shown = *column, effect = {column->key, NULL, column->unit};
    shown.key = NULL;
    shown.unit = LAB_UNIT_FIGURE;
    effect.with_interval = true;
    ret_columns[0] = effect;
    ret_columns[1] = shown;
    ret_columns[2] = (struct lab_doc_column){lab_arena_printf(arena, "%s_verdict", column->key),
                                             NULL, LAB_UNIT_TEXT};
    ret_columns[3] = (struct lab_doc_column){lab_arena_printf(arena, "%s_bound", column->key), NULL,
                                             LAB_UNIT_SHARE};
    ret_columns[4] = (struct lab_doc_column){lab_arena_printf(arena, "%s_runs", column->key), NULL,
                                             LAB_UNIT_COUNT};
}

int lab_rows_column_count(const struct lab_field *fields, int count) {
    int columns = 0;
    for (int i = 0; i < count; i++)
        columns += fields[i].type == LAB_FIELD_CLAIM ? CLAIM_COLUMNS : 1;
    return columns;
}

static const struct lab_doc_column *make_columns(const struct lab_field *fields, int count,
                                                 struct lab_arena *arena) {
    struct lab_doc_column *columns =
        lab_arena_alloc(arena, (size_t)lab_rows_column_count(fields, count), sizeof *columns);
    for (int i = 0, c = 0; i < count; i++) {
        if (fields[i].type == LAB_FIELD_CLAIM) {
            claim_columns(&fields[i].column, columns + c, arena);
            c += CLAIM_COLUMNS;
        } else {
            columns[c++] = fields[i].column;
        }
    }
    return columns;
}

static void set_cells(const struct lab_field *fields, int count, const void *record,
                      struct lab_doc_cell *ret_cells, struct lab_arena *arena) {
    for (int i = 0, c = 0; i < count; i++) {
        const void *member = (const char *)record + fields[i].offset;
        ret_cells[c++] = read_cell(member, fields[i].type);
        if (fields[i].type != LAB_FIELD_CLAIM)
            continue;
        const struct lab_claim *claim = member;
        ret_cells[c++] = lab_cell_text(lab_claim_short(claim, arena));
        ret_cells[c++] = lab_cell_text(lab_claim_verdict_name(claim->verdict));
        ret_cells[c++] = lab_cell_figure(claim->bound);
        ret_cells[c++] = lab_cell_figure(claim->n);
    }
}

struct lab_doc_table *lab_rows_add_table(struct lab_analysis_part *part, const char *key,
                                         const char *title, const struct lab_rows *rows,
                                         struct lab_arena *arena) {
    int columns = lab_rows_column_count(rows->fields, rows->field_count);
    struct lab_doc_table *table = lab_analysis_add_table(
        part, key, rows->count > 0 ? title : NULL,
        make_columns(rows->fields, rows->field_count, arena), columns, arena);
    struct lab_doc_cell *cells =
        lab_arena_alloc(arena, (size_t)columns * (size_t)rows->count + 1, sizeof *cells);
    for (int r = 0; r < rows->count; r++)
        set_cells(rows->fields, rows->field_count,
                  (const char *)rows->items + (size_t)r * rows->size, cells + (size_t)r * columns,
                  arena);
    table->cells = cells;
    table->row_count = rows->count;
    return table;
}

struct lab_analysis_result lab_rows_result(const char *key, const struct lab_field *fields,
                                           int count, struct lab_arena *arena) {
    return (struct lab_analysis_result){.arena = arena,
                                        .part_key = key,
                                        .columns = make_columns(fields, count, arena),
                                        .column_count = lab_rows_column_count(fields, count)};
}

void lab_rows_set_figures(struct lab_analysis_part *part, const struct lab_field *fields, int count,
                          const void *record, struct lab_arena *arena) {
    assert(lab_rows_column_count(fields, count) <= part->cell_count);
    set_cells(fields, count, record, part->cells, arena);
}

void lab_rows_add_claims(struct lab_analysis_result *result, const struct lab_rows *rows,
                         struct lab_arena *arena) {
    for (int r = 0; r < rows->count; r++)
        for (int i = 0; i < rows->field_count; i++) {
            const struct lab_claim *claim = at(rows, r, &rows->fields[i]);
            if (rows->fields[i].type == LAB_FIELD_CLAIM &&
                !(claim->subject[0] && lab_str_equal(claim->subject, claim->reference)))
                lab_analysis_add_claim(result, claim, arena);
        }
}

/* --- charts --- */

struct axis { /* of a chart: numbers, or texts in the order in which they come first */
    const struct lab_rows *rows;
    const struct lab_field *field;
    double scale;
    const char **names;
    int name_count;
};

static const char *text_at(const struct axis *axis, int row) {
    return *(const char *const *)at(axis->rows, row, axis->field);
}

static struct axis make_axis(const struct lab_rows *rows, const char *key,
                             struct lab_arena *arena) {
    struct axis axis = {.rows = rows, .field = find_field(rows, key), .scale = 1};
    enum lab_unit unit = axis.field->column.unit;
    if (unit == LAB_UNIT_CHANGE || unit == LAB_UNIT_SHARE)
        axis.scale = 100;
    if (unit == LAB_UNIT_RATE)
        axis.scale = 1e-9;
    for (int r = 0; axis.field->type == LAB_FIELD_TEXT && r < rows->count; r++) {
        const char *text = text_at(&axis, r);
        if (text && lab_list_find_text(axis.names, axis.name_count, text) < 0)
            LAB_ADD(axis.names, axis.name_count, arena) = text;
    }
    return axis;
}

/* A text's is the place of its name; NaN = the row has none. */
static struct lab_doc_cell place(const struct axis *axis, int row) {
    if (axis->field->type == LAB_FIELD_TEXT) {
        int index = lab_list_find_text(axis->names, axis->name_count, text_at(axis, row));
        return lab_cell_figure(index < 0 ? (double)NAN : index);
    }
    struct lab_doc_cell cell = read_cell(at(axis->rows, row, axis->field), axis->field->type);
    cell.value *= axis->scale;
    cell.low *= axis->scale;
    cell.high *= axis->scale;
    return cell;
}

struct lab_chart_series *lab_rows_add_series(struct lab_chart_panel *panel,
                                             const struct lab_rows *rows, const char *x,
                                             const char *y, const char *series,
                                             enum lab_chart_mark mark, struct lab_arena *arena) {
    int before = panel->series_count;
    struct axis across = make_axis(rows, x, arena), up = make_axis(rows, y, arena), groups = {0};
    if (series)
        groups = make_axis(rows, series, arena);
    for (int g = 0; g < (series ? groups.name_count : 1); g++) {
        struct lab_series points = {.arena = arena};
        for (int r = 0; r < rows->count; r++) {
            struct lab_doc_cell at_x = place(&across, r), at_y = place(&up, r);
            if ((!series || place(&groups, r).value == g) && !isnan(at_x.value) &&
                !isnan(at_y.value))
                lab_series_add(&points, at_x.value, at_y.value, at_y.low, at_y.high);
        }
        if (points.count > 0)
            lab_panel_add_series(
                panel, lab_series_chart(&points, series ? groups.names[g] : NULL, mark, -1), arena);
    }
    if (across.names) {
        panel->x.names = across.names;
        panel->x.name_count = across.name_count;
    }
    return panel->series_count > before ? (struct lab_chart_series *)&panel->series[before] : NULL;
}

static const char *heat_text(const struct axis *axis, int row, struct lab_arena *arena) {
    struct lab_doc_cell cell = place(axis, row);
    const struct lab_claim *claim = at(axis->rows, row, axis->field);
    bool claimed = axis->field->type == LAB_FIELD_CLAIM;
    if (isnan(cell.value)) /* the reference itself is named, what wasn't tested is empty */
        return claimed && claim->subject && lab_str_equal(claim->subject, claim->reference)
                   ? claim->subject
                   : "";
    if (claimed && claim->verdict == LAB_CLAIM_NO)
        return lab_arena_printf(arena, "≤%.1f", ceil(1000 * claim->bound - 1e-9) / 10);
    const char *sign = cell.value <= -0.05 ? "−" : claimed && cell.value >= 0.05 ? "+" : "";
    return lab_arena_printf(arena, "%s%.1f%s", sign, fabs(cell.value),
                            claimed && claim->verdict == LAB_CLAIM_INCONCLUSIVE ? "?" : "");
}

/* "−12.1% [−13.0, −11.2], 5 runs" */
static const char *heat_tip(const struct axis *axis, int row, const char *text,
                            struct lab_arena *arena) {
    const struct lab_claim *claim = at(axis->rows, row, axis->field);
    if (axis->field->type != LAB_FIELD_CLAIM || isnan(claim->effect))
        return text;
    return lab_arena_printf(arena, "%s, %d run%s", lab_claim_effect(claim, arena), claim->n,
                            claim->n == 1 ? "" : "s");
}

void lab_rows_set_heat(struct lab_chart_panel *panel, const struct lab_rows *rows, const char *x,
                       const char *y, const char *value, const char *title,
                       struct lab_arena *arena) {
    struct axis across = make_axis(rows, x, arena), up = make_axis(rows, y, arena),
                heights = make_axis(rows, value, arena);
    size_t cells = (size_t)across.name_count * (size_t)up.name_count;
    double *values = lab_arena_alloc(arena, 3 * cells + 1, sizeof *values);
    double *low = values + cells, *high = low + cells;
    const char **texts = lab_arena_alloc(arena, 2 * cells + 1, sizeof *texts),
               **tips = texts + cells;
    bool *open = lab_arena_alloc(arena, cells + 1, sizeof *open);
    struct lab_chart_heat *heat = lab_arena_alloc(arena, 1, sizeof *heat);
    for (size_t i = 0; i < cells; i++) {
        values[i] = low[i] = high[i] = NAN;
        texts[i] = tips[i] = "";
    }
    for (int r = 0; r < rows->count; r++) {
        struct lab_doc_cell column = place(&across, r), row = place(&up, r);
        if (isnan(column.value) || isnan(row.value))
            continue;
        size_t cell = (size_t)row.value * (size_t)across.name_count + (size_t)column.value;
        struct lab_doc_cell height = place(&heights, r);
        values[cell] = height.value;
        low[cell] = height.low;
        high[cell] = height.high;
        open[cell] = heights.field->type == LAB_FIELD_CLAIM &&
                     ((const struct lab_claim *)at(rows, r, heights.field))->verdict ==
                         LAB_CLAIM_INCONCLUSIVE;
        texts[cell] = heat_text(&heights, r, arena);
        tips[cell] = heat_tip(&heights, r, texts[cell], arena);
    }
    *heat = (struct lab_chart_heat){values, low, high, open, texts, tips, title};
    panel->heat = heat;
    panel->x.names = across.names;
    panel->x.name_count = across.name_count;
    panel->y.names = up.names;
    panel->y.name_count = up.name_count;
}
