/*
 * model/sample.h: what watching a machine gives: entities (a GPU, a MIG instance, the CPUs, the
 * memory, the NUMA nodes), their ticks (one row of values at one time), processes, and events such
 * as a GPU that was lost. Whoever watches hands these to a sink; recordings, screens and servers
 * are sinks.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. What is unknown is not valid; it is never 0 instead.
 */
#pragma once

#include "base/mem.h"
#include "model/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- entities --- */

enum lab_entity_kind {
    LAB_ENTITY_GPU,
    LAB_ENTITY_MIG,
    LAB_ENTITY_CPU,    /* all CPUs of the machine */
    LAB_ENTITY_MEMORY, /* the host's */
    LAB_ENTITY_NUMA,   /* all its nodes */
    LAB_ENTITY_KIND_COUNT
};

const char *lab_entity_kind_name(enum lab_entity_kind kind); /* "gpu"; the name in files */
int lab_entity_kind_find(const char *name);                  /* -1 = none */

struct lab_column {
    int16_t metric;   /* enum lab_metric_id */
    int16_t instance; /* a core's, node's or link's number; -1 = the metric has no instances */
};

struct lab_entity {
    enum lab_entity_kind kind;
    int index;        /* of a GPU as `cuda:N` counts; of a MIG instance within its GPU; else 0 */
    const char *id;   /* the same whenever and however often it is found: "GPU-5f0c…", "cpu" */
    const char *name; /* "NVIDIA H200" */
    const char *pci;  /* "0000:3b:00.0"; "" = has none */
    int node;         /* the kernel's number of the NUMA node that feeds it; -1 = unknown or all */
    int parent;       /* the GPU that a MIG instance is part of, as an entity's number; -1 = none */
    bool simulated;   /* of the demonstration or a simulated machine */
    const struct lab_column *columns; /* what its ticks hold; never changes */
    int column_count;
    bool numbered;    /* of a GPU: the driver's own numbers are known, which no variable changes */
    int driver_index; /* as nvidia-smi counts */
    int driver_minor; /* N of /dev/nvidiaN; -1 = unknown */
};

/* With texts and columns of its own, in the arena; a text that is NULL becomes "". */
struct lab_entity lab_entity_copy(const struct lab_entity *entity, struct lab_arena *arena);

#define LAB_COLUMNS_MAX 2048 /* of one entity: a machine with 1,000 logical CPUs has two each */

/* Index of a column, or -1. */
int lab_entity_column(const struct lab_entity *entity, enum lab_metric_id metric, int instance);

/* --- ticks --- */

/* A bit for each column, 64 to a word. */
#define LAB_VALID_WORDS(columns) (((columns) + 63) / 64)

static inline bool lab_valid_get(const uint64_t *valid, int column) {
    return valid[column / 64] >> (column % 64) & 1;
}

static inline void lab_valid_set(uint64_t *valid, int column) {
    valid[column / 64] |= UINT64_C(1) << (column % 64);
}

/*
 * A slow metric is valid only in the ticks in which it was read. A tick without any valid value is
 * one in which the entity did not answer.
 */
struct lab_tick {
    int entity;
    int64_t time_ns;       /* when its reading began */
    int64_t late_ns;       /* how long after it was due */
    int64_t cost_ns;       /* thread time of the reading; -1 = unknown */
    const int64_t *values; /* column_count of them */
    const uint64_t *valid; /* LAB_VALID_WORDS(column_count) words */
};

/* The value in the metric's unit; NaN if it isn't valid or there is no such column. */
double lab_tick_value(const struct lab_entity *entity, const struct lab_tick *tick,
                      enum lab_metric_id metric, int instance);

/* --- events --- */

enum lab_event_kind {
    LAB_EVENT_GAP,        /* from here on the entity gives nothing; `text` says why */
    LAB_EVENT_BACK,       /* it does again; `number`: how long it was away, ns */
    LAB_EVENT_MISSED,     /* `number` ticks were skipped since the entity's reading took too long */
    LAB_EVENT_XID,        /* `number`: which */
    LAB_EVENT_CLOCK,      /* the wall clock was set; `number`: by how many ns */
    LAB_EVENT_NOT_STORED, /* `number` ticks could not be written; `text` says why */
    LAB_EVENT_MARK,       /* something of the user's: the command began, ended */
    LAB_EVENT_KIND_COUNT
};

struct lab_sample_event {
    int64_t time_ns;
    int entity; /* -1 = of the whole recording */
    enum lab_event_kind kind;
    int64_t number;
    const char *text; /* may be "" */
};

const char *lab_event_kind_name(enum lab_event_kind kind); /* "gap"; the name in files */
enum lab_event_kind lab_event_kind_find(const char *name); /* LAB_EVENT_KIND_COUNT = none */

/* --- processes --- */

#define LAB_PROCESS_NODES_MAX 64

struct lab_process_gpu {
    int entity;            /* the GPU's, or the MIG instance's */
    int64_t memory_bytes;  /* -1 = unknown */
    double sm_percent;     /* NaN = unknown */
    double memory_percent; /* of the memory controller's time; NaN = unknown */
    bool compute, graphics;
};

/* Where a process may run, runs and has its memory, against where its GPUs are. */
enum lab_placement {
    LAB_PLACEMENT_UNKNOWN,  /* the GPU's node, or the process's, is unknown */
    LAB_PLACEMENT_ONE_NODE, /* the machine has one node only: nothing to be wrong */
    LAB_PLACEMENT_LOCAL,
    LAB_PLACEMENT_LOOSE,  /* it runs on the right node but nothing keeps it there */
    LAB_PLACEMENT_CORES,  /* it runs on another node */
    LAB_PLACEMENT_MEMORY, /* it runs on the right node, most of its memory is on another */
    LAB_PLACEMENT_BOTH,
};

struct lab_process_sample {
    int32_t pid;
    int32_t parent_pid;
    uint64_t start; /* since boot, in clock ticks: with the pid it names one process for good */
    uint32_t uid;
    const char *user;    /* its name, or the number */
    const char *name;    /* "python3" */
    const char *command; /* the whole line, spaces between; "" = a kernel thread or not readable */
    const char *container; /* short id or name; "" = none */
    double cpu_percent;    /* of one CPU; NaN = not known yet */
    double queue_percent;  /* its first thread's wait for a CPU, of that and its run time; or NaN */
    double
        active_percent; /* of the time, that thread's wait and run time: it didn't sleep; or NaN */
    int64_t memory_bytes; /* resident */
    int threads;
    int cpu_node;           /* node of the CPU where most of its threads ran last; -1 = unknown */
    uint64_t allowed_nodes; /* bit n: it may run on a CPU of node n */
    int64_t *node_bytes;    /* by index into the machine's nodes; NULL = not known */
    int node_count;
    struct lab_process_gpu *gpus;
    int gpu_count;
    enum lab_placement placement;
    const char *advice; /* what would fix it, to be pasted; "" = nothing is to be fixed */
    /* where one job is watched; no file holds these, nor the share of waiting above */
    const char *rank; /* "3"; NULL = unknown */
    bool foreign;     /* it isn't the job's, but on a GPU of it */
};

struct lab_process_list {
    int64_t time_ns;
    struct lab_process_sample *items;
    int count;
    int left_out; /* processes that were not listed, since there are too many */
};

/* --- the sink --- */

/*
 * All calls come from one thread. An entity is told before its first tick, and again if it came
 * back as another (its columns don't change). What is handed over lives for the call alone.
 */
struct lab_sink_samples {
    void (*entity)(void *state, int number, const struct lab_entity *entity);
    void (*tick)(void *state, const struct lab_tick *tick);
    void (*event)(void *state, const struct lab_sample_event *event);
    void (*processes)(void *state, const struct lab_process_list *list);
    void *state;
};
