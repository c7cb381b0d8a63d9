/*
 * sql.h: databases, and values on their way into SQLite's statements and out of them. A row to
 * write is an array of cells in the order of the statement's parameters:
 * LAB_ROW(SQL_INT(run), SQL_TEXT(name)).
 */
#pragma once

#include "base/mem.h"

#include <sqlite3.h>
#include <stdint.h>

/*
 * As sqlite3_open_v2. Others may write where a database lies: SQLite opens no pipe there, which it
 * would wait for, and nothing beside a database (-wal, -shm, -journal) that has a second name,
 * which it would write over.
 */
int lab_sql_open(const char *file, int flags, sqlite3 **ret_db);

/* The first file beside the database that isn't opened; NULL = none. */
const char *lab_sql_find_refused(const char *path, struct lab_arena *arena);

struct lab_sql_cell {
    enum {
        LAB_SQL_END,
        LAB_SQL_NULL,
        LAB_SQL_INT,
        LAB_SQL_NUMBER,
        LAB_SQL_TEXT,
        LAB_SQL_BLOB
    } type;
    union {
        int64_t integer;
        double number;
        const char *text;
        struct {
            const void *bytes;
            size_t size;
        };
    };
};

#define SQL_NULL          ((struct lab_sql_cell){.type = LAB_SQL_NULL})
#define SQL_INT(value)    ((struct lab_sql_cell){.type = LAB_SQL_INT, .integer = (int64_t)(value)})
#define SQL_NUMBER(value) ((struct lab_sql_cell){.type = LAB_SQL_NUMBER, .number = (value)})
#define SQL_TEXT(value)   ((struct lab_sql_cell){.type = LAB_SQL_TEXT, .text = (value)})
#define SQL_BLOB(data, length)                                                                     \
    ((struct lab_sql_cell){.type = LAB_SQL_BLOB, .bytes = (data), .size = (length)})

#define LAB_ROW(...) ((const struct lab_sql_cell[]){__VA_ARGS__, {.type = LAB_SQL_END}})

#define LAB_ROW_NONE ((const struct lab_sql_cell[]){{.type = LAB_SQL_END}})

/* A statement that is finalized at the end of its scope: LAB_AUTO_STATEMENT *row = NULL; */
#define LAB_AUTO_STATEMENT __attribute__((cleanup(lab_sql_finalize))) sqlite3_stmt
static inline void lab_sql_finalize(sqlite3_stmt **statement) {
    sqlite3_finalize(*statement);
}

/* From parameter 1 on. A text that is NULL counts as "", a number that is NaN as NULL. Texts and
 * bytes must live until the statement is reset. */
void lab_sql_bind(sqlite3_stmt *statement, const struct lab_sql_cell *row);

char *lab_sql_text(sqlite3_stmt *row, int column, struct lab_arena *arena); /* NULL = "" */
double lab_sql_number(sqlite3_stmt *row, int column);                       /* NULL = NaN */

/* Of a file that anybody may have made, so that sums and differences of two stay numbers: a time in
 * ns or -1 (unknown), 0 where no clock until 2096 shows it; a count of at most 2^53, 0 where it is
 * less or more; a small number (a rank, a node), -1 where it is below that or above a thousand
 * million. */
int64_t lab_sql_time(sqlite3_stmt *row, int column);
int64_t lab_sql_count(sqlite3_stmt *row, int column);
int lab_sql_small(sqlite3_stmt *row, int column);
