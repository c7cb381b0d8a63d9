/* correlate.h: what correlate.c found, for its chart. */
#pragma once

#include "analysis/analysis_build.h"
#include "analysis/analysis_resource.h"

struct correlate_finding {
    const struct lab_resource_correlations *of;
    const struct lab_resource_correlation *item;
};

/* "correlate_top": iteration times over the resource; `rho`: of all runs. */
void correlate_add_chart(struct lab_analysis_result *result, struct correlate_finding finding,
                         const struct lab_claim *rho, const char *suffix, bool simulated,
                         struct lab_arena *arena);
