/*
 * execute.c: a study's plan carried out, with what is said before, while and after it runs.
 */
#include "command/run/execute.h"

#include "base/json.h"
#include "base/tty/stop.h"
#include "load/study_view.h"
#include "machine/machine.h"
#include "machine/machine_json.h"
#include "report/report.h"
#include "report/report_end.h"
#include "report/report_progress.h"
#include "run/estimate/plan_estimate.h"
#include "run/launch/profiler.h"
#include "run/run_study.h"
#include "run/study.h"
#include "track/tracker.h"
#include "track/tracker_follow.h"
#include "workload/workload.h"

#include <string.h>
#include <unistd.h>

#define FIRST_REPLY                                                                                \
    "\r\033[Kfinishing the current run; Ctrl-C again ends it; the same command resumes\n"
#define SECOND_REPLY "\r\033[Kending it\n"

/* --- what can't be done here --- */

static int check_keys(const struct lab_plan *plan, struct lab_arena *arena, struct lab_err *err) {
    const struct lab_tracker *const *trackers;
    if (lab_tracker_list(plan->tracker, arena, &trackers, err) < 0)
        return lab_err_context(err, "tracker");
    for (int i = 0; i < plan->run_count && plan->machine->simulated; i++)
        if (lab_workload_is_external(plan->runs[i].workload))
            return lab_err_set(err, LAB_ERR_USER,
                               "%s: %s is simulated, and your own program can't run on it; to run "
                               "it here, add: device=auto",
                               plan->option, plan->runs[i].ranks[0].device);
    return lab_profiler_check(plan, err);
}

/* --- while it runs --- */

struct execution {
    const struct lab_study_execution *wanted;
    struct lab_report_progress view;
    char waiting_for[64]; /* the device that was spoken of last */
    bool begun;           /* a run has */
    bool busy;            /* a device was, and it isn't waited for */
};

static int on_stop(void *opaque) {
    struct execution *execution = opaque;
    lab_report_progress_tick(&execution->view);
    int level = lab_stop_level();
    return level == 0 && execution->view.failed > execution->wanted->failed_most ? 1 : level;
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct execution *execution = opaque;
    if (!execution->begun) /* until then Ctrl-C finds nothing that it could let finish */
        lab_stop_watch(execution->view.bar ? FIRST_REPLY : strchr(FIRST_REPLY, 'f'),
                       execution->view.bar ? SECOND_REPLY : strchr(SECOND_REPLY, 'e'));
    execution->begun = true;
    lab_report_progress_event(&execution->view, event);
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    struct execution *execution = opaque;
    execution->busy = execution->wanted->impatient;
    if (execution->busy)
        return false;
    if (strcmp(execution->waiting_for, device) != 0) {
        snprintf(execution->waiting_for, sizeof execution->waiting_for, "%s", device);
        LAB_AUTO(str, who);
        lab_holder_describe(holder, &who);
        lab_console_note("waiting for %s, on which another study measures: %s", device, who.text);
    }
    return lab_stop_level() == 0;
}

static void say_beginning(const struct lab_command_call *call, const struct lab_study *study) {
    const struct lab_console *console = call->console;
    if (console->quiet || console->json)
        return;
    for (int i = 0; study->plan.notes && study->plan.notes[i]; i++)
        lab_console_note("%s", study->plan.notes[i]);
    int done = study->run_count - study->item_count;
    const char *folder = lab_study_view_shorten(study->folder.path, call->arena);
    if (study->folder.resumed)
        lab_console_note("resuming %s: %d of %d runs are done", folder, done, study->run_count);
    else {
        LAB_AUTO(str, counts);
        lab_report_add_counts(&study->plan, &counts);
        lab_console_note("%s, in %s", counts.text, folder);
    }
}

static void prepare_view(struct execution *execution, const struct lab_command_call *call,
                         const struct lab_study *study) {
    const struct lab_console *console = call->console;
    bool lines = !console->quiet && !console->json;
    execution->view = (struct lab_report_progress){
        .lines = lines,
        .each = execution->wanted->verbose || !lab_console_draws(console),
        .bar = lab_console_draws(console),
        .style = lab_console_style(console->err_is_terminal, STDERR_FILENO),
        .max_workers = study->plan.max_workers,
        .simulated = study->machine->simulated,
        .arena = call->arena,
    };
    if (!lines)
        return;
    execution->view.history = lab_run_history(study->machine);
    if (execution->wanted->report)
        execution->view.report_s =
            lab_run_plan_estimate(&study->plan, execution->view.history).report_s;
}

static int exit_status(const struct lab_runner_outcome *outcome) {
    if (outcome->stopped)
        return lab_stop_signal() ? 128 + lab_stop_signal()
                                 : lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return outcome->failed > 0 ? 1 : 0;
}

static int run_study(const struct lab_command_call *call, struct lab_study *study,
                     const struct lab_study_execution *wanted, const char *command,
                     struct lab_study_executed *ret_done, struct lab_err *err) {
    const struct lab_console *console = call->console;
    struct execution execution = {.wanted = wanted};
    say_beginning(call, study);
    prepare_view(&execution, call, study);
    lab_report_progress_start(&execution.view, study->runs, study->run_count);
    lab_stop_watch(NULL, NULL);
    struct lab_study_listener listener = {
        .stop = on_stop, .event = on_event, .wait = on_wait, .state = &execution};
    int result = lab_study_run(study, &listener, &ret_done->outcome, err);
    lab_report_progress_end(&execution.view);
    lab_history_close(execution.view.history);
    ret_done->busy = execution.busy;
    if (execution.view.lines && console->err_is_terminal && !wanted->silent)
        lab_console_say("%s", ""); /* the answer below stands apart */
    if (ret_done->outcome.budget_used && !console->quiet)
        lab_console_note("the budget is used up: %d run%s left; the same command resumes",
                         ret_done->outcome.left, ret_done->outcome.left == 1 ? "" : "s");
    if (result < 0)
        return lab_err_context(err, "%s", study->folder.path);
    ret_done->status = exit_status(&ret_done->outcome);
    struct lab_report_end end = {.folder = study->folder.path,
                                 .command = command,
                                 .point_count = study->plan.point_count,
                                 .resumed = study->folder.resumed,
                                 .analysed = wanted->report,
                                 .silent = wanted->silent,
                                 .verbose = wanted->verbose};
    return lab_report_end(&end, console, call->arena, err);
}

/* --- trackers --- */

/* A tracker that can't be used is a note: the study runs, and can be sent later. */
static void start_follower(const struct lab_study *study, struct lab_track_follower *follower) {
    struct lab_err problem = LAB_ERR_INIT;
    if (lab_track_follow(study->folder.path, study->plan.tracker, follower, &problem) < 0)
        lab_console_note("%s", problem.text);
}

static void end_follower(const struct lab_command_call *call, struct lab_track_follower *follower) {
    lab_stop_watch(NULL, NULL); /* ends the wait */
    if (lab_console_draws(call->console))
        lab_console_status_line("sending what is left to trackers: 10 s at most");
    const char *problem = lab_track_follow_end(follower, call->arena);
    lab_console_status_line(NULL);
    if (problem)
        lab_console_note("%s", problem);
}

int lab_study_execute(const struct lab_command_call *call, const struct lab_plan *plan,
                      const struct lab_study_execution *execution,
                      struct lab_study_executed *ret_done, struct lab_err *err) {
    const struct lab_machine *machine = plan->machine;
    *ret_done = (struct lab_study_executed){0};
    if (machine->recorded && !machine->simulated)
        return lab_err_set(err, LAB_ERR_USER,
                           "--topology plans for another machine, which can't run anything here: "
                           "add --dry-run");
    if (check_keys(plan, call->arena, err) < 0)
        return -1;
    LAB_AUTO(str, json);
    lab_json_write(lab_machine_json_value(machine, call->arena), 2, &json);
    lab_str_add(&json, "\n");
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    struct lab_study_request wanted = {
        .plan = plan,
        .machine = machine,
        .words = execution->words,
        .overrides = execution->overrides,
        .command = lab_run_command(execution->words, call->arena),
        .machine_json = json.text,
    };
    int result = lab_study_open(&wanted, call->arena, &study, err);
    struct lab_track_follower follower = {0};
    if (result == 0) {
        start_follower(&study, &follower);
        result = run_study(call, &study, execution, wanted.command, ret_done, err);
    }
    bool follows = lab_track_follows(&follower);
    const char *folder = follows ? lab_study_view_shorten(follower.folder, call->arena) : NULL;
    folder = folder ? lab_arena_strdup(call->arena, folder) : NULL;
    lab_study_close(&study); /* the lock is free: what follows it finds that all is there */
    follower.folder = folder;
    if (follows)
        end_follower(call, &follower);
    return result;
}
