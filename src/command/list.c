/*
 * list.c: `gpulab list`: all studies of this user, wherever they lie, the newest first.
 */
#include "command/command.h"
#include "report/study/study.h"

#include "load/study_view.h"

#include <stddef.h>

struct list_config {
    int64_t limit;
    bool all;
};

static const struct lab_option list_options[] = {
    {"limit", LAB_OPTION_INT, offsetof(struct list_config, limit), .fallback = "20", .min = 1,
     .max = 1000000, .letter = 'n', .help = "show the newest n"},
    {"all", LAB_OPTION_FLAG, offsetof(struct list_config, all), .letter = 'a',
     .help = "show all of them"},
    {NULL},
};

/* Reads the newest of them; those that can't be read are named beside the result. */
static int read_views(const struct lab_command_call *call, const char *const *paths, int count,
                      struct lab_study_view **ret_views) {
    struct lab_study_view *views = lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *views);
    int read = 0;
    for (int i = 0; i < count; i++) {
        struct lab_err err = LAB_ERR_INIT;
        if (lab_study_view_look(paths[i], false, call->arena, &views[read], &err) == 0)
            read++;
        else
            lab_console_note("%s", err.text);
    }
    *ret_views = views;
    return read;
}

static int list_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status, (void)err;
    const struct list_config *config = call->config;
    const char *const *paths;
    int known;
    lab_folder_known(call->arena, &paths, &known);
    int shown = config->all || config->limit > known ? known : (int)config->limit;
    struct lab_study_view *views;
    int count = read_views(call, paths, shown, &views);
    struct lab_doc *doc = lab_doc_open("Studies", call->arena);
    struct lab_value *list = lab_value_list(call->arena);
    struct lab_study_info *studies =
        lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *studies);
    for (int i = 0; i < count; i++) {
        studies[i] = views[i].report;
        lab_value_append(call->arena, list, lab_study_view_value(&views[i], call->arena));
    }
    lab_doc_data(doc, "known", lab_value_int(call->arena, known));
    lab_doc_data(doc, "studies", list);
    lab_report_add_studies(doc, studies, count);
    lab_doc_gap(doc);
    if (known > shown && !call->console->quiet)
        lab_doc_text(doc, LAB_DOC_WHOLE, "%d older one%s: gpulab list --all", known - shown,
                     known - shown == 1 ? "" : "s");
    lab_doc_print(doc, call->console);
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab list", "the newest 20 studies: runs, state, folder"},
    {"gpulab list --all --json", "all of them, for a program"},
    {NULL},
};

const struct lab_command lab_command_list = {
    .name = "list",
    .summary = "list your studies: progress, state, folder",
    .usage = "",
    .description =
        "Lists the studies that you have run on this machine, the newest first, whatever "
        "directory they were started in. One that was removed is no longer listed.",
    .options = list_options,
    .config_size = sizeof(struct list_config),
    .examples = examples,
    .run = list_run,
};
