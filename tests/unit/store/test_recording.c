/*
 * test_recording.c: what was recorded comes back, from a file of its own and from a study: all of it,
 * or the metrics and the time that were asked for.
 */
#include "recording_fixture.h"

static void ticks_come_back(void **state) {
    (void)state;
    struct lab_recorder *recorder = record(path);
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    tell(&sink);
    for (int64_t k = 0; k < 1000; k++) {
        send_tick(&sink, GPU, k);
        if (k >= 100)
            send_tick(&sink, CPUS, k);
        now_ns = tick_time(k);
        assert_works(lab_recorder_flush(recorder, false, &err));
    }
    assert_works(lab_recorder_close(recorder, &err));
    assert_int_equal(count_files(folder, false), 1);

    struct lab_recording recording = read_back(path, NULL);
    assert_all_there(recording);
    assert_int_equal(recording.track_count, 3);
    check_ticks(track_of(&recording, GPU), GPU, 0, 1000);
    check_ticks(track_of(&recording, CPUS), CPUS, 100, 1000);
    check_ticks(track_of(&recording, MIG), MIG, 0, 0);
    assert_string_equal(recording.label, "study");
    assert_string_equal(recording.path, path);
    assert_non_null(strstr(recording.maker, "gpulab "));
    assert_true(recording.interval_ns == TICK_NS);
    assert_true(recording.simulated);
    assert_int_equal(recording.epoch_count, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(ticks_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
