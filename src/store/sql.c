/* sql.c: values into SQLite's statements and out of them. */
#include "store/sql.h"

#include <math.h>

void lab_sql_bind(sqlite3_stmt *statement, const struct lab_sql_cell *row) {
    for (int i = 0; row[i].type != LAB_SQL_END; i++) {
        const struct lab_sql_cell *cell = &row[i];
        if (cell->type == LAB_SQL_INT)
            sqlite3_bind_int64(statement, i + 1, cell->integer);
        else if (cell->type == LAB_SQL_NUMBER)
            sqlite3_bind_double(statement, i + 1, cell->number);
        else if (cell->type == LAB_SQL_TEXT) /* one too long for SQLite stays NULL */
            sqlite3_bind_text(statement, i + 1, cell->text ? cell->text : "", -1, SQLITE_STATIC);
        else if (cell->type == LAB_SQL_BLOB)
            sqlite3_bind_blob64(statement, i + 1, cell->bytes, cell->size, SQLITE_STATIC);
        else
            sqlite3_bind_null(statement, i + 1);
    }
}

char *lab_sql_text(sqlite3_stmt *row, int column, struct lab_arena *arena) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return lab_arena_strndup(arena, text ? text : "",
                             text ? (size_t)sqlite3_column_bytes(row, column) : 0);
}

double lab_sql_number(sqlite3_stmt *row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN
                                                           : sqlite3_column_double(row, column);
}

int64_t lab_sql_time(sqlite3_stmt *row, int column) {
    int64_t time_ns = sqlite3_column_int64(row, column);
    return time_ns >= -1 && time_ns <= 4000000000000000000 ? time_ns : 0; /* -1 = unknown */
}

int64_t lab_sql_count(sqlite3_stmt *row, int column) {
    int64_t count = sqlite3_column_int64(row, column);
    return count >= 0 && count <= (int64_t)1 << 53 ? count : 0;
}

int lab_sql_small(sqlite3_stmt *row, int column) {
    int64_t number = sqlite3_column_int64(row, column);
    return number >= -1 && number <= 1000000000 ? (int)number : -1;
}
