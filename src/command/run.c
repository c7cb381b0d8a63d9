/*
 * run.c: `gpulab run STUDY`: a study's config, what it is made of, its plan, and the study itself.
 * Overrides follow Hydra's grammar, and so do -m, --cfg, --info and
 * --config-dir.
 */
#include "command/command.h"

#include "analysis/analysis.h"
#include "base/json.h"
#include "base/tty/stop.h"
#include "base/yaml/yaml.h"
#include "device/device.h"
#include "doc/doc.h"
#include "load/study_view.h"
#include "machine/machine.h"
#include "machine/machine_json.h"
#include "report/report.h"
#include "report/report_end.h"
#include "report/report_progress.h"
#include "run/launch/profiler.h"
#include "run/plan_estimate.h"
#include "run/run_study.h"
#include "run/study.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define FIRST_REPLY                                                                                \
    "\r\033[Kfinishing the current run; Ctrl-C again ends it; the same command resumes\n"
#define SECOND_REPLY "\r\033[Kending it\n"

struct run_config {
    bool multirun, list, dry_run, report, quick, verbose;
    const char *show, *cfg, *info, *config_dir, *topology;
};

static const char *const cfg_choices[] = {"job", NULL};
static const char *const info_choices[] = {"defaults", "searchpath", "plan", NULL};

static const struct lab_option run_options[] = {
    {"multirun", LAB_OPTION_FLAG, offsetof(struct run_config, multirun), .letter = 'm',
     .help = "allow overrides that stand for several values (key=1,2,3): a sweep"},
    {"list", LAB_OPTION_FLAG, offsetof(struct run_config, list), .help = "list the studies"},
    {"show", LAB_OPTION_STRING, offsetof(struct run_config, show), .value_name = "STUDY",
     .help = "print a study's file as it is"},
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

/* NULL and an error where one can't be read. */
static const struct lab_topic *find_studies(const struct lab_config_path *path,
                                            struct lab_arena *arena, struct lab_err *err) {
    const char *const *names = lab_config_options(path, "experiment", arena), *yaml;
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

static int print_studies(const struct lab_command_call *call, const struct lab_config_path *path,
                         struct lab_err *err) {
    const struct lab_topic *topics = find_studies(path, call->arena, err);
    if (topics)
        lab_command_print_topics(call, (const char *const[]){"studies", "study", "summary"}, topics,
                                 0,
                                 "'gpulab run STUDY --dry-run' shows what it would do, 'gpulab "
                                 "help run STUDY' explains it.");
    return topics ? 0 : -1;
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
    lab_value_set_string(call->arena, map, "study", name);
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

/* --- what can't be done here --- */

static int check_keys(const struct lab_plan *plan, struct lab_err *err) {
    if (plan->tracker && *plan->tracker)
        return lab_err_set(err, LAB_ERR_UNSUPPORTED,
                           "tracker: not supported in this version; leave the key out");
    for (int i = 0; i < plan->run_count && plan->machine->simulated; i++)
        if (lab_workload_is_external(plan->runs[i].workload))
            return lab_err_set(err, LAB_ERR_USER,
                               "%s: %s is simulated, and your own program can't run on it; to run "
                               "it here, add: device=auto",
                               plan->option, plan->runs[i].ranks[0].device);
    return lab_profiler_check(plan, err);
}

/* --- while it runs --- */

struct execution {
    struct lab_report_progress view;
    char waiting_for[64]; /* the device that was spoken of last */
    bool begun;           /* a run has */
};

static int on_stop(void *opaque) {
    struct execution *execution = opaque;
    lab_report_progress_tick(&execution->view);
    return lab_stop_level();
}

static void on_event(const struct lab_runner_event *event, void *opaque) {
    struct execution *execution = opaque;
    if (!execution->begun) /* until then Ctrl-C finds nothing that it could let finish */
        lab_stop_watch(execution->view.bar ? FIRST_REPLY : strchr(FIRST_REPLY, 'f'),
                       execution->view.bar ? SECOND_REPLY : strchr(SECOND_REPLY, 'e'));
    execution->begun = true;
    lab_report_progress_event(&execution->view, event);
}

static bool on_wait(const char *device, const struct lab_holder *holder, void *opaque) {
    struct execution *execution = opaque;
    if (strcmp(execution->waiting_for, device) != 0) {
        snprintf(execution->waiting_for, sizeof execution->waiting_for, "%s", device);
        LAB_AUTO(str, who);
        lab_holder_describe(holder, &who);
        lab_console_note("waiting for %s, on which another study measures: %s", device, who.text);
    }
    return lab_stop_level() == 0;
}

static void say_beginning(const struct lab_command_call *call, const struct lab_study *study) {
    const struct lab_console *console = call->console;
    if (console->quiet || console->json)
        return;
    for (int i = 0; study->plan.notes && study->plan.notes[i]; i++)
        lab_console_note("%s", study->plan.notes[i]);
    int done = study->run_count - study->item_count;
    const char *folder = lab_study_view_shorten(study->folder.path, call->arena);
    if (study->folder.resumed)
        lab_console_note("resuming %s: %d of %d runs are done", folder, done, study->run_count);
    else {
        LAB_AUTO(str, counts);
        lab_report_add_counts(&study->plan, &counts);
        lab_console_note("%s, in %s", counts.text, folder);
    }
}

static void prepare_view(struct execution *execution, const struct lab_command_call *call,
                         const struct lab_study *study) {
    const struct run_config *config = call->config;
    const struct lab_console *console = call->console;
    bool lines = !console->quiet && !console->json;
    execution->view = (struct lab_report_progress){
        .lines = lines,
        .each = config->verbose || !lab_console_draws(console),
        .bar = lab_console_draws(console),
        .style = lab_console_style(console->err_is_terminal, STDERR_FILENO),
        .max_workers = study->plan.max_workers,
        .simulated = study->machine->simulated,
        .arena = call->arena,
    };
    if (lines)
        execution->view.history = lab_run_history(study->machine);
}

static int exit_status(const struct lab_runner_outcome *outcome) {
    if (outcome->stopped)
        return lab_stop_signal() ? 128 + lab_stop_signal()
                                 : lab_err_exit_status(LAB_ERR_INTERRUPTED);
    return outcome->failed > 0 ? 1 : 0;
}

static int run_study(const struct lab_command_call *call, struct lab_study *study,
                     const char *command, int *ret_status, struct lab_err *err) {
    const struct run_config *config = call->config;
    const struct lab_console *console = call->console;
    struct execution execution = {0};
    struct lab_runner_outcome outcome;
    say_beginning(call, study);
    prepare_view(&execution, call, study);
    lab_report_progress_start(&execution.view, study->runs, study->run_count);
    lab_stop_watch(NULL, NULL);
    struct lab_study_listener listener = {
        .stop = on_stop, .event = on_event, .wait = on_wait, .state = &execution};
    int result = lab_study_run(study, &listener, &outcome, err);
    lab_report_progress_end(&execution.view);
    lab_history_close(execution.view.history);
    if (execution.view.lines && console->err_is_terminal)
        lab_console_say("%s", ""); /* the answer below stands apart */
    if (outcome.budget_used && !console->quiet)
        lab_console_note("the budget is used up: %d run%s left; the same command resumes",
                         outcome.left, outcome.left == 1 ? "" : "s");
    if (result < 0)
        return lab_err_context(err, "%s", study->folder.path);
    *ret_status = exit_status(&outcome);
    struct lab_report_end end = {.folder = study->folder.path,
                                 .command = command,
                                 .point_count = study->plan.point_count,
                                 .resumed = study->folder.resumed,
                                 .analysed = config->report,
                                 .verbose = config->verbose};
    return lab_report_end(&end, console, call->arena, err);
}

static int carry_out(const struct lab_command_call *call, const struct lab_plan *plan,
                     const struct lab_machine *machine, int *ret_status, struct lab_err *err) {
    if (machine->recorded && !machine->simulated)
        return lab_err_set(err, LAB_ERR_USER,
                           "--topology plans for another machine, which can't run anything here: "
                           "add --dry-run");
    if (check_keys(plan, err) < 0)
        return -1;
    const char *const *words = command_words(call);
    LAB_AUTO(str, json);
    lab_json_write(lab_machine_json_value(machine, call->arena), 2, &json);
    lab_str_add(&json, "\n");
    struct lab_study study = {.folder = LAB_FOLDER_INIT};
    struct lab_study_request wanted = {
        .plan = plan,
        .machine = machine,
        .words = words,
        .overrides = call->words,
        .command = lab_run_command(words, call->arena),
        .machine_json = json.text,
    };
    int result = lab_study_open(&wanted, call->arena, &study, err);
    if (result == 0)
        result = run_study(call, &study, wanted.command, ret_status, err);
    lab_study_close(&study);
    return result;
}

static int use_plan(const struct lab_command_call *call, const struct lab_config_path *path,
                    const struct lab_sweep *sweep, bool only_show, int *ret_status,
                    struct lab_err *err) {
    const struct run_config *config = call->config;
    struct lab_machine *machine;
    struct lab_plan plan;
    if (lab_machine_open(config->topology, &machine, err) < 0)
        return -1;
    int result = lab_command_plan(call, path, sweep, machine, &plan, err);
    if (result == 0 && only_show)
        result = print_plan(call, &plan, err);
    else if (result == 0)
        result = carry_out(call, &plan, plan.machine, ret_status, err);
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
        all[0].title = lab_arena_printf(arena, "Study %s", word);
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
        "also meant where only keys are given. Without a word it lists the studies.\n"
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
