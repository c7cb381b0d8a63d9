/*
 * cpu.h: what the files of the cpu backend share. Not seen outside this folder.
 *
 *   cpu.c      the backend, opening and closing      select.c   which devices a selector names
 *   stream.c   streams and their commands            event.c    marks in streams
 *   graph.c    commands kept and replayed            memory.c   buffers on nodes
 *   pool.c     the device's threads, one per core    counter.c  how threads wait for each other
 *   thread.c   a thread bound to its cores           limits.c   what the device can do at best
 *   kernels.c  op → kernel: how its work is cut      simd/      the loops for each instruction set
 *   tune.c     what can be tuned, and what it holds for
 *
 * How it works: each stream is a thread that takes commands from a ring. A copy is done by that
 * thread; a launch by it and by the helpers of the pool, one bound to each core. All waiting, of
 * streams for commands, of streams and the host for streams, of helpers for work, is waiting for a
 * counter to reach a value.
 */
#pragma once

#include "base/cond.h"
#include "device/buffers.h"
#include "device/device.h"
#include "device/trace_log.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* --- kernels: an op is cut into units that any thread may do in any order --- */

struct cpu_scratch { /* one for each thread; grows and stays */
    void *memory;
    size_t size_bytes;
};

/* At least `size_bytes`, 64-aligned, uninitialised; valid until the thread's next call. */
void *cpu_scratch_get(struct cpu_scratch *scratch, size_t size_bytes);

struct cpu_simd; /* the loops for one instruction set: simd/simd.h */

struct cpu_kernel {
    /* how many units, when up to `threads` will work on them */
    int64_t (*units)(const struct lab_launch *launch, int threads);
    /* does units [begin, end); `units` as returned above */
    void (*run)(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                int64_t begin, int64_t end, struct cpu_scratch *scratch);
    /*
     * Instead of these two, for what can't be done in any order: phases, each with its own units,
     * that begin when the one before is done. A phase of one unit is done by the stream's thread at
     * once.
     */
    int (*phases)(const struct lab_launch *launch);
    int64_t (*phase_units)(const struct lab_launch *launch, int phase, int threads);
    void (*phase_run)(const struct lab_launch *launch, const struct cpu_simd *simd, int phase,
                      int threads, int64_t begin, int64_t end, struct cpu_scratch *scratch);
};

/* NULL where the backend lacks that op (a fused one is then lowered). */
const struct cpu_kernel *cpu_kernel_get(enum lab_op_id op, enum lab_dtype dtype);

/* The best instruction set of this CPU, or the one that GPULAB_SIMD=base|avx2|avx512 names. */
const struct cpu_simd *cpu_simd_select(void);
const char *cpu_simd_name(const struct cpu_simd *simd); /* "AVX-512" */

/* Multiply-adds from registers for about `duration_ns`: flops per second of one thread. */
double cpu_simd_peak_flops(const struct cpu_simd *simd, int64_t duration_ns);
/* The same until then; returns the flops done. */
double cpu_simd_flops_until(const struct cpu_simd *simd, int64_t end_ns);

/* --- counter: a number that only grows, and threads that wait for it to reach a value --- */

struct cpu_counter {
    _Atomic uint64_t value;
    _Atomic uint64_t wake_at; /* the smallest value that a sleeper waits for */
    pthread_mutex_t lock;
    pthread_cond_t moved;
};

void cpu_counter_init(struct cpu_counter *counter);
void cpu_counter_release(struct cpu_counter *counter);

/*
 * Adding touches the counter after the new value is visible, so a counter must outlive all threads
 * that add to it, not only the last value waited for.
 */
void cpu_counter_add(struct cpu_counter *counter, uint64_t amount);
/* Returns when the value is at least `target`: looks for it for `spin_ns`, then sleeps. */
void cpu_counter_wait(struct cpu_counter *counter, uint64_t target, int64_t spin_ns);

static inline uint64_t cpu_counter_value(struct cpu_counter *counter) {
    return atomic_load_explicit(&counter->value, memory_order_acquire);
}

/* --- thread --- */

/*
 * Starts a thread that binds itself to `cpus` before it calls `run`; returns when it is bound. The
 * name is cut to the kernel's 15 characters. Signals stay with the program's own threads.
 */
int cpu_thread_start(const struct lab_machine *machine, const struct lab_cpus *cpus,
                     const char *name, void (*run)(void *argument), void *argument,
                     pthread_t *ret_thread, struct lab_err *err);

/* --- pool: the device's threads --- */

struct cpu_pool;

/* Does units [begin, end) of some work. */
typedef void cpu_task(void *context, int64_t begin, int64_t end, struct cpu_scratch *scratch);

struct cpu_work {
    cpu_task *task;
    void *context;
    int64_t units;
    int threads; /* at most so many at once, the caller among them */
};

struct cpu_caller { /* a thread that gives work to the pool; lives as long as the pool */
    struct cpu_scratch scratch;
    struct cpu_counter left; /* helpers that were at work for it and have left */
    uint64_t left_expected;
    int first_core, core_count; /* where it may sit */
    bool copies;                /* rather at their end */
    int home;                   /* the core it is bound to; -1 = all of them */
    int seat;                   /* the core it has for itself at the moment; -1 = none */
};

void cpu_caller_init(struct cpu_caller *caller);
/* For a thread that was just bound to these cores of the device. */
void cpu_caller_place(struct cpu_caller *caller, int first_core, int core_count, bool copies);
void cpu_caller_release(struct cpu_caller *caller);

/*
 * Starts one helper for each CPU, bound to it. The caller of a launch works on a core of its own,
 * any of them, and the helper of that core rests meanwhile. `cpus` outlives the pool.
 */
int cpu_pool_open(const struct lab_machine *machine, const struct lab_cpus *cpus, const char *name,
                  int64_t spin_ns, struct cpu_pool **ret_pool, struct lab_err *err);
void cpu_pool_close(struct cpu_pool *pool); /* accepts NULL; no work may be under way */

/*
 * Takes a free core for the calling thread alone until it rises: helpers keep off that core, at
 * once or after the unit they are at. Where all cores are taken the thread shares its own.
 */
void cpu_pool_sit(struct cpu_pool *pool, struct cpu_caller *caller);
void cpu_pool_rise(struct cpu_pool *pool, struct cpu_caller *caller);

/*
 * Does the work and returns when all of it is done; the caller sits meanwhile. Several callers may
 * be in here at once: their work shares the helpers.
 */
void cpu_pool_run(struct cpu_pool *pool, const struct cpu_work *work, struct cpu_caller *caller);

/* --- the device and what belongs to it --- */

struct cpu_op_count { /* added to by the streams' threads */
    _Atomic int64_t launches, time_ns, flops;
};

struct cpu_device {
    struct lab_device base;
    struct lab_arena arena;
    const struct cpu_simd *simd;
    struct cpu_pool *pool;
    int copy_cores;  /* as set up, at most all cores but one */
    int64_t spin_ns; /* how long a thread looks before it sleeps; none where cores are scarce */
    /* Streams are kept when closed and used again, so that a wait may refer to a closed one. */
    struct cpu_stream **streams;
    int stream_count;
    struct lab_buffers buffers;
    struct cpu_op_count op_counts[LAB_OP_COUNT];
    bool limits_known;
    struct lab_device_limits limits;
};

/* A point in a stream: passed when `done` has reached `position`. stream NULL = always passed. */
struct cpu_point {
    struct cpu_stream *stream;
    uint64_t position;
};

struct cpu_event {
    struct lab_event base;
    _Atomic int references; /* the user's, a graph's for each mention, a pending record's */
    /* the host's side */
    struct cpu_point last; /* where it was recorded last */
    uint64_t recorded;     /* how often */
    /* the streams' side: of the records passed so far the latest by number, not by time */
    pthread_mutex_t lock;
    uint64_t passed;
    int64_t time_ns;
};

/* What a record or wait refers to; fixed when it is enqueued, for a graph when that is launched. */
struct cpu_binding {
    struct cpu_point point; /* wait: for what */
    uint64_t number;        /* record: which recording of its event */
};

enum cpu_command_kind {
    CPU_COPY,
    CPU_LAUNCH,
    CPU_RECORD,
    CPU_WAIT,
    CPU_GRAPH,
    CPU_CALL, /* a function of the backend itself */
    CPU_STOP, /* the stream's thread ends */
};

struct cpu_command {
    enum cpu_command_kind kind;
    uint32_t correlation;    /* with the host's call, in a trace; 0 = not traced */
    struct cpu_event *event; /* record; wait inside a graph */
    struct cpu_binding binding;
    union {
        struct {
            void *to;
            const void *from;
            size_t size_bytes;
            enum lab_memory_kind to_kind, from_kind;
        } copy;
        struct {
            const struct cpu_kernel *kernel;
            struct lab_launch launch;
        } launch;
        struct {
            struct cpu_graph *graph;
            struct cpu_binding *bindings; /* for its records and waits, in order */
        } graph;
        struct {
            void (*function)(struct cpu_stream *stream, void *context);
            void *context;
        } call;
    };
};

struct cpu_graph {
    struct lab_graph base;
    _Atomic int references; /* the user's and each pending launch's */
    struct cpu_command *commands;
    int count;
    int binding_count; /* records and waits among them */
};

#define CPU_RING 512 /* commands that may be pending before the host has to wait */

struct cpu_stream {
    struct lab_stream base;
    bool open;
    int index;
    pthread_t thread;
    struct cpu_command *ring;
    struct cpu_graph *capture; /* what is kept between graph_begin and graph_end */
    uint64_t enqueued;     /* steps: one for each command, for a graph one for each of its own */
    uint64_t posted_count; /* ring slots, as the host knows it */
    struct cpu_counter posted; /* ring slots filled */
    struct cpu_counter taken;  /* ring slots free again */
    struct cpu_counter done;   /* steps done */
    struct cpu_caller caller;
    /* of the command being done, for its trace: the stream's thread's own */
    uint32_t correlation;
    uint64_t graph_node; /* 0 = not from a graph */
};

extern const struct lab_backend lab_backend_cpu;

/* select.c */
int cpu_select(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
               struct lab_device_list *list, const char **ret_why_none, struct lab_err *err);

/* tune.c */
const struct lab_tunable *cpu_tunable(const struct lab_tunable_place *place,
                                      const struct lab_launch *launch);
int cpu_identity(const struct lab_tunable_place *place, struct lab_arena *arena,
                 struct lab_device_identity *ret_identity, struct lab_err *err);

/* limits.c */
int cpu_limits(struct lab_device *device, enum lab_dtype dtype,
               struct lab_device_limits *ret_limits, struct lab_err *err);
double cpu_clock_mhz(struct lab_device *device);
double cpu_core_rate(struct lab_stream *stream, int64_t duration_ns);

/* memory.c */
int cpu_buffer_open(struct lab_device *device, struct lab_buffer *buffer, struct lab_err *err);
void cpu_buffer_close(struct lab_buffer *buffer);
/* Fails unless all of the range is memory of that kind, opened on this device. */
int cpu_memory_check(const struct cpu_device *device, const void *data, size_t size_bytes,
                     enum lab_memory_kind kind, const char *what, struct lab_err *err);

/* stream.c */
int cpu_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err);
void cpu_stream_close(struct lab_stream *stream);
void cpu_stream_free(struct cpu_stream *stream); /* a closed one, with its device */
int cpu_stream_sync(struct lab_stream *stream, struct lab_err *err);
int cpu_copy(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err);
int cpu_launch(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err);

/* A place for the next command, of the ring or of the graph being captured; then `post` it. */
struct cpu_command *cpu_stream_next(struct cpu_stream *stream);
void cpu_stream_post(struct cpu_stream *stream, uint64_t steps);
/* Runs a function on the stream's thread, behind the commands before it. */
void cpu_stream_call(struct cpu_stream *stream,
                     void (*function)(struct cpu_stream *stream, void *context), void *context);
void cpu_stream_do(struct cpu_stream *stream, const struct cpu_command *command,
                   const struct cpu_binding *binding);
void cpu_stream_copy_now(struct cpu_stream *stream, void *to, const void *from, size_t size_bytes);

/* event.c */
int cpu_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err);
void cpu_event_close(struct lab_event *event);
int cpu_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int cpu_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int cpu_event_sync(struct lab_event *event, struct lab_err *err);
int cpu_event_time(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err);
/* The host's half of a record and of a wait, for a command at this position of the stream. */
struct cpu_binding cpu_event_bind(struct cpu_event *event, enum cpu_command_kind kind,
                                  struct cpu_stream *stream, uint64_t position);
void cpu_event_pass(struct cpu_event *event, uint64_t number); /* the stream's half of a record */
void cpu_event_drop(struct cpu_event *event);                  /* gives a reference back */

/* graph.c */
int cpu_graph_begin(struct lab_stream *stream, struct lab_err *err);
int cpu_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err);
int cpu_graph_launch(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err);
void cpu_graph_close(struct lab_graph *graph);
struct cpu_command *cpu_graph_next(struct cpu_graph *graph);
void cpu_graph_replay(struct cpu_stream *stream, struct cpu_graph *graph,
                      struct cpu_binding *bindings);
