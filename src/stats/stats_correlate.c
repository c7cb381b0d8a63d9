/*
 * stats_correlate.c: whether two series go together.
 *
 * Neighbours in time resemble each other, and two series that both do so go together by chance far
 * oftener than independent values would; hence p values and intervals count independent pairs.
 */
#include "stats/stats.h"

#include <math.h>

#define ORDERS_MAX 9 /* pairs of which all 362,880 orders are tried */

static const struct lab_interval unknown = {NAN, NAN, NAN};

/* The mean, and the largest deviation from it; false if constant or not finite. */
static bool centre(const double *x, size_t n, double *ret_mean, double *ret_largest) {
    *ret_mean = lab_stats_mean(x, n);
    *ret_largest = 0;
    if (!isfinite(*ret_mean))
        return false;
    for (size_t i = 0; i < n; i++)
        *ret_largest = fmax(*ret_largest, fabs(x[i] - *ret_mean));
    return *ret_largest > 0 && isfinite(*ret_largest);
}

static double coefficient(const double *x, const double *y, size_t n) {
    double mean_x, mean_y, unit_x, unit_y, common = 0, of_x = 0, of_y = 0;
    if (n < 3 || !centre(x, n, &mean_x, &unit_x) || !centre(y, n, &mean_y, &unit_y))
        return NAN;
    for (size_t i = 0; i < n; i++) {
        double dx = (x[i] - mean_x) / unit_x, dy = (y[i] - mean_y) / unit_y;
        common += dx * dy;
        of_x += dx * dx;
        of_y += dy * dy;
    }
    return fmax(-1, fmin(1, common / sqrt(of_x) / sqrt(of_y)));
}

static double p_of(double r, double effective_n) {
    if (!(effective_n > 2))
        return NAN;
    double freedom = effective_n - 2;
    return lab_stats_t_two_sided(r * sqrt(freedom / ((1 - r) * (1 + r))), freedom);
}

/* By Fisher's z; `widen` is the factor on its variance. */
static struct lab_interval interval_of(double r, double effective_n, double confidence,
                                       double widen) {
    if (isnan(r) || !(effective_n > 3) || !(confidence > 0 && confidence < 1))
        return unknown;
    if (fabs(r) == 1)
        return (struct lab_interval){r, r, confidence};
    double half = lab_stats_normal_quantile(0.5 + confidence / 2) * sqrt(widen / (effective_n - 3));
    return (struct lab_interval){tanh(atanh(r) - half), tanh(atanh(r) + half), confidence};
}

struct lab_correlation lab_stats_pearson(const double *x, const double *y, size_t n,
                                         double effective_n, double confidence) {
    double size = fmin(effective_n, (double)n), r = coefficient(x, y, n);
    if (isnan(effective_n))
        size = NAN;
    return (struct lab_correlation){r, p_of(r, size), interval_of(r, size, confidence, 1)};
}

/*
 * Twice the smaller tail of Σ x y over all orders of y (Heap's algorithm: each differs from the
 * last by one swap). Of doubled ranks, so that all sums are whole and equal ones are equal.
 */
static double p_by_orders(const double *ranks_x, const double *ranks_y, size_t n) {
    double x[ORDERS_MAX] = {0}, y[ORDERS_MAX] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        x[i] = 2 * ranks_x[i];
        y[i] = 2 * ranks_y[i];
        sum += x[i] * y[i];
    }
    double found = sum, below = 1, above = 1, total = 1;
    size_t counters[ORDERS_MAX] = {0};
    for (size_t i = 1; i < n;) {
        if (counters[i] == i) {
            counters[i++] = 0;
            continue;
        }
        size_t other = i % 2 == 0 ? 0 : counters[i];
        sum += (x[other] - x[i]) * (y[i] - y[other]);
        double keep = y[i];
        y[i] = y[other];
        y[other] = keep;
        below += sum <= found;
        above += sum >= found;
        total++;
        counters[i]++;
        i = 1;
    }
    return fmin(1, 2 * fmin(below, above) / total);
}

struct lab_correlation lab_stats_spearman_ranked(const double *ranks_x, const double *ranks_y,
                                                 size_t n, double effective_n, double confidence) {
    struct lab_correlation result = lab_stats_pearson(ranks_x, ranks_y, n, effective_n, confidence);
    result.interval = interval_of(result.r, isnan(result.p) ? 0 : fmin(effective_n, (double)n),
                                  confidence, 1 + result.r * result.r / 2);
    if (!isnan(result.r) && n <= ORDERS_MAX && effective_n >= (double)n)
        result.p = p_by_orders(ranks_x, ranks_y, n);
    return result;
}
