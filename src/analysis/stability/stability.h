/*
 * stability.h: what the runs of a study show, and the words for it. For stability.c and its parts.
 */
#pragma once

#include "analysis/stability/rate_series.h"

#define STABILITY_HARMLESS 0.01 /* of the time, throttled */

struct stability_row { /* a rank of a point, over its runs; or a device over its points */
    const char *name, *device;
    int runs, changed, uncertain;
    int rank;                     /* of its verdict: certain, inconclusive, none, untested */
    double most;                  /* drift, or how large it could be */
    double median_s, throttled_s; /* NaN = unknown */
    double p99, longest;          /* over the median of its run; of the run where it is largest */
    const char *throttled_by;
    struct lab_claim drift;               /* "stability.point", "stability.device" */
    const struct lab_rate_series *series; /* one for each run */
};

struct stability { /* of a study */
    const struct lab_study_table *study;
    struct lab_arena *arena;
    struct lab_rate_series *series;
    struct stability_row *rows, *devices;
    struct lab_rate_series_change *changes;
    int count, row_count, device_count, change_count, blocks;
    int points;
    int known, changed, uncertain, throttled, throttling_known; /* series */
    double throttled_s, watched_s, shortest_s, longest_s;
    struct lab_claim drift, throttling; /* "stability.drift", "stability.throttling" */
};

/* How large a drift the interval leaves; infinite without one. */
double stability_bound(const struct lab_claim *drift);
/* NULL = it was tested. */
const char *stability_why_untested(const struct stability *made);
const char *stability_answer(const struct stability *made);
/* NULL = nothing can be said. */
const char *stability_action(const struct stability *made);
/* Sets the next command where no run was long enough to throttle. */
void stability_test_longer(struct lab_analysis_result *result, const struct stability *made);
/* Sets how much longer runs must be where points kept too few iterations. */
void stability_test_all(struct lab_analysis_result *result, const struct stability *made);
/* Runs of which something is unknown. */
void stability_notes(const struct stability *made, const char *prefix,
                     struct lab_analysis_result *result);
