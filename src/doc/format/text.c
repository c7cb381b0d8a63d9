/* text.c: a document on a terminal: wrapped to its width, in colour and UTF-8 where it has them. */
#include "doc/block.h"

#include <string.h>

#define INDENT 2
#define BOLD   "\033[1m"
#define RED    "\033[1;31m"
#define YELLOW "\033[33m"
#define RESET  "\033[0m"

/* What isn't shown takes no blank line. */
static void open_block(struct lab_doc_writer *writer) {
    if (writer->gap && writer->out->length)
        lab_str_add(writer->out, "\n");
    writer->gap = false;
}

/* In ASCII some signs are wider ("+-"), so the text is turned before it is broken into lines. */
static void wrap(const struct lab_doc_writer *writer, const char *text, int start, int indent,
                 struct lab_str *out) {
    LAB_AUTO(str, plain);
    if (writer->style.unicode)
        lab_str_add(&plain, text);
    else
        lab_text_to_ascii(text, &plain);
    lab_text_wrap(plain.text, start, indent, writer->style.columns, out);
}

static void add_coloured(const struct lab_doc_writer *writer, const char *text,
                         const char *colour) {
    bool coloured = writer->style.colour && *colour && *text;
    lab_str_add(writer->out, coloured ? colour : "");
    lab_str_add(writer->out, text);
    lab_str_add(writer->out, coloured ? RESET : "");
}

/* --- paragraphs --- */

static const struct layout {
    int indent, later; /* columns of the first line, of the others */
    const char *mark, *colour;
} layouts[] = {
    [LAB_DOC_ANSWER] = {0, 0, "", BOLD},    [LAB_DOC_TITLE] = {0, 2, "", BOLD},
    [LAB_DOC_SAYS] = {0, 0, "", ""},        [LAB_DOC_PLAIN] = {2, 2, "", ""},
    [LAB_DOC_FREE] = {0, 2, "", ""},        [LAB_DOC_WHOLE] = {0, 0, "", ""},
    [LAB_DOC_CHOICE] = {2, 6, "", ""},      [LAB_DOC_BELOW] = {6, 6, "", ""},
    [LAB_DOC_ITEM] = {2, 4, "", ""},        [LAB_DOC_FAINT] = {2, 2, "", ""},
    [LAB_DOC_NOTE] = {2, 4, "! ", ""},      [LAB_DOC_HINT] = {4, 6, "→ ", ""},
    [LAB_DOC_WARNING] = {2, 4, "", YELLOW}, [LAB_DOC_ERROR] = {2, 4, "", RED},
};

static void write_paragraph(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_text *text = &block->text;
    const struct layout *layout = &layouts[text->tone];
    if (!text->text || !*text->text)
        return;
    open_block(writer);
    LAB_AUTO(str, wrapped);
    LAB_AUTO(str, words);
    int start = layout->indent;
    lab_str_add_repeat(writer->out, " ", layout->indent);
    if (text->word) {
        add_coloured(writer, text->word, layout->colour);
        start += lab_str_columns(text->word) + 1;
        lab_str_add(writer->out, " ");
    }
    lab_str_printf(&words, "%s%s", layout->mark, text->text);
    struct lab_doc_writer wide = *writer;
    if (text->tone == LAB_DOC_WHOLE)
        wide.style.columns = INT32_MAX;
    wrap(&wide, words.text, start, layout->later, &wrapped);
    add_coloured(writer, wrapped.text, text->word ? "" : layout->colour);
    lab_str_add(writer->out, "\n");
}

static void write_text(struct lab_doc_writer *writer, const char *text, enum lab_doc_tone tone) {
    write_paragraph(writer, &(struct lab_doc_block){.text = {.text = text, .tone = tone}});
}

static void write_notes(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_notes *notes = &block->notes;
    for (int i = 0; i < notes->count; i++) {
        writer->gap |= notes->apart;
        write_text(writer, notes->items[i].text, notes->apart ? LAB_DOC_SAYS : LAB_DOC_NOTE);
    }
}

/* "Name (about), simulated" */
static void write_section(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_section *section = &block->section;
    if (section->title) {
        LAB_AUTO(str, heading);
        lab_str_add(&heading, section->title);
        if (section->about)
            lab_str_printf(&heading, " (%s)", section->about);
        lab_str_add(&heading, section->simulated ? ", simulated" : "");
        writer->gap = true;
        write_text(writer, heading.text, LAB_DOC_TITLE);
    }
    lab_doc_write_blocks(writer, block->first);
}

/* --- lines and tables --- */

/* "  Overlap          98.0 %, of the copies' time lies under compute" */
static void write_line(struct lab_doc_writer *writer, const struct lab_doc_lines *lines, int at,
                       int columns) {
    const struct lab_doc_column *column = &lines->columns[at];
    const struct lab_doc_cell *cell = &lines->cells[at];
    if (!lab_doc_cell_is_shown(cell, column))
        return;
    LAB_AUTO(str, text);
    lab_doc_add_cell(cell, column, false, &text);
    if (column->unit != LAB_UNIT_TEXT)
        lab_text_keep(&text, 0);
    if (cell->text && !lab_unit_is_words(column->unit))
        lab_str_printf(&text, " %s", cell->text);
    open_block(writer);
    lab_str_add_repeat(writer->out, " ", INDENT);
    add_coloured(writer, column->title, BOLD);
    lab_str_add_repeat(writer->out, " ", columns - INDENT - lab_str_columns(column->title));
    struct lab_doc_writer wide = *writer;
    if (column->align == LAB_ALIGN_WHOLE)
        wide.style.columns = INT32_MAX;
    wrap(&wide, text.text, columns, columns, writer->out);
    lab_str_add(writer->out, "\n");
}

/* A label that is longer than the others may be has blanks behind it nevertheless. */
static void write_lines(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_lines *lines = &block->lines;
    int columns = lines->label_columns;
    for (int i = 0; i < lines->count; i++) {
        int width = lab_doc_cell_is_shown(&lines->cells[i], &lines->columns[i])
                        ? 2 * INDENT + lab_str_columns(lines->columns[i].title)
                        : 0;
        columns = width > columns ? width : columns;
    }
    for (int i = 0; i < lines->count; i++)
        write_line(writer, lines, i, columns);
}

static void write_lines_of(struct lab_doc_writer *writer, const char *text, int indent) {
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        lab_str_add_repeat(writer->out, " ", indent);
        lab_str_add_bytes(writer->out, text, length);
        lab_str_add(writer->out, "\n");
    }
}

static void write_code(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    open_block(writer);
    write_lines_of(writer, block->code.text, INDENT);
}

static void write_drawing(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    open_block(writer);
    block->drawing.draw(block->drawing.state, writer->style, writer->out);
}

static void write_table(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_table *table = block->table;
    if (!table->title && !table->untitled)
        return;
    if (table->untitled && table->row_count == 0)
        return;
    open_block(writer);
    if (table->title)
        lab_str_printf(writer->out, "  %s\n", table->title);
    for (int i = 0; table->lines && table->lines[i]; i++)
        write_lines_of(writer, table->lines[i], 2 * INDENT);
    if (!table->lines)
        lab_doc_table_write(table, writer->style, writer->out);
}

/* --- all --- */

static lab_doc_block_writer *const kinds[LAB_DOC_KIND_COUNT] = {
    [LAB_DOC_SECTION] = write_section, [LAB_DOC_TEXT] = write_paragraph,
    [LAB_DOC_LINES] = write_lines,     [LAB_DOC_TABLE] = write_table,
    [LAB_DOC_ITEMS] = write_notes,     [LAB_DOC_CODE] = write_code,
    [LAB_DOC_DRAWING] = write_drawing,
};

static void text_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    LAB_AUTO(str, text);
    struct lab_doc_writer writer = {
        .kinds = kinds, .readers = LAB_DOC_TERMINAL, .style = style, .out = &text};
    lab_doc_write_blocks(&writer, doc->root.first);
    if (style.unicode)
        lab_str_add(out, text.text);
    else
        lab_text_to_ascii(text.text, out);
}

const struct lab_doc_format lab_doc_format_text = {
    .name = "text", .ending = ".txt", .readers = LAB_DOC_TERMINAL, .write = text_write};
