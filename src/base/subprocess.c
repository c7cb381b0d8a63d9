/*
 * subprocess.c: one poll loop watches the pipes and the process itself (through a pidfd), so that
 * neither a full pipe, nor a child that closes its ends early, nor a grandchild that keeps them
 * open can make it wait for ever.
 */
#include "base/subprocess.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_AFTER_NS    LAB_NS_PER_S          /* between TERM and KILL */
#define LINGER_NS        (100 * LAB_NS_PER_MS) /* for what others still write once it has ended */
#define GIVE_UP_AFTER_NS (5 * LAB_NS_PER_S)    /* after KILL: it hangs in the kernel */
#define TICK_NS          (10 * LAB_NS_PER_MS)  /* between looks where there is no pidfd */
#define ASK_NS           (50 * LAB_NS_PER_MS)  /* between questions to the watcher */

enum { IN, OUT, ERR, CHILD, PIPES = 3, WATCHED = 4 };

struct child {
    const struct lab_subprocess_spec *spec;
    pid_t pid;
    struct pollfd watched[WATCHED]; /* our ends; -1 = closed */
    int theirs[PIPES];
    struct lab_str kept[PIPES]; /* OUT and ERR */
    int left[PIPES];            /* bytes that it left in them at its end, not yet read */
    size_t fed, input_length;
    bool ended, timed_out, stopped, killed, truncated;
    int64_t start_ns, end_ns; /* end: when it was seen to have ended */
    int64_t stop_ns;          /* when TERM was sent; 0 = not yet */
    int64_t woken_ns;         /* since then nothing was awaited; 0 = not yet */
    int64_t held_ns;
};

/* Moves a descriptor out of 0 to 2, where the child's redirections would trample it. */
static int lift(int *fd) {
    if (*fd > STDERR_FILENO || *fd < 0)
        return *fd < 0 ? -1 : 0;
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(*fd);
    *fd = lifted;
    return lifted < 0 ? -1 : 0;
}

static int open_pipe(struct child *child, int which) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    int *ours = &child->watched[which].fd, *theirs = &child->theirs[which];
    *ours = ends[which == IN];
    *theirs = ends[which != IN];
    if (lift(ours) < 0 || lift(theirs) < 0)
        return -1;
    return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static int open_pipes(struct child *child, struct lab_err *err) {
    int result = 0;
    if (child->spec->input) {
        result = open_pipe(child, IN);
    } else {
        child->theirs[IN] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        result = lift(&child->theirs[IN]);
    }
    if (result < 0 || open_pipe(child, OUT) < 0 || open_pipe(child, ERR) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "no pipe for '%s'",
                                 child->spec->argv[0]);
    return 0;
}

static bool same_name(const char *a, const char *b) {
    size_t length = strcspn(a, "=");
    return strncmp(a, b, length) == 0 && b[length] == '=';
}

/* Weak, so that it is looked up in libc, not copied into the program: zig, which links for older
 * systems, doesn't know that glibc sets it under another name. */
#pragma weak environ

const char **lab_subprocess_environment(const char *const *extra, struct lab_arena *arena) {
    int own = 0, added = 0;
    while (environ[own])
        own++;
    while (extra && extra[added])
        added++;
    const char **env = lab_arena_alloc(arena, (size_t)(own + added) + 1, sizeof *env);
    int count = 0;
    for (int i = 0; i < own; i++) {
        bool replaced = false;
        for (int j = 0; j < added && !replaced; j++)
            replaced = same_name(extra[j], environ[i]);
        if (!replaced)
            env[count++] = environ[i];
    }
    for (int j = 0; j < added; j++)
        if (strchr(extra[j], '='))
            env[count++] = extra[j];
    return env;
}

void lab_subprocess_attributes(posix_spawnattr_t *ret_attributes, short flags) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_init(ret_attributes);
    posix_spawnattr_setflags(ret_attributes,
                             (short)(flags | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    posix_spawnattr_setpgroup(ret_attributes, 0);
    posix_spawnattr_setsigmask(ret_attributes, &none);
    posix_spawnattr_setsigdefault(ret_attributes, &all);
}

/* The child gets a process group of its own. */
static int spawn(struct child *child, struct lab_arena *arena) {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    lab_subprocess_attributes(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < PIPES; i++)
        posix_spawn_file_actions_adddup2(&actions, child->theirs[i], i);
    const char **env = lab_subprocess_environment(child->spec->env, arena);
    int problem = posix_spawnp(&child->pid, child->spec->argv[0], &actions, &attributes,
                               (char *const *)child->spec->argv, (char *const *)env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return problem;
}

/* Writes what the pipe takes. A child that doesn't read its input is no error. */
static void feed(struct child *child) {
    struct pollfd *in = &child->watched[IN];
    while (child->fed < child->input_length) {
        ssize_t put =
            write(in->fd, child->spec->input + child->fed, child->input_length - child->fed);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            return;
        if (put < 0)
            break;
        child->fed += (size_t)put;
    }
    lab_file_close(&in->fd);
}

/* Reads once: a flood must not keep the loop from looking at the time. */
static void drain(struct child *child, int which) {
    char chunk[65536];
    ssize_t got = read(child->watched[which].fd, chunk, sizeof chunk);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0) {
        lab_file_close(&child->watched[which].fd);
        child->left[which] = 0;
        return;
    }
    if ((size_t)got > sizeof chunk / 2)
        lab_file_widen_pipe(child->watched[which].fd);
    child->left[which] -= got < child->left[which] ? (int)got : child->left[which];
    const struct lab_subprocess_watcher *watcher = child->spec->watcher;
    if (watcher && watcher->output)
        watcher->output(watcher->state, which == ERR, chunk, (size_t)got);
    struct lab_str *kept = &child->kept[which];
    size_t room = child->spec->max_output_bytes - kept->length;
    size_t keep = (size_t)got < room ? (size_t)got : room;
    lab_str_add_bytes(kept, chunk, keep);
    child->truncated |= keep < (size_t)got;
}

static int bytes_in(int fd) {
    int bytes = 0;
    return fd >= 0 && ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

/* Writes of any size fill more than half of a pipe's pages before the next one waits. */
static bool may_be_full(int fd) {
    return bytes_in(fd) > fcntl(fd, F_GETPIPE_SZ) / 2;
}

/* What it printed is being dealt with since it came; meanwhile it may have had to wait. */
static void note_held(struct child *child, int64_t now) {
    int64_t until_ns = child->ended ? child->end_ns : now;
    if (child->woken_ns && child->woken_ns < until_ns &&
        (may_be_full(child->watched[OUT].fd) || may_be_full(child->watched[ERR].fd)))
        child->held_ns += until_ns - child->woken_ns;
}

/* Whether it has ended; leaves it unreaped, so that its group's number stays taken. */
static bool has_ended(pid_t pid) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno != EINTR;
    return info.si_pid == pid;
}

static bool can_be_stopped(const struct child *child) {
    return child->spec->watcher && child->spec->watcher->stopped;
}

/* Moves on what time or the watcher move: TERM, KILL. */
static void enforce(struct child *child, int64_t now) {
    int64_t timeout = child->spec->timeout_ns;
    if (!child->stop_ns && !child->ended) {
        child->timed_out = timeout > 0 && now - child->start_ns >= timeout;
        child->stopped = !child->timed_out && can_be_stopped(child) &&
                         child->spec->watcher->stopped(child->spec->watcher->state);
        if (child->timed_out || child->stopped) {
            child->stop_ns = now;
            kill(-child->pid, SIGTERM);
        }
    }
    if (child->stop_ns && !child->killed && now - child->stop_ns >= KILL_AFTER_NS) {
        child->killed = true;
        kill(-child->pid, SIGKILL);
    }
}

static bool output_is_open(const struct child *child) {
    return child->watched[OUT].fd >= 0 || child->watched[ERR].fd >= 0;
}

/* What it printed itself is read, however long that takes; others who hold its pipe have until
 * then. */
static bool is_over(const struct child *child, int64_t deadline, int64_t now) {
    return child->ended && (!output_is_open(child) ||
                            (now >= deadline && child->left[OUT] + child->left[ERR] == 0));
}

/* When the loop must look again, whatever happens; INT64_MAX = never. */
static int64_t next_deadline(const struct child *child, int64_t now) {
    int64_t deadline = INT64_MAX;
    if (child->ended)
        deadline = child->stop_ns ? child->stop_ns + KILL_AFTER_NS : child->end_ns + LINGER_NS;
    else if (child->killed)
        deadline = child->stop_ns + KILL_AFTER_NS + GIVE_UP_AFTER_NS;
    else if (child->stop_ns)
        deadline = child->stop_ns + KILL_AFTER_NS;
    else if (child->spec->timeout_ns > 0)
        deadline = child->start_ns + child->spec->timeout_ns;
    if (can_be_stopped(child) && !child->stop_ns && !child->ended && now + ASK_NS < deadline)
        deadline = now + ASK_NS;
    if (child->watched[CHILD].fd < 0 && !child->ended && now + TICK_NS < deadline)
        deadline = now + TICK_NS;
    return deadline;
}

static void wait_for_events(struct child *child, int64_t now) {
    int64_t deadline = next_deadline(child, now);
    struct timespec pause = {0};
    if (deadline > now) {
        pause.tv_sec = (deadline - now) / LAB_NS_PER_S;
        pause.tv_nsec = (deadline - now) % LAB_NS_PER_S;
    }
    int ready = ppoll(child->watched, WATCHED, deadline == INT64_MAX ? NULL : &pause, NULL);
    child->woken_ns = lab_clock_now(lab_clock_system());
    if (ready <= 0)
        return;
    if (child->watched[IN].revents)
        feed(child);
    if (child->watched[OUT].revents)
        drain(child, OUT);
    if (child->watched[ERR].revents)
        drain(child, ERR);
}

static void watch(struct child *child, const struct lab_clock *clock) {
    for (;;) {
        int64_t now = lab_clock_now(clock);
        if (!child->ended && has_ended(child->pid)) {
            child->ended = true;
            child->end_ns = now;
            lab_file_close(&child->watched[CHILD].fd);
            lab_file_close(&child->watched[IN].fd);
            for (int which = OUT; which <= ERR; which++)
                child->left[which] = bytes_in(child->watched[which].fd);
        }
        enforce(child, now);
        if (is_over(child, next_deadline(child, now), now))
            return;
        if (child->killed && now >= child->stop_ns + KILL_AFTER_NS + GIVE_UP_AFTER_NS)
            return;
        note_held(child, lab_clock_now(clock));
        wait_for_events(child, now);
    }
}

/* A write into a pipe that nobody reads raises SIGPIPE in this thread; it is held back and
 * eaten. */
static void watch_without_sigpipe(struct child *child, const struct lab_clock *clock) {
    sigset_t only_pipe, old, pending;
    sigemptyset(&only_pipe);
    sigaddset(&only_pipe, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &only_pipe, &old);
    watch(child, clock);
    const struct timespec at_once = {0};
    if (!was_pending)
        while (sigtimedwait(&only_pipe, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Takes leave of the process, and of whatever ending it left of its group. */
static void reap(struct child *child, struct lab_subprocess_result *result) {
    if (child->stop_ns)
        kill(-child->pid, SIGKILL);
    siginfo_t info = {0};
    result->exit_status = -1;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        result->signal = child->killed ? SIGKILL : 0;
    else if (info.si_code == CLD_EXITED)
        result->exit_status = info.si_status;
    else
        result->signal = info.si_status;
}

static void release(struct child *child) {
    for (int i = 0; i < PIPES; i++) {
        lab_file_close(&child->theirs[i]);
        lab_str_release(&child->kept[i]);
    }
    for (int i = 0; i < WATCHED; i++)
        lab_file_close(&child->watched[i].fd);
}

static int run(struct child *child, struct lab_arena *arena, struct lab_subprocess_result *result,
               struct lab_err *err) {
    const struct lab_clock *clock = lab_clock_system();
    if (open_pipes(child, err) < 0)
        return -1;
    child->start_ns = lab_clock_now(clock);
    int problem = spawn(child, arena);
    const struct lab_subprocess_watcher *watcher = child->spec->watcher;
    if (watcher && watcher->started)
        watcher->started(watcher->state);
    bool not_there = problem == ENOENT || problem == EACCES || problem == ENOEXEC;
    if (problem)
        return lab_err_set_errno(err, not_there ? LAB_ERR_USER : LAB_ERR_SYSTEM, problem,
                                 "can't start '%s'", child->spec->argv[0]);
    for (int i = 0; i < PIPES; i++)
        lab_file_close(&child->theirs[i]);
    /* may be missing (Linux before 5.3): then the loop looks every few milliseconds */
    child->watched[CHILD].fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->watched[CHILD].fd >= 0)
        fcntl(child->watched[CHILD].fd, F_SETFD, FD_CLOEXEC);
    watch_without_sigpipe(child, clock);
    reap(child, result);
    int64_t end_ns = child->ended ? child->end_ns : lab_clock_now(clock);
    result->start_ns = child->start_ns;
    result->duration_ns = end_ns - child->start_ns;
    result->held_ns = child->held_ns;
    result->timed_out = child->timed_out;
    result->stopped = child->stopped;
    result->truncated = child->truncated;
    result->out = lab_arena_strndup(arena, child->kept[OUT].text, child->kept[OUT].length);
    result->out_length = child->kept[OUT].length;
    result->err = lab_arena_strndup(arena, child->kept[ERR].text, child->kept[ERR].length);
    return 0;
}

int lab_subprocess_run(const struct lab_subprocess_spec *spec, struct lab_arena *arena,
                       struct lab_subprocess_result *ret_result, struct lab_err *err) {
    assert(spec->argv && spec->argv[0]);
    struct child child = {.spec = spec, .input_length = spec->input ? strlen(spec->input) : 0};
    for (int i = 0; i < WATCHED; i++)
        child.watched[i] = (struct pollfd){.fd = -1, .events = i == IN ? POLLOUT : POLLIN};
    for (int i = 0; i < PIPES; i++) {
        child.theirs[i] = -1;
        lab_str_init(&child.kept[i]);
    }
    struct lab_subprocess_result result = {0};
    int outcome = run(&child, arena, &result, err);
    release(&child);
    if (outcome == 0)
        *ret_result = result;
    return outcome;
}

/* The kernel chooses one that is free, of all addresses: launchers listen on any of them. */
int lab_subprocess_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof address;
    LAB_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return 0;
    return ntohs(address.sin_port);
}
