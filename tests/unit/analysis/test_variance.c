/* Whether `variance` tells phases apart as the runs carry, kernel by kernel and GPU by GPU. */
#include "analysis/analysis_build.h"
#include "analysis/claims/check.h"
#include "analysis/variance/phases.h"
#include "claim_fixture.h"
#include "figures.h"
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

/* Of a kernel on a device in a phase, as its subject has them. */
static const struct lab_claim *time_of(const struct lab_analysis_result *result,
                                       const char *words) {
    const struct lab_claim *claim = find_claim(result, "variance.device_time", words);
    if (!claim)
        fail_msg("no claim about %s", words);
    return claim;
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
    const struct lab_claim *slow = time_of(&result, "softmax on GPU 1, concurrent"),
                           *wide =
                               find_claim(&result, "variance.device_spread", "softmax on GPU 1");
    assert_true(slow->low > 0.16 && slow->high < 0.20 && slow->verdict == LAB_CLAIM_YES);
    assert_true(wide->low > 1.4 && wide->high < 2.6 && wide->verdict == LAB_CLAIM_YES);
    assert_int_not_equal(time_of(&result, "softmax on GPU 0, concurrent")->verdict, LAB_CLAIM_YES);
    /* the headline is the mean of all three */
    assert_string_equal(result.claims[0].kind, "variance.time");
    assert_true(result.claims[0].effect > 0.05 && result.claims[0].effect < 0.065);
    assert_contains(result.answer, "longer time than alone (95% CI [");
    assert_int_equal(table_of(&result, "comparisons")->row_count, 3);
    assert_string_equal(state_of(&result, 0), "met");
    given_end(&given);
}

LAB_TEST(test_nothing_is_claimed_where_nothing_is) {
    struct given_study given;
    given_begin(&given, "contention");
    given.random = 777;
    for (int gpu = 0; gpu < 4; gpu++)
        given_phases(&given, "softmax", gpu, same, one_percent, NULL);
    struct lab_analysis_result result = when_asked(&given, "variance");
    for (int i = 0; i < result.claim_count; i++)
        assert_int_not_equal(result.claims[i].verdict, LAB_CLAIM_YES);
    assert_contains(result.answer, "No difference larger than");
    assert_contains(
        result.answer,
        "Signs of contention: higher variance of iteration times (not found on average, "
        "inconclusive in 4 of 4 pairs of kernel and device); 4 of 5 not testable.");
    assert_string_equal(state_of(&result, 0), "not met");
    /* not tuned, nothing sampled */
    for (int i = 1; i < 5; i++)
        assert_string_equal(state_of(&result, i), "not testable");
    given_end(&given);
}

/* Less spread doesn't meet the indicator, and its claim is of a fall. */
LAB_TEST(test_a_fall_of_the_spread_is_no_rise) {
    static const double less[] = {0.01, 0.005, 0.01};
    struct given_study given;
    given_begin(&given, "contention");
    for (int gpu = 0; gpu < 4; gpu++)
        given_phases(&given, "softmax", gpu, same, less, NULL);
    struct lab_analysis_result result = when_asked(&given, "variance");
    struct lab_claim claim = *find_claim(&result, "variance.higher_variance", ""), *list = &claim;
    const char *const *faults = NULL;
    lab_claims_check(&list, 1, false, &faults, &given.arena);
    assert_null(faults);
    assert_true(claim.verdict == LAB_CLAIM_YES && claim.effect < -0.3);
    assert_string_equal(state_of(&result, 0), "not met");
    given_end(&given);
}

#define TUNED(tried, rows)                                                                         \
    "{\"best_config\": {\"rows\": " rows "}, \"tuning\": {\"num_configs_tested\": " tried "}}"

/* Ties keep the default: a choice between two isn't counted, whichever way it goes. */
LAB_TEST(test_choices_count_from_three_configurations_on) {
    static const struct {
        const char *results[3];
        const char *state;
    } rows[] = {
        {{TUNED("9", "1"), TUNED("9", "2"), TUNED("9", "1")}, "met"},
        {{TUNED("9", "1"), TUNED("9", "1"), TUNED("9", "2")}, "not met"},
        {{TUNED("2", "1"), TUNED("2", "1"), TUNED("2", "1")}, "not testable"},
        {{TUNED("9", "1"), TUNED("2", "2"), TUNED("9", "1")}, "not testable"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct given_study given;
        given_begin(&given, "contention");
        given_phases(&given, "softmax", 0, same, one_percent, rows[i].results);
        struct lab_analysis_result result = when_asked(&given, "variance");
        assert_string_equal(state_of(&result, 1), rows[i].state);
        /* that its best time is longer under load says nothing of the choice: regret does */
        assert_string_equal(state_of(&result, 4), "not testable");
        given_end(&given);
    }
}

LAB_TEST(test_a_tuner_that_never_agrees_with_itself_proves_nothing) {
    struct given_study given;
    given_begin(&given, "contention");
    for (int r = 0; r < 8; r++)
        given_phase(&given, (struct phase_run){.phase = r % 2 ? "concurrent" : "baseline",
                                               .kernel = "softmax",
                                               .repeat = r / 2,
                                               .time_s = 0.001,
                                               .spread = 0.01,
                                               .result = lab_arena_printf(
                                                   &given.arena,
                                                   "{\"best_config\": {\"block\": %d}, \"tuning\": "
                                                   "{\"num_configs_tested\": 9}}",
                                                   r)});
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 1), "not met");
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
    for (int i = 0; i < result.claim_count; i++)
        assert_true(result.claims[i].verdict == LAB_CLAIM_INCONCLUSIVE ||
                    result.claims[i].verdict == LAB_CLAIM_NOT_TESTED);
    assert_true(fabs(result.claims[0].effect - 0.2) < 0.01);
    assert_string_equal(state_of(&result, 0), "inconclusive");
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
    assert_int_equal(time_of(&result, "softmax on GPU 0")->verdict, LAB_CLAIM_NO);
    assert_true(fabs(time_of(&result, "softmax on GPU 1")->effect - 0.3) < 0.01);
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
    struct lab_analysis_result result;
    for (row.repeat = 0; row.repeat < 2; row.repeat++) {
        struct lab_study_run *run = given_paced(&given, row, 30, slowed, &ten_ms);
        struct beside beside = given_samples(&given, run, 0.1);
        given_column(&beside, given_entity(&beside, LAB_ENTITY_CPU, 0), LAB_METRIC_CPU_UTILIZATION,
                     -1, 1, busy, &percent);
        given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, 1), LAB_METRIC_PCIE_TX_RATE, -1,
                     1, unrelated, &bytes);
        result = when_asked(&given, "variance");
        if (row.repeat == 0) /* within one run: no verdict */
            assert_string_equal(state_of(&result, 3), "inconclusive");
    }
    assert_string_equal(state_of(&result, 2), "not met");
    assert_non_null(find_claim(&result, "variance.pcie_correlation", "any PCIe traffic of other"));
    assert_string_equal(state_of(&result, 3), "met");
    const struct lab_claim *cpu = find_claim(&result, "variance.cpu_spikes", "GPU 0, CPU utilis");
    assert_true(cpu && cpu->effect > 0.4 && cpu->verdict == LAB_CLAIM_YES);
    given_end(&given);
}

/* Kernels are other points: their runs repeat nothing. */
LAB_TEST(test_one_run_of_each_kernel_finds_no_correlation) {
    static double percent = 100;
    struct given_study given;
    given_begin(&given, "contention");
    for (int k = 0; k < 3; k++) {
        static const char *const kernels[] = {"softmax", "gemm", "flash"};
        struct given_run row = {
            .model = kernels[k], .rate = 1000, .spread = 0.01, .phase = "baseline"};
        given_paced(&given, row, 30, steady, &ten_ms);
        row.phase = "concurrent";
        struct lab_study_run *run = given_paced(&given, row, 30, slowed, &ten_ms);
        struct beside beside = given_samples(&given, run, 0.1);
        given_column(&beside, given_entity(&beside, LAB_ENTITY_CPU, 0), LAB_METRIC_CPU_UTILIZATION,
                     -1, 1, busy, &percent);
    }
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 3), "inconclusive");
    assert_contains(result.answer, "CPU use correlates with slow iterations (inconclusive)");
    result = when_asked(&given, "correlate");
    for (int i = 0; i < result.claim_count; i++)
        assert_int_not_equal(result.claims[i].verdict, LAB_CLAIM_YES);
    given_end(&given);
}

static double spread_by_burst(double seconds, void *context) {
    return *(const double *)context *
           (1 + (burst(seconds) ? 0.4 : 0.02) *
                    (lab_random_uniform(13, (uint64_t)llround(1e6 * seconds)) - 0.5));
}

LAB_TEST(test_the_own_traffic_is_no_sign_of_contention) {
    static double bytes = 8e9;
    static const char *const reasons[] = {
        "PCIe traffic of other GPUs was not sampled", NULL,
        "PCIe traffic of other GPUs never changed, or has too few windows"};
    /* given traffic that is high whenever times vary: of the GPU itself, or of another,
     * or constant */
    for (int gpu = 0; gpu < 3; gpu++) {
        struct given_study given;
        given_begin(&given, "contention");
        struct given_run row = {
            .model = "softmax", .rate = 1000, .spread = 0.01, .phase = "baseline"};
        given_paced(&given, row, 30, steady, &ten_ms);
        row.phase = "concurrent";
        for (row.repeat = 0; row.repeat < 2; row.repeat++) {
            struct lab_study_run *run = given_paced(&given, row, 30, spread_by_burst, &ten_ms);
            struct beside beside = given_samples(&given, run, 0.1);
            given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, gpu),
                         LAB_METRIC_PCIE_TX_RATE, -1, 1, gpu < 2 ? busy : steady, &bytes);
        }
        struct lab_analysis_result result = when_asked(&given, "variance");
        assert_string_equal(state_of(&result, 2), reasons[gpu] ? "not testable" : "met");
        if (reasons[gpu])
            assert_string_equal(claim_of(&result, "variance.pcie_correlation", "")->reason,
                                reasons[gpu]);
        given_end(&given);
    }
}

/* GPUs at once are one run: their traffic rises with another's spread only by contention. */
LAB_TEST(test_traffic_of_gpus_at_once_counts) {
    static double bytes = 8e9;
    struct given_study given;
    given_begin(&given, "contention");
    struct given_run row = {.model = "softmax", .rate = 1000, .spread = 0.01, .phase = "baseline"};
    given_paced(&given, row, 30, steady, &ten_ms);
    row.phase = "concurrent";
    for (row.repeat = 0; row.repeat < 2; row.repeat++) {
        struct lab_study_run *run = given_paced(&given, row, 30, spread_by_burst, &ten_ms);
        struct lab_study_rank *ranks = lab_arena_alloc(&given.arena, 2, sizeof *ranks);
        ranks[0] = ranks[1] = run->ranks[0];
        ranks[1].gpu_id = ranks[1].gpu = 1;
        ranks[1].device = "cuda:1";
        run->ranks = ranks;
        run->rank_count = 2;
        struct beside beside = given_samples(&given, run, 0.1);
        for (int gpu = 0; gpu < 2; gpu++)
            given_column(&beside, given_entity(&beside, LAB_ENTITY_GPU, gpu),
                         LAB_METRIC_PCIE_TX_RATE, -1, 1, busy, &bytes);
    }
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 2), "met");
    assert_non_null(find_claim(&result, "variance.pcie_correlation", "GPU 0, PCIe out of GPU 1"));
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
    assert_int_equal(figures_run(analysis, NULL, &input, &a->arena, &result, &err), 0);
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
    time_of(&result, "vit, node 0 on GPU 0, b");
    assert_true(time_of(&result, "vit, node 2 on GPU 0, b")->high < 0.01);
    assert_contains(result.answer, "No difference in time");
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
    assert_true(time_of(&result, "vit, batch_size 32 on GPU 0, b")->high < 0.01);
    given_end(&a);
    given_end(&b);
}

/* --- what is lacking --- */

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "contention");
    struct lab_analysis_result result = when_asked(&given, "variance");
    assert_string_equal(result.answer,
                        "Not tested: the runs have no phases. 'gpulab run contention' has, and two "
                        "studies given together count as two.");
    given_add(&given, (struct given_run){.model = "a", .rate = 10});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "have no phases");
    given_end(&given);

    given_begin(&given, "contention");
    given_phase(&given, (struct phase_run){"baseline", "softmax", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "only one phase, baseline");
    given_phase(&given, (struct phase_run){"concurrent", "gemm", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_contains(result.answer, "no kernel ran in two phases, such as alone and at once, on the "
                                   "same device");
    given_end(&given);

    /* constant times: a difference for certain, a spread of nothing */
    given_begin(&given, "contention");
    given_phase(&given, (struct phase_run){"baseline", "softmax", .time_s = 0.001});
    given_phase(&given, (struct phase_run){"concurrent", "softmax", .time_s = 0.001});
    result = when_asked(&given, "variance");
    assert_string_equal(state_of(&result, 0), "not testable");
    assert_int_equal(find_claim(&result, "variance.spread", "")->verdict, LAB_CLAIM_NOT_TESTED);
    assert_contains(result.answer, "(1 run each: no interval)");
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
    assert_int_equal(figures_run(analysis, NULL, &input, &alone.arena, &result, &err), 0);
    assert_string_equal(result.parts[0].name, "beside");
    assert_string_equal(result.claims[0].reference, "alone");
    assert_true(result.claims[0].verdict == LAB_CLAIM_YES && result.claims[0].effect > 0.2);
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
    const struct lab_chart_panel *panel = &chart->panels[1];
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

static int colour_of(const struct lab_analysis_result *result, const char *chart, int panel,
                     const char *phase) {
    const struct lab_chart_panel *drawn = &chart_of(result, chart)->panels[panel];
    for (int s = 0; s < drawn->series_count; s++)
        if (lab_str_equal(drawn->series[s].title, phase))
            return drawn->series[s].colour;
    fail_msg("%s has no %s", chart, phase);
    return -1;
}

/* Runs are in random order: which phase is first is chance. */
LAB_TEST(test_a_phase_has_one_colour_in_all_charts) {
    static const char *const names[] = {"concurrent", "isolated", "baseline"};
    static const int colours[] = {1, 2, 0};
    struct given_study given;
    given_begin(&given, "contention");
    for (int p = 0; p < 3; p++)
        for (int gpu = 0; gpu < 2; gpu++)
            for (int r = 0; r < 3; r++)
                given_phase(&given, (struct phase_run){.phase = names[p],
                                                       .kernel = "softmax",
                                                       .gpu = gpu,
                                                       .repeat = r,
                                                       .time_s = 0.001,
                                                       .spread = 0.01});
    struct lab_analysis_result boxes = when_asked(&given, "variance"),
                               bars = when_asked(&given, "contention");
    for (int p = 0; p < 3; p++) {
        assert_int_equal(colour_of(&boxes, "variance", 0, names[p]), colours[p]);
        assert_int_equal(colour_of(&bars, "contention_devices", 0, names[p]), colours[p]);
        if (p != 2)
            assert_int_equal(colour_of(&bars, "contention", 0, names[p]), colours[p]);
    }
    given_end(&given);
}

LAB_TEST(test_phases_are_in_one_order) {
    const char *names[] = {"regret", "isolated", "concurrent", "mps", "baseline"};
    static const char *const order[] = {"baseline", "concurrent", "isolated", "mps", "regret"};
    lab_phases_order(names, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(names[i], order[i]);
    const char *others[] = {"alone", "beside"}; /* the first of two studies is the reference */
    lab_phases_order(others, 2);
    assert_string_equal(others[0], "alone");
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

/* Given a chart whose times are all below 1 ms, then its axis is in µs; else they stay in ms. */
LAB_TEST(test_small_times_are_in_microseconds) {
    LAB_AUTO(arena, arena);
    static const double x[] = {0, 1}, y[] = {0.04, 0.2}, least[] = {0.03, 0.1}, most[] = {0.05, 2};
    for (int large = 0; large < 2; large++) {
        struct lab_chart_series series = {.x = x,
                                          .y = y,
                                          .least = least,
                                          .most = large ? most : y,
                                          .count = 2,
                                          .mark = LAB_CHART_BOXES};
        struct lab_chart_panel panel = {
            .y = lab_axis("Iteration time [ms]"), .series = &series, .series_count = 1};
        struct lab_chart chart = {.panels = &panel, .panel_count = 1};
        lab_chart_fit_units(&chart, &arena);
        assert_string_equal(chart.panels[0].y.title,
                            large ? "Iteration time [ms]" : "Iteration time [µs]");
        assert_float_equal(chart.panels[0].series[0].least[1], large ? 0.1 : 100, 1e-9);
    }
}
