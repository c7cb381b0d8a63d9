/*
 * test_sim_engine.c: what commands cost on a simulated machine, alone and beside each other, worked
 * out by hand from the toy's round figures.
 */
#include "sim_fixture.h"

#define US 1e-6

LAB_TEST(a_copy_takes_latency_and_bytes) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_sync(bench.there);
    /* slot 10 µs; 100 MB over `up` at 10 GB/s */
    assert_double_equal(sim_seconds(&bench), 10 * US + 0.01, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(a_kernel_takes_the_longer_of_compute_and_memory) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_add(&bench, 1000000); /* 12 MB at 100 GB/s = 120 µs; a million flops are nothing */
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench), (5 + 120) * US, 1e-8);
    sim_gemm(&bench, 1000); /* 2 Gflop at 1 TFLOP/s = 2 ms */
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench), (5 + 120 + 5 + 2000) * US, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(copies_run_beside_compute) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_put(&bench, bench.there, 10 * SIM_MB); /* 1 ms */
    sim_gemm(&bench, 1000);                    /* 2 ms */
    sim_sync(bench.there);
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench), 2005 * US, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(one_way_has_one_engine_and_both_ways_have_two) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_get(&bench, bench.back, 100 * SIM_MB);
    sim_sync(bench.there);
    sim_sync(bench.back);
    assert_double_equal(sim_seconds(&bench), 10 * US + 0.01, 1e-8);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_put(&bench, bench.back, 100 * SIM_MB);
    sim_sync(bench.there);
    sim_sync(bench.back);
    assert_double_equal(sim_seconds(&bench), 3 * (10 * US + 0.01), 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(a_single_engine_serves_both_ways_in_turn) {
    lab_device_define("toy", toy_with(&sim_arena, "units: 4", "units: 4\n    copy_engines: 1"));
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_get(&bench, bench.back, 100 * SIM_MB);
    sim_sync(bench.there);
    sim_sync(bench.back);
    assert_double_equal(sim_seconds(&bench), 2 * (10 * US + 0.01), 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(the_far_node_is_slower) {
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    struct sim_bench bench = sim_bench_open("sim:toy:0", setup, 2);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_sync(bench.there);
    /* 100 µs more, and 5 GB/s between the nodes instead of 10 */
    assert_double_equal(sim_seconds(&bench), 110 * US + 0.02, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(what_is_planted_for_far_copies_grows_with_their_size) {
    lab_device_define("toy", TOY_HEAD "effects:\n"
                                      "  remote:\n"
                                      "    - {size_kb: 1000, slowdown: 0.1}\n"
                                      "    - {size_kb: 100000, slowdown: 0.3}\n");
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 2);
    const struct {
        size_t bytes;
        double slowdown;
    } cases[] = {{SIM_MB / 10, 0.1}, {SIM_MB, 0.1}, {10 * SIM_MB, 0.2}, {100 * SIM_MB, 0.3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double before = sim_seconds(&bench);
        sim_put(&bench, bench.there, cases[i].bytes);
        sim_sync(bench.there);
        double plain = 110 * US + (double)cases[i].bytes / 5e9;
        assert_double_equal(sim_seconds(&bench) - before, plain * (1 + cases[i].slowdown), 1e-7);
    }
    sim_bench_close(&bench);
}

LAB_TEST(a_slow_gpu_is_slower_in_what_it_is_slow_in) {
    lab_device_define("toy", TOY_HEAD "effects:\n  slow_gpu: [{gpu: 0, compute: 0.5}]\n");
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_gemm(&bench, 1000);
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench), 1.5 * 2005 * US, 1e-8);
    double before = sim_seconds(&bench);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_sync(bench.there);
    assert_double_equal(sim_seconds(&bench) - before, 10 * US + 0.01, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(drift_grows_with_the_time) {
    lab_device_define("toy", TOY_HEAD "effects:\n  drift: [{gpu: 0, per_minute: 0.6}]\n");
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    lab_clock_sleep(bench.device->clock, 10 * LAB_NS_PER_S);
    sim_gemm(&bench, 1000);
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench) - 10, 1.1 * 2005 * US, 1e-8);
    sim_bench_close(&bench);
}

LAB_TEST(calls_cost_the_host_time_and_graphs_less_of_it) {
    struct lab_err err = LAB_ERR_INIT;
    const char *text = toy_with(&sim_arena, "    launch_us: 0\n    graph_us: 0\n",
                                "    launch_us: 50\n    graph_us: 60\n");
    lab_device_define("toy", text);
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    for (int i = 0; i < 10; i++)
        sim_add(&bench, 1); /* 5 µs each: the host is slower */
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench), (10 * 50 + 5) * US, 2e-8);
    double before = sim_seconds(&bench);
    struct lab_graph *graph;
    sim_ok(lab_graph_begin(bench.compute, &err), &err);
    for (int i = 0; i < 10; i++)
        sim_add(&bench, 1);
    sim_ok(lab_graph_end(bench.compute, &graph, &err), &err);
    sim_ok(lab_graph_launch(graph, bench.compute, &err), &err);
    lab_graph_close(graph); /* while it is pending */
    sim_sync(bench.compute);
    assert_double_equal(sim_seconds(&bench) - before, (60 + 10 * 1) * US, 2e-8);
    sim_bench_close(&bench);
}

LAB_TEST(events_order_streams_and_tell_when_they_were_passed) {
    struct lab_err err = LAB_ERR_INIT;
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    struct lab_event *copied, *computed, *never;
    int64_t copied_ns, computed_ns;
    sim_ok(lab_event_open(bench.device, &copied, &err), &err);
    sim_ok(lab_event_open(bench.device, &computed, &err), &err);
    sim_ok(lab_event_open(bench.device, &never, &err), &err);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_ok(lab_event_record(copied, bench.there, &err), &err);
    sim_ok(lab_event_wait(copied, bench.compute, &err), &err);
    sim_ok(lab_event_wait(never, bench.compute, &err), &err); /* holds nobody */
    /* recorded anew: the wait above means the first */
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_gemm(&bench, 1000);
    sim_ok(lab_event_record(computed, bench.compute, &err), &err);
    sim_ok(lab_event_time(copied, &copied_ns, &err), &err);
    sim_ok(lab_event_time(computed, &computed_ns, &err), &err);
    assert_int_equal(copied_ns - LAB_NS_PER_S, 10010000);
    assert_int_equal(computed_ns - copied_ns, 2005000);
    assert_int_equal(lab_event_time(never, &copied_ns, &err), -1);
    lab_event_close(copied);
    lab_event_close(computed);
    lab_event_close(never);
    sim_bench_close(&bench);
}

LAB_TEST(memory_is_that_of_the_model) {
    struct lab_buffer buffer = {0};
    struct lab_device *device = sim_device("sim:toy:0", LAB_DEVICE_SETUP);
    ASSERT_FAILS(lab_buffer_open(device, LAB_MEMORY_DEVICE, -1, (size_t)3 << 30, &buffer, err),
                 LAB_ERR_MEMORY, "sim:toy:0, which has 1.86 GiB free");
    ASSERT_SAYS(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, 2, (size_t)9 << 30, &buffer, err),
                "node 2, which has 7.45 GiB free");
    ASSERT_SAYS(lab_buffer_open(device, LAB_MEMORY_HOST_PINNED, 1, 1, &buffer, err),
                "has no NUMA node 1");
    lab_device_close(device);
}

LAB_TEST(commands_on_memory_that_isnt_there_are_refused) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    ASSERT_SAYS(lab_copy(bench.there, bench.near.data, bench.host.data, SIM_BENCH_BYTES + 1,
                         LAB_MEMORY_DEVICE, LAB_MEMORY_HOST_PINNED, err),
                "reaches 1 bytes beyond its buffer");
    ASSERT_SAYS(lab_copy(bench.there, bench.host.data, bench.near.data, 1, LAB_MEMORY_DEVICE,
                         LAB_MEMORY_HOST_PINNED, err),
                "is pinned host memory, not device memory");
    sim_bench_close(&bench);
}

LAB_TEST(a_trace_has_the_worlds_times) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_trace trace;
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_ok(lab_device_trace_begin(bench.device, 100, &err), &err);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_gemm(&bench, 1000);
    sim_sync(bench.there);
    sim_sync(bench.compute);
    sim_ok(lab_device_trace_end(bench.device, &sim_arena, &trace, &err), &err);
    assert_int_equal(trace.kernel_count, 1);
    assert_int_equal(trace.copy_count, 1);
    assert_int_equal(trace.call_count, 2);
    assert_string_equal(trace.kernels[0].name, "gemm");
    assert_int_equal(trace.kernels[0].end_ns - trace.kernels[0].start_ns, 2005000);
    assert_int_equal(trace.copies[0].kind, LAB_TRACE_COPY_H2D);
    assert_int_equal(trace.copies[0].start_ns, LAB_NS_PER_S);
    assert_string_equal(trace.gpus[0].name, "Toy (simulated)");
    sim_bench_close(&bench);
}

LAB_TEST(limits_are_those_of_the_description) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_device_limits limits;
    struct lab_device *device = sim_device("sim:toy:0", LAB_DEVICE_SETUP);
    sim_ok(lab_device_limits(device, LAB_FP32, &limits, &err), &err);
    assert_double_equal(limits.flops_per_s, 1e12, 1);
    assert_double_equal(limits.h2d_bytes_per_s, 10e9, 1);
    assert_double_equal(limits.memory_bytes_per_s, 100e9, 1);
    assert_false(device->ops->supports(device, LAB_OP_GEMM, LAB_BF16)); /* has no rate for it */
    lab_device_close(device);
}

const struct lab_test_program lab_test_program = {.set_up = sim_set_up, .tear_down = sim_tear_down};
