/*
 * status.c: `gpulab status`: how studies stand that run now or were interrupted, from any terminal.
 * It only reads what their runner has written.
 */
#include "command/command.h"

#include "base/clock.h"
#include "base/tty/follow.h"
#include "load/study_watch.h"
#include "report/study/study.h"

#include <math.h>
#include <stddef.h>

#define STUDIES_SHOWN 10

struct status_config {
    bool follow, all;
    double interval_s;
};

static const struct lab_option status_options[] = {
    {"follow", LAB_OPTION_FLAG, offsetof(struct status_config, follow), .letter = 'f',
     .help = "update until the study has ended; q or Ctrl-C quits"},
    {"interval", LAB_OPTION_DURATION, offsetof(struct status_config, interval_s), .fallback = "1s",
     .min = 0.1, .max = 86400, .help = "how often, with --follow"},
    {"all", LAB_OPTION_FLAG, offsetof(struct status_config, all),
     .help = "every study that is unfinished, not the newest 10 alone"},
    {NULL},
};

/* --- for programs --- */

/* "ended" with its failures is for whoever counts them. */
static const char *state_name(const struct lab_study_view *view) {
    if (view->report.running)
        return "running";
    return view->counts[LAB_RUN_PLANNED] || view->counts[LAB_RUN_RUNNING] ? "interrupted" : "ended";
}

static const struct lab_run *find_run(const struct lab_study_info *study, int64_t number) {
    for (int i = 0; i < study->run_count; i++)
        if (study->runs[i].number == number)
            return &study->runs[i];
    return NULL;
}

/* The last values that a program reported; without any, nothing. */
static void set_metrics(const struct lab_study_info *study, int64_t run, struct lab_value *item,
                        struct lab_arena *arena) {
    for (int i = 0; i < study->program_count; i++) {
        const struct lab_program *program = &study->programs[i];
        if (program->run != run || program->metric_count == 0)
            continue;
        struct lab_value *list = lab_value_list(arena);
        lab_value_set_float(arena, item, "step", program->step);
        for (int m = 0; m < program->metric_count; m++) {
            struct lab_value *metric = lab_value_map(arena);
            lab_value_set_string(arena, metric, "name", program->metrics[m].name);
            lab_value_set_string(arena, metric, "unit", program->metrics[m].unit);
            lab_value_set_int(arena, metric, "rank", program->metrics[m].rank);
            lab_value_set_float(arena, metric, "last", program->metrics[m].curve.last);
            lab_value_append(arena, list, metric);
        }
        lab_value_set(arena, item, "metrics", list);
    }
}

static struct lab_value *progress_value(const struct lab_study_info *study,
                                        struct lab_arena *arena) {
    struct lab_value *list = lab_value_list(arena);
    for (int i = 0; i < study->progress_count; i++) {
        const struct lab_run_progress *progress = &study->progress[i];
        const struct lab_run *run = find_run(study, progress->run);
        struct lab_value *item = lab_value_map(arena);
        lab_value_set_string(arena, item, "run_id", run ? run->id : NULL);
        lab_value_set_string(arena, item, "phase", progress->phase);
        lab_value_set_int(arena, item, "done", progress->done);
        lab_value_set_int(arena, item, "total", progress->total);
        set_metrics(study, progress->run, item, arena);
        lab_value_append(arena, list, item);
    }
    return list;
}

static struct lab_value *holder_value(const struct lab_holder *holder, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "pid", holder->pid);
    lab_value_set_string(arena, map, "host", holder->host);
    lab_value_set_string(arena, map, "command", holder->command);
    lab_value_set_float(arena, map, "since_unix_s",
                        (double)holder->since_wall_ns / (double)LAB_NS_PER_S);
    return map;
}

/* Of runs that are done, or since it was started where that is longer: the first may still run.
 * NaN: of a simulated study that was resumed, nobody kept it. */
static double elapsed_s(const struct lab_study_view *view) {
    double started_s = view->report.running && view->holder.since_wall_ns > 0
                           ? (double)(lab_clock_wall_ns() - view->holder.since_wall_ns) / 1e9
                           : 0;
    return started_s > 0 ? fmax(view->estimate.elapsed_s, started_s) : view->estimate.elapsed_s;
}

static struct lab_value *view_value(const struct lab_study_view *view, struct lab_arena *arena) {
    const struct lab_study_info *study = &view->report;
    struct lab_value *map = lab_value_map(arena), *runs = lab_value_map(arena);
    lab_value_set_int(arena, runs, "total", study->run_count);
    for (int state = 0; state < LAB_RUN_STATE_COUNT; state++)
        lab_value_set_int(arena, runs, lab_run_state_name((enum lab_run_state)state),
                          view->counts[state]);
    lab_value_set_string(arena, map, "study", study->option);
    lab_value_set_string(arena, map, "name", study->name);
    lab_value_set_string(arena, map, "folder", view->path);
    lab_value_set_string(arena, map, "state", state_name(view));
    lab_value_set_bool(arena, map, "simulated", study->simulated);
    lab_value_set(arena, map, "runs", runs);
    lab_value_set(arena, map, "progress", progress_value(study, arena));
    lab_value_set_float(arena, map, "elapsed_s", elapsed_s(view));
    lab_value_set_float(arena, map, "left_s", study->left_s);
    lab_value_set_int(arena, map, "left_unknown", study->left_unknown);
    lab_value_set(arena, map, "holder",
                  study->running ? holder_value(&view->holder, arena) : lab_value_null(arena));
    lab_value_set_string(arena, map, "command", *study->command ? study->command : NULL);
    return map;
}

static struct lab_doc *make_doc(const struct lab_study_view *views, int count,
                                struct lab_arena *arena) {
    struct lab_doc *doc = lab_doc_open("Studies", arena);
    struct lab_value *list = lab_value_list(arena);
    double now_s = (double)lab_clock_wall_ns() / (double)LAB_NS_PER_S;
    for (int i = 0; i < count; i++) {
        lab_value_append(arena, list, view_value(&views[i], arena));
        lab_report_add_status(doc, &views[i].report);
    }
    lab_doc_data(doc, "time_unix_s", lab_value_float(arena, now_s));
    lab_doc_data(doc, "studies", list);
    return doc;
}

/* --- a line for each change --- */

/* Of a program by what varies, else its id. */
static const char *name_of(const struct lab_study_info *study, const struct lab_run *run) {
    for (int i = 0; i < study->program_count; i++)
        if (study->programs[i].run == run->number)
            return study->programs[i].name;
    return run->id;
}

/* What a line without a terminal is printed for: all that changes but iterations and times. */
static void write_change(const struct lab_study_view *view, struct lab_str *out) {
    const struct lab_study_info *study = &view->report;
    lab_str_printf(out, "%s: %s, %d of %d done", lab_study_info_title(study), state_name(view),
                   view->counts[LAB_RUN_DONE], study->run_count);
    if (view->counts[LAB_RUN_FAILED])
        lab_str_printf(out, ", %d failed", view->counts[LAB_RUN_FAILED]);
    for (int i = 0; i < study->progress_count; i++) {
        const struct lab_run *run = find_run(study, study->progress[i].run);
        if (run && run->state == LAB_RUN_RUNNING)
            lab_str_printf(out, "; %s%s%s", name_of(study, run),
                           *study->progress[i].phase ? " " : "", study->progress[i].phase);
    }
}

/* Prints the line if it isn't the one before. */
static void print_change(const struct lab_console *console, const struct lab_study_view *view,
                         struct lab_str *before) {
    LAB_AUTO(str, line);
    write_change(view, &line);
    if (!lab_str_equal(line.text, before->text)) {
        lab_str_clear(before);
        lab_str_add(before, line.text);
        for (int i = 0; i < view->report.program_count; i++) {
            LAB_AUTO(str, reported);
            lab_report_add_program(&view->report.programs[i], &reported);
            if (reported.length)
                lab_str_printf(&line, "; %s: %s", view->report.programs[i].name, reported.text);
        }
        if (view->report.running && !isnan(view->report.left_s)) {
            lab_str_add(&line, "; about ");
            lab_str_add_duration(&line, view->report.left_s, LAB_DURATION_ROUNDED);
            lab_str_add(&line, " left");
        }
        lab_str_add(&line, "\n");
        lab_console_print(console, &line);
    }
}

/* --- looking once --- */

static int read_views(struct lab_study_watch *watch, struct lab_arena *arena,
                      struct lab_study_view **ret_views, struct lab_err *err) {
    struct lab_study_view *views = lab_arena_alloc(arena, (size_t)watch->count + 1, sizeof *views);
    for (int i = 0; i < watch->count; i++) {
        if (lab_study_watch_read(watch, i, arena, &views[i], err) < 0)
            return -1;
        lab_study_file_close(views[i].file);
    }
    *ret_views = views;
    return 0;
}

static int show(const struct lab_command_call *call, struct lab_study_watch *watch,
                struct lab_err *err) {
    struct lab_study_view *views;
    if (read_views(watch, call->arena, &views, err) < 0)
        return -1;
    struct lab_doc *doc = make_doc(views, watch->count, call->arena);
    if (watch->count == 0)
        lab_doc_text(doc, LAB_DOC_WHOLE, "No study is running, and none was interrupted.");
    if (watch->count == 0 && !call->console->quiet)
        lab_doc_text(doc, LAB_DOC_WHOLE, "%s",
                     watch->known ? "'gpulab list' shows those that have ended."
                                  : "'gpulab run quick_test' is a first one to start.");
    lab_doc_gap(doc);
    if (watch->more)
        lab_doc_text(doc, LAB_DOC_WHOLE, "… and older ones that are unfinished (--all)");
    lab_doc_print(doc, call->console);
    return 0;
}

/* --- looking again and again --- */

static void refresh(struct lab_follow *follow, const struct lab_study_view *views, int count,
                    struct lab_str *before, struct lab_arena *arena) {
    if (follow->console->json) {
        lab_console_print_json_line(follow->console,
                                    lab_doc_value(make_doc(views, count, arena), arena));
    } else if (follow->in_place) {
        LAB_AUTO(str, text);
        lab_doc_write(make_doc(views, count, arena), "text", lab_follow_style(follow), &text);
        lab_follow_draw(follow, &text);
    } else {
        for (int i = 0; i < count; i++)
            print_change(follow->console, &views[i], &before[i]);
    }
}

/* 1 = ended, and not all of it done; 0 = ended well; -1 = some still run. */
static int outcome(const struct lab_study_view *views, int count) {
    int status = 0;
    for (int i = 0; i < count; i++) {
        if (views[i].report.running)
            return -1;
        if (views[i].counts[LAB_RUN_DONE] < views[i].report.run_count)
            status = 1;
    }
    return status;
}

static int watch_until_end(struct lab_follow *follow, struct lab_study_watch *watch,
                           double interval_s, struct lab_str *before, int *ret_status,
                           struct lab_err *err) {
    int ended = -1, result = 0;
    do {
        struct lab_arena arena; /* of one look: it may go on for days */
        struct lab_study_view *views;
        lab_arena_init(&arena);
        result = read_views(watch, &arena, &views, err);
        if (result == 0) {
            refresh(follow, views, watch->count, before, &arena);
            ended = outcome(views, watch->count);
        }
        lab_arena_release(&arena);
    } while (result == 0 && ended < 0 && lab_follow_wait(follow, interval_s));
    *ret_status = ended == 1;
    return result;
}

static int follow_studies(const struct lab_command_call *call, struct lab_study_watch *watch,
                          int *ret_status, struct lab_err *err) {
    const struct status_config *config = call->config;
    struct lab_follow follow;
    struct lab_str *before = lab_mem_alloc((size_t)watch->count, sizeof *before);
    for (int i = 0; i < watch->count; i++)
        lab_str_init(&before[i]);
    lab_follow_begin(&follow, call->console);
    int result = watch_until_end(&follow, watch, config->interval_s, before, ret_status, err);
    lab_follow_end(&follow);
    for (int i = 0; i < watch->count; i++)
        lab_str_release(&before[i]);
    lab_mem_free(before);
    return result;
}

static int status_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct status_config *config = call->config;
    const char *word = call->word_count ? call->words[0] : NULL;
    struct lab_study_watch watch;
    if (lab_study_watch_open(word, config->all ? 0 : STUDIES_SHOWN, call->arena, &watch, err) < 0)
        return -1;
    int result;
    if (config->follow && word) {
        result = follow_studies(call, &watch, ret_status, err);
    } else if (config->follow && (lab_study_watch_any_running(&watch) || call->console->json)) {
        lab_study_watch_keep_running(&watch); /* nothing happens to the others */
        result = follow_studies(call, &watch, ret_status, err);
    } else {
        result = show(call, &watch, err);
    }
    lab_study_watch_close(&watch);
    return result;
}

/* --- manual --- */

static const struct lab_manual_example examples[] = {
    {"gpulab status", "all studies that run or were interrupted"},
    {"gpulab status --follow", "those that run, until they have ended"},
    {"gpulab status outputs/quick_test/2026-11-15/10-42-03", "one of them"},
    {"gpulab status quick_test", "the newest of that name"},
    {"gpulab status --follow --json", "one JSON object a line, for a script"},
    {NULL},
};

const struct lab_command lab_command_status = {
    .name = "status",
    .summary = "show the progress of running and interrupted studies",
    .usage = "[PATH]",
    .description =
        "Shows for each study the runs that are done, failed and left, the current run with its "
        "progress, the time left, and the user. For one that was interrupted it shows the command "
        "that continues it. Without a PATH it shows every running or interrupted study of "
        "this user, the newest first. PATH is a study's folder, anything in it, or the beginning "
        "of its name as 'gpulab list' shows it; the newest such one is meant.\n"
        "\n"
        "With --follow it redraws each second until the study has ended; q or Ctrl-C quits and "
        "doesn't disturb the study. Without a terminal it prints a line whenever "
        "a run begins, ends or enters another phase. The exit status is then 1 if the study ended "
        "with runs that failed or never ran.\n"
        "\n"
        "For a program of your own it shows the step, the last values of its main metrics, and a "
        "small "
        "curve of the first one.",
    .options = status_options,
    .config_size = sizeof(struct status_config),
    .max_words = 1,
    .examples = examples,
    .run = status_run,
};
