/*
 * cuda.h: what the files of the cuda backend share. Not seen outside this folder.
 *
 *   cuda.c       the backend and its slots             select.c   which devices a selector names
 *   inventory.c  the GPUs here, without CUDA           open.c     contexts of devices and slices
 *   slice.c      multiprocessors cut into slices       memory.c   buffers
 *   stream.c     streams and copies                    event.c    marks in streams, and their times
 *   graph.c      commands kept and replayed            limits.c   what the device can do at best
 *   error.c      what a failure means and what to do   kernels.c  launches
 *   plan*.c      which kernel does an op, and how      module.c   kernels loaded on a device
 *   compile.c    kernels' code, by NVRTC               gemm.c, gemm_tune.c  products by cuBLASLt
 *   trace.c      what the GPU did, by CUPTI            tune.c     what can be chosen, and for whom
 *   compiler.c   NVRTC's version, without NVRTC
 *   sum*.c       sums over several devices             fault.c    waits that others may hold up
 *
 * How it works: a device is a context, the primary one of a GPU or a green one on some of its
 * multiprocessors. A thread that calls into the backend makes that context current first
 * (cuda_enter), so devices may be used by any thread, one at a time. Times of events are
 * differences to an anchor event whose time on the host's clock is known.
 *
 * The process that plans and starts runs only selects: it never calls cuInit, since a process that
 * has done so can't be cloned safely and holds memory on every GPU.
 */
#pragma once

#include "device/device.h"
#include "vendor/cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- what is here --- */

struct cuda_gpu {         /* a GPU or a MIG instance */
    const char *uuid;     /* "GPU-…" or "MIG-…" */
    const char *name;     /* "NVIDIA H200" */
    const char *address;  /* "0000:3b:00.0", as in struct lab_pci; "" = unknown */
    int64_t memory_bytes; /* 0 = unknown */
    int sm_count;         /* multiprocessors; 0 = unknown */
    int capability;       /* 90 for 9.0; 0 = unknown */
    bool mig_parent;      /* MIG is on: only its instances compute */
    int parent;           /* MIG instance: the index of its GPU; else -1 */
};

struct cuda_inventory {
    struct cuda_gpu *items; /* GPUs in PCI order, each followed by its MIG instances */
    int count;
    const char *why_none; /* count is 0: why */
};

/*
 * Asks NVML, or reads /proc/driver/nvidia where that is missing; never initialises CUDA. The
 * inventory lives in the arena.
 */
void cuda_inventory_read(struct lab_arena *arena, struct cuda_inventory *ret_inventory);
/* The part without NVML; `root` is "/proc/driver/nvidia/gpus". */
void cuda_inventory_read_proc(const char *root, struct lab_arena *arena,
                              struct cuda_inventory *ret_inventory);

/*
 * What CUDA_VISIBLE_DEVICES leaves, in its order: whole numbers count GPUs in PCI order, UUIDs may
 * be cut short, the first entry that names nothing ends the list, and one that is named twice
 * leaves none, all as the driver has it. NULL = all.
 */
void cuda_inventory_filter(struct cuda_inventory *inventory, const char *visible,
                           struct lab_arena *arena);

/* Multiprocessors of the smallest slice, and what others are multiples of: 8 on 9.0 and later. */
int cuda_slice_unit(int capability);

/* --- the device and what belongs to it --- */

struct cuda_anchor { /* ties the GPU's clock to the host's */
    lab_cu_event event, spare;
    lab_cu_stream stream; /* its own, so that it waits for nothing */
    int64_t time_ns;      /* when `event` was passed, on the host's clock */
    int64_t taken_ns;     /* when that was found; 0 = never */
};

struct cuda_device {
    struct lab_device base;
    struct lab_arena arena;
    const struct lab_cuda *cuda; /* the driver's functions */
    uint64_t opening; /* counts openings, so that threads know whose context is current */
    lab_cu_device ordinal;
    lab_cu_context context;
    lab_cu_green_context green; /* of a slice; NULL = the whole GPU */
    bool retained;              /* the primary context, which lives as long as all users of it */
    int capability;             /* 90 for 9.0 */
    int sm_count;               /* multiprocessors that it has: the slice's own */
    int shared_bytes_max;       /* per block, when opted in */
    int priority_low, priority_high; /* of streams; high is the smaller number */
    struct cuda_stream *streams;     /* open ones */
    struct cuda_anchor anchor;
    struct lab_device_limits limits[4]; /* by dtype; measured at the first call */
    bool limits_known[4];
    void *kernels;             /* kernels.c's own: modules, handles; NULL until the first launch */
    bool traced;               /* between trace_begin and trace_end */
    uint32_t trace_context;    /* the number by which CUPTI knows its context */
    struct cuda_fault *faults; /* fault.c: what else waiting for it has to look at */
    void *nvml; /* NVML's handle of its GPU, of that generation; NULL = not asked for */
    unsigned nvml_generation;
};

struct cuda_stream {
    struct lab_stream base;
    lab_cu_stream handle;
    struct cuda_graph *capture; /* what is kept between graph_begin and graph_end */
    struct cuda_stream *next;
    void *kernels; /* gemm.c's own: workspace; NULL until the first launch */
};

struct cuda_event {
    struct lab_event base;
    lab_cu_event handle;
    int references; /* the user's, and one for each mention in a graph */
    bool recorded;
};

struct cuda_graph {
    struct lab_graph base;
    lab_cu_graph_exec exec;     /* NULL while it is captured, or empty */
    struct cuda_event **events; /* mentioned in it */
    bool *records;              /* that mention is a record, not a wait */
    int event_count;
};

extern const struct lab_backend lab_backend_cuda;
extern const struct lab_device_ops cuda_device_ops; /* cuda.c */

/* --- error.c --- */

/* "cuMemAlloc: out of memory (2)…" with what to do where that is known; always returns -1. */
int cuda_fail(lab_cu_result result, const char *call, struct lab_err *err);

static inline int cuda_check(lab_cu_result result, const char *call, struct lab_err *err) {
    return result == LAB_CU_SUCCESS ? 0 : cuda_fail(result, call, err);
}

/* --- open.c --- */

int cuda_open(const struct lab_machine *machine, const struct lab_device_ref *ref,
              struct lab_device_setup setup, struct lab_device **ret_device, struct lab_err *err);
void cuda_close(struct lab_device *device);
/* Makes the device's context the calling thread's current one; cheap where it is already. */
int cuda_enter(const struct cuda_device *device, struct lab_err *err);
int cuda_attribute(const struct cuda_device *device, lab_cu_attribute attribute); /* 0 = unknown */

/* What was called may have made another context current: the thread's next cuda_enter sets it
 * anew. */
void cuda_forget(void);

/* --- fault.c --- */

/*
 * Something on the device that depends on other devices: a sum. Whoever waits for the device hears
 * of what went wrong with it.
 */
struct cuda_fault {
    int (*check)(void *state, struct lab_err *err); /* -1 once it has failed */
    void *state;
    /* where the device may wait for ever: how long it may keep a waiting host; then `give_up` is
     * called, after which the device comes to an end. 0 = it ends by itself */
    double limit_s;
    void (*give_up)(void *state, struct lab_err *why);
    struct cuda_fault *next;
};
void cuda_fault_add(struct cuda_device *device, struct cuda_fault *fault);
void cuda_fault_remove(struct cuda_device *device, struct cuda_fault *fault);

/* Before and after the driver is asked to wait for a stream or an event; the other one is NULL. */
int cuda_faults_wait(struct cuda_device *device, lab_cu_stream stream, lab_cu_event event,
                     struct lab_err *err);
int cuda_faults_check(struct cuda_device *device, struct lab_err *err);

/* --- slice.c --- */

/* Why separate processes can't use slices side by side; NULL where an MPS daemon serves the GPU. */
const char *cuda_why_together(struct lab_arena *arena);
/* A green context on slice `slice` of `slices`; the primary context is retained meanwhile. */
int cuda_slice_open(struct cuda_device *device, int slices, int slice, struct lab_err *err);
void cuda_slice_close(struct cuda_device *device);

/* --- select.c --- */

int cuda_select(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
                struct lab_device_list *list, const char **ret_why_none, struct lab_err *err);

/* --- tune.c --- */

const struct lab_tunable *cuda_tunable(const struct lab_tunable_place *place,
                                       const struct lab_launch *launch);
/* Without CUDA: by NVML, or by the kernel module's files where that is missing. */
int cuda_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                  struct lab_device_identity *ret_identity, struct lab_err *err);
int cuda_health(const struct lab_machine *machine, const struct lab_device_list *devices,
                struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err);
double cuda_clock_mhz(struct lab_device *device); /* of the multiprocessors */
double cuda_power_w(struct lab_device *device);
double cuda_energy_j(struct lab_device *device);

/* --- limits.c --- */

int cuda_limits(struct lab_device *device, enum lab_dtype dtype,
                struct lab_device_limits *ret_limits, struct lab_err *err);

/* --- memory.c --- */

int cuda_buffer_open(struct lab_device *device, struct lab_buffer *buffer, struct lab_err *err);
void cuda_buffer_close(struct lab_buffer *buffer);
/* Device memory for the backend itself; too little is LAB_ERR_MEMORY. */
int cuda_memory_alloc(struct cuda_device *device, size_t size_bytes, lab_cu_pointer *ret_memory,
                      struct lab_err *err);
void cuda_memory_free(struct cuda_device *device, lab_cu_pointer memory); /* accepts 0 */

/* --- stream.c --- */

int cuda_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                     struct lab_stream **ret_stream, struct lab_err *err);
void cuda_stream_close(struct lab_stream *stream);
int cuda_stream_sync(struct lab_stream *stream, struct lab_err *err);
int cuda_copy_peer(struct lab_stream *stream, struct lab_device *to_device, void *to,
                   const void *from, size_t size_bytes, struct lab_err *err);
int cuda_copy(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
              enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err);
/* A stream of the device's context, a slice's on its own multiprocessors. */
int cuda_stream_create(struct cuda_device *device, int priority, lab_cu_stream *ret_handle,
                       struct lab_err *err);

/* --- event.c --- */

int cuda_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err);
void cuda_event_close(struct lab_event *event);
int cuda_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int cuda_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int cuda_event_sync(struct lab_event *event, struct lab_err *err);
int cuda_event_time(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err);
void cuda_event_drop(struct cuda_event *event); /* gives a reference back */

int cuda_anchor_open(struct cuda_device *device, struct lab_err *err);
void cuda_anchor_close(struct cuda_device *device);
/* Ties the clocks together anew where the last time was long ago. */
int cuda_anchor_refresh(struct cuda_device *device, struct lab_err *err);

/* --- graph.c --- */

int cuda_graph_begin(struct lab_stream *stream, struct lab_err *err);
int cuda_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err);
int cuda_graph_launch(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err);
void cuda_graph_close(struct lab_graph *graph);
/* Keeps the event as long as the graph that is being captured. */
void cuda_graph_mention(struct cuda_graph *graph, struct cuda_event *event, bool record);

/* --- trace.c --- */

int cuda_trace_begin(struct lab_device *device, size_t capacity, struct lab_err *err);
int cuda_trace_end(struct lab_device *device, struct lab_arena *arena, struct lab_trace *ret_trace,
                   struct lab_err *err);

/* --- kernels.c: the ops --- */

/*
 * Enqueues a completed launch whose op is supported; the device's context is current. While the
 * stream's commands are captured nothing may be synchronised.
 */
int cuda_launch(struct cuda_stream *stream, const struct lab_launch *launch, struct lab_err *err);
/* Which of the libraries that kernels and products need isn't here; NULL = all are. */
const char *cuda_lacks(struct lab_arena *arena);
/* On a GPU that knows the dtype at all; see cuda.c for those that don't. */
bool cuda_supports(enum lab_op_id op, enum lab_dtype dtype, int capability);
/*
 * Compiles what the launches need in threads, beside whatever else goes on; they may come without
 * data. What goes wrong shows when it is launched.
 */
void cuda_prepare(struct cuda_device *device, const struct lab_launch *launches, int count);
/* Free what launches left in `kernels`; the context is current and idle. Accept NULL there. */
void cuda_kernels_close(struct cuda_device *device);
void cuda_kernels_stream_close(struct cuda_stream *stream);

/* Of a key of whole 32-bit words without padding. */
static inline uint64_t cuda_hash(const void *key, size_t bytes) {
    uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (size_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, (const char *)key + at, sizeof word);
        hash = (hash ^ word) * 0xd1342543de82ef95ULL;
        hash ^= hash >> 32;
    }
    return hash;
}
