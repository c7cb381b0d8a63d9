/*
 * report.c: `gpulab report`: the whole report of a study or of recordings: the answer in the
 * terminal, and as files a page, Markdown, advice and pictures.
 */
#include "command/command.h"

#include "base/file/out_dir.h"
#include "base/subprocess.h"
#include "report/report_build.h"
#include "store/foreign/monitor_file.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S ((int64_t)1000000000)
#define OPEN_NS  (10 * NS_PER_S)

struct report_config {
    const char *format, *output;
    bool open, force, verbose;
    double limit_s;
};

static const char *const formats[] = {"all", "terminal", "md", "html", "png", NULL};

static const struct lab_option report_options[] = {
    {"format", LAB_OPTION_CHOICE, offsetof(struct report_config, format), .fallback = "all",
     .choices = formats, .letter = 'f',
     .help = "all: write files, print the answer; terminal: print the answer; md: print "
             "Markdown; html, png: write files, print paths of the page or the charts"},
    {"output", LAB_OPTION_STRING, offsetof(struct report_config, output), .letter = 'o',
     .value_name = "DIR",
     .help = "write the files to this folder; else report/ of the study, or a folder next to the "
             "recording. Several paths need it"},
    {"force", LAB_OPTION_FLAG, offsetof(struct report_config, force),
     .help = "replace files in --output that no report wrote"},
    {"open", LAB_OPTION_FLAG, offsetof(struct report_config, open),
     .help = "open the page in a browser (xdg-open)"},
    {"verbose", LAB_OPTION_FLAG, offsetof(struct report_config, verbose), .letter = 'v',
     .help = "every row and every analysis's sentence here"},
    {"limit", LAB_OPTION_DURATION, offsetof(struct report_config, limit_s), .fallback = "2min",
     .max = 1e6, .help = "time limit; leaves out what is unfinished"},
    {NULL},
};

/* --- where it goes --- */

static bool writes(const struct report_config *config) {
    return !lab_str_equal(config->format, "terminal") && !lab_str_equal(config->format, "md");
}

static int refuse_others(const char *path, struct lab_err *err) {
    return lab_err_set(err, LAB_ERR_USER,
                       "%s belongs to another user: write its report to a folder of your own: "
                       "gpulab report %s -o DIR",
                       path, path);
}

/* "runs/a.db" has its report in "runs/a-report", a folder of recordings in "report" within it.
 * Those of another user lie where he may change or redirect what is written. */
static int choose_beside(const char *word, struct lab_arena *arena, const char **ret_folder,
                         struct lab_err *err) {
    struct stat info;
    const char *equals = strchr(word, '=');
    if (equals && stat(word, &info) < 0)
        word = equals + 1;
    bool there = stat(word, &info) == 0;
    if (there && info.st_uid != geteuid())
        return refuse_others(word, err);
    const char *slash = strrchr(word, '/'), *dot = strrchr(word, '.');
    size_t length = dot && dot > (slash ? slash + 1 : word) ? (size_t)(dot - word) : strlen(word);
    *ret_folder = there && S_ISDIR(info.st_mode)
                      ? lab_arena_printf(arena, "%s/report", word)
                      : lab_arena_printf(arena, "%.*s-report", (int)length, word);
    return 0;
}

/* Is the path the folder itself or below it? The last part of the path need not exist. */
static bool is_within(const char *path, const char *folder, struct lab_arena *arena) {
    const char *slash = strrchr(path, '/');
    char *real = realpath(path, NULL), *whole = realpath(folder, NULL);
    if (!real)
        real = realpath(slash == path ? "/"
                        : slash       ? lab_arena_strndup(arena, path, (size_t)(slash - path))
                                      : ".",
                        NULL);
    size_t length = whole ? strlen(whole) : 0;
    bool within = real && whole && strncmp(real, whole, length) == 0 &&
                  (real[length] == '/' || real[length] == '\0');
    free(real);
    free(whole);
    return within;
}

/* Nothing is written into a study of another user, whose folder may change or redirect it. */
static int choose_folder(const struct lab_command_call *call, const char *study,
                         struct lab_report_request *request, struct lab_err *err) {
    struct stat info;
    if (stat(study, &info) < 0)
        return lab_err_set_errno(err, LAB_ERR_SYSTEM, errno, "%s", study);
    bool own = info.st_uid == geteuid();
    if (!own && (!request->folder || is_within(request->folder, study, call->arena)))
        return refuse_others(study, err);
    request->own = !request->folder;
    if (!request->folder)
        request->folder = lab_arena_printf(call->arena, "%s/report", study);
    return 0;
}

/* A report of several goes to a folder of its own: none of them owns it. */
static int refuse_within(const struct lab_command_call *call, const char *folder,
                         struct lab_err *err) {
    if (call->word_count > 1 && !folder)
        return lab_err_set(err, LAB_ERR_USER,
                           "a report of several needs a folder of its own: gpulab report %s %s%s "
                           "-o DIR",
                           call->words[0], call->words[1], call->word_count > 2 ? " …" : "");
    for (int i = 0; i < call->word_count && call->word_count > 1; i++) {
        struct stat info;
        const char *word = call->words[i], *equals = strchr(word, '='), *path = word;
        if (stat(path, &info) < 0 && equals)
            path = equals + 1;
        if (stat(path, &info) < 0 &&
            lab_folder_resolve(equals ? equals + 1 : word, call->arena, &path, NULL) < 0)
            continue;
        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode) && is_within(folder, path, call->arena))
            return lab_err_set(err, LAB_ERR_USER,
                               "%s is inside %s and would replace its report: choose a folder "
                               "outside of it",
                               folder, path);
    }
    return 0;
}

/* --- what there is --- */

static bool are_recordings(const struct lab_command_call *call) {
    for (int i = 0; i < call->word_count; i++) {
        const char *word = call->words[i], *equals = strchr(word, '=');
        if (lab_monitor_is_file(word) || (equals && lab_monitor_is_file(equals + 1)))
            return true;
    }
    return call->word_count > 1;
}

static int build(const struct lab_command_call *call, struct lab_study_view *view,
                 bool *ret_is_study, struct lab_report_made *ret_made, struct lab_err *err) {
    const struct report_config *config = call->config;
    struct lab_report_request request = {.folder = lab_out_dir_resolve(config->output, call->arena),
                                         .forced = config->force,
                                         .limit_ns = (int64_t)(config->limit_s * 1e9)};
    const char *word = call->word_count ? call->words[0] : NULL, *path;
    struct lab_err why = LAB_ERR_INIT;
    struct stat info;
    *ret_is_study = !are_recordings(call);
    if (*ret_is_study && lab_folder_resolve(word, call->arena, &path, &why) < 0) {
        if (!word || stat(word, &info) < 0) {
            *err = why;
            return -1;
        }
        *ret_is_study = false; /* a folder of recordings, or a file that may be one */
    }
    if (!*ret_is_study) {
        if (writes(config) && refuse_within(call, request.folder, err) < 0)
            return -1;
        if (!request.folder && writes(config) &&
            choose_beside(call->words[0], call->arena, &request.folder, err) < 0)
            return -1;
        return (lab_report_are_studies(call->words, call->word_count, call->arena)
                    ? lab_report_build_studies
                    : lab_report_build_recordings)(call->words, call->word_count, &request,
                                                   call->arena, ret_made, err);
    }
    struct lab_study_file *file;
    if (lab_study_file_open(path, call->arena, &file, err) < 0)
        return -1;
    int result = lab_study_view_read(file, true, view, err);
    if (result == 0)
        result = lab_study_view_metrics(view, err);
    if (result == 0 && writes(config))
        result = choose_folder(call, path, &request, err);
    if (result == 0)
        result = lab_report_build_study(view, &request, call->arena, ret_made, err);
    lab_study_file_close(file);
    return result;
}

/* --- what is printed --- */

static void add_place(const struct lab_command_call *call, bool is_study,
                      const struct lab_report_made *made, struct lab_doc *doc) {
    const struct report_config *config = call->config;
    if (!made->page.index || (is_study && !config->verbose))
        return; /* the end of a study names its page */
    const char *folder = lab_study_view_shorten(made->page.folder, call->arena);
    if (!is_study) {
        lab_doc_gap(doc);
        lab_doc_line_whole(doc, "Report", "%s/index.html", folder);
    }
    lab_doc_line_whole(doc, "Markdown", "%s/report.md", folder);
    lab_doc_line_whole(doc, "Advice", "%s/best_practices.md", folder);
    if (made->picture_count)
        lab_doc_line_whole(doc, "Pictures", "%d, each as SVG, PNG and PDF, in %s",
                           made->picture_count, folder);
}

static void print_terminal(const struct lab_command_call *call, struct lab_study_view *view,
                           bool is_study, const struct lab_report_made *made) {
    struct lab_doc *doc = lab_doc_open(made->page.title, call->arena);
    int answers = is_study ? 0 : lab_page_add_answers(&made->page, doc);
    if (is_study) {
        view->report.report = made->page.index
                                  ? lab_study_view_shorten(made->page.index, call->arena)
                                  : lab_study_view_find_report(view, call->arena);
        lab_report_add_study(doc, &view->report, &made->page, call->console->style,
                             ((const struct report_config *)call->config)->verbose);
    } else if (answers == 0) {
        lab_doc_text(doc, LAB_DOC_WHOLE, "No result: nothing to report.");
    }
    add_place(call, is_study, made, doc);
    lab_doc_print(doc, call->console);
}

/* One path to a line, for programs. */
static void print_paths(const struct lab_command_call *call, const struct lab_report_made *made,
                        bool pictures) {
    LAB_AUTO(str, text);
    if (!pictures)
        lab_str_printf(&text, "%s\n", made->page.index);
    for (int i = 0; pictures && i < made->page.analysis_count; i++)
        for (int p = 0; p < made->page.analyses[i].plot_count; p++)
            if (made->page.analyses[i].plots[p].drawn)
                lab_str_printf(&text, "%s/%s.png\n", made->page.folder,
                               made->page.analyses[i].plots[p].name);
    lab_console_write(call->console, text.text, text.length);
}

static void open_page(const struct lab_command_call *call, const char *path) {
    const char *argv[] = {"xdg-open", path, NULL};
    struct lab_subprocess_spec spec = {
        .argv = argv, .max_output_bytes = 4096, .timeout_ns = OPEN_NS};
    struct lab_subprocess_result result;
    struct lab_err err = LAB_ERR_INIT;
    if (lab_subprocess_run(&spec, call->arena, &result, &err) < 0)
        lab_console_note("can't open the page: %s; it is %s", err.text, path);
    else if (result.exit_status != 0)
        lab_console_note("xdg-open could not open the page: it is %s", path);
}

/* --- the command --- */

static int report_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct report_config *config = call->config;
    struct lab_study_view view;
    struct lab_report_made made = {0};
    bool is_study;
    if (config->open && !writes(config))
        return lab_err_set(err, LAB_ERR_USER, "--open needs the page, which --format %s leaves out",
                           config->format);
    if (!writes(config) && config->output)
        return lab_err_set(err, LAB_ERR_USER, "--format %s writes no files: leave --output out",
                           config->format);
    if (build(call, &view, &is_study, &made, err) < 0)
        return -1;
    if (call->console->json)
        lab_doc_print(lab_page_doc(&made.page, call->arena), call->console);
    else if (lab_str_equal(config->format, "md"))
        lab_doc_print_markdown(lab_page_doc(&made.page, call->arena), call->console);
    else if (lab_str_equal(config->format, "html") || lab_str_equal(config->format, "png"))
        print_paths(call, &made, lab_str_equal(config->format, "png"));
    else
        print_terminal(call, &view, is_study, &made);
    if (made.page.missing && !call->console->quiet)
        lab_console_note("%s", made.page.missing);
    if (config->open && made.page.index)
        open_page(call, made.page.index);
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab report", "the newest study: the answer here, all files in its report/"},
    {"gpulab report numa_study --open", "the newest numa_study, its page in a browser"},
    {"gpulab report recording.db", "a recording: balance, memory, what the machine did over time"},
    {"gpulab report old=outputs/a new=outputs/b -o compared/",
     "two studies, point by point, as 'gpulab compare' matches them"},
    {"gpulab report adamw=a.db sgd=b.db -o compared/", "two recordings, compared"},
    {"gpulab report quick_test --format md > answer.md", "Markdown, no files"},
    {NULL},
};

const struct lab_command lab_command_report = {
    .name = "report",
    .summary = "write the report of a study or a recording: page, Markdown, charts",
    .usage = "[PATH...]",
    .description =
        "PATH is a study, by its folder or name, or a recording; without it, the newest study. "
        "Every analysis that applies has a section; the strongest gives the first sentence. "
        "index.html is one file that needs no network; report.md and "
        "best_practices.md say the same in Markdown. Each chart is there as SVG, PNG and PDF, with "
        "its values. PNG and PDF need gnuplot ('" LAB_PLOT_GET "'). Every 'gpulab "
        "run' ends with the same report. A report replaces files of an earlier report, and no "
        "others; a folder that holds other files is refused without --force. The report of another "
        "user's study or recording needs --output.",
    .options = report_options,
    .config_size = sizeof(struct report_config),
    .max_words = -1,
    .examples = examples,
    .run = report_run,
};
