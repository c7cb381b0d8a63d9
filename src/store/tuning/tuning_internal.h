/* tuning_internal.h: what the files of the tuning cache share. */
#ifndef LAB_STORE_TUNING_TUNING_INTERNAL_H
#define LAB_STORE_TUNING_TUNING_INTERNAL_H

#include "store/tuning/tuning.h"

#include <sqlite3.h>

#define TUNING_ENTRY_COLUMNS                                                                       \
    "key, kernel, shape, device, config, time_s, low_s, high_s, certain, tuned_wall_ns, result"
#define TUNING_TRIAL_COLUMNS "session, config, state, reason, rung, median_s, low_s, high_s"

struct lab_tuning_cache {
    sqlite3 *db; /* NULL = nothing is there: empty */
    const char *path;
};

int tuning_fail(const struct lab_tuning_cache *cache, struct lab_err *err);
int tuning_exec(const struct lab_tuning_cache *cache, const char *sql, struct lab_err *err);

/* A statement; NULL and an error. sqlite3_finalize is the caller's. */
sqlite3_stmt *tuning_prepare(const struct lab_tuning_cache *cache, const char *sql,
                             struct lab_err *err);
/* Runs one that returns nothing, and finalizes it; accepts NULL, which has failed before. */
int tuning_finish(const struct lab_tuning_cache *cache, sqlite3_stmt *statement,
                  struct lab_err *err);

void tuning_bind_text(sqlite3_stmt *statement, int index, const char *text); /* NULL = "" */
void tuning_bind_number(sqlite3_stmt *statement, int index, double value);   /* NaN = NULL */
const char *tuning_text(sqlite3_stmt *statement, int column, struct lab_arena *arena);
double tuning_number(sqlite3_stmt *statement, int column); /* NULL = NaN */

/* Without a transaction of its own. */
int tuning_write_entry(const struct lab_tuning_cache *cache, const struct lab_tuning_entry *entry,
                       bool only_later, struct lab_err *err);

#endif
