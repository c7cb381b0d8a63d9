/* patchify.c: an image as a sequence of its square patches, alone and normalised. */
#include "device/op/parts.h"

struct shape {
    int64_t images, channels, height, width, patch, down, across; /* patches down and across */
};

static struct shape shape_of(const struct lab_launch *launch) {
    const int64_t *image = launch->in[0].shape;
    struct shape s = {.images = image[0],
                      .channels = image[1],
                      .height = image[2],
                      .width = image[3],
                      .patch = launch->patch};
    s.down = s.height / s.patch;
    s.across = s.width / s.patch;
    return s;
}

static int patchify_check(const struct lab_launch *launch, struct lab_err *err) {
    if (launch->in[0].rank != 4)
        return lab_err_set(err, LAB_ERR_USER,
                           "image has %d dimensions, must have 4: images, channels, height, width",
                           launch->in[0].rank);
    if (launch->patch < 1)
        return lab_err_set(err, LAB_ERR_USER, "patch is %lld, must be at least 1",
                           (long long)launch->patch);
    struct shape s = shape_of(launch);
    if (s.height % s.patch || s.width % s.patch)
        return lab_err_set(
            err, LAB_ERR_USER, "an image of %lld x %lld can't be cut into patches of %lld x %lld",
            (long long)s.height, (long long)s.width, (long long)s.patch, (long long)s.patch);
    return op_check_matrix(&launch->out, "the output", s.images * s.down * s.across,
                           s.patch * s.patch * s.channels, err);
}

static void patchify(const struct lab_launch *launch, const double *image, double *out) {
    struct shape s = shape_of(launch);
    for (int64_t b = 0; b < s.images; b++)
        for (int64_t y = 0; y < s.down * s.patch; y++)
            for (int64_t x = 0; x < s.across * s.patch; x++)
                for (int64_t channel = 0; channel < s.channels; channel++) {
                    int64_t row = (b * s.down + y / s.patch) * s.across + x / s.patch;
                    int64_t column = ((y % s.patch) * s.patch + x % s.patch) * s.channels + channel;
                    out[row * s.patch * s.patch * s.channels + column] =
                        image[((b * s.channels + channel) * s.height + y) * s.width + x];
                }
}

static void patchify_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    patchify(launch, in[0], out);
}

static const struct {
    int64_t image[4], patch;
} cases[] = {
    {{1, 1, 1, 1}, 1},      {{2, 3, 14, 21}, 7},     {{1, 5, 6, 4}, 2},
    {{3, 1, 9, 9}, 3},      {{1, 2, 65, 65}, 65},    {{2, 3, 64, 96}, 32},
    {{2, 3, 224, 224}, 16}, {{1, 3, 128, 256}, 128}, {{1, 3, 75, 75}, 3},
};

static int patchify_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    *launch = (struct lab_launch){
        .op = launch->op,
        .in = {lab_tensor(NULL, dtype, 4, cases[index].image)},
        .patch = cases[index].patch,
    };
    struct shape s = shape_of(launch);
    launch->out = lab_tensor_matrix(NULL, dtype, s.images * s.down * s.across,
                                    s.patch * s.patch * s.channels);
    return 0;
}

const struct lab_op lab_op_patchify = {
    .name = "patchify",
    .help = "images into rows of patches",
    .inputs = 1,
    .check = patchify_check,
    .reference = patchify_reference,
    .example = patchify_example,
};

static int norm_check(const struct lab_launch *launch, struct lab_err *err) {
    if (patchify_check(launch, err) < 0)
        return -1;
    return op_check_layer_norm(launch, lab_tensor_columns(&launch->out), err);
}

static void norm_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    patchify(launch, in[0], out);
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++)
        op_layer_norm_row(out + r * columns, in[1], in[2], launch->epsilon, columns,
                          out + r * columns);
}

static int norm_lower(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_PATCHIFY);
    parts[1] = op_part(launch, LAB_OP_LAYER_NORM);
    parts[1].in[0] = launch->out;
    return 2;
}

static int norm_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (patchify_example(index, dtype, launch) < 0)
        return -1;
    launch->epsilon = 1e-5f;
    for (int i = 1; i < 3; i++)
        launch->in[i] = lab_tensor_vector(NULL, dtype, lab_tensor_columns(&launch->out));
    return 0;
}

const struct lab_op lab_op_patchify_layer_norm = {
    .name = "patchify_layer_norm",
    .help = "images into normalised rows of patches",
    .inputs = 3,
    .check = norm_check,
    .flops = 8,
    .reference = norm_reference,
    .lower = norm_lower,
    .example = norm_example,
};
