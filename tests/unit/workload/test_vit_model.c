/*
 * The vision transformer without a device: its sizes, its reference against cases that can be
 * worked out by hand, and its launches against the reference, each launch carried out in double
 * precision by the op's own definition.
 */
#include "workload/vit/vit.h"

#include "test.h"
#include <math.h>

extern const struct lab_workload lab_workload_vit;

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The defaults with some keys changed, checked. The config lives in the arena. */
static struct vit_config *configure(struct lab_arena *arena, const char *const *words) {
    struct vit_config *config = lab_workload_config(&lab_workload_vit, arena);
    for (; *words; words++)
        ASSERT_OK(lab_options_set_word(lab_workload_vit.options, config, arena, *words, err));
    ASSERT_OK(lab_workload_vit.check(config, err));
    return config;
}

static struct vit_shape shape_of(const char *const *words) {
    LAB_AUTO(arena, arena);
    struct vit_shape shape = vit_shape_of(configure(&arena, words));
    return shape;
}

/* --- sizes --- */

LAB_TEST(bytes_of_an_image_are_those_of_the_published_models) {
    const struct {
        const char *patch, *depth, *heads, *dim;
        double output_kib;
    } models[] = {{"patch_size=32", "depth=2", "heads=4", "dim=128", 25},
                  {"patch_size=32", "depth=6", "heads=8", "dim=512", 100},
                  {"patch_size=16", "depth=8", "heads=12", "dim=768", 591},
                  {"patch_size=16", "depth=12", "heads=16", "dim=1024", 788}};
    for (size_t i = 0; i < 4; i++) {
        struct vit_shape s = shape_of(WORDS(models[i].patch, models[i].depth, models[i].heads,
                                            models[i].dim, "batch_size=1"));
        assert_true((double)s.input_bytes == 588 * 1024.0);
        assert_true((double)s.output_bytes == models[i].output_kib * 1024);
    }
}

LAB_TEST(cost_tells_what_is_moved) {
    struct lab_workload_cost cost;
    LAB_AUTO(arena, arena);
    lab_workload_vit.cost(configure(&arena, WORDS("d2h=output")), &cost);
    assert_true(cost.h2d_bytes == 10 * 588 * 1024.0);
    assert_true(cost.d2h_bytes == 10 * 100 * 1024.0);
    assert_true(cost.samples == 10);
    lab_workload_vit.cost(configure(&arena, WORDS("d2h=input")), &cost);
    assert_true(cost.d2h_bytes == 10 * 588 * 1024.0);
    lab_workload_vit.cost(configure(&arena, WORDS("depth=0")), &cost);
    assert_true(cost.d2h_bytes == 10 * 588 * 1024.0);
    assert_true(cost.compute.flops == 0);
}

LAB_TEST(flops_follow_the_formula) {
    /* products alone: 2·(patches·3072·512 + 6·(50·512·(3·512 + 512 + 2·2048) + 2·8·50²·64)) an
     * image; norms, GELU and softmax add some percent */
    struct lab_workload_cost plain, compiled;
    LAB_AUTO(arena, arena);
    lab_workload_vit.cost(configure(&arena, WORDS("compile_model=false")), &plain);
    lab_workload_vit.cost(configure(&arena, WORDS("compile_model=true")), &compiled);
    double products =
        10 * 2 *
        (49 * 3072.0 * 512 + 6 * (50 * 512.0 * (3 * 512 + 512 + 2 * 2048) + 2 * 8 * 2500 * 64.0));
    assert_true(plain.compute.flops > products);
    assert_true(plain.compute.flops < 1.05 * products);
    assert_true(fabs(compiled.compute.flops / plain.compute.flops - 1) < 1e-3);
    /* fusing saves traffic, never arithmetic */
    assert_true(compiled.compute.bytes_written < plain.compute.bytes_written);
}

LAB_TEST(parameters_are_counted) {
    /* vit32x6x512: patch 2·3072 + 3072·512 + 512 + 2·512, class and positions 512 + 50·512, a block
     * 2·512 + 3·512·512 + 512·512 + 512 + 2·512 + 2·512·2048 + 2048 + 512, final 2·512 */
    struct vit_shape s = shape_of(WORDS("depth=6"));
    int64_t block = 4 * 512 + 4 * 512 * 512 + 512 + 2 * 512 * 2048 + 2048 + 512;
    int64_t expected = 2 * 3072 + 3072 * 512 + 512 + 2 * 512 + 512 + 50 * 512 + 6 * block + 2 * 512;
    assert_int_equal(vit_model_parameters(&s), expected);
    /* without a projection its weight and bias are missing */
    struct vit_shape one = shape_of(WORDS("depth=1", "heads=1", "dim=64"));
    struct vit_shape two = shape_of(WORDS("depth=1", "heads=2", "dim=64"));
    assert_false(one.project);
    assert_true(two.project);
    assert_int_equal(vit_model_parameters(&two) - vit_model_parameters(&one),
                     3 * 64 * 64 + 64 * 128 + 64);
}

LAB_TEST(images_round_up_to_whole_patches) {
    struct vit_shape s = shape_of(WORDS("patch_size=16", "tensor_shape=[1,17,40]"));
    assert_int_equal(s.height, 32);
    assert_int_equal(s.width, 48);
    assert_int_equal(s.patches, 6);
    assert_int_equal(s.tokens, 7);
    assert_int_equal(s.patch_dim, 256);
}

LAB_TEST(labels_are_derived) {
    LAB_AUTO(arena, arena);
    LAB_AUTO(str, out);
    lab_workload_vit.label(configure(&arena, WORDS("patch_size=16", "depth=12", "dim=1024")), &out);
    assert_string_equal(out.text, "vit16x12x1024");
    lab_str_clear(&out);
    lab_workload_vit.label(configure(&arena, WORDS("depth=0", "dim=768")), &out);
    assert_string_equal(out.text, "vit0x0x0");
}

static void expect_refusal(const char *const *words, const char *part) {
    struct lab_err err = LAB_ERR_INIT;
    LAB_AUTO(arena, arena);
    struct vit_config *config = lab_workload_config(&lab_workload_vit, &arena);
    int failed = 0;
    for (; *words && !failed; words++)
        failed = lab_options_set_word(lab_workload_vit.options, config, &arena, *words, &err);
    assert_int_equal(failed ? failed : lab_workload_vit.check(config, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, part);
}

LAB_TEST(bad_configurations_are_refused) {
    expect_refusal(WORDS("tensor_shape=[224,224]"), "[channels,height,width]");
    expect_refusal(WORDS("tensor_shape=[3,224,224,1]"), "has 4 numbers");
    expect_refusal(WORDS("memory_size_mb=11"), "two batches of 10 images, which takes 12");
    expect_refusal(WORDS("tensor_shape=[3,65536,65536]", "patch_size=1", "batch_size=65536"),
                   "TiB");
    expect_refusal(WORDS("depth=-1"), "depth");
    expect_refusal(WORDS("heads=0"), "heads");
}

/* --- drawing --- */

LAB_TEST(weights_are_scaled_as_in_pytorch) {
    struct vit_shape s = shape_of(WORDS("depth=1", "dim=64", "heads=2"));
    float values[4096];
    int up = vit_block_parameter(0, VIT_MLP_UP);
    vit_parameter_draw(&s, 7, up, 0, 4096, values);
    float largest = 0, smallest = 0;
    for (int i = 0; i < 4096; i++) {
        largest = fmaxf(largest, values[i]);
        smallest = fminf(smallest, values[i]);
    }
    assert_true(largest <= 0.125f && largest > 0.12f); /* 1/√64 */
    assert_true(smallest >= -0.125f && smallest < -0.12f);
    vit_parameter_draw(&s, 7, vit_block_parameter(0, VIT_MLP_NORM), 0, 64, values);
    for (int i = 0; i < 64; i++)
        assert_true(fabsf(values[i] - 1) <= 0.125f && values[i] != 1);
}

LAB_TEST(any_part_of_a_parameter_can_be_drawn) {
    struct vit_shape s = shape_of(WORDS("depth=1"));
    float whole[300], part[100];
    vit_parameter_draw(&s, 42, VIT_PATCH, 0, 300, whole);
    vit_parameter_draw(&s, 42, VIT_PATCH, 150, 100, part);
    assert_memory_equal(part, whole + 150, sizeof part);
    vit_parameter_draw(&s, 43, VIT_PATCH, 150, 100, part);
    assert_memory_not_equal(part, whole + 150, sizeof part);
}

/* --- the reference, by hand --- */

/* Weights by hand: all zero but gammas, which are one; then what the case sets. */
struct by_hand {
    struct vit_shape shape;
    float *values[64];
};

static void by_hand_init(struct by_hand *hand, const char *const *words) {
    hand->shape = shape_of(words);
    assert_true(vit_parameter_number(&hand->shape) <= 64);
    for (int i = 0; i < vit_parameter_number(&hand->shape); i++) {
        struct vit_parameter parameter = vit_parameter_at(&hand->shape, i);
        int64_t count = vit_parameter_count(&parameter);
        hand->values[i] = lab_mem_alloc((size_t)count, sizeof(float));
        for (int64_t k = 0; k < count; k++)
            hand->values[i][k] = parameter.kind == VIT_GAMMA ? 1 : 0;
    }
}

static void by_hand_release(struct by_hand *hand) {
    for (int i = 0; i < vit_parameter_number(&hand->shape); i++)
        lab_mem_free(hand->values[i]);
}

static void by_hand_source(const void *state, int index, float *out) {
    const struct by_hand *hand = state;
    struct vit_parameter parameter = vit_parameter_at(&hand->shape, index);
    memcpy(out, hand->values[index], (size_t)vit_parameter_count(&parameter) * sizeof *out);
}

#define assert_close(value, expected) assert_near(value, expected, 1e-12)

/* A layer norm's result for ±a: sign·a/√(a² + ε) */
static double norm_of_pair(double a) {
    return a / sqrt(a * a + 1e-5);
}

LAB_TEST(without_blocks_tokens_are_embedded_and_normed) {
    /* one patch of one pixel: its norm is beta (0.5) whatever the image, its embedding
     * (2·0.5 + 1, −2·0.5 − 1) = (2, −2), normed to ±a; the class token is (3, 5) */
    struct by_hand hand;
    by_hand_init(&hand, WORDS("patch_size=1", "tensor_shape=[1,1,1]", "dim=2", "depth=0"));
    hand.values[VIT_PATCH_NORM + 1][0] = 0.5f;
    memcpy(hand.values[VIT_PATCH], (float[]){2, -2}, 8);
    memcpy(hand.values[VIT_PATCH + 1], (float[]){1, -1}, 8);
    memcpy(hand.values[VIT_CLASS], (float[]){3, 5}, 8);
    int final = vit_final_norm(&hand.shape);
    memcpy(hand.values[final], (float[]){2, 1}, 8);
    memcpy(hand.values[final + 1], (float[]){0, 10}, 8);
    double out[4];
    vit_reference(&hand.shape, by_hand_source, &hand, (float[]){0.25f}, 1, out);
    double a = norm_of_pair(2);
    assert_close(out[0], 2 * -norm_of_pair(1));
    assert_close(out[1], norm_of_pair(1) + 10);
    assert_close(out[2], 2 * norm_of_pair(a));
    assert_close(out[3], -norm_of_pair(a) + 10);
    by_hand_release(&hand);
}

LAB_TEST(positions_are_added_to_every_token) {
    /* embedded patches are zero but for beta (1, −1): token t = beta + position t */
    struct by_hand hand;
    by_hand_init(&hand, WORDS("patch_size=1", "tensor_shape=[1,1,2]", "dim=2", "depth=0"));
    memcpy(hand.values[VIT_EMBED_NORM + 1], (float[]){1, -1}, 8);
    memcpy(hand.values[VIT_POSITION], (float[]){4, -4, 2, -2, -3, 3}, 24);
    double out[6];
    vit_reference(&hand.shape, by_hand_source, &hand, (float[]){1, 2}, 1, out);
    assert_close(out[0], norm_of_pair(4));
    assert_close(out[2], norm_of_pair(3));
    assert_close(out[4], norm_of_pair(-2));
    by_hand_release(&hand);
}

LAB_TEST(pixels_go_row_by_row_with_channels_fastest) {
    /* a 2×2 patch of two channels; norm of 1 … 8 in patch order is (x − 4.5)/√(5.25 + ε), and the
     * weight picks elements 1 and 2: pixel (0,0) of channel 1, pixel (0,1) of channel 0 */
    struct by_hand hand;
    by_hand_init(&hand, WORDS("patch_size=2", "tensor_shape=[2,2,2]", "dim=2", "depth=0"));
    hand.values[VIT_PATCH][1] = 1;
    hand.values[VIT_PATCH][8 + 2] = 1;
    for (int i = 0; i < 2; i++)
        hand.values[VIT_EMBED_NORM][i] = 1;
    const float image[] = {1, 3, 5, 7, /* channel 0 */ 2, 4, 6, 8 /* channel 1 */};
    double out[4];
    vit_reference(&hand.shape, by_hand_source, &hand, image, 1, out);
    /* elements 2 and 3: half their difference, normed twice */
    double half = 0.5 / sqrt(5.25 + 1e-5);
    assert_close(out[2], -norm_of_pair(norm_of_pair(half)));
    assert_close(out[3], norm_of_pair(norm_of_pair(half)));
    by_hand_release(&hand);
}

LAB_TEST(even_attention_adds_the_mean_of_all_tokens) {
    /* one head, no projection; q = k = 0 makes all weights equal, v is the identity: a token
     * becomes x + mean of all normed tokens. Even dims hold +a_t, odd −a_t */
    struct by_hand hand;
    by_hand_init(&hand,
                 WORDS("patch_size=1", "tensor_shape=[1,1,2]", "dim=64", "heads=1", "depth=1"));
    const double a[3] = {1, -2, 0.5};
    for (int token = 0; token < 3; token++)
        for (int i = 0; i < 64; i++)
            hand.values[VIT_POSITION][token * 64 + i] = (float)(i % 2 ? -a[token] : a[token]);
    float *qkv = hand.values[vit_block_parameter(0, VIT_QKV)];
    for (int i = 0; i < 64; i++)
        qkv[(128 + i) * 64 + i] = 1;
    double out[3 * 64], mean = 0;
    vit_reference(&hand.shape, by_hand_source, &hand, (float[]){0, 0}, 1, out);
    for (int token = 0; token < 3; token++)
        mean += norm_of_pair(a[token]) / 3;
    for (int token = 0; token < 3; token++) {
        assert_close(out[token * 64], norm_of_pair(a[token] + mean));
        assert_close(out[token * 64 + 63], -norm_of_pair(a[token] + mean));
    }
    by_hand_release(&hand);
}

LAB_TEST(attention_is_scaled_by_the_head_width) {
    /* q and k see one element each: scores are n_i·n_j/8 with normed tokens ±1 (nearly) */
    struct by_hand hand;
    by_hand_init(&hand,
                 WORDS("patch_size=1", "tensor_shape=[1,1,1]", "dim=64", "heads=1", "depth=1"));
    for (int i = 0; i < 64; i++) {
        hand.values[VIT_POSITION][i] = i % 2 ? -1 : 1;
        hand.values[VIT_POSITION][64 + i] = i % 2 ? 1 : -1;
    }
    float *qkv = hand.values[vit_block_parameter(0, VIT_QKV)];
    qkv[0] = 1;       /* q₀ = n₀ */
    qkv[64 * 64] = 1; /* k₀ = n₀ */
    for (int i = 0; i < 64; i++)
        qkv[(128 + i) * 64 + i] = 1;
    double out[128];
    vit_reference(&hand.shape, by_hand_source, &hand, (float[]){0}, 1, out);
    double n = norm_of_pair(1);
    double mixed = n * tanh(n * n / 8); /* (eˢ − e⁻ˢ)/(eˢ + e⁻ˢ), s = n²/√64 */
    assert_close(out[0], norm_of_pair(1 + mixed));
    assert_close(out[64], -norm_of_pair(1 + mixed));
    by_hand_release(&hand);
}

LAB_TEST(the_mlp_adds_its_gelu) {
    /* up is its bias alone, down the identity plus a bias: x + gelu(u) + b */
    struct by_hand hand;
    by_hand_init(&hand, WORDS("patch_size=1", "tensor_shape=[1,1,1]", "dim=2", "heads=1",
                              "mlp_dim=2", "depth=1"));
    memcpy(hand.values[VIT_CLASS], (float[]){1, -1}, 8);
    memcpy(hand.values[vit_block_parameter(0, VIT_OUT) + 1], (float[]){0.5f, -0.5f}, 8);
    memcpy(hand.values[vit_block_parameter(0, VIT_MLP_UP) + 1], (float[]){1, -1}, 8);
    memcpy(hand.values[vit_block_parameter(0, VIT_MLP_DOWN)], (float[]){1, 0, 0, 1}, 16);
    memcpy(hand.values[vit_block_parameter(0, VIT_MLP_DOWN) + 1], (float[]){0.25f, 0}, 8);
    double out[4];
    vit_reference(&hand.shape, by_hand_source, &hand, (float[]){0}, 1, out);
    /* Φ(1) = 0.841344746068543 */
    double first = 1.5 + 0.841344746068543 + 0.25, second = -1.5 - (1 - 0.841344746068543);
    assert_close(out[0], norm_of_pair((first - second) / 2));
    assert_close(out[1], -norm_of_pair((first - second) / 2));
    by_hand_release(&hand);
}

/* --- the launches, each by its op's definition --- */

struct interpreter {
    int launches;
    int fused;
    int skip; /* this launch isn't carried out; -1 = none */
};

static int interpret(void *state, const struct lab_launch *launch, struct lab_err *err) {
    struct interpreter *interpreter = state;
    struct lab_launch complete = *launch;
    if (lab_launch_complete(&complete, err))
        return -1;
    const struct lab_op *op = lab_op_get(launch->op);
    interpreter->fused += op->lower != NULL;
    if (interpreter->launches++ == interpreter->skip)
        return 0;
    double *in[LAB_LAUNCH_INPUTS] = {NULL};
    for (int i = 0; i < op->inputs; i++) {
        int64_t count = lab_tensor_count(&launch->in[i]);
        in[i] = lab_mem_alloc((size_t)count, sizeof(double));
        for (int64_t k = 0; k < count; k++)
            in[i][k] = (double)((const float *)launch->in[i].data)[k];
    }
    int64_t count = lab_tensor_count(&launch->out);
    double *out = lab_mem_alloc((size_t)count, sizeof(double));
    op->reference(&complete, (const double *const *)in, out);
    for (int64_t k = 0; k < count; k++)
        ((float *)launch->out.data)[k] = (float)out[k];
    for (int i = 0; i < op->inputs; i++)
        lab_mem_free(in[i]);
    lab_mem_free(out);
    return 0;
}

struct drawn {
    const struct vit_shape *shape;
    uint64_t seed;
};

static void drawn_source(const void *state, int index, float *out) {
    const struct drawn *drawn = state;
    struct vit_parameter parameter = vit_parameter_at(drawn->shape, index);
    vit_parameter_draw(drawn->shape, drawn->seed, index, 0, vit_parameter_count(&parameter), out);
}

/* Runs the launches on the host, poisoned first, and compares with the reference. */
static struct lab_verification interpret_model(const struct vit_shape *shape, bool fused,
                                               struct interpreter *interpreter) {
    struct vit_model model;
    struct lab_verification ret;
    const uint64_t seed = 5;
    vit_model_plan(shape, fused, &model);
    char *weights = lab_mem_alloc(model.weights_bytes, 1);
    float *activations = lab_mem_alloc(model.activations_bytes, 1);
    float *images = lab_mem_alloc((size_t)shape->input_elements, sizeof *images);
    float *out = lab_mem_alloc((size_t)shape->output_elements, sizeof *out);
    double *reference = lab_mem_alloc((size_t)shape->output_elements, sizeof *reference);
    struct drawn drawn = {shape, seed};
    for (int i = 0; i < vit_parameter_number(shape); i++)
        drawn_source(&drawn, i, (float *)(void *)(weights + model.weight_offsets[i]));
    for (size_t i = 0; i < model.activations_bytes / sizeof(float); i++)
        activations[i] = LAB_POISON;
    lab_data_random(&(uint64_t){99}, 0, shape->input_elements, images);
    lab_data_constant(&(float){LAB_POISON}, 0, shape->output_elements, out);
    model.weights.data = weights;
    model.activations.data = activations;
    ASSERT_OK(vit_model_forward(&model, images, out, interpret, interpreter, err));
    vit_reference(shape, drawn_source, &drawn, images, shape->batch, reference);
    lab_verify_compare(out, reference, shape->output_elements, LAB_POISON, 2e-6, &ret);
    lab_mem_free(weights);
    lab_mem_free(activations);
    lab_mem_free(images);
    lab_mem_free(out);
    lab_mem_free(reference);
    lab_mem_free(model.weight_offsets);
    return ret;
}

static const char *const small[] = {
    "patch_size=4", "tensor_shape=[3,8,12]", "dim=24",           "heads=2", "mlp_dim=40",
    "depth=2",      "batch_size=2",          "memory_size_mb=1", NULL};
static const char *const unprojected[] = {
    "patch_size=2", "tensor_shape=[1,4,2]", "dim=64", "heads=1", "depth=1", "batch_size=3", NULL};
static const char *const narrow[] = {
    "patch_size=2", "tensor_shape=[1,2,2]", "dim=1", "heads=1", "mlp_dim=1",
    "depth=1",      "batch_size=1",         NULL};

LAB_TEST(launches_compute_the_reference) {
    const char *const *const cases[] = {small, unprojected, narrow};
    for (size_t i = 0; i < 3; i++) {
        int fused_launches[2];
        for (int fused = 0; fused < 2; fused++) {
            struct vit_shape shape = shape_of(cases[i]);
            struct interpreter interpreter = {.skip = -1};
            struct lab_verification v = interpret_model(&shape, fused, &interpreter);
            if (!v.passed)
                fail_msg("case %zu, fused %d: %s", i, fused, v.text);
            fused_launches[fused] = interpreter.fused;
        }
        assert_true(fused_launches[1] > fused_launches[0]);
    }
}

LAB_TEST(every_launch_matters) {
    for (int fused = 0; fused < 2; fused++) {
        struct vit_shape shape = shape_of(small);
        struct interpreter all = {.skip = -1};
        interpret_model(&shape, fused, &all);
        for (int skip = 0; skip < all.launches; skip++) {
            struct interpreter one = {.skip = skip};
            if (interpret_model(&shape, fused, &one).passed)
                fail_msg("launch %d of %d changes nothing", skip, all.launches);
        }
    }
}
