/*
 * model/trace.h: what a device did, command by command, as a trace keeps it: kernels, copies,
 * fills, the host's calls that asked for them, and ranges that give stretches of time a name.
 *
 * The records are those of Nsight Systems, without unused fields, so that a trace of ours and an
 * export of theirs look the same to an analysis. Times are nanoseconds of one clock within
 * a trace: CLOCK_MONOTONIC in ours, the start of the session in Nsight's. What a source doesn't
 * know is 0 or NULL. Arrays are in order of start; strings and arrays live in the arena of whatever
 * made the trace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where on the device a command ran, and which call of the host asked for it. */
struct lab_trace_place {
    int32_t device;   /* as CUDA counts; the NUMA node of a CPU device */
    uint32_t context; /* 0 = unknown */
    uint32_t green;   /* the slice's own context; 0 = the device is whole */
    uint32_t stream;  /* unique within the context */
    uint32_t
        correlation; /* equals that of the call; all of a graph's commands share one; 0 = none */
    uint64_t graph_node; /* 0 = not from a graph */
};

/* On a CPU device: one operation; its grid is the units that it is cut into. */
struct lab_trace_kernel {
    int64_t start_ns, end_ns;
    struct lab_trace_place place;
    const char *name;      /* short, "layer_norm"; the same pointer for the same name where cheap */
    const char *long_name; /* with types and arguments; NULL = as `name` */
    int32_t grid[3], block[3];
    int32_t registers;                     /* of each thread */
    int32_t static_shared, dynamic_shared; /* bytes of each block */
    int64_t local_bytes;                   /* spilled, of each thread */
    bool
        /* stands for all commands of a graph, copies among them: nothing finer is known */
        whole_graph;
};

enum lab_trace_copy_kind { /* as CUPTI and Nsight number them */
                           LAB_TRACE_COPY_UNKNOWN = 0,
                           LAB_TRACE_COPY_H2D = 1,
                           LAB_TRACE_COPY_D2H = 2,
                           LAB_TRACE_COPY_D2D = 8,
                           LAB_TRACE_COPY_H2H = 9,
                           LAB_TRACE_COPY_P2P = 10,
};

enum lab_trace_memory { /* as Nsight numbers them; CUPTI's numbers are other ones */
                        LAB_TRACE_MEMORY_PAGEABLE = 0,
                        LAB_TRACE_MEMORY_PINNED = 1,
                        LAB_TRACE_MEMORY_DEVICE = 2,
                        LAB_TRACE_MEMORY_MANAGED = 4,
                        LAB_TRACE_MEMORY_UNKNOWN = 7,
};

struct lab_trace_copy {
    int64_t start_ns, end_ns;
    struct lab_trace_place place;
    int64_t size_bytes;
    int32_t kind;     /* enum lab_trace_copy_kind, or another number that the source gave */
    int32_t from, to; /* enum lab_trace_memory, likewise */
};

struct lab_trace_fill { /* memset */
    int64_t start_ns, end_ns;
    struct lab_trace_place place;
    int64_t size_bytes;
    int64_t value;
    int32_t memory;
};

/* A call of the host that asked the device for something; `end_ns` is when it returned. */
struct lab_trace_call {
    int64_t start_ns, end_ns;
    const char *name; /* "cuLaunchKernel", "lab_copy" */
    uint32_t thread;  /* the system's number */
    uint32_t correlation;
    int32_t result; /* 0 = success */
};

struct lab_trace_range {
    int64_t start_ns, end_ns; /* end < start: it was never closed */
    const char *text;         /* "compute_batch_12" */
    uint32_t thread;
    /*
     * NVTX's kinds: 59 opened and closed on one thread, 60 free of threads. Our pipeline's ranges
     * follow the device, so those of neighbouring batches overlap; they are 59 all the same, since
     * that is what readers of such traces ask for.
     */
    int32_t kind;
};

enum { LAB_TRACE_RANGE_NESTED = 59, LAB_TRACE_RANGE_FREE = 60 };

struct lab_trace_gpu { /* a device that the trace speaks of */
    int32_t device;
    const char *name, *uuid, *pci_bus;
    int32_t compute_units;
    int32_t compute_major, compute_minor;
    int64_t memory_bytes;
    double memory_bytes_per_s;
};

struct lab_trace_note { /* about the trace itself: who made it, its overhead */
    const char *name, *value;
};

struct lab_trace {
    uint32_t process; /* its number in the system */
    struct lab_trace_kernel *kernels;
    struct lab_trace_copy *copies;
    struct lab_trace_fill *fills;
    struct lab_trace_call *calls;
    struct lab_trace_range *ranges;
    struct lab_trace_gpu *gpus;
    struct lab_trace_note *notes;
    size_t kernel_count, copy_count, fill_count, call_count, range_count, gpu_count, note_count;
    int64_t dropped; /* commands that found no room, and are missing */
};

/* The names of our notes. */
#define LAB_TRACE_NOTE_MAKER      "EXPORT_PRODUCT_NAME" /* "gpulab 0.1.0" */
#define LAB_TRACE_NOTE_SOURCE     "GPULAB_SOURCE"       /* "cupti", "streams" */
#define LAB_TRACE_NOTE_RUN        "GPULAB_RUN_ID"       /* "gpu0_numa1_vit32x6x512" */
#define LAB_TRACE_NOTE_DEVICE     "GPULAB_DEVICE"       /* "cpu:0/2.1" */
#define LAB_TRACE_NOTE_ITERATIONS "GPULAB_ITERATIONS"   /* "32" */
#define LAB_TRACE_NOTE_OVERHEAD                                                                    \
    "GPULAB_TRACE_OVERHEAD" /* "0.012": the traced pass took 1.2 % longer */
#define LAB_TRACE_NOTE_DROPPED "GPULAB_DROPPED_RECORDS" /* "0" */

/* The range around the measured iterations; analyses of a trace that has it look at nothing
 * else. */
#define LAB_TRACE_WINDOW "test_double_buffer"
/* That around what comes before them. */
#define LAB_TRACE_WARMUP "warmup_double_buffer"
