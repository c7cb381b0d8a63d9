/*
 * verify.c: training against double precision. From fresh parameters, as many steps as the budget
 * allows, up to 100, are done by the device, on the way that is measured, and by the operations'
 * definitions. After every step losses, parameters and Adam's moments must agree. Dropout is part of it:
 * what is dropped follows from numbers that both know.
 *
 * After each step the reference goes on from the device's own state. Now and then, the more often the
 * larger the model, a sum lies so near to zero that rounding decides on which side of ReLU's edge it is; from
 * there on both are right and part for ever, a few per cent more with each step. Such a step may be far off;
 * most must be as near as rounding is.
 */
#include "workload/mlp/mlp.h"

#include "stats/stats.h"

#include <math.h>

#define STEPS_MOST        100
#define MOMENTS_TOLERANCE 0.05 /* a sum on the other side of the edge is some 0.5 % of a gradient */
#define REFERENCE_FLOPS   4e9  /* about two seconds; two steps are checked in any case */

struct check {
    struct mlp_training *training;
    const struct mlp_shape *shape;
    int steps;
    int64_t data_rows; /* that these steps see */
    double *x, *y, *state, *next;
    double worst_loss; /* relative difference */
    int worst_step;
    struct lab_verification worst; /* of the parameters */
    double errors[STEPS_MOST];     /* of the parameters, step by step */
    int compared;
};

/* Rounding of single steps adds up, and Adam magnifies it where gradients are small. */
static double tolerance_of(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 1e-3 : dtype == LAB_TF32 ? 1e-2 : 5e-2;
}

/* Of the middle one of all steps. */
static double middle_tolerance_of(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 1e-5 : tolerance_of(dtype);
}

static void plan(struct check *check) {
    const struct mlp_shape *s = check->shape;
    double flops = lab_op_get(LAB_OP_MLP_STEP)->cost(&check->training->step).flops;
    double steps = floor(REFERENCE_FLOPS / flops);
    check->steps = (int)fmax(2, fmin(steps, STEPS_MOST));
    int64_t batches = s->data_rows / s->mlp.batch;
    check->data_rows = (check->steps < batches ? check->steps : batches) * s->mlp.batch;
}

static double needed_bytes(const struct check *check) {
    const struct mlp_shape *s = check->shape;
    double values = (double)check->data_rows * (double)(s->inputs + s->outputs) +
                    3 * (double)lab_mlp_state_count(&s->mlp);
    return values * (sizeof(float) + sizeof(double));
}

/* Device memory as doubles, allocated. */
static double *download(const struct check *check, const struct lab_buffer *from, int64_t count,
                        struct lab_err *err) {
    float *values = lab_mem_alloc((size_t)count, sizeof *values);
    double *exact = NULL;
    if (!lab_data_download(check->training->stream, from->data, LAB_FP32, count, values, err)) {
        exact = lab_mem_alloc((size_t)count, sizeof *exact);
        for (int64_t i = 0; i < count; i++)
            exact[i] = values[i];
    }
    lab_mem_free(values);
    return exact;
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
    check->x = download(check, &t->x, check->data_rows * s->inputs, err);
    check->y = check->x ? download(check, &t->y, check->data_rows * s->outputs, err) : NULL;
    check->state = check->y ? download(check, &t->state, lab_mlp_state_count(&s->mlp), err) : NULL;
    check->next = lab_mem_alloc((size_t)lab_mlp_state_count(&s->mlp), sizeof *check->next);
    return check->state ? 0 : -1;
}

/* One step on both sides. */
static int step(struct check *check, int index, struct lab_err *err) {
    const struct mlp_shape *s = check->shape;
    struct lab_launch launch = check->training->step;
    struct lab_iteration record;
    launch.in[0].shape[0] = launch.in[1].shape[0] = check->data_rows;
    if (mlp_training_run(check->training, 1, &record, err))
        return -1;
    const double *in[LAB_LAUNCH_INPUTS] = {check->x, check->y, check->state};
    lab_op_get(LAB_OP_MLP_STEP)->reference(&launch, in, check->next);
    double *swap = check->state;
    check->state = check->next;
    check->next = swap;
    const double *tail = check->state + lab_mlp_state_count(&s->mlp) - LAB_MLP_TAIL;
    const float *found = mlp_training_tail(check->training);
    for (int i = 0; i < LAB_MLP_TAIL; i++) {
        double size = fmax(fabs(tail[i]), 1e-30), off = fabs((double)found[i] - tail[i]) / size;
        if (off > check->worst_loss || !isfinite(off)) {
            check->worst_loss = isfinite(off) ? off : INFINITY;
            check->worst_step = index;
        }
    }
    return 0;
}

/* The parameters as they are now; from here on the reference has the device's state. */
static int compare(struct check *check, struct lab_err *err) {
    struct mlp_training *t = check->training;
    int64_t count = lab_mlp_state_count(&check->shape->mlp);
    float *found = lab_mem_alloc((size_t)count, sizeof *found);
    struct lab_verification now = {0};
    int failed = lab_data_download(t->stream, t->state.data, LAB_FP32, count, found, err);
    int64_t parameters = lab_mlp_parameters(&check->shape->mlp);
    if (!failed)
        lab_verify_compare(found, check->state, parameters, LAB_POISON,
                           tolerance_of(check->shape->dtype), &now);
    if (!failed)
        check->errors[check->compared++] = now.relative_error;
    for (int part = 1; part <= 2 && !failed && now.passed; part++) {
        int64_t at = part * lab_mlp_stride(parameters);
        struct lab_verification moments = {0};
        lab_verify_compare(found + at, check->state + at, parameters, LAB_POISON, MOMENTS_TOLERANCE,
                           &moments);
        if (!moments.passed)
            now = moments;
    }
    if (!failed && (!check->worst.applicable || (check->worst.passed && !now.passed) ||
                    now.relative_error > check->worst.relative_error))
        check->worst = now;
    for (int64_t i = 0; i < count && !failed; i++)
        check->state[i] = found[i];
    lab_mem_free(found);
    return failed;
}

static void judge(const struct check *check, struct lab_verification *ret) {
    double middle = lab_stats_median(check->errors, (size_t)check->compared);
    double allowed = middle_tolerance_of(check->shape->dtype);
    *ret = check->worst;
    if (ret->passed && !(middle <= allowed)) {
        ret->passed = false;
        ret->relative_error = middle;
        ret->tolerance = allowed;
        snprintf(ret->text, sizeof ret->text,
                 "half of %d steps are off by %.1e or more in the parameters, allowed are %.0e",
                 check->compared, middle, allowed);
    } else if (ret->passed && check->worst_loss > ret->tolerance) {
        ret->passed = false;
        ret->relative_error = check->worst_loss;
        snprintf(ret->text, sizeof ret->text, "at step %d of %d a loss is off by %.1e of itself",
                 check->worst_step + 1, check->steps, check->worst_loss);
    } else if (ret->passed) {
        snprintf(ret->text, sizeof ret->text,
                 "parameters to %.1e and losses to %.1e of themselves over %d steps",
                 ret->relative_error, check->worst_loss, check->steps);
    }
}

int mlp_verify(struct mlp_training *t, uint64_t seed, struct lab_verification *ret,
               struct lab_err *err) {
    struct check check = {.training = t, .shape = &t->shape};
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
        failed = step(&check, i, err) || compare(&check, err);
    failed = failed || mlp_training_reset(t, (uint64_t)t->config->data_seed, err);
    if (!failed)
        judge(&check, ret);
    t->sink = sink;
    lab_mem_free(check.x);
    lab_mem_free(check.y);
    lab_mem_free(check.state);
    lab_mem_free(check.next);
    return failed ? -1 : 0;
}
