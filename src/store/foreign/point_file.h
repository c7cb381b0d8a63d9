/*
 * point_file.h: results of a benchmark in JSON, as points: those of nvbench (--json),
 * nccl-tests (-J) and nvbandwidth (--json), and what `gpulab compare` wrote itself. Each is told by
 * its content. One file is one run of its benchmark: block 0.
 */
#pragma once

#include "base/err.h"
#include "model/point_set.h"

/* One set, of a file of our own all of its sets; in the arena. LAB_ERR_USER where the file is no
 * JSON, is cut, is none of these, or holds no value. */
int lab_point_file_read(const char *path, struct lab_arena *arena, struct lab_point_set **ret_sets,
                        int *ret_count, struct lab_err *err);

/* --- its parts: each fills in facts and points. False: the tree isn't of that kind --- */

bool lab_point_file_nvbench(const struct lab_value *root, struct lab_arena *arena,
                            struct lab_point_set *set);
bool lab_point_file_nccl(const struct lab_value *root, struct lab_arena *arena,
                         struct lab_point_set *set);
bool lab_point_file_nvbandwidth(const struct lab_value *root, struct lab_arena *arena,
                                struct lab_point_set *set);

/* A number, also one that stands in text: "12.5"; NaN = it is none. */
double lab_point_file_number(const struct lab_value *value);
/* A scalar as text, "" = it is none. */
const char *lab_point_file_text(const struct lab_value *value, struct lab_arena *arena);
