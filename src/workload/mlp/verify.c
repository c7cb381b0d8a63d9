/*
 * verify.c: training against double precision. From fresh parameters, as many steps as the budget
 * allows, up to 100, are done by the device, on the way that is measured. After each of them three
 * things must hold, all of them from the state that the device itself had before:
 *
 *   the gradient of every weight and bias, by the operations' definitions, whose factors are
 *   rounded as the device's are. The device's own follows from its first moments, however a step is
 *   done; Adam's new parameters and moments, from the device's own gradient: a small one that
 *   rounding has changed would make as large a step as any, so that parameters say little about
 *   gradients; losses and the counter of steps.
 *
 * Dropout is part of it: what is dropped follows from numbers that both know. Now and then, the
 * more often the larger the model, a sum lies so near to zero that rounding decides on which side
 * of ReLU's edge it is. Such a step is some per cent off; half of them must be as near as rounding
 * is, and all but a few within a few per cent.
 */
#include "workload/mlp/mlp.h"

#include "base/list.h"

#include <math.h>

#define STEPS_MOST      100
#define REFERENCE_FLOPS 4e9  /* about two seconds; two steps are checked in any case */
#define FAR_TOLERANCE   0.25 /* of a gradient, where a sum is on the other side of the edge */
#define FAR_STEPS       10   /* one step in so many may be as far, and one in any case */
#define FEW_TOLERANCE                                                                              \
    0.1 /* instead where there are fewer: the model is large, and one sum a small part */
#define EDGE_TOLERANCE                                                                             \
    5e-2 /* of the others: in short formats a large model has a sum at the edge in many */
#define UPDATE_TOLERANCE 1e-3 /* of an update */
#define LOSS_TOLERANCE   1e-3

struct check {
    struct mlp_training *training;
    const struct mlp_shape *shape;
    int steps;
    int64_t data_rows; /* that these steps see */
    struct lab_arena *arena;
    double *x, *y, *state, *next;
    double *gradient, *found,
        *expected; /* by definition, the device's; Adam's state from the latter */
    double gradient_errors[STEPS_MOST], update_error, loss_error;
    int compared;
    struct lab_verification fault; /* the first that no step may have */
};

/* Of the worst tensor in half of the steps. Factors that lie between two roundings go either way
 * now and then. */
static double near_tolerance(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 1e-4 : 1e-2;
}

static double far_tolerance(const struct check *check) {
    return check->steps < FAR_STEPS ? FEW_TOLERANCE : FAR_TOLERANCE;
}

static void plan(struct check *check) {
    const struct mlp_shape *s = check->shape;
    double flops = lab_op_cost(&check->training->step).flops;
    double steps = floor(REFERENCE_FLOPS / flops);
    check->steps = (int)fmax(2, fmin(steps, STEPS_MOST));
    int64_t batches = s->data_rows / s->mlp.batch;
    check->data_rows = (check->steps < batches ? check->steps : batches) * s->mlp.batch;
}

static double needed_bytes(const struct check *check) {
    const struct mlp_shape *s = check->shape;
    double values = (double)check->data_rows * (double)(s->inputs + s->outputs) +
                    5 * (double)lab_mlp_state_count(&s->mlp);
    return values * (sizeof(float) + sizeof(double));
}

/* Device memory as doubles. */
static int download(const struct check *check, const struct lab_buffer *from, int64_t count,
                    double *to, struct lab_err *err) {
    LAB_AUTO_FREE float *values = lab_mem_alloc((size_t)count, sizeof *values);
    if (lab_data_download(check->training->stream, from->data, LAB_FP32, count, values, err))
        return -1;
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)values[i];
    return 0;
}

static double *doubles(const struct check *check, int64_t count) {
    return lab_arena_alloc(check->arena, (size_t)count, sizeof(double));
}

static void open_memory(struct check *check) {
    const struct mlp_shape *s = check->shape;
    int64_t count = lab_mlp_state_count(&s->mlp), gradients = lab_mlp_gradient_count(&s->mlp);
    check->x = doubles(check, check->data_rows * s->inputs);
    check->y = doubles(check, check->data_rows * s->outputs);
    check->state = doubles(check, count);
    check->next = doubles(check, count);
    check->expected = doubles(check, count);
    check->gradient = doubles(check, gradients);
    check->found = doubles(check, gradients);
}

static int begin(struct check *check, uint64_t seed, struct lab_err *err) {
    struct mlp_training *t = check->training;
    const struct mlp_shape *s = check->shape;
    const float poison = NAN; /* whatever is read before it is written spoils all */
    if (mlp_training_reset(t, seed, err) ||
        lab_data_upload(t->stream, t->work.data, LAB_FP32, lab_mlp_work_count(&s->mlp),
                        lab_data_constant, &poison, err) ||
        lab_data_upload(t->stream, t->gradient.data, LAB_FP32, lab_mlp_gradient_count(&s->mlp),
                        lab_data_constant, &poison, err))
        return -1;
    open_memory(check);
    if (download(check, &t->x, check->data_rows * s->inputs, check->x, err) ||
        download(check, &t->y, check->data_rows * s->outputs, check->y, err))
        return -1;
    return download(check, &t->state, lab_mlp_state_count(&s->mlp), check->state, err);
}

/* --- one step --- */

static void fail_step(struct check *check, int step, double off, double tolerance,
                      const char *what) {
    if (check->fault.applicable)
        return;
    check->fault = (struct lab_verification){.applicable = true,
                                             .relative_error = off,
                                             .tolerance = tolerance,
                                             .elements = lab_mlp_parameters(&check->shape->mlp)};
    snprintf(check->fault.text, sizeof check->fault.text,
             "at step %d of %d %s off by %.1e of itself, allowed are %.0e", step + 1, check->steps,
             what, off, tolerance);
}

/* The gradient that led from the old first moments to the new ones, into `found`. */
static void find_gradient(struct check *check) {
    int64_t parameters = lab_mlp_parameters(&check->shape->mlp);
    int64_t at = lab_mlp_stride(parameters);
    double keep = 1 - (double)check->training->step.adam.beta1;
    for (int64_t i = 0; i < parameters; i++) {
        double before = check->state[at + i], now = check->next[at + i];
        check->found[i] = before + (now - before) / keep;
    }
}

/* Tensor by tensor: one layer's biases are little beside all weights. */
static void compare_gradients(struct check *check, int step) {
    const struct lab_mlp *mlp = &check->shape->mlp;
    int64_t parameters = lab_mlp_parameters(mlp);
    double norm = 0, worst = 0;
    char what[64] = "";
    for (int64_t i = 0; i < parameters; i++)
        norm += check->gradient[i] * check->gradient[i];
    for (int part = 0; part < 2 * lab_mlp_layers(mlp); part++) {
        int layer = part / 2;
        int64_t from = part % 2 ? lab_mlp_bias_at(mlp, layer) : lab_mlp_weight_at(mlp, layer);
        int64_t to = part % 2 ? lab_mlp_weight_at(mlp, layer + 1) : lab_mlp_bias_at(mlp, layer);
        double share = (double)(to - from) / (double)parameters;
        double off = lab_verify_distance(check->found + from, check->gradient + from, to - from,
                                         1e-3 * sqrt(norm * share));
        if (off > worst) {
            worst = off;
            snprintf(what, sizeof what, "the gradient of layer %d's %s is", layer,
                     part % 2 ? "biases" : "weights");
        }
    }
    if (!(worst <= far_tolerance(check)))
        fail_step(check, step, worst, far_tolerance(check), what);
    check->gradient_errors[check->compared++] = worst;
}

/* What Adam makes of the device's own gradient. Of parameters the update is compared: they are
 * large. */
static void compare_updates(struct check *check, int step) {
    const struct mlp_training *t = check->training;
    int64_t parameters = lab_mlp_parameters(&check->shape->mlp);
    int64_t at = lab_mlp_stride(parameters);
    struct lab_launch launch = {.op = LAB_OP_ADAM, .adam = t->step.adam};
    launch.in[1] = lab_tensor_vector(NULL, LAB_FP32, parameters + 2);
    const double *in[LAB_LAUNCH_INPUTS] = {check->state, check->found};
    lab_op_get(LAB_OP_ADAM)->reference(&launch, in, check->expected);
    double off = lab_verify_distance(check->next + 2 * at, check->expected + 2 * at, parameters, 0);
    off = fmax(off, lab_verify_update(check->next, check->expected, check->state, parameters, 0));
    check->update_error = fmax(check->update_error, off);
    if (!(off <= UPDATE_TOLERANCE))
        fail_step(check, step, off, UPDATE_TOLERANCE, "Adam's update is");
}

static void compare_tail(struct check *check, int step) {
    const struct lab_mlp *mlp = &check->shape->mlp;
    int64_t parameters = lab_mlp_parameters(mlp), at = lab_mlp_state_count(mlp) - LAB_MLP_TAIL;
    const double *tail = check->next + at;
    double off = 0;
    for (int i = 0; i < 2; i++) {
        double exact = check->gradient[parameters + i];
        double now = fabs(tail[LAB_MLP_MSE + i] - exact) / fmax(fabs(exact), 1e-30);
        off = isfinite(now) ? fmax(off, now) : INFINITY;
    }
    check->loss_error = fmax(check->loss_error, off);
    if (!(off <= LOSS_TOLERANCE))
        fail_step(check, step, off, LOSS_TOLERANCE, "a loss is");
    double counted = tail[LAB_MLP_STEP_HIGH] * LAB_MLP_STEP_BASE + tail[LAB_MLP_STEP_LOW];
    if (counted != step + 1)
        fail_step(check, step, fabs(counted - (step + 1)) / (step + 1), 0, "the count of steps is");
}

static int step_once(struct check *check, int step, struct lab_err *err) {
    struct mlp_training *t = check->training;
    struct lab_launch launch = t->step;
    struct lab_iteration record;
    launch.op = LAB_OP_MLP_GRADIENT;
    launch.in[0].shape[0] = launch.in[1].shape[0] = check->data_rows;
    if (mlp_run(t, 1, &record, err) ||
        download(check, &t->state, lab_mlp_state_count(&check->shape->mlp), check->next, err))
        return -1;
    const double *in[LAB_LAUNCH_INPUTS] = {check->x, check->y, check->state};
    lab_op_get(LAB_OP_MLP_GRADIENT)->reference(&launch, in, check->gradient);
    find_gradient(check);
    compare_gradients(check, step);
    compare_tail(check, step);
    compare_updates(check, step);
    double *before = check->state;
    check->state = check->next;
    check->next = before;
    return 0;
}

/* --- all of them --- */

static void judge(struct check *check, struct lab_verification *ret) {
    double allowed = near_tolerance(check->shape->dtype);
    double edge = check->shape->dtype == LAB_FP32 ? allowed : EDGE_TOLERANCE;
    int far = check->steps / FAR_STEPS;
    LAB_SORT_NUMBERS(check->gradient_errors, check->compared);
    double middle = check->gradient_errors[(check->compared - 1) / 2];
    double most = check->gradient_errors[check->compared - 1 - (far < 1 ? 1 : far)];
    if (check->fault.applicable) {
        *ret = check->fault;
        return;
    }
    bool many_far = !(most <= edge);
    *ret = (struct lab_verification){.applicable = true,
                                     .passed = middle <= allowed && !many_far,
                                     .tolerance = many_far ? edge : allowed,
                                     .elements = lab_mlp_parameters(&check->shape->mlp)};
    ret->relative_error = many_far ? most : middle;
    if (ret->passed)
        snprintf(ret->text, sizeof ret->text,
                 "gradients to %.1e, updates to %.1e, losses to %.1e over %d steps", middle,
                 check->update_error, check->loss_error, check->steps);
    else if (many_far)
        snprintf(ret->text, sizeof ret->text,
                 "more than one of %d steps has a gradient off by %.1e, allowed are %.0e",
                 FAR_STEPS, most, edge);
    else
        snprintf(ret->text, sizeof ret->text,
                 "half of the steps have a gradient off by %.1e, allowed are %.0e", middle,
                 allowed);
}

int mlp_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct mlp_training *t = state;
    LAB_AUTO(arena, arena);
    struct check check = {.training = t, .shape = &t->shape, .arena = &arena};
    if (lab_verify_skip(t->device, ret))
        return 0;
    plan(&check);
    if (lab_verify_room(t->device, needed_bytes(&check), err))
        return -1;
    if (t->parallel) /* ranks must begin with the same parameters, and their seeds differ */
        seed = (uint64_t)t->config->data_seed + 1;
    const struct lab_sink *sink = t->sink;
    t->sink = NULL; /* these losses are nobody's */
    int failed = begin(&check, seed, err);
    for (int i = 0; i < check.steps && !failed; i++)
        failed = step_once(&check, i, err);
    failed = failed || mlp_training_reset(t, (uint64_t)t->config->data_seed, err);
    if (!failed)
        judge(&check, ret);
    t->sink = sink;
    return failed ? -1 : 0;
}
