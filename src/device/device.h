/*
 * device.h: something that computes: a GPU, a slice of one, a NUMA node's cores, a simulated GPU.
 *
 * The model is CUDA's, because it is what the field thinks in: streams run their commands in order
 * and side by side with other streams; events mark points in a stream, order streams among each
 * other, and carry the time at which they were passed; commands return at once and their failures
 * appear at the next synchronisation. Times are CLOCK_MONOTONIC nanoseconds on every backend.
 *
 * A backend is a folder in src/device with one `const struct lab_backend lab_backend_<folder>`.
 * Slots marked "optional" may be NULL and then mean what stands beside them.
 *
 * A device and what belongs to it is used by one thread at a time; several devices by several
 * threads.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "device/op.h"
#include "model/device_ref.h"
#include "model/sample.h"
#include "model/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- what can be selected --- */

/*
 * A selector names a list of devices: `cpu` (each NUMA node with cores), `cpu:1`, `cpu:0/2` (two
 * slices of node 0's cores), `cpu:0/2.1` (the second of them), several joined by commas, `cpu:0,1`
 * for short. `auto` is the first backend that has devices and lacks nothing to compute on them,
 * GPUs first; what it passes over is a warning in the log. `sim:l40s-10` are the GPUs of a
 * simulated machine, `sim:l40s-10:3` is one of them, `sim:./mine.yaml` are those of a machine in a
 * file; `auto` never takes them.
 *
 * Resolves a selector; the list and its strings live in the arena. Errors are LAB_ERR_USER and name
 * what is there: "cpu:0/9: node 0 has 2 cores, so at most 2 slices".
 */
int lab_device_select(const struct lab_machine *machine, const char *selector,
                      struct lab_arena *arena, struct lab_device_list *ret_list,
                      struct lab_err *err);

/* A word of a selector in full, after the one before it (NULL = the first): the 3 of "cuda:1,3" is
 * "cuda:3". */
const char *lab_device_word(const char *before, const char *word, struct lab_arena *arena);

/* Asks every backend what it has on this machine; returns how many backends there are. */
int lab_device_offers(const struct lab_machine *machine, struct lab_arena *arena,
                      struct lab_device_offer **ret_offers);

/* Only what the selector names, backend by backend; backends without a member are left out. Returns
 * how many there are, or -1. */
int lab_device_offers_selected(const struct lab_machine *machine, const char *selector,
                               struct lab_arena *arena, struct lab_device_offer **ret_offers,
                               struct lab_err *err);

/* --- life --- */

struct lab_device_setup {
    /*
     * Cores that compute leaves to copies, on devices where both share them: -1 = as many as copies
     * are busy with at the time, 0 = none, n = always n. GPUs have copy engines and ignore it.
     */
    int copy_cores;
    /* What follows is for simulated devices, which can't find it out; others ignore it. */
    int host_node;    /* where the thread that uses it is bound; -1 = on the device's */
    int gang;         /* devices of this machine that this process will open, to be used at
                                     the same time by a thread each; 0 = this one alone */
    uint64_t seed;    /* of this run's chance */
    int64_t start_ns; /* what its clock begins with; 0 = with this machine's time */
    const _Atomic(bool) *stopped; /* once true, nobody waits for others of the gang; may be NULL */
    const char *disturb;          /* a neighbour on purpose: pcie, membw, sm, power; NULL = none */
};

#define LAB_DEVICE_SETUP ((struct lab_device_setup){.copy_cores = -1, .host_node = -1})

struct lab_device_info {
    int compute_units;           /* cores or multiprocessors */
    const char *arithmetic;      /* "AVX-512, OpenBLAS SkylakeX kernels" */
    bool overlaps;               /* copies can run beside compute */
    const char *overlap_why_not; /* "one core does both" */
    int64_t memory_bytes;        /* usable */
};

/* What the device can do at best, measured by small loops of its own; 0 = unknown. */
struct lab_device_limits {
    double flops_per_s;        /* in the dtype asked for */
    double memory_bytes_per_s; /* device memory, read + written */
    double h2d_bytes_per_s,
        d2h_bytes_per_s; /* one copy stream, pinned host memory on the device's node */
    const char *how;     /* one line: how they were found */
};

struct lab_device { /* backends embed this as their first member */
    const struct lab_device_ops *ops;
    struct lab_device_ref ref;
    struct lab_device_info info;
    const struct lab_machine *machine; /* outlives the device */
    const struct lab_clock *clock;
    int64_t buffer_bytes, buffer_bytes_most; /* device memory in buffers: now, and at most so far */
    bool kept;                               /* by lab_device_keep */
    struct lab_trace_log
        *trace_log; /* device/trace_log.h; NULL = nobody asked for one; changes only
                                      * while streams are idle */
};

struct lab_stream;
struct lab_event;
struct lab_graph;

int lab_device_open(const struct lab_machine *machine, const struct lab_device_ref *ref,
                    struct lab_device_setup setup, struct lab_device **ret_device,
                    struct lab_err *err);
void lab_device_close(struct lab_device *device); /* accepts NULL; all it gave out must be closed */
/* Another rank that doesn't answer may still use what this one gave out: when it is closed it stays
 * as it is, memory and all, until the process ends. */
void lab_device_keep(struct lab_device *device);

/* Measured at the first call, then remembered. Takes up to a second. */
int lab_device_limits(struct lab_device *device, enum lab_dtype dtype,
                      struct lab_device_limits *ret_limits, struct lab_err *err);

/* How fast its clock runs now, in MHz; 0 = unknown. Takes some microseconds. */
double lab_device_clock_mhz(struct lab_device *device);
/* What differed from a real machine where batches were trained on several devices, a share each: a
 * clause; NULL = nothing. */
const char *lab_device_share_note(const struct lab_device *device);
/* What it draws now, in W; of a slice, what the whole of it does. 0 = unknown. */
double lab_device_power_w(struct lab_device *device);
/* What it has used since some moment before it was opened, in J; of a slice, what the whole of it
 * has. 0 = unknown. Takes some milliseconds; drivers renew the value about ten times a second. */
double lab_device_energy_j(struct lab_device *device);

/* What an op took on a device, summed over its launches. */
struct lab_op_time {
    int64_t launches, time_ns;
    double flops;
};

/* Since the device was opened, by op; all zero where the backend doesn't count. Streams are
 * idle. */
void lab_device_op_times(const struct lab_device *device,
                         struct lab_op_time ret_times[LAB_OP_COUNT]);

/* --- memory --- */

enum lab_memory_kind {
    LAB_MEMORY_DEVICE,        /* on the device; its own node for a CPU */
    LAB_MEMORY_HOST_PINNED,   /* page-locked on `node`: copies are asynchronous and fast */
    LAB_MEMORY_HOST_PAGEABLE, /* on `node`, ordinary */
};

struct lab_buffer {
    void *data;
    size_t size_bytes;
    enum lab_memory_kind kind;
    int node; /* host kinds: where it was asked to be; -1 = anywhere */
    struct lab_device *device;
};

/* Too little memory is LAB_ERR_MEMORY and names the size asked for and what is free. */
int lab_buffer_open(struct lab_device *device, enum lab_memory_kind kind, int node,
                    size_t size_bytes, struct lab_buffer *ret_buffer, struct lab_err *err);
/* Waits for the device's pending commands, which may use it; accepts a zeroed or closed one. */
void lab_buffer_close(struct lab_buffer *buffer);

/* --- streams --- */

enum lab_stream_kind {
    LAB_STREAM_COMPUTE,
    LAB_STREAM_COPY, /* a hint: mostly copies */
};

int lab_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err);
void lab_stream_close(struct lab_stream *stream); /* waits for its commands; accepts NULL */

/* Waits until all commands are done; returns the first failure since the last call. */
int lab_stream_sync(struct lab_stream *stream, struct lab_err *err);

/* The compute rate that all of the device's cores reach together, in FLOP/s: multiply-adds out of
 * registers for so long, independent of memory. Waits for it. 0 = unknown (GPUs). */
double lab_stream_core_rate(struct lab_stream *stream, int64_t duration_ns);

/*
 * Copies between any two memories of this device; any memory of the program will do as pageable
 * host memory. The direction follows from the kinds.
 */
int lab_copy(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err);

/*
 * Copies from memory of the stream's device to that of another one of its backend, directly.
 * LAB_ERR_UNSUPPORTED where the two can't reach each other, or the backend has no such copies.
 */
int lab_copy_peer(struct lab_stream *stream, struct lab_device *to_device, void *to,
                  const void *from, size_t size_bytes, struct lab_err *err);

/* Checks and completes the launch, lowers a fused op that the backend lacks, and enqueues it. */
int lab_launch(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err);

/*
 * Says what will be launched soon, so that a device that compiles its kernels does it for all of
 * them at once, beside other work. The launches may come without data. Never fails: what goes wrong
 * shows when it is launched.
 */
void lab_prepare(struct lab_device *device, const struct lab_launch *launches, int count);

/* --- events --- */

/*
 * As in CUDA: a wait means the event's last recording enqueued before the wait, whatever is
 * recorded later; an event that was never recorded holds nobody. An event may be closed while
 * recordings of it are pending.
 */
int lab_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err);
void lab_event_close(struct lab_event *event); /* accepts NULL */
int lab_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
/* The event may be that of another device of the same backend, outside of graphs: its owner's
 * thread must neither record nor close it meanwhile, and keep its device open until the wait is
 * over. */
int lab_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
/* Waits on the host. An event that was never recorded counts as passed. */
int lab_event_sync(struct lab_event *event, struct lab_err *err);
/* When its last recording was passed; waits for it first. Never recorded: an error. */
int lab_event_time(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err);

/* --- graphs --- */

/*
 * Between begin and end the stream's commands (copies, launches, records, waits) are kept instead
 * of run; the graph then replays them as one command. Addresses are fixed at capture. Events
 * recorded or waited for inside work across streams as outside: they count as enqueued when the
 * graph is launched. A graph may be closed while launches of it are pending.
 */
int lab_graph_begin(struct lab_stream *stream, struct lab_err *err);
int lab_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err);
int lab_graph_launch(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err);
void lab_graph_close(struct lab_graph *graph); /* accepts NULL */

/* --- tracing --- */

/*
 * From here on the device keeps a record of each command, in room for `capacity` of them; what
 * finds none is counted. Streams are idle now and at the end. LAB_ERR_UNSUPPORTED where the device
 * can't be traced, or nobody here may do it; the text says which.
 */
int lab_device_trace_begin(struct lab_device *device, size_t capacity, struct lab_err *err);
/*
 * Stops, also if it fails, and hands over the kernels, copies, fills and calls that were recorded,
 * the device, and a note of where they come from; in the arena, in order of start. No ranges.
 */
int lab_device_trace_end(struct lab_device *device, struct lab_arena *arena,
                         struct lab_trace *ret_trace, struct lab_err *err);

/* --- simulated devices --- */

/*
 * Around a wait for other threads that isn't the device's own, such as a barrier of ranks. A
 * simulated device's time stands still until every thread of its gang waits; one that rests counts
 * as waiting. All that rest wake together: whoever rests must be released by the same thing as the
 * others.
 */
void lab_device_rest(struct lab_device *device); /* accept NULL; nothing on real devices */
void lab_device_wake(struct lab_device *device);

/*
 * What a sampler would have seen so far of the simulated machine, since the last call: entities
 * with `simulated` set, each told anew before its first tick, under the same number; no events, no
 * processes. Values of a tick are all valid. From any thread of its gang. Nothing on real devices,
 * whom a real sampler watches.
 */
void lab_device_samples(struct lab_device *device, const struct lab_sink_samples *sink);

/* Folders whose machine/NAME.yaml describe machines, strongest first, in front of those built in;
 * NULL-terminated, copied. NULL, and until they are set: the user's own folder of configs. */
void lab_device_set_folders(const char *const *folders);
/* From here on `name` in a selector means this text, whatever files there are. */
void lab_device_define(const char *name, const char *definition);
/* Names of the machines that the folders and the program hold, NULL-terminated, with a line about
 * each. */
int lab_device_definitions(struct lab_arena *arena, const char *const **ret_names,
                           const char *const **ret_titles);

/* --- backends --- */

struct lab_sum_kind; /* device/sum.h */
struct lab_tunable;  /* device/tunable.h */
struct lab_tunable_place;
struct lab_device_identity;
struct lab_health; /* device/health.h */

struct lab_backend {
    const char *name;
    const char *help; /* one line for `gpulab help devices` */
    int rank;         /* `auto` takes the smallest that has devices; negative = never */
    /*
     * Appends the members that `rest` names: the selector behind the backend's name, e.g. "", ":0",
     * ":0/2.1". With rest "" no devices at all is no error: `ret_why_none` says why.
     */
    int (*select)(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
                  struct lab_device_list *list, const char **ret_why_none, struct lab_err *err);
    int (*open)(const struct lab_machine *machine, const struct lab_device_ref *ref,
                struct lab_device_setup setup, struct lab_device **ret_device, struct lab_err *err);
    /* optional: as lab_device_why_together, of a slice or a simulated device; NULL = separate
     * processes do as well */
    const char *(*why_together)(struct lab_arena *arena);
    /* optional: as lab_device_lacks; NULL = nothing further is needed */
    const char *(*lacks)(struct lab_arena *arena);
    /* optional: as lab_tunable_find (tunable.h); NULL = nothing of it can be tuned */
    const struct lab_tunable *(*tunable)(const struct lab_tunable_place *place,
                                         const struct lab_launch *launch);
    /* optional: as lab_device_identity (tunable.h); NULL = its description says it all */
    int (*identity)(const struct lab_tunable_place *place, struct lab_arena *arena,
                    struct lab_device_identity *ret_identity, struct lab_err *err);
    /* optional: as lab_device_health (health.h), of this backend's members; NULL = nothing is known
     */
    int (*health)(const struct lab_machine *machine, const struct lab_device_list *devices,
                  struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err);
    /* optional: ways to sum over several of its devices, NULL-terminated (sum.h); NULL = through
     * host memory alone */
    const struct lab_sum_kind *const *sums;
};

/*
 * Why slices of one device, or devices of one simulated machine, can't run side by side in separate
 * processes, or NULL where they can: in the arena.
 */
const char *lab_device_why_together(const struct lab_device_ref *ref, struct lab_arena *arena);

/*
 * What computing on the device needs and isn't here, with where it comes from, or NULL where
 * nothing is missing: in the arena. Copies do without.
 */
const char *lab_device_lacks(const struct lab_device_ref *ref, struct lab_arena *arena);

extern const struct lab_backend *const lab_backends[]; /* NULL-terminated, generated */
/* By name, as lab_device_ref has it; NULL = there is none. */
const struct lab_backend *lab_backend_find(const char *name);

/* Reads ":UNIT[/SLICES[.SLICE]]"; -1 marks what isn't given. Backends that use numbers share it. */
struct lab_device_part {
    int unit, slices, slice;
};
int lab_device_parse_part(const char *backend, const char *rest, struct lab_device_part *ret_part,
                          struct lab_err *err);
/* With a name, description, physical name, UUID and CPUs of its own, in the arena. */
struct lab_device_ref lab_device_ref_copy(const struct lab_device_ref *ref,
                                          struct lab_arena *arena);
struct lab_device_ref *lab_device_list_add(struct lab_device_list *list, struct lab_arena *arena);

/* The slots behind the functions above, with the same meaning. */
struct lab_device_ops {
    void (*close)(struct lab_device *device);
    void (*leave)(struct lab_device *device); /* optional: nothing; instead, where it is kept */
    int (*limits)(struct lab_device *device, enum lab_dtype dtype,
                  struct lab_device_limits *ret_limits,
                  struct lab_err *err); /* optional: all unknown */

    void (*op_times)(const struct lab_device *device,
                     struct lab_op_time ret_times[LAB_OP_COUNT]);        /* optional: all zero */
    double (*clock_mhz)(struct lab_device *device);                      /* optional: unknown */
    double (*power_w)(struct lab_device *device);                        /* optional: unknown */
    double (*energy_j)(struct lab_device *device);                       /* optional: unknown */
    double (*core_rate)(struct lab_stream *stream, int64_t duration_ns); /* optional: unknown */
    const char *(*share_note)(const struct lab_device *device);          /* optional: nothing */

    int (*buffer_open)(struct lab_device *device, struct lab_buffer *buffer, struct lab_err *err);
    void (*buffer_close)(struct lab_buffer *buffer);

    int (*stream_open)(struct lab_device *device, enum lab_stream_kind kind,
                       struct lab_stream **ret_stream, struct lab_err *err);
    void (*stream_close)(struct lab_stream *stream);
    int (*stream_sync)(struct lab_stream *stream, struct lab_err *err);
    int (*copy)(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
                enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err);
    int (*copy_peer)(struct lab_stream *stream, struct lab_device *to_device, void *to,
                     const void *from, size_t size_bytes,
                     struct lab_err *err); /* optional: unsupported */
    /* `launch` is completed and its op supported; copied if needed later */
    int (*launch)(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err);
    bool (*supports)(const struct lab_device *device, enum lab_op_id op,
                     enum lab_dtype dtype); /* optional: every op in fp32 */

    void (*prepare)(struct lab_device *device, const struct lab_launch *launches,
                    int count); /* optional: nothing */

    int (*event_open)(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err);
    void (*event_close)(struct lab_event *event);
    int (*event_record)(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
    int (*event_wait)(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
    int (*event_sync)(struct lab_event *event, struct lab_err *err);
    int (*event_time)(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err);

    /* optional, all four or none: none = lab_graph_begin fails with LAB_ERR_UNSUPPORTED */
    int (*graph_begin)(struct lab_stream *stream, struct lab_err *err);
    int (*graph_end)(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err);
    int (*graph_launch)(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err);
    void (*graph_close)(struct lab_graph *graph);

    /* optional, both or none: none = lab_device_trace_begin fails with LAB_ERR_UNSUPPORTED */
    int (*trace_begin)(struct lab_device *device, size_t capacity, struct lab_err *err);
    int (*trace_end)(struct lab_device *device, struct lab_arena *arena,
                     struct lab_trace *ret_trace, struct lab_err *err);

    void (*rest)(struct lab_device *device); /* optional, both or none: nothing */
    void (*wake)(struct lab_device *device);
    void (*samples)(struct lab_device *device,
                    const struct lab_sink_samples *sink); /* optional: nothing */
};

/* Backends embed these as their first member. */
struct lab_stream {
    struct lab_device *device;
    enum lab_stream_kind kind;
    bool capturing;
};
struct lab_event {
    struct lab_device *device;
};
struct lab_graph {
    struct lab_device *device;
};
