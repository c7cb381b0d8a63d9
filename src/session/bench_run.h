/*
 * bench_run.h: one workload on one device, now: figures whose placement is proven, and what several
 * repetitions agree on.
 */
#pragma once

#include "base/value.h"
#include "session/session.h"
#include "session/session_progress.h"

/* --- what came of it --- */

struct lab_bench_operation { /* one op's launches in all repetitions, warm-up included */
    const char *name;
    int64_t launches;
    double time_s, flops;
};

struct lab_bench_repetition {
    const struct lab_measurement *measurement;
    struct lab_rates rates;
};

struct lab_bench_metric { /* what a workload tells beside its times: its last value */
    const char *name, *unit;
    double value;
};

struct lab_bench_report {
    const char *workload, *label;
    struct lab_value *config;  /* all keys */
    const char *configuration; /* how the kernel does it, in words; NULL = nothing was looked up */
    struct lab_device_ref device;
    struct lab_device_info info; /* of it; memory_bytes and, for a program, most else is unknown */
    int numa_node;               /* of the host thread and host memory; -1 = not bound */
    const char *dtype;
    struct lab_work work;            /* what one iteration does */
    const char *rate_unit;           /* of its samples per second; NULL = "samples/s" */
    double parameters;               /* of the model; 0 = it is none */
    struct lab_device_limits limits; /* what the device reaches at best */

    const struct lab_bench_metric *metrics; /* in the order of their first value */
    int metric_count;

    bool verified; /* false: not asked for */
    struct lab_verification verification;

    const struct lab_bench_repetition *repetitions;
    int repetition_count;
    const struct lab_bench_operation *operations; /* longest first; asked for with --profile */
    int operation_count;                          /* -1 = not asked for */
    bool interrupted;

    const char *const *invalid;  /* reasons, NULL-terminated: none = the result is valid */
    const char *const *warnings; /* sentences, NULL-terminated */
};

/*
 * What the repetitions agree on: each figure is the median of the runs' own; min and max are over
 * all. Intervals are across runs where there are two or more, else within the one.
 */
struct lab_bench_total {
    /* time from the end of one iteration to the end of the next (of the single one: its latency) */
    struct lab_summary time;
    struct lab_summary latency;
    bool across;
    struct lab_rates rates;
    double overlap;
};
struct lab_bench_total lab_bench_total(const struct lab_bench_report *report);

/* --- doing it --- */

struct lab_bench_request {
    struct lab_value *config_value; /* all keys, for the report */
    const char *configuration;      /* likewise; may be NULL */
    const char *note;               /* a warning about it; may be NULL */
    const char *selector;           /* what the device was chosen by */
    int numa_node;                  /* the kernel's number; -1 = the device's own */
    int repeat;                     /* ≥ 1 */
    bool verify;
    bool limits;                  /* find out what the device reaches at best */
    bool profile;                 /* by operation */
    struct lab_measure_plan plan; /* progress and clock are set by the run */
    struct lab_progress progress;
};

/*
 * Benches a session whose device is chosen; listener, rank and setup are set here. It uses the
 * first of its devices, or all where the workload has a key `devices` that isn't given;
 * `ret_selected` counts those that might have been used instead of the first, it among them. Waits
 * for devices that others have (lab_session_lease).
 *
 * Fills `ret_report`, which lives in the session's arena. A failed verification or proof makes the
 * result invalid and is no error. The calling thread stays bound. LAB_ERR_INTERRUPTED if the user
 * stopped it before anything was measured; later, `interrupted` is set and what there is, is
 * reported. The session is still to be released.
 */
int lab_bench_run(struct lab_session *session, const struct lab_bench_request *request,
                  struct lab_bench_report *ret_report, int *ret_selected, struct lab_err *err);
