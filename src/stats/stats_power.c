/* stats_power.c: how many values it takes to find a difference. */
#include "stats/stats.h"

#include <math.h>

#define LEAST       2   /* values of a sample whose spread is known */
#define NORMAL_FROM 1e6 /* values from which t is the normal distribution */

static bool probability(double p) {
    return p > 0 && p < 1;
}

/* With n values in each sample. */
static double power_of(double effect, double n, double alpha) {
    double freedom = 2 * n - 2, shift = fabs(effect) * sqrt(n / 2);
    double limit = lab_stats_t_quantile(1 - alpha / 2, freedom);
    return 1 - lab_stats_t_noncentral_cdf(limit, freedom, shift) +
           lab_stats_t_noncentral_cdf(-limit, freedom, shift);
}

/* The smallest n whose t test has the power. */
static double needed(double effect, double power, double alpha) {
    double z = lab_stats_normal_quantile(1 - alpha / 2) + lab_stats_normal_quantile(power);
    double about = 2 * z * z / (effect * effect);
    if (!(z > 0) || power <= alpha)
        return LEAST; /* chance alone is significant so often */
    if (about > NORMAL_FROM)
        return ceil(about);
    double low = LEAST, high = LEAST;
    while (power_of(effect, high, alpha) < power) {
        low = high + 1;
        high *= 2;
    }
    while (low < high) {
        double middle = floor((low + high) / 2);
        if (power_of(effect, middle, alpha) >= power)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

double lab_stats_needed_t(double effect, double power, double alpha) {
    if (isnan(effect) || !probability(power) || !probability(alpha))
        return NAN;
    return effect == 0 ? (double)INFINITY : needed(effect, power, alpha);
}
