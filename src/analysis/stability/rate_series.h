/*
 * rate_series.h: how the iterations of one rank went over time: whether they drift, where they
 * change for good, what held the device back meanwhile. For stability.c alone.
 */
#ifndef LAB_ANALYSIS_STABILITY_RATE_SERIES_H
#define LAB_ANALYSIS_STABILITY_RATE_SERIES_H

#include "analysis/analysis_build.h"
#include "analysis/analysis_study.h"
#include "stats/changes.h"
#include "stats/stats.h"

struct lab_rate_series_change {
    double at_s;                      /* since the first iteration */
    double before_s, after_s;         /* median time of an iteration on either side */
    double clock_before, clock_after; /* MHz; NaN = unknown */
    double held_before, held_after; /* share of the time that clocks were held back; NaN likewise */
    const char *reason;             /* what held them back more afterwards; NULL = nothing */
};

struct lab_rate_series {
    const struct lab_study_run *run;
    const struct lab_study_rank *rank;
    const char *name, *device;
    size_t count;      /* times between ends of neighbours */
    double duration_s; /* from the first end to the last */
    double median_s;
    enum lab_steady steady; /* UNKNOWN: too few, or nothing kept */
    double steady_from_s;   /* NaN = from the start, or never */
    struct lab_rate_series_change *changes;
    int change_count;
    /* from the first to the last: 0.1 = a tenth longer; NaN = unknown */
    double drift, drift_low, drift_high;
    double drift_p;  /* that there is none, whatever the memory */
    double memory_s; /* of how its pace wanders, most likely; 0 = none, NaN = unknown */
    bool blind;      /* it wanders too much for its length: large drifts stay possible */
    double drift_p_adjusted;
    bool drifts;          /* it is larger than what is asked for, by all of its interval */
    double held_s;        /* that clocks were held back; NaN = unknown */
    const char *held_why; /* the reason that did most of it; NULL = none */
    /* for pictures, at most LAB_TIMELINE_POINTS: time since the first iteration, mean time of
     * one */
    const double *shown_x_s, *shown_y_s;
    size_t shown_count;
};

/* `least`: changes and drifts that may be smaller, as a share, don't count. */
void lab_rate_series_make(const struct lab_study_run *run, const struct lab_study_rank *rank,
                          double least, struct lab_arena *arena,
                          struct lab_rate_series *ret_rate_series);
/* Drifts hold for all of them together (Benjamini and Hochberg at 5 %). */
void lab_rate_series_adjust(struct lab_rate_series *all_rate_series, int count, double least);

/* Whether its figures are of one steady state: no slow-down, no drift, next to nothing held
 * back. */
bool lab_rate_series_is_steady(const struct lab_rate_series *rate_series);

/* "slows down by 8.1 % at 12.3 s, when heat (driver) held the clocks back" */
const char *lab_rate_series_words(const struct lab_rate_series *rate_series,
                                  struct lab_arena *arena);

/* "12.3 s", "130 ms" */
const char *lab_rate_series_moment(double seconds, struct lab_arena *arena);

/* Times over time with the levels between changes; the worst courses first. None where there is
 * nothing to draw. */
void lab_rate_series_add_chart(struct lab_analysis_result *result,
                               const struct lab_rate_series *all_rate_series, int count,
                               const char *name, bool simulated, struct lab_arena *arena);

#endif
