/*
 * stats_series.c: how much values depend on their neighbours in time.
 *
 * Products of lags are summed directly while few lags are needed, which is nearly always; a series
 * that is still correlated after DIRECT_LAGS gets all of its lags from one Fourier transform.
 */
#include "base/mem.h"
#include "stats/stats.h"

#include <gsl/gsl_fft_halfcomplex.h>
#include <gsl/gsl_fft_real.h>
#include <math.h>

#define DIRECT_LAGS 64

/* Deviations from the mean over the largest of them, on the heap; NULL if constant or not finite.
 */
static double *deviations(const double *x, size_t n, double *ret_squares) {
    double mean = lab_stats_mean(x, n), largest = 0;
    if (!isfinite(mean))
        return NULL;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i] - mean));
    if (largest == 0 || isinf(largest))
        return NULL;
    double *d = lab_mem_resize(NULL, n, sizeof *d);
    *ret_squares = 0;
    for (size_t i = 0; i < n; i++) {
        d[i] = (x[i] - mean) / largest;
        *ret_squares += d[i] * d[i];
    }
    return d;
}

static double lag_products(const double *d, size_t n, size_t lag) {
    double sum = 0;
    for (size_t i = 0; i + lag < n; i++)
        sum += d[i] * d[i + lag];
    return sum;
}

/* Autocorrelations of any lag below n, computed as they are asked for. */
struct correlogram {
    const double *d;
    size_t n;
    double squares;
    double *all; /* every lag, once a far one was asked for */
};

/* |F|² transformed back; zeros behind the values keep the ends from touching. */
static double *all_lags(const double *d, size_t n) {
    size_t size = 2;
    while (size < 2 * n)
        size *= 2;
    double *f = lab_mem_alloc(size, sizeof *f);
    for (size_t i = 0; i < n; i++)
        f[i] = d[i];
    gsl_fft_real_radix2_transform(f, 1, size);
    f[0] *= f[0];
    f[size / 2] *= f[size / 2];
    for (size_t i = 1; i < size / 2;
         i++) { /* real parts in front, imaginary ones mirrored behind */
        f[i] = f[i] * f[i] + f[size - i] * f[size - i];
        f[size - i] = 0;
    }
    gsl_fft_halfcomplex_radix2_inverse(f, 1, size);
    return f;
}

static double correlation_at(struct correlogram *c, size_t lag) {
    if (lag >= c->n)
        return 0;
    if (lag < DIRECT_LAGS)
        return lag_products(c->d, c->n, lag) / c->squares;
    if (!c->all)
        c->all = all_lags(c->d, c->n);
    return c->all[lag] / c->squares;
}

double lab_stats_effective_size(const double *x, size_t n) {
    struct correlogram c = {.n = n};
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return NAN;
    }
    double *d = n > 0 ? deviations(x, n, &c.squares) : NULL;
    if (!d)
        return n > 0 ? (double)n : NAN;
    c.d = d;
    /* τ = −1 + 2 Σ Γ_k, Γ_k = ρ(2k) + ρ(2k+1), as long as Γ_k > 0 (Geyer 1992) */
    double time = -1;
    for (size_t lag = 0; lag < n; lag += 2) {
        double pair = correlation_at(&c, lag) + correlation_at(&c, lag + 1);
        if (pair <= 0)
            break;
        time += 2 * pair;
    }
    lab_mem_free(c.all);
    lab_mem_free(d);
    return time <= 1 ? (double)n : fmax(1, (double)n / time);
}

double lab_stats_pair_effective_size(const double *x, const double *y, size_t n) {
    struct correlogram of_x = {.n = n}, of_y = {.n = n};
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i]))
            return NAN;
    }
    if (n == 0)
        return NAN;
    double *dx = deviations(x, n, &of_x.squares), *dy = deviations(y, n, &of_y.squares);
    of_x.d = dx;
    of_y.d = dy;
    /* The products of two series' autocorrelations are those of the series of products, which is
     * what a correlation is the mean of: Geyer's argument holds for it as well. */
    double time = dx && dy ? -1 : 1;
    for (size_t lag = 0; dx && dy && lag < n; lag += 2) {
        double pair = correlation_at(&of_x, lag) * correlation_at(&of_y, lag) +
                      correlation_at(&of_x, lag + 1) * correlation_at(&of_y, lag + 1);
        if (pair <= 0)
            break;
        time += 2 * pair;
    }
    lab_mem_free(of_x.all);
    lab_mem_free(of_y.all);
    lab_mem_free(dx);
    lab_mem_free(dy);
    return time <= 1 ? (double)n : fmax(1, (double)n / time);
}
