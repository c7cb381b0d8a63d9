/*
 * stats_distribution.c: the distributions, from GSL. GSL's error handler ends the process unless it
 * is switched off, so every way in does that first.
 */
#include "stats/stats.h"
#include "stats/stats_solve.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_randist.h>
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

/* By the incomplete beta function: GSL's own t loses figures above 30 degrees. */
double lab_stats_t_two_sided(double t, double degrees_of_freedom) {
    lab_solve_prepare();
    double v = degrees_of_freedom;
    if (isnan(t) || !(v > 0))
        return NAN;
    if (isinf(v))
        return 2 * gsl_cdf_ugaussian_Q(fabs(t));
    if (isinf(t))
        return 0;
    double ratio = t * t / v;
    if (ratio > 1)
        return gsl_cdf_beta_P(1 / (1 + ratio), v / 2, 0.5);
    return gsl_cdf_beta_Q(ratio / (1 + ratio), 0.5, v / 2);
}

/* Where all of √(χ²/ν) lies but 1e-14 on either side. GSL's χ² has no inverse for large ν, which
 * is normal enough by then, with a deviation of 1/√2ν. */
static void scale_range(double v, double *ret_low, double *ret_high) {
    if (v > 200) {
        *ret_low = 1 - 9 / sqrt(2 * v);
        *ret_high = 1 + 9 / sqrt(2 * v);
        return;
    }
    *ret_low = sqrt(gsl_cdf_chisq_Pinv(1e-14, v) / v);
    *ret_high = sqrt(gsl_cdf_chisq_Qinv(1e-14, v) / v);
}

/*
 * P(T ≤ t) = ∫ Φ(t s − δ) f(s) ds, s = √(χ²/ν): the normal deviate over an estimated deviation,
 * taken apart. Gauss-Legendre; the density is divided by its own sum, which spares its constant.
 */
double lab_stats_t_noncentral_cdf(double t, double degrees_of_freedom, double noncentrality) {
    lab_solve_prepare();
    double v = degrees_of_freedom;
    if (isnan(t) || isnan(noncentrality) || !(v > 0))
        return NAN;
    if (isinf(v) || isinf(t) || isinf(noncentrality))
        return lab_stats_normal_cdf(t - noncentrality);
    enum { POINTS = 128 };
    gsl_integration_glfixed_table *table = gsl_integration_glfixed_table_alloc(POINTS);
    if (!table)
        return NAN;
    double low, high, sum = 0, total = 0;
    scale_range(v, &low, &high);
    for (size_t i = 0; i < POINTS; i++) {
        double s, weight;
        gsl_integration_glfixed_point(low, high, i, &s, &weight, table);
        /* s^(ν−1) exp(−ν s²/2), 1 at s = 1 */
        double density = weight * exp((v - 1) * log(s) - v * (s - 1) * (s + 1) / 2);
        total += density;
        sum += density * gsl_cdf_ugaussian_P(t * s - noncentrality);
    }
    gsl_integration_glfixed_table_free(table);
    return fmin(1, sum / total);
}

double lab_stats_beta_quantile(double p, double a, double b) {
    lab_solve_prepare();
    if (!(p >= 0 && p <= 1) || !(a > 0) || !(b > 0))
        return NAN;
    return p == 0 || p == 1 ? p : gsl_cdf_beta_Pinv(p, a, b);
}

double lab_stats_binomial_pmf(int64_t k, int64_t n, double p) {
    lab_solve_prepare();
    if (n < 0 || n > UINT_MAX || !(p >= 0 && p <= 1))
        return NAN;
    return k < 0 || k > n ? 0 : gsl_ran_binomial_pdf((unsigned)k, p, (unsigned)n);
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
