/*
 * test_worker_end.c: workers whose workload fails, talks, hangs or starts programs of its own, and
 * the end of them all when their runner is gone. The workloads are this file's own: it brings the
 * registry, in the place of the generated one.
 */
#include "unit/worker/worker_fixture.h"

#include <sys/ioctl.h>

/* --- workloads --- */

struct fake_config {
    int64_t unused;
};

static const struct lab_option fake_options[] = {
    {"unused", LAB_OPTION_INT, offsetof(struct fake_config, unused), .help = "nothing"},
    {NULL},
};

static const struct lab_rank *place_of(void *state) {
    return state;
}

static int fake_open(const void *config, const struct lab_rank *rank, void **ret_state,
                     struct lab_err *err) {
    (void)config, (void)err;
    struct lab_rank *copy = lab_mem_alloc(1, sizeof *copy);
    *copy = *rank;
    *ret_state = copy;
    return 0;
}

static void fake_close(void *state) {
    lab_mem_free(state);
}

static void fake_cost(const void *config, struct lab_workload_cost *ret_cost) {
    (void)config;
    *ret_cost = (struct lab_workload_cost){.samples = 4, .dtype = LAB_FP32};
}

static int fake_run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    (void)state, (void)err;
    for (int i = 0; i < count; i++) {
        records[i].start_ns = now_ns();
        usleep(100);
        records[i].end_ns = now_ns();
    }
    return 0;
}

static int verify_wrong(void *state, uint64_t seed, struct lab_verification *ret,
                        struct lab_err *err) {
    (void)state, (void)seed, (void)err;
    *ret = (struct lab_verification){
        .applicable = true, .relative_error = 0.5, .tolerance = 1e-5, .elements = 3};
    return 0;
}

static int prove_nothing(void *state, struct lab_err *err) {
    (void)state;
    return lab_err_set(err, LAB_ERR_WRONG, "3 of 4 pages lie on node 1");
}

static void tell(const struct lab_rank *place, const char *name, const char *unit, double value,
                 int64_t time_ns) {
    place->sink->metrics(place->sink->state,
                         &(struct lab_reported_metric){name, unit, value, 0, -1, time_ns}, 1);
}

/* A program that opens its own device: says all that it can say. */
static int run_talking(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    const struct lab_rank *place = place_of(state);
    char text[256];
    int length = snprintf(text, sizeof text, "%s %s gpu %d of %s in %s\n",
                          place->device ? "opened" : "unopened", place->ref->name, place->gpu_id,
                          place->run_id, place->folder ? place->folder : "nowhere");
    place->sink->output(place->sink->state, false, text, (size_t)length);
    tell(place, "loss", "nats", 3.25, 4711);
    place->sink->progress(place->sink->state, 700, 500); /* a worker must not pass on nonsense */
    return fake_run(state, count, records, err);
}

/* The first one runs until the others stop it; with index 1 it fails at once. */
static int run_partners(void *state, int count, struct lab_iteration *records,
                        struct lab_err *err) {
    const struct lab_rank *place = place_of(state);
    if (place->index == 1)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the partner fell over");
    while (!place->sink->stopped(place->sink->state))
        usleep(1000);
    return fake_run(state, count, records, err);
}

/* Tells more than anybody reads. */
static int run_flooding(void *state, int count, struct lab_iteration *records,
                        struct lab_err *err) {
    (void)count, (void)records;
    const struct lab_rank *place = place_of(state);
    while (!place->sink->stopped(place->sink->state))
        tell(place, "noise", "dB", 120, now_ns());
    return lab_err_set(err, LAB_ERR_SYSTEM, "not reached");
}

/* A program that saves its state when it is asked to end. */
static int run_saving(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    (void)count, (void)records;
    const struct lab_rank *place = place_of(state);
    tell(place, "begun", "", 1, 0);
    while (!place->sink->stopped(place->sink->state))
        usleep(1000);
    tell(place, "saved", "", 1, 0);
    return lab_err_set(err, LAB_ERR_INTERRUPTED, "the program was stopped");
}

/* Hangs in the kernel for ever. */
static int run_stuck(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    (void)state, (void)count, (void)records;
    for (;;)
        pause();
    return lab_err_set(err, LAB_ERR_SYSTEM, "not reached");
}

/*
 * Starts a shell, and through it a program in a session of its own whose parent ends at once. Tells
 * their process ids as metrics.
 */
static int start_family(void *state, struct lab_err *err) {
    const struct lab_rank *place = place_of(state);
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"},
                    (char[]){"(setsid sleep 1000 >/dev/null & echo $!); exec sleep 1000"}, NULL};
    pid_t pid = -1;
    int why = posix_spawnp(&pid, "sh", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    char text[32] = "";
    ssize_t length = why ? -1 : read(pipes[0], text, sizeof text - 1);
    close(pipes[0]);
    if (length <= 0)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the shell didn't start");
    tell(place, "child", "", pid, 0);
    tell(place, "orphan", "", strtod(text, NULL), 0);
    return 0;
}

static int run_family(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    return start_family(state, err) < 0 ? -1 : fake_run(state, count, records, err);
}

static int run_stuck_family(void *state, int count, struct lab_iteration *records,
                            struct lab_err *err) {
    return start_family(state, err) < 0 ? -1 : run_stuck(state, count, records, err);
}

#define FAKE(label, how, ...)                                                                      \
    {                                                                                              \
        .name = label, .help = "pretends", .options = fake_options,                                \
        .config_size = sizeof(struct fake_config), .cost = fake_cost, .open = fake_open,           \
        .close = fake_close, .run = how, .verify = verify_wrong, __VA_ARGS__                       \
    }

static const struct lab_workload wrong = FAKE("wrong", fake_run),
                                 unproven =
                                     FAKE("unproven", fake_run, .prove_placement = prove_nothing),
                                 talking = FAKE("talking", run_talking, .external = true,
                                                .prove_placement = prove_nothing),
                                 partners = FAKE("partners", run_partners),
                                 flooding = FAKE("flooding", run_flooding),
                                 saving = FAKE("saving", run_saving, .external = true),
                                 stuck = FAKE("stuck", run_stuck),
                                 family = FAKE("family", run_family, .external = true),
                                 stuck_family =
                                     FAKE("stuck_family", run_stuck_family, .external = true);

const struct lab_workload *const lab_workloads[] = {&wrong,        &unproven, &talking, &partners,
                                                    &flooding,     &saving,   &stuck,   &family,
                                                    &stuck_family, NULL};

/* --- what a workload can do to a run --- */

static const struct lab_job_rank one[] = {{0, 3, "cpu:0", 0}};

LAB_TEST(wrong_results_are_a_failure) {
    struct lab_job job = job_of("wrong", NULL, one, 1);
    job.verify = true;
    struct runner runner = start_job(&job);
    struct lab_frame frame = hear_type(&runner, LAB_FRAME_FAILURE);
    assert_int_equal(frame.failure.code, LAB_ERR_WRONG);
    assert_int_equal(frame.failure.hint, LAB_HINT_WRONG_RESULTS);
    assert_string_equal(frame.failure.text,
                        "cpu:0: wrong results: relative error 5.0e-01, allowed 1e-05");
    assert_int_equal(end_worker(&runner), 1);
}

LAB_TEST(memory_in_the_wrong_place_makes_a_result_invalid) {
    struct lab_job job = job_of("unproven", NULL, one, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    struct lab_value *result = value_of(hear_type(&runner, LAB_FRAME_RESULT).result);
    assert_false(lab_value_get(result, "placement_proven")->boolean);
    const struct lab_value *invalid = lab_value_get(result, "invalid");
    assert_int_equal(invalid->count, 1);
    assert_string_equal(invalid->items[0]->string,
                        "memory is on another NUMA node: 3 of 4 pages lie on node 1");
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(an_external_workload_opens_its_own_device_and_talks) {
    struct lab_job job = job_of("talking", NULL, one, 1);
    job.run_id = "gpu3_numa0_talking";
    job.folder = "/tmp";
    job.verify = true; /* never asked of it, and neither is where its memory lies */
    job.iterations = 1;
    job.warmup_iterations = 0;
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    struct lab_frame frame = hear_type(&runner, LAB_FRAME_METRICS);
    assert_string_equal(frame.metrics.items[0].name, "loss");
    assert_string_equal(frame.metrics.items[0].unit, "nats");
    assert_true(frame.metrics.items[0].value == 3.25);
    assert_int_equal(frame.metrics.items[0].time_ns, 4711);
    frame = hear_type(&runner, LAB_FRAME_PROGRESS);
    assert_int_equal(frame.progress.done, 500);
    assert_int_equal(frame.progress.total, 500);
    while (hear(&runner, &frame) && frame.type != LAB_FRAME_RESULT)
        assert_int_not_equal(frame.type, LAB_FRAME_PROGRESS); /* its own is the one that counts */
    struct lab_value *result = value_of(frame.result);
    assert_true(is_null(result, "verification"));
    assert_true(is_null(result, "placement_proven"));
    assert_true(number(result, "samples") == 4);
    say_ack(&runner);
    char text[256] = "";
    assert_true(read(runner.output, text, sizeof text - 1) > 0);
    assert_string_equal(text, "unopened cpu:0 gpu 3 of gpu3_numa0_talking in /tmp\n");
    assert_int_equal(end_worker(&runner), 0);
}

LAB_TEST(a_failing_rank_stops_the_others_in_their_work) {
    static const struct lab_job_rank pair[] = {{0, 0, "cpu:0", 0}, {1, 1, "cpu:0", 0}};
    struct lab_job job = job_of("partners", NULL, pair, 2);
    struct runner runner = start_job(&job);
    struct lab_frame frame = hear_type(&runner, LAB_FRAME_FAILURE);
    assert_int_equal(frame.rank, 1);
    assert_string_equal(frame.failure.text, "cpu:0: measuring: the partner fell over");
    while (hear(&runner, &frame)) {
        assert_int_not_equal(frame.type, LAB_FRAME_RESULT);
        assert_int_not_equal(frame.type, LAB_FRAME_FAILURE);
    }
    assert_int_equal(end_worker(&runner), 1);
}

/* --- the end --- */

static void hang_up(struct runner *runner) {
    close(runner->fd);
    runner->fd = -1;
}

static void hear_family(struct runner *runner, pid_t *ret_child, pid_t *ret_orphan) {
    struct lab_frame child = hear_type(runner, LAB_FRAME_METRICS);
    struct lab_frame orphan = hear_type(runner, LAB_FRAME_METRICS);
    assert_string_equal(child.metrics.items[0].name, "child");
    assert_string_equal(orphan.metrics.items[0].name, "orphan");
    *ret_child = (pid_t)child.metrics.items[0].value;
    *ret_orphan = (pid_t)orphan.metrics.items[0].value;
    assert_int_equal(kill(*ret_child, 0), 0);
    assert_int_equal(kill(*ret_orphan, 0), 0);
}

static void assert_killed(pid_t pid) {
    int status = wait_ended(pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

LAB_TEST(a_worker_ends_when_its_runner_hangs_up) {
    struct lab_job job = job_of("stuck", NULL, one, 1); /* in its warm-up */
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_PHASE);
    hang_up(&runner);
    assert_int_equal(end_worker(&runner), -1);
}

LAB_TEST(a_waiting_worker_ends_when_its_runner_hangs_up) {
    struct lab_job job = job_of("wrong", NULL, one, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_READY);
    hang_up(&runner);
    assert_int_equal(end_worker(&runner), -1);
}

LAB_TEST(a_worker_that_nobody_hears_ends_with_its_runner) {
    struct lab_job job = job_of("flooding", NULL, one, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_METRICS);
    /* until the socket takes no more and the rank's thread waits in send */
    for (int before = -1, waiting = 0; before < waiting;) {
        before = waiting;
        usleep(20000);
        assert_int_equal(ioctl(runner.fd, FIONREAD, &waiting), 0);
    }
    hang_up(&runner);
    assert_int_equal(end_worker(&runner), -1);
}

LAB_TEST(what_a_workload_started_ends_with_the_worker) {
    struct lab_job job = job_of("stuck_family", NULL, one, 1);
    struct runner runner = start_job(&job);
    pid_t child, orphan;
    hear_family(&runner, &child, &orphan);
    hang_up(&runner);
    assert_int_equal(end_worker(&runner), -1);
    assert_killed(child);
    assert_killed(orphan);
}

LAB_TEST(nothing_is_left_behind_by_a_run_that_worked) {
    struct lab_job job = job_of("family", NULL, one, 1);
    job.iterations = 1;
    job.warmup_iterations = 0;
    struct runner runner = start_job(&job);
    pid_t child, orphan;
    hear_type(&runner, LAB_FRAME_READY);
    say_go(&runner);
    hear_family(&runner, &child, &orphan);
    hear_type(&runner, LAB_FRAME_RESULT);
    say_ack(&runner);
    assert_int_equal(end_worker(&runner), 0);
    assert_killed(child);
    assert_killed(orphan);
}

LAB_TEST(a_program_is_asked_to_end_and_has_its_say) {
    struct lab_job job = job_of("saving", NULL, one, 1);
    struct runner runner = start_job(&job);
    assert_string_equal(hear_type(&runner, LAB_FRAME_METRICS).metrics.items[0].name, "begun");
    kill(runner.pid, SIGTERM);
    assert_string_equal(hear_type(&runner, LAB_FRAME_METRICS).metrics.items[0].name, "saved");
    assert_int_equal(end_worker(&runner), 1);
}

LAB_TEST(any_other_workload_is_ended_at_once) {
    struct lab_job job = job_of("stuck", NULL, one, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_PHASE);
    kill(runner.pid, SIGTERM);
    int status = wait_ended(runner.pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    close(runner.fd);
    close(runner.output);
    lab_frame_reader_release(&runner.reader);
}

LAB_TEST(a_runner_that_lies_is_none) {
    struct lab_job job = job_of("stuck", NULL, one, 1);
    struct runner runner = start_job(&job);
    hear_type(&runner, LAB_FRAME_PHASE);
    assert_true(send(runner.fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, MSG_NOSIGNAL) > 0);
    assert_int_equal(end_worker(&runner), -1);
}

/* The socket stays open in this process, so that only the parent's death can tell the worker. */
LAB_TEST(a_worker_ends_with_its_parent) {
    int sockets[2], pipes[2], news[2];
    open_channels(sockets, pipes);
    assert_int_equal(pipe2(news, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        pid_t worker = spawn_worker(sockets[1], pipes[1]);
        if (write(news[1], &worker, sizeof worker) != sizeof worker)
            _exit(1);
        for (;;)
            pause();
    }
    struct runner runner = {.fd = sockets[0], .output = pipes[0]};
    lab_frame_reader_init(&runner.reader);
    close(sockets[1]);
    close(pipes[1]);
    assert_int_equal(read(news[0], &runner.pid, sizeof runner.pid), sizeof runner.pid);
    close(news[0]);
    close(news[1]);
    struct lab_job job = job_of("stuck_family", NULL, one, 1);
    send_job(&runner, &job);
    pid_t child, orphan;
    hear_family(&runner, &child, &orphan);
    kill(parent, SIGKILL);
    assert_killed(parent);
    assert_int_equal(end_worker(&runner), -1);
    assert_killed(child);
    assert_killed(orphan);
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = worker_begin};
