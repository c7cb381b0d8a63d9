/*
 * trace_internal.h: what the files that read traces share: the connection, the strings that rows
 * refer to by number, and tables whose columns are asked for first.
 */
#pragma once

#include "store/trace/trace_read.h"

#include <sqlite3.h>
#include <stdbool.h>

struct trace_string {
    int64_t id;
    const char *text;
};

struct trace_reader {
    sqlite3 *db;
    const char *path; /* for messages */
    struct lab_arena *arena;
    const char **tables;          /* names; NULL-terminated */
    struct trace_string *strings; /* ascending */
    size_t string_count;
};

int trace_fail(const struct trace_reader *reader, struct lab_err *err);

/* The first look at the file: what is no database is told here. */
int trace_read_tables(struct trace_reader *reader, struct lab_err *err);
bool trace_has_table(const struct trace_reader *reader, const char *table);

/*
 * Opens the rows of a table: `columns` (NULL-terminated) in this order, NULL for those that it
 * lacks. The first `required` of them must be there. A table that isn't there has no rows:
 * `ret_rows` is NULL.
 */
int trace_rows_open(const struct trace_reader *reader, const char *table,
                    const char *const *columns, int required, sqlite3_stmt **ret_rows,
                    struct lab_err *err);
/* 1 = a row, 0 = the end, -1 = an error. At the end and after an error the rows are closed. */
int trace_rows_next(const struct trace_reader *reader, sqlite3_stmt *rows, struct lab_err *err);

/* At most so many rows. */
int trace_count_rows(const struct trace_reader *reader, const char *table, size_t *ret_count,
                     struct lab_err *err);

/* The text of a column that holds it or the number of a string; NULL = neither. */
const char *trace_text(const struct trace_reader *reader, sqlite3_stmt *rows, int column);
int trace_read_strings(struct trace_reader *reader, struct lab_err *err);

/* Nsight packs who did something into one number: thread below, process above it. */
uint32_t trace_process_of(int64_t global);
uint32_t trace_thread_of(int64_t global);

/* --- trace_records.c --- */

/* The tables that tell of work on a device, NULL-terminated. */
extern const char *const trace_device_tables[];

/* Everything of one process; 0 = whoever it was. */
int trace_read_records(const struct trace_reader *reader, uint32_t process,
                       struct lab_trace *ret_trace, struct lab_err *err);
