/*
 * What differs between labels. Intervals were computed with R 4.2: t.test() for absolute
 * differences, var(), qt() and the delta method written out for relative ones.
 */
#include "analysis/analysis_change.h"
#include "base/random.h"
#include "recording_fixture.h"
#include "stats/stats.h"

static const double first[] = {50000, 50400, 49700};
static const double higher[] = {54800, 55500, 55150}, same[] = {50300, 49900, 50350};

static struct lab_change compare(const double *a, int a_count, const double *b, int b_count) {
    struct lab_change_side one = lab_change_side_single(a, a_count);
    struct lab_change_side other = lab_change_side_single(b, b_count);
    return lab_change_make(&one, &other);
}

/* --- several recordings each --- */

LAB_TEST_WITH(recordings_are_the_unit, given_setup, given_teardown) {
    struct given *f = *state;
    struct lab_change change = compare(first, 3, higher, 3);
    assert_near(change.share, 0.1022651565623, 1e-10);
    assert_near(change.low, 0.0854786353165, 1e-10);
    assert_near(change.high, 0.1190516778081, 1e-10);
    assert_int_equal(change.verdict, LAB_CHANGE_HIGHER);
    assert_string_equal(lab_change_text(&change, &f->arena), "+10.2 % [+8.5, +11.9]");
    change = compare(higher, 3, first, 3);
    assert_int_equal(change.verdict, LAB_CHANGE_LOWER);
    change = compare(first, 3, same, 3);
    assert_near(change.low, -0.01143814591201, 1e-10);
    assert_near(change.high, 0.01743414857690, 1e-10);
    assert_int_equal(change.verdict, LAB_CHANGE_SAME);
    assert_string_equal(lab_change_words(&change, &f->arena),
                        "within 1.8 %"); /* 1.743, rounded up */
}

/* Two recordings each of a load near 0: Student's t alone would let it fall by more than all. */
LAB_TEST(nothing_falls_by_more_than_all_of_it) {
    static const double idle[] = {0.1, 0.9}, busier[] = {0.2, 0.7};
    struct lab_change change = compare(idle, 2, busier, 2);
    assert_near(change.low, -1, 0);
    assert_true(change.high > 1);
    assert_int_equal(change.verdict, LAB_CHANGE_SAME);
}

/* One recording against three: the three's spread stands for both, with its degrees of freedom. */
LAB_TEST(one_against_several_borrows_their_spread) {
    struct lab_change change = compare(first, 1, higher, 3);
    assert_near(change.share, 0.103, 1e-12);
    assert_near(change.low, 0.0655033813939, 1e-10);
    assert_near(change.high, 0.1404966186061, 1e-10);
    assert_false(change.within);
}

/* Degrees have no ratio: 60, 62, 61 against 66, 69, 66 are 6 °C [2.45, 9.55] by t.test(). */
LAB_TEST_WITH(temperatures_differ_by_degrees, given_setup, given_teardown) {
    struct given *f = *state;
    static const double cool[] = {60, 62, 61}, warm[] = {66, 69, 66};
    struct lab_change_side one = lab_change_side_single(cool, 3),
                           other = lab_change_side_single(warm, 3);
    struct lab_change change = lab_change_make_absolute(&one, &other);
    assert_near(change.share, 6, 1e-12);
    assert_near(change.low, 2.45180278051, 1e-9);
    assert_near(change.high, 9.54819721949, 1e-9);
    assert_string_equal(lab_change_text(&change, &f->arena), "+6.0 °C [+2.5, +9.5]");
}

/* Three such texts stand beside each other in 80 columns. */
LAB_TEST_WITH(changes_of_any_size_are_told_in_few_columns, given_setup, given_teardown) {
    static const struct {
        double share, low, high;
        const char *text;
    } cases[] = {
        {-0.591, -0.708, -0.475, "-59.1 % [-70.8, -47.5]"},
        {1.234, 0.998, 1.5, "+123 % [+100, +150]"},
        {12.3456, -20.5, 45.25, "+1235 % [-2050, +4525]"},
        {0.5, -1234, 1235, "+50 % [< -10k, > +10k]"},
        {400, 300, 500, "> +10k %"},
        {0.5, NAN, NAN, "+50.0 %"},
    };
    LAB_AUTO(arena, arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_change change = {
            .share = cases[i].share, .low = cases[i].low, .high = cases[i].high};
        assert_string_equal(lab_change_text(&change, &arena), cases[i].text);
    }
}

LAB_TEST_WITH(what_isnt_there_cant_be_told, given_setup, given_teardown) {
    struct given *f = *state;
    static const double none[] = {NONE}, zero[] = {0, 0}, some[] = {3, 4};
    struct lab_change change = compare(none, 1, first, 3);
    assert_int_equal(change.verdict, LAB_CHANGE_UNKNOWN);
    assert_string_equal(lab_change_text(&change, &f->arena), "–");
    assert_int_equal(compare(zero, 2, some, 2).verdict, LAB_CHANGE_UNKNOWN);
    assert_int_equal(compare(zero, 2, zero, 2).verdict, LAB_CHANGE_SAME);
    change = compare(first, 1, higher, 1);
    assert_int_equal(change.verdict, LAB_CHANGE_SINGLE);
    assert_string_equal(lab_change_text(&change, &f->arena), "+9.6 %");
}

/* --- one recording each --- */

static void fill_correlated(double *values, int count, double keep, double mean, uint64_t seed) {
    double now = 0;
    for (int i = -50; i < count; i++) { /* so many until where it began is forgotten */
        double noise = 0;
        for (int k = 0; k < 12; k++)
            noise += lab_random_uniform(seed, (uint64_t)((i + 50) * 12 + k));
        now = keep * now + (noise - 6);
        if (i >= 0)
            values[i] = mean + now;
    }
}

static struct lab_change compare_within(const double *a, const double *b, int count) {
    struct lab_change_side one = {NULL, 1, lab_change_mean_make(a, (size_t)count)};
    struct lab_change_side other = {NULL, 1, lab_change_mean_make(b, (size_t)count)};
    one.values = &one.within.mean;
    other.values = &other.within.mean;
    return lab_change_make(&one, &other);
}

/*
 * Given pairs of series with the same mean whose neighbours depend on each other (0.8), an interval
 * at 95 % should leave 0 out in 5 % of them; one that takes samples as independent does so in about
 * half.
 */
LAB_TEST(neighbours_that_depend_dont_make_differences) {
    enum { PAIRS = 300, VALUES = 300 };
    int wrong = 0, naive_wrong = 0;
    for (uint64_t pair = 0; pair < PAIRS; pair++) {
        double a[VALUES], b[VALUES];
        fill_correlated(a, VALUES, 0.8, 100, 2 * pair);
        fill_correlated(b, VALUES, 0.8, 100, 2 * pair + 1);
        struct lab_change change = compare_within(a, b, VALUES);
        wrong += change.low > 0 || change.high < 0;
        double distance = lab_stats_mean(b, VALUES) - lab_stats_mean(a, VALUES);
        double sd_a = lab_stats_stddev(a, VALUES), sd_b = lab_stats_stddev(b, VALUES);
        naive_wrong += fabs(distance) > 1.96 * sqrt((sd_a * sd_a + sd_b * sd_b) / VALUES);
    }
    assert_true(wrong < PAIRS / 10);
    assert_true(naive_wrong > PAIRS / 3);
}

LAB_TEST(large_differences_within_recordings_are_found) {
    double a[300], b[300];
    fill_correlated(a, 300, 0.8, 100, 1);
    fill_correlated(b, 300, 0.8, 110, 2);
    struct lab_change change = compare_within(a, b, 300);
    assert_int_equal(change.verdict, LAB_CHANGE_HIGHER);
    assert_true(change.within && change.low < 0.1 && change.high > 0.1);
    fill_correlated(b, 300, 0, 101, 2);
    fill_correlated(a, 300, 0, 100, 1);
    assert_int_equal(compare_within(a, b, 300).verdict, LAB_CHANGE_SMALL);
}

LAB_TEST(too_few_samples_tell_nothing) {
    static const double a[] = {1, 2, 3}, b[] = {7, 8, 9};
    assert_int_equal(compare_within(a, b, 3).verdict, LAB_CHANGE_SINGLE);
}

/* --- the whole --- */

static void add_recording(struct given *f, const char *name, const char *label, double power) {
    given_recording(f, name, label);
    for (int g = 0; g < 2; g++) {
        struct lab_track *gpu = given_gpu(f, g);
        for (int t = 0; t < 50; t++)
            given_tick(gpu, t, 1000 + 10 * (t % 10), 50 + t % 2, power + (t % 5 - 2), 60 + g);
    }
}

static const struct lab_doc_cell *metric(const struct given *f, const char *name,
                                         const char *column) {
    for (int row = 0; row < table(f, 0, "metrics")->row_count; row++)
        if (lab_str_equal(cell(f, 0, "metrics", row, "metric")->text, name))
            return cell(f, 0, "metrics", row, column);
    fail_msg("no metric '%s'", name);
    return NULL;
}

/* The same but for power: 100 W against 130 W on each GPU. */
LAB_TEST_WITH(only_what_differs_is_said_to, given_setup, given_teardown) {
    struct given *f = *state;
    add_recording(f, "before", "before", 100);
    add_recording(f, "after", "after", 130);
    when_analysed(f, "compare", NULL);
    assert_int_equal(f->result.part_count, 1);
    assert_string_equal(metric(f, "power", "verdict")->text, "higher");
    assert_near(metric(f, "power", "first")->value, 200, 1e-9);
    assert_near(metric(f, "power", "second")->value, 260, 1e-9);
    assert_near(metric(f, "power", "change")->value, 0.3, 1e-9);
    assert_string_equal(metric(f, "memory", "unit")->text, "MiB");
    assert_string_equal(metric(f, "memory", "verdict")->text, "same");
    assert_near(metric(f, "memory_peak", "second")->value, 2180, 1e-9);
    assert_string_equal(metric(f, "memory_peak", "verdict")->text, "single");
    assert_near(metric(f, "energy", "change")->value, 0.3, 1e-9);
    assert_true(isnan(metric(f, "temperature", "change")->value));
    assert_near(metric(f, "temperature", "difference")->value, 0, 1e-9);
    assert_contains(f->result.answer, "after against before: power 30.0 % [");
    assert_contains(f->result.answer, "; no difference larger than ");
    assert_near(cell(f, 0, "gpus", 1, "power_change")->value, 0.3, 1e-9);
    assert_true(has_note(f->result.notes, "within one recording each"));
}

/* Powers 98 to 102 and 128 to 132, ten bins of 3.4 W: the first has 98 to 101.4 (four of five
 * values) and 102 in the next one; the last bin has 129 to 132, the one before 128. */
LAB_TEST_WITH(histograms_count_samples, given_setup, given_teardown) {
    struct given *f = *state;
    add_recording(f, "before", "before", 100);
    add_recording(f, "after", "after", 130);
    when_analysed(f, "compare", NULL);
    assert_int_equal(table(f, 0, "power_histogram")->row_count, 10);
    assert_near(cell(f, 0, "power_histogram", 0, "from_w")->value, 98, 1e-9);
    assert_near(cell(f, 0, "power_histogram", 9, "to_w")->value, 132, 1e-9);
    assert_near(cell(f, 0, "power_histogram", 0, "first")->value, 0.8, 1e-9);
    assert_near(cell(f, 0, "power_histogram", 1, "first")->value, 0.2, 1e-9);
    assert_near(cell(f, 0, "power_histogram", 8, "second")->value, 0.2, 1e-9);
    assert_near(cell(f, 0, "power_histogram", 9, "second")->value, 0.8, 1e-9);
    when_analysed(f, "compare", "bins=0");
    assert_null(table(f, 0, "power_histogram"));
}

LAB_TEST_WITH(one_label_is_not_enough, given_setup, given_teardown) {
    struct given *f = *state;
    add_recording(f, "a", "same", 100);
    add_recording(f, "b", "same", 100);
    ASSERT_FAILS(ask(f, "compare", NULL, err), LAB_ERR_USER, "only same is there: name two");
}
