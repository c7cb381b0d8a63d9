/*
 * crossover.h: how long models compute and how long they copy, and how much work a sample has to be
 * before computing takes longer. For the files of this folder and crossover.c.
 *
 * Both times are busy times: of compute, and of copies in either direction, those that overlap
 * counted once. A pipeline that overlaps them is as fast as the longer of the two allows.
 */
#ifndef LAB_ANALYSIS_CROSSOVER_CROSSOVER_H
#define LAB_ANALYSIS_CROSSOVER_CROSSOVER_H

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "stats/fit.h"

enum lab_crossover_source {
    LAB_CROSSOVER_NONE,
    LAB_CROSSOVER_SPANS,   /* of the measured iterations */
    LAB_CROSSOVER_TRACE,   /* of the traced pass behind them */
    LAB_CROSSOVER_TIMINGS, /* the run's own bandwidths and utilisation */
};

struct lab_crossover_times {  /* of one run */
    double compute_s, copy_s; /* of a sample; 0 = the stage doesn't exist */
    double variance, freedom; /* of ln(compute / copy), within the run; NaN = unknown */
    enum lab_crossover_source source;
};

struct lab_crossover_times lab_crossover_times_make(const struct lab_study_run *run);

enum lab_crossover_bound {
    LAB_CROSSOVER_UNKNOWN, /* no times */
    LAB_CROSSOVER_UNDECIDED,
    LAB_CROSSOVER_BY_COPIES,
    LAB_CROSSOVER_BY_COMPUTE,
};

struct lab_crossover_model {
    const char *name;
    double complexity;                           /* operations of a sample; NaN = unknown */
    int runs;                                    /* with times */
    const struct lab_crossover_times *times;     /* of each of them */
    double compute_s, compute_low, compute_high; /* of a sample, with intervals over the runs */
    double copy_s, copy_low, copy_high;
    double ratio, low, high; /* compute / copy, at 95 %; ∞ = nothing is copied */
    double p;
    bool within; /* from one run */
    enum lab_crossover_source source;
    enum lab_crossover_bound bound;
};

struct lab_crossover_feed {             /* a device fed from a node */
    const char *name;                   /* "cuda:0 from node 1" */
    const char *title;                  /* "GPU 0 fed from node 1" */
    struct lab_crossover_model *models; /* ascending by complexity */
    int model_count;
    int below, above; /* the largest model bound by copies, the smallest by compute; -1 = none */
    struct lab_crossover crossover; /* in operations of a sample; at NaN = none between those two */
};

/* The devices and nodes of a study; verdicts hold for all of them together. `prefix` before
 * names. */
int lab_crossover_data_paths(const struct lab_study_table *study, const char *prefix,
                             struct lab_arena *arena, struct lab_crossover_feed **ret_data_paths);

/* --- where it turns (crossover/find.c) --- */
/* From the models, and `below` and `above`. */
struct lab_crossover lab_crossover_turn(const struct lab_crossover_feed *feed);
/* On the straight line between the models beside it; NaN = outside of all that have both times. */
double lab_crossover_time_at(const struct lab_crossover_feed *feed, bool compute, double work);

/* --- words (crossover/words.c) --- */
const char *lab_crossover_bound_name(enum lab_crossover_bound bound);    /* "copies" */
const char *lab_crossover_source_name(enum lab_crossover_source source); /* "spans" */
const char *lab_crossover_feed_answer(const struct lab_crossover_feed *feed,
                                      struct lab_arena *arena);
const char *lab_crossover_answer(const struct lab_crossover_feed *data_paths, int count,
                                 struct lab_arena *arena);

/* --- the picture (crossover/charts.c), where there is something to draw --- */
void lab_crossover_add_chart(struct lab_analysis_result *result,
                             const struct lab_crossover_feed *data_paths, int count,
                             struct lab_arena *arena);

#endif
