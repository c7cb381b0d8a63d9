/* fork.c: a part of this program in a process of its own; see fork.h. */
#include "base/tty/fork.h"

#include "base/clock.h"
#include "base/tty/console.h"
#include "base/tty/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED   100 /* exit status */
#define PAUSE_NS (20 * LAB_NS_PER_MS)

static void be_child(int (*work)(void *state, struct lab_err *err), void *state, pid_t parent,
                     int error_fd) {
    struct lab_err err = LAB_ERR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(FAILED);
    setpgid(0, 0); /* Ctrl-C comes by way of the parent */
    int result = work(state, &err);
    if (result < 0 && write(error_fd, err.text, strlen(err.text)) < 0)
        _exit(FAILED);
    _exit(result < 0 ? FAILED : result); /* what the parent has buffered is the parent's */
}

int lab_fork_start(int (*work)(void *state, struct lab_err *err), void *state,
                   struct lab_fork *ret_fork, struct lab_err *err) {
    int ends[2];
    pid_t parent = getpid();
    lab_console_finish(); /* or both would write what is buffered */
    if (pipe2(ends, O_CLOEXEC) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "can't start a process");
    pid_t pid = fork();
    if (pid == 0)
        be_child(work, state, parent, ends[1]);
    int reason = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, reason, "can't start a process");
    }
    *ret_fork = (struct lab_fork){pid, ends[0]};
    return 0;
}

int lab_fork_wait(struct lab_fork *fork, struct lab_err *err) {
    char text[512] = "";
    int status = 0, told = 0;
    pid_t ended;
    while ((ended = waitpid(fork->pid, &status, WNOHANG)) == 0) {
        if (lab_stop_level() > told)
            kill(fork->pid, lab_stop_signal());
        told = lab_stop_level();
        lab_clock_sleep(lab_clock_system(), PAUSE_NS);
    }
    ssize_t length = read(fork->error_fd, text, sizeof text - 1);
    close(fork->error_fd);
    if (ended == fork->pid && WIFEXITED(status) && WEXITSTATUS(status) < FAILED)
        return WEXITSTATUS(status);
    return lab_err_set(err, LAB_ERR_SYSTEM, "%s",
                       length > 0 ? text : "its process was ended; the same command resumes");
}

struct spawned {
    int failure;
    pid_t pid;
};

int lab_fork_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
                   const posix_spawnattr_t *attributes, const char *const *argv,
                   const char *const *environment) {
    struct spawned spawned = {.failure = ECHILD};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    pid_t middle = fork();
    if (middle == 0) {
        spawned.failure = posix_spawn(&spawned.pid, path, actions, attributes, (char *const *)argv,
                                      (char *const *)environment);
        _exit(write(ends[1], &spawned, sizeof spawned) < 0 ? FAILED : 0);
    }
    if (middle < 0)
        spawned.failure = errno;
    close(ends[1]);
    while (middle > 0 && waitpid(middle, NULL, 0) < 0 && errno == EINTR)
        ;
    if (middle > 0 && read(ends[0], &spawned, sizeof spawned) < (ssize_t)sizeof spawned)
        spawned.failure = ECHILD;
    close(ends[0]);
    if (spawned.failure == 0)
        *ret_pid = spawned.pid;
    return spawned.failure;
}
