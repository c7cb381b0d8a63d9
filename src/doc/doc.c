/* doc.c: building a document, block by block. */
#include "doc/doc.h"

#include "doc/block.h"
#include "doc/stream.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#define LABEL_COLUMNS 12

struct lab_doc *lab_doc_open(const char *title, struct lab_arena *arena) {
    struct lab_doc *doc = lab_arena_alloc(arena, 1, sizeof *doc);
    doc->arena = arena;
    doc->readers = doc->root.readers = LAB_DOC_ALL;
    doc->labels = LABEL_COLUMNS;
    doc->root.section.title = title ? lab_arena_strdup(arena, title) : NULL;
    doc->current = &doc->root;
    return doc;
}

struct lab_arena *lab_doc_arena(const struct lab_doc *doc) {
    return doc->arena;
}

void lab_doc_set_page(struct lab_doc *doc, struct lab_doc_page page) {
    doc->page = page;
}

void lab_doc_set_simulated(struct lab_doc *doc, bool simulated) {
    doc->root.section.simulated = simulated;
}

void lab_doc_set_labels(struct lab_doc *doc, int columns) {
    doc->labels = columns;
}

void lab_doc_only(struct lab_doc *doc, unsigned readers) {
    doc->readers = readers;
}

void lab_doc_gap(struct lab_doc *doc) {
    doc->gap = true;
}

static struct lab_doc_block *append(struct lab_doc *doc, enum lab_doc_kind kind) {
    struct lab_doc_block *block = lab_arena_alloc(doc->arena, 1, sizeof *block);
    struct lab_doc_block *parent = doc->current;
    block->kind = kind;
    block->readers = doc->readers;
    block->gap = doc->gap;
    block->parent = parent;
    doc->gap = false;
    doc->table = NULL;
    if (parent->last)
        parent->last->next = block;
    else
        parent->first = block;
    parent->last = block;
    parent->child_count++;
    return block;
}

static const char *copy(struct lab_doc *doc, const char *text) {
    return text ? lab_arena_strdup(doc->arena, text) : NULL;
}

#define PRINT(doc, format, ret_text)                                                               \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        *(ret_text) = lab_arena_vprintf((doc)->arena, format, args);                               \
        va_end(args);                                                                              \
    } while (0)

/* --- what holds others --- */

void lab_doc_begin(struct lab_doc *doc, struct lab_doc_section section) {
    doc->current = append(doc, LAB_DOC_SECTION);
    doc->current->section = section;
}

void lab_doc_begin_list(struct lab_doc *doc, struct lab_doc_list list) {
    doc->current = append(doc, LAB_DOC_LIST);
    doc->current->list = list;
}

void lab_doc_end(struct lab_doc *doc) {
    assert(doc->current->parent);
    doc->current = doc->current->parent;
    doc->table = NULL;
}

/* --- paragraphs --- */

void lab_doc_text(struct lab_doc *doc, enum lab_doc_tone tone, const char *format, ...) {
    struct lab_doc_block *block = append(doc, LAB_DOC_TEXT);
    block->text.tone = tone;
    PRINT(doc, format, &block->text.text);
}

void lab_doc_text_as(struct lab_doc *doc, const char *key, enum lab_doc_tone tone,
                     const char *text) {
    struct lab_doc_block *block = append(doc, LAB_DOC_TEXT);
    block->text = (struct lab_doc_text){.key = key, .text = copy(doc, text), .tone = tone};
}

void lab_doc_marked(struct lab_doc *doc, enum lab_doc_tone tone, const char *format, ...) {
    struct lab_doc_block *block = append(doc, LAB_DOC_TEXT);
    block->text.tone = tone;
    block->text.marked = true;
    PRINT(doc, format, &block->text.text);
}

void lab_doc_said(struct lab_doc *doc, const char *word, enum lab_doc_tone tone, const char *format,
                  ...) {
    struct lab_doc_block *block = append(doc, LAB_DOC_TEXT);
    block->text.word = word;
    block->text.tone = tone;
    PRINT(doc, format, &block->text.text);
}

void lab_doc_notes(struct lab_doc *doc, const char *key, const char *const *notes, bool apart) {
    struct lab_doc_block *block = append(doc, LAB_DOC_ITEMS);
    int count = 0;
    while (notes && notes[count])
        count++;
    struct lab_doc_item *items = lab_arena_alloc(doc->arena, (size_t)count + 1, sizeof *items);
    for (int i = 0; i < count; i++)
        items[i].text = notes[i];
    block->notes = (struct lab_doc_notes){key, items, count, apart, true};
}

void lab_doc_items(struct lab_doc *doc, const struct lab_doc_item *items, int count) {
    struct lab_doc_block *block = append(doc, LAB_DOC_ITEMS);
    block->notes = (struct lab_doc_notes){.items = items, .count = count};
}

/* --- lines --- */

static struct lab_doc_lines *lines_of(struct lab_doc *doc) {
    struct lab_doc_block *last = doc->current->last;
    if (!last || last->kind != LAB_DOC_LINES || last->readers != doc->readers || doc->gap ||
        last->lines.remarks || last->lines.label_columns != doc->labels) {
        last = append(doc, LAB_DOC_LINES);
        last->lines.label_columns = doc->labels;
    }
    return &last->lines;
}

static void add_line(struct lab_doc *doc, const char *key, const char *label, const char *text,
                     enum lab_align align) {
    struct lab_doc_lines *lines = lines_of(doc);
    if (lines->count == lines->capacity) {
        int room = lines->capacity ? 2 * lines->capacity : 8;
        struct lab_doc_column *columns = lab_arena_alloc(doc->arena, (size_t)room, sizeof *columns);
        struct lab_doc_cell *cells = lab_arena_alloc(doc->arena, (size_t)room, sizeof *cells);
        for (int i = 0; i < lines->count; i++) {
            columns[i] = lines->columns[i];
            cells[i] = lines->cells[i];
        }
        lines->columns = columns;
        lines->cells = cells;
        lines->capacity = room;
    }
    lines->columns[lines->count] =
        (struct lab_doc_column){.key = key, .title = copy(doc, label), .align = align};
    lines->cells[lines->count++] = lab_cell_text(text);
}

void lab_doc_line(struct lab_doc *doc, const char *label, const char *format, ...) {
    const char *text;
    PRINT(doc, format, &text);
    if (*text)
        add_line(doc, NULL, label, text, LAB_ALIGN_BY_UNIT);
}

void lab_doc_line_whole(struct lab_doc *doc, const char *label, const char *format, ...) {
    const char *text;
    PRINT(doc, format, &text);
    if (*text)
        add_line(doc, NULL, label, text, LAB_ALIGN_WHOLE);
}

void lab_doc_line_as(struct lab_doc *doc, const char *key, const char *label, const char *text) {
    add_line(doc, key, label, copy(doc, text), LAB_ALIGN_WHOLE);
}

void lab_doc_lines_title(struct lab_doc *doc, const char *title) {
    lines_of(doc)->title = title;
}

void lab_doc_figures(struct lab_doc *doc, const char *title, const struct lab_doc_column *columns,
                     int count, const struct lab_doc_cell *cells) {
    struct lab_doc_block *block = append(doc, LAB_DOC_LINES);
    block->lines = (struct lab_doc_lines){.title = title,
                                          .columns = (struct lab_doc_column *)columns,
                                          .cells = (struct lab_doc_cell *)cells,
                                          .count = count,
                                          .capacity = count,
                                          .label_columns = doc->labels,
                                          .remarks = true};
}

/* --- tables --- */

void lab_doc_table(struct lab_doc *doc, const struct lab_doc_table *table) {
    append(doc, LAB_DOC_TABLE)->table = table;
}

struct lab_doc_table *lab_doc_rows(struct lab_doc *doc, const char *key, const char *title,
                                   const struct lab_doc_column *columns, int count) {
    struct lab_doc_block *block = append(doc, LAB_DOC_TABLE);
    struct lab_doc_table *table = lab_arena_alloc(doc->arena, 1, sizeof *table);
    *table = (struct lab_doc_table){
        .key = key, .title = title, .columns = columns, .column_count = count, .untitled = !title};
    block->table = doc->table = table;
    doc->cell_count = doc->cell_capacity = 0;
    return table;
}

void lab_doc_add(struct lab_doc *doc, struct lab_doc_cell cell) {
    assert(doc->table);
    struct lab_doc_table *table = doc->table;
    struct lab_doc_cell *cells = (struct lab_doc_cell *)table->cells;
    if (doc->cell_count == doc->cell_capacity) {
        doc->cell_capacity = doc->cell_capacity ? 2 * doc->cell_capacity : 32;
        cells = lab_arena_alloc(doc->arena, (size_t)doc->cell_capacity, sizeof *cells);
        if (doc->cell_count)
            memcpy(cells, table->cells, (size_t)doc->cell_count * sizeof *cells);
        table->cells = cells;
    }
    cells[doc->cell_count++] = cell;
    table->row_count = doc->cell_count / table->column_count;
}

void lab_doc_cell(struct lab_doc *doc, const char *format, ...) {
    const char *text;
    PRINT(doc, format, &text);
    lab_doc_add(doc, lab_cell_text(text));
}

void lab_doc_figure(struct lab_doc *doc, double value) {
    lab_doc_add(doc, lab_cell_figure(value));
}

/* --- others --- */

void lab_doc_code(struct lab_doc *doc, const char *title, const char *text) {
    struct lab_doc_block *block = append(doc, LAB_DOC_CODE);
    block->code.title = title;
    block->code.text = copy(doc, text);
}

void lab_doc_command(struct lab_doc *doc, const char *line, const char *remark) {
    lab_doc_code(doc, NULL, line);
    doc->current->last->code.remark = remark ? copy(doc, remark) : NULL;
    doc->current->last->code.copied = true;
}

void lab_doc_chart(struct lab_doc *doc, struct lab_doc_chart chart) {
    append(doc, LAB_DOC_CHART)->chart = chart;
}

void lab_doc_drawing(struct lab_doc *doc,
                     void (*draw)(const void *state, struct lab_style style, struct lab_str *out),
                     const void *state) {
    struct lab_doc_block *block = append(doc, LAB_DOC_DRAWING);
    block->drawing.draw = draw;
    block->drawing.state = state;
}

void lab_doc_data(struct lab_doc *doc, const char *key, struct lab_value *value) {
    struct lab_doc_block *block = append(doc, LAB_DOC_DATA);
    block->data.key = key;
    block->data.value = value;
}

/* --- formats --- */

const struct lab_doc_block *lab_doc_block_for(const struct lab_doc_block *block, unsigned readers) {
    while (block && !(block->readers & readers))
        block = block->next;
    return block;
}

void lab_doc_write_block(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    writer->gap |= block->gap;
    if (writer->kinds[block->kind])
        writer->kinds[block->kind](writer, block);
    else
        lab_doc_write_blocks(writer, block->first);
}

void lab_doc_write_blocks(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    for (; (block = lab_doc_block_for(block, writer->readers)); block = block->next)
        lab_doc_write_block(writer, block);
}

static const struct lab_doc_format *find_format(const char *name, bool rows) {
    const char *ending = strrchr(name, '.');
    for (int i = 0; lab_doc_formats[i]; i++) {
        const struct lab_doc_format *format = lab_doc_formats[i];
        if ((rows ? !!format->cell : !!format->write) &&
            (lab_str_equal(format->name, name) ||
             (ending && lab_str_equal(format->ending, ending))))
            return format;
    }
    return NULL;
}

const struct lab_doc_format *lab_doc_format_find(const char *name) {
    return find_format(name, false);
}

const struct lab_doc_format *lab_doc_row_format_find(const char *name) {
    return find_format(name, true);
}

void lab_doc_write(const struct lab_doc *doc, const char *format, struct lab_style style,
                   struct lab_str *out) {
    const struct lab_doc_format *found = lab_doc_format_find(format);
    assert(found);
    found->write(doc, style, out);
}

void lab_doc_print(const struct lab_doc *doc, const struct lab_console *console) {
    if (console->json) {
        LAB_AUTO(arena, arena);
        lab_console_print_json(console, lab_doc_value(doc, &arena));
        return;
    }
    LAB_AUTO(str, text);
    lab_doc_write(doc, "text", console->style, &text);
    lab_console_print(console, &text);
}

/* --- marks --- */

void lab_doc_add_escaped(const char *text, struct lab_str *out) {
    for (const char *c = text; *c; c++) {
        bool within =
            *c == '_' && c > text && isalnum((unsigned char)c[-1]) && isalnum((unsigned char)c[1]);
        if (*c == '\n' || *c == '\r' || *c == LAB_TEXT_KEPT)
            lab_str_add(out, " ");
        else if (strchr("\\`*_<>[]|~&#", *c) && !within)
            lab_str_printf(out, "\\%c", *c);
        else
            lab_str_add_bytes(out, c, 1);
    }
}

const char *lab_doc_escape(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, escaped);
    lab_doc_add_escaped(text, &escaped);
    return lab_arena_strdup(arena, escaped.text);
}

/* A pipe would end a table's cell even there. */
const char *lab_doc_as_code(const char *text, struct lab_arena *arena) {
    LAB_AUTO(str, code);
    const char *fence = strchr(text, '`') ? "``" : "`", *space = fence[1] ? " " : "";
    lab_str_printf(&code, "%s%s", fence, space);
    for (const char *c = text; *c; c++)
        if (*c == '|')
            lab_str_add(&code, "\\|");
        else
            lab_str_add_bytes(&code, *c == '\n' ? " " : c, 1);
    lab_str_printf(&code, "%s%s", space, fence);
    return lab_arena_strdup(arena, code.text);
}
