/*
 * test_monitor_stream.c: JSON that grows while others read it, and CSV into pipes: valid after
 * every flush, gone on with, mended, and never waited for.
 */
#include "monitor_fixture.h"

#include "base/log.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const struct lab_monitor_stream_setup setup = {
    .interval_ns = 100 * LAB_NS_PER_MS, .wall_offset_ns = OFFSET_NS, .gpu = -1};

static char last_log[512];

static void keep_log(enum lab_log_level level, const char *text, void *state) {
    (void)level, (void)state;
    snprintf(last_log, sizeof last_log, "%s", text);
}

static int set_up_log(void **state) {
    last_log[0] = '\0';
    lab_log_set_sink(keep_log, NULL, LAB_LOG_WARNING);
    return set_up(state);
}

/* --- helpers --- */

static struct lab_monitor_stream *open_files(const char *name) {
    struct lab_monitor_stream *stream = NULL;
    assert_works(lab_monitor_stream_files(test_path("%s", name), &setup, &stream, &err));
    return stream;
}

static void tell_machine(struct lab_monitor_stream *stream, const struct lab_recording *machine) {
    struct lab_sink_samples sink = lab_monitor_stream_sink(stream);
    for (int i = 0; i < machine->track_count; i++)
        sink.entity(sink.state, i, &machine->tracks[i].entity);
}

/* Tick number `at` of every track, each time in another order, as the sampler hands them over. */
static void tell_tick(struct lab_monitor_stream *stream, const struct lab_recording *machine,
                      size_t at) {
    struct lab_sink_samples sink = lab_monitor_stream_sink(stream);
    for (int k = 0; k < machine->track_count; k++) {
        int number = (k + (int)at) % machine->track_count;
        const struct lab_track *track = &machine->tracks[number];
        int64_t values[16];
        uint64_t valid[1] = {0};
        for (int i = 0; i < track->entity.column_count; i++) {
            values[i] = track->values[i][at];
            valid[0] |= (uint64_t)track->valid[i][at] << i;
        }
        struct lab_tick tick = {.entity = number,
                                .time_ns = track->times_ns[at],
                                .late_ns = track->times_ns[at] % (100 * LAB_NS_PER_MS),
                                .values = values,
                                .valid = valid};
        sink.tick(sink.state, &tick);
    }
}

static struct lab_value *read_list(const char *name) {
    char *text;
    size_t length;
    FILE *file = fopen(test_path("%s", name), "rb");
    assert_non_null(file);
    text = lab_arena_alloc(&test_arena, 1 << 20, 1);
    length = fread(text, 1, 1 << 20, file);
    fclose(file);
    return parse(text, length);
}

/* --- JSON --- */

LAB_TEST(files_are_valid_after_each_flush) {
    struct lab_recording machine = make_machine(12);
    struct lab_monitor_stream *stream = open_files("gpu_monitoring.json");
    assert_int_equal(read_list("gpu_monitoring.json")->count, 0);
    assert_int_equal(read_list("gpu_monitoring_multi_gpu.json")->count, 0);
    tell_machine(stream, &machine);
    for (int i = 0; i < 12; i++) {
        tell_tick(stream, &machine, (size_t)i);
        assert_works(lab_monitor_stream_flush(stream, &err));
        assert_int_equal(read_list("gpu_monitoring.json")->count, i + 1);
        struct lab_value *multi = read_list("gpu_monitoring_multi_gpu.json");
        assert_int_equal(multi->count, i + 1); /* all four are there: nothing to wait for */
        assert_int_equal(lab_value_get(multi->items[i], "multi_gpu_data")->count, 4);
    }
    struct lab_value *first = read_list("gpu_monitoring.json")->items[0];
    assert_string_equal(get_text(first, "timestamp"), "2025-01-15T10:30:00.000");
    assert_works(lab_monitor_stream_close(stream, &err));
    /* and is what an export of the same gives */
    export_as(&machine, LAB_MONITOR_MULTI, -1);
    assert_true(lab_value_equal(parse(written.text, written.length),
                                read_list("gpu_monitoring_multi_gpu.json")));
}

LAB_TEST(a_gpu_that_is_away_is_left_out_until_it_is_back) {
    struct lab_recording machine = make_machine(6);
    struct lab_monitor_stream *stream = open_files("x");
    tell_machine(stream, &machine);
    tell_tick(stream, &machine, 0);
    machine.track_count = 3;
    for (size_t i = 1; i < 4; i++) {
        tell_tick(stream, &machine, i);
        assert_works(lab_monitor_stream_flush(stream, &err));
        assert_int_equal(read_list("x_multi_gpu.json")->count, i); /* it may come yet */
    }
    machine.track_count = 4;
    tell_tick(stream, &machine, 4);
    tell_tick(stream, &machine, 5);
    assert_works(lab_monitor_stream_close(stream, &err));
    struct lab_value *multi = read_list("x_multi_gpu.json");
    static const int counts[] = {4, 3, 3, 3, 4, 4};
    assert_int_equal(multi->count, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(lab_value_get(multi->items[i], "multi_gpu_data")->count, counts[i]);
}

LAB_TEST(a_clock_that_is_set_shows_in_each_file) {
    struct lab_recording machine = make_machine(3);
    struct lab_monitor_stream *stream = open_files("clock.json");
    struct lab_sink_samples sink = lab_monitor_stream_sink(stream);
    tell_machine(stream, &machine);
    tell_tick(stream, &machine, 0);
    sink.event(sink.state,
               &(struct lab_sample_event){.entity = -1, .kind = LAB_EVENT_XID, .number = 79});
    tell_tick(stream, &machine, 1);
    sink.event(sink.state, &(struct lab_sample_event){.entity = -1,
                                                      .kind = LAB_EVENT_CLOCK,
                                                      .number = 3600 * LAB_NS_PER_S});
    tell_tick(stream, &machine, 2);
    assert_works(lab_monitor_stream_close(stream, &err));
    static const char *const files[] = {"clock.json", "clock_multi_gpu.json"};
    for (int i = 0; i < 2; i++) {
        struct lab_value *list = read_list(files[i]);
        assert_int_equal(list->count, 3);
        assert_string_equal(get_text(list->items[1], "timestamp"), "2025-01-15T10:30:00.100");
        assert_string_equal(get_text(list->items[2], "timestamp"), "2025-01-15T11:30:00.200");
    }
}

LAB_TEST(killed_between_flushes_files_are_valid) {
    for (int turn = 1; turn <= 5; turn++) {
        const char *name = lab_arena_printf(&test_arena, "killed%d", turn);
        pid_t child = fork();
        if (child == 0) {
            setenv("GPULAB_FAILPOINT", lab_arena_printf(&test_arena, "after-append:%d", turn), 1);
            struct lab_recording machine = make_machine(12);
            struct lab_monitor_stream *stream = NULL;
            if (lab_monitor_stream_files(test_path("%s", name), &setup, &stream, NULL) < 0)
                _exit(1);
            tell_machine(stream, &machine);
            for (size_t i = 0; i < 12; i++) {
                tell_tick(stream, &machine, i);
                lab_monitor_stream_flush(stream, NULL);
            }
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        struct lab_value *single = read_list(lab_arena_printf(&test_arena, "%s.json", name));
        struct lab_value *multi =
            read_list(lab_arena_printf(&test_arena, "%s_multi_gpu.json", name));
        assert_int_equal(single->count + multi->count, turn);
    }
}

LAB_TEST(an_existing_file_is_gone_on_with) {
    struct lab_recording machine = make_machine(3);
    /* as Python's json.dump leaves it */
    static const char old[] =
        "[\n  {\n    \"timestamp\": \"2025-01-15T10:29:00\",\n"
        "    \"gpu_index\": 0,\n    \"utilization\": 1\n  }\n]   \n\n\n\n\n\n";
    test_write_bytes(test_path("old.json"), old, sizeof old - 1);
    for (int i = 0; i < 2; i++) {
        struct lab_monitor_stream *stream = open_files("old.json");
        tell_machine(stream, &machine);
        tell_tick(stream, &machine, (size_t)i);
        assert_works(lab_monitor_stream_close(stream, &err));
    }
    struct lab_value *list = read_list("old.json");
    assert_int_equal(list->count, 3);
    assert_string_equal(get_text(list->items[0], "timestamp"), "2025-01-15T10:29:00");
    assert_string_equal(get_text(list->items[2], "timestamp"), "2025-01-15T10:30:00.100");
    assert_int_equal(read_list("old_multi_gpu.json")->count, 2);
    assert_string_equal(last_log, "");
}

/* Cut off at every byte of its second record: mended to the first, then gone on with. */
LAB_TEST(a_file_that_was_cut_off_is_mended) {
    struct lab_recording machine = make_machine(3);
    struct lab_monitor_stream *stream = open_files("m.json");
    tell_machine(stream, &machine);
    tell_tick(stream, &machine, 0);
    tell_tick(stream, &machine, 1);
    assert_works(lab_monitor_stream_close(stream, &err));
    char whole[8192];
    FILE *file = fopen(test_path("m.json"), "rb");
    size_t length = fread(whole, 1, sizeof whole, file);
    fclose(file);
    size_t second = (size_t)(strstr(whole, ",\n{") - whole);
    for (size_t cut = 1; cut < length - 1; cut += cut < 20 || cut > length - 40 ? 1 : 31) {
        test_write_bytes(test_path("m.json"), whole, cut);
        last_log[0] = '\0';
        stream = open_files("m.json");
        assert_contains(last_log, "m.json was cut off");
        assert_int_equal(read_list("m.json")->count, cut >= length - 3 ? 2 : cut >= second);
        tell_machine(stream, &machine);
        tell_tick(stream, &machine, 2);
        assert_works(lab_monitor_stream_close(stream, &err));
        struct lab_value *list = read_list("m.json");
        assert_int_equal(list->count, cut >= length - 3 ? 3 : 1 + (cut >= second));
    }
}

LAB_TEST(foreign_files_are_refused) {
    static const char *const texts[] = {
        "hello",
        "{\"a\": 1}",
        "[{\"a\": 1}]",
        "[1, 2]",
        "[{\"multi_gpu_data\": []}]",
        "{\"timestamp\": 1, \"gpu_index\": 0}",
        "timestamp,gpu\n",
    };
    for (int i = 0; i < 7; i++) {
        struct lab_monitor_stream *stream = NULL;
        test_write_bytes(test_path("f.json"), texts[i], strlen(texts[i]));
        err = LAB_ERR_INIT;
        assert_int_equal(lab_monitor_stream_files(test_path("f"), &setup, &stream, &err), -1);
        assert_int_equal(err.code, LAB_ERR_USER);
        assert_contains(err.text, "f.json exists");
        char now[64] = "";
        FILE *file = fopen(test_path("f.json"), "rb");
        assert_int_equal(fread(now, 1, sizeof now, file), strlen(texts[i]));
        fclose(file);
        assert_string_equal(now, texts[i]);
        assert_int_equal(access(test_path("f_multi_gpu.json"), F_OK), -1);
    }
    /* the second one is foreign: the first, which was new, is gone again */
    struct lab_monitor_stream *stream = NULL;
    test_write_bytes(test_path("g_multi_gpu.json"), "hello", 5);
    assert_int_equal(lab_monitor_stream_files(test_path("g"), &setup, &stream, &err), -1);
    assert_int_equal(access(test_path("g.json"), F_OK), -1);
    assert_int_equal(lab_monitor_stream_files(test_path("no/such"), &setup, &stream, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_int_equal(lab_monitor_stream_files(test_path(".json"), &setup, &stream, &err), -1);
}

LAB_TEST(two_writers_exclude_each_other) {
    struct lab_monitor_stream *first = open_files("x"), *second = NULL;
    assert_int_equal(lab_monitor_stream_files(test_path("x"), &setup, &second, &err), -1);
    assert_contains(err.text, "being written by another process");
    assert_works(lab_monitor_stream_close(first, &err));
    assert_int_equal(access(test_path("x.json"), F_OK), 0);
}

/* A limit of the file's size behaves as a full disk does: part of a write, then none. */
LAB_TEST(a_full_disk_leaves_valid_files) {
    struct lab_recording machine = make_machine(12);
    struct lab_monitor_stream *stream = open_files("full");
    struct rlimit old, small;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = (struct rlimit){5000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    tell_machine(stream, &machine);
    int failures = 0;
    for (size_t i = 0; i < 12; i++) {
        tell_tick(stream, &machine, i);
        failures += lab_monitor_stream_flush(stream, &err) < 0;
        assert_true(read_list("full.json")->count <= (int)i + 1);
        read_list("full_multi_gpu.json");
    }
    assert_true(failures > 0);
    assert_contains(err.text, "can't be written");
    setrlimit(RLIMIT_FSIZE, &old); /* there is room again */
    assert_works(lab_monitor_stream_close(stream, &err));
    assert_int_equal(read_list("full.json")->count, 12);
    assert_int_equal(read_list("full_multi_gpu.json")->count, 12);
}

/* --- CSV --- */

/* What a reader of the pipe gets of two ticks. */
static struct lab_recording *through_pipe(const struct lab_monitor_stream_setup *how) {
    struct lab_recording machine = make_machine(2);
    struct lab_monitor_stream *stream = NULL;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_works(lab_monitor_stream_csv(ends[1], how, &stream, &err));
    tell_machine(stream, &machine);
    tell_tick(stream, &machine, 0);
    assert_works(lab_monitor_stream_flush(stream, &err));
    tell_tick(stream, &machine, 1);
    assert_works(lab_monitor_stream_close(stream, &err));
    close(ends[1]);
    char *text = lab_arena_alloc(&test_arena, 65536, 1);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], text + length, 65535 - length)) > 0;)
        length += (size_t)got;
    close(ends[0]);
    return read_bytes(text, length);
}

LAB_TEST(lines_come_as_ticks_do) {
    struct lab_monitor_stream_setup without_host = setup;
    without_host.without_host = true;
    assert_int_equal(through_pipe(&without_host)->track_count, 4);
    struct lab_recording *back = through_pipe(&setup);
    assert_null(back->missing);
    assert_int_equal(back->track_count, 7);
    assert_int_equal(lab_recording_gpu(back, 2)->count, 2);
    assert_true(track_value(lab_recording_gpu(back, 2), LAB_METRIC_TEMPERATURE, -1, 1) == 72);
}

LAB_TEST(a_reader_who_goes_away_ends_it_quietly) {
    struct lab_recording machine = make_machine(2);
    struct lab_monitor_stream *stream = NULL;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_works(lab_monitor_stream_csv(ends[1], &setup, &stream, &err));
    tell_machine(stream, &machine);
    assert_works(lab_monitor_stream_flush(stream, &err));
    assert_false(lab_monitor_stream_is_over(stream));
    close(ends[0]);
    tell_tick(stream, &machine, 0);
    assert_works(lab_monitor_stream_flush(stream, &err)); /* and no SIGPIPE has ended us */
    assert_true(lab_monitor_stream_is_over(stream));
    tell_tick(stream, &machine, 1);
    assert_works(lab_monitor_stream_close(stream, &err));
    close(ends[1]);
}

LAB_TEST(a_slow_reader_is_not_waited_for) {
    struct lab_recording machine = make_machine(1);
    struct lab_monitor_stream *stream = NULL;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_works(lab_monitor_stream_csv(ends[1], &setup, &stream, &err));
    tell_machine(stream, &machine);
    for (int i = 0; i < 8000; i++) { /* far more than a pipe and our own bound hold */
        tell_tick(stream, &machine, 0);
        if (i % 100 == 0)
            assert_works(lab_monitor_stream_flush(stream, &err));
    }
    pid_t reader = fork(); /* who wakes up */
    if (reader == 0) {
        static char sink[65536];
        close(ends[1]);
        while (read(ends[0], sink, sizeof sink) > 0)
            continue;
        _exit(0);
    }
    close(ends[0]);
    assert_int_equal(lab_monitor_stream_close(stream, &err), -1);
    assert_contains(err.text, "ticks could not be written in time");
    close(ends[1]);
    int status;
    waitpid(reader, &status, 0);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up_log, .tear_down = tear_down, .begin = lab_test_in_utc};
