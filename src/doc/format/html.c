/*
 * html.c: a document as one page: no network; light or dark as its reader's screen is; it prints,
 * and is whole without its script, which copies lines and shows values of charts. What stands
 * before the first section with an id is its header, with links to those that have one.
 */
#include "doc/block.h"

#include "base/tty/safe_text.h"

#include <stdint.h>
#include <string.h>

#define OPEN_PARTS    2  /* of a list so many stand open */
#define PRINTED_ROWS  24 /* of a long table; the style has the same number */
#define FREE_COLUMNS  40 /* text beyond this is broken into lines */
#define PHONE_COLUMNS 4  /* of a phone; of a wider table some yield, where they may */

#define CHART_BYTES (320 << 10) /* of a chart; a larger one is a link */
#define PHONE_BYTES (400 << 10) /* of a page, beyond which charts have one form */
#define FULL_BYTES  (96 << 10)  /* of a page, kept for tables and words when charts go */

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

/* With minus signs, which code doesn't have. */
static void add_words(struct lab_str *out, const char *text) {
    LAB_AUTO(str, words);
    lab_safe_text_add_signed(&words, text);
    add_text(out, words.text);
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

static void add_heading(struct lab_str *out, int level, const char *id, const char *text) {
    lab_str_printf(out, "<h%d", level);
    if (id)
        lab_str_printf(out, " id=\"%s\"", id);
    lab_str_add(out, ">");
    add_text(out, text);
    lab_str_printf(out, "</h%d>\n", level);
}

/* --- paragraphs --- */

static void write_paragraph(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    static const char *const classes[] = {
        [LAB_DOC_QUESTION] = " class=\"q\"",  [LAB_DOC_SAYS] = " class=\"says\"",
        [LAB_DOC_FAINT] = " class=\"faint\"", [LAB_DOC_LIMIT] = " class=\"limit\"",
        [LAB_DOC_NOTE] = " class=\"note\"",   [LAB_DOC_WARNING] = " class=\"note\"",
        [LAB_DOC_ERROR] = " class=\"note\""};
    const struct lab_doc_text *text = &block->text;
    struct lab_str *out = writer->out;
    if (!text->text)
        return;
    const char *class = text->tone <= LAB_DOC_ERROR ? classes[text->tone] : NULL;
    const char *element = text->tone == LAB_DOC_ANSWER ? "h1" : "p";
    lab_str_printf(out, "<%s%s>", element, class ? class : "");
    if (text->word) {
        lab_str_add(out, "<strong>");
        add_text(out, text->word);
        lab_str_add(out, "</strong> ");
    }
    LAB_AUTO(str, words);
    lab_safe_text_add_signed(&words, text->text);
    const char *rest = words.text;
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
    lab_str_printf(out, "</%s>\n", element);
}

static void write_items(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_notes *notes = &block->notes;
    struct lab_str *out = writer->out;
    if (notes->count == 0)
        return;
    lab_str_add(out, notes->faint ? "<ul class=\"faint\">\n" : "<ul>\n");
    for (int i = 0; i < notes->count; i++) {
        lab_str_add(out, "<li>");
        add_words(out, notes->items[i].text);
        if (notes->items[i].who) {
            lab_str_add(out, "<br><span class=\"faint\">");
            add_marked(out, notes->items[i].who);
            lab_str_add(out, "</span>");
        }
        if (notes->items[i].hint) {
            lab_str_add(out, "<br>");
            add_marked(out, notes->items[i].hint);
        }
        lab_str_add(out, "</li>\n");
    }
    lab_str_add(out, "</ul>\n");
}

/* A word of it is broken only where it is longer than a line: not behind each hyphen. */
static void write_command(struct lab_str *out, const char *line, const char *remark) {
    lab_str_add(out, "<div class=\"cmd\"><code>");
    while (*line) {
        size_t word = strcspn(line, " "), space = strspn(line + word, " ");
        lab_str_add(out, "<span>");
        add_bytes(out, line, word);
        lab_str_add(out, "</span>");
        add_bytes(out, line + word, space);
        line += word + space;
    }
    lab_str_add(out, "</code>");
    if (remark) {
        lab_str_add(out, "<b>");
        add_words(out, remark);
        lab_str_add(out, "</b>");
    }
    lab_str_add(out, "</div>\n");
}

static void write_code(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    struct lab_str *out = writer->out;
    const char *title = block->code.title;
    if (block->code.copied) {
        write_command(out, block->code.text, block->code.remark);
        return;
    }
    if (title)
        lab_str_printf(out, "<details><summary>%s</summary>\n", title);
    lab_str_add(out, "<pre>");
    add_text(out, block->code.text);
    lab_str_add(out, title ? "</pre></details>\n" : "</pre>\n");
}

/* --- tables --- */

static bool is_figure(const struct lab_doc_column *column) {
    return column->unit != LAB_UNIT_TEXT;
}

/* A phone has columns that yield less than this: few, or all that never yield. */
static int yields_from(const struct lab_doc_table *table) {
    int most = 0, shown;
    for (int c = 0; c < table->column_count; c++)
        most = table->columns[c].yields > most ? table->columns[c].yields : most;
    for (int from = most + 1;; from--) {
        shown = 0;
        for (int c = 0; c < table->column_count; c++)
            shown += table->columns[c].title && table->columns[c].yields < from;
        if (shown <= PHONE_COLUMNS || from <= 1)
            return from;
    }
}

/* "<td class=…>" */
static void begin_cell(struct lab_str *out, const char *element, bool figure, bool free,
                       bool yields) {
    const char *class = figure ? "figure" : free ? "free" : "";
    lab_str_printf(out, "<%s", element);
    if (*class || yields)
        lab_str_printf(out, " class=\"%s%s%s\"", class, *class && yields ? " " : "",
                       yields ? "yields" : "");
    lab_str_add(out, ">");
}

static void add_cell(struct lab_str *out, const struct lab_doc_cell *cell,
                     const struct lab_doc_column *column, bool aligned, bool yields) {
    LAB_AUTO(str, text);
    lab_doc_add_cell(cell, column, false, &text);
    bool free = !column->code && lab_str_columns(text.text) > FREE_COLUMNS;
    begin_cell(out, "td", aligned && is_figure(column), free, yields);
    lab_str_add(out, column->code ? "<code>" : "");
    if (column->marked)
        add_marked(out, text.text);
    else
        (column->code ? add_text : add_words)(out, text.text);
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
            add_cell(out, cell, column, false, false);
        lab_str_add(out, "<td class=\"free\">");
        bool words = lab_unit_is_words(column->unit);
        add_text(out, cell->text && words != lines->remarks ? cell->text : "");
        lab_str_add(out, "</td></tr>\n");
    }
    lab_str_add(out, any ? "</table></div>\n" : "");
}

static void write_rows(struct lab_doc_writer *writer, const struct lab_doc_table *table) {
    struct lab_str *out = writer->out;
    int from = yields_from(table);
    int row = 0, total = table->row_total ? table->row_total : table->row_count;
    for (; row < table->row_count && (!table->elsewhere || out->length < writer->limit); row++) {
        lab_str_add(out, "<tr>");
        for (int c = 0; c < table->column_count; c++)
            if (table->columns[c].title)
                add_cell(out, &table->cells[row * table->column_count + c], &table->columns[c],
                         true, table->columns[c].yields >= from);
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
        add_heading(out, 4, NULL, table->title);
    if (table->lines) {
        lab_str_add(out, "<pre>");
        for (int i = 0; table->lines[i]; i++) {
            add_text(out, table->lines[i]);
            lab_str_add(out, "\n");
        }
        lab_str_add(out, "</pre>\n");
        return;
    }
    int from = yields_from(table);
    bool is_long = table->title && table->row_count > PRINTED_ROWS;
    lab_str_printf(out, "<div class=\"wide%s\"><table>\n<thead><tr>", is_long ? " long" : "");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title) {
            begin_cell(out, "th", is_figure(&table->columns[c]), false,
                       table->columns[c].yields >= from);
            (table->columns[c].marked ? add_marked : add_text)(out, table->columns[c].title);
            lab_str_add(out, "</th>");
        }
    lab_str_add(out, "</tr></thead>\n<tbody>\n");
    write_rows(writer, table);
}

static void write_chart(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_chart *chart = &block->chart;
    struct lab_str *out = writer->out;
    LAB_AUTO(str, picture);
    LAB_AUTO(str, narrow);
    chart->draw(chart->state, false, &picture);
    chart->draw(chart->state, true, &narrow);
    bool shown = picture.length > 0 && picture.length < CHART_BYTES &&
                 out->length + picture.length < writer->limit;
    bool both = shown && narrow.length > 0 && out->length < PHONE_BYTES;
    lab_str_add(out, "<figure>");
    if (chart->title) {
        lab_str_add(out, "<figcaption class=\"title\">");
        add_text(out, chart->title);
        lab_str_add(out, "</figcaption>\n");
    }
    lab_str_add(out, both ? "<div class=\"picture desk\">" : "<div class=\"picture\">");
    if (shown)
        lab_str_add_bytes(out, picture.text, picture.length);
    lab_str_add(out, "</div>");
    if (both)
        lab_str_printf(out, "<div class=\"picture phone\">%s</div>", narrow.text);
    if (chart->caption || !shown) {
        lab_str_add(out, "<figcaption>");
        add_words(out, shown ? chart->caption : "The chart is too large for the page: ");
        if (!shown)
            lab_str_printf(out, "<a href=\"%s.svg\">%s.svg</a>", chart->name, chart->name);
        lab_str_add(out, "</figcaption>");
    }
    lab_str_add(out, "</figure>\n");
}

/* --- sections --- */

/* One of many is folded, behind a line that opens it. */
static void write_part(struct lab_doc_writer *writer, const struct lab_doc_block *block,
                       bool folded) {
    const struct lab_doc_section *section = &block->section;
    struct lab_str *out = writer->out;
    if (folded) {
        lab_str_add(out, "<details><summary>");
        add_text(out, section->title ? section->title : "");
        lab_str_add(out, "</summary>\n");
    } else {
        add_heading(out, 4, NULL, section->title);
    }
    if (section->about) {
        lab_str_add(out, "<p class=\"faint\">");
        add_text(out, section->about);
        lab_str_add(out, "</p>\n");
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
        write_part(writer, block, count > OPEN_PARTS);
    }
}

static void write_section(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    static const char *const begins[] = {[LAB_DOC_COLUMNS] = "<div class=\"columns\">\n",
                                         [LAB_DOC_CARD] = "<section class=\"card\">\n",
                                         [LAB_DOC_FOLD] = "<details"};
    static const char *const ends[] = {[LAB_DOC_COLUMNS] = "</div>\n",
                                       [LAB_DOC_CARD] = "</section>\n",
                                       [LAB_DOC_FOLD] = "</details>\n"};
    const struct lab_doc_section *section = &block->section;
    bool inner = writer->level > 1 && section->id, flows = section->look == LAB_DOC_FLOW;
    struct lab_str *out = writer->out;
    lab_str_add(out, !flows ? begins[section->look] : inner ? "<section>\n" : "");
    writer->level += section->title != NULL;
    if (section->look == LAB_DOC_FOLD) {
        if (section->id)
            lab_str_printf(out, " id=\"%s\"", section->id);
        lab_str_add(out, "><summary>");
        add_text(out, section->title ? section->title : "");
        lab_str_add(out, "</summary>\n");
    } else if (section->title) {
        add_heading(out, writer->level, section->id, section->title);
    }
    lab_doc_write_blocks(writer, block->first);
    writer->level -= section->title != NULL;
    lab_str_add(out, !flows ? ends[section->look] : inner ? "</section>\n" : "");
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
        if (inner || block->kind != LAB_DOC_SECTION || !section->id)
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

/* The header's blocks; returns the first block behind them. */
static const struct lab_doc_block *write_header(struct lab_doc_writer *writer,
                                                const struct lab_doc *doc) {
    const struct lab_doc_block *first = lab_doc_block_for(doc->root.first, LAB_DOC_SCREEN), *block;
    struct lab_str *out = writer->out;
    bool answered = false;
    for (block = first; block && !(block->kind == LAB_DOC_SECTION && block->section.id);
         block = lab_doc_block_for(block->next, LAB_DOC_SCREEN))
        answered |= block->kind == LAB_DOC_TEXT && block->text.tone == LAB_DOC_ANSWER;
    if (doc->root.section.simulated)
        lab_str_add(out,
                    "<div class=\"banner\">Simulated machine: no hardware was measured</div>\n");
    if (doc->page.banner) {
        lab_str_add(out, "<div class=\"banner\">");
        add_text(out, doc->page.banner);
        lab_str_add(out, "</div>\n");
    }
    lab_str_add(out, "<header>\n");
    if (doc->root.section.title && !answered)
        add_heading(out, 1, NULL, doc->root.section.title);
    for (; first != block; first = lab_doc_block_for(first->next, LAB_DOC_SCREEN))
        lab_doc_write_block(writer, first);
    lab_str_add(out, "<nav>");
    add_links(block, out);
    lab_str_add(out, "</nav>\n</header>\n");
    return block;
}

static void html_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    struct lab_doc_writer writer = {
        .kinds = kinds, .readers = LAB_DOC_SCREEN, .out = out, .limit = SIZE_MAX, .level = 1};
    if (doc->page.bytes_most)
        writer.limit = out->length + doc->page.bytes_most - FULL_BYTES;
    write_head(doc, out);
    const struct lab_doc_block *block = write_header(&writer, doc);
    lab_str_add(out, "<main>\n");
    lab_doc_write_blocks(&writer, block);
    lab_str_add(out, "</main>\n");
    if (doc->page.version && doc->page.source) {
        lab_str_add(out, "<footer class=\"faint\">Written by gpulab ");
        add_text(out, doc->page.version);
        lab_str_add(out, " from <code>");
        add_text(out, doc->page.source);
        lab_str_add(out, "</code>.</footer>\n");
    }
    lab_str_printf(out, "<script>\n%s</script>\n</body>\n</html>\n", lab_doc_page_script);
}

const struct lab_doc_format lab_doc_format_html = {
    .name = "html", .ending = ".html", .readers = LAB_DOC_SCREEN, .write = html_write};
