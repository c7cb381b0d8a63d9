/*
 * test_recording_trouble.c: a recorder that is killed, whose disk is full, whose file is taken
 * away, and one that runs for a day.
 */
#include "recording_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* --- killed --- */

/* Records until it is killed after a flush and some ticks more; how far the flush went is told. */
static void record_until_killed(int fd, int64_t ticks) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    int64_t flushed = 0;
    for (int64_t k = 0; k < ticks; k++) {
        send_tick(&sink, GPU, k);
        now_ns = tick_time(k);
        if (now_ns - recorder->flushed_ns >= LAB_NS_PER_S)
            flushed = k + 1;
        if (lab_recorder_flush(recorder, false, &err) < 0)
            _exit(1);
    }
    if (write(fd, &flushed, sizeof flushed) == sizeof flushed)
        raise(SIGKILL);
    _exit(1);
}

LAB_TEST(a_kill_loses_at_most_a_second) {
    for (int64_t ticks = 15; ticks < 900; ticks += 177) {
        int fds[2], status;
        int64_t flushed = 0;
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            record_until_killed(fds[1], ticks);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(read(fds[0], &flushed, sizeof flushed), sizeof flushed);
        close(fds[0]);
        close(fds[1]);
        assert_true(flushed >= ticks - 11);
        struct lab_recording recording = read_back(path, NULL);
        check_ticks(track_of(&recording, GPU), GPU, 0, flushed);
        assert_only_open(recording);
        count_files(folder, true);
    }
}

/* --- a full disk --- */

/* No more pages than these, or than there are now. */
static void limit_pages(struct lab_recorder *recorder, int pages) {
    assert_works(lab_store_exec(
        recorder->store, lab_arena_printf(&arena, "PRAGMA max_page_count = %d", pages), &err));
}

/* Sends ticks and flushes as a sampler would; counts the refusals that were told. */
static int go_on(struct lab_recorder *recorder, int64_t from, int64_t until) {
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    int refusals = 0;
    for (int64_t k = from; k < until; k++) {
        send_tick(&sink, GPU, k);
        now_ns = tick_time(k);
        if (lab_recorder_flush(recorder, false, &err) < 0) {
            assert_int_equal(err.code, LAB_ERR_SYSTEM);
            assert_string_equal(err.text, lab_arena_printf(&arena, "%s: no space left", path));
            err = LAB_ERR_INIT;
            refusals++;
        }
    }
    return refusals;
}

LAB_TEST(a_full_disk_is_told_once_and_costs_nothing) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    assert_int_equal(go_on(recorder, 0, 300), 0);
    limit_pages(recorder, 1);
    assert_int_equal(go_on(recorder, 300, 3000), 1);
    assert_refused(lab_recorder_flush(recorder, true, &err), LAB_ERR_SYSTEM, "no space left");
    limit_pages(recorder, 1 << 30);
    assert_int_equal(go_on(recorder, 3000, 3100), 0);
    limit_pages(recorder, 1); /* a second time is news again */
    assert_int_equal(go_on(recorder, 3100, 6000), 1);
    limit_pages(recorder, 1 << 30);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 0, 6000);
    assert_int_equal(recording.event_count, 0);
    assert_all_there(recording);
}

LAB_TEST(what_had_to_be_dropped_is_counted) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    assert_int_equal(go_on(recorder, 0, 300), 0);
    limit_pages(recorder, 1);
    int64_t k = 300;
    for (; recorder->dropped < 1000; k += 256)
        send_ticks(&sink, GPU, k, k + 256);
    assert_true(recorder->waiting_bytes <= LAB_RECORDER_BYTES_MAX);
    assert_true(recorder->waiting_bytes > LAB_RECORDER_BYTES_MAX - 4096);
    int64_t dropped = recorder->dropped;
    assert_refused(lab_recorder_flush(recorder, true, &err), LAB_ERR_SYSTEM, "no space left");
    limit_pages(recorder, 1 << 30);
    assert_works(lab_recorder_close(recorder, &err));

    struct lab_recording recording = read_back(path, NULL);
    const struct lab_track *track = track_of(&recording, GPU);
    assert_int_equal(track->count, k - dropped);
    assert_int_equal(recording.event_count, 1);
    const struct lab_sample_event *event = &recording.events[0];
    assert_int_equal(event->kind, LAB_EVENT_NOT_STORED);
    assert_int_equal(event->entity, -1);
    assert_int_equal(event->number, dropped);
    assert_contains(event->text, "no space left");
    assert_all_there(recording);
}

/* A new process a second, whose command is long. */
static void send_processes(const struct lab_sink_samples *sink, int64_t from, int64_t until) {
    static char command[4096];
    memset(command, 'x', sizeof command - 1);
    for (int64_t s = from; s < until; s++) {
        struct lab_process_sample item = {.pid = (int32_t)s,
                                          .start = (uint64_t)s,
                                          .user = "",
                                          .name = "it",
                                          .command = command,
                                          .container = "",
                                          .advice = "",
                                          .cpu_percent = NAN,
                                          .threads = 1};
        now_ns = s * LAB_NS_PER_S;
        sink->processes(sink->state,
                        &(struct lab_process_list){.time_ns = now_ns, .items = &item, .count = 1});
    }
}

/* Rows that name processes wait, too: beyond a quarter of the room all that waits of processes goes, for
 * chunks without their rows say nothing. What comes later, and ticks, are kept. */
LAB_TEST(processes_that_nobody_would_know_are_dropped) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    assert_int_equal(go_on(recorder, 0, 300), 0);
    send_processes(&sink, 31, 41);
    assert_works(lab_recorder_flush(recorder, true, &err));
    limit_pages(recorder, 1);
    send_ticks(&sink, GPU, 411, 700);
    int64_t s = 100;
    for (; recorder->processes.fresh_bytes > 0 || s == 100; s++) {
        size_t before = recorder->processes.fresh_bytes;
        send_processes(&sink, s, s + 1);
        assert_true(recorder->processes.fresh_bytes <= LAB_RECORDER_BYTES_MAX / 4);
        assert_true(recorder->processes.fresh_bytes > before ||
                    before + 5000 > LAB_RECORDER_BYTES_MAX / 4);
    }
    assert_true(s > 400); /* 4 KiB each */
    for (const struct lab_recorder_sealed *item = recorder->sealed; item; item = item->next)
        assert_non_null(item->entity);
    send_processes(&sink, s, s + 5);
    send_ticks(&sink, GPU, s * 10, s * 10 + 300);
    limit_pages(recorder, 1 << 30);
    assert_works(lab_recorder_close(recorder, &err));

    struct lab_recording recording = read_back(path, NULL);
    assert_int_equal(track_of(&recording, GPU)->count, 300 + 289 + 300);
    assert_int_equal(recording.process_count, 10 + 5);
    for (int i = 0; i < 15; i++) {
        const struct lab_process_sample *item = &recording.processes[i].items[0];
        assert_int_equal(item->pid, i < 10 ? 31 + i : s + i - 10);
        assert_int_equal(strlen(item->command), 4095);
    }
    assert_all_there(recording);
}

LAB_TEST(events_that_find_no_room_are_dropped_oldest_first) {
    static char text[1 << 16];
    memset(text, 'x', sizeof text - 1);
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int i = 0; i < 200; i++)
        sink.event(
            sink.state,
            &(struct lab_sample_event){
                .entity = GPU, .time_ns = i, .kind = LAB_EVENT_XID, .number = i, .text = text});
    assert_true(recorder->waiting_bytes <= LAB_RECORDER_BYTES_MAX);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    int kept = LAB_RECORDER_BYTES_MAX / (int)(sizeof text + sizeof(struct lab_recorder_event));
    assert_int_equal(recording.event_count, kept);
    for (int i = 0; i < kept; i++)
        assert_int_equal(recording.events[i].number, 200 - kept + i);
}

static int unmount(void **state) {
    const char *disk = lab_arena_printf(&arena, "%s/disk", folder);
    umount2(disk, MNT_DETACH);
    rmdir(disk);
    return tear_down(state);
}

LAB_TEST_WITH(a_disk_that_is_really_full, set_up, unmount) {
    const char *disk = lab_arena_printf(&arena, "%s/disk", folder);
    assert_int_equal(mkdir(disk, 0700), 0);
    if (mount("none", disk, "tmpfs", 0, "size=512k") < 0) {
        rmdir(disk);
        print_message("SKIPPED: a small disk can't be mounted here: %s\n", strerror(errno));
        skip();
    }
    path = lab_arena_printf(&arena, "%s/a.rec", disk);
    const char *filler = lab_arena_printf(&arena, "%s/filler", disk);
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    assert_int_equal(go_on(recorder, 0, 100), 0);
    static const char zeros[4096];
    int fd = open(filler, O_WRONLY | O_CREAT, 0666);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    close(fd);
    /* a WAL that starts anew has room once more, so it may be told again, but not each second */
    int refusals = go_on(recorder, 100, 2000);
    assert_true(refusals >= 1 && refusals <= 5);
    unlink(filler);
    assert_int_equal(go_on(recorder, 2000, 2100), 0);
    assert_works(lab_recorder_close(recorder, &err));
    assert_int_equal(count_files(disk, false), 1);
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 0, 2100);
}

/* --- a file that is taken away, or can't be made --- */

LAB_TEST(a_file_that_is_gone_is_noticed) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    unlink(path);
    now_ns = 2 * LAB_NS_PER_S;
    assert_refused(lab_recorder_flush(recorder, false, &err), LAB_ERR_SYSTEM, "is gone");
    now_ns = 4 * LAB_NS_PER_S;
    assert_works(lab_recorder_flush(recorder, false, &err));
    assert_refused(lab_recorder_close(recorder, &err), LAB_ERR_SYSTEM, "is gone");
}

LAB_TEST(nothing_that_is_there_is_written_over) {
    const struct lab_recorder_setup setup = {.interval_ns = TICK_NS};
    struct lab_recorder *recorder;
    lab_store_close(create(path));
    assert_refused(lab_recorder_create(path, &setup, &recorder, &err), LAB_ERR_USER,
                   "exists already");
    assert_refused(lab_recorder_create(folder, &setup, &recorder, &err), LAB_ERR_USER,
                   "exists already");
    assert_refused(lab_recorder_create("/no/such/folder/a.rec", &setup, &recorder, &err),
                   LAB_ERR_USER, "/no/such/folder/a.rec can't be made: No such file");
    const char *other = lab_arena_printf(&arena, "%s/a.rec", folder);
    const char *wal = lab_arena_printf(&arena, "%s-wal", other);
    close(open(wal, O_WRONLY | O_CREAT, 0666));
    assert_refused(lab_recorder_create(other, &setup, &recorder, &err), LAB_ERR_USER,
                   "may hold samples of a recording that was moved");
    assert_int_equal(count_files(folder, false), 2);
}

/* The order of time is the sampler's promise; what breaks it is left out and counted. */
LAB_TEST(a_tick_from_the_past_is_counted) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 10, 20);
    send_tick(&sink, GPU, 5);
    const struct lab_tick stranger = {.entity = 77};
    sink.tick(sink.state, &stranger);
    send_ticks(&sink, GPU, 20, 30);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 10, 30);
    assert_int_equal(recording.event_count, 1);
    assert_int_equal(recording.events[0].number, 1);
    assert_string_equal(recording.events[0].text, "they came out of order");
}

/* --- a day --- */

static int count_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Allocated now; the sanitizers' allocators don't tell, and watch for leaks themselves. */
static size_t count_bytes(void) {
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

enum { DAY = SANITIZED ? 43200 : 864000 };

LAB_TEST(a_day_takes_no_more_memory_than_a_minute) {
    struct lab_clock clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {
        .interval_ns = TICK_NS, .clock = &clock, .flush_ns = 20 * LAB_NS_PER_S};
    struct lab_recorder *recorder;
    now_ns = 0;
    assert_works(lab_recorder_create(path, &setup, &recorder, &err));
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    size_t bytes = 0;
    int descriptors = 0;
    for (int64_t k = 0; k < DAY; k++) {
        send_tick(&sink, GPU, k);
        if (k % 100 == 0) {
            struct lab_process_sample one = {.pid = (int32_t)k, .name = "comes and goes"};
            const struct lab_process_list list = {tick_time(k), &one, 1, 0};
            const struct lab_sample_event event = {tick_time(k), GPU, LAB_EVENT_MISSED, 1,
                                                   "a tick"};
            sink.processes(sink.state, &list);
            sink.event(sink.state, &event);
        }
        now_ns = tick_time(k);
        if (lab_recorder_flush(recorder, false, &err) < 0)
            fail_msg("%s", err.text);
        if (k == DAY / 4) {
            bytes = count_bytes();
            descriptors = count_descriptors();
        }
    }
    assert_true(count_bytes() <= bytes + (1 << 18));
    assert_int_equal(count_descriptors(), descriptors);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(path, NULL);
    assert_all_there(recording);
    assert_int_equal(track_of(&recording, GPU)->count, DAY);
    assert_int_equal(recording.event_count, DAY / 100);
    assert_int_equal(recording.process_count, DAY / 100);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
