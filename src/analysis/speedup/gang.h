/*
 * gang.h: several devices at a workload compared with its members alone, and the claims that
 * follow. For speedup.c, training.c and the reports of training.
 *
 * The reference of a gang is the mean of its members by themselves, at the same workload and NUMA
 * node: it is chosen before any rate is looked at. The fastest of them would be fast by chance as
 * well.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/claims/contrast.h"
#include "stats/stats.h"

#define LAB_SPEEDUP_BENEFICIAL 1.10
#define LAB_SPEEDUP_MARGINAL   0.95
#define LAB_SPEEDUP_NO_ANSWER  "no answer" /* a grade: simulated devices don't share the work */

struct lab_gang {
    const char *work;  /* all but the devices: "mlp_medium_batch128" */
    const char *title; /* "medium, batch 128" */
    const char *model; /* "medium"; of what doesn't train, its label */
    double parameters, batch;
    double order;        /* parameters; 0 = it has none */
    const char *scaling; /* "weak": each device has a batch of that size; else NULL */
    int devices;
    const char *gpus;   /* "0+2" */
    const char *which;  /* the same where other gangs of this size were run; else NULL */
    const char *series; /* "2 GPUs", "GPUs 0+2" */
    const char *bridge; /* PCIe bridge that all of them share; NULL = none, or unknown */
    const char *names;  /* "GPUs 0+2" */
    bool trains;
    bool independent; /* each trains a model of its own (allreduce=none) */
    const struct lab_study_point *point;
    const struct lab_study_point **alone; /* the reference; NULL = it wasn't run */
    int alone_count, runs;
    double one_per_s, many_per_s;          /* over the runs that the claim rests on */
    struct lab_effect speedup, efficiency; /* as the claim has it */
    const char *times;                     /* "0.74× [0.72, 0.76]" */
    double communication;                  /* share of an iteration's time; NaN = unknown */
    const char *graded;                    /* "beneficial, above 2×": with what it leaves open */
    const char *grade;                     /* "beneficial", "faster", "marginal", "stay single",
                               "inconclusive", "independent", "not tested"; or no answer */
    struct lab_claim claim;                /* "<analysis>.cell" */
};

struct lab_gang_pool { /* all gangs of a size */
    int devices, cells;
    int runs;         /* of the point that has most */
    const char *over; /* "mean of 8 points"; the only one's title */
    const char *times;
    struct lab_claim claim; /* "<analysis>.devices" */
};

struct lab_gang_rival {                 /* gangs of one size, over all workloads of both */
    const char *gangs, *reference;      /* "GPUs 0+1 (shared PCIe bridge 0000:3a:00.0)" */
    const struct lab_gang *gang, *base; /* the first of each; NULL = several are pooled */
    bool shares;                        /* a bridge; the reference has none */
    struct lab_claim claim;             /* "<analysis>.gang": throughput per device */
};

struct lab_gang_model { /* of the first rival */
    const char *model;
    double complexity;
    bool transfer_bound;    /* by its members alone */
    struct lab_claim claim; /* "<analysis>.gang_model" */
    /* of its single works, which the claim is the mean of: their effects, and how far the intervals
     * reach; what differs: "batch" */
    double least, most, reach;
    bool open; /* some of these may be none */
    const char *by;
};

struct lab_break_even { /* where so many devices are as fast as one */
    int devices;
    const char *over;       /* "batch", "parameters" */
    const char *where;      /* "large", "batch 128" */
    double from, until;     /* that was run */
    bool rising;            /* several pay off above it, not below */
    const char *words;      /* "batch 41 [38, 45]", "not within 16 to 128" */
    struct lab_claim claim; /* "<analysis>.break_even"; NO = it isn't within */
};

struct lab_gangs {
    const char *analysis; /* that the claims are of */
    const struct lab_study_table *study;
    const char *unit;       /* "GPU", "device" */
    struct lab_gang *items; /* by workload */
    int count;
    struct lab_gang_pool *pools; /* ascending by size */
    int pool_count;
    struct lab_gang_rival *rivals; /* the pooled one first where there are several */
    int rival_count;
    /* of the first rival, which shares a bridge, by rising complexity; only where some models are
     * transfer-bound and others aren't: a mean of both says little of either */
    struct lab_gang_model *models;
    int model_count;
    struct lab_claim transfer_bound; /* "<analysis>.transfer_bound" of those that are */
    struct lab_gang_pool *advised;   /* its reference against one device; NULL = not tested */
    struct lab_break_even *break_even;
    int break_even_count;
    int point_count;
};

struct lab_gangs lab_gangs_make(const struct lab_study_table *study, const char *analysis,
                                struct lab_arena *arena);
/* Of lab_gangs_make (break_even.c). */
void lab_gangs_find_break_even(struct lab_gangs *gangs, struct lab_arena *arena);

/* "0.741× [0.720, 0.762]", "0.741×" of one run each: three digits. */
const char *lab_speedup_times(double value, double low, double high, struct lab_arena *arena);
/* "5 runs each", "1 to 2 runs each" */
const char *lab_speedup_runs(int fewest, int most, struct lab_arena *arena);
int lab_gangs_count(const struct lab_gangs *gangs, const char *grade);
/* Whether n devices are more than n times as fast, by more than the interval. */
bool lab_gang_is_above_ideal(const struct lab_gang *gang);
/* "Stay on one GPU: 2 GPUs are 0.74× as fast …" (answer.c) */
const char *lab_gangs_untested(const struct lab_gangs *gangs, struct lab_arena *arena);
const char *lab_gangs_answer(const struct lab_gangs *gangs, struct lab_arena *arena);
/* Keys that add pairs to a plan of single devices, or the other pairs of the best one's first. */
void lab_gangs_add_further(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                           struct lab_arena *arena);
/* With as many GPUs as pay off on the mean, or where none do the one that was fastest alone; on
 * real GPUs where the simulated machine's can't. Nothing where that is inconclusive, or another
 * part has given a command. */
void lab_gangs_add_command(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                           struct lab_arena *arena);
/* Of answer.c: the fewest devices of those that may be the fastest; NULL = no size pays off on the
 * mean. Whether gangs of one size differ. Where this number of devices has that grade, by model;
 * NULL = everywhere, or for too many models to be named. Why devices don't share the work; NULL =
 * they do. */
const struct lab_gang_pool *lab_gangs_best(const struct lab_gangs *gangs);
bool lab_gangs_find_rivals(const struct lab_gangs *gangs);
const char *lab_gangs_graded(const struct lab_gangs *gangs, int devices, const char *grade,
                             struct lab_arena *arena);
const char *lab_gangs_unshared(const struct lab_study_table *study);
/* Where the number of devices that is fastest differs by batch (by_batch.c): "8 GPUs from batch 32
 * up (3.21× at batch 32, 6.43× at batch 128) and 4 GPUs at batch 16 (1.93×). …"; and where the best
 * number on the mean is, "from batch 32 up". NULL = it doesn't differ, or none pays off. */
const char *lab_gangs_by_batch(const struct lab_gangs *gangs, struct lab_arena *arena);
const char *lab_gangs_by_batch_where(const struct lab_gangs *gangs, struct lab_arena *arena);
/* Simulated training whose sums went through host memory. */
#define LAB_GANGS_LIMIT                                                                            \
    "No answer for GPUs with NVLink: simulated all-reduces go through host memory. "
#define LAB_GANGS_REAL "Measure on real GPUs"
bool lab_gangs_lack_nvlink(const struct lab_gangs *gangs);
/* The break-evens of that model, or of all (NULL), for the fewest devices; NULL = not tested. */
const char *lab_gangs_break_even_words(const struct lab_gangs *gangs, const char *model,
                                       struct lab_arena *arena);
/* What this machine's description makes of a shared batch; NULL = nothing that needs a note. */
const char *lab_gangs_share_note(const struct lab_study_table *study, struct lab_arena *arena);

/* A row for each model and batch, a column for each number of devices (tables.c). False = there is
 * no such table: other things differ, too. */
bool lab_gangs_add_overview(struct lab_analysis_part *part, const struct lab_gangs *gangs,
                            struct lab_arena *arena);
/* Tables, claims and notes of a part (tables.c). */
void lab_gangs_add(struct lab_analysis_result *result, struct lab_analysis_part *part,
                   const struct lab_gangs *gangs, struct lab_arena *arena);
/* Speed-ups by workload. */
void lab_gangs_add_chart(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                         const char *name, struct lab_arena *arena);
/* Of training: over the batch, a panel for each model. */
void lab_gangs_add_batch_chart(struct lab_analysis_result *result, const struct lab_gangs *gangs,
                               const char *name, struct lab_arena *arena);
