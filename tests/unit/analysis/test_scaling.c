/*
 * How throughput follows depth and width, on studies whose law was planted: what comes out must be
 * what went in, and intervals must hold as often as they say.
 */
#include "study_answers.h"

#include "stats/stats.h"

#define OVERHEAD_S  2e-3
#define FLOPS_PER_S 5e12
#define BYTES_PER_S 4e11
#define SAMPLES     10

/* Not a transformer's, but like it: its work and its bytes grow with both keys, differently. */
static double flops_of(double depth, double dim) {
    return 1e9 + SAMPLES * depth * (1200 * dim * dim + 4e4 * dim);
}

static double bytes_of(double depth, double dim) {
    return 1e7 + 2.4e5 * depth * dim;
}

static double parameters_of(double depth, double dim) {
    return depth * 12 * dim * dim;
}

static double planted_time(double depth, double dim) {
    return OVERHEAD_S + flops_of(depth, dim) / FLOPS_PER_S + bytes_of(depth, dim) / BYTES_PER_S;
}

static const double models[][2] = {{2, 512}, {4, 512}, {6, 512},  {8, 512}, {12, 512},
                                   {6, 256}, {6, 768}, {6, 1024}, {6, 1280}};
#define MODELS (sizeof models / sizeof *models)

static void given_model_on(struct given_study *given, int gpu, double depth, double dim,
                           double time_s, int repeat) {
    double parameters = parameters_of(depth, dim);
    given_add(given,
              (struct given_run){
                  .model = lab_arena_printf(&given->arena, "vit32x%.0fx%.0f", depth, dim),
                  .gpu = gpu,
                  .repeat = repeat,
                  .rate = SAMPLES / time_s,
                  .samples = SAMPLES,
                  .flops = flops_of(depth, dim),
                  .memory_bytes = bytes_of(depth, dim),
                  .parameters = parameters,
                  .options = lab_arena_printf(&given->arena,
                                              "{\"patch_size\": 32, \"depth\": %.0f, \"heads\": 8, "
                                              "\"dim\": %.0f, \"mlp_dim\": 0, \"batch_size\": 10}",
                                              depth, dim),
                  .result = lab_arena_printf(&given->arena, "{\"peak_memory_mb\": %.6f}",
                                             300 + 4 * parameters / 1048576)});
}

static void given_model(struct given_study *given, double depth, double dim, double time_s,
                        int repeat) {
    given_model_on(given, 0, depth, dim, time_s, repeat);
}

static int count_work(const char *workload, const struct lab_value *options,
                      struct lab_arena *arena, struct lab_study_work *ret_work,
                      struct lab_err *err) {
    (void)workload;
    (void)arena;
    double depth = (double)lab_value_get(options, "depth")->integer;
    double dim = (double)lab_value_get(options, "dim")->integer;
    if (dim > 60000)
        return lab_err_set(err, LAB_ERR_USER, "dim=%g: must be 1 to 60000", dim);
    *ret_work = (struct lab_study_work){.flops = flops_of(depth, dim),
                                        .memory_bytes = bytes_of(depth, dim),
                                        .samples = SAMPLES,
                                        .parameters = parameters_of(depth, dim)};
    return 0;
}

static void given_models(struct given_study *given, double noise) {
    given_begin(given, "scaling_study");
    given->table.work_of = count_work;
    for (size_t i = 0; i < MODELS; i++)
        given_model(given, models[i][0], models[i][1],
                    planted_time(models[i][0], models[i][1]) * exp(noise * given_normal(given)), 0);
}

/* --- what went in comes out --- */

LAB_TEST(without_noise_the_law_is_found_again) {
    struct given_study given;
    given_models(&given, 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 1);
    assert_int_equal((int)figure(&result, 0, "models")->value, (int)MODELS);
    assert_near(figure(&result, 0, "overhead_ms")->value, OVERHEAD_S, 1e-9);
    assert_near(figure(&result, 0, "rate_flops_per_s")->value / FLOPS_PER_S, 1, 1e-6);
    assert_near(figure(&result, 0, "bandwidth_gb_per_s")->value / BYTES_PER_S, 1, 1e-6);
    assert_near(figure(&result, 0, "r_squared")->value, 1, 1e-9);
    assert_near(figure(&result, 0, "leave_one_out_error")->value, 0, 1e-6);
    assert_near(figure(&result, 0, "memory_base_mib")->value, 300, 1e-3);
    assert_near(figure(&result, 0, "memory_bytes_per_parameter")->value, 4, 1e-6);
    assert_string_equal(figure(&result, 0, "best_law")->text,
                        "overhead + FLOPs/rate + bytes/bandwidth");
    given_end(&given);
}

/* A coefficient without its interval would seem surer than it is. */
LAB_TEST(the_sentence_says_how_well_the_overhead_is_known) {
    struct given_study given;
    given_models(&given, 0.01);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    const struct lab_doc_cell *overhead = figure(&result, 0, "overhead_ms");
    assert_true(overhead->low > 0);
    assert_says(result.answer,
                lab_arena_printf(&given.arena,
                                 "an iteration takes %.2f ms [%.2f ms, "
                                 "%.2f ms] and its work at ",
                                 1e3 * overhead->value, 1e3 * overhead->low, 1e3 * overhead->high));
    /* a rate without the bytes that come on top of it would be one that nothing reaches */
    assert_says(result.answer, ", then its bytes at ");
    given_end(&given);
}

LAB_TEST(devices_come_in_their_order_whichever_ran_first) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int gpu = 2; gpu >= 0; gpu--)
        for (size_t i = 0; i < MODELS; i++)
            given_model_on(&given, gpu, models[i][0], models[i][1],
                           planted_time(models[i][0], models[i][1]), 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 3);
    for (int gpu = 0; gpu < 3; gpu++)
        assert_says(result.parts[gpu].name, lab_arena_printf(&given.arena, ":%d", gpu));
    given_end(&given);
}

LAB_TEST(models_that_differ_in_one_key_are_a_series) {
    struct given_study given;
    given_models(&given, 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(table(&result, 0, "depth")->row_count, 5);
    assert_int_equal(table(&result, 0, "width")->row_count, 5);
    for (int i = 1; i < 5; i++)
        assert_true(cell(&result, 0, "width", i, "width")->value >
                    cell(&result, 0, "width", i - 1, "width")->value);
    assert_near(cell(&result, 0, "depth", 1, "time_ratio")->value,
                planted_time(4, 512) / planted_time(2, 512), 1e-9);
    given_end(&given);
}

/* Intervals at 95 % must hold in 95 % of studies, for each coefficient and for the next run. */
LAB_TEST(intervals_hold_as_often_as_they_say) {
    enum { TRIALS = 300, CLAIMS = 5 };
    static const char *const names[CLAIMS] = {"overhead", "rate", "bandwidth", "next", "memory"};
    static const char *const words[] = {"predict=vit32x10x640", NULL};
    int held[CLAIMS] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.random = drawn;
        given.table.work_of = count_work;
        for (size_t i = 0; i < MODELS; i++)
            given_model(
                &given, models[i][0], models[i][1],
                planted_time(models[i][0], models[i][1]) * (1 + 0.005 * given_normal(&given)), 0);
        double next = SAMPLES / (planted_time(10, 640) * (1 + 0.005 * given_normal(&given)));
        drawn = given.random;
        struct lab_analysis_result result = when_asked(&given, "scaling", words);
        held[0] += covers(figure(&result, 0, "overhead_ms"), OVERHEAD_S);
        held[1] += covers(figure(&result, 0, "rate_flops_per_s"), FLOPS_PER_S);
        held[2] += covers(figure(&result, 0, "bandwidth_gb_per_s"), BYTES_PER_S);
        held[3] += covers(cell(&result, 0, "predictions", 0, "rate_per_s"), next);
        held[4] += !isnan(cell(&result, 0, "predictions", 0, "memory_mib")->value);
        given_end(&given);
    }
    assert_int_equal(held[4], TRIALS);
    for (int i = 0; i < CLAIMS - 1; i++)
        if (!(lab_stats_binomial_test(held[i], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", names[i], held[i], TRIALS);
}

LAB_TEST(a_power_law_is_found_again) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (size_t i = 0; i < MODELS; i++)
        given_model(&given, models[i][0], models[i][1],
                    1e-9 * pow(flops_of(models[i][0], models[i][1]) / SAMPLES, 0.7), 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_near(figure(&result, 0, "exponent")->value, -0.7, 1e-6);
    assert_says(figure(&result, 0, "best_law")->text, "FLOPs^b");
    assert_true(has_note(result.parts[0].notes, "can't be predicted"));
    given_end(&given);
}

/* --- regimes --- */

LAB_TEST(regimes_are_told_with_their_evidence) {
    static const double depths[] = {1, 2, 4, 8, 16};
    /* stays, grows by half, doubles with the work, grows fourfold */
    static const double growth[] = {1, 1, 1.5, 2.0, 4.0};
    struct given_study given;
    given_begin(&given, "scaling_study");
    double time_s = 1e-3;
    for (int i = 0; i < 5; i++) {
        time_s *= growth[i];
        for (int repeat = 0; repeat < 5; repeat++) {
            given_model(&given, depths[i], 512, time_s * (1 + 0.002 * given_normal(&given)),
                        repeat);
            given.table.runs[given.table.run_count - 1].work.flops = 1e9 * depths[i];
        }
    }
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_string_equal(cell(&result, 0, "depth", 1, "regime")->text, "saturated");
    assert_string_equal(cell(&result, 0, "depth", 2, "regime")->text, "sub-linear");
    assert_string_equal(cell(&result, 0, "depth", 3, "regime")->text, "linear");
    assert_string_equal(cell(&result, 0, "depth", 4, "regime")->text, "super-linear");
    assert_near(cell(&result, 0, "depth", 4, "elasticity")->value, 2, 0.02);
    assert_says(result.answer, "By depth: saturated from 1 to 2, sub-linear from 2 to 4, linear "
                               "from 4 to 8, super-linear from 8 to 16.");
    given_end(&given);
}

LAB_TEST(what_the_interval_touches_is_left_open) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int repeat = 0; repeat < 3; repeat++) {
        given_model(&given, 2, 512, 1e-3 * (1 + 0.01 * given_normal(&given)), repeat);
        given_model(&given, 4, 512, 1.866e-3 * (1 + 0.01 * given_normal(&given)), repeat);
    }
    for (int i = 0; i < given.table.run_count; i++)
        given.table.runs[i].work.flops = i % 2 ? 2e9 : 1e9;
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    const struct lab_doc_cell *elasticity = cell(&result, 0, "depth", 1, "elasticity");
    assert_true(elasticity->low < 0.9 && elasticity->high > 0.9);
    assert_says(cell(&result, 0, "depth", 1, "regime")->text, "sub-linear or linear");
    given_end(&given);
}

/* --- models that weren't run --- */

LAB_TEST(a_model_is_predicted_by_name_or_by_keys) {
    static const char *const named[] = {"predict=[vit32x10x512,vit32x48x512]", NULL};
    static const char *const keyed[] = {"predict=none", "predict_depth=10", NULL};
    struct given_study given;
    given_models(&given, 0);
    struct lab_analysis_result by_name = when_asked(&given, "scaling", named);
    struct lab_analysis_result by_key = when_asked(&given, "scaling", keyed);
    double expected = SAMPLES / planted_time(10, 512);
    assert_near(cell(&by_name, 0, "predictions", 0, "rate_per_s")->value, expected,
                1e-6 * expected);
    assert_string_equal(cell(&by_name, 0, "predictions", 0, "remark")->text, "");
    assert_string_equal(cell(&by_name, 0, "predictions", 1, "remark")->text, "beyond what was run");
    assert_says(by_name.answer, "vit32x48x512 would reach");
    assert_int_equal(table(&by_key, 0, "predictions")->row_count, 1);
    assert_string_equal(cell(&by_key, 0, "predictions", 0, "model")->text, "vit32x10x512");
    given_end(&given);
}

LAB_TEST(by_itself_it_predicts_twice_the_deepest_and_the_widest) {
    struct given_study given;
    given_models(&given, 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_string_equal(cell(&result, 0, "predictions", 0, "model")->text, "vit32x24x512");
    assert_string_equal(cell(&result, 0, "predictions", 1, "model")->text, "vit32x6x2560");
    assert_near(cell(&result, 0, "predictions", 1, "memory_mib")->value,
                300 + 4 * parameters_of(6, 2560) / 1048576, 1e-3);
    given_end(&given);
}

LAB_TEST(what_cant_be_predicted_is_an_error) {
    static const char *const unnamed[] = {"predict=resnet50", NULL};
    static const char *const too_wide[] = {"predict=vit32x6x65000", NULL};
    struct given_study given;
    struct lab_analysis_result result;
    struct lab_err err = LAB_ERR_INIT;
    given_models(&given, 0);
    assert_int_equal(ask(&given, "scaling", unnamed, &result, &err), -1);
    assert_says(err.text, "predict=resnet50: must be a model by patch size, depth and width");
    err = (struct lab_err)LAB_ERR_INIT;
    assert_int_equal(ask(&given, "scaling", too_wide, &result, &err), -1);
    assert_says(err.text, "predicting vit32x6x65000: dim=65000");
    given_end(&given);
}

/* --- little to go by --- */

LAB_TEST(bytes_that_follow_the_work_get_no_term) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    for (int depth = 1; depth <= 6; depth++) {
        given_model(&given, depth, 512, 1e-3 + 1e-3 * depth, 0);
        given.table.runs[given.table.run_count - 1].work.flops = 1e9 * depth;
        given.table.runs[given.table.run_count - 1].work.memory_bytes = 1e6 * depth;
    }
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_true(isnan(figure(&result, 0, "bandwidth_gb_per_s")->value));
    assert_near(figure(&result, 0, "rate_flops_per_s")->value / 1e12, 1, 1e-6);
    assert_true(has_note(result.parts[0].notes, "bytes and FLOPs grow together"));
    given_end(&given);
}

LAB_TEST(two_models_make_no_law_but_a_step) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given_model(&given, 2, 512, 1e-3, 0);
    given_model(&given, 4, 512, 2e-3, 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_says(result.answer, "no law can be told: too few models");
    assert_near(cell(&result, 0, "depth", 1, "time_ratio")->value, 2, 1e-9);
    assert_true(isnan(figure(&result, 0, "rate_flops_per_s")->value));
    given_end(&given);
}

LAB_TEST(one_model_or_none_has_nothing_to_say) {
    struct given_study given;
    given_begin(&given, "bench");
    assert_says(when_asked(&given, "scaling", NULL).answer, "nothing to fit");
    given_model(&given, 2, 512, 1e-3, 0);
    /* copies without a model are no model */
    given_add(&given, (struct given_run){.model = "vit0x0x0", .rate = 1e5});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 0);
    assert_says(result.answer, "nothing to fit");
    assert_int_equal(lab_analysis_find("scaling", NULL)->interest(&given.table), 0);
    given_end(&given);
}

LAB_TEST(devices_are_fitted_apart) {
    struct given_study given;
    given_models(&given, 0.01);
    for (int i = 0; i < 3; i++)
        given_model_on(&given, 1, models[i][0], models[i][1], 1e-3 * (i + 1), 0);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 2);
    assert_string_equal(result.parts[0].name, "cuda:0 from node 0");
    assert_string_equal(result.parts[1].name, "cuda:1 from node 0");
    assert_int_equal((int)figure(&result, 0, "models")->value, MODELS);
    assert_int_equal((int)figure(&result, 1, "models")->value, 3);
    given_end(&given);
}

LAB_TEST(series_make_it_worth_a_report) {
    struct given_study given;
    given_models(&given, 0.01);
    assert_int_equal(lab_analysis_find("scaling", NULL)->interest(&given.table), 80);
    given_end(&given);
}

/* --- pictures --- */

LAB_TEST(pictures_show_points_laws_and_bands) {
    struct given_study given;
    given_models(&given, 0.01);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    const struct lab_chart *throughput = chart(&result, "scaling_throughput");
    assert_int_equal(throughput->panel_count, 3);
    for (int p = 0; p < 3; p++) {
        const struct lab_chart_panel *panel = &throughput->panels[p];
        bool band = false, measured = false;
        assert_true(panel->x.log && panel->y.log);
        for (int s = 0; s < panel->series_count; s++) {
            const struct lab_chart_series *series = &panel->series[s];
            band |= series->mark == LAB_CHART_BAND;
            measured |= series->mark == LAB_CHART_POINTS;
            for (size_t i = 0; i < series->count; i++) {
                assert_true(series->x[i] > 0);
                assert_true(series->y[i] >= panel->y.low && series->y[i] <= panel->y.high);
                if (series->mark == LAB_CHART_BAND)
                    assert_true(series->low[i] >= panel->y.low &&
                                series->low[i] <= series->high[i]);
            }
        }
        assert_true(band && measured);
    }
    assert_int_equal(chart(&result, "scaling_memory")->panel_count, 1);
    given_end(&given);
}
