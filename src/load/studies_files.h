/*
 * studies_files.h: load's own: what isn't in a study but is analysed as one: files of timings that
 * tuners left, and recordings that were made beside the runs. Others read them by
 * lab_studies_read.
 */
#pragma once

#include "load/studies.h"

struct lab_studies_timing {
    const char *path;
    const char *phase; /* "" = its word has none */
};

struct lab_studies_recording {
    const char *path;
    bool named; /* by a word, not found in a folder */
};

struct lab_studies_words {
    const char *const *studies; /* words for lab_studies_find */
    int study_count;
    const struct lab_studies_timing *timings;
    int timing_count;
    const struct lab_studies_recording *recordings;
    int recording_count;
};

/* Which word is what; the lists are in the arena. Recordings without anything to lay them beside
 * are LAB_ERR_USER. */
int lab_studies_sort(const char *const *words, int count, struct lab_arena *arena,
                     struct lab_studies_words *ret_words, struct lab_err *err);

/* lab_studies_find of words that may have a label before them, "before=PATH": of each folder its
 * label, or NULL. */
int lab_studies_find_labelled(const char *const *words, int count, struct lab_arena *arena,
                              const char *const **ret_folders, const char *const **ret_labels,
                              int *ret_count, struct lab_err *err);

/*
 * All files of timings as one table: a run for each file, with the timings of its best
 * configuration as iterations; with LAB_STUDY_WITH_CONFIGURATIONS a run for each configuration that
 * was timed. The device is the file's, unless its name says which GPU: a tuner that sees one GPU
 * alone calls it the first.
 */
int lab_studies_read_timings(const struct lab_studies_timing *timings, int count, unsigned needs,
                             struct lab_arena *arena, struct lab_study_table *ret_table,
                             struct lab_err *err);

/*
 * Adds to each run what the recordings hold of its time, by the wall clock; what a study sampled
 * itself stands. One that overlaps no run is named in the first table's notes; what a folder holds
 * and turns out to be none is left out.
 */
int lab_studies_lay_beside(struct lab_study_table *tables, int count,
                           const struct lab_studies_recording *recordings, int recording_count,
                           struct lab_arena *arena, struct lab_err *err);

/* Leaves out runs that a table before has, and tables of which nothing is left; notes say so. */
void lab_studies_leave_copies(struct lab_study_table *tables, int *count, struct lab_arena *arena);
