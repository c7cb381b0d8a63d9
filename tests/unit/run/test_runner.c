/* test_runner.c: good workers and the order of things: gangs, concurrency, retries, stopping,
 * room. */
#include "runner_fixture.h"

#include <sys/resource.h>

/* --- one good run --- */

LAB_TEST(a_good_run) {
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
    assert_true(isnan(stored(1).result->gang_overlap));
    assert_int_equal(stored(1).result->rank_count, 1);

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

LAB_TEST(what_is_told) {
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

static struct lab_run_progress seen; /* in the store, as 2 of 5 were told */

static void see_progress(const struct lab_runner_event *event, void *state) {
    struct lab_run_progress *rows;
    int count = 0;
    hear_event(event, state);
    if (event->kind != LAB_RUNNER_PROGRESS || event->done != 2)
        return;
    assert_int_equal(lab_store_progress(store, &arena, &rows, &count, &err), 0);
    assert_int_equal(count, 1);
    seen = rows[0];
}

/* How far a run is can be read from outside, at most half a second late; and nothing once it is over. */
LAB_TEST(progress_is_in_the_store) {
    struct lab_run_progress *rows;
    int count = 0;
    add_run("slowly.0", "cpu:0");
    listener = see_progress;
    int64_t before_ns = lab_clock_now(lab_clock_system());
    assert_carried_out();
    listener = hear_event;
    assert_int_equal(seen.run, 1);
    assert_string_equal(seen.phase, "measuring");
    assert_int_equal(seen.done, 1);
    assert_int_equal(seen.total, 5);
    assert_true(seen.time_ns > before_ns);
    assert_int_equal(lab_store_progress(store, &arena, &rows, &count, &err), 0);
    assert_int_equal(count, 0);
}

LAB_TEST(a_run_that_must_not_be_used) {
    add_run("invalid.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_false(stored(1).valid);
    assert_true(isnan(stored(1).rate));
    assert_string_equal(sentences(stored_result(1), "invalid"), "[\"a stranger was here\"]");
}

LAB_TEST(a_worker_inherits_what_it_is_given_and_nothing_else) {
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

LAB_TEST(the_runner_keeps_off_the_devices_cpus) {
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
    assert_int_equal(stored(1).result->rank_count, 2);
    struct lab_iteration *iterations = NULL;
    size_t count = 0;
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(lab_store_iterations(store, 1, rank, &arena, &iterations, &count, &err),
                         0);
        assert_int_equal(count, 5);
    }
}

LAB_TEST(a_gang_of_processes) {
    plan.processes = LAB_PLAN_PER_RANK;
    add_run("good.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_gang(6);
}

LAB_TEST(what_ranks_print_stays_apart) {
    add_run("prints.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    static const char *const names[] = {"prints.0.stdout", "prints.0.rank1.stdout",
                                        "prints.0.stderr", "prints.0.rank1.stderr"};
    for (int i = 0; i < 4; i++)
        assert_string_equal(read_log(names[i]), i < 2 ? "to stdout\n" : "to stderr\n");
}

LAB_TEST(a_gang_in_one_process) {
    plan.processes = LAB_PLAN_SHARED;
    add_run("good.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_gang(3); /* each rank told what the one process has */
}

LAB_TEST(a_rank_that_fails_in_a_shared_process_is_named) {
    plan.processes = LAB_PLAN_SHARED;
    add_run("user.0", "cpu:0/2.0,cpu:0/2.1");
    add_run("user.1", "cpu:0");
    assert_carried_out();
    assert_failed(1, "rank 0: there is no");
    assert_int_equal(strncmp(stored(2).error, "there is no", 11), 0);
}

LAB_TEST(a_gang_that_hardly_ran_together_warns) {
    add_run("good.0", "a,b,c"); /* rank 2 begins a fifth later */
    assert_carried_out();
    assert_non_null(
        strstr(sentences(stored_result(1), "warnings"), "did not overlap for 20% of the time"));
}

LAB_TEST(one_rank_fails_and_all_end) {
    add_run("partner.0", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_failed(1, "rank 1: the worker was ended by signal 11 (Segmentation fault)");
    assert_int_equal(stored(1).exit_code, -1);
}

LAB_TEST(processes_of_a_gang_go_on_together) {
    add_run("assemble.0", "cpu:0/2.0,cpu:0/2.1");
    add_run("assemble.crash", "cpu:0/2.0,cpu:0/2.1");
    assert_carried_out();
    assert_done(1);
    assert_failed(2, "rank 1: the worker was ended by signal 11 (Segmentation fault)");
}

/* --- several at once --- */

LAB_TEST(two_runs_at_once) {
    plan.max_workers = 2;
    add_run("meet.0", "cpu:0");
    add_run("meet.1", "cpu:1");
    assert_carried_out(); /* each waits until the other is there */
    assert_int_equal(outcome.done, 2);
    assert_true(stored(1).concurrent && stored(2).concurrent);
}

LAB_TEST(runs_on_one_device_wait_for_each_other) {
    plan.max_workers = 4;
    for (int i = 0; i < 3; i++)
        add_run(lab_arena_printf(&arena, "alone.%d", i), "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 3);
    assert_false(stored(1).concurrent || stored(2).concurrent || stored(3).concurrent);
}

LAB_TEST(who_waits_for_a_device_holds_up_nobody) {
    /* given a run that needs company, one that can't start, and behind it the company */
    plan.max_workers = 2;
    add_run("meet.0", "cpu:0");
    add_run("good.1", "cpu:0");
    add_run("meet.2", "cpu:1");
    assert_carried_out();
    assert_int_equal(outcome.done, 3);
}

LAB_TEST(two_runs_on_one_device_if_asked_for) {
    plan.max_workers = 2;
    plan.runs_per_device = 2;
    add_run("meet.0", "cpu:0");
    add_run("meet.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
}

/* Where each run may be: on one of so many devices, cpu:0 first. */
static void spread_runs(int devices) {
    struct lab_run_rank *slots = lab_arena_alloc(&arena, (size_t)devices, sizeof *slots);
    for (int i = 0; i < devices; i++)
        slots[i] = (struct lab_run_rank){i, lab_arena_printf(&arena, "cpu:%d", i), i};
    plan.devices.count = devices;
    plan.devices.items = lab_arena_alloc(&arena, (size_t)devices, sizeof *plan.devices.items);
    for (int i = 0; i < devices; i++)
        plan.devices.items[i].name = slots[i].device;
    for (int i = 0; i < run_count; i++) {
        planned[i].slots = slots;
        planned[i].slot_count = devices;
    }
}

LAB_TEST(spread_runs_go_where_there_is_room) {
    /* given two that need each other, and may both be on either device */
    plan.max_workers = 2;
    add_run("meet.0", "cpu:0");
    add_run("meet.1", "cpu:0");
    spread_runs(2);
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
    /* then each had one, and the store knows which */
    for (int i = 0; i < 2; i++) {
        struct lab_run run = stored(i + 1);
        assert_int_equal(run.ranks[0].gpu_id, i);
        assert_int_equal(run.ranks[0].numa_node, i);
        assert_string_equal(run.ranks[0].device, i ? "cpu:1" : "cpu:0");
    }
}

LAB_TEST(spread_runs_one_at_a_time_use_all_devices_alike) {
    for (int i = 0; i < 6; i++)
        add_run(lab_arena_printf(&arena, "good.%d", i), "cpu:0");
    spread_runs(3);
    assert_carried_out();
    for (int i = 0; i < 6; i++)
        assert_int_equal(stored(i + 1).ranks[0].gpu_id, i % 3);
}

/* --- retries --- */

LAB_TEST(a_crash_is_tried_again) {
    plan.max_retries = 1;
    add_run("second.0", "cpu:0");
    assert_carried_out();
    assert_done(1);
    assert_int_equal(stored(1).attempts, 2);
    assert_int_equal(outcome.retried, 1);
    assert_non_null(find_event(LAB_RUNNER_RETRY, "ended by signal 6 (Aborted)"));
    assert_string_equal(read_log("second.0.stdout"), "=== attempt 2 ===\n");
}

LAB_TEST(a_crash_is_not_tried_for_ever) {
    plan.max_retries = 2;
    add_run("crash.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker was ended by signal 11 (Segmentation fault)");
    assert_int_equal(stored(1).attempts, 3);
    assert_int_equal(outcome.failed, 1);
    assert_int_equal(count_events(LAB_RUNNER_FAILED), 1);
}

LAB_TEST(the_users_mistake_is_not_tried_again) {
    plan.max_retries = 3;
    add_run("user.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "there is no  [1msuch thing");
    assert_int_equal(stored(1).attempts, 1);
    assert_int_equal(stored(1).exit_code, 1);
}

LAB_TEST(a_long_reason_is_cut_between_characters) {
    add_run("user.long", "cpu:0");
    assert_carried_out();
    const char *reason = stored(1).error;
    assert_true(strlen(reason) >= 500 && strlen(reason) % 2 == 0 && strlen(reason) < 8000);
    assert_string_equal(reason + strlen(reason) - 2, "\xc3\xa9");
}

LAB_TEST(the_systems_refusal_is) {
    plan.max_retries = 1;
    add_run("system.0", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the system refuses");
    assert_int_equal(stored(1).attempts, 2);
}

/* --- ends before the end --- */

LAB_TEST(fail_fast) {
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

LAB_TEST(without_fail_fast_the_study_goes_on) {
    add_run("exit.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_failed(1, "the worker ended with status 3 and without a result");
    assert_int_equal(stored(1).exit_code, 3);
    assert_done(2);
}

LAB_TEST(the_budget_is_used) {
    plan.budget_s = 1e-6;
    add_run("good.0", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.left, 1);
    assert_true(outcome.budget_used);
    assert_non_null(find_event(LAB_RUNNER_STOPPING, "the budget of 1e-06 s is used"));
}

LAB_TEST(a_pause_between_runs_can_be_interrupted) {
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

LAB_TEST(a_pause_ends) {
    plan.cooldown_s = 0.01;
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 2);
    assert_int_equal(count_events(LAB_RUNNER_COOLING), 1); /* none behind the last */
}

LAB_TEST(there_is_no_pause_while_another_runs) {
    plan.cooldown_s = 0.01;
    plan.max_workers = 2;
    add_run("good.0", "cpu:0");
    add_run("meet.0", "cpu:1"); /* ends in the third one's company */
    add_run("meet.1", "cpu:0");
    assert_carried_out();
    assert_int_equal(outcome.done, 3);
    assert_int_equal(count_events(LAB_RUNNER_COOLING), 0);
}

LAB_TEST(asked_once_it_finishes_what_runs) {
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

LAB_TEST(asked_twice_it_ends_at_once_and_goes_on_later) {
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

LAB_TEST(dead_before_the_commit) {
    add_run("good.0", "cpu:0");
    die_at("before-commit");
    assert_int_equal(stored(1).state, LAB_RUN_RUNNING);
    assert_carried_out();
    assert_done(1);
    assert_int_equal(stored(1).attempts, 2);
}

LAB_TEST(dead_after_the_commit) {
    add_run("good.0", "cpu:0");
    die_at("after-commit");
    assert_done(1);
}

LAB_TEST(dead_before_the_acknowledgement) {
    add_run("good.0", "cpu:0");
    add_run("good.1", "cpu:0");
    die_at("before-ack:2");
    assert_done(1);
    assert_done(2);
}

/* --- no way to go on --- */

LAB_TEST(a_worker_that_cannot_be_started) {
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

LAB_TEST(the_disk_is_full) {
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

static int begin(int argc, char **argv) {
    rogue_main(argc, argv);
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
