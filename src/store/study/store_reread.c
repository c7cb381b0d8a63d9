/*
 * store_reread.c: the metrics of runs that have ended, replaced by what was read anew from their
 * logs. One transaction holds all of it: whoever is killed in between has lost nothing. A value
 * that was there before, of the same name, rank and step, keeps its time, which no log has.
 */
#include "store/store_internal.h"

#include "model/reported_metric.h"

int lab_store_reread_begin(struct lab_store *store, struct lab_err *err) {
    if (lab_store_begin(store, true, err) < 0)
        return -1;
    int result = lab_store_exec(store,
                                "CREATE TEMP TABLE IF NOT EXISTS earlier "
                                "(name TEXT, rank INTEGER, step REAL, value REAL, time_ns INTEGER);"
                                "CREATE INDEX IF NOT EXISTS temp.earlier_key"
                                " ON earlier (name, rank, step, value)",
                                err);
    if (result < 0)
        lab_store_rollback(store);
    return result;
}

/* Statement by statement; each has the run as its only parameter. */
static int each(struct lab_store *store, const char *const *statements, int64_t run,
                struct lab_err *err) {
    for (; *statements; statements++)
        if (lab_store_write(store, *statements, LAB_ROW(SQL_INT(run)), err) < 0)
            return -1;
    return 0;
}

int lab_store_reread_run(struct lab_store *store, int64_t run, struct lab_err *err) {
    static const char *const statements[] = {
        "INSERT INTO temp.earlier SELECT name, rank, step, value, time_ns FROM metric"
        " WHERE run = ? AND time_ns <> -1",
        "DELETE FROM metric WHERE run = ?", NULL};
    return lab_store_exec(store, "DELETE FROM temp.earlier", err) < 0
               ? -1
               : each(store, statements, run, err);
}

int lab_store_reread_add(struct lab_store *store, int64_t run, const struct lab_store_metric *items,
                         size_t count, struct lab_err *err) {
    for (size_t i = 0; i < count; i++)
        if (lab_store_insert_metric(store, run, &items[i], err) < 0)
            return -1;
    return 0;
}

int lab_store_reread_end_run(struct lab_store *store, int64_t run, struct lab_err *err) {
    static const char *const statements[] = {
        "UPDATE metric SET time_ns = earlier.time_ns FROM temp.earlier WHERE metric.run = ?"
        " AND earlier.name = metric.name AND earlier.rank = metric.rank"
        " AND earlier.step IS metric.step AND earlier.value IS metric.value",
        "DELETE FROM result_warnings WHERE run = ?1 AND text LIKE '" LAB_NO_METRIC
        "%' AND EXISTS (SELECT 1 FROM metric WHERE run = ?1)",
        NULL};
    return each(store, statements, run, err);
}

int lab_store_count_metrics(struct lab_store *store, int64_t run, int64_t *ret_count,
                            struct lab_err *err) {
    return lab_store_find(store, "SELECT count(*) FROM metric WHERE run = ?", LAB_ROW(SQL_INT(run)),
                          ret_count, err) < 0
               ? -1
               : 0;
}

int lab_store_reread_end(struct lab_store *store, bool keep, struct lab_err *err) {
    if (keep)
        return lab_store_commit(store, err);
    lab_store_rollback(store);
    return 0;
}
