/* training.h: what the files of `training` share; for training.c and this folder alone. */
#pragma once

#include "analysis/analysis_group.h"
#include "analysis/claims/rows.h"
#include "analysis/speedup/gang.h"
#include "analysis/training/analysis_training.h"

/* With gpu_mode=auto, what it chose compared with one device: claims "training.auto" and a table
 * (auto.c). Returns a sentence; NULL = the study has another mode. */
const char *training_add_auto(struct lab_analysis_result *result, struct lab_analysis_part *part,
                              const struct lab_gangs *gangs, const struct lab_training_set *set,
                              struct lab_arena *arena);

/* What steps are made of, as a table and a chart (steps.c). */
void training_add_steps(struct lab_analysis_result *result, struct lab_analysis_part *part,
                        const struct lab_training_set *set, bool simulated, const char *suffix,
                        struct lab_arena *arena);
