/*
 * transfer.h: what the files of `gpulab analyze transfer` share.
 *
 *   stage.c     how long a stage's copies take, and how fast they are
 *   set.c       points that differ in what a question asks about, in its order, and their law
 *   pressure.c  what a far node costs, by the size of the pool
 *   chart.c     all of it as pictures
 */
#ifndef LAB_ANALYSIS_TRANSFER_H
#define LAB_ANALYSIS_TRANSFER_H

#include "analysis/analysis_group.h"
#include "stats/fit.h"

#define TRANSFER_CONFIDENCE 0.95

enum transfer_question {                 /* each is a part of the answer */
                         TRANSFER_H2D,   /* by the size of images, and how many at once */
                         TRANSFER_D2H,   /* by the size of the model */
                         TRANSFER_BATCH, /* throughput by it */
                         TRANSFER_POOL,  /* likewise */
                         TRANSFER_QUESTIONS,
};

/* --- stages --- */

/*
 * Bytes a second of a direction's copies while they run. Over runs, where there are several; of one
 * run, from the times of its stage where iterations were read; else as the run has it, without
 * interval.
 */
struct lab_effect transfer_bandwidth(const struct lab_study_point *point, enum lab_stage stage);
double transfer_bytes(const struct lab_study_point *point,
                      enum lab_stage stage); /* of an iteration */

/* --- sets --- */

struct transfer_row {
    const struct lab_study_point *point;
    double x;                    /* what is asked about: bytes, images, MiB */
    const char *label;           /* the same in words */
    struct lab_effect bandwidth; /* of copies */
    struct lab_effect rate;      /* of samples */
    struct lab_study_ratio
        change; /* of the rate, against the set's first row; none for the first */
};

struct transfer_set {
    const struct lab_study_group *group;
    struct transfer_row *rows; /* by rising x, at least two */
    int count;
    struct lab_fit law; /* of copies: time = wait + bytes × seconds a byte, none below 0 */
    bool fitted;
};

struct transfer_sets {
    enum transfer_question question;
    struct transfer_set *items;
    int count;
};

struct transfer_sets transfer_sets_make(enum transfer_question question,
                                        const struct lab_study_point *points, int count,
                                        struct lab_arena *arena);
bool transfer_is_copies(enum transfer_question question);

/* What the law has as seconds a byte, as bytes a second. */
struct lab_effect transfer_law_bandwidth(const struct transfer_set *set);

/* --- memory pressure against a far node --- */

struct transfer_pressure { /* one device, model and batch; from two nodes with several pools */
    const struct lab_study_group *group;
    int near, far; /* nodes */
    int count;
    const double *pools_mib;         /* rising */
    struct lab_study_ratio *penalty; /* rate from far / from near, by pool */
    /* the last pool's penalty against the first one's, as a ratio of ratios */
    struct lab_effect growth;
};

int transfer_pressures(const struct lab_study_point *points, int count, struct lab_arena *arena,
                       struct transfer_pressure **ret_pressures);

/* --- pictures --- */

void transfer_add_charts(const struct transfer_sets *sets,
                         const struct transfer_pressure *pressures, int pressure_count,
                         const char *suffix, bool simulated, struct lab_arena *arena,
                         struct lab_analysis_result *result);

#endif
