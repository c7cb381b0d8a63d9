/*
 * stats.h: numbers in, numbers out. No routine here knows what its numbers mean, allocates anything
 * its caller sees, or fails: where a figure doesn't exist (too few values, NaN among them) it is
 * NaN, and callers ask isnan. Inputs are never changed; order matters only where said. All of it
 * may be called from several threads.
 *
 * Each routine names its definition; tests/unit/stats checks it against values computed elsewhere.
 */
#pragma once

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
double lab_stats_t_two_sided(double t, double degrees_of_freedom); /* P(|T| ≥ |t|) */
double lab_stats_t_noncentral_cdf(double t, double degrees_of_freedom, double noncentrality);
double lab_stats_beta_quantile(double p, double a, double b);
double lab_stats_binomial_pmf(int64_t k, int64_t n, double p); /* P(X = k) */
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

/*
 * Interval of the median from order statistics (binomial, symmetric ranks, distribution-free). With
 * too few values for `confidence` the widest one, with the confidence it has; n < 2: NaN.
 */
struct lab_interval lab_stats_median_interval(const double *x, size_t n, double confidence);

/*
 * The same for values that are worth only `effective_n` independent ones
 * (lab_stats_effective_size): the ranks that so many would have, stretched to n and rounded
 * outwards. effective_n = n gives lab_stats_median_interval.
 */
struct lab_interval lab_stats_median_interval_sorted(const double *sorted, size_t n,
                                                     double effective_n, double confidence);

/* t interval of the mean. */
struct lab_interval lab_stats_mean_interval(const double *x, size_t n, double confidence);

/* Of positive values, such as rates: the t interval of the mean logarithm, put back. It is of the
 * geometric mean, and no end is below 0. NaN where a value isn't positive. */
struct lab_interval lab_stats_log_mean_interval(const double *x, size_t n, double confidence);

/* n over the integrated autocorrelation time (Geyer's initial positive sequence); between 1 and n;
 * n of constant values is n. */
double lab_stats_effective_size(const double *x, size_t n);

enum lab_outlier { LAB_OUTLIER_NONE, LAB_OUTLIER_MILD, LAB_OUTLIER_SEVERE };

struct lab_outlier_count {
    size_t low_mild, low_severe, high_mild, high_severe;
};

/* Tukey's fences: beyond 1.5 IQR mild, beyond 3 IQR severe. `marks` (n of them) may be NULL. */
struct lab_outlier_count lab_stats_tukey(const double *x, size_t n, enum lab_outlier *marks);

/*
 * How many leading values are warm-up (pyperf's rule): the fewest, at most half, after which the
 * first value left is no outlier of the rest (≤ Q3 + 1.5 IQR) and the first half of the rest agrees
 * with the second: mean difference in [−50 %, +10 %], |ΔQ1|, |ΔQ3| ≤ 5 %, |ΔMAD| ≤ 10 %, all
 * relative to the second half. (Where that half's MAD is 0, the first's may be 1 % of the median.)
 * `ret_steady` tells whether such a point was found, which takes at least 4 values; n otherwise. x
 * in the order of time. Above 512 values, only every (n/512)th is tried.
 */
size_t lab_stats_warmup(const double *x, size_t n, bool *ret_steady);

/* --- estimates and tests --- */

struct lab_effect {
    double value;
    struct lab_interval interval;
};

/* Welch and Satterthwaite's degrees of freedom of a sum of two variances, each with its own. */
double lab_stats_welch_freedom(double variance_x, double freedom_x, double variance_y,
                               double freedom_y);

/* --- many tests, and shares --- */

/* Benjamini and Hochberg's adjusted p values: those ≤ q have a false discovery rate of q. NaN and
 * what isn't a probability stay NaN and don't count. `ret_adjusted` may be `p`. */
void lab_stats_adjust_bh(const double *p, size_t n, double *ret_adjusted);
/* Holm's: that any of those ≤ q is false has a probability of q. They are some of `tests` that
 * could have been made; NaN likewise. */
void lab_stats_adjust_holm(const double *p, size_t n, size_t tests, double *ret_adjusted);

/* What variances of few values each are expected to be before their values are seen. */
struct lab_variance_prior {
    double variance;
    double freedom; /* degrees that it counts as; 0 = nothing is known, infinite: all are one */
};
struct lab_variance_prior lab_stats_variance_prior(const double *variances, const double *freedoms,
                                                   size_t n);

/* Two-sided exact binomial test of k in n against `share`: all outcomes no more probable than k. */
double lab_stats_binomial_test(int64_t k, int64_t n, double share);
/* Clopper and Pearson's interval. A bound on one side at 99 % is an end of the interval at 98 %. */
struct lab_interval lab_stats_binomial_interval(int64_t k, int64_t n, double confidence);

/* --- going together --- */

/* Ranks from 1; equal values share the mean of theirs. Returns false (ranks untouched) if there is
 * a NaN. */
bool lab_stats_ranks(const double *x, size_t n, double *ret_ranks);

/*
 * How many independent pairs n pairs of two series in the order of time are worth to their
 * correlation: n / (1 + 2 Σ ρ_x(k) ρ_y(k)) (Bartlett 1935), summed in pairs of lags while those are
 * positive (Geyer 1992); between 1 and n. If either doesn't depend on its neighbours, n.
 */
double lab_stats_pair_effective_size(const double *x, const double *y, size_t n);

struct lab_correlation {
    double r;
    double p; /* two-sided, of r = 0 */
    struct lab_interval interval;
};

/*
 * Correlation of n pairs that are worth `effective_n` independent ones (n: all are; otherwise
 * lab_stats_pair_effective_size, of the ranks for Spearman). p by Student's t with effective_n − 2
 * degrees; Spearman's with all independent and up to 9 pairs by all orders, given the ties.
 * Interval by Fisher's z, its variance 1/(effective_n − 3), for Spearman's (1 + r²/2)/(effective_n
 * − 3) (Bonett and Wright 2000). Either series constant, NaN or ±∞ (Spearman: NaN) among them, or n
 * < 3: all NaN. effective_n ≤ 2: no p; ≤ 3: no interval.
 */
struct lab_correlation lab_stats_pearson(const double *x, const double *y, size_t n,
                                         double effective_n, double confidence);
/* Of ranks that lab_stats_ranks gave. */
struct lab_correlation lab_stats_spearman_ranked(const double *ranks_x, const double *ranks_y,
                                                 size_t n, double effective_n, double confidence);

struct lab_trend_test {
    double s; /* pairs that rise − pairs that fall */
    double p; /* two-sided */
};

/* Mann and Kendall's test for a trend, x in the order of time, independent of each other. Up to 40
 * values as if there were no ties (which makes it say less), exact without them; normal with the
 * corrections for ties and continuity beyond. n < 2: NaN; constant: p = 1. */
struct lab_trend_test lab_stats_mann_kendall(const double *x, size_t n);

/* --- how many values it takes --- */

/* The fewest values in each of two samples with which the two-sided t test at `alpha` finds means
 * that differ by `effect` standard deviations with `power`; noncentral t, exact for normal values
 * of equal spread. ∞ for no effect, NaN for a power or alpha outside (0, 1). */
double lab_stats_needed_t(double effect, double power, double alpha);
