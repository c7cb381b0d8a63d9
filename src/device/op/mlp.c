/*
 * mlp.c: a training step of a multilayer perceptron: forward with its loss, backward, and both with
 * Adam behind them. What the tensors hold is in device/mlp.h.
 */
#include "device/op/parts.h"

#include "base/mem.h"
#include "device/op/mlp.h"

#include <math.h>
#include <string.h>

/* --- checks --- */

static int check_data(const struct lab_launch *launch, int input, int width, const char *what,
                      struct lab_err *err) {
    const struct lab_tensor *data = &launch->in[input];
    int64_t rows = lab_tensor_rows(data), columns = launch->mlp.widths[width];
    if (rows < launch->mlp.batch)
        return lab_err_set(err, LAB_ERR_USER, "%s has %lld rows, must have a batch's %lld", what,
                           (long long)rows, (long long)launch->mlp.batch);
    return op_check_matrix(data, what, lab_tensor_rows(&launch->in[OP_MLP_X]), columns, err);
}

static int check_inputs(const struct lab_launch *launch, bool has_target, int state,
                        struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    if (lab_mlp_check(mlp, err) || check_data(launch, OP_MLP_X, 0, "x", err) ||
        (has_target && check_data(launch, OP_MLP_Y, lab_mlp_layers(mlp), "y", err)))
        return -1;
    return op_check_vector(&launch->in[state], "the state", lab_mlp_state_count(mlp), err);
}

static int check_all_layers(const struct lab_launch *launch, struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    if (!mlp->layer_end || (mlp->layer_begin == 0 && mlp->layer_end == lab_mlp_layers(mlp)))
        return 0;
    return lab_err_set(err, LAB_ERR_USER, "it has layers %d to %d alone, must have all",
                       (int)mlp->layer_begin, (int)mlp->layer_end - 1);
}

static int forward_check(const struct lab_launch *launch, struct lab_err *err) {
    if (check_inputs(launch, true, OP_MLP_STATE, err))
        return -1;
    return op_check_vector(&launch->out, "the output", lab_mlp_forward_count(&launch->mlp), err);
}

static int backward_check(const struct lab_launch *launch, struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    if (check_inputs(launch, false, OP_BACKWARD_STATE, err) ||
        op_check_vector(&launch->in[OP_BACKWARD_WORK], "work", lab_mlp_work_count(mlp), err))
        return -1;
    return op_check_vector(&launch->out, "the gradient", lab_mlp_gradient_count(mlp), err);
}

static int gradient_check(const struct lab_launch *launch, struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    if (check_inputs(launch, true, OP_MLP_STATE, err) || check_all_layers(launch, err) ||
        op_check_vector(&launch->in[OP_MLP_WORK], "work", lab_mlp_work_count(mlp), err))
        return -1;
    return op_check_vector(&launch->out, "the gradient", lab_mlp_gradient_count(mlp), err);
}

static int step_check(const struct lab_launch *launch, struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    if (check_inputs(launch, true, OP_MLP_STATE, err) || check_all_layers(launch, err) ||
        op_check_vector(&launch->in[OP_MLP_WORK], "work", lab_mlp_work_count(mlp), err) ||
        op_check_vector(&launch->in[OP_MLP_GRADIENT], "the gradient", lab_mlp_gradient_count(mlp),
                        err) ||
        op_check_vector(&launch->out, "the new state", lab_mlp_state_count(mlp), err))
        return -1;
    return op_check_adam(&launch->adam, err);
}

/* --- costs --- */

static double layer_products(const struct lab_mlp *mlp, int layer) {
    return 2.0 * (double)mlp->rows * mlp->widths[layer] * mlp->widths[layer + 1];
}

static double forward_flops(const struct lab_mlp *mlp) {
    double flops = 0;
    int layers = lab_mlp_layers(mlp);
    for (int l = 0; l < layers; l++)
        flops += layer_products(mlp, l) +
                 (l + 1 < layers ? 3.0 : 6.0) * (double)mlp->rows * mlp->widths[l + 1];
    return flops;
}

static double backward_flops(const struct lab_mlp *mlp) {
    double flops = 0;
    struct op_layers range = op_mlp_range(mlp);
    for (int l = range.begin; l < range.end; l++) {
        flops += layer_products(mlp, l) + (double)mlp->rows * mlp->widths[l + 1];
        if (l > 0)
            flops += layer_products(mlp, l) + (double)mlp->rows * mlp->widths[l];
    }
    return flops;
}

/* floats that are read and written, and flops */
static struct lab_cost cost_of(double flops, int64_t read, int64_t written) {
    return (struct lab_cost){.flops = flops,
                             .bytes_read = (double)read * sizeof(float),
                             .bytes_written = (double)written * sizeof(float)};
}

static int64_t data_count(const struct lab_mlp *mlp, bool has_target) {
    return mlp->rows * (mlp->widths[0] + (has_target ? mlp->widths[lab_mlp_layers(mlp)] : 0));
}

static struct lab_cost forward_cost(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    return cost_of(forward_flops(mlp), data_count(mlp, true) + lab_mlp_parameters(mlp),
                   lab_mlp_forward_count(mlp));
}

static struct lab_cost backward_cost(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    struct op_layers range = op_mlp_range(mlp);
    int64_t parameters = lab_mlp_weight_at(mlp, range.end) - lab_mlp_weight_at(mlp, range.begin);
    int64_t outputs = lab_mlp_output_at(mlp, range.end) - lab_mlp_output_at(mlp, range.begin);
    int64_t before = range.begin ? mlp->rows * mlp->widths[range.begin] : data_count(mlp, false);
    return cost_of(backward_flops(mlp), before + outputs + parameters, parameters);
}

static struct lab_cost gradient_cost(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    return cost_of(forward_flops(mlp) + backward_flops(mlp),
                   data_count(mlp, true) + lab_mlp_parameters(mlp), lab_mlp_gradient_count(mlp));
}

static struct lab_cost step_cost(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    int64_t parameters = lab_mlp_parameters(mlp);
    double update = OP_ADAM_FLOPS * (double)parameters;
    return cost_of(forward_flops(mlp) + backward_flops(mlp) + update,
                   data_count(mlp, true) + 3 * parameters, 3 * parameters);
}

/* --- references --- */

static int64_t step_of(const struct lab_mlp *mlp, const double *state) {
    const double *tail = state + lab_mlp_state_count(mlp) - LAB_MLP_TAIL;
    return lab_mlp_step_of(tail[LAB_MLP_STEP_LOW], tail[LAB_MLP_STEP_HIGH]);
}

/* Row `row` of what layer `layer` takes in: of the data, or what the layer before has put out. */
static const double *input_row(const struct lab_launch *launch, const double *x,
                               const double *outputs, int64_t step, int layer, int64_t row) {
    const struct lab_mlp *mlp = &launch->mlp;
    int64_t width = mlp->widths[layer];
    if (layer > 0)
        return outputs + lab_mlp_output_at(mlp, layer - 1) + row * width;
    return x + (lab_mlp_row(mlp, lab_tensor_rows(&launch->in[OP_MLP_X]), step) + row) * width;
}

/*
 * A factor as the matrix units take it: with 10 bits behind the point in tf32, ties away from zero,
 * with 7 in bf16, ties to even. Without this a sum near zero may be on the other side of ReLU's
 * edge, which is a difference that no tolerance tells from a fault. Their sums are of single
 * precision, here of double.
 */
static double factor(enum lab_dtype compute, double value) {
    float single = (float)value;
    uint32_t bits;
    if (compute == LAB_FP32 || !isfinite(single))
        return value;
    memcpy(&bits, &single, sizeof bits);
    bits = compute == LAB_TF32 ? (bits + 0x1000) & ~0x1fffu
                               : (bits + 0x7fff + (bits >> 16 & 1)) & ~0xffffu;
    memcpy(&single, &bits, sizeof bits);
    return (double)single;
}

static void take_factors(enum lab_dtype compute, const double *values, int64_t count, double *to) {
    for (int64_t i = 0; i < count; i++)
        to[i] = factor(compute, values[i]);
}

static int64_t widest_of(const struct lab_mlp *mlp) {
    int64_t widest = 0;
    for (int i = 0; i < mlp->width_count; i++)
        widest = mlp->widths[i] > widest ? mlp->widths[i] : widest;
    return widest;
}

/* All parameters as factors, and room for a row of any width; allocated. */
static double *weights_of(const struct lab_launch *launch, const double *state, double **ret_row) {
    int64_t count = lab_mlp_parameters(&launch->mlp);
    double *weights = lab_mem_alloc((size_t)(count + widest_of(&launch->mlp)), sizeof *weights);
    take_factors(launch->compute, state, count, weights);
    *ret_row = weights + count;
    return weights;
}

/* In four sums, so that one addition needn't wait for the other. */
static double dot(const double *a, const double *b, int64_t count) {
    double sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int k = 0; k < 4; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* `weights` and `from` are factors. */
static void forward_row(const struct lab_mlp *mlp, const double *state, const double *weights,
                        const double *from, int64_t step, int layer, int64_t row, double *to) {
    int64_t in = mlp->widths[layer], out = mlp->widths[layer + 1];
    const double *weight = weights + lab_mlp_weight_at(mlp, layer);
    const double *bias = state + lab_mlp_bias_at(mlp, layer);
    double scale = 0x1p16 / (0x1p16 - (double)lab_mlp_threshold(mlp));
    for (int64_t o = 0; o < out; o++) {
        to[o] = dot(weight + o * in, from, in) + bias[o];
        if (layer + 1 == lab_mlp_layers(mlp))
            continue;
        bool kept = !(to[o] <= 0) && lab_mlp_keeps(mlp, step, layer, mlp->first_row + row, o);
        to[o] = kept ? scale * to[o] : 0;
    }
}

static void forward_reference(const struct lab_launch *launch, const double *const *in,
                              double *out) {
    const struct lab_mlp *mlp = &launch->mlp;
    int layers = lab_mlp_layers(mlp);
    const double *state = in[OP_MLP_STATE];
    int64_t step = step_of(mlp, state), width = mlp->widths[layers];
    int64_t first = lab_mlp_row(mlp, lab_tensor_rows(&launch->in[OP_MLP_X]), step);
    double elements = (double)mlp->batch * (double)width, mse = 0, mae = 0;
    double *from, *weights = weights_of(launch, state, &from);
    for (int64_t row = 0; row < mlp->rows; row++) {
        double *last = out + lab_mlp_output_at(mlp, layers - 1) + row * width;
        for (int l = 0; l < layers; l++) {
            take_factors(launch->compute, input_row(launch, in[OP_MLP_X], out, step, l, row),
                         mlp->widths[l], from);
            forward_row(mlp, state, weights, from, step, l, row,
                        out + lab_mlp_output_at(mlp, l) + row * mlp->widths[l + 1]);
        }
        for (int64_t o = 0; o < width; o++) {
            double difference = last[o] - in[OP_MLP_Y][(first + row) * width + o];
            mse += difference * difference / elements;
            mae += fabs(difference) / elements;
            last[o] = 2 * difference / elements;
        }
    }
    lab_mem_free(weights);
    out[lab_mlp_output_at(mlp, layers)] = mse;
    out[lab_mlp_output_at(mlp, layers) + 1] = mae;
}

/* The derivatives by the outputs of the layer before, through its dropout and ReLU; `weights` are
 * factors. */
static void delta_row(const struct lab_launch *launch, int layer, const double *weights,
                      const double *delta, const double *output_before, double *to) {
    const struct lab_mlp *mlp = &launch->mlp;
    int64_t in = mlp->widths[layer], out = mlp->widths[layer + 1];
    const double *weight = weights + lab_mlp_weight_at(mlp, layer);
    double scale = 0x1p16 / (0x1p16 - (double)lab_mlp_threshold(mlp));
    memset(to, 0, (size_t)in * sizeof *to);
    for (int64_t o = 0; o < out; o++) {
        double d = factor(launch->compute, delta[o]);
        for (int64_t i = 0; i < in; i++)
            to[i] += d * weight[o * in + i];
    }
    for (int64_t i = 0; i < in; i++)
        to[i] = output_before[i] == 0 ? 0 : scale * to[i];
}

static void layer_gradient(const struct lab_launch *launch, int layer, int64_t step,
                           const double *x, const double *outputs, const double *delta,
                           double *from, double *gradient) {
    const struct lab_mlp *mlp = &launch->mlp;
    int64_t in = mlp->widths[layer], out = mlp->widths[layer + 1];
    double *weight = gradient + lab_mlp_weight_at(mlp, layer);
    double *bias = gradient + lab_mlp_bias_at(mlp, layer);
    memset(weight, 0, (size_t)(in * out) * sizeof *weight);
    memset(bias, 0, (size_t)out * sizeof *bias);
    for (int64_t row = 0; row < mlp->rows; row++) {
        take_factors(launch->compute, input_row(launch, x, outputs, step, layer, row), in, from);
        for (int64_t o = 0; o < out; o++) {
            double d = factor(launch->compute, delta[row * out + o]);
            bias[o] += delta[row * out + o];
            for (int64_t i = 0; i < in; i++)
                weight[o * in + i] += d * from[i];
        }
    }
}

/* `outputs` is what mlp_forward leaves; `delta` the derivatives by the outputs of the last layer of
 * the range. */
static void backward(const struct lab_launch *launch, const double *x, const double *state,
                     const double *outputs, const double *delta, double *gradient) {
    const struct lab_mlp *mlp = &launch->mlp;
    struct op_layers range = op_mlp_range(mlp);
    int64_t step = step_of(mlp, state), widest = widest_of(mlp);
    double *from, *weights = weights_of(launch, state, &from);
    LAB_AUTO_FREE double *memory = lab_mem_alloc((size_t)(2 * widest * mlp->rows), sizeof *memory);
    double *deltas[2] = {memory, memory + widest * mlp->rows};
    memcpy(deltas[0], delta, (size_t)(mlp->rows * mlp->widths[range.end]) * sizeof *delta);
    for (int l = range.end - 1; l >= range.begin; l--) {
        double *now = deltas[(range.end - 1 - l) % 2], *before = deltas[(range.end - l) % 2];
        layer_gradient(launch, l, step, x, outputs, now, from, gradient);
        for (int64_t row = 0; row < mlp->rows && l > range.begin; row++)
            delta_row(launch, l, weights, now + row * mlp->widths[l + 1],
                      outputs + lab_mlp_output_at(mlp, l - 1) + row * mlp->widths[l],
                      before + row * mlp->widths[l]);
    }
    lab_mem_free(weights);
    if (range.end < lab_mlp_layers(mlp))
        return;
    gradient[lab_mlp_parameters(mlp)] = outputs[lab_mlp_output_at(mlp, range.end)];
    gradient[lab_mlp_parameters(mlp) + 1] = outputs[lab_mlp_output_at(mlp, range.end) + 1];
}

static void backward_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    const double *work = in[OP_BACKWARD_WORK];
    backward(launch, in[OP_MLP_X], in[OP_BACKWARD_STATE], work,
             work + lab_mlp_delta_at(&launch->mlp, op_mlp_range(&launch->mlp).end - 1), out);
}

static void gradient_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    const struct lab_mlp *mlp = &launch->mlp;
    LAB_AUTO_FREE double *outputs =
        lab_mem_alloc((size_t)lab_mlp_forward_count(mlp), sizeof *outputs);
    forward_reference(launch, in, outputs);
    backward(launch, in[OP_MLP_X], in[OP_MLP_STATE], outputs,
             outputs + lab_mlp_output_at(mlp, lab_mlp_layers(mlp) - 1), out);
}

static void step_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    const struct lab_mlp *mlp = &launch->mlp;
    LAB_AUTO_FREE double *gradient =
        lab_mem_alloc((size_t)lab_mlp_gradient_count(mlp), sizeof *gradient);
    gradient_reference(launch, in, gradient);
    op_adam(&launch->adam, lab_mlp_parameters(mlp), in[OP_MLP_STATE], gradient, out);
}

/* --- compositions --- */

static int gradient_lower(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_MLP_FORWARD);
    parts[0].out = lab_tensor_vector(launch->in[OP_MLP_WORK].data, LAB_FP32,
                                     lab_mlp_forward_count(&launch->mlp));
    parts[1] = op_part(launch, LAB_OP_MLP_BACKWARD);
    parts[1].in[OP_BACKWARD_STATE] = launch->in[OP_MLP_STATE];
    parts[1].in[OP_BACKWARD_WORK] = launch->in[OP_MLP_WORK];
    return 2;
}

static int step_lower(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_MLP_GRADIENT);
    parts[0].out = launch->in[OP_MLP_GRADIENT];
    parts[1] = op_part(launch, LAB_OP_ADAM);
    parts[1].in[OP_ADAM_STATE] = launch->in[OP_MLP_STATE];
    parts[1].in[OP_ADAM_GRADIENT] = launch->in[OP_MLP_GRADIENT];
    return 2;
}

/* --- examples --- */

static const struct {
    struct lab_mlp mlp;
    int64_t data_rows;
} cases[] = {
    {{{3, 2}, 2, 0, 1, 1, 0, 1, 0, 0}, 1},                          /* one layer, one row */
    {{{50, 33, 7, 3}, 4, 0, 2, 5, 0, 5, 0, 0}, 17},                 /* three batches and a rest */
    {{{50, 33, 7, 3}, 4, 0.3f, 3, 37, 0, 37, 0, 0}, 74},            /* two batches, dropout */
    {{{5, 130, 64, 1}, 4, 0.5f, 4, 40, 17, 21, 0, 0}, 40},          /* a rank's share of a batch */
    {{{20, 300, 257, 129, 6}, 5, 0.2f, 5, 128, 0, 128, 0, 0}, 256}, /* cut among threads */
    {{{8, 16, 24, 16, 8, 16, 24, 4}, 8, 0.1f, 1ull << 40, 3, 1, 1, 0, 0}, 3},
    {{{9, 48, 32, 3}, 4, 0.3f, 6, 40, 3, 35, 0, 0}, 80},     /* whole vectors, a small model */
    {{{20, 288, 256, 6}, 4, 0.2f, 7, 50, 0, 50, 0, 0}, 100}, /* and a large one, */
    {{{20, 288, 256, 6}, 4, 0.2f, 7, 7, 0, 7, 0, 0}, 14},    /* with few rows */
};

static int mlp_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    enum lab_op_id op = launch->op;
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    const struct lab_mlp *mlp = &cases[index].mlp;
    *launch = (struct lab_launch){.op = op, .mlp = *mlp, .adam = LAB_ADAM, .compute = dtype};
    struct lab_tensor *in = launch->in;
    struct lab_tensor state = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_state_count(mlp));
    struct lab_tensor gradient = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_gradient_count(mlp));
    struct lab_tensor work = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_work_count(mlp));
    in[OP_MLP_X] = lab_tensor_matrix(NULL, LAB_FP32, cases[index].data_rows, mlp->widths[0]);
    in[OP_MLP_Y] =
        lab_tensor_matrix(NULL, LAB_FP32, cases[index].data_rows, mlp->widths[lab_mlp_layers(mlp)]);
    in[OP_MLP_STATE] = state;
    launch->out = gradient;
    if (op == LAB_OP_MLP_FORWARD)
        launch->out = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_forward_count(mlp));
    if (op == LAB_OP_MLP_GRADIENT || op == LAB_OP_MLP_STEP)
        in[OP_MLP_WORK] = work;
    if (op == LAB_OP_MLP_STEP) {
        in[OP_MLP_GRADIENT] = gradient;
        launch->out = state;
    }
    if (op == LAB_OP_MLP_BACKWARD) {
        in[OP_BACKWARD_STATE] = state;
        in[OP_BACKWARD_WORK] = work;
    }
    return 0;
}

/*
 * Weights so small and biases so large that no sum comes near zero: there ReLU's derivative jumps,
 * and rounding would decide which side is right.
 */
static void state_domain(const struct lab_mlp *mlp, float *state) {
    for (int l = 0; l < lab_mlp_layers(mlp); l++) {
        float *weight = state + lab_mlp_weight_at(mlp, l), *bias = state + lab_mlp_bias_at(mlp, l);
        for (int64_t i = 0; i < (int64_t)mlp->widths[l] * mlp->widths[l + 1]; i++)
            weight[i] /= 4 * (float)mlp->widths[l];
        for (int32_t i = 0; i < mlp->widths[l + 1]; i++)
            bias[i] = bias[i] < 0 ? bias[i] / 2 - 0.5f : bias[i] / 2 + 0.5f;
    }
    op_adam_domain(lab_mlp_stride(lab_mlp_parameters(mlp)), state);
}

static void mlp_domain(const struct lab_launch *launch, int input, float *values) {
    bool is_backward = launch->op == LAB_OP_MLP_BACKWARD;
    if (input == (is_backward ? (int)OP_BACKWARD_STATE : (int)OP_MLP_STATE))
        state_domain(&launch->mlp, values);
    if (!is_backward || input != OP_BACKWARD_WORK)
        return;
    for (int64_t i = 0; i < lab_mlp_output_at(&launch->mlp, lab_mlp_layers(&launch->mlp) - 1); i++)
        values[i] = fmaxf(values[i], 0); /* what a hidden layer puts out */
}

/* --- the table --- */

const struct lab_op lab_op_mlp_forward = {
    .name = "mlp_forward",
    .help = "dense layers with ReLU and dropout, and the loss",
    .inputs = 3,
    .optional = true,
    .keeps_fp32 = true,
    .check = forward_check,
    .cost = forward_cost,
    .reference = forward_reference,
    .example = mlp_example,
    .domain = mlp_domain,
};

const struct lab_op lab_op_mlp_backward = {
    .name = "mlp_backward",
    .help = "the loss's derivatives by all parameters, or by those of some layers",
    .inputs = 3,
    .optional = true,
    .keeps_fp32 = true,
    .check = backward_check,
    .cost = backward_cost,
    .reference = backward_reference,
    .example = mlp_example,
    .domain = mlp_domain,
};

const struct lab_op lab_op_mlp_gradient = {
    .name = "mlp_gradient",
    .help = "forward and backward",
    .inputs = 4,
    .optional = true,
    .keeps_fp32 = true,
    .check = gradient_check,
    .cost = gradient_cost,
    .reference = gradient_reference,
    .lower = gradient_lower,
    .example = mlp_example,
    .domain = mlp_domain,
};

const struct lab_op lab_op_mlp_step = {
    .name = "mlp_step",
    .help = "a whole training step: forward, backward, update",
    .inputs = 5,
    .optional = true,
    .over = 1 << OP_MLP_STATE,
    .keeps_fp32 = true,
    .check = step_check,
    .cost = step_cost,
    .reference = step_reference,
    .lower = step_lower,
    .example = mlp_example,
    .domain = mlp_domain,
};
