/* test_subprocess.c: well-behaved children, and those that aren't. */
#include "base/clock.h"
#include "base/str.h"
#include "base/subprocess.h"

#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lab_subprocess_result result;
static struct lab_err err;

static int count_open_files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int open_files;

static int set_up(void **state) {
    (void)state;
    memset(&result, 0, sizeof result);
    err = LAB_ERR_INIT;
    open_files = count_open_files();
    return 0;
}

/* Whatever happened, no descriptor and no zombie is left. */
static int tear_down(void **state) {
    (void)state;
    if (count_open_files() != open_files)
        return -1;
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static void run_shell(const char *script, struct lab_subprocess_spec spec) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    spec.argv = argv;
    if (lab_subprocess_run(&spec, &test_arena, &result, &err) < 0)
        fail_msg("%s", err.text);
}

LAB_TEST(output_and_status) {
    run_shell("echo out; echo err >&2; exit 7",
              (struct lab_subprocess_spec){.max_output_bytes = 100});
    assert_int_equal(result.exit_status, 7);
    assert_int_equal(result.signal, 0);
    assert_string_equal(result.out, "out\n");
    assert_string_equal(result.err, "err\n");
    assert_int_equal(result.out_length, 4);
    assert_false(result.timed_out);
    assert_false(result.truncated);
    assert_true(result.duration_ns > 0);
    assert_int_equal(result.held_ns, 0);
}

LAB_TEST(a_signal_is_no_exit_status) {
    run_shell("kill -USR1 $$", (struct lab_subprocess_spec){0});
    assert_int_equal(result.exit_status, -1);
    assert_int_equal(result.signal, SIGUSR1);
}

LAB_TEST(a_program_that_is_not_there) {
    const char *const argv[] = {"gpulab-no-such-program", NULL};
    struct lab_subprocess_spec spec = {.argv = argv};
    assert_int_equal(lab_subprocess_run(&spec, &test_arena, &result, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_string_equal(err.text,
                        "can't start 'gpulab-no-such-program': No such file or directory");
}

LAB_TEST(input_is_fed) {
    /* more than a pipe holds, through a child that echoes as it reads */
    size_t length = 300000;
    char *input = lab_arena_alloc(&test_arena, length + 1, 1);
    for (size_t i = 0; i < length; i++)
        input[i] = (char)('a' + i % 26);
    run_shell("cat", (struct lab_subprocess_spec){.input = input, .max_output_bytes = length + 1});
    assert_int_equal(result.exit_status, 0);
    assert_int_equal(result.out_length, length);
    assert_memory_equal(result.out, input, length);
}

LAB_TEST(without_input_stdin_is_empty) {
    run_shell("cat; echo end", (struct lab_subprocess_spec){.max_output_bytes = 100});
    assert_string_equal(result.out, "end\n");
}

LAB_TEST(a_child_that_reads_no_input) {
    char *input = lab_arena_alloc(&test_arena, 300001, 1);
    memset(input, 'x', 300000);
    run_shell("exec <&-; exit 3", (struct lab_subprocess_spec){.input = input});
    assert_int_equal(result.exit_status, 3);
}

LAB_TEST(variables_are_added_and_replaced) {
    setenv("LAB_TEST_KEPT", "kept", 1);
    setenv("LAB_TEST_REPLACED", "old", 1);
    const char *const env[] = {"LAB_TEST_REPLACED=new", "LAB_TEST_ADDED=added", NULL};
    run_shell("echo $LAB_TEST_KEPT $LAB_TEST_REPLACED $LAB_TEST_ADDED",
              (struct lab_subprocess_spec){.env = env, .max_output_bytes = 100});
    assert_string_equal(result.out, "kept new added\n");
}

LAB_TEST(a_flood_is_cut) {
    run_shell("head -c 3000000 /dev/zero | tr '\\0' x; echo fine >&2",
              (struct lab_subprocess_spec){.max_output_bytes = 1000});
    assert_int_equal(result.exit_status, 0);
    assert_true(result.truncated);
    assert_int_equal(result.out_length, 1000);
    assert_int_equal(strspn(result.out, "x"), 1000);
    assert_string_equal(result.err, "fine\n");
}

/*
 * Runs the script until its time is up. It prints "ready" once it is where the test wants it; on a
 * machine too busy for that, it gets more time.
 */
static void run_out_of_time(const char *script) {
    for (int64_t timeout_ms = 100; timeout_ms <= 12800; timeout_ms *= 2) {
        run_shell(script, (struct lab_subprocess_spec){.max_output_bytes = 100,
                                                       .timeout_ns = timeout_ms * LAB_NS_PER_MS});
        assert_true(result.timed_out);
        if (strstr(result.out, "ready"))
            return;
    }
    fail_msg("never ready");
}

LAB_TEST(a_timeout_ends_it) {
    run_out_of_time("echo ready; exec sleep 60");
    assert_int_equal(result.exit_status, -1);
    assert_int_equal(result.signal, SIGTERM);
}

LAB_TEST(whoever_ignores_term_is_killed) {
    run_out_of_time("trap '' TERM; echo ready; while :; do sleep 0.2; done");
    assert_int_equal(result.exit_status, -1);
    assert_int_equal(result.signal, SIGKILL);
}

static bool is_alive(pid_t pid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    const char *name_end = read ? strrchr(line, ')') : NULL;
    return name_end && name_end[2] != 'Z';
}

LAB_TEST(a_timeout_ends_the_whole_group) {
    run_out_of_time("sleep 60 & echo $! ready; wait");
    pid_t grandchild = (pid_t)strtol(result.out, NULL, 10);
    assert_true(grandchild > 1);
    for (int i = 0; i < 100 && is_alive(grandchild); i++)
        usleep(10000);
    assert_false(is_alive(grandchild));
}

LAB_TEST(a_grandchild_that_holds_the_pipe) {
    run_shell("sleep 60 & echo $!; exit 4", (struct lab_subprocess_spec){.max_output_bytes = 100});
    assert_int_equal(result.exit_status, 4);
    assert_true(result.duration_ns < 30 * LAB_NS_PER_S); /* it didn't wait for the sleeper */
    pid_t grandchild = (pid_t)strtol(result.out, NULL, 10);
    assert_true(is_alive(grandchild));
    kill(grandchild, SIGKILL);
}

LAB_TEST(a_child_that_closes_its_pipes_early) {
    run_shell("exec >&- 2>&-; sleep 0.2; exit 5",
              (struct lab_subprocess_spec){.max_output_bytes = 100});
    assert_int_equal(result.exit_status, 5);
    assert_int_equal(result.out_length, 0);
}

LAB_TEST(our_signal_settings_stay_ours) {
    sigset_t blocked, old;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    run_shell("kill -TERM $$; echo survived",
              (struct lab_subprocess_spec){.max_output_bytes = 100});
    assert_int_equal(result.signal, SIGTERM);
    sigset_t now;
    sigprocmask(SIG_SETMASK, &old, &now);
    assert_true(sigismember(&now, SIGTERM));
    assert_false(sigismember(&now, SIGPIPE));
}

/* --- watchers --- */

static struct {
    struct lab_str out;
    int started, asked, stop_after;
} watched;

static void on_started(void *state) {
    assert_ptr_equal(state, &watched);
    watched.started++;
}

static void on_output(void *state, bool is_stderr, const char *bytes, size_t length) {
    assert_ptr_equal(state, &watched);
    if (is_stderr)
        lab_str_add(&watched.out, "!");
    lab_str_add_bytes(&watched.out, bytes, length);
}

static bool on_stopped(void *state) {
    assert_ptr_equal(state, &watched);
    return ++watched.asked > watched.stop_after;
}

static const struct lab_subprocess_watcher watcher = {on_started, on_output, on_stopped, &watched};

static void start_watching(int stop_after) {
    memset(&watched, 0, sizeof watched);
    lab_str_init(&watched.out);
    watched.stop_after = stop_after;
}

LAB_TEST(a_watcher_sees_output_as_it_comes) {
    start_watching(1000000);
    run_shell("echo out; sleep 0.01; echo err >&2; exit 7",
              (struct lab_subprocess_spec){.watcher = &watcher});
    assert_int_equal(result.exit_status, 7);
    assert_string_equal(watched.out.text, "out\n!err\n");
    assert_int_equal(watched.started, 1);
    assert_false(result.stopped);
    assert_string_equal(result.out, ""); /* nothing was to be kept */
    assert_true(result.start_ns > 0);
    lab_str_release(&watched.out);
}

struct busy_reader {
    const char *marker;      /* a file that the program writes behind its output */
    size_t length, ended_at; /* what was read; when the marker was there first */
};

/* Slow; where it finds the pipe full, it reads no more before all is printed, or 5 s. */
static void on_busy_output(void *opaque, bool is_stderr, const char *bytes, size_t length) {
    struct busy_reader *reader = opaque;
    (void)is_stderr, (void)bytes;
    reader->length += length;
    int looks = !reader->ended_at && length > 32768 ? 250 : 1;
    for (int i = 0; i < looks && (i == 0 || !reader->ended_at); i++) {
        usleep(20000);
        if (!reader->ended_at && access(reader->marker, F_OK) == 0)
            reader->ended_at = reader->length;
    }
    if (looks > 1 && !reader->ended_at)
        reader->ended_at = SIZE_MAX;
}

LAB_TEST(a_busy_watcher_holds_up_no_program) {
    struct busy_reader reader = {.marker = test_path("ended")};
    const struct lab_subprocess_watcher busy = {.output = on_busy_output, .state = &reader};
    char script[4096];
    snprintf(script, sizeof script, "head -c 1000000 /dev/zero; : > '%s'", reader.marker);
    run_shell(script, (struct lab_subprocess_spec){.watcher = &busy});
    assert_int_equal(reader.length, 1000000);
    assert_in_range(reader.ended_at, 1, 900000);
    assert_in_range(result.held_ns, 1, result.duration_ns);
}

LAB_TEST(a_watcher_can_stop_it) {
    start_watching(1);
    run_shell("echo out; sleep 60", (struct lab_subprocess_spec){.watcher = &watcher});
    assert_true(result.stopped);
    assert_false(result.timed_out);
    assert_int_equal(result.signal, SIGTERM);
    assert_int_equal(watched.asked, 2); /* and not again */
    lab_str_release(&watched.out);
}

LAB_TEST(a_watcher_hears_of_a_start_that_failed) {
    start_watching(1);
    const char *const argv[] = {"gpulab-no-such-program", NULL};
    struct lab_subprocess_spec spec = {.argv = argv, .watcher = &watcher};
    assert_int_equal(lab_subprocess_run(&spec, &test_arena, &result, &err), -1);
    assert_int_equal(watched.started, 1);
    lab_str_release(&watched.out);
}

LAB_TEST(a_variable_without_value_is_taken_away) {
    setenv("GPULAB_TEST_GONE", "here", 1);
    const char *const env[] = {"GPULAB_TEST_GONE", "GPULAB_TEST_NEW=1", NULL};
    run_shell("echo ${GPULAB_TEST_GONE-gone} $GPULAB_TEST_NEW",
              (struct lab_subprocess_spec){.env = env, .max_output_bytes = 100});
    assert_string_equal(result.out, "gone 1\n");
    unsetenv("GPULAB_TEST_GONE");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
