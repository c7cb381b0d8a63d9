/*
 * scaling.h: what the files of `gpulab analyze scaling` share.
 *
 *   rows.c     the models of a group as rows of figures
 *   law.c      laws fitted to them: a roofline with overhead, its shorter form, a power law
 *   series.c   models that differ in depth or in width alone, and the regimes between neighbours
 *   table.c    what people and programs see of it
 *   predict.c  models that weren't run
 *   chart.c    all of it as pictures
 */
#ifndef LAB_ANALYSIS_SCALING_H
#define LAB_ANALYSIS_SCALING_H

#include "analysis/analysis_group.h"
#include "stats/fit.h"

#define SCALING_CONFIDENCE 0.95

/* --- rows --- */

struct scaling_row { /* a model: a point of the study, of all ranks together where it has several */
    const struct lab_study_point *point;
    const char *model;
    double depth, dim, patch_size, heads, mlp_dim; /* NaN = the workload has no such key */
    double samples;                                /* of an iteration */
    double flops, bytes;                           /* likewise */
    double parameters;                             /* NaN = unknown */
    double time_s;                                 /* of an iteration */
    struct lab_effect rate;
    double memory_mib; /* NaN = unknown */
};

enum scaling_bytes { SCALING_NO_BYTES, SCALING_DEVICE_BYTES, SCALING_COPIED_BYTES };

struct scaling_rows {
    struct scaling_row *items; /* in the order of their work */
    int count;
    int left_out;             /* without arithmetic, or without a rate */
    enum scaling_bytes bytes; /* which ones */
    bool device_memory;       /* memory is the device's; else the host's */
    /* samples over median time × this = rate: filling and draining, and iterations far off */
    double steady_share;
};

/* `bytes` names those that count: "device", "copies", "none", or "auto": the first that are
 * known. */
struct scaling_rows scaling_rows_make(const struct lab_study_group *group, const char *bytes,
                                      struct lab_arena *arena);
double scaling_bytes_of(const struct lab_study_work *work, enum scaling_bytes which);

/* --- laws --- */

enum scaling_law_kind { SCALING_ROOFLINE, SCALING_LINE, SCALING_POWER, SCALING_LAWS };
enum { SCALING_OVERHEAD, SCALING_PER_FLOP, SCALING_PER_BYTE }; /* coefficients, all in seconds */
enum { SCALING_LOG_SCALE, SCALING_EXPONENT };                  /* of the power law */

struct scaling_law {
    enum scaling_law_kind kind;
    struct lab_fit fit;
    const char *lacks;    /* why there is no fit; NULL = there is one */
    double leave_one_out; /* root of the mean square of relative errors; NaN = unknown */
};

struct scaling_laws {
    struct scaling_law items[SCALING_LAWS];
    struct lab_fit memory; /* MiB = base + slope × million parameters */
    bool memory_fitted;
};

struct scaling_laws scaling_laws_fit(const struct scaling_rows *rows);
/* That of the time with the most terms; the one that is least wrong about what it hasn't seen. NULL
 * = there is none. */
const struct scaling_law *scaling_laws_fullest(const struct scaling_laws *laws);
const struct scaling_law *scaling_laws_best(const struct scaling_laws *laws);

const char *scaling_law_key(enum scaling_law_kind kind);   /* "overhead_flops_bytes" */
const char *scaling_law_words(enum scaling_law_kind kind); /* "overhead + FLOPs/rate" */

/* What the law has as seconds a FLOP or a byte, as a rate. */
struct lab_effect scaling_law_coefficient(const struct scaling_law *law, size_t i);

/* Throughput of a model by a law, with the intervals of the law and of the next measurement. */
struct scaling_rate {
    double value;
    struct lab_interval law, next;
};
struct scaling_rate scaling_law_rate(const struct scaling_law *law, const struct scaling_rows *rows,
                                     double flops, double bytes, double samples);

/* --- series --- */

enum scaling_key { SCALING_DEPTH, SCALING_WIDTH, SCALING_KEYS };

enum scaling_regime { /* of the time between two models, against their work; several: undecided */
                      SCALING_SATURATED = 1, /* time stays though the work grows */
                      SCALING_SUBLINEAR = 2, /* time grows less than the work */
                      SCALING_LINEAR = 4,
                      SCALING_SUPERLINEAR = 8,
};

struct scaling_step { /* from a row of the series to the next */
    struct lab_study_ratio time;
    double work;                  /* FLOPs: next / this */
    double elasticity, low, high; /* ln time / ln work; NaN = unknown */
    unsigned regimes;             /* all that the interval touches; 0 = unknown */
};

struct scaling_series {
    enum scaling_key key;
    const struct scaling_row **rows; /* by rising key */
    int count;
    struct scaling_step *steps; /* count − 1 */
};

/* The largest set of models that differ in the key alone. Fewer than two: count = 0. */
struct scaling_series scaling_series_find(const struct scaling_rows *rows, enum scaling_key key,
                                          struct lab_arena *arena);
double scaling_series_value(const struct scaling_row *row, enum scaling_key key);
const char *scaling_regime_words(unsigned regimes); /* "linear or super-linear" */
/* "sub-linear from 2 to 4, linear from 4 to 12" */
const char *scaling_series_words(const struct scaling_series *series, struct lab_arena *arena);

/* --- models that weren't run --- */

struct scaling_config {
    struct lab_value *predict; /* "auto", "none", a name, or a list of names */
    int64_t predict_depth, predict_dim, predict_patch_size; /* 0 = as in what was run */
    const char *bytes;                                      /* "auto", "device", "copies", "none" */
};

struct scaling_prediction {
    const char *model;
    struct scaling_rate rate;
    const struct scaling_law *law;
    struct lab_fit_prediction memory; /* MiB; value NaN = unknown */
    double flops_per_sample;
    bool run;    /* it was run: the law without that knowledge is no news */
    bool beyond; /* more work than any model that was run, or less */
};

/* Those that the config asks for. A model whose work nobody can count is an error. */
int scaling_predict(const struct lab_study_table *study, const struct scaling_config *config,
                    const struct scaling_rows *rows, const struct scaling_laws *laws,
                    const struct scaling_series *series, struct lab_arena *arena,
                    struct scaling_prediction **ret_predictions, int *ret_count,
                    struct lab_err *err);

/* --- tables --- */

struct scaling_part { /* all that is known of a group */
    const struct lab_study_group *group;
    struct scaling_rows rows;
    struct scaling_laws laws;
    struct scaling_series series[SCALING_KEYS];
    struct scaling_prediction *predictions;
    int prediction_count;
    struct lab_arena *arena;
};

void scaling_add_law_table(struct lab_analysis_part *to, const struct scaling_part *part);
void scaling_add_series_table(struct lab_analysis_part *to, const struct scaling_part *part,
                              const struct scaling_series *series);
void scaling_add_prediction_table(struct lab_analysis_part *to, const struct scaling_part *part);
/* "812 [790, 834]", "812, at least 700" */
const char *scaling_rate_words(const struct scaling_rate *rate, struct lab_arena *arena);

/* --- pictures --- */

/* At most two; `suffix` of their names. */
void scaling_add_charts(struct lab_analysis_result *result, const char *title, const char *suffix,
                        const struct scaling_part *part, bool simulated);

#endif
