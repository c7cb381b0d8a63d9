/*
 * test_sim_faults.c: faults that are planted for a health check: each changes what it should, what
 * a driver would report and what copies take; mistakes are told.
 */
#include "device/health.h"
#include "sim_fixture.h"

#define LINKED "    nvlink_gb_s: 40\n    nvlinks: 4\n    slot_gb_s: 20\n"

/* The toy with NVLinks, and with these effects. */
static struct lab_health plant(const char *effects) {
    struct lab_health health;
    struct lab_device_list list = {0};
    const char *head = toy_with(&sim_arena, "    slot_gb_s: 20\n", LINKED);
    lab_device_define("toy", lab_arena_printf(&sim_arena, "%seffects:\n  %s\n", head, effects));
    ASSERT_OK(lab_device_select(sim_here, "sim:toy", &sim_arena, &list, err));
    ASSERT_OK(lab_device_health(sim_here, &list, &sim_arena, &health, err));
    return health;
}

LAB_TEST(a_driver_reports_what_is_planted) {
    struct lab_health health = plant("link: [{gpu: 1, width: 8, generation: 3}]");
    assert_int_equal(health.gpus[0].pcie_width, 16);
    assert_int_equal(health.gpus[1].pcie_width, 8);
    assert_int_equal(health.gpus[1].pcie_generation, 3);
    assert_int_equal(health.gpus[1].pcie_generation_most, 4);
    health = plant("power_cap: [{gpu: 2, limit_w: 60}]");
    assert_near(health.gpus[2].power_limit_w, 60, 0);
    assert_near(health.gpus[2].power_default_w, 100, 0);
    health = plant("errors: [{gpu: 0, ecc_uncorrected: 3, rows_pending: 1, xid: 79}]");
    assert_int_equal(health.gpus[0].ecc_uncorrected, 3);
    assert_int_equal(health.gpus[0].rows_pending, 1);
    assert_int_equal(health.xids[0].number, 79);
    assert_string_equal(health.xids[0].address, health.gpus[0].address);
    health = plant("wrong_node: [{gpu: 0, node: 2}]");
    assert_int_equal(health.gpus[0].node, 2);
    assert_int_equal(sim_ref("sim:toy:0").node, 2);
    health = plant("dead_nvlink: [{gpus: [0, 1]}]");
    assert_int_equal(health.gpus[0].nvlinks_active, 4); /* it shows by measuring alone */
    assert_int_equal(health.gpus_on_bus, 3);
}

static double peer_copy_s(int from, int to) {
    const size_t bytes = 100000000;
    struct lab_device *device[2];
    struct lab_buffer buffer[2];
    struct lab_stream *stream;
    struct lab_device_setup setup = LAB_DEVICE_SETUP;
    for (int i = 0; i < 2; i++) {
        device[i] = sim_device(lab_arena_printf(&sim_arena, "sim:toy:%d", i ? to : from), setup);
        ASSERT_OK(lab_buffer_open(device[i], LAB_MEMORY_DEVICE, -1, bytes, &buffer[i], err));
    }
    ASSERT_OK(lab_stream_open(device[0], LAB_STREAM_COPY, &stream, err));
    int64_t begin_ns = lab_clock_now(device[0]->clock);
    ASSERT_OK(lab_copy_peer(stream, device[1], buffer[1].data, buffer[0].data, bytes, err));
    ASSERT_FAILS(lab_copy_peer(stream, device[1], buffer[0].data, buffer[1].data, bytes, err),
                 LAB_ERR_SYSTEM, "target");
    ASSERT_OK(lab_stream_sync(stream, err));
    double taken_s = 1e-9 * (double)(lab_clock_now(device[0]->clock) - begin_ns);
    lab_stream_close(stream);
    for (int i = 0; i < 2; i++) {
        lab_buffer_close(&buffer[i]);
        lab_device_close(device[i]);
    }
    return taken_s;
}

LAB_TEST(a_dead_nvlink_leaves_the_slots) {
    plant("dead_nvlink: [{gpus: [1, 0]}]");
    assert_near(peer_copy_s(0, 2), 0.1 / 40, 1e-5);
    assert_near(peer_copy_s(0, 1), 0.1 / 20, 1e-5);
    plant("link: [{gpu: 1, width: 8}]\n  dead_nvlink: [{gpus: [1, 0]}]");
    assert_near(peer_copy_s(1, 0), 0.1 / 10, 1e-5);
}

LAB_TEST(mistakes_are_told) {
    static const char *const cases[][2] = {
        {"link: [{gpu: 3}]", "link: there is no GPU 3"},
        {"link: [{gpu: 0, width: 32}]", "GPU 0 has 16 lanes of generation 4"},
        {"link: [{gpu: 0, widht: 8}]", "did you mean 'width'"},
        {"power_cap: [{gpu: 0, limit_w: 5}]", "limit_w is below"},
        {"dead_nvlink: [{gpus: [1, 1]}]", "two GPUs of it"},
        {"wrong_node: [{gpu: 0, node: 1}]", "there is no NUMA node 1"},
        {"errors: {gpu: 0}", "errors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_device_list list = {0};
        lab_device_define("toy",
                          lab_arena_printf(&sim_arena, TOY_HEAD "effects:\n  %s\n", cases[i][0]));
        ASSERT_FAILS(lab_device_select(sim_here, "sim:toy", &sim_arena, &list, err), LAB_ERR_USER,
                     cases[i][1]);
    }
}

LAB_TEST(xids_are_read_from_the_kernel_log) {
    struct lab_health health = {0};
    const char *log = test_path("kmsg");
    test_write(log, "6,0,2,-;NVRM: loading\n"
                    "4,2,3,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"
                    "4,3,4,-;NVRM: Xid (PCI:0000:3b:00.0): 31, pid=8, name=x\n"
                    "4,4,5,-;NVRM: Xid (PCI:zz): 1\nNVRM: Xid (PCI:0000:3b:00) none\n");
    lab_health_read_xids(log, &sim_arena, &health);
    assert_null(health.xids_unknown);
    assert_int_equal(health.xid_count, 2);
    assert_int_equal(health.xids[1].number, 31);
    assert_string_equal(health.xids[0].address, "0000:3b:00.0");
    assert_near(health.xids_from_s, 0, 0); /* it reaches back to boot; the next doesn't */
    test_write(log, "6,608,51747000000,-;NVRM: loading\n");
    lab_health_read_xids(log, &sim_arena, &health);
    assert_near(health.xids_from_s, 51747, 0);
    lab_health_read_xids(test_path("none"), &sim_arena, &health);
    assert_contains(health.xids_unknown, "can't be read");
}

const struct lab_test_program lab_test_program = {.set_up = sim_set_up, .tear_down = sim_tear_down};
