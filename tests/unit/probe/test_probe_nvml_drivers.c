/*
 * test_probe_nvml_drivers.c: the same machine under drivers of several ages: functions that aren't
 * there yet, or not any more, and the layouts of the process list. A process loads NVML once, so
 * each driver has one of its own: the program starts itself for each of them.
 */
#include "nvml_fixture.h"

#include <sys/wait.h>

#define MIB 1048576.0

static const char *const drivers[] = {"440", "470", "515", "535", "580", "610"};

static int driver;

static const char *scripted(const char *more) {
    static char script[300];
    snprintf(script, sizeof script, "driver=%d; %s", driver, more);
    return script;
}

static bool is_missed(const char *effect) {
    const struct lab_dl_report *report;
    lab_nvml_load(&report);
    for (int i = 0; report->effects[i]; i++)
        if (strcmp(report->effects[i], effect) == 0)
            return true;
    return false;
}

LAB_TEST(values_are_the_same_under_every_driver) {
    void *probe = open_script(scripted("memory_total=80000; memory=1000; reserved=500; power=300;"
                                       "temperature=55; reasons=4; pstate=3; power_limit=400;"
                                       "ecc_corrected=2; xid=0:13@0.5"));
    advance(2);
    read_ok(probe, 0);
    ASSERT_VALUE(0, MEMORY_TOTAL, 80000 * MIB);
    ASSERT_VALUE(0, MEMORY_USED, (driver < 510 ? 1500 : 1000) * MIB); /* v1 counts both */
    ASSERT_VALUE(0, POWER, 300);
    ASSERT_VALUE(0, TEMPERATURE, 55);
    ASSERT_VALUE(0, CLOCK_REASONS, 4);
    ASSERT_VALUE(0, PERFORMANCE_STATE, 3);
    ASSERT_VALUE(0, ENERGY, 600);
    ASSERT_VALUE(0, POWER_LIMIT, 400);
    ASSERT_VALUE(0, ECC_CORRECTED, 2);
    ASSERT_VALUE(0, LAST_XID, 13);
    lab_probe_nvml.close(probe);
}

LAB_TEST(processes_are_read_in_every_layout) {
    void *probe =
        open_script(scripted("process=0:101:8000:85:C,0:102:-1:0:C,0:103:300:3:C,0:104:7:1:G"));
    size_t bytes = lab_nvml_process_bytes(lab_nvml_load(NULL));
    assert_int_equal(bytes, driver == 535 ? 32 : 24);
    read_ok(probe, 0);
    assert_int_equal(told[0].process_counts[0], 4);
    const struct lab_gpu_process *items = told[0].processes[0];
    for (int i = 0; i < 4; i++)
        assert_int_equal(items[i].pid, 101 + i);
    assert_int_equal(items[0].memory_bytes, 8000LL << 20);
    assert_int_equal(items[1].memory_bytes, -1);
    assert_int_equal(items[2].memory_bytes, 300LL << 20);
    assert_int_equal(items[3].memory_bytes, 7LL << 20);
    lab_probe_nvml.close(probe);
}

LAB_TEST(gpm_is_there_since_520) {
    void *probe = open_script(scripted("sm=50"));
    read_ok(probe, 0);
    advance(0.2);
    read_ok(probe, 0);
    if (driver >= 520)
        ASSERT_VALUE(0, SM_ACTIVE, 50);
    else
        ASSERT_UNKNOWN(0, SM_ACTIVE);
    assert_int_equal(is_missed(LAB_NVML_GPM), driver < 520);
    lab_probe_nvml.close(probe);
}

LAB_TEST(what_has_another_name_is_not_missed) {
    assert_false(is_missed(LAB_NVML_HEAT));
    assert_false(is_missed(LAB_NVML_CLOCKS));
    assert_false(is_missed(LAB_NVML_PROCESSES));
    assert_false(is_missed(LAB_NVML_MEMORY));
    assert_int_equal(is_missed(LAB_NVML_MPS), driver < 455);
}

#define OF_DRIVER_0 "what_the_driver_lacks_is_unknown"

/* With few functions at all: what is left is told. */
LAB_TEST(what_the_driver_lacks_is_unknown) {
    void *probe = open_script("power=300; utilization=20");
    read_ok(probe, 0);
    ASSERT_VALUE(0, UTILIZATION, 20);
    ASSERT_VALUE(0, POWER, 300);
    ASSERT_UNKNOWN(0, POWER_INSTANT);
    ASSERT_VALUE(0, ENERGY, 0);
    ASSERT_VALUE(0, POWER_LIMIT, 700);
    ASSERT_VALUE(0, ECC_CORRECTED, 0);
    ASSERT_VALUE(0, ROWS_REMAPPED, 0);
    ASSERT_UNKNOWN(0, PCIE_TX_BYTES);
    ASSERT_UNKNOWN(0, XIDS);
    ASSERT_UNKNOWN(0, TEMPERATURE);
    ASSERT_UNKNOWN(0, PROCESSES);
    ASSERT_UNKNOWN(0, MEMORY_USED);
    assert_true(is_missed(LAB_NVML_HEAT));
    assert_true(is_missed(LAB_NVML_XID));
    assert_true(is_missed(LAB_NVML_PROCESSES));
    lab_probe_nvml.close(probe);
}

#define LACKING                                                                                    \
    "gpus=1; driver=440; missing=nvmlDeviceGetFieldValues,nvmlDeviceGetTemperature,"               \
    "nvmlEventSetWait,nvmlDeviceGetComputeRunningProcesses,nvmlDeviceGetMemoryInfo,"               \
    "nvmlDeviceGetGraphicsRunningProcesses,nvmlDeviceGetProcessUtilization,nvmlShutdown,"          \
    "nvmlDeviceGetHandleByPciBusId_v2"

static int run_child(char *program, char *argument, const char *script) {
    pid_t child = fork();
    if (child == 0) {
        setenv("GPULAB_FAKE_NVML", script, 1);
        execv("/proc/self/exe", (char *[]){program, argument, NULL});
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

/* Without an argument it starts itself once for each driver, which is its argument. */
static int begin(int argc, char **argv) {
    int failed = 0;
    if (argc > 1) {
        fixture_use_fake(argv);
        driver = (int)strtol(argv[1], NULL, 10);
        if (driver) {
            print_message("driver %d\n", driver);
            cmocka_set_skip_filter(OF_DRIVER_0);
        } else {
            cmocka_set_test_filter(OF_DRIVER_0);
        }
        return lab_test_run("tests", NULL, NULL);
    }
    setenv("LD_LIBRARY_PATH", LAB_TEST_BINARY_DIR "/fake", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        char script[64], name[16];
        snprintf(name, sizeof name, "%s", drivers[i]);
        snprintf(script, sizeof script, "gpus=1; driver=%s", drivers[i]);
        failed |= run_child(argv[0], name, script);
    }
    failed |= run_child(argv[0], (char[]){"0"}, LACKING);
    return failed ? 1 : 0;
}

const struct lab_test_program lab_test_program = {.begin = begin};
