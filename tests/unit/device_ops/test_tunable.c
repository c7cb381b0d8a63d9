/*
 * Configurations: as numbers, as text, and on the cpu backend: every legal one of every example
 * computes what the op's definition says.
 */
#include "conformance/op_check.h"
#include "device/cpu/kernels.h"

#include <stdlib.h>

#include "test.h"

static const enum lab_op_id tunable_ops[] = {
    LAB_OP_GEMM,          LAB_OP_GEMM_ADD, LAB_OP_GEMM_BIAS,      LAB_OP_GEMM_BIAS_GELU,
    LAB_OP_GEMM_BIAS_ADD, LAB_OP_SOFTMAX,  LAB_OP_FLASH_ATTENTION};
enum { OPS = sizeof tunable_ops / sizeof *tunable_ops };

static const struct lab_tunable *tunable_of(const struct lab_launch *launch) {
    return cpu_tunable(NULL, launch);
}

static struct lab_launch attention_of(int64_t tokens) {
    const int64_t shape[] = {1, tokens, 2, 64};
    struct lab_tensor x = lab_tensor(NULL, LAB_FP32, 4, shape);
    return (struct lab_launch){
        .op = LAB_OP_FLASH_ATTENTION, .in = {x, x, x}, .out = x, .scale = 0.125f};
}

static void assert_text(const struct lab_tunable *tunable, const struct lab_tuning *tuning,
                        const char *text) {
    struct lab_str out;
    lab_str_init(&out);
    lab_tuning_write(tunable, tuning, &out);
    assert_string_equal(out.text, text);
    lab_str_release(&out);
}

LAB_TEST(texts_and_values_are_the_same) {
    struct lab_launch launch = attention_of(1024);
    const struct lab_tunable *tunable = tunable_of(&launch);
    struct lab_tuning tuning = {0};
    /* given a text in any order, when it is read and written, then it has the space's order */
    ASSERT_OK(lab_tuning_parse(tunable, NULL, &launch, "block_k=128,block_q=64", &tuning, err));
    assert_text(tunable, &tuning, "block_q=64,block_k=128");
    /* what isn't named has its default */
    ASSERT_OK(lab_tuning_parse(tunable, NULL, &launch, "block_q=64", &tuning, err));
    assert_text(tunable, &tuning, "block_q=64,block_k=256");
    ASSERT_OK(lab_tuning_parse(tunable, NULL, &launch, "default", &tuning, err));
    assert_int_equal(tuning.count, 0);
    assert_text(tunable, &tuning, "default");
}

static void refuse(const char *text, const char *part) {
    struct lab_launch launch = attention_of(1024);
    const struct lab_tunable *tunable = tunable_of(&launch);
    struct lab_tuning tuning = {.count = 7};
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_tuning_parse(tunable, NULL, &launch, text, &tuning, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(tuning.count, 7); /* untouched */
    assert_contains(err.text, part);
}

LAB_TEST(bad_texts_say_what_would_be_right) {
    refuse("block_x=64", "which has block_q and block_k");
    refuse("block_q=65", "must be 16, 32,");
    refuse("block_q=64,block_q=64", "given twice");
    refuse("block_q", "must be name=value");
    refuse("block_q=", "must be a whole number");
    refuse("block_q=6 4", "must be a whole number");
    refuse("block_q=99999999999999999999", "must be a whole number");
    refuse("", "must be name=value");
}

LAB_TEST(every_combination_comes_once) {
    struct lab_launch launch = attention_of(1024);
    const struct lab_tunable *tunable = tunable_of(&launch);
    int64_t size = lab_tunable_size(tunable);
    assert_int_equal(size, 9 * 7);
    for (int64_t i = 0; i < size; i++)
        for (int64_t j = 0; j < i; j++) {
            struct lab_tuning a = lab_tunable_at(tunable, i), b = lab_tunable_at(tunable, j);
            assert_false(lab_tuning_equal(&a, &b));
        }
}

LAB_TEST(what_does_not_fit_says_why) {
    struct lab_launch launch = attention_of(40);
    const struct lab_tunable *tunable = tunable_of(&launch);
    struct lab_tuning tuning;
    struct lab_err err = LAB_ERR_INIT;
    lab_tuning_parse(tunable, NULL, &launch, "block_q=512,block_k=64", &tuning, NULL);
    assert_int_equal(lab_tuning_check(tunable, NULL, &launch, &tuning, &err), -1);
    assert_int_equal(err.code, LAB_ERR_UNSUPPORTED);
    assert_contains(err.text, "block_q=512: the sequence has only 40 tokens");
    /* a tuning of another kernel, and one with values that aren't choices */
    tuning.count = 3;
    assert_int_equal(lab_tuning_check(tunable, NULL, &launch, &tuning, &err), -1);
    tuning = (struct lab_tuning){.count = 2, .values = {7, 64}};
    assert_int_equal(lab_tuning_check(tunable, NULL, &launch, &tuning, &err), -1);
    assert_contains(err.text, "block_q=7: must be 16");
}

LAB_TEST(lengths_near_each_other_share_their_tuning) {
    static const struct {
        int64_t tokens;
        const char *text;
    } cases[] = {{1, "s1"},       {3, "s3"},       {1000, "s1024"},
                 {1024, "s1024"}, {1025, "s1536"}, {1537, "s2048"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_launch launch = attention_of(cases[i].tokens);
        char want[80];
        launch.causal = true;
        LAB_AUTO(str, text);
        lab_tunable_shape_class(&launch, &text);
        snprintf(want, sizeof want, "flash_attention b1 %s h2 g2 w64 causal", cases[i].text);
        assert_string_equal(text.text, want);
    }
}

/* Runs the case in two pieces and returns how far it is off. */
static double error_of(const struct op_case *c, struct lab_tuning tuning,
                       struct cpu_scratch *scratch) {
    struct lab_launch launch = c->launch;
    float *out = lab_mem_alloc((size_t)c->count, sizeof *out);
    const struct cpu_kernel *kernel = cpu_kernel_get(launch.op, LAB_FP32);
    op_case_poison(out, c->count);
    for (int i = 0; i < c->op->inputs; i++)
        launch.in[i].data = c->in[i];
    launch.out.data = out;
    launch.tuning = tuning;
    int64_t units = kernel->units(&launch, 3), middle = units / 2;
    kernel->run(&launch, cpu_simd_select(), units, middle, units, scratch);
    kernel->run(&launch, cpu_simd_select(), units, 0, middle, scratch);
    double error = op_case_error(c, out);
    lab_mem_free(out);
    return error;
}

static int try_all(const struct op_case *c, struct cpu_scratch *scratch) {
    const struct lab_tunable *tunable = tunable_of(&c->launch);
    struct lab_tuning fallback;
    int tried = 0;
    tunable->fallback(NULL, &c->launch, &fallback);
    assert_int_equal(lab_tuning_check(tunable, NULL, &c->launch, &fallback, NULL), 0);
    for (int64_t i = 0; i < lab_tunable_size(tunable); i++) {
        struct lab_tuning tuning = lab_tunable_at(tunable, i);
        if (lab_tuning_check(tunable, NULL, &c->launch, &tuning, NULL))
            continue;
        double error = error_of(c, tuning, scratch);
        if (!(error <= op_case_tolerance(LAB_FP32, true)))
            fail_msg("%s, configuration %lld: relative error %g", c->name, (long long)i, error);
        tried++;
    }
    return tried;
}

LAB_TEST(every_configuration_computes_the_same) {
    struct cpu_scratch scratch = {0};
    for (int o = 0; o < OPS; o++) {
        struct op_case c;
        struct lab_err err = LAB_ERR_INIT;
        int tried = 0;
        LAB_AUTO(arena, arena);
        for (int i = 0; op_case_make(tunable_ops[o], i, LAB_FP32, &arena, &c, &err) == 0; i++)
            tried += try_all(&c, &scratch);
        assert_int_equal(err.code, LAB_ERR_NONE);
        assert_true(tried > 10);
    }
    free(scratch.memory);
}

/*
 * Whatever the examples are: each choice of each parameter is tried here, with lengths that no
 * block divides, and more than one block of the largest each way.
 */
static const struct lab_launch *large_launches(enum lab_op_id op, int *ret_count) {
    static struct lab_launch list[3];
    int count = 0;
    if (op == LAB_OP_FLASH_ATTENTION) {
        list[count] = attention_of(1031);
        list[count].in[1] = list[count].in[2] =
            lab_tensor(NULL, LAB_FP32, 4, (int64_t[]){1, 1031, 1, 64});
        list[count++].causal = true;
    } else if (op == LAB_OP_SOFTMAX) {
        struct lab_tensor tall = lab_tensor_matrix(NULL, LAB_FP32, 2051, 5);
        struct lab_tensor wide = lab_tensor_matrix(NULL, LAB_FP32, 3, 70001);
        list[count++] = (struct lab_launch){.op = op, .in = {tall}, .out = tall};
        list[count++] = (struct lab_launch){.op = op, .in = {wide}, .out = wide};
    } else {
        static const int64_t sizes[][3] = {{1027, 65, 33}, {17, 2051, 33}, {19, 67, 1031}};
        for (; count < 3; count++)
            list[count] = (struct lab_launch){
                .op = op,
                .in = {lab_tensor_matrix(NULL, LAB_FP32, sizes[count][0], sizes[count][2]),
                       lab_tensor_matrix(NULL, LAB_FP32, sizes[count][1], sizes[count][2])},
                .out = lab_tensor_matrix(NULL, LAB_FP32, sizes[count][0], sizes[count][1]),
                .transpose_b = true};
    }
    *ret_count = count;
    return list;
}

static void assert_all_are_tried(const struct lab_launch *launches, int count) {
    const struct lab_tunable *tunable = tunable_of(&launches[0]);
    for (int p = 0; p < tunable->count; p++)
        for (int c = 0; c < tunable->parameters[p].choice_count; c++) {
            bool legal = false;
            for (int l = 0; l < count; l++)
                for (int64_t i = 0; i < lab_tunable_size(tunable) && !legal; i++) {
                    struct lab_tuning tuning = lab_tunable_at(tunable, i);
                    legal = tuning.values[p] == tunable->parameters[p].choices[c] &&
                            !lab_tuning_check(tunable, NULL, &launches[l], &tuning, NULL);
                }
            if (!legal)
                fail_msg("%s: nothing is tried with %s=%d", tunable->kernel,
                         tunable->parameters[p].name, tunable->parameters[p].choices[c]);
        }
}

LAB_TEST(every_choice_does_several_blocks_of_odd_lengths) {
    static const enum lab_op_id ops[] = {LAB_OP_GEMM, LAB_OP_SOFTMAX, LAB_OP_FLASH_ATTENTION};
    struct cpu_scratch scratch = {0};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        int count;
        const struct lab_launch *launches = large_launches(ops[o], &count);
        assert_all_are_tried(launches, count);
        for (int l = 0; l < count; l++) {
            struct op_case c = {.op = lab_op_get(ops[o]), .launch = launches[l]};
            const double *in[LAB_LAUNCH_INPUTS] = {NULL};
            LAB_AUTO(arena, arena);
            for (int i = 0; i < c.op->inputs; i++)
                in[i] = op_case_fill(&arena, &c, i, 5);
            snprintf(c.name, sizeof c.name, "%s, large case %d", c.op->name, l);
            c.count = lab_tensor_count(&c.launch.out);
            c.expected = lab_arena_alloc(&arena, (size_t)c.count, sizeof *c.expected);
            c.op->reference(&c.launch, in, c.expected);
            assert_true(try_all(&c, &scratch) > 1);
        }
    }
    free(scratch.memory);
}

LAB_TEST(other_dtypes_and_ops_have_nothing_to_tune) {
    struct lab_launch launch = attention_of(64);
    launch.out.dtype = LAB_BF16;
    assert_null(tunable_of(&launch));
    launch = (struct lab_launch){.op = LAB_OP_ADD, .out = lab_tensor_vector(NULL, LAB_FP32, 3)};
    assert_null(tunable_of(&launch));
}
