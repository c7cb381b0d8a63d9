/* stats_warmup.c: where a series stops warming up, by pyperf's rule. */
#include "stats/stats.h"

#include <math.h>

#define FENCE              1.5 /* IQRs above Q3 that the first value may lie */
#define MEAN_FALL          0.50
#define MEAN_RISE          0.10
#define QUARTILE_CHANGE    0.05
#define SPREAD_CHANGE      0.10
#define SPREAD_BESIDE_NONE 0.01 /* of the median, where the second half has no spread to compare */
#define REST_LEAST         4    /* two values a half: fewer have no quartiles */
#define VALUES_EACH_TRIED  512

/* (a − b) / |b|; no change where both are equal, even 0. */
static double change(double a, double b) {
    return a == b ? 0 : (a - b) / fabs(b);
}

static bool halves_agree(const double *x, size_t n) {
    size_t half = n / 2, rest = n - half;
    const double *late = x + half;
    double mean = change(lab_stats_mean(x, half), lab_stats_mean(late, rest));
    if (!(mean >= -MEAN_FALL && mean <= MEAN_RISE))
        return false;
    for (int q = 1; q <= 3; q += 2) {
        double quartile =
            change(lab_stats_quantile(x, half, q / 4.0), lab_stats_quantile(late, rest, q / 4.0));
        if (!(fabs(quartile) <= QUARTILE_CHANGE))
            return false;
    }
    double early_mad = lab_stats_mad(x, half, false), late_mad = lab_stats_mad(late, rest, false);
    if (late_mad == 0)
        return early_mad <= SPREAD_BESIDE_NONE * fabs(lab_stats_median(x, n));
    return fabs(change(early_mad, late_mad)) <= SPREAD_CHANGE;
}

static bool steady_from_start(const double *x, size_t n) {
    double q1 = lab_stats_quantile(x + 1, n - 1, 0.25), q3 = lab_stats_quantile(x + 1, n - 1, 0.75);
    return x[0] <= q3 + FENCE * (q3 - q1) && halves_agree(x, n);
}

size_t lab_stats_warmup(const double *x, size_t n, bool *ret_steady) {
    size_t step = (n + VALUES_EACH_TRIED - 1) / VALUES_EACH_TRIED;
    *ret_steady = false;
    for (size_t skip = 0; n >= REST_LEAST && skip <= n / 2 && n - skip >= REST_LEAST;
         skip += step) {
        if (steady_from_start(x + skip, n - skip)) {
            *ret_steady = true;
            return skip;
        }
    }
    return n;
}
