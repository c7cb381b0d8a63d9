/* test_runner.c: good workers and the order of things: gangs, concurrency, retries, stopping,
 * room. */
#include "runner_fixture.h"

#include <sys/resource.h>

/* --- one good run --- */

static void a_good_run(void **state) {
    (void)state;
    /* given one run of a worker that prints, when it is carried out */
    add_run("prints.0", "cpu:0");
    assert_carried_out();

    /* then it is done, with its figures */
    assert_int_equal(outcome.done, 1);
    assert_int_equal(outcome.failed + outcome.left + outcome.retried, 0);
    assert_false(outcome.stopped || outcome.budget_used || outcome.failed_fast);
    assert_done(1);
    struct lab_run run = stored(1);
    assert_int_equal(run.attempts, 1);
    assert_int_equal(run.exit_code, 0);
    assert_true(run.end_ns > run.start_ns);
    assert_true(run.rate == 100 && run.rate_low == 90 && run.rate_high == 110.5);
    assert_string_equal(run.rate_unit, "samples/s");
    assert_true(run.valid);
    assert_false(run.concurrent);

    /* its result as one object, the rank's within */
    struct lab_value *result = stored_result(1);
    assert_true(figure(result, "rate") == 100);
    assert_true(figure(lab_value_get(result, "latency_ms"), "mean") == 7);
    assert_string_equal(sentences(result, "warnings"), "[\"it is warm\", \"node 0 is far\"]");
    assert_null(lab_value_get(result, "gang_overlap"));
    assert_int_equal(lab_value_get(result, "ranks")->count, 1);

    /* its iterations and metrics */
    struct lab_iteration *iterations = NULL;
    size_t count = 0;
    struct lab_store_metric *metrics = NULL;
    int metric_count = 0;
    assert_int_equal(lab_store_iterations(store, 1, 0, &arena, &iterations, &count, &err), 0);
    assert_int_equal(count, 5);
    assert_int_equal(lab_store_metrics(store, 1, &arena, &metrics, &metric_count, &err), 0);
    assert_int_equal(metric_count, 1);
    assert_string_equal(metrics[0].name, "loss");

    /* and what it printed */
    assert_string_equal(read_log("prints.0.stdout"), "to stdout\n");
    assert_string_equal(read_log("prints.0.stderr"), "to stderr\n");
}

static void what_is_told(void **state) {
    (void)state;
    add_run("good.0", "cpu:0");
    assert_carried_out();
    static const enum lab_runner_event_kind order[] = {
        LAB_RUNNER_STARTED,  LAB_RUNNER_PHASE,  LAB_RUNNER_PHASE, LAB_RUNNER_WARNING,
        LAB_RUNNER_PROGRESS, LAB_RUNNER_METRIC, LAB_RUNNER_DONE};
    assert_int_equal(told_count, sizeof order / sizeof *order);
    for (int i = 0; i < told_count; i++)
        assert_int_equal(told[i].kind, order[i]);
    assert_string_equal(told[1].text, "warm-up");
    assert_string_equal(told[2].text, "measuring");
    assert_string_equal(told[3].text, "look  [31m out"); /* nothing that plays with a terminal */
    assert_int_equal(told[4].done, 5);
    assert_int_equal(told[4].total, 5);
    /* logs are there even where nothing was printed */
    assert_string_equal(read_log("good.0.stdout"), "");
    assert_string_equal(read_log("good.0.stderr"), "");
}

static void a_run_that_must_not_be_used(void **state) {
    (void)state;
    add_run("invalid.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_false(stored(1).valid);
    assert_true(isnan(stored(1).rate));
    assert_string_equal(sentences(stored_result(1), "invalid"), "[\"a stranger was here\"]");
}

static void a_worker_inherits_what_it_is_given_and_nothing_else(void **state) {
    (void)state;
    /* given two descriptors to inherit, one of them where the socket will be, and one not to */
    int given[2] = {open("/dev/null", O_RDONLY | O_CLOEXEC),
                    open("/dev/null", O_RDONLY | O_CLOEXEC)};
    int leak = open("/dev/null", O_RDONLY);
    spec.inherit_fds = given;
    spec.inherit_count = 2;
    add_run("descriptors.0", "cpu:0");
    assert_carried_out();
    spec.inherit_count = 0;
    for (int i = 0; i < 2; i++)
        close(given[i]);
    close(leak);
    /* stdin, stdout, stderr, the socket, and the two */
    assert_string_equal(read_log("descriptors.0.stdout"), "xxxxxx----------\n");
}

static cpu_set_t at_work; /* where the runner was allowed to be meanwhile */

static void see_where(const struct lab_runner_event *event, void *state) {
    (void)state;
    (void)event;
    sched_getaffinity(0, sizeof at_work, &at_work);
}

static void the_runner_keeps_off_the_devices_cpus(void **state) {
    (void)state;
    /* given a device on the first of our CPUs */
    cpu_set_t before, after;
    int first = 0;
    sched_getaffinity(0, sizeof before, &before);
    while (!CPU_ISSET(first, &before))
        first++;
    struct lab_device_ref device = {.name = "cpu:0/2.0", .cpus = {&first, 1}};
    plan.devices = (struct lab_device_list){.items = &device, .count = 1};
    add_run("where.0", "cpu:0/2.0");
    listener = see_where;
    assert_carried_out();
    listener = hear_event;
    /* then the runner stays off it if there are others, for a while, and its worker isn't bound */
    assert_int_equal(CPU_ISSET(first, &at_work), CPU_COUNT(&before) == 1);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
    assert_string_equal(read_log("where.0.stdout"),
                        lab_arena_printf(&arena, "%d\n", CPU_COUNT(&before)));
}

/* --- gangs --- */

static void assert_gang(double peak_memory_mb) {
    assert_done(1);
    struct lab_value *result = stored_result(1);
    assert_true(stored(1).rate == 201);
    assert_true(figure(result, "rate") == 201);
    assert_true(figure(result, "rate_low") == 181);
    assert_true(figure(result, "samples_per_second") == 201);
    assert_true(figure(result, "peak_memory_mb") == peak_memory_mb);
    /* of the slowest, which is rank 0 */
    assert_true(figure(lab_value_get(result, "latency_ms"), "mean") == 7);
    /* rank 1 began a tenth later */
    assert_true(fabs(figure(result, "gang_overlap") - 0.9) < 1e-9);
    assert_string_equal(sentences(result, "warnings"),
                        "[\"it is warm\", \"rank 0: node 0 is far\", \"rank 1: node 1 is far\"]");
    assert_int_equal(lab_value_get(result, "ranks")->count, 2);
    struct lab_iteration *iterations = NULL;
    size_t count = 0;
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(lab_store_iterations(store, 1, rank, &arena, &iterations, &count, &err),
                         0);
        assert_int_equal(count, 5);
    }
}

static void a_gang_of_processes(void **state) {
    (void)state;
    plan.processes = LAB_PLAN_PER_RANK;
    add_run("good.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_gang(6);
}

static void a_gang_in_one_process(void **state) {
    (void)state;
    plan.processes = LAB_PLAN_SHARED;
    add_run("good.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_gang(3); /* each rank told what the one process has */
}

static void a_gang_that_hardly_ran_together_warns(void **state) {
    (void)state;
    add_run("good.0", "a,b,c"); /* rank 2 begins a fifth later */
    assert_carried_out();
    assert_non_null(strstr(sentences(stored_result(1), "warnings"),
                           "measured at the same time for only 80 % of the time"));
}

static void one_rank_fails_and_all_end(void **state) {
    (void)state;
    add_run("partner.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_failed(1, "rank 1: the worker was ended by signal 11 (Segmentation fault)");
    assert_int_equal(stored(1).exit_code, -1);
}

/* --- several at once --- */

static void two_runs_at_once(void **state) {
    (void)state;
    plan.max_workers = 2;
    add_run("meet.0", "cpu:0");
    add_run("meet.1", "cpu:1");
    assert_carried_out(); /* each waits until the other is there */
    assert_int_equal(outcome.done, 2);
    assert_true(stored(1).concurrent && stored(2).concurrent);
}

static void runs_on_one_device_wait_for_each_other(void **state) {
    (void)state;
    plan.max_workers = 4;
    for (int i = 0; i < 3; i++)
        add_run(lab_arena_printf(&arena, "alone.%d", i), "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 3);
    assert_false(stored(1).concurrent || stored(2).concurrent || stored(3).concurrent);
}

static void who_waits_for_a_device_holds_up_nobody(void **state) {
    (void)state;
    /* given a run that needs company, one that can't start, and behind it the company */
    plan.max_workers = 2;
    add_run("meet.0", "cpu:0");
    add_run("good.1", "cpu:0");
    add_run("meet.2", "cpu:1");
    assert_carried_out();
    assert_int_equal(outcome.done, 3);
}

static void two_runs_on_one_device_if_asked_for(void **state) {
    (void)state;
    plan.max_workers = 2;
    plan.runs_per_device = 2;
    add_run("meet.0", "cpu:0");
    add_run("meet.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
}

/* --- retries --- */

static void a_crash_is_tried_again(void **state) {
    (void)state;
    plan.max_retries = 1;
    add_run("second.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_int_equal(stored(1).attempts, 2);
    assert_int_equal(outcome.retried, 1);
    assert_non_null(find_event(LAB_RUNNER_RETRY, "ended by signal 6 (Aborted)"));
    assert_string_equal(read_log("second.0.stdout"), "=== attempt 2 ===\n");
}

static void a_crash_is_not_tried_for_ever(void **state) {
    (void)state;
    plan.max_retries = 2;
    add_run("crash.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker was ended by signal 11 (Segmentation fault)");
    assert_int_equal(stored(1).attempts, 3);
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(count_events(LAB_RUNNER_FAILED), 1);
}

static void the_users_mistake_is_not_tried_again(void **state) {
    (void)state;
    plan.max_retries = 3;
    add_run("user.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "there is no  [1msuch thing");
    assert_int_equal(stored(1).attempts, 1);
    assert_int_equal(stored(1).exit_code, 1);
}

static void the_systems_refusal_is(void **state) {
    (void)state;
    plan.max_retries = 1;
    add_run("system.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the system refuses");
    assert_int_equal(stored(1).attempts, 2);
}

/* --- ends before the end --- */

static void fail_fast(void **state) {
    (void)state;
    plan.fail_fast = true;
    add_run("good.0", "cpu:0");
    add_run("exit.1", "cpu:0");
    add_run("good.2", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 1);
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(outcome.left, 1);
    assert_true(outcome.failed_fast);
    assert_int_equal(stored(3).state, LAB_RUN_PLANNED);
}

static void without_fail_fast_the_study_goes_on(void **state) {
    (void)state;
    add_run("exit.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker ended with status 3 and without a result");
    assert_int_equal(stored(1).exit_code, 3);
    assert_done(2);
}

static void the_budget_is_used(void **state) {
    (void)state;
    plan.budget_s = 1e-6;
    add_run("good.0", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.left, 1);
    assert_true(outcome.budget_used);
    assert_non_null(find_event(LAB_RUNNER_STOPPING, "the budget of 1e-06 s is used"));
}

static void a_pause_between_runs_can_be_interrupted(void **state) {
    (void)state;
    plan.cooldown_s = 1000;
    stopping.at = LAB_RUNNER_COOLING;
    stopping.level = 1;
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 1);
    assert_int_equal(outcome.left, 1);
    assert_true(outcome.stopped);
}

static void a_pause_ends(void **state) {
    (void)state;
    plan.cooldown_s = 0.01;
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
    assert_int_equal(count_events(LAB_RUNNER_COOLING), 1); /* none behind the last */
}

static void asked_once_it_finishes_what_runs(void **state) {
    (void)state;
    stopping.at = LAB_RUNNER_STARTED;
    stopping.level = 1;
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 1);
    assert_int_equal(outcome.left, 1);
    assert_true(outcome.stopped);
    assert_done(1);
    assert_int_equal(stored(2).state, LAB_RUN_PLANNED);
}

static void asked_twice_it_ends_at_once_and_goes_on_later(void **state) {
    (void)state;
    /* given a run that is stopped in the middle */
    stopping.at = LAB_RUNNER_PHASE;
    stopping.level = 2;
    add_run("family.forever", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    /* then nothing is decided about it, and nothing is left of it */
    assert_int_equal(outcome.done + outcome.failed, 0);
    assert_int_equal(outcome.left, 2);
    assert_true(outcome.stopped);
    assert_int_equal(stored(1).state, LAB_RUN_RUNNING);
    assert_family_is_gone(3);
    /* but how far it came */
    struct lab_run_progress *progress = NULL;
    int count = 0;
    assert_int_equal(lab_store_progress(store, &arena, &progress, &count, &err), 0);
    assert_int_equal(count, 1);
    const char *phase = NULL;
    for (int i = 0; i < told_count; i++)
        phase = told[i].kind == LAB_RUNNER_PHASE ? told[i].text : phase;
    assert_string_equal(progress[0].phase, phase);

    /* when the study goes on with better workers, then all is done */
    stopping.level = stopping.now = 0;
    planned[0].id = "good.0";
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
    assert_done(1);
    assert_int_equal(stored(1).attempts, 2);
}

/* --- the runner dies --- */

/* A runner that dies at the place of that name; what it left is then opened. */
static void die_at(const char *place) {
    pid_t pid = fork();
    if (pid == 0) {
        setenv("GPULAB_FAILPOINT", place, 1);
        carry_out();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const char *path = lab_arena_printf(&arena, "%s/study.db", folder);
    if (lab_store_open(path, LAB_STORE_WRITE, &store, &err) < 0)
        fail_msg("%s", err.text);
}

static void dead_before_the_commit(void **state) {
    (void)state;
    add_run("good.0", "cpu:0");
    die_at("before-commit");
    assert_int_equal(stored(1).state, LAB_RUN_RUNNING);
    assert_carried_out();
    assert_done(1);
    assert_int_equal(stored(1).attempts, 2);
}

static void dead_after_the_commit(void **state) {
    (void)state;
    add_run("good.0", "cpu:0");
    die_at("after-commit");
    assert_done(1);
}

static void dead_before_the_acknowledgement(void **state) {
    (void)state;
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    die_at("before-ack:2");
    assert_done(1);
    assert_done(2);
}

/* --- no way to go on --- */

static void a_worker_that_cannot_be_started(void **state) {
    (void)state;
    static const char *const nowhere[] = {"/nowhere/gpulab", NULL};
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    worker_argv = nowhere;
    int result = carry_out();
    worker_argv = rogue_argv;
    assert_int_equal(result, -1);
    assert_non_null(strstr(err.text, "can't start '/nowhere/gpulab'"));
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(outcome.left, 1);
}

static bool room_was_made;

static bool make_room(void *state) {
    (void)state;
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
    room_was_made = true;
    return true;
}

static void the_disk_is_full(void **state) {
    (void)state;
    /* given files that can't grow beyond a limit, and a run that tells more */
    signal(SIGXFSZ, SIG_IGN);
    add_run("good.0", "cpu:0")->iterations = 30000;
    add_run("good.1", "cpu:0");
    make_store();
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 150000;
    setrlimit(RLIMIT_FSIZE, &limit);
    spec.make_room = make_room;
    /* when it is carried out, then the runner stops with the store's error */
    int result = carry_out();
    assert_true(room_was_made);
    assert_int_equal(result, -1);
    spec.make_room = NULL;
    signal(SIGXFSZ, SIG_DFL);
    /* and the run is marked with it, in the room that was made */
    assert_failed(1, err.text);
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(outcome.left, 1);
    assert_int_equal(stored(2).state, LAB_RUN_PLANNED);
    /* and the study goes on when there is room */
    err = LAB_ERR_INIT;
    assert_carried_out();
    assert_done(1);
}

int main(int argc, char **argv) {
    rogue_main(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_good_run),
        TEST(what_is_told),
        TEST(a_run_that_must_not_be_used),
        TEST(a_worker_inherits_what_it_is_given_and_nothing_else),
        TEST(the_runner_keeps_off_the_devices_cpus),
        TEST(a_gang_of_processes),
        TEST(a_gang_in_one_process),
        TEST(a_gang_that_hardly_ran_together_warns),
        TEST(one_rank_fails_and_all_end),
        TEST(two_runs_at_once),
        TEST(runs_on_one_device_wait_for_each_other),
        TEST(who_waits_for_a_device_holds_up_nobody),
        TEST(two_runs_on_one_device_if_asked_for),
        TEST(a_crash_is_tried_again),
        TEST(a_crash_is_not_tried_for_ever),
        TEST(the_users_mistake_is_not_tried_again),
        TEST(the_systems_refusal_is),
        TEST(fail_fast),
        TEST(without_fail_fast_the_study_goes_on),
        TEST(the_budget_is_used),
        TEST(a_pause_between_runs_can_be_interrupted),
        TEST(a_pause_ends),
        TEST(asked_once_it_finishes_what_runs),
        TEST(asked_twice_it_ends_at_once_and_goes_on_later),
        TEST(dead_before_the_commit),
        TEST(dead_after_the_commit),
        TEST(dead_before_the_acknowledgement),
        TEST(a_worker_that_cannot_be_started),
        TEST(the_disk_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
