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

int gpt2_begin(struct gpt2_training *t, struct lab_err *err) {
    if (gpt2_reset(t, (uint64_t)t->config->data_seed, err))
        return -1;
    return t->config->resume ? gpt2_checkpoint_load(t, err) : 0;
}

int gpt2_launch(const struct gpt2_training *t, const struct gpt2_list *list, int first, int end,
                struct lab_err *err) {
    for (int i = first; i < end; i++)
        if (lab_launch(t->stream, &list->items[i], err))
            return -1;
    return 0;
}

struct part { /* of a step: what a graph is made of */
    const struct gpt2_training *training;
    const struct gpt2_list *list;
};

static int launch_part(void *state, struct lab_err *err) {
    const struct part *part = state;
    return gpt2_launch(part->training, part->list, 0, part->list->count, err);
}

/* Alone: the loss and, where it follows at once, the update are part of the gradient's list. On
 * several ranks the sums come before the update. */
static void describe_lists(struct gpt2_training *t, bool parallel) {
    bool accumulates = t->model.shape.accumulation > 1;
    struct gpt2_list *apart = accumulates ? &t->update : &t->first;
    gpt2_list_gradient(&t->model, false, &t->first);
    if (accumulates)
        gpt2_list_gradient(&t->model, true, &t->next);
    gpt2_list_loss(&t->model, !parallel ? apart : accumulates ? &t->next : &t->first);
    gpt2_list_update(&t->model, parallel ? &t->update : apart);
}

static int open_ways(struct gpt2_training *t, bool parallel, struct lab_err *err) {
    const struct gpt2_list *lists[] = {&t->first, &t->next, &t->update};
    for (int i = 0; i < 3; i++)
        lab_prepare(t->device, lists[i]->items, lists[i]->count);
    if (parallel)
        return gpt2_parallel_open(t, err);
    for (int i = 0; i < 3 && t->config->compile_model; i++) {
        struct part part = {t, lists[i]};
        if (lists[i]->count &&
            lab_parallel_capture(t->stream, launch_part, &part, &t->graphs[i], err))
            return -1;
    }
    return 0;
}

static int check_device(const struct gpt2_training *t, struct lab_err *err) {
    static const enum lab_op_id needed[] = {LAB_OP_GEMM, LAB_OP_FLASH_ATTENTION,
                                            LAB_OP_FLASH_ATTENTION_BACKWARD, LAB_OP_ADAMW};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (lab_data_require(t->device, needed[i], t->model.shape.dtype, err))
            return -1;
    if (t->model.shape.batch < 1)
        return lab_err_set(
            err, LAB_ERR_USER,
            "batch_size=%lld: too few for %d devices, each needs at least one sequence",
            (long long)t->config->batch_size, t->rank.count);
    if (t->device->ref.simulated && (t->config->checkpoint || t->config->resume))
        return lab_err_set(err, LAB_ERR_USER, "%s: a simulated device has no parameters to keep",
                           t->config->checkpoint ? "checkpoint" : "resume_from");
    if (t->config->checkpoint && t->rank.group && t->rank.count > 1 &&
        !gpt2_is_parallel(t->config, t->rank.count))
        return lab_err_set(
            err, LAB_ERR_USER,
            "checkpoint: one file, but with allreduce=none each of %d devices trains "
            "a model of its own",
            t->rank.count);
    return t->config->checkpoint && t->rank.index == 0 ? gpt2_checkpoint_check(t->config, err) : 0;
}

int gpt2_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
              struct lab_err *err) {
    const struct gpt2_config *config = opaque;
    struct gpt2_training *t = lab_mem_alloc(1, sizeof *t);
    t->config = t->model.config = config;
    bool parallel = rank->group && gpt2_is_parallel(config, rank->count);
    t->model.shape = gpt2_shape_of_rank(config, rank->index, rank->group ? rank->count : 1);
    t->model.memory = gpt2_memory_of(&t->model.shape);
    t->rank = *rank;
    t->device = rank->device;
    t->sink = rank->sink;
    t->slots = 2 * (int)config->sync_frequency;
    if (check_device(t, err) || gpt2_data_open(config, &t->model.shape, &t->data, err) ||
        lab_stream_open(t->device, LAB_STREAM_COMPUTE, &t->stream, err) ||
        lab_spans_open(t->device, (int)config->sync_frequency, 1u << LAB_STAGE_COMPUTE, &t->spans,
                       err) ||
        open_buffers(t, rank->numa_node, err))
        goto fail;
    describe_lists(t, parallel);
    if (gpt2_begin(t, err) || open_ways(t, parallel, err))
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
    gpt2_parallel_close(t);
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

static int do_part(const struct gpt2_training *t, int which, struct lab_err *err) {
    const struct gpt2_list *lists[] = {&t->first, &t->next, &t->update};
    return t->graphs[which] ? lab_graph_launch(t->graphs[which], t->stream, err)
                            : gpt2_launch(t, lists[which], 0, lists[which]->count, err);
}

static float *told_by(const struct gpt2_training *t, int iteration) {
    return (float *)t->told.data + (int64_t)(iteration % GPT2_TOLD_STEPS) * GPT2_TOLD;
}

static int enqueue(void *state, int iteration, struct lab_err *err) {
    struct gpt2_training *t = state;
    int64_t micros = t->model.shape.accumulation;
    if (lab_spans_start(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err))
        return -1;
    struct lab_parallel *parallel = gpt2_parallel_common(t);
    for (int64_t i = 0; i < micros; i++)
        if (stage(t, iteration % t->slots, i, err) ||
            (parallel && i == micros - 1 ? lab_parallel_step(parallel, iteration, t->count, err)
                                         : do_part(t, i > 0, err)))
            return -1;
    t->step++;
    if ((t->update.count && !parallel && do_part(t, 2, err)) ||
        lab_copy(t->stream, told_by(t, iteration),
                 (const float *)t->singles.data + t->model.memory.control,
                 GPT2_TOLD * sizeof(float), LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err))
        return -1;
    return lab_spans_end(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err);
}

/* A step's loss, rate and norm. */
static void tell_step(const struct gpt2_training *t, const float *told, int64_t step,
                      int64_t time_ns) {
    double tokens = (double)(t->model.shape.batch_rows * t->model.shape.accumulation);
    const struct lab_reported_metric metrics[] = {
        {"loss", "", (double)told[GPT2_LOSS] / tokens, (double)step, -1, time_ns},
        {"learning_rate", "", (double)told[LAB_ADAMW_RATE], (double)step, -1, time_ns},
        {"gradient_norm", "", (double)told[LAB_ADAMW_NORM], (double)step, -1, time_ns},
    };
    t->sink->metrics(t->sink->state, metrics, t->config->grad_clip > 0 ? 3 : 2);
}

static void read_energy(struct gpt2_training *t) {
    int64_t now_ns = lab_clock_now(t->device->clock);
    if (gpt2_energy_is_due(&t->energy, now_ns))
        gpt2_energy_take(&t->energy, now_ns, lab_device_energy_j(t->device));
}

/* By the counter, once it was read twice; until then by what the device draws behind the steps. */
static double joules_of_step(struct gpt2_training *t, int count,
                             const struct lab_iteration *records) {
    int64_t busy_ns = records[count - 1].end_ns - records[0].start_ns;
    gpt2_energy_add(&t->energy, count, busy_ns);
    read_energy(t);
    double counted_j = gpt2_energy_of_step(&t->energy);
    return counted_j > 0 ? counted_j
                         : lab_device_power_w(t->device) * 1e-9 * (double)busy_ns / count;
}

/* The last steps' values. */
static void tell(struct gpt2_training *t, int count, const struct lab_iteration *records) {
    const struct gpt2_shape *s = &t->model.shape;
    int64_t rows = t->device->ref.slices > 1 ? s->batch_rows : s->rows; /* whose energy it is */
    double tokens = (double)rows * (double)s->accumulation;
    double joules = 1e6 * joules_of_step(t, count, records) / tokens;
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

static int run_steps(struct gpt2_training *t, int count, struct lab_iteration *records,
                     struct lab_err *err) {
    struct lab_parallel *parallel = gpt2_parallel_common(t);
    struct lab_stream *streams[] = {t->stream, lab_parallel_stream(parallel)};
    bool tells = t->sink && t->sink->metrics && !t->device->ref.simulated; /* it has no losses */
    t->count = count;
    if (tells && t->energy.counter_j == 0)
        read_energy(t);
    if (lab_spans_run(&t->spans, streams, 2, count, enqueue, t, records, err))
        return -1;
    if (tells)
        tell(t, count, records);
    return parallel
               ? lab_parallel_tell(parallel, count, t->sink, lab_clock_now(t->device->clock), err)
               : 0;
}

/* --- checkpoints --- */

/* One rank's file is that of all: they have the same state. */
static bool keeps(const struct gpt2_training *t) {
    return t->config->checkpoint && !t->checking && (!t->parallel || t->rank.index == 0);
}

/* Steps until the next checkpoint; they are the same on all ranks. */
static int steps_until(const struct gpt2_training *t, int count) {
    int64_t every = t->config->checkpoint_steps;
    if (!t->config->checkpoint || every == 0)
        return count;
    int64_t left = every - t->step % every;
    return left < count ? (int)left : count;
}

int gpt2_run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct gpt2_training *t = opaque;
    int64_t every = t->config->checkpoint_steps;
    for (int done = 0, steps; done < count; done += steps) {
        steps = steps_until(t, count - done);
        if (run_steps(t, steps, records + done, err) ||
            (every > 0 && t->step % every == 0 && keeps(t) && gpt2_checkpoint_save(t, err)))
            return -1;
    }
    return 0;
}

/* Steps behind the end are a trace's: nobody's, as a check's are. */
int gpt2_finish(void *state, struct lab_err *err) {
    struct gpt2_training *t = state;
    int failed = keeps(t) ? gpt2_checkpoint_save(t, err) : 0;
    t->sink = NULL;
    t->checking = true;
    return failed;
}
