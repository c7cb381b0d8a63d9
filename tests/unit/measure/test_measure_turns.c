/* The loop around its subjects: several that take turns, what comes before each, who watches and
 * stops. */
#include "measure_fixture.h"

/* --- one by one ---------------------------------------------------------------------------- */

static int emptied; /* how often, outside of what is timed */

static int empty_caches(void *state, struct lab_err *err) {
    (void)state, (void)err;
    emptied++;
    now_ns += 7 * MS;
    return 0;
}

static int refuse_to_empty(void *state, struct lab_err *err) {
    (void)state;
    return lab_err_set(err, LAB_ERR_MEMORY, "no room to empty them");
}

static double mhz_now;
static double falling_clock(void *state) {
    (void)state;
    return mhz_now -= 10;
}

LAB_TEST(what_comes_before_an_iteration_is_not_in_its_time) {
    struct fake a = {.letter = 'a', .duration_ns = steady_1ms};
    struct fake b = {.letter = 'b', .duration_ns = steady_1ms};
    struct lab_subject subjects[] = {
        {.name = "a", .run = run_fake, .state = &a, .before = empty_caches},
        {.name = "b", .run = run_fake, .state = &b, .before = empty_caches}};
    struct lab_measure_plan plan = plan_by_hand();
    struct lab_measurement m[2];
    plan.iterations = 30;
    plan.warmup_iterations = 2;
    plan.chunk_iterations = 3;
    plan.clock_mhz = falling_clock;
    mhz_now = 2000;
    emptied = 0;
    ASSERT_OK(lab_measure(&plan, subjects, 2, &test_arena, m, err));
    assert_int_equal(emptied, 2 * (30 + 2));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(m[i].count, 30);
        assert_int_equal(m[i].interval.n, 0); /* they are no neighbours */
        assert_ptr_equal(lab_measure_primary(&m[i]), &m[i].latency);
        assert_true(fabs(m[i].latency.median - 1e-3) < 2e-5);
        assert_true(m[i].wall_s > 0.029 && m[i].wall_s < 0.031);
        assert_int_equal(m[i].round_count, 10);
        assert_int_equal(m[i].round_ends[0], 3);
        assert_int_equal(m[i].round_ends[9], 30);
        assert_true(m[i].clock_max_mhz > m[i].clock_min_mhz);
        assert_true(m[i].warnings & LAB_WARN_CLOCK);
    }
    assert_int_equal(a.longest, 1);
    subjects[1].before = refuse_to_empty;
    ASSERT_FAILS(lab_measure(&plan, subjects, 2, &test_arena, m, err), LAB_ERR_MEMORY, "");
}

/* --- several subjects ---------------------------------------------------------------------- */

static int64_t steady_2ms(int64_t index) {
    return noisy(2 * MS, 0.02, index);
}

static int measure_three(uint64_t seed, struct fake fakes[3], struct lab_measurement ret[3],
                         struct lab_err *err) {
    struct lab_subject subjects[3] = {{"alpha", run_fake, &fakes[0]},
                                      {"beta", run_fake, &fakes[1]},
                                      {"gamma", run_fake, &fakes[2]}};
    struct lab_measure_plan plan = plan_by_hand();
    plan.seed = seed;
    return lab_measure(&plan, subjects, 3, &test_arena, ret, err);
}

LAB_TEST(subjects_take_turns_in_random_order) {
    char orders[2][sizeof run_order];
    for (int run = 0; run < 2; run++) {
        set_up(NULL);
        struct fake fakes[3] = {{'a', steady_1ms}, {'b', steady_2ms}, {'c', wild_1ms}};
        struct lab_measurement m[3];
        ASSERT_OK(measure_three(42, fakes, m, err));
        memcpy(orders[run], run_order, sizeof run_order);
        assert_string_equal(m[1].name, "beta");
        assert_true(fabs(m[1].interval.median - 2e-3) < 4e-5);
        /* from the first measured round to the last, each ran once a round */
        assert_int_equal(m[0].chunk_count, m[1].chunk_count);
        assert_int_equal(m[0].chunk_count, m[2].chunk_count);
        lab_arena_release(&test_arena);
    }
    assert_string_equal(orders[0], orders[1]);
    size_t length = strlen(orders[0]), rounds = 0, different = 0;
    for (size_t i = length % 3; i + 6 <= length; i += 3, rounds++)
        different += memcmp(orders[0] + i, orders[0] + i + 3, 3) != 0;
    assert_true(rounds > 5 && different > 0);
    for (size_t i = length - 9; i < length; i += 3) { /* whole rounds at the end */
        assert_non_null(memchr(orders[0] + i, 'a', 3));
        assert_non_null(memchr(orders[0] + i, 'b', 3));
        assert_non_null(memchr(orders[0] + i, 'c', 3));
    }
    set_up(NULL);
    struct fake fakes[3] = {{'a', steady_1ms}, {'b', steady_2ms}, {'c', wild_1ms}};
    struct lab_measurement m[3];
    ASSERT_OK(measure_three(43, fakes, m, err));
    assert_string_not_equal(run_order, orders[0]);
}

LAB_TEST(a_failing_subject_is_named) {
    struct fake fakes[3] = {{'a', steady_1ms}, {'b', steady_2ms, .fails_at = 150}, {'c', wild_1ms}};
    struct lab_measurement m[3];
    memset(m, 0x5a, sizeof m);
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(measure_three(42, fakes, m, &err), -1);
    assert_int_equal(err.code, LAB_ERR_MEMORY);
    assert_string_equal(err.text, "beta: no room for 8 GB");
    for (size_t i = 0; i < sizeof m; i++)
        assert_int_equal(((unsigned char *)m)[i], 0x5a);
}

static int64_t backwards(int64_t index) {
    return index == 3 ? -5 : MS;
}

LAB_TEST(records_that_make_no_sense_are_refused) {
    struct fake fake = {.letter = 'a', .duration_ns = backwards};
    struct lab_subject subject = {"odd", run_fake, &fake};
    struct lab_measure_plan plan = plan_by_hand();
    struct lab_measurement m;
    ASSERT_FAILS(lab_measure(&plan, &subject, 1, &test_arena, &m, err), LAB_ERR_WRONG,
                 "odd: iteration");
}

/* --- progress ------------------------------------------------------------------------------ */

struct watch {
    int calls, stop_at;
    enum lab_measure_phase stop_phase;
    struct lab_measure_progress last[2];
    bool fell;
};

static bool watch_progress(const struct lab_measure_progress *progress, void *state) {
    struct watch *watch = state;
    struct lab_measure_progress *last = &watch->last[progress->phase];
    watch->fell = watch->fell || progress->fraction < last->fraction || progress->fraction > 1;
    *last = *progress;
    watch->calls += progress->phase == watch->stop_phase;
    return watch->stop_at > 0 && watch->calls == watch->stop_at &&
           progress->phase == watch->stop_phase;
}

LAB_TEST(progress_only_grows) {
    struct fake fake = {.letter = 'a', .duration_ns = wild_1ms};
    struct watch watch = {.stop_phase = LAB_MEASURE_MEASURE};
    struct lab_measure_plan plan = plan_by_hand();
    plan.progress = watch_progress;
    plan.progress_state = &watch;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_false(watch.fell);
    const struct lab_measure_progress *last = &watch.last[LAB_MEASURE_MEASURE];
    assert_true(last->fraction == 1);
    assert_true(last->left_s == 0);
    assert_int_equal(last->iterations, m.count);
    assert_string_equal(last->name, "fake");
    assert_true(last->median_s == m.interval.median);
    assert_true(last->precision == m.precision);
    assert_int_equal(watch.calls, m.chunk_count);
}

LAB_TEST(the_user_can_stop_it_and_keep_what_there_is) {
    struct fake fake = {.letter = 'a', .duration_ns = wild_1ms};
    struct watch watch = {.stop_phase = LAB_MEASURE_MEASURE, .stop_at = 2};
    struct lab_measure_plan plan = plan_by_hand();
    plan.progress = watch_progress;
    plan.progress_state = &watch;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.stop, LAB_MEASURE_STOPPED);
    assert_int_equal(m.chunk_count, 2);
    assert_true(m.count > 0 && !isnan(m.interval.median));
    assert_false(m.warnings & LAB_WARN_NOT_PRECISE);
}

LAB_TEST(stopped_while_warming_up_there_is_nothing) {
    struct fake fake = {.letter = 'a', .duration_ns = wild_1ms};
    struct watch watch = {.stop_phase = LAB_MEASURE_WARMUP, .stop_at = 1};
    struct lab_measure_plan plan = plan_by_hand();
    plan.progress = watch_progress;
    plan.progress_state = &watch;
    struct lab_measurement m = measure_one(plan, &fake);
    assert_int_equal(m.stop, LAB_MEASURE_STOPPED);
    assert_int_equal(m.count, 0);
    assert_int_equal(m.latency.n, 0);
    assert_true(isnan(m.latency.median) && isnan(m.precision) && isnan(m.overlap));
    assert_int_equal(m.warnings, 0);
}

/* --- loops side by side -------------------------------------------------------------------- */

struct partner { /* stands for the other loops: none of its stretches is longer than that */
    int64_t most;
    int asked, fails_at;
};

static int agree_with_partner(void *state, int64_t own, int64_t *ret_size, struct lab_err *err) {
    struct partner *partner = state;
    assert_true(own >= 1);
    if (++partner->asked == partner->fails_at)
        return lab_err_set(err, LAB_ERR_INTERRUPTED, "the other loop has ended");
    *ret_size = own < partner->most ? own : partner->most;
    return 0;
}

LAB_TEST(loops_side_by_side_have_the_stretches_that_they_agree_on) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct partner partner = {.most = 37}; /* alone it would be 100 */
    struct lab_measure_plan plan = plan_by_hand();
    plan.iterations = 200;
    plan.warmup_iterations = 60;
    plan.agree = agree_with_partner;
    plan.agree_state = &partner;
    struct lab_measurement m = measure_one(plan, &fake);
    /* a first one of 1, one of 10, then 37 each but for the last of each phase */
    static const int ends[] = {37, 74, 111, 148, 185, 200};
    assert_int_equal(m.chunk_count, sizeof ends / sizeof *ends);
    assert_memory_equal(m.chunk_ends, ends, sizeof ends);
    assert_int_equal(fake.longest, 37);
    assert_int_equal(m.warmup_iterations, 60);
    assert_int_equal(partner.asked, fake.chunks);
}

LAB_TEST(loops_that_do_not_agree_end) {
    struct fake fake = {.letter = 'a', .duration_ns = steady_1ms};
    struct partner partner = {.most = 37, .fails_at = 5};
    struct lab_subject subject = {"together", run_fake, &fake};
    struct lab_measure_plan plan = plan_by_hand();
    struct lab_measurement m;
    struct lab_err err = LAB_ERR_INIT;
    plan.iterations = 200;
    plan.warmup_iterations = 60;
    plan.agree = agree_with_partner;
    plan.agree_state = &partner;
    assert_int_equal(lab_measure(&plan, &subject, 1, &test_arena, &m, &err), -1);
    assert_int_equal(err.code, LAB_ERR_INTERRUPTED);
    assert_string_equal(err.text, "together: the other loop has ended");
    assert_int_equal(fake.chunks, 4);
}

const struct lab_test_program lab_test_program = {.set_up = set_up};
