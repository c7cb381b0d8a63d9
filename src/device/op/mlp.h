/*
 * mlp.h: what the training ops, and the kernels that do them, share beside device/mlp.h: which
 * input is which, and Adam's definition.
 */
#pragma once

#include "device/op.h"

/* Inputs of mlp_forward, mlp_gradient and mlp_step, as many of them as each has. */
enum { OP_MLP_X, OP_MLP_Y, OP_MLP_STATE, OP_MLP_WORK, OP_MLP_GRADIENT };
/* Inputs of mlp_backward behind x. */
enum { OP_BACKWARD_STATE = 1, OP_BACKWARD_WORK };
enum { OP_ADAM_STATE, OP_ADAM_GRADIENT };

#define OP_ADAM_FLOPS 12.0 /* m 3, v 4, √ 1, ε 1, rate 1, division 1, difference 1 */

struct op_layers {
    int begin, end;
};

static inline struct op_layers op_mlp_range(const struct lab_mlp *mlp) {
    return mlp->layer_end ? (struct op_layers){mlp->layer_begin, mlp->layer_end}
                          : (struct op_layers){0, lab_mlp_layers(mlp)};
}

int op_check_adam(const struct lab_adam *adam, struct lab_err *err);

/* One update in double precision; `out` may be `state`. */
void op_adam(const struct lab_adam *adam, int64_t parameters, const double *state,
             const double *gradient, double *out);

/* Second moments that aren't negative and a whole step count, in a state of that stride. */
void op_adam_domain(int64_t stride, float *state);
