/*
 * study_view.h: a study on disk as the reports want it: who it is, its runs, how far it is. `list`,
 * `show`, `status`, `estimate` and `report` look at studies through this alone, so that they agree
 * on what a study is and how it stands.
 */
#pragma once

#include "load/study_file.h"
#include "model/study_info.h"
#include "run/folder.h"
#include "run/history.h"

struct lab_study_view {
    struct lab_study_info report;
    struct lab_study_file *file; /* what it was read from; whoever opened that closes it */
    const char *path;            /* of the folder, as it was given */
    struct lab_store_study study;
    int counts[LAB_RUN_STATE_COUNT];
    struct lab_holder holder; /* zeroed where nobody holds it */
    int max_workers;          /* from its config; 1 where that doesn't say */
    struct lab_estimate estimate;
};

/*
 * The view of an open study, in the file's arena.
 *
 * Without its runs it is quick, whatever their number: enough for a line of a list (`counts`,
 * `report.state_counts`). Then nothing is estimated (NaN). With its runs, the time left comes from
 * this study and, where it is unfinished, from the newest ones of this user on the same machine.
 */
int lab_study_view_read(struct lab_study_file *file, bool with_runs,
                        struct lab_study_view *ret_view, struct lab_err *err);

/* The same, with runs, of a study that this process still holds but has ended the runs of: what the
 * next one finds, which tries again what failed. */
int lab_study_view_read_ended(struct lab_study_file *file, struct lab_study_view *ret_view,
                              struct lab_err *err);

/* The same of a study that nothing else is asked of: opens the folder's, reads it, closes it.
 * Everything lives in the arena; `file` is closed. */
int lab_study_view_look(const char *folder, bool with_runs, struct lab_arena *arena,
                        struct lab_study_view *ret_view, struct lab_err *err);

/*
 * The same, with runs, for whoever looks again and again: the time left comes from `history`, which
 * isn't read anew each time. What the study itself has done is added to it. NULL = nothing is
 * estimated.
 */
int lab_study_view_follow(struct lab_study_file *file, struct lab_history *history,
                          struct lab_study_view *ret_view, struct lab_err *err);

/* The history for that: of the newest studies of this user on the study's machine, without the
 * study itself, whose runs a view adds. Never NULL; the caller closes it. */
struct lab_history *lab_study_view_history(const struct lab_study_file *file);

/* Adds what programs of the user's own said last to the report, where the study runs any. */
int lab_study_view_metrics(struct lab_study_view *view, struct lab_err *err);

/* For programs: name, folder, command, machine, counts of runs by state, who runs it, time left. */
struct lab_value *lab_study_view_value(const struct lab_study_view *view, struct lab_arena *arena);

/* A path as the user would write it here: below the working directory without that. */
const char *lab_study_view_shorten(const char *path, struct lab_arena *arena);

/* The report that the study has; "" = none. */
const char *lab_study_view_find_report(const struct lab_study_view *view, struct lab_arena *arena);

/* "gpulab run …" of the words' JSON list, quoted for a shell; "" where it is no list of strings. */
const char *lab_study_view_command(const char *words, struct lab_arena *arena);
