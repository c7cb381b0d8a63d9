/* test_runner_rogue.c: whatever a worker does, it ends as a run that is done or failed. */
#include "runner_fixture.h"

LAB_TEST(a_silent_end) {
    add_run("silent.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker ended with status 0 and without a result");
    assert_hint(1, LAB_HINT_WORKER_CRASHED);
    assert_int_equal(stored(1).exit_code, 0);
}

LAB_TEST(a_kill_from_outside) {
    add_run("killed.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker was ended by signal 9 (Killed); ");
    assert_hint(1, LAB_HINT_WORKER_KILLED);
    assert_int_equal(stored(1).exit_code, -1);
}

LAB_TEST(never_a_word) {
    add_run("mute.0", "cpu:0")->timeout_s = 0.1;
    assert_carried_out();
    assert_failed(1, "timed out after 0.1 s before its first phase");
    assert_hint(1, LAB_HINT_TIMEOUT);
}

LAB_TEST(it_takes_too_long) {
    add_run("forever.0", "cpu:0")->timeout_s = 2;
    assert_carried_out();
    assert_failed(1, "timed out after 2 s in phase measuring");
    assert_hint(1, LAB_HINT_TIMEOUT_MEASURING);
}

LAB_TEST(term_is_ignored) {
    add_run("stubborn.0", "cpu:0")->timeout_s = 0.1;
    assert_carried_out();
    assert_failed(1, "timed out");
    assert_int_equal(stored(1).exit_code, -1);
}

LAB_TEST(a_family_is_left_behind) {
    /* given a worker that ends well but leaves others behind, in sessions of their own too */
    add_run("family.good", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_family_is_gone(3);
}

LAB_TEST(a_family_loses_its_head) {
    add_run("family.crash", "cpu:0");
    assert_carried_out();
    assert_failed(1, "signal 11");
    assert_family_is_gone(3);
}

LAB_TEST(others_families_live_on) {
    /* given a run that crashes while another one and its family are at work */
    plan.max_workers = 2;
    add_run("crash.0", "cpu:0");
    add_run("family.good", "cpu:1");
    assert_carried_out();
    assert_failed(1, "signal 11");
    assert_done(2);
}

LAB_TEST(a_flood_of_output) {
    add_run("flood.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    const char *log = read_log("flood.0.stdout");
    const char *end = "=== 4900000 more bytes of stdout were dropped: the log keeps 100000 of an "
                      "attempt ===\n";
    assert_int_equal(strlen(log), 100000 + 1 + strlen(end));
    assert_string_equal(log + 100001, end);
    assert_non_null(find_event(LAB_RUNNER_WARNING, "4900000 more bytes of stdout were dropped"));
}

LAB_TEST(a_log_that_cannot_be_written) {
    /* given a file where the folder of the logs should be */
    close(open(lab_arena_printf(&arena, "%s/logs", folder), O_CREAT | O_WRONLY, 0666));
    add_run("prints.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_non_null(find_event(LAB_RUNNER_WARNING, "log not written: "));
}

LAB_TEST(a_log_that_is_there_already) {
    mkdir(lab_arena_printf(&arena, "%s/logs", folder), 0777);
    int fd =
        open(lab_arena_printf(&arena, "%s/logs/prints.0.stdout", folder), O_CREAT | O_WRONLY, 0666);
    assert_int_equal(write(fd, "before\n", 7), 7);
    close(fd);
    add_run("prints.0", "cpu:0");
    assert_carried_out();
    assert_string_equal(read_log("prints.0.stdout"), "before\n=== started again ===\nto stdout\n");
    assert_string_equal(read_log("prints.0.stderr"), "to stderr\n");
}

LAB_TEST(a_flood_of_frames) {
    add_run("frames.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "it floods its runner with events");
}

LAB_TEST(everything_closed) {
    add_run("closes.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "it closed its event socket without a result");
}

LAB_TEST(a_result_and_no_end) {
    patience.exit_ns = 100 * LAB_NS_PER_MS;
    add_run("lingers.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_non_null(find_event(LAB_RUNNER_WARNING, "did not exit after its result"));
}

LAB_TEST(a_crash_after_the_result) {
    add_run("dies_late.0", "cpu:0");
    add_run("exits_late.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_done(2);
    assert_non_null(find_event(LAB_RUNNER_WARNING, "ended by signal 11 after its result"));
    assert_non_null(find_event(LAB_RUNNER_WARNING, "ended with status 3 after its result"));
}

LAB_TEST(lies) {
    static const struct {
        const char *id, *gist;
    } known[] = {
        {"lie.garbage", "a frame of rank 65535, but the ranks are 0 to 0"},
        {"lie.gap", "iterations from 1 on, where 0 was the next"},
        {"lie.many", "it sent 6 iterations, but 5 were asked for"},
        {"lie.ready", "READY twice"},
        {"lie.order", "a frame that only its runner sends"},
        {"lie.list", "RESULT frame of rank 0: a list of 4294967295 items"},
        {"lie.json", "its tuning:1: invalid JSON"},
        {"lie.rate", "its rate is a text, not a number"},
        {"lie.infinite", "its rate isn't finite"},
        {"lie.cut", "RESULT frame of rank 0: "},
        {"lie.version", "protocol version"},
        {"lie.ranks", "it reports 3 ranks, the run has 1"},
        {"lie.early", "it sent iterations before its GO"},
        {"lie.early_result", "it sent RESULT before GO"},
        {"lie.early_meet", "it sent MEET out of turn"},
        {"lie.sampled", "it sent samples, but its devices are real"},
    };
    int count = sizeof known / sizeof *known;
    for (int i = 0; i < count; i++)
        add_run(known[i].id, "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.failed, count);
    for (int i = 0; i < count; i++) {
        assert_failed(i + 1, "the worker failed: ");
        assert_failed(i + 1, known[i].gist);
        assert_hint(i + 1, LAB_HINT_WORKER_CRASHED);
    }
}

LAB_TEST(more_lies) {
    add_run("lie.twice", "cpu:0");
    add_run("lie.rank", "cpu:0,cpu:1");
    add_run("lie.late", "cpu:0");
    assert_carried_out();
    assert_failed(1, "it sent RESULT twice");
    assert_failed(2, "of another worker");
    assert_failed(3, "it sent iterations after its result");
}

/* Given simulated devices, then their samples have to be of theirs, and of their time. */
LAB_TEST(lies_about_samples) {
    struct lab_machine machine = {.source = "sim:one", .simulated = true};
    struct lab_device_ref device = {
        .name = "sim:one:0", .machine = &machine, .definition = "title: one"};
    plan.machine = &machine;
    plan.devices = (struct lab_device_list){.items = &device, .count = 1};
    spec.monitor = true;
    spec.machine = &machine;
    add_run("lie.sampled_before", "sim:one:0");
    add_run("lie.sampled_nobody", "sim:one:0");
    assert_carried_out();
    spec.monitor = false;
    spec.machine = NULL;
    assert_failed(1, "it sent a sample from before it began");
    assert_failed(2, "it sent samples of an unknown entity");
}

static int begin(int argc, char **argv) {
    rogue_main(argc, argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
