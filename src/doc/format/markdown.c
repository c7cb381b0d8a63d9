/*
 * markdown.c: a document as a file of text that people read as it is and that others turn into
 * pages: GitHub's Markdown. A blank line stands before every block.
 */
#include "doc/block.h"

#include "base/tty/safe_text.h"

#include <string.h>

static void add_heading(struct lab_doc_writer *writer, const char *title) {
    struct lab_str *out = writer->out;
    lab_str_add(out, out->length ? "\n" : "");
    lab_str_add_repeat(out, "#", writer->level);
    lab_str_add(out, " ");
    lab_doc_add_escaped(title, out);
    lab_str_add(out, "\n");
}

static void add_words(const char *text, bool marked, struct lab_str *out) {
    LAB_AUTO(str, words);
    lab_safe_text_add_signed(&words, text);
    if (marked)
        lab_str_add(out, words.text);
    else
        lab_doc_add_escaped(words.text, out);
}

static void write_paragraph(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_text *text = &block->text;
    struct lab_str *out = writer->out;
    if (!text->text)
        return;
    const char *strong = text->tone == LAB_DOC_ANSWER ? "**" : "";
    lab_str_printf(out, "\n%s%s", text->tone == LAB_DOC_NOTE ? "> " : "", strong);
    if (writer->about)
        lab_str_printf(out, "On %s. ", lab_doc_escape(writer->about, writer->arena));
    if (text->word)
        lab_str_printf(out, "**%s** ", text->word);
    writer->about = NULL;
    add_words(text->text, text->marked, out);
    lab_str_printf(out, "%s\n", strong);
}

static void write_items(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_notes *notes = &block->notes;
    struct lab_str *out = writer->out;
    for (int i = 0; i < notes->count; i++) {
        const struct lab_doc_item *item = &notes->items[i];
        lab_str_add(out, i == 0 || notes->apart ? "\n" : "");
        lab_str_add(out, notes->apart ? "" : "- ");
        add_words(item->text, false, out);
        lab_str_add(out, "\n");
        if (item->who)
            lab_str_printf(out, "  - %s\n", item->who);
        if (item->hint)
            lab_str_printf(out, "  - **Hint:** %s\n", item->hint);
    }
}

static void add_code(const char *const *lines, struct lab_str *out) {
    lab_str_add(out, "\n```\n");
    for (int i = 0; lines[i]; i++)
        lab_str_printf(out, "%s\n", lines[i]);
    lab_str_add(out, "```\n");
}

/* Lines to paste that follow each other share a block; remarks are comments there. */
static void write_code(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    static const char end[] = "\n```\n";
    struct lab_str *out = writer->out;
    size_t length = strlen(end);
    const char *line = !block->code.remark ? block->code.text
                                           : lab_arena_printf(writer->arena, "%s  # %s",
                                                              block->code.text, block->code.remark);
    if (block->code.copied && out->length > length &&
        strcmp(out->text + out->length - length, end) == 0) {
        out->length -= length - 1;
        lab_str_printf(out, "%s%s", line, end);
        return;
    }
    if (!block->code.title)
        add_code((const char *const[]){line, NULL}, writer->out);
}

/* --- tables --- */

static bool is_right(const struct lab_doc_column *column) {
    return column->align == LAB_ALIGN_BY_UNIT ? column->unit != LAB_UNIT_TEXT
                                              : column->align == LAB_ALIGN_RIGHT;
}

static void add_cell(const struct lab_doc_writer *writer, const struct lab_doc_cell *cell,
                     const struct lab_doc_column *column) {
    LAB_AUTO(str, text);
    lab_doc_add_cell(cell, column, false, &text);
    lab_str_add(writer->out, " ");
    if (column->code)
        lab_str_add(writer->out, lab_doc_as_code(text.text, writer->arena));
    else
        add_words(text.text, column->marked, writer->out);
    lab_str_add(writer->out, " |");
}

static void write_lines(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_lines *lines = &block->lines;
    struct lab_str *out = writer->out;
    bool any = false;
    for (int i = 0; i < lines->count; i++) {
        const struct lab_doc_column *column = &lines->columns[i];
        const struct lab_doc_cell *cell = &lines->cells[i];
        if (!lab_doc_cell_is_shown(cell, column))
            continue;
        if (!any)
            lab_str_printf(out, "\n| %s | Value |%s\n|---|%s\n", lines->title ? lines->title : "",
                           lines->remarks ? " |" : "", lines->remarks ? "--:|---|" : "---|");
        any = true;
        lab_str_printf(out, "| %s |", column->title);
        add_cell(writer, cell, column);
        if (lines->remarks) {
            lab_str_add(out, " ");
            lab_doc_add_escaped(cell->text && !lab_unit_is_words(column->unit) ? cell->text : "",
                                out);
            lab_str_add(out, " |");
        }
        lab_str_add(out, "\n");
    }
}

static void write_table(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_table *table = block->table;
    struct lab_str *out = writer->out;
    if (!table->title && !table->untitled)
        return;
    if (table->title) {
        writer->level++;
        add_heading(writer, table->title);
        writer->level--;
    }
    if (table->lines) {
        add_code(table->lines, out);
        return;
    }
    lab_str_add(out, "\n|");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title) {
            lab_str_add(out, " ");
            add_words(table->columns[c].title, table->columns[c].marked, out);
            lab_str_add(out, " |");
        }
    lab_str_add(out, "\n|");
    for (int c = 0; c < table->column_count; c++)
        if (table->columns[c].title)
            lab_str_add(out, is_right(&table->columns[c]) ? "--:|" : "---|");
    for (int i = 0; i < table->row_count * table->column_count; i++) {
        const struct lab_doc_column *column = &table->columns[i % table->column_count];
        lab_str_add(out, i % table->column_count == 0 ? "\n|" : "");
        if (column->title)
            add_cell(writer, &table->cells[i], column);
    }
    lab_str_add(out, "\n");
}

/* --- all --- */

static void write_chart(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_chart *chart = &block->chart;
    struct lab_str *out = writer->out;
    lab_str_add(out, "\n![");
    lab_doc_add_escaped(chart->title ? chart->title : chart->name, out);
    lab_str_printf(out, "](%s.svg)\n", chart->name);
    if (chart->caption)
        lab_str_printf(out, "\n*%s*\n", lab_doc_escape(chart->caption, writer->arena));
}

static void write_section(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_section *section = &block->section;
    const char *title = section->title;
    writer->level += !!title;
    if (title)
        add_heading(writer, title);
    writer->about = section->about;
    lab_doc_write_blocks(writer, block->first);
    writer->level -= !!title;
}

static lab_doc_block_writer *const kinds[LAB_DOC_KIND_COUNT] = {
    [LAB_DOC_SECTION] = write_section, [LAB_DOC_TEXT] = write_paragraph,
    [LAB_DOC_LINES] = write_lines,     [LAB_DOC_TABLE] = write_table,
    [LAB_DOC_ITEMS] = write_items,     [LAB_DOC_CODE] = write_code,
    [LAB_DOC_CHART] = write_chart,
};

static void markdown_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, text);
    struct lab_doc_writer writer = {
        .kinds = kinds, .readers = LAB_DOC_PAPER, .arena = &arena, .out = &text, .level = 1};
    const struct lab_doc_section *section = &doc->root.section;
    if (section->title) /* the word stands once */
        add_heading(&writer, section->simulated
                                 ? lab_arena_printf(&arena, "%s (simulated)", section->title)
                                 : section->title);
    lab_doc_write_blocks(&writer, doc->root.first);
    for (char *kept = text.text; (kept = strchr(kept, LAB_TEXT_KEPT));)
        *kept = ' ';
    /* without a title the first block stands at the top */
    lab_safe_text_add(out, text.text + (*text.text == '\n'));
}

const struct lab_doc_format lab_doc_format_markdown = {
    .name = "markdown", .ending = ".md", .readers = LAB_DOC_PAPER, .write = markdown_write};
