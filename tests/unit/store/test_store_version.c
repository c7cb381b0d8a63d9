/*
 * test_store_version.c: files of every version there has been are read by this one. Each fixture was
 * made once, by `test_store_version --make FILE` of its day, and is never made again.
 */
#include "store_fixture.h"

#include "store/store_internal.h"

#include "base/file.h"

static void write_everything(struct lab_store *store) {
    int64_t epoch;
    struct lab_store_metric metric = {"loss", "1", -1, 3.25, 77};
    struct lab_run failed = {.state = LAB_RUN_FAILED, .end_ns = 9, .exit_code = 3, .error = "no"};
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1000, &err));
    assert_works(add_iterations(store, 1, 0, 0, 100));
    assert_works(add_iterations(store, 1, 0, 100, 20));
    assert_works(add_iterations(store, 1, 1, 0, 7));
    assert_works(lab_store_add_metric(store, 1, &metric, &err));
    assert_works(lab_store_finish_run(store, 1, &a_result, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 2000, &err));
    assert_works(lab_store_finish_run(store, 2, &failed, &err));
    /* no machine's name goes into a fixture */
    assert_works(lab_store_exec(store,
                                "UPDATE epoch SET boot_id = '6a7e', host = 'a-host', mono_ns = 500,"
                                " wall_ns = 1700000000000000500;"
                                "UPDATE run SET start_wall_ns = 1700000000000000000 + start_ns;"
                                "VACUUM",
                                &err));
}

static int make(const char *where) {
    lab_arena_init(&arena);
    struct lab_store *store;
    if (lab_store_create(where, &a_study, two_runs, 2, &store, &err) < 0) {
        print_error("%s\n", err.text);
        return 1;
    }
    write_everything(store);
    lab_store_close(store);
    lab_arena_release(&arena);
    return 0;
}

static void check_runs(struct lab_store *store) {
    struct lab_run run = read_run(store, 1);
    assert_int_equal(run.state, LAB_RUN_DONE);
    assert_true(run.identity == two_runs[0].identity);
    assert_int_equal(run.rank_count, 2);
    assert_string_equal(run.ranks[1].device, "cpu:0/2.1");
    assert_int_equal(run.start_ns, 1000);
    assert_true(run.start_wall_ns == 1700000000000001000);
    assert_int_equal(run.end_ns, 9000);
    assert_string_equal(run.result, a_result.result);
    assert_true(run.concurrent);
    run = read_run(store, 2);
    assert_int_equal(run.state, LAB_RUN_FAILED);
    assert_int_equal(run.exit_code, 3);
    assert_string_equal(run.error, "no");
}

static void check_content(struct lab_store *store) {
    struct lab_store_study study;
    assert_works(lab_store_study(store, &arena, &study, &err));
    assert_string_equal(study.name, a_study.name);
    assert_true(study.seed == a_study.seed && study.identity == a_study.identity);
    assert_string_equal(study.config, a_study.config);
    check_runs(store);
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

static void version_1_is_read(void **state) {
    (void)state;
    path = LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v1.db";
    struct lab_store *store = reopen(LAB_STORE_READ);
    check_content(store);
    lab_store_close(store);
}

static void version_1_goes_on(void **state) {
    (void)state;
    char *bytes;
    size_t length;
    assert_works(lab_file_read(LAB_TEST_SOURCE_DIR "/tests/fixtures/store/v1.db", 1 << 20, &arena,
                               &bytes, &length, &err));
    assert_works(lab_file_write_atomic(path, bytes, length, &err));
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    check_content(store);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 3000, &err));
    assert_works(lab_store_finish_run(store, 2, &a_result, &err));
    assert_int_equal(read_run(store, 2).attempts, 2);
    lab_store_close(store);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--make") == 0)
        return make(argv[2]);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(version_1_is_read), TEST(version_1_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
