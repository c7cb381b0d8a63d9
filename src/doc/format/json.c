/* json.c: a document for programs: its keys and their values, and nothing else. */
#include "base/json.h"
#include "doc/block.h"

/* Of this block and those behind it. */
static struct lab_value *map_of(const struct lab_doc_block *block, struct lab_arena *arena);

static void set(struct lab_doc_writer *writer, const char *key, struct lab_value *value) {
    lab_value_set(writer->arena, writer->map, key, value);
}

static void set_section(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    if (block->section.key)
        set(writer, block->section.key, map_of(block->first, writer->arena));
    else
        lab_doc_write_blocks(writer, block->first);
}

static void set_list(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    struct lab_value *list = lab_value_list(writer->arena);
    const struct lab_doc_block *item = block->first;
    for (; (item = lab_doc_block_for(item, LAB_DOC_PROGRAMS)); item = item->next)
        lab_value_append(writer->arena, list, map_of(item->first, writer->arena));
    if (block->list.key)
        set(writer, block->list.key, list);
}

static void set_text(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    if (block->text.key)
        lab_value_set_string(writer->arena, writer->map, block->text.key, block->text.text);
}

static void set_lines(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    for (int i = 0; i < block->lines.count; i++)
        lab_doc_set_cell(writer->arena, writer->map, &block->lines.cells[i],
                         &block->lines.columns[i]);
}

static void set_table(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_doc_table *table = block->table;
    struct lab_value *list = lab_value_list(writer->arena);
    for (int r = 0; table->key && r < table->row_count; r++) {
        struct lab_value *row = lab_value_map(writer->arena);
        for (int c = 0; c < table->column_count; c++)
            lab_doc_set_cell(writer->arena, row, &table->cells[r * table->column_count + c],
                             &table->columns[c]);
        lab_value_append(writer->arena, list, row);
    }
    if (table->key)
        set(writer, table->key, list);
}

static void set_items(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    struct lab_value *list = lab_value_list(writer->arena);
    for (int i = 0; i < block->notes.count; i++)
        lab_value_append(writer->arena, list,
                         lab_value_string(writer->arena, block->notes.items[i].text));
    if (block->notes.key)
        set(writer, block->notes.key, list);
}

static void set_data(struct lab_doc_writer *writer, const struct lab_doc_block *block) {
    const struct lab_value *value = block->data.value;
    if (block->data.key)
        set(writer, block->data.key, block->data.value);
    for (int i = 0; !block->data.key && i < value->count; i++)
        set(writer, value->keys[i], value->items[i]);
}

static lab_doc_block_writer *const kinds[LAB_DOC_KIND_COUNT] = {
    [LAB_DOC_SECTION] = set_section, [LAB_DOC_LIST] = set_list,   [LAB_DOC_TEXT] = set_text,
    [LAB_DOC_LINES] = set_lines,     [LAB_DOC_TABLE] = set_table, [LAB_DOC_ITEMS] = set_items,
    [LAB_DOC_DATA] = set_data,
};

static void fill(struct lab_value *map, const struct lab_doc_block *block,
                 struct lab_arena *arena) {
    struct lab_doc_writer writer = {
        .kinds = kinds, .readers = LAB_DOC_PROGRAMS, .arena = arena, .map = map};
    lab_doc_write_blocks(&writer, block);
}

static struct lab_value *map_of(const struct lab_doc_block *block, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    fill(map, block, arena);
    return map;
}

struct lab_value *lab_doc_value(const struct lab_doc *doc, struct lab_arena *arena) {
    return map_of(doc->root.first, arena);
}

static void json_write(const struct lab_doc *doc, struct lab_style style, struct lab_str *out) {
    (void)style;
    LAB_AUTO(arena, arena);
    struct lab_value *map = lab_value_map(&arena);
    lab_value_set_int(&arena, map, "schema", LAB_JSON_SCHEMA);
    fill(map, doc->root.first, &arena);
    lab_json_write(map, 2, out);
    lab_str_add(out, "\n");
}

const struct lab_doc_format lab_doc_format_json = {
    .name = "json", .ending = ".json", .readers = LAB_DOC_PROGRAMS, .write = json_write};
