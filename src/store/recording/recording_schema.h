/*
 * recording_schema.h: the tables of a recording, the same in a file of its own and in a study's.
 * Described for those who read them with other programs in docs/FORMATS.md.
 *
 * They are made to be read by people too (`sqlite3 FILE`): kinds are words, columns have names,
 * times are nanoseconds of CLOCK_MONOTONIC in the epoch that the row names. Only ticks and the
 * lists of processes are packed (recording_pack.c, recording_process.c).
 *
 * A change raises LAB_RECORDING_VERSION, and LAB_STORE_VERSION too.
 */
#pragma once

/* "glar"; a study's file has its own */
#define LAB_RECORDING_APPLICATION_ID 0x676c6172
#define LAB_RECORDING_VERSION        1

/* Tables of a study's file have these from its version 3 on. */
#define LAB_RECORDING_IN_STORE 3

/* Who began an epoch; a study's runner has others in the same table. */
#define LAB_RECORDING_EPOCH_KIND "recorder"

#define LAB_RECORDING_EPOCH_TABLE                                                                  \
    "CREATE TABLE epoch ("                                                                         \
    "  id INTEGER PRIMARY KEY,"                                                                    \
    "  boot_id TEXT NOT NULL, host TEXT NOT NULL,"                                                 \
    "  mono_ns INTEGER NOT NULL, wall_ns INTEGER NOT NULL, kind TEXT NOT NULL);"

/* The index has all but the bytes of a chunk: what there is in a time is found without reading
 * them. */
#define LAB_RECORDING_TABLES                                                                       \
    "CREATE TABLE recording ("                                                                     \
    "  number INTEGER PRIMARY KEY, maker TEXT NOT NULL, note TEXT NOT NULL,"                       \
    "  interval_ns INTEGER NOT NULL, started_wall_ns INTEGER NOT NULL);"                           \
    "CREATE TABLE entity ("                                                                        \
    "  number INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL,"                          \
    "  position INTEGER NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL, node INTEGER NOT NULL,"   \
    "  parent INTEGER NOT NULL, simulated INTEGER NOT NULL, columns TEXT NOT NULL);"               \
    "CREATE TABLE chunk ("                                                                         \
    "  number INTEGER PRIMARY KEY, entity INTEGER NOT NULL, epoch INTEGER NOT NULL,"               \
    "  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, count INTEGER NOT NULL,"               \
    "  bytes BLOB NOT NULL);"                                                                      \
    "CREATE INDEX chunk_time ON chunk (epoch, first_ns, last_ns, entity, count);"                  \
    "CREATE TABLE event ("                                                                         \
    "  number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, time_ns INTEGER NOT NULL,"              \
    "  entity INTEGER NOT NULL, kind TEXT NOT NULL, value INTEGER NOT NULL, text TEXT NOT NULL);"  \
    "CREATE TABLE process ("                                                                       \
    "  number INTEGER PRIMARY KEY, pid INTEGER NOT NULL, parent_pid INTEGER NOT NULL,"             \
    "  start INTEGER NOT NULL, uid INTEGER NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,"      \
    "  command TEXT NOT NULL, container TEXT NOT NULL, advice TEXT NOT NULL);"                     \
    "CREATE TABLE process_chunk ("                                                                 \
    "  number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"                                        \
    "  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,"                                       \
    "  count INTEGER NOT NULL, items INTEGER NOT NULL, bytes BLOB NOT NULL);"
