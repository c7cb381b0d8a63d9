/* command_trial.c: see the header. */
#include "command/command_trial.h"

#include "base/tty/stop.h"
#include "run/folder.h"
#include "run/run_study.h"
#include "run/study.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

int lab_trial_study_open(struct lab_trial_study *trial, struct lab_err *err) {
    if (lab_scratch_dir_open(trial->call->arena, &trial->scratch, err) < 0)
        return -1;
    setenv("XDG_STATE_HOME", trial->scratch.path, 1);
    lab_stop_watch(NULL, NULL);
    return 0;
}

void lab_trial_study_close(struct lab_trial_study *trial) {
    lab_console_status_line(NULL);
    if (trial->scratch.path)
        lab_scratch_dir_close(&trial->scratch);
}

int lab_trial_study_plan(const struct lab_trial_study *trial, const struct lab_config_path *path,
                         const char *device, const char *const *words, int count, bool multirun,
                         struct lab_plan *ret_plan, struct lab_err *err) {
    struct lab_arena *arena = trial->call->arena;
    const char **all = lab_arena_alloc(arena, (size_t)count + 4, sizeof *all);
    struct lab_override *overrides;
    struct lab_sweep sweep;
    int override_count;
    for (int i = 0; i < count; i++)
        all[i] = words[i];
    all[count++] = "experiment.trace=false";
    all[count++] = "experiment.resume=false";
    all[count++] = lab_arena_printf(arena, "output_dir='%s'", trial->scratch.path);
    if (lab_run_words(path, device, all, count, arena, &overrides, &override_count, err) < 0 ||
        lab_sweep_init(path, overrides, override_count, multirun, arena, &sweep, err) < 0)
        return -1;
    return lab_plan_make(trial->machine, path, &sweep, arena, ret_plan, err);
}

/* --- while it runs --- */

#define BAR_COLUMNS 24

static void draw(struct lab_trial_study *trial) {
    const struct lab_command_call *call = trial->call;
    if (!lab_console_draws(call->console))
        return;
    struct lab_style style = lab_console_style(call->console->err_is_terminal, STDERR_FILENO);
    double fraction = trial->runs ? (double)trial->done / trial->runs : 0;
    if (trial->fraction)
        fraction = trial->fraction(trial->state, fraction);
    LAB_AUTO(str, line);
    int filled = (int)(BAR_COLUMNS * fmin(1, fraction));
    lab_str_printf(&line, "%s ", call->command->name);
    lab_str_add_repeat(&line, style.unicode ? "█" : "#", filled);
    lab_str_add_repeat(&line, style.unicode ? "░" : ".", BAR_COLUMNS - filled);
    if (trial->status)
        lab_str_printf(&line, " %s", trial->status(trial->state));
    else
        lab_str_printf(&line, " %d of %d runs", trial->done, trial->runs);
    lab_console_status_line(line.text);
}

static int on_stop(void *opaque) {
    draw(opaque);
    return lab_stop_level() > 0 ? 2 : 0;
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct lab_trial_study *trial = opaque;
    trial->done += event->kind == LAB_RUNNER_DONE || event->kind == LAB_RUNNER_FAILED;
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    (void)holder;
    const struct lab_trial_study *trial = opaque;
    if (lab_console_draws(trial->call->console))
        lab_console_status_line(lab_arena_printf(
            trial->call->arena, "waiting for %s, on which a study measures", device));
    return lab_stop_level() == 0;
}

int lab_trial_study_run(struct lab_trial_study *trial, const struct lab_plan *plan, unsigned needs,
                        struct lab_arena *arena, struct lab_study_table *ret_table,
                        struct lab_err *err) {
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    struct lab_study_request request = {
        .plan = plan,
        .machine = trial->machine,
        .words = trial->call->words,
        .overrides = trial->call->words,
        .command = lab_arena_printf(arena, "gpulab %s", trial->call->command->name),
        .machine_json = "{}\n",
        .passing = true};
    struct lab_study_listener listener = {on_stop, on_event, on_wait, trial};
    struct lab_runner_outcome outcome = {0};
    trial->done = 0;
    trial->runs = plan->run_count;
    int result = lab_study_open(&request, arena, &study, err);
    if (result == 0)
        result = lab_study_run(&study, &listener, &outcome, err);
    const char *path = result == 0 ? lab_arena_strdup(arena, study.folder.path) : NULL;
    if (result == 0 && !outcome.stopped)
        result = lab_studies_read_one(path, needs, arena, ret_table, err);
    lab_study_close(&study);
    return result < 0 ? -1 : outcome.stopped;
}
