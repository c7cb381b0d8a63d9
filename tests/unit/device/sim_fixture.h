/*
 * sim_fixture.h: a small machine whose times can be worked out by hand: two nodes, three GPUs,
 * round figures, no chance. Tests change it by putting keys behind it, or lines in the place of
 * others.
 */
#pragma once

#include "device/sim/sim.h"
#include "machine/machine.h"

#include "test.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* GPU 0 and 1 share `up`, 10 GB/s; GPU 2 has its slot's 20 GB/s to itself. Host calls cost
 * nothing. */
#define TOY_HEAD                                                                                   \
    "title: toy\n"                                                                                 \
    "cpu: none\n"                                                                                  \
    "nodes:\n"                                                                                     \
    "  - {number: 0, cores: 4, memory_gb: 8, bandwidth_gb_s: 1000}\n"                              \
    "  - {number: 2, cores: 4, memory_gb: 8, bandwidth_gb_s: 1000}\n"                              \
    "distances: [[10, 20], [20, 10]]\n"                                                            \
    "links:\n"                                                                                     \
    "  - {name: between, joins: [0, 2], bandwidth_gb_s: 5, latency_us: 100}\n"                     \
    "  - {name: up, bandwidth_gb_s: 10}\n"                                                         \
    "models:\n"                                                                                    \
    "  toy:\n"                                                                                     \
    "    name: Toy\n"                                                                              \
    "    units: 4\n"                                                                               \
    "    memory_gb: 2\n"                                                                           \
    "    tflops: {fp32: 1}\n"                                                                      \
    "    memory_gb_s: 100\n"                                                                       \
    "    slot_gb_s: 20\n"                                                                          \
    "    slot_us: 10\n"                                                                            \
    "    clock_mhz: 1000\n"                                                                        \
    "    kernel_us: 5\n"                                                                           \
    "    graph_kernel_us: 1\n"                                                                     \
    "    launch_us: 0\n"                                                                           \
    "    graph_us: 0\n"                                                                            \
    "    copy_us: 0\n"                                                                             \
    "    call_us: 0\n"                                                                             \
    "    sync_us: 0\n"                                                                             \
    "    capture_us: 0\n"                                                                          \
    "    first_us: 0\n"                                                                            \
    "    power: {idle_w: 10, compute_w: 80, memory_w: 10, limit_w: 100}\n"                         \
    "    heat: {ambient_c: 20, c_per_w: 0.5, time_s: 1, throttle_c: 80}\n"                         \
    "gpus:\n"                                                                                      \
    "  - {model: toy, node: 0, path: [up]}\n"                                                      \
    "  - {model: toy, node: 0, path: [up]}\n"                                                      \
    "  - {model: toy, node: 2}\n"

/* The head of the text with the first `from` in it replaced, in the arena. */
static inline const char *toy_with(struct lab_arena *own, const char *from, const char *to) {
    const char *at = strstr(TOY_HEAD, from);
    assert_non_null(at);
    return lab_arena_printf(own, "%.*s%s%s", (int)(at - TOY_HEAD), TOY_HEAD, to, at + strlen(from));
}

#define assert_double_equal(value, expected, tolerance)                                            \
    do {                                                                                           \
        double value_ = (value), expected_ = (expected);                                           \
        if (!(value_ >= expected_ - (tolerance) && value_ <= expected_ + (tolerance)))             \
            fail_msg("%s is %.12g instead of %.12g", #value, value_, expected_);                   \
    } while (0)

static struct lab_machine *sim_here;
static struct lab_arena sim_arena;

static inline int sim_set_up(void **state) {
    (void)state;
    lab_arena_init(&sim_arena);
    lab_device_define("toy", TOY_HEAD);
    ASSERT_OK(lab_machine_open(NULL, &sim_here, err));
    return 0;
}

static inline int sim_tear_down(void **state) {
    (void)state;
    lab_device_define(NULL, NULL);
    lab_machine_close(sim_here);
    lab_arena_release(&sim_arena);
    return 0;
}

static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER; /* of the arena: ranks are threads */

static inline struct lab_device_ref sim_ref(const char *selector) {
    struct lab_device_list list = {0};
    pthread_mutex_lock(&sim_lock);
    ASSERT_OK(lab_device_select(sim_here, selector, &sim_arena, &list, err));
    pthread_mutex_unlock(&sim_lock);
    return list.items[0];
}

static inline struct lab_device *sim_device(const char *selector, struct lab_device_setup setup) {
    struct lab_device *device = NULL;
    struct lab_device_ref ref = sim_ref(selector);
    setup.start_ns = setup.start_ns ? setup.start_ns : LAB_NS_PER_S;
    ASSERT_OK(lab_device_open(sim_here, &ref, setup, &device, err));
    return device;
}

static inline void sim_ok(int result, const struct lab_err *err) {
    if (result < 0)
        fail_msg("%s", err->text);
}

struct sim_bench { /* a device with what most tests need */
    struct lab_device *device;
    struct lab_stream *compute, *there, *back;
    struct lab_buffer host, near, far;
};

#define SIM_BENCH_BYTES ((size_t)400 << 20)

static inline struct sim_bench sim_bench_open(const char *selector, struct lab_device_setup setup,
                                              int node) {
    struct lab_err err = LAB_ERR_INIT;
    struct sim_bench bench = {.device = sim_device(selector, setup)};
    sim_ok(lab_stream_open(bench.device, LAB_STREAM_COMPUTE, &bench.compute, &err), &err);
    sim_ok(lab_stream_open(bench.device, LAB_STREAM_COPY, &bench.there, &err), &err);
    sim_ok(lab_stream_open(bench.device, LAB_STREAM_COPY, &bench.back, &err), &err);
    sim_ok(lab_buffer_open(bench.device, LAB_MEMORY_HOST_PINNED, node, SIM_BENCH_BYTES, &bench.host,
                           &err),
           &err);
    sim_ok(lab_buffer_open(bench.device, LAB_MEMORY_DEVICE, -1, SIM_BENCH_BYTES, &bench.near, &err),
           &err);
    sim_ok(lab_buffer_open(bench.device, LAB_MEMORY_DEVICE, -1, SIM_BENCH_BYTES, &bench.far, &err),
           &err);
    return bench;
}

static inline void sim_bench_close(struct sim_bench *bench) {
    lab_stream_close(bench->compute);
    lab_stream_close(bench->there);
    lab_stream_close(bench->back);
    lab_buffer_close(&bench->host);
    lab_buffer_close(&bench->near);
    lab_buffer_close(&bench->far);
    lab_device_close(bench->device);
}

static inline void sim_put(struct sim_bench *bench, struct lab_stream *stream, size_t bytes) {
    struct lab_err err = LAB_ERR_INIT;
    sim_ok(lab_copy(stream, bench->near.data, bench->host.data, bytes, LAB_MEMORY_DEVICE,
                    LAB_MEMORY_HOST_PINNED, &err),
           &err);
}

static inline void sim_get(struct sim_bench *bench, struct lab_stream *stream, size_t bytes) {
    struct lab_err err = LAB_ERR_INIT;
    sim_ok(lab_copy(stream, bench->host.data, bench->far.data, bytes, LAB_MEMORY_HOST_PINNED,
                    LAB_MEMORY_DEVICE, &err),
           &err);
}

/* out = a + b of `count` floats: `count` flops, 12 · count bytes. */
static inline void sim_add(struct sim_bench *bench, int64_t count) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_launch launch = {.op = LAB_OP_ADD};
    launch.in[0] = lab_tensor_vector(bench->near.data, LAB_FP32, count);
    launch.in[1] = lab_tensor_vector(bench->far.data, LAB_FP32, count);
    launch.out = launch.in[0];
    sim_ok(lab_launch(bench->compute, &launch, &err), &err);
}

/* [n,n]·[n,n]: 2·n³ flops, 12·n² bytes. */
static inline void sim_gemm(struct sim_bench *bench, int64_t n) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_launch launch = {.op = LAB_OP_GEMM};
    char *behind = (char *)bench->near.data + (size_t)(n * n) * sizeof(float);
    launch.in[0] = lab_tensor_matrix(bench->near.data, LAB_FP32, n, n);
    launch.in[1] = lab_tensor_matrix(behind, LAB_FP32, n, n);
    launch.out = lab_tensor_matrix(bench->far.data, LAB_FP32, n, n);
    sim_ok(lab_launch(bench->compute, &launch, &err), &err);
}

static inline void sim_sync(struct lab_stream *stream) {
    struct lab_err err = LAB_ERR_INIT;
    sim_ok(lab_stream_sync(stream, &err), &err);
}

/* Simulated seconds since the device's clock began. */
static inline double sim_seconds(const struct sim_bench *bench) {
    return 1e-9 * (double)(lab_clock_now(bench->device->clock) - LAB_NS_PER_S);
}

#define SIM_MB ((size_t)1000000)
