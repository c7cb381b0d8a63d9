/* analysis.c: what an analysis found, in a document: the one way for text, page and programs. */
#include "report/analysis.h"

#include <ctype.h>
#include <math.h>

#define LABEL_COLUMNS 19

const char *lab_report_part_title(const struct lab_analysis_result *result) {
    static const char *const titles[][2] = {{"models", "Model"},  {"devices", "Device"},
                                            {"phases", "Phase"},  {"metrics", "Metric"},
                                            {"pipelines", "Run"}, {"recordings", "Recording"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        if (lab_str_equal(result->part_key, titles[i][0]))
            return titles[i][1];
    return "Name";
}

/* A column of nothing but references compares nothing. */
static bool says_something(const struct lab_doc_cell *cell) {
    return cell->text ? !lab_str_equal(cell->text, LAB_CLAIM_REFERENCE) : !isnan(cell->value);
}

bool lab_report_is_compared(const struct lab_analysis_result *result, int column) {
    for (int i = 0; i < result->part_count && result->columns[column].brief; i++)
        if (says_something(&result->parts[i].cells[column]))
            return true;
    return false;
}

/* All parts, by what they are compared by. */
static void add_comparison(struct lab_doc *doc, const struct lab_analysis_result *result) {
    struct lab_doc_column *columns =
        lab_arena_alloc(lab_doc_arena(doc), (size_t)result->column_count + 1, sizeof *columns);
    int count = 0;
    columns[count++].title = lab_report_part_title(result);
    for (int c = 0; c < result->column_count; c++)
        if (lab_report_is_compared(result, c)) {
            columns[count] = result->columns[c];
            columns[count].title = result->columns[c].brief;
            columns[count++].align = LAB_ALIGN_RIGHT;
        }
    if (count == 1)
        return;
    lab_doc_gap(doc);
    lab_doc_rows(doc, NULL, NULL, columns, count)->shortened = true;
    for (int i = 0; i < result->part_count; i++) {
        lab_doc_add(doc, lab_cell_text(result->parts[i].name));
        for (int c = 0; c < result->column_count; c++)
            if (lab_report_is_compared(result, c))
                lab_doc_add(doc, result->parts[i].cells[c]);
    }
}

static void add_part(struct lab_doc *doc, const struct lab_analysis_result *result,
                     const struct lab_analysis_part *part) {
    struct lab_arena *arena = lab_doc_arena(doc);
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "name", part->name);
    lab_value_set_string(arena, map, "about", part->about);
    lab_doc_begin(doc, (struct lab_doc_section){.title = part->name,
                                                .about = part->about,
                                                .simulated = result->simulated});
    lab_doc_data(doc, NULL, map);
    /* the only part says what the whole does */
    lab_doc_only(doc, result->part_count > 1 ? LAB_DOC_ALL : LAB_DOC_PAPER | LAB_DOC_PROGRAMS);
    lab_doc_text_as(doc, "answer", LAB_DOC_PLAIN, part->answer);
    lab_doc_only(doc, LAB_DOC_ALL);
    lab_doc_gap(doc);
    lab_doc_figures(doc, "Figure", result->columns, result->column_count, part->cells);
    for (int i = 0; i < part->table_count; i++) {
        struct lab_doc_table *table = lab_arena_alloc(arena, 1, sizeof *table);
        *table = part->tables[i];
        table->shortened = true;
        lab_doc_gap(doc);
        lab_doc_table(doc, table);
    }
    lab_doc_gap(doc);
    lab_doc_notes(doc, "notes", part->notes, false);
    lab_doc_end(doc);
}

void lab_report_add_analysis(struct lab_doc *doc, const struct lab_report_analysis *analysis) {
    struct lab_arena *arena = lab_doc_arena(doc);
    const struct lab_analysis_result *result = analysis->result;
    struct lab_value *simulated = lab_value_bool(arena, result->simulated);
    lab_doc_set_labels(doc, LABEL_COLUMNS);
    lab_doc_data(doc, "analysis", lab_value_string(arena, analysis->name));
    lab_doc_text_as(doc, "answer", LAB_DOC_SAYS, result->answer);
    lab_doc_data(doc, "simulated", simulated);
    struct lab_value *claims = lab_value_list(arena);
    for (int i = 0; i < result->claim_count; i++)
        lab_value_append(arena, claims, lab_claim_value(&result->claims[i], arena));
    if (result->claim_count > 0)
        lab_doc_data(doc, "claims", claims);
    for (int i = 0; result->faults && result->faults[i]; i++)
        lab_doc_text(doc, LAB_DOC_NOTE, "%s", result->faults[i]);
    lab_doc_only(doc, LAB_DOC_TERMINAL);
    if (result->simulated)
        lab_doc_text(doc, LAB_DOC_SAYS, "These are simulated devices.");
    lab_doc_only(doc, LAB_DOC_ALL);
    if (result->part_count > 1)
        add_comparison(doc, result);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = result->part_key,
                                                  .elsewhere = lab_arena_printf(
                                                      arena, "gpulab analyze %s %s", analysis->name,
                                                      analysis->source ? analysis->source : "")});
    for (int i = 0; i < result->part_count; i++)
        add_part(doc, result, &result->parts[i]);
    lab_doc_end(doc);
    lab_doc_notes(doc, "notes", result->notes, true);
}

struct lab_doc *lab_report_analysis(const char *name, const struct lab_analysis_result *result,
                                    struct lab_arena *arena) {
    char *title = lab_arena_strdup(arena, name);
    title[0] = (char)toupper((unsigned char)title[0]);
    struct lab_doc *doc = lab_doc_open(title, arena);
    lab_doc_set_simulated(doc, result->simulated);
    lab_report_add_analysis(doc, &(struct lab_report_analysis){.name = name, .result = result});
    return doc;
}
