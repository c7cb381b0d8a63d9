/* mlp.c: sizes and places of what a training step works on, and which outputs it drops. */
#include "device/mlp.h"

#include "base/philox.h"

#include <math.h>

#define STRIDE_STEP 32 /* values: 128 bytes, what a warp of a GPU reads at once */

static int64_t round_up(int64_t count) {
    return (count + STRIDE_STEP - 1) / STRIDE_STEP * STRIDE_STEP;
}

/* --- what fits together --- */

static int check_widths(const struct lab_mlp *mlp, struct lab_err *err) {
    if (mlp->width_count < 2 || mlp->width_count > LAB_MLP_WIDTHS)
        return lab_err_set(err, LAB_ERR_USER,
                           "there are %d widths, must be 2 to %d: those of the input, of hidden "
                           "layers, of the output",
                           (int)mlp->width_count, LAB_MLP_WIDTHS);
    for (int i = 0; i < mlp->width_count; i++)
        if (mlp->widths[i] < 1)
            return lab_err_set(err, LAB_ERR_USER, "width %d is %d, must be at least 1", i + 1,
                               (int)mlp->widths[i]);
    return 0;
}

int lab_mlp_check(const struct lab_mlp *mlp, struct lab_err *err) {
    if (check_widths(mlp, err))
        return -1;
    if (!(mlp->dropout >= 0 && mlp->dropout < 1) || lab_mlp_threshold(mlp) > 0xffff)
        return lab_err_set(err, LAB_ERR_USER, "dropout is %g, must be at least 0 and below 1",
                           (double)mlp->dropout);
    if (mlp->batch < 1 || mlp->batch > UINT32_MAX)
        return lab_err_set(err, LAB_ERR_USER, "a batch has %lld rows, must have at least 1",
                           (long long)mlp->batch);
    if (mlp->rows < 1 || mlp->first_row < 0 || mlp->rows > mlp->batch - mlp->first_row)
        return lab_err_set(err, LAB_ERR_USER,
                           "rows %lld to %lld are not within a batch of %lld, or none",
                           (long long)mlp->first_row, (long long)(mlp->first_row + mlp->rows - 1),
                           (long long)mlp->batch);
    if ((mlp->layer_begin || mlp->layer_end) &&
        (mlp->layer_begin < 0 || mlp->layer_begin >= mlp->layer_end ||
         mlp->layer_end > lab_mlp_layers(mlp)))
        return lab_err_set(err, LAB_ERR_USER, "layers %d to %d are not among the %d there are",
                           (int)mlp->layer_begin, (int)mlp->layer_end - 1, lab_mlp_layers(mlp));
    return 0;
}

/* --- parameters, state, gradient --- */

static int64_t layer_weights(const struct lab_mlp *mlp, int layer) {
    return (int64_t)mlp->widths[layer] * mlp->widths[layer + 1];
}

int64_t lab_mlp_weight_at(const struct lab_mlp *mlp, int layer) {
    int64_t at = 0;
    for (int l = 0; l < layer; l++)
        at += layer_weights(mlp, l) + mlp->widths[l + 1];
    return at;
}

int64_t lab_mlp_bias_at(const struct lab_mlp *mlp, int layer) {
    return lab_mlp_weight_at(mlp, layer) + layer_weights(mlp, layer);
}

int64_t lab_mlp_parameters(const struct lab_mlp *mlp) {
    return lab_mlp_weight_at(mlp, lab_mlp_layers(mlp));
}

int64_t lab_mlp_stride(int64_t parameters) {
    return round_up(parameters);
}

int64_t lab_mlp_state_count(const struct lab_mlp *mlp) {
    return 3 * lab_mlp_stride(lab_mlp_parameters(mlp)) + LAB_MLP_TAIL;
}

int64_t lab_mlp_gradient_count(const struct lab_mlp *mlp) {
    return lab_mlp_parameters(mlp) + 2;
}

double lab_adam_rate(const struct lab_adam *adam, int64_t step) {
    double count = (double)step + 1;
    return adam->learning_rate * sqrt(1 - pow(adam->beta2, count)) / (1 - pow(adam->beta1, count));
}

/* --- a step's rows and what is kept between forward and backward --- */

int64_t lab_mlp_row(const struct lab_mlp *mlp, int64_t data_rows, int64_t step) {
    return step % (data_rows / mlp->batch) * mlp->batch + mlp->first_row;
}

int64_t lab_mlp_output_at(const struct lab_mlp *mlp, int layer) {
    int64_t at = 0;
    for (int l = 0; l < layer; l++)
        at += mlp->rows * mlp->widths[l + 1];
    return at;
}

int64_t lab_mlp_forward_count(const struct lab_mlp *mlp) {
    return lab_mlp_output_at(mlp, lab_mlp_layers(mlp)) + 2;
}

int64_t lab_mlp_delta_at(const struct lab_mlp *mlp, int layer) {
    int64_t output = lab_mlp_output_at(mlp, layer);
    return layer == lab_mlp_layers(mlp) - 1 ? output
                                            : round_up(lab_mlp_forward_count(mlp)) + output;
}

int64_t lab_mlp_work_count(const struct lab_mlp *mlp) {
    return round_up(lab_mlp_forward_count(mlp)) + lab_mlp_output_at(mlp, lab_mlp_layers(mlp) - 1);
}

/* --- dropout --- */

uint32_t lab_mlp_threshold(const struct lab_mlp *mlp) {
    return (uint32_t)lrint((double)mlp->dropout * 0x1p16);
}

float lab_mlp_scale(const struct lab_mlp *mlp) {
    return (float)(0x1p16 / (0x1p16 - (double)lab_mlp_threshold(mlp)));
}

bool lab_mlp_keeps(const struct lab_mlp *mlp, int64_t step, int layer, int64_t row,
                   int64_t column) {
    struct lab_philox block = lab_philox(
        (struct lab_philox){
            {(uint32_t)(column / LAB_MLP_GROUP * LAB_MLP_LANES + column % LAB_MLP_LANES),
             (uint32_t)row, (uint32_t)layer + 256 * (uint32_t)(step >> 32), (uint32_t)step}},
        mlp->seed);
    int64_t j = column / LAB_MLP_LANES % (LAB_MLP_GROUP / LAB_MLP_LANES);
    return (block.words[j / 2] >> (j % 2 * 16) & 0xffff) >= lab_mlp_threshold(mlp);
}
