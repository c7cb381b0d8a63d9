/*
 * proof.h: do our answers hold? Machines whose truth is known are simulated, studies of them are
 * run in this process, and the analyses, which see nothing but the studies' tables, are held
 * against what was planted.
 *
 *   proof.c          which experiments there are; seeds; the command line
 *   proof_claims.h   every claim of every analysis, on machines and studies drawn at random
 *   proof_judge.c    counts into verdicts, and the table of docs/PROOF.md
 *   proof_machine.c  what is planted, as a machine's description
 *   proof_run.c      runs of simulated devices, one or several at once
 *   proof_study.c    runs as a study's table; what an analysis made of it
 *   proof_*.c        the experiments
 *
 * The truth of a figure that the simulator doesn't take as a key, such as what a slower copy costs
 * in throughput, is that figure on the same machine without any noise.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "base/str.h"
#include "machine/machine.h"

#include <stdint.h>

/* --- experiments --- */

enum proof_kind {
    PROOF_COVERS,   /* intervals at 95 % that hold the truth: 93 to 97 % of 2,000 or more */
    PROOF_ALARMS,   /* verdicts of a difference where there is none: at most 5 % */
    PROOF_FINDS,    /* what is there is found or named: at least 95 % */
    PROOF_PREDICTS, /* intervals at 95 % that hold what is measured later: 90 to 99 % */
};

struct proof_claim {
    const char *name;
    enum proof_kind kind;
};

struct proof_count {
    int64_t hits, trials;
};

struct proof_cell {                    /* one size of an effect at one level of noise */
    const struct lab_machine *machine; /* this computer's, for selecting devices */
    int index;
    int studies; /* to be run */
    uint64_t seed;
};

#define PROOF_CLAIMS_MAX 5

struct proof_experiment {
    const char *name;
    const char *about; /* a sentence: what was planted, what was asked */
    struct proof_claim claims[PROOF_CLAIMS_MAX];
    int claim_count;
    int cell_count;
    int studies, studies_in_sample; /* of each cell */
    int sample_step;                /* the sample takes every so many-th cell */
    const char *(*label)(int cell, struct lab_arena *arena);
    /* Adds to the counts, one for each claim. */
    int (*run)(const struct proof_cell *cell, struct proof_count *counts, struct lab_err *err);
};

extern const struct proof_experiment proof_crossover, proof_speedup, proof_scaling, proof_transfer,
    proof_stability, proof_correlate, proof_training;

/* --- verdicts --- */

struct proof_outcome { /* of one claim in one cell */
    const struct proof_experiment *experiment;
    int claim, cell;
    struct proof_count count;
    double p; /* of so many hits or worse, if the promise is just kept */
    bool
        redrawn; /* the first draw was too improbable: this is the second, with a seed of its own */
    bool holds;
};

struct proof_tally {
    struct proof_outcome *outcomes;
    int count;
    bool sample; /* too few for the band of 93 to 97 %: only the improbable fails */
    uint64_t seed;
};

/* Is it too improbable that a cell with these counts keeps the promise? */
bool proof_cell_holds(enum proof_kind kind, const struct proof_count *count, bool sample,
                      double *ret_p);
/* All cells of a claim together. */
bool proof_claim_holds(const struct proof_tally *tally, const struct proof_experiment *experiment,
                       int claim, struct proof_count *ret_pooled);
void proof_write_text(const struct proof_tally *tally, struct lab_str *out);
void proof_write_markdown(const struct proof_tally *tally, struct lab_str *out);
bool proof_all_hold(const struct proof_tally *tally);

/* --- machines --- */

struct proof_truth { /* what is planted; 0 = nothing of it */
    int nodes;       /* 2 or 4; GPU g sits on node g */
    double remote;   /* a copy from the farthest node takes so much longer: 0.1 = a tenth */
    double noise;    /* between runs, of copies and compute: standard deviation of logarithms */
    bool rough;      /* autocorrelated, heavy-tailed and drifting noise within runs besides */
    double memory_s; /* after which rough noise is forgotten; 0 = 5 ms */
    double slow_gpu; /* GPU 1 computes so much longer */
    double drift;    /* of GPU 0, per minute */
    double neighbour_gb_s; /* of somebody who comes and goes beside a GPU */
    int neighbour_node;    /* on this node, and on the way of its GPU */
    double tflops;         /* of fp32; 0 = 20 */
    double memory_gb_s;    /* 0 = 2000 */
    double
        /* 2 nodes: GPUs 0 and 1 on node 0 share a link of that, GPU 2 sits on node 1 */
        shared_gb_s;
};

/* Makes `sim:NAME` mean that machine, until another is defined. */
void proof_define(const char *name, const struct proof_truth *truth);

/* --- studies --- */

struct proof_point {
    int gpu, node; /* -1 = bound to none */
    int patch, depth, dim, batch;
    int heads;     /* 0 = one for each 64 of dim */
    int image;     /* its side; 0 = 224 */
    int memory_mb; /* of the pool; 0 = 64 */
    bool compiled;
    int iterations;
    bool sampled; /* with what a sampler saw */
    /* Another workload than "vit", with these options, "m=256", NULL-terminated; NULL = vit. */
    const char *workload;
    const char *const *options;
    const char *phase; /* "baseline", "concurrent"; NULL = the study has none */
};

struct proof_study {
    struct lab_arena arena;
    struct lab_study_table table;
    const struct lab_machine *host;
    const char *name; /* of the simulated machine */
    int64_t time_ns;  /* when the next run begins, in simulated time */
    uint64_t seed, run_count;
};

#define PROOF_RANKS_MAX 8

void proof_study_begin(struct proof_study *study, const struct lab_machine *host, const char *name,
                       const char *option, uint64_t seed);
int proof_study_add(struct proof_study *study, const struct proof_point *point, int repeat,
                    struct lab_err *err);
/* The same on several GPUs at once, each point's own; they differ in GPU and node alone. */
int proof_study_add_gang(struct proof_study *study, const struct proof_point *points, int count,
                         int repeat, struct lab_err *err);
/* A run that was never carried out: an iteration takes what `time_s` says of its work. */
int proof_study_draw(struct proof_study *study, const struct proof_point *point, int repeat,
                     double (*time_s)(const struct lab_study_work *work, void *state), void *state,
                     struct lab_err *err);
/* Each run once more as its point's second repeat, for a machine without noise. */
void proof_study_double(struct proof_study *study);
void proof_study_end(struct proof_study *study);

/* Its rate without any noise: the truth. Negative on failure. */
double proof_true_rate(const struct lab_machine *host, const struct proof_truth *truth,
                       const struct proof_point *point, struct lab_err *err);

double proof_true_gang_rate(const struct lab_machine *host, const struct proof_truth *truth,
                            const struct proof_point *points, int count, struct lab_err *err);

/* Lets the analysis of that name look at the table. The result lies in the study's arena. */
int proof_analyse(struct proof_study *study, const char *analysis,
                  struct lab_analysis_result *ret_result, struct lab_err *err);

/* --- reading results by their keys; NULL = there is no such cell --- */

const struct lab_doc_cell *proof_figure(const struct lab_analysis_result *result, int part,
                                        const char *key);
const struct lab_doc_table *proof_table(const struct lab_analysis_part *part, const char *key);
const struct lab_doc_cell *proof_cell_at(const struct lab_doc_table *table, int row,
                                         const char *key);
/* Counts whether the cell's interval holds the truth, if it has one. */
void proof_count_cover(struct proof_count *count, const struct lab_doc_cell *cell, double truth);
void proof_count_claim(struct proof_count *count, const struct lab_claim *claim, double truth);
void proof_count_hit(struct proof_count *count, bool hit);
