/* stats_solve.h: what the fits share; for the files of this folder only. */
#pragma once

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

/* Lawson and Hanson on the projected problem, c in the decomposed problem's own units. */
void lab_solve_nonnegative(const struct lab_solve *solve, const double *projection,
                           double *ret_coefficients);
