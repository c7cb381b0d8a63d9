/* Whether `speedup` claims of several devices and one what was planted, and nothing else. */
#include "claim_fixture.h"
#include "resource_fixture.h"

#include "base/list.h"

struct gang {
    const char *model, *scaling;
    int first, second, size,
        repeat; /* devices first, first + 1, …; of two, `second` if it is set */
    double rate, parameters, batch;
    double communication_ms;
};

static struct lab_study_run *given_gang(struct given_study *given, struct gang gang) {
    struct lab_arena *arena = &given->arena;
    struct lab_study_run *run = given_add(
        given, (struct given_run){
                   .model = gang.model,
                   .gpu = gang.first,
                   .repeat = gang.repeat,
                   .rate = gang.rate,
                   .options = lab_arena_printf(arena, "{\"batch_size\": %.0f, \"scaling\": \"%s\"}",
                                               gang.batch, gang.scaling ? gang.scaling : "strong"),
                   .result = gang.communication_ms > 0
                                 ? lab_arena_printf(arena, "{\"communication_time_ms\": %f}",
                                                    gang.communication_ms)
                                 : "{\"h2d_gb_per_s\": 24}"});
    struct lab_study_rank *ranks = lab_arena_alloc(arena, (size_t)gang.size, sizeof *ranks);
    LAB_AUTO(str, name);
    for (int i = 0; i < gang.size; i++) {
        int gpu = i == 1 && gang.second ? gang.second : gang.first + i;
        ranks[i] = run->ranks[0];
        ranks[i].gpu_id = ranks[i].gpu = gpu;
        ranks[i].device = lab_arena_printf(arena, "cuda:%d", gpu);
        lab_str_printf(&name, "%s%d", i ? "+" : "gpu", gpu);
    }
    lab_str_printf(&name, "_numa0_%s", gang.model);
    run->point = lab_arena_strdup(arena, name.text);
    run->ranks = ranks;
    run->rank_count = gang.size;
    run->work.parameters = gang.parameters;
    run->work.layers = gang.parameters > 0 ? 4 : 0;
    return run;
}

/* Repeats that scatter by so much around a rate. */
static void given_repeats(struct given_study *given, struct gang gang, int count, double spread) {
    double rate = gang.rate;
    for (int i = 0; i < count; i++) {
        gang.repeat = i;
        gang.rate = rate * exp(spread * given_normal(given));
        given_gang(given, gang);
    }
}

static const double batches[] = {16, 32, 64, 128};

/* A model on one device and on two, at four batches; two are so much faster. */
static void given_training(struct given_study *given, const char *model, const double *speedups,
                           int runs, double spread) {
    for (int i = 0; i < 4; i++) {
        struct gang gang = {
            .model = lab_arena_printf(&given->arena, "mlp_%s_batch%.0f", model, batches[i]),
            .size = 1,
            .rate = 100 * batches[i],
            .parameters = lab_str_equal(model, "large") ? 2021379 : 54403,
            .batch = batches[i]};
        given_repeats(given, gang, runs, spread);
        gang.size = 2;
        gang.rate *= speedups[i];
        given_repeats(given, gang, runs, spread);
    }
}

/* Published throughputs of one and two GPUs; two are slower throughout. */
LAB_TEST(test_two_devices_that_are_slower_mean_stay_single) {
    static const double speedups[] = {0.84, 0.86, 0.82, 0.73};
    double mean = pow(0.84 * 0.86 * 0.82 * 0.73, 0.25);
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 5, 0.01);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_int_equal(figure_of(&result, "stay_single")->value, 4);
    assert_string_equal(result.claims[0].kind, "speedup.devices");
    assert_string_equal(result.claims[0].mean_of, "4 points");
    assert_true(holds(&result.claims[0], mean - 1));
    assert_true(holds(claim_of(&result, "speedup.cell", "medium, batch 128"), -0.27));
    assert_true(fabs(cell_of(&result, "speedups", 3, "efficiency")->value - 0.365) < 0.01);
    assert_string_equal(cell_of(&result, "speedups", 3, "grade")->text, "stay single");
    const struct lab_doc_table *table = &result.parts[0].tables[1];
    int one = LAB_FIND(table->columns, table->column_count, key, "one_per_s");
    assert_string_equal(table->columns[one].title, "One GPU, samples/s");
    assert_int_equal(claim_of(&result, "speedup.break_even", "medium")->verdict, LAB_CLAIM_NO);
    assert_contains(result.answer, "Stay on one GPU: 2 GPUs are 0.8");
    assert_contains(result.answer, "as fast as one, mean of 4 points (95% CI, 5 runs each). "
                                   "2 GPUs are slower than one at every batch tested (0.84");
    assert_contains(result.answer, "× at batch 128).");
    assert_null(strstr(result.answer, "rises"));
    given_end(&given);
}

/* More than twice as fast on two is told from chance, and has a remark. */
LAB_TEST(test_an_efficiency_above_one_has_a_note) {
    static const double speedups[] = {1.9, 2.0, 2.6, 3.6};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 5, 0.01);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(
        result.answer,
        "; significantly above the ideal 2× at 2 points: other processes may have slowed the runs "
        "on one device.");
    const struct lab_doc_table *table = &result.parts[0].tables[1];
    int grade = LAB_FIND(table->columns, table->column_count, title, "Grade");
    assert_string_equal(table->cells[3 * table->column_count + grade].text, "beneficial, above 2×");
    assert_string_equal(cell_of(&result, "speedups", 3, "grade")->text, "beneficial");
    assert_true(
        has_note(result.parts[0].notes,
                 "Efficiency above 100%, by more than its interval, at 2 of 4 points: other "
                 "processes may have slowed the runs on one device, or "));
    given_end(&given);
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 1, 0.01);
    result = when_asked(&given, "speedup");
    assert_false(has_note(result.parts[0].notes, "Efficiency above"));
    assert_null(strstr(result.answer, "ideal"));
    given_end(&given);
}

/* Far below one "as fast as" is read wrongly: there devices take so many times as long. Of points with
 * one run and with two, both numbers stand there. */
LAB_TEST(test_a_small_fraction_is_a_longer_time) {
    static const double speedups[] = {0.08, 0.08, 0.08, 0.08};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 5, 0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer,
                    "Stay on one GPU: 2 GPUs take 12.5× [12.5, 12.5] as long as one, "
                    "mean of 4 points (95% CI, 5 runs each).");
    assert_contains(result.answer, "(12.5× as long at batch 16, 12.5× at batch 128)");
    given_end(&given);
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 5, 0.01);
    for (int i = 0; i < 4; i++) {
        given_repeats(&given,
                      (struct gang){.model = lab_arena_printf(&given.arena, "mlp_medium_batch%.0f",
                                                              batches[i]),
                                    .size = 4,
                                    .rate = 5 * batches[i],
                                    .parameters = 54403,
                                    .batch = batches[i]},
                      5, 0.01);
    }
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "5 runs each). 4 GPUs take 20.");
    assert_contains(result.answer,
                    "2 and 4 GPUs are slower than one at every batch tested (2 GPUs: ");
    given_end(&given);
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 1, 0.001);
    given_gang(&given, (struct gang){.model = "mlp_medium_batch16",
                                     .size = 1,
                                     .batch = 16,
                                     .parameters = 54403,
                                     .repeat = 1,
                                     .rate = 1600});
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "× as long as one, mean of 4 points (1 to 2 runs each)");
    given_end(&given);
}

/* Where the mean is open, the headline is what isn't: the points with a verdict. */
LAB_TEST(test_points_are_named_where_their_mean_is_inconclusive) {
    static const double slower[] = {0.5, 0.96, 1, 1.05}, faster[] = {0.95, 1.02, 1.4, 1.85};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", slower, 5, 0.06);
    given_training(&given, "large", faster, 5, 0.06);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_true(lab_str_starts(result.answer, "2 GPUs pay off for large at batch 64, 128: 1."));
    assert_contains(result.answer, "as fast as one (95% CI, 5 runs each). Stay on one GPU for "
                                   "medium at batch 16: 0.");
    assert_contains(result.answer, "The other 5 points: inconclusive. Mean of 8 points: incon");
    assert_null(strstr(result.answer, "ideal"));
    given_end(&given);
}

/* A mean whose interval lies on one side and that is open all the same says why. */
LAB_TEST(test_a_mean_that_is_open_by_correction_says_so) {
    static const double speedups[] = {0.5, 1.5, 1.6, 1.85};
    int corrected = 0;
    for (int s = 0; s < 60; s++) {
        struct given_study given;
        given_begin(&given, "train_scaling");
        given.random = (uint64_t)s * 1000;
        given_training(&given, "medium", speedups, 3, 0.15);
        struct lab_analysis_result result = when_asked(&given, "speedup");
        bool is = lab_claim_is_corrected(&result.claims[0]);
        assert_int_equal(strstr(result.answer, " after correction for all comparisons") != NULL,
                         is);
        corrected += is;
        given_end(&given);
    }
    assert_in_range(corrected, 1, 59);
}

/* As fast as one at a batch of 45; the interval holds that as often as it says, however small the
 * noise is. */
static void check_break_even(double noise) {
    enum { STUDIES = 200 };
    int within = 0, claimed = 0;
    double speedups[4];
    for (int i = 0; i < 4; i++)
        speedups[i] = pow(batches[i] / 45, 0.3);
    for (int s = 0; s < STUDIES; s++) {
        struct given_study given;
        given_begin(&given, "train_scaling");
        given.random = (uint64_t)s * 1000;
        given_training(&given, "large", speedups, 5, noise);
        struct lab_analysis_result result = when_asked(&given, "speedup");
        const struct lab_claim *claim = claim_of(&result, "speedup.break_even", "large");
        claimed += claim->verdict == LAB_CLAIM_YES;
        within += claim->verdict == LAB_CLAIM_YES && holds(claim, 45);
        if (s == 0)
            assert_contains(result.answer, " 2 GPUs pay off from batch 4");
        given_end(&given);
    }
    assert_true(claimed > 0.95 * STUDIES);
    assert_in_range(within, (int)(0.91 * claimed), (int)(0.99 * claimed));
}

LAB_TEST(test_break_even_lies_in_its_interval) {
    check_break_even(0.02);
    check_break_even(0.0005);
}

/* Where an end of the range isn't told from one device among all comparisons, neither is where two
 * begin to pay off. */
LAB_TEST(test_break_even_is_as_certain_as_its_ends) {
    static const double speedups[] = {0.8, 0.9, 1.1, 1.2};
    int open = 0;
    for (int s = 0; s < 40; s++) {
        struct given_study given;
        given_begin(&given, "train_scaling");
        given.random = (uint64_t)s * 1000;
        given_training(&given, "medium", speedups, 5, 0.1);
        struct lab_analysis_result result = when_asked(&given, "speedup");
        const struct lab_claim *even = claim_of(&result, "speedup.break_even", "medium");
        bool certain = true;
        for (int i = 0; i < 4; i += 3)
            certain &= claim_of(&result, "speedup.cell",
                                lab_arena_printf(&given.arena, "medium, batch %.0f", batches[i]))
                           ->verdict == LAB_CLAIM_YES;
        assert_true(certain || even->verdict != LAB_CLAIM_YES);
        if (even->verdict == LAB_CLAIM_INCONCLUSIVE && !isnan(even->effect)) {
            bool mean = result.claims[0].verdict == LAB_CLAIM_INCONCLUSIVE; /* says it, too */
            assert_int_equal(strstr(result.answer, " Break-even is inconclusive.") == NULL, mean);
            open++;
        }
        given_end(&given);
    }
    assert_in_range(open, 5, 39);
}

/* Two models, a factor of 37 apart: nothing is said of those between them, or beyond. */
LAB_TEST(test_nothing_is_said_outside_of_what_was_run) {
    static const double slower[] = {0.8, 0.8, 0.8, 0.8}, faster[] = {1.8, 1.8, 1.8, 1.8};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", slower, 5, 0.005);
    given_training(&given, "large", faster, 5, 0.005);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_claim *claim = claim_of(&result, "speedup.break_even", "batch 16");
    assert_int_equal(claim->verdict, LAB_CLAIM_NOT_TESTED);
    assert_string_equal(claim->quantity, "break-even parameters");
    assert_true(isnan(claim->effect) && isnan(claim->low));
    assert_contains(result.answer, "Use 2 GPUs for large at all batches (10% faster or more): ");
    assert_string_equal(result.action, "Start one process per GPU for large at all batches");
    given_end(&given);
}

LAB_TEST(test_one_run_each_gives_values_and_no_verdict) {
    static const double speedups[] = {0.8, 0.9, 1.2, 1.5};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 1, 0);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    for (int i = 0; i < result.claim_count; i++)
        assert_int_equal(result.claims[i].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_true(fabs(cell_of(&result, "speedups", 0, "speedup")->value - 0.8) < 1e-9);
    assert_string_equal(cell_of(&result, "speedups", 0, "grade")->text, "inconclusive");
    assert_contains(result.answer, "Inconclusive: 2 ");
    assert_contains(result.answer, "(1 run each)");
    assert_null(strstr(result.answer, "Use"));
    given_end(&given);
}

/* A claim of a difference and a grade that knows none would contradict each other. */
LAB_TEST(test_a_grade_follows_its_claim) {
    static const double speedups[] = {1.103, 0.97, 1.04, 1.3};
    static const char *const grades[] = {"faster", "stay single", "marginal", "beneficial"};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "medium", speedups, 5, 0.004);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    for (int i = 0; i < 4; i++) {
        assert_string_equal(cell_of(&result, "speedups", i, "change_verdict")->text, "yes");
        assert_string_equal(cell_of(&result, "speedups", i, "grade")->text, grades[i]);
    }
    given_end(&given);
}

/* A study that was interrupted has points with a run more: rates and speed-ups are of the same. */
LAB_TEST(test_rates_are_those_of_the_speed_up) {
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_training(&given, "large", (const double[]){1.5, 1.5, 1.5, 1.5}, 3, 0.001);
    given_gang(&given, (struct gang){.model = "mlp_large_batch16",
                                     .size = 1,
                                     .repeat = 3, /* of a block that two devices have no run in */
                                     .rate = 16000,
                                     .parameters = 2021379,
                                     .batch = 16});
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer, "mean of 4 points (95% CI, 3 complete blocks)");
    double one = cell_of(&result, "speedups", 0, "one_per_s")->value,
           many = cell_of(&result, "speedups", 0, "many_per_s")->value;
    assert_near(many / one, cell_of(&result, "speedups", 0, "speedup")->value, 1e-9);
    assert_near(one / 1600, 1, 0.01);
    given_end(&given);
}

/* Each device has a batch of its own: several don't do the training that one does. */
LAB_TEST(test_a_batch_for_each_device_is_noted) {
    struct given_study given;
    given_begin(&given, "train_scaling");
    struct gang gang = {.model = "mlp_medium_batch64_weak",
                        .size = 1,
                        .rate = 1000,
                        .parameters = 54403,
                        .batch = 64,
                        .scaling = "weak"};
    given_repeats(&given, gang, 3, 0.001);
    gang.size = 4;
    gang.rate = 3000;
    gang.communication_ms = 0.25 * 1e4 / 3000;
    given_repeats(&given, gang, 3, 0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer, "Use 4 GPUs: 4 GPUs are ");
    assert_contains(result.answer, "as fast as one, medium, batch 64 each (95% CI, 3 runs each).");
    assert_true(has_note(result.parts[0].notes, "n times the batch of one"));
    assert_true(fabs(cell_of(&result, "speedups", 0, "communication")->value - 0.25) < 0.01);
    given_end(&given);
}

/* The fastest of several would be fast by chance as well. */
LAB_TEST(test_a_gang_is_compared_with_the_mean_of_its_members) {
    static const double alone[] = {1000, 1210, 5000};
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int g = 0; g < 3; g++)
        given_repeats(&given,
                      (struct gang){.model = "vit", .first = g, .size = 1, .rate = alone[g]}, 3,
                      0.001);
    given_repeats(&given, (struct gang){.model = "vit", .size = 2, .rate = 2200}, 3, 0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_true(fabs(cell_of(&result, "speedups", 0, "speedup")->value - 2) < 0.01);
    assert_string_equal(cell_of(&result, "speedups", 0, "gpu_ids")->text, "0+1");
    given_end(&given);
}

/* GPUs 0 and 1 are behind one switch, the others are on a root port. */
static void given_bridges(struct given_study *given, int count) {
    static const char *switched[] = {"host0", "0000:3a:00.0"}, *root[] = {"host0", "0000:5d:00.0"};
    static int of_switch[] = {0, 1}, of_root[] = {0, 2};
    static struct lab_pci pci[5];
    static struct lab_node nodes[] = {{.number = 0, .cpus = {.count = 1}}, {.number = 1}};
    static struct lab_machine machine = {.pci = pci, .nodes = nodes, .node_count = 2};
    machine.pci_count = count;
    for (int i = 0; i < count; i++)
        pci[i] = (struct lab_pci){.kind = LAB_PCI_GPU,
                                  .class_id = 0x0302,
                                  .vendor_id = 0x10de,
                                  .bridges = i < 2 ? of_switch : of_root,
                                  .bridge_names = i < 2 ? switched : root,
                                  .bridge_count = 2};
    given->table.machine = &machine;
}

/* Patterns [0], [1], [2], [0, 1] and [0, 2]. */
LAB_TEST(test_pairs_that_share_a_bridge_are_named) {
    static const char *const models[] = {"a", "b"};
    struct given_study given;
    given_begin(&given, "throughput_study");
    given_bridges(&given, 3);
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < 3; i++)
            given_repeats(&given,
                          (struct gang){.model = models[m], .first = i, .size = 1, .rate = 100}, 5,
                          0.005);
        for (int second = 1; second <= 2; second++)
            given_repeats(&given,
                          (struct gang){.model = models[m],
                                        .second = second,
                                        .size = 2,
                                        .rate = second == 1 ? 164 : 200},
                          5, 0.005);
    }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_claim *claim = claim_of(
        &result, "speedup.gang", "GPUs 0+1 (shared PCIe bridge 0000:3a:00.0), mean of 2 points");
    assert_string_equal(claim->reference, "GPUs 0+2");
    assert_true(claim->verdict == LAB_CLAIM_YES && holds(claim, -0.18));
    assert_int_equal(claim->scope_count, 4);
    assert_contains(result.answer, "(shared PCIe bridge 0000:3a:00.0), mean of 2 points: 1");
    assert_contains(result.answer, "By point, GPUs 0+2 are ");
    assert_contains(result.answer, "% lower throughput per GPU than GPUs 0+2 (95% CI [");
    assert_int_equal(table_of(&result, "speedups")->row_count, 4);
    const struct lab_chart_panel *panel = &chart_of(&result, "speedup")->panels[0];
    assert_int_equal(panel->series_count, 3);
    assert_string_equal(panel->series[0].title, "GPUs 0+1");
    assert_true(panel->series[0].y[0] < 1.7 && panel->series[1].y[0] > 1.9);
    for (int i = 0; i < given.table.run_count; i++) { /* a only copies, b computes */
        struct lab_study_run *run = &given.table.runs[i];
        run->work.h2d_bytes = lab_str_equal(run->model, "a") ? 1e6 : 0;
        run->rate *=
            lab_str_equal(run->model, "b") && run->rate < 180 && run->rate > 150 ? 1.22 : 1;
    }
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "% lower throughput per GPU on transfer-bound a than ");
    assert_contains(result.answer, "% from b up. GPUs 0+2 are ");
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].rate /= given.table.runs[i].rank_count == 2 ? 4 : 1;
    assert_true(lab_str_starts(when_asked(&given, "speedup").answer, "Stay on one GPU: 2 GPUs "));
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].used = given.table.runs[i].rank_count == 2;
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "Use GPUs 0+2, not GPUs 0+1. GPUs 0+1 (shared");
    assert_contains(result.command,
                    "CUDA_VISIBLE_DEVICES=0,2 numactl --cpunodebind=0 --membind=0 PROGRAM");
    given_end(&given);
}

/* Model a only copies. b is 10% slower on the shared bridge in batch 64, and as fast in batch 16: the
 * lower end of that range is none. */
LAB_TEST(test_a_batch_without_a_difference_is_no_lower_end) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    given_bridges(&given, 3);
    for (int i = 0; i < 2 * 2 * 3; i++) {
        bool large = i % 2, copies = i / 2 % 2;
        int second = i / 4; /* 0: GPU 0 alone */
        double slow = second != 1 ? 1 : copies ? 0.6 : large ? 0.9 : 1;
        given_repeats(&given,
                      (struct gang){.model = copies ? "a" : "b",
                                    .second = second,
                                    .size = second ? 2 : 1,
                                    .batch = large ? 64 : 16,
                                    .rate = (second ? 200 : 100) * slow},
                      5, 0.003);
        for (int r = given.table.run_count - 5; r < given.table.run_count; r++)
            given.table.runs[r].point = lab_arena_printf(
                &given.arena, "%s_batch%d", given.table.runs[r].point, large ? 64 : 16);
    }
    for (int i = 0; i < given.table.run_count; i++) {
        bool copies = lab_str_equal(given.table.runs[i].model, "a");
        given.table.runs[i].work.h2d_bytes = copies ? 1e6 : 0;
    }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer, " On b up to 10.");
    assert_contains(result.answer, "% lower by batch");
    given_end(&given);
}

/* Of five GPUs, two pairs were run: the best one's first with the others comes next, and which GPU
 * serves a program that needs one. */
LAB_TEST(test_pairs_that_were_not_run_are_tested_next) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    given_bridges(&given, 5);
    for (int i = 0; i < 3; i++)
        given_repeats(&given, (struct gang){.model = "a", .first = i, .size = 1, .rate = 100}, 5,
                      0.001);
    for (int second = 1; second <= 2; second++)
        given_repeats(
            &given,
            (struct gang){
                .model = "a", .second = second, .size = 2, .rate = second == 1 ? 164 : 200},
            5, 0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_string_equal(result.tests,
                        "Test GPU 0 with each of GPUs 3 and 4, from local NUMA nodes: "
                        "35 runs");
    assert_string_equal(result.further, "'experiment.hardware.gpu_ids=[[0],[2],[3],[4],[0,2],[0,3],"
                                        "[0,4]]' experiment.hardware.numa_nodes=local");
    assert_true(lab_str_starts(result.others[0], "For one GPU, take any of GPUs 0–2: no difference "
                                                 "larger than 0."));
    given_bridges(&given, 3); /* then there is no other */
    result = when_asked(&given, "speedup");
    assert_null(result.further);
    given_end(&given);
}

/* Fifteen pairs of neighbours: a bar each is more than a chart has room for. */
LAB_TEST(test_too_many_gangs_are_drawn_as_points) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 16; i++)
        given_gang(&given, (struct gang){.model = "a", .first = i, .size = 1, .rate = 100});
    for (int i = 0; i < 15; i++)
        given_gang(&given, (struct gang){.model = "a", .first = i, .size = 2, .rate = 110 + i});
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_chart_panel *panel = &chart_of(&result, "speedup")->panels[0];
    assert_int_equal(panel->series_count, 2);
    assert_int_equal(panel->series[0].count, 15);
    given_end(&given);
}

LAB_TEST(test_the_best_size_is_the_smallest_of_the_fastest) {
    static const int sizes[] = {1, 2, 4, 8};
    static const double rates[] = {100, 190, 300, 300};
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 4; i++)
        given_repeats(&given, (struct gang){.model = "a", .size = sizes[i], .rate = rates[i]}, 5,
                      0.005);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer, "Use 4 GPUs: 4 GPUs are ");
    assert_int_equal(table_of(&result, "pooled")->row_count, 3);
    given_end(&given);
}

/* Eight GPUs are the fastest on the mean, four at the smallest batch. */
static void given_sizes(struct given_study *given, const char *model, const double (*speedups)[4]) {
    static const int sizes[] = {1, 2, 4, 8};
    for (int b = 0; b < 4; b++)
        for (int i = 0; i < 4; i++)
            given_repeats(
                given,
                (struct gang){
                    .model = lab_arena_printf(&given->arena, "mlp_%s_batch%.0f", model, batches[b]),
                    .size = sizes[i],
                    .rate = 100 * batches[b] * speedups[b][i],
                    .parameters = lab_str_equal(model, "large") ? 2021379 : 54403,
                    .batch = batches[b]},
                5, 0.001);
}

LAB_TEST(test_the_best_size_may_depend_on_the_batch) {
    static const double large[][4] = {
        {1, 1.7, 1.93, 1.87}, {1, 1.8, 2.9, 3.2}, {1, 1.9, 3.5, 5}, {1, 2, 3.7, 6.4}};
    static const double medium[][4] = {
        {1, 0.5, 0.4, 0.3}, {1, 0.6, 0.5, 0.4}, {1, 1.5, 1.3, 1}, {1, 1.2, 1.6, 2.4}};
    struct given_study given;
    given_begin(&given, "train_scaling");
    given_sizes(&given, "large", large);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_true(
        lab_str_starts(result.answer, "Use 8 GPUs from batch 32 up (3.20× at batch 32, 6.4"));
    assert_contains(result.answer,
                    "× at batch 128) and 4 GPUs at batch 16 (1.93×). Speed-up over one "
                    "GPU, 5 runs each; 95% CI within ±0.");
    assert_contains(result.answer, "%. 2, 4 and 8 GPUs are faster than one at every batch tested.");
    assert_string_equal(result.action, "Start one process per GPU from batch 32 up");
    assert_string_equal(result.command, "torchrun --standalone --nproc-per-node=8 PROGRAM");
    given_sizes(&given, "medium", medium);
    result = when_asked(&given, "speedup");
    assert_true(lab_str_starts(result.answer,
                               "Use 8 GPUs at 4 of 8 points, 4 GPUs at 1, 2 GPUs at 1 "
                               "and 1 GPU at 2. Speed-up over one GPU"));
    assert_string_equal(result.action, "Start one process per GPU for medium at batch 128 and for "
                                       "large from batch 32 up");
    result = when_asked(&given, "training"); /* a row for each batch, a column for each size */
    const struct lab_doc_table *table = table_of(&result, "by_batch");
    assert_int_equal(table->row_count, 8);
    assert_string_equal(cell_of(&result, "by_batch", 4, "model")->text, "large");
    assert_string_equal(cell_of(&result, "by_batch", 4, "speedup_4")->text, "1.93×");
    assert_string_equal(cell_of(&result, "by_batch", 5, "one_per_s")->text, "3.20k");
    assert_string_equal(result.by_point, "Speed-up over one GPU at that batch, mean over runs.");
    given.table.simulated = true;
    result = when_asked(&given, "training");
    assert_true(lab_str_starts(result.answer,
                               "No answer for GPUs with NVLink: simulated all-reduces "
                               "go through host memory. Without NVLink, use 8 GPUs "));
    assert_true(result.further_first);
    assert_string_equal(result.tests, "Measure on real GPUs");
    assert_true(lab_str_starts(result.action, "Without NVLink, start one process per GPU for "));
    given_end(&given);
}

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "nothing");
    assert_string_equal(when_asked(&given, "speedup").answer, "Not tested: no run is done.");
    given_gang(&given, (struct gang){.model = "a", .size = 1, .rate = 100});
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_string_equal(result.answer, "Not tested: the plan has no run on several GPUs at once.");
    assert_int_equal(result.chart_count, 0);
    assert_null(result.further);
    for (int gpu = 3; gpu > 0; gpu--)
        given_gang(&given, (struct gang){.model = "a", .first = gpu, .size = 1, .rate = 100});
    result = when_asked(&given, "speedup");
    assert_string_equal(result.tests, "Test pairs of GPUs, too");
    assert_string_equal(result.further,
                        "'experiment.hardware.gpu_ids=[[0],[1],[2],[3],[0,1],[0,2]]'");
    given.table.gangs_planned = true; /* then they have to be waited for */
    result = when_asked(&given, "speedup");
    assert_string_equal(result.answer, "Not tested: no run on several GPUs is done.");
    assert_null(result.further);
    given_gang(&given, (struct gang){.model = "b", .size = 2, .rate = 100});
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "nothing was run both on one GPU and on several");
    assert_int_equal(claim_of(&result, "speedup.cell", "b")->verdict, LAB_CLAIM_NOT_TESTED);
    given_end(&given);
}
