/*
 * plan_mlp_batch.c: training steps of large batches: products by cuBLASLt, and kernels of ours
 * between them (kernels/mlp_batch.cu). A single kernel for the whole step reads each operand
 * from the L2 cache too often where there are many rows.
 *
 *   forward    rows and weights taken; for each hidden layer its product, then bias, ReLU, dropout
 *   the head   the last layer in one kernel, with its gradient and the derivatives by its inputs
 *   backward   for each hidden layer its weights' gradient; the derivatives by its inputs, masked
 *   the end    Adam
 *
 * Of `work` a hidden layer's outputs and derivatives have the places that device/mlp.h gives them,
 * as factors of products: in bf16 both lie in the outputs' place. The derivatives' place holds
 * what products put out, which is fp32 always.
 */
#include "device/cuda/plan/plan_internal.h"
#include "device/op/mlp.h"

#define THREADS       256
#define TAKE_BLOCKS   8 /* of mlp_take, for each multiprocessor */
#define DELTA_ROWS    32
#define DELTA_COLUMNS 128
#define HEAD_ROWS     16
#define OUTPUTS_MAX   8    /* of the model, and */
#define HEAD_MAX      2048 /* weights of its last layer, which mlp_head keeps in registers */
#define PITCH_STEP    32   /* of the rows of x */
#define ROWS_MAX      (1 << 20)
#define ROOM_STEP     256 /* bytes */

bool mlp_batch_suits(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    int layers = lab_mlp_layers(mlp);
    return mlp->rows <= ROWS_MAX && mlp->widths[layers] <= OUTPUTS_MAX &&
           (int64_t)mlp->widths[layers] * mlp->widths[layers - 1] <= HEAD_MAX;
}

/* --- memory --- */

struct room { /* offsets in scratch memory, in bytes */
    int64_t rate, x, weights, first, deltas, heads, end;
};

static int64_t pitch_of(const struct lab_mlp *mlp) {
    return quotient_up(mlp->widths[0], PITCH_STEP) * PITCH_STEP;
}

static int64_t take(int64_t *end, int64_t count, int64_t bytes) {
    int64_t at = *end;
    *end = at + quotient_up(count * bytes, ROOM_STEP) * ROOM_STEP;
    return at;
}

static struct room room_of(const struct lab_launch *launch) {
    const struct lab_mlp *mlp = &launch->mlp;
    int layers = lab_mlp_layers(mlp), element = (int)lab_dtype_bytes(launch->compute);
    int64_t outputs = mlp->widths[layers], inputs = mlp->widths[layers - 1], hidden = 0;
    int64_t rest = lab_mlp_stride(lab_mlp_parameters(mlp)) - lab_mlp_weight_at(mlp, 1);
    for (int l = 0; l + 2 < layers; l++)
        hidden += mlp->widths[l + 1];
    struct room room = {0};
    int64_t *end = &room.end, single = sizeof(float);
    room.rate = take(end, 1, single);
    room.x = take(end, mlp->rows * pitch_of(mlp), element);
    room.weights = take(end, mlp->widths[1] * pitch_of(mlp) + rest, element);
    room.first = take(end, mlp->widths[1] * pitch_of(mlp), single);
    room.deltas = take(end, quotient_up(mlp->rows, DELTA_ROWS) * hidden, single);
    room.heads =
        take(end, quotient_up(mlp->rows, HEAD_ROWS) * ((inputs + 1) * outputs + inputs), single);
    return room;
}

int64_t mlp_batch_bytes(const struct lab_launch *launch) {
    return room_of(launch).end;
}

/* --- parts --- */

struct planner {
    const struct lab_launch *launch;
    const struct lab_mlp *mlp;
    struct cuda_capacity capacity;
    int layers;
    bool updates;
    struct room room;
    char *scratch;
    float *state, *work, *gradient, *new_state;
    struct cuda_part *parts;
    int count;
    struct lab_err *err;
};

static struct cuda_call *add_call(struct planner *p, enum cuda_kernel_id kernel) {
    struct cuda_part *part = &p->parts[p->count++];
    part->is_product = false;
    part->call = call_of(p->launch, kernel);
    part->call.variant.dtype = (int16_t)p->launch->compute;
    return &part->call;
}

static void set_widths(const struct planner *p, int32_t *macros) {
    for (int i = 0; i < p->mlp->width_count; i++)
        macros[i] = p->mlp->widths[i];
}

static void add_address(struct cuda_call *call, const void *data) {
    add_integer(call, (int64_t)(uintptr_t)data);
}

/* out = op(a)·op(b), in fp32 whatever the factors are. */
static void add_product(struct planner *p, struct lab_tensor a, struct lab_tensor b, float *out,
                        int64_t rows, int64_t columns, bool transpose_a, bool transpose_b) {
    struct cuda_part *part = &p->parts[p->count++];
    enum lab_dtype dtype = p->launch->compute == LAB_BF16 ? LAB_FP32 : p->launch->compute;
    part->is_product = true;
    part->product = (struct lab_launch){.op = LAB_OP_GEMM,
                                        .in = {a, b},
                                        .out = lab_tensor_matrix(out, dtype, rows, columns),
                                        .transpose_a = transpose_a,
                                        .transpose_b = transpose_b};
}

/*
 * The last product by our own kernel where it can, with sums that are rounded: cuBLASLt's in tf32
 * are cut off, which takes some of them to the other side of ReLU's edge, and gradients 1 % away.
 */
static int take_over(struct planner *p) {
    struct cuda_part *part = &p->parts[p->count - 1];
    enum cuda_way way = CUDA_WAY_KERNEL;
    part->product.tuning = gemm_hopper_spread(&part->product, p->capacity);
    if (!part->product.tuning.count)
        return 0;
    if (plan_gemm_hopper(&part->product, p->capacity, &way, &part->call, p->err))
        return -1;
    part->is_product = way != CUDA_WAY_KERNEL;
    if (!part->is_product)
        part->call.variant.macros[GEMM_HOPPER_EPILOGUE] |= GEMM_HOPPER_ROUNDS;
    return 0;
}

/* --- factors of products --- */

static struct lab_tensor matrix(const struct planner *p, const void *data, int64_t rows,
                                int64_t columns) {
    return lab_tensor_matrix((void *)(uintptr_t)data, p->launch->compute, rows, columns);
}

/* Where products of this hidden layer's outputs, or of their derivatives, go. */
static float *sums_of(const struct planner *p, int layer) {
    return p->work + lab_mlp_delta_at(p->mlp, layer);
}

static struct lab_tensor outputs_of(const struct planner *p, int layer) {
    return matrix(p, p->work + lab_mlp_output_at(p->mlp, layer), p->mlp->rows,
                  p->mlp->widths[layer + 1]);
}

static struct lab_tensor inputs_of(const struct planner *p, int layer) {
    return layer ? outputs_of(p, layer - 1)
                 : matrix(p, p->scratch + p->room.x, p->mlp->rows, pitch_of(p->mlp));
}

static struct lab_tensor deltas_of(const struct planner *p, int layer) {
    int64_t columns = p->mlp->widths[layer + 1];
    const char *half = (const char *)outputs_of(p, layer).data + p->mlp->rows * columns * 2;
    return matrix(p, p->launch->compute == LAB_BF16 ? half : (const char *)sums_of(p, layer),
                  p->mlp->rows, columns);
}

/* In fp32 those of the state itself, but for the first layer's. */
static struct lab_tensor weights_of(const struct planner *p, int layer) {
    const struct lab_mlp *mlp = p->mlp;
    int64_t at =
        mlp->widths[1] * pitch_of(mlp) + lab_mlp_weight_at(mlp, layer) - lab_mlp_weight_at(mlp, 1);
    const char *data = p->scratch + p->room.weights;
    if (layer && p->launch->compute == LAB_FP32)
        data = (const char *)(p->state + lab_mlp_weight_at(mlp, layer));
    else if (layer)
        data += at * (int64_t)lab_dtype_bytes(p->launch->compute);
    return matrix(p, data, mlp->widths[layer + 1], layer ? mlp->widths[layer] : pitch_of(mlp));
}

/* --- kernels --- */

static void add_batch(struct planner *p, struct cuda_call *call) {
    add_integer(call, p->mlp->batch);
    add_integer(call, p->mlp->first_row);
    add_integer(call, p->mlp->rows);
    add_integer(call, lab_tensor_rows(&p->launch->in[OP_MLP_X]) / p->mlp->batch);
}

static const float *tail_of(const struct planner *p) {
    return p->state + 3 * lab_mlp_stride(lab_mlp_parameters(p->mlp));
}

static int add_take(struct planner *p) {
    struct cuda_call *call = add_call(p, CUDA_KERNEL_mlp_take);
    set_widths(p, call->variant.macros);
    add_pointer(call, &p->launch->in[OP_MLP_X]);
    add_address(call, p->state);
    add_address(call, inputs_of(p, 0).data);
    add_address(call, weights_of(p, 0).data);
    add_address(call, p->scratch + p->room.rate);
    add_batch(p, call);
    add_float(call, p->launch->adam.learning_rate);
    add_float(call, p->launch->adam.beta1);
    add_float(call, p->launch->adam.beta2);
    return set_blocks(call, (int64_t)p->capacity.sm_count * TAKE_BLOCKS, THREADS, p->err);
}

static int add_outputs(struct planner *p, int layer) {
    const struct lab_mlp *mlp = p->mlp;
    struct cuda_call *call = add_call(p, CUDA_KERNEL_mlp_outputs);
    add_address(call, sums_of(p, layer));
    add_address(call, p->state + lab_mlp_bias_at(mlp, layer));
    add_address(call, tail_of(p));
    add_address(call, outputs_of(p, layer).data);
    add_integer(call, (int64_t)mlp->seed);
    add_integer(call, mlp->first_row);
    add_integer(call, mlp->rows);
    add_integer(call, mlp->widths[layer + 1]);
    add_integer(call, layer);
    add_integer(call, lab_mlp_threshold(mlp));
    add_float(call, lab_mlp_scale(mlp));
    int64_t threads = mlp->rows * quotient_up(mlp->widths[layer + 1], LAB_MLP_GROUP) * 4;
    return set_blocks(call, quotient_up(threads, THREADS), THREADS, p->err);
}

static int add_head(struct planner *p) {
    const struct lab_mlp *mlp = p->mlp;
    int last = p->layers - 1;
    struct cuda_call *call = add_call(p, CUDA_KERNEL_mlp_head);
    set_widths(p, call->variant.macros);
    add_address(call, inputs_of(p, last).data);
    add_address(call, weights_of(p, last).data);
    add_address(call, p->state + lab_mlp_bias_at(mlp, last));
    add_pointer(call, &p->launch->in[OP_MLP_Y]);
    add_address(call, tail_of(p));
    add_address(call, sums_of(p, last));
    add_address(call, deltas_of(p, last - 1).data);
    add_address(call, p->scratch + p->room.heads);
    add_batch(p, call);
    add_float(call, lab_mlp_scale(mlp));
    add_float(call, (float)(2 / ((double)mlp->batch * mlp->widths[p->layers])));
    return set_blocks(call, quotient_up(mlp->rows, HEAD_ROWS), THREADS, p->err);
}

static int add_deltas(struct planner *p, int layer) {
    const struct lab_mlp *mlp = p->mlp;
    int64_t blocks = quotient_up(mlp->rows, DELTA_ROWS), before = 0;
    for (int l = 0; l < layer; l++)
        before += mlp->widths[l + 1];
    struct cuda_call *call = add_call(p, CUDA_KERNEL_mlp_deltas);
    add_address(call, sums_of(p, layer));
    add_address(call, outputs_of(p, layer).data);
    add_address(call, deltas_of(p, layer).data);
    add_address(call, (float *)(void *)(p->scratch + p->room.deltas) + blocks * before);
    add_integer(call, mlp->rows);
    add_integer(call, mlp->widths[layer + 1]);
    add_float(call, lab_mlp_scale(mlp));
    int64_t across = quotient_up(mlp->widths[layer + 1], DELTA_COLUMNS);
    if (across > GRID_YZ_MAX)
        return refuse_grid(across, GRID_YZ_MAX, p->err);
    call->grid[1] = (unsigned)across;
    return set_blocks(call, blocks, THREADS, p->err);
}

static int add_finish(struct planner *p) {
    const struct lab_mlp *mlp = p->mlp;
    struct cuda_call *call = add_call(p, CUDA_KERNEL_mlp_finish);
    call->variant.macros[0] = p->updates ? 7 : 3;
    set_widths(p, call->variant.macros + 1);
    add_address(call, p->state);
    add_address(call, p->work);
    add_address(call, p->gradient);
    add_address(call, p->new_state);
    add_address(call, p->scratch + p->room.first);
    add_address(call, p->scratch + p->room.deltas);
    add_address(call, p->scratch + p->room.heads);
    add_address(call, p->scratch + p->room.rate);
    add_integer(call, mlp->batch);
    add_integer(call, mlp->rows);
    add_float(call, p->launch->adam.beta1);
    add_float(call, p->launch->adam.beta2);
    add_float(call, p->launch->adam.epsilon);
    return set_blocks(call, quotient_up(lab_mlp_parameters(mlp), (int64_t)4 * THREADS) + 1, THREADS,
                      p->err);
}

/* --- the step --- */

static int add_forward(struct planner *p) {
    for (int l = 0; l + 1 < p->layers; l++) {
        add_product(p, inputs_of(p, l), weights_of(p, l), sums_of(p, l), p->mlp->rows,
                    p->mlp->widths[l + 1], false, true);
        if ((p->launch->compute == LAB_TF32 && take_over(p)) || add_outputs(p, l))
            return -1;
    }
    return 0;
}

static int add_backward(struct planner *p) {
    const struct lab_mlp *mlp = p->mlp;
    for (int l = p->layers - 2; l >= 0; l--) {
        if (l > 0) {
            add_product(p, deltas_of(p, l), weights_of(p, l), sums_of(p, l - 1), mlp->rows,
                        mlp->widths[l], false, false);
            if (add_deltas(p, l - 1))
                return -1;
        }
        float *to = l ? p->gradient + lab_mlp_weight_at(mlp, l)
                      : (float *)(void *)(p->scratch + p->room.first);
        add_product(p, deltas_of(p, l), inputs_of(p, l), to, mlp->widths[l + 1],
                    l ? mlp->widths[l] : pitch_of(mlp), true, false);
    }
    return 0;
}

int plan_mlp_batch_parts(const struct lab_launch *launch, struct cuda_capacity capacity,
                         void *scratch, struct cuda_part parts[CUDA_PARTS], int *ret_count,
                         struct lab_err *err) {
    bool updates = launch->op == LAB_OP_MLP_STEP;
    struct planner p = {
        .launch = launch,
        .mlp = &launch->mlp,
        .capacity = capacity,
        .layers = lab_mlp_layers(&launch->mlp),
        .updates = updates,
        .room = room_of(launch),
        .scratch = scratch,
        .state = launch->in[OP_MLP_STATE].data,
        .work = launch->in[OP_MLP_WORK].data,
        .gradient = updates ? launch->in[OP_MLP_GRADIENT].data : launch->out.data,
        .new_state = updates ? launch->out.data : NULL,
        .parts = parts,
        .err = err,
    };
    if (add_take(&p) || add_forward(&p) || add_head(&p) || add_backward(&p) || add_finish(&p))
        return -1;
    *ret_count = p.count;
    return 0;
}
