/* tuning_internal.h: what the files of the tuning cache share. */
#pragma once

#include "store/sql.h"
#include "store/tuning/tuning.h"

#define TUNING_ENTRY_COLUMNS                                                                       \
    "key, kernel, shape, device, config, time_s, low_s, high_s, certain, tuned_wall_ns, result"
#define TUNING_TRIAL_COLUMNS "session, config, state, reason, rung, median_s, low_s, high_s"

struct lab_tuning_cache {
    sqlite3 *db; /* NULL = nothing is there: empty */
    const char *path;
};

int tuning_fail(const struct lab_tuning_cache *cache, struct lab_err *err);
int tuning_exec(const struct lab_tuning_cache *cache, const char *sql, struct lab_err *err);
/* Commits a transaction, or takes all of it back where `result` or the commit is a failure. */
int tuning_end(struct lab_tuning_cache *cache, int result, struct lab_err *err);

/* A statement with these parameters; NULL and an error. sqlite3_finalize is the caller's. */
sqlite3_stmt *tuning_query(const struct lab_tuning_cache *cache, const char *sql,
                           const struct lab_sql_cell *row, struct lab_err *err);
/* Runs one that returns nothing. */
int tuning_write(const struct lab_tuning_cache *cache, const char *sql,
                 const struct lab_sql_cell *row, struct lab_err *err);

/* Without a transaction of its own. */
int tuning_write_entry(const struct lab_tuning_cache *cache, const struct lab_tuning_entry *entry,
                       bool only_later, struct lab_err *err);
