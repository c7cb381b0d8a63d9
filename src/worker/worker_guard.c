/*
 * worker_guard.c: a thread that does nothing but listen. It hears GO and ACK, and it notices when
 * the runner is gone: the socket ends, or the kernel tells of the parent's death (which also comes
 * where some other process holds the socket's other end open). Then it ends everything: whatever
 * the workload has started, wherever it moved to, and this process. No thread of the worker can
 * stop it from doing so, however busy or stuck it is.
 *
 * So does SIGTERM, unless the workload is somebody's program: that is asked in its turn, and may
 * still save what it has and say so.
 */
#include "base/file/file.h"
#include "worker/worker_internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Both are blocked in every thread and read from signal_fd. */
#define PARENT_GONE  SIGUSR2
#define ASKED_TO_END SIGTERM

/* --- descendants --- */

/* A look at /proc takes a moment, in which processes come and go: what one look missed because its
 * parent ended meanwhile, the next one sees as our own child, adopted. */
#define LOOKS_QUIET 2
#define LOOKS_MOST  1000

bool worker_is_descendant(const struct lab_process_tree *tree, const struct lab_process *process) {
    pid_t self = getpid();
    for (int steps = 0; process && steps < tree->count; steps++) {
        if (process->parent == self)
            return true;
        process = lab_process_tree_find(tree, process->parent);
    }
    return false;
}

struct killed {
    struct lab_process *items;
    int count;
};

static bool is_killed(const struct killed *killed, const struct lab_process *process) {
    for (int i = 0; i < killed->count; i++)
        if (killed->items[i].pid == process->pid && killed->items[i].start == process->start)
            return true;
    return false;
}

/* Kills what one look finds; true if there was anything that no look before had found. */
static bool kill_found(struct lab_process_tree *tree, struct killed *killed) {
    bool any = false;
    lab_process_tree_read(tree);
    for (int i = 0; i < tree->count; i++) {
        const struct lab_process *process = &tree->items[i];
        if (process->dead || !worker_is_descendant(tree, process) || is_killed(killed, process))
            continue;
        lab_process_signal(process, SIGKILL); /* from here on it can't fork */
        LAB_PUSH(killed->items, killed->count) = *process;
        any = true;
    }
    return any;
}

void worker_kill_descendants(void) {
    struct lab_process_tree tree = {0};
    struct killed killed = {0};
    int quiet = 0;
    for (int looks = 0; quiet < LOOKS_QUIET && looks < LOOKS_MOST; looks++)
        quiet = kill_found(&tree, &killed) ? 0 : quiet + 1;
    lab_mem_free(killed.items);
    lab_process_tree_release(&tree);
}

static void end_everything(void) {
    worker_kill_descendants();
    if (getpgrp() == getpid())
        kill(-getpid(), SIGKILL);
    _exit(1);
}

/* As the signal by itself would, so that the waiting parent sees the reason. */
static void end_by_request(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, ASKED_TO_END);
    worker_kill_descendants();
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(ASKED_TO_END);
    _exit(1);
}

/* --- listening --- */

/* True once there is nothing more to listen for. */
static bool take_frames(struct worker *worker) {
    LAB_AUTO(arena, arena);
    struct lab_frame frame;
    int status;
    bool over = false;
    while ((status = lab_frame_reader_next(&worker->reader, &arena, &frame, NULL)) > 0) {
        pthread_mutex_lock(&worker->mutex);
        if (frame.type == LAB_FRAME_GO)
            worker->go = true;
        else if (frame.type == LAB_FRAME_MEET && worker->arrived == worker->job.rank_count)
            worker_met(worker, frame.willing);
        else if (frame.type == LAB_FRAME_ACK && worker->results_left == 0)
            worker->acknowledged = true;
        over = worker->acknowledged;
        pthread_cond_broadcast(&worker->changed);
        pthread_mutex_unlock(&worker->mutex);
    }
    if (status < 0 && !over)
        end_everything(); /* the sender is not the runner */
    return over;
}

/* False at the conversation's end. */
static bool receive(struct worker *worker) {
    char bytes[4096];
    ssize_t length = recv(worker->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length > 0)
        lab_frame_reader_feed(&worker->reader, bytes, (size_t)length);
    return length > 0 || (length < 0 && (errno == EAGAIN || errno == EINTR));
}

static void take_signals(struct worker *worker) {
    struct signalfd_siginfo info;
    while (read(worker->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == PARENT_GONE)
            end_everything();
        if (!atomic_load(&worker->external))
            end_by_request();
        worker_stop(worker);
    }
}

static void *guard_main(void *opaque) {
    struct worker *worker = opaque;
    /*
     * The kernel forgets it when the thread that asked ends: this one stays until the end. A
     * profiler that started the worker may end or be replaced when it likes: then the socket alone
     * tells.
     */
    if (worker->parent) {
        prctl(PR_SET_PDEATHSIG, PARENT_GONE);
        if (getppid() != worker->parent)
            end_everything();
    }
    struct pollfd fds[] = {
        {worker->fd, POLLIN, 0}, {worker->signal_fd, POLLIN, 0}, {worker->wake_fd, POLLIN, 0}};
    /* an acknowledged worker ends by itself, in its own order, even if the runner hangs up at
     * once */
    while (!take_frames(worker)) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            end_everything();
        if (fds[2].revents)
            break;
        if (fds[1].revents)
            take_signals(worker);
        if (fds[0].revents && !receive(worker))
            end_everything();
    }
    return NULL;
}

/* --- life --- */

void worker_die_with_parent(const struct worker *worker) {
    if (!worker->parent)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != worker->parent)
        _exit(1);
}

int worker_guard_start(struct worker *worker, struct lab_err *err) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, PARENT_GONE);
    sigaddset(&signals, ASKED_TO_END);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* threads started later inherit it */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    worker->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int why = errno;
    if (worker->signal_fd >= 0 && worker->wake_fd >= 0) {
        why = pthread_create(&worker->guard, NULL, guard_main, worker);
        worker->guarded = why == 0;
        if (worker->guarded) {
            prctl(PR_SET_PDEATHSIG, 0); /* from here on there may be descendants to end first */
            return 0;
        }
    }
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "starting the worker's guard");
}

void worker_guard_stop(struct worker *worker) {
    if (worker->guarded) {
        eventfd_write(worker->wake_fd, 1);
        pthread_join(worker->guard, NULL);
    }
    worker->guarded = false;
    lab_file_close(&worker->signal_fd);
    lab_file_close(&worker->wake_fd);
}
