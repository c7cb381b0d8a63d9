/*
 * support/run_execute.c: opens the study's folder, runs what is left of it while its progress is
 * shown, and ends with the report, in the terminal and in the folder. Whatever happens on the way,
 * the last lines say where everything lies and how to go on.
 */
#include "command/support/run_execute.h"

#include "base/file.h"
#include "base/json.h"
#include "command/support/report_build.h"
#include "command/support/run_progress.h"
#include "command/support/stop.h"
#include "command/support/study_view.h"
#include "store/results.h"
#include "study/profiler.h"
#include "study/study.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY_STUDIES 50
#define REPORT_NS       ((int64_t)30 * 1000000000) /* for the report at the end */

#define FIRST_REPLY                                                                                \
    "\r\033[Kfinishing what runs now; Ctrl-C again ends it; the same command goes on later\n"
#define SECOND_REPLY "\r\033[Kending it\n"

/* --- the command line --- */

const char *lab_run_command(const char *const *words, struct lab_arena *arena) {
    struct lab_str text;
    lab_str_init(&text);
    lab_str_add(&text, "gpulab run");
    for (int i = 0; words && words[i]; i++) {
        lab_str_add(&text, " ");
        lab_str_add_shell(&text, words[i]);
    }
    const char *copy = lab_arena_strdup(arena, text.text);
    lab_str_release(&text);
    return copy;
}

/* What was given behind `gpulab run`, as far as it decides what runs. */
static const char *const *command_words(const struct lab_command_call *call,
                                        const struct lab_run_request *request) {
    const char **words = lab_arena_alloc(call->arena, (size_t)call->word_count + 6, sizeof *words);
    int count = 0;
    if (request->multirun)
        words[count++] = "-m";
    if (request->config_dir) {
        words[count++] = "--config-dir";
        words[count++] = request->config_dir;
    }
    if (request->device) {
        words[count++] = "--device";
        words[count++] = request->device;
    }
    for (int i = 0; i < call->word_count; i++)
        words[count++] = call->words[i];
    return words;
}

/* --- what can't be done here --- */

static int check_keys(const struct lab_plan *plan, struct lab_err *err) {
    if (plan->tracker && *plan->tracker)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tracker: this version can't do that yet; leave the key out");
    return lab_profiler_check(plan, err);
}

/* --- while it runs --- */

struct execution {
    const struct lab_command_call *call;
    struct lab_run_progress_view view;
    char waiting_for[64]; /* the device that was spoken of last */
    bool begun;           /* a run has */
};

static int on_stop(void *opaque) {
    struct execution *execution = opaque;
    lab_run_progress_tick(&execution->view);
    return lab_stop_level();
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct execution *execution = opaque;
    if (!execution->begun) /* until then Ctrl-C finds nothing that it could let finish */
        lab_stop_watch(execution->view.bar ? FIRST_REPLY : strchr(FIRST_REPLY, 'f'),
                       execution->view.bar ? SECOND_REPLY : strchr(SECOND_REPLY, 'e'));
    execution->begun = true;
    lab_run_progress_event(&execution->view, event);
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    struct execution *execution = opaque;
    if (strcmp(execution->waiting_for, device) != 0) {
        snprintf(execution->waiting_for, sizeof execution->waiting_for, "%s", device);
        struct lab_str who;
        lab_str_init(&who);
        lab_holder_describe(holder, &who);
        lab_command_note("waiting for %s, on which another study measures: %s", device, who.text);
        lab_str_release(&who);
    }
    return lab_stop_level() == 0;
}

static void say_beginning(const struct lab_command_call *call, const struct lab_study *study) {
    if (call->shared->quiet || call->shared->json)
        return;
    for (int i = 0; study->plan.notes && study->plan.notes[i]; i++)
        lab_command_note("%s", study->plan.notes[i]);
    int done = study->run_count - study->item_count;
    const char *folder = lab_study_view_shorten(study->folder.path, call->arena);
    if (study->folder.resumed)
        lab_command_note("going on in %s: %d of %d runs are done", folder, done, study->run_count);
    else
        lab_command_note("%d run%s, in %s", study->run_count, study->run_count == 1 ? "" : "s",
                         folder);
}

static void prepare_view(struct execution *execution, const struct lab_command_call *call,
                         const struct lab_study *study) {
    bool dumb = lab_str_equal(getenv("TERM"), "dumb");
    bool lines = !call->shared->quiet && !call->shared->json;
    execution->call = call;
    execution->view = (struct lab_run_progress_view){
        .lines = lines,
        .bar = lines && call->err_is_terminal && !dumb,
        .style = lab_command_style(call->err_is_terminal, STDERR_FILENO),
        .max_workers = study->plan.max_workers,
        .arena = call->arena,
    };
    /* what simulated runs take is simulated, too */
    if (lines && !study->machine->simulated)
        execution->view.history =
            lab_history_open(lab_machine_identity(study->machine), HISTORY_STUDIES);
}

/* --- afterwards --- */

static void write_markdown(const struct lab_report_study *report, const char *folder,
                           struct lab_arena *arena) {
    const char *path = lab_arena_printf(arena, "%s/report", folder);
    struct lab_err err = LAB_ERR_INIT;
    struct lab_str text;
    lab_str_init(&text);
    lab_report_study_markdown(report, &text);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        lab_err_set_errno(&err, LAB_ERR_SYSTEM, errno, "can't make %s", path);
    else
        lab_file_write_atomic(lab_arena_printf(arena, "%s/report.md", path), text.text, text.length,
                              &err);
    if (err.code)
        lab_command_note("%s", err.text);
    lab_str_release(&text);
}

/* The whole report. A failure of it fails nothing else: what there was before it remains, report.md. */
static bool write_report(const struct lab_command_call *call, const struct lab_study_view *view,
                         const char *folder, struct lab_report_made *ret_made) {
    struct lab_err err = LAB_ERR_INIT;
    struct lab_report_request request = {.folder =
                                             lab_arena_printf(call->arena, "%s/report", folder),
                                         .limit_ns = REPORT_NS,
                                         .own = true};
    if (lab_report_build_study(view, &request, call->arena, ret_made, &err) == 0) {
        if (ret_made->page.missing && !call->shared->quiet)
            lab_command_note("%s", ret_made->page.missing);
        return true;
    }
    lab_command_note("the report is not complete: %s", err.text);
    write_markdown(&view->report, folder, call->arena);
    return false;
}

static void print_json(const struct lab_command_call *call, const struct lab_study *study,
                       const struct lab_report_study *report) {
    struct lab_value *map = lab_value_map(call->arena), *runs = lab_value_list(call->arena);
    lab_value_set_string(call->arena, map, "study", report->name);
    lab_value_set_string(call->arena, map, "folder", study->folder.path);
    lab_value_set_bool(call->arena, map, "resumed", study->folder.resumed);
    lab_value_set(call->arena, map, "summary",
                  lab_results_summary(report->name, report->runs, report->run_count, call->arena));
    for (int i = 0; i < report->run_count; i++)
        lab_value_append(call->arena, runs, lab_results_run(&report->runs[i], call->arena));
    lab_value_set(call->arena, map, "runs", runs);
    lab_command_print_json(call, map);
}

static int report(const struct lab_command_call *call, const struct lab_study *study,
                  const char *command, bool analysed, struct lab_err *err) {
    struct lab_study_view view;
    if (lab_study_view_open(study->folder.path, true, call->arena, &view, err) < 0 ||
        lab_study_view_metrics(&view, call->arena, err) < 0)
        return -1;
    view.report.running = false; /* it is held by this process, which has ended its runs */
    view.report.holder = "";
    view.report.command = command;
    view.report.point_count = study->plan.point_count;
    struct lab_report_made made;
    bool whole = analysed && write_report(call, &view, study->folder.path, &made);
    if (!analysed)
        write_markdown(&view.report, study->folder.path, call->arena);
    if (call->shared->json) {
        print_json(call, study, &view.report);
        return 0;
    }
    struct lab_str text;
    lab_str_init(&text);
    if (whole) {
        view.report.report = lab_study_view_shorten(made.index, call->arena);
        lab_page_answers(&made.page, call->style, &text);
        lab_str_add(&text, text.length ? "\n" : "");
    }
    lab_report_study(&view.report, call->style, &text);
    lab_command_print(call, &text);
    lab_str_release(&text);
    return 0;
}

static int exit_status(const struct lab_runner_outcome *outcome) {
    if (outcome->stopped)
        return lab_stop_signal() ? 128 + lab_stop_signal()
                                 : lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return outcome->failed > 0 ? 1 : 0;
}

static int carry_out(const struct lab_command_call *call, struct lab_study *study,
                     const char *command, bool analysed, int *ret_status, struct lab_err *err) {
    struct execution execution = {0};
    struct lab_runner_outcome outcome;
    say_beginning(call, study);
    prepare_view(&execution, call, study);
    lab_run_progress_start(&execution.view, study->runs, study->run_count);
    lab_stop_watch(NULL, NULL);
    struct lab_study_listener listener = {
        .stop = on_stop, .event = on_event, .wait = on_wait, .state = &execution};
    int result = lab_study_run(study, &listener, &outcome, err);
    lab_run_progress_end(&execution.view);
    lab_history_close(execution.view.history);
    if (execution.view.lines && call->err_is_terminal)
        lab_command_say("%s", ""); /* the answer below stands apart */
    if (outcome.budget_used && !call->shared->quiet)
        lab_command_note("the budget is used up: %d run%s left; the same command goes on",
                         outcome.left, outcome.left == 1 ? "" : "s");
    if (result < 0)
        return lab_err_context(err, "%s", study->folder.path);
    *ret_status = exit_status(&outcome);
    return report(call, study, command, analysed, err);
}

int lab_run_execute(const struct lab_command_call *call, const struct lab_run_request *request,
                    int *ret_status, struct lab_err *err) {
    if (check_keys(request->plan, err) < 0)
        return -1;
    const char *const *words = command_words(call, request);
    struct lab_str machine;
    lab_str_init(&machine);
    lab_json_write(lab_report_machine_value(request->machine, call->arena), 2, &machine);
    lab_str_add(&machine, "\n");
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    struct lab_study_request wanted = {
        .plan = request->plan,
        .machine = request->machine,
        .words = words,
        .overrides = call->words,
        .command = lab_run_command(words, call->arena),
        .machine_json = machine.text,
    };
    int result = lab_study_open(&wanted, call->arena, &study, err);
    if (result == 0)
        result = carry_out(call, &study, wanted.command, request->report, ret_status, err);
    lab_study_close(&study);
    lab_str_release(&machine);
    return result;
}
