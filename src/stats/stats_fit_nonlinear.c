/*
 * stats_fit_nonlinear.c: non-linear least squares by GSL's Levenberg-Marquardt trust region. GSL
 * proposes; whether that is a minimum is judged here, the same way in all units (Bates and Watts
 * 1981, as R's nls): the part of the residuals that the coefficients could still explain must be
 * small beside the part that they can't.
 */
#include "stats/stats_solve.h"

#include "base/mem.h"

#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

#define STEP_TOLERANCE     1e-12
#define GRADIENT_TOLERANCE 1e-20
#define OFFSET_LARGEST     1e-5
#define ROUNDING           1e-12 /* residuals of this share of y are none */
#define UNREACHABLE        1e100 /* stands for values that don't exist: the step is taken back */

struct problem {
    const struct lab_fit_model *model;
    const struct lab_fit_data *data;
    struct lab_problem scaled;
};

static double residual(const struct problem *problem, const double *c, size_t i) {
    const struct lab_problem *scaled = &problem->scaled;
    double value = problem->model->value(c, problem->data->x + i * problem->data->inputs);
    double e = value / scaled->y_scale * scaled->root_weights[i] - scaled->y[i];
    return fabs(e) < UNREACHABLE ? e : UNREACHABLE;
}

static void copy(const gsl_vector *from, double *to) {
    for (size_t j = 0; j < from->size; j++)
        to[j] = gsl_vector_get(from, j);
}

static int residuals(const gsl_vector *at, void *context, gsl_vector *ret_residuals) {
    const struct problem *problem = context;
    double c[SOLVE_MAX] = {0};
    copy(at, c);
    for (size_t i = 0; i < problem->data->n; i++)
        gsl_vector_set(ret_residuals, i, residual(problem, c, i));
    return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *at, void *context, gsl_matrix *ret_jacobian) {
    struct problem *problem = context;
    const struct lab_problem *scaled = &problem->scaled;
    double c[SOLVE_MAX] = {0};
    copy(at, c);
    lab_solve_fill_design(problem->data, problem->model, c, &problem->scaled);
    for (size_t i = 0; i < scaled->n; i++) {
        for (size_t j = 0; j < scaled->p; j++) {
            double slope = scaled->design[i * scaled->p + j] / scaled->y_scale;
            gsl_matrix_set(ret_jacobian, i, j, isfinite(slope) ? slope : 0);
        }
    }
    return GSL_SUCCESS;
}

/* Moves c to where GSL stops; returns the iterations it took. */
static int minimise(struct problem *problem, double *c, int iterations_max) {
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf functions = {
        .f = residuals,
        .df = jacobian,
        .n = problem->scaled.n,
        .p = problem->scaled.p,
        .params = problem,
    };
    gsl_multifit_nlinear_workspace *workspace = gsl_multifit_nlinear_alloc(
        gsl_multifit_nlinear_trust, &parameters, functions.n, functions.p);
    if (!workspace)
        return 0; /* c isn't a minimum then, and is found not to be */
    gsl_vector_const_view start = gsl_vector_const_view_array(c, functions.p);
    int info = 0, iterations = 0;
    if (gsl_multifit_nlinear_init(&start.vector, &functions, workspace) == GSL_SUCCESS) {
        gsl_multifit_nlinear_driver((size_t)(iterations_max > 1 ? iterations_max : 1),
                                    STEP_TOLERANCE, GRADIENT_TOLERANCE, 0, NULL, NULL, &info,
                                    workspace);
        iterations = (int)gsl_multifit_nlinear_niter(workspace);
        copy(gsl_multifit_nlinear_position(workspace), c);
    }
    gsl_multifit_nlinear_free(workspace);
    return iterations;
}

static bool minimal(const struct lab_problem *scaled, const struct lab_solve *solve,
                    const double *e) {
    double along[SOLVE_MAX], explainable = 0, squares = 0, size = 0;
    lab_solve_project(solve, e, along);
    for (size_t k = 0; k < solve->p; k++)
        explainable += along[k] * along[k];
    for (size_t i = 0; i < scaled->n; i++) {
        squares += e[i] * e[i];
        size += scaled->y[i] * scaled->y[i];
    }
    if (squares <= ROUNDING * ROUNDING * size)
        return true;
    double p = (double)solve->p, left = (double)scaled->n - p;
    return left > 0 && explainable / p <=
                           OFFSET_LARGEST * OFFSET_LARGEST * fmax(squares - explainable, 0) / left;
}

struct lab_fit lab_solve_nonlinear(const struct lab_fit_model *model,
                                   const struct lab_fit_data *data, const double *start,
                                   int iterations_max) {
    lab_solve_prepare();
    struct lab_fit fit =
        lab_solve_nothing(data, model, LAB_FIT_NONLINEAR, model->coefficients, LAB_FIT_OK);
    struct problem problem = {.model = model, .data = data};
    struct lab_problem *scaled = &problem.scaled;
    lab_solve_problem_init(data, fit.p, scaled);
    double c[SOLVE_MAX] = {0}, squares = 0;
    for (size_t j = 0; j < fit.p; j++)
        c[j] = start[j];
    fit.iterations = minimise(&problem, c, iterations_max);

    double *e = lab_mem_resize(NULL, data->n, sizeof *e);
    bool finite = true;
    for (size_t i = 0; i < data->n; i++) {
        e[i] = residual(&problem, c, i);
        squares += e[i] * e[i];
    }
    lab_solve_fill_design(data, model, c, scaled);
    for (size_t i = 0; i < data->n * fit.p; i++)
        finite = finite && isfinite(scaled->design[i]);
    struct lab_solve solve = {0};
    if (finite)
        lab_solve_decompose(scaled->design, data->n, fit.p, &solve);
    fit.rank = solve.rank;
    if (finite && solve.rank < fit.p)
        fit.state = LAB_FIT_RANK_DEFICIENT;
    else if (!finite || !minimal(scaled, &solve, e))
        fit.state = LAB_FIT_NOT_CONVERGED;
    else
        lab_solve_infer(scaled, &solve, e, squares, true, &fit);
    for (size_t j = 0; j < fit.p && fit.state != LAB_FIT_RANK_DEFICIENT; j++)
        fit.coefficients[j] = fit.unconstrained[j] = c[j];
    lab_mem_free(e);
    lab_solve_problem_release(scaled);
    return fit;
}
