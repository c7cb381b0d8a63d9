/* False claims are counted by kind: names are at random within blocks, so drift makes none. */
#include "unit/analysis/study_fixture.h"

#include "base/list.h"
#include "base/str.h"
#include "campaign/selftest.h"

#include "test.h"

/* `runs` runs of one point, each slower than the last by `drift`. */
static void given_runs(struct given_study *given, uint64_t seed, int runs, double spread,
                       double drift) {
    given_begin(given, "selftest");
    given->random = seed;
    for (int i = 0; i < runs; i++)
        given_add(given, (struct given_run){.model = "m",
                                            .repeat = i,
                                            .iterations = 20,
                                            .spread = .02,
                                            .options = "{}",
                                            .rate = 1000 * (1 - drift * i) *
                                                    (1 + spread * given_normal(given))});
}

static void given_slowing(struct given_study *given, struct lab_study_run *run) {
    struct lab_iteration *items = lab_arena_alloc(&given->arena, 100, sizeof *items);
    struct lab_run *planned = lab_arena_alloc(&given->arena, 1, sizeof *planned);
    int64_t now_ns = run->run->start_ns;
    for (int i = 0; i < 100; i++) {
        items[i].start_ns = now_ns;
        items[i].end_ns = now_ns += (int64_t)(1e6 * (1 + .001 * i + .001 * given_normal(given)));
    }
    *planned = *run->run;
    planned->iterations = 100;
    run->run = planned;
    run->ranks[0].iterations = items;
    run->ranks[0].iteration_count = 100;
}

static struct lab_selftest_tally judge(uint64_t studies, double drift) {
    struct lab_selftest_tally tally = {0};
    for (uint64_t i = 0; i < studies; i++) {
        struct given_study given;
        given_runs(&given, 1000 * i, 5 * LAB_SELFTEST_POINTS, .01, drift);
        assert_true(lab_selftest_judge(&given.table, i, &tally, &test_arena));
        given_end(&given);
    }
    return tally;
}

LAB_TEST(every_kind_is_rarely_wrong) {
    static const double drifts[] = {0, .002};
    for (int d = 0; d < 2; d++) {
        struct lab_selftest_tally tally = judge(100, drifts[d]);
        assert_int_equal(tally.studies, 100);
        assert_true(tally.kind_count >= 3); /* numa.penalty, numa.device, numa.cell, … */
        const struct lab_analysis_kind *missing = lab_selftest_uncovered(&tally, &test_arena);
        for (; missing->name; missing++)
            if (lab_str_equal(missing->name, "numa.cell") ||
                lab_str_equal(missing->name, "speedup.gang"))
                fail_msg("%s isn't covered", missing->name);
        for (int i = 0; i < tally.kind_count; i++)
            if (tally.kinds[i].studies > tally.studies)
                fail_msg("%s counts twice in a study", tally.kinds[i].kind);
        for (int i = 0; i < tally.kind_count; i++)
            if (!lab_selftest_holds(&tally, &tally.kinds[i]))
                fail_msg("%s: %d of %d", tally.kinds[i].kind, tally.kinds[i].wrong_studies,
                         tally.kinds[i].studies);
        lab_selftest_release(&tally);
    }
}

/* Every run slows down by 10%, hardly more in one than in another: read backwards in turn, they
 * show no drift of any point. */
LAB_TEST(a_drift_that_all_runs_have_is_not_found) {
    struct lab_selftest_tally tally = {0};
    for (uint64_t study = 0; study < 10; study++) {
        struct given_study given;
        given_runs(&given, 1000 * study, 5 * LAB_SELFTEST_POINTS, .01, 0);
        for (int i = 0; i < given.table.run_count; i++)
            given_slowing(&given, &given.table.runs[i]);
        assert_true(lab_selftest_judge(&given.table, study, &tally, &test_arena));
        given_end(&given);
    }
    int found = LAB_FIND(tally.kinds, tally.kind_count, kind, "stability.point");
    assert_true(found >= 0);
    assert_int_equal(tally.kinds[found].wrong, 0);
    lab_selftest_release(&tally);
}

LAB_TEST(too_few_runs_are_not_judged) {
    struct given_study given;
    struct lab_selftest_tally tally = {0};
    given_runs(&given, 1, 2 * LAB_SELFTEST_POINTS - 1, .01, 0);
    assert_false(lab_selftest_judge(&given.table, 1, &tally, &test_arena));
    assert_int_equal(tally.studies, 0);
    assert_contains(lab_selftest_answer(&tally, &test_arena), "Not tested");
    given_end(&given);
}

LAB_TEST(the_answer_names_the_kind_that_fails) {
    struct lab_selftest_kind kinds[] = {{"a.b", 500, 20, 100, 5}, {"c.d", 500, 40, 100, 30}};
    struct lab_selftest_tally tally = {.studies = 100, .kinds = kinds, .kind_count = 1};
    assert_string_equal(lab_selftest_answer(&tally, &test_arena),
                        "No kind of claim is above the 5% limit: 5 of 100 families have a false "
                        "claim (100 studies, 1 kinds of claim).");
    tally.kind_count = 2;
    assert_contains(lab_selftest_answer(&tally, &test_arena), "Above the 5% limit: c.d: 35 of 200");
    assert_true(lab_selftest_holds(&tally, &kinds[0]));
    assert_false(lab_selftest_holds(&tally, &kinds[1]));
}
