/*
 * verify.c: training against double precision. From fresh parameters, as many steps as the budget
 * allows, up to 100, are done by the device, on the way that is measured. After each of them three
 * things must hold, all of them from the state that the device itself had before:
 *
 *   the gradient of every tensor, from the device's parameters, by the definitions of all launches
 *   in turn; the state and the parameters that clipping and AdamW make of the device's own
 *   gradient; the loss.
 *
 * That the launches are GPT-2 and its derivative is another question: a test compares the gradient
 * with differences of the loss. Where a model takes too long in double precision, a small one is
 * checked instead, with the same keys otherwise.
 */
#include "workload/gpt2/gpt2.h"

#include <math.h>
#include <stdio.h>

#define STEPS_MOST       100
#define STEPS_LEAST      3
#define REFERENCE_FLOPS  3e9  /* a few seconds */
#define UPDATE_TOLERANCE 1e-3 /* of an update */
#define DIVERGED         2.0  /* times the first step's loss */

/* --- launches by their definitions --- */

static double *place_of(const struct gpt2_reference *r, const void *data) {
    const struct gpt2_model *m = r->model;
    int64_t element = (int64_t)lab_dtype_bytes(m->shape.dtype);
    const char *at = data;
    if (at >= m->values && at < m->values + m->memory.values * element)
        return r->values + (at - m->values) / element;
    return r->singles + (at - (const char *)m->singles) / (int64_t)sizeof(float);
}

static void copy(double *to, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
}

/* Both outputs go through scratch memory: they may lie over inputs. */
void gpt2_reference_run(struct gpt2_reference *r, const struct gpt2_list *list) {
    for (int i = 0; i < list->count; i++) {
        const struct lab_launch *launch = &list->items[i];
        const struct lab_op *op = lab_op_get(launch->op);
        const double *in[LAB_LAUNCH_INPUTS] = {NULL};
        int64_t count = lab_tensor_count(&launch->out);
        for (int j = 0; j < op->inputs; j++)
            in[j] = place_of(r, launch->in[j].data);
        op->reference(launch, in, r->scratch);
        if (launch->also.rank)
            op->reference_also(launch, in, r->scratch + count);
        copy(place_of(r, launch->out.data), r->scratch, count);
        if (launch->also.rank)
            copy(place_of(r, launch->also.data), r->scratch + count,
                 lab_tensor_count(&launch->also));
    }
}

/* --- a check --- */

struct check {
    struct gpt2_training *training;
    struct gpt2_model
        model; /* one device's that does all ranks' work; nothing lies where it says */
    struct gpt2_list first, next, update;
    struct gpt2_reference reference;
    struct lab_arena *arena;
    int steps;
    double *gradient, *parameters, *state; /* the device's */
    double gradient_error, update_error, loss_error;
    double first_loss;
    bool diverged; /* before all steps were done */
    char fault[160];
};

/* Of the worst tensor; derivatives go through all blocks in the model's dtype. */
static double gradient_tolerance(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 1e-3 : dtype == LAB_TF32 ? 1e-2 : 6e-2;
}

static double loss_tolerance(enum lab_dtype dtype) {
    return dtype == LAB_FP32 ? 1e-5 : dtype == LAB_TF32 ? 1e-3 : 5e-3;
}

static double step_flops(const struct gpt2_training *t) {
    struct lab_workload_cost cost;
    struct gpt2_shape all = gpt2_shape_of_all(t->config, t->parallel ? t->rank.count : 1);
    gpt2_cost_of(t->config, all, &cost);
    return cost.compute.flops;
}

static int64_t scratch_count(const struct check *check) {
    const struct gpt2_list *lists[] = {&check->first, &check->update};
    int64_t most = 0;
    for (int l = 0; l < 2; l++)
        for (int i = 0; i < lists[l]->count; i++) {
            const struct lab_launch *launch = &lists[l]->items[i];
            int64_t also = launch->also.rank ? lab_tensor_count(&launch->also) : 0;
            int64_t count = lab_tensor_count(&launch->out) + also;
            most = count > most ? count : most;
        }
    return most;
}

static double *doubles(const struct check *check, int64_t count) {
    return lab_arena_alloc(check->arena, (size_t)count, sizeof(double));
}

/* The places of the model's tensors are in the doubles, which are as large at least. */
static void open_memory(struct check *check) {
    const struct gpt2_training *t = check->training;
    struct gpt2_model *model = &check->model;
    int64_t parameters = t->model.shape.parameters;
    *model = (struct gpt2_model){.config = t->config};
    model->shape = gpt2_shape_of_all(t->config, t->parallel ? t->rank.count : 1);
    model->memory = gpt2_memory_of(&model->shape);
    check->reference = (struct gpt2_reference){
        .model = model,
        .values = doubles(check, model->memory.values),
        .singles = doubles(check, model->memory.singles),
    };
    model->values = (char *)check->reference.values;
    model->singles = (float *)(void *)check->reference.singles;
    gpt2_list_gradient(model, false, &check->first);
    gpt2_list_gradient(model, true, &check->next);
    gpt2_list_update(model, &check->update);
    check->reference.scratch = doubles(check, scratch_count(check));
    check->gradient = doubles(check, parameters);
    check->parameters = doubles(check, parameters);
    check->state = doubles(check, 3 * parameters);
}

static int download(const struct check *check, const void *from, enum lab_dtype dtype,
                    int64_t count, double *to, struct lab_err *err) {
    LAB_AUTO_FREE float *values = lab_mem_alloc((size_t)count, sizeof *values);
    if (lab_data_download(check->training->stream, from, dtype, count, values, err))
        return -1;
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)values[i];
    return 0;
}

static void note(struct check *check, double off, double tolerance, int step, const char *what,
                 double *worst) {
    if (!*check->fault && !(off <= tolerance))
        snprintf(check->fault, sizeof check->fault,
                 "at step %d of %d %s off by %.1e of itself, allowed are %.0e", step + 1,
                 check->steps, what, off, tolerance);
    *worst = fmax(*worst, isfinite(off) ? off : 1);
}

/* Part by part: biases are little next to all weights. A part whose gradient is nearly none, as the
 * keys' biases' is, is compared with the rest. */
static void compare_gradients(struct check *check, int step) {
    const struct gpt2_shape *s = &check->training->model.shape;
    const double *exact = check->reference.values + check->model.memory.gradient;
    double whole = 0, tolerance = gradient_tolerance(s->dtype);
    int64_t at = 0;
    for (int64_t i = 0; i < s->parameters; i++)
        whole += exact[i] * exact[i];
    while (at < s->parameters) {
        int64_t square = s->width * s->width;
        int64_t end = at < s->positions_at ? s->positions_at
                      : at < s->linear_at  ? s->linear_at
                      : at < s->biases_at  ? at + square
                                           : at + s->width;
        double share = (double)(end - at) / (double)s->parameters;
        double off = lab_verify_distance(check->gradient + at, exact + at, end - at,
                                         0.1 * sqrt(whole * share));
        char what[80];
        snprintf(what, sizeof what, "the gradient of parameters %lld to %lld is", (long long)at,
                 (long long)end - 1);
        note(check, off, tolerance, step, what, &check->gradient_error);
        at = end;
    }
}

/* The reference's, summed over the step's tokens. */
static double exact_loss(const struct check *check) {
    const struct gpt2_memory *m = &check->model.memory;
    const struct gpt2_shape *s = &check->model.shape;
    const double *losses =
        check->reference.singles + (s->accumulation > 1 ? m->loss_sums : m->losses);
    double sum = 0;
    for (int64_t i = 0; i < s->rows; i++)
        sum += losses[i];
    return sum;
}

/* With a learning rate that is too high the loss grows, logits become large and gradients the small
 * difference of large numbers, which no short format has: such steps say nothing about the device.
 * The update that led there was compared. All ranks find the same. */
static bool diverges(struct check *check, int step) {
    double loss = exact_loss(check);
    if (step == 0)
        check->first_loss = loss;
    check->diverged = !(loss <= DIVERGED * check->first_loss);
    return check->diverged;
}

static void compare_loss(struct check *check, int step) {
    const struct gpt2_training *t = check->training;
    const struct gpt2_shape *s = &t->model.shape;
    double exact = exact_loss(check);
    double off = fabs((double)((const float *)t->told.data)[GPT2_LOSS] - exact) / fabs(exact);
    note(check, isfinite(off) ? off : INFINITY, loss_tolerance(s->dtype), step, "the loss is",
         &check->loss_error);
}

/* Of parameters the update is compared: they are large. */
static void compare_updates(struct check *check, int step, const double *state) {
    const struct gpt2_shape *s = &check->training->model.shape;
    int64_t count = s->parameters;
    const double *exact = check->reference.singles;
    double off = fmax(lab_verify_distance(state + count, exact + count, count, 0),
                      lab_verify_distance(state + 2 * count, exact + 2 * count, count, 0));
    double threshold = (double)(float)check->training->config->prune;
    off = fmax(off, lab_verify_update(state, exact, check->state, count, threshold));
    note(check, off, UPDATE_TOLERANCE, step, "the update is", &check->update_error);
    double rounded = lab_dtype_bytes(s->dtype) < sizeof(float) ? 0x1p-8 : 0x1p-23;
    double rounding = 0;
    note(check, lab_verify_distance(check->parameters, state, count, 0), rounded, step,
         "the rounded parameters are", &rounding);
}

/* The reference has all that the device had before the step. */
static void reference_gradient(struct check *check, int64_t step) {
    struct gpt2_training *t = check->training;
    const struct gpt2_shape *s = &check->model.shape;
    const struct gpt2_memory *m = &check->model.memory;
    LAB_AUTO_FREE float *read = lab_mem_alloc((size_t)(2 * s->rows), sizeof *read);
    for (int64_t micro = 0; micro < s->accumulation; micro++) {
        gpt2_data_read(&t->data, s, step * s->accumulation + micro, read, read + s->rows);
        for (int64_t i = 0; i < s->rows; i++) {
            check->reference.singles[m->tokens + i] = (double)read[i];
            check->reference.singles[m->targets + i] = (double)read[s->rows + i];
        }
        gpt2_reference_run(&check->reference, micro ? &check->next : &check->first);
    }
}

static int step_once(struct check *check, int step, struct lab_err *err) {
    struct gpt2_training *t = check->training;
    const struct gpt2_shape *s = &t->model.shape;
    const struct gpt2_memory *m = &check->model.memory;
    struct lab_iteration record;
    float control[LAB_ADAMW_CONTROLS];
    int64_t element = (int64_t)lab_dtype_bytes(s->dtype), count = s->parameters;
    struct gpt2_reference *r = &check->reference;
    double *state = doubles(check, 3 * count);
    copy(r->values, check->parameters, count);
    copy(r->singles, check->state, 3 * count);
    reference_gradient(check, step);
    if (diverges(check, step)) {
        check->steps = step;
        return 0;
    }
    if (gpt2_run(t, 1, &record, err) ||
        download(check, t->model.values + t->model.memory.gradient * element, s->dtype, count,
                 check->gradient, err) ||
        download(check, t->model.values, s->dtype, count, check->parameters, err) ||
        download(check, t->model.singles, LAB_FP32, 3 * count, state, err))
        return -1;
    compare_gradients(check, step);
    compare_loss(check, step);
    gpt2_control(t->config, step, control);
    for (int i = 0; i < LAB_ADAMW_CONTROLS; i++)
        r->singles[m->control + i] = (double)control[i];
    copy(r->values + m->gradient, check->gradient, count);
    copy(r->singles, check->state, 3 * count);
    gpt2_reference_run(r, &check->update);
    compare_updates(check, step, state);
    copy(check->state, state, 3 * count);
    return 0;
}

static int check_training(struct gpt2_training *t, uint64_t seed, bool stands_in,
                          struct lab_verification *ret, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct check check = {.training = t, .arena = &arena};
    const struct gpt2_shape *s = &t->model.shape;
    double steps = floor(REFERENCE_FLOPS / step_flops(t));
    check.steps = (int)fmax(STEPS_LEAST, fmin(steps, STEPS_MOST));
    const struct lab_sink *sink = t->sink;
    t->sink = NULL; /* these losses are nobody's */
    t->checking = true;
    open_memory(&check);
    int failed =
        gpt2_reset(t, seed, err) ||
        download(&check, t->model.values, s->dtype, s->parameters, check.parameters, err) ||
        download(&check, t->model.singles, LAB_FP32, 3 * s->parameters, check.state, err);
    for (int i = 0; i < check.steps && !failed; i++)
        failed = step_once(&check, i, err);
    failed = failed || gpt2_begin(t, err);
    t->sink = sink;
    t->checking = false;
    gpt2_list_release(&check.first);
    gpt2_list_release(&check.next);
    gpt2_list_release(&check.update);
    if (failed)
        return -1;
    *ret = (struct lab_verification){.applicable = true,
                                     .passed = !*check.fault,
                                     .relative_error = check.gradient_error,
                                     .tolerance = gradient_tolerance(s->dtype),
                                     .elements = s->parameters};
    if (*check.fault)
        snprintf(ret->text, sizeof ret->text, "%s", check.fault);
    else
        snprintf(ret->text, sizeof ret->text,
                 "gradients to %.1e, updates to %.1e, losses to %.1e over %d steps%s%s",
                 check.gradient_error, check.update_error, check.loss_error, check.steps,
                 stands_in ? " of a model with 2 blocks" : "",
                 check.diverged ? ", then its loss doubled" : "");
    return 0;
}

/* --- models that are too large for it --- */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int check_small(struct gpt2_training *t, uint64_t seed, struct lab_verification *ret,
                       struct lab_err *err) {
    struct gpt2_config config = *t->config;
    int64_t head = config.width / config.heads;
    void *state = NULL;
    config.depth = least(config.depth, 2);
    config.heads = 1;
    config.width = head;
    config.vocab = least(config.vocab, 300);
    config.batch_size =
        least(config.batch_size, t->rank.group && t->rank.count > 2 ? t->rank.count : 2);
    config.bucket = 4; /* one for each block */
    config.seq = config.positions = least(config.seq, 40);
    config.accumulation = least(config.accumulation, 2);
    config.data = config.checkpoint = config.resume = NULL;
    struct lab_rank rank = t->rank;
    rank.sink = NULL;
    if (gpt2_open(&config, &rank, &state, err))
        return -1;
    int failed = check_training(state, seed, true, ret, err);
    gpt2_close(state);
    return failed;
}

int gpt2_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct gpt2_training *t = state;
    if (lab_verify_skip(t->device, ret))
        return 0;
    bool large = step_flops(t) * STEPS_LEAST > REFERENCE_FLOPS, parallel = t->parallel;
    if (parallel) /* ranks must begin with the same parameters, and their seeds differ */
        seed = (uint64_t)t->config->data_seed + 1;
    if (!large)
        return check_training(t, seed, false, ret, err);
    gpt2_parallel_close(t); /* a group has one sum at a time */
    if (check_small(t, seed, ret, err))
        return -1;
    return parallel ? gpt2_parallel_open(t, err) : 0;
}
