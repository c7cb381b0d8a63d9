/* test_report_progress.c: the time left that is shown while a study runs. */
#include "report/report_progress.h"

#include "base/clock.h"

#include "test.h"

#define RUNS 4

static struct lab_arena arena;
static struct lab_report_progress view;
static struct lab_run runs[RUNS];
static struct lab_plan_run planned[RUNS];
static struct lab_runner_item items[RUNS];

static int set_up(void **state) {
    (void)state;
    lab_arena_init(&arena);
    for (int i = 0; i < RUNS; i++) {
        runs[i] = (struct lab_run){
            .number = i + 1, .identity = (uint64_t)i, .workload = "vit", .options = "{}"};
        planned[i] = (struct lab_plan_run){.id = "gpu0_numa0_vit"};
        items[i] = (struct lab_runner_item){.planned = &planned[i], .number = i + 1};
    }
    view = (struct lab_report_progress){
        .history = lab_history_open(0, 0, NULL), .max_workers = 1, .arena = &arena};
    lab_report_progress_start(&view, runs, RUNS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lab_history_close(view.history);
    lab_arena_release(&arena);
    return 0;
}

/* A run that took ten seconds. */
static void carry_out(int index, enum lab_run_state how) {
    struct lab_run outcome = runs[index];
    outcome.state = how;
    outcome.end_ns = lab_clock_now(lab_clock_system());
    outcome.start_ns = outcome.end_ns - 10 * LAB_NS_PER_S;
    outcome.error = "";
    lab_report_progress_event(
        &view, &(struct lab_runner_event){.kind = LAB_RUNNER_STARTED, .item = &items[index]});
    lab_report_progress_event(&view, &(struct lab_runner_event){.kind = how == LAB_RUN_DONE
                                                                            ? LAB_RUNNER_DONE
                                                                            : LAB_RUNNER_FAILED,
                                                                .item = &items[index],
                                                                .outcome = &outcome});
}

LAB_TEST(every_run_that_ends_makes_it_shorter) {
    for (int i = 0; i < RUNS; i++) {
        view.estimate_cost_ns = 0; /* however busy this machine is */
        carry_out(i, LAB_RUN_DONE);
        assert_float_equal(view.estimate.left_s, 10 * (RUNS - 1 - i), 1e-6);
    }
}

/* Given a study that waited a minute for another one's devices, then it isn't counted per run. */
LAB_TEST(waiting_for_devices_is_over) {
    view.start_ns -= 60 * LAB_NS_PER_S;
    carry_out(0, LAB_RUN_DONE);
    assert_float_equal(lab_report_progress_left_s(&view), 10 * (RUNS - 1), 1e-6);
}

LAB_TEST(a_failed_run_is_over_for_now) {
    carry_out(0, LAB_RUN_DONE);
    view.estimate_cost_ns = 0;
    carry_out(1, LAB_RUN_FAILED);
    assert_float_equal(view.estimate.left_s, 20, 1e-6);
    assert_int_equal(view.done, 1);
    assert_int_equal(view.failed, 1);
}

/* Given a simulated study, whose runs' times are simulated, then what is left goes by our clock. */
LAB_TEST(a_simulated_run_takes_what_we_wait) {
    view.simulated = true;
    carry_out(0, LAB_RUN_DONE); /* ten seconds of its own, none of ours */
    assert_true(view.estimate.left_s < 5);
}

const struct lab_test_program lab_test_program = {.set_up = set_up, .tear_down = tear_down};
