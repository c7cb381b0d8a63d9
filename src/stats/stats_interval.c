/* stats_interval.c: intervals that need no resampling. */
#include "base/mem.h"
#include "stats/stats.h"

#include <math.h>

static const struct lab_interval unknown = {NAN, NAN, NAN};

/* The largest k for which P(X ≤ k − 1) ≤ (1 − confidence)/2, X binomial(n, 1/2): then the median
 * lies between the k-th smallest and the k-th largest value so often. 1 if there is none. */
static int64_t symmetric_rank(int64_t n, double confidence) {
    double tail = (1 - confidence) / 2;
    int64_t low = 1, high = (n + 1) / 2; /* the answer is in [low, high] */
    while (low < high) {
        int64_t k = low + (high - low + 1) / 2;
        if (lab_stats_binomial_cdf(k - 1, n, 0.5) <= tail)
            low = k;
        else
            high = k - 1;
    }
    return low;
}

struct lab_interval lab_stats_median_interval_sorted(const double *sorted, size_t n,
                                                     double effective_n, double confidence) {
    if (n < 2 || !(effective_n >= 1) || !(confidence > 0 && confidence < 1))
        return unknown;
    int64_t count = effective_n >= (double)n ? (int64_t)n : (int64_t)effective_n;
    int64_t k = symmetric_rank(count, confidence);
    double reached = 1 - 2 * lab_stats_binomial_cdf(k - 1, count, 0.5);
    size_t rank = (size_t)k;
    if (count < (int64_t)n) {
        /* the k-th of `count` lies where probability k/(count + 1) lies, on average */
        rank = (size_t)((double)k / (double)(count + 1) * (double)(n + 1));
        rank = rank < 1 ? 1 : rank > (n + 1) / 2 ? (n + 1) / 2 : rank;
    }
    return (struct lab_interval){sorted[rank - 1], sorted[n - rank], fmax(0, reached)};
}

struct lab_interval lab_stats_median_interval(const double *x, size_t n, double confidence) {
    if (n < 2)
        return unknown;
    LAB_AUTO_FREE double *sorted = lab_mem_resize(NULL, n, sizeof *sorted);
    struct lab_interval interval = unknown;
    if (lab_stats_sort(x, n, sorted))
        interval = lab_stats_median_interval_sorted(sorted, n, (double)n, confidence);
    return interval;
}

struct lab_interval lab_stats_mean_interval(const double *x, size_t n, double confidence) {
    double mean = lab_stats_mean(x, n), stddev = lab_stats_stddev(x, n);
    if (isnan(stddev) || !(confidence > 0 && confidence < 1))
        return unknown;
    double t = lab_stats_t_quantile(0.5 + confidence / 2, (double)(n - 1));
    double half = t * stddev / sqrt((double)n);
    return (struct lab_interval){mean - half, mean + half, confidence};
}

struct lab_interval lab_stats_log_mean_interval(const double *x, size_t n, double confidence) {
    LAB_AUTO_FREE double *logs = lab_mem_resize(NULL, n + 1, sizeof *logs);
    for (size_t i = 0; i < n; i++)
        logs[i] = x[i] > 0 ? log(x[i]) : (double)NAN;
    struct lab_interval interval = lab_stats_mean_interval(logs, n, confidence);
    return (struct lab_interval){exp(interval.low), exp(interval.high), interval.confidence};
}
