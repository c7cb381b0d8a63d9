/*
 * store_schema.c: the tables of a study's file, and every statement that is made on them.
 *
 * The tables are made to be read by people too (`sqlite3 study.db`): states are words, times are
 * nanoseconds, JSON is text. Only the iterations are packed. Nothing is NULL but a figure that is
 * not a number, since SQLite has no other way to keep one. 64-bit hashes are stored as signed.
 *
 * A change to the tables raises LAB_STORE_VERSION. Files of every earlier version stay readable as
 * they are, and a writer upgrades them; hence new columns stand at a table's end, as ALTER puts
 * them. Version 2 added the machine's identity, a run's test settings, its rate and validity, and
 * progress. Version 3 added the tables of a recording (recording_schema.h): what was sampled while
 * runs ran. Version 4 added the hint that belongs to a run's error, by its name, and gave results
 * tables of their own (store_result.c) in place of a text; these get new columns without a new
 * version.
 */
#include "store/recording/recording_schema.h"
#include "store/store_internal.h"

#define PROGRESS_TABLE                                                                             \
    "CREATE TABLE progress ("                                                                      \
    "  run INTEGER PRIMARY KEY, phase TEXT NOT NULL,"                                              \
    "  done INTEGER NOT NULL, total INTEGER NOT NULL, time_ns INTEGER NOT NULL);"

const char lab_store_schema[] =
    "CREATE TABLE study ("
    "  id INTEGER PRIMARY KEY CHECK (id = 1),"
    "  name TEXT NOT NULL, option TEXT NOT NULL,"
    "  identity INTEGER NOT NULL, seed INTEGER NOT NULL,"
    "  config TEXT NOT NULL, words TEXT NOT NULL, machine TEXT NOT NULL,"
    "  version TEXT NOT NULL, created_wall_ns INTEGER NOT NULL,"
    "  machine_identity INTEGER NOT NULL DEFAULT 0);" LAB_RECORDING_EPOCH_TABLE "CREATE TABLE run ("
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
    "  error TEXT NOT NULL DEFAULT '',"
    "  concurrent INTEGER NOT NULL DEFAULT 0,"
    "  test TEXT NOT NULL DEFAULT '{}',"
    "  iterations INTEGER NOT NULL DEFAULT 0, warmup_iterations INTEGER NOT NULL DEFAULT 0,"
    "  hint TEXT NOT NULL DEFAULT '');"
    "CREATE INDEX run_position ON run (position);"
    "CREATE INDEX run_state ON run (state);"
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
    "CREATE INDEX metric_run ON metric (run);" PROGRESS_TABLE LAB_RECORDING_TABLES;

const char *const lab_store_upgrades[LAB_STORE_VERSION + 1] = {
    [2] = "ALTER TABLE study ADD COLUMN machine_identity INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE run ADD COLUMN test TEXT NOT NULL DEFAULT '{}';"
          "ALTER TABLE run ADD COLUMN iterations INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE run ADD COLUMN warmup_iterations INTEGER NOT NULL DEFAULT 0;"
          "ALTER TABLE run ADD COLUMN rate REAL;"
          "ALTER TABLE run ADD COLUMN rate_low REAL;"
          "ALTER TABLE run ADD COLUMN rate_high REAL;"
          "ALTER TABLE run ADD COLUMN rate_unit TEXT NOT NULL DEFAULT '';"
          "ALTER TABLE run ADD COLUMN valid INTEGER NOT NULL DEFAULT 1;"
          "CREATE INDEX run_state ON run (state);" PROGRESS_TABLE,
    [3] = LAB_RECORDING_TABLES,
    [4] = "ALTER TABLE run ADD COLUMN hint TEXT NOT NULL DEFAULT '';",
};

#define RUN_COLUMNS_1                                                                              \
    "number, id, identity, position, repeat, workload, label, options, series, state,"             \
    " attempts, epoch, start_ns, end_ns, start_wall_ns, exit_code, error, concurrent"
#define RANK_COLUMNS " rank.rank, gpu_id, device, numa_node"
#define OF_RUN_AND_RANKS                                                                           \
    " FROM run LEFT JOIN rank ON rank.run = run.number"                                            \
    " ORDER BY run.position, run.number, rank.rank"

static const char *const statements[LAB_STORE_STATEMENT_COUNT] = {
    [LAB_STORE_INSERT_STUDY] =
        "INSERT INTO study (id, name, option, identity, seed, config, words, machine, version,"
        " created_wall_ns, machine_identity) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_RUN] =
        "INSERT INTO run (number, id, identity, position, repeat, workload, label, options, series,"
        " test, iterations, warmup_iterations) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_RANK] = "INSERT INTO rank VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_EPOCH] =
        "INSERT INTO epoch (boot_id, host, mono_ns, wall_ns, kind) VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_FIND_EPOCH] =
        "SELECT id FROM epoch WHERE boot_id = ?1 AND host = ?2 AND kind = ?5"
        " AND abs((wall_ns - mono_ns) - (?4 - ?3)) <= ?6 ORDER BY id DESC LIMIT 1",
    [LAB_STORE_DROP_ITERATIONS] = "DELETE FROM iterations WHERE run = ?",
    [LAB_STORE_DROP_METRICS] = "DELETE FROM metric WHERE run = ?",
    [LAB_STORE_DROP_PROGRESS] = "DELETE FROM progress WHERE run = ?",
    [LAB_STORE_BEGIN_RUN] =
        "UPDATE run SET state = 'running', attempts = attempts + 1, epoch = ?2, start_ns = ?3,"
        " start_wall_ns = epoch.wall_ns + (?3 - epoch.mono_ns), end_ns = 0, exit_code = 0,"
        " error = '', concurrent = 0, hint = ''"
        " FROM epoch WHERE run.number = ?1 AND epoch.id = ?2",
    [LAB_STORE_FINISH_RUN] =
        "UPDATE run SET state = ?2, end_ns = ?3, exit_code = ?4, error = ?5, concurrent = ?6,"
        " hint = ?7 WHERE number = ?1",
    [LAB_STORE_RUN_STATE] = "SELECT state FROM run WHERE number = ?",
    [LAB_STORE_NEXT_ITERATION] = "SELECT first + count FROM iterations WHERE run = ? AND rank = ?"
                                 " ORDER BY first DESC LIMIT 1",
    [LAB_STORE_HAS_RANK] = "SELECT 1 FROM rank WHERE run = ? AND rank = ?",
    [LAB_STORE_INSERT_ITERATIONS] = "INSERT INTO iterations VALUES (?, ?, ?, ?, ?)",
    [LAB_STORE_INSERT_METRIC] =
        "INSERT INTO metric (run, rank, name, unit, value, time_ns) VALUES (?, ?, ?, ?, ?, ?)",
    [LAB_STORE_SET_PROGRESS] = "INSERT OR REPLACE INTO progress (run, phase, done, total, time_ns)"
                               " SELECT number, ?2, ?3, ?4, ?5 FROM run"
                               " WHERE number = ?1 AND state = 'running'",
    [LAB_STORE_SELECT_STUDY] = "SELECT name, option, identity, seed, config, words, machine,"
                               " version, created_wall_ns, machine_identity FROM study",
    [LAB_STORE_SELECT_STUDY_1] = "SELECT name, option, identity, seed, config, words, machine,"
                                 " version, created_wall_ns, 0 FROM study",
    [LAB_STORE_SELECT_RUNS] =
        "SELECT " RUN_COLUMNS_1
        ", test, iterations, warmup_iterations, hint," RANK_COLUMNS OF_RUN_AND_RANKS,
    [LAB_STORE_SELECT_RUNS_3] =
        "SELECT " RUN_COLUMNS_1 ", test, iterations, warmup_iterations, ''," RANK_COLUMNS
        ", result, rate, rate_low, rate_high, rate_unit, valid" OF_RUN_AND_RANKS,
    [LAB_STORE_SELECT_RUNS_1] = "SELECT " RUN_COLUMNS_1 ", '{}', 0, 0, ''," RANK_COLUMNS
                                ", result, NULL, NULL, NULL, '', 1" OF_RUN_AND_RANKS,
    [LAB_STORE_SELECT_PROGRESS] =
        "SELECT progress.run, phase, done, total, time_ns FROM progress"
        " JOIN run ON run.number = progress.run ORDER BY run.position, run.number",
    [LAB_STORE_COUNT_RUNS] = "SELECT state, count(*) FROM run GROUP BY state",
    [LAB_STORE_SELECT_ITERATIONS] =
        "SELECT first, count, bytes FROM iterations WHERE run = ? AND rank = ? ORDER BY first",
    [LAB_STORE_SELECT_METRICS] =
        "SELECT name, unit, rank, value, time_ns FROM metric WHERE run = ? ORDER BY id",
    [LAB_STORE_ADD_RECORDING] =
        "INSERT INTO recording (maker, note, interval_ns, started_wall_ns) VALUES (?, ?, ?, ?)",
    [LAB_STORE_SELECT_ENTITIES] =
        "SELECT number, id, kind, position, name, pci, node, parent, simulated, columns"
        " FROM entity ORDER BY number",
    [LAB_STORE_ADD_ENTITY] =
        "INSERT INTO entity (number, id, kind, position, name, pci, node, parent, simulated,"
        " columns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_SET_CHUNK] =
        "INSERT INTO chunk (number, entity, epoch, first_ns, last_ns, count, bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
        " last_ns = excluded.last_ns, count = excluded.count, bytes = excluded.bytes",
    [LAB_STORE_ADD_EVENT] =
        "INSERT INTO event (epoch, time_ns, entity, kind, value, text) VALUES (?, ?, ?, ?, ?, ?)",
    [LAB_STORE_ADD_PROCESS] =
        "INSERT INTO process (number, pid, parent_pid, start, uid, user, name, command, container,"
        " advice) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [LAB_STORE_SET_PROCESS_CHUNK] =
        "INSERT INTO process_chunk (number, epoch, first_ns, last_ns, count, items, bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
        " last_ns = excluded.last_ns, count = excluded.count, items = excluded.items,"
        " bytes = excluded.bytes",
    [LAB_STORE_NEXT_NUMBERS] = "SELECT 1 + ifnull((SELECT max(number) FROM entity), 0),"
                               " 1 + ifnull((SELECT max(number) FROM chunk), 0),"
                               " 1 + ifnull((SELECT max(number) FROM process), 0),"
                               " 1 + ifnull((SELECT max(number) FROM process_chunk), 0)",
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
