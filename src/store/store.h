/*
 * store.h: a study's memory, one SQLite file. The only user of sqlite3.h.
 *
 * One process writes (the runner), any number read. WAL where the file system can share memory (not
 * on network ones); results are committed with synchronous=EXTRA before anything is acknowledged;
 * at the end a checkpoint leaves one file. `application_id` and `user_version` are set from the
 * first version on; a file of a later version is refused with its number, one that isn't ours at
 * all too. Earlier versions are read as they are; a writer that opens one upgrades it in its first
 * transaction.
 *
 * Times are CLOCK_MONOTONIC; an epoch (a stretch between boots of one machine) anchors them to wall
 * time, so that what was measured before and after a reboot can stand in one file.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/curve.h"
#include "model/iteration.h"
#include "model/run.h"

#include <stddef.h>

struct lab_store;

struct lab_store_study {
    const char *name;   /* "numa_locality_study" */
    const char *option; /* "numa_study" */
    uint64_t identity;  /* of the plan */
    uint64_t seed;
    const char *config;  /* YAML as composed */
    const char *words;   /* JSON: the command line's */
    const char *machine; /* JSON */
    const char *version; /* of gpulab */
    int64_t created_wall_ns;
    uint64_t machine_identity; /* of where it runs: resuming elsewhere is another study */
};

/* --- life --- */

/* Makes a new file with the study and its planned runs, all or nothing; an existing one is an
 * error. The runs are numbered from 1 as they come; of each its plan is kept, not its state. */
int lab_store_create(const char *path, const struct lab_store_study *study,
                     const struct lab_run *runs, int count, struct lab_store **ret_store,
                     struct lab_err *err);

/*
 * A reader may open the file while a writer works, and needs no permission to write anything. A
 * writer is refused while another one's transaction goes on; that there is no other between
 * transactions is up to whoever locks the study's directory. A handle belongs to one thread at a
 * time and must not be carried through a fork.
 */
enum lab_store_mode { LAB_STORE_READ, LAB_STORE_WRITE };
int lab_store_open(const char *path, enum lab_store_mode mode, struct lab_store **ret_store,
                   struct lab_err *err);

/* Accepts NULL. A writer's checkpoints first, so that one file remains (unless readers have it
 * open). */
void lab_store_close(struct lab_store *store);

/* --- writing ---
 * A refusal leaves the file as it was and the store usable: after "no space left" the same call
 * works again once there is room. */

/* Starts an epoch now (boot id, host, both clocks), or finds the one of this boot; `kind` =
 * "runner". One whose clocks have since moved against each other by over a second (a suspended
 * machine, a corrected wall clock) isn't taken up again. */
int lab_store_epoch(struct lab_store *store, const char *kind, int64_t *ret_epoch,
                    struct lab_err *err);

/* Where a run will be that wasn't placed before: its ranks are replaced. One that is done keeps
 * its own. */
int lab_store_place_run(struct lab_store *store, int64_t run, const struct lab_run_rank *ranks,
                        int count, struct lab_err *err);

/* A run begins its next attempt; what an earlier one left of it is dropped. One that is done
 * can't. */
int lab_store_begin_run(struct lab_store *store, int64_t run, int64_t epoch, int64_t start_ns,
                        struct lab_err *err);

/* Chunks of one rank's iterations, from 0 on and without a gap; visible to readers at once, safe
 * from a crash of the process, durable with the result. */
int lab_store_add_iterations(struct lab_store *store, int64_t run, int rank, int64_t first,
                             const struct lab_iteration *items, size_t count, struct lab_err *err);

struct lab_store_metric {
    const char *name, *unit;
    int rank;        /* -1 = of the whole run; a program may have others than the run */
    double value;    /* may be infinite or not a number */
    int64_t time_ns; /* -1 = unknown: it was read from a log */
    double step;     /* of the program's training; NaN = unknown */
};
/* All or none, in one transaction. */
int lab_store_add_metrics(struct lab_store *store, int64_t run,
                          const struct lab_store_metric *items, size_t count, struct lab_err *err);

/* Where runs that are under way stand: replaces what was said before of them; what is said of
 * others is not kept. Visible to readers at once, and doesn't wait for the disk where there is a
 * WAL. */
int lab_store_set_progress(struct lab_store *store, const struct lab_run_progress *items, int count,
                           struct lab_err *err);

/* The end of a running run: state (done or failed), end_ns, exit_code, error, hint, result,
 * concurrent, the rate and valid of `outcome`; when this returns 0 it survives a power cut. */
int lab_store_finish_run(struct lab_store *store, int64_t run, const struct lab_run *outcome,
                         struct lab_err *err);

/*
 * Replaces the metrics of runs that have ended, in one transaction: begin; then for each run
 * reread_run, add, and end_run, which gives those that were there before their times back, counts
 * those that weren't read again, and takes back the warning that there are none; then end. Readers
 * see nothing of it before, and all of it or (`keep` is false) nothing after. Without `write`
 * nothing is replaced, and the store may be open to read.
 */
int lab_store_reread_begin(struct lab_store *store, bool write, struct lab_err *err);
int lab_store_reread_run(struct lab_store *store, int64_t run, struct lab_err *err);
int lab_store_reread_add(struct lab_store *store, const struct lab_store_metric *items,
                         size_t count, struct lab_err *err);
int lab_store_reread_end_run(struct lab_store *store, int64_t run, bool write, int64_t *ret_lost,
                             struct lab_err *err);
/* Behind end_run: the step of a metric's last value, as it is kept; of rank -1 any rank's. */
int lab_store_reread_step(struct lab_store *store, const char *name, int rank, double *ret_step,
                          struct lab_err *err);
int lab_store_reread_end(struct lab_store *store, bool keep, struct lab_err *err);

/* --- reading --- */

int lab_store_study(struct lab_store *store, struct lab_arena *arena,
                    struct lab_store_study *ret_study, struct lab_err *err);

/* All runs in the planned order, with their results. 10,000 of them take well under 0.3 s. */
int lab_store_runs(struct lab_store *store, struct lab_arena *arena, struct lab_run **ret_runs,
                   int *ret_count, struct lab_err *err);

/* The same for whoever needs little: of results only the rates, validity and what these keys of
 * model/result.h name (NULL-terminated). */
int lab_store_runs_with(struct lab_store *store, const char *const *keys, struct lab_arena *arena,
                        struct lab_run **ret_runs, int *ret_count, struct lab_err *err);

/* Of the runs that are running, in the planned order; a run that nothing was said of yet has
 * none. */
int lab_store_progress(struct lab_store *store, struct lab_arena *arena,
                       struct lab_run_progress **ret_items, int *ret_count, struct lab_err *err);

/* How many runs are in each state, without reading them. */
int lab_store_count(struct lab_store *store, int ret_counts[LAB_RUN_STATE_COUNT],
                    struct lab_err *err);

int lab_store_iterations(struct lab_store *store, int64_t run, int rank, struct lab_arena *arena,
                         struct lab_iteration **ret_items, size_t *ret_count, struct lab_err *err);

/* The same a chunk at a time, however many there are. `each` may end it by returning anything but
 * 0: then this returns -1 and `err` is left to whoever ended it. */
typedef int lab_store_chunk(void *state, int64_t first, const struct lab_iteration *items,
                            size_t count);
int lab_store_each_chunk(struct lab_store *store, int64_t run, int rank, lab_store_chunk *each,
                         void *state, struct lab_err *err);

int lab_store_count_metrics(struct lab_store *store, int64_t run, int64_t *ret_count,
                            struct lab_err *err);
int lab_store_metrics(struct lab_store *store, int64_t run, struct lab_arena *arena,
                      struct lab_store_metric **ret_metrics, int *ret_count, struct lab_err *err);

/* The same one at a time, however many there are; names hold until `each` returns. */
typedef int lab_store_metric_each(void *state, const struct lab_store_metric *metric);
int lab_store_each_metric(struct lab_store *store, int64_t run, lab_store_metric_each *each,
                          void *state, struct lab_err *err);

/* At most so many (-1 = all) of those behind number `after` (0 = from the first). `ret_last`
 * becomes the last one's number, and stays where there is none. */
int lab_store_each_metric_after(struct lab_store *store, int64_t run, int64_t after, int64_t most,
                                lab_store_metric_each *each, void *state, int64_t *ret_last,
                                struct lab_err *err);

/* When its latest attempt began; -1 = unknown. Another attempt has reported nothing of the one
 * before. */
int64_t lab_store_run_start(struct lab_store *store, int64_t run);

/* The same as curves, with times since `start_ns`. Only what came after `curves->last` is read: a
 * run that is under way can be followed. */
int lab_store_read_curves(struct lab_store *store, int64_t run, int64_t start_ns,
                          struct lab_metric_curves *curves, struct lab_err *err);
