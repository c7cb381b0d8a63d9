/*
 * residual.c: layer norm as a language model trains it: forward together with the sum of the
 * residual, and backward together with what flows past the layer.
 */
#include "base/mem.h"
#include "device/op/parts.h"

#include <math.h>

enum { X, GAMMA, BETA, RESIDUAL };                                  /* of forward */
enum { B_X, B_GAMMA, B_STATS, B_DERIVATIVE, B_RESIDUAL, B_INPUTS }; /* of backward */

/* Widths of GPT-2's models, and odd ones; the many rows are more than all warps of a GPU. */
static const int64_t matrices[][2] = {{1, 1},    {3, 7},     {50, 63},  {7, 65},    {601, 128},
                                      {5, 1000}, {300, 768}, {2, 1600}, {9, 16384}, {5000, 24}};

static struct lab_tensor stats_of(int64_t rows) {
    return lab_tensor_matrix(NULL, LAB_FP32, rows, 2);
}

/* --- forward --- */

static struct lab_tensor forward_also(const struct lab_launch *launch) {
    return stats_of(launch->out.shape[1]);
}

static int forward_check(const struct lab_launch *launch, struct lab_err *err) {
    const struct lab_tensor *x = &launch->in[X];
    int64_t rows = lab_tensor_rows(x), columns = lab_tensor_columns(x);
    const int64_t both[] = {2, rows, columns};
    if (op_check_matrix(&launch->in[RESIDUAL], "the residual", rows, columns, err) ||
        op_check_shape(&launch->out, "the output", 3, both, err))
        return -1;
    return op_check_layer_norm(launch, columns, err);
}

static void forward_reference(const struct lab_launch *launch, const double *const *in,
                              double *out) {
    int64_t rows = launch->out.shape[1], columns = launch->out.shape[2], count = rows * columns;
    for (int64_t i = 0; i < count; i++)
        out[i] = in[X][i] + in[RESIDUAL][i];
    for (int64_t r = 0; r < rows; r++)
        op_layer_norm_row(out + r * columns, in[GAMMA], in[BETA], launch->epsilon, columns,
                          out + count + r * columns);
}

static void forward_reference_also(const struct lab_launch *launch, const double *const *in,
                                   double *also) {
    int64_t rows = launch->out.shape[1], columns = launch->out.shape[2];
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[X] + r * columns, *residual = in[RESIDUAL] + r * columns;
        double mean = 0, variance = 0;
        for (int64_t c = 0; c < columns; c++)
            mean += (x[c] + residual[c]) / (double)columns;
        for (int64_t c = 0; c < columns; c++) {
            double d = x[c] + residual[c] - mean;
            variance += d * d / (double)columns;
        }
        also[2 * r] = mean;
        also[2 * r + 1] = 1 / sqrt(variance + (double)launch->epsilon);
    }
}

static int forward_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof matrices / sizeof matrices[0]))
        return -1;
    int64_t rows = matrices[index][0], columns = matrices[index][1];
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, rows, columns);
    launch->in[X] = launch->in[RESIDUAL] = x;
    launch->in[GAMMA] = launch->in[BETA] = lab_tensor_vector(NULL, dtype, columns);
    launch->out = lab_tensor(NULL, dtype, 3, (int64_t[]){2, rows, columns});
    launch->epsilon = 1e-5f;
    return 0;
}

const struct lab_op lab_op_residual_layer_norm = {
    .name = "residual_layer_norm",
    .help = "the sum of two tensors and its rows, normalised, side by side",
    .inputs = 4,
    .check = forward_check,
    .flops = 4.5, /* of each of the two outputs: the sum's 1, the norm's 8 */
    .reference = forward_reference,
    .also = forward_also,
    .reference_also = forward_reference_also,
    .example = forward_example,
};

/* --- backward --- */

static struct lab_tensor backward_also(const struct lab_launch *launch) {
    return lab_tensor_matrix(NULL, LAB_FP32, 3, lab_tensor_columns(&launch->out));
}

static int backward_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    static const char *const names[B_INPUTS] = {
        [B_X] = "x", [B_DERIVATIVE] = "the derivative", [B_RESIDUAL] = "the residual's derivative"};
    for (int i = 0; i < B_INPUTS; i++)
        if (names[i] && op_check_matrix(&launch->in[i], names[i], rows, columns, err))
            return -1;
    if (op_check_matrix(&launch->in[B_STATS], "mean and deviation", rows, 2, err))
        return -1;
    return op_check_vector(&launch->in[B_GAMMA], "gamma", columns, err);
}

static void backward_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++) {
        const double *x = in[B_X] + r * columns, *d = in[B_DERIVATIVE] + r * columns;
        double mean = in[B_STATS][2 * r], scale = in[B_STATS][2 * r + 1], a = 0, b = 0;
        for (int64_t c = 0; c < columns; c++) {
            a += in[B_GAMMA][c] * d[c] / (double)columns;
            b += in[B_GAMMA][c] * d[c] * (x[c] - mean) * scale / (double)columns;
        }
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] = in[B_RESIDUAL][r * columns + c] +
                                   (in[B_GAMMA][c] * d[c] - a - (x[c] - mean) * scale * b) * scale;
    }
}

static void backward_reference_also(const struct lab_launch *launch, const double *const *in,
                                    double *also) {
    int64_t columns = lab_tensor_columns(&launch->out), count = lab_tensor_count(&launch->out);
    LAB_AUTO_FREE double *out = lab_mem_alloc((size_t)count, sizeof *out);
    backward_reference(launch, in, out);
    for (int64_t c = 0; c < 3 * columns; c++)
        also[c] = 0;
    for (int64_t i = 0; i < count; i++) {
        const double *stats = in[B_STATS] + i / columns * 2;
        also[i % columns] += out[i];
        also[columns + i % columns] += in[B_DERIVATIVE][i] * (in[B_X][i] - stats[0]) * stats[1];
        also[2 * columns + i % columns] += in[B_DERIVATIVE][i];
    }
}

static int backward_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof matrices / sizeof matrices[0]))
        return -1;
    int64_t rows = matrices[index][0], columns = matrices[index][1];
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, rows, columns);
    launch->in[B_X] = launch->in[B_DERIVATIVE] = launch->in[B_RESIDUAL] = launch->out = x;
    launch->in[B_GAMMA] = lab_tensor_vector(NULL, dtype, columns);
    launch->in[B_STATS] = stats_of(rows);
    return 0;
}

/* A deviation is above 0. */
static void backward_domain(const struct lab_launch *launch, int input, float *values) {
    for (int64_t r = 0; input == B_STATS && r < lab_tensor_rows(&launch->out); r++)
        values[2 * r + 1] = 1.5f + values[2 * r + 1];
}

const struct lab_op lab_op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .help = "derivatives of layer_norm by x, gamma and beta, added to the residual's",
    .inputs = B_INPUTS,
    .singles = 1u << B_STATS,
    .over = 1u << B_DERIVATIVE | 1u << B_RESIDUAL,
    .check = backward_check,
    .flops = 17, /* normalise 2, gamma 1, two sums 3, the sums' parts 5, residual 1; gamma's and
                    beta's sums 3, scale 1, the output's sum 1 */
    .reference = backward_reference,
    .also = backward_also,
    .reference_also = backward_reference_also,
    .example = backward_example,
    .domain = backward_domain,
};
