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
     .max = 1000000, .letter = 'n', .help = "show so many of the newest"},
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

static void print_json(const struct lab_command_call *call, const struct lab_study_view *views,
                       int count, int known) {
    struct lab_arena *arena = call->arena;
    struct lab_value *map = lab_value_map(arena), *list = lab_value_list(arena);
    for (int i = 0; i < count; i++)
        lab_value_append(arena, list, lab_study_view_value(&views[i], arena));
    lab_value_set_int(arena, map, "known", known);
    lab_value_set(arena, map, "studies", list);
    lab_console_print_json(call->console, map);
}

static void print_text(const struct lab_command_call *call, const struct lab_study_view *views,
                       int count, int hidden) {
    struct lab_study_info *studies =
        lab_arena_alloc(call->arena, (size_t)count + 1, sizeof *studies);
    for (int i = 0; i < count; i++)
        studies[i] = views[i].report;
    struct lab_str text;
    lab_str_init(&text);
    lab_report_studies(studies, count, call->console->style, &text);
    if (hidden > 0 && !call->console->quiet)
        lab_str_printf(&text, "\n%d older one%s: gpulab list --all\n", hidden,
                       hidden == 1 ? "" : "s");
    lab_console_print(call->console, &text);
    lab_str_release(&text);
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
    if (call->console->json)
        print_json(call, views, count, known);
    else
        print_text(call, views, count, known - shown);
    return 0;
}

static const struct lab_manual_example examples[] = {
    {"gpulab list", "the newest 20 studies: runs, state, folder"},
    {"gpulab list --all --json", "all of them, for a program"},
    {NULL},
};

const struct lab_command lab_command_list = {
    .name = "list",
    .summary = "list your studies: how far each is, and where it lies",
    .usage = "",
    .description =
        "Lists the studies that you have run on this machine, the newest first, whatever "
        "directory they were started in. One that was removed is no longer listed.",
    .options = list_options,
    .config_size = sizeof(struct list_config),
    .examples = examples,
    .run = list_run,
};
