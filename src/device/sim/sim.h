/*
 * sim.h: what the files of the sim backend share. Not seen outside this folder.
 *
 *   sim.c       the backend, opening and closing     select.c    which devices a selector names
 *   find.c      where descriptions come from         describe*.c a description, read from YAML
 *   machine.c   the description as a lab_machine     route.c     which links a copy crosses
 *   world.c     hosts that wait for each other       engine.c    from event to event
 *   flow.c      links shared by who crosses them     noise.c     chance: four kinds of it
 *   power.c     power, heat and clocks               sample.c    what a sampler would have seen
 *   stream.c    commands, copies, launches           event.c     marks in streams
 *   graph.c     commands kept and replayed           memory.c    buffers without content
 *   framework.c the host's part of a training step   faults.c  what a health check looks for
 *
 * How it works. Nothing is computed and nothing is copied: a command is priced. A world is one
 * machine for the length of one run: its GPUs that are in use, its links, its chance. A host is a
 * thread that uses one GPU of it (a rank); it has a clock of its own, moved on by what its calls
 * cost. Calls only put commands into queues, with the time at which they were made. When a host has
 * to wait for the device, and every other host of the world waits, rests or has left, whoever came
 * last moves the world from event to event until one of the waits is over. That host goes on, at
 * that time, and the world stands still until it waits again.
 *
 * So no event is ever handled before a command that could come earlier, whatever the threads' real
 * speed: the same seed gives the same times, to the nanosecond. A host that waits for others
 * elsewhere (a barrier of ranks) rests meanwhile, or the world would wait for it; all that rest
 * wake together, at the latest one's time.
 *
 * The formulas here are shared with nobody: what analyses find is found from times alone.
 */
#pragma once

#include "base/cond.h"
#include "base/option.h"
#include "device/buffers.h"
#include "device/device.h"
#include "device/trace_log.h"
#include "model/sample.h"

#include <stdatomic.h>

/* --- a machine's description: conf/machine/NAME.yaml; docs/SIMULATOR.md lists the keys --- */

#define SIM_NODES_MAX   64
#define SIM_LINKS_MAX   512
#define SIM_GPUS_MAX    64
#define SIM_PATH_MAX    12 /* links between a GPU and its node, or between two nodes */
#define SIM_DTYPES      4
#define SIM_REMOTES_MAX 16

struct sim_node {
    int64_t number, package, cores;
    double memory_gb, bandwidth_gb_s;
};

struct sim_link { /* each direction has the whole bandwidth; memory shares it between both */
    const char *name;
    struct lab_option_ints joins; /* two nodes' numbers; none = it lies on GPUs' paths */
    double bandwidth_gb_s, latency_us;
    bool both; /* one bandwidth for both directions together */
};

struct sim_power {
    double idle_w, compute_w, memory_w; /* compute and memory: on top of idle, at full load */
    double limit_w;
};

struct sim_heat {
    double ambient_c, c_per_w, time_s; /* where it tends to: ambient + power · c_per_w; how fast */
    double throttle_c;
};

struct sim_model { /* of a GPU */
    const char *key, *name;
    int64_t units, copy_engines, pcie_generation, pcie_lanes;
    double memory_gb;
    double tflops[SIM_DTYPES]; /* reached by large kernels; 0 = can't compute in it */
    double memory_gb_s;
    double kernel_us, graph_kernel_us;        /* a kernel takes so long, whatever it does */
    double launch_us, graph_us, copy_us;      /* the host's part of a launch, a graph, a copy */
    double call_us, sync_us;                  /* of any other call; of a wait, after its end */
    double capture_us, first_us;              /* for each node of a captured graph; for the first
                                                launch of each operation */
    double slot_gb_s, slot_us, pageable_gb_s; /* its own place on the bus */
    double nvlink_gb_s;                       /* to each other GPU that has them; 0 = it has none */
    int64_t nvlinks;
    double nvlink_us; /* of a step of an all-reduce's ring */
    double clock_mhz, clock_min_mhz;
    struct sim_power power;
    struct sim_heat heat;
};

struct sim_fault {             /* planted: of one GPU, as `gpulab check` looks for it */
    int64_t width, generation; /* of its PCIe link; 0 = as the model has it */
    int64_t node;              /* number of the NUMA node that it claims; -1 = its own */
    double limit_w;            /* its power cap; 0 = none */
    double default_limit_w;    /* the model's own limit, where it is capped */
    uint64_t dead;             /* bit n: NVLink to GPU n shows active, and carries nothing */
    int64_t xid;               /* in the kernel log; 0 = none */
    int64_t ecc_corrected, ecc_uncorrected, rows_pending, rows_failed;
};

struct sim_gpu {
    const struct sim_model *model;
    int node;                           /* index */
    int path[SIM_PATH_MAX], path_count; /* links from the GPU's slot to its node */
    /* planted */
    double slow_compute, slow_copy; /* 0.05 = takes 5 % longer */
    double drift_per_minute;
    struct sim_fault fault;
};

struct sim_pair {
    double compute, copy;
};

struct sim_noise {           /* relative, standard deviations of logarithms */
    struct sim_pair between; /* a run's own factor */
    struct sim_pair within;  /* autocorrelated, forgotten within `within_s` */
    struct sim_pair each;    /* of each command by itself */
    double within_s;
    double tail_per_s, tail_us, tail_shape, tail_most_us; /* stalls: Pareto */
    double drift_per_minute;                              /* a run's own slope */
};

struct sim_remote { /* planted: how much longer a copy of this size takes from the farthest node */
    double size_kb, slowdown;
};

struct sim_neighbour { /* planted: somebody who comes and goes */
    bool there;
    int64_t node;
    double gb_s, cpu, on_s, off_s;
    int links[SIM_PATH_MAX], link_count;
};

struct sim_framework {   /* the host's time for a step of training; all 0 = its calls alone count */
    double layer_us;     /* for each layer, in each of forward, backward and update */
    double parameter_ns; /* for each parameter that is updated */
    double gflops;       /* at which it gets through a batch's arithmetic; 0 = of no account */
    bool whole_batch;    /* the whole batch's, for each device that computes a share of it */
    double sum_layer_us; /* for each layer whose gradients are summed over devices */
    double sum_gb_s;     /* at which it moves gradients, down and up again; 0 = of no account */
};

struct sim_machine {
    const char *name;  /* as selectors have it: "l40s-10", "./mine.yaml" */
    const char *title; /* "10 × L40S on 4 nodes" */
    const char *cpu;
    const char *definition; /* the whole text */
    struct sim_node *nodes;
    int node_count;
    int *distances;
    struct sim_link
        *links; /* described ones, then a memory of each node, then a slot of each GPU */
    int link_count, described_count;
    struct sim_gpu *gpus;
    int gpu_count;
    struct sim_noise noise;
    struct sim_remote remotes[SIM_REMOTES_MAX];
    int remote_count;
    struct sim_neighbour neighbour;
    int64_t unbound_node; /* number, of threads that nothing binds; -1 = the local one */
    struct sim_framework framework;
    struct lab_machine *shown; /* the same as others see it */
};

/* One that was defined, or a file, or one of the search path; LAB_ERR_USER names what there is. */
int sim_find(const char *name, struct lab_arena *arena, const char **ret_text, size_t *ret_length,
             const char **ret_origin, struct lab_err *err);
/* All in the arena. Errors are "file:line: …". */
int sim_describe(const char *name, const char *text, size_t length, const char *origin,
                 struct lab_arena *arena, struct sim_machine **ret_machine, struct lab_err *err);
/* What is planted for `gpulab check`: the effects' lists link, power_cap, dead_nvlink, errors and
 * wrong_node (faults.c). After GPUs and their slots. */
struct sim_reader;
int sim_read_faults(const struct sim_reader *reader, const struct lab_value *effects);
int sim_health(const struct lab_machine *here, const struct lab_device_list *devices,
               struct lab_arena *arena, struct lab_health *ret_health, struct lab_err *err);

int sim_shown_node(const struct sim_machine *machine, const struct sim_gpu *gpu); /* index */
struct lab_machine *sim_show(const struct sim_machine *machine, struct lab_arena *arena);

/* --- routes --- */

struct sim_hop {
    int link, way; /* way 0: towards GPUs, or from joins[0] to joins[1] */
};
struct sim_route {
    struct sim_hop hops[2 * SIM_PATH_MAX + 2];
    int count;
    double latency_s;
    int distance; /* between the nodes; 10 = local */
};

/* Between memory of a node (index) and a GPU. -1: no links join the two nodes. */
int sim_route(const struct sim_machine *machine, int node, int gpu, bool to_gpu,
              struct sim_route *ret_route);
int sim_memory_link(const struct sim_machine *machine, int node);
int sim_slot_link(const struct sim_machine *machine, int gpu);

/* --- flows: bytes on their way --- */

struct sim_flow {
    bool active;
    double bytes_left, bytes_per_s;
    double most_bytes_per_s; /* of its own accord; INFINITY = as much as links give */
    const struct sim_route *route;
};

/* Max-min fair: every flow gets as much as it can without taking from one that has less. */
void sim_flow_share(const struct sim_machine *machine, struct sim_flow *const *flows, int count);

/* --- chance --- */

struct sim_chance { /* of one GPU in one run */
    uint64_t seed, drawn;
    double run_compute, run_copy; /* factors of this run */
    double now_compute, now_copy; /* autocorrelated parts, as logarithms */
    int64_t compute_ns, copy_ns;  /* when these were drawn */
    double slope_per_minute;
    int64_t start_ns, stall_ns, asked_ns; /* next stall; last command */
};

void sim_chance_init(struct sim_chance *chance, const struct sim_noise *noise, uint64_t seed,
                     int64_t start_ns);
/* By how much a command that starts now takes longer (> 1) or shorter. */
double sim_chance_factor(struct sim_chance *chance, const struct sim_noise *noise, bool copy,
                         int64_t now_ns);
/* How long it is held up besides. */
double sim_chance_stall_s(struct sim_chance *chance, const struct sim_noise *noise, int64_t now_ns);
double sim_random_normal(uint64_t seed, uint64_t *drawn);
double sim_random_exponential(uint64_t seed, uint64_t *drawn, double mean);

/* --- power, heat, clocks --- */

struct sim_condition { /* of one GPU */
    double temperature_c, clock_mhz, power_w;
    double energy_j;
    uint64_t reasons; /* bits of lab_clock_reasons */
};

void sim_condition_init(struct sim_condition *condition, const struct sim_model *model);
/* Watts at this load (shares of the time, at full clocks) and clock. */
double sim_power_w(const struct sim_model *model, double compute, double memory, double clock_mhz);
/* After `time_s` at a mean power and load: temperature, clocks for the next stretch, why. */
void sim_condition_step(struct sim_condition *condition, const struct sim_model *model,
                        double time_s, double power_w, double load);

/* --- the device and what belongs to it --- */

struct
    sim_point { /* passed when the stream has done so many commands. stream NULL: always passed */
    struct sim_stream *stream;
    uint64_t position;
};

struct sim_event {
    struct lab_event base;
    int references; /* the user's, a graph's for each mention, a pending record's */
    struct sim_point last;
    uint64_t recorded, passed; /* numbers of recordings */
    int64_t time_ns;
};

enum sim_command_kind { SIM_COPY, SIM_LAUNCH, SIM_RECORD, SIM_WAIT };

struct sim_command {
    enum sim_command_kind kind;
    int64_t issue_ns; /* the host's time: not before */
    uint32_t correlation;
    uint64_t graph_node; /* 0 = not from a graph */
    union {
        struct {
            double bytes;
            int node;                /* index of the host's side */
            double peer_bytes_per_s; /* to another GPU; 0 = it goes to none */
            double fixed_s;          /* beside its links' latencies */
            enum lab_memory_kind to_kind, from_kind;
        } copy;
        struct {
            enum lab_op_id op;
            enum lab_dtype dtype;
            struct lab_cost cost;
        } launch;
        struct {
            struct sim_event *event;
            uint64_t number;        /* record: which recording */
            struct sim_point point; /* wait: for what */
        } mark;
    };
};

struct sim_graph {
    struct lab_graph base;
    struct sim_command *commands;
    int count;
};

enum sim_busy { SIM_IDLE, SIM_WAITING, SIM_COMPUTING, SIM_STARTING, SIM_FLOWING };

struct sim_stream {
    struct lab_stream base;
    struct sim_device *device;
    bool open;
    int index;
    struct sim_command *queue; /* a ring */
    size_t head, count, capacity;
    uint64_t enqueued, done;
    struct sim_graph *capture;
    /* of the command at the head */
    enum sim_busy busy;
    int64_t ready_ns, start_ns, end_ns; /* end: of computing, or of a copy's start */
    double compute, memory;             /* shares of full load while it computes */
    bool to_device, from_device;        /* copies */
    struct sim_flow flow;
    struct sim_route route;
};

struct sim_load { /* since the last tick */
    double busy_s, compute_s, memory_s, energy_j;
    double to_bytes, from_bytes;
};

enum sim_host_state {
    SIM_HOST_RUNNING, /* its thread is at work outside: nothing may happen before its time */
    SIM_HOST_BLOCKED, /* waits for `wait` */
    SIM_HOST_RESTING,
    SIM_HOST_GONE,
};

struct sim_host {
    enum sim_host_state state;
    int64_t time_ns;
    struct sim_point wait;
};

struct sim_device {
    struct lab_device base;
    struct lab_arena arena;
    const struct sim_machine *machine; /* the world's */
    const struct sim_gpu *gpu;
    int unit;
    int host_node; /* index: where the host's thread is bound */
    struct sim_world *world;
    struct sim_host host;
    struct lab_clock clock;
    double far_s; /* that a call takes longer because the host's thread sits on another node */
    struct sim_stream **streams; /* kept when closed, so that a wait may refer to a closed one */
    int stream_count;
    int computing, copies_to, copies_from; /* under way */
    struct lab_buffers buffers;
    _Atomic(int64_t) memory_used; /* its own rank writes it, whoever samples reads it */
    bool used_op[LAB_OP_COUNT];
    struct lab_op_time op_times[LAB_OP_COUNT];
    struct sim_chance chance;
    struct sim_chance host_chance; /* of the host's own time: never asked by the engine */
    double owed_s;                 /* the host's time for sums that haven't begun */
    bool whole_batch;              /* a share of a batch has taken as long as the whole */
    struct sim_condition condition;
    struct sim_load load;
    double to_bytes, from_bytes; /* in all */
};

/* --- the world --- */

struct sim_rows; /* sample.c's */

struct sim_world {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct sim_world *next; /* of all that there are */
    struct lab_arena arena; /* the machine's */
    const struct sim_machine *machine;
    int expected;                             /* hosts that will come, in all */
    int joined;                               /* have come, gone ones included */
    struct sim_device *devices[SIM_GPUS_MAX]; /* ascending by unit; those that are here */
    int device_count;
    int64_t start_ns, time_ns, tick_ns, last_tick_ns;
    uint64_t seed;
    struct sim_flow neighbour;
    struct sim_route neighbour_route;
    uint64_t neighbour_seed, neighbour_drawn;
    int64_t neighbour_ns;             /* when it comes or goes next */
    double neighbour_s;               /* that it was there since the last tick */
    int64_t node_used[SIM_NODES_MAX]; /* bytes */
    struct sim_rows *rows;
    const atomic_bool *stopped;
    /* a neighbour on purpose: how much longer kernels take for it; watts that it draws on each
     * GPU */
    double longer_compute, longer_memory, extra_w;
};

/*
 * Takes the device (its `unit` and `base.ref` are set) into the world of its gang, or into one of
 * its own. Devices of a gang come in any order and from any thread. Fails on a bad definition.
 */
int sim_world_join(struct sim_device *device, const struct lab_device_setup *setup,
                   struct lab_err *err);
void sim_world_leave(struct sim_device *device);
/* Waits, in the world's time, until the point is passed. Fails where the world was stopped. */
int sim_world_wait(struct sim_device *device, struct sim_point point, struct lab_err *err);
void sim_world_rest(struct lab_device *device);
void sim_world_wake(struct lab_device *device);

/* The host's call took so long. */
static inline void sim_host_spend(struct sim_device *device, double seconds) {
    device->host.time_ns += (int64_t)(seconds * 1e9 + 0.5);
}

/* --- the engine --- */

/* Moves the world on until a blocked host can go on; false = nothing can ever happen any more. */
bool sim_engine_run(struct sim_world *world);
bool sim_point_is_passed(struct sim_point point);

/* --- samples --- */

void sim_sample_init(struct sim_world *world);
void sim_sample_release(struct sim_world *world);
/* The world has reached a tick: conditions go on, a row is kept of everything. */
void sim_sample_tick(struct sim_world *world);
void sim_samples(struct lab_device *device, const struct lab_sink_samples *sink);

/* --- a framework's host --- */

/* The host gets through a launch of training; nothing where the machine's description has no
 * framework. */
void sim_framework_launch(struct sim_device *device, const struct lab_launch *launch);
/* Devices wait for each other: the sums that are due begin. */
void sim_framework_sum(struct sim_device *device);

/* --- slots --- */

int sim_select(const struct lab_machine *machine, const char *rest, struct lab_arena *arena,
               struct lab_device_list *list, const char **ret_why_none, struct lab_err *err);

int sim_buffer_open(struct lab_device *device, struct lab_buffer *buffer, struct lab_err *err);
void sim_buffer_close(struct lab_buffer *buffer);
/* The span that holds all of the range, of that kind; NULL and an error. Pageable memory may be
 * any. */
int sim_memory_check(const struct sim_device *device, const void *data, size_t size_bytes,
                     enum lab_memory_kind kind, const char *what, int *ret_node,
                     struct lab_err *err);

int sim_stream_open(struct lab_device *device, enum lab_stream_kind kind,
                    struct lab_stream **ret_stream, struct lab_err *err);
void sim_stream_close(struct lab_stream *stream);
void sim_stream_free(struct sim_stream *stream);
int sim_stream_sync(struct lab_stream *stream, struct lab_err *err);
/* Waits for all of the device's commands; failures can't be told here. */
void sim_stream_settle(struct sim_device *device);
int sim_copy(struct lab_stream *stream, void *to, const void *from, size_t size_bytes,
             enum lab_memory_kind to_kind, enum lab_memory_kind from_kind, struct lab_err *err);
int sim_copy_peer(struct lab_stream *stream, struct lab_device *to_device, void *to,
                  const void *from, size_t size_bytes, struct lab_err *err);
/* A copy to another GPU, at this rate and with so much beside its bytes. */
void sim_copy_between(struct lab_stream *stream, double bytes, double fixed_s, double bytes_per_s);
/* Over NVLink where both have it and it carries anything, else over both slots. */
double sim_peer_bytes_per_s(const struct sim_machine *machine, int from, int to);
extern const struct lab_sum_kind sim_sum_nvlink;
int sim_launch(struct lab_stream *stream, const struct lab_launch *launch, struct lab_err *err);
/* A place behind the stream's last command, or in the graph that is being captured. */
struct sim_command *sim_stream_add(struct sim_stream *stream, enum sim_command_kind kind);

int sim_event_open(struct lab_device *device, struct lab_event **ret_event, struct lab_err *err);
void sim_event_close(struct lab_event *event);
int sim_event_record(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int sim_event_wait(struct lab_event *event, struct lab_stream *stream, struct lab_err *err);
int sim_event_sync(struct lab_event *event, struct lab_err *err);
int sim_event_time(struct lab_event *event, int64_t *ret_time_ns, struct lab_err *err);
/* The host's half of a record or wait, for a command at this position; the engine's of a record. */
void sim_event_bind(struct sim_command *command, struct sim_stream *stream, uint64_t position);
void sim_event_pass(struct sim_event *event, uint64_t number, int64_t now_ns);
void sim_event_drop(struct sim_event *event);

int sim_graph_begin(struct lab_stream *stream, struct lab_err *err);
int sim_graph_end(struct lab_stream *stream, struct lab_graph **ret_graph, struct lab_err *err);
int sim_graph_launch(struct lab_graph *graph, struct lab_stream *stream, struct lab_err *err);
void sim_graph_close(struct lab_graph *graph);
