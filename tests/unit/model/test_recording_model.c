/* test_recording_model.c: asking a recording in memory: wall time, columns, how much a counter
 * grew. */
#include "model/recording.h"

#include "test.h"
#include <math.h>

/* Ticks at 0, 10, 20 … 70; power at each, energy at 10, 40 and 60. */
enum { TICKS = 8 };

static int64_t times[TICKS] = {0, 10, 20, 30, 40, 50, 60, 70};
static int64_t power[TICKS] = {1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000};
static uint8_t power_valid[TICKS] = {1, 1, 1, 0, 1, 1, 1, 1};
static int64_t energy[TICKS] = {0, 5000, 0, 0, 9000, 0, 11000, 0};
static uint8_t energy_valid[TICKS] = {0, 1, 0, 0, 1, 0, 1, 0};
static int64_t *values[] = {power, energy, NULL};
static uint8_t *valid[] = {power_valid, energy_valid, NULL};
static const struct lab_column columns[] = {
    {LAB_METRIC_POWER, -1}, {LAB_METRIC_ENERGY, -1}, {LAB_METRIC_FAN, -1}};

static struct lab_track tracks[] = {
    {.entity = {.kind = LAB_ENTITY_CPU, .id = "cpu"}},
    {.entity =
         {.kind = LAB_ENTITY_GPU, .index = 2, .id = "GPU-1", .columns = columns, .column_count = 3},
     .count = TICKS,
     .times_ns = times,
     .values = values,
     .valid = valid},
};

LAB_TEST(wall_time_goes_by_the_epoch_that_holds) {
    struct lab_recording_epoch epochs[] = {{100, 5000, "", ""}, {200, 4000, "", ""}};
    const struct lab_recording recording = {.epochs = epochs, .epoch_count = 2};
    assert_int_equal(lab_recording_wall_ns(&recording, 150), 5150);
    assert_int_equal(lab_recording_wall_ns(&recording, 199), 5199);
    assert_int_equal(lab_recording_wall_ns(&recording, 200), 4200);
    assert_int_equal(lab_recording_wall_ns(&recording, 50), 5050); /* before all: the first */
}

LAB_TEST(a_column_is_in_its_unit_with_gaps) {
    double read[TICKS];
    assert_true(lab_track_read(&tracks[1], LAB_METRIC_POWER, -1, read));
    assert_true(read[0] == 1 && read[2] == 3 && isnan(read[3]) && read[7] == 8);
    assert_false(lab_track_read(&tracks[1], LAB_METRIC_FAN, -1, read));      /* not asked for */
    assert_false(lab_track_read(&tracks[1], LAB_METRIC_SM_CLOCK, -1, read)); /* not there */
}

static double growth(int64_t from_ns, int64_t until_ns) {
    return lab_track_growth(&tracks[1], LAB_METRIC_ENERGY, from_ns, until_ns);
}

LAB_TEST(growth_is_between_the_readings_around_the_time) {
    assert_true(growth(10, 60) == 6);
    assert_true(growth(15, 35) == 4); /* from 10 to 40 */
    assert_true(growth(40, 60) == 2);
    assert_true(growth(45, 47) == 2);
}

LAB_TEST(growth_takes_the_nearest_where_there_is_none_around) {
    assert_true(growth(0, 40) == 4);   /* the first after */
    assert_true(growth(30, 100) == 6); /* until the last one */
    assert_true(growth(-50, 500) == 6);
    assert_true(isnan(growth(60, 70))); /* one reading only */
    assert_true(isnan(lab_track_growth(&tracks[1], LAB_METRIC_FAN, 0, 70)));
}

LAB_TEST(a_counter_that_started_anew_counts_in_full) {
    energy[4] = 1000;
    energy[6] = 4000;
    assert_true(growth(10, 60) == 4); /* 1 since it began anew, then 3 */
    energy[4] = 9000;
    energy[6] = 11000;
}

LAB_TEST(a_gpu_is_found_by_its_index) {
    const struct lab_recording recording = {.tracks = tracks, .track_count = 2};
    assert_ptr_equal(lab_recording_gpu(&recording, 2), &tracks[1]);
    assert_null(lab_recording_gpu(&recording, 0));
}
