/* Hints for errors as the code words them: what to change, by its key. */
#include "study_fixture.h"

#define VIT   "{\"batch_size\": 10, \"depth\": 6, \"memory_size_mb\": 512}"
#define MLP   "{\"batch_size\": 32, \"model\": \"medium\"}"
#define GEMM  "{\"m\": 1024, \"n\": 1024, \"k\": 1024, \"dtype\": \"bf16\"}"
#define OTHER "{\"command\": [\"train.py\"]}"

/* What is said of such a run, until the next is asked for; "" = nothing. */
static const char *hint_for(const char *error, const char *options) {
    static char text[512];
    struct lab_str hint;
    lab_str_init(&hint);
    bool any = lab_report_hint(error, options, &hint);
    assert_int_equal(any, hint.length > 0);
    snprintf(text, sizeof text, "%s", hint.text);
    lab_str_release(&hint);
    return text;
}

static void assert_hint(const char *error, const char *part) {
    const char *hint = hint_for(error, VIT);
    if (!*hint)
        fail_msg("no hint for: %s", error);
    if (!strstr(hint, part))
        fail_msg("'%s' is not in the hint for '%s': %s", part, error, hint);
}

LAB_TEST(memory) {
    assert_hint("device memory of cpu:0: node 0 has 1.00 GiB free, 2.31 GiB asked for",
                "experiment.test.batch_size");
    assert_hint("pinned host memory of cpu:0: node 2 has 512 MiB free, 1.00 GiB asked for",
                "experiment.test.memory_size_mb");
    assert_hint("pinned host memory of cpu:0: node 2 has too little memory, 1.00 GiB asked for",
                "experiment.test.memory_size_mb");
    assert_hint(
        "device memory of cpu:0: the memory limit of this process's control group leaves 100 "
        "MiB, 1.00 GiB asked for",
        "memory limit of the container");
    assert_hint("node 1 has 0 B free, 4.00 KiB asked for", "experiment.test.batch_size");
    assert_hint("comparing with double precision takes 3.00 GiB of host memory, 1.00 GiB are free",
                "experiment.test.batch_size");
    assert_hint("cuMemAlloc: out of memory (2)", "experiment.test.batch_size");
}

LAB_TEST(time_outs) {
    assert_hint("timed out after 300 s in phase measuring", "experiment.test.timeout_s=");
    assert_hint("timed out after 300 s in phase measuring", "experiment.test.num_samples=");
    assert_hint("timed out after 300 s in phase verifying", "double precision");
    assert_hint("timed out after 300 s in phase opening", "experiment.test.timeout_s=");
    assert_hint("timed out after 0.5 s before its first phase", "experiment.test.timeout_s=");
}

LAB_TEST(places) {
    assert_hint("there is no NUMA node 7: this machine has nodes 0 and 2",
                "experiment.hardware.numa_nodes=");
    assert_hint("binding a thread to CPUs 0-3: Operation not permitted",
                "experiment.hardware.numa_nodes=");
    assert_hint("this process has no CPU 12: it may use 0-3", "cpuset");
    assert_hint(
        "the thread is not bound to node 1: it runs on CPU 0 of node 0 and may run on CPUs 0-3, "
        "node 1 has CPUs 4-7",
        "experiment.hardware.numa_nodes=");
    assert_hint("input pool: memory is not on node 1: of 512 pages 3 on node 0, 509 on node 1",
                "numa_balancing");
    assert_hint(
        "asking where pages lie (move_pages) is forbidden here: a container needs --cap-add "
        "SYS_NICE or another seccomp profile",
        "SYS_NICE");
}

LAB_TEST(processes) {
    assert_hint("the worker was ended by signal 9 (Killed); not by gpulab: out of memory?",
                "dmesg");
    assert_hint("rank 1: the worker was ended by signal 11 (Segmentation fault)",
                "logs/<run>.stderr");
    assert_hint("the worker ended with status 1 and without a result", "logs/<run>.stderr");
    assert_hint("the worker has gone wrong: it closed its event socket without a result",
                "report a bug");
    assert_hint("the program ended with status 1; its last words: CUDA out of memory",
                "logs/<run>.stderr");
    assert_hint("the program was ended by signal 9 (Killed)", "dmesg");
    assert_hint("starting train.py: No such file or directory", "path");
}

/* A hint names what that workload has, or nothing. */
LAB_TEST(keys_of_the_workload) {
    static const char killed[] =
        "the worker was ended by signal 9 (Killed); not by gpulab: out of memory?";
    static const char dmesg[] =
        "Perhaps the kernel ran out of memory and ended it: `dmesg | grep -i oom` tells.";
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
    static const char full[] = "device memory of cuda:0: 1.00 GiB free, 2.31 GiB asked for";
    assert_string_equal(hint_for(full, MLP), "Give a smaller batch_size, or a smaller model.");
    assert_string_equal(hint_for(full, GEMM), "Give smaller m, n or k.");
    assert_string_equal(hint_for(full, OTHER), "");
}

LAB_TEST(results_and_disks) {
    assert_hint("wrong results: relative error 3.1e-02, allowed 1e-05", "gpulab bench");
    assert_hint("wrong results: relative error 3.1e-02, allowed 1e-05", "report a bug");
    assert_hint("outputs/x/study.db: database or disk is full", "same command again");
    assert_hint("writing outputs/x/results.json: No space left on device", "same command again");
}

/* "No space left on device" isn't the device's memory. */
LAB_TEST(the_narrower_one_wins) {
    const char *full = hint_for("device memory: No space left on device, 1 MiB asked for", VIT);
    assert_non_null(strstr(full, "space"));
    assert_hint("memory is not on node 1: of 3 pages 3 on node 0, 2.00 MiB asked for", "balancing");
}

LAB_TEST(nothing_to_say) {
    assert_string_equal(hint_for(NULL, VIT), "");
    assert_string_equal(hint_for("", VIT), "");
    assert_string_equal(hint_for("the moon is in the way", VIT), "");
}
