/*
 * test_run_monitor_nvml.c: what a study's runner knows of GPUs between its runs, with the fake
 * driver: whether they are cool, whether their memory is back, whether they were read since.
 */
#include "unit/probe/nvml_fake.h"

#include "machine/machine.h"
#include "run/run_monitor.h"

static struct lab_store *store;
static struct lab_machine *machine;
static struct lab_run_monitor *monitor;

static int set_up(void **state) {
    (void)state;
    struct lab_store_study study = {
        .name = "s", .option = "s", .config = "", .words = "[]", .machine = "{}", .version = "0"};
    int64_t epoch;
    ASSERT_OK(lab_store_create(test_path("study.db"), &study, NULL, 0, &store, err));
    ASSERT_OK(lab_store_epoch(store, "runner", &epoch, err));
    ASSERT_OK(lab_machine_open(NULL, &machine, err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_run_monitor_close(monitor);
    lab_machine_close(machine);
    lab_store_close(store);
    return 0;
}

static void watch(const char *script) {
    struct lab_run_monitor_spec spec = {.machine = machine, .store = store, .gpus = true};
    fake.set_time(0);
    assert_null(fake.play(script));
    fake.set_time(0);
    ASSERT_OK(lab_run_monitor_open(&spec, &monitor, err));
    assert_true(lab_run_monitor_fd(monitor) >= 0);
}

/* Both GPUs were read at this time of the script. */
static void read_at(double seconds) {
    fake.set_time(seconds);
    lab_run_monitor_edge(monitor);
    for (int i = 0; i < 5000; i++) {
        lab_run_monitor_tend(monitor);
        if (lab_run_monitor_is_settled(monitor))
            return;
        usleep(1000);
    }
    fail_msg("not read within 5 s");
}

LAB_TEST(a_store_that_cannot_be_written_is_refused) {
    struct lab_store *read;
    struct lab_err why = LAB_ERR_INIT;
    ASSERT_OK(lab_store_open(test_path("study.db"), LAB_STORE_READ, &read, err));
    struct lab_run_monitor_spec spec = {.machine = machine, .store = read, .simulated = true};
    assert_int_equal(lab_run_monitor_open(&spec, &monitor, &why), -1);
    assert_null(monitor);
    assert_true(*why.text);
    lab_store_close(read);
}

LAB_TEST(gpus_are_cool_when_they_are_as_before) {
    static const struct {
        double at_s;
        bool cool;
    } cases[] = {{0, true}, {1, true}, {2, false}, {3, true}, {4, false}, {5, true}, {6, true}};
    /* 3 degrees more are as cool as before, 4 aren't; nor is one that is held back, by heat */
    watch("gpus=2; temperature=40,50@0:53@1:54@2:50@3; reasons=1@0:0x20@4:0x2@5,1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_at(cases[i].at_s);
        if (lab_run_monitor_is_cool(monitor) != cases[i].cool)
            fail_msg("%s at %g s", cases[i].cool ? "not cool" : "cool", cases[i].at_s);
    }
}

LAB_TEST(memory_is_left_until_it_is_as_before) {
    watch("gpus=2; memory=100@0:180@1:100@2:60@3,100");
    for (int i = 0; i < 4; i++) {
        read_at(i);
        assert_int_equal(lab_run_monitor_memory_left(monitor, "cuda:0"), i == 1 ? 80 << 20 : 0);
        assert_int_equal(lab_run_monitor_memory_left(monitor, "cuda:1"), 0);
        assert_int_equal(lab_run_monitor_memory_left(monitor, "cpu:0"), 0);
    }
    assert_int_equal(lab_run_monitor_memory_left(NULL, "cuda:0"), 0);
}

LAB_TEST(a_lost_gpu_is_waited_for_by_nobody) {
    watch("gpus=2; lost=1@1..99; temperature=40,40@0:90@0.5; memory=100,100@0:180@0.5");
    read_at(0);
    read_at(0.5);
    assert_false(lab_run_monitor_is_cool(monitor));
    assert_int_equal(lab_run_monitor_memory_left(monitor, "cuda:1"), 80 << 20);
    read_at(2);
    for (int i = 0; i < 3000 && !lab_run_monitor_is_cool(monitor); i++) {
        lab_run_monitor_tend(monitor);
        usleep(1000);
    }
    assert_true(lab_run_monitor_is_cool(monitor));
    assert_int_equal(lab_run_monitor_memory_left(monitor, "cuda:1"), 0);
}

static int begin(int argc, char **argv) {
    (void)argc;
    fixture_use_fake(argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .begin = begin, .set_up = set_up, .tear_down = tear_down};
