/*
 * test_sim_chance.c: chance has the sizes that the description says, GPUs grow hot and slow down,
 * and a sampler's eyes see what happened. Seeds are fixed: the bounds are a few standard errors
 * wide.
 */
#include "sim_fixture.h"

#include "base/random.h"

#include <math.h>

/* --- chance --- */

enum { RUNS = 4000 };

static double deviation(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return sqrt(squares / n - sum / n * sum / n);
}

LAB_TEST(runs_differ_by_as_much_as_planted) {
    const struct sim_noise noise = {.between = {.compute = 0.02, .copy = 0.05}, .within_s = 1};
    double compute[RUNS], copy[RUNS];
    for (int i = 0; i < RUNS; i++) {
        struct sim_chance chance;
        sim_chance_init(&chance, &noise, lab_random_bits(42, (uint64_t)i), 0);
        compute[i] = log(sim_chance_factor(&chance, &noise, false, 1000));
        copy[i] = log(sim_chance_factor(&chance, &noise, true, 1000));
        /* within a run it is always the same */
        assert_double_equal(log(sim_chance_factor(&chance, &noise, false, 5000)), compute[i], 0);
    }
    assert_double_equal(deviation(compute, RUNS), 0.02, 0.001);
    assert_double_equal(deviation(copy, RUNS), 0.05, 0.0025);
}

LAB_TEST(the_wandering_part_is_forgotten_in_time) {
    const struct sim_noise noise = {.within = {.copy = 0.1}, .within_s = 0.05};
    struct sim_chance chance;
    double x[RUNS], product = 0, far = 0;
    sim_chance_init(&chance, &noise, 42, 0);
    for (int i = 0; i < RUNS; i++) /* each 50 ms */
        x[i] = log(sim_chance_factor(&chance, &noise, true, (int64_t)i * 50000000));
    for (int i = 0; i + 5 < RUNS; i++) {
        product += x[i] * x[i + 1] / (RUNS * 0.01);
        far += x[i] * x[i + 5] / (RUNS * 0.01);
    }
    assert_double_equal(deviation(x, RUNS), 0.1, 0.01);
    assert_double_equal(product, exp(-1), 0.06); /* one time constant later */
    assert_double_equal(far, exp(-5), 0.06);
}

LAB_TEST(each_command_has_a_part_of_its_own) {
    const struct sim_noise noise = {.each = {.compute = 0.03}, .within_s = 1};
    struct sim_chance chance;
    double x[RUNS], product = 0;
    sim_chance_init(&chance, &noise, 42, 0);
    for (int i = 0; i < RUNS; i++)
        x[i] = log(sim_chance_factor(&chance, &noise, false, 1));
    for (int i = 0; i + 1 < RUNS; i++)
        product += x[i] * x[i + 1] / (RUNS * 0.0009);
    assert_double_equal(deviation(x, RUNS), 0.03, 0.0015);
    assert_double_equal(product, 0, 0.06);
}

LAB_TEST(stalls_come_as_often_and_are_as_heavy_as_planted) {
    const struct sim_noise noise = {
        .tail_per_s = 10, .tail_us = 100, .tail_shape = 1.5, .tail_most_us = 1e9, .within_s = 1};
    struct sim_chance chance;
    int count = 0, long_ones = 0;
    sim_chance_init(&chance, &noise, 42, 0);
    for (int64_t now_ns = 0; now_ns < 400 * LAB_NS_PER_S; now_ns += 500000) {
        double stall_s = sim_chance_stall_s(&chance, &noise, now_ns);
        assert_true(stall_s == 0 || stall_s >= 100e-6);
        count += stall_s > 0;
        long_ones += stall_s > 400e-6;
    }
    assert_in_range(count, 3800, 4200); /* 4,000, few of them in one stretch */
    /* Pareto: 4 ^ -1.5 = an eighth of them is more than four times the least */
    assert_double_equal((double)long_ones / count, 0.125, 0.02);
}

LAB_TEST(a_runs_slope_is_its_own) {
    const struct sim_noise noise = {.drift_per_minute = 0.01, .within_s = 1};
    double slope[RUNS];
    for (int i = 0; i < RUNS; i++) {
        struct sim_chance chance;
        sim_chance_init(&chance, &noise, lab_random_bits(42, (uint64_t)i), 0);
        assert_double_equal(sim_chance_factor(&chance, &noise, true, 0), 1, 1e-12);
        slope[i] = sim_chance_factor(&chance, &noise, true, 60 * LAB_NS_PER_S) - 1;
    }
    assert_double_equal(deviation(slope, RUNS), 0.01, 0.0005);
}

/* --- heat --- */

static struct sim_model warm_model(double c_per_w) {
    return (struct sim_model){
        .clock_mhz = 1000,
        .clock_min_mhz = 100,
        .power = {.idle_w = 10, .compute_w = 80, .memory_w = 10, .limit_w = 200},
        .heat = {.ambient_c = 20, .c_per_w = c_per_w, .time_s = 5, .throttle_c = 80}};
}

static struct sim_condition heat(const struct sim_model *model, double load, double time_s) {
    struct sim_condition condition;
    sim_condition_init(&condition, model);
    for (int i = 0; i < (int)(time_s * 100); i++)
        sim_condition_step(&condition, model, 0.01,
                           sim_power_w(model, load, load, condition.clock_mhz), load);
    return condition;
}

LAB_TEST(a_cool_gpu_keeps_its_clocks) {
    struct sim_model model = warm_model(0.5);
    struct sim_condition condition = heat(&model, 1, 60);
    assert_double_equal(condition.temperature_c, 20 + 100 * 0.5, 0.1);
    assert_double_equal(condition.clock_mhz, 1000, 0);
    assert_int_equal(condition.reasons, 0);
}

LAB_TEST(a_hot_gpu_slows_down_and_says_why) {
    struct sim_model model = warm_model(0.9);                   /* would reach 110 °C */
    assert_double_equal(heat(&model, 1, 1).clock_mhz, 1000, 0); /* not at once */
    struct sim_condition condition = heat(&model, 1, 60);
    assert_true(condition.clock_mhz < 950);
    assert_true(condition.clock_mhz > 700);
    assert_double_equal(condition.temperature_c, 80, 2);
    assert_int_equal(condition.reasons, 0x20);
}

LAB_TEST(above_the_power_limit_clocks_go_down) {
    struct sim_model model = warm_model(0.1);
    model.power.limit_w = 60;
    struct sim_condition condition = heat(&model, 1, 60);
    assert_double_equal(condition.power_w, 60, 4);
    assert_int_equal(condition.reasons, 0x4);
    assert_int_equal(heat(&model, 0, 1).reasons, 0x1); /* idle */
}

LAB_TEST_WITH(a_hot_gpu_takes_longer, sim_set_up, sim_tear_down) {
    lab_device_define("toy", toy_with(&sim_arena, "c_per_w: 0.5", "c_per_w: 1.5"));
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    double first = 0, last = 0;
    for (int i = 0; i < 300; i++) {
        double before = sim_seconds(&bench);
        for (int k = 0; k < 10; k++)
            sim_gemm(&bench, 1500);
        sim_sync(bench.compute);
        last = sim_seconds(&bench) - before;
        first = i == 0 ? last : first;
    }
    assert_true(last > 1.05 * first);
    sim_bench_close(&bench);
}

/* --- samples --- */

struct seen {
    int64_t last_ns[8];
    double energy_j, power_w, busy, node_load[2], rx_bytes;
    int gpu_ticks, host_ticks, node_columns;
    bool simulated;
    const struct lab_entity *entities[8];
};

static void on_entity(void *state, int number, const struct lab_entity *entity) {
    struct seen *seen = state;
    struct lab_entity *copy = lab_arena_alloc(&sim_arena, 1, sizeof *copy);
    struct lab_column *columns =
        lab_arena_alloc(&sim_arena, (size_t)entity->column_count, sizeof *columns);
    memcpy(columns, entity->columns, (size_t)entity->column_count * sizeof *columns);
    *copy = *entity;
    copy->columns = columns;
    seen->entities[number] = copy;
    seen->simulated = entity->simulated;
}

static void on_tick(void *state, const struct lab_tick *tick) {
    struct seen *seen = state;
    const struct lab_entity *entity = seen->entities[tick->entity];
    assert_non_null(entity);
    assert_true(tick->time_ns > seen->last_ns[tick->entity]);
    seen->last_ns[tick->entity] = tick->time_ns;
    if (entity->kind == LAB_ENTITY_GPU) {
        seen->gpu_ticks++;
        seen->energy_j = lab_tick_value(entity, tick, LAB_METRIC_ENERGY, -1);
        seen->power_w = fmax(seen->power_w, lab_tick_value(entity, tick, LAB_METRIC_POWER, -1));
        seen->busy = fmax(seen->busy, lab_tick_value(entity, tick, LAB_METRIC_UTILIZATION, -1));
        seen->rx_bytes = lab_tick_value(entity, tick, LAB_METRIC_PCIE_RX_BYTES, -1);
    } else if (entity->kind == LAB_ENTITY_NUMA) {
        seen->host_ticks++;
        for (int i = 0; i < 2; i++)
            seen->node_load[i] += lab_tick_value(entity, tick, LAB_METRIC_NODE_UTILIZATION, 2 * i);
    }
}

static struct seen look(struct sim_bench *bench) {
    struct seen seen = {0};
    struct lab_sink_samples sink = {.entity = on_entity, .tick = on_tick, .state = &seen};
    lab_device_samples(bench->device, &sink);
    return seen;
}

LAB_TEST_WITH(samples_tell_what_happened, sim_set_up, sim_tear_down) {
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_gemm(&bench, 4000); /* 128 ms at 90 W and more */
    sim_sync(bench.there);
    sim_sync(bench.compute);
    struct seen seen = look(&bench);
    assert_true(seen.simulated);
    assert_in_range(seen.gpu_ticks, 12, 15);
    assert_int_equal(seen.host_ticks, seen.gpu_ticks);
    assert_double_equal(seen.busy, 100, 0);
    assert_double_equal(seen.power_w, 91, 3);
    assert_double_equal(seen.energy_j, 0.128 * 90, 0.6);
    assert_double_equal(seen.rx_bytes, 100e6, 2000);
    assert_int_equal(look(&bench).gpu_ticks, 0); /* each once */
    sim_bench_close(&bench);
}

LAB_TEST_WITH(a_neighbour_shows_on_its_node_and_slows_its_link, sim_set_up, sim_tear_down) {
    lab_device_define("toy",
                      TOY_HEAD "effects:\n  neighbour: {node: 2, links: [up], gb_s: 100, cpu: 0.8, "
                               "on_s: 1000, off_s: 0.000001}\n");
    struct sim_bench bench = sim_bench_open("sim:toy:0", LAB_DEVICE_SETUP, 0);
    for (int i = 0; i < 5; i++)
        sim_put(&bench, bench.there, 100 * SIM_MB);
    sim_sync(bench.there);
    assert_double_equal(sim_seconds(&bench), 5 * (10e-6 + 0.02), 1e-4); /* half of the link each */
    struct seen seen = look(&bench);
    assert_true(seen.node_load[1] / seen.host_ticks > 75);
    assert_true(seen.node_load[0] / seen.host_ticks < 40);
    sim_bench_close(&bench);
}
