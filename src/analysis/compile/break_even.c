/* break_even.c: a ratio of two means over blocks, which vary together: Fieller's interval. */
#include "analysis/compile/break_even.h"

#include "analysis/claims/contrast.h"
#include "stats/stats.h"

#include <math.h>

#define CONFIDENCE 0.95

static double covariance(const double *x, const double *y, int n) {
    double mean_x = lab_stats_mean(x, (size_t)n), mean_y = lab_stats_mean(y, (size_t)n), sum = 0;
    for (int i = 0; i < n; i++)
        sum += (x[i] - mean_x) * (y[i] - mean_y);
    return sum / (n - 1);
}

struct lab_claim compile_break_even(const double *costs_s, const double *saved_s, int n) {
    struct lab_claim claim = lab_claim_none;
    claim.unit = "samples";
    claim.n = n;
    if (n < 2)
        return claim;
    double cost = lab_stats_mean(costs_s, (size_t)n), saved = lab_stats_mean(saved_s, (size_t)n),
           t = lab_stats_t_quantile((1 + CONFIDENCE) / 2, n - 1), k = t * t / n,
           a = saved * saved - k * covariance(saved_s, saved_s, n),
           b = cost * saved - k * covariance(costs_s, saved_s, n),
           c = cost * cost - k * covariance(costs_s, costs_s, n),
           root = sqrt(fmax(0, b * b - a * c));
    if (!(a > 0) || !(saved > 0) || !(b > root))
        return claim;
    claim.effect = cost / saved;
    claim.low = (b - root) / a;
    claim.high = (b + root) / a;
    claim.confidence = CONFIDENCE;
    lab_claim_judge(&claim, NAN);
    return claim;
}
