/*
 * The cost model of `scaling`, on studies whose parameters were planted: they come back, intervals
 * hold as often as they say, and nothing is said that these models don't determine.
 */
#include "claim_fixture.h"
#include "study_answers.h"

#include "stats/stats.h"

#define LAUNCH_S    3e-6
#define FLOPS_PER_S 5e13
#define BYTES_PER_S 7e11
#define SAMPLES     10

static const double models[][2] = {{2, 512}, {4, 512}, {6, 512},  {8, 512}, {12, 512},
                                   {6, 256}, {6, 768}, {6, 1024}, {6, 1280}};
#define MODELS (int)(sizeof models / sizeof *models)

struct planted {
    double noise;
    int repeats, models; /* 0 = 1 and all */
    bool no_bytes;       /* nothing is memory-bound */
    double misfit;       /* that the cost model doesn't know of, by model, as a share */
    double host_s;       /* of a launch, on the host */
    double transfer_s;   /* of a copy to the device; 0 = there are no stages */
    double back_s;       /* of a copy from the device */
    bool serial;         /* one stage after the other */
};

/* A product and a norm in each block, one more norm behind them. */
static struct lab_study_work work_of(double depth, double dim, bool no_bytes,
                                     struct lab_arena *arena) {
    struct lab_study_kernel *kernels = lab_arena_alloc(arena, 2, sizeof *kernels);
    kernels[0] = (struct lab_study_kernel){SAMPLES * 1200 * dim * dim, 4e3 * dim, (int)depth};
    kernels[1] = (struct lab_study_kernel){5e4 * dim, no_bytes ? 1 : 2e4 * dim, (int)depth + 1};
    return (struct lab_study_work){.flops = kernels[0].flops * kernels[0].count +
                                            kernels[1].flops * kernels[1].count,
                                   .h2d_bytes = 1e6,
                                   .samples = SAMPLES,
                                   .parameters = depth * 12 * dim * dim,
                                   .kernels = kernels,
                                   .kernel_count = 2};
}

static double planted_time(const struct lab_study_work *work) {
    double time_s = 0;
    for (int i = 0; i < work->kernel_count; i++)
        time_s += work->kernels[i].count * (LAUNCH_S + fmax(work->kernels[i].flops / FLOPS_PER_S,
                                                            work->kernels[i].bytes / BYTES_PER_S));
    return time_s;
}

static int64_t asked_heads;

static int count_work(const char *workload, const struct lab_value *options,
                      struct lab_arena *arena, struct lab_study_work *ret_work,
                      struct lab_err *err) {
    (void)workload;
    double depth = (double)lab_value_get(options, "depth")->integer;
    double dim = (double)lab_value_get(options, "dim")->integer;
    asked_heads = lab_value_get(options, "heads")->integer;
    if (dim > 60000)
        return lab_err_set(err, LAB_ERR_USER, "dim=%g: must be 1 to 60000", dim);
    *ret_work = work_of(depth, dim, false, arena);
    return 0;
}

/* Each iteration copies, computes, and copies back. */
static void give_stages(struct given_study *given, struct lab_study_run *run,
                        const struct planted *planted, double compute_s) {
    struct lab_iteration *items = lab_arena_alloc(&given->arena, 3, sizeof *items);
    for (int i = 0; i < 3; i++) {
        int64_t at = i * 1000000000;
        items[i].stages[LAB_STAGE_H2D] =
            (struct lab_span){at, at + (int64_t)(1e9 * planted->transfer_s)};
        items[i].stages[LAB_STAGE_COMPUTE] = (struct lab_span){at, at + (int64_t)(1e9 * compute_s)};
        items[i].stages[LAB_STAGE_D2H] =
            (struct lab_span){at, at + (int64_t)(1e9 * planted->back_s)};
    }
    run->ranks[0].iterations = items;
    run->ranks[0].iteration_count = 3;
}

static void given_model(struct given_study *given, int gpu, double depth, double dim, int repeat,
                        const struct planted *planted) {
    struct lab_study_work work = work_of(depth, dim, planted->no_bytes, &given->arena);
    double compute_s = planted_time(&work) * exp(planted->noise * given_normal(given)) *
                       (1 + planted->misfit * sin(7 * depth + dim));
    compute_s = fmax(compute_s, planted->host_s * (2 * depth + 1));
    double sum_s = compute_s + planted->transfer_s + planted->back_s,
           longest_s = fmax(fmax(compute_s, sum_s / 2), fmax(planted->transfer_s, planted->back_s)),
           time_s = planted->serial ? sum_s : longest_s;
    struct lab_study_run *run = given_add(
        given,
        (struct given_run){.model = lab_arena_printf(&given->arena, "vit32x%.0fx%.0f", depth, dim),
                           .gpu = gpu,
                           .repeat = repeat,
                           .rate = SAMPLES / time_s,
                           .samples = SAMPLES,
                           .options = lab_arena_printf(
                               &given->arena,
                               "{\"patch_size\": 32, \"depth\": %.0f, \"heads\": 8, \"dim\": %.0f, "
                               "\"mlp_dim\": 0, \"batch_size\": 10, \"overlap\": %s}",
                               depth, dim, planted->serial ? "false" : "true"),
                           .result = "{\"peak_memory_mb\": 300}"});
    run->work = work;
    run->work.d2h_bytes = planted->back_s > 0 ? 2e5 : 0;
    if (planted->transfer_s > 0)
        give_stages(given, run, planted, compute_s);
}

static void given_models(struct given_study *given, struct planted planted) {
    given_begin(given, "scaling_study");
    given->table.work_of = count_work;
    for (int r = 0; r < (planted.repeats ? planted.repeats : 1); r++)
        for (int i = 0; i < (planted.models ? planted.models : MODELS); i++)
            given_model(given, 0, models[i][0], models[i][1], r, &planted);
}

/* --- what went in comes out --- */

/* A kernel takes the larger of its compute and its memory time: as a sum of both, the rate comes
 * out twice as high as it is. */
LAB_TEST(the_planted_rates_come_back) {
    struct given_study given;
    given_models(&given, (struct planted){.repeats = 3});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_string_equal(result.claims[0].kind, "scaling.depth"); /* what the study asks for */
    assert_near(claim_of(&result, "scaling.compute_rate", "")->effect / FLOPS_PER_S, 1, 1e-4);
    assert_near(claim_of(&result, "scaling.launch", "")->effect / LAUNCH_S, 1, 1e-2);
    assert_near(claim_of(&result, "scaling.bandwidth", "")->effect / BYTES_PER_S, 1, 1e-2);
    assert_near(figure(&result, 0, "leave_one_out_error")->value, 0, 1e-3);
    assert_says(result.answer, "GPU 0, NUMA node 0: iteration time ≈ sum over kernels of 3.00 µs "
                               "[3.00, 3.00] + max(FLOPs / "
                               "50.0 TFLOP/s [50.0, 50.0], bytes / 700 GB/s [700, 700]) (95% CI, 3 "
                               "runs; R² 1.00; leave-one-out");
    assert_true(
        lab_str_starts(result.answer, "Doubling the depth at width 512 lowers throughput: by "));
    assert_says(result.answer, "% (2 to 4), ");
    assert_says(result.by_point, "the model of half the depth or width");
    assert_says(
        result.answer,
        "% (6 to 12) (95% CI: ±0.0 percentage points or less, 3 runs each). Doubling the width "
        "at depth 6 ");
    assert_says(result.answer,
                " Doubled depth: 1.9 to 2.0× the time of a sample for 2.0× the FLOPs; "
                "doubled width: 2.8 to 3.4× for 4.0×. Launches: 21% of the compute "
                "time of vit32x6x256, 1% of vit32x6x1280 (cost model). ");
    struct lab_study_work half = work_of(6, 512, false, &given.arena),
                          whole = work_of(12, 512, false, &given.arena);
    assert_near(claim_of(&result, "scaling.depth", "depth 12")->effect,
                planted_time(&half) / planted_time(&whole) - 1, 1e-4);
    given_end(&given);
}

/* What the page says to do rests on models of the same work: a wider one and a deeper one. Of pairs
 * that don't agree it says nothing. */
LAB_TEST(models_of_equal_work_show_what_to_grow) {
    static const double shapes[][2] = {{2, 512}, {12, 512}, {3, 1024}, {24, 512}, {6, 1024}};
    for (int disagree = 0; disagree < 2; disagree++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.table.work_of = count_work;
        for (int r = 0; r < 5; r++)
            for (int i = 0; i < 5; i++) {
                given_model(&given, 0, shapes[i][0], shapes[i][1], r,
                            &(struct planted){.noise = 0.002});
                struct lab_study_run *run = &given.table.runs[given.table.run_count - 1];
                run->rate *= disagree && i == 4 ? 0.7 : 1;
            }
        struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
        const struct lab_claim *claim = claim_of(&result, "scaling.shape", "vit32x3x1024");
        assert_string_equal(claim->reference, "vit32x12x512");
        assert_int_equal(claim->verdict, LAB_CLAIM_YES);
        assert_int_equal(result.others != NULL, !disagree);
        assert_int_equal(
            lab_str_starts(result.answer, "At equal FLOPs the wider of two models has +"),
            !disagree);
        if (!disagree)
            assert_says(result.others[0], "Grow width, not depth: +");
        given_end(&given);
    }
}

/* The mean over devices says which they are, and which have no rate. */
LAB_TEST(the_devices_of_a_mean_are_named) {
    struct given_study given;
    given_begin(&given, "scaling_study");
    given.table.work_of = count_work;
    for (int gpu = 0; gpu < 4; gpu++)
        for (int r = 0; r < 3; r++)
            for (int i = 0; i < MODELS; i++) /* no cost model fits GPU 2 */
                given_model(&given, gpu, models[i][0], models[i][1], r,
                            &(struct planted){.noise = 0.002, .misfit = gpu == 2 ? 0.5 : 0});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_says(result.answer, " GPUs 0, 1 and 3, NUMA node 0: compute rate ");
    assert_says(result.answer, " GPU 2 left out: its runs don't determine one.");
    given_end(&given);
}

/* The headline is the mean of what the table has; a slope says that it is one. */
LAB_TEST(headline_is_the_mean_of_the_doublings) {
    struct given_study given;
    double logs = 0;
    for (int repeats = 1; repeats <= 4; repeats += 3) {
        given_models(&given, (struct planted){.repeats = repeats, .noise = 0.4});
        struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
        logs = 0;
        for (int depth = 4; depth <= 12; depth += 4)
            logs += log1p(claim_of(&result, "scaling.depth",
                                   lab_arena_printf(&given.arena, "depth %d", depth))
                              ->effect);
        assert_near(result.claims[0].effect, expm1(logs / 3), 1e-9);
        assert_int_equal(isnan(result.claims[0].low), repeats == 1);
        assert_says(result.answer, "oubled depth, mean of 3 doublings from 2 to 12: ");
        assert_string_equal(claim_of(&result, "scaling.width", "doubled")->mean_of,
                            "2 doublings from 256 to 1024");
        given_end(&given);
    }
    given_begin(&given, "scaling_study");
    for (int depth = 4; depth <= 6; depth++)
        given_model(&given, 0, depth, 512, 0, &(struct planted){0});
    assert_says(when_asked(&given, "scaling", NULL).answer,
                "Doubled depth, fitted over 3 models from 4 to 6: ");
    given_end(&given);
}

LAB_TEST(intervals_hold_as_often_as_they_say) {
    enum { TRIALS = 200, CLAIMS = 4 };
    static const char *const kinds[CLAIMS] = {"scaling.compute_rate", "scaling.launch",
                                              "scaling.bandwidth", "scaling.prediction"};
    static const char *const words[] = {"predict=vit32x10x640", NULL};
    int held[CLAIMS] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "scaling_study");
        given.random = drawn;
        given.table.work_of = count_work;
        struct planted planted = {.noise = 0.003};
        for (int r = 0; r < 5; r++)
            for (int i = 0; i < MODELS; i++)
                given_model(&given, 0, models[i][0], models[i][1], r, &planted);
        drawn = given.random;
        struct lab_study_work work = work_of(10, 640, false, &given.arena);
        double truths[CLAIMS] = {FLOPS_PER_S, LAUNCH_S, BYTES_PER_S, planted_time(&work)};
        struct lab_analysis_result result = when_asked(&given, "scaling", words);
        for (int c = 0; c < CLAIMS; c++)
            held[c] += holds(claim_of(&result, kinds[c], ""), truths[c]);
        assert_says(result.action, "Example: vit32x10x640, ");
        assert_says(result.action, " samples/s on GPU 0, NUMA node 0 (95% CI [");
        assert_says(result.action, "] with the leave-one-out error of 0.");
        given_end(&given);
    }
    for (int c = 0; c < CLAIMS - 1; c++)
        if (!(lab_stats_binomial_test(held[c], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", kinds[c], held[c], TRIALS);
    assert_true(held[CLAIMS - 1] >= 0.93 * TRIALS); /* has the model's own error besides */
}

LAB_TEST(what_copies_bound_is_predicted_by_its_copies) {
    static const char *const words[] = {"predict=vit32x3x256", NULL};
    struct given_study given;
    given_models(&given, (struct planted){.repeats = 2, .transfer_s = 4e-4});
    struct lab_analysis_result result = when_asked(&given, "scaling", words);
    assert_near(claim_of(&result, "scaling.compute_rate", "")->effect / FLOPS_PER_S, 1, 1e-3);
    assert_near(claim_of(&result, "scaling.prediction", "vit32x3x256")->effect, 4e-4, 1e-6);
    given_end(&given);
}

/* Of a model of the reader's, in samples/s; the line is for the reader's numbers. Other studies'
 * pages have other questions. */
LAB_TEST(the_line_to_paste_predicts_the_readers_model) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 5});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_says(result.action, "Predict the throughput of your own model (its DEPTH and WIDTH). "
                               "Example: vit32x24x512, ");
    assert_says(result.action, " samples/s on ");
    assert_says(result.command, " predict=vit32xDEPTHxWIDTH");
    assert_true(result.own_question);
    assert_says(result.answer, " samples/s. vit32x6x1600 (outside the tested range: the "
                               "interval doesn't cover that): predicted ");
    given_end(&given);
}

/* 10 / 2.19 ms isn't 4540 samples/s: what runs lose to filling and draining stands beside it. */
LAB_TEST(a_predicted_rate_names_its_loss) {
    struct given_study given;
    given_models(&given, (struct planted){.repeats = 3});
    assert_null(strstr(when_asked(&given, "scaling", NULL).answer, "pipeline loss"));
    for (int i = 0; i < given.table.run_count; i++) {
        given.table.runs[i].time_s = SAMPLES / given.table.runs[i].rate;
        given.table.runs[i].rate *= 0.98;
    }
    assert_says(when_asked(&given, "scaling", NULL).answer, " samples/s after 2.0% pipeline loss.");
    given_end(&given);
}

/* The model that is printed is the one of the table: without its copies, a reader who computed a
 * small model by it was 6% off. */
LAB_TEST(the_whole_cost_model_is_printed) {
    static const struct planted planted[] = {
        {.repeats = 2, .transfer_s = 4e-4},
        {.repeats = 2, .transfer_s = 4e-4, .back_s = 1e-4},
        {.repeats = 2, .transfer_s = 4e-4, .back_s = 1e-4, .serial = true}};
    static const char *const printed[] = {
        "Iteration time ≈ the longer of compute and H2D (2.50 GB/s) (R² 1.00; leave-one-out ",
        "Iteration time ≈ the longest of compute, H2D (2.50 GB/s), D2H (2.00 GB/s) and (compute + "
        "H2D + "
        "D2H) / 2, for two buffers (R² 1.00; ",
        "Iteration time ≈ compute + H2D (2.50 GB/s) + D2H (2.00 GB/s) (R² 1.00; leave-one-out "};
    for (int i = 0; i < 3; i++) {
        struct given_study given;
        given_models(&given, planted[i]);
        struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
        assert_says(result.answer, ": compute time ≈ sum over kernels of 3.00 µs ");
        assert_says(result.answer, printed[i]);
        const struct lab_doc_table *models_table = table(&result, 0, "models");
        for (int r = 0; r < models_table->row_count; r++)
            assert_near(cell(&result, 0, "models", r, "predicted_ms")->value /
                            cell(&result, 0, "models", r, "iteration_ms")->value,
                        1, 1e-3);
        given_end(&given);
    }
}

/* --- what isn't known --- */

LAB_TEST(a_bandwidth_that_nothing_depends_on_isnt_tested) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 5, .no_bytes = true});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_true(holds(claim_of(&result, "scaling.compute_rate", ""), FLOPS_PER_S));
    assert_int_not_equal(claim_of(&result, "scaling.bandwidth", "")->verdict, LAB_CLAIM_YES);
    given_end(&given);
}

/* Deeper models alone have the same kernels, more of them: only their sum is known. */
LAB_TEST(models_that_dont_determine_a_rate_make_no_claim) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.003, .repeats = 5, .models = 5});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_not_equal(claim_of(&result, "scaling.compute_rate", "")->verdict, LAB_CLAIM_YES);
    assert_says(result.answer, "compute rate inconclusive: these models don't determine it");
    given_end(&given);
}

LAB_TEST(a_model_that_fails_its_own_check_isnt_shown) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 3, .misfit = 0.4});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_says(result.answer, "GPU 0, NUMA node 0: no cost model fits (leave-one-out error ");
    for (int i = 0; i < result.claim_count; i++)
        if (result.claims[i].unit)
            assert_int_equal(result.claims[i].verdict, LAB_CLAIM_NOT_TESTED);
    assert_null(table(&result, 0, "predictions"));
    given_end(&given);
}

/* Small models take as long as the host needs to launch them, whatever the device could do. */
LAB_TEST(launch_bound_models_dont_spoil_the_rate) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 5, .host_s = 25e-6});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_true(holds(claim_of(&result, "scaling.compute_rate", ""), FLOPS_PER_S));
    assert_true(has_note(result.parts[0].notes, "Not fitted on GPU 0, NUMA node 0: vit"));
    assert_says(result.answer, ", at least 25.0 µs for each kernel (host) (95% CI, ");
    given_end(&given);
}

/* Where the runs show that the model is wrong, intervals have its error in them, and nothing is
 * predicted beyond what was run. */
LAB_TEST(a_misfit_widens_the_intervals) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 5, .misfit = 0.03});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    const struct lab_claim *rate = claim_of(&result, "scaling.compute_rate", "");
    assert_true(holds(rate, FLOPS_PER_S));
    assert_true(rate->high / rate->low > 1.1);
    assert_int_equal(claim_of(&result, "scaling.prediction", "vit32x6x1600")->verdict,
                     LAB_CLAIM_NOT_TESTED);
    given_end(&given);
}

/* Terms that predictions use are named, though their values aren't known. */
LAB_TEST(a_term_that_is_inconclusive_is_in_the_formula) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 5, .misfit = 0.013});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(claim_of(&result, "scaling.bandwidth", "")->verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_says(result.answer, "], plus memory traffic, inconclusive (95% CI, 5 runs; ");
    given_end(&given);
}

LAB_TEST(one_run_each_gives_values_and_no_verdict) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    for (int i = 0; i < result.claim_count; i++)
        assert_int_not_equal(result.claims[i].verdict, LAB_CLAIM_YES);
    assert_near(claim_of(&result, "scaling.compute_rate", "")->effect / FLOPS_PER_S, 1, 0.05);
    assert_says(result.answer, "compute rate inconclusive (1 run each)");
    given_end(&given);
}

LAB_TEST(few_models_make_no_cost_model) {
    struct given_study given;
    given_models(&given, (struct planted){.repeats = 3, .models = 3});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_says(result.answer, "no cost model (3 models, at least 4 needed).");
    given_end(&given);
    given_models(&given, (struct planted){.models = 1});
    /* copies without a model are no model */
    given_add(&given, (struct given_run){.model = "vit0x0x0", .rate = 1e5});
    result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 0);
    assert_says(result.answer, "Not tested: ");
    assert_int_equal(lab_analysis_find("scaling", NULL)->interest(&given.table), 0);
    given_end(&given);
}

/* --- models that weren't run --- */

LAB_TEST(predictions_stay_near_what_was_run) {
    static const char *const named[] = {"predict=[vit32x10x512,vit32x6x2560]", NULL};
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 3});
    struct lab_analysis_result result = when_asked(&given, "scaling", named);
    struct lab_study_work work = work_of(10, 512, false, &given.arena);
    const struct lab_claim *time = claim_of(&result, "scaling.prediction", "vit32x10x512");
    assert_near(time->effect / planted_time(&work), 1, 0.01);
    assert_int_equal(time->verdict, LAB_CLAIM_YES);
    assert_near(cell(&result, 0, "predictions", 0, "rate_per_s")->value * time->effect, SAMPLES,
                0.1);
    assert_int_equal(claim_of(&result, "scaling.prediction", "vit32x6x2560")->verdict,
                     LAB_CLAIM_NOT_TESTED);
    assert_says(result.answer, "vit32x6x2560: not predicted, not within ");
    given_end(&given);
}

LAB_TEST(by_itself_it_predicts_a_deeper_and_a_wider_one) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.002, .repeats = 2});
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_string_equal(cell(&result, 0, "predictions", 0, "model")->text, "vit32x24x512");
    assert_says(result.action, " (extrapolated: no interval)");
    assert_says(
        result.answer,
        "vit32x24x512 (outside the tested range: the interval doesn't cover that): predicted ");
    assert_string_equal(cell(&result, 0, "predictions", 1, "model")->text, "vit32x6x1600");
    assert_int_equal(asked_heads, 8);
    /* of a larger model that is no part of the series the wider one has nothing */
    for (int r = 0; r < 2; r++) {
        given_model(&given, 0, 24, 1536, r, &(struct planted){0});
        struct lab_study_run *run = &given.table.runs[given.table.run_count - 1];
        struct lab_value *options = lab_value_copy(&given.arena, run->options);
        lab_value_set_int(&given.arena, options, "heads", 24);
        run->options = options;
    }
    result = when_asked(&given, "scaling", NULL);
    assert_string_equal(cell(&result, 0, "predictions", 1, "model")->text, "vit32x6x1600");
    assert_int_equal(asked_heads, 8);
    given_end(&given);
}

LAB_TEST(what_cant_be_predicted_is_an_error) {
    static const char *const unnamed[] = {"predict=resnet50", NULL};
    static const char *const too_wide[] = {"predict=vit32x6x65000", NULL};
    struct given_study given;
    struct lab_analysis_result result;
    struct lab_err err = LAB_ERR_INIT;
    given_models(&given, (struct planted){.repeats = 2});
    assert_int_equal(ask(&given, "scaling", unnamed, &result, &err), -1);
    assert_says(err.text, "predict=resnet50: must be a model by patch size, depth and width");
    err = (struct lab_err)LAB_ERR_INIT;
    assert_int_equal(ask(&given, "scaling", too_wide, &result, &err), -1);
    assert_says(err.text, "predicting vit32x6x65000: dim=65000");
    given_end(&given);
}

/* --- the whole --- */

LAB_TEST(devices_are_fitted_apart_and_in_order) {
    struct given_study given;
    struct planted planted = {.noise = 0.002};
    given_begin(&given, "scaling_study");
    for (int gpu = 2; gpu >= 0; gpu--)
        for (int i = 0; i < MODELS - gpu; i++)
            given_model(&given, gpu, models[i][0], models[i][1], 0, &planted);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    assert_int_equal(result.part_count, 3);
    for (int gpu = 0; gpu < 3; gpu++) {
        assert_says(result.parts[gpu].name, lab_arena_printf(&given.arena, "cuda:%d, NUMA", gpu));
        assert_int_equal((int)figure(&result, gpu, "models")->value, MODELS - gpu);
    }
    given_end(&given);
}

LAB_TEST(charts_show_what_was_measured_and_the_model) {
    struct given_study given;
    given_models(&given, (struct planted){.noise = 0.01, .repeats = 2});
    assert_int_equal(lab_analysis_find("scaling", NULL)->interest(&given.table), 80);
    struct lab_analysis_result result = when_asked(&given, "scaling", NULL);
    const struct lab_chart *throughput = chart(&result, "scaling_throughput");
    assert_int_equal(throughput->panel_count, 3);
    for (int p = 0; p < 3; p++) {
        const struct lab_chart_panel *panel = &throughput->panels[p];
        assert_int_equal((int)panel->series[0].count, p == 2 ? MODELS : 5);
        assert_string_equal(panel->series[0].title, "measured");
        if (p == 2) /* both series by work: no line has their order */
            break;
        assert_string_equal(panel->series[1].title, "cost model");
        assert_int_equal(panel->series[2].mark, LAB_CHART_BAND);
        assert_int_equal((int)panel->series[1].count, 5);
        /* models that weren't run continue the curve */
        assert_string_equal(panel->series[3].title, "cost model, outside the tested range");
        assert_int_equal((int)panel->series[3].count, 2);
        assert_true(panel->series[2].low[0] < panel->series[1].y[0]);
    }
    assert_int_equal(chart(&result, "scaling_memory")->panel_count, 1);
    given_end(&given);
}
