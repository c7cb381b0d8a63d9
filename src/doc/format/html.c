/*
 * html.c: a document as one page: no network, no scripts; light or dark as its reader's screen is;
 * it prints. What stands before the first section is its header, with links to the sections that
 * have an id. A page has at most so many bytes (lab_doc_set_page): what is left out is said.
 */
#include "doc/block.h"

#include <stdint.h>
#include <string.h>

#define OPEN_PARTS    2  /* of a list so many stand open */
#define PRINTED_PARTS 4  /* of those that are folded: on paper all of them lie open */
#define PRINTED_ROWS  24 /* of a long table; the style has the same number */
#define FREE_COLUMNS  40 /* text beyond this is broken into lines */

#define SIMULATED "<span class=\"simulated\">simulated</span>"

/* --- text --- */

static void add_bytes(struct lab_str *out, const char *text, size_t left) {
    for (size_t length; left > 0; text += length, left -= length) {
        bool printable;
        length = lab_str_next(text, left, &printable);
        const char *instead = *text == '&'                              ? "&amp;"
                              : *text == '<'                            ? "&lt;"
                              : *text == '>'                            ? "&gt;"
                              : *text == '"'                            ? "&quot;"
                              : *text == '\''                           ? "&#39;"
                              : *text == '\n'                           ? "\n"
                              : *text == '\t' || *text == LAB_TEXT_KEPT ? " "
                              : !printable                              ? "?"
                                                                        : NULL;
        if (instead)
            lab_str_add(out, instead);
        else
            lab_str_add_bytes(out, text, length);
    }
}

static void add_text(struct lab_str *out, const char *text) {
    add_bytes(out, text, strlen(text));
}

void lab_doc_add_html(const char *text, struct lab_str *out) {
    add_text(out, text);
}

/* The end of what a mark opens, within the text; NULL = it is no mark. */
static const char *closing(const char *text, const char *mark) {
    const char *end = strstr(text, mark);
    return end && end > text ? end : NULL;
}

static const char *add_link(struct lab_str *out, const char *text) {
    const char *middle = closing(text, "]("), *end = middle ? strchr(middle, ')') : NULL;
    if (!end)
        return NULL;
    lab_str_add(out, "<a href=\"");
    add_bytes(out, middle + 2, (size_t)(end - middle - 2));
    lab_str_add(out, "\">");
    add_bytes(out, text, (size_t)(middle - text));
    lab_str_add(out, "</a>");
    return end + 1;
}

static void add_marked(struct lab_str *out, const char *text) {
    static const struct {
        const char *mark, *element;
    } marks[] = {{"`", "code"}, {"**", "strong"}, {"*", "em"}};
    while (*text) {
        const char *next = *text == '[' ? add_link(out, text + 1) : NULL;
        for (size_t i = 0; !next && i < sizeof marks / sizeof *marks; i++) {
            size_t length = strlen(marks[i].mark);
            const char *end =
                lab_str_starts(text, marks[i].mark) ? closing(text + length, marks[i].mark) : NULL;
            if (!end)
                continue;
            lab_str_printf(out, "<%s>", marks[i].element);
            add_bytes(out, text + length, (size_t)(end - text) - length);
            lab_str_printf(out, "</%s>", marks[i].element);
            next = end + length;
        }
        if (!next) {
            text += *text == '\\' && text[1];
            bool printable;
            size_t length = lab_str_next(text, strlen(text), &printable);
            add_bytes(out, text, length);
            next = text + length;
        }
        text = next;
    }
}

static void add_heading(struct lab_str *out, int level, const char *id, const char *text,
                        bool simulated) {
    lab_str_printf(out, "<h%d", level);
    if (id)
        lab_str_printf(out, " id=\"%s\"", id);
    lab_str_add(out, ">");
    add_text(out, text);
    lab_str_printf(out, "%s</h%d>\n", simulated ? " " SIMULATED : "", level);
}

/* --- paragraphs --- */

static void write_paragraph(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    static const char *const classes[] = {
        [LAB_DOC_ANSWER] = " class=\"answer\"", [LAB_DOC_SAYS] = " class=\"says\"",
        [LAB_DOC_FAINT] = " class=\"faint\"",   [LAB_DOC_NOTE] = " class=\"note\"",
        [LAB_DOC_WARNING] = " class=\"note\"",  [LAB_DOC_ERROR] = " class=\"note\""};
    const struct lab_doc_text *text = &block->text;
    struct lab_str *out = writer->out;
    if (!text->text)
        return;
    const char *class = text->tone <= LAB_DOC_ERROR ? classes[text->tone] : NULL;
    lab_str_printf(out, "<p%s>", class ? class : "");
    if (text->word) {
        lab_str_add(out, "<strong>");
        add_text(out, text->word);
        lab_str_add(out, "</strong> ");
    }
    const char *rest = text->text;
    for (size_t length = strcspn(rest, "\n"); rest[length] && !text->marked;
         length = strcspn(rest, "\n")) {
        add_bytes(out, rest, length);
        lab_str_add(out, "<br>");
        rest += length + 1;
    }
    if (text->marked)
        add_marked(out, rest);
    else
        add_text(out, rest);
    lab_str_add(out, "</p>\n");
}

static void write_items(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_notes *notes = &block->notes;
    struct lab_str *out = writer->out;
    if (notes->count == 0)
        return;
    lab_str_add(out, notes->faint ? "<ul class=\"faint\">\n" : "<ul>\n");
    for (int i = 0; i < notes->count; i++) {
        lab_str_add(out, "<li>");
        add_text(out, notes->items[i].text);
        if (notes->items[i].who) {
            lab_str_add(out, "<br><span class=\"faint\">");
            add_marked(out, notes->items[i].who);
            lab_str_add(out, "</span>");
        }
        if (notes->items[i].hint) {
            lab_str_add(out, "<br>");
            add_text(out, notes->items[i].hint);
        }
        lab_str_add(out, "</li>\n");
    }
    lab_str_add(out, "</ul>\n");
}

static void write_code(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    struct lab_str *out = writer->out;
    const char *title = block->code.title;
    if (title)
        lab_str_printf(out, "<details class=\"more\"><summary>%s</summary>\n", title);
    lab_str_add(out, "<pre>");
    add_text(out, block->code.text);
    lab_str_add(out, title ? "</pre></details>\n" : "</pre>\n");
}

/* --- tables --- */

static bool is_figure(const struct lab_doc_column *column) {
    return column->unit != LAB_UNIT_TEXT;
}

static void add_cell(struct lab_str *out, const struct lab_doc_cell *cell,
                     const struct lab_doc_column *column, bool aligned) {
    LAB_AUTO(str, text);
    lab_doc_add_cell(cell, column, false, &text);
    bool free = !column->code && lab_str_columns(text.text) > FREE_COLUMNS;
    lab_str_add(out, aligned && is_figure(column) ? "<td class=\"figure\">"
                     : free                       ? "<td class=\"free\">"
                                                  : "<td>");
    lab_str_add(out, column->code ? "<code>" : "");
    if (column->marked)
        add_marked(out, text.text);
    else
        add_text(out, text.text);
    lab_str_add(out, column->code ? "</code></td>" : "</td>");
}

/* Lines without remarks are words, however long. */
static void write_lines(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_lines *lines = &block->lines;
    struct lab_str *out = writer->out;
    bool any = false;
    for (int i = 0; i < lines->count; i++) {
        const struct lab_doc_cell *cell = &lines->cells[i];
        const struct lab_doc_column *column = &lines->columns[i];
        if (!lab_doc_cell_is_shown(cell, column))
            continue;
        lab_str_add(out, any ? "" : "<div class=\"wide\"><table>\n");
        any = true;
        lab_str_add(out, "<tr><th>");
        add_text(out, column->title);
        lab_str_add(out, "</th>");
        if (lines->remarks)
            add_cell(out, cell, column, false);
        lab_str_add(out, "<td class=\"free\">");
        bool words = lab_unit_is_words(column->unit);
        add_text(out, cell->text && words != lines->remarks ? cell->text : "");
        lab_str_add(out, "</td></tr>\n");
    }
    lab_str_add(out, any ? "</table></div>\n" : "");
}

static void write_rows(struct lab_doc_writer *writer, const struct lab_doc_table *table) {
    struct lab_str *out = writer->out;
    int row = 0, total = table->row_total ? table->row_total : table->row_count;
    for (; row < table->row_count && (!table->elsewhere || out->length < writer->limit); row++) {
        lab_str_add(out, "<tr>");
        for (int c = 0; c < table->column_count; c++)
            if (table->columns[c].title)
                add_cell(out, &table->cells[row * table->column_count + c], &table->columns[c],
                         true);
        lab_str_add(out, "</tr>\n");
    }
    lab_str_add(out, "</tbody></table></div>\n");
    if (row < total && table->elsewhere && *table->elsewhere)
        lab_str_printf(out, "<p class=\"note\">%d more %s.</p>\n", total - row, table->elsewhere);
}

static void write_table(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_table *table = block->table;
    struct lab_str *out = writer->out;
    if (!table->title && !table->untitled)
        return;
    if (table->title)
        add_heading(out, 4, NULL, table->title, false);
    if (table->lines) {
        lab_str_add(out, "<pre>");
        for (int i = 0; table->lines[i]; i++) {
            add_text(out, table->lines[i]);
            lab_str_add(out, "\n");
        }
        lab_str_add(out, "</pre>\n");
        return;
    }
    bool is_long = table->title && table->row_count > PRINTED_ROWS;
    lab_str_printf(out, "<div class=\"wide%s\"><table>\n<thead><tr>", is_long ? " long" : "");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title) {
            lab_str_add(out, is_figure(&table->columns[c]) ? "<th class=\"figure\">" : "<th>");
            add_text(out, table->columns[c].title);
            lab_str_add(out, "</th>");
        }
    lab_str_add(out, "</tr></thead>\n<tbody>\n");
    write_rows(writer, table);
}

static void write_chart(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_chart *chart = &block->chart;
    struct lab_str *out = writer->out;
    LAB_AUTO(str, picture);
    char prefix[24];
    snprintf(prefix, sizeof prefix, "chart%d", ++writer->charts);
    chart->draw(chart->state, prefix, &picture);
    lab_str_add(out, "<figure>\n<div class=\"picture\">");
    bool shown = picture.length > 0 && out->length + picture.length < writer->limit;
    if (shown)
        lab_str_add_bytes(out, picture.text, picture.length);
    lab_str_add(out, "</div>\n<figcaption>");
    if (chart->simulated) /* the word in the picture may lie beyond a phone's edge */
        lab_str_add(out, SIMULATED " ");
    if (chart->caption) {
        add_text(out, chart->caption);
        lab_str_add(out, " ");
    }
    if (!shown)
        lab_str_add(out, "There was no room for this picture: ");
    lab_str_printf(out, "<a href=\"%s.svg\">%s.svg</a></figcaption>\n</figure>\n", chart->name,
                   chart->name);
}

/* --- sections --- */

/* One of many is folded, behind a line that opens it. */
static void write_part(struct lab_doc_writer *writer, const struct lab_doc_block *block, int number,
                       bool folded) {
    const struct lab_doc_section *section = &block->section;
    struct lab_str *out = writer->out;
    if (folded) {
        lab_str_add(out, number < PRINTED_PARTS ? "<details><summary>"
                                                : "<details class=\"more\"><summary>");
        add_text(out, section->title);
        lab_str_add(out, "</summary>\n");
    } else {
        add_heading(out, 4, NULL, section->title, section->simulated);
    }
    if (section->about) {
        lab_str_add(out, "<p class=\"faint\">");
        add_text(out, section->about);
        lab_str_add(out, section->simulated && folded ? ", simulated</p>\n" : "</p>\n");
    }
    lab_doc_write_blocks(writer, block->first);
    lab_str_add(out, folded ? "</details>\n" : "");
}

static void write_list(struct lab_doc_writer *writer, const struct lab_doc_block *list) {
    struct lab_str *out = writer->out;
    int number = 0, count = list->child_count;
    if (!list->list.elsewhere) {
        lab_doc_write_blocks(writer, list->first);
        return;
    }
    for (const struct lab_doc_block *block = list->first; block; block = block->next, number++) {
        if (out->length > writer->limit) {
            lab_str_printf(out, "<p class=\"note\">There was no room for %d more: <code>",
                           count - number);
            add_text(out, list->list.elsewhere);
            lab_str_add(out, "</code> shows them.</p>\n");
            return;
        }
        write_part(writer, block, number, count > OPEN_PARTS);
    }
    if (count > PRINTED_PARTS)
        lab_str_printf(out,
                       "<p class=\"paper note\">Printed are the details of the first %d of %d; "
                       "index.html has all of them.</p>\n",
                       PRINTED_PARTS, count);
}

static void write_section(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_section *section = &block->section;
    bool inner = writer->level > 1 && section->id;
    size_t limit = writer->limit;
    lab_str_add(writer->out, inner ? "<section>\n" : "");
    if (section->title)
        add_heading(writer->out, ++writer->level, section->id, section->title, section->simulated);
    if (section->reserve && writer->end != SIZE_MAX)
        writer->limit = writer->end - section->reserve;
    lab_doc_write_blocks(writer, block->first);
    writer->limit = limit;
    writer->level -= section->title != NULL;
    lab_str_add(writer->out, inner ? "</section>\n" : "");
}

static lab_doc_block_writer *const kinds[LAB_DOC_KIND_COUNT] = {
    [LAB_DOC_SECTION] = write_section, [LAB_DOC_LIST] = write_list,
    [LAB_DOC_TEXT] = write_paragraph,  [LAB_DOC_LINES] = write_lines,
    [LAB_DOC_TABLE] = write_table,     [LAB_DOC_ITEMS] = write_items,
    [LAB_DOC_CODE] = write_code,       [LAB_DOC_CHART] = write_chart,
};

/* --- the page --- */

static void write_head(const struct lab_doc *doc, struct lab_str *out) {
    const struct lab_doc_section *section = &doc->root.section;
    lab_str_add(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                     "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<meta "
                     "name=\"color-scheme\" content=\"light dark\">\n");
    if (doc->page.version) {
        lab_str_add(out, "<meta name=\"generator\" content=\"gpulab ");
        add_text(out, doc->page.version);
        lab_str_add(out, "\">\n");
    }
    lab_str_add(out, "<title>");
    add_text(out, section->title ? section->title : "gpulab");
    lab_str_printf(out, "%s</title>\n<style>\n%s</style>\n</head>\n<body>\n",
                   section->simulated ? " (simulated)" : "", lab_doc_page_style);
}

/* Sections with an id that hold no others with one. Returns how many there are. */
static int add_links(const struct lab_doc_block *block, struct lab_str *out) {
    int count = 0;
    for (; (block = lab_doc_block_for(block, LAB_DOC_SCREEN)); block = block->next) {
        if (block->kind != LAB_DOC_SECTION && block->kind != LAB_DOC_LIST)
            continue;
        int inner = add_links(block->first, out);
        count += inner;
        const struct lab_doc_section *section = &block->section;
        if (inner || block->kind != LAB_DOC_SECTION || !section->id || section->unlisted)
            continue;
        count++;
        lab_str_add(out, "<a href=\"#");
        add_text(out, section->id);
        lab_str_add(out, "\">");
        add_text(out, section->name ? section->name : section->title);
        lab_str_add(out, "</a>");
    }
    return count;
}

static void html_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    const struct lab_doc_section *section = &doc->root.section;
    size_t end = doc->page.bytes_most ? out->length + doc->page.bytes_most : SIZE_MAX;
    struct lab_doc_writer writer = {.kinds = kinds,
                                    .readers = LAB_DOC_SCREEN,
                                    .out = out,
                                    .end = end,
                                    .limit = end,
                                    .level = 1};
    const struct lab_doc_block *block = lab_doc_block_for(doc->root.first, LAB_DOC_SCREEN);
    write_head(doc, out);
    lab_str_add(out, "<header>\n");
    if (section->title)
        add_heading(out, 1, NULL, section->title, section->simulated);
    for (; block && block->kind != LAB_DOC_SECTION;
         block = lab_doc_block_for(block->next, LAB_DOC_SCREEN))
        lab_doc_write_block(&writer, block);
    lab_str_add(out, "<nav class=\"faint\">");
    add_links(block, out);
    lab_str_add(out, "</nav>\n</header>\n<main>\n");
    lab_doc_write_blocks(&writer, block);
    lab_str_add(out, "</main>\n");
    if (doc->page.version && doc->page.source) {
        lab_str_add(out, "<footer class=\"faint\">Written by gpulab ");
        add_text(out, doc->page.version);
        lab_str_add(out, " from <code>");
        add_text(out, doc->page.source);
        lab_str_add(out, "</code>.</footer>\n");
    }
    lab_str_add(out, "</body>\n</html>\n");
}

const struct lab_doc_format lab_doc_format_html = {
    .name = "html", .ending = ".html", .readers = LAB_DOC_SCREEN, .write = html_write};
