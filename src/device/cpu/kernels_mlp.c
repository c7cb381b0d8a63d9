/*
 * kernels_mlp.c: training steps, in phases. A product is cut into tiles, each one call of OpenBLAS,
 * and what follows the product happens to the tile by the same thread. One phase does what doesn't
 * depend on each other:
 *
 *     forward    layer 0 │ layer 1 │ … │ layer L−1 │ losses
 *     backward   δ(L−2) │ δ(L−3), gradient L−1 │ … │ δ(0), gradient 2 │ gradients 1 and 0 │ the end
 *
 * where δ(l) are the derivatives by the outputs of layer l, made from those of layer l + 1 and its
 * weights. A layer's gradient comes one phase after the last use of its weights, so that the update
 * can be part of it: a tile of the gradient then never leaves the cache. Losses and the end are one
 * unit each, which costs nobody a wait.
 *
 * tf32 and bf16 are what they are on a GPU: a product's operands are rounded to that format, and
 * multiplied and summed up as fp32. It is no faster here; it shows what the format does to
 * training.
 */
#include "device/cpu/blas.h"
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"
#include "device/op/mlp.h"

#include <math.h>
#include <string.h>

#define TILE_FLOPS   4e5 /* below, a tile is done before another thread has noticed */
#define UPDATE_FLOPS 40  /* a parameter */
#define ROW_STEP     4   /* tiles keep to the micro-kernels' steps, and to lines of cache */
#define COLUMN_STEP  16  /* also what dropout wants */
/* of a gradient that is used up at once: stays in the second-level cache */
#define BLOCK_BYTES (1 << 19)

struct training { /* a launch, looked at */
    const struct lab_launch *launch;
    const struct lab_mlp *mlp;
    const struct cpu_simd *simd;
    int layers;
    struct op_layers range; /* of backward; empty for mlp_forward */
    bool forward, update;
    const float *x, *y; /* from the step's first row on */
    const float *state;
    float *work, *gradient; /* gradient: NULL where it is used up at once */
    int64_t step;
    bool rounds, bf16; /* a product's operands: to bf16, or to tf32 */
};

static struct training look(const struct lab_launch *launch, const struct cpu_simd *simd) {
    const struct lab_mlp *mlp = &launch->mlp;
    struct training t = {.launch = launch, .mlp = mlp, .simd = simd};
    t.rounds = launch->compute != LAB_FP32;
    t.bf16 = launch->compute == LAB_BF16;
    bool is_backward = launch->op == LAB_OP_MLP_BACKWARD;
    t.layers = lab_mlp_layers(mlp);
    t.forward = !is_backward;
    t.update = launch->op == LAB_OP_MLP_STEP;
    t.range = launch->op == LAB_OP_MLP_FORWARD ? (struct op_layers){0, 0} : op_mlp_range(mlp);
    t.state = launch->in[is_backward ? (int)OP_BACKWARD_STATE : (int)OP_MLP_STATE].data;
    t.work = launch->op == LAB_OP_MLP_FORWARD
                 ? launch->out.data
                 : launch->in[is_backward ? (int)OP_BACKWARD_WORK : (int)OP_MLP_WORK].data;
    t.gradient = t.update || launch->op == LAB_OP_MLP_FORWARD ? NULL : launch->out.data;
    const float *tail = t.state + lab_mlp_state_count(mlp) - LAB_MLP_TAIL;
    t.step = lab_mlp_step_of(tail[LAB_MLP_STEP_LOW], tail[LAB_MLP_STEP_HIGH]);
    int64_t row = lab_mlp_row(mlp, lab_tensor_rows(&launch->in[OP_MLP_X]), t.step);
    t.x = (const float *)launch->in[OP_MLP_X].data + row * mlp->widths[0];
    if (t.forward)
        t.y = (const float *)launch->in[OP_MLP_Y].data + row * mlp->widths[t.layers];
    return t;
}

static const float *input_of(const struct training *t, int layer) {
    return layer ? t->work + lab_mlp_output_at(t->mlp, layer - 1) : t->x;
}

/* --- tiles --- */

struct tile {
    int64_t row, rows, column, columns;
};

/* `updates`: with Adam behind it, which takes as long as so many flops of a product. */
static int64_t tiles_of(const struct lab_mlp *mlp, int layer, bool updates, int threads) {
    double weights = (double)mlp->widths[layer] * mlp->widths[layer + 1];
    double flops = weights * (2.0 * (double)mlp->rows + (updates ? UPDATE_FLOPS : 0));
    double most = flops / TILE_FLOPS;
    return most >= threads ? threads : cpu_max(1, (int64_t)most);
}

static struct tile tile_at(int64_t rows, int64_t columns, int64_t tiles, int64_t index) {
    struct cpu_grid grid = cpu_grid_of(rows, columns, tiles);
    int64_t y = index / grid.across, x = index % grid.across;
    /* whole groups of dropout where there are enough of them, so that none is drawn twice */
    int64_t step = columns >= grid.across * LAB_MLP_GROUP ? LAB_MLP_GROUP : COLUMN_STEP;
    int64_t row = cpu_cut(rows, grid.down, y, ROW_STEP);
    int64_t column = cpu_cut(columns, grid.across, x, step);
    return (struct tile){row, cpu_cut(rows, grid.down, y + 1, ROW_STEP) - row, column,
                         cpu_cut(columns, grid.across, x + 1, step) - column};
}

/* --- products --- */

/* The floats that a product needs to round its operands in. */
static int64_t product_room(const struct training *t, int64_t m, int64_t n, int64_t k) {
    return t->rounds ? (m + n) * k : 0;
}

static struct cpu_matrix round_matrix(const struct training *t, struct cpu_matrix from,
                                      int64_t rows, int64_t columns, float *to) {
    for (int64_t r = 0; r < rows; r++)
        t->simd->round(to + r * columns, from.data + r * from.stride, columns, t->bf16);
    return (struct cpu_matrix){to, columns, from.transposed};
}

/* out[m,n] = op(a)·op(b) + beta·out; `room` as above. */
static void multiply(const struct training *t, int64_t m, int64_t n, int64_t k, struct cpu_matrix a,
                     struct cpu_matrix b, float beta, float *out, int64_t stride, float *room) {
    if (t->rounds) {
        a = round_matrix(t, a, a.transposed ? k : m, a.transposed ? m : k, room);
        b = round_matrix(t, b, b.transposed ? n : k, b.transposed ? k : n, room + m * k);
    }
    cpu_blas_gemm(m, n, k, 1, a, b, beta, out, stride);
}

/* --- forward --- */

static void drop(const struct training *t, int layer, float *out, struct tile tile) {
    int64_t width = t->mlp->widths[layer + 1];
    struct cpu_dropout dropout = {.threshold = lab_mlp_threshold(t->mlp),
                                  .scale = lab_mlp_scale(t->mlp),
                                  .seed = t->mlp->seed,
                                  .layer = (uint32_t)layer + 256 * (uint32_t)(t->step >> 32),
                                  .step = (uint32_t)t->step};
    for (int64_t r = 0; r < tile.rows; r++) {
        dropout.row = (uint32_t)(t->mlp->first_row + tile.row + r);
        t->simd->relu_dropout(out + r * width, tile.column, tile.columns, &dropout);
    }
}

/* The loss's derivative in the outputs' place. */
static void derive(const struct training *t, float *out, struct tile tile) {
    int64_t width = t->mlp->widths[t->layers];
    float factor = (float)(2 / ((double)t->mlp->batch * (double)width));
    for (int64_t r = 0; r < tile.rows; r++) {
        const float *y = t->y + (tile.row + r) * width + tile.column;
        for (int64_t c = 0; c < tile.columns; c++)
            out[r * width + c] = (out[r * width + c] - y[c]) * factor;
    }
}

static void forward_tile(const struct training *t, int layer, int64_t tiles, int64_t index,
                         struct cpu_scratch *scratch) {
    int64_t in = t->mlp->widths[layer], width = t->mlp->widths[layer + 1];
    struct tile tile = tile_at(t->mlp->rows, width, tiles, index);
    if (tile.rows == 0 || tile.columns == 0)
        return;
    const float *weight = t->state + lab_mlp_weight_at(t->mlp, layer);
    const float *bias = t->state + lab_mlp_bias_at(t->mlp, layer);
    float *out = t->work + lab_mlp_output_at(t->mlp, layer) + tile.row * width + tile.column;
    for (int64_t r = 0; r < tile.rows; r++)
        memcpy(out + r * width, bias + tile.column, (size_t)tile.columns * sizeof *out);
    int64_t room = product_room(t, tile.rows, tile.columns, in);
    multiply(t, tile.rows, tile.columns, in,
             (struct cpu_matrix){input_of(t, layer) + tile.row * in, in, false},
             (struct cpu_matrix){weight + tile.column * in, in, true}, 1, out, width,
             cpu_scratch_get(scratch, (size_t)room * sizeof *out));
    if (layer + 1 < t->layers)
        drop(t, layer, out, tile);
    else
        derive(t, out, tile);
}

/* From the derivatives, which hold the differences. */
static void sum_losses(const struct training *t) {
    double elements = (double)t->mlp->batch * t->mlp->widths[t->layers], mse = 0, mae = 0;
    int64_t end = lab_mlp_output_at(t->mlp, t->layers);
    for (int64_t i = lab_mlp_output_at(t->mlp, t->layers - 1); i < end; i++) {
        double difference = (double)t->work[i] * elements / 2;
        mse += difference * difference;
        mae += fabs(difference);
    }
    t->work[end] = (float)(mse / elements);
    t->work[end + 1] = (float)(mae / elements);
}

/* --- backward --- */

/* The derivatives by the outputs of the layer before `layer`. */
static void delta_tile(const struct training *t, int layer, int64_t tiles, int64_t index,
                       struct cpu_scratch *scratch) {
    int64_t in = t->mlp->widths[layer], out = t->mlp->widths[layer + 1];
    struct tile tile = tile_at(t->mlp->rows, in, tiles, index);
    if (tile.rows == 0 || tile.columns == 0)
        return;
    const float *delta = t->work + lab_mlp_delta_at(t->mlp, layer);
    const float *weight = t->state + lab_mlp_weight_at(t->mlp, layer);
    int64_t at = tile.row * in + tile.column;
    float *to = t->work + lab_mlp_delta_at(t->mlp, layer - 1) + at;
    int64_t room = product_room(t, tile.rows, tile.columns, out);
    multiply(t, tile.rows, tile.columns, out,
             (struct cpu_matrix){delta + tile.row * out, out, false},
             (struct cpu_matrix){weight + tile.column, in, false}, 0, to, in,
             cpu_scratch_get(scratch, (size_t)room * sizeof *to));
    const float *output = t->work + lab_mlp_output_at(t->mlp, layer - 1) + at;
    float scale = lab_mlp_scale(t->mlp);
    for (int64_t r = 0; r < tile.rows; r++)
        t->simd->relu_backward(to + r * in, output + r * in, tile.columns, scale);
}

/* Adam on parameters [at, at + count). */
static void update(const struct training *t, const struct cpu_adam *adam, const float *gradient,
                   int64_t at, int64_t count) {
    struct cpu_adam part = *adam;
    part.parameters += at;
    part.m += at;
    part.v += at;
    part.new_parameters += at;
    part.new_m += at;
    part.new_v += at;
    t->simd->adam(&part, gradient, count);
}

static struct cpu_adam adam_of(const struct lab_adam *adam, int64_t stride, const float *state,
                               float *new_state, int64_t step) {
    return (struct cpu_adam){
        .rate = (float)lab_adam_rate(adam, step),
        .keep1 = 1 - adam->beta1,
        .keep2 = 1 - adam->beta2,
        .epsilon = adam->epsilon,
        .parameters = state,
        .m = state + stride,
        .v = state + 2 * stride,
        .new_parameters = new_state,
        .new_m = new_state + stride,
        .new_v = new_state + 2 * stride,
    };
}

/* out[count] ← the sums of columns [first, first + count) of the derivatives. */
static void sum_rows(const struct training *t, const float *delta, int64_t width, int64_t first,
                     int64_t count, float *out) {
    memcpy(out, delta + first, (size_t)count * sizeof *out);
    for (int64_t r = 1; r < t->mlp->rows; r++)
        t->simd->add(out, out, delta + r * width + first, count);
}

/* The gradient of weights [first, first + count) × a tile's columns: to `out`, `stride` apart. */
static void multiply_gradient(const struct training *t, int layer, int64_t first, int64_t count,
                              const struct tile *tile, float *out, int64_t stride, float *room) {
    int64_t in = t->mlp->widths[layer], width = t->mlp->widths[layer + 1];
    const float *delta = t->work + lab_mlp_delta_at(t->mlp, layer);
    multiply(t, count, tile->columns, t->mlp->rows, (struct cpu_matrix){delta + first, width, true},
             (struct cpu_matrix){input_of(t, layer) + tile->column, in, false}, 0, out, stride,
             room);
}

/* The same, used up at once, in blocks that stay in the cache. */
static void update_tile(const struct training *t, int layer, const struct tile *tile,
                        struct cpu_scratch *scratch) {
    int64_t in = t->mlp->widths[layer], width = t->mlp->widths[layer + 1];
    int64_t block = BLOCK_BYTES / (int64_t)sizeof(float) / tile->columns / ROW_STEP * ROW_STEP;
    block = cpu_min(cpu_max(block, ROW_STEP), tile->rows);
    int64_t room = product_room(t, block, tile->columns, t->mlp->rows);
    float *gradient =
        cpu_scratch_get(scratch, (size_t)(block * (tile->columns + 1) + room) * sizeof *gradient);
    float *sums = gradient + block * tile->columns;
    struct cpu_adam adam = adam_of(&t->launch->adam, lab_mlp_stride(lab_mlp_parameters(t->mlp)),
                                   t->state, t->launch->out.data, t->step);
    int64_t end = tile->row + tile->rows;
    for (int64_t first = tile->row; first < end; first += block) {
        int64_t count = cpu_min(block, end - first);
        int64_t at = lab_mlp_weight_at(t->mlp, layer) + first * in + tile->column;
        multiply_gradient(t, layer, first, count, tile, gradient, tile->columns, sums + block);
        if (tile->columns == in)
            update(t, &adam, gradient, at, count * in);
        else
            for (int64_t r = 0; r < count; r++)
                update(t, &adam, gradient + r * tile->columns, at + r * in, tile->columns);
        if (tile->column > 0)
            continue;
        sum_rows(t, t->work + lab_mlp_delta_at(t->mlp, layer), width, first, count, sums);
        update(t, &adam, sums, lab_mlp_bias_at(t->mlp, layer) + first, count);
    }
}

static void gradient_tile(const struct training *t, int layer, int64_t tiles, int64_t index,
                          struct cpu_scratch *scratch) {
    int64_t in = t->mlp->widths[layer], width = t->mlp->widths[layer + 1];
    struct tile tile = tile_at(width, in, tiles, index);
    if (tile.rows == 0 || tile.columns == 0)
        return;
    if (t->update) {
        update_tile(t, layer, &tile, scratch);
        return;
    }
    float *weight = t->gradient + lab_mlp_weight_at(t->mlp, layer) + tile.row * in + tile.column;
    int64_t room = product_room(t, tile.rows, tile.columns, t->mlp->rows);
    multiply_gradient(t, layer, tile.row, tile.rows, &tile, weight, in,
                      cpu_scratch_get(scratch, (size_t)room * sizeof *weight));
    if (tile.column == 0)
        sum_rows(t, t->work + lab_mlp_delta_at(t->mlp, layer), width, tile.row, tile.rows,
                 t->gradient + lab_mlp_bias_at(t->mlp, layer) + tile.row);
}

/* --- the end --- */

/* What lies between the parts of a state, and behind them. */
static void finish_state(const float *state, float *new_state, int64_t parameters, int64_t step,
                         const float *losses) {
    int64_t stride = lab_mlp_stride(parameters);
    float *tail = new_state + 3 * stride;
    for (int part = 0; part < 3 && new_state != state; part++)
        memcpy(new_state + part * stride + parameters, state + part * stride + parameters,
               (size_t)(stride - parameters) * sizeof *state);
    int64_t high = (step + 1) / LAB_MLP_STEP_BASE;
    tail[LAB_MLP_STEP_LOW] = (float)((step + 1) % LAB_MLP_STEP_BASE);
    tail[LAB_MLP_STEP_HIGH] = (float)high;
    tail[LAB_MLP_MSE] = losses[0];
    tail[LAB_MLP_MAE] = losses[1];
}

static void finish(const struct training *t) {
    const float *losses = t->work + lab_mlp_output_at(t->mlp, t->layers);
    int64_t parameters = lab_mlp_parameters(t->mlp);
    if (t->update)
        finish_state(t->state, t->launch->out.data, parameters, t->step, losses);
    else if (t->range.end == t->layers)
        memcpy(t->gradient + parameters, losses, 2 * sizeof *losses);
}

/* --- phases --- */

struct phase { /* what a phase does; layers of -1 = nothing of that kind */
    int forward, delta;
    int gradients[2];
    bool losses, end;
};

static struct phase phase_at(const struct training *t, int index) {
    struct phase phase = {.forward = -1, .delta = -1, .gradients = {-1, -1}};
    int forward_phases = t->forward ? t->layers + 1 : 0;
    if (index < forward_phases) {
        phase.losses = index == t->layers;
        phase.forward = phase.losses ? -1 : index;
        return phase;
    }
    /* `layer` makes its δ and the one behind it its gradient; layer 0, which makes none, both at
     * once */
    int layer = t->range.end - 1 - (index - forward_phases);
    int behind = layer + 1;
    phase.end = behind < t->range.begin || behind == 0;
    if (phase.end)
        return phase;
    if (layer >= t->range.begin && layer > 0)
        phase.delta = layer;
    if (behind < t->range.end)
        phase.gradients[0] = behind;
    if (layer == 0 && t->range.begin == 0)
        phase.gradients[1] = 0;
    return phase;
}

static int cpu_mlp_phases(const struct lab_launch *launch) {
    struct training t = look(launch, NULL);
    int count = t.forward ? t.layers + 1 : 0;
    bool more = t.range.end > t.range.begin;
    for (; more; count++)
        more = !phase_at(&t, count).end;
    return count;
}

/* Units are numbered in the order of the fields. */
static int64_t cpu_mlp_phase_units(const struct lab_launch *launch, int index, int threads) {
    struct training t = look(launch, NULL);
    struct phase phase = phase_at(&t, index);
    int64_t units = phase.losses || phase.end;
    const int layers[] = {phase.forward, phase.delta, phase.gradients[0], phase.gradients[1]};
    for (int i = 0; i < 4; i++)
        if (layers[i] >= 0)
            units += tiles_of(t.mlp, layers[i], t.update && i >= 2, threads);
    return units;
}

static void run_unit(const struct training *t, const struct phase *phase, int threads, int64_t unit,
                     struct cpu_scratch *scratch) {
    const int layers[] = {phase->forward, phase->delta, phase->gradients[0], phase->gradients[1]};
    for (int i = 0; i < 4; i++) {
        bool updates = t->update && i >= 2;
        int64_t tiles = layers[i] >= 0 ? tiles_of(t->mlp, layers[i], updates, threads) : 0;
        if (unit >= tiles) {
            unit -= tiles;
            continue;
        }
        if (i == 0)
            forward_tile(t, layers[i], tiles, unit, scratch);
        else if (i == 1)
            delta_tile(t, layers[i], tiles, unit, scratch);
        else
            gradient_tile(t, layers[i], tiles, unit, scratch);
        return;
    }
    if (phase->losses)
        sum_losses(t);
    else
        finish(t);
}

static void cpu_mlp_phase_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                              int index, int threads, int64_t begin, int64_t end,
                              struct cpu_scratch *scratch) {
    struct training t = look(launch, simd);
    struct phase phase = phase_at(&t, index);
    for (int64_t unit = begin; unit < end; unit++)
        run_unit(&t, &phase, threads, unit, scratch);
}

const struct cpu_kernel cpu_kernel_mlp = {
    .phases = cpu_mlp_phases, .phase_units = cpu_mlp_phase_units, .phase_run = cpu_mlp_phase_run};

/* --- the update alone --- */

#define UPDATE_PARAMETERS 16384 /* some microseconds */

static int adam_phases(const struct lab_launch *launch) {
    (void)launch;
    return 2; /* the counter, which all read, changes at the end */
}

static int64_t adam_units(const struct lab_launch *launch, int phase, int threads) {
    int64_t parameters = lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2;
    return phase || threads == 1
               ? 1
               : cpu_max(1, cpu_min(parameters / UPDATE_PARAMETERS, 4 * (int64_t)threads));
}

static void adam_run(const struct lab_launch *launch, const struct cpu_simd *simd, int phase,
                     int threads, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    int64_t parameters = lab_tensor_count(&launch->in[OP_ADAM_GRADIENT]) - 2;
    int64_t stride = lab_mlp_stride(parameters), units = adam_units(launch, 0, threads);
    const float *state = launch->in[OP_ADAM_STATE].data, *tail = state + 3 * stride;
    const float *gradient = launch->in[OP_ADAM_GRADIENT].data;
    int64_t step = lab_mlp_step_of(tail[LAB_MLP_STEP_LOW], tail[LAB_MLP_STEP_HIGH]);
    if (phase) { /* a single unit: a thread may have none of it */
        if (begin < end)
            finish_state(state, launch->out.data, parameters, step, gradient + parameters);
        return;
    }
    struct training t = {.simd = simd};
    struct cpu_adam adam = adam_of(&launch->adam, stride, state, launch->out.data, step);
    int64_t from = cpu_cut(parameters, units, begin, COLUMN_STEP);
    update(&t, &adam, gradient + from, from, cpu_cut(parameters, units, end, COLUMN_STEP) - from);
}

const struct cpu_kernel cpu_kernel_adam = {
    .phases = adam_phases, .phase_units = adam_units, .phase_run = adam_run};
