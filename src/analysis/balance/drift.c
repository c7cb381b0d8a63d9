/* drift.c: trends by ranks. */
#include "analysis/balance/drift.h"

#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>

#define ALPHA 0.05
#define POINT 0.01

struct lab_drift lab_drift_make(const double *values, int count) {
    struct lab_drift drift = {0, NAN, NAN, -1};
    double *there = lab_mem_alloc((size_t)count + 1, sizeof *there);
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (isnan(values[i]))
            continue;
        there[n++] = values[i];
        if (drift.worst < 0 || values[i] > values[drift.worst])
            drift.worst = i;
    }
    struct lab_trend_test test = lab_stats_mann_kendall(there, (size_t)n);
    int third = n / 3 > 0 ? n / 3 : n;
    if (n > 0) {
        drift.first = lab_stats_median(there, (size_t)third);
        drift.last = lab_stats_median(there + n - third, (size_t)third);
    }
    if (test.p < ALPHA && fabs(drift.last - drift.first) >= POINT)
        drift.direction = test.s > 0 ? 1 : -1;
    lab_mem_free(there);
    return drift;
}
