/*
 * worker.c: the conversation as a whole: take the job, say hello, start a thread for each rank, and
 * stay until the runner has what they found. Everything that can be refused once for all ranks is
 * looked at here, before any of them starts.
 */
#include "worker/worker.h"

#include "base/clock.h"
#include "base/cond.h"
#include "run/launch/child.h"
#include "worker/worker_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOB_WITHIN_NS (10 * LAB_NS_PER_S)
#define ACK_WITHIN_S  60

/* --- sending --- */

bool worker_write(int fd, bool is_socket, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = is_socket ? send(fd, bytes, length, MSG_NOSIGNAL) : write(fd, bytes, length);
        if (sent >= 0) {
            bytes += sent;
            length -= (size_t)sent;
        } else if (errno == EAGAIN) {
            struct pollfd room = {fd, POLLOUT, 0};
            poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

void worker_send(struct worker *worker, const struct lab_frame *frame) {
    LAB_AUTO_LOCK(&worker->send_mutex);
    lab_str_clear(&worker->outgoing);
    lab_frame_write(frame, &worker->outgoing);
    worker_write(worker->fd, true, worker->outgoing.text, worker->outgoing.length);
}

static void send_hello(struct worker *worker, int rank, int rank_count) {
    worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_HELLO,
                                            .rank = rank,
                                            .hello = {LAB_FRAME_VERSION, getpid(), rank_count}});
}

static void send_failure(struct worker *worker, int rank, const struct lab_err *err) {
    worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_FAILURE,
                                            .rank = rank,
                                            .failure = {err->code, err->text, err->hint}});
}

/* --- what ranks wait for --- */

bool worker_stop(struct worker *worker) {
    bool first = !atomic_exchange(&worker->stopping, true);
    LAB_AUTO_LOCK(&worker->mutex);
    pthread_cond_broadcast(&worker->changed);
    return first;
}

bool worker_wait_go(struct worker *worker) {
    LAB_AUTO_LOCK(&worker->mutex);
    while (!worker->go && !atomic_load(&worker->stopping))
        pthread_cond_wait(&worker->changed, &worker->mutex);
    return !atomic_load(&worker->stopping);
}

void worker_met(struct worker *worker, bool agreed) {
    worker->arrived = 0;
    worker->unwilling = false;
    worker->agreed = agreed;
    worker->meetings++;
    pthread_cond_broadcast(&worker->changed);
}

bool worker_meet(struct rank *rank, bool of_gang, bool willing) {
    struct worker *worker = rank->worker;
    bool elsewhere = of_gang && worker->job.rank_count < worker->job.gang_size;
    lab_device_rest(rank->session.device);
    pthread_mutex_lock(&worker->mutex);
    int64_t meeting = worker->meetings;
    worker->unwilling |= !willing;
    if (++worker->arrived == worker->job.rank_count && !elsewhere)
        worker_met(worker, !worker->unwilling);
    else if (worker->arrived == worker->job.rank_count) /* the runner knows of the others */
        worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_MEET,
                                                .rank = rank->job->index,
                                                .willing = !worker->unwilling});
    while (worker->meetings == meeting && !atomic_load(&worker->stopping))
        pthread_cond_wait(&worker->changed, &worker->mutex);
    bool agreed = worker->agreed;
    pthread_mutex_unlock(&worker->mutex);
    lab_device_wake(rank->session.device);
    return agreed && !atomic_load(&worker->stopping);
}

/* Two places in turn: a rank may still read the last value, but all have read it at the next
 * exchange. */
int worker_agree(struct rank *rank, int64_t own, int64_t *ret_least, struct lab_err *err) {
    struct worker *worker = rank->worker;
    int64_t *shown = &rank->shown[rank->shown_next], least = own;
    if (!worker->group) {
        *ret_least = own;
        return 0;
    }
    LAB_AUTO_FREE int64_t **all = lab_mem_alloc((size_t)worker->job.rank_count, sizeof(int64_t *));
    *shown = own;
    rank->shown_next = !rank->shown_next;
    int failed = lab_group_exchange(worker->group, rank->job->index, rank->session.device, shown,
                                    (void **)all, err);
    for (int i = 0; i < worker->job.rank_count && !failed; i++)
        least = *all[i] < least ? *all[i] : least;
    if (!failed)
        *ret_least = least;
    return failed;
}

static bool wait_acknowledged(struct worker *worker) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + ACK_WITHIN_S * LAB_NS_PER_S;
    LAB_AUTO_LOCK(&worker->mutex);
    int status = 0;
    while (!worker->acknowledged && !atomic_load(&worker->stopping) && status != ETIMEDOUT)
        status = lab_cond_wait_until(&worker->changed, &worker->mutex, until_ns);
    return worker->acknowledged;
}

/* --- the job --- */

/* Waits for bytes and feeds them to the reader. */
static int receive(struct worker *worker, int64_t until_ns, struct lab_err *err) {
    char bytes[4096];
    int64_t left_ns = until_ns - lab_clock_now(lab_clock_system());
    struct pollfd fd = {worker->fd, POLLIN, 0};
    int ready = left_ns > 0 ? poll(&fd, 1, (int)(left_ns / LAB_NS_PER_MS) + 1) : 0;
    if (ready == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "no job came within %lld s",
                           (long long)(JOB_WITHIN_NS / LAB_NS_PER_S));
    ssize_t length = ready < 0 ? -1 : recv(worker->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (length < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "waiting for a job");
    if (length == 0)
        return lab_err_set(err, LAB_ERR_SYSTEM,
                           "the runner closed the connection before sending a job");
    lab_frame_reader_feed(&worker->reader, bytes, (size_t)length);
    return 0;
}

static int receive_job(struct worker *worker, const char **ret_text, struct lab_err *err) {
    int64_t until_ns = lab_clock_now(lab_clock_system()) + JOB_WITHIN_NS;
    struct lab_frame frame;
    int status;
    while ((status = lab_frame_reader_next(&worker->reader, &worker->arena, &frame, err)) == 0)
        if (receive(worker, until_ns, err) < 0)
            return -1;
    if (status < 0)
        return -1;
    if (frame.type != LAB_FRAME_JOB)
        return lab_err_set(err, LAB_ERR_SYSTEM, "a frame of type %d came instead of a job",
                           (int)frame.type);
    *ret_text = frame.text;
    return 0;
}

/*
 * The driver gives a process eight queues to the GPU unless it is told, and streams beyond them
 * share one: behind a kernel that waits for another rank's, that other rank's would never get its
 * turn.
 */
static void widen_queues(const struct worker *worker) {
    if (worker->workload->collective && worker->job.rank_count > 1)
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* the most that there can be */
}

/* The workload and its config, as the job says. */
static int prepare(struct worker *worker, struct lab_err *err) {
    worker->workload = lab_workload_find(worker->job.workload, err);
    if (!worker->workload)
        return -1;
    atomic_store(&worker->external, worker->workload->external);
    if (lab_workload_read(worker->workload, worker->job.options, &worker->arena, &worker->config,
                          err) < 0)
        return lab_err_context(err, "%s", worker->workload->name);
    lab_workload_set_environment(worker->workload, worker->config, &worker->arena);
    widen_queues(worker);
    worker->workload->cost(worker->config, &worker->cost);
    if (!worker->job.machine)
        return lab_machine_open(NULL, &worker->machine, err);
    lab_device_define(worker->job.machine, worker->job.definition);
    return lab_machine_open_cores(&worker->machine, err); /* its devices are described */
}

/* --- ranks --- */

/* In a phase devices are compared side by side: each works for itself there. */
static bool is_collective(const struct worker *worker) {
    const struct lab_job *job = &worker->job;
    return worker->workload->collective && job->rank_count > 1 &&
           job->rank_count == job->gang_size && !job->probe;
}

static void run_ranks(struct worker *worker) {
    const struct lab_job *job = &worker->job;
    if (is_collective(worker))
        worker->group = lab_group_open(&(struct lab_group_setup){
            .ranks = job->rank_count, .limit_s = LAB_GROUP_LIMIT_S, .stopped = &worker->stopping});
    int count = job->launcher ? 1 : job->rank_count, started = 0;
    LAB_AUTO_FREE struct rank *ranks = lab_mem_alloc((size_t)count, sizeof *ranks);
    for (; started < count; started++) {
        struct rank *rank = &ranks[started];
        rank->worker = worker;
        rank->job = &job->ranks[started];
        int why = pthread_create(&rank->thread, NULL, worker_rank_main, rank);
        if (why == 0)
            continue;
        struct lab_err err;
        lab_err_set_errno(&err, LAB_ERR_SYSTEM, why, "starting a thread for %s", rank->job->device);
        if (worker_stop(worker))
            send_failure(worker, rank->job->index, &err);
        break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(ranks[i].thread, NULL);
    lab_group_close(worker->group);
    worker->group = NULL;
}

/* Returns the exit status. */
static int carry_out(struct worker *worker) {
    struct lab_err err = LAB_ERR_INIT;
    int speaker = worker->job.ranks[0].index; /* for all of them */
    send_hello(worker, speaker, worker->job.gang_size);
    if (prepare(worker, &err) < 0) {
        send_failure(worker, speaker, &err);
        return 1;
    }
    run_ranks(worker);
    return !atomic_load(&worker->stopping) && wait_acknowledged(worker) ? 0 : 1;
}

/* As lab_worker_run, on a worker that is set up. */
static int converse(struct worker *worker, struct lab_err *err) {
    const char *text = "";
    struct lab_err refused = LAB_ERR_INIT;
    if (receive_job(worker, &text, err) < 0)
        return -1;
    if (lab_job_read(text, strlen(text), &worker->arena, &worker->job, &refused) < 0) {
        send_hello(worker, 0, 1);
        send_failure(worker, 0, &refused);
        return 1;
    }
    worker->results_left = worker->job.rank_count;
    if (worker_guard_start(worker, err) < 0)
        return -1;
    int status = carry_out(worker);
    worker_kill_descendants(); /* nothing that a workload left behind outlives its run */
    worker_guard_stop(worker);
    worker_die_with_parent(worker);
    return status;
}

/* --- life --- */

static int check_socket(int fd, struct lab_err *err) {
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM)
        return 0;
    return lab_err_set(err, LAB_ERR_USER, "the worker is started by 'gpulab run', not by hand");
}

/* The parent, unless a profiler stands between the runner and the worker; then 0. */
static pid_t find_parent(void) {
    const char *mark = getenv(LAB_CHILD_MARK);
    pid_t parent = getppid();
    return mark && strtol(mark, NULL, 10) != parent ? 0 : parent;
}

static void open_worker(struct worker *worker, int fd) {
    *worker = (struct worker){
        .fd = fd, .parent = find_parent(), .signal_fd = -1, .wake_fd = -1, .stopping = false};
    lab_cond_init(&worker->changed);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_mutex_init(&worker->send_mutex, NULL);
    pthread_mutex_init(&worker->metric_mutex, NULL);
    pthread_mutex_init(&worker->sample_mutex, NULL);
    pthread_mutex_init(&worker->memory.mutex, NULL);
    lab_str_init(&worker->outgoing);
    lab_arena_init(&worker->arena);
    lab_frame_reader_init(&worker->reader);
    worker->reader.rank_count = 1;  /* nobody says HELLO to a worker */
    fcntl(fd, F_SETFD, FD_CLOEXEC); /* what a workload starts must not keep it open */
}

static void close_worker(struct worker *worker) {
    worker_guard_stop(worker);
    lab_machine_close(worker->machine);
    lab_frame_reader_release(&worker->reader);
    lab_arena_release(&worker->arena);
    lab_str_release(&worker->outgoing);
    lab_process_tree_release(&worker->memory.tree);
    pthread_mutex_destroy(&worker->memory.mutex);
    pthread_mutex_destroy(&worker->sample_mutex);
    pthread_mutex_destroy(&worker->metric_mutex);
    pthread_mutex_destroy(&worker->send_mutex);
    pthread_mutex_destroy(&worker->mutex);
    pthread_cond_destroy(&worker->changed);
}

int lab_worker_run(int fd, struct lab_err *err) {
    if (check_socket(fd, err) < 0)
        return -1;
    struct worker worker;
    open_worker(&worker, fd);
    worker_die_with_parent(&worker);
    int status = converse(&worker, err);
    close_worker(&worker);
    return status;
}
