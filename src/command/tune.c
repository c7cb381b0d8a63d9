/*
 * tune.c: `gpulab tune KERNEL`: the fastest configuration of a kernel on this device, kept for
 * later runs. The command reads the line; what is done lies in tune/tune_run.c and tune/tune.h.
 */
#include "command/command.h"

#include "base/json.h"
#include "report/tuning.h"
#include "store/tuning/timing_file.h"
#include "tune/tune_run.h"

#include <stddef.h>
#include <time.h>
#include <unistd.h>

struct tune_config {
    const char *strategy;
    double budget_s;
    int64_t seed;
    bool again, warm;
};

static const struct lab_option tune_options[] = {
    {"strategy", LAB_OPTION_CHOICE, offsetof(struct tune_config, strategy),
     .fallback = "successive_halving", .choices = lab_tune_strategies, .letter = 's',
     .help = "which configurations are timed, and how often: successive halving of all, all "
             "equally often, or a random quarter"},
    {"budget", LAB_OPTION_DURATION, offsetof(struct tune_config, budget_s), .fallback = "60s",
     .min = 0.1, .max = 86400, .letter = 'b', .value_name = "TIME",
     .help = "total time; the final round gets the rest"},
    {"again", LAB_OPTION_FLAG, offsetof(struct tune_config, again),
     .help = "tune even if the result is cached, and restart an interrupted tuning"},
    {"warm", LAB_OPTION_FLAG, offsetof(struct tune_config, warm),
     .help = "keep the caches warm; otherwise they are flushed before each timing"},
    {"seed", LAB_OPTION_INT, offsetof(struct tune_config, seed), .fallback = "42", .min = 0,
     .max = 0x1p53, .value_name = "N", .help = "of the data and of the order"},
    {NULL},
};

static bool is_tunable(const struct lab_workload *workload) {
    return workload->launch && workload->configure;
}

static const char *const *tune_complete(struct lab_arena *arena) {
    return lab_command_topic_names(lab_command_workloads(true, arena), arena);
}

/* --- a request out of the command line --- */

static const struct lab_workload *find_kernel(const char *name, struct lab_arena *arena,
                                              struct lab_err *err) {
    const struct lab_workload *workload = lab_workload_find(name, NULL);
    if (workload && is_tunable(workload))
        return workload;
    const char *const *names = tune_complete(arena);
    const char *nearest = workload ? NULL : lab_str_nearest(name, names);
    LAB_AUTO(str, text);
    lab_str_add_list(&text, names, "and");
    if (workload)
        lab_err_set(err, LAB_ERR_USER, "%s has nothing to tune; the kernels are %s", name,
                    text.text);
    else
        lab_err_set(err, LAB_ERR_USER, "unknown kernel '%s'%s%s%s; there are %s", name,
                    nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "",
                    text.text);
    return NULL;
}

static int make_request(const struct lab_command_call *call, struct lab_tune_request *ret_request,
                        struct lab_err *err) {
    const struct tune_config *config = call->config;
    const struct lab_workload *workload = find_kernel(call->words[0], call->arena, err);
    if (!workload)
        return -1;
    void *keys = lab_workload_config(workload, call->arena);
    for (int i = 1; i < call->word_count; i++) {
        if (lab_str_starts(call->words[i], LAB_WORKLOAD_CONFIG "="))
            return lab_err_set(err, LAB_ERR_USER,
                               "tune %s: %s: the tuner itself chooses the configuration",
                               workload->name, call->words[i]);
        if (lab_options_set_word(workload->options, keys, call->arena, call->words[i], err) < 0)
            return lab_err_context(err, "tune %s", workload->name);
    }
    if (workload->check && workload->check(keys, err) < 0)
        return lab_err_context(err, "tune %s", workload->name);
    struct lab_style style = lab_console_style(call->console->err_is_terminal, STDERR_FILENO);
    *ret_request = (struct lab_tune_request){
        .workload = workload,
        .config = keys,
        .selector = call->shared->device,
        .budget_s = config->budget_s,
        .seed = (uint64_t)config->seed,
        .again = config->again,
        .warm = config->warm,
        .shown = lab_console_draws(call->console),
        .columns = style.columns,
        .unicode = style.unicode,
    };
    return lab_tune_strategy_parse(config->strategy, &ret_request->strategy, err);
}

/* --- the answer --- */

/* What an earlier tuning found: its own JSON, or the entry where it was imported without. */
static struct lab_value *cached_value(const struct lab_command_call *call,
                                      const struct lab_tune_outcome *outcome) {
    const struct lab_tuning_entry *entry = &outcome->entry;
    struct lab_arena *arena = call->arena;
    struct lab_value *map = NULL;
    if (*entry->result)
        lab_json_parse(entry->result, strlen(entry->result), NULL, arena, &map, NULL);
    if (!map || map->type != LAB_VALUE_MAP)
        map = lab_timing_file_imported(entry, lab_workload_find(call->words[0], NULL)->name,
                                       outcome->device, arena);
    lab_value_set_bool(arena, map, "from_cache", true);
    lab_value_set_float(arena, map, "lookup_ms", 1e3 * outcome->lookup_s);
    lab_value_set_float(arena, map, "tuned_unix_s",
                        (double)entry->tuned_wall_ns / (double)LAB_NS_PER_S);
    return map;
}

static void add_cached(struct lab_doc *doc, const struct lab_command_call *call,
                       const struct lab_tuning_entry *entry) {
    LAB_AUTO(str, when);
    LAB_AUTO(str, time);
    lab_unit_add((double)entry->tuned_wall_ns / (double)LAB_NS_PER_S, LAB_UNIT_DATE, NULL, &when);
    lab_str_add_time(&time, entry->time_s);
    lab_doc_text(doc, LAB_DOC_WHOLE, "%s on %s was tuned on %s: %s, %s%s", entry->shape,
                 entry->device, when.text, entry->config, time.text,
                 entry->certain ? "." : ", though others are statistically indistinguishable.");
    if (!call->console->quiet)
        lab_doc_text(doc, LAB_DOC_WHOLE, "The same command with --again tunes again.");
}

static void print_outcome(const struct lab_command_call *call,
                          const struct lab_tune_outcome *outcome) {
    struct lab_doc *doc = lab_doc_open("Tuning", call->arena);
    if (outcome->cached) {
        lab_doc_data(doc, NULL, cached_value(call, outcome));
        add_cached(doc, call, &outcome->entry);
    } else {
        lab_doc_data(doc, NULL, lab_timing_file_value(&outcome->result, call->arena));
        lab_report_add_tuning(doc, &outcome->result);
        lab_doc_gap(doc);
        if (outcome->kept && !call->console->quiet)
            lab_doc_text(doc, LAB_DOC_PLAIN,
                         "Kept: 'gpulab bench' and 'gpulab run' use it from now on.");
        lab_doc_gap(doc);
        if (outcome->result.interrupted && !call->console->quiet)
            lab_doc_text(doc, LAB_DOC_PLAIN, "The same command resumes.");
    }
    lab_doc_print(doc, call->console);
}

static int tune_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    if (call->word_count == 0) {
        lab_command_print_topics(call, (const char *const[]){"kernels", "kernel", "help"},
                                 lab_command_workloads(true, call->arena), 23,
                                 "'gpulab tune KERNEL' finds its fastest configuration here.");
        return 0;
    }
    struct lab_tune_request request;
    struct lab_tune_outcome outcome;
    if (make_request(call, &request, err) < 0 ||
        lab_tune_run(&request, call->arena, &outcome, err) < 0)
        return -1;
    if (outcome.note)
        lab_console_note("%s", outcome.note);
    lab_command_note_devices(call, outcome.selected, NULL);
    print_outcome(call, &outcome);
    if (!outcome.cached && outcome.result.interrupted)
        *ret_status = lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return 0;
}

/* --- manual --- */

static const struct lab_option *tune_word_keys(const char *word, struct lab_arena *arena) {
    const struct lab_workload *workload = find_kernel(word, arena, NULL);
    return workload ? workload->options : NULL;
}

static const struct lab_manual_section *tune_sections(struct lab_arena *arena, const char *word,
                                                      struct lab_err *err) {
    if (!word || lab_str_equal(word, LAB_COMMAND_ALL_WORDS))
        return lab_command_topic_section("Kernels", lab_command_workloads(true, arena),
                                         "'gpulab help tune KERNEL' shows the keys of one.", arena);
    const struct lab_workload *workload = find_kernel(word, arena, err);
    if (!workload)
        return NULL;
    struct lab_manual_section *one = lab_arena_alloc(arena, 2, sizeof *one);
    *one = (struct lab_manual_section){lab_arena_printf(arena, "Kernel %s", workload->name),
                                       lab_arena_printf(arena, "%s.", workload->help),
                                       workload->options};
    return one;
}

static const struct lab_manual_example examples[] = {
    {"gpulab tune flash_attention_v2 seq=2048 causal=true",
     "the fastest configuration for this shape on the best device here"},
    {"gpulab tune gemm m=4096 n=4096 k=4096 --strategy exhaustive --budget 5min",
     "time all of them equally often"},
    {"gpulab tune softmax --device cpu:0/2 --json", "for a program to read"},
    {NULL},
};

const struct lab_command lab_command_tune = {
    .name = "tune",
    .summary = "find a kernel's fastest configuration on a device and keep it",
    .usage = "[KERNEL [key=value...]]",
    .description =
        "Verifies each configuration against double precision, then times the correct ones in turn "
        "with cold caches. It drops the slower ones and runs the finalists side by side. A winner "
        "is named only with its interval; otherwise the set that is statistically "
        "indistinguishable. Winners are kept in $XDG_CACHE_HOME/gpulab/tuning.db. bench and run "
        "use them "
        "(config=tuned), also for vit's products. After Ctrl-C the same command "
        "resumes. Without arguments it lists the kernels.",
    .options = tune_options,
    .config_size = sizeof(struct tune_config),
    .uses_device = true,
    .max_words = -1,
    .examples = examples,
    .sections = tune_sections,
    .complete = tune_complete,
    .word_keys = tune_word_keys,
    .run = tune_run,
};
