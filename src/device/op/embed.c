/* embed.c: a class token before the patches of each image, and everyone's position added. */
#include "device/op/parts.h"

/* x is [images·patches, d], `position` [patches + 1, d] */
static int check_shapes(const struct lab_launch *launch, const struct lab_tensor *class,
                        const struct lab_tensor *position, struct lab_err *err) {
    int64_t columns = lab_tensor_columns(&launch->in[0]);
    int64_t tokens = lab_tensor_rows(position);
    if (op_check_vector(class, "class", columns, err) < 0)
        return -1;
    if (op_check_matrix(position, "position", tokens, columns, err) < 0)
        return -1;
    int64_t rows = lab_tensor_rows(&launch->in[0]);
    if (tokens < 2 || rows % (tokens - 1))
        return lab_err_set(err, LAB_ERR_USER,
                           "x has %lld rows, must have a multiple of %lld: one for each position "
                           "but the class token's",
                           (long long)rows, (long long)(tokens - 1));
    return op_check_matrix(&launch->out, "the output", rows / (tokens - 1) * tokens, columns, err);
}

static int embed_check(const struct lab_launch *launch, struct lab_err *err) {
    return check_shapes(launch, &launch->in[1], &launch->in[2], err);
}

/* Where a row of the output comes from; NULL = it is a class token. */
static const double *patch_row(const struct lab_launch *launch, const double *x, int64_t row,
                               int64_t tokens) {
    int64_t image = row / tokens, token = row % tokens;
    if (!token)
        return NULL;
    return x + (image * (tokens - 1) + token - 1) * lab_tensor_columns(&launch->out);
}

static int64_t tokens_of(const struct lab_launch *launch) {
    int64_t rows = lab_tensor_rows(&launch->out);
    return rows / (rows - lab_tensor_rows(&launch->in[0])); /* a class token for each image */
}

static void embed_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    int64_t columns = lab_tensor_columns(&launch->out), tokens = tokens_of(launch);
    for (int64_t row = 0; row < lab_tensor_rows(&launch->out); row++) {
        const double *from = patch_row(launch, in[0], row, tokens);
        for (int64_t c = 0; c < columns; c++)
            out[row * columns + c] =
                (from ? from[c] : in[1][c]) + in[2][row % tokens * columns + c];
    }
}

static const struct {
    int64_t images, patches, columns;
} cases[] = {{1, 1, 1},     {3, 4, 7},    {2, 49, 63},   {5, 7, 65},  {2, 196, 197},
             {10, 49, 512}, {2, 3, 2048}, {1, 2, 20000}, {11, 54, 64}};

static int embed_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    int64_t images = cases[index].images, patches = cases[index].patches;
    int64_t columns = cases[index].columns;
    *launch = (struct lab_launch){
        .op = launch->op,
        .in = {lab_tensor_matrix(NULL, dtype, images * patches, columns),
               lab_tensor_vector(NULL, dtype, columns),
               lab_tensor_matrix(NULL, dtype, patches + 1, columns)},
        .out = lab_tensor_matrix(NULL, dtype, images * (patches + 1), columns),
    };
    return 0;
}

const struct lab_op lab_op_embed = {
    .name = "embed",
    .help = "class token and positions",
    .inputs = 3,
    .check = embed_check,
    .flops = 1,
    .reference = embed_reference,
    .example = embed_example,
};

static int norm_check(const struct lab_launch *launch, struct lab_err *err) {
    if (op_check_layer_norm(launch, lab_tensor_columns(&launch->in[0]), err) < 0)
        return -1;
    return check_shapes(launch, &launch->in[3], &launch->in[4], err);
}

static struct lab_cost norm_cost(const struct lab_launch *launch) {
    return op_cost(launch, 8.0 * (double)lab_tensor_count(&launch->in[0]) +
                               (double)lab_tensor_count(&launch->out));
}

static void norm_reference(const struct lab_launch *launch, const double *const *in, double *out) {
    int64_t columns = lab_tensor_columns(&launch->out), tokens = tokens_of(launch);
    for (int64_t row = 0; row < lab_tensor_rows(&launch->out); row++) {
        const double *from = patch_row(launch, in[0], row, tokens);
        double *to = out + row * columns;
        if (from)
            op_layer_norm_row(from, in[1], in[2], launch->epsilon, columns, to);
        for (int64_t c = 0; c < columns; c++)
            to[c] = (from ? to[c] : in[3][c]) + in[4][row % tokens * columns + c];
    }
}

static int norm_lower(const struct lab_launch *launch, struct lab_launch parts[LAB_OP_PARTS]) {
    parts[0] = op_part(launch, LAB_OP_LAYER_NORM);
    parts[0].out = launch->in[0];
    parts[1] = op_part(launch, LAB_OP_EMBED);
    parts[1].in[1] = launch->in[3];
    parts[1].in[2] = launch->in[4];
    return 2;
}

static int norm_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (embed_example(index, dtype, launch) < 0)
        return -1;
    launch->epsilon = 1e-5f;
    launch->in[4] = launch->in[2];
    launch->in[3] = launch->in[1];
    launch->in[2] = launch->in[1];
    return 0;
}

const struct lab_op lab_op_layer_norm_embed = {
    .name = "layer_norm_embed",
    .help = "normalised patches, class token and positions",
    .inputs = 5,
    .check = norm_check,
    .cost = norm_cost,
    .reference = norm_reference,
    .lower = norm_lower,
    .example = norm_example,
};
