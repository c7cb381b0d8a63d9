/* What compiling gains and costs, on studies whose gain and cost were planted. */
#include "study_answers.h"

#include "stats/stats.h"

/* A model that takes `plain_s` a sample, and `gain` less when compiled, which costs `cost_s`. */
struct planted {
    const char *model;
    double flops, plain_s, gain, cost_s;
};

static void given_pair(struct given_study *given, struct planted planted, int node, int repeats,
                       double noise, double setup_noise_s) {
    for (int i = 0; i < 2 * repeats; i++) {
        bool compiled = i % 2;
        double per_sample_s = planted.plain_s * (compiled ? 1 / (1 + planted.gain) : 1) *
                              (1 + noise * given_normal(given));
        double setup_s =
            1.0 + (compiled ? planted.cost_s : 0) + setup_noise_s * given_normal(given);
        given_add(given,
                  (struct given_run){
                      .model = planted.model,
                      .node = node,
                      .repeat = i / 2,
                      .rate = 1 / per_sample_s,
                      .flops = planted.flops,
                      .suffix = compiled ? "_compiled" : NULL,
                      .test = compiled ? "{\"compile_model\": true}" : "{\"compile_model\": false}",
                      .result = lab_arena_printf(
                          &given->arena,
                          "{\"latency_ms\": {\"median\": 5.0}, \"ranks\": [{\"setup_s\": "
                          "%.9f, \"first_iteration_ms\": 5.0}]}",
                          setup_s),
                  });
    }
}

LAB_TEST(gain_cost_and_break_even_are_found_again) {
    struct given_study given;
    given_begin(&given, "compile_study");
    /* 1 ms a sample becomes 0.8 ms: 2 s are paid back after 10,000 samples */
    given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, 0.25, 2.0}, 0, 3, 0, 0);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_int_equal(result.part_count, 1);
    assert_near(cell(&result, 0, "models", 0, "gain")->value, 0.25, 1e-9);
    assert_near(cell(&result, 0, "models", 0, "cost_ms")->value, 2.0, 1e-6);
    assert_near(cell(&result, 0, "models", 0, "break_even_samples")->value, 10000, 1e-3);
    assert_string_equal(cell(&result, 0, "models", 0, "verdict")->text, "faster");
    assert_says(result.answer,
                "compiling speeds up 1 of 1 model, most of all vit32x2x128: +25.0 %");
    given_end(&given);
}

LAB_TEST(the_first_iteration_counts_beyond_a_usual_one) {
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int i = 0; i < 2; i++)
        given_add(&given,
                  (struct given_run){.model = "vit32x2x128",
                                     .rate = i ? 2000 : 1000,
                                     .suffix = i ? "_compiled" : NULL,
                                     .options = i ? "{\"compile_model\": true}"
                                                  : "{\"compile_model\": false}",
                                     .result = i ? "{\"latency_ms\": {\"median\": 5}, \"ranks\": "
                                                   "[{\"first_iteration_ms\": 105}]}"
                                                 : "{\"latency_ms\": {\"median\": 10}, \"ranks\": "
                                                   "[{\"first_iteration_ms\": 10}]}"});
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_near(cell(&result, 0, "models", 0, "cost_ms")->value, 0.1, 1e-9);
    assert_near(cell(&result, 0, "models", 0, "break_even_samples")->value, 200, 1e-6);
    assert_true(isnan(cell(&result, 0, "models", 0, "break_even_samples")->low));
    assert_true(has_note(result.parts[0].notes, "first iteration alone"));
    assert_true(has_note(result.parts[0].notes, "One run each"));
    given_end(&given);
}

/* Intervals of gain, cost and break-even hold in 95 % of studies. */
LAB_TEST(intervals_hold_as_often_as_they_say) {
    enum { TRIALS = 400, CLAIMS = 3 };
    static const char *const keys[CLAIMS] = {"gain", "cost_ms", "break_even_samples"};
    static const double truths[CLAIMS] = {0.25, 2.0, 10000};
    int held[CLAIMS] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "compile_study");
        given.random = drawn;
        given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, 0.25, 2.0}, 0, 5, 0.01, 0.1);
        drawn = given.random;
        struct lab_analysis_result result = when_asked(&given, "compile", NULL);
        for (int i = 0; i < CLAIMS; i++)
            held[i] += covers(cell(&result, 0, "models", 0, keys[i]), truths[i]);
        given_end(&given);
    }
    for (int i = 0; i < CLAIMS; i++)
        if (!(lab_stats_binomial_test(held[i], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", keys[i], held[i], TRIALS);
}

LAB_TEST(what_slows_is_never_paid_back) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, -0.1, 2.0}, 0, 5, 0.001, 0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_string_equal(cell(&result, 0, "models", 0, "verdict")->text, "slower");
    assert_true(isnan(cell(&result, 0, "models", 0, "break_even_samples")->value));
    assert_says(result.answer,
                "speeds up none of 1 model for certain; it slows 1, vit32x2x128 by 10");
    given_end(&given);
}

LAB_TEST(no_gain_is_told_as_a_bound) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, (struct planted){"vit16x8x768", 1e9, 1e-3, 0, 1.0}, 0, 5, 0.002, 0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_string_equal(cell(&result, 0, "models", 0, "verdict")->text, "same");
    assert_says(result.answer, "on 1 there is no difference larger than");
    given_end(&given);
}

/* Small models gain most: the answer says so, and nodes are kept apart. */
LAB_TEST(smaller_models_gain_more_on_each_node) {
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < 6; i++)
            given_pair(&given,
                       (struct planted){lab_arena_printf(&given.arena, "vit32x%dx512", 2 * i + 2),
                                        1e9 * (i + 1), 1e-3 * (i + 1), 0.3 / (i + 1), 0.5},
                       node, 3, 0.001, 0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_int_equal(result.part_count, 2);
    assert_string_equal(result.parts[1].name, "cuda:0 from node 1");
    assert_near(figure(&result, 0, "gain_against_work")->value, -1, 1e-9);
    assert_says(result.parts[1].answer, "The gain falls with the model's work");
    assert_string_equal(cell(&result, 0, "models", 0, "model")->text, "vit32x2x512");
    const struct lab_chart *picture = chart(&result, "compile_benefit");
    assert_int_equal(picture->panels[0].series_count, 2);
    assert_int_equal(picture->panels[0].x.name_count, 6);
    assert_near(picture->panels[0].series[1].y[0], 30, 1);
    given_end(&given);
}

LAB_TEST(without_both_there_is_nothing_to_compare) {
    struct given_study given;
    given_begin(&given, "numa_study");
    assert_says(when_asked(&given, "compile", NULL).answer, "nothing to compare");
    given_add(&given, (struct given_run){.model = "vit32x2x128",
                                         .rate = 100,
                                         .test = "{\"compile_model\": false}"});
    given_add(&given, (struct given_run){.model = "vit32x4x128",
                                         .rate = 100,
                                         .test = "{\"compile_model\": true}"});
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_int_equal(result.part_count, 0);
    assert_int_equal(result.chart_count, 0);
    assert_says(result.answer, "no model ran both with");
    given_end(&given);
}

LAB_TEST(both_values_make_it_worth_a_report) {
    struct given_study given;
    const struct lab_analysis *analysis = lab_analysis_find("compile", NULL);
    given_begin(&given, "compile_study");
    assert_int_equal(analysis->interest(&given.table), 0);
    given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, 0.25, 2.0}, 0, 1, 0, 0);
    assert_true(analysis->interest(&given.table) > 0);
    given_end(&given);
}
