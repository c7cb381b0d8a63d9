/* Which label takes the least memory, on recordings whose answers can be worked out by hand. */
#include "recording_fixture.h"

/* Two GPUs, one of which peaks while the other doesn't: 10 s of `base`, then 10 s with 1000 MiB
 * more on the first, then 10 s with 1000 more on the second. */
static void add_in_turns(struct given *f, const char *name, const char *label, double base) {
    given_recording(f, name, label);
    struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
    for (int t = 0; t < 30; t++) {
        given_tick(first, t, base + (t / 10 == 1 ? 1000 : 0), 50, 100, 60);
        given_tick(second, t + 0.01, base + (t / 10 == 2 ? 1000 : 0), 50, 100, 60);
    }
}

/* Each GPU's peak is base + 1000, but together they never had more than one of those. */
LAB_TEST(peaks_at_different_times_dont_add_up) {
    struct given *f = *state;
    add_in_turns(f, "turns", "turns", 4000);
    when_analysed(f, "memory", NULL);
    assert_near(figure(f, 0, "total_peak_mib")->value, 9000, 1e-6);
    assert_near(figure(f, 0, "sum_of_peaks_mib")->value, 10000, 1e-6);
    assert_near(figure(f, 0, "total_mean_mib")->value, 8000 + 2 * 1000 / 3.0, 1e-6);
    assert_near(figure(f, 0, "fullest_share")->value, 5000 / 24576.0, 1e-9);
    assert_near(cell(f, 0, "gpus", 1, "mean_mib")->value, 4000 + 1000 / 3.0, 1e-6);
    assert_null(f->result.notes);
}

static const struct lab_chart *chart_of(const struct given *f, const char *name) {
    for (int c = 0; c < f->result.chart_count; c++)
        if (strcmp(f->result.charts[c].name, name) == 0)
            return &f->result.charts[c];
    fail_msg("no chart %s", name);
    return NULL;
}

/* Points of a study ran in an order of chance, in which GPUs 0, 1, 3, 2 stood in the picture, under
 * names that were cut: they are in order, with a panel for each kernel. */
LAB_TEST(points_of_a_study_are_drawn_in_order) {
    struct given *f = *state;
    for (int i = 0; i < 9; i++) {
        int k = i % 3, gpu = 2 - i / 3;
        const char *id = lab_arena_printf(&f->arena, "gpu%d_kernel%dx1024x1024_baseline", gpu, k);
        add_in_turns(f, lab_arena_printf(&f->arena, "%s_r0", id), id, 4000 + 100 * k);
    }
    when_analysed(f, "memory", NULL);
    const struct lab_chart *chart = chart_of(f, "gpu_memory_comparison"),
                           *lines = chart_of(f, "gpu_memory_timeline");
    assert_int_equal(chart->panel_count, 3);
    for (int p = 0; p < 3; p++) {
        const struct lab_chart_panel *panel = &chart->panels[p];
        assert_string_equal(panel->title, lab_arena_printf(&f->arena, "kernel%dx1024x1024", p));
        assert_int_equal(panel->x.name_count, 3);
        for (int g = 0; g < 3; g++)
            assert_string_equal(
                panel->x.names[g],
                lab_arena_printf(&f->arena, "gpu%d_kernel%dx1024x1024_baseline", g, p));
        assert_near(panel->series[1].y[0], (9000 + 200 * p) / 1024.0, 1e-6);
    }
    assert_string_equal(lines->panels[0].series[0].title, "gpu0_kernel0x1024x1024_baseline");
}

static void add_flat(struct given *f, const char *label, double memory) {
    given_recording(f, lab_arena_printf(&f->arena, "%s_%d", label, f->count), label);
    struct lab_track *gpu = given_gpu(f, 0);
    for (int t = 0; t < 10; t++)
        given_tick(gpu, t, memory, 50, 100, 60);
}

/* Points that take the same memory all the time: a sentence, and no equal bars. */
LAB_TEST(equal_memory_is_said_and_not_drawn) {
    struct given *f = *state;
    for (int i = 0; i < 4; i++)
        add_flat(f, lab_arena_printf(&f->arena, "l%d", i), 1000 + i);
    when_analysed(f, "memory", NULL);
    assert_int_equal(f->result.chart_count, 0);
    assert_true(lab_str_starts(f->result.answer, "At the peak, all GPUs together: 1000 MiB (l0) "));
    when_analysed(f, "balance", NULL);
    for (int c = 0; c < f->result.chart_count; c++)
        assert_string_not_equal(f->result.charts[c].name, "per_gpu_memory_breakdown");
}

/* Three recordings each, of which only the mean counts. The interval by R 4.2: exp() of that of
 * t.test(log(less), log(more)). */
LAB_TEST(the_least_comes_first_and_the_first_label_is_the_reference) {
    struct given *f = *state;
    static const double more[] = {54800, 55500, 55150}, less[] = {50000, 50400, 49700};
    for (int i = 0; i < 3; i++)
        add_flat(f, "adam", more[i]);
    for (int i = 0; i < 3; i++)
        add_flat(f, "pruned", less[i]);
    when_analysed(f, "memory", NULL);
    assert_int_equal(f->result.part_count, 2);
    assert_string_equal(f->result.parts[0].name, "pruned");
    const struct lab_doc_cell *change = figure(f, 0, "change");
    assert_near(change->value, -0.0928, 1e-4);
    assert_true(-0.11 < change->low && change->low < -0.10);
    assert_true(-0.085 < change->high && change->high < -0.075);
    assert_string_equal(figure(f, 0, "change_verdict")->text, "yes");
    assert_contains(f->result.answer, "adam: 53.9 GiB on average, 54.2 GiB at its peak. "
                                      "pruned: 9.3% lower memory than adam (95% CI [");
    assert_string_equal(cell(f, 0, "gpus", 0, "change_verdict")->text, "yes");
}

LAB_TEST(one_recording_each_gives_values_and_no_verdict) {
    struct given *f = *state;
    add_flat(f, "a", 10000);
    add_flat(f, "b", 15000);
    when_analysed(f, "memory", NULL);
    assert_near(figure(f, 1, "change")->value, 0.5, 1e-9);
    assert_string_equal(figure(f, 1, "change_verdict")->text, "inconclusive");
    assert_contains(f->result.answer, "b: 50.0% higher memory than a (1 run each: no interval)");
}

/* Recordings of a label that are far apart bound nothing. */
LAB_TEST(what_may_be_twice_as_much_is_inconclusive) {
    struct given *f = *state;
    static const double megabytes[] = {8000, 14000, 9000, 15000};
    for (int i = 0; i < 4; i++)
        add_flat(f, i < 2 ? "a" : "b", megabytes[i]);
    when_analysed(f, "memory", NULL);
    assert_string_equal(figure(f, 1, "change_verdict")->text, "inconclusive");
}

LAB_TEST(no_difference_at_all_is_a_plain_zero) {
    struct given *f = *state;
    for (int i = 0; i < 4; i++)
        add_flat(f, i < 2 ? "a" : "b", 10000);
    when_analysed(f, "memory", NULL);
    assert_contains(f->result.parts[1].answer, "No difference in memory");
}

/* The first of a study's points to be run is no reference, and what is alike is said once. */
LAB_TEST(points_of_a_study_are_not_compared_with_the_first) {
    struct given *f = *state;
    static const char *const points[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 8; i++)
        add_flat(f, points[i % 4], 168);
    for (int of_study = 0; of_study < 2; of_study++) {
        for (int i = 0; i < 8; i++)
            f->recordings[i].rate = of_study ? 100 : NAN;
        when_analysed(f, "memory", NULL);
        assert_int_equal(f->result.claim_count > 0, !of_study);
        assert_contains(f->result.answer, "All 4: ");
        assert_contains(f->result.answer, " MiB at the peak, all GPUs together.");
        assert_near(cell(f, 3, "gpus", 0, "mean_mib")->value, 168, 1e-9);
        assert_int_equal(f->result.column_count, of_study ? 5 : 10);
    }
}

/* What has no room on a page are the small ones. */
LAB_TEST(of_many_points_the_largest_come_first) {
    struct given *f = *state;
    static const char *const points[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 8; i++)
        add_flat(f, points[i % 4], 1000 * (1 + i % 4));
    when_analysed(f, "memory", NULL);
    assert_string_equal(f->result.parts[0].name, "d");
    assert_string_equal(f->result.charts[0].panels[0].x.names[0], "d");
    assert_contains(f->result.answer, "At the peak, all GPUs together: ");
}

const struct lab_test_program lab_test_program = {.set_up = given_setup,
                                                  .tear_down = given_teardown};
