/* parts.c: checks, costs and launches that several ops make in the same way. */
#include "device/op/parts.h"

#include <stdio.h>

static const char *shape_text(const struct lab_tensor *tensor, char text[96]) {
    int length = snprintf(text, 96, "[");
    for (int i = 0; i < tensor->rank; i++)
        length += snprintf(text + length, 96 - (size_t)length, "%s%lld", i ? "," : "",
                           (long long)tensor->shape[i]);
    snprintf(text + length, 96 - (size_t)length, "]");
    return text;
}

int op_check_matrix(const struct lab_tensor *tensor, const char *what, int64_t rows,
                    int64_t columns, struct lab_err *err) {
    if (lab_tensor_rows(tensor) == rows && lab_tensor_columns(tensor) == columns)
        return 0;
    char text[96];
    return lab_err_set(err, LAB_ERR_USER, "%s is %s, must be [%lld,%lld]", what,
                       shape_text(tensor, text), (long long)rows, (long long)columns);
}

int op_check_shape(const struct lab_tensor *tensor, const char *what, int rank,
                   const int64_t *shape, struct lab_err *err) {
    bool same = tensor->rank == rank;
    for (int i = 0; i < rank && same; i++)
        same = tensor->shape[i] == shape[i];
    if (same)
        return 0;
    struct lab_tensor wanted = lab_tensor(NULL, tensor->dtype, rank, shape);
    char text[96], wanted_text[96];
    return lab_err_set(err, LAB_ERR_USER, "%s is %s, must be %s", what, shape_text(tensor, text),
                       shape_text(&wanted, wanted_text));
}

int op_check_vector(const struct lab_tensor *tensor, const char *what, int64_t count,
                    struct lab_err *err) {
    if (lab_tensor_count(tensor) == count)
        return 0;
    char text[96];
    return lab_err_set(err, LAB_ERR_USER, "%s is %s, must be [%lld]", what,
                       shape_text(tensor, text), (long long)count);
}

struct lab_cost op_cost(const struct lab_launch *launch, double flops) {
    struct lab_cost cost = {.flops = flops,
                            .bytes_written = (double)lab_tensor_bytes(&launch->out)};
    if (launch->also.rank)
        cost.bytes_written += (double)lab_tensor_bytes(&launch->also);
    for (int i = 0; i < lab_op_get(launch->op)->inputs; i++)
        cost.bytes_read += (double)lab_tensor_bytes(&launch->in[i]);
    return cost;
}

struct lab_launch op_part(const struct lab_launch *launch, enum lab_op_id op) {
    struct lab_launch part = *launch;
    part.op = op;
    part.cost = (struct lab_cost){0};
    for (int i = lab_op_get(op)->inputs; i < LAB_LAUNCH_INPUTS; i++)
        part.in[i] = (struct lab_tensor){0};
    return part;
}
