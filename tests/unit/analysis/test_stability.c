/* Whether `stability` tells steady runs from those that drift, slow down or never settle. */
#include "claim_fixture.h"
#include "resource_fixture.h"

static double ten_ms = 0.01;

static double steady(double seconds, void *context) {
    (void)seconds;
    return *(const double *)context;
}

static double slows_at_20(double seconds, void *context) {
    return *(const double *)context * (seconds < 20 ? 1 : 1.08);
}

static double warms_up(double seconds, void *context) {
    return *(const double *)context * (seconds < 3 ? 1.3 : 1);
}

static double drifting(double seconds, void *context) {
    return *(const double *)context * (1 + 0.03 * seconds / 30);
}

static double restless(double seconds, void *context) {
    return *(const double *)context * ((int)(seconds / 2.5) % 2 ? 1.2 : 1);
}

static struct given_run a_run(int gpu) {
    return (struct given_run){.model = "vit16x8x768", .gpu = gpu, .rate = 1000, .spread = 0.03};
}

static double heat_from_20(double seconds, void *context) {
    (void)context;
    return seconds < 20 ? 0 : 0x20;
}

static double clock_from_20(double seconds, void *context) {
    (void)context;
    return seconds < 20 ? 1980 : 1830;
}

/* Five runs of `pace` on each of two GPUs. */
static struct lab_analysis_result when_repeated(struct given_study *given,
                                                double (*pace)(double, void *)) {
    given_begin(given, "stability");
    for (int i = 0; i < 10; i++) {
        struct given_run run = a_run(i % 2);
        run.repeat = i / 2;
        given_paced(given, run, 30, i % 2 ? pace : steady, &ten_ms);
    }
    return when_asked(given, "stability");
}

LAB_TEST(test_steady_runs_have_a_bound_on_their_drift) {
    struct given_study given;
    struct lab_analysis_result result = when_repeated(&given, steady);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NO);
    assert_int_equal(result.claims[0].n, 5);
    assert_true(result.claims[0].bound < 0.01);
    assert_true(
        lab_str_starts(result.answer, "No drift of iteration times in runs of 30.0 s: within ±0."));
    assert_contains(result.answer, "% (mean of 2 points, 5 runs each). "
                                   "Each point alone: within ±");
    assert_contains(result.answer, " Longest iteration of all runs: 1.");
    assert_contains(result.answer, "; p99 at most 1.");
    assert_contains(result.answer,
                    "%. No point has a lasting change of 1% or more in over half of its runs.");
    assert_int_equal(
        claim_of(&result, "stability.longer", "drift over minutes (runs longer than 30.0 s)")
            ->verdict,
        LAB_CLAIM_NOT_TESTED);
    assert_string_equal(result.further, "experiment.duration=120s experiment.repeat=5");
    assert_contains(result.tests, "Test for drift over minutes: "); /* throttling: unknown */
    assert_null(result.action);
    assert_true(has_note(result.notes, "Throttling unknown in 10 of 10 runs"));
    given_end(&given);
}

/* Runs of two ranks, three of one point and two of the other, which has two ranks or one. */
LAB_TEST(test_runs_are_counted_not_their_ranks) {
    for (int others = 2; others >= 1; others--) {
        struct given_study given;
        given_begin(&given, "stability");
        for (int i = 0; i < 5; i++) {
            struct given_run row = a_run(2 * (i % 2));
            row.repeat = i / 2;
            struct lab_study_run *run = given_paced(&given, row, 30, steady, &ten_ms);
            struct lab_study_rank *ranks = lab_arena_alloc(&given.arena, 2, sizeof *ranks);
            ranks[0] = ranks[1] = run->ranks[0];
            ranks[1].device = i % 2 ? "cuda:3" : "cuda:1";
            run->ranks = ranks;
            run->rank_count = i % 2 ? others : 2;
        }
        struct lab_analysis_result result = when_asked(&given, "stability");
        assert_contains(result.answer,
                        others == 2
                            ? "% (mean of 4 ranks of 2 points, 2 to 3 runs each). 2 of 4 ranks "
                              "alone: within ±1.3%. 2 are inconclusive: drift of up to 4.7% isn't "
                              "excluded ("
                            : "%. 1 is inconclusive: drift of up to ");
        if (others == 1)
            assert_contains(result.answer, " (mean of 3 ranks of 2 points, 2 to 3 runs each).");
        assert_true(has_note(result.notes, "Throttling unknown in 5 of 5 runs"));
        given_end(&given);
    }
}

/* Of three points one keeps 15 iterations a run, and a device's other one drifts. */
LAB_TEST(test_points_that_were_too_short_are_counted) {
    struct given_study given;
    given_begin(&given, "stability");
    for (int i = 0; i < 15; i++) {
        struct given_run run = a_run(i % 3 > 0);
        run.repeat = i / 3;
        run.model = i % 3 == 2 ? "vit32x2x512" : run.model;
        given_paced(&given, run, i % 3 == 2 ? 0.15 : 30, i % 3 == 1 ? drifting : steady, &ten_ms);
    }
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_contains(result.answer, ", mean of 2 of 3 points (runs of 30.");
    assert_contains(result.answer, " GPU 1, NUMA node 0, vit16x8x768, end of run: 3.");
    assert_int_equal(result.longer, 3);
    assert_string_equal(result.why_longer,
                        "Runs 3 times as long also test the other 1 of 3 points");
    given_end(&given);
}

LAB_TEST(test_drift_is_claimed_over_runs_by_device) {
    struct given_study given;
    struct lab_analysis_result result = when_repeated(&given, drifting);
    assert_true(result.claims[0].low < 0.015 && result.claims[0].high > 0.015);
    assert_contains(result.answer, " from start to end of a run, mean of 2 points (runs of 30.");
    assert_contains(result.answer, " GPU 1, end of run: 3.");
    assert_string_equal(result.claims[0].subject, "All runs, end of run"); /* nothing measured */
    const struct lab_claim *slow = claim_of(&result, "stability.device", "GPU 1");
    assert_int_equal(slow->verdict, LAB_CLAIM_YES);
    assert_true(slow->low < 0.03 && slow->high > 0.03 && slow->high - slow->low < 0.02);
    assert_int_equal(claim_of(&result, "stability.device", "GPU 0")->verdict, LAB_CLAIM_NO);
    given_end(&given);
}

/* What one run of five has may be chance: no verdict about the point. */
LAB_TEST(test_a_change_counts_where_most_runs_have_it) {
    struct given_study given;
    struct lab_analysis_result result = when_repeated(&given, slows_at_20);
    assert_int_equal(figure_of(&result, "changed_runs")->value, 5);
    assert_contains(result.answer, "Change points in 5 of 10 runs; gpu1_numa0_vit16x8x768_r");
    assert_int_equal(claim_of(&result, "stability.change", "_r2")->verdict, LAB_CLAIM_YES);
    given_end(&given);
    given_begin(&given, "stability");
    for (int i = 0; i < 5; i++) {
        struct given_run run = a_run(0);
        run.repeat = i;
        given_paced(&given, run, 30, i == 2 ? slows_at_20 : steady, &ten_ms);
    }
    result = when_asked(&given, "stability");
    assert_int_equal(figure_of(&result, "changed_runs")->value, 0);
    assert_int_equal(claim_of(&result, "stability.change", "_r2")->verdict, LAB_CLAIM_INCONCLUSIVE);
    given_end(&given);
}

LAB_TEST(test_a_slow_down_is_dated_and_explained) {
    struct given_study given;
    given_begin(&given, "stability");
    given_paced(&given, a_run(0), 30, steady, &ten_ms);
    struct lab_study_run *hot = given_paced(&given, a_run(1), 30, slows_at_20, &ten_ms);
    struct beside beside = given_samples(&given, hot, 0.1);
    struct lab_track *gpu = given_entity(&beside, LAB_ENTITY_GPU, 1);
    given_column(&beside, gpu, LAB_METRIC_CLOCK_REASONS, -1, 1, heat_from_20, NULL);
    given_column(&beside, gpu, LAB_METRIC_SM_CLOCK, -1, 1, clock_from_20, NULL);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(table_of(&result, "change_points")->row_count, 1);
    assert_true(fabs(cell_of(&result, "change_points", 0, "at_s")->value - 20) < 0.2);
    assert_true(fabs(cell_of(&result, "change_points", 0, "change")->value - 0.08) < 0.01);
    assert_true(fabs(cell_of(&result, "change_points", 0, "clock_after_mhz")->value - 1830) < 5);
    assert_string_equal(cell_of(&result, "change_points", 0, "reason")->text,
                        "thermal limit (driver)");
    /* the point with the longest iterations comes first */
    assert_string_equal(cell_of(&result, "points", 0, "point")->text,
                        "GPU 1, NUMA node 0, vit16x8x768");
    assert_true(fabs(cell_of(&result, "points", 0, "throttled_s")->value - 10) < 0.3);
    for (int i = 0; i < result.claim_count; i++) /* one run: values; throttling is observed */
        assert_int_equal(result.claims[i].verdict,
                         lab_str_equal(result.claims[i].kind, "stability.throttling")
                             ? LAB_CLAIM_YES
                             : LAB_CLAIM_INCONCLUSIVE);
    assert_true(!result.faults || !result.faults[0]);
    assert_contains(result.answer, "Change points in 1 of 2 runs; gpu1_numa0_vit16x8x768_r0: ");
    assert_contains(result.answer, "% longer from 20.0 s on, throttled by thermal limit (driver).");
    assert_contains(result.answer, "GPU 1 throttled by thermal limit (driver) in 1 of 1 runs");
    assert_contains(result.action, "Check cooling and power limit of GPU 1: throttled by thermal");
    given_end(&given);
}

static double heat_from_28(double seconds, void *context) {
    return heat_from_20(seconds - 8, context);
}

/* Every fifth iteration fills an empty pipeline: 20 s of the others are 28 s by the clock. */
LAB_TEST(test_a_change_of_a_pipeline_is_dated_by_the_clock) {
    struct given_study given;
    given_begin(&given, "stability");
    struct lab_study_run *hot = given_paced(&given, a_run(0), 30, slows_at_20, &ten_ms);
    given_refills(&given, hot, 5);
    struct beside beside = given_samples(&given, hot, 0.1);
    struct lab_track *gpu = given_entity(&beside, LAB_ENTITY_GPU, 0);
    given_column(&beside, gpu, LAB_METRIC_CLOCK_REASONS, -1, 1, heat_from_28, NULL);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(table_of(&result, "change_points")->row_count, 1);
    assert_true(fabs(cell_of(&result, "change_points", 0, "at_s")->value - 28) < 0.4);
    assert_string_equal(cell_of(&result, "change_points", 0, "reason")->text,
                        "thermal limit (driver)");
    assert_true(fabs(cell_of(&result, "points", 0, "throttled_s")->value - 14) < 0.4);
    given_end(&given);
}

/* One iteration that was held up begins no other pace, wherever it is. */
static double held_up_once(double seconds, void *context) {
    double at_s = *(const double *)context;
    return ten_ms * (seconds >= at_s && seconds < at_s + 1.8 * ten_ms ? 1.8 : 1);
}

LAB_TEST(test_no_change_is_told_that_is_smaller_than_asked_for) {
    for (int i = 0; i < 60; i++) {
        struct given_study given;
        given_begin(&given, "stability");
        given.random = (uint64_t)i;
        struct given_run run = a_run(0);
        run.spread = 0.01;
        double at_s = 0.5 + 0.01 * i;
        given_paced(&given, run, 1.67, held_up_once, &at_s);
        struct lab_analysis_result result = when_asked(&given, "stability");
        int changes = table_of(&result, "change_points")->row_count;
        for (int c = 0; c < changes; c++)
            assert_true(fabs(cell_of(&result, "change_points", c, "change")->value) >= 0.01);
        given_end(&given);
    }
}

LAB_TEST(test_warm_up_is_a_change_to_less) {
    struct given_study given;
    given_begin(&given, "stability");
    given_paced(&given, a_run(0), 30, warms_up, &ten_ms);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_true(fabs(cell_of(&result, "change_points", 0, "at_s")->value - 3) < 0.1);
    assert_contains(result.answer, "% less from 3.0");
    given_end(&given);
}

LAB_TEST(test_what_never_settles_has_many_changes) {
    struct given_study given;
    given_begin(&given, "stability");
    given_paced(&given, a_run(0), 30, restless, &ten_ms);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_true(table_of(&result, "change_points")->row_count > 5);
    given_end(&given);
}

/* Pace that wanders by half a percent and forgets that after 30 ms, in iterations of a quarter of a
 * millisecond: what copies do. */
struct wander {
    uint64_t seed, drawn;
    double now, last_s;
};

static double next_normal(struct wander *wander) {
    double u = lab_random_uniform(wander->seed, wander->drawn++),
           v = lab_random_uniform(wander->seed, wander->drawn++);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

static double wandering(double seconds, void *context) {
    struct wander *wander = context;
    double kept = wander->drawn ? exp(-(seconds - wander->last_s) / 0.03) : 0;
    wander->now = kept * wander->now + 0.006 * sqrt(1 - kept * kept) * next_normal(wander);
    wander->last_s = seconds;
    return 0.00025 * (1 + wander->now);
}

static double wandering_then_slower(double seconds, void *context) {
    return wandering(seconds, context) * (seconds < 0.6 ? 1 : 1.08);
}

static struct lab_analysis_result when_it_wanders(struct given_study *given, double duration_s) {
    given_begin(given, "stability");
    for (int gpu = 0; gpu < 30; gpu++) {
        struct wander wander = {.seed = (uint64_t)(100 + gpu)};
        struct given_run row = a_run(gpu);
        row.spread = 0.01;
        given_paced(given, row, duration_s, wandering, &wander);
    }
    return when_asked(given, "stability");
}

LAB_TEST(test_wander_that_is_forgotten_is_no_change) {
    static const double durations_s[] = {0.13, 0.8};
    for (int i = 0; i < 2; i++) {
        struct given_study given;
        struct lab_analysis_result result = when_it_wanders(&given, durations_s[i]);
        for (int c = 0; c < result.claim_count; c++)
            if (result.claims[c].verdict == LAB_CLAIM_YES)
                fail_msg("%s of %s", result.claims[c].kind, result.claims[c].subject);
        given_end(&given);
    }
}

/* From 1 s to 0.43 s by and by, and never even, as on a CPU that others use, too. */
static double ever_faster(double seconds, void *context) {
    struct wander *wander = context;
    double kept = wander->drawn ? exp(-(seconds - wander->last_s) / 20) : 0;
    wander->now = kept * wander->now + 0.3 * sqrt(1 - kept * kept) * next_normal(wander);
    wander->last_s = seconds;
    return exp(wander->now) * (0.43 + 0.57 * exp(-seconds / 60));
}

LAB_TEST(test_times_that_wander_too_much_are_not_called_unchanged) {
    struct given_study given;
    given_begin(&given, "stability");
    struct wander wander = {.seed = 3};
    struct given_run row = a_run(0);
    given_paced(&given, row, 120, ever_faster, &wander);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(figure_of(&result, "changed_runs")->value, 0);
    assert_contains(result.answer,
                    " No certain change point: in 1 of 1 runs times drift or wander too "
                    "much to show one. Longest iteration");
    given_end(&given);
}

static double slower_from_50_ms(double seconds, void *context) {
    return wandering(seconds, context) * (seconds < 0.05 ? 1 : 1.15);
}

LAB_TEST(test_a_large_change_shows_in_a_tenth_of_a_second) {
    struct given_study given;
    given_begin(&given, "stability");
    struct wander wander = {.seed = 11};
    struct given_run row = a_run(0);
    row.spread = 0.01;
    given_paced(&given, row, 0.1, slower_from_50_ms, &wander);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(table_of(&result, "change_points")->row_count, 1);
    assert_true(fabs(cell_of(&result, "change_points", 0, "at_s")->value - 0.05) < 0.002);
    assert_true(fabs(cell_of(&result, "change_points", 0, "change")->value - 0.15) < 0.02);
    given_end(&given);
}

LAB_TEST(test_a_change_is_told_from_wander) {
    struct given_study given;
    given_begin(&given, "stability");
    struct wander wander = {.seed = 7};
    struct given_run row = a_run(0);
    row.spread = 0.01;
    given_paced(&given, row, 1.2, wandering_then_slower, &wander);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(table_of(&result, "change_points")->row_count, 1);
    assert_true(fabs(cell_of(&result, "change_points", 0, "at_s")->value - 0.6) < 0.02);
    if (!strstr(result.answer, "longer from 60") && !strstr(result.answer, "longer from 59"))
        fail_msg("%s", result.answer);
    given_end(&given);
}

LAB_TEST(test_throttling_comes_from_the_result_where_nothing_was_sampled) {
    struct given_study given;
    given_begin(&given, "stability");
    struct given_run row = a_run(0);
    row.result = "{\"throttled_s\": {\"sw_power_cap\": 4.5, \"hw_thermal\": 0}}";
    /* it makes the run invalid, and was "never held back" */
    given_paced(&given, row, 30, steady, &ten_ms)->used = false;
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_true(cell_of(&result, "points", 0, "throttled_s")->value == 4.5);
    assert_string_equal(cell_of(&result, "points", 0, "throttled_by")->text, "power limit");
    assert_contains(result.answer,
                    "GPU 0 throttled by power limit in 1 of 1 runs, 4.5 s in total. ");
    given_end(&given);
}

LAB_TEST(test_a_constant_series_is_flat) {
    struct given_study given;
    given_begin(&given, "stability");
    struct given_run row = a_run(0);
    row.iterations = 500;
    row.spread = 0;
    given_add(&given, row);
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_true(fabs(result.claims[0].effect) < 1e-9);
    assert_int_equal(table_of(&result, "change_points")->row_count, 0);
    given_end(&given);
}

/* A host that waits once its queue is full: a 4x pause in iterations 63 and 95 of 99. */
static double pauses_late(double seconds, void *context) {
    int i = (int)(seconds / *(const double *)context + 0.5);
    return *(const double *)context * (i == 63 || i == 98 ? 4 : 1);
}

LAB_TEST(test_single_slow_iterations_are_no_drift) {
    struct given_study given;
    given_begin(&given, "stability");
    for (int i = 0; i < 5; i++) {
        struct given_run row = a_run(0);
        row.repeat = i;
        row.spread = 0.002;
        given_paced(&given, row, 1.06, pauses_late, &ten_ms);
    }
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NO);
    assert_true(result.claims[0].bound < 0.005);
    given_end(&given);
}

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "stability");
    struct lab_analysis_result result = when_asked(&given, "stability");
    assert_string_equal(result.answer, "Not tested: no run is done.");
    assert_int_equal(result.chart_count, 0);
    struct given_run row = a_run(0);
    given_add(&given, row);
    row.gpu = 1;
    row.iterations = 10;
    given_add(&given, row);
    result = when_asked(&given, "stability");
    assert_contains(result.answer, "Not tested: fewer than 21 iterations");
    row.gpu = 2;
    row.iterations = 200;
    given_add(&given, row);
    result = when_asked(&given, "stability");
    assert_true(has_note(result.notes, "2 of 3 runs kept fewer than 21 iterations"));
    given_end(&given);
}

/* Points of one model each have a panel, named as the table and the answer name them. */
LAB_TEST(test_panels_name_their_setting) {
    struct given_study given;
    given_begin(&given, "stability");
    for (int i = 0; i < 2; i++) {
        struct given_run row = a_run(0);
        row.suffix = i ? "_batch_size32" : "_batch_size16";
        row.iterations = 200;
        given_add(&given, row);
    }
    struct lab_analysis_result result = when_asked(&given, "stability");
    const struct lab_chart *chart = chart_of(&result, "stability");
    assert_int_equal(chart->panel_count, 2);
    for (int p = 0; p < 2; p++) {
        const char *point = cell_of(&result, "points", p, "point")->text;
        assert_string_equal(chart->panels[p].title, strstr(point, "32")
                                                        ? "vit16x8x768, batch 32, GPU 0"
                                                        : "vit16x8x768, batch 16, GPU 0");
    }
    given_end(&given);
}

LAB_TEST(test_pictures_stay_small) {
    struct given_study given;
    given_begin(&given, "stability");
    for (int i = 0; i < 15; i++) {
        struct given_run row = a_run(i);
        row.iterations = 5000;
        given_add(&given, row);
    }
    given_paced(&given, a_run(15), 30, slows_at_20, &ten_ms);
    struct lab_analysis_result result = when_asked(&given, "stability");
    const struct lab_chart *chart = chart_of(&result, "stability");
    assert_non_null(chart);
    assert_int_equal(chart->panel_count, 6);
    assert_contains(chart->caption, "Of 16 runs: those with");
    /* the one with something to see comes first, its levels dashed */
    assert_string_equal(chart->panels[0].title, "vit16x8x768, GPU 15");
    assert_int_equal(chart->panels[0].series[1].count, 6);
    for (int p = 0; p < chart->panel_count; p++)
        assert_true(chart->panels[p].series[0].count <= 2000);
    given_end(&given);
}
