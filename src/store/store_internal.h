/*
 * store_internal.h: what the files of the store share: the connection, its prepared statements, and
 * how SQLite's refusals become ours.
 */
#pragma once

#include "model/result.h"
#include "store/sql.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>

/* "glab"; set in every file since the first version */
#define LAB_STORE_APPLICATION_ID 0x676c6162
#define LAB_STORE_VERSION        5
#define LAB_STORE_RESULTS        4 /* since then results have tables; before, they were texts */
#define LAB_STORE_STEPS          5 /* since then metrics have their step */

/* What a second writer waits before it is told so; what a writer and a reader give each other. */
#define LAB_STORE_OPEN_WAIT_MS 500
#define LAB_STORE_WAIT_MS      10000

/* How long the WAL grows before a commit moves it into the file; SQLite's own default. */
#define LAB_STORE_CHECKPOINT_PAGES 1000

struct lab_store;

/* Is this file one of those that are wanted? Sets the version. */
typedef int lab_store_check(struct lab_store *store, struct lab_err *err);

struct lab_store {
    sqlite3 *db;
    char *path;
    const char *noun; /* what it has to be: "a study's file" */
    lab_store_check *check;
    int version; /* of the file when it was opened */
    bool writes;
    bool durable; /* synchronous is EXTRA now, else NORMAL */
    struct lab_store_statement {
        const char *sql;
        sqlite3_stmt *prepared;
    } * statements; /* prepared at their first use */
    int statement_count;
    sqlite3_stmt *result_inserts[LAB_RESULT_ROW_COUNT + 1]; /* likewise; store_result.c's */
};

/* The tables of LAB_STORE_VERSION. */
extern const char lab_store_schema[];

/* What makes the tables of the version before the index's into those of it; from 2 on. Results are
 * not among them. */
extern const char *const lab_store_upgrades[LAB_STORE_VERSION + 1];

/* --- results (store_result.c) --- */

/* The tables of the rows that this program knows, as far as they are missing. */
int lab_store_make_results(struct lab_store *store, struct lab_err *err);
/* The same from the texts of version 3, which go. */
int lab_store_upgrade_results(struct lab_store *store, struct lab_err *err);
int lab_store_drop_result(struct lab_store *store, int64_t run, struct lab_err *err);
/* Of one that is done: its result and rate. */
int lab_store_add_result(struct lab_store *store, int64_t run, const struct lab_run *outcome,
                         struct lab_err *err);
/* Gives those that are done their results, or these keys of them; `runs` have their ranks. */
int lab_store_read_results(struct lab_store *store, const char *const *keys, struct lab_run *runs,
                           int count, struct lab_arena *arena, struct lab_err *err);
/* The same for one run of a file up to version 3, whose rate was read. */
void lab_store_read_old_result(struct lab_run *run, const char *json, struct lab_arena *arena);

/* --- life --- */

#define LAB_STORE_NOUN "a study's file"

/* A handle without a connection yet. */
struct lab_store *lab_store_new(const char *path, const char *noun, lab_store_check *check);

/* The check of studies. */
int lab_store_check_study(struct lab_store *store, struct lab_err *err);

/* Opens a new handle for reading, also where nothing can be written. On failure it keeps what it
 * has. */
int lab_store_open_reader(struct lab_store *store, struct lab_err *err);

/* Is there a file of the name that can be read, or written? In words of what it should be. */
int lab_store_check_path(const char *path, enum lab_store_mode mode, const char *noun,
                         struct lab_err *err);

/* WAL where the file's system can share memory; else a journal. */
int lab_store_set_journal(struct lab_store *store, struct lab_err *err);

/* The name that SQLite takes for the file and nothing else. */
char *lab_store_file_name(struct lab_arena *arena, const char *path);

/* Which boot of this machine, or "". */
const char *lab_store_boot_id(struct lab_arena *arena);

/* Has the file lost its name since it was opened? Then whatever is written is lost. */
int lab_store_check_name(struct lab_store *store, struct lab_err *err);

/* Fails: the file is newer than this program. `sql` asks for the version of the program that wrote
 * it. */
int lab_store_refuse_newer(struct lab_store *store, const char *sql, int64_t version, int known,
                           struct lab_err *err);
/* The first column of the first row, 0 where there is none. */
int lab_store_read_number(struct lab_store *store, const char *sql, int64_t *ret_number,
                          struct lab_err *err);

/* `file` is a name or URI for SQLite, `flags` as for sqlite3_open_v2; on failure the store keeps
 * what it has. */
int lab_store_connect(struct lab_store *store, const char *file, int flags, struct lab_err *err);

/* Fails where something beside the file isn't opened (lab_sql_open). */
int lab_store_check_beside(struct lab_store *store, struct lab_err *err);

/* Closes as it is, without tidying up. */
void lab_store_abandon(struct lab_store *store);

/* --- statements --- */

/* Ready to be bound, or NULL. It is kept, and found again by the text's address: the text has to
 * stay where it is, as a literal does. */
sqlite3_stmt *lab_store_prepare(struct lab_store *store, const char *sql, struct lab_err *err);

/* 1 = a row, 0 = no more, -1 = refused; after 0 and -1 the statement is reset. */
int lab_store_step(struct lab_store *store, sqlite3_stmt *statement, struct lab_err *err);

/* Ready to be stepped, with these parameters, or NULL. */
sqlite3_stmt *lab_store_query(struct lab_store *store, const char *sql,
                              const struct lab_sql_cell *row, struct lab_err *err);

/* The first column of the first row: 1, 0 = there is none, or -1. */
int lab_store_find(struct lab_store *store, const char *sql, const struct lab_sql_cell *row,
                   int64_t *ret_number, struct lab_err *err);

/* Runs one that returns nothing, with these parameters. */
int lab_store_write(struct lab_store *store, const char *sql, const struct lab_sql_cell *row,
                    struct lab_err *err);

int lab_store_exec(struct lab_store *store, const char *sql, struct lab_err *err);

/* Says what SQLite refused last; always returns -1. */
int lab_store_fail(struct lab_store *store, struct lab_err *err);

#define LAB_STORE_INSERT_EPOCH                                                                     \
    "INSERT INTO epoch (boot_id, host, mono_ns, wall_ns, kind) VALUES (?, ?, ?, ?, ?)"

/* --- transactions --- */

/* As the only writer. Durable = on the disk when the commit returns; else it survives the end of
 * the process, and is on the disk with the next durable commit. */
int lab_store_begin(struct lab_store *store, bool durable, struct lab_err *err);
int lab_store_commit(struct lab_store *store, struct lab_err *err); /* or rolls back */
void lab_store_rollback(struct lab_store *store);                   /* if anything is under way */

/* --- file systems --- */

/* Can processes share memory through a file of it? `type` as in statfs(2). */
bool lab_store_shares_memory(unsigned long type);
