/* What of a run counts for others: its span, its power, its work; and which runs are asked first. */
#include "history_fixture.h"

/* --- several ranks, and the device's clock --- */

/* Given ranks that measured at other times, then all of them count; one without times is passed
 * over. */
LAB_TEST(the_span_is_that_of_all_ranks) {
    static const double spans_s[][2] = {{6, 9}, {4, 8}, {5, 7}};
    const struct lab_run_rank gang[] = {on_node0, on_node1, on_node0, on_node1};
    struct lab_result results[5];
    struct lab_run run = done_run(1, 10), longer = planned_run(2);
    for (int i = 0; i < 5; i++)
        results[i] = lab_result_none;
    results[0].ranks = &results[1];
    results[0].rank_count = run.rank_count = longer.rank_count = 4;
    for (int i = 0; i < 3; i++) {
        results[2 + i].first_ns = run.start_ns + (int64_t)(spans_s[i][0] * S);
        results[2 + i].last_ns = run.start_ns + (int64_t)(spans_s[i][1] * S);
    }
    run.ranks = longer.ranks = gang;
    run.result = results;
    struct lab_history *history = history_of(&run, 1);
    longer.iterations = 980;
    assert_expects(history, &longer, LAB_HISTORY_SCALED, 4 + 50);
    assert_float_equal(lab_history_device_step_s(history, &longer), 0.05, 1e-9);
    lab_history_close(history);
}

/* A span may be all of the run, or begin or end with it. */
LAB_TEST(a_span_at_either_end_counts) {
    static const double spans_s[][2] = {{0, 5}, {5, 10}};
    for (int i = 0; i < 2; i++) {
        struct lab_run run = done_run(1, 10), longer = planned_run(2);
        set_span(&run, spans_s[i][0], spans_s[i][1]);
        struct lab_history *history = history_of(&run, 1);
        longer.iterations = 180;
        assert_expects(history, &longer, LAB_HISTORY_SCALED, 4 + 10);
        lab_history_close(history);
    }
}

LAB_TEST(the_devices_step_is_of_real_devices_that_iterated) {
    static const struct lab_run_rank simulated = {.device = "sim:l40s-10:0"};
    static const struct {
        const struct lab_run_rank *ranks;
        int rank_count;
        int64_t iterations;
        double last_s, step_s;
    } cases[] = {{&on_node0, 1, 100, 9, 0.05}, {&on_node0, 1, 1, 9, 5},
                 {&on_node0, 1, 0, 9, NAN},    {&simulated, 1, 100, 9, NAN},
                 {NULL, 0, 100, 9, NAN},       {&on_node0, 1, 100, 4, NAN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_run run = done_run(1, 10);
        run.iterations = cases[i].iterations;
        run.ranks = cases[i].ranks;
        run.rank_count = cases[i].rank_count;
        set_span(&run, 4, cases[i].last_s);
        struct lab_history *history = history_of(&run, 1);
        double step_s = lab_history_device_step_s(history, &run);
        assert_true(isnan(cases[i].step_s) ? isnan(step_s) : fabs(step_s - cases[i].step_s) < 1e-9);
        lab_history_add_device_step(history, &run, 7);
        lab_history_add_device_step(history, &run, 8);
        assert_float_equal(lab_history_device_step_s(history, &run),
                           isnan(cases[i].step_s) ? 7.5 : 7, 1e-9);
        lab_history_close(history);
    }
}

/* --- what says little --- */

LAB_TEST(what_takes_no_time_or_does_nothing_is_no_measure) {
    struct lab_run run = done_run(1, 0), other = planned_run(2), brief = done_run(3, 0.5);
    other.iterations = 220;
    struct lab_history *history = history_of(&run, 1);
    assert_expects(history, &other, LAB_HISTORY_NONE, NAN);
    lab_history_add(history, &brief);
    assert_expects(history, &other, LAB_HISTORY_SCALED, 1);
    lab_history_close(history);
    /* no iteration at all: a run of the workload, no more; one is enough */
    for (int warm_up = 0; warm_up < 2; warm_up++) {
        run = done_run(1, 10);
        run.iterations = 0;
        run.warmup_iterations = warm_up;
        history = history_of(&run, 1);
        assert_expects(history, &other, warm_up ? LAB_HISTORY_SCALED : LAB_HISTORY_SIMILAR,
                       warm_up ? 2400 : 10);
        lab_history_close(history);
    }
    /* nor is there anything to be scaled to */
    run = done_run(1, 10);
    history = history_of(&run, 1);
    other.iterations = other.warmup_iterations = 0;
    other.options = "{\"depth\": 12}";
    assert_expects(history, &other, LAB_HISTORY_SIMILAR, 10);
    assert_true(lab_history_expect(history, &other, NULL) == 10);
    other.options = NULL;
    assert_expects(history, &other, LAB_HISTORY_SIMILAR, 10);
    assert_float_equal(lab_history_work(history, &other), 0, 0);
    lab_history_close(history);
}

LAB_TEST(no_energy_is_no_power) {
    static const double energies_j[] = {0, -1, NAN, 0.5};
    for (int i = 0; i < 4; i++) {
        struct lab_result result = lab_result_none;
        struct lab_run run = done_run(1, 10);
        result.energy_j = energies_j[i];
        run.result = &result;
        struct lab_history *history = history_of(&run, 1);
        double power_w = lab_history_power_w(history, &run);
        assert_true(i < 3 ? isnan(power_w) : fabs(power_w - 0.05) < 1e-12);
        lab_history_close(history);
    }
}

/* --- by work --- */

/* A run of 120 steps of this length, of a model so deep. */
static struct lab_run deep_run(int64_t number, int depth, double step_s) {
    struct lab_run run = done_run(number, 120 * step_s);
    run.options = lab_arena_printf(&arena, "{\"depth\": %d}", depth);
    return run;
}

/* step = a + b · work, neither below 0. */
LAB_TEST(steps_follow_the_line_of_least_relative_error) {
    static const struct {
        int depths[2];
        double steps_s[2];
        enum { HALF, LINE, LEVEL } how;
    } cases[] = {
        {{6, 6}, {0.1, 0.1}, HALF}, {{6, 12}, {0.1, 0.11}, LINE}, {{6, 12}, {0.2, 0.1}, LEVEL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double *s = cases[i].steps_s;
        struct lab_run runs[3], wanted = planned_run(9);
        for (int k = 0; k < 2; k++)
            runs[k] = deep_run(k + 1, cases[i].depths[k], s[k]);
        runs[2] = done_run(3, 77);
        runs[2].options = "{"; /* whose work is unknown */
        wanted.options = "{\"depth\": 24}";
        struct lab_history *history = history_of(runs, 3);
        double w0 = lab_history_work(history, &runs[0]), w1 = lab_history_work(history, &runs[1]);
        double w = lab_history_work(history, &wanted);
        assert_true(w > w1 && w1 >= w0 && w0 > 0);
        double steps[] = {[HALF] = s[0] * (0.5 + 0.5 * w / w0),
                          [LINE] = s[0] + (s[1] - s[0]) * (w - w0) / (w1 - w0),
                          [LEVEL] = (1 / s[0] + 1 / s[1]) / (1 / s[0] / s[0] + 1 / s[1] / s[1])};
        assert_expects(history, &wanted, LAB_HISTORY_WORK, 120 * steps[cases[i].how]);
        lab_history_close(history);
    }
}

LAB_TEST(work_that_is_unknown_is_no_measure) {
    struct lab_run run = done_run(1, 77), wanted = planned_run(2);
    run.options = "{";
    struct lab_history *history = history_of(&run, 1);
    assert_true(lab_history_work(history, &wanted) > 0);
    assert_expects(history, &wanted, LAB_HISTORY_SIMILAR, 77);
    lab_history_close(history);
}

/* --- own and earlier ones --- */

LAB_TEST(the_better_basis_is_taken_own_ones_first) {
    static const struct {
        double own_s; /* of 100 iterations, of depth 6; earlier ones took 10 s */
        int depth;    /* of the earlier one */
        int64_t iterations;
        enum lab_history_basis basis;
        double expected_s;
    } cases[] = {
        {0, 6, 100, LAB_HISTORY_SAME, 10},   {0, 6, 220, LAB_HISTORY_SCALED, 20},
        {30, 6, 100, LAB_HISTORY_SAME, 30},  {30, 6, 220, LAB_HISTORY_SCALED, 60},
        {30, 12, 100, LAB_HISTORY_SAME, 30}, {30, 12, 220, LAB_HISTORY_SCALED, 60},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_history *history = lab_history_open(MACHINE, 0, NULL);
        struct lab_run earlier = deep_run(1, cases[i].depth, 10 / 120.0), own = done_run(2, 0);
        struct lab_run run = planned_run(3);
        own.end_ns += (int64_t)(cases[i].own_s * S);
        run.iterations = cases[i].iterations;
        lab_history_add_earlier(history, &earlier);
        lab_history_add(history, &own);
        assert_expects(history, &run, cases[i].basis, cases[i].expected_s);
        lab_history_close(history);
    }
}

/* Earlier ones of the same options, own ones of others: corrected by what own ones took, at most
 * tenfold. */
LAB_TEST(a_correction_is_tenfold_at_most) {
    static const double own_s[] = {0.01, 5, 20, 9000}, expected_s[] = {3, 15, 60, 300};
    for (int i = 0; i < 4; i++) {
        struct lab_history *history = lab_history_open(MACHINE, 0, NULL);
        struct lab_run earlier[] = {deep_run(1, 6, 10 / 120.0), deep_run(2, 12, 30 / 120.0)};
        struct lab_run own = done_run(3, own_s[i]), run = planned_run(4), like = planned_run(5);
        lab_history_add_earlier(history, &earlier[0]);
        lab_history_add_earlier(history, &earlier[1]);
        lab_history_add(history, &own);
        run.options = earlier[1].options;
        like.options = "{\"depth\": 24}";
        assert_expects(history, &run, LAB_HISTORY_SAME, expected_s[i]);
        enum lab_history_basis basis; /* of the same rank the own one */
        double seconds = lab_history_expect(history, &like, &basis);
        assert_int_equal(basis, LAB_HISTORY_WORK);
        assert_float_equal(seconds,
                           own_s[i] * (0.5 + 0.5 * lab_history_work(history, &like) /
                                                 lab_history_work(history, &own)),
                           1e-6 * own_s[i]);
        lab_history_close(history);
    }
}

LAB_TEST(the_newest_studies_are_read_and_the_own_one_counts_as_read) {
    const char *newest = in_root("outputs/quick_test/2026-11-16/10-00-00");
    const char *older = in_root("outputs/quick_test/2026-11-15/10-00-00");
    make_study(newest, PLAN, MACHINE, 1); /* 2 s, of 10 iterations */
    make_study(older, PLAN, MACHINE, 0);
    struct lab_store *store;
    assert_works(lab_store_open(lab_arena_printf(&arena, "%s/study.db", older), LAB_STORE_WRITE,
                                &store, &err));
    finish_run(store, 1, LAB_RUN_DONE, 8.0);
    lab_store_close(store);
    lab_folder_register(older);
    lab_folder_register(newest);
    struct lab_run run = {
        .workload = "null", .options = "{}", .iterations = 10, .ranks = &a_rank, .rank_count = 1};
    static const struct {
        int most;
        bool own;
        double expected_s;
    } cases[] = {{0, false, NAN}, {1, false, 2}, {1, true, NAN}, {2, true, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_history *history =
            lab_history_open(MACHINE, cases[i].most, cases[i].own ? newest : NULL);
        bool none = isnan(cases[i].expected_s);
        assert_expects(history, &run, none ? LAB_HISTORY_NONE : LAB_HISTORY_SAME,
                       cases[i].expected_s);
        lab_history_close(history);
    }
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
