/* tuning.c: entries of the tuning cache, and what unfinished tunings know. */
#include "store/tuning/tuning_internal.h"

#include "base/failpoint.h"
#include "base/mem.h"

#include <math.h>

static struct lab_tuning_entry read_entry(sqlite3_stmt *statement, struct lab_arena *arena) {
    return (struct lab_tuning_entry){
        .key = lab_sql_text(statement, 0, arena),
        .kernel = lab_sql_text(statement, 1, arena),
        .shape = lab_sql_text(statement, 2, arena),
        .device = lab_sql_text(statement, 3, arena),
        .config = lab_sql_text(statement, 4, arena),
        .time_s = lab_sql_number(statement, 5),
        .low_s = lab_sql_number(statement, 6),
        .high_s = lab_sql_number(statement, 7),
        .certain = sqlite3_column_int(statement, 8) != 0,
        .tuned_wall_ns = sqlite3_column_int64(statement, 9),
        .result = lab_sql_text(statement, 10, arena),
    };
}

int lab_tuning_cache_find(struct lab_tuning_cache *cache, const char *key, struct lab_arena *arena,
                          struct lab_tuning_entry *ret_entry, struct lab_err *err) {
    if (!cache->db)
        return 0;
    LAB_AUTO_STATEMENT *statement =
        tuning_query(cache, "SELECT " TUNING_ENTRY_COLUMNS " FROM entry WHERE key = ?",
                     LAB_ROW(SQL_TEXT(key)), err);
    if (!statement)
        return -1;
    int code = sqlite3_step(statement);
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? 0 : tuning_fail(cache, err);
    *ret_entry = read_entry(statement, arena);
    return 1;
}

static struct lab_sql_cell finite_cell(double value) {
    return SQL_NUMBER(isfinite(value) ? value : NAN);
}

int tuning_write_entry(const struct lab_tuning_cache *cache, const struct lab_tuning_entry *entry,
                       bool only_later, struct lab_err *err) {
    const char *sql =
        only_later ? "INSERT INTO entry (" TUNING_ENTRY_COLUMNS
                     ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT (key) DO UPDATE SET config = excluded.config,"
                     " time_s = excluded.time_s, low_s = excluded.low_s, high_s = excluded.high_s,"
                     " certain = excluded.certain, tuned_wall_ns = excluded.tuned_wall_ns,"
                     " result = excluded.result WHERE excluded.tuned_wall_ns > entry.tuned_wall_ns"
                   : "INSERT OR REPLACE INTO entry (" TUNING_ENTRY_COLUMNS
                     ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    return tuning_write(
        cache, sql,
        LAB_ROW(SQL_TEXT(entry->key), SQL_TEXT(entry->kernel), SQL_TEXT(entry->shape),
                SQL_TEXT(entry->device), SQL_TEXT(entry->config), finite_cell(entry->time_s),
                finite_cell(entry->low_s), finite_cell(entry->high_s), SQL_INT(entry->certain),
                SQL_INT(entry->tuned_wall_ns), SQL_TEXT(entry->result)),
        err);
}

int lab_tuning_cache_put(struct lab_tuning_cache *cache, const struct lab_tuning_entry *entry,
                         struct lab_err *err) {
    lab_failpoint("before-tuning");
    int result = tuning_write_entry(cache, entry, false, err);
    lab_failpoint("after-tuning");
    return result;
}

int lab_tuning_cache_list(struct lab_tuning_cache *cache, struct lab_arena *arena,
                          struct lab_tuning_entry **ret_entries, int *ret_count,
                          struct lab_err *err) {
    struct lab_tuning_entry *items = NULL;
    int count = 0, code = SQLITE_DONE;
    LAB_AUTO_STATEMENT *statement = NULL;
    if (cache->db) {
        statement = tuning_query(
            cache, "SELECT " TUNING_ENTRY_COLUMNS " FROM entry ORDER BY tuned_wall_ns DESC, key",
            LAB_ROW_NONE, err);
        if (!statement)
            return -1;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
            LAB_ADD(items, count, arena) = read_entry(statement, arena);
        }
    }
    if (code != SQLITE_DONE)
        return tuning_fail(cache, err);
    *ret_entries = items;
    *ret_count = count;
    return 0;
}

int lab_tuning_cache_clear(struct lab_tuning_cache *cache, int *ret_count, struct lab_err *err) {
    *ret_count = 0;
    if (!cache->db)
        return 0;
    if (tuning_exec(cache, "BEGIN IMMEDIATE", err))
        return -1;
    int result = tuning_exec(cache, "DELETE FROM trial", err);
    if (result == 0)
        result = tuning_exec(cache, "DELETE FROM entry", err);
    int count = sqlite3_changes(cache->db);
    result = tuning_end(cache, result, err);
    if (result == 0)
        *ret_count = count;
    return result;
}

/* --- unfinished tunings --- */

int lab_tuning_cache_keep(struct lab_tuning_cache *cache, const char *session,
                          const struct lab_trial *trial, struct lab_err *err) {
    return tuning_write(
        cache,
        "INSERT OR REPLACE INTO trial (" TUNING_TRIAL_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        LAB_ROW(SQL_TEXT(session), SQL_TEXT(trial->config), SQL_INT(trial->state),
                SQL_TEXT(trial->reason), SQL_INT(trial->rung), finite_cell(trial->median_s),
                finite_cell(trial->low_s), finite_cell(trial->high_s)),
        err);
}

int lab_tuning_cache_keep_all(struct lab_tuning_cache *cache, const char *session,
                              const struct lab_trial *const *trials, int count,
                              struct lab_err *err) {
    if (tuning_exec(cache, "BEGIN IMMEDIATE", err))
        return -1;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = lab_tuning_cache_keep(cache, session, trials[i], err);
    return tuning_end(cache, result, err);
}

static bool read_trial(sqlite3_stmt *statement, struct lab_arena *arena,
                       struct lab_trial *ret_trial) {
    int state = sqlite3_column_int(statement, 1);
    if (state < LAB_TRIAL_UNTRIED || state > LAB_TRIAL_WRONG)
        return false;
    *ret_trial = (struct lab_trial){
        .config = lab_sql_text(statement, 0, arena),
        .state = (enum lab_trial_state)state,
        .reason = lab_sql_text(statement, 2, arena),
        .rung = sqlite3_column_int(statement, 3),
        .median_s = lab_sql_number(statement, 4),
        .low_s = lab_sql_number(statement, 5),
        .high_s = lab_sql_number(statement, 6),
    };
    if (!*ret_trial->reason)
        ret_trial->reason = NULL;
    return true;
}

int lab_tuning_cache_trials(struct lab_tuning_cache *cache, const char *session,
                            struct lab_arena *arena, struct lab_trial **ret_trials, int *ret_count,
                            struct lab_err *err) {
    struct lab_trial *items = NULL;
    int count = 0, code = SQLITE_DONE;
    LAB_AUTO_STATEMENT *statement = NULL;
    if (cache->db) {
        statement = tuning_query(cache,
                                 "SELECT config, state, reason, rung, median_s, low_s, high_s"
                                 " FROM trial WHERE session = ? ORDER BY config",
                                 LAB_ROW(SQL_TEXT(session)), err);
        if (!statement)
            return -1;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
            items = lab_arena_grow(arena, items, (size_t)count, sizeof *items);
            count += read_trial(statement, arena, &items[count]);
        }
    }
    if (code != SQLITE_DONE)
        return tuning_fail(cache, err);
    *ret_trials = items;
    *ret_count = count;
    return 0;
}

int lab_tuning_cache_unfinished(struct lab_tuning_cache *cache, int *ret_count,
                                struct lab_err *err) {
    *ret_count = 0;
    if (!cache->db)
        return 0;
    LAB_AUTO_STATEMENT *statement =
        tuning_query(cache, "SELECT count(DISTINCT session) FROM trial", LAB_ROW_NONE, err);
    if (!statement)
        return -1;
    if (sqlite3_step(statement) != SQLITE_ROW)
        return tuning_fail(cache, err);
    *ret_count = sqlite3_column_int(statement, 0);
    return 0;
}

int lab_tuning_cache_forget(struct lab_tuning_cache *cache, const char *session,
                            struct lab_err *err) {
    return tuning_write(cache, "DELETE FROM trial WHERE session = ?", LAB_ROW(SQL_TEXT(session)),
                        err);
}
