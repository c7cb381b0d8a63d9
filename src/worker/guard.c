/*
 * guard.c: two processes that watch each other. Both are subreapers: a program that moved to a
 * session of its own, or whose parent has ended, is still below one of them. The child has a
 * process group of its own, so that no single signal ends both.
 */
#include "worker/guard.h"

#include "worker/worker_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARENT_GONE SIGUSR2

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};

/* --- the one that stays --- */

/* With the status of the child, or by its signal. */
static void end_like(int status) {
    worker_kill_descendants();
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, WTERMSIG(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    pthread_sigmask(SIG_UNBLOCK, &own, NULL);
    _exit(1);
}

/* What the programs left behind is ours when their parents end. */
static void reap(pid_t child) {
    int status;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
        if (ended == child)
            end_like(status);
}

static void watch(pid_t child, const sigset_t *signals) {
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGCHLD) {
            reap(child);
        } else if (number == SIGTSTP) {
            kill(child, SIGSTOP);
            raise(SIGSTOP);
            kill(child, SIGCONT);
        } else if (number > 0) {
            kill(child, number);
        } else if (errno != EINTR) {
            kill(child, SIGKILL);
        }
    }
}

/* --- the one that goes on --- */

static void *wait_for_end(void *opaque) {
    pid_t parent = *(const pid_t *)opaque;
    sigset_t gone;
    sigemptyset(&gone);
    sigaddset(&gone, PARENT_GONE);
    prctl(PR_SET_PDEATHSIG, PARENT_GONE); /* the kernel forgets it when this thread ends */
    while (getppid() == parent && sigwaitinfo(&gone, NULL) < 0 && errno == EINTR)
        continue;
    worker_kill_descendants();
    _exit(1);
}

static int go_on(pid_t parent, const sigset_t *old, struct lab_err *err) {
    static pid_t watched;
    pthread_t thread;
    sigset_t gone;
    watched = parent;
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pthread_sigmask(SIG_SETMASK, old, NULL);
    sigemptyset(&gone);
    sigaddset(&gone, PARENT_GONE);
    pthread_sigmask(SIG_BLOCK, &gone, NULL); /* threads started later inherit it */
    int problem = pthread_create(&thread, NULL, wait_for_end, &watched);
    if (problem)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, problem, "starting the program's guard");
    pthread_detach(thread);
    return 0;
}

int lab_guard_begin(struct lab_err *err) {
    sigset_t signals, old;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&signals, passed_on[i]);
    pthread_sigmask(SIG_BLOCK, &signals, &old);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t parent = getpid(), child = fork();
    if (child < 0) {
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "starting the program's guard");
    }
    if (child > 0)
        watch(child, &signals);
    return go_on(parent, &old, err);
}
