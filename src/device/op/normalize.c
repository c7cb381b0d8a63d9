/* normalize.c: layer_norm and softmax: each row by its own sums. */
#include "device/op/parts.h"

#include <math.h>

/* The long rows are beyond what any kernel keeps in registers; the many rows are enough for several
 * to share a block on the largest GPUs, with a last block that isn't full. */
static const int64_t matrices[][2] = {{1, 1},     {3, 7},     {50, 63},    {7, 65},
                                      {5, 197},   {50, 512},  {300, 1000}, {3, 4096},
                                      {1, 20001}, {2, 40000}, {601, 128}};

static int normalize_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof matrices / sizeof matrices[0]))
        return -1;
    int64_t rows = matrices[index][0], columns = matrices[index][1];
    launch->in[0] = launch->out = lab_tensor_matrix(NULL, dtype, rows, columns);
    for (int i = 1; i < lab_op_get(launch->op)->inputs; i++)
        launch->in[i] = lab_tensor_vector(NULL, dtype, columns);
    launch->epsilon = 1e-5f;
    return 0;
}

void op_row_stats(const double *x, double epsilon, int64_t columns, double stats[2]) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < columns; c++)
        mean += x[c] / (double)columns;
    for (int64_t c = 0; c < columns; c++)
        variance += (x[c] - mean) * (x[c] - mean) / (double)columns;
    stats[0] = mean;
    stats[1] = 1 / sqrt(variance + epsilon);
}

void op_layer_norm_row(const double *x, const double *gamma, const double *beta, double epsilon,
                       int64_t columns, double *out) {
    double stats[2];
    op_row_stats(x, epsilon, columns, stats);
    for (int64_t c = 0; c < columns; c++)
        out[c] = (x[c] - stats[0]) * stats[1] * gamma[c] + beta[c];
}

int op_check_layer_norm(const struct lab_launch *launch, int64_t columns, struct lab_err *err) {
    if (!(launch->epsilon > 0) || !isfinite(launch->epsilon))
        return lab_err_set(err, LAB_ERR_USER, "epsilon is %g, must be above 0",
                           (double)launch->epsilon);
    if (op_check_vector(&launch->in[1], "gamma", columns, err) < 0)
        return -1;
    return op_check_vector(&launch->in[2], "beta", columns, err);
}

static int layer_norm_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t columns = lab_tensor_columns(&launch->out);
    if (op_check_matrix(&launch->in[0], "x", lab_tensor_rows(&launch->out), columns, err) < 0)
        return -1;
    return op_check_layer_norm(launch, columns, err);
}

static void layer_norm_reference(const struct lab_launch *launch, const double *const *in,
                                 double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++)
        op_layer_norm_row(in[0] + r * columns, in[1], in[2], launch->epsilon, columns,
                          out + r * columns);
}

static struct lab_tensor layer_norm_also(const struct lab_launch *launch) {
    return lab_tensor_matrix(NULL, LAB_FP32, lab_tensor_rows(&launch->out), 2);
}

static void layer_norm_reference_also(const struct lab_launch *launch, const double *const *in,
                                      double *also) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++)
        op_row_stats(in[0] + r * columns, launch->epsilon, columns, also + 2 * r);
}

const struct lab_op lab_op_layer_norm = {
    .name = "layer_norm",
    .help = "rows of mean 0 and variance 1, then scaled and shifted",
    .inputs = 3,
    .over = 1 << 0,
    .check = layer_norm_check,
    .flops = 8, /* mean 1; variance: subtract, square, add; subtract, scale, gamma, beta */
    .reference = layer_norm_reference,
    .also = layer_norm_also,
    .reference_also = layer_norm_reference_also,
    .example = normalize_example,
};

static int softmax_check(const struct lab_launch *launch, struct lab_err *err) {
    return op_check_matrix(&launch->in[0], "x", lab_tensor_rows(&launch->out),
                           lab_tensor_columns(&launch->out), err);
}

static void softmax_reference(const struct lab_launch *launch, const double *const *in,
                              double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++) {
        const double *x = in[0] + r * columns;
        double max = -INFINITY, sum = 0;
        for (int64_t c = 0; c < columns; c++)
            max = x[c] > max ? x[c] : max;
        for (int64_t c = 0; c < columns; c++)
            sum += exp(x[c] - max);
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] = exp(x[c] - max) / sum;
    }
}

/* And rows that take several of a GPU's blocks, and one that no number of them can keep. */
static int softmax_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t long_rows[][2] = {{2, 150001}, {1, 1400001}};
    int beyond = index - (int)(sizeof matrices / sizeof matrices[0]);
    if (beyond < 0)
        return normalize_example(index, dtype, launch);
    if (beyond >= (int)(sizeof long_rows / sizeof long_rows[0]))
        return -1;
    launch->in[0] = launch->out =
        lab_tensor_matrix(NULL, dtype, long_rows[beyond][0], long_rows[beyond][1]);
    return 0;
}

const struct lab_op lab_op_softmax = {
    .name = "softmax",
    .help = "each row as shares of one, by its exponentials",
    .inputs = 1,
    .over = 1 << 0,
    .check = softmax_check,
    .flops = 5, /* maximum, subtract, exp, sum, divide */
    .reference = softmax_reference,
    .example = softmax_example,
};
