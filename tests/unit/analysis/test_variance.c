/* Whether `variance` tells phases apart as the runs carry, kernel by kernel and GPU by GPU. */
#include "resource_fixture.h"

struct phase_run {
    const char *phase, *kernel;
    int gpu, repeat;
    double time_s, spread;
    const char *result;
};

static struct lab_study_run *given_phase(struct given_study *given, struct phase_run row) {
    return given_add(given,
                     (struct given_run){.model = row.kernel,
                                        .gpu = row.gpu,
                                        .repeat = row.repeat,
                                        .rate = 10 / row.time_s,
                                        .suffix = lab_arena_printf(&given->arena, "_%s", row.phase),
                                        .phase = row.phase,
                                        .result = row.result,
                                        .iterations = 300,
                                        .spread = row.spread});
}

/* Five runs a phase that scatter by half a percent. */
static void given_phases(struct given_study *given, const char *kernel, int gpu,
                         const double *slowdowns, const double *spreads,
                         const char *const *results) {
    static const char *const names[] = {"baseline", "concurrent", "isolated"};
    for (int p = 0; p < 3; p++)
        for (int r = 0; r < 5; r++)
            given_phase(given, (struct phase_run){.phase = names[p],
                                                  .kernel = kernel,
                                                  .gpu = gpu,
                                                  .repeat = r,
                                                  .time_s = 0.001 * slowdowns[p] *
                                                            (1 + 0.005 * given_normal(given)),
                                                  .spread = spreads[p],
                                                  .result = results ? results[p] : NULL});
}

static int find_row(const struct lab_analysis_result *result, const char *kernel,
                    const char *device, const char *phase) {
    for (int i = 0; i < table_of(result, "comparisons")->row_count; i++)
        if (lab_str_equal(cell_of(result, "comparisons", i, "kernel")->text, kernel) &&
            lab_str_equal(cell_of(result, "comparisons", i, "device")->text, device) &&
            lab_str_equal(cell_of(result, "comparisons", i, "phase")->text, phase))
            return i;
    fail_msg("no row for %s on %s in %s", kernel, device, phase);
    return -1;
}

static const char *state_of(const struct lab_analysis_result *result, int indicator) {
    return cell_of(result, "indicators", indicator, "state")->text;
}

static const double same[] = {1, 1, 1}, one_percent[] = {0.01, 0.01, 0.01};

LAB_TEST(test_each_gpu_has_its_own_difference) {
    static const double slowed[] = {1, 1.18, 1.02}, more[] = {0.01, 0.03, 0.01};
    struct given_study given;
    given_begin(&given, "contention");
    given_phases(&given, "softmax", 0, same, one_percent, NULL);
    given_phases(&given, "softmax", 1, slowed, more, NULL);
    given_phases(&given, "gemm", 1, same, one_percent, NULL);
    struct lab_analysis_result result = when_asked(&given, "variance");
    int row = find_row(&result, "softmax", "GPU 1", "concurrent");
    assert_true(cell_of(&result, "comparisons", row, "change")->low > 0.16);
    assert_true(cell_of(&result, "comparisons", row, "change")->high < 0.20);
    assert_string_equal(cell_of(&result, "comparisons", row, "verdict")->text, "slower");
    assert_true(cell_of(&result, "comparisons", row, "spread_ratio")->low > 2.4);
    assert_true(cell_of(&result, "comparisons", row, "spread_ratio")->high < 3.6);
    row = find_row(&result, "softmax", "GPU 0", "concurrent");
    assert_string_equal(cell_of(&result, "comparisons", row, "verdict")->text, "same");
    assert_int_equal(table_of(&result, "comparisons")->row_count, 6);
    if (!lab_str_starts(result.answer, "Phase concurrent slows softmax on GPU 1 by 1") ||
        !strstr(result.answer, "and 1 of 3 in all; isolated leaves +"))
        fail_msg("%s", result.answer);
    assert_string_equal(state_of(&result, 0), "met");
    assert_contains(cell_of(&result, "indicators", 0, "evidence")->text,
                    "in 1 of 3 the spread grew, most for softmax on GPU 1");
    given_end(&given);
}

LAB_TEST(test_nothing_is_claimed_where_nothing_is) {
    struct given_study given;
    given_begin(&given, "contention");
    given.random = 777;
    for (int gpu = 0; gpu < 4; gpu++)
        given_phases(&given, "softmax", gpu, same, one_percent, NULL);
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_int_equal(figure_of(&result, "slowed")->value, 0);
    assert_non_null(
        strstr(result.answer, "Phase concurrent slows nothing: no difference larger than"));
    assert_string_equal(state_of(&result, 0), "not met");
    /* not tuned, nothing sampled: those can't be told */
    for (int i = 1; i < 5; i++)
        assert_string_equal(state_of(&result, i), "undecided");
    assert_int_equal(figure_of(&result, "indicators_met")->value, 0);
    given_end(&given);
}

LAB_TEST(test_configurations_differ_key_by_key) {
    static const char *const results[] = {
        "{\"best_config\": {\"block\": 128, \"warps\": 4, \"stages\": 2}, \"best_time_ms\": 1.0}",
        "{\"best_config\": {\"warps\": 8, \"block\": 128, \"unroll\": 1}, \"best_time_ms\": 1.2}",
        "{\"best_config\": {\"block\": 128, \"warps\": 4, \"stages\": 2}, \"best_time_ms\": 1.0}"};
    struct given_study given;
    given_begin(&given, "contention");
    given_phases(&given, "softmax", 0, same, one_percent, results);
    struct lab_analysis_result result = when_asked(&given, "variance");
    const struct lab_doc_table *keys = table_of(&result, "configurations");
    assert_int_equal(keys->row_count, 3);
    assert_string_equal(cell_of(&result, "configurations", 0, "key")->text, "warps");
    assert_string_equal(cell_of(&result, "configurations", 0, "baseline")->text, "4");
    assert_string_equal(cell_of(&result, "configurations", 0, "here")->text, "8");
    assert_string_equal(cell_of(&result, "configurations", 1, "key")->text, "stages");
    assert_string_equal(cell_of(&result, "configurations", 1, "here")->text, "–");
    assert_string_equal(cell_of(&result, "configurations", 2, "key")->text, "unroll");
    int row = find_row(&result, "softmax", "GPU 0", "concurrent");
    assert_string_equal(cell_of(&result, "comparisons", row, "configuration")->text,
                        "another in 25 of 25 pairs of runs");
    row = find_row(&result, "softmax", "GPU 0", "isolated");
    assert_string_equal(cell_of(&result, "comparisons", row, "configuration")->text, "same");
    assert_string_equal(state_of(&result, 1), "met");
    assert_string_equal(state_of(&result, 4), "met");
    assert_non_null(
        strstr(result.answer,
               "The auto-tuner chose another configuration for 1 of 1 kernels on a device."));
    given_end(&given);
}

LAB_TEST(test_a_tuner_that_never_agrees_with_itself_proves_nothing) {
    struct given_study given;
    given_begin(&given, "contention");
    for (int r = 0; r < 8; r++)
        given_phase(&given,
                    (struct phase_run){.phase = r % 2 ? "concurrent" : "baseline",
                                       .kernel = "softmax",
                                       .repeat = r / 2,
                                       .time_s = 0.001,
                                       .spread = 0.01,
                                       .result = lab_arena_printf(
                                           &given.arena, "{\"best_config\": {\"block\": %d}}", r)});
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 1), "undecided");
    assert_contains(cell_of(&result, "indicators", 1, "evidence")->text,
                    "alone it doesn't agree with itself either (100 %");
    given_end(&given);
}

/* --- one run each, gangs --- */

LAB_TEST(test_one_run_each_gives_no_verdict) {
    struct given_study given;
    given_begin(&given, "contention");
    given_phase(&given, (struct phase_run){"baseline", "softmax", .time_s = 0.001, .spread = 0.01});
    given_phase(&given,
                (struct phase_run){"concurrent", "softmax", .time_s = 0.0012, .spread = 0.03});
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(cell_of(&result, "comparisons", 0, "within_one_run")->text, "yes");
    assert_string_equal(cell_of(&result, "comparisons", 0, "verdict")->text, "undecided");
    const struct lab_doc_cell *ratio = cell_of(&result, "comparisons", 0, "spread_ratio");
    assert_true(ratio->low > 1.5 && ratio->low < 3 && ratio->high > 3 && ratio->high < 5);
    assert_string_equal(state_of(&result, 0), "undecided");
    assert_true(has_note(result.notes, "Every point was run once"));
    given_end(&given);
}

/* Both devices at once as one run with two ranks, against each alone. */
LAB_TEST(test_ranks_of_a_gang_are_held_against_each_device_alone) {
    struct given_study given;
    given_begin(&given, "contention");
    for (int r = 0; r < 4; r++) {
        double off = 1 + 0.004 * (r - 1.5);
        for (int gpu = 0; gpu < 2; gpu++)
            given_phase(&given,
                        (struct phase_run){"baseline", "softmax", gpu, r, 0.001 * off, 0.01});
        struct lab_study_run *gang = given_phase(
            &given, (struct phase_run){"concurrent", "softmax", 0, r, 0.001 * off, 0.01});
        struct lab_study_run *other = given_phase(
            &given, (struct phase_run){"concurrent", "softmax", 1, r, 0.0013 * off, 0.01});
        struct lab_study_rank *ranks = lab_arena_alloc(&given.arena, 2, sizeof *ranks);
        ranks[0] = gang->ranks[0];
        ranks[1] = other->ranks[0];
        gang->ranks = ranks;
        gang->rank_count = 2;
        gang->point = "gpu0+1_numa0_softmax_concurrent";
        given.table.run_count--;
    }
    struct lab_analysis_result result = when_asked(&given, "variance");
    int row = find_row(&result, "softmax", "GPU 0", "concurrent");
    assert_string_equal(cell_of(&result, "comparisons", row, "verdict")->text, "same");
    row = find_row(&result, "softmax", "GPU 1", "concurrent");
    assert_true(fabs(cell_of(&result, "comparisons", row, "change")->value - 0.3) < 0.01);
    given_end(&given);
}

/* --- what was sampled --- */

static bool burst(double seconds) {
    return lab_random_uniform(3, (uint64_t)(seconds / 0.6)) > 0.5;
}

static double ten_ms = 0.01;
static double slowed(double seconds, void *context) {
    return *(const double *)context * (burst(seconds) ? 1.25 : 1);
}

static double steady(double seconds, void *context) {
    (void)seconds;
    return *(const double *)context;
}

static double busy(double seconds, void *context) {
    double base = *(const double *)context;
    return base * ((burst(seconds - 0.05) ? 0.9 : 0.1) +
                   0.05 * lab_random_uniform(9, (uint64_t)llround(1000 * seconds)));
}

static double unrelated(double seconds, void *context) {
    return *(const double *)context * lab_random_uniform(11, (uint64_t)llround(1000 * seconds));
}

LAB_TEST(test_resources_of_the_concurrent_phase_are_asked) {
    static double percent = 100, bytes = 8e9;
    struct given_study given;
    given_begin(&given, "contention");
    struct given_run row = {.model = "softmax", .rate = 1000, .spread = 0.01, .phase = "baseline"};
    given_paced(&given, row, 30, steady, &ten_ms);
    row.phase = "concurrent";
    struct lab_study_run *run = given_paced(&given, row, 30, slowed, &ten_ms);
    struct beside beside = given_samples(&given, run, 0.1);
    given_column(&beside, given_entity(&beside, LAB_ENTITY_CPU, 0), LAB_METRIC_CPU_UTILIZATION, -1,
                 1, busy, &percent);
    given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, 1), LAB_METRIC_PCIE_TX_RATE, -1, 1,
                 unrelated, &bytes);
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 2), "not met");
    assert_string_equal(state_of(&result, 3), "met");
    assert_contains(cell_of(&result, "indicators", 3, "evidence")->text,
                    "CPU utilisation goes together with the time of iterations on GPU 0");
    given_end(&given);
}

static double spread_by_burst(double seconds, void *context) {
    return *(const double *)context *
           (1 + (burst(seconds) ? 0.4 : 0.02) *
                    (lab_random_uniform(13, (uint64_t)llround(1e6 * seconds)) - 0.5));
}

LAB_TEST(test_the_own_traffic_is_no_sign_of_contention) {
    static double bytes = 8e9;
    /* given traffic that is high whenever times vary: of the GPU itself, or of another */
    for (int gpu = 0; gpu < 2; gpu++) {
        struct given_study given;
        given_begin(&given, "contention");
        struct given_run row = {
            .model = "softmax", .rate = 1000, .spread = 0.01, .phase = "baseline"};
        given_paced(&given, row, 30, steady, &ten_ms);
        row.phase = "concurrent";
        struct lab_study_run *run = given_paced(&given, row, 30, spread_by_burst, &ten_ms);
        struct beside beside = given_samples(&given, run, 0.1);
        given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, gpu), LAB_METRIC_PCIE_TX_RATE,
                     -1, 1, busy, &bytes);
        struct lab_analysis_result result = when_asked(&given, "variance");
        assert_string_equal(state_of(&result, 2), gpu == 0 ? "undecided" : "met");
        given_end(&given);
    }
}

/* All GPUs that were sampled are of the run itself: that is no want of samples. */
LAB_TEST(test_traffic_of_a_run_s_own_gpus_is_not_testable) {
    static double bytes = 8e9;
    struct given_study given;
    given_begin(&given, "contention");
    struct given_run row = {.model = "softmax", .rate = 1000, .spread = 0.01, .phase = "baseline"};
    given_paced(&given, row, 30, steady, &ten_ms);
    row.phase = "concurrent";
    struct lab_study_run *run = given_paced(&given, row, 30, spread_by_burst, &ten_ms);
    struct lab_study_rank ranks[2] = {run->ranks[0], run->ranks[0]};
    ranks[1].gpu_id = ranks[1].gpu = 1;
    ranks[1].device = "cuda:1";
    run->ranks = ranks;
    run->rank_count = 2;
    struct beside beside = given_samples(&given, run, 0.1);
    for (int gpu = 0; gpu < 2; gpu++)
        given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, gpu), LAB_METRIC_PCIE_TX_RATE,
                     -1, 1, busy, &bytes);
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 2), "undecided");
    assert_contains(cell_of(&result, "indicators", 2, "evidence")->text,
                    "was sampled, but only of GPUs of the same run");
    given_end(&given);
}

/* --- what is the same --- */

static struct lab_analysis_result when_held_against(struct given_study *a, struct given_study *b) {
    static struct lab_study_table studies[2];
    studies[0] = a->table;
    studies[1] = b->table;
    struct lab_analysis_input input = {.studies = studies, .study_count = 2};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_analysis_result result;
    const struct lab_analysis *analysis = lab_analysis_find("variance", &err);
    assert_int_equal(
        analysis->run(lab_analysis_config(analysis, &a->arena), &input, &a->arena, &result, &err),
        0);
    return result;
}

LAB_TEST(test_nodes_are_not_pooled) {
    struct given_study a, b;
    given_begin(&a, "a");
    given_begin(&b, "b");
    for (int r = 0; r < 4; r++)
        for (int node = 0; node < 3; node += 2) {
            /* given a far node that takes twice as long, in both studies alike */
            struct given_run row = {.model = "vit", .node = node, .repeat = r};
            row.rate = (node ? 50 : 100) * (1 + 0.001 * r);
            given_add(&a, row);
            given_add(&b, row);
        }
    struct lab_analysis_result result = when_held_against(&a, &b);
    assert_int_equal(table_of(&result, "comparisons")->row_count, 2);
    find_row(&result, "vit, node 0", "GPU 0", "b");
    int row = find_row(&result, "vit, node 2", "GPU 0", "b");
    assert_true(cell_of(&result, "comparisons", row, "change")->high < 0.01);
    if (!strstr(result.answer, "no difference larger than 0."))
        fail_msg("%s", result.answer);
    given_end(&a);
    given_end(&b);
}

LAB_TEST(test_settings_are_not_pooled) {
    struct given_study a, b;
    given_begin(&a, "a");
    given_begin(&b, "b");
    for (int r = 0; r < 4; r++) {
        /* given two batches here and one of them there, so that only here ids tell of them */
        struct given_run row = {.model = "vit", .repeat = r, .rate = 100 + 0.1 * r};
        row.test = "{\"batch_size\": 32}";
        given_add(&b, row);
        row.suffix = "_batch_size32";
        given_add(&a, row);
        row.suffix = "_batch_size16";
        row.test = "{\"batch_size\": 16}";
        row.rate /= 2;
        given_add(&a, row);
    }
    struct lab_analysis_result result = when_held_against(&a, &b);
    assert_int_equal(table_of(&result, "comparisons")->row_count, 1);
    int row = find_row(&result, "vit, batch_size 32", "GPU 0", "b");
    assert_true(cell_of(&result, "comparisons", row, "change")->high < 0.01);
    given_end(&a);
    given_end(&b);
}

/* --- what is lacking --- */

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(result.answer, "There is no run to look at.");
    given_add(&given, (struct given_run){.model = "a", .rate = 10});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "have no phases");
    given_end(&given);

    given_begin(&given, "contention");
    given_phase(&given, (struct phase_run){"baseline", "softmax", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "but one phase, baseline");
    given_phase(&given, (struct phase_run){"concurrent", "gemm", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "No kernel ran on the same device in two phases");
    given_end(&given);

    /* constant times: a difference for certain, a spread of nothing */
    given_begin(&given, "contention");
    given_phase(&given, (struct phase_run){"baseline", "softmax", .time_s = 0.001});
    given_phase(&given, (struct phase_run){"concurrent", "softmax", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 0), "undecided");
    assert_true(isnan(cell_of(&result, "comparisons", 0, "spread_ratio")->value));
    /* one run each: that it slows nothing isn't known */
    if (!lab_str_starts(result.answer, "Phase concurrent: inconclusive (1 run each)"))
        fail_msg("%s", result.answer);
    given_end(&given);
}

LAB_TEST(test_two_studies_are_phases) {
    struct given_study alone, beside;
    given_begin(&alone, "alone");
    given_begin(&beside, "beside");
    for (int r = 0; r < 4; r++) {
        struct given_run row = {.model = "a", .repeat = r, .rate = 100 + r};
        given_add(&alone, row);
        row.rate = 80 + r;
        given_add(&beside, row);
    }
    struct lab_study_table studies[] = {alone.table, beside.table};
    struct lab_analysis_input input = {.studies = studies, .study_count = 2};
    struct lab_err err = LAB_ERR_INIT;
    struct lab_analysis_result result;
    const struct lab_analysis *analysis = lab_analysis_find("variance", &err);
    assert_int_equal(analysis->run(lab_analysis_config(analysis, &alone.arena), &input,
                                   &alone.arena, &result, &err),
                     0);
    assert_string_equal(cell_of(&result, "comparisons", 0, "phase")->text, "beside");
    assert_string_equal(cell_of(&result, "comparisons", 0, "verdict")->text, "slower");
    assert_true(has_note(result.notes, "all are held against alone"));
    given_end(&alone);
    given_end(&beside);
}

LAB_TEST(test_the_picture_has_boxes_for_each_phase) {
    static const double slowdowns[] = {1, 1.5, 1.1};
    struct given_study given;
    given_begin(&given, "contention");
    for (int gpu = 0; gpu < 2; gpu++) {
        given_phases(&given, "softmax", gpu, slowdowns, one_percent, NULL);
        given_phases(&given, "gemm", gpu, same, one_percent, NULL);
    }
    struct lab_analysis_result result = when_asked(&given, "variance");
    const struct lab_chart *chart = chart_of(&result, "variance");
    assert_non_null(chart);
    assert_int_equal(chart->panel_count, 2);
    const struct lab_chart_panel *panel = &chart->panels[0];
    assert_string_equal(panel->title, "softmax");
    assert_int_equal(panel->x.name_count, 2);
    assert_int_equal(panel->series_count, 3);
    assert_int_equal(panel->series[1].mark, LAB_CHART_BOXES);
    assert_true(panel->series[1].x[0] == 0 && panel->series[1].x[1] == 1);
    assert_true(fabs(panel->series[1].y[0] - 1.5) < 0.02);
    assert_true(panel->series[1].least[0] < panel->series[1].low[0]);
    assert_true(panel->series[1].high[0] < panel->series[1].most[0]);
    given_end(&given);
}

LAB_TEST(test_boxes_hold_no_refills) {
    struct given_study given;
    given_begin(&given, "contention");
    given_phases(&given, "vit32x2x128", 0, same, one_percent, NULL);
    for (int i = 0; i < given.table.run_count; i++)
        given_refills(&given, &given.table.runs[i], 10);
    struct lab_analysis_result result = when_asked(&given, "variance");
    const struct lab_chart *chart = chart_of(&result, "variance");
    assert_non_null(chart);
    for (int i = 0; i < chart->panels[0].series_count; i++)
        assert_true(chart->panels[0].series[i].most[0] < 1.1);
    given_end(&given);
}
