/*
 * null.c: no work at all. An iteration is a pair of event records on an empty stream, so what is
 * measured is gpulab and the device's runtime: the floor under every other figure.
 */
#include "workload/workload.h"

struct null_config {
    int64_t sync_frequency;
};

static const struct lab_option options[] = {
    {"sync_frequency", LAB_OPTION_INT, offsetof(struct null_config, sync_frequency),
     .fallback = "64", .min = 1, .max = 10000, .unit = "iterations",
     .help = "iterations between two synchronisations of the host"},
    {NULL},
};

struct null_state {
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_spans spans;
};

static void null_cost(const void *config, struct lab_workload_cost *ret_cost) {
    (void)config;
    *ret_cost = (struct lab_workload_cost){.dtype = LAB_FP32};
}

static void null_close(void *opaque) {
    struct null_state *state = opaque;
    if (!state)
        return;
    lab_stream_close(state->stream);
    lab_spans_close(&state->spans);
    lab_mem_free(state);
}

static int null_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                     struct lab_err *err) {
    const struct null_config *config = opaque;
    struct null_state *state = lab_mem_alloc(1, sizeof *state);
    state->device = rank->device;
    if (lab_stream_open(rank->device, LAB_STREAM_COMPUTE, &state->stream, err) ||
        lab_spans_open(rank->device, (int)config->sync_frequency, 1u << LAB_STAGE_COMPUTE,
                       &state->spans, err)) {
        null_close(state);
        return -1;
    }
    *ret_state = state;
    return 0;
}

static int enqueue(void *opaque, int iteration, struct lab_err *err) {
    struct null_state *state = opaque;
    return lab_spans_start(&state->spans, iteration, LAB_STAGE_COMPUTE, state->stream, err) ||
                   lab_spans_end(&state->spans, iteration, LAB_STAGE_COMPUTE, state->stream, err)
               ? -1
               : 0;
}

static int null_run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct null_state *state = opaque;
    return lab_spans_run(&state->spans, &state->stream, 1, count, enqueue, state, records, err);
}

static int null_verify(void *opaque, uint64_t seed, struct lab_verification *ret,
                       struct lab_err *err) {
    (void)opaque, (void)seed, (void)err;
    *ret = (struct lab_verification){.applicable = false};
    snprintf(ret->text, sizeof ret->text, "no output");
    return 0;
}

const struct lab_workload lab_workload_null = {
    .name = "null",
    .help = "does nothing but time itself",
    .description =
        "An iteration is two event records on an empty stream. Its time is what gpulab and the\n"
        "device's runtime add to any measurement; compare short workloads with it.",
    .options = options,
    .config_size = sizeof(struct null_config),
    .cost = null_cost,
    .open = null_open,
    .close = null_close,
    .run = null_run,
    .verify = null_verify,
};
