/*
 * Whether GPUs carry the same load, on recordings whose answers can be worked out by hand. Trends
 * and rank correlations were computed with R 4.2: cor.test(method = "kendall", exact = TRUE) and
 * cor(method = "spearman").
 */
#include "analysis/balance/drift.h"
#include "recording_fixture.h"

/* Constant values for so many seconds. */
static void add_flat(struct lab_track *gpu, int seconds, double memory, double utilization,
                     double power) {
    for (int t = 0; t < seconds; t++)
        given_tick(gpu, t, memory, utilization, power, 60);
}

static void given_four(struct given *f) {
    static const double memory[] = {12800, 12750, 12825, 12780};
    given_recording(f, "adamw", "adamw");
    for (int g = 0; g < 4; g++) {
        struct lab_track *gpu = given_gpu(f, g);
        for (int t = 0; t < 40; t++)
            given_tick(gpu, t, memory[g] + (t % 2 ? 45 : -45), 85, 150, 70);
    }
}

static const char *line(const struct given *f, const char *key, int number) {
    const struct lab_doc_table *found = table(f, 0, key);
    assert_non_null(found);
    for (int i = 0; i <= number; i++)
        assert_non_null(found->lines[i]);
    return found->lines[number];
}

/* The published example: 0.2148 % by R, printed there as 0.3 %. Deviation of 40 values that are 45
 * off their mean: 45 · √(40/39) = 45.57. */
LAB_TEST_WITH(the_published_example_is_excellent, given_setup, given_teardown) {
    struct given *f = *state;
    given_four(f);
    when_analysed(f, "balance", NULL);
    assert_string_equal(line(f, "memory", 0), "GPU 0: 12800.0 MB (±45.6)");
    assert_string_equal(line(f, "memory", 1), "GPU 1: 12750.0 MB (±45.6)");
    assert_string_equal(line(f, "memory", 2), "GPU 2: 12825.0 MB (±45.6)");
    assert_string_equal(line(f, "memory", 3), "GPU 3: 12780.0 MB (±45.6)");
    assert_string_equal(line(f, "memory", 4), "Total:  51155.0 MB");
    assert_string_equal(line(f, "memory", 5), "Balance: CV = 0.2 % (excellent)");
    assert_near(figure(f, 0, "memory_cv")->value, 0.002148105, 1e-9);
    assert_near(figure(f, 0, "memory_total_mib")->value, 51155, 1e-9);
    assert_near(cell(f, 0, "memory", 2, "peak_mib")->value, 12870, 1e-9);
    assert_string_equal(line(f, "utilization", 4), "Mean:   85.0 %");
    assert_string_equal(line(f, "power", 4), "Total:  600.0 W");
    assert_string_equal(figure(f, 0, "over_time")->text, "the same throughout");
    assert_false(has_note(f->result.parts[0].notes, "GPU"));
}

/* Two GPUs at 100 ± x have a CV of x %: the borders belong to the worse grade. */
LAB_TEST(grades_begin_where_they_should) {
    static const struct {
        double off;
        const char *grade, *advice;
    } cases[] = {
        {4.9, "excellent", "nothing to change"}, {5, "good", "watch the trend"},
        {9.9, "good", "that 2 divides"},         {10, "fair", "batch split"},
        {19.9, "fair", "loading of data"},       {20, "poor", "DDP's settings"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *own;
        given_setup(&own);
        struct given *f = own;
        given_recording(f, "two", "two");
        add_flat(given_gpu(f, 0), 10, 10000, 50, 100 + cases[i].off);
        add_flat(given_gpu(f, 1), 10, 10000, 50, 100 - cases[i].off);
        when_analysed(f, "balance", NULL);
        assert_near(figure(f, 0, "power_cv")->value, cases[i].off / 100, 1e-12);
        assert_string_equal(figure(f, 0, "power_grade")->text, cases[i].grade);
        assert_contains(figure(f, 0, "advice")->text, cases[i].advice);
        given_teardown(&own);
    }
}

LAB_TEST_WITH(one_gpu_has_no_balance, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "single", "single");
    add_flat(given_gpu(f, 3), 10, 9000, 50, 100);
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.answer, "Only GPU 3 was recorded: balance needs two.");
    assert_string_equal(line(f, "memory", 2), "Balance: needs two GPUs");
    assert_true(isnan(figure(f, 0, "memory_cv")->value));
    assert_null(figure(f, 0, "advice")->text);
}

/* Idle GPUs: a mean of 0 has no CV, and no grade. */
LAB_TEST_WITH(nothing_to_compare_is_no_grade, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "idle", "idle");
    add_flat(given_gpu(f, 0), 10, 500, 0, 30);
    add_flat(given_gpu(f, 1), 10, 500, 0, 30);
    when_analysed(f, "balance", NULL);
    assert_string_equal(line(f, "utilization", 3), "Balance: – (nothing to compare)");
    assert_null(figure(f, 0, "utilization_grade")->text);
    assert_true(has_note(f->result.parts[0].notes, "nearly idle (0.0 %)"));
}

/* GPU 1 gives nothing from second 10 to 19 of 0 to 39: between its ticks at 9 and 20 lie 11 s, of
 * which one is the usual interval. 10 / 39 = 25.6 %. */
LAB_TEST_WITH(a_gap_is_not_filled, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "lost", "lost");
    struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
    add_flat(first, 40, 1000, 50, 100);
    for (int t = 0; t < 40; t++) {
        bool away = t >= 10 && t < 20;
        double memory = t < 10 ? 1000 : 1100;
        given_tick(second, t, away ? NONE : memory, away ? NONE : 50, away ? NONE : 100,
                   away ? NONE : 60);
    }
    when_analysed(f, "balance", NULL);
    assert_near(cell(f, 0, "memory", 1, "mean_mib")->value, (10 * 1000 + 20 * 1100) / 30.0, 1e-6);
    assert_true(
        has_note(f->result.parts[0].notes, "GPU 1 gave nothing for 25.6 % of the time (1 gap)"));
    /* ten windows of 3.9 s; the fourth and fifth lie within the gap */
    assert_true(isnan(cell(f, 0, "windows", 3, "memory_cv")->value));
    assert_near(cell(f, 0, "windows", 0, "memory_cv")->value, 0, 1e-12);
    assert_near(cell(f, 0, "windows", 9, "memory_cv")->value, 50.0 / 1050, 1e-9);
}

/* A GPU that ends early is missing at the end, though its own ticks have no hole. */
LAB_TEST_WITH(an_early_end_is_a_gap, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "early", "early");
    add_flat(given_gpu(f, 0), 41, 1000, 50, 100);
    add_flat(given_gpu(f, 1), 21, 1000, 50, 100);
    when_analysed(f, "balance", NULL);
    assert_true(has_note(f->result.parts[0].notes, "GPU 1 gave nothing for 50.0 % of the time"));
}

/* GPU 1's load falls from 90 % to 45 % while GPU 0 stays: the balance gets worse from window to
 * window. */
LAB_TEST_WITH(drift_is_told, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "drifting", "drifting");
    struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
    for (int t = 0; t < 100; t++) {
        int step = t / 10;
        given_tick(first, t, 1000, 90, 100, 60);
        given_tick(second, t, 1000, 90 - 5 * step, 100, 60);
    }
    when_analysed(f, "balance", "window=9.9s");
    const char *text = figure(f, 0, "over_time")->text;
    assert_contains(text, "utilisation drifts apart");
    assert_contains(text, "worst from 89.1 s to 99.0 s: utilisation, CV 33.3 % (poor)");
    assert_non_null(table(f, 0, "windows")->title);
    assert_int_equal(table(f, 0, "windows")->row_count, 10);
}

/* From 0 to 3.6 % and so excellent throughout, but on its way: that is worth watching. */
LAB_TEST_WITH(slow_drift_is_worth_watching, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "leak", "leak");
    struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
    for (int t = 0; t < 100; t++) {
        given_tick(first, t, 1000, 90, 100, 60);
        given_tick(second, t, 1000 + 0.75 * t, 90, 100, 60);
    }
    when_analysed(f, "balance", NULL);
    assert_string_equal(figure(f, 0, "memory_grade")->text, "excellent");
    assert_string_equal(figure(f, 0, "advice")->text,
                        "nothing to change yet; watch memory, which drifts apart");
}

LAB_TEST_WITH(unused_gpus_can_be_left_out, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "half", "half");
    for (int g = 0; g < 4; g++)
        add_flat(given_gpu(f, g), 10, g < 2 ? 20000 : 3, g < 2 ? 95 : 0, g < 2 ? 250 : 20);
    when_analysed(f, "balance", NULL);
    assert_true(has_note(f->result.parts[0].notes,
                         "nobody seems to use GPU 2,3: gpus=[0,1] gives the balance"));
    assert_contains(f->result.answer, "Nobody seems to use GPU 2,3.");
    when_analysed(f, "balance", "gpus=[0,1]");
    assert_null(strstr(f->result.answer, "Nobody"));
    assert_near(figure(f, 0, "memory_cv")->value, 0, 1e-12);
    assert_int_equal((int)figure(f, 0, "gpus")->value, 2);
}

LAB_TEST_WITH(what_cant_be_told_is_said, given_setup, given_teardown) {
    struct given *f = *state;
    static const enum lab_metric_id cpu[] = {LAB_METRIC_CPU_UTILIZATION};
    struct lab_recording *recording = given_recording(f, "host", "host");
    struct lab_track *track = given_track(f, LAB_ENTITY_CPU, 0, cpu, 1);
    for (int t = 0; t < 5; t++) {
        track->times_ns[track->count] = GIVEN_START + t * SECOND;
        put(track, 0, 12.5);
        track->count++;
    }
    ASSERT_FAILS(ask(f, "balance", NULL, err), LAB_ERR_USER, "host: no GPU was recorded");
    track->entity.kind = LAB_ENTITY_MIG;
    ASSERT_SAYS(ask(f, "balance", NULL, err), "only MIG instances were recorded");
    add_flat(given_gpu(f, 0), 5, 1000, 50, 100);
    static const char *missing[] = {"the last 3 s were cut off", NULL};
    recording->missing = missing;
    when_analysed(f, "balance", NULL);
    assert_true(has_note(f->result.parts[0].notes, "1 MIG instance was recorded"));
    assert_true(has_note(f->result.parts[0].notes, "the last 3 s were cut off"));
    ASSERT_SAYS(ask(f, "balance", "gpus=[7]", err), "none of the GPUs that gpus= names");
}

/* Runs of one label that are the slower the less they are balanced. */
LAB_TEST_WITH(throughput_goes_with_balance, given_setup, given_teardown) {
    struct given *f = *state;
    static const double low[] = {88, 85, 80, 70, 60, 50}, rates[] = {410, 405, 401, 390, 372, 360};
    for (int i = 0; i < 6; i++) {
        given_recording(f, lab_arena_printf(&f->arena, "run%d", i), "vit");
        f->recordings[i].rate = rates[i];
        add_flat(given_gpu(f, 0), 10, 1000, 90, 100);
        add_flat(given_gpu(f, 1), 10, 1000, low[i], 100);
    }
    when_analysed(f, "balance", NULL);
    assert_true(has_note(f->result.notes, "6 runs: rank correlation -1.00, the less balanced, the "
                                          "slower"));
    assert_contains(f->result.answer, "the worst balance is that of run5: poor in "
                                      "utilisation");
    f->recordings[2].label = "another";
    when_analysed(f, "balance", NULL);
    assert_null(f->result.notes);
}

LAB_TEST_WITH(chance_is_called_chance, given_setup, given_teardown) {
    struct given *f = *state;
    /* R: rho = 0.257 for these six; with four there is nothing to say */
    static const double low[] = {88, 85, 80, 70, 60, 50}, rates[] = {372, 401, 405, 400, 360, 410};
    for (int i = 0; i < 6; i++) {
        given_recording(f, lab_arena_printf(&f->arena, "run%d", i), "vit");
        f->recordings[i].rate = i < 4 ? rates[i] : NONE;
        add_flat(given_gpu(f, 0), 10, 1000, 90, 100);
        add_flat(given_gpu(f, 1), 10, 1000, low[i], 100);
    }
    when_analysed(f, "balance", NULL);
    assert_false(has_note(f->result.notes, "rank correlation"));
    f->recordings[4].rate = rates[4];
    f->recordings[5].rate = rates[5];
    when_analysed(f, "balance", NULL);
    assert_true(has_note(f->result.notes, "rank correlation +0.26, which chance explains"));
}

/* --- ranks --- */

/* Two-sided p of Kendall's test by R: 0.0726 and 0.0466 for these orders of ten values. */
LAB_TEST(trends_are_those_of_r) {
    static const double chance[] = {4, 1, 5, 2, 3, 9, 10, 6, 8, 7};
    static const double trend[] = {4, 2, 5, 1, 3, 9, 6, 10, 7, 8};
    double fall[10], small[10];
    for (int i = 0; i < 10; i++) {
        fall[i] = -trend[i];
        small[i] = trend[i] / 1000; /* less than a point in all */
    }
    assert_int_equal(lab_drift_make(chance, 10).direction, 0);
    assert_int_equal(lab_drift_make(trend, 10).direction, 1);
    assert_int_equal(lab_drift_make(fall, 10).direction, -1);
    assert_int_equal(lab_drift_make(small, 10).direction, 0);
    assert_int_equal(lab_drift_make(trend, 10).worst, 7);
    assert_near(lab_drift_make(trend, 10).first, 4, 0);
    assert_near(lab_drift_make(trend, 10).last, 8, 0);
    static const double holes[] = {NONE, 1, 2, NONE, 3, 4}, five[] = {1, 2, 3, 4, 5};
    assert_int_equal(lab_drift_make(holes, 6).direction, 0); /* four: p = 0.083 */
    assert_int_equal(lab_drift_make(five, 5).direction, 1);  /* p = 0.0167 */
    assert_int_equal(lab_drift_make(NULL, 0).worst, -1);
}

LAB_TEST(long_series_use_the_normal_limit) {
    double up[60], flat[60];
    for (int i = 0; i < 60; i++) {
        up[i] = i;
        flat[i] = i % 2;
    }
    assert_int_equal(lab_drift_make(up, 60).direction, 1);
    assert_int_equal(lab_drift_make(flat, 60).direction, 0);
}
