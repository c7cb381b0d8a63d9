/*
 * gradient.c: what gathers and bounds a gradient: sums of columns for biases, fp32 sums rounded
 * into a vector of the model's dtype, and the norm by which all of it is clipped. The sums can go
 * on from an earlier part of the batch.
 */
#include "device/op/parts.h"

#include <math.h>

enum { X, BASE };

/* --- sums of columns --- */

static int column_sum_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t columns = lab_tensor_columns(&launch->in[X]);
    return op_check_vector(&launch->out, "the output", columns, err) ||
                   op_check_vector(&launch->in[BASE], "the base", columns, err)
               ? -1
               : 0;
}

static void column_sum_reference(const struct lab_launch *launch, const double *const *in,
                                 double *out) {
    int64_t columns = lab_tensor_columns(&launch->in[X]);
    for (int64_t c = 0; c < columns; c++) {
        double sum = launch->value != 0 ? (double)launch->value * in[BASE][c] : 0;
        for (int64_t r = 0; r < lab_tensor_rows(&launch->in[X]); r++)
            sum += in[X][r * columns + c];
        out[c] = sum;
    }
}

/* Biases of many rows, positions of few; the base counts in every other example. */
static int column_sum_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t cases[][2] = {{1, 1},     {7, 3},    {300, 65},  {601, 128},
                                       {4096, 24}, {5, 5000}, {2000, 768}};
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    launch->in[X] = lab_tensor_matrix(NULL, dtype, cases[index][0], cases[index][1]);
    launch->in[BASE] = launch->out = lab_tensor_vector(NULL, dtype, cases[index][1]);
    launch->value = index % 2 ? 1.0f : 0.0f;
    return 0;
}

static struct lab_cost column_sum_cost(const struct lab_launch *launch) {
    struct lab_cost cost = op_cost(launch, (double)lab_tensor_count(&launch->in[X]));
    cost.bytes_read -= launch->value != 0 ? 0 : (double)lab_tensor_bytes(&launch->in[BASE]);
    return cost;
}

const struct lab_op lab_op_column_sum = {
    .name = "column_sum",
    .help = "the sum of each column, such as the derivative by a bias",
    .inputs = 2,
    .over = 1u << BASE,
    .check = column_sum_check,
    .cost = column_sum_cost,
    .reference = column_sum_reference,
    .example = column_sum_example,
};

/* --- fp32 into its place --- */

static int accumulate_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t count = lab_tensor_count(&launch->out);
    return op_check_vector(&launch->in[X], "x", count, err) ||
                   op_check_vector(&launch->in[BASE], "the base", count, err)
               ? -1
               : 0;
}

static void accumulate_reference(const struct lab_launch *launch, const double *const *in,
                                 double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = in[X][i] + (launch->value != 0 ? (double)launch->value * in[BASE][i] : 0);
}

static int accumulate_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t counts[] = {1, 31, 1024, 10003, 65536};
    if (index >= (int)(sizeof counts / sizeof counts[0]))
        return -1;
    launch->in[X] = lab_tensor_vector(NULL, LAB_FP32, counts[index]);
    launch->in[BASE] = launch->out = lab_tensor_vector(NULL, dtype, counts[index]);
    launch->value = index % 2 ? 1.0f : 0.0f;
    return 0;
}

const struct lab_op lab_op_accumulate = {
    .name = "accumulate",
    .help = "fp32 rounded, alone or added to what is there",
    .inputs = 2,
    .singles = 1u << X,
    .over = 1u << BASE,
    .check = accumulate_check,
    .flops = 2,
    .reference = accumulate_reference,
    .example = accumulate_example,
};

/* --- the norm, and what it makes of the scale --- */

enum { GRADIENT, CONTROL };

static struct lab_tensor clip_also(const struct lab_launch *launch) {
    (void)launch;
    return lab_tensor_vector(NULL, LAB_FP32, LAB_ADAMW_CONTROLS);
}

static int clip_check(const struct lab_launch *launch, struct lab_err *err) {
    if (op_check_vector(&launch->out, "the output", 1, err) ||
        op_check_vector(&launch->in[CONTROL], "the control", LAB_ADAMW_CONTROLS, err))
        return -1;
    if (!(launch->value > 0))
        return lab_err_set(err, LAB_ERR_USER, "the limit is %g, must be above 0",
                           (double)launch->value);
    return 0;
}

static double norm_of(const struct lab_launch *launch, const double *const *in) {
    double sum = 0;
    for (int64_t i = 0; i < lab_tensor_count(&launch->in[GRADIENT]); i++)
        sum += in[GRADIENT][i] * in[GRADIENT][i];
    return sqrt(sum) * in[CONTROL][LAB_ADAMW_SCALE];
}

static void clip_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    out[0] = norm_of(launch, in);
}

static void clip_reference_also(const struct lab_launch *launch, const double *const *in,
                                double *also) {
    double norm = norm_of(launch, in), limit = (double)launch->value;
    for (int i = 0; i < LAB_ADAMW_CONTROLS; i++)
        also[i] = in[CONTROL][i];
    also[LAB_ADAMW_SCALE] *= norm > limit ? limit / norm : 1;
    also[LAB_ADAMW_NORM] = norm;
}

static int clip_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t counts[] = {1, 31, 1024, 100003, 65536};
    static const float limits[] = {1, 100, 1, 2, 1000};
    if (index >= (int)(sizeof counts / sizeof counts[0]))
        return -1;
    launch->in[GRADIENT] = lab_tensor_vector(NULL, dtype, counts[index]);
    launch->in[CONTROL] = lab_tensor_vector(NULL, LAB_FP32, LAB_ADAMW_CONTROLS);
    launch->out = lab_tensor_vector(NULL, dtype, 1);
    launch->value = limits[index];
    return 0;
}

/* A scale is above 0. */
static void clip_domain(const struct lab_launch *launch, int input, float *values) {
    (void)launch;
    if (input == CONTROL)
        values[LAB_ADAMW_SCALE] = 0.5f;
}

static struct lab_cost clip_cost(const struct lab_launch *launch) {
    return op_cost(launch, 2 * (double)lab_tensor_count(&launch->in[GRADIENT]));
}

const struct lab_op lab_op_clip = {
    .name = "clip",
    .help = "the gradient's norm, and the scale that bounds it",
    .inputs = 2,
    .singles = 1u << CONTROL,
    .also_over = 1u << CONTROL,
    .check = clip_check,
    .cost = clip_cost,
    .reference = clip_reference,
    .also = clip_also,
    .reference_also = clip_reference_also,
    .example = clip_example,
    .domain = clip_domain,
};
