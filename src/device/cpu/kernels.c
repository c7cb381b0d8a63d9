/*
 * kernels.c: the table of kernels, and those of them that go over memory once: by elements or by
 * rows. Matrix products, attention, softmax and training have files of their own.
 */
#include "device/cpu/kernels.h"

#include "base/mem.h"
#include "device/cpu/simd/simd.h"

#include <stdlib.h>

#define SCRATCH_ALIGNMENT 64

void *cpu_scratch_get(struct cpu_scratch *scratch, size_t size_bytes) {
    if (scratch->size_bytes < size_bytes) {
        free(scratch->memory);
        size_t rounded =
            (size_bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        scratch->memory = aligned_alloc(SCRATCH_ALIGNMENT, rounded);
        if (!scratch->memory)
            lab_mem_exhausted(1, rounded);
        scratch->size_bytes = rounded;
    }
    return scratch->memory;
}

/*
 * A thread is only worth waking for this many elements (some microseconds); beyond that a few units
 * for each thread even out their speeds.
 */
#define UNIT_ELEMENTS    16384
#define UNITS_PER_THREAD 4

int64_t cpu_units_of(int64_t elements, int64_t pieces, int threads) {
    if (threads == 1)
        return 1;
    int64_t units = cpu_min(elements / UNIT_ELEMENTS, (int64_t)threads * UNITS_PER_THREAD);
    return cpu_max(1, cpu_min(units, pieces));
}

/* --- by elements --- */

#define CACHE_LINE 16 /* floats: units don't share lines */

static int64_t element_units(const struct lab_launch *launch, int threads) {
    int64_t count = lab_tensor_count(&launch->out);
    return cpu_units_of(count, count, threads);
}

struct range {
    int64_t begin, end;
};

static struct range elements_of(const struct lab_launch *launch, int64_t units, int64_t begin,
                                int64_t end) {
    int64_t count = lab_tensor_count(&launch->out);
    return (struct range){cpu_cut(count, units, begin, CACHE_LINE),
                          cpu_cut(count, units, end, CACHE_LINE)};
}

static void fill_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                     int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range part = elements_of(launch, units, begin, end);
    simd->fill((float *)launch->out.data + part.begin, launch->value, part.end - part.begin);
}

static void add_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                    int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range part = elements_of(launch, units, begin, end);
    const float *a = launch->in[0].data, *b = launch->in[1].data;
    simd->add((float *)launch->out.data + part.begin, a + part.begin, b + part.begin,
              part.end - part.begin);
}

static void gelu_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                     int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range part = elements_of(launch, units, begin, end);
    const float *x = launch->in[0].data;
    simd->gelu((float *)launch->out.data + part.begin, x + part.begin, part.end - part.begin);
}

static void gelu_tanh_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                          int64_t units, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range part = elements_of(launch, units, begin, end);
    int64_t count = part.end - part.begin;
    const float *x = (const float *)launch->in[0].data + part.begin;
    float *out = (float *)launch->out.data + part.begin;
    if (launch->op == LAB_OP_GELU_TANH)
        simd->gelu_tanh(out, x, count);
    else
        simd->gelu_tanh_backward(out, x, (const float *)launch->in[1].data + part.begin, count);
}

/* --- by rows --- */

static int64_t row_units(const struct lab_launch *launch, int threads) {
    return cpu_units_of(lab_tensor_count(&launch->out), lab_tensor_rows(&launch->out), threads);
}

static struct range rows_of(const struct lab_launch *launch, int64_t units, int64_t begin,
                            int64_t end) {
    int64_t rows = lab_tensor_rows(&launch->out);
    return (struct range){cpu_cut(rows, units, begin, 1), cpu_cut(rows, units, end, 1)};
}

static void bias_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                     int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range rows = rows_of(launch, units, begin, end);
    int64_t columns = lab_tensor_columns(&launch->out);
    const float *x = launch->in[0].data, *bias = launch->in[1].data;
    float *out = launch->out.data;
    for (int64_t r = rows.begin; r < rows.end; r++)
        simd->add(out + r * columns, x + r * columns, bias, columns);
}

static void layer_norm_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                           int64_t units, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range rows = rows_of(launch, units, begin, end);
    int64_t columns = lab_tensor_columns(&launch->out);
    const float *x = launch->in[0].data;
    float *out = launch->out.data;
    float *stats = launch->also.rank ? launch->also.data : NULL;
    for (int64_t r = rows.begin; r < rows.end; r++) {
        if (stats) /* first: the output may lie over x */
            cpu_row_stats(x + r * columns, columns, (double)launch->epsilon, stats + 2 * r);
        simd->layer_norm(out + r * columns, x + r * columns, launch->in[1].data, launch->in[2].data,
                         columns, launch->epsilon);
    }
}

/* Row `row` of the output: the patch's pixel rows one after the other, channels interleaved. */
static void patch_row(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t row) {
    const int64_t *image = launch->in[0].shape;
    int64_t channels = image[1], height = image[2], width = image[3], patch = launch->patch;
    int64_t across = width / patch, patches = height / patch * across;
    int64_t top = row % patches / across * patch, left = row % across * patch;
    const float *from = (const float *)launch->in[0].data +
                        row / patches * channels * height * width + top * width + left;
    float *to = (float *)launch->out.data + row * patch * patch * channels;
    for (int64_t y = 0; y < patch; y++)
        simd->interleave(to + y * patch * channels, from + y * width, height * width, channels,
                         patch);
}

static void patchify_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                         int64_t units, int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    struct range rows = rows_of(launch, units, begin, end);
    for (int64_t r = rows.begin; r < rows.end; r++)
        patch_row(launch, simd, r);
}

static void patchify_layer_norm_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                                    int64_t units, int64_t begin, int64_t end,
                                    struct cpu_scratch *scratch) {
    (void)scratch;
    struct range rows = rows_of(launch, units, begin, end);
    int64_t columns = lab_tensor_columns(&launch->out);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        float *to = (float *)launch->out.data + r * columns;
        patch_row(launch, simd, r);
        simd->layer_norm(to, to, launch->in[1].data, launch->in[2].data, columns, launch->epsilon);
    }
}

/* Both kinds of embedding; `class` and `position` are inputs `first` and the next. */
static void embed_rows(const struct lab_launch *launch, const struct cpu_simd *simd,
                       struct range rows, int first) {
    int64_t columns = lab_tensor_columns(&launch->out);
    int64_t tokens = lab_tensor_rows(&launch->in[first + 1]);
    const float *x = launch->in[0].data, *class = launch->in[first].data;
    const float *position = launch->in[first + 1].data;
    for (int64_t r = rows.begin; r < rows.end; r++) {
        int64_t image = r / tokens, token = r % tokens;
        float *to = (float *)launch->out.data + r * columns;
        const float *from = class;
        if (token)
            from = x + (image * (tokens - 1) + token - 1) * columns;
        if (token && launch->op == LAB_OP_LAYER_NORM_EMBED) {
            simd->layer_norm(to, from, launch->in[1].data, launch->in[2].data, columns,
                             launch->epsilon);
            from = to;
        }
        simd->add(to, from, position + token * columns, columns);
    }
}

static void embed_run(const struct lab_launch *launch, const struct cpu_simd *simd, int64_t units,
                      int64_t begin, int64_t end, struct cpu_scratch *scratch) {
    (void)scratch;
    embed_rows(launch, simd, rows_of(launch, units, begin, end), 1);
}

static void layer_norm_embed_run(const struct lab_launch *launch, const struct cpu_simd *simd,
                                 int64_t units, int64_t begin, int64_t end,
                                 struct cpu_scratch *scratch) {
    (void)scratch;
    embed_rows(launch, simd, rows_of(launch, units, begin, end), 3);
}

/* --- the table --- */

#define KERNEL(units, run) (&(const struct cpu_kernel){units, run})

static const struct cpu_kernel *const kernels[LAB_OP_COUNT] = {
    [LAB_OP_FILL] = KERNEL(element_units, fill_run),
    [LAB_OP_ADD] = KERNEL(element_units, add_run),
    [LAB_OP_GELU] = KERNEL(element_units, gelu_run),
    [LAB_OP_GELU_TANH] = KERNEL(element_units, gelu_tanh_run),
    [LAB_OP_GELU_TANH_BACKWARD] = KERNEL(element_units, gelu_tanh_run),
    [LAB_OP_BIAS] = KERNEL(row_units, bias_run),
    [LAB_OP_LAYER_NORM] = KERNEL(row_units, layer_norm_run),
    [LAB_OP_PATCHIFY] = KERNEL(row_units, patchify_run),
    [LAB_OP_PATCHIFY_LAYER_NORM] = KERNEL(row_units, patchify_layer_norm_run),
    [LAB_OP_EMBED] = KERNEL(row_units, embed_run),
    [LAB_OP_LAYER_NORM_EMBED] = KERNEL(row_units, layer_norm_embed_run),
    [LAB_OP_RESIDUAL_LAYER_NORM] = &cpu_kernel_residual_layer_norm,
    [LAB_OP_LAYER_NORM_BACKWARD] = &cpu_kernel_layer_norm_backward,
    [LAB_OP_SOFTMAX] = &cpu_kernel_softmax,
    [LAB_OP_CROSS_ENTROPY] = &cpu_kernel_cross_entropy,
    [LAB_OP_ATTENTION] = &cpu_kernel_attention,
    [LAB_OP_FLASH_ATTENTION] = &cpu_kernel_flash,
    [LAB_OP_FLASH_ATTENTION_BACKWARD] = &cpu_kernel_flash_backward,
    [LAB_OP_MLP_FORWARD] = &cpu_kernel_mlp,
    [LAB_OP_MLP_BACKWARD] = &cpu_kernel_mlp,
    [LAB_OP_MLP_GRADIENT] = &cpu_kernel_mlp,
    [LAB_OP_MLP_STEP] = &cpu_kernel_mlp,
    [LAB_OP_ADAM] = &cpu_kernel_adam,
    [LAB_OP_ADAMW] = &cpu_kernel_adamw,
    [LAB_OP_CLIP] = &cpu_kernel_clip,
    [LAB_OP_EMBED_TOKENS] = &cpu_kernel_embed_tokens,
    [LAB_OP_EMBED_TOKENS_BACKWARD] = &cpu_kernel_embed_tokens_backward,
    [LAB_OP_COLUMN_SUM] = &cpu_kernel_column_sum,
    [LAB_OP_ACCUMULATE] = &cpu_kernel_accumulate,
};

const struct cpu_kernel *cpu_kernel_get(enum lab_op_id op, enum lab_dtype dtype) {
    bool trains = op >= LAB_OP_MLP_FORWARD && op <= LAB_OP_MLP_STEP; /* which keep fp32 in memory */
    if (dtype != LAB_FP32 && !(trains && (dtype == LAB_TF32 || dtype == LAB_BF16)))
        return NULL;
    if (lab_op_is_gemm(op))
        return &cpu_kernel_gemm;
    return (int)op >= 0 && op < LAB_OP_COUNT ? kernels[op] : NULL;
}
