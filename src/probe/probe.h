/*
 * probe.h: a probe reads one part of the machine: GPUs through NVML, CPUs, memory, NUMA nodes,
 * processes, or a recording that is played again.
 *
 * A probe is one file in this folder, named as the probe, that defines `const struct lab_probe
 * lab_probe_<name>`; what a single one needs beside it lies in a folder of its name. Files named
 * probe*.c serve them all.
 *
 * A probe has lanes. What a lane reads may hang without harming others: the sampler gives each lane
 * a thread of its own, and goes on without one that doesn't come back. So a GPU is a lane, and all
 * that comes from /proc and /sys is one.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/machine.h"
#include "model/recording.h"
#include "model/sample.h"

struct lab_gpu_process_table;

/* The sampler's own copy: lives as long as any lane may need it. */
struct lab_probe_setup {
    const struct lab_machine *machine; /* plain data; what acts on a machine doesn't take it */
    const struct lab_clock *clock;
    int64_t interval_ns; /* between ticks */
    /* between readings of GPUs that take milliseconds; 0 = each second. Where it is longer, other
     * costly readings are spared as well */
    int64_t slow_ns;
    int64_t gpm_ns;     /* between GPM samples, at least 100 ms; 0 = half a second */
    const char *root;   /* "" = this machine's /proc and /sys; tests bring a folder that has both */
    bool all_processes; /* list those without a GPU too */
    const int32_t *pids; /* of those without a GPU, these at least; NULL = none */
    int pid_count;
    struct lab_gpu_process_table
        *table; /* the sampler's; NULL = nobody tells of processes on GPUs */
    const struct lab_recording *recording; /* for `replay`; NULL otherwise */
    double speed;                          /* of a replay; 1 = as it was */
};

enum lab_probe_when {
    LAB_PROBE_TICK, /* read what is cheap; of the rest, what is due */
    LAB_PROBE_EDGE, /* read everything: a run begins or ends */
};

/* What a GPU's driver knows of a process; the rest is in /proc, and `process` reads it. */
struct lab_gpu_process {
    int32_t pid;
    int64_t memory_bytes;              /* -1 = unknown */
    double sm_percent, memory_percent; /* NaN = unknown */
    bool compute, graphics;
};

/*
 * What a lane's reading is given to tell what it found. `entity` counts within the lane. Any of
 * them may be called any number of times in a reading.
 */
struct lab_probe_sink {
    /* a new one, or one that came back changed; returns its number within the lane */
    int (*entity)(void *state, const struct lab_entity *entity);
    void (*tick)(void *state, int entity, int64_t time_ns, const int64_t *values,
                 const uint64_t *valid);
    void (*event)(void *state, int entity, enum lab_event_kind kind, int64_t number,
                  const char *text);
    /* who is on a GPU now: replaces what was told of that entity before */
    void (*gpu_processes)(void *state, int entity, const struct lab_gpu_process *items, int count);
    /* whole lists, from `process` and `replay`; gpus[].entity: in a lane that has entities, its own
     * numbers, else the board's */
    void (*processes)(void *state, const struct lab_process_list *list);
    void *state;
};

struct lab_probe {
    const char *name;    /* "nvml" */
    const char *summary; /* one line: what it reads */
    const char *without; /* what can't be seen without it: "GPUs", in a few words */

    /*
     * Looks what is there. LAB_ERR_UNSUPPORTED: nothing of the kind, and why; of a driver,
     * LAB_ERR_SYSTEM: not now, and it is asked again. Must not take longer than a moment, whatever
     * state the hardware is in, save for what the driver's own start takes.
     */
    int (*open)(const struct lab_probe_setup *setup, void **ret_state, struct lab_err *err);
    /* Opening it starts a driver, which may hang: that is done in a thread of its own, which takes
     * no signals, and if it takes long the probe joins those at work later. */
    bool driver;
    void (*close)(void *state); /* no lane is being read any more, or it hangs for good */

    const char *only_lane; /* of a probe with one lane its name; NULL = the next two say */
    int (*lane_count)(void *state);
    /* "GPU 0 (0000:3b:00.0)", for messages; lives as long as the probe */
    const char *(*lane_name)(void *state, int lane);

    /*
     * Tells the lane's entities, before the first reading and after it was opened. One with an
     * entity that isn't there now tells it all the same, as it was last seen. NULL = it has none.
     */
    void (*describe)(void *state, int lane, const struct lab_probe_sink *sink);

    /*
     * One reading, from the lane's own thread. -1 = the lane gives nothing, and why in `err`; it is
     * asked again later, less and less often, and finds its way back by itself.
     */
    int (*read)(void *state, int lane, enum lab_probe_when when, const struct lab_probe_sink *sink,
                struct lab_err *err);

    /*
     * After a reading, from the same thread: when the next tick is worth while. Ticks more than
     * half an interval before that are left out, and so cost nothing; edges are read all the same.
     * NULL = each.
     */
    int64_t (*due)(void *state, int lane);
};

static inline int lab_probe_lane_count(const struct lab_probe *probe, void *state) {
    return probe->only_lane ? 1 : probe->lane_count(state);
}

static inline const char *lab_probe_lane_name(const struct lab_probe *probe, void *state,
                                              int lane) {
    return probe->only_lane ? probe->only_lane : probe->lane_name(state, lane);
}

/* --- the board: what the lanes of GPUs told of processes, for the lane that reads /proc --- */

struct lab_gpu_processes {
    int entity;      /* its number for the sampler's sink */
    int node, index; /* of the GPU */
    bool mig;
    struct lab_gpu_process *items; /* of a GPU that is away: none */
    int count;
};

/* A copy in the arena; any thread. */
int lab_gpu_process_table_read(struct lab_gpu_process_table *table, struct lab_arena *arena,
                               struct lab_gpu_processes **ret_items);

extern const struct lab_probe *const lab_probes[]; /* NULL-terminated, generated */
