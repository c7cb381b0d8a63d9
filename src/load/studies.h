/*
 * studies.h: studies on disk as the tables that analyses take, by words of a command line.
 *
 * It only reads: a study may be analysed while its runner works on it; what isn't done isn't there
 * yet. One study that more is asked of: study_file.h.
 */
#pragma once

#include "model/study_table.h"

struct lab_workload;

/*
 * Which studies the words mean: a folder is its study, or else all studies below it; a file is the
 * study that it lies in; what is no path is the newest study of that name, as `gpulab list` shows
 * it. One that is named twice counts once. Nothing found is LAB_ERR_USER. The folders are in the
 * arena.
 */
int lab_studies_find(const char *const *words, int count, struct lab_arena *arena,
                     const char *const **ret_folders, int *ret_count, struct lab_err *err);

/*
 * The tables of all that the words mean, in the arena, their names unique. A run that several
 * folders hold counts once; a note says so. "before=PATH" names a study `before`. `needs` is as for
 * lab_study_file_table. With LAB_STUDY_WITH_FILES a word may also be a file of timings, a recording
 * that was made beside the runs, in any format that `gpulab export` reads, or a folder of these;
 * each is told by its content. Then all files of timings are one more table, the last, and each run
 * has what was recorded beside it. "baseline=a.json,b.json" puts files of timings into a phase;
 * otherwise their names do (baseline_0_softmax.json), or else their folder's.
 */
int lab_studies_read(const char *const *words, int count, unsigned needs, struct lab_arena *arena,
                     struct lab_study_table **ret_tables, int *ret_count, struct lab_err *err);

/*
 * Studies of one kind (`option`) as one table, in place: each one's blocks follow those of the one
 * that began before it. Studies with different labels, or of different programs, are not pooled.
 * LAB_ERR_USER where they ran on different machines, or a point of one name ran with different
 * settings; it says which. Likewise where one label is given to several that are not pooled.
 */
int lab_studies_pool(struct lab_study_table *tables, int *count, struct lab_arena *arena,
                     struct lab_err *err);

/* The study in that folder, opened and closed: lab_study_file_table for one that nothing else is
 * asked of. It lives in the arena. */
int lab_studies_read_one(const char *folder, unsigned needs, struct lab_arena *arena,
                         struct lab_study_table *ret_table, struct lab_err *err);

/* Whether "a.json,b.json" lists files, all of them there. */
bool lab_studies_is_list(const char *word, struct lab_arena *arena);

/* The analyses in the `answers` of a study's config, NULL-terminated; NULL = it names none. */
const char *const *lab_studies_answers(const char *config, struct lab_arena *arena);

/* The work of one iteration of a workload with these keys, all others at their defaults; also of
 * what was never run (lab_study_table.work_of). */
int lab_studies_work(const char *workload, const struct lab_value *options, struct lab_arena *arena,
                     struct lab_study_work *ret_work, struct lab_err *err);
/* The same of a workload's config. */
struct lab_study_work lab_studies_config_work(const struct lab_workload *workload,
                                              const void *config, struct lab_arena *arena);
