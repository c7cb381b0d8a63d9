/*
 * report.h: figures and machines as text for people. Everything is appended to a string: the caller
 * decides where it goes. Text fits `columns` and uses UTF-8 where `style.unicode`.
 */
#ifndef LAB_REPORT_REPORT_H
#define LAB_REPORT_REPORT_H

#include "base/mem.h"
#include "base/str.h"
#include "base/tty/text.h"
#include "base/value.h"
#include "doc/table.h"
#include "measure/measure.h"
#include "model/machine.h"

#include <stdbool.h>

/* --- the machine --- */

/* "H100 SXM5 80GB" of "GH100 [H100 SXM5 80GB]", else the name, the vendor, or the ids. */
void lab_report_pci_model(const struct lab_pci *pci, struct lab_str *out);

/* Nodes, cores, caches, PCI devices with their node and links: tables. */
void lab_report_machine(const struct lab_machine *machine, struct lab_style style,
                        struct lab_str *out);
/* The same as a drawing: a box for each node with its cores, memory, bridges and devices. */
void lab_report_machine_map(const struct lab_machine *machine, struct lab_style style,
                            struct lab_str *out);

/* Parts of both: one sentence that says what machine this is; distances between nodes. */
void lab_report_machine_title(const struct lab_machine *machine, struct lab_style style,
                              struct lab_str *out);
void lab_report_distances(const struct lab_machine *machine, struct lab_style style,
                          struct lab_str *out);
/* How GPUs and network cards reach each other, as nvidia-smi topo -m shows it, with a legend. */
void lab_report_links(const struct lab_machine *machine, struct lab_style style,
                      struct lab_str *out);
/* "GPU0 and GPU1 are fed by node 0 (CPUs 0-15)": a line for each node. */
void lab_report_feeding(const struct lab_machine *machine, struct lab_style style,
                        struct lab_str *out);

struct lab_report_device {
    const char *name, *description; /* "cpu:0/2.1", "1 of 2 cores of NUMA node 0" */
    const char *physical;           /* what it shares with its sisters */
    int node;                       /* the kernel's number; -1 = unknown */
    struct lab_cpus cpus;           /* empty for a GPU */
    int64_t memory_bytes;
    bool simulated;
};

struct lab_report_backend {
    const char *name, *help;
    const struct lab_report_device *devices;
    int device_count;
    const char *why_none; /* where there are none */
};

struct lab_report_library { /* one that is looked up at run time */
    const char *title;
    const char *path;     /* NULL: not found */
    const char *version;  /* may be NULL */
    const char *reason;   /* not found, or found but of no use: why; else NULL */
    const char *effect;   /* likewise: what is then unavailable */
    const char **effects; /* found, but lacking functions: what they are for; NULL ends */
};

/* Where the vendor's libraries lie, and below the table a line for each thing that is missing. */
void lab_report_libraries(const struct lab_report_library *libraries, int count,
                          struct lab_style style, struct lab_str *out);

/* What can be given to --device, backend by backend. */
void lab_report_backends(const struct lab_report_backend *backends, int count,
                         struct lab_style style, struct lab_str *out);

/* All of the above for programs. */
struct lab_value *lab_report_device_value(const struct lab_report_device *device,
                                          struct lab_arena *arena);
struct lab_value *lab_report_libraries_value(const struct lab_report_library *libraries, int count,
                                             struct lab_arena *arena);
struct lab_value *lab_report_backends_value(const struct lab_report_backend *backends, int count,
                                            struct lab_arena *arena);

/* --- one bench --- */

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
    struct lab_report_device device;
    const char *backend;
    int compute_units;
    const char *arithmetic;      /* may be NULL */
    bool overlaps;               /* copies can run beside compute on this device */
    const char *overlap_why_not; /* may be NULL */
    int numa_node;               /* of the host thread and host memory; -1 = not bound */
    const char *dtype;

    /* what one iteration does */
    double samples;             /* 0 = none */
    double flops, memory_bytes; /* on the device */
    double h2d_bytes, d2h_bytes;
    double parameters; /* of the model; 0 = it is none */

    const struct lab_bench_metric *metrics; /* in the order of their first value */
    int metric_count;

    /* what the device reaches at best; 0 = unknown */
    struct {
        double flops_per_s, memory_bytes_per_s, h2d_bytes_per_s, d2h_bytes_per_s;
        const char *how; /* may be NULL */
    } limits;

    struct {
        bool done, applicable, passed; /* done false: not asked for */
        double relative_error, tolerance;
        int64_t elements;
        const char *text;
    } verification;

    const struct lab_bench_repetition *repetitions;
    int repetition_count;
    int repetitions_asked;
    const struct lab_bench_operation *operations; /* longest first; asked for with --profile */
    int operation_count;                          /* -1 = not asked for */
    bool interrupted;

    const char *const *invalid;  /* reasons, NULL-terminated: none = the result is valid */
    const char *const *warnings; /* sentences, NULL-terminated */
};

/* Rates of one measurement of the work that `report` describes. */
struct lab_rates lab_bench_rates(const struct lab_bench_report *report,
                                 const struct lab_measurement *measurement);

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

void lab_report_bench(const struct lab_bench_report *report, struct lab_style style,
                      struct lab_str *out);
struct lab_value *lab_report_bench_value(const struct lab_bench_report *report,
                                         struct lab_arena *arena);

/* --- the plan of a study --- */

struct lab_report_rank {
    int gpu_id;         /* index into the list of devices */
    const char *device; /* "cpu:0/2.1" */
    int numa_node;
};

struct lab_report_plan_run {
    const char *id, *workload, *label;
    uint64_t identity;
    struct lab_value *options; /* all keys */
    const struct lab_report_rank *ranks;
    int rank_count, repeat;
    int64_t num_samples, warmup_samples, iterations, warmup_iterations;
    int64_t host_bytes, device_bytes; /* of one rank */
    double timeout_s;
    const char *const *series; /* NULL-terminated */
    int point_count;
};

struct lab_report_plan {
    const char *option, *study; /* "numa_study", "numa_locality_study" */
    const char *output_dir;
    const char *machine; /* where it is planned for, if it isn't this machine; else NULL */
    const char *selector;
    const struct lab_report_device *devices; /* all that the selector names */
    int device_count;
    const struct lab_report_plan_run *runs; /* in their order */
    int run_count;
    int64_t point_count, job_count;
    uint64_t seed, identity;
    bool ordered_as_given;
    int repeat, max_workers;
    double cooldown_s, budget_s; /* 0 = none */

    double expected_s; /* from runs that were timed here before; 0 or NaN = nothing is known */
    int expected_by_duration; /* runs that are in it by the duration that was asked for instead */
    int expected_unknown;   /* runs that nothing is known about: in it by the mean of the others */
    int expected_guessed;   /* those, and runs that only other work tells about */
    double expected_most_s; /* by the time-outs and retries; 0 = the time-outs' sum */
    int64_t disk_bytes;     /* that the study's folder will take; 0 = unknown */
    const char *const *notes; /* sentences; NULL-terminated, NULL = none */
};

/* The first runs and all that is said about them together. */
void lab_report_plan(const struct lab_report_plan *plan, struct lab_style style,
                     struct lab_str *out);
/* All of it. */
struct lab_value *lab_report_plan_value(const struct lab_report_plan *plan,
                                        struct lab_arena *arena);

#endif
