/* correlate.h: what `correlate` found, in words and as a picture; for correlate.c alone. */
#ifndef LAB_ANALYSIS_CORRELATE_CORRELATE_H
#define LAB_ANALYSIS_CORRELATE_CORRELATE_H

#include "analysis/analysis_build.h"
#include "analysis/analysis_resource.h"

struct lab_finding { /* a tie, and whose */
    const struct lab_resource_correlations *correlations;
    const struct lab_resource_correlation *correlation;
};

/* What was found of all devices, in the order of lab_resource_correlations_adjust; returns how
 * many. */
int lab_findings_make(const struct lab_resource_correlations *correlations, int device_count,
                      struct lab_arena *arena, struct lab_finding **ret_findings);

/* "iterations on GPU 1 take longer while CPU 3 is busy: ρ = 0.82 [0.70, 0.90], 40 windows" */
const char *lab_finding_words(const struct lab_finding *finding, struct lab_arena *arena);

/* "iterations on GPU 1 take 12.0 % [8.1, 15.9] longer during 7 spikes of …" */
const char *lab_spikes_words(const struct lab_resource_correlations *correlations,
                             const struct lab_spikes *spikes, struct lab_arena *arena);

/* The weakest correlation that would have been seen in four of five cases, given how many windows
 * and questions there were; NaN = none. */
double lab_finding_least(const struct lab_resource_correlations *correlations, int device_count);

/* "0.82 [0.70, 0.90]" */
const char *lab_finding_figure(const struct lab_correlation *correlation, struct lab_arena *arena);

/* A finding as points and over time, where there is something to draw. */
void lab_finding_add_chart(const struct lab_finding *finding, const char *name, bool simulated,
                           struct lab_arena *arena, struct lab_analysis_result *result);

#endif
