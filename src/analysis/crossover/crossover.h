/*
 * crossover.h: which models are transfer-bound and which compute-bound, and the work of a sample at
 * which that changes. For the files of this folder and crossover.c.
 *
 * Copies in the two directions and compute overlap, so that the longest of them bounds a pipeline.
 * Models are compared within a group: batch size, image size, pool and compilation are the same.
 */
#pragma once

#include "analysis/claims/contrast.h"
#include "analysis/stages/stages.h"

struct crossover_model {
    const struct lab_study_point *point;
    const char *name;
    double gflop; /* of a sample; NaN = unknown */
    int runs;
    double compute_s, transfer_s; /* of a sample, geometric means; NaN = unknown or none */
    struct lab_claim excess;      /* "crossover.model": compute time against transfer time */
    const char *bound;            /* "compute", "transfer", "both", "inconclusive", "unknown" */
    const char *shown;            /* the same for people: "compute (1 run)" */
};

struct crossover_series { /* models by work: of one depth or width, or all of them */
    const char *title;    /* "by depth", "by model" */
    const struct crossover_model **models;
    int count;
    /* In the block all models are compute-bound: 0; transfer-bound: INFINITY; else NaN = none */
    struct lab_stage_estimates found;
    struct lab_claim claim; /* "crossover.work", in operations of a sample; not tested = not within
                               the tested range */
};

struct crossover_group {
    const char *name, *title;       /* "GPU 0, NUMA node 1" */
    const char *what;               /* settings that all of its models have: "batch 8" */
    struct crossover_model *models; /* ascending by work */
    int count;
    struct crossover_series *series; /* at least one */
    int series_count;
    bool simulated;
};

/* All groups of runs on one device; verdicts of models hold for all of them together. */
int crossover_groups_make(const struct lab_study_table *study, const char *prefix,
                          struct lab_arena *arena, struct crossover_group **ret_groups);

/* "crossover.work" from one value of each block, as in `found`. Where some blocks have none in the
 * tested range it is inconclusive, a bound of those that have. From `least` to `most` GFLOP of a
 * sample was run; NaN = that differs. */
struct lab_claim crossover_claim(const double *values, int blocks, const char *subject,
                                 double least, double most, struct lab_arena *arena);

/* --- sentences (words.c) --- */

struct crossover_pool { /* what one claim holds for: one series, or those of several devices */
    const struct crossover_series *const *members; /* the same models, but for failed runs */
    int count;
};

const char *crossover_model_name(const struct crossover_model *model); /* without settings */

/* "GPU 0: crossover between vit32x4x256 and vit16x8x768 (0.521 to 23.6 GFLOP/sample)"; of one run
 * each without the values; of a bound the claim's own sentence. No full stop. */
const char *crossover_clause(const struct lab_claim *claim, const struct crossover_pool *pool,
                             struct lab_arena *arena);
/* "GPUs 0–2, NUMA node 0: transfer-bound up to vit32x2x128, compute-bound from vit32x6x512.
 * vit32x4x256 (0.521 GFLOP/sample): balanced, …"; `of`: the models that it holds for, "models of
 * width 512 are ", "" = all. */
const char *crossover_sentence(const struct lab_claim *claim, const struct crossover_pool *pool,
                               const char *of, struct lab_arena *arena);

void crossover_add_chart(struct lab_analysis_result *result, const struct crossover_group *groups,
                         int count, struct lab_arena *arena);
