/* Programs of the user's own: which setting is best by what they said, and at what price. */
#include "study_fixture.h"

#include "test.h"

struct given {
    struct given_study study;
    struct lab_analysis_result result;
};

static int begin(void **state) {
    struct given *g = lab_mem_alloc(1, sizeof *g);
    given_begin(&g->study, "test_matrix");
    *state = g;
    return 0;
}

static int end(void **state) {
    struct given *g = *state;
    given_end(&g->study);
    lab_mem_free(g);
    return 0;
}

/* A run of a setting that said one number, and took so much memory of its GPU. */
static struct lab_study_run *add(struct given *g, const char *setting, int repeat,
                                 const char *metric, double value, double memory_mib) {
    struct lab_arena *arena = &g->study.arena;
    struct lab_study_run *run = given_add(
        &g->study, (struct given_run){.model = setting,
                                      .repeat = repeat,
                                      .rate = 1,
                                      .result = lab_arena_printf(
                                          arena, "{\"gpu_memory_peak_mb\": %g}", memory_mib)});
    struct lab_study_metric *said = lab_arena_alloc(arena, 1, sizeof *said);
    *said = (struct lab_study_metric){metric, "", -1, value};
    run->metrics = said;
    run->metric_count = 1;
    return run;
}

static void analyse(struct given *g) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_analysis *analysis = lab_analysis_find("metrics", &err);
    assert_non_null(analysis);
    struct lab_analysis_input input = given_input(&g->study);
    if (lab_analysis_run(analysis, NULL, &input, &g->study.arena, &g->result, &err) < 0)
        fail_msg("%s", err.text);
}

static void assert_says(const struct given *g, const char *text) {
    assert_contains(g->result.answer, text);
}

/* Given three runs of each, far apart, then the higher accuracy is best, for sure. */
LAB_TEST(the_best_setting_is_named) {
    struct given *g = *state;
    for (int r = 0; r < 3; r++) {
        add(g, "sgd", r, "val_accuracy", 0.80 + 0.001 * r, 9000);
        add(g, "adamw", r, "val_accuracy", 0.90 + 0.001 * r, 12000);
    }
    analyse(g);
    assert_says(g, "adamw: 12.5% higher val_accuracy than sgd (95% CI [12.4, 12.5]%, 3 runs each)");
    assert_int_equal(g->result.part_count, 1);
}

/* Given one run of each, then nobody knows whether another would say the same. */
LAB_TEST(one_run_each_proves_nothing) {
    struct given *g = *state;
    add(g, "sgd", 0, "loss", 0.5, 9000);
    add(g, "adamw", 0, "loss", 0.4, 12000);
    analyse(g);
    assert_string_equal(g->result.answer,
                        "loss from 0.4 (adamw) to 0.5 (sgd): no verdict (1 run each).");
    assert_int_equal(g->result.claims[0].verdict, LAB_CLAIM_INCONCLUSIVE);
}

/* Given the same value of all, then none is the best. */
LAB_TEST(equal_values_have_no_best) {
    struct given *g = *state;
    for (int r = 0; r < 2; r++) {
        add(g, "sgd", r, "loss", 0.5, 9000);
        add(g, "adamw", r, "loss", 0.5, 12000);
    }
    analyse(g);
    assert_says(g, "No difference larger than 0.0% in loss between 2 settings.");
    assert_string_equal(g->result.parts[0].cells[1].text, "sgd");
}

/* Given a name that tells no direction, then none is called best. */
LAB_TEST(unknown_metrics_have_no_best) {
    struct given *g = *state;
    add(g, "a", 0, "iter", 500, 1);
    add(g, "b", 0, "iter", 400, 1);
    analyse(g);
    assert_string_equal(g->result.answer,
                        "iter from 400 (b) to 500 (a): no direction is better (1 run each).");
    assert_null(g->result.parts[0].cells[1].text);
    assert_int_equal(g->result.chart_count, 0);
}

/* Given an accuracy beside a loss, then the picture is of memory against the accuracy. */
LAB_TEST(memory_is_drawn_against_accuracy) {
    struct given *g = *state;
    add(g, "sgd", 0, "loss", 0.5, 9216);
    add(g, "adamw", 0, "top1", 0.9, 12288);
    analyse(g);
    assert_int_equal(g->result.chart_count, 1);
    const struct lab_chart *chart = g->result.charts;
    assert_string_equal(chart->name, "memory_vs_accuracy_scatter");
    assert_string_equal(chart->panels[0].y.title, "top1");
    assert_string_equal(chart->panels[0].x.title, "Peak memory of the GPUs [GiB]");
    assert_int_equal(chart->panels[0].series[0].count, 1);
    assert_float_equal(chart->panels[0].series[0].x[0], 12, 1e-9);
    assert_float_equal(chart->panels[0].series[0].y[0], 0.9, 1e-9);
}

/* Given twenty settings, then those beyond the palette share a colour, and none is lost. */
LAB_TEST(many_settings_share_a_colour) {
    struct given *g = *state;
    size_t points = 0;
    for (int i = 0; i < 20; i++)
        add(g, lab_arena_printf(&g->study.arena, "lr%d", i), 0, "acc", 0.5 + 0.01 * i, 100);
    analyse(g);
    const struct lab_chart_panel *panel = &g->result.charts[0].panels[0];
    for (int i = 0; i < panel->series_count; i++)
        points += panel->series[i].count;
    assert_int_equal(panel->series_count, 8);
    assert_int_equal(points, 20);
}

/* Given runs that said nothing, or no number, then that is the answer. */
LAB_TEST(nothing_said_is_said) {
    struct given *g = *state;
    add(g, "a", 0, "loss", NAN, 1);
    given_add(&g->study, (struct given_run){.model = "b", .rate = 1});
    analyse(g);
    assert_says(g, "No run reported a number");
    assert_int_equal(g->result.part_count, 0);
    assert_int_equal(g->result.chart_count, 0);
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
