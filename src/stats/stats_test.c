/* stats_test.c: tests of means and shares, and what is left of many tests' p values. */
#include "base/list.h"
#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>

static const struct lab_interval unknown = {NAN, NAN, NAN};

double lab_stats_welch_freedom(double variance_x, double freedom_x, double variance_y,
                               double freedom_y) {
    double sum = variance_x + variance_y; /* shares of it, whose squares can't overflow */
    double share_x = variance_x / sum, share_y = variance_y / sum;
    return 1 / (share_x * share_x / freedom_x + share_y * share_y / freedom_y);
}

/* --- many tests --- */

struct numbered {
    double p;
    size_t index;
};

/* The smallest p first; what isn't a probability is left out, and adjusted to NaN. */
static size_t in_order(const double *p, size_t n, struct numbered *tests, double *ret_adjusted) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] >= 0 && p[i] <= 1)
            tests[count++] = (struct numbered){p[i], i};
        else
            ret_adjusted[i] = NAN;
    }
    LAB_SORT(tests, count, LAB_BY(tests, p));
    return count;
}

void lab_stats_adjust_bh(const double *p, size_t n, double *ret_adjusted) {
    LAB_AUTO_FREE struct numbered *tests = lab_mem_resize(NULL, n + 1, sizeof *tests);
    size_t count = in_order(p, n, tests, ret_adjusted);
    double least = 1;
    for (size_t rank = count; rank >= 1; rank--) {
        const struct numbered *test = &tests[rank - 1];
        least = fmin(least, test->p * ((double)count / (double)rank));
        ret_adjusted[test->index] = least;
    }
}

void lab_stats_adjust_holm(const double *p, size_t n, size_t tests, double *ret_adjusted) {
    LAB_AUTO_FREE struct numbered *known = lab_mem_resize(NULL, n + 1, sizeof *known);
    size_t count = in_order(p, n, known, ret_adjusted);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fmin(1, known[i].p * ((double)tests - (double)i)));
        ret_adjusted[known[i].index] = most;
    }
}

/* --- shares --- */

/* The last k in [low, high] that is no more probable than `limit`, along a side of the distribution
 * on which it grows; low − 1 if there is none. With `mirror` k counts from n downwards. */
static int64_t last_improbable(int64_t low, int64_t high, int64_t n, double share, double limit,
                               bool mirror) {
    int64_t before = low - 1;
    while (before < high) {
        int64_t k = before + (high - before + 1) / 2;
        if (lab_stats_binomial_pmf(mirror ? n - k : k, n, share) <= limit)
            before = k;
        else
            high = k - 1;
    }
    return before;
}

double lab_stats_binomial_test(int64_t k, int64_t n, double share) {
    double at = lab_stats_binomial_pmf(k, n, share);
    if (isnan(at) || k < 0 || k > n || n == 0)
        return NAN;
    if (share == 0 || share == 1)
        return (share == 0 ? k == 0 : k == n) ? 1 : 0;
    double limit = at * (1 + 1e-7); /* equal ones may differ by rounding; R's margin */
    int64_t mode = (int64_t)floor((double)(n + 1) * share);
    mode = mode > n ? n : mode;
    if (k == mode || at >= lab_stats_binomial_pmf(mode, n, share) / (1 + 1e-7))
        return 1;
    /* P(X ≥ k) = P(n − X ≤ n − k), which keeps the figures of a small one */
    int64_t lower = k < mode ? k : last_improbable(0, mode - 1, n, share, limit, false);
    int64_t upper = k < mode ? last_improbable(0, n - mode - 1, n, share, limit, true) : n - k;
    return fmin(1, lab_stats_binomial_cdf(lower, n, share) +
                       lab_stats_binomial_cdf(upper, n, 1 - share));
}

struct lab_interval lab_stats_binomial_interval(int64_t k, int64_t n, double confidence) {
    if (k < 0 || n < 1 || k > n || !(confidence > 0 && confidence < 1))
        return unknown;
    double tail = (1 - confidence) / 2, hits = (double)k, misses = (double)(n - k);
    double low = k == 0 ? 0 : lab_stats_beta_quantile(tail, hits, misses + 1);
    /* from the other side: a share near 1 loses no figures of what it lacks */
    double high = k == n ? 1 : 1 - lab_stats_beta_quantile(tail, misses, hits + 1);
    return (struct lab_interval){low, high, confidence};
}
