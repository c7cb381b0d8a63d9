/* test_results.c: results.json and experiment_summary.json say what the runs hold. */
#include "store_fixture.h"

#include "store/study/results.h"

#include "base/clock.h"
#include "base/json.h"
#include "unit/result_fixture.h"

#define A_RESULT                                                                                   \
    "{\"samples_per_second\": 850.5, \"latency_ms\": {\"median\": 11.25, \"p99\": 13.75},"         \
    " \"trace\": {\"path\": \"traces/pipeline_gpu0.sqlite\", \"overhead\": 0.01},"                 \
    " \"h2d_gb_per_s\": 4.25, \"d2h_gb_per_s\": null, \"gang_overlap\": 0.99, \"valid\": false,"   \
    " \"rate\": 850.5, \"rate_low\": 848, \"rate_unit\": \"samples/s\","                           \
    " \"warnings\": [\"load: \\\"high\\\"\"], \"invalid\": [\"pages lie elsewhere\"],"             \
    " \"ranks\": [{\"device\": \"cpu:0/2.0\"}, {\"device\": \"cpu:0/2.1\"}]}"

static struct lab_run done_run(void) {
    return (struct lab_run){
        .id = "gpu0_gpu1_vit32x6x512",
        .identity = 0x00000000000000ab,
        .repeat = 2,
        .workload = "vit",
        .label = "vit32x6x512",
        .options =
            "{\"patch_size\": 32, \"depth\": 6, \"heads\": 8, \"dim\": 512, \"mlp_dim\": 2048,"
            " \"batch_size\": 10, \"tensor_shape\": [3, 224, 224], \"overlap\": true}",
        .series = "[\"strong\"]",
        .test = "{\"num_samples\": 100, \"warmup_samples\": 20, \"timeout_s\": 600, \"other\": 1}",
        .ranks = two_ranks,
        .rank_count = 2,
        .state = LAB_RUN_DONE,
        .attempts = 1,
        .epoch = 1,
        .start_ns = 1000000000,
        .end_ns = 3500000000,
        .start_wall_ns = 1700000000123456789,
        .error = "",
        .result = result_from(A_RESULT, &arena),
        .rate = 850.5,
        .rate_low = 848,
        .rate_high = NAN,
        .rate_unit = "samples/s",
        .valid = false,
    };
}

static struct lab_run failed_run(void) {
    struct lab_run run = done_run();
    run.id = "gpu1_memcpy";
    run.workload = "memcpy";
    run.options = "{\"size\": 5}";
    run.ranks = two_ranks + 1;
    run.rank_count = 1;
    run.state = LAB_RUN_FAILED;
    run.exit_code = 3;
    run.error = "out of \"memory\"\nnode 1";
    run.result = NULL;
    run.rate = NAN;
    return run;
}

static struct lab_value *at(struct lab_value *map, const char *key) {
    struct lab_value *value = lab_value_get(map, key);
    if (!value)
        fail_msg("no field %s", key);
    return value;
}

/* Compares a field with what it is in JSON. */
static void expect(struct lab_value *map, const char *key, const char *expected) {
    struct lab_str text;
    lab_str_init(&text);
    lab_json_write(at(map, key), 0, &text);
    if (strcmp(text.text, expected) != 0)
        fail_msg("%s is %s instead of %s", key, text.text, expected);
    lab_str_release(&text);
}

LAB_TEST(a_run_has_every_field) {
    struct lab_run run = done_run();
    struct lab_value *map = lab_results_run(&run, &arena);
    expect(map, "run_id", "\"gpu0_gpu1_vit32x6x512\"");
    expect(map, "gpu_id", "0");
    expect(map, "gpu_ids", "[0, 1]");
    expect(map, "numa_node", "0");
    expect(map, "numa_nodes", "[0, 3]");
    expect(map, "devices", "[\"cpu:0/2.0\", \"cpu:0/2.1\"]");
    expect(map, "vit_config",
           "{\"name\": \"vit32x6x512\", \"patch_size\": 32, \"depth\": 6, \"heads\": 8,"
           " \"dim\": 512, \"mlp_dim\": 2048}");
    expect(map, "test_config",
           "{\"num_samples\": 100, \"batch_size\": 10, \"warmup_samples\": 20,"
           " \"tensor_shape\": [3, 224, 224], \"timeout_s\": 600, \"other\": 1}");
    expect(at(map, "options"), "overlap", "true");
    expect(map, "series", "[\"strong\"]");
    expect(map, "repeat", "2");
    expect(map, "identity", "\"00000000000000ab\"");
    expect(map, "start_time", "\"2023-11-14T22:13:20.123456+00:00\"");
    expect(map, "duration", "2.5");
    expect(map, "success", "true");
    expect(map, "exit_code", "0");
    expect(map, "stdout_log", "\"logs/gpu0_gpu1_vit32x6x512.stdout\"");
    expect(map, "stderr_log", "\"logs/gpu0_gpu1_vit32x6x512.stderr\"");
    expect(map, "trace", "\"traces/pipeline_gpu0.sqlite\"");
    expect(map, "error", "null");
    expect(map, "attempts", "1");
    expect(map, "concurrent", "false");
    expect(map, "rate", "850.5");
    expect(map, "rate_high", "null");
    expect(map, "samples_per_second", "850.5");
    expect(map, "latency_ms",
           "{\"mean\": null, \"median\": 11.25, \"p90\": null, \"p95\": null, \"p99\": 13.75,"
           " \"min\": null, \"max\": null}");
    expect(map, "d2h_gb_per_s", "null");
    expect(map, "overlap", "null");
    expect(map, "gang_overlap", "0.99");
    expect(map, "validity",
           "{\"valid\": false, \"invalid\": [\"pages lie elsewhere\"],"
           " \"warnings\": [\"load: \\\"high\\\"\"]}");
    expect(at(map, "ranks")->items[1], "device", "\"cpu:0/2.1\"");
    expect(at(map, "ranks")->items[1], "rate", "null");
    assert_int_equal(at(map, "ranks")->count, 2);
}

LAB_TEST(a_failure_has_the_same_fields) {
    struct lab_run done = done_run(), failed = failed_run();
    struct lab_value *other = lab_results_run(&done, &arena);
    struct lab_value *map = lab_results_run(&failed, &arena);
    assert_int_equal(map->count, other->count);
    for (int i = 0; i < map->count; i++)
        assert_string_equal(map->keys[i], other->keys[i]);
    expect(map, "success", "false");
    expect(map, "exit_code", "3");
    expect(map, "error", "\"out of \\\"memory\\\"\\nnode 1\"");
    expect(map, "vit_config", "null");
    expect(map, "rate_unit", "null");
    expect(map, "latency_ms", "null");
    expect(map, "trace", "null");
    expect(map, "validity", "{\"valid\": false, \"invalid\": [], \"warnings\": []}");
    expect(map, "ranks", "[]");
}

LAB_TEST(a_run_that_has_not_begun_has_no_times) {
    struct lab_run run = {.id = "a", .workload = "null", .state = LAB_RUN_PLANNED, .valid = true};
    struct lab_value *map = lab_results_run(&run, &arena);
    expect(map, "state", "\"planned\"");
    expect(map, "start_time", "null");
    expect(map, "duration", "null");
    expect(map, "exit_code", "null");
    expect(map, "gpu_id", "null");
    expect(map, "devices", "[]");
    expect(at(map, "validity"), "valid", "null");
}

static struct lab_value *write_and_read(const struct lab_run *runs, int count) {
    struct lab_str text;
    struct lab_value *value = NULL;
    lab_str_init(&text);
    lab_results_write(runs, count, NULL, NULL, &text);
    assert_works(lab_json_parse(text.text, text.length, "results.json", &arena, &value, &err));
    lab_str_release(&text);
    return value;
}

LAB_TEST(the_file_holds_the_runs_that_ended) {
    struct lab_run runs[] = {done_run(), failed_run(), done_run(), done_run()};
    runs[2].state = LAB_RUN_RUNNING;
    runs[3].state = LAB_RUN_PLANNED;
    struct lab_value *list = write_and_read(runs, 4);
    assert_int_equal(list->count, 2);
    assert_true(lab_value_equal(list->items[0], lab_results_run(&runs[0], &arena)));
    assert_true(lab_value_equal(list->items[1], lab_results_run(&runs[1], &arena)));
    assert_int_equal(write_and_read(runs + 2, 2)->count, 0);
}

/* Stored texts come from workers and files: none of them may break the document. */
LAB_TEST(a_broken_text_counts_as_absent) {
    static const char *const broken[] = {"",
                                         "{",
                                         "{\"rate\": }",
                                         "{\"rate\": 1}, \"x\": {}",
                                         "[1]",
                                         "{\"a\": 01}",
                                         "{\"a\\\"",
                                         "{\"a\": tru}",
                                         "nonsense",
                                         "{\"a\": \"\xff\"}",
                                         "{,}",
                                         "{\"a\": \"\n\"}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct lab_run run = done_run();
        run.options = run.test = run.series = broken[i];
        struct lab_result result = *run.result, rank = lab_result_none;
        struct lab_result_text none = {NULL};
        rank.tuning = rank.configuration = broken[i];
        result.ranks = &rank;
        result.rank_count = 1;
        result.invalid.items = &none;
        run.result = &result;
        struct lab_value *list = write_and_read(&run, 1);
        expect(list->items[0], "test_config", "{}");
        expect(list->items[0], "options", "{}");
        expect(list->items[0], "rate", "850.5");
    }
}

LAB_TEST(the_summary_counts) {
    struct lab_run runs[] = {done_run(), failed_run(), done_run(), done_run(), done_run()};
    runs[2].end_ns = runs[2].start_ns + 1500000000;
    runs[2].options = "{\"patch_size\": 32, \"depth\": 6, \"heads\": 4, \"dim\": 512}";
    runs[2].valid = true;
    runs[3].state = LAB_RUN_RUNNING;
    runs[3].options = "{\"patch_size\": 32, \"depth\": 6, \"heads\": 16, \"dim\": 512}";
    runs[4].state = LAB_RUN_PLANNED;
    struct lab_value *map = lab_results_summary("quick_test", runs, 5, &arena);
    expect(map, "experiment_name", "\"quick_test\"");
    expect(map, "total_runs", "5");
    expect(map, "successful_runs", "2");
    expect(map, "failed_runs", "1");
    expect(map, "invalid_runs", "1");
    expect(map, "remaining_runs", "2");
    assert_true(fabs(at(map, "success_rate")->number - 200.0 / 3) < 1e-9);
    expect(map, "average_duration", "2.0");
    expect(map, "total_duration", "6.5");
    expect(map, "gpu_ids_tested", "[0, 1]");
    expect(map, "numa_nodes_tested", "[0, 3]");
    expect(map, "vit_configs_tested", "2"); /* they differ in their heads, not in their label */
    expect(map, "simulated", "false");

    map = lab_results_summary("quick_test", runs + 3, 2, &arena);
    expect(map, "success_rate", "null");
    expect(map, "average_duration", "null");
    expect(map, "total_duration", "0.0");
    expect(map, "gpu_ids_tested", "[]");
}

LAB_TEST(a_summary_of_simulated_time_says_so) {
    struct lab_run run = done_run();
    struct lab_run_rank rank = {0, "sim:dgx-h100:0", 0};
    run.ranks = &rank;
    run.rank_count = 1;
    expect(lab_results_summary("quick_test", &run, 1, &arena), "simulated", "true");
}

/* Given a program's metrics, then each has its last and its best value, where one is better. */
LAB_TEST(metrics_have_a_last_and_a_best) {
    static const struct {
        const char *name;
        double values[3], best, best_step;
    } cases[] = {{"val_loss", {3, 1, 2}, 1, 20},
                 {"accuracy", {0.5, 0.25, NAN}, 0.5, 10},
                 {"gamma", {1, 2, 3}, NAN, NAN}};
    LAB_AUTO(str, text);
    struct lab_results_metrics *metrics = lab_results_metrics_open();
    struct lab_store *store = create(path);
    struct lab_value *value;
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int i = 0; i < 3; i++) {
            struct lab_store_metric metric = {cases[c].name,      "", 0,
                                              cases[c].values[i], 5,  10 * (i + 1)};
            assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err));
        }
    struct lab_run run = done_run();
    run.number = 1;
    for (int again = 0; again < 2; again++) { /* the second time from what was kept */
        lab_str_clear(&text);
        lab_results_write(&run, 1, store, metrics, &text);
        assert_works(lab_json_parse(text.text, text.length, "results.json", &arena, &value, &err));
        const struct lab_value *list = lab_value_get(value->items[0], "metric_summary");
        assert_int_equal(list->count, 3);
        for (int c = 0; c < 3; c++) {
            double best = lab_value_get_number(list->items[c], "best"),
                   step = lab_value_get_number(list->items[c], "best_step");
            assert_string_equal(lab_value_get_text(list->items[c], "name", ""), cases[c].name);
            assert_true(best == cases[c].best || (isnan(best) && isnan(cases[c].best)));
            assert_true(step == cases[c].best_step || isnan(cases[c].best_step));
            assert_float_equal(lab_value_get_number(list->items[c], "last_step"), 30, 0);
        }
    }
    lab_results_metrics_close(metrics);
    lab_store_close(store);
}

LAB_TEST(thousands_of_runs_are_written) {
    enum { COUNT = 2000 };
    struct lab_run *runs = lab_arena_alloc(&arena, COUNT, sizeof *runs);
    for (int i = 0; i < COUNT; i++)
        runs[i] = done_run();
    struct lab_str text;
    lab_str_init(&text);
    int64_t start_ns = lab_clock_now(lab_clock_system());
    lab_results_write(runs, COUNT, NULL, NULL, &text);
    int64_t written_ns = lab_clock_now(lab_clock_system());
    struct lab_value *summary = lab_results_summary("x", runs, COUNT, &arena);
    int64_t end_ns = lab_clock_now(lab_clock_system());
    print_message("2,000 runs: results.json %.1f MB in %.1f ms, summary in %.1f ms\n",
                  (double)text.length / 1e6, (double)(written_ns - start_ns) / 1e6,
                  (double)(end_ns - written_ns) / 1e6);
    expect(summary, "successful_runs", "2000");
    int lines = 0;
    for (const char *found = text.text; (found = strstr(found, "\"run_id\": ")); found++)
        lines++;
    assert_int_equal(lines, COUNT);
    lab_str_release(&text);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = lab_test_in_utc};
