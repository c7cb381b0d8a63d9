/*
 * test_store_crash.c: a writer that is killed at any instant. Each child tells what has been
 * committed only after the call returned; whatever it told must be in the file afterwards, and
 * nothing else may pass for finished.
 */
#include "store_fixture.h"

#include "base/clock.h"
#include "base/random.h"
#include "model/result.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { RUNS = 150, CHUNKS = 3, CHUNK = 40, KILLS = 60 };

/* What a child has told: of each run, how many chunks are in the file and whether its result is. */
struct told {
    int chunks[RUNS + 1];
    bool done[RUNS + 1];
};

struct message {
    int run, chunks; /* 0 = the attempt has begun; CHUNKS + 1 = the result */
};

static void tell(int fd, int run, int chunks) {
    struct message message = {run, chunks};
    if (write(fd, &message, sizeof message) != sizeof message)
        _exit(3);
}

static struct lab_run planned[RUNS];

static void plan_runs(void) {
    for (int i = 0; i < RUNS; i++) {
        planned[i] = two_runs[1];
        planned[i].position = i;
    }
}

static void work(int fd) {
    struct lab_store *store;
    struct lab_run *runs;
    int count;
    int64_t epoch;
    if (lab_store_open(path, LAB_STORE_WRITE, &store, &err) < 0 ||
        lab_store_runs(store, &arena, &runs, &count, &err) < 0 ||
        lab_store_epoch(store, "runner", &epoch, &err) < 0)
        _exit(1);
    for (int i = 0; i < count; i++) {
        if (runs[i].state == LAB_RUN_DONE)
            continue;
        int run = (int)runs[i].number;
        if (lab_store_begin_run(store, run, epoch, 1, &err) < 0)
            _exit(1);
        tell(fd, run, 0);
        for (int chunk = 0; chunk < CHUNKS; chunk++) {
            if (add_iterations(store, run, 0, (int64_t)chunk * CHUNK, CHUNK) < 0)
                _exit(1);
            tell(fd, run, chunk + 1);
        }
        if (lab_store_finish_run(store, run, &a_result, &err) < 0)
            _exit(1);
        tell(fd, run, CHUNKS + 1);
    }
    lab_store_close(store);
    _exit(0);
}

/* Hears at most `count` messages; false when there are no more. */
static bool listen_to(int fd, int count, struct told *told) {
    struct message message;
    for (int i = 0; i < count; i++) {
        if (read(fd, &message, sizeof message) != sizeof message)
            return false;
        if (message.chunks > CHUNKS)
            told->done[message.run] = true;
        else
            told->chunks[message.run] = message.chunks;
    }
    return true;
}

#define NEVER INT_MAX

/* Runs `action` in a child that is killed so long after so many messages. */
static int in_child(void (*action)(int fd), int messages, int64_t delay_ns, struct told *told) {
    int pipe_fds[2];
    /* what earlier children told of unfinished runs no longer holds: the next attempt drops it */
    memset(told->chunks, 0, sizeof told->chunks);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        action(pipe_fds[1]);
    close(pipe_fds[1]);
    if (listen_to(pipe_fds[0], messages, told)) {
        nanosleep(&(struct timespec){0, delay_ns}, NULL);
        kill(child, SIGKILL);
        listen_to(pipe_fds[0], NEVER, told);
    }
    close(pipe_fds[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Returns how many runs are done. */
static int check(const struct told *told) {
    struct lab_store *store = reopen(LAB_STORE_READ);
    struct lab_run *runs;
    int count, running = 0, done = 0;
    assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
    assert_int_equal(count, RUNS);
    for (int i = 0; i < count; i++) {
        int number = (int)runs[i].number;
        size_t iterations = count_iterations(store, number, 0);
        running += runs[i].state == LAB_RUN_RUNNING;
        done += runs[i].state == LAB_RUN_DONE;
        if (told->done[number])
            assert_int_equal(runs[i].state, LAB_RUN_DONE);
        if (runs[i].state == LAB_RUN_DONE) {
            assert_int_equal(iterations, CHUNKS * CHUNK);
            assert_true(runs[i].result->rate == a_result.rate);
        } else {
            assert_null(runs[i].result);
            assert_true(iterations % CHUNK == 0);
            assert_true(iterations >= (size_t)(told->chunks[number] * CHUNK));
        }
    }
    assert_true(running <= 1);
    lab_store_close(store);
    return done;
}

LAB_TEST(what_was_told_survives_a_kill) {
    plan_runs();
    struct lab_store *store;
    assert_works(lab_store_create(path, &a_study, planned, RUNS, &store, &err));
    lab_store_close(store);
    int killed_at_work = 0;
    int before = 0;
    struct told told = {0};
    for (int i = 0; i < KILLS; i++) {
        int status = in_child(work, (int)lab_random_below(1, (uint64_t)i, 3 * (CHUNKS + 2)),
                              (int64_t)lab_random_below(2, (uint64_t)i, 400000), &told);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        int after = check(&told);
        assert_true(after >= before);
        killed_at_work += WIFSIGNALED(status) && after < RUNS && after > before;
        before = after;
    }
    assert_int_equal(in_child(work, NEVER, 0, &told), 0);
    assert_int_equal(check(&told), RUNS);
    print_message("%d of %d kills hit a writer between its first and last result\n", killed_at_work,
                  KILLS);
    assert_int_equal(count_files(folder, false), 1);
}

/* Waits to be killed when a run has begun and left chunks: the point is certain, not hit by
 * chance. */
static void leave_a_run(int fd) {
    struct lab_store *store;
    int64_t epoch;
    if (lab_store_open(path, LAB_STORE_WRITE, &store, &err) < 0 ||
        lab_store_epoch(store, "runner", &epoch, &err) < 0 ||
        lab_store_begin_run(store, 1, epoch, 1, &err) < 0 ||
        lab_store_finish_run(store, 1, &a_result, &err) < 0 ||
        lab_store_begin_run(store, 2, epoch, 1, &err) < 0 || add_iterations(store, 2, 0, 0, 10) < 0)
        _exit(1);
    tell(fd, 1, CHUNKS + 1);
    raise(SIGKILL);
}

LAB_TEST(a_run_without_result_is_found_running) {
    lab_store_close(create(path));
    struct told told = {0};
    assert_true(WIFSIGNALED(in_child(leave_a_run, NEVER, 0, &told)));
    assert_true(told.done[1]);
    struct lab_store *store = reopen(LAB_STORE_READ);
    assert_int_equal(read_run(store, 1).state, LAB_RUN_DONE);
    assert_int_equal(read_run(store, 2).state, LAB_RUN_RUNNING);
    assert_int_equal(count_iterations(store, 2, 0), 10);
    lab_store_close(store);
    lab_store_close(reopen(LAB_STORE_WRITE));
    assert_int_equal(count_files(folder, false), 1);
}

static void make_file(int fd) {
    struct lab_store *store;
    close(fd);
    _exit(lab_store_create(path, &a_study, planned, RUNS, &store, &err) < 0);
}

LAB_TEST(a_new_file_is_whole_or_not_there) {
    plan_runs();
    struct told told = {0};
    int64_t start_ns = lab_clock_now(lab_clock_system());
    assert_int_equal(in_child(make_file, NEVER, 0, &told), 0);
    uint64_t usual_ns = (uint64_t)(lab_clock_now(lab_clock_system()) - start_ns);
    count_files(folder, true);
    int whole = 0;
    for (int i = 0; i < 30; i++) {
        int status =
            in_child(make_file, 0, (int64_t)lab_random_below(7, (uint64_t)i, usual_ns), &told);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        if (access(path, F_OK) == 0) {
            assert_int_equal(check(&told), 0);
            whole++;
        } else {
            assert_true(WIFSIGNALED(status));
        }
        count_files(folder, true);
    }
    print_message("the file was there after %d of 30 kills\n", whole);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
