/*
 * child.c: starting, watching and ending one process. It is reaped only when it is known to have
 * ended, and the wait never blocks; until then its number can't be given to another.
 */
#include "run/launch/child.h"

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/subprocess.h"
#include "run/frame.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK             LAB_CHILD_MARK
#define TICK_NS          (10 * LAB_NS_PER_MS) /* between looks where there is no pidfd */
#define GIVE_UP_AFTER_NS (10 * LAB_NS_PER_S)  /* after KILL: it hangs in the kernel */
#define LOOK_NS          LAB_NS_PER_S
#define LOOK_SHARE       1000 /* looking takes at most this part of the time */
#define CLEAN_LOOKS      2 /* in a row: who starts others while the tree is read may hide in one */
#define PAUSE_MIN_NS     (2 * LAB_NS_PER_MS)
#define PAUSE_MAX_NS     (100 * LAB_NS_PER_MS)

/* --- starting --- */

enum { OUT, ERR, EVENTS, ENDS };

struct start {
    const struct lab_child_spec *spec;
    int ours[ENDS], theirs[ENDS];
    int *inherited; /* duplicates of what it shall inherit, out of the way of where they go */
};

/* The first descriptor that the child's redirections leave alone. */
static int first_free(const struct lab_child_spec *spec) {
    return LAB_WORKER_FD + 1 + spec->inherit_count;
}

/* Moves a descriptor out of the way of the child's redirections. */
static int lift(int *fd, int least) {
    if (*fd >= least)
        return 0;
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, least);
    close(*fd);
    *fd = lifted;
    return lifted < 0 ? -1 : 0;
}

static int open_ends(struct start *start) {
    int least = first_free(start->spec);
    for (int i = 0; i < ENDS; i++) {
        int ends[2];
        if (i == EVENTS ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0
                        : pipe2(ends, O_CLOEXEC) < 0)
            return -1;
        start->ours[i] = ends[0];
        start->theirs[i] = ends[1];
        if (lift(&start->ours[i], least) < 0 || lift(&start->theirs[i], least) < 0 ||
            fcntl(start->ours[i], F_SETFL, O_NONBLOCK) < 0)
            return -1;
    }
    for (int i = 0; i < start->spec->inherit_count; i++) {
        start->inherited[i] = fcntl(start->spec->inherit_fds[i], F_DUPFD_CLOEXEC, least);
        if (start->inherited[i] < 0)
            return -1;
    }
    return 0;
}

static int spawn(struct lab_child *child, const struct start *start) {
    const struct lab_child_spec *spec = start->spec;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    lab_subprocess_attributes(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, start->theirs[OUT], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, start->theirs[ERR], STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, start->theirs[EVENTS], LAB_WORKER_FD);
    for (int i = 0; i < spec->inherit_count; i++)
        posix_spawn_file_actions_adddup2(&actions, start->inherited[i], LAB_WORKER_FD + 1 + i);
    lab_file_keep_from_children(first_free(spec));
    LAB_AUTO(arena, arena);
    /* GPUs are counted in this order wherever they are: the driver's own depends on their speed */
    const char *const own[] = {"CUDA_DEVICE_ORDER=PCI_BUS_ID", child->mark, NULL};
    char *const *environment = (char *const *)lab_subprocess_environment(own, &arena);
    int problem = spec->program ? posix_spawn(&child->pid, spec->program, &actions, &attributes,
                                              (char *const *)spec->argv, environment)
                                : posix_spawnp(&child->pid, spec->argv[0], &actions, &attributes,
                                               (char *const *)spec->argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return problem;
}

/* A program in /proc is this one: where /proc is missing, no path was wrong. */
static int refuse(const struct lab_child_spec *spec, const char *name, int problem,
                  struct lab_err *err) {
    if (problem == ENOENT && spec->program && access("/proc/self", F_OK) < 0)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "can't start '%s': /proc isn't mounted, and it is started as %s", name,
                           spec->program);
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, problem, "can't start '%s'", name);
}

static int start_child(struct lab_child *child, struct start *start, struct lab_err *err) {
    const char *name = start->spec->argv[0];
    if (open_ends(start) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "no pipes for '%s'", name);
    int problem = spawn(child, start);
    if (problem)
        return refuse(start->spec, name, problem, err);
    child->out = start->ours[OUT];
    child->err = start->ours[ERR];
    child->socket = start->ours[EVENTS];
    for (int i = 0; i < ENDS; i++)
        start->ours[i] = -1;
    /* may be missing (Linux before 5.3): then it is tended every few milliseconds */
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    return 0;
}

int lab_child_start(struct lab_child *child, const struct lab_child_spec *spec,
                    struct lab_children *children, struct lab_err *err) {
    struct start start = {.spec = spec, .ours = {-1, -1, -1}, .theirs = {-1, -1, -1}};
    start.inherited = lab_mem_alloc((size_t)spec->inherit_count + 1, sizeof *start.inherited);
    memset(start.inherited, -1, (size_t)spec->inherit_count * sizeof *start.inherited);
    *child = (struct lab_child){.socket = -1, .out = -1, .err = -1, .pidfd = -1};
    snprintf(child->mark, sizeof child->mark, MARK "=%d.%lld.%lld", (int)getpid(),
             (long long)lab_clock_now(lab_clock_system()), (long long)++children->started_count);
    int result = start_child(child, &start, err);
    for (int i = 0; i < ENDS; i++) {
        lab_file_close(&start.ours[i]);
        lab_file_close(&start.theirs[i]);
    }
    for (int i = 0; i < spec->inherit_count; i++)
        lab_file_close(&start.inherited[i]);
    lab_mem_free(start.inherited);
    if (result < 0)
        return -1;
    child->state = LAB_CHILD_RUNNING;
    child->grace_ns = spec->grace_ns;
    child->children = children;
    child->next = children->first;
    children->first = child;
    return 0;
}

/* --- whose is it? --- */

static struct lab_child *owner_by_pid(const struct lab_children *children, pid_t pid) {
    for (struct lab_child *child = children->first; child; child = child->next)
        if (child->pid == pid && !child->reaped)
            return child;
    return NULL;
}

static bool has_seen(const struct lab_child *child, const struct lab_process *process) {
    for (int i = 0; i < child->seen_count; i++)
        if (child->seen[i].pid == process->pid && child->seen[i].start == process->start)
            return true;
    return false;
}

/* By what it carries with it, whoever its parent is now. */
static struct lab_child *owner_by_marks(const struct lab_children *children,
                                        const struct lab_process *process, bool adopted) {
    for (struct lab_child *child = children->first; child; child = child->next)
        if (process->session == child->pid || process->group == child->pid ||
            has_seen(child, process))
            return child;
    if (adopted && !process->dead)
        for (struct lab_child *child = children->first; child; child = child->next)
            if (lab_process_has_variable(process->pid, child->mark, false))
                return child;
    return NULL;
}

/* Up the line of its parents: to a child of the set, or to ourselves by way of an adopted
 * orphan. */
static struct lab_child *find_owner(const struct lab_children *children,
                                    const struct lab_process *of) {
    pid_t self = getpid();
    struct lab_child *marked = NULL;
    const struct lab_process *process = of;
    for (int steps = 0; process && steps < children->tree.count; steps++) {
        struct lab_child *owner = owner_by_pid(children, process->pid);
        if (owner)
            return owner;
        bool adopted = process->parent == self;
        if (!marked)
            marked = owner_by_marks(children, process, adopted);
        if (adopted)
            return marked;
        process = lab_process_tree_find(&children->tree, process->parent);
    }
    /* not below us; or a parent ended while the tree was read */
    return marked && has_seen(marked, of) ? marked : NULL;
}

/* false = it isn't over: the last of several threads may still be ending. */
static bool reap(pid_t pid) {
    siginfo_t info = {0};
    int result = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG);
    return result < 0 ? errno == ECHILD : info.si_pid == pid;
}

/*
 * An orphan that became ours and has ended. Programs that other parts of this process start and
 * wait for stay in our session; whatever comes from a child is in another.
 */
static bool is_dead_orphan(const struct lab_children *children, const struct lab_process *process) {
    return process->dead && process->parent == getpid() && process->session != getsid(0) &&
           !owner_by_pid(children, process->pid);
}

/* Reads the tree, remembers for each child what lives below it, and buries orphans. */
static void look(struct lab_children *children) {
    int64_t start_ns = lab_clock_now(lab_clock_system());
    lab_process_tree_read(&children->tree);
    LAB_AUTO_FREE struct lab_child **owners =
        lab_mem_alloc((size_t)children->tree.count + 1, sizeof(struct lab_child *));
    for (int i = 0; i < children->tree.count; i++)
        owners[i] = find_owner(children, &children->tree.items[i]);
    for (struct lab_child *child = children->first; child; child = child->next)
        child->seen_count = 0;
    for (int i = 0; i < children->tree.count; i++) {
        const struct lab_process *process = &children->tree.items[i];
        struct lab_child *child = owners[i];
        /* one that is dead is over once its parent has reaped it, which only we are sure to do */
        bool over = process->dead && process->parent != getpid();
        if (is_dead_orphan(children, process))
            over = reap(process->pid);
        if (!child || over || (process->pid == child->pid && !child->reaped))
            continue;
        LAB_PUSH(child->seen, child->seen_count) =
            (struct lab_child_seen){process->pid, process->start};
    }
    int64_t now_ns = lab_clock_now(lab_clock_system());
    children->tree_cost_ns = now_ns - start_ns;
    int64_t pause_ns = children->tree_cost_ns * LOOK_SHARE;
    children->look_ns = now_ns + (pause_ns > LOOK_NS ? pause_ns : LOOK_NS);
}

void lab_children_look(struct lab_children *children, int64_t now_ns) {
    if (children->first && now_ns >= children->look_ns)
        look(children);
}

pid_t lab_children_find_left(pid_t parent) {
    char mark[64];
    pid_t found = 0;
    struct lab_process_tree tree = {0};
    snprintf(mark, sizeof mark, MARK "=%d.", (int)parent);
    lab_process_tree_read(&tree);
    for (int i = 0; i < tree.count && !found; i++)
        if (!tree.items[i].dead && lab_process_has_variable(tree.items[i].pid, mark, true))
            found = tree.items[i].pid;
    lab_process_tree_release(&tree);
    return found;
}

void lab_children_init(struct lab_children *children) {
    *children = (struct lab_children){0};
    int was = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &was);
    children->was_subreaper = was != 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void lab_children_release(struct lab_children *children) {
    assert(!children->first);
    prctl(PR_SET_CHILD_SUBREAPER, children->was_subreaper);
    lab_process_tree_release(&children->tree);
}

/* --- ending --- */

static void signal_seen(const struct lab_child *child, int signal) {
    for (int i = 0; i < child->seen_count; i++) {
        const struct lab_process *process =
            lab_process_tree_find(&child->children->tree, child->seen[i].pid);
        if (process)
            lab_process_signal(process, signal);
    }
}

void lab_child_stop(struct lab_child *child, int64_t now_ns) {
    if (child->stopped || child->state == LAB_CHILD_NONE || child->state == LAB_CHILD_GONE)
        return;
    child->stopped = true;
    child->stop_ns = now_ns;
    if (child->state != LAB_CHILD_RUNNING)
        return;
    look(child->children); /* once parents end, fewer marks are left */
    kill(-child->pid, SIGTERM);
}

void lab_child_kill(struct lab_child *child, int64_t now_ns) {
    if (child->state == LAB_CHILD_NONE || child->state == LAB_CHILD_GONE)
        return;
    child->stopped = true;
    child->grace_ns = 0;
    child->stop_ns = now_ns;
    lab_child_tend(child, now_ns);
}

static bool grace_is_over(const struct lab_child *child, int64_t now_ns) {
    return child->stopped && now_ns - child->stop_ns >= child->grace_ns;
}

/* Whether it has ended, and how; leaves it unreaped, so that its group's number stays taken. */
static bool has_ended(struct lab_child *child) {
    siginfo_t info = {0};
    int result = waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (result < 0 && errno == EINTR)
        return false;
    if (result == 0 && info.si_pid != child->pid)
        return false;
    child->exit_status = result == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
    child->signal = result == 0 && info.si_code != CLD_EXITED ? info.si_status : 0;
    return true;
}

static void tend_running(struct lab_child *child, int64_t now_ns) {
    if (has_ended(child)) {
        child->state = LAB_CHILD_ENDED;
        child->ended_ns = child->sweep_ns = now_ns;
        lab_file_close(&child->pidfd);
    } else if (grace_is_over(child, now_ns) && !child->killed) {
        child->killed = true;
        look(child->children);
        kill(-child->pid, SIGKILL);
        signal_seen(child, SIGKILL);
    } else if (child->killed && now_ns - child->stop_ns >= child->grace_ns + GIVE_UP_AFTER_NS) {
        child->stuck = true;
        child->exit_status = -1;
        child->signal = SIGKILL;
        child->state = LAB_CHILD_GONE;
    }
}

static bool has_no_children(void) {
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

static int64_t next_pause(struct lab_child *child) {
    int64_t cost_ns = 4 * child->children->tree_cost_ns;
    if (child->seen_count == 0)
        return 0;
    child->pause_ns = child->pause_ns ? 2 * child->pause_ns : PAUSE_MIN_NS;
    if (child->pause_ns > PAUSE_MAX_NS)
        child->pause_ns = PAUSE_MAX_NS;
    return child->pause_ns > cost_ns ? child->pause_ns : cost_ns;
}

/*
 * Ends what an ended child leaves behind, once it has had its grace if it was asked to end.
 * Repeated until nothing is found: who is killed may just have started another.
 */
static void sweep(struct lab_child *child, int64_t now_ns) {
    bool gentle = child->stopped && !grace_is_over(child, now_ns);
    if (!child->reaped) {
        if (!gentle)
            kill(-child->pid, SIGKILL);
        reap(child->pid);
        child->reaped = true;
    }
    /* what it left would be ours by now, so that mostly there is nothing to look for */
    if (has_no_children()) {
        child->state = LAB_CHILD_GONE;
        return;
    }
    look(child->children);
    child->clean_looks = child->seen_count > 0 ? 0 : child->clean_looks + 1;
    if (!gentle)
        signal_seen(child, SIGKILL);
    int64_t since_ns = child->ended_ns + (child->stopped ? child->grace_ns : 0);
    child->stuck = child->seen_count > 0 && now_ns - since_ns >= GIVE_UP_AFTER_NS;
    if (child->clean_looks >= CLEAN_LOOKS || child->stuck)
        child->state = LAB_CHILD_GONE;
    else
        child->sweep_ns = now_ns + next_pause(child);
}

enum lab_child_state lab_child_tend(struct lab_child *child, int64_t now_ns) {
    if (child->state == LAB_CHILD_RUNNING)
        tend_running(child, now_ns);
    if (child->state == LAB_CHILD_ENDED && now_ns >= child->sweep_ns)
        sweep(child, now_ns);
    return child->state;
}

int64_t lab_child_due(const struct lab_child *child, int64_t now_ns) {
    if (child->state == LAB_CHILD_ENDED)
        return child->sweep_ns;
    if (child->state != LAB_CHILD_RUNNING)
        return INT64_MAX;
    int64_t due_ns = INT64_MAX;
    if (child->stopped && !child->killed)
        due_ns = child->stop_ns + child->grace_ns;
    else if (child->killed)
        due_ns = child->stop_ns + child->grace_ns + GIVE_UP_AFTER_NS;
    if (child->pidfd < 0 && due_ns > now_ns + TICK_NS)
        due_ns = now_ns + TICK_NS;
    return due_ns;
}

void lab_child_release(struct lab_child *child) {
    if (child->state == LAB_CHILD_NONE)
        return;
    if (child->state == LAB_CHILD_RUNNING)
        kill(-child->pid, SIGKILL);
    lab_file_close(&child->socket);
    lab_file_close(&child->out);
    lab_file_close(&child->err);
    lab_file_close(&child->pidfd);
    for (struct lab_child **link = &child->children->first; *link; link = &(*link)->next) {
        if (*link == child) {
            *link = child->next;
            break;
        }
    }
    lab_mem_free(child->seen);
    *child = (struct lab_child){0};
}
