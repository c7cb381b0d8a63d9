/* jsonl.c: rows as JSON lines: an object for each, with what a document's table has in JSON. */
#include "base/json.h"
#include "doc/doc.h"

static void jsonl_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                       bool first, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_value *map = lab_value_map(&arena);
    lab_doc_set_cell(&arena, map, cell, column);
    for (int i = 0; i < map->count; i++) {
        lab_str_add(out, first && i == 0 ? "{" : ", ");
        lab_json_write(lab_value_string(&arena, map->keys[i]), 0, out);
        lab_str_add(out, ": ");
        lab_json_write(map->items[i], 0, out);
    }
}

const struct lab_doc_format lab_doc_format_jsonl = {.name = "jsonl",
                                                    .ending = ".jsonl",
                                                    .readers = LAB_DOC_PROGRAMS,
                                                    .cell = jsonl_cell,
                                                    .row_end = "}\n"};
