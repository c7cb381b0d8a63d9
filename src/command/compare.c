/*
 * compare.c: `gpulab compare`: studies, benchmarks' files and baselines against the first of them,
 * or two commands run in turn.
 */
#include "command/compare/turn_process.h"

#include "analysis/comparison/comparison.h"
#include "base/tty/stop.h"
#include "doc/doc.h"
#include "load/point_sets.h"
#include "report/compare/compare.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define STATUS_SLOWER 3 /* not 1 or 2, which tell of trouble */

struct compare_config {
    bool markdown, all, list;
    const char *output, *fail_above, *save, *remove;
    struct lab_turn_options turns;
};

static const struct lab_option compare_options[] = {
    {"fail-above", LAB_OPTION_STRING, offsetof(struct compare_config, fail_above),
     .value_name = "PERCENT",
     .help =
         "exit with 3 if a larger slow-down is shown, pooled or at a point, or a point failed: 2%"},
    {"markdown", LAB_OPTION_FLAG, offsetof(struct compare_config, markdown), .letter = 'm',
     .help = "print Markdown, for a pull request"},
    {"output", LAB_OPTION_STRING, offsetof(struct compare_config, output), .letter = 'o',
     .value_name = "FILE",
     .help = "write it to this file, in the format that its name ends in: .html, .json, .md, "
             ".txt; compare reads the .json again"},
    {"all", LAB_OPTION_FLAG, offsetof(struct compare_config, all), .letter = 'a',
     .help = "list all points and all settings that differ"},
    {"runs", LAB_OPTION_INT, offsetof(struct compare_config, turns.runs), .letter = 'r', .min = 0,
     .max = 1000000, .fallback = "0", .value_name = "N",
     .help = "of each command, in pairs; 0 = until 2% would be detected, within the budget"},
    {"budget", LAB_OPTION_DURATION, offsetof(struct compare_config, turns.budget_s),
     .fallback = "60s", .min = 0, .max = 1e6, .help = "start no further runs after this time"},
    {"warmup", LAB_OPTION_INT, offsetof(struct compare_config, turns.warmup), .min = 0, .max = 1000,
     .fallback = "1", .value_name = "N", .help = "runs of each command before those that count"},
    {"save", LAB_OPTION_STRING, offsetof(struct compare_config, save), .value_name = "NAME",
     .help = "save the study or file as a baseline of this name"},
    {"list", LAB_OPTION_FLAG, offsetof(struct compare_config, list), .help = "list the baselines"},
    {"remove", LAB_OPTION_STRING, offsetof(struct compare_config, remove), .value_name = "NAME",
     .help = "remove a baseline"},
    {NULL},
};

/* --- baselines --- */

static void list_baselines(const struct lab_command_call *call) {
    static const struct lab_doc_column columns[] = {{"name", "Baseline", .align = LAB_ALIGN_WHOLE},
                                                    {"source", "Saved from"},
                                                    {"points", "Points", LAB_UNIT_COUNT}};
    const char *const *names = lab_baseline_names(call->arena);
    struct lab_doc *doc = lab_doc_open("Baselines", call->arena);
    lab_doc_rows(doc, "baselines", NULL, columns, 3);
    for (int i = 0; names[i]; i++) {
        struct lab_point_set *sets;
        struct lab_err err = LAB_ERR_INIT;
        int count;
        bool read = lab_point_sets_read(names[i], call->arena, &sets, &count, &err) == 0;
        lab_doc_cell(doc, "%s", names[i]);
        lab_doc_cell(doc, "%s", read ? sets->source : err.text);
        lab_doc_figure(doc, read ? sets->point_count : (double)NAN);
    }
    lab_doc_gap(doc);
    if (!names[0])
        lab_doc_text(doc, LAB_DOC_FREE, "No baseline: gpulab compare --save NAME STUDY saves one.");
    lab_doc_print(doc, call->console);
}

static void note_baseline(const struct compare_config *config, bool replaces) {
    LAB_AUTO(str, name);
    if (!config->save) {
        lab_console_note("baseline '%s' removed", config->remove);
        return;
    }
    lab_str_add_shell(&name, config->save);
    lab_console_note("baseline '%s' %s: gpulab compare %s STUDY", config->save,
                     replaces ? "replaced" : "saved", name.text);
}

/* 1 = it was about baselines. */
static int tend_baselines(const struct lab_command_call *call, struct lab_err *err) {
    const struct compare_config *config = call->config;
    int asked = config->list + (config->save != NULL) + (config->remove != NULL);
    if (asked == 0)
        return 0;
    if (asked > 1 || call->rest || call->word_count != (config->save ? 1 : 0))
        return lab_err_set(err, LAB_ERR_USER,
                           "one of: compare --save NAME STUDY, compare --list, "
                           "compare --remove NAME");
    bool replaces = config->save && lab_baseline_is_there(config->save, call->arena);
    if (config->list)
        list_baselines(call);
    else if (config->remove ? lab_baseline_remove(config->remove, call->arena, err) < 0
                            : lab_baseline_save(config->save, call->words[0], call->arena, err) < 0)
        return -1;
    else if (!call->console->quiet)
        note_baseline(config, replaces);
    return 1;
}

/* --- what is compared --- */

static int read_sets(const struct lab_command_call *call, struct lab_point_set **ret_sets,
                     int *ret_count, struct lab_err *err) {
    struct lab_point_set *sets = NULL;
    int count = 0;
    for (int i = 0; i < call->word_count; i++) {
        struct lab_point_set *own, *more;
        int own_count;
        if (lab_point_sets_read(call->words[i], call->arena, &own, &own_count, err) < 0)
            return -1;
        more = lab_arena_alloc(call->arena, (size_t)(count + own_count), sizeof *more);
        for (int k = 0; k < count + own_count; k++)
            more[k] = k < count ? sets[k] : own[k - count];
        sets = more;
        count += own_count;
    }
    if (count < 2)
        return lab_err_set(err, LAB_ERR_USER,
                           "A and B are missing: gpulab compare A B, each a study, a baseline "
                           "or a benchmark's JSON; or gpulab compare -- COMMAND -- COMMAND");
    *ret_sets = sets;
    *ret_count = count;
    return 0;
}

/* "2%" = 0.02; NaN = not given. */
static int read_limit(const char *text, double *ret_limit, struct lab_err *err) {
    char *end;
    *ret_limit = NAN;
    if (!text)
        return 0;
    double percent = strtod(text, &end);
    if (end == text || !lab_str_equal(end, "%") || !(percent >= 0 && percent <= 1000))
        return lab_err_set(err, LAB_ERR_USER, "--fail-above %s: write a percentage, such as 2%%",
                           text);
    *ret_limit = percent / 100;
    return 0;
}

/* --- the command --- */

static int compare(const struct lab_command_call *call, struct lab_compare_report *report,
                   const struct lab_turns *turns, int *ret_status, struct lab_err *err) {
    struct lab_comparison *comparisons;
    if (lab_comparisons_make(report->sets, report->set_count, call->arena, &comparisons, err) < 0)
        return -1;
    report->comparisons = comparisons;
    struct lab_doc *doc = lab_doc_open("Comparison", call->arena);
    if (lab_report_add_compare(doc, report))
        *ret_status = STATUS_SLOWER;
    if (turns)
        lab_turn_process_add(doc, turns);
    const struct compare_config *config = call->config;
    return lab_doc_output(doc, call->console, config->markdown, config->output, err);
}

static int compare_commands(const struct lab_command_call *call, struct lab_compare_report *report,
                            int *ret_status, struct lab_err *err) {
    const struct compare_config *config = call->config;
    struct lab_turns turns;
    if (call->word_count)
        return lab_err_set(err, LAB_ERR_USER, "%s before '--': name studies or commands",
                           call->words[0]);
    int result = lab_turn_process_run(call, &config->turns, &turns, err);
    bool stopped = result > 0;
    if (stopped && turns.count == 0)
        lab_console_note("stopped before each command had run twice");
    else if (result >= 0) {
        report->sets = lab_turns_sets(&turns, call->arena);
        report->set_count = 2;
        report->letters = true;
        result = compare(call, report, &turns, ret_status, err);
    }
    if (stopped)
        *ret_status = lab_stop_signal() ? 128 + lab_stop_signal() : 1;
    lab_turns_release(&turns);
    return result < 0 ? -1 : 0;
}

static int compare_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct compare_config *config = call->config;
    bool here = !config->markdown && !config->output && !call->console->quiet;
    struct lab_compare_report report = {.all = config->all,
                                        .hint = here ? " --all lists them." : ""};
    struct lab_point_set *sets = NULL;
    if (config->markdown && call->console->json)
        return lab_err_set(err, LAB_ERR_USER, "--markdown and --json exclude each other");
    int baselines = tend_baselines(call, err);
    if (baselines)
        return baselines < 0 ? -1 : 0;
    if (read_limit(config->fail_above, &report.fail_above, err) < 0 ||
        lab_doc_check_output(config->output, err) < 0 ||
        lab_command_check_output(call, config->output, err) < 0)
        return -1;
    if (call->rest)
        return compare_commands(call, &report, ret_status, err);
    if (read_sets(call, &sets, &report.set_count, err) < 0)
        return -1;
    report.sets = sets;
    return compare(call, &report, NULL, ret_status, err);
}

static const struct lab_manual_example examples[] = {
    {"gpulab compare outputs/numa_study/2026-11-15 outputs/numa_study/2026-11-16",
     "two studies, point by point and pooled"},
    {"gpulab compare --save main numa_study", "keep the newest numa_study as baseline 'main'"},
    {"gpulab compare main numa_study --fail-above 2%",
     "against the baseline; exit status 3 if a larger slow-down is shown"},
    {"gpulab compare main numa_study --markdown > comment.md", "a table for a pull request"},
    {"gpulab compare -- ./old --size 8 -- ./new --size 8", "two commands, run in turn"},
    {"gpulab compare --budget 5min -o ab.json -- ./old -- ./new",
     "longer; 'gpulab compare ab.json' shows it again"},
    {"gpulab compare a1.json,a2.json,a3.json b1.json,b2.json,b3.json",
     "three runs each of nvbench, nccl-tests or nvbandwidth"},
    {NULL},
};

static const char *const *compare_complete(struct lab_arena *arena) {
    const char *const *lists[] = {lab_baseline_names(arena), lab_command_studies(arena)};
    int count = 0;
    for (int l = 0; l < 2; l++)
        for (int i = 0; lists[l][i]; i++)
            count++;
    const char **names = lab_arena_alloc(arena, (size_t)count + 1, sizeof *names);
    count = 0;
    for (int l = 0; l < 2; l++)
        for (int i = 0; lists[l][i]; i++)
            names[count++] = lists[l][i];
    return names;
}

const struct lab_command lab_command_compare = {
    .name = "compare",
    .summary = "compare studies, benchmark files or two commands: faster, slower or the same",
    .usage = "A B [C...] | -- COMMAND -- COMMAND",
    .description =
        "A is the reference. A, B and C are each a study (folder or name), a baseline, or a JSON "
        "file. It reads JSON of nvbench (--json), nccl-tests (-J), nvbandwidth (--json) and of "
        "compare itself. Files in a list, a.json,b.json, are repeated runs of one benchmark.\n\n"
        "Points are matched by what they ran: workload, model, device, NUMA node, settings. A "
        "setting that is constant in each study but differs between them is listed, not matched. "
        "The change pooled over all shared points comes first. Then come differences in machine, "
        "software and config, points that changed, and points that only one side has.\n\n"
        "Slower and faster: the 95% interval over runs excludes 0, and the change is above 0.5%. "
        "Same: a change above 2% is excluded. All else is inconclusive. Verdicts of points are "
        "corrected for their number. One run on a side gives values and no verdict. Intervals "
        "don't cover changes between two studies, such as temperature: run small changes in "
        "turn.\n\n"
        "Commands run in turn, A B B A, each run a fresh process, its output discarded. Time is "
        "from start to exit. SM clock, power and temperature of GPUs are recorded during each run. "
        "It ends when 2% would be detected (80% power, at least 10 runs each), or with the "
        "budget. A command that fails ends the comparison.\n\n"
        "A program's reported metrics, such as final_loss, are compared by point: better or worse. "
        "Metrics of unknown direction are left out.\n\n"
        "--fail-above compares the near end of the interval of a slower or worse verdict with the "
        "limit. A point that failed in B and not in A exceeds any limit. "
        "Baselines are copies of the values: they stay when the study is deleted.",
    .options = compare_options,
    .config_size = sizeof(struct compare_config),
    .max_words = -1,
    .takes_rest = true,
    .examples = examples,
    .complete = compare_complete,
    .run = compare_run,
};
