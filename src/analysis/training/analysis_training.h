/*
 * analysis_training.h: what a step of data-parallel training takes, as a cost model fitted to the
 * runs of a study:
 *
 *     time = launches + parameters · u + parameters · rows · c      on each device
 *          + rounds(n) · latency + bytes(n) / bandwidth             where n > 1 sum gradients
 *          + parameters · rows · d · (1 − 1/n)                      where they share resources
 *
 * rows are those of the device that has most, rounds(n) = 2 (n − 1) and bytes(n) = 4 · parameters ·
 * 2 (n − 1) / n as a ring has them. No coefficient is below 0. The all-reduce counts as far as the
 * backward pass doesn't hide it.
 *
 * A study rarely tells all of it: whether a launch is paid for each step or for each layer, or in
 * tiles of how many rows kernels compute. So there are several cost models, and those that predict
 * left-out points about as well as the best all count: a prediction's interval spans them. How wide
 * it is comes from points that were left out: each model and batch in turn is predicted from all
 * the others. A cost model whose error is above LAB_TRAINING_ERROR_MOST there is none.
 *
 * Predictions are made within what was run alone: batches and sizes between the smallest and the
 * largest, numbers of devices that were run, and models that were run unless they are three or
 * more.
 */
#pragma once

#include "analysis/analysis_study.h"
#include "stats/fit.h"

#define LAB_TRAINING_CONFIDENCE 0.95 /* of predictions */
#define LAB_TRAINING_ERROR_MOST 0.10 /* of left-out speed-ups */
#define LAB_TRAINING_MODELS     3    /* that were run, to predict another */

/* For any verdict on simulated devices that sum, where none of the sums went over NVLink. */
#define LAB_TRAINING_SIMULATED_SUMS                                                                \
    "Simulated all-reduces go through host memory: not valid for GPUs with NVLink."

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
    int tile;       /* rows are rounded up to so many */
    struct lab_fit fit;
    double error;       /* of speed-ups left out: root mean square of logarithms */
    double scale;       /* of a prediction's error, relative */
    double model_scale; /* the same with whole models left out; NaN = there are too few */
};

#define LAB_TRAINING_LAWS 48

struct lab_training_range {
    double low, high;
};

struct lab_training {
    const struct lab_training_row *rows;
    int row_count;
    int place_count, model_count;
    int pair_count; /* speed-ups: rows on several devices whose place was run on one */
    struct lab_training_law laws[LAB_TRAINING_LAWS]; /* the best first, then those about as good */
    int law_count;                                   /* 0 = none: `lacks` says why */
    const char *lacks; /* and what to run: "too few points for a cost model; …" */
    double error;      /* of the best, whether it is good enough or not; NaN = none was tested */
    struct lab_training_range parameters, batch;
    int devices_most;
};

/* Of rows on one device and on several; sets their places and keeps them. */
void lab_training_fit(struct lab_training_row *rows, int count, struct lab_training *ret_training);

struct lab_training_speedup {
    double value, low, high; /* at LAB_TRAINING_CONFIDENCE; NaN = it can't be predicted */
    double one_s, many_s;    /* a step on one device, and on so many */
};

/* The speed-up of `work.devices` over one device, in samples a second. */
struct lab_training_speedup lab_training_predict(const struct lab_training *training,
                                                 const struct lab_training_work *work);
/* Why that can't be predicted: "batch 256 is outside the tested 16 to 128"; NULL = it can. */
const char *lab_training_why_not(const struct lab_training *training,
                                 const struct lab_training_work *work, struct lab_arena *arena);

/* Of the place of this row (on several devices) from the rows of all other places, wherever it
 * lies. */
struct lab_training_speedup lab_training_leave_out(const struct lab_training *training,
                                                   const struct lab_training_row *row);
/* The row of the same place on one device; NULL = none. */
const struct lab_training_row *lab_training_base(const struct lab_training *training,
                                                 const struct lab_training_row *row);
/* Measured, in samples a second. */
double lab_training_measured(const struct lab_training_row *one,
                             const struct lab_training_row *many);

const char *lab_training_count(double value, struct lab_arena *arena); /* "54.4 k", "2.02 M" */

/* --- rows of a study --- */

struct lab_training_set { /* points that differ in model, batch and devices alone */
    const char *what;     /* lab_training_label's */
    struct lab_training_row *rows;
    int count;
};

/* Keys of a workload that rows of one set may differ in: the cost model has them, or they play no
 * part in a step's time. */
bool lab_training_knows(const char *key);

/* What tells a training from others of its study, but for those keys: "allreduce=ring, dtype=fp32";
 * "" = all agree. */
const char *lab_training_label(const struct lab_study_table *study, const struct lab_study_run *run,
                               struct lab_arena *arena);

/* Whether its devices train a model each (allreduce=none), instead of one together. */
bool lab_training_is_apart(const struct lab_study_run *run);

/* Whether devices are simulated and their sums went through host memory: with NVLink they would
 * not. */
bool lab_training_lacks_nvlink(const struct lab_study_table *study);

/* In the order of their first points, rows by model, batch and devices; returns how many. Where
 * several single devices, or gangs of one size, did the same, the first by name counts. */
int lab_training_sets(const struct lab_study_table *study, struct lab_arena *arena,
                      struct lab_training_set **ret_sets);

/* The study as if this set were all of it: its runs alone, under names without what they have in
 * common. */
struct lab_study_table lab_training_set_study(const struct lab_study_table *study,
                                              const struct lab_training_set *set,
                                              struct lab_arena *arena);
