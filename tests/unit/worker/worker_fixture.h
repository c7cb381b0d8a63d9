/*
 * worker_fixture.h: a runner for tests. The test program starts itself again as the worker, so that
 * processes, sockets and deaths are real; it is a subreaper, so that whatever a worker leaves
 * behind becomes its child and can be waited for.
 */
#pragma once

#include "base/clock.h"
#include "base/json.h"
#include "run/frame.h"
#include "run/job.h"
#include "worker/worker.h"
#include "workload/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define NO_CONVERSATION 100                 /* exit status of a worker that got no job */
#define PATIENCE_NS     (30 * LAB_NS_PER_S) /* against hanging; a sanitized build is slow */

extern char **environ;

static struct lab_arena arena;

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_arena_release(&arena);
    return 0;
}

/* --- the worker's side --- */

/* A program's `begin`: as "worker" it is one. */
static int worker_begin(int argc, char **argv) {
    struct lab_err err = LAB_ERR_INIT;
    if (argc != 2 || !lab_str_equal(argv[1], "worker"))
        return LAB_TEST_GO;
    int status = lab_worker_run(LAB_WORKER_FD, &err);
    if (status >= 0)
        return status;
    dprintf(STDOUT_FILENO, "%s", err.text);
    return NO_CONVERSATION;
}

/* --- the runner's side --- */

struct runner {
    int fd, output; /* the socket, and what the worker prints */
    pid_t pid;
    struct lab_frame_reader reader;
};

static int64_t now_ns(void) {
    return lab_clock_now(lab_clock_system());
}

/* Starts a worker on those two ends. */
static pid_t spawn_worker(int socket_end, int output_end) {
    char *argv[] = {(char[]){"test"}, (char[]){LAB_WORKER_COMMAND}, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output_end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket_end, LAB_WORKER_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    int why = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return why ? -1 : pid;
}

/* Both ends of both channels, ours first, above what the worker's own ones will be. */
static void open_channels(int sockets[2], int pipes[2]) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    if (sockets[1] == LAB_WORKER_FD || pipes[1] == LAB_WORKER_FD) {
        int *low = sockets[1] == LAB_WORKER_FD ? &sockets[1] : &pipes[1];
        int high = fcntl(*low, F_DUPFD_CLOEXEC, LAB_WORKER_FD + 1);
        close(*low);
        *low = high;
    }
}

static struct runner start_worker(void) {
    struct runner runner = {0};
    int sockets[2], pipes[2];
    open_channels(sockets, pipes);
    runner.pid = spawn_worker(sockets[1], pipes[1]);
    assert_true(runner.pid > 0);
    close(sockets[1]);
    close(pipes[1]);
    runner.fd = sockets[0];
    runner.output = pipes[0];
    lab_frame_reader_init(&runner.reader);
    return runner;
}

static void say(struct runner *runner, struct lab_frame frame) {
    struct lab_str bytes;
    lab_str_init(&bytes);
    lab_frame_write(&frame, &bytes);
    send(runner->fd, bytes.text, bytes.length, MSG_NOSIGNAL);
    lab_str_release(&bytes);
}

/* The next frame; false at the end of the conversation. */
static bool hear(struct runner *runner, struct lab_frame *ret_frame) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t until_ns = now_ns() + PATIENCE_NS;
    for (;;) {
        int status = lab_frame_reader_next(&runner->reader, &arena, ret_frame, &err);
        if (status < 0)
            fail_msg("the worker lies: %s", err.text);
        if (status > 0)
            return true;
        struct pollfd fd = {runner->fd, POLLIN, 0};
        int64_t left_ns = until_ns - now_ns();
        if (left_ns <= 0 || poll(&fd, 1, (int)(left_ns / LAB_NS_PER_MS) + 1) == 0)
            fail_msg("the worker is silent");
        char bytes[65536];
        ssize_t length = recv(runner->fd, bytes, sizeof bytes, 0);
        if (length <= 0)
            return false;
        lab_frame_reader_feed(&runner->reader, bytes, (size_t)length);
    }
}

/* The next frame of that type; those before it are left out. */
static struct lab_frame hear_type(struct runner *runner, enum lab_frame_type type) {
    struct lab_frame frame;
    while (hear(runner, &frame)) {
        if (frame.type == LAB_FRAME_FAILURE && type != LAB_FRAME_FAILURE)
            fail_msg("the worker failed: %s", frame.failure.text);
        if (frame.type == type)
            return frame;
    }
    fail_msg("the conversation ended without a frame of type %d", (int)type);
    return (struct lab_frame){0};
}

/* Waits until a child has ended; returns its status as wait gives it. */
static int wait_ended(pid_t pid) {
    int status = 0;
    int64_t until_ns = now_ns() + PATIENCE_NS;
    pid_t ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == ECHILD)) {
        /* ECHILD: it isn't ours yet, its parent has still to end */
        if (now_ns() > until_ns)
            fail_msg("process %d is still there", (int)pid);
        usleep(2000);
    }
    assert_int_equal(ended, pid);
    return status;
}

/* Waits for the worker's end and closes our side; returns the exit status, -1 for a signal. */
static int end_worker(struct runner *runner) {
    int status = wait_ended(runner->pid);
    if (runner->fd >= 0)
        close(runner->fd);
    close(runner->output);
    lab_frame_reader_release(&runner->reader);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- jobs --- */

/* Every key of the workload: its defaults, and what `words` ("depth=2 …", NULL-terminated) say. */
static struct lab_value *options_of(const char *workload_name, const char *const *words) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_workload *workload = lab_workload_find(workload_name, &err);
    assert_non_null(workload);
    void *config = lab_workload_config(workload, &arena);
    for (; words && *words; words++)
        if (lab_options_set_word(workload->options, config, &arena, *words, &err) < 0)
            fail_msg("%s", err.text);
    return lab_options_to_map(workload->options, config, &arena);
}

static struct lab_job job_of(const char *workload, const char *const *words,
                             const struct lab_job_rank *ranks, int rank_count) {
    return (struct lab_job){.run_id = "gpu0_numa0_test",
                            .folder = "",
                            .workload = workload,
                            .options = options_of(workload, words),
                            .ranks = ranks,
                            .rank_count = rank_count,
                            .gang_size = rank_count,
                            .iterations = 200,
                            .warmup_iterations = 10,
                            .seed = 42};
}

static void send_job(struct runner *runner, const struct lab_job *job) {
    struct lab_str text;
    lab_str_init(&text);
    lab_job_write(job, &text);
    say(runner, (struct lab_frame){.type = LAB_FRAME_JOB, .text = text.text});
    lab_str_release(&text);
}

static struct runner start_job(const struct lab_job *job) {
    struct runner runner = start_worker();
    send_job(&runner, job);
    return runner;
}

static void say_go(struct runner *runner) {
    say(runner, (struct lab_frame){.type = LAB_FRAME_GO});
}

static void say_ack(struct runner *runner) {
    say(runner, (struct lab_frame){.type = LAB_FRAME_ACK});
}

/* A rank's result as JSON has it. */
static inline struct lab_value *value_of(const struct lab_result *result) {
    return lab_result_value(result, LAB_RESULT_RANK_VIEW, NULL, &arena);
}

/* A number of a result, however it is written; a path has one dot at most. */
static inline double number(const struct lab_value *result, const char *path) {
    const char *dot = strchr(path, '.');
    if (dot) {
        result = lab_value_get(result, lab_arena_strndup(&arena, path, (size_t)(dot - path)));
        path = dot + 1;
    }
    const struct lab_value *value = lab_value_get(result, path);
    if (!value || (value->type != LAB_VALUE_INT && value->type != LAB_VALUE_FLOAT))
        fail_msg("%s is no number", path);
    return value->type == LAB_VALUE_INT ? (double)value->integer : value->number;
}

static inline bool is_null(const struct lab_value *result, const char *key) {
    const struct lab_value *value = lab_value_get(result, key);
    return value && value->type == LAB_VALUE_NULL;
}
