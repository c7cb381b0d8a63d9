/*
 * judge.c: whether a rate is as it should be. Two references: the expected value of the model, with
 * its tolerance; and the peers, GPUs of the same machine in the same place. Peers find what no file
 * knows: one GPU that is 3 % slow. A test may bring a third: what the GPU itself reached before.
 *
 * A GPU fails against its peers when it is below the median of all, itself included, by more than
 * the test's tolerance and by more than four times their spread. The spread is the scaled median of
 * absolute deviations: one slow GPU hardly moves it, while GPUs that differ by nature widen it.
 */
#include "check/check_internal.h"

#include "base/list.h"
#include "stats/stats.h"

#define PEERS_LEAST 3   /* of two that differ, nobody knows which is slow */
#define SPREADS     4.0 /* that a GPU may be below its peers */

static bool is_measured(const struct lab_check_finding *finding) {
    return !isnan(finding->measured) &&
           (finding->verdict == LAB_CHECK_PASS || finding->verdict == LAB_CHECK_FAIL);
}

/* Median and spread of those of its group, itself among them; how many. */
static int find_peers(const struct check_run *run, int first, int count,
                      const struct lab_check_finding *finding, double *ret_median,
                      double *ret_spread) {
    LAB_AUTO_FREE double *values = lab_mem_alloc((size_t)count, sizeof *values);
    size_t n = 0;
    for (int i = first; i < first + count; i++)
        if (is_measured(&run->findings[i]) && finding->group &&
            lab_str_equal(run->findings[i].group, finding->group))
            values[n++] = run->findings[i].measured;
    *ret_median = n ? lab_stats_median(values, n) : NAN;
    *ret_spread = n ? lab_stats_mad(values, n, true) : NAN;
    return (int)n;
}

static const struct lab_expected_value *expected_of(const struct check_run *run,
                                                    const struct lab_check_finding *finding) {
    const struct lab_expected *expected =
        finding->gpu >= 0 ? check_expected(run, finding->gpu) : NULL;
    return expected && finding->key ? lab_expected_get(expected, finding->key) : NULL;
}

void check_judge_one(struct check_run *run, int first, int count, int index) {
    struct lab_check_finding *finding = &run->findings[first + index];
    const struct lab_check_test *test = finding->test;
    double median = NAN, spread = NAN, peers_least = NAN, expected_least = NAN;
    if (finding->verdict != LAB_CHECK_PASS || isnan(finding->measured))
        return;
    int peers =
        test->peer_tolerance > 0 ? find_peers(run, first, count, finding, &median, &spread) : 0;
    if (peers >= PEERS_LEAST)
        peers_least = median - fmax(test->peer_tolerance * median, SPREADS * spread);
    const struct lab_expected_value *value = expected_of(run, finding);
    if (value)
        expected_least = value->value * (1 - value->tolerance);
    double own = finding->expected, own_least = finding->least; /* NaN = the test has none */
    /* the strictest reference decides, and is shown; of NaN and a number, the number */
    finding->least = fmax(fmax(peers_least, expected_least), own_least);
    if (finding->least == peers_least)
        finding->expected = median;
    else if (value && finding->least == expected_least)
        finding->expected = value->value;
    if (value && finding->measured < expected_least) {
        finding->verdict = LAB_CHECK_FAIL;
        finding->expected = value->value;
        finding->least = expected_least;
        finding->reason = lab_arena_printf(
            run->arena, "%.4g %s, %.1f%% below the expected %.4g (%s)", finding->measured,
            test->unit, 100 * (1 - finding->measured / value->value), value->value,
            check_expected(run, finding->gpu)->origin);
    } else if (finding->measured < peers_least) {
        finding->verdict = LAB_CHECK_FAIL;
        finding->expected = median;
        finding->least = peers_least;
        finding->reason = lab_arena_printf(
            run->arena, "%.4g %s, %.1f%% below the median of %d %s, %.4g", finding->measured,
            test->unit, 100 * (1 - finding->measured / median), peers,
            finding->peer >= 0   ? "pairs"
            : finding->node >= 0 ? "such copies"
                                 : "GPUs",
            median);
    } else if (finding->measured < own_least) {
        finding->verdict = LAB_CHECK_FAIL;
        finding->expected = own;
        finding->least = own_least;
        finding->reason =
            lab_arena_printf(run->arena, "%.4g %s, %.1f%% below what %s, %.4g", finding->measured,
                             test->unit, 100 * (1 - finding->measured / own),
                             finding->peer >= 0 ? "its NVLinks carry" : "it reached before", own);
    } else if (isnan(finding->least)) {
        check_skip(finding, "not judged: no expected value of its model, fewer than 3 peers");
    }
}

void check_judge(struct check_run *run, int first, int count) {
    /* all against all as they were measured: a verdict changes nobody's peers */
    for (int i = 0; i < count; i++)
        check_judge_one(run, first, count, i);
}
