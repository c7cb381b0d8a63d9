/* page_evidence.c: a section for each analysis: its claim, a chart, a small table; the rest is
 * folded, and whole in CSV files. */
#include "report/page/page_internal.h"

#include "analysis/analysis_build.h"
#include "base/list.h"
#include "doc/stream.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define WIDTH        860 /* of a chart */
#define WIDTH_PHONE  420
#define ROWS_SMALL   12
#define ROWS_SPARED  4 /* no more than these are left out for being too many */
#define ROWS_FOLDED  24
#define CHARTS_MOST  3 /* behind the first, on a page */
#define CHARTS_PAPER 3 /* others are links */
#define NOTES_SCREEN 8
#define NOTES_PAPER  5
#define OPEN_MOST    60 /* inconclusive comparisons that are listed */

/* --- charts --- */

struct drawing {
    const struct lab_chart *chart;
    struct lab_plot_view view;
};

static void draw(const void *state, bool narrow, struct lab_str *out) {
    const struct drawing *drawing = state;
    struct lab_plot_view view = drawing->view;
    view.width = narrow ? WIDTH_PHONE : view.width;
    lab_plot_svg(drawing->chart, view, out);
}

static struct lab_chart name_chart(const struct page_names *of, const struct lab_chart *chart,
                                   struct lab_arena *arena) {
    struct lab_chart named = *chart;
    struct lab_chart_panel *panels =
        lab_arena_copy(arena, chart->panels, (size_t)chart->panel_count, sizeof *panels);
    for (int p = 0; p < chart->panel_count; p++) {
        struct lab_chart_series *series =
            lab_arena_copy(arena, panels[p].series, (size_t)panels[p].series_count, sizeof *series);
        struct lab_chart_axis *axes[] = {&panels[p].x, &panels[p].y};
        for (int a = 0; a < 2; a++) {
            const char **names =
                lab_arena_alloc(arena, (size_t)axes[a]->name_count + 1, sizeof *names);
            for (int i = 0; i < axes[a]->name_count; i++)
                names[i] = page_named(of, axes[a]->names[i], arena);
            axes[a]->names = axes[a]->names ? names : NULL;
        }
        for (int s = 0; s < panels[p].series_count; s++)
            series[s].title = page_named(of, series[s].title, arena);
        panels[p].title = page_named(of, panels[p].title, arena);
        panels[p].series = series;
    }
    named.panels = panels;
    return named;
}

void lab_page_name_charts(const struct lab_page *page, struct lab_chart *charts, int count,
                          struct lab_arena *arena) {
    struct study_digest digest;
    if (!page->study)
        return;
    study_digest_init(&digest, page->study);
    const struct page_names *names = page_names_make(&digest, arena);
    for (int i = 0; i < count; i++)
        charts[i] = name_chart(names, &charts[i], arena);
    study_digest_release(&digest);
}

void page_add_chart(const struct page_build *build, const struct lab_chart *chart, int width,
                    int panels_most) {
    struct drawing *state = lab_arena_alloc(lab_doc_arena(build->doc), 1, sizeof *state);
    bool titled = panels_most == 0; /* else a card has the title */
    struct lab_arena *arena = lab_doc_arena(build->doc);
    struct lab_chart *named = lab_arena_alloc(arena, 1, sizeof *named);
    *named = name_chart(build->names, chart, arena);
    named->simulated = false; /* the page has a banner */
    *state = (struct drawing){
        named, {.width = width, .panels_most = panels_most, .untitled = true, .inlined = true}};
    const char *caption = lab_plot_caption(state->chart, state->view, arena);
    if (panels_most > 0 && chart->panel_count > panels_most)
        caption = lab_arena_printf(arena, "%s%s%d of %d panels: all of them in the evidence.",
                                   caption ? caption : "", caption && *caption ? " " : "",
                                   panels_most, chart->panel_count);
    lab_doc_chart(build->doc, (struct lab_doc_chart){.name = chart->name,
                                                     .title = titled ? chart->title : NULL,
                                                     .caption = caption,
                                                     .draw = draw,
                                                     .state = state});
}

/* On paper a chart is a file. */
static void add_drawn(const struct page_build *build, const struct lab_page_analysis *analysis) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    LAB_AUTO(str, links);
    lab_doc_only(build->doc, LAB_DOC_PAPER);
    for (int i = 0; i < analysis->plot_count; i++) {
        const struct lab_plot *plot = &analysis->plots[i];
        if (!plot->written)
            continue;
        if (i >= CHARTS_PAPER) {
            lab_str_printf(
                &links, "%s[%s](%s.svg)", links.length ? ", " : "",
                lab_doc_escape(plot->chart->title ? plot->chart->title : plot->name, arena),
                plot->name);
            continue;
        }
        struct lab_doc_chart chart = {.name = plot->name, .title = plot->chart->title};
        if (i == 0)
            chart.caption = lab_plot_caption(plot->chart, (struct lab_plot_view){0}, arena);
        lab_doc_chart(build->doc, chart);
    }
    if (links.length)
        lab_doc_marked(build->doc, LAB_DOC_PLAIN, "More charts: %s.", links.text);
}

/* --- tables --- */

static const char *csv_name(const struct lab_page_analysis *analysis, const char *key,
                            struct lab_arena *arena) {
    return key ? lab_arena_printf(arena, "table_%s_%s.csv", analysis->name, key)
               : lab_arena_printf(arena, "table_%s.csv", analysis->name);
}

/* Whether a row's name stands in the answer: it is what the reader looks for. */
static bool is_quoted(const struct lab_doc_table *table, int row, const char *answer) {
    const char *name = table->cells[(ptrdiff_t)row * table->column_count].text;
    return answer && name && *name && strstr(answer, name);
}

/* The first rows, and those that the answer names instead of the last of them: how many. */
static int cut_rows(struct lab_doc_table *table, int most, const char *answer,
                    struct lab_arena *arena) {
    size_t width = (size_t)table->column_count;
    struct lab_doc_cell *cells = lab_arena_alloc(arena, width * (size_t)most + 1, sizeof *cells);
    int quoted = 0, kept = 0;
    for (int r = most; r < table->row_count; r++)
        quoted += is_quoted(table, r, answer);
    quoted = quoted < most / 2 ? quoted : most / 2;
    for (int r = 0; r < table->row_count && kept < most; r++)
        if (kept < most - quoted || is_quoted(table, r, answer))
            memcpy(&cells[width * (size_t)kept++], &table->cells[(size_t)r * width],
                   width * sizeof *cells);
    table->cells = cells;
    table->row_count = table->row_total = kept;
    return quoted;
}

/* Not all rows of a long one; where the others are is said. */
static void add_table(const struct page_build *build, const struct lab_doc_table *table, int most,
                      const char *file, const char *answer) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    struct lab_doc_table *cut = lab_arena_copy(arena, table, 1, sizeof *table);
    cut->key = NULL;
    int quoted = table->row_count > most + ROWS_SPARED ? cut_rows(cut, most, answer, arena) : 0;
    int left = table->row_count - cut->row_count;
    lab_doc_table(build->doc, cut);
    if (left > 0)
        lab_doc_marked(build->doc, LAB_DOC_FAINT, "%s%d more row%s: [%s](%s)",
                       quoted ? "The first rows, then those that the answer names. " : "", left,
                       study_plural(left), file, file);
}

static bool has_figures(const struct lab_analysis_result *result) {
    for (int c = 0; c < result->column_count; c++) {
        const struct lab_doc_cell *cell = &result->parts[0].cells[c];
        bool text = result->columns[c].unit == LAB_UNIT_TEXT;
        if (result->columns[c].title && (text ? cell->text != NULL : !isnan(cell->value)))
            return true;
    }
    return false;
}

void page_add_small_table(const struct page_build *build,
                          const struct lab_page_analysis *analysis) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const struct lab_analysis_result *result = analysis->result;
    const struct lab_doc_table *table = NULL;
    struct lab_doc_table figures = page_figures(result, true, build->names, arena);
    if (result->part_count > 1 && figures.row_count > 0) {
        add_table(build, &figures, ROWS_SMALL, csv_name(analysis, NULL, arena), result->answer);
    } else if ((table = page_merged(result, 0, build->names, arena)) && !table->aside) {
        struct lab_doc_table untitled = *table;
        untitled.title = NULL;
        untitled.untitled = true;
        if (result->by_point)
            page_drop_single(&untitled, result->by_point, arena);
        add_table(build, &untitled, ROWS_SMALL, csv_name(analysis, table->key, arena),
                  result->answer);
    } else if (result->part_count == 1 && result->chart_count == 0 && has_figures(result)) {
        lab_doc_figures(build->doc, "Metric", result->columns, result->column_count,
                        result->parts[0].cells);
    }
    if (table && result->by_point) {
        bool *shown = lab_arena_alloc(arena, (size_t)table->column_count + 1, sizeof *shown);
        for (int c = 0; c < table->column_count; c++)
            shown[c] = table->columns[c].title;
        lab_doc_text(build->doc, LAB_DOC_FAINT, "%s",
                     page_caption(result->by_point, table, shown, arena));
    }
}

/* Whether the first section has that note, too: of the study, it stands once. */
static bool is_noted(const struct lab_page *page, const struct lab_analysis_result *result,
                     const char *note) {
    const struct lab_analysis_result *leading = page_leading(page);
    for (int n = 0; leading && leading != result && leading->notes && leading->notes[n]; n++)
        if (lab_str_equal(leading->notes[n], note))
            return true;
    return false;
}

/* What holds for the whole, then what parts say, each once: not what stands below the table. */
static void add_notes(const struct page_build *build, const struct lab_analysis_result *result,
                      int most) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    struct lab_doc_item *items = lab_arena_alloc(arena, (size_t)most, sizeof *items);
    int count = 0;
    for (int i = -1; i < result->part_count && count < most; i++) {
        const char *const *notes = i < 0 ? result->notes : result->parts[i].notes;
        for (int n = 0; notes && notes[n] && count < most; n++) {
            const char *text = page_named(build->names, notes[n], arena);
            bool said = (result->by_point && strstr(result->by_point, notes[n])) ||
                        (i < 0 && is_noted(build->page, result, notes[n]));
            if (!said && LAB_FIND(items, count, text, text) < 0)
                items[count++].text = text;
        }
    }
    if (count > 0)
        lab_doc_items(build->doc, items, count);
}

/* Whether the first table stands above the fold with all of its rows. */
static bool is_first_whole(const struct page_build *build,
                           const struct lab_analysis_result *result) {
    struct lab_arena *arena = lab_doc_arena(build->doc);
    const struct lab_doc_table *table = page_merged(result, 0, build->names, arena);
    bool figures =
        result->part_count > 1 && page_figures(result, true, build->names, arena).row_count > 0;
    return table && !figures && !table->aside && table->row_count <= ROWS_SMALL + ROWS_SPARED;
}

static void add_fold(const struct page_build *build, const struct lab_page_analysis *analysis) {
    struct lab_doc *doc = build->doc;
    const struct lab_analysis_result *result = analysis->result;
    const struct lab_doc_table *table;
    int first = is_first_whole(build, result);
    if (!page_merged(result, first, build->names, lab_doc_arena(doc)) && result->chart_count < 2)
        return;
    lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_FOLD, .title = "More values"});
    for (int c = 1; c < result->chart_count && c <= CHARTS_MOST; c++)
        if (lab_chart_has_data(&result->charts[c]))
            page_add_chart(build, &result->charts[c], WIDTH, 0);
    for (int t = first; (table = page_merged(result, t, build->names, lab_doc_arena(doc))); t++)
        add_table(build, table, ROWS_FOLDED, csv_name(analysis, table->key, lab_doc_arena(doc)),
                  NULL);
    lab_doc_end(doc);
}

/* --- one analysis --- */

/* What was analysed, where it is the same of all parts: "4 × NVIDIA L40S". */
static void add_about(const struct page_build *build, const struct lab_analysis_result *result) {
    const char *about = result->part_count > 0 ? result->parts[0].about : NULL;
    for (int i = 1; i < result->part_count && about; i++)
        about = lab_str_equal(result->parts[i].about, about) ? about : NULL;
    if (about)
        lab_doc_text(build->doc, LAB_DOC_FAINT, "%s",
                     page_named(build->names, about, lab_doc_arena(build->doc)));
}

/* Whether it claims something for certain from runs that other processes disturbed. */
static bool is_provisional(const struct page_build *build,
                           const struct lab_analysis_result *result) {
    bool certain = false;
    for (int i = 0; i < result->claim_count; i++)
        certain |= result->claims[i].verdict == LAB_CLAIM_YES;
    return certain && result->answer && build->digest &&
           page_is_disturbed(build->page, build->digest) &&
           !lab_str_starts(result->answer, PAGE_OPEN) &&
           !lab_str_starts(result->answer, PAGE_UNTESTED);
}

static void add_found(const struct page_build *build, const struct lab_page_analysis *analysis,
                      bool paper) {
    struct lab_doc *doc = build->doc;
    const struct lab_analysis_result *result = analysis->result;
    const char *answer =
        result->answer
            ? page_cut_words(page_named(build->names, result->answer, lab_doc_arena(doc)),
                             lab_doc_arena(doc))
            : "";
    size_t first = page_headline_length(answer);
    lab_doc_text(doc, LAB_DOC_SAYS, "%s%.*s",
                 is_provisional(build, result) ? "Provisional (busy machine): " : "", (int)first,
                 answer);
    if (answer[first])
        lab_doc_text(doc, LAB_DOC_PLAIN, "%s", answer + first + 1);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    if (result->chart_count > 0 && lab_chart_has_data(&result->charts[0]))
        page_add_chart(build, &result->charts[0], WIDTH, 0);
    add_drawn(build, analysis);
    bool few = result->part_count < 2 && !page_merged(result, 0, build->names, lab_doc_arena(doc));
    lab_doc_only(doc, paper || few ? LAB_DOC_SCREEN | LAB_DOC_PAPER : LAB_DOC_SCREEN);
    page_add_small_table(build, analysis);
    lab_doc_only(doc, LAB_DOC_SCREEN);
    add_about(build, result);
    add_fold(build, analysis);
    add_notes(build, result, NOTES_SCREEN);
    lab_doc_only(doc, LAB_DOC_PAPER);
    add_notes(build, result, NOTES_PAPER);
}

/* For programs the whole of it. */
static void add_data(const struct page_build *build, const struct lab_page_analysis *analysis) {
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    lab_doc_only(doc, LAB_DOC_PROGRAMS);
    lab_doc_begin(doc, (struct lab_doc_section){.title = NULL});
    if (analysis->result) {
        lab_report_add_analysis(doc, &(struct lab_report_analysis){.name = analysis->name,
                                                                   .result = analysis->result,
                                                                   .source = build->page->source});
    } else {
        struct lab_value *map = lab_value_map(arena);
        lab_value_set_string(arena, map, "analysis", analysis->name);
        lab_value_set_string(arena, map, "failure", analysis->failure);
        lab_doc_data(doc, NULL, map);
    }
    lab_doc_end(doc);
}

static void add_analysis(const struct page_build *build, const struct lab_page_analysis *analysis,
                         bool paper) {
    struct lab_doc *doc = build->doc;
    char *title = lab_arena_strdup(lab_doc_arena(doc),
                                   analysis->summary ? analysis->summary : analysis->name);
    title[0] = (char)toupper((unsigned char)title[0]);
    lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
    lab_doc_begin(doc, (struct lab_doc_section){
                           .title = title, .name = analysis->name, .id = analysis->name});
    if (analysis->result)
        add_found(build, analysis, paper);
    else
        lab_doc_text(doc, LAB_DOC_NOTE, "Not available: %s.",
                     analysis->failure ? analysis->failure : "no reason was given");
    lab_doc_end(doc);
}

/* One that the study doesn't ask for and that can't say anything is left out, unless it leads; what
 * was skipped is told with the method. */
static bool is_shown(const struct lab_page *page, const struct lab_page_analysis *analysis) {
    const struct lab_analysis_result *result = analysis->result;
    bool empty = result && (result->lacks || (result->untested && result != page_leading(page)));
    return !analysis->skipped && (analysis->named || !empty);
}

void page_add_evidence(const struct page_build *build) {
    const struct lab_page *page = build->page;
    struct lab_doc *doc = build->doc;
    lab_doc_only(doc, LAB_DOC_PROGRAMS);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = "analyses"});
    for (int i = 0; i < page->analysis_count; i++)
        add_data(build, &page->analyses[i]);
    lab_doc_end(doc);
    int shown = 0;
    for (int i = 0; i < page->analysis_count; i++)
        shown += is_shown(page, &page->analyses[i]);
    if (shown > 0) {
        lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
        lab_doc_begin(doc, (struct lab_doc_section){.title = "Evidence", .id = "evidence"});
        for (int i = 0; i < page->analysis_count; i++)
            if (is_shown(page, &page->analyses[i]))
                add_analysis(build, &page->analyses[i], page->analyses[i].named || i == 0);
        lab_doc_only(doc, LAB_DOC_SCREEN | LAB_DOC_PAPER);
        lab_doc_end(doc);
    }
    lab_doc_only(doc, LAB_DOC_ALL);
}

/* --- inconclusive comparisons --- */

/* "Inconclusive: 45 of 358 comparisons (stability 45)": which analyses they are of. */
static const char *open_title(const struct lab_page *page, const struct page_open *open,
                              struct lab_arena *arena) {
    LAB_AUTO(str, text);
    for (int i = 0; i < page->analysis_count; i++) {
        int count = 0;
        for (int c = 0; page_tells(&page->analyses[i]) && c < page->analyses[i].result->claim_count;
             c++)
            count += page->analyses[i].result->claims[c].verdict == LAB_CLAIM_INCONCLUSIVE;
        if (count)
            lab_str_printf(&text, "%s%s %d", text.length ? ", " : "", page->analyses[i].name,
                           count);
    }
    return lab_arena_printf(arena, "%s: %d of %d comparisons%s (%s)",
                            open->single ? "Without interval over runs" : "Inconclusive",
                            open->open, open->compared, open->estimates ? " and estimates" : "",
                            text.text);
}

void page_add_inconclusive(const struct page_build *build) {
    static const struct lab_doc_column columns[] = {
        {NULL, "Subject", LAB_UNIT_TEXT},  {NULL, "Compared with", LAB_UNIT_TEXT},
        {NULL, "Quantity", LAB_UNIT_TEXT}, {NULL, "Effect", LAB_UNIT_FIGURE},
        {NULL, "Runs", LAB_UNIT_COUNT},    {NULL, "Runs needed", LAB_UNIT_COUNT},
    };
    struct lab_doc *doc = build->doc;
    struct lab_arena *arena = lab_doc_arena(doc);
    struct page_open open = page_open_count(build->page, false);
    int shown = 0;
    if (open.open == 0)
        return;
    lab_doc_only(doc, LAB_DOC_SCREEN);
    lab_doc_begin(doc, (struct lab_doc_section){.look = LAB_DOC_FOLD,
                                                .id = PAGE_INCONCLUSIVE,
                                                .name = PAGE_INCONCLUSIVE,
                                                .title = open_title(build->page, &open, arena)});
    lab_doc_rows(doc, NULL, NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < build->page->analysis_count; i++) {
        const struct lab_page_analysis *analysis = &build->page->analyses[i];
        for (int c = 0; page_tells(analysis) && c < analysis->result->claim_count; c++) {
            const struct lab_claim *claim = &analysis->result->claims[c];
            if (claim->verdict != LAB_CLAIM_INCONCLUSIVE || shown++ >= OPEN_MOST)
                continue;
            lab_doc_cell(doc, "%s",
                         page_named(build->names, lab_claim_subject(claim, arena), arena));
            lab_doc_cell(doc, "%s", page_named(build->names, claim->reference, arena));
            lab_doc_cell(doc, "%s", claim->quantity);
            lab_doc_cell(doc, "%s",
                         claim->unit || claim->difference ? lab_claim_short(claim, arena)
                                                          : lab_claim_effect(claim, arena));
            lab_doc_figure(doc, claim->n);
            int needed = claim->reason ? 0 : lab_claim_runs(claim);
            lab_doc_figure(doc, needed > claim->n ? needed : (double)NAN);
        }
    }
    lab_doc_text(
        doc, LAB_DOC_FAINT,
        "Intervals are of one comparison each. Verdicts are corrected for all of a family, "
        "so that one may be open though its interval excludes 0.");
    if (shown > OPEN_MOST && build->page->study && build->page->study->folder)
        lab_doc_marked(doc, LAB_DOC_FAINT, "%d more: `gpulab show %s --claims`", shown - OPEN_MOST,
                       study_path(build->page->study));
    lab_doc_end(doc);
    lab_doc_only(doc, LAB_DOC_ALL);
}

/* --- CSV files --- */

static void write_csv(const struct lab_doc_table *table, struct lab_str *out) {
    struct lab_doc_stream stream;
    lab_doc_stream_begin(&stream, lab_doc_row_format_find("csv"), table->columns,
                         table->column_count, out);
    for (int i = 0; i < table->row_count * table->column_count; i++)
        lab_doc_stream_add(&stream, table->cells[i]);
}

const char *lab_page_csv(const struct lab_page *page, int analysis, int number,
                         struct lab_arena *arena, struct lab_str *out) {
    const struct lab_page_analysis *item = &page->analyses[analysis];
    const struct page_names *names = page_names_make(NULL, arena);
    if (!item->result)
        return NULL;
    if (number == 0) {
        struct lab_doc_table figures = page_figures(item->result, false, names, arena);
        if (figures.row_count > 0)
            write_csv(&figures, out);
        return csv_name(item, NULL, arena);
    }
    const struct lab_doc_table *table = page_merged(item->result, number - 1, names, arena);
    if (!table)
        return NULL;
    write_csv(table, out);
    return csv_name(item, table->key, arena);
}
