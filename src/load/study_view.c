/* study_view.c: a study on disk: its runs, progress, holder and time left. */
#include "load/study_view.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/list.h"
#include "base/yaml/yaml.h"
#include "machine/machine_json.h"
#include "workload/workload.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY_STUDIES 50 /* more of them don't make an estimate better, only slower */

/* --- what a study says of itself, in words --- */

const char *lab_study_view_command(const char *words, struct lab_arena *arena) {
    struct lab_value *list;
    if (lab_json_parse(words, strlen(words), "words", arena, &list, NULL) < 0 ||
        list->type != LAB_VALUE_LIST)
        return "";
    LAB_AUTO(str, text);
    lab_str_add(&text, "gpulab run");
    for (int i = 0; i < list->count; i++) {
        const char *word = lab_value_as_text(list->items[i], NULL);
        if (!word)
            return "";
        lab_str_add(&text, " ");
        lab_str_add_shell(&text, word);
    }
    return lab_arena_strdup(arena, text.text);
}

const char *lab_study_view_shorten(const char *path, struct lab_arena *arena) {
    char here[4096];
    if (!getcwd(here, sizeof here))
        return lab_arena_strdup(arena, path);
    size_t length = strlen(here);
    if (length > 1 && lab_str_starts(path, here) && path[length] == '/')
        path += length + 1;
    else if (strcmp(path, here) == 0)
        path = ".";
    return lab_arena_strdup(arena, path);
}

const char *lab_study_view_find_report(const struct lab_study_view *view, struct lab_arena *arena) {
    static const char *const names[] = {"index.html", "report.md"};
    for (int i = 0; i < 2; i++)
        if (access(lab_arena_printf(arena, "%s/report/%s", view->path, names[i]), F_OK) == 0)
            return lab_arena_printf(arena, "%s/report/%s", view->report.folder, names[i]);
    return "";
}

/* The folder that a study in <output_dir>/<name>/<date>/<time> was run from. NULL = from here, or
 * its output_dir is no part of its path: absolute, or moved. */
static const char *start_folder(const char *path, const char *output_dir, struct lab_arena *arena) {
    char here[4096], *end = NULL;
    char *root = lab_arena_strdup(arena, path);
    for (int i = 0; i < 3; i++) {
        end = strrchr(root, '/');
        if (!end)
            return NULL;
        *end = '\0';
    }
    size_t length = strlen(output_dir);
    if (*output_dir == '/' || !length || end - root <= (ptrdiff_t)length ||
        end[-(ptrdiff_t)length - 1] != '/' || !lab_str_ends(root, output_dir))
        return NULL;
    end[-(ptrdiff_t)length - 1] = '\0';
    return getcwd(here, sizeof here) && strcmp(here, root) == 0 ? NULL : root;
}

/* --- how it stands --- */

static void read_config(struct lab_study_view *view, struct lab_arena *arena) {
    struct lab_value *config;
    const char *text = view->study.config;
    view->max_workers = 1;
    if (lab_yaml_parse(text, strlen(text), "config", LAB_YAML_LIMITS, arena, &config, NULL) < 0)
        return;
    const struct lab_value *experiment = lab_value_get(config, "experiment");
    int64_t workers = lab_value_get_int(experiment, "max_workers", 0);
    view->report.objective = lab_value_get_text(experiment, "objective", NULL);
    view->report.start_folder =
        start_folder(view->path, lab_value_get_text(config, "output_dir", ""), arena);
    if (workers > 1 && workers <= 100000)
        view->max_workers = (int)workers;
}

static bool on_simulation(const struct lab_run *run) {
    for (int i = 0; i < run->rank_count; i++)
        if (lab_run_device_is_simulated(run->ranks[i].device))
            return true;
    return false;
}

/* Whether a GPU of the machine is there for nothing: a program may use one that is not named. */
static bool lacks_gpu(const struct lab_run *runs, int count) {
    for (int i = 0; i < count; i++) {
        if (lab_str_equal(runs[i].workload, "command"))
            return false;
        for (int k = 0; k < runs[i].rank_count; k++)
            if (!runs[i].ranks[k].device || !lab_str_starts(runs[i].ranks[k].device, "cpu:"))
                return false;
    }
    return count > 0;
}

static int read_counts(struct lab_study_view *view, struct lab_err *err) {
    if (lab_store_count(view->file->store, view->counts, err) < 0)
        return -1;
    view->report.state_counts =
        lab_arena_copy(view->file->arena, view->counts, LAB_RUN_STATE_COUNT, sizeof *view->counts);
    return 0;
}

/* What a run's label stands for; "" = this gpulab can't read it; NULL = it needs no
 * explanation. */
static const char *label_words(const struct lab_run *run, struct lab_arena *arena) {
    const struct lab_workload *workload =
        run->workload ? lab_workload_find(run->workload, NULL) : NULL;
    struct lab_value *options;
    const void *config;
    if (!workload || !workload->label_words || !run->options)
        return NULL;
    LAB_AUTO(str, words);
    if (!lab_json_parse(run->options, strlen(run->options), "options", arena, &options, NULL) &&
        !lab_workload_read(workload, options, arena, &config, NULL))
        workload->label_words(config, &words);
    return lab_arena_strdup(arena, words.text);
}

/* The same words with other numbers. */
static bool same_words(const char *a, const char *b) {
    static const char digits[] = "0123456789-";
    for (;; a++, b++) {
        a += strspn(a, digits);
        b += strspn(b, digits);
        if (*a != *b || !*a)
            return *a == *b;
    }
}

#define NAMES_EXPLAINED 6

/* "vit32x6x512: patch 32, depth 6, width 512." One name of each kind. Words may have their own
 * name. */
static const char *explain_names(const struct lab_run *runs, int count, struct lab_arena *arena) {
    const char *words[NAMES_EXPLAINED], **seen = NULL;
    int kinds = 0, seen_count = 0;
    LAB_AUTO(str, text);
    LAB_AUTO(arena, scratch);
    for (int i = 0; i < count && kinds < NAMES_EXPLAINED; i++) {
        const char *label = runs[i].label;
        if (!label || lab_list_find_text(seen, seen_count, label) >= 0)
            continue;
        words[kinds] = label_words(&runs[i], &scratch);
        if (!words[kinds]) /* nor does any other label of its workload */
            continue;
        LAB_ADD(seen, seen_count, &scratch) = label;
        bool known = !*words[kinds];
        for (int k = 0; k < kinds && !known; k++)
            known = same_words(words[k], words[kinds]);
        if (!known)
            lab_str_printf(&text, "%s%s%s%s.", kinds ? " " : "",
                           strstr(words[kinds], ": ") ? "" : label,
                           strstr(words[kinds], ": ") ? "" : ": ", words[kinds]);
        kinds += !known;
    }
    return lab_arena_strdup(arena, text.text);
}

static int read_runs(struct lab_study_view *view, struct lab_err *err) {
    struct lab_study_info *report = &view->report;
    struct lab_study_file *file = view->file;
    struct lab_run_progress *progress;
    if (lab_study_file_runs(file, err) < 0 ||
        lab_store_progress(file->store, file->arena, &progress, &report->progress_count, err) < 0)
        return -1;
    report->runs = file->runs;
    report->run_count = file->run_count;
    report->names = explain_names(file->runs, file->run_count, file->arena);
    if (report->gpu_count > 0 && lacks_gpu(file->runs, file->run_count))
        report->machine = lab_arena_printf(file->arena, "%s (not used)", report->machine);
    report->progress = progress;
    for (int i = 0; i < report->run_count; i++) {
        view->counts[file->runs[i].state]++;
        report->simulated = report->simulated || on_simulation(&file->runs[i]);
    }
    if (!report->running)
        report->progress_count = 0; /* of runs that were interrupted */
    return 0;
}

/*
 * The runs that time has still to be spent on. While a runner works, those that failed in its hands
 * aren't tried again; those that failed under an earlier one are. Without a runner everything that
 * isn't done starts anew.
 */
static struct lab_run *runs_to_estimate(const struct lab_study_view *view, int *ret_count) {
    const struct lab_study_info *report = &view->report;
    struct lab_run *runs = lab_mem_alloc((size_t)report->run_count + 1, sizeof *runs);
    int count = 0;
    for (int i = 0; i < report->run_count; i++) {
        const struct lab_run *run = &report->runs[i];
        if (report->running && run->state == LAB_RUN_FAILED &&
            run->start_wall_ns >= view->holder.since_wall_ns)
            continue;
        runs[count] = *run;
        if (!report->running && run->state == LAB_RUN_RUNNING)
            runs[count].state = LAB_RUN_PLANNED;
        count++;
    }
    *ret_count = count;
    return runs;
}

/* When its runner wrote last; a report touches the database. */
static int64_t written_wall_ns(const struct lab_study_view *view) {
    LAB_AUTO(str, path);
    struct stat info;
    lab_str_printf(&path, "%s/logs/experiment.log", view->path);
    return stat(path.text, &info) < 0 ? 0
                                      : info.st_mtim.tv_sec * LAB_NS_PER_S + info.st_mtim.tv_nsec;
}

/* A simulated run's times are simulated: what is left goes by how many runs have ended since the
 * latest session began, on the real clock, and so does what that session took. Where it is over,
 * its beginning is known only if it was the first. */
static double left_by_pace_s(const struct lab_study_view *view, double *ret_elapsed_s) {
    const struct lab_study_info *report = &view->report;
    int64_t epoch = 0;
    int ended = 0, left = 0;
    for (int i = 0; i < report->run_count; i++)
        epoch = report->runs[i].epoch > epoch ? report->runs[i].epoch : epoch;
    for (int i = 0; i < report->run_count; i++) {
        const struct lab_run *run = &report->runs[i];
        bool over = run->state == LAB_RUN_DONE || run->state == LAB_RUN_FAILED;
        ended += over && run->epoch == epoch;
        left += run->state != LAB_RUN_DONE && !(over && run->epoch == epoch && report->running);
    }
    int64_t from_ns = report->running ? view->holder.since_wall_ns : report->created_wall_ns;
    int64_t to_ns = report->running ? lab_clock_wall_ns() : written_wall_ns(view);
    bool known = to_ns > from_ns && (report->running || epoch <= 1);
    *ret_elapsed_s = known ? 1e-9 * (double)(to_ns - from_ns) : (double)NAN;
    if (left == 0)
        return 0;
    if (ended == 0 || !known)
        return NAN;
    return 1e-9 * (double)(to_ns - from_ns) / ended * left;
}

static void estimate(struct lab_study_view *view, struct lab_history *history) {
    struct lab_study_info *report = &view->report;
    for (int i = 0; i < report->run_count; i++)
        lab_history_add(history, &report->runs[i]);
    int count;
    LAB_AUTO_FREE struct lab_run *runs = runs_to_estimate(view, &count);
    view->estimate =
        lab_history_estimate(history, runs, count, report->progress, report->progress_count,
                             lab_clock_now(lab_clock_system()), view->max_workers);
    if (report->simulated) {
        view->estimate.left_s = left_by_pace_s(view, &view->estimate.elapsed_s);
        view->estimate.unknown = view->estimate.guessed = 0;
    }
    report->left_s = view->estimate.left_s;
    report->left_unknown = view->estimate.guessed;
}

static void describe(struct lab_study_view *view, bool ended, struct lab_arena *arena) {
    struct lab_study_info *report = &view->report;
    const struct lab_store_study *study = &view->study;
    report->name = study->name;
    report->option = study->option;
    report->folder = lab_study_view_shorten(view->path, arena);
    LAB_AUTO_FREE char *real = realpath(view->path, NULL);
    report->path = real ? lab_arena_strdup(arena, real) : NULL;
    report->command = lab_study_view_command(study->words, arena);
    if (strstr(report->command, "experiment.name=") && study->option && *study->option &&
        strcmp(study->name, study->option) != 0)
        report->title = lab_arena_printf(arena, "%s (%s)", study->name, study->option);
    struct lab_machine_words machine = lab_machine_json_words(study->machine, arena);
    report->machine = machine.line;
    report->simulated = lab_machine_json_is_simulated(study->machine, arena);
    report->gpu_count = machine.gpu_count;
    report->node_count = machine.node_count;
    report->version = study->version;
    report->created_wall_ns = study->created_wall_ns;
    report->seed = study->seed;
    report->seed_known = true;
    report->holder = "";
    report->running = !ended && lab_folder_held(view->path, &view->holder);
    if (report->running) {
        LAB_AUTO(str, text);
        lab_holder_describe(&view->holder, &text);
        report->holder = lab_arena_strdup(arena, text.text);
    }
}

static int read_view(struct lab_study_file *file, bool with_runs, bool ended,
                     struct lab_study_view *view, struct lab_err *err) {
    *view = (struct lab_study_view){
        .file = file,
        .path = file->folder,
        .study = file->study,
        .estimate = {.left_s = NAN},
        .report = {.left_s = NAN},
    };
    describe(view, ended, file->arena);
    read_config(view, file->arena);
    return with_runs ? read_runs(view, err) : read_counts(view, err);
}

/* --- what others call --- */

struct lab_history *lab_study_view_history(const struct lab_study_file *file) {
    return lab_history_open(file->study.machine_identity, HISTORY_STUDIES, file->folder);
}

int lab_study_view_follow(struct lab_study_file *file, struct lab_history *history,
                          struct lab_study_view *ret_view, struct lab_err *err) {
    struct lab_study_view view;
    if (read_view(file, true, false, &view, err) < 0)
        return -1;
    if (history)
        estimate(&view, history);
    *ret_view = view;
    return 0;
}

static int read_estimated(struct lab_study_file *file, bool with_runs, bool ended,
                          struct lab_study_view *ret_view, struct lab_err *err) {
    struct lab_study_view view;
    if (read_view(file, with_runs, ended, &view, err) < 0)
        return -1;
    if (with_runs) {
        bool done = view.counts[LAB_RUN_DONE] == view.report.run_count; /* nothing to look up */
        struct lab_history *history =
            done ? lab_history_open(0, 0, NULL) : lab_study_view_history(file);
        estimate(&view, history);
        lab_history_close(history);
    }
    *ret_view = view;
    return 0;
}

int lab_study_view_read(struct lab_study_file *file, bool with_runs,
                        struct lab_study_view *ret_view, struct lab_err *err) {
    return read_estimated(file, with_runs, false, ret_view, err);
}

int lab_study_view_read_ended(struct lab_study_file *file, struct lab_study_view *ret_view,
                              struct lab_err *err) {
    return read_estimated(file, true, true, ret_view, err);
}

int lab_study_view_look(const char *folder, bool with_runs, struct lab_arena *arena,
                        struct lab_study_view *ret_view, struct lab_err *err) {
    struct lab_study_file *file;
    if (lab_study_file_open(folder, arena, &file, err) < 0)
        return -1;
    int result = lab_study_view_read(file, with_runs, ret_view, err);
    lab_study_file_close(file);
    return result;
}

static int add_metrics(struct lab_study_view *view, const struct lab_run *run,
                       struct lab_study_info_metric **metrics, struct lab_err *err) {
    struct lab_study_metric *last;
    int count;
    if (lab_study_file_metrics(view->file, run, false, &last, &count, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        LAB_ADD(*metrics, view->report.metric_count, view->file->arena) =
            (struct lab_study_info_metric){run->id, last[i].name, last[i].unit, last[i].rank,
                                           last[i].value};
    return 0;
}

int lab_study_view_metrics(struct lab_study_view *view, struct lab_err *err) {
    enum { RUNS_MOST = 1000 }; /* every value is read: beyond that it is for `export` */
    struct lab_study_info *report = &view->report;
    struct lab_study_info_metric *metrics = NULL;
    struct lab_arena *arena = view->file->arena;
    size_t run_count = (size_t)report->run_count;
    int result = 0;
    if (run_count == 0 || run_count > RUNS_MOST ||
        !lab_workload_is_external(report->runs[0].workload))
        return 0;
    const struct lab_run **sorted = lab_arena_alloc(arena, run_count, sizeof *sorted);
    for (size_t i = 0; i < run_count; i++)
        sorted[i] = &report->runs[i];
    LAB_SORT_REFS(sorted, run_count, LAB_BY(*sorted, id));
    for (size_t i = 0; result == 0 && i < run_count; i++)
        if (sorted[i]->state == LAB_RUN_DONE)
            result = add_metrics(view, sorted[i], &metrics, err);
    report->metrics = metrics;
    return result;
}

static struct lab_value *holder_value(const struct lab_holder *holder, struct lab_arena *arena) {
    struct lab_value *map = lab_value_map(arena);
    lab_value_set_int(arena, map, "pid", holder->pid);
    lab_value_set_string(arena, map, "host", holder->host);
    lab_value_set_string(arena, map, "command", holder->command);
    lab_value_set_int(arena, map, "since_wall_ns", holder->since_wall_ns);
    return map;
}

struct lab_value *lab_study_view_value(const struct lab_study_view *view, struct lab_arena *arena) {
    const struct lab_study_info *report = &view->report;
    struct lab_value *map = lab_value_map(arena), *counts = lab_value_map(arena);
    lab_value_set_string(arena, map, "study", report->name);
    lab_value_set_string(arena, map, "option", report->option);
    lab_value_set_string(arena, map, "path", view->path);
    lab_value_set_string(arena, map, "folder", report->folder);
    lab_value_set_string(arena, map, "command", *report->command ? report->command : NULL);
    lab_value_set_string(arena, map, "machine", *report->machine ? report->machine : NULL);
    lab_value_set_string(arena, map, "gpulab", report->version);
    lab_value_set_int(arena, map, "created_wall_ns", report->created_wall_ns);
    lab_value_set_bool(arena, map, "simulated", report->simulated);
    for (int state = 0; state < LAB_RUN_STATE_COUNT; state++)
        lab_value_set_int(arena, counts, lab_run_state_name((enum lab_run_state)state),
                          view->counts[state]);
    lab_value_set(arena, map, "runs", counts);
    lab_value_set_bool(arena, map, "running", report->running);
    lab_value_set(arena, map, "holder",
                  report->running ? holder_value(&view->holder, arena) : lab_value_null(arena));
    lab_value_set_float(arena, map, "left_s", report->left_s);
    return map;
}
