/*
 * The mlp workload on a CPU device: what it learns from, that training follows double precision,
 * that it is the same each time and in whatever parts it is done, and that nothing goes wrong
 * unnoticed.
 */
#include "unit/workload/on_cpu.h"
#include "workload/mlp/mlp.h"

#include <math.h>
#include <stdlib.h>

extern const struct lab_workload lab_workload_mlp;

#define SMALL "widths=50-33-7-3", "batch_size=16", "dataset_size=200"

static int cpu_open(void **state) {
    static struct on_cpu cpu;
    on_cpu_open(&cpu);
    *state = &cpu;
    return 0;
}

static int cpu_close(void **state) {
    on_cpu_close(*state);
    return 0;
}

/* --- data --- */

static double correlation(const float *x, int64_t rows, int64_t width, int a, int b) {
    double aa = 0, bb = 0, ab = 0; /* means are 0 but for chance */
    for (int64_t i = 0; i < rows; i++) {
        double p = (double)x[i * width + a], q = (double)x[i * width + b];
        aa += p * p;
        bb += q * q;
        ab += p * q;
    }
    return ab / sqrt(aa * bb);
}

LAB_TEST(features_are_correlated_as_published) {
    const struct mlp_config *config = on_cpu_configure(*state, &lab_workload_mlp, WORDS("lr=1"));
    struct mlp_shape shape = mlp_shape_of(config);
    struct mlp_data data;
    mlp_data_draw(&shape, 42, &data);
    assert_int_equal(shape.samples, 10000);
    double error = 4 / sqrt((double)shape.samples), var1 = 0.49 + 0.09;
    /* f1 = 0.7 f0 + 0.3 n; f2 = 0.5 f0 − 0.3 f1 + 0.4 n = 0.29 f0 − 0.09 n1 + 0.4 n2 */
    double var2 = 0.29 * 0.29 + 0.09 * 0.09 + 0.16, cov12 = 0.7 * 0.29 - 0.3 * 0.09;
    assert_true(fabs(correlation(data.x, 10000, 50, 0, 1) - 0.7 / sqrt(var1)) < error);
    assert_true(fabs(correlation(data.x, 10000, 50, 0, 2) - 0.29 / sqrt(var2)) < error);
    assert_true(fabs(correlation(data.x, 10000, 50, 1, 2) - cov12 / sqrt(var1 * var2)) < error);
    assert_true(fabs(correlation(data.x, 10000, 50, 3, 4)) < error);
    assert_true(fabs(correlation(data.y, 10000, 3, 0, 1)) < error);
    mlp_data_release(&data);
}

LAB_TEST(every_epoch_has_each_sample_once_in_another_order) {
    const struct mlp_config *config = on_cpu_configure(*state, &lab_workload_mlp, WORDS(SMALL));
    struct mlp_shape shape = mlp_shape_of(config);
    struct mlp_data data;
    mlp_data_draw(&shape, 1, &data);
    assert_int_equal(shape.epoch_rows, 192); /* 12 whole batches of 16 */
    assert_int_equal(shape.data_rows, MLP_EPOCHS * 192);
    for (int epoch = 0; epoch < MLP_EPOCHS; epoch++) {
        const int32_t *order = data.order + epoch * shape.samples;
        bool seen[200] = {false};
        int moved = 0;
        for (int64_t i = 0; i < shape.samples; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            moved += order[i] != data.order[(epoch + 1) % MLP_EPOCHS * shape.samples + i];
        }
        assert_true(moved > 180);
    }
    mlp_data_release(&data);
}

/* --- training --- */

static struct lab_verification verify(void *training, uint64_t seed) {
    struct lab_verification v = {0};
    ASSERT_OK(lab_workload_mlp.verify(training, seed, &v, err));
    return v;
}

/* A training after so many steps from the beginning; the caller frees. */
static float *state_after(void *training, int steps) {
    struct mlp_training *t = training;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_iteration *records = lab_mem_alloc((size_t)steps, sizeof *records);
    int64_t count = lab_mlp_state_count(&t->shape.mlp);
    float *values = lab_mem_alloc((size_t)count, sizeof *values);
    if (mlp_training_reset(t, 42, &err) || lab_workload_mlp.run(t, steps, records, &err) ||
        lab_data_download(t->stream, t->state.data, LAB_FP32, count, values, &err))
        fail_msg("%s", err.text);
    lab_mem_free(records);
    return values;
}

/* A hundred steps that the reference does by itself, never looking at the device. */
LAB_TEST(training_follows_double_precision) {
    const char *const dropouts[] = {"dropout=0", "dropout=0.3"};
    for (int d = 0; d < 2; d++) {
        struct mlp_training *t = on_cpu_start(*state, &lab_workload_mlp, WORDS(SMALL, dropouts[d]));
        const struct mlp_shape *s = &t->shape;
        int64_t count = lab_mlp_state_count(&s->mlp), parameters = lab_mlp_parameters(&s->mlp);
        float *found = state_after(t, 100);
        double *now = lab_mem_alloc((size_t)count, sizeof *now);
        double *next = lab_mem_alloc((size_t)count, sizeof *next);
        const float *x = t->x.data, *y = t->y.data; /* a CPU's memory is the host's */
        double *in_x = lab_mem_alloc((size_t)(s->data_rows * s->inputs), sizeof *in_x);
        double *in_y = lab_mem_alloc((size_t)(s->data_rows * s->outputs), sizeof *in_y);
        for (int64_t i = 0; i < s->data_rows * s->inputs; i++)
            in_x[i] = (double)x[i];
        for (int64_t i = 0; i < s->data_rows * s->outputs; i++)
            in_y[i] = (double)y[i];
        float *initial = lab_mem_alloc((size_t)count, sizeof *initial);
        mlp_initial_source(&(struct mlp_initial){&s->mlp, 42}, 0, count, initial);
        for (int64_t i = 0; i < count; i++)
            now[i] = (double)initial[i];
        for (int step = 0; step < 100; step++) {
            lab_op_get(LAB_OP_MLP_STEP)
                ->reference(&t->step, (const double *const[]){in_x, in_y, now, NULL, NULL}, next);
            memcpy(now, next, (size_t)count * sizeof *now);
        }
        struct lab_verification v;
        lab_verify_compare(found, now, parameters, LAB_POISON, 1e-3, &v);
        if (!v.passed)
            fail_msg("%s: %s", dropouts[d], v.text);
        const float *tail = found + count - LAB_MLP_TAIL;
        const double *exact = now + count - LAB_MLP_TAIL;
        assert_true(tail[LAB_MLP_STEP_LOW] == 100 && tail[LAB_MLP_STEP_HIGH] == 0);
        assert_true(fabs((double)tail[LAB_MLP_MSE] - exact[LAB_MLP_MSE]) <
                    1e-3 * exact[LAB_MLP_MSE]);
        assert_true(fabs((double)tail[LAB_MLP_MAE] - exact[LAB_MLP_MAE]) <
                    1e-3 * exact[LAB_MLP_MAE]);
        lab_mem_free(found), lab_mem_free(now), lab_mem_free(next), lab_mem_free(initial);
        lab_mem_free(in_x), lab_mem_free(in_y);
        lab_workload_mlp.close(t);
    }
}

LAB_TEST(it_is_the_same_each_time_and_however_it_is_launched) {
    void *parts = on_cpu_start(*state, &lab_workload_mlp, WORDS(SMALL));
    void *fused = on_cpu_start(*state, &lab_workload_mlp, WORDS(SMALL, "compile_model=true"));
    struct mlp_training *t = parts;
    int64_t count = lab_mlp_state_count(&t->shape.mlp);
    float *first = state_after(parts, 30), *second = state_after(parts, 30);
    float *third = state_after(fused, 30);
    assert_memory_equal(first, second, (size_t)count * sizeof *first);
    double *exact = lab_mem_alloc((size_t)count, sizeof *exact);
    for (int64_t i = 0; i < count; i++)
        exact[i] = (double)first[i];
    struct lab_verification v;
    lab_verify_compare(third, exact, lab_mlp_parameters(&t->shape.mlp), LAB_POISON, 1e-5, &v);
    if (!v.passed)
        fail_msg("%s", v.text);
    lab_mem_free(first), lab_mem_free(second), lab_mem_free(third), lab_mem_free(exact);
    lab_workload_mlp.close(parts);
    lab_workload_mlp.close(fused);
}

/* --- parts of a step --- */

static void launch(struct mlp_training *t, const struct lab_launch *what) {
    struct lab_err err = LAB_ERR_INIT;
    if (lab_launch(t->stream, what, &err) || lab_stream_sync(t->stream, &err))
        fail_msg("%s", err.text);
}

/* The gradient of some rows of the batch, as a rank would compute it. */
static double *gradient_of_rows(struct mlp_training *t, int64_t first, int64_t rows) {
    struct lab_launch forward = t->launches[0], backward = t->launches[1];
    forward.mlp.first_row = backward.mlp.first_row = first;
    forward.mlp.rows = backward.mlp.rows = rows;
    forward.out.shape[0] = lab_mlp_forward_count(&forward.mlp);
    backward.in[2].shape[0] = lab_mlp_work_count(&forward.mlp);
    launch(t, &forward);
    launch(t, &backward);
    int64_t count = lab_mlp_gradient_count(&t->shape.mlp);
    double *out = lab_mem_alloc((size_t)count, sizeof *out);
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)((const float *)t->gradient.data)[i];
    return out;
}

LAB_TEST(shards_add_up_to_the_batch) {
    const int64_t cuts[] = {8, 5, 1};
    struct mlp_training *t =
        on_cpu_start(*state, &lab_workload_mlp, WORDS("batch_size=16", "dataset_size=200"));
    int64_t count = lab_mlp_gradient_count(&t->shape.mlp);
    double *whole = gradient_of_rows(t, 0, 16);
    for (int c = 0; c < 3; c++) {
        double *a = gradient_of_rows(t, 0, cuts[c]);
        double *b = gradient_of_rows(t, cuts[c], 16 - cuts[c]);
        double difference = 0, norm = 0;
        for (int64_t i = 0; i < count; i++) {
            difference += (a[i] + b[i] - whole[i]) * (a[i] + b[i] - whole[i]);
            norm += whole[i] * whole[i];
        }
        assert_true(sqrt(difference / norm) < 1e-6);
        assert_true(fabs(a[count - 2] + b[count - 2] - whole[count - 2]) < 1e-6);
        lab_mem_free(a), lab_mem_free(b);
    }
    lab_mem_free(whole);
    lab_workload_mlp.close(t);
}

/* The last layers' gradients can be on their way while the first ones' are still computed. */
LAB_TEST(layers_come_in_any_buckets_the_same) {
    struct mlp_training *t =
        on_cpu_start(*state, &lab_workload_mlp, WORDS("batch_size=16", "dataset_size=200"));
    int64_t count = lab_mlp_gradient_count(&t->shape.mlp);
    int layers = lab_mlp_layers(&t->shape.mlp);
    double *whole = gradient_of_rows(t, 0, 16);
    float *gradient = t->gradient.data;
    for (int cut = 1; cut < layers; cut++) {
        struct lab_launch last = t->launches[1], first = t->launches[1];
        last.mlp.layer_begin = first.mlp.layer_end = cut;
        last.mlp.layer_end = layers;
        for (int64_t i = 0; i < count; i++)
            gradient[i] = LAB_POISON;
        launch(t, &t->launches[0]);
        launch(t, &last);
        int64_t at = lab_mlp_weight_at(&t->shape.mlp, cut);
        for (int64_t i = 0; i < count; i++)
            assert_true((double)gradient[i] == (i < at ? (double)LAB_POISON : whole[i]));
        launch(t, &first);
        for (int64_t i = 0; i < count; i++)
            assert_true((double)gradient[i] == whole[i]);
    }
    lab_mem_free(whole);
    lab_workload_mlp.close(t);
}

/* --- what it tells --- */

struct told {
    int losses, parts;
    double loss;
};

static void on_metrics(void *state, const struct lab_reported_metric *items, size_t count) {
    struct told *told = state;
    const char *name = items[0].name, *unit = items[0].unit;
    double value = items[0].value;
    assert_int_equal(count, 1);
    assert_true(items[0].time_ns > 0 && isfinite(value) && value >= 0);
    told->losses += lab_str_equal(name, "loss");
    told->parts += lab_str_equal(unit, "ms");
    if (lab_str_equal(name, "loss"))
        told->loss = value;
}

LAB_TEST(losses_and_the_parts_of_a_step_are_told) {
    struct on_cpu *cpu = *state;
    struct told told = {0};
    const struct lab_sink sink = {.metrics = on_metrics, .state = &told};
    struct lab_iteration records[200];
    cpu->rank.sink = &sink;
    void *parts = on_cpu_start(cpu, &lab_workload_mlp, WORDS(SMALL, "dropout=0", "lr=0.01"));
    ASSERT_OK(lab_workload_mlp.run(parts, 1, records, err));
    assert_int_equal(told.losses, 1);
    assert_int_equal(told.parts, 3);
    double first = told.loss;
    ASSERT_OK(lab_workload_mlp.run(parts, 200, records, err));
    assert_true(told.loss < 0.8 * first); /* 200 samples are soon learnt by heart */
    lab_workload_mlp.close(parts);
    told = (struct told){0};
    void *fused = on_cpu_start(cpu, &lab_workload_mlp, WORDS(SMALL, "compile_model=true"));
    ASSERT_OK(lab_workload_mlp.run(fused, 3, records, err));
    assert_int_equal(told.losses, 1);
    assert_int_equal(told.parts, 0);
    lab_workload_mlp.close(fused);
    cpu->rank.sink = NULL;
}

/* --- what goes wrong --- */

/* New parameters are rounded, by more than a small rate changes them: no fault of the device's. */
LAB_TEST(verification_passes_at_small_rates) {
    static const char *const rates[] = {"lr=1e-6", "lr=1e-7", "lr=0"};
    for (int i = 0; i < 3; i++) {
        void *training = on_cpu_start(*state, &lab_workload_mlp, WORDS(SMALL, rates[i]));
        struct lab_verification v = verify(training, 7);
        if (!v.passed)
            fail_msg("%s: %s", rates[i], v.text);
        lab_workload_mlp.close(training);
    }
}

LAB_TEST(a_lost_launch_is_noticed) {
    struct on_cpu *cpu = *state;
    void *training = on_cpu_start(cpu, &lab_workload_mlp, WORDS(SMALL));
    faulty_begin(cpu->device, -1, -1);
    assert_true(verify(training, 7).passed);
    int launches = faulty.launches;
    faulty_end(cpu->device);
    assert_int_equal(launches, 300);
    for (int i = 0; i < launches; i += i < 6 ? 1 : 49) {
        faulty_begin(cpu->device, -1, i);
        struct lab_verification v = verify(training, 7);
        faulty_end(cpu->device);
        if (v.passed)
            fail_msg("launch %d was lost and nothing was noticed", i);
    }
    lab_workload_mlp.close(training);
}

LAB_TEST(a_wrong_learning_rate_or_mask_is_noticed) {
    struct mlp_training *t = on_cpu_start(*state, &lab_workload_mlp, WORDS(SMALL));
    assert_true(verify(t, 7).passed);
    t->launches[2].adam.learning_rate *= 1.1f;
    assert_false(verify(t, 7).passed);
    t->launches[2].adam = t->step.adam;
    t->launches[0].mlp.seed++;
    assert_false(verify(t, 7).passed);
    t->launches[0].mlp.seed--;
    t->launches[2].adam.beta2 = 0.99f;
    assert_false(verify(t, 7).passed);
    t->launches[2].adam = t->step.adam;
    assert_true(verify(t, 8).passed);
    lab_workload_mlp.close(t);
}

/* --- gradients that are wrong in a small place --- */

static struct {
    const struct lab_device_ops *real;
    struct lab_device_ops swapped;
    struct mlp_training *training;
    void (*spoil)(const struct lab_mlp *mlp, float *gradient);
    int every, steps; /* spoils one step of so many */
} spoilt;

static int spoiling_launch(struct lab_stream *stream, const struct lab_launch *launch,
                           struct lab_err *err) {
    if (spoilt.real->launch(stream, launch, err))
        return -1;
    if (launch->op != LAB_OP_MLP_BACKWARD || spoilt.steps++ % spoilt.every)
        return 0;
    if (lab_stream_sync(stream, err))
        return -1;
    spoilt.spoil(&spoilt.training->shape.mlp, spoilt.training->gradient.data);
    return 0;
}

static void spoil_nothing(const struct lab_mlp *mlp, float *gradient) {
    (void)mlp;
    (void)gradient;
}

static void spoil_biases(const struct lab_mlp *mlp, float *gradient) {
    for (int64_t i = lab_mlp_bias_at(mlp, 1); i < lab_mlp_weight_at(mlp, 2); i++)
        gradient[i] *= 1.01f;
}

static void spoil_one_bias(const struct lab_mlp *mlp, float *gradient) {
    gradient[lab_mlp_bias_at(mlp, 0) + 5] = 0;
}

/* 16 outputs by 8 inputs, as a block of threads may forget them. */
static void spoil_tile(const struct lab_mlp *mlp, float *gradient) {
    for (int64_t row = 16; row < 32; row++)
        for (int64_t column = 8; column < 16; column++)
            gradient[lab_mlp_weight_at(mlp, 0) + row * mlp->widths[0] + column] = 0;
}

static void spoil_rounding(const struct lab_mlp *mlp, float *gradient) {
    for (int64_t i = 0; i < lab_mlp_parameters(mlp); i++)
        gradient[i] *= 1 + (i % 2 ? 1e-6f : -1e-6f);
}

LAB_TEST(a_gradient_wrong_in_one_place_is_noticed) {
    const struct {
        void (*spoil)(const struct lab_mlp *mlp, float *gradient);
        int every;
        bool passes;
    } cases[] = {
        {spoil_nothing, 1, true}, {spoil_rounding, 1, true},  {spoil_biases, 1, false},
        {spoil_biases, 5, false}, {spoil_one_bias, 1, false}, {spoil_tile, 1, false},
        {spoil_tile, 5, false},
    };
    struct on_cpu *cpu = *state;
    spoilt.training = on_cpu_start(cpu, &lab_workload_mlp, WORDS(SMALL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spoilt.real = cpu->device->ops;
        spoilt.swapped = *spoilt.real;
        spoilt.swapped.launch = spoiling_launch;
        spoilt.spoil = cases[i].spoil;
        spoilt.every = cases[i].every;
        spoilt.steps = 0;
        cpu->device->ops = &spoilt.swapped;
        struct lab_verification v = verify(spoilt.training, 7);
        cpu->device->ops = spoilt.real;
        assert_int_equal(spoilt.steps, 100);
        if (v.passed != cases[i].passes)
            fail_msg("case %zu: %s", i, v.text);
    }
    lab_workload_mlp.close(spoilt.training);
}

LAB_TEST(each_refusal_while_opening_is_passed_on) {
    struct on_cpu *cpu = *state;
    const char *const ways[] = {"compile_model=true", "compile_model=false"};
    for (int w = 0; w < 2; w++) {
        const void *config =
            on_cpu_configure(cpu, &lab_workload_mlp, WORDS(SMALL, ways[w], "sync_frequency=1"));
        int calls = 0;
        for (void *opened = NULL; !opened; calls++) {
            struct lab_err err = LAB_ERR_INIT;
            assert_true(calls < 100);
            faulty_begin(cpu->device, calls, -1);
            int failed = lab_workload_mlp.open(config, &cpu->rank, &opened, &err);
            faulty_end(cpu->device);
            assert_true(failed ? err.code == LAB_ERR_MEMORY && !opened : opened != NULL);
            lab_workload_mlp.close(opened);
        }
        assert_true(calls > 10);
    }
}

LAB_TEST(the_same_work_has_one_form) {
    struct mlp_config *named = on_cpu_configure(*state, &lab_workload_mlp, WORDS("model=large"));
    struct mlp_config *spelt = on_cpu_configure(
        *state, &lab_workload_mlp, WORDS("widths=50-1024-1024-512-512-256-3", "dropout=0.3"));
    lab_workload_mlp.canonical(named);
    lab_workload_mlp.canonical(spelt);
    assert_string_equal(named->model, spelt->model);
    assert_string_equal(named->widths, spelt->widths);
    assert_true(named->dropout == spelt->dropout);
    struct lab_workload_cost cost;
    lab_workload_mlp.cost(named, &cost);
    assert_true(cost.parameters == 2021379 && cost.samples == 32);
    LAB_AUTO(str, text);
    lab_workload_mlp.label(spelt, &text);
    assert_string_equal(text.text, "mlp_large_batch32");
}

const struct lab_test_program lab_test_program = {.open = cpu_open, .close = cpu_close};
