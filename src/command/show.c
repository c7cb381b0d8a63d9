/*
 * show.c: `gpulab show`: one study: its report, its claims, all its runs, one of them, or its
 * config. It reads while the study runs, too.
 */
#include "command/command.h"

#include "base/json.h"
#include "base/yaml/yaml.h"
#include "load/study_view.h"
#include "report/report_build.h"
#include "report/study/study_run.h"
#include "store/study/results.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct show_config {
    bool claims, runs, config, verbose;
    const char *run;
};

static const struct lab_option show_options[] = {
    {"claims", LAB_OPTION_FLAG, offsetof(struct show_config, claims), .letter = 'c',
     .help = "list every claim of its report: effect, 95% interval, runs, verdict"},
    {"runs", LAB_OPTION_FLAG, offsetof(struct show_config, runs), .letter = 'r',
     .help = "list every run"},
    {"run", LAB_OPTION_STRING, offsetof(struct show_config, run), .value_name = "ID",
     .help = "show one run: its options, ranks, result, metrics, logs, and what went wrong"},
    {"config", LAB_OPTION_FLAG, offsetof(struct show_config, config),
     .help = "print the study's config as it was composed"},
    {"verbose", LAB_OPTION_FLAG, offsetof(struct show_config, verbose), .letter = 'v',
     .help = "every point and every analysis's sentence"},
    {NULL},
};

/* --- the whole study --- */

/* With the verdict of its analyses, which a study that still runs doesn't have. */
static void print_report(const struct lab_command_call *call, struct lab_study_view *view) {
    const struct show_config *config = call->config;
    struct lab_study_info *report = &view->report;
    struct lab_report_made made;
    bool analysed = !report->running && !call->console->json &&
                    lab_report_build_study(view, &(struct lab_report_request){0}, call->arena,
                                           &made, NULL) == 0;
    const char *index = lab_arena_printf(call->arena, "%s/report/index.html", view->path);
    if (access(index, F_OK) == 0)
        report->report = lab_study_view_shorten(index, call->arena);
    struct lab_arena *arena = call->arena;
    struct lab_doc *doc = lab_doc_open(report->name, arena);
    struct lab_value *summary =
        lab_results_summary(report->name, report->runs, report->run_count, arena);
    lab_doc_data(doc, NULL, lab_study_view_value(view, arena));
    lab_doc_data(doc, "summary", summary);
    lab_report_add_study(doc, report, analysed ? &made.page : NULL, call->console->style,
                         config->verbose);
    lab_doc_print(doc, call->console);
}

/* --- its claims --- */

/* By the analyses that the report has. */
static int print_claims(const struct lab_command_call *call, const struct lab_study_view *view,
                        struct lab_err *err) {
    struct lab_report_made made;
    int count;
    if (lab_report_build_study(view, &(struct lab_report_request){0}, call->arena, &made, err) < 0)
        return -1;
    struct lab_claim *const *claims = lab_report_claims(&made.page, call->arena, &count);
    struct lab_doc *doc = lab_doc_open(lab_study_info_title(&view->report), call->arena);
    lab_doc_set_simulated(doc, made.page.simulated);
    lab_report_add_claims(doc, claims, count);
    lab_doc_notes(doc, "warnings", made.page.warnings, true);
    lab_doc_print(doc, call->console);
    return 0;
}

/* --- its runs --- */

/* Run by run: there may be 10,000 of them. */
static void print_runs_json(const struct lab_command_call *call,
                            const struct lab_study_view *view) {
    LAB_AUTO(doc_sink, sink);
    lab_doc_sink_to_console(&sink, call->console);
    struct lab_doc_tree tree = {.out = &sink.text};
    lab_doc_tree_begin(&tree, NULL, '{', LAB_DOC_BROKEN);
    lab_doc_tree_cell(&tree, "schema", lab_cell_exact(LAB_JSON_SCHEMA, 0));
    lab_doc_tree_value(&tree, "study", lab_study_view_value(view, call->arena));
    lab_doc_tree_begin(&tree, "runs", '[', LAB_DOC_BROKEN);
    for (int i = 0; i < view->report.run_count; i++) {
        lab_doc_tree_begin(&tree, NULL, '{', LAB_DOC_BROKEN);
        lab_results_add_run(&view->report.runs[i], &tree);
        lab_doc_tree_end(&tree);
        if (lab_doc_sink_pass(&sink) < 0)
            return; /* who closed the pipe has enough */
    }
    lab_doc_tree_end(&tree);
    lab_doc_tree_end(&tree);
    lab_doc_sink_flush(&sink);
}

static void print_runs(const struct lab_command_call *call, const struct lab_study_view *view) {
    if (call->console->json) {
        print_runs_json(call, view);
        return;
    }
    struct lab_doc *doc = lab_doc_open(lab_study_info_title(&view->report), call->arena);
    lab_show_add_runs(doc, &view->report, call->console->style.unicode);
    lab_doc_print(doc, call->console);
}

/* --- one of them --- */

static const struct lab_run *find_run(const struct lab_study_view *view, const char *id,
                                      struct lab_arena *arena, struct lab_err *err) {
    int count = view->report.run_count;
    const char **ids = lab_arena_alloc(arena, (size_t)count + 1, sizeof *ids);
    for (int i = 0; i < count; i++) {
        if (lab_str_equal(view->report.runs[i].id, id))
            return &view->report.runs[i];
        ids[i] = view->report.runs[i].id;
    }
    const char *nearest = lab_str_nearest(id, ids);
    if (nearest)
        lab_err_set(err, LAB_ERR_USER, "no run '%s' in %s; did you mean '%s'?", id,
                    view->report.folder, nearest);
    else
        lab_err_set(err, LAB_ERR_USER, "no run '%s' in %s: 'gpulab show %s --runs' lists them", id,
                    view->report.folder, view->report.folder);
    return NULL;
}

static int print_run(const struct lab_command_call *call, const struct lab_study_view *view,
                     const char *id, struct lab_err *err) {
    const struct lab_run *found = find_run(view, id, call->arena, err);
    struct lab_show_run shown = {.run = found, .study = &view->report};
    if (!found || lab_store_metrics(view->file->store, found->number, call->arena, &shown.metrics,
                                    &shown.metric_count, err) < 0)
        return -1;
    struct lab_doc *doc = lab_doc_open(id, call->arena);
    lab_show_add_run(doc, &shown);
    lab_doc_print(doc, call->console);
    return 0;
}

/* --- its config --- */

static int print_config(const struct lab_command_call *call, const struct lab_study_view *view,
                        struct lab_err *err) {
    const char *config = view->study.config;
    if (call->console->json) {
        struct lab_value *tree;
        if (lab_yaml_parse(config, strlen(config), view->report.folder, LAB_YAML_LIMITS,
                           call->arena, &tree, err) < 0)
            return -1;
        lab_console_print_json(call->console, tree);
        return 0;
    }
    lab_console_write(call->console, config, strlen(config));
    return 0;
}

/* --- the command --- */

static int show_file(const struct lab_command_call *call, struct lab_study_file *file,
                     struct lab_err *err) {
    const struct show_config *config = call->config;
    struct lab_study_view view;
    /* only the report says how long it still takes, which means a look at other studies */
    bool report = !config->claims && !config->runs && !config->config && !config->run;
    int result = report || config->claims || config->config
                     ? lab_study_view_read(file, !config->config, &view, err)
                     : lab_study_view_follow(file, NULL, &view, err);
    if (result == 0 && report)
        result = lab_study_view_metrics(&view, err);
    if (result < 0)
        return -1;
    view.report.report = lab_study_view_find_report(&view, call->arena);
    if (config->config)
        return print_config(call, &view, err);
    if (config->claims)
        return print_claims(call, &view, err);
    if (config->run)
        return print_run(call, &view, config->run, err);
    if (config->runs)
        print_runs(call, &view);
    else
        print_report(call, &view);
    return 0;
}

static int show_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct show_config *config = call->config;
    struct lab_study_file *file;
    const char *path;
    if (config->claims + config->runs + config->config + (config->run != NULL) > 1)
        return lab_err_set(err, LAB_ERR_USER, "give one of --claims, --runs, --run and --config");
    if (lab_folder_resolve(call->word_count ? call->words[0] : NULL, call->arena, &path, err) < 0 ||
        lab_study_file_open(path, call->arena, &file, err) < 0)
        return -1;
    int result = show_file(call, file, err);
    lab_study_file_close(file);
    return result;
}

static const struct lab_manual_example examples[] = {
    {"gpulab show", "the newest study"},
    {"gpulab show quick_test", "the newest one of that name"},
    {"gpulab show numa_study --claims --json", "what its report states, as data"},
    {"gpulab show outputs/quick_test/2026-11-15/10-42-03 --runs", "every run of one study"},
    {"gpulab show quick_test --run gpu0_numa0_vit32x4x512", "one run, with its metrics and logs"},
    {"gpulab show quick_test --config > mine.yaml", "the config that it was run with"},
    {NULL},
};

const struct lab_command lab_command_show = {
    .name = "show",
    .summary = "show one study: its report, its claims, its runs, or its config",
    .usage = "[PATH]",
    .description =
        "PATH is a study's folder, anything in it, or the beginning of its name as 'gpulab list' "
        "shows it; the newest such one is meant. Without it, the newest of all. A study that is "
        "still running can be shown, too. Where programs of your own ran (test_matrix), the report "
        "has the last value of each of their metrics.",
    .options = show_options,
    .config_size = sizeof(struct show_config),
    .max_words = 1,
    .examples = examples,
    .complete = lab_command_studies,
    .run = show_run,
};
