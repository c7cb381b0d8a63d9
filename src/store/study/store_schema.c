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
    "  name TEXT NOT NULL, unit TEXT NOT NULL, value REAL, time_ns INTEGER NOT NULL,"
    "  step REAL);"
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
    [5] = "ALTER TABLE metric ADD COLUMN step REAL;",
};
