/* stats_outlier.c: marks values that stand apart; nothing here removes any. */
#include "stats/stats.h"

#include <math.h>

#define MILD_FENCE   1.5
#define SEVERE_FENCE 3.0

static bool any_nan(const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return true;
    }
    return false;
}

struct lab_outlier_count lab_stats_tukey(const double *x, size_t n, enum lab_outlier *marks) {
    struct lab_outlier_count count = {0};
    for (size_t i = 0; marks && i < n; i++)
        marks[i] = LAB_OUTLIER_NONE;
    if (n == 0 || any_nan(x, n))
        return count;
    double q1 = lab_stats_quantile(x, n, 0.25), q3 = lab_stats_quantile(x, n, 0.75);
    double iqr = q3 - q1;
    for (size_t i = 0; i < n; i++) {
        double beyond = fmax(q1 - x[i], x[i] - q3);
        bool severe = beyond > SEVERE_FENCE * iqr, mild = beyond > MILD_FENCE * iqr;
        if (!mild)
            continue;
        if (marks)
            marks[i] = severe ? LAB_OUTLIER_SEVERE : LAB_OUTLIER_MILD;
        if (x[i] < q1)
            severe ? count.low_severe++ : count.low_mild++;
        else
            severe ? count.high_severe++ : count.high_mild++;
    }
    return count;
}
