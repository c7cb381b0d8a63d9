/* Hints by id: what to change, by the keys that the run's workload has. Which error has which hint
 * is tested where the errors are made. */
#include "report/study/study_internal.h"
#include "study_fixture.h"
#include "test.h"

#define VIT   "{\"batch_size\": 10, \"depth\": 6, \"memory_size_mb\": 512}"
#define MLP   "{\"batch_size\": 32, \"model\": \"medium\"}"
#define GEMM  "{\"m\": 1024, \"n\": 1024, \"k\": 1024, \"dtype\": \"bf16\"}"
#define OTHER "{\"command\": [\"train.py\"]}"

/* What is said of such a run, until the next is asked for; "" = nothing. */
static const char *hint_for(enum lab_hint_id id, const char *options) {
    static char text[512];
    LAB_AUTO(str, hint);
    bool any = lab_report_hint(id, options, NULL, &hint);
    assert_int_equal(any, hint.length > 0);
    snprintf(text, sizeof text, "%s", hint.text);
    return text;
}

static void assert_hint(enum lab_hint_id id, const char *part) {
    const char *hint = hint_for(id, VIT);
    if (!strstr(hint, part))
        fail_msg("'%s' is not in the hint %s: %s", part, lab_hint(id)->name, hint);
}

/* A user reads what to change, where it is set. */
LAB_TEST(hints_name_what_to_change) {
    assert_hint(LAB_HINT_OUT_OF_DEVICE_MEMORY, "experiment.test.batch_size");
    assert_hint(LAB_HINT_OUT_OF_HOST_MEMORY, "experiment.test.memory_size_mb");
    assert_hint(LAB_HINT_OUT_OF_VERIFY_MEMORY, "experiment.test.batch_size");
    assert_hint(LAB_HINT_MEMORY_LIMIT, "memory limit of the container");
    assert_hint(LAB_HINT_TIMEOUT, "experiment.test.timeout_s=");
    assert_hint(LAB_HINT_TIMEOUT_MEASURING, "experiment.test.num_samples=");
    assert_hint(LAB_HINT_TIMEOUT_VERIFYING, "Verifying");
    assert_hint(LAB_HINT_NUMA_NODE, "experiment.hardware.numa_nodes=");
    assert_hint(LAB_HINT_CPUSET, "cpuset");
    assert_hint(LAB_HINT_MEMORY_MOVED, "numa_balancing");
    assert_hint(LAB_HINT_MOVE_PAGES_FORBIDDEN, "SYS_NICE");
    assert_hint(LAB_HINT_WORKER_CRASHED, "logs/<run>.stderr");
    assert_hint(LAB_HINT_WRONG_RESULTS, "gpulab bench");
    assert_hint(LAB_HINT_OUT_OF_SPACE, "repeat the command");
}

/* Given that a rank of a gang failed, then its own log is named. */
LAB_TEST(the_failed_ranks_log_is_named) {
    static const char *const cases[][2] = {{"rank 1: the program ended", "logs/<run>.rank1.stderr"},
                                           {"rank 0: the program ended", "logs/<run>.stderr"},
                                           {"the program ended", "logs/<run>.stderr"}};
    for (int i = 0; i < 3; i++) {
        LAB_AUTO(str, hint);
        assert_true(lab_report_hint(LAB_HINT_PROGRAM_FAILED, NULL, cases[i][0], &hint));
        assert_contains(hint.text, cases[i][1]);
    }
    LAB_AUTO(str, none); /* where no log has a line, none is named */
    assert_false(lab_report_hint(LAB_HINT_PROGRAM_FAILED, NULL,
                                 "the program ended with status 1 without output", &none));
}

/* Repeats of a program with a fixed seed are copies: the advice to repeat says so first. */
LAB_TEST(a_command_without_a_seed_is_known) {
    static const char *const options[] = {OTHER, VIT, "{\"command\": \"t --seed {repeat}\"}"};
    for (int i = 0; i < 3; i++) {
        struct lab_run run = {.options = options[i]};
        struct lab_study_info study = {.runs = &run, .run_count = 1};
        assert_int_equal(study_lacks_seed(&study), i == 0);
    }
}

/* No hint shows a placeholder, whatever is known of the run. */
LAB_TEST(every_hint_is_whole) {
    static const char *const known[] = {VIT, MLP, GEMM, OTHER, "no JSON", NULL};
    for (int id = LAB_HINT_NONE; id < LAB_HINT_COUNT; id++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            assert_null(strpbrk(hint_for((enum lab_hint_id)id, known[i]), "{}"));
}

/* A hint names what that workload has, or nothing. */
LAB_TEST(keys_of_the_workload) {
    static const enum lab_hint_id killed = LAB_HINT_WORKER_KILLED;
    static const char dmesg[] =
        "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` shows.";
    char text[256];
    snprintf(text, sizeof text,
             "%s It takes less with a smaller experiment.test.batch_size or "
             "experiment.test.memory_size_mb.",
             dmesg);
    assert_string_equal(hint_for(killed, VIT), text);
    snprintf(text, sizeof text, "%s It takes less with a smaller batch_size.", dmesg);
    assert_string_equal(hint_for(killed, MLP), text);
    snprintf(text, sizeof text, "%s It takes less with smaller m, n or k.", dmesg);
    assert_string_equal(hint_for(killed, GEMM), text);
    assert_string_equal(hint_for(killed, OTHER), dmesg);
    assert_string_equal(hint_for(killed, NULL), dmesg);
    static const enum lab_hint_id full = LAB_HINT_OUT_OF_DEVICE_MEMORY;
    assert_string_equal(hint_for(full, MLP), "Give a smaller batch_size, or a smaller model.");
    assert_string_equal(hint_for(full, GEMM), "Give smaller m, n or k.");
    assert_string_equal(hint_for(full, OTHER), "");
    assert_string_equal(hint_for(LAB_HINT_NONE, VIT), "");
}
