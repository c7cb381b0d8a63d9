/*
 * peers.h: devices of a study compared with their peers: others of the same model of hardware, each
 * with the same workload and kernel configuration, from a NUMA node at the same distance. For
 * peers.c and recommend.
 */
#pragma once

#include "analysis/claims/contrast.h"
#include "analysis/peers/condition.h"
#include "analysis/stages/stages.h"

#define LAB_PEERS_LEAST 2 /* to compare a device with; fewer don't show which one is slow */

struct lab_peer_cell { /* points of a device under one condition */
    const struct lab_study_point **points;
    int count;
};

struct lab_peer_model {
    const char *device, *model;
    double gflop;
    struct lab_claim claim;
};

enum { LAB_PEER_COPYING, LAB_PEER_COMPUTING, LAB_PEER_CLASSES };

struct lab_peer {
    const char *name, *title, *hardware;
    struct lab_peer_cell *cells; /* one for each setup */
    bool odd;                    /* it differs: no reference for others */
    int models;                  /* that it was compared on */
    struct lab_claim claim;
    /* "peers.class": on transfer-bound models alone and on compute-bound ones, where there are
     * both: their mean dilutes a slow GPU and a slow link alike */
    struct lab_claim classes[LAB_PEER_CLASSES];
    struct lab_peer_model *rows; /* by model, where there are several */
    int row_count;
    struct lab_condition condition;
    struct lab_difference difference; /* of the conditions */
};

struct lab_peer_setup {                /* what has to be alike */
    const char *model, *configuration; /* of the kernel; NULL = it has none */
    const char *whole;                 /* the model without what else varies: its batch */
    double complexity;
    int distance; /* of the NUMA node; 0 = unknown */
    enum lab_stage_bound bound;
};

struct lab_peers {
    const struct lab_study_table *study;
    const char *quantity; /* that is compared: "throughput" */
    double (*value)(const struct lab_study_run *run, const void *context); /* NULL = of it */
    const void *context;
    struct lab_peer *devices;
    int device_count;
    struct lab_peer_setup *setups;
    int setup_count;
};

/* Devices that ran alone. A device that differs for certain is no reference for the others: then
 * they are compared again without it, the largest difference first. Conditions aren't filled in. */
struct lab_peers lab_peers_make(const struct lab_study_table *study, struct lab_arena *arena);
/* The same of any value of a run, of which more is better. */
struct lab_peers lab_peers_make_of(const struct lab_study_table *study, const char *quantity,
                                   double (*value)(const struct lab_study_run *run,
                                                   const void *context),
                                   const void *context, struct lab_arena *arena);
/* The device, by its index, over all setups of a whole model; by itself, no verdict of a family. */
struct lab_claim lab_peers_compare(const struct lab_peers *peers, int device, const char *whole,
                                   struct lab_arena *arena);
/* The largest effect of a device that is certain; 0 = none is. */
double lab_peer_effect(const struct lab_peer *device);
/* What is to be said of the device (lab_words_told). */
const struct lab_claim *lab_peer_told(const struct lab_peer *device);
