/*
 * rows.h: a good database with hostile rows. An input is a list of edits, each a few bytes: which
 * table, which column, which row (the last one: all of them), what becomes of it, and the value. A
 * fuzzer that had to keep SQLite's own format whole would get no further than that.
 */
#pragma once

#include "folder.h"

#include <sqlite3.h>
#include <string.h>

#define ROWS_CELLS_MAX 512
#define ROWS_EDITS_MAX                                                                             \
    64 /* each is a statement for SQLite to parse; a column renamed, the schema */

struct rows {
    /* the database in memory, once: what an input changes is rolled back, since SQLite's reading of
     * the schema took half of an input's time */
    sqlite3 *scratch;
    char *tables[ROWS_CELLS_MAX], *columns[ROWS_CELLS_MAX]; /* one for each column of each table */
    int cell_count;
};

/* Of a good database in the folder. */
static inline void rows_learn(struct rows *rows, const char *name) {
    sqlite3 *db;
    sqlite3_stmt *cells;
    require(sqlite3_open(folder_file(name), &db) == SQLITE_OK);
    sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    require(sqlite3_prepare_v2(db,
                               "SELECT m.name, c.name FROM sqlite_master m, "
                               "pragma_table_info(m.name) c WHERE m.type = 'table' "
                               "AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, c.cid",
                               -1, &cells, NULL) == SQLITE_OK);
    while (sqlite3_step(cells) == SQLITE_ROW && rows->cell_count < ROWS_CELLS_MAX) {
        rows->tables[rows->cell_count] = strdup((const char *)sqlite3_column_text(cells, 0));
        rows->columns[rows->cell_count++] = strdup((const char *)sqlite3_column_text(cells, 1));
    }
    sqlite3_finalize(cells);
    require(sqlite3_open(":memory:", &rows->scratch) == SQLITE_OK);
    sqlite3_backup *copy = sqlite3_backup_init(rows->scratch, "main", db, "main");
    require(copy && sqlite3_backup_step(copy, -1) == SQLITE_DONE && rows->cell_count > 0);
    sqlite3_backup_finish(copy);
    sqlite3_close(db);
    sqlite3_exec(rows->scratch, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON",
                 NULL, NULL, NULL);
}

/* The value that an edit's bytes mean. */
static inline void rows_bind(sqlite3_stmt *statement, int kind, const uint8_t *bytes, int length) {
    int64_t integer = 0;
    double number = 0;
    memcpy(&integer, bytes, (size_t)(length < 8 ? length : 8));
    memcpy(&number, bytes, (size_t)(length < 8 ? length : 8));
    switch (kind % 5) {
    case 0:
        sqlite3_bind_null(statement, 1);
        break;
    case 1:
        sqlite3_bind_int64(statement, 1, integer);
        break;
    case 2:
        sqlite3_bind_double(statement, 1, number);
        break;
    case 3:
        sqlite3_bind_text(statement, 1, (const char *)bytes, length, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_bind_blob(statement, 1, bytes, length, SQLITE_TRANSIENT);
    }
}

/* One edit; what the table's own rules refuse is left as it was. */
static inline void rows_edit(const struct rows *rows, sqlite3 *db, const uint8_t edit[4],
                             const uint8_t *bytes) {
    int cell = (edit[0] | edit[1] << 8) % rows->cell_count;
    int row = edit[2] % 8, kind = edit[2] / 8, length = edit[3];
    const char *table = rows->tables[cell];
    char *words;
    if (kind == 31) /* a column that isn't there */
        words = sqlite3_mprintf("ALTER TABLE \"%w\" RENAME COLUMN \"%w\" TO gone", table,
                                rows->columns[cell]);
    else if (kind == 30)
        words = sqlite3_mprintf("DELETE FROM \"%w\" WHERE %d = 7 OR rowid = (SELECT rowid FROM "
                                "\"%w\" LIMIT 1 OFFSET %d)",
                                table, row, table, row);
    else
        words = sqlite3_mprintf("UPDATE \"%w\" SET \"%w\" = ?1 WHERE %d = 7 OR rowid = "
                                "(SELECT rowid FROM \"%w\" LIMIT 1 OFFSET %d)",
                                table, rows->columns[cell], row, table, row);
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, words, -1, &statement, NULL) == SQLITE_OK) {
        if (kind < 30)
            rows_bind(statement, kind, bytes, length);
        sqlite3_step(statement);
        sqlite3_finalize(statement);
    }
    sqlite3_free(words);
}

/* Writes the database as the input changes it: its path. */
static inline const char *rows_write(const struct rows *rows, const char *name, const uint8_t *data,
                                     size_t size) {
    sqlite3 *db = rows->scratch;
    sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    int edits = 0;
    for (size_t at = 0; at + 4 <= size && edits < ROWS_EDITS_MAX; edits++) {
        uint8_t bytes[256] = {0};
        size_t length = data[at + 3], left = size - at - 4;
        length = length < left ? length : left;
        const uint8_t edit[4] = {data[at], data[at + 1], data[at + 2], (uint8_t)length};
        memcpy(bytes, data + at + 4, length);
        rows_edit(rows, db, edit, bytes);
        at += 4 + length;
    }
    sqlite3_int64 length;
    unsigned char *bytes = sqlite3_serialize(db, "main", &length, 0);
    require(bytes);
    const char *path = folder_write(name, bytes, (size_t)length);
    sqlite3_free(bytes);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return path;
}
