/*
 * softmax.c: softmax over the rows of a matrix [rows, columns]. Little arithmetic for each byte, so
 * it measures a device's memory rather than its multipliers.
 */
#include "workload/workload.h"

#include "base/random.h"

#include <math.h>

struct softmax_config {
    int64_t rows, columns;
    const char *dtype;
};

static const struct lab_option options[] = {
    {"rows", LAB_OPTION_INT, offsetof(struct softmax_config, rows), .fallback = "4096", .min = 1,
     .max = 1 << 24, .unit = "rows", .help = "rows, each normalised by itself"},
    {"columns", LAB_OPTION_INT, offsetof(struct softmax_config, columns), .fallback = "1024",
     .min = 1, .max = 1 << 24, .unit = "elements", .help = "elements of a row"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct softmax_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the matrix"},
    {NULL},
};

struct softmax_state {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_buffer in, out;
    struct lab_launch launch;
};

static struct lab_launch describe(const struct softmax_config *config) {
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype);
    struct lab_tensor matrix =
        lab_tensor(NULL, dtype, 2, (int64_t[]){config->rows, config->columns});
    return (struct lab_launch){.op = LAB_OP_SOFTMAX, .in = {matrix}, .out = matrix};
}

static void cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct softmax_config *config = opaque;
    struct lab_launch launch = describe(config);
    *ret_cost =
        (struct lab_workload_cost){.compute = lab_op_get(launch.op)->cost(&launch),
                                   .samples = (double)config->rows,
                                   .device_bytes = 2 * (int64_t)lab_tensor_bytes(&launch.out),
                                   .dtype = launch.out.dtype};
}

static void softmax_close(void *opaque) {
    struct softmax_state *state = opaque;
    if (!state)
        return;
    lab_stream_close(state->stream);
    lab_spans_close(&state->spans);
    lab_buffer_close(&state->in);
    lab_buffer_close(&state->out);
    lab_mem_free(state);
}

static int draw(struct softmax_state *state, uint64_t seed, struct lab_err *err) {
    const struct lab_tensor *in = &state->launch.in[0];
    return lab_data_upload(state->stream, in->data, in->dtype, lab_tensor_count(in),
                           lab_data_random, &seed, err);
}

static int softmax_open(const void *config, const struct lab_rank *rank, void **ret_state,
                        struct lab_err *err) {
    struct softmax_state *state = lab_mem_alloc(1, sizeof *state);
    state->device = rank->device;
    state->launch = describe(config);
    size_t bytes = lab_tensor_bytes(&state->launch.out);
    if (lab_data_require(rank->device, LAB_OP_SOFTMAX, state->launch.out.dtype, err) ||
        lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &state->stream, err) ||
        lab_spans_open(rank->device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE,
                       &state->spans, err) ||
        lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, bytes, &state->in, err) ||
        lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, bytes, &state->out, err))
        goto fail;
    state->launch.in[0].data = state->in.data;
    state->launch.out.data = state->out.data;
    if (draw(state, rank->seed, err))
        goto fail;
    *ret_state = state;
    return 0;
fail:
    softmax_close(state);
    return -1;
}

static int run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct softmax_state *state = opaque;
    return lab_spans_run_launch(&state->spans, state->stream, &state->launch, count, records, err);
}

/* values [rows, columns] → reference, straight from the definition. */
static void reference_softmax(const float *values, int64_t rows, int64_t columns,
                              double *reference) {
    for (int64_t row = 0; row < rows; row++) {
        const float *x = values + row * columns;
        double *out = reference + row * columns;
        double largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < columns; i++)
            largest = fmax(largest, (double)x[i]);
        for (int64_t i = 0; i < columns; i++)
            sum += out[i] = exp((double)x[i] - largest);
        for (int64_t i = 0; i < columns; i++)
            out[i] /= sum;
    }
}

static int verify(void *opaque, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct softmax_state *state = opaque;
    const struct lab_tensor *in = &state->launch.in[0], *out = &state->launch.out;
    struct lab_iteration record;
    if (lab_verify_skip(state->device, ret))
        return 0;
    int64_t count = lab_tensor_count(out);
    if (lab_verify_room(state->device, (double)count * (sizeof(float) + sizeof(double)), err))
        return -1;
    float *values = lab_mem_alloc((size_t)count, sizeof *values);
    double *reference = lab_mem_alloc((size_t)count, sizeof *reference);
    int failed = draw(state, seed, err) ||
                 lab_data_upload(state->stream, out->data, out->dtype, count, lab_data_constant,
                                 &(float){LAB_POISON}, err) ||
                 lab_data_download(state->stream, in->data, in->dtype, count, values, err);
    if (!failed)
        reference_softmax(values, out->shape[0], out->shape[1], reference);
    failed = failed || run(state, 1, &record, err) ||
             lab_data_download(state->stream, out->data, out->dtype, count, values, err);
    if (!failed)
        lab_verify_compare(values, reference, count, LAB_POISON, lab_verify_tolerance(out->dtype),
                           ret);
    lab_mem_free(values);
    lab_mem_free(reference);
    return failed ? -1 : 0;
}

static void label(const void *opaque, struct lab_str *out) {
    const struct softmax_config *config = opaque;
    lab_str_printf(out, "softmax%lldx%lld", (long long)config->rows, (long long)config->columns);
}

const struct lab_workload lab_workload_softmax = {
    .name = "softmax",
    .help = "softmax over the rows of a matrix",
    .options = options,
    .config_size = sizeof(struct softmax_config),
    .label = label,
    .cost = cost,
    .open = softmax_open,
    .close = softmax_close,
    .run = run,
    .verify = verify,
};
