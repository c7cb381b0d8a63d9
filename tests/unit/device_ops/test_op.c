/* test_op.c: what the ops mean, by hand-made examples; what a launch must fulfil; what it costs. */
#include "device/op.h"

#include <math.h>

#include "test.h"

static struct lab_tensor matrix(int64_t rows, int64_t columns) {
    return lab_tensor_matrix(NULL, LAB_FP32, rows, columns);
}

static struct lab_tensor vector(int64_t count) {
    return lab_tensor_vector(NULL, LAB_FP32, count);
}

static void complete(struct lab_launch *launch) {
    ASSERT_OK(lab_launch_complete(launch, err));
}

static void expect(struct lab_launch launch, const double *const *in, const double *expected) {
    complete(&launch);
    double out[64];
    int64_t count = lab_tensor_count(&launch.out);
    assert_in_range(count, 1, 64);
    lab_op_get(launch.op)->reference(&launch, in, out);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(out[i] - expected[i]) < 1e-9))
            fail_msg("%s: element %d is %.12g, must be %.12g", lab_op_get(launch.op)->name, (int)i,
                     out[i], expected[i]);
}

LAB_TEST(dtypes_have_names_and_sizes) {
    enum lab_dtype dtype = LAB_FP32;
    assert_int_equal(lab_dtype_parse("bf16", &dtype), 0);
    assert_int_equal(dtype, LAB_BF16);
    assert_int_equal(lab_dtype_bytes(LAB_TF32), 4);
    assert_int_equal(lab_dtype_bytes(LAB_FP16), 2);
    assert_int_equal(lab_dtype_parse("fp64", &dtype), -1);
    assert_int_equal(dtype, LAB_BF16);
    for (int i = 0; lab_dtype_names[i]; i++)
        assert_string_equal(lab_dtype_name((enum lab_dtype)i), lab_dtype_names[i]);
}

LAB_TEST(a_tensor_is_also_a_matrix) {
    struct lab_tensor image = lab_tensor(NULL, LAB_FP16, 4, (int64_t[]){2, 3, 5, 7});
    assert_int_equal(lab_tensor_count(&image), 210);
    assert_int_equal(lab_tensor_bytes(&image), 420);
    assert_int_equal(lab_tensor_rows(&image), 30);
    assert_int_equal(lab_tensor_columns(&image), 7);
    struct lab_tensor row = vector(9);
    assert_int_equal(lab_tensor_rows(&row), 1);
    assert_int_equal(lab_tensor_columns(&row), 9);
}

LAB_TEST(products_by_hand) {
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 1, 0, 3}; /* 2 × 3 and 3 × 2 */
    const double bias[] = {10, 20}, residual[] = {100, 200, 300, 400};
    const double *in[] = {a, b, bias, residual};
    struct lab_launch launch = {
        .op = LAB_OP_GEMM, .in = {matrix(2, 3), matrix(3, 2)}, .out = matrix(2, 2)};
    expect(launch, in, (double[]){5, 11, 14, 23});
    /* the same numbers read the other way round */
    launch.transpose_a = launch.transpose_b = true;
    launch.in[0] = matrix(3, 2);
    launch.in[1] = matrix(2, 3);
    expect(launch, in, (double[]){11, 16, 14, 20});

    launch = (struct lab_launch){.op = LAB_OP_GEMM_BIAS_ADD,
                                 .in = {matrix(2, 3), matrix(3, 2), vector(2), matrix(2, 2)},
                                 .out = matrix(2, 2)};
    expect(launch, in, (double[]){115, 231, 324, 443});
}

/* Σ do·o for these queries, keys and values. */
static double attention_loss(const struct lab_launch *forward, const double *const *in,
                             const double *d_o, double *o) {
    double loss = 0;
    lab_op_get(LAB_OP_FLASH_ATTENTION)->reference(forward, in, o);
    for (int64_t i = 0; i < lab_tensor_count(&forward->out); i++)
        loss += d_o[i] * o[i];
    return loss;
}

LAB_TEST(attentions_backward_is_its_derivative) {
    enum { TOKENS = 3, HEADS = 2, WIDTH = 64, Q = TOKENS * HEADS * WIDTH, KV = TOKENS * WIDTH };
    const int64_t queries[] = {1, TOKENS, HEADS, WIDTH}, keys[] = {1, TOKENS, 1, WIDTH};
    const int64_t all[] = {1, TOKENS, HEADS + 2, WIDTH}, sums[] = {1, HEADS, TOKENS};
    struct lab_tensor q = lab_tensor(NULL, LAB_FP32, 4, queries);
    struct lab_tensor kv = lab_tensor(NULL, LAB_FP32, 4, keys);
    struct lab_launch forward = {.op = LAB_OP_FLASH_ATTENTION,
                                 .in = {q, kv, kv},
                                 .out = q,
                                 .also = lab_tensor(NULL, LAB_FP32, 3, sums),
                                 .scale = 0.25f,
                                 .causal = true};
    struct lab_launch backward = forward;
    backward.op = LAB_OP_FLASH_ATTENTION_BACKWARD;
    backward.also = (struct lab_tensor){0};
    backward.in[3] = backward.in[4] = q;
    backward.in[5] = lab_tensor(NULL, LAB_FP32, 3, sums);
    backward.out = lab_tensor(NULL, LAB_FP32, 4, all);
    complete(&forward);
    complete(&backward);
    static double x[3][Q], d_o[Q], o[Q], moved[Q], lse[HEADS * TOKENS], found[TOKENS * 4 * WIDTH];
    for (int i = 0; i < Q; i++) {
        for (int j = 0; j < 3; j++)
            x[j][i] = sin(i * 0.7 + j);
        d_o[i] = cos(i * 0.3);
    }
    const double *in[] = {x[0], x[1], x[2], o, d_o, lse};
    attention_loss(&forward, in, d_o, o);
    lab_op_get(LAB_OP_FLASH_ATTENTION)->reference_also(&forward, in, lse);
    lab_op_get(LAB_OP_FLASH_ATTENTION_BACKWARD)->reference(&backward, in, found);
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < (j ? KV : Q); i += 5) {
            double step = 1e-5, kept = x[j][i], up, down;
            x[j][i] = kept + step;
            up = attention_loss(&forward, in, d_o, moved);
            x[j][i] = kept - step;
            down = attention_loss(&forward, in, d_o, moved);
            x[j][i] = kept;
            int heads = j ? 1 : HEADS, row = i / WIDTH, first = j ? HEADS + j - 1 : 0;
            int at = (row / heads * (HEADS + 2) + first + row % heads) * WIDTH + i % WIDTH;
            assert_true(fabs((up - down) / (2 * step) - found[at]) < 1e-6);
        }
}

/* Σ weights·out of a launch. */
static double weighted(const struct lab_launch *launch, const double *const *in,
                       const double *weights) {
    static double out[512];
    const struct lab_op *op = lab_op_get(launch->op);
    int64_t count = lab_tensor_count(&launch->out);
    double sum = 0;
    op->reference(launch, in, out);
    for (int64_t i = 0; i < count; i++)
        sum += weights[i] * out[i];
    return sum;
}

/* d Σ weights·out / d x[i], by differences. */
static double slope(const struct lab_launch *launch, const double *const *in, const double *weights,
                    double *x, int i) {
    double step = 1e-5, kept = x[i], up, down;
    x[i] = kept + step;
    up = weighted(launch, in, weights);
    x[i] = kept - step;
    down = weighted(launch, in, weights);
    x[i] = kept;
    return (up - down) / (2 * step);
}

LAB_TEST(layer_norms_backward_is_its_derivative) {
    enum { ROWS = 5, COLUMNS = 7, COUNT = ROWS * COLUMNS };
    static double x[COUNT], past[COUNT], gamma[COLUMNS], beta[COLUMNS], d[2 * COUNT];
    static double stats[2 * ROWS], sum[2 * COUNT], found[COUNT], also[3 * COLUMNS];
    const double *in[] = {x, gamma, beta, past}, *back[] = {sum, gamma, stats, d + COUNT, d};
    for (int i = 0; i < 2 * COUNT; i++)
        x[i % COUNT] = sin(i * 0.7), past[i % COUNT] = cos(i * 0.4), d[i] = cos(i * 0.3);
    for (int i = 0; i < COLUMNS; i++)
        gamma[i] = 1 + sin(i), beta[i] = cos(i);
    struct lab_tensor m = matrix(ROWS, COLUMNS), v = vector(COLUMNS);
    struct lab_launch forward = {.op = LAB_OP_RESIDUAL_LAYER_NORM,
                                 .in = {m, v, v, m},
                                 .out =
                                     lab_tensor(NULL, LAB_FP32, 3, (int64_t[]){2, ROWS, COLUMNS}),
                                 .also = matrix(ROWS, 2),
                                 .epsilon = 1e-5f};
    struct lab_launch backward = {.op = LAB_OP_LAYER_NORM_BACKWARD,
                                  .in = {m, v, matrix(ROWS, 2), m, m},
                                  .out = m,
                                  .also = matrix(3, COLUMNS)};
    complete(&forward);
    complete(&backward);
    lab_op_get(forward.op)->reference(&forward, in, sum);
    lab_op_get(forward.op)->reference_also(&forward, in, stats);
    lab_op_get(backward.op)->reference(&backward, back, found);
    lab_op_get(backward.op)->reference_also(&backward, back, also);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabs(slope(&forward, in, d, x, i) - found[i]) < 1e-6);
    for (int i = 0; i < COLUMNS; i++) {
        assert_true(fabs(slope(&forward, in, d, gamma, i) - also[COLUMNS + i]) < 1e-6);
        assert_true(fabs(slope(&forward, in, d, beta, i) - also[2 * COLUMNS + i]) < 1e-6);
    }
}

LAB_TEST(derivatives_of_gelu_and_cross_entropy) {
    enum { COUNT = 12 };
    static double x[COUNT], d[COUNT], found[COUNT], losses[3];
    const double targets[] = {2, -1, 0}, *in[] = {x, d}, *logits[] = {x, targets};
    for (int i = 0; i < COUNT; i++)
        x[i] = i - 5.5, d[i] = cos(i);
    struct lab_launch forward = {
        .op = LAB_OP_GELU_TANH, .in = {vector(COUNT)}, .out = vector(COUNT)};
    struct lab_launch backward = {.op = LAB_OP_GELU_TANH_BACKWARD,
                                  .in = {vector(COUNT), vector(COUNT)},
                                  .out = vector(COUNT)};
    complete(&forward);
    complete(&backward);
    lab_op_get(backward.op)->reference(&backward, in, found);
    for (int i = 0; i < COUNT; i++)
        assert_true(fabs(slope(&forward, in, d, x, i) - found[i]) < 1e-6);
    /* three rows of three classes and a padded one */
    struct lab_launch entropy = {.op = LAB_OP_CROSS_ENTROPY,
                                 .in = {matrix(3, 4), vector(3)},
                                 .out = matrix(3, 4),
                                 .also = vector(3),
                                 .classes = 3,
                                 .scale = 0.5f};
    complete(&entropy);
    lab_op_get(entropy.op)->reference(&entropy, logits, found);
    for (int i = 0; i < COUNT; i++) {
        double rise = 0, kept = x[i];
        for (int side = 1; side >= -1; side -= 2) {
            x[i] = kept + side * 1e-5;
            lab_op_get(entropy.op)->reference_also(&entropy, logits, losses);
            rise += side * (losses[0] + losses[1] + losses[2]);
        }
        x[i] = kept;
        assert_true(fabs(0.5 * rise / 2e-5 - found[i]) < 1e-6);
    }
    assert_true(losses[1] == 0 && found[3] == 0);
    entropy.classes = 5;
    ASSERT_FAILS(lab_launch_complete(&entropy, err), LAB_ERR_USER,
                 "cross_entropy: 5 classes, must be 1 to the 4 columns, and 2^24 at most");
}

LAB_TEST(a_second_output_is_checked) {
    struct lab_launch launch;
    assert_int_equal(lab_op_example(LAB_OP_FLASH_ATTENTION, 1, LAB_BF16, &launch), 0);
    launch.also = lab_tensor(NULL, LAB_FP32, 3, (int64_t[]){2, 3, 7});
    complete(&launch);
    double bytes = launch.cost.bytes_written;
    launch.also.dtype = LAB_BF16;
    ASSERT_FAILS(lab_launch_complete(&launch, err), LAB_ERR_USER,
                 "flash_attention: the second output is bf16, must be fp32");
    launch.also = lab_tensor(NULL, LAB_FP32, 3, (int64_t[]){2, 7, 3});
    ASSERT_FAILS(lab_launch_complete(&launch, err), LAB_ERR_USER,
                 "flash_attention: the second output is [2,7,3], must be [2,3,7]");
    launch.also = (struct lab_tensor){0};
    complete(&launch);
    assert_true(bytes == launch.cost.bytes_written + 4 * 2 * 3 * 7);
    launch = (struct lab_launch){
        .op = LAB_OP_ADD, .in = {matrix(2, 3), matrix(2, 3)}, .out = matrix(2, 3)};
    launch.also = matrix(2, 3);
    ASSERT_FAILS(lab_launch_complete(&launch, err), LAB_ERR_USER, "add: it has no second output");
}

LAB_TEST(patches_by_hand) {
    /* two channels of a 2 × 4 image: two patches, in each row, column, channel */
    const double image[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17};
    const double *in[] = {image};
    expect((struct lab_launch){.op = LAB_OP_PATCHIFY,
                               .in = {lab_tensor(NULL, LAB_FP32, 4, (int64_t[]){1, 2, 2, 4})},
                               .out = matrix(2, 8),
                               .patch = 2},
           in, (double[]){0, 10, 1, 11, 4, 14, 5, 15, 2, 12, 3, 13, 6, 16, 7, 17});
}

LAB_TEST(tokens_by_hand) {
    const double x[] = {1, 2, 3, 4}, class[] = {7, 8}, position[] = {10, 20, 30, 40};
    const double *in[] = {x, class, position};
    expect((struct lab_launch){.op = LAB_OP_EMBED,
                               .in = {matrix(2, 2), vector(2), matrix(2, 2)},
                               .out = matrix(4, 2)},
           in, (double[]){17, 28, 31, 42, 17, 28, 33, 44});
}

LAB_TEST(rows_by_hand) {
    const double x[] = {1, 3, 0, log(3)}, gamma[] = {1, 2}, beta[] = {0, 5};
    const double *in[] = {x, gamma, beta};
    expect((struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {matrix(2, 2)}, .out = matrix(2, 2)}, in,
           (double[]){1 / (1 + exp(2)), exp(2) / (1 + exp(2)), 0.25, 0.75});
    /* the row 1, 3 has mean 2 and variance 1; epsilon 3 makes the root 2 */
    expect((struct lab_launch){.op = LAB_OP_LAYER_NORM,
                               .in = {matrix(1, 2), vector(2), vector(2)},
                               .out = matrix(1, 2),
                               .epsilon = 3},
           in, (double[]){-0.5, 6});
    const double one[] = {1, -1, 0};
    const double *activation[] = {one};
    expect((struct lab_launch){.op = LAB_OP_GELU, .in = {vector(3)}, .out = vector(3)}, activation,
           (double[]){0.841344746068543, -0.158655253931457, 0});
}

LAB_TEST(attention_by_hand) {
    /* two tokens, two heads of width 1; a row: q q k k v v */
    const double qkv[] = {1, 0, log(3), 5, 10, 1, 0, 2, 0, 5, 20, 3};
    const double *in[] = {qkv};
    /* head 0: token 0 weighs 3:1, token 1 (q = 0) 1:1; head 1: equal keys, 1:1 for both */
    expect((struct lab_launch){.op = LAB_OP_ATTENTION,
                               .in = {matrix(2, 6)},
                               .out = matrix(2, 2),
                               .tokens = 2,
                               .heads = 2,
                               .scale = 1},
           in, (double[]){12.5, 2, 15, 2});
}

LAB_TEST(costs_are_counted) {
    struct lab_launch launch = {
        .op = LAB_OP_GEMM, .in = {matrix(10, 30), matrix(30, 20)}, .out = matrix(10, 20)};
    complete(&launch);
    assert_true(launch.cost.flops == 2.0 * 10 * 20 * 30);
    assert_true(launch.cost.bytes_read == 4.0 * (300 + 600));
    assert_true(launch.cost.bytes_written == 4.0 * 200);

    launch = (struct lab_launch){.op = LAB_OP_ATTENTION,
                                 .in = {matrix(2 * 50, 3 * 8 * 64)},
                                 .out = matrix(2 * 50, 8 * 64),
                                 .tokens = 50,
                                 .heads = 8,
                                 .scale = 0.125f};
    complete(&launch);
    assert_true(launch.cost.flops == 2.0 * 8 * 50 * 50 * (4 * 64 + 6));
}

/* A fused op does the work of its parts, and moves less. */
LAB_TEST(fusing_saves_bytes_not_flops) {
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        const struct lab_op *op = lab_op_get((enum lab_op_id)id);
        struct lab_launch launch, parts[LAB_OP_PARTS];
        for (int i = 0; op->lower && lab_op_example((enum lab_op_id)id, i, LAB_FP32, &launch) == 0;
             i++) {
            complete(&launch);
            double flops = 0, bytes = 0;
            int count = op->lower(&launch, parts);
            for (int p = 0; p < count; p++) {
                complete(&parts[p]);
                flops += parts[p].cost.flops;
                bytes += parts[p].cost.bytes_read + parts[p].cost.bytes_written;
            }
            assert_true(launch.cost.flops == flops);
            assert_true(launch.cost.bytes_read + launch.cost.bytes_written < bytes);
        }
    }
}

LAB_TEST(every_op_is_described) {
    for (int id = 0; id < LAB_OP_COUNT; id++) {
        const struct lab_op *op = lab_op_get((enum lab_op_id)id);
        assert_non_null(op);
        assert_true(op->name[0] && op->help[0]);
        assert_in_range(op->inputs, 0, LAB_LAUNCH_INPUTS);
        assert_true(op->over < 1u << op->inputs);
        struct lab_launch launch;
        for (int i = 0; lab_op_example((enum lab_op_id)id, i, LAB_FP32, &launch) == 0; i++) {
            assert_int_equal(launch.op, id);
            complete(&launch);
        }
    }
    assert_null(lab_op_get(LAB_OP_COUNT));
}

static void refused(struct lab_launch launch, const char *text) {
    ASSERT_FAILS(lab_launch_complete(&launch, err), LAB_ERR_USER, text);
}

LAB_TEST(what_does_not_fit_is_refused) {
    refused((struct lab_launch){.op = LAB_OP_GEMM,
                                .in = {matrix(10, 30), matrix(31, 20)},
                                .out = matrix(10, 20)},
            "gemm: b is [31,20], must be [30,20]");
    refused((struct lab_launch){.op = LAB_OP_GEMM_BIAS,
                                .in = {matrix(10, 30), matrix(30, 20), vector(10)},
                                .out = matrix(10, 20)},
            "gemm_bias: bias is [10], must be [20]");
    refused((struct lab_launch){.op = LAB_OP_PATCHIFY,
                                .in = {lab_tensor(NULL, LAB_FP32, 4, (int64_t[]){1, 3, 30, 32})},
                                .out = matrix(4, 768),
                                .patch = 16},
            "an image of 30 x 32 can't be cut into patches of 16 x 16");
    refused((struct lab_launch){.op = LAB_OP_PATCHIFY,
                                .in = {lab_tensor(NULL, LAB_FP32, 4, (int64_t[]){1, 3, 32, 32})},
                                .out = matrix(4, 768)},
            "patch is 0");
    refused((struct lab_launch){.op = LAB_OP_ATTENTION,
                                .in = {matrix(100, 1536)},
                                .out = matrix(100, 512),
                                .tokens = 50,
                                .heads = 7,
                                .scale = 1},
            "multiple of the 7 heads");
    refused((struct lab_launch){.op = LAB_OP_ATTENTION,
                                .in = {matrix(100, 1536)},
                                .out = matrix(100, 512),
                                .tokens = 50,
                                .heads = 8},
            "scale is 0");
    refused((struct lab_launch){.op = LAB_OP_LAYER_NORM,
                                .in = {matrix(2, 4), vector(4), vector(4)},
                                .out = matrix(2, 4),
                                .epsilon = NAN},
            "epsilon");
    refused((struct lab_launch){.op = LAB_OP_FILL, .out = matrix(0, 4)}, "between 1 and");
    refused((struct lab_launch){.op = LAB_OP_FILL}, "has 0 dimensions");
    int64_t huge[] = {2000000000, 2000000000, 2};
    refused((struct lab_launch){.op = LAB_OP_FILL, .out = lab_tensor(NULL, LAB_FP32, 3, huge)},
            "too many elements");
    refused((struct lab_launch){.op = LAB_OP_GELU,
                                .in = {lab_tensor_vector(NULL, LAB_FP16, 4)},
                                .out = vector(4)},
            "input 0 is fp16, must be fp32");
    refused((struct lab_launch){.op = (enum lab_op_id)99}, "99");
}

LAB_TEST(outputs_lie_over_inputs_only_where_allowed) {
    float memory[64] = {0};
    struct lab_launch launch = {.op = LAB_OP_GELU, .in = {vector(16)}, .out = vector(16)};
    launch.in[0].data = launch.out.data = memory;
    complete(&launch);
    launch.out.data = memory + 8; /* shifted: the end of the input is lost */
    refused(launch, "must not overlap input 0");
    launch.out.data = memory + 16;
    complete(&launch);

    launch = (struct lab_launch){
        .op = LAB_OP_GEMM, .in = {matrix(4, 4), matrix(4, 4)}, .out = matrix(4, 4)};
    launch.in[0].data = launch.out.data = memory;
    launch.in[1].data = memory + 16;
    refused(launch, "must not overlap input 0");
}
