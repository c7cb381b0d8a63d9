/*
 * kernels_language.c: what a language model's training does between its products: layer norm with
 * the residual's sum, its backward, cross-entropy, AdamW. Sums of rows and columns are double.
 */
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <math.h>

static const float *row_of(const struct lab_launch *launch, int input, int64_t row) {
    return (const float *)launch->in[input].data + row * lab_tensor_columns(&launch->in[input]);
}

/* --- layer norm of a sum --- */

enum { X, GAMMA, BETA, RESIDUAL };

static int64_t forward_units(const struct lab_launch *launch, int threads) {
    return cpu_units_of(lab_tensor_count(&launch->out), launch->out.shape[1], threads);
}

void cpu_row_stats(const float *x, int64_t columns, double epsilon, float stats[2]) {
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < columns; c++)
        sum += (double)x[c];
    double mean = sum / (double)columns;
    for (int64_t c = 0; c < columns; c++)
        squares += ((double)x[c] - mean) * ((double)x[c] - mean);
    stats[0] = (float)mean;
    stats[1] = (float)(1 / sqrt(squares / (double)columns + epsilon));
}

static void forward_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                        int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    int64_t rows = launch->out.shape[1], columns = launch->out.shape[2];
    float *stats = launch->also.rank ? launch->also.data : NULL;
    for (int64_t r = cpu_cut(rows, units, begin, 1); r < cpu_cut(rows, units, end, 1); r++) {
        float *sum = (float *)launch->out.data + r * columns;
        simd->add(sum, row_of(launch, X, r), row_of(launch, RESIDUAL, r), columns);
        simd->layer_norm(sum + rows * columns, sum, launch->in[GAMMA].data, launch->in[BETA].data,
                         columns, launch->epsilon);
        if (stats)
            cpu_row_stats(sum, columns, (double)launch->epsilon, stats + 2 * r);
    }
}

const struct cpu_kernel cpu_kernel_residual_layer_norm = {forward_units, forward_run};

/* --- its backward: first gamma and beta, a strip of columns each, then rows, which may lie over
 * what the first reads, then the rows' own sums --- */

enum { B_X, B_GAMMA, B_STATS, B_DERIVATIVE, B_RESIDUAL };

#define STRIP 64

static int backward_phases(const struct lab_launch *launch) {
    return launch->also.rank ? 3 : 1;
}

static bool is_strips(const struct lab_launch *launch, int phase) {
    return launch->also.rank && phase != 1;
}

static int64_t backward_units(const struct lab_launch *launch, int phase, int threads) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    if (is_strips(launch, phase))
        return (columns + STRIP - 1) / STRIP;
    return cpu_units_of(rows * columns, rows, threads);
}

static void sum_strip(const struct lab_launch *launch, int64_t first) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t count = cpu_min(STRIP, columns - first);
    double gamma[STRIP] = {0}, beta[STRIP] = {0};
    for (int64_t r = 0; r < rows; r++) {
        const float *x = row_of(launch, B_X, r) + first, *stats = row_of(launch, B_STATS, r);
        const float *d = row_of(launch, B_DERIVATIVE, r) + first;
        for (int64_t c = 0; c < count; c++) {
            gamma[c] += (double)(d[c] * (x[c] - stats[0]) * stats[1]);
            beta[c] += (double)d[c];
        }
    }
    float *also = (float *)launch->also.data + first;
    for (int64_t c = 0; c < count; c++) {
        also[columns + c] = (float)gamma[c];
        also[2 * columns + c] = (float)beta[c];
    }
}

static void sum_output_strip(const struct lab_launch *launch, int64_t first) {
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t count = cpu_min(STRIP, columns - first);
    double sums[STRIP] = {0};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < count; c++)
            sums[c] += (double)((const float *)launch->out.data)[r * columns + first + c];
    for (int64_t c = 0; c < count; c++)
        ((float *)launch->also.data)[first + c] = (float)sums[c];
}

static void derive_row(const struct lab_launch *launch, int64_t row) {
    int64_t columns = lab_tensor_columns(&launch->out);
    const float *x = row_of(launch, B_X, row), *d = row_of(launch, B_DERIVATIVE, row);
    const float *residual = row_of(launch, B_RESIDUAL, row), *gamma = launch->in[B_GAMMA].data;
    const float *stats = row_of(launch, B_STATS, row);
    float *out = (float *)launch->out.data + row * columns, mean = stats[0], scale = stats[1];
    double a = 0, b = 0;
    for (int64_t c = 0; c < columns; c++) {
        a += (double)(gamma[c] * d[c]);
        b += (double)(gamma[c] * d[c] * (x[c] - mean) * scale);
    }
    float flat = (float)(a / (double)columns), tilt = (float)(b / (double)columns) * scale;
    for (int64_t c = 0; c < columns; c++)
        out[c] = residual[c] + (gamma[c] * d[c] - flat - (x[c] - mean) * tilt) * scale;
}

static void backward_run(const struct lab_launch *launch, const struct cpu_simd *simd, int phase,
                         int threads, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)simd, (void)scratch;
    if (is_strips(launch, phase)) {
        for (int64_t i = begin; i < end; i++)
            if (phase == 0)
                sum_strip(launch, i * STRIP);
            else
                sum_output_strip(launch, i * STRIP);
        return;
    }
    int64_t rows = lab_tensor_rows(&launch->out), units = backward_units(launch, phase, threads);
    for (int64_t r = cpu_cut(rows, units, begin, 1); r < cpu_cut(rows, units, end, 1); r++)
        derive_row(launch, r);
}

const struct cpu_kernel cpu_kernel_layer_norm_backward = {
    .phases = backward_phases, .phase_units = backward_units, .phase_run = backward_run};

/* --- cross-entropy --- */

enum { LOGITS, TARGETS };

static int64_t entropy_units(const struct lab_launch *launch, int threads) {
    return cpu_units_of(lab_tensor_count(&launch->out), lab_tensor_rows(&launch->out), threads);
}

static void entropy_row(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t row) {
    int64_t columns = lab_tensor_columns(&launch->out), classes = launch->classes;
    const float *x = row_of(launch, LOGITS, row);
    float target = ((const float *)launch->in[TARGETS].data)[row], top = -INFINITY, sum = 0;
    float *out = (float *)launch->out.data + row * columns, loss = 0, scale = 0;
    bool there = target >= 0 && target < (float)classes;
    simd->softmax_scan(x, classes, &top, &sum);
    if (!(target < 0)) {
        scale = there ? launch->scale : NAN;
        loss = there ? top + logf(sum) - x[(int64_t)target] : NAN;
    }
    simd->softmax_write(out, x, classes, top, scale / sum, false);
    if (there)
        out[(int64_t)target] -= scale;
    simd->fill(out + classes, 0, columns - classes);
    if (launch->also.rank)
        ((float *)launch->also.data)[row] = loss;
}

static void entropy_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                        int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    int64_t rows = lab_tensor_rows(&launch->out);
    for (int64_t r = cpu_cut(rows, units, begin, 1); r < cpu_cut(rows, units, end, 1); r++)
        entropy_row(launch, simd, r);
}

const struct cpu_kernel cpu_kernel_cross_entropy = {entropy_units, entropy_run};

/* --- AdamW --- */

enum { GRADIENT, STATE, CONTROL };

#define CACHE_LINE 16 /* floats */

static int64_t adamw_units(const struct lab_launch *launch, int threads) {
    int64_t count = lab_tensor_count(&launch->out);
    return cpu_units_of(count, count, threads);
}

struct update { /* of neighbours that all decay or don't */
    const float *gradient, *state;
    float *out, *new_state; /* new_state: NULL = not wanted */
    int64_t stride;         /* from one part of a state to the next */
    float scale, keep1, keep2, rate1, bias2, epsilon, shrink, threshold;
};

static void update_all(const struct update *u, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
        float g = u->gradient[i] * u->scale, m = u->state[u->stride + i];
        float v = u->state[2 * u->stride + i];
        m += (g - m) * u->keep1;
        v += (g * g - v) * u->keep2;
        float p = u->state[i] * u->shrink - u->rate1 * m / (sqrtf(v * u->bias2) + u->epsilon);
        p = fabsf(p) < u->threshold ? 0 : p;
        if (u->new_state) {
            u->new_state[i] = p;
            u->new_state[u->stride + i] = m;
            u->new_state[2 * u->stride + i] = v;
        }
        u->out[i] = p;
    }
}

static void adamw_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                      int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)simd, (void)scratch;
    const float *control = launch->in[CONTROL].data;
    int64_t count = lab_tensor_count(&launch->out);
    int64_t from = cpu_cut(count, units, begin, CACHE_LINE);
    int64_t to = cpu_cut(count, units, end, CACHE_LINE);
    struct update u = {
        .gradient = launch->in[GRADIENT].data,
        .state = launch->in[STATE].data,
        .out = launch->out.data,
        .new_state = launch->also.rank ? launch->also.data : NULL,
        .stride = count,
        .scale = control[LAB_ADAMW_SCALE],
        .keep1 = 1 - launch->adam.beta1,
        .keep2 = 1 - launch->adam.beta2,
        .rate1 = control[LAB_ADAMW_RATE] * control[LAB_ADAMW_BIAS1],
        .bias2 = control[LAB_ADAMW_BIAS2],
        .epsilon = launch->adam.epsilon,
        .shrink = 1 - control[LAB_ADAMW_RATE] * launch->decay,
        .threshold = control[LAB_ADAMW_THRESHOLD],
    };
    int64_t edge = cpu_max(from, cpu_min(to, launch->decayed));
    update_all(&u, from, edge);
    u.shrink = 1;
    u.threshold = 0;
    update_all(&u, edge, to);
}

const struct cpu_kernel cpu_kernel_adamw = {adamw_units, adamw_run};
