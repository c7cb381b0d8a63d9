/* check_internal.h: what the files of src/check share: the run under way, and how rates are
 * measured and judged. */
#pragma once

#include "check/check.h"
#include "device/health.h"
#include "measure/measure.h"
#include "session/lease.h"
#include "workload/workload.h"

#include <math.h>

#define CHECK_TRIES 3 /* a failure counts when it was seen so often */
/* Of a learning run: measurements of each subject. */
#define CHECK_LEARN_TRIES 3
/* In the group of a copy, before the NUMA node's distance. */
#define CHECK_DISTANCE ", dist. "

struct check_load { /* a GPU under full load, read while the product ran */
    bool known;
    double clock_mhz, power_w;
    int64_t clock_reasons;
    int64_t pcie_generation;
};

struct check_rates { /* of a workload */
    struct lab_rates rates;
    double median_s;
    const char *wrong; /* why its results are wrong; NULL = they aren't, or it wasn't looked at */
};

struct check_run {
    const struct lab_check_setup *setup;
    struct lab_arena *arena;
    const struct lab_machine *machine; /* that the devices are part of */
    const struct lab_device_list *devices;
    struct lab_health health;
    const char *no_health; /* why it isn't known; NULL = it is */
    int64_t start_ns, deadline_ns;
    double *h2d; /* GB/s of each GPU from each NUMA node, by numa_nearest for h2d; may be NULL */
    struct check_load *loads; /* of each GPU */
    struct lab_check_finding *findings;
    int count;
    struct lab_device **open; /* of each GPU, while pairs are measured; NULL = closed */
    uint64_t opened;          /* counts openings: each has a chance of its own */
    struct lab_lease lease;   /* of all devices, from the first measurement on */
    bool leased;
    /* of level 3: of each GPU while all worked; NULL = not measured yet */
    struct check_rates *soak, *contention;
    double soak_s; /* how long it was */
};

/* Keys of expected values, NULL-terminated. */
extern const char *const check_keys[];

/* --- findings --- */

void check_pass(struct lab_check_finding *finding, const char *found, const char *wanted);
void check_fail(struct lab_check_finding *finding, const char *found, const char *wanted,
                const char *reason);
void check_skip(struct lab_check_finding *finding, const char *reason);
void check_break(struct lab_check_finding *finding, const char *reason);
/* An error as one of these: what isn't supported is skipped, anything else is broken. */
void check_error(struct lab_check_finding *finding, const struct lab_err *err,
                 struct check_run *run);
/* " (20 not judged)": of skipped tests, rates that were measured and compared with nothing;
 * "" = none. */
const char *check_unjudged(const struct lab_check_result *result, struct lab_arena *arena);

const struct lab_gpu_health *check_gpu(const struct check_run *run, int gpu);
const struct lab_expected *check_expected(const struct check_run *run, int gpu);
const char *check_gpu_name(const struct check_run *run, int gpu); /* "GPU 3", in the arena */
double check_left_s(const struct check_run *run);
/* Subjects: all GPUs; the host. */
int check_each_gpu(struct check_run *run, const char **ret_why);
int check_host(struct check_run *run, const char **ret_why);

/* --- judging (judge.c) --- */

/* Verdicts of one test's rates, from `first` on; those that have one keep it. */
void check_judge(struct check_run *run, int first, int count);
void check_judge_one(struct check_run *run, int first, int count, int index);

/* --- measuring (measure.c) --- */

struct check_work {
    const char *workload;
    const char *const *keys; /* "m=8192", NULL-terminated */
    double seconds;          /* of measuring, at least; of all GPUs at once: about */
    /* optional, asked while it runs */
    void (*watch)(void *state, struct lab_device *device);
    void *state;
};

/* One workload on one GPU, host memory on a NUMA node (-1 = its own). */
int check_measure(struct check_run *run, int gpu, int node, const struct check_work *work,
                  struct check_rates *ret_rates, struct lab_err *err);
/* The same on all GPUs at once, each with a thread; `ret_rates` has one for each GPU. */
int check_measure_all(struct check_run *run, const struct check_work *work, int64_t iterations,
                      struct check_rates *ret_rates, struct lab_err *err);
/* Bytes a second from one GPU's memory to another's. */
int check_measure_pair(struct check_run *run, int from, int to, double *ret_bytes_per_s,
                       const char **ret_wrong, struct lab_err *err);
void check_close_devices(struct check_run *run);
void check_end_measuring(struct check_run *run); /* and gives the leases back */

/* The tables of tests, each ending with a name of NULL. */
extern const struct lab_check_test check_facts[], check_rates_tests[], check_long_tests[];
