/*
 * drift.h: whether a series of figures has a trend: by ranks, so that one wild value can't make it.
 */
#ifndef LAB_ANALYSIS_BALANCE_DRIFT_H
#define LAB_ANALYSIS_BALANCE_DRIFT_H

struct lab_drift {
    int direction;      /* 1 = grows, -1 = falls, 0 = no trend that chance doesn't explain */
    double first, last; /* medians of the first and the last third */
    int worst;          /* index of the largest; -1 = there is none */
};

/*
 * Values in the order of time, NaN = none. A trend is one by Mann and Kendall's test at 5 %,
 * two-sided (lab_stats_mann_kendall), whose thirds differ by a point (0.01) at least: smaller ones
 * matter to nobody.
 */
struct lab_drift lab_drift_make(const double *values, int count);

#endif
