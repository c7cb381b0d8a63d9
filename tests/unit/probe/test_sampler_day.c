/*
 * test_sampler_day.c: a day of watching in compressed time, from the lanes to the recording on
 * disk: it takes no more memory, threads and descriptors at its end than in its first hours, and
 * nothing is lost.
 */
#include "sampler_fixture.h"

#include "store/recording/recording.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOURS 3 /* a reading takes them ten times as long, and they find what leaks themselves */
#else
#define HOURS 24
#endif
#define INTERVAL_S 5
#define PER_HOUR   (3600 / INTERVAL_S)
#define STEPS      (HOURS * PER_HOUR)

struct use {
    size_t bytes;
    int descriptors, threads;
};

static int count_entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* The sanitizers' allocators don't tell what they have given away. */
static struct use measure(void) {
    return (struct use){mallinfo2().uordblks + mallinfo2().hblkhd, count_entries("/proc/self/fd"),
                        count_entries("/proc/self/task")};
}

static struct lab_recorder *open_recorder(const char *path, const struct rig *rig) {
    struct lab_recorder *recorder;
    const struct lab_recorder_setup setup = {.interval_ns = INTERVAL_S * LAB_NS_PER_S,
                                             .note = "",
                                             .clock = &rig->clock.clock,
                                             .flush_ns = 60 * LAB_NS_PER_S};
    ASSERT_OK(lab_recorder_create(path, &setup, &recorder, err));
    return recorder;
}

/* GPU 1 is lost for the last quarter of every hour. */
static bool is_lost_at(int step) {
    return step % PER_HOUR >= PER_HOUR * 3 / 4;
}

static void watch_for_hours(struct rig *rig, struct lab_recorder *recorder, struct use *ret_early) {
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    for (int step = 0; step < STEPS; step++) {
        FAKE_SET(1, fails, is_lost_at(step));
        if (step % PER_HOUR == 0) /* somebody begins to use GPU 0, and ends */
            FAKE_SET(0, process_count, step / PER_HOUR % 3);
        stepped_jump(&rig->clock, INTERVAL_S * LAB_NS_PER_S, rig->asleep);
        lab_sampler_take(rig->sampler, &sink);
        ASSERT_OK(lab_recorder_flush(recorder, false, err));
        if (step == STEPS / 4)
            *ret_early = measure();
    }
}

static const struct lab_track *track_of(const struct lab_recording *recording, const char *id) {
    for (int i = 0; i < recording->track_count; i++)
        if (lab_str_equal(recording->tracks[i].entity.id, id))
            return &recording->tracks[i];
    fail_msg("no track of %s", id);
    return NULL;
}

static void check_recording(const char *path) {
    struct lab_recording recording;
    LAB_AUTO(arena, arena);
    ASSERT_OK(lab_recording_read(path, NULL, &arena, &recording, err));
    assert_in_range(track_of(&recording, "GPU-a")->count, STEPS, STEPS + 1);
    assert_in_range(track_of(&recording, "GPU-b")->count, STEPS / 2, STEPS * 3 / 4 + 1);
    int gaps = 0, backs = 0;
    for (size_t i = 0; i < (size_t)recording.event_count; i++) {
        gaps += recording.events[i].kind == LAB_EVENT_GAP;
        backs += recording.events[i].kind == LAB_EVENT_BACK;
    }
    assert_int_equal(gaps, HOURS);
    assert_int_equal(backs, HOURS - 1);
}

LAB_TEST(a_day_takes_no_more_than_its_first_hours) {
    const char *path = test_path("day.db");
    struct rig rig;
    struct use early = {0};
    rig_open(&rig, 2);
    rig.config.setup.interval_ns = INTERVAL_S * LAB_NS_PER_S;
    rig_start(&rig);
    struct lab_recorder *recorder = open_recorder(path, &rig);
    watch_for_hours(&rig, recorder, &early);
    struct use late = measure();
    assert_true(late.bytes <= early.bytes + (1 << 17));
    assert_int_equal(late.descriptors, early.descriptors);
    assert_int_equal(late.threads, early.threads);
    rig_close(&rig);
    ASSERT_OK(lab_recorder_close(recorder, err));
    check_recording(path);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(test_folder()), 0); /* nothing else was left there */
}
