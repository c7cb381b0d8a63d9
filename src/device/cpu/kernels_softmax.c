/*
 * kernels_softmax.c: softmax over rows. Little arithmetic for each byte, so memory decides: a row
 * is read once, and its exponentials wait where the result will be, in cache. Where results are
 * stored past the caches they wait in the thread's scratch; that pays where many cores share the
 * memory, and costs where few do. A row too long to wait in cache is read twice instead, in parts.
 */
#include "device/cpu/kernels.h"
#include "device/cpu/simd/simd.h"

#include <math.h>

enum { ROWS, STREAM, PART, PARAMETERS };

#define UNIT_ELEMENTS 16384  /* fewer aren't worth waking a thread for */
#define UNIT_MOST     65536  /* more leave some threads without */
#define PART_LEAST    131072 /* elements of a row that outgrow a second-level cache */
#define PART_DEFAULT  16384

static const struct lab_tunable_parameter parameters[PARAMETERS] = {
    {"rows", "rows per unit of work of a thread", LAB_CHOICES(1, 4, 16, 64, 256, 1024)},
    {"stream", "1: results are stored past the caches", LAB_CHOICES(0, 1)},
    {"part", "elements of a row at a time, each read twice; 0: a row is read once and kept",
     LAB_CHOICES(0, 4096, 16384, 65536)},
};

/* The largest choice that is at most `most`, but not below the first. */
static int32_t choose(const struct lab_tunable_parameter *parameter, int64_t most) {
    int32_t found = parameter->choices[0];
    for (int i = 0; i < parameter->choice_count; i++)
        if (parameter->choices[i] <= most)
            found = parameter->choices[i];
    return found;
}

static void cpu_softmax_fallback(const struct lab_tunable_place *place,
                                 const struct lab_launch *launch, struct lab_tuning *ret_tuning) {
    (void)place;
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    *ret_tuning = (struct lab_tuning){.count = PARAMETERS};
    ret_tuning->values[ROWS] = choose(&parameters[ROWS], cpu_min(rows, UNIT_MOST / columns));
    ret_tuning->values[PART] = columns >= PART_LEAST ? PART_DEFAULT : 0;
}

static int cpu_softmax_check(const struct lab_tunable_place *place, const struct lab_launch *launch,
                             const struct lab_tuning *tuning, struct lab_err *err) {
    (void)place;
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int32_t block = tuning->values[ROWS], part = tuning->values[PART];
    if (block > 1 && block > rows)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "rows=%d: there are only %lld rows",
                           (int)block, (long long)rows);
    if (part >= columns)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "part=%d: a row has only %lld elements, so it has no parts", (int)part,
                           (long long)columns);
    return 0;
}

const struct lab_tunable cpu_tunable_softmax = {
    .kernel = "cpu softmax",
    .version = "1",
    .parameters = parameters,
    .count = PARAMETERS,
    .fallback = cpu_softmax_fallback,
    .check = cpu_softmax_check,
};

static int64_t units(const struct lab_launch *launch, int threads) {
    struct lab_tuning tuning = cpu_tuning_of(&cpu_tunable_softmax, launch);
    int64_t rows = lab_tensor_rows(&launch->out);
    if (threads == 1 || (!launch->tuning.count && lab_tensor_count(&launch->out) < UNIT_ELEMENTS))
        return 1;
    return (rows + tuning.values[ROWS] - 1) / tuning.values[ROWS];
}

/* Reads the row once; its exponentials wait in `kept`, or in the result itself. */
static void row_kept(const struct cpu_simd *simd, float *out, const float *x, int64_t columns,
                     bool streamed, float *kept) {
    float top = -INFINITY, sum = 0;
    float *shares = streamed ? kept : out;
    simd->softmax_part(shares, x, columns, &top, &sum);
    simd->scale(out, shares, columns, 1.0f / sum, streamed);
}

static void row_in_parts(const struct cpu_simd *simd, float *out, const float *x, int64_t columns,
                         int64_t part, bool streamed) {
    float top = -INFINITY, sum = 0;
    for (int64_t at = 0; at < columns; at += part)
        simd->softmax_scan(x + at, cpu_min(part, columns - at), &top, &sum);
    for (int64_t at = 0; at < columns; at += part)
        simd->softmax_write(out + at, x + at, cpu_min(part, columns - at), top, 1.0f / sum,
                            streamed);
}

static void run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t unit_count,
                int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    struct lab_tuning tuning = cpu_tuning_of(&cpu_tunable_softmax, launch);
    int64_t rows = lab_tensor_rows(&launch->out), columns = lab_tensor_columns(&launch->out);
    int64_t part = tuning.values[PART];
    bool streamed = tuning.values[STREAM];
    const float *x = launch->in[0].data;
    float *out = launch->out.data, *kept = NULL;
    if (streamed && !part)
        kept = cpu_scratch_get(scratch, (size_t)columns * sizeof *kept);
    int64_t last = cpu_cut(rows, unit_count, end, 1);
    for (int64_t r = cpu_cut(rows, unit_count, begin, 1); r < last; r++)
        if (part)
            row_in_parts(simd, out + r * columns, x + r * columns, columns, part, streamed);
        else
            row_kept(simd, out + r * columns, x + r * columns, columns, streamed, kept);
}

const struct cpu_kernel cpu_kernel_softmax = {units, run};
