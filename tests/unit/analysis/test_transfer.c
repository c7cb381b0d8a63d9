/* Copies by size, batch, pool and NUMA node, on studies whose paths were planted. */
#include "claim_fixture.h"
#include "study_answers.h"

#include "stats/stats.h"

#define LATENCY_S   20e-6
#define BYTES_PER_S 25e9
#define REMOTE      0.1 /* of bandwidth, from node 1 */
#define REPEATS     5

struct asked { /* of a run; 0 = the usual one */
    const char *model;
    int gpu, node, repeat, side, batch, pool;
    double rate, noise;
    bool bent; /* larger copies have a lower bandwidth */
};

static void given_copy(struct given_study *given, struct asked asked) {
    int side = asked.side ? asked.side : 224, batch = asked.batch ? asked.batch : 10,
        pool = asked.pool ? asked.pool : 512;
    double bytes = 4.0 * 3 * side * side * batch;
    double bandwidth = BYTES_PER_S * (asked.node ? 1 - REMOTE : 1) /
                       (asked.bent ? 1 + 0.1 * log(1e-6 * bytes) : 1);
    double gb_per_s =
        1e-9 * bytes / (LATENCY_S + bytes / bandwidth) * exp(asked.noise * given_normal(given));
    given_add(given,
              (struct given_run){
                  .model = asked.model ? asked.model : "vit32x4x256",
                  .gpu = asked.gpu,
                  .node = asked.node,
                  .repeat = asked.repeat,
                  .rate = asked.rate > 0 ? asked.rate : 1000,
                  .samples = batch,
                  .bytes = bytes,
                  .suffix = lab_arena_printf(&given->arena,
                                             "_batch_size%d_tensor_shape3x%dx%d_memory_size_mb%d",
                                             batch, side, side, pool),
                  .options = lab_arena_printf(&given->arena,
                                              "{\"tensor_shape\": [3, %d, %d], \"batch_size\": %d, "
                                              "\"memory_size_mb\": %d}",
                                              side, side, batch, pool),
                  .result = lab_arena_printf(&given->arena, "{\"h2d_gb_per_s\": %.12g}", gb_per_s),
              });
}

/* Larger images in smaller batches, as the study has them. */
static void given_images(struct given_study *given, struct asked asked, int nodes, int repeats) {
    static const int sides[] = {224, 384, 512, 768}, batches[] = {10, 8, 6, 4};
    for (asked.repeat = 0; asked.repeat < repeats; asked.repeat++)
        for (int i = 0; i < 4; i++)
            for (asked.node = 0; asked.node < nodes; asked.node++) {
                asked.side = sides[i];
                asked.batch = batches[i];
                given_copy(given, asked);
            }
}

/* --- copies --- */

LAB_TEST(a_path_has_its_bandwidth_and_latency) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, (struct asked){.noise = 0.002}, 2, REPEATS);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_string_equal(result.claims[0].kind, "transfer.node"); /* what the study asks for */
    assert_true(holds(claim_of(&result, "transfer.bandwidth", "NUMA node 0"), BYTES_PER_S));
    assert_true(holds(claim_of(&result, "transfer.latency", "NUMA node 0"), LATENCY_S));
    const struct lab_claim *remote = claim_of(&result, "transfer.node", "GPU 0, NUMA node 1");
    assert_int_equal(remote->verdict, LAB_CLAIM_YES);
    assert_near(remote->effect, -REMOTE, 0.01);
    assert_string_equal(result.parts[0].name,
                        "Copies to the device: GPU 0, NUMA node 1 vs GPU 0, NUMA node 0");
    assert_says(result.parts[0].answer,
                "GPU 0, NUMA node 0, host to device: fitted copy bandwidth 25.0 GB/s (95% CI");
    assert_says(result.answer,
                "% lower copy bandwidth than NUMA node 0, 21.7 instead of 24.0 GB/s ");
    assert_true(lab_str_starts(result.answer, "Copy from NUMA node 0. GPU 0, NUMA node 1"));
    assert_says(result.answer, ". Copies of images (GPU 0, NUMA node 0), 6.02 to 28.3 MB: 2");
    assert_string_equal(cell(&result, 0, "sizes", 0, "example")->text,
                        "vit32x4x256, batch 10, 224 px, 512 MiB pool");
    assert_near(chart(&result, "transfer_h2d")->panels[0].series[0].x[0], 6.021120, 1e-6);
    given_end(&given);
}

LAB_TEST(intervals_hold_as_often_as_they_say) {
    enum { TRIALS = 400 };
    int held[2] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "transfer_study");
        given.random = drawn;
        given_images(&given, (struct asked){.noise = 0.004}, 1, REPEATS);
        drawn = given.random;
        struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
        held[0] += holds(&result.claims[0], BYTES_PER_S);
        held[1] += holds(claim_of(&result, "transfer.latency", ""), LATENCY_S);
        given_end(&given);
    }
    for (int i = 0; i < 2; i++)
        if (!(lab_stats_binomial_test(held[i], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", i ? "latency" : "bandwidth", held[i], TRIALS);
}

/* No line, no bandwidth of its own: that of the largest copies was measured. */
LAB_TEST(a_bandwidth_that_depends_on_the_size_is_given_by_size) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, (struct asked){.noise = 0.001, .bent = true}, 1, REPEATS);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_NOT_TESTED);
    assert_says(result.answer, "GPU 0, NUMA node 0, host to device, 28.3 MB: copy bandwidth ");
    given_end(&given);
}

LAB_TEST(several_devices_are_pooled_first) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int gpu = 0; gpu < 3; gpu++)
        given_images(&given, (struct asked){.gpu = gpu, .noise = 0.002}, 2, REPEATS);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_string_equal(result.claims[0].subject, "NUMA nodes at distance 21, host to device");
    assert_true(holds(claim_of(&result, "transfer.bandwidth", "Local"), BYTES_PER_S));
    assert_near(claim_of(&result, "transfer.node", "NUMA nodes at distance 21")->effect, -REMOTE,
                0.01);
    assert_int_equal(table(&result, 0, "paths")->row_count, 2 + 6);
    given_end(&given);
}

/* --- batch and pool --- */

LAB_TEST(a_batch_that_helps_is_pooled_then_by_model) {
    static const int batches[] = {4, 8, 16, 32};
    static const double rates[] = {1000, 1200, 1400, 1350}, others[] = {500, 500, 500, 520};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2 * 4 * REPEATS; i++)
        given_copy(&given, (struct asked){.model = i % 2 ? "vit32x4x256" : "vit16x8x768",
                                          .batch = batches[i / 2 % 4],
                                          .repeat = i / 8,
                                          .rate = (i % 2 ? rates : others)[i / 2 % 4] *
                                                  (1 + 0.003 * given_normal(&given))});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_near(claim_of(&result, "transfer.batch", "batch 32")->effect, sqrt(1.35 * 1.04) - 1,
                0.01);
    assert_near(claim_of(&result, "transfer.batch_model", "vit32x4x256 with batch 16")->effect, 0.4,
                0.01);
    assert_int_equal(claim_of(&result, "transfer.batch_model", "vit16x8x768")->verdict,
                     LAB_CLAIM_NO);
    assert_says(result.parts[1].answer, "Batch 16, mean of 2 models: "); /* the advised one */
    assert_says(result.parts[1].name, ": batch 16 vs batch 4, mean of 2 models");
    assert_says(result.answer, " vit32x4x256 with batch 16: ");
    const struct lab_chart_series *line = &chart(&result, "transfer_batch")->panels[0].series[0];
    assert_true(line->count == 4 && line->x[0] == 4); /* the reference is a point of the line */
    assert_true(line->y[0] == 0 && line->low[0] == 0 && line->high[0] == 0);
    assert_says(result.answer, ". vit16x8x768: no difference larger than "); /* with 16, not 32 */
    assert_null(result.action);                                              /* of one pool */
    given_end(&given);
}

LAB_TEST(a_model_that_is_inconclusive_has_its_estimate) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2 * 2 * REPEATS; i++)
        given_copy(&given, (struct asked){.model = i % 2 ? "vit32x4x256" : "vit16x8x768",
                                          .batch = i / 2 % 2 ? 16 : 4,
                                          .repeat = i / 4,
                                          .rate = i % 2 ? 1000 * (i / 2 % 2 ? 1.4 : 1)
                                                        : 500 * (1 + 0.03 * given_normal(&given))});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    const struct lab_claim *open = claim_of(&result, "transfer.batch_model", "vit16x8x768");
    assert_int_equal(open->verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_says(result.answer, lab_arena_printf(&given.arena, ". vit16x8x768: %s, inconclusive",
                                                lab_claim_effect(open, &given.arena)));
    given_end(&given);
}

/* Models b to e change by 0, 1, 2 and 3 % with batch 8, and by 10 % more with batch 16, which
 * changes a less. */
LAB_TEST(many_models_are_counted_at_the_batch_that_is_named) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 5 * 3 * REPEATS; i++) {
        int model = i % 5, level = i / 5 % 3;
        double gain = level == 0 ? 0 : (model ? (model - 1) * .01 : .8) + (level == 2 ? .1 : 0);
        gain -= level == 2 && model == 0 ? .3 : 0;
        given_copy(&given,
                   (struct asked){.model = lab_arena_printf(&given.arena, "%c", 'a' + model),
                                  .batch = 4 << level,
                                  .repeat = i / 15,
                                  .rate = 1000 * (1 + gain) * (1 + 0.0005 * given_normal(&given))});
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_says(result.answer, "a with batch 8: ");
    assert_says(result.answer, ". Other models with batch 8: 3 change by +1.");
    assert_says(result.answer, "% to +3.0%, 1 by no more than 0.");
    given_end(&given);
}

/* Node 1 is slower and hides what a batch gains: sentence, table, chart and claim are all of the
 * local one. Of the other models that don't change, one is too noisy. */
LAB_TEST(batches_are_compared_where_programs_run) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 5 * 2 * 2 * REPEATS; i++) {
        int model = i % 5, large = i / 5 % 2, node = i / 10 % 2;
        double noise = model == 4 ? .05 : .0005;
        given_copy(
            &given,
            (struct asked){.model = lab_arena_printf(&given.arena, "%c", 'a' + model),
                           .batch = large ? 16 : 4,
                           .node = node,
                           .repeat = i / 20,
                           .rate = (node ? 700 : 1000) * (large && model == 0 && !node ? 1.5 : 1) *
                                   (1 + noise * given_normal(&given))});
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_near(claim_of(&result, "transfer.batch_model", "a with batch 16")->effect, .5, .01);
    assert_says(result.answer, ". Other models with batch 16: 3 by no more than 0.");
    assert_says(result.answer, "%, 1 inconclusive");
    const struct lab_chart *drawn = chart(&result, "transfer_batch");
    assert_string_equal(drawn->title, "Throughput by batch size on the local NUMA node, compared "
                                      "with batch 4");
    assert_near(drawn->panels[0].series[0].y[1], 50, 1);
    given_end(&given);
}

/* Pools of 256 and 2048 MiB ran with batch 10, the batch that is advised with others. */
LAB_TEST(a_pool_is_not_advised_with_a_batch_that_it_never_ran_with) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        for (int pool = 256; pool <= 2048; pool *= 2)
            given_copy(&given, (struct asked){.pool = pool,
                                              .repeat = repeat,
                                              .rate = 1000 * (1 + 0.001 * given_normal(&given))});
        for (int pool = 512; pool <= 1024; pool *= 2)
            given_copy(&given, (struct asked){.pool = pool,
                                              .batch = 16,
                                              .repeat = repeat,
                                              .rate = 1500 * (1 + 0.001 * given_normal(&given))});
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_says(result.action, "No gain above 0.");
    assert_says(result.action, "% from pools of more than 256 MiB (memory_size_mb) at batch 10, "
                               "224 px; with batch 16 only 512 and 1024 MiB were tested");
    assert_says(result.answer, "(5 runs each) at batch 10, 224 px");
    given_end(&given);
}

/* --- memory pressure --- */

static struct lab_analysis_result when_pressed(struct given_study *given, double small_loss,
                                               double large_loss) {
    for (int i = 0; i < 2 * 2 * 2 * REPEATS; i++) {
        bool far = i % 2, large = i / 2 % 2;
        double loss = far ? (large ? large_loss : small_loss) : 0;
        given_copy(given,
                   (struct asked){.model = i / 4 % 2 ? "vit32x4x256" : "vit16x8x768",
                                  .node = far,
                                  .pool = large ? 2048 : 256,
                                  .repeat = i / 8,
                                  .rate = 1000 * (1 - loss) * (1 + 0.005 * given_normal(given))});
    }
    return when_asked(given, "transfer", NULL);
}

LAB_TEST(pressure_is_one_pooled_difference_of_differences) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    struct lab_analysis_result result = when_pressed(&given, 0.05, 0.15);
    const struct lab_claim *pressure = claim_of(&result, "transfer.pressure", "a 2048 MiB pool");
    assert_int_equal(pressure->verdict, LAB_CLAIM_YES);
    assert_near(pressure->effect, 0.85 / 0.95 - 1, 0.02);
    assert_int_equal(pressure->scope_count, 8);
    assert_says(result.answer, "A 2048 MiB pool: 1");
    assert_says(
        result.answer,
        "% lower throughput on remote NUMA nodes (local = 1) than a 256 MiB pool (95% CI [");
    assert_int_equal(claim_of(&result, "transfer.pressure_model", "vit32x4x256")->verdict,
                     LAB_CLAIM_YES);
    assert_near(chart(&result, "transfer_pressure")->panels[0].series[0].y[1], -15, 2);
    assert_null(result.action);
    given_end(&given);
    given_begin(&given, "transfer_study");
    result = when_pressed(&given, 0.05, 0.05);
    assert_says(
        result.answer,
        "in throughput on remote NUMA nodes (local = 1) between a 2048 MiB pool and a 256 MiB ");
    const char *any = strstr(strstr(result.answer, "remote NUMA nodes"), "(any model: ");
    assert_true(!any || strtod(any + strlen("(any model: "), NULL) < 3); /* not the penalty, 5% */
    assert_says(
        result.action,
        "Use a pinned input pool of 256 MiB (memory_size_mb): no larger one gains more than 0.");
    given_end(&given);
}

/* With the largest of many cells as the headline, 8 of 8 studies had an effect. */
LAB_TEST(no_pressure_is_invented) {
    enum { TRIALS = 200 };
    int claimed = 0;
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "transfer_study");
        given.random = drawn;
        struct lab_analysis_result result = when_pressed(&given, 0.1, 0.1);
        drawn = given.random;
        claimed += claim_of(&result, "transfer.pressure", "")->verdict == LAB_CLAIM_YES;
        given_end(&given);
    }
    if (claimed > 20) /* of 200 at 5 % each: p = 0.001 */
        fail_msg("%d of %d studies claim an effect", claimed, TRIALS);
}

/* --- little to go by --- */

LAB_TEST(one_run_each_gives_values_and_no_verdict) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, (struct asked){.noise = 0.002}, 2, 1);
    for (int pool = 256; pool <= 1024; pool *= 2)
        given_copy(&given, (struct asked){.pool = pool, .rate = pool});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    for (int i = 0; i < result.claim_count; i++)
        if (result.claims[i].verdict != LAB_CLAIM_INCONCLUSIVE)
            fail_msg("%s of %s", result.claims[i].kind, result.claims[i].subject);
    assert_near(claim_of(&result, "transfer.bandwidth", "")->effect / BYTES_PER_S, 1, 0.02);
    assert_near(claim_of(&result, "transfer.pool", "")->effect, 3, 1e-9);
    given_end(&given);
}

LAB_TEST(what_varies_makes_it_worth_a_report) {
    struct given_study given;
    given_begin(&given, "quick_test");
    given_copy(&given, (struct asked){0});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_int_equal(result.part_count, 0);
    assert_int_equal(result.chart_count, 0);
    assert_says(result.answer, "Not tested: no points differ in image size");
    assert_int_equal(lab_analysis_find("transfer", NULL)->interest(&given.table), 0);
    given_images(&given, (struct asked){0}, 1, 1);
    assert_true(lab_analysis_find("transfer", NULL)->interest(&given.table) >= 40);
    given_end(&given);
}
