/*
 * test_plan_estimate.c: a plan's runs as records, and what the plan is expected to take. The disk's
 * share is compared with files that the store really wrote.
 */
#include "base/json.h"
#include "golden.h"
#include "run/estimate/plan_estimate.h"
#include "run/plan_record.h"
#include "store/store.h"
#include "unit/plan/plan_fixture.h"
#include "unit/result_fixture.h"

#include <math.h>
#include <stdlib.h>

/* --- records --- */

static struct lab_value *parse(const char *text) {
    struct lab_value *value = NULL;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_json_parse(text, strlen(text), "test", &arena, &value, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return value;
}

LAB_TEST(test_record_holds_the_plan) {
    PLAN("experiment=scaling_study", "experiment.order=as_given");
    int last = plan.run_count - 1;
    struct lab_run run = lab_run_plan_record(&plan, last, &arena);
    assert_int_equal(run.number, last + 1);
    assert_int_equal(run.position, last);
    assert_string_equal(run.id, plan.runs[last].id);
    assert_true(run.identity == plan.runs[last].identity);
    assert_string_equal(run.workload, "vit");
    assert_int_equal(run.iterations, 200);
    assert_int_equal(run.warmup_iterations, 20);
    assert_int_equal(run.rank_count, 1);
    assert_string_equal(run.ranks[0].device, "cpu:0");
    assert_int_equal(run.state, LAB_RUN_PLANNED);
    assert_int_equal(run.attempts, 0);
    assert_true(isnan(run.rate));
    assert_string_equal(run.error, "");
    assert_null(run.result);
}

LAB_TEST(test_record_is_json_where_it_says_so) {
    PLAN("experiment=scaling_study");
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run run = lab_run_plan_record(&plan, i, &arena);
        assert_true(lab_value_equal(parse(run.options), plan.runs[i].options));
        struct lab_value *test = parse(run.test), *series = parse(run.series);
        assert_int_equal(lab_value_get(test, "num_samples")->integer, 2000);
        assert_int_equal(lab_value_get(test, "warmup_samples")->integer, 200);
        assert_true(lab_value_get(test, "timeout_s")->number == 900);
        assert_int_equal(series->type, LAB_VALUE_LIST);
        /* the model that two series share */
        assert_int_equal(series->count, lab_str_equal(run.label, "vit32x6x512") ? 2 : 1);
    }
}

/* --- time --- */

static double runs_s(const struct lab_plan_estimate *estimate) {
    return estimate->expected_s - estimate->report_s;
}

static void assert_shared(const struct lab_plan *of, double seconds) {
    struct lab_plan_estimate estimate = lab_run_plan_estimate(of, NULL);
    assert_near(runs_s(&estimate), seconds, 1e-6);
}

/* Given what reports of shipped studies took of a quiet processor. */
LAB_TEST(test_the_report_takes_time_too) {
    static const struct {
        const char *study;
        double seconds;
    } reports[] = {{"experiment=quick_test", 0.3},
                   {"experiment=scaling_study", 0.45},
                   {"experiment=numa_study", 1.4},
                   {"experiment=compile_study", 1.3},
                   {"experiment=train_scaling", 2.2}};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        PLAN(reports[i].study);
        double ratio = lab_run_plan_estimate(&plan, NULL).report_s / reports[i].seconds;
        if (ratio < 0.5 || ratio > 2)
            fail_msg("%s: %.2f × what it took", reports[i].study, ratio);
    }
}

LAB_TEST(test_nothing_is_known_without_history) {
    PLAN("experiment=quick_test");
    struct lab_plan_estimate estimate = lab_run_plan_estimate(&plan, NULL);
    assert_true(isnan(estimate.expected_s));
    assert_int_equal(estimate.unknown, 3);
}

LAB_TEST(test_most_is_every_attempt_timing_out) {
    PLAN("experiment=quick_test"); /* 3 runs of 300 s, one retry */
    assert_true(lab_run_plan_estimate(&plan, NULL).most_s == 3 * 2 * 300);
    PLAN("experiment=quick_test", "experiment.max_retries=0", "experiment.cooldown=10s");
    assert_true(lab_run_plan_estimate(&plan, NULL).most_s == 3 * 300 + 2 * 10);
    /* no run starts after the budget, but one may have started just before it */
    PLAN("experiment=quick_test", "experiment.max_retries=0", "experiment.budget=100s");
    assert_true(lab_run_plan_estimate(&plan, NULL).most_s == 100 + 300);
}

LAB_TEST(test_a_given_duration_needs_no_history) {
    PLAN("experiment=quick_test", "experiment.duration=60s", "experiment.cooldown=5s");
    struct lab_plan_estimate estimate = lab_run_plan_estimate(&plan, NULL);
    assert_int_equal(estimate.unknown, 0);
    assert_near(runs_s(&estimate), 3 * 60 + 2 * 5, 1e-6);
    assert_int_equal(estimate.by_duration, 3);
}

/* A run of the plan that took so long in an earlier study. */
static void given_run(struct lab_history *history, const char *label, double seconds) {
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run run = lab_run_plan_record(&plan, i, &arena);
        if (!lab_str_equal(run.label, label))
            continue;
        run.state = LAB_RUN_DONE;
        run.start_ns = 1000;
        run.end_ns = run.start_ns + (int64_t)(seconds * 1e9);
        lab_history_add(history, &run);
        return;
    }
    fail_msg("no run of %s", label);
}

LAB_TEST(test_runs_that_were_done_before_are_known) {
    struct lab_history *history = lab_history_open(0, 0, NULL);
    PLAN("experiment=quick_test");
    given_run(history, "vit0x0x0", 2);
    given_run(history, "vit32x2x256", 4);
    given_run(history, "vit32x4x512", 9);
    struct lab_plan_estimate estimate = lab_run_plan_estimate(&plan, history);
    assert_int_equal(estimate.unknown, 0);
    assert_near(runs_s(&estimate), 2 + 4 + 9, 1e-6);
    /* ten times as many iterations, and as many to warm up: scaled */
    PLAN("experiment=quick_test", "experiment.test.num_samples=1000",
         "experiment.test.warmup_samples=200", "experiment.cooldown=1s");
    estimate = lab_run_plan_estimate(&plan, history);
    assert_near(runs_s(&estimate), 150 + 2, 1e-6);
    /* behind the budget the mean run that is under way comes to its end */
    PLAN("experiment=quick_test", "experiment.budget=3s");
    estimate = lab_run_plan_estimate(&plan, history);
    assert_near(runs_s(&estimate), 3 + 5, 1e-6);
    lab_history_close(history);
}

LAB_TEST(test_basis_of_a_run_is_named) {
    struct lab_history *history = lab_history_open(0, 0, NULL);
    enum lab_history_basis basis;
    PLAN("experiment=quick_test");
    given_run(history, "vit0x0x0", 2);
    PLAN("experiment=quick_test", "experiment.test.num_samples=200", "experiment.order=as_given");
    struct lab_run first = lab_run_plan_record(&plan, 0, &arena);
    struct lab_run second = lab_run_plan_record(&plan, 1, &arena);
    assert_string_equal(first.label, "vit0x0x0");
    lab_run_plan_estimate_run(&plan, &first, history, &basis);
    assert_int_equal(basis, LAB_HISTORY_SCALED);
    assert_true(lab_run_plan_estimate_run(&plan, &second, history, &basis) > 2);
    assert_int_equal(basis, LAB_HISTORY_WORK);
    assert_true(isnan(lab_run_plan_estimate_run(&plan, &second, NULL, &basis)));
    assert_int_equal(basis, LAB_HISTORY_NONE);
    /* nor is a duration that was asked for known from what ran before */
    PLAN("experiment=quick_test", "experiment.duration=60s");
    first = lab_run_plan_record(&plan, 0, &arena);
    assert_true(lab_run_plan_estimate_run(&plan, &first, history, &basis) == 60);
    assert_int_equal(basis, LAB_HISTORY_NONE);
    lab_history_close(history);
}

/* What shipped studies are expected to take after a few runs of some, against tests/golden. */
LAB_TEST(test_estimates_of_shipped_studies) {
    static const char *const studies[] = {"quick_test",       "numa_study",     "scaling_study",
                                          "throughput_study", "transfer_study", "stability",
                                          "contention",       "compile_study",  "scaling_extended"};
    struct lab_history *history = lab_history_open(0, 0, NULL);
    LAB_AUTO(str, text);
    PLAN("experiment=quick_test");
    given_run(history, "vit0x0x0", 2);
    given_run(history, "vit32x2x256", 4.25);
    PLAN("experiment=numa_study");
    for (int i = 0; i < plan.run_count; i += 3) {
        struct lab_run run = lab_run_plan_record(&plan, i, &arena);
        run.state = LAB_RUN_DONE;
        run.start_ns = 1000000000;
        run.end_ns = run.start_ns + (5 + i % 7) * INT64_C(300000000);
        (i % 2 ? lab_history_add : lab_history_add_earlier)(history, &run);
    }
    for (size_t s = 0; s < sizeof studies / sizeof *studies; s++) {
        PLAN(lab_arena_printf(&arena, "experiment=%s", studies[s]));
        struct lab_plan_estimate e = lab_run_plan_estimate(&plan, history);
        lab_str_printf(&text, "%s: %.6g s, most %.6g s, %d unknown, %d guessed, %d by duration, ",
                       studies[s], e.expected_s, e.most_s, e.unknown, e.guessed, e.by_duration);
        lab_str_printf(&text, "%lld bytes, %lld stored\n", (long long)e.disk_bytes,
                       (long long)e.store_bytes);
        for (int i = 0; i < plan.run_count && i < 12; i++) {
            enum lab_history_basis basis;
            struct lab_run run = lab_run_plan_record(&plan, i, &arena);
            double expected_s = lab_run_plan_estimate_run(&plan, &run, history, &basis);
            lab_str_printf(&text, "  %.6g s by %d, work %.6g\n", expected_s, (int)basis,
                           lab_history_work(history, &run));
        }
    }
    lab_history_close(history);
    assert_golden(text.text, "estimates.txt");
}

/* The same of plans that measure for a time, share devices, cool down, or have a budget; with energy
 * where some of their runs were measured. */
LAB_TEST(test_estimates_of_other_plans) {
    static const char *const plans[][8] = {
        {"device=cpu", "experiment=quick_test", "experiment.duration=5s"},
        {"device=cpu", "experiment=quick_test", "experiment.duration=1s", "experiment.repeat=3"},
        {"device=sim:l40s-10", "experiment=quick_test", "experiment.duration=5s"},
        {"device=sim:l40s-10", "experiment=quick_test", "experiment.cooldown=1min"},
        {"device=cpu", "experiment=numa_study", "experiment.max_workers=3",
         "experiment.runs_per_device=2", "experiment.cooldown=2s"},
        {"device=cpu", "experiment=numa_study", "experiment.budget=10s", "experiment.monitor=false",
         "experiment.trace=false"},
        {"device=cpu:0/2", "experiment=contention", "experiment.hardware.gpu_ids=[0,1]",
         "experiment.cooldown=2s"},
        {"device=sim:l40s-10", "experiment=contention", "experiment.hardware.gpu_ids=[0,1]"},
        {"device=sim:rtx4070tis-2", "experiment=train_scaling"},
    };
    struct lab_history *history = lab_history_open(0, 0, NULL);
    LAB_AUTO(str, text);
    PLAN("experiment=quick_test");
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run run = lab_run_plan_record(&plan, i, &arena);
        struct lab_result result = lab_result_none;
        result.energy_j = i < 2 ? 100 + 50 * i : NAN;
        run.state = LAB_RUN_DONE;
        run.start_ns = 1000;
        run.end_ns = run.start_ns + (2 + i) * INT64_C(1000000000);
        run.result = &result;
        lab_history_add(history, &run);
        lab_history_add_device_step(history, &run, 0.001 * (i + 1));
    }
    for (size_t s = 0; s < sizeof plans / sizeof *plans; s++) {
        if (plan_words(FOUR_NODES, plans[s]) < 0)
            fail_msg("%zu: %s", s, plan_err.text);
        for (int k = 0; plans[s][k]; k++)
            lab_str_printf(&text, "%s ", plans[s][k]);
        for (int known = 0; known < 2; known++) {
            struct lab_plan_estimate e = lab_run_plan_estimate(&plan, known ? history : NULL);
            lab_str_printf(&text, "\n  %.6g s, report %.4g s, most %.6g s, %.6g J, %d unknown, ",
                           e.expected_s, e.report_s, e.most_s, e.energy_j, e.unknown);
            lab_str_printf(&text, "%d guessed, %d by duration, %lld bytes, %lld stored", e.guessed,
                           e.by_duration, (long long)e.disk_bytes, (long long)e.store_bytes);
        }
        lab_str_add(&text, "\n");
    }
    lab_history_close(history);
    assert_golden(text.text, "estimates-other.txt");
}

LAB_TEST(test_workers_share_the_time_while_devices_have_room) {
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.duration=10s",
         "experiment.max_workers=3");
    assert_shared(&plan, 48 * 10 / 3.0);
    /* four devices, one run on each */
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.duration=10s",
         "experiment.max_workers=8");
    assert_shared(&plan, 48 * 10 / 4.0);
    PLAN("experiment=numa_study", "experiment.repeat=1", "experiment.duration=10s",
         "experiment.max_workers=8", "experiment.runs_per_device=2");
    assert_shared(&plan, 48 * 10 / 8.0);
    /* one device: more workers don't help */
    PLAN("experiment=quick_test", "experiment.duration=10s", "experiment.max_workers=8");
    assert_shared(&plan, 30);
}

/* --- disk --- */

/* As a worker's RESULT (worker.h) of a real run looks. */
static const char a_result[] =
    "{\"device\": \"cpu:0\", \"numa_node\": 0, \"iterations\": 200, \"warmup_iterations\": 20, "
    "\"samples\": 2000, \"rate\": 312.48231506, \"rate_low\": 310.0129338, \"rate_high\": "
    "315.10238, \"rate_unit\": \"samples/s\", \"samples_per_second\": 312.48231506, "
    "\"flops_per_second\": 104283238123.4, \"h2d_gb_per_s\": 8.3372649123, \"d2h_gb_per_s\": "
    "2.0193821231, \"compute_utilization\": 0.97123123, \"overlap\": 0.81237123, \"latency_ms\": "
    "{\"mean\": 33.1231238, \"median\": 32.9912312, \"p90\": 34.1231231, \"p95\": 35.2312312, "
    "\"p99\": 40.1231238, \"min\": 31.8823123, \"max\": 51.1231238}, \"interval_ms\": {\"mean\": "
    "32.1231238, \"median\": 31.9912312, \"p90\": 33.1231231, \"p95\": 34.2312312, \"p99\": "
    "39.1231238, \"min\": 30.8823123, \"max\": 50.1231238}, \"first_ns\": 81231231231231, "
    "\"last_ns\": 81237631231231, \"first_iteration_ms\": 41.1231231, \"steady\": true, "
    "\"peak_memory_mb\": 1311.2, \"verification\": {\"applicable\": true, \"passed\": true, "
    "\"relative_error\": 1.2371e-06, \"tolerance\": 0.0001, \"text\": \"agrees with double "
    "precision\"}, \"placement_proven\": true, \"conditions\": {\"load_before\": 0.12, "
    "\"foreign_cpu\": 0.01, \"steal\": 0, \"governor\": \"performance\", \"frequency_low_mhz\": "
    "2400, \"frequency_high_mhz\": 3100}, \"warnings\": [\"the CPU's frequency varied by 23% "
    "while it ran; fix it with 'cpupower frequency-set -g performance'\"], \"invalid\": []}";

/* Iterations with three stages and the jitter of a real device, by a small generator. */
static void fill(struct lab_iteration *items, size_t count) {
    uint64_t seed = 88172645463325252;
    int64_t now_ns = 81231231231231;
    for (size_t i = 0; i < count; i++) {
        int64_t at_ns = now_ns;
        items[i].start_ns = at_ns;
        for (int stage = 0; stage < LAB_STAGE_COUNT; stage++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            items[i].stages[stage].start_ns = at_ns;
            at_ns += 3000000 + (int64_t)(seed % 20000);
            items[i].stages[stage].end_ns = at_ns;
        }
        items[i].end_ns = at_ns;
        now_ns = at_ns + (int64_t)(seed % 1000);
    }
}

static void write_run(struct lab_store *store, int64_t number, int rank_count, int64_t iterations,
                      struct lab_err *err) {
    enum { CHUNK = 100 };
    static struct lab_iteration items[100000];
    assert_true((size_t)iterations <= sizeof items / sizeof *items);
    fill(items, (size_t)iterations);
    for (int rank = 0; rank < rank_count; rank++)
        for (int64_t first = 0; first < iterations; first += CHUNK) {
            size_t count = (size_t)(iterations - first < CHUNK ? iterations - first : CHUNK);
            if (lab_store_add_iterations(store, number, rank, first, items + first, count, err) < 0)
                fail_msg("%s", err->text);
        }
}

static double file_bytes(void) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_store *store;
    struct lab_store_study study = {.name = plan.study,
                                    .option = plan.option,
                                    .config = "experiment: {}",
                                    .words = "[]",
                                    .machine = "{}",
                                    .version = "0"};
    struct lab_run *runs = lab_run_plan_records(&plan, &arena);
    const char *file = lab_arena_printf(&arena, "%s/study.db", folder);
    int64_t epoch;
    remove(file);
    if (lab_store_create(file, &study, runs, plan.run_count, &store, &err) < 0 ||
        lab_store_epoch(store, "runner", &epoch, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run outcome = {
            .state = LAB_RUN_DONE, .end_ns = 2000, .result = result_from(a_result, &arena)};
        if (lab_store_begin_run(store, runs[i].number, epoch, 1000, &err) < 0)
            fail_msg("%s", err.text);
        write_run(store, runs[i].number, runs[i].rank_count, runs[i].iterations, &err);
        if (lab_store_finish_run(store, runs[i].number, &outcome, &err) < 0)
            fail_msg("%s", err.text);
    }
    lab_store_close(store);
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    return (double)info.st_size;
}

static void assert_store_within_factor_two(void) {
    double file = file_bytes(), estimate = (double)lab_run_plan_estimate(&plan, NULL).store_bytes;
    if (estimate > 2 * file || file > 2 * estimate)
        fail_msg("%d runs: the file has %.0f bytes, %.0f were expected", plan.run_count, file,
                 estimate);
}

LAB_TEST(test_store_size_of_shipped_studies) {
    PLAN("experiment=quick_test");
    assert_store_within_factor_two();
    PLAN("experiment=scaling_study");
    assert_store_within_factor_two();
    PLAN("experiment=numa_study");
    assert_store_within_factor_two();
}

LAB_TEST(test_store_size_where_iterations_are_most_of_it) {
    PLAN("experiment=quick_test", "experiment.test.num_samples=400000");
    assert_store_within_factor_two();
}

/* Given what folders of shipped studies took on sim:l40s-10, report and traces included. */
LAB_TEST(test_folder_size_is_within_factor_two) {
    static const struct {
        const char *study;
        const char *gpus, *trace;
        double bytes;
    } folders[] = {
        {"experiment=numa_study", "experiment.hardware.gpu_ids=[0,1,2,3]", "experiment.trace=false",
         7020544},
        {"experiment=compile_study", "experiment.hardware.gpu_ids=[0]", "experiment.trace=true",
         9879552},
        {"experiment=transfer_study", "experiment.hardware.gpu_ids=[0]", "experiment.trace=true",
         23269376},
        {"experiment=scaling_study", "experiment.hardware.gpu_ids=[0]", "experiment.trace=true",
         4374528},
        {"experiment=quick_test", "experiment.hardware.gpu_ids=[0]", "experiment.trace=true",
         733184},
    };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        PLAN(folders[i].study, folders[i].gpus, folders[i].trace);
        double ratio = (double)lab_run_plan_estimate(&plan, NULL).disk_bytes / folders[i].bytes;
        if (ratio < 0.5 || ratio > 2)
            fail_msg("%s: %.2f × what it took", folders[i].study, ratio);
    }
}

LAB_TEST(test_sizes_beyond_all_disks_are_still_numbers) {
    PLAN("experiment=numa_study", "experiment.test.num_samples=1000000000000",
         "experiment.test.batch_size=1", "experiment.repeat=200");
    struct lab_plan_estimate estimate = lab_run_plan_estimate(&plan, NULL);
    assert_true(estimate.store_bytes > INT64_C(1000000000000000));
    assert_true(estimate.disk_bytes >= estimate.store_bytes);
    assert_true(estimate.report_s < 60);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
