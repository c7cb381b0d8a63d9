/*
 * What bench does with a workload that fails in one way or another, on this machine's cpu:0. The
 * workload here computes nothing: it only records how it was used.
 */
#include "machine/machine.h"
#include "session/bench_run.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static struct {
    bool open_fails, run_fails, verify_fails, wrong, misplaced;
    int opened, closed, verified, proven;
    int64_t opened_ns;
    bool device_was_cpu;
} fake;

static int fake_open(const void *config, const struct lab_rank *rank, void **ret_state,
                     struct lab_err *err) {
    (void)config;
    if (fake.open_fails)
        return lab_err_set(err, LAB_ERR_MEMORY, "asked for 7 TiB, 1 GiB is free");
    fake.opened++;
    fake.opened_ns = lab_clock_now(lab_clock_system());
    fake.device_was_cpu = strcmp(rank->device->ref.name, "cpu:0") == 0;
    *ret_state = &fake;
    return 0;
}

static void fake_close(void *state) {
    if (state)
        fake.closed++;
}

static int fake_run(void *state, int count, struct lab_iteration *records, struct lab_err *err) {
    (void)state;
    if (fake.run_fails)
        return lab_err_set(err, LAB_ERR_SYSTEM, "the device went away");
    int64_t now_ns = lab_clock_now(lab_clock_system());
    for (int i = 0; i < count; i++)
        records[i] = (struct lab_iteration){.start_ns = now_ns + i * LAB_NS_PER_MS,
                                            .end_ns = now_ns + (i + 1) * LAB_NS_PER_MS};
    return 0;
}

static int fake_verify(void *state, uint64_t seed, struct lab_verification *ret,
                       struct lab_err *err) {
    (void)state;
    (void)seed;
    fake.verified++;
    if (fake.verify_fails)
        return lab_err_set(err, LAB_ERR_SYSTEM, "no output came back");
    *ret = (struct lab_verification){.applicable = true,
                                     .passed = !fake.wrong,
                                     .relative_error = fake.wrong ? 0.5 : 1e-7,
                                     .tolerance = 1e-5,
                                     .elements = 8};
    return 0;
}

static int fake_prove(void *state, struct lab_err *err) {
    (void)state;
    fake.proven++;
    return fake.misplaced ? lab_err_set(err, LAB_ERR_WRONG, "3 of 8 pages lie on node 1") : 0;
}

static void fake_cost(const void *config, struct lab_workload_cost *ret_cost) {
    (void)config;
    *ret_cost = (struct lab_workload_cost){.samples = 4, .dtype = LAB_FP32};
}

static const struct lab_option no_options[] = {{NULL}};

static const struct lab_workload workload = {
    .name = "fake",
    .help = "records how it is used",
    .options = no_options,
    .cost = fake_cost,
    .open = fake_open,
    .close = fake_close,
    .run = fake_run,
    .verify = fake_verify,
    .prove_placement = fake_prove,
};

struct fixture {
    struct lab_arena arena;
    struct lab_machine *machine;
    struct lab_session session;
    struct lab_bench_request request;
    struct lab_bench_report report;
    struct lab_err err;
    int selected;
};

static int set_up(void **state) {
    memset(&fake, 0, sizeof fake);
    struct fixture *fixture = lab_mem_alloc(1, sizeof *fixture);
    lab_arena_init(&fixture->arena);
    if (lab_machine_open(NULL, &fixture->machine, NULL) < 0)
        return -1;
    fixture->session = (struct lab_session){
        .machine = fixture->machine, .workload = &workload, .arena = &fixture->arena};
    fixture->request = (struct lab_bench_request){
        .config_value = lab_value_map(&fixture->arena),
        .selector = "cpu:0",
        .numa_node = -1,
        .repeat = 1,
        .verify = true,
        .plan = LAB_MEASURE_PLAN,
    };
    fixture->request.plan.iterations = 10;
    fixture->request.plan.warmup_iterations = 2;
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    lab_machine_close(fixture->machine);
    lab_arena_release(&fixture->arena);
    lab_mem_free(fixture);
    return 0;
}

static int bench(struct fixture *fixture) {
    int result = lab_session_choose(&fixture->session, fixture->request.selector, &fixture->err);
    if (result == 0)
        result = lab_bench_run(&fixture->session, &fixture->request, &fixture->report,
                               &fixture->selected, &fixture->err);
    lab_session_release(&fixture->session);
    return result;
}

LAB_TEST(a_good_workload_is_valid) {
    struct fixture *fixture = *state;
    assert_int_equal(bench(fixture), 0);
    assert_null(fixture->report.invalid[0]);
    assert_true(fake.device_was_cpu);
    assert_int_equal(fake.proven, 1);
    assert_int_equal(fixture->report.repetition_count, 1);
    assert_int_equal(fixture->report.repetitions[0].measurement->count, 10);
    /* ten batches of four, a millisecond each */
    assert_float_equal(fixture->report.repetitions[0].rates.samples_per_s, 4000, 1e-6);
    assert_true(fixture->report.verified && fixture->report.verification.passed);
}

LAB_TEST(each_repetition_opens_afresh_and_one_verifies) {
    struct fixture *fixture = *state;
    fixture->request.repeat = 3;
    assert_int_equal(bench(fixture), 0);
    assert_int_equal(fixture->report.repetition_count, 3);
    assert_int_equal(fake.opened, 3);
    assert_int_equal(fake.closed, 3);
    assert_int_equal(fake.verified, 1);
    assert_int_equal(fake.proven, 3);
}

LAB_TEST(wrong_results_are_invalid_and_still_shown) {
    struct fixture *fixture = *state;
    fake.wrong = true;
    assert_int_equal(bench(fixture), 0);
    assert_contains(fixture->report.invalid[0], "wrong results: relative error 5.0e-01");
    assert_int_equal(fixture->report.repetition_count, 1);
}

LAB_TEST(wrong_placement_is_invalid) {
    struct fixture *fixture = *state;
    fake.misplaced = true;
    fixture->request.repeat = 2;
    assert_int_equal(bench(fixture), 0);
    assert_contains(fixture->report.invalid[0], "3 of 8 pages lie on node 1");
    assert_null(fixture->report.invalid[1]); /* the same reason is given once */
}

LAB_TEST(unverified_is_said) {
    struct fixture *fixture = *state;
    fixture->request.verify = false;
    assert_int_equal(bench(fixture), 0);
    assert_int_equal(fake.verified, 0);
    assert_false(fixture->report.verified);
    assert_contains(fixture->report.warnings[0], "not verified");
}

LAB_TEST(too_little_memory_keeps_its_kind) {
    struct fixture *fixture = *state;
    fake.open_fails = true;
    assert_int_equal(bench(fixture), -1);
    assert_int_equal(fixture->err.code, LAB_ERR_MEMORY);
    assert_string_equal(fixture->err.text, "fake on cpu:0: asked for 7 TiB, 1 GiB is free");
    assert_int_equal(fake.closed, 0);
}

LAB_TEST(a_failing_run_is_closed_and_told) {
    struct fixture *fixture = *state;
    fake.run_fails = true;
    assert_int_equal(bench(fixture), -1);
    assert_contains(fixture->err.text, "the device went away");
    assert_int_equal(fake.closed, 1);
}

LAB_TEST(a_verification_that_cannot_be_done_is_an_error) {
    struct fixture *fixture = *state;
    fake.verify_fails = true;
    assert_int_equal(bench(fixture), -1);
    assert_contains(fixture->err.text, "verifying: no output came back");
    assert_int_equal(fake.closed, 1);
}

LAB_TEST(unknown_places_are_the_users_mistake) {
    struct fixture *fixture = *state;
    fixture->request.numa_node = 4711;
    assert_int_equal(bench(fixture), -1);
    assert_int_equal(fixture->err.code, LAB_ERR_USER);
    fixture->request.selector = "cpu:4711";
    assert_int_equal(bench(fixture), -1);
    assert_int_equal(fixture->err.code, LAB_ERR_USER);
    assert_int_equal(fake.opened, 0);
}

static int external_open(const void *config, const struct lab_rank *rank, void **ret_state,
                         struct lab_err *err) {
    (void)config;
    (void)err;
    fake.opened++;
    fake.opened_ns = lab_clock_now(lab_clock_system());
    assert_null(rank->device);
    assert_string_equal(rank->ref->name, "cpu:0");
    assert_false(rank->sink->stopped(rank->sink->state));
    *ret_state = &fake;
    return 0;
}

LAB_TEST(a_program_opens_its_device_itself) {
    struct fixture *fixture = *state;
    struct lab_workload external = workload;
    external.external = true;
    external.open = external_open;
    fixture->session.workload = &external;
    fixture->request.repeat = 2;
    assert_int_equal(bench(fixture), 0);
    assert_int_equal(fake.opened, 2);
    assert_int_equal(fake.closed, 2);
    assert_int_equal(fake.verified, 0);
    assert_false(fixture->report.verification.applicable);
    assert_contains(fixture->report.verification.text, "not checked");
    assert_true(fixture->report.limits.flops_per_s == 0);
    assert_contains(fixture->report.limits.how, "not measured");
    assert_null(fixture->report.dtype);
    assert_null(fixture->report.invalid[0]);
    assert_int_equal(fixture->report.repetition_count, 2);
}

/* --- leases --- */

static void take_lease(struct lab_lease *lease) {
    const char *const cpu0[] = {"cpu:0"};
    struct lab_holder self;
    lab_holder_self("gpulab run quick_test", NULL, &self);
    assert_int_equal(lab_lease_take(cpu0, 1, &self, NULL, NULL, lease, NULL), 0);
}

LAB_TEST(a_device_that_others_measure_on_is_waited_for) {
    struct fixture *fixture = *state;
    int told[2];
    int64_t left_ns = 0;
    assert_int_equal(pipe(told), 0);
    pid_t other = fork();
    if (other == 0) {
        struct lab_lease lease;
        take_lease(&lease);
        if (write(told[1], "", 1) != 1)
            _exit(1);
        lab_clock_sleep(lab_clock_system(), 300 * LAB_NS_PER_MS);
        left_ns = lab_clock_now(lab_clock_system());
        _exit(write(told[1], &left_ns, sizeof left_ns) != sizeof left_ns);
    }
    char byte;
    assert_int_equal(read(told[0], &byte, 1), 1);
    assert_int_equal(bench(fixture), 0);
    assert_int_equal(read(told[0], &left_ns, sizeof left_ns), sizeof left_ns);
    assert_true(fake.opened_ns > left_ns);
    waitpid(other, NULL, 0);
    close(told[0]);
    close(told[1]);
}

/* A study's run may be a script that benches: its device is the study's, which waits for it. */
LAB_TEST(what_the_holder_started_uses_its_device) {
    struct fixture *fixture = *state;
    struct lab_lease lease;
    int status = -1;
    take_lease(&lease);
    pid_t script = fork();
    if (script == 0) {
        pid_t program = fork();
        if (program == 0)
            _exit(bench(fixture) == 0 && fixture->report.repetition_count == 1 ? 0 : 1);
        waitpid(program, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    waitpid(script, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    lab_lease_release(&lease);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
