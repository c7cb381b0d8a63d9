/*
 * store_reread.c: the metrics of runs that have ended, replaced by what was read anew from their
 * logs. One transaction holds all of it: whoever is killed in between has lost nothing. A log has
 * no times: the nth value of a name, rank and step keeps the time of the one that was there before.
 * Steps may differ: while the program ran, stdout and stderr came in another order, and lines of
 * the one counted steps for the other. Of what is left then, the nth value of a name keeps its
 * time.
 */
#include "store/store_internal.h"

#include "model/reported_metric.h"

int lab_store_reread_begin(struct lab_store *store, bool write, struct lab_err *err) {
    if ((write ? lab_store_begin(store, true, err) : lab_store_exec(store, "BEGIN", err)) < 0)
        return -1;
    int result =
        lab_store_exec(store,
                       "CREATE TEMP TABLE earlier"
                       " (id INTEGER PRIMARY KEY, name TEXT, rank INTEGER, step REAL, value REAL,"
                       "  time_ns INTEGER);"
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
        "INSERT INTO temp.earlier SELECT id, name, rank, step, value, time_ns"
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

/* The nth of what is alike and wasn't found yet, on both sides. Values of an unknown rank (-1) have
 * that of the one that was there before, and likewise its step. */
#define LEFT(columns, table, left)                                                                 \
    "(SELECT *, row_number() OVER (PARTITION BY " columns " ORDER BY id) AS nth FROM temp." table  \
    " WHERE " left ")"
#define KEEP(columns, same)                                                                        \
    "UPDATE temp.again SET time_ns = found.time_ns, rank = found.rank,"                            \
    "  step = coalesce(again.step, found.step), kept = found.earlier FROM"                         \
    " (SELECT a.id, e.id AS earlier, e.time_ns, e.rank, e.step FROM " LEFT(                        \
        columns, "again",                                                                          \
        "kept = 0") " a JOIN " LEFT(columns, "earlier",                                            \
                                    "id NOT IN (SELECT kept FROM temp.again)") " e ON e.name = "   \
                                                                               "a.name AND "       \
                                                                               "e.value IS "       \
                                                                               "a.value AND "      \
                                                                               "e.nth = a.nth "    \
                                                                               "AND " same         \
                                                                               ") found"           \
                                                                               " WHERE again.id "  \
                                                                               "= found.id"

/* Finds each value among those that were there before. */
static int keep(struct lab_store *store, struct lab_err *err) {
    static const char *const statements[] = {
        KEEP("name, value, step, rank", "e.step IS a.step AND e.rank = a.rank"),
        KEEP("name, value, step", "e.step IS a.step AND a.rank = -1"),
        KEEP("name, value, rank", "e.rank = a.rank"),
        KEEP("name, value", "a.rank = -1"),
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        int64_t left; /* on the side that has fewer */
        if (lab_store_find(store,
                           "SELECT min((SELECT count(*) FROM temp.earlier), count(*))"
                           " - count(*) FILTER (WHERE kept > ?) FROM temp.again",
                           LAB_ROW(SQL_INT(0)), &left, err) < 0)
            return -1;
        if (left == 0)
            break;
        if (lab_store_exec(store, statements[i], err) < 0)
            return -1;
    }
    return 0;
}

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
    if (keep(store, err) < 0 ||
        lab_store_find(store,
                       "SELECT (SELECT count(*) FROM temp.earlier)"
                       " - (SELECT count(*) FROM temp.again WHERE kept > ?)",
                       LAB_ROW(SQL_INT(0)), ret_lost, err) < 0)
        return -1;
    return write ? replace(store, run, err) : 0;
}

int lab_store_reread_step(struct lab_store *store, const char *name, int rank, double *ret_step,
                          struct lab_err *err) {
    sqlite3_stmt *row = lab_store_query(store,
                                        "SELECT step FROM temp.again WHERE name = ?"
                                        " AND (rank = ? OR ? < 0) ORDER BY id DESC LIMIT 1",
                                        LAB_ROW(SQL_TEXT(name), SQL_INT(rank), SQL_INT(rank)), err);
    int got = row ? lab_store_step(store, row, err) : -1;
    if (got > 0)
        *ret_step = lab_sql_number(row, 0);
    sqlite3_reset(row);
    return got < 0 ? -1 : 0;
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
