/* stats_fit.c: linear least squares with and without bounds at 0, and what follows from any fit. */
#include "stats/fit.h"

#include "base/mem.h"
#include "stats/stats_solve.h"

#include <float.h>
#include <math.h>

#define ITERATIONS_MAX 200

static const struct lab_interval unknown = {NAN, NAN, NAN};

static bool sane(double confidence) {
    return confidence > 0 && confidence < 1;
}

/* Is some column of the (unweighted) design constant? R² is about the mean then. */
static bool has_constant(const struct lab_fit_data *data, const struct lab_fit_model *model,
                         size_t p) {
    double c[SOLVE_MAX] = {0}, first[SOLVE_MAX], row[SOLVE_MAX];
    bool same[SOLVE_MAX];
    lab_solve_gradient(model, c, data->x, p, first);
    for (size_t j = 0; j < p; j++)
        same[j] = first[j] != 0;
    for (size_t i = 1; i < data->n; i++) {
        lab_solve_gradient(model, c, data->x + i * data->inputs, p, row);
        for (size_t j = 0; j < p; j++)
            same[j] = same[j] && row[j] == first[j];
    }
    bool any = false;
    for (size_t j = 0; j < p; j++)
        any = any || same[j];
    return any;
}

/* y − A c, scaled and weighted; A is taken from U S Vᵀ D, since U has replaced it. Returns the sum
 * of squares. */
static double residuals_of(const struct lab_problem *problem, const struct lab_solve *solve,
                           const double *c, double *ret_residuals) {
    double along[SOLVE_MAX], squares = 0;
    for (size_t k = 0; k < solve->p; k++) {
        along[k] = 0;
        for (size_t j = 0; j < solve->p; j++)
            along[k] += solve->s[k] * solve->v[j][k] * solve->lengths[j] * c[j];
    }
    for (size_t i = 0; i < problem->n; i++) {
        double e = problem->y[i];
        for (size_t k = 0; k < solve->p; k++)
            e -= solve->u[i * solve->p + k] * along[k];
        ret_residuals[i] = e;
        squares += e * e;
    }
    return squares;
}

static void solve_linear(const struct lab_fit_data *data, struct lab_problem *problem,
                         struct lab_fit *fit, double *ret_residuals) {
    struct lab_solve solve;
    lab_solve_fill_design(data, fit->model, fit->coefficients, problem);
    lab_solve_decompose(problem->design, problem->n, problem->p, &solve);
    fit->rank = solve.rank;
    if (solve.rank < solve.p) {
        fit->state = LAB_FIT_RANK_DEFICIENT;
        return;
    }
    double projection[SOLVE_MAX], c[SOLVE_MAX] = {0};
    lab_solve_project(&solve, problem->y, projection);
    lab_solve_coefficients(&solve, projection, c);
    double sigma_squares = residuals_of(problem, &solve, c, ret_residuals);
    for (size_t j = 0; j < solve.p; j++)
        fit->unconstrained[j] = fit->coefficients[j] = c[j] * problem->y_scale;
    if (fit->method == LAB_FIT_NONNEGATIVE) {
        lab_solve_nonnegative(&solve, projection, c);
        for (size_t j = 0; j < solve.p; j++)
            fit->coefficients[j] = c[j] * problem->y_scale;
        residuals_of(problem, &solve, c, ret_residuals);
    }
    lab_solve_infer(problem, &solve, ret_residuals, sigma_squares,
                    has_constant(data, fit->model, fit->p), fit);
}

static struct lab_fit fit_linear(const struct lab_fit_data *data, const struct lab_fit_model *model,
                                 enum lab_fit_method method) {
    size_t p = model ? model->coefficients : data->inputs;
    struct lab_fit fit = lab_solve_nothing(data, model, method, p, lab_solve_check(data, p));
    if (fit.state != LAB_FIT_OK)
        return fit;
    struct lab_problem problem;
    lab_solve_problem_init(data, p, &problem);
    double *residuals = lab_mem_resize(NULL, data->n, sizeof *residuals);
    solve_linear(data, &problem, &fit, residuals);
    lab_mem_free(residuals);
    lab_solve_problem_release(&problem);
    return fit;
}

struct lab_fit lab_fit_linear(const struct lab_fit_data *data) {
    return fit_linear(data, NULL, LAB_FIT_LINEAR);
}

struct lab_fit lab_fit_nonnegative(const struct lab_fit_data *data) {
    return fit_linear(data, NULL, LAB_FIT_NONNEGATIVE);
}

struct lab_fit lab_fit_run(const struct lab_fit_model *model, const struct lab_fit_data *data) {
    return lab_fit_run_from(model, data, NULL, ITERATIONS_MAX);
}

struct lab_fit lab_fit_run_from(const struct lab_fit_model *model, const struct lab_fit_data *data,
                                const double *start, int iterations_max) {
    enum lab_fit_state state = lab_solve_check(data, model->coefficients);
    if (data->inputs != model->inputs)
        state = LAB_FIT_UNUSABLE;
    if (state != LAB_FIT_OK)
        return lab_solve_nothing(data, model, model->method, model->coefficients, state);
    if (model->method != LAB_FIT_NONLINEAR)
        return fit_linear(data, model, model->method);
    double from[SOLVE_MAX] = {0};
    bool begun = start || (model->start && model->start(data, from));
    for (size_t j = 0; j < model->coefficients; j++) {
        from[j] = start ? start[j] : from[j];
        begun = begun && isfinite(from[j]);
    }
    if (!begun)
        return lab_solve_nothing(data, model, model->method, model->coefficients, LAB_FIT_UNUSABLE);
    return lab_solve_nonlinear(model, data, from, iterations_max);
}

double lab_fit_covariance(const struct lab_fit *fit, size_t i, size_t j) {
    return fit->standard_errors[i] * fit->standard_errors[j] * fit->correlation[i][j];
}

static struct lab_interval around(double value, double error, double degrees, double confidence) {
    if (!sane(confidence) || isnan(value) || isnan(error))
        return unknown;
    double half = lab_stats_t_quantile(0.5 + confidence / 2, degrees) * error;
    return (struct lab_interval){value - half, value + half, confidence};
}

struct lab_interval lab_fit_interval(const struct lab_fit *fit, size_t i, double confidence) {
    struct lab_interval interval =
        around(fit->unconstrained[i], fit->standard_errors[i], fit->degrees_of_freedom, confidence);
    if (fit->method == LAB_FIT_NONNEGATIVE && !isnan(interval.low)) {
        interval.low = fmin(fmax(interval.low, 0), fit->coefficients[i]);
        interval.high = fmax(interval.high, fit->coefficients[i]);
    }
    return interval;
}

struct lab_interval lab_fit_reciprocal(struct lab_interval interval) {
    if (isnan(interval.low) || isnan(interval.high) || interval.high < 0)
        return unknown;
    double low = interval.high > 0 ? 1 / interval.high : INFINITY;
    double high = interval.low > 0 ? 1 / interval.low : INFINITY;
    return (struct lab_interval){low, high, interval.confidence};
}

/* √(gᵀ C g), the largest term taken out before squaring. */
static double error_along(const struct lab_fit *fit, const double *gradient) {
    double terms[SOLVE_MAX] = {0}, largest = 0, sum = 0;
    for (size_t j = 0; j < fit->p; j++) {
        terms[j] = gradient[j] * fit->standard_errors[j];
        if (isnan(terms[j]))
            return NAN;
        largest = fmax(largest, fabs(terms[j]));
    }
    if (!(largest > 0))
        return 0;
    for (size_t i = 0; i < fit->p; i++) {
        for (size_t j = 0; j < fit->p; j++)
            sum += terms[i] / largest * (terms[j] / largest) * fit->correlation[i][j];
    }
    return largest * sqrt(fmax(sum, 0));
}

struct lab_fit_derived lab_fit_derive(const struct lab_fit *fit, double (*figure)(const double *c),
                                      double confidence) {
    double gradient[SOLVE_MAX] = {0}, moved[SOLVE_MAX];
    for (size_t j = 0; j < SOLVE_MAX; j++)
        moved[j] = fit->coefficients[j];
    double value = fit->state == LAB_FIT_OK ? figure(fit->coefficients) : NAN;
    for (size_t j = 0; j < fit->p; j++) {
        double c = fit->coefficients[j], step = cbrt(DBL_EPSILON) * (c != 0 ? fabs(c) : 1);
        double high = c + step, low = c - step;
        moved[j] = high;
        double above = figure(moved);
        moved[j] = low;
        gradient[j] = (above - figure(moved)) / (high - low);
        moved[j] = c;
    }
    double error = error_along(fit, gradient);
    return (struct lab_fit_derived){value, error,
                                    around(value, error, fit->degrees_of_freedom, confidence)};
}
