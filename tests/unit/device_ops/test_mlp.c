/*
 * Training's operations by their meaning: where things lie, what the definitions in double
 * precision compute, which outputs are dropped, and that parts of a batch add up to it.
 */
#include "base/mem.h"
#include "base/philox.h"
#include "base/random.h"
#include "device/op.h"

#include "test.h"
#include <math.h>
#include <string.h>

static struct lab_mlp medium(void) {
    return (struct lab_mlp){.widths = {50, 256, 128, 64, 3},
                            .width_count = 5,
                            .dropout = 0.2f,
                            .seed = 42,
                            .batch = 32,
                            .rows = 32};
}

/* --- places --- */

LAB_TEST(parameters_are_counted_truly) {
    struct lab_mlp mlp = medium();
    assert_int_equal(lab_mlp_parameters(&mlp), 54403);
    mlp = (struct lab_mlp){.widths = {50, 1024, 1024, 512, 512, 256, 3}, .width_count = 7};
    assert_int_equal(lab_mlp_parameters(&mlp), 2021379);
    mlp = (struct lab_mlp){.widths = {50, 33, 7, 3}, .width_count = 4};
    assert_int_equal(lab_mlp_parameters(&mlp), 1945);
    assert_int_equal(lab_mlp_weight_at(&mlp, 1), 51 * 33);
    assert_int_equal(lab_mlp_bias_at(&mlp, 1), 51 * 33 + 33 * 7);
}

LAB_TEST(nothing_overlaps_in_work) {
    struct lab_mlp mlp = medium();
    int layers = lab_mlp_layers(&mlp);
    int64_t end = 0;
    for (int l = 0; l < layers; l++) {
        assert_int_equal(lab_mlp_output_at(&mlp, l), end);
        end += mlp.rows * mlp.widths[l + 1];
    }
    assert_int_equal(lab_mlp_forward_count(&mlp), end + 2);
    end += 2;
    for (int l = 0; l < layers - 1; l++) {
        assert_true(lab_mlp_delta_at(&mlp, l) >= end);
        end = lab_mlp_delta_at(&mlp, l) + mlp.rows * mlp.widths[l + 1];
    }
    assert_int_equal(lab_mlp_delta_at(&mlp, layers - 1), lab_mlp_output_at(&mlp, layers - 1));
    assert_int_equal(lab_mlp_work_count(&mlp), end);
}

LAB_TEST(steps_go_through_the_whole_batches_in_turn) {
    struct lab_mlp mlp = {.batch = 10, .first_row = 4, .rows = 3};
    assert_int_equal(lab_mlp_row(&mlp, 35, 0), 4);
    assert_int_equal(lab_mlp_row(&mlp, 35, 2), 24);
    assert_int_equal(lab_mlp_row(&mlp, 35, 3), 4);
    assert_int_equal(lab_mlp_row(&mlp, 10, 77), 4);
}

LAB_TEST(bad_models_are_refused) {
    const struct {
        struct lab_mlp mlp;
        const char *part;
    } cases[] = {
        {{.widths = {3}, .width_count = 1, .batch = 1, .rows = 1}, "must be 2 to 8"},
        {{.widths = {3, 0, 2}, .width_count = 3, .batch = 1, .rows = 1}, "width 2 is 0"},
        {{.widths = {3, 2}, .width_count = 2, .dropout = 1, .batch = 1, .rows = 1}, "below 1"},
        {{.widths = {3, 2}, .width_count = 2, .dropout = NAN, .batch = 1, .rows = 1}, "below 1"},
        {{.widths = {3, 2}, .width_count = 2, .batch = -4, .rows = 1}, "at least 1"},
        {{.widths = {3, 2}, .width_count = 2, .batch = 4, .first_row = 3, .rows = 2}, "batch of 4"},
        {{.widths = {3, 2}, .width_count = 2, .batch = 4, .rows = 4, .layer_end = 2},
         "the 1 there"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab_err err = LAB_ERR_INIT;
        assert_int_equal(lab_mlp_check(&cases[i].mlp, &err), -1);
        if (!strstr(err.text, cases[i].part))
            fail_msg("'%s' lacks '%s'", err.text, cases[i].part);
    }
}

/* --- definitions --- */

/* A model with data and parameters at which no ReLU is near its edge. */
struct problem {
    struct lab_launch gradient; /* mlp_gradient, without data */
    double *x, *y, *state, *work;
    int64_t parameters;
};

static struct problem problem_of(struct lab_mlp mlp, int64_t data_rows, struct lab_arena *arena) {
    struct problem p = {.parameters = lab_mlp_parameters(&mlp)};
    int64_t inputs = mlp.widths[0], outputs = mlp.widths[lab_mlp_layers(&mlp)];
    int64_t count = lab_mlp_state_count(&mlp);
    p.gradient = (struct lab_launch){
        .op = LAB_OP_MLP_GRADIENT,
        .in = {lab_tensor_matrix(NULL, LAB_FP32, data_rows, inputs),
               lab_tensor_matrix(NULL, LAB_FP32, data_rows, outputs),
               lab_tensor_vector(NULL, LAB_FP32, count),
               lab_tensor_vector(NULL, LAB_FP32, lab_mlp_work_count(&mlp))},
        .out = lab_tensor_vector(NULL, LAB_FP32, lab_mlp_gradient_count(&mlp)),
        .mlp = mlp,
    };
    p.x = lab_arena_alloc(arena, (size_t)(data_rows * inputs), sizeof *p.x);
    p.y = lab_arena_alloc(arena, (size_t)(data_rows * outputs), sizeof *p.y);
    p.state = lab_arena_alloc(arena, (size_t)count, sizeof *p.state);
    float *values = lab_arena_alloc(arena, (size_t)count, sizeof *values);
    for (int64_t i = 0; i < data_rows * inputs; i++)
        p.x[i] = (double)lab_random_symmetric(1, (uint64_t)i);
    for (int64_t i = 0; i < data_rows * outputs; i++)
        p.y[i] = (double)lab_random_symmetric(2, (uint64_t)i);
    for (int64_t i = 0; i < count; i++)
        values[i] = lab_random_symmetric(3, (uint64_t)i);
    lab_op_get(LAB_OP_MLP_GRADIENT)->domain(&p.gradient, 2, values);
    for (int64_t i = 0; i < count; i++)
        p.state[i] = (double)values[i];
    struct lab_launch complete = p.gradient;
    ASSERT_OK(lab_launch_complete(&complete, err));
    return p;
}

static double *gradient_of(const struct problem *p, struct lab_mlp mlp, struct lab_arena *arena) {
    struct lab_launch launch = p->gradient;
    launch.mlp = mlp;
    double *out = lab_arena_alloc(arena, (size_t)lab_mlp_gradient_count(&mlp), sizeof *out);
    lab_op_get(LAB_OP_MLP_GRADIENT)
        ->reference(&launch, (const double *const[]){p->x, p->y, p->state, NULL}, out);
    return out;
}

static double relative_distance(const double *a, const double *b, int64_t count) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += a[i] * a[i];
    }
    return sqrt(difference / norm);
}

/* One weight times one input. Each is halfway between two neighbours of the format, or a little
 * above. */
LAB_TEST(factors_are_rounded_as_matrix_units_do) {
    const struct {
        enum lab_dtype dtype;
        double weight, x, product;
    } cases[] = {
        {LAB_FP32, 1 + 0x1p-20, 1 + 0x1p-3, (1 + 0x1p-20) * (1 + 0x1p-3)},
        {LAB_TF32, 1 + 0x1p-11, 1 + 0x1p-3, (1 + 0x1p-10) * (1 + 0x1p-3)}, /* ties away from zero */
        {LAB_TF32, -1 - 0x1p-11, 1 + 0x1p-12, -1 - 0x1p-10},
        {LAB_BF16, 1 + 0x1p-8, 1 + 0x1p-3, 1 + 0x1p-3}, /* ties to even */
        {LAB_BF16, 1 + 3 * 0x1p-8, 1 + 0x1p-9, 1 + 0x1p-6},
        {LAB_BF16, 1 + 0x1p-8 + 0x1p-20, 1, 1 + 0x1p-7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab_launch launch = {
            .op = LAB_OP_MLP_GRADIENT,
            .mlp = {.widths = {1, 1}, .width_count = 2, .batch = 1, .rows = 1},
            .compute = cases[i].dtype,
        };
        launch.in[0] = lab_tensor_matrix(NULL, LAB_FP32, 1, 1);
        double model[3 * 32 + 4] = {cases[i].weight, 0x1p-20}, target = -1, gradient[4];
        double prediction = cases[i].product + 0x1p-20;
        const double *in[] = {&cases[i].x, &target, model, NULL, NULL};
        lab_op_get(launch.op)->reference(&launch, in, gradient);
        assert_true(gradient[2] == (prediction + 1) * (prediction + 1)); /* the loss */
        assert_true(gradient[1] == 2 * (prediction + 1)); /* a sum's terms are no factors */
    }
}

/* The loss at parameters moved by ±h, of every parameter in turn. */
LAB_TEST(the_gradient_is_that_of_finite_differences) {
    LAB_AUTO(arena, arena);
    struct lab_mlp mlp = {.widths = {6, 9, 17, 4},
                          .width_count = 4,
                          .dropout = 0.25f,
                          .seed = 5,
                          .batch = 7,
                          .rows = 7};
    struct problem p = problem_of(mlp, 14, &arena);
    const double h = 1e-5;
    double *exact = gradient_of(&p, mlp, &arena);
    double *estimate = lab_arena_alloc(&arena, (size_t)p.parameters, sizeof *estimate);
    int active = 0;
    for (int64_t i = 0; i < p.parameters; i++) {
        double keep = p.state[i];
        p.state[i] = keep + h;
        double above = gradient_of(&p, mlp, &arena)[p.parameters];
        p.state[i] = keep - h;
        double below = gradient_of(&p, mlp, &arena)[p.parameters];
        p.state[i] = keep;
        estimate[i] = (above - below) / (2 * h);
        active += exact[i] != 0;
    }
    assert_true(active > p.parameters / 4);
    assert_true(relative_distance(exact, estimate, p.parameters) < 1e-8);
}

/* Rows [0, cut) and [cut, batch) as two ranks would do them. */
LAB_TEST(shards_of_any_size_add_up_to_the_batch) {
    LAB_AUTO(arena, arena);
    struct lab_mlp whole = {.widths = {20, 33, 16, 3},
                            .width_count = 4,
                            .dropout = 0.5f,
                            .seed = 9,
                            .batch = 12,
                            .rows = 12};
    struct problem p = problem_of(whole, 36, &arena);
    double *expected = gradient_of(&p, whole, &arena);
    for (int64_t cut = 1; cut < whole.batch; cut++) {
        struct lab_mlp first = whole, second = whole;
        first.rows = cut;
        second.first_row = cut;
        second.rows = whole.batch - cut;
        double *a = gradient_of(&p, first, &arena), *b = gradient_of(&p, second, &arena);
        for (int64_t i = 0; i < p.parameters + 2; i++)
            a[i] += b[i];
        assert_true(relative_distance(expected, a, p.parameters + 2) < 1e-14);
        assert_true(fabs(expected[p.parameters] - a[p.parameters]) < 1e-14);
    }
}

/* Keras's example by hand: one parameter, gradients 1 and then -2. */
LAB_TEST(adam_does_what_its_formula_says) {
    struct lab_launch launch = {.op = LAB_OP_ADAM, .adam = LAB_ADAM};
    int64_t stride = lab_mlp_stride(1), count = 3 * stride + LAB_MLP_TAIL;
    double now[3 * 32 + LAB_MLP_TAIL] = {0}, next[3 * 32 + LAB_MLP_TAIL];
    assert_int_equal(stride, 32);
    now[0] = 0.5;
    launch.in[0] = launch.out = lab_tensor_vector(NULL, LAB_FP32, count);
    launch.in[1] = lab_tensor_vector(NULL, LAB_FP32, 3);
    lab_op_get(LAB_OP_ADAM)
        ->reference(&launch, (const double *const[]){now, (const double[]){1, 0.25, 0.125}}, next);
    /* m = 0.1, v = 0.001; rate = lr·√0.001/0.1; so the parameter falls by almost the rate */
    assert_true(fabs(next[0] - (0.5 - 1e-3)) < 1e-8);
    assert_true(fabs(next[stride] - 0.1) < 1e-7 && fabs(next[2 * stride] - 1e-3) < 1e-7);
    assert_true(next[count - 4] == 1 && next[count - 3] == 0);
    assert_true(next[count - 2] == 0.25 && next[count - 1] == 0.125);
    lab_op_get(LAB_OP_ADAM)
        ->reference(&launch, (const double *const[]){next, (const double[]){-2, 0, 0}}, now);
    double m = 0.1 * 0.9 - 0.2, v = 0.001 * 0.999 + 0.004;
    double rate = 1e-3 * sqrt(1 - 0.999 * 0.999) / (1 - 0.81);
    assert_true(fabs(now[0] - (next[0] - rate * m / (sqrt(v) + 1e-7))) < 1e-8);
    assert_true(now[count - 4] == 2);
}

LAB_TEST(the_step_counter_goes_on_past_what_a_float_can_count) {
    assert_int_equal(lab_mlp_step_of(5, 0), 5);
    assert_int_equal(lab_mlp_step_of(LAB_MLP_STEP_BASE - 1, 16), (17 << 20) - 1);
    struct lab_mlp mlp = medium();
    /* steps that differ only above 2³² drop differently */
    int same = 0;
    for (int64_t row = 0; row < 1000; row++)
        same +=
            lab_mlp_keeps(&mlp, 3, 0, row, 0) == lab_mlp_keeps(&mlp, 3 + (1ll << 32), 0, row, 0);
    assert_in_range(same, 600, 760); /* 0.8² + 0.2² = 0.68 */
}

/* --- dropout --- */

/* The known answers that come with Random123. */
LAB_TEST(philox_gives_the_published_numbers) {
    const struct {
        struct lab_philox counter, expected;
        uint64_t key;
    } cases[] = {
        {{{0, 0, 0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}, 0},
        {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
         0xffffffffffffffff},
        {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
         0x299f31d0a4093822},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab_philox found = lab_philox(cases[i].counter, cases[i].key);
        assert_memory_equal(&found, &cases[i].expected, sizeof found);
    }
}

enum { STEPS = 4, LAYERS = 3, ROWS = 64, COLUMNS = 256 };

struct counts {
    double all, dropped;
    double by_step[STEPS], by_layer[LAYERS], by_row[ROWS], by_column[COLUMNS];
};

static void count_dropped(const struct lab_mlp *mlp, struct counts *counts) {
    *counts = (struct counts){0};
    for (int s = 0; s < STEPS; s++)
        for (int l = 0; l < LAYERS; l++)
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < COLUMNS; c++) {
                    bool dropped = !lab_mlp_keeps(mlp, s, l, r, c);
                    counts->all++;
                    counts->dropped += dropped;
                    counts->by_step[s] += dropped;
                    counts->by_layer[l] += dropped;
                    counts->by_row[r] += dropped;
                    counts->by_column[c] += dropped;
                }
}

/* χ² of equal shares, as a normal deviate (Wilson and Hilferty). */
static double deviate_of(const double *dropped, int cells, double all, double rate) {
    double each = all / cells, chi = 0, freedom = cells;
    for (int i = 0; i < cells; i++) {
        double off = dropped[i] - each * rate;
        chi += off * off / (each * rate * (1 - rate));
    }
    return (cbrt(chi / freedom) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom));
}

#define DEVIATE_MOST 3.0 /* a fair generator is beyond it in one of 370 tests */

LAB_TEST(dropout_has_its_rate_everywhere) {
    const float rates[] = {0.05f, 0.2f, 0.3f, 0.5f, 0.9f};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct lab_mlp mlp = medium();
        struct counts counts;
        mlp.dropout = rates[i];
        double rate = (double)lab_mlp_threshold(&mlp) / 0x1p16;
        assert_true(fabs(rate - (double)rates[i]) <= 0x1p-17);
        count_dropped(&mlp, &counts);
        double error = sqrt(rate * (1 - rate) * counts.all);
        assert_true(fabs(counts.dropped - rate * counts.all) < DEVIATE_MOST * error);
        const double deviates[] = {
            deviate_of(counts.by_step, STEPS, counts.all, rate),
            deviate_of(counts.by_layer, LAYERS, counts.all, rate),
            deviate_of(counts.by_row, ROWS, counts.all, rate),
            deviate_of(counts.by_column, COLUMNS, counts.all, rate),
        };
        for (int d = 0; d < 4; d++)
            if (fabs(deviates[d]) > DEVIATE_MOST)
                fail_msg("rate %g: χ² of grouping %d is %g deviations off", rate, d, deviates[d]);
        assert_true(fabs((double)lab_mlp_scale(&mlp) * (1 - rate) - 1) < 1e-7);
    }
}

/* How often two outputs share their fate, against independence. */
static double agreement(const struct lab_mlp *mlp, int step, int layer, int row, int column) {
    double same = 0, all = 3.0 * ROWS * COLUMNS, rate = (double)lab_mlp_threshold(mlp) / 0x1p16;
    for (int s = 0; s < 3; s++)
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < COLUMNS; c++)
                same += lab_mlp_keeps(mlp, s, 0, r, c) ==
                        lab_mlp_keeps(mlp, s + step, layer, r + row, c + column);
    double expected = rate * rate + (1 - rate) * (1 - rate);
    return (same - expected * all) / sqrt(expected * (1 - expected) * all);
}

LAB_TEST(neighbours_are_dropped_independently) {
    struct lab_mlp mlp = medium();
    mlp.dropout = 0.5f;
    const int shifts[][4] = {{1, 0, 0, 0},  {0, 1, 0, 0},  {0, 0, 1, 0},   {0, 0, 0, 1},
                             {0, 0, 0, 16}, {0, 0, 0, 32}, {0, 0, 0, 128}, {1, 0, 1, 0},
                             {0, 1, 0, 16}, {1, 1, 1, 1},  {256, 0, 0, 0}, {0, 0, 64, 0}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        double deviate = agreement(&mlp, shifts[i][0], shifts[i][1], shifts[i][2], shifts[i][3]);
        if (fabs(deviate) > DEVIATE_MOST)
            fail_msg("shift %d,%d,%d,%d: %g deviations off", shifts[i][0], shifts[i][1],
                     shifts[i][2], shifts[i][3], deviate);
    }
    struct lab_mlp other = mlp;
    other.seed = mlp.seed + 1;
    int differ = 0;
    for (int c = 0; c < COLUMNS; c++)
        differ += lab_mlp_keeps(&mlp, 0, 0, 0, c) != lab_mlp_keeps(&other, 0, 0, 0, c);
    assert_in_range(differ, 90, 166);
}
