/*
 * recording.c: a recorder's life. A recording of its own is made whole before the first sample, so
 * that a reader finds the tables from the first instant on; in a study the tables are there
 * already.
 */
#include "store/recording/recording_internal.h"

#include "base/file/file.h"
#include "base/file/own.h"
#include "version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAKER "gpulab " LAB_VERSION

/* A full disk or a stuck reader is tried again a second later: sampling must not wait for it. */
#define WRITE_WAIT_MS 300

static const char recording_schema[] = LAB_RECORDING_EPOCH_TABLE LAB_RECORDING_TABLES;

/* --- beginning --- */

static void read_host(struct lab_recorder *recorder) {
    LAB_AUTO(arena, arena);
    gethostname(recorder->host, sizeof recorder->host - 1);
    snprintf(recorder->boot_id, sizeof recorder->boot_id, "%s", lab_store_boot_id(&arena));
}

static struct lab_recorder *new_recorder(struct lab_store *store,
                                         const struct lab_recorder_setup *setup) {
    struct lab_recorder *recorder = lab_mem_alloc(1, sizeof *recorder);
    recorder->store = store;
    recorder->clock = setup->clock ? setup->clock : lab_clock_system();
    recorder->wall_ns = setup->wall_ns ? setup->wall_ns : setup->clock ? NULL : lab_clock_wall_ns;
    recorder->flush_ns = setup->flush_ns > 0 ? setup->flush_ns : LAB_NS_PER_S;
    recorder->flushed_ns = lab_clock_now(recorder->clock);
    recorder->sealed_end = &recorder->sealed;
    recorder->events_end = &recorder->events;
    recorder->next_entity = recorder->next_chunk = recorder->next_process_chunk = 1;
    lab_process_packer_init(&recorder->processes);
    read_host(recorder);
    int64_t wall_ns = recorder->wall_ns ? recorder->wall_ns() : lab_clock_wall_ns();
    lab_recorder_begin_epoch(recorder, recorder->flushed_ns, wall_ns);
    return recorder;
}

static int add_recording(struct lab_recorder *recorder, const struct lab_recorder_setup *setup,
                         struct lab_err *err) {
    return lab_store_write(
        recorder->store,
        "INSERT INTO recording (maker, note, interval_ns, started_wall_ns) VALUES (?, ?, ?, ?)",
        LAB_ROW(SQL_TEXT(MAKER), SQL_TEXT(setup->note), SQL_INT(setup->interval_ns),
                SQL_INT(recorder->epochs[0].wall_ns)),
        err);
}

/* --- a file of its own --- */

/* SQLite locks this byte of the -shm file in every process that has the database open. */
#define OPEN_BYTE 128

/* A process that has the recording open; 0 = none is known. */
static pid_t find_user(const char *path, struct lab_arena *arena) {
    LAB_AUTO_CLOSE int fd = open(lab_arena_printf(arena, "%s-shm", path),
                                 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = OPEN_BYTE, .l_len = 1};
    return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

/* The samples of one that runs, or was killed, lie in the file beside it. */
static int refuse_existing(const char *path, struct lab_arena *arena, struct lab_err *err) {
    const char *wal = lab_arena_printf(arena, "%s-wal", path);
    struct stat info;
    pid_t user = find_user(path, arena);
    if (user > 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s exists already, and process %d has it open: name another file", path,
                           (int)user);
    if (stat(wal, &info) == 0 && info.st_size > 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "%s exists already, and %s holds samples of it: name another file, and "
                           "keep both",
                           path, wal);
    return lab_err_set(err, LAB_ERR_USER,
                       "%s exists already: a recording is never overwritten, name another file",
                       path);
}

static int fail_create(const char *path, struct lab_arena *arena, struct lab_err *err) {
    if (errno == EEXIST)
        return refuse_existing(path, arena, err);
    bool users = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == EISDIR ||
                 errno == EACCES || errno == EROFS;
    return lab_err_set_errno(err, users ? LAB_ERR_USER : LAB_ERR_SYSTEM, errno, "%s can't be made",
                             path);
}

/* What an earlier file of the same name left beside it would be taken for this one's. */
static int check_beside(const char *path, struct lab_arena *arena, struct lab_err *err) {
    const char *const suffixes[] = {"-wal", "-journal"};
    for (int i = 0; i < 2; i++) {
        struct stat info;
        const char *beside = lab_arena_printf(arena, "%s%s", path, suffixes[i]);
        if (lstat(beside, &info) == 0)
            return lab_err_set(err, LAB_ERR_USER,
                               "%s is there without %s: it may hold samples of a recording that "
                               "was moved; name another file",
                               beside, path);
    }
    return 0;
}

static int fill(struct lab_recorder *recorder, const struct lab_recorder_setup *setup,
                struct lab_err *err) {
    struct lab_store *store = recorder->store;
    char marks[128];
    snprintf(marks, sizeof marks, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             LAB_RECORDING_APPLICATION_ID, LAB_RECORDING_VERSION);
    if (lab_store_begin(store, true, err) < 0 || lab_store_exec(store, marks, err) < 0 ||
        lab_store_exec(store, recording_schema, err) < 0 || add_recording(recorder, setup, err) < 0)
        return -1;
    return lab_store_commit(store, err);
}

static int open_new(struct lab_store *store, const char *file, struct lab_err *err) {
    /* whoever only appends has no use for many pages in memory */
    if (lab_store_connect(store, file, SQLITE_OPEN_READWRITE, err) < 0 ||
        lab_store_exec(store, "PRAGMA cache_size = -256", err) < 0 ||
        lab_store_set_journal(store, err) < 0)
        return -1;
    sqlite3_busy_timeout(store->db, WRITE_WAIT_MS);
    store->writes = true;
    return 0;
}

static int create(const char *path, const struct lab_recorder_setup *setup, struct lab_arena *arena,
                  struct lab_recorder **ret_recorder, struct lab_err *err) {
    struct stat info;
    if (lstat(path, &info) == 0)
        return refuse_existing(path, arena, err);
    if (check_beside(path, arena, err) < 0)
        return -1;
    int fd = lab_own_open(path, LAB_OWN_NEW, NULL);
    if (fd < 0)
        return fail_create(path, arena, err);
    close(fd);
    struct lab_store *store = lab_store_new(path, "a recording", NULL);
    struct lab_recorder *recorder = new_recorder(store, setup);
    if (open_new(store, lab_store_file_name(arena, path), err) == 0 &&
        fill(recorder, setup, err) == 0) {
        *ret_recorder = recorder;
        return 0;
    }
    lab_store_abandon(store);
    lab_recorder_release(recorder);
    lab_own_remove(path);
    lab_own_remove(lab_arena_printf(arena, "%s-wal", path));
    lab_own_remove(lab_arena_printf(arena, "%s-shm", path));
    lab_own_remove(lab_arena_printf(arena, "%s-journal", path));
    return -1;
}

int lab_recorder_create(const char *path, const struct lab_recorder_setup *setup,
                        struct lab_recorder **ret_recorder, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    return create(path, setup, &arena, ret_recorder, err);
}

/* --- in a study --- */

/* A GPU that was there before the study was gone on with is the same row. */
static int load_entities(struct lab_recorder *recorder, struct lab_arena *arena,
                         struct lab_err *err) {
    sqlite3_stmt *row = lab_store_prepare(
        recorder->store,
        "SELECT number, id, kind, position, name, pci, node, parent, simulated, columns"
        " FROM entity ORDER BY number",
        err);
    int got = -1;
    while (row && (got = lab_store_step(recorder->store, row, err)) > 0) {
        const char *columns = lab_recording_text(row, 9, arena);
        int kind = lab_entity_kind_find(lab_recording_text(row, 2, arena));
        struct lab_entity entity = {.id = lab_recording_text(row, 1, arena),
                                    .kind = (enum lab_entity_kind)kind,
                                    .index = sqlite3_column_int(row, 3),
                                    .name = lab_recording_text(row, 4, arena),
                                    .pci = lab_recording_text(row, 5, arena),
                                    .node = sqlite3_column_int(row, 6),
                                    .simulated = sqlite3_column_int(row, 8)};
        entity.columns = lab_recording_columns_read(columns, arena, &entity.column_count);
        if (kind < 0 || !entity.columns)
            continue;
        struct lab_recorder_entity *item =
            lab_recorder_add_entity(recorder, &entity, sqlite3_column_int64(row, 7), columns);
        item->row = sqlite3_column_int64(row, 0);
        item->is_stored = true;
    }
    return got;
}

static int load_numbers(struct lab_recorder *recorder, struct lab_err *err) {
    sqlite3_stmt *row = lab_store_prepare(recorder->store,
                                          "SELECT 1 + ifnull((SELECT max(number) FROM entity), 0),"
                                          " 1 + ifnull((SELECT max(number) FROM chunk), 0),"
                                          " 1 + ifnull((SELECT max(number) FROM process), 0),"
                                          " 1 + ifnull((SELECT max(number) FROM process_chunk), 0)",
                                          err);
    if (!row || lab_store_step(recorder->store, row, err) <= 0)
        return -1;
    recorder->next_entity = sqlite3_column_int64(row, 0);
    recorder->next_chunk = sqlite3_column_int64(row, 1);
    recorder->processes.next_number = sqlite3_column_int64(row, 2);
    recorder->next_process_chunk = sqlite3_column_int64(row, 3);
    sqlite3_reset(row);
    return 0;
}

static int attach(struct lab_recorder *recorder, const struct lab_recorder_setup *setup,
                  struct lab_err *err) {
    if (lab_store_begin(recorder->store, false, err) < 0)
        return -1;
    LAB_AUTO(arena, arena);
    int result = load_numbers(recorder, err) < 0 || load_entities(recorder, &arena, err) < 0 ||
                         add_recording(recorder, setup, err) < 0
                     ? -1
                     : 0;
    if (result == 0)
        return lab_store_commit(recorder->store, err);
    lab_store_rollback(recorder->store);
    return -1;
}

int lab_recorder_attach(struct lab_store *store, const struct lab_recorder_setup *setup,
                        struct lab_recorder **ret_recorder, struct lab_err *err) {
    struct lab_recorder *recorder = new_recorder(store, setup);
    recorder->attached = true;
    if (attach(recorder, setup, err) < 0) {
        lab_recorder_release(recorder);
        return -1;
    }
    *ret_recorder = recorder;
    return 0;
}

/* --- the way --- */

int lab_recorder_flush(struct lab_recorder *recorder, bool force, struct lab_err *err) {
    int64_t now_ns = lab_clock_now(recorder->clock);
    if (!force && now_ns - recorder->flushed_ns < recorder->flush_ns)
        return 0;
    recorder->flushed_ns = now_ns;
    lab_recorder_check_wall(recorder, now_ns);
    struct lab_err refusal = LAB_ERR_INIT;
    if (lab_recorder_write(recorder, &refusal) == 0) {
        recorder->refusal = LAB_ERR_INIT;
        return 0;
    }
    bool is_news = strcmp(refusal.text, recorder->refusal.text) != 0;
    recorder->refusal = refusal;
    return is_news || force ? lab_err_set(err, refusal.code, "%s", refusal.text) : 0;
}

int64_t lab_recorder_lost(const struct lab_recorder *recorder) {
    int64_t lost = recorder->noted + recorder->dropped;
    for (const struct lab_recorder_sealed *item = recorder->sealed; item; item = item->next)
        lost += item->entity ? item->count - item->stored : 0;
    for (int i = 0; i < recorder->entity_count; i++)
        lost += recorder->entities[i]->chunk.count - recorder->entities[i]->stored;
    return lost;
}

int lab_recorder_close(struct lab_recorder *recorder, struct lab_err *err) {
    if (!recorder)
        return 0;
    int result = lab_recorder_flush(recorder, true, err);
    if (!recorder->attached)
        lab_store_close(recorder->store);
    lab_recorder_release(recorder);
    return result;
}
