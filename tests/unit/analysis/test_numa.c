/* Planted penalties come back, none is claimed where there is none, and the headline is the mean
 * over devices. */
#include "claim_fixture.h"
#include "figures.h"
#include "study_fixture.h"

#include "analysis/numa/numa.h"
#include "report/analysis.h"

#include <string.h>

#include "test.h"

extern const struct lab_analysis lab_analysis_numa;

#define MODELS 4
static const char *const models[MODELS] = {"vit0x0x0", "vit32x2x128", "vit32x6x512", "vit16x8x768"};
static const double gflop[MODELS] = {0, 0.05, 2, 60};

static struct lab_analysis_result analyze(struct given_study *given) {
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    ASSERT_OK(figures_run(&lab_analysis_numa, NULL, &input, &given->arena, &result, err));
    return result;
}

/* Device `gpu` on node `home`, fed from nodes 0 to nodes − 1; `penalty[model]` where that isn't
 * home. */
static void add_device(struct given_study *given, int gpu, int home, int nodes, int runs,
                       const double *penalty, double noise) {
    for (int r = 0; r < runs; r++)
        for (int m = 0; m < MODELS; m++)
            for (int node = 0; node < nodes; node++) {
                double rate = 10000.0 / (m + 1) * (node == home ? 1 : 1 - penalty[m]);
                given_add(given, (struct given_run){.model = models[m],
                                                    .gpu = gpu,
                                                    .node = node,
                                                    .home = home,
                                                    .repeat = r,
                                                    .rate = rate * exp(noise * given_normal(given)),
                                                    .flops = 10e9 * gflop[m],
                                                    .bytes = 6e6,
                                                    .iterations = runs == 1 ? 200 : 0,
                                                    .spread = 0.01});
            }
}

static void assert_has(const char *text, const char *part) {
    assert_contains(text, part);
}

static const double planted[MODELS] = {0.3, 0.124, 0.05, 0};
static const double nothing[MODELS] = {0, 0, 0, 0};

static int column_of(const struct lab_doc_table *table, const char *key) {
    for (int c = 0; c < table->column_count; c++)
        if (lab_str_equal(table->columns[c].key, key))
            return c;
    fail_msg("no column %s", key);
    return -1;
}

/* The row of a model and node. */
static const struct lab_doc_cell *row_of(const struct lab_doc_table *table, const char *model,
                                         int node) {
    int m = column_of(table, "model"), n = column_of(table, "node");
    for (int i = 0; i < table->row_count; i++) {
        const struct lab_doc_cell *row = table->cells + (ptrdiff_t)i * table->column_count;
        if (lab_str_equal(row[m].text, model) && (int)row[n].value == node)
            return row;
    }
    fail_msg("no row of %s from node %d", model, node);
    return NULL;
}

LAB_TEST(test_planted_penalties_come_back) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 3, 1, 2, 5, planted, 0.005);
    struct lab_analysis_result result = analyze(&given);
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    int change = column_of(table, "change"), verdict = column_of(table, "change_verdict");
    for (int m = 0; m < MODELS; m++) {
        const struct lab_doc_cell *row = row_of(table, models[m], 0);
        assert_true(row[change].low <= -planted[m] && row[change].high >= -planted[m]);
        assert_string_equal(row[verdict].text, planted[m] > 0 ? "yes" : "no");
        assert_string_equal(row_of(table, models[m], 1)[change + 1].text, "reference");
    }
    assert_has(result.answer, "Bind GPU 3 to NUMA node 1. NUMA nodes at distance 21, vit0x0x0, 1 "
                              "device: 30.");
    assert_has(result.answer, "% lower throughput than the local node (95% CI [");
    assert_has(result.answer, " from vit16x8x768 up.");
    given_end(&given);
}

LAB_TEST(test_nothing_is_claimed_where_there_is_nothing) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 5, nothing, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "No difference larger than ");
    assert_null(strstr(result.answer, "Bind"));
    for (int i = 0; i < result.claim_count; i++)
        assert_int_not_equal(result.claims[i].verdict, LAB_CLAIM_YES);
    given_end(&given);
}

/* The headline is the mean over all models that copy for longer than they compute; chance doesn't
 * add the third, whose copies take as long. */
LAB_TEST(test_transfer_bound_models_are_pooled) {
    static const char *const stages[MODELS] = {
        "{\"h2d_gb_per_s\": 6, \"d2h_gb_per_s\": 6}",
        "{\"h2d_gb_per_s\": 6, \"d2h_gb_per_s\": 6, \"compute_utilization\": 0.1}",
        "{\"h2d_gb_per_s\": 6, \"d2h_gb_per_s\": 6, \"compute_utilization\": 0.09993}",
        "{\"h2d_gb_per_s\": 60, \"d2h_gb_per_s\": 60, \"compute_utilization\": 0.9}"};
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int i = 0; i < 4 * MODELS * 2 * 5; i++) {
        int gpu = i / 5 % 4, m = i / 20 % MODELS, node = i / 20 / MODELS;
        double rate = (m < 2 ? 10000 : 1000) * (node && m < 2 ? 0.88 : 1);
        given_add(&given, (struct given_run){.model = models[m == 1 ? 0 : m],
                                             .suffix = m == 1 ? "_compiled" : NULL,
                                             .gpu = gpu,
                                             .node = node,
                                             .repeat = i % 5,
                                             .rate = rate * exp(0.002 * given_normal(&given)),
                                             .flops = 10e9 * gflop[m],
                                             .bytes = 6e6,
                                             .result = stages[m]});
    }
    struct lab_analysis_result result = analyze(&given);
    const struct lab_claim *first = &result.claims[0];
    assert_has(result.answer, "Bind GPUs 0–3 to NUMA node 0. NUMA node 1: 12.");
    assert_has(result.answer, "_compiled than NUMA node 0 (");
    assert_has(result.answer, " Mean of 4 GPUs: no difference larger than ");
    assert_string_equal(first->kind, "numa.transfer_bound");
    assert_true(first->low < -0.119 && first->high > -0.121);
    assert_int_equal(first->scope_count, 2 * 4 * 2);
    given_end(&given);
}

/* No device is passed over: those that can't be bound yet are named. */
LAB_TEST(test_inconclusive_devices_are_named) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        add_device(&given, gpu, 0, 2, 5, planted, 0.005);
    add_device(&given, 4, 0, 2, 5, planted, 0.3);
    add_device(&given, 5, 0, 2, 5, nothing, 0.001);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "Bind GPUs 0–3 to NUMA node 0. GPU 5: no difference larger than 0.");
    assert_has(result.answer, "%. GPU 4: inconclusive: GPU 4, NUMA node 0: ");
    assert_has(result.answer, ", 5 runs each). NUMA node");
    given_end(&given);
}

/* One node that differs is no reason to bind while another is open: the headline binds what the
 * table and the lines to paste bind, and says how to decide the rest. */
LAB_TEST(test_a_binding_that_is_open_is_not_advised) {
    static const double swings[][5] = {{0.5, 2, 0.5, 2, 0.5}, {0.5, 2, 1, 2, 0.5}};
    static const char *const tests[] = {
        "GPU 3: inconclusive. For a verdict, 28 runs per point",
        "GPU 3: inconclusive. For a verdict, 10 runs per point (GPU 3: too noisy, more than 50 are "
        "needed)"};
    for (int s = 0; s < 2; s++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int gpu = 0; gpu < 3; gpu++)
            add_device(&given, gpu, 0, 3, 5, planted, 0.005);
        int first = given.table.run_count;
        add_device(&given, 3, 0, 3, 5, planted, 0.002);
        for (int i = first; i < given.table.run_count; i++)
            if (given.table.runs[i].ranks[0].numa_node == 2)
                given.table.runs[i].rate *= swings[s][given.table.runs[i].run->repeat];
        struct lab_analysis_result result = analyze(&given);
        struct lab_numa_grid grid = lab_numa_grid_make(&given.table, "", &given.arena);
        const struct lab_claim *binding = &grid.devices[3].binding;
        assert_int_equal(grid.devices[3].nodes[1].claim.verdict, LAB_CLAIM_YES);
        assert_int_equal(binding->verdict, LAB_CLAIM_INCONCLUSIVE);
        assert_has(result.answer, "Bind GPUs 0–2 to NUMA node 0. GPU 3: inconclusive between NUMA "
                                  "nodes 0 and 2; NUMA node 1: 5.");
        assert_has(result.answer,
                   "% lower throughput than NUMA node 0 on 3 of 4 models (5 runs each).");
        assert_true(isnan(result.parts[3].cells[0].value)); /* nor has the table one to use */
        assert_true(result.parts[3].cells[2].low == binding->low);
        assert_string_equal(result.tests, tests[s]);
        assert_has(result.further, "experiment.hardware.gpu_ids=[3] experiment.repeat=");
        assert_has(lab_numa_unbound(&grid, &given.arena), "GPU 3: inconclusive between ");
        given_end(&given);
    }
}

/* The largest difference of several devices is that of the table, whose rows are single nodes. */
LAB_TEST(test_the_largest_open_difference_is_of_all_nodes) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 3; gpu++)
        add_device(&given, gpu, 0, 3, 5, planted, 0.005);
    for (int gpu = 3; gpu < 5; gpu++)
        add_device(&given, gpu, 0, 3, 5, planted, 0.5);
    struct lab_analysis_result result = analyze(&given);
    struct lab_numa_grid grid = lab_numa_grid_make(&given.table, "", &given.arena);
    const struct lab_claim *most = &grid.devices[3].binding;
    for (int d = 3; d < 5; d++)
        for (int n = 1; n < 3; n++)
            if (fabs(grid.devices[d].nodes[n].claim.effect) > fabs(most->effect))
                most = &grid.devices[d].nodes[n].claim;
    assert_true(fabs(grid.devices[4].binding.effect) <= fabs(most->effect));
    assert_has(result.answer, "GPUs 3 and 4: inconclusive; the largest difference: ");
    assert_has(result.answer, lab_arena_printf(&given.arena, "difference: %s: ", most->subject));
    given_end(&given);
}

/* The mean's bound isn't that of a GPU on a model: how far these reach is said, and that the one
 * that reaches farthest is no bound. */
LAB_TEST(test_single_cells_reach_beyond_the_mean) {
    for (int noisy = 0; noisy < 2; noisy++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int gpu = 0; gpu < 6; gpu++)
            add_device(&given, gpu, 0, 2, 5, planted, noisy && gpu == 5 ? 0.02 : 0.004);
        struct lab_analysis_result result = analyze(&given);
        assert_has(result.answer, "Mean of 6 GPUs: no difference larger than ");
        assert_has(result.answer, " from vit16x8x768 up (any single GPU and model: ");
        assert_int_equal(strstr(result.answer, "%, inconclusive).") != NULL, noisy);
        given_end(&given);
    }
}

/* The largest of many is large by chance as well: the headline is the mean over devices, of the
 * model that was chosen beforehand. */
LAB_TEST(test_the_headline_is_pooled) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        add_device(&given, gpu, gpu / 2, 2, 5, planted, 0.02);
    struct lab_analysis_result result = analyze(&given);
    assert_int_equal(result.part_count, 4);
    assert_has(result.answer,
               "Bind GPUs 0 and 1 to NUMA node 0. Bind GPUs 2 and 3 to NUMA node 1.");
    assert_string_equal(result.claims[0].kind, "numa.penalty");
    assert_string_equal(result.claims[0].subject, "NUMA nodes at distance 21, vit0x0x0, 4 devices");
    assert_true(result.claims[0].low <= -0.3 && -0.3 <= result.claims[0].high);
    assert_int_equal(result.claims[0].scope_count, 8);
    const struct lab_doc_table *over = &result.parts[0].tables[1];
    assert_string_equal(over->key, "pooled");
    assert_int_equal(over->row_count, MODELS);
    const struct lab_doc_cell *mean = &over->cells[over->column_count + column_of(over, "change")];
    assert_true(mean->low < -0.124 && mean->high > -0.124);
    given_end(&given);
}

/* Whatever one run shows: it shows nothing of what another one would. */
LAB_TEST(test_one_run_each_gives_values_and_no_verdict) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        add_device(&given, gpu, 0, 2, 1, planted, 0.02);
    struct lab_analysis_result result = analyze(&given);
    for (int i = 0; i < result.claim_count; i++)
        assert_int_equal(result.claims[i].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_has(result.answer, "NUMA nodes at distance 21");
    assert_has(result.answer, "(1 run each: no interval)");
    assert_null(strstr(result.answer, "Bind"));
    assert_near(claim_of(&result, "numa.cell", "GPU 0, vit0x0x0, NUMA node 1")->effect, -0.3, 0.1);
    assert_has(result.notes[0], "Every point was run once");
    given_end(&given);
}

LAB_TEST(test_a_map_and_a_curve_are_drawn) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 2; gpu++)
        add_device(&given, gpu, gpu, 2, 3, planted, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_int_equal(result.chart_count, 2);
    assert_string_equal(result.charts[0].name, "numa_sensitivity");
    assert_int_equal(result.charts[0].panel_count, MODELS);
    const struct lab_chart_panel *map = &result.charts[0].panels[0];
    assert_int_equal(map->x.name_count, 2);
    assert_int_equal(map->y.name_count, 2);
    assert_string_equal(map->x.names[1], "1");
    assert_string_equal(map->y.names[1], "GPU 1");
    assert_string_equal(map->heat->texts[0], "local");
    assert_true(fabs(map->heat->values[1] + 30) < 2);
    const struct lab_chart_panel *curve = &result.charts[1].panels[0];
    assert_int_equal(curve->series_count, 2);
    assert_int_equal(curve->series[0].count, MODELS); /* vit0x0x0, which only copies, at 0 */
    assert_true(curve->series[0].low[0] <= curve->series[0].y[0]);
    given_end(&given);
}

LAB_TEST(test_many_devices_are_drawn_by_distance) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 8; gpu++)
        add_device(&given, gpu, gpu % 2, 2, 2, planted, 0.005);
    struct lab_analysis_result result = analyze(&given);
    const struct lab_chart_panel *curve = &result.charts[1].panels[0];
    assert_int_equal(curve->series_count, 1);
    assert_string_equal(curve->series[0].title, "distance 21, mean of 8 devices");
    given_end(&given);
}

/* Works in several batches: 16 marks of one series stood on each other, and 16 rows in one column of
 * cells. Batches are series, or panels, or rows of these. */
static struct lab_analysis_result when_settings(struct given_study *given, int batches, int works) {
    given_begin(given, "transfer_study");
    for (int i = 0; i < batches * works * 2 * 3; i++) {
        int node = i % 2, batch = i / 2 % batches, m = i / 2 / batches % works;
        double rate = 1000 * (node ? 1 - 0.01 * (batch + 1) : 1);
        given_add(given, (struct given_run){.model = lab_arena_printf(&given->arena, "m%d", m),
                                            .suffix = lab_arena_printf(
                                                &given->arena, "_batch_size%d", 2 + 2 * batch),
                                            .node = node,
                                            .repeat = i / 2 / batches / works,
                                            .rate = rate * exp(0.001 * given_normal(given)),
                                            .flops = 10e9 * (1 + m),
                                            .bytes = 6e6});
    }
    return analyze(given);
}

LAB_TEST(settings_have_series_and_panels) {
    static const struct {
        int batches, works, panels, rows, series;
        const char *panel, *row, *title;
        bool lines;
    } rows[] = {
        {8, 2, 2, 8, 1, "GPU 0, m1", "batch 16", "GPU 0, NUMA node 1", false},
        {4, 5, 4, 5, 4, "GPU 0, batch 4", "m4", "GPU 0, NUMA node 1, batch 4", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct given_study given;
        struct lab_analysis_result result = when_settings(&given, rows[i].batches, rows[i].works);
        const struct lab_chart *map = &result.charts[0];
        const struct lab_chart_panel *curve = &result.charts[1].panels[0];
        assert_int_equal(map->panel_count, rows[i].panels);
        assert_string_equal(map->panels[1].title, rows[i].panel);
        assert_int_equal(map->panels[1].y.name_count, rows[i].rows);
        assert_string_equal(map->panels[1].y.names[rows[i].rows - 1], rows[i].row);
        assert_int_equal(curve->series_count, rows[i].series);
        assert_string_equal(curve->series[rows[i].series > 1].title, rows[i].title);
        assert_int_equal(curve->series[0].mark == LAB_CHART_LINE_POINTS, rows[i].lines);
        assert_int_equal(curve->x.names == NULL, rows[i].lines);
        given_end(&given);
    }
}

/* Given many nodes, then the headline doesn't list them where each device's own is best. */
LAB_TEST(test_many_local_nodes_are_one_sentence) {
    for (int nodes = 3; nodes <= 4; nodes++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int gpu = 0; gpu < nodes; gpu++)
            add_device(&given, gpu, gpu, nodes, 5, planted, 0.001);
        assert_has(analyze(&given).answer, nodes < 4 ? "Bind GPU 1 to NUMA node 1. Bind GPU 2 to "
                                                     : "Bind each GPU to its local NUMA node. ");
        given_end(&given);
    }
}

LAB_TEST(test_another_node_may_be_better_than_the_local_one) {
    static const double gain[MODELS] = {-0.2, -0.1, -0.05, 0};
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 5, gain, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "Bind GPU 0 to NUMA node 1.");
    assert_has(result.answer, "% higher throughput than the local node");
    given_end(&given);
}

/* Of one device alone the mean comes first, then its value: no order to bind without a number. */
LAB_TEST(test_one_device_of_many_comes_after_the_mean) {
    static const double slow[MODELS] = {0.06, 0.06, 0.06, 0.06},
                        fast[MODELS] = {-0.06, -0.06, -0.06, -0.06};
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 8; gpu++)
        add_device(&given, gpu, 0, 2, 5, gpu == 3 ? slow : gpu == 4 ? fast : nothing, 0.01);
    struct lab_analysis_result result = analyze(&given);
    assert_int_not_equal(result.claims[0].verdict, LAB_CLAIM_YES);
    assert_null(strstr(result.answer, "Bind"));
    const char *pooled = strstr(result.answer, "vit0x0x0, 8 devices"),
               *device = strstr(result.answer, "GPU 3, NUMA node 1: ");
    if (!pooled || !device || device < pooled)
        fail_msg("%s", result.answer);
    given_end(&given);
}

LAB_TEST(test_a_local_node_that_wasnt_tested_is_named) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 2; gpu < 4; gpu++)
        for (int r = 0; r < 5; r++)
            for (int node = 0; node < 2; node++)
                given_add(&given,
                          (struct given_run){.model = "m",
                                             .gpu = gpu,
                                             .node = node,
                                             .home = gpu == 3 ? 2 : 0,
                                             .repeat = r,
                                             .rate = (gpu == 3 ? 1000 : 1100) * (node ? 0.8 : 1) *
                                                     exp(0.002 * given_normal(&given))});
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "GPU 3: NUMA node 0 until local node 2 is tested.");
    assert_has(result.answer, "than the nearest node tested");
    assert_string_equal(result.parts[1].notes[0], "GPU 3: its local NUMA node (2) was not tested.");
    assert_true(result.parts[1].cells[0].value == 0);
    assert_string_equal(result.parts[1].cells[1].text, "0 (until 2 is tested)");
    assert_string_equal(result.parts[0].cells[1].text, "0");
    assert_string_equal(result.tests, "Test the local NUMA node of GPU 3");
    assert_null(result.parts[0].notes);
    given_end(&given);
}

/* Two models in three batches each: model m0 is slower, m1 isn't, whatever its batch. */
LAB_TEST(test_a_model_without_a_difference_is_one_with_all_its_settings) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2 * 3 * 2 * 5; i++) {
        int node = i % 2, batch = i / 2 % 3, m = i / 6 % 2;
        given_add(&given,
                  (struct given_run){
                      .model = m ? "m1" : "m0",
                      .suffix = lab_arena_printf(&given.arena, "_batch_size%d", 2 + 2 * batch),
                      .node = node,
                      .repeat = i / 12,
                      .rate = (node && !m ? 800 : 1000) * exp(0.001 * given_normal(&given)),
                      .flops = m ? 10e9 : 1e9,
                      .bytes = 6e6});
    }
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, " m1, any setting: no difference larger than ");
    given_end(&given);
}

/* Without distances there is no nearest node. Were the fastest taken, chance would choose it. */
LAB_TEST(test_without_distances_the_first_node_is_the_reference) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 1, 3, 5, planted, 0.005);
    for (int i = 0; i < given.table.run_count; i++) {
        given.table.runs[i].ranks[0].device_node = -1;
        given.table.runs[i].ranks[0].distance = 0;
    }
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "Bind GPU 0 to NUMA node 1.");
    assert_string_equal(claim_of(&result, "numa.device", "GPU 0, NUMA node 1")->reference,
                        "NUMA node 0");
    given_end(&given);
}

LAB_TEST(test_constant_rates_are_certain) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, planted, 0);
    assert_has(analyze(&given).answer,
               "30.0% lower throughput than the local node (95% CI [30.0, "
               "30.0]%, 3 runs each). 2 other models: 5.0 to 12.4% lower. No difference from "
               "vit16x8x768 up.");
    given_end(&given);
}

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given.table.planned_count = given.table.failed_count = 48;
    struct lab_analysis_result failed = analyze(&given);
    assert_has(failed.answer, "no run on a single device is done");
    assert_has(failed.notes[0], "48 of 48 runs failed");
    assert_int_equal(failed.part_count + failed.chart_count, 0);
    given_end(&given);
    given_begin(&given, "quick_test");
    add_device(&given, 0, 0, 1, 2, nothing, 0.01);
    assert_has(analyze(&given).answer, "Not tested: each device was bound to one NUMA node. "
                                       "experiment.hardware.numa_nodes=all tests all.");
    assert_int_equal(lab_analysis_numa.interest(&given.table), 0);
    given_end(&given);
}

LAB_TEST(test_a_model_without_its_reference_is_left_open) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, planted, 0.002);
    for (int i = 0; i < given.table.run_count; i++)
        if (lab_str_equal(given.table.runs[i].model, models[0]) &&
            given.table.runs[i].ranks[0].numa_node == 0)
            given.table.runs[i].used = false;
    struct lab_analysis_result result = analyze(&given);
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    assert_string_equal(row_of(table, models[0], 1)[column_of(table, "change_verdict")].text,
                        "not_tested");
    assert_has(result.answer, "vit32x2x128, 1 device: 12.");
    given_end(&given);
}

LAB_TEST(test_two_studies_are_distinct) {
    struct given_study one, two;
    given_begin(&one, "before");
    given_begin(&two, "after");
    add_device(&one, 0, 0, 2, 3, planted, 0.002);
    add_device(&two, 0, 0, 2, 3, nothing, 0.002);
    struct lab_study_table tables[] = {one.table, two.table};
    struct lab_analysis_input input = {.studies = tables, .study_count = 2};
    struct lab_analysis_result result;
    assert_int_equal(figures_run(&lab_analysis_numa, NULL, &input, &one.arena, &result, NULL), 0);
    assert_string_equal(result.parts[0].name, "before: cuda:0");
    assert_string_equal(result.parts[1].name, "after: cuda:0");
    assert_int_equal(result.chart_count, 4);
    assert_string_not_equal(result.charts[0].name, result.charts[2].name);
    given_end(&one);
    given_end(&two);
}

LAB_TEST(test_interest_is_in_several_nodes_for_one_device) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 1, nothing, 0.01);
    assert_true(lab_analysis_numa.interest(&given.table) > 50);
    given_end(&given);
}

LAB_TEST(test_it_can_be_shown) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, planted, 0.002);
    add_device(&given, 1, 1, 2, 3, planted, 0.002);
    struct lab_analysis_result result = analyze(&given);
    LAB_AUTO(str, text);
    lab_doc_write(lab_report_analysis("numa", &result, &given.arena), "text",
                  (struct lab_style){.columns = 100, .unicode = true}, &text);
    lab_doc_write(lab_report_analysis("numa", &result, &given.arena), "markdown",
                  (struct lab_style){0}, &text);
    assert_has(text.text, "NUMA node to use");
    assert_has(text.text, "Over all devices, by distance");
    struct lab_value *value =
        lab_doc_value(lab_report_analysis("numa", &result, &given.arena), &given.arena);
    assert_int_equal(lab_value_get(value, "devices")->count, 2);
    assert_string_equal(lab_value_get_text(lab_value_get(value, "claims")->items[0], "kind", ""),
                        "numa.penalty");
    given_end(&given);
}
