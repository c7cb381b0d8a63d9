/*
 * rate_series.h: how the iterations of one rank went over a run: whether they drift, where they
 * change for good, for how long the device was throttled. For stability.c alone.
 */
#pragma once

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "model/claim.h"
#include "stats/changes.h"

#define LAB_RATE_SERIES_LEAST 20 /* times: fewer show nothing */

struct lab_rate_series_change {
    const char *run;
    double at_s; /* since the first iteration */
    const char *at;
    double before_s, after_s;         /* median time of an iteration on either side */
    struct lab_claim claim;           /* "stability.change": from within the run */
    bool common;                      /* most runs of the point have one */
    double clock_before, clock_after; /* MHz; NaN = unknown */
    const char *reason; /* that throttled it more afterwards than before; NULL = nothing */
};

struct lab_rate_series {
    const struct lab_study_run *run;
    const struct lab_study_rank *rank;
    const char *name;
    const char *model; /* with what else varies: "vit32x6x512, batch 16" */
    size_t count;      /* times between ends of neighbours */
    double duration_s; /* from the first end to the last */
    double median_s;
    double p99, longest;    /* of its times, over their median; p99 from P99_LEAST times on */
    enum lab_steady steady; /* UNKNOWN: too few, or nothing kept */
    double drift;           /* from the first to the last: 0.1 = a tenth longer; NaN = unknown */
    struct lab_rate_series_change *changes;
    int change_count;
    bool uncertain;           /* no change is, but its times wander so much that one may be */
    double throttled_s;       /* NaN = unknown */
    const char *throttled_by; /* the reason that did most of it; NULL = none */
    /* for charts, at most LAB_TIMELINE_POINTS: time since the first iteration, mean time of one */
    const double *shown_x_s, *shown_y_s;
    size_t shown_count;
};

/* Changes are sure at 1 − 5%/`runs`, each: they hold for so many runs together. */
struct lab_rate_series lab_rate_series_make(const struct lab_study_run *run,
                                            const struct lab_study_rank *rank, int runs,
                                            struct lab_arena *arena);

/* What they are counted as: "runs"; "per-device time series" where a run has several, one for each
 * rank. */
const char *lab_rate_series_counted(const struct lab_rate_series *all, int count);
/* Times over time with the levels between changes: of the runs with the largest changes where
 * `changed` (a point's runs have them), the run that takes longest, then of those with the longest
 * iterations. None where there is nothing to draw. */
void lab_rate_series_add_chart(struct lab_analysis_result *result,
                               const struct lab_rate_series *all, int count, const char *name,
                               bool changed, bool simulated, struct lab_arena *arena);
