/* Curves: thinned as they grow, without losing an extreme; read between their points. */
#include "model/curve.h"

#include "test.h"

#include <math.h>

static struct lab_curve make(int values, double (*value)(int), struct lab_arena *arena) {
    struct lab_curve curve = {0};
    for (int i = 0; i < values; i++)
        lab_curve_add(&curve, i, 0.5 * i, value(i), arena);
    return curve;
}

static double falling(int i) {
    return i == 77777 ? 1000 : 100.0 / (i + 1);
}

/* Given 100,000 values, then few points are kept, equally many values each, and the peak is there. */
LAB_TEST(a_long_curve_is_thinned) {
    LAB_AUTO(arena, arena);
    struct lab_curve curve = make(100000, falling, &arena);
    assert_in_range(curve.count, LAB_CURVE_POINTS / 2, LAB_CURVE_POINTS);
    int64_t values = 0;
    double most = 0, sum = 0;
    for (int i = 0; i < curve.count; i++) {
        values += curve.points[i].count;
        most = fmax(most, curve.points[i].high);
        sum += curve.points[i].value * (double)curve.points[i].count;
        assert_true(i + 1 == curve.count || curve.points[i].count == curve.share);
    }
    assert_int_equal(values, 100000);
    assert_float_equal(most, 1000, 0);
    assert_float_equal(sum, curve.sum, 1e-6);
    assert_float_equal(curve.most, 1000, 0);
    assert_float_equal(curve.step_most, 77777, 0);
    assert_float_equal(curve.first, 100, 0);
    assert_float_equal(curve.last, falling(99999), 0);
    assert_true(curve.stepped);
}

static double some_lost(int i) {
    return i % 3 == 1 ? (double)NAN : i == 3 ? (double)INFINITY : i;
}

/* Given values that aren't finite, then they count and are passed over; the last is what it is. */
LAB_TEST(lost_values_count) {
    LAB_AUTO(arena, arena);
    struct lab_curve curve = make(5, some_lost, &arena);
    assert_int_equal(curve.values, 5);
    assert_int_equal(curve.finite, 2);
    assert_float_equal(curve.most, 2, 0);
    assert_true(isnan(curve.last));
    assert_float_equal(lab_curve_at(&curve, false, 1), 1, 1e-12); /* between 0 and 2 */
    assert_true(isnan(lab_curve_at(&curve, false, 3)));
}

static double line(int i) {
    return 2.0 * i;
}

LAB_TEST(a_curve_is_read_between_its_points) {
    LAB_AUTO(arena, arena);
    struct lab_curve curve = make(11, line, &arena);
    assert_float_equal(lab_curve_at(&curve, false, 2.5), 5, 1e-12);
    assert_float_equal(lab_curve_at(&curve, true, 2.5), 10, 1e-12); /* step 5 */
    assert_float_equal(lab_curve_at(&curve, false, 10), 20, 0);
    assert_true(isnan(lab_curve_at(&curve, false, -0.1)));
    assert_true(isnan(lab_curve_at(&curve, false, 10.1)));
}

/* Given a step that is unknown, or goes back, then the curve is one over time. */
LAB_TEST(steps_that_go_back_are_none) {
    LAB_AUTO(arena, arena);
    for (int unknown = 0; unknown < 2; unknown++) {
        struct lab_curve curve = make(3, line, &arena);
        lab_curve_add(&curve, unknown ? (double)NAN : 1, 9, 1, &arena);
        assert_false(curve.stepped);
    }
}

/* Given epochs that each count from 0, then steps are counted on. */
LAB_TEST(steps_that_restart_are_counted_on) {
    static const double said[] = {0, 10, 20, 0, 10, 20, 5, 15},
                        counted[] = {0, 10, 20, 30, 40, 50, 60, 70};
    LAB_AUTO(arena, arena);
    struct lab_curve curve = {0};
    for (int i = 0; i < 8; i++)
        lab_curve_add(&curve, said[i], i, 1, &arena);
    assert_true(curve.stepped);
    for (int i = 0; i < 8; i++)
        assert_float_equal(curve.points[i].step, counted[i], 0);
    assert_float_equal(curve.last_step, 15, 0); /* as it was printed */
}

/* Given several values at a step, or at a time, then the last one counts; over time all are there. */
LAB_TEST(the_last_value_of_a_step_counts) {
    static const int per_step[] = {1, 2, 5};
    for (size_t c = 0; c < 3; c++)
        for (int steps = 3; steps < 3000; steps = 10 * steps + 7) { /* thinned, and not */
            LAB_AUTO(arena, arena);
            struct lab_curve curve = {0};
            for (int i = 0; i < steps * per_step[c]; i++) {
                int step = i / per_step[c], last = i % per_step[c] == per_step[c] - 1;
                lab_curve_add(&curve, step, 0.1 * step, last ? step : 9000 + i, &arena);
            }
            struct lab_curve_line line = lab_curve_line(&curve, false);
            for (int i = 0; i < line.count; i++)
                assert_float_equal(line.points[i].value, line.points[i].step, 1e-6);
            assert_float_equal(lab_curve_at(&curve, false, 1.5), 1.5, 1e-6);
            if (steps == 3)
                assert_float_equal(lab_curve_at(&curve, true, 0.1), 1, 0);
            assert_int_equal(curve.values, steps * per_step[c]);
        }
    LAB_AUTO(arena, arena);
    struct lab_curve curve = {0};
    lab_curve_add(&curve, 1, 1, NAN, &arena);
    lab_curve_add(&curve, 1, 2, 4, &arena);
    assert_float_equal(lab_curve_at(&curve, false, 1), 4, 0);
    lab_curve_add(&curve, 1, 3, INFINITY, &arena);
    assert_true(isnan(lab_curve_at(&curve, false, 1)));
}

/* Values of one time are a block: 4 or more at a time, unless there are 32 blocks.
 * A program that prints fast makes blocks, too, but no pauses; one block has none. */
LAB_TEST(blocks_are_noticed) {
    static const struct {
        int values, per_block;
        double pause_s;
        bool has_times, buffered;
    } cases[] = {{3, 3, 1, true, false},  {7, 7, 1, false, false},  {8, 8, 1, false, false},
                 {8, 4, 1, false, true},  {40, 4, 1, false, true},  {40, 3, 1, true, false},
                 {40, 1, 1, true, false}, {124, 4, 1, false, true}, {40, 4, 0.05, false, false},
                 {128, 4, 1, true, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        LAB_AUTO(arena, arena);
        struct lab_curve curve = {0};
        for (int i = 0; i < cases[c].values; i++)
            lab_curve_add(&curve, i, cases[c].pause_s * (i / cases[c].per_block + 1), 1, &arena);
        assert_int_equal(lab_curve_has_times(&curve), cases[c].has_times);
        assert_int_equal(lab_curve_is_buffered(&curve), cases[c].buffered);
    }
}

LAB_TEST(curves_are_kept_by_name_and_rank) {
    LAB_AUTO(arena, arena);
    struct lab_metric_curves curves = {.arena = &arena};
    lab_metric_curves_get(&curves, "loss", NULL, 0);
    lab_metric_curves_get(&curves, "loss", "", 1);
    assert_int_equal(lab_metric_curves_get(&curves, "loss", "", 0) - curves.items, 0);
    assert_int_equal(curves.count, 2);
    assert_string_equal(curves.items[0].unit, "");
}
