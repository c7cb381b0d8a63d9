/*
 * runner.c: the loop. It asks whether to stop, moves every run on, starts what may start, and
 * sleeps until something happens or is due. Whatever takes time is somebody else's process.
 */
#include "run/runner_internal.h"

#include "base/clock.h"
#include "base/list.h"
#include "run/launch/profiler.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS     (200 * LAB_NS_PER_MS) /* between two questions whether to stop */
#define PROGRESS_NS (500 * LAB_NS_PER_MS) /* between two lines about where runs stand */

#define SETTLE_NS (200 * LAB_NS_PER_MS) /* that all devices have between runs of phases */

#define MEMORY_LEFT_BYTES ((int64_t)64 << 20) /* on a GPU after a run: less is the driver's own */
#define MEMORY_BACK_NS    (10 * LAB_NS_PER_S)

/* --- telling --- */

void runner_tell(const struct runner *runner, const struct runner_run *run,
                 struct lab_runner_event event) {
    if (!runner->spec->event)
        return;
    if (run) {
        event.item = run->item;
        event.attempt = run->attempt;
    }
    runner->spec->event(&event, runner->spec->state);
}

void runner_warn(const struct runner *runner, const struct runner_run *run, const char *format,
                 ...) {
    char text[1024];
    LAB_WITH_ARGS(format, vsnprintf(text, sizeof text, format, args));
    runner_tell(runner, run, (struct lab_runner_event){.kind = LAB_RUNNER_WARNING, .text = text});
}

static void tell_stopping(const struct runner *runner, int level, const char *why) {
    runner_tell(
        runner, NULL,
        (struct lab_runner_event){.kind = LAB_RUNNER_STOPPING, .value = level, .text = why});
}

void runner_give_up(struct runner *runner, const struct lab_err *err, bool store_refused) {
    if (runner->fatal.code != LAB_ERR_NONE)
        return;
    runner->fatal = *err;
    runner->store_refused = store_refused;
    tell_stopping(runner, 2, err->text);
}

/* --- where runs stand, for who looks from outside --- */

static struct lab_run_progress progress_of(const struct runner_run *run, int64_t now_ns) {
    const struct runner_rank *slowest = runner_run_slowest(run);
    return (struct lab_run_progress){.run = run->item->number,
                                     .phase = run->phase,
                                     .done = slowest->done,
                                     .total = slowest->total,
                                     .time_ns = now_ns};
}

static int write_progress(struct runner *runner, int64_t now_ns, struct lab_err *err) {
    LAB_AUTO(arena, arena);
    struct lab_run_progress *items =
        lab_arena_alloc(&arena, (size_t)runner->run_capacity, sizeof *items);
    int count = 0;
    for (int i = 0; i < runner->run_capacity; i++)
        if (runner->runs[i].state == RUNNER_WORKING)
            items[count++] = progress_of(&runner->runs[i], now_ns);
    int result = lab_store_set_progress(runner->spec->store, items, count, err);
    runner->progress_changed = false;
    runner->progress_ns = now_ns;
    return result;
}

static bool progress_is_due(const struct runner *runner, int64_t now_ns) {
    return runner->progress_changed && runner->fatal.code == LAB_ERR_NONE &&
           now_ns - runner->progress_ns >= PROGRESS_NS;
}

/* --- what starts --- */

static int runs_on(const struct runner *runner, const char *device) {
    int count = 0;
    for (int i = 0; i < runner->run_capacity; i++) {
        const struct runner_run *run = &runner->runs[i];
        if (run->state == RUNNER_FREE)
            continue;
        const struct lab_plan_run *planned = run->item->planned;
        count += LAB_FIND(planned->ranks, planned->rank_count, device, device) >= 0;
    }
    return count;
}

static bool devices_are_free(const struct runner *runner, const struct lab_run_rank *ranks,
                             int count) {
    int most = runner->spec->plan->runs_per_device > 0 ? runner->spec->plan->runs_per_device : 1;
    for (int rank = 0; rank < count; rank++)
        if (runs_on(runner, ranks[rank].device) >= most)
            return false;
    return true;
}

/* What an ended process held is given back by the driver, in its own time. */
static bool memory_is_back(struct runner *runner, const struct lab_run_rank *ranks, int count,
                           int64_t now_ns) {
    if (lab_run_uses_gpu(ranks, count) && !lab_run_monitor_is_settled(runner->monitor) &&
        now_ns < runner->empty_ns - MEMORY_BACK_NS + RUNNER_SETTLE_NS)
        return false; /* what was last read is from before */
    for (int rank = 0; rank < count; rank++) {
        const char *device = ranks[rank].device;
        int64_t left = lab_run_monitor_memory_left(runner->monitor, device);
        if (left < MEMORY_LEFT_BYTES || runs_on(runner, device) > 0)
            continue;
        if (now_ns < runner->empty_ns)
            return false;
        runner_warn(runner, NULL,
                    "%s has %lld MiB more in use than before the study, %lld s after its last run",
                    device, (long long)(left >> 20), MEMORY_BACK_NS / LAB_NS_PER_S);
    }
    return true;
}

static bool is_ready(struct runner *runner, const struct lab_run_rank *ranks, int count,
                     int64_t now_ns) {
    return devices_are_free(runner, ranks, count) && memory_is_back(runner, ranks, count, now_ns);
}

/* Whether the run can begin now. One that is spread is placed: of the slots that are ready, at the
 * one that had the fewest runs, so that all devices get as warm. */
static bool can_begin(struct runner *runner, struct lab_plan_run *planned, int64_t now_ns) {
    const struct lab_run_rank *best = NULL;
    if (planned->slot_count == 0)
        return is_ready(runner, planned->ranks, planned->rank_count, now_ns);
    for (int i = 0; i < planned->slot_count; i++) {
        const struct lab_run_rank *slot = &planned->slots[(ptrdiff_t)i * planned->rank_count];
        if ((!best || runner->uses[slot->gpu_id] < runner->uses[best->gpu_id]) &&
            is_ready(runner, slot, planned->rank_count, now_ns))
            best = slot;
    }
    if (best) {
        planned->ranks = best;
        runner->uses[best->gpu_id]++;
    }
    return best != NULL;
}

static bool has_pending(struct runner *runner) {
    while (runner->first_pending < runner->spec->item_count && runner->taken[runner->first_pending])
        runner->first_pending++;
    return runner->first_pending < runner->spec->item_count;
}

static bool may_start(const struct runner *runner) {
    return runner->stop_level == 0 && !runner->closed && runner->fatal.code == LAB_ERR_NONE;
}

/* The first that waits for nothing; -1 = none. */
static int find_startable(struct runner *runner, int64_t now_ns) {
    if (!has_pending(runner) || runner->active_count >= runner->run_capacity)
        return -1;
    for (int i = runner->first_pending; i < runner->spec->item_count; i++)
        if (!runner->taken[i] && can_begin(runner, runner->spec->items[i].planned, now_ns))
            return i;
    return -1;
}

static struct runner_run *find_place(struct runner *runner) {
    struct runner_run *run = runner->runs;
    while (run->state != RUNNER_FREE)
        run++;
    return run;
}

/* In a study with phases the pause ends when temperature and clocks are as they were. */
static void look_cool(struct runner *runner, int64_t now_ns) {
    if (!runner->cools || now_ns < runner->settle_ns || now_ns >= runner->cool_ns)
        return;
    if (lab_run_monitor_is_cool(runner->monitor))
        runner->cool_ns = now_ns;
}

static void start_runs(struct runner *runner, int64_t now_ns) {
    look_cool(runner, now_ns);
    while (may_start(runner) && now_ns >= runner->cool_ns) {
        int item = find_startable(runner, now_ns);
        if (item < 0)
            return;
        runner->taken[item] = true;
        runner_run_start(runner, find_place(runner), &runner->spec->items[item], now_ns);
    }
}

/* A pause between runs: only where nothing else keeps the machine warm. */
static void cool_down(struct runner *runner, int64_t now_ns) {
    double pause_s = runner->spec->plan->cooldown_s;
    if (runner->simulated) {
        runner->simulated_ns += (int64_t)(pause_s * 1e9);
        return;
    }
    if (pause_s <= 0 || runner->active_count > 0 || !may_start(runner) || !has_pending(runner))
        return;
    runner->cool_ns = now_ns + (int64_t)(pause_s * 1e9);
    runner->cools = runner->spec->items[runner->first_pending].planned->phase != NULL;
    runner->settle_ns = now_ns + SETTLE_NS;
    if (runner->cools)
        return;
    runner_tell(runner, NULL,
                (struct lab_runner_event){.kind = LAB_RUNNER_COOLING, .value = pause_s});
}

/* --- what stops --- */

static void ask_to_stop(struct runner *runner, int64_t now_ns) {
    int level = runner->spec->stop ? runner->spec->stop(runner->spec->state) : 0;
    if (level <= runner->stop_level)
        return;
    runner->stop_level = level;
    if (level > 1 && runner->fatal.code == LAB_ERR_NONE)
        write_progress(runner, now_ns, NULL); /* how far they came is known until they go on */
    runner->outcome.stopped = true;
    tell_stopping(runner, level > 1 ? 2 : 1, level > 1 ? "asked to stop at once" : "asked to stop");
}

static void close_shop(struct runner *runner, bool *reason, const char *why) {
    if (runner->closed || !has_pending(runner))
        return;
    runner->closed = *reason = true;
    tell_stopping(runner, 1, why);
}

static void check_budget(struct runner *runner, int64_t now_ns) {
    char why[80];
    double budget_s = runner->spec->plan->budget_s;
    if (budget_s <= 0 || (double)(now_ns - runner->start_ns) < budget_s * 1e9)
        return;
    snprintf(why, sizeof why, "the budget of %g s is used", budget_s);
    close_shop(runner, &runner->outcome.budget_used, why);
}

static void check_failures(struct runner *runner) {
    if (runner->spec->plan->fail_fast && runner->outcome.failed > 0)
        close_shop(runner, &runner->outcome.failed_fast, "a run failed, and fail_fast is on");
}

/* --- waiting --- */

enum { EVENTS, OUT, ERR, END, WATCHED };

static void monitor(struct runner *runner, int *count, int fd, short events) {
    LAB_PUSH(runner->polled, *count) = (struct pollfd){.fd = fd, .events = events};
}

static int watch_all(struct runner *runner) {
    int count = 0;
    for (int i = 0; i < runner->run_capacity; i++) {
        const struct runner_run *run = &runner->runs[i];
        for (int j = 0; run->state != RUNNER_FREE && j < run->worker_count; j++) {
            const struct runner_worker *worker = &run->workers[j];
            bool here = worker->child.state != LAB_CHILD_NONE;
            bool talks = worker->sent < worker->outgoing.length;
            monitor(runner, &count, here ? worker->child.socket : -1,
                    (short)(talks ? POLLIN | POLLOUT : POLLIN));
            monitor(runner, &count, here ? worker->child.out : -1, POLLIN);
            monitor(runner, &count, here ? worker->child.err : -1, POLLIN);
            monitor(runner, &count, here ? worker->child.pidfd : -1, POLLIN);
        }
    }
    monitor(runner, &count, lab_run_monitor_fd(runner->monitor), POLLIN);
    return count;
}

static void serve(struct runner *runner, int64_t now_ns) {
    const struct pollfd *polled = runner->polled;
    for (int i = 0; i < runner->run_capacity; i++) {
        struct runner_run *run = &runner->runs[i];
        for (int j = 0; run->state != RUNNER_FREE && j < run->worker_count; j++) {
            struct runner_worker *worker = &run->workers[j];
            if (polled[EVENTS].revents & POLLOUT)
                runner_say_rest(worker);
            if (polled[EVENTS].revents & ~POLLOUT)
                runner_hear(runner, run, worker, now_ns);
            if (polled[OUT].revents)
                runner_log_take(runner, run, worker, RUNNER_OUT, false);
            if (polled[ERR].revents)
                runner_log_take(runner, run, worker, RUNNER_ERR, false);
            polled += WATCHED;
        }
    }
}

static int64_t next_due(const struct runner *runner, int64_t now_ns) {
    int64_t due_ns = now_ns + TICK_NS;
    for (int i = 0; i < runner->run_capacity; i++) {
        const struct runner_run *run = &runner->runs[i];
        int64_t run_ns =
            run->state == RUNNER_FREE ? INT64_MAX : runner_run_due(runner, run, now_ns);
        due_ns = run_ns < due_ns ? run_ns : due_ns;
    }
    if (runner->cool_ns > now_ns && runner->cool_ns < due_ns)
        due_ns = runner->cool_ns;
    if (runner->cools && runner->settle_ns > now_ns && runner->settle_ns < due_ns)
        due_ns = runner->settle_ns;
    if (runner->monitor && !lab_run_monitor_is_settled(runner->monitor) &&
        now_ns < runner->empty_ns - MEMORY_BACK_NS + RUNNER_SETTLE_NS)
        due_ns = now_ns + RUNNER_SETTLE_LOOK_NS;
    return due_ns;
}

static void wait_for_events(struct runner *runner) {
    int64_t now_ns = lab_clock_now(lab_clock_system());
    int64_t due_ns = next_due(runner, now_ns);
    struct timespec pause = {0};
    if (due_ns > now_ns)
        pause.tv_nsec = due_ns - now_ns; /* a tick at most */
    int count = watch_all(runner);
    if (ppoll(runner->polled, (nfds_t)count, &pause, NULL) > 0)
        serve(runner, lab_clock_now(lab_clock_system()));
}

/* --- the loop --- */

static void advance(struct runner *runner, int64_t now_ns) {
    int active_before = runner->active_count;
    for (int i = 0; i < runner->run_capacity; i++) {
        struct runner_run *run = &runner->runs[i];
        if (run->state == RUNNER_FREE)
            continue;
        runner_run_advance(runner, run, now_ns);
        if (run->state != RUNNER_FREE &&
            (runner->stop_level > 1 || runner->fatal.code != LAB_ERR_NONE))
            runner_run_abandon(runner, run, now_ns);
    }
    check_failures(runner);
    if (runner->active_count < active_before) {
        runner->empty_ns = now_ns + MEMORY_BACK_NS;
        lab_run_monitor_edge(runner->monitor);
        cool_down(runner, now_ns);
    }
}

static void loop(struct runner *runner) {
    for (;;) {
        int64_t now_ns = lab_clock_now(lab_clock_system());
        lab_run_monitor_tend(runner->monitor);
        ask_to_stop(runner, now_ns);
        check_budget(runner, now_ns);
        advance(runner, now_ns);
        start_runs(runner, now_ns);
        struct lab_err refusal = LAB_ERR_INIT;
        if (progress_is_due(runner, now_ns) && write_progress(runner, now_ns, &refusal) < 0)
            runner_give_up(runner, &refusal, true);
        lab_children_look(&runner->children, now_ns);
        if (runner->active_count == 0 && (!may_start(runner) || !has_pending(runner)))
            return;
        wait_for_events(runner);
    }
}

static bool uses_gpus(const struct lab_runner_spec *spec) {
    for (int i = 0; i < spec->item_count; i++)
        if (lab_run_uses_gpu(spec->items[i].planned->ranks, spec->items[i].planned->rank_count))
            return true;
    return false;
}

static void open_watch(struct runner *runner) {
    const struct lab_runner_spec *spec = runner->spec;
    struct lab_err err = LAB_ERR_INIT;
    struct lab_run_monitor_spec wanted = {.machine = spec->machine,
                                          .store = spec->store,
                                          .gpus = uses_gpus(spec),
                                          .simulated = runner->simulated};
    if (lab_run_monitor_open(&wanted, &runner->monitor, &err) < 0) {
        runner->monitor = NULL;
        runner_warn(runner, NULL, "the machine isn't recorded during the study: %s", err.text);
    }
}

static void open_runner(struct runner *runner, const struct lab_runner_spec *spec) {
    runner->spec = spec;
    runner->patience = spec->patience ? *spec->patience : LAB_RUNNER_PATIENCE;
    /* a profiler writes its report when the worker is gone */
    if (lab_profiler_is_wanted(spec->plan) && runner->patience.exit_ns < LAB_PROFILER_EXIT_NS)
        runner->patience.exit_ns = LAB_PROFILER_EXIT_NS;
    runner->fatal = LAB_ERR_INIT;
    runner->start_ns = lab_clock_now(lab_clock_system());
    runner->simulated = spec->plan->machine && spec->plan->machine->simulated;
    runner->simulated_ns =
        spec->not_before_ns >= runner->start_ns ? spec->not_before_ns + 1 : runner->start_ns;
    runner->folder = realpath(spec->folder, NULL);
    if (!runner->folder)
        runner->folder = lab_mem_strdup(spec->folder);
    int most = spec->plan->max_workers > 1 ? spec->plan->max_workers : 1;
    runner->run_capacity = most < spec->item_count ? most : spec->item_count;
    runner->runs = lab_mem_alloc((size_t)runner->run_capacity + 1, sizeof *runner->runs);
    runner->taken = lab_mem_alloc((size_t)spec->item_count + 1, sizeof *runner->taken);
    runner->uses = lab_mem_alloc((size_t)spec->plan->devices.count + 1, sizeof *runner->uses);
    lab_children_init(&runner->children);
    runner_place_init(&runner->place, spec);
    if (spec->monitor)
        open_watch(runner); /* its threads run where this one does */
}

static void close_runner(struct runner *runner) {
    lab_run_monitor_close(runner->monitor);
    runner_place_release(&runner->place);
    lab_children_release(&runner->children);
    lab_mem_free(runner->polled);
    lab_mem_free(runner->taken);
    lab_mem_free(runner->uses);
    lab_mem_free(runner->runs);
    free(runner->folder);
}

int lab_runner_run(const struct lab_runner_spec *spec, struct lab_runner_outcome *ret_outcome,
                   struct lab_err *err) {
    struct runner runner = {0};
    open_runner(&runner, spec);
    loop(&runner);
    assert(runner.active_count == 0);
    runner.outcome.left = spec->item_count - runner.outcome.done - runner.outcome.failed;
    *ret_outcome = runner.outcome;
    close_runner(&runner);
    if (runner.fatal.code == LAB_ERR_NONE)
        return 0;
    return lab_err_set(err, runner.fatal.code, "%s", runner.fatal.text);
}
