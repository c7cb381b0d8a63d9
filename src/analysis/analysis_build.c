/* analysis_build.c: what grows is twice as large each time, in the arena. */
#include "analysis/analysis_build.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- the whole --- */

const char *lab_analysis_prefix(const struct lab_analysis_input *input,
                                const struct lab_study_table *study, struct lab_arena *arena) {
    return input->study_count > 1 ? lab_arena_printf(arena, "%s: ", study->name) : "";
}

const char *lab_analysis_suffix(int number, struct lab_arena *arena) {
    return number > 0 ? lab_arena_printf(arena, "_%d", number + 1) : "";
}

static void add_note(const char *const **notes, const char *note, struct lab_arena *arena) {
    size_t count = 0;
    while (*notes && (*notes)[count])
        count++;
    const char **longer = lab_arena_alloc(arena, count + 2, sizeof *longer);
    for (size_t i = 0; i < count; i++)
        longer[i] = (*notes)[i];
    longer[count] = note;
    *notes = longer;
}

const char *lab_analysis_untested(const char *reason, struct lab_arena *arena) {
    return reason ? lab_arena_printf(arena, "Not tested: %s", reason) : NULL;
}

void lab_analysis_note(const char *const **notes, struct lab_arena *arena, const char *format,
                       ...) {
    char *note;
    LAB_WITH_ARGS(format, note = lab_arena_vprintf(arena, format, args));
    add_note(notes, note, arena);
}

void lab_analysis_add_notes(const char *const **notes, const char *const *others,
                            const char *prefix, struct lab_arena *arena) {
    for (; others && *others; others++)
        lab_analysis_note(notes, arena, "%s%s", prefix, *others);
}

/* --- claims --- */

void lab_analysis_add_claim(struct lab_analysis_result *result, const struct lab_claim *claim,
                            struct lab_arena *arena) {
    result->claims =
        lab_arena_grow(arena, result->claims, result->claim_count, sizeof *result->claims);
    result->claims[result->claim_count++] = *claim;
}

/* --- parts --- */

struct lab_analysis_part *lab_analysis_add_part(struct lab_analysis_result *result,
                                                const char *name, struct lab_arena *arena) {
    result->parts = lab_arena_grow(arena, result->parts, result->part_count, sizeof *result->parts);
    struct lab_analysis_part *part = &result->parts[result->part_count++];
    *part = (struct lab_analysis_part){
        .name = name,
        .cells = lab_arena_alloc(arena, (size_t)result->column_count, sizeof *part->cells),
        .cell_count = result->column_count};
    for (int i = 0; i < result->column_count; i++)
        part->cells[i] = lab_cell_figure(NAN);
    return part;
}

/* --- tables --- */

struct lab_doc_table *lab_analysis_add_table(struct lab_analysis_part *part, const char *key,
                                             const char *title,
                                             const struct lab_doc_column *columns, int column_count,
                                             struct lab_arena *arena) {
    part->tables = lab_arena_grow(arena, part->tables, part->table_count, sizeof *part->tables);
    struct lab_doc_table *table = &part->tables[part->table_count++];
    *table = (struct lab_doc_table){
        .key = key, .title = title, .columns = columns, .column_count = column_count};
    return table;
}

struct lab_doc_cell *lab_analysis_add_row(struct lab_doc_table *table,
                                          const struct lab_doc_cell *cells, size_t count,
                                          struct lab_arena *arena) {
    assert(count == (size_t)table->column_count);
    size_t size = count * sizeof *cells;
    struct lab_doc_cell *rows = lab_arena_grow(arena, table->cells, table->row_count, size);
    table->cells = rows;
    return memcpy(rows + (size_t)table->row_count++ * count, cells, size);
}

struct lab_doc_column *lab_analysis_own_columns(struct lab_doc_table *table,
                                                struct lab_arena *arena) {
    struct lab_doc_column *own =
        lab_arena_copy(arena, table->columns, (size_t)table->column_count, sizeof *table->columns);
    table->columns = own;
    return own;
}

void lab_analysis_hide_columns(struct lab_doc_table *table, struct lab_arena *arena) {
    struct lab_doc_column *columns = lab_analysis_own_columns(table, arena);
    for (int c = 0; c < table->column_count; c++) {
        bool any = false;
        for (int r = 0; r < table->row_count && !any; r++) {
            const struct lab_doc_cell *cell = &table->cells[(ptrdiff_t)r * table->column_count + c];
            any = lab_unit_is_words(columns[c].unit) ? cell->text != NULL : !isnan(cell->value);
        }
        if (!any && columns[c].title) {
            columns[c].hidden = columns[c].title;
            columns[c].title = NULL;
        }
    }
}

void lab_analysis_hide_empty(struct lab_doc_table *table) {
    if (table->row_count == 0)
        table->title = NULL;
}

void lab_analysis_drop_empty(struct lab_analysis_part *part) {
    part->table_count -= part->tables[part->table_count - 1].row_count == 0;
}

/* --- charts --- */

struct lab_chart *lab_analysis_add_chart(struct lab_analysis_result *result, struct lab_chart chart,
                                         struct lab_arena *arena) {
    struct lab_chart *charts =
        lab_arena_grow(arena, result->charts, result->chart_count, sizeof *charts);
    result->charts = charts;
    charts[result->chart_count] = chart;
    return &charts[result->chart_count++];
}

struct lab_chart_axis lab_axis(const char *title) {
    return (struct lab_chart_axis){.title = title, .low = NAN, .high = NAN};
}

struct lab_chart_axis lab_axis_log(const char *title) {
    return (struct lab_chart_axis){.title = title, .log = true, .low = NAN, .high = NAN};
}

struct lab_chart_axis lab_axis_from(const char *title, double low) {
    return (struct lab_chart_axis){.title = title, .low = low, .high = NAN};
}

struct lab_chart_axis lab_axis_names(const char *title, const char *const *names, int count) {
    return (struct lab_chart_axis){
        .title = title, .low = NAN, .high = NAN, .names = names, .name_count = count};
}

struct lab_chart_panel *lab_chart_add_panel(struct lab_chart *chart, const char *title,
                                            struct lab_chart_axis x, struct lab_chart_axis y,
                                            struct lab_arena *arena) {
    struct lab_chart_panel *panels =
        lab_arena_grow(arena, chart->panels, chart->panel_count, sizeof *panels);
    chart->panels = panels;
    panels[chart->panel_count] = (struct lab_chart_panel){.title = title, .x = x, .y = y};
    return &panels[chart->panel_count++];
}

struct lab_chart_series *lab_panel_add_series(struct lab_chart_panel *panel,
                                              struct lab_chart_series made,
                                              struct lab_arena *arena) {
    struct lab_chart_series *series =
        lab_arena_grow(arena, panel->series, panel->series_count, sizeof *series);
    panel->series = series;
    series[panel->series_count] = made;
    return &series[panel->series_count++];
}

/* --- series --- */

#define POINTS 16 /* that there is room for at first */

static double *grow(const double *values, const struct lab_series *series) {
    double *larger = lab_arena_alloc(series->arena, series->room, sizeof *larger);
    if (series->count > 0)
        memcpy(larger, values, series->count * sizeof *larger);
    return larger;
}

static size_t add(struct lab_series *series, double x, double y, bool with_interval) {
    if (series->count == series->room) {
        series->room = series->room ? 2 * series->room : POINTS;
        series->x = grow(series->x, series);
        series->y = grow(series->y, series);
        series->low = with_interval ? grow(series->low, series) : NULL;
        series->high = with_interval ? grow(series->high, series) : NULL;
    }
    series->x[series->count] = x;
    series->y[series->count] = y;
    return series->count++;
}

void lab_series_add_point(struct lab_series *series, double x, double y) {
    add(series, x, y, false);
}

void lab_series_add(struct lab_series *series, double x, double y, double low, double high) {
    size_t at = add(series, x, y, true);
    series->low[at] = low;
    series->high[at] = high;
}

struct lab_chart_series lab_series_chart(const struct lab_series *series, const char *title,
                                         enum lab_chart_mark mark, int colour) {
    return (struct lab_chart_series){.title = title,
                                     .mark = mark,
                                     .x = series->x,
                                     .y = series->y,
                                     .low = series->low,
                                     .high = series->high,
                                     .count = series->count,
                                     .colour = colour,
                                     .valued = mark == LAB_CHART_BARS};
}

struct lab_chart_series lab_series_level(const char *title, double from, double until, double at,
                                         int colour, struct lab_arena *arena) {
    double *x = lab_arena_alloc(arena, 4, sizeof *x), *y = x + 2;
    x[0] = from;
    x[1] = until;
    y[0] = y[1] = at;
    return (struct lab_chart_series){
        .title = title, .mark = LAB_CHART_DASHES, .x = x, .y = y, .count = 2, .colour = colour};
}

/* --- units --- */

static const struct smaller { /* than the unit of a y axis, where all values are small */
    const char *unit, *smaller;
    double times, least; /* of the largest value: less is drawn in the smaller unit */
} smaller_units[] = {
    {"[GiB]", "[MiB]", 1024, 0.5}, {"[GB/s]", "[MB/s]", 1000, 0.1}, {"[ms]", "[µs]", 1000, 1}};

static bool has_unit(const struct lab_chart_panel *panel, const char *unit) {
    return panel->y.title && lab_str_ends(panel->y.title, unit);
}

static double largest(const double *values, size_t count) {
    double most = 0;
    for (size_t i = 0; values && i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

static double largest_of_chart(const struct lab_chart *chart, const char *unit) {
    double most = 0;
    for (int p = 0; p < chart->panel_count; p++)
        for (int s = 0; s < chart->panels[p].series_count; s++) {
            const struct lab_chart_series *series = &chart->panels[p].series[s];
            const double *values[] = {series->y, series->high, series->most};
            for (int v = 0; has_unit(&chart->panels[p], unit) && v < LAB_COUNT_OF(values); v++)
                most = fmax(most, largest(values[v], series->count));
        }
    return most;
}

static const double *times(const double *values, size_t count, double by, struct lab_arena *arena) {
    double *made = values ? lab_arena_copy(arena, values, count, sizeof *made) : NULL;
    for (size_t i = 0; made && i < count; i++)
        made[i] *= by;
    return made;
}

static void use_smaller(struct lab_chart_panel *panel, const struct smaller *unit,
                        struct lab_arena *arena) {
    struct lab_chart_series *all =
        lab_arena_copy(arena, panel->series, (size_t)panel->series_count, sizeof *all);
    panel->series = all;
    for (int s = 0; s < panel->series_count; s++) {
        const double **values[] = {&all[s].y, &all[s].low, &all[s].high, &all[s].least,
                                   &all[s].most};
        for (int v = 0; v < LAB_COUNT_OF(values); v++)
            *values[v] = times(*values[v], all[s].count, unit->times, arena);
    }
    int kept = (int)(strlen(panel->y.title) - strlen(unit->unit));
    panel->y.title = lab_arena_printf(arena, "%.*s%s", kept, panel->y.title, unit->smaller);
    panel->y.low *= unit->times;
    panel->y.high *= unit->times;
}

void lab_chart_fit_units(struct lab_chart *chart, struct lab_arena *arena) {
    for (int u = 0; u < LAB_COUNT_OF(smaller_units); u++) {
        const struct smaller *unit = &smaller_units[u];
        double most = largest_of_chart(chart, unit->unit);
        if (!(most > 0 && most < unit->least))
            continue;
        struct lab_chart_panel *panels =
            lab_arena_copy(arena, chart->panels, (size_t)chart->panel_count, sizeof *panels);
        chart->panels = panels;
        for (int p = 0; p < chart->panel_count; p++)
            if (has_unit(&panels[p], unit->unit))
                use_smaller(&panels[p], unit, arena);
    }
}

bool lab_chart_has_data(const struct lab_chart *chart) {
    for (int p = 0; p < chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &chart->panels[p];
        if (panel->heat && panel->x.name_count * panel->y.name_count > 0)
            return true;
        for (int s = 0; s < panel->series_count; s++)
            if (panel->series[s].count > 0)
                return true;
    }
    return false;
}

const char *lab_analysis_rate_unit(const struct lab_study_table *study) {
    const char *unit = NULL;
    for (int i = 0; i < study->run_count; i++) {
        const char *own = study->runs[i].used ? study->runs[i].run->rate_unit : NULL;
        if (own && *own && unit && strcmp(own, unit) != 0)
            return "rate";
        unit = own && *own ? own : unit;
    }
    return unit ? unit : "rate";
}

void lab_analysis_title_column(struct lab_doc_table *table, const char *from, const char *to,
                               struct lab_arena *arena) {
    struct lab_doc_column *columns = table ? lab_analysis_own_columns(table, arena) : NULL;
    for (int c = 0; columns && c < table->column_count; c++)
        if (lab_str_equal(columns[c].title, from))
            columns[c].title = lab_arena_strdup(arena, to);
}
