/*
 * estimate.c: `gpulab estimate`: how long studies take, run by run: those that run or were
 * interrupted, or one that hasn't begun. What a word means is decided as `run` and `status` would:
 * the name of a study and key=value are a plan, anything else is a study on disk.
 */
#include "command/command.h"

#include "analysis/analysis.h"
#include "device/device.h"
#include "load/study_watch.h"
#include "machine/machine.h"
#include "report/estimate_view.h"
#include "run/run_study.h"

#include <stddef.h>
#include <string.h>

#define STUDIES_SHOWN 10
#define RUNS_SHOWN    50

struct estimate_config {
    bool multirun, all;
    const char *config_dir;
};

static const struct lab_option estimate_options[] = {
    {"multirun", LAB_OPTION_FLAG, offsetof(struct estimate_config, multirun), .letter = 'm',
     .help = "allow overrides that stand for several values (key=1,2,3): a sweep"},
    {"config-dir", LAB_OPTION_STRING, offsetof(struct estimate_config, config_dir),
     .value_name = "DIR", .help = "look for configs here first, then in ~/.config/gpulab"},
    {"all", LAB_OPTION_FLAG, offsetof(struct estimate_config, all),
     .help = "every unfinished study and every run, however many"},
    {NULL},
};

/* --- output --- */

static void print(const struct lab_command_call *call, struct lab_report_estimate *estimates,
                  int count, bool more) {
    const struct estimate_config *config = call->config;
    struct lab_doc *doc = lab_doc_open("Estimates", call->arena);
    lab_doc_begin_list(doc, (struct lab_doc_list){.key = "estimates"});
    for (int i = 0; i < count; i++) {
        estimates[i].rows_max = config->all ? 0 : RUNS_SHOWN;
        lab_doc_begin(doc, (struct lab_doc_section){.key = NULL});
        lab_report_add_estimate(doc, &estimates[i]);
        lab_doc_end(doc);
    }
    lab_doc_end(doc);
    lab_doc_gap(doc);
    if (more)
        lab_doc_text(doc, LAB_DOC_WHOLE, "… and older ones that are unfinished (--all)");
    if (count == 0)
        lab_doc_text(doc, LAB_DOC_WHOLE, "No study is running, and none was interrupted.");
    if (count == 0 && !call->console->quiet)
        lab_doc_text(doc, LAB_DOC_WHOLE, "'gpulab estimate quick_test' estimates one.");
    lab_doc_print(doc, call->console);
}

/* --- studies on disk --- */

static int estimate_watched(const struct lab_command_call *call, struct lab_study_watch *watch,
                            struct lab_err *err) {
    struct lab_report_estimate *estimates =
        lab_arena_alloc(call->arena, (size_t)watch->count + 1, sizeof *estimates);
    for (int i = 0; i < watch->count; i++) {
        struct lab_study_view view;
        if (lab_study_watch_read(watch, i, call->arena, &view, err) < 0)
            return -1;
        estimates[i] = lab_estimate_of_study(&view, watch->items[i].history, call->arena);
        struct lab_report_estimate_memory *memory;
        estimates[i].memory_count = lab_estimate_memory(view.file, &memory);
        lab_study_file_close(view.file);
        estimates[i].memory = memory;
    }
    print(call, estimates, watch->count, watch->more);
    return 0;
}

static int estimate_studies(const struct lab_command_call *call, const char *word,
                            struct lab_err *err) {
    const struct estimate_config *config = call->config;
    struct lab_study_watch watch;
    if (lab_study_watch_open(word, config->all ? 0 : STUDIES_SHOWN, call->arena, &watch, err) < 0)
        return -1;
    int result = estimate_watched(call, &watch, err);
    lab_study_watch_close(&watch);
    return result;
}

/* --- plans --- */

/* The command that would start it. */
static const char *run_command(const struct lab_command_call *call) {
    const struct estimate_config *config = call->config;
    const char **words = lab_arena_alloc(call->arena, (size_t)call->word_count + 4, sizeof *words);
    int count = 0;
    if (config->multirun)
        words[count++] = "-m";
    if (config->config_dir)
        words[count++] = lab_arena_printf(call->arena, "--config-dir=%s", config->config_dir);
    if (lab_command_device(call))
        words[count++] = lab_arena_printf(call->arena, "--device=%s", call->shared->device);
    for (int i = 0; i < call->word_count; i++)
        words[count++] = call->words[i];
    return lab_run_command(words, call->arena);
}

static int estimate_plan(const struct lab_command_call *call, const struct lab_config_path *path,
                         struct lab_err *err) {
    const struct estimate_config *config = call->config;
    struct lab_sweep sweep;
    struct lab_machine *machine;
    struct lab_plan plan;
    if (lab_command_sweep(call, path, config->multirun, &sweep, err) < 0 ||
        lab_machine_open(NULL, &machine, err) < 0)
        return -1;
    int result = lab_command_plan(call, path, &sweep, machine, NULL, &plan, err);
    struct lab_history *history = result == 0 ? lab_command_history(call, &plan, err) : NULL;
    if (history) {
        struct lab_report_estimate estimate = lab_estimate_of_plan(&plan, history, call->arena);
        estimate.command = run_command(call);
        print(call, &estimate, 1, false);
        lab_history_close(history);
    }
    lab_machine_close(machine);
    return history ? 0 : -1;
}

/* --- which --- */

/* Whether the words are a study on disk. A single one that is neither is refused as a study's name
 * would be, unless only a path can look like it. */
static bool is_on_disk(const struct lab_command_call *call, const struct lab_config_path *path) {
    const char *word = call->words[0], *found;
    if (call->word_count != 1 || lab_run_is_study(path, word, call->arena))
        return false;
    if (lab_folder_resolve(word, call->arena, &found, NULL) == 0)
        return true;
    return strchr(word, '/') && !strpbrk(word, "=~,()");
}

static int estimate_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct estimate_config *config = call->config;
    struct lab_config_path path = lab_run_path(config->config_dir, call->arena);
    if (config->config_dir)
        lab_device_set_folders(path.folders);
    if (call->word_count == 0)
        return estimate_studies(call, NULL, err);
    if (is_on_disk(call, &path))
        return estimate_studies(call, call->words[0], err);
    return estimate_plan(call, &path, err);
}

static const struct lab_manual_example examples[] = {
    {"gpulab estimate", "time left for all studies that run or were interrupted"},
    {"gpulab estimate outputs/numa_locality_study/2026-11-15/10-42-03", "of one of them"},
    {"gpulab estimate quick_test experiment.test.num_samples=5000",
     "what a study would take before it starts"},
    {"gpulab estimate -m scaling_study experiment.test.compile_model=true,false",
     "the same of a sweep"},
    {NULL},
};

const struct lab_command lab_command_estimate = {
    .name = "estimate",
    .summary = "show how long studies take, run by run",
    .usage = "[PATH | STUDY [key=value...]]",
    .description =
        "Without arguments, or with a study's folder, it shows for each run its progress, the time "
        "it "
        "took or has left, and the basis. The basis is its own 'progress' from 5% on. Before that "
        "it is the 'same run', the same keys 'scaled' to its iterations, other keys by their "
        "'work', or 'similar' runs. The study's own runs outweigh earlier studies. Below: memory "
        "of each device, in use and peak.\n"
        "\n"
        "With a study's name and keys, as 'gpulab run' takes them, it shows what the study would "
        "take of time and disk. Where nothing like its runs is known, a few short runs are "
        "measured first, in some seconds; not with --quiet. Simulated studies are estimated in "
        "real seconds. A name that a study and a folder share means the study; "
        "'gpulab estimate ./NAME' means the folder.",
    .options = estimate_options,
    .config_size = sizeof(struct estimate_config),
    .uses_device = true,
    .max_words = -1,
    .examples = examples,
    .complete = lab_command_studies,
    .word_keys = lab_command_study_keys,
    .run = estimate_run,
};
