/* Contrasts of points: what they estimate, what cancels out of them, how often their intervals
 * hold the truth. */
#include "analysis/claims/contrast.h"

#include "stats/stats.h"
#include "unit/analysis/study_fixture.h"

#include "test.h"

#define RUNS    5
#define STUDIES 2000

static struct given_study study;

static struct lab_study_point *points_of(int *ret_count) {
    struct lab_study_point *points;
    *ret_count = lab_study_points(&study.table, &study.arena, &points);
    return points;
}

static uint64_t drawn; /* so that each study has numbers of its own */

/* Points gpu 0 … `gpus` − 1 from node 0 and, `effect` slower, from node 1; `noise` between runs,
 * `drift` of all of a block. */
static void given_blocks(int gpus, double effect, double noise, double drift, int blocks) {
    given_begin(&study, "given");
    study.random = drawn;
    for (int b = 0; b < blocks; b++) {
        double block = drift * given_normal(&study);
        for (int i = 0; i < 2 * gpus; i++)
            given_add(&study,
                      (struct given_run){.model = "vit0x0x0",
                                         .gpu = i / 2,
                                         .node = i % 2,
                                         .repeat = b,
                                         .rate = 1000 * (1 - i % 2 * effect) *
                                                 exp(block + noise * given_normal(&study))});
    }
    drawn = study.random;
}

static struct lab_claim pooled(int gpus) {
    int count;
    struct lab_study_point *points = points_of(&count);
    struct lab_contrast contrast = {.arena = &study.arena};
    for (int g = 0; g < gpus; g++)
        lab_contrast_add_pair(&contrast, &points[2 * g], &points[2 * g + 1], 1.0 / gpus);
    return lab_claim_estimate(&contrast, LAB_STUDY_RATE);
}

LAB_TEST(a_pair_is_a_ratio) {
    given_blocks(1, 0.125, 0, 0, RUNS);
    struct lab_claim claim = pooled(1);
    assert_near(claim.effect, -0.125, 1e-12);
    assert_near(claim.low, -0.125, 1e-9);
    assert_int_equal(claim.verdict, LAB_CLAIM_YES);
    assert_int_equal(claim.n, RUNS);
    assert_int_equal(claim.scope_count, 2);
    given_end(&study);
}

LAB_TEST(what_drifts_from_block_to_block_cancels_out) {
    given_blocks(1, 0.02, 0.001, 0.2, RUNS);
    struct lab_claim claim = pooled(1);
    assert_int_equal(claim.verdict, LAB_CLAIM_YES);
    assert_true(claim.high - claim.low < 0.02);
    given_end(&study);
}

LAB_TEST(one_run_a_point_has_an_effect_and_no_verdict) {
    given_blocks(2, 0.3, 0.01, 0, 1);
    struct lab_claim claim = pooled(2);
    assert_near(claim.effect, -0.3, 0.05);
    assert_true(isnan(claim.low) && isnan(claim.p));
    assert_int_equal(claim.verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_int_equal(claim.n, 1);
    given_end(&study);
}

/* Rates that move by 29% between two runs, whose ratio is the same in both by chance: that of the
 * other pairing isn't. A third block would show it. */
LAB_TEST(two_blocks_that_agree_by_chance_are_not_firm) {
    static const double rates[2][2] = {{129.4, 45.4}, {166.1, 58.4}};
    for (int quiet = 0; quiet < 2; quiet++) {
        given_begin(&study, "given");
        for (int i = 0; i < 4; i++)
            given_add(&study, (struct given_run){.model = "vit0x0x0",
                                                 .node = i % 2,
                                                 .repeat = i / 2,
                                                 .rate = rates[quiet ? 0 : i / 2][i % 2] *
                                                         (1 + 0.001 * i)});
        struct lab_claim claim = pooled(1);
        assert_near(claim.effect, -0.65, 0.01);
        assert_int_equal(claim.verdict, quiet ? LAB_CLAIM_YES : LAB_CLAIM_INCONCLUSIVE);
        given_end(&study);
    }
}

LAB_TEST(a_block_that_lacks_a_run_is_left_out) {
    given_blocks(1, 0.1, 0.01, 0, RUNS);
    study.table.runs[3].used = false;
    assert_int_equal(pooled(1).n, RUNS - 1);
    /* no two points have a block in common: each by itself */
    for (int i = 0; i < study.table.run_count; i++)
        study.table.runs[i].used = (i % 2 == 0) == (i / 2 < 2);
    struct lab_claim claim = pooled(1);
    assert_int_equal(claim.n, 2);
    assert_false(isnan(claim.low));
    given_end(&study);
}

LAB_TEST(nothing_to_compare_is_not_tested) {
    struct lab_contrast empty = {.arena = &test_arena};
    assert_int_equal(lab_claim_estimate(&empty, LAB_STUDY_RATE).verdict, LAB_CLAIM_NOT_TESTED);
}

/* Of 2,000 studies, 95% and not improbably far from it; of two blocks, more. */
static void expect_coverage(int gpus, double effect, double noise, double drift, int blocks) {
    int held = 0, claimed = 0;
    for (int i = 0; i < STUDIES; i++) {
        given_blocks(gpus, effect, noise, drift, blocks);
        struct lab_claim claim = pooled(gpus);
        held += claim.low <= -effect && claim.high >= -effect;
        claimed += claim.verdict == LAB_CLAIM_YES;
        given_end(&study);
    }
    assert_true((blocks == 2 && held >= 0.95 * STUDIES) ||
                lab_stats_binomial_test(held, STUDIES, 0.95) > 0.001);
    if (effect == 0)
        assert_true(claimed <= STUDIES * 0.065);
}

LAB_TEST(intervals_hold_the_truth) {
    expect_coverage(1, 0.1, 0.015, 0, 5);
    expect_coverage(4, 0.125, 0.015, 0.05, 5);
    expect_coverage(4, 0, 0.015, 0.05, 3);
    expect_coverage(1, 0, 0.03, 0, 2);
}

static double half_rate(const struct lab_study_run *run, const void *context) {
    return run->rate * *(const double *)context;
}

LAB_TEST(any_value_of_a_run_can_be_compared) {
    static const double half = 0.5;
    int count;
    given_blocks(1, 0.125, 0, 0, RUNS);
    struct lab_study_point *points = points_of(&count);
    struct lab_contrast contrast = {.arena = &study.arena, .value = half_rate, .context = &half};
    lab_contrast_add(&contrast, &points[1], 1);
    assert_near(lab_claim_estimate(&contrast, LAB_STUDY_RATE).effect + 1, 437.5, 1e-9);
    given_end(&study);
}

LAB_TEST(blocks_give_an_estimate_in_a_unit) {
    struct lab_claim claim =
        lab_claim_from_blocks((double[]){52e12, NAN, 50e12, 54e12}, 4, "FLOP/s");
    assert_near(claim.effect, cbrt(52e12 * 50e12 * 54e12), 1);
    assert_true(claim.low < 50e12 && claim.high > 54e12);
    assert_int_equal(claim.n, 3);
    assert_int_equal(claim.verdict, LAB_CLAIM_YES);
}

LAB_TEST(blocks_give_a_change) {
    double less = log(0.9);
    struct lab_claim claim = lab_claim_from_blocks((double[]){less, less, less}, 3, NULL);
    assert_near(claim.effect, -0.1, 1e-12);
    assert_int_equal(claim.verdict, LAB_CLAIM_YES);
    assert_int_equal(lab_claim_from_blocks((double[]){less}, 1, NULL).verdict,
                     LAB_CLAIM_INCONCLUSIVE);
    assert_int_equal(lab_claim_from_blocks(NULL, 0, "s").verdict, LAB_CLAIM_NOT_TESTED);
}

LAB_TEST(amounts_close_to_0_have_no_logarithms) {
    struct lab_claim claim = lab_claim_from_amounts((double[]){1, 3, NAN, 2}, 4, "s");
    assert_near(claim.effect, 2, 1e-12);
    assert_int_equal(claim.n, 3);
    assert_int_equal(claim.verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_near(claim.low, 0, 0);
    assert_int_equal(lab_claim_from_amounts((double[]){2.1, 2, 1.9}, 3, "s").verdict,
                     LAB_CLAIM_YES);
    assert_int_equal(lab_claim_from_amounts((double[]){-2, 1}, 2, "s").verdict,
                     LAB_CLAIM_NOT_TESTED);
}
