/*
 * study_metrics.c: what programs of the user's own said of themselves: the last value of each
 * metric of each run. That is what such a study is run for; how fast they were is only half of the
 * answer.
 */
#include "base/list.h"
#include "report/study/study_axes.h"
#include "report/study/study_internal.h"

#define ROWS_SHOWN 24

/* --- a sheet: a row for each run that said something, a column for each name --- */

struct sheet {
    const char **names, **runs; /* as they come */
    int name_count, run_count;
    const char **cells; /* run × name; NULL = it didn't say */
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
    LAB_AUTO(str, text);
    lab_str_add_digits(&text, metric->value, 6);
    lab_str_printf(&text, "%s%s", *metric->unit ? " " : "", metric->unit);
    return lab_arena_strdup(arena, text.text);
}

static void open_sheet(const struct lab_study_info *study, struct sheet *sheet,
                       struct lab_arena *arena) {
    *sheet = (struct sheet){0};
    size_t most = (size_t)study->metric_count + 1;
    sheet->names = lab_arena_alloc(arena, most, sizeof *sheet->names);
    sheet->runs = lab_arena_alloc(arena, most, sizeof *sheet->runs);
    int *columns = lab_arena_alloc(arena, most, sizeof *columns);
    for (int i = 0; i < study->metric_count; i++) {
        const char *name = name_of(&study->metrics[i], arena);
        columns[i] = find_name(sheet, name);
        if (columns[i] == sheet->name_count)
            sheet->names[sheet->name_count++] = name;
        if (i == 0 || study->metrics[i].run != study->metrics[i - 1].run)
            sheet->runs[sheet->run_count++] = study->metrics[i].run;
    }
    size_t cells = (size_t)sheet->run_count * (size_t)sheet->name_count + 1;
    sheet->cells = lab_arena_alloc(arena, cells, sizeof *sheet->cells);
    for (int i = 0, row = -1; i < study->metric_count; i++) {
        row += i == 0 || study->metrics[i].run != study->metrics[i - 1].run;
        sheet->cells[row * sheet->name_count + columns[i]] = value_text(&study->metrics[i], arena);
    }
}

/* --- as a table --- */

/* Programs give any name; its underscores stay what they are wherever they stand. */
static const char *escape(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, escaped);
    for (; *text; text++) {
        lab_str_add(&escaped, strchr("\\`*_<>[]|~&#", *text) ? "\\" : "");
        lab_str_add_bytes(&escaped, text, 1);
    }
    return lab_arena_strdup(arena, escaped.text);
}

static struct lab_doc_table *add_sheet(struct lab_doc *doc, const struct lab_study_info *study,
                                       int rows_most, bool marked) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct sheet sheet;
    open_sheet(study, &sheet, arena);
    struct lab_doc_column *columns =
        lab_arena_alloc(arena, (size_t)sheet.name_count + 1, sizeof *columns);
    columns[0] = (struct lab_doc_column){.title = "Run"};
    for (int k = 0; k < sheet.name_count; k++)
        columns[k + 1] = (struct lab_doc_column){.title = marked ? escape(sheet.names[k], arena)
                                                                 : sheet.names[k],
                                                 .unit = LAB_UNIT_FIGURE,
                                                 .marked = marked,
                                                 .yields = k};
    struct lab_doc_table *table = lab_doc_rows(doc, NULL, NULL, columns, sheet.name_count + 1);
    table->row_total = sheet.run_count;
    for (int i = 0; i < sheet.run_count && i < rows_most; i++) {
        lab_doc_add(doc, lab_cell_text(sheet.runs[i]));
        for (int k = 0; k < sheet.name_count; k++) {
            const char *text = sheet.cells[i * sheet.name_count + k];
            text = text ? text : "–";
            lab_doc_add(doc, lab_cell_text(marked ? escape(text, arena) : text));
        }
    }
    return table;
}

/* The study with its runs' ids as names: "lr=0.03, optimizer=adam, run 2". */
static struct lab_study_info name_runs(const struct lab_study_info *study,
                                       struct lab_arena *arena) {
    size_t count = (size_t)study->run_count;
    const struct lab_run **runs = lab_arena_alloc(arena, count + 1, sizeof *runs);
    struct lab_study_info named = *study;
    struct lab_study_info_metric *metrics =
        lab_arena_copy(arena, study->metrics, (size_t)study->metric_count, sizeof *metrics);
    bool repeated = false;
    for (size_t i = 0; i < count; i++) {
        runs[i] = &study->runs[i];
        repeated |= runs[i]->repeat > 0;
    }
    struct study_axes axes = study_axes_make(runs, study->run_count, arena);
    for (int i = 0; i < study->metric_count; i++) {
        const char *id = study->metrics[i].run;
        int found = LAB_FIND(study->runs, study->run_count, id, id);
        LAB_AUTO(str, name);
        if (i > 0 && id == study->metrics[i - 1].run) {
            metrics[i].run = metrics[i - 1].run;
            continue;
        }
        if (found < 0)
            continue;
        study_axes_add_name(&axes, found, &name);
        if (repeated)
            lab_str_printf(&name, ", run %d", study->runs[found].repeat + 1);
        metrics[i].run = lab_arena_strdup(arena, name.text);
    }
    named.metrics = metrics;
    return named;
}

void study_add_last_metrics(struct lab_doc *doc, const struct lab_study_info *study,
                            int rows_most) {
    if (!study->metric_count)
        return;
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_PLAIN, "Last reported values:");
    struct lab_study_info named = name_runs(study, lab_doc_arena(doc));
    add_sheet(doc, &named, rows_most, false)->more = "There is more of it in report/report.md.";
}

void study_add_metrics(struct lab_doc *doc, const struct lab_study_info *study) {
    add_sheet(doc, study, ROWS_SHOWN, true);
    lab_doc_marked(doc, LAB_DOC_FAINT,
                   "The last value of each; all of them: `gpulab export %s --what metrics`.",
                   study->folder);
}
