/* stats_solve.h: what the fits share; for the files of this folder only. */
#ifndef LAB_STATS_STATS_SOLVE_H
#define LAB_STATS_STATS_SOLVE_H

#include "stats/fit.h"

#define SOLVE_MAX LAB_FIT_COEFFICIENTS_MAX

/* GSL's error handler ends the process: switches it off, once. */
void lab_solve_prepare(void);

/* A = U S Vᵀ D, D the lengths of A's columns, so that units don't decide what is singular. */
struct lab_solve {
    size_t n, p, rank;
    double *u; /* n × p, the memory of A */
    double s[SOLVE_MAX], v[SOLVE_MAX][SOLVE_MAX];
    double lengths[SOLVE_MAX];
};

/* Overwrites `a` (n × p, n ≥ p) with U. */
void lab_solve_decompose(double *a, size_t n, size_t p, struct lab_solve *ret_solve);
/* Uᵀ b, p numbers. */
void lab_solve_project(const struct lab_solve *solve, const double *b, double *ret_projection);
/* The least squares of A c = b from b's projection; full rank. */
void lab_solve_coefficients(const struct lab_solve *solve, const double *projection,
                            double *ret_coefficients);

/* The problem with weights and y scaled to at most 1: rows × √(w / w_max), y / y_max. */
struct lab_problem {
    size_t n, p;
    double *design, *y, *root_weights; /* n × p, n, n; one allocation that begins at design */
    double y_scale, weight_scale;
};

/* A fit of `p` coefficients without any figure. */
struct lab_fit lab_solve_nothing(const struct lab_fit_data *data, const struct lab_fit_model *model,
                                 enum lab_fit_method method, size_t p, enum lab_fit_state state);
enum lab_fit_state lab_solve_check(const struct lab_fit_data *data, size_t p);

/* Scales data that passed the check; the design is left to lab_solve_fill_design. */
void lab_solve_problem_init(const struct lab_fit_data *data, size_t p,
                            struct lab_problem *ret_problem);
void lab_solve_problem_release(struct lab_problem *problem);
void lab_solve_fill_design(const struct lab_fit_data *data, const struct lab_fit_model *model,
                           const double *c, struct lab_problem *problem);

void lab_solve_gradient(const struct lab_fit_model *model, const double *c, const double *x,
                        size_t p, double *ret_gradient);

/* Fills in errors, correlation, σ and R². `residuals` are scaled and weighted; `sigma_squares` is
 * the sum of squares that σ² comes from, `centred` whether R² is about the mean. */
void lab_solve_infer(const struct lab_problem *problem, const struct lab_solve *solve,
                     const double *residuals, double sigma_squares, bool centred,
                     struct lab_fit *fit);

/* Lawson and Hanson on the projected problem, c in the decomposed problem's own units. */
void lab_solve_nonnegative(const struct lab_solve *solve, const double *projection,
                           double *ret_coefficients);

/* Levenberg-Marquardt on data that passed the check, from a finite start. */
struct lab_fit lab_solve_nonlinear(const struct lab_fit_model *model,
                                   const struct lab_fit_data *data, const double *start,
                                   int iterations_max);

#endif
