/*
 * gemm.c: one matrix product, out[m,n] = op(a)·op(b), plain or with the epilogues that a linear
 * layer has. The measure of a device's arithmetic.
 *
 * The layout's letters are BLAS's: n as stored, t transposed; "nt" is what a linear layer does, whose
 * weights are kept as [n,k].
 */
#include "workload/workload.h"

#include "base/random.h"

#include <math.h>

struct gemm_config {
    int64_t m, n, k;
    const char *layout, *dtype, *epilogue;
};

static const char *const layouts[] = {"nn", "nt", "tn", NULL};
static const char *const epilogues[] = {"none", "bias", "bias_gelu", NULL};

static const struct lab_option options[] = {
    {"m", LAB_OPTION_INT, offsetof(struct gemm_config, m), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "rows", .help = "rows of the result"},
    {"n", LAB_OPTION_INT, offsetof(struct gemm_config, n), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "columns", .help = "columns of the result"},
    {"k", LAB_OPTION_INT, offsetof(struct gemm_config, k), .fallback = "1024", .min = 1,
     .max = 1 << 20, .unit = "elements", .help = "length of the sums"},
    {"layout", LAB_OPTION_CHOICE, offsetof(struct gemm_config, layout), .fallback = "nn",
     .choices = layouts, .help = "how a and b are stored: n as they are, t transposed"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct gemm_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the matrices"},
    {"epilogue", LAB_OPTION_CHOICE, offsetof(struct gemm_config, epilogue), .fallback = "none",
     .choices = epilogues, .help = "what is done to the product before it is stored"},
    {NULL},
};

enum { A, B, BIAS, OUT, TENSORS };

struct gemm_state {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_buffer buffers[TENSORS];
    struct lab_launch launch;
    int64_t m, n, k;
    bool with_bias, with_gelu;
};

/* The launch that the config stands for, without data. */
static struct lab_launch describe(const struct gemm_config *config) {
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype);
    struct lab_launch launch = {.op = LAB_OP_GEMM,
                                .transpose_a = config->layout[0] == 't',
                                .transpose_b = config->layout[1] == 't'};
    int64_t m = config->m, n = config->n, k = config->k;
    if (!lab_str_equal(config->epilogue, "none"))
        launch.op =
            lab_str_equal(config->epilogue, "bias") ? LAB_OP_GEMM_BIAS : LAB_OP_GEMM_BIAS_GELU;
    launch.in[A] = launch.transpose_a ? lab_tensor(NULL, dtype, 2, (int64_t[]){k, m})
                                      : lab_tensor(NULL, dtype, 2, (int64_t[]){m, k});
    launch.in[B] = launch.transpose_b ? lab_tensor(NULL, dtype, 2, (int64_t[]){n, k})
                                      : lab_tensor(NULL, dtype, 2, (int64_t[]){k, n});
    if (launch.op != LAB_OP_GEMM)
        launch.in[BIAS] = lab_tensor(NULL, dtype, 1, &n);
    launch.out = lab_tensor(NULL, dtype, 2, (int64_t[]){m, n});
    return launch;
}

/* Tensor `index` of the launch, A … OUT; NULL for a bias that isn't there. */
static struct lab_tensor *tensor_at(struct lab_launch *launch, int index) {
    if (index == OUT)
        return &launch->out;
    return index == BIAS && launch->op == LAB_OP_GEMM ? NULL : &launch->in[index];
}

static void cost(const void *config, struct lab_workload_cost *ret_cost) {
    struct lab_launch launch = describe(config);
    *ret_cost = (struct lab_workload_cost){.compute = lab_op_get(launch.op)->cost(&launch),
                                           .dtype = launch.out.dtype};
    for (int i = 0; i < TENSORS; i++)
        if (tensor_at(&launch, i))
            ret_cost->device_bytes += (int64_t)lab_tensor_bytes(tensor_at(&launch, i));
}

static void gemm_close(void *opaque) {
    struct gemm_state *state = opaque;
    if (!state)
        return;
    lab_stream_close(state->stream);
    lab_spans_close(&state->spans);
    for (int i = 0; i < TENSORS; i++)
        lab_buffer_close(&state->buffers[i]);
    lab_mem_free(state);
}

/* Every tensor draws from its own stream, so that a and b aren't alike. */
static int draw(struct gemm_state *state, uint64_t seed, struct lab_err *err) {
    for (int i = 0; i < OUT; i++) {
        const struct lab_tensor *tensor = tensor_at(&state->launch, i);
        uint64_t stream_seed = lab_random_bits(seed, (uint64_t)i);
        if (tensor && lab_data_upload(state->stream, tensor->data, tensor->dtype,
                                      lab_tensor_count(tensor), lab_data_random, &stream_seed, err))
            return -1;
    }
    return 0;
}

static int gemm_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                     struct lab_err *err) {
    const struct gemm_config *config = opaque;
    struct gemm_state *state = lab_mem_alloc(1, sizeof *state);
    state->device = rank->device;
    state->launch = describe(config);
    state->m = config->m, state->n = config->n, state->k = config->k;
    state->with_bias = state->launch.op != LAB_OP_GEMM;
    state->with_gelu = state->launch.op == LAB_OP_GEMM_BIAS_GELU;
    if (lab_data_require(rank->device, LAB_OP_GEMM, state->launch.out.dtype, err) ||
        lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &state->stream, err) ||
        lab_spans_open(rank->device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE,
                       &state->spans, err))
        goto fail;
    for (int i = 0; i < TENSORS; i++) {
        struct lab_tensor *tensor = tensor_at(&state->launch, i);
        if (!tensor)
            continue;
        if (lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensor),
                            &state->buffers[i], err))
            goto fail;
        tensor->data = state->buffers[i].data;
    }
    if (draw(state, rank->seed, err))
        goto fail;
    *ret_state = state;
    return 0;
fail:
    gemm_close(state);
    return -1;
}

static int run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct gemm_state *state = opaque;
    return lab_spans_run_launch(&state->spans, state->stream, &state->launch, count, records, err);
}

/* --- verification --- */

struct gemm_host { /* inputs and output, read back from the device as it holds them */
    float *values[TENSORS];
};

static int download(struct gemm_state *state, struct gemm_host *host, struct lab_err *err) {
    for (int i = 0; i < TENSORS; i++) {
        const struct lab_tensor *tensor = tensor_at(&state->launch, i);
        if (!tensor)
            continue;
        host->values[i] = lab_mem_alloc((size_t)lab_tensor_count(tensor), sizeof(float));
        if (lab_data_download(state->stream, tensor->data, tensor->dtype, lab_tensor_count(tensor),
                              host->values[i], err))
            return -1;
    }
    return 0;
}

/* One row of the result, from the definition. b is walked as it is stored. */
static void reference_row(const struct gemm_state *state, const struct gemm_host *host, int64_t row,
                          double *out) {
    const float *a = host->values[A], *b = host->values[B];
    for (int64_t j = 0; j < state->n; j++)
        out[j] = 0;
    for (int64_t i = 0; i < state->k; i++) {
        double factor = state->launch.transpose_a ? a[i * state->m + row] : a[row * state->k + i];
        if (!state->launch.transpose_b)
            for (int64_t j = 0; j < state->n; j++)
                out[j] += factor * (double)b[i * state->n + j];
    }
    for (int64_t j = 0; j < state->n; j++) {
        if (state->launch.transpose_b) /* only nt: a is stored by rows */
            for (int64_t i = 0; i < state->k; i++)
                out[j] += (double)a[row * state->k + i] * (double)b[j * state->k + i];
        if (state->with_bias)
            out[j] += (double)host->values[BIAS][j];
        if (state->with_gelu)
            out[j] = 0.5 * out[j] * (1 + erf(out[j] / sqrt(2.0)));
    }
}

#define CHECKED_MULTIPLY_ADDS 2e8 /* about a fifth of a second of plain double loops */

static int64_t checked_rows(const struct gemm_state *state) {
    double rows = CHECKED_MULTIPLY_ADDS / ((double)state->n * (double)state->k);
    return rows < 1 ? 1 : rows > (double)state->m ? state->m : (int64_t)rows;
}

/* All tensors as floats, the rows that are compared once more and in double. */
static double verification_bytes(struct gemm_state *state) {
    double bytes =
        (double)checked_rows(state) * (double)state->n * (sizeof(float) + sizeof(double));
    for (int i = 0; i < TENSORS; i++)
        if (tensor_at(&state->launch, i))
            bytes += (double)lab_tensor_count(tensor_at(&state->launch, i)) * sizeof(float);
    return bytes;
}

/* Compares all rows, or a seeded choice of them where that would take too long. */
static void compare(const struct gemm_state *state, const struct gemm_host *host, uint64_t seed,
                    struct lab_verification *ret) {
    int64_t rows = checked_rows(state);
    float *out = lab_mem_alloc((size_t)(rows * state->n), sizeof *out);
    double *reference = lab_mem_alloc((size_t)(rows * state->n), sizeof *reference);
    for (int64_t i = 0; i < rows; i++) {
        /* a random one of each of `rows` equal stretches: no row twice, every region seen */
        int64_t begin = i * state->m / rows, end = (i + 1) * state->m / rows;
        int64_t row = begin + (int64_t)lab_random_below(seed, (uint64_t)i, (uint64_t)(end - begin));
        memcpy(out + i * state->n, host->values[OUT] + row * state->n,
               (size_t)state->n * sizeof *out);
        reference_row(state, host, row, reference + i * state->n);
    }
    double tolerance = lab_verify_tolerance(state->launch.out.dtype);
    lab_verify_compare(out, reference, rows * state->n, LAB_POISON, tolerance, ret);
    lab_mem_free(out);
    lab_mem_free(reference);

    int64_t unwritten = 0, all = state->m * state->n;
    for (int64_t i = 0; i < all; i++)
        unwritten += host->values[OUT][i] == LAB_POISON || !isfinite(host->values[OUT][i]);
    lab_verify_partial(ret, rows, state->m, "rows", unwritten, all);
}

static int verify(void *opaque, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct gemm_state *state = opaque;
    struct gemm_host host = {{NULL}};
    struct lab_iteration record;
    const struct lab_tensor *out = &state->launch.out;
    if (lab_verify_skip(state->device, ret))
        return 0;
    int failed = lab_verify_room(state->device, verification_bytes(state), err) ||
                 draw(state, seed, err) ||
                 lab_data_upload(state->stream, out->data, out->dtype, lab_tensor_count(out),
                                 lab_data_constant, &(float){LAB_POISON}, err) ||
                 run(state, 1, &record, err) || download(state, &host, err);
    if (!failed)
        compare(state, &host, seed, ret);
    for (int i = 0; i < TENSORS; i++)
        lab_mem_free(host.values[i]);
    return failed ? -1 : 0;
}

static void label(const void *opaque, struct lab_str *out) {
    const struct gemm_config *config = opaque;
    lab_str_printf(out, "gemm%lldx%lldx%lld", (long long)config->m, (long long)config->n,
                   (long long)config->k);
    if (!lab_str_equal(config->layout, "nn"))
        lab_str_printf(out, "_%s", config->layout);
    if (!lab_str_equal(config->epilogue, "none"))
        lab_str_printf(out, "_%s", config->epilogue);
}

const struct lab_workload lab_workload_gemm = {
    .name = "gemm",
    .help = "a matrix product, plain or with bias and GELU",
    .options = options,
    .config_size = sizeof(struct gemm_config),
    .label = label,
    .cost = cost,
    .open = gemm_open,
    .close = gemm_close,
    .run = run,
    .verify = verify,
};
