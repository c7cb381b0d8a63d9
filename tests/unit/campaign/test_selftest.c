/* Verdicts on nothing are counted: names are interleaved, drift fools only those who don't. */
#include "unit/analysis/study_fixture.h"

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
                                            .rate = 1000 * (1 - drift * i) *
                                                    (1 + spread * given_normal(given))});
}

LAB_TEST(the_same_thing_is_rarely_found_to_differ) {
    struct lab_selftest_tally tally = {0};
    enum { STUDIES = 400 };
    for (uint64_t i = 0; i < STUDIES; i++) {
        struct given_study given;
        given_runs(&given, 1000 * i, 10, .01, 0);
        assert_true(lab_selftest_judge(&given.table, i, &tally));
        given_end(&given);
    }
    assert_int_equal(tally.studies, STUDIES);
    assert_true(tally.alarms > 0 && tally.alarms < STUDIES / 10);
    assert_true(lab_selftest_holds(tally.alarms, STUDIES));
    assert_int_equal(tally.spreads, STUDIES);
    assert_true(lab_selftest_holds(tally.alarms_spread, STUDIES));
    lab_selftest_release(&tally);
}

LAB_TEST(drift_fools_only_those_who_take_turns) {
    struct lab_selftest_tally tally = {0};
    for (uint64_t i = 0; i < 50; i++) {
        struct given_study given;
        given_runs(&given, 1000 * i, 10, .002, .005);
        lab_selftest_judge(&given.table, i, &tally);
        given_end(&given);
    }
    assert_int_equal(tally.alarms_in_turn, 50);
    assert_true(tally.alarms < 5);
    lab_selftest_release(&tally);
}

LAB_TEST(too_few_runs_are_not_judged) {
    struct given_study given;
    struct lab_selftest_tally tally = {0};
    given_runs(&given, 1, 3, .01, 0);
    assert_false(lab_selftest_judge(&given.table, 1, &tally));
    assert_int_equal(tally.studies, 0);
    assert_true(lab_str_starts(lab_selftest_answer(&tally, 5, &given.arena), "No A/A study"));
    given_end(&given);
}

LAB_TEST(the_answer_is_as_sure_as_the_studies_allow) {
    LAB_AUTO(arena, arena);
    struct lab_selftest_tally few = {.studies = 10, .alarms = 1},
                              many = {.studies = 1000, .alarms = 50},
                              bad = {.studies = 100, .alarms = 20};
    assert_contains(lab_selftest_answer(&few, 5, &arena), "can't rule out more");
    assert_contains(lab_selftest_answer(&many, 5, &arena), "in 50 of 1000 A/A studies");
    assert_null(strstr(lab_selftest_answer(&many, 5, &arena), "can't rule out"));
    assert_contains(lab_selftest_answer(&bad, 5, &arena), "more than the 5 % they promise");
    assert_false(lab_selftest_holds(20, 100));
}
