/*
 * test_store_version.c: files of every version there has been are read by this one. Each fixture
 * was made once, by `test_store_version --make FILE` of its day, and is never made again.
 *
 * v1.db holds two_runs; v2.db a study as it is when its runner was killed: a run that is done, one
 * that failed, one that was under way. v3.db is the same and was sampled meanwhile; v4.db is the
 * same again, with results in tables, v5.db with the steps of metrics. recording-v1.db has the same samples, in a file of their own:
 * `test_store_version --record FILE`.
 */
#include "recording_fixture.h"

#include "store/store_internal.h"

#include "base/file/file.h"
#include "unit/result_fixture.h"

#define FIXTURE(version)   LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v" #version ".db"
#define RECORDING(version) LAB_TEST_SOURCE_DIR "/tests/fixtures/store/recording-v" #version ".db"

/* --- making the newest one --- */

#define VIT_OPTIONS                                                                                \
    "{\"patch_size\": 32, \"depth\": 6, \"heads\": 8, \"dim\": 512, \"mlp_dim\": 2048,"            \
    " \"batch_size\": 10, \"dtype\": \"fp32\"}"
#define RANK(device, node, rate)                                                                   \
    "{\"device\": \"" device "\", \"numa_node\": " node                                            \
    ", \"iterations\": 120, \"samples\": 1200,"                                                    \
    " \"rate\": " rate ", \"rate_unit\": \"samples/s\"}"

static const struct lab_run three_runs[] = {
    {.id = "gpu0_gpu1_numa0_numa3_vit32x6x512",
     .identity = 0x8000000000000001,
     .workload = "vit",
     .label = "vit32x6x512",
     .options = VIT_OPTIONS,
     .series = "[\"strong\"]",
     .test = "{\"num_samples\": 1200, \"warmup_samples\": 100, \"timeout_s\": 600}",
     .iterations = 120,
     .warmup_iterations = 10,
     .ranks = two_ranks,
     .rank_count = 2},
    {.id = "gpu0_numa0_memcpy",
     .identity = 5,
     .position = 1,
     .repeat = 1,
     .workload = "memcpy",
     .label = "memcpy",
     .options = "{\"size\": 65536, \"direction\": \"h2d\"}",
     .series = "[]",
     .iterations = 50,
     .ranks = two_ranks,
     .rank_count = 1},
    {.id = "gpu1_numa3_null",
     .identity = 6,
     .position = 2,
     .workload = "null",
     .label = "null",
     .options = "{}",
     .series = "[]",
     .iterations = 50,
     .ranks = two_ranks + 1,
     .rank_count = 1},
};

static const char done_result[] =
    "{\"rate\": 850.5, \"rate_low\": 848, \"rate_high\": null, \"rate_unit\": \"samples/s\","
    " \"samples_per_second\": 850.5, \"flops_per_second\": 1.5e12, \"h2d_gb_per_s\": 4.25,"
    " \"d2h_gb_per_s\": 0.5, \"compute_utilization\": 0.875, \"overlap\": 0.25,"
    " \"gang_overlap\": 0.99, \"peak_memory_mb\": 96.5,"
    " \"latency_ms\": {\"mean\": 11.5, \"median\": 11.25, \"p90\": 12, \"p95\": 12.5,"
    " \"p99\": 13.75, \"min\": 11, \"max\": 14},"
    " \"valid\": true, \"warnings\": [\"load was 1.5, \\\"high\\\"\"], \"invalid\": [],"
    " \"ranks\": [" RANK("cpu:0/2.0", "0", "425.5") ", " RANK("cpu:0/2.1", "3", "425") "]}";

static const struct lab_run done = {
    .state = LAB_RUN_DONE,
    .end_ns = 2500001000,
    .rate = 850.5,
    .rate_low = 848,
    .rate_high = NAN,
    .rate_unit = "samples/s",
    .valid = true,
};

static const struct lab_run failed = {.state = LAB_RUN_FAILED,
                                      .end_ns = 2500002009,
                                      .exit_code = 3,
                                      .error =
                                          "out of device memory: take a smaller size, or\nnode 1",
                                      .rate = NAN,
                                      .rate_low = NAN,
                                      .rate_high = NAN};

static const struct lab_run_progress under_way = {3, "measure", 12, 50, 2500003000};

/* no machine's name goes into a fixture */
#define WITHOUT_NAMES                                                                              \
    "UPDATE epoch SET boot_id = '6a7e', host = 'a-host', mono_ns = 500,"                           \
    " wall_ns = 1700000000000000500;"

enum { SAMPLES = 300 };

static void send_samples(struct lab_recorder *recorder) {
    struct lab_sink_samples sink = lab_recorder_sink(recorder);
    struct lab_process_gpu gpu = {.entity = GPU, .memory_bytes = 5, .sm_percent = 7.5};
    struct lab_process_sample process = {
        .pid = 42, .name = "python3", .gpus = &gpu, .gpu_count = 1};
    const struct lab_process_list list = {tick_time(5), &process, 1, 3};
    const struct lab_sample_event event = {tick_time(7), GPU, LAB_EVENT_XID, 79,
                                           "fallen off the bus"};
    tell(&sink);
    send_ticks(&sink, GPU, 0, SAMPLES);
    send_ticks(&sink, CPUS, 50, SAMPLES);
    sink.processes(sink.state, &list);
    sink.event(sink.state, &event);
}

static int make_recording(const char *where) {
    lab_arena_init(&arena);
    struct lab_recorder *recorder = record(where);
    send_samples(recorder);
    assert_works(lab_recorder_flush(recorder, true, &err));
    assert_works(lab_store_exec(recorder->store,
                                WITHOUT_NAMES "UPDATE recording SET maker = 'gpulab 0.1.0',"
                                              " started_wall_ns = 1700000000000000000;"
                                              "VACUUM",
                                &err));
    assert_works(lab_recorder_close(recorder, &err));
    lab_arena_release(&arena);
    return 0;
}

static void attach_and_record(struct lab_store *store) {
    struct lab_clock clock = lab_clock_manual(&now_ns);
    const struct lab_recorder_setup setup = {.interval_ns = TICK_NS, .note = "", .clock = &clock};
    struct lab_recorder *recorder;
    assert_works(lab_recorder_attach(store, &setup, &recorder, &err));
    send_samples(recorder);
    assert_works(lab_recorder_close(recorder, &err));
}

static void write_everything(struct lab_store *store) {
    int64_t epoch;
    struct lab_store_metric metric = {"loss", "1", -1, 3.25, 77, 120};
    struct lab_run finished = done;
    finished.result = result_from(done_result, &arena);
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1000, &err));
    assert_works(add_iterations(store, 1, 0, 0, 100));
    assert_works(add_iterations(store, 1, 0, 100, 20));
    assert_works(add_iterations(store, 1, 1, 0, 7));
    assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err));
    assert_works(lab_store_finish_run(store, 1, &finished, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 2500002000, &err));
    assert_works(lab_store_finish_run(store, 2, &failed, &err));
    assert_works(lab_store_begin_run(store, 3, epoch, 2500003000, &err));
    assert_works(lab_store_set_progress(store, &under_way, 1, &err));
    attach_and_record(store);
    assert_works(lab_store_exec(store,
                                WITHOUT_NAMES
                                "UPDATE run SET start_wall_ns = 1700000000000000000 + start_ns;"
                                "VACUUM",
                                &err));
}

static int make(const char *where) {
    lab_arena_init(&arena);
    struct lab_store *store;
    if (lab_store_create(where, &a_study, three_runs, 3, &store, &err) < 0) {
        print_error("%s\n", err.text);
        return 1;
    }
    write_everything(store);
    lab_store_close(store);
    lab_arena_release(&arena);
    return 0;
}

/* --- what each of them holds --- */

static void check_runs_1(struct lab_store *store) {
    struct lab_run run = read_run(store, 1);
    assert_int_equal(run.state, LAB_RUN_DONE);
    assert_true(run.identity == two_runs[0].identity);
    assert_int_equal(run.rank_count, 2);
    assert_string_equal(run.ranks[1].device, "cpu:0/2.1");
    assert_int_equal(run.start_ns, 1000);
    assert_true(run.start_wall_ns == 1700000000000001000);
    assert_int_equal(run.end_ns, 9000);
    assert_true(run.concurrent);
    assert_string_equal(run.test, "{}");
    assert_true(run.iterations == 0 && run.warmup_iterations == 0);
    assert_true(isnan(run.rate) && isnan(run.rate_low) && isnan(run.rate_high) && run.valid);
    assert_string_equal(run.rate_unit, "");
    run = read_run(store, 2);
    assert_int_equal(run.state, LAB_RUN_FAILED);
    assert_int_equal(run.exit_code, 3);
    assert_string_equal(run.error, "no");
}

static void check_runs_2(struct lab_store *store) {
    struct lab_run run = read_run(store, 1);
    assert_int_equal(run.state, LAB_RUN_DONE);
    const char *key = result_unequal(result_from(done_result, &arena), run.result, true);
    if (key)
        fail_msg("they differ in %s", key);
    assert_string_equal(run.test, three_runs[0].test);
    assert_true(run.iterations == 120 && run.warmup_iterations == 10);
    assert_true(run.rate == 850.5 && run.rate_low == 848 && isnan(run.rate_high) && run.valid);
    assert_string_equal(run.rate_unit, "samples/s");
    run = read_run(store, 2);
    assert_int_equal(run.state, LAB_RUN_FAILED);
    assert_string_equal(run.error, failed.error);
    assert_int_equal(run.hint, LAB_HINT_NONE); /* such files have none */
    assert_true(isnan(run.rate) && !run.valid);
    assert_int_equal(read_run(store, 3).state, LAB_RUN_RUNNING);
    struct lab_run_progress *items;
    int count;
    assert_works(lab_store_progress(store, &arena, &items, &count, &err));
    assert_int_equal(count, 1);
    assert_string_equal(items[0].phase, "measure");
    assert_true(items[0].run == 3 && items[0].done == 12 && items[0].total == 50);
}

static void check_content(struct lab_store *store, uint64_t machine_identity) {
    struct lab_store_study study;
    assert_works(lab_store_study(store, &arena, &study, &err));
    assert_string_equal(study.name, a_study.name);
    assert_true(study.seed == a_study.seed && study.identity == a_study.identity);
    assert_true(study.machine_identity == machine_identity);
    assert_string_equal(study.config, a_study.config);
    struct lab_iteration *items;
    size_t count;
    assert_works(lab_store_iterations(store, 1, 0, &arena, &items, &count, &err));
    assert_int_equal(count, 120);
    for (size_t i = 0; i < count; i++) {
        struct lab_iteration expected = iteration((int64_t)i, 0);
        assert_memory_equal(&items[i], &expected, sizeof expected);
    }
    assert_int_equal(count_iterations(store, 1, 1), 7);
    struct lab_store_metric *metrics;
    int metric_count;
    assert_works(lab_store_metrics(store, 1, &arena, &metrics, &metric_count, &err));
    assert_int_equal(metric_count, 1);
    assert_string_equal(metrics[0].name, "loss");
    assert_true(metrics[0].value == 3.25 && metrics[0].time_ns == 77 && metrics[0].rank == -1);
}

static void check_1(struct lab_store *store) {
    check_content(store, 0);
    check_runs_1(store);
    struct lab_run_progress *items;
    int count, counts[LAB_RUN_STATE_COUNT];
    assert_works(lab_store_progress(store, &arena, &items, &count, &err));
    assert_int_equal(count, 0);
    assert_works(lab_store_count(store, counts, &err));
    assert_int_equal(counts[LAB_RUN_DONE], 1);
    assert_int_equal(counts[LAB_RUN_FAILED], 1);
}

static void check_2(struct lab_store *store) {
    check_content(store, a_study.machine_identity);
    check_runs_2(store);
}

static void check_samples(const struct lab_recording *recording) {
    assert_all_there(*recording);
    assert_int_equal(recording->track_count, ENTITIES);
    check_ticks(track_of(recording, GPU), GPU, 0, SAMPLES);
    check_ticks(track_of(recording, CPUS), CPUS, 50, SAMPLES);
    assert_int_equal(recording->event_count, 1);
    assert_string_equal(recording->events[0].text, "fallen off the bus");
    assert_int_equal(recording->process_count, 1);
    assert_string_equal(recording->processes[0].items[0].name, "python3");
    assert_true(recording->processes[0].items[0].gpus[0].sm_percent == 7.5);
    assert_int_equal(recording->epoch_count, 1);
    assert_string_equal(recording->epochs[0].host, "a-host");
    assert_true(lab_recording_wall_ns(recording, 1000) == 1700000000000001000);
}

static void check_3(struct lab_store *store) {
    struct lab_recording recording;
    check_2(store);
    assert_works(lab_recording_read_store(store, NULL, &arena, &recording, &err));
    check_samples(&recording);
}

/* --- reading --- */

LAB_TEST(version_1_is_read) {
    path = FIXTURE(1);
    struct lab_store *store = reopen(LAB_STORE_READ);
    check_1(store);
    lab_store_close(store);
}

LAB_TEST(version_2_is_read) {
    path = FIXTURE(2);
    struct lab_store *store = reopen(LAB_STORE_READ);
    check_2(store);
    lab_store_close(store);
}

LAB_TEST(version_3_is_read) {
    path = FIXTURE(3);
    struct lab_store *store = reopen(LAB_STORE_READ);
    check_3(store);
    lab_store_close(store);
    struct lab_recording recording = read_back(path, NULL);
    check_samples(&recording);
}

LAB_TEST(version_4_is_read) {
    path = FIXTURE(4);
    struct lab_store *store = reopen(LAB_STORE_READ);
    check_3(store);
    lab_store_close(store);
}

LAB_TEST(version_5_is_read) {
    path = FIXTURE(5);
    struct lab_store *store = reopen(LAB_STORE_READ);
    struct lab_store_metric *metrics;
    int count;
    check_3(store);
    assert_works(lab_store_metrics(store, 1, &arena, &metrics, &count, &err));
    assert_true(metrics[0].step == 120);
    lab_store_close(store);
}

LAB_TEST(a_recording_of_version_1_is_read) {
    struct lab_recording recording = read_back(RECORDING(1), NULL);
    check_samples(&recording);
    assert_string_equal(recording.maker, "gpulab 0.1.0");
    assert_true(recording.interval_ns == TICK_NS);
}

/* --- going on --- */

static void copy_fixture(const char *from) {
    char *bytes;
    size_t length;
    assert_works(lab_file_read(from, 1 << 20, &arena, &bytes, &length, &err));
    assert_works(lab_file_write_atomic(path, bytes, length, &err));
}

static void run_again(struct lab_store *store, int64_t run) {
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, run, epoch, 3000, &err));
    const struct lab_run_progress progress = {run, "warm-up", 1, 2, 3};
    assert_works(lab_store_set_progress(store, &progress, 1, &err));
    assert_works(lab_store_finish_run(store, run, &a_result, &err));
    struct lab_run again = read_run(store, run);
    assert_int_equal(again.attempts, 2);
    assert_true(again.rate == a_result.rate);
}

LAB_TEST(version_1_goes_on) {
    copy_fixture(FIXTURE(1));
    struct lab_store *reader = reopen(LAB_STORE_READ); /* of before, while it is upgraded */
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    check_1(store);
    check_1(reader);
    lab_store_close(reader);
    run_again(store, 2);
    lab_store_close(store);
    store = reopen(LAB_STORE_READ);
    assert_true(read_run(store, 2).rate == a_result.rate);
    lab_store_close(store);
}

LAB_TEST(version_2_goes_on) {
    copy_fixture(FIXTURE(2));
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    check_2(store);
    run_again(store, 3);
    attach_and_record(store);
    struct lab_recording recording;
    assert_works(lab_recording_read_store(store, NULL, &arena, &recording, &err));
    check_ticks(track_of(&recording, GPU), GPU, 0, SAMPLES);
    lab_store_close(store);
}

LAB_TEST(version_3_goes_on) {
    copy_fixture(FIXTURE(3));
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    check_3(store);
    run_again(store, 3);
    lab_store_close(store);
}

/* Upgraded, it shows what it showed before. */
LAB_TEST(results_survive_the_upgrade) {
    static const char *const fixtures[] = {FIXTURE(1), FIXTURE(2), FIXTURE(3), FIXTURE(4)};
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        struct lab_run *before, *after;
        int count, again;
        unlink(path);
        copy_fixture(fixtures[i]);
        struct lab_store *store = reopen(LAB_STORE_READ);
        assert_works(lab_store_runs(store, &arena, &before, &count, &err));
        lab_store_close(store);
        lab_store_close(reopen(LAB_STORE_WRITE));
        store = reopen(LAB_STORE_READ);
        assert_int_equal(store->version, LAB_STORE_VERSION);
        assert_works(lab_store_runs(store, &arena, &after, &again, &err));
        lab_store_close(store);
        assert_int_equal(count, again);
        for (int k = 0; k < count; k++) {
            assert_int_equal(before[k].result != NULL, before[k].state == LAB_RUN_DONE);
            assert_int_equal(after[k].result != NULL, before[k].result != NULL);
            const char *key =
                before[k].result ? result_unequal(before[k].result, after[k].result, false) : NULL;
            if (key)
                fail_msg("%s: they differ in %s", fixtures[i], key);
        }
    }
}

/* A reader leaves a file of another version as it is. */
LAB_TEST(a_reader_upgrades_nothing) {
    copy_fixture(FIXTURE(1));
    lab_store_close(reopen(LAB_STORE_READ));
    char *before, *after;
    size_t length_before, length_after;
    assert_works(lab_file_read(FIXTURE(1), 1 << 20, &arena, &before, &length_before, &err));
    assert_works(lab_file_read(path, 1 << 20, &arena, &after, &length_after, &err));
    assert_int_equal(length_before, length_after);
    assert_memory_equal(before, after, length_before);
}

/* Every table's and index's columns, as text. */
static const char *describe_tables(void) {
    struct lab_store *store = reopen(LAB_STORE_READ);
    sqlite3_stmt *row;
    assert_int_equal(
        sqlite3_prepare_v2(store->db,
                           "SELECT group_concat(line, char(10)) FROM ("
                           "SELECT m.type || ' ' || m.name || ': ' || c.name || ' ' || c.type"
                           " || ' ' || c.\"notnull\" || ' ' || ifnull(c.dflt_value, '') AS line"
                           " FROM sqlite_schema m, pragma_table_info(m.name) c"
                           " ORDER BY m.name, c.cid)",
                           -1, &row, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const char *text = lab_arena_strdup(&arena, (const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    lab_store_close(store);
    return text;
}

LAB_TEST(an_upgraded_file_has_the_tables_of_a_new_one) {
    lab_store_close(create(path));
    const char *new = describe_tables();
    assert_non_null(strstr(new, "table result: latency_ms.p99 REAL"));
    copy_fixture(FIXTURE(1));
    assert_string_not_equal(describe_tables(), new);
    lab_store_close(reopen(LAB_STORE_WRITE));
    assert_string_equal(describe_tables(), new);
}

static int begin(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--make") == 0)
        return make(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--record") == 0)
        return make_recording(argv[2]);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
