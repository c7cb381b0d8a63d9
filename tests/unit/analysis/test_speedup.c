/* Whether `speedup` grades several devices against one as the measurements carry. */
#include "resource_fixture.h"

#include <stdio.h>

struct gang {
    const char *model, *suffix, *scaling;
    int first, size, repeat;
    double rate, parameters, batch;
    double communication_ms;
};

/* Devices first, first + 1, … at one work. */
static struct lab_study_run *given_gang(struct given_study *given, struct gang gang) {
    struct lab_arena *arena = &given->arena;
    struct lab_study_run *run = given_add(
        given, (struct given_run){
                   .model = gang.model,
                   .gpu = gang.first,
                   .repeat = gang.repeat,
                   .rate = gang.rate,
                   .suffix = gang.suffix,
                   .options = lab_arena_printf(arena, "{\"batch_size\": %.0f, \"scaling\": \"%s\"}",
                                               gang.batch, gang.scaling ? gang.scaling : "strong"),
                   .result = gang.communication_ms > 0
                                 ? lab_arena_printf(arena, "{\"communication_time_ms\": %f}",
                                                    gang.communication_ms)
                                 : NULL});
    struct lab_study_rank *ranks = lab_arena_alloc(arena, (size_t)gang.size, sizeof *ranks);
    LAB_AUTO(str, name);
    for (int i = 0; i < gang.size; i++) {
        ranks[i] = run->ranks[0];
        ranks[i].gpu_id = gang.first + i;
        ranks[i].device = lab_arena_printf(arena, "cuda:%d", gang.first + i);
        lab_str_printf(&name, "%s%d", i ? "+" : "gpu", gang.first + i);
    }
    lab_str_printf(&name, "_numa0_%s%s", gang.model, gang.suffix ? gang.suffix : "");
    run->point = lab_arena_strdup(arena, name.text);
    run->ranks = ranks;
    run->rank_count = gang.size;
    run->work.parameters = gang.parameters;
    return run;
}

/* Repeats that scatter by so much around a rate. */
static void given_repeats(struct given_study *given, struct gang gang, int count, double spread) {
    double rate = gang.rate;
    for (int i = 0; i < count; i++) {
        gang.repeat = i;
        gang.rate = rate * (1 + spread * given_normal(given));
        given_gang(given, gang);
    }
}

/* Published throughputs of one and two GPUs at batch sizes 16 to 128; two are slower throughout. */
LAB_TEST(test_two_devices_that_are_slower_mean_stay_single) {
    static const double medium[][3] = {
        {16, 2422, 2039}, {32, 4156, 3567}, {64, 8234, 6789}, {128, 16883, 12345}};
    struct given_study given;
    given_begin(&given, "train_scaling");
    for (int i = 0; i < 4; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_batch%.0f", medium[i][0]);
        struct gang gang = {.model = "mlp_medium",
                            .suffix = lab_arena_strdup(&given.arena, suffix),
                            .size = 1,
                            .rate = medium[i][1],
                            .parameters = 54403,
                            .batch = medium[i][0]};
        given_repeats(&given, gang, 5, 0.01);
        gang.size = 2;
        gang.rate = medium[i][2];
        given_repeats(&given, gang, 5, 0.01);
    }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_int_equal(figure_of(&result, "stay_single")->value, 4);
    assert_true(fabs(cell_of(&result, "speedups", 3, "speedup")->value - 12345.0 / 16883) < 0.02);
    assert_true(cell_of(&result, "speedups", 3, "speedup")->high < 0.8);
    assert_true(fabs(cell_of(&result, "speedups", 3, "efficiency")->value - 0.366) < 0.01);
    assert_string_equal(cell_of(&result, "speedups", 3, "grade")->text, "stay single");
    assert_contains(result.answer, "stay on one, as for all 3 others");
    /* larger batches fare worse, so that no break-even is promised */
    assert_null(strstr(result.answer, "break-even"));
    given_end(&given);
}

/* The larger the model the more two devices bring: as fast as one at 18 M parameters. */
LAB_TEST(test_the_break_even_is_found_with_its_interval) {
    static const double sizes[] = {2e6, 6e6, 18e6, 54e6};
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 4; i++) {
        double share = pow(sizes[i] / 18e6, 0.3); /* of the speed of one that two have */
        struct gang gang = {.model = lab_arena_printf(&given.arena, "mlp%d", i),
                            .size = 1,
                            .rate = 1e9 / sizes[i],
                            .parameters = sizes[i],
                            .batch = 128};
        given_repeats(&given, gang, 5, 0.01);
        gang.size = 2;
        gang.rate *= share;
        given_repeats(&given, gang, 5, 0.01);
    }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_doc_cell *at = cell_of(&result, "break_even", 0, "at");
    assert_string_equal(cell_of(&result, "break_even", 0, "over")->text, "parameters");
    assert_true(at->low < 18e6 && at->high > 18e6);
    assert_true(at->low > 15e6 && at->high < 21e6);
    assert_contains(result.answer, "break-even of 2 devices is near 1");
    assert_string_equal(cell_of(&result, "speedups", 0, "grade")->text, "stay single");
    assert_string_equal(cell_of(&result, "speedups", 3, "grade")->text, "beneficial");
    given_end(&given);
}

/* Each device has a batch of its own: several don't do the training that one does. */
LAB_TEST(test_a_batch_for_each_device_is_another_training) {
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
    given_repeats(&given, gang, 3, 0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    if (!strstr(result.answer, "one for the medium model at batch 64 a device, which is another "
                               "training (batch 256 in all): use them"))
        fail_msg("%s", result.answer);
    given_end(&given);
}

LAB_TEST(test_an_interval_across_a_boundary_is_ambiguous) {
    struct given_study given;
    given_begin(&given, "train_scaling");
    struct gang gang = {.model = "mlp", .size = 1, .rate = 1000};
    given_repeats(&given, gang, 3, 0.05);
    gang.size = 2;
    gang.rate = 1100;
    given_repeats(&given, gang, 3, 0.05);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_string_equal(cell_of(&result, "speedups", 0, "grade")->text, "ambiguous");
    assert_contains(result.answer, "would tell");
    given_end(&given);
}

/* Planted: λ = 1000, σ = 0.05, κ = 0.01; the peak is at √(0.95/0.01) = 9.7. */
static double usl(int n) {
    return 1000.0 * n / (1 + 0.05 * (n - 1) + 0.01 * n * (n - 1));
}

LAB_TEST(test_several_sizes_follow_a_law) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    static const int sizes[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; i++) {
        struct gang gang = {.model = "vit", .size = sizes[i], .rate = usl(sizes[i])};
        gang.communication_ms = sizes[i] > 1 ? 0.25 * 1e4 / gang.rate : 0;
        given_repeats(&given, gang, 5, 0.005);
    }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_int_equal(cell_of(&result, "laws", 0, "sizes")->value, 4);
    const struct lab_doc_cell *sigma = cell_of(&result, "laws", 0, "contention");
    const struct lab_doc_cell *kappa = cell_of(&result, "laws", 0, "coherence");
    assert_true(sigma->low < 0.05 && sigma->high > 0.05 && sigma->high - sigma->low < 0.03);
    assert_true(kappa->low < 0.01 && kappa->high > 0.01);
    const struct lab_doc_cell *peak = cell_of(&result, "laws", 0, "peak_devices");
    assert_true(peak->low < 9.75 && peak->high > 9.75);
    assert_int_equal(figure_of(&result, "beneficial")->value, 3);
    assert_true(fabs(cell_of(&result, "speedups", 1, "communication")->value - 0.25) < 0.01);
    assert_contains(result.answer, "Eight devices are 4.");
    given_end(&given);
}

/* A gang is held against its own members, and of these the faster. */
LAB_TEST(test_a_gang_is_held_against_its_fastest_member) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    static const double alone[] = {1000, 1200, 5000};
    for (int g = 0; g < 3; g++) {
        struct gang gang = {.model = "vit", .first = g, .size = 1, .rate = alone[g]};
        given_repeats(&given, gang, 3, 0.001);
    }
    given_repeats(&given, (struct gang){.model = "vit", .size = 2, .rate = 2100}, 3, 0.001);
    given_repeats(&given, (struct gang){.model = "vit", .first = 1, .size = 2, .rate = 9000}, 3,
                  0.001);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_contains(result.answer, "Two devices (1+2) are 1.8");
    assert_string_equal(cell_of(&result, "recommendations", 0, "gpu_ids")->text, "1+2");
    assert_true(fabs(cell_of(&result, "speedups", 0, "speedup")->value - 1.75) < 0.01);
    assert_string_equal(cell_of(&result, "speedups", 0, "gpu_ids")->text, "0+1");
    given_end(&given);
}

LAB_TEST(test_what_is_lacking_is_said) {
    struct given_study given;
    given_begin(&given, "nothing");
    struct lab_analysis_result result = when_asked(&given, "speedup");
    assert_string_equal(result.answer, "There is no run to look at.");
    given_gang(&given, (struct gang){.model = "a", .size = 1, .rate = 100});
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "All runs are on one device");
    assert_int_equal(result.chart_count, 0);
    given_end(&given);

    given_begin(&given, "apart");
    given_gang(&given, (struct gang){.model = "a", .size = 1, .rate = 100});
    given_gang(&given, (struct gang){.model = "b", .size = 2, .rate = 100});
    result = when_asked(&given, "speedup");
    assert_contains(result.answer, "none of the same work on one");
    given_end(&given);

    /* one run each, and no iterations: a ratio without an interval has no grade */
    given_begin(&given, "single");
    given_gang(&given, (struct gang){.model = "a", .size = 1, .rate = 100});
    given_gang(&given, (struct gang){.model = "a", .size = 2, .rate = 150});
    result = when_asked(&given, "speedup");
    assert_string_equal(cell_of(&result, "speedups", 0, "grade")->text, "unknown");
    assert_true(fabs(cell_of(&result, "speedups", 0, "speedup")->value - 1.5) < 1e-9);
    assert_contains(result.answer, "how sure that is isn't known");
    given_end(&given);
}

LAB_TEST(test_the_picture_has_a_bar_for_each_size_and_work) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int m = 0; m < 2; m++)
        for (int size = 1; size <= 4; size *= 2) {
            if (m == 1 && size == 4)
                continue;
            given_repeats(&given,
                          (struct gang){.model = m ? "b" : "a", .size = size, .rate = 100.0 * size},
                          3, 0.01);
        }
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_chart *chart = chart_of(&result, "speedup");
    assert_non_null(chart);
    const struct lab_chart_panel *panel = &chart->panels[0];
    assert_int_equal(panel->x.name_count, 2);
    assert_int_equal(panel->series_count, 4); /* 2 devices, 4 devices, two limits */
    assert_true(fabs(panel->series[1].y[0] - 4) < 0.2);
    assert_true(isnan(panel->series[1].y[1]));
    assert_true(panel->series[0].low[1] < 2 && panel->series[0].high[1] > 1.9);
    given_end(&given);
}

/* Devices 0 and 1 share a link, 1 and 2 don't: one pair gains nothing, the other doubles. */
LAB_TEST(test_gangs_of_one_size_are_shown_apart) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 3; i++)
        given_repeats(&given, (struct gang){.model = "a", .first = i, .size = 1, .rate = 100}, 3,
                      0.005);
    given_repeats(&given, (struct gang){.model = "a", .size = 2, .rate = 106}, 3, 0.005);
    given_repeats(&given, (struct gang){.model = "a", .first = 1, .size = 2, .rate = 200}, 3,
                  0.005);
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_chart_panel *panel = &chart_of(&result, "speedup")->panels[0];
    assert_int_equal(panel->series_count, 4); /* two gangs, two limits */
    assert_string_equal(panel->series[0].title, "GPUs 0+1");
    assert_string_equal(panel->series[1].title, "GPUs 1+2");
    assert_true(panel->series[0].y[0] < 1.2 && panel->series[1].y[0] > 1.9);
    assert_contains(result.answer, "1+2 double the throughput of one");
    assert_contains(result.answer, "but 0+1 gain ");
    assert_null(strstr(result.answer, "within one run"));
    given_end(&given);
}

/* Fifteen pairs of neighbours: the fastest and the slowest are what a picture has room for. */
LAB_TEST(test_of_too_many_gangs_the_extremes_are_shown) {
    struct given_study given;
    given_begin(&given, "throughput_study");
    for (int i = 0; i < 16; i++)
        given_gang(&given, (struct gang){.model = "a", .first = i, .size = 1, .rate = 100});
    for (int i = 0; i < 15; i++)
        given_gang(&given, (struct gang){.model = "a", .first = i, .size = 2, .rate = 110 + i});
    struct lab_analysis_result result = when_asked(&given, "speedup");
    const struct lab_chart_panel *panel = &chart_of(&result, "speedup")->panels[0];
    assert_int_equal(panel->series_count, 4);
    assert_string_equal(panel->series[0].title, "2 devices, fastest");
    assert_string_equal(panel->series[1].title, "2 devices, slowest");
    assert_true(fabs(panel->series[0].y[0] - 1.24) < 1e-9);
    assert_true(fabs(panel->series[1].y[0] - 1.10) < 1e-9);
    given_end(&given);
}

static const char *answer_of_batches(struct given_study *given, const double *speedups, int count) {
    given_begin(given, "train_scaling");
    for (int i = 0; i < count; i++) {
        struct gang gang = {.model = "mlp_medium",
                            .suffix = lab_arena_printf(&given->arena, "_batch%d", 16 << i),
                            .size = 1,
                            .rate = 1000,
                            .parameters = 54403,
                            .batch = 16 << i};
        given_repeats(given, gang, 5, 0.002);
        gang.size = 2;
        gang.rate *= speedups[i];
        given_repeats(given, gang, 5, 0.002);
    }
    return when_asked(given, "speedup").answer;
}

static void then_tells(const double *speedups, int count, const char *words) {
    struct given_study given;
    const char *answer = answer_of_batches(&given, speedups, count);
    if (!strstr(answer, words))
        fail_msg("%s", answer);
    given_end(&given);
}

/* What never came is not counted out, and one other is no "all 1 others". */
LAB_TEST(test_comparisons_are_counted_in_words) {
    then_tells((double[]){0.8, 0.7}, 2, "stay on one, as in the other comparison");
    then_tells((double[]){1.01, 1.03}, 2, "; there is hardly a difference in both comparisons");
    then_tells((double[]){1.7, 1.8, 1.6}, 3, "; several devices pay in all 3 comparisons");
    then_tells(
        (double[]){1.7, 1.02, 0.8}, 3,
        "; of 3 comparisons several devices pay in 1, one is faster in 1 and there is hardly "
        "a difference in 1");
    then_tells((double[]){1.7, 0.7, 0.8}, 3,
               "; of 3 comparisons several devices pay in 1 and one is faster in 2");
}
