/* help.c: `gpulab help`: the manual on the terminal, or as man pages in a folder. */
#include "command/command.h"

#include "base/file/file.h"

#include <stddef.h>

struct help_config {
    const char *man;
};

static const struct lab_option help_options[] = {
    {"man", LAB_OPTION_STRING, offsetof(struct help_config, man), .value_name = "DIR",
     .help = "write gpulab.1 and a man page for each command into this folder"},
    {NULL},
};

/* Returns the page's path, in the arena; NULL on failure. */
static const char *write_page(const struct lab_manual *manual, const struct lab_manual_page *page,
                              const char *folder, struct lab_arena *arena, struct lab_err *err) {
    LAB_AUTO(str, text);
    lab_manual_man(manual, page, &text);
    const char *path = page ? lab_arena_printf(arena, "%s/gpulab-%s.1", folder, page->name)
                            : lab_arena_printf(arena, "%s/gpulab.1", folder);
    int result = lab_file_write_atomic(path, text.text, text.length, err);
    return result < 0 ? NULL : path;
}

static int write_man_pages(const struct lab_command_call *call, const char *folder,
                           struct lab_err *err) {
    const char *refused;
    if (!*folder)
        return lab_err_set(err, LAB_ERR_USER, "help: --man needs a folder to write to");
    int reason = lab_file_make_folders(folder, 0777, call->arena, &refused);
    if (reason)
        return lab_err_set_errno(err, LAB_ERR_USER, reason, "help --man %s", refused);
    const struct lab_manual *manual = lab_command_manual(call->arena);
    struct lab_value *list = lab_value_list(call->arena), *map = lab_value_map(call->arena);
    for (int i = -1; i < 0 || manual->pages[i]; i++) {
        const char *path =
            write_page(manual, i < 0 ? NULL : manual->pages[i], folder, call->arena, err);
        if (!path)
            return -1;
        lab_value_append(call->arena, list, lab_value_string(call->arena, path));
    }
    lab_value_set(call->arena, map, "written", list);
    if (call->console->json)
        lab_console_print_json(call->console, map);
    return 0;
}

/* The same overview for programs: names and summaries. */
static void print_json(const struct lab_command_call *call) {
    struct lab_value *list = lab_value_list(call->arena);
    for (int i = 0; lab_commands[i]; i++) {
        if (lab_commands[i]->hidden)
            continue;
        struct lab_value *item = lab_value_map(call->arena);
        lab_value_set_string(call->arena, item, "command", lab_commands[i]->name);
        lab_value_set_string(call->arena, item, "usage", lab_commands[i]->usage);
        lab_value_set_string(call->arena, item, "summary", lab_commands[i]->summary);
        lab_value_append(call->arena, list, item);
    }
    struct lab_value *all = lab_value_map(call->arena);
    lab_value_set(call->arena, all, "commands", list);
    lab_console_print_json(call->console, all);
}

static int help_run(const struct lab_command_call *call, int *ret_status, struct lab_err *err) {
    (void)ret_status;
    const struct help_config *config = call->config;
    if (config->man && call->word_count)
        return lab_err_set(err, LAB_ERR_USER,
                           "help: --man writes the pages of all commands: leave out '%.80s'",
                           call->words[0]);
    if (config->man)
        return write_man_pages(call, config->man, err);
    if (call->word_count > 0) {
        const struct lab_command *command = lab_command_find(call->words[0], err);
        return command ? lab_command_show_help(call, command, call->words[1], err) : -1;
    }
    if (call->console->json) {
        print_json(call);
        return 0;
    }
    LAB_AUTO(str, text);
    lab_command_write_overview(call->console->style, call->arena, &text);
    lab_console_print(call->console, &text);
    return 0;
}

static const char *const *help_complete(struct lab_arena *arena) {
    return lab_command_names(arena);
}

static const struct lab_manual_example examples[] = {
    {"gpulab help bench", "options of bench and its workloads"},
    {"gpulab help bench vit", "all keys of the vit workload"},
    {"gpulab help analyze balance", "one of the analyses"},
    {"gpulab help --man /usr/local/share/man/man1", "write the man pages"},
    {NULL},
};

const struct lab_command lab_command_help = {
    .name = "help",
    .summary = "show what gpulab can do, or one command in full",
    .usage = "[COMMAND [NAME]]",
    .options = help_options,
    .config_size = sizeof(struct help_config),
    .max_words = 2,
    .examples = examples,
    .complete = help_complete,
    .run = help_run,
};
