/* store_sql.c: statements and transactions on one connection, and what SQLite's refusals mean. */
#include "store/store_internal.h"

#include <errno.h>

static int fail_full(struct lab_store *store, const char *where, struct lab_err *err) {
    lab_err_set(err, LAB_ERR_SYSTEM, "%s: no space left%s", store->path, where);
    return lab_err_hint(err, LAB_HINT_OUT_OF_SPACE);
}

static int fail_system(struct lab_store *store, const char *what, struct lab_err *err) {
    int errno_value = sqlite3_system_errno(store->db);
    if (errno_value == ENOSPC || errno_value == EDQUOT)
        return fail_full(store, errno_value == EDQUOT ? " in the disk quota" : "", err);
    if (errno_value)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno_value, "%s %s", store->path, what);
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s %s: %s", store->path, what,
                       sqlite3_errmsg(store->db));
}

int lab_store_check_beside(struct lab_store *store, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    const char *refused = lab_sql_find_refused(store->path, &arena);
    return !refused ? 0
                    : lab_err_set(err, LAB_ERR_SYSTEM,
                                  "%s is a link, a pipe or a device, or has a second name (a hard "
                                  "link): it isn't opened; move it away",
                                  refused);
}

int lab_store_fail(struct lab_store *store, struct lab_err *err) {
    const char *text = sqlite3_errmsg(store->db);
    switch (sqlite3_errcode(store->db) & 0xff) {
    case SQLITE_FULL:
        return fail_full(store, "", err);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s: another process is writing to it, and only one can at a time",
                           store->path);
    case SQLITE_NOTADB:
        return lab_err_set(err, LAB_ERR_USER, "%s is not %s: not an SQLite database", store->path,
                           store->noun);
    case SQLITE_CORRUPT:
        return lab_err_set(err, LAB_ERR_WRONG, "%s is damaged: %s", store->path, text);
    case SQLITE_ERROR: /* it isn't what it should be: a table or a column is missing */
        return lab_err_set(err, LAB_ERR_WRONG, "%s: %s", store->path, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s can't be written to: %s", store->path, text);
    case SQLITE_CANTOPEN:
        return lab_store_check_beside(store, err) < 0 ? -1
                                                      : fail_system(store, "can't be opened", err);
    case SQLITE_IOERR:
        return fail_system(store, "can't be read or written", err);
    default:
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s: %s", store->path, text);
    }
}

int lab_store_step(struct lab_store *store, sqlite3_stmt *statement, struct lab_err *err) {
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return 1;
    int result = code == SQLITE_DONE ? 0 : lab_store_fail(store, err);
    sqlite3_reset(statement);
    return result;
}

sqlite3_stmt *lab_store_prepare(struct lab_store *store, const char *sql, struct lab_err *err) {
    for (int i = 0; i < store->statement_count; i++)
        if (store->statements[i].sql == sql)
            return store->statements[i].prepared;
    sqlite3_stmt *prepared = NULL;
    if (sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, NULL)) {
        lab_store_fail(store, err);
        return NULL;
    }
    LAB_PUSH(store->statements, store->statement_count) =
        (struct lab_store_statement){sql, prepared};
    return prepared;
}

sqlite3_stmt *lab_store_query(struct lab_store *store, const char *sql,
                              const struct lab_sql_cell *row, struct lab_err *err) {
    sqlite3_stmt *prepared = lab_store_prepare(store, sql, err);
    if (prepared)
        lab_sql_bind(prepared, row);
    return prepared;
}

int lab_store_find(struct lab_store *store, const char *sql, const struct lab_sql_cell *row,
                   int64_t *ret_number, struct lab_err *err) {
    sqlite3_stmt *prepared = lab_store_query(store, sql, row, err);
    int got = prepared ? lab_store_step(store, prepared, err) : -1;
    if (got > 0)
        *ret_number = sqlite3_column_int64(prepared, 0);
    sqlite3_reset(prepared);
    return got;
}

int lab_store_write(struct lab_store *store, const char *sql, const struct lab_sql_cell *row,
                    struct lab_err *err) {
    sqlite3_stmt *prepared = lab_store_query(store, sql, row, err);
    if (!prepared)
        return -1;
    int result = lab_store_step(store, prepared, err);
    sqlite3_clear_bindings(prepared);
    return result;
}

int lab_store_exec(struct lab_store *store, const char *sql, struct lab_err *err) {
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) ? lab_store_fail(store, err) : 0;
}

static int set_durable(struct lab_store *store, bool durable, struct lab_err *err) {
    if (store->durable == durable)
        return 0;
    if (lab_store_exec(
            store, durable ? "PRAGMA synchronous = EXTRA" : "PRAGMA synchronous = NORMAL", err) < 0)
        return -1;
    store->durable = durable;
    return 0;
}

int lab_store_check_name(struct lab_store *store, struct lab_err *err) {
    int moved = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) || !moved)
        return 0;
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s is gone: it was moved or removed while it was used",
                       store->path);
}

int lab_store_begin(struct lab_store *store, bool durable, struct lab_err *err) {
    if ((durable && lab_store_check_name(store, err) < 0) || set_durable(store, durable, err) < 0)
        return -1;
    return lab_store_exec(store, "BEGIN IMMEDIATE", err);
}

int lab_store_commit(struct lab_store *store, struct lab_err *err) {
    int result = lab_store_exec(store, "COMMIT", err);
    lab_store_rollback(store);
    return result;
}

void lab_store_rollback(struct lab_store *store) {
    /* some refusals, a full disk among them, have rolled back already */
    if (!sqlite3_get_autocommit(store->db))
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
}
