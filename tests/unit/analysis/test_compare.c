/* What differs between labels, over their recordings. Intervals were computed with R 4.2. */
#include "recording_fixture.h"

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

/* One recording each: 100 W against 130 W on each GPU are values, and no verdict. */
LAB_TEST_WITH(one_recording_each_gives_values_and_no_verdict, given_setup, given_teardown) {
    struct given *f = *state;
    add_recording(f, "before", "before", 100);
    add_recording(f, "after", "after", 130);
    when_analysed(f, "compare", NULL);
    assert_int_equal(f->result.part_count, 1);
    assert_near(metric(f, "power", "first")->value, 200, 1e-9);
    assert_near(metric(f, "power", "second")->value, 260, 1e-9);
    assert_near(metric(f, "power", "change")->value, 0.3, 1e-9);
    assert_true(isnan(metric(f, "power", "change")->low));
    assert_string_equal(metric(f, "memory", "unit")->text, "MiB");
    assert_near(metric(f, "memory_peak", "second")->value, 2180, 1e-9);
    assert_near(metric(f, "energy", "change")->value, 0.3, 1e-9);
    assert_true(isnan(metric(f, "temperature", "change")->value)); /* degrees have no ratio */
    assert_near(metric(f, "temperature", "difference")->value, 0, 1e-9);
    assert_near(cell(f, 0, "gpus", 1, "power_change")->value, 0.3, 1e-9);
    for (int i = 0; i < f->result.claim_count; i++)
        assert_int_equal(f->result.claims[i].verdict, LAB_CLAIM_INCONCLUSIVE);
    assert_string_equal(f->result.answer, "after and before: inconclusive (1 recording each): "
                                          "utilisation +0.0%, memory +0.0%, power +30.0%.");
}

/* t.test(log(b), log(a)) of the totals 200, 202, 199 and 220, 223, 221 W: exp() of its interval. */
LAB_TEST_WITH(recordings_are_the_unit, given_setup, given_teardown) {
    struct given *f = *state;
    static const double power[] = {100, 101, 99.5, 110, 111.5, 110.5};
    for (int i = 0; i < 6; i++)
        add_recording(f, lab_arena_printf(&f->arena, "r%d", i), i < 3 ? "a" : "b", power[i]);
    when_analysed(f, "compare", NULL);
    assert_string_equal(metric(f, "power", "change_verdict")->text, "yes");
    assert_near(metric(f, "power", "change")->value, 0.1048, 1e-4);
    assert_near(metric(f, "power", "change")->low, 0.0864, 5e-4);
    assert_near(metric(f, "power", "change")->high, 0.1235, 5e-4);
    assert_string_equal(metric(f, "memory", "change_verdict")->text, "no");
    assert_contains(f->result.answer, "b: 10.5% higher power than a (95% CI [");
    assert_contains(f->result.answer, "No difference in utilisation, memory.");
    assert_string_equal(cell(f, 0, "gpus", 0, "power_change_verdict")->text, "yes");
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
