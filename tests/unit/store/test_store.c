/* test_store.c: what is written to a study's file is what is read from it, in every order of
 * events. */
#include "store_fixture.h"

#include "store/store_internal.h"
#include "unit/result_fixture.h"

#include "base/clock.h"

#include <math.h>

#define LAST_NS 4000000000000000000 /* the last time that is believed */

LAB_TEST(the_study_and_its_plan_are_kept) {
    lab_store_close(create(path));
    struct lab_store *store = reopen(LAB_STORE_READ);
    struct lab_store_study study;
    assert_works(lab_store_study(store, &arena, &study, &err));
    assert_string_equal(study.name, a_study.name);
    assert_string_equal(study.option, a_study.option);
    assert_true(study.identity == a_study.identity && study.seed == a_study.seed);
    assert_string_equal(study.config, a_study.config);
    assert_string_equal(study.words, a_study.words);
    assert_string_equal(study.machine, a_study.machine);
    assert_string_equal(study.version, a_study.version);
    assert_true(study.created_wall_ns == a_study.created_wall_ns);
    assert_true(study.machine_identity == a_study.machine_identity);

    struct lab_run *runs;
    int count;
    assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(runs[0].number, 2); /* the planned order */
    assert_string_equal(runs[0].label, "");
    assert_string_equal(runs[0].test, "{}");
    assert_int_equal(runs[0].rank_count, 1);
    const struct lab_run *run = &runs[1];
    assert_int_equal(run->number, 1);
    assert_string_equal(run->id, two_runs[0].id);
    assert_true(run->identity == two_runs[0].identity);
    assert_int_equal(run->position, 1);
    assert_int_equal(run->repeat, 2);
    assert_string_equal(run->workload, "vit");
    assert_string_equal(run->label, "32x6x512");
    assert_string_equal(run->options, "{\"depth\": 6}");
    assert_string_equal(run->series, "[\"strong\"]");
    assert_string_equal(run->test, "{\"num_samples\": 100}");
    assert_true(run->iterations == 20 && run->warmup_iterations == 4);
    assert_int_equal(run->rank_count, 2);
    assert_int_equal(run->ranks[1].gpu_id, 1);
    assert_string_equal(run->ranks[1].device, "cpu:0/2.1");
    assert_int_equal(run->ranks[1].numa_node, 3);
    assert_int_equal(run->state, LAB_RUN_PLANNED);
    assert_int_equal(run->attempts, 0);
    assert_int_equal(run->epoch, 0);
    assert_true(isnan(run->rate) && isnan(run->rate_low) && isnan(run->rate_high));
    assert_string_equal(run->rate_unit, "");
    assert_true(run->valid);
    lab_store_close(store);
}

/* The key counts at the top of `test`, however it is spaced. */
LAB_TEST(a_spread_run_is_known_by_its_key) {
    static const struct {
        const char *test;
        bool spread;
    } cases[] = {{"{\"spread\": true}", true},
                 {"{\"spread\":true}", true},
                 {"{\"spread\": false}", false},
                 {"{\"phase\": {\"spread\": true}}", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lab_run planned = two_runs[1], *runs;
        struct lab_store *store;
        int count;
        planned.test = cases[i].test;
        const char *file = lab_arena_printf(&arena, "%s/%zu.db", folder, i);
        assert_works(lab_store_create(file, &a_study, &planned, 1, &store, &err));
        assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
        assert_true(runs[0].spread == cases[i].spread);
        lab_store_close(store);
    }
}

LAB_TEST(a_runs_life_is_kept) {
    struct lab_store *store = create(path);
    int64_t epoch = 0, start_ns = lab_clock_now(lab_clock_system());
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, start_ns, &err));
    assert_works(add_iterations(store, 1, 1, 0, 300));
    assert_works(add_iterations(store, 1, 1, 300, 1));
    assert_works(add_iterations(store, 1, 1, 301, 0));
    assert_works(lab_store_finish_run(store, 1, &a_result, &err));
    lab_store_close(store);

    store = reopen(LAB_STORE_READ);
    struct lab_run run = read_run(store, 1);
    assert_int_equal(run.state, LAB_RUN_DONE);
    assert_int_equal(run.attempts, 1);
    assert_int_equal(run.epoch, epoch);
    assert_true(run.start_ns == start_ns && run.end_ns == 9000);
    assert_true(llabs(lab_clock_wall_ns() - run.start_wall_ns) < 60 * LAB_NS_PER_S);
    assert_true(run.result->rate == 12.5 && run.result->valid == 1);
    assert_string_equal(run.error, "");
    assert_true(run.concurrent);
    assert_true(run.rate == 12.5 && run.rate_low == 12.25 && isnan(run.rate_high));
    assert_string_equal(run.rate_unit, "samples/s");
    assert_true(run.valid);
    struct lab_iteration *items;
    size_t count;
    assert_works(lab_store_iterations(store, 1, 1, &arena, &items, &count, &err));
    assert_int_equal(count, 301);
    for (size_t i = 0; i < count; i++) {
        struct lab_iteration expected = iteration((int64_t)i, 1);
        assert_memory_equal(&items[i], &expected, sizeof expected);
    }
    assert_int_equal(count_iterations(store, 1, 0), 0);
    assert_int_equal(count_iterations(store, 77, 0), 0);
    assert_true(lab_store_run_start(store, 1) == start_ns);
    assert_true(lab_store_run_start(store, 2) <= 0); /* only planned */
    assert_int_equal(lab_store_run_start(store, 77), -1);
    lab_store_close(store);
}

LAB_TEST(a_failure_is_kept_with_its_error) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 1, &err));
    struct lab_run failed = {.state = LAB_RUN_FAILED,
                             .exit_code = -1,
                             .error = "killed by signal 9",
                             .hint = LAB_HINT_WORKER_KILLED};
    assert_works(lab_store_finish_run(store, 2, &failed, &err));
    struct lab_run run = read_run(store, 2);
    assert_int_equal(run.state, LAB_RUN_FAILED);
    assert_int_equal(run.exit_code, -1);
    assert_string_equal(run.error, "killed by signal 9");
    assert_int_equal(run.hint, LAB_HINT_WORKER_KILLED);
    assert_int_equal(read_run(store, 1).state, LAB_RUN_PLANNED);
    lab_store_close(store);
}

/* Given values that come in two lots, then a curve goes on where it was read up to. */
LAB_TEST(curves_are_read_on) {
    struct lab_store *store = create(path);
    int64_t epoch;
    struct lab_metric_curves curves = {.arena = &arena};
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1000, &err));
    for (int i = 0; i < 6; i++) {
        struct lab_store_metric metric = {
            "loss", "", i % 2 ? -1 : 0, 10 - i, 1000 + 500000000LL * i, i};
        assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err));
        if (i == 2)
            assert_works(lab_store_read_curves(store, 1, 1000, &curves, &err));
    }
    assert_int_equal(curves.items[0].curve.values, 2);
    assert_works(lab_store_read_curves(store, 1, 1000, &curves, &err));
    assert_int_equal(curves.count, 2); /* by rank */
    assert_int_equal(curves.items[0].curve.values, 3);
    assert_float_equal(curves.items[0].curve.last, 6, 0);
    assert_float_equal(curves.items[1].curve.last_step, 5, 0);
    assert_float_equal(curves.items[1].curve.points[2].time_s, 2.5, 1e-9);
    lab_store_close(store);
}

LAB_TEST(metrics_keep_every_kind_of_number) {
    static const double values[] = {0.1, -0.0, INFINITY, -INFINITY, NAN, 5e-324};
    enum { COUNT = sizeof values / sizeof *values };
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    for (int i = 0; i < COUNT; i++) {
        struct lab_store_metric metric = {"loss", "1", i % 2 - 1, values[i], LAST_NS - i};
        assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err));
    }
    struct lab_store_metric *metrics;
    int count;
    assert_works(lab_store_metrics(store, 1, &arena, &metrics, &count, &err));
    assert_int_equal(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(metrics[i].name, "loss");
        assert_string_equal(metrics[i].unit, "1");
        assert_int_equal(metrics[i].rank, i % 2 - 1);
        assert_true(metrics[i].value == values[i] || (isnan(metrics[i].value) && isnan(values[i])));
        assert_true(metrics[i].time_ns == LAST_NS - i);
    }
    assert_works(lab_store_metrics(store, 2, &arena, &metrics, &count, &err));
    assert_int_equal(count, 0);
    lab_store_close(store);
}

/* Given numbers that nobody wrote, then sums and differences of what is read stay numbers. */
LAB_TEST(numbers_that_cannot_be_are_not_believed) {
    static const char *const numbers[] = {"-9223372036854775808", "9223372036854775807", "-2"};
    struct lab_store *store = create(path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct lab_run *runs;
        struct lab_store_study study;
        int count;
        const char *n = numbers[i];
        assert_works(lab_store_exec(
            store,
            lab_arena_printf(&arena,
                             "PRAGMA ignore_check_constraints = 1; UPDATE study SET created_wall_ns"
                             " = %s; UPDATE run SET start_ns = %s, end_ns = %s, start_wall_ns = %s,"
                             " repeat = %s, iterations = %s; UPDATE rank SET numa_node = %s",
                             n, n, n, n, n, n, n),
            &err));
        assert_works(lab_store_study(store, &arena, &study, &err));
        assert_int_equal(study.created_wall_ns, 0);
        assert_works(lab_store_runs(store, &arena, &runs, &count, &err));
        assert_true(count > 0);
        assert_int_equal(runs[0].start_ns, 0);
        assert_int_equal(runs[0].end_ns, 0);
        assert_int_equal(runs[0].start_wall_ns, 0);
        assert_int_equal(runs[0].iterations, 0);
        assert_int_equal(runs[0].repeat, -1);
        assert_int_equal(runs[0].ranks[0].numa_node, -1);
    }
    lab_store_close(store);
}

LAB_TEST(the_same_boot_is_the_same_epoch) {
    struct lab_store *store = create(path);
    int64_t first, again, other;
    assert_works(lab_store_epoch(store, "runner", &first, &err));
    lab_store_close(store);
    store = reopen(LAB_STORE_WRITE);
    assert_works(lab_store_epoch(store, "runner", &again, &err));
    assert_works(lab_store_epoch(store, "recorder", &other, &err));
    assert_true(first > 0);
    assert_int_equal(again, first);
    assert_int_not_equal(other, first);
    lab_store_close(store);
}

LAB_TEST(beginning_again_drops_what_the_earlier_attempt_left) {
    struct lab_store *store = create(path);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    struct lab_store_metric metric = {"loss", "", -1, 1, 1};
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 1, &err));
    assert_works(add_iterations(store, 1, 0, 0, 50));
    assert_works(add_iterations(store, 2, 0, 0, 20));
    assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err));
    struct lab_run failed = {.state = LAB_RUN_FAILED, .end_ns = 7, .exit_code = 3, .error = "no"};
    failed.hint = LAB_HINT_TIMEOUT;
    failed.rate = 7, failed.rate_unit = "samples/s";
    assert_works(lab_store_finish_run(store, 1, &failed, &err));
    assert_false(read_run(store, 1).valid);

    assert_works(lab_store_begin_run(store, 1, epoch, 8, &err));
    struct lab_run run = read_run(store, 1);
    assert_int_equal(run.state, LAB_RUN_RUNNING);
    assert_int_equal(run.attempts, 2);
    assert_true(run.start_ns == 8 && run.end_ns == 0 && run.exit_code == 0);
    assert_string_equal(run.error, "");
    assert_int_equal(run.hint, LAB_HINT_NONE);
    assert_true(isnan(run.rate) && run.valid);
    assert_string_equal(run.rate_unit, "");
    assert_int_equal(count_iterations(store, 1, 0), 0);
    assert_int_equal(count_iterations(store, 2, 0), 20);
    struct lab_store_metric *metrics;
    int count;
    assert_works(lab_store_metrics(store, 1, &arena, &metrics, &count, &err));
    assert_int_equal(count, 0);
    assert_works(add_iterations(store, 1, 0, 0, 5));
    lab_store_close(store);
}

LAB_TEST(what_contradicts_a_runs_life_is_refused) {
    struct lab_store *store = create(path);
    int64_t epoch;
    struct lab_store_metric metric = {"loss", "", 2, 1, 1};
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_refused(lab_store_finish_run(store, 1, &a_result, &err), LAB_ERR_USER, "it is planned");
    assert_refused(lab_store_begin_run(store, 9, epoch, 1, &err), LAB_ERR_USER, "no run 9");
    assert_refused(lab_store_begin_run(store, 1, 44, 1, &err), LAB_ERR_USER, "no epoch 44");
    assert_refused(add_iterations(store, 1, 0, 0, 5), LAB_ERR_USER, "it is planned");
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(add_iterations(store, 1, 0, 0, 5));
    assert_refused(add_iterations(store, 1, 0, 0, 5), LAB_ERR_USER, "5 is the next");
    assert_refused(add_iterations(store, 1, 0, 6, 5), LAB_ERR_USER, "5 is the next");
    assert_refused(add_iterations(store, 1, 2, 0, 5), LAB_ERR_USER, "no rank 2");
    assert_works(lab_store_add_metrics(store, 1, &metric, 1, &err)); /* a rank of the program's */
    assert_works(lab_store_finish_run(store, 1, &a_result, &err));
    assert_refused(lab_store_finish_run(store, 1, &a_result, &err), LAB_ERR_USER, "it is done");
    assert_refused(lab_store_begin_run(store, 1, epoch, 1, &err), LAB_ERR_USER, "it is done");
    assert_refused(lab_store_add_metrics(store, 1, &metric, 1, &err), LAB_ERR_USER, "it is done");
    assert_int_equal(count_iterations(store, 1, 0), 5);
    assert_int_equal(read_run(store, 1).attempts, 1);
    lab_store_close(store);
}

LAB_TEST(a_reader_sees_every_commit_while_the_writer_works) {
    struct lab_store *writer = create(path), *reader = reopen(LAB_STORE_READ);
    int64_t epoch;
    assert_works(lab_store_epoch(writer, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(writer, 1, epoch, 1, &err));
    assert_int_equal(read_run(reader, 1).state, LAB_RUN_RUNNING);
    for (int64_t i = 0; i < 20; i++) {
        assert_works(add_iterations(writer, 1, 0, i * 10, 10));
        assert_int_equal(count_iterations(reader, 1, 0), (size_t)(i + 1) * 10);
    }
    assert_works(lab_store_finish_run(writer, 1, &a_result, &err));
    assert_int_equal(read_run(reader, 1).state, LAB_RUN_DONE);
    assert_int_equal(lab_store_begin_run(reader, 2, epoch, 1, &err), -1);
    lab_store_close(reader);
    lab_store_close(writer);
    assert_int_equal(count_files(folder, false), 1);
}

static void expect_progress(struct lab_store *store, int expected,
                            const struct lab_run_progress *first) {
    struct lab_run_progress *items;
    int count;
    assert_works(lab_store_progress(store, &arena, &items, &count, &err));
    assert_int_equal(count, expected);
    if (!first)
        return;
    assert_int_equal(items[0].run, first->run);
    assert_string_equal(items[0].phase, first->phase);
    assert_true(items[0].done == first->done && items[0].total == first->total);
    assert_true(items[0].time_ns == first->time_ns);
}

LAB_TEST(progress_is_what_was_said_last) {
    struct lab_store *writer = create(path), *reader = reopen(LAB_STORE_READ);
    int64_t epoch;
    assert_works(lab_store_epoch(writer, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(writer, 1, epoch, 1, &err));
    assert_works(lab_store_begin_run(writer, 2, epoch, 1, &err));
    expect_progress(reader, 0, NULL);
    const struct lab_run_progress both[] = {{1, "warm-up", 3, 4, 100}, {2, "", 0, 0, 101}};
    assert_works(lab_store_set_progress(writer, both, 2, &err));
    expect_progress(reader, 2, &both[1]); /* run 2 is planned before run 1 */

    /* one that isn't spoken of keeps what was said */
    const struct lab_run_progress later = {2, "measure", 5, 20, LAST_NS};
    assert_works(lab_store_set_progress(writer, &later, 1, &err));
    expect_progress(reader, 2, &later);

    /* an end, and a new beginning, take it away; what comes late is not kept */
    assert_works(lab_store_finish_run(writer, 1, &a_result, &err));
    expect_progress(reader, 1, &later);
    assert_works(lab_store_set_progress(writer, both, 1, &err));
    expect_progress(reader, 1, &later);
    assert_works(lab_store_begin_run(writer, 2, epoch, 2, &err));
    expect_progress(reader, 0, NULL);
    assert_works(lab_store_set_progress(writer, NULL, 0, &err));
    lab_store_close(reader);
    lab_store_close(writer);
}

LAB_TEST(runs_are_counted_by_state) {
    struct lab_store *store = create(path);
    int counts[LAB_RUN_STATE_COUNT] = {9, 9, 9, 9};
    assert_works(lab_store_count(store, counts, &err));
    assert_int_equal(counts[LAB_RUN_PLANNED], 2);
    assert_int_equal(counts[LAB_RUN_RUNNING] + counts[LAB_RUN_DONE] + counts[LAB_RUN_FAILED], 0);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 1, &err));
    assert_works(lab_store_finish_run(store, 2, &a_result, &err));
    assert_works(lab_store_count(store, counts, &err));
    assert_int_equal(counts[LAB_RUN_PLANNED], 0);
    assert_int_equal(counts[LAB_RUN_RUNNING], 1);
    assert_int_equal(counts[LAB_RUN_DONE], 1);
    lab_store_close(store);
}

LAB_TEST(one_file_remains) {
    lab_store_close(create(path));
    assert_int_equal(count_files(folder, false), 1);
    struct lab_store *store = reopen(LAB_STORE_WRITE);
    int64_t epoch;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    lab_store_close(store);
    lab_store_close(reopen(LAB_STORE_READ));
    assert_int_equal(count_files(folder, false), 1);
    lab_store_close(NULL);
}

LAB_TEST(ten_thousand_runs_are_listed) {
    enum { COUNT = 10000 };
    struct lab_run *runs = lab_arena_alloc(&arena, COUNT, sizeof *runs);
    for (int i = 0; i < COUNT; i++) {
        runs[i] = two_runs[0];
        runs[i].position = (i * 7919) % COUNT;
    }
    struct lab_store *store;
    int64_t start_ns = lab_clock_now(lab_clock_system());
    assert_works(lab_store_create(path, &a_study, runs, COUNT, &store, &err));
    int64_t made_ns = lab_clock_now(lab_clock_system());
    struct lab_run *listed;
    int count;
    assert_works(lab_store_runs(store, &arena, &listed, &count, &err));
    int64_t end_ns = lab_clock_now(lab_clock_system());
    print_message("10,000 runs made in %.1f ms, listed in %.1f ms\n",
                  (double)(made_ns - start_ns) / 1e6, (double)(end_ns - made_ns) / 1e6);
    assert_int_equal(count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(listed[i].position, i);
        assert_int_equal(listed[i].rank_count, 2);
        assert_string_equal(listed[i].ranks[1].device, "cpu:0/2.1");
    }
    lab_store_close(store);
}

/* Every value of a run and of its ranks, whatever the table has. */
LAB_TEST(every_value_of_a_result_comes_back) {
    struct lab_store *store = create(path);
    int64_t epoch = 0;
    struct lab_run outcome = a_result;
    const struct lab_result *full = outcome.result = result_full(2, &arena);
    outcome.rate = full->rate;
    outcome.rate_low = full->rate_low;
    outcome.rate_high = full->rate_high;
    outcome.rate_unit = full->rate_unit;
    outcome.valid = full->valid;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_begin_run(store, 2, epoch, 2, &err));
    assert_works(lab_store_finish_run(store, 2, &a_result, &err));
    assert_works(lab_store_finish_run(store, 1, &outcome, &err));
    lab_store_close(store);
    store = reopen(LAB_STORE_READ);
    struct lab_run run = read_run(store, 1);
    const char *key = result_unequal(full, run.result, false);
    if (key)
        fail_msg("they differ in %s", key);
    assert_int_equal(read_run(store, 2).result->rank_count, 0);
    lab_store_close(store);
}

/* A program that knows a value less wrote the file, another that knows one more. */
LAB_TEST(columns_come_and_go_without_a_version) {
    struct lab_store *store = create(path);
    int64_t epoch = 0;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_exec(store,
                                "ALTER TABLE result DROP COLUMN \"latency_ms.p99\";"
                                "ALTER TABLE result ADD COLUMN \"later\" REAL;"
                                "DROP TABLE result_regret;"
                                "INSERT INTO result (run, rank, later) VALUES (1, -1, 5)",
                                &err));
    lab_store_close(store);
    store = reopen(LAB_STORE_READ); /* as it is */
    assert_null(read_run(store, 1).result);
    lab_store_close(store);

    store = reopen(LAB_STORE_WRITE);
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err)); /* drops what was left of it */
    struct lab_run outcome = a_result;
    outcome.result = result_full(1, &arena);
    assert_works(lab_store_finish_run(store, 1, &outcome, &err));
    struct lab_run run = read_run(store, 1);
    assert_true(run.result->latency_ms_p99 == outcome.result->latency_ms_p99);
    assert_int_equal(run.result->ranks[0].regret.count, 5);
    lab_store_close(store);
}

/* Anybody may have changed the file: what doesn't fit is absent, and nothing decides on memory. */
LAB_TEST(results_of_anybody_are_survived) {
    struct lab_store *store = create(path);
    int64_t epoch = 0;
    assert_works(lab_store_epoch(store, "runner", &epoch, &err));
    assert_works(lab_store_begin_run(store, 1, epoch, 1, &err));
    assert_works(lab_store_finish_run(store, 1, &a_result, &err));
    assert_works(lab_store_exec(
        store,
        "UPDATE result SET rate = 'fast', rate_low = 9e999, iterations = 1.5, steady = x'00',"
        " rate_unit = x'ff', tuning = '{', \"latency_ms.mean\" = 3;"
        "INSERT INTO result (run, rank, rate) VALUES (1, 2000000000, 1), (1, -7, 1), (99, -1, 1),"
        " (1, 1, 44), (1, 0, 55);"
        "INSERT INTO result_warnings VALUES (1, 5, 0, 'x'), (1, -1, 9223372036854775807, x'08'),"
        " (1, -1, -3, 'first'), (77, 0, 0, 'y')",
        &err));
    lab_store_close(store);
    store = reopen(LAB_STORE_READ);
    const struct lab_result *result = read_run(store, 1).result;
    assert_true(isnan(result->rate) && isnan(result->rate_low) && !result->rate_unit);
    assert_true(result->iterations == LAB_RESULT_NO_COUNT && result->steady == LAB_RESULT_NO_FLAG);
    assert_true(result->latency_ms_mean == 3);
    assert_int_equal(result->rank_count, 2); /* in whatever order they lie in the file */
    assert_true(result->ranks[0].rate == 55 && result->ranks[1].rate == 44);
    assert_int_equal(result->warnings.count, 2);
    assert_string_equal(result->warnings.items[0].text, "first");
    assert_null(result->warnings.items[1].text);
    lab_store_close(store);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
