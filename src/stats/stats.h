/*
 * stats.h: numbers in, numbers out. No routine here knows what its numbers mean, allocates anything
 * its caller sees, or fails: where a figure doesn't exist (too few values, NaN among them) it is
 * NaN, and callers ask isnan. Inputs are never changed; order matters only where said.
 *
 * Each routine names its definition; tests/unit/stats checks it against values computed elsewhere.
 */
#ifndef LAB_STATS_STATS_H
#define LAB_STATS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lab_interval {
    double low, high;
    double confidence; /* reached, which may be more than was asked for */
};

double lab_stats_mean(const double *x, size_t n);              /* compensated sum */
double lab_stats_stddev(const double *x, size_t n);            /* sample, n − 1 */
double lab_stats_stddev_population(const double *x, size_t n); /* n */
double lab_stats_min(const double *x, size_t n);
double lab_stats_max(const double *x, size_t n);

/* Linear between order statistics at (n−1)·q: Hyndman and Fan's type 7, as R's and NumPy's default.
 */
double lab_stats_quantile(const double *x, size_t n, double q);
double lab_stats_median(const double *x, size_t n);

/* Median of |x − median|; `scaled` × 1.4826 estimates σ of normal data. */
double lab_stats_mad(const double *x, size_t n, bool scaled);

/* Standard deviation over mean. */
double lab_stats_cv(const double *x, size_t n);

/*
 * Interval of the median from order statistics (binomial, symmetric ranks, distribution-free). With
 * too few values for `confidence` the widest one, with the confidence it has; n < 2: NaN.
 */
struct lab_interval lab_stats_median_interval(const double *x, size_t n, double confidence);

/* t interval of the mean. */
struct lab_interval lab_stats_mean_interval(const double *x, size_t n, double confidence);

typedef double lab_statistic(const double *x, size_t n);

/*
 * Bias-corrected and accelerated bootstrap (Efron 1987), acceleration by jackknife, `resamples`
 * drawn by counter from `seed`, so that it repeats. Zero variance gives a point.
 */
struct lab_interval lab_stats_bca_interval(const double *x, size_t n, lab_statistic *statistic,
                                           double confidence, int resamples, uint64_t seed);

/*
 * The same for values that depend on their neighbours: resamples circular blocks of `block` values
 * (0 = chosen by lab_stats_block_length). Percentile interval.
 */
struct lab_interval lab_stats_block_interval(const double *x, size_t n, lab_statistic *statistic,
                                             size_t block, double confidence, int resamples,
                                             uint64_t seed);
size_t lab_stats_block_length(const double *x, size_t n);

double lab_stats_autocorrelation(const double *x, size_t n, size_t lag);
/* n over the integrated autocorrelation time (initial positive sequence); between 1 and n. */
double lab_stats_effective_size(const double *x, size_t n);

enum lab_outlier { LAB_OUTLIER_NONE, LAB_OUTLIER_MILD, LAB_OUTLIER_SEVERE };

struct lab_outlier_count {
    size_t low_mild, low_severe, high_mild, high_severe;
};

/* Tukey's fences: beyond 1.5 IQR mild, beyond 3 IQR severe. `marks` (n of them) may be NULL. */
struct lab_outlier_count lab_stats_tukey(const double *x, size_t n, enum lab_outlier *marks);

/* 0.6745·(x − median)/MAD (Iglewicz and Hoaglin); beyond 3.5 is an outlier. */
void lab_stats_modified_z(const double *x, size_t n, double *ret_z);

/*
 * How many leading values are warm-up (pyperf's rule): the fewest, at most half, after which the
 * first value left is no outlier of the rest (≤ Q3 + 1.5 IQR) and the first half of the rest agrees
 * with the second: mean difference in [−50 %, +10 %], |ΔQ1|, |ΔQ3| ≤ 5 %, |ΔMAD| ≤ 10 %.
 * `ret_steady` tells whether such a point was found. x in the order of time.
 */
size_t lab_stats_warmup(const double *x, size_t n, bool *ret_steady);

#endif
