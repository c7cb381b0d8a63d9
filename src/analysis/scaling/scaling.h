/*
 * scaling.h: the cost model of `gpulab analyze scaling`, and the claims that follow from it.
 *
 *   cost.c     the model: launch overhead, roofline by kernel, copies; how it is fitted
 *   group.c    the models of a group, their fits block by block, and the claims
 *   predict.c  models that weren't run, within the range that was
 *   chart.c    throughput by work, depth and width
 */
#pragma once

#include "analysis/claims/contrast.h"
#include "analysis/stages/stages.h"

/* --- the cost model (cost.c) --- */

/*
 * A kernel takes its launch, then the larger of FLOPs / compute rate and bytes / memory bandwidth;
 * a copy takes bytes / bandwidth of its direction. The iteration takes the longest of H2D, compute
 * and D2H, or half of their sum where that is more: two buffers, each of which waits for all three.
 * It takes no less than the host's launches do; a model that is bound by them is not fitted to.
 */
enum scaling_parameter { SCALING_LAUNCH, SCALING_COMPUTE, SCALING_MEMORY, SCALING_PARAMETERS };

struct scaling_cost {
    double seconds[SCALING_PARAMETERS]; /* of a launch, a FLOP, a byte */
    double spread[SCALING_PARAMETERS]; /* largest / smallest that fits about as well; 0 = unknown */
    double squares;                    /* of relative errors of the compute stage's time */
    double h2d_byte_s, d2h_byte_s;     /* 0 = nothing is copied */
    double host_s;                     /* of a launch, on the host; 0 = no model is bound by it */
    bool serial;                       /* one stage after the other */
};

struct scaling_sample { /* a model, to fit to */
    const struct lab_study_work *work;
    struct lab_stage_times times;
    double iteration_s;
};

/* Fewer samples than there are parameters fit anything. `without`: the sample to leave out; -1 =
 * none. */
struct scaling_cost scaling_cost_fit(const struct scaling_sample *samples, int count, int without);
double scaling_cost_iteration_s(const struct scaling_cost *cost, const struct lab_study_work *work);
/* Whether these models are fitted far better without those that have least time for each launch:
 * then those are bound by the host's launches. Fills `ret_bound` (count of them) and returns how
 * long a launch takes the host; 0 = none are. */
double scaling_cost_find_host(const struct scaling_sample *samples, int count, bool *ret_bound);
/* The part of the compute stage's time that hangs on a parameter: 0 to 1. */
double scaling_cost_share(const struct scaling_cost *cost, const struct lab_study_work *work,
                          enum scaling_parameter parameter);

/* --- a group (group.c) --- */

#define SCALING_MODELS_LEAST 4    /* of a cost model: more than it has parameters */
#define SCALING_ERROR_MOST   0.10 /* leave-one-out, of a cost model that is shown */

struct scaling_model {
    const struct lab_study_point *point;
    const char *name;
    double depth, dim; /* NaN = it has none */
    double gflop;      /* of a sample */
    double million_parameters;
    double memory_mib;
    struct lab_effect rate; /* samples a second */
    double flops_per_s;     /* reached */
    double iteration_s, predicted_s;
    double predicted_rate;
    double error; /* of the prediction from all other models, as a share; NaN = unknown */
    struct lab_doc_cell half, change; /* the model of half the depth or width; throughput vs that */
};

struct scaling_doubling { /* of depth or width, from one model to another */
    double from;
    struct lab_claim change; /* of throughput; kind as that of the whole series */
};

struct scaling_shape { /* two models of about the same work */
    const struct scaling_model *deeper, *wider;
    double work;             /* FLOPs of the larger over those of the smaller */
    struct lab_claim change; /* "scaling.shape": throughput of the wider against the deeper */
};

struct scaling_group {
    const char *title; /* "GPU 0, NUMA node 0" */
    const struct lab_study_group *of;
    struct scaling_model *models;
    int count;
    const char *left_out;          /* names of those without arithmetic or rate; NULL = none */
    struct scaling_model **fitted; /* those that aren't launch-bound */
    int fitted_count;
    struct scaling_cost *costs; /* one for each block; the last of all together */
    int blocks;
    double host_s;                   /* of a launch; 0 = no model is launch-bound */
    bool misfit;                     /* errors of the model are larger than those of its runs */
    double r_squared, leave_one_out; /* NaN = no model was fitted */
    bool fits;
    struct lab_claim parameters[SCALING_PARAMETERS];
    struct lab_stage_estimates rates; /* compute rates; none = there is no claim of it */
    struct lab_stage_series depth, width;
    struct lab_claim by_depth, by_width; /* throughput, when that is doubled: over all models */
    struct scaling_doubling *depths, *widths;
    int depths_count, widths_count;
    struct scaling_shape *shapes; /* ascending by work */
    int shapes_count;
    bool simulated;
};

struct scaling_group scaling_group_make(const struct lab_study_group *group, bool simulated,
                                        struct lab_arena *arena);

/* How much of the throughput that the iteration time allows the largest model lacks: filling and
 * draining the pipeline. A share. */
double scaling_pipeline_loss(const struct scaling_group *group);

/* The model's own error comes on top of that over runs: as a share of what is estimated. */
void scaling_widen(struct lab_claim *claim, const struct scaling_group *group, double error);

/* --- models that weren't run (predict.c) --- */

#define SCALING_BEYOND 2 /* times the most work that was run; a model with misfit: none */

/* "width 512": what models of a series of depths share, or of widths; empty where there is none. */
const char *scaling_fixed(const struct lab_stage_series *series, struct lab_arena *arena);

/* GFLOP of a sample that it may predict. */
struct lab_interval scaling_predictable(const struct scaling_group *group);

struct scaling_prediction {
    const char *model;
    double gflop, depth, dim, rate;
    bool outside;          /* of the depths, widths and work that were run */
    struct lab_claim time; /* of an iteration; includes the model's own error */
};

/* Of work that may or may not have been run. */
struct scaling_prediction scaling_predict_work(const struct scaling_group *group,
                                               const struct lab_study_work *work, const char *model,
                                               struct lab_arena *arena);

/* `wanted`: "auto", "none", a name, or a list of names. */
int scaling_predict(const struct lab_study_table *study, const struct lab_value *wanted,
                    const struct scaling_group *group, struct lab_arena *arena,
                    struct scaling_prediction **ret_predictions, int *ret_count,
                    struct lab_err *err);

/* --- charts (chart.c) --- */

void scaling_add_charts(struct lab_analysis_result *result, const struct scaling_group *group,
                        const struct scaling_prediction *predictions, int prediction_count,
                        const char *suffix, struct lab_arena *arena);
