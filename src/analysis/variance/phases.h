/*
 * phases.h: the same kernel on the same device in different phases: alone, beside others, beside
 * others but kept apart. For variance.c and contention.c.
 */
#ifndef LAB_ANALYSIS_VARIANCE_PHASES_H
#define LAB_ANALYSIS_VARIANCE_PHASES_H

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"
#include "stats/stats.h"

#define LAB_PHASES_MAX   16
#define LAB_PHASE_REGRET "regret" /* no phase to compare: what others chose, side by side */

struct lab_phase_point {          /* one kernel on one device in one phase */
    struct lab_study_point point; /* a run with one rank for each; count 0 = none */
    double *rates, *times_s;      /* the point's own */
    double *spreads;    /* one for each run: of its iterations, as a share; NaN = unknown */
    double *best_times; /* likewise: what its tuning ended with, seconds */
};

struct lab_phase_pair { /* a phase against the base */
    int unit, phase;
    const struct lab_phase_point *base, *other;
    struct lab_study_ratio time;   /* of the median time of an iteration */
    struct lab_study_ratio spread; /* of the iterations' spread */
    struct lab_study_ratio best;   /* of the best time that tuning found */
    int pairs, differing;          /* runs of base × other, and those with another configuration */
    int own_pairs, own_differing;  /* likewise within the base */
    int blocks, blocks_differing;  /* likewise of runs of the same repeat alone */
    bool tuned; /* configurations are what a tuner chose, not what was asked for */
};

struct lab_phase_unit { /* a kernel on a device */
    const char *key;    /* what it is told apart by */
    const char *kernel, *device;
    int gpu_id;
    struct lab_phase_point *points; /* one for each phase */
};

struct lab_phases {
    const char *names[LAB_PHASES_MAX];
    int count;
    int base, concurrent; /* which; -1 = none */
    struct lab_phase_unit *units;
    int unit_count;
    struct lab_phase_pair *pairs;
    int pair_count;
    const struct lab_study_run **runs; /* all that count, with all their ranks */
    const char **run_phases;           /* each one's */
    int run_count;
    bool simulated;
};

/* --- which runs are the same --- */

struct lab_phase_entry { /* a rank of a run */
    const struct lab_study_run *run;
    int number, rank, phase; /* `number`: of the run */
    const char *kernel;      /* what the run is without its device, node and phase */
    const char *key, *name;  /* the unit's, on its device; `name` for people */
};

/* Fills the rest. `by_model`: kernels may differ between phases, as long as their models don't. */
void lab_phases_name(struct lab_phase_entry *entries, int count, bool by_model,
                     struct lab_arena *arena);

/* Several studies without phases are phases themselves, by their names. */
void lab_phases_make(const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_phases *ret_phases);

/* --- configurations --- */

struct lab_phase_difference {
    int pair;
    const char *key, *base, *other; /* as text; "–" = not there */
};

/* Counts runs of either phase that differ, and lists the keys of the first two that do. */
int lab_phases_configurations(struct lab_phases *phases, struct lab_arena *arena,
                              struct lab_phase_difference **ret_differences);

/* --- indicators of contention --- */

enum lab_indicator_state { LAB_INDICATOR_UNDECIDED, LAB_INDICATOR_NOT_MET, LAB_INDICATOR_MET };

#define LAB_INDICATORS 5

struct lab_indicator {
    const char *key, *title;
    enum lab_indicator_state state;
    const char *evidence;
};

const char *lab_indicator_state_name(enum lab_indicator_state state); /* "not met" */
void lab_phases_indicators(const struct lab_phases *phases, struct lab_arena *arena,
                           struct lab_indicator *ret_indicators);

/* --- the picture --- */

/* "variance": boxes of iteration times by device and phase, a panel for each kernel. */
void lab_phases_add_chart(struct lab_analysis_result *result, const struct lab_phases *phases,
                          struct lab_arena *arena);

#endif
