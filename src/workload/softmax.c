/*
 * softmax.c: softmax over the rows of a matrix [rows, columns]. Little arithmetic for each byte, so
 * it measures a device's memory rather than its multipliers.
 */
#include "workload/kernel/kernel.h"

#include <math.h>

struct softmax_config {
    int64_t rows, columns;
    const char *dtype, *config;
};

static const struct lab_option options[] = {
    {"rows", LAB_OPTION_INT, offsetof(struct softmax_config, rows), .fallback = "4096", .min = 1,
     .max = 1 << 24, .unit = "rows", .help = "rows, each normalised by itself"},
    {"columns", LAB_OPTION_INT, offsetof(struct softmax_config, columns), .fallback = "1024",
     .min = 1, .max = 1 << 24, .unit = "elements", .help = "elements of a row"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct softmax_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the matrix"},
    KERNEL_CONFIG_OPTION(struct softmax_config, config),
    {NULL},
};

static void softmax_launch(const void *opaque, struct lab_launch *ret_launch) {
    const struct softmax_config *config = opaque;
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype);
    struct lab_tensor matrix = lab_tensor_matrix(NULL, dtype, config->rows, config->columns);
    *ret_launch = (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {matrix}, .out = matrix};
}

static void softmax_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct softmax_config *config = opaque;
    kernel_cost(softmax_launch, config, (double)config->rows, ret_cost);
}

static void reference_row(const struct lab_launch *launch, const float *const *in, int64_t row,
                          double *out) {
    int64_t columns = launch->out.shape[1];
    const float *x = in[0] + row * columns;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < columns; i++)
        largest = fmax(largest, (double)x[i]);
    for (int64_t i = 0; i < columns; i++)
        sum += out[i] = exp((double)x[i] - largest);
    for (int64_t i = 0; i < columns; i++)
        out[i] /= sum;
}

static int softmax_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                        struct lab_err *err) {
    const struct softmax_config *config = opaque;
    return kernel_open(softmax_launch, config, config->config, reference_row, rank, ret_state, err);
}

static void softmax_label(const void *opaque, struct lab_str *out) {
    const struct softmax_config *config = opaque;
    lab_str_printf(out, "softmax%lldx%lld", (long long)config->rows, (long long)config->columns);
}

static void softmax_label_words(const void *opaque, struct lab_str *out) {
    const struct softmax_config *config = opaque;
    lab_str_printf(out, "%lld rows, %lld columns", (long long)config->rows,
                   (long long)config->columns);
}

const struct lab_workload lab_workload_softmax = {
    .name = "softmax",
    .help = "softmax over the rows of a matrix",
    .options = options,
    .config_size = sizeof(struct softmax_config),
    .label = softmax_label,
    .label_words = softmax_label_words,
    .cost = softmax_cost,
    .open = softmax_open,
    .close = kernel_close,
    .run = kernel_run,
    .verify = kernel_verify,
    .launch = softmax_launch,
    .configure = kernel_configure,
};
