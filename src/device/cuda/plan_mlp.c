/*
 * plan_mlp.c: training steps (kernels/mlp.cu). A kernel that goes through a whole step has one block on
 * each multiprocessor, since its blocks wait for each other; all it has to know of the model are
 * arguments, so that models of any widths share it.
 */
#include "device/cuda/plan_internal.h"
#include "device/op/mlp.h"

enum { MODE_FORWARD = 1, MODE_BACKWARD = 2, MODE_UPDATE = 4 };

#define WARPS          8
#define WARP_BYTES     5120 /* of shared memory */
#define UPDATE_THREADS 256
#define LENGTH_MAX     (1 << 30) /* the kernel counts rows, columns and tiles in 32 bits */

/* Rows by cluster: each reads all parameters, so there must be few; and where the multiprocessors are a
 * slice of a GPU's, nobody says which of them can form clusters. */
#define CLUSTER                8
#define CLUSTER_PARAMETERS_MAX (1 << 18)
#define CLUSTER_SMS_MIN        100

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

static void add_model(struct cuda_call *call, const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    struct op_layers range = op_mlp_range(mlp);
    for (int i = 0; i < LAB_MLP_WIDTHS; i += 2)
        add_integer(call, (int64_t)((uint64_t)(uint32_t)mlp->widths[i] |
                                    (uint64_t)(uint32_t)mlp->widths[i + 1] << 32));
    add_integer(call, (int64_t)mlp->seed);
    add_integer(call, mlp->batch);
    add_integer(call, mlp->first_row);
    add_integer(call, mlp->rows);
    add_integer(call, lab_tensor_rows(&launch->in[OP_MLP_X]) / mlp->batch);
    add_integer(call, lab_mlp_layers(mlp));
    add_integer(call, range.begin);
    add_integer(call, range.end);
    add_integer(call, lab_mlp_threshold(mlp));
    add_float(call, lab_mlp_scale(mlp));
    add_float(call, (float)(2 / ((double)mlp->batch * mlp->widths[lab_mlp_layers(mlp)])));
    add_adam(call, &launch->adam);
}

static bool takes_clusters(const struct lab_launch *launch, struct cuda_room room) {
    return (mode_of(launch->op) & (MODE_FORWARD | MODE_BACKWARD)) ==
               (MODE_FORWARD | MODE_BACKWARD) &&
           cuda_kernel_runs_on(CUDA_KERNEL_mlp_cluster, room.capability) &&
           room.sm_count >= CLUSTER_SMS_MIN &&
           lab_mlp_parameters(&launch->mlp) <= CLUSTER_PARAMETERS_MAX;
}

int plan_mlp(const struct lab_launch *launch, struct cuda_room room, enum cuda_way *ret_way,
             struct cuda_call *ret_call, struct lab_err *err) {
    (void)ret_way;
    if (launch->op == LAB_OP_ADAM)
        return plan_adam(launch, ret_call, err);
    if (check_lengths(&launch->mlp, err))
        return -1;
    struct tensors t = tensors_of(launch);
    bool clusters = takes_clusters(launch, room);
    *ret_call = call_of(launch, clusters ? CUDA_KERNEL_mlp_cluster : CUDA_KERNEL_mlp);
    ret_call->variant.dtype = (int16_t)launch->compute;
    ret_call->variant.macros[0] = mode_of(launch->op);
    ret_call->shared_bytes = WARPS * WARP_BYTES;
    if (clusters) {
        ret_call->variant.macros[1] = CLUSTER;
        ret_call->cluster = CLUSTER;
        ret_call->persistent = true;
    }
    const struct lab_tensor *pointers[] = {&t.x,    &t.y,        &t.state,
                                           &t.work, &t.gradient, &t.new_state};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        add_pointer(ret_call, pointers[i]);
    add_model(ret_call, launch);
    int blocks = clusters ? room.sm_count / CLUSTER * CLUSTER : room.sm_count;
    return set_blocks(ret_call, blocks, 32 * WARPS, err);
}
