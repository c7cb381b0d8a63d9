/*
 * runner_run.c: one run from its start to the line in the store. An attempt works until all results
 * are there or the first thing goes wrong; it is over when nothing of its workers is left.
 */
#include "run/runner_internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file/file.h"
#include "base/subprocess.h"
#include "run/frame.h"
#include "run/launch/profiler.h"
#include "workload/workload.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often the kernel has killed for want of memory; -1 = it doesn't say. */
static int64_t read_oom_kills(struct lab_arena *arena) {
    char *text;
    size_t length;
    if (lab_file_read("/proc/vmstat", 1 << 20, arena, &text, &length, NULL) < 0)
        return -1;
    const char *row = strstr(text, "\noom_kill ");
    return row ? strtoll(row + sizeof "\noom_kill", NULL, 10) : -1;
}

/* --- starting --- */

static void make_workers(const struct runner *runner, struct runner_run *run) {
    int ranks = run->item->planned->rank_count;
    enum lab_plan_processes processes = runner_run_processes(runner, run->item->planned);
    bool shared = processes != LAB_PLAN_PER_RANK;
    run->worker_count = shared ? 1 : ranks;
    run->speaker_count = processes == LAB_PLAN_LAUNCHER ? 1 : ranks;
    run->workers = lab_arena_alloc(&run->arena, (size_t)run->worker_count, sizeof *run->workers);
    run->ranks = lab_arena_alloc(&run->arena, (size_t)ranks, sizeof *run->ranks);
    for (int i = 0; i < run->worker_count; i++) {
        struct runner_worker *worker = &run->workers[i];
        worker->child = (struct lab_child){.socket = -1, .out = -1, .err = -1, .pidfd = -1};
        worker->first_rank = shared ? 0 : i;
        worker->rank_count = shared ? ranks : 1;
        lab_frame_reader_init(&worker->reader);
        lab_str_init(&worker->outgoing);
    }
}

static void mark_concurrent(struct runner *runner, struct runner_run *run) {
    for (int i = 0; i < runner->run_capacity; i++) {
        struct runner_run *other = &runner->runs[i];
        if (other == run || other->state == RUNNER_FREE || other->state == RUNNER_LEAVING)
            continue;
        run->concurrent = other->concurrent = true;
    }
}

/* For the processes of a program; no two runs under way have the same. */
static void choose_port(const struct runner *runner, struct runner_run *run) {
    enum { TRIES = 8 };
    bool taken = lab_workload_is_external(run->item->planned->workload);
    for (int try = 0; try < TRIES && taken; try++) {
        run->port = lab_subprocess_port();
        taken = false;
        for (int i = 0; i < runner->run_capacity; i++)
            taken |= &runner->runs[i] != run && runner->runs[i].state != RUNNER_FREE &&
                     runner->runs[i].port == run->port;
    }
}

static void start_attempt(struct runner *runner, struct runner_run *run, int attempt,
                          int64_t now_ns) {
    struct lab_err err = LAB_ERR_INIT;
    const struct lab_runner_item *item = run->item;
    *run = (struct runner_run){.state = RUNNER_WORKING,
                               .item = item,
                               .attempt = attempt,
                               .start_ns = runner->simulated ? runner->simulated_ns : now_ns,
                               .begun_ns = now_ns,
                               .deadline_ns = INT64_MAX};
    lab_arena_init(&run->arena);
    double timeout_s = item->planned->timeout_s;
    if (timeout_s > 0 && timeout_s < 1e9)
        run->deadline_ns = now_ns + (int64_t)(timeout_s * 1e9);
    run->oom_kills = read_oom_kills(&run->arena);
    mark_concurrent(runner, run);
    choose_port(runner, run);
    make_workers(runner, run);
    runner_logs_open(runner, run);
    const struct lab_plan_run *planned = item->planned;
    if ((planned->slot_count > 0 &&
         lab_store_place_run(runner->spec->store, item->number, planned->ranks, planned->rank_count,
                             &err) < 0) ||
        lab_store_begin_run(runner->spec->store, item->number, runner->spec->epoch, run->start_ns,
                            &err) < 0) {
        runner_give_up(runner, &err, true);
        return;
    }
    run->begun = true;
    runner->progress_changed = true;
    lab_run_monitor_edge(runner->monitor);
    runner_tell(runner, run, (struct lab_runner_event){.kind = LAB_RUNNER_STARTED});
    for (int i = 0; i < run->worker_count && run->failure.code == LAB_ERR_NONE; i++) {
        if (runner_start_worker(runner, run, &run->workers[i], &err) == 0)
            continue;
        runner_run_fail(run, NULL, &err);
        if (!runner->ever_started)
            runner_give_up(runner, &err, false);
    }
}

void runner_run_start(struct runner *runner, struct runner_run *run,
                      const struct lab_runner_item *item, int64_t now_ns) {
    run->item = item;
    runner->active_count++;
    start_attempt(runner, run, 1, now_ns);
}

/* --- going wrong --- */

void runner_run_fail(struct runner_run *run, const struct runner_worker *worker,
                     const struct lab_err *why) {
    if (run->failure.code != LAB_ERR_NONE)
        return;
    run->failure = *why;
    if (worker && worker->rank_count == 1 && run->item->planned->rank_count > 1)
        lab_err_context(&run->failure, "rank %d", worker->first_rank);
    run->failed_worker = worker;
}

void runner_run_fail_wrong(struct runner_run *run, const struct runner_worker *worker,
                           struct lab_err *why) {
    why->code = LAB_ERR_SYSTEM;
    lab_err_context(why, "the worker failed");
    lab_err_hint(why, LAB_HINT_WORKER_CRASHED);
    runner_run_fail(run, worker, why);
}

/* How a worker ended that should not have. */
static void fail_ended(struct runner_run *run, const struct runner_worker *worker) {
    const struct lab_child *child = &worker->child;
    struct lab_err err = LAB_ERR_INIT;
    if (child->signal == 0) {
        lab_err_set(&err, LAB_ERR_SYSTEM, "the worker ended with status %d and without a result",
                    child->exit_status);
    } else {
        const char *why = "";
        if (child->signal == SIGKILL) {
            int64_t kills = read_oom_kills(&run->arena);
            why = kills > run->oom_kills && run->oom_kills >= 0
                      ? "; the kernel's out-of-memory killer was active"
                      : "; not by gpulab: out of memory?";
        }
        lab_err_set(&err, LAB_ERR_SYSTEM, "the worker was ended by signal %d (%s)%s", child->signal,
                    strsignal(child->signal), why);
    }
    lab_err_hint(&err, child->signal == SIGKILL ? LAB_HINT_WORKER_KILLED : LAB_HINT_WORKER_CRASHED);
    runner_run_fail(run, worker, &err);
}

static bool has_its_results(const struct runner_run *run, const struct runner_worker *worker) {
    for (int i = 0; i < worker->rank_count; i++)
        if (!run->ranks[worker->first_rank + i].result)
            return false;
    return true;
}

static bool has_results(const struct runner_run *run) {
    for (int i = 0; i < run->item->planned->rank_count; i++)
        if (!run->ranks[i].result)
            return false;
    return true;
}

static void check_worker(struct runner *runner, struct runner_run *run,
                         struct runner_worker *worker, int64_t now_ns) {
    if (worker->child.state == LAB_CHILD_NONE)
        return;
    bool ended = worker->child.state != LAB_CHILD_RUNNING;
    if (ended && !worker->closed)
        runner_hear_out(runner, run, worker, now_ns);
    if (run->failure.code != LAB_ERR_NONE || has_its_results(run, worker))
        return;
    if (ended)
        fail_ended(run, worker);
    else if (worker->closed && now_ns - worker->closed_ns >= runner->patience.close_ns) {
        struct lab_err err = LAB_ERR_INIT;
        lab_err_set(&err, LAB_ERR_SYSTEM, "it closed its event socket without a result");
        runner_run_fail_wrong(run, worker, &err);
    }
}

static void check_time(struct runner_run *run, int64_t now_ns) {
    struct lab_err err = LAB_ERR_INIT;
    if (now_ns < run->deadline_ns)
        return;
    lab_err_set(&err, LAB_ERR_SYSTEM, LAB_RUN_TIMED_OUT "%g s %s%s", run->item->planned->timeout_s,
                run->phase[0] ? "in phase " : "before its first phase", run->phase);
    lab_err_hint(&err, lab_str_equal(run->phase, "measuring")   ? LAB_HINT_TIMEOUT_MEASURING
                       : lab_str_equal(run->phase, "verifying") ? LAB_HINT_TIMEOUT_VERIFYING
                                                                : LAB_HINT_TIMEOUT);
    runner_run_fail(run, NULL, &err);
}

/* Ends all workers, but lets one that has said its last word end by itself. */
static void stop_workers(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    run->state = RUNNER_STOPPING;
    run->leave_ns = now_ns + runner->patience.exit_ns;
    for (int i = 0; i < run->worker_count; i++) {
        struct runner_worker *worker = &run->workers[i];
        if (!(run->last_word && worker == run->failed_worker))
            lab_child_stop(&worker->child, now_ns);
    }
}

void runner_run_abandon(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    if (run->state == RUNNER_WORKING) {
        run->abandoned = true;
        stop_workers(runner, run, now_ns);
    }
    for (int i = 0; i < run->worker_count; i++)
        lab_child_stop(&run->workers[i].child, now_ns);
}

/* --- the verdict --- */

static struct lab_run make_outcome(const struct runner *runner, const struct runner_run *run,
                                   enum lab_run_state state) {
    const struct lab_plan_run *planned = run->item->planned;
    int64_t now_ns = lab_clock_now(lab_clock_system()), end_ns = now_ns;
    if (runner->simulated) /* what it took so far, unless its workers say more */
        end_ns = run->heard_ns > run->start_ns ? run->heard_ns
                                               : run->start_ns + (now_ns - run->begun_ns);
    return (struct lab_run){.number = run->item->number,
                            .id = planned->id,
                            .identity = planned->identity,
                            .repeat = planned->repeat,
                            .workload = planned->workload,
                            .label = planned->label,
                            .iterations = planned->iterations,
                            .warmup_iterations = planned->warmup_iterations,
                            .ranks = planned->ranks,
                            .rank_count = planned->rank_count,
                            .state = state,
                            .attempts = run->attempt,
                            .epoch = runner->spec->epoch,
                            .start_ns = run->start_ns,
                            .end_ns = end_ns,
                            .start_wall_ns = lab_clock_wall_ns() - (now_ns - run->start_ns),
                            .error = "",
                            .concurrent = run->concurrent,
                            .rate = NAN,
                            .rate_low = NAN,
                            .rate_high = NAN,
                            .rate_unit = ""};
}

/* The run's processes as far as they are known: its workers and what was seen below them. */
static struct lab_run_monitor_question
make_question(const struct runner *runner, const struct runner_run *run, struct lab_arena *arena) {
    const struct lab_plan_run *planned = run->item->planned;
    int count = 0, most = run->worker_count;
    for (int i = 0; i < run->worker_count; i++)
        most += run->workers[i].child.seen_count;
    pid_t *own = lab_arena_alloc(arena, (size_t)most + 1, sizeof *own);
    for (int i = 0; i < run->worker_count; i++) {
        const struct lab_child *child = &run->workers[i].child;
        own[count++] = child->pid;
        for (int j = 0; j < child->seen_count; j++)
            own[count++] = child->seen[j].pid;
    }
    return (struct lab_run_monitor_question){
        .ranks = planned->ranks,
        .rank_count = planned->rank_count,
        .start_ns = run->start_ns,
        .now_ns = runner->simulated ? run->heard_ns : lab_clock_now(lab_clock_system()),
        .own = own,
        .own_count = count,
        .tells_throttling = planned->phase != NULL,
        .runner = run->concurrent ? getpid() : 0,
        .shares = runner->spec->plan->runs_per_device > 1};
}

/* The next run begins behind this one. */
static void move_clock(struct runner *runner, const struct lab_run *outcome) {
    if (runner->simulated && outcome->end_ns >= runner->simulated_ns)
        runner->simulated_ns = outcome->end_ns + 1;
}

/* Results are there: into the store first, then to whoever listens, then to the workers. */
static void commit(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_run outcome = make_outcome(runner, run, LAB_RUN_DONE);
    const struct lab_plan *plan = runner->spec->plan;
    struct lab_run_monitor_question question = make_question(runner, run, &run->arena);
    runner_result_merge(run->ranks, run->item->planned->rank_count,
                        runner_run_processes(runner, run->item->planned),
                        lab_profiler_is_wanted(plan) ? plan->profiler : NULL, runner->monitor,
                        &question, &run->arena, &outcome);
    move_clock(runner, &outcome);
    lab_failpoint("before-commit");
    if (lab_store_finish_run(runner->spec->store, run->item->number, &outcome, &err) < 0) {
        runner_give_up(runner, &err, true);
        return;
    }
    lab_failpoint("after-commit");
    runner->outcome.done++;
    runner->progress_changed = true;
    runner_tell(runner, run,
                (struct lab_runner_event){.kind = LAB_RUNNER_DONE, .outcome = &outcome});
    lab_failpoint("before-ack");
    for (int i = 0; i < run->worker_count; i++)
        runner_say(&run->workers[i], &(struct lab_frame){.type = LAB_FRAME_ACK});
    run->state = RUNNER_LEAVING;
    run->leave_ns = now_ns + runner->patience.exit_ns;
}

/* What the failed worker, or the first that tells, ended with. */
static int find_exit_code(const struct runner_run *run) {
    const struct runner_worker *worker = run->failed_worker ? run->failed_worker : run->workers;
    return worker->child.state == LAB_CHILD_NONE ? -1 : worker->child.exit_status;
}

/* The disk is full: perhaps there is room for one line, once some is made. Asked for once. */
static bool make_room(struct runner *runner) {
    const struct lab_runner_spec *spec = runner->spec;
    if (!runner->store_refused || runner->room_was_asked_for || !spec->make_room)
        return false;
    runner->room_was_asked_for = true;
    return spec->make_room(spec->state);
}

static void commit_failure(struct runner *runner, struct runner_run *run,
                           const struct lab_err *why) {
    struct lab_err err = LAB_ERR_INIT;
    int64_t number = run->item->number;
    struct lab_run outcome = make_outcome(runner, run, LAB_RUN_FAILED);
    outcome.error = why->text;
    outcome.hint = why->hint;
    outcome.exit_code = find_exit_code(run);
    move_clock(runner, &outcome);
    lab_failpoint("before-commit");
    if (lab_store_finish_run(runner->spec->store, number, &outcome, &err) < 0) {
        runner_give_up(runner, &err, true);
        if (!make_room(runner) ||
            lab_store_finish_run(runner->spec->store, number, &outcome, &err) < 0)
            return;
    }
    lab_failpoint("after-commit");
    runner->outcome.failed++;
    runner->progress_changed = true;
    runner_tell(runner, run,
                (struct lab_runner_event){.kind = LAB_RUNNER_FAILED, .outcome = &outcome});
}

/* --- the end --- */

/* What lies in the request or the machine would fail again in the same way. */
static bool may_pass_next_time(enum lab_err_code code) {
    return code == LAB_ERR_SYSTEM || code == LAB_ERR_INTERRUPTED;
}

static bool retries(const struct runner *runner, const struct runner_run *run) {
    return may_pass_next_time(run->failure.code) &&
           run->attempt <= runner->spec->plan->max_retries && runner->stop_level == 0 &&
           !runner->outcome.budget_used;
}

static void release_attempt(struct runner *runner, struct runner_run *run) {
    for (int i = 0; i < run->worker_count; i++) {
        struct runner_worker *worker = &run->workers[i];
        runner_log_take(runner, run, worker, RUNNER_OUT, true);
        runner_log_take(runner, run, worker, RUNNER_ERR, true);
        if (worker->child.stuck)
            runner_warn(runner, run, "process %d, or a child of it, can't be ended",
                        (int)worker->child.pid);
    }
    runner_logs_close(runner, run);
    for (int i = 0; i < run->worker_count; i++) {
        lab_child_release(&run->workers[i].child);
        lab_frame_reader_release(&run->workers[i].reader);
        lab_str_release(&run->workers[i].outgoing);
    }
    lab_arena_release(&run->arena);
}

/* Workers are gone; the verdict was spoken (LEAVING) or is spoken now. */
static void end_attempt(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    bool again = run->state == RUNNER_STOPPING && !run->abandoned && retries(runner, run);
    int attempt = run->attempt;
    if (again) {
        runner->outcome.retried++;
        runner_tell(runner, run,
                    (struct lab_runner_event){.kind = LAB_RUNNER_RETRY, .text = run->failure.text});
    } else if (run->state == RUNNER_STOPPING && run->abandoned) {
        if (runner->fatal.code != LAB_ERR_NONE && run->begun) {
            make_room(runner);
            commit_failure(runner, run, &runner->fatal);
        }
    } else if (run->state == RUNNER_STOPPING) {
        commit_failure(runner, run, &run->failure);
    }
    release_attempt(runner, run);
    if (again) {
        start_attempt(runner, run, attempt + 1, now_ns);
        return;
    }
    *run = (struct runner_run){.state = RUNNER_FREE};
    runner->active_count--;
}

static void check_leaving(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    if (now_ns < run->leave_ns)
        return;
    run->leave_ns = INT64_MAX;
    for (int i = 0; i < run->worker_count; i++) {
        struct lab_child *child = &run->workers[i].child;
        if (child->state != LAB_CHILD_RUNNING || child->stopped)
            continue;
        runner_warn(runner, run, "the worker did not exit after its result and was killed");
        lab_child_kill(child, now_ns);
    }
}

/* Success and a crash on the way out: the result stands, but somebody should know. */
static void warn_of_crashes(const struct runner *runner, const struct runner_run *run) {
    for (int i = 0; i < run->worker_count; i++) {
        const struct lab_child *child = &run->workers[i].child;
        if (!child->stopped && child->signal)
            runner_warn(runner, run, "the worker was ended by signal %d after its result",
                        child->signal);
        else if (!child->stopped && child->exit_status)
            runner_warn(runner, run, "the worker ended with status %d after its result",
                        child->exit_status);
    }
}

/* What GPUs count (energy, errors) is read once more when results are there; that takes a
 * moment. */
static bool is_settled(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    if (!runner->monitor ||
        !lab_run_uses_gpu(run->item->planned->ranks, run->item->planned->rank_count))
        return true;
    if (run->settle_ns == 0) {
        run->settle_ns = now_ns + RUNNER_SETTLE_NS;
        lab_run_monitor_edge(runner->monitor);
    }
    return now_ns >= run->settle_ns || lab_run_monitor_is_settled(runner->monitor);
}

void runner_run_advance(struct runner *runner, struct runner_run *run, int64_t now_ns) {
    bool all_gone = true;
    for (int i = 0; i < run->worker_count; i++) {
        struct lab_child *child = &run->workers[i].child;
        if (child->state != LAB_CHILD_NONE)
            all_gone &= lab_child_tend(child, now_ns) == LAB_CHILD_GONE;
    }
    if (run->state == RUNNER_WORKING) {
        for (int i = 0; i < run->worker_count && run->failure.code == LAB_ERR_NONE; i++)
            check_worker(runner, run, &run->workers[i], now_ns);
        if (run->failure.code == LAB_ERR_NONE && runner->fatal.code == LAB_ERR_NONE) {
            if (has_results(run)) {
                if (is_settled(runner, run, now_ns))
                    commit(runner, run, now_ns);
            } else
                check_time(run, now_ns);
        }
        if (run->failure.code != LAB_ERR_NONE && runner->fatal.code == LAB_ERR_NONE)
            stop_workers(runner, run, now_ns);
        return;
    }
    if (!all_gone) {
        check_leaving(runner, run, now_ns);
        return;
    }
    if (run->state == RUNNER_LEAVING)
        warn_of_crashes(runner, run);
    end_attempt(runner, run, now_ns);
}

static int64_t worker_due(const struct runner *runner, const struct runner_run *run,
                          const struct runner_worker *worker, int64_t now_ns) {
    int64_t due_ns = lab_child_due(&worker->child, now_ns);
    if (run->state != RUNNER_WORKING || !worker->closed || has_its_results(run, worker))
        return due_ns;
    int64_t end_ns = worker->closed_ns + runner->patience.close_ns;
    return end_ns < due_ns ? end_ns : due_ns;
}

int64_t runner_run_due(const struct runner *runner, const struct runner_run *run, int64_t now_ns) {
    bool all_gone = true;
    int64_t due_ns = run->state == RUNNER_WORKING ? run->deadline_ns : run->leave_ns;
    if (run->state == RUNNER_WORKING && run->settle_ns > 0)
        due_ns = now_ns + RUNNER_SETTLE_LOOK_NS;
    for (int i = 0; i < run->worker_count; i++) {
        const struct runner_worker *worker = &run->workers[i];
        int64_t worker_ns = worker_due(runner, run, worker, now_ns);
        due_ns = worker_ns < due_ns ? worker_ns : due_ns;
        all_gone &= worker->child.state == LAB_CHILD_NONE || worker->child.state == LAB_CHILD_GONE;
    }
    return all_gone ? now_ns : due_ns;
}
