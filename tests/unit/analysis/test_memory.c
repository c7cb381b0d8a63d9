/* Which label takes the least memory, on recordings whose answers can be worked out by hand. */
#include "recording_fixture.h"

/* Two GPUs, one of which peaks while the other doesn't: 10 s of `base`, then 10 s with 1000 MiB
 * more on the first, then 10 s with 1000 more on the second. */
static void add_in_turns(struct given *f, const char *name, const char *label, double base) {
    given_recording(f, name, label);
    struct lab_track *first = given_gpu(f, 0), *second = given_gpu(f, 1);
    for (int t = 0; t < 30; t++) {
        given_tick(first, t, base + (t / 10 == 1 ? 1000 : 0), 50, 100, 60);
        given_tick(second, t + 0.01, base + (t / 10 == 2 ? 1000 : 0), 50, 100, 60);
    }
}

/* Each GPU's peak is base + 1000, but together they never had more than one of those. */
LAB_TEST(peaks_at_different_times_dont_add_up) {
    struct given *f = *state;
    add_in_turns(f, "turns", "turns", 4000);
    when_analysed(f, "memory", NULL);
    assert_near(figure(f, 0, "total_peak_mib")->value, 9000, 1e-6);
    assert_near(figure(f, 0, "sum_of_peaks_mib")->value, 10000, 1e-6);
    assert_near(figure(f, 0, "total_mean_mib")->value, 8000 + 2 * 1000 / 3.0, 1e-6);
    assert_near(figure(f, 0, "fullest_share")->value, 5000 / 24576.0, 1e-9);
    assert_near(cell(f, 0, "gpus", 1, "mean_mib")->value, 4000 + 1000 / 3.0, 1e-6);
    assert_null(f->result.notes);
}

/*
 * Three recordings each, of which only the mean counts: totals 50000, 50400, 49700 and 54800,
 * 55500,
 * 55150. The interval of the ratio by R 4.2, with var(), qt() and the delta method written out:
 * 0.10226516 [0.08547864, 0.11905168].
 */
LAB_TEST(the_best_comes_first_and_others_are_held_against_it) {
    struct given *f = *state;
    static const double more[] = {54800, 55500, 55150}, less[] = {50000, 50400, 49700};
    for (int i = 0; i < 6; i++) {
        const char *label = i < 3 ? "adam" : "pruned";
        given_recording(f, lab_arena_printf(&f->arena, "%s_%d", label, i % 3), label);
        struct lab_track *gpu = given_gpu(f, 0);
        for (int t = 0; t < 10; t++)
            given_tick(gpu, t, i < 3 ? more[i] : less[i - 3], 50, 100, 60);
    }
    when_analysed(f, "memory", NULL);
    assert_int_equal(f->result.part_count, 2);
    assert_string_equal(f->result.parts[0].name, "pruned");
    assert_string_equal(figure(f, 0, "verdict")->text, "best");
    const struct lab_doc_cell *change = figure(f, 1, "change");
    assert_near(change->value, 0.1022651565623, 1e-9);
    assert_near(change->low, 0.0854786353165, 1e-9);
    assert_near(change->high, 0.1190516778081, 1e-9);
    assert_string_equal(figure(f, 1, "verdict")->text, "higher");
    assert_int_equal((int)figure(f, 1, "recordings")->value, 3);
    assert_contains(f->result.answer, "pruned takes the least memory (50033.3 MB)");
    assert_true(has_note(f->result.notes, "from the spread between the recordings"));
    assert_near(cell(f, 1, "gpus", 0, "change")->low, 0.0854786353165, 1e-9);
}

/* One recording each, half a percent apart: no verdict, whatever the interval says. */
LAB_TEST(small_differences_of_single_recordings_get_no_verdict) {
    struct given *f = *state;
    for (int i = 0; i < 2; i++) {
        given_recording(f, i ? "b" : "a", i ? "b" : "a");
        struct lab_track *gpu = given_gpu(f, 0);
        for (int t = 0; t < 40; t++)
            given_tick(gpu, t, 10000 + 50.0 * i, 50, 100, 60);
    }
    when_analysed(f, "memory", NULL);
    assert_string_equal(figure(f, 1, "verdict")->text, "ambiguous");
    assert_contains(f->result.answer, "not for certain");
    assert_true(has_note(f->result.notes, "within one recording each"));
}

/* Recordings of a label that are far apart bound nothing: that isn't "as much". */
LAB_TEST(what_may_be_twice_as_much_is_not_said_to_be_as_much) {
    struct given *f = *state;
    static const double megabytes[] = {8000, 14000, 9000, 15000};
    for (int i = 0; i < 4; i++) {
        given_recording(f, lab_arena_printf(&f->arena, "r%d", i), i < 2 ? "a" : "b");
        struct lab_track *gpu = given_gpu(f, 0);
        for (int t = 0; t < 10; t++)
            given_tick(gpu, t, megabytes[i], 50, 100, 60);
    }
    when_analysed(f, "memory", NULL);
    assert_string_equal(figure(f, 1, "verdict")->text, "same");
    assert_contains(f->result.answer, "b can't be told from a: no difference larger than ");
}

/* Nothing varies and nothing differs: a bound of nothing is 0, not -0. */
LAB_TEST(no_difference_at_all_is_a_plain_zero) {
    struct given *f = *state;
    for (int i = 0; i < 4; i++) {
        given_recording(f, lab_arena_printf(&f->arena, "r%d", i), i < 2 ? "a" : "b");
        struct lab_track *gpu = given_gpu(f, 0);
        for (int t = 0; t < 10; t++)
            given_tick(gpu, t, 10000, 50, 100, 60);
    }
    when_analysed(f, "memory", NULL);
    assert_string_equal(figure(f, 1, "verdict")->text, "same");
    assert_contains(f->result.parts[1].answer, "no difference larger than 0.0 %.");
}

const struct lab_test_program lab_test_program = {.set_up = given_setup,
                                                  .tear_down = given_teardown};
