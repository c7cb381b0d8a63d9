/* Programs of the user's own: which setting is best by what they said, and at what price. */
#include "analysis/metrics/metrics.h"
#include "metrics_fixture.h"

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
    assert_int_equal(g->result.claim_count, 1); /* the best against the next is the same pair */
    assert_string_equal(g->result.action, "Use adamw");
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
    assert_null(g->result.action);
}

/* Given three settings, two of them alike, then the best is certain against the first alone. */
LAB_TEST(the_best_is_compared_with_the_next) {
    struct given *g = *state;
    for (int r = 0; r < 5; r++) {
        add(g, "sgd", r, "loss", 0.50 + 0.001 * r, 1);
        add(g, "adam", r, "loss", 0.305 + 0.02 * (r % 2), 1);
        add(g, "adamw", r, "loss", 0.300 + 0.02 * ((r + 1) % 2), 1);
    }
    analyse(g);
    assert_says(g, "Use adamw or adam, not sgd. sgd: 61.0% higher loss than adamw (95% CI");
    assert_string_equal(g->result.action, "Use adamw or adam, not sgd");
    assert_string_equal(g->result.claims[0].kind, "metrics.worse");
    assert_int_equal(g->result.claims[0].verdict, LAB_CLAIM_YES);
    assert_string_equal(g->result.claims[1].kind, "metrics.best");
}

/* Given that the first setting is the best, then that is the answer. */
LAB_TEST(the_reference_may_be_the_best) {
    struct given *g = *state;
    for (int r = 0; r < 3; r++) {
        add(g, "adamw", r, "loss", 0.30 + 0.001 * r, 1);
        add(g, "sgd", r, "loss", 0.50 + 0.001 * r, 1);
    }
    analyse(g);
    assert_says(g, "adamw has the lowest loss; sgd: 66.4% higher loss than adamw");
    assert_string_equal(g->result.parts[0].cells[1].text, "adamw");
}

/* Given that nothing is certainly better than the first setting, then what is worse is the answer. */
LAB_TEST(what_is_worse_is_said) {
    struct given *g = *state;
    for (int r = 0; r < 3; r++) {
        add(g, "adam", r, "loss", 0.30 + 0.05 * r, 1);
        add(g, "adamw", r, "loss", 0.40 - 0.05 * r, 1);
        add(g, "sgd", r, "loss", 3.0 + 0.5 * r, 1);
    }
    analyse(g);
    assert_says(g, "Use adam or adamw, not sgd. sgd: 900% higher loss than adam");
    assert_null(g->result.command);
}

/* Given runs that were shuffled, then the first value of the matrix is the reference. */
LAB_TEST(the_matrix_orders_settings) {
    struct given *g = *state;
    g->study.table.matrix = given_json(&g->study, "{\"optimizer\": [\"sgd\", \"adam\"]}");
    add(g, "adam", 0, "loss", 0.3, 1);
    add(g, "sgd", 0, "loss", 0.4, 1);
    analyse(g);
    assert_string_equal(g->result.claims[0].reference, "sgd");
    assert_string_equal(g->result.parts[0].tables[0].cells[0].text, "adam"); /* the best first */
    assert_int_equal(g->result.parts[0].table_count, 1); /* one table has it all */
}

/* What settings are chosen by: what is asked for, else validation before training, a loss first. */
LAB_TEST(the_objective_is_chosen) {
    static const struct {
        const char *asked, *chosen, *answer;
    } cases[] = {{NULL, "val_loss", "val_loss from 0.4 (b)"},
                 {"top1", "top1", "top1 from 0.9 (b)"},
                 {"step_bias:max", "step_bias", "step_bias from 7 (b)"},
                 {"step_bias:min", "step_bias", "step_bias from 3 (a)"}};
    struct given *g = *state;
    static const struct lab_study_metric said[2][4] = {{{"loss", "", -1, 0.2},
                                                        {"top1", "", -1, 0.8},
                                                        {"val_loss", "", -1, 0.5},
                                                        {"step_bias", "", -1, 3}},
                                                       {{"loss", "", -1, 0.3},
                                                        {"top1", "", -1, 0.9},
                                                        {"val_loss", "", -1, 0.4},
                                                        {"step_bias", "", -1, 7}}};
    for (int i = 0; i < 2; i++) {
        struct lab_study_run *run = add(g, i ? "b" : "a", 0, "loss", 0.1, 1);
        run->metrics = said[i];
        run->metric_count = 4;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g->study.table.objective = cases[i].asked;
        analyse(g);
        assert_string_equal(g->result.parts[0].name, cases[i].chosen);
        assert_says(g, cases[i].answer);
        assert_int_equal(g->result.part_count, 4);
    }
    /* one that no run reported chooses nothing; typed, it is refused */
    g->study.table.objective = "bleu";
    analyse(g);
    assert_string_equal(g->result.answer, "No run reported 'bleu', which settings are chosen by.");
    assert_int_equal(g->result.part_count, 4);
    assert_int_equal(g->result.claim_count, 0);
    static const char *const refused[][2] = {
        {"bleu", "no run reported 'bleu', which settings are chosen by; there are: loss, top1, "
                 "val_loss, step_bias"},
        {"loss:down", "must be a metric's name, or that with :min or :lower, :max or :higher"}};
    for (int i = 0; i < 2; i++) {
        const struct lab_analysis *analysis = lab_analysis_find("metrics", NULL);
        struct lab_err err = LAB_ERR_INIT;
        struct lab_analysis_input input = given_input(&g->study);
        const char **typed = lab_analysis_config(analysis, &g->study.arena);
        *typed = refused[i][0];
        assert_int_equal(
            lab_analysis_run(analysis, typed, &input, &g->study.arena, &g->result, &err), -1);
        assert_contains(err.text, refused[i][1]);
    }
}

/* Given that the runs of all other settings failed, then that is said, by its short name. */
LAB_TEST(a_setting_may_be_left_alone) {
    struct given *g = *state;
    g->study.table.matrix =
        given_json(&g->study, "{\"optimizer\": [\"sgd\", \"adam\"], \"steps\": 5}");
    add(g, "adam", 0, "loss", 0.3, 1)->model = "optimizeradam_steps5";
    analyse(g);
    assert_string_equal(g->result.answer, "loss: 0.3 with adam, the only setting that is done.");
    g->study.table.failed_count = 1;
    g->study.table.planned_count = 2;
    analyse(g);
    assert_string_equal(
        g->result.answer,
        "loss: 0.3 with adam, the only setting that succeeded; 1 of 2 runs failed.");
    g->study.table.matrix = NULL;
    analyse(g);
    assert_string_equal(g->result.answer, "loss: 0.3 with optimizer=adam, the only setting.");
}

/* Given a matrix over a workload of gpulab's, then its settings' throughput is compared. */
LAB_TEST(a_workload_is_compared_by_its_rate) {
    struct given *g = *state;
    g->study.table.matrix =
        given_json(&g->study, "{\"batch_size\": [32, 64], \"optimizer\": [\"sgd\"]}");
    for (int r = 0; r < 3; r++)
        for (int size = 32; size <= 64; size *= 2) {
            struct lab_study_run *run = given_add(
                &g->study, (struct given_run){.model = size == 32 ? "mlp_batch32" : "mlp_batch64",
                                              .repeat = r,
                                              .rate = size + 0.1 * r});
            run->options = given_json(
                &g->study, lab_arena_printf(&g->study.arena, "{\"batch_size\": %d}", size));
        }
    analyse(g);
    assert_says(g, "batch_size=64: 99.7% higher throughput than batch_size=32");
    const struct lab_claim *last = &g->result.claims[g->result.claim_count - 1];
    assert_int_equal(last->verdict, LAB_CLAIM_NOT_TESTED); /* it has no such option */
    assert_true(lab_str_starts(last->subject, "optimizer (no option of "));
    assert_true(lab_analysis_find("metrics", NULL)->interest(&g->study.table) > 0);
}

/* Given a matrix over models, too, then none is chosen for being small: each has its best batch. */
LAB_TEST(a_small_model_is_no_better_setting) {
    struct given *g = *state;
    static const char *const models[] = {"medium", "large"};
    g->study.table.matrix =
        given_json(&g->study, "{\"batch_size\": [32, 64], \"model\": [\"medium\", \"large\"]}");
    for (int r = 0; r < 3; r++)
        for (int m = 0; m < 2; m++)
            for (int size = 32; size <= 64; size *= 2) {
                struct lab_study_run *run = given_add(
                    &g->study,
                    (struct given_run){.model = lab_arena_printf(&g->study.arena, "mlp_%s_batch%d",
                                                                 models[m], size),
                                       .repeat = r,
                                       .rate = m ? 10 + 0.1 * size + 0.01 * r : size + 0.1 * r});
                run->work.samples = size; /* the update's share is of a step */
                run->work.flops = (m ? 1e7 : 1e5) * (size + 2);
                run->options = given_json(
                    &g->study,
                    lab_arena_printf(&g->study.arena, "{\"batch_size\": %d, \"model\": \"%s\"}",
                                     size, models[m]));
            }
    analyse(g);
    assert_says(g, "batch_size=64, model=medium: 99.7% higher throughput than batch_size=32, "
                   "model=medium");
    assert_says(g, "batch_size=64, model=large: 24.2% higher throughput than batch_size=32, "
                   "model=large");
    assert_string_equal(g->result.action, "By model, use: batch_size=64, model=medium; "
                                          "batch_size=64, model=large. Larger batches than 64: not "
                                          "tested");
    assert_string_equal(cell(g, "settings", 3, "Change")->text, "reference");
}

/* Given two models of about the same work, then their names keep them apart. */
LAB_TEST(models_of_one_work_are_not_compared) {
    struct given *g = *state;
    g->study.table.matrix = given_json(&g->study, "{\"model\": [\"medium\", \"large\"]}");
    for (int r = 0; r < 3; r++)
        for (int m = 0; m < 2; m++) {
            struct lab_study_run *run =
                given_add(&g->study, (struct given_run){.model = m ? "mlp_large" : "mlp_medium",
                                                        .repeat = r,
                                                        .rate = m ? 10 + 0.01 * r : 12 + 0.01 * r});
            run->work.flops = m ? 1.2e5 : 1e5;
            run->options =
                given_json(&g->study, m ? "{\"model\": \"large\"}" : "{\"model\": \"medium\"}");
        }
    analyse(g);
    assert_says(g, "each setting is another model, so none is best.");
}

/* Given rates that three digits don't tell apart, then the answer has as many as do. */
LAB_TEST(values_that_differ_read_differently) {
    struct given *g = *state;
    g->study.table.matrix = given_json(&g->study, "{\"batch_size\": [32, 64]}");
    for (int size = 32; size <= 64; size *= 2) {
        struct lab_study_run *run = given_add(
            &g->study, (struct given_run){.model = size == 32 ? "mlp_batch32" : "mlp_batch64",
                                          .rate = size == 32 ? 164321 : 164100});
        run->options =
            given_json(&g->study, lab_arena_printf(&g->study.arena, "{\"batch_size\": %d}", size));
    }
    analyse(g);
    assert_string_equal(g->result.answer,
                        "Throughput from 164321 samples/s (batch_size=32) to 164100 samples/s "
                        "(batch_size=64): no verdict (1 run each).");
    /* noise looks like noise, and one run has no mean */
    const struct lab_chart *chart = &g->result.charts[0];
    assert_null(chart->caption);
    assert_true(chart->panels[0].y.low < 161000 && chart->panels[0].y.high > 168000);
}

/* Of a rate the slowest rank's median counts; of tokens per second the run's own rate does. */
LAB_TEST(a_rate_is_the_slowest_ranks) {
    struct given *g = *state;
    struct lab_study_run *run = add(g, "sgd", 0, "loss", 0.5, 1);
    struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 2, sizeof *said);
    for (int rank = 0; rank < 2; rank++) {
        said[rank] = (struct lab_study_metric){"it/s", "", rank, 99};
        for (int i = 0; i < 5; i++)
            lab_curve_add(&said[rank].curve, i, i, i == 0 ? 1 : rank ? 8 : 10, &g->study.arena);
    }
    run->metrics = said;
    run->metric_count = 2;
    struct metrics_metric metric = {.name = "it/s", .unit = "", .rate = true};
    assert_float_equal(metrics_run_value(run, &metric), 8, 0);
    struct lab_run counted = *run->run;
    counted.rate_unit = LAB_RATE_TOKENS;
    run->run = &counted;
    run->rate = 7;
    said[0].name = said[1].name = metric.name = "tokens_per_s";
    assert_float_equal(metrics_run_value(run, &metric), 7, 0);
}

/* --- what it takes --- */

/* On three GPUs, of which the last does nothing. */
static void put_on_gpus(struct given *g, struct lab_study_run *run) {
    static const double memory[] = {10752, 9728, 3};
    struct lab_arena *arena = &g->study.arena;
    struct lab_result *result = lab_arena_copy(arena, run->result, 1, sizeof *result);
    struct lab_result *results = lab_arena_alloc(arena, 3, sizeof *results);
    struct lab_study_rank *ranks = lab_arena_alloc(arena, 3, sizeof *ranks);
    for (int i = 0; i < 3; i++) {
        results[i] = lab_result_none;
        results[i].gpu_memory_peak_mb = memory[i];
        ranks[i] = run->ranks[0];
        ranks[i].gpu_id = i;
        ranks[i].device = lab_arena_printf(arena, "cuda:%d", i);
    }
    result->ranks = results;
    result->rank_count = run->rank_count = 3;
    run->ranks = ranks;
    run->result = result;
}

/* Given GPUs with their energy, then each setting has its price, and one gives most for it. */
LAB_TEST(settings_have_their_price) {
    struct given *g = *state;
    for (int r = 0; r < 2; r++)
        for (int fast = 0; fast < 2; fast++) {
            struct lab_study_run *run =
                add_curve(g, fast ? "adamw" : "sgd", r, (fast ? 0.2 : 0.6) + 0.001 * r, 9);
            run->time_s = fast ? 4 : 2;
            run->result = result_from(fast ? "{\"energy_j\": 4000, \"gpu_memory_peak_mb\": 20483}"
                                           : "{\"energy_j\": 1000, \"gpu_memory_peak_mb\": 9216}",
                                      &g->study.arena);
            if (fast)
                put_on_gpus(g, run);
        }
    analyse(g);
    assert_string_equal(cell(g, "settings", 0, "Setting")->text, "adamw, GPUs 0–2");
    assert_string_equal(cell(g, "settings", 0, "Time")->text, "4.00 s");
    assert_string_equal(cell(g, "settings", 0, "Peak memory per GPU")->text, "10.5 GiB");
    assert_string_equal(cell(g, "settings", 0, "Energy")->text, "4.00 kJ");
    assert_string_equal(cell(g, "settings", 0, "Reduction per kJ")->text, "0.2 ±0.8%");
    /* GPU 2 did nothing: it isn't graded */
    assert_string_equal(cell(g, "settings", 0, "Memory balance (CV)")->text, "5.0%, good");
    assert_string_equal(cell(g, "settings", 1, "Energy")->text, "1.00 kJ");
    assert_string_equal(cell(g, "settings", 1, "Reduction per kJ")->text, "0.399 ±1.6%");
    assert_null(cell(g, "settings", 1, "Memory balance (CV)")->text);
    assert_says(g,
                "sgd, GPU 0: 99.9% higher loss reduction per joule than adamw, GPUs 0–2 (95% CI");
    const struct lab_chart *chart = &g->result.charts[g->result.chart_count - 2];
    assert_string_equal(chart->name, "gpu_memory_comparison");
    assert_string_equal(chart->panels[0].x.names[1], "adamw, GPUs 0–2");
    assert_float_equal(chart->panels[0].series[0].y[1], 10.5, 1e-9);
}

/* The most per joule is named where the interval bears it out; gains count from one start. */
LAB_TEST(gain_per_joule_is_compared) {
    static const struct {
        double start[2], joules[2][3]; /* of adam and sgd, which end alike */
        int runs;
        const char *says; /* NULL = nothing */
    } cases[] = {
        {{3, 3}, {{1000}, {2000}}, 1, NULL},
        {{3, 3}, {{900, 1000, 1100}, {950, 1200, 1000}}, 3, NULL},
        {{3, 9}, {{1000, 1010, 1020}, {1000, 1020, 1010}}, 3, NULL}, /* it only starts worse */
        {{3, 9}, {{1000, 1010, 1020}, {2000, 2020, 2010}}, 3, "adam: 99.0% higher loss reduction"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < cases[i].runs; r++)
            for (int s = 0; s < 2; s++) {
                struct lab_study_run *run = add_curve(g, s ? "sgd" : "adam", r, 0.5 + 0.001 * r, 9);
                ((struct lab_study_metric *)run->metrics)->curve.first = cases[i].start[s];
                run->result = result_from(
                    lab_arena_printf(&g->study.arena, "{\"energy_j\": %g}", cases[i].joules[s][r]),
                    &g->study.arena);
            }
        analyse(g);
        assert_true((strstr(g->result.answer, "per joule") != NULL) == (cases[i].says != NULL));
        if (cases[i].says)
            assert_says(g, cases[i].says);
        given_end(&g->study);
    }
}

/* Given no GPU, then nothing is said of GPUs: no zeros, no grades. */
LAB_TEST(without_gpus_there_are_no_columns_of_theirs) {
    struct given *g = *state;
    for (int i = 0; i < 2; i++)
        add_curve(g, i ? "sgd" : "adamw", 0, 0.2, 3)->result =
            result_from("{\"peak_memory_mb\": 14}", &g->study.arena);
    analyse(g);
    assert_string_equal(cell(g, "settings", 0, "Peak memory")->text, "≤ 14 MiB");
    assert_null(cell(g, "settings", 0, "Energy"));
    assert_null(cell(g, "settings", 0, "Reduction per kJ"));
    assert_null(cell(g, "settings", 0, "Memory balance (CV)"));
}

/* --- several studies --- */

LAB_TEST(settings_of_several_studies_are_compared) {
    struct given *g = *state, other;
    given_begin(&other.study, "monday");
    for (int r = 0; r < 3; r++) {
        add(g, "sgd", r, "loss", 0.5 + 0.001 * r, 1);
        add(g, "adam", r, "loss", 0.4 + 0.001 * r, 1);
        add(&other, "sgd", r, "loss", 0.3 + 0.001 * r, 1);
    }
    struct lab_study_table studies[] = {g->study.table, other.study.table};
    struct lab_analysis_input input = {.studies = studies, .study_count = 2};
    ASSERT_OK(lab_analysis_run(lab_analysis_find("metrics", NULL), NULL, &input, &g->study.arena,
                               &g->result, err));
    assert_says(g, "monday: sgd: 24.9% lower loss than adam (95% CI");
    assert_string_equal(cell(g, "settings", 2, "Setting")->text, "test_matrix: sgd");
    given_end(&other.study);
}

/* --- repeats --- */

/* Repeats that are copies of each other decide nothing; a simulation without noise does. */
LAB_TEST(copies_decide_nothing) {
    static const char copied[] = "The repeats are identical: vary the seed",
                      one[] = "The repeats of sgd are identical: vary the seed",
                      seeded[] = "The repeats of sgd are identical: let the program use its seed",
                      equal[] = "All repeats have the same value";
    static const struct {
        double sgd[3], adamw[3]; /* losses of the repeats */
        bool simulated, other;   /* other: another metric differs */
        const char *says, *action, *command;
    } cases[] = {
        {{0.5, 0.5, 0.5}, {0.4, 0.4, 0.4}, false, false, copied, copied},
        {{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, false, false, copied, copied},
        {{0.5, 0.5, 0.5}, {0.40, 0.41, 0.40}, false, false, one, one},
        {{0.5, 0.5, 0.5}, {0.40, 0.41, 0.40}, false, false, seeded, seeded, "./x {repeat}"},
        {{0.5, 0.5, 0.5}, {0.4, 0.4, 0.4}, false, true, equal, equal},
        {{0.5, 0.5, 0.5}, {0.40, 0.41, 0.40}, false, true, "lower loss than sgd", "Use adamw"},
        {{0.5, 0.5, 0.5}, {0.4, 0.4, 0.4}, true, false, "20.0% lower loss than sgd", "Use adamw"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        g->study.table.simulated = cases[i].simulated;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 2; s++) {
                const double *losses = s ? cases[i].adamw : cases[i].sgd;
                struct lab_study_run *run = add(g, s ? "adamw" : "sgd", r, "loss", losses[r], 1);
                struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 3, sizeof *said);
                said[0] = run->metrics[0];
                said[1] =
                    (struct lab_study_metric){"tokens_per_s", "", -1, 100 + r}; /* no seed's */
                said[2] = (struct lab_study_metric){"train_loss", "", -1, 1.0 + r};
                run->metrics = said;
                run->metric_count = cases[i].other ? 3 : 2;
                if (cases[i].command)
                    lab_value_set_string(&g->study.arena, (struct lab_value *)run->options,
                                         "command", cases[i].command);
            }
        g->study.table.objective = "loss";
        analyse(g);
        assert_says(g, cases[i].says);
        assert_contains(g->result.action, cases[i].action);
        if (!strstr(cases[i].says, "than sgd")) {
            assert_string_equal(lab_claim_verdict_name(g->result.claims[0].verdict),
                                "inconclusive");
            assert_contains(lab_claim_sentence(&g->result.claims[0], g->result.arena), "; ");
            assert_null(g->result.parts[0].cells[1].text); /* none is the best */
        }
        given_end(&g->study);
    }
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
    assert_int_equal(g->result.chart_count, 2); /* its values, and the memory */
    assert_string_equal(g->result.charts[0].name, "metric_comparison");
}

/* Given an accuracy beside a loss, then the picture is of memory against the accuracy. */
LAB_TEST(memory_is_drawn_against_accuracy) {
    struct given *g = *state;
    add(g, "sgd", 0, "loss", 0.5, 9216);
    add(g, "adamw", 0, "top1", 0.9, 12288);
    analyse(g);
    assert_int_equal(g->result.chart_count, 2); /* memory by setting before it */
    const struct lab_chart *chart = &g->result.charts[1];
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
    const struct lab_chart_panel *panel = &g->result.charts[2].panels[0];
    for (int i = 0; i < panel->series_count; i++)
        points += panel->series[i].count;
    assert_int_equal(panel->series_count, 8);
    assert_int_equal(points, 20);
}

/* Given runs that said nothing, then that is the answer. */
LAB_TEST(nothing_said_is_said) {
    struct given *g = *state;
    given_add(&g->study, (struct given_run){.model = "b", .rate = 1});
    analyse(g);
    assert_says(g, "No run reported a number");
    assert_int_equal(g->result.part_count, 0);
    assert_int_equal(g->result.chart_count, 0);
}

/* --- values that can't be ratios, or aren't there --- */

/* Three losses of adam and of sgd: 0 and below are compared by differences; NaN has diverged. */
LAB_TEST(any_value_is_compared_or_named) {
    static const struct {
        const char *metric;
        double adam[3], sgd[3];
        const char *says, *change, *runs; /* of the second row */
    } cases[] = {
        {"reward",
         {-20, -21, -22},
         {-160, -164, -162},
         "adam: 141 higher reward than sgd (95% CI [137, 145], 3 runs each).",
         "-141 [-145, -137]",
         "3"},
        {"reward", {1, 0, -1}, {-1.5, 1, 0.2}, "reward from ", "-0.1 [-5.27, 5.07]", "3"},
        {"loss",
         {0.30, 0.31, 0.32},
         {NAN, 0.5, 0.51},
         "adam has the lowest loss; sgd: 60.3% higher loss than adam (95% CI [22.6, 110]%, 2 of 3 "
         "runs). Diverged (loss NaN "
         "or infinite): sgd (1 of 3 runs).",
         "+60.3% [",
         "2 of 3"},
        {"loss",
         {0.30, 0.31, 0.32},
         {NAN, INFINITY, NAN},
         "loss: 0.3099 with adam, the only setting that didn't diverge. Diverged (loss NaN or "
         "infinite): sgd (3 of 3 runs).",
         NULL,
         "0 of 3"},
        {"loss",
         {NAN, NAN, NAN},
         {NAN, NAN, -INFINITY},
         "loss: NaN or infinite in 6 of 6 runs. Both settings diverged.",
         NULL,
         "0 of 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int r = 0; r < 3; r++) {
            add(g, "adam", r, cases[i].metric, cases[i].adam[r], 1);
            add(g, "sgd", r, cases[i].metric, cases[i].sgd[r], 1);
        }
        analyse(g);
        assert_says(g, cases[i].says);
        assert_string_equal(cell(g, "settings", 1, "Runs")->text, cases[i].runs);
        if (cases[i].change)
            assert_contains(cell(g, "settings", 1, "Change")->text, cases[i].change);
        else
            assert_string_equal(cell(g, "settings", 1, "loss")->text, "diverged");
        if (isnan(cases[i].adam[0]))
            assert_contains(g->result.action, "Lower the learning rate");
        given_end(&g->study);
    }
}

/* Given failed runs of settings, then the answer names them. */
LAB_TEST(failed_settings_are_named) {
    struct given *g = *state;
    for (int r = 0; r < 2; r++)
        add(g, "adam", r, "loss", 0.3 + 0.01 * r, 1);
    add(g, "sgd", 0, "loss", 0.5, 1);
    struct lab_study_run failed[3] = {g->study.table.runs[2], g->study.table.runs[2],
                                      g->study.table.runs[2]};
    failed[1].options = failed[2].options =
        given_json(&g->study, "{\"matrix\": {\"optimizer\": \"lion\"}}");
    failed[1].point = failed[2].point = "lion";
    failed[0].used = failed[1].used = failed[2].used = false;
    g->study.table.failed = failed;
    g->study.table.failed_count = 3;
    analyse(g);
    assert_says(g, "no verdict (1 to 2 runs). Failed: sgd (1 of 2 runs), lion (2 of 2 runs).");
    const struct lab_doc_table *table = &g->result.parts[0].tables[0];
    const struct lab_doc_cell *sgd = &table->cells[table->column_count];
    assert_string_equal(sgd[5].text, "+64.0%, 1 of 2 runs");
    assert_string_equal(sgd[table->column_count - 1].text, "1 of 2");
}

/* Given a metric that few runs have, then settings are compared by one that all have. */
LAB_TEST(the_objective_is_what_most_runs_report) {
    static const struct {
        const char *own[4]; /* of both runs of adam and of sgd, besides the loss */
        const char *chosen;
        bool equal; /* all runs have the same value of it */
    } cases[] = {{{"val_loss", "val_loss", "val_loss", "val_loss"}, "loss", true},
                 {{"val_loss", "val_loss", NULL, NULL}, "loss"},
                 {{"final_accuracy", NULL, "final_accuracy", NULL}, "loss"},
                 {{"val_loss", "val_loss", "val_loss", "val_loss"}, "val_loss"},
                 {{"tokens_per_s", "tokens_per_s", "tokens_per_s", "tokens_per_s"}, "loss"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int k = 0; k < 4; k++) {
            struct lab_study_run *run = add(g, k / 2 ? "sgd" : "adam", k % 2, "loss", 1 + k, 1);
            struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 2, sizeof *said);
            said[0] = run->metrics[0];
            said[1] =
                (struct lab_study_metric){cases[i].own[k], "", -1, cases[i].equal ? 0.5 : 0.5 + k};
            run->metrics = said;
            run->metric_count = cases[i].own[k] ? 2 : 1;
        }
        analyse(g);
        assert_string_equal(g->result.parts[0].name, cases[i].chosen);
        bool noted = false;
        for (int n = 0; g->result.notes[n]; n++)
            noted |= strstr(g->result.notes[n], "which 4 of 4 runs reported") != NULL;
        assert_true(noted);
        given_end(&g->study);
    }
}

/* Given a reward, then settings are compared by it, though more runs have a loss. */
LAB_TEST(the_objective_is_the_reward) {
    static const struct {
        const char *name, *chosen;
    } cases[] = {{"rollout/ep_rew_mean", "rollout/ep_rew_mean"},
                 {"Mean return", "Mean return"},
                 {"reward_std", "loss"},
                 {"rewards/format_reward", "loss"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given made, *g = &made;
        given_begin(&g->study, "test_matrix");
        for (int k = 0; k < 4; k++) {
            struct lab_study_run *run = add(g, k / 2 ? "sgd" : "adam", k % 2, "loss", 1 + k, 1);
            struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, 2, sizeof *said);
            said[0] = run->metrics[0];
            said[1] = (struct lab_study_metric){cases[i].name, "", -1, k * k - 2};
            run->metrics = said;
            run->metric_count = k == 3 ? 1 : 2; /* one ended before its first episode */
        }
        analyse(g);
        assert_string_equal(g->result.parts[0].name, cases[i].chosen);
        given_end(&g->study);
    }
}

/* Given more metrics than a report shows, then what settings may be chosen by is kept. */
LAB_TEST(many_metrics_hide_no_objective) {
    enum { COUNT = 600 };
    struct given *g = *state;
    for (int k = 0; k < 4; k++) {
        struct lab_study_run *run = add(g, k / 2 ? "sgd" : "adam", k % 2, "loss", 1 + k, 1);
        struct lab_study_metric *said = lab_arena_alloc(&g->study.arena, COUNT, sizeof *said);
        for (int i = 0; i < COUNT - 1; i++)
            said[i] = (struct lab_study_metric){
                lab_arena_printf(&g->study.arena, "layer%d.norm", i), "", -1, i + k};
        said[COUNT - 1] = run->metrics[0];
        run->metrics = said;
        run->metric_count = COUNT;
    }
    analyse(g);
    assert_string_equal(g->result.parts[0].name, "loss");
    assert_int_equal(g->result.part_count, 512);
    bool noted = false;
    for (int n = 0; g->result.notes[n]; n++)
        noted |= strstr(g->result.notes[n], "88 of 600 metrics are left out") != NULL;
    assert_true(noted);
}

/* Given two studies with the same seeds in one table, then a repeat that both have counts once. */
LAB_TEST(the_same_repeat_of_two_studies_is_one) {
    struct given *g = *state;
    for (int r = 0; r < 5; r++) /* of the second study: its 0 and 1 are the first one's */
        for (int s = 0; s < 2; s++) {
            struct lab_study_run *run =
                add(g, s ? "sgd" : "adam", r, "loss", 0.3 + 0.2 * s + 0.01 * (r % 3), 1);
            struct lab_run *kept = lab_arena_copy(&g->study.arena, run->run, 1, sizeof *kept);
            const char *id = s ? "sgd" : "adam";
            kept->id = r % 3 ? lab_arena_printf(&g->study.arena, "%s_r%d", id, r % 3) : id;
            run->run = kept;
        }
    analyse(g);
    assert_says(g, "3 runs each");
    assert_string_equal(cell(g, "settings", 0, "Runs")->text, "3");
}

const struct lab_test_program lab_test_program = {.set_up = begin, .tear_down = end};
