/*
 * recommend.h: placements that a model was run in, and what each choice gains. A placement is a
 * point of the study seen as a choice: devices, the NUMA nodes that they are bound to, batch size,
 * compiled or not, settings of a library.
 *
 * A factor is one choice over everything else: each level against a reference that is fixed before
 * any rate is looked at, over all pairs of placements that are alike otherwise. First over all
 * models, then by model; single models get a verdict only where all together have one.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/claims/contrast.h"
#include "analysis/peers/peers.h"

enum lab_factor {
    LAB_FACTOR_NODE,   /* the nearest NUMA node tested is the reference */
    LAB_FACTOR_DEVICE, /* its peers are; of two, or of groups, the first or the others */
    LAB_FACTOR_BATCH,  /* the smallest */
    LAB_FACTOR_COMPILE,
    LAB_FACTOR_SETTINGS, /* those of the library itself */
    LAB_FACTORS
};

/* Levels that are compared with each other: of more, those that gain most. */
#define LAB_CHOICES_PAIRED 64

struct lab_choice {
    const struct lab_study_point *point;
    int model;              /* index into models */
    const char *devices;    /* "0", "[0,1]": gpu_ids, as an override has them */
    const char *nodes;      /* "1", "[0,1]"; one where all ranks have the same */
    const char *distances;  /* likewise, of the nodes; the nodes themselves where unknown */
    int distance;           /* the largest; 0 = unknown */
    const char *batch_text; /* "" = the workload has none */
    double batch;           /* NaN likewise */
    bool compiled, local;   /* local: each device is bound to its local node */
    const char *settings;   /* "algo tree, proto simple": what isn't left to NCCL; "" = all is */
    const char *words;      /* "GPU 3, NUMA node 1, batch 32, compiled": what differs */
    const char *rest;       /* what of that follows devices and NUMA nodes: ", batch 32" */
    const char *levels[LAB_FACTORS]; /* "" = the reference */
    int level_numbers[LAB_FACTORS];  /* equal ones are the same level */
    int groups[LAB_FACTORS];         /* equal ones agree in all but this factor */
    bool avoided;                    /* from a remote node, or on devices that are slower */
    double rate;                     /* geometric mean over its runs */
    struct lab_claim claim;          /* "recommend.placement": against the default one */
};

struct lab_factor_row { /* a level of a factor */
    enum lab_factor factor;
    int model;            /* -1 = over all */
    const char *of_model; /* of all works of that one; NULL = of any */
    const char *choice, *model_name, *level, *reference;
    bool of_peers;          /* the claim is that of `gpulab analyze peers` */
    bool chosen;            /* of batches and settings: it gains, and no other beats it by 1% */
    bool advised;           /* only placements that aren't avoided count */
    int pairs;              /* that are alike in all else */
    struct lab_claim claim; /* "recommend.node", …; of one model "recommend.node_model" */
    /* of batch sizes over all models: on the placements that aren't avoided; else not tested */
    struct lab_claim in_use;
};

struct lab_choice_lists { /* of number n: items[first[n]] to items[first[n + 1] - 1], ascending */
    int *first, *items;
};

struct lab_choice_index { /* of a factor (index.c) */
    struct lab_choice_lists groups, by_level;
    const char **levels; /* in the order of their bytes */
    int level_count;
    int *rows; /* by model + 1, and level; -1 = none */
};

struct lab_choices {
    const struct lab_study_table *study;
    struct lab_choice *items; /* by devices, NUMA nodes, batch */
    int count;
    const char **models; /* workloads: points of one did the same work */
    int model_count;
    bool varies[LAB_FACTORS];
    /* the all-reduce that was used where NCCL was asked for: settings of NCCL have no effect then,
     * and none is compared. NULL = it was NCCL, or that isn't known, or not asked for */
    const char *allreduce;
    bool whole_gpus;             /* all devices are whole NVIDIA GPUs */
    struct lab_peers peers;      /* of studies whose devices vary */
    struct lab_factor_row *rows; /* over all models first */
    int row_count;
    struct lab_choice_index index[LAB_FACTORS];
    int gaining; /* of batches or settings, levels that gain; LAB_CHOICES_PAIRED are paired */
    const char *without; /* " without GPUs 0+1": devices among those that are avoided; "" = none */
};

/* index.c: fills in groups; then, of levels that are set, their numbers; then, of rows, where they
 * are. */
void lab_choices_group(struct lab_choices *placements, struct lab_arena *arena);
void lab_choices_number_levels(struct lab_choices *placements, struct lab_arena *arena);
void lab_choices_index_rows(struct lab_choices *placements, struct lab_arena *arena);
/* A level's number; -1 = no placement has it. */
int lab_choices_level(const struct lab_choices *placements, enum lab_factor factor,
                      const char *level);
/* The row of a level for that model, -1 = over all; NULL = there is none. */
const struct lab_factor_row *lab_choices_row(const struct lab_choices *placements, int model,
                                             enum lab_factor factor, const char *level);

/* Whether they agree in all but this. */
static inline bool lab_choices_same_else(const struct lab_choice *a, const struct lab_choice *b,
                                         enum lab_factor factor) {
    return a->groups[factor] == b->groups[factor];
}

/* For certain, by what is worth a change. */
bool lab_claim_is_gain(const struct lab_claim *claim);

/* All of a study, of one model alone where that isn't "". */
struct lab_choices lab_choices_make(const struct lab_study_table *study, const char *model,
                                    struct lab_arena *arena);
/* Fills in rows and the placements' claims (factor.c). */
void lab_choices_compare(struct lab_choices *placements, struct lab_arena *arena);
/* A level against another; NULL = against the reference, of devices against all others. */
void lab_factor_compare(const struct lab_choices *placements, struct lab_factor_row *row,
                        const char *against, struct lab_arena *arena);
/* Models for which another batch is better than the one advised over all, for certain: one claim
 * each, against the advised one (exception.c). Returns how many. */
int lab_choices_exceptions(const struct lab_choices *placements, struct lab_arena *arena,
                           struct lab_claim **ret_claims);

/* Which placements are avoided, and `without`; then `in_use` of the rows. lab_choices_compare calls
 * both. */
void lab_choices_mark_avoided(struct lab_choices *placements, struct lab_arena *arena);
void lab_choices_claim_advised(struct lab_choices *placements, struct lab_arena *arena);
/* " on the local NUMA node without GPUs 0+1": which placements aren't avoided, where some are; else
 * "". */
const char *lab_choices_used(const struct lab_choices *placements, struct lab_arena *arena);
/* Those claims, each with what it comes to by model. */
int lab_choices_advised(const struct lab_choices *placements, struct lab_arena *arena,
                        struct lab_analysis_advised **ret_advised);

/* Of a model: the placement that its claims speak for, the default where they don't (best.c). An
 * index. */
int lab_choices_default(const struct lab_choices *placements, int model);
int lab_choices_best(const struct lab_choices *placements, int model);
/* Whether a choice gains or costs that model something: else any placement does. */
bool lab_choices_decided(const struct lab_choices *placements, int model);
/* Whether two placements differ by devices alone, and these by no more than a known bound: by the
 * claim about the two, where one is the default; else each from its peers. */
bool lab_choices_alike(const struct lab_choices *placements, int a, int b);
/* Whether they differ by devices alone, and of these it isn't known for certain that they do. */
bool lab_choices_open(const struct lab_choices *placements, int a, int b);
/* Its words, with all devices that are as good: "GPU 0 (or GPUs 1 and 2, within ±0.5%; GPU 3:
 * inconclusive), batch 16". */
const char *lab_choices_use(const struct lab_choices *placements, int best,
                            struct lab_arena *arena);

/* "Remote NUMA nodes: 8.2 to 12.1% lower throughput than the nearest node tested for vit0x0x0,
 * vit32x2x128 and vit32x4x256 (5 runs each). No difference larger than 0.4% for the 3 others." Of a
 * level that lowers some models' throughput; NULL = its mean says it: all are lower, or some is
 * higher (words.c). */
const char *lab_choices_by_model(const struct lab_choices *placements,
                                 const struct lab_factor_row *mean, struct lab_arena *arena);

/* A command that repeats the placements of a model often enough; NULL = nothing is open. */
const char *lab_choices_next(const struct lab_choices *placements, int model,
                             struct lab_arena *arena);

/* Bytes of all placements' words, whole parts of lists, that don't tell them apart (shared.c). */
struct lab_choice_shared {
    size_t before, after;
};

struct lab_choice_shared lab_choices_shared(const struct lab_choices *placements);
/* "All placements: GPU 0, NUMA node 0."; NULL = they share nothing. */
const char *lab_choices_shared_words(const struct lab_choices *placements,
                                     struct lab_choice_shared all, struct lab_arena *arena);
