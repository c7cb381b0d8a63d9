/*
 * test_study_watch.c: which studies `status` and `estimate` look at, and what `estimate` makes of
 * their runs.
 */
#include "unit/command/status_fixture.h"

#include "base/tty/follow.h"
#include "load/study_watch.h"
#include "report/estimate_view.h"

#include <math.h>

static struct lab_study_watch watch_all(int max) {
    struct lab_study_watch watch;
    assert_works(lab_study_watch_open(NULL, max, &arena, &watch, &err));
    return watch;
}

/* --- which --- */

LAB_TEST(nothing_is_watched_where_nothing_ran) {
    struct lab_study_watch watch = watch_all(0);
    assert_int_equal(watch.count, 0);
    assert_int_equal(watch.known, 0);
    lab_study_watch_close(&watch);
}

LAB_TEST(only_unfinished_studies_are_watched) {
    given_study("ended", "dddd");
    given_study("ended_with_failures", "ddfd");
    const char *interrupted = given_study("interrupted", "dr..");
    const char *untouched = given_study("untouched", "....");
    struct lab_study_watch watch = watch_all(0);
    assert_int_equal(watch.known, 4);
    assert_int_equal(watch.count, 2);
    bool first = strcmp(watch.items[0].path, untouched) == 0;
    assert_string_equal(watch.items[first].path, interrupted);
    assert_string_equal(watch.items[!first].path, untouched);
    assert_false(lab_study_watch_any_running(&watch));
    lab_study_watch_close(&watch);
}

LAB_TEST(there_may_be_more_than_are_asked_for) {
    given_study("one", "d...");
    given_study("two", "d...");
    given_study("three", "d...");
    struct lab_study_watch watch = watch_all(2);
    assert_int_equal(watch.count, 2);
    assert_true(watch.more);
    lab_study_watch_close(&watch);
    watch = watch_all(3);
    assert_int_equal(watch.count, 3);
    assert_false(watch.more);
    lab_study_watch_close(&watch);
}

LAB_TEST(running_ones_can_be_kept_alone) {
    given_study("idle", "d...");
    const char *busy = given_study("busy", "dr..");
    given_study("idle_too", "d...");
    given_runner("busy");
    struct lab_study_watch watch = watch_all(0);
    assert_true(lab_study_watch_any_running(&watch));
    lab_study_watch_keep_running(&watch);
    assert_int_equal(watch.count, 1);
    assert_string_equal(watch.items[0].path, busy);
    lab_study_watch_close(&watch);
}

LAB_TEST(named_study_is_watched_in_any_state) {
    const char *path = given_study("ended", "dddd");
    struct lab_study_watch watch;
    assert_works(lab_study_watch_open(path, 1, &arena, &watch, &err));
    assert_int_equal(watch.count, 1);
    lab_study_watch_close(&watch);
    assert_works(lab_study_watch_open("ended", 1, &arena, &watch, &err));
    assert_string_equal(watch.items[0].path, path);
    lab_study_watch_close(&watch);
    assert_int_equal(lab_study_watch_open("nothing_such", 1, &arena, &watch, &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
}

LAB_TEST(damaged_study_hides_no_other) {
    const char *good = given_study("good", "d...");
    const char *bad = given_study("bad", "d...");
    FILE *file = fopen(lab_arena_printf(&arena, "%s/study.db", bad), "w");
    fputs("no database at all, just a few words that somebody wrote there by mistake", file);
    fclose(file);
    struct lab_study_watch watch = watch_all(0);
    assert_int_equal(watch.count, 1);
    assert_string_equal(watch.items[0].path, good);
    lab_study_watch_close(&watch);
}

LAB_TEST(looking_again_sees_what_has_happened) {
    const char *path = given_study("busy", "dr..");
    int runner = given_runner("busy");
    struct lab_study_watch watch = watch_all(0);
    struct lab_study_view view;
    given_progress(path, 2, "warm-up", 3);
    assert_works(lab_study_watch_read(&watch, 0, &arena, &view, &err));
    lab_study_file_close(view.file);
    assert_true(view.report.running);
    assert_string_equal(view.report.progress[0].phase, "warm-up");
    given_progress(path, 2, "measuring", 60);
    assert_works(lab_study_watch_read(&watch, 0, &arena, &view, &err));
    lab_study_file_close(view.file);
    assert_string_equal(view.report.progress[0].phase, "measuring");
    assert_int_equal(view.report.progress[0].done, 60);
    let_go(runner);
    holder_count--;
    assert_works(lab_study_watch_read(&watch, 0, &arena, &view, &err));
    lab_study_file_close(view.file);
    assert_false(view.report.running);
    lab_study_watch_close(&watch);
}

/* --- programs --- */

static void report(struct lab_store *store, const char *name, double step, double value) {
    struct lab_store_metric metric = {name, "", 0, value, lab_clock_now(lab_clock_system()), step};
    assert_works(lab_store_add_metrics(store, 2, &metric, 1, &err));
}

/* Given a program that runs, then each look shows what it has reported since, main metrics first;
 * nothing once its runner is gone. */
LAB_TEST(programs_show_what_they_report) {
    run_workload = "command";
    const char *path = given_study("matrix", "dr..");
    run_workload = "vit";
    int runner = given_runner("matrix");
    given_progress(path, 2, "measuring", 60);
    struct lab_store *store;
    const char *database = lab_arena_printf(&arena, "%s/study.db", path);
    assert_works(lab_store_open(database, LAB_STORE_WRITE, &store, &err));
    struct lab_programs *programs = lab_programs_open();
    const struct lab_program *items;
    assert_int_equal(lab_programs_read(programs, NULL, &items), 1);
    assert_int_equal(items[0].metric_count, 0);
    report(store, "lr", 10, 0.1);
    report(store, "loss", 10, 3);
    report(store, "loss", 20, 2);
    assert_int_equal(lab_programs_read(programs, path, &items), 1);
    assert_string_equal(items[0].study, "matrix");
    assert_string_equal(items[0].name, "vit1");
    assert_float_equal(items[0].step, 20, 0);
    assert_string_equal(items[0].metrics[0].name, "loss");
    report(store, "loss", 30, 1);
    struct lab_study_watch watch = watch_all(0);
    struct lab_study_view view;
    assert_works(lab_study_watch_read(&watch, 0, &arena, &view, &err));
    lab_study_file_close(view.file);
    assert_int_equal(view.report.program_count, 1);
    assert_float_equal(view.report.programs[0].metrics[0].curve.last, 1, 0);
    lab_study_watch_close(&watch);
    assert_int_equal(lab_programs_read(programs, path, &items), 1);
    assert_int_equal(items[0].metrics[0].curve.values, 3);
    int64_t epoch; /* it fails, and is tried again */
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, lab_clock_now(lab_clock_system()), &err));
    given_progress(path, 2, "measuring", 1);
    report(store, "loss", 10, 7);
    assert_int_equal(lab_programs_read(programs, path, &items), 1);
    assert_int_equal(items[0].metrics[0].curve.values, 1);
    let_go(runner);
    holder_count--;
    assert_int_equal(lab_programs_read(programs, path, &items), 0);
    assert_int_equal(lab_programs_read(programs, NULL, &items), 0);
    lab_programs_close(programs);
    lab_store_close(store);
}

/* --- how long --- */

static struct lab_report_estimate estimate(const char *path, struct lab_study_watch *watch) {
    struct lab_study_view view;
    assert_works(lab_study_watch_open(path, 1, &arena, watch, &err));
    assert_works(lab_study_watch_read(watch, 0, &arena, &view, &err));
    lab_study_file_close(view.file);
    return lab_estimate_of_study(&view, watch->items[0].history, &arena);
}

LAB_TEST(done_run_says_what_it_took) {
    struct lab_study_watch watch;
    struct lab_report_estimate study = estimate(given_study("ended", "dddd"), &watch);
    assert_string_equal(study.state, "ended");
    assert_true(study.left_s == 0);
    assert_true(study.taken_s == 4 * RUN_S);
    assert_true(study.runs[0].ended);
    assert_true(study.runs[0].taken_s == RUN_S);
    assert_int_equal(study.runs[0].done, ITERATIONS);
    assert_string_equal(study.runs[0].basis, "");
    lab_study_watch_close(&watch);
}

LAB_TEST(running_run_goes_by_its_progress) {
    const char *path = given_study("busy", ".r..");
    given_runner("busy");
    given_progress(path, 2, "measuring", ITERATIONS / 2);
    struct lab_study_watch watch;
    struct lab_report_estimate study = estimate(path, &watch);
    const struct lab_report_estimate_run *run = &study.runs[1];
    assert_string_equal(study.state, "running");
    assert_string_equal(run->state, "measuring");
    assert_int_equal(run->done, ITERATIONS / 2);
    assert_string_equal(run->basis, "progress");
    /* half of it took 10 s */
    assert_true(run->left_s > 5 && run->left_s < 15);
    assert_string_equal(study.runs[2].basis, "unknown");
    assert_true(isnan(study.runs[2].left_s));
    assert_int_equal(study.unknown, 3);
    lab_study_watch_close(&watch);
}

LAB_TEST(below_five_percent_history_answers) {
    given_study("earlier", "dddd");
    const char *path = given_study("busy", ".r..");
    given_runner("busy");
    given_progress(path, 2, "measuring", 4);
    struct lab_study_watch watch;
    struct lab_report_estimate study = estimate(path, &watch);
    assert_string_equal(study.runs[1].basis, "same run");
    assert_string_equal(study.runs[2].basis, "same run");
    assert_true(study.runs[2].left_s == RUN_S);
    assert_int_equal(study.unknown, 0);
    lab_study_watch_close(&watch);
}

LAB_TEST(interrupted_run_begins_again) {
    given_study("earlier", "dddd");
    const char *path = given_study("stopped", "dr..");
    given_progress(path, 2, "measuring", 90);
    struct lab_study_watch watch;
    struct lab_report_estimate study = estimate(path, &watch);
    assert_string_equal(study.state, "interrupted");
    assert_string_equal(study.runs[1].state, "interrupted");
    assert_int_equal(study.runs[1].done, 0);
    assert_true(study.runs[1].left_s == RUN_S);
    assert_true(study.left_s == 3 * RUN_S);
    assert_string_equal(study.command, "gpulab run stopped");
    lab_study_watch_close(&watch);
}

LAB_TEST(failed_run_is_left_to_the_next_runner) {
    const char *path = given_study("stopped", "ddf."); /* failed before the runner below came */
    struct lab_study_watch watch;
    struct lab_report_estimate study = estimate(path, &watch);
    assert_string_equal(study.runs[2].state, "failed");
    assert_false(study.runs[2].ended);
    assert_true(study.runs[2].left_s > 0); /* another model's time, by its work */
    assert_string_equal(study.runs[2].basis, "work");
    lab_study_watch_close(&watch);
    given_runner("stopped");
    study = estimate(path, &watch);
    assert_false(study.runs[2].ended);
    lab_study_watch_close(&watch);
}

/* --- drawing --- */

static void assert_cut(const char *text, int rows, const char *expected, int expected_count) {
    LAB_AUTO(str, out);
    assert_int_equal(lab_follow_cut(text, rows, 4, &out), expected_count);
    assert_string_equal(out.text, expected);
}

LAB_TEST(drawing_keeps_to_the_terminals_lines) {
    assert_cut("a\nb\nc\n", 5, "a\nb\nc\n", 3);
    assert_cut("a\nb\nc\n", 3, "a\nb\nc\n", 3);
    assert_cut("a\nb\nc\n", 2, "a\n…\n", 2);
    assert_cut("a\nb", 5, "a\nb\n", 2);
    assert_cut("", 5, "", 0);
    /* a line of nine columns fills three rows of four; colours take none */
    assert_cut("123456789\nb\n", 4, "123456789\nb\n", 4);
    assert_cut("123456789\nb\n", 3, "…\n", 1);
    assert_cut("\033[1m1234\033[0m\nb\n", 2, "\033[1m1234\033[0m\nb\n", 2);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
