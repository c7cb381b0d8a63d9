/*
 * figures.h: all figures that analyses made in a test program, compared with tests/golden at its end.
 * The tests themselves look at what they are about; what else changed is seen here. Where words
 * alone were meant to change, GOLDEN_UPDATE=1 takes them; a figure that changes has a reason. Files of
 * up to 300 lines have the figures themselves. Of programs that make more (up to 2,000 lines) they
 * have a digest a result, since nobody would read 14,000 lines; so have all words. Where a file
 * differs, the figures and words of the first result that does are printed.
 */
#pragma once

#include "analysis/analysis.h"
#include "base/hash.h"
#include "golden.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

static inline void figures_add_number(double value, struct lab_str *out) {
    if (!isnan(value)) /* what cancels out leaves a rounding that compilers differ in */
        lab_str_printf(out, " %.5g", fabs(value) < 1e-9 ? 0 : value);
}

/* A text counts by its first word. */
static inline void figures_add_cell(const struct lab_doc_cell *cell,
                                    const struct lab_doc_column *column, struct lab_str *out) {
    if (lab_unit_is_words(column->unit) && cell->text)
        lab_str_printf(out, " %.*s", (int)strcspn(cell->text, " \n"), cell->text);
    figures_add_number(cell->value, out);
    figures_add_number(cell->low, out);
    figures_add_number(cell->high, out);
    lab_str_add(out, ";");
}

static inline void figures_add_cells(const struct lab_doc_cell *cells,
                                     const struct lab_doc_column *columns, int count,
                                     struct lab_str *out) {
    for (int i = 0; i < count; i++)
        figures_add_cell(&cells[i], &columns[i], out);
    lab_str_add(out, "\n");
}

static inline void figures_add_charts(const struct lab_analysis_result *result,
                                      struct lab_str *out) {
    for (int c = 0; c < result->chart_count; c++) {
        const struct lab_chart *chart = &result->charts[c];
        lab_str_printf(out, "  chart %s", chart->name);
        for (int p = 0; p < chart->panel_count; p++)
            for (int s = 0; s < chart->panels[p].series_count; s++) {
                const struct lab_chart_series *series = &chart->panels[p].series[s];
                const double *const arrays[] = {series->x, series->y, series->low, series->high};
                lab_str_printf(out, " %zu:", series->count);
                for (int a = 0; a < 4; a++) {
                    double sum = 0;
                    for (size_t i = 0; arrays[a] && i < series->count; i++)
                        sum += isfinite(arrays[a][i]) ? arrays[a][i] * (double)(i + 1) : 0;
                    figures_add_number(sum, out);
                }
            }
        lab_str_add(out, "\n");
    }
}

static inline void figures_add_result(const struct lab_analysis_result *result,
                                      struct lab_str *out) {
    for (int p = 0; p < result->part_count; p++) {
        const struct lab_analysis_part *part = &result->parts[p];
        lab_str_printf(out, "  part %s:", part->name);
        figures_add_cells(part->cells, result->columns, part->cells ? result->column_count : 0,
                          out);
        for (int t = 0; t < part->table_count; t++) {
            const struct lab_doc_table *table = &part->tables[t];
            for (int r = 0; r < table->row_count; r++) {
                lab_str_printf(out, "    %s:", table->key ? table->key : "-");
                figures_add_cells(table->cells + r * table->column_count, table->columns,
                                  table->column_count, out);
            }
        }
    }
    for (int i = 0; i < result->claim_count; i++) {
        const struct lab_claim *claim = &result->claims[i];
        lab_str_printf(out, "  claim %s %s n=%d/%d scope=%d:", claim->kind,
                       lab_claim_verdict_name(claim->verdict), claim->n, claim->needed,
                       claim->scope_count);
        const double figures[] = {claim->effect, claim->low, claim->high, claim->p, claim->bound};
        for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
            figures_add_number(figures[k], out);
        lab_str_add(out, "\n");
    }
    figures_add_charts(result, out);
}

/* --- words --- */

static inline void figures_add_word(const char *word, struct lab_str *out) {
    lab_str_printf(out, "%s|", word ? word : "-");
}

static inline void figures_add_list(const char *const *words, struct lab_str *out) {
    for (int i = 0; words && words[i]; i++)
        figures_add_word(words[i], out);
}

static inline void figures_add_texts(const struct lab_doc_cell *cells, int count,
                                     struct lab_str *out) {
    for (int i = 0; i < count; i++)
        figures_add_word(cells[i].text, out);
}

static inline void figures_add_part_words(const struct lab_analysis_result *result,
                                          const struct lab_analysis_part *part,
                                          struct lab_str *out) {
    const char *const words[] = {part->name, part->about, part->answer, part->untested};
    for (int i = 0; i < 4; i++)
        figures_add_word(words[i], out);
    figures_add_list(part->notes, out);
    figures_add_texts(part->cells, part->cells ? result->column_count : 0, out);
    for (int t = 0; t < part->table_count; t++) {
        const struct lab_doc_table *table = &part->tables[t];
        figures_add_word(table->title, out);
        figures_add_word(table->more, out);
        figures_add_list(table->lines, out);
        for (int c = 0; c < table->column_count; c++)
            figures_add_word(table->columns[c].title, out);
        figures_add_texts(table->cells, table->row_count * table->column_count, out);
    }
}

static inline void figures_add_chart_words(const struct lab_chart *chart, struct lab_str *out) {
    const char *const words[] = {chart->name, chart->title, chart->caption, chart->intervals};
    for (int i = 0; i < 4; i++)
        figures_add_word(words[i], out);
    for (int p = 0; p < chart->panel_count; p++) {
        const struct lab_chart_panel *panel = &chart->panels[p];
        const char *const titles[] = {panel->title, panel->x.title, panel->y.title};
        for (int i = 0; i < 3; i++)
            figures_add_word(titles[i], out);
        for (int i = 0; panel->x.names && i < panel->x.name_count; i++)
            figures_add_word(panel->x.names[i], out);
        for (int i = 0; panel->y.names && i < panel->y.name_count; i++)
            figures_add_word(panel->y.names[i], out);
        for (int s = 0; s < panel->series_count; s++)
            figures_add_word(panel->series[s].title, out);
    }
}

static inline void figures_add_words(const struct lab_analysis_result *result,
                                     struct lab_str *out) {
    LAB_AUTO(arena, arena);
    const char *const words[] = {result->answer,  result->untested, result->command, result->action,
                                 result->further, result->tests,    result->by_point};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        figures_add_word(words[i], out);
    figures_add_list(result->notes, out);
    figures_add_list(result->faults, out);
    for (int p = 0; p < result->part_count; p++)
        figures_add_part_words(result, &result->parts[p], out);
    for (int i = 0; i < result->claim_count; i++)
        figures_add_word(lab_claim_sentence(&result->claims[i], &arena), out);
    for (int c = 0; c < result->chart_count; c++)
        figures_add_chart_words(&result->charts[c], out);
}

/* --- of a program --- */

#define FIGURES_OF_A_TEST   24  /* results: tests that repeat themselves make more */
#define FIGURES_PLAIN_LINES 300 /* beyond that nobody would read them */

static struct lab_str figures_kept;  /* a line for each result, with digests of figures and words */
static struct lab_str figures_plain; /* the same with the figures below it */
static struct lab_str figures_words; /* and with the words, an empty line after each result */

/* What the golden file holds; "" = there is none. */
static inline const char *figures_expected(const char *kept, struct lab_arena *arena) {
    const char *program = program_invocation_short_name + strlen("test_");
    const char *path =
        lab_arena_printf(arena, LAB_TEST_SOURCE_DIR "/tests/golden/figures/%s.txt", program);
    char *text = NULL;
    size_t length = 0;
    const char *update = getenv("GOLDEN_UPDATE");
    if (update && strcmp(update, "1") == 0)
        lab_file_write_atomic(path, kept, strlen(kept), NULL);
    lab_file_read(path, 1 << 20, arena, &text, &length, NULL);
    return text ? text : "";
}

static inline void figures_keep(const char *analysis, const struct lab_analysis_result *result) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    LAB_AUTO(str, words);
    figures_add_result(result, &text);
    figures_add_words(result, &words);
    unsigned figures = (unsigned)(lab_hash_text(LAB_HASH_START, text.text) >> 32);
    const char *line =
        lab_arena_printf(&arena, "%s %s: finding %d, %d parts, %d claims", test_name(), analysis,
                         result->finding, result->part_count, result->claim_count);
    const char *end = lab_arena_printf(&arena, "words %08x\n",
                                       (unsigned)(lab_hash_text(LAB_HASH_START, words.text) >> 32));
    lab_str_printf(&figures_kept, "%s, figures %08x, %s", line, figures, end);
    lab_str_printf(&figures_plain, "%s, %s%s", line, end, text.text);
    lab_str_printf(&figures_words, "%s, %s%s%s\n\n", line, end, text.text, words.text);
}

/* lab_analysis_run, and keeps what comes out. */
static inline int figures_run(const struct lab_analysis *analysis, const void *config,
                              const struct lab_analysis_input *input, struct lab_arena *arena,
                              struct lab_analysis_result *ret_result, struct lab_err *err) {
    static const char *test;
    static int count;
    int result = lab_analysis_run(analysis, config, input, arena, ret_result, err);
    if (!figures_kept.text) {
        lab_str_init(&figures_kept);
        lab_str_init(&figures_plain);
        lab_str_init(&figures_words);
    }
    count = test == test_name() ? count + 1 : 0;
    test = test_name();
    if (result == 0 && count < FIGURES_OF_A_TEST)
        figures_keep(analysis->name, ret_result);
    return result;
}

static inline int figures_lines(const char *text, size_t length, bool of_results) {
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n' && !(of_results && text[i + 1] == ' ');
    return lines;
}

/* The line that differs first, and the result that it belongs to. */
static inline void figures_show(const char *kept, const char *expected) {
    size_t same = 0, begin = 0;
    while (kept[same] && kept[same] == expected[same])
        same++;
    for (size_t i = 0; i < same; i++)
        if (kept[i] == '\n')
            begin = i + 1;
    fprintf(stderr, "differs from tests/golden/figures, line %d:\n- %.*s\n+ %.*s\n",
            figures_lines(kept, same, false) + 1, (int)strcspn(expected + begin, "\n"),
            expected + begin, (int)strcspn(kept + begin, "\n"), kept + begin);
    const char *result = figures_words.text;
    for (int left = figures_lines(kept, same, true); left > 0 && result; left--) {
        const char *next = strstr(result, "\n\n");
        result = next ? next + 2 : NULL;
    }
    const char *end = result ? strstr(result, "\n\n") : NULL;
    if (end)
        fprintf(stderr, "%.*s\n", (int)(end - result), result);
}

__attribute__((destructor)) static void figures_compare(void) {
    LAB_AUTO(arena, arena);
    if (!figures_kept.text)
        return;
    bool plain =
        figures_lines(figures_plain.text, figures_plain.length, false) <= FIGURES_PLAIN_LINES;
    const char *kept = plain ? figures_plain.text : figures_kept.text;
    const char *expected = figures_expected(kept, &arena);
    if (strcmp(expected, kept) != 0) {
        figures_show(kept, expected);
        _exit(1);
    }
    lab_str_release(&figures_kept);
    lab_str_release(&figures_plain);
    lab_str_release(&figures_words);
}
