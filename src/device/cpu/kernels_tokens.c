/*
 * kernels_tokens.c: a language model's embedding both ways, and what gathers and bounds a gradient:
 * sums of columns, fp32 into its place, the norm. Sums of columns and of squares are double.
 */
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <math.h>
#include <string.h>

static const float *row_of(const struct lab_launch *launch, int input, int64_t row) {
    return (const float *)launch->in[input].data + row * lab_tensor_columns(&launch->in[input]);
}

/* The row of a table that a token names; -1 = it has none. */
static int64_t place_of(const struct lab_launch *launch, int64_t row, int64_t count) {
    float token = ((const float *)launch->in[0].data)[row];
    return token >= 0 && token < (float)count ? (int64_t)token : -1;
}

/* --- forward --- */

enum { TOKENS, TABLE, POSITION };

static int64_t embed_units(const struct lab_launch *launch, int threads) {
    return cpu_units_of(lab_tensor_count(&launch->out), lab_tensor_rows(&launch->out), threads);
}

static void embed_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                      int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t count = lab_tensor_rows(&launch->in[TABLE]);
    int64_t positions = lab_tensor_rows(&launch->in[POSITION]);
    for (int64_t r = cpu_cut(rows, units, begin, 1); r < cpu_cut(rows, units, end, 1); r++) {
        int64_t token = place_of(launch, r, count);
        float *out = (float *)launch->out.data + r * columns;
        if (token < 0)
            simd->fill(out, NAN, columns);
        else
            simd->add(out, row_of(launch, TABLE, token), row_of(launch, POSITION, r % positions),
                      columns);
    }
}

const struct cpu_kernel cpu_kernel_embed_tokens = {embed_units, embed_run};

/* --- backward: a unit is a strip of columns, of all rows in their order --- */

enum { B_TOKENS, DERIVATIVE, B_BASE };

#define STRIP 64

static int64_t strip_units(const struct lab_launch *launch, int threads) {
    (void)threads;
    return (lab_tensor_columns(&launch->out) + STRIP - 1) / STRIP;
}

static void derive_strip(const struct lab_launch *launch, const struct cpu_simd *simd,
                         int64_t first) {
    int64_t tokens = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t count = cpu_min(STRIP, columns - first);
    float *out = (float *)launch->out.data + first;
    const float *base = (const float *)launch->in[B_BASE].data + first;
    for (int64_t v = 0; v < tokens && base != out; v++)
        memcpy(out + v * columns, base + v * columns, (size_t)count * sizeof *out);
    for (int64_t r = 0; r < lab_tensor_rows(&launch->in[DERIVATIVE]); r++) {
        int64_t token = place_of(launch, r, tokens);
        float *to = out + token * columns;
        if (token >= 0)
            simd->add(to, to, row_of(launch, DERIVATIVE, r) + first, count);
    }
}

static void derive_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                       int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)units, (void)scratch;
    for (int64_t i = begin; i < end; i++)
        derive_strip(launch, simd, i * STRIP);
}

const struct cpu_kernel cpu_kernel_embed_tokens_backward = {strip_units, derive_run};

/* --- gradients --- */

enum { X, BASE };

static float base_of(const struct lab_launch *launch, int64_t i) {
    return launch->value != 0 ? launch->value * ((const float *)launch->in[BASE].data)[i] : 0;
}

static void sum_strip(const struct lab_launch *launch, int64_t first) {
    int64_t count = cpu_min(STRIP, lab_tensor_columns(&launch->in[X]) - first);
    double sums[STRIP] = {0};
    for (int64_t r = 0; r < lab_tensor_rows(&launch->in[X]); r++) {
        const float *x = row_of(launch, X, r) + first;
        for (int64_t c = 0; c < count; c++)
            sums[c] += (double)x[c];
    }
    for (int64_t c = 0; c < count; c++)
        ((float *)launch->out.data)[first + c] =
            (float)(sums[c] + (double)base_of(launch, first + c));
}

static int64_t sum_units(const struct lab_launch *launch, int threads) {
    (void)threads;
    return (lab_tensor_columns(&launch->in[X]) + STRIP - 1) / STRIP;
}

static void sum_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                    int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)simd, (void)units, (void)scratch;
    for (int64_t i = begin; i < end; i++)
        sum_strip(launch, i * STRIP);
}

const struct cpu_kernel cpu_kernel_column_sum = {sum_units, sum_run};

#define CACHE_LINE 16 /* floats */

static int64_t accumulate_units(const struct lab_launch *launch, int threads) {
    int64_t count = lab_tensor_count(&launch->out);
    return cpu_units_of(count, count, threads);
}

static void accumulate_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                           int64_t units, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)simd, (void)scratch;
    int64_t count = lab_tensor_count(&launch->out);
    const float *x = launch->in[X].data;
    float *out = launch->out.data;
    for (int64_t i = cpu_cut(count, units, begin, CACHE_LINE);
         i < cpu_cut(count, units, end, CACHE_LINE); i++)
        out[i] = x[i] + base_of(launch, i);
}

const struct cpu_kernel cpu_kernel_accumulate = {accumulate_units, accumulate_run};

enum { GRADIENT, CONTROL };

static int64_t clip_units(const struct lab_launch *launch, int threads) {
    (void)launch, (void)threads;
    return 1;
}

static void clip_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                     int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)simd, (void)units, (void)scratch;
    if (begin == end) /* of a thread that has no part in it */
        return;
    const float *gradient = launch->in[GRADIENT].data, *control = launch->in[CONTROL].data;
    double squares = 0;
    for (int64_t i = 0; i < lab_tensor_count(&launch->in[GRADIENT]); i++)
        squares += (double)gradient[i] * (double)gradient[i];
    double norm = sqrt(squares) * (double)control[LAB_ADAMW_SCALE], limit = (double)launch->value;
    *(float *)launch->out.data = (float)norm;
    if (!launch->also.rank)
        return;
    float *also = launch->also.data;
    memmove(also, control, LAB_ADAMW_CONTROLS * sizeof *also);
    also[LAB_ADAMW_SCALE] *= norm > limit ? (float)(limit / norm) : 1;
    also[LAB_ADAMW_NORM] = (float)norm;
}

const struct cpu_kernel cpu_kernel_clip = {clip_units, clip_run};
