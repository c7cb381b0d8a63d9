/*
 * test_worker_trace.c: the traced pass of a worker: it comes after the timed one, leaves a file and
 * a line in the result, and can fail without the run.
 */
#include "unit/worker/worker_fixture.h"

#include "device/group.h"

#include <sqlite3.h>

static const struct lab_job_rank whole_node[] = {{0, 0, "cpu:0", 0}};
static const struct lab_job_rank twins[] = {{0, 0, "cpu:0", 0}, {1, 1, "cpu:0", 0}};

static const char *const small_vit[] = {
    "patch_size=32",          "depth=1",          "heads=2",      "dim=32", "mlp_dim=64",
    "tensor_shape=[3,64,64]", "memory_size_mb=4", "batch_size=2", NULL};

static char folder[64];

static int open_folder(void **state) {
    snprintf(folder, sizeof folder, "/tmp/gpulab-test-trace-XXXXXX");
    return set_up(state) || !mkdtemp(folder);
}

static int close_folder(void **state) {
    static const char *const files[] = {"traces/pipeline_gpu0_numa0_test.sqlite",
                                        "traces/pipeline_gpu0_numa0_test_rank0.sqlite",
                                        "traces/pipeline_gpu0_numa0_test_rank1.sqlite"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(lab_arena_printf(&arena, "%s/%s", folder, files[i]));
    unlink(lab_arena_printf(&arena, "%s/traces", folder));
    rmdir(lab_arena_printf(&arena, "%s/traces", folder));
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
    return tear_down(state);
}

static struct lab_job traced(const char *workload, const char *const *words,
                             const struct lab_job_rank *ranks, int rank_count) {
    struct lab_job job = job_of(workload, words, ranks, rank_count);
    job.folder = folder;
    job.trace = true;
    job.iterations = 40;
    return job;
}

/* Carries the job out and returns its results by rank. */
static void carry_out(const struct lab_job *job, struct lab_value **ret_results) {
    struct runner runner = start_job(job);
    struct lab_frame frame;
    for (int i = 0; i < job->rank_count; i++)
        hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    for (int i = 0; i < job->rank_count; i++) {
        frame = hear_type(&runner, LAB_FRAME_RESULT);
        ret_results[frame.rank] = value_of(frame.result);
    }
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

static int64_t ask(const char *file, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    const char *path = lab_arena_printf(&arena, "%s/%s", folder, file);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ||
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL))
        fail_msg("%s: %s: %s", path, sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

static const char *text(const struct lab_value *map, const char *key) {
    const struct lab_value *value = lab_value_get(map, key);
    assert_non_null(value);
    assert_int_equal(value->type, LAB_VALUE_STRING);
    return value->string;
}

/* As many as fit into its time; a slow machine traces fewer. */
static int traced_count(const struct lab_value *result) {
    double count = number(result, "trace.iterations");
    assert_true(count >= 3 && count <= 32);
    return (int)count;
}

LAB_TEST(a_trace_comes_after_the_timed_pass) {
    struct lab_job job = traced("vit", small_vit, whole_node, 1);
    struct runner runner = start_job(&job);
    struct lab_frame frame;
    int64_t measured = 0;
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT) {
        if (frame.type == LAB_FRAME_ITERATIONS)
            measured += (int64_t)frame.iterations.count;
        if (frame.type == LAB_FRAME_PHASE && lab_str_equal(frame.text, "tracing"))
            assert_int_equal(measured, 40); /* all of them, and those traced are none of them */
    }
    assert_int_equal(measured, 40);
    const struct lab_value *result = value_of(frame.result);
    const struct lab_value *trace = lab_value_get(result, "trace");
    assert_string_equal(text(trace, "path"), "traces/pipeline_gpu0_numa0_test.sqlite");
    assert_true(traced_count(result) > 0);
    assert_non_null(lab_value_get(trace, "overhead"));
    assert_true((double)ask(text(trace, "path"), "SELECT min(start) FROM NVTX_EVENTS") >=
                number(result, "last_ns"));
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

/* A training goes on while it is traced: those steps' losses are none of the run's. */
LAB_TEST(traced_steps_tell_no_metrics) {
    static const char *const words[] = {"widths=9-16-16-3", "batch_size=4", "dataset_size=40",
                                        NULL};
    struct lab_job job = traced("mlp", words, whole_node, 1);
    struct runner runner = start_job(&job);
    struct lab_frame frame;
    int told = 0, traced_told = 0;
    bool tracing = false;
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT) {
        tracing |= frame.type == LAB_FRAME_PHASE && lab_str_equal(frame.text, "tracing");
        *(tracing ? &traced_told : &told) += frame.type == LAB_FRAME_METRICS;
    }
    assert_true(tracing && traced_count(value_of(frame.result)) > 0);
    assert_true(told > 0);
    assert_int_equal(traced_told, 0);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(the_ranges_have_the_names_that_readers_know) {
    struct lab_job job = traced("vit", small_vit, whole_node, 1);
    struct lab_value *result[1];
    carry_out(&job, result);
    const char *file = text(lab_value_get(result[0], "trace"), "path");
    int count = traced_count(result[0]);
    assert_int_equal(ask(file, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59"),
                     2 + 5 * count);
    static const char *const names[] = {"warmup_double_buffer", "test_double_buffer", "batch_0",
                                        "h2d_batch_1",          "compute_batch_2",    "d2h_batch_2",
                                        "vit_forward_1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *sql = lab_arena_printf(
            &arena, "SELECT count(*) FROM NVTX_EVENTS WHERE text = '%s'", names[i]);
        if (ask(file, sql) != 1)
            fail_msg("no range %s", names[i]);
    }
}

/* Each batch's copy in, its operations and its copy out lie in the ranges that say so. */
LAB_TEST(commands_lie_in_their_ranges) {
    struct lab_job job = traced("vit", small_vit, whole_node, 1);
    struct lab_value *result[1];
    carry_out(&job, result);
    const char *file = text(lab_value_get(result[0], "trace"), "path");
    int count = traced_count(result[0]);
    assert_int_equal(ask(file, "SELECT count(*) FROM NVTX_EVENTS r JOIN CUPTI_ACTIVITY_KIND_MEMCPY"
                               " c ON c.start >= r.start AND c.end <= r.end AND c.copyKind = 1"
                               " WHERE text GLOB 'h2d_batch_*'"),
                     count);
    assert_int_equal(ask(file, "SELECT count(*) FROM NVTX_EVENTS r JOIN CUPTI_ACTIVITY_KIND_MEMCPY"
                               " c ON c.start >= r.start AND c.end <= r.end AND c.copyKind = 2"
                               " WHERE text GLOB 'd2h_batch_*'"),
                     count);
    int64_t kernels = ask(file, "SELECT count(*) FROM NVTX_EVENTS r JOIN"
                                " CUPTI_ACTIVITY_KIND_KERNEL k ON k.start >= r.start AND"
                                " k.end <= r.end WHERE text GLOB 'compute_batch_*'");
    assert_true(kernels > count && kernels % count == 0);
    assert_int_equal(ask(file, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k,"
                               " NVTX_EVENTS w WHERE text = 'test_double_buffer' AND"
                               " k.start >= w.start AND k.end <= w.end"),
                     kernels);
    assert_int_equal(ask(file, "SELECT w.end >= max(k.end) FROM NVTX_EVENTS w,"
                               " CUPTI_ACTIVITY_KIND_MEMCPY k WHERE text = 'test_double_buffer'"),
                     1); /* no tail behind the range */
    assert_int_equal(ask(file, "SELECT count(*) FROM META_DATA_EXPORT WHERE name ="
                               " 'GPULAB_TRACE_OVERHEAD' AND value IS NOT NULL"),
                     1);
}

LAB_TEST(ranks_of_a_gang_have_a_file_each) {
    struct lab_job job =
        traced("gemm", (const char *const[]){"m=32", "n=32", "k=32", NULL}, twins, 2);
    struct lab_value *results[2] = {NULL, NULL};
    carry_out(&job, results);
    for (int i = 0; i < 2; i++) {
        const char *file = text(lab_value_get(results[i], "trace"), "path");
        assert_string_equal(
            file, lab_arena_printf(&arena, "traces/pipeline_gpu0_numa0_test_rank%d.sqlite", i));
        assert_true(ask(file, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") >
                    traced_count(results[i]));
    }
}

LAB_TEST(nobody_asked_and_nowhere_to_put_it_is_no_trace) {
    struct lab_value *result[1];
    struct lab_job job = traced("null", NULL, whole_node, 1);
    job.trace = false;
    carry_out(&job, result);
    assert_true(is_null(result[0], "trace"));
    job.trace = true;
    job.folder = "";
    carry_out(&job, result);
    assert_true(is_null(result[0], "trace"));
    assert_int_equal(access(lab_arena_printf(&arena, "%s/traces", folder), F_OK), -1);
}

static bool warns(const struct lab_value *result, const char *begin) {
    const struct lab_value *warnings = lab_value_get(result, "warnings");
    bool found = false;
    for (int i = 0; i < warnings->count; i++)
        found |= lab_str_starts(warnings->items[i]->string, begin);
    return found;
}

/* given a file where the folder should be, then the run is done all the same and says so */
LAB_TEST(a_trace_that_cannot_be_written_is_a_warning) {
    const char *path = lab_arena_printf(&arena, "%s/traces", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct lab_job job = traced("vit", small_vit, whole_node, 1);
    struct lab_value *result[1];
    carry_out(&job, result);
    assert_true(is_null(result[0], "trace"));
    assert_true(number(result[0], "rate") > 0);
    assert_true(warns(result[0], "no trace: "));
    assert_int_equal(lab_value_get(result[0], "invalid")->count, 0);
}

/* given ranks that sum, when one can't be traced, then the others don't wait for it, and the run is
 * done */
LAB_TEST(a_rank_that_cannot_be_traced_ends_the_trace_of_all) {
    static const char *const words[] = {"bytes=4KiB", NULL};
    struct lab_job job = traced("allreduce", words, twins, 2);
    struct lab_value *results[2] = {NULL, NULL};
    int64_t start_ns = now_ns();
    setenv("GPULAB_FAILPOINT", "trace-of-rank-1", 1);
    carry_out(&job, results);
    unsetenv("GPULAB_FAILPOINT");
    assert_true(now_ns() - start_ns < (int64_t)(LAB_GROUP_LIMIT_S * 0.8e9));
    assert_true(warns(results[0], "no trace: cpu:0: rank 1 has failed: it fails on purpose"));
    assert_true(warns(results[1], "no trace: it fails on purpose"));
    for (int i = 0; i < 2; i++) {
        assert_true(is_null(results[i], "trace"));
        assert_true(number(results[i], "rate") > 0);
    }
}

const struct lab_test_program lab_test_program = {
    .set_up = open_folder, .tear_down = close_folder, .begin = worker_begin};
