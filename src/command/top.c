/*
 * top.c: `gpulab top`: all devices, their processes and the machine around them, live or from a
 * recording. Without a terminal, one snapshot.
 */
#include "command/command.h"

#include "base/clock.h"
#include "base/file/out_file.h"
#include "base/tty/stop.h"
#include "load/programs.h"
#include "top/top_screen.h"
#include "top/top_source.h"
#include "vendor/nvml.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SNAPSHOT_NS (200 * LAB_NS_PER_MS) /* between the two readings that rates need */

struct top_config {
    double interval_s, at_s;
    bool readonly, demo, once, paused, all;
    const char *summary, *png;
};

static const struct lab_option top_options[] = {
    {"interval", LAB_OPTION_DURATION, offsetof(struct top_config, interval_s), .fallback = "500ms",
     .min = 0.05, .max = 3600, .letter = 'i', .help = "how often to sample"},
    {"readonly", LAB_OPTION_FLAG, offsetof(struct top_config, readonly),
     .help = "no process can be ended from the screen"},
    {"all", LAB_OPTION_FLAG, offsetof(struct top_config, all), .letter = 'a',
     .help = "list processes without a GPU too"},
    {"demo", LAB_OPTION_FLAG, offsetof(struct top_config, demo),
     .help = "show a simulated machine with GPUs"},
    {"once", LAB_OPTION_FLAG, offsetof(struct top_config, once),
     .help = "print one snapshot as text and end; what happens anyway without a terminal"},
    {"at", LAB_OPTION_DURATION, offsetof(struct top_config, at_s),
     .help = "where in the recording to begin; a snapshot shows its end otherwise"},
    {"paused", LAB_OPTION_FLAG, offsetof(struct top_config, paused), .help = "begin paused"},
    {"summary", LAB_OPTION_STRING, offsetof(struct top_config, summary), .value_name = "FILE",
     .help = "at the end, write means, maxima, energy and throttling of each device as text"},
    {"png", LAB_OPTION_STRING, offsetof(struct top_config, png), .value_name = "FILE",
     .help = "at the end, draw charts of all devices; FILE.svg and FILE.pdf work too"},
    {NULL},
};

/* --- what stays --- */

static int write_summary(const struct lab_command_call *call, const struct lab_top_history *history,
                         const struct lab_top_view *view, const char *path, struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_top_summary(history, view, true, &text);
    int result = lab_out_file_save(path, text.text, text.length, err);
    if (result == 0 && !call->console->quiet)
        lab_console_say("summary: %s", path);
    return result;
}

static int write_files(const struct lab_command_call *call, struct lab_top_source *source,
                       const struct lab_top_view *view, const char *summary, const char *png,
                       struct lab_err *err) {
    if (!summary && !png)
        return 0;
    struct lab_top_history *history = lab_top_source_whole(source);
    int result = summary ? write_summary(call, history, view, summary, err) : 0;
    if (result == 0 && png) {
        result = lab_top_plot(history, view, png, err);
        if (result == 0 && !call->console->quiet)
            lab_console_say("picture: %s", png);
    }
    if (history != source->history)
        lab_top_history_close(history);
    return result;
}

/* "gpulab-top-20261115-104203", in the current folder. */
static const char *name_files(struct lab_arena *arena) {
    LAB_AUTO(str, name);
    lab_str_add_clock(&name, lab_clock_wall_ns(), "gpulab-top-%Y%m%d-%H%M%S");
    return lab_arena_strdup(arena, name.text);
}

/* --- without a terminal --- */

static void print_snapshot(const struct lab_command_call *call, struct lab_top_source *source,
                           struct lab_top_view *view) {
    view->now_ns = lab_top_source_now(source);
    view->wall_offset_ns = lab_top_source_wall_offset(source);
    if (call->console->json) {
        lab_console_print_json(call->console, lab_top_value(source->history, view, call->arena));
        return;
    }
    LAB_AUTO(str, text);
    lab_top_snapshot(source->history, view, &text);
    lab_console_print(call->console, &text);
    for (int i = 0; source->notes && source->notes[i] && !call->console->quiet; i++)
        if (!strstr(text.text, source->notes[i])) /* what the snapshot didn't say itself */
            lab_console_note("%s", source->notes[i]);
}

/* --- which --- */

static bool is_screen(const struct lab_command_call *call) {
    const struct top_config *config = call->config;
    const char *term = getenv("TERM");
    return !config->once && !call->console->json && call->console->out_is_terminal &&
           isatty(STDIN_FILENO) && term && *term && !lab_str_equal(term, "dumb");
}

static struct lab_top_view begin_view(const struct lab_command_call *call,
                                      const struct lab_top_source *source) {
    const struct top_config *config = call->config;
    return (struct lab_top_view){
        .columns = call->console->style.columns,
        .rows = 24,
        .unicode = call->console->style.unicode,
        .all = config->all,
        .readonly = config->readonly,
        .paused = config->paused,
        .replay = source->recording != NULL,
        .speed = 1,
        .begin_ns = source->begin_ns,
        .end_ns = source->end_ns,
        .source = source->name,
        .notes = source->notes,
    };
}

/* --- programs that studies run --- */

static void read_programs(void *state, struct lab_top_view *view) {
    view->program_count = lab_programs_read(state, NULL, &view->programs);
    if (view->program >= view->program_count)
        view->program = 0;
}

/* A recording or a simulated machine runs none. */
static int show_screen(const struct lab_command_call *call, struct lab_top_source *source,
                       struct lab_top_view *view, bool *ret_write, struct lab_err *err) {
    const struct top_config *config = call->config;
    bool here = !source->recording && !config->demo;
    struct lab_programs *programs = here ? lab_programs_open() : NULL;
    struct lab_top_programs reader = {read_programs, programs};
    int result =
        lab_top_screen_run(call->console, source, view, here ? &reader : NULL, ret_write, err);
    lab_programs_close(programs);
    view->programs = NULL;
    view->program_count = 0;
    return result;
}

static int show(const struct lab_command_call *call, struct lab_top_source *source, int *ret_status,
                struct lab_err *err) {
    const struct top_config *config = call->config;
    struct lab_top_view view = begin_view(call, source);
    const char *summary = config->summary, *png = config->png;
    bool write = false, screen = is_screen(call);
    if (source->recording)
        lab_top_source_seek(source, config->at_s > 0
                                        ? source->begin_ns + (int64_t)(config->at_s * 1e9)
                                    : screen ? source->begin_ns
                                             : source->end_ns);
    else if (!screen || config->paused)
        lab_top_source_settle(source);
    if (source->recording && source->notes && source->notes[0]) /* until a key is pressed */
        snprintf(view.message, sizeof view.message, "%s", source->notes[0]);
    if (!screen) {
        print_snapshot(call, source, &view);
    } else if (show_screen(call, source, &view, &write, err) < 0) {
        return -1;
    }
    if (write && !summary && !png) {
        const char *name = name_files(call->arena);
        summary = lab_arena_printf(call->arena, "%s.txt", name);
        png = lab_arena_printf(call->arena, "%s.png", name);
    }
    if (lab_stop_signal() && lab_stop_signal() != SIGINT)
        *ret_status = 128 + lab_stop_signal();
    return write_files(call, source, &view, summary, png, err);
}

static int check(const struct lab_command_call *call, struct lab_err *err) {
    const struct top_config *config = call->config;
    bool file = call->word_count > 0;
    if (file && config->demo)
        return lab_err_set(err, LAB_ERR_USER,
                           "--demo shows a machine and %s is a recording: leave "
                           "one of them out",
                           call->words[0]);
    if (file && call->shared->device)
        return lab_err_set(err, LAB_ERR_USER,
                           "--device chooses what to sample; a recording shows all that it holds");
    if (!file && config->at_s > 0)
        return lab_err_set(err, LAB_ERR_USER, "--at is a time in a recording: name its file");
    if (lab_command_check_output(call, config->summary, err) < 0)
        return -1;
    return lab_command_check_output(call, config->png, err);
}

static int top_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct top_config *config = call->config;
    struct lab_top_source source;
    if (check(call, err) < 0 || (config->demo && lab_nvml_use_demo(err) < 0))
        return -1;
    int64_t interval_ns = (int64_t)(config->interval_s * (double)LAB_NS_PER_S);
    if (!is_screen(call) && interval_ns > SNAPSHOT_NS)
        interval_ns = SNAPSHOT_NS;
    int result = call->word_count
                     ? lab_top_source_recording(call->arena, call->words[0], &source, err)
                     : lab_top_source_live(call->shared->device, call->arena, interval_ns,
                                           is_screen(call), &source, err);
    if (result < 0)
        return -1;
    result = show(call, &source, ret_status, err);
    lab_top_source_close(&source);
    return result;
}

/* --- manual --- */

static const struct lab_manual_example examples[] = {
    {"gpulab top", "this machine, live"},
    {"gpulab top --demo", "what it looks like with GPUs, on any machine"},
    {"gpulab top monday.db", "replay a recording"},
    {"gpulab top --device cuda:0,1 --readonly", "two GPUs, and no process can be ended"},
    {"gpulab top --once", "one snapshot as text, as nvidia-smi prints it"},
    {"gpulab top --json | jq '.devices[].metrics.power_w'", "the same for programs"},
    {"gpulab top monday.db --once --png monday.png", "charts of a whole recording"},
    {NULL},
};

const struct lab_command lab_command_top = {
    .name = "top",
    .summary = "watch devices, processes and NUMA nodes, live or recorded",
    .usage = "[FILE]",
    .description =
        "Shows all devices at a glance, a page of charts for each, the processes, and the NUMA "
        "nodes with their local GPUs. A letter after a GPU shows why its clocks are throttled: P "
        "power limit, T thermal, H hardware, B power brake, S other GPUs' clocks. A process with "
        "cores or memory on a NUMA node remote to its GPU is marked (!cores, !memory, !both). The "
        "command that corrects it is shown. A GPU that doesn't answer is marked until it does. "
        "Without a GPU the CPUs are the device. While a study runs a program of yours, F6 shows "
        "the "
        "curves of its metrics.\n"
        "\n"
        "F2 to F6 or Tab change pages, digits and arrows select, Enter opens a device, / filters, "
        "s sorts. k ends a process, p pauses, w quits and leaves a summary and a picture. ? shows "
        "all keys, q quits.\n"
        "\n"
        "FILE is a recording, a study's folder, or a file of another monitor in a format that "
        "'gpulab export' knows. Space pauses it, the arrows go 10 seconds back or on (with Shift a "
        "minute). + and - change the speed, Home and End go to its ends.\n"
        "\n"
        "Without a terminal, one snapshot is printed.",
    .options = top_options,
    .config_size = sizeof(struct top_config),
    .uses_device = true,
    .device_help = "which GPUs: cuda (all), cuda:0, cuda:1,3; cpu = the host only",
    .max_words = 1,
    .examples = examples,
    .run = top_run,
};
