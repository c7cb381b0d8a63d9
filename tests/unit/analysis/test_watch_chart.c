/* Recordings as pictures: what is in them, by the names that people know. */
#include "recording_fixture.h"

/* A recording of so many GPUs for ten seconds: GPU g has (10 + g) GiB, less in its first second. */
static void given_gpus(struct given *f, const char *name, const char *label, int count) {
    given_recording(f, name, label);
    for (int g = 0; g < count; g++) {
        struct lab_track *track = given_gpu(f, g);
        for (int t = 0; t <= 10; t++)
            given_tick(track, t, t == 0 ? 1024 : 1024.0 * (10 + g), 80 - g, 100, 50);
    }
}

static const struct lab_chart *find(const struct given *f, const char *name) {
    for (int i = 0; i < f->result.chart_count; i++)
        if (strcmp(f->result.charts[i].name, name) == 0)
            return &f->result.charts[i];
    return NULL;
}

/* Given 2, 4, 6 or 8 GPUs, then the grid is 1×2, 2×2, 2×3 or 2×4, a panel for each. */
LAB_TEST(grid_follows_the_number_of_gpus) {
    static const struct {
        int gpus, columns;
    } cases[] = {{1, 1}, {2, 2}, {4, 2}, {6, 3}, {8, 4}, {10, 4}};
    struct given *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->count = 0;
        given_gpus(f, "a", "a", cases[i].gpus);
        when_analysed(f, "balance", NULL);
        const struct lab_chart *chart = find(f, "per_gpu_memory_breakdown");
        assert_non_null(chart);
        assert_int_equal(chart->panel_count, cases[i].gpus);
        assert_int_equal(chart->columns, cases[i].columns);
        assert_float_equal(chart->panels[0].y.high, 24, 1e-9); /* the GPU's own size */
        assert_float_equal(chart->panels[0].series[0].y[5], 10, 1e-9);
    }
}

/* Given two GPUs, then their memory stands beside the CV of three metrics and its bounds. */
LAB_TEST(balance_has_memory_and_bounds) {
    struct given *f = *state;
    given_gpus(f, "a", "a", 2);
    when_analysed(f, "balance", NULL);
    const struct lab_chart *chart = find(f, "gpu_load_balance_analysis");
    assert_non_null(chart);
    assert_int_equal(chart->panel_count, 2);
    assert_float_equal(chart->panels[0].series[0].y[1] - chart->panels[0].series[0].y[0], 10.0 / 11,
                       1e-6);
    assert_int_equal(chart->panels[1].series_count, 2); /* no bar reaches 5%, the first bound */
    assert_float_equal(chart->panels[1].series[1].y[0], 5, 1e-9);
}

/* Given one GPU, then there is no balance to be drawn. */
LAB_TEST(one_gpu_has_no_balance) {
    struct given *f = *state;
    given_gpus(f, "a", "a", 1);
    when_analysed(f, "balance", NULL);
    assert_null(find(f, "gpu_load_balance_analysis"));
}

/* Given two labels, one of two recordings, then whiskers span those; the least is first. */
LAB_TEST(labels_are_compared) {
    struct given *f = *state;
    given_gpus(f, "a1", "large", 3);
    given_gpus(f, "a2", "large", 3);
    given_gpus(f, "b", "small", 2);
    when_analysed(f, "memory", NULL);
    const struct lab_chart *chart = find(f, "gpu_memory_comparison");
    assert_non_null(chart);
    const struct lab_chart_panel *panel = &chart->panels[0];
    assert_string_equal(panel->x.names[0], "small");
    assert_string_equal(panel->x.names[1], "large");
    assert_float_equal(panel->series[1].y[0], 21, 1e-9); /* peaks of 10 and 11 GiB */
    assert_true(isnan(panel->series[1].low[0]));
    assert_float_equal(panel->series[1].low[1], 33, 1e-9);
    chart = find(f, "gpu_memory_timeline");
    assert_non_null(chart);
    assert_int_equal(chart->panels[0].series_count, 2);
    assert_float_equal(chart->panels[0].series[0].y[8], 21, 1e-9);
}

/* Given a GPU that vanishes, then the sum of memory has a gap, and no drop that never was. */
LAB_TEST(a_gap_stays_one) {
    struct given *f = *state;
    given_recording(f, "a", "a");
    for (int g = 0; g < 2; g++) {
        struct lab_track *track = given_gpu(f, g);
        for (int t = 0; t <= 10; t++)
            given_tick(track, t, g == 1 && t > 3 && t < 8 ? NONE : 1024, 80, 100, 50);
    }
    when_analysed(f, "memory", NULL);
    const struct lab_chart_series *line = &find(f, "gpu_memory_timeline")->panels[0].series[0];
    bool gap = false;
    for (size_t i = 0; i < line->count; i++) {
        gap |= isnan(line->y[i]);
        assert_true(isnan(line->y[i]) || fabs(line->y[i] - 2) < 1e-9);
    }
    assert_true(gap);
}

/* Given twelve recordings, then eight are drawn and the picture says so. */
LAB_TEST(too_many_lines_are_said) {
    struct given *f = *state;
    for (int i = 0; i < 12; i++)
        given_gpus(f, lab_arena_printf(&f->arena, "r%d", i), "a", 2);
    when_analysed(f, "balance", NULL);
    const struct lab_chart *chart = find(f, "per_gpu_memory_breakdown");
    assert_int_equal(chart->panels[0].series_count, 8);
    assert_string_equal(chart->title, "Memory of each GPU over time, 8 of 12 shown");
    chart = find(f, "gpu_load_balance_analysis");
    assert_string_equal(chart->title, "Load balance between GPUs, 5 of 12 shown");
    const struct lab_chart_panel *right = &chart->panels[1];
    for (int i = 0; i < right->series_count; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(right->series[i].colour % 8, right->series[k].colour % 8);
}

/* Given ten recordings of GPU 0 before one of GPU 1, then GPU 1 is drawn, on the same time axis. */
LAB_TEST(no_gpu_is_left_out) {
    struct given *f = *state;
    for (int i = 0; i < 11; i++) {
        given_recording(f, lab_arena_printf(&f->arena, "r%d", i), "a");
        struct lab_track *track = given_gpu(f, i < 10 ? 0 : 1);
        for (int t = 0; t <= 10 + i; t++)
            given_tick(track, t, 1024 + 100 * i, 80, 100, 50);
    }
    when_analysed(f, "balance", NULL);
    const struct lab_chart *chart = find(f, "per_gpu_memory_breakdown");
    assert_int_equal(chart->panel_count, 2);
    size_t points = 0;
    for (int s = 0; s < chart->panels[1].series_count; s++)
        points += chart->panels[1].series[s].count;
    assert_true(points > 0);
    assert_float_equal(chart->panels[0].x.high, chart->panels[1].x.high, 0);
    assert_null(find(f, "gpu_load_balance_analysis")); /* none has two GPUs to compare */
}

/* Given forty labels, then the first of them are drawn, and the picture says so. */
LAB_TEST(of_many_labels_the_largest_are_drawn) {
    struct given *f = *state;
    for (int i = 0; i < 40; i++)
        given_gpus(f, lab_arena_printf(&f->arena, "r%d", i), lab_arena_printf(&f->arena, "l%d", i),
                   1 + i / 20);
    when_analysed(f, "memory", NULL);
    const struct lab_chart *chart = find(f, "gpu_memory_comparison");
    assert_int_equal(chart->panels[0].x.name_count, 24);
    assert_contains(chart->title, ", 24 of 40");
    assert_true(chart->panels[0].series[1].y[0] > 10 + 1e-9); /* both GPUs of a label */
    chart = find(f, "gpu_memory_timeline");
    assert_contains(chart->title, ", 8 of 40");
}

/* Given two labels, when they are compared, then only what one of them has is on the axis. */
LAB_TEST(comparison_has_what_there_is) {
    struct given *f = *state;
    given_gpus(f, "a", "before", 2);
    given_gpus(f, "b", "after", 2);
    when_analysed(f, "compare", NULL);
    const struct lab_chart *chart = find(f, "recording_comparison");
    assert_non_null(chart);
    assert_string_equal(chart->title, "What differs from before");
    for (int i = 0; i < chart->panels[0].x.name_count; i++)
        assert_string_not_equal(chart->panels[0].x.names[i], "Throughput");
    assert_int_equal(chart->panels[0].series[0].count, chart->panels[0].x.name_count);
}

LAB_TEST(simulated_travels_to_the_picture) {
    struct given *f = *state;
    given_gpus(f, "a", "a", 2);
    f->now->simulated = true;
    static const char *const names[] = {"balance", "memory", "summary"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        when_analysed(f, names[i], NULL);
        assert_true(f->result.chart_count > 0);
        for (int c = 0; c < f->result.chart_count; c++)
            assert_true(f->result.charts[c].simulated);
    }
}

const struct lab_test_program lab_test_program = {.set_up = given_setup,
                                                  .tear_down = given_teardown};
