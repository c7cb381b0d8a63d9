/*
 * store_write.c: what a runner writes down. A run's life is checked here as well as in the runner,
 * since a result that was acknowledged must not be lost or counted twice whatever goes wrong above:
 * only a running run takes iterations, metrics, progress and an end, and a run that is done never
 * begins again.
 */
#include "store/store_internal.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* --- epochs --- */

/* How far the wall clock may have moved against the other before an anchor no longer holds. */
#define ANCHOR_HOLDS_NS LAB_NS_PER_S

const char *lab_store_boot_id(struct lab_arena *arena) {
    char *text;
    size_t length;
    if (lab_file_read("/proc/sys/kernel/random/boot_id", 256, arena, &text, &length, NULL) < 0)
        return "";
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static int find_or_add_epoch(struct lab_store *store, const char *kind, struct lab_arena *arena,
                             int64_t *ret_epoch, struct lab_err *err) {
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const char *boot_id = lab_store_boot_id(arena);
    int64_t mono_ns = lab_clock_now(lab_clock_system()), wall_ns = lab_clock_wall_ns();
    int found =
        lab_store_find(store,
                       "SELECT id FROM epoch WHERE boot_id = ?1 AND host = ?2 AND kind = ?5"
                       " AND abs((wall_ns - mono_ns) - (?4 - ?3)) <= ?6 ORDER BY id DESC LIMIT 1",
                       LAB_ROW(SQL_TEXT(boot_id), SQL_TEXT(host), SQL_INT(mono_ns),
                               SQL_INT(wall_ns), SQL_TEXT(kind), SQL_INT(ANCHOR_HOLDS_NS)),
                       ret_epoch, err);
    if (found)
        return found < 0 ? -1 : 0;
    if (lab_store_write(store, LAB_STORE_INSERT_EPOCH,
                        LAB_ROW(SQL_TEXT(boot_id), SQL_TEXT(host), SQL_INT(mono_ns),
                                SQL_INT(wall_ns), SQL_TEXT(kind)),
                        err) < 0)
        return -1;
    *ret_epoch = sqlite3_last_insert_rowid(store->db);
    return 0;
}

/* Ends the transaction as the work in it went. */
static int end(struct lab_store *store, int result, struct lab_err *err) {
    if (result == 0)
        return lab_store_commit(store, err);
    lab_store_rollback(store);
    return -1;
}

int lab_store_epoch(struct lab_store *store, const char *kind, int64_t *ret_epoch,
                    struct lab_err *err) {
    if (lab_store_begin(store, true, err) < 0)
        return -1;
    LAB_AUTO(arena, arena);
    int64_t epoch = 0;
    int result = end(store, find_or_add_epoch(store, kind, &arena, &epoch, err), err);
    if (result == 0)
        *ret_epoch = epoch;
    return result;
}

/* --- a run's life --- */

/* Fails unless the run exists and is in the state, or (`but_not`) in any other. */
static int check_state(struct lab_store *store, int64_t run, enum lab_run_state state, bool but_not,
                       const char *wish, struct lab_err *err) {
    sqlite3_stmt *select = lab_store_query(store, "SELECT state FROM run WHERE number = ?",
                                           LAB_ROW(SQL_INT(run)), err);
    int got = select ? lab_store_step(store, select, err) : -1;
    if (got < 0)
        return -1;
    if (got == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s: there is no run %lld", store->path,
                           (long long)run);
    const char *text = (const char *)sqlite3_column_text(select, 0);
    bool is = lab_str_equal(text, lab_run_state_name(state));
    int result = 0;
    if (is == but_not)
        result = lab_err_set(err, LAB_ERR_USER, "%s: run %lld can't %s: it is %s", store->path,
                             (long long)run, wish, text);
    sqlite3_reset(select);
    return result;
}

static int drop(struct lab_store *store, const char *sql, int64_t run, struct lab_err *err) {
    return lab_store_write(store, sql, LAB_ROW(SQL_INT(run)), err);
}

static int begin_run(struct lab_store *store, int64_t run, int64_t epoch, int64_t start_ns,
                     struct lab_err *err) {
    if (check_state(store, run, LAB_RUN_DONE, true, "begin again", err) < 0 ||
        drop(store, "DELETE FROM iterations WHERE run = ?", run, err) < 0 ||
        drop(store, "DELETE FROM metric WHERE run = ?", run, err) < 0 ||
        drop(store, "DELETE FROM progress WHERE run = ?", run, err) < 0 ||
        lab_store_drop_result(store, run, err) < 0)
        return -1;
    if (lab_store_write(
            store,
            "UPDATE run SET state = 'running', attempts = attempts + 1, epoch = ?2, start_ns = ?3,"
            " start_wall_ns = epoch.wall_ns + (?3 - epoch.mono_ns), end_ns = 0, exit_code = 0,"
            " error = '', concurrent = 0, hint = ''"
            " FROM epoch WHERE run.number = ?1 AND epoch.id = ?2",
            LAB_ROW(SQL_INT(run), SQL_INT(epoch), SQL_INT(start_ns)), err) < 0)
        return -1;
    if (sqlite3_changes(store->db) != 1)
        return lab_err_set(err, LAB_ERR_USER, "%s: there is no epoch %lld", store->path,
                           (long long)epoch);
    return 0;
}

int lab_store_begin_run(struct lab_store *store, int64_t run, int64_t epoch, int64_t start_ns,
                        struct lab_err *err) {
    if (lab_store_begin(store, true, err) < 0)
        return -1;
    return end(store, begin_run(store, run, epoch, start_ns, err), err);
}

static int place_run(struct lab_store *store, int64_t run, const struct lab_run_rank *ranks,
                     int count, struct lab_err *err) {
    if (check_state(store, run, LAB_RUN_DONE, true, "be placed", err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (lab_store_write(store, "INSERT OR REPLACE INTO rank VALUES (?, ?, ?, ?, ?)",
                            LAB_ROW(SQL_INT(run), SQL_INT(i), SQL_INT(ranks[i].gpu_id),
                                    SQL_TEXT(ranks[i].device), SQL_INT(ranks[i].numa_node)),
                            err) < 0)
            return -1;
    return 0;
}

int lab_store_place_run(struct lab_store *store, int64_t run, const struct lab_run_rank *ranks,
                        int count, struct lab_err *err) {
    if (lab_store_begin(store, false, err) < 0)
        return -1;
    return end(store, place_run(store, run, ranks, count, err), err);
}

static int finish_run(struct lab_store *store, int64_t run, const struct lab_run *outcome,
                      struct lab_err *err) {
    if (check_state(store, run, LAB_RUN_RUNNING, false, "finish", err) < 0 ||
        drop(store, "DELETE FROM progress WHERE run = ?", run, err) < 0)
        return -1;
    if (lab_store_write(
            store,
            "UPDATE run SET state = ?2, end_ns = ?3, exit_code = ?4, error = ?5, concurrent = ?6,"
            " hint = ?7 WHERE number = ?1",
            LAB_ROW(SQL_INT(run), SQL_TEXT(lab_run_state_name(outcome->state)),
                    SQL_INT(outcome->end_ns), SQL_INT(outcome->exit_code), SQL_TEXT(outcome->error),
                    SQL_INT(outcome->concurrent), SQL_TEXT(lab_hint(outcome->hint)->name)),
            err) < 0)
        return -1;
    return outcome->state == LAB_RUN_DONE ? lab_store_add_result(store, run, outcome, err) : 0;
}

int lab_store_finish_run(struct lab_store *store, int64_t run, const struct lab_run *outcome,
                         struct lab_err *err) {
    assert(outcome->state == LAB_RUN_DONE || outcome->state == LAB_RUN_FAILED);
    if (lab_store_begin(store, true, err) < 0)
        return -1;
    return end(store, finish_run(store, run, outcome, err), err);
}

/* --- what it leaves on the way --- */

static int check_rank(struct lab_store *store, int64_t run, int rank, struct lab_err *err) {
    int64_t is_there;
    int got = lab_store_find(store, "SELECT 1 FROM rank WHERE run = ? AND rank = ?",
                             LAB_ROW(SQL_INT(run), SQL_INT(rank)), &is_there, err);
    if (got == 0)
        return lab_err_set(err, LAB_ERR_USER, "%s: run %lld has no rank %d", store->path,
                           (long long)run, rank);
    return got < 0 ? -1 : 0;
}

/* The chunks of a rank follow on each other from 0: a gap would shift all that come after it. */
static int check_next(struct lab_store *store, int64_t run, int rank, int64_t first,
                      struct lab_err *err) {
    int64_t next = 0;
    if (lab_store_find(store,
                       "SELECT first + count FROM iterations WHERE run = ? AND rank = ?"
                       " ORDER BY first DESC LIMIT 1",
                       LAB_ROW(SQL_INT(run), SQL_INT(rank)), &next, err) < 0)
        return -1;
    if (first == next)
        return 0;
    return lab_err_set(
        err, LAB_ERR_USER,
        "%s: run %lld, rank %d: iterations from %lld on came, where %lld is the next", store->path,
        (long long)run, rank, (long long)first, (long long)next);
}

static int add_iterations(struct lab_store *store, int64_t run, int rank, int64_t first,
                          const struct lab_iteration *items, size_t count, struct lab_err *err) {
    if (check_state(store, run, LAB_RUN_RUNNING, false, "take iterations", err) < 0 ||
        check_rank(store, run, rank, err) < 0 || check_next(store, run, rank, first, err) < 0)
        return -1;
    LAB_AUTO(str, bytes);
    lab_iterations_pack(items, count, &bytes);
    return lab_store_write(store, "INSERT INTO iterations VALUES (?, ?, ?, ?, ?)",
                           LAB_ROW(SQL_INT(run), SQL_INT(rank), SQL_INT(first), SQL_INT(count),
                                   SQL_BLOB(bytes.text, bytes.length)),
                           err);
}

int lab_store_add_iterations(struct lab_store *store, int64_t run, int rank, int64_t first,
                             const struct lab_iteration *items, size_t count, struct lab_err *err) {
    if (count == 0)
        return 0;
    if (lab_store_begin(store, false, err) < 0)
        return -1;
    return end(store, add_iterations(store, run, rank, first, items, count, err), err);
}

static int insert_metric(struct lab_store *store, int64_t run,
                         const struct lab_store_metric *metric, struct lab_err *err) {
    return lab_store_write(store,
                           "INSERT INTO metric (run, rank, name, unit, value, time_ns, step) "
                           "VALUES (?, ?, ?, ?, ?, ?, ?)",
                           LAB_ROW(SQL_INT(run), SQL_INT(metric->rank), SQL_TEXT(metric->name),
                                   SQL_TEXT(metric->unit), SQL_NUMBER(metric->value),
                                   SQL_INT(metric->time_ns), SQL_NUMBER(metric->step)),
                           err);
}

static int add_metrics(struct lab_store *store, int64_t run, const struct lab_store_metric *items,
                       size_t count, struct lab_err *err) {
    int result = check_state(store, run, LAB_RUN_RUNNING, false, "take metrics", err);
    for (size_t i = 0; i < count && result == 0; i++)
        result = insert_metric(store, run, &items[i], err);
    return result;
}

int lab_store_add_metrics(struct lab_store *store, int64_t run,
                          const struct lab_store_metric *items, size_t count, struct lab_err *err) {
    if (lab_store_begin(store, false, err) < 0)
        return -1;
    return end(store, add_metrics(store, run, items, count, err), err);
}

static int set_progress(struct lab_store *store, const struct lab_run_progress *items, int count,
                        struct lab_err *err) {
    for (int i = 0; i < count; i++) {
        if (lab_store_write(store,
                            "INSERT OR REPLACE INTO progress (run, phase, done, total, time_ns)"
                            " SELECT number, ?2, ?3, ?4, ?5 FROM run"
                            " WHERE number = ?1 AND state = 'running'",
                            LAB_ROW(SQL_INT(items[i].run), SQL_TEXT(items[i].phase),
                                    SQL_INT(items[i].done), SQL_INT(items[i].total),
                                    SQL_INT(items[i].time_ns)),
                            err) < 0)
            return -1;
    }
    return 0;
}

int lab_store_set_progress(struct lab_store *store, const struct lab_run_progress *items, int count,
                           struct lab_err *err) {
    if (lab_store_begin(store, false, err) < 0)
        return -1;
    /* a checkpoint waits for the disk: whoever commits next may make it */
    sqlite3_wal_autocheckpoint(store->db, 0);
    int result = end(store, set_progress(store, items, count, err), err);
    sqlite3_wal_autocheckpoint(store->db, LAB_STORE_CHECKPOINT_PAGES);
    return result;
}
