/* elementwise.c: fill, add, bias, gelu and its approximation, both ways: each element by itself. */
#include "device/op/parts.h"

#include <math.h>

/* sizes around the widths of vectors, and one that is cut among threads */
static const int64_t counts[] = {1, 7, 63, 65, 197, 100003};
static const int64_t matrices[][2] = {{1, 1}, {3, 7}, {50, 63}, {7, 65}, {197, 768}};

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static int vector_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= LENGTH(counts))
        return -1;
    for (int i = 0; i < lab_op_get(launch->op)->inputs; i++)
        launch->in[i] = lab_tensor_vector(NULL, dtype, counts[index]);
    launch->out = lab_tensor_vector(NULL, dtype, counts[index]);
    launch->value = -1.5f; /* exact in every dtype; a fill's alone */
    return 0;
}

static int fill_check(const struct lab_launch *launch, struct lab_err *err) {
    (void)launch, (void)err; /* any tensor and any value will do */
    return 0;
}

static void fill_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    (void)in;
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = launch->value;
}

const struct lab_op lab_op_fill = {
    .name = "fill",
    .help = "every element gets the same value",
    .inputs = 0,
    .check = fill_check,
    .reference = fill_reference,
    .example = vector_example,
};

static int add_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t count = lab_tensor_count(&launch->out);
    if (op_check_vector(&launch->in[0], "a", count, err) < 0)
        return -1;
    return op_check_vector(&launch->in[1], "b", count, err);
}

static void add_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = in[0][i] + in[1][i];
}

const struct lab_op lab_op_add = {
    .name = "add",
    .help = "sum of two tensors",
    .inputs = 2,
    .over = 1 << 0 | 1 << 1,
    .check = add_check,
    .flops = 1,
    .reference = add_reference,
    .example = vector_example,
};

static int bias_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t columns = lab_tensor_columns(&launch->out);
    if (op_check_matrix(&launch->in[0], "x", lab_tensor_rows(&launch->out), columns, err) < 0)
        return -1;
    return op_check_vector(&launch->in[1], "bias", columns, err);
}

static void bias_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = in[0][i] + in[1][i % columns];
}

static int bias_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= LENGTH(matrices))
        return -1;
    int64_t rows = matrices[index][0], columns = matrices[index][1];
    *launch = (struct lab_launch){
        .op = LAB_OP_BIAS,
        .in = {lab_tensor_matrix(NULL, dtype, rows, columns),
               lab_tensor_vector(NULL, dtype, columns)},
        .out = lab_tensor_matrix(NULL, dtype, rows, columns),
    };
    return 0;
}

const struct lab_op lab_op_bias = {
    .name = "bias",
    .help = "adds a vector to every row",
    .inputs = 2,
    .over = 1 << 0,
    .check = bias_check,
    .flops = 1,
    .reference = bias_reference,
    .example = bias_example,
};

/* By erfc, since 1 + erf loses the negative tail's digits; at −∞ the limit. */
double op_gelu(double x) {
    return x == -INFINITY ? 0.0 : x / 2 * erfc(-x * M_SQRT1_2);
}

static int gelu_check(const struct lab_launch *launch, struct lab_err *err) {
    return op_check_vector(&launch->in[0], "x", lab_tensor_count(&launch->out), err);
}

static void gelu_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = op_gelu(in[0][i]);
}

const struct lab_op lab_op_gelu = {
    .name = "gelu",
    .help = "Gaussian error linear unit, the exact one",
    .inputs = 1,
    .over = 1 << 0,
    .check = gelu_check,
    .flops = 5,
    .reference = gelu_reference,
    .example = vector_example,
};

/* --- by tanh (Hendrycks and Gimpel, 2016) --- */

#define TANH_CUBE 0.044715

static double tanh_inner(double x) {
    return sqrt(M_2_PI) * (x + TANH_CUBE * x * x * x);
}

double op_gelu_tanh(double x) {
    return x / 2 * (1 + tanh(tanh_inner(x)));
}

double op_gelu_tanh_slope(double x) {
    double t = tanh(tanh_inner(x)), inner_slope = sqrt(M_2_PI) * (1 + 3 * TANH_CUBE * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope;
}

static void gelu_tanh_reference(const struct lab_launch *launch, const double *const *in,
                                double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = op_gelu_tanh(in[0][i]);
}

/* Where tanh bends and where it is flat. */
static void gelu_tanh_domain(const struct lab_launch *launch, int input, float *values) {
    for (int64_t i = 0; input == 0 && i < lab_tensor_count(&launch->out); i++)
        values[i] *= 6;
}

const struct lab_op lab_op_gelu_tanh = {
    .name = "gelu_tanh",
    .help = "Gaussian error linear unit, approximated by tanh",
    .inputs = 1,
    .over = 1 << 0,
    .check = gelu_check,
    .flops = 8,
    .reference = gelu_tanh_reference,
    .example = vector_example,
    .domain = gelu_tanh_domain,
};

static int gelu_tanh_backward_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t count = lab_tensor_count(&launch->out);
    return op_check_vector(&launch->in[0], "x", count, err) ||
                   op_check_vector(&launch->in[1], "the derivative", count, err)
               ? -1
               : 0;
}

static void gelu_tanh_backward_reference(const struct lab_launch *launch, const double *const *in,
                                         double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = in[1][i] * op_gelu_tanh_slope(in[0][i]);
}

const struct lab_op lab_op_gelu_tanh_backward = {
    .name = "gelu_tanh_backward",
    .help = "the derivative through gelu_tanh",
    .inputs = 2,
    .over = 1 << 0 | 1 << 1,
    .check = gelu_tanh_backward_check,
    .flops = 14,
    .reference = gelu_tanh_backward_reference,
    .example = vector_example,
    .domain = gelu_tanh_domain,
};
