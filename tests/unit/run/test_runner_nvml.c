/*
 * test_runner_nvml.c: what the runner waits for on GPUs between runs, with the fake driver: until their
 * memory is back, and until they are as cool as before. The script's time stands still, and goes on when the
 * test has seen that the runner waits.
 */
#include "runner_fixture.h"

#include "base/log.h"
#include "machine/machine.h"
#include "unit/probe/nvml_fake.h"

#define WAITS_ENOUGH 4   /* questions whether to stop, five a second, until it is sure to wait */
#define WAITS_MOST   300 /* until the study is stopped: what was waited for has come long since */

static int waits;      /* questions since the first run ended */
static double goes_on; /* to this time of the script, once it is sure to wait; 0 = it stays */
static int started_when_it_went_on;

static int wait_and_go_on(void *state) {
    (void)state;
    if (count_events(LAB_RUNNER_DONE) > 0 && count_events(LAB_RUNNER_STARTED) == 1)
        waits++;
    if (waits == WAITS_ENOUGH && goes_on > 0) {
        started_when_it_went_on = count_events(LAB_RUNNER_STARTED);
        fake.set_time(goes_on);
    }
    return waits > WAITS_MOST;
}

static void take_time(const struct lab_runner_event *event, void *state) {
    hear_event(event, state);
    if (event->kind == LAB_RUNNER_DONE)
        fake.set_time(1);
}

static void refuse_log(enum lab_log_level level, const char *text, void *state) {
    (void)state;
    fail_msg("%s: %s", lab_log_level_name(level), text);
}

/* Two runs, one after the other: GPUs are as at 0 until the first has ended, then as at 1. */
static void carry_out_on_gpus(const char *script) {
    struct lab_machine *machine;
    fake.set_time(0);
    assert_null(fake.play(script));
    fake.set_time(0);
    assert_int_equal(lab_machine_open(NULL, &machine, &err), 0);
    waits = started_when_it_went_on = 0;
    spec = (struct lab_runner_spec){.machine = machine, .monitor = true};
    asker = wait_and_go_on;
    listener = take_time;
    lab_log_set_sink(refuse_log, NULL, LAB_LOG_WARNING); /* nothing goes wrong */
    assert_carried_out();
    lab_log_set_sink(NULL, NULL, LAB_LOG_ERROR);
    lab_machine_close(machine);
}

LAB_TEST(a_run_waits_for_the_memory_of_the_one_before_it) {
    add_run("good.0", "cuda:0");
    add_run("good.1", "cuda:0");
    goes_on = 2;
    carry_out_on_gpus(
        "gpus=2; memory=100@0:164@1:163@2"); /* 64 MiB are a process's, less is the driver's */
    assert_int_equal(outcome.done, 2);
    assert_int_equal(started_when_it_went_on, 1);
    assert_int_equal(count_events(LAB_RUNNER_WARNING), 2); /* the workers' own */
}

/* Who waits in vain says so after ten seconds. */
LAB_TEST(memory_that_is_not_of_this_gpu_is_not_waited_for) {
    add_run("good.0", "cuda:1");
    add_run("good.1", "cuda:1");
    goes_on = 0;
    carry_out_on_gpus("gpus=2; memory=100@0:900@1,100@0:163@1");
    assert_int_equal(outcome.done, 2);
    assert_int_equal(count_events(LAB_RUNNER_WARNING), 2); /* the workers' own */
}

/* Ten seconds are enough: the next run begins, and the study says why it may be disturbed. */
LAB_TEST(memory_that_never_comes_back_is_a_warning) {
    add_run("good.0", "cuda:1");
    add_run("good.1", "cuda:1");
    goes_on = 0;
    carry_out_on_gpus("gpus=2; memory=100,100@0:356@1");
    assert_int_equal(outcome.done, 2);
    assert_true(waits > WAITS_ENOUGH);
    assert_string_equal(
        find_event(LAB_RUNNER_WARNING, "cuda:1 has"),
        "cuda:1 has 256 MiB more in use than before the study, 10 s after its last run");
}

static void carry_out_phases(const char *script, double pause_s) {
    static const struct lab_plan_phase phase = {.name = "baseline"};
    add_run("good.0", "cuda:0")->phase = &phase;
    add_run("good.1", "cuda:0")->phase = &phase;
    plan.cooldown_s = pause_s;
    carry_out_on_gpus(script);
}

LAB_TEST(a_pause_between_phases_ends_when_gpus_are_cool) {
    goes_on = 2;
    carry_out_phases("gpus=1; temperature=40@0:60@1:43@2", 3600);
    assert_int_equal(outcome.done, 2);
    assert_int_equal(started_when_it_went_on, 1);
    assert_int_equal(count_events(LAB_RUNNER_COOLING), 0);
}

LAB_TEST(a_pause_between_phases_ends_where_gpus_stay_warm) {
    goes_on = 0;
    carry_out_phases("gpus=1; temperature=40@0:60@1", 1.5);
    assert_int_equal(outcome.done, 2);
    assert_true(stored(2).start_ns - stored(1).end_ns >= LAB_NS_PER_S);
}

static int begin(int argc, char **argv) {
    rogue_main(argc, argv);
    fixture_use_fake(argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
