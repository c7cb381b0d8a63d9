/*
 * test_training.c: whether the cost models of training predict what a machine was made of within
 * the tested range, nothing beyond it, and are as wrong as they say about what they haven't seen.
 */
#include "claim_fixture.h"
#include "resource_fixture.h"
#include "training_machines.h"

static const double batches[] = {16, 32, 64, 128};
#define BATCHES 4

/* A machine without noise or anything that the laws don't know of. */
static struct drawn_machine plain(void) {
    return (struct drawn_machine){.layer_s = 100e-6,
                                  .parameter_s = 1e-9,
                                  .compute_s = 6 / 1e11,
                                  .round_layer_s = 50e-6,
                                  .byte_s = 1 / 5e9,
                                  .tile = 1};
}

static bool nearly(double value, double expected) {
    return fabs(value / expected - 1) < 1e-3;
}

static struct lab_training fit_of(struct drawn_machine *machine, const struct drawn_model *models,
                                  int model_count, int batch_count, struct lab_training_row *rows) {
    struct lab_training training;
    lab_training_fit(rows, draw_rows(machine, models, model_count, batches, batch_count, rows),
                     &training);
    return training;
}

LAB_TEST(test_what_was_not_run_is_predicted_within_the_tested_range) {
    static const struct lab_training_work works[] = {{2021379, 6, 48, 2, false},
                                                     {1107971, 3, 64, 2, false}};
    struct drawn_machine machine = plain();
    struct lab_training_row rows[DRAWN_ROWS];
    struct lab_training training = fit_of(&machine, drawn_four, 4, BATCHES, rows);
    assert_int_equal(training.place_count, 16);
    assert_int_equal(training.pair_count, 16);
    for (int i = 0; i < 2; i++) {
        struct lab_training_work one = works[i];
        one.devices = 1;
        double truth = drawn_exact_s(&machine, &one) / drawn_exact_s(&machine, &works[i]);
        struct lab_training_speedup made = lab_training_predict(&training, &works[i]);
        assert_true(nearly(made.value, truth));
        assert_true(made.low <= truth && truth <= made.high);
        assert_true(nearly(made.many_s, drawn_exact_s(&machine, &works[i])));
    }
}

static void then_it_is_not_tested(const struct lab_training *training,
                                  struct lab_training_work work, const char *why) {
    LAB_AUTO(arena, arena);
    struct lab_training_speedup made = lab_training_predict(training, &work);
    assert_true(isnan(made.value) && isnan(made.low) && isnan(made.high));
    assert_string_equal(lab_training_why_not(training, &work, &arena), why);
}

/* Four devices of a machine with two, 17 M parameters by models of up to 2 M: nobody tested it. */
LAB_TEST(test_nothing_is_predicted_outside_of_what_was_run) {
    struct drawn_machine machine = plain();
    struct lab_training_row rows[DRAWN_ROWS];
    struct lab_training training = fit_of(&machine, drawn_four, 4, BATCHES, rows);
    then_it_is_not_tested(&training, (struct lab_training_work){2021379, 6, 64, 4, false},
                          "4 devices were not run");
    then_it_is_not_tested(&training, (struct lab_training_work){2021379, 6, 64, 2, true},
                          "2 devices with scaling=weak were not run");
    then_it_is_not_tested(&training, (struct lab_training_work){17e6, 3, 64, 2, false},
                          "17.0 M parameters are outside the tested 54.4 k to 2.02 M");
    then_it_is_not_tested(&training, (struct lab_training_work){2021379, 6, 256, 2, false},
                          "batch 256 is outside the tested 16 to 128");
    training = fit_of(&machine, drawn_two, 2, BATCHES, rows);
    then_it_is_not_tested(&training, (struct lab_training_work){1107971, 3, 64, 2, false},
                          "this model was not run, and 2 models are too few");
}

/* With about as many terms as points any model fits; one with a large leave-one-out error is
 * rejected, too. */
LAB_TEST(test_a_cost_model_that_fails_its_check_predicts_nothing) {
    static const struct lab_training_work work = {54403, 4, 16, 2, false};
    struct drawn_machine machine = draw_machine(3, false);
    struct lab_training_row rows[DRAWN_ROWS];
    struct lab_training training;
    lab_training_fit(rows, 0, &training);
    assert_int_equal(training.law_count, 0);
    assert_non_null(training.lacks);
    training = fit_of(&machine, drawn_two, 1, 2, rows);
    then_it_is_not_tested(&training, work,
                          "too few points for a cost model; run more batch sizes, such as "
                          "experiment.batch_sizes=[16,32,64,128]");
    machine.noise = 0.3;
    training = fit_of(&machine, drawn_two, 2, BATCHES, rows);
    assert_true(training.error > LAB_TRAINING_ERROR_MOST);
    then_it_is_not_tested(&training, work,
                          "the cost model fails its check: it predicts left-out points wrongly");
}

/* All but one place are known; is that one's speed-up where it is said to be? */
LAB_TEST(test_left_out_points_lie_in_their_intervals_as_often_as_claimed) {
    enum { MACHINES = 250 };
    int within = 0, told = 0;
    for (uint64_t i = 0; i < MACHINES; i++) {
        struct drawn_machine machine = draw_machine(1000 + i, i % 2);
        struct lab_training_row rows[DRAWN_ROWS];
        struct lab_training training = fit_of(&machine, drawn_two, 2, BATCHES, rows);
        int left_out = 2 * (int)(drawn_uniform(&machine) * training.row_count / 2);
        struct lab_training_speedup made = lab_training_leave_out(&training, &rows[left_out + 1]);
        double measured = lab_training_measured(&rows[left_out], &rows[left_out + 1]);
        told += !isnan(made.low);
        within += measured >= made.low && measured <= made.high;
    }
    assert_true(told > 0.8 * MACHINES);
    assert_in_range(within, (int)(0.91 * told), (int)(0.99 * told));
}

/* --- the analysis --- */

static void given_training(struct given_study *given, struct drawn_machine *machine,
                           const char *allreduce, int runs) {
    const char *suffix = lab_arena_printf(&given->arena, "_allreduce%s", allreduce);
    bool apart = lab_str_equal(allreduce, "none");
    static const char *const names[] = {"mlp_medium", "mlp_large"};
    for (int m = 0; m < 2; m++)
        for (int b = 0; b < BATCHES; b++)
            for (int n = 1; n <= 2; n++)
                for (int r = 0; r < runs; r++) {
                    struct lab_training_work work = {drawn_two[m].parameters, drawn_two[m].layers,
                                                     batches[b], apart ? 1 : n, false};
                    double time_s = drawn_time_s(machine, &work) / (apart ? n : 1);
                    struct lab_study_run *run = given_add(
                        given,
                        (struct given_run){
                            .model = lab_arena_printf(&given->arena, "%s_batch%.0f", names[m],
                                                      batches[b]),
                            .repeat = r,
                            .suffix = suffix,
                            .rate = batches[b] / time_s,
                            .options = lab_arena_printf(
                                &given->arena, "{\"batch_size\": %.0f, \"allreduce\": \"%s\"}",
                                batches[b], allreduce),
                            .result = n > 1 ? "{\"forward_ms\": 1, \"backward_ms\": 2, "
                                              "\"communication_time_ms\": 4, "
                                              "\"exposed_communication_ms\": 3, \"update_ms\": 1}"
                                            : "{\"forward_ms\": 2, \"backward_ms\": 4, "
                                              "\"update_ms\": 1}"});
                    struct lab_run *plain_run = (struct lab_run *)run->run;
                    plain_run->workload = "mlp";
                    run->work.parameters = work.parameters;
                    run->work.layers = work.layers;
                    struct lab_study_rank *ranks = lab_arena_alloc(&given->arena, 2, sizeof *ranks);
                    ranks[0] = ranks[1] = run->ranks[0];
                    ranks[1].gpu_id = 1;
                    run->ranks = ranks;
                    if (n > 1)
                        run->point = lab_arena_printf(&given->arena, "gpu0+1_numa0_%s%s",
                                                      run->model, suffix);
                    run->rank_count = n;
                }
}

/* A study of the plain machine, three runs of each, that differ a little. */
static void given_plain_training(struct given_study *given, const char *allreduce) {
    struct drawn_machine machine = plain();
    machine.noise = 0.003;
    given_begin(given, "train_scaling");
    given_training(given, &machine, allreduce, 3);
}

LAB_TEST(test_a_study_has_its_claims_and_tables) {
    struct given_study given;
    given_plain_training(&given, "auto");
    struct lab_analysis_result result = when_asked(&given, "training");
    assert_int_equal(result.part_count, 1);
    assert_int_equal(result.chart_count, 2);
    assert_string_equal(result.claims[0].kind, "training.devices");
    assert_int_equal(claim_of(&result, "training.break_even", "large")->verdict, LAB_CLAIM_YES);
    assert_contains(result.answer, "2 GPUs pay off from batch ");
    assert_int_equal(figure_of(&result, "points")->value, 16);
    assert_true(figure_of(&result, "leave_one_out_error")->value < 0.02);
    assert_true(nearly(cell_of(&result, "timeline", 1, "exposed_ms")->value, 3e-3));
    assert_string_equal(cell_of(&result, "timeline", 1, "model")->text, "medium");
    assert_int_equal(table_of(&result, "speedups")->row_count, 8);
    for (int i = 0; i < 8; i++) {
        const struct lab_doc_cell *told = cell_of(&result, "predicted", i, "predicted");
        assert_true(told->low < told->value && told->value < told->high);
    }
    given_end(&given);
}

static void then_part_says(const struct lab_analysis_result *result, const char *name,
                           const char *words) {
    for (int i = 0; i < result->part_count; i++)
        if (lab_str_equal(result->parts[i].name, name)) {
            assert_contains(result->parts[i].answer, words);
            return;
        }
    fail_msg("there is no part '%s'", name);
}

/* A sweep over ways to sum: each has its own claims. */
LAB_TEST(test_sets_of_a_sweep_are_compared_by_themselves) {
    struct given_study given;
    struct drawn_machine quick = plain(), slow = plain();
    quick.noise = slow.noise = 0.003;
    quick.layer_s = 1e-9;
    quick.parameter_s = 1e-14;
    quick.byte_s = 1e-15;
    quick.round_layer_s = 1e-9;
    slow.byte_s = 1e-6;
    given_begin(&given, "train_scaling");
    given_training(&given, &slow, "hierarchical", 3);
    given_training(&given, &quick, "ring", 3);
    struct lab_analysis_result result = when_asked(&given, "training");
    assert_int_equal(result.part_count, 2);
    then_part_says(&result, "train_scaling, allreduce=ring", "Use 2 GPUs: 2 GPUs are ");
    then_part_says(&result, "train_scaling, allreduce=hierarchical",
                   "Stay on one GPU for medium and large: ");
    assert_true(lab_str_starts(result.answer, "allreduce=hierarchical: Stay"));
    assert_string_equal(result.command,
                        "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0 PROGRAM");
    assert_null(result.further);
    given.table.simulated = true; /* sums go through host memory, which NVLink doesn't */
    result = when_asked(&given, "training");
    then_part_says(&result, "train_scaling, allreduce=ring", "Without NVLink, use 2 GPUs: 2 GPUs ");
    assert_contains(result.answer,
                    "hierarchical: No answer for GPUs with NVLink: simulated "
                    "all-reduces go through host memory. Without NVLink, stay on one "
                    "GPU for medium and large: 2 GPUs take ");
    /* a mean of points that differ by so much is near none of them */
    assert_contains(result.answer, "× as long as one by point; mean of 8 points ");
    assert_string_equal(result.action, "Measure on real GPUs");
    assert_string_equal(result.further, "device=cuda");
    for (int i = 0; i < given.table.run_count; i++)
        ((struct lab_result *)given.table.runs[i].result)->allreduce = "nvlink";
    result = when_asked(&given, "training");
    then_part_says(&result, "train_scaling, allreduce=ring", "Use 2 GPUs: 2 GPUs are ");
    assert_true(lab_str_starts(result.answer, "allreduce=hierarchical: Stay on one GPU for "));
    given_end(&given);
}

/* Twice the samples a second, of two models: no training is faster, and nothing pays off. */
LAB_TEST(test_devices_that_train_a_model_each_speed_up_no_training) {
    struct given_study given;
    given_plain_training(&given, "none");
    struct lab_analysis_result result = when_asked(&given, "training");
    assert_contains(result.answer, "Each GPU trains a model of its own: no training is faster. 2 "
                                   "GPUs have 2.0");
    assert_null(strstr(result.answer, "Use"));
    assert_string_equal(cell_of(&result, "speedups", 0, "grade")->text, "independent");
    assert_int_equal(figure_of(&result, "speedups")->value, 0);
    given_end(&given);
}

/* Two of eight points were left on one device; more was run on the others. */
LAB_TEST(test_what_auto_chose_is_compared_with_one_device) {
    struct given_study given;
    given_plain_training(&given, "auto");
    given.table.gpu_mode = "auto";
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].rank_count == 2 &&
            lab_study_number(&given.table.runs[i], "options.batch_size") < 128)
            given.table.runs[i].used = false;
    struct lab_analysis_result result = when_asked(&given, "training");
    assert_string_equal(result.claims[0].kind, "training.auto");
    assert_string_equal(result.claims[0].mean_of, "2 points");
    assert_contains(result.answer, "gpu_mode=auto chose several GPUs at 2 of 8 points. ");
    assert_int_equal(claim_of(&result, "training.auto", "large, batch 64, 1 GPU")->verdict,
                     LAB_CLAIM_NOT_TESTED);
    assert_int_equal(claim_of(&result, "training.auto", "large, batch 128, 2 GPUs")->verdict,
                     LAB_CLAIM_YES);
    for (int i = 0; i < given.table.run_count; i++)
        if (given.table.runs[i].rank_count == 2 && strstr(given.table.runs[i].model, "medium"))
            given.table.runs[i].used = false;
    assert_contains(when_asked(&given, "training").answer, "at 1 of 8 points. gpu_mode=auto: ");
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].used = given.table.runs[i].rank_count == 1;
    assert_contains(when_asked(&given, "training").answer,
                    "gpu_mode=auto chose 1 GPU at all 8 points. More GPUs were not tested:");
    given_end(&given);
}

LAB_TEST(test_studies_that_train_nothing_are_not_tested) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given_add(&given, (struct given_run){.model = "vit32x2x128", .rate = 100});
    assert_int_equal(lab_analysis_find("training", NULL)->interest(&given.table), 0);
    struct lab_analysis_result result = when_asked(&given, "training");
    assert_true(result.lacks);
    assert_string_equal(result.answer, "Not tested: no run trains a model.");
    given_end(&given);
}

LAB_TEST(test_counts_have_a_prefix) {
    LAB_AUTO(arena, arena);
    assert_string_equal(lab_training_count(2021379, &arena), "2.02 M");
    assert_string_equal(lab_training_count(54403, &arena), "54.4 k");
    assert_string_equal(lab_training_count(640, &arena), "640");
}
