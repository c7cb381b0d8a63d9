/*
 * test_sim_framework.c: the host's part of a training step on a machine whose description has a
 * `framework`: by layers, parameters and a batch's arithmetic, shared or not; sums where devices first
 * wait for each other.
 */
#include "sim_fixture.h"

#define FRAMEWORK                                                                                  \
    "framework: {layer_us: 100, parameter_ns: 1000, gflops: 1, sum_layer_us: 500, sum_gb_s: 1}\n"

#define WHOLE_BATCH "framework: {layer_us: 100, gflops: 1, whole_batch: true}\n"

#define BEHIND 4096 /* values: what is derived lies behind what it is derived from */

/* 4-3-2: 15 + 8 = 23 parameters, two layers. */
static struct lab_launch training(struct sim_bench *bench, enum lab_op_id op, int64_t batch,
                                  int64_t rows) {
    struct lab_mlp mlp = {
        .widths = {4, 3, 2}, .width_count = 3, .batch = batch, .rows = rows, .seed = 1};
    struct lab_launch launch = {.op = op, .mlp = mlp, .adam = LAB_ADAM};
    struct lab_tensor x = lab_tensor_matrix(bench->near.data, LAB_FP32, 64, 4);
    struct lab_tensor y = lab_tensor_matrix(bench->near.data, LAB_FP32, 64, 2);
    struct lab_tensor state =
        lab_tensor_vector(bench->near.data, LAB_FP32, lab_mlp_state_count(&mlp));
    struct lab_tensor gradient = lab_tensor_vector((float *)bench->far.data + BEHIND, LAB_FP32,
                                                   lab_mlp_gradient_count(&mlp));
    struct lab_tensor work = lab_tensor_vector(
        bench->far.data, LAB_FP32,
        op == LAB_OP_MLP_FORWARD ? lab_mlp_forward_count(&mlp) : lab_mlp_work_count(&mlp));
    switch (op) {
    case LAB_OP_MLP_FORWARD:
        launch.in[0] = x;
        launch.in[1] = y;
        launch.in[2] = state;
        launch.out = work;
        break;
    case LAB_OP_MLP_BACKWARD:
        launch.in[0] = x;
        launch.in[1] = state;
        launch.in[2] = work;
        launch.out = gradient;
        break;
    default:
        launch.in[0] = launch.out = state;
        launch.in[1] = gradient;
        break;
    }
    return launch;
}

/* What the host takes to launch it, in µs, and the arithmetic of it. */
static double launch_us(struct sim_bench *bench, enum lab_op_id op, int64_t batch, int64_t rows,
                        double *ret_flops) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_launch launch = training(bench, op, batch, rows);
    double before_s = sim_seconds(bench);
    sim_ok(lab_launch(bench->compute, &launch, &err), &err);
    *ret_flops = lab_op_cost(&launch).flops;
    return 1e6 * (sim_seconds(bench) - before_s);
}

LAB_TEST(a_launch_takes_by_layers_parameters_and_arithmetic) {
    double flops;
    lab_device_define("toy", TOY_HEAD FRAMEWORK);
    struct sim_bench bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    double us = launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 8, &flops);
    assert_double_equal(us, 2 * 100 + 1e-3 * flops, 1e-3); /* 1 GFLOP/s: 1 ns each */
    us = launch_us(&bench, LAB_OP_MLP_BACKWARD, 8, 8, &flops);
    assert_double_equal(us, 2 * 100 + 1e-3 * flops, 1e-3);
    us = launch_us(&bench, LAB_OP_ADAM, 8, 8, &flops);
    assert_double_equal(us, 2 * 100 + 23, 1e-3);
    sim_sync(bench.compute);
    sim_bench_close(&bench);
}

LAB_TEST(half_a_batch_takes_the_host_half_its_arithmetic) {
    double whole_flops, half_flops;
    lab_device_define("toy", TOY_HEAD FRAMEWORK);
    struct sim_bench bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    double whole_us = launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 8, &whole_flops);
    double half_us = launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 4, &half_flops);
    assert_double_equal(whole_us - half_us, 1e-3 * (whole_flops - half_flops), 1e-3);
    assert_true(half_flops < 0.6 * whole_flops);
    assert_null(lab_device_share_note(bench.device));
    sim_sync(bench.compute);
    sim_bench_close(&bench);
}

LAB_TEST(half_a_batch_takes_as_long_as_the_whole_where_told_so) {
    double whole_flops, half_flops;
    lab_device_define("toy", TOY_HEAD WHOLE_BATCH);
    struct sim_bench bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    double whole_us = launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 8, &whole_flops);
    double half_us = launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 4, &half_flops);
    assert_true(half_flops < whole_flops);
    assert_double_equal(half_us, whole_us, 0.02);
    assert_non_null(strstr(lab_device_share_note(bench.device), "can't be faster"));
    sim_sync(bench.compute);
    sim_bench_close(&bench);
}

LAB_TEST(sums_are_due_once_a_share_was_derived) {
    double flops;
    lab_device_define("toy", TOY_HEAD FRAMEWORK);
    struct sim_bench bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    double backward_us = launch_us(&bench, LAB_OP_MLP_BACKWARD, 8, 4, &flops);
    assert_double_equal(backward_us, 2 * 100 + 1e-3 * flops, 1e-3); /* nothing of the sums yet */
    double update_us = launch_us(&bench, LAB_OP_ADAM, 8, 4, &flops);
    /* two layers, and 23 values down and up at 1 GB/s: 184 ns */
    assert_double_equal(update_us, 2 * 100 + 23 + 2 * 500 + 0.184, 1e-3);
    update_us = launch_us(&bench, LAB_OP_ADAM, 8, 4, &flops);
    assert_double_equal(update_us, 2 * 100 + 23, 1e-3); /* and are paid once */
    sim_sync(bench.compute);
    sim_bench_close(&bench);
}

LAB_TEST(other_work_and_other_machines_pay_nothing) {
    double flops;
    lab_device_define("toy", TOY_HEAD FRAMEWORK);
    struct sim_bench bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    sim_gemm(&bench, 64);
    assert_double_equal(sim_seconds(&bench), 0, 0);
    sim_sync(bench.compute);
    sim_bench_close(&bench);
    lab_device_define("toy", TOY_HEAD);
    bench = sim_bench_open("sim:toy:0", (struct lab_device_setup){0}, 0);
    assert_double_equal(launch_us(&bench, LAB_OP_MLP_FORWARD, 8, 4, &flops), 0, 0);
    sim_sync(bench.compute);
    sim_bench_close(&bench);
}

const struct lab_test_program lab_test_program = {.set_up = sim_set_up, .tear_down = sim_tear_down};
