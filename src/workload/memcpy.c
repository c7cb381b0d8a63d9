/*
 * memcpy.c: copies between host and device, one way or both at once: what the link between them
 * carries.
 *
 * Each direction has a stream and buffers of its own. With direction=both an iteration is one copy
 * each way; the next begins when both are done, so that every byte counted was moved while the
 * other direction was loaded too.
 */
#include "workload/workload.h"

#include "base/random.h"
#include "machine/machine.h"

struct memcpy_config {
    const char *direction, *memory;
    int64_t size;
};

static const char *const directions[] = {"h2d", "d2h", "both", NULL};
static const char *const memories[] = {"pinned", "pageable", NULL};

static const struct lab_option options[] = {
    {"direction", LAB_OPTION_CHOICE, offsetof(struct memcpy_config, direction), .fallback = "h2d",
     .choices = directions, .help = "to the device, from the device, or both at once"},
    {"memory", LAB_OPTION_CHOICE, offsetof(struct memcpy_config, memory), .fallback = "pinned",
     .choices = memories, .help = "kind of host memory"},
    {"size", LAB_OPTION_SIZE, offsetof(struct memcpy_config, size), .fallback = "64MiB", .min = 1,
     .max = 0x1p44, .unit = "bytes", .help = "bytes of one copy in one direction"},
    {NULL},
};

enum { TO_DEVICE, FROM_DEVICE, WAYS };

struct way {
    bool used;
    enum lab_stage stage;
    struct lab_stream *stream;
    struct lab_buffer host, device;
};

struct memcpy_state {
    struct lab_device *device;
    int numa_node;
    size_t size_bytes;
    enum lab_memory_kind host_kind;
    struct lab_spans spans;
    struct way ways[WAYS];
};

static bool way_used(const struct memcpy_config *config, int way) {
    if (lab_str_equal(config->direction, "both"))
        return true;
    return lab_str_equal(config->direction, way == TO_DEVICE ? "h2d" : "d2h");
}

static void memcpy_cost(const void *opaque, struct lab_workload_cost *ret_cost) {
    const struct memcpy_config *config = opaque;
    bool there = way_used(config, TO_DEVICE), back = way_used(config, FROM_DEVICE);
    *ret_cost = (struct lab_workload_cost){.h2d_bytes = there ? (double)config->size : 0,
                                           .d2h_bytes = back ? (double)config->size : 0,
                                           .device_bytes = (there + back) * config->size,
                                           .host_bytes = (there + back) * config->size,
                                           .dtype = LAB_FP32};
}

static void memcpy_close(void *opaque) {
    struct memcpy_state *state = opaque;
    if (!state)
        return;
    for (int i = 0; i < WAYS; i++)
        lab_stream_close(state->ways[i].stream);
    lab_spans_close(&state->spans);
    for (int i = 0; i < WAYS; i++) {
        lab_buffer_close(&state->ways[i].host);
        lab_buffer_close(&state->ways[i].device);
    }
    lab_mem_free(state);
}

static int memcpy_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
                       struct lab_err *err) {
    const struct memcpy_config *config = opaque;
    struct memcpy_state *state = lab_mem_alloc(1, sizeof *state);
    unsigned stages = 0;
    state->device = rank->device;
    state->numa_node = rank->numa_node;
    state->size_bytes = (size_t)config->size;
    state->host_kind =
        lab_str_equal(config->memory, "pinned") ? LAB_MEMORY_HOST_PINNED : LAB_MEMORY_HOST_PAGEABLE;
    for (int i = 0; i < WAYS; i++) {
        struct way *way = &state->ways[i];
        way->used = way_used(config, i);
        way->stage = i == TO_DEVICE ? LAB_STAGE_H2D : LAB_STAGE_D2H;
        if (!way->used)
            continue;
        stages |= 1u << way->stage;
        if (lab_stream_open(rank->device, LAB_STREAM_COPY, &way->stream, err) ||
            lab_buffer_open(rank->device, state->host_kind, rank->numa_node, state->size_bytes,
                            &way->host, err) ||
            lab_buffer_open(rank->device, LAB_MEMORY_DEVICE, -1, state->size_bytes, &way->device,
                            err))
            goto fail;
        if (!rank->device->ref.simulated)
            memset(way->host.data, 0x5a,
                   state->size_bytes); /* pages that exist, not the zero page */
    }
    if (lab_spans_open(rank->device, LAB_SPANS_SYNC_FREQUENCY, stages, &state->spans, err))
        goto fail;
    *ret_state = state;
    return 0;
fail:
    memcpy_close(state);
    return -1;
}

static int enqueue_way(struct memcpy_state *state, int index, int iteration, struct lab_err *err) {
    struct way *way = &state->ways[index];
    const struct way *other = &state->ways[!index];
    if (iteration > 0 && other->used &&
        lab_spans_wait(&state->spans, iteration - 1, other->stage, way->stream, err))
        return -1;
    if (lab_spans_start(&state->spans, iteration, way->stage, way->stream, err))
        return -1;
    int failed = index == TO_DEVICE
                     ? lab_copy(way->stream, way->device.data, way->host.data, state->size_bytes,
                                LAB_MEMORY_DEVICE, state->host_kind, err)
                     : lab_copy(way->stream, way->host.data, way->device.data, state->size_bytes,
                                state->host_kind, LAB_MEMORY_DEVICE, err);
    return failed ? -1 : lab_spans_end(&state->spans, iteration, way->stage, way->stream, err);
}

static int enqueue(void *opaque, int iteration, struct lab_err *err) {
    struct memcpy_state *state = opaque;
    for (int i = 0; i < WAYS; i++)
        if (state->ways[i].used && enqueue_way(state, i, iteration, err))
            return -1;
    return 0;
}

static int memcpy_run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct memcpy_state *state = opaque;
    struct lab_stream *const streams[WAYS] = {state->ways[TO_DEVICE].stream,
                                              state->ways[FROM_DEVICE].stream};
    return lab_spans_run(&state->spans, streams, WAYS, count, enqueue, state, records, err);
}

/* --- verification: the pattern at the source, its complement at the target, so that every byte
 * that wasn't copied is wrong --- */

static void draw_pattern(uint64_t seed, unsigned char *out, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += 8) {
        uint64_t word = lab_random_bits(seed, at / 8);
        memcpy(out + at, &word, size_bytes - at < 8 ? size_bytes - at : 8);
    }
}

static void complement(const unsigned char *from, unsigned char *to, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; i++)
        to[i] = (unsigned char)~from[i];
}

/* Blocking copy between the way's device buffer and `host`, outside the measured path. */
static int move(const struct memcpy_state *state, const struct way *way, struct lab_buffer *host,
                bool to_device, struct lab_err *err) {
    int failed = to_device ? lab_copy(way->stream, way->device.data, host->data, state->size_bytes,
                                      LAB_MEMORY_DEVICE, host->kind, err)
                           : lab_copy(way->stream, host->data, way->device.data, state->size_bytes,
                                      host->kind, LAB_MEMORY_DEVICE, err);
    return failed ? -1 : lab_stream_sync(way->stream, err);
}

static int prepare(struct memcpy_state *state, const unsigned char *pattern,
                   struct lab_buffer *scratch, struct lab_err *err) {
    for (int i = 0; i < WAYS; i++) {
        struct way *way = &state->ways[i];
        if (!way->used)
            continue;
        unsigned char *source = i == TO_DEVICE ? way->host.data : scratch->data;
        unsigned char *target = i == TO_DEVICE ? scratch->data : way->host.data;
        memcpy(source, pattern, state->size_bytes);
        complement(pattern, target, state->size_bytes);
        if (move(state, way, scratch, true, err))
            return -1;
    }
    return 0;
}

static int memcpy_verify(void *opaque, uint64_t seed, struct lab_verification *ret,
                         struct lab_err *err) {
    struct memcpy_state *state = opaque;
    struct lab_buffer scratch = {0};
    struct lab_iteration record;
    if (lab_verify_skip(state->device, ret))
        return 0;
    if (lab_verify_room(state->device, 2 * (double)state->size_bytes, err) ||
        lab_buffer_open(state->device, LAB_MEMORY_HOST_PAGEABLE, -1, state->size_bytes, &scratch,
                        err))
        return -1;
    LAB_AUTO_FREE unsigned char *pattern = lab_mem_alloc(state->size_bytes, 1);
    draw_pattern(seed, pattern, state->size_bytes);
    int failed = prepare(state, pattern, &scratch, err) || memcpy_run(state, 1, &record, err);
    int64_t checked = 0;
    for (int i = 0; i < WAYS && !failed; i++) {
        struct way *way = &state->ways[i];
        if (!way->used || (checked && !ret->passed))
            continue;
        if (i == TO_DEVICE)
            failed = move(state, way, &scratch, false, err);
        if (!failed)
            lab_verify_bytes(i == TO_DEVICE ? scratch.data : way->host.data, pattern,
                             state->size_bytes, ret);
        checked += (int64_t)state->size_bytes;
    }
    if (!failed && ret->passed && checked > ret->elements)
        snprintf(ret->text + strlen(ret->text), sizeof ret->text - strlen(ret->text), " each way");
    ret->elements = checked;
    lab_buffer_close(&scratch);
    return failed ? -1 : 0;
}

static int memcpy_prove_placement(void *opaque, struct lab_err *err) {
    struct memcpy_state *state = opaque;
    for (int i = 0; i < WAYS; i++)
        if (state->ways[i].used && state->numa_node >= 0 &&
            lab_memory_prove(state->device->machine, state->ways[i].host.data, state->size_bytes,
                             state->numa_node, err))
            return lab_err_context(err, "host buffer");
    return 0;
}

static void memcpy_label(const void *opaque, struct lab_str *out) {
    const struct memcpy_config *config = opaque;
    lab_str_printf(out, "memcpy_%s_%s", config->direction, config->memory);
}

const struct lab_workload lab_workload_memcpy = {
    .name = "memcpy",
    .help = "copies between host and device, one way or both at once",
    .options = options,
    .config_size = sizeof(struct memcpy_config),
    .label = memcpy_label,
    .cost = memcpy_cost,
    .open = memcpy_open,
    .close = memcpy_close,
    .run = memcpy_run,
    .verify = memcpy_verify,
    .prove_placement = memcpy_prove_placement,
};
