/* tokens.c: a language model's embedding: rows of a table by their numbers, with positions. */
#include "device/op/parts.h"

#include <math.h>

enum { TOKENS, TABLE, POSITION };    /* of forward */
enum { B_TOKENS, DERIVATIVE, BASE }; /* of backward */

/* Few tokens of many and many of few; rows of whole vectors and others. */
static const struct {
    int64_t rows, tokens, positions, columns;
} cases[] = {{1, 1, 1, 1},      {12, 5, 4, 7},   {96, 300, 32, 65},
             {512, 97, 64, 64}, {40, 3, 8, 768}, {3000, 1000, 1000, 24}};

/* The row of a table that a token names; -1 = it has none. */
static int64_t place_of(double token, int64_t count) {
    return token >= 0 && token < (double)count ? (int64_t)token : -1;
}

/* Whole numbers, of which one in three is the first token. */
static void draw_tokens(float *values, int64_t count, int64_t tokens) {
    for (int64_t i = 0; i < count; i++)
        values[i] = i % 3 ? floorf((values[i] + 1) / 2 * (float)tokens) : 0;
}

static int forward_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t positions = lab_tensor_rows(&launch->in[POSITION]);
    if (op_check_vector(&launch->in[TOKENS], "tokens", rows, err) ||
        op_check_matrix(&launch->in[TABLE], "the table", lab_tensor_rows(&launch->in[TABLE]),
                        columns, err) ||
        op_check_matrix(&launch->in[POSITION], "the positions", positions, columns, err))
        return -1;
    if (rows % positions)
        return lab_err_set(err, LAB_ERR_USER, "%lld tokens, must be a multiple of %lld positions",
                           (long long)rows, (long long)positions);
    return 0;
}

static void forward_reference(const struct lab_launch *launch, const double *const *in,
                              double *out) {
    int64_t columns = lab_tensor_columns(&launch->out);
    int64_t positions = lab_tensor_rows(&launch->in[POSITION]);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->out); r++) {
        int64_t token = place_of(in[TOKENS][r], lab_tensor_rows(&launch->in[TABLE]));
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] = token < 0 ? NAN
                                             : in[TABLE][token * columns + c] +
                                                   in[POSITION][r % positions * columns + c];
    }
}

static int forward_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    int64_t columns = cases[index].columns;
    launch->in[TOKENS] = lab_tensor_vector(NULL, LAB_FP32, cases[index].rows);
    launch->in[TABLE] = lab_tensor_matrix(NULL, dtype, cases[index].tokens, columns);
    launch->in[POSITION] = lab_tensor_matrix(NULL, dtype, cases[index].positions, columns);
    launch->out = lab_tensor_matrix(NULL, dtype, cases[index].rows, columns);
    return 0;
}

static void forward_domain(const struct lab_launch *launch, int input, float *values) {
    if (input == TOKENS)
        draw_tokens(values, lab_tensor_count(&launch->in[TOKENS]),
                    lab_tensor_rows(&launch->in[TABLE]));
}

/* Of the table only the rows that are looked up count. */
static struct lab_cost forward_cost(const struct lab_launch *launch) {
    double bytes = (double)lab_tensor_bytes(&launch->out);
    double table = (double)lab_tensor_bytes(&launch->in[TABLE]);
    struct lab_cost cost = op_cost(launch, (double)lab_tensor_count(&launch->out));
    cost.bytes_read += fmin(bytes, table) - table;
    return cost;
}

const struct lab_op lab_op_embed_tokens = {
    .name = "embed_tokens",
    .help = "rows of a table by number, and positions",
    .inputs = 3,
    .singles = 1u << TOKENS,
    .check = forward_check,
    .cost = forward_cost,
    .reference = forward_reference,
    .example = forward_example,
    .domain = forward_domain,
};

static int backward_check(const struct lab_launch *launch, struct lab_err *err) {
    int64_t rows = lab_tensor_rows(&launch->in[DERIVATIVE]);
    int64_t columns = lab_tensor_columns(&launch->out);
    return op_check_vector(&launch->in[B_TOKENS], "tokens", rows, err) ||
                   op_check_matrix(&launch->in[DERIVATIVE], "the derivative", rows, columns, err) ||
                   op_check_matrix(&launch->in[BASE], "the base", lab_tensor_rows(&launch->out),
                                   columns, err)
               ? -1
               : 0;
}

static void backward_reference(const struct lab_launch *launch, const double *const *in,
                               double *out) {
    int64_t columns = lab_tensor_columns(&launch->out), tokens = lab_tensor_rows(&launch->out);
    for (int64_t i = 0; i < tokens * columns; i++)
        out[i] = in[BASE][i];
    for (int64_t r = 0; r < lab_tensor_rows(&launch->in[DERIVATIVE]); r++) {
        int64_t token = place_of(in[B_TOKENS][r], tokens);
        for (int64_t c = 0; c < columns && token >= 0; c++)
            out[token * columns + c] += in[DERIVATIVE][r * columns + c];
    }
}

static int backward_example(int index, enum lab_dtype dtype, struct lab_launch *launch) {
    if (index >= (int)(sizeof cases / sizeof cases[0]))
        return -1;
    int64_t columns = cases[index].columns;
    launch->in[B_TOKENS] = lab_tensor_vector(NULL, LAB_FP32, cases[index].rows);
    launch->in[DERIVATIVE] = lab_tensor_matrix(NULL, dtype, cases[index].rows, columns);
    launch->in[BASE] = launch->out = lab_tensor_matrix(NULL, dtype, cases[index].tokens, columns);
    return 0;
}

/* And some that the table lacks, on either side. */
static void backward_domain(const struct lab_launch *launch, int input, float *values) {
    if (input == B_TOKENS)
        draw_tokens(values, lab_tensor_count(&launch->in[B_TOKENS]),
                    lab_tensor_rows(&launch->out) + 1);
    for (int64_t i = 2; input == B_TOKENS && i < lab_tensor_count(&launch->in[B_TOKENS]); i += 10)
        values[i] = -1;
}

/* Of the table only the rows that occur count, read and written. */
static struct lab_cost backward_cost(const struct lab_launch *launch) {
    double bytes = (double)lab_tensor_bytes(&launch->in[DERIVATIVE]);
    double table = (double)lab_tensor_bytes(&launch->out), touched = fmin(bytes, table);
    struct lab_cost cost = op_cost(launch, (double)lab_tensor_count(&launch->in[DERIVATIVE]));
    cost.bytes_read += touched - table;
    cost.bytes_written += touched - table;
    return cost;
}

const struct lab_op lab_op_embed_tokens_backward = {
    .name = "embed_tokens_backward",
    .help = "derivatives added to the rows of a table that they belong to",
    .inputs = 3,
    .singles = 1u << B_TOKENS,
    .over = 1u << BASE,
    .check = backward_check,
    .cost = backward_cost,
    .reference = backward_reference,
    .example = backward_example,
    .domain = backward_domain,
};
