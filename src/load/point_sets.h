/*
 * point_sets.h: what words of `gpulab compare` mean, as sets of points: a study, by its folder or
 * name; a benchmark's JSON file (store/foreign/point_file.h); a saved baseline. Parts of a list,
 * "a.json,b.json", are runs of one thing: blocks of one set.
 */
#pragma once

#include "load/studies.h"
#include "model/point_set.h"

/* A word's sets, mostly one, in the arena. What is a path is that; else a baseline of that name,
 * else the newest study of that name. */
int lab_point_sets_read(const char *word, struct lab_arena *arena, struct lab_point_set **ret_sets,
                        int *ret_count, struct lab_err *err);

/* The points of a study that have a used run; facts aren't filled in. */
struct lab_point_set lab_point_set_of_study(const struct lab_study_table *table,
                                            struct lab_arena *arena);
/* A machine, as machine.json has it, and its drivers as facts. */
void lab_point_set_add_machine(struct lab_point_set *set, const struct lab_value *machine,
                               uint64_t identity, struct lab_arena *arena);
/* Machine, software and config of a study on disk, likewise. */
int lab_point_set_add_study_facts(struct lab_point_set *set, const char *folder,
                                  struct lab_arena *arena, struct lab_err *err);

/* --- baselines: sets with a name, in $XDG_STATE_HOME/gpulab/baselines --- */

/* The sets of a word under a name, in place of what had it. LAB_ERR_USER: the name can't be one,
 * or is a study's or a file's. */
int lab_baseline_save(const char *name, const char *word, struct lab_arena *arena,
                      struct lab_err *err);
bool lab_baseline_is_there(const char *name, struct lab_arena *arena);
/* NULL-terminated, sorted. */
const char *const *lab_baseline_names(struct lab_arena *arena);
int lab_baseline_remove(const char *name, struct lab_arena *arena, struct lab_err *err);
