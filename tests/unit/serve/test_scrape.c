/* test_scrape.c: what Prometheus reads, from samples made by hand. */
#include "scrape_fixture.h"

#define GPU0_OWN "gpu=\"0\",UUID=\"GPU-5f0c0000-0000\""
#define GPU0_DCGM                                                                                  \
    GPU0_OWN ",pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia0\",modelName=\"NVIDIA H200\","      \
             "Hostname=\"node7\",DCGM_FI_DRIVER_VERSION=\"580.65.06\""
#define MIB_KIB INT64_C(1024) /* the model's memory is in KiB */

/* One GPU's values, in the fixture's columns. */
#define BUSY                                                                                       \
    97, 12800 * MIB_KIB, 512 * MIB_KIB, 143771 * MIB_KIB, 412345, 61, 1980, 0x4, 8123, 2048,       \
        9000000000123, 3000, 1000, 2500000, 2, 31
#define FAST_ONLY                                                                                  \
    98, 12800 * MIB_KIB, 512 * MIB_KIB, 143771 * MIB_KIB, 400000, 62, 1980, 0x4, NONE, NONE, NONE, \
        NONE, NONE, NONE, NONE, NONE
#define NOTHING                                                                                    \
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE

static void tell_process(struct fixture *f, struct lab_process_sample *process) {
    struct lab_process_list list = {f->now_ns, process, 1, 3};
    f->sink.processes(f->sink.state, &list);
}

static struct lab_process_sample python(struct lab_process_gpu *gpus, int count) {
    return (struct lab_process_sample){
        .pid = 4711,
        .user = "ada",
        .name = "python3",
        .command = "python3 train.py --token secret",
        .container = "b0a5c1",
        .cpu_percent = 150,
        .memory_bytes = 1 << 30,
        .cpu_node = 1,
        .gpus = gpus,
        .gpu_count = count,
        .placement = LAB_PLACEMENT_CORES,
        .advice = "numactl --cpunodebind=0",
    };
}

LAB_TEST(the_whole_machine_reads_as_the_golden_file) {
    struct fixture f;
    fixture_open(&f);
    for (int i = 0; i < ENTITY_COUNT; i++)
        fixture_tell(&f, i);
    TICK(&f, GPU0, BUSY);
    TICK(&f, GPU1, 0, 1024 * MIB_KIB, NONE, 143771 * MIB_KIB, 75000, 30, 345, 0x1, NONE, NONE, 5,
         NONE, NONE, 0, 0, NONE);
    TICK(&f, MIG0, 900 * MIB_KIB, 18000 * MIB_KIB);
    TICK(&f, CPU, 1234, 250, 1000, 5);
    TICK(&f, MEMORY, 8 * MIB_KIB);
    TICK(&f, NUMA, 2048, 4096, 17);
    struct lab_process_gpu gpus[] = {{GPU0, 1 << 20, 42, NAN, true, false},
                                     {MIG0, -1, NAN, NAN, true, false}};
    struct lab_process_sample process = python(gpus, 2);
    tell_process(&f, &process);
    struct lab_sampler_stats stats = {.ticks = 600,
                                      .missed = 2,
                                      .lanes = 3,
                                      .late_p50_ms = 0.05,
                                      .late_p99_ms = 0.5,
                                      .late_max_ms = 4,
                                      .cost_ms = 0.075};
    lab_scrape_set_stats(f.scrape, &stats);

    char path[512], *expected;
    size_t length;
    struct lab_err err = LAB_ERR_INIT;
    LAB_AUTO(arena, arena);
    snprintf(path, sizeof path, "%s/tests/golden/exporter.prom", LAB_TEST_SOURCE_DIR);
    const char *text = fixture_text(&f), *update = getenv("GOLDEN_UPDATE");
    if (update && strcmp(update, "1") == 0) {
        assert_int_equal(lab_file_write_atomic(path, text, strlen(text), &err), 0);
    } else {
        if (lab_file_read(path, (size_t)1 << 20, &arena, &expected, &length, &err) < 0)
            fail_msg("%s", err.text);
        if (strcmp(expected, text) != 0)
            fail_msg("differs from tests/golden/exporter.prom:\n%s", text);
    }
    fixture_close(&f);
}

LAB_TEST(values_have_dcgm_exporters_units) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    assert_series(&f, "DCGM_FI_DEV_POWER_USAGE{" GPU0_DCGM "}", 412.345);
    assert_series(&f, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{" GPU0_DCGM "}", 9000000000123.0);
    assert_series(&f, "DCGM_FI_DEV_FB_USED{" GPU0_DCGM "}", 12800);
    assert_series(&f, "DCGM_FI_DEV_FB_FREE{" GPU0_DCGM "}", 143771 - 12800 - 512);
    assert_series(&f, "DCGM_FI_PROF_SM_ACTIVE{" GPU0_DCGM "}", 0.8123);
    assert_series(&f, "DCGM_FI_PROF_PCIE_TX_BYTES{" GPU0_DCGM "}", 2048 * 1024);
    assert_series(&f, "DCGM_FI_DEV_XID_ERRORS{" GPU0_DCGM "}", 31);
    assert_series(&f, "gpulab_gpu_sm_clock_hertz{" GPU0_OWN "}", 1980e6);
    assert_series(&f, "gpulab_gpu_utilization_ratio{" GPU0_OWN "}", 0.97);
    assert_series(&f, "gpulab_gpu_throttled_power_seconds_total{" GPU0_OWN "}", 2.5);
    assert_series(&f, "gpulab_gpu_clock_event_reason{" GPU0_OWN ",reason=\"sw_power_cap\"}", 1);
    assert_series(&f, "gpulab_gpu_clock_event_reason{" GPU0_OWN ",reason=\"hw_thermal\"}", 0);
    fixture_close(&f);
}

LAB_TEST(what_is_not_valid_is_left_out) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    assert_absent(&f, "gpulab_device_up"); /* nothing was heard of it yet */
    TICK(&f, GPU0, FAST_ONLY);
    assert_series(&f, "gpulab_gpu_power_watts{" GPU0_OWN "}", 400);
    assert_absent(&f, "SM_ACTIVE");
    assert_absent(&f, "energy");
    assert_absent(&f, "XID");
    assert_absent(&f, "NVLINK");
    fixture_close(&f);
}

LAB_TEST(a_slow_value_stays_while_its_device_answers) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    for (int i = 0; i < 1000; i++)
        TICK(&f, GPU0, FAST_ONLY);
    assert_series(&f, "gpulab_gpu_energy_joules_total{" GPU0_OWN "}", 9000000000.123);
    assert_series(&f, "gpulab_gpu_utilization_ratio{" GPU0_OWN "}", 0.98);
    fixture_close(&f);
}

LAB_TEST(a_value_of_every_tick_that_stops_coming_is_left_out) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, CPU);
    for (int i = 0; i < 20; i++)
        TICK(&f, CPU, 1000, 250, 100, 100);
    for (int i = 0; i < 9; i++)
        TICK(&f, CPU, 1000, NONE, 100, 100);
    assert_series(&f, "gpulab_load", 2.5); /* a few that are missing are no matter */
    TICK(&f, CPU, 1000, NONE, 100, 100);
    assert_absent(&f, "gpulab_load");
    assert_series(&f, "gpulab_cpu_utilization_ratio", 0.1);
    TICK(&f, CPU, 1000, 300, 100, 100);
    assert_series(&f, "gpulab_load", 3);
    fixture_close(&f);
}

LAB_TEST(in_a_gap_nothing_is_left_of_a_gpu_but_that_it_is_down) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    fixture_tell(&f, GPU1);
    fixture_tell(&f, MIG0);
    TICK(&f, GPU0, BUSY);
    TICK(&f, GPU1, BUSY);
    TICK(&f, MIG0, 1, 2);
    struct lab_process_gpu gpu = {GPU1, 1 << 20, 42, 1, true, false};
    struct lab_process_sample process = python(&gpu, 1);
    tell_process(&f, &process);
    assert_contains(fixture_text(&f), "gpulab_process_gpu_memory_bytes{");

    fixture_gap(&f, GPU1); /* and with it its instance */
    assert_series(&f, "gpulab_device_up{gpu=\"1\",UUID=\"GPU-5f0c0000-0001\",kind=\"gpu\"}", 0);
    assert_series(&f,
                  "gpulab_device_up{gpu=\"1\",UUID=\"GPU-5f0c0000-0001\",GPU_I_PROFILE=\"1g."
                  "18gb\",GPU_I_ID=\"7\",kind=\"mig\"}",
                  0);
    assert_series(&f, "gpulab_device_up{" GPU0_OWN ",kind=\"gpu\"}", 1);
    int lines = 0;
    for (const char *at = fixture_text(&f); (at = strstr(at, "gpu=\"1\"")); at++)
        lines++;
    assert_int_equal(lines, 2); /* those two */
    assert_absent(&f, "gpulab_process_placement{");

    TICK(&f, GPU1, FAST_ONLY); /* back: what it hasn't said since isn't known */
    assert_series(&f, "gpulab_device_up{gpu=\"1\",UUID=\"GPU-5f0c0000-0001\",kind=\"gpu\"}", 1);
    assert_true(isnan(
        fixture_value(&f, "gpulab_gpu_energy_joules_total{gpu=\"1\",UUID=\"GPU-5f0c0000-0001\"}")));
    fixture_close(&f);
}

LAB_TEST(ticks_without_any_value_are_no_answer) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    TICK(&f, GPU0, NOTHING); /* nothing was due */
    assert_series(&f, "gpulab_device_up{" GPU0_OWN ",kind=\"gpu\"}", 1);
    for (int i = 0; i < 3; i++)
        TICK(&f, GPU0, NOTHING);
    assert_series(&f, "gpulab_device_up{" GPU0_OWN ",kind=\"gpu\"}", 0);
    assert_absent(&f, "DCGM_");
    fixture_close(&f);
}

LAB_TEST(instances_take_the_place_of_their_gpu_where_they_have_the_value) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU1);
    fixture_tell(&f, MIG0);
    TICK(&f, GPU1, BUSY);
    TICK(&f, MIG0, 900 * MIB_KIB, 18000 * MIB_KIB);
    const char *used = strstr(fixture_text(&f), "\nDCGM_FI_DEV_FB_USED{");
    assert_non_null(used);
    assert_contains(used, "modelName=\"NVIDIA H200\",GPU_I_PROFILE=\"1g.18gb\",GPU_I_ID="
                          "\"7\",Hostname=\"node7\"");
    assert_null(strstr(used + 1, "\nDCGM_FI_DEV_FB_USED{"));
    assert_non_null(strstr(f.text.text, "\nDCGM_FI_DEV_POWER_USAGE{gpu=\"1\"")); /* the GPU's */
    fixture_close(&f);
}

LAB_TEST(no_xid_is_told_as_0_only_where_they_are_counted) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
         NONE, 0, NONE);
    assert_series(&f, "DCGM_FI_DEV_XID_ERRORS{" GPU0_DCGM "}", 0);
    TICK(&f, GPU0, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
         NONE, 1, NONE);
    assert_absent(&f, "XID_ERRORS"); /* there was one; which isn't known */
    fixture_close(&f);
}

LAB_TEST(what_is_simulated_says_so) {
    struct fixture f;
    fixture_open(&f);
    struct lab_entity gpu = fixture_entities[GPU0];
    gpu.simulated = true;
    f.sink.entity(f.sink.state, GPU0, &gpu);
    TICK(&f, GPU0, BUSY);
    assert_series(&f, "DCGM_FI_DEV_GPU_UTIL{" GPU0_DCGM ",simulated=\"true\"}", 97);
    assert_series(&f, "gpulab_gpu_power_watts{" GPU0_OWN ",simulated=\"true\"}", 412.345);
    fixture_close(&f);
}

LAB_TEST(labels_are_escaped_and_valid_utf8) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    struct lab_process_gpu gpu = {GPU0, 1 << 20, NAN, NAN, true, false};
    struct lab_process_sample process = python(&gpu, 1);
    process.name = "a\"b\\c\nd\xff\xfe"
                   "é";
    tell_process(&f, &process);
    assert_contains(fixture_text(&f), "name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xef\xbf\xbdé\",");
    assert_absent(&f, "secret"); /* command lines are nobody else's business */
    fixture_close(&f);
}

LAB_TEST(processes_of_a_list_that_is_no_longer_renewed_vanish) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    /* given one that the driver names twice, once for computing and once for drawing */
    struct lab_process_gpu gpus[] = {{GPU0, 1 << 20, 42, NAN, true, false},
                                     {GPU0, 1 << 20, 42, NAN, false, true}};
    struct lab_process_sample process = python(gpus, 2);
    tell_process(&f, &process);
    assert_series(&f,
                  "gpulab_process_gpu_memory_bytes{" GPU0_OWN
                  ",pid=\"4711\",user=\"ada\",name=\"python3\",container=\"b0a5c1\"}",
                  1 << 20);
    const char *first = strstr(f.text.text, "\ngpulab_process_gpu_memory_bytes{");
    assert_null(strstr(first + 1, "\ngpulab_process_gpu_memory_bytes{"));
    for (int i = 0; i < 31; i++)
        TICK(&f, GPU0, BUSY);
    assert_absent(&f, "gpulab_process_");
    fixture_close(&f);
}

LAB_TEST(gpus_go_by_the_driver_s_numbers) {
    struct fixture f;
    fixture_open(&f);
    struct lab_entity gpu = fixture_entities[GPU0]; /* the first of those that are shown here */
    gpu.numbered = true;
    gpu.driver_index = 2;
    gpu.driver_minor = 5;
    f.sink.entity(f.sink.state, GPU0, &gpu);
    TICK(&f, GPU0, BUSY);
    assert_series(&f,
                  "DCGM_FI_DEV_POWER_USAGE{gpu=\"2\",UUID=\"GPU-5f0c0000-0000\","
                  "pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia5\",modelName=\"NVIDIA H200\","
                  "Hostname=\"node7\",DCGM_FI_DRIVER_VERSION=\"580.65.06\"}",
                  412.345);
    assert_series(&f, "gpulab_gpu_utilization_ratio{gpu=\"2\",UUID=\"GPU-5f0c0000-0000\"}", 0.97);
    fixture_close(&f);
}

LAB_TEST(a_gpu_told_again_under_another_id_starts_afresh) {
    struct fixture f;
    fixture_open(&f);
    fixture_tell(&f, GPU0);
    TICK(&f, GPU0, BUSY);
    struct lab_entity gpu = fixture_entities[GPU0];
    gpu.index = 3; /* the same one, counted anew */
    f.sink.entity(f.sink.state, GPU0, &gpu);
    assert_series(&f, "gpulab_gpu_utilization_ratio{gpu=\"3\",UUID=\"GPU-5f0c0000-0000\"}", 0.97);
    gpu.id = "GPU-other";
    f.sink.entity(f.sink.state, GPU0, &gpu);
    assert_absent(&f, "gpulab_gpu_utilization_ratio");
    /* what nobody was told of is passed over */
    TICK(&f, GPU1, BUSY);
    fixture_gap(&f, CPU);
    assert_absent(&f, "gpu=\"1\"");
    fixture_close(&f);
}
