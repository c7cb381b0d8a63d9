/* Series made short enough to draw: means of neighbours, gaps kept. */
#include "test.h"

#include "analysis/analysis_timeline.h"

#include <math.h>

LAB_TEST(neighbours_become_their_mean) {
    LAB_AUTO(arena, arena);
    double x[] = {0, 1, 2, 3, 4, 5}, y[] = {1, 3, 5, 7, 9, 11};
    struct lab_points points = lab_points_thin(x, y, 6, 3, 0, &arena);
    assert_int_equal(points.count, 3);
    assert_true(points.x[0] == 0.5 && points.y[0] == 2 && points.y[2] == 10);
}

/* Readings that all lie far from each other are a gap and a point each: twice as many as went
 * in. */
LAB_TEST(every_reading_may_come_after_a_gap) {
    LAB_AUTO(arena, arena);
    double x[1000], y[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = 10 * i, y[i] = i;
    struct lab_points points = lab_points_thin(x, y, 1000, 2000, 5, &arena);
    assert_int_equal(points.count, 1999);
    for (size_t i = 0; i < points.count; i++)
        assert_int_equal(isnan(points.y[i]) != 0, i % 2);
    assert_true(points.y[1998] == 999);
}

LAB_TEST(what_is_missing_stays_missing) {
    LAB_AUTO(arena, arena);
    double x[] = {0, 1, 2, 3, 4}, y[] = {NAN, 1, NAN, NAN, 2};
    struct lab_points points = lab_points_thin(x, y, 5, 100, 0, &arena);
    assert_int_equal(points.count, 3); /* 1, a gap, 2: none before the first */
    assert_true(points.y[0] == 1 && isnan(points.y[1]) && points.y[2] == 2);
}
