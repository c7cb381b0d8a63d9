/*
 * drift.h: whether a series of figures has a trend, and whether two series go together: by ranks, so
 * that one wild value can't make either.
 */
#ifndef LAB_ANALYSIS_BALANCE_DRIFT_H
#define LAB_ANALYSIS_BALANCE_DRIFT_H

#include <stdbool.h>

struct lab_drift {
    int direction;      /* 1 = grows, -1 = falls, 0 = no trend that chance doesn't explain */
    double first, last; /* medians of the first and the last third */
    int worst;          /* index of the largest; -1 = there is none */
};

/*
 * Values in the order of time, NaN = none. A trend is one by Mann and Kendall's test at 5 %, two-sided,
 * exact up to ties (which make it say less), whose thirds differ by a point (0.01) at least: smaller
 * ones matter to nobody.
 */
struct lab_drift lab_drift_make(const double *values, int count);

struct lab_rank_correlation {
    double coefficient; /* Spearman's; NaN = fewer than five values, or all of them the same */
    bool significant;   /* at 5 %, two-sided, by Student's t */
};
struct lab_rank_correlation lab_rank_correlation_make(const double *a, const double *b, int count);

#endif
