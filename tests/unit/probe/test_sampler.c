/*
 * test_sampler.c: the pace of lanes, and what becomes of one that is slow, fails, hangs or comes
 * back; on a clock that the test moves.
 */
#include "sampler_fixture.h"

#include <poll.h>

LAB_TEST(ticks_come_on_time_and_in_order) {
    struct rig rig;
    rig_open(&rig, 2);
    rig_start(&rig);
    rig_pass(&rig, 250);
    rig_take(&rig);
    assert_string_equal(rig.told.entities.text, "0:GPU-a/-1 1:GPU-b/-1 ");
    assert_string_equal(rig.told.ticks.text, "0@0=0 1@0=0 0@100=1 1@100=1 0@200=2 1@200=2 ");
    assert_int_equal(rig.told.late_ns, 0);
    assert_true(rig.told.cost_ns > 0);
    /* what was taken is gone, and entities are told once */
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@300=3 1@300=3 ");
    assert_string_equal(rig.told.entities.text, "");
    assert_string_equal(rig.told.events.text, "");
    rig_close(&rig);
    assert_int_equal(fake.closed, 1);
}

LAB_TEST(a_slow_reading_skips_what_it_missed_and_says_so) {
    struct rig rig;
    rig_open(&rig, 2);
    fake.lanes[1].takes_ns = 270 * MS;
    rig_start(&rig);
    rig_pass(&rig, 560);
    rig_take(&rig);
    /* due at 100 and 200, both over; back on the grid at 300, not at 270 */
    assert_string_equal(rig.told.ticks.text,
                        "0@0=0 1@0=0 0@100=1 0@200=2 0@300=3 0@400=4 0@500=5 ");
    assert_string_equal(rig.told.events.text, "1@270 missed 2; ");
    rig_pass(&rig, 50);
    rig_take(&rig);
    assert_contains(rig.told.ticks.text, "1@300=1 ");
    assert_string_equal(rig.told.events.text, ""); /* no more than once a second */
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_int_equal(stats.missed, 4);
    assert_true(stats.pace_ms == 300); /* each third tick */
    assert_string_equal(stats.slowest, "GPU-b");
    rig_pass(&rig, 900);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "1@1470 missed 8; ");
    assert_int_equal(stats.lanes_away, 0);
    rig_close(&rig);
}

LAB_TEST(a_reading_that_is_a_little_too_long_misses_nothing_but_is_late) {
    struct rig rig;
    rig_open(&rig, 1);
    fake.lanes[0].takes_ns = 110 * MS;
    rig_start(&rig);
    rig_pass(&rig, 340);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@0=0 0@110=1 0@220=2 ");
    assert_int_equal(rig.told.late_ns, 30 * MS);
    assert_string_equal(rig.told.events.text, "");
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_true(stats.late_max_ms == 30.0 && stats.late_p50_ms > 9 && stats.late_p50_ms < 21 &&
                stats.late_p99_ms > 28);
    rig_close(&rig);
}

LAB_TEST(a_lane_that_hangs_is_a_gap_and_the_others_go_on) {
    struct rig rig;
    rig_open(&rig, 2);
    rig.config.patience_ns = 400 * MS;
    rig_start(&rig);
    rig_pass(&rig, 90);
    FAKE_SET(1, hangs, true);
    rig.asleep--;
    rig_pass(&rig, 10);
    FAKE_WAIT(fake.lanes[1].hanging); /* in the reading of 100 ms */
    rig_take(&rig);
    rig_pass(&rig, 400);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, ""); /* patience holds */
    rig_pass(&rig, 10);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "1@500 gap its driver call hangs; ");
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_int_equal(stats.lanes, 2);
    assert_int_equal(stats.lanes_away, 1);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@600=6 ");
    assert_string_equal(rig.told.events.text, ""); /* told once */

    rig.asleep++;
    FAKE_SET(1, hangs, false);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "1@610 back 110000000; ");
    /* what the reading brought that hung is told when it came back, and the grid holds */
    assert_string_equal(rig.told.ticks.text, "1@610=1 0@700=7 1@700=2 ");
    rig_close(&rig);
}

LAB_TEST(a_lane_that_fails_is_asked_less_and_less_often) {
    struct rig rig;
    rig_open(&rig, 1);
    rig.config.setup.interval_ns = 50 * MS;
    rig_start(&rig);
    FAKE_SET(0, fails, true);
    rig_pass(&rig, 60);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@0=0 ");
    assert_string_equal(rig.told.events.text, "0@50 gap GPU is lost; ");
    /* at 150, 350, 750, 1550, 3150, 6350, then each 5 s: 11350 */
    static const int64_t asked_ms[] = {150, 350, 750, 1550, 3150, 6350, 11350, 16350};
    int64_t now_ms = 60;
    for (int i = 0; i < 8; i++) {
        rig_pass(&rig, asked_ms[i] - 10 - now_ms);
        assert_int_equal(fake.lanes[0].readings, 2 + i);
        rig_pass(&rig, 10);
        now_ms = asked_ms[i];
        assert_int_equal(fake.lanes[0].readings, 3 + i);
    }
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "");
    FAKE_SET(0, fails, false);
    rig_pass(&rig, 5000);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "0@21350 back 21300000000; ");
    assert_int_equal(rig.told.tick_count, 1);
    rig_pass(&rig, 100);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text, "0@21400=11 0@21450=12 ");
    rig_close(&rig);
}

LAB_TEST(a_ring_keeps_the_newest_whatever_their_sizes) {
    struct sample_queue_ring ring;
    sample_queue_ring_init(&ring, 64 << 10);
    int64_t values[LAB_COLUMNS_MAX] = {0}, dropped = 0;
    uint64_t valid[LAB_VALID_WORDS(LAB_COLUMNS_MAX)] = {0};
    for (int i = 0; i < 1000; i++) { /* sizes that never end where the buffer does */
        int count = 1 + i * 37 % LAB_COLUMNS_MAX;
        struct sample_queue_tick *tick =
            sample_queue_ring_push(&ring, sample_queue_tick_bytes(count), &dropped);
        values[count - 1] = i;
        sample_queue_tick_fill(tick, count, values, valid);
        tick->time_ns = i;
    }
    assert_true(dropped > 0 && dropped + ring.count == 1000);
    for (int64_t i = dropped; i < 1000; i++) {
        const struct sample_queue_tick *tick = sample_queue_ring_first(&ring);
        assert_int_equal(tick->time_ns, i);
        assert_int_equal(tick->data[tick->columns - 1], i);
        sample_queue_ring_pop(&ring);
    }
    assert_null(sample_queue_ring_first(&ring));
    sample_queue_ring_release(&ring);
}

LAB_TEST(ticks_that_nobody_takes_make_room_for_new_ones) {
    struct rig rig;
    rig_open(&rig, 1);
    rig.config.setup.interval_ns = 10 * MS;
    rig_start(&rig);
    rig_pass(&rig, 20000);
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_int_equal(stats.ticks, 2001);
    assert_true(stats.dropped > 500);
    rig_take(&rig);
    assert_int_equal(rig.told.tick_count, 2001 - stats.dropped);
    assert_contains(rig.told.ticks.text, " 0@20000=2000 ");
    rig_close(&rig);
}

LAB_TEST(a_full_outlet_drops_the_oldest_and_counts) {
    struct sample_queue queue;
    sample_queue_init(&queue, 10 * sample_queue_tick_bytes(1));
    int64_t value = 0;
    uint64_t valid = 1;
    struct sample_queue_tick *tick = lab_mem_alloc(1, sample_queue_tick_bytes(1));
    for (int i = 0; i < 25; i++) {
        sample_queue_tick_fill(tick, 1, &value, &valid);
        tick->time_ns = i;
        sample_queue_put_tick(&queue, tick);
        struct lab_sample_event event = {.time_ns = i, .text = "e"};
        sample_queue_put_note(&queue, sample_queue_note_event(&event));
    }
    sample_queue_take(&queue);
    int ticks = 0, notes = 0;
    int64_t last_ns = -1;
    for (;;) { /* all events, the newest ticks, in order */
        struct sample_queue_note *note;
        struct sample_queue_tick *next;
        sample_queue_next(&queue, &next, &note);
        if (!next && !note)
            break;
        int64_t time_ns = next ? next->time_ns : note->time_ns;
        assert_true(time_ns >= last_ns);
        last_ns = time_ns;
        if (next)
            sample_queue_ring_pop(&queue.taken.ring);
        else
            sample_queue_note_close(sample_queue_notes_pop(&queue.taken.notes));
        ticks += next != NULL;
        notes += note != NULL;
    }
    assert_int_equal(notes, 25);
    assert_true(ticks >= 9 && ticks + queue.dropped == 25);
    assert_int_equal(last_ns, 24);
    lab_mem_free(tick);
    sample_queue_release(&queue);
}

LAB_TEST(the_taker_is_woken_once_for_all_lanes) {
    struct rig rig;
    rig_open(&rig, 3);
    rig_start(&rig);
    struct pollfd poll_fd = {.fd = lab_sampler_fd(rig.sampler), .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    rig_take(&rig);
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    /* one lane is late: the others wait for it */
    FAKE_SET(2, takes_ns, 50 * MS);
    rig_pass(&rig, 100);
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    rig_pass(&rig, 50);
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    rig_take(&rig);
    assert_int_equal(rig.told.tick_count, 3);
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    /* but not for longer than an interval */
    FAKE_SET(2, takes_ns, 1000 * MS);
    rig_pass(&rig, 60);
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    rig_pass(&rig, 100);
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    rig_close(&rig);
}

LAB_TEST(a_lane_that_rests_is_not_read_and_not_waited_for) {
    struct rig rig;
    rig_open(&rig, 2);
    fake.lanes[1].rests_ns = 320 * MS;
    rig_start(&rig);
    rig_pass(&rig, 40);
    rig_take(&rig);
    struct pollfd poll_fd = {.fd = lab_sampler_fd(rig.sampler), .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
    rig_pass(&rig, 100);
    assert_int_equal(poll(&poll_fd, 1, 0), 1);
    rig_pass(&rig, 560);
    rig_take(&rig);
    assert_string_equal(rig.told.ticks.text,
                        "0@100=1 0@200=2 0@300=3 1@300=1 0@400=4 0@500=5 0@600=6 1@600=2 0@700=7 ");
    assert_string_equal(rig.told.events.text, "");
    struct lab_sampler_stats stats;
    lab_sampler_stats(rig.sampler, &stats);
    assert_int_equal(stats.missed, 0);
    rig_close(&rig);
}

LAB_TEST(a_wall_clock_that_was_set_is_told) {
    struct rig rig;
    rig_open(&rig, 1);
    rig_start(&rig);
    __atomic_store_n(&fake_wall_offset, 50 * MS, __ATOMIC_SEQ_CST); /* as if corrected slowly */
    rig_pass(&rig, 1100);
    rig_take(&rig);
    assert_string_equal(rig.told.events.text, "");
    __atomic_store_n(&fake_wall_offset, 50 * MS - 3600 * LAB_NS_PER_S, __ATOMIC_SEQ_CST);
    rig_pass(&rig, 2000);
    rig_take(&rig);
    assert_non_null(
        strstr(rig.told.events.text, "clock -3600000000000 the wall clock was set back; "));
    assert_null(strstr(strstr(rig.told.events.text, "clock") + 1, "clock -"));
    rig_close(&rig);
}
