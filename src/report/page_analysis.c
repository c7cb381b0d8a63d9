/*
 * page_analysis.c: an analysis on the page: its answer, its pictures, a table that compares its
 * parts, and each part behind a line that opens it.
 */
#include "base/file/file.h"
#include "report/page_internal.h"

#include <ctype.h>
#include <string.h>

#define SVG_MOST      (400 << 10) /* of one picture; beyond it the PNG is smaller */
#define PNG_MOST      (1 << 20)
#define OPEN_PARTS    2 /* so many stand open */
#define PRINTED_PARTS 4 /* of those that are folded: on paper all of them lie open */

#define PRINTED_ROWS 24 /* of a long table; the style has the same number */

/* --- pictures --- */

static void add_base64(const unsigned char *bytes, size_t length, struct lab_str *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        unsigned word = (unsigned)bytes[i] << 16 | (count > 1 ? (unsigned)bytes[i + 1] << 8 : 0) |
                        (count > 2 ? bytes[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63],
                        digits[word & 63]};
        for (size_t k = count + 1; k < 4; k++)
            four[k] = '=';
        lab_str_add_bytes(out, four, 4);
    }
}

/* False = there is none that fits. */
static bool add_picture(const struct lab_page *page, const struct lab_plot *plot,
                        struct page_budget *budget, struct lab_str *out) {
    struct lab_arena arena;
    struct lab_str made;
    char *bytes;
    size_t length;
    char prefix[24];
    lab_arena_init(&arena);
    lab_str_init(&made);
    snprintf(prefix, sizeof prefix, "chart%d", ++budget->charts);
    const char *path = lab_arena_printf(&arena, "%s/%s.svg", page->folder, plot->name);
    if (lab_file_read(path, 16 << 20, &arena, &bytes, &length, NULL) == 0)
        lab_plot_inline_svg(bytes, prefix, &made);
    if (made.length == 0 || made.length > SVG_MOST) {
        lab_str_clear(&made);
        path = lab_arena_printf(&arena, "%s/%s.png", page->folder, plot->name);
        if (lab_file_read(path, PNG_MOST, &arena, &bytes, &length, NULL) == 0) {
            lab_str_add(&made, "<img alt=\"");
            page_add_text(&made, plot->chart->title ? plot->chart->title : plot->name);
            lab_str_add(&made, "\" src=\"data:image/png;base64,");
            add_base64((const unsigned char *)bytes, length, &made);
            lab_str_add(&made, "\">");
        }
    }
    bool fits = made.length > 0 && out->length + made.length < budget->limit;
    if (fits)
        lab_str_add_bytes(out, made.text, made.length);
    lab_str_release(&made);
    lab_arena_release(&arena);
    return fits;
}

static void add_figure(const struct lab_page *page, const struct lab_plot *plot,
                       struct page_budget *budget, struct lab_str *out) {
    if (!plot->drawn)
        return;
    lab_str_add(out, "<figure>\n<div class=\"picture\">");
    bool shown = add_picture(page, plot, budget, out);
    lab_str_add(out, "</div>\n<figcaption>");
    if (plot->chart->simulated) /* the word in the picture may lie beyond a phone's edge */
        lab_str_add(out, "<span class=\"simulated\">simulated</span> ");
    if (plot->chart->caption) {
        page_add_text(out, plot->chart->caption);
        lab_str_add(out, " ");
    }
    if (!shown)
        lab_str_add(out, "There was no room for this picture: ");
    lab_str_printf(out, "<a href=\"%s.png\">%s.png</a></figcaption>\n</figure>\n", plot->name,
                   plot->name);
}

/* --- tables --- */

static void add_head_cell(const char *title, bool figure, struct lab_str *out) {
    lab_str_add(out, figure ? "<th class=\"figure\">" : "<th>");
    page_add_text(out, title);
    lab_str_add(out, "</th>");
}

static bool is_figure(const struct lab_doc_column *column) {
    return column->unit != LAB_UNIT_TEXT;
}

#define FREE_COLUMNS 40 /* text beyond this is broken into lines */

static void add_cell_as(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                        bool aligned, struct lab_str *out) {
    struct lab_str text;
    lab_str_init(&text);
    lab_doc_add_cell(cell, column, false, &text);
    lab_str_add(out, aligned && is_figure(column)                ? "<td class=\"figure\">"
                     : lab_str_columns(text.text) > FREE_COLUMNS ? "<td class=\"free\">"
                                                                 : "<td>");
    page_add_text(out, text.text);
    lab_str_add(out, "</td>");
    lab_str_release(&text);
}

static void add_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                     struct lab_str *out) {
    add_cell_as(cell, column, true, out);
}

static void add_lines(const char *const *lines, struct lab_str *out) {
    lab_str_add(out, "<pre>");
    for (int i = 0; lines[i]; i++) {
        page_add_text(out, lines[i]);
        lab_str_add(out, "\n");
    }
    lab_str_add(out, "</pre>\n");
}

static void add_table(const struct lab_doc_table *table, struct lab_str *out) {
    if (!table->title)
        return;
    page_add_heading(out, 4, NULL, table->title, false);
    if (table->lines) {
        add_lines(table->lines, out);
        return;
    }
    lab_str_printf(out, "<div class=\"wide%s\"><table>\n<thead><tr>",
                   table->row_count > PRINTED_ROWS ? " long" : "");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title)
            add_head_cell(table->columns[c].title, is_figure(&table->columns[c]), out);
    lab_str_add(out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        int column = i % table->column_count;
        lab_str_add(out, column == 0 ? "<tr>" : "");
        if (table->columns[column].title)
            add_cell(&table->cells[i], &table->columns[column], out);
        lab_str_add(out, column == table->column_count - 1 ? "</tr>\n" : "");
    }
    lab_str_add(out, "</tbody></table></div>\n");
}

/* All parts in a table, by what they are compared by. */
static void add_comparison(const struct lab_analysis_result *result, struct lab_str *out) {
    lab_str_add(out, "<div class=\"wide\"><table>\n<thead><tr><th>Name</th>");
    for (int c = 0; c < result->column_count; c++)
        if (result->columns[c].brief)
            add_head_cell(result->columns[c].brief, is_figure(&result->columns[c]), out);
    lab_str_add(out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < result->part_count; i++) {
        lab_str_add(out, "<tr><td>");
        page_add_text(out, result->parts[i].name);
        lab_str_add(out, "</td>");
        for (int c = 0; c < result->column_count; c++)
            if (result->columns[c].brief)
                add_cell(&result->parts[i].cells[c], &result->columns[c], out);
        lab_str_add(out, "</tr>\n");
    }
    lab_str_add(out, "</tbody></table></div>\n");
}

/* --- parts --- */

static void add_notes(const char *const *notes, struct lab_str *out) {
    if (!notes || !notes[0])
        return;
    lab_str_add(out, "<ul class=\"faint\">\n");
    for (int i = 0; notes[i]; i++) {
        lab_str_add(out, "<li>");
        page_add_text(out, notes[i]);
        lab_str_add(out, "</li>\n");
    }
    lab_str_add(out, "</ul>\n");
}

static void add_figures(const struct lab_analysis_result *result,
                        const struct lab_analysis_part *part, struct lab_str *out) {
    bool any = false;
    for (int c = 0; c < result->column_count; c++) {
        const struct lab_doc_cell *cell = &part->cells[c];
        const struct lab_doc_column *column = &result->columns[c];
        if (!lab_doc_cell_is_shown(cell, column))
            continue;
        lab_str_add(out, any ? "" : "<div class=\"wide\"><table>\n");
        any = true;
        lab_str_add(out, "<tr><th>");
        page_add_text(out, column->title);
        lab_str_add(out, "</th>");
        add_cell_as(cell, column, false, out);
        lab_str_add(out, "<td class=\"free\">");
        page_add_text(out, cell->text && is_figure(column) && column->unit != LAB_UNIT_FIGURE
                               ? cell->text
                               : "");
        lab_str_add(out, "</td></tr>\n");
    }
    lab_str_add(out, any ? "</table></div>\n" : "");
}

static void add_part(const struct lab_analysis_result *result, const struct lab_analysis_part *part,
                     struct lab_str *out) {
    bool folded = result->part_count > OPEN_PARTS;
    if (folded) {
        bool printed = part - result->parts < PRINTED_PARTS;
        lab_str_add(out, printed ? "<details><summary>" : "<details class=\"more\"><summary>");
        page_add_text(out, part->name);
        lab_str_add(out, "</summary>\n");
    } else {
        page_add_heading(out, 4, NULL, part->name, result->simulated);
    }
    if (part->about) {
        lab_str_add(out, "<p class=\"faint\">");
        page_add_text(out, part->about);
        lab_str_add(out, result->simulated && folded ? ", simulated</p>\n" : "</p>\n");
    }
    if (part->answer && result->part_count > 1) {
        lab_str_add(out, "<p>");
        page_add_text(out, part->answer);
        lab_str_add(out, "</p>\n");
    }
    add_figures(result, part, out);
    for (int i = 0; i < part->table_count; i++)
        add_table(&part->tables[i], out);
    add_notes(part->notes, out);
    lab_str_add(out, folded ? "</details>\n" : "");
}

static void add_parts(const struct lab_page *page, const struct lab_page_analysis *analysis,
                      const struct page_budget *budget, struct lab_str *out) {
    const struct lab_analysis_result *result = analysis->result;
    if (result->part_count > 1)
        add_comparison(result, out);
    for (int i = 0; i < result->part_count; i++) {
        if (out->length > budget->limit) {
            lab_str_printf(out,
                           "<p class=\"note\">There was no room for %d more: <code>gpulab analyze "
                           "%s ",
                           result->part_count - i, analysis->name);
            page_add_text(out, page->source);
            lab_str_add(out, "</code> shows them.</p>\n");
            return;
        }
        add_part(result, &result->parts[i], out);
    }
    if (result->part_count > OPEN_PARTS && result->part_count > PRINTED_PARTS)
        lab_str_printf(out,
                       "<p class=\"paper note\">Printed are the details of the first %d of %d; "
                       "index.html has all of them.</p>\n",
                       PRINTED_PARTS, result->part_count);
}

/* "Which NUMA node feeds which device best": what it tells is its heading. */
static void add_title(const struct lab_page_analysis *analysis, struct lab_str *out) {
    struct lab_str title;
    lab_str_init(&title);
    lab_str_add(&title, analysis->summary ? analysis->summary : analysis->name);
    title.text[0] = (char)toupper((unsigned char)title.text[0]);
    page_add_heading(out, 3, analysis->name, title.text,
                     analysis->result && analysis->result->simulated);
    lab_str_release(&title);
}

void page_add_analysis(const struct lab_page *page, const struct lab_page_analysis *analysis,
                       struct page_budget *budget, struct lab_str *out) {
    const struct lab_analysis_result *result = analysis->result;
    lab_str_add(out, "<section>\n");
    add_title(analysis, out);
    if (!result) {
        lab_str_add(out, "<p class=\"note\">This could not be told: ");
        page_add_text(out, analysis->failure ? analysis->failure : "no reason was given");
        lab_str_add(out, ".</p>\n</section>\n");
        return;
    }
    if (result->answer && result->answer != page_answer(page)) { /* that opens the page */
        lab_str_add(out, "<p class=\"says\">");
        page_add_text(out, result->answer);
        lab_str_add(out, "</p>\n");
    }
    for (int i = 0; i < analysis->plot_count; i++)
        add_figure(page, &analysis->plots[i], budget, out);
    add_parts(page, analysis, budget, out);
    add_notes(result->notes, out);
    lab_str_add(out, "</section>\n");
}
