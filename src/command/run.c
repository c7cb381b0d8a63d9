/*
 * run.c: `gpulab run STUDY`: a study's config, what it is made of, its plan, and the study itself.
 * Overrides follow Hydra's grammar, and so do -m, --cfg, --info and
 * --config-dir.
 */
#include "command/run/execute.h"

#include "analysis/analysis.h"
#include "base/yaml/yaml.h"
#include "device/device.h"
#include "doc/doc.h"
#include "machine/machine.h"
#include "report/report.h"
#include "run/estimate/plan_estimate.h"
#include "run/run_study.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

struct run_config {
    bool multirun, list, dry_run, report, quick, verbose;
    const char *show, *cfg, *info, *config_dir, *topology;
};

static const char *const cfg_choices[] = {"job", NULL};
static const char *const info_choices[] = {"defaults", "searchpath", "plan", NULL};

static const struct lab_option run_options[] = {
    {"multirun", LAB_OPTION_FLAG, offsetof(struct run_config, multirun), .letter = 'm',
     .help = "allow overrides that stand for several values (key=1,2,3): a sweep"},
    {"list", LAB_OPTION_FLAG, offsetof(struct run_config, list),
     .help = "list the studies and their presets"},
    {"show", LAB_OPTION_STRING, offsetof(struct run_config, show), .value_name = "NAME",
     .help = "print a study's or preset's file as it is"},
    {"dry-run", LAB_OPTION_FLAG, offsetof(struct run_config, dry_run),
     .help = "show what would run, how long it takes and how much disk; starts no study"},
    {"quick", LAB_OPTION_FLAG, offsetof(struct run_config, quick),
     .help = "one run of each point (experiment.repeat=1): a first look, which gives no verdict"},
    {"report", LAB_OPTION_FLAG, offsetof(struct run_config, report), .fallback = "true",
     .help = "at the end, analyse and draw the study; 'gpulab report' does it later"},
    {"verbose", LAB_OPTION_FLAG, offsetof(struct run_config, verbose), .letter = 'v',
     .help = "a line for each run, and at the end every row and every analysis's sentence"},
    {"cfg", LAB_OPTION_CHOICE, offsetof(struct run_config, cfg), .choices = cfg_choices,
     .help = "print the composed config"},
    {"info", LAB_OPTION_CHOICE, offsetof(struct run_config, info), .choices = info_choices,
     .help = "which files the config came from, where they are looked for, or the plan"},
    {"config-dir", LAB_OPTION_STRING, offsetof(struct run_config, config_dir), .value_name = "DIR",
     .help = "look for configs here first, then in ~/.config/gpulab"},
    {"topology", LAB_OPTION_STRING, offsetof(struct run_config, topology), .value_name = "FILE",
     .help = "plan for the machine recorded in this hwloc XML file (lstopo FILE.xml)"},
    {NULL},
};

/* --- studies --- */

/* Of studies or presets. NULL and an error where one can't be read. */
static const struct lab_topic *read_topics(const struct lab_config_path *path,
                                           const char *const *names, struct lab_arena *arena,
                                           struct lab_err *err) {
    const char *yaml;
    size_t count = 0, length;
    while (names[count])
        count++;
    struct lab_topic *topics = lab_arena_alloc(arena, count + 1, sizeof *topics);
    for (size_t i = 0; i < count; i++) {
        if (lab_run_read_study(path, names[i], arena, &yaml, &length, &topics[i].origin, err) < 0)
            return NULL;
        topics[i].name = names[i];
        topics[i].help = lab_run_summary(yaml, arena);
    }
    return topics;
}

static const struct lab_topic *find_studies(const struct lab_config_path *path,
                                            struct lab_arena *arena, struct lab_err *err) {
    return read_topics(path, lab_config_options(path, "experiment", arena), arena, err);
}

static int print_studies(const struct lab_command_call *call, const struct lab_config_path *path,
                         struct lab_err *err) {
    struct lab_arena *arena = call->arena;
    const struct lab_topic *studies = find_studies(path, arena, err),
                           *presets = read_topics(path, lab_run_presets(path, arena), arena, err);
    if (!studies || !presets)
        return -1;
    struct lab_doc *doc = lab_doc_open("run", arena);
    lab_command_add_topics(doc, (const char *const[]){"studies", "study", "summary"}, studies, 0,
                           arena);
    lab_doc_gap(doc);
    lab_doc_text(doc, LAB_DOC_SAYS,
                 "Presets, chosen by experiment/NAME: gpulab run test_matrix experiment/%s",
                 presets->name);
    lab_command_add_topics(doc, (const char *const[]){"presets", "preset", "summary"}, presets, 0,
                           arena);
    lab_doc_gap(doc);
    if (!call->console->quiet)
        lab_doc_text(doc, LAB_DOC_SAYS,
                     "'gpulab run STUDY --dry-run' shows what it would do, 'gpulab help run STUDY' "
                     "explains it; 'gpulab run --show NAME' prints a study's or preset's file.");
    lab_doc_print(doc, call->console);
    return 0;
}

static int show_study(const struct lab_command_call *call, const struct lab_config_path *path,
                      const char *name, struct lab_err *err) {
    const char *yaml, *origin;
    size_t length;
    if (lab_run_read_study(path, name, call->arena, &yaml, &length, &origin, err) < 0)
        return -1;
    if (!call->console->json) {
        lab_console_write(call->console, yaml, length);
        return 0;
    }
    struct lab_value *map = lab_value_map(call->arena);
    lab_value_set_string(call->arena, map,
                         lab_run_is_study(path, name, call->arena) ? "study" : "preset", name);
    lab_value_set_string(call->arena, map, "origin", origin);
    lab_value_set_string(call->arena, map, "yaml", yaml);
    lab_console_print_json(call->console, map);
    return 0;
}

/* --- the config --- */

static int compose(const struct lab_command_call *call, const struct lab_config_path *path,
                   const struct lab_sweep *sweep, struct lab_config *ret_config,
                   struct lab_err *err) {
    struct lab_override *words;
    int count;
    if (lab_sweep_job(sweep, 0, call->arena, &words, &count, err) < 0)
        return -1;
    return lab_config_compose(path, "config", words, count, call->arena, ret_config, err);
}

static int print_config(const struct lab_command_call *call, const struct lab_config_path *path,
                        const struct lab_sweep *sweep, struct lab_err *err) {
    struct lab_config config;
    if (compose(call, path, sweep, &config, err) < 0)
        return -1;
    if (sweep->job_count > 1 && !call->console->quiet)
        lab_console_note("this is job 1 of %lld", (long long)sweep->job_count);
    if (call->console->json) {
        lab_console_print_json(call->console, config.tree);
        return 0;
    }
    LAB_AUTO(str, text);
    lab_yaml_write(config.tree, &text);
    lab_console_write(call->console, text.text, text.length);
    return 0;
}

static int print_defaults(const struct lab_command_call *call, const struct lab_config_path *path,
                          const struct lab_sweep *sweep, struct lab_err *err) {
    static const struct lab_doc_column columns[] = {
        {"group"},        {"option"},        {"package"},
        {"parent"},       {"origin"},        {"overridden"},
        {NULL, "Config"}, {NULL, "Package"}, {NULL, "Asked for by"},
        {NULL, "File"},
    };
    struct lab_config config;
    if (compose(call, path, sweep, &config, err) < 0)
        return -1;
    struct lab_doc *doc = lab_doc_open("Configs", call->arena);
    lab_doc_text(doc, LAB_DOC_TITLE, "Merged in this order, the last one wins");
    lab_doc_rows(doc, "defaults", NULL, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < config.choice_count; i++) {
        const struct lab_config_choice *choice = &config.choices[i];
        lab_doc_add(doc, lab_cell_text(choice->group));
        lab_doc_add(doc, lab_cell_text(choice->option));
        lab_doc_add(doc, lab_cell_text(choice->package));
        lab_doc_add(doc, lab_cell_text(choice->parent));
        lab_doc_add(doc, lab_cell_text(choice->origin));
        lab_doc_add(doc,
                    (struct lab_doc_cell){.data = lab_value_bool(call->arena, choice->overridden)});
        lab_doc_cell(doc, "%s%s%s", choice->group ? choice->group : "", choice->group ? "/" : "",
                     choice->option);
        lab_doc_cell(doc, "%s", *choice->package ? choice->package : "(root)");
        lab_doc_cell(doc, "%s",
                     choice->overridden ? "the command line"
                     : choice->parent   ? choice->parent
                                        : "");
        /* where a built-in file is, its name says already */
        lab_doc_cell(doc, "%s",
                     lab_str_starts(choice->origin, "built-in:") ? "built-in" : choice->origin);
    }
    lab_doc_print(doc, call->console);
    return 0;
}

static void print_path(const struct lab_command_call *call, const struct lab_config_path *path) {
    struct lab_value *list = lab_value_list(call->arena);
    struct lab_doc *doc = lab_doc_open("Search path", call->arena);
    lab_doc_text(doc, LAB_DOC_TITLE, "Searched in this order, the first one wins");
    for (int i = 0; path->folders && path->folders[i]; i++) {
        lab_doc_code(doc, NULL, path->folders[i]);
        lab_value_append(call->arena, list, lab_value_string(call->arena, path->folders[i]));
    }
    lab_doc_code(doc, NULL, "built-in");
    lab_value_append(call->arena, list, lab_value_string(call->arena, "built-in"));
    lab_doc_data(doc, "searchpath", list);
    lab_doc_print(doc, call->console);
}

/* --- the plan --- */

static int print_plan(const struct lab_command_call *call, const struct lab_plan *plan,
                      struct lab_err *err) {
    struct lab_history *history =
        call->console->json ? lab_run_history(plan->machine) : lab_command_history(call, plan, err);
    if (!history)
        return -1;
    struct lab_plan_estimate estimate = lab_run_plan_estimate(plan, history);
    lab_history_close(history);
    struct lab_doc *doc = lab_doc_open(plan->option, call->arena);
    lab_report_add_plan(doc, plan, &estimate);
    lab_doc_print(doc, call->console);
    return 0;
}

/* --- the command line --- */

/* What was given behind `gpulab run`, as far as it decides what runs. */
static const char *const *command_words(const struct lab_command_call *call) {
    const struct run_config *config = call->config;
    const char **words = lab_arena_alloc(call->arena, (size_t)call->word_count + 6, sizeof *words);
    int count = 0;
    if (config->multirun)
        words[count++] = "-m";
    if (config->config_dir) {
        words[count++] = "--config-dir";
        words[count++] = config->config_dir;
    }
    if (lab_command_device(call)) {
        words[count++] = "--device";
        words[count++] = call->shared->device;
    }
    for (int i = 0; i < call->word_count; i++)
        words[count++] = call->words[i];
    return words;
}

static int carry_out(const struct lab_command_call *call, const struct lab_plan *plan,
                     int *ret_status, struct lab_err *err) {
    const struct run_config *config = call->config;
    struct lab_study_execution execution = {.words = command_words(call),
                                            .overrides = call->words,
                                            .report = config->report,
                                            .verbose = config->verbose,
                                            .failed_most = INT_MAX};
    struct lab_study_executed done;
    if (lab_study_execute(call, plan, &execution, &done, err) < 0)
        return -1;
    *ret_status = done.status;
    return 0;
}

static int use_plan(const struct lab_command_call *call, const struct lab_config_path *path,
                    const struct lab_sweep *sweep, bool only_show, int *ret_status,
                    struct lab_err *err) {
    const struct run_config *config = call->config;
    struct lab_machine *machine;
    struct lab_plan plan;
    if (lab_machine_open(config->topology, &machine, err) < 0)
        return -1;
    int result = lab_command_plan(call, path, sweep, machine, NULL, &plan, err);
    if (result == 0 && only_show)
        result = print_plan(call, &plan, err);
    else if (result == 0)
        result = carry_out(call, &plan, ret_status, err);
    lab_machine_close(machine);
    return result;
}

static int check_actions(const struct run_config *config, struct lab_err *err) {
    int actions = config->list + config->dry_run + (config->show != NULL) + (config->cfg != NULL) +
                  (config->info != NULL);
    if (actions > 1)
        return lab_err_set(err, LAB_ERR_USER,
                           "give one of --list, --show, --cfg, --info and --dry-run");
    return 0;
}

/* --quick is one more word, so that the command that is shown and kept needs no flag to go on. */
static int add_quick(const struct lab_command_call *call, struct lab_command_call *ret_call,
                     struct lab_err *err) {
    static const char *const names[] = {
        "repeat=", "runs=", "experiment.repeat=", "experiment.runs="};
    const char **words = lab_arena_alloc(call->arena, (size_t)call->word_count + 2, sizeof *words);
    for (int i = 0; i < call->word_count; i++) {
        words[i] = call->words[i];
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (lab_str_starts(words[i] + strspn(words[i], "+"), names[k]))
                return lab_err_set(err, LAB_ERR_USER,
                                   "--quick is one run of each point: leave it or %s out",
                                   words[i]);
    }
    words[call->word_count] = "experiment.repeat=1";
    *ret_call = *call;
    ret_call->words = words;
    ret_call->word_count++;
    return 0;
}

static int run_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const struct run_config *config = call->config;
    if (check_actions(config, err) < 0)
        return -1;
    struct lab_config_path path = lab_run_path(config->config_dir, call->arena);
    if (config->config_dir)
        lab_device_set_folders(path.folders);
    if (config->show)
        return show_study(call, &path, config->show, err);
    bool nothing = call->word_count == 0 && !config->cfg && !config->info && !config->dry_run;
    if (config->list || nothing)
        return print_studies(call, &path, err);
    if (lab_str_equal(config->info, "searchpath")) {
        print_path(call, &path);
        return 0;
    }
    struct lab_sweep sweep;
    struct lab_command_call quick;
    if (config->quick && add_quick(call, &quick, err) < 0)
        return -1;
    call = config->quick ? &quick : call;
    if (lab_command_sweep(call, &path, config->multirun, &sweep, err) < 0)
        return -1;
    if (config->cfg)
        return print_config(call, &path, &sweep, err);
    if (lab_str_equal(config->info, "defaults"))
        return print_defaults(call, &path, &sweep, err);
    return use_plan(call, &path, &sweep, config->dry_run || config->info, ret_status, err);
}

/* --- manual --- */

static const struct lab_manual_section *run_sections(struct lab_arena *arena, const char *word,
                                                     struct lab_err *err) {
    struct lab_config_path path = lab_run_path(NULL, arena);
    struct lab_manual_section *all;
    const char *yaml, *origin;
    size_t length;
    if (word && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS)) {
        if (lab_run_read_study(&path, word, arena, &yaml, &length, &origin, err) < 0)
            return NULL;
        all = lab_arena_alloc(arena, 2, sizeof *all);
        all[0].title = lab_arena_printf(
            arena, "%s %s", lab_run_is_study(&path, word, arena) ? "Study" : "Preset", word);
        all[0].text = lab_run_comment(yaml, arena);
        return all;
    }
    const struct lab_topic *topics = find_studies(&(struct lab_config_path){0}, arena, err);
    all = lab_command_topic_section("Studies", topics, "'gpulab help run STUDY' explains one.",
                                    arena);
    all[1].title = "Keys";
    all[1].text = "In addition, experiment.test and experiment.vit_configs take the workload's: "
                  "see 'gpulab help bench vit'.";
    all[1].keys = lab_plan_keys;
    return all;
}

static const struct lab_manual_example examples[] = {
    {"gpulab run", "lists the studies"},
    {"gpulab run quick_test", "the first thing to run: three models, a minute or so"},
    {"gpulab run scaling_study --dry-run",
     "what it would do on this machine, and how long it takes"},
    {"gpulab run numa_study device=cpu:0/2 experiment.hardware.gpu_ids=[0,1] "
     "experiment.hardware.numa_nodes=[0]",
     "with keys changed: on two halves of NUMA node 0's cores"},
    {"gpulab run -m scaling_study experiment.test.compile_model=true,false",
     "a sweep: the study once for each value"},
    {"gpulab run numa_study --quick", "one run of each point: a first look, no verdict"},
    {"gpulab run quick_test repeat=5", "five runs of each point, for intervals across runs"},
    {"gpulab run --show numa_study > mine.yaml", "a study's file, to start your own from"},
    {"gpulab run --show ddp=4gpus", "what a preset of test_matrix sets"},
    {NULL},
};

const struct lab_command lab_command_run = {
    .name = "run",
    .summary = "carry out a whole study, each run in a process of its own",
    .usage = "[STUDY] [key=value...]",
    .description =
        "Composes the study's config from its file, the files that it builds on, and the "
        "overrides. Checks every key, and that devices, NUMA nodes and memory are available. Then "
        "plans "
        "the runs and carries them out. 'numa_study' is short for experiment=numa_study, which is "
        "also meant where only keys are given. Without arguments it lists the studies.\n"
        "\n"
        "Results go to <output_dir>/<study>/<date>/<time>. Whatever ends it, finished results are "
        "kept. The same command continues with the runs left, failed ones included. When all is "
        "done, or with experiment.resume=false, it starts a new folder. --dry-run measures a few "
        "short runs where no comparable run is known, unless --quiet. Ctrl-C once finishes the run "
        "that is under way, twice ends it. 'gpulab status' shows from another terminal how far it "
        "is.\n"
        "\n"
        "Words follow Hydra's grammar: key=value changes, +key=value adds, ~key deletes. With -m a "
        "key may take several values (key=1,2 or key=range(1,9)), or several keys may move "
        "together: zip(key=[1,2],other=[3,4]).\n"
        "\n"
        "Runs = points × repeat. Studies that compare have 5 runs of each point, in blocks of all "
        "points: a verdict needs several. repeat=n sets another number, --quick one, which gives "
        "values and no verdict.\n"
        "\n"
        "The exit status is 0 if every run succeeded, 1 if some failed, 2 if it couldn't begin, "
        "and 130 after Ctrl-C.",
    .options = run_options,
    .config_size = sizeof(struct run_config),
    .uses_device = true,
    .max_words = -1,
    .examples = examples,
    .sections = run_sections,
    .complete = lab_command_studies,
    .word_keys = lab_command_study_keys,
    .run = run_run,
};
