/*
 * numa.h: what a study tells of nodes: for each device and model, the throughput from each node
 * that fed it, and how much another node than the reference costs. For the files of this folder and
 * numa.c.
 *
 * The reference is the device's own node, where it was tried; else the nearest by distance; else
 * the fastest on the whole. It is chosen before penalties are looked at, so that chance doesn't
 * make one. Only a node that beats it on some model, for certain, and loses on none takes its
 * place.
 */
#ifndef LAB_ANALYSIS_NUMA_NUMA_H
#define LAB_ANALYSIS_NUMA_NUMA_H

#include "analysis/analysis.h"
#include "analysis/analysis_study.h"

struct lab_numa_model {
    const char *name;  /* the point's, without device and node: "vit32x6x512_compiled" */
    double complexity; /* operations of a sample; NaN = unknown */
};

struct lab_numa_cell {                   /* a model on a device fed from a node */
    const struct lab_study_point *point; /* NULL = there is no run that counts */
    struct lab_study_ratio ratio;        /* of rates, against the reference; NaN of itself */
};

struct lab_numa_node {
    int number, distance; /* 0 = unknown */
    int slower, faster;   /* models on which it is, for certain */
    int compared;         /* models */
};

struct lab_numa_device {
    const char *name;            /* "cuda:3"; before it the study's, where there are several */
    const char *title;           /* "GPU 3" */
    int home;                    /* the node that it sits on; -1 = unknown */
    struct lab_numa_node *nodes; /* ascending by number */
    int node_count;
    int reference;               /* index into nodes */
    bool by_distance;            /* the reference is the nearest node; else the fastest */
    struct lab_numa_cell *cells; /* model by model, each with node_count of them */
    const struct lab_study_table *study;
};

struct lab_numa_grid {
    const struct lab_study_table *study;
    struct lab_numa_model *models; /* ascending by complexity */
    int model_count;
    struct lab_numa_device *devices;
    int device_count;
    int gangs; /* points of several devices, which are left out */
};

/* Everything compared; verdicts hold for all of the study together. `prefix` before the devices'
 * names. */
struct lab_numa_grid lab_numa_grid_make(const struct lab_study_table *study, const char *prefix,
                                        struct lab_arena *arena);

static inline struct lab_numa_cell *lab_numa_cell_at(const struct lab_numa_device *device,
                                                     int model, int node) {
    return &device->cells[model * device->node_count + node];
}

/* The share of throughput that is lost, of a cell that isn't the reference. */
static inline double lab_numa_penalty(const struct lab_numa_cell *cell) {
    return 1 - cell->ratio.ratio;
}

/* The most that may be lost by the worse of the two nodes, whichever that is; never all of it. */
static inline double lab_numa_bound(const struct lab_study_ratio *ratio) {
    double here = 1 - ratio->low, there = 1 - 1 / ratio->high;
    return here > there ? here : there;
}

/* --- words (numa/words.c) --- */

/* "GPU 3 is best fed from node 1: node 0 costs 12.4 % ± 1.1 % on vit32x2x128, …" */
const char *lab_numa_device_answer(const struct lab_numa_grid *grid,
                                   const struct lab_numa_device *device, struct lab_arena *arena);
/* All devices of all studies in one or two sentences. */
const char *lab_numa_answer(const struct lab_numa_grid *grids, int count, struct lab_arena *arena);

/* Nodes from which the device is fed as well as it can be told: the reference and those that cost
 * nothing for certain; "1", "0 or 1". */
const char *lab_numa_best_nodes(const struct lab_numa_device *device, struct lab_arena *arena);
/* For tables: "12.4 % ± 1.1 %" of a penalty; "at most 0.8 %" of one that can't be told from
 * none. */
const char *lab_numa_penalty_words(const struct lab_numa_cell *cell, struct lab_arena *arena);
/* The largest that is certain, or NULL. */
const struct lab_numa_cell *lab_numa_worst(const struct lab_numa_grid *grid,
                                           const struct lab_numa_device *device, int *ret_model,
                                           int *ret_node);

/* --- over devices (numa/sensitivity.c) --- */

struct lab_numa_sensitivity { /* of a model, at a distance, over the devices of a study */
    int model, distance;
    int devices;      /* that were fed from so far away */
    double penalty;   /* mean over them */
    double low, high; /* at 95 %, from the spread between devices; NaN = one device */
};

int lab_numa_sensitivities(const struct lab_numa_grid *grid, struct lab_arena *arena,
                           struct lab_numa_sensitivity **ret_rows);

/* --- pictures (numa/charts.c) --- */

/* Those of a study; their names end with the suffix. */
void lab_numa_add_charts(struct lab_analysis_result *result, const struct lab_numa_grid *grid,
                         const char *suffix, struct lab_arena *arena);

#endif
