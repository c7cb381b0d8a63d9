/*
 * stats_distribution.c: the distributions, from GSL. GSL's error
 * handler ends the process unless it is switched off, so every way in does that first.
 */
#include "stats/stats.h"
#include "stats/stats_solve.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>

static void silence_gsl(void) {
    gsl_set_error_handler_off();
}

void lab_solve_prepare(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, silence_gsl);
}

double lab_stats_normal_cdf(double z) {
    lab_solve_prepare();
    return isnan(z) ? NAN : gsl_cdf_ugaussian_P(z);
}

double lab_stats_normal_quantile(double p) {
    lab_solve_prepare();
    if (!(p >= 0 && p <= 1))
        return NAN;
    return p == 0 ? -INFINITY : p == 1 ? INFINITY : gsl_cdf_ugaussian_Pinv(p);
}

double lab_stats_t_quantile(double p, double degrees_of_freedom) {
    lab_solve_prepare();
    if (!(p >= 0 && p <= 1) || !(degrees_of_freedom > 0))
        return NAN;
    if (isinf(degrees_of_freedom))
        return lab_stats_normal_quantile(p);
    return p == 0 ? -INFINITY : p == 1 ? INFINITY : gsl_cdf_tdist_Pinv(p, degrees_of_freedom);
}

double lab_stats_binomial_cdf(int64_t k, int64_t n, double p) {
    lab_solve_prepare();
    if (n < 0 || n > UINT_MAX || !(p >= 0 && p <= 1))
        return NAN;
    if (k < 0)
        return 0;
    if (k >= n)
        return 1;
    return gsl_cdf_binomial_P((unsigned)k, p, (unsigned)n);
}
