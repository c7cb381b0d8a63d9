/*
 * cross_entropy.c: the loss of a classifier or language model and its derivative, a row of logits
 * at a time. Rows may be padded: classes end before columns do.
 */
#include "device/op/parts.h"

#include <math.h>

enum { LOGITS, TARGETS, INPUTS };

static struct lab_tensor entropy_also(const struct lab_launch *launch) {
    return lab_tensor_vector(NULL, LAB_FP32, lab_tensor_rows(&launch->out));
}

static int entropy_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    if (op_check_matrix(&launch->in[LOGITS], "logits", rows, columns, err) ||
        op_check_vector(&launch->in[TARGETS], "targets", rows, err))
        return -1;
    if (launch->classes < 1 || launch->classes > columns || launch->classes > 1 << 24)
        return lab_err_set(err, LAB_ERR_USER,
                           "%lld classes, must be 1 to the %lld columns, and 2^24 at most",
                           (long long)launch->classes, (long long)columns);
    if (!isfinite(launch->scale))
        return lab_err_set(err, LAB_ERR_USER, "scale is %g, must be finite", (double)launch->scale);
    return 0;
}

/* The logarithm of a row's sum of exponentials. */
static double log_sum(const double *x, int64_t classes) {
    double top = x[0];
    for (int64_t c = 1; c < classes; c++)
        top = fmax(top, x[c]);
    double sum = exp(x[0] - top);
    for (int64_t c = 1; c < classes; c++)
        sum += exp(x[c] - top);
    return top + log(sum);
}

static void entropy_reference(const struct lab_launch *launch, const double *const *in,
                              double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++) {
        const double *x = in[LOGITS] + r * columns;
        int64_t target = (int64_t)in[TARGETS][r];
        double all = log_sum(x, launch->classes), scale = target < 0 ? 0 : (double)launch->scale;
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] =
                c < launch->classes ? (exp(x[c] - all) - (c == target ? 1 : 0)) * scale : 0;
    }
}

static void entropy_reference_also(const struct lab_launch *launch, const double *const *in,
                                   double *also) {
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++) {
        const double *x = in[LOGITS] + r * columns;
        int64_t target = (int64_t)in[TARGETS][r];
        also[r] = target < 0 ? 0 : log_sum(x, launch->classes) - x[target];
    }
}

/* GPT-2's vocabulary as it is and padded, and rows that no registers hold. */
static int entropy_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t cases[][3] = {{1, 1, 1},         {3, 7, 7},        {50, 64, 63},
                                       {7, 72, 65},       {65, 1000, 1000}, {5, 50304, 50257},
                                       {2, 50257, 50257}, {3, 4096, 4095},  {2, 131072, 131072}};
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    launch->in[LOGITS] = launch->out =
        lab_tensor_matrix(NULL, dtype, cases[index][0], cases[index][1]);
    launch->in[TARGETS] = lab_tensor_vector(NULL, LAB_FP32, cases[index][0]);
    launch->classes = cases[index][2];
    launch->scale = 0.5f;
    return 0;
}

/* Logits that differ, and any class or none. */
static void entropy_domain(const struct lab_launch *launch, int input, float *values) {
    int64_t count = lab_tensor_count(&launch->in[input]);
    for (int64_t i = 0; i < count; i++)
        values[i] = input == LOGITS
                        ? 4 * values[i]
                        : floorf((values[i] + 1) / 2 * (float)(launch->classes + 1)) - 1;
}

const struct lab_op lab_op_cross_entropy = {
    .name = "cross_entropy",
    .help = "the derivative of a classifier's loss by its logits, and the losses",
    .inputs = INPUTS,
    .singles = 1u << TARGETS,
    .over = 1u << LOGITS,
    .check = entropy_check,
    .flops = 6, /* softmax 5, scale 1 */
    .reference = entropy_reference,
    .also = entropy_also,
    .reference_also = entropy_reference_also,
    .example = entropy_example,
    .domain = entropy_domain,
};
