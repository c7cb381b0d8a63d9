/*
 * test_carried_out.c: a plan that is carried out by rogue.h's workers: what its folder has, line by line of
 * its log; and which folders it is resumed in.
 */
#include "rogue.h"

#include "base/file/file.h"
#include "base/json.h"
#include "machine/machine.h"
#include "run/reread.h"
#include "run/study.h"

#include "test.h"
#include <ctype.h>
#include <sqlite3.h>

enum { RUNS_MOST = 4 };

static const char *const nothing[] = {NULL}, *const words[] = {"rogues", "seed=7", NULL};
static const struct lab_run_rank on_cpu[] = {{0, "cpu:0", 0}};
static struct lab_plan_run planned[RUNS_MOST];
static struct lab_device_ref devices[1];
static struct lab_machine *machine;
static struct lab_plan plan;
static struct lab_study_request request;
static struct lab_runner_outcome outcome;

static int set_up(void **state) {
    (void)state;
    ASSERT_OK(lab_machine_open(NULL, &machine, err));
    setenv("XDG_STATE_HOME", test_path("state"), 1);
    setenv("GPULAB_LOCK_DIR", test_path("locks"), 1);
    devices[0] = (struct lab_device_ref){.name = "cpu:0", .physical = "cpu:0", .machine = machine};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_machine_close(machine);
    return 0;
}

/* A plan of runs with these ids, which say what their worker does. */
static void given_plan(const char *const *ids, int count) {
    for (int i = 0; i < count; i++)
        planned[i] = (struct lab_plan_run){.id = ids[i],
                                           .identity = (uint64_t)i + 1,
                                           .workload = "null",
                                           .label = "null",
                                           .options = lab_value_map(&test_arena),
                                           .ranks = on_cpu,
                                           .rank_count = 1,
                                           .iterations = 5,
                                           .timeout_s = 60,
                                           .series = nothing};
    struct lab_value *config = lab_value_map(&test_arena);
    lab_value_set_int(&test_arena, config, "seed", 7);
    plan = (struct lab_plan){.study = "rogues",
                             .option = "rogue",
                             .config = config,
                             .devices = {devices, 1},
                             .machine = machine,
                             .runs = planned,
                             .run_count = count,
                             .seed = 7,
                             .ordered_as_given = true,
                             .output_dir = test_path("outputs"),
                             .resume = true,
                             .max_workers = 1,
                             .runs_per_device = 1,
                             .repeat = 1,
                             .notes = nothing,
                             .identity = 11,
                             .once_identity = 11};
    request = (struct lab_study_request){.plan = &plan,
                                         .machine = machine,
                                         .words = words,
                                         .overrides = words + 1,
                                         .command = "gpulab run rogues seed=7",
                                         .machine_json = "{\"host\": 1}\n"};
}

#define GIVEN(...)                                                                                 \
    given_plan((const char *const[]){__VA_ARGS__},                                                 \
               (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* Its folder, after all of it has run. */
static const char *carry_out(bool resumed) {
    struct lab_study study;
    const struct lab_study_listener listener = {.stop = NULL};
    ASSERT_OK(lab_study_open(&request, &test_arena, &study, err));
    const char *folder = lab_arena_strdup(&test_arena, study.folder.path);
    assert_int_equal(study.folder.resumed, resumed);
    assert_int_equal(access(lab_arena_printf(&test_arena, "%s/.room", folder), F_OK), 0);
    ASSERT_OK(lab_study_run(&study, &listener, &outcome, err));
    lab_study_close(&study);
    assert_int_equal(access(lab_arena_printf(&test_arena, "%s/.room", folder), F_OK), -1);
    return folder;
}

static char *text_in(const char *folder, const char *name) {
    char *text = NULL;
    size_t length;
    ASSERT_OK(lab_file_read(lab_arena_printf(&test_arena, "%s/%s", folder, name), 1 << 20,
                            &test_arena, &text, &length, err));
    return text;
}

/* "2026-11-19T10:42:03.123+0100 " before each line, which is taken away. */
static const char *log_of(const char *folder) {
    static const char form[] = "0000-00-00T00:00:00.000+0000 ";
    const char *text = text_in(folder, "logs/experiment.log"), *all = "";
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        for (size_t i = 0; form[i]; i++)
            assert_true(form[i] == '0'   ? isdigit((unsigned char)line[i])
                        : form[i] == '+' ? line[i] == '+' || line[i] == '-'
                                         : line[i] == form[i]);
        all = lab_arena_printf(&test_arena, "%s%.*s\n", all, (int)(length - strlen(form)),
                               line + strlen(form));
        line += length + (line[length] == '\n');
    }
    return all;
}

LAB_TEST(what_happens_is_logged_and_written) {
    GIVEN("good.0", "second.0", "user.0");
    plan.max_retries = 1;
    const char *folder = carry_out(false);
    assert_int_equal(outcome.done, 2);
    assert_int_equal(outcome.failed, 1);
    assert_string_equal(log_of(folder),
                        "begun: 3 of 3 runs to do (gpulab run rogues seed=7)\n"
                        "good.0: attempt 1 begins\n"
                        "good.0: warm-up\n"
                        "good.0: measuring\n"
                        "good.0: warning: look  [31m out\n"
                        "good.0: done, 100 samples/s\n"
                        "second.0: attempt 1 begins\n"
                        "second.0: attempt 1 failed: the worker was ended by signal 6 (Aborted)\n"
                        "second.0: attempt 2 begins\n"
                        "second.0: warm-up\n"
                        "second.0: measuring\n"
                        "second.0: warning: look  [31m out\n"
                        "second.0: done, 100 samples/s\n"
                        "user.0: attempt 1 begins\n"
                        "user.0: opening\n"
                        "user.0: failed: there is no  [1msuch thing\n"
                        "2 done, 1 failed, 0 left\n");
    assert_string_equal(text_in(folder, "config.yaml"), "seed: 7\n");
    assert_string_equal(text_in(folder, "overrides.yaml"), "- seed=7\n");
    assert_string_equal(text_in(folder, "machine.json"), "{\"host\": 1}\n");
    assert_contains(text_in(folder, "experiment_summary.json"), "\"successful_runs\": 2");
    struct lab_value *results;
    const char *text = text_in(folder, "results.json");
    ASSERT_OK(lab_json_parse(text, strlen(text), "results", &test_arena, &results, err));
    assert_int_equal(results->count, 3);
    const char *const *known;
    int count;
    lab_folder_known(&test_arena, &known, &count);
    assert_int_equal(count, 1);
    assert_string_equal(known[0], folder);
    /* the same again does what failed, in the same folder */
    planned[2].id = "user.0";
    assert_string_equal(carry_out(true), folder);
    assert_int_equal(outcome.done + outcome.left, 0);
    assert_contains(log_of(folder), "taken up: 1 of 3 runs to do (gpulab run rogues seed=7)\n"
                                    "user.0: attempt 1 begins\n");
    assert_contains(log_of(folder), "0 done, 1 failed, 0 left\n");
}

LAB_TEST(pauses_and_ends_are_logged) {
    GIVEN("good.0", "user.0", "good.1");
    plan.cooldown_s = 0.01;
    plan.fail_fast = true;
    request.passing = true; /* no list has it */
    const char *folder = carry_out(false);
    assert_int_equal(outcome.left, 1);
    assert_contains(log_of(folder), "good.0: done, 100 samples/s\n"
                                    "pause of 0.01 s\n"
                                    "user.0: attempt 1 begins\n");
    assert_contains(log_of(folder), "stopping: a run failed, and fail_fast is on\n"
                                    "1 done, 1 failed, 1 left\n");
    const char *const *known;
    int count;
    lab_folder_known(&test_arena, &known, &count);
    assert_int_equal(count, 0);
}

static int stop_at_once(void *state) {
    ++*(int *)state;
    return 1;
}

LAB_TEST(who_asks_to_stop_is_obeyed) {
    int asked = 0;
    struct lab_study study;
    const struct lab_study_listener listener = {.stop = stop_at_once, .state = &asked};
    GIVEN("good.0");
    ASSERT_OK(lab_study_open(&request, &test_arena, &study, err));
    ASSERT_OK(lab_study_run(&study, &listener, &outcome, err));
    assert_true(asked > 0 && outcome.stopped);
    assert_int_equal(outcome.left, 1);
    assert_contains(log_of(study.folder.path), "stopping: asked to stop\n0 done, 0 failed, 1 left");
    lab_study_close(&study);
}

/* A folder whose runs are others than its plan's isn't gone on with. */
LAB_TEST(the_runs_of_a_folder_have_to_be_the_plans) {
    struct lab_study study;
    GIVEN("user.0", "good.0");
    const char *folder = carry_out(false);
    plan.run_count = 1;
    ASSERT_FAILS(lab_study_open(&request, &test_arena, &study, err), LAB_ERR_SYSTEM,
                 lab_arena_printf(&test_arena, "%s holds 2 runs, but its plan has 1", folder));
    plan.run_count = 2;
    planned[1].identity = 99;
    ASSERT_FAILS(lab_study_open(&request, &test_arena, &study, err), LAB_ERR_SYSTEM,
                 "holds run good.0, which isn't in the plan: start over with");
    planned[1].identity = 2;
    assert_string_equal(carry_out(true), folder);
}

/* One that the same words began when studies repeated nothing goes on with its first block. */
LAB_TEST(a_folder_without_repeats_is_resumed_without_any) {
    GIVEN("user.0", "good.0");
    const char *folder = carry_out(false);
    GIVEN("user.0_r0", "good.0_r0", "user.0_r1", "good.0_r1");
    plan.repeat = 2;
    plan.identity = 12;
    assert_string_equal(carry_out(true), folder);
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(outcome.done + outcome.left, 0);
    assert_contains(log_of(folder), "taken up: 1 of 2 runs to do");
    /* but not of other words */
    static const char *const others[] = {"rogues", NULL};
    request.words = others;
    folder = carry_out(false);
    assert_contains(log_of(folder), "begun: 4 of 4 runs to do");
}

/* --- a store that refuses --- */

static void change_tables(const char *folder, const char *sql) {
    sqlite3 *db;
    const char *path = lab_arena_printf(&test_arena, "%s/study.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Given a table that is gone while the study is open, then nothing that needs it succeeds. */
LAB_TEST(a_table_that_is_gone_is_an_error) {
    static const struct {
        const char *table;
        bool results, runs; /* that it is needed for */
    } cases[] = {{"run", true, true},
                 {"rank", true, true},
                 {"metric", false, true},
                 {"iterations", false, true},
                 {"progress", false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_study study;
        struct lab_err results = LAB_ERR_INIT, runs = LAB_ERR_INIT;
        const struct lab_study_listener listener = {.stop = NULL};
        GIVEN("good.0");
        plan.identity = 100 + i; /* a folder of its own */
        ASSERT_OK(lab_study_open(&request, &test_arena, &study, err));
        change_tables(study.folder.path,
                      lab_arena_printf(&test_arena, "ALTER TABLE %s RENAME TO x", cases[i].table));
        int written =
            lab_study_write_results(study.store, study.folder.path, "rogues", NULL, &results);
        int ran = lab_study_run(&study, &listener, &outcome, &runs);
        lab_study_close(&study);
        if (written != (cases[i].results ? -1 : 0) || ran != (cases[i].runs ? -1 : 0))
            fail_msg("without %s: %d %s, %d %s", cases[i].table, written, results.text, ran,
                     runs.text);
        assert_true((results.code != LAB_ERR_NONE) == cases[i].results);
        assert_true((runs.code != LAB_ERR_NONE) == cases[i].runs);
    }
}

/* The same of metrics that are read anew; what was there before stays. */
LAB_TEST(rereading_needs_each_table) {
    static const char *const tables[] = {NULL, "run", "rank", "metric", "study"};
    struct lab_reread reread;
    GIVEN("prints.0");
    planned[0].workload = "command";
    const char *folder = carry_out(false);
    const char *log = lab_arena_printf(&test_arena, "%s/logs/prints.0.stdout", folder);
    ASSERT_OK(lab_file_write_atomic(log, "step 1 loss 0.5\nstep 2 loss 0.25\n", 33, err));
    for (int dry = 1; dry >= 0; dry--)
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
            struct lab_reread_request asked = {.folder = folder, .dry_run = dry, .force = true};
            struct lab_err why = LAB_ERR_INIT;
            if (tables[i])
                change_tables(
                    folder, lab_arena_printf(&test_arena, "ALTER TABLE %s RENAME TO x", tables[i]));
            int result = lab_reread(&asked, &test_arena, &reread, &why);
            if (tables[i])
                change_tables(
                    folder, lab_arena_printf(&test_arena, "ALTER TABLE x RENAME TO %s", tables[i]));
            bool needed = tables[i] != NULL;
            if (result != (needed ? -1 : 0) || (why.code != LAB_ERR_NONE) != needed)
                fail_msg("%d without %s: %d %s", dry, tables[i] ? tables[i] : "-", result,
                         why.text);
            if (!needed)
                assert_int_equal(reread.runs[0].values, 2);
        }
}

static int begin(int argc, char **argv) {
    static char rogue[] = "rogue";
    if (argc > 1 && strcmp(argv[1], LAB_WORKER_COMMAND) == 0)
        argv[1] = rogue;
    rogue_main(argc, argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
