/*
 * pipeline.c: batches of images through the device, three stages on three streams:
 *
 *     h2d      copies batch i from the pool into buffer i mod 2
 *     compute  the forward pass on that buffer                       waits for h2d i
 *     d2h      copies the result (or the input) back to the host     waits for compute i
 *
 * and h2d of batch i + 2, which uses the same buffer, waits for d2h of batch i. So while one batch
 * computes, its successor arrives and its predecessor leaves. With overlap=false h2d waits for the
 * batch before it instead: the same commands, one after the other.
 *
 * A batch's copy is enqueued before the kernels of the batch before it. Enqueueing those takes
 * longer than a small model computes, and the copy would come when there is nothing left to hide it
 * under.
 *
 * The host runs ahead of the device and waits for it each `sync_frequency` iterations, but only for
 * those enqueued before the last wait (lab_spans_run), so that the pipeline stays full.
 */
#include "workload/vit/vit.h"

#include "base/random.h"
#include "vendor/nvtx.h"

/* --- the pool --- */

static int64_t pool_bytes(const struct vit_config *config) {
    return config->memory_size_mb << 20;
}

int64_t vit_pool_batches(const struct vit_config *config, const struct vit_shape *shape) {
    return pool_bytes(config) / (int64_t)shape->input_bytes;
}

struct sequence {
    const struct vit_shape *shape;
    int64_t first;
    uint64_t seed;
};

static void fill_random(const struct sequence *sequence, int64_t index, int64_t count, float *out) {
    lab_data_random(&sequence->seed, sequence->first + index, count, out);
}

/* Rises from 0 to just below 1 within each image. */
static void fill_sequential(const struct sequence *sequence, int64_t index, int64_t count,
                            float *out) {
    int64_t period = sequence->shape->image_elements;
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((double)((sequence->first + index + i) % period) / (double)period);
}

void vit_pool_fill(struct vit_pipeline *pipeline, int64_t first, int64_t count) {
    const struct vit_shape *shape = &pipeline->shape;
    enum { CHUNK = 4096 };
    float values[CHUNK];
    size_t element_bytes = lab_dtype_bytes(shape->dtype);
    /* the images draw from a stream far behind those of the weights */
    struct sequence sequence = {shape, first * shape->input_elements,
                                lab_random_bits(pipeline->seed, 1ULL << 32)};
    char *out = (char *)pipeline->pool.data + (size_t)first * shape->input_bytes;
    int64_t elements = count * shape->input_elements;
    if (lab_str_equal(pipeline->config->fill, "zeros")) {
        memset(out, 0, (size_t)count * shape->input_bytes);
        return;
    }
    bool random = lab_str_equal(pipeline->config->fill, "random");
    for (int64_t done = 0; done < elements; done += CHUNK) {
        int64_t part = elements - done < CHUNK ? elements - done : CHUNK;
        (random ? fill_random : fill_sequential)(&sequence, done, part, values);
        lab_data_encode(shape->dtype, values, part, out + (size_t)done * element_bytes);
    }
}

/* --- life --- */

static int emit_launch(void *state, const struct lab_launch *launch, struct lab_err *err) {
    return lab_launch(state, launch, err);
}

static int launch_forward(struct vit_pipeline *pipeline, int buffer, struct lab_err *err) {
    return vit_model_forward(&pipeline->model, pipeline->device_in[buffer].data,
                             pipeline->device_out[buffer].data, emit_launch,
                             pipeline->streams[LAB_STAGE_COMPUTE], err);
}

static int capture_forward(struct vit_pipeline *pipeline, int buffer, struct lab_err *err) {
    struct lab_stream *stream = pipeline->streams[LAB_STAGE_COMPUTE];
    if (lab_graph_begin(stream, err))
        return lab_err_context(err, "compile_model=true");
    int failed = launch_forward(pipeline, buffer, err);
    /* the capture must end in any case, or the stream stays in it */
    struct lab_err second = LAB_ERR_INIT;
    int not_ended = lab_graph_end(stream, &pipeline->graphs[buffer], failed ? &second : err);
    return failed || not_ended ? lab_err_context(err, "compile_model=true") : 0;
}

static int open_streams(struct vit_pipeline *pipeline, struct lab_err *err) {
    unsigned stages = 0;
    for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
        if (stage == LAB_STAGE_COMPUTE && !pipeline->forward)
            continue;
        stages |= 1u << stage;
        if (lab_stream_open(pipeline->device,
                            stage == LAB_STAGE_COMPUTE ? LAB_STREAM_COMPUTE : LAB_STREAM_COPY,
                            &pipeline->streams[stage], err))
            return -1;
    }
    return lab_spans_open(pipeline->device, (int)pipeline->config->sync_frequency, stages,
                          &pipeline->spans, err);
}

static int open_buffers(struct vit_pipeline *pipeline, struct lab_err *err) {
    struct lab_device *device = pipeline->device;
    size_t input_bytes = pipeline->shape.input_bytes, output_bytes = pipeline->shape.output_bytes;
    if (lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, pipeline->numa_node,
                        (size_t)pipeline->pool_batches * input_bytes, &pipeline->pool, err))
        return lab_err_context(err, "input pool");
    for (int i = 0; i < VIT_BUFFERS; i++)
        if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, input_bytes, &pipeline->device_in[i],
                            err) ||
            (pipeline->config->depth > 0 &&
             lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, output_bytes, &pipeline->device_out[i],
                             err)) ||
            lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, pipeline->numa_node,
                            pipeline->back_bytes, &pipeline->host_out[i], err))
            return -1;
    return 0;
}

static int open_model(struct vit_pipeline *pipeline, struct lab_err *err) {
    struct lab_stream *stream = pipeline->streams[LAB_STAGE_COMPUTE];
    bool compile = pipeline->config->compile_model;
    if (lab_data_require(pipeline->device, LAB_OP_GEMM, pipeline->shape.dtype, err) ||
        vit_model_open(&pipeline->shape, compile, pipeline->config->config, stream, pipeline->seed,
                       &pipeline->model, err))
        return -1;
    for (int i = 0; compile && i < VIT_BUFFERS; i++)
        if (capture_forward(pipeline, i, err))
            return -1;
    return 0;
}

int vit_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
             struct lab_err *err) {
    const struct vit_config *config = opaque;
    struct vit_pipeline *pipeline = lab_mem_alloc(1, sizeof *pipeline);
    pipeline->config = config;
    pipeline->shape = vit_shape_of(config);
    pipeline->device = rank->device;
    pipeline->numa_node = rank->numa_node;
    pipeline->seed = rank->seed;
    pipeline->forward = config->depth > 0 && config->forward;
    pipeline->back_input = config->depth == 0 || lab_str_equal(config->d2h, "input");
    pipeline->back_bytes =
        pipeline->back_input ? pipeline->shape.input_bytes : pipeline->shape.output_bytes;
    pipeline->pool_batches = vit_pool_batches(config, &pipeline->shape);
    if (open_streams(pipeline, err) || open_buffers(pipeline, err) ||
        (pipeline->forward && open_model(pipeline, err))) {
        vit_close(pipeline);
        return -1;
    }
    if (!rank->device->ref.simulated) /* whose memory has no content */
        vit_pool_fill(pipeline, 0, pipeline->pool_batches);
    *ret_state = pipeline;
    return 0;
}

void vit_close(void *state) {
    struct vit_pipeline *pipeline = state;
    if (!pipeline)
        return;
    for (int i = 0; i < LAB_STAGE_COUNT; i++)
        lab_stream_close(pipeline->streams[i]);
    lab_spans_close(&pipeline->spans);
    for (int i = 0; i < VIT_BUFFERS; i++) {
        lab_graph_close(pipeline->graphs[i]);
        lab_buffer_close(&pipeline->device_in[i]);
        lab_buffer_close(&pipeline->device_out[i]);
        lab_buffer_close(&pipeline->host_out[i]);
    }
    lab_buffer_close(&pipeline->pool);
    vit_model_close(&pipeline->model);
    lab_mem_free(pipeline);
}

/* --- an iteration --- */

static int enqueue_h2d(struct vit_pipeline *pipeline, int iteration, struct lab_err *err) {
    struct lab_stream *stream = pipeline->streams[LAB_STAGE_H2D];
    int buffer = iteration % VIT_BUFFERS;
    int behind = iteration - (pipeline->config->overlap ? VIT_BUFFERS : 1);
    size_t bytes = pipeline->shape.input_bytes;
    const char *batch = (const char *)pipeline->pool.data + (size_t)pipeline->pool_next * bytes;
    if ((behind >= 0 && lab_spans_wait(&pipeline->spans, behind, LAB_STAGE_D2H, stream, err)) ||
        lab_spans_start(&pipeline->spans, iteration, LAB_STAGE_H2D, stream, err) ||
        lab_copy(stream, pipeline->device_in[buffer].data, batch, bytes, LAB_MEMORY_DEVICE,
                 LAB_MEMORY_HOST_PINNED, err) ||
        lab_spans_end(&pipeline->spans, iteration, LAB_STAGE_H2D, stream, err))
        return -1;
    pipeline->pool_next = (pipeline->pool_next + 1) % pipeline->pool_batches;
    return 0;
}

static int enqueue_compute(struct vit_pipeline *pipeline, int iteration, int buffer,
                           struct lab_err *err) {
    struct lab_stream *stream = pipeline->streams[LAB_STAGE_COMPUTE];
    struct lab_graph *graph = pipeline->graphs[buffer];
    if (lab_spans_wait(&pipeline->spans, iteration, LAB_STAGE_H2D, stream, err) ||
        lab_spans_start(&pipeline->spans, iteration, LAB_STAGE_COMPUTE, stream, err))
        return -1;
    lab_nvtx_push("vit_forward_%d", iteration);
    if (graph ? lab_graph_launch(graph, stream, err) : launch_forward(pipeline, buffer, err))
        return -1;
    lab_nvtx_pop();
    return lab_spans_end(&pipeline->spans, iteration, LAB_STAGE_COMPUTE, stream, err);
}

static int enqueue_d2h(struct vit_pipeline *pipeline, int iteration, int buffer,
                       struct lab_err *err) {
    struct lab_stream *stream = pipeline->streams[LAB_STAGE_D2H];
    enum lab_stage before = pipeline->forward ? LAB_STAGE_COMPUTE : LAB_STAGE_H2D;
    const struct lab_buffer *from =
        pipeline->back_input ? &pipeline->device_in[buffer] : &pipeline->device_out[buffer];
    if (lab_spans_wait(&pipeline->spans, iteration, before, stream, err) ||
        lab_spans_start(&pipeline->spans, iteration, LAB_STAGE_D2H, stream, err) ||
        lab_copy(stream, pipeline->host_out[buffer].data, from->data, pipeline->back_bytes,
                 LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err) ||
        lab_spans_end(&pipeline->spans, iteration, LAB_STAGE_D2H, stream, err))
        return -1;
    return 0;
}

static int enqueue(void *state, int iteration, struct lab_err *err) {
    struct vit_pipeline *pipeline = state;
    int buffer = iteration % VIT_BUFFERS;
    bool ahead = pipeline->config->overlap;
    if (((iteration == 0 || !ahead) && enqueue_h2d(pipeline, iteration, err)) ||
        (ahead && iteration + 1 < pipeline->count && enqueue_h2d(pipeline, iteration + 1, err)) ||
        (pipeline->forward && enqueue_compute(pipeline, iteration, buffer, err)))
        return -1;
    return enqueue_d2h(pipeline, iteration, buffer, err);
}

int vit_run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    struct vit_pipeline *pipeline = state;
    pipeline->count = count;
    return lab_spans_run(&pipeline->spans, pipeline->streams, LAB_STAGE_COUNT, count, enqueue,
                         pipeline, records, err);
}
