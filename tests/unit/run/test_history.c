/* How long runs will take, from those that are done. */
#include "history_fixture.h"

/* --- one run --- */

LAB_TEST(the_same_work_takes_its_median) {
    /* one of them was disturbed; they differ in nothing but the repeat */
    struct lab_run runs[] = {done_run(1, 10), done_run(2, 12), done_run(3, 90)};
    struct lab_history *history = history_of(runs, 3);
    struct lab_run run = planned_run(4);
    run.repeat = 3;
    assert_expects(history, &run, LAB_HISTORY_SAME, 12);
    lab_history_close(history);
}

LAB_TEST(power_is_that_of_the_same_options_or_of_the_workload) {
    static const double energies_j[] = {1000, 1200, NAN}; /* in 10 s each */
    struct lab_result results[3];
    struct lab_run runs[] = {done_run(1, 10), done_run(2, 10), done_run(3, 10)};
    struct lab_run same = planned_run(4), other = planned_run(5), strange = planned_run(6);
    runs[1].options = "{\"depth\": 8}";
    other.options = "{\"depth\": 12}";
    strange.workload = "gemm";
    for (int i = 0; i < 3; i++) {
        results[i] = lab_result_none;
        results[i].energy_j = energies_j[i];
        runs[i].result = &results[i];
    }
    struct lab_history *history = history_of(runs, 3);
    assert_float_equal(lab_history_power_w(history, &same), 100, 1e-9);
    assert_float_equal(lab_history_power_w(history, &other), 110, 1e-9);
    assert_true(isnan(lab_history_power_w(history, &strange)));
    lab_history_close(history);
}

LAB_TEST(other_counts_and_places_are_scaled_by_iterations) {
    struct lab_run runs[] = {done_run(1, 12)}; /* 0.1 s for each of 120 */
    struct lab_history *history = history_of(runs, 1);
    struct lab_run longer = planned_run(2), elsewhere = planned_run(3);
    longer.iterations = 1000;
    longer.warmup_iterations = 0;
    elsewhere.ranks = &on_node1;
    assert_expects(history, &longer, LAB_HISTORY_SCALED, 100);
    assert_expects(history, &elsewhere, LAB_HISTORY_SCALED, 12);
    lab_history_close(history);
}

LAB_TEST(what_a_run_takes_beside_its_iterations_is_not_scaled) {
    /* 100 iterations from 4 s to 9 s of it, so 0.05 s each; with 20 to warm up they take 6 of 10
     * s */
    struct lab_run runs[] = {done_run(1, 10)};
    set_span(&runs[0], 4, 9);
    struct lab_history *history = history_of(runs, 1);
    struct lab_run longer = planned_run(2), shorter = planned_run(3);
    longer.iterations = 980;
    shorter.iterations = 0;
    assert_expects(history, &longer, LAB_HISTORY_SCALED, 4 + 50);
    assert_expects(history, &shorter, LAB_HISTORY_SCALED, 4 + 1);
    assert_expects(history, &runs[0], LAB_HISTORY_SAME, 10);
    lab_history_close(history);
}

LAB_TEST(a_span_that_cannot_be_is_passed_over) {
    const double spans[][2] = {{-1, 9}, {4, 11}, {9, 4}, {0, 10}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        struct lab_run runs[] = {done_run(1, 12)};
        runs[0].end_ns = runs[0].start_ns + 10 * S;
        set_span(&runs[0], spans[i][0], spans[i][1]);
        struct lab_history *history = history_of(runs, 1);
        struct lab_run longer = planned_run(2);
        longer.iterations = 220;
        assert_expects(history, &longer, LAB_HISTORY_SCALED, 20); /* twice as many in all */
        lab_history_close(history);
    }
}

LAB_TEST(other_options_go_by_their_work) {
    struct lab_run runs[] = {done_run(1, 12), done_run(2, 24)};
    runs[1].options = "{\"depth\": 12}";
    struct lab_history *history = history_of(runs, 2);
    struct lab_run deeper = planned_run(3), other = planned_run(4), program = planned_run(5);
    enum lab_history_basis basis;
    deeper.options = "{\"depth\": 24}";
    other.workload = "gemm";
    double seconds = lab_history_expect(history, &deeper, &basis);
    assert_int_equal(basis, LAB_HISTORY_WORK);
    assert_true(seconds > 40 && seconds < 56); /* twice as deep again */
    assert_expects(history, &other, LAB_HISTORY_NONE, NAN);
    runs[0].workload = runs[1].workload = program.workload = "nobody counts it";
    program.options = "{}";
    lab_history_add(history, &runs[0]);
    lab_history_add(history, &runs[1]);
    assert_int_equal(program.rank_count, 1);
    lab_history_close(history);
    history = history_of(runs, 2);
    assert_expects(history, &program, LAB_HISTORY_SIMILAR, 18);
    lab_history_close(history);
}

/* A program with other settings takes about what it did; another program says nothing of it. */
LAB_TEST(programs_are_known_by_their_commands) {
    struct lab_run runs[] = {done_run(1, 12), done_run(2, 24)}, same, other;
    runs[0].workload = runs[1].workload = "command";
    runs[0].options = "{\"command\": \"a {lr}\", \"matrix\": {\"lr\": 1}}";
    runs[1].options = "{\"command\": \"b {lr}\", \"matrix\": {\"lr\": 1}}";
    struct lab_history *history = history_of(runs, 2);
    same = other = planned_run(3);
    same.workload = other.workload = "command";
    same.options = "{\"command\": \"a {lr}\", \"matrix\": {\"lr\": 2}}";
    other.options = "{\"command\": \"c {lr}\", \"matrix\": {\"lr\": 1}}";
    assert_expects(history, &same, LAB_HISTORY_SIMILAR, 12);
    assert_expects(history, &other, LAB_HISTORY_NONE, NAN);
    lab_history_close(history);
}

/* Given earlier studies in which everything was twice as fast, then own runs correct what only
 * those know. */
LAB_TEST(own_runs_outweigh_earlier_ones) {
    struct lab_run earlier[] = {done_run(1, 10), done_run(2, 30)}, own = done_run(3, 20);
    struct lab_run other = planned_run(4), same = planned_run(5);
    earlier[1].options = other.options = "{\"depth\": 12}";
    struct lab_history *history = lab_history_open(MACHINE, 0, NULL);
    lab_history_add_earlier(history, &earlier[0]);
    lab_history_add_earlier(history, &earlier[1]);
    assert_expects(history, &other, LAB_HISTORY_SAME, 30);
    lab_history_add(history, &own);
    assert_expects(history, &same, LAB_HISTORY_SAME, 20);
    assert_expects(history, &other, LAB_HISTORY_SAME, 60);
    lab_history_close(history);
}

LAB_TEST(a_gang_is_other_work_than_one_of_its_ranks) {
    const struct lab_run_rank gang[] = {on_node0, on_node1};
    struct lab_run runs[] = {done_run(1, 12), done_run(2, 30)};
    runs[1].ranks = gang;
    runs[1].rank_count = 2;
    struct lab_history *history = history_of(runs, 2);
    struct lab_run run = planned_run(3);
    assert_expects(history, &run, LAB_HISTORY_SAME, 12);
    lab_history_close(history);
}

LAB_TEST(only_what_is_done_counts_and_only_once) {
    struct lab_run runs[] = {done_run(1, 10), done_run(1, 10), done_run(2, 20), running_run(3),
                             done_run(4, 1000)};
    runs[4].state = LAB_RUN_FAILED;
    struct lab_history *history = history_of(runs, 5);
    struct lab_run run = planned_run(5);
    assert_expects(history, &run, LAB_HISTORY_SAME, 15);
    lab_history_close(history);
}

/* It took its limit and would again; how long another failure or another limit took tells nothing. */
LAB_TEST(a_run_that_timed_out_takes_its_limit) {
    struct lab_run late = done_run(0, 600), other = planned_run(0);
    late.state = LAB_RUN_FAILED;
    late.error = LAB_RUN_TIMED_OUT "600 s in phase measuring";
    other.iterations = 220;
    struct lab_history *history = history_of(&late, 1);
    assert_expects(history, &late, LAB_HISTORY_SAME, 600);
    assert_expects(history, &other, LAB_HISTORY_SCALED, 1200);
    lab_history_close(history);
    late.error = "lost its device";
    history = history_of(&late, 1);
    assert_expects(history, &other, LAB_HISTORY_NONE, NAN);
    lab_history_close(history);
    late.error = LAB_RUN_TIMED_OUT "600 s in phase measuring";
    history = history_of(NULL, 0);
    lab_history_add_earlier(history, &late);
    assert_expects(history, &other, LAB_HISTORY_NONE, NAN);
    lab_history_close(history);
}

LAB_TEST(many_groups_are_kept_apart) {
    struct lab_history *history = lab_history_open(MACHINE, 0, NULL);
    for (int i = 1; i <= 1000; i++) {
        struct lab_run run = done_run(i, i);
        run.options = lab_arena_printf(&arena, "{\"depth\": %d}", i);
        lab_history_add(history, &run);
    }
    for (int i = 1; i <= 1000; i++) {
        struct lab_run run = planned_run(2000 + i);
        run.options = lab_arena_printf(&arena, "{\"depth\": %d}", i);
        assert_expects(history, &run, LAB_HISTORY_SAME, i);
    }
    lab_history_close(history);
}

/* --- what earlier studies left --- */

LAB_TEST(earlier_studies_of_this_machine_count) {
    const char *ours = in_root("outputs/quick_test/2026-11-14/10-00-00");
    const char *foreign = in_root("outputs/quick_test/2026-11-15/10-00-00");
    const char *broken = in_root("outputs/quick_test/2026-11-16/10-00-00");
    make_study(ours, PLAN, MACHINE, 2); /* 2 s a run */
    make_study(foreign, PLAN, MACHINE + 1, 2);
    make_directories(broken);
    write_file(lab_arena_printf(&arena, "%s/study.db", broken), "no database");
    lab_folder_register(ours);
    lab_folder_register(foreign);
    lab_folder_register(broken);
    struct lab_run run = {
        .workload = "null", .options = "{}", .iterations = 30, .ranks = &on_node1, .rank_count = 1};
    struct lab_history *history = lab_history_open(MACHINE, 1, NULL); /* others don't use it up */
    assert_expects(history, &run, LAB_HISTORY_SCALED, 6);
    lab_history_close(history);
    history = lab_history_open(MACHINE + 2, 10, NULL);
    assert_expects(history, &run, LAB_HISTORY_NONE, NAN);
    lab_history_close(history);
    lab_history_close(NULL);
}

/* --- a study --- */

static struct lab_estimate estimate(const struct lab_run *runs, int count,
                                    const struct lab_run_progress *progress, int64_t now_ns,
                                    int max_workers) {
    struct lab_history *history = history_of(runs, count);
    struct lab_estimate result =
        lab_history_estimate(history, runs, count, progress, progress ? 1 : 0, now_ns, max_workers);
    lab_history_close(history);
    return result;
}

LAB_TEST(what_is_left_is_the_sum_of_what_is_expected) {
    struct lab_run runs[] = {done_run(1, 10), planned_run(2), planned_run(3), planned_run(4)};
    runs[3].state = LAB_RUN_FAILED;
    struct lab_estimate result = estimate(runs, 4, NULL, 0, 1);
    assert_float_equal(result.left_s, 30, 1e-6);
    assert_float_equal(result.elapsed_s, 10, 1e-6);
    assert_int_equal(result.unknown, 0);
    result = estimate(runs, 4, NULL, 0, 2);
    assert_float_equal(result.left_s, 15, 1e-6);
    result = estimate(runs, 4, NULL, 0, 100); /* a run isn't shared */
    assert_float_equal(result.left_s, 10, 1e-6);
}

LAB_TEST(a_finished_study_has_nothing_left) {
    struct lab_run runs[] = {done_run(1, 10)};
    assert_float_equal(estimate(runs, 1, NULL, 0, 1).left_s, 0, 0);
    assert_float_equal(estimate(runs, 0, NULL, 0, 1).left_s, 0, 0);
}

LAB_TEST(unknown_runs_count_as_the_mean_of_the_known) {
    struct lab_run runs[] = {done_run(1, 10), planned_run(2), planned_run(3)};
    runs[2].workload = "gemm";
    struct lab_estimate result = estimate(runs, 3, NULL, 0, 1);
    assert_int_equal(result.unknown, 1);
    assert_float_equal(result.left_s, 20, 1e-6);
    runs[1] = runs[2]; /* nothing but what is done is known */
    result = estimate(runs, 3, NULL, 0, 1);
    assert_int_equal(result.unknown, 2);
    assert_float_equal(result.left_s, 20, 1e-6);
    result = estimate(&runs[1], 2, NULL, 0, 1); /* nothing at all */
    assert_int_equal(result.unknown, 2);
    assert_true(isnan(result.left_s));
}

/* Given runs of models from depth 1 to 24, each 0.3 s and so much for its work, 10 % off either
 * way, in an order of their own: from the first on there is a total, and when a third is done it is
 * within 30 %. */
LAB_TEST(a_third_of_the_runs_tells_the_rest) {
    enum { MOST = 48 };
    for (int count = 12; count <= MOST; count *= 2) {
        struct lab_run runs[MOST];
        double truth_s[MOST], left_s = 0;
        for (int i = 0; i < count; i++) {
            int depth = 1 + i * 7 % count % 24;
            truth_s[i] = (0.3 + 0.12 * depth) * (1 + 0.1 * (i * 5 % 3 - 1));
            runs[i] = planned_run(i + 1);
            runs[i].options = lab_arena_printf(&arena, "{\"depth\": %d}", depth);
        }
        for (int i = 0; i < count / 3; i++) {
            struct lab_run done = done_run(i + 1, truth_s[i]);
            done.options = runs[i].options;
            runs[i] = done;
            assert_true(estimate(runs, count, NULL, 0, 1).left_s > 0);
        }
        for (int i = count / 3; i < count; i++)
            left_s += truth_s[i];
        assert_float_equal(estimate(runs, count, NULL, 0, 1).left_s / left_s, 1, 0.3);
    }
}

/* Given a simulated run, then one of a larger model is expected to take as long: it computes
 * nothing. */
LAB_TEST(simulated_work_takes_no_longer) {
    static const struct lab_run_rank simulated = {.device = "sim:l40s-10:0"};
    for (int i = 0; i < 2; i++) {
        struct lab_run runs[] = {done_run(1, 1), planned_run(2)};
        runs[1].options = "{\"depth\": 24}";
        for (int k = 0; i == 0 && k < 2; k++)
            runs[k].ranks = &simulated;
        double left_s = estimate(runs, 2, NULL, 0, 1).left_s;
        assert_true(i == 0 ? fabs(left_s - 1) < 1e-6 : left_s > 1.5);
    }
}

LAB_TEST(below_5_percent_a_run_goes_by_history) {
    struct lab_run runs[] = {done_run(1, 10), running_run(2)};
    struct lab_run_progress progress = {2, "measuring", 4, 100, 101 * S};
    assert_float_equal(estimate(runs, 2, &progress, 103 * S, 1).left_s, 7, 1e-6);
    progress.phase = "warm-up";
    progress.done = 90; /* of the warm-up, which says nothing about the rest */
    assert_float_equal(estimate(runs, 2, &progress, 103 * S, 1).left_s, 7, 1e-6);
    assert_float_equal(estimate(runs, 2, NULL, 103 * S, 1).left_s, 7, 1e-6);
    assert_float_equal(estimate(runs, 2, NULL, 900 * S, 1).left_s, 0, 1e-6); /* overdue */
    progress.phase = "measuring";
    progress.total = 0; /* measures for a time, not a number */
    assert_float_equal(estimate(runs, 2, &progress, 103 * S, 1).left_s, 7, 1e-6);
}

LAB_TEST(from_5_percent_on_it_goes_by_its_own_progress) {
    /* 20 to warm up and 40 of 100 done in 6 s: 0.1 s each, whatever took 1 s before */
    struct lab_run runs[] = {done_run(1, 1), running_run(2)};
    struct lab_run_progress progress = {2, "measuring", 40, 100, 106 * S};
    assert_float_equal(estimate(runs, 2, &progress, 106 * S, 1).left_s, 6, 1e-6);
    assert_float_equal(estimate(runs, 2, &progress, 108 * S, 1).left_s, 4, 1e-6);
    assert_float_equal(estimate(runs, 2, &progress, 200 * S, 1).left_s, 0, 1e-6);
    progress.done = 100;
    assert_float_equal(estimate(runs, 2, &progress, 106 * S, 1).left_s, 0, 1e-6);
    progress.done = 5;
    progress.time_ns = 105 * S; /* 25 in 5 s */
    assert_float_equal(estimate(runs, 2, &progress, 105 * S, 1).left_s, 19, 1e-6);
}

/* Given a run under way that nothing is known of, then it takes what others took less what it has. */
LAB_TEST(an_unknown_run_under_way_has_had_some_of_the_mean) {
    struct lab_run runs[] = {done_run(1, 10), running_run(2)};
    runs[1].workload = "gemm";
    assert_float_equal(estimate(runs, 2, NULL, 103 * S, 1).left_s, 7, 1e-6);
    assert_float_equal(estimate(runs, 2, NULL, 150 * S, 1).left_s, 0, 1e-6);
    assert_int_equal(estimate(runs, 2, NULL, 103 * S, 1).guessed, 1);
    runs[0].workload = runs[1].workload = "nobody counts it"; /* by the mean of its workload */
    runs[1].options = "{}";
    assert_int_equal(estimate(runs, 2, NULL, 103 * S, 1).guessed, 1);
    runs[1] = running_run(2);
    runs[0] = done_run(1, 10);
    assert_int_equal(estimate(runs, 2, NULL, 103 * S, 1).guessed, 0);
}

LAB_TEST(its_own_progress_needs_no_history) {
    struct lab_run runs[] = {running_run(1), planned_run(2)};
    runs[1].workload = "gemm";
    struct lab_run_progress progress = {1, "measuring", 40, 100, 106 * S};
    struct lab_estimate result = estimate(runs, 2, &progress, 106 * S, 1);
    assert_int_equal(result.unknown, 1);
    assert_float_equal(result.left_s, 6 + 12, 1e-6); /* the other as long as this one in all */
}

LAB_TEST(nonsense_in_a_file_does_no_harm) {
    struct lab_run runs[] = {done_run(1, 10), running_run(2)};
    struct lab_run_progress progress = {2, "measuring", 200, 100, 101 * S};
    assert_float_equal(estimate(runs, 2, &progress, 103 * S, 1).left_s, 7, 1e-6);
    progress.done = -5;
    assert_float_equal(estimate(runs, 2, &progress, 103 * S, 1).left_s, 7, 1e-6);
    runs[1].start_ns = 500 * S; /* another boot's clock */
    assert_float_equal(estimate(runs, 2, NULL, 103 * S, 0).left_s, 10, 1e-6);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
