/*
 * campaign.c: `gpulab campaign`: a plan of several studies: shown, scheduled, carried out. The work
 * is done in campaign/.
 */
#include "command/campaign/answers.h"

#include "device/device.h"
#include "doc/doc.h"
#include "machine/machine.h"
#include "run/run_study.h"

#include <stddef.h>

struct campaign_config {
    bool dry_run, accept_machine, verbose;
    const char *config_dir, *output;
};

static const struct lab_option campaign_options[] = {
    {"dry-run", LAB_OPTION_FLAG, offsetof(struct campaign_config, dry_run),
     .help = "show the schedule: when each study runs, its time, energy and disk; starts no study"},
    {"accept-machine", LAB_OPTION_FLAG, offsetof(struct campaign_config, accept_machine),
     .help = "continue, though the machine is not the one that the campaign began on"},
    {"verbose", LAB_OPTION_FLAG, offsetof(struct campaign_config, verbose), .letter = 'v',
     .help = "a line for each run"},
    {"config-dir", LAB_OPTION_STRING, offsetof(struct campaign_config, config_dir),
     .value_name = "DIR", .help = "look for configs here first, then in ~/.config/gpulab"},
    {"output", LAB_OPTION_STRING, offsetof(struct campaign_config, output), .letter = 'o',
     .value_name = "FILE", .help = "of pack: the archive; NAME-DATE-TIME.tar.gz if not given"},
    {NULL},
};

/* --- which there are --- */

static int list_campaigns(const struct lab_command_call *call, struct lab_err *err) {
    const struct campaign_config *config = call->config;
    struct lab_config_path path = lab_run_path(config->config_dir, call->arena);
    const char *const *names = lab_config_options(&path, "campaign", call->arena), *yaml;
    struct lab_topic *topics = NULL;
    int count = 0;
    size_t length;
    for (int i = 0; names[i]; i++) {
        struct lab_topic topic = {.name = names[i]};
        const char *file = lab_arena_printf(call->arena, "campaign/%s.yaml", names[i]);
        if (lab_config_read(&path, file, call->arena, &yaml, &length, &topic.origin, err) < 0)
            return -1;
        topic.help = lab_run_summary(yaml, call->arena);
        LAB_ADD(topics, count, call->arena) = topic;
    }
    lab_command_print_topics(call, (const char *const[]){"campaigns", "campaign", "summary"},
                             topics, 0,
                             "'gpulab campaign run NAME --dry-run' shows the schedule, 'gpulab "
                             "campaign show NAME' the file.");
    return 0;
}

static int show_file(const struct course *course, const char *name, struct lab_err *err) {
    const char *yaml, *origin;
    size_t length;
    const struct lab_command_call *call = course->call;
    const char *file = lab_arena_printf(call->arena, "campaign/%s.yaml", name);
    if (lab_config_read(&course->path, file, call->arena, &yaml, &length, &origin, err) < 0)
        return -1;
    if (!call->console->json) {
        lab_console_write(call->console, yaml, length);
        return 0;
    }
    struct lab_value *map = lab_value_map(call->arena);
    lab_value_set_string(call->arena, map, "campaign", name);
    lab_value_set_string(call->arena, map, "origin", origin);
    lab_value_set_string(call->arena, map, "yaml", yaml);
    lab_console_print_json(call->console, map);
    return 0;
}

/* --- before it runs --- */

static int show_schedule(struct course *course, struct lab_err *err) {
    struct lab_campaign_known known = course_known(course);
    struct lab_campaign_schedule schedule;
    int64_t replaced;
    if (lab_campaign_make_schedule(&course->campaign, &known, course->arena, &schedule, err) < 0 ||
        course_count_replaced(course, &replaced, err) < 0)
        return -1;
    struct lab_doc *doc = lab_doc_open(course->campaign.name, course->arena);
    lab_doc_set_simulated(doc, course->simulated);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s: %s", course->campaign.name, course->campaign.title);
    course_add_schedule(course, &schedule, doc);
    if (course->campaign.replaced_count > 0) {
        lab_doc_line(doc, "Replaces", "%d studies with %lld runs", course->campaign.replaced_count,
                     (long long)replaced);
        lab_doc_data(doc, "replaced_runs", lab_value_int(course->arena, replaced));
    }
    lab_doc_print(doc, course->call->console);
    return 0;
}

/* --- carried out --- */

static void print_status(const struct course *course, const struct lab_campaign_status *statuses) {
    struct lab_doc *doc = lab_doc_open(course->campaign.name, course->arena);
    lab_doc_set_simulated(doc, course->simulated);
    lab_doc_text(doc, LAB_DOC_TITLE, "%s: %s", course->campaign.name, course->campaign.title);
    course_add_phases(course, statuses, doc);
    lab_doc_gap(doc);
    lab_doc_line_as(doc, "folder", "Folder", course->folder);
    lab_doc_line_as(doc, "machine_note", "Machine", course->machine_note);
    lab_doc_print(doc, course->call->console);
}

/* The answers, on the page and here. */
static int report(struct course *course, const struct lab_campaign_status *statuses,
                  struct lab_err *err) {
    struct course_answers answers;
    const char *page;
    if (course_answer(course, &answers, err) < 0)
        return -1;
    struct lab_doc *doc = course_report(course, &answers, statuses);
    if (course_report_write(course, doc, &page, err) < 0)
        return -1;
    lab_doc_only(doc, LAB_DOC_TERMINAL);
    lab_doc_gap(doc);
    lab_doc_line(doc, "Folder", "%s", course->folder);
    lab_doc_line(doc, "Report", "%s", page);
    lab_doc_only(doc, LAB_DOC_PROGRAMS);
    lab_doc_line_as(doc, "folder", "Folder", course->folder);
    lab_doc_line_as(doc, "page", "Report", page);
    lab_doc_print(doc, course->call->console);
    return 0;
}

static int run_campaign(struct course *course, int *ret_status, struct lab_err *err) {
    const struct campaign_config *config = course->call->config;
    bool budget = course->campaign.budget_s > 0 || course->campaign.budget_bytes > 0;
    bool shown = !course->call->console->quiet && !course->call->console->json;
    bool calibrate = course->campaign.budget_s > 0 || (config->dry_run && shown);
    struct lab_campaign_known known = course_known(course);
    struct lab_campaign_schedule schedule;
    if (course_plan(course, config->dry_run || budget, calibrate, err) < 0)
        return -1;
    if (config->dry_run)
        return show_schedule(course, err);
    if (course_open(course, config->accept_machine, err) < 0 || course_read(course, err) < 0)
        return -1;
    if (lab_campaign_make_schedule(&course->campaign, &known, course->arena, &schedule, err) < 0) {
        course_discard(course); /* the budget is too small */
        return -1;
    }
    if (course->campaign.budget_s > 0 && schedule.unknown > 0)
        lab_console_note("time of %d studies unknown: budget.time doesn't count them",
                         schedule.unknown);
    if (shown)
        lab_console_note("%s %s", course->resumed ? "resuming" : "campaign in", course->folder);
    if (course_run(course, config->verbose, ret_status, err) < 0)
        return -1;
    const struct lab_campaign_status *statuses =
        lab_campaign_decide(&course->campaign, &known, course->arena);
    bool interrupted = *ret_status > 1;
    if (interrupted || course->campaign.question_count == 0)
        print_status(course, statuses);
    else if (report(course, statuses, err) < 0)
        return -1;
    return interrupted ? 0 : course_write(course, statuses, true, err);
}

static int pack(struct course *course, struct lab_err *err) {
    const struct campaign_config *config = course->call->config;
    const char *path;
    if (course_pack(course, config->output, &path, err) < 0)
        return -1;
    struct lab_doc *doc = lab_doc_open(NULL, course->arena);
    lab_doc_line_as(doc, "archive", "Archive", path);
    lab_doc_print(doc, course->call->console);
    return 0;
}

static int look(struct course *course, const char *action, struct lab_err *err) {
    if (!course->folder &&
        (course_plan(course, false, false, err) < 0 || course_look(course, err) < 0))
        return -1;
    if (lab_str_equal(action, "pack"))
        return pack(course, err);
    if (course_read(course, err) < 0)
        return -1;
    struct lab_campaign_known known = course_known(course);
    const struct lab_campaign_status *statuses =
        lab_campaign_decide(&course->campaign, &known, course->arena);
    if (lab_str_equal(action, "report"))
        return report(course, statuses, err);
    print_status(course, statuses);
    return 0;
}

static int use_campaign(const struct lab_command_call *call, const char *action, int *ret_status,
                        struct lab_err *err) {
    const struct campaign_config *config = call->config;
    struct course course = {.call = call, .arena = call->arena, .lock_fd = -1};
    if (call->word_count < 2)
        return lab_err_set(err, LAB_ERR_USER,
                           "NAME is missing: gpulab campaign %s NAME; 'gpulab campaign list' lists "
                           "them",
                           action);
    bool runs = lab_str_equal(action, "run"), shows = lab_str_equal(action, "show");
    if (!runs && !shows && call->word_count == 2 && course_is_folder(call->words[1])) {
        course.path = lab_run_path(config->config_dir, call->arena);
        return course_reopen(&course, call->words[1], err) < 0 ? -1 : look(&course, action, err);
    }
    if (course_compose(&course, config->config_dir, call->words[1], call->words + 2,
                       call->word_count - 2, err) < 0)
        return -1;
    if (config->config_dir)
        lab_device_set_folders(course.path.folders);
    if (shows)
        return show_file(&course, call->words[1], err);
    if (lab_machine_open(NULL, &course.machine, err) < 0)
        return -1;
    int result = runs ? run_campaign(&course, ret_status, err) : look(&course, action, err);
    course_close(&course);
    lab_machine_close(course.machine);
    return result;
}

static const char *const actions[] = {"list", "show", "run", "status", "report", "pack", NULL};

static int campaign_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    const char *action = call->word_count ? call->words[0] : "list";
    if (lab_str_find(action, actions) < 0) {
        LAB_AUTO(str, list);
        lab_str_add_list(&list, actions, "or");
        return lab_err_set(err, LAB_ERR_USER, "campaign %s: use %s", action, list.text);
    }
    if (lab_str_equal(action, "list"))
        return list_campaigns(call, err);
    return use_campaign(call, action, ret_status, err);
}

static const char *const *campaign_complete(struct lab_arena *arena) {
    (void)arena;
    return actions;
}

static const struct lab_manual_section *campaign_sections(struct lab_arena *arena, const char *word,
                                                          struct lab_err *err) {
    static const struct lab_manual_section sections[] = {
        {.title = "Keys of a campaign's file", .keys = lab_campaign_keys},
        {.title = "Keys of a question", .keys = lab_campaign_question_keys},
        {.title = "Keys of a phase", .keys = lab_campaign_phase_keys},
        {.title = "Keys of a study that refines", .keys = lab_campaign_refine_keys},
        {.title = "Keys of a gate", .keys = lab_campaign_gate_keys},
        {.title = "Keys of the budget", .keys = lab_campaign_budget_keys},
        {.title = "Keys of the risks", .keys = lab_campaign_risk_keys},
        {0},
    };
    (void)arena;
    if (word && !lab_str_equal(word, LAB_COMMAND_ALL_WORDS) && lab_str_find(word, actions) < 0) {
        lab_err_set(err, LAB_ERR_USER, "campaign has no '%s'", word);
        return NULL;
    }
    return sections;
}

static const struct lab_manual_example examples[] = {
    {"gpulab campaign", "lists the campaigns"},
    {"gpulab campaign run numa_plan device=sim:l40s-10 --dry-run",
     "when each study runs, and how long it takes"},
    {"gpulab campaign run numa_plan device=sim:l40s-10", "all of it; the same command resumes"},
    {"gpulab campaign run numa_plan campaign.budget.time=2h",
     "phases of low priority are dropped if they take longer"},
    {"gpulab campaign status numa_plan device=sim:l40s-10", "how far each phase is, and why"},
    {"gpulab campaign report numa_plan device=sim:l40s-10 --json",
     "its answers again, for programs; the page is rewritten"},
    {"gpulab campaign pack outputs/campaign/numa_plan/2026-11-18/10-42-03",
     "plan, machine, data and report as one archive"},
    {"gpulab campaign show numa_plan > mine.yaml", "its file, to start your own from"},
    {NULL},
};

const struct lab_command lab_command_campaign = {
    .name = "campaign",
    .summary = "carry out a plan of several studies, and answer its questions",
    .usage = "[list | show | run | status | report | pack] [NAME | FOLDER] [key=value...]",
    .description =
        "A campaign is one file: questions, phases with their studies, what each phase comes "
        "after, conditions on what earlier phases found, gates and a budget. Phases run by what "
        "they come after, then by priority.\n"
        "\n"
        "key=value is handed on to each study, campaign.KEY=value changes the campaign's own "
        "file. The same command resumes; what is decided follows from stored results. A phase "
        "whose condition doesn't hold is skipped. A phase with too many failed runs is stopped, "
        "and phases after it don't run; the same command tries them again.\n"
        "\n"
        "At the end, report/index.html of its folder answers the questions in order, each by an "
        "analysis of all studies of its phases. 'report' writes it again.\n"
        "\n"
        "--dry-run measures a few short runs where no comparable run is known, unless --quiet or "
        "--json.\n"
        "\n"
        "The exit status of run is 0, 1 if a phase was stopped, 2 if it couldn't begin, and 130 "
        "after Ctrl-C.",
    .options = campaign_options,
    .config_size = sizeof(struct campaign_config),
    .uses_device = true,
    .max_words = -1,
    .examples = examples,
    .sections = campaign_sections,
    .complete = campaign_complete,
    .run = campaign_run,
};
