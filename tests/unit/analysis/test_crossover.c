/* What bounds a model follows from its stages, and the crossover from the lines between models. */
#include "study_answers.h"

#include "stats/stats.h"

#define SAMPLES 10.0

struct model {
    const char *name;
    double gflop, compute_s; /* of a sample; of a batch */
    const char *options;
};

/* Copies take 1 ms in and 0.3 ms out; each run's compute time is off by `noise`. */
static struct lab_study_run *add_run(struct given_study *given, struct model model, int repeat,
                                     double noise) {
    double compute_s = model.compute_s * exp(noise * given_normal(given));
    struct lab_study_run *run =
        given_add(given, (struct given_run){.model = model.name,
                                            .repeat = repeat,
                                            .rate = SAMPLES / fmax(1e-3, compute_s),
                                            .samples = SAMPLES,
                                            .flops = 1e9 * model.gflop * SAMPLES,
                                            .bytes = 6e6,
                                            .suffix = model.options ? model.options : "",
                                            .options = model.options,
                                            .iterations = 5});
    struct lab_iteration *items = (struct lab_iteration *)run->ranks[0].iterations;
    for (int i = 0; i < 5; i++) {
        items[i].stages[LAB_STAGE_H2D] = (struct lab_span){1000, 1000 + 1000000};
        items[i].stages[LAB_STAGE_D2H] = (struct lab_span){1000, 1000 + 300000};
        if (compute_s > 0)
            items[i].stages[LAB_STAGE_COMPUTE] =
                (struct lab_span){1000, 1000 + (int64_t)(1e9 * compute_s)};
    }
    return run;
}

/* Compute takes 0.2 ms + 0.4 ms for each GFLOP of a sample: as long as copies at 2 GFLOP. */
static void add_models(struct given_study *given, int runs, double noise) {
    static const double gflop[] = {0.1, 0.5, 1, 4, 8, 16};
    static const char *const names[] = {"vit_a", "vit_b", "vit_c", "vit_d", "vit_e", "vit_f"};
    for (int r = 0; r < runs; r++)
        for (int m = 0; m < 6; m++)
            add_run(given, (struct model){names[m], gflop[m], 0.2e-3 + 0.4e-3 * gflop[m], NULL}, r,
                    noise);
}

LAB_TEST(test_the_crossover_is_where_the_lines_meet) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    add_models(&given, 5, 0.01);
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    const struct lab_claim *claim = &result.claims[0];
    assert_string_equal(claim->kind, "crossover.work");
    assert_true(claim->low <= 2e9 && 2e9 <= claim->high);
    assert_true(claim->low > 1.8e9 && claim->high < 2.2e9);
    assert_says(result.answer, "GPU 0, NUMA node 0: transfer-bound up to vit_c, compute-bound "
                               "from vit_d. Crossover between 1 and 4 GFLOP/sample.");
    const struct lab_chart_panel *panel = result.charts[0].panels; /* no line looks measured */
    assert_int_equal(panel->series[0].mark, LAB_CHART_POINTS);
    assert_int_equal(panel->series[2].mark, LAB_CHART_DASHES);
    assert_near(cell(&result, 0, "models", 0, "transfer_ms")->value, 0.1e-3, 1e-9);
    assert_string_equal(cell(&result, 0, "models", 2, "bound_by")->text, "transfer");
    assert_string_equal(cell(&result, 0, "models", 3, "bound_by")->text, "compute");
    given_end(&given);
}

/* The interpolated value is in the headline where its neighbours are near: its interval covers runs,
 * and looked as if it covered the line between models of 8.6 and 398 GFLOP. */
LAB_TEST(test_the_value_is_named_between_near_models) {
    for (int near = 0; near < 2; near++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        for (int r = 0; r < 5; r++) {
            add_run(&given, (struct model){"vit_a", near ? 1.5 : 0.5, near ? 0.8e-3 : 0.4e-3, NULL},
                    r, 0.001);
            add_run(&given, (struct model){"vit_b", 2.5, 1.2e-3, NULL}, r, 0.001);
        }
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        assert_says(result.answer, near ? " Crossover at 2.00 GFLOP/sample, interpolated between "
                                          "the tested 1.5 and 2.5 (95% CI ["
                                        : " Crossover between 0.5 and 2.5 GFLOP/sample.");
        assert_int_equal(near,
                         strstr(result.answer, "] covers the 5 runs, not interpolation).") != NULL);
        given_end(&given);
    }
}

LAB_TEST(test_the_interval_covers_as_it_says) {
    enum { TRIALS = 300 };
    uint64_t random = 0;
    int held = 0;
    for (int i = 0; i < TRIALS; i++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.random = random;
        add_models(&given, 4, 0.02);
        random = given.random;
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        held += result.claims[0].low <= 2e9 && 2e9 <= result.claims[0].high;
        given_end(&given);
    }
    assert_true(lab_stats_binomial_test(held, TRIALS, 0.95) > 0.001);
}

/* A refinement runs the models next to the crossover alone: its blocks show where it is, not those
 * of models far away, between which compute time is no line. */
LAB_TEST(test_blocks_of_the_nearest_models_count) {
    static const struct model coarse[] = {{"vit_a", 0.1, 0.24e-3, NULL}, {"vit_f", 16, 6e-3, NULL}},
                              near[] = {{"vit_a", 0.1, 0.24e-3, NULL},
                                        {"vit_c", 1, 0.6e-3, NULL},
                                        {"vit_d", 2.5, 1.2e-3, NULL}};
    for (int refined = 0; refined < 2; refined++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int r = 0; r < 4; r++)
            for (int m = 0; m < 2; m++)
                add_run(&given, coarse[m], r, 0.01);
        for (int r = 4; r < 7 && refined; r++)
            for (int m = r == 5; m < 3; m++) /* one without the smallest, which failed */
                add_run(&given, near[m], r, 0.01);
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        const struct lab_claim *claim = &result.claims[0];
        assert_int_equal(claim->n, refined ? 3 : 4);
        assert_int_equal(claim->low <= 2e9 && 2e9 <= claim->high, refined);
        given_end(&given);
    }
}

LAB_TEST(test_outside_of_the_models_there_is_none) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 3; r++) {
        add_run(&given, (struct model){"vit_a", 1, 1.5e-3, NULL}, r, 0.01);
        add_run(&given, (struct model){"vit_b", 4, 6e-3, NULL}, r, 0.01);
    }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NOT_TESTED);
    assert_says(result.answer, "Both models are compute-bound on GPU 0; no crossover within the "
                               "tested range. Throughput: vit_a 6");
    assert_says(result.answer, " samples/s.");
    given_end(&given);
    given_begin(&given, "quick_test"); /* of one device, with a crossover */
    for (int r = 0; r < 5; r++) {
        add_run(&given, (struct model){"vit_a", 1, 0.6e-3, NULL}, r, 0.01);
        add_run(&given, (struct model){"vit_b", 4, 1.8e-3, NULL}, r, 0.01);
    }
    assert_says(when_asked(&given, "crossover", NULL).answer, " Throughput: vit_a 10.0k, vit_b ");
    given_end(&given);
}

/* The same model with several batches is no series of models: each batch has its own. */
LAB_TEST(test_batches_are_groups_of_their_own) {
    static const char *const batches[] = {"{\"batch_size\": 8}", "{\"batch_size\": 32}"};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int r = 0; r < 3; r++)
        for (int b = 0; b < 2; b++) {
            add_run(&given, (struct model){"vit_a", 0.521, b ? 0.5e-3 : 1.5e-3, batches[b]}, r,
                    0.01);
            add_run(&given, (struct model){"vit_b", 4, 6e-3, batches[b]}, r, 0.01);
        }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_int_equal(result.part_count, 2);
    assert_says(result.parts[0].answer, "batch 8: both models are compute-bound; no crossover");
    assert_says(result.parts[1].answer, "batch 32: transfer-bound up to vit_a, ");
    given_end(&given);
}

/* A wide model copies and computes otherwise than a deep one of the same work. */
LAB_TEST(test_depth_and_width_are_series_of_their_own) {
    static const int depths[] = {2, 4, 8, 4, 4}, dims[] = {512, 512, 512, 256, 1024};
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int r = 0; r < 3; r++)
        for (int m = 0; m < 5; m++) {
            double work = 1e-6 * depths[m] * dims[m] * dims[m];
            struct model model = {
                lab_arena_printf(&given.arena, "vit32x%dx%d", depths[m], dims[m]), work,
                0.4e-3 * depths[m],
                lab_arena_printf(&given.arena, "{\"depth\": %d, \"dim\": %d}", depths[m], dims[m])};
            add_run(&given, model, r, 0.01);
        }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_says(result.answer, "GPU 0, NUMA node 0, by depth: models of width 512 are ");
    assert_says(result.answer, "GPU 0, NUMA node 0, by width: all 3 models are compute-bound; "
                               "no crossover within the tested range.");
    assert_int_equal(table(&result, 0, "crossovers")->row_count, 2);
    given_end(&given);
}

/* Models of other depth and width count, too: they were called compute-bound as all the others are,
 * and neither chart nor text named them. */
LAB_TEST(test_models_outside_of_the_series_are_named) {
    static const int depths[] = {4, 6, 8, 6, 6, 2, 2},
                     dims[] = {512, 512, 512, 256, 1024, 128, 192};
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int r = 0; r < 3; r++)
        for (int m = 0; m < 14; m++) {
            bool compiled = m >= 7;
            int depth = depths[m % 7], dim = dims[m % 7];
            double small_s = dim == 128 ? 0.4e-3 : compiled ? 0.7e-3 : 1.4e-3;
            struct model model = {
                lab_arena_printf(&given.arena, "vit32x%dx%d", depth, dim), 1e-6 * depth * dim * dim,
                dim < 256 ? small_s : 0.4e-3 * depth,
                lab_arena_printf(&given.arena,
                                 "{\"depth\": %d, \"dim\": %d, \"compile_model\": %s}", depth, dim,
                                 compiled ? "true" : "false")};
            add_run(&given, model, r, 0.01);
        }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_string_equal(result.answer, "Transfer-bound: vit32x2x128, vit32x2x192 (compiled). "
                                       "Compute-bound: 6 models.");
    assert_says(chart(&result, "crossover")->caption,
                "Not shown, of other depth and width: vit32x2x128 and vit32x2x192.");
    assert_string_equal(figure(&result, 1, "transfer_bound")->text, "vit32x2x128, vit32x2x192");
    given_end(&given);
}

/* In some runs the smallest model is compute-bound already: then the others are a bound, not the
 * value of those that happen to have one. */
LAB_TEST(test_a_crossover_at_the_end_of_the_range_is_a_bound) {
    for (int above = 0; above < 2; above++) {
        struct given_study given;
        given_begin(&given, "transfer_study");
        for (int r = 0; r < 5; r++) { /* copies of a sample take 0.1 ms */
            double near = (above ? r == 0 : r > 0) ? 1.01e-3 : 0.99e-3;
            add_run(&given, (struct model){"vit0x0x0", 0, 0, NULL}, r, 0);
            add_run(&given, (struct model){"vit_a", 0.521, above ? 0.2e-3 : near, NULL}, r, 0);
            add_run(&given, (struct model){"vit_b", 23.6, above ? near : 6e-3, NULL}, r, 0);
        }
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        const struct lab_claim *claim = &result.claims[0];
        assert_int_equal(claim->verdict, LAB_CLAIM_INCONCLUSIVE);
        assert_true(above ? claim->effect > 20e9 : claim->effect < 0.6e9);
        assert_says(result.answer,
                    above ? "crossover at or above 23.3 GFLOP/sample (5 runs); in 4 of 5 runs all "
                            "models are transfer-bound, up to 23.6 GFLOP/sample."
                          : "crossover at or below 0.567 GFLOP/sample (5 runs); in 4 of 5 runs all "
                            "models are compute-bound, from 0.521 GFLOP/sample up.");
        assert_says(lab_claim_short(claim, &given.arena), " GFLOP/sample, inconclusive");
        given_end(&given);
    }
}

/* A NUMA node that is local to one device and remote to another shifts only the latter's crossover:
 * devices at one distance are pooled. */
LAB_TEST(test_devices_are_pooled_by_distance) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        for (int node = 0; node < 2; node++) {
            bool local = gpu / 2 == node;
            int first = given.table.run_count;
            add_models(&given, 5, 0.01);
            for (int i = first; i < given.table.run_count; i++) {
                struct lab_study_run *run = &given.table.runs[i];
                struct lab_iteration *items = (struct lab_iteration *)run->ranks[0].iterations;
                for (int k = 0; k < 5 && !local; k++) /* crossover at 4.5 GFLOP */
                    items[k].stages[LAB_STAGE_H2D].end_ns += 1000000;
                run->ranks[0].device = lab_arena_printf(&given.arena, "cuda:%d", gpu);
                run->ranks[0].numa_node = node;
                run->ranks[0].device_node = gpu / 2;
                run->ranks[0].distance = local ? 10 : 32;
                run->point =
                    lab_arena_printf(&given.arena, "gpu%d_numa%d_%s", gpu, node, run->model);
            }
        }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    const struct lab_claim *claims = result.claims;
    assert_string_equal(claims[0].subject, "GPUs 0–3, local NUMA nodes");
    assert_true(claims[0].low <= 2e9 && 2e9 <= claims[0].high);
    assert_string_equal(claims[1].subject, "GPUs 0–3, NUMA nodes at distance 32");
    assert_true(claims[1].low <= 4.5e9 && 4.5e9 <= claims[1].high);
    assert_says(result.answer, "GPUs 0–3, local NUMA nodes: transfer-bound up to vit_c, ");
    assert_says(result.answer,
                " GPUs 0–3, NUMA nodes at distance 32: transfer-bound up to vit_d, ");
    given_end(&given);
}

/* A model at the crossover is what its own claims show: the headline called it compute-bound where
 * the interpolated value lay just below it, and left out the device without a peer. */
LAB_TEST(test_a_model_at_the_crossover_keeps_its_verdict) {
    for (int alike = 0; alike < 2; alike++) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int gpu = 0; gpu < 4; gpu++) {
            int first = given.table.run_count;
            add_models(&given, 5, 0.002);
            for (int r = 0; r < 5; r++)
                add_run(&given,
                        (struct model){"vit_m", 2, gpu == 1 && !alike ? 1.05e-3 : 1e-3, NULL}, r,
                        gpu == 2 && !alike ? 0.03 : 0.002);
            for (int i = first; i < given.table.run_count; i++) {
                struct lab_study_run *run = &given.table.runs[i];
                run->ranks[0].device = lab_arena_printf(&given.arena, "cuda:%d", gpu);
                run->rate = 5000 * (1 + 0.002 * given_normal(&given)); /* no device is slow */
                run->ranks[0].device_node = gpu == 3;
                run->ranks[0].distance = gpu == 3 ? 21 : 10;
                run->point = lab_arena_printf(&given.arena, "gpu%d_%s", gpu, run->model);
            }
        }
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        assert_says(result.answer, "GPUs 0–2, NUMA node 0: transfer-bound up to vit_c, "
                                   "compute-bound from vit_d. vit_m (2 GFLOP/sample): ");
        assert_says(result.answer,
                    alike ? "): balanced, compute time within ±"
                          : "): compute-bound on GPU 1, balanced on GPU 0, inconclusive on GPU 2. "
                            "Crossover between 1 and 4 GFLOP/sample. GPU 3");
        assert_says(result.answer, " GPU 3, NUMA node 0: transfer-bound up to vit_c, "
                                   "compute-bound from vit_d. vit_m (2 GFLOP/sample): balanced, ");
        given_end(&given);
    }
}

/* Several groups with a crossover: the headline is their range, not the group that ran first. */
LAB_TEST(test_groups_of_other_settings_are_a_range) {
    static const char *const batches[] = {"{\"batch_size\": 8}", "{\"batch_size\": 16}",
                                          "{\"batch_size\": 32}"};
    static const double small_s[] = {1.5e-3, 0.9e-3, 0.5e-3};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int r = 0; r < 3; r++)
        for (int b = 0; b < 3; b++) {
            add_run(&given, (struct model){"vit_a", 0.521, small_s[b], batches[b]}, r, 0.01);
            add_run(&given, (struct model){"vit_b", 4, 6e-3, batches[b]}, r, 0.01);
        }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_says(result.answer,
                "Crossover in 2 of 3 groups of models with the same settings, not "
                "within the tested range in 1. Lowest: GPU 0, NUMA node 0, "
                "batch 16: crossover between vit_a and vit_b (0.521 to 4 GFLOP/sample). ");
    assert_says(result.answer, "Highest: GPU 0, NUMA node 0, batch 32: crossover between ");
    given_end(&given);
}

/* The headline is the mean over devices, block by block. */
LAB_TEST(test_devices_are_pooled_first) {
    for (int runs = 5; runs > 0; runs -= 4) {
        struct given_study given;
        given_begin(&given, "numa_study");
        for (int gpu = 0; gpu < 3; gpu++) {
            int first = given.table.run_count;
            add_models(&given, runs, 0.01);
            for (int r = 0; r < runs; r++)
                add_run(&given, (struct model){"vit0x0x0", 0, 0, NULL}, r, 0);
            for (int i = first; i < given.table.run_count; i++) {
                struct lab_study_run *run = &given.table.runs[i];
                run->ranks[0].device = lab_arena_printf(&given.arena, "cuda:%d", gpu);
                run->point = lab_arena_printf(&given.arena, "gpu%d_%s", gpu, run->model);
            }
        }
        struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
        assert_string_equal(result.claims[0].subject, "GPUs 0–2, NUMA node 0");
        assert_true(runs == 1 || (result.claims[0].low <= 2e9 && 2e9 <= result.claims[0].high));
        assert_says(result.answer, runs == 1 ? "GPUs 0–2, NUMA node 0: crossover between vit_c and "
                                             : "GPUs 0–2, NUMA node 0: transfer-bound up to vit_c");
        /* each panel has its own device's copies: the last series, one mark */
        for (int p = 0; p < 3; p++) {
            const struct lab_chart_panel *panel = &chart(&result, "crossover")->panels[p];
            assert_int_equal(panel->series_count, 5);
            assert_int_equal(panel->series[4].count, 1);
        }
        given_end(&given);
    }
}

/* A device that differs from its peers isn't part of the mean: it has a crossover of its own. */
LAB_TEST(test_a_slow_device_has_its_own) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++) {
        int first = given.table.run_count;
        add_models(&given, 5, 0.01);
        for (int i = first; i < given.table.run_count; i++) {
            struct lab_study_run *run = &given.table.runs[i];
            run->ranks[0].device = lab_arena_printf(&given.arena, "cuda:%d", gpu);
            run->point = lab_arena_printf(&given.arena, "gpu%d_%s", gpu, run->model);
            run->rate = (gpu == 2 ? 900 : 1000) * (1 + 0.002 * given_normal(&given));
        }
    }
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_says(result.answer, "GPUs 0, 1 and 3, NUMA node 0: transfer-bound up to vit_c, ");
    assert_says(result.answer, " GPU 2, NUMA node 0: transfer-bound up to vit_c, ");
    assert_null(strstr(result.answer, " GPU 1, NUMA node 0: "));
    given_end(&given);
}

LAB_TEST(test_one_run_each_gives_values_and_no_verdict) {
    struct given_study given;
    given_begin(&given, "quick_test");
    add_models(&given, 1, 0);
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_near(result.claims[0].effect / 2e9, 1, 1e-3);
    for (int i = 0; i < result.claim_count; i++)
        assert_int_equal(result.claims[i].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_string_equal(result.answer,
                        "GPU 0, NUMA node 0: crossover between vit_c and vit_d (1 run "
                        "each: no verdict).");
    assert_string_equal(cell(&result, 0, "models", 0, "bound_by")->text, "inconclusive");
    given_end(&given);
}

LAB_TEST(test_what_only_copies_is_transfer_bound) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int r = 0; r < 2; r++)
        add_run(&given, (struct model){"vit0x0x0", 0, 0, NULL}, r, 0);
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_string_equal(cell(&result, 0, "models", 0, "bound_by")->text, "transfer");
    assert_says(result.answer, "crossover not tested: fewer than 2 models compute and copy.");
    given_end(&given);
}

LAB_TEST(test_without_stages_the_runs_own_values_serve) {
    struct given_study given;
    given_begin(&given, "foreign");
    given_add(&given, (struct given_run){.model = "vit_a",
                                         .rate = 5000, /* a batch takes 2 ms */
                                         .samples = SAMPLES,
                                         .flops = 1e10,
                                         .bytes = 6e6,
                                         .result = "{\"compute_utilization\": 0.3, "
                                                   "\"h2d_gb_per_s\": 4, "
                                                   "\"d2h_gb_per_s\": 12}"});
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    assert_near(cell(&result, 0, "models", 0, "compute_ms")->value, 0.06e-3, 1e-9);
    assert_near(cell(&result, 0, "models", 0, "transfer_ms")->value, 0.15e-3, 1e-9);
    given_end(&given);
}

LAB_TEST(test_times_are_drawn_over_work) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    assert_says(when_asked(&given, "crossover", NULL).answer, "Not tested: ");
    add_models(&given, 3, 0.01);
    assert_int_equal(lab_analysis_find("crossover", NULL)->interest(&given.table), 30);
    struct lab_analysis_result result = when_asked(&given, "crossover", NULL);
    const struct lab_chart_panel *panel = &chart(&result, "crossover")->panels[0];
    assert_says(chart(&result, "crossover")->caption, "Marks, from the left: ");
    assert_null(strstr(chart(&result, "crossover")->caption, "Throughput"));
    for (int i = 0; i < given.table.run_count; i++) /* short runs: their throughput is below that */
        given.table.runs[i].rate *= 0.94;
    struct lab_analysis_result slower = when_asked(&given, "crossover", NULL);
    assert_says(chart(&slower, "crossover")->caption,
                " Throughput is up to 6.0% below 1 / time: filling and draining the pipeline, ");
    assert_int_equal(panel->series_count, 4);
    assert_string_equal(panel->series[1].title, "transfer");
    assert_int_equal(panel->shade_count, 1);
    for (int r = 0; r < 3; r++) /* a mark like the others */
        add_run(&given, (struct model){"vit0x0x0", 0, 0, NULL}, r, 0);
    for (int i = 0; i < 3; i++)
        given.table.runs[given.table.run_count - 1 - i].rate *= 0.9;
    struct lab_analysis_result copies = when_asked(&given, "crossover", NULL);
    assert_says(chart(&copies, "crossover")->caption, " Throughput is up to 10.0% below 1 / time");
    given_end(&given);
}
