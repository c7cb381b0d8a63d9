/*
 * study_metrics.c: what programs of the user's own said of themselves: the last value of each
 * metric of each run. That is what such a study is run for; how fast they were is only half of the
 * answer.
 */
#include "report/study/study_internal.h"

#define ROWS_SHOWN 24

/* --- a sheet: a row for each run that said something, a column for each name --- */

struct sheet {
    const char **names, **runs; /* as they come */
    int name_count, run_count;
    const char **cells; /* run × name; NULL = it didn't say */
    struct lab_arena arena;
};

static const char *name_of(const struct lab_study_info_metric *metric, struct lab_arena *arena) {
    return metric->rank > 0 ? lab_arena_printf(arena, "%s (rank %d)", metric->name, metric->rank)
                            : metric->name;
}

static int find_name(const struct sheet *sheet, const char *name) {
    int at = 0;
    while (at < sheet->name_count && strcmp(sheet->names[at], name) != 0)
        at++;
    return at;
}

static const char *value_text(const struct lab_study_info_metric *metric, struct lab_arena *arena) {
    return lab_arena_printf(arena, "%.6g%s%s", metric->value, *metric->unit ? " " : "",
                            metric->unit);
}

static void open_sheet(const struct lab_study_info *study, struct sheet *sheet) {
    *sheet = (struct sheet){0};
    lab_arena_init(&sheet->arena);
    size_t most = (size_t)study->metric_count + 1;
    sheet->names = lab_arena_alloc(&sheet->arena, most, sizeof *sheet->names);
    sheet->runs = lab_arena_alloc(&sheet->arena, most, sizeof *sheet->runs);
    int *columns = lab_arena_alloc(&sheet->arena, most, sizeof *columns);
    for (int i = 0; i < study->metric_count; i++) {
        const char *name = name_of(&study->metrics[i], &sheet->arena);
        columns[i] = find_name(sheet, name);
        if (columns[i] == sheet->name_count)
            sheet->names[sheet->name_count++] = name;
        if (i == 0 || study->metrics[i].run != study->metrics[i - 1].run)
            sheet->runs[sheet->run_count++] = study->metrics[i].run;
    }
    size_t cells = (size_t)sheet->run_count * (size_t)sheet->name_count + 1;
    sheet->cells = lab_arena_alloc(&sheet->arena, cells, sizeof *sheet->cells);
    for (int i = 0, row = -1; i < study->metric_count; i++) {
        row += i == 0 || study->metrics[i].run != study->metrics[i - 1].run;
        sheet->cells[row * sheet->name_count + columns[i]] =
            value_text(&study->metrics[i], &sheet->arena);
    }
}

static const char *cell(const struct sheet *sheet, int row, int column) {
    const char *text = sheet->cells[row * sheet->name_count + column];
    return text ? text : "–";
}

/* --- in a terminal --- */

static int width_of(const struct sheet *sheet, int column, int rows) {
    int width = lab_str_columns(column < 0 ? "Run" : sheet->names[column]);
    for (int i = 0; i < rows; i++) {
        int columns = lab_str_columns(column < 0 ? sheet->runs[i] : cell(sheet, i, column));
        width = columns > width ? columns : width;
    }
    return 2 + width;
}

void study_write_metrics(const struct lab_study_info *study, struct lab_style style,
                         struct lab_str *out) {
    if (!study->metric_count)
        return;
    struct sheet sheet;
    open_sheet(study, &sheet);
    int rows = sheet.run_count < ROWS_SHOWN ? sheet.run_count : ROWS_SHOWN, shown = 0;
    for (int width = width_of(&sheet, -1, rows); shown < sheet.name_count; shown++) {
        width += width_of(&sheet, shown, rows);
        if (width > style.columns && shown > 0)
            break;
    }
    struct lab_table *table = lab_table_open();
    lab_table_column(table, "Run", LAB_ALIGN_LEFT);
    for (int k = 0; k < shown; k++)
        lab_table_column(table, sheet.names[k], LAB_ALIGN_RIGHT);
    for (int i = 0; i < rows; i++) {
        lab_table_cell(table, "%s", sheet.runs[i]);
        for (int k = 0; k < shown; k++)
            lab_table_cell(table, "%s", cell(&sheet, i, k));
    }
    lab_str_add(out, "\n");
    study_write_text("What they said last:", style, out);
    lab_table_write(table, style, out);
    lab_table_close(table);
    if (shown < sheet.name_count || rows < sheet.run_count)
        study_write_text("There is more of it in report/report.md.", style, out);
    lab_arena_release(&sheet.arena);
}

/* --- on paper --- */

/* Programs give any name; its underscores stay what they are wherever they stand. */
static const char *escape(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, escaped);
    for (; *text; text++) {
        lab_str_add(&escaped, strchr("\\`*_<>[]|~&#", *text) ? "\\" : "");
        lab_str_add_bytes(&escaped, text, 1);
    }
    return lab_arena_strdup(arena, escaped.text);
}

void study_add_metrics(struct lab_doc *doc, const struct lab_study_info *study,
                       struct lab_arena *arena) {
    struct sheet sheet;
    open_sheet(study, &sheet);
    struct lab_doc_column *columns =
        lab_arena_alloc(arena, (size_t)sheet.name_count + 1, sizeof *columns);
    columns[0] = (struct lab_doc_column){.title = "Run", .code = true};
    for (int k = 0; k < sheet.name_count; k++)
        columns[k + 1] = (struct lab_doc_column){.title = escape(sheet.names[k], arena),
                                                 .unit = LAB_UNIT_FIGURE,
                                                 .marked = true};
    lab_doc_rows(doc, NULL, NULL, columns, sheet.name_count + 1);
    for (int i = 0; i < sheet.run_count; i++) {
        lab_doc_cell(doc, "%s", sheet.runs[i]);
        for (int k = 0; k < sheet.name_count; k++)
            lab_doc_add(doc, lab_cell_text(escape(cell(&sheet, i, k), arena)));
    }
    lab_doc_marked(doc, LAB_DOC_PLAIN,
                   "The last value of each; `gpulab export %s --what metrics` writes all of them.",
                   study->folder);
    lab_arena_release(&sheet.arena);
}
