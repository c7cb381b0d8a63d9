/* jsonl.c: rows as JSON lines: an object for each. */
#include "doc/doc.h"

static void jsonl_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                       bool first, struct lab_str *out) {
    lab_str_add(out, first ? "{" : ", ");
    struct lab_doc_cell key = lab_cell_text(column->key);
    lab_doc_add_json(&key, LAB_UNIT_TEXT, out);
    lab_str_add(out, ": ");
    lab_doc_add_json(cell, column->unit, out);
}

const struct lab_doc_format lab_doc_format_jsonl = {.name = "jsonl",
                                                    .ending = ".jsonl",
                                                    .readers = LAB_DOC_PROGRAMS,
                                                    .cell = jsonl_cell,
                                                    .row_end = "}\n"};
