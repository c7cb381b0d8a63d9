/*
 * recording_open.c: finding out what a file is. A recording or a study is opened as any store is;
 * one that SQLite calls malformed is opened once more without its first check, which compares the
 * file's length with what its first page says: that alone is enough to refuse a file whose end is
 * missing.
 */
#include "store/recording/recording_internal.h"

#include <stdio.h>
#include <sys/stat.h>

#define NOUN "a recording"

void lab_recording_note(struct lab_recording_notes *notes, const char *format, ...) {
    char text[512];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    LAB_ADD(notes->items, notes->count, notes->arena) = lab_arena_strdup(notes->arena, text);
}

/* Either kind of file; the version is that of a study's. */
static int check(struct lab_store *store, struct lab_err *err) {
    int64_t application = 0, version = 0, tables = 0;
    if (lab_store_read_number(store, "PRAGMA application_id", &application, err) < 0 ||
        lab_store_read_number(store, "PRAGMA user_version", &version, err) < 0 ||
        lab_store_read_number(store, "SELECT count(*) FROM sqlite_master", &tables, err) < 0)
        return -1;
    if (application == LAB_STORE_APPLICATION_ID)
        return lab_store_check_study(store, err);
    if (application == 0 && tables == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is not a recording: it is empty, as one that was ended before its "
                           "first sample",
                           store->path);
    if (application != LAB_RECORDING_APPLICATION_ID)
        return lab_err_set(
            err, LAB_ERR_USER,
            "%s is not a recording or a study's file: it is an SQLite database of another program",
            store->path);
    if (version > LAB_RECORDING_VERSION)
        return lab_store_refuse_newer(store, "SELECT maker FROM recording", version,
                                      LAB_RECORDING_VERSION, err);
    if (version < 1)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s is damaged: it has no version", store->path);
    store->version = LAB_STORE_VERSION;
    return 0;
}

static bool is_malformed(const struct lab_store *store) {
    int code = store->db ? sqlite3_extended_errcode(store->db) & 0xff : SQLITE_OK;
    return code == SQLITE_CORRUPT || code == SQLITE_IOERR;
}

/* How long the file should be, from its first page; through SQLite's own descriptor, since closing
 * another one would drop its locks. */
static void note_length(struct lab_store *store, struct lab_recording_notes *notes) {
    sqlite3_file *file = NULL;
    unsigned char head[32];
    sqlite3_int64 size = 0;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
        !file->pMethods || file->pMethods->xRead(file, head, sizeof head, 0) ||
        file->pMethods->xFileSize(file, &size))
        return;
    int64_t page = head[16] << 8 | head[17];
    page = page == 1 ? 65536 : page;
    int64_t pages =
        (int64_t)head[28] << 24 | (int64_t)head[29] << 16 | (int64_t)head[30] << 8 | head[31];
    if (pages * page > size)
        lab_recording_note(notes, "the file is cut off: %.1f of %.1f KiB are there",
                           (double)size / 1024, (double)(pages * page) / 1024);
}

static int open_damaged(struct lab_store *store, struct lab_recording_notes *notes,
                        struct lab_err *err) {
    const char *file = lab_store_file_name(notes->arena, store->path);
    if (lab_sql_open(file, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, &store->db))
        return store->db ? lab_store_fail(store, err)
                         : lab_err_set(err, LAB_ERR_SYSTEM, "%s: SQLite can't start", store->path);
    sqlite3_busy_timeout(store->db, LAB_STORE_WAIT_MS);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    /* nothing is written: the file is open for reading; this only turns the check off */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
    return lab_store_exec(store, "PRAGMA cell_size_check = ON", err) < 0 || check(store, err) < 0
               ? -1
               : 0;
}

static bool is_beside(const char *path, const char *suffix, struct lab_arena *arena) {
    struct stat info;
    return stat(lab_arena_printf(arena, "%s%s", path, suffix), &info) == 0;
}

/*
 * A recording that was not closed is still being written, or whoever wrote it was killed or found
 * no space. Its last changes lie beside it; without them it is whole, but older. A study's file is
 * open as long as the study runs, and that is told elsewhere.
 */
static void note_open(struct lab_store *store, bool has_wal, struct lab_recording_notes *notes) {
    LAB_AUTO_STATEMENT *row = NULL;
    int64_t application = 0;
    lab_store_read_number(store, "PRAGMA application_id", &application, NULL);
    if (sqlite3_prepare_v2(store->db, "PRAGMA journal_mode", -1, &row, NULL))
        return;
    if (sqlite3_step(row) == SQLITE_ROW &&
        lab_str_equal((const char *)sqlite3_column_text(row, 0), "wal")) {
        if (!has_wal)
            lab_recording_note(notes,
                               "the end: the file was not closed, and %s-wal, which had its last "
                               "samples, is missing",
                               store->path);
        else if (application == LAB_RECORDING_APPLICATION_ID)
            lab_recording_note(notes, "the end: the recording was not closed; it is still being "
                                      "written, or was interrupted");
    }
}

int lab_recording_open(const char *path, struct lab_recording_notes *notes, bool *ret_damaged,
                       struct lab_store **ret_store, struct lab_err *err) {
    if (lab_store_check_path(path, LAB_STORE_READ, NOUN, err) < 0)
        return -1;
    bool has_wal = is_beside(path, "-wal", notes->arena);
    struct lab_err first = LAB_ERR_INIT;
    struct lab_store *store = lab_store_new(path, NOUN, check);
    *ret_damaged = false;
    if (lab_store_open_reader(store, &first) < 0) {
        bool again = is_malformed(store);
        lab_store_abandon(store);
        store = lab_store_new(path, NOUN, check);
        if (!again || open_damaged(store, notes, &first) < 0) {
            lab_store_abandon(store);
            return lab_err_set(err, first.code, "%s", first.text);
        }
        *ret_damaged = true;
    }
    /* SQLite takes a last page that is cut for a whole one, with zeros at its end */
    if (!has_wal || *ret_damaged)
        note_length(store, notes);
    note_open(store, has_wal, notes);
    *ret_store = store;
    return 0;
}
