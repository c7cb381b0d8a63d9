/*
 * worker_guard.c: a thread that does nothing but listen. It hears GO and ACK, and it notices when
 * the runner is gone: the socket ends, or the kernel tells of the parent's death (which also comes
 * where some other process holds the socket's other end open). Then it ends everything: whatever the
 * workload has started, wherever it moved to, and this process. No thread of the worker can stop it
 * from doing so, however busy or stuck it is.
 */
#include "study/worker_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PARENT_GONE SIGUSR2 /* blocked in every thread and read from signal_fd */

/* --- descendants --- */

/* A look at /proc takes a moment, in which processes come and go: what one look missed because its
 * parent ended meanwhile, the next one sees as our own child, adopted. */
#define LOOKS_QUIET 2
#define LOOKS_MOST  1000

struct process {
    pid_t pid, parent;
    bool alive, ours;
};

struct processes {
    struct process *items;
    int count, capacity;
};

static int find(const struct processes *list, pid_t pid) {
    for (int i = 0; i < list->count; i++)
        if (list->items[i].pid == pid)
            return i;
    return -1;
}

static void add(struct processes *list, struct process process) {
    LAB_MEM_GROW(&list->items, list->count, &list->capacity);
    list->items[list->count++] = process;
}

/* From /proc/PID/stat: "PID (any name) STATE PARENT …". False if there is no such process. */
static bool read_process(const char *name, struct process *ret) {
    char path[64], text[512];
    char *end;
    long pid = strtol(name, &end, 10);
    if (*end || pid <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *behind_name = strrchr(text, ')');
    if (!behind_name || strlen(behind_name) < 5)
        return false;
    char state = behind_name[2];
    *ret = (struct process){.pid = (pid_t)pid,
                            .parent = (pid_t)strtol(behind_name + 4, NULL, 10),
                            .alive = state != 'Z' && state != 'X'};
    return true;
}

static void read_processes(struct processes *list) {
    DIR *folder = opendir("/proc");
    if (!folder)
        return;
    struct process process;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (read_process(entry->d_name, &process))
            add(list, process);
    closedir(folder);
}

static void mark_descendants(const struct processes *list, const struct processes *killed) {
    pid_t self = getpid();
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < list->count; i++) {
            struct process *process = &list->items[i];
            if (process->ours)
                continue;
            int parent = find(list, process->parent);
            process->ours = process->parent == self || find(killed, process->parent) >= 0 ||
                            (parent >= 0 && list->items[parent].ours);
            changed = changed || process->ours;
        }
    }
}

/* Kills what one look finds; true if there was anything that no look before had found. */
static bool kill_found(struct processes *killed) {
    struct processes list = {0};
    bool any = false;
    read_processes(&list);
    mark_descendants(&list, killed);
    for (int i = 0; i < list.count; i++) {
        const struct process *process = &list.items[i];
        if (!process->ours || !process->alive || find(killed, process->pid) >= 0)
            continue;
        kill(process->pid, SIGKILL); /* from here on it can't fork */
        add(killed, *process);
        any = true;
    }
    lab_mem_free(list.items);
    return any;
}

void worker_kill_descendants(void) {
    struct processes killed = {0};
    int quiet = 0;
    for (int looks = 0; quiet < LOOKS_QUIET && looks < LOOKS_MOST; looks++)
        quiet = kill_found(&killed) ? 0 : quiet + 1;
    lab_mem_free(killed.items);
}

static void end_everything(void) {
    worker_kill_descendants();
    if (getpgrp() == getpid())
        kill(-getpid(), SIGKILL);
    _exit(1);
}

/* --- listening --- */

/* True once there is nothing more to listen for. */
static bool take_frames(struct worker *worker) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_frame frame;
    int status;
    bool over = false;
    while ((status = lab_frame_reader_next(&worker->reader, &arena, &frame, NULL)) > 0) {
        pthread_mutex_lock(&worker->mutex);
        if (frame.type == LAB_FRAME_GO)
            worker->go = true;
        else if (frame.type == LAB_FRAME_ACK && worker->results_left == 0)
            worker->acknowledged = true;
        over = worker->acknowledged;
        pthread_cond_broadcast(&worker->changed);
        pthread_mutex_unlock(&worker->mutex);
    }
    lab_arena_release(&arena);
    if (status < 0 && !over)
        end_everything(); /* whoever speaks there is no runner */
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

static void *guard_main(void *opaque) {
    struct worker *worker = opaque;
    /* the kernel forgets it when the thread that asked ends: this one stays until the end */
    prctl(PR_SET_PDEATHSIG, PARENT_GONE);
    if (getppid() != worker->parent)
        end_everything();
    struct pollfd fds[] = {
        {worker->fd, POLLIN, 0}, {worker->signal_fd, POLLIN, 0}, {worker->wake_fd, POLLIN, 0}};
    /* an acknowledged worker ends by itself, in its own order, even if the runner hangs up at once */
    while (!take_frames(worker)) {
        if (poll(fds, 3, -1) < 0 && errno != EINTR)
            end_everything();
        if (fds[2].revents)
            break;
        if (fds[1].revents || (fds[0].revents && !receive(worker)))
            end_everything();
    }
    return NULL;
}

/* --- life --- */

int worker_guard_start(struct worker *worker, struct lab_err *err) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, PARENT_GONE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* threads started later inherit it */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    worker->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int why = errno;
    if (worker->signal_fd >= 0 && worker->wake_fd >= 0) {
        why = pthread_create(&worker->guard, NULL, guard_main, worker);
        worker->guarded = why == 0;
        if (worker->guarded)
            return 0;
    }
    return lab_err_set_errno(err, LAB_ERR_SYSTEM, why, "starting the worker's guard");
}

void worker_guard_stop(struct worker *worker) {
    if (worker->guarded) {
        eventfd_write(worker->wake_fd, 1);
        pthread_join(worker->guard, NULL);
    }
    worker->guarded = false;
    if (worker->signal_fd >= 0)
        close(worker->signal_fd);
    if (worker->wake_fd >= 0)
        close(worker->wake_fd);
    worker->signal_fd = worker->wake_fd = -1;
}
