/*
 * contention.h: what each phase of a study does to kernels and resources, as claims. For
 * contention.c, and for variance.c, whose times are the same claims.
 *
 * A resource is what a run's probe measured right after the kernel, under the same conditions. A
 * cause is named only where its own probe fell for certain and the fall explains the slow-down: a
 * ratio of two probes also falls when the other one rises.
 */
#pragma once

#include "analysis/variance/phases.h"

enum {
    CONTENTION_COMPUTE,
    CONTENTION_MEMORY,
    CONTENTION_PCIE,
    CONTENTION_CLOCK,
    CONTENTION_RESOURCES
};

struct contention_resource {
    const char *phase;
    const char *key, *title; /* "membw", as experiment.disturb has it; "memory bandwidth" */
    double base, here;       /* geometric means of the probes, in `unit` */
    const char *unit;
    const char **devices; /* all that ran in both phases, and the mean log ratio of each */
    double *logs;
    int device_count;
    struct lab_claim change; /* "contention.resource" */
};

struct contention_row { /* a kernel on all devices, or on one */
    const char *phase, *kernel, *device;
    double gpu_id;           /* NaN = all */
    int unit;                /* in lab_phases; -1 = all devices */
    struct lab_claim change; /* "contention.kernel", "contention.device": of its time */
};

struct contention_phase {
    int number; /* in lab_phases */
    const char *name, *title;
    const char *mitigations; /* "process, numa"; "" = none */
    bool copies;             /* some kernel of it copies to or from the host */
    struct contention_row *kernels, *devices;
    int kernel_count, device_count;
    struct contention_resource resources[CONTENTION_RESOURCES];
    int lowest;                    /* the resource that fell most for certain; -1 = none did */
    bool explains;                 /* it is the likely cause of the slow-down */
    double power_w, power_limit_w; /* means of what the probes read; NaN = unknown */
    struct lab_claim slowdown;     /* "contention.slowdown": all kernels and devices */
    struct lab_claim recovery;     /* "contention.recovery": of time, against the main phase */
    struct lab_claim throughput;   /* "contention.throughput": of the machine, likewise */
    double recovered; /* of the main phase's slow-down, a share; NaN = none for certain */
    struct lab_phase_tuning tuning; /* .cost is "contention.tuning" */
};

struct contention_slow {      /* by itself, compared with its peers */
    const char *as_time;      /* "GPU 7: 5.7% lower throughput is a 6.0% longer time."; or NULL */
    struct lab_claim *copies; /* "contention.alone", those that are certain */
    const char **checks;      /* what to look at, of each */
    int copy_count;
    const char **doubtful;    /* whose copies may be slower */
    struct lab_claim *doubts; /* "contention.alone" of each, inconclusive */
    int doubtful_count;
};

struct contention {
    struct lab_phases phases;
    const struct lab_study_table *study; /* the first */
    const struct lab_machine *machine;   /* NULL = unknown, or several studies */
    struct contention_phase *list;       /* all but the base, the main one first */
    int count;
    struct contention_slow slow; /* empty until it is asked for */
    struct lab_arena *arena;
};

struct contention contention_make(const struct lab_analysis_input *input, struct lab_arena *arena);

/* What a run's probe measured; `context`: a resource's number. NaN = nothing. */
double contention_probe(const struct lab_study_run *run, const void *context);

bool contention_is_slower(const struct lab_claim *claim); /* for certain */
bool contention_is_slowed(const struct contention_phase *phase);

/* --- in words --- */

/* "PCIe bandwidth 38.9% lower than with one GPU alone, mean of 10 GPUs (by GPU 36.0% to 41.1%)";
 * where some are spared, without that mean: "PCIe bandwidth of 8 of 10 GPUs 40.3 to 47.1% lower
 * than with one GPU alone (GPUs 4 and 9: unchanged)". */
const char *contention_fall_words(const struct contention *made,
                                  const struct contention_resource *resource, bool interval);
/* "40.3 to 47.1%" of two logarithms; "47.1%" where they are alike. */
const char *contention_range_words(double least, double most, struct lab_arena *arena);

/* Of one study on a known machine; else nothing. */
struct contention_slow contention_slow_find(const struct contention *made);

struct contention_bridges {
    const char *shared; /* "GPUs 0+1 and 3+4"; NULL = none share one, or the fall is not that of a
                             bridge */
    const char *own;    /* "GPUs 2 and 7"; NULL = none */
    const char *range;  /* falls of single GPUs that share one: "40.3 to 47.1%" */
    double own_most;    /* of those that have their own, % */
};

struct contention_bridges contention_bridges_find(const struct contention *made,
                                                  const struct contention_resource *resource);
/* "PCIe bandwidth of GPUs 0+1 and 3+4, which share a bridge, is 45.9 to 47.1% lower than alone" */
const char *contention_bridges_words(const struct contention *made,
                                     const struct contention_resource *resource,
                                     const struct contention_bridges *bridges);

/* "29.1 instead of 54.0 GB/s": in the phase, and alone. */
const char *contention_values_words(const struct contention_resource *resource,
                                    struct lab_arena *arena);
/* No kernel that is unchanged differs by more, on any device. */
double contention_bound_percent(const struct contention_phase *phase);

/* The fall of PCIe bandwidth, which kernels that copy nothing do not feel; NULL = none for sure. */
const struct contention_resource *contention_pcie_fall(const struct contention_phase *phase);
/* The headline: which kernels take longer, why, what recovers it, and what tuning costs. */
const char *contention_answer(const struct contention *made);

/* --- the chart --- */

/* "contention_devices": each device alone and in the phases, its kernels' times and the resource
 * that fell (chart.c). Of one device there is none. */
void contention_add_devices(struct lab_analysis_result *result, const struct contention *made);
