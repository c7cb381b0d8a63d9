/*
 * mlp.h: training a multilayer perceptron: what a step needs to know, and where the ops of
 * device/op.h find what in memory. All of it is single precision, whatever the products are done
 * in.
 *
 * Layer l of L (from 0) has `widths[l]` inputs and `widths[l + 1]` outputs. Behind each but the
 * last come ReLU and dropout.
 *
 *   parameters  [P]      layer by layer: weight [outputs, inputs], then bias [outputs]
 *   state       [3·S+4]  parameters, Adam's first moments, its second moments, each S long: P
 *                        rounded up, so that all three are aligned alike; what is between them
 *                        plays no part. Then the step counter in two parts and the losses of the
 *                        step before
 *   gradient    [P+2]    as the parameters, then mse and mae: one vector to be summed over ranks,
 *                        and any range of it is a bucket
 *   forward     [F]      outputs of layers 0 … L−2 as the next layer sees them, [rows, outputs]
 *                        each; the loss's derivative by the last layer's outputs; mse and mae
 *   work        [W]      forward, then the derivatives by the outputs of layers 0 … L−2 before ReLU
 *
 * So a checkpoint is the state, and a step finds all it has to know in memory: a captured graph
 * counts on by itself.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define LAB_MLP_WIDTHS 8 /* at most: seven layers */

struct lab_mlp {
    int32_t widths[LAB_MLP_WIDTHS];
    int32_t width_count;
    float dropout; /* share of a hidden layer's outputs that are dropped; counts in 2⁻¹⁶ */
    uint64_t seed; /* of the dropout */
    /*
     * Step s takes rows [k·batch, (k + 1)·batch) of the data, k = s modulo the whole batches there
     * are. This launch does `rows` of them from `first_row` on; other ranks do the others. Losses
     * and gradients are its rows' share of the mean over the batch, so that ranks' results are
     * summed.
     */
    int64_t batch, first_row, rows;
    /* mlp_backward: these layers' gradients alone, the last layers first; both 0 = all */
    int32_t layer_begin, layer_end;
};

struct lab_adam { /* Keras's: epsilon is the paper's ε̂, added to √v before the correction */
    float learning_rate, beta1, beta2, epsilon;
};

#define LAB_ADAM                                                                                   \
    ((struct lab_adam){.learning_rate = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-7f})

/* Widths, dropout, rows and layers fit together. */
int lab_mlp_check(const struct lab_mlp *mlp, struct lab_err *err);

static inline int lab_mlp_layers(const struct lab_mlp *mlp) {
    return mlp->width_count - 1;
}

/* --- parameters, state, gradient --- */

int64_t lab_mlp_parameters(const struct lab_mlp *mlp);           /* P */
int64_t lab_mlp_weight_at(const struct lab_mlp *mlp, int layer); /* of `layer` = L: P */
int64_t lab_mlp_bias_at(const struct lab_mlp *mlp, int layer);
int64_t lab_mlp_stride(int64_t parameters);                /* S */
int64_t lab_mlp_state_count(const struct lab_mlp *mlp);    /* 3·S + 4 */
int64_t lab_mlp_gradient_count(const struct lab_mlp *mlp); /* P + 2 */

/* The last values of a state. The counter is high · 2²⁰ + low: a single float would stop at 2²⁴. */
enum { LAB_MLP_STEP_LOW, LAB_MLP_STEP_HIGH, LAB_MLP_MSE, LAB_MLP_MAE, LAB_MLP_TAIL };
#define LAB_MLP_STEP_BASE (1 << 20)

static inline int64_t lab_mlp_step_of(double low, double high) {
    return (int64_t)high * LAB_MLP_STEP_BASE + (int64_t)low;
}

/* Adam's learning rate with the bias corrections of step `step`, counted from 0. */
double lab_adam_rate(const struct lab_adam *adam, int64_t step);

/* --- a step's rows and what is kept between forward and backward --- */

/* The first row of data [data_rows, …] that this launch takes in that step. */
int64_t lab_mlp_row(const struct lab_mlp *mlp, int64_t data_rows, int64_t step);

int64_t lab_mlp_output_at(const struct lab_mlp *mlp, int layer); /* of L: where mse stands */
int64_t lab_mlp_delta_at(const struct lab_mlp *mlp, int layer); /* of L − 1: its output's place */
int64_t lab_mlp_forward_count(const struct lab_mlp *mlp);       /* F */
int64_t lab_mlp_work_count(const struct lab_mlp *mlp);          /* W */

/* --- dropout --- */

/*
 * Whether an output is dropped depends on seed, step, layer, row of the batch and column alone, so
 * that n ranks drop what one would. A group of 128 columns takes 16 blocks of Philox, key = seed,
 * counter =
 *
 *     (16·(column / 128) + column mod 16,  row,  layer + 256·(step / 2³²),  step mod 2³²)
 *
 * and each block serves 8 columns, 16 apart: j = column / 16 mod 8 has the lower half of word j/2,
 * or the upper one where j is odd. It is dropped if that half is below dropout · 2¹⁶; what is kept
 * is scaled by 2¹⁶ / (2¹⁶ − that), so that the mean stays exactly.
 */
#define LAB_MLP_GROUP 128 /* columns that share blocks */
#define LAB_MLP_LANES 16  /* neighbours of them that have a block each */

uint32_t lab_mlp_threshold(const struct lab_mlp *mlp); /* dropout · 2¹⁶ */
float lab_mlp_scale(const struct lab_mlp *mlp);
bool lab_mlp_keeps(const struct lab_mlp *mlp, int64_t step, int layer, int64_t row, int64_t column);
