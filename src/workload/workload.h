/*
 * workload.h: real work for a device. A workload is one file in this folder that defines
 * `const struct lab_workload lab_workload_<file name>`; the build finds it by its name and nothing
 * else has to be edited. docs/skeleton_workload.c is a commented one to copy.
 *
 * A workload knows nothing of measuring: it is opened for one rank, asked for some iterations, and
 * closed. Who calls it decides how many iterations are warm-up and when it is enough (src/measure).
 */
#ifndef LAB_WORKLOAD_WORKLOAD_H
#define LAB_WORKLOAD_WORKLOAD_H

#include "base/err.h"
#include "base/option.h"
#include "device/device.h"
#include "model/iteration.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a workload runs. The host thread is already bound to `numa_node` by who opens it. */
struct lab_rank {
    struct lab_device *device;
    int numa_node; /* where host buffers must lie; -1 = anywhere */
    int index, count;
    uint64_t seed; /* of all data that this rank draws */
};

/* What one iteration does and moves, counted from the definition, for rates and limits. */
struct lab_workload_cost {
    struct lab_cost compute;          /* on the device */
    double h2d_bytes, d2h_bytes;      /* between host and device */
    double samples;                   /* images, rows: what samples_per_second counts; 0 = none */
    int64_t device_bytes, host_bytes; /* memory it will ask for */
    enum lab_dtype dtype;             /* in which the flops are done */
};

struct lab_verification {
    bool applicable; /* false: `text` says why (simulated, no output) */
    bool passed;
    double relative_error; /* ‖out − reference‖ / ‖reference‖ over all elements */
    double tolerance;
    int64_t elements;
    char text[160]; /* "1,280 of 25,600 outputs still poisoned" */
};

struct lab_workload {
    const char *name;
    const char *help;                 /* one line */
    const char *description;          /* paragraphs for help; may be NULL */
    const struct lab_option *options; /* the keys; the only schema for them */
    size_t config_size;               /* of the struct that the options fill */

    /* optional: rules between several keys, and derived values; NULL = the bounds say it all */
    int (*check)(void *config, struct lab_err *err);

    /* a short name that is the same for the same model: "vit32x6x512"; NULL = the workload's name
     */
    void (*label)(const void *config, struct lab_str *out);

    void (*cost)(const void *config, struct lab_workload_cost *ret_cost);

    /* how the device is to be set up; NULL = LAB_DEVICE_SETUP */
    struct lab_device_setup (*setup)(const void *config);

    /* `config` outlives the state */
    int (*open)(const void *config, const struct lab_rank *rank, void **ret_state,
                struct lab_err *err);
    void (*close)(void *state); /* accepts NULL; waits for the device first */

    /*
     * Runs `count` ≥ 1 iterations as one stretch and fills `records` (count of them) in order; when
     * it returns, the device is idle. Nothing is allocated and no file is touched in it.
     */
    int (*run)(void *state, int count, struct lab_iteration *records, struct lab_err *err);

    /*
     * One iteration on fresh data drawn from `seed`, with every output poisoned first, against a
     * reference in double precision. Returns -1 only if it could not be carried out.
     */
    int (*verify)(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err);

    /* optional: proves that its memory lies where the rank says; NULL = holds no host memory */
    int (*prove_placement)(void *state, struct lab_err *err);
};

extern const struct lab_workload *const lab_workloads[]; /* NULL-terminated, generated */

/* By name; NULL and an error that names the nearest and lists all. */
const struct lab_workload *lab_workload_find(const char *name, struct lab_err *err);

/* A zeroed config with every default set, in the arena. */
void *lab_workload_config(const struct lab_workload *workload, struct lab_arena *arena);

/*
 * Fills `ret` by comparing. `poison` is the value that the outputs held before: an element that
 * still has it counts as never written, and any NaN fails.
 */
void lab_verify_compare(const float *out, const double *reference, int64_t count, float poison,
                        double tolerance, struct lab_verification *ret);

#endif
