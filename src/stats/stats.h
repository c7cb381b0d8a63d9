/*
 * stats.h: numbers in, numbers out. No routine here knows what its numbers mean, allocates anything
 * its caller sees, or fails: where a figure doesn't exist (too few values, NaN among them) it is
 * NaN, and callers ask isnan. Inputs are never changed; order matters only where said. All of it
 * may be called from several threads.
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
    double confidence; /* of ranks: reached, often more than was asked for; of others: as asked */
};

/* Distributions (GSL). Probabilities outside (0, 1) give −∞, ∞ or NaN, as they should. */
double lab_stats_normal_cdf(double z);
double lab_stats_normal_quantile(double p);
double lab_stats_t_quantile(double p, double degrees_of_freedom);
double lab_stats_binomial_cdf(int64_t k, int64_t n, double p); /* P(X ≤ k) */

double lab_stats_mean(const double *x, size_t n);              /* compensated sum */
double lab_stats_stddev(const double *x, size_t n);            /* sample, n − 1 */
double lab_stats_stddev_population(const double *x, size_t n); /* n */
double lab_stats_min(const double *x, size_t n);
double lab_stats_max(const double *x, size_t n);

/* Linear between order statistics at (n−1)·q: Hyndman and Fan's type 7, as R's and NumPy's default.
 */
double lab_stats_quantile(const double *x, size_t n, double q);
double lab_stats_median(const double *x, size_t n);

/* For many quantiles of the same values: sorts them into `ret_sorted` (n of them), once. Returns
 * false if there is a NaN among them, which has no place in an order. */
bool lab_stats_sort(const double *x, size_t n, double *ret_sorted);
double lab_stats_quantile_sorted(const double *sorted, size_t n, double q);

/* Median of |x − median|; `scaled` × 1.4826 estimates σ of normal data. */
double lab_stats_mad(const double *x, size_t n, bool scaled);

/* Standard deviation over mean. */
double lab_stats_cv(const double *x, size_t n);

/*
 * Interval of the median from order statistics (binomial, symmetric ranks, distribution-free). With
 * too few values for `confidence` the widest one, with the confidence it has; n < 2: NaN.
 */
struct lab_interval lab_stats_median_interval(const double *x, size_t n, double confidence);

/*
 * The same for values that are worth only `effective_n` independent ones (lab_stats_effective_size):
 * the ranks that so many would have, stretched to n and rounded outwards. effective_n = n gives
 * lab_stats_median_interval.
 */
struct lab_interval lab_stats_median_interval_sorted(const double *sorted, size_t n,
                                                     double effective_n, double confidence);

/* t interval of the mean. */
struct lab_interval lab_stats_mean_interval(const double *x, size_t n, double confidence);

typedef double lab_statistic(const double *x, size_t n);

/*
 * Bias-corrected and accelerated bootstrap (Efron 1987), `resamples` drawn by counter from `seed`,
 * so that it repeats. The acceleration comes from the jackknife: leaving out one value at a time up
 * to 200 values, one of 200 interleaved groups beyond (same expectation, linear cost). Zero
 * variance gives a point; n < 2: NaN.
 *
 * With few values every bootstrap covers less than it is asked for: at 95 % and n = 40, 93.5 % for
 * medians and 91.9 % for means of lognormal values (σ = 0.5), counted by test_stats_coverage. Where
 * the median is wanted, ranks (above) keep their promise at any n.
 */
struct lab_interval lab_stats_bca_interval(const double *x, size_t n, lab_statistic *statistic,
                                           double confidence, int resamples, uint64_t seed);

/*
 * The same for values that depend on their neighbours, x in the order of time: resamples circular
 * blocks of `block` values (0 = chosen by lab_stats_block_length). Percentile interval, its
 * percentiles moved outwards as Student's t is from the normal with as many values as there are
 * blocks (Hesterberg 2015), since few blocks understate the spread. n < 2: NaN. At 95 % it covers
 * the median of 200 values with correlation 0.7 between neighbours in 91.2 %.
 */
struct lab_interval lab_stats_block_interval(const double *x, size_t n, lab_statistic *statistic,
                                             size_t block, double confidence, int resamples,
                                             uint64_t seed);

/* Politis and White (2004) for the circular bootstrap, corrected as by Patton, Politis and White
 * (2009), rounded; 1 to n/3. */
size_t lab_stats_block_length(const double *x, size_t n);

/* Σ (x_i − m)(x_{i+lag} − m) / Σ (x_i − m)², the biased estimator, as R's acf; constant: NaN. */
double lab_stats_autocorrelation(const double *x, size_t n, size_t lag);
/* n over the integrated autocorrelation time (Geyer's initial positive sequence); between 1 and n;
 * n of constant values is n. */
double lab_stats_effective_size(const double *x, size_t n);

enum lab_outlier { LAB_OUTLIER_NONE, LAB_OUTLIER_MILD, LAB_OUTLIER_SEVERE };

struct lab_outlier_count {
    size_t low_mild, low_severe, high_mild, high_severe;
};

/* Tukey's fences: beyond 1.5 IQR mild, beyond 3 IQR severe. `marks` (n of them) may be NULL. */
struct lab_outlier_count lab_stats_tukey(const double *x, size_t n, enum lab_outlier *marks);

/* 0.6745·(x − median)/MAD (Iglewicz and Hoaglin); beyond 3.5 is an outlier. Where the MAD is 0, the
 * median itself has 0 and any other value ±∞. */
void lab_stats_modified_z(const double *x, size_t n, double *ret_z);

/*
 * How many leading values are warm-up (pyperf's rule): the fewest, at most half, after which the
 * first value left is no outlier of the rest (≤ Q3 + 1.5 IQR) and the first half of the rest agrees
 * with the second: mean difference in [−50 %, +10 %], |ΔQ1|, |ΔQ3| ≤ 5 %, |ΔMAD| ≤ 10 %, all
 * relative to the second half. (Where that half's MAD is 0, the first's may be 1 % of the median.)
 * `ret_steady` tells whether such a point was found, which takes at least 4 values; n otherwise. x
 * in the order of time. Above 512 values, only every (n/512)th is tried.
 */
size_t lab_stats_warmup(const double *x, size_t n, bool *ret_steady);

#endif
