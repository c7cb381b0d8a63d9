/*
 * analyze.c: `gpulab analyze`: reads what an analysis asks for, lets it work, shows what it found.
 * Which analyses there are, and what their figures are, is theirs (src/analysis).
 */
#include "command/command.h"

#include "analysis/analysis.h"
#include "base/file/out_dir.h"
#include "doc/doc.h"
#include "load/recordings.h"
#include "load/studies.h"
#include "plot/plot.h"
#include "report/analysis.h"
#include "report/report_build.h"
#include "run/folder.h"
#include "store/trace/trace_find.h"
#include "store/trace/trace_read.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

struct analyze_config {
    bool markdown, fail;
    const char *charts, *output;
};

static const struct lab_option analyze_options[] = {
    {"markdown", LAB_OPTION_FLAG, offsetof(struct analyze_config, markdown), .letter = 'm',
     .help = "print it as a Markdown document"},
    {"output", LAB_OPTION_STRING, offsetof(struct analyze_config, output), .value_name = "FILE",
     .letter = 'o',
     .help = "write it to this file, in the format that its name ends in: .html, .json, .md, .txt"},
    {"charts", LAB_OPTION_STRING, offsetof(struct analyze_config, charts), .value_name = "DIR",
     .help = "draw its charts into this folder: SVG, PNG and PDF, with their values as CSV"},
    {"fail", LAB_OPTION_FLAG, offsetof(struct analyze_config, fail),
     .help = "exit with 3 if it finds what it looks for: contention, a straggler"},
    {NULL},
};

#define STATUS_FOUND 3 /* not 1 or 2, which tell of trouble */

/* --- which there are --- */

static void list_analyses(const struct lab_command_call *call) {
    static const struct lab_doc_column columns[] = {{"name", "Analysis", .align = LAB_ALIGN_WHOLE},
                                                    {"summary", "What it shows"}};
    struct lab_doc *doc = lab_doc_open("Analyses", call->arena);
    lab_doc_rows(doc, "analyses", NULL, columns, 2);
    for (int i = 0; lab_analyses[i]; i++) {
        lab_doc_add(doc, lab_cell_text(lab_analyses[i]->name));
        lab_doc_add(doc, lab_cell_text(lab_analyses[i]->summary));
    }
    lab_doc_gap(doc);
    if (!call->console->quiet)
        lab_doc_text(doc, LAB_DOC_WHOLE, "gpulab analyze NAME PATH...; gpulab help analyze NAME");
    lab_doc_print(doc, call->console);
}

/* --- words --- */

/* "gap=10us" sets a key of the analysis; a file of such a name is a file all the same. */
static bool is_key(const struct lab_analysis *analysis, const char *word) {
    const char *equals = strchr(word, '=');
    if (!equals || access(word, F_OK) == 0)
        return false;
    for (const struct lab_option *row = analysis->options; row && row->name; row++)
        if (strlen(row->name) == (size_t)(equals - word) &&
            strncmp(row->name, word, (size_t)(equals - word)) == 0)
            return true;
    return false;
}

/* What is no path may be the name of a study; words of other sources are looked up with them. */
static const char *find_path(const struct lab_command_call *call,
                             const struct lab_analysis *analysis, const char *word) {
    const char *folder;
    bool named = analysis->source == LAB_ANALYSIS_OF_TRACES && access(word, F_OK) < 0 &&
                 lab_folder_resolve(word, call->arena, &folder, NULL) == 0;
    return named ? folder : word;
}

/* "gpu=1" where neither such a key is known, nor such a file, nor what stands behind a label is
 * there. */
static int refuse_mistyped(const struct lab_command_call *call, const struct lab_analysis *analysis,
                           const char *word, struct lab_err *err) {
    const char *equals = strchr(word, '='), *folder;
    if (!equals || equals == word || access(word, F_OK) == 0 || access(equals + 1, F_OK) == 0 ||
        (analysis->needs & LAB_STUDY_WITH_FILES && lab_studies_is_list(equals + 1, call->arena)) ||
        lab_folder_resolve(word, call->arena, &folder, NULL) == 0 ||
        lab_folder_resolve(equals + 1, call->arena, &folder, NULL) == 0)
        return 0;
    int count = 0;
    while (analysis->options && analysis->options[count].name)
        count++;
    const char **names = lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = analysis->options[i].name;
    const char *name = lab_arena_strndup(call->arena, word, (size_t)(equals - word));
    const char *nearest = lab_str_nearest(name, names);
    return lab_err_set(err, LAB_ERR_USER, "%s: no such key or file%s%s%s", word,
                       nearest ? "; did you mean " : "; 'gpulab help analyze ",
                       nearest ? nearest : analysis->name, nearest ? "=?" : "' lists the keys");
}

static int sort_words(const struct lab_command_call *call, const struct lab_analysis *analysis,
                      void *config, const char ***ret_paths, int *ret_count, struct lab_err *err) {
    const char **paths = lab_arena_alloc(call->arena, (size_t)call->word_count + 1, sizeof *paths);
    int count = 0;
    for (int i = 1; i < call->word_count; i++) {
        bool key = is_key(analysis, call->words[i]);
        if (!key && refuse_mistyped(call, analysis, call->words[i], err) < 0)
            return -1;
        if (!key)
            paths[count++] = find_path(call, analysis, call->words[i]);
        else if (lab_options_set_word(analysis->options, config, call->arena, call->words[i], err) <
                 0)
            return -1;
    }
    static const char *const or_what[] = {[LAB_ANALYSIS_OF_TRACES] = " or a trace",
                                          [LAB_ANALYSIS_OF_RECORDINGS] = " or a recording",
                                          [LAB_ANALYSIS_OF_STUDIES] = " or its name"};
    if (count == 0)
        return lab_err_set(err, LAB_ERR_USER,
                           "PATH is missing: gpulab analyze %s PATH..., e.g. a study's "
                           "folder%s",
                           analysis->name, or_what[analysis->source]);
    *ret_paths = paths;
    *ret_count = count;
    return 0;
}

/* --- traces --- */

struct inputs {
    struct lab_analysis_trace *items;
    int count;
};

static int read_source(const struct lab_command_call *call, const struct lab_trace_source *source,
                       struct inputs *inputs, struct lab_err *err) {
    struct lab_trace_file file;
    if (lab_trace_read(source->path, call->arena, &file, err) < 0)
        return -1;
    if (file.missing && !call->console->quiet)
        lab_console_note("%s has no table %s", source->path, file.missing);
    if (file.trace_count == 0 && !call->console->quiet)
        lab_console_note("%s has no device activity", source->path);
    for (int i = 0; i < file.trace_count; i++) {
        LAB_PUSH(inputs->items, inputs->count) = (struct lab_analysis_trace){
            .name = file.trace_count == 1 ? source->name
                                          : lab_arena_printf(call->arena, "%s/%u", source->name,
                                                             file.traces[i].process),
            .trace = &file.traces[i]};
    }
    return 0;
}

/* What a folder holds beside traces is said and left out; what was named has to be one. */
static int read_sources(const struct lab_command_call *call, const struct lab_trace_source *sources,
                        int count, struct inputs *inputs, int *ret_status, struct lab_err *err) {
    for (int i = 0; i < count; i++) {
        struct lab_err refused = LAB_ERR_INIT;
        if (read_source(call, &sources[i], inputs, &refused) == 0)
            continue;
        if (sources[i].named || count == 1)
            return lab_err_set(err, refused.code, "%s", refused.text);
        lab_console_note("%s", refused.text);
        if (refused.code != LAB_ERR_USER)
            *ret_status = lab_err_exit_status(refused.code);
    }
    if (inputs->count == 0)
        return lab_err_set(err, LAB_ERR_USER, "nothing to analyse: no device activity in %s%s",
                           count == 1 ? sources[0].path : "any of the traces",
                           count == 1 ? "" : ", or none could be read");
    return 0;
}

/* --- the command --- */

/* Pictures that can't be drawn don't take the figures away. */
static int draw_charts(const struct lab_command_call *call, const char *folder,
                       const struct lab_analysis_result *result, struct lab_err *err) {
    int count = result->chart_count;
    struct lab_plot *plots = lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *plots);
    if (count == 0) {
        lab_console_note("nothing to draw: %s is unchanged", folder);
        return 0;
    }
    struct lab_out_dir_spec spec = {.path = lab_out_dir_resolve(folder, call->arena), .keep = true};
    struct lab_scratch_dir scratch;
    struct lab_out_dir *dir;
    if (lab_out_dir_open(&spec, &dir, err) < 0)
        return -1;
    int status = lab_scratch_dir_open(call->arena, &scratch, err);
    if (status == 0) {
        lab_plot_draw(result->charts, count, scratch.path, 0, call->arena, plots);
        status = lab_plot_publish(plots, count, scratch.path, dir, err);
        lab_scratch_dir_close(&scratch);
    }
    if (status == 0)
        status = lab_out_dir_commit(dir, err);
    lab_out_dir_close(dir);
    if (status < 0)
        return -1;
    const char *missing = lab_plot_missing(plots, count, call->arena);
    for (int i = 0; i < count; i++)
        if (plots[i].drawn && !call->console->quiet)
            lab_console_note("%s/%s.png", folder, plots[i].name);
    if (missing)
        lab_console_note("%s", missing);
    return 0;
}

/* "before=A after=A": a study differs in nothing from itself. */
static void note_twice(const struct lab_command_call *call, const char *const *paths, int count) {
    for (int i = 1; i < count && !call->console->quiet; i++)
        for (int k = 0; k < i; k++) {
            const char *a = strchr(paths[i], '='), *b = strchr(paths[k], '=');
            a = a ? a + 1 : paths[i];
            b = b ? b + 1 : paths[k];
            if (strcmp(a, b) != 0)
                continue;
            lab_console_note("%s is given twice: it is read once", a);
            return;
        }
}

/* Recordings of all runs of a study repeat each other here, whatever the runs did. */
static void note_studies(const struct lab_command_call *call, const struct lab_analysis *analysis,
                         const char *const *paths, int count) {
    if (!lab_str_equal(analysis->name, "compare") || call->console->quiet ||
        !lab_report_are_studies(paths, count, call->arena))
        return;
    const char *first, *second;
    lab_recordings_split(paths[0], call->arena, &first);
    lab_recordings_split(paths[1], call->arena, &second);
    lab_console_note("the recordings of all runs are pooled; 'gpulab compare %s %s' matches points",
                     first, second);
}

/* Fills in what the analysis asks for. `traces` is the caller's to free. */
static int read_input(const struct lab_command_call *call, const struct lab_analysis *analysis,
                      const char *const *paths, int count, struct inputs *traces,
                      struct lab_analysis_input *ret_input, int *ret_status, struct lab_err *err) {
    *ret_input = (struct lab_analysis_input){0};
    if (analysis->source == LAB_ANALYSIS_OF_RECORDINGS) {
        struct lab_recording_source *sources;
        struct lab_labelled_recording *recordings;
        if (lab_recordings_find(paths, count, call->arena, &sources, &count, err) < 0 ||
            lab_recordings_read(sources, count, call->arena, &recordings,
                                &ret_input->recording_count, ret_status, err) < 0)
            return -1;
        ret_input->recordings = recordings;
        return 0;
    }
    if (analysis->source == LAB_ANALYSIS_OF_STUDIES) {
        struct lab_study_table *tables;
        note_twice(call, paths, count);
        if (lab_studies_read(paths, count, analysis->needs, call->arena, &tables,
                             &ret_input->study_count, err) < 0 ||
            lab_studies_pool(tables, &ret_input->study_count, call->arena, err) < 0)
            return -1;
        ret_input->studies = tables;
        return 0;
    }
    struct lab_trace_source *sources;
    if (lab_trace_find(paths, count, call->arena, &sources, &count, err) < 0 ||
        read_sources(call, sources, count, traces, ret_status, err) < 0)
        return -1;
    ret_input->traces = traces->items;
    ret_input->trace_count = traces->count;
    return 0;
}

static int tell_finding(const struct lab_analysis *analysis,
                        const struct lab_analysis_result *result, int *ret_status,
                        struct lab_err *err) {
    if (result->finding == LAB_ANALYSIS_NOT_REQUESTED && !result->lacks)
        return lab_err_set(err, LAB_ERR_USER,
                           "--fail: %s has no pass or fail verdict; contention and straggler have",
                           analysis->name);
    if (result->lacks)
        return lab_err_set(err, LAB_ERR_USER, "--fail: there is nothing to judge");
    if (result->finding == LAB_ANALYSIS_CANT_TELL)
        lab_console_note("--fail: inconclusive: more runs are needed");
    if (result->finding == LAB_ANALYSIS_FINDS)
        *ret_status = STATUS_FOUND;
    return 0;
}

static int analyze_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct analyze_config *config = call->config;
    if (config->markdown && call->console->json)
        return lab_err_set(err, LAB_ERR_USER, "--markdown and --json exclude each other");
    if (lab_doc_check_output(config->output, err) < 0 ||
        lab_command_check_output(call, config->output, err) < 0)
        return -1;
    if (call->word_count == 0) {
        list_analyses(call);
        return 0;
    }
    const struct lab_analysis *analysis = lab_analysis_find(call->words[0], err);
    if (!analysis)
        return -1;
    void *keys = lab_analysis_config(analysis, call->arena);
    const char **paths = NULL;
    struct inputs traces = {0};
    struct lab_analysis_input input;
    struct lab_analysis_result result;
    int count = 0;
    if (sort_words(call, analysis, keys, &paths, &count, err) < 0)
        return -1;
    int status = read_input(call, analysis, paths, count, &traces, &input, ret_status, err);
    if (status == 0)
        status = lab_analysis_run(analysis, keys, &input, call->arena, &result, err);
    if (status == 0)
        status = lab_doc_output(lab_report_analysis(analysis->name, &result, call->arena),
                                call->console, config->markdown, config->output, err);
    if (status == 0)
        note_studies(call, analysis, paths, count);
    if (status == 0 && config->charts)
        status = draw_charts(call, config->charts, &result, err);
    if (status == 0 && config->fail)
        status = tell_finding(analysis, &result, ret_status, err);
    lab_mem_free(traces.items);
    return status;
}

static const struct lab_manual_section *analyze_sections(struct lab_arena *arena, const char *word,
                                                         struct lab_err *err) {
    bool all = lab_str_equal(word, LAB_COMMAND_ALL_WORDS);
    if (word && !all && !lab_analysis_find(word, err))
        return NULL;
    int count = 0, made = 0;
    while (lab_analyses[count])
        count++;
    struct lab_manual_section *list = lab_arena_alloc(arena, (size_t)count + 1, sizeof *list);
    for (int i = 0; i < count; i++) {
        const struct lab_analysis *analysis = lab_analyses[i];
        if (word && !all && !lab_str_equal(analysis->name, word))
            continue;
        list[made++] = (struct lab_manual_section){
            .title = analysis->name,
            .text = lab_arena_printf(arena, "%s.\n\n%s", analysis->summary,
                                     analysis->description ? analysis->description : ""),
            .keys = analysis->options};
    }
    return list;
}

static const char *const *analyze_complete(struct lab_arena *arena) {
    int count = 0;
    while (lab_analyses[count])
        count++;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    for (int i = 0; i < count; i++)
        names[i] = lab_analyses[i]->name;
    return names;
}

static const struct lab_option *analyze_word_keys(const char *word, struct lab_arena *arena) {
    (void)arena;
    const struct lab_analysis *analysis = lab_analysis_find(word, NULL);
    return analysis ? analysis->options : NULL;
}

static const struct lab_manual_example examples[] = {
    {"gpulab analyze", "which analyses there are"},
    {"gpulab analyze latency quick_test",
     "all traces of the newest study of that name: copies, compute, gaps and overlap, compared"},
    {"gpulab analyze latency profile.nsys-rep window=training_step",
     "a report of Nsight Systems, within a range of your own"},
    {"gpulab analyze latency traces/ --markdown > latency.md", "a document of a folder of traces"},
    {"gpulab analyze numa numa_study", "which NUMA node to bind each device to"},
    {"gpulab analyze crossover outputs/scaling_study/2026-11-15/10-42-03",
     "which models are transfer-bound, and the crossover"},
    {"gpulab analyze numa numa_study --charts plots/", "the same, with its charts"},
    {"gpulab analyze numa numa_study --output numa.html", "the same as a page"},
    {"gpulab analyze balance recording.db", "whether its GPUs carry the same load"},
    {"gpulab analyze memory adamw=a.db sgd=b.db", "which of two optimizers takes less memory"},
    {"gpulab analyze compare before=a.db before=b.db after=c.db after=d.db",
     "what differs between two labels of two recordings each"},
    {"gpulab analyze correlate numa_study recording.db",
     "a study and a recording made at the same time"},
    {"gpulab analyze variance baseline=a.json,b.json concurrent=c.json,d.json",
     "files of tuners, with and without neighbours"},
    {"gpulab analyze summary test_matrix_results/", "all recordings below a folder, by label"},
    {NULL},
};

const struct lab_command lab_command_analyze = {
    .name = "analyze",
    .summary = "analyse studies, traces and recordings: values, verdicts and their intervals",
    .usage = "[NAME PATH... [key=value...]]",
    .description =
        "Without arguments, lists the analyses. With a name, analyses what the paths hold: "
        "files, folders, "
        "or studies by their names, as 'gpulab list' shows them. Several studies of one kind "
        "and one machine are pooled: the runs of all. Studies and recordings may be "
        "labelled: LABEL=PATH; studies with different labels, or of different programs, are not "
        "pooled.",
    .options = analyze_options,
    .config_size = sizeof(struct analyze_config),
    .max_words = -1,
    .examples = examples,
    .sections = analyze_sections,
    .complete = analyze_complete,
    .word_keys = analyze_word_keys,
    .run = analyze_run,
};
