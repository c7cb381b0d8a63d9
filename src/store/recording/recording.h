/*
 * recording.h: samples on disk. A recording is one SQLite file; a study's database holds the same
 * tables, so that whatever reads one reads the other.
 *
 * Ticks are packed in chunks of one entity: column by column, differences of times and values in as
 * few bits as they need, a column that never changes in two bytes and its value. The open chunk is
 * written anew once a second until it is full, so that a crash loses at most the last second while
 * a day stays small. One process writes; any number read meanwhile.
 *
 * Recordings have an `application_id` and `user_version` of their own. A truncated or damaged one
 * is read as far as it goes, and says what is missing.
 */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/recording.h"
#include "store/store.h"

struct lab_recorder;

struct lab_recorder_setup {
    int64_t interval_ns;
    const char *note;              /* what was recorded: the command's words, "" */
    const struct lab_clock *clock; /* NULL = the system's */
    int64_t flush_ns;              /* 0 = each second */
    /* Of the wall clock, ns since 1970. NULL = the system's; with a clock of one's own wall time
     * goes as that does, until a LAB_EVENT_CLOCK says otherwise. */
    int64_t (*wall_ns)(void);
};

/* --- writing --- */

/* A new file; an existing one is refused (LAB_ERR_USER), so is a folder that isn't there. */
int lab_recorder_create(const char *path, const struct lab_recorder_setup *setup,
                        struct lab_recorder **ret_recorder, struct lab_err *err);

/* Into an open study, whose writer this thread is. The store must outlive the recorder. */
int lab_recorder_attach(struct lab_store *store, const struct lab_recorder_setup *setup,
                        struct lab_recorder **ret_recorder, struct lab_err *err);

/* Takes samples; nothing is written before the next flush. */
struct lab_sink_samples lab_recorder_sink(struct lab_recorder *recorder);

/*
 * Writes what is due; cheap when nothing is. A full or failing disk: -1 with the reason, once and
 * again when the reason changes, else 0. The samples are kept as far as a bound of memory allows,
 * each flush tries again, and what had to be dropped is noted in the file (LAB_EVENT_NOT_STORED) as
 * soon as it can be. `force` writes all that is there, due or not; -1 whenever it can't.
 */
int lab_recorder_flush(struct lab_recorder *recorder, bool force, struct lab_err *err);

/* Ticks that it took and that are not in the file as it is now. */
int64_t lab_recorder_lost(const struct lab_recorder *recorder);

/* Flushes and checkpoints, so that one file remains. Accepts NULL. -1: the last second is
 * missing. */
int lab_recorder_close(struct lab_recorder *recorder, struct lab_err *err);

/* --- reading --- */

struct lab_recording_query {
    const enum lab_metric_id *metrics; /* only these columns; NULL = all */
    int metric_count;
    int64_t from_ns, until_ns; /* of CLOCK_MONOTONIC, both included; both 0 = all */
    int64_t
        epoch; /* whose times they are, as a run names it: those of that boot; 0 = the last boot */
    bool without_processes;
    int64_t max_bytes; /* of memory for ticks and processes; 0 = three quarters of the machine's */
};

/*
 * A file that was gone on with after a reboot has several times CLOCK_MONOTONIC. Read whole, the
 * times of later boots are moved behind those of the first, by as much as the wall clock says; read
 * between two times, they are as they were.
 */

/* A recording or a study's database; `query` NULL = all of it. Ten million values take a tenth of a
 * second. */
int lab_recording_read(const char *path, const struct lab_recording_query *query,
                       struct lab_arena *arena, struct lab_recording *ret_recording,
                       struct lab_err *err);

/* Likewise from an open study: what was recorded between two times, for a run's figures. */
int lab_recording_read_store(struct lab_store *store, const struct lab_recording_query *query,
                             struct lab_arena *arena, struct lab_recording *ret_recording,
                             struct lab_err *err);
