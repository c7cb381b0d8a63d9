/*
 * stages.h: how long the stages of a pipeline take, and which models of a study can be compared;
 * for `scaling`, `crossover` and `numa`.
 *
 * H2D, compute and D2H overlap on three streams: an iteration takes as long as the longest of them.
 */
#pragma once

#include "analysis/analysis_group.h"
#include "analysis/claims/contrast.h"

/* --- times --- */

struct lab_stage_times { /* of an iteration; 0 = there is no such stage, NaN = unknown */
    double h2d_s, compute_s, d2h_s;
};

/* Medians over the run's iterations; of a run without stages, from its bandwidths and its compute
 * utilization. */
struct lab_stage_times lab_stage_times_of(const struct lab_study_run *run);
/* The longer direction: both have a stream of their own. */
double lab_stage_transfer_s(const struct lab_stage_times *times);
/* Compute time over transfer time, for contrasts. */
double lab_stage_excess(const struct lab_study_run *run, const void *context);
/* Whether a model's copies or its compute take longer, mean over its points: for certain, or chance
 * would choose what a headline is about. One run each: by its value. */
enum lab_stage_bound { LAB_STAGE_BOUND_OPEN, LAB_STAGE_BOUND_TRANSFER, LAB_STAGE_BOUND_COMPUTE };
enum lab_stage_bound lab_stage_bound_of(const struct lab_study_point *const *points, int count,
                                        struct lab_arena *arena);
bool lab_stage_is_transfer_bound(const struct lab_study_point *const *points, int count,
                                 struct lab_arena *arena);

/* "transfer-bound vit0x0x0 and vit32x2x128" of one or two; of more, or long ones, `counted`. */
const char *lab_stage_bound_words(const char *const *models, int count, const char *counted,
                                  struct lab_arena *arena);

/* --- blocks --- */

/* Repeats in which each point has a run; returns how many. */
int lab_stage_blocks(const struct lab_study_point *const *points, int count,
                     struct lab_arena *arena, int **ret_repeats);
const struct lab_study_run *lab_stage_run(const struct lab_study_point *point, int repeat);

/* --- models --- */

/* Keys of a model; whatever else varies makes another group. */
extern const char *const lab_stage_model_keys[];

/* "GPU 0, NUMA node 1, batch 8" */
const char *lab_stage_title(const struct lab_study_group *group, struct lab_arena *arena);

struct lab_stage_series {                  /* models that differ in one key alone */
    const char *key;                       /* "depth", "dim" */
    const struct lab_study_point **points; /* by rising key */
    int count;                             /* 0 = there aren't two */
};

/* The largest there is. */
struct lab_stage_series lab_stage_series_find(const struct lab_study_group *group, const char *key,
                                              struct lab_arena *arena);

/* --- several devices --- */

struct lab_stage_estimates {             /* of a group: one value for each block */
    const struct lab_study_group *group; /* NULL = there are none */
    const double *values;                /* NULL = it was run, and its runs determine none */
    int blocks;
};

struct lab_stage_pooled { /* over devices that are equally far from the NUMA nodes of their runs */
    const char *title;    /* "GPUs 0–3, NUMA node 0", "GPUs 0–9, local NUMA nodes, batch 8" */
    const char *without;  /* devices that ran so without a value: "GPU 8"; NULL = none */
    double *values;       /* the mean of logarithms, block by block */
    int blocks;
    const struct lab_stage_estimates *const *members;
    int member_count;
};

/* Of groups with the settings of the first: one for each distance that at least two devices have,
 * the nearest first. A node that is local to one device is remote to another: they aren't one.
 * Returns how many. */
int lab_stage_pool(const struct lab_stage_estimates *groups, int count, struct lab_arena *arena,
                   struct lab_stage_pooled **ret_pooled);
bool lab_stage_is_pooled(const struct lab_stage_pooled *pooled, int count,
                         const struct lab_stage_estimates *group);
