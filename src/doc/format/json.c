/* json.c: a document for programs: its keys and their values, and nothing else. */
#include "base/json.h"
#include "doc/block.h"

static void set_blocks(const struct lab_doc_block *block, struct lab_arena *arena,
                       struct lab_value *map);

static struct lab_value *rows_value(const struct lab_doc_table *table, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int r = 0; r < table->row_count; r++) {
        struct lab_value *row = lab_value_map(arena);
        for (int c = 0; c < table->column_count; c++)
            lab_doc_set_cell(arena, row, &table->cells[r * table->column_count + c],
                             &table->columns[c]);
        lab_value_append(arena, list, row);
    }
    return list;
}

static struct lab_value *notes_value(const struct lab_doc_notes *notes, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < notes->count; i++)
        lab_value_append(arena, list, lab_value_string(arena, notes->items[i].text));
    return list;
}

static struct lab_value *map_of(const struct lab_doc_block *block, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    set_blocks(block->first, arena, map);
    return map;
}

static struct lab_value *list_value(const struct lab_doc_block *block, struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (block = block->first; (block = lab_doc_block_for(block, LAB_DOC_PROGRAMS));
         block = block->next)
        lab_value_append(arena, list, map_of(block, arena));
    return list;
}

static void set_data(const struct lab_doc_block *block, struct lab_arena *arena,
                     struct lab_value *map) {
    const struct lab_value *value = block->data.value;
    if (block->data.key)
        lab_value_set(arena, map, block->data.key, block->data.value);
    for (int i = 0; !block->data.key && i < value->count; i++)
        lab_value_set(arena, map, value->keys[i], value->items[i]);
}

static void set_block(const struct lab_doc_block *block, struct lab_arena *arena,
                      struct lab_value *map) {
    switch (block->kind) {
    case LAB_DOC_SECTION:
        if (block->section.key)
            lab_value_set(arena, map, block->section.key, map_of(block, arena));
        else
            set_blocks(block->first, arena, map);
        break;
    case LAB_DOC_LIST:
        if (block->list.key)
            lab_value_set(arena, map, block->list.key, list_value(block, arena));
        break;
    case LAB_DOC_TEXT:
        if (block->text.key)
            lab_value_set_string(arena, map, block->text.key, block->text.text);
        break;
    case LAB_DOC_LINES:
        for (int i = 0; i < block->lines.count; i++)
            lab_doc_set_cell(arena, map, &block->lines.cells[i], &block->lines.columns[i]);
        break;
    case LAB_DOC_TABLE:
        if (block->table->key)
            lab_value_set(arena, map, block->table->key, rows_value(block->table, arena));
        break;
    case LAB_DOC_ITEMS:
        if (block->notes.key)
            lab_value_set(arena, map, block->notes.key, notes_value(&block->notes, arena));
        break;
    case LAB_DOC_DATA:
        set_data(block, arena, map);
        break;
    case LAB_DOC_CODE:
    case LAB_DOC_CHART:
    case LAB_DOC_DRAWING:
        break;
    }
}

static void set_blocks(const struct lab_doc_block *block, struct lab_arena *arena,
                       struct lab_value *map) {
    while ((block = lab_doc_block_for(block, LAB_DOC_PROGRAMS))) {
        set_block(block, arena, map);
        block = block->next;
    }
}

struct lab_value *lab_doc_value(const struct lab_doc *doc, struct lab_arena *arena) {
    return map_of(&doc->root, arena);
}

static void json_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    LAB_AUTO(arena, arena);
    struct lab_value *map = lab_value_map(&arena);
    lab_value_set_int(&arena, map, "schema", LAB_JSON_SCHEMA);
    set_blocks(doc->root.first, &arena, map);
    lab_json_write(map, 2, out);
    lab_str_add(out, "\n");
}

const struct lab_doc_format lab_doc_format_json = {
    .name = "json", .ending = ".json", .readers = LAB_DOC_PROGRAMS, .write = json_write};
