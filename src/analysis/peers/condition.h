/*
 * condition.h: the state that a GPU was in during its runs, and in what it differs from its peers.
 */
#pragma once

#include "analysis/analysis_study.h"

struct lab_condition { /* means over the runs, sums of counters; NaN = unknown */
    double numa_node;  /* that it is attached to */
    double sm_clock_mhz, temperature_c, power_w, power_limit_w;
    double pcie_generation, pcie_width, link_gb_s;
    double throttled_s, ecc_errors, xids;
    double runs, longest_s; /* its runs, and how long the longest took */
};

/* Of that device of a study: of all its runs that count, on it alone. */
struct lab_condition lab_condition_of(const struct lab_study_table *study, const char *device);

struct lab_difference {   /* "" = nothing */
    const char *differs;  /* "SM clock 1710 MHz (peers 1980), PCIe lanes 8 (peers 16)" */
    const char *symptoms; /* what follows from a slow device: "power 263 W (peers 277)" */
    const char *alike;    /* what doesn't differ: "temperature, power limit" */
    const char *brief;    /* the longest run, where no GPU gets warm in it: "6.9 ms" */
};

/* From the median of `peers`, which skips the one itself. */
struct lab_difference lab_condition_compare(const struct lab_condition *own,
                                            const struct lab_condition *const *peers, int count,
                                            struct lab_arena *arena);
