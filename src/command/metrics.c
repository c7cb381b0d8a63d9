/*
 * metrics.c: `gpulab metrics reread`: reads the metrics of a study's programs anew from the logs
 * that it keeps, by the study's settings or by other patterns.
 */
#include "command/command.h"

#include "doc/doc.h"
#include "load/study_view.h"
#include "run/reread.h"

#include <math.h>
#include <stddef.h>

struct metrics_config {
    const char *patterns; /* a line each; NULL = the study's */
    bool dry_run, force;
};

static const struct lab_option metrics_options[] = {
    {"pattern", LAB_OPTION_STRING, offsetof(struct metrics_config, patterns), .letter = 'p',
     .value_name = "PATTERN", .repeats = true,
     .help = "read by this in place of experiment.metrics.patterns; may be given several times"},
    {"dry-run", LAB_OPTION_FLAG, offsetof(struct metrics_config, dry_run), .letter = 'n',
     .help = "show what would be read and lost, and change nothing"},
    {"force", LAB_OPTION_FLAG, offsetof(struct metrics_config, force),
     .help = "replace values even where some are not read again"},
    {NULL},
};

/* --- words --- */

static const char *const *split_lines(const char *text, struct lab_arena *arena) {
    const char **lines = NULL;
    int count = 0;
    for (const char *at = text; at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, "\n");
        LAB_ADD(lines, count, arena) = lab_arena_strndup(arena, at, length);
        at += length;
    }
    LAB_ADD(lines, count, arena) = NULL;
    return lines;
}

/* Steps are counted; epochs may have fractions. */
static bool are_steps_whole(const struct lab_reread *reread) {
    for (int i = 0; i < reread->metric_count; i++)
        if (reread->metrics[i].step != floor(reread->metrics[i].step) &&
            !isnan(reread->metrics[i].step))
            return false;
    return true;
}

static void add_rows(struct lab_doc *doc, const struct lab_reread *reread,
                     struct lab_arena *arena) {
    const struct lab_doc_column columns[] = {
        {"run", "Run"},
        {"metric", "Metric", .align = LAB_ALIGN_WHOLE},
        {"unit", "Unit", .optional = true},
        {"rank", "Rank", LAB_UNIT_COUNT, .yields = 1},
        {"values", "Values", LAB_UNIT_COUNT, .yields = 2},
        {"last", "Last", LAB_UNIT_NUMBER},
        {"step", "Step", are_steps_whole(reread) ? LAB_UNIT_COUNT : LAB_UNIT_NUMBER},
    };
    int count = sizeof columns / sizeof *columns;
    lab_doc_rows(doc, "metrics", NULL,
                 lab_arena_copy(arena, columns, (size_t)count, sizeof *columns), count);
    for (int i = 0; i < reread->metric_count; i++) {
        const struct lab_reread_metric *metric = &reread->metrics[i];
        lab_doc_add(doc, lab_cell_text(metric->run));
        lab_doc_add(doc, lab_cell_text(metric->name));
        lab_doc_add(doc, lab_cell_text(metric->unit));
        lab_doc_add(doc, lab_cell_figure(metric->rank < 0 ? (double)NAN : metric->rank));
        lab_doc_add(doc, lab_cell_figure((double)metric->values));
        lab_doc_add(doc, lab_cell_figure(metric->last));
        lab_doc_add(doc, lab_cell_figure(metric->step));
    }
}

/* What a reader would not expect, each once: how many runs, and which is the first. */
static void add_warning(struct lab_doc *doc, int count, const char *first, const char *what) {
    if (count > 0)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "%d run%s (%s%s): %s", count,
                     count == 1 ? "" : "s", first, count == 1 ? "" : ", …", what);
}

static void add_warnings(struct lab_doc *doc, const struct lab_reread *reread) {
    int missing = 0, cut = 0, capped = 0, none = 0, split = 0, clipped = 0;
    const char *first[6] = {0};
    for (int i = reread->run_count - 1; i >= 0; i--) {
        const struct lab_reread_run *run = &reread->runs[i];
        bool facts[] = {run->missing, run->cut,    run->capped, !run->missing && !run->values,
                        run->split,   run->clipped};
        int *counts[] = {&missing, &cut, &capped, &none, &split, &clipped};
        for (int k = 0; k < 6; k++)
            if (facts[k]) {
                *counts[k] += 1;
                first[k] = run->id;
            }
    }
    add_warning(doc, missing, first[0], "no log; its metrics stay as they are");
    add_warning(doc, cut, first[1], "the log holds only the first part of the output");
    add_warning(doc, capped, first[2], "only the first 1,000,000 values are kept");
    add_warning(doc, none, first[3], "no metric in the log");
    add_warning(doc, split, first[4], "lines of several ranks ran together; they were split");
    add_warning(doc, clipped, first[5], "lines were too long, or had too many numbers, to be read");
    if (reread->unmatched)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING, "the pattern '%s' reads no line",
                     reread->unmatched);
}

static void print(const struct lab_command_call *call, const char *folder,
                  const struct lab_reread *reread) {
    const struct metrics_config *config = call->config;
    struct lab_doc *doc = lab_doc_open("Metrics", call->arena);
    const char *shown = lab_study_view_shorten(folder, call->arena);
    int64_t values = 0, earlier = 0, bytes = 0, lost = 0;
    for (int i = 0; i < reread->run_count; i++) {
        values += reread->runs[i].values;
        earlier += reread->runs[i].missing ? 0 : reread->runs[i].earlier;
        bytes += reread->runs[i].bytes;
        lost += reread->runs[i].lost;
    }
    LAB_AUTO(str, size);
    lab_str_add_bytes_binary(&size, (double)bytes);
    lab_doc_data(doc, "study", lab_value_string(call->arena, folder));
    lab_doc_data(doc, "written", lab_value_bool(call->arena, !config->dry_run));
    lab_doc_data(doc, "log_bytes", lab_value_int(call->arena, bytes));
    lab_doc_data(doc, "values_read", lab_value_int(call->arena, values));
    lab_doc_data(doc, "values_before", lab_value_int(call->arena, earlier));
    lab_doc_data(doc, "values_lost", lab_value_int(call->arena, lost));
    add_rows(doc, reread, call->arena);
    lab_doc_gap(doc);
    add_warnings(doc, reread);
    if (lost > 0)
        lab_doc_said(doc, "Warning:", LAB_DOC_WARNING,
                     "%lld of %lld values %s: they were not read again", (long long)lost,
                     (long long)earlier, config->dry_run ? "would be lost" : "were lost");
    lab_doc_text(doc, LAB_DOC_WHOLE, "%s: %lld values %s %lld, from %s of logs of %d run%s.", shown,
                 (long long)values, config->dry_run ? "would replace" : "replaced",
                 (long long)earlier, size.text, reread->run_count,
                 reread->run_count == 1 ? "" : "s");
    if (config->dry_run)
        lab_doc_text(doc, LAB_DOC_WHOLE, "Nothing was changed: leave --dry-run out.");
    else
        lab_doc_text(doc, LAB_DOC_WHOLE,
                     "Values that were not read during the run have a step but no time. "
                     "Next: gpulab report %s",
                     shown);
    lab_doc_print(doc, call->console);
}

/* --- the command --- */

static int metrics_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct metrics_config *config = call->config;
    struct lab_reread_request request = {.dry_run = config->dry_run, .force = config->force};
    struct lab_reread reread;
    if (!lab_str_equal(call->words[0], "reread"))
        return lab_err_set(err, LAB_ERR_USER, "metrics: unknown '%s', must be reread",
                           call->words[0]);
    if (config->patterns)
        request.patterns = split_lines(config->patterns, call->arena);
    if (lab_folder_resolve(call->word_count > 1 ? call->words[1] : NULL, call->arena,
                           &request.folder, err) < 0 ||
        lab_reread(&request, call->arena, &reread, err) < 0)
        return -1;
    print(call, request.folder, &reread);
    *ret_status = 0;
    return 0;
}

static const char *const *metrics_complete(struct lab_arena *arena) {
    static const char *const actions[] = {"reread", NULL};
    (void)arena;
    return actions;
}

const struct lab_command lab_command_metrics = {
    .name = "metrics",
    .summary = "read the metrics of your own program again from its logs",
    .usage = "reread [STUDY]",
    .description =
        "Reads what the programs of a study printed, as its logs have it, by the study's settings\n"
        "or by the patterns given. The values replace those that the runs have, all or none.\n"
        "STUDY is a folder or the beginning of a study's name, as for 'gpulab show'; without it\n"
        "the newest. A study that runs is refused.\n"
        "\n"
        "A log has no times: a value that was read during the run keeps its own, others have\n"
        "their step alone. A log that reached its limit holds the first part of the output. Where\n"
        "a pattern reads no line, nothing is changed. Values that are not read again would be\n"
        "lost: --dry-run counts them, and only --force drops them.",
    .options = metrics_options,
    .config_size = sizeof(struct metrics_config),
    .min_words = 1,
    .max_words = 2,
    .examples =
        (const struct lab_manual_example[]){
            {"gpulab metrics reread test_matrix --dry-run", "what the logs hold, nothing changed"},
            {"gpulab metrics reread --pattern 'objective {objective} at {step}'",
             "the newest study, by a pattern"},
            {NULL},
        },
    .complete = metrics_complete,
    .run = metrics_run,
};
