/* test_fork.c: work in another process: what it returns, what goes wrong, and that it is a copy. */
#include "base/tty/fork.h"

#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_up(void *state, struct lab_err *err) {
    int *number = state;
    (void)err;
    return ++*number;
}

static int go_wrong(void *state, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_USER, "there is no %s", (const char *)state);
}

static int be_killed(void *state, struct lab_err *err) {
    (void)state, (void)err;
    return raise(SIGKILL);
}

LAB_TEST(work_in_another_process_says_how_it_ended) {
    struct lab_fork one, other, killed;
    int number = 6;
    char thing[] = "spoon";
    ASSERT_OK(lab_fork_start(count_up, &number, &one, err));
    ASSERT_OK(lab_fork_start(go_wrong, thing, &other, err));
    ASSERT_OK(lab_fork_start(be_killed, NULL, &killed, err));
    ASSERT_FAILS(lab_fork_wait(&other, err), LAB_ERR_SYSTEM, "there is no spoon");
    ASSERT_FAILS(lab_fork_wait(&killed, err), LAB_ERR_SYSTEM, "its process was ended");
    assert_int_equal(lab_fork_wait(&one, NULL), 7);
    assert_int_equal(number, 6);
}

LAB_TEST(a_program_apart_is_no_child) {
    static const char *const argv[] = {"sleep", "0", NULL}, *const environment[] = {NULL};
    pid_t pid = 0;
    assert_int_equal(lab_fork_spawn(&pid, "/nothing", NULL, NULL, argv, environment), ENOENT);
    assert_int_equal(pid, 0);
    assert_int_equal(lab_fork_spawn(&pid, "/bin/sleep", NULL, NULL, argv, environment), 0);
    assert_true(pid > 0 && waitpid(-1, NULL, 0) < 0 && errno == ECHILD);
}
