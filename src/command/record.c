/*
 * record.c: `gpulab record`: samples everything into a recording, alone or around a command. The
 * command is run as it would run without us; what we have to say goes to stderr.
 */
#include "command/command.h"

#include "device/watched_gpus.h"
#include "record/record_session.h"

#include "base/clock.h"
#include "base/file/own.h"
#include "track/tracker_follow.h"
#include "track/tracker_send.h"
#include "vendor/nvml.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct record_config {
    double interval_s, duration_s;
    const char *output, *stats_file, *csv, *processes, *tracker;
    bool demo;
};

static const char *const process_choices[] = {"gpu", "all", NULL};

static const struct lab_option record_options[] = {
    {"interval", LAB_OPTION_DURATION, offsetof(struct record_config, interval_s),
     .fallback = "100ms", .min = 0.001, .max = 3600, .letter = 'i', .help = "between two samples"},
    {"duration", LAB_OPTION_DURATION, offsetof(struct record_config, duration_s), .letter = 't',
     .min = 0, .max = 1e8,
     .help = "how long; a command that takes longer continues unrecorded. 0 = to the end"},
    {"output", LAB_OPTION_STRING, offsetof(struct record_config, output), .letter = 'o',
     .value_name = "FILE",
     .help = "the recording, a new file; recording-DATE-TIME.db unless given"},
    {"stats-file", LAB_OPTION_STRING, offsetof(struct record_config, stats_file),
     .value_name = "NAME.json",
     .help = "also write the first GPU to this file and all of them to NAME_multi_gpu.json, or "
             "continue such files"},
    {"csv", LAB_OPTION_STRING, offsetof(struct record_config, csv), .value_name = "FILE",
     .help = "also write a line for each device and sample; - = to standard output"},
    {"processes", LAB_OPTION_CHOICE, offsetof(struct record_config, processes),
     .choices = process_choices,
     .help = "which processes to list: those on GPUs, or all; all where there is no GPU"},
    {"tracker", LAB_OPTION_STRING, offsetof(struct record_config, tracker),
     .value_name = "TRACKER,...", .suggestions = lab_tracker_names,
     .help = "also send it, while it is recorded: mlflow, tensorboard, trackio, wandb"},
    {"demo", LAB_OPTION_FLAG, offsetof(struct record_config, demo),
     .help = "record a simulated machine with GPUs"},
    {NULL},
};

/* --- what to record --- */

/* The command's words for the recording, and for messages. */
static const char *join(const char *const *words, struct lab_arena *arena) {
    LAB_AUTO(str, line);
    for (int i = 0; words && words[i]; i++)
        lab_str_printf(&line, "%s%s", i ? " " : "", words[i]);
    return lab_arena_strdup(arena, line.text);
}

/* A name that nobody has: the second one of a second gets "_2". */
static const char *new_name(struct lab_arena *arena) {
    time_t seconds = time(NULL);
    struct tm local;
    char stamp[32];
    localtime_r(&seconds, &local);
    strftime(stamp, sizeof stamp, "%Y-%m-%d-%H-%M-%S", &local);
    const char *path = lab_arena_printf(arena, "recording-%s.db", stamp);
    for (int i = 2; access(path, F_OK) == 0 && i < 1000; i++)
        path = lab_arena_printf(arena, "recording-%s_%d.db", stamp, i);
    return path;
}

static int check_words(const struct lab_command_call *call, struct lab_err *err) {
    const struct record_config *config = call->config;
    if (call->word_count)
        return lab_err_set(err, LAB_ERR_USER, "put the command after '--': gpulab record -- %s%s",
                           call->words[0], call->word_count > 1 ? " ..." : "");
    if (call->rest && !call->rest[0])
        return lab_err_set(err, LAB_ERR_USER, "no command follows '--'");
    if (config->csv && lab_str_equal(config->csv, "-") && call->console->json)
        return lab_err_set(err, LAB_ERR_USER,
                           "--csv - and --json both write to standard output: give --csv a file");
    const char *const names[] = {config->output, config->stats_file, config->csv};
    for (int i = 0; i < 3; i++)
        if (names[i] && !*names[i])
            return lab_err_set(err, LAB_ERR_USER, "--%s needs a file's name",
                               i == 0   ? "output"
                               : i == 1 ? "stats-file"
                                        : "csv");
    return 0;
}

static int make_request(const struct lab_command_call *call, struct lab_record_request *request,
                        struct lab_err *err) {
    const struct record_config *config = call->config;
    if (check_words(call, err) < 0)
        return -1;
    *request = (struct lab_record_request){
        .interval_ns = llround(config->interval_s * LAB_NS_PER_S),
        .duration_ns = llround(config->duration_s * LAB_NS_PER_S),
        .path = config->output ? config->output : new_name(call->arena),
        .stats_name = config->stats_file,
        .csv = config->csv,
        .note = join(call->rest, call->arena),
        .argv = call->rest,
        .device = call->shared->device,
        .arena = call->arena,
        .all_processes = lab_str_equal(config->processes, "all"),
        .any_processes = !config->processes,
    };
    return 0;
}

/* --- what to say --- */

static void say_begin(const struct lab_command_call *call, const struct lab_record_session *session,
                      const struct lab_record_request *request) {
    const char *why = session->host_only ? NULL : lab_sampler_refusal(session->sampler, "nvml");
    struct lab_str interval;
    if (why && lab_sampler_awaits(session->sampler, "nvml"))
        lab_console_note("no GPU is recorded yet: %s", why);
    else if (why)
        lab_console_note("no GPU is recorded, only the host: %s", why);
    if (call->console->quiet)
        return;
    const char *hidden = why || session->host_only ? NULL : lab_device_visible_note(call->arena);
    if (hidden)
        lab_console_note("%s", hidden);
    lab_str_init(&interval);
    lab_str_add_time(&interval, (double)request->interval_ns / LAB_NS_PER_S);
    lab_console_say("recording into %s each %s%s", request->path, interval.text,
                    request->argv || request->duration_ns ? "" : "; Ctrl-C ends it");
    lab_str_release(&interval);
}

static double seconds_of(const struct lab_record_session *session) {
    return (double)(session->end_ns - session->start_ns) / LAB_NS_PER_S;
}

static void say_end(const struct lab_command_call *call, const struct lab_record_session *session,
                    const struct lab_record_request *request) {
    struct lab_style style = {call->console->style.columns, false, call->console->style.unicode};
    struct stat file;
    LAB_AUTO(str, text);
    lab_str_printf(&text, "%s: %.1f s, %lld samples", request->path, seconds_of(session),
                   (long long)(session->summary.ticks - session->lost));
    if (session->lost)
        lab_str_printf(&text, ", %lld lost", (long long)session->lost);
    if (session->sampled.missed || session->sampled.dropped)
        lab_str_printf(&text, ", %lld missed",
                       (long long)(session->sampled.missed + session->sampled.dropped));
    if (stat(request->path, &file) == 0) {
        lab_str_add(&text, ", ");
        lab_str_add_bytes_binary(&text, (double)file.st_size);
    }
    lab_str_add(&text, "\n");
    struct lab_doc *doc = lab_doc_open(NULL, call->arena);
    lab_record_summary_add(doc, &session->summary);
    lab_doc_write(doc, "text", style, &text);
    lab_str_printf(&text, "  See it again: gpulab top %s\n", request->path);
    char *rest = NULL;
    for (char *line = strtok_r(text.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        lab_console_say("%s", line);
}

/* An interval below what a driver can give is no failure, but worth knowing for the next time. */
#define PACE_MISSED 10 /* fewer may be a busy machine's */
static void say_pace(const struct lab_record_session *session,
                     const struct lab_record_request *request) {
    const struct lab_sampler_stats *sampled = &session->sampled;
    double interval_ms = (double)request->interval_ns / 1e6;
    struct lab_str asked, given;
    if (sampled->missed < PACE_MISSED || sampled->pace_ms < 1.5 * interval_ms)
        return;
    lab_str_init(&asked);
    lab_str_init(&given);
    lab_str_add_time(&asked, interval_ms / 1e3);
    lab_str_add_time(&given, sampled->pace_ms / 1e3);
    lab_console_note("an interval of %s is too short here: a sample of %s comes each %s",
                     asked.text, sampled->slowest, given.text);
    lab_str_release(&asked);
    lab_str_release(&given);
}

static void print_json(const struct lab_command_call *call,
                       const struct lab_record_session *session,
                       const struct lab_record_request *request) {
    struct lab_arena *arena = call->arena;
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_string(arena, map, "recording", request->path);
    lab_value_set_float(arena, map, "duration_s", seconds_of(session));
    lab_value_set_float(arena, map, "interval_s", (double)request->interval_ns / LAB_NS_PER_S);
    lab_value_set_int(arena, map, "samples", session->summary.ticks - session->lost);
    lab_value_set_int(arena, map, "lost", session->lost);
    lab_value_set_int(arena, map, "missed", session->sampled.missed);
    lab_value_set_int(arena, map, "dropped", session->sampled.dropped);
    lab_record_summary_set(&session->summary, arena, map);
    if (request->argv) {
        struct lab_value *command = lab_value_map(arena);
        lab_value_set_string(arena, command, "line", request->note);
        lab_value_set_int(arena, command, "exit_status", lab_record_child_status(&session->child));
        lab_value_set_int(arena, command, "signal", session->child.signal);
        lab_value_set(arena, map, "command", command);
    }
    lab_console_print_json(call->console, map);
}

/* --- the command --- */

/* A command that can't be started gives a shell's exit status, and leaves nothing behind. */
static int refuse_command(int status, const struct lab_err *problem, int *ret_status) {
    lab_console_note("%s", problem->text);
    *ret_status = status;
    return 0;
}

static int finish(const struct lab_command_call *call, struct lab_record_session *session,
                  const struct lab_record_request *request, int *ret_status, struct lab_err *err) {
    int result = lab_record_end(session, err);
    if (call->console->json)
        print_json(call, session, request);
    else if (!call->console->quiet)
        say_end(call, session, request);
    say_pace(session, request);
    if (!request->argv)
        return result;
    /* the command's status is passed on, whatever became of the recording */
    if (result < 0)
        lab_console_note("%s", err->text);
    *ret_status = lab_record_child_status(&session->child);
    return 0;
}

/* Where each rank of a host is recorded by itself, one of them sends: all see the same GPUs. */
static bool is_first_rank(void) {
    static const char *const names[] = {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", NULL};
    for (int i = 0; names[i]; i++) {
        const char *rank = getenv(names[i]);
        if (rank && *rank)
            return lab_str_equal(rank, "0");
    }
    return true;
}

/* A tracker that can't be used is a note: the recording can be sent later. */
static struct lab_track_follower start_follower(const struct lab_record_request *request,
                                                const char *trackers) {
    struct lab_track_follower follower;
    struct lab_err problem = LAB_ERR_INIT;
    if (lab_track_follow(request->path, is_first_rank() ? trackers : NULL, &follower, &problem) < 0)
        lab_console_note("%s", problem.text);
    return follower;
}

static void end_follower(const struct lab_command_call *call, struct lab_track_follower *follower) {
    if (lab_console_draws(call->console))
        lab_console_status_line("sending what is left to trackers: 10 s at most");
    const char *problem = lab_track_follow_end(follower, call->arena);
    lab_console_status_line(NULL);
    if (problem)
        lab_console_note("%s", problem);
}

static int record_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct record_config *config = call->config;
    struct lab_record_request request;
    struct lab_record_session session;
    struct lab_err problem = LAB_ERR_INIT;
    const struct lab_tracker *const *trackers;
    if (lab_tracker_list(config->tracker, call->arena, &trackers, err) < 0)
        return lab_err_context(err, "--tracker");
    if (make_request(call, &request, err) < 0 || (config->demo && lab_nvml_use_demo(err) < 0))
        return -1;
    int status = request.argv ? lab_record_child_check(request.argv, &problem) : 0;
    if (status)
        return refuse_command(status, &problem, ret_status);
    if (lab_record_begin(&session, &request, err) < 0)
        return -1;
    struct lab_track_follower follower = start_follower(&request, config->tracker);
    say_begin(call, &session, &request);
    status = lab_record_run(&session, &request, &problem);
    if (status) {
        const char *home = lab_track_home(request.path, call->arena);
        lab_record_undo(&session, &request);
        lab_track_follow_end(&follower, call->arena);
        if (config->tracker)
            lab_own_remove_tree(home);
        return refuse_command(status, &problem, ret_status);
    }
    int result = finish(call, &session, &request, ret_status, err);
    lab_record_release(&session);
    end_follower(call, &follower);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab record -- python train.py", "a training run, with GPUs, CPUs and processes"},
    {"gpulab record --duration 10s --interval 20ms -o idle.db", "ten seconds of this machine"},
    {"gpulab record --stats-file gpu_stats.json -- make train",
     "also the JSON files that other monitors write"},
    {"gpulab record --csv - --device cuda:0 | head -20", "lines as they come, of one GPU"},
    {"gpulab record --demo --duration 10s -o demo.db", "eight simulated GPUs, on any machine"},
    {"gpulab record --tracker wandb -- python train.py", "sent to W&B's offline runs, too"},
    {"gpulab top recording.db", "replay it"},
    {"gpulab analyze summary recording.db", "and its summary"},
    {"gpulab export recording.db --format multi", "a recording in another format, later"},
    {NULL},
};

const struct lab_command lab_command_record = {
    .name = "record",
    .summary = "sample GPUs, CPUs, memory and processes into a file",
    .usage = "[-- COMMAND...]",
    .description =
        "Samples every available metric into a new file, until Ctrl-C or TERM, the end of the "
        "duration, or the end of the command after '--'. The file is written each second: a crash "
        "loses at most the last one. 'gpulab top FILE' plays it again, 'gpulab analyze' and "
        "'gpulab export' read it.\n"
        "\n"
        "The command keeps the terminal, standard input and output, and gets Ctrl-C as it would by "
        "itself. Signals that are sent to gpulab are passed on to it. Its exit status is passed on "
        "(128 + the signal that ended it; 127 if there is no such command). A summary follows on "
        "standard error, or as JSON on standard output with --json.\n"
        "\n"
        "Existing recordings are never overwritten. If the disk is full, sampling continues, and "
        "the recording shows what is missing.",
    .options = record_options,
    .config_size = sizeof(struct record_config),
    .uses_device = true,
    .device_help =
        "which GPUs: cuda (all), cuda:0, cuda:1,3; cpu = the host only. The recording has "
        "the host in any case; lines of --csv then are of these GPUs alone",
    .max_words = -1, /* refused with a word of advice */
    .takes_rest = true,
    .examples = examples,
    .run = record_run,
};
