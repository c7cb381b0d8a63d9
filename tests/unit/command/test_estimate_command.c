/* test_estimate_command.c: `gpulab estimate` as a user calls it. */
#include "status_fixture.h"

extern const struct lab_command lab_command_estimate;

static struct lab_value *first_estimate(void) {
    struct lab_value *list = lab_value_get(output_value(), "estimates");
    assert_true(list->count > 0);
    return list->items[0];
}

LAB_TEST(without_studies_it_says_so) {
    CALL(lab_command_estimate, NULL);
    assert_output("No study is running, and none was interrupted.\n");
    assert_output("gpulab estimate quick_test");
    CALL(lab_command_estimate, "--json");
    assert_int_equal(lab_value_get(output_value(), "estimates")->count, 0);
}

LAB_TEST(all_unfinished_studies_are_estimated) {
    given_study("ended", "dddd");
    given_study("stopped", "ddr.");
    const char *path = given_study("busy", "dr..");
    given_runner("busy");
    given_progress(path, 2, "measuring", 50);
    CALL(lab_command_estimate, NULL);
    assert_output("busy: running, 1 of 4 runs done; about ");
    assert_output("stopped: interrupted, 2 of 4 runs done; about 16");
    assert_output("Resume    gpulab run stopped\n");
    assert_output("  measuring      50/100");
    assert_null(strstr(output, "ended:"));
}

LAB_TEST(one_study_is_named_by_its_folder) {
    const char *path = given_study("stopped", "d...");
    given_study("other", "d...");
    CALL(lab_command_estimate, path);
    assert_output("stopped: interrupted");
    assert_null(strstr(output, "other:"));
    CALL(lab_command_estimate, "stopped", "--json");
    assert_string_equal(lab_value_get(first_estimate(), "state")->string, "interrupted");
    assert_int_equal(lab_value_get(first_estimate(), "runs")->count, 4);
}

LAB_TEST(studys_name_is_a_plan) {
    CALL(lab_command_estimate, "quick_test");
    assert_output("quick_test: 3 points × 1 repeat = 3 runs, time unknown (no comparable runs)\n");
    assert_output("Total     unknown: no comparable run on this machine; the time-outs allow 30");
    assert_output("Disk      about ");
    assert_output("Start     gpulab run --device=cpu quick_test\n");
    CALL(lab_command_estimate, "quick_test", "experiment.duration=60s", "--json");
    assert_near(lab_value_get(first_estimate(), "left_s")->number, 180, 1); /* and the report */
    assert_string_equal(lab_value_get(first_estimate(), "state")->string, "planned");
}

LAB_TEST(sweep_is_estimated_as_a_whole) {
    CALL(lab_command_estimate, "--multirun", "quick_test", "experiment.test.batch_size=5,10",
         "--json");
    assert_int_equal(lab_value_get(first_estimate(), "run_count")->integer, 6);
}

LAB_TEST(unknown_words_are_refused) {
    const char *const name[] = {"quick_tets", NULL}, *const path[] = {"outputs/nothing", NULL};
    assert_int_equal(call_for_output(&lab_command_estimate, name), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "did you mean 'quick_test'?");
    assert_int_equal(call_for_output(&lab_command_estimate, path), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_contains(err.text, "outputs/nothing");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
