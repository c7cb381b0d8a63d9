/* test_clock.c: the system's clock, and one that stands still. */
#include "base/clock.h"

#include "test.h"

LAB_TEST(the_system_clock_never_goes_back) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t before = lab_clock_now(clock);
    lab_clock_sleep(clock, 2 * LAB_NS_PER_MS);
    int64_t after = lab_clock_now(clock);
    assert_true(after - before >= 2 * LAB_NS_PER_MS);
    /* times in the past return at once, whatever they are */
    clock->sleep_until(clock, before);
    clock->sleep_until(clock, 0);
    clock->sleep_until(clock, -5);
    assert_true(lab_clock_now(clock) >= after);
}

LAB_TEST(a_manual_clock_moves_by_sleeping_alone) {
    int64_t time_ns = 100;
    struct lab_clock clock = lab_clock_manual(&time_ns);
    assert_int_equal(lab_clock_now(&clock), 100);
    lab_clock_sleep(&clock, 50);
    assert_int_equal(time_ns, 150);
    clock.sleep_until(&clock, 120);
    assert_int_equal(lab_clock_now(&clock), 150);
    time_ns = 7;
    assert_int_equal(lab_clock_now(&clock), 7);
}

LAB_TEST(wall_time_is_of_this_century) {
    assert_true(lab_clock_wall_ns() > 1600000000 * LAB_NS_PER_S);
}
