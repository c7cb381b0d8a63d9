/* kernel.c: what the workloads of a single tunable kernel share. */
#include "workload/kernel/kernel.h"

#include "base/random.h"
#include "device/tunable.h"

#include <math.h>

const char *const kernel_config_words[] = {LAB_CONFIG_TUNED, LAB_CONFIG_DEFAULT, NULL};

struct expected { /* rows of the output, chosen and computed for one seed */
    bool known;
    uint64_t seed;
    int64_t *rows;
    int64_t row_count;
    double *values;
};

struct kernel {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_spans spans;
    struct lab_buffer buffers[KERNEL_TENSORS]; /* the output's last */
    struct lab_launch launch;
    kernel_row *reference;
    bool is_tuned; /* by kernel_configure: many verifications of the same data will come */
    struct expected expected;
    float *values, *compared; /* the output and those rows of it; NULL until they are needed */
};

static int inputs_of(const struct kernel *kernel) {
    return lab_op_get(kernel->launch.op)->inputs;
}

static struct lab_tensor *tensor_at(struct kernel *kernel, int index) {
    return index == KERNEL_TENSORS - 1 ? &kernel->launch.out : &kernel->launch.in[index];
}

static void forget(struct expected *expected) {
    lab_mem_free(expected->rows);
    lab_mem_free(expected->values);
    *expected = (struct expected){0};
}

/* All that a verification needed, which can be much; a tuning keeps it for the next one. */
static void forget_all(struct kernel *kernel) {
    forget(&kernel->expected);
    lab_mem_free(kernel->values);
    lab_mem_free(kernel->compared);
    kernel->values = kernel->compared = NULL;
}

void kernel_close(void *state) {
    struct kernel *kernel = state;
    if (!kernel)
        return;
    lab_stream_close(kernel->stream);
    lab_spans_close(&kernel->spans);
    for (int i = 0; i < KERNEL_TENSORS; i++)
        lab_buffer_close(&kernel->buffers[i]);
    forget_all(kernel);
    lab_mem_free(kernel);
}

/* Every tensor draws from its own stream, so that no two are alike. */
static int draw(struct kernel *kernel, uint64_t seed, struct lab_err *err) {
    for (int i = 0; i < inputs_of(kernel); i++) {
        const struct lab_tensor *tensor = &kernel->launch.in[i];
        uint64_t stream_seed = lab_random_bits(seed, (uint64_t)i);
        if (lab_data_upload(kernel->stream, tensor->data, tensor->dtype, lab_tensor_count(tensor),
                            lab_data_random, &stream_seed, err))
            return -1;
    }
    return 0;
}

static int open_tensors(struct kernel *kernel, struct lab_err *err) {
    for (int i = 0; i < KERNEL_TENSORS; i++) {
        if (i >= inputs_of(kernel) && i < KERNEL_TENSORS - 1)
            continue;
        struct lab_tensor *tensor = tensor_at(kernel, i);
        if (lab_buffer_open(kernel->device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensor),
                            &kernel->buffers[i], err))
            return -1;
        tensor->data = kernel->buffers[i].data;
    }
    return 0;
}

/* --- configurations --- */

static int set_config(struct kernel *kernel, const char *text, struct lab_err *err) {
    if (!text || lab_str_equal(text, LAB_CONFIG_TUNED) || lab_str_equal(text, LAB_CONFIG_DEFAULT))
        return 0;
    const struct lab_tunable_place place = {kernel->device->machine, &kernel->device->ref};
    const struct lab_tunable *tunable = lab_tunable_find(&place, &kernel->launch);
    if (!tunable)
        return lab_err_set(err, LAB_ERR_USER,
                           LAB_WORKLOAD_CONFIG "=%s: %s has no configurations of %s in %s", text,
                           kernel->device->ref.name, lab_op_get(kernel->launch.op)->name,
                           lab_dtype_name(kernel->launch.out.dtype));
    struct lab_tuning *tuning = &kernel->launch.tuning;
    if (lab_tuning_parse(tunable, &place, &kernel->launch, text, tuning, err) ||
        lab_tuning_check(tunable, &place, &kernel->launch, tuning, err))
        return lab_err_context(err, LAB_WORKLOAD_CONFIG "=%s", text);
    return 0;
}

int kernel_configure(void *state, const struct lab_tuning *tuning, struct lab_err *err) {
    struct kernel *kernel = state;
    const struct lab_tunable_place place = {kernel->device->machine, &kernel->device->ref};
    const struct lab_tunable *tunable = lab_tunable_find(&place, &kernel->launch);
    if (tuning->count && !tunable)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED, "%s has no configurations of %s",
                           kernel->device->ref.name, lab_op_get(kernel->launch.op)->name);
    if (tunable && lab_tuning_check(tunable, &place, &kernel->launch, tuning, err))
        return -1;
    kernel->launch.tuning = *tuning;
    kernel->is_tuned = true;
    return 0;
}

/* --- life and work --- */

int kernel_open(kernel_launch *launch_of, const void *config, const char *text,
                kernel_row *reference, const struct lab_rank *rank, void **ret_state,
                struct lab_err *err) {
    struct kernel *kernel = lab_mem_alloc(1, sizeof *kernel);
    launch_of(config, &kernel->launch);
    kernel->device = rank->device;
    kernel->reference = reference;
    struct lab_launch complete = kernel->launch;
    /* a fused op that the device lacks is lowered: ask for what it is made of */
    enum lab_op_id op = lab_op_is_gemm(complete.op) ? LAB_OP_GEMM : complete.op;
    if (lab_launch_complete(&complete, err) ||
        lab_data_require(rank->device, op, complete.out.dtype, err) ||
        set_config(kernel, text, err) ||
        lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &kernel->stream, err) ||
        lab_spans_open(rank->device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE,
                       &kernel->spans, err) ||
        open_tensors(kernel, err) || draw(kernel, rank->seed, err)) {
        kernel_close(kernel);
        return -1;
    }
    *ret_state = kernel;
    return 0;
}

int kernel_run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    struct kernel *kernel = state;
    return lab_spans_run_launch(&kernel->spans, kernel->stream, &kernel->launch, count, records,
                                err);
}

void kernel_cost(kernel_launch *launch_of, const void *config, double samples,
                 struct lab_workload_cost *ret_cost) {
    struct lab_launch launch;
    launch_of(config, &launch);
    *ret_cost = (struct lab_workload_cost){.compute = lab_op_cost(&launch),
                                           .samples = samples,
                                           .device_bytes = (int64_t)lab_tensor_bytes(&launch.out),
                                           .dtype = launch.out.dtype};
    for (int i = 0; i < lab_op_get(launch.op)->inputs; i++)
        ret_cost->device_bytes += (int64_t)lab_tensor_bytes(&launch.in[i]);
}

/* --- verification --- */

#define CHECKED_FLOPS    4e8 /* about a fifth of a second of plain double loops */
#define CHECKED_ELEMENTS 2e6 /* where a tuning compares them for each configuration */

static int64_t checked_rows(const struct kernel *kernel) {
    int64_t all = lab_tensor_rows(&kernel->launch.out);
    double flops = lab_op_cost(&kernel->launch).flops;
    double rows = CHECKED_FLOPS / (flops / (double)all);
    if (kernel->is_tuned)
        rows = fmin(rows, CHECKED_ELEMENTS / (double)lab_tensor_columns(&kernel->launch.out));
    return rows < 1 ? 1 : rows > (double)all ? all : (int64_t)rows;
}

/* All tensors as floats, the rows that are compared once more and in double. */
static double verification_bytes(struct kernel *kernel) {
    double row_bytes =
        (double)lab_tensor_columns(&kernel->launch.out) * (sizeof(float) + sizeof(double));
    double bytes = (double)checked_rows(kernel) * row_bytes +
                   (double)lab_tensor_count(&kernel->launch.out) * sizeof(float);
    for (int i = 0; i < inputs_of(kernel); i++)
        bytes += (double)lab_tensor_count(&kernel->launch.in[i]) * sizeof(float);
    return bytes;
}

/* Inputs as the device holds them, and what the rows compared should be. */
static int expect(struct kernel *kernel, uint64_t seed, struct lab_err *err) {
    float *in[LAB_LAUNCH_INPUTS] = {NULL};
    int failed = draw(kernel, seed, err);
    for (int i = 0; i < inputs_of(kernel) && !failed; i++) {
        const struct lab_tensor *tensor = &kernel->launch.in[i];
        in[i] = lab_mem_alloc((size_t)lab_tensor_count(tensor), sizeof(float));
        failed = lab_data_download(kernel->stream, tensor->data, tensor->dtype,
                                   lab_tensor_count(tensor), in[i], err);
    }
    struct expected *expected = &kernel->expected;
    lab_mem_free(kernel->compared); /* of other rows */
    kernel->compared = NULL;
    int64_t all = lab_tensor_rows(&kernel->launch.out), count = checked_rows(kernel);
    int64_t columns = lab_tensor_columns(&kernel->launch.out);
    forget(expected);
    expected->rows = lab_mem_alloc((size_t)count, sizeof *expected->rows);
    expected->values = lab_mem_alloc((size_t)(count * columns), sizeof *expected->values);
    for (int64_t i = 0; i < count && !failed; i++) {
        /* a random one of each of `count` equal stretches: no row twice, every region seen */
        int64_t begin = i * all / count, end = (i + 1) * all / count;
        int64_t row = begin + (int64_t)lab_random_below(seed, (uint64_t)i, (uint64_t)(end - begin));
        expected->rows[i] = row;
        kernel->reference(&kernel->launch, (const float *const *)in, row,
                          expected->values + i * columns);
    }
    expected->seed = seed;
    expected->row_count = count;
    expected->known = !failed;
    for (int i = 0; i < LAB_LAUNCH_INPUTS; i++)
        lab_mem_free(in[i]);
    return failed ? -1 : 0;
}

static void compare(struct kernel *kernel, struct lab_verification *ret) {
    const struct expected *expected = &kernel->expected;
    const struct lab_tensor *out = &kernel->launch.out;
    int64_t columns = lab_tensor_columns(out), rows = expected->row_count;
    const float *values = kernel->values;
    if (!kernel->compared)
        kernel->compared = lab_mem_alloc((size_t)(rows * columns), sizeof *kernel->compared);
    for (int64_t i = 0; i < rows; i++)
        memcpy(kernel->compared + i * columns, values + expected->rows[i] * columns,
               (size_t)columns * sizeof *values);
    lab_verify_compare(kernel->compared, expected->values, rows * columns, LAB_POISON,
                       lab_verify_tolerance(out->dtype), ret);
    int64_t unwritten = 0, all = lab_tensor_count(out);
    for (int64_t i = 0; i < all; i++)
        unwritten += values[i] == LAB_POISON || !isfinite(values[i]);
    lab_verify_partial(ret, rows, lab_tensor_rows(out), "rows", unwritten, all);
}

/* By the device itself: a tuning does this for each configuration, and uploads take longer. */
static int poison(struct kernel *kernel, struct lab_err *err) {
    const struct lab_launch fill = {
        .op = LAB_OP_FILL, .out = kernel->launch.out, .value = LAB_POISON};
    return lab_launch(kernel->stream, &fill, err);
}

int kernel_verify(void *state, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct kernel *kernel = state;
    const struct lab_tensor *out = &kernel->launch.out;
    struct expected *expected = &kernel->expected;
    struct lab_iteration record;
    if (lab_verify_skip(kernel->device, ret))
        return 0;
    if (lab_verify_room(kernel->device, verification_bytes(kernel), err))
        return -1;
    if (!kernel->values)
        kernel->values = lab_mem_alloc((size_t)lab_tensor_count(out), sizeof *kernel->values);
    bool known = expected->known && expected->seed == seed;
    int failed = (!known && expect(kernel, seed, err)) || poison(kernel, err) ||
                 kernel_run(kernel, 1, &record, err) ||
                 lab_data_download(kernel->stream, out->data, out->dtype, lab_tensor_count(out),
                                   kernel->values, err);
    if (!failed)
        compare(kernel, ret);
    if (!kernel->is_tuned)
        forget_all(kernel);
    return failed ? -1 : 0;
}
