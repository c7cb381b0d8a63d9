/* A claim's verdict follows from its interval, its sentence and JSON from the claim. */
#include "model/claim.h"

#include "base/json.h"
#include "base/str.h"

#include <math.h>

#include "test.h"

static struct lab_claim given(double effect, double low, double high, double p, int n) {
    struct lab_claim claim = lab_claim_none;
    claim.kind = "numa.penalty";
    claim.subject = "NUMA node 2";
    claim.reference = "NUMA node 0";
    claim.quantity = "throughput";
    claim.effect = effect;
    claim.low = low;
    claim.high = high;
    claim.confidence = isnan(low) ? (double)NAN : 0.95;
    claim.p = p;
    claim.n = n;
    lab_claim_judge(&claim, p);
    return claim;
}

static void expect(struct lab_claim claim, enum lab_claim_verdict verdict, const char *sentence) {
    assert_string_equal(lab_claim_verdict_name(claim.verdict), lab_claim_verdict_name(verdict));
    assert_string_equal(lab_claim_sentence(&claim, &test_arena), sentence);
}

LAB_TEST(an_effect_needs_its_interval_beyond_zero_and_a_small_p) {
    expect(given(-0.125, -0.138, -0.107, 0.001, 5), LAB_CLAIM_YES,
           "NUMA node 2: 12.5% lower throughput than NUMA node 0 (95% CI [10.7, 13.8]%, 5 runs "
           "each)");
    expect(given(0.031, 0.004, 0.058, 0.03, 5), LAB_CLAIM_YES,
           "NUMA node 2: 3.1% higher throughput than NUMA node 0 (95% CI [0.4, 5.8]%, 5 runs "
           "each)");
    expect(given(-0.9997, -0.9998, -0.9996, 0.001, 5), LAB_CLAIM_YES,
           "NUMA node 2: 99.97% lower throughput than NUMA node 0 (95% CI [99.96, 99.98]%, 5 runs "
           "each)");
    /* one of many: its own p is small, the family's isn't */
    struct lab_claim one = given(0.031, 0.004, 0.058, 0.03, 5);
    lab_claim_judge(&one, 0.4);
    assert_int_equal(one.verdict, LAB_CLAIM_INCONCLUSIVE);
}

LAB_TEST(a_time_of_whatever_clock_is_shorter_or_longer) {
    struct lab_claim claim = given(0.031, 0.004, 0.058, 0.03, 5);
    claim.quantity = "CPU time";
    assert_contains(lab_claim_sentence(&claim, &test_arena), "3.1% longer CPU time than");
}

LAB_TEST(no_effect_comes_with_its_bound) {
    struct lab_claim claim = given(0.001, -0.0062, 0.0078, 0.7, 5);
    expect(claim, LAB_CLAIM_NO,
           "No difference larger than 0.8% in throughput between NUMA node 2 and NUMA node 0 (5 "
           "runs each)");
    assert_true(claim.bound == 0.0078);
    claim.subject =
        "Remote NUMA nodes"; /* a name begins with a capital only where a sentence does */
    assert_contains(lab_claim_sentence(&claim, &test_arena),
                    "between remote NUMA nodes and NUMA node 0");
    /* certain, but too small for anybody to act on */
    assert_int_equal(given(-0.003, -0.004, -0.002, 1e-6, 5).verdict, LAB_CLAIM_NO);
    assert_int_equal(given(0.004, 0.002, 0.0052, 0.001, 3).verdict, LAB_CLAIM_NO);
    claim = given(-0.031, -0.042, -0.019, 0.01, 3); /* of a quantity of which 10% are nothing */
    claim.negligible = 0.1;
    lab_claim_judge(&claim, claim.p);
    assert_int_equal(claim.verdict, LAB_CLAIM_INCONCLUSIVE);
    /* as large as 3%: that isn't none */
    claim = given(0.005, -0.02, 0.03, 0.6, 3);
    claim.needed = 9;
    expect(claim, LAB_CLAIM_INCONCLUSIVE,
           "Inconclusive: NUMA node 2: 0.5% higher throughput than NUMA node 0 (95% CI: 2.0% "
           "lower to 3.0% higher, 3 runs each); 9 runs per point detect 2% (80% power)");
}

/* Where nobody runs what detects 2%, what detects an effect as large as the one measured. */
LAB_TEST(more_runs_are_asked_for_where_they_decide) {
    static const struct {
        double high;
        int needed, decisive, n, runs;
        const char *next;
    } cases[] = {
        {0.2, 9, 4, 3, 9, "9 runs per point detect 2% (80% power)"},
        {-0.1, 30, 4, 3, 5, "5 runs per point detect an effect this large (80% power)"},
        {0.2, 2040, 4, 3, 5, "5 runs per point detect an effect this large (80% power)"},
        {0.2, 2040, 12, 3, 12, "12 runs per point detect an effect this large (80% power)"},
        {0.2, 2040, 12, 12, 12, ""}, /* one of many */
        {0.2, 2040, 51, 3, 2040, "too noisy here: quiet the machine"},
        {0.2, 0, 0, 1, 0, ""},
        {0.2, 39, 0, 2, 5, "2 runs hardly show the spread: run 5 per point"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_claim claim = given(-0.3, -0.7, cases[i].high, 0.4, cases[i].n);
        claim.needed = cases[i].needed;
        claim.decisive = cases[i].decisive;
        assert_int_equal(lab_claim_runs(&claim), cases[i].runs);
        assert_string_equal(lab_claim_next(&claim, &test_arena), cases[i].next);
    }
}

LAB_TEST(from_tenfold_on_an_effect_is_a_factor) {
    expect(given(30.2, 27.9, 32.7, 0.001, 5), LAB_CLAIM_YES,
           "NUMA node 2: throughput 31.2× that of NUMA node 0 (95% CI [28.9, 33.7]×, 5 runs "
           "each)");
    expect(
        given(-0.5, -0.97, 11.4, 0.6, 2), LAB_CLAIM_INCONCLUSIVE,
        "Inconclusive: NUMA node 2: 50.0% lower throughput than NUMA node 0 (95% CI: 97.0% lower "
        "to more than 900% higher, 2 runs each)");
    struct lab_claim claim = given(-0.5, -0.97, 11.4, 0.6, 2);
    assert_string_equal(lab_claim_short(&claim, &test_arena),
                        "-50.0% [-97.0, > 900], inconclusive");
    claim = given(8.9, 8.8, 8.95, 0.001, 2);
    assert_string_equal(lab_claim_short(&claim, &test_arena), "+890.0% [880.0, 895.0]");
}

LAB_TEST(an_open_verdict_may_follow_from_the_correction) {
    struct lab_claim claim = given(0.05, 0.01, 0.09, 0.02, 5);
    assert_false(lab_claim_is_corrected(&claim)); /* there is an effect */
    lab_claim_judge(&claim, 0.06);                /* by the adjusted p */
    assert_true(lab_claim_is_corrected(&claim));
    claim.n = 1; /* which has no verdict whatever its interval */
    assert_false(lab_claim_is_corrected(&claim));
    claim = given(0.03, -0.01, 0.07, 0.2, 5);
    assert_false(lab_claim_is_corrected(&claim));
}

LAB_TEST(one_run_gives_no_verdict) {
    expect(given(-0.5, NAN, NAN, NAN, 1), LAB_CLAIM_INCONCLUSIVE,
           "NUMA node 2: 50.0% lower throughput than NUMA node 0 (1 run each: no interval)");
    expect(given(NAN, NAN, NAN, NAN, 0), LAB_CLAIM_NOT_TESTED, "NUMA node 2: not tested");
}

LAB_TEST(json_has_numbers_and_no_prose) {
    struct lab_claim claim = given(-0.125, -0.138, -0.107, 0.001, 5);
    static const char *const scope[] = {"gpu0_numa0", "gpu0_numa2"};
    claim.scope = scope;
    claim.scope_count = 2;
    claim.simulated = true;
    LAB_AUTO(str, text);
    lab_json_write(lab_claim_value(&claim, &test_arena), 0, &text);
    assert_string_equal(
        text.text,
        "{\"kind\": \"numa.penalty\", \"subject\": \"NUMA node 2\", \"reference\": \"NUMA node "
        "0\", "
        "\"quantity\": \"throughput\", \"effect\": -0.125, \"low\": -0.138, \"high\": -0.107, "
        "\"confidence\": 0.95, \"runs\": 5, \"verdict\": \"yes\", \"bound\": null, "
        "\"scope\": [\"gpu0_numa0\", \"gpu0_numa2\"], \"simulated\": true}");
}

/* Of values that may be 0 or below: the difference, in the metric's unit. */
LAB_TEST(a_difference_is_said_in_its_unit) {
    static const struct {
        const char *unit;
        double effect, low, high, p;
        enum lab_claim_verdict verdict;
        const char *sentence, *brief;
    } cases[] = {
        {"", 12.4, 8.1, 16.7, 0.01, LAB_CLAIM_YES,
         "adam: 12.4 higher reward than sgd (95% CI [8.1, 16.7], 3 runs each)",
         "+12.4 [8.1, 16.7]"},
        {"nats", -0.004, -0.006, -0.002, 0.01, LAB_CLAIM_YES,
         "adam: 0.004 nats lower reward than sgd (95% CI [0.002, 0.006], 3 runs each)",
         "-0.004 nats [-0.006, -0.002]"},
        {"", 0.001, -0.002, 0.004, 0.5, LAB_CLAIM_INCONCLUSIVE,
         "Inconclusive: adam: 0.001 higher reward than sgd (95% CI [-0.002, 0.004], 3 runs each)",
         "+0.001 [-0.002, 0.004], inconclusive"},
    };
    for (int i = 0; i < 3; i++) {
        struct lab_claim claim =
            lab_claim_named(given(cases[i].effect, cases[i].low, cases[i].high, cases[i].p, 3),
                            "metrics.setting", "adam", "sgd", "reward");
        claim.difference = cases[i].unit;
        lab_claim_judge(&claim, cases[i].p);
        expect(claim, cases[i].verdict, cases[i].sentence);
        assert_string_equal(lab_claim_short(&claim, &test_arena), cases[i].brief);
    }
}

LAB_TEST(an_estimate_has_a_unit_and_no_reference) {
    struct lab_claim claim = given(52.1e12, 51.3e12, 52.9e12, NAN, 30);
    claim.subject = "GPU 0";
    claim.quantity = "compute rate";
    claim.unit = "FLOP/s";
    lab_claim_judge(&claim, NAN);
    expect(claim, LAB_CLAIM_YES,
           "GPU 0: compute rate 52.1 TFLOP/s (95% CI [51.3, 52.9] TFLOP/s, 30 runs)");
    assert_string_equal(lab_claim_short(&claim, &test_arena), "52.1 TFLOP/s [51.3, 52.9]");
    claim.high = 1041e12;
    assert_string_equal(lab_claim_short(&claim, &test_arena), "52.1 TFLOP/s [51.3, 1041.0]");
    struct lab_claim work = given(0.521e9, 0.511e9, 0.531e9, NAN, 3); /* one prefix for all */
    work.unit = "FLOP/sample";
    lab_claim_judge(&work, NAN);
    assert_string_equal(lab_claim_short(&work, &test_arena), "0.521 GFLOP/sample [0.511, 0.531]");
    claim.effect = 1e13, claim.low = 9.98e12, claim.high = 1.002e13; /* the same decimals */
    assert_string_equal(lab_claim_short(&claim, &test_arena), "10.00 TFLOP/s [9.98, 10.02]");
    struct lab_claim change = given(-.0004, -.03, .03, NAN, 30);
    lab_claim_judge(&change, 1);
    assert_string_equal(lab_claim_short(&change, &test_arena), "+0.0% [-3.0, 3.0], inconclusive");
    claim.low = claim.high = NAN;
    lab_claim_judge(&claim, NAN);
    expect(claim, LAB_CLAIM_INCONCLUSIVE,
           "Inconclusive: GPU 0: compute rate 10.0 TFLOP/s (30 runs)");
    claim.effect = NAN;
    lab_claim_judge(&claim, NAN);
    expect(claim, LAB_CLAIM_NOT_TESTED, "GPU 0: compute rate not tested");
    claim.verdict = LAB_CLAIM_NO;
    claim.n = 5;
    expect(claim, LAB_CLAIM_NO, "GPU 0: compute rate not within the tested range (5 runs)");
    assert_string_equal(lab_claim_short(&claim, &test_arena), "not within the tested range");
}
