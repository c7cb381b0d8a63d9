/*
 * analysis_training.h: what a step of data-parallel training takes, as a law fitted to the runs of
 * a study:
 *
 *     time = launches + parameters · u + parameters · rows · c      on each device
 *          + rounds(n) · latency + bytes(n) / bandwidth             where n > 1 sum gradients
 *          + parameters · rows · d · (1 − 1/n)                      where they hinder each other
 *
 * rows are those of the device that has most, rounds(n) = 2 (n − 1) and bytes(n) = 4 · parameters ·
 * 2 (n − 1) / n as a ring has them. No coefficient is below 0. Sums are counted as far as the
 * backward pass doesn't hide them: latency and bandwidth are what is left to be seen.
 *
 * A study rarely tells all of it. With two models nobody knows whether a launch is paid for each
 * step or for each layer; so there are several laws, and those that predict left-out points about
 * as well as the best all count: a prediction's interval spans them.
 *
 * How wide it is comes from points that were left out: each model and batch in turn is predicted
 * from all the others, and the scale of these errors, over what the design lets expect there, is
 * that of new predictions. So what the laws get wrong is in it, and it grows where a prediction
 * goes beyond what was run. A law that can't be tested so isn't one: with nearly as many terms as
 * points it goes through them whatever they are.
 */
#ifndef LAB_ANALYSIS_TRAINING_ANALYSIS_TRAINING_H
#define LAB_ANALYSIS_TRAINING_ANALYSIS_TRAINING_H

#include "analysis/analysis_study.h"
#include "stats/fit.h"

#define LAB_TRAINING_CONFIDENCE 0.90 /* of predictions */

struct lab_training_work {
    double parameters;
    double layers; /* 0 = unknown */
    double batch;  /* of a step; weak: of each device */
    int devices;
    bool weak;
};

struct lab_training_row { /* a model and a batch on so many devices: one point of a study */
    struct lab_training_work work;
    double time_s;                       /* of a step */
    const char *model;                   /* "medium"; rows of one name are one model */
    const struct lab_study_point *point; /* NULL = not of a study */
    int place;                           /* which model and batch: from 0, by lab_training_fit */
};

enum lab_training_term {
    LAB_TRAINING_STEP,        /* launches: for each step */
    LAB_TRAINING_LAYER,       /* or for each layer */
    LAB_TRAINING_PARAMETER,   /* reading and updating them */
    LAB_TRAINING_COMPUTE,     /* parameter × row */
    LAB_TRAINING_ROUND,       /* of a sum */
    LAB_TRAINING_ROUND_LAYER, /* of a layer's sum */
    LAB_TRAINING_BYTE,        /* that a device sends */
    LAB_TRAINING_HINDRANCE,   /* parameter × row, while others compute */
    LAB_TRAINING_TERMS
};

struct lab_training_law {
    unsigned terms; /* bits */
    struct lab_fit fit;
    double error;       /* of speed-ups left out: root mean square of logarithms */
    double scale;       /* of a prediction's error, relative */
    double model_scale; /* the same with whole models left out; NaN = there are too few */
};

#define LAB_TRAINING_LAWS 12

struct lab_training_range {
    double low, high;
};

struct lab_training {
    const struct lab_training_row *rows;
    int row_count;
    int place_count, model_count;
    int pair_count; /* speed-ups: rows on several devices whose place was run on one */
    struct lab_training_law laws[LAB_TRAINING_LAWS]; /* the best first, then those about as good */
    int law_count;                                   /* 0 = no law: `lacks` says why */
    const char *lacks; /* and what to run: "the points are too few for a law; …" */
    struct lab_training_range parameters, batch;
    int devices_most;
};

/* Of rows on one device and on several; sets their places and keeps them. */
void lab_training_fit(struct lab_training_row *rows, int count, struct lab_training *ret_training);

struct lab_training_speedup {
    /* at LAB_TRAINING_CONFIDENCE; low and high NaN = unknown, also of more devices than were run:
     * how costs grow with them is the laws' word alone */
    double value, low, high;
    double one_s, many_s;                   /* a step on one device, and on so many */
    double parameters_beyond, batch_beyond; /* times outside of what was run; 1 = within */
    bool devices_beyond;                    /* more of them than were run */
    bool model_run;                         /* a model of this size was run */
};

/* The speed-up of `work.devices` over one device, in samples a second. */
struct lab_training_speedup lab_training_predict(const struct lab_training *training,
                                                 const struct lab_training_work *work);

/* Of the place of this row (on several devices) from the rows of all other places. NaN = it
 * can't be. */
struct lab_training_speedup lab_training_leave_out(const struct lab_training *training,
                                                   const struct lab_training_row *row);
/* The row of the same place on one device; NULL = none. */
const struct lab_training_row *lab_training_base(const struct lab_training *training,
                                                 const struct lab_training_row *row);
/* Measured, in samples a second. */
double lab_training_measured(const struct lab_training_row *one,
                             const struct lab_training_row *many);

/* The time of a step by the best law. */
double lab_training_time(const struct lab_training *training, const struct lab_training_work *work);
/* What of it is which term's. */
double lab_training_part(const struct lab_training *training, const struct lab_training_work *work,
                         enum lab_training_term term);

/* --- where several devices begin to pay --- */

enum lab_training_break_even_state {
    LAB_TRAINING_NEVER,  /* nowhere in the range looked at */
    LAB_TRAINING_ALWAYS, /* everywhere in it */
    LAB_TRAINING_FROM,   /* from `at` on */
    LAB_TRAINING_UNTIL,  /* below `at` */
    LAB_TRAINING_UNTOLD, /* it can't be told; `doubt` says why */
};

enum lab_training_doubt {
    LAB_TRAINING_SURE,
    LAB_TRAINING_NO_LAW,       /* training.lacks says why */
    LAB_TRAINING_UNTESTED,     /* nothing of this kind was run */
    LAB_TRAINING_TOO_WIDE,     /* it may be anywhere */
    LAB_TRAINING_CONTRADICTED, /* by `against`, which was measured */
};

struct lab_training_break_even {
    enum lab_training_break_even_state state;
    double at, low, high; /* low, high: where it may be; 0 or ∞ = beyond what was looked at */
    double from, until;   /* that was looked at */
    double layers;        /* over parameters: that these models have; 0 = unknown */
    double beyond;        /* times that `at` is outside of what was run; 1 = within */
    enum lab_training_doubt doubt;
    const struct lab_training_row *against;
    double against_speedup;
};

/*
 * Only what holds against all that was measured is told: a law by which several devices pay where
 * they were measured to be slower, or the other way round, is no break-even.
 *
 * Over batches, for this model (work.batch plays no part), up to a factor beyond what was run.
 */
struct lab_training_break_even lab_training_break_even_batch(const struct lab_training *training,
                                                             const struct lab_training_work *work);
/* Over parameters at this batch, of models with as many layers as the largest that was run, whoever
 * asks: parameters and layers of `work` play no part. */
struct lab_training_break_even
lab_training_break_even_parameters(const struct lab_training *training,
                                   const struct lab_training_work *work);

/* --- rows of a study --- */

struct lab_training_set { /* points that differ in model, batch and devices alone */
    const char *what;     /* lab_training_label's */
    struct lab_training_row *rows;
    int count;
};

/* Keys of a workload that rows of one set may differ in: the law has them, or they play no part
 * in a step's time. */
bool lab_training_knows(const char *key);

/* What tells a training from others of its study, but for those keys: "allreduce=ring, dtype=fp32";
 * "" = all agree. */
const char *lab_training_label(const struct lab_study_table *study, const struct lab_study_run *run,
                               struct lab_arena *arena);

/* Whether its devices train a model each (allreduce=none), instead of one together. */
bool lab_training_is_apart(const struct lab_study_run *run);

/* In the order of their first points; returns how many. Where several single devices, or gangs of
 * one size, did the same, the fastest counts: that is what its owner would use. */
int lab_training_sets(const struct lab_study_table *study, struct lab_arena *arena,
                      struct lab_training_set **ret_sets);

/* The study as if this set were all of it: its runs alone, under names without what they have in
 * common. */
struct lab_study_table lab_training_set_study(const struct lab_study_table *study,
                                              const struct lab_training_set *set,
                                              struct lab_arena *arena);

#endif
