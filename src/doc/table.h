/* table.h: cells in columns that line up. */
#ifndef LAB_DOC_TABLE_H
#define LAB_DOC_TABLE_H

#include "base/mem.h"
#include "base/str.h"
#include "base/tty/text.h"
#include "doc/column.h"

#include <stdbool.h>

struct lab_table;

struct lab_table *lab_table_open(void);
void lab_table_close(struct lab_table *table);
void lab_table_column(struct lab_table *table, const char *title, enum lab_align align);
/* The next cell of the current row, left to right; after the last column a new row begins. */
void lab_table_cell(struct lab_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Indented by two. Where it is too wide, the widest left-aligned columns are cut. */
void lab_table_write(const struct lab_table *table, struct lab_style style, struct lab_str *out);

#endif
