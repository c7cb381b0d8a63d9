/* A study on disk as reports see it. */
#include "unit/run/folder_fixture.h"

#include "base/clock.h"
#include "load/study_view.h"

#include <math.h>

static const char *a_study(int done) {
    const char *folder = in_root("outputs/quick_test/2026-11-14/10-00-00");
    make_study(folder, PLAN, MACHINE, done);
    return folder;
}

static bool hold(const void *what) {
    static struct lab_folder folder;
    const struct lab_folder_request request = {.output_dir = what,
                                               .study = "quick_test",
                                               .identity = PLAN,
                                               .machine_identity = MACHINE,
                                               .resume = true,
                                               .command = "gpulab run quick"};
    return lab_folder_open(&request, &folder, &err) == 0;
}

LAB_TEST(an_interrupted_study_says_what_is_left) {
    struct lab_study_view view;
    assert_works(lab_study_view_look(a_study(1), true, &arena, &view, &err));
    assert_string_equal(view.report.name, "quick_test");
    assert_string_equal(view.report.option, "quick");
    assert_string_equal(view.report.command, "gpulab run quick");
    assert_int_equal(view.report.run_count, 2);
    assert_int_equal(view.counts[LAB_RUN_DONE], 1);
    assert_int_equal(view.counts[LAB_RUN_PLANNED], 1);
    assert_false(view.report.running);
    assert_string_equal(view.report.holder, "");
    assert_float_equal(view.report.left_s, 2, 1e-6); /* as long as its sister */
    assert_float_equal(view.estimate.elapsed_s, 2, 1e-6);
    assert_false(view.report.simulated);
    assert_int_equal(view.max_workers, 1);
}

/* Its machine says so, not a device's name that has the letters. */
LAB_TEST(a_simulated_study_is_known_without_its_runs) {
    static const struct {
        const char *machine, *config;
        bool simulated;
    } cases[] = {{"{\"simulated\": true}", "device: sim:l40s-10\n", true},
                 {"{\"simulated\": false}", "device: cuda:gpu-sim:0\n", false},
                 {"{\"host\": {\"simulated\": true}}", "device: cpu\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_store_study study = study_of(PLAN, MACHINE);
        struct lab_study_view view;
        struct lab_store *store;
        const char *folder = in_root(lab_arena_printf(&arena, "outputs/simulated/%zu", i));
        study.machine = cases[i].machine;
        study.config = cases[i].config;
        make_directories(folder);
        assert_works(lab_store_create(lab_arena_printf(&arena, "%s/study.db", folder), &study, NULL,
                                      0, &store, &err));
        lab_store_close(store);
        assert_works(lab_study_view_look(folder, false, &arena, &view, &err));
        assert_true(view.report.simulated == cases[i].simulated);
    }
}

LAB_TEST(a_finished_study_has_nothing_left) {
    struct lab_study_view view;
    assert_works(lab_study_view_look(a_study(2), true, &arena, &view, &err));
    assert_float_equal(view.report.left_s, 0, 0);
}

LAB_TEST(without_its_runs_there_are_counts) {
    struct lab_study_view view;
    assert_works(lab_study_view_look(a_study(1), false, &arena, &view, &err));
    assert_int_equal(view.counts[LAB_RUN_DONE], 1);
    assert_int_equal(view.report.state_counts[LAB_RUN_DONE], 1);
    assert_int_equal(view.report.state_counts[LAB_RUN_PLANNED], 1);
    assert_int_equal(view.report.run_count, 0);
    assert_true(isnan(view.report.left_s));
}

LAB_TEST(a_study_that_is_worked_on_names_its_runner) {
    const char *folder = a_study(1);
    struct other other = start_other(hold, in_root("outputs"));
    struct lab_study_view view;
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_true(view.report.running);
    assert_int_equal(view.holder.pid, other.pid);
    assert_non_null(strstr(view.report.holder, "gpulab run quick"));
    wait_for_other(&other);
}

/* Leaves run 2 as a runner finds and leaves it: begun, and in the end failed. */
static void begin_second_run(const char *folder, int64_t start_ns, bool fails) {
    struct lab_store *store;
    int64_t epoch;
    const struct lab_run failed = {.state = LAB_RUN_FAILED,
                                   .end_ns = start_ns + 1000000000,
                                   .error = "timeout",
                                   .rate_unit = ""};
    assert_works(lab_store_open(lab_arena_printf(&arena, "%s/study.db", folder), LAB_STORE_WRITE,
                                &store, &err));
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, start_ns, &err));
    if (fails)
        assert_works(lab_store_finish_run(store, 2, &failed, &err));
    lab_store_close(store);
}

LAB_TEST(an_interrupted_run_starts_anew) {
    const char *folder = a_study(1);
    begin_second_run(folder, 1000000000, false);
    struct lab_study_view view;
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_int_equal(view.counts[LAB_RUN_RUNNING], 1);
    assert_float_equal(view.report.left_s, 2, 1e-6); /* however long ago it began */
}

LAB_TEST(what_failed_is_left_unless_its_runner_still_works) {
    const char *folder = a_study(1);
    begin_second_run(folder, 1000000000, true); /* a second after the machine started */
    struct lab_study_view view;
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_float_equal(view.report.left_s, 2, 1e-6);
    /* a runner that came later tries it again */
    struct other other = start_other(hold, in_root("outputs"));
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_true(view.report.running);
    assert_float_equal(view.report.left_s, 2, 1e-6);
    /* when it has failed there too, it doesn't */
    begin_second_run(folder, lab_clock_now(lab_clock_system()) + 60 * LAB_NS_PER_S, true);
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_float_equal(view.report.left_s, 0, 0);
    /* but the next runner does, which is what its own end says */
    struct lab_study_file *file;
    assert_works(lab_study_file_open(folder, &arena, &file, &err));
    assert_works(lab_study_view_read_ended(file, &view, &err));
    assert_false(view.report.running);
    assert_string_equal(view.report.holder, "");
    assert_float_equal(view.report.left_s, 2, 1e-6);
    lab_study_file_close(file);
    wait_for_other(&other);
}

LAB_TEST(looking_again_counts_nothing_twice) {
    const char *folder = a_study(1);
    struct lab_study_file *file;
    struct lab_study_view view;
    assert_works(lab_study_file_open(folder, &arena, &file, &err));
    struct lab_history *history = lab_study_view_history(file);
    for (int i = 0; i < 3; i++) {
        assert_works(lab_study_view_follow(file, history, &view, &err));
        assert_float_equal(view.report.left_s, 2, 1e-6);
    }
    lab_history_close(history);
    assert_works(lab_study_view_follow(file, NULL, &view, &err));
    assert_true(isnan(view.report.left_s));
    lab_study_file_close(file);
}

LAB_TEST(config_and_machine_are_read_as_far_as_they_go) {
    struct lab_store_study study = study_of(PLAN, MACHINE);
    study.config = "experiment:\n  max_workers: 4\n";
    study.machine =
        "{\"host\": \"node7\", \"cpu_model\": \"EPYC\", \"cores\": 64, \"nodes\": [{}, {}], "
        "\"pci\": [{\"name\": \"GPU0\"}, {\"name\": \"NIC0\"}], \"simulated\": true}";
    const char *folder = in_root("a"), *broken = in_root("b");
    struct lab_store *store;
    struct lab_study_view view;
    make_directories(folder);
    make_directories(broken);
    assert_works(lab_store_create(in_root("a/study.db"), &study, NULL, 0, &store, &err));
    lab_store_close(store);
    assert_works(lab_study_view_look(folder, true, &arena, &view, &err));
    assert_string_equal(view.report.machine, "node7: EPYC, 64 cores, 2 NUMA nodes, 1 GPU");
    assert_true(view.report.simulated);
    assert_int_equal(view.max_workers, 4);

    static const char *const workloads[] = {"null", "command"}; /* a program may use the GPU */
    for (int i = 0; i < 2; i++) {
        const struct lab_run run = {.id = "first",
                                    .identity = 1,
                                    .workload = workloads[i],
                                    .label = "null",
                                    .options = "{}",
                                    .series = "[]",
                                    .test = "{}",
                                    .ranks = &a_rank,
                                    .rank_count = 1};
        const char *on_cpu = in_root(i ? "d" : "c");
        make_directories(on_cpu);
        assert_works(lab_store_create(in_root(i ? "d/study.db" : "c/study.db"), &study, &run, 1,
                                      &store, &err));
        lab_store_close(store);
        assert_works(lab_study_view_look(on_cpu, true, &arena, &view, &err));
        assert_int_equal(lab_str_ends(view.report.machine, ", 1 GPU (not used)"), i == 0);
    }

    study.config = "a: [";
    study.machine = "no JSON";
    study.words = "{}";
    assert_works(lab_store_create(in_root("b/study.db"), &study, NULL, 0, &store, &err));
    lab_store_close(store);
    assert_works(lab_study_view_look(broken, true, &arena, &view, &err));
    assert_string_equal(view.report.machine, "");
    assert_string_equal(view.report.command, "");
    assert_int_equal(view.max_workers, 1);
}

LAB_TEST(commands_can_be_pasted) {
    assert_string_equal(lab_study_view_command("[\"-m\", \"scaling_study\", "
                                               "\"experiment.test.compile_model=true,false\"]",
                                               &arena),
                        "gpulab run -m scaling_study experiment.test.compile_model=true,false");
    assert_string_equal(
        lab_study_view_command(
            "[\"quick_test\", \"experiment.hardware.gpu_ids=[0,1]\", \"a=it's\", "
            "\"\"]",
            &arena),
        "gpulab run quick_test 'experiment.hardware.gpu_ids=[0,1]' 'a=it'\\''s' ''");
    assert_string_equal(lab_study_view_command("[]", &arena), "gpulab run");
    assert_string_equal(lab_study_view_command("[1]", &arena), "");
    assert_string_equal(lab_study_view_command("", &arena), "");
}

LAB_TEST(paths_are_as_short_as_a_user_would_write_them) {
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(root), 0);
    assert_string_equal(lab_study_view_shorten(in_root("outputs/a"), &arena), "outputs/a");
    assert_string_equal(lab_study_view_shorten(root, &arena), ".");
    const char *sister = lab_arena_printf(&arena, "%s-2/a", root);
    assert_string_equal(lab_study_view_shorten(sister, &arena), sister);
    assert_int_equal(chdir("/"), 0);
    assert_string_equal(lab_study_view_shorten("/outputs/a", &arena), "/outputs/a");
    assert_int_equal(chdir(before), 0);
}

LAB_TEST(what_is_no_study_is_refused) {
    struct lab_study_view view;
    assert_int_equal(lab_study_view_look(root, true, &arena, &view, &err), -1);
    assert_non_null(strstr(err.text, "study.db"));
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
