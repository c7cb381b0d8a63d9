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
    double runs;
};

/* Of that device of a study: of all its runs that count, on it alone. */
struct lab_condition lab_condition_of(const struct lab_study_table *study, const char *device);

/* "SM clock 1,710 MHz (peers 1,980), PCIe width 8 (16)"; "" = nothing. Compared with the median of
 * `peers`, which skips the one itself. `ret_alike`: what doesn't differ, "temperature, power". */
const char *lab_condition_differences(const struct lab_condition *own,
                                      const struct lab_condition *const *peers, int count,
                                      const char **ret_alike, struct lab_arena *arena);
