/* Copies by size, batch and pool, on studies whose links were planted. */
#include "study_answers.h"

#include "stats/stats.h"

#include <sys/mman.h>

#define WAIT_S      20e-6
#define BYTES_PER_S 25e9

struct asked { /* of a run; 0 = the usual one */
    const char *model;
    int node, repeat, side, batch, pool;
    double rate, bandwidth_factor;
};

static struct lab_study_run *given_copy(struct given_study *given, struct asked asked) {
    const char *model = asked.model ? asked.model : "vit32x4x256";
    int side = asked.side ? asked.side : 224, batch = asked.batch ? asked.batch : 10,
        pool = asked.pool ? asked.pool : 512;
    double bytes = 4.0 * 3 * side * side * batch;
    double factor = asked.bandwidth_factor > 0 ? asked.bandwidth_factor : 1;
    double gb_per_s = 1e-9 * bytes / (WAIT_S + bytes / BYTES_PER_S) * factor;
    return given_add(
        given,
        (struct given_run){
            .model = model,
            .node = asked.node,
            .repeat = asked.repeat,
            .rate = asked.rate > 0 ? asked.rate : 1000,
            .samples = batch,
            .bytes = bytes,
            .suffix = lab_arena_printf(&given->arena, "_%d_%d_%d", side, batch, pool),
            .options = lab_arena_printf(&given->arena,
                                        "{\"tensor_shape\": [3, %d, %d], \"batch_size\": %d, "
                                        "\"memory_size_mb\": %d}",
                                        side, side, batch, pool),
            .result = lab_arena_printf(&given->arena,
                                       "{\"h2d_gb_per_s\": %.12g, \"d2h_gb_per_s\": %.12g}",
                                       gb_per_s, gb_per_s / 2),
        });
}

static int part_named(const struct lab_analysis_result *result, const char *name) {
    for (int i = 0; i < result->part_count; i++)
        if (strstr(result->parts[i].name, name))
            return i;
    fail_msg("no part '%s'", name);
    return -1;
}

/* Larger images in smaller batches, as the study has them. */
static void given_images(struct given_study *given, double noise) {
    static const int sides[] = {224, 384, 512, 768}, batches[] = {10, 8, 6, 4};
    for (int i = 0; i < 4; i++)
        given_copy(given, (struct asked){.side = sides[i],
                                         .batch = batches[i],
                                         .bandwidth_factor = 1 + noise * given_normal(given)});
}

/* --- bandwidth --- */

LAB_TEST(the_links_law_is_found_again) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, 0);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "H2D");
    assert_near(figure(&result, part, "bandwidth_gb_per_s")->value / BYTES_PER_S, 1, 1e-6);
    assert_near(figure(&result, part, "wait_ms")->value, WAIT_S, 1e-10);
    assert_near(cell(&result, part, "laws", 0, "r_squared")->value, 1, 1e-9);
    assert_string_equal(cell(&result, part, "points", 0, "value")->text, "10 × 3x224x224");
    assert_says(result.answer,
                "Copies to the device take 20.0 µs before they move and then run at 25 "
                "[25, 25] GB/s");
    given_end(&given);
}

LAB_TEST(its_interval_holds_as_often_as_it_says) {
    enum { TRIALS = 400 };
    int held[2] = {0};
    uint64_t drawn = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct given_study given;
        given_begin(&given, "transfer_study");
        given.random = drawn;
        given_images(&given, 0.004);
        drawn = given.random;
        struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
        int part = part_named(&result, "H2D");
        held[0] += covers(figure(&result, part, "bandwidth_gb_per_s"), BYTES_PER_S);
        held[1] += covers(figure(&result, part, "wait_ms"), WAIT_S);
        given_end(&given);
    }
    for (int i = 0; i < 2; i++)
        if (!(lab_stats_binomial_test(held[i], TRIALS, 0.95) > 0.001))
            fail_msg("%s: %d of %d intervals hold", i ? "wait" : "bandwidth", held[i], TRIALS);
}

LAB_TEST(one_run_is_known_from_its_stages) {
    enum { ITERATIONS = 200 };
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2; i++) {
        struct lab_study_run *run = given_copy(&given, (struct asked){.side = i ? 448 : 224});
        struct lab_iteration *iterations =
            lab_arena_alloc(&given.arena, ITERATIONS, sizeof *iterations);
        for (int k = 0; k < ITERATIONS; k++) { /* 990 or 1010 µs: half of each */
            int64_t start_ns = 2000000LL * k, took_ns = k % 2 ? 1010000 : 990000;
            iterations[k].stages[LAB_STAGE_H2D] = (struct lab_span){start_ns, start_ns + took_ns};
        }
        run->ranks[0].iterations = iterations;
        run->ranks[0].iteration_count = ITERATIONS;
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "H2D");
    const struct lab_doc_cell *bandwidth = cell(&result, part, "points", 0, "bandwidth_gb_per_s");
    double bytes = 4.0 * 3 * 224 * 224 * 10;
    assert_near(bandwidth->value, bytes / 1e-3, 1e-6 * bytes / 1e-3);
    assert_near(bandwidth->low, bytes / 1.01e-3, 1e-6 * bytes / 1e-3);
    assert_near(bandwidth->high, bytes / 0.99e-3, 1e-6 * bytes / 1e-3);
    assert_says(result.answer, "for 10 × 3x224x224 and at");
    given_end(&given);
}

LAB_TEST(the_way_back_is_told_by_model) {
    static const char *const names[] = {"vit0x0x0", "vit32x4x256", "vit16x8x768"};
    static const double outputs[] = {6e6, 5e5, 6.3e6};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 3; i++)
        given_copy(&given, (struct asked){.model = names[i]})->work.d2h_bytes = outputs[i];
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "D2H");
    assert_string_equal(cell(&result, part, "points", 0, "value")->text,
                        "vit32x4x256, 10 × 3x224x224");
    assert_near(cell(&result, part, "points", 0, "bytes")->value, 5e5, 0);
    given_end(&given);
}

/* --- batch and pool --- */

LAB_TEST(a_batch_that_helps_is_named) {
    static const int batches[] = {4, 8, 16, 32};
    static const double rates[] = {1000, 1200, 1350, 1400};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 4; i++)
        for (int repeat = 0; repeat < 4; repeat++)
            given_copy(&given,
                       (struct asked){.batch = batches[i],
                                      .repeat = repeat,
                                      .rate = rates[i] * (1 + 0.003 * given_normal(&given))});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "by batch");
    assert_near(figure(&result, part, "largest_change")->value, 0.4, 0.01);
    assert_says(result.parts[part].answer, "32 against 4 on cuda:0 from node 0");
    assert_near(cell(&result, part, "points", 1, "change")->value, 0.2, 0.01);
    given_end(&given);
}

LAB_TEST(a_pool_that_does_nothing_is_told_as_a_bound) {
    static const int pools[] = {256, 512, 1024, 2048};
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 4; i++)
        for (int repeat = 0; repeat < 5; repeat++)
            given_copy(&given, (struct asked){.pool = pools[i],
                                              .repeat = repeat,
                                              .rate = 1000 * (1 + 0.002 * given_normal(&given))});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "by pool");
    assert_true(isnan(figure(&result, part, "largest_change")->value));
    assert_says(result.parts[part].answer, "The pool changes the throughput by no more than");
    given_end(&given);
}

/* --- memory pressure --- */

static void given_pressure(struct given_study *given, double small_loss, double large_loss) {
    for (int i = 0; i < 2 * 2 * 5; i++) {
        bool far = i % 2, large = i / 2 % 2;
        double loss = far ? (large ? large_loss : small_loss) : 0;
        given_copy(given,
                   (struct asked){.node = far,
                                  .pool = large ? 2048 : 256,
                                  .repeat = i / 4,
                                  .rate = 1000 * (1 - loss) * (1 + 0.002 * given_normal(given))});
    }
}

LAB_TEST(a_price_that_grows_with_the_pool_is_told) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_pressure(&given, 0.05, 0.15);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    int part = part_named(&result, "memory pressure");
    assert_near(cell(&result, part, "pools", 0, "change")->value, -0.05, 0.01);
    assert_near(cell(&result, part, "pools", 1, "change")->value, -0.15, 0.01);
    assert_near(figure(&result, part, "largest_change")->value, 0.85 / 0.95 - 1, 0.01);
    assert_says(result.parts[part].answer, "Feeding from node 1 instead of 0");
    assert_says(result.parts[part].answer, "the price grows with the pool");
    given_end(&given);
}

LAB_TEST(a_price_that_stays_is_told_as_a_bound) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_pressure(&given, 0.1, 0.1);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_says(result.parts[part_named(&result, "memory pressure")].answer,
                "doesn't change with the pool by more than");
    given_end(&given);
}

/* --- little to go by --- */

LAB_TEST(one_point_has_nothing_to_say) {
    struct given_study given;
    given_begin(&given, "quick_test");
    assert_says(when_asked(&given, "transfer", NULL).answer, "nothing to hold against each other");
    given_copy(&given, (struct asked){0});
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_int_equal(result.part_count, 0);
    assert_int_equal(result.chart_count, 0);
    assert_int_equal(lab_analysis_find("transfer", NULL)->interest(&given.table), 0);
    given_end(&given);
}

LAB_TEST(single_runs_without_a_spread_stay_undecided) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    for (int i = 0; i < 2; i++) {
        struct lab_study_run *run =
            given_copy(&given, (struct asked){.pool = i ? 1024 : 512, .rate = i ? 900 : 1000});
        ((struct lab_run *)run->run)->rate_low = NAN;
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_says(result.parts[part_named(&result, "by pool")].answer, "is undecided");
    given_end(&given);
}

LAB_TEST(what_varies_makes_it_worth_a_report) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, 0);
    assert_true(lab_analysis_find("transfer", NULL)->interest(&given.table) >= 40);
    given_end(&given);
}

LAB_TEST(every_question_has_its_picture) {
    struct given_study given;
    given_begin(&given, "transfer_study");
    given_images(&given, 0);
    given_pressure(&given, 0.05, 0.15);
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_near(chart(&result, "transfer_h2d")->panels[0].series[0].x[0], 6.021120, 1e-6);
    assert_int_equal((int)chart(&result, "transfer_pool")->panels[0].series[0].count, 3);
    assert_near(chart(&result, "transfer_pressure")->panels[0].series[0].y[1], 15, 1);
    given_end(&given);
}

/* Iterations that may not be read: a study with nothing to hold against each other never asks. */
LAB_TEST(test_iterations_of_single_points_arent_looked_at) {
    struct given_study given;
    size_t size = 1000 * sizeof(struct lab_iteration);
    void *closed = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(closed != MAP_FAILED);
    given_begin(&given, "transfer_study");
    for (int node = 0; node < 2; node++) {
        struct lab_study_run *run = given_copy(&given, (struct asked){.node = node});
        run->ranks[0].iterations = closed;
        run->ranks[0].iteration_count = 1000;
    }
    struct lab_analysis_result result = when_asked(&given, "transfer", NULL);
    assert_int_equal(result.part_count, 0);
    assert_contains(result.answer, "nothing to hold against each other");
    given_end(&given);
    munmap(closed, size);
}
