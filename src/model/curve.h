/*
 * model/curve.h: a metric over a program's steps and time, thinned as it grows: however many values
 * there are, a few hundred points are kept. A point stands for equally many values each; it has
 * their mean and both extremes, so that no peak is lost.
 */
#pragma once

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

#define LAB_CURVE_POINTS 512 /* at most; even */

struct lab_curve_point {
    double step;   /* mean, counted on where they restart; NaN = some are unknown */
    double time_s; /* mean, since the run began */
    double value;  /* mean of those that are finite; NaN = none is */
    double low, high;
    int64_t count;  /* values of it */
    int64_t finite; /* of those */
};

struct lab_curve_line {
    struct lab_curve_point *points;
    int count;
    int64_t share; /* values of a point that is full */
};

struct lab_curve { /* {0} = empty */
    struct lab_curve_point *points;
    int count;
    int64_t share; /* values of a point that is full */
    /* The same with one value for each step, the last; {0} = no step has several. */
    struct lab_curve_line by_step;
    /* over all values, none rounded by thinning; NaN = none was finite */
    double first, least, most, sum;
    int64_t values, finite;
    double step_least, step_most; /* where least and most were; NaN = unknown */
    double last, last_step;       /* whatever it is */
    double last_time_s;
    bool stepped; /* every value has a step, none smaller than the one before, counted on */
    /* Programs count the steps of each epoch from 0, say: what is added to them, and the last
     * distance between two. */
    double step_before, stride;
    int64_t arrivals; /* times at which values came: few where the program buffers its output */
};

/* The value may be infinite or not a number: that counts, and nothing else. */
void lab_curve_add(struct lab_curve *curve, double step, double time_s, double value,
                   struct lab_arena *arena);

/* Whether its values came at enough different times to be drawn over time. */
bool lab_curve_has_times(const struct lab_curve *curve);
/* If not: whether the program holds its output back. One that prints fast has values with one time
 * as well, but no pauses between; how long it took before the first value says nothing. */
bool lab_curve_is_buffered(const struct lab_curve *curve);

/* Its points over time, or over steps. */
struct lab_curve_line lab_curve_line(const struct lab_curve *curve, bool over_time);

/* Between its points; of several at one place the last. NaN before the first and after the last.
 * `over_time`: x is time_s. */
double lab_curve_at(const struct lab_curve *curve, bool over_time, double x);

/* Whether the metric of that name is the run's epochs, and they are its steps: it counts no others
 * (workload/command/printed.c). */
bool lab_curve_is_epoch_axis(const char *name, const struct lab_curve *curve);

/* --- those of a run --- */

struct lab_metric_curve {
    const char *name, *unit;
    int rank; /* -1 = of the whole run */
    struct lab_curve curve;
};

struct lab_metric_curves {          /* {.arena = …} = empty */
    struct lab_metric_curve *items; /* in the order of their first values */
    int count;
    int64_t last; /* the store's number of the last value that was taken in; 0 = none */
    struct lab_arena *arena;
};

/* The curve of that name and rank; a new one where there is none yet. */
struct lab_metric_curve *lab_metric_curves_get(struct lab_metric_curves *curves, const char *name,
                                               const char *unit, int rank);
