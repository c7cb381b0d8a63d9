/*
 * store_schema.c: the tables of a study's file, and every statement that is made on them.
 *
 * The tables are made to be read by people too (`sqlite3 study.db`): states are words, times are
 * nanoseconds, JSON is text. Only the iterations are packed. Nothing is NULL but a metric that is
 * not a number, since SQLite has no other way to keep one. 64-bit hashes are stored as signed.
 *
 * A change to the tables raises LAB_STORE_VERSION; files of every earlier version stay readable.
 */
#include "store/store_internal.h"

const char lab_store_schema[] =
    "CREATE TABLE study ("
    "  id INTEGER PRIMARY KEY CHECK (id = 1),"
    "  name TEXT NOT NULL, option TEXT NOT NULL,"
    "  identity INTEGER NOT NULL, seed INTEGER NOT NULL,"
    "  config TEXT NOT NULL, words TEXT NOT NULL, machine TEXT NOT NULL,"
    "  version TEXT NOT NULL, created_wall_ns INTEGER NOT NULL);"
    "CREATE TABLE epoch ("
    "  id INTEGER PRIMARY KEY,"
    "  boot_id TEXT NOT NULL, host TEXT NOT NULL,"
    "  mono_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL, kind TEXT NOT NULL);"
    "CREATE TABLE run ("
    "  number INTEGER PRIMARY KEY,"
    "  id TEXT NOT NULL, identity INTEGER NOT NULL,"
    "  position INTEGER NOT NULL, repeat INTEGER NOT NULL,"
    "  workload TEXT NOT NULL, label TEXT NOT NULL,"
    "  options TEXT NOT NULL, series TEXT NOT NULL,"
    "  state TEXT NOT NULL DEFAULT 'planned'"
    "    CHECK (state IN ('planned', 'running', 'done', 'failed')),"
    "  attempts INTEGER NOT NULL DEFAULT 0,"
    "  epoch INTEGER NOT NULL DEFAULT 0,"
    "  start_ns INTEGER NOT NULL DEFAULT 0, end_ns INTEGER NOT NULL DEFAULT 0,"
    "  start_wall_ns INTEGER NOT NULL DEFAULT 0,"
    "  exit_code INTEGER NOT NULL DEFAULT 0,"
    "  error TEXT NOT NULL DEFAULT '', result TEXT NOT NULL DEFAULT '',"
    "  concurrent INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX run_position ON run (position);"
    "CREATE TABLE rank ("
    "  run INTEGER NOT NULL, rank INTEGER NOT NULL,"
    "  gpu_id INTEGER NOT NULL, device TEXT NOT NULL, numa_node INTEGER NOT NULL,"
    "  PRIMARY KEY (run, rank)) WITHOUT ROWID;"
    /* with a row id: blobs of this size make a WITHOUT ROWID tree slow */
    "CREATE TABLE iterations ("
    "  run INTEGER NOT NULL, rank INTEGER NOT NULL,"
    "  first INTEGER NOT NULL, count INTEGER NOT NULL, bytes BLOB NOT NULL,"
    "  UNIQUE (run, rank, first));"
    "CREATE TABLE metric ("
    "  id INTEGER PRIMARY KEY, run INTEGER NOT NULL, rank INTEGER NOT NULL,"
    "  name TEXT NOT NULL, unit TEXT NOT NULL, value REAL, time_ns INTEGER NOT NULL);"
    "CREATE INDEX metric_run ON metric (run);";

static const char *const statements[LAB_STORE_STATEMENT_COUNT] = {
    [LAB_STORE_INSERT_STUDY] = "INSERT INTO study VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_RUN] =
        "INSERT INTO run (number, id, identity, position, repeat, workload, label, options, series)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_RANK] = "INSERT INTO rank VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_EPOCH] =
        "INSERT INTO epoch (boot_id, host, mono_ns, wall_ns, kind) VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_FIND_EPOCH] =
        "SELECT id FROM epoch WHERE boot_id = ?1 AND host = ?2 AND kind = ?5"
        " AND abs((wall_ns - mono_ns) - (?4 - ?3)) <= ?6 ORDER BY id DESC LIMIT 1",
    [LAB_STORE_DROP_ITERATIONS] = "DELETE FROM iterations WHERE run = ?",
    [LAB_STORE_DROP_METRICS] = "DELETE FROM metric WHERE run = ?",
    [LAB_STORE_BEGIN_RUN] =
        "UPDATE run SET state = 'running', attempts = attempts + 1, epoch = ?2, start_ns = ?3,"
        " start_wall_ns = epoch.wall_ns + (?3 - epoch.mono_ns), end_ns = 0, exit_code = 0,"
        " error = '', result = '', concurrent = 0"
        " FROM epoch WHERE run.number = ?1 AND epoch.id = ?2",
    [LAB_STORE_FINISH_RUN] =
        "UPDATE run SET state = ?2, end_ns = ?3, exit_code = ?4, error = ?5, result = ?6,"
        " concurrent = ?7 WHERE number = ?1",
    [LAB_STORE_RUN_STATE] = "SELECT state FROM run WHERE number = ?",
    [LAB_STORE_NEXT_ITERATION] = "SELECT first + count FROM iterations WHERE run = ? AND rank = ?"
                                 " ORDER BY first DESC LIMIT 1",
    [LAB_STORE_HAS_RANK] = "SELECT 1 FROM rank WHERE run = ? AND rank = ?",
    [LAB_STORE_INSERT_ITERATIONS] = "INSERT INTO iterations VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_METRIC] =
        "INSERT INTO metric (run, rank, name, unit, value, time_ns) VALUES (?, ?, ?, ?, ?, ?)",
    [LAB_STORE_SELECT_STUDY] = "SELECT name, option, identity, seed, config, words, machine,"
                               " version, created_wall_ns FROM study",
    [LAB_STORE_SELECT_RUNS] =
        "SELECT number, id, identity, position, repeat, workload, label, options, series, state,"
        " attempts, epoch, start_ns, end_ns, start_wall_ns, exit_code, error, result, concurrent,"
        " rank.rank, gpu_id, device, numa_node"
        " FROM run LEFT JOIN rank ON rank.run = run.number"
        " ORDER BY run.position, run.number, rank.rank",
    [LAB_STORE_SELECT_ITERATIONS] =
        "SELECT first, count, bytes FROM iterations WHERE run = ? AND rank = ? ORDER BY first",
    [LAB_STORE_SELECT_METRICS] =
        "SELECT name, unit, rank, value, time_ns FROM metric WHERE run = ? ORDER BY id",
};

sqlite3_stmt *lab_store_prepare(struct lab_store *store, enum lab_store_statement statement,
                                struct lab_err *err) {
    sqlite3_stmt **prepared = &store->statements[statement];
    if (!*prepared && sqlite3_prepare_v3(store->db, statements[statement], -1,
                                         SQLITE_PREPARE_PERSISTENT, prepared, NULL)) {
        lab_store_fail(store, err);
        return NULL;
    }
    return *prepared;
}
