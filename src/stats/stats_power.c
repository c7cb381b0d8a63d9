/*
 * stats_power.c: how likely a difference is found, and how many values that takes.
 *
 * The power of Mann and Whitney's test depends on the whole distribution; by its asymptotic
 * relative efficiency it is that of a t test with fewer values.
 */
#include "stats/stats.h"

#include <math.h>

#define NORMAL_FROM 1e6 /* values from which t is the normal distribution */

static bool probability(double p) {
    return p > 0 && p < 1;
}

static double power_of(double effect, double nx, double ny, double alpha) {
    double freedom = nx + ny - 2;
    if (!(freedom > 0) || isinf(freedom))
        return NAN;
    double shift = fabs(effect) * sqrt(nx / (nx + ny) * ny);
    double limit = lab_stats_t_quantile(1 - alpha / 2, freedom);
    return 1 - lab_stats_t_noncentral_cdf(limit, freedom, shift) +
           lab_stats_t_noncentral_cdf(-limit, freedom, shift);
}

double lab_stats_power_t(double effect, double nx, double ny, double alpha) {
    if (isnan(effect) || !(nx >= 2) || !(ny >= 2) || !probability(alpha))
        return NAN;
    return power_of(effect, nx, ny, alpha);
}

double lab_stats_power_mann_whitney(double effect, double nx, double ny, double alpha,
                                    double efficiency) {
    if (isnan(effect) || !(nx >= 2) || !(ny >= 2) || !probability(alpha) || !(efficiency > 0) ||
        isinf(nx) || isinf(ny))
        return NAN;
    if (lab_stats_mann_whitney_least_p((size_t)nx, (size_t)ny) > alpha)
        return 0;
    return power_of(effect, efficiency * nx, efficiency * ny, alpha);
}

/* The fewest values in each sample whose ranks can be significant at all. */
static double least_ranks(double alpha) {
    size_t n = 2;
    while (lab_stats_mann_whitney_least_p(n, n) > alpha)
        n++;
    return (double)n;
}

/* The smallest n from `least` on whose t test, with efficiency·n values, has the power. */
static double needed(double effect, double power, double alpha, double efficiency, double least) {
    double z = lab_stats_normal_quantile(1 - alpha / 2) + lab_stats_normal_quantile(power);
    double about = 2 * z * z / (effect * effect) / efficiency;
    if (!(z > 0) || power <= alpha)
        return least; /* chance alone is significant so often */
    if (about > NORMAL_FROM)
        return ceil(about);
    double low = least, high = least;
    while (power_of(effect, efficiency * high, efficiency * high, alpha) < power) {
        low = high + 1;
        high *= 2;
    }
    while (low < high) {
        double middle = floor((low + high) / 2);
        if (power_of(effect, efficiency * middle, efficiency * middle, alpha) >= power)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static bool answerable(double effect, double power, double alpha) {
    return !isnan(effect) && probability(power) && probability(alpha);
}

double lab_stats_needed_t(double effect, double power, double alpha) {
    if (!answerable(effect, power, alpha))
        return NAN;
    return effect == 0 ? (double)INFINITY : needed(effect, power, alpha, 1, 2);
}

double lab_stats_needed_mann_whitney(double effect, double power, double alpha, double efficiency) {
    if (!answerable(effect, power, alpha) || !(efficiency > 0))
        return NAN;
    return effect == 0 ? (double)INFINITY
                       : needed(effect, power, alpha, efficiency, least_ranks(alpha));
}

double lab_stats_needed_delta(double delta, double power, double alpha) {
    if (!answerable(delta, power, alpha) || fabs(delta) > 1)
        return NAN;
    if (delta == 0)
        return INFINITY;
    double z = lab_stats_normal_quantile(1 - alpha / 2) + lab_stats_normal_quantile(power);
    return fmax(least_ranks(alpha), ceil(2 * z * z / (3 * delta * delta)));
}
