/* adam.c: one update of a state by a gradient (Kingma and Ba, 2015), as Keras does it. */
#include "device/op/parts.h"

#include "device/op/mlp.h"

#include <math.h>
#include <string.h>

int op_check_adam(const struct lab_adam *adam, struct lab_err *err) {
    if (!(adam->learning_rate >= 0) || !isfinite(adam->learning_rate))
        return lab_err_set(err, LAB_ERR_USER, "the learning rate is %g, must be 0 or more",
                           (double)adam->learning_rate);
    if (!(adam->beta1 >= 0 && adam->beta1 < 1 && adam->beta2 >= 0 && adam->beta2 < 1))
        return lab_err_set(err, LAB_ERR_USER,
                           "beta1 is %g and beta2 %g, must be at least 0 and below 1",
                           (double)adam->beta1, (double)adam->beta2);
    if (!(adam->epsilon > 0) || !isfinite(adam->epsilon))
        return lab_err_set(err, LAB_ERR_USER, "epsilon is %g, must be above 0",
                           (double)adam->epsilon);
    return 0;
}

static int adam_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t parameters = lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2;
    if (parameters < 1)
        return lab_err_set(err, LAB_ERR_USER,
                           "the gradient has %lld values, must have one for each parameter and two "
                           "losses",
                           (long long)parameters + 2);
    int64_t count = 3 * lab_mlp_stride(parameters) + LAB_MLP_TAIL;
    if (op_check_vector(&launch->in[OP_ADAM_STATE], "the state", count, err) ||
        op_check_vector(&launch->out, "the new state", count, err))
        return -1;
    return op_check_adam(&launch->adam, err);
}

static struct lab_cost adam_cost(const struct lab_launch *launch) {
    double parameters = (double)(lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2);
    return (struct lab_cost){.flops = OP_ADAM_FLOPS * parameters,
                             .bytes_read = 4 * parameters * sizeof(float),
                             .bytes_written = 3 * parameters * sizeof(float)};
}

void op_adam(const struct lab_adam *adam, int64_t parameters, const double *state,
             const double *gradient, double *out) {
    int64_t stride = lab_mlp_stride(parameters);
    const double *m = state + stride, *v = m + stride, *tail = v + stride;
    double *new_m = out + stride, *new_v = new_m + stride, *new_tail = new_v + stride;
    int64_t step = lab_mlp_step_of(tail[LAB_MLP_STEP_LOW], tail[LAB_MLP_STEP_HIGH]);
    double rate = lab_adam_rate(adam, step);
    memmove(out, state, (size_t)(3 * stride) * sizeof *out); /* with what is between the parts */
    for (int64_t i = 0; i < parameters; i++) {
        new_m[i] += (gradient[i] - new_m[i]) * (1 - (double)adam->beta1);
        new_v[i] += (gradient[i] * gradient[i] - new_v[i]) * (1 - (double)adam->beta2);
        out[i] -= rate * new_m[i] / (sqrt(new_v[i]) + (double)adam->epsilon);
    }
    int64_t high = (step + 1) / LAB_MLP_STEP_BASE;
    new_tail[LAB_MLP_STEP_LOW] = (double)((step + 1) % LAB_MLP_STEP_BASE);
    new_tail[LAB_MLP_STEP_HIGH] = (double)high;
    new_tail[LAB_MLP_MSE] = gradient[parameters];
    new_tail[LAB_MLP_MAE] = gradient[parameters + 1];
}

static void adam_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    op_adam(&launch->adam, lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2, in[OP_ADAM_STATE],
            in[OP_ADAM_GRADIENT], out);
}

static int adam_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t parameters[] = {1, 31, 32, 65, 100003};
    if (index >= (int)(sizeof parameters / sizeof parameters[0]))
        return -1;
    struct lab_tensor state =
        lab_tensor_vector(NULL, LAB_FP32, 3 * lab_mlp_stride(parameters[index]) + LAB_MLP_TAIL);
    *launch = (struct lab_launch){
        .op = LAB_OP_ADAM,
        .in = {state, lab_tensor_vector(NULL, LAB_FP32, parameters[index] + 2)},
        .out = state,
        .adam = LAB_ADAM,
        .compute = dtype,
    };
    return 0;
}

void op_adam_domain(int64_t stride, float *state) {
    float *v = state + 2 * stride, *tail = v + stride;
    for (int64_t i = 0; i < stride; i++)
        v[i] *= v[i];
    /* the first steps, where rates are corrected most, and the edge of the counter's lower part */
    bool at_edge = tail[LAB_MLP_STEP_HIGH] > 0.5f;
    tail[LAB_MLP_STEP_LOW] =
        at_edge ? LAB_MLP_STEP_BASE - 1 : floorf(5 * fabsf(tail[LAB_MLP_STEP_LOW]));
    tail[LAB_MLP_STEP_HIGH] = 0;
}

static void adam_domain(const struct lab_launch *launch, int input, float *values) {
    if (input == OP_ADAM_STATE)
        op_adam_domain((lab_tensor_count(&launch->out) - LAB_MLP_TAIL) / 3, values);
}

const struct lab_op lab_op_adam = {
    .name = "adam",
    .help = "one update of parameters and moments",
    .inputs = 2,
    .optional = true,
    .over = 1 << OP_ADAM_STATE,
    .keeps_fp32 = true,
    .check = adam_check,
    .cost = adam_cost,
    .reference = adam_reference,
    .example = adam_example,
    .domain = adam_domain,
};
