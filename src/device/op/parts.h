/*
 * parts.h: what the files of this folder share. Each file defines one `const struct lab_op
 * lab_op_<name>` for every op of a family; lab_op_get finds them by the list in device/op.h.
 */
#pragma once

#include "device/op.h"

#define OP_DECLARE(upper, lower) extern const struct lab_op lab_op_##lower;
LAB_OPS(OP_DECLARE)
#undef OP_DECLARE

/* Fails unless the tensor, seen as a matrix, has this shape. */
int op_check_matrix(const struct lab_tensor *tensor, const char *what, int64_t rows,
                    int64_t columns, struct lab_err *err);
/* Fails unless the tensor has this very shape. */
int op_check_shape(const struct lab_tensor *tensor, const char *what, int rank,
                   const int64_t *shape, struct lab_err *err);
/* Fails unless the tensor has this many elements. */
int op_check_vector(const struct lab_tensor *tensor, const char *what, int64_t count,
                    struct lab_err *err);

/* This many flops, and every tensor of the launch read or written once. */
struct lab_cost op_cost(const struct lab_launch *launch, double flops);

/* The launch with another op in its place, for compositions. */
struct lab_launch op_part(const struct lab_launch *launch, enum lab_op_id op);

/* Definitions that fused ops share with the elementary one; `out` may be `x`. */
double op_gelu(double x);
double op_gelu_tanh(double x);
double op_gelu_tanh_slope(double x);
void op_layer_norm_row(const double *x, const double *gamma, const double *beta, double epsilon,
                       int64_t columns, double *out);
/* A row's mean and 1/√(variance + epsilon). */
void op_row_stats(const double *x, double epsilon, int64_t columns, double stats[2]);

/* Inputs 0 to 2 are queries, keys and values, and the scale can be used. */
int op_check_flash(const struct lab_launch *launch, struct lab_err *err);

/* gamma and beta are inputs 1 and 2 of every op that normalises. */
int op_check_layer_norm(const struct lab_launch *launch, int64_t columns, struct lab_err *err);
