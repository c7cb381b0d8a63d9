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
#include "model/plan.h"
#include "vendor/vendor.h"

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

/* Where the vendor's libraries lie, and below the table a line for each thing that is missing. */
void lab_report_libraries(const struct lab_vendor_library *libraries, int count,
                          struct lab_style style, struct lab_str *out);

/* What can be given to --device, backend by backend. */
void lab_report_backends(const struct lab_device_offer *offers, int count, struct lab_style style,
                         struct lab_str *out);

/* All of the above for programs. */
struct lab_value *lab_report_device_value(const struct lab_device_ref *device,
                                          struct lab_arena *arena);
struct lab_value *lab_report_libraries_value(const struct lab_vendor_library *libraries, int count,
                                             struct lab_arena *arena);
struct lab_value *lab_report_backends_value(const struct lab_device_offer *offers, int count,
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
    struct lab_device_ref device;
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

/* The first runs and all that is said about them together. */
void lab_report_plan(const struct lab_plan *plan, const struct lab_plan_estimate *estimate,
                     struct lab_style style, struct lab_str *out);
/* All of it. */
struct lab_value *lab_report_plan_value(const struct lab_plan *plan,
                                        const struct lab_plan_estimate *estimate,
                                        struct lab_arena *arena);

#endif
