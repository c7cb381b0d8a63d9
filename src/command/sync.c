/*
 * sync.c: `gpulab sync`: sends studies to trackers: what they haven't got yet, while a study runs
 * or long after. `gpulab run tracker=…` starts it with --watch.
 */
#include "command/command.h"

#include "base/clock.h"
#include "base/tty/stop.h"
#include "base/yaml/yaml.h"
#include "doc/doc.h"
#include "load/studies.h"
#include "load/study_file.h"
#include "load/study_view.h"
#include "run/folder.h"
#include "track/tracker_send.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define BUDGET_NS (10 * LAB_NS_PER_MS) /* of a look at a study that runs */

struct sync_config {
    const char *to, *project, *run_name, *folder, *prefix, *renamed, *gpus;
    bool watch, dry_run;
    int64_t max_points;
    double interval_s;
};

static const char *const gpus_choices[] = {"run", "all", NULL};

static const struct lab_option sync_options[] = {
    {"to", LAB_OPTION_STRING, offsetof(struct sync_config, to), .value_name = "TRACKER,...",
     .suggestions = lab_tracker_names,
     .help =
         "where to: mlflow, tensorboard, trackio, wandb; absent = the study's own key 'tracker'"},
    {"watch", LAB_OPTION_FLAG, offsetof(struct sync_config, watch), .letter = 'w',
     .help = "continue until the studies have ended; Ctrl-C quits"},
    {"dry-run", LAB_OPTION_FLAG, offsetof(struct sync_config, dry_run),
     .help = "show what isn't sent yet, and send nothing"},
    {"project", LAB_OPTION_STRING, offsetof(struct sync_config, project), .value_name = "NAME",
     .help = "of mlflow, trackio and wandb; absent = the study's name and 5 digits of machine and "
             "folder"},
    {"run-name", LAB_OPTION_STRING, offsetof(struct sync_config, run_name), .value_name = "NAME",
     .help = "{run} in it is the run's own name. Recordings with the same one are one run, "
             "labelled by host"},
    {"folder", LAB_OPTION_STRING, offsetof(struct sync_config, folder), .value_name = "DIR",
     .help = "of tensorboard's and wandb's files; absent = the study's"},
    {"prefix", LAB_OPTION_STRING, offsetof(struct sync_config, prefix), .value_name = "TEXT",
     .help = "before each metric's name"},
    {"rename", LAB_OPTION_STRING, offsetof(struct sync_config, renamed),
     .value_name = "OLD=NEW,...", .help = "names of metrics, e.g. loss=train/loss"},
    {"gpus", LAB_OPTION_CHOICE, offsetof(struct sync_config, gpus), .fallback = "run",
     .choices = gpus_choices,
     .help = "whose samples are sent: GPUs that the run or the recorded command uses, or all"},
    {"max-points", LAB_OPTION_INT, offsetof(struct sync_config, max_points), .fallback = "50000",
     .min = 2, .max = 1e9,
     .help = "of one metric in 262,144 values; of more, each stretch's least and largest are sent"},
    {"interval", LAB_OPTION_DURATION, offsetof(struct sync_config, interval_s), .fallback = "2s",
     .min = 0.1, .max = 86400, .help = "how often --watch looks"},
    {NULL},
};

/* A study and a tracker. */
struct pair {
    const char *folder;
    const struct lab_tracker *tracker;
    struct lab_track_sent sent;               /* as of the last look */
    int64_t points, thinned_from, thinned_to; /* of all looks */
    char problem[1024];                       /* that was said last; "" = none */
};

/* --- which --- */

/* What `tracker` is in the study's config: names joined by commas; "" = none. */
static int own_trackers(const char *folder, struct lab_arena *arena, const char **ret_names,
                        struct lab_err *err) {
    struct lab_study_file *file;
    struct lab_value *config = NULL;
    LAB_AUTO(str, names);
    if (lab_study_file_open(folder, arena, &file, err) < 0)
        return -1;
    const char *yaml = file->study.config ? file->study.config : "";
    lab_yaml_parse(yaml, strlen(yaml), folder, LAB_YAML_LIMITS, arena, &config, NULL);
    lab_study_file_close(file);
    const struct lab_value *tracker = lab_value_get(config, "tracker");
    for (int i = 0; tracker && tracker->type == LAB_VALUE_LIST && i < tracker->count; i++)
        lab_str_printf(&names, "%s%s", i ? "," : "", lab_value_as_text(tracker->items[i], ""));
    *ret_names = tracker && tracker->type == LAB_VALUE_LIST ? lab_arena_strdup(arena, names.text)
                                                            : lab_value_as_text(tracker, "");
    return 0;
}

/* A file that isn't part of a study is a recording. */
static bool is_recording(const char *word) {
    struct stat info;
    const char *slash = strrchr(word, '/');
    return stat(word, &info) == 0 && S_ISREG(info.st_mode) && lab_str_ends(word, ".db") &&
           !lab_str_equal(slash ? slash + 1 : word, "study.db");
}

static int find_paths(const struct lab_command_call *call, const char *const **ret_paths,
                      int *ret_count, struct lab_err *err) {
    const char **paths = NULL, *const * found;
    int count = 0, found_count;
    for (int i = 0; i < call->word_count; i++) {
        if (is_recording(call->words[i])) {
            LAB_ADD(paths, count, call->arena) = call->words[i];
            continue;
        }
        if (lab_studies_find(&call->words[i], 1, call->arena, &found, &found_count, err) < 0)
            return -1;
        for (int f = 0; f < found_count; f++)
            LAB_ADD(paths, count, call->arena) = found[f];
    }
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

static int find_pairs(const struct lab_command_call *call, struct pair **ret_pairs, int *ret_count,
                      struct lab_err *err) {
    const struct sync_config *config = call->config;
    const char *const *folders, *newest;
    int folder_count = 1, count = 0;
    struct pair *pairs = NULL;
    if (call->word_count == 0) {
        if (lab_folder_resolve(NULL, call->arena, &newest, err) < 0)
            return -1;
        folders = &newest;
    } else if (find_paths(call, &folders, &folder_count, err) < 0) {
        return -1;
    }
    for (int i = 0; i < folder_count; i++) {
        const struct lab_tracker *const *trackers;
        const char *names = config->to;
        if (!names && is_recording(folders[i]))
            return lab_err_set(err, LAB_ERR_USER, "%s: add --to wandb, say", folders[i]);
        if ((!names && own_trackers(folders[i], call->arena, &names, err) < 0) ||
            lab_tracker_list(names, call->arena, &trackers, err) < 0)
            return -1;
        if (!trackers[0])
            return lab_err_set(err, LAB_ERR_USER,
                               "%s has no tracker of its own: add --to wandb, say", folders[i]);
        for (int t = 0; trackers[t]; t++)
            LAB_ADD(pairs, count, call->arena) =
                (struct pair){.folder = folders[i], .tracker = trackers[t]};
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return 0;
}

/* --- sending --- */

struct progress {
    const struct lab_console *console;
    const char *tracker;
    int pair, count; /* from 1, of how many */
};

static void show_progress(void *state, int run, int count) {
    const struct progress *at = state;
    char text[128];
    if (!lab_console_draws(at->console))
        return;
    snprintf(text, sizeof text, "%d of %d: %s, run %d of %d", at->pair, at->count, at->tracker, run,
             count);
    lab_console_status_line(text);
}

/* A problem is said once, until it is another. */
static void look(const struct lab_command_call *call, struct pair *pair,
                 const struct progress *progress) {
    const struct sync_config *config = call->config;
    struct lab_track_request request = {.project = config->project,
                                        .run_name = config->run_name,
                                        .folder = config->folder,
                                        .prefix = config->prefix,
                                        .renamed = config->renamed,
                                        .all_gpus = lab_str_equal(config->gpus, "all"),
                                        .max_points = config->max_points,
                                        .look = config->dry_run,
                                        .budget_ns = config->watch ? BUDGET_NS : 0,
                                        .progress = show_progress,
                                        .state = (void *)progress};
    struct lab_err problem = LAB_ERR_INIT;
    lab_track_request_complete(&request);
    if (lab_track_send(pair->folder, pair->tracker, &request, call->arena, &pair->sent, &problem) <
        0)
        lab_err_context(&problem, "%s", lab_study_view_shorten(pair->folder, call->arena));
    if (problem.code != LAB_ERR_NONE && strcmp(problem.text, pair->problem) != 0)
        lab_console_note("%s", problem.text);
    memcpy(pair->problem, problem.text, sizeof pair->problem);
    pair->points += pair->sent.points;
    pair->thinned_from += pair->sent.thinned_from;
    pair->thinned_to += pair->sent.thinned_to;
}

static bool any_ended(const struct pair *pairs, int count) {
    for (int i = 0; i < count; i++)
        if (pairs[i].sent.running && !lab_track_is_running(pairs[i].folder))
            return true;
    return false;
}

/* Looks take a hundredth of the time at most, however large the studies are; the end of a study is
 * no matter of waiting. */
static void wait_for_more(const struct pair *pairs, int count, int64_t cost_ns, double interval_s) {
    const struct lab_clock *clock = lab_clock_system();
    int64_t pause_ns = (int64_t)(interval_s * (double)LAB_NS_PER_S);
    if (pause_ns < 100 * cost_ns)
        pause_ns = 100 * cost_ns;
    int64_t end_ns = lab_clock_now(clock) + pause_ns;
    while (lab_clock_now(clock) < end_ns && !lab_stop_level() && !any_ended(pairs, count))
        lab_clock_sleep(clock, 100 * LAB_NS_PER_MS);
}

/* What has just begun is left alone for a while: a study of short runs may end meanwhile. */
static void begin_watch(struct pair *pairs, int count, double interval_s) {
    bool running = false;
    lab_stop_watch(NULL, NULL);
    setpriority(PRIO_PROCESS, 0, 19);
    for (int i = 0; i < count; i++)
        running |= pairs[i].sent.running = lab_track_is_running(pairs[i].folder);
    if (running)
        wait_for_more(pairs, count, 0, interval_s);
}

static void send(const struct lab_command_call *call, struct pair *pairs, int count) {
    const struct sync_config *config = call->config;
    bool more = true;
    if (config->watch && !config->dry_run)
        begin_watch(pairs, count, config->interval_s);
    while (more) {
        int64_t began_ns = lab_clock_thread_ns();
        more = false;
        for (int i = 0; i < count && !lab_stop_level(); i++) {
            bool ended = pairs[i].sent.project && !pairs[i].sent.running && !pairs[i].sent.busy &&
                         !*pairs[i].problem;
            struct progress progress = {call->console, pairs[i].tracker->name, i + 1, count};
            if (!ended)
                look(call, &pairs[i], &progress);
            more |= pairs[i].sent.running || pairs[i].sent.busy;
        }
        more = more && config->watch && !config->dry_run && !lab_stop_level();
        if (more)
            wait_for_more(pairs, count, lab_clock_thread_ns() - began_ns, config->interval_s);
    }
    lab_console_status_line(NULL);
}

/* --- the answer --- */

static const char *state_of(const struct pair *pair) {
    return *pair->problem      ? "failed"
           : pair->sent.busy   ? "another process sends it"
           : pair->sent.unsent ? "unsent runs"
                               : "all sent";
}

/* Where its files lie. */
static const char *folder_of(const struct pair *pair, const struct sync_config *config,
                             struct lab_arena *arena) {
    struct lab_track_request request = {.folder = config->folder};
    lab_track_request_complete(&request);
    return request.folder ? request.folder
                          : lab_study_view_shorten(lab_track_home(pair->folder, arena), arena);
}

static const char *past(int count, bool dry) {
    return dry ? "would be" : count == 1 ? "was" : "were";
}

static void say_more(const struct pair *pair, bool dry) {
    const char *name = pair->tracker->name;
    const struct lab_track_sent *sent = &pair->sent;
    if (sent->changed)
        lab_console_note("%s: the values of %d run%s changed since, and %s sent again: %s", name,
                         sent->changed, sent->changed == 1 ? "" : "s", dry ? "would be" : "were",
                         sent->changed_runs);
    if (sent->widened)
        lab_console_note("%s: %d run%s %s sent again, with all GPUs", name, sent->widened,
                         sent->widened == 1 ? "" : "s", past(sent->widened, dry));
    if (sent->gone)
        lab_console_note("%s: %d run%s %s written again: the files were gone", name, sent->gone,
                         sent->gone == 1 ? "" : "s", past(sent->gone, dry));
    if (dry && sent->unsent_runs)
        lab_console_note("%s: not sent yet: %s", name, sent->unsent_runs);
}

/* Said in any case: what arrives isn't all that was measured. */
static void say_thinned(const struct pair *pair) {
    const char *name = pair->tracker->name;
    if (pair->thinned_from)
        lab_console_note("%s: %lld " LAB_TRACK_THINNED " %lld: the least and the largest of each "
                         "stretch (--max-points)",
                         name, (long long)pair->thinned_from, (long long)pair->thinned_to);
}

static void print(const struct lab_command_call *call, const struct pair *pairs, int count) {
    static const struct lab_doc_column columns[] = {
        {"study"},
        {"tracker"},
        {"project"},
        {"runs"},
        {"unsent"},
        {"points"},
        {"state"},
        {NULL, "Tracker", .align = LAB_ALIGN_WHOLE},
        {NULL, "Runs sent", .align = LAB_ALIGN_RIGHT},
        {NULL, "Unsent", .align = LAB_ALIGN_RIGHT},
        {NULL, "Points now", .align = LAB_ALIGN_RIGHT},
        {NULL, "State", .align = LAB_ALIGN_WHOLE},
        {NULL, "Show it", .align = LAB_ALIGN_WHOLE},
    };
    const struct sync_config *config = call->config;
    struct lab_arena *arena = call->arena;
    struct lab_doc *doc = lab_doc_open("Sent", arena);
    lab_doc_rows(doc, "sent", NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        const struct pair *pair = &pairs[i];
        lab_doc_add(doc, lab_cell_text(pair->folder));
        lab_doc_add(doc, lab_cell_text(pair->tracker->name));
        lab_doc_add(doc, lab_cell_text(pair->sent.project));
        lab_doc_add(doc, (struct lab_doc_cell){.data = lab_value_int(arena, pair->sent.runs)});
        lab_doc_add(doc, (struct lab_doc_cell){.data = lab_value_int(arena, pair->sent.unsent)});
        lab_doc_add(doc, (struct lab_doc_cell){.data = lab_value_int(arena, pair->points)});
        lab_doc_add(doc, lab_cell_text(state_of(pair)));
        lab_doc_cell(doc, "%s", pair->tracker->name);
        lab_doc_cell(doc, "%d", pair->sent.runs);
        lab_doc_cell(doc, "%d", pair->sent.unsent);
        lab_doc_cell(doc, "%lld", (long long)pair->points);
        lab_doc_cell(doc, "%s", state_of(pair));
        lab_doc_cell(doc, "%s",
                     lab_tracker_view(pair->tracker, folder_of(pair, config, arena), arena));
    }
    lab_doc_print(doc, call->console);
    for (int i = 0; i < count && !call->console->quiet; i++)
        say_more(&pairs[i], config->dry_run);
}

static int sync_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    struct pair *pairs = NULL;
    int count = 0;
    if (find_pairs(call, &pairs, &count, err) < 0)
        return -1;
    send(call, pairs, count);
    if (!call->console->quiet || call->console->json)
        print(call, pairs, count);
    for (int i = 0; i < count; i++)
        say_thinned(&pairs[i]);
    for (int i = 0; i < count; i++)
        if (*pairs[i].problem || pairs[i].sent.busy)
            *ret_status = 1;
    return 0;
}

/* --- manual --- */

static const struct lab_manual_example examples[] = {
    {"gpulab sync quick_test --to tensorboard", "the newest study of that name, as event files"},
    {"gpulab sync outputs --to wandb,trackio", "every study below outputs"},
    {"gpulab sync quick_test --to wandb --watch", "and what it adds until it has ended"},
    {"gpulab sync quick_test --to wandb --dry-run", "what isn't sent yet"},
    {"gpulab sync training.db --to tensorboard", "a recording"},
    {"MLFLOW_TRACKING_URI=http://127.0.0.1:5000 gpulab sync quick_test --to mlflow",
     "to an MLflow server"},
    {"gpulab run quick_test tracker=wandb,tensorboard", "a study that is sent while it runs"},
    {NULL},
};

const struct lab_command lab_command_sync = {
    .name = "sync",
    .summary = "send studies to W&B, Trackio, TensorBoard or MLflow",
    .usage = "[STUDY|RECORDING...]",
    .description =
        "Sends what the trackers don't have yet: settings, metrics, samples of the GPUs, results. "
        "Each value is sent once, however often the command is repeated or killed. Without a STUDY "
        "it sends the newest one; a recording is a run by itself. Studies of earlier versions can "
        "be sent, too.\n"
        "\n"
        "tensorboard writes event files into the study's folder. wandb writes offline runs, which "
        "'wandb sync' uploads with your own login. trackio writes into its inbox, which its "
        "dashboard takes in. mlflow sends to the server that MLFLOW_TRACKING_URI names.\n"
        "\n"
        "The exit status is 1 if something could not be sent; the next call continues there.",
    .options = sync_options,
    .config_size = sizeof(struct sync_config),
    .max_words = -1,
    .examples = examples,
    .run = sync_run,
};
