/*
 * store.c: opening and closing a study's file.
 *
 * While it is written the file is in WAL mode, so that readers see every commit without disturbing
 * the writer. An orderly close puts it back into rollback mode: such a file needs nothing beside it
 * and is read from anywhere, read-only media included, where a WAL needs two files to be made.
 *
 * Nothing here may open the file by itself and close it again: that would drop the locks that
 * SQLite holds on it in this process. Hence stat and access.
 */
#include "store/store_internal.h"

#include "base/file/file.h"
#include "base/str.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Network and cluster file systems that linux/magic.h doesn't know in every version. */
#define CIFS_TYPE     0xff534d42UL
#define SMB2_TYPE     0xfe534d42UL
#define LUSTRE_TYPE   0x0bd00bd0UL
#define GPFS_TYPE     0x47504653UL
#define BEEGFS_TYPE   0x19830326UL
#define GFS2_TYPE     0x01161970UL
#define PANFS_TYPE    0xaad7aaeaUL
#define ORANGEFS_TYPE 0x20030528UL
#define VBOXSF_TYPE   0x786f4256UL
#define FUSE_TYPE     0x65735546UL /* sshfs and others: all have this type */
#define CEPH_TYPE     0x00c36400UL
#define OCFS2_TYPE    0x7461636fUL
#define SMB_TYPE      0x517bUL

bool lab_store_shares_memory(unsigned long type) {
    static const unsigned long network[] = {
        NFS_SUPER_MAGIC, SMB_TYPE,   CIFS_TYPE,  SMB2_TYPE,       LUSTRE_TYPE,     GPFS_TYPE,
        BEEGFS_TYPE,     GFS2_TYPE,  PANFS_TYPE, ORANGEFS_TYPE,   VBOXSF_TYPE,     FUSE_TYPE,
        CEPH_TYPE,       OCFS2_TYPE, V9FS_MAGIC, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC};
    for (size_t i = 0; i < sizeof network / sizeof *network; i++) {
        /* statfs gives the types above 2³¹ as negative numbers on some machines */
        if ((type & 0xffffffffUL) == network[i])
            return false;
    }
    return true;
}

/* --- what is there --- */

int lab_store_check_path(const char *path, enum lab_store_mode mode, const char *noun,
                         struct lab_err *err) {
    struct stat info;
    if (stat(path, &info) < 0) {
        bool users = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG;
        return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno, "%s", path);
    }
    if (S_ISDIR(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a directory, not %s", path, noun);
    if (!S_ISREG(info.st_mode))
        return lab_err_set(err, LAB_ERR_USER, "%s is a device or pipe, not %s", path, noun);
    if (access(path, R_OK) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s can't be read", path);
    if (mode == LAB_STORE_WRITE && access(path, W_OK) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s can't be written to", path);
    if (info.st_size == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s is not %s: it is empty", path, noun);
    return 0;
}

int lab_store_read_number(struct lab_store *store, const char *sql, int64_t *ret_number,
                          struct lab_err *err) {
    LAB_AUTO_STATEMENT *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL))
        return lab_store_fail(store, err);
    int got = lab_store_step(store, statement, err);
    if (got > 0)
        *ret_number = sqlite3_column_int64(statement, 0);
    return got < 0 ? -1 : 0;
}

int lab_store_refuse_newer(struct lab_store *store, const char *sql, int64_t version, int known,
                           struct lab_err *err) {
    LAB_AUTO_STATEMENT *statement = NULL;
    char maker[64] = "a later version";
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        snprintf(maker, sizeof maker, "%s", (const char *)sqlite3_column_text(statement, 0));
    const char *number = lab_str_starts(maker, "gpulab ") ? maker + strlen("gpulab ") : maker;
    return lab_err_set(err, LAB_ERR_USER,
                       "%s was written by gpulab %s (file version %lld): gpulab %s reads up to "
                       "file version %d. Use gpulab %s or later",
                       store->path, number, (long long)version, LAB_VERSION, known, number);
}

int lab_store_check_study(struct lab_store *store, struct lab_err *err) {
    int64_t application = 0, version = 0, studies = 0;
    if (lab_store_read_number(store, "PRAGMA application_id", &application, err) < 0 ||
        lab_store_read_number(store, "PRAGMA user_version", &version, err) < 0)
        return -1;
    if (application != LAB_STORE_APPLICATION_ID)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s is not a study's file: it is an SQLite database of another program",
                           store->path);
    if (version > LAB_STORE_VERSION)
        return lab_store_refuse_newer(store, "SELECT version FROM study", version,
                                      LAB_STORE_VERSION, err);
    if (lab_store_read_number(store, "SELECT count(*) FROM study", &studies, err) < 0)
        return -1;
    if (version < 1 || studies != 1)
        return lab_err_set(err, LAB_ERR_WRONG, "%s is damaged: it holds no study", store->path);
    store->version = (int)version;
    return 0;
}

/* --- connections --- */

static void disconnect(struct lab_store *store) {
    for (int i = 0; i < store->statement_count; i++)
        sqlite3_finalize(store->statements[i].prepared);
    store->statement_count = 0;
    for (int i = 0; i <= LAB_RESULT_ROW_COUNT; i++) {
        sqlite3_finalize(store->result_inserts[i]);
        store->result_inserts[i] = NULL;
    }
    sqlite3_close(store->db);
    store->db = NULL;
}

int lab_store_connect(struct lab_store *store, const char *file, int flags, struct lab_err *err) {
    /* a handle belongs to one thread at a time: no column is worth a lock */
    int code = lab_sql_open(file, flags | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_NOMUTEX, &store->db);
    if (!store->db)
        return lab_err_set(err, LAB_ERR_SYSTEM, "%s: SQLite can't start", store->path);
    if (code)
        return lab_store_fail(store, err);
    sqlite3_busy_timeout(store->db, LAB_STORE_WAIT_MS);
    /* the file may come from anybody: nothing in its schema is run, damaged pages are noticed */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    store->durable = true;
    return lab_store_exec(store, "PRAGMA cell_size_check = ON; PRAGMA synchronous = EXTRA", err);
}

/* SQLite takes some names for something else than files (":memory:"). */
char *lab_store_file_name(struct lab_arena *arena, const char *path) {
    return lab_arena_printf(arena, "%s%s", path[0] == '/' ? "" : "./", path);
}

static char *immutable_uri(struct lab_arena *arena, const char *path) {
    LAB_AUTO(str, uri);
    lab_str_add(&uri, "file:");
    for (const char *at = lab_store_file_name(arena, path); *at; at++) {
        if (strchr("?#%", *at))
            lab_str_printf(&uri, "%%%02X", (unsigned)*at);
        else
            lab_str_add_bytes(&uri, at, 1);
    }
    lab_str_add(&uri, "?immutable=1");
    return lab_arena_strdup(arena, uri.text);
}

static bool refused_as(struct lab_store *store, int code) {
    return store->db && (sqlite3_errcode(store->db) & 0xff) == code;
}

static bool has_content(struct lab_arena *arena, const char *path, const char *suffix) {
    struct stat info;
    return stat(lab_arena_printf(arena, "%s%s", path, suffix), &info) == 0 && info.st_size > 0;
}

/*
 * A file whose writer was killed is still in WAL mode, and reading it then means making files
 * beside it. Where that is forbidden the file alone is read, but only if nothing is missing in it.
 */
static int open_unwritable(struct lab_store *store, struct lab_arena *arena, struct lab_err *err) {
    const char *const suffixes[] = {"-wal", "-journal"};
    if (lab_store_check_beside(store, err) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        if (has_content(arena, store->path, suffixes[i]))
            return lab_err_set(
                err, LAB_ERR_SYSTEM,
                "%s was not closed, and its last changes in %s%s can't be read where "
                "nothing can be written: copy both to a folder of yours",
                store->path, store->path, suffixes[i]);
    }
    disconnect(store);
    if (lab_store_connect(store, immutable_uri(arena, store->path),
                          SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err) < 0)
        return -1;
    return store->check(store, err);
}

/*
 * A writer that was killed in rollback mode leaves a journal, which has to be undone before anybody
 * can read. A reader may not do that: a writer that does nothing else does it for him.
 */
static void recover(const struct lab_store *store, const char *file) {
    if (access(store->path, W_OK) < 0)
        return;
    struct lab_store *writer = lab_store_new(store->path, store->noun, store->check);
    if (lab_store_connect(writer, file, SQLITE_OPEN_READWRITE, NULL) == 0)
        writer->check(writer, NULL);
    lab_store_abandon(writer);
}

static int try_reader(struct lab_store *store, const char *file, struct lab_err *err) {
    disconnect(store);
    if (lab_store_connect(store, file, SQLITE_OPEN_READONLY, err) < 0)
        return -1;
    return store->check(store, err);
}

static int open_reader(struct lab_store *store, struct lab_arena *arena, struct lab_err *err) {
    const char *file = lab_store_file_name(arena, store->path);
    struct lab_err first = LAB_ERR_INIT;
    if (try_reader(store, file, &first) == 0)
        return 0;
    if (refused_as(store, SQLITE_READONLY)) {
        recover(store, file);
        if (try_reader(store, file, &first) == 0)
            return 0;
    }
    if (refused_as(store, SQLITE_CANTOPEN) || refused_as(store, SQLITE_READONLY))
        return open_unwritable(store, arena, err);
    if (err)
        *err = first;
    return -1;
}

int lab_store_open_reader(struct lab_store *store, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    return open_reader(store, &arena, err);
}

/* Within the writer's first transaction: another one may have done it since the file was opened. */
static int upgrade(struct lab_store *store, struct lab_err *err) {
    int64_t version = 0;
    if (lab_store_read_number(store, "PRAGMA user_version", &version, err) < 0)
        return -1;
    for (int64_t next = version + 1; next <= LAB_STORE_VERSION; next++) {
        if (lab_store_exec(store, lab_store_upgrades[next], err) < 0)
            return -1;
        if (next == LAB_STORE_RESULTS && lab_store_upgrade_results(store, err) < 0)
            return -1;
        store->version = (int)next;
    }
    store->version = LAB_STORE_VERSION;
    if (version == LAB_STORE_VERSION) /* rows may have been added since */
        return lab_store_make_results(store, err);
    char mark[64];
    snprintf(mark, sizeof mark, "PRAGMA user_version = %d", LAB_STORE_VERSION);
    return lab_store_exec(store, mark, err);
}

int lab_store_set_journal(struct lab_store *store, struct lab_err *err) {
    struct statfs system;
    if (statfs(store->path, &system) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", store->path);
    bool shares = lab_store_shares_memory((unsigned long)system.f_type);
    return lab_store_exec(
        store, shares ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE", err);
}

static int open_writer(struct lab_store *store, struct lab_arena *arena, struct lab_err *err) {
    store->writes = true;
    if (lab_store_connect(store, lab_store_file_name(arena, store->path), SQLITE_OPEN_READWRITE,
                          err) < 0 ||
        store->check(store, err) < 0 || lab_store_set_journal(store, err) < 0)
        return -1;
    sqlite3_busy_timeout(store->db, LAB_STORE_OPEN_WAIT_MS);
    if (lab_store_begin(store, true, err) < 0 || upgrade(store, err) < 0 ||
        lab_store_commit(store, err) < 0)
        return -1;
    sqlite3_busy_timeout(store->db, LAB_STORE_WAIT_MS);
    return 0;
}

/* --- life --- */

struct lab_store *lab_store_new(const char *path, const char *noun, lab_store_check *check) {
    struct lab_store *store = lab_mem_alloc(1, sizeof *store);
    store->path = lab_mem_strdup(path);
    store->noun = noun;
    store->check = check;
    return store;
}

int lab_store_open(const char *path, enum lab_store_mode mode, struct lab_store **ret_store,
                   struct lab_err *err) {
    if (lab_store_check_path(path, mode, LAB_STORE_NOUN, err) < 0)
        return -1;
    struct lab_store *store = lab_store_new(path, LAB_STORE_NOUN, lab_store_check_study);
    LAB_AUTO(arena, arena);
    int result =
        mode == LAB_STORE_WRITE ? open_writer(store, &arena, err) : open_reader(store, &arena, err);
    if (result < 0) {
        lab_store_abandon(store);
        return -1;
    }
    *ret_store = store;
    return 0;
}

void lab_store_abandon(struct lab_store *store) {
    disconnect(store);
    lab_mem_free(store->statements);
    lab_mem_free(store->path);
    lab_mem_free(store);
}

void lab_store_close(struct lab_store *store) {
    if (!store)
        return;
    if (store->writes) {
        /* If a reader is in the way, what was committed stays in the WAL, where all find it. */
        lab_store_rollback(store);
        sqlite3_busy_timeout(store->db, LAB_STORE_OPEN_WAIT_MS);
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        sqlite3_busy_timeout(store->db, 0);
        sqlite3_exec(store->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
        (void)lab_file_sync_above(store->path); /* a journal that came back would undo */
    }
    lab_store_abandon(store);
}
