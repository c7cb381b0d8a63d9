/*
 * skeleton.c: a complete workload to copy. It adds two vectors on the device and times that.
 *
 *     cp docs/skeleton_workload.c src/workload/mine.c
 *     sed -i 's/skeleton/mine/g' src/workload/mine.c && make
 *     build/gpulab bench mine n=1000000
 *
 * The build finds a workload by its file name and expects `lab_workload_<file name>` in it; nothing
 * else has to be edited. Help, completion and the conformance test (make test) include it at once.
 *
 * The first lines of a workload say what it does and what its figure tells.
 */
#include "workload/workload.h"

#include "base/random.h"

/* --- the keys: `bench skeleton n=… dtype=…` --- */

struct skeleton_config {
    int64_t n;
    const char *dtype;
};

/* Every row needs help, numbers also a unit and bounds; the defaults are written as a user would
 * write them. This table is the only place that knows the keys. */
static const struct lab_option options[] = {
    {"n", LAB_OPTION_INT, offsetof(struct skeleton_config, n), .fallback = "1_000_000", .min = 1,
     .max = 0x1p32, .unit = "elements", .help = "length of the vectors"},
    {"dtype", LAB_OPTION_CHOICE, offsetof(struct skeleton_config, dtype), .fallback = "fp32",
     .choices = lab_dtype_names, .help = "number format of the vectors"},
    {NULL},
};

/* --- what an open workload holds --- */

enum { A, B, OUT, VECTORS };

struct skeleton_state {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_spans spans; /* events around the stages of an iteration */
    struct lab_buffer buffers[VECTORS];
    struct lab_launch launch; /* what the device is asked to do, as data */
};

/* The launch that the keys stand for, still without memory: used by cost() and open(). */
static struct lab_launch describe(const struct skeleton_config *config) {
    enum lab_dtype dtype = LAB_FP32;
    lab_dtype_parse(config->dtype, &dtype); /* one of lab_dtype_names: always succeeds */
    struct lab_tensor vector = lab_tensor(NULL, dtype, 1, &config->n);
    return (struct lab_launch){.op = LAB_OP_ADD, .in = {vector, vector}, .out = vector};
}

/* What one iteration does and moves, counted from the definition. Rates come from it. */
static void cost(const void *config, struct lab_workload_cost *ret_cost) {
    struct lab_launch launch = describe(config);
    *ret_cost = (struct lab_workload_cost){
        .compute = lab_op_cost(&launch),
        .device_bytes = VECTORS * (int64_t)lab_tensor_bytes(&launch.out),
        .dtype = launch.out.dtype,
    };
}

/* --- life --- */

/* Takes NULL and half-opened states, so that open() can use it for every failure. Streams first:
 * closing one waits for its commands, which may still use the rest. */
static void skeleton_close(void *opaque) {
    struct skeleton_state *state = opaque;
    if (!state)
        return;
    lab_stream_close(state->stream);
    lab_spans_close(&state->spans);
    for (int i = 0; i < VECTORS; i++)
        lab_buffer_close(&state->buffers[i]);
    lab_mem_free(state);
}

/* Fresh inputs. All data comes from a seed, each vector's from a stream of its own. */
static int draw(struct skeleton_state *state, uint64_t seed, struct lab_err *err) {
    for (int i = A; i <= B; i++) {
        const struct lab_tensor *vector = &state->launch.in[i];
        uint64_t stream_seed = lab_random_bits(seed, (uint64_t)i);
        if (lab_data_upload(state->stream, vector->data, vector->dtype, lab_tensor_count(vector),
                            lab_data_random, &stream_seed, err))
            return -1;
    }
    return 0;
}

/* Takes everything that run() will need. Too little memory is an ordinary failure. */
static int skeleton_open(const void *config, const struct lab_rank *rank, void **ret_state,
                         struct lab_err *err) {
    struct skeleton_state *state = lab_mem_alloc(1, sizeof *state);
    state->device = rank->device;
    state->launch = describe(config);
    if (lab_data_require(rank->device, state->launch.op, state->launch.out.dtype, err) ||
        lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &state->stream, err) ||
        lab_spans_open(rank->device, LAB_SPANS_SYNC_FREQUENCY, 1u << LAB_STAGE_COMPUTE,
                       &state->spans, err))
        goto fail;
    for (int i = 0; i < VECTORS; i++)
        if (lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1,
                            lab_tensor_bytes(&state->launch.out), &state->buffers[i], err))
            goto fail;
    state->launch.in[A].data = state->buffers[A].data;
    state->launch.in[B].data = state->buffers[B].data;
    state->launch.out.data = state->buffers[OUT].data;
    if (draw(state, rank->seed, err))
        goto fail;
    *ret_state = state;
    return 0;
fail:
    skeleton_close(state);
    return -1;
}

/* --- running --- */

/* One iteration: commands between the two marks of its stage. Nothing here waits or allocates. */
static int enqueue(void *opaque, int iteration, struct lab_err *err) {
    struct skeleton_state *state = opaque;
    if (lab_spans_start(&state->spans, iteration, LAB_STAGE_COMPUTE, state->stream, err) ||
        lab_launch(state->stream, &state->launch, err) ||
        lab_spans_end(&state->spans, iteration, LAB_STAGE_COMPUTE, state->stream, err))
        return -1;
    return 0;
}

/* The loop is everybody's: it keeps the stream busy and reads the marks. memcpy.c and
 * vit/pipeline.c have several streams. */
static int run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct skeleton_state *state = opaque;
    return lab_spans_run(&state->spans, &state->stream, 1, count, enqueue, state, records, err);
}

/* --- being right --- */

/* Fresh inputs, a poisoned output, one iteration on the same path as any other, then the plain
 * formula in double precision. The inputs are read back so that their rounding is in it. */
static int verify(void *opaque, uint64_t seed, struct lab_verification *ret, struct lab_err *err) {
    struct skeleton_state *state = opaque;
    const struct lab_tensor *out = &state->launch.out;
    struct lab_iteration record;
    if (lab_verify_skip(state->device, ret)) /* a simulated device computes nothing */
        return 0;
    int64_t count = lab_tensor_count(out);
    if (lab_verify_room(state->device, (double)count * (sizeof(float) + sizeof(double)), err))
        return -1;
    float *values = lab_mem_alloc((size_t)count, sizeof *values);
    double *reference = lab_mem_alloc((size_t)count, sizeof *reference);
    int failed =
        draw(state, seed, err) || lab_data_upload(state->stream, out->data, out->dtype, count,
                                                  lab_data_constant, &(float){LAB_POISON}, err);
    for (int i = A; i <= B && !failed; i++) {
        failed = lab_data_download(state->stream, state->launch.in[i].data, out->dtype, count,
                                   values, err);
        for (int64_t k = 0; k < count && !failed; k++)
            reference[k] += (double)values[k];
    }
    failed = failed || run(state, 1, &record, err) ||
             lab_data_download(state->stream, out->data, out->dtype, count, values, err);
    if (!failed)
        lab_verify_compare(values, reference, count, LAB_POISON, lab_verify_tolerance(out->dtype),
                           ret);
    lab_mem_free(values);
    lab_mem_free(reference);
    return failed ? -1 : 0;
}

/* --- the descriptor: all that the rest of the program sees ---
 *
 * Left out here, with what that means: description (help shows the one line only), check (the
 * bounds say it all), label (the name), label_words (a label without sizes), setup (an ordinary
 * device), prove_placement (no host memory of its own; memcpy.c has some).
 */
const struct lab_workload lab_workload_skeleton = {
    .name = "skeleton",
    .help = "adds two vectors",
    .options = options,
    .config_size = sizeof(struct skeleton_config),
    .cost = cost,
    .open = skeleton_open,
    .close = skeleton_close,
    .run = run,
    .verify = verify,
};
