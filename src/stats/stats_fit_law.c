/*
 * stats_fit_law.c: the laws that measurements of machines tend to follow. Non-linear ones begin at
 * a linear fit of a transformed law, which is near the minimum though its errors are the wrong
 * ones.
 */
#include "stats/fit.h"

#include "base/mem.h"

#include <math.h>

static double line_value(const double *c, const double *x) {
    return c[0] + c[1] * x[0];
}

static void line_gradient(const double *c, const double *x, double *ret_gradient) {
    (void)c;
    ret_gradient[0] = 1;
    ret_gradient[1] = x[0];
}

const struct lab_fit_model lab_law_line = {"line",     LAB_FIT_LINEAR, 1,   2,
                                           line_value, line_gradient,  NULL};

/* Fits `p` coefficients of the transformed law whose rows and values `transform` gives; rows that
 * it refuses are left out. */
typedef bool transform(double x, double y, double *ret_row, double *ret_y);

static bool fit_transformed(const struct lab_fit_data *data, transform *transformed, size_t p,
                            double *ret_c) {
    double *rows = lab_mem_resize(NULL, data->n * (p + 1), sizeof *rows), *y = rows + data->n * p;
    size_t count = 0;
    for (size_t i = 0; i < data->n; i++)
        count += transformed(data->x[i], data->y[i], rows + count * p, y + count);
    struct lab_fit fit =
        lab_fit_linear(&(struct lab_fit_data){.x = rows, .y = y, .n = count, .inputs = p});
    for (size_t j = 0; j < p; j++)
        ret_c[j] = fit.coefficients[j];
    lab_mem_free(rows);
    return fit.state == LAB_FIT_OK;
}

static bool from_one_up(const struct lab_fit_data *data) {
    bool sane = true;
    for (size_t i = 0; i < data->n; i++)
        sane = sane && data->x[i] >= 1;
    return sane;
}

/* Amdahl and the Universal Scalability Law are linear as n/y = 1/λ + σ/λ (n−1) + κ/λ n (n−1). */
static bool amdahl_line(double x, double y, double *ret_row, double *ret_y) {
    ret_row[0] = 1;
    ret_row[1] = x - 1;
    *ret_y = x / y;
    return y > 0;
}

static bool usl_line(double x, double y, double *ret_row, double *ret_y) {
    ret_row[2] = x * (x - 1);
    return amdahl_line(x, y, ret_row, ret_y);
}

/* From the transformed coefficients 1/λ, σ/λ, … to λ, σ, … */
static bool scaling_start(const struct lab_fit_data *data, transform *transformed, size_t p,
                          double *ret_c) {
    if (!from_one_up(data) || !fit_transformed(data, transformed, p, ret_c))
        return false;
    /* noise may turn 1/λ around: any λ of the right size will do then */
    double one = ret_c[0] > 0 ? 1 / ret_c[0] : lab_stats_max(data->y, data->n);
    for (size_t j = 1; j < p; j++)
        ret_c[j] = fmax(ret_c[j] * one, 0);
    ret_c[0] = one;
    return true;
}

static bool usl_start(const struct lab_fit_data *data, double *ret_c) {
    return scaling_start(data, usl_line, 3, ret_c);
}

static double usl_value(const double *c, const double *x) {
    return c[0] * x[0] / (1 + c[1] * (x[0] - 1) + c[2] * x[0] * (x[0] - 1));
}

static void usl_gradient(const double *c, const double *x, double *ret_gradient) {
    double below = 1 + c[1] * (x[0] - 1) + c[2] * x[0] * (x[0] - 1);
    ret_gradient[0] = x[0] / below;
    ret_gradient[1] = -c[0] * x[0] * (x[0] - 1) / (below * below);
    ret_gradient[2] = ret_gradient[1] * x[0];
}

const struct lab_fit_model lab_law_usl = {
    "Universal Scalability Law", LAB_FIT_NONLINEAR, 1, 3, usl_value, usl_gradient, usl_start};

double lab_law_usl_peak(const double *c) {
    return c[2] > 0 && c[1] < 1 ? sqrt((1 - c[1]) / c[2]) : NAN;
}
