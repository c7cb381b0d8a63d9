/*
 * data.c: what is learnt from, and from where. All of it is drawn by counter, so that every rank
 * and every later run has the same.
 */
#include "workload/mlp/mlp.h"

#include "base/random.h"

#include <math.h>

/* Streams of random numbers, apart from each other. */
enum { FEATURES, TARGETS, ORDERS, WEIGHTS };

/* --- samples --- */

/* Number `index` of a normal distribution (Box and Muller). */
static double normal(uint64_t seed, uint64_t index) {
    double radius = sqrt(-2 * log(1 - lab_random_uniform(seed, 2 * index)));
    return radius * cos(2 * M_PI * lab_random_uniform(seed, 2 * index + 1));
}

/* The published study's: 50 indicators, of which two follow the first. */
static void correlate(float *row, int64_t inputs) {
    if (inputs > 1)
        row[1] = 0.7f * row[0] + 0.3f * row[1];
    if (inputs > 2)
        row[2] = 0.5f * row[0] - 0.3f * row[1] + 0.4f * row[2];
}

static void draw_matrix(uint64_t seed, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)normal(seed, (uint64_t)i);
}

/* Fisher and Yates. */
static void draw_order(uint64_t seed, int64_t count, int32_t *order) {
    for (int64_t i = 0; i < count; i++)
        order[i] = (int32_t)i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)lab_random_below(seed, (uint64_t)i, (uint64_t)i + 1);
        int32_t keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
}

void mlp_data_draw(const struct mlp_shape *shape, uint64_t seed, struct mlp_data *ret_data) {
    size_t samples = (size_t)shape->samples;
    struct mlp_data data = {
        .x = lab_mem_alloc(samples * (size_t)shape->inputs, sizeof *data.x),
        .y = lab_mem_alloc(samples * (size_t)shape->outputs, sizeof *data.y),
        .order = lab_mem_alloc(samples * MLP_EPOCHS, sizeof *data.order),
    };
    draw_matrix(lab_random_bits(seed, FEATURES), shape->samples * shape->inputs, data.x);
    draw_matrix(lab_random_bits(seed, TARGETS), shape->samples * shape->outputs, data.y);
    for (int64_t i = 0; i < shape->samples; i++)
        correlate(data.x + i * shape->inputs, shape->inputs);
    for (int64_t epoch = 0; epoch < MLP_EPOCHS; epoch++)
        draw_order(lab_random_bits(lab_random_bits(seed, ORDERS), (uint64_t)epoch), shape->samples,
                   data.order + epoch * shape->samples);
    *ret_data = data;
}

void mlp_data_release(struct mlp_data *data) {
    lab_mem_free(data->x);
    lab_mem_free(data->y);
    lab_mem_free(data->order);
    *data = (struct mlp_data){0};
}

/* An epoch takes the samples in its order, as far as they fill whole batches. */
void mlp_rows_source(const void *state, int64_t first, int64_t count, float *out) {
    const struct mlp_rows *rows = state;
    const struct mlp_shape *shape = rows->shape;
    int64_t width = rows->targets ? shape->outputs : shape->inputs;
    const float *from = rows->targets ? rows->data->y : rows->data->x;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = (first + i) / width, column = (first + i) % width;
        int64_t epoch = row / shape->epoch_rows, place = row % shape->epoch_rows;
        int64_t sample = rows->data->order[epoch * shape->samples + place];
        out[i] = from[sample * width + column];
    }
}

/* --- parameters --- */

static int layer_of(const struct lab_mlp *mlp, int64_t parameter) {
    int layer = 0;
    while (parameter >= lab_mlp_weight_at(mlp, layer + 1))
        layer++;
    return layer;
}

void mlp_initial_source(const void *state, int64_t first, int64_t count, float *out) {
    const struct mlp_initial *initial = state;
    const struct lab_mlp *mlp = initial->mlp;
    int64_t parameters = lab_mlp_parameters(mlp);
    uint64_t seed = lab_random_bits(initial->seed, WEIGHTS);
    memset(out, 0, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < count && first + i < parameters;) {
        int layer = layer_of(mlp, first + i);
        int64_t weights_end = lab_mlp_bias_at(mlp, layer);
        double limit = sqrt(6.0 / ((double)mlp->widths[layer] + (double)mlp->widths[layer + 1]));
        for (; i < count && first + i < weights_end; i++)
            out[i] = (float)limit * lab_random_symmetric(seed, (uint64_t)(first + i));
        int64_t next = lab_mlp_weight_at(mlp, layer + 1) - first; /* biases stay 0 */
        i = next < count ? next : count;
    }
}
