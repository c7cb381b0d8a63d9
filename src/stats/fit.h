/*
 * fit.h: linear laws fitted to measurements, and how far they can be trusted.
 *
 * y is the sum of inputs × coefficients; fitting finds the coefficients with the least weighted sum
 * of squares, by singular values of the scaled design. A constant term is a column of ones. As in
 * stats.h nothing fails: a fit says in `state` why it has no figures, and those are NaN then. Huge
 * and tiny values are scaled before anything is squared.
 *
 * Errors suppose values that are independent, with the variance σ²/weight and about normal.
 */
#pragma once

#include "stats/stats.h"

#define LAB_FIT_COEFFICIENTS_MAX 8

enum lab_fit_state {
    LAB_FIT_OK,
    LAB_FIT_UNUSABLE,       /* NaN or ∞ among the values, a weight ≤ 0 */
    LAB_FIT_TOO_FEW,        /* fewer values than coefficients */
    LAB_FIT_RANK_DEFICIENT, /* several answers fit equally well: inputs that move together */
};

struct lab_fit_data {
    const double *x; /* n rows of `inputs` numbers, row by row */
    const double *y;
    const double *weights; /* NULL: all 1. 1/y² makes relative errors count alike */
    size_t n, inputs;
};

struct lab_fit {
    enum lab_fit_state state;
    size_t p; /* coefficients */
    double coefficients[LAB_FIT_COEFFICIENTS_MAX];
    double standard_errors[LAB_FIT_COEFFICIENTS_MAX]; /* NaN where n = p */
    double correlation[LAB_FIT_COEFFICIENTS_MAX][LAB_FIT_COEFFICIENTS_MAX];
    double residual_error; /* √(Σ w e² / (n − p)): σ at weight 1 */
};

struct lab_fit lab_fit_linear(const struct lab_fit_data *data);

/*
 * The same with no coefficient below 0 (Lawson and Hanson 1974). Standard errors, correlation and
 * residual error are those of the unconstrained fit: they hold whichever bounds are met, while
 * those of the positive coefficients alone would claim certainty for each one that was set to 0.
 */
struct lab_fit lab_fit_nonnegative(const struct lab_fit_data *data);

double lab_fit_covariance(const struct lab_fit *fit, size_t i, size_t j);
