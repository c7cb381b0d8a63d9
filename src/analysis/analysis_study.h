/*
 * analysis_study.h: a study as analyses see it: the runs that are done, with what they were asked
 * for, what came out, and, where an analysis asks for it (`needs`), every iteration and every
 * sample.
 *
 * The unit of replication is the run. Runs that differ in their repeat alone are one point;
 * comparisons are between points, over run-level values.
 */
#pragma once

#include "model/study_table.h"

/* Whether its plan has phases: alone, at once, kept apart. What asks for the fastest place has
 * nothing to say of such a study. */
bool lab_study_has_phases(const struct lab_study_table *study);
/* Whether it trained models, on one device and on several. */
bool lab_study_trains(const struct lab_study_table *study);

/* --- points --- */

struct lab_study_point {               /* repeats of one thing */
    const char *name;                  /* runs[0]'s point */
    const struct lab_study_run **runs; /* used ones alone, at least one */
    int count;
    const double *rates;   /* one for each run */
    const double *times_s; /* likewise; median iteration time */
};

/* Those with a used run, in the order of their first; returns how many. */
int lab_study_points(const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_study_point **ret_points);

/* What a point is without its device and node: "vit32x6x512_compiled", "vit0x0x0, batch 4, 224 px,
 * 512 MiB pool"; its phase after it. Keys that don't vary in the study aren't named. */
const char *lab_study_point_model(const struct lab_study_point *point, struct lab_arena *arena);
/* "3 models"; "7 configurations" where fewer models than that were run, with several settings. */
const char *lab_study_count_words(const struct lab_study_table *study, int count,
                                  struct lab_arena *arena);
/* What a mean is over: "6 models" of one pair each, else "12 configurations". A pair: two points
 * that differ in what is compared alone. `works`: models, with settings that aren't compared. */
const char *lab_study_pair_words(const struct lab_study_table *study, int pairs, int works,
                                 struct lab_arena *arena);
/* The same of `count` out of `all`, with a word before: "22 transfer-bound configurations". */
const char *lab_study_counted(const struct lab_study_table *study, int count, int all,
                              const char *what, struct lab_arena *arena);
/* Of a run that trains, "medium" of its label "mlp_medium_batch128"; NULL = it is no such run. */
const char *lab_study_trained_model(const struct lab_study_run *run, struct lab_arena *arena);
/* "GPU 3" of "cuda:3" and "sim:l40s-10:3"; slices and others by their own names. */
const char *lab_study_device_title(const char *device, struct lab_arena *arena);
/* Operations of a sample, by which models are ordered; NaN = they have no samples. */
double lab_study_complexity(const struct lab_study_run *run);
/* Whether its model has arithmetic: one that only copies has nothing to compile. */
bool lab_study_can_compile(const struct lab_study_run *run);
/* Of two models, as qsort() asks for it: unknown ones last, equal ones by their names. */
int lab_study_order(double a, const char *a_name, double b, const char *b_name);

/* "Transfer takes longer: vit0x0x0; compute takes longer: vit32x4x512" by the values of models that
 * copy, in the points' order, no verdict; NULL = none does (stages/). */
const char *lab_study_bound_words(const struct lab_study_point *points, int count,
                                  struct lab_arena *arena);

/* --- keys of a run, by dots: "test.batch_size", "options.depth" --- */
double lab_study_number(const struct lab_study_run *run, const char *key); /* NaN = none */
double lab_study_value(const struct lab_value *value); /* 1 of true; NaN = it is no number */
const char *lab_study_text(const struct lab_study_run *run, const char *key); /* "" = none */

/* A point's values that are compared (claims/contrast.h). */
enum lab_study_figure { LAB_STUDY_RATE, LAB_STUDY_TIME };

/* --- iterations --- */

/*
 * The iterations but the first, in order, each from its own start to its end. Those of a pipeline
 * overlap: there from the end of the one before, and without those that began when the pipeline was
 * empty. So what lies between the chunks of a measurement is part of none.
 */
const struct lab_span *lab_study_spans(const struct lab_study_rank *rank, struct lab_arena *arena,
                                       size_t *ret_count);

/* The same in seconds. */
const double *lab_study_intervals(const struct lab_study_rank *rank, struct lab_arena *arena,
                                  size_t *ret_count);

/* --- notes: failed, invalid and single runs --- */

/* What helps where no point has two runs, a sentence without its full stop: "experiment.repeat=5
 * gives verdicts"; where repeats are planned, to do them. */
const char *lab_study_verdict_words(const struct lab_study_table *study);

/* Appends to a list that ends with NULL, or is NULL; each behind the prefix. */
void lab_study_add_notes(const struct lab_study_table *study, const char *prefix,
                         const char *const **notes, struct lab_arena *arena);
