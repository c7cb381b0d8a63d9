/*
 * rogue.h: workers for the runner's tests, good ones and all sorts of bad ones. A test program that
 * includes it calls rogue_main first thing in main: started with "rogue" it is such a worker. What
 * it does says the run's id, up to the first point: "crash.3" crashes.
 */
#pragma once

#include "run/frame.h"
#include "run/job.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct lab_arena rogue_arena;
static struct lab_frame_reader rogue_reader;
static struct lab_job rogue_job;

static void rogue_sleep(int milliseconds) {
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

static _Noreturn void rogue_hang(void) {
    for (;;)
        rogue_sleep(1000);
}

/* --- talking --- */

static void rogue_send(const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t put = send(LAB_WORKER_FD, bytes, length, MSG_NOSIGNAL);
        if (put <= 0)
            _exit(9);
        bytes += put;
        length -= (size_t)put;
    }
}

static void rogue_say(struct lab_frame frame) {
    struct lab_str bytes;
    lab_str_init(&bytes);
    lab_frame_write(&frame, &bytes);
    rogue_send(bytes.text, bytes.length);
    lab_str_release(&bytes);
}

#define SAY(...) rogue_say((struct lab_frame){__VA_ARGS__})

/* Waits for a frame of the runner; ends where there will be none. */
static struct lab_frame rogue_hear(enum lab_frame_type type) {
    for (;;) {
        struct lab_frame frame;
        char bytes[4096];
        int got = lab_frame_reader_next(&rogue_reader, &rogue_arena, &frame, NULL);
        if (got > 0 && frame.type == type)
            return frame;
        if (got != 0)
            _exit(8);
        ssize_t length = recv(LAB_WORKER_FD, bytes, sizeof bytes, 0);
        if (length <= 0)
            _exit(7);
        lab_frame_reader_feed(&rogue_reader, bytes, (size_t)length);
    }
}

static void rogue_hello(void) {
    SAY(.type = LAB_FRAME_HELLO, .hello = {LAB_FRAME_VERSION, getpid(), rogue_job.gang_size});
}

static void rogue_phase(const char *phase) {
    for (int i = 0; i < rogue_job.rank_count; i++)
        SAY(.type = LAB_FRAME_PHASE, .rank = rogue_job.ranks[i].index, .text = phase);
}

static void rogue_ready(void) {
    rogue_hello();
    rogue_phase("warm-up");
    for (int i = 0; i < rogue_job.rank_count; i++)
        SAY(.type = LAB_FRAME_READY, .rank = rogue_job.ranks[i].index);
    rogue_hear(LAB_FRAME_GO);
    rogue_phase("measuring");
}

static void rogue_iterations(int rank, int64_t first, size_t count) {
    struct lab_iteration *items = lab_arena_alloc(&rogue_arena, count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        /* steps that don't pack well, so that the store has something to store */
        items[i].start_ns = 1000000 * (first + (int64_t)i) + (int64_t)(i * 7919 % 104729);
        items[i].end_ns = items[i].start_ns + 500 + (int64_t)(i * i % 65537);
    }
    SAY(.type = LAB_FRAME_ITERATIONS, .rank = rank, .iterations = {first, items, count});
}

/* Rank r has the rate 100 + r, and measured from 1000 + 100·r to 2000. */
static void rogue_result(int rank) {
    struct lab_result result = lab_result_none;
    result.rate = result.samples_per_second = 100 + rank;
    result.rate_low = 90 + rank;
    result.rate_high = 110.5 + rank;
    result.rate_unit = "samples/s";
    result.latency_ms_mean = 7 - rank;
    result.peak_memory_mb = 3;
    result.first_ns = 1000 + 100 * rank;
    result.last_ns = 2000;
    result.placement_proven = true;
    lab_result_warn(&result, &rogue_arena, "it is warm");
    lab_result_warn(&result, &rogue_arena, "it is warm");
    lab_result_warn(&result, &rogue_arena, lab_arena_printf(&rogue_arena, "node %d is far", rank));
    SAY(.type = LAB_FRAME_RESULT, .rank = rank, .result = &result);
}

/* A RESULT with this payload. */
static void rogue_result_bytes(const char *bytes, size_t length) {
    char header[8] = {(char)length, (char)(length >> 8), 0, 0, LAB_FRAME_RESULT};
    rogue_send(header, sizeof header);
    rogue_send(bytes, length);
}
#define ROGUE_RESULT(literal) rogue_result_bytes(literal, sizeof literal - 1)

static void rogue_measure(void) {
    for (int i = 0; i < rogue_job.rank_count; i++) {
        int rank = rogue_job.ranks[i].index;
        int64_t count = rogue_job.iterations;
        rogue_iterations(rank, 0, (size_t)count);
        SAY(.type = LAB_FRAME_PROGRESS, .rank = rank, .progress = {count, count});
        SAY(.type = LAB_FRAME_METRICS, .rank = rank,
            .metrics = {&(struct lab_reported_metric){"loss", "nats", 0.5, 1, -1, 77}, 1});
    }
}

static _Noreturn void rogue_finish(void) {
    for (int i = 0; i < rogue_job.rank_count; i++)
        rogue_result(rogue_job.ranks[i].index);
    rogue_hear(LAB_FRAME_ACK);
    _exit(0);
}

static _Noreturn void rogue_good(void) {
    rogue_ready();
    SAY(.type = LAB_FRAME_WARNING, .rank = rogue_job.ranks[0].index, .text = "look \033[31m out");
    rogue_measure();
    rogue_finish();
}

/* --- files of the test's folder: who was here --- */

static const char *rogue_path(const char *name) {
    return lab_arena_printf(&rogue_arena, "%s/%s", rogue_job.folder, name);
}

static bool rogue_leave_note(const char *name) {
    int fd = open(rogue_path(name), O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* --- families --- */

static void rogue_note_pid(void) {
    char line[32];
    int fd = open(rogue_path("pids"), O_CREAT | O_APPEND | O_WRONLY, 0666);
    int length = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (write(fd, line, (size_t)length) != length)
        _exit(6);
    close(fd);
}

static int rogue_count_pids(void) {
    struct stat status;
    int lines = 0;
    char text[4096];
    if (stat(rogue_path("pids"), &status) < 0)
        return 0;
    int fd = open(rogue_path("pids"), O_RDONLY);
    ssize_t length = read(fd, text, sizeof text);
    close(fd);
    for (ssize_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

/* A son, a daughter with a session of her own, and a daemon whose parent ended; none obeys TERM. */
static void rogue_found_family(void) {
    signal(SIGTERM, SIG_IGN);
    for (int kind = 0; kind < 3; kind++) {
        if (fork() != 0)
            continue;
        if (kind > 0)
            setsid();
        if (kind == 2 && fork() != 0)
            _exit(0);
        rogue_note_pid();
        rogue_hang();
    }
    while (rogue_count_pids() < 3)
        rogue_sleep(5);
}

/* --- the bad --- */

/* Before its GO. */
static void rogue_lie_early(const char *lie) {
    if (strcmp(lie, "version") == 0)
        SAY(.type = LAB_FRAME_HELLO, .hello = {LAB_FRAME_VERSION + 1, getpid(), 1});
    else if (strcmp(lie, "ranks") == 0)
        SAY(.type = LAB_FRAME_HELLO, .hello = {LAB_FRAME_VERSION, getpid(), 3});
    else
        rogue_hello();
    if (strcmp(lie, "early") == 0)
        rogue_iterations(0, 0, 1);
    else if (strcmp(lie, "early_result") == 0)
        rogue_result(0);
    else if (strcmp(lie, "early_meet") == 0)
        SAY(.type = LAB_FRAME_MEET, .willing = true);
    else if (strcmp(lie, "version") != 0 && strcmp(lie, "ranks") != 0)
        return;
    rogue_hang();
}

static void rogue_sample(int entity, int64_t time_ns) {
    static const struct lab_column column = {LAB_METRIC_POWER, -1};
    int64_t value = 1000;
    SAY(.type = LAB_FRAME_ENTITY, .entity = {0,
                                             {.id = "",
                                              .name = "",
                                              .pci = "",
                                              .parent = -1,
                                              .columns = &column,
                                              .column_count = 1}});
    SAY(.type = LAB_FRAME_TICKS, .ticks = {entity, 1, &time_ns, &value, 1});
}

static void rogue_lie(const char *lie) {
    rogue_lie_early(lie);
    for (int i = 0; i < rogue_job.rank_count; i++)
        SAY(.type = LAB_FRAME_READY, .rank = rogue_job.ranks[i].index);
    rogue_hear(LAB_FRAME_GO);
    if (strcmp(lie, "sampled") == 0)
        rogue_sample(0, 0);
    else if (strcmp(lie, "sampled_before") == 0)
        rogue_sample(0, rogue_job.start_ns - 1);
    else if (strcmp(lie, "sampled_nobody") == 0)
        rogue_sample(1, rogue_job.start_ns);
    else if (strcmp(lie, "garbage") == 0)
        rogue_send("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9);
    else if (strcmp(lie, "rank") == 0)
        rogue_result(1 - rogue_job.ranks[0].index);
    else if (strcmp(lie, "gap") == 0)
        rogue_iterations(0, 1, 2);
    else if (strcmp(lie, "many") == 0)
        rogue_iterations(0, 0, (size_t)rogue_job.iterations + 1);
    else if (strcmp(lie, "ready") == 0)
        SAY(.type = LAB_FRAME_READY);
    else if (strcmp(lie, "order") == 0)
        SAY(.type = LAB_FRAME_GO);
    else if (strcmp(lie, "list") == 0)
        ROGUE_RESULT("\1\0warnings\0l\xff\xff\xff\xff");
    else if (strcmp(lie, "json") == 0)
        ROGUE_RESULT("\1\0tuning\0j{\"rate\": \0");
    else if (strcmp(lie, "rate") == 0)
        ROGUE_RESULT("\1\0rate\0tfast\0");
    else if (strcmp(lie, "infinite") == 0)
        ROGUE_RESULT("\1\0rate\0n\0\0\0\0\0\0\xf0\x7f");
    else if (strcmp(lie, "cut") == 0)
        ROGUE_RESULT("\2\0rate\0n\0\0\0\0\0\0\x59\x40");
    else if (strcmp(lie, "twice") == 0 || strcmp(lie, "late") == 0) {
        struct lab_str bytes;
        struct lab_frame frame = {.type = LAB_FRAME_RESULT, .result = &lab_result_none};
        lab_str_init(&bytes);
        lab_frame_write(&frame, &bytes);
        if (strcmp(lie, "late") == 0)
            frame = (struct lab_frame){
                .type = LAB_FRAME_ITERATIONS,
                .iterations = {0, &(struct lab_iteration){.start_ns = 1, .end_ns = 2}, 1}};
        lab_frame_write(&frame, &bytes);
        rogue_send(bytes.text, bytes.length);
        lab_str_release(&bytes);
    }
    rogue_hang();
}

static void rogue_flood_output(void) {
    char block[1000];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 5000; i++)
        if (write(STDOUT_FILENO, block, sizeof block) < 0)
            _exit(5);
}

static void rogue_flood_frames(void) {
    rogue_ready();
    for (;;)
        SAY(.type = LAB_FRAME_PROGRESS, .progress = {1, 2});
}

static void rogue_fail(enum lab_err_code code, const char *text) {
    rogue_hello();
    rogue_phase("opening");
    SAY(.type = LAB_FRAME_FAILURE, .rank = rogue_job.ranks[0].index, .failure = {code, text});
    _exit(1);
}

static void rogue_crash(int signal_number) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Only in company: waits until as many as the number behind the name are here. */
static void rogue_meet(int count) {
    rogue_note_pid();
    while (rogue_count_pids() < count)
        rogue_sleep(2);
}

static void rogue_behave(const char *mode, const char *rest) {
    if (strcmp(mode, "good") == 0)
        rogue_good();
    if (strcmp(mode, "meet") == 0) {
        rogue_meet(2);
        rogue_good();
    }
    if (strcmp(mode, "alone") == 0) { /* nobody else is here meanwhile */
        if (!rogue_leave_note("lock"))
            rogue_fail(LAB_ERR_USER, "somebody else is here");
        rogue_ready();
        rogue_sleep(20);
        unlink(rogue_path("lock"));
        rogue_measure();
        rogue_finish();
    }
    if (strcmp(mode, "slowly") ==
        0) { /* says how far it is, twice, and longer apart than is written */
        rogue_ready();
        SAY(.type = LAB_FRAME_PROGRESS, .rank = rogue_job.ranks[0].index, .progress = {1, 5});
        rogue_sleep(1200);
        SAY(.type = LAB_FRAME_PROGRESS, .rank = rogue_job.ranks[0].index, .progress = {2, 5});
        rogue_sleep(100);
        rogue_measure();
        rogue_finish();
    }
    if (strcmp(mode, "prints") == 0) {
        printf("to stdout\n");
        fprintf(stderr, "to stderr\n");
        fflush(stdout);
        rogue_good();
    }
    if (strcmp(mode, "crash") == 0) {
        rogue_ready();
        rogue_crash(SIGSEGV);
    }
    if (strcmp(mode, "killed") == 0)
        raise(SIGKILL);
    if (strcmp(mode, "silent") == 0)
        _exit(0);
    if (strcmp(mode, "exit") == 0)
        _exit(3);
    if (strcmp(mode, "forever") == 0) {
        rogue_ready();
        rogue_hang();
    }
    if (strcmp(mode, "mute") == 0)
        rogue_hang();
    if (strcmp(mode, "stubborn") == 0) {
        signal(SIGTERM, SIG_IGN);
        rogue_hang();
    }
    if (strcmp(mode, "lie") == 0)
        rogue_lie(rest);
    if (strcmp(mode, "flood") == 0) {
        rogue_flood_output();
        rogue_good();
    }
    if (strcmp(mode, "frames") == 0)
        rogue_flood_frames();
    if (strcmp(mode, "closes") == 0) {
        rogue_hello();
        for (int fd = 0; fd < 100; fd++)
            close(fd);
        rogue_hang();
    }
    if (strcmp(mode, "lingers") == 0) {
        rogue_ready();
        rogue_result(0);
        rogue_hang();
    }
    if (strcmp(mode, "dies_late") == 0 || strcmp(mode, "exits_late") == 0) {
        rogue_ready();
        rogue_result(0);
        rogue_hear(LAB_FRAME_ACK);
        if (strcmp(mode, "exits_late") == 0)
            _exit(3);
        rogue_crash(SIGSEGV);
    }
    if (strcmp(mode, "second") == 0) { /* works at the second attempt */
        if (rogue_leave_note("tried"))
            rogue_crash(SIGABRT);
        rogue_good();
    }
    if (strcmp(mode, "user") == 0 && strcmp(rest, "long") == 0) { /* 2 bytes each */
        struct lab_str text;
        lab_str_init(&text);
        lab_str_add_repeat(&text, "\xc3\xa9", 4000);
        rogue_fail(LAB_ERR_USER, text.text);
    }
    if (strcmp(mode, "user") == 0)
        rogue_fail(LAB_ERR_USER, "there is no\n\033[1msuch thing");
    if (strcmp(mode, "system") == 0)
        rogue_fail(LAB_ERR_SYSTEM, "the system refuses");
    if (strcmp(mode, "invalid") == 0) {
        rogue_ready();
        struct lab_result result = lab_result_none;
        lab_result_spoil(&result, &rogue_arena, "a stranger was here");
        SAY(.type = LAB_FRAME_RESULT, .result = &result);
        rogue_hear(LAB_FRAME_ACK);
        _exit(0);
    }
    if (strcmp(mode, "family") == 0) {
        rogue_found_family();
        if (strcmp(rest, "good") == 0)
            rogue_good();
        if (strcmp(rest, "crash") == 0)
            rogue_crash(SIGSEGV);
        rogue_ready();
        rogue_hang();
    }
    if (strcmp(mode, "partner") == 0) { /* rank 1 crashes, rank 0 would wait for ever */
        rogue_ready();
        if (rogue_job.ranks[0].index == 1)
            rogue_crash(SIGSEGV);
        rogue_hang();
    }
    if (strcmp(mode, "assemble") == 0) { /* each rank is unwilling once; rank 1 may desert */
        rogue_ready();
        int own = rogue_job.ranks[0].index;
        for (int meeting = 0; meeting < 3; meeting++) {
            if (own == 1 && strcmp(rest, "crash") == 0)
                rogue_crash(SIGSEGV);
            SAY(.type = LAB_FRAME_MEET, .rank = own, .willing = meeting != own);
            if (rogue_hear(LAB_FRAME_MEET).willing != (meeting == 2))
                rogue_fail(LAB_ERR_USER, "the answer is another");
        }
        rogue_measure();
        rogue_finish();
    }
    if (strcmp(mode, "where") == 0) { /* where it may run */
        cpu_set_t cpus;
        sched_getaffinity(0, sizeof cpus, &cpus);
        printf("%d\n", CPU_COUNT(&cpus));
        fflush(stdout);
        rogue_good();
    }
    if (strcmp(mode, "descriptors") == 0) { /* what is open, and nothing else */
        char text[32] = "";
        for (int fd = 0; fd < 64; fd++)
            text[fd < 16 ? fd : 15] = fcntl(fd, F_GETFD) >= 0          ? 'x'
                                      : text[fd < 16 ? fd : 15] == 'x' ? 'x'
                                                                       : '-';
        printf("%s\n", text);
        fflush(stdout);
        rogue_good();
    }
    _exit(4);
}

/* Does not return in a worker. */
static void rogue_main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "rogue") != 0)
        return;
    lab_arena_init(&rogue_arena);
    lab_frame_reader_init(&rogue_reader);
    rogue_reader.rank_count = 1;
    const char *text = rogue_hear(LAB_FRAME_JOB).text;
    if (lab_job_read(text, strlen(text), &rogue_arena, &rogue_job, NULL) < 0)
        _exit(11);
    char mode[64];
    snprintf(mode, sizeof mode, "%s", rogue_job.run_id);
    char *point = strchr(mode, '.');
    if (point)
        *point = '\0';
    rogue_behave(mode, point ? point + 1 : "");
    _exit(4);
}
