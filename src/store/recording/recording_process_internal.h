/*
 * recording_process_internal.h: what packing and unpacking lists of processes have in common: the
 * figures that are compared from list to list.
 */
#pragma once

#include "store/recording/recording_process.h"

#define LAB_PROCESS_VERSION                                                                        \
    17 /* none that packed ticks have: one must not be taken for the other */
#define LAB_PROCESS_GPUS_MAX 256 /* that one process uses */

enum {
    LAB_PROCESS_CHANGED_CPU = 1,
    LAB_PROCESS_CHANGED_MEMORY = 2,
    LAB_PROCESS_CHANGED_THREADS = 4,
    LAB_PROCESS_CHANGED_CPU_NODE = 8,
    LAB_PROCESS_CHANGED_ALLOWED = 16,
    LAB_PROCESS_CHANGED_NODES = 32,
    LAB_PROCESS_CHANGED_GPUS = 64,
    LAB_PROCESS_CHANGED_PLACEMENT = 128,
};

struct lab_process_gpu_state {
    int64_t row, memory, sm_share, memory_share;
    uint64_t uses; /* bit 0: compute, bit 1: graphics */
};

struct lab_process_state {
    int64_t number;
    int64_t cpu_share, memory, threads, cpu_node;
    uint64_t allowed_nodes, placement;
    int node_count; /* -1 = not known */
    int64_t *node_bytes;
    int gpu_count;
    struct lab_process_gpu_state *gpus;
};

/* What a process that is new starts from. */
extern const struct lab_process_state lab_process_blank;
