/*
 * numa.h: a study's points as devices × models × NUMA nodes, and the claims that follow. For the
 * files of this folder and numa.c.
 *
 * The reference of a device is its local node where that was tested; else the nearest tested one;
 * else the one with the lowest number. It is chosen before any rate is looked at, so that chance
 * doesn't make a penalty.
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/claims/contrast.h"

struct lab_numa_model {
    const char *name;            /* the point's, without device and node: "vit32x6x512_compiled" */
    const char *whole, *setting; /* of that: "vit32x6x512", "compiled"; "" = none */
    double complexity;           /* operations of a sample; NaN = unknown */
};

struct lab_numa_cell {                   /* a model on a device, bound to a node */
    const struct lab_study_point *point; /* NULL = there is no run that counts */
    struct lab_claim claim;              /* "numa.cell", against the reference; none of itself */
};

struct lab_numa_node {
    int number, distance;   /* 0 = unknown */
    struct lab_claim claim; /* "numa.device": all models of the device against the reference */
};

struct lab_numa_device {
    const char *name;            /* "cuda:3"; before it the study's, where there are several */
    const char *title;           /* "GPU 3" */
    int home;                    /* the node that it is attached to; -1 = unknown */
    struct lab_numa_node *nodes; /* ascending by number */
    int node_count;
    int reference;               /* index into nodes */
    struct lab_numa_cell *cells; /* model by model, each with node_count of them */
    /* Whether to bind it to its best node: that against all others, over all models. Headline,
     * tables and advice rest on this claim. Where its local node wasn't tested, which may well be
     * better, it holds until that is. */
    struct lab_claim binding; /* "advise.bind" */
};

struct lab_numa_pooled { /* over all devices */
    const char *model;
    double gflop;      /* of a sample */
    int distance;      /* of the nodes from the device; 0 = unknown */
    double far;        /* the same; NaN = unknown */
    const char *title; /* "distance 21, mean of 8 devices" */
    int devices;       /* that it was tested on */
    bool transfer_bound;
    struct lab_claim claim; /* "numa.penalty" */
};

struct lab_numa_grid {
    const struct lab_study_table *study;
    struct lab_numa_model *models; /* ascending by complexity */
    int model_count;
    struct lab_numa_device *devices;
    int device_count;
    struct lab_numa_pooled *pooled; /* the farthest nodes first, then by model */
    int pooled_count;
    /* "numa.transfer_bound": all devices on the models that are, from the farthest nodes; not
     * tested where no model is */
    struct lab_claim transfer_bound;
    int gangs;  /* points of several devices, which are left out */
    int spread; /* points whose device was chosen by chance, likewise */
};

/* Everything compared; all verdicts hold together, those of cells, of devices and the pooled ones.
 * `prefix` before the devices' names. */
struct lab_numa_grid lab_numa_grid_make(const struct lab_study_table *study, const char *prefix,
                                        struct lab_arena *arena);

static inline struct lab_numa_cell *lab_numa_cell_at(const struct lab_numa_device *device,
                                                     int model, int node) {
    return &device->cells[model * device->node_count + node];
}

/* Its local node is among those tested, or is unknown. */
bool lab_numa_home_tested(const struct lab_numa_device *device);
/* The node to bind to: one with higher throughput than the reference, or that. An index. */
int lab_numa_best_node(const struct lab_numa_device *device);
/* Adds that node against all others, over all models, with so much weight a pair; returns how many
 * pairs there are. `contrast` NULL: counts them. */
int lab_numa_add_pairs(const struct lab_numa_grid *grid, const struct lab_numa_device *device,
                       int chosen, double weight, struct lab_contrast *contrast);
/* The claim of binding the device to that node, by itself. */
struct lab_claim lab_numa_claim_binding(const struct lab_numa_grid *grid,
                                        const struct lab_numa_device *device, int chosen,
                                        struct lab_arena *arena);
/* What holds for devices that aren't bound, of which some are slower on a remote node: "GPU 3:
 * inconclusive between …"; "" = none is left (answer.c). */
const char *lab_numa_unbound(const struct lab_numa_grid *grid, struct lab_arena *arena);
/* YES where a node differs and the binding to the best one is certain, NO where no node differs. */
enum lab_claim_verdict lab_numa_verdict(const struct lab_numa_device *device);
/* Of all studies; NULL = nothing was compared. */
const char *lab_numa_answer(const struct lab_numa_grid *grids, int count, struct lab_arena *arena);

/* Keys that test other GPUs, local nodes, or what is inconclusive (further.c). */
void lab_numa_test_the_rest(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                            struct lab_arena *arena);

/* Those of a study (charts.c); their names end with the suffix. */
void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena);
