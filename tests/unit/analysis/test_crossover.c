/* What bounds a model follows from its spans, and the turn from the lines between them. */
#include "study_fixture.h"

#include "report/analysis.h"

#include "test.h"

extern const struct lab_analysis lab_analysis_crossover;

#define SAMPLES 10.0

static struct lab_analysis_result analyze(struct given_study *given) {
    struct lab_analysis_input input = given_input(given);
    struct lab_analysis_result result;
    ASSERT_OK(lab_analysis_crossover.run(NULL, &input, &given->arena, &result, err));
    return result;
}

static void assert_has(const char *text, const char *part) {
    assert_contains(text, part);
}

/* Seconds of a batch: in, compute, out; each iteration's spread by `spread`, each run's by
 * `noise`. */
static struct lab_study_run *add_run(struct given_study *given, const char *model, double gflop,
                                     double in_s, double compute_s, double out_s, int repeat,
                                     double noise, double spread) {
    double both = exp(noise * given_normal(given));
    struct lab_study_run *run =
        given_add(given, (struct given_run){.model = model,
                                            .repeat = repeat,
                                            .rate = SAMPLES / fmax(in_s + out_s, compute_s),
                                            .samples = SAMPLES,
                                            .flops = 1e9 * gflop * SAMPLES,
                                            .bytes = 6e6,
                                            .iterations = 50});
    struct lab_iteration *items = (struct lab_iteration *)run->ranks[0].iterations;
    int64_t now_ns = 1000;
    for (int i = 0; i < 50; i++) {
        double lengths[LAB_STAGE_COUNT] = {in_s, compute_s * both, out_s};
        for (int s = 0; s < LAB_STAGE_COUNT; s++) {
            double took_s = lengths[s] * exp(spread * given_normal(given));
            if (lengths[s] <= 0)
                continue;
            items[i].stages[s].start_ns = now_ns;
            now_ns += (int64_t)(1e9 * took_s);
            items[i].stages[s].end_ns = now_ns;
        }
    }
    return run;
}

/* 1 ms of copies a batch; compute takes 0.2 ms + 0.4 ms a GFLOP of a sample: equal at 2 GFLOP. */
static void add_models(struct given_study *given, int runs, double noise) {
    static const double gflop[] = {0.1, 0.5, 1, 4, 8, 16};
    static const char *const names[] = {"vit_a", "vit_b", "vit_c", "vit_d", "vit_e", "vit_f"};
    for (int r = 0; r < runs; r++)
        for (int m = 0; m < 6; m++)
            add_run(given, names[m], gflop[m], 0.7e-3, 0.2e-3 + 0.4e-3 * gflop[m], 0.3e-3, r, noise,
                    0.01);
}

static const struct lab_doc_cell *cell_of(const struct lab_doc_table *table, int row,
                                          const char *key) {
    for (int c = 0; c < table->column_count; c++)
        if (lab_str_equal(table->columns[c].key, key))
            return &table->cells[row * table->column_count + c];
    fail_msg("no column %s", key);
    return NULL;
}

LAB_TEST(test_the_turn_is_where_the_lines_meet) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    add_models(&given, 3, 0.01);
    struct lab_analysis_result result = analyze(&given);
    const struct lab_doc_cell *turn = &result.parts[0].cells[0];
    assert_true(turn->low <= 2 && turn->high >= 2);
    assert_true(turn->low > 1.8 && turn->high < 2.2);
    assert_has(result.answer, "GPU 0 fed from node 0 turns from waiting for copies to computing "
                              "near ");
    assert_has(result.answer, "vit_a, vit_b and vit_c are bound by copies, vit_d, vit_e and vit_f "
                              "by compute.");
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    assert_true(fabs(cell_of(table, 0, "copies_ms")->value - 0.1e-3) < 2e-6); /* of a sample */
    assert_true(fabs(cell_of(table, 3, "compute_ms")->value - 0.18e-3) < 4e-6);
    assert_string_equal(cell_of(table, 0, "source")->text, "spans");
    given_end(&given);
}

/* Times on a curve: 1 ms of copies, √GFLOP ms of compute. No line fits them, yet the runs hardly
 * vary, and the two models beside the turn meet at 0.9 + 0.3 × (1 − √0.9) / (√1.2 − √0.9) GFLOP. */
LAB_TEST(test_a_curve_doesnt_widen_the_interval) {
    static const double gflop[] = {0.01, 0.2, 0.9, 1.2, 9, 100};
    static const char *const names[] = {"vit_a", "vit_b", "vit_c", "vit_d", "vit_e", "vit_f"};
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 4; r++)
        for (int m = 0; m < 6; m++)
            add_run(&given, names[m], gflop[m], 0.7e-3, 1e-3 * sqrt(gflop[m]), 0.3e-3, r, 0.001, 0);
    const struct lab_doc_cell *turn = &analyze(&given).parts[0].cells[0];
    double truth = 0.9 + 0.3 * (1 - sqrt(0.9)) / (sqrt(1.2) - sqrt(0.9));
    assert_true(turn->low <= truth && turn->high >= truth);
    assert_true(turn->high - turn->low < 0.02);
    assert_true(turn->low <= turn->value && turn->value <= turn->high);
    given_end(&given);
}

/* At the turn itself a model belongs to the interval exactly if its own ratio may be 1. */
LAB_TEST(test_a_model_that_may_be_at_the_turn_lies_in_the_interval) {
    uint64_t random = 0;
    int inside = 0;
    for (int i = 0; i < 20; i++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.random = random;
        for (int r = 0; r < 3; r++) {
            add_run(&given, "vit_a", 1, 1e-3, 0.5e-3, 0, r, 0.01, 0);
            add_run(&given, "vit_b", 2, 1e-3, 1.015e-3, 0, r, 0.01, 0);
            add_run(&given, "vit_c", 4, 1e-3, 2e-3, 0, r, 0.01, 0);
        }
        random = given.random;
        struct lab_analysis_result result = analyze(&given);
        const struct lab_doc_cell *turn = &result.parts[0].cells[0];
        const struct lab_doc_cell *ratio =
            cell_of(&result.parts[0].tables[0], 1, "compute_over_copies");
        bool may_be = ratio->low <= 1 && ratio->high >= 1;
        assert_int_equal(turn->low <= 2 && turn->high >= 2, may_be);
        inside += may_be;
        given_end(&given);
    }
    assert_in_range(inside, 1, 19); /* both happened */
}

/* Runs that don't vary at all leave nothing to chance. */
LAB_TEST(test_without_any_spread_the_turn_is_a_point) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 2; r++) {
        add_run(&given, "vit_a", 1, 1e-3, 0.5e-3, 0, r, 0, 0);
        add_run(&given, "vit_b", 4, 1e-3, 2e-3, 0, r, 0, 0);
    }
    const struct lab_doc_cell *turn = &analyze(&given).parts[0].cells[0];
    assert_true(fabs(turn->value - 2) < 1e-6);
    assert_true(turn->high - turn->low < 1e-6);
    given_end(&given);
}

/* Of many studies whose truth is known, as many intervals hold it as they say. */
LAB_TEST(test_the_interval_covers_as_it_says) {
    enum { STUDIES = 300 };
    int covered = 0, told = 0;
    uint64_t random = 0;
    for (int i = 0; i < STUDIES; i++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.random = random;
        add_models(&given, 2, 0.03);
        random = given.random;
        const struct lab_doc_cell *turn = &analyze(&given).parts[0].cells[0];
        told += !isnan(turn->value);
        covered += turn->low <= 2 && turn->high >= 2;
        given_end(&given);
    }
    assert_true(told > STUDIES * 9 / 10);
    assert_in_range(covered, told * 91 / 100, told * 99 / 100); /* beyond: p < 0.2 % at 95 % */
}

LAB_TEST(test_overlapping_copies_count_once) {
    struct given_study given;
    given_begin(&given, "quick_test");
    struct lab_study_run *run = add_run(&given, "vit_a", 1, 1e-3, 1.5e-3, 1e-3, 0, 0, 0);
    struct lab_iteration *items = (struct lab_iteration *)run->ranks[0].iterations;
    for (int i = 0; i < 50; i++) /* both directions at once, as a pipeline's */
        items[i].stages[LAB_STAGE_D2H] = items[i].stages[LAB_STAGE_H2D];
    const struct lab_doc_table *table = &analyze(&given).parts[0].tables[0];
    assert_true(fabs(cell_of(table, 0, "copies_ms")->value - 0.1e-3) < 1e-9);
    assert_true(cell_of(table, 0, "compute_over_copies")->value > 1.4);
    given_end(&given);
}

LAB_TEST(test_what_only_copies_is_bound_by_copies) {
    struct given_study given;
    given_begin(&given, "quick_test");
    add_run(&given, "vit0x0x0", 0, 1e-3, 0, 1e-3, 0, 0, 0);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "is bound by copies on vit0x0x0: there is nothing to compute.");
    given_end(&given);
}

LAB_TEST(test_all_on_one_side_says_by_how_much) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 2; r++)
        for (int m = 1; m <= 3; m++)
            add_run(&given,
                    m == 1   ? "vit_a"
                    : m == 2 ? "vit_b"
                             : "vit_c",
                    m, 1e-4, m * 1e-2, 0, r, 0.001, 0);
    struct lab_analysis_result result = analyze(&given);
    assert_has(result.answer, "is bound by compute on all 3 models: copies take at most 1 % of "
                              "that time.");
    given_end(&given);
}

LAB_TEST(test_one_run_decides_large_differences_only) {
    struct given_study given;
    given_begin(&given, "quick_test");
    add_run(&given, "vit_a", 1, 1e-3, 1.012e-3, 0, 0, 0, 0.01);
    add_run(&given, "vit_b", 2, 1e-3, 2e-3, 0, 0, 0, 0.01);
    const struct lab_doc_table *table = &analyze(&given).parts[0].tables[0];
    assert_string_equal(cell_of(table, 0, "bound_by")->text, "undecided");
    assert_string_equal(cell_of(table, 1, "bound_by")->text, "compute");
    assert_true(cell_of(table, 1, "compute_over_copies")->low > 1.9);
    given_end(&given);
}

LAB_TEST(test_a_turn_of_single_runs_says_so) {
    for (int runs = 1; runs < 4; runs += 2) {
        struct given_study given;
        given_begin(&given, "quick_test");
        for (int r = 0; r < runs; r++) {
            add_run(&given, "vit_a", 1, 2e-3, 1e-3, 0, r, 0.001, 0.01);
            add_run(&given, "vit_b", 4, 2e-3, 4e-3, 0, r, 0.001, 0.01);
        }
        struct lab_analysis_result result = analyze(&given);
        assert_has(result.answer, " GFLOP a sample [");
        assert_true((strstr(result.answer, "] (within one run each): ") != NULL) == (runs == 1));
        given_end(&given);
    }
}

/* Without iterations one run has no interval: that nothing is sure isn't that both take as long. */
LAB_TEST(test_what_has_no_interval_is_not_said_to_be_alike) {
    struct given_study given;
    given_begin(&given, "quick_test");
    add_run(&given, "vit_a", 1, 2e-3, 1e-3, 0, 0, 0, 0.01);
    struct lab_study_run *run = &given.table.runs[given.table.run_count - 1];
    struct lab_study_rank *rank = (struct lab_study_rank *)run->ranks;
    rank->iteration_count = 0;
    rank->iterations = NULL;
    struct lab_analysis_result result = analyze(&given);
    assert_null(strstr(result.answer, "as long as each other"));
    given_end(&given);
}

LAB_TEST(test_without_spans_the_runs_own_figures_serve) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int r = 0; r < 3; r++)
        given_add(&given,
                  (struct given_run){.model = "vit_a",
                                     .repeat = r,
                                     .rate = 1000,
                                     .flops = 1e9,
                                     .bytes = 6e6,
                                     .result = "{\"compute_utilization\": 0.9,"
                                               " \"h2d_gb_per_s\": 12, \"d2h_gb_per_s\": 12}"});
    struct lab_analysis_result result = analyze(&given);
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    assert_string_equal(cell_of(table, 0, "source")->text, "timings");
    assert_true(fabs(cell_of(table, 0, "compute_ms")->value - 0.9e-3) < 1e-9);
    assert_true(fabs(cell_of(table, 0, "copies_ms")->value - 0.1e-3) < 1e-9);
    assert_string_equal(cell_of(table, 0, "bound_by")->text, "compute"); /* constant: certain */
    assert_has(result.notes[0], "left no spans");
    given_end(&given);
}

LAB_TEST(test_a_trace_serves_where_iterations_have_no_spans) {
    struct lab_trace_kernel kernels[] = {{.start_ns = 100, .end_ns = 400},
                                         {.start_ns = 300, .end_ns = 500},
                                         {.start_ns = 5000, .end_ns = 9000}}; /* outside */
    struct lab_trace_copy copies[] = {{.start_ns = 100, .end_ns = 200, .kind = LAB_TRACE_COPY_H2D},
                                      {.start_ns = 500, .end_ns = 600, .kind = LAB_TRACE_COPY_D2H},
                                      {.start_ns = 600, .end_ns = 900, .kind = LAB_TRACE_COPY_D2D}};
    struct lab_trace_range ranges[] = {
        {.start_ns = 0, .end_ns = 1000, .text = LAB_TRACE_WINDOW, .kind = 59}};
    struct lab_trace_note notes[] = {{LAB_TRACE_NOTE_ITERATIONS, "2"}};
    struct lab_trace trace = {.kernels = kernels,
                              .copies = copies,
                              .ranges = ranges,
                              .notes = notes,
                              .kernel_count = 3,
                              .copy_count = 3,
                              .range_count = 1,
                              .note_count = 1};
    struct given_study given;
    given_begin(&given, "quick_test");
    given_add(&given, (struct given_run){.model = "vit_a", .rate = 1000, .iterations = 3})->trace =
        &trace;
    struct lab_analysis_result result = analyze(&given);
    const struct lab_doc_table *table = &result.parts[0].tables[0];
    assert_string_equal(cell_of(table, 0, "source")->text, "trace");
    assert_true(fabs(cell_of(table, 0, "compute_ms")->value - 20e-9) < 1e-15); /* 400 ns / 2 / 10 */
    assert_true(fabs(cell_of(table, 0, "copies_ms")->value - 10e-9) < 1e-15);
    assert_string_equal(cell_of(table, 0, "bound_by")->text, "undecided"); /* one trace alone */
    given_end(&given);
}

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given.table.planned_count = given.table.failed_count = 3;
    struct lab_analysis_result failed = analyze(&given);
    assert_has(failed.answer, "no run on a single device is done");
    assert_has(failed.notes[0], "3 of 3 runs failed");
    given_end(&given);
    given_begin(&given, "quick_test");
    given_add(&given, (struct given_run){.model = "vit_a", .rate = 1000});
    struct lab_analysis_result bare = analyze(&given);
    assert_has(bare.answer, "no run left times of its stages");
    assert_int_equal(bare.chart_count, 0);
    given_end(&given);
}

LAB_TEST(test_a_law_that_disagrees_with_the_models_is_dropped) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 3; r++) { /* the middle one computes far longer than its work says */
        add_run(&given, "vit_a", 1, 1e-3, 0.1e-3, 0, r, 0.001, 0);
        add_run(&given, "vit_b", 2, 1e-3, 40e-3, 0, r, 0.001, 0);
        add_run(&given, "vit_c", 3, 1e-3, 0.2e-3, 0, r, 0.001, 0);
    }
    assert_has(analyze(&given).answer,
               "between 2 and 3 GFLOP a sample, where work alone doesn't decide: ");
    given_end(&given);
}

LAB_TEST(test_times_are_drawn_over_work) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    add_models(&given, 3, 0.01);
    add_run(&given, "vit0x0x0", 0, 1e-3, 0, 1e-3, 0, 0, 0);
    struct lab_analysis_result result = analyze(&given);
    assert_int_equal(result.chart_count, 1);
    assert_string_equal(result.charts[0].name, "crossover");
    const struct lab_chart_panel *panel = &result.charts[0].panels[0];
    assert_true(panel->x.log && panel->y.log);
    assert_int_equal(panel->series_count, 4);
    assert_int_equal(panel->series[0].count, 6); /* what computes nothing has no place there */
    assert_int_equal(panel->shade_count, 1);
    assert_true(panel->shades[0].from < 2 && panel->shades[0].until > 2);
    LAB_AUTO(str, text);
    lab_doc_write(lab_report_analysis("crossover", &result, &given.arena), "text",
                  (struct lab_style){.columns = 80, .unicode = true}, &text);
    assert_has(text.text, "Compute from     vit_d");
    given_end(&given);
}

LAB_TEST(test_interest_grows_with_the_models) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    add_run(&given, "vit_a", 1, 1e-3, 1e-3, 0, 0, 0, 0);
    assert_int_equal(lab_analysis_crossover.interest(&given.table), 0);
    add_run(&given, "vit_b", 2, 1e-3, 1e-3, 0, 0, 0, 0);
    int two = lab_analysis_crossover.interest(&given.table);
    add_run(&given, "vit_c", 3, 1e-3, 1e-3, 0, 0, 0, 0);
    assert_true(two > 0 && lab_analysis_crossover.interest(&given.table) > two);
    given_end(&given);
}
