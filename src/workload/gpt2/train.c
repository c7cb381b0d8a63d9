/*
 * train.c: training on a device. A step is a copy of its tokens and of its learning rate, and then
 * the same commands each time: with compile_model a graph for each list of launches. The host is
 * some steps ahead: it draws or reads tokens into pinned memory while the device computes.
 */
#include "workload/gpt2/gpt2.h"

#include <math.h>

/* --- life --- */

/* What is copied for a micro-step: control, tokens and targets, which lie side by side. */
static int64_t staged_count(const struct gpt2_training *t) {
    return t->model.memory.targets + t->model.shape.rows - t->model.memory.control;
}

static int open_buffers(struct gpt2_training *t, int numa_node, struct lab_err *err) {
    const struct gpt2_shape *s = &t->model.shape;
    const struct gpt2_memory *m = &t->model.memory;
    size_t values = (size_t)m->values * lab_dtype_bytes(s->dtype);
    size_t singles = (size_t)m->singles * sizeof(float);
    size_t staged = (size_t)(t->slots * s->accumulation * staged_count(t)) * sizeof(float);
    size_t told = (size_t)GPT2_TOLD_STEPS * GPT2_TOLD * sizeof(float);
    if (lab_buffer_open(t->device, LAB_MEMORY_DEVICE, -1, values, &t->values, err) ||
        lab_buffer_open(t->device, LAB_MEMORY_DEVICE, -1, singles, &t->singles, err) ||
        lab_buffer_open(t->device, LAB_MEMORY_HOST_PINNED, numa_node, staged, &t->staged, err) ||
        lab_buffer_open(t->device, LAB_MEMORY_HOST_PINNED, numa_node, told, &t->told, err))
        return -1;
    t->model.values = t->values.data;
    t->model.singles = t->singles.data;
    return 0;
}

int gpt2_reset(struct gpt2_training *t, uint64_t seed, struct lab_err *err) {
    const struct gpt2_shape *s = &t->model.shape;
    const struct gpt2_memory *m = &t->model.memory;
    struct gpt2_initial initial = {s, seed};
    const float zero = 0;
    t->step = 0;
    t->data.seed = seed;
    if (t->device->ref.simulated) /* whose memory has no content */
        return 0;
    char *gradient = (char *)t->values.data + m->gradient * (int64_t)lab_dtype_bytes(s->dtype);
    return lab_data_upload(t->stream, t->values.data, s->dtype, s->parameters, gpt2_initial_source,
                           &initial, err) ||
                   lab_data_upload(t->stream, gradient, s->dtype, s->parameters, lab_data_constant,
                                   &zero, err) ||
                   lab_data_upload(t->stream, t->singles.data, LAB_FP32, 3 * s->parameters,
                                   gpt2_initial_source, &initial, err)
               ? -1
               : 0;
}

static int launch_list(const struct gpt2_training *t, const struct gpt2_list *list,
                       struct lab_err *err) {
    for (int i = 0; i < list->count; i++)
        if (lab_launch(t->stream, &list->items[i], err))
            return -1;
    return 0;
}

static int capture(struct gpt2_training *t, const struct gpt2_list *list,
                   struct lab_graph **ret_graph, struct lab_err *err) {
    struct lab_err second = LAB_ERR_INIT;
    if (lab_graph_begin(t->stream, err))
        return -1;
    int failed = launch_list(t, list, err);
    if (lab_graph_end(t->stream, ret_graph, failed ? &second : err))
        return -1;
    return failed;
}

static int open_ways(struct gpt2_training *t, struct lab_err *err) {
    const struct gpt2_list *lists[] = {&t->first, &t->next, &t->update};
    for (int i = 0; i < 3; i++)
        lab_prepare(t->device, lists[i]->items, lists[i]->count);
    for (int i = 0; i < 3 && t->config->compile_model; i++)
        if (lists[i]->count && capture(t, lists[i], &t->graphs[i], err))
            return -1;
    return 0;
}

static int check_device(const struct gpt2_training *t, struct lab_err *err) {
    static const enum lab_op_id needed[] = {LAB_OP_GEMM, LAB_OP_FLASH_ATTENTION,
                                            LAB_OP_FLASH_ATTENTION_BACKWARD, LAB_OP_ADAMW};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (lab_data_require(t->device, needed[i], t->model.shape.dtype, err))
            return -1;
    return 0;
}

int gpt2_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
              struct lab_err *err) {
    const struct gpt2_config *config = opaque;
    struct gpt2_training *t = lab_mem_alloc(1, sizeof *t);
    t->config = t->model.config = config;
    t->model.shape = gpt2_shape_of(config);
    t->model.memory = gpt2_memory_of(&t->model.shape);
    t->device = rank->device;
    t->sink = rank->sink;
    t->slots = 2 * (int)config->sync_frequency;
    if (check_device(t, err) ||
        gpt2_data_open(config, (uint64_t)config->data_seed, &t->data, err) ||
        lab_stream_open(t->device, LAB_STREAM_COMPUTE, &t->stream, err) ||
        lab_spans_open(t->device, (int)config->sync_frequency, 1u << LAB_STAGE_COMPUTE, &t->spans,
                       err) ||
        open_buffers(t, rank->numa_node, err))
        goto fail;
    gpt2_list_gradient(&t->model, false, &t->first);
    if (config->accumulation > 1)
        gpt2_list_gradient(&t->model, true, &t->next);
    gpt2_list_update(&t->model, config->accumulation > 1 ? &t->update : &t->first);
    if (gpt2_reset(t, (uint64_t)config->data_seed, err) || open_ways(t, err))
        goto fail;
    *ret_state = t;
    return 0;
fail:
    gpt2_close(t);
    return -1;
}

void gpt2_close(void *state) {
    struct gpt2_training *t = state;
    if (!t)
        return;
    lab_stream_close(t->stream);
    for (int i = 0; i < 3; i++)
        lab_graph_close(t->graphs[i]);
    lab_spans_close(&t->spans);
    lab_buffer_close(&t->values);
    lab_buffer_close(&t->singles);
    lab_buffer_close(&t->staged);
    lab_buffer_close(&t->told);
    gpt2_list_release(&t->first);
    gpt2_list_release(&t->next);
    gpt2_list_release(&t->update);
    gpt2_data_close(&t->data);
    lab_mem_free(t);
}

/* --- steps --- */

static int stage(struct gpt2_training *t, int slot, int64_t micro, struct lab_err *err) {
    const struct gpt2_memory *m = &t->model.memory;
    const struct gpt2_shape *s = &t->model.shape;
    int64_t count = staged_count(t), index = slot * s->accumulation + micro;
    float *to = (float *)t->staged.data + index * count;
    if (!t->device->ref.simulated) {
        gpt2_control(t->config, t->step, to);
        gpt2_data_read(&t->data, s, t->step * s->accumulation + micro,
                       to + (m->tokens - m->control), to + (m->targets - m->control));
    }
    return lab_copy(t->stream, (float *)t->singles.data + m->control, to,
                    (size_t)count * sizeof(float), LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, err);
}

static int launch_part(struct gpt2_training *t, int which, struct lab_err *err) {
    const struct gpt2_list *lists[] = {&t->first, &t->next, &t->update};
    return t->graphs[which] ? lab_graph_launch(t->graphs[which], t->stream, err)
                            : launch_list(t, lists[which], err);
}

static float *told_by(const struct gpt2_training *t, int iteration) {
    return (float *)t->told.data + (int64_t)(iteration % GPT2_TOLD_STEPS) * GPT2_TOLD;
}

static int enqueue(void *state, int iteration, struct lab_err *err) {
    struct gpt2_training *t = state;
    int64_t micros = t->model.shape.accumulation;
    if (lab_spans_start(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err))
        return -1;
    for (int64_t i = 0; i < micros; i++)
        if (stage(t, iteration % t->slots, i, err) || launch_part(t, i > 0, err))
            return -1;
    t->step++;
    if ((t->update.count && launch_part(t, 2, err)) ||
        lab_copy(t->stream, told_by(t, iteration),
                 (const float *)t->singles.data + t->model.memory.control,
                 GPT2_TOLD * sizeof(float), LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err))
        return -1;
    return lab_spans_end(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err);
}

/* A step's loss, rate and norm. */
static void tell_step(const struct gpt2_training *t, const float *told, int64_t step,
                      int64_t time_ns) {
    double tokens = (double)(t->model.shape.rows * t->model.shape.accumulation);
    const struct lab_reported_metric metrics[] = {
        {"loss", "", (double)told[GPT2_LOSS] / tokens, (double)step, -1, time_ns},
        {"learning_rate", "", (double)told[LAB_ADAMW_RATE], (double)step, -1, time_ns},
        {"gradient_norm", "", (double)told[LAB_ADAMW_NORM], (double)step, -1, time_ns},
    };
    t->sink->metrics(t->sink->state, metrics, t->config->grad_clip > 0 ? 3 : 2);
}

/* The last steps' values; energy by what the device draws at the end of the run. */
static void tell(const struct gpt2_training *t, int count, const struct lab_iteration *records) {
    const struct gpt2_shape *s = &t->model.shape;
    double seconds = 1e-9 * (double)(records[count - 1].end_ns - records[0].start_ns);
    double tokens = (double)s->rows * (double)s->accumulation * count;
    double joules = 1e6 * lab_device_power_w(t->device) * seconds / tokens;
    double gib = (double)(t->values.size_bytes + t->singles.size_bytes) / 0x1p30;
    int64_t now_ns = lab_clock_now(t->device->clock);
    const struct lab_reported_metric metrics[] = {
        {"device_memory_gib", "GiB", gib, (double)NAN, -1, now_ns},
        {"joules_per_million_tokens", "J", joules, (double)NAN, -1, now_ns},
    };
    for (int i = count > GPT2_TOLD_STEPS ? count - GPT2_TOLD_STEPS : 0; i < count; i++)
        tell_step(t, told_by(t, i), t->step - count + i + 1, records[i].end_ns);
    t->sink->metrics(t->sink->state, metrics, joules > 0 ? 2 : 1);
}

int gpt2_run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct gpt2_training *t = opaque;
    struct lab_stream *streams[] = {t->stream};
    if (lab_spans_run(&t->spans, streams, 1, count, enqueue, t, records, err))
        return -1;
    if (t->sink && t->sink->metrics && !t->device->ref.simulated) /* which has times, no losses */
        tell(t, count, records);
    return 0;
}
