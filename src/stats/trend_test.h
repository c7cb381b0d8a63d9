/*
 * trend_test.h: slopes and steps of a series in time whose values wander by themselves.
 *
 * What is left beside a level, a slope or a step is taken to be the sum of a wander that is
 * forgotten after a while (Ornstein and Uhlenbeck's) and of values that are independent. How long
 * its memory is, and how much of the spread wanders, isn't supposed: the series has to say, and an
 * interval holds every effect that the likelihood leaves under any of them. A series that is short
 * for its memory has wide intervals therefore: nothing needs to be said about how long one has to
 * be.
 */
#pragma once

#include <stddef.h>

struct lab_trend_series {
    const double *times_s; /* rising */
    const double *values;
    size_t n;
};

struct lab_trend_effect {
    double value;     /* under what is most likely; NaN: too few values, or one isn't finite */
    double low, high; /* that hold it under all that is plausible */
    double p;         /* that there is none, likewise */
    double memory_s;  /* that is most likely; 0: nothing wanders */
};

/* By how much values rise in each second. Four values at least. */
struct lab_trend_effect lab_trend_slope(const struct lab_trend_series *series, double confidence);

/*
 * By how much the level after `starts[which]` is higher than before it, from one neighbouring start
 * to the next. All segments tell about the wander. `places`: the step was chosen among so many, and
 * its interval holds for all of them at once.
 */
struct lab_trend_effect lab_trend_step(const struct lab_trend_series *series, const size_t *starts,
                                       size_t start_count, size_t which, double confidence,
                                       size_t places);
