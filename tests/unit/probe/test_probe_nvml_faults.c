/*
 * test_probe_nvml_faults.c: GPUs in trouble: lost and back, gone, asleep, hanging, talking
 * nonsense. Others go on, and what came back is the same GPU.
 */
#include "nvml_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#define TRIES 20

/* Reads as the sampler would, every `step_s`, until the lane answers; how many tries. */
static int tries_until_back(void *probe, int lane, double step_s) {
    struct lab_err err = LAB_ERR_INIT;
    for (int i = 1; i <= TRIES; i++) {
        advance(step_s);
        if (read_when(probe, lane, LAB_PROBE_TICK, &err) == 0)
            return i;
    }
    fail_msg("not back: %s", err.text);
    return 0;
}

/* --- lost --- */

LAB_TEST(a_lost_gpu_comes_back_by_itself) {
    void *probe = open_script("gpus=3; power=100,200,300; lost=1@5..9; xid=1:79@5");
    for (int lane = 0; lane < 3; lane++)
        read_ok(probe, lane);
    advance(5);
    read_fails(probe, 1, "the GPU is lost");
    assert_int_equal(told[1].event_number, 79); /* its last word */
    read_ok(probe, 0);
    read_ok(probe, 2);
    assert_true(tries_until_back(probe, 1, 1) >= 4);
    ASSERT_VALUE(1, POWER, 200);
    read_ok(probe, 0); /* after the restart, with handles of their own */
    ASSERT_VALUE(0, POWER, 100);
    read_ok(probe, 2);
    ASSERT_VALUE(2, POWER, 300);
    assert_true(fake.calls("nvmlShutdown", -1) >= 1);
    assert_int_equal(fake.calls("nvmlShutdown", -1), fake.calls("nvmlInit_v2", -1));
    assert_int_equal(fake.misuse(), 0);
    lab_probe_nvml.close(probe);
    assert_int_equal(fake.calls("nvmlGpmSampleAlloc", -1), fake.calls("nvmlGpmSampleFree", -1));
    assert_int_equal(fake.calls("nvmlEventSetCreate", -1), fake.calls("nvmlEventSetFree", -1));
}

LAB_TEST(the_others_do_not_move_up_when_one_is_gone) {
    void *probe = open_script("gpus=3; power=100,200,300; gone=0@5..20");
    advance(5);
    read_fails(probe, 0, "the GPU is lost");
    for (int i = 0; i < 4; i++) { /* NVML is restarted, and lists two GPUs */
        advance(1);
        struct lab_err err = LAB_ERR_INIT;
        assert_int_equal(read_when(probe, 0, LAB_PROBE_TICK, &err), -1);
    }
    read_fails(probe, 0, "not there any more");
    read_ok(probe, 1);
    read_ok(probe, 2);
    ASSERT_VALUE(1, POWER, 200);
    ASSERT_VALUE(2, POWER, 300);
    assert_int_equal(lab_probe_nvml.lane_count(probe), 3);
    advance(11);
    tries_until_back(probe, 0, 5);
    ASSERT_VALUE(0, POWER, 100);
    assert_int_equal(fake.misuse(), 0);
    lab_probe_nvml.close(probe);
}

LAB_TEST(restarts_that_disturb_others_become_rare) {
    void *probe = open_script("gpus=2; lost=1@0.05");
    struct lab_err err = LAB_ERR_INIT;
    for (int i = 0; i < 600; i++) { /* a minute and a bit */
        advance(0.1);
        read_ok(probe, 0);
        read_when(probe, 1, LAB_PROBE_TICK, &err);
    }
    int restarts = fake.calls("nvmlShutdown", -1);
    assert_in_range(restarts, 3, 7); /* after 0, 1, 3, 7, 15, 31 s */
    lab_probe_nvml.close(probe);
}

LAB_TEST(every_error_that_matters_fails_the_lane_and_it_recovers) {
    static const struct {
        int code;
        const char *text;
    } cases[] = {
        {1, "lost its connection"}, {9, "not loaded"},        {15, "lost"},
        {16, "must be reset"},      {17, "operating system"}, {18, "differ in version"},
        {28, "not there any more"}, {999, "can't name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[100];
        snprintf(script, sizeof script, "gpus=2; fail=nvmlDeviceGetPowerUsage:%d@2x1/0",
                 cases[i].code);
        void *probe = open_script(script);
        read_ok(probe, 0);
        advance(0.1);
        read_fails(probe, 0, cases[i].text);
        read_ok(probe, 1);
        tries_until_back(probe, 0, 0.2);
        ASSERT_VALUE(0, POWER, 100);
        read_ok(probe, 1);
        assert_int_equal(fake.misuse(), 0);
        lab_probe_nvml.close(probe);
    }
}

LAB_TEST(a_driver_that_is_unloaded_and_loaded_again_is_found) {
    void *probe = open_script("gpus=2; fail=nvmlDeviceGetMemoryInfo_v2:1@2x1,nvmlInit_v2:9@1x3");
    read_ok(probe, 0);
    advance(0.1);
    read_fails(probe, 0, "lost its connection");
    advance(0.1);
    read_fails(probe, 0, "not loaded");
    read_fails(probe, 1, "not loaded");
    assert_true(tries_until_back(probe, 0, 0.5) > 2);
    read_ok(probe, 1);
    lab_probe_nvml.close(probe);
}

/* --- one question that fails --- */

LAB_TEST(a_question_that_fails_for_ever_costs_its_own_value_only) {
    void *probe = open_script("fail=nvmlDeviceGetPowerUsage:999; power=250; utilization=7");
    read_fails(probe, 0, "nvmlDeviceGetPowerUsage");
    tries_until_back(probe, 0, 0.1);
    ASSERT_UNKNOWN(0, POWER);
    ASSERT_VALUE(0, POWER_INSTANT, 250);
    ASSERT_VALUE(0, UTILIZATION, 7);
    int calls = fake.calls("nvmlDeviceGetPowerUsage", -1);
    read_ok(probe, 0);
    assert_int_equal(fake.calls("nvmlDeviceGetPowerUsage", -1), calls);
    assert_int_equal(fake.calls("nvmlShutdown", -1), 0);
    lab_probe_nvml.close(probe);
}

LAB_TEST(a_question_that_failed_for_a_while_is_answered_again) {
    void *probe = open_script("fail=nvmlDeviceGetPowerUsage:999@2x3; power=250");
    read_ok(probe, 0);
    advance(0.1);
    read_fails(probe, 0, "nvmlDeviceGetPowerUsage");
    tries_until_back(probe, 0,
                     0.1); /* the question is left out, and is at fault at the next try too */
    ASSERT_UNKNOWN(0, POWER);
    advance(61);
    read_ok(probe, 0);
    ASSERT_UNKNOWN(0, POWER);
    advance(61);
    read_ok(probe, 0);
    ASSERT_VALUE(0, POWER, 250);
    lab_probe_nvml.close(probe);
}

LAB_TEST(a_gpu_without_a_uuid_is_known_by_its_place) {
    void *probe = open_script("gpus=2; fail=nvmlDeviceGetUUID:3/1; lost=1@5..9; utilization=7");
    read_ok(probe, 1);
    assert_string_equal(told[1].ids[0], told[1].pcis[0]);
    ASSERT_VALUE(1, UTILIZATION, 7);
    advance(6);
    read_fails(probe, 1, "lost");
    advance(4);
    tries_until_back(probe, 1, 0.5);
    read_ok(probe, 0);
    lab_probe_nvml.close(probe);
}

LAB_TEST(what_is_not_supported_is_asked_once) {
    void *probe = open_script("gpus=2; fan=-,40; utilization=-; memory_temperature=-; gpm=0;"
                              "pcie_tx=-; fail=nvmlDeviceGetEncoderUtilization:4/0,"
                              "nvmlDeviceGetTemperatureV:26");
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(read_when(probe, 0, LAB_PROBE_EDGE, err));
        ASSERT_OK(read_when(probe, 1, LAB_PROBE_EDGE, err));
        advance(0.2);
    }
    assert_int_equal(fake.calls("nvmlDeviceGetFanSpeed", 0), 1);
    assert_int_equal(fake.calls("nvmlDeviceGetFanSpeed", 1), 5);
    assert_int_equal(fake.calls("nvmlDeviceGetUtilizationRates", 0), 1);
    assert_int_equal(fake.calls("nvmlDeviceGetEncoderUtilization", 0), 1);
    assert_int_equal(fake.calls("nvmlGpmQueryDeviceSupport", 0), 1);
    assert_int_equal(fake.calls("nvmlGpmSampleGet", -1), 0);
    assert_int_equal(fake.calls("nvmlDeviceGetTemperatureV", 0), 1);
    assert_int_equal(fake.calls("nvmlDeviceGetTemperature", 0), 5);
    ASSERT_UNKNOWN(0, FAN);
    ASSERT_VALUE(1, FAN, 40);
    ASSERT_UNKNOWN(0, UTILIZATION);
    ASSERT_UNKNOWN(0, MEMORY_TEMPERATURE);
    ASSERT_VALUE(0, TEMPERATURE, 40);
    ASSERT_UNKNOWN(0, PCIE_TX_BYTES);
    ASSERT_VALUE(0, PCIE_RX_BYTES, 0);
    lab_probe_nvml.close(probe);
}

LAB_TEST(nonsense_is_not_valid) {
    void *probe = open_script("gpus=2; garbage=0; temperature=40; utilization=?,3");
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(read_when(probe, 0, LAB_PROBE_EDGE, err));
        advance(0.2);
    }
    for (int metric = 0; metric < LAB_METRIC_PROCESSES; metric++)
        if (metric != LAB_METRIC_XIDS && metric != LAB_METRIC_TEMPERATURE &&
            !isnan(value(0, metric)))
            fail_msg("%s is %g", lab_metric(metric)->name, value(0, metric));
    ASSERT_VALUE(0, TEMPERATURE, 40);
    read_ok(probe, 1);
    ASSERT_VALUE(1, UTILIZATION, 3);
    lab_probe_nvml.close(probe);
}

/* Given nothing but nonsense, then the GPU is away; also when processes and Xids are counted. */
LAB_TEST(a_gpu_that_talks_only_nonsense_is_away_all_the_time) {
    void *probe = open_script("gpus=2; garbage=0");
    for (int i = 0; i < 30; i++) { /* through several readings of the slow tier */
        read_fails(probe, 0, "answers no query");
        advance(0.1);
    }
    read_ok(probe, 1);
    lab_probe_nvml.close(probe);
}

LAB_TEST(a_counter_that_wraps_falls) {
    void *probe = open_script("wrap=32; pcie_tx=4000");
    advance(1);
    read_ok(probe, 0);
    ASSERT_VALUE(0, PCIE_TX_BYTES, 4000 * 1048576.0);
    advance(1);
    read_ok(probe, 0);
    ASSERT_VALUE(0, PCIE_TX_BYTES, 8000 * 1048576.0 - 4294967296.0);
    lab_probe_nvml.close(probe);
}

/* --- asleep --- */

static void write_status(const char *text) {
    test_write(test_path("sys/bus/pci/devices/0000:17:00.0/power/runtime_status"), text);
}

LAB_TEST(a_sleeping_gpu_is_not_woken) {
    write_status("active\n");
    struct lab_probe_setup setup = fixture_setup();
    setup.root = test_folder();
    void *probe = open_with("gpus=1", &setup);
    read_ok(probe, 0);
    write_status("suspended\n");
    int calls = fake.calls("nvmlDeviceGetUtilizationRates", 0);
    read_fails(probe, 0, "power-saving");
    assert_int_equal(fake.calls("nvmlDeviceGetUtilizationRates", 0), calls);
    write_status("active\n");
    read_ok(probe, 0);
    lab_probe_nvml.close(probe);
}

/* --- hanging --- */

struct reader {
    void *probe;
    pthread_t thread;
    atomic_bool done;
    int result;
};

static void *read_hanging(void *state) {
    struct reader *reader = state;
    struct lab_err err = LAB_ERR_INIT;
    reader->result = read_when(reader->probe, 0, LAB_PROBE_TICK, &err);
    atomic_store(&reader->done, true);
    return NULL;
}

/* Returns when the call is under way. */
static void begin_hanging(struct reader *reader) {
    int calls = fake.calls("nvmlDeviceGetPowerUsage", 0);
    assert_int_equal(pthread_create(&reader->thread, NULL, read_hanging, reader), 0);
    while (fake.calls("nvmlDeviceGetPowerUsage", 0) == calls)
        usleep(1000);
}

LAB_TEST(a_lane_that_hangs_does_not_hold_up_another) {
    struct reader reader = {
        .probe = open_script("gpus=2; hang=nvmlDeviceGetPowerUsage:0.4@1/0; power=100,200;"
                             "fail=nvmlDeviceGetPowerUsage:15@2x1/1")};
    begin_hanging(&reader);
    read_ok(reader.probe, 1);
    ASSERT_VALUE(1, POWER, 200);
    read_fails(reader.probe, 1, "lost");
    read_ok(reader.probe, 1); /* found again without a restart, which nobody could do now */
    assert_int_equal(fake.calls("nvmlShutdown", -1), 0);
    assert_false(atomic_load(&reader.done));
    pthread_join(reader.thread, NULL);
    assert_int_equal(reader.result, 0);
    ASSERT_VALUE(0, POWER, 100);
    lab_probe_nvml.close(reader.probe);
}

LAB_TEST(nvml_is_not_restarted_under_a_call_that_hangs) {
    struct reader reader = {
        .probe = open_script("gpus=2; hang=nvmlDeviceGetPowerUsage:0.5@1/0; lost=1@1..2")};
    begin_hanging(&reader);
    fake.set_time(1.5);
    read_fails(reader.probe, 1, "lost");
    read_fails(reader.probe, 1, "lost");
    read_fails(reader.probe, 1, "lost"); /* would restart */
    assert_int_equal(fake.calls("nvmlShutdown", -1), 0);
    pthread_join(reader.thread, NULL);
    advance(3);
    tries_until_back(reader.probe, 1, 1);
    assert_int_equal(fake.calls("nvmlShutdown", -1), 1);
    read_ok(reader.probe, 0);
    assert_int_equal(fake.misuse(), 0);
    lab_probe_nvml.close(reader.probe);
}

LAB_TEST(closing_does_not_wait_and_the_late_reading_tells_nobody) {
    struct reader reader = {.probe = open_script("gpus=2; hang=nvmlDeviceGetPowerUsage:0.3@1/0")};
    begin_hanging(&reader);
    lab_probe_nvml.close(reader.probe);
    assert_false(atomic_load(&reader.done));
    pthread_join(reader.thread, NULL);
    assert_int_equal(told[0].ticks[0], 0);
    assert_int_equal(fake.calls("nvmlEventSetFree", -1), 2); /* by the one who came last */
}

static int begin(int argc, char **argv) {
    (void)argc;
    fixture_use_fake(argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {.begin = begin};
