/*
 * recommend.h: places where a model was run, ranked. A place is a point of the study seen as a
 * choice that its owner has: devices, the nodes that feed them, batch size, compiled or not,
 * settings of a library. Places of one group did the same work in different places, so that the
 * fastest is the best.
 */
#ifndef LAB_ANALYSIS_RECOMMEND_RECOMMEND_H
#define LAB_ANALYSIS_RECOMMEND_RECOMMEND_H

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"

struct lab_place {
    const struct lab_study_point *point;
    const char *devices; /* "0", "[0,1]": gpu_ids, as an override has them */
    const char *nodes;   /* "1", "[0,1]"; one where all ranks have the same */
    const char *words;   /* "device 3 from node 1, batch 32, compiled": what differs in the group */
    const char *brief;   /* "3 from node 1, b32, compiled": the same for tables of devices */
    double batch;        /* NaN = the workload has none */
    const char *settings; /* "algo tree, proto simple": what isn't left to NCCL; "" = all is */
    bool compiled, local; /* local: each device is fed from its own node */
    bool knows_home;      /* the devices' own nodes are known */
    double rate;          /* geometric mean over its runs */
    double low, high;     /* interval of the runs' median; one run: its own; NaN = none */
    struct lab_study_ratio against_best; /* its rate / the best's; the best's own is 1 */
};

struct lab_place_group {
    const char *name; /* the model, and what else tells it from other groups */
    const char *model;
    const struct lab_study_table *study;
    struct lab_place *places; /* fastest first */
    int count;
    int alike;    /* places that can't be told from the best, the best included */
    int standard; /* the best's device and batch on its own node, not compiled; -1 = wasn't run */
    int wins,
        resamples; /* in how many the best came first; resamples 0 = nothing varies over runs */
    bool varies_device, varies_node, varies_batch, varies_compile, varies_settings;
};

/* All groups of a study, in the order of their first run. Returns how many. */
int lab_place_groups(const struct lab_study_table *study, struct lab_arena *arena,
                     struct lab_place_group **ret_groups);

/* How much faster the best is than place `i`: best / place. */
struct lab_study_ratio lab_place_gain(const struct lab_place_group *group, int i);

/* --- what to run next --- */

struct lab_place_next {
    const char *command; /* "gpulab run …" */
    const char *why;     /* a sentence without full stop */
};

/* At most LAB_PLACE_NEXT_MAX of them. */
#define LAB_PLACE_NEXT_MAX 2
int lab_place_next(const struct lab_place_group *group, struct lab_arena *arena,
                   struct lab_place_next ret_next[LAB_PLACE_NEXT_MAX]);

/* --- choices: what each dimension by itself gains --- */

enum lab_place_choice { LAB_PLACE_NODE, LAB_PLACE_DEVICE, LAB_PLACE_BATCH, LAB_PLACE_COMPILE };
#define LAB_PLACE_CHOICES 4

struct lab_place_alternative { /* a place that differs from the best in one choice alone */
    enum lab_place_choice choice;
    int place;
    struct lab_study_ratio gain; /* best / place */
    const char *words;           /* "node 1 rather than node 0" */
};

/* Of other devices each one's fastest place counts, whatever node fed it. Returns how many. */
int lab_place_alternatives(const struct lab_place_group *group, struct lab_arena *arena,
                           struct lab_place_alternative **ret_alternatives);

/* --- factors: one choice over all places that agree in the others --- */

enum lab_place_factor_kind {
    LAB_FACTOR_HOME, /* fed from the device's own node or not, instead of by the nodes' numbers */
    LAB_FACTOR_NODE,
    LAB_FACTOR_DEVICE,
    LAB_FACTOR_BATCH,
    LAB_FACTOR_COMPILE,
    LAB_FACTOR_SETTINGS,
};
#define LAB_PLACE_FACTORS 6

struct lab_place_factor {
    enum lab_place_factor_kind kind;
    int *levels; /* a place for each; the best level first */
    int count;
    struct lab_study_ratio *gains; /* the best level / this one; [0] isn't set */
    int *blocks;                   /* pairs, alike in all else, that each gain comes from */
    int alike;                     /* levels that can't be told from the best, the best included */
};

/* Those that vary; verdicts hold for all of a group together. Returns how many. */
int lab_place_factors(const struct lab_place_group *group, struct lab_arena *arena,
                      struct lab_place_factor ret_factors[LAB_PLACE_FACTORS]);
/* "node 0", "device 3", "batch 32", "compiled" */
const char *lab_place_level(const struct lab_place *place, enum lab_place_factor_kind kind,
                            struct lab_arena *arena);

/* --- words and pictures --- */

const char *lab_place_answer(const struct lab_place_group *group, struct lab_arena *arena);
const char *lab_place_answer_for_all(const struct lab_place_group *groups, int count,
                                     struct lab_arena *arena);
/* One with a panel for each group that has several places, if any has. */
void lab_place_add_chart(struct lab_analysis_result *result, const struct lab_place_group *groups,
                         int count, struct lab_arena *arena);

#endif
