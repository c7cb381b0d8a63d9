/* What compiling gains and costs, on studies whose gain and cost were planted. */
#include "claim_fixture.h"
#include "study_answers.h"

#include "stats/stats.h"

#define REPEATS 5

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

/* 1 ms a sample becomes 0.8 ms: 2 s are paid back after 10,000 samples. */
static const struct planted quarter = {"vit32x2x128", 1e9, 1e-3, 0.25, 2.0};

LAB_TEST(gain_cost_and_break_even_are_found_again) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, quarter, 0, 3, 0, 1e-6);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_near(claim_of(&result, "compile.gain", "vit32x2x128")->effect, 0.25, 1e-9);
    assert_near(claim_of(&result, "compile.cost", "vit32x2x128")->effect, 2.0, 1e-4);
    assert_near(claim_of(&result, "compile.break_even", "vit32x2x128")->effect, 10000, 1);
    assert_says(cell(&result, 0, "models", 0, "break_even_samples")[1].text, "10000 samples [");
    assert_says(result.answer, "vit32x2x128, compiled: 25.0% higher throughput than uncompiled");
    given_end(&given);
}

LAB_TEST(the_first_iteration_counts_beyond_a_usual_one) {
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int i = 0; i < 2; i++)
        given_add(&given,
                  (struct given_run){.model = "vit32x2x128",
                                     .rate = i ? 2000 : 1000,
                                     .flops = 1e9,
                                     .suffix = i ? "_compiled" : NULL,
                                     .options = i ? "{\"compile_model\": true}"
                                                  : "{\"compile_model\": false}",
                                     .result = i ? "{\"latency_ms\": {\"median\": 5}, \"ranks\": "
                                                   "[{\"first_iteration_ms\": 105}]}"
                                                 : "{\"latency_ms\": {\"median\": 10}, \"ranks\": "
                                                   "[{\"first_iteration_ms\": 10}]}"});
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_near(claim_of(&result, "compile.cost", "")->effect, 0.1, 1e-9);
    /* one run each: values, no verdict, no break-even */
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_near(result.claims[0].effect, 1, 1e-9);
    assert_int_equal(claim_of(&result, "compile.break_even", "")->verdict, LAB_CLAIM_NOT_TESTED);
    given_end(&given);
}

/* Intervals of gain, cost and break-even hold in 95 % of studies. */
LAB_TEST(intervals_hold_as_often_as_they_say) {
    enum { TRIALS = 400, CLAIMS = 3 };
    static const char *const kinds[CLAIMS] = {"compile.gain", "compile.cost", "compile.break_even"};
    static const double truths[CLAIMS] = {0.25, 2.0, 10000};
    int held[CLAIMS] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "compile_study");
        given.random = drawn;
        given_pair(&given, quarter, 0, REPEATS, 0.01, 0.1);
        drawn = given.random;
        struct lab_analysis_result result = when_asked(&given, "compile", NULL);
        for (int i = 0; i < CLAIMS; i++) {
            const struct lab_claim *claim = claim_of(&result, kinds[i], "");
            held[i] += claim->low <= truths[i] && truths[i] <= claim->high;
        }
        given_end(&given);
    }
    for (int i = 0; i < CLAIMS; i++)
        if (!(lab_stats_binomial_test(held[i], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", kinds[i], held[i], TRIALS);
}

/* It was "sped up, paid back after 13 samples": a model that only copies has nothing to compile. */
LAB_TEST(a_model_without_arithmetic_is_not_tested) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, (struct planted){"vit0x0x0", 0, 1e-3, 0.05, 0}, 0, REPEATS, 0.001, 0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_int_equal(result.claim_count, 0);
    assert_says(result.answer, "Not tested: no model with arithmetic ran both");
    assert_says(result.answer, "gpulab run compile_study tests it");
    given.table.planned_count += 20; /* the study itself will */
    result = when_asked(&given, "compile", NULL);
    assert_says(result.answer, "has run both compiled and uncompiled yet.");
    assert_null(strstr(result.answer, "gpulab run"));
    given.table.planned_count -= 20;
    given_pair(&given, (struct planted){"vit16x8x768", 1e9, 1e-3, 0, 1.0}, 0, REPEATS, 0.002, 0.01);
    result = when_asked(&given, "compile", NULL);
    assert_int_equal(table(&result, 0, "models")->row_count, 1);
    assert_true(has_note(result.parts[0].notes, "vit0x0x0: not compared"));
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NO);
    assert_says(result.answer, "No difference larger than ");
    given_end(&given);
}

LAB_TEST(what_slows_never_breaks_even) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, -0.1, 2.0}, 0, REPEATS, 0.001,
               0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_near(result.claims[0].effect, -0.1, 0.002);
    assert_int_equal(claim_of(&result, "compile.break_even", "")->verdict, LAB_CLAIM_NOT_TESTED);
    assert_says(result.parts[0].notes[0], "No break-even: no gain was found");
    given_end(&given);
    given_begin(&given, "compile_study"); /* and of what takes no time to compile, why */
    given_pair(&given, (struct planted){"vit32x2x128", 1e9, 1e-3, 0.1, -2.0}, 0, REPEATS, 0.001,
               0.01);
    result = when_asked(&given, "compile", NULL);
    assert_says(result.parts[0].notes[0], "No compile time: set-up and first iteration took no");
    given_end(&given);
}

/* Six models on two nodes: pooled first, then each model; on the remote node, which computes a
 * twentieth slower, compiling saves as much, or `less`. */
static struct lab_analysis_result when_on_two_nodes(struct given_study *given, double less) {
    given_begin(given, "compile_study");
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < 6; i++) {
            double gain = (1 + 0.3 / (i + 1)) * (node ? 1 - less : 1) - 1;
            given_pair(given,
                       (struct planted){lab_arena_printf(&given->arena, "vit32x%dx512", 2 * i + 2),
                                        1e9 * (i + 1), 1e-3 * (i + 1) * (node ? 1.05 : 1), gain,
                                        0.5},
                       node, REPEATS, 0.001, 0.01);
        }
    return when_asked(given, "compile", NULL);
}

LAB_TEST(models_are_pooled_and_nodes_compared) {
    struct given_study given;
    struct lab_analysis_result result = when_on_two_nodes(&given, 0);
    assert_string_equal(result.claims[0].mean_of, "12 configurations");
    assert_int_equal(result.claims[0].scope_count, 24);
    assert_says(result.answer, "For throughput, compile all 6 models. ");
    assert_says(result.answer, " Models that gain: +5.");
    assert_says(result.answer,
                "in throughput on remote NUMA nodes (local = 1) between compiled and uncompiled");
    assert_int_equal(claim_of(&result, "compile.numa", "")->verdict, LAB_CLAIM_NO);
    assert_near(claim_of(&result, "compile.model", "vit32x2x512")->effect, 0.3, 0.01);
    const struct lab_chart *picture = chart(&result, "compile_benefit");
    assert_int_equal(picture->panels[0].x.name_count, 6);
    assert_int_equal(picture->panels[0].series_count, 2); /* NUMA nodes */
    assert_near(picture->panels[0].series[0].y[0], 30, 1);
    given_end(&given);
    result = when_on_two_nodes(&given, 0.03);
    for (int i = 0; i < given.table.run_count; i++) { /* one is alike, on one node alone */
        struct lab_study_run *run = &given.table.runs[i];
        run->used = run->ranks[0].numa_node == 0;
        run->rate = lab_str_equal(run->model, "vit32x2x512") ? 1e4 + i % 5 : run->rate;
    }
    struct lab_analysis_result single = when_asked(&given, "compile", NULL);
    assert_says(single.answer, "For throughput, compile all but vit32x2x512. ");
    assert_says(single.answer, "% for vit32x2x512.");
    for (int i = 0; i < given.table.run_count; i++) { /* now it may be anything */
        struct lab_study_run *run = &given.table.runs[i];
        run->rate = lab_str_equal(run->model, "vit32x2x512") ? 1e4 + 2e3 * (i % 5) : run->rate;
    }
    single = when_asked(&given, "compile", NULL);
    assert_says(single.answer, "For throughput, compile all but vit32x2x512. ");
    assert_says(single.answer, "Inconclusive for vit32x2x512.");
    assert_null(chart(&single, "compile_benefit")->panels[0].series[0].title);
    assert_near(claim_of(&result, "compile.numa", "")->effect, -0.03, 0.002);
    assert_says(result.answer,
                "Compiled: 3.0% lower throughput on remote NUMA nodes (local = 1) than uncompiled");
    given_end(&given);
}

/* `recommend` calls a gain below 1% none: a page said to compile such a model, and not to. */
LAB_TEST(a_gain_below_one_percent_is_named_and_not_advised) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, quarter, 0, REPEATS, 0.0002, 0.01);
    given_pair(&given, (struct planted){"vit32x4x256", 2e9, 2e-3, 0.1, 2.0}, 0, REPEATS, 0.0002,
               0.01);
    given_pair(&given, (struct planted){"vit16x12x1024", 9e9, 9e-3, 0.007, 2.0}, 0, REPEATS, 0.0002,
               0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_int_equal(claim_of(&result, "compile.model", "vit16x12x1024")->verdict, LAB_CLAIM_YES);
    assert_says(result.answer, "For throughput, compile all but vit16x12x1024. ");
    assert_says(result.answer, " Models that gain: +10.");
    assert_says(result.answer, "; below 1%: vit16x12x1024 (+0.7%).");
    result = when_asked(&given, "recommend", NULL);
    for (int i = 0; i < result.part_count; i++)
        if (lab_str_equal(result.parts[i].name, "vit16x12x1024"))
            assert_says(result.parts[i].cells[0].text, ", uncompiled");
    given_end(&given);
}

/* A simulated compile takes milliseconds: what it breaks even after is no headline. */
LAB_TEST(simulated_compile_times_are_to_be_measured) {
    struct given_study given;
    given_begin(&given, "compile_study");
    given_pair(&given, quarter, 0, REPEATS, 0.001, 0.01);
    given_pair(&given, (struct planted){"vit32x4x256", 2e9, 2e-3, 0.1, 2.0}, 0, REPEATS, 0.001,
               0.01);
    struct lab_analysis_result result = when_asked(&given, "compile", NULL);
    assert_says(result.answer, ", break-even after ");
    assert_null(result.further);
    given.table.simulated = true;
    result = when_asked(&given, "compile", NULL);
    assert_null(strstr(result.answer, "break-even"));
    assert_string_equal(result.further, "device=cuda");
    assert_says(result.tests, "Measure compile times");
    given_end(&given);
}

LAB_TEST(both_values_make_it_worth_a_report) {
    struct given_study given;
    const struct lab_analysis *analysis = lab_analysis_find("compile", NULL);
    given_begin(&given, "compile_study");
    assert_int_equal(analysis->interest(&given.table), 0);
    given_pair(&given, quarter, 0, 1, 0, 0);
    assert_true(analysis->interest(&given.table) > 0);
    given_end(&given);
}
