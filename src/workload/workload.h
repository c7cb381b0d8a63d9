/*
 * workload.h: real work for a device. A workload is one file in this folder that defines
 * `const struct lab_workload lab_workload_<file name>`; the build finds it by its name and nothing
 * else has to be edited. docs/skeleton_workload.c is a commented one to copy.
 *
 * A workload knows nothing of measuring: it is opened for one rank, asked for some iterations, and
 * closed. Who calls it decides how many iterations are warm-up and when it is enough (src/measure).
 */
#pragma once

#include "base/err.h"
#include "base/option.h"
#include "device/device.h"
#include "device/group.h"
#include "model/iteration.h"
#include "model/reported_metric.h"

#include <stdbool.h>
#include <stdint.h>

/* What a workload tells while it runs, beside its records. Each slot may be NULL: then it is
 * lost. */
struct lab_sink {
    void (*metrics)(void *state, const struct lab_reported_metric *items, size_t count);
    void (*progress)(void *state, int64_t done, int64_t total); /* total 0 = unknown */
    /* what a program that the workload runs has printed */
    void (*output)(void *state, bool is_stderr, const char *bytes, size_t length);
    bool (*stopped)(void *state); /* true: end soon, the result isn't wanted any more */
    void *state;
    /* a sentence that belongs to the result: it was done in another way than was asked for */
    void (*warning)(void *state, const char *text);
    void (*notice)(void *state, const char *text); /* one for who watches it run */
    /* a program has run for so long, and waited at most so long until its output was read */
    void (*held)(void *state, int64_t held_ns, int64_t whole_ns);
};

/* Where a workload runs. The host thread is already bound to `numa_node` by who opens it. */
struct lab_rank {
    struct lab_device *device;        /* NULL for an `external` workload, whose program opens it */
    const struct lab_device_ref *ref; /* its name; NULL = where `device` says */
    int numa_node;                    /* where host buffers must lie; -1 = anywhere */
    int index, count;
    uint64_t seed;               /* of all data that this rank draws */
    int gpu_id;                  /* position in the study's list of devices; 0 outside a study */
    int repeat;                  /* of the point, from 0 */
    int port;                    /* that is free, the same for all ranks of a gang; 0 = unknown */
    const char *run_id, *folder; /* of the study; NULL outside one */
    const struct lab_sink *sink; /* NULL = nobody listens */
    /* of a `collective` workload whose ranks are threads of one process; NULL = it is on its own */
    struct lab_group *group;
    /* of a program that is started once for all ranks: their devices, in order; NULL = `ref` */
    const struct lab_device_list *gang;
};

/* What one iteration does and moves, counted from the definition, for rates and limits. */
struct lab_workload_cost {
    struct lab_cost compute;          /* on the device */
    double h2d_bytes, d2h_bytes;      /* between host and device */
    double samples;                   /* images, rows: what samples_per_second counts; 0 = none */
    int64_t device_bytes, host_bytes; /* memory it will ask for */
    enum lab_dtype dtype;             /* in which the flops are done */
    double parameters;                /* values that the model learns; 0 = it is none */
    double layers;                    /* that have them; 0 = it has none, or nobody counts them */
    int launches;                     /* of an iteration, as `kernels` visits them; 0 without */
};

struct lab_verification {
    bool applicable; /* false: `text` says why: "simulated", "no output" */
    bool passed;
    double relative_error; /* ‖out − reference‖ / ‖reference‖ over all elements */
    double tolerance;
    int64_t elements;
    char text[160]; /* "1,280 of 25,600 outputs still poisoned" */
};

/* The key of those that can be tuned, and what it may be beside a configuration. */
#define LAB_WORKLOAD_CONFIG "config"
#define LAB_CONFIG_TUNED                                                                           \
    "tuned" /* who runs it looks it up first (tune/tuned.h); else the default */
#define LAB_CONFIG_DEFAULT "default"

/* One of several launches. */
typedef void lab_launch_visit(const struct lab_launch *launch, void *state);

struct lab_workload {
    const char *name;
    const char *const *aliases;       /* other names that find it, NULL-terminated; may be NULL */
    const char *help;                 /* one line */
    const char *description;          /* paragraphs for help; may be NULL */
    const struct lab_option *options; /* the keys; the only schema for them */
    size_t config_size;               /* of the struct that the options fill */
    int version; /* raised when the same options come to mean other work; 0 counts as 1 */
    /* true: an iteration is a program of the user's that opens the device itself; nobody opens it
     * for the workload, it has no limits, and `verify` is never asked */
    bool external;
    /* true: the ranks of a gang do one iteration together: they are threads of one process, have a
     * group and do the same number of iterations */
    bool collective;
    /* optional: what traces call its compute stage, beside what they call everyone's:
     * "vit_forward" */
    const char *compute_range;
    /* optional: the unit of its samples per second, "tokens/s"; NULL = "samples/s" */
    const char *rate_unit;

    /* optional: rules between several keys, and derived values; NULL = the bounds say it all */
    int (*check)(void *config, struct lab_err *err);

    /* optional: brings checked configs that mean the same work into one form, so that they count as
     * one run; what comes out is a valid config. NULL = each is as it is */
    void (*canonical)(void *config);

    /* optional: of an option that is a map, whether this key plays a part in this (checked) config;
     * a plan drops what plays none, so that it makes no other run. NULL = all do */
    bool (*uses)(const void *config, const char *option, const char *key);

    /* optional, of an `external` one: whether this (checked) config's program is started once for
     * all devices of a gang, unless the study says otherwise. NULL = it never is */
    bool (*launches_gang)(const void *config);

    /* a short name that is the same for the same model: "vit32x6x512"; NULL = the workload's name
     */
    void (*label)(const void *config, struct lab_str *out);

    /* optional: what the numbers in its label are, "patch 32, depth 6, width 512"; a model that is
     * shown by another name has it in front, "large: …". NULL = the label needs no explanation */
    void (*label_words)(const void *config, struct lab_str *out);

    void (*cost)(const void *config, struct lab_workload_cost *ret_cost);

    /* optional: every launch of an iteration, in order, without data. NULL = one does it all */
    void (*kernels)(const void *config, lab_launch_visit *visit, void *state);

    /* optional, of a `collective` one: makes the cost of one rank of several out of that of one
     * alone. NULL = each does the whole */
    void (*share)(const void *config, int index, int count, struct lab_workload_cost *cost);

    /* optional: variables that libraries read when they are loaded, "NAME=value", NULL-terminated,
     * in the arena. Who runs it sets them before anything is opened */
    const char *const *(*environment)(const void *config, struct lab_arena *arena);

    /* how the device is to be set up; NULL = LAB_DEVICE_SETUP */
    struct lab_device_setup (*setup)(const void *config);

    /* `config` outlives the state */
    int (*open)(const void *config, const struct lab_rank *rank, void **ret_state,
                struct lab_err *err);
    void (*close)(void *state); /* accepts NULL; waits for the device first */

    /*
     * Runs `count` ≥ 1 iterations as one stretch and fills `records` (count of them) in order; when
     * it returns, the device is idle. Nothing is allocated and no file is touched in it, unless a
     * key asks for files between iterations.
     */
    int (*run)(void *state, int count, struct lab_iteration *records, struct lab_err *err);
    /* optional: behind the last of them, once: writes what is to be kept. NULL = nothing is.
     * Iterations after it are a trace's: they leave neither files nor metrics */
    int (*finish)(void *state, struct lab_err *err);

    /*
     * One iteration on fresh data drawn from `seed`, with every output poisoned first, against a
     * reference in double precision. Returns -1 only if it could not be carried out.
     */
    int (*verify)(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);

    /*
     * optional, both or none: what can be tuned (device/tunable.h). The launch that a checked
     * config stands for, without data; and from here on the state does it so. Such a workload has
     * the key `config` (LAB_WORKLOAD_CONFIG), a STRING.
     */
    void (*launch)(const void *config, struct lab_launch *ret_launch);
    int (*configure)(void *state, const struct lab_tuning *tuning, struct lab_err *err);
    /* optional, of such a one: the keys that stand for a launch of another workload, "m=32 n=64";
     * false = none do. Appends */
    bool (*launch_keys)(const struct lab_launch *launch, struct lab_str *out);

    /*
     * optional, of one that does several launches: those that could be tuned, without data; the
     * same one may come twice. Such a workload has the key `config` too: "SHAPE:CONFIGURATION",
     * several joined by ';', with the launch's lab_tunable_shape_name. What isn't named has its
     * default.
     */
    void (*launches)(const void *config, lab_launch_visit *visit, void *state);

    /* optional: proves that its memory lies where the rank says; NULL = holds no host memory */
    int (*prove_placement)(void *state, struct lab_err *err);
};

extern const struct lab_workload *const lab_workloads[]; /* NULL-terminated, generated */

/* By name or alias; NULL and an error that names the nearest and lists all. */
const struct lab_workload *lab_workload_find(const char *name, struct lab_err *err);

/* Whether it is a program of the user's; a name that nobody has is none. */
bool lab_workload_is_external(const char *name);

/* What runs where a study names no workload. */
#define LAB_WORKLOAD_DEFAULT "vit"

/* Sets the variables that the workload asks for; while this process has one thread, or none that
 * looks. */
void lab_workload_set_environment(const struct lab_workload *workload, const void *config,
                                  struct lab_arena *arena);

/* A zeroed config with every default set, in the arena. */
void *lab_workload_config(const struct lab_workload *workload, struct lab_arena *arena);
/* One with the keys of a map, checked. */
int lab_workload_read(const struct lab_workload *workload, const struct lab_value *options,
                      struct lab_arena *arena, const void **ret_config, struct lab_err *err);
/* Replaces `*config` by a copy with another value of a key. */
int lab_workload_set(const struct lab_workload *workload, const void **config, const char *key,
                     const struct lab_value *value, struct lab_arena *arena, struct lab_err *err);
/* Its label, or the workload's name where it has none; in the arena. */
const char *lab_workload_label(const struct lab_workload *workload, const void *config,
                               struct lab_arena *arena);

/* --- checking results (workload.c) --- */

/*
 * What outputs hold before a verification: exact in every dtype, and nothing that the workloads
 * compute from values within ±1 comes near it.
 */
#define LAB_POISON (-24576.0f)

/*
 * Fills `ret` by comparing. `poison` is the value that the outputs held before: an element that
 * still has it counts as never written, and any NaN fails. A reference that is zero throughout
 * wants zero throughout.
 */
void lab_verify_compare(const float *out, const double *reference, int64_t count, float poison,
                        double tolerance, struct lab_verification *ret);

/* Likewise for bytes that must arrive unchanged: the tolerance is 0. */
void lab_verify_bytes(const void *out, const void *reference, size_t size_bytes,
                      struct lab_verification *ret);

/*
 * Where `checked` of `all` things ("rows", "images") were compared, says so in a passed result.
 * `unwritten` outputs among all `outputs`, compared or not, fail it.
 */
void lab_verify_partial(struct lab_verification *ret, int64_t checked, int64_t all,
                        const char *things, int64_t unwritten, int64_t outputs);

/* How far an fp32-accumulating chain of ops in that dtype may be from double precision. */
double lab_verify_tolerance(enum lab_dtype dtype);

/* True on a simulated device, which computes nothing: `ret` then says so. */
bool lab_verify_skip(const struct lab_device *device, struct lab_verification *ret);
/* ‖a − b‖ / max(‖b‖, least); not finite = infinitely far. */
double lab_verify_distance(const double *a, const double *b, int64_t count, double least);
/* Of what an update made of fp32 parameters, and what it should have made of those before it: the
 * size of the difference over that of the change. What rounding a new parameter is off by is none:
 * it is large next to a small learning rate's change. Below `threshold` in magnitude a parameter
 * is pruned to 0; within rounding of it either is right. */
double lab_verify_update(const double *now, const double *exact, const double *before,
                         int64_t count, double threshold);

/*
 * LAB_ERR_MEMORY unless this much host memory is free. Verification asks before it allocates what
 * grows with the workload: the kernel would promise it and end the process when it is used.
 */
int lab_verify_room(const struct lab_device *device, double bytes, struct lab_err *err);

/* --- data in a device's number format (workload_data.c) --- */

/* To and from `count` elements of that dtype in host memory; to nearest, ties to even. */
void lab_data_encode(enum lab_dtype dtype, const float *values, int64_t count, void *out);
void lab_data_decode(enum lab_dtype dtype, const void *data, int64_t count, float *out);

/* Writes values [first, first + count) of some sequence. */
typedef void lab_data_source(const void *state, int64_t first, int64_t count, float *out);

/* As sources: a constant (state: const float *), numbers in [-1, 1) (state: const uint64_t
 * *seed). */
lab_data_source lab_data_constant, lab_data_random;

/*
 * Moves `count` elements between host values and device memory through a small buffer, and waits.
 * For filling, poisoning and checking; never on the measured path.
 */
int lab_data_upload(struct lab_stream *stream, void *to, enum lab_dtype dtype, int64_t count,
                    lab_data_source *source, const void *state, struct lab_err *err);
int lab_data_download(struct lab_stream *stream, const void *from, enum lab_dtype dtype,
                      int64_t count, float *out, struct lab_err *err);

/* LAB_ERR_UNSUPPORTED unless the device does this op in this dtype. */
int lab_data_require(const struct lab_device *device, enum lab_op_id op, enum lab_dtype dtype,
                     struct lab_err *err);

/* --- when stages ran (workload_spans.c) --- */

/*
 * Events around the stages of as many iterations as are under way at once, opened once and used in
 * turn, so that running allocates nothing. Iterations are numbered from 0 in each stretch.
 */
struct lab_spans {
    struct lab_event **events; /* [slots][LAB_STAGE_COUNT][2]; NULL where the stage isn't used */
    int slots;                 /* iteration i has those of slot i mod slots */
};

#define LAB_SPANS_SYNC_FREQUENCY 32 /* seldom enough that the host's part doesn't show */

/*
 * `sync_frequency`: iterations between two waits of the host; twice as many may be under way.
 * `stages`: bit 1 << LAB_STAGE_… for each stage that will be marked.
 */
int lab_spans_open(struct lab_device *device, int sync_frequency, unsigned stages,
                   struct lab_spans *ret_spans, struct lab_err *err);
void lab_spans_close(struct lab_spans *spans); /* accepts a zeroed or closed one */

int lab_spans_start(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                    struct lab_stream *stream, struct lab_err *err);
int lab_spans_end(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                  struct lab_stream *stream, struct lab_err *err);

/* What `stream` does next comes after the end of that stage, of one of the two iterations
 * before. */
int lab_spans_wait(const struct lab_spans *spans, int iteration, enum lab_stage stage,
                   struct lab_stream *stream, struct lab_err *err);

/*
 * The loop that workloads share: `enqueue` puts one iteration on the streams (NULL ones are
 * skipped). When every slot is in use the host waits for the older half of them alone and reads
 * their records, so that the streams have work all the time: a pipeline fills and drains once in a
 * stretch, not at each wait. `enqueue` may also put stages of the next iteration there, one ahead.
 * When it returns, also with a failure, the streams are idle.
 */
int lab_spans_run(const struct lab_spans *spans, struct lab_stream *const *streams,
                  int stream_count, int count,
                  int (*enqueue)(void *state, int iteration, struct lab_err *err), void *state,
                  struct lab_iteration *records, struct lab_err *err);

/* The same where an iteration is one launch on one stream: a COMPUTE stage. */
int lab_spans_run_launch(const struct lab_spans *spans, struct lab_stream *stream,
                         const struct lab_launch *launch, int count, struct lab_iteration *records,
                         struct lab_err *err);
