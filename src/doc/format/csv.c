/*
 * csv.c: rows as CSV: a header line, RFC 4180's quotes where they are needed, lines that end with a
 * line feed. What there is none of is an empty field; lists and maps are JSON. A text that a
 * spreadsheet would compute has a "'" before it.
 */
#include "base/json.h"
#include "base/tty/safe_text.h"
#include "doc/doc.h"

#include <math.h>

static void add_value(const struct lab_value *value, struct lab_str *out) {
    LAB_AUTO(str, text);
    if (value->type != LAB_VALUE_NULL)
        lab_json_write(value, 0, &text);
    lab_safe_text_add_csv(out, value->type == LAB_VALUE_STRING ? value->string : text.text, false);
}

static void csv_cell(const struct lab_doc_cell *cell, const struct lab_doc_column *column,
                     bool first, struct lab_str *out) {
    if (!first)
        lab_str_add_bytes(out, ",", 1);
    if (cell->data)
        add_value(cell->data, out);
    else if (cell->exact)
        lab_str_add_decimal(out, cell->count, cell->decimals);
    else if (lab_unit_is_words(column->unit) || isnan(cell->value))
        lab_safe_text_add_csv(out, cell->text ? cell->text : "", false);
    else
        lab_str_add_double(out, lab_unit_scaled(cell->value, column->unit));
}

static void csv_head(const struct lab_doc_column *columns, int count, struct lab_str *out) {
    static const struct lab_doc_column title = {"title", NULL, LAB_UNIT_TEXT};
    bool first = true;
    for (int i = 0; i < count; i++) {
        struct lab_doc_cell cell = lab_cell_text(columns[i].key);
        if (columns[i].key)
            csv_cell(&cell, &title, first, out);
        first &= !columns[i].key;
    }
    lab_str_add(out, "\n");
}

const struct lab_doc_format lab_doc_format_csv = {.name = "csv",
                                                  .ending = ".csv",
                                                  .readers = LAB_DOC_PROGRAMS,
                                                  .head = csv_head,
                                                  .cell = csv_cell,
                                                  .row_end = "\n"};
