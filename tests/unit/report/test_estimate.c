/* How long a study takes, as people and programs read it. */
#include "report/estimate.h"

#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test.h"

static const struct lab_style plain = {.columns = 80, .unicode = true};

/* Sunday 2026-11-15 10:42:00 UTC */
static const int64_t now_ns = 1794739320 * LAB_NS_PER_S;

static int set_up(void **state) {
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    return 0;
}

static void assert_clock(int64_t later_s, const char *expected) {
    struct lab_str out;
    lab_str_init(&out);
    lab_report_add_clock(now_ns + later_s * LAB_NS_PER_S, now_ns, &out);
    assert_string_equal(out.text, expected);
    lab_str_release(&out);
}

LAB_TEST(another_day_is_named) {
    assert_clock(0, "10:42");
    assert_clock(13 * 3600, "23:42");
    assert_clock(14 * 3600, "Mon 16 Nov 00:42");
    assert_clock(60 * 86400, "Thu 14 Jan 10:42");
    assert_clock(400 * 86400, "2027-12-20");
}

static const struct lab_report_estimate_run runs[] = {
    {"gpu0_numa0_vit0x0x0", 0, "done", true, 20, 20, 1.5, NAN, ""},
    {"gpu0_numa0_vit32x2x256", 0, "measuring", false, 12, 20, 3, 2, "progress"},
    {"gpu0_numa0_vit32x4x512", 0, "planned", false, 0, 20, NAN, 250, "same run"},
    {"gpu0_numa0_script", 0, "planned", false, 0, 0, NAN, NAN, "unknown"},
};
static const char *const names[] = {"vit0x0x0", "vit32x2x256", "vit32x4x512", "script"};
static struct study_axis axes[] = {{STUDY_AXIS_MODEL, "Model", names},
                                   {STUDY_AXIS_MODEL, "Model", names + 2}};

static const struct lab_report_estimate a_study = {
    .study = "quick_test",
    .folder = "outputs/quick_test/2026-11-15/10-41-50",
    .state = "running",
    .running = true,
    .holder = "process 4711 on node7",
    .command = "gpulab run quick_test",
    .runs = runs,
    .run_count = 4,
    .axes = {&axes[0], 1},
    .counts = "4 points × 1 repeat = 4 runs",
    .point_count = 4,
    .repeat = 1,
    .done = 1,
    .taken_s = 1.5,
    .left_s = 378,
    .unknown = 1,
    .guessed = 1,
    .most_s = NAN,
    .now_wall_ns = 1794739320 * LAB_NS_PER_S,
};

static void write(const struct lab_report_estimate *estimate, struct lab_str *out) {
    LAB_AUTO(arena, arena);
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_report_add_estimate(doc, estimate);
    lab_doc_write(doc, "text", plain, out);
}

static void assert_text(const struct lab_report_estimate *estimate, const char *expected) {
    struct lab_str out;
    lab_str_init(&out);
    write(estimate, &out);
    assert_string_equal(out.text, expected);
    lab_str_release(&out);
}

static void assert_holds(const struct lab_report_estimate *estimate, const char *part) {
    struct lab_str out;
    lab_str_init(&out);
    write(estimate, &out);
    if (!strstr(out.text, part))
        fail_msg("no '%s' in:\n%s", part, out.text);
    lab_str_release(&out);
}

LAB_TEST(running_study_says_what_is_left_and_why) {
    assert_text(&a_study,
                "quick_test: running, 1 of 4 runs done; about 6 min left\n"
                "  Model        State      Iterations   Taken   Left  By\n"
                "  ───────────  ─────────  ──────────  ──────  ─────  ────────\n"
                "  vit0x0x0     done            20/20  1.50 s\n"
                "  vit32x2x256  measuring       12/20  3.00 s    2 s  progress\n"
                "  vit32x4x512  planned          0/20          4 min  same run\n"
                "  script       planned                            ?  unknown\n"
                "\n"
                "  Total     1.50 s taken by runs that are done, about 6 min left; it ends at\n"
                "            about 10:48\n"
                "  Unknown   1 run has no comparable one on this machine: counted as the mean of\n"
                "            the others\n"
                "  Folder    outputs/quick_test/2026-11-15/10-41-50\n"
                "  Run by    process 4711 on node7\n");
}

LAB_TEST(interrupted_study_says_how_to_go_on) {
    struct lab_report_estimate study = a_study;
    study.running = false;
    study.state = "interrupted";
    study.holder = "";
    assert_holds(&study, "quick_test: interrupted, 1 of 4 runs done; about 6 min left\n");
    assert_holds(&study, "resumed now,\n            it would end at about 10:48");
    assert_holds(&study, "  Resume    gpulab run quick_test\n");
}

LAB_TEST(planned_study_names_limit_and_disk) {
    struct lab_report_estimate study = a_study;
    study.folder = NULL;
    study.running = false;
    study.holder = "";
    study.runs = runs + 2;
    study.run_count = 2;
    study.axes.items = &axes[1];
    study.counts = "2 points × 1 repeat = 2 runs";
    study.done = 0;
    study.taken_s = 0;
    study.left_s = 500;
    study.most_s = 1800;
    study.disk_bytes = 200 * 1024;
    assert_text(&study,
                "quick_test: 2 points × 1 repeat = 2 runs, about 8 min\n"
                "  Model        Iterations  Per run  By\n"
                "  ───────────  ──────────  ───────  ────────\n"
                "  script                         ?  unknown\n"
                "  vit32x4x512          20    4 min  same run\n"
                "\n"
                "  Total     about 8 min; started now, it would end at about 10:50; the time-outs\n"
                "            allow 30 min at most, retries included\n"
                "  Unknown   1 run has no comparable one on this machine: counted as the mean of\n"
                "            the others\n"
                "  Disk      about 200 KiB\n"
                "  Start     gpulab run quick_test\n");
}

LAB_TEST(unknown_total_is_said) {
    struct lab_report_estimate study = a_study;
    study.left_s = NAN;
    study.guessed = 3;
    assert_holds(&study, "1 of 4 runs done; unknown time left\n");
    assert_holds(&study, "unknown time left: 3 of its runs\n"
                         "            have no comparable run on this machine\n");
    study.folder = NULL;
    assert_holds(
        &study,
        "quick_test: 4 points × 1 repeat = 4 runs, time unknown (too few comparable runs)\n");
    study.guessed = 4;
    assert_holds(&study, "unknown: no comparable run on\n            this machine");
    assert_holds(&study,
                 "quick_test: 4 points × 1 repeat = 4 runs, time unknown (no comparable runs)\n");
    study.simulated = true;
    assert_holds(&study, "unknown: earlier runs took\n            simulated time; without --quiet");
}

LAB_TEST(many_runs_leave_out_the_ended_first) {
    struct lab_report_estimate study = a_study;
    study.rows_max = 3;
    struct lab_str out;
    lab_str_init(&out);
    write(&study, &out);
    assert_null(strstr(out.text, "vit0x0x0"));
    assert_non_null(strstr(out.text, "script"));
    assert_non_null(strstr(out.text, "  … and 1 that has ended (--all)\n"));
    lab_str_release(&out);
    study.rows_max = 2;
    assert_holds(&study, "  … and 1 more and 1 that has ended (--all)\n");
}

LAB_TEST(simulated_stands_in_the_heading) {
    struct lab_report_estimate study = a_study;
    study.simulated = true;
    assert_holds(&study, "quick_test (simulated): running");
}

LAB_TEST(programs_get_every_run) {
    struct lab_arena arena;
    lab_arena_init(&arena);
    struct lab_report_estimate study = a_study;
    study.rows_max = 1;
    struct lab_doc *doc = lab_doc_open(NULL, &arena);
    lab_report_add_estimate(doc, &study);
    struct lab_value *value = lab_doc_value(doc, &arena);
    struct lab_value *list = lab_value_get(value, "runs");
    assert_int_equal(list->count, 4);
    assert_true(lab_value_get(value, "end_unix_s")->number == 1794739320 + 378);
    assert_int_equal(lab_value_get(list->items[1], "iterations_done")->integer, 12);
    assert_string_equal(lab_value_get(list->items[1], "basis")->string, "progress");
    assert_int_equal(lab_value_get(list->items[3], "left_s")->type, LAB_VALUE_NULL);
    lab_arena_release(&arena);
}

const struct lab_test_program lab_test_program = {.open = set_up};
