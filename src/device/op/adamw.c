/*
 * adamw.c: one update of all parameters (Loshchilov and Hutter, 2019), which lie in one vector:
 * those that decay first. What changes from step to step is read from memory, so that a graph may
 * replay it: the rate, the gradient's scale, by which it is clipped or averaged, and the threshold
 * of pruning by magnitude.
 */
#include "device/op/parts.h"

#include "device/op/mlp.h"

#include <math.h>

enum { GRADIENT, STATE, CONTROL, INPUTS };

static struct lab_tensor adamw_also(const struct lab_launch *launch) {
    return lab_tensor_matrix(NULL, LAB_FP32, 3, lab_tensor_count(&launch->out));
}

static int adamw_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t count = lab_tensor_count(&launch->out);
    if (op_check_vector(&launch->in[GRADIENT], "the gradient", count, err) ||
        op_check_matrix(&launch->in[STATE], "the state", 3, count, err) ||
        op_check_vector(&launch->in[CONTROL], "the control", LAB_ADAMW_CONTROLS, err))
        return -1;
    if (launch->decayed < 0 || launch->decayed > count)
        return lab_err_set(err, LAB_ERR_USER, "%lld parameters decay, must be 0 to %lld",
                           (long long)launch->decayed, (long long)count);
    if (!(launch->decay >= 0) || !isfinite(launch->decay))
        return lab_err_set(err, LAB_ERR_USER, "decay is %g, must be 0 or more",
                           (double)launch->decay);
    return op_check_adam(&launch->adam, err);
}

struct updated {
    double parameter, m, v;
};

static struct updated update(const struct lab_launch *launch, const double *const *in, int64_t i) {
    int64_t count = lab_tensor_count(&launch->out);
    const double *state = in[STATE], *control = in[CONTROL];
    double g = in[GRADIENT][i] * control[LAB_ADAMW_SCALE], p = state[i];
    double beta1 = launch->adam.beta1, beta2 = launch->adam.beta2;
    bool decays = i < launch->decayed;
    struct updated u = {.m = beta1 * state[count + i] + (1 - beta1) * g,
                        .v = beta2 * state[2 * count + i] + (1 - beta2) * g * g};
    double root = sqrt(u.v * control[LAB_ADAMW_BIAS2]) + (double)launch->adam.epsilon;
    double step = u.m * control[LAB_ADAMW_BIAS1] / root + (decays ? (double)launch->decay * p : 0);
    u.parameter = p - control[LAB_ADAMW_RATE] * step;
    if (decays && fabs(u.parameter) < control[LAB_ADAMW_THRESHOLD])
        u.parameter = 0;
    return u;
}

static void adamw_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    for (int64_t i = 0; i < lab_tensor_count(&launch->out); i++)
        out[i] = update(launch, in, i).parameter;
}

static void adamw_reference_also(const struct lab_launch *launch, const double *const *in,
                                 double *also) {
    int64_t count = lab_tensor_count(&launch->out);
    for (int64_t i = 0; i < count; i++) {
        struct updated u = update(launch, in, i);
        also[i] = u.parameter;
        also[count + i] = u.m;
        also[2 * count + i] = u.v;
    }
}

static int adamw_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    static const int64_t counts[] = {1, 31, 32, 65, 1024, 100003};
    if (index >= (int)(sizeof counts / sizeof counts[0]))
        return -1;
    launch->in[GRADIENT] = launch->out = lab_tensor_vector(NULL, dtype, counts[index]);
    launch->in[STATE] = lab_tensor_matrix(NULL, LAB_FP32, 3, counts[index]);
    launch->in[CONTROL] = lab_tensor_vector(NULL, LAB_FP32, LAB_ADAMW_CONTROLS);
    launch->adam = LAB_ADAM;
    launch->decay = 0.1f;
    launch->decayed = counts[index] * 2 / 3;
    return 0;
}

/* Squares are above 0; a third step, with a rate that moves much. */
static void adamw_domain(const struct lab_launch *launch, int input, float *values) {
    static const float control[LAB_ADAMW_CONTROLS] = {[LAB_ADAMW_RATE] = 0.1f,
                                                      [LAB_ADAMW_SCALE] = 0.5f,
                                                      [LAB_ADAMW_BIAS1] = 3.690037f,
                                                      [LAB_ADAMW_BIAS2] = 333.66676f,
                                                      [LAB_ADAMW_THRESHOLD] = 0.05f};
    int64_t count = lab_tensor_count(&launch->out);
    for (int64_t i = 2 * count; input == STATE && i < 3 * count; i++)
        values[i] *= values[i];
    for (int i = 0; input == CONTROL && i < LAB_ADAMW_CONTROLS; i++)
        values[i] = control[i];
}

const struct lab_op lab_op_adamw = {
    .name = "adamw",
    .help = "one update of all parameters, with decay, clipping and pruning",
    .inputs = INPUTS,
    .singles = 1u << STATE | 1u << CONTROL,
    .over = 1u << GRADIENT,
    .also_over = 1u << STATE,
    .check = adamw_check,
    .flops = 19,
    .reference = adamw_reference,
    .also = adamw_also,
    .reference_also = adamw_reference_also,
    .example = adamw_example,
    .domain = adamw_domain,
};
