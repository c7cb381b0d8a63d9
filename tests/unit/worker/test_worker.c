/*
 * test_worker.c: a worker's conversation from the runner's side, with real workloads on real CPU
 * devices: what comes in which order, what a result holds, and what is said when it can't be done.
 */
#include "unit/worker/worker_fixture.h"

#include "machine/machine.h"
#include "worker/worker_internal.h"

#include <math.h>

static const struct lab_job_rank whole_node[] = {{0, 0, "cpu:0", 0}};
static const struct lab_job_rank both_halves[] = {{0, 0, "cpu:0/2.0", 0}, {1, 1, "cpu:0/2.1", 0}};

static const char *const small_vit[] = {
    "patch_size=32",          "depth=1",          "heads=2",      "dim=32", "mlp_dim=64",
    "tensor_shape=[3,64,64]", "memory_size_mb=4", "batch_size=2", NULL};

/* --- order --- */

static bool is_silent(struct runner *runner, int ms) {
    struct pollfd fd = {runner->fd, POLLIN, 0};
    return lab_frame_reader_pending(&runner->reader) == 0 && poll(&fd, 1, ms) == 0;
}

LAB_TEST(a_run_is_told_step_by_step) {
    struct lab_job job = job_of("null", NULL, whole_node, 1);
    job.verify = true;
    struct runner runner = start_job(&job);
    struct lab_frame frame;

    assert_true(hear(&runner, &frame));
    assert_int_equal(frame.type, LAB_FRAME_HELLO);
    assert_int_equal(frame.hello.version, LAB_FRAME_VERSION);
    assert_int_equal(frame.hello.pid, runner.pid);
    assert_int_equal(frame.hello.rank_count, 1);
    assert_string_equal(hear_type(&runner, LAB_FRAME_PHASE).text, "opening");
    assert_string_equal(hear_type(&runner, LAB_FRAME_PHASE).text, "verifying");
    assert_string_equal(hear_type(&runner, LAB_FRAME_PHASE).text, "warm-up");
    bool warm = false; /* the warm-up's last progress is always told */
    while (hear(&runner, &frame) && frame.type == LAB_FRAME_PROGRESS)
        warm = frame.progress.done == 10 && frame.progress.total == 10;
    assert_true(warm);
    assert_int_equal(frame.type, LAB_FRAME_READY);
    assert_true(is_silent(&runner, 50)); /* nothing is measured before GO */

    say_go(&runner);
    assert_true(hear(&runner, &frame));
    assert_int_equal(frame.type, LAB_FRAME_PHASE);
    assert_string_equal(frame.text, "measuring");
    int64_t measured = 0, last_end_ns = 0, told = 0;
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT) {
        if (frame.type == LAB_FRAME_PROGRESS)
            told = frame.progress.done;
        if (frame.type != LAB_FRAME_ITERATIONS)
            continue;
        assert_int_equal(frame.iterations.first, measured);
        measured += (int64_t)frame.iterations.count;
        for (size_t i = 0; i < frame.iterations.count; i++) {
            assert_true(frame.iterations.items[i].end_ns >= last_end_ns);
            last_end_ns = frame.iterations.items[i].end_ns;
        }
    }
    assert_int_equal(measured, 200);
    assert_int_equal(told, 200);
    assert_int_equal(frame.type, LAB_FRAME_RESULT);
    assert_true(is_silent(&runner, 20)); /* it waits for the acknowledgement */
    say_ack(&runner);
    assert_false(hear(&runner, &frame));
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(a_run_without_warmup_is_ready_once_it_is_open) {
    struct lab_job job = job_of("null", NULL, whole_node, 1);
    job.warmup_iterations = 0;
    struct runner runner = start_job(&job);
    struct lab_frame frame;
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_READY)
        if (frame.type == LAB_FRAME_PHASE)
            assert_string_equal(frame.text, "opening");
    say_go(&runner);
    struct lab_value *result = value_of(hear_type(&runner, LAB_FRAME_RESULT).result);
    assert_true(number(result, "iterations") == 200);
    assert_true(number(result, "warmup_iterations") == 0);
    assert_true(is_null(result, "verification"));
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(a_runner_may_hang_up_right_after_the_acknowledgement) {
    struct lab_job job = job_of("null", NULL, whole_node, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    say_ack(&runner); /* nothing to acknowledge yet: it doesn't count */
    say_go(&runner);
    hear_type(&runner, LAB_FRAME_RESULT);
    say_ack(&runner);
    close(runner.fd);
    runner.fd = -1;
    assert_int_equal(end_worker(&runner), 0);
}

/* --- results --- */

static void check_times(const struct lab_value *result, const char *key) {
    const char *p = lab_arena_printf(&arena, "%s.", key);
    double min = number(result, lab_arena_printf(&arena, "%smin", p));
    double median = number(result, lab_arena_printf(&arena, "%smedian", p));
    double p90 = number(result, lab_arena_printf(&arena, "%sp90", p));
    double p95 = number(result, lab_arena_printf(&arena, "%sp95", p));
    double p99 = number(result, lab_arena_printf(&arena, "%sp99", p));
    double max = number(result, lab_arena_printf(&arena, "%smax", p));
    double mean = number(result, lab_arena_printf(&arena, "%smean", p));
    assert_true(0 < min && min <= median && median <= p90 && p90 <= p95 && p95 <= p99 &&
                p99 <= max);
    assert_true(min <= mean && mean <= max);
}

LAB_TEST(a_result_holds_every_figure) {
    struct lab_job job = job_of("vit", small_vit, whole_node, 1);
    job.verify = true;
    job.iterations = 50;
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    int64_t go_ns = now_ns();
    say_go(&runner);
    struct lab_value *result = value_of(hear_type(&runner, LAB_FRAME_RESULT).result);
    int64_t heard_ns = now_ns();
    assert_string_equal(lab_value_get(result, "device")->string, "cpu:0");
    assert_true(number(result, "numa_node") == 0);
    assert_true(number(result, "iterations") == 50);
    assert_true(number(result, "warmup_iterations") == 10);
    assert_true(number(result, "samples") == 100);
    assert_string_equal(lab_value_get(result, "rate_unit")->string, "samples/s");
    double rate = number(result, "rate");
    assert_true(rate > 0 && rate == number(result, "samples_per_second"));
    assert_true(number(result, "rate_low") <= rate && rate <= number(result, "rate_high"));
    assert_true(number(result, "flops_per_second") > 0);
    assert_true(number(result, "h2d_gb_per_s") > 0);
    assert_true(number(result, "d2h_gb_per_s") > 0);
    assert_true(number(result, "compute_utilization") > 0);
    assert_non_null(lab_value_get(result, "overlap")); /* null where one core does both */
    check_times(result, "latency_ms");
    check_times(result, "interval_ms");
    double first_ns = number(result, "first_ns"), last_ns = number(result, "last_ns");
    assert_true((double)go_ns < first_ns && first_ns < last_ns && last_ns < (double)heard_ns);
    assert_true(number(result, "first_iteration_ms") > 0);
    assert_true(number(result, "setup_s") > 0);
    assert_int_equal(lab_value_get(result, "steady")->type, LAB_VALUE_BOOL);
    assert_true(number(result, "peak_memory_mb") > 4); /* the pool alone is as large */
    const struct lab_value *verification = lab_value_get(result, "verification");
    assert_true(lab_value_get(verification, "applicable")->boolean);
    assert_true(lab_value_get(verification, "passed")->boolean);
    assert_true(number(verification, "relative_error") <= number(verification, "tolerance"));
    assert_non_null(lab_value_get(verification, "text"));
    assert_true(lab_value_get(result, "placement_proven")->boolean);
    static const char *const conditions[] = {"load_before", "foreign_cpu", "steal", "pressure_cpu",
                                             "pressure_memory"};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        assert_non_null(lab_value_get(lab_value_get(result, "conditions"), conditions[i]));
    assert_int_equal(lab_value_get(result, "warnings")->type, LAB_VALUE_LIST);
    assert_int_equal(lab_value_get(result, "invalid")->type, LAB_VALUE_LIST);
    assert_int_equal(lab_value_get(result, "invalid")->count, 0);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(work_without_samples_counts_iterations) {
    struct lab_job job = job_of("null", NULL, whole_node, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    struct lab_value *result = value_of(hear_type(&runner, LAB_FRAME_RESULT).result);
    assert_string_equal(lab_value_get(result, "rate_unit")->string, "iterations/s");
    assert_true(number(result, "rate") > 0);
    assert_true(is_null(result, "samples"));
    assert_true(is_null(result, "samples_per_second"));
    assert_true(is_null(result, "h2d_gb_per_s"));
    assert_true(is_null(result, "verification"));
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(a_duration_measures_by_time) {
    struct lab_job job = job_of("vit", small_vit, whole_node, 1);
    job.duration_s = 0.2;
    job.iterations = 0;
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    struct lab_frame frame, progress = {0};
    int64_t measured = 0;
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT) {
        if (frame.type == LAB_FRAME_ITERATIONS)
            measured += (int64_t)frame.iterations.count;
        if (frame.type == LAB_FRAME_PROGRESS)
            progress = frame;
    }
    struct lab_value *result = value_of(frame.result);
    assert_true(measured > 0 && number(result, "iterations") == (double)measured);
    assert_int_equal(progress.progress.total, 0); /* nobody knows how many it will be */
    assert_int_equal(progress.progress.done, measured);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

/* --- gangs --- */

static bool has_two_cores(void) {
    struct lab_machine *machine;
    struct lab_device_list list;
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(lab_machine_open(NULL, &machine, &err), 0);
    bool has = lab_device_select(machine, "cpu:0/2", &arena, &list, &err) == 0;
    lab_machine_close(machine);
    return has;
}

LAB_TEST(ranks_of_one_worker_go_together) {
    if (!has_two_cores())
        skip();
    struct lab_job job = job_of("vit", small_vit, both_halves, 2);
    job.iterations = 20;
    struct runner runner = start_job(&job);
    struct lab_frame frame;
    assert_int_equal(hear_type(&runner, LAB_FRAME_HELLO).hello.rank_count, 2);
    int ready = 0;
    while (ready < 2 && hear(&runner, &frame)) {
        assert_int_not_equal(frame.type, LAB_FRAME_ITERATIONS);
        ready += frame.type == LAB_FRAME_READY;
    }
    say_go(&runner);
    int64_t measured[2] = {0, 0};
    int results = 0;
    const struct lab_value *result[2] = {NULL, NULL};
    while (results < 2 && hear(&runner, &frame)) {
        if (frame.type == LAB_FRAME_ITERATIONS) {
            assert_int_equal(frame.iterations.first, measured[frame.rank]);
            measured[frame.rank] += (int64_t)frame.iterations.count;
        }
        if (frame.type == LAB_FRAME_RESULT) {
            assert_null(result[frame.rank]);
            result[frame.rank] = value_of(frame.result);
            results++;
        }
    }
    assert_int_equal(measured[0], 20);
    assert_int_equal(measured[1], 20);
    assert_string_equal(lab_value_get(result[0], "device")->string, "cpu:0/2.0");
    assert_string_equal(lab_value_get(result[1], "device")->string, "cpu:0/2.1");
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(a_part_of_a_gang_speaks_as_its_rank) {
    static const struct lab_job_rank third[] = {{2, 7, "cpu:0", 0}};
    struct lab_job job = job_of("null", NULL, third, 1);
    job.gang_size = 4;
    struct runner runner = start_job(&job);
    struct lab_frame frame;
    assert_int_equal(hear_type(&runner, LAB_FRAME_HELLO).hello.rank_count, 4);
    assert_int_equal(hear_type(&runner, LAB_FRAME_READY).rank, 2);
    say_go(&runner);
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT)
        assert_int_equal(frame.rank, 2);
    assert_int_equal(frame.rank, 2);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

/* --- what can't be done --- */

/* The worker fails with that code, hint and text, and ends with 1. */
static void expect_failure(struct runner *runner, int rank, enum lab_err_code code,
                           enum lab_hint_id hint, const char *text) {
    struct lab_frame frame = hear_type(runner, LAB_FRAME_FAILURE);
    if (!strstr(frame.failure.text, text))
        fail_msg("'%s' isn't in: %s", text, frame.failure.text);
    assert_int_equal(frame.failure.code, code);
    assert_string_equal(lab_hint(frame.failure.hint)->name, lab_hint(hint)->name);
    assert_int_equal(frame.rank, rank);
    while (hear(runner, &frame)) {
        assert_int_not_equal(frame.type, LAB_FRAME_FAILURE);
        assert_int_not_equal(frame.type, LAB_FRAME_RESULT);
    }
    assert_int_equal(end_worker(runner), 1);
}

LAB_TEST(a_device_that_is_not_there_is_the_users_mistake) {
    static const struct lab_job_rank nowhere[] = {{0, 0, "cpu:999", 0}};
    struct lab_job job = job_of("null", NULL, nowhere, 1);
    struct runner runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NUMA_NODE, "cpu:999");
}

LAB_TEST(a_rank_has_one_device) {
    if (!has_two_cores())
        skip();
    static const struct lab_job_rank two[] = {{0, 0, "cpu:0/2", 0}};
    struct lab_job job = job_of("null", NULL, two, 1);
    struct runner runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NONE,
                   "cpu:0/2 names 2 devices, a rank has one");
}

LAB_TEST(a_node_that_is_not_there_is_the_users_mistake) {
    static const struct lab_job_rank nowhere[] = {{0, 0, "cpu:0", 99}};
    struct lab_job job = job_of("null", NULL, nowhere, 1);
    struct runner runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NUMA_NODE, "NUMA node 99");
}

LAB_TEST(too_little_memory_is_told_as_such) {
    static const char *const huge[] = {"memory_size_mb=1000000", NULL};
    struct lab_job job = job_of("vit", huge, whole_node, 1);
    struct runner runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_MEMORY, LAB_HINT_OUT_OF_HOST_MEMORY, "cpu:0: ");
}

LAB_TEST(a_rank_that_fails_takes_the_others_along) {
    static const struct lab_job_rank half[] = {{0, 0, "cpu:0", 0}, {1, 1, "cpu:999", 0}};
    struct lab_job job = job_of("null", NULL, half, 2);
    struct runner runner = start_job(&job);
    /* the first one may be ready by now: it must not wait for a GO that never comes */
    expect_failure(&runner, 1, LAB_ERR_USER, LAB_HINT_NUMA_NODE, "cpu:999");
}

LAB_TEST(a_job_is_checked_before_anything_is_opened) {
    struct lab_job job = job_of("null", NULL, whole_node, 1);
    job.workload = "nul";
    struct runner runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NONE, "null");
    job.workload = "null";
    lab_value_set_int(&arena, job.options, "sync_frequency", -3);
    runner = start_job(&job);
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NONE, "sync_frequency");
    runner = start_worker();
    say(&runner, (struct lab_frame){.type = LAB_FRAME_JOB, .text = "{\"run_id\": 3}"});
    expect_failure(&runner, 0, LAB_ERR_USER, LAB_HINT_NONE, "'run_id' must be text");
}

LAB_TEST(without_a_job_there_is_no_conversation) {
    char text[256] = "";
    struct runner runner = start_worker();
    shutdown(runner.fd, SHUT_WR);
    assert_true(read(runner.output, text, sizeof text - 1) > 0);
    assert_string_equal(text, "the runner closed the connection before sending a job");
    assert_int_equal(end_worker(&runner), NO_CONVERSATION);
    runner = start_worker();
    say_go(&runner);
    assert_int_equal(end_worker(&runner), NO_CONVERSATION);
    runner = start_worker();
    assert_true(send(runner.fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) > 0);
    assert_int_equal(end_worker(&runner), NO_CONVERSATION);
}

LAB_TEST(only_a_socket_can_be_spoken_on) {
    int pipes[2];
    struct lab_err err = LAB_ERR_INIT;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(lab_worker_run(pipes[0], &err), -1);
    assert_int_equal(err.code, LAB_ERR_USER);
    assert_string_equal(err.text, "the worker is started by 'gpulab run', not by hand");
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(lab_worker_run(pipes[0], &err), -1); /* closed */
}

/* Given what a program's output kept it waiting, it is said from 50 ms and 1 % of its time on. */
LAB_TEST(slow_handling_of_output_is_said_in_wall_time) {
    static const struct {
        int64_t held_ms, whole_ms, values;
        const char *said; /* NULL = nothing */
    } cases[] = {
        {60, 5000, 25000,
         "its output and 25000 values kept it waiting for 0.06 s of 5 s at most (wall time); "
         "print fewer"},
        {60, 7000, 25000, NULL},
        {40, 100, 25000, NULL},
        {0, 100, 1000001,
         "it printed 1000001 values; the first 1000000 are kept, and of the others the lowest, "
         "highest and last of each name; print fewer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rank *rank = lab_arena_alloc(&arena, 1, sizeof *rank);
        struct lab_result *result = lab_arena_alloc(&arena, 1, sizeof *result);
        rank->held_ns = cases[i].held_ms * LAB_NS_PER_MS;
        rank->whole_ns = cases[i].whole_ms * LAB_NS_PER_MS;
        rank->metric_count = cases[i].values;
        worker_add_metric_warnings(rank, &arena, result);
        assert_int_equal(result->warnings.count, cases[i].said != NULL);
        if (cases[i].said)
            assert_string_equal(result->warnings.items[0].text, cases[i].said);
    }
}

/* Given more values than are kept, then the lowest, highest and last of each name are told. */
LAB_TEST(what_is_beyond_a_million_values_leaves_its_ends) {
    struct worker *worker = lab_arena_alloc(&arena, 1, sizeof *worker);
    struct rank *rank = lab_arena_alloc(&arena, 1, sizeof *rank);
    struct lab_workload workload = {.external = true};
    struct lab_frame_reader reader;
    struct lab_frame frame;
    struct lab_err err = LAB_ERR_INIT;
    char bytes[4096];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    worker->fd = ends[0];
    worker->workload = &workload;
    lab_str_init(&worker->outgoing);
    lab_arena_init(&rank->arena);
    rank->worker = worker;
    rank->job = &(struct lab_job_rank){.index = 0};
    rank->metric_count = 999999;
    LAB_AUTO(str, told);
    static const double values[] = {5, NAN, 9, 1, 3};
    worker_send(worker, &(struct lab_frame){.type = LAB_FRAME_HELLO,
                                            .hello = {LAB_FRAME_VERSION, getpid(), 1}});
    for (int i = 0; i < 5; i++)
        worker_tell_metrics(
            rank, &(struct lab_reported_metric){"loss", "", values[i], i, -1, i, false}, 1);
    worker_tell_last_metrics(rank);
    lab_frame_reader_init(&reader);
    ssize_t got = read(ends[1], bytes, sizeof bytes);
    lab_frame_reader_feed(&reader, bytes, (size_t)got);
    while (lab_frame_reader_next(&reader, &arena, &frame, &err) > 0)
        for (size_t i = 0; frame.type == LAB_FRAME_METRICS && i < frame.metrics.count; i++)
            lab_str_printf(&told, "%g@%g ", frame.metrics.items[i].value,
                           frame.metrics.items[i].step);
    assert_string_equal(err.text, "");
    assert_string_equal(told.text, "5@0 1@3 9@2 3@4 ");
    lab_frame_reader_release(&reader);
    lab_str_release(&worker->outgoing);
    lab_arena_release(&rank->arena);
    close(ends[0]);
    close(ends[1]);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = worker_begin};
