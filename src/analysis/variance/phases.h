/*
 * phases.h: the same kernel on the same device in different phases (alone, at once with others,
 * isolated from them), and claims about them. For variance.c and contention.c.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/claims/contrast.h"

#define LAB_PHASES_MAX   16
#define LAB_PHASE_REGRET "regret" /* no phase to compare: times others' choices on idle devices */

struct lab_phase_point {                 /* one kernel on one device in one phase */
    struct lab_study_point time, spread; /* the same runs, one rank each; count 0 = none */
    double *rates, *times_s;             /* of `time` */
    double *spreads; /* of the iteration times of each run, as a share; NaN = unknown */
};

struct lab_phase_unit { /* a kernel on a device */
    const char *key;    /* that identifies it */
    const char *kernel, *device;
    int gpu_id;
    struct lab_phase_point *points; /* one for each phase */
};

struct lab_phases {
    const char *names[LAB_PHASES_MAX];
    const char *titles[LAB_PHASES_MAX];      /* "4 GPUs at once", "alone" */
    const char *mitigations[LAB_PHASES_MAX]; /* "process, numa"; "" = none */
    const char *disturb[LAB_PHASES_MAX];     /* "membw"; "" = none */
    const char *device;                      /* what it runs on is called: "GPU", "slice" */
    int count;
    int base, concurrent; /* which; -1 = none */
    struct lab_phase_unit *units;
    int unit_count;
    const struct lab_study_run **runs; /* all that count, with all their ranks */
    const char **run_phases;           /* each one's */
    int run_count;
    bool simulated;
    bool repeated; /* some point has more than one run: without, nothing is certain */
    struct lab_arena *arena;
};

/* Several studies without phases are phases themselves, by their names. */
void lab_phases_make(const struct lab_analysis_input *input, struct lab_arena *arena,
                     struct lab_phases *ret_phases);
/* Names in the order of their runs, which is chance's, become: the baseline, "concurrent", the
 * others, regret. So a phase has the same colour in all charts of a study. */
void lab_phases_order(const char **names, int count);
/* Why no two phases can be compared, a sentence; NULL = they can. */
const char *lab_phases_lack(const struct lab_phases *phases);

/* --- claims --- */

struct lab_phase_question {
    const char *kind, *quantity;
    const char *what;   /* before the phase in the subject: "softmax"; NULL = nothing */
    int phase, against; /* which two */
    const char *kernel; /* NULL = all, each with the same weight */
    int unit;           /* of that kernel's alone, 1 = the first; 0 = all */
    bool spread;        /* of iteration times, instead of the time */
    double (*value)(const struct lab_study_run *run, const void *context); /* instead of both */
    const void *context;
};

/* Block by block over all units that ran in both phases; not tested where there is none. */
struct lab_claim lab_phases_ask(const struct lab_phases *phases,
                                const struct lab_phase_question *question);
/* Of one of the two phases, the geometric mean: the claim's effect is the ratio of both. */
double lab_phases_mean(const struct lab_phases *phases, const struct lab_phase_question *question,
                       int phase);
/* "contention.throughput": of all devices together, per second of wall time. Devices of a phase
 * that runs them in groups, one after another, idle meanwhile. */
struct lab_claim lab_phases_total(const struct lab_phases *phases, int phase, int against);
/* Whether every unit of `phase` ran in the other one as well. */
bool lab_phases_cover(const struct lab_phases *phases, int phase, int other);

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

/* --- tuning --- */

#define LAB_TUNING_LEAST   3       /* configurations: choosing among fewer is no tuning */
#define LAB_TUNING_UNKNOWN 1000000 /* a tuner's file may not say how many it tried */

struct lab_phase_tuning { /* of a phase, next to the baseline's in the same block */
    int tried;            /* configurations, the fewest of a tuning; 0 = nothing was tuned */
    int tunings, other;   /* of a kernel on a device in a block; those that chose otherwise */
    /* How much more often another configuration is chosen than between two blocks of the
     * baseline, as a difference of shares; and what the choices take longer on the idle device.
     * Not tested where fewer than LAB_TUNING_LEAST were tried. */
    struct lab_claim choices, cost;
};

struct lab_phase_tuning lab_phases_tuning(const struct lab_phases *phases,
                                          const struct lab_analysis_input *input, int phase);

/* Why nothing is known of it: "the runs were not tuned". */
const char *lab_phases_untuned(const struct lab_phases *phases,
                               const struct lab_phase_tuning *tuning);

/* "same", or "other" where any block's choice differs; NULL = not tuned. */
const char *lab_phases_chosen(const struct lab_phase_point *base,
                              const struct lab_phase_point *other);

/* --- indicators of contention --- */

#define LAB_INDICATORS 5

struct lab_indicator {
    const char *key, *title;
    struct lab_claim claim;
    enum lab_claim_verdict verdict; /* YES = met, NO = not met: a fall is no rise */
    const char *state;              /* "met", "not met", "inconclusive", "not testable" */
    const char *evidence;           /* a few words: a value, or why it isn't testable */
};

/* `spread`, `tuning`: of the concurrent phase. */
void lab_phases_indicators(const struct lab_phases *phases, const struct lab_claim *spread,
                           const struct lab_phase_tuning *tuning,
                           struct lab_indicator *ret_indicators);

/* --- the chart --- */

/* "variance": boxes of iteration times by device and phase, a panel for each kernel. */
void lab_phases_add_chart(struct lab_analysis_result *result, const struct lab_phases *phases);
