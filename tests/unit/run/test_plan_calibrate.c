/*
 * test_plan_calibrate.c: short runs of a simulated plan for an estimate: one of each kind of work that
 * isn't known, and one with nothing but what is fixed. They leave nothing behind.
 */
#include "base/clock.h"
#include "base/file/walk.h"
#include "run/estimate/plan_estimate.h"
#include "run/frame.h"
#include "run/plan_record.h"
#include "unit/plan/plan_fixture.h"
#include "worker/worker.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char *scratch;

static void given_plan(const char *const *words) {
    if (plan_words(ONE_NODE, words) < 0)
        fail_msg("%s", plan_err.text);
    scratch = test_path("scratch");
    mkdir(scratch, 0700);
    setenv("TMPDIR", scratch, 1);
    setenv("XDG_STATE_HOME", test_path("state"), 1);
    setenv("GPULAB_LOCK_DIR", scratch, 1);
}

#define GIVEN(...) given_plan((const char *const[]){__VA_ARGS__, NULL})

static int count_files(const char *place) {
    const char *const *names = lab_walk_names(place, &arena);
    int count = 0;
    while (names && names[count])
        count++;
    return count;
}

static enum lab_history_basis basis_of(const struct lab_history *history, int index) {
    struct lab_run run = lab_run_plan_record(&plan, index, &arena);
    enum lab_history_basis basis;
    double seconds = lab_history_expect(history, &run, &basis);
    assert_true(basis == LAB_HISTORY_NONE || (seconds > 0 && seconds < 60));
    return basis;
}

/* How many short runs there were; on a machine that is too busy for them nothing is told. */
static int calibrate(struct lab_history *history) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t start_ns = lab_clock_now(lab_clock_system());
    int count = lab_run_plan_calibrate(&plan, history, &err);
    if (lab_clock_now(lab_clock_system()) - start_ns > 2 * LAB_NS_PER_S)
        skip(); /* none starts after 3 s */
    assert_string_equal(err.text, "");
    return count;
}

LAB_TEST(each_kind_of_work_is_run_once_and_known_then) {
    struct lab_history *history = lab_history_open(0, 0, NULL);
    GIVEN("experiment=quick_test", "device=sim:l40s-10", "experiment.repeat=2",
          "experiment.hardware.gpu_ids=[0,1]", "experiment.test.num_samples=200",
          "experiment.vit_configs=[{patch_size:32,depth:2,heads:4,dim:128},{depth:0}]");
    assert_int_equal(plan.run_count, 2 * 2 * 2);
    assert_int_equal(basis_of(history, 0), LAB_HISTORY_NONE);
    assert_int_equal(calibrate(history), 2 + 1); /* and what is fixed */
    for (int i = 0; i < plan.run_count; i++) {
        struct lab_run run = lab_run_plan_record(&plan, i, &arena);
        enum lab_history_basis basis = basis_of(history, i);
        assert_true(basis == LAB_HISTORY_SCALED || basis == LAB_HISTORY_SAME);
        /* on its device's clock: an L40S takes less than 1 ms for a batch of these */
        double step_s = lab_history_device_step_s(history, &run);
        assert_true(step_s > 1e-6 && step_s < 1e-3);
    }
    /* what is known isn't run again; another model alone is */
    assert_int_equal(calibrate(history), 0);
    GIVEN("experiment=quick_test", "device=sim:l40s-10", "experiment.test.num_samples=200",
          "experiment.vit_configs=[{depth:0},{patch_size:16,depth:2,heads:4,dim:128}]");
    assert_int_equal(calibrate(history), 1 + 1);
    lab_history_close(history);
    assert_int_equal(count_files(scratch), 0);
    assert_int_equal(count_files(test_path("state")), 0);
}

LAB_TEST(steps_in_work_come_before_what_is_alike) {
    const double works[] = {1, 1.1, 1.2, 1.3, 2, 30, 31, 1000};
    int order[6];
    assert_int_equal(lab_run_plan_calibrate_order(works, 8, 6, order), 6);
    const int expected[] = {0, 5, 7, 1, 2, 4};
    assert_memory_equal(order, expected, sizeof expected);
    assert_int_equal(lab_run_plan_calibrate_order(works, 1, 6, order), 1);
    assert_int_equal(order[0], 0);
}

LAB_TEST(nobody_runs_a_program_for_an_estimate) {
    struct lab_history *history = lab_history_open(0, 0, NULL);
    GIVEN("experiment=test_matrix", "device=cpu", "experiment.command='exit 1'",
          "experiment.matrix={}");
    assert_int_equal(calibrate(history), 0);
    assert_int_equal(basis_of(history, 0), LAB_HISTORY_NONE);
    lab_history_close(history);
}

LAB_TEST(without_a_place_for_them_nothing_runs) {
    struct lab_history *history = lab_history_open(0, 0, NULL);
    GIVEN("experiment=quick_test", "device=sim:l40s-10");
    setenv("TMPDIR", "/nowhere", 1);
    ASSERT_FAILS(lab_run_plan_calibrate(&plan, history, err), LAB_ERR_NONE, "/nowhere");
    lab_history_close(history);
}

static int begin(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], LAB_WORKER_COMMAND) == 0)
        return lab_worker_run(LAB_WORKER_FD, NULL) == 0 ? 0 : 1;
    return LAB_TEST_GO;
}

const struct lab_test_program lab_test_program = {
    .set_up = set_up, .tear_down = tear_down, .begin = begin};
