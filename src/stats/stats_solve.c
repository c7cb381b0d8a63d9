/*
 * stats_solve.c: the linear algebra that all fits share. Singular values by one-sided Jacobi (GSL),
 * which is accurate for each of them and needs no more than n × p memory.
 */
#include "stats/stats_solve.h"

#include <gsl/gsl_linalg.h>
#include <math.h>

/* Singular values below this share of the largest are rounding: columns are of length 1. */
#define RANK_TOLERANCE 1e-10

/* √Σ a², stepping over a column; the largest is taken out, so that nothing overflows. */
static double length(const double *a, size_t n, size_t step) {
    double largest = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(a[i * step]));
    if (!(largest > 0))
        return 0;
    for (size_t i = 0; i < n; i++)
        squares += (a[i * step] / largest) * (a[i * step] / largest);
    return largest * sqrt(squares);
}

void lab_solve_decompose(double *a, size_t n, size_t p, struct lab_solve *ret_solve) {
    lab_solve_prepare();
    *ret_solve = (struct lab_solve){.n = n, .p = p, .u = a};
    for (size_t j = 0; j < p; j++) {
        double scale = ret_solve->lengths[j] = length(a + j, n, p);
        for (size_t i = 0; i < n && scale > 0; i++)
            a[i * p + j] /= scale;
    }
    double v[SOLVE_MAX * SOLVE_MAX];
    gsl_matrix_view a_view = gsl_matrix_view_array(a, n, p);
    gsl_matrix_view v_view = gsl_matrix_view_array(v, p, p);
    gsl_vector_view s_view = gsl_vector_view_array(ret_solve->s, p);
    if (gsl_linalg_SV_decomp_jacobi(&a_view.matrix, &v_view.matrix, &s_view.vector))
        return; /* didn't converge: rank 0 */
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j < p; j++)
            ret_solve->v[i][j] = v[i * p + j];
        ret_solve->rank += ret_solve->s[i] > RANK_TOLERANCE * ret_solve->s[0];
    }
}

void lab_solve_project(const struct lab_solve *solve, const double *b, double *ret_projection) {
    for (size_t j = 0; j < solve->p; j++) {
        double sum = 0;
        for (size_t i = 0; i < solve->n; i++)
            sum += solve->u[i * solve->p + j] * b[i];
        ret_projection[j] = sum;
    }
}

void lab_solve_coefficients(const struct lab_solve *solve, const double *projection,
                            double *ret_coefficients) {
    for (size_t j = 0; j < solve->p; j++) {
        double sum = 0;
        for (size_t k = 0; k < solve->p; k++)
            sum += solve->v[j][k] * projection[k] / solve->s[k];
        ret_coefficients[j] = sum / solve->lengths[j];
    }
}
