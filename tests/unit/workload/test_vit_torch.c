/*
 * The reference against PyTorch: tests/fixtures/vit_torch.py, run where PyTorch is, leaves
 * vit_torch.json with the outputs of a few small models built from plain torch functions.
 */
#include "base/file/file.h"
#include "base/json.h"
#include "workload/vit/vit.h"

#include "test.h"
#include <math.h>
#include <unistd.h>

extern const struct lab_workload lab_workload_vit;

#define FIXTURE LAB_TEST_SOURCE_DIR "/tests/fixtures/vit_torch.json"

struct drawn {
    struct vit_shape shape;
    uint64_t seed;
};

static void draw(const void *state, int index, float *out) {
    const struct drawn *drawn = state;
    struct vit_parameter parameter = vit_parameter_at(&drawn->shape, index);
    vit_parameter_draw(&drawn->shape, drawn->seed, index, 0, vit_parameter_count(&parameter), out);
}

static int64_t integer(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    assert_non_null(value);
    assert_int_equal(value->type, LAB_VALUE_INT);
    return value->integer;
}

static double number(const struct lab_value *value) {
    return value->type == LAB_VALUE_INT ? (double)value->integer : value->number;
}

static struct vit_shape shape_of(const struct lab_value *keys, struct lab_arena *arena) {
    struct vit_config *config = lab_workload_config(&lab_workload_vit, arena);
    for (int i = 0; i < keys->count; i++)
        ASSERT_OK(lab_options_set_word(lab_workload_vit.options, config, arena,
                                       keys->items[i]->string, err));
    return vit_shape_of(config);
}

static void compare_case(const struct lab_value *item, struct lab_arena *arena) {
    struct drawn drawn = {shape_of(lab_value_get(item, "keys"), arena),
                          (uint64_t)integer(item, "seed")};
    const struct vit_shape *s = &drawn.shape;
    const struct lab_value *expected = lab_value_get(item, "output");
    uint64_t image_seed = (uint64_t)integer(item, "image_seed");
    float *images = lab_mem_alloc((size_t)s->input_elements, sizeof *images);
    double *out = lab_mem_alloc((size_t)s->output_elements, sizeof *out);
    lab_data_random(&image_seed, 0, s->input_elements, images);
    vit_reference(s, draw, &drawn, images, s->batch, out);
    assert_int_equal(expected->count, s->output_elements);
    double difference = 0, norm = 0;
    for (int i = 0; i < expected->count; i++) {
        double value = number(expected->items[i]);
        difference += (out[i] - value) * (out[i] - value);
        norm += value * value;
    }
    assert_true(norm > 0);
    if (!(sqrt(difference / norm) < 1e-12))
        fail_msg("relative error %g", sqrt(difference / norm));
    lab_mem_free(images);
    lab_mem_free(out);
}

LAB_TEST(the_reference_agrees_with_pytorch) {
    if (access(FIXTURE, R_OK)) {
        print_message("skipped: no tests/fixtures/vit_torch.json; vit_torch.py beside it writes it "
                      "where PyTorch is installed\n");
        skip();
    }
    struct lab_err err = LAB_ERR_INIT;
    struct lab_value *root = NULL;
    char *text = NULL;
    size_t length = 0;
    LAB_AUTO(arena, arena);
    if (lab_file_read(FIXTURE, 8 << 20, &arena, &text, &length, &err) ||
        lab_json_parse(text, length, FIXTURE, &arena, &root, &err))
        fail_msg("%s", err.text);
    const struct lab_value *cases = lab_value_get(root, "cases");
    assert_non_null(cases);
    assert_true(cases->count > 0);
    for (int i = 0; i < cases->count; i++)
        compare_case(cases->items[i], &arena);
}
