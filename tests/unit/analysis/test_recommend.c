/* The best place of a model among those it was run in: which, how sure, what next. */
#include "study_fixture.h"

#include "analysis/recommend/recommend.h"
#include "base/str.h"

#include <stdlib.h>

#include "test.h"

extern const struct lab_analysis lab_analysis_recommend;

#define OPTIONS                                                                                    \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": false, \"memory_size_mb\": 512}"
#define COMPILED                                                                                   \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": true, \"memory_size_mb\": 512}"
#define LARGE_IMAGES                                                                               \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": false, \"memory_size_mb\": 1024}"

/* `count` repeats around a rate; `spread` as a share. */
static void repeat(struct given_study *given, struct given_run row, int count, double spread) {
    double rate = row.rate;
    for (int i = 0; i < count; i++) {
        row.repeat = i;
        row.rate = rate * (1 + spread * given_normal(given));
        row.options = row.options ? row.options : OPTIONS;
        row.test = "{\"num_samples\": 500}";
        given_add(given, row);
    }
}

static struct lab_analysis_result analyse(struct given_study *given) {
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    void *config = lab_analysis_config(&lab_analysis_recommend, &given->arena);
    ASSERT_OK(lab_analysis_recommend.run(config, &input, &given->arena, &result, err));
    return result;
}

static int column(const struct lab_analysis_result *result, const char *key) {
    for (int c = 0; c < result->column_count; c++)
        if (lab_str_equal(result->columns[c].key, key))
            return c;
    fail_msg("no column %s", key);
    return -1;
}

static const struct lab_doc_cell *figure(const struct lab_analysis_result *result, int part,
                                         const char *key) {
    return &result->parts[part].cells[column(result, key)];
}

static const struct lab_doc_table *table(const struct lab_analysis_part *part, const char *key) {
    for (int t = 0; t < part->table_count; t++)
        if (lab_str_equal(part->tables[t].key, key))
            return &part->tables[t];
    fail_msg("no table %s", key);
    return NULL;
}

LAB_TEST(the_clearly_fastest_place_is_the_best) {
    struct given_study given;
    given_begin(&given, "numa_study");
    repeat(&given,
           (struct given_run){.model = "vit32x2x128", .gpu = 3, .node = 0, .home = 1, .rate = 1000},
           5, .005);
    repeat(&given,
           (struct given_run){.model = "vit32x2x128", .gpu = 3, .node = 1, .home = 1, .rate = 1200},
           5, .005);
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal(result.part_count, 1);
    assert_string_equal(figure(&result, 0, "gpu_ids")->text, "3");
    assert_string_equal(figure(&result, 0, "numa_nodes")->text, "1");
    assert_true(figure(&result, 0, "first_share")->value > .99);
    assert_int_equal((int)figure(&result, 0, "alike")->value, 0);
    const struct lab_doc_cell *gain = figure(&result, 0, "gain_over_worst");
    assert_true(gain->low < .2 && .2 < gain->high);
    assert_contains(result.answer, "runs best on device 3 from node 1");
    assert_contains(result.answer, "the default");
    given_end(&given);
}

/* A sweep over NCCL's settings, one changed at a time: each is held against the best, and what is
 * left to the library is the default. */
LAB_TEST(settings_of_a_library_are_places_to_choose_from) {
    struct given_study given;
    given_begin(&given, "nccl_settings");
    struct given_run run = {.model = "allreduce", .node = 0, .home = 0};
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"auto\", \"nccl_buffer\": 0}";
    run.rate = 1000;
    repeat(&given, run, 5, .005);
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"tree\", \"nccl_buffer\": 0}";
    run.rate = 900;
    run.suffix = "_tree";
    repeat(&given, run, 5, .005);
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"auto\", \"nccl_buffer\": 1048576}";
    run.rate = 1100;
    run.suffix = "_buffer";
    repeat(&given, run, 5, .005);
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal(result.part_count, 1);
    if (!strstr(result.answer, ", buffer 1048576: "))
        fail_msg("%s", result.answer);
    const struct lab_doc_cell *gain = figure(&result, 0, "gain_over_worst");
    assert_true(gain->low < 1100. / 900 - 1 && 1100. / 900 - 1 < gain->high);
    assert_true(figure(&result, 0, "gain_over_default")->low > 0);
    given_end(&given);
}

LAB_TEST(places_that_cannot_be_told_apart_are_said_to_be_so) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        repeat(&given, (struct given_run){.model = "m", .node = node, .rate = 1000}, 6, .02);
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal((int)figure(&result, 0, "alike")->value, 1);
    assert_true(figure(&result, 0, "first_share")->value < .99);
    given_end(&given);
}

LAB_TEST(a_tie_asks_for_so_many_repeats_of_both) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < 3; i++)
            repeat(&given,
                   (struct given_run){.model = "vit32x2x128",
                                      .gpu = 1,
                                      .node = node,
                                      .rate = (node ? 1020 : 1000) * (1 + .0125 * (i - 1))},
                   1, 0);
    struct lab_analysis_result result = analyse(&given);
    const struct lab_doc_table *next = table(&result.parts[0], "next");
    assert_true(next->row_count >= 1);
    const char *command = next->cells[0].text;
    assert_contains(command, "gpulab run numa_study --device cuda ");
    assert_contains(command, "'experiment.hardware.gpu_ids=[1]'");
    assert_contains(command, "'experiment.vit_configs=[{patch_size:32,depth:2,heads:4,"
                             "dim:128,mlp_dim:0}]'");
    assert_contains(command, "experiment.test.num_samples=500");
    const char *repeats = strstr(command, "experiment.repeat=");
    assert_non_null(repeats);
    long count = strtol(repeats + strlen("experiment.repeat="), NULL, 10);
    assert_true(count > 3 && count < 15);
    given_end(&given);
}

/* A machine of one's own may lie anywhere, and a study be called anything. */
LAB_TEST(whatever_a_machine_is_called_the_command_can_be_pasted) {
    struct given_study given;
    given_begin(&given, "it's; my study");
    for (int node = 0; node < 2; node++)
        repeat(&given, (struct given_run){.model = "m", .node = node, .rate = 1000}, 1, 0);
    for (int i = 0; i < given.table.run_count; i++) {
        struct lab_run *run = (struct lab_run *)given.table.runs[i].run;
        run->workload = "gemm";
        given.table.runs[i].options = given_json(&given, "{\"m\": 64, \"n\": 64, \"k\": 64}");
        given.table.runs[i].ranks[0].device = "sim:./my $(machine)'s.yaml:0";
    }
    struct lab_analysis_result result = analyse(&given);
    const char *command = table(&result.parts[0], "next")->cells[0].text;
    assert_contains(command, "gpulab run 'it'\\''s; my study' --device "
                             "'sim:./my $(machine)'\\''s.yaml' '");
    given_end(&given);
}

LAB_TEST(a_hole_in_the_grid_is_named) {
    struct given_study given;
    given_begin(&given, "numa_study");
    repeat(&given, (struct given_run){.model = "m", .gpu = 0, .node = 0, .rate = 1000}, 2, .001);
    repeat(&given, (struct given_run){.model = "m", .gpu = 0, .node = 1, .rate = 900}, 2, .001);
    repeat(&given, (struct given_run){.model = "m", .gpu = 1, .node = 0, .rate = 800}, 2, .001);
    struct lab_analysis_result result = analyse(&given);
    const struct lab_doc_table *next = table(&result.parts[0], "next");
    const struct lab_doc_cell *last = next->cells + (ptrdiff_t)(next->row_count - 1) * 2;
    assert_string_equal(last[1].text, "one place of the grid wasn't run");
    assert_contains(last[0].text, "gpu_ids=[1]");
    assert_contains(last[0].text, "numa_nodes=[1]");
    given_end(&given);
}

LAB_TEST(choices_are_judged_one_at_a_time) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        for (int compiled = 0; compiled < 2; compiled++)
            repeat(&given,
                   (struct given_run){.model = "m",
                                      .node = node,
                                      .rate = 1000 * (node ? .9 : 1) * (compiled ? 1.3 : 1),
                                      .suffix = compiled ? "_compiled" : NULL,
                                      .options = compiled ? COMPILED : OPTIONS},
                   5, .002);
    struct lab_place_group *groups;
    assert_int_equal(lab_place_groups(&given.table, &given.arena, &groups), 1);
    struct lab_place_alternative *list;
    assert_int_equal(lab_place_alternatives(groups, &given.arena, &list), 2);
    assert_int_equal(list[0].choice, LAB_PLACE_NODE);
    assert_true(fabs(list[0].gain.ratio - 1 / .9) < .01);
    assert_string_equal(list[0].words, "node 0 rather than node 1");
    assert_int_equal(list[1].choice, LAB_PLACE_COMPILE);
    assert_true(fabs(list[1].gain.ratio - 1.3) < .01);
    assert_int_equal(list[1].gain.verdict, LAB_STUDY_MORE);
    /* the default is the same node, not compiled */
    assert_false(groups->places[groups->standard].compiled);
    given_end(&given);
}

LAB_TEST(other_work_is_another_group) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    repeat(&given, (struct given_run){.model = "m", .node = 0, .rate = 1000}, 2, .01);
    repeat(&given,
           (struct given_run){.model = "m",
                              .node = 0,
                              .rate = 100,
                              .suffix = "_memory_size_mb1024",
                              .options = LARGE_IMAGES},
           2, .01);
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal(result.part_count, 2);
    assert_string_equal(result.parts[0].name, "m, memory_size_mb 512");
    assert_string_equal(result.parts[1].name, "m, memory_size_mb 1024");
    assert_int_equal(result.chart_count, 0);
    given_end(&given);
}

LAB_TEST(one_run_each_is_no_ground_for_certainty) {
    struct given_study given;
    given_begin(&given, "numa_study");
    repeat(&given, (struct given_run){.model = "m", .node = 0, .rate = 1000}, 1, 0);
    repeat(&given, (struct given_run){.model = "m", .node = 1, .rate = 1010}, 1, 0);
    struct lab_analysis_result result = analyse(&given);
    assert_true(isnan(figure(&result, 0, "first_share")->value));
    assert_contains(result.answer, "one run");
    given_end(&given);
}

LAB_TEST(nothing_done_says_so) {
    struct given_study given;
    given_begin(&given, "numa_study");
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal(result.part_count, 0);
    assert_contains(result.answer, "nothing to recommend yet");
    assert_int_equal(lab_analysis_recommend.interest(&given.table), 0);
    given_end(&given);
}

LAB_TEST(the_chart_marks_the_best) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 3; node++)
        repeat(&given, (struct given_run){.model = "m", .node = node, .rate = 1000 + 100 * node}, 4,
               .001);
    struct lab_analysis_result result = analyse(&given);
    assert_int_equal(result.chart_count, 1);
    const struct lab_chart_panel *panel = result.charts[0].panels;
    assert_int_equal(panel->x.name_count, 3);
    assert_string_equal(panel->x.names[0], "0 ← 2");
    assert_string_equal(panel->series[0].title, "fastest");
    assert_int_equal((int)panel->series[0].count, 1);
    given_end(&given);
}

/* A slower place with a wide whisker, a faster one with a narrow: both show why they are marked
 * so. */
LAB_TEST(whiskers_are_the_intervals_of_the_verdicts) {
    struct given_study given;
    given_begin(&given, "numa_study");
    repeat(&given, (struct given_run){.model = "m", .node = 0, .rate = 1000}, 5, .001);
    repeat(&given, (struct given_run){.model = "m", .node = 1, .rate = 980}, 5, .001);
    repeat(&given, (struct given_run){.model = "m", .node = 2, .rate = 940}, 5, .15);
    struct lab_analysis_result result = analyse(&given);
    const struct lab_chart_panel *panel = result.charts[0].panels;
    assert_int_equal(panel->series_count, 4); /* three kinds, and the line at the fastest */
    const struct lab_chart_series *alike = &panel->series[1], *slower = &panel->series[2],
                                  *line = &panel->series[3];
    assert_string_equal(slower->title, "slower");
    assert_true(alike->y[0] < slower->y[0]);
    assert_true(line->y[0] == panel->series[0].y[0]);
    assert_true(slower->high[0] < line->y[0]);
    assert_true(alike->high[0] >= line->y[0]);
    assert_true(isnan(panel->series[0].low[0]));
    given_end(&given);
}

/* One run in each of 8 places: node 0 is 10 % faster, whatever the device. */
static void given_grid(struct given_study *given, const char *model, double gain, double spread) {
    for (int gpu = 0; gpu < 4; gpu++)
        for (int node = 0; node < 2; node++)
            repeat(given,
                   (struct given_run){.model = model,
                                      .gpu = gpu,
                                      .node = node,
                                      .home = 0,
                                      .rate = node ? 1000 : 1000 * (1 + gain)},
                   1, spread);
}

LAB_TEST(a_node_is_told_over_all_devices) {
    struct given_study given;
    struct lab_place_group *groups;
    struct lab_place_factor factors[LAB_PLACE_FACTORS];
    given_begin(&given, "numa_study");
    given_grid(&given, "m", 0.1, .005);
    struct lab_analysis_result result = analyse(&given);
    assert_contains(result.answer, "m does best from node 0 (");
    assert_contains(result.answer, "which device can't be told");
    assert_null(strstr(result.answer, "runs best"));
    assert_int_equal(lab_place_groups(&given.table, &given.arena, &groups), 1);
    assert_int_equal(lab_place_factors(groups, &given.arena, factors), 2);
    assert_int_equal(factors[0].kind, LAB_FACTOR_NODE);
    assert_int_equal(factors[0].blocks[1], 4);
    assert_true(factors[0].gains[1].low < 1.1 && factors[0].gains[1].high > 1.1);
    assert_int_equal(factors[1].kind, LAB_FACTOR_DEVICE);
    assert_int_equal(factors[1].alike, 4);
    given_end(&given);
}

LAB_TEST(models_agree_on_a_node_that_is_never_worse) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given_grid(&given, "light", 0.1, .005);
    given_grid(&given, "heavy", 0, .005);
    struct lab_analysis_result result = analyse(&given);
    assert_contains(result.answer, "Feeding from node 0 is as good as any for all 2 models, "
                                   "and best for 1");
    assert_contains(result.answer, "(light); which device can't be told.");
    assert_int_equal(result.part_count, 2);
    const struct lab_analysis_part *heavy =
        &result.parts[strstr(result.parts[1].name, "heavy") != NULL];
    assert_contains(heavy->name, "heavy");
    assert_null(strstr(heavy->answer, "does best from"));
    assert_null(strstr(heavy->answer, "runs best"));
    given_end(&given);
}

/* Each device does best from its own node: no node's number is the better one. */
LAB_TEST(own_nodes_are_told_where_homes_differ) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        for (int node = 0; node < 2; node++)
            repeat(&given,
                   (struct given_run){.model = "m",
                                      .gpu = gpu,
                                      .node = node,
                                      .home = gpu / 2,
                                      .rate = node == gpu / 2 ? 1100 : 1000},
                   1, .005);
    struct lab_analysis_result result = analyse(&given);
    assert_contains(result.answer, "m does best from its own node (");
    given_end(&given);
}

/* Nothing is planted in any of 400 grids: choices are told apart no more often than 5 % allow. */
LAB_TEST(where_nothing_differs_few_choices_seem_to) {
    struct given_study given;
    int found = 0, repeated = 0;
    given_begin(&given, "numa_study");
    for (int i = 0; i < 400; i++) {
        struct lab_place_group *groups;
        struct lab_place_factor factors[LAB_PLACE_FACTORS];
        given.table.run_count = 0;
        for (int r = 0; r < 1 + i % 2 * 2; r++)
            given_grid(&given, "m", 0, .01);
        lab_place_groups(&given.table, &given.arena, &groups);
        int count = lab_place_factors(groups, &given.arena, factors), some = 0;
        for (int f = 0; f < count; f++)
            some |= factors[f].alike < factors[f].count;
        *(i % 2 ? &repeated : &found) += some;
    }
    assert_in_range(found, 1, 18); /* of 200; 18 = the 99 % point at 5 % */
    assert_in_range(repeated, 1, 18);
    given_end(&given);
}
