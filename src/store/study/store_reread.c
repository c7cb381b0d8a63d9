/*
 * store_reread.c: the metrics of runs that have ended, replaced by what was read anew from their
 * logs. One transaction holds all of it: whoever is killed in between has lost nothing. A log has
 * no times: the nth value of a name, rank and step keeps the time of the one that was there before.
 */
#include "store/store_internal.h"

#include "model/reported_metric.h"

int lab_store_reread_begin(struct lab_store *store, bool write, struct lab_err *err) {
    if ((write ? lab_store_begin(store, true, err) : lab_store_exec(store, "BEGIN", err)) < 0)
        return -1;
    int result = lab_store_exec(
        store,
        "CREATE TEMP TABLE earlier"
        " (name TEXT, rank INTEGER, step REAL, value REAL, time_ns INTEGER, nth INTEGER,"
        "  nth_of_all INTEGER);" /* of all ranks */
        "CREATE INDEX temp.earlier_key ON earlier (name, value, step, rank, nth);"
        "CREATE TEMP TABLE again"
        " (id INTEGER PRIMARY KEY, name TEXT, rank INTEGER, step REAL, value REAL,"
        "  time_ns INTEGER, unit TEXT, kept INTEGER)",
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
        "INSERT INTO temp.earlier SELECT name, rank, step, value, time_ns,"
        " row_number() OVER (PARTITION BY name, rank, step, value ORDER BY id),"
        " row_number() OVER (PARTITION BY name, step, value ORDER BY id)"
        " FROM metric WHERE run = ?",
        NULL};
    return lab_store_exec(store, "DELETE FROM temp.earlier; DELETE FROM temp.again", err) < 0
               ? -1
               : each(store, statements, run, err);
}

int lab_store_reread_add(struct lab_store *store, const struct lab_store_metric *items,
                         size_t count, struct lab_err *err) {
    for (size_t i = 0; i < count; i++)
        if (lab_store_write(store,
                            "INSERT INTO temp.again (rank, name, unit, value, time_ns, step, kept)"
                            " VALUES (?, ?, ?, ?, ?, ?, 0)",
                            LAB_ROW(SQL_INT(items[i].rank), SQL_TEXT(items[i].name),
                                    SQL_TEXT(items[i].unit), SQL_NUMBER(items[i].value),
                                    SQL_INT(items[i].time_ns), SQL_NUMBER(items[i].step)),
                            err) < 0)
            return -1;
    return 0;
}

/* Values of an unknown rank (-1) have that of the one that was there before. */
#define KEEP(same_rank, nth)                                                                       \
    "UPDATE temp.again SET time_ns = found.time_ns, rank = found.rank, kept = 1 FROM"              \
    " (SELECT a.id, e.time_ns, e.rank FROM (SELECT *, row_number() OVER"                           \
    "   (PARTITION BY name, rank, step, value ORDER BY id) AS nth FROM temp.again) a"              \
    "  JOIN temp.earlier e ON e.name = a.name AND e.value IS a.value AND e.step IS a.step"         \
    "   AND " same_rank " AND e." nth " = a.nth WHERE a.kept = 0) found"                           \
    " WHERE again.id = found.id;"

static int replace(struct lab_store *store, int64_t run, struct lab_err *err) {
    static const char *const statements[] = {
        "DELETE FROM metric WHERE run = ?",
        "INSERT INTO metric (run, rank, name, unit, value, time_ns, step)"
        " SELECT ?, rank, name, unit, value, time_ns, step FROM temp.again ORDER BY id",
        "DELETE FROM result_warnings WHERE run = ?1 AND text LIKE '" LAB_NO_METRIC
        "%' AND EXISTS (SELECT 1 FROM metric WHERE run = ?1)",
        NULL};
    return each(store, statements, run, err);
}

int lab_store_reread_end_run(struct lab_store *store, int64_t run, bool write, int64_t *ret_lost,
                             struct lab_err *err) {
    if (lab_store_exec(store, KEEP("e.rank = a.rank", "nth") KEEP("a.rank = -1", "nth_of_all"),
                       err) < 0 ||
        lab_store_find(store,
                       "SELECT max(0, (SELECT count(*) FROM temp.earlier)"
                       " - (SELECT count(*) FROM temp.again WHERE kept = ?))",
                       LAB_ROW(SQL_INT(1)), ret_lost, err) < 0)
        return -1;
    return write ? replace(store, run, err) : 0;
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
