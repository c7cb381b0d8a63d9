/*
 * fit.h: laws fitted to measurements, and how far they can be trusted.
 *
 * A model gives y from a row of inputs and some coefficients; fitting finds the coefficients with
 * the least weighted sum of squares. As in stats.h nothing fails: a fit says in `state` why it has
 * no figures, and those are NaN then. Nothing is allocated that the caller sees. Huge and tiny
 * values are scaled before anything is squared.
 *
 * All intervals suppose errors that are independent, with the variance σ²/weight and about normal.
 * Those of linear fits are exact then; those of non-linear fits are first-order (delta method), as
 * R's nls gives them, and cover less than promised where few values meet a strongly curved law.
 */
#ifndef LAB_STATS_FIT_H
#define LAB_STATS_FIT_H

#include "stats/stats.h"

#define LAB_FIT_COEFFICIENTS_MAX 8

enum lab_fit_state {
    LAB_FIT_OK,
    LAB_FIT_UNUSABLE, /* NaN or ∞ among the values, a weight ≤ 0, inputs the law can't take */
    LAB_FIT_TOO_FEW,  /* fewer values than coefficients */
    LAB_FIT_RANK_DEFICIENT, /* several answers fit equally well: inputs that move together */
    LAB_FIT_NOT_CONVERGED,  /* non-linear only; the last coefficients are kept, without errors */
};

enum lab_fit_method { LAB_FIT_LINEAR, LAB_FIT_NONNEGATIVE, LAB_FIT_NONLINEAR };

struct lab_fit_data {
    const double *x; /* n rows of `inputs` numbers, row by row */
    const double *y;
    const double *weights; /* NULL: all 1. 1/y² makes relative errors count alike */
    size_t n, inputs;
};

struct lab_fit_model {
    const char *name;
    enum lab_fit_method method;
    size_t inputs, coefficients;
    double (*value)(const double *c, const double *x);
    /* ∂y/∂c. NULL: by central differences, with steps relative to each coefficient. Linear models
     * need it: it is the row of their design, and must not depend on c. */
    void (*gradient)(const double *c, const double *x, double *ret_gradient);
    /* Where to begin; false if the data can't be of this law. Non-linear only. */
    bool (*start)(const struct lab_fit_data *data, double *ret_c);
};

struct lab_fit {
    enum lab_fit_state state;
    enum lab_fit_method method;
    const struct lab_fit_model *model; /* NULL: y is the sum of inputs × coefficients */
    size_t n, p, rank;
    int iterations; /* of non-linear fits */
    double coefficients[LAB_FIT_COEFFICIENTS_MAX];
    double standard_errors[LAB_FIT_COEFFICIENTS_MAX]; /* NaN where n = p */
    double correlation[LAB_FIT_COEFFICIENTS_MAX][LAB_FIT_COEFFICIENTS_MAX];
    double unconstrained[LAB_FIT_COEFFICIENTS_MAX]; /* of non-negative fits; else the same */
    double degrees_of_freedom;                      /* n − p */
    double residual_error;                          /* √(Σ w e² / (n − p)): σ at weight 1 */
    /* Σ about the mean where the model has a constant term or is non-linear, about 0 otherwise, as
     * R's lm does; NaN if y has no spread to explain. */
    double r_squared, adjusted_r_squared;
};

/* Ordinary or weighted least squares, by singular values of the scaled design. A constant term is a
 * column of ones. */
struct lab_fit lab_fit_linear(const struct lab_fit_data *data);

/*
 * The same with no coefficient below 0 (Lawson and Hanson 1974). Standard errors, correlation and
 * residual error are those of the unconstrained fit: they hold whichever bounds are met, while
 * those of the positive coefficients alone would claim certainty for each one that was set to 0.
 */
struct lab_fit lab_fit_nonnegative(const struct lab_fit_data *data);

/* Fits a model by its method; `iterations_max` and `start` (NULL: the model's own) serve non-linear
 * ones, Levenberg and Marquardt's way (GSL). They count as converged when the residuals are
 * orthogonal to the gradient to 1e-5 (Bates and Watts), whatever the iteration said. */
struct lab_fit lab_fit_run(const struct lab_fit_model *model, const struct lab_fit_data *data);
struct lab_fit lab_fit_run_from(const struct lab_fit_model *model, const struct lab_fit_data *data,
                                const double *start, int iterations_max);

double lab_fit_covariance(const struct lab_fit *fit, size_t i, size_t j);

/* t interval of a coefficient. Of a non-negative fit: that of the unconstrained one cut at 0, so
 * that it covers every possible truth at least as often as it says. */
struct lab_interval lab_fit_interval(const struct lab_fit *fit, size_t i, double confidence);

/* Interval of 1/v for v ≥ 0: the rate where the fit has seconds per unit. 0 gives ∞. */
struct lab_interval lab_fit_reciprocal(struct lab_interval interval);

/* A figure computed from the coefficients, with its interval by the delta method. */
struct lab_fit_derived {
    double value, standard_error;
    struct lab_interval interval;
};
struct lab_fit_derived lab_fit_derive(const struct lab_fit *fit, double (*figure)(const double *c),
                                      double confidence);

/*
 * Laws, with their coefficients in order. Scaling laws give throughput over n ≥ 1 processors and
 * leave the throughput of one to be fitted; their fractions aren't held between 0 and 1, since
 * super-linear scaling (σ < 0) is a finding.
 */
extern const struct lab_fit_model lab_law_line; /* a + b x */
extern const struct lab_fit_model lab_law_usl; /* λ n / (1 + σ (n−1) + κ n (n−1)): λ, σ, κ;
                                                        Gunther's Universal Scalability Law */

/* For lab_fit_derive of a Universal Scalability Law: √((1−σ)/κ), beyond which more is slower. */
double lab_law_usl_peak(const double *c);

/*
 * Where two lines fitted to independent data meet. The interval holds every x in [from, to] at
 * which their difference can't be told from 0 (Fieller 1954), with Welch's degrees of freedom at
 * the crossing. It holds where the delta method is too narrow, and is unbounded where slopes may be
 * equal; two rays are given as one interval with what is between them. `at` is NaN if the lines
 * don't meet in [from, to], the interval if no such x exists.
 */
struct lab_crossover {
    double at;
    struct lab_interval interval;
};
struct lab_crossover lab_fit_crossover(const struct lab_fit *a, const struct lab_fit *b,
                                       double from, double to, double confidence);

#endif
