/*
 * test_probe_nvml.c: what the probe tells of GPUs that are well: who they are, and the values of
 * each tier when it is due.
 */
#include "nvml_fixture.h"

#define GPU0 "GPU-00000000-0000-0000-0000-0000000000ab"
#define GPU1 "GPU-00000001-0000-0000-0000-0000000000ab"
#define MIG0 "MIG-00000000-0000-0000-0000-0000000000cd"
#define MIG1 "MIG-00000001-0000-0000-0000-0000000000cd"
#define MIB  1048576.0

/* --- who they are --- */

LAB_TEST(a_gpu_is_a_lane_with_its_name_address_and_node) {
    void *probe = open_script("gpus=3; name=NVIDIA H200; node=0,0,1");
    assert_int_equal(lab_probe_nvml.lane_count(probe), 3);
    assert_string_equal(lab_probe_nvml.lane_name(probe, 2), "GPU 2 (0000:19:00.0)");
    const struct lab_entity *entity = &told[2].entities[0];
    assert_int_equal(told[2].entity_count, 1);
    assert_int_equal(entity->kind, LAB_ENTITY_GPU);
    assert_int_equal(entity->index, 2);
    assert_string_equal(told[2].ids[0], "GPU-00000002-0000-0000-0000-0000000000ab");
    assert_string_equal(told[2].names[0], "NVIDIA H200");
    assert_string_equal(told[2].pcis[0], "0000:19:00.0");
    assert_int_equal(entity->node, 1);
    assert_int_equal(entity->parent, -1);
    assert_true(entity->simulated);
    lab_probe_nvml.close(probe);
}

LAB_TEST(lanes_are_counted_as_cuda_counts_devices) {
    setenv("CUDA_VISIBLE_DEVICES", "2," GPU0, 1);
    void *probe = open_script("gpus=4");
    assert_int_equal(lab_probe_nvml.lane_count(probe), 2);
    assert_string_equal(lab_probe_nvml.lane_name(probe, 0), "GPU 0 (0000:19:00.0)");
    assert_string_equal(told[1].ids[0], GPU0);
    assert_int_equal(told[1].entities[0].index, 1);
    /* the driver counts as ever */
    assert_true(told[0].entities[0].numbered);
    assert_int_equal(told[0].entities[0].driver_index, 2);
    assert_int_equal(told[0].entities[0].driver_minor, 2);
    assert_int_equal(told[1].entities[0].driver_index, 0);
    lab_probe_nvml.close(probe);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

LAB_TEST(a_node_that_is_not_here_feeds_nothing) {
    struct lab_node node = {.number = 0};
    struct lab_machine machine = {.nodes = &node, .node_count = 1};
    struct lab_probe_setup setup = fixture_setup();
    setup.machine = &machine;
    void *probe = open_with("gpus=2; node=0,1", &setup);
    assert_int_equal(told[0].entities[0].node, 0);
    assert_int_equal(told[1].entities[0].node, -1);
    lab_probe_nvml.close(probe);
}

LAB_TEST(no_gpu_is_said_and_is_no_failure) {
    struct lab_probe_setup setup = fixture_setup();
    struct lab_err err = LAB_ERR_INIT;
    void *probe = NULL;
    assert_null(fake.play("gpus=0"));
    assert_int_equal(lab_probe_nvml.open(&setup, &probe, &err), -1);
    assert_int_equal(err.code, LAB_ERR_SYSTEM); /* it may come yet */
    assert_contains(err.text, "finds no GPU");
    assert_null(fake.play("gpus=2"));
    setenv("CUDA_VISIBLE_DEVICES", "0,0", 1);
    assert_int_equal(lab_probe_nvml.open(&setup, &probe, &err), -1);
    assert_contains(err.text, "CUDA_VISIBLE_DEVICES='0,0' names one twice");
    assert_int_equal(err.code, LAB_ERR_UNSUPPORTED); /* whatever comes, it won't be shown */
    unsetenv("CUDA_VISIBLE_DEVICES");
    /* a driver that can't say how many there are is another matter */
    assert_null(fake.play("gpus=2; fail=nvmlDeviceGetCount_v2:999"));
    assert_int_equal(lab_probe_nvml.open(&setup, &probe, &err), -1);
    assert_contains(err.text, "lists no GPU");
    assert_contains(err.text, "(999)");
}

/* --- tiers --- */

LAB_TEST(every_tick_reads_the_fast_tier) {
    void *probe = open_script("gpus=2; memory_total=143771; memory=12800,12750; reserved=600;"
                              "utilization=93; memory_utilization=41; power=512.5;"
                              "temperature=61; memory_temperature=70; sm_clock=1755;"
                              "memory_clock=3201; reasons=0x24; pstate=2; fan=33; encoder=4;"
                              "decoder=5");
    read_ok(probe, 0);
    read_ok(probe, 1);
    ASSERT_VALUE(0, UTILIZATION, 93);
    ASSERT_VALUE(0, MEMORY_UTILIZATION, 41);
    ASSERT_VALUE(0, MEMORY_USED, 12800 * MIB);
    ASSERT_VALUE(1, MEMORY_USED, 12750 * MIB);
    ASSERT_VALUE(0, MEMORY_RESERVED, 600 * MIB);
    ASSERT_VALUE(0, MEMORY_TOTAL, 143771 * MIB);
    ASSERT_VALUE(0, POWER, 512.5);
    ASSERT_VALUE(0, POWER_INSTANT, 512.5);
    ASSERT_VALUE(0, TEMPERATURE, 61);
    ASSERT_VALUE(0, MEMORY_TEMPERATURE, 70);
    ASSERT_VALUE(0, SM_CLOCK, 1755);
    ASSERT_VALUE(0, MEMORY_CLOCK, 3201);
    ASSERT_VALUE(0, CLOCK_REASONS, 0x24);
    ASSERT_VALUE(0, PERFORMANCE_STATE, 2);
    ASSERT_VALUE(0, FAN, 33);
    ASSERT_VALUE(0, ENCODER, 4);
    ASSERT_VALUE(0, DECODER, 5);
    assert_int_equal(told[0].time_ns, fixture_ns);
    lab_probe_nvml.close(probe);
}

LAB_TEST(gpm_compares_samples_a_tenth_of_a_second_apart) {
    void *probe = open_script("graphics=95; sm=80@0:40@0.25; occupancy=35; tensor=61.25; dram=44;"
                              "fp64=1; fp32=9; fp16=3; integer=12; pcie_tx=500; pcie_rx=4000;"
                              "nvlink_tx=100000; nvlink_rx=90000");
    read_ok(probe, 0);
    ASSERT_UNKNOWN(0, SM_ACTIVE); /* one sample says nothing */
    advance(0.05);
    read_ok(probe, 0);
    ASSERT_UNKNOWN(0, SM_ACTIVE); /* too soon */
    advance(0.05);
    read_ok(probe, 0);
    ASSERT_VALUE(0, SM_ACTIVE, 80);
    ASSERT_VALUE(0, GRAPHICS_ACTIVE, 95);
    ASSERT_VALUE(0, SM_OCCUPANCY, 35);
    ASSERT_VALUE(0, TENSOR_ACTIVE, 61.25);
    ASSERT_VALUE(0, DRAM_ACTIVE, 44);
    ASSERT_VALUE(0, FP64_ACTIVE, 1);
    ASSERT_VALUE(0, FP32_ACTIVE, 9);
    ASSERT_VALUE(0, FP16_ACTIVE, 3);
    ASSERT_VALUE(0, INTEGER_ACTIVE, 12);
    ASSERT_VALUE(0, PCIE_TX_RATE, 500 * MIB);
    ASSERT_VALUE(0, PCIE_RX_RATE, 4000 * MIB);
    ASSERT_VALUE(0, NVLINK_TX_RATE, 100000 * MIB);
    ASSERT_VALUE(0, NVLINK_RX_RATE, 90000 * MIB);
    advance(0.3); /* from 0.1 to 0.4 s: half of it at 80, half at 40 */
    read_ok(probe, 0);
    ASSERT_VALUE(0, SM_ACTIVE, 60);
    assert_int_equal(fake.calls("nvmlGpmSampleAlloc", -1), 3);
    lab_probe_nvml.close(probe);
    assert_int_equal(fake.calls("nvmlGpmSampleFree", -1), 3);
}

LAB_TEST(costly_figures_come_once_a_second_and_are_of_all_of_it) {
    void *probe = open_script("graphics=10@0:50@0.6; sm=10@0:50@0.6");
    for (int tick = 0; tick <= 11; tick++) {
        read_ok(probe, 0);
        if (tick == 1) {
            ASSERT_VALUE(0, GRAPHICS_ACTIVE, 10); /* the first two samples are compared at once */
        } else if (tick != 10) {
            ASSERT_UNKNOWN(0, GRAPHICS_ACTIVE);
        } else {
            ASSERT_VALUE(0, SM_ACTIVE, 50);
            /* from 0.1 to 1.0 s: five ninths at 10, four at 50 */
            ASSERT_VALUE(0, GRAPHICS_ACTIVE, 27.78);
        }
        advance(0.1);
    }
    lab_probe_nvml.close(probe);
}

LAB_TEST(gpm_is_sampled_each_half_second_unless_asked_for_more) {
    struct lab_probe_setup setup = fixture_setup();
    setup.gpm_ns = 0;
    void *probe = open_with("sm=50", &setup);
    int known = 0;
    for (int tick = 0; tick <= 30; tick++) {
        read_ok(probe, 0);
        known += !isnan(value(0, LAB_METRIC_SM_ACTIVE));
        advance(0.1);
    }
    assert_int_equal(known, 7); /* at 0.1, 0.6 and 1 s, then each half second */
    assert_int_equal(fake.calls("nvmlGpmSampleGet", -1), 8);
    lab_probe_nvml.close(probe);
}

LAB_TEST(the_slow_tier_comes_each_second_and_at_edges) {
    void *probe = open_script(
        "fan=44; power=100@0:300@10; power_limit=700; pcie_tx=2; pcie_rx=3; nvlink_tx=7; "
        "nvlink_rx=8;"
        "replays=4; pcie_gen=5; pcie_width=16; ecc_corrected=9; ecc_uncorrected=1;"
        "rows_corrected=2; rows_uncorrected=1; rows_pending=1; rows_failed=0; recovery=1;"
        "held_power=50; held_sync=1; held_thermal=20; held_hw_thermal=2; held_brake=3");
    advance(10);
    read_ok(probe, 0);
    ASSERT_VALUE(0, ENERGY, 1000);
    ASSERT_VALUE(0, POWER_LIMIT, 700);
    ASSERT_VALUE(0, PCIE_TX_BYTES, 20 * MIB);
    ASSERT_VALUE(0, PCIE_RX_BYTES, 30 * MIB);
    ASSERT_VALUE(0, NVLINK_TX_BYTES, 70 * MIB);
    ASSERT_VALUE(0, NVLINK_RX_BYTES, 80 * MIB);
    ASSERT_VALUE(0, PCIE_REPLAYS, 4);
    ASSERT_VALUE(0, PCIE_GENERATION, 5);
    ASSERT_VALUE(0, PCIE_WIDTH, 16);
    ASSERT_VALUE(0, ECC_CORRECTED, 9);
    ASSERT_VALUE(0, ECC_UNCORRECTED, 1);
    ASSERT_VALUE(0, ROWS_REMAPPED, 3);
    ASSERT_VALUE(0, ROWS_PENDING, 1);
    ASSERT_VALUE(0, ROWS_FAILED, 0);
    ASSERT_VALUE(0, THROTTLED_POWER, 5);
    ASSERT_VALUE(0, THROTTLED_SYNC, 0.1);
    ASSERT_VALUE(0, THROTTLED_THERMAL, 2);
    ASSERT_VALUE(0, THROTTLED_HW_THERMAL, 0.2);
    ASSERT_VALUE(0, THROTTLED_BRAKE, 0.3);
    ASSERT_VALUE(0, RECOVERY_ACTION, 1);
    ASSERT_VALUE(0, FAN, 44);
    advance(0.5);
    read_ok(probe, 0);
    ASSERT_UNKNOWN(0, ENERGY);
    ASSERT_UNKNOWN(0, FAN);
    ASSERT_UNKNOWN(0, PCIE_GENERATION);
    ASSERT_VALUE(0, POWER, 300);
    ASSERT_OK(read_when(probe, 0, LAB_PROBE_EDGE, err));
    ASSERT_VALUE(0, ENERGY, 1150);
    advance(1);
    read_ok(probe, 0);
    ASSERT_VALUE(0, ENERGY, 1450);
    lab_probe_nvml.close(probe);
}

LAB_TEST(memory_of_the_host_is_that_of_a_gpu_without_its_own) {
    test_write(test_path("proc/meminfo"),
               "MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:    400000 kB\n");
    struct lab_probe_setup setup = fixture_setup();
    setup.root = test_folder();
    void *probe = open_with("memory_total=0", &setup);
    for (int i = 0; i < 2; i++) {
        read_ok(probe, 0);
        ASSERT_VALUE(0, MEMORY_TOTAL, 1024e6);
        ASSERT_VALUE(0, MEMORY_USED, 600000 * 1024.0);
        ASSERT_UNKNOWN(0, MEMORY_RESERVED);
    }
    lab_probe_nvml.close(probe);
}

/* --- processes --- */

LAB_TEST(processes_come_with_memory_and_what_they_use) {
    void *probe = open_script("gpus=2; process=0:101:8000:85:C,0:102:-1:0:C,0:103:20:7:G,"
                              "0:101:8000:85:G,0:104:50:9:M,1:105:1:1:C");
    read_ok(probe, 0);
    ASSERT_VALUE(0, PROCESSES, 4);
    assert_int_equal(told[0].process_counts[0], 4);
    const struct lab_gpu_process *items = told[0].processes[0];
    assert_int_equal(items[0].pid, 101);
    assert_int_equal(items[0].memory_bytes, 8000LL << 20);
    assert_true(items[0].compute && items[0].graphics);
    assert_int_equal((int)items[0].sm_percent, 85);
    assert_int_equal((int)items[0].memory_percent, 42);
    assert_int_equal(items[1].pid, 102);
    assert_int_equal(items[1].memory_bytes, -1);
    assert_int_equal((int)items[1].sm_percent, 0); /* asked for, and did nothing */
    assert_true(items[2].graphics && !items[2].compute);
    assert_true(items[3].compute && items[3].pid == 104);
    advance(0.5);
    told[0].process_counts[0] = -1;
    read_ok(probe, 0);
    assert_int_equal(told[0].process_counts[0], -1); /* not due */
    lab_probe_nvml.close(probe);
}

LAB_TEST(more_processes_than_room_are_all_listed) {
    char script[4096] = "process=";
    for (int i = 0; i < 150; i++)
        snprintf(script + strlen(script), sizeof script - strlen(script), "0:%d:10:3:C,", 1000 + i);
    void *probe = open_script(script);
    read_ok(probe, 0);
    ASSERT_VALUE(0, PROCESSES, 150);
    assert_int_equal((int)told[0].processes[0][149].sm_percent, 3);
    lab_probe_nvml.close(probe);
}

/* --- MIG --- */

LAB_TEST(mig_instances_are_entities_of_their_gpu) {
    void *probe = open_script("gpus=2; mig=0:2; memory_total=80000; memory=4000; sm=50;"
                              "process=0.0:201:100:10:C,0.1:202:200:0:C");
    assert_int_equal(lab_probe_nvml.lane_count(probe), 2);
    assert_int_equal(told[0].entity_count, 3);
    assert_int_equal(told[0].entities[1].kind, LAB_ENTITY_MIG);
    assert_int_equal(told[0].entities[1].parent, 0);
    assert_int_equal(told[0].entities[2].index, 1);
    assert_string_equal(told[0].ids[1], MIG0);
    assert_string_equal(told[0].ids[2], MIG1);
    read_ok(probe, 0);
    advance(0.2);
    read_ok(probe, 0);
    assert_int_equal(told[0].ticks[2], 2);
    assert_true(value_of(0, 2, LAB_METRIC_MEMORY_USED) == 2000 * MIB);
    assert_true(value_of(0, 2, LAB_METRIC_SM_ACTIVE) == 50);
    ASSERT_VALUE(0, MEMORY_USED, 4000 * MIB);
    ASSERT_UNKNOWN(0, UTILIZATION); /* not told in MIG mode */
    assert_int_equal(told[0].process_counts[0], -1);
    assert_int_equal(told[0].process_counts[1], 1);
    assert_int_equal(told[0].processes[2][0].pid, 202);
    lab_probe_nvml.close(probe);
}

LAB_TEST(only_visible_instances_are_told) {
    setenv("CUDA_VISIBLE_DEVICES", MIG1, 1);
    void *probe = open_script("gpus=2; mig=0:2");
    assert_int_equal(lab_probe_nvml.lane_count(probe), 1);
    assert_int_equal(told[0].entity_count, 2);
    assert_string_equal(told[0].ids[1], MIG1);
    read_ok(probe, 0);
    assert_false(isnan(value_of(0, 1, LAB_METRIC_MEMORY_TOTAL)));
    lab_probe_nvml.close(probe);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* --- Xid --- */

LAB_TEST(an_xid_is_an_event_and_a_count) {
    void *probe = open_script("gpus=2; xid=1:31@5,1:79@5,0:13@0.5");
    read_ok(probe, 1);
    ASSERT_VALUE(1, XIDS, 0);
    ASSERT_UNKNOWN(1, LAST_XID);
    assert_int_equal(told[1].event_count, 0);
    advance(5);
    read_ok(probe, 1);
    assert_int_equal(told[1].event_count, 2);
    assert_int_equal(told[1].event_kind, LAB_EVENT_XID);
    assert_int_equal(told[1].event_number, 79);
    assert_string_equal(told[1].event_text, "the GPU fell off the bus");
    ASSERT_VALUE(1, XIDS, 2);
    ASSERT_VALUE(1, LAST_XID, 79);
    advance(1);
    read_ok(probe, 1);
    assert_int_equal(told[1].event_count, 2);
    lab_probe_nvml.close(probe);
}

LAB_TEST(a_wait_for_events_that_returns_at_once_is_not_repeated) {
    void *probe = open_script("storm=1");
    for (int i = 0; i < 10; i++)
        ASSERT_OK(read_when(probe, 0, LAB_PROBE_EDGE, err));
    assert_int_equal(fake.calls("nvmlEventSetWait_v2", -1), 10);
    assert_int_equal(told[0].event_count, 0);
    lab_probe_nvml.close(probe);
    assert_int_equal(fake.calls("nvmlEventSetFree", -1), 1);
}

/* --- the demonstration --- */

LAB_TEST(the_demonstration_is_alive_and_plausible) {
    void *probe = open_script("demo");
    assert_int_equal(lab_probe_nvml.lane_count(probe), 8);
    read_ok(probe, 0);
    double first = value(0, LAB_METRIC_POWER), energy = value(0, LAB_METRIC_ENERGY);
    advance(3);
    for (int lane = 0; lane < 8; lane++) {
        read_ok(probe, lane);
        assert_true(told[lane].entities[0].simulated);
        assert_true(value(lane, LAB_METRIC_MEMORY_USED) < value(lane, LAB_METRIC_MEMORY_TOTAL));
        assert_true(value(lane, LAB_METRIC_POWER) <= value(lane, LAB_METRIC_POWER_LIMIT));
    }
    assert_true(fabs(value(0, LAB_METRIC_POWER) - first) > 1);
    double watts = (value(0, LAB_METRIC_ENERGY) - energy) / 3;
    assert_true(watts > 540 && watts < 700);
    ASSERT_UNKNOWN(0, FAN);
    lab_probe_nvml.close(probe);
}

static int begin(int argc, char **argv) {
    (void)argc;
    fixture_use_fake(argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.begin = begin};
