/*
 * study_file.h: one study on disk, opened once. Whoever needs several things of a study (its state,
 * its runs, tables for analyses, samples) opens it here and asks for all of them; its runs are read
 * once, so that what is shown together agrees.
 *
 * It only reads: a study may be open while its runner works on it.
 */
#pragma once

#include "model/study_table.h"
#include "store/store.h"

struct lab_study_file_metrics { /* of one run */
    struct lab_study_metric *items;
    int count;
    bool read;
};

struct lab_study_file {
    const char *folder; /* as it was given */
    struct lab_store_study study;
    struct lab_store *store;
    struct lab_run *runs; /* all, in the planned order; NULL = not read yet */
    int run_count;
    struct lab_study_file_metrics *metrics; /* by the runs' numbers, once read with curves */
    struct lab_arena *arena; /* holds all that is handed out, also after the file is closed */
};

/* Opens study.db of the folder and reads what the study is. The handle lives in the arena. */
int lab_study_file_open(const char *folder, struct lab_arena *arena,
                        struct lab_study_file **ret_file, struct lab_err *err);
void lab_study_file_close(struct lab_study_file *file); /* accepts NULL */

/* Fills in `runs`; the second time it does nothing. */
int lab_study_file_runs(struct lab_study_file *file, struct lab_err *err);

/* The point that a run repeats: its id without the repeat, "vit32x6x512" of "vit32x6x512_r2". The
 * run's own text or one in the arena. */
const char *lab_study_file_point(const struct lab_run *run, struct lab_arena *arena);

/* What tables call the points of these runs: settings of a program by the keys that vary,
 * "lr=0.1, optimizer=adam", and by device and NUMA node where those differ; others as above. */
const char **lab_study_file_labels(const struct lab_run *const *runs, int count,
                                   struct lab_arena *arena);

/* The phase of a study that a run belongs to: "baseline"; "" = the study has none. */
const char *lab_study_file_phase(const struct lab_run *run, struct lab_arena *arena);

/* The last value of each metric that a run reported, by name and rank, in the order of their first
 * values, with its extremes; with `curves` its points, too. A run that is done is read once with
 * them. */
int lab_study_file_metrics(struct lab_study_file *file, const struct lab_run *run, bool curves,
                           struct lab_study_metric **ret_metrics, int *ret_count,
                           struct lab_err *err);

/*
 * The study as analyses take it. `needs` (LAB_STUDY_WITH_ITERATIONS, …) says what is read beside
 * the runs. Samples are those between the beginning and the end of a run, of all entities: other
 * GPUs are its neighbours. A trace or samples that aren't there are NULL; the analysis says so
 * where it matters.
 */
int lab_study_file_table(struct lab_study_file *file, unsigned needs,
                         struct lab_study_table *ret_table, struct lab_err *err);
