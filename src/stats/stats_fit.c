/* stats_fit.c: linear least squares with and without bounds at 0, and their errors. */
#include "base/mem.h"
#include "stats/stats_solve.h"

#include <math.h>

/* The problem with weights and y scaled to at most 1: rows × √(w / w_max), y / y_max. */
struct problem {
    size_t n, p;
    double *design, *y; /* n × p, n; one allocation that begins at design */
    double y_scale, weight_scale;
};

/* A fit of `p` coefficients without any figure. */
static struct lab_fit nothing(size_t p, enum lab_fit_state state) {
    struct lab_fit fit = {.state = state, .p = p, .residual_error = NAN};
    for (size_t i = 0; i < SOLVE_MAX; i++) {
        fit.coefficients[i] = fit.standard_errors[i] = NAN;
        for (size_t j = 0; j < SOLVE_MAX; j++)
            fit.correlation[i][j] = NAN;
    }
    return fit;
}

static enum lab_fit_state check(const struct lab_fit_data *data, size_t p) {
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

static double weight_of(const struct lab_fit_data *data, size_t i) {
    return data->weights ? data->weights[i] : 1;
}

/* Scales data that passed the check. */
static struct problem scale(const struct lab_fit_data *data) {
    size_t n = data->n, p = data->inputs;
    double *memory = lab_mem_resize(NULL, n * (p + 1), sizeof *memory);
    struct problem problem = {n, p, memory, memory + n * p, 0, 0};
    for (size_t i = 0; i < n; i++) {
        problem.y_scale = fmax(problem.y_scale, fabs(data->y[i]));
        problem.weight_scale = fmax(problem.weight_scale, weight_of(data, i));
    }
    if (!(problem.y_scale > 0))
        problem.y_scale = 1;
    for (size_t i = 0; i < n; i++) {
        double root_weight = sqrt(weight_of(data, i) / problem.weight_scale);
        problem.y[i] = data->y[i] / problem.y_scale * root_weight;
        for (size_t j = 0; j < p; j++)
            problem.design[i * p + j] = data->x[i * p + j] * root_weight;
    }
    return problem;
}

/* Σ (y − A c)², scaled and weighted; A is taken from U S Vᵀ D, since U has replaced it. */
static double squares_left(const struct problem *problem, const struct lab_solve *solve,
                           const double *c) {
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
        squares += e * e;
    }
    return squares;
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

static void solve_problem(const struct problem *problem, bool nonnegative, struct lab_fit *fit) {
    struct lab_solve solve;
    lab_solve_decompose(problem->design, problem->n, problem->p, &solve);
    if (solve.rank < solve.p) {
        fit->state = LAB_FIT_RANK_DEFICIENT;
        return;
    }
    double projection[SOLVE_MAX], c[SOLVE_MAX] = {0}, left = (double)(problem->n - problem->p);
    lab_solve_project(&solve, problem->y, projection);
    lab_solve_coefficients(&solve, projection, c);
    double sigma = left > 0 ? sqrt(squares_left(problem, &solve, c) / left) : NAN;
    fit->residual_error = sigma * problem->y_scale * sqrt(problem->weight_scale);
    infer_errors(&solve, sigma * problem->y_scale, fit);
    if (nonnegative)
        lab_solve_nonnegative(&solve, projection, c);
    for (size_t j = 0; j < solve.p; j++)
        fit->coefficients[j] = c[j] * problem->y_scale;
}

static struct lab_fit fit_data(const struct lab_fit_data *data, bool nonnegative) {
    struct lab_fit fit = nothing(data->inputs, check(data, data->inputs));
    if (fit.state != LAB_FIT_OK)
        return fit;
    struct problem problem = scale(data);
    solve_problem(&problem, nonnegative, &fit);
    lab_mem_free(problem.design);
    return fit;
}

struct lab_fit lab_fit_linear(const struct lab_fit_data *data) {
    return fit_data(data, false);
}

struct lab_fit lab_fit_nonnegative(const struct lab_fit_data *data) {
    return fit_data(data, true);
}

double lab_fit_covariance(const struct lab_fit *fit, size_t i, size_t j) {
    return fit->standard_errors[i] * fit->standard_errors[j] * fit->correlation[i][j];
}
