/* test_child.c: processes that end by themselves, that must be made to, and what they leave
 * behind. */
#include "base/clock.h"
#include "run/launch/child.h"

#include "test.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lab_children children;
static struct lab_child child, other;
static struct lab_err err;

static int set_up(void **state) {
    (void)state;
    err = LAB_ERR_INIT;
    lab_children_init(&children);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_child_release(&child);
    lab_child_release(&other);
    lab_children_release(&children);
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static int64_t now(void) {
    return lab_clock_now(lab_clock_system());
}

static void start(struct lab_child *which, const char *script, int64_t grace_ns) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct lab_child_spec spec = {.argv = argv, .grace_ns = grace_ns};
    if (lab_child_start(which, &spec, &children, &err) < 0)
        fail_msg("%s", err.text);
}

static void pause_ms(int milliseconds) {
    poll(NULL, 0, milliseconds);
}

static void wait_until_gone(struct lab_child *which) {
    while (lab_child_tend(which, now()) != LAB_CHILD_GONE)
        pause_ms(2);
}

/* The number that a child prints: some process's. */
static pid_t hear_pid(const struct lab_child *which) {
    char text[32] = "";
    size_t length = 0;
    while (length < sizeof text - 1 && !strchr(text, '\n')) {
        struct pollfd polled = {.fd = which->out, .events = POLLIN};
        assert_int_equal(poll(&polled, 1, 60000), 1);
        ssize_t got = read(which->out, text + length, 1);
        assert_int_equal(got, 1);
        length++;
    }
    return (pid_t)strtol(text, NULL, 10);
}

static bool is_alive(pid_t pid) {
    return kill(pid, 0) == 0;
}

LAB_TEST(an_exit_status) {
    start(&child, "exit 7", 0);
    wait_until_gone(&child);
    assert_int_equal(child.exit_status, 7);
    assert_int_equal(child.signal, 0);
    lab_child_stop(&child, now());
    lab_child_kill(&child, now());
    assert_false(child.stopped || child.stuck);
}

LAB_TEST(a_signal) {
    start(&child, "kill -USR1 $$", 0);
    wait_until_gone(&child);
    assert_int_equal(child.exit_status, -1);
    assert_int_equal(child.signal, SIGUSR1);
}

LAB_TEST(a_program_that_is_not_there) {
    const char *const argv[] = {"gpulab-no-such-program", NULL};
    struct lab_child_spec spec = {.argv = argv};
    assert_int_equal(lab_child_start(&child, &spec, &children, &err), -1);
    assert_string_equal(err.text,
                        "can't start 'gpulab-no-such-program': No such file or directory");
}

LAB_TEST(a_descriptor_that_is_closed_is_not_inherited) {
    const char *const argv[] = {"true", NULL};
    const int closed = 1000;
    struct lab_child_spec spec = {.argv = argv, .inherit_fds = &closed, .inherit_count = 1};
    assert_int_equal(lab_child_start(&child, &spec, &children, &err), -1);
    assert_string_equal(err.text, "no pipes for 'true': Bad file descriptor");
    assert_int_equal(child.state, LAB_CHILD_NONE);
}

LAB_TEST(term_is_obeyed) {
    start(&child, "trap 'exit 5' TERM; echo $$; while :; do sleep 0.01; done", 60 * LAB_NS_PER_S);
    hear_pid(&child);
    lab_child_stop(&child, now());
    wait_until_gone(&child);
    assert_int_equal(child.exit_status, 5);
    assert_false(child.killed);
}

LAB_TEST(term_is_ignored) {
    start(&child, "trap '' TERM; echo $$; while :; do sleep 0.01; done", 10 * LAB_NS_PER_MS);
    hear_pid(&child);
    lab_child_stop(&child, now());
    wait_until_gone(&child);
    assert_int_equal(child.signal, SIGKILL);
    assert_true(child.killed);
}

LAB_TEST(the_group_has_its_grace_too) {
    /* given a parent that ends at once, and its child that has something to finish */
    start(&child,
          "sh -c 'trap \"sleep 0.05; echo 7; exit\" TERM; echo $$; while :; do sleep 0.01; done' &"
          "wait",
          60 * LAB_NS_PER_S);
    hear_pid(&child);
    lab_child_stop(&child, now());
    wait_until_gone(&child);
    assert_int_equal(hear_pid(&child), 7);
}

LAB_TEST(what_it_leaves_in_its_session) {
    start(&child, "sleep 1000 & echo $!", 0);
    pid_t left = hear_pid(&child);
    wait_until_gone(&child);
    assert_false(is_alive(left));
    assert_int_equal(child.exit_status, 0);
}

LAB_TEST(what_left_its_session) {
    start(&child, "setsid sh -c 'echo $$; exec sleep 1000' &", 0);
    pid_t left = hear_pid(&child);
    wait_until_gone(&child);
    assert_false(is_alive(left));
}

LAB_TEST(what_left_and_forgot_where_it_came_from) {
    /* given an orphan in another session and without our mark, which was seen below its parent */
    start(&child, "setsid env -i sh -c 'echo $$; exec sleep 1000' & wait", 0);
    pid_t left = hear_pid(&child);
    lab_children_look(&children, now());
    kill(child.pid, SIGKILL);
    wait_until_gone(&child);
    assert_false(is_alive(left));
}

/* A process that shows as dead: its first thread has ended, another goes on. */
static void *go_on(void *state) {
    (void)state;
    for (;;)
        pause_ms(1000);
    return NULL;
}

static _Noreturn void lose_the_head(void) {
    pthread_t thread;
    char line[32];
    int length = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (pthread_create(&thread, NULL, go_on, NULL) != 0 ||
        write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(1);
    pthread_exit(NULL);
}

static char read_state(pid_t pid) {
    char path[64], name[256], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %255s %c", name, &state), 2);
    fclose(file);
    return state;
}

LAB_TEST(what_only_seems_dead) {
    char self[512] = "", script[600];
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(script, sizeof script, "setsid '%s' headless & wait", self);
    start(&child, script, 0);
    pid_t left = hear_pid(&child);
    while (read_state(left) != 'Z')
        pause_ms(1);
    kill(child.pid, SIGKILL);
    wait_until_gone(&child);
    assert_false(is_alive(left));
}

LAB_TEST(others_are_left_alone) {
    /* given two children with families, and a process of ours that is no child of the set */
    pid_t stranger = fork();
    if (stranger == 0) {
        pause_ms(1000000);
        _exit(0);
    }
    start(&child, "setsid sh -c 'echo $$; exec sleep 1000' & wait", 0);
    start(&other, "setsid sh -c 'echo $$; exec sleep 1000' & setsid sleep 1000 & wait", 0);
    pid_t ours = hear_pid(&child), theirs = hear_pid(&other);
    /* when one is killed, then its family goes with it, and the rest stays */
    lab_child_kill(&child, now());
    wait_until_gone(&child);
    assert_false(is_alive(ours));
    assert_true(is_alive(theirs));
    assert_true(is_alive(stranger));
    assert_int_equal(lab_child_tend(&other, now()), LAB_CHILD_RUNNING);
    lab_child_kill(&other, now());
    wait_until_gone(&other);
    assert_false(is_alive(theirs));
    kill(stranger, SIGKILL);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
}

LAB_TEST(variables_of_a_process) {
    setenv("LAB_TEST_VARIABLE", "value", 1);
    /* (not exec: while a process becomes another program its environment can't be read) */
    start(&child, "echo $$; sleep 1000; :", 0);
    unsetenv("LAB_TEST_VARIABLE");
    pid_t pid = hear_pid(&child);
    assert_true(lab_process_has_variable(pid, "LAB_TEST_VARIABLE=value", false));
    assert_false(lab_process_has_variable(pid, "LAB_TEST_VARIABLE=val", false));
    assert_true(lab_process_has_variable(pid, "LAB_TEST_VARIABLE=val", true));
    assert_false(lab_process_has_variable(pid, "TEST_VARIABLE=value", false));
    lab_child_kill(&child, now());
    wait_until_gone(&child);
}

/* Of an environment beyond a megabyte the first megabyte is looked at. */
LAB_TEST(the_first_megabyte_of_an_environment) {
    enum { STRINGS = 11, EACH = 100000 };
    for (int i = 0; i < STRINGS; i++) {
        char *text = lab_arena_alloc(&test_arena, EACH, 1);
        memset(text, 'x', EACH - 1);
        setenv(lab_arena_printf(&test_arena, "LAB_TEST_LARGE_%d", i), text, 1);
    }
    start(&child, "echo $$; sleep 1000; :", 0);
    for (int i = 0; i < STRINGS; i++)
        unsetenv(lab_arena_printf(&test_arena, "LAB_TEST_LARGE_%d", i));
    pid_t pid = hear_pid(&child);
    char *text;
    assert_int_equal(lab_process_environment(pid, &text), (1 << 20) - 1);
    assert_int_equal(strlen(text + (1 << 20) - 1), 0);
    lab_mem_free(text);
    assert_true(lab_process_has_variable(pid, "LAB_TEST_LARGE_0=xxx", true));
    lab_child_kill(&child, now());
    wait_until_gone(&child);
}

LAB_TEST(when_a_child_has_to_be_looked_at) {
    enum { NOW = 1000000, GRACE = 500, GIVE_UP = 10, TICK_MS = 10 };
    const int64_t late = GRACE + GIVE_UP * LAB_NS_PER_S, tick = TICK_MS * LAB_NS_PER_MS;
    const struct {
        struct lab_child child;
        int64_t due_ns;
    } cases[] = {
        {{.state = LAB_CHILD_NONE, .pidfd = -1}, INT64_MAX},
        {{.state = LAB_CHILD_GONE, .pidfd = -1, .stopped = true}, INT64_MAX},
        {{.state = LAB_CHILD_ENDED, .sweep_ns = 77, .stopped = true}, 77},
        {{.state = LAB_CHILD_RUNNING, .pidfd = 3}, INT64_MAX},
        {{.state = LAB_CHILD_RUNNING, .pidfd = -1}, NOW + tick},
        {{.state = LAB_CHILD_RUNNING, .pidfd = 3, .stopped = true}, NOW + GRACE},
        {{.state = LAB_CHILD_RUNNING, .pidfd = -1, .stopped = true}, NOW + GRACE},
        {{.state = LAB_CHILD_RUNNING, .pidfd = 3, .stopped = true, .killed = true}, NOW + late},
        {{.state = LAB_CHILD_RUNNING, .pidfd = -1, .stopped = true, .killed = true}, NOW + tick},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_child one = cases[i].child;
        one.stop_ns = NOW;
        one.grace_ns = GRACE;
        if (lab_child_due(&one, NOW) != cases[i].due_ns)
            fail_msg("%zu: %lld", i, (long long)lab_child_due(&one, NOW));
    }
}

/* Given a child that hangs in the kernel, as it seems, then it is given up. */
LAB_TEST(what_cannot_be_killed_is_given_up) {
    start(&child, "exec sleep 1000", 0);
    pid_t pid = child.pid;
    child.stopped = child.killed = true;
    child.stop_ns = now();
    assert_int_equal(lab_child_tend(&child, child.stop_ns + 10 * LAB_NS_PER_S - 1),
                     LAB_CHILD_RUNNING);
    assert_int_equal(lab_child_tend(&child, child.stop_ns + 10 * LAB_NS_PER_S), LAB_CHILD_GONE);
    assert_true(child.stuck);
    assert_int_equal(child.exit_status, -1);
    assert_int_equal(child.signal, SIGKILL);
    lab_child_release(&child);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

LAB_TEST(who_is_released_while_it_runs_is_killed) {
    int status = 0;
    start(&other, "exec sleep 1000", 0);
    start(&child, "exec sleep 1000", 0);
    pid_t first = other.pid, second = child.pid;
    lab_child_release(&other); /* the one that was started first */
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_ptr_equal(children.first, &child);
    lab_child_release(&child);
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_null(children.first);
}

LAB_TEST(memory_of_a_process) {
    enum { BYTES = 64 << 20 };
    int64_t before[2] = {lab_process_memory(getpid(), false), lab_process_memory(getpid(), true)};
    /* the kernel fills it: a sanitizer that saw it written would keep as much for itself */
    void *block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    assert_true(block != MAP_FAILED);
    for (int proportional = 0; proportional < 2; proportional++) {
        int64_t bytes = lab_process_memory(getpid(), proportional) - before[proportional];
        assert_true(bytes > BYTES * 0.9 && bytes < BYTES * 1.2);
    }
    munmap(block, BYTES);
    assert_int_equal(lab_process_memory(-1, true), 0);
}

LAB_TEST(the_tree) {
    start(&child, "sleep 1000 & echo $!; wait", 0);
    pid_t grandchild = hear_pid(&child);
    struct lab_process_tree tree = {0};
    assert_null(lab_process_tree_find(&tree, grandchild));
    lab_process_tree_read(&tree);
    const struct lab_process *process = lab_process_tree_find(&tree, grandchild);
    assert_non_null(process);
    assert_int_equal(process->parent, child.pid);
    assert_int_equal(process->session, child.pid);
    assert_false(process->dead);
    assert_null(lab_process_tree_find(&tree, 0));
    /* a process of that number that was started at another time is somebody else */
    struct lab_process somebody = *process;
    somebody.start++;
    lab_process_signal(&somebody, SIGKILL);
    assert_int_equal(lab_child_tend(&child, now()), LAB_CHILD_RUNNING);
    lab_process_signal(process, SIGKILL);
    wait_until_gone(&child);
    lab_process_tree_release(&tree);
}

static int begin(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "headless") == 0)
        lose_the_head();
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
