/* history_fixture.h: runs of a model that are done, planned or under way, and what is expected of them. */
#pragma once

#include "folder_fixture.h"

#include "model/result.h"
#include "run/history.h"

#include <math.h>

#define S 1000000000LL

static const struct lab_run_rank on_node0 = {0, "cpu:0", 0}, on_node1 = {0, "cpu:0", 1};

/* A run of 100 iterations after 20 to warm up, that took `seconds`. */
static inline struct lab_run done_run(int64_t number, double seconds) {
    return (struct lab_run){.number = number,
                            .id = "gpu0_numa0_vit",
                            .identity = (uint64_t)number,
                            .workload = "vit",
                            .options = "{\"depth\": 6}",
                            .iterations = 100,
                            .warmup_iterations = 20,
                            .ranks = &on_node0,
                            .rank_count = 1,
                            .state = LAB_RUN_DONE,
                            .start_ns = 50 * S,
                            .end_ns = 50 * S + (int64_t)(seconds * S),
                            .start_wall_ns = number * S};
}

static inline struct lab_run planned_run(int64_t number) {
    struct lab_run run = done_run(number, 0);
    run.state = LAB_RUN_PLANNED;
    run.start_ns = run.end_ns = run.start_wall_ns = 0;
    return run;
}

static inline struct lab_run running_run(int64_t number) { /* since 100 s on the clock */
    struct lab_run run = planned_run(number);
    run.state = LAB_RUN_RUNNING;
    run.start_ns = 100 * S;
    return run;
}

static inline struct lab_history *history_of(const struct lab_run *runs, int count) {
    struct lab_history *history = lab_history_open(MACHINE, 0, NULL);
    for (int i = 0; i < count; i++)
        lab_history_add(history, &runs[i]);
    return history;
}

static inline void assert_expects(const struct lab_history *history, const struct lab_run *run,
                                  enum lab_history_basis expected_basis, double expected) {
    enum lab_history_basis basis;
    double seconds = lab_history_expect(history, run, &basis);
    assert_int_equal(basis, expected_basis);
    if (isnan(expected))
        assert_true(isnan(seconds));
    else
        assert_float_equal(seconds, expected, 1e-6);
}

/* Gives it a result: its iterations lie between these seconds after its start. */
static inline void set_span(struct lab_run *run, double first_s, double last_s) {
    struct lab_result *both = lab_arena_alloc(&arena, 2, sizeof *both);
    both[0] = both[1] = lab_result_none;
    both[0].ranks = &both[1];
    both[0].rank_count = 1;
    both[1].first_ns = run->start_ns + (int64_t)(first_s * S);
    both[1].last_ns = run->start_ns + (int64_t)(last_s * S);
    run->result = both;
}
