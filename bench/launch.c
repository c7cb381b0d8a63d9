/*
 * launch.c: how long a launch takes on a GPU or CPU: many of them captured in a graph, replayed
 * without a pause. So a library's kernels can be timed likewise, and ops that no workload measures
 * by itself: derivatives, and what a language model's training does between its products.
 *
 *     bench_launch DEVICE DTYPE OP SIZE... [causal] [config=TEXT]
 *                            prints JSON: seconds of a launch, sustained and in a burst, its bytes
 *                            and flops; the sizes of each op are below, TEXT is as in `gpulab bench config="TEXT"`
 *
 * Inputs are random. Sustained: the median over replays for a second, half of one before them not
 * counted, since a GPU at its power limit is slower than in a short burst. The burst is 10 launches
 * or a millisecond, behind half a second without any.
 */
#include "base/clock.h"
#include "base/str.h"
#include "device/device.h"
#include "device/tunable.h"
#include "machine/machine.h"
#include "stats/stats.h"
#include "workload/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZES       5
#define REPLAYS_MAX 100000

static int fail(const char *text) {
    fprintf(stderr, "bench_launch: %s\n", text);
    return 1;
}

/* --- launches --- */

static void attend_forward(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    const int64_t heads[] = {n[0], n[1], n[2], n[4]}, shared[] = {n[0], n[1], n[3], n[4]};
    launch->in[0] = launch->out = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, heads);
    launch->in[1] = launch->in[2] = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, shared);
    launch->scale = 1.0f / sqrtf((float)n[4]);
}

static void multiply(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    launch->in[0] = lab_tensor_matrix(NULL, dtype, n[0], n[2]);
    launch->in[1] = lab_tensor_matrix(NULL, dtype, n[1], n[2]);
    launch->out = lab_tensor_matrix(NULL, dtype, n[0], n[1]);
    launch->transpose_b = true;
}

static void attend(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    const int64_t heads[] = {n[0], n[1], n[2], n[3]}, sums[] = {n[0], n[2], n[1]};
    const int64_t all[] = {n[0], n[1], 3 * n[2], n[3]};
    struct lab_tensor q = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, heads);
    for (int i = 0; i < 5; i++)
        launch->in[i] = q;
    launch->in[5] = lab_tensor(NULL, LAB_FP32, 3, sums);
    launch->out = lab_tensor(NULL, dtype, LAB_TENSOR_RANK, all);
    launch->scale = 1.0f / sqrtf((float)n[3]);
}

static void normalise(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, n[0], n[1]);
    launch->in[0] = launch->in[3] = x;
    launch->in[1] = launch->in[2] = lab_tensor_vector(NULL, dtype, n[1]);
    launch->out = lab_tensor(NULL, dtype, 3, (int64_t[]){2, n[0], n[1]});
    launch->epsilon = 1e-5f;
}

static void normalise_backward(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    struct lab_tensor x = lab_tensor_matrix(NULL, dtype, n[0], n[1]);
    launch->in[0] = launch->in[3] = launch->in[4] = launch->out = x;
    launch->in[1] = lab_tensor_vector(NULL, dtype, n[1]);
    launch->in[2] = lab_tensor_matrix(NULL, LAB_FP32, n[0], 2);
}

static void judge(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    launch->in[0] = launch->out = lab_tensor_matrix(NULL, dtype, n[0], n[1]);
    launch->in[1] = lab_tensor_vector(NULL, LAB_FP32, n[0]);
    launch->classes = n[2];
    launch->scale = 1.0f / (float)n[0];
}

static void each(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    launch->in[0] = launch->in[1] = launch->out = lab_tensor_vector(NULL, dtype, n[0]);
}

static void update(const int64_t *n, enum lab_dtype dtype, struct lab_launch *launch) {
    launch->in[0] = launch->out = lab_tensor_vector(NULL, dtype, n[0]);
    launch->in[1] = lab_tensor_matrix(NULL, LAB_FP32, 3, n[0]);
    launch->in[2] = lab_tensor_vector(NULL, LAB_FP32, LAB_ADAMW_CONTROLS);
    launch->adam = LAB_ADAM;
    launch->decay = 0.1f;
    launch->decayed = n[0];
}

static const struct shape {
    enum lab_op_id op;
    int sizes;
    const char *names;
    void (*set)(const int64_t *sizes, enum lab_dtype dtype, struct lab_launch *launch);
} shapes[] = {
    {LAB_OP_FLASH_ATTENTION, 5, "BATCH TOKENS HEADS KV_HEADS WIDTH [causal]", attend_forward},
    {LAB_OP_GEMM, 3, "M N K, b as [n,k]", multiply},
    {LAB_OP_FLASH_ATTENTION_BACKWARD, 4, "BATCH TOKENS HEADS WIDTH [causal]", attend},
    {LAB_OP_RESIDUAL_LAYER_NORM, 2, "ROWS COLUMNS", normalise},
    {LAB_OP_LAYER_NORM_BACKWARD, 2, "ROWS COLUMNS", normalise_backward},
    {LAB_OP_CROSS_ENTROPY, 3, "ROWS COLUMNS CLASSES", judge},
    {LAB_OP_GELU_TANH, 1, "ELEMENTS", each},
    {LAB_OP_GELU_TANH_BACKWARD, 1, "ELEMENTS", each},
    {LAB_OP_ADAMW, 1, "PARAMETERS", update},
    {LAB_OP_ADD, 1, "ELEMENTS", each},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

static const struct shape *shape_of(const char *name) {
    for (size_t i = 0; i < SHAPES; i++)
        if (lab_str_equal(lab_op_get(shapes[i].op)->name, name))
            return &shapes[i];
    return NULL;
}

static int usage(void) {
    fprintf(stderr, "bench_launch DEVICE DTYPE OP SIZE...\n");
    for (size_t i = 0; i < SHAPES; i++)
        fprintf(stderr, "  %s %s\n", lab_op_get(shapes[i].op)->name, shapes[i].names);
    return 2;
}

static int read_launch(int argc, char **argv, struct lab_launch *ret_launch) {
    const struct shape *shape = argc > 3 ? shape_of(argv[3]) : NULL;
    enum lab_dtype dtype;
    int64_t sizes[SIZES];
    if (!shape || lab_dtype_parse(argv[2], &dtype) || argc < 4 + shape->sizes)
        return -1;
    for (int i = 0; i < shape->sizes; i++)
        if ((sizes[i] = strtoll(argv[4 + i], NULL, 10)) < 1)
            return -1;
    *ret_launch = (struct lab_launch){.op = shape->op};
    shape->set(sizes, dtype, ret_launch);
    ret_launch->causal = argc > 4 + shape->sizes && lab_str_equal(argv[4 + shape->sizes], "causal");
    if (lab_op_get(shape->op)->also)
        ret_launch->also = lab_op_get(shape->op)->also(ret_launch);
    return 0;
}

/* The configuration that is asked for, if one is. */
static int configure(const char *word, const struct lab_machine *machine,
                     const struct lab_device_ref *ref, struct lab_launch *launch,
                     struct lab_err *err) {
    const struct lab_tunable_place place = {machine, ref};
    if (strncmp(word, "config=", 7) != 0)
        return 0;
    const struct lab_tunable *tunable = lab_tunable_find(&place, launch);
    if (!tunable)
        return lab_err_set(err, LAB_ERR_USER, "%s: nothing can be chosen", word);
    return lab_tuning_parse(tunable, &place, launch, word + 7, &launch->tuning, err) ||
                   lab_tuning_check(tunable, &place, launch, &launch->tuning, err)
               ? -1
               : 0;
}

/* --- memory and time --- */

/* Random numbers of a seed; 0 = it is an output. */
static int open_tensor(struct lab_device *device, struct lab_stream *stream, uint64_t seed,
                       struct lab_tensor *tensor, struct lab_err *err) {
    static struct lab_buffer buffers[LAB_LAUNCH_INPUTS + 2];
    static int count;
    struct lab_buffer *buffer = &buffers[count++];
    if (lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, lab_tensor_bytes(tensor), buffer, err))
        return -1;
    tensor->data = buffer->data;
    return seed == 0 ? 0
                     : lab_data_upload(stream, tensor->data, tensor->dtype,
                                       lab_tensor_count(tensor), lab_data_random, &seed, err);
}

static int open_tensors(struct lab_device *device, struct lab_stream *stream,
                        struct lab_launch *launch, struct lab_err *err) {
    for (int i = 0; i < lab_op_get(launch->op)->inputs; i++)
        if (open_tensor(device, stream, (uint64_t)i + 1, &launch->in[i], err))
            return -1;
    if (launch->also.rank && lab_op_get(launch->op)->also_over)
        launch->also.data = launch->in[1].data; /* adamw's state */
    else if (launch->also.rank && open_tensor(device, stream, 0, &launch->also, err))
        return -1;
    return open_tensor(device, stream, 0, &launch->out, err);
}

/* The median of a launch's seconds over replays of `launches`, for so long. */
static int replay(struct lab_graph *graph, struct lab_stream *stream, int launches,
                  double duration_s, double *ret_seconds, struct lab_err *err) {
    static double seconds[REPLAYS_MAX];
    int64_t start_ns = lab_clock_now(lab_clock_system()), begin_ns = start_ns;
    int count = 0;
    while (count < REPLAYS_MAX && (double)(begin_ns - start_ns) * 1e-9 < duration_s) {
        if (lab_graph_launch(graph, stream, err) || lab_stream_sync(stream, err))
            return -1;
        int64_t now_ns = lab_clock_now(lab_clock_system());
        seconds[count++] = (double)(now_ns - begin_ns) * 1e-9 / launches;
        begin_ns = now_ns;
    }
    *ret_seconds = lab_stats_median(seconds, (size_t)count);
    return 0;
}

static int capture(struct lab_stream *stream, const struct lab_launch *launch, int launches,
                   struct lab_graph **ret_graph, struct lab_err *err) {
    int failed = lab_graph_begin(stream, err);
    for (int i = 0; i < launches && !failed; i++)
        failed = lab_launch(stream, launch, err);
    return failed || lab_graph_end(stream, ret_graph, err) ? -1 : 0;
}

#define GRAPH_SECONDS 0.01 /* of a replay, about: its own start is a thousandth of that */

static int measure(struct lab_stream *stream, const struct lab_launch *launch, double *ret_burst,
                   double *ret_seconds, struct lab_err *err) {
    struct lab_graph *few, *many = NULL;
    if (lab_launch(stream, launch, err) || lab_stream_sync(stream, err) ||
        capture(stream, launch, 10, &few, err) || replay(few, stream, 10, 0.1, ret_seconds, err))
        return -1;
    usleep(500000);
    if (replay(few, stream, 10, 0.001, ret_burst, err))
        return -1;
    int launches = (int)fmin(2000, fmax(1, GRAPH_SECONDS / *ret_seconds));
    int failed = capture(stream, launch, launches, &many, err) ||
                 replay(many, stream, launches, 0.5, ret_seconds, err) ||
                 replay(many, stream, launches, 1.0, ret_seconds, err);
    lab_graph_close(few);
    lab_graph_close(many);
    return failed;
}

int main(int argc, char **argv) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_machine *machine;
    struct lab_device_list list = {0};
    struct lab_device *device;
    struct lab_stream *stream;
    struct lab_launch launch;
    double burst, seconds;
    LAB_AUTO(arena, arena);
    if (argc < 4 || read_launch(argc, argv, &launch))
        return usage();
    if (lab_launch_complete(&launch, &err) || lab_machine_open(NULL, &machine, &err) ||
        lab_device_select(machine, argv[1], &arena, &list, &err) ||
        configure(argv[argc - 1], machine, &list.items[0], &launch, &err) ||
        lab_device_open(machine, &list.items[0], LAB_DEVICE_SETUP, &device, &err) ||
        lab_stream_open(device, LAB_STREAM_COMPUTE, &stream, &err) ||
        open_tensors(device, stream, &launch, &err) ||
        measure(stream, &launch, &burst, &seconds, &err))
        return fail(err.text);
    struct lab_cost cost = lab_op_cost(&launch);
    printf("{\"seconds\": %.9g, \"burst_seconds\": %.9g, \"bytes\": %.0f, \"flops\": %.0f, "
           "\"clock_mhz\": %.0f, "
           "\"power_w\": %.0f}\n",
           seconds, burst, cost.bytes_read + cost.bytes_written, cost.flops,
           lab_device_clock_mhz(device), lab_device_power_w(device));
    return 0;
}
