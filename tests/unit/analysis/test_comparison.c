/* Sets of points against each other: what is matched, what is claimed, what is listed. */
#include "analysis/comparison/comparison_result.h"

#include <math.h>

#include "test.h"

/* Values around `level`, one for each block, all within `spread`. */
static void add(struct lab_point_set *set, const char *model, const char *batch, double level,
                double spread, int runs) {
    static const double around[] = {-0.8, 0.6, 0.2, -0.4, 0.4, -0.9, 0.8, 0.1, -0.2, 0.2};
    struct lab_axis_setting axes[] = {{"model", model}, {"batch_size", batch}, {"depth", model}};
    struct lab_point *point =
        lab_point_set_point(set, axes, 3, "throughput", "samples/s", &test_arena);
    for (int i = 0; i < runs; i++)
        lab_point_add_value(point, level * (1 + spread * around[i]), i, &test_arena);
}

static struct lab_comparison compare(struct lab_point_set *a, struct lab_point_set *b) {
    struct lab_point_set sets[] = {*a, *b};
    struct lab_point_set *kept = lab_arena_copy(&test_arena, sets, 2, sizeof *sets);
    struct lab_comparison *comparison;
    ASSERT_OK(lab_comparisons_make(kept, 2, &test_arena, &comparison, err));
    return *comparison;
}

LAB_TEST(points_are_matched_by_their_axes_not_by_their_order) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    add(&a, "small", "8", 100, 0.01, 5);
    add(&a, "large", "8", 10, 0.01, 5);
    add(&a, "large", "16", 12, 0.01, 5);
    add(&b, "large", "8", 9.5, 0.01, 5);
    add(&b, "small", "8", 100, 0.01, 5);
    add(&b, "huge", "8", 1, 0.01, 5);
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.point_count, 2);
    assert_int_equal(found.counts[LAB_COMPARISON_SLOWER], 1);
    assert_int_equal(found.counts[LAB_COMPARISON_SAME], 1);
    assert_near(found.points[0].claim.effect, -0.05, 1e-9);
    assert_string_equal(found.points[0].claim.kind, "compare.point");
    assert_int_equal(found.missing_count, 1);
    assert_int_equal(found.added_count, 1);
    /* the depth goes with the model: it tells no points apart */
    assert_int_equal(found.axis_count, 2);
    assert_string_equal(lab_comparison_point_name(&found, found.missing[0], &test_arena),
                        "large, batch size 16");
}

LAB_TEST(the_pooled_change_is_over_blocks_and_finer_than_a_point) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    const char *const models[] = {"m1", "m2", "m3", "m4"};
    for (int i = 0; i < 4; i++) {
        add(&a, models[i], "8", 10 + i, 0.02, 5);
        add(&b, models[3 - i], "8", (13 - i) * 0.97, 0.02, 5);
    }
    struct lab_comparison found = compare(&a, &b);
    assert_string_equal(found.pooled.kind, "compare.pooled");
    assert_near(found.pooled.effect, -0.03, 1e-9);
    assert_int_equal(found.pooled.n, 5);
    assert_int_equal(found.verdict, LAB_COMPARISON_SLOWER);
    assert_true(found.pooled.low < -0.03 && found.pooled.high > -0.03);
    assert_near(lab_comparison_shown(&found.pooled, found.verdict), -found.pooled.high, 1e-12);
    /* a block that lacks a point counts as the others do: levels differ between points */
    b.points[0].count = 4;
    assert_near(compare(&a, &b).pooled.effect, -0.03, 0.003);
}

LAB_TEST(a_setting_that_is_constant_in_each_set_is_a_difference) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    add(&a, "small", "8", 100, 0.01, 5);
    add(&a, "large", "8", 10, 0.01, 5);
    add(&b, "small", "16", 110, 0.01, 5);
    add(&b, "large", "16", 11, 0.01, 5);
    lab_point_set_add_fact(&a, "software", "driver", "550", &test_arena);
    lab_point_set_add_fact(&b, "software", "driver", "560", &test_arena);
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.point_count, 2);
    assert_int_equal(found.verdict, LAB_COMPARISON_FASTER);
    assert_int_equal(found.fact_count, 2);
    assert_string_equal(found.facts[0].name, "driver");
    assert_string_equal(found.facts[1].name, "batch_size");
    assert_string_equal(found.facts[1].other, "16");
}

LAB_TEST(one_run_gives_a_value_and_no_verdict) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c", .source = "c"};
    add(&a, "small", "8", 100, 0, 1);
    add(&b, "small", "8", 50, 0, 1);
    add(&c, "other", "8", 50, 0, 1);
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.verdict, LAB_COMPARISON_INCONCLUSIVE);
    assert_near(found.pooled.effect, -0.5, 1e-9);
    assert_true(isnan(lab_comparison_possible(&found.pooled)));
    struct lab_point_set sets[] = {a, c};
    struct lab_comparison *none;
    ASSERT_FAILS(lab_comparisons_make(sets, 2, &test_arena, &none, err), LAB_ERR_USER,
                 "share no point");
}

/* A drift of 10% from run to run hides 2% between two sets, but not between runs in turn. */
LAB_TEST(sets_that_were_run_in_turn_are_compared_pair_by_pair) {
    struct lab_point_set a = {.name = "a", .session = "1"}, b = {.name = "b", .session = "1"};
    struct lab_point *x = lab_point_set_point(&a, NULL, 0, "time", "s", &test_arena);
    struct lab_point *y = lab_point_set_point(&b, NULL, 0, "time", "s", &test_arena);
    for (int i = 0; i < 10; i++) {
        lab_point_add_value(x, pow(1.1, i), i, &test_arena);
        lab_point_add_value(y, 1.02 * pow(1.1, i) * (1 + 0.001 * (i % 3)), i, &test_arena);
    }
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.verdict, LAB_COMPARISON_SLOWER);
    assert_near(found.pooled.effect, 0.021, 0.001);
    b.session = "2";
    assert_int_equal(compare(&a, &b).verdict, LAB_COMPARISON_INCONCLUSIVE);
}

/* Both directions fell by 10%, and so did their sum, which would count them once more. */
LAB_TEST(a_sum_of_points_has_a_verdict_and_is_not_pooled_with_them) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    add(&a, "one", "8", 100, 0.01, 5);
    add(&a, "total", "8", 200, 0.01, 5);
    add(&b, "one", "8", 100, 0.01, 5);
    add(&b, "total", "8", 180, 0.01, 5);
    a.points[1].is_sum = b.points[1].is_sum = true;
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.point_count, 2);
    assert_int_equal(found.counts[LAB_COMPARISON_SLOWER], 1);
    assert_near(found.pooled.effect, 0, 1e-9);
    assert_int_equal(found.pooled.scope_count, 1);
}

LAB_TEST(what_failed_is_not_said_to_be_missing) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    add(&a, "one", "8", 100, 0.01, 5);
    add(&a, "two", "8", 200, 0.01, 5);
    add(&a, "three", "8", 200, 0.01, 5);
    add(&b, "one", "8", 100, 0.01, 5);
    struct lab_axis_setting failed[] = {{"model", "two"}};
    lab_point_set_add_failure(&b, failed, 1, "error", &test_arena);
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.missing_count, 1);
    assert_int_equal(found.failed_count, 1);
    assert_string_equal(lab_point_axis(found.missing[0], "model"), "three");
    assert_string_equal(lab_comparison_failure_name(&found, &b.failures[0], &test_arena), "two");
}

/* 5% of scatter: the runs can't exclude 2%, and the same runs need not. */
LAB_TEST(identical_values_are_counted_and_are_the_same) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    add(&a, "one", "8", 100, 0.05, 5);
    add(&a, "two", "8", 100, 0.05, 5);
    add(&b, "one", "8", 100, 0.05, 5);
    add(&b, "two", "8", 100.1, 0.05, 5);
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.identical_count, 1);
    assert_int_equal(found.counts[LAB_COMPARISON_SAME], 1);
    assert_int_equal(found.counts[LAB_COMPARISON_INCONCLUSIVE], 1);
}

/* As fast, but the loss is twice as high: no change of speed, and a worse result. */
LAB_TEST(reported_metrics_have_a_verdict_of_their_own) {
    struct lab_point_set a = {.name = "a"}, b = {.name = "b"};
    struct lab_axis_setting axes[] = {{"model", "one"}};
    add(&a, "one", "8", 100, 0.001, 5);
    add(&b, "one", "8", 100, 0.002, 5);
    for (int i = 0; i < 5; i++) {
        struct lab_point *x = lab_point_set_point(&a, axes, 1, "loss", "", &test_arena);
        x->better = LAB_DIRECTION_LOWER;
        lab_point_add_value(x, 1 + 0.001 * i, i, &test_arena);
        struct lab_point *y = lab_point_set_point(&b, axes, 1, "loss", "", &test_arena);
        y->better = LAB_DIRECTION_LOWER;
        lab_point_add_value(y, 2 + 0.001 * i, i, &test_arena);
    }
    struct lab_comparison found = compare(&a, &b);
    assert_int_equal(found.verdict, LAB_COMPARISON_SAME);
    assert_string_equal(found.pooled.quantity, "throughput");
    assert_int_equal(found.metric_count, 1);
    assert_int_equal(found.metrics[0].verdict, LAB_COMPARISON_SLOWER);
    assert_string_equal(lab_comparison_point_verdict(&found.points[0]), "worse");
    assert_string_equal(lab_comparison_point_verdict(&found.points[1]), "same");
    assert_contains(lab_comparison_sentence(&found, "b", "a", &test_arena), "higher loss than a");
}

LAB_TEST(a_report_of_studies_has_points_differences_and_claims) {
    struct lab_point_set a = {.name = "old", .simulated = true}, b = {.name = "new"};
    add(&a, "one", "8", 100, 0.01, 5);
    add(&a, "two", "8", 10, 0.01, 5);
    add(&b, "one", "8", 90, 0.01, 5);
    add(&b, "two", "8", 9, 0.01, 5);
    lab_point_set_add_fact(&a, "machine", "GPUs", "L40S", &test_arena);
    lab_point_set_add_fact(&b, "machine", "GPUs", "H100", &test_arena);
    struct lab_comparison found = compare(&a, &b);
    struct lab_analysis_result result = lab_comparison_result(&found, 1, &test_arena);
    assert_true(result.simulated);
    assert_contains(result.answer, "new: 10.0% lower throughput than old (95% CI [");
    assert_contains(result.answer, " Different machines (GPUs: L40S, H100).");
    assert_int_equal(result.claim_count, 3);
    assert_string_equal(result.parts[0].tables[0].columns[2].title, "old");
    assert_int_equal(result.parts[0].tables[0].row_count, 2);
    assert_contains(result.parts[0].notes[0], "Differs: GPUs (L40S, H100).");
    assert_int_equal(result.charts[0].panels[0].x.name_count, 2);
}

LAB_TEST(sets_come_back_from_json_as_they_were) {
    struct lab_point_set a = {.name = "a", .source = "x", .session = "7", .simulated = true}, *back;
    int count;
    add(&a, "small", "8", 100, 0.01, 3);
    lab_point_set_add_fact(&a, "machine", "CPU", "one", &test_arena);
    lab_point_set_add_failure(&a, a.points[0].axes, 1, "error", &test_arena);
    a.points[0].is_sum = true;
    struct lab_value *map = lab_value_map(&test_arena);
    lab_value_set(&test_arena, map, "sets", lab_point_sets_value(&a, 1, &test_arena));
    ASSERT_OK(lab_point_sets_parse(map, "file", &test_arena, &back, &count, err));
    assert_int_equal(count, 1);
    assert_string_equal(back->session, "7");
    assert_true(back->simulated);
    assert_string_equal(lab_point_set_fact(back, "machine", "CPU"), "one");
    assert_int_equal(back->points[0].count, 3);
    assert_true(back->points[0].is_sum);
    assert_int_equal(back->failure_count, 1);
    assert_string_equal(back->failures[0].reason, "error");
    assert_near(back->points[0].values[1], a.points[0].values[1], 0);
    /* and as more runs of the same */
    lab_point_set_merge(back, &a, &test_arena);
    assert_int_equal(back->point_count, 1);
    assert_int_equal(back->failure_count, 1);
    assert_int_equal(back->points[0].blocks[5], 5);
}
