/*
 * test_recording_damage.c: recordings that are cut off, changed or not recordings at all. What can
 * be read is read, what can't is named, and nothing that is read is wrong.
 */
#include "recording_fixture.h"
#include "version.h"

#include "base/file/file.h"
#include "base/random.h"

#include <fcntl.h>

enum { TICKS = 6000, ALL_TICKS = 2 * TICKS };

static void record_some(void) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int64_t k = 0; k < TICKS; k++) {
        send_tick(&sink, GPU, k);
        send_tick(&sink, CPUS, k);
        if (k % 500 == 250) {
            const struct lab_sample_event event = {tick_time(k), GPU, LAB_EVENT_XID, k,
                                                   "one of them"};
            sink.event(sink.state, &event);
        }
        now_ns = tick_time(k);
        assert_works(lab_recorder_flush(recorder, false, &err));
    }
    assert_works(lab_recorder_close(recorder, &err));
}

static char *whole;
static size_t whole_length;

static void load(void) {
    assert_works(lab_file_read(path, 1 << 24, &arena, &whole, &whole_length, &err));
}

static void store_bytes(const char *bytes, size_t length) {
    assert_works(lab_file_replace(path, bytes, length, &err));
}

/* Every tick that came back is as it was sent. Returns how many there are. */
static size_t check_what_is_there(const struct lab_track *track, int entity) {
    int64_t k = 0;
    for (size_t i = 0; i < track->count; i++, k++) {
        while (tick_time(k) < track->times_ns[i])
            k++;
        assert_true(tick_time(k) == track->times_ns[i]);
        for (int c = 0; c < machine[entity].column_count; c++) {
            assert_int_equal(track->valid[c][i], tick_has(c, k));
            if (tick_has(c, k))
                assert_true(track->values[c][i] == tick_value(entity, c, k));
        }
    }
    return track->count;
}

/* Reads what is left; 0 ticks where nothing can be. */
static size_t read_rest(bool *ret_complete) {
    struct lab_recording recording;
    LAB_AUTO(arena, own);
    size_t ticks = 0;
    *ret_complete = false;
    err = LAB_ERR_INIT;
    if (lab_recording_read(path, NULL, &own, &recording, &err) == 0) {
        for (int i = 0; i < recording.track_count; i++) {
            const char *id = recording.tracks[i].entity.id;
            for (int e = 0; e < ENTITIES; e++)
                if (strcmp(id, machine[e].id) == 0)
                    ticks += check_what_is_there(&recording.tracks[i], e);
        }
        *ret_complete = !recording.missing;
    } else {
        assert_true(err.code != LAB_ERR_NONE && err.text[0]);
    }
    return ticks;
}

LAB_TEST(a_file_cut_off_anywhere_is_read_as_far_as_it_goes) {
    record_some();
    load();
    bool complete;
    assert_int_equal(read_rest(&complete), ALL_TICKS);
    assert_true(complete);
    size_t half = 0, most = 0;
    for (size_t length = 1; length < whole_length; length += SANITIZED ? 7000 : 1500) {
        store_bytes(whole, length);
        size_t ticks = read_rest(&complete);
        assert_false(complete);
        assert_true(ticks < ALL_TICKS);
        if (length <= whole_length / 2)
            half = ticks;
        most = ticks;
    }
    assert_true(half > TICKS / 4); /* the tables themselves are 40 KiB */
    assert_true(most > ALL_TICKS * 9 / 10);
}

/* A table of more than some hundred pages has inner ones, and the first of them lies far back. */
LAB_TEST(a_cut_that_takes_the_tree_leaves_the_chunks) {
    enum { MANY = 260000 };
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, MANY);
    assert_works(lab_recorder_close(recorder, &err));
    load();
    store_bytes(whole, whole_length / 4);
    struct lab_recording recording = read_back(path, NULL);
    size_t ticks = check_what_is_there(track_of(&recording, GPU), GPU);
    assert_true(ticks > MANY / 5 && ticks < MANY / 3);
    assert_contains(recording.missing[0], "the file is cut off: ");
}

LAB_TEST(the_note_says_how_much_is_left) {
    record_some();
    load();
    store_bytes(whole, whole_length / 2);
    struct lab_recording recording = read_back(path, NULL);
    assert_contains(recording.missing[0], "the file is cut off: ");
    assert_true(recording.event_count <= 12);
    assert_int_equal(recording.epoch_count, 1);
}

/* SQLite reads a page that is there in part as if the rest were zeros. */
LAB_TEST(a_cut_within_the_last_page_is_told_too) {
    bool complete;
    record_some();
    load();
    for (size_t lacks = 1; lacks < 4096; lacks += 455) {
        store_bytes(whole, whole_length - lacks);
        read_rest(&complete);
        assert_false(complete);
    }
}

LAB_TEST(a_damaged_chunk_loses_only_itself) {
    record_some();
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db,
                 "UPDATE chunk SET bytes = substr(bytes, 1, length(bytes) - 1) WHERE entity = 1"
                 " AND first_ns = (SELECT first_ns FROM chunk WHERE entity = 1 LIMIT 1 OFFSET 3)",
                 NULL, NULL, NULL);
    sqlite3_close(db);
    struct lab_recording recording = read_back(path, NULL);
    check_ticks(track_of(&recording, CPUS), CPUS, 0, TICKS);
    assert_int_equal(check_what_is_there(track_of(&recording, GPU), GPU), TICKS - LAB_CHUNK_TICKS);
    assert_string_equal(recording.missing[0],
                        "ticks of GPU-5f0c: 1 stretch is damaged, between 76.8 s and 102.3 s");
    assert_null(recording.missing[1]);
}

LAB_TEST(names_of_columns_are_read_or_refused) {
    static const struct {
        const char *name;
        int instance; /* -2 = it is none */
    } cases[] = {{"core_utilization[0]", 0},         {"core_utilization[7]", 7},
                 {"core_utilization[32767]", 32767}, {"core_utilization", -1},
                 {"core_utilization[32768]", -2},    {"core_utilization[-1]", -2},
                 {"core_utilization[]", -2},         {"core_utilization[7", -2},
                 {"core_utilization[7]x", -2},       {"nothing[7]", -2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = 0;
        const struct lab_column *column = lab_recording_columns_read(
            lab_arena_printf(&arena, "power %s", cases[i].name), &arena, &count);
        assert_int_equal(count, 2);
        assert_int_equal(column[0].metric, LAB_METRIC_POWER);
        assert_int_equal(column[1].metric,
                         cases[i].instance == -2 ? -1 : LAB_METRIC_CORE_UTILIZATION);
        if (cases[i].instance != -2)
            assert_int_equal(column[1].instance, cases[i].instance);
    }
}

LAB_TEST(damage_anywhere_spoils_no_other_tick) {
    record_some();
    load();
    enum { TRIES = SANITIZED ? 25 : 120 };
    int read = 0;
    for (uint64_t i = 0; i < TRIES; i++) {
        char *copy = lab_arena_alloc(&arena, whole_length, 1);
        memcpy(copy, whole, whole_length);
        size_t at = 100 + lab_random_below(1, i, whole_length - 4200);
        size_t length = 1 + lab_random_below(2, i, 4096);
        for (size_t k = 0; k < length; k++)
            copy[at + k] = (char)lab_random_bits(3, i * 4096 + k);
        store_bytes(copy, whole_length);
        bool complete;
        read += read_rest(&complete) > TICKS;
    }
    assert_true(read > TRIES * 3 / 4);
}

/* --- what was not closed --- */

static void copy_beside(const char *from, const char *to) {
    char *bytes;
    size_t length;
    assert_works(lab_file_read(from, 1 << 24, &arena, &bytes, &length, &err));
    assert_works(lab_file_replace(to, bytes, length, &err));
}

LAB_TEST(a_file_without_its_wal_says_so) {
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    send_ticks(&sink, GPU, 0, 300);
    assert_works(lab_recorder_flush(recorder, true, &err));
    sqlite3_wal_checkpoint_v2(recorder->store->db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
    send_ticks(&sink, GPU, 300, 400);
    assert_works(lab_recorder_flush(recorder, true, &err));
    const char *alone = lab_arena_printf(&arena, "%s/alone.rec", folder);
    copy_beside(path, alone);
    assert_works(lab_recorder_close(recorder, &err));
    struct lab_recording recording = read_back(alone, NULL);
    check_ticks(track_of(&recording, GPU), GPU, 0, 300);
    assert_non_null(recording.missing);
    assert_contains(recording.missing[0], "the end: the file was not closed");
    assert_string_equal(recording.label, "alone");
}

/* --- what is no recording --- */

static void write_at(off_t offset, const char *bytes, size_t length) {
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0 && pwrite(fd, bytes, length, offset) == (ssize_t)length);
    close(fd);
}

LAB_TEST(what_is_no_recording_is_refused) {
    struct lab_recording recording;
#define assert_not_read(code, gist)                                                                \
    assert_refused(lab_recording_read(path, NULL, &arena, &recording, &err), code, gist)
    assert_not_read(LAB_ERR_USER, "No such file");
    store_bytes("", 0);
    assert_not_read(LAB_ERR_USER, "is not a recording: it is empty");
    static const char text[4096] = "time,gpu,power\n";
    store_bytes(text, sizeof text);
    assert_not_read(LAB_ERR_USER, "is not a recording: not an SQLite database");
    unlink(path);
    assert_works(lab_recorder_close(record(path), &err));
    write_at(68, "\x0f\x05\x51\x12", 4);
    assert_not_read(LAB_ERR_USER, "of another program");
    write_at(68, "glar", 4);
    read_back(path, NULL);
    write_at(63, "\x4d", 1);
    assert_not_read(LAB_ERR_USER, "(file version 77): gpulab " LAB_VERSION
                                  " reads up to file version 1. Use gpulab ");
    write_at(63, "\0", 1);
    assert_not_read(LAB_ERR_SYSTEM, "it has no version");
    struct lab_store *store;
    assert_refused(lab_store_open(path, LAB_STORE_READ, &store, &err), LAB_ERR_USER,
                   "of another program");
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
