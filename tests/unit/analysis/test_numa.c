/* Planted penalties come back, none is claimed where there is none, and the answer says which
 * node. */
#include "study_fixture.h"

#include "report/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

extern const struct lab_analysis lab_analysis_numa;

#define MODELS 4
static const char *const models[MODELS] = {"vit0x0x0", "vit32x2x128", "vit32x6x512", "vit16x8x768"};
static const double gflop[MODELS] = {0, 0.05, 2, 60};

static struct lab_analysis_result analyze(struct given_study *given) {
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    ASSERT_OK(lab_analysis_numa.run(NULL, &input, &given->arena, &result, err));
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
    int penalty = column_of(table, "penalty"), verdict = column_of(table, "verdict");
    for (int m = 0; m < MODELS; m++) {
        const struct lab_doc_cell *row = row_of(table, models[m], 0);
        assert_true(row[penalty].low <= planted[m] && row[penalty].high >= planted[m]);
        assert_string_equal(row[verdict].text, planted[m] > 0 ? "slower" : "same");
        assert_string_equal(row_of(table, models[m], 1)[verdict].text, "reference");
    }
    assert_has(result.answer, "GPU 3 is best fed from node 1: node 0 costs 30.");
    assert_has(result.answer, "on vit0x0x0, none larger than ");
    assert_has(result.answer, "above vit32x6x512.");
    given_end(&given);
}

LAB_TEST(test_nothing_is_claimed_where_there_is_nothing) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 5, nothing, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "Which node feeds GPU 0 makes no difference larger than ");
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    assert_has(row_of(table, models[1], 1)[column_of(table, "verdict")].text, "same");
    given_end(&given);
}

/* Nobody loses more than all: with runs as far apart as these, the other node may give several
 * times as much, which is to lose most of it by this one. */
LAB_TEST(test_no_bound_is_larger_than_all) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, nothing, 0.6);
    struct lab_analysis_result result = analyze(&given);
    double bound = NAN, told = 0;
    for (int c = 0; c < result.column_count; c++)
        if (lab_str_equal(result.columns[c].key, "none_larger_than"))
            bound = result.parts[0].cells[c].value;
    assert_true(bound > 0.5 && bound < 1);
    const char *at = strstr(result.answer, "no difference larger than ");
    assert_non_null(at);
    told = strtod(at + strlen("no difference larger than "), NULL);
    assert_true(fabs(told - 100 * bound) < 1e-9); /* in the sentence as in the table */
    given_end(&given);
}

LAB_TEST(test_devices_are_grouped_by_their_best_node) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        add_device(&given, gpu, gpu / 2, 2, 4, planted, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_int_equal(result.part_count, 4);
    assert_has(result.answer, "GPU 0 and GPU 1 are best fed from node 0.");
    assert_has(result.answer, "GPU 2 and GPU 3 are best fed from node 1.");
    /* over all devices: each model's mean, at the one distance there is */
    const struct lab_doc_table *over = &result.parts[0].tables[1];
    assert_string_equal(over->key, "sensitivity");
    assert_int_equal(over->row_count, MODELS);
    const struct lab_doc_cell *mean = &over->cells[over->column_count + 4];
    assert_true(mean->low < 0.124 && mean->high > 0.124);
    given_end(&given);
}

/* The one that was named first isn't named again by itself. */
LAB_TEST(test_no_device_is_told_twice) {
    static const double more[MODELS] = {0.4, 0.2, 0.1, 0};
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 4, more, 0.005);
    add_device(&given, 1, 1, 2, 4, planted, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "GPU 0 is best fed from node 0: node 1 costs 40.");
    assert_has(result.answer, "GPU 1 is best fed from node 1.");
    assert_null(strstr(result.answer, "GPU 0 is best fed from node 0."));
    given_end(&given);
}

/* One run each, which differ by 2 %: the largest penalty of four devices is too large, and its
 * interval knows nothing of other runs. That over the devices does. */
LAB_TEST(test_single_runs_are_told_over_devices) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        add_device(&given, gpu, 0, 2, 1, planted, 0.02);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "(within one run each) on vit0x0x0");
    const char *at = strstr(result.answer, "Over 4 devices the same distance costs ");
    assert_non_null(at);
    at = strchr(at, '[');
    assert_non_null(at);
    double low = strtod(at + 1, NULL), high = strtod(strchr(at, ',') + 1, NULL);
    assert_true(low < 30 && 30 < high);
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
    const struct lab_chart_panel *map = &result.charts[0].panels[0];
    assert_int_equal(map->x.name_count, 2);
    assert_int_equal(map->y.name_count, MODELS);
    assert_string_equal(map->x.names[1], "GPU 1 from node 0");
    assert_true(fabs(map->heat->values[0] - 30) < 2);
    assert_true(map->heat->diverging);
    const struct lab_chart_panel *curve = &result.charts[1].panels[0];
    assert_int_equal(curve->series_count, 2);
    assert_int_equal(curve->series[0].count, MODELS - 1); /* vit0x0x0 computes nothing */
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

LAB_TEST(test_one_run_each_judges_large_effects_only) {
    static const double small[MODELS] = {0.01, 0.01, 0.005, 0};
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 1, planted, 0);
    struct lab_analysis_result large = analyze(&given);
    assert_has(large.answer, "GPU 0 is best fed from node 0: node 1 costs 30.");
    assert_has(large.answer, "within one run each");
    assert_has(large.notes[0], "Every point was run once");
    given_end(&given);
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 1, small, 0);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "can't be told");
    assert_has(result.answer, "only repeats would tell");
    given_end(&given);
}

LAB_TEST(test_another_node_may_be_better_than_the_own) {
    static const double gain[MODELS] = {-0.2, -0.1, -0.05, 0};
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 5, gain, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "GPU 0 is best fed from node 1: node 0 costs 16.");
    given_end(&given);
}

/* A device on a node that fed nothing: the best of the others is told, and that its own is
 * missing. */
LAB_TEST(test_an_own_node_that_wasnt_tried_is_named) {
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
    assert_has(result.answer, "All 2 devices are best fed from node 0; the own node 2 of GPU 3 "
                              "wasn't tried.");
    assert_has(result.parts[1].answer, "GPU 3 is best fed from node 0");
    assert_has(result.parts[1].answer, "; its own node 2 wasn't tried.");
    assert_null(strstr(result.parts[0].answer, "wasn't tried"));
    given_end(&given);
}

LAB_TEST(test_it_may_depend_on_the_model) {
    static const double both[MODELS] = {0.2, 0.1, -0.1, 0};
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 5, both, 0.005);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "Which node feeds GPU 0 best depends on the model");
    given_end(&given);
}

LAB_TEST(test_without_distances_the_fastest_is_the_reference) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 1, 3, 5, planted, 0.005);
    for (int i = 0; i < given.table.run_count; i++) {
        given.table.runs[i].ranks[0].device_node = -1;
        given.table.runs[i].ranks[0].distance = 0;
    }
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "GPU 0 is best fed from node 1: node ");
    given_end(&given);
}

LAB_TEST(test_nodes_that_cost_nothing_are_as_good) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given.random = 1000; /* one study in eight has a false discovery beside four true ones */
    add_device(&given, 0, 0, 3, 5, nothing, 0.003);
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].ranks[0].numa_node == 2)
            given.table.runs[i].rate *= 0.8;
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "GPU 0 is best fed from node 0 or 1: node 2 costs ");
    given_end(&given);
}

LAB_TEST(test_constant_rates_are_certain) {
    struct given_study given;
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, planted, 0);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer,
               "node 1 costs 30.0 % ± 0.0 % on vit0x0x0, nothing above vit32x6x512.");
    given_end(&given);
    given_begin(&given, "numa_study");
    add_device(&given, 0, 0, 2, 3, nothing, 0);
    assert_string_equal(analyze(&given).answer, "Which node feeds GPU 0 makes no difference.");
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
    assert_has(analyze(&given).answer, "GPU 0 was fed from node 0 alone");
    assert_int_equal(lab_analysis_numa.interest(&given.table), 0);
    add_device(&given, 1, 0, 1, 2, nothing, 0.01);
    assert_has(analyze(&given).answer, "each device was fed from one node");
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
    assert_string_equal(row_of(table, models[0], 1)[column_of(table, "verdict")].text, "unknown");
    assert_has(result.answer, "node 1 costs 12.");
    given_end(&given);
}

LAB_TEST(test_two_studies_are_told_apart) {
    struct given_study one, two;
    given_begin(&one, "before");
    given_begin(&two, "after");
    add_device(&one, 0, 0, 2, 3, planted, 0.002);
    add_device(&two, 0, 0, 2, 3, nothing, 0.002);
    struct lab_study_table tables[] = {one.table, two.table};
    struct lab_analysis_input input = {.studies = tables, .study_count = 2};
    struct lab_analysis_result result;
    assert_int_equal(lab_analysis_numa.run(NULL, &input, &one.arena, &result, NULL), 0);
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
    assert_has(text.text, "Largest penalty");
    assert_has(text.text, "Over all devices, by distance");
    struct lab_value *value =
        lab_doc_value(lab_report_analysis("numa", &result, &given.arena), &given.arena);
    assert_int_equal(lab_value_get(value, "devices")->count, 2);
    given_end(&given);
}
