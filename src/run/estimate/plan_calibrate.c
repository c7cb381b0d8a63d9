/*
 * plan_calibrate.c: a few short runs of a plan in a folder that is removed again, for an estimate
 * where nothing like them has run. They are carried out as the study would: worker processes,
 * leases, binding.
 *
 * A real run does a few iterations; the span of these is told from the rest. A simulated one takes
 * of our time what its simulation costs: it does all of its iterations, and a run with none next to
 * it shows what is fixed.
 */
#include "run/estimate/plan_estimate.h"

#include "base/clock.h"
#include "base/file/out_dir.h"
#include "base/list.h"
#include "base/tty/stop.h"
#include "model/result.h"
#include "run/folder.h"
#include "run/plan_record.h"
#include "run/study.h"
#include "workload/workload.h"

#include <math.h>
#include <stdlib.h>

enum {
    KINDS_MOST = 1000,
    RUNS_MOST = 12,
    BUDGET_S = 3, /* no run starts after it */
    LIMIT_S = 8,  /* those that are under way end */
    ITERATIONS = 3,
    ITERATIONS_SIMULATED = 20000,
};

struct choice {
    struct lab_plan_run run;
    double work;
};

struct calibration {
    const struct lab_plan *plan; /* the short one */
    struct lab_history *history;
    int64_t limit_ns, begun_ns;
    double fixed_s; /* of a simulated run; NaN = not known yet */
    bool simulated;
    int done;
    struct lab_arena *arena;
};

/* --- which runs --- */

static bool same_work(const struct lab_run *a, const struct lab_run *b) {
    return a->rank_count == b->rank_count && lab_str_equal(a->workload, b->workload) &&
           (a->options == b->options || lab_str_equal(a->options, b->options));
}

static struct lab_plan_run shorten(const struct lab_plan_run *run, bool simulated) {
    struct lab_plan_run brief = *run;
    int64_t most = simulated ? ITERATIONS_SIMULATED : ITERATIONS;
    bool counted = run->iterations > 0 && run->iterations < most && run->duration_s == 0;
    brief.iterations = counted ? run->iterations : most;
    brief.warmup_iterations = run->warmup_iterations < 1 ? run->warmup_iterations : 1;
    brief.timeout_s = LIMIT_S;
    brief.phase = NULL;
    brief.duration_s = brief.tune_s = 0;
    brief.repeat = 0;
    return brief;
}

/* One of each kind of work whose own time is unknown, the smallest first; each kind is judged
 * once. */
static int choose(const struct lab_plan *plan, struct lab_history *history, bool simulated,
                  struct lab_arena *arena, struct choice **ret_choices) {
    struct choice *choices = lab_arena_alloc(arena, (size_t)plan->run_count + 2, sizeof *choices);
    struct lab_run *seen = lab_arena_alloc(arena, (size_t)plan->run_count + 1, sizeof *seen);
    struct lab_plan_texts texts = {.count = 0};
    int count = 0, kinds = 0;
    for (int i = 0; i < plan->run_count && kinds < KINDS_MOST; i++) {
        struct lab_run run = lab_run_plan_record_with(plan, i, &texts, arena);
        enum lab_history_basis basis;
        bool again = false;
        for (int k = 0; k < kinds && !again; k++)
            again = same_work(&run, &seen[k]);
        if (again)
            continue;
        seen[kinds++] = run;
        lab_history_expect(history, &run, &basis);
        const struct lab_workload *workload = lab_workload_find(run.workload, NULL);
        if (basis == LAB_HISTORY_SAME || basis == LAB_HISTORY_SCALED || !workload ||
            workload->external) /* nobody asked for a program to be run */
            continue;
        choices[count].run = shorten(&plan->runs[i], simulated);
        choices[count++].work = lab_history_work(history, &run) * run.rank_count;
    }
    LAB_SORT(choices, count, LAB_BY(choices, work));
    *ret_choices = choices;
    return count;
}

#define RUNG 4 /* times the work of the run before it */

int lab_run_plan_calibrate_order(const double *works, int count, int most, int *ret_order) {
    int taken = 0;
    most = count < most ? count : most;
    for (int i = 0; i < count && taken < most; i++)
        if (taken == 0 || works[i] >= RUNG * works[ret_order[taken - 1]])
            ret_order[taken++] = i;
    for (int k = 0; k < most && taken < most; k++) {
        int even = most > 1 ? k * (count - 1) / (most - 1) : 0;
        bool has = false;
        for (int i = 0; i < taken; i++)
            has |= ret_order[i] == even;
        if (!has)
            ret_order[taken++] = even;
    }
    return taken;
}

/* So many of them, as ordered. */
static struct lab_plan short_plan(const struct lab_plan *plan, const struct choice *choices,
                                  int count, const char *folder, bool simulated,
                                  struct lab_arena *arena) {
    LAB_AUTO_FREE double *works = lab_mem_alloc((size_t)count, sizeof *works);
    for (int i = 0; i < count; i++)
        works[i] = choices[i].work;
    int places[RUNS_MOST], first = simulated ? 1 : 0,
                           taken = lab_run_plan_calibrate_order(works, count, RUNS_MOST, places);
    struct lab_plan brief = *plan;
    brief.runs = lab_arena_alloc(arena, (size_t)taken + 1, sizeof *brief.runs);
    brief.run_count = taken + first;
    for (int i = 0; i < taken; i++)
        brief.runs[first + i] = choices[places[i]].run;
    if (simulated) { /* what is fixed */
        brief.runs[0] = brief.runs[1];
        brief.runs[0].id = lab_arena_printf(arena, "%s_fixed", brief.runs[1].id);
        brief.runs[0].identity ^= 1;
        brief.runs[0].iterations = 1;
        brief.runs[0].warmup_iterations = 0;
    }
    brief.point_count = brief.run_count;
    brief.output_dir = folder;
    brief.tracker = brief.profiler = brief.disturb = NULL;
    brief.resume = brief.trace = brief.monitor = brief.fail_fast = false;
    brief.ordered_as_given = true;
    brief.max_workers = brief.runs_per_device = brief.repeat = 1;
    brief.max_retries = 0;
    brief.cooldown_s = brief.duration_s = 0;
    brief.budget_s = BUDGET_S;
    return brief;
}

/* --- while they run --- */

static int on_stop(void *opaque) {
    const struct calibration *calibration = opaque;
    bool late = lab_clock_now(lab_clock_system()) > calibration->limit_ns;
    return late || lab_stop_level() > 0 ? 2 : 0;
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    (void)device, (void)holder, (void)opaque;
    return false; /* an estimate waits for nobody */
}

/* On our clock, with its iterations behind what is fixed. */
static void take_simulated(struct calibration *calibration, struct lab_run *run) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    double took_s = (double)(now_ns - calibration->begun_ns) / (double)LAB_NS_PER_S;
    double simulated_s = (double)(run->end_ns - run->start_ns) / (double)LAB_NS_PER_S;
    if (isnan(calibration->fixed_s)) {
        calibration->fixed_s = took_s;
        return;
    }
    double fixed_s = fmin(calibration->fixed_s, 0.99 * took_s);
    struct lab_result *both = lab_arena_alloc(calibration->arena, 2, sizeof *both);
    both[0] = both[1] = lab_result_none;
    both[0].ranks = &both[1];
    both[0].rank_count = 1;
    both[1].first_ns = calibration->begun_ns + (int64_t)(fixed_s * (double)LAB_NS_PER_S);
    both[1].last_ns = now_ns;
    lab_history_add_device_step(calibration->history, run,
                                simulated_s / (double)(run->iterations + run->warmup_iterations));
    run->start_ns = calibration->begun_ns;
    run->end_ns = now_ns;
    run->result = both;
    lab_history_add_brief(calibration->history, run);
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct calibration *calibration = opaque;
    if (event->kind == LAB_RUNNER_STARTED)
        calibration->begun_ns = lab_clock_now(lab_clock_system());
    if (event->kind != LAB_RUNNER_DONE)
        return;
    struct lab_run run =
        lab_run_plan_record(calibration->plan, (int)event->item->number - 1, calibration->arena);
    run.state = LAB_RUN_DONE;
    run.start_ns = event->outcome->start_ns;
    run.end_ns = event->outcome->end_ns;
    run.result = event->outcome->result;
    calibration->done++;
    if (calibration->simulated)
        take_simulated(calibration, &run);
    else
        lab_history_add_brief(calibration->history, &run);
}

static int carry_out(struct calibration *calibration, struct lab_arena *arena,
                     struct lab_err *err) {
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    struct lab_runner_outcome outcome;
    static const char *const none[] = {NULL};
    struct lab_study_request request = {.plan = calibration->plan,
                                        .machine = calibration->plan->machine,
                                        .words = none,
                                        .overrides = none,
                                        .command = "gpulab estimate",
                                        .machine_json = "{}\n",
                                        .passing = true};
    struct lab_study_listener listener = {
        .stop = on_stop, .event = on_event, .wait = on_wait, .state = calibration};
    calibration->limit_ns = lab_clock_now(lab_clock_system()) + LIMIT_S * LAB_NS_PER_S;
    int result = lab_study_open(&request, arena, &study, err);
    if (result == 0)
        result = lab_study_run(&study, &listener, &outcome, err);
    lab_study_close(&study);
    return result;
}

int lab_run_plan_calibrate(const struct lab_plan *plan, struct lab_history *history,
                           struct lab_err *err) {
    LAB_AUTO(arena, arena);
    bool simulated = lab_run_plan_is_simulated(plan);
    struct choice *choices;
    int count = choose(plan, history, simulated, &arena, &choices);
    struct lab_scratch_dir scratch;
    if (count == 0)
        return 0;
    if (lab_scratch_dir_open(&arena, &scratch, err) < 0)
        return -1;
    struct lab_plan brief = short_plan(plan, choices, count, scratch.path, simulated, &arena);
    struct calibration calibration = {.plan = &brief,
                                      .history = history,
                                      .simulated = simulated,
                                      .fixed_s = NAN,
                                      .arena = &arena};
    int result = carry_out(&calibration, &arena, err);
    lab_scratch_dir_close(&scratch);
    return calibration.done ? calibration.done : result;
}
