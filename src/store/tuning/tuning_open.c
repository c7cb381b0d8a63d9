/*
 * tuning_open.c: opening the tuning cache, and what is done with a file that is none.
 *
 * The journal is SQLite's plain one, not a WAL: homes lie on network file systems, and there is
 * little to write. Setting a file aside happens under a lock of its own, so that of two tuners that
 * meet an old one only one moves it. Only what the file itself is counts as foreign: a full disk or
 * a lack of rights says nothing about it.
 */
#include "store/tuning/tuning_internal.h"

#include "base/file/file.h"
#include "base/file/own.h"
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define APPLICATION_ID 0x676c6174 /* "glat" */
#define WAIT_MS        10000

static const char schema[] =
    "CREATE TABLE entry ("
    "  key TEXT PRIMARY KEY, kernel TEXT NOT NULL, shape TEXT NOT NULL, device TEXT NOT NULL,"
    "  config TEXT NOT NULL, time_s REAL, low_s REAL, high_s REAL, certain INTEGER NOT NULL,"
    "  tuned_wall_ns INTEGER NOT NULL, result TEXT NOT NULL);"
    "CREATE TABLE trial ("
    "  session TEXT NOT NULL, config TEXT NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,"
    "  rung INTEGER NOT NULL, median_s REAL, low_s REAL, high_s REAL,"
    "  PRIMARY KEY (session, config));";

const char *lab_tuning_cache_path(struct lab_arena *arena) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        return lab_arena_printf(arena, "%s/gpulab/tuning.db", cache);
    return home && home[0] == '/' ? lab_arena_printf(arena, "%s/.cache/gpulab/tuning.db", home)
                                  : NULL;
}

/* --- statements --- */

int tuning_fail(const struct lab_tuning_cache *cache, struct lab_err *err) {
    int code = sqlite3_errcode(cache->db) & 0xff;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s: another process has been writing to it for ten seconds",
                           cache->path);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "%s is damaged (%s); 'gpulab cache clear tuning' sets it aside",
                           cache->path, sqlite3_errmsg(cache->db));
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s: %s", cache->path, sqlite3_errmsg(cache->db));
}

int tuning_exec(const struct lab_tuning_cache *cache, const char *sql, struct lab_err *err) {
    return sqlite3_exec(cache->db, sql, NULL, NULL, NULL) ? tuning_fail(cache, err) : 0;
}

int tuning_end(struct lab_tuning_cache *cache, int result, struct lab_err *err) {
    if (result == 0)
        result = tuning_exec(cache, "COMMIT", err);
    if (result < 0)
        sqlite3_exec(cache->db, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

sqlite3_stmt *tuning_query(const struct lab_tuning_cache *cache, const char *sql,
                           const struct lab_sql_cell *row, struct lab_err *err) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(cache->db, sql, -1, &statement, NULL))
        tuning_fail(cache, err);
    else
        lab_sql_bind(statement, row);
    return statement;
}

int tuning_write(const struct lab_tuning_cache *cache, const char *sql,
                 const struct lab_sql_cell *row, struct lab_err *err) {
    LAB_AUTO_STATEMENT *statement = tuning_query(cache, sql, row, err);
    if (!statement)
        return -1;
    return sqlite3_step(statement) == SQLITE_DONE ? 0 : tuning_fail(cache, err);
}

/* --- opening --- */

static int read_number(const struct lab_tuning_cache *cache, const char *sql, int *ret_number) {
    LAB_AUTO_STATEMENT *statement = NULL;
    if (sqlite3_prepare_v2(cache->db, sql, -1, &statement, NULL) ||
        sqlite3_step(statement) != SQLITE_ROW)
        return -1;
    *ret_number = sqlite3_column_int(statement, 0);
    return 0;
}

enum kind { KIND_NEW, KIND_OURS, KIND_FOREIGN, KIND_DAMAGED, KIND_UNKNOWN };

struct finding {
    enum kind kind;
    int version; /* of a foreign one; 0 = it is none of ours at all */
};

/* Of a statement that failed: whether it is the file's content that is at fault. */
static enum kind kind_of_failure(const struct lab_tuning_cache *cache, enum kind at_fault) {
    switch (sqlite3_errcode(cache->db) & 0xff) {
    case SQLITE_NOTADB:
        return KIND_FOREIGN;
    case SQLITE_CORRUPT:
        return KIND_DAMAGED;
    case SQLITE_ERROR: /* no such table, no such column */
        return at_fault;
    default:
        return KIND_UNKNOWN;
    }
}

static bool can_prepare(const struct lab_tuning_cache *cache, const char *sql) {
    LAB_AUTO_STATEMENT *statement = NULL;
    return sqlite3_prepare_v2(cache->db, sql, -1, &statement, NULL) == SQLITE_OK;
}

static struct finding look_at(const struct lab_tuning_cache *cache) {
    struct finding finding = {KIND_OURS, 0};
    int application = 0, tables = 0;
    if (read_number(cache, "SELECT count(*) FROM sqlite_master", &tables) ||
        read_number(cache, "PRAGMA application_id", &application) ||
        read_number(cache, "PRAGMA user_version", &finding.version))
        finding.kind = kind_of_failure(cache, KIND_FOREIGN);
    else if (!tables && !application)
        finding.kind = KIND_NEW;
    else if (application != APPLICATION_ID)
        finding = (struct finding){KIND_FOREIGN, 0};
    else if (finding.version != LAB_TUNING_CACHE_VERSION)
        finding.kind = KIND_FOREIGN;
    else if (!can_prepare(cache, "SELECT " TUNING_ENTRY_COLUMNS " FROM entry") ||
             !can_prepare(cache, "SELECT " TUNING_TRIAL_COLUMNS " FROM trial"))
        finding.kind = kind_of_failure(cache, KIND_DAMAGED);
    return finding;
}

/* All of its pages: too long for a look-up, nothing beside a tuning. */
static struct finding look_through(const struct lab_tuning_cache *cache) {
    struct finding finding = look_at(cache);
    LAB_AUTO_STATEMENT *statement = NULL;
    if (finding.kind != KIND_OURS)
        return finding;
    if (sqlite3_prepare_v2(cache->db, "PRAGMA quick_check(1)", -1, &statement, NULL) ||
        sqlite3_step(statement) != SQLITE_ROW)
        finding.kind = kind_of_failure(cache, KIND_DAMAGED);
    else if (!lab_str_equal((const char *)sqlite3_column_text(statement, 0), "ok"))
        finding.kind = KIND_DAMAGED;
    return finding;
}

static int open_file(struct lab_tuning_cache *cache, int flags, struct lab_err *err) {
    if (lab_sql_open(cache->path, flags | SQLITE_OPEN_EXRESCODE, &cache->db)) {
        lab_err_set(err, LAB_ERR_SYSTEM, "%s can't be opened: %s", cache->path,
                    cache->db ? sqlite3_errmsg(cache->db) : "out of memory");
        sqlite3_close(cache->db);
        cache->db = NULL;
        return -1;
    }
    sqlite3_busy_timeout(cache->db, WAIT_MS);
    /* a journal that came back after a power cut would undo what was said to be kept */
    sqlite3_exec(cache->db, "PRAGMA synchronous = EXTRA", NULL, NULL, NULL);
    return 0;
}

static const char *describe(struct finding finding, struct lab_arena *arena) {
    if (finding.kind == KIND_DAMAGED)
        return "damaged";
    return finding.version
               ? lab_arena_printf(arena, "of version %d, this program writes version %d",
                                  finding.version, LAB_TUNING_CACHE_VERSION)
               : "no cache of tuned configurations";
}

/* Makes the tables, unless another process was faster. */
static int create(const struct lab_tuning_cache *cache, struct lab_err *err) {
    char marks[96];
    snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             APPLICATION_ID, LAB_TUNING_CACHE_VERSION);
    if (tuning_exec(cache, "BEGIN IMMEDIATE", err))
        return -1;
    if (look_at(cache).kind == KIND_NEW &&
        (tuning_exec(cache, schema, err) || tuning_exec(cache, marks, err))) {
        sqlite3_exec(cache->db, "ROLLBACK", NULL, NULL, NULL);
        return -1;
    }
    return tuning_exec(cache, "COMMIT", err);
}

static int set_aside(const char *path, struct finding finding, struct lab_arena *arena,
                     const char **ret_note, struct lab_err *err) {
    const char *to = NULL;
    int result = -1;
    for (int i = 0; i < 1000 && result < 0; i++) {
        to = i ? lab_arena_printf(arena, "%s.old-%d", path, i)
               : lab_arena_printf(arena, "%s.old", path);
        result = lab_own_rename_new(path, to);
        if (result < 0 && errno != EEXIST)
            break;
    }
    if (result < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s can't be set aside", path);
    const char *journal = lab_arena_printf(arena, "%s-journal", path);
    lab_own_remove(journal); /* it belongs to what was moved; a new file must not meet it */
    *ret_note = lab_arena_printf(arena, "%s is %s: it was set aside as %s", path,
                                 describe(finding, arena), to);
    return 0;
}

/* -1, 0, or 1: it was set aside, open it again. */
static int open_writable(struct lab_tuning_cache *cache, struct lab_arena *arena,
                         const char **ret_note, struct lab_err *err) {
    if (open_file(cache, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err))
        return -1;
    struct finding finding = look_through(cache);
    switch (finding.kind) {
    case KIND_OURS:
        return 0;
    case KIND_NEW:
        return create(cache, err);
    case KIND_UNKNOWN:
        return tuning_fail(cache, err);
    case KIND_FOREIGN:
    case KIND_DAMAGED:
        break;
    }
    sqlite3_close(cache->db);
    cache->db = NULL;
    return set_aside(cache->path, finding, arena, ret_note, err) ? -1 : 1;
}

static int make_folder(const char *path, struct lab_arena *arena, struct lab_err *err) {
    const char *slash = strrchr(path, '/'), *refused;
    if (!slash || slash == path)
        return 0;
    const char *folder = lab_arena_strndup(arena, path, (size_t)(slash - path));
    int reason = lab_file_make_folders(folder, 0700, arena, &refused);
    return reason ? lab_err_set_errno(err, LAB_ERR_SYSTEM, reason, "%s can't be made", refused) : 0;
}

static int open_for_writing(struct lab_tuning_cache *cache, struct lab_arena *arena,
                            const char **ret_note, struct lab_err *err) {
    if (make_folder(cache->path, arena, err))
        return -1;
    const char *lock = lab_arena_printf(arena, "%s.lock", cache->path);
    LAB_AUTO_CLOSE int fd = lab_own_open(lock, LAB_OWN_CHANGE, err);
    if (fd < 0)
        return -1;
    int result;
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        ;
    result = open_writable(cache, arena, ret_note, err);
    if (result == 1)
        result = open_writable(cache, arena, ret_note, err);
    return result;
}

/*
 * SQLite may write all the same: a process that was killed in a transaction left a journal, which
 * has to be played back first. Where the file can't be written it is read as it is.
 */
static int open_for_reading(struct lab_tuning_cache *cache, struct lab_arena *arena,
                            const char **ret_note, struct lab_err *err) {
    if (access(cache->path, F_OK) != 0)
        return 0;
    if (open_file(cache, SQLITE_OPEN_READWRITE, err))
        return -1;
    struct finding finding = look_at(cache);
    if (finding.kind == KIND_OURS)
        return 0;
    if (finding.kind == KIND_UNKNOWN)
        return tuning_fail(cache, err);
    if (finding.kind != KIND_NEW)
        *ret_note = lab_arena_printf(arena, "%s is %s: it isn't used", cache->path,
                                     describe(finding, arena));
    sqlite3_close(cache->db);
    cache->db = NULL;
    return 0;
}

int lab_tuning_cache_open(const char *path, bool writable, struct lab_arena *arena,
                          struct lab_tuning_cache **ret_cache, const char **ret_note,
                          struct lab_err *err) {
    const char *note = NULL;
    struct lab_tuning_cache *cache = lab_mem_alloc(1, sizeof *cache);
    cache->path = lab_arena_strdup(arena, path);
    if (writable ? open_for_writing(cache, arena, &note, err)
                 : open_for_reading(cache, arena, &note, err)) {
        lab_tuning_cache_close(cache);
        return -1;
    }
    if (ret_note)
        *ret_note = note;
    *ret_cache = cache;
    return 0;
}

void lab_tuning_cache_close(struct lab_tuning_cache *cache) {
    if (!cache)
        return;
    sqlite3_close(cache->db);
    lab_mem_free(cache);
}
