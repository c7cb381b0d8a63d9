/*
 * studies.h: studies on disk as the tables that analyses take. Whoever lets an analysis of
 * studies work (analyze, report, advise) reads them through this alone.
 *
 * It only reads: a study may be analysed while its runner works on it; what isn't done isn't there
 * yet.
 */
#ifndef LAB_LOAD_STUDIES_H
#define LAB_LOAD_STUDIES_H

#include "model/study_table.h"

/*
 * Which studies the words of a command line mean: a folder is its study, or else all studies below
 * it; a file is the study that it lies in; what is no path is the newest study of that name, as
 * `gpulab list` shows it. One that is named twice counts once. Nothing found is LAB_ERR_USER.
 */
int lab_studies_find(const char *const *words, int count, struct lab_arena *arena,
                     const char *const **ret_folders, int *ret_count, struct lab_err *err);

/* The study in that folder, opened and closed: lab_study_file_table for one that nothing else is
 * asked of. It lives in the arena. */
int lab_studies_read_one(const char *folder, unsigned needs, struct lab_arena *arena,
                         struct lab_study_table *ret_table, struct lab_err *err);

/* All of them, their names unique. */
int lab_studies_read(const char *const *folders, int count, unsigned needs, struct lab_arena *arena,
                     struct lab_study_table **ret_tables, struct lab_err *err);

/* The work of one iteration of a workload with these keys, all others at their defaults; also of
 * what was never run (lab_study_table.work_of). */
int lab_studies_work(const char *workload, const struct lab_value *options,
                     struct lab_study_work *ret_work, struct lab_err *err);

#endif
