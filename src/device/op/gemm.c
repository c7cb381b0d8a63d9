/* gemm.c: the product of two matrices, alone and with what usually follows it. */
#include "device/op/parts.h"

static int gemm_check(const struct lab_launch *launch, struct lab_err *err) {
    if (launch->in[0].rank != 2)
        return lab_err_set(err, LAB_ERR_USER, "a has %d dimensions, must have 2",
                           launch->in[0].rank);
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    if (op_check_matrix(&launch->in[0], "a", launch->transpose_a ? s.k : s.m,
                        launch->transpose_a ? s.m : s.k, err) < 0)
        return -1;
    return op_check_matrix(&launch->in[1], "b", launch->transpose_b ? s.n : s.k,
                           launch->transpose_b ? s.k : s.n, err);
}

static int check_add(const struct lab_launch *launch, struct lab_err *err) {
    if (gemm_check(launch, err) < 0)
        return -1;
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    return op_check_matrix(&launch->in[2], "x", s.m, s.n, err);
}

static int check_bias(const struct lab_launch *launch, struct lab_err *err) {
    if (gemm_check(launch, err) < 0)
        return -1;
    return op_check_vector(&launch->in[2], "bias", lab_gemm_shape(launch).n, err);
}

static int check_bias_add(const struct lab_launch *launch, struct lab_err *err) {
    if (check_bias(launch, err) < 0)
        return -1;
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    return op_check_matrix(&launch->in[3], "residual", s.m, s.n, err);
}

static int check_bias_gelu_tanh(const struct lab_launch *launch, struct lab_err *err) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    const int64_t both[] = {2, s.m, s.n};
    return check_bias(launch, err) || op_check_shape(&launch->out, "the output", 3, both, err) ? -1
                                                                                               : 0;
}

static struct lab_cost gemm_cost(const struct lab_launch *launch) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    double elements = (double)s.m * (double)s.n, each = lab_op_get(launch->op)->flops;
    return op_cost(launch, elements * (2.0 * (double)s.k + each));
}

static void multiply(const struct lab_launch *launch, const double *a, const double *b,
                     double *out) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    /* steps in memory along the output's rows, its columns, and k */
    int64_t a_row = launch->transpose_a ? 1 : s.k, a_inner = launch->transpose_a ? s.m : 1;
    int64_t b_column = launch->transpose_b ? s.k : 1, b_inner = launch->transpose_b ? 1 : s.n;
    for (int64_t i = 0; i < s.m; i++)
        for (int64_t j = 0; j < s.n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < s.k; l++)
                sum += a[i * a_row + l * a_inner] * b[j * b_column + l * b_inner];
            out[i * s.n + j] = sum;
        }
}

static void gemm_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    multiply(launch, in[0], in[1], out);
}

static void reference_add(const struct lab_launch *launch, const double *const *in, double *out) {
    multiply(launch, in[0], in[1], out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] += in[2][i];
}

static void reference_bias(const struct lab_launch *launch, const double *const *in, double *out) {
    multiply(launch, in[0], in[1], out);
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] += in[2][i % columns];
}

static void reference_bias_gelu(const struct lab_launch *launch, const double *const *in,
                                double *out) {
    reference_bias(launch, in, out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = op_gelu(out[i]);
}

static void reference_bias_add(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    reference_bias(launch, in, out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] += in[3][i];
}

static void reference_bias_gelu_tanh(const struct lab_launch *launch, const double *const *in,
                                     double *out) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    multiply(launch, in[0], in[1], out);
    for (int64_t i = 0; i < s.m * s.n; i++) {
        out[i] += in[2][i % s.n];
        out[s.m * s.n + i] = op_gelu_tanh(out[i]);
    }
}

static void reference_gelu_tanh_backward(const struct lab_launch *launch, const double *const *in,
                                         double *out) {
    multiply(launch, in[0], in[1], out);
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] *= op_gelu_tanh_slope(in[2][i]);
}

static struct lab_launch bias_over(const struct lab_launch *launch) {
    struct lab_launch part = op_part(launch, LAB_OP_BIAS);
    part.in[0] = launch->out;
    part.in[1] = launch->in[2];
    return part;
}

static int lower_bias(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_GEMM);
    parts[1] = bias_over(launch);
    return 2;
}

static int lower_bias_gelu(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    int count = lower_bias(launch, parts);
    parts[count] = op_part(launch, LAB_OP_GELU);
    parts[count].in[0] = launch->out;
    return count + 1;
}

/* The residual first: it may be the output's own memory, which a gemm would write over. */
static int lower_bias_add(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = bias_over(launch);
    parts[0].in[0] = launch->in[3];
    parts[1] = op_part(launch, LAB_OP_GEMM_ADD);
    parts[1].in[2] = launch->out;
    return 2;
}

static int lower_bias_gelu_tanh(const struct lab_launch *launch,
                                struct lab_launch parts[LAB_OP_PARTS]) {
    struct lab_gemm_shape s = lab_gemm_shape(launch);
    enum lab_dtype dtype = launch->out.dtype;
    char *data = launch->out.data;
    parts[0] = op_part(launch, LAB_OP_GEMM_BIAS);
    parts[0].out = lab_tensor_matrix(data, dtype, s.m, s.n);
    parts[1] = op_part(launch, LAB_OP_GELU_TANH);
    parts[1].in[0] = parts[0].out;
    parts[1].out =
        lab_tensor_matrix(data ? data + lab_tensor_bytes(&parts[0].out) : NULL, dtype, s.m, s.n);
    return 2;
}

static int lower_gelu_tanh_backward(const struct lab_launch *launch,
                                    struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_GEMM);
    parts[1] = op_part(launch, LAB_OP_GELU_TANH_BACKWARD);
    parts[1].in[0] = launch->in[2];
    parts[1].in[1] = launch->out;
    return 2;
}

static const struct {
    struct lab_gemm_shape shape;
    bool transpose_a, transpose_b;
} cases[] = {
    {{1, 1, 1}, false, false},      {{7, 7, 7}, false, true},       {{63, 65, 7}, true, false},
    {{1, 197, 65}, false, true},    {{197, 1, 63}, true, true},     {{1, 63, 65}, true, false},
    {{65, 63, 197}, false, false},  {{50, 384, 128}, false, true},  {{10, 1000, 64}, false, true},
    {{197, 176, 200}, false, true}, {{40, 136, 1096}, true, false}, {{72, 192, 1032}, false, false},
};

static int gemm_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    struct lab_gemm_shape s = cases[index].shape;
    bool transpose_a = cases[index].transpose_a, transpose_b = cases[index].transpose_b;
    *launch = (struct lab_launch){
        .op = launch->op,
        .in = {transpose_a ? lab_tensor_matrix(NULL, dtype, s.k, s.m)
                           : lab_tensor_matrix(NULL, dtype, s.m, s.k),
               transpose_b ? lab_tensor_matrix(NULL, dtype, s.n, s.k)
                           : lab_tensor_matrix(NULL, dtype, s.k, s.n)},
        .out = lab_tensor_matrix(NULL, dtype, s.m, s.n),
        .transpose_a = transpose_a,
        .transpose_b = transpose_b,
    };
    if (launch->op == LAB_OP_GEMM_ADD || launch->op == LAB_OP_GEMM_GELU_TANH_BACKWARD)
        launch->in[2] = launch->out;
    else if (launch->op != LAB_OP_GEMM)
        launch->in[2] = lab_tensor_vector(NULL, dtype, s.n);
    if (launch->op == LAB_OP_GEMM_BIAS_ADD)
        launch->in[3] = launch->out;
    if (launch->op == LAB_OP_GEMM_BIAS_GELU_TANH)
        launch->out = lab_tensor(NULL, dtype, 3, (int64_t[]){2, s.m, s.n});
    return 0;
}

const struct lab_op lab_op_gemm = {
    .name = "gemm",
    .help = "product of two matrices",
    .inputs = 2,
    .check = gemm_check,
    .cost = gemm_cost,
    .reference = gemm_reference,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_add = {
    .name = "gemm_add",
    .help = "product of two matrices, added to a third",
    .inputs = 3,
    .over = 1 << 2,
    .check = check_add,
    .flops = 1,
    .cost = gemm_cost,
    .reference = reference_add,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_bias = {
    .name = "gemm_bias",
    .help = "linear layer",
    .inputs = 3,
    .check = check_bias,
    .flops = 1,
    .cost = gemm_cost,
    .reference = reference_bias,
    .lower = lower_bias,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_bias_gelu = {
    .name = "gemm_bias_gelu",
    .help = "linear layer and its activation",
    .inputs = 3,
    .check = check_bias,
    .flops = 1 + 5,
    .cost = gemm_cost,
    .reference = reference_bias_gelu,
    .lower = lower_bias_gelu,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_bias_add = {
    .name = "gemm_bias_add",
    .help = "linear layer with its residual",
    .inputs = 4,
    .over = 1 << 3,
    .check = check_bias_add,
    .flops = 2,
    .cost = gemm_cost,
    .reference = reference_bias_add,
    .lower = lower_bias_add,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_bias_gelu_tanh = {
    .name = "gemm_bias_gelu_tanh",
    .help = "linear layer and its activation, side by side",
    .inputs = 3,
    .check = check_bias_gelu_tanh,
    .flops = 1 + 8,
    .cost = gemm_cost,
    .reference = reference_bias_gelu_tanh,
    .lower = lower_bias_gelu_tanh,
    .example = gemm_example,
};

const struct lab_op lab_op_gemm_gelu_tanh_backward = {
    .name = "gemm_gelu_tanh_backward",
    .help = "product of two matrices through the activation's derivative",
    .inputs = 3,
    .check = check_add,
    .flops = 14,
    .cost = gemm_cost,
    .reference = reference_gelu_tanh_backward,
    .lower = lower_gelu_tanh_backward,
    .example = gemm_example,
};
