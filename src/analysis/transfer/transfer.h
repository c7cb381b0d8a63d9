/*
 * transfer.h: what the files of `gpulab analyze transfer` share.
 *
 *   copies.c    bandwidth and latency of copies, by path and by size
 *   settings.c  throughput by batch and by pool; the remote node's penalty by pool
 */
#pragma once

#include "analysis/analysis.h"
#include "analysis/claims/contrast.h"

/* --- copies --- */

enum lab_transfer_direction { LAB_TRANSFER_H2D, LAB_TRANSFER_D2H, LAB_TRANSFER_DIRECTIONS };

/* Copies of one direction between a device and a NUMA node, or between several devices and nodes
 * at one distance. */
struct lab_transfer_path {
    const char *title; /* "GPU 0, NUMA node 2" */
    double distance;   /* NaN = unknown */
    bool reference;    /* the device's local node, or the nearest one tested */
    int points;
    /* "transfer.bandwidth", "transfer.latency": of time = latency + bytes/bandwidth */
    struct lab_claim bandwidth, latency;
    struct lab_claim
        change; /* "transfer.node": of bandwidth, against the reference; not adjusted */
};

struct lab_transfer_size { /* copies of one size over a path */
    const char *path, *example;
    double bytes, megabytes;
    struct lab_claim bandwidth; /* "transfer.size" */
};

struct lab_transfer_copies {
    struct lab_transfer_path *paths; /* over all devices first; the reference, then the farthest */
    int path_count;
    struct lab_transfer_size *sizes; /* of paths over all devices, or of the only device's */
    int size_count;
};

/* Of points on one device each. */
struct lab_transfer_copies lab_transfer_copies_make(const struct lab_study_table *study,
                                                    const struct lab_study_point *points, int count,
                                                    enum lab_transfer_direction direction,
                                                    struct lab_arena *arena);

/* --- settings --- */

enum lab_transfer_question {
    LAB_TRANSFER_BATCH,
    LAB_TRANSFER_POOL,
    LAB_TRANSFER_PRESSURE, /* of the pool, on the penalty of the farthest node */
    LAB_TRANSFER_QUESTIONS,
};

struct lab_transfer_row { /* a model with a value of the setting, mean over all points alike */
    const char *model;
    double value, rate;
    const char *per_second;
    /* against the smallest value; of PRESSURE the farthest node against the nearest */
    struct lab_claim change;
    /* against the smallest value in all questions: of PRESSURE, by how much that penalty differs */
    struct lab_claim from_least;
};

struct lab_transfer_answer {
    struct lab_claim pooled; /* the largest value against the smallest, over all models */
    struct lab_transfer_row *rows;
    int count;      /* 0 = the setting doesn't vary, or not on both nodes */
    const char *at; /* "batch 10, 224 px": what all points with the smallest value have; NULL = they
                       differ in it, or nothing else varies */
};

struct lab_transfer_answer lab_transfer_ask(const struct lab_study_table *study,
                                            const struct lab_study_point *points, int count,
                                            enum lab_transfer_question question,
                                            struct lab_arena *arena);
