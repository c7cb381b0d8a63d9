/* What to choose for a model: each choice against its reference, over all else. */
#include "claim_fixture.h"
#include "study_answers.h"

#include <stdlib.h>

extern const struct lab_analysis lab_analysis_recommend;

#define OPTIONS                                                                                    \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": false, \"memory_size_mb\": 512}"
#define COMPILED                                                                                   \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": true, \"memory_size_mb\": 512}"
#define LARGE_IMAGES                                                                               \
    "{\"patch_size\": 32, \"depth\": 2, \"heads\": 4, \"dim\": 128, \"mlp_dim\": 0, "              \
    "\"batch_size\": 10, \"compile_model\": false, \"memory_size_mb\": 1024}"

/* `count` repeats around a rate; `spread` as a share. */
static void repeat(struct given_study *given, struct given_run row, int count, double spread) {
    double rate = row.rate;
    for (int i = 0; i < count; i++) {
        row.repeat = i;
        row.rate = rate * (1 + spread * given_normal(given));
        row.options = row.options ? row.options : OPTIONS;
        row.test = "{\"num_samples\": 500}";
        given_add(given, row);
    }
}

/* GPUs on NUMA node 0, bound to it and to node 1, which is slower by `penalty`. */
static void given_grid(struct given_study *given, const char *model, int runs, double penalty,
                       double spread) {
    for (int gpu = 0; gpu < 4; gpu++)
        for (int node = 0; node < 2; node++)
            repeat(given,
                   (struct given_run){.model = model,
                                      .gpu = gpu,
                                      .node = node,
                                      .rate = node ? 1000 * (1 - penalty) : 1000},
                   runs, spread);
}

LAB_TEST(the_local_node_is_used_where_remote_ones_are_slower) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given_grid(&given, "m", 5, 0.125, .005);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_claim *node = &result.claims[0];
    assert_string_equal(node->kind, "recommend.node");
    assert_int_equal(node->verdict, LAB_CLAIM_YES);
    assert_true(node->low < -.125 && -.125 < node->high);
    assert_says(result.answer, "Remote NUMA nodes, mean of 4 configurations: 12.");
    assert_says(result.answer, "% lower throughput than the local node (95% CI [");
    assert_int_equal((int)cell(&result, 0, "factors", 0, "pairs")->value, 4);
    assert_string_equal(figure(&result, 0, "numa_nodes")->text, "0");
    assert_says(figure(&result, 0, "best")->text, "GPU 0 (or GPUs 1–3, within ±"); /* no winner */
    given_end(&given);
}

/* A page has one bound for the devices, whichever analysis gives it. */
LAB_TEST(devices_differ_as_much_as_peers_say) {
    int found = 0;
    for (int study = 0; study < 20; study++) {
        struct given_study given;
        given_begin(&given, "quick_test");
        given.random = (uint64_t)study * 100000;
        for (int m = 0; m < 3; m++)
            given_grid(&given, m == 0 ? "a" : m == 1 ? "b" : "c", 4, 0, .002);
        struct lab_analysis_result peers = when_asked(&given, "peers", NULL),
                                   result = when_asked(&given, "recommend", NULL);
        const char *own = strstr(result.answer, "between devices"),
                   *theirs = strstr(peers.answer, "(any model: ");
        own = own ? strstr(own, "(any model: ") : NULL;
        if (own && theirs)
            assert_memory_equal(own, theirs, strcspn(own, ")"));
        found += own && theirs;
        given_end(&given);
    }
    assert_true(found > 0);
}

/* Devices 1, 2 and 4 led in single models by chance, and one of them was called the best of all. */
LAB_TEST(no_device_is_best_where_none_differs) {
    int studies = 0;
    for (int study = 0; study < 100; study++) {
        struct given_study given;
        bool any = false;
        given_begin(&given, "quick_test");
        given.random = (uint64_t)study * 100000;
        for (int m = 0; m < 3; m++)
            given_grid(&given, m == 0 ? "a" : m == 1 ? "b" : "c", 3 + study % 3, 0, .01);
        struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
        for (int i = 0; i < result.claim_count; i++)
            any |= result.claims[i].verdict == LAB_CLAIM_YES;
        studies += any;
        for (int p = 0; p < 3; p++)
            for (int r = 0; r < table(&result, p, "factors")->row_count; r++)
                any |= lab_str_equal(cell(&result, p, "factors", r, "change_verdict")->text, "yes");
        any |= strstr(result.answer, "than its peers") != NULL;
        for (int i = 0; i < result.charts[0].panels[0].series_count; i++)
            assert_true(any ||
                        !lab_str_equal(result.charts[0].panels[0].series[i].title, "recommended"));
        if (!any)
            assert_true(strstr(
                result.charts[0].caption,
                "Default (local NUMA node, lowest device): no gain of 1% or more was found."));
        for (int p = 0; p < 3 && !any; p++) { /* the chart marks what the table accepts */
            bool others = strstr(figure(&result, p, "best")->text, "GPU 0 (or ");
            const struct lab_chart_panel *panel = &result.charts[0].panels[p];
            for (int i = 0; i < panel->series_count; i++)
                if (lab_str_equal(panel->series[i].title, "default"))
                    assert_int_equal(panel->series[i].count > 1, others);
        }
        if (!any) /* then the default is used */
            for (int p = 0; p < 3; p++)
                assert_string_equal(figure(&result, p, "gpu_ids")->text, "0");
        given_end(&given);
    }
    assert_in_range(studies, 0, 10); /* the 99 % point at 5 % */
}

LAB_TEST(a_slow_device_is_named_over_all_models) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int m = 0; m < 3; m++)
        for (int gpu = 0; gpu < 5; gpu++)
            repeat(&given,
                   (struct given_run){.model = m == 0   ? "a"
                                               : m == 1 ? "b"
                                                        : "c",
                                      .gpu = gpu,
                                      .rate = gpu == 0 ? 940 : 1000},
                   5, .004);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_says(result.answer, "GPU 0: ");
    assert_says(result.answer, "% lower throughput than its peers, mean of 3 models (95% CI [");
    for (int p = 0; p < 3; p++) {
        assert_string_equal(cell(&result, p, "factors", 0, "level")->text, "GPU 0");
        assert_string_equal(cell(&result, p, "factors", 0, "change_verdict")->text, "yes");
        assert_true(covers(cell(&result, p, "factors", 0, "change"), -.06));
    }
    for (int p = 0; p < 3; p++)
        assert_true(!lab_str_equal(figure(&result, p, "gpu_ids")->text, "0"));
    given_end(&given);
}

LAB_TEST(each_choice_is_measured_over_the_others) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        for (int compiled = 0; compiled < 2; compiled++)
            repeat(&given,
                   (struct given_run){.model = "m",
                                      .node = node,
                                      .flops = 1e9,
                                      .rate = 1000 * (node ? .9 : 1) * (compiled ? 1.3 : 1),
                                      .suffix = compiled ? "_compiled" : NULL,
                                      .options = compiled ? COMPILED : OPTIONS},
                   5, .002);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_claim *compiled = claim_of(&result, "recommend.compile", "Compiled");
    assert_true(fabs(compiled->effect - .3) < .01 && compiled->verdict == LAB_CLAIM_YES);
    assert_true(fabs(claim_of(&result, "recommend.node", "Remote")->effect + .1) < .01);
    assert_string_equal(figure(&result, 0, "best")->text, "GPU 0, NUMA node 0, compiled");
    assert_says(result.answer, "Compiled, mean of 2 configurations on all NUMA nodes: 30.");
    given_end(&given);
}

/* The same models as `analyze compile`: one that only copies counted there as compiled at +0%. */
/* Batches 2 to 16 gain 8, 12, 12 and 12.05%: the first of those that aren't beaten is chosen. */
LAB_TEST(the_smallest_batch_that_is_not_beaten_is_chosen) {
    static const double gains[] = {0, .08, .12, .12, .1205};
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 5; i++)
        repeat(&given,
               (struct given_run){
                   .model = "m",
                   .rate = 1000 * (1 + gains[i]),
                   .suffix = lab_arena_printf(&given.arena, "_batch%d", 1 << i),
                   .options = lab_arena_printf(&given.arena, "{\"batch_size\": %d}", 1 << i)},
               5, .003);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_says(result.answer, "Batch 4: ");
    assert_string_equal(result.claims[0].subject, "Batch 4");
    assert_contains(figure(&result, 0, "best")->text, "batch 4");
    given_end(&given);
}

/* Over all models batch 8 is advised. Model a gains 0.9 % more with 16, which isn't worth it; b 5 %
 * more with each of two pools; c is 4 % slower with 8 than with 4; d doesn't change. Nor is 16 marked
 * for a. */
LAB_TEST(exceptions_are_compared_with_the_advised_batch) {
    static const double gains[][3] = {{0, .5, .5135}, {0, .03, .08}, {0, -.04, -.25}, {0, 0, 0}};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 4 * 3 * 2; i++) {
        int level = i % 3, model = i / 3 % 4, pool = i / 12;
        if (pool == 0 || model == 1)
            repeat(&given,
                   (struct given_run){
                       .model = lab_arena_printf(&given.arena, "%c", 'a' + model),
                       .rate = 1000 * (1 + gains[model][level]),
                       .suffix = lab_arena_printf(&given.arena, "_%d_%d", level, pool),
                       .options = lab_arena_printf(&given.arena,
                                                   "{\"batch_size\": %d, \"memory_size_mb\": %d}",
                                                   4 << level, 512 << pool)},
                   5, .001);
    }
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_string_equal(result.claims[0].subject, "Batch 8");
    assert_int_equal(result.exception_count, 2);
    const struct lab_claim *b = &result.exceptions[0], *c = &result.exceptions[1];
    assert_string_equal(b->subject, "Batch 16, b");
    assert_string_equal(b->reference, "batch 8");
    assert_string_equal(b->mean_of, "2 configurations");
    assert_true(fabs(b->effect - (1.08 / 1.03 - 1)) < .003);
    assert_string_equal(c->subject, "Batch 4, c");
    assert_true(fabs(c->effect - (1 / .96 - 1)) < .003);
    assert_contains(figure(&result, 0, "best")->text, "batch 8");
    given_end(&given);
}

/* More models than fit: the chart says so, and has the first and the last. */
LAB_TEST(a_chart_of_some_models_says_so) {
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int m = 0; m < 14; m++)
        for (int compiled = 0; compiled < 2; compiled++)
            repeat(&given,
                   (struct given_run){.model = lab_arena_printf(&given.arena, "model%02d", m),
                                      .rate = compiled && m ? 1100 : 1000,
                                      .flops = 1e9 * (m + 1),
                                      .suffix = compiled ? "_compiled" : "",
                                      .options = compiled ? "{\"compile_model\": true}"
                                                          : "{\"compile_model\": false}"},
                   3, .001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_chart *chart = &result.charts[0];
    assert_string_equal(chart->title, "Throughput of every placement, 12 of 14 models shown");
    assert_contains(result.answer, "Compiled: 0 to +10."); /* by model, before their mean */
    assert_int_equal(chart->panel_count, 12);
    assert_string_equal(chart->panels[0].title, "model00");
    assert_string_equal(chart->panels[11].title, "model13");
    assert_says(chart->caption, "Recommended: gains 1% or more over another placement. Default "
                                "(uncompiled): no gain of 1% or more was found. All placements: ");
    assert_string_equal(result.parts[0].about, "2 placements, 6 runs per model");
    given_end(&given);
}

/* What no model forbids is one batch for all of them; the chart marks it where it gains. */
LAB_TEST(a_model_that_gains_nothing_gets_the_batch_of_the_others) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 4; i++) {
        bool grows = i / 2 == 0, large = i % 2 != 0;
        repeat(
            &given,
            (struct given_run){.model = grows ? "grows" : "stays",
                               .rate = grows && large ? 1500 : 1000,
                               .suffix = large ? "_batch16" : "_batch4",
                               .options = large ? "{\"batch_size\": 16}" : "{\"batch_size\": 4}"},
            5, .002);
    }
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_chart *chart = &result.charts[0];
    assert_int_equal(result.part_count, 2);
    for (int p = 0; p < 2; p++) {
        assert_true(figure(&result, p, "batch_size")->value == 16);
        const struct lab_chart_panel *panel = &chart->panels[p];
        assert_int_equal(panel->x.name_count, 2);
        assert_string_equal(panel->x.names[0], "batch 4"); /* the device is in the caption */
        assert_string_equal(panel->x.names[1], "batch 16");
        bool grows = lab_str_equal(panel->title, "grows");
        const char *mark = grows ? "recommended" : "default", *not = grows ? "default" : "recom";
        for (int s = 0; s < panel->series_count; s++) {
            assert_false(lab_str_starts(panel->series[s].title, not ));
            if (lab_str_equal(panel->series[s].title, mark))
                assert_true(panel->series[s].count == 1 && panel->series[s].x[0] == grows);
        }
    }
    assert_contains(chart->caption, "Recommended: gains 1% or more over another placement. Default "
                                    "(smallest batch): no gain of 1% or more was found. ");
    assert_contains(chart->caption, " All placements: GPU 0, NUMA node 0.");
    given_end(&given);
}

/* Model "barely" loses 0.7% with the batch that is best over all, for certain: it keeps its own, and
 * says what the other one changes. Of its devices, which differ by as little, the one that is better
 * over all is named, not the first. */
LAB_TEST(what_is_best_over_all_is_used_unless_a_model_loses_by_it) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 8; i++) {
        bool large = i % 2, second = i / 2 % 2, barely = i / 4;
        double batch = barely ? .993 : 1.1, device = barely ? 1.007 : 1.3;
        repeat(
            &given,
            (struct given_run){.model = barely ? "barely" : "gains",
                               .gpu = second,
                               .rate = 1000 * (large ? batch : 1) * (second ? device : 1),
                               .suffix = large ? "_batch64" : "_batch16",
                               .options = large ? "{\"batch_size\": 64}" : "{\"batch_size\": 16}"},
            8, .0003);
    }
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_string_equal(figure(&result, 0, "best")->text, "GPU 1, NUMA node 0, batch 16 "
                                                          "(batch 64: -0.7% [-0.7, -0.7])");
    assert_string_equal(figure(&result, 1, "best")->text, "GPU 1, NUMA node 0, batch 64");
    assert_string_equal(result.charts[0].panels[0].title, "barely");
    given_end(&given);
}

/* Of 100 batches that gain, each with each other are 4950 comparisons; of thousands the report never
 * came to an end. */
LAB_TEST(of_many_batches_those_that_gain_most_are_compared) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int i = 0; i <= 100; i++)
        repeat(&given,
               (struct given_run){
                   .model = "m",
                   .rate = i == 0 ? 1000 : 1100 + fmin(i, 90),
                   .suffix = lab_arena_printf(&given.arena, "_batch%d", i + 1),
                   .options = lab_arena_printf(&given.arena, "{\"batch_size\": %d}", i + 1)},
               3, .00001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_string_equal(figure(&result, 0, "best")->text, "GPU 0, NUMA node 0, batch 80");
    assert_says(result.notes[0], "Of 100 batch sizes or settings that gain, the 64 that gain most");
    given_end(&given);
}

/* GPU 3 is too noisy for a verdict: GPUs 1 and 2 are as good as GPU 0 all the same. */
LAB_TEST(one_noisy_device_does_not_hide_those_that_are_alike) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int gpu = 0; gpu < 4; gpu++)
        repeat(&given, (struct given_run){.model = "m", .gpu = gpu, .rate = 1000}, 8,
               gpu == 3 ? .03 : .001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_says(figure(&result, 0, "best")->text, "GPU 0 (or GPUs 1 and 2, within ±");
    assert_contains(figure(&result, 0, "best")->text, "%; GPU 3: inconclusive), NUMA node 0");
    const struct lab_chart_panel *panel = &result.charts[0].panels[0];
    assert_int_equal(panel->series_count, 2);
    assert_string_equal(panel->series[0].title, "default");
    assert_int_equal(panel->series[0].count, 3);
    assert_string_equal(panel->series[1].title, "inconclusive");
    assert_true(panel->series[1].count == 1 && panel->series[1].x[0] == 3);
    assert_contains(result.charts[0].caption, "; inconclusive: devices that may be as good.");
    given_end(&given);
}

/* GPU 1 has the mean of its peers, whose values are wide apart at one batch: the page has the two
 * placements as inconclusive, so the table says so. GPU 3 is on another host bridge, at a distance
 * of its own, and level all the same. */
LAB_TEST(a_device_is_as_good_by_the_claim_about_it) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        for (int batch = 4; batch <= 32; batch *= 2)
            repeat(&given,
                   (struct given_run){
                       .model = "m",
                       .gpu = gpu,
                       .home = gpu == 3,
                       .rate = 1000,
                       .suffix = lab_arena_printf(&given.arena, "_%d", batch),
                       .options = lab_arena_printf(&given.arena, "{\"batch_size\": %d}", batch)},
                   5, gpu == 1 && batch == 4 ? .03 : .0005);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_claim *one = claim_of(&result, "recommend.placement", "m, GPU 1");
    assert_int_equal(one->verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_says(figure(&result, 0, "best")->text, "GPU 0 (or GPUs 2 and 3, within ±");
    assert_contains(figure(&result, 0, "best")->text, "%; GPU 1: inconclusive)");
    given_end(&given);
}

/* 64 placements of a model left room for every third name: those on remote nodes have a map. */
LAB_TEST(of_many_placements_the_nearest_are_drawn) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int i = 0; i < 16 * 4; i++)
        repeat(&given,
               (struct given_run){.model = "m",
                                  .gpu = i / 4,
                                  .node = i % 4,
                                  .home = i / 4 % 4,
                                  .rate = i % 4 == i / 4 % 4 ? 1000 : 900},
               2, .001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(table(&result, 0, "placements")->row_count, 64);
    assert_int_equal(result.charts[0].panels[0].x.name_count, 16);
    assert_string_equal(result.charts[0].title,
                        "Throughput of every placement on the nearest NUMA node");
    given_end(&given);
}

/* Node 1 is slower and hides what a batch gains: the claim is over both nodes, sentences have the
 * local one, and the range of both models. */
LAB_TEST(a_batch_is_advised_by_what_it_gains_where_programs_run) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2 * 2 * 2; i++) {
        int large = i % 2, node = i / 2 % 2, model = i / 4;
        repeat(
            &given,
            (struct given_run){.model = model ? "b" : "a",
                               .node = node,
                               .rate = node ? 700 : 1000 * (1 + (large && !model ? .5 : 0)),
                               .suffix = large ? "_large" : "_small",
                               .options = large ? "{\"batch_size\": 16}" : "{\"batch_size\": 4}"},
            5, .001);
    }
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const struct lab_claim *batch = claim_of(
        &result, "recommend.batch", "Batch 16, mean of 4 configurations on all NUMA nodes");
    assert_near(batch->effect, pow(1.5, .25) - 1, .01);
    assert_int_equal(result.advised_count, 1);
    assert_string_equal(result.advised[0].claim.mean_of, "2 models on the local NUMA node");
    assert_near(result.advised[0].claim.effect, sqrt(1.5) - 1, .01);
    assert_true(lab_str_starts(result.advised[0].range, "0 to +"));
    assert_int_equal(result.advised[0].model_count, 2);
    assert_string_equal(result.advised[0].models[0].subject, "a");
    assert_near(result.advised[0].models[0].effect, .5, .01);
    assert_int_equal(result.advised[0].models[1].verdict, LAB_CLAIM_NO);
    assert_contains(result.answer, "Batch 16: 0 to +");
    assert_contains(result.answer,
                    "% throughput compared with batch 4, by model (0: none certain); "
                    "mean of 2 models on the local NUMA node: +22.");
    given_end(&given);
}

/* What a mean leaves out stands with it: two numbers of one batch have different conditions. */
LAB_TEST(devices_that_are_avoided_are_named) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 4 * 2; i++)
        repeat(
            &given,
            (struct given_run){.model = "a",
                               .gpu = i / 2,
                               .rate = (i / 2 == 3 ? 700 : 1000) * (i % 2 ? 1.1 : 1),
                               .suffix = i % 2 ? "_large" : "_small",
                               .options = i % 2 ? "{\"batch_size\": 16}" : "{\"batch_size\": 4}"},
            5, .001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(result.advised_count, 1);
    assert_string_equal(result.advised[0].claim.mean_of, "3 configurations without GPU 3");
    given_end(&given);
}

/* GPU 1 is faster for model a, and as good for b. */
LAB_TEST(of_devices_as_good_the_better_over_all_is_named_first) {
    struct given_study given;
    given_begin(&given, "quick_test");
    for (int i = 0; i < 4; i++)
        repeat(&given,
               (struct given_run){
                   .model = i / 2 ? "b" : "a", .gpu = i % 2, .rate = i == 1 ? 1200 : 1000},
               5, .002);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_says(figure(&result, 0, "best")->text, "GPU 1");
    assert_says(figure(&result, 1, "best")->text, "GPU 1 (or GPU 0, within ±");
    assert_string_equal(figure(&result, 1, "gpu_ids")->text, "1");
    for (int row = 0; row < 2; row++) { /* a mark needs a gain, and neither is the default alone */
        assert_string_equal(cell(&result, 0, "placements", row, "use")->text,
                            row ? "recommended" : "others");
        assert_string_equal(cell(&result, 1, "placements", row, "use")->text, "default");
    }
    given_end(&given);
}

LAB_TEST(a_model_without_arithmetic_is_not_compiled) {
    struct given_study given;
    given_begin(&given, "compile_study");
    for (int m = 0; m < 3; m++)
        for (int compiled = 0; compiled < 2; compiled++)
            repeat(&given,
                   (struct given_run){.model = m == 0   ? "copy"
                                               : m == 1 ? "b"
                                                        : "c",
                                      .flops = 1e9 * m,
                                      .rate = 1000 * (m && compiled ? 1.2 : 1),
                                      .suffix = compiled ? "_compiled" : NULL,
                                      .options = compiled ? COMPILED : OPTIONS},
                   5, .002);
    struct lab_analysis_result own = when_asked(&given, "compile", NULL),
                               result = when_asked(&given, "recommend", NULL);
    const struct lab_claim *compiled = claim_of(&result, "recommend.compile", "Compiled");
    assert_string_equal(compiled->mean_of, "2 models");
    assert_true(compiled->effect == own.claims[0].effect);
    assert_string_equal(figure(&result, 0, "best")->text, "GPU 0, NUMA node 0, uncompiled");
    given_end(&given);
}

/* A sweep over NCCL's settings, one changed at a time, against what the library does itself. */
LAB_TEST(settings_of_a_library_are_compared_with_its_defaults) {
    struct given_study given;
    given_begin(&given, "nccl_settings");
    struct given_run run = {.model = "allreduce", .rate = 1000};
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"auto\", \"nccl_buffer\": 0}";
    repeat(&given, run, 5, .005);
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"tree\", \"nccl_buffer\": 0}";
    run.rate = 900;
    run.suffix = "_tree";
    repeat(&given, run, 5, .005);
    run.options = "{\"bytes\": 8, \"nccl_algo\": \"auto\", \"nccl_buffer\": 1048576}";
    run.rate = 1100;
    run.suffix = "_buffer";
    repeat(&given, run, 5, .005);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(result.part_count, 1);
    assert_says(result.answer, "buffer 1048576: 10.");
    assert_says(result.answer, "than NCCL's defaults");
    assert_says(figure(&result, 0, "best")->text, "buffer 1048576");
    given_end(&given);
}

/* By the all-reduce that was used, whatever the device is called. */
LAB_TEST(settings_of_a_library_that_was_not_used_are_not_tested) {
    static const char *const used[] = {"{\"allreduce\": \"nccl\"}", "{\"allreduce\": \"ring\"}"};
    for (int i = 0; i < 2; i++) {
        struct given_study given;
        given_begin(&given, "nccl_settings");
        struct given_run run = {.model = "allreduce", .rate = 1000, .result = used[i]};
        run.options = "{\"allreduce\": \"nccl\", \"nccl_algo\": \"auto\"}";
        repeat(&given, run, 5, .005);
        run.options = "{\"allreduce\": \"nccl\", \"nccl_algo\": \"tree\"}";
        run.suffix = "_tree";
        repeat(&given, run, 5, .005);
        struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
        assert_int_equal(
            lab_str_starts(result.answer, "Not tested: NCCL was not used. A built-in ring "),
            i == 1);
        assert_int_equal(result.claims[0].verdict == LAB_CLAIM_NOT_TESTED, i == 1);
        assert_int_equal(result.chart_count, i == 0);
        assert_int_equal(figure(&result, 0, "best")->text != NULL, i == 0);
        assert_int_equal(result.parts[0].table_count > 0, i == 0);
        assert_int_equal(lab_str_equal(result.command, "gpulab run nccl_settings device=cuda"),
                         i == 1);
        given_end(&given);
    }
}

LAB_TEST(what_is_inconclusive_asks_for_so_many_repeats) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int node = 0; node < 2; node++)
        repeat(&given,
               (struct given_run){.model = "vit32x2x128", .gpu = 1, .node = node, .rate = 1000}, 3,
               .02);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    const char *command = cell(&result, 0, "next", 0, "command")->text;
    assert_says(command, "gpulab run numa_study --device cuda ");
    assert_says(command, "'experiment.hardware.gpu_ids=[1]'");
    assert_says(command, "'experiment.vit_configs=[{patch_size:32,depth:2,heads:4,"
                         "dim:128,mlp_dim:0}]'");
    assert_says(command, "experiment.test.num_samples=500");
    const char *repeats = strstr(command, "experiment.repeat=");
    assert_non_null(repeats);
    assert_in_range(strtol(repeats + strlen("experiment.repeat="), NULL, 10), 4, 50);
    given_end(&given);
}

/* A machine of one's own may lie anywhere, and a study be called anything. */
LAB_TEST(whatever_a_machine_is_called_the_command_can_be_pasted) {
    struct given_study given;
    given_begin(&given, "it's; my study");
    for (int node = 0; node < 2; node++)
        repeat(&given, (struct given_run){.model = "m", .node = node, .rate = 1000}, 1, 0);
    for (int i = 0; i < given.table.run_count; i++) {
        struct lab_run *run = (struct lab_run *)given.table.runs[i].run;
        run->workload = "gemm";
        given.table.runs[i].options = given_json(&given, "{\"m\": 64, \"n\": 64, \"k\": 64}");
        given.table.runs[i].ranks[0].device = "sim:./my $(machine)'s.yaml:0";
    }
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_says(cell(&result, 0, "next", 0, "command")->text,
                "gpulab run 'it'\\''s; my study' --device 'sim:./my $(machine)'\\''s.yaml' '");
    given_end(&given);
}

LAB_TEST(other_work_is_another_model) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    repeat(&given, (struct given_run){.model = "m", .rate = 1000}, 2, .01);
    repeat(&given,
           (struct given_run){
               .model = "m", .rate = 100, .suffix = "_memory_size_mb1024", .options = LARGE_IMAGES},
           2, .01);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(result.part_count, 2);
    assert_string_equal(result.parts[0].name, "m, 512 MiB pool");
    assert_string_equal(result.parts[1].name, "m, 1024 MiB pool");
    assert_int_equal(result.chart_count, 0);
    assert_says(result.answer, "Not tested");
    for (int large = 0; large < 2; large++) /* settings aren't counted as models */
        repeat(&given,
               (struct given_run){.model = "m",
                                  .rate = large ? 80 : 800,
                                  .node = 1,
                                  .suffix = large ? "_memory_size_mb1024" : NULL,
                                  .options = large ? LARGE_IMAGES : OPTIONS},
               2, .01);
    result = when_asked(&given, "recommend", NULL);
    claim_of(&result, "recommend.node", "Remote NUMA nodes, mean of 2 configurations");
    given_end(&given);
}

LAB_TEST(one_run_a_point_gives_values_and_no_verdict) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given_grid(&given, "m", 1, .2, .001);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_true(result.claims[0].effect < -.15);
    for (int i = 0; i < result.claim_count; i++)
        assert_int_equal(result.claims[i].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_says(result.answer,
                "NUMA nodes: inconclusive, remote NUMA nodes compared with the local ");
    assert_says(result.answer, "Devices: inconclusive, largest difference: GPU ");
    assert_says(result.answer, " compared with its peers: ");
    given_end(&given);
}

LAB_TEST(nothing_done_says_so) {
    struct given_study given;
    given_begin(&given, "numa_study");
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(result.part_count, 0);
    assert_says(result.answer, "Not tested");
    assert_int_equal(lab_analysis_recommend.interest(&given.table), 0);
    given_end(&given);
}

/* No model is near a mean of those that lose 12% and those that lose nothing. */
LAB_TEST(models_that_a_node_slows_are_named) {
    struct given_study given;
    given_begin(&given, "numa_study");
    given_grid(&given, "small", 5, 0.12, .002);
    given_grid(&given, "middle", 5, 0.08, .002);
    given_grid(&given, "large", 5, 0, .002);
    given_grid(&given, "larger", 5, 0, .002);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_true(lab_str_starts(result.answer, "Remote NUMA nodes: "));
    assert_says(result.answer, "% lower throughput than the local node for ");
    assert_says(result.answer, " (5 runs each). No difference larger than 0.");
    assert_says(result.answer, "% for the 2 others.");
    given_end(&given);
}

/* A node is the better one for devices that are attached to it: its number says nothing. */
LAB_TEST(local_nodes_are_compared_whatever_their_numbers) {
    struct given_study given;
    given_begin(&given, "numa_study");
    for (int gpu = 0; gpu < 4; gpu++)
        for (int node = 0; node < 2; node++)
            repeat(&given,
                   (struct given_run){.model = "m",
                                      .gpu = gpu,
                                      .node = node,
                                      .home = gpu / 2,
                                      .rate = node == gpu / 2 ? 1100 : 1000},
                   3, .005);
    struct lab_analysis_result result = when_asked(&given, "recommend", NULL);
    assert_int_equal(result.claims[0].verdict, LAB_CLAIM_YES);
    assert_says(result.answer, "Remote NUMA nodes, mean of 4 configurations: 9.");
    assert_says(result.answer, "between devices.");
    given_end(&given);
}
