/*
 * stats_solve.c: the linear algebra and the error bars that all fits share. Singular values by
 * one-sided Jacobi (GSL), which is accurate for each of them and needs no more than n × p memory.
 */
#include "stats/stats_solve.h"

#include "base/mem.h"

#include <float.h>
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

struct lab_fit lab_solve_nothing(const struct lab_fit_data *data, const struct lab_fit_model *model,
                                 enum lab_fit_method method, size_t p, enum lab_fit_state state) {
    struct lab_fit fit = {
        .state = state,
        .method = method,
        .model = model,
        .n = data->n,
        .p = p,
        .degrees_of_freedom = NAN,
        .residual_error = NAN,
        .r_squared = NAN,
        .adjusted_r_squared = NAN,
    };
    for (size_t i = 0; i < SOLVE_MAX; i++) {
        fit.coefficients[i] = fit.unconstrained[i] = fit.standard_errors[i] = NAN;
        for (size_t j = 0; j < SOLVE_MAX; j++)
            fit.correlation[i][j] = NAN;
    }
    return fit;
}

enum lab_fit_state lab_solve_check(const struct lab_fit_data *data, size_t p) {
    if (p < 1 || p > SOLVE_MAX)
        return LAB_FIT_UNUSABLE;
    for (size_t i = 0; i < data->n * data->inputs; i++) {
        if (!isfinite(data->x[i]))
            return LAB_FIT_UNUSABLE;
    }
    for (size_t i = 0; i < data->n; i++) {
        double weight = data->weights ? data->weights[i] : 1;
        if (!isfinite(data->y[i]) || !isfinite(weight) || !(weight > 0))
            return LAB_FIT_UNUSABLE;
    }
    return data->n < p ? LAB_FIT_TOO_FEW : LAB_FIT_OK;
}

void lab_solve_problem_init(const struct lab_fit_data *data, size_t p,
                            struct lab_problem *ret_problem) {
    size_t n = data->n;
    double *memory = lab_mem_resize(NULL, n * (p + 2), sizeof *memory);
    struct lab_problem problem = {n, p, memory, memory + n * p, memory + n * (p + 1), 0, 0};
    for (size_t i = 0; i < n; i++) {
        problem.y_scale = fmax(problem.y_scale, fabs(data->y[i]));
        problem.weight_scale = fmax(problem.weight_scale, data->weights ? data->weights[i] : 1);
    }
    if (!(problem.y_scale > 0))
        problem.y_scale = 1;
    for (size_t i = 0; i < n; i++) {
        double weight = data->weights ? data->weights[i] / problem.weight_scale : 1;
        problem.root_weights[i] = sqrt(weight);
        problem.y[i] = data->y[i] / problem.y_scale * problem.root_weights[i];
    }
    *ret_problem = problem;
}

void lab_solve_problem_release(struct lab_problem *problem) {
    lab_mem_free(problem->design);
    problem->design = NULL;
}

void lab_solve_gradient(const struct lab_fit_model *model, const double *c, const double *x,
                        size_t p, double *ret_gradient) {
    if (model && model->gradient) {
        model->gradient(c, x, ret_gradient);
        return;
    }
    double moved[SOLVE_MAX] = {0};
    for (size_t j = 0; j < p; j++)
        moved[j] = c[j];
    for (size_t j = 0; j < p; j++) {
        if (!model) {
            ret_gradient[j] = x[j];
            continue;
        }
        /* ∛ε balances rounding against curvature */
        double step = cbrt(DBL_EPSILON) * (c[j] != 0 ? fabs(c[j]) : 1);
        double high = c[j] + step, low = c[j] - step;
        moved[j] = high;
        double above = model->value(moved, x);
        moved[j] = low;
        ret_gradient[j] = (above - model->value(moved, x)) / (high - low);
        moved[j] = c[j];
    }
}

void lab_solve_fill_design(const struct lab_fit_data *data, const struct lab_fit_model *model,
                           const double *c, struct lab_problem *problem) {
    for (size_t i = 0; i < problem->n; i++) {
        double *row = problem->design + i * problem->p;
        lab_solve_gradient(model, c, data->x + i * data->inputs, problem->p, row);
        for (size_t j = 0; j < problem->p; j++)
            row[j] *= problem->root_weights[i];
    }
}

static double squares_of(const double *a, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sum;
}

/* Σ w (y − mean)², scaled; 0 where all of it is rounding. */
static double total_squares(const struct lab_problem *problem, bool centred) {
    double total = squares_of(problem->y, problem->n);
    if (!centred)
        return total;
    double sum = 0, weights = 0, squares = 0;
    for (size_t i = 0; i < problem->n; i++) {
        sum += problem->root_weights[i] * problem->y[i];
        weights += problem->root_weights[i] * problem->root_weights[i];
    }
    for (size_t i = 0; i < problem->n; i++) {
        double e = problem->y[i] - problem->root_weights[i] * (sum / weights);
        squares += e * e;
    }
    return squares > 100 * DBL_EPSILON * DBL_EPSILON * total ? squares : 0;
}

static void infer_errors(const struct lab_solve *solve, double sigma, struct lab_fit *fit) {
    size_t p = solve->p;
    double lengths[SOLVE_MAX];
    for (size_t i = 0; i < p; i++) {
        double squares = 0;
        for (size_t k = 0; k < p; k++)
            squares += pow(solve->v[i][k] / solve->s[k], 2);
        lengths[i] = sqrt(squares);
        fit->standard_errors[i] = sigma * lengths[i] / solve->lengths[i];
    }
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j < p; j++) {
            double sum = 0;
            for (size_t k = 0; k < p; k++)
                sum += solve->v[i][k] / solve->s[k] * (solve->v[j][k] / solve->s[k]);
            fit->correlation[i][j] = i == j ? 1 : sum / lengths[i] / lengths[j];
        }
    }
}

void lab_solve_infer(const struct lab_problem *problem, const struct lab_solve *solve,
                     const double *residuals, double sigma_squares, bool centred,
                     struct lab_fit *fit) {
    double left = (double)(problem->n - problem->p);
    double total = total_squares(problem, centred);
    double unexplained = squares_of(residuals, problem->n);
    fit->degrees_of_freedom = left;
    fit->rank = solve->rank;
    double sigma = left > 0 ? sqrt(sigma_squares / left) * problem->y_scale : NAN;
    fit->residual_error = sigma * sqrt(problem->weight_scale);
    infer_errors(solve, sigma, fit);
    if (total > 0) {
        fit->r_squared = 1 - unexplained / total;
        fit->adjusted_r_squared =
            left > 0 ? 1 - unexplained / left / (total / ((double)problem->n - centred)) : NAN;
    }
}
