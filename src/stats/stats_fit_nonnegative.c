/*
 * stats_fit_nonnegative.c: least squares with coefficients ≥ 0, by Lawson and Hanson's active sets
 * ("Solving least squares problems", 1974, chapter 23). The n rows have been turned into p by the
 * singular value decomposition, so it works on a p × p matrix whose columns are of length 1.
 */
#include "stats/stats_solve.h"

#include <math.h>

#define ROUNDS_MAX (10 * SOLVE_MAX)
#define TOLERANCE  1e-13 /* of the right side: what rounding leaves of a gradient that is 0 */

struct sets {
    size_t p;
    double a[SOLVE_MAX][SOLVE_MAX]; /* S Vᵀ */
    double c[SOLVE_MAX];
    bool positive[SOLVE_MAX];
};

/* Least squares over the positive set alone; the others stay 0. */
static void solve_positive(const struct sets *sets, const double *b, double *ret_c) {
    double part[SOLVE_MAX * SOLVE_MAX], projection[SOLVE_MAX], c[SOLVE_MAX];
    size_t columns[SOLVE_MAX], count = 0;
    for (size_t j = 0; j < sets->p; j++) {
        ret_c[j] = 0;
        if (sets->positive[j])
            columns[count++] = j;
    }
    if (count == 0)
        return;
    for (size_t i = 0; i < sets->p; i++) {
        for (size_t k = 0; k < count; k++)
            part[i * count + k] = sets->a[i][columns[k]];
    }
    struct lab_solve solve;
    lab_solve_decompose(part, sets->p, count, &solve);
    lab_solve_project(&solve, b, projection);
    lab_solve_coefficients(&solve, projection, c);
    for (size_t k = 0; k < count; k++)
        ret_c[columns[k]] = c[k];
}

/* The bound coefficient that would most reduce the squares if it rose; p if none would. */
static size_t steepest(const struct sets *sets, const double *b, double tolerance) {
    size_t best = sets->p;
    double most = tolerance;
    for (size_t j = 0; j < sets->p; j++) {
        double descent = 0;
        for (size_t i = 0; i < sets->p; i++) {
            double e = b[i];
            for (size_t k = 0; k < sets->p; k++)
                e -= sets->a[i][k] * sets->c[k];
            descent += sets->a[i][j] * e;
        }
        if (!sets->positive[j] && descent > most) {
            most = descent;
            best = j;
        }
    }
    return best;
}

/* Goes from c towards `aim` until the first coefficient meets 0, and binds it. True when aim is
 * reached. */
static bool step(struct sets *sets, const double *aim) {
    double share = 1;
    size_t first = sets->p;
    for (size_t j = 0; j < sets->p; j++) {
        if (!sets->positive[j] || aim[j] > 0)
            continue;
        double reached = sets->c[j] > 0 ? sets->c[j] / (sets->c[j] - aim[j]) : 0;
        if (first == sets->p || reached < share) {
            share = reached;
            first = j;
        }
    }
    for (size_t j = 0; j < sets->p; j++)
        sets->c[j] += share * (aim[j] - sets->c[j]);
    if (first == sets->p)
        return true;
    for (size_t j = 0; j < sets->p; j++) {
        if (j == first || !sets->positive[j] || !(sets->c[j] > 0)) {
            sets->positive[j] = false;
            sets->c[j] = 0;
        }
    }
    return false;
}

void lab_solve_nonnegative(const struct lab_solve *solve, const double *projection,
                           double *ret_coefficients) {
    struct sets sets = {.p = solve->p};
    double size = 0, aim[SOLVE_MAX];
    for (size_t i = 0; i < solve->p; i++) {
        size = fmax(size, fabs(projection[i]));
        for (size_t j = 0; j < solve->p; j++)
            sets.a[i][j] = solve->s[i] * solve->v[j][i];
    }
    for (int round = 0; round < ROUNDS_MAX; round++) {
        size_t j = steepest(&sets, projection, TOLERANCE * size);
        if (j == solve->p)
            break;
        sets.positive[j] = true;
        do
            solve_positive(&sets, projection, aim);
        while (!step(&sets, aim));
    }
    for (size_t j = 0; j < solve->p; j++)
        ret_coefficients[j] = sets.c[j] / solve->lengths[j];
}
