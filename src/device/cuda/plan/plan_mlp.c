/*
 * plan_mlp.c: training steps (kernels/mlp.cu). A kernel that goes through a whole step has one
 * block on each multiprocessor, since its blocks wait for each other; all it has to know of the
 * model are arguments, so that models of any widths share it.
 */
#include "base/str.h"
#include "device/cuda/plan/plan_internal.h"
#include "device/op/mlp.h"

#include <stdlib.h>

enum { MODE_FORWARD = 1, MODE_BACKWARD = 2, MODE_UPDATE = 4 };

#define WARPS          8
#define WARP_BYTES     4736 /* of shared memory */
#define UPDATE_THREADS 256
#define LENGTH_MAX     (1 << 30) /* the kernel counts rows, columns and tiles in 32 bits */

bool cuda_mlp_runs_in(enum lab_dtype dtype) {
    return dtype != LAB_FP16; /* derivatives would vanish in it */
}

static void add_adam(struct cuda_call *call, const struct lab_adam *adam) {
    add_float(call, adam->learning_rate);
    add_float(call, adam->beta1);
    add_float(call, adam->beta2);
    add_float(call, adam->epsilon);
}

static int plan_adam(const struct lab_launch *launch, struct cuda_call *ret_call,
                     struct lab_err *err) {
    int64_t parameters = lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2;
    *ret_call = call_of(launch, CUDA_KERNEL_adam);
    ret_call->variant.dtype = (int16_t)launch->compute;
    add_inputs(ret_call, launch, 2);
    add_integer(ret_call, parameters);
    add_integer(ret_call, lab_mlp_stride(parameters));
    add_adam(ret_call, &launch->adam);
    return set_blocks(ret_call, quotient_up(parameters, (int64_t)4 * UPDATE_THREADS),
                      UPDATE_THREADS, err);
}

/* The tensors by name: the ops have them at different places. */
struct tensors {
    struct lab_tensor x, y, state, work, gradient, new_state;
};

static struct tensors tensors_of(const struct lab_launch *launch) {
    const struct lab_tensor *in = launch->in;
    struct tensors t = {.x = in[OP_MLP_X]};
    if (launch->op == LAB_OP_MLP_BACKWARD) {
        t.state = in[OP_BACKWARD_STATE];
        t.work = in[OP_BACKWARD_WORK];
        t.gradient = launch->out;
        return t;
    }
    t.y = in[OP_MLP_Y];
    t.state = in[OP_MLP_STATE];
    t.work = launch->op == LAB_OP_MLP_FORWARD ? launch->out : in[OP_MLP_WORK];
    if (launch->op == LAB_OP_MLP_GRADIENT)
        t.gradient = launch->out;
    if (launch->op == LAB_OP_MLP_STEP)
        t.new_state = launch->out;
    return t;
}

static int32_t mode_of(enum lab_op_id op) {
    if (op == LAB_OP_MLP_FORWARD)
        return MODE_FORWARD;
    if (op == LAB_OP_MLP_BACKWARD)
        return MODE_BACKWARD;
    return MODE_FORWARD | MODE_BACKWARD | (op == LAB_OP_MLP_STEP ? MODE_UPDATE : 0);
}

/* Whether the kernel's 32 bits hold what it counts. */
static int check_lengths(const struct lab_mlp *mlp, struct lab_err *err) {
    int64_t most = mlp->rows;
    for (int i = 0; i < mlp->width_count; i++)
        most = mlp->widths[i] > most ? mlp->widths[i] : most;
    if (most <= LENGTH_MAX)
        return 0;
    return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%lld rows or columns are too many, at most %d",
                       (long long)most, LENGTH_MAX);
}

static void add_tensors(struct cuda_call *call, const struct tensors *t) {
    const struct lab_tensor *pointers[] = {&t->x,    &t->y,        &t->state,
                                           &t->work, &t->gradient, &t->new_state};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        add_pointer(call, pointers[i]);
}

static void add_batch(struct cuda_call *call, const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    add_integer(call, (int64_t)mlp->seed);
    add_integer(call, mlp->batch);
    add_integer(call, mlp->first_row);
    add_integer(call, mlp->rows);
    add_integer(call, lab_tensor_rows(&launch->in[OP_MLP_X]) / mlp->batch);
}

static void add_factors(struct cuda_call *call, const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    add_float(call, lab_mlp_scale(mlp));
    add_float(call, (float)(2 / ((double)mlp->batch * mlp->widths[lab_mlp_layers(mlp)])));
    add_adam(call, &launch->adam);
}

static void add_model(struct cuda_call *call, const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    struct op_layers range = op_mlp_range(mlp);
    for (int i = 0; i < LAB_MLP_WIDTHS; i += 2)
        add_integer(call, (int64_t)((uint64_t)(uint32_t)mlp->widths[i] |
                                    (uint64_t)(uint32_t)mlp->widths[i + 1] << 32));
    add_batch(call, launch);
    add_integer(call, lab_mlp_layers(mlp));
    add_integer(call, range.begin);
    add_integer(call, range.end);
    add_integer(call, lab_mlp_threshold(mlp));
    add_factors(call, launch);
}

/* --- small models --- */

#define KNOWN_WARPS  16   /* of a block of mlp_rows or mlp_wide */
#define ROWS         16   /* of the batch that it takes at once */
#define ROWS_SPLIT   4    /* warps that share columns, at most */
#define ROWS_PART    640  /* bytes of shared memory for a warp, once the rows are done */
#define STATIC_BYTES 1024 /* of shared memory, at most, beside what a launch asks for */

/* What mlp_rows has in shared memory, in floats; kernels/mlp_rows.cu says what lies where. */

static int64_t up(int64_t value, int64_t multiple) {
    return quotient_up(value, multiple) * multiple;
}

static int64_t line_floats(int64_t columns) {
    return (columns + 7) / 16 * 16 + 8;
}

static int64_t weight_floats(const struct lab_mlp *mlp, int layer) {
    return up(mlp->widths[layer + 1], 16) * line_floats(mlp->widths[layer]);
}

static int64_t output_floats(const struct lab_mlp *mlp, int layer) {
    return ROWS * line_floats(up(mlp->widths[layer + 1], 16));
}

static int64_t partial_floats(const struct lab_mlp *mlp, int layer) {
    int64_t groups = quotient_up(mlp->widths[layer + 1], 16), steps = mlp->widths[layer] / 16;
    int64_t split = 1;
    while (split < ROWS_SPLIT && 2 * groups * split <= KNOWN_WARPS && steps % (2 * split) == 0)
        split *= 2;
    return (split - 1) * groups * ROWS * 16;
}

static int64_t rows_bytes(const struct lab_mlp *mlp) {
    int layers = lab_mlp_layers(mlp);
    int64_t all = output_floats(mlp, 0) + weight_floats(mlp, 1), outputs = 0, partial = 0;
    int64_t first =
        (int64_t)mlp->widths[0] * mlp->widths[1] + ROWS * line_floats(up(mlp->widths[0], 16));
    int64_t further = 0;
    for (int l = 0; l < layers; l++)
        outputs += mlp->widths[l + 1];
    all += up(outputs, 4) + up((int64_t)ROWS * mlp->widths[layers], 4);
    for (int l = 0; l + 1 < layers; l++)
        all += quotient_up(mlp->widths[l + 1], LAB_MLP_GROUP) * ROWS * LAB_MLP_LANES / 4;
    for (int l = 1; l < layers; l++) {
        further += (l > 1 ? weight_floats(mlp, l) : 0) + output_floats(mlp, l);
        partial = partial_floats(mlp, l) > partial ? partial_floats(mlp, l) : partial;
    }
    all += partial + (first > further ? first : further);
    int64_t bytes = all * (int64_t)sizeof(float), least = (int64_t)KNOWN_WARPS * ROWS_PART;
    return bytes > least ? bytes : least;
}

/* --- models whose widths are known to the compiler --- */

#define FEW_ROWS   16        /* mlp_wide has small tiles for so many */
#define WIDE_BYTES 40960     /* of its shared memory: sums of 8 times 32 x 40 */
#define PLACES_MAX (1 << 29) /* such kernels count parameters in 32 bits */

static bool are_all_aligned(const struct tensors *t) {
    return is_aligned(&t->state) && is_aligned(&t->work) && is_aligned(&t->gradient) &&
           is_aligned(&t->new_state);
}

/* Forward and backward at once, moved 16 bytes at a time. */
static bool suits(const struct lab_launch *launch, const struct tensors *tensors, int multiple) {
    const struct lab_mlp *mlp = &launch->mlp;
    int layers = lab_mlp_layers(mlp), both = MODE_FORWARD | MODE_BACKWARD;
    if ((mode_of(launch->op) & both) != both || layers < 2 || !are_all_aligned(tensors) ||
        lab_mlp_parameters(mlp) > PLACES_MAX)
        return false;
    for (int l = 1; l < layers; l++)
        if (mlp->widths[l] % multiple)
            return false;
    return true;
}

/* Each block has all weights, so they must be few. */
static bool goes_by_rows(const struct lab_launch *launch, struct cuda_capacity capacity,
                         const struct tensors *tensors) {
    return suits(launch, tensors, 16) &&
           rows_bytes(&launch->mlp) + STATIC_BYTES <= capacity.shared_bytes_max;
}

static bool goes_wide(const struct lab_launch *launch, struct cuda_capacity capacity,
                      const struct tensors *tensors) {
    return suits(launch, tensors, 32) && WIDE_BYTES + STATIC_BYTES <= capacity.shared_bytes_max;
}

/*
 * A library's products are faster than mlp_wide where there is much to multiply. Measured on an
 * H200 with a model of 2 million parameters: by 7 % at 192 rows in bf16, by 19 % at 384 in tf32, by
 * 6 % at 1024 in fp32, where they lost 7 % at 768. GPULAB_MLP_PRODUCTS=0 never takes them, =1
 * wherever they can be, to compare.
 */
static bool goes_by_products(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    const char *wanted = getenv("GPULAB_MLP_PRODUCTS");
    double work = (double)mlp->rows * (double)lab_mlp_parameters(mlp);
    double least = launch->compute == LAB_BF16   ? 3.88e8
                   : launch->compute == LAB_TF32 ? 7.76e8
                                                 : 1.81e9;
    return mlp_batch_suits(launch) && !lab_str_equal(wanted, "0") &&
           (work >= least || lab_str_equal(wanted, "1"));
}

static int plan_known(const struct lab_launch *launch, struct cuda_capacity capacity,
                      const struct tensors *t, bool by_rows, struct cuda_call *ret_call,
                      struct lab_err *err) {
    const struct lab_mlp *mlp = &launch->mlp;
    *ret_call = call_of(launch, by_rows ? CUDA_KERNEL_mlp_rows : CUDA_KERNEL_mlp_wide);
    ret_call->variant.dtype = (int16_t)launch->compute;
    ret_call->variant.macros[0] = mode_of(launch->op);
    for (int i = 0; i < mlp->width_count; i++)
        ret_call->variant.macros[1 + i] = mlp->widths[i];
    if (!by_rows)
        ret_call->variant.macros[1 + LAB_MLP_WIDTHS] = mlp->rows <= FEW_ROWS;
    ret_call->shared_bytes = by_rows ? (unsigned)rows_bytes(mlp) : WIDE_BYTES;
    add_tensors(ret_call, t);
    add_batch(ret_call, launch);
    add_integer(ret_call, lab_mlp_threshold(mlp));
    add_factors(ret_call, launch);
    return set_blocks(ret_call, capacity.sm_count, 32 * KNOWN_WARPS, err);
}

/* --- any model --- */

int plan_mlp(const struct lab_launch *launch, struct cuda_capacity capacity, enum cuda_way *ret_way,
             struct cuda_call *ret_call, struct lab_err *err) {
    if (launch->op == LAB_OP_ADAM)
        return plan_adam(launch, ret_call, err);
    if (check_lengths(&launch->mlp, err))
        return -1;
    struct tensors t = tensors_of(launch);
    bool known = cuda_kernel_runs_on(CUDA_KERNEL_mlp_rows, capacity.capability);
    bool by_rows = known && goes_by_rows(launch, capacity, &t);
    bool wide = known && !by_rows && goes_wide(launch, capacity, &t);
    if (wide && goes_by_products(launch)) {
        *ret_way = CUDA_WAY_PARTS;
        return 0;
    }
    if (by_rows || wide)
        return plan_known(launch, capacity, &t, by_rows, ret_call, err);
    *ret_call = call_of(launch, CUDA_KERNEL_mlp);
    ret_call->variant.dtype = (int16_t)launch->compute;
    ret_call->variant.macros[0] = mode_of(launch->op);
    ret_call->shared_bytes = WARPS * WARP_BYTES;
    add_tensors(ret_call, &t);
    add_model(ret_call, launch);
    return set_blocks(ret_call, capacity.sm_count, 32 * WARPS, err);
}
