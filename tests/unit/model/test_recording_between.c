/*
 * What a recording says of a stretch of time: gauges, energy, flags. Ticks come each 100 ms, the
 * energy counter is read with every tenth of them.
 */
#include "model/recording.h"

#include <math.h>

#include "test.h"

#define TICKS 51
#define MS    1000000LL
#define S     1000000000LL

enum { POWER, ENERGY, REASONS, COLUMNS };

static const struct lab_column columns[COLUMNS] = {
    {LAB_METRIC_POWER, -1}, {LAB_METRIC_ENERGY, -1}, {LAB_METRIC_CLOCK_REASONS, -1}};
static int64_t times_ns[TICKS], values[COLUMNS][TICKS];
static uint8_t valid[COLUMNS][TICKS];
static int64_t *value_rows[COLUMNS];
static uint8_t *valid_rows[COLUMNS];
static struct lab_track track;

/* 100 W for two seconds, then 300 W; the counter agrees with that, from 5 kJ on. */
static int set_up(void **state) {
    (void)state;
    int64_t energy_mj = 5000000;
    for (int i = 0; i < TICKS; i++) {
        times_ns[i] = 10 * S + i * 100 * MS;
        values[POWER][i] = i < 20 ? 100000 : 300000;
        values[ENERGY][i] = energy_mj;
        values[REASONS][i] = i >= 30 && i < 40 ? 0x4 : 0x1;
        valid[POWER][i] = valid[REASONS][i] = 1;
        valid[ENERGY][i] = i % 10 == 0;
        energy_mj += i < 20 ? 10000 : 30000;
    }
    for (int i = 0; i < COLUMNS; i++) {
        value_rows[i] = values[i];
        valid_rows[i] = valid[i];
    }
    track = (struct lab_track){.entity = {.columns = columns, .column_count = COLUMNS},
                               .count = TICKS,
                               .times_ns = times_ns,
                               .values = value_rows,
                               .valid = valid_rows};
    return 0;
}

#define assert_close(value, expected) assert_near(value, expected, 1e-9 * fabs((double)(expected)))

LAB_TEST_WITH(gauges_are_told_of_the_readings_in_between, set_up, NULL) {
    struct lab_track_figures figures =
        lab_track_between(&track, LAB_METRIC_POWER, 11 * S + 800 * MS, 12 * S + 100 * MS);
    assert_int_equal(figures.count, 4); /* 11.8, 11.9: 100 W; 12.0, 12.1: 300 W */
    assert_close(figures.mean, 200);
    assert_close(figures.min, 100);
    assert_close(figures.max, 300);
    /* between two readings, or before all of them, then nothing is known */
    figures = lab_track_between(&track, LAB_METRIC_POWER, 12 * S + 10 * MS, 12 * S + 20 * MS);
    assert_int_equal(figures.count, 0);
    assert_true(isnan(figures.mean));
    assert_int_equal(lab_track_between(&track, LAB_METRIC_POWER, S, 2 * S).count, 0);
    assert_true(isnan(lab_track_between(&track, LAB_METRIC_FAN, 10 * S, 11 * S).mean));
}

#define INTERVAL (100 * MS)

static double joules(int64_t from_ns, int64_t until_ns) {
    return lab_track_energy(&track, INTERVAL, from_ns, until_ns).joules;
}

LAB_TEST_WITH(energy_is_the_counter_s_with_edges_by_power, set_up, NULL) {
    /* 10.5 to 13.5 s: 1.5 s of 100 W, 1.5 s of 300 W; the counter was read at 11, 12 and 13 s */
    struct lab_energy energy =
        lab_track_energy(&track, INTERVAL, 10 * S + 500 * MS, 13 * S + 500 * MS);
    assert_close(energy.joules, 600);
    assert_close(energy.covered_s, 3);
    assert_true(energy.estimated);
    assert_false(lab_track_energy(&track, INTERVAL, 10 * S, 15 * S).estimated);
    /* with a counter that says twice as much as power does, then it is believed between its
     * readings */
    for (int i = 0; i < TICKS; i++)
        values[ENERGY][i] *= 2;
    assert_close(joules(10 * S + 500 * MS, 13 * S + 500 * MS), 50 + 800 + 150);
}

LAB_TEST_WITH(short_stretches_are_told_by_power, set_up, NULL) {
    assert_close(joules(11 * S + 950 * MS, 12 * S + 50 * MS), 10 + 15); /* 200 W from 11.9 to 12 */
    /* a counter that is read twice within less than a second isn't believed alone */
    for (int i = 0; i < TICKS; i++)
        valid[POWER][i] = 0;
    assert_true(isnan(joules(11 * S + 950 * MS, 12 * S + 50 * MS)));
    assert_true(isnan(joules(12 * S, 12 * S)));
}

LAB_TEST_WITH(what_lies_outside_of_the_readings_is_not_invented, set_up, NULL) {
    assert_true(isnan(joules(9 * S, 10 * S)));
    assert_true(isnan(joules(15 * S, 99 * S)));
    struct lab_energy energy = lab_track_energy(&track, INTERVAL, 0, 99 * S);
    assert_close(energy.joules, 100 * 2 + 300 * 3);
    assert_close(energy.covered_s, 5);
}

LAB_TEST_WITH(gaps_add_nothing, set_up, NULL) {
    /* lost at 12 s, back 5 h later, for three more seconds; its counter went too */
    for (int i = 20; i < TICKS; i++)
        times_ns[i] += 5 * 3600 * S;
    for (int i = 0; i < TICKS; i++)
        valid[ENERGY][i] = 0;
    struct lab_energy energy = lab_track_energy(&track, INTERVAL, 0, INT64_MAX);
    assert_close(energy.joules, 100 * 1.9 + 300 * 3);
    assert_close(energy.covered_s, 4.9);
    assert_close(lab_track_flag_s(&track, LAB_METRIC_CLOCK_REASONS, 0x1, 0, INT64_MAX), 4 - 0.1);
    /* seen once before, once after: that is no interval of 5 h */
    track.times_ns += 19;
    track.count = 2;
    assert_true(isnan(lab_track_energy(&track, 0, 0, INT64_MAX).joules));
}

LAB_TEST_WITH(slow_readings_are_no_gaps, set_up, NULL) {
    for (int i = 0; i < TICKS; i++) {
        times_ns[i] = i * 10 * S;
        valid[ENERGY][i] = 0;
    }
    assert_close(lab_track_energy(&track, 0, 0, 100 * S).joules, 10000);
    track.count = 3;
    assert_close(lab_track_energy(&track, 0, 0, 100 * S).joules, 2000);
    track.count = 2;
    assert_close(lab_track_energy(&track, 10 * S, 0, 100 * S).joules, 1000);
}

LAB_TEST_WITH(a_counter_that_starts_anew_loses_nothing, set_up, NULL) {
    int64_t lost = values[ENERGY][25];
    for (int i = 25; i < TICKS; i++) /* reset at 12.5 s */
        values[ENERGY][i] -= lost;
    double growth = lab_track_growth(&track, LAB_METRIC_ENERGY, 10 * S, 15 * S);
    assert_close(growth, 100 + 100 + 150 + 300 + 300); /* what came between 12 and 12.5 s is gone */
    assert_true(isnan(lab_track_growth(&track, LAB_METRIC_ENERGY, 15 * S, 16 * S)));
}

LAB_TEST_WITH(flags_are_held_until_the_next_reading, set_up, NULL) {
    assert_close(lab_track_flag_s(&track, LAB_METRIC_CLOCK_REASONS, 0x4, 10 * S, 15 * S), 1);
    assert_close(
        lab_track_flag_s(&track, LAB_METRIC_CLOCK_REASONS, 0x4, 13 * S + 50 * MS, 13 * S + 80 * MS),
        0.03);
    assert_true(lab_track_flag_s(&track, LAB_METRIC_CLOCK_REASONS, 0x8, 10 * S, 15 * S) == 0);
}

LAB_TEST_WITH(a_part_of_a_recording_shares_its_samples, set_up, NULL) {
    LAB_AUTO(arena, arena);
    struct lab_sample_event events[] = {
        {.time_ns = 10 * S}, {.time_ns = 12 * S}, {.time_ns = 13 * S}};
    const struct lab_recording whole = {
        .tracks = &track, .track_count = 1, .events = events, .event_count = 3};
    const struct lab_recording *part = lab_recording_between(&whole, 11 * S, 12 * S, &arena);
    assert_int_equal(part->tracks[0].count, 11); /* both ends are included */
    assert_ptr_equal(part->tracks[0].times_ns, times_ns + 10);
    assert_ptr_equal(part->tracks[0].values[POWER], values[POWER] + 10);
    assert_ptr_equal(part->tracks[0].valid[ENERGY], valid[ENERGY] + 10);
    assert_int_equal(part->event_count, 1);
    assert_ptr_equal(part->events, events + 1);
    assert_true(lab_recording_has_ticks(part));
    part = lab_recording_between(&whole, 16 * S, 20 * S, &arena);
    assert_false(lab_recording_has_ticks(part) || part->event_count || part->process_count);
}

LAB_TEST(every_metric_is_found_by_its_name) {
    for (int i = 0; i < LAB_METRIC_COUNT; i++) {
        const struct lab_metric *metric = lab_metric((enum lab_metric_id)i);
        assert_int_equal(lab_metric_find(metric->name), i); /* so they are unique too */
        assert_true(metric->scale > 0 && *metric->title);
    }
    assert_int_equal(lab_metric_find("powr"), -1);
}
