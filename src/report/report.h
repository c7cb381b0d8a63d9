/*
 * report.h: figures and machines as text for people. Everything is appended to a string: the caller
 * decides where it goes. Text fits `columns` and uses UTF-8 where `style.unicode`.
 */
#ifndef LAB_REPORT_REPORT_H
#define LAB_REPORT_REPORT_H

#include "base/mem.h"
#include "base/str.h"
#include "model/machine.h"

#include <stdbool.h>

struct lab_style {
    int columns;
    bool colour, unicode;
};

/* --- tables: columns align by their kind, the header is set off --- */

enum lab_align { LAB_ALIGN_LEFT, LAB_ALIGN_RIGHT };

struct lab_table;

struct lab_table *lab_table_open(void);
void lab_table_close(struct lab_table *table);
void lab_table_column(struct lab_table *table, const char *title, enum lab_align align);
/* The next cell of the current row, left to right; after the last column a new row begins. */
void lab_table_cell(struct lab_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lab_table_write(const struct lab_table *table, struct lab_style style, struct lab_str *out);

/* --- the machine --- */

/* Nodes, cores, caches, PCI devices with their node and links: tables. */
void lab_report_machine(const struct lab_machine *machine, struct lab_style style,
                        struct lab_str *out);
/* The same as a drawing: a box for each node with its cores, memory, bridges and devices. */
void lab_report_machine_map(const struct lab_machine *machine, struct lab_style style,
                            struct lab_str *out);

#endif
