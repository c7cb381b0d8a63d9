/* Claims that are shown together agree; the weaker of two that don't is withdrawn, and said. */
#include "analysis/claims/check.h"

#include <math.h>

#include "test.h"

static struct lab_claim given(const char *kind, enum lab_claim_verdict verdict, double effect,
                              double low, double high, double p) {
    struct lab_claim claim = lab_claim_none;
    claim.kind = kind;
    claim.subject = "NUMA node 2";
    claim.reference = "NUMA node 0";
    claim.quantity = "throughput";
    claim.verdict = verdict;
    claim.effect = effect;
    claim.low = low;
    claim.high = high;
    claim.confidence = .95;
    claim.p = p;
    claim.n = 5;
    claim.bound = verdict == LAB_CLAIM_NO ? fmax(fabs(low), fabs(high)) : (double)NAN;
    return claim;
}

static const char *check(struct lab_claim *a, struct lab_claim *b) {
    struct lab_claim *claims[] = {a, b};
    const char *const *faults = NULL;
    lab_claims_check(claims, b ? 2 : 1, true, &faults, &test_arena);
    return faults ? faults[0] : NULL;
}

LAB_TEST(claims_that_agree_stay) {
    struct lab_claim yes = given("a.x", LAB_CLAIM_YES, -.12, -.14, -.1, .001),
                     no = given("b.x", LAB_CLAIM_NO, .001, -.004, .006, .6), same = yes,
                     lone = given("a.y", LAB_CLAIM_INCONCLUSIVE, .3, NAN, NAN, NAN);
    assert_null(check(&yes, &no));
    assert_null(check(&yes, &same));
    assert_null(check(&lone, NULL));
    assert_int_equal(yes.verdict, LAB_CLAIM_YES);
}

LAB_TEST(a_verdict_needs_its_interval) {
    struct {
        struct lab_claim claim;
        const char *why;
    } rows[] = {
        {given("a.x", LAB_CLAIM_YES, .02, -.01, .05, .04), "its interval includes 0"},
        {given("a.x", LAB_CLAIM_YES, .06, .01, .05, .01), "its effect is outside its interval"},
        {given("a.x", LAB_CLAIM_YES, .3, NAN, NAN, NAN), "no interval over runs"},
        {given("a.x", LAB_CLAIM_NO, .01, -.02, .02, .5), "its bound is below its effect"},
    };
    rows[3].claim.bound = .005;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_contains(check(&rows[i].claim, NULL), rows[i].why);
        assert_int_equal(rows[i].claim.verdict, LAB_CLAIM_INCONCLUSIVE);
        assert_true(isnan(rows[i].claim.bound));
    }
}

LAB_TEST(the_weaker_of_two_opposite_claims_is_withdrawn) {
    struct lab_claim strong = given("a.x", LAB_CLAIM_YES, -.12, -.14, -.1, .001),
                     weak = given("b.y", LAB_CLAIM_YES, .05, .01, .09, .03);
    const char *fault = check(&weak, &strong);
    assert_contains(fault, "5.0% higher throughput than NUMA node 0");
    assert_contains(fault, "12.0% lower throughput");
    assert_int_equal(weak.verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_int_equal(strong.verdict, LAB_CLAIM_YES);
}

LAB_TEST(one_comparison_has_one_effect_and_verdict) {
    struct lab_claim yes = given("a.x", LAB_CLAIM_YES, -.12, -.14, -.1, .001), other = yes;
    other.effect = -.11;
    assert_non_null(check(&yes, &other));
    struct lab_claim no = given("a.x", LAB_CLAIM_NO, .001, -.004, .006, .6);
    assert_non_null(check(&yes, &no));
    assert_int_equal(no.verdict, LAB_CLAIM_INCONCLUSIVE);
}
