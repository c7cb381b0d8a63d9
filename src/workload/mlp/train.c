/*
 * train.c: training on a device. All data lies there, and so does the count of steps: a step is the
 * same commands each time, and the host only says "again".
 *
 * compile_model=false launches forward, backward and update one by one, so that their times can be
 * told apart; true makes one operation of them, replayed as a captured graph.
 */
#include "workload/mlp/mlp.h"

#include <math.h>

/* --- life --- */

static int open_buffers(struct mlp_training *t, int numa_node, struct lab_err *err) {
    const struct mlp_shape *s = &t->shape;
    const struct {
        struct lab_buffer *buffer;
        int64_t count;
    } buffers[] = {
        {&t->x, s->data_rows * s->inputs},         {&t->y, s->data_rows * s->outputs},
        {&t->state, lab_mlp_state_count(&s->mlp)}, {&t->gradient, lab_mlp_gradient_count(&s->mlp)},
        {&t->work, lab_mlp_work_count(&s->mlp)},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (lab_buffer_open(t->device, LAB_MEMORY_DEVICE, -1,
                            (size_t)buffers[i].count * sizeof(float), buffers[i].buffer, err))
            return -1;
    return lab_buffer_open(t->device, LAB_MEMORY_HOST_PINNED, numa_node,
                           LAB_MLP_TAIL * sizeof(float), &t->tail, err);
}

static int upload_data(struct mlp_training *t, struct lab_err *err) {
    const struct mlp_shape *s = &t->shape;
    if (t->device->ref.simulated) /* whose memory has no content */
        return 0;
    struct mlp_data data;
    mlp_data_draw(s, (uint64_t)t->config->data_seed, &data);
    struct mlp_rows x = {s, &data, false}, y = {s, &data, true};
    int failed = lab_data_upload(t->stream, t->x.data, LAB_FP32, s->data_rows * s->inputs,
                                 mlp_rows_source, &x, err) ||
                 lab_data_upload(t->stream, t->y.data, LAB_FP32, s->data_rows * s->outputs,
                                 mlp_rows_source, &y, err);
    mlp_data_release(&data);
    return failed ? -1 : 0;
}

int mlp_training_reset(struct mlp_training *t, uint64_t seed, struct lab_err *err) {
    struct mlp_initial initial = {&t->shape.mlp, seed};
    return lab_data_upload(t->stream, t->state.data, LAB_FP32, lab_mlp_state_count(&t->shape.mlp),
                           mlp_initial_source, &initial, err);
}

/* The step as one launch, and as those it is made of. */
static void describe_launches(struct mlp_training *t) {
    const struct mlp_shape *s = &t->shape;
    const struct lab_mlp *mlp = &s->mlp;
    struct lab_tensor x = lab_tensor_matrix(t->x.data, LAB_FP32, s->data_rows, s->inputs);
    struct lab_tensor y = lab_tensor_matrix(t->y.data, LAB_FP32, s->data_rows, s->outputs);
    struct lab_tensor state = lab_tensor_vector(t->state.data, LAB_FP32, lab_mlp_state_count(mlp));
    struct lab_tensor gradient =
        lab_tensor_vector(t->gradient.data, LAB_FP32, lab_mlp_gradient_count(mlp));
    struct lab_tensor work = lab_tensor_vector(t->work.data, LAB_FP32, lab_mlp_work_count(mlp));
    struct lab_tensor forward =
        lab_tensor_vector(t->work.data, LAB_FP32, lab_mlp_forward_count(mlp));
    struct lab_launch launch = {.mlp = *mlp, .adam = LAB_ADAM, .compute = s->dtype};
    launch.adam.learning_rate = (float)t->config->lr;
    t->step = t->launches[0] = t->launches[1] = t->launches[2] = launch;
    t->step.op = LAB_OP_MLP_STEP;
    t->step.mlp.first_row = 0; /* what all ranks do together */
    t->step.mlp.rows = mlp->batch;
    t->step.in[0] = t->launches[0].in[0] = t->launches[1].in[0] = x;
    t->step.in[1] = t->launches[0].in[1] = y;
    t->step.in[2] = t->launches[0].in[2] = state;
    t->step.in[3] = work;
    t->step.in[4] = gradient;
    t->step.out = state;
    t->launches[0].op = LAB_OP_MLP_FORWARD;
    t->launches[0].out = forward;
    t->launches[1].op = LAB_OP_MLP_BACKWARD;
    t->launches[1].in[1] = state;
    t->launches[1].in[2] = work;
    t->launches[1].out = gradient;
    t->launches[2].op = LAB_OP_ADAM;
    t->launches[2].in[0] = state;
    t->launches[2].in[1] = gradient;
    t->launches[2].out = state;
}

static int launch_step(void *state, struct lab_err *err) {
    const struct mlp_training *t = state;
    return lab_launch(t->stream, &t->step, err);
}

static int open_ways(struct mlp_training *t, struct lab_err *err) {
    if (t->config->compile_model) {
        lab_prepare(t->device, &t->step, 1);
        return lab_parallel_capture(t->stream, launch_step, t, &t->graph, err);
    }
    lab_prepare(t->device, t->launches, 3);
    for (int i = 0; i < MLP_MARKS; i++)
        if (lab_event_open(t->device, &t->marks[i], err))
            return -1;
    return 0;
}

int mlp_open(const void *opaque, const struct lab_rank *rank, void **ret_state,
             struct lab_err *err) {
    const struct mlp_config *config = opaque;
    struct mlp_training *t = lab_mem_alloc(1, sizeof *t);
    t->config = config;
    t->shape = mlp_shape_of_rank(config, rank->index, rank->group ? rank->count : 1);
    t->device = rank->device;
    t->sink = rank->sink;
    if (t->shape.mlp.rows < 1 || t->shape.epoch_rows < 1) {
        lab_err_set(err, LAB_ERR_USER,
                    t->shape.mlp.rows < 1
                        ? "batch_size=%lld: too few for %d devices, each needs at least one sample"
                        : "batch_size=%lld on each of %d devices: there are too few samples; raise "
                          "dataset_size",
                    (long long)config->batch_size, rank->count);
        goto fail;
    }
    if (lab_data_require(t->device, LAB_OP_MLP_FORWARD, t->shape.dtype, err) ||
        lab_stream_open(t->device, LAB_STREAM_COMPUTE, &t->stream, err) ||
        lab_spans_open(t->device, (int)config->sync_frequency, 1u << LAB_STAGE_COMPUTE, &t->spans,
                       err) ||
        open_buffers(t, rank->numa_node, err))
        goto fail;
    describe_launches(t);
    bool parallel = rank->group && mlp_is_parallel(config, rank->count);
    if (upload_data(t, err) || mlp_training_reset(t, (uint64_t)config->data_seed, err) ||
        (parallel ? mlp_parallel_open(t, rank, err) : open_ways(t, err)))
        goto fail;
    *ret_state = t;
    return 0;
fail:
    mlp_close(t);
    return -1;
}

void mlp_close(void *state) {
    struct mlp_training *t = state;
    if (!t)
        return;
    struct lab_err ignored = LAB_ERR_INIT;
    if (t->parallel && t->stream)
        lab_stream_sync(t->stream, &ignored);
    mlp_parallel_close(t->parallel);
    lab_stream_close(t->stream);
    lab_graph_close(t->graph);
    lab_spans_close(&t->spans);
    for (int i = 0; i < MLP_MARKS; i++)
        lab_event_close(t->marks[i]);
    lab_buffer_close(&t->x);
    lab_buffer_close(&t->y);
    lab_buffer_close(&t->state);
    lab_buffer_close(&t->gradient);
    lab_buffer_close(&t->work);
    lab_buffer_close(&t->tail);
    lab_mem_free(t);
}

/* --- steps --- */

/* The last step of a run is the one whose parts are timed: marks in all would cost small ones
 * time. */
static int launch_parts(struct mlp_training *t, int iteration, struct lab_err *err) {
    bool marked = iteration == t->count - 1;
    if (marked && lab_event_record(t->marks[MLP_BEFORE], t->stream, err))
        return -1;
    for (int i = 0; i < 3; i++)
        if (lab_launch(t->stream, &t->launches[i], err) ||
            (marked && lab_event_record(t->marks[MLP_FORWARD + i], t->stream, err)))
            return -1;
    return 0;
}

static int enqueue(void *state, int iteration, struct lab_err *err) {
    struct mlp_training *t = state;
    if (lab_spans_start(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err) ||
        (t->parallel ? lab_parallel_step(mlp_parallel_common(t->parallel), iteration, t->count, err)
         : t->graph  ? lab_graph_launch(t->graph, t->stream, err)
                     : launch_parts(t, iteration, err)))
        return -1;
    return lab_spans_end(&t->spans, iteration, LAB_STAGE_COMPUTE, t->stream, err);
}

static void training_tell(const struct mlp_training *t, const char *name, const char *unit,
                          double value, int64_t time_ns) {
    const struct lab_reported_metric metric = {name, unit, value, (double)NAN, -1, time_ns};
    if (t->sink && t->sink->metrics)
        t->sink->metrics(t->sink->state, &metric, 1);
}

static int tell_parts(const struct mlp_training *t, int64_t time_ns, struct lab_err *err) {
    static const char *const names[] = {"forward_ms", "backward_ms", "update_ms"};
    int64_t times[MLP_MARKS];
    for (int i = 0; i < MLP_MARKS; i++)
        if (lab_event_time(t->marks[i], &times[i], err))
            return -1;
    for (int i = 0; i < 3; i++)
        training_tell(t, names[i], "ms", 1e-6 * (double)(times[i + 1] - times[i]), time_ns);
    return 0;
}

/* The last values of the state, as the last run left them: LAB_MLP_TAIL of them. */
static const float *training_tail(const struct mlp_training *t) {
    return t->tail.data;
}

int mlp_run(void *opaque, int count, struct lab_iteration *records, struct lab_err *err) {
    struct mlp_training *t = opaque;
    const float *state = t->state.data;
    t->count = count;
    struct lab_parallel *parallel = mlp_parallel_common(t->parallel);
    struct lab_stream *streams[] = {t->stream, lab_parallel_stream(parallel)};
    if (lab_spans_run(&t->spans, streams, 2, count, enqueue, t, records, err) ||
        lab_copy(t->stream, t->tail.data, state + lab_mlp_state_count(&t->shape.mlp) - LAB_MLP_TAIL,
                 LAB_MLP_TAIL * sizeof(float), LAB_MEMORY_HOST_PINNED, LAB_MEMORY_DEVICE, err) ||
        lab_stream_sync(t->stream, err))
        return -1;
    int64_t now_ns = lab_clock_now(t->device->clock);
    if (!t->device->ref.simulated) { /* which has times, but no losses */
        training_tell(t, "loss", "", (double)training_tail(t)[LAB_MLP_MSE], now_ns);
        training_tell(t, "mae", "", (double)training_tail(t)[LAB_MLP_MAE], now_ns);
    }
    if (parallel)
        return lab_parallel_tell(parallel, count, t->sink, now_ns, err);
    return t->graph ? 0 : tell_parts(t, now_ns, err);
}
