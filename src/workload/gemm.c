/*
 * gemm.c: one matrix product, out[m,n] = op(a)·op(b), plain or with the epilogues that a linear
 * layer has. The measure of a device's arithmetic.
 *
 * The layout's letters are BLAS's: n as stored, t transposed; "nt" is what a linear layer does,
 * whose weights are kept as [n,k].
 */
#include "workload/kernel/kernel.h"

#include <math.h>

struct gemm_config {
    int64_t m, n, k;
    const char *layout, *dtype, *epilogue, *config;
};

static const char *const layouts[] = {"nn", "nt", "tn", NULL};
static const char *const epilogues[] = {"none", "bias", "bias_gelu", "bias_add", NULL};
static const enum lab_op_id epilogue_ops[] = {LAB_OP_GEMM, LAB_OP_GEMM_BIAS, LAB_OP_GEMM_BIAS_GELU,
                                              LAB_OP_GEMM_BIAS_ADD};

static const struct lab_option options[] = {
    {"m", LAB_OPTION_INT, offsetof(struct gemm_config, m), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "rows", .help = "rows of the result"},
    {"n", LAB_OPTION_INT, offsetof(struct gemm_config, n), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "columns", .help = "columns of the result"},
    {"k", LAB_OPTION_INT, offsetof(struct gemm_config, k), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "elements", .help = "length of the sums"},
    {"layout", LAB_OPTION_CHOICE, offsetof(struct gemm_config, layout), .fallback = "nn",
     .choices = layouts, .help = "how a and b are stored: n as they are, t transposed"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct gemm_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the matrices"},
    {"epilogue", LAB_OPTION_CHOICE, offsetof(struct gemm_config, epilogue), .fallback = "none",
     .choices = epilogues,
     .help = "what is done to the product before it is stored; bias_add also adds a "
             "matrix, as a residual layer does"},
    KERNEL_CONFIG_OPTION(struct gemm_config, config),
    {NULL},
};

enum { A, B, BIAS, ADDED };

/* The launch that the config stands for, without data. */
static void gemm_launch(const void *opaque, struct lab_launch *ret_launch) {
    const struct gemm_config *config = opaque;
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype);
    struct lab_launch launch = {.op = LAB_OP_GEMM,
                                .transpose_a = config->layout[0] == 't',
                                .transpose_b = config->layout[1] == 't'};
    int64_t m = config->m, n = config->n, k = config->k;
    int epilogue = lab_str_find(config->epilogue, epilogues);
    if (epilogue >= 0)
        launch.op = epilogue_ops[epilogue];
    launch.in[A] = launch.transpose_a ? lab_tensor(NULL, dtype, 2, (int64_t[]){k, m})
                                      : lab_tensor(NULL, dtype, 2, (int64_t[]){m, k});
    launch.in[B] = launch.transpose_b ? lab_tensor(NULL, dtype, 2, (int64_t[]){n, k})
                                      : lab_tensor(NULL, dtype, 2, (int64_t[]){k, n});
    if (launch.op != LAB_OP_GEMM)
        launch.in[BIAS] = lab_tensor(NULL, dtype, 1, &n);
    launch.out = lab_tensor(NULL, dtype, 2, (int64_t[]){m, n});
    if (launch.op == LAB_OP_GEMM_BIAS_ADD)
        launch.in[ADDED] = launch.out;
    *ret_launch = launch;
}

static void gemm_cost(const void *config, struct lab_workload_cost *ret_cost) {
    kernel_cost(gemm_launch, config, 0, ret_cost);
}

/* b is walked as it is stored. */
static void reference_row(const struct lab_launch *launch, const float *const *in, int64_t row,
                          double *out) {
    const float *a = in[A], *b = in[B];
    int64_t m = launch->out.shape[0], n = launch->out.shape[1];
    int64_t k = launch->in[A].shape[launch->transpose_a ? 0 : 1];
    for (int64_t j = 0; j < n; j++)
        out[j] = 0;
    for (int64_t i = 0; i < k; i++) {
        double factor = launch->transpose_a ? a[i * m + row] : a[row * k + i];
        if (!launch->transpose_b)
            for (int64_t j = 0; j < n; j++)
                out[j] += factor * (double)b[i * n + j];
    }
    for (int64_t j = 0; j < n; j++) {
        if (launch->transpose_b) /* only nt: a is stored by rows */
            for (int64_t i = 0; i < k; i++)
                out[j] += (double)a[row * k + i] * (double)b[j * k + i];
        if (launch->op != LAB_OP_GEMM)
            out[j] += (double)in[BIAS][j];
        if (launch->op == LAB_OP_GEMM_BIAS_GELU)
            out[j] = 0.5 * out[j] * (1 + erf(out[j] / sqrt(2.0)));
        if (launch->op == LAB_OP_GEMM_BIAS_ADD)
            out[j] += (double)in[ADDED][row * n + j];
    }
}

static int gemm_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                     struct lab_err *err) {
    const struct gemm_config *config = opaque;
    return kernel_open(gemm_launch, config, config->config, reference_row, rank, ret_state, err);
}

static void gemm_label(const void *opaque, struct lab_str *out) {
    const struct gemm_config *config = opaque;
    lab_str_printf(out, "gemm%lldx%lldx%lld", (long long)config->m, (long long)config->n,
                   (long long)config->k);
    if (!lab_str_equal(config->layout, "nn"))
        lab_str_printf(out, "_%s", config->layout);
    if (!lab_str_equal(config->epilogue, "none"))
        lab_str_printf(out, "_%s", config->epilogue);
}

static void gemm_label_words(const void *opaque, struct lab_str *out) {
    const struct gemm_config *config = opaque;
    lab_str_printf(out, "m %lld, n %lld, k %lld", (long long)config->m, (long long)config->n,
                   (long long)config->k);
}

static bool gemm_launch_keys(const struct lab_launch *launch, struct lab_str *out) {
    struct lab_gemm_shape shape = lab_gemm_shape(launch);
    for (int i = 0; epilogues[i]; i++)
        if (launch->op == epilogue_ops[i]) {
            lab_str_printf(out, "m=%lld n=%lld k=%lld layout=%s%s dtype=%s epilogue=%s",
                           (long long)shape.m, (long long)shape.n, (long long)shape.k,
                           launch->transpose_a ? "t" : "n", launch->transpose_b ? "t" : "n",
                           lab_dtype_name(launch->out.dtype), epilogues[i]);
            return true;
        }
    return false;
}

static const char *const aliases[] = {"gemm_benchmark", NULL};

const struct lab_workload lab_workload_gemm = {
    .name = "gemm",
    .aliases = aliases,
    .help = "a matrix product, plain or with bias, GELU or a residual",
    .options = options,
    .config_size = sizeof(struct gemm_config),
    .label = gemm_label,
    .label_words = gemm_label_words,
    .cost = gemm_cost,
    .open = gemm_open,
    .close = kernel_close,
    .run = kernel_run,
    .verify = kernel_verify,
    .launch = gemm_launch,
    .configure = kernel_configure,
    .launch_keys = gemm_launch_keys,
};
