/*
 * Whether GPUs carry the same load, on recordings whose answers can be worked out by hand. Trends
 * were computed with R 4.2: cor.test(method = "kendall", exact = TRUE).
 */
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

/* The published example: 0.2148% by R, printed there as 0.3 %. Deviation of 40 values that are 45
 * off their mean: 45 · √(40/39) = 45.57. */
LAB_TEST_WITH(the_published_example_is_excellent, given_setup, given_teardown) {
    struct given *f = *state;
    given_four(f);
    when_analysed(f, "balance", NULL);
    assert_string_equal(line(f, "memory", 0), "GPU 0: 12800.0 MiB (±45.6)");
    assert_string_equal(line(f, "memory", 1), "GPU 1: 12750.0 MiB (±45.6)");
    assert_string_equal(line(f, "memory", 2), "GPU 2: 12825.0 MiB (±45.6)");
    assert_string_equal(line(f, "memory", 3), "GPU 3: 12780.0 MiB (±45.6)");
    assert_string_equal(line(f, "memory", 4), "Total:  51155.0 MiB");
    assert_string_equal(line(f, "memory", 5), "Balance: CV = 0.2% (excellent)");
    assert_near(figure(f, 0, "memory_cv")->value, 0.002148105, 1e-9);
    assert_near(figure(f, 0, "memory_total_mib")->value, 51155, 1e-9);
    assert_near(cell(f, 0, "memory", 2, "peak_mib")->value, 12870, 1e-9);
    assert_string_equal(line(f, "utilization", 4), "Mean:   85.0%");
    assert_string_equal(line(f, "power", 4), "Total:  600.0 W");
    assert_null(table(f, 0, "windows")->title); /* the same throughout */
    assert_false(has_note(f->result.parts[0].notes, "GPU"));
}

static const char *advice(const struct given *f) {
    for (int c = 0; c < f->result.column_count; c++)
        if (lab_str_equal(f->result.columns[c].title, "Advice"))
            return f->result.parts[0].cells[c].text;
    return NULL;
}

/* Two GPUs at 100 ± x have a CV of x %: the borders belong to the worse grade. */
LAB_TEST(grades_begin_where_they_should) {
    static const struct {
        double off;
        const char *grade, *advice;
    } cases[] = {
        {4.9, "excellent", "nothing to change"}, {5, "good", "that 2 divides"},
        {9.9, "good", "that 2 divides"},         {10, "fair", "workers for each rank"},
        {19.9, "fair", "that 2 divides"},        {20, "poor", "other processes"},
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
        assert_contains(advice(f), cases[i].advice);
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
    assert_null(advice(f));
}

/* Given ten GPUs that one recording shows, and more of single GPUs, then few are drawn, each
 * in a colour of its own. */
LAB_TEST_WITH(lines_of_many_recordings_differ, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "all", "all");
    for (int g = 0; g < 10; g++)
        add_flat(given_gpu(f, g), 10, 9000, 50, 100);
    for (int i = 0; i < 10; i++) {
        const char *name = lab_arena_printf(&f->arena, "single_%d", i);
        given_recording(f, name, name);
        add_flat(given_gpu(f, i), 10, 8000 + 100 * i, 50, 100);
    }
    when_analysed(f, "balance", NULL);
    const struct lab_chart *chart = NULL;
    for (int c = 0; c < f->result.chart_count; c++)
        if (strcmp(f->result.charts[c].name, "per_gpu_memory_breakdown") == 0)
            chart = &f->result.charts[c];
    assert_non_null(chart);
    assert_int_equal(chart->panel_count, 10);
    assert_int_equal(chart->panels[9].series_count, 4);
}

/* Given two points of a study, run twice in an order of chance, then the balance shows the first run
 * of each, and of the grades' lines those that bars come near to: the others pressed them flat. */
LAB_TEST_WITH(of_several_points_first_runs_are_drawn, given_setup, given_teardown) {
    struct given *f = *state;
    static const char *const names[] = {"gpu0+1_softmax_r1", "gpu0+1_gemm_r1", "gpu0+1_softmax_r0",
                                        "gpu0+1_gemm_r0"};
    for (int i = 0; i < 4; i++) {
        given_recording(f, names[i], names[i]);
        for (int g = 0; g < 2; g++)
            add_flat(given_gpu(f, g), 10, 9000 + 400 * g, 50 + g, 100);
    }
    when_analysed(f, "balance", NULL);
    for (int c = 0; c < f->result.chart_count; c++) {
        const struct lab_chart *chart = &f->result.charts[c];
        const struct lab_chart_panel *last = &chart->panels[chart->panel_count - 1];
        bool balance = strcmp(chart->name, "gpu_load_balance_analysis") == 0;
        assert_string_equal(last->series[0].title, "gpu0+1_gemm_r0");
        assert_string_equal(last->series[1].title, "gpu0+1_softmax_r0");
        assert_int_equal(last->series_count, balance ? 3 : 4);
        if (balance)
            assert_string_equal(last->series[2].title, "excellent below 5%");
    }
}

/* Given recordings of one GPU before that of two, then the one that has a balance comes first, and
 * the mean says how many it is of. */
LAB_TEST_WITH(what_has_a_balance_comes_first, given_setup, given_teardown) {
    struct given *f = *state;
    for (int i = 0; i < 3; i++) {
        const char *name = lab_arena_printf(&f->arena, "single_%d", i);
        given_recording(f, name, name);
        add_flat(given_gpu(f, i), 10, 9000, 50, 100);
    }
    given_recording(f, "both", "both");
    for (int g = 0; g < 2; g++)
        add_flat(given_gpu(f, g), 10, 9000, 50, 100);
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.parts[0].name, "both");
    assert_contains(f->result.answer,
                    "Balance, mean of 1 recording of several GPUs that were used, of 4: ");
}

/* Of two equal GPUs "poor, CV 32.9%" was said, from two samples of 10 ms. */
LAB_TEST_WITH(short_recordings_are_not_graded, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "short", "short");
    for (int g = 0; g < 2; g++) {
        struct lab_track *gpu = given_gpu(f, g);
        for (int t = 0; t < 3; t++)
            given_tick(gpu, 0.01 * t, 500, g ? 15 : 30, 60, 40);
    }
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.answer, "Not graded: 20 ms recorded, 1 s needed.");
    assert_null(figure(f, 0, "utilization_grade")->text);
    assert_null(advice(f));
}

/* Of GPUs at 0.1% use "poor, CV 81.8%" was said. */
LAB_TEST_WITH(idle_gpus_are_not_graded, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "idle", "idle");
    add_flat(given_gpu(f, 0), 10, 500, 0, 30);
    add_flat(given_gpu(f, 1), 10, 5000, 1, 60);
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.answer, "Not graded: no GPU was used above 5%.");
    assert_contains(line(f, "utilization", 3), "(not graded)");
    given_recording(f, "one", "one");
    add_flat(given_gpu(f, 0), 10, 500, 50, 30);
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.answer,
                        "Not graded: 2 recordings, 1 with fewer than 2 GPUs in use, 1 with no "
                        "GPU above 5% utilisation.");
    for (int c = 0; c < f->result.chart_count; c++) /* it has lines of grades */
        assert_string_not_equal(f->result.charts[c].name, "gpu_load_balance_analysis");
    for (int m = 0; m < 3; m++)
        assert_null(figure(f, 0,
                           m == 0   ? "memory_grade"
                           : m == 1 ? "utilization_grade"
                                    : "power_grade")
                        ->text);
    assert_null(advice(f));
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
        has_note(f->result.parts[0].notes, "GPU 1 has no samples for 25.6% of the time (1 gap)"));
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
    assert_true(has_note(f->result.parts[0].notes, "GPU 1 has no samples for 50.0% of the time"));
}

/* GPU 1's load falls from 90% to 45% while GPU 0 stays: the balance gets worse from window to
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
    assert_near(figure(f, 0, "utilization_drift")->value, 1, 0);
    assert_near(figure(f, 0, "memory_drift")->value, 0, 0);
    assert_near(cell(f, 0, "windows", 9, "utilization_cv")->value, 1 / 3.0, 1e-3);
    assert_non_null(table(f, 0, "windows")->title);
    assert_int_equal(table(f, 0, "windows")->row_count, 10);
}

/* From 0 to 3.6% and so excellent throughout, but on its way: that is worth watching. */
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
    assert_string_equal(advice(f), "nothing to change yet; memory diverges");
}

LAB_TEST_WITH(unused_gpus_can_be_left_out, given_setup, given_teardown) {
    struct given *f = *state;
    given_recording(f, "half", "half");
    for (int g = 0; g < 4; g++)
        add_flat(given_gpu(f, g), 10, g < 2 ? 20000 : 3, g < 2 ? 95 : 0, g < 2 ? 250 : 20);
    when_analysed(f, "balance", NULL);
    assert_contains(f->result.answer, "The balance of 2 GPUs is excellent: ");
    assert_contains(f->result.answer, " GPU 2,3 was not used.");
    assert_near(figure(f, 0, "memory_cv")->value, 0, 1e-12);
    when_analysed(f, "balance", "gpus=[0,2]");
    assert_null(strstr(f->result.answer, "not used"));
    assert_string_equal(figure(f, 0, "memory_grade")->text, "poor");
    given_recording(f, "lone", "lone");
    add_flat(given_gpu(f, 0), 10, 20000, 95, 250);
    add_flat(given_gpu(f, 1), 10, 3, 0, 20);
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.parts[1].answer,
                        "Not graded: balance needs two GPUs in use. GPU 1 was not used.");
}

/* A lost GPU made of idle ones a poor balance, and of the others' power a total. */
LAB_TEST_WITH(unknown_gpus_are_neither_busy_nor_in_a_total, given_setup, given_teardown) {
    struct given *f = *state;
    for (int i = 0; i < 2; i++) {
        given_recording(f, i ? "busy" : "idle", "a");
        for (int g = 0; g < 3; g++)
            add_flat(given_gpu(f, g), 10, g == 2 ? NONE : 500 + 4000 * g,
                     g == 2 ? NONE
                     : i    ? 90
                            : 1,
                     g == 2 ? NONE : 50);
    }
    when_analysed(f, "balance", NULL);
    assert_string_equal(f->result.parts[0].answer, "Not graded: no GPU was used above 5%.");
    assert_contains(f->result.parts[1].answer, "The balance of 2 GPUs is poor in memory");
    assert_string_equal(line(f, "power", 3), "Total:  100.0 W (2 of 3 GPUs)");
    when_analysed(f, "summary", NULL);
    assert_string_equal(figure(f, 0, "power_total_w")->text, "of 2 of 3 GPUs");
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

/* Ten windows whose CVs come in these orders; two-sided p of Kendall's test by R: 0.0726, 0.0466. */
LAB_TEST(trends_are_those_of_r) {
    static const double orders[2][10] = {{4, 1, 5, 2, 3, 9, 10, 6, 8, 7},
                                         {4, 2, 5, 1, 3, 9, 6, 10, 7, 8}};
    for (int i = 0; i < 4; i++) {
        void *own;
        given_setup(&own);
        struct given *f = own;
        given_recording(f, "trend", "trend");
        struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
        for (int t = 0; t <= 100; t++) {
            double order = orders[i > 0][t / 10 < 10 ? t / 10 : 9];
            double off = i == 2 ? 11 - order : i == 3 ? order / 100 : order; /* falls; too little */
            given_tick(first, t, 1000, 50, 100 + off, 60);
            given_tick(second, t, 1000, 50, 100 - off, 60);
        }
        when_analysed(f, "balance", NULL);
        assert_near(figure(f, 0, "power_drift")->value, i == 1 ? 1 : i == 2 ? -1 : 0, 0);
        given_teardown(&own);
    }
}
