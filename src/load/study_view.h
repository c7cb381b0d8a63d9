/*
 * study_view.h: a study on disk as the reports want it. `list`, `show`, `status` and `estimate`
 * look at studies through this alone, so that they agree on what a study is and how it stands.
 *
 * It only reads: a study may be looked at while its runner works on it.
 */
#ifndef LAB_LOAD_STUDY_VIEW_H
#define LAB_LOAD_STUDY_VIEW_H

#include "model/study_info.h"
#include "run/folder.h"
#include "run/history.h"
#include "store/store.h"

struct lab_study_view {
    struct lab_study_info report;
    struct lab_store_study study;
    const char *path;     /* of the folder, as it was given */
    const char *database; /* path/study.db */
    int counts[LAB_RUN_STATE_COUNT];
    struct lab_holder holder; /* zeroed where nobody holds it */
    int max_workers;          /* from its config; 1 where that doesn't say */
    struct lab_estimate estimate;
};

/*
 * Reads the study in the folder `path` (see lab_folder_resolve). Everything lives in the arena.
 *
 * Without its runs it is quick, whatever their number: enough for a line of a list (`counts`,
 * `report.state_counts`). Then nothing is estimated (NaN).
 */
int lab_study_view_open(const char *path, bool with_runs, struct lab_arena *arena,
                        struct lab_study_view *ret_view, struct lab_err *err);

/*
 * The same, with runs, for whoever looks again and again: the time left comes from `history`, which
 * isn't read anew each time. What the study itself has done is added to it. NULL = nothing is
 * estimated.
 */
int lab_study_view_follow(const char *path, struct lab_history *history, struct lab_arena *arena,
                          struct lab_study_view *ret_view, struct lab_err *err);

/* The history for that: of the newest studies of this user on the view's machine. Never NULL. */
struct lab_history *lab_study_view_history(const struct lab_study_view *view);

/* For programs: name, folder, command, machine, counts of runs by state, who runs it, time left. */
/* Adds what programs of the user's own said last to the report, where the study runs any. */
int lab_study_view_metrics(struct lab_study_view *view, struct lab_arena *arena,
                           struct lab_err *err);

struct lab_value *lab_study_view_value(const struct lab_study_view *view, struct lab_arena *arena);

/* A path as the user would write it here: below the working directory without that. */
const char *lab_study_view_shorten(const char *path, struct lab_arena *arena);

/* "gpulab run …" of the words' JSON list, quoted for a shell; "" where it is no list of strings. */
const char *lab_study_view_command(const char *words, struct lab_arena *arena);

#endif
