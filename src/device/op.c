/*
 * op.c: dtypes, tensors, and what holds for a launch of any op. The ops themselves are in op/.
 */
#include "device/op.h"

#include "base/str.h"
#include "device/op/parts.h"

const char *const lab_dtype_names[] = {"fp32", "tf32", "bf16", "fp16", NULL};

size_t lab_dtype_bytes(enum lab_dtype dtype) {
    return dtype == LAB_FP32 || dtype == LAB_TF32 ? 4 : 2;
}

const char *lab_dtype_name(enum lab_dtype dtype) {
    return lab_dtype_names[dtype];
}

int lab_dtype_parse(const char *name, enum lab_dtype *ret_dtype) {
    for (int i = 0; lab_dtype_names[i]; i++)
        if (lab_str_equal(name, lab_dtype_names[i])) {
            *ret_dtype = (enum lab_dtype)i;
            return 0;
        }
    return -1;
}

struct lab_tensor lab_tensor(void *data, enum lab_dtype dtype, int rank, const int64_t *shape) {
    struct lab_tensor tensor = {.data = data, .dtype = dtype, .rank = rank};
    for (int i = 0; i < rank && i < LAB_TENSOR_RANK; i++)
        tensor.shape[i] = shape[i];
    return tensor;
}

struct lab_tensor lab_tensor_vector(void *data, enum lab_dtype dtype, int64_t count) {
    return lab_tensor(data, dtype, 1, &count);
}

struct lab_tensor lab_tensor_matrix(void *data, enum lab_dtype dtype, int64_t rows,
                                    int64_t columns) {
    return lab_tensor(data, dtype, 2, (int64_t[]){rows, columns});
}

int64_t lab_tensor_count(const struct lab_tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

size_t lab_tensor_bytes(const struct lab_tensor *tensor) {
    return (size_t)lab_tensor_count(tensor) * lab_dtype_bytes(tensor->dtype);
}

int64_t lab_tensor_rows(const struct lab_tensor *tensor) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < tensor->rank; i++)
        rows *= tensor->shape[i];
    return rows;
}

int64_t lab_tensor_columns(const struct lab_tensor *tensor) {
    return tensor->rank > 0 ? tensor->shape[tensor->rank - 1] : 1;
}

const struct lab_op *lab_op_get(enum lab_op_id id) {
    static const struct lab_op *const ops[] = {
#define OP_ROW(upper, lower) [LAB_OP_##upper] = &lab_op_##lower,
        LAB_OPS(OP_ROW)
#undef OP_ROW
    };
    return (int)id >= 0 && id < LAB_OP_COUNT ? ops[id] : NULL;
}

struct lab_cost lab_op_cost(const struct lab_launch *launch) {
    const struct lab_op *op = lab_op_get(launch->op);
    return op->cost ? op->cost(launch)
                    : op_cost(launch, op->flops * (double)lab_tensor_count(&launch->out));
}

int lab_op_example(enum lab_op_id id, int index, enum lab_dtype dtype,
                   struct lab_launch *ret_launch) {
    struct lab_launch launch = {.op = id};
    if (lab_op_get(id)->example(index, dtype, &launch) < 0)
        return -1;
    *ret_launch = launch;
    return 0;
}

struct lab_gemm_shape lab_gemm_shape(const struct lab_launch *launch) {
    int64_t rows = lab_tensor_rows(&launch->out);
    return (struct lab_gemm_shape){launch->op == LAB_OP_GEMM_BIAS_GELU_TANH ? rows / 2 : rows,
                                   lab_tensor_columns(&launch->out),
                                   launch->in[0].shape[launch->transpose_a ? 0 : 1]};
}

struct lab_flash_shape lab_flash_shape(const struct lab_launch *launch) {
    const int64_t *q = launch->in[0].shape;
    return (struct lab_flash_shape){q[0], q[1], q[2], launch->in[1].shape[2], q[3]};
}

enum lab_dtype lab_launch_dtype(const struct lab_launch *launch) {
    const struct lab_op *op = lab_op_get(launch->op);
    return op && op->keeps_fp32 ? launch->compute : launch->out.dtype;
}

/* Libraries below count in int, and sums of sizes must not overflow. */
#define DIMENSION_MAX INT32_MAX
#define COUNT_MAX     ((int64_t)1 << 56)

static int check_tensor(const struct lab_tensor *tensor, enum lab_dtype dtype, const char *what,
                        struct lab_err *err) {
    if (tensor->rank < 1 || tensor->rank > LAB_TENSOR_RANK)
        return lab_err_set(err, LAB_ERR_USER, "%s has %d dimensions, must have 1 to %d", what,
                           tensor->rank, LAB_TENSOR_RANK);
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        int64_t size = tensor->shape[i];
        if (size < 1 || size > DIMENSION_MAX)
            return lab_err_set(err, LAB_ERR_USER,
                               "dimension %d of %s is %lld, must be between 1 and %d", i, what,
                               (long long)size, DIMENSION_MAX);
        if (count > COUNT_MAX / size)
            return lab_err_set(err, LAB_ERR_USER, "%s has too many elements", what);
        count *= size;
    }
    if (tensor->dtype != dtype)
        return lab_err_set(err, LAB_ERR_USER, "%s is %s, must be %s", what,
                           lab_dtype_name(tensor->dtype), lab_dtype_name(dtype));
    return 0;
}

static bool overlap(const struct lab_tensor *a, const struct lab_tensor *b) {
    const char *x = a->data, *y = b->data;
    return x && y && x < y + lab_tensor_bytes(b) && y < x + lab_tensor_bytes(a);
}

static int check_overlap(const struct lab_op *op, const struct lab_launch *launch, int input,
                         struct lab_err *err) {
    const char *out = launch->out.data;
    const char *in = launch->in[input].data;
    bool under = launch->also.data == in && op->also_over >> input & 1;
    if (!under && overlap(&launch->also, &launch->in[input]))
        return lab_err_set(err, LAB_ERR_USER, "the second output must not overlap input %d", input);
    if (!out || !in || (out == in && (op->over >> input & 1)))
        return 0;
    if (overlap(&launch->out, &launch->in[input]))
        return lab_err_set(err, LAB_ERR_USER, "the output must not overlap input %d", input);
    return 0;
}

static int check_also(const struct lab_op *op, const struct lab_launch *launch,
                      struct lab_err *err) {
    if (launch->also.rank == 0)
        return 0;
    if (!op->reference_also)
        return lab_err_set(err, LAB_ERR_USER, "it has no second output");
    if (overlap(&launch->also, &launch->out))
        return lab_err_set(err, LAB_ERR_USER, "the two outputs must not overlap");
    return check_tensor(&launch->also, LAB_FP32, "the second output", err);
}

/* Behind the op's own check: its shape follows from the others'. */
static int check_also_shape(const struct lab_op *op, const struct lab_launch *launch,
                            struct lab_err *err) {
    if (launch->also.rank == 0)
        return 0;
    struct lab_tensor also = op->also(launch);
    return op_check_shape(&launch->also, "the second output", also.rank, also.shape, err);
}

static int check_launch(const struct lab_op *op, const struct lab_launch *launch,
                        struct lab_err *err) {
    if (check_tensor(&launch->out, launch->out.dtype, "the output", err) < 0)
        return -1;
    static const char *const names[LAB_LAUNCH_INPUTS] = {"input 0", "input 1", "input 2",
                                                         "input 3", "input 4", "input 5"};
    for (int i = 0; i < op->inputs; i++) {
        enum lab_dtype dtype = op->singles >> i & 1 ? LAB_FP32 : launch->out.dtype;
        if (check_tensor(&launch->in[i], dtype, names[i], err) < 0)
            return -1;
    }
    if (check_also(op, launch, err) < 0)
        return -1;
    if (op->keeps_fp32 && launch->out.dtype != LAB_FP32)
        return lab_err_set(err, LAB_ERR_USER, "its tensors are %s, must be fp32",
                           lab_dtype_name(launch->out.dtype));
    if (op->check(launch, err) < 0 || check_also_shape(op, launch, err) < 0)
        return -1;
    for (int i = 0; i < op->inputs; i++)
        if (check_overlap(op, launch, i, err) < 0)
            return -1;
    return 0;
}

int lab_launch_complete(struct lab_launch *launch, struct lab_err *err) {
    const struct lab_op *op = lab_op_get(launch->op);
    if (!op)
        return lab_err_set(err, LAB_ERR_USER, "no operation has the number %d", (int)launch->op);
    if (check_launch(op, launch, err) < 0)
        return lab_err_context(err, "%s", op->name);
    launch->cost = lab_op_cost(launch);
    return 0;
}
