/* trace_rows.c: tables of a trace, read by the names of their columns, whichever of them exist. */
#include "store/trace/trace_internal.h"

#include "base/str.h"
#include "store/sql.h"

#include <stdlib.h>

int trace_fail(const struct trace_reader *reader, struct lab_err *err) {
    const char *text = sqlite3_errmsg(reader->db);
    switch (sqlite3_errcode(reader->db) & 0xff) {
    case SQLITE_NOTADB:
        return lab_err_set(err, LAB_ERR_USER, "%s is not a trace: not an SQLite database",
                           reader->path);
    case SQLITE_CORRUPT:
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is damaged or cut off: %s", reader->path, text);
    case SQLITE_BUSY:
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is being written by another process",
                           reader->path);
    default:
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s can't be read: %s", reader->path, text);
    }
}

/* The names that a statement gives; NULL-terminated, in the arena. NULL: it failed. */
static const char **read_names(const struct trace_reader *reader, const char *sql, const char *of) {
    const char **names = lab_arena_alloc(reader->arena, 1, sizeof *names);
    int count = 0, code;
    LAB_AUTO_STATEMENT *rows = NULL;
    if (sqlite3_prepare_v2(reader->db, sql, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_text(rows, 1, of, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(rows, 0);
        LAB_ADD(names, count, reader->arena) = lab_arena_strdup(reader->arena, name ? name : "");
    }
    return code == SQLITE_DONE ? names : NULL;
}

int trace_read_tables(struct trace_reader *reader, struct lab_err *err) {
    reader->tables = read_names(reader, "SELECT name FROM sqlite_master WHERE type = ?", "table");
    return reader->tables ? 0 : trace_fail(reader, err);
}

bool trace_has_table(const struct trace_reader *reader, const char *table) {
    return lab_str_find(table, reader->tables) >= 0;
}

int trace_rows_open(const struct trace_reader *reader, const char *table,
                    const char *const *columns, int required, sqlite3_stmt **ret_rows,
                    struct lab_err *err) {
    *ret_rows = NULL;
    if (!trace_has_table(reader, table))
        return 0;
    const char **present = read_names(reader, "SELECT name FROM pragma_table_info(?)", table);
    if (!present)
        return trace_fail(reader, err);
    LAB_AUTO(str, sql);
    lab_str_add(&sql, "SELECT ");
    for (int i = 0; columns[i]; i++) {
        bool found = lab_str_find(columns[i], present) >= 0;
        if (!found && i < required) {
            return lab_err_set(err, LAB_ERR_USER,
                               "%s is not a readable trace: its table %s has no column %s",
                               reader->path, table, columns[i]);
        }
        lab_str_printf(&sql, found ? "%s\"%s\"" : "%sNULL", i ? ", " : "", columns[i]);
    }
    lab_str_printf(&sql, " FROM \"%s\"", table);
    int code = sqlite3_prepare_v2(reader->db, sql.text, -1, ret_rows, NULL);
    return code == SQLITE_OK ? 0 : trace_fail(reader, err);
}

int trace_rows_next(const struct trace_reader *reader, sqlite3_stmt *rows, struct lab_err *err) {
    if (!rows)
        return 0;
    int code = sqlite3_step(rows);
    if (code == SQLITE_ROW)
        return 1;
    int result = code == SQLITE_DONE ? 0 : trace_fail(reader, err);
    sqlite3_finalize(rows);
    return result;
}

int trace_count_rows(const struct trace_reader *reader, const char *table, size_t *ret_count,
                     struct lab_err *err) {
    *ret_count = 0;
    if (!trace_has_table(reader, table))
        return 0;
    char sql[128];
    LAB_AUTO_STATEMENT *rows = NULL;
    snprintf(sql, sizeof sql, "SELECT count(*) FROM \"%s\"", table);
    if (sqlite3_prepare_v2(reader->db, sql, -1, &rows, NULL) != SQLITE_OK ||
        sqlite3_step(rows) != SQLITE_ROW)
        return trace_fail(reader, err);
    *ret_count = (size_t)sqlite3_column_int64(rows, 0);
    return 0;
}

/* --- strings --- */

static int by_id(const void *a, const void *b) {
    int64_t x = ((const struct trace_string *)a)->id, y = ((const struct trace_string *)b)->id;
    return (x > y) - (x < y);
}

int trace_read_strings(struct trace_reader *reader, struct lab_err *err) {
    static const char *const columns[] = {"id", "value", NULL};
    sqlite3_stmt *rows;
    size_t most;
    if (trace_count_rows(reader, "StringIds", &most, err) < 0 ||
        trace_rows_open(reader, "StringIds", columns, 2, &rows, err) < 0)
        return -1;
    reader->strings = lab_arena_alloc(reader->arena, most + 1, sizeof *reader->strings);
    int status;
    while ((status = trace_rows_next(reader, rows, err)) > 0) {
        const char *text = (const char *)sqlite3_column_text(rows, 1);
        if (reader->string_count < most)
            reader->strings[reader->string_count++] = (struct trace_string){
                sqlite3_column_int64(rows, 0), lab_arena_strdup(reader->arena, text ? text : "")};
    }
    qsort(reader->strings, reader->string_count, sizeof *reader->strings, by_id);
    return status;
}

const char *trace_text(const struct trace_reader *reader, sqlite3_stmt *rows, int column) {
    int type = sqlite3_column_type(rows, column);
    if (type == SQLITE_TEXT)
        return lab_arena_strdup(reader->arena, (const char *)sqlite3_column_text(rows, column));
    if (type != SQLITE_INTEGER || reader->string_count == 0)
        return NULL;
    struct trace_string wanted = {.id = sqlite3_column_int64(rows, column)};
    const struct trace_string *found =
        bsearch(&wanted, reader->strings, reader->string_count, sizeof wanted, by_id);
    return found ? found->text : NULL;
}

/* --- who --- */

uint32_t trace_process_of(int64_t global) {
    return (uint32_t)(((uint64_t)global >> 24) & 0xffffff);
}

uint32_t trace_thread_of(int64_t global) {
    return (uint32_t)((uint64_t)global & 0xffffff);
}
