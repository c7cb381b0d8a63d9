/*
 * runner_log.c: a run's stdout and stderr, a file of each for every worker: what two ranks print at
 * the same time stays apart. Kept up to a size and read beyond it: a worker that
 * floods its output neither fills the disk nor waits for us. A log that can't be written spoils no
 * run.
 */
#include "run/runner_internal.h"

#include "base/file/file.h"
#include "base/file/own.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TAKE_MAX_BYTES  (1 << 20)  /* at once: then others have their turn */
#define DRAIN_MAX_BYTES (64 << 20) /* at a run's end, should somebody else still hold the pipe */

static const char *const endings[RUNNER_LOGS] = {[RUNNER_OUT] = "stdout", [RUNNER_ERR] = "stderr"};

static void complain(const struct runner *runner, const struct runner_run *run,
                     struct runner_log *log, const char *reason) {
    if (!log->complained)
        runner_warn(runner, run, "log not written: %s", reason);
    log->complained = true;
    lab_file_close(&log->fd);
}

static void put(const struct runner *runner, const struct runner_run *run, struct runner_log *log,
                const char *bytes, size_t length) {
    struct lab_err err = LAB_ERR_INIT;
    log->unended = length > 0 ? bytes[length - 1] != '\n' : log->unended;
    if (log->fd < 0 || lab_file_write_all(log->fd, bytes, length) == 0)
        return;
    lab_err_set_errno(&err, LAB_ERR_SYSTEM, errno, "%s", log->path);
    complain(runner, run, log, err.text);
}

/* Whether what it holds from before doesn't end with a line. */
static bool is_unended(const char *path) {
    LAB_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char last = '\n';
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

/* On a line of its own. */
static void put_line(const struct runner *runner, const struct runner_run *run,
                     struct runner_log *log, const char *line) {
    if (log->unended)
        put(runner, run, log, "\n", 1);
    put(runner, run, log, line, strlen(line));
}

/* The first rank's have the run's name alone, so that every run has them. */
static const char *name_of(struct runner_run *run, const struct runner_worker *worker, int which) {
    const char *id = run->item->planned->id;
    if (worker->first_rank == 0)
        return lab_arena_printf(&run->arena, "%s.%s", id, endings[which]);
    return lab_arena_printf(&run->arena, "%s.rank%d.%s", id, worker->first_rank, endings[which]);
}

static void open_logs(const struct runner *runner, struct runner_run *run,
                      struct runner_worker *worker) {
    const char *folder = lab_arena_printf(&run->arena, "%s/logs", runner->folder);
    struct lab_err err = LAB_ERR_INIT;
    bool usable = lab_own_folder(folder, &err) == 0;
    for (int i = 0; i < RUNNER_LOGS; i++) {
        struct runner_log *log = &worker->logs[i];
        *log = (struct runner_log){
            .path = lab_arena_printf(&run->arena, "%s/%s", folder, name_of(run, worker, i))};
        log->fd = usable ? lab_own_open(log->path, LAB_OWN_APPEND, &err) : -1;
        struct stat status;
        bool held = log->fd >= 0 && fstat(log->fd, &status) == 0 && status.st_size > 0;
        log->unended = held && is_unended(log->path);
        if (log->fd < 0)
            complain(runner, run, log, err.text);
        else if (run->attempt > 1)
            put_line(runner, run, log,
                     lab_arena_printf(&run->arena, "=== attempt %d ===\n", run->attempt));
        else if (held)
            put_line(runner, run, log, "=== started again ===\n");
    }
}

void runner_logs_open(const struct runner *runner, struct runner_run *run) {
    for (int i = 0; i < run->worker_count; i++)
        open_logs(runner, run, &run->workers[i]);
}

static void keep(const struct runner *runner, struct runner_run *run, struct runner_log *log,
                 const char *bytes, size_t length) {
    int64_t room = runner->patience.log_max_bytes - log->kept_bytes;
    size_t kept = (int64_t)length < room ? length : (size_t)room;
    put(runner, run, log, bytes, kept);
    log->kept_bytes += (int64_t)kept;
    log->dropped_bytes += (int64_t)(length - kept);
}

void runner_log_take(struct runner *runner, struct runner_run *run, struct runner_worker *worker,
                     int which, bool to_the_end) {
    int *fd = which == RUNNER_OUT ? &worker->child.out : &worker->child.err;
    int64_t taken = 0;
    do {
        if (*fd < 0)
            return;
        ssize_t got = read(*fd, runner->chunk, sizeof runner->chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            close(*fd);
            *fd = -1;
            return;
        }
        if ((size_t)got > sizeof runner->chunk / 2)
            lab_file_widen_pipe(*fd);
        keep(runner, run, &worker->logs[which], runner->chunk, (size_t)got);
        taken += got;
    } while (taken < (to_the_end ? DRAIN_MAX_BYTES : TAKE_MAX_BYTES));
}

static void close_logs(const struct runner *runner, struct runner_run *run,
                       struct runner_worker *worker) {
    for (int i = 0; i < RUNNER_LOGS; i++) {
        struct runner_log *log = &worker->logs[i];
        if (log->dropped_bytes > 0) {
            const char *text = lab_arena_printf(
                &run->arena, "%lld more bytes of %s were dropped: the log keeps %lld of an attempt",
                (long long)log->dropped_bytes, endings[i],
                (long long)runner->patience.log_max_bytes);
            put_line(runner, run, log, lab_arena_printf(&run->arena, "=== %s ===\n", text));
            runner_warn(runner, run, "%s", text);
        }
        lab_file_close(&log->fd);
    }
}

void runner_logs_close(const struct runner *runner, struct runner_run *run) {
    for (int i = 0; i < run->worker_count; i++)
        close_logs(runner, run, &run->workers[i]);
}
